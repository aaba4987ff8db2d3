"""A witness as intervals: who had what, and what was there, from when to when.

A finding's witness is a handful of events; each says something about a time:

- a publish begins the time in which its message is *available*; the earliest instant of the message's next
  acquisition ends it;
- an acquisition happened at some instant from its lower bound to when it was recorded;
- from then on its consumer *holds* the message, until the settlement or the end that the witness shows;
- a message that was released is *back* from that command to the earliest instant of its next acquisition.

Rows are plain data, for whoever draws; `drawn` draws them with characters.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from seriatim_models.history.event import SETTLES, Event
from seriatim_models.properties.base import Finding
from seriatim_models.properties.blackbox.lifecycle import (
    acquires,
)
from seriatim_models.properties.blackbox.naming import (
    holder,
)
from seriatim_models.properties.blackbox.strict import when


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """One bar. Times are those of the history (nanoseconds, or steps under the explorer)."""

    lane: str
    """A message, or a consumer."""
    lo: int | None
    """None: since before anything that the witness shows."""
    hi: int | None
    """None: to the end of the history, or nobody knows."""
    label: str
    event: int
    """Index of recording of the event that the bar is about."""
    convicts: bool
    """Whether the bar is one of the two or more that contradict each other."""


def _earliest(e: Event) -> int:
    return e.t_lo if e.t_lo is not None else when(e)


def intervals(finding: Finding) -> list[Interval]:
    """The bars of a finding's witness, in the order of their events. Empty if it has none."""
    events = sorted(finding.witness, key=lambda e: (when(e), e.i))
    rows: list[Interval] = []
    for n, e in enumerate(events):
        later = events[n + 1 :]
        if acquires(e):
            who = e.ctag or str(holder(e))
            rows.append(_row(who, e.t_lo, when(e), f"{who} takes {e.m}", e))
            end = next(
                (
                    x
                    for x in later
                    if x.ev in SETTLES and holder(x) == holder(e) and e.m in (x.ms or ())
                ),
                None,
            )
            label = f"{who} holds {e.m}"
            rows.append(_row(e.m, when(e), when(end) if end else None, label, e))
        elif e.ev == "publish" and not any(x.ev == "publish" and x.m == e.m for x in events[:n]):
            taken = next((x for x in later if acquires(x) and x.m == e.m), None)
            end_at = None if taken is None else _earliest(taken)
            rows.append(_row(e.m, when(e), end_at, f"{e.m} is available", e))
        elif e.ev in SETTLES and e.ev != "ack" and e.requeue is not False:
            for m in e.ms or ():
                taken = next((x for x in later if acquires(x) and x.m == m), None)
                if taken is not None:
                    rows.append(_row(m, when(e), _earliest(taken), f"{m} is back", e))
    return _marked(rows)


def _row(lane: str, lo: int | None, hi: int | None, label: str, e: Event) -> Interval:
    if lo is not None and hi is not None:
        lo = min(lo, hi)
    return Interval(lane=lane, lo=lo, hi=hi, label=label, event=e.i, convicts=False)


def _marked(rows: Sequence[Interval]) -> list[Interval]:
    """Marks bars of one lane that overlap, and takings that lie within the time in which another message was there."""
    contradicting: set[int] = set()
    for a, x in enumerate(rows):
        for b, y in enumerate(rows):
            if a == b or x.lo is None or y.lo is None:
                continue
            there = " is available" in y.label or " is back" in y.label
            through = (
                " takes " in x.label
                and there
                and not x.label.endswith(f" {y.lane}")
                and y.lo <= x.lo
                and (y.hi is None or (x.hi is not None and x.hi <= y.hi))
            )
            both_hold = (
                " holds " in x.label
                and " holds " in y.label
                and x.lane == y.lane
                and x.lo <= y.lo
                and (x.hi is None or y.lo < x.hi)
            )
            if through or both_hold:
                contradicting |= {a, b}
    return [msgspec.structs.replace(row, convicts=n in contradicting) for n, row in enumerate(rows)]


def drawn(rows: Sequence[Interval], width: int = 60) -> str:
    """The bars, a line each: ``=`` where a bar contradicts another and ``-`` where not; an open end is an arrow."""
    if not rows:
        return ""
    known = [t for row in rows for t in (row.lo, row.hi) if t is not None]
    first, last = min(known), max(known)
    scale = (width - 1) / max(1, last - first)
    lines = []
    for row in rows:
        lo = 0 if row.lo is None else round((row.lo - first) * scale)
        hi = width - 1 if row.hi is None else round((row.hi - first) * scale)
        bar = ("=" if row.convicts else "-") * (hi - lo + 1)
        if row.lo is None:
            bar = "<" + bar[1:]
        if row.hi is None:
            bar = bar[:-1] + ">"
        lines.append(f"{' ' * lo + bar:<{width}}  {row.label} (event {row.event})")
    return "\n".join(lines)
