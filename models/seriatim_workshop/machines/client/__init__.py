"""Generated programs over the client and its broker."""
