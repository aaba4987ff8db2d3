"""A history as columns: what the fast form keeps of each event, in arrays.

Names are numbered when first seen. A publish or an acquisition becomes one row of one table; ``pos`` is the event's
place among all. Of other events the screens need only to know whether they make the history odd.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from seriatim_models.history.complete import EXACT, SETTLES
from seriatim_models.history.event import GAP, Event
from seriatim_models.properties.blackbox.lifecycle import ACQUIRES, acquires, began, holder

Ints = npt.NDArray[np.int64]

UNKNOWN = -(2**63)
"""Stands in an array for a field that an event does not have."""

PUBLISHES = ("pos", "key", "t", "lo", "ok", "stream", "number", "lane", "refused")
ACQUISITIONS = (
    "pos",
    "key",
    "lane",
    "t",
    "lo",
    "stream",
    "number",
    "line",
    "redelivered",
)


class Table:
    """Rows of whole numbers, kept by column."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.columns = {name: array("q") for name in names}

    def __getitem__(self, name: str) -> Ints:
        return np.frombuffer(self.columns[name], dtype=np.int64)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @property
    def nbytes(self) -> int:
        return sum(len(c) * c.itemsize for c in self.columns.values())


class Names:
    """Numbers for names."""

    def __init__(self) -> None:
        self.code: dict[str, int] = {}

    def __call__(self, name: str) -> int:
        return self.code.setdefault(name, len(self.code))


class Columns:
    """Feed it completed events in recording order, as often as wanted."""

    def __init__(self) -> None:
        self.publishes = Table(PUBLISHES)
        self.acquisitions = Table(ACQUISITIONS)
        self.n = 0
        self.keys, self.holders, self.streams = Names(), Names(), Names()
        self.lines, self.lanes = Names(), Names()
        self.clipped = 0
        """Acquisitions without publisher, sequence or flag: P4 cannot test them."""
        self.odd = ""
        """Why the fast form does not judge this history; empty if it does."""
        self._holder: dict[tuple[str, int | None, int | None, str, str], int] = {}

    def _key(self, q: str, m: str) -> int:
        return self.keys(f"{q}\n{m}")

    def _by(self, e: Event) -> int:
        name = (
            (e.conn, e.ch, e.gen, e.ctag, e.proc) if e.ch is None else (e.conn, e.ch, e.gen, "", "")
        )
        code = self._holder.get(name)
        if code is None:
            code = self._holder[name] = self.holders(holder(e))
        return code

    def feed(self, events: Iterable[Event]) -> None:
        """Take in more events."""
        acq = [c.append for c in self.acquisitions.columns.values()]
        put = [c.append for c in self.publishes.columns.values()]
        pos = self.n
        streams, lines, lanes = self.streams, self.lines, self.lanes
        for e in events:
            ev = e.ev
            if e.lvl in EXACT or e.t is None:
                self.odd = self.odd or "recorded inside, or without times"
            if ev in ACQUIRES:
                if acquires(e):
                    self._strange(e)
                    by = self._by(e)
                    known = e.pseq is not None and bool(e.pub)
                    stream = streams(f"{e.q}\n{e.pub}") if known else -1
                    line = -1
                    if e.redelivered is None or not known:
                        self.clipped += not e.redelivered
                    elif not e.redelivered:
                        line = lines.code.setdefault(f"{stream} {by}", len(lines.code))
                    row = (
                        pos, self._key(e.q, e.m), lanes(e.q), e.t or 0,
                        UNKNOWN if e.t_lo is None else e.t_lo, stream,
                        e.pseq if e.pseq is not None else UNKNOWN, line,
                        -1 if e.redelivered is None else int(e.redelivered),
                    )  # fmt: skip
                    for append, value in zip(acq, row, strict=True):
                        append(value)
            elif ev in SETTLES:
                if began(e):
                    self._strange(e)
                    if e.ms and not e.q:
                        self.odd = self.odd or "a settlement that spans queues"
            elif ev == "publish":
                self._strange(e)
                refused = e.ph == "fail"
                known = e.pseq is not None and bool(e.pub)
                sent = (
                    pos, self._key(e.q, e.m), e.t or 0, (e.t or 0) if e.t_lo is None else e.t_lo, int(e.ph == "ok"),
                    streams(f"{e.q}\n{e.pub}") if known else -1,
                    e.pseq if e.pseq is not None else UNKNOWN, lanes(e.q), int(refused),
                )  # fmt: skip
                for append, value in zip(put, sent, strict=True):
                    append(value)
            else:
                if ev in (GAP, "return", "expire", "recover"):
                    self.odd = self.odd or f"a {ev}"
                elif e.t_hi is not None:
                    self.odd = self.odd or "an upper bound"
            pos += 1
        self.n = pos

    def _strange(self, e: Event) -> None:
        """Fields with which the readable form has to judge."""
        if e.t_hi is not None or e.pos is not None or e.prio is not None:
            self.odd = self.odd or "an upper bound, a position or a priority"

    @property
    def nbytes(self) -> int:
        """Bytes in the tables; names come on top."""
        return self.publishes.nbytes + self.acquisitions.nbytes
