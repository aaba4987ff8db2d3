"""P22: the priority of messages, by the intervals of P5.

A message is definitely available from the confirm of its publish to the earliest instant of its first acquisition, or
from the latest instant at which it was back to its next one; see `strict`. If a message of lower priority was acquired
within that time, whatever the instant was, the lower one was taken although the higher one was there.

Only of queues whose declaration says how many priorities they have (``args={"x-max-priority": n}``): elsewhere a
message's priority may mean nothing. What is above n counts as n. A message without a recorded priority is not judged,
nor is one of a group as the one that was passed over, for its group may have been with somebody else, nor a queue whose
messages may die by themselves, and come back as new ones.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Mapping
from typing import ClassVar

import msgspec

from seriatim_models.history.event import Event
from seriatim_models.properties.base import CaseEvents, ProfileValue
from seriatim_models.properties.blackbox.aggregation import AggregationState
from seriatim_models.properties.blackbox.lifecycle import LEVELS, may_drop
from seriatim_models.properties.blackbox.naming import each_once, holder
from seriatim_models.properties.blackbox.strict import (
    NEVER,
    Available,
    Known,
    Lane,
    OrderPass,
    Place,
    Row,
    Strict,
    StrictOrder,
    Time,
    WaitingRows,
    may_refuse,
    place,
)


class RankedQueues(Strict):
    """The aggregation state of P22."""

    declared: dict[str, Event] = msgspec.field(default_factory=dict)
    """Queues that have priorities, each with its declaration."""


class _RowsByRank(WaitingRows):
    """The waiting acquisitions of one queue, by partition and priority, and in these by their earliest instant.

    Each is looked at while it can still become a violation, or a case, and no longer.
    """

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self._regular: _Ranks = {}
        self._untested: _Ranks = {}
        self._indexed = False

    def add(self, row: Row) -> None:
        self.rows.append(row)
        if self._indexed:
            self._index(row)

    def _index(self, row: Row) -> None:
        for ranks, waits in ((self._regular, not row.violates), (self._untested, not row.tested)):
            if waits:
                insort(
                    ranks.setdefault((row.line.part, row.line.prio), []), (row.lo, row.serial, row)
                )

    def _index_all(self) -> None:
        """Index the rows when they are first asked for: of a queue without priorities that is never."""
        if not self._indexed:
            self._indexed = True
            for row in self.rows:
                self._index(row)

    def oldest(self) -> Row:
        row = self.rows.pop(0)
        for ranks in (self._regular, self._untested) if self._indexed else ():
            rows = ranks.get((row.line.part, row.line.prio), [])
            at = bisect_left(rows, (row.lo, row.serial), key=lambda r: r[:2])
            if at < len(rows) and rows[at][2] is row:
                del rows[at]
        return row

    def passed(self, of: Place, most: int, start: Time, end: Time) -> list[Row]:
        """The acquisitions of lower priority that certainly happened between two instants, each once."""
        assert of.line.prio is not None
        self._index_all()
        mine = min(of.line.prio, most)
        return _taken_out(self._regular, of, start, end, lambda prio: min(prio, most) < mine)

    def compared(self, of: Place, most: int, start: Time, end: Time) -> list[Row]:
        """Those of another priority, each once."""
        assert of.line.prio is not None
        self._index_all()
        mine = min(of.line.prio, most)
        return _taken_out(self._untested, of, start, end, lambda prio: min(prio, most) != mine)


_Ranks = dict[tuple[int | None, int | None], list[tuple[Time, int, Row]]]
"""Acquisitions by partition and priority, each with its earliest instant and its number."""


def _taken_out(
    ranks: _Ranks, of: Place, start: Time, end: Time, wanted: Callable[[int], bool]
) -> list[Row]:
    """Take out the acquisitions of some priorities that certainly happened between two instants, by consumers that do
    not refuse what stands at a place.
    """
    out: list[Row] = []
    for (part, prio), rows in ranks.items():
        if part == of.line.part and prio is not None and wanted(prio):
            at = bisect_right(rows, start, key=lambda r: r[0])
            left = []
            for each in rows[at:]:
                row = each[2]
                if row.hi < end and not may_refuse(row.event, of.publish):
                    out.append(row)
                else:
                    left.append(each)
            rows[at:] = left
    return out


class _RankPass(OrderPass):
    """One pass that judges by priority what P5 judges by place."""

    state: RankedQueues
    rows_of = _RowsByRank

    def _take(self, event: Event) -> None:
        super()._take(event)
        if (
            event.ev == "declare"
            and event.ph != "fail"
            and isinstance(event.args.get(LEVELS), int)
            and not may_drop(event)
        ):
            self.state.declared.setdefault(event.q, event)

    def _ended(self, q: str, a: Available, known: Known | None, until: Event | None) -> None:
        declared = self.state.declared.get(q)
        if declared is None:
            return
        of = place(known, until)
        prio = of.line.prio
        if prio is None or of.line.key is not None:
            return
        lane = self._lane(q)
        order = self.order(lane)
        assert isinstance(order, _RowsByRank)
        most = declared.args[LEVELS]
        start = of.confirmed if a.first else a.start
        for row in order.compared(of, most, start, a.end):
            row.tested = True
        passed = order.passed(of, most, start, a.end)
        for row in passed:
            row.violates = True
        lane.violations += len(passed)
        if passed:
            row = min(passed, key=lambda r: r.serial)
            end = "the end of the recording" if a.end == NEVER else a.end
            why = (
                f"{a.m}, of priority {prio}, was available from {start} to {end}; {holder(row.event)} was given "
                f"{row.m}, of priority {row.line.prio}, between {row.lo} and {row.hi} (event {row.event.i})"
            )
            shown = [declared, of.publish, of.confirm, row.publish, *a.since, row.event, a.until]
            self.state.blame(why, each_once(shown))


class MessagePriority(StrictOrder):
    """P22. A case is an acquisition with both bounds known while a message of another priority was available.

    Kept from one chunk to the next: what is published or held and not settled, and the window of P5.
    """

    id = "P22"
    sentence = "No consumer is given a message while one of higher priority is available."
    source = "https://www.rabbitmq.com/docs/priority; AMQP 0-9-1 specification, basic.publish, field priority"
    case = "a queue declared with priorities (`x-max-priority`), and a delivery beside an available message of another"
    summary_type = AggregationState[RankedQueues]
    keeps = "as P5"
    time = "O(n k), k acquisitions that an availability covers"
    case_events = CaseEvents(frozenset({"declare"}), lambda e: LEVELS in e.args, ("args",))
    options: ClassVar[frozenset[str]] = frozenset()
    promised_in: ClassVar[Mapping[str, str]] = {
        "rabbit-classic": "https://www.rabbitmq.com/docs/priority: of a queue declared with x-max-priority",
    }
    silent_elsewhere = "messages have no priorities, or nothing certain is promised of them"

    returned = True

    def __init__(self) -> None:
        """It has one form: a requeued message has its priority still."""

    @classmethod
    def from_options(cls, options: Mapping[str, ProfileValue]) -> MessagePriority:
        return cls()

    def judging(self, state: Strict) -> OrderPass:
        assert isinstance(state, RankedQueues)
        return _RankPass(state, self.returned)

    def judged_lanes(self, state: Strict) -> list[Lane]:
        assert isinstance(state, RankedQueues)
        return [lane for q, lane in state.lanes.items() if q in state.declared]
