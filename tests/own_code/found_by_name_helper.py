"""A module that tests patch and look for by its name."""

from __future__ import annotations

LIMIT = 3


def value() -> int:
    return 1
