"""In which order the lines of a recording happened: one account of time for every reader.

A recorder of several threads takes its stamps and then waits for its turn to write, so that lines stand a moment later
than they happened. Of such a recorder the stamps count, and lines stamped alike are in no order unless they are of one
channel. One that always wrote in the order of its stamps also knows the order of those stamped alike. A stamp that
falls further than `WAITS` is of a clock that was set back: then the lines count.
Lines of two recorders stamped alike are in no order either. Of what has no order publishes come first, then other
commands, then what was handed out, then answers and ends: so that none explains less than the recording allows.
Whoever is inside the broker writes in the order of the effects, whatever the stamps are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import accumulate, chain, groupby
from operator import itemgetter
from typing import NamedTuple

import msgspec

from seriatim_models.history.complete import EXACT
from seriatim_models.history.event import Event

WAITS = 10_000_000
"""How long a line may wait to be written, in ns: threads wait for a lock, or their turn on a processor, not longer."""
MOST_WAITING = 1024
"""Lines that may be written while one waits."""

_ENDS = frozenset({"ch_close", "conn_close", "conn_drop", "cancel"})


def rank(event: Event) -> int:
    """Its place among events that are stamped alike and in no order."""
    if event.ev in ("deliver", "get") and event.ph not in ("invoke", "fail"):
        return 2
    if event.ph in ("ok", "fail", "info") or (not event.ph and event.ev in _ENDS):
        return 3
    return 0 if event.ev == "publish" else 1


def ranked(ranks: Sequence[int]) -> list[tuple[int, int]]:
    """By what events in order are merged with others that are stamped alike: the least rank from each on, so that none
    waits behind one of its own that comes late, and its own.
    """
    least = list(accumulate(reversed(ranks), min))[::-1]
    return list(zip(least, ranks, strict=True))


class _Line(NamedTuple):
    t: int
    event: Event


def _unordered(lines: Iterable[_Line]) -> Iterator[Event]:
    """Lines that are stamped alike: those of each channel as they stand, otherwise by their rank."""
    channels: dict[tuple[str, int | None, str], list[Event]] = {}
    for _, e in lines:
        channels.setdefault((e.conn, e.ch, e.proc if e.ch is None else ""), []).append(e)
    by_rank = (zip(ranked([rank(e) for e in of]), of, strict=True) for of in channels.values())
    return (e for _, e in merge(*by_rank, key=itemgetter(0)))


class StampOrder(msgspec.Struct):
    """Puts the lines of a recorder in the order of their stamps, given them as they stand."""

    waits: bool = False
    """A line was seen that had waited."""
    _newest: int | None = None
    _lines: list[_Line] = []

    def take(self, event: Event) -> Sequence[Event]:
        """Take in a line; the events that no later line precedes, as long as none waits longer than `WAITS`."""
        before: Sequence[Event] = ()
        t = event.t if event.t is not None else self._newest
        if t is None or event.lvl in EXACT:
            before, self._newest = self.rest(), None
            return [*before, event]
        if self._newest is None or t >= self._newest:
            self._newest = t
        elif t >= self._newest - WAITS:
            self.waits = True
        else:
            before, self._newest = self.rest(), t
        self._lines.append(_Line(t, event))
        if len(self._lines) > 2 * MOST_WAITING or self._lines[0].t < self._newest - 2 * WAITS:
            before = self._ready(self._newest - WAITS)
        return before

    def _ready(self, until: int) -> list[Event]:
        if self.waits:
            self._lines.sort(key=itemgetter(0))
        n = max(0, len(self._lines) - MOST_WAITING)
        while n < len(self._lines) and self._lines[n].t < until:
            n += 1
        ready, self._lines = self._lines[:n], self._lines[n:]
        if not self.waits:
            return [line.event for line in ready]
        alike = groupby(ready, itemgetter(0))
        return list(chain.from_iterable(_unordered(lines) for _, lines in alike))

    def rest(self) -> list[Event]:
        """The events that are left, if no line follows."""
        return [] if self._newest is None else self._ready(self._newest + 1)
