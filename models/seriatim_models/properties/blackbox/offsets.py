"""P15: a consumer of a log reads it in order, misses nothing, and does not get back what it has done with."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping

import msgspec

from seriatim_models.history.complete import EXACT
from seriatim_models.history.event import GAP, Event
from seriatim_models.properties.base import CaseEvents, Finding, ProfileValue
from seriatim_models.properties.blackbox.aggregation import AggregationState, SequentialProperty
from seriatim_models.properties.blackbox.channels import CaseCounts
from seriatim_models.properties.blackbox.lifecycle import (
    acquires,
    holders,
)
from seriatim_models.properties.blackbox.naming import (
    ENDS,
    NOBODY,
    ConsumerKey,
    Holder,
    holder,
)


class ReaderState(msgspec.Struct, array_like=True):
    """One group or channel of consumers on one partition."""

    sessions: dict[Holder, Event] = {}
    """The latest delivery of each member's session; none after a seek or at the start of a session."""
    committed: Event | None = None
    """The commit of the highest position, of those that are known to have taken effect."""
    asked: Event | None = None
    """That of all that were asked for: the reader may go on from there."""
    failed: bool = False
    """It gave something back since its latest delivery, so that going back is its own wish."""
    seeks: bool = False


class PartitionState(msgspec.Struct):
    """One partition: where messages are known to be, and how often a message may be tried."""

    positions: list[int] = []
    publishes: dict[int, Event] = {}
    """By position, the latest `PUBLISHES_KEPT` publishes: to show one that was left out."""
    readers: dict[ConsumerKey, ReaderState] = {}
    attempts: int | None = None
    declared: Event | None = None
    """By which `attempts` is known."""


def _further(known: Event | None, commit: Event) -> Event:
    """The commit of the higher position."""
    if known is None or (known.pos or 0) < (commit.pos or 0):
        return commit
    return known


def _done(commit: Event) -> int:
    """The highest position that a commit certainly says is done with."""
    return (commit.pos or 0) - (commit.args.get("committed") != "last")


def _next(commit: Event) -> int:
    """The highest position at which a reader may go on after a commit."""
    return (commit.pos or 0) + (commit.args.get("committed") != "next")


def _meaning(commit: Event) -> str:
    return {"last": " as done", "next": " as the next to read"}.get(
        str(commit.args.get("committed")), ""
    )


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


PUBLISHES_KEPT = (
    1024  # publishes of a partition; a position is mostly left out soon after it was written
)


class LogReader(SequentialProperty[Logs]):
    """P15. A case is a delivery with a position, to a reader (`ctag`: the group or channel; else the holder).

    A `commit` means what ``args={"committed": ...}`` says, or the header for all of a recording
    (``"params": {"committed": ...}``): ``last`` is the last position that the reader is done with, ``next`` the next
    that it reads (Kafka). Where neither is declared only what both meanings forbid is a violation.

    Violations: a position that was committed before, without a `seek`; a step back within a session, if
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
    rests_on = ""
    kind = "safety"
    case = "a reader that is given one position of a partition after another"
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

    options = frozenset({"committed"})

    def __init__(self, committed: str | None = None) -> None:
        """`committed`: what a commit means of which the recording does not say it."""
        self.committed = committed

    @classmethod
    def from_options(cls, options: Mapping[str, ProfileValue]) -> LogReader:
        committed = options.get("committed")
        if committed in ("last", "next", None):
            return cls(committed=None if committed is None else str(committed))
        raise ValueError(f"committed: {committed!r} is neither 'last' nor 'next'")

    def start(self) -> Logs:
        return Logs()

    def feed(self, state: Logs, events: Iterable[Event]) -> None:
        for event in events:
            if event.ev == GAP or event.ev in ENDS:
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
                    topic.attempts, topic.declared = attempts, event
            if event.ev == "publish":
                if event.pos is not None and event.ph in ("", "ok"):
                    insort(topic.positions, event.pos)
                    del topic.positions[:-POSITIONS_KEPT]
                    topic.publishes[event.pos] = event
                    if len(topic.publishes) > PUBLISHES_KEPT:
                        del topic.publishes[next(iter(topic.publishes))]
                continue
            if event.ev == "declare":
                continue
            reader = topic.readers.setdefault(reader_key(event), ReaderState())
            self._read(state.tally, topic, reader, event)

    def _end(self, reader: ReaderState, event: Event) -> None:
        if event.ev == GAP:
            reader.sessions.clear()
            reader.committed = reader.asked = None
            reader.seeks = True
        else:
            for by in holders(event, reader.sessions):
                del reader.sessions[by]

    def _read(
        self, tally: CaseCounts, topic: PartitionState, reader: ReaderState, event: Event
    ) -> None:
        if event.ev == "commit":
            if event.pos is None or event.ph == "fail":
                return
            if self.committed is not None and "committed" not in event.args:
                args = {**event.args, "committed": self.committed}
                event = msgspec.structs.replace(event, args=args)
            reader.asked = _further(reader.asked, event)
            if event.ph in ("", "ok"):
                reader.committed = _further(reader.committed, event)
        elif event.ev == "seek":
            reader.sessions.clear()
            reader.committed, reader.asked, reader.seeks = None, None, True
        elif event.ev in ("nack", "reject"):
            reader.failed = True
        elif event.ev in ("consume", "cancel"):
            reader.sessions.pop(holder(event), None)
        elif event.pos is not None and acquires(event):
            self._deliver(tally, topic, reader, event)

    def _deliver(
        self, tally: CaseCounts, topic: PartitionState, reader: ReaderState, event: Event
    ) -> None:
        pos = event.pos
        assert pos is not None
        by, committed, asked = holder(event), reader.committed, reader.asked
        last = reader.sessions.get(by)
        reader.sessions[by] = event
        failed, reader.failed = reader.failed, False
        seeks, reader.seeks = reader.seeks, False
        who = event.ctag or by
        # A member that goes on reading does not know what the next owner of its partition has committed.
        goes_on = last is not None and last.pos is not None and pos > last.pos
        bound = committed is not None and not (goes_on and holder(committed) != by)
        if topic.attempts is not None and (event.attempt or 0) > topic.attempts:
            tally.tested += 1
            why = (
                f"{who} was given position {pos} at event {event.i} in attempt {event.attempt}; "
                f"allowed are {topic.attempts}"
            )
            declared = [topic.declared] if topic.declared else []
            tally.report_violation(why, [*declared, event])
        elif bound and committed is not None and pos <= _done(committed):
            tally.tested += 1
            why = (
                f"{who} was given position {pos} at event {event.i}, although it had committed {committed.pos}"
                f"{_meaning(committed)} at event {committed.i}"
            )
            tally.report_violation(why, [committed, event])
        elif last is not None and last.pos is not None:
            self._after(tally, topic, last, last.pos, event, failed)
        elif asked is not None and not seeks and pos >= _next(asked):
            self._after(tally, topic, asked, _next(asked) - 1, event, failed)
        else:
            tally.untestable += 1

    def _after(
        self,
        tally: CaseCounts,
        topic: PartitionState,
        before: Event,
        done: int,
        event: Event,
        failed: bool,
    ) -> None:
        """Judge a delivery by what was `done` before it, the position of a delivery or of a commit."""
        assert event.pos is not None
        who = event.ctag or holder(event)
        if event.pos <= done:
            again = event.pos == done and (event.attempt or 0) > (before.attempt or 0)
            tally.tested += 1
            if not failed and not again:
                why = f"{who} went back from position {done} (event {before.i}) to {event.pos} at event {event.i}"
                tally.report_violation(why, [before, event])
            return
        between = event.pos - done - 1
        at = bisect_right(topic.positions, done)
        missed = topic.positions[at] if at < len(topic.positions) else event.pos
        if between and (missed < event.pos or event.lvl in EXACT):
            first = missed if missed < event.pos else done + 1
            tally.tested += 1
            why = (
                f"{who} went from position {done} (event {before.i}) to {event.pos} at event {event.i} and left "
                f"out {first}"
            )
            left_out = [topic.publishes[first]] if first in topic.publishes else []
            tally.report_violation(why, [*left_out, before, event])
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
