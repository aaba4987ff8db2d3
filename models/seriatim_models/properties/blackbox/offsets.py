"""P15: a consumer of a log reads it in order, misses nothing, and does not get back what it has done with."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable

import msgspec

from seriatim_models.history.complete import EXACT
from seriatim_models.history.event import GAP, Event
from seriatim_models.properties.base import CaseEvents, Finding
from seriatim_models.properties.blackbox.aggregation import AggregationState, SequentialProperty
from seriatim_models.properties.blackbox.channels import CaseCounts
from seriatim_models.properties.blackbox.lifecycle import (
    NOBODY,
    ConsumerKey,
    Holder,
    began,
    ends,
    holder,
)


class ReaderState(msgspec.Struct, array_like=True):
    """One group or channel of consumers on one partition."""

    last: Event | None = None
    """Its latest delivery in this session; None after a seek or at the start of a session."""
    committed: Event | None = None
    """The commit of the highest position."""
    failed: bool = False
    """It gave something back since `last`, so that going back is its own wish."""
    seeks: bool = False
    by: Holder | None = None


class PartitionState(msgspec.Struct):
    """One partition: where messages are known to be, and how often a message may be tried."""

    positions: list[int] = []
    readers: dict[ConsumerKey, ReaderState] = {}
    attempts: int | None = None


def reader_key(event: Event) -> ConsumerKey:
    """Who reads: the group or channel, or else the holder."""
    return ConsumerKey(NOBODY, event.ctag) if event.ctag else ConsumerKey(holder(event), "")


class Logs(msgspec.Struct):
    """The aggregation state of P15."""

    topics: dict[tuple[str, int | None], PartitionState] = {}
    tally: CaseCounts = msgspec.field(default_factory=CaseCounts)


POSITIONS_KEPT = (
    65_536  # positions of a partition; whoever lags further is not tested for gaps there
)


class LogReader(SequentialProperty[Logs]):
    """P15. A case is a delivery with a position, to a reader (`ctag`: the group or channel; else the holder).

    Violations: a position at or below one committed before, without a `seek`; a step back within a session, if
    nothing was released; a position left out, of which a publish is known (inside the broker: any); a new session
    that begins behind the commit with such a position left out; more attempts than the `declare` or `consume` allows
    (``args={"max_attempts": n}``). A position left out of which nothing is known is untestable: logs have holes
    (compaction, transaction markers).
    """

    id = "P15"
    sentence = (
        "A reader of a log gets every position in order, none again that it has committed, "
        "and each a bounded number of times."
    )
    source = (
        "Building a queue, part 4; https://kafka.apache.org/documentation/#semantics (position, commit); "
        "https://kafka.apache.org/documentation/#intro_consumers (order within a partition)"
    )
    kind = "safety"
    scope = "queue"
    reads = frozenset(
        {"publish", "deliver", "get", "commit", "seek", "nack", "reject", "declare", "consume"}
        | {"ch_close", "conn_close", "conn_drop", "cancel", GAP}
    )
    summary_type = AggregationState[Logs]
    keeps = (
        "each reader's last position and commit; the latest 65,536 known positions of a partition"
    )
    time = "O(n log n)"
    case_events = CaseEvents(reads, lambda e: e.pos is not None)

    def start(self) -> Logs:
        return Logs()

    def feed(self, state: Logs, events: Iterable[Event]) -> None:
        for event in events:
            if event.ev == GAP or (not event.q and event.ev.startswith(("ch_", "conn_"))):
                for topic in state.topics.values():
                    for reader in topic.readers.values():
                        self._end(reader, event)
                continue
            if not event.q:
                continue
            topic = state.topics.setdefault((event.q, event.part), PartitionState())
            if event.ev in ("declare", "consume"):
                attempts = event.args.get("max_attempts")
                if isinstance(attempts, int):
                    topic.attempts = attempts
            if event.ev == "publish":
                if event.pos is not None and event.ph in ("", "ok"):
                    insort(topic.positions, event.pos)
                    del topic.positions[:-POSITIONS_KEPT]
                continue
            if event.ev == "declare":
                continue
            reader = topic.readers.setdefault(reader_key(event), ReaderState())
            self._read(state.tally, topic, reader, event)

    def _end(self, reader: ReaderState, event: Event) -> None:
        if event.ev == GAP:
            reader.last = reader.committed = None
            reader.seeks = True
        elif reader.by is not None and ends(event, reader.by):
            reader.last = None

    def _read(
        self, tally: CaseCounts, topic: PartitionState, reader: ReaderState, event: Event
    ) -> None:
        if event.ev == "commit":
            if began(event) and event.pos is not None:
                known = reader.committed
                if known is None or known.pos is None or known.pos < event.pos:
                    reader.committed = event
        elif event.ev == "seek":
            reader.last, reader.committed, reader.seeks = None, None, True
        elif event.ev in ("nack", "reject"):
            reader.failed = True
        elif event.ev in ("consume", "cancel"):
            reader.last = None
        elif event.pos is not None and event.ph not in ("invoke", "fail"):
            self._deliver(tally, topic, reader, event)

    def _deliver(
        self, tally: CaseCounts, topic: PartitionState, reader: ReaderState, event: Event
    ) -> None:
        pos = event.pos
        assert pos is not None
        last, committed = reader.last, reader.committed
        if last is not None and holder(last) != holder(event):
            last = None  # the group's next member
        reader.last, reader.by = event, holder(event)
        failed, reader.failed = reader.failed, False
        seeks, reader.seeks = reader.seeks, False
        who = event.ctag or reader.by
        if topic.attempts is not None and (event.attempt or 0) > topic.attempts:
            tally.tested += 1
            why = (
                f"{who} was given position {pos} at event {event.i} in attempt {event.attempt}; "
                f"allowed are {topic.attempts}"
            )
            tally.report_violation(why, [event])
        elif committed is not None and committed.pos is not None and pos <= committed.pos:
            tally.tested += 1
            why = (
                f"{who} was given position {pos} at event {event.i}, although it had committed {committed.pos} "
                f"at event {committed.i}"
            )
            tally.report_violation(why, [committed, event])
        elif last is not None and last.pos is not None:
            self._after(tally, topic, last, event, failed)
        elif committed is not None and committed.pos is not None and not seeks:
            self._after(tally, topic, committed, event, failed)
        else:
            tally.untestable += 1

    def _after(
        self, tally: CaseCounts, topic: PartitionState, before: Event, event: Event, failed: bool
    ) -> None:
        assert event.pos is not None
        assert before.pos is not None
        who = event.ctag or holder(event)
        if event.pos <= before.pos:
            again = event.pos == before.pos and (event.attempt or 0) > (before.attempt or 0)
            tally.tested += 1
            if not failed and not again:
                why = f"{who} went back from position {before.pos} (event {before.i}) to {event.pos} at event {event.i}"
                tally.report_violation(why, [before, event])
            return
        between = event.pos - before.pos - 1
        at = bisect_right(topic.positions, before.pos)
        missed = topic.positions[at] if at < len(topic.positions) else event.pos
        if between and (missed < event.pos or event.lvl in EXACT):
            first = missed if missed < event.pos else before.pos + 1
            tally.tested += 1
            why = (
                f"{who} went from position {before.pos} (event {before.i}) to {event.pos} at event {event.i} and left "
                f"out {first}"
            )
            tally.report_violation(why, [before, event])
        elif between:
            tally.untestable += 1
        else:
            tally.tested += 1

    def close(self, state: Logs) -> Finding:
        tally = state.tally
        return Finding.of(
            self.id,
            tally.tested,
            [(tally.why, tally.witness)] if tally.violations else [],
            n_untestable=tally.untestable,
            n_violations=tally.violations,
        )
