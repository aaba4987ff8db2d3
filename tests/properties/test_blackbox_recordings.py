"""What the two recordings of RabbitMQ 3.10.8 show, pinned; and faults planted in them are found."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import msgspec
import pytest

from seriatim_models.history import Event, read_history
from seriatim_models.history.complete import complete
from seriatim_models.properties.base import Verdict
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.blackbox.requeue import RequeueLateness

DATA = Path(__file__).parent.parent / "data"
BY_ID = {p.id: p for p in BLACKBOX}


@cache
def recorded(name: str) -> tuple[Event, ...]:
    return tuple(read_history(DATA / f"rabbit-classic-{name}.jsonl.gz").events)


@cache
def completed(name: str) -> tuple[Event, ...]:
    return tuple(complete(recorded(name)))


PINNED = {f"P{n}" for n in (*range(1, 16), 20)}
"""The properties whose cases in both recordings are pinned here; a newer one's are pinned by its own tests."""

# verdict ok everywhere; (n_tested, n_untestable)
FOUND = {
    "lockstep": {
        "P1": (7520, 0), "P2": (4520, 0), "P3": (4520, 0), "P4": (2999, 0), "P5": (4519, 1),
        "P6": (2655, 0), "P7": (4520, 0), "P8": (7515, 0), "P9": (0, 0),
        "P14": (4520, 0), "P20": (16, 4504),
    },
    "competing": {
        "P1": (8677, 0), "P2": (4677, 0), "P3": (4622, 55), "P4": (3824, 0), "P5": (1383, 3294),
        "P6": (277, 0), "P7": (4677, 0), "P8": (9122, 6), "P9": (44, 0),
        "P14": (3355, 0), "P20": (14, 4663),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_the_recordings_violate_nothing(name: str) -> None:
    for prop in BLACKBOX:
        found = prop.check(completed(name))
        if prop.id in PINNED:
            assert (found.n_tested, found.n_untestable) == FOUND[name].get(prop.id, (0, 0)), prop.id
        assert found.verdict is (Verdict.OK if found.n_tested else Verdict.INCONCLUSIVE)


@pytest.mark.parametrize(
    ("name", "late", "longest"), [("lockstep", 1135, 15), ("competing", 75, 4)]
)
def test_requeued_messages_come_back_late_but_within_the_prefetch(
    name: str, late: int, longest: int
) -> None:
    found = RequeueLateness(within=0).check(completed(name))
    assert found.n_violations == late
    assert RequeueLateness(within=longest).check(completed(name)).verdict is Verdict.OK
    assert RequeueLateness(within=longest - 1).check(completed(name)).verdict is Verdict.VIOLATED


def nth(events: list[Event], ev: str, n: int) -> int:
    return [at for at, e in enumerate(events) if e.ev == ev][n]


def phantom(events: list[Event]) -> None:
    at = nth(events, "deliver", 2000)
    events[at] = msgspec.structs.replace(events[at], m="0:999999", pseq=999999)


def lost(events: list[Event]) -> None:
    gone = events[nth(events, "deliver", 100)].m
    keep = [e for e in events if e.m != gone or e.ev == "publish"]
    events[:] = [
        msgspec.structs.replace(e, ms=[m for m in e.ms if m != gone]) if e.ms else e for e in keep
    ]


def after_ack(events: list[Event]) -> None:
    at = nth(events, "ack", 500)
    m = (events[at].ms or [""])[0]
    later = nth(events, "deliver", 1500)
    events[later] = msgspec.structs.replace(events[later], m=m, redelivered=True, pseq=int(m[2:]))


def held_twice(events: list[Event]) -> None:
    """The next delivery hands out again what the one before handed out."""
    at = nth(events, "deliver", 1000)
    after = nth(events, "deliver", 1001)
    events[after] = msgspec.structs.replace(events[after], m=events[at].m, redelivered=True)


def unmarked(events: list[Event]) -> None:
    at = next(n for n, e in enumerate(events) if e.ev == "deliver" and e.redelivered)
    events[at] = msgspec.structs.replace(events[at], redelivered=False)


def swapped(events: list[Event]) -> None:
    """Two first deliveries change places: out of publish order, and past an available message."""
    a, b = (
        n
        for n, e in enumerate(events)
        if e.ev == "deliver" and not e.redelivered and e.pseq in (1700, 1740)
    )
    for n, m, pseq in ((a, events[b].m, events[b].pseq), (b, events[a].m, events[a].pseq)):
        events[n] = msgspec.structs.replace(events[n], m=m, pseq=pseq)


def narrower(events: list[Event]) -> None:
    """The broker's prefetch was 16; had it been 15, the window was overrun."""
    events[:] = [
        msgspec.structs.replace(e, prefetch=e.prefetch - 1) if e.prefetch else e for e in events
    ]


def tag_repeated(events: list[Event]) -> None:
    at = nth(events, "deliver", 3000)
    events[at] = msgspec.structs.replace(events[at], dtag=(events[at].dtag or 0) - 1)


@pytest.mark.parametrize(
    ("id", "plant"),
    [
        ("P1", phantom), ("P1", lost), ("P1", after_ack), ("P2", held_twice), ("P3", unmarked),
        ("P4", swapped), ("P5", swapped), ("P7", narrower), ("P8", tag_repeated),
    ],
)  # fmt: skip
def test_a_planted_fault_is_found(id: str, plant: Callable[[list[Event]], None]) -> None:
    events = list(recorded("lockstep"))
    plant(events)
    assert BY_ID[id].check(complete(events)).verdict is Verdict.VIOLATED
