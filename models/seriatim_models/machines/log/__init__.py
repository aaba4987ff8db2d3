"""Generated programs over the log."""
