"""Replay tokens of ordinary Python: the explorer's token, with what the schedule depends on besides.

``py1.<sources>.<places>.<token of the explorer>``: a hash of the observed sources, and the places that were promoted,
for a schedule is a list of steps, and which accesses are steps is known only with them.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass

from seriatim_models.explorer.errors import BadToken
from seriatim_models.explorer.trace.replay_token import unpacked

VERSION = "py1"
PLACES_MAX = 2**20
"""Bytes of the names of promoted places: a program has a few of them."""
TOO_LONG = f"the replay token names places in more than {PLACES_MAX:,} bytes, which no program does"


@dataclass(frozen=True)
class PythonToken:
    """What such a token holds."""

    sources: str
    places: list[str]
    token: str
    """The explorer's own."""


def write(sources: str, places: list[str], token: str) -> str:
    """The token as text."""
    packed = zlib.compress("\n".join(places).encode(), 9)
    text = base64.urlsafe_b64encode(packed).decode().rstrip("=")
    return f"{VERSION}.{sources}.{text}.{token}"


def read(token: str) -> PythonToken:
    """What a token holds. Raises `BadToken`."""
    parts = token.strip().split(".", 3)
    if len(parts) != 4 or parts[0] != VERSION:
        raise BadToken(
            f"a token of ordinary Python begins with {VERSION}. and has eight parts: was it cut?"
        )
    try:
        packed = base64.urlsafe_b64decode(parts[2] + "=" * (-len(parts[2]) % 4))
        places = unpacked(packed, PLACES_MAX, TOO_LONG).decode().split("\n")
    except (ValueError, zlib.error) as error:
        raise BadToken(f"the replay token cannot be read: {error}") from error
    return PythonToken(parts[1], [place for place in places if place], parts[3])
