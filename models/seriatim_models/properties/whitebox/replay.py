"""A white-box history of a queue, replayed: what was in which state when.

Only events of level ``model`` are read: what a recorder around a broker saw has the same names for other things.
Indexes of events are the time here (`Event.i`). Properties ask three kinds of questions of it: the value of something
at an index, whether it had one value through a whole interval, and what was going on in a thread at an index.
An interval is always taken as short as the history allows, so that what is required to hold through it does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import inf

from seriatim_models.history import catalogue
from seriatim_models.history.event import Event
from seriatim_models.properties.base import CaseEvents, Finding, Property, Violations
from seriatim_models.properties.whitebox.state import (
    CallSpan,
    ConsumerHistory,
    EntryHistory,
    QueueState,
)
from seriatim_models.properties.whitebox.sweep import Spans

ENDED = ("DEQUEUED", "DELETED")
"""States of an entry that is no longer in the queue."""
UNKNOWN, NOBODY = -1, -2
"""In place of the number of a consumer: one that never subscribed, as far as is known, and none."""

PUSH_QUEUE = CaseEvents(frozenset({"queue"}), lambda e: catalogue.queue_kind.get(e, "") == "push")
PULL_QUEUE = CaseEvents(frozenset({"queue"}), lambda e: catalogue.queue_kind.get(e, "") == "pull")


def when(e: Event) -> str:
    """When an event was, as whoever reads a schedule counts: its step, or its place where steps were not recorded."""
    return f"event {e.i}" if e.t is None else f"step {e.t}"


class Replay(QueueState):
    """The state after all events of one run, with the indexes that properties search."""

    def __init__(
        self, events: Sequence[Event], by_name: Mapping[str, Sequence[Event]] | None = None
    ) -> None:
        """`by_name` has the same events, if somebody has sorted them already: see `named`."""
        super().__init__()
        self.events = [e for e in events if e.lvl == "model"]
        self._sorted = by_name if len(self.events) == len(events) else None
        self.woken: dict[int, ConsumerHistory] = {}
        """Index of a notification -> who was notified."""
        self._call_at: dict[int, CallSpan] = {}
        """Event index -> the innermost call of its thread at that moment."""
        self._before: dict[int, int] = {}
        """Index of a pointer move -> an index after which its thread certainly read what it moved on."""
        self._decided: dict[int, int] = {}
        self._choices: dict[tuple[str, frozenset[str] | None], Counter[int]] = {}
        self._replay()
        self._index_offers()
        self._index_notifies()

    def _replay(self) -> None:
        """See all events, and index the calls in which they happened and where scans began."""
        scan_began: dict[str, int] = {}
        see, call_at = self.see, self._call_at
        for e in self.events:
            call = see(e)
            if call is not None:
                call_at[e.i] = call
            if e.ev == "ptr_cas":
                self._before[e.i] = scan_began.get(e.proc, e.i)
            if e.ev not in ("unlink", "entry_cas"):
                scan_began[e.proc] = e.i

    def _index_offers(self) -> None:
        for entry in self.entries.values():
            for i, (state, _) in zip(entry.state.when, entry.state.values, strict=True):
                if state == "AVAILABLE":
                    by = self._call_at.get(i)
                    entry.offered[i] = by.end if by else i

    def _index_notifies(self) -> None:
        """Find the move to Notified that each notification followed in its thread and call."""
        for consumer in self.subscriptions:
            for e in consumer.notified:
                self.woken[e.i] = consumer
            begun = (
                m
                for m in consumer.moves
                if catalogue.new_list(m) == "Notified" and catalogue.move_at(m) == "leave"
            )
            waking: dict[str, int] = {}
            """Thread -> where it began to move the consumer to Notified, until it notified it."""
            for e in sorted([*begun, *consumer.notified], key=lambda e: e.i):
                if e.ev == "qcm_move":
                    waking[e.proc] = e.i
                    continue
                move = waking.pop(e.proc, None)
                if move is not None and self.call_at(move) is self.call_at(e.i):
                    self._decided[e.i] = move

    def call_at(self, i: int) -> CallSpan | None:
        """The innermost call of the event's thread at the event."""
        return self._call_at.get(i)

    def decided(self, notify: Event) -> int:
        """When it was settled that the consumer is woken: by the move, before the wake-up itself is on record.

        Threads leave time between the two, in which the consumer may have looked, found and looked again.
        """
        return self._decided.get(notify.i, notify.i)

    def scan_start(self, pointer_move: Event) -> int:
        """An index after which the thread that moved the pointer certainly read what it moved on."""
        return self._before[pointer_move.i]

    def of(self, *evs: str) -> Sequence[CallSpan]:
        """The calls of these names, in the order of their invocations."""
        if len(evs) == 1:
            return self._calls_by_name.get(evs[0], [])
        return [call for call in self.calls if call.ev in evs]

    @cached_property
    def _calls_by_name(self) -> dict[str, list[CallSpan]]:
        found: dict[str, list[CallSpan]] = {}
        for call in self.calls:
            found.setdefault(call.ev, []).append(call)
        return found

    # ---- questions that several properties ask

    def acquisitions(self) -> Iterable[tuple[CallSpan, Event, EntryHistory, ConsumerHistory]]:
        """Each entry taken by an acquiring consumer: the attempt, the winning compare-and-set, entry and consumer."""
        for entry in self.entries.values():
            for e in entry.changes:
                if catalogue.ok(e) and catalogue.new_state(e) == "ACQUIRED":
                    attempt, consumer = self.call_at(e.i), entry.acquirers[e.i]
                    if attempt is not None and attempt.ev == "attempt" and consumer is not None:
                        yield attempt, e, entry, consumer

    def group_free(self, entry: EntryHistory, consumer: ConsumerHistory, lo: int, hi: int) -> bool:
        """Whether certainly nobody but `consumer` owned the entry's group between the two indexes.

        A consumer that owns a message of the group owns the group until the call that ended that has returned,
        and so may any that is about to take one.
        """
        if not entry.group:
            return True
        return not (
            self._holdings[entry.q, entry.group].of_others(consumer.number, lo, hi)
            or self.attempts_of_others(consumer, lo, hi)
        )

    def attempts_of_others(self, consumer: ConsumerHistory | None, lo: int, hi: int) -> bool:
        """Whether an attempt for anybody but `consumer` was under way between the two indexes."""
        return self._attempts.of_others(NOBODY if consumer is None else consumer.number, lo, hi)

    @cached_property
    def _holdings(self) -> dict[tuple[str, str], Spans]:
        spans: dict[tuple[str, str], list[tuple[int, float, int]]] = {}
        for entry in self.entries.values():
            if not entry.group:
                continue
            held = spans.setdefault((entry.q, entry.group), [])
            ends = [*entry.state.when[1:], inf]
            for i, until in zip(entry.state.when, ends, strict=True):
                if i in entry.acquirers:
                    by = entry.acquirers[i]
                    held.append((i, self._over(until), UNKNOWN if by is None else by.number))
        return {group: Spans(held) for group, held in spans.items()}

    def _over(self, i: float) -> float:
        """When the call in which event `i` happened had returned."""
        by = None if i == inf else self._call_at.get(int(i))
        return i if by is None else by.end

    @cached_property
    def _attempts(self) -> Spans:
        return Spans(
            (call.start, call.end, UNKNOWN if call.by is None else call.by.number)
            for call in self.of("attempt")
        )

    def group_owners(self, q: str, i: int) -> dict[str, ConsumerHistory | None]:
        """By group: who has acquired messages of it in the queue, just after event `i`."""
        return {
            entry.group: entry.acquirer(i)
            for entry in self.entries.values()
            if entry.group and entry.q == q and (entry.state.at(i) or ("",))[0] == "ACQUIRED"
        }

    def named(self, *evs: str) -> Sequence[Event]:
        """The events of these names, in their order."""
        if len(evs) == 1:
            return self._by_name.get(evs[0], [])
        return [e for e in self.events if e.ev in evs]

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[Event]]:
        if self._sorted is not None:
            return self._sorted
        found: dict[str, list[Event]] = {}
        for e in self.events:
            found.setdefault(e.ev, []).append(e)
        return found

    def event(self, i: int) -> Event:
        """The event with this index."""
        return self._by_index[i]

    @cached_property
    def _by_index(self) -> dict[int, Event]:
        return {e.i: e for e in self.events}

    def choice(self, consumer: ConsumerHistory) -> Counter[int]:
        """How many of the entries that were ever linked `consumer` selects, by sub-queue."""
        alike = (consumer.q, consumer.keys)
        if alike not in self._choices:
            self._choices[alike] = Counter(
                e.place[0] for e in self.entries.values() if e.links and consumer.selects(e)
            )
        return self._choices[alike]


class OnReplay(Property[list[Event]]):
    """A property that judges a replay; its summary is the events it needs, which are those of the whole queue."""

    reads = frozenset[str]()
    summary_type = list[Event]

    def map(self, events: Iterable[Event]) -> list[Event]:
        return list(events)

    def combine(self, left: list[Event], right: list[Event]) -> list[Event]:
        left.extend(right)
        return left

    def finish(self, summary: list[Event]) -> Finding:
        return self.judge(Replay(summary))

    def check(self, events: Iterable[Event]) -> Finding:
        return self.finish(list(events))

    def judge(self, h: Replay) -> Finding:
        """The finding on one replayed history."""
        bad: Violations = []
        return Finding.of(self.id, self.cases(h, bad), bad)

    def cases(self, h: Replay, bad: Violations) -> int:
        """Put violations into `bad`; return how many cases were tested."""
        raise NotImplementedError
