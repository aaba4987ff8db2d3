"""The columnar evaluator of the black-box properties: columns instead of objects."""
