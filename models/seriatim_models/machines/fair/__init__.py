"""The calls of the fair consumer."""
