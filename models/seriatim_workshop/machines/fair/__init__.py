"""Generated programs over the fair consumer, its sequential model, and its state as text."""
