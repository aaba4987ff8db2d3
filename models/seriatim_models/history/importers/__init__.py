"""Recordings in other formats, as qh/1 events."""
