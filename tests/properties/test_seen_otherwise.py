"""The same events, seen otherwise: a right history stays unreported when recorders see less, or name things oddly."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import msgspec
import pytest

from seriatim_models.history import Event
from seriatim_workshop.right.drawing import draw, history
from seriatim_workshop.right.judging import reported

View = Callable[[Sequence[Event], random.Random], list[Event]]


def without_flags(events: Sequence[Event], choose: random.Random) -> list[Event]:
    """Nobody recorded `redelivered`."""
    return [msgspec.structs.replace(e, redelivered=None) for e in events]


def without_operations(events: Sequence[Event], choose: random.Random) -> list[Event]:
    """Nothing joins the phases of a call."""
    return [msgspec.structs.replace(e, op=None) for e in events]


def oddly_named(events: Sequence[Event], choose: random.Random) -> list[Event]:
    """Names hold newlines and spaces."""
    return [
        msgspec.structs.replace(
            e,
            q=e.q and f"{e.q}\n ",
            m=e.m and f" /1#1\n{e.m}",
            conn=e.conn and f"{e.conn} /1",
            ctag=e.ctag and f"\n{e.ctag}",
        )
        for e in events
    ]


@pytest.mark.parametrize("view", [without_flags, without_operations, oddly_named])
def test_no_right_history_is_reported_when_seen_otherwise(view: View) -> None:
    for seed in range(3000, 3040):
        meaning = draw(seed)
        found = reported(meaning, view(history(meaning), random.Random(seed)))
        assert not found, (seed, found[0].property, found[0].explanation)
