"""What lets a property ask its question of every event of a long history without a scan for each.

A definition says "no entry that ..." and means all entries; read literally, judging costs events times entries.
Here are the three questions of that kind that come up, answered by a search in what was sorted once,
or kept sorted while time goes on. `tests/properties/definitions.py` has the literal readings.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from math import inf
from operator import attrgetter, itemgetter
from typing import Generic, TypeVar

from seriatim_models.history.event import Event
from seriatim_models.properties.whitebox.state import ConsumerHistory, EntryHistory, Place

_index = attrgetter("i")


def between(events: Sequence[Event], lo: float, hi: float) -> Sequence[Event]:
    """Those strictly between two indexes; `events` are in the order of theirs."""
    return events[bisect_right(events, lo, key=_index) : bisect_left(events, hi, key=_index)]


def how_many_before(events: Sequence[Event], hi: float) -> int:
    """How many of them have an index below `hi`."""
    return bisect_left(events, hi, key=_index)


def last_before(events: Sequence[Event], hi: float) -> Event | None:
    """The last of them with an index below `hi`."""
    n = how_many_before(events, hi)
    return events[n - 1] if n else None


class Spans:
    """Intervals of time, each with an owner: whether one of another owner overlaps a given interval."""

    def __init__(self, spans: Iterable[tuple[int, float, int]]) -> None:
        """`spans` are (first index, last index, owner)."""
        self._starts: list[int] = []
        self._ends: list[tuple[float, int | None, float]] = []
        """After each start: the latest end so far, whose it is, and the latest of anybody else's."""
        latest, others = -inf, -inf
        owner: int | None = None
        for start, end, who in sorted(spans):
            if who == owner:
                latest = max(latest, end)
            elif end > latest:
                latest, owner, others = end, who, latest
            else:
                others = max(others, end)
            self._starts.append(start)
            self._ends.append((latest, owner, others))

    def of_others(self, who: int, lo: int, hi: int) -> bool:
        """Whether an interval of anybody but `who` overlaps the one from `lo` to `hi`."""
        k = bisect_right(self._starts, hi) - 1
        if k < 0:
            return False
        latest, owner, others = self._ends[k]
        return (latest if owner != who else others) >= lo


K = TypeVar("K", int, tuple[int, int])


class Ended(Generic[K]):
    """What has ended so far, each under a key. Asked at indexes that only rise."""

    def __init__(self, ends: Iterable[tuple[float, K]]) -> None:
        self._coming: list[tuple[float, K]] = sorted(ends, reverse=True)
        self._keys: list[K] = []

    def before(self, i: int) -> Sequence[K]:
        """The keys of what ended before `i`, sorted."""
        while self._coming and self._coming[-1][0] < i:
            insort(self._keys, self._coming.pop()[1])
        return self._keys


BEHIND_ALL = (sys.maxsize, 0)
"""A place."""
Spot = tuple[tuple[int, int], int]
"""An entry's place, and its number: two entries may share a place by mistake (SO-1)."""


class Offers:
    """The entries that are AVAILABLE, in their order. Asked at indexes that only rise.

    A lane is a plain list: to take its first entry out moves the rest, which for the hundred thousand entries
    of a long backlog is a copy of some microseconds.
    """

    def __init__(self, entries: Iterable[EntryHistory]) -> None:
        self._coming = sorted(
            (
                (i, (e.place, e.number), state == "AVAILABLE", e)
                for e in entries
                if e.links
                for i, (state, _) in zip(e.state.when, e.state.values, strict=True)
            ),
            key=itemgetter(0),
        )
        self._played = 0
        self._lanes: dict[tuple[str, str | None], list[Spot]] = {}
        """By queue and key of the messages, and by queue alone (None)."""
        self._entries: dict[int, EntryHistory] = {}

    def selected(
        self,
        consumer: ConsumerHistory,
        at: int,
        before: Place = BEHIND_ALL,
        since: Place = (-1, -1),
    ) -> Iterator[EntryHistory]:
        """What `consumer` selects of what is available just after event `at`, with places from `since` to `before`."""
        self._play(at)
        wanted: Iterable[str | None] = (None,) if consumer.keys is None else consumer.keys
        lanes = [self._lanes.get((consumer.q, key), []) for key in wanted]
        parts = [_part(lane, (since, -1), (before, -1)) for lane in lanes]
        for _, number in merge(*parts) if len(parts) > 1 else parts[0] if parts else ():
            yield self._entries[number]

    def _play(self, at: int) -> None:
        while self._played < len(self._coming) and self._coming[self._played][0] <= at:
            _, spot, available, entry = self._coming[self._played]
            self._played += 1
            self._entries[entry.number] = entry
            for key in (None, entry.key):
                lane = self._lanes.setdefault((entry.q, key), [])
                k = bisect_left(lane, spot)
                there = k < len(lane) and lane[k] == spot
                if available and not there:
                    lane.insert(k, spot)
                elif there and not available:
                    del lane[k]


def _part(lane: list[Spot], lo: Spot, hi: Spot) -> Iterator[Spot]:
    for k in range(bisect_left(lane, lo), bisect_left(lane, hi)):
        yield lane[k]
