"""A history as columns: what the columnar evaluator keeps of each event, in arrays.

Names are numbered when first seen. A publish or an acquisition becomes one row of one table; ``pos`` is the event's
place among all. Of other events the checks need only to know whether they make the history irregular.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from seriatim_models.history.event import EXACT, GAP, SETTLES, Event, began
from seriatim_models.properties.blackbox.lifecycle import ACQUIRES, acquires, first
from seriatim_models.properties.blackbox.naming import (
    Holder,
    holder,
)
from seriatim_models.properties.blackbox.order import by_consumer, to_nobody, way
from seriatim_models.properties.blackbox.strict import may_refuse

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

UNKNOWN = -(2**63)
"""Stands in an array for a field that an event does not have."""

PUBLISHES = ("pos", "key", "t", "lo", "ok", "stream", "number", "queue", "refused")
ACQUISITIONS = (
    "pos",
    "key",
    "queue",
    "t",
    "lo",
    "stream",
    "number",
    "line",
    "redelivered",
)


# Any: a kind of number, or of a row
def array_of(raw: bytes, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the array of which ``tobytes`` made these bytes. Raises `ValueError` for any other bytes."""
    return np.frombuffer(raw, kind).copy()


class Table:
    """Rows of whole numbers, one after the other."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._rows = array("q")
        self.add = self._rows.extend
        """Add a row."""

    def __getitem__(self, name: str) -> Ints:
        whole = np.frombuffer(self._rows, dtype=np.int64)
        return whole[self._names.index(name) :: len(self._names)]

    def __len__(self) -> int:
        return len(self._rows) // len(self._names)

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return len(self._rows) * self._rows.itemsize


def distinct(codes: Ints) -> Ints:
    """Return the different ones of some numbers from 0, sorted, as `np.unique` does; of small ones in less time."""
    most = int(codes.max(initial=0)) + 1
    if most > 8 * len(codes) + 1000:
        return np.unique(codes)
    there = np.zeros(most, np.bool_)
    there[codes] = True
    return np.flatnonzero(there)


# Any: numbers of any kind
def among(some: npt.NDArray[Any], all_of: npt.NDArray[Any]) -> Bools:
    """Return of each number whether it is one of `some`, which are sorted."""
    if not len(some):
        return np.zeros(len(all_of), np.bool_)
    at = np.searchsorted(some, all_of)
    at[at == len(some)] = 0
    found: Bools = some[at] == all_of
    return found


def repeated(counts: Ints) -> Ints:
    """Return the places of some counts in order, each as often as its count says."""
    if counts.max(initial=0) < 2:
        return np.flatnonzero(counts)
    return np.repeat(np.arange(len(counts)), counts)


# Any: as above
def stable_order(keys: npt.NDArray[Any]) -> Ints:
    """Return the places of some numbers, none of them negative, in the order of the numbers, those of equal ones as
    they stand: as ``np.argsort(keys, kind="stable")``, in a third of the time.
    """
    bits = len(keys).bit_length()
    most = int(keys.max(initial=0))
    if most >> (63 - bits):  # hashes: their low bits make room, and rarely a difference is lost
        low = np.uint64((1 << bits) - 1)
        packed = (keys.astype(np.uint64) & ~low) | np.arange(len(keys), dtype=np.uint64)
        packed.sort()
        order: Ints = (packed & low).astype(np.int64)
        found = keys[order]
        return order if (found[1:] >= found[:-1]).all() else np.argsort(keys, kind="stable")
    small = (keys.astype(np.int64) << bits) | np.arange(len(keys))
    small.sort()
    return small & ((1 << bits) - 1)


N = TypeVar("N", bound=Hashable)


class Names(dict[N, int]):
    """Numbers for names, given out when a name is first asked for."""

    @staticmethod
    def of(names: Iterable[N]) -> Names[N]:
        """Return the table of names in the order in which they were first seen."""
        return Names({name: number for number, name in enumerate(names)})

    def __missing__(self, name: N) -> int:
        number = self[name] = len(self)
        return number


_level, _time = attrgetter("lvl"), attrgetter("t")


class Columns:
    """The columns of a history that is fed to it, block after block, in recording order."""

    def __init__(self) -> None:
        self.publishes = Table(PUBLISHES)
        self.acquisitions = Table(ACQUISITIONS)
        self.n = 0
        self.keys: Names[tuple[str, str]] = Names()
        self.holders: Names[Holder] = Names()
        self.streams: Names[tuple[str, str]] = Names()
        self.lines: Names[tuple[int, str, int, str]] = Names()
        self.queues: Names[str] = Names()
        self.clipped = 0
        """Acquisitions without publisher, sequence, flag or taker: P4 cannot test them."""
        self.irregular = ""
        """Why columns cannot clear this history; empty if they may."""
        self._met: set[int] = set()
        """Messages that were acquired, by number."""

    def feed(self, events: Sequence[Event]) -> None:  # noqa: C901, PLR0912  # one loop, since calls cost here
        """Add completed events, which follow those before."""
        acquired, published = self.acquisitions.add, self.publishes.add
        streams, lines, queues, keys = self.streams, self.lines, self.queues, self.keys
        if not EXACT.isdisjoint(map(_level, events)) or None in map(_time, events):
            self.irregular = self.irregular or "recorded inside, or without times"
        for pos, e in enumerate(events, self.n):
            ev = e.ev
            if ev in ACQUIRES:
                self._check_fields(e)
                if acquires(e):
                    by = self.holders[holder(e)]
                    known = e.pseq is not None and bool(e.pub)
                    stream = streams[e.q, e.pub] if known else -1
                    line = -1
                    fresh = first(e)
                    if fresh is None or not known or to_nobody(e):
                        self.clipped += fresh is not False
                    elif fresh:
                        line = lines[stream, way(e), by, e.ctag if by_consumer(e) else ""]
                    key = keys[e.q, e.m]
                    self._met.add(key)
                    acquired((
                        pos, key, queues[e.q], e.t or 0,
                        UNKNOWN if e.t_lo is None else e.t_lo, stream,
                        e.pseq if e.pseq is not None else UNKNOWN, line,
                        -1 if fresh is None else int(not fresh),
                    ))  # fmt: skip
            elif ev in SETTLES:
                if began(e):
                    self._check_fields(e)
                    if e.ms and not e.q:
                        self.irregular = self.irregular or "a settlement that spans queues"
                    elif not self._met.issuperset([keys.get((e.q, m), -1) for m in e.ms or ()]):
                        self.irregular = self.irregular or "settled before it was acquired"
            elif ev == "publish":
                self._check_fields(e)
                known = e.pseq is not None and bool(e.pub)
                published((
                    pos, keys[e.q, e.m], e.t or 0, (e.t or 0) if e.t_lo is None else e.t_lo,
                    int(e.ph == "ok"), streams[e.q, e.pub] if known else -1,
                    e.pseq if e.pseq is not None else UNKNOWN, queues[e.q], int(e.ph == "fail"),
                ))  # fmt: skip
            elif ev in (GAP, "return", "expire", "recover", "purge", "delete"):
                self.irregular = self.irregular or f"a {ev}"
            elif e.t_hi is not None:
                self.irregular = self.irregular or "an upper bound"
        self.n += len(events)

    def _check_fields(self, e: Event) -> None:
        """Note fields that only the row-based form understands."""
        if e.t_hi is not None or e.pos is not None or e.prio is not None:
            self.irregular = self.irregular or "an upper bound, a position or a priority"
        elif e.part is not None or e.key is not None or e.dead or e.nolocal:
            self.irregular = self.irregular or "parts of a queue, deaths or consumers that select"
        elif e.nolocal is None and e.ev == "deliver" and may_refuse(e, None):
            self.irregular = self.irregular or "a consumer of which no line is recorded"

    @property
    def nbytes(self) -> int:
        """Bytes in the tables; names come on top."""
        return self.publishes.nbytes + self.acquisitions.nbytes
