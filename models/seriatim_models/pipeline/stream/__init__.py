"""Judging a folder of recordings while it grows."""
