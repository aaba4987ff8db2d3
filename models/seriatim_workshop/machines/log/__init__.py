"""Generated programs over the log, and its sequential model."""
