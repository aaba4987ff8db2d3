"""The calls of the queue and its hand-over."""
