"""How deep values of a stranger may be nested, and how large their numbers: one bound for every format.

Decoders give up where the stack of the caller happens to end, which differs from engine to engine, so a value just
below that is read by one and breaks the next. This bound, far below that of any stack, does not depend on who asks.
Whole numbers have no bound in JSON, and 64 bits in every format that states and chunk files are written in.
"""

from __future__ import annotations

import re

DEPTH_MAX = 64
"""Levels of lists and objects in each other; an event needs four or five."""
TOO_DEEP = f"nested deeper than {DEPTH_MAX}"
"""The reason, in words."""

TOO_LARGE = "a whole number of more than 64 bits"
"""The reason, in words, why an event's arguments are refused."""


def too_large(value: object) -> bool:
    """Whether a whole number in a decoded value, itself not too deep, has more than 64 bits."""
    if isinstance(value, int):
        return not -(2**63) <= value < 2**63
    if isinstance(value, dict):
        return any(map(too_large, value.values()))
    return isinstance(value, list | tuple) and any(map(too_large, value))


def whole_number(text: str) -> int | None:
    """The whole number that a text is in ASCII digits, if it has 64 bits at most; else None.

    `str.isdigit` is true of texts that `int` refuses: a superscript, or more digits than Python converts.
    """
    number = int(text) if re.fullmatch(r"-?[0-9]{1,19}", text) else None
    return None if number is None or too_large(number) else number


def too_deep(value: object, most: int = DEPTH_MAX) -> bool:
    """Whether a decoded value has more levels of lists and objects than `most`."""
    if isinstance(value, dict):
        inner = list(value.values())
    elif isinstance(value, list | tuple):
        inner = list(value)
    else:
        return False
    return most == 0 or any(too_deep(v, most - 1) for v in inner)
