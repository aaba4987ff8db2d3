"""Python's garbage collector while a run is judged."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

OBJECTS_BETWEEN_COLLECTIONS = 1_000_000
"""New objects between two runs of Python's garbage collector while a run is judged: those of about 100,000 events."""


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Let Python's garbage collector run rarely: judging makes objects that stay, and none in a circle, and looking
    through all of them again and again took a tenth to a fifth of its time. What a user's own property leaves is still
    collected.
    """
    before = gc.get_threshold()
    if before[0]:  # 0: whoever began this process wants no collections
        gc.set_threshold(max(before[0], OBJECTS_BETWEEN_COLLECTIONS), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
