"""SO: the queue gives its messages an order and keeps it (article "Strict Ordering")."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice

from seriatim_models.history import catalogue
from seriatim_models.history.event import Event
from seriatim_models.properties.base import CaseEvents, Finding, Violations
from seriatim_models.properties.whitebox.replay import ENDED, OnReplay, Replay, when
from seriatim_models.properties.whitebox.state import (
    CallSpan,
    ConsumerHistory,
    EntryHistory,
    Place,
)
from seriatim_models.properties.whitebox.sweep import BEHIND_ALL, Ended, Offers

SOURCE = "Strict Ordering"


def amqp_0_10_level(priority: int, levels: int) -> int:
    """The sub-queue of a priority, from the table in the AMQP 0-10 specification, by counting rather than by formula.

    With n levels the priorities up to 5 - ceil(n/2) share the lowest, those from 4 + floor(n/2) the highest,
    and those between have one each.
    """
    lowest_top = 5 - -(-levels // 2)
    level = 0
    for p in range(10):
        if p == priority:
            return level
        if p >= lowest_top and level < levels - 1:
            level += 1
    return levels - 1 if priority > 9 else 0


class So1(OnReplay):
    """A case is a pair of messages of one sub-queue, the first of which was enqueued before the second."""

    id = "SO-1"
    sentence = (
        "Enqueue fixes a strict total order: if enqueue(x) returned before enqueue(y) began, "
        "x precedes y within one priority; no two entries have one place."
    )
    source = SOURCE

    def judge(self, h: Replay) -> Finding:
        bad: Violations = []
        tested = 0
        places: dict[tuple[str, Place], EntryHistory] = {}
        lanes: dict[tuple[str, int], list[tuple[CallSpan, EntryHistory]]] = {}
        for entry in h.entries.values():
            if not entry.links:
                continue
            other = places.setdefault((entry.q, entry.place), entry)
            if other is not entry:
                bad.append(
                    (f"{entry.m} and {other.m} have one place", [other.links[0], entry.links[0]])
                )
            if entry.enqueued:
                lanes.setdefault((entry.q, entry.place[0]), []).append((entry.enqueued, entry))
        violations = len(bad)
        first: tuple[int, CallSpan, EntryHistory, list[tuple[CallSpan, EntryHistory]]] | None = None
        for lane in lanes.values():
            ended = Ended((op.end, x.place) for op, x in lane)
            for op, y in sorted(lane, key=lambda call: call[0].start):
                before = ended.before(op.start)
                tested += len(before)
                behind = len(before) - bisect_right(before, y.place)
                violations += behind
                if behind and (first is None or y.links[0].i < first[0]):
                    first = (y.links[0].i, op, y, lane)
        if first is not None:
            _, op, y, lane = first
            bad += (
                (
                    f"{x.m} was enqueued before enqueue({y.m}) began, yet stands behind it",
                    [earlier.last, op.first, y.links[0]],
                )
                for earlier, x in lane
                if earlier.end < op.start and earlier.last and x.place > y.place
            )
        return Finding.of(self.id, tested, bad, n_violations=violations)


class So2(OnReplay):
    """A case is an entry that became available again."""

    id = "SO-2"
    sentence = "An entry keeps its place for life: acquire, release, requeue and consumer close never move it."
    source = SOURCE

    def cases(self, h: Replay, bad: Violations) -> int:
        came_back = [e for e in h.entries.values() if len(e.offered) > 1]
        for entry in h.entries.values():
            if len(entry.links) > 1:
                bad.append((f"{entry.m} was linked twice", entry.links[:2]))
        for e in h.named("unlink"):
            if catalogue.node(e) in h.entries:
                entry = h.entries[catalogue.node(e)]
                state = entry.state.at(e.i)
                if state is not None and state[0] not in ENDED:
                    bad.append((f"{entry.m} was unlinked while {state[0]}", [*entry.links[:1], e]))
        for q, shot in h.snapshots.items():
            found = [(m, tuple(place)) for m, place, *_ in catalogue.entries(shot)]
            there = sorted(
                (e.place, e.m)
                for e in h.entries.values()
                if e.q == q and e.links and (e.state.last() or ("", ""))[0] not in ENDED
            )
            if [m for m, _ in found] != [m for _, m in there]:
                bad.append((f"the list holds {[m for m, _ in found]}, placed were {there}", [shot]))
        return len(came_back)


def _order(prop: OnReplay, h: Replay, path: str = "", higher_only: bool = False) -> Finding:
    """No entry before the one taken was the taker's to take through the whole attempt.

    A case is an acquisition while another entry that the consumer selects is available.
    With `higher_only` those of other sub-queues alone count, and of these the higher ones must not be passed over.
    """
    bad: Violations = []
    tested = untestable = 0
    # What never expires and is of no group certainly was the consumer's to take: one such entry is a violation.
    plain = Offers(e for e in h.entries.values() if not e.expires and not e.group)
    others = Offers(e for e in h.entries.values() if e.expires or e.group)
    for attempt, at, taken, consumer in sorted(h.acquisitions(), key=lambda a: a[1].i):
        if path and catalogue.path.get(attempt.first, "") != path:
            continue
        if higher_only and taken.q != consumer.q:
            continue  # whose link was not recorded: its sub-queue is not known
        rank = taken.place[0]
        before = (rank, -1) if higher_only else taken.place
        tested += any(
            next(offers.selected(consumer, at.i, *limits), None) is not None
            for offers in (plain, others)
            for limits in ((((rank, -1),), (BEHIND_ALL, (rank + 1, -1))) if higher_only else ((),))
        )
        offered = (
            e
            for e in plain.selected(consumer, at.i, before)
            if e.offered_before(attempt.start, at.i)
        )
        passed = list(islice(offered, 1))
        for entry in others.selected(consumer, at.i, before):
            if entry.offered_before(attempt.start, at.i):
                if entry.expires or not h.group_free(entry, consumer, attempt.start, at.i):
                    untestable += 1  # it may not have been this consumer's to take
                else:
                    passed.append(entry)
        if passed:
            first = min(passed, key=lambda e: (e.place, e.number))
            since = first.state.since(attempt.start)
            assert since is not None
            why = (
                f"{first.m} was available to {consumer.name} from {when(h.event(since))} on, yet {consumer.name}, "
                f"which looked from {when(attempt.first)}, took {taken.m} at {when(at)}"
            )
            bad.append((why, [h.event(since), attempt.first, at]))
    return Finding.of(prop.id, tested, bad, n_untestable=untestable)


class So3(OnReplay):
    """A case is an acquisition while another entry that the consumer selects is available."""

    id = "SO-3"
    sentence = (
        "An acquiring consumer gets the next AVAILABLE entry after its pointer that it has interest in: "
        "no earlier matching entry was available to it through the whole acquire."
    )
    source = SOURCE

    def judge(self, h: Replay) -> Finding:
        return _order(self, h)


class So4(OnReplay):
    """A case is a message that a browser was shown."""

    id = "SO-4"
    sentence = (
        "A browser sees each matching entry at most once, in order, and changes nothing; "
        "what it is shown was available at some moment between the beginning of the attempt that shows it and its end."
    )
    source = SOURCE
    case_events = CaseEvents(frozenset({"consumer"}), lambda e: not catalogue.acquires.get(e, True))

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        for consumer in h.subscriptions:
            if consumer.acquires:
                continue
            moved: dict[tuple[str, tuple[int, ...]], int] = {}
            for e in consumer.pointer:
                moved.setdefault((e.proc, tuple(catalogue.new_pointer(e))), e.i)
            for before, now in zip([None, *consumer.delivers], consumer.delivers, strict=False):
                tested += 1
                entry = h.entries[now.m]
                if moved.get((now.proc, (*entry.place, 1)), now.i) >= now.i:
                    bad.append((f"{consumer.name} was shown {now.m}, and not moved past it", [now]))
                if not consumer.selects(entry):
                    bad.append(
                        (f"{consumer.name} was shown {now.m}, which it does not select", [now])
                    )
                if before is not None and entry.place <= h.entries[before.m].place:
                    why = f"{consumer.name} was shown {now.m} after {before.m}: not forward"
                    bad.append((why, [before, now]))
                attempt = h.call_at(now.i)
                if attempt is not None and attempt.ev == "attempt":
                    states = entry.state.during(attempt.start, now.i)
                    if states and ("AVAILABLE", "") not in states:
                        why = f"{consumer.name} was shown {now.m}, which was {states[0][0]} and not available"
                        bad.append((why, [attempt.first, now]))
        bad += self._changes(h)
        return tested

    def _changes(self, h: Replay) -> Iterator[tuple[str, list[Event]]]:
        for entry in h.entries.values():
            for e in entry.changes:
                if catalogue.ok(e) and (by := self._browser(h, entry, e)) is not None:
                    yield f"browser {by.name} changed the state of {entry.m}", [e]

    @staticmethod
    def _browser(h: Replay, entry: EntryHistory, e: Event) -> ConsumerHistory | None:
        """The browser that a change of state is made by, or for which the attempt is made in which it happens."""
        call = h.call_at(e.i)
        named = entry.acquirers.get(e.i) or entry.acquirer(e.i - 1)
        attempting = call.by if call is not None and call.ev == "attempt" else None
        return next((s for s in (named, attempting) if s is not None and not s.acquires), None)


class So5(OnReplay):
    """A case is an acquisition while an entry of another level that the consumer selects is available."""

    id = "SO-5"
    sentence = (
        "Priority queue: strict priority between sub-queues, FIFO within one; "
        "the mapping of message priority to sub-queue is AMQP 0-10's and JMS-compliant."
    )
    source = SOURCE + "; AMQP 0-10, message priority"
    case_events = CaseEvents(
        frozenset({"queue", "link"}),
        lambda e: catalogue.levels.get(e, 1) > 1 or catalogue.place.get(e, [0, 0])[0] > 0,
    )

    def judge(self, h: Replay) -> Finding:
        bad: Violations = []
        for entry in h.entries.values():
            levels = h.levels(entry.q)
            if levels > 1 and entry.links:
                level = levels - 1 - entry.place[0]
                due = amqp_0_10_level(entry.prio, levels)
                if level != due:
                    why = f"{entry.m} of priority {entry.prio} is on level {level} of {levels}, not {due}"
                    bad.append((why, entry.links[:1]))
        order = _order(
            self,
            h,
            higher_only=True,
        )
        if order.witness:
            bad.append((order.explanation, list(order.witness)))
        return Finding.of(self.id, order.n_tested, bad, n_untestable=order.n_untestable)


class So6(OnReplay):
    """A case is an acquisition by the shortcut, and an attempt by it that could take several entries."""

    id = "SO-6"
    sentence = "The exclusive-subscriber shortcut delivers exactly what the general path would."
    source = SOURCE
    case_events = CaseEvents(
        frozenset({"attempt"}), lambda e: catalogue.path.get(e, "") == "shortcut"
    )

    def judge(self, h: Replay) -> Finding:
        bad: Violations = []
        tested = 0
        order = _order(self, h, path="shortcut")
        if order.witness:
            bad.append((order.explanation, list(order.witness)))
        for attempt, at, taken, consumer in h.acquisitions():
            if catalogue.path.get(attempt.first, "") != "shortcut":
                continue
            tested += 1
            rivals = [
                s.name
                for s in h.subscriptions
                if s is not consumer
                and s.q == consumer.q
                and s.registered < attempt.start < s.until
            ]
            if rivals or not consumer.selects(taken):
                bad.append(
                    (f"shortcut gave {taken.m} to {consumer.name}; others were {rivals}", [at])
                )
        offers = Offers(h.entries.values())
        for attempt in h.of("attempt"):
            if catalogue.path.get(attempt.first, "") == "shortcut" and attempt.by is not None:
                several = islice(offers.selected(attempt.by, attempt.start), 2)
                tested += len(list(several)) > 1
        return Finding.of(self.id, tested, bad, n_untestable=order.n_untestable)


ORDER = (So1(), So2(), So3(), So4(), So5(), So6())
