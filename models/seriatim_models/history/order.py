"""In which order the lines of a recording happened: one account of time for every reader.

A recorder of several threads takes its stamps and then waits for its turn to write, so that lines stand a moment later
than they happened. Of such a recorder the stamps count, and lines stamped alike are in no order unless they are of one
channel. One that always wrote in the order of its stamps also knows the order of those stamped alike. A stamp that
falls further than `WAITS` is of a clock that was set back: then the lines count.
Lines of two recorders stamped alike are in no order either. Of what has no order publishes come first, then other
commands, then what was handed out, then answers and ends: so that none explains less than the recording allows.
Whoever is inside the broker writes in the order of the effects, whatever the stamps are.
A line without a stamp, among others that have one, has its place from the one before. What it sends happened not before
that, what it was given or answered not after the next stamp: nothing compares the index of a line with a stamp.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import accumulate, chain, groupby
from operator import itemgetter
from typing import NamedTuple

import msgspec

from seriatim_models.history.event import EXACT, Event
from seriatim_models.history.faults import HistoryError

set_ = msgspec.structs.replace

WAITS = 10_000_000
"""How long a line may wait to be written, in ns: threads wait for a lock, or their turn on a processor, not longer."""
ANY_LATER = 2**62
"""When something happened at the latest, in ns, of which only the beginning of the time is known."""
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


def received(event: Event) -> bool:
    """Whether an event happened before it was written down: a delivery, or an answer."""
    return rank(event) > 1


def ranked(ranks: Sequence[int]) -> list[tuple[int, int]]:
    """By what events in order are merged with others that are stamped alike: the least rank from each on, so that none
    waits behind one of its own that comes late, and its own.
    """
    least = list(accumulate(reversed(ranks), min))[::-1]
    return list(zip(least, ranks, strict=True))


class RecordersOfFile(msgspec.Struct):
    """Whether the recorders of one file stand in the order of time, given its lines as they stand."""

    _newest: int | None = None
    _last: dict[tuple[str, str], int] = {}
    """By run and recorder the latest stamp."""

    def take(self, source: str, event: Event) -> None:
        """Take in a line of a file. Raises `HistoryError` if it is `out_of_order`."""
        if self.out_of_order(event):
            raise HistoryError(
                f"{source}: event {event.i} of recorder {event.rec or '(without a name)'} stands behind later ones of "
                "another recorder: several recorders in one file are read in the order of their lines, so sort these "
                "by time, or give each recorder a file"
            )

    def out_of_order(self, event: Event) -> bool:
        """Take in a line; whether it stands behind what another recorder saw later, by more than a line may wait. A
        clock that is set back falls for the recorder itself.
        """
        if event.t is None:
            return False
        by = event.run, event.rec
        own = self._last.get(by)
        self._last[by] = event.t
        behind = self._newest is not None and event.t < self._newest - WAITS
        if behind and (own is None or event.t >= own):
            return len(self._last) > 1
        if behind or self._newest is None or event.t > self._newest:
            self._newest = event.t
        return False


class _Line(NamedTuple):
    t: int
    event: Event

    def by(self, t: int, until: int | None = None) -> _Line:
        """With a stamp, if it has none yet: it happened by then, or by `until`."""
        if self.event.t is not None:
            return self
        return self._replace(event=set_(self.event, t=t, t_hi=until))


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
    _unstamped: bool = False
    """A line waits whose event has no stamp yet."""
    _lines: list[_Line] = []
    _leading: list[Event] = []
    """Events before the first stamp, up to `MOST_WAITING`; where there are more there may be none."""
    _stampless: bool = False
    """More came."""

    def take(self, event: Event) -> Sequence[Event]:
        """Take in a line; the events that no later line precedes, as long as none waits longer than `WAITS`."""
        before: Sequence[Event] = ()
        t = event.t if event.t is not None else self._newest
        if t is None and event.lvl not in EXACT:
            return self._lead(event)
        if t is None or event.lvl in EXACT:
            before, self._newest = self.rest(), None
            return [*before, event]
        if self._leading:
            # What was sent before the first stamp came at any time before.
            leading = [set_(e, t=t if received(e) else 0) for e in self._leading]
            self._leading = []
            return [*leading, *self.take(event)]
        if event.t is None and not received(event):
            event = set_(event, t=t)
        if event.t is not None:
            self._stamp(event.t)
        if self._newest is None or t >= self._newest:
            self._newest = t
        elif t >= self._newest - WAITS:
            self.waits = True
        else:
            before, self._newest = self.rest(), t
        self._lines.append(_Line(t, event))
        self._unstamped = self._unstamped or event.t is None
        if len(self._lines) > 2 * MOST_WAITING or self._lines[0].t < self._newest - 2 * WAITS:
            before = self._ready(self._newest - WAITS)
        return before

    def _lead(self, event: Event) -> Sequence[Event]:
        """Take in a line before the first stamp."""
        if self._stampless or len(self._leading) == MOST_WAITING:
            leading, self._leading, self._stampless = self._leading, [], True
            return [*leading, event]
        self._leading.append(event)
        return ()

    def _stamp(self, t: int, until: int | None = None) -> None:
        """What waits without a stamp happened by the one of a line that follows, or by `until` if none does."""
        if self._unstamped:
            self._lines = [line.by(t, until) for line in self._lines]
            self._unstamped = False

    def _ready(self, until: int) -> list[Event]:
        if len(self._lines) > 2 * MOST_WAITING and self._newest is not None:
            self._stamp(self._newest, ANY_LATER)
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
        if self._newest is None:
            leading, self._leading = self._leading, []
            return leading
        self._stamp(self._newest, ANY_LATER)
        return self._ready(self._newest + 1)
