"""Generated programs over the queue, its sequential model, and its machines."""
