"""How deep values of a stranger may be nested: one bound for every format, far below that of any stack.

Decoders give up where the stack of the caller happens to end, which differs from engine to engine, so a value just
below that is read by one and breaks the next. This bound does not depend on who asks.
"""

from __future__ import annotations

DEPTH_MAX = 64
"""Levels of lists and objects in each other; an event needs four or five."""
TOO_DEEP = f"nested deeper than {DEPTH_MAX}"
"""The reason, in words."""


def too_deep(value: object, most: int = DEPTH_MAX) -> bool:
    """Whether a decoded value has more levels of lists and objects than `most`."""
    if isinstance(value, dict):
        inner = list(value.values())
    elif isinstance(value, list | tuple):
        inner = list(value)
    else:
        return False
    return most == 0 or any(too_deep(v, most - 1) for v in inner)
