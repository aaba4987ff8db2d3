"""The explorer against brute force over generated programs."""
