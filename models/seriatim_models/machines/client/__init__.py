"""The calls of the client and its work pool, and their state as text."""
