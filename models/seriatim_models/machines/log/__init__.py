"""The calls of the log, and its state as text."""
