"""The fast form of the black-box properties: columns instead of objects."""
