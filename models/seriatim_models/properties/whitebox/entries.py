"""ES, IM, MG, TM: the state of an entry, which consumers may change it, and what becomes of each message."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from operator import itemgetter

import msgspec

from seriatim_models.history import catalogue
from seriatim_models.history.event import Event
from seriatim_models.properties.base import CaseEvents, Finding, Property, Violations
from seriatim_models.properties.whitebox.replay import ENDED, PUSH_QUEUE, OnReplay, Replay
from seriatim_models.properties.whitebox.state import CallSpan, ConsumerHistory, EntryHistory
from seriatim_models.properties.whitebox.sweep import Offers, how_many_before

SOURCE = "Strict Ordering"

LEGAL = {
    ("DELAYED", "AVAILABLE"),
    ("AVAILABLE", "ACQUIRED"),
    ("ACQUIRED", "AVAILABLE"),
    ("ACQUIRED", "DEQUEUED"),
    ("AVAILABLE", "DEQUEUED"),
    ("DEQUEUED", "DELETED"),
}


IMMEDIATE_MESSAGE = CaseEvents(frozenset({"enqueue"}), lambda e: catalogue.immediate.get(e, False))
GROUPED_MESSAGE = CaseEvents(frozenset({"enqueue"}), lambda e: bool(catalogue.group.get(e, "")))
TIMED_MESSAGE = CaseEvents(
    frozenset({"enqueue"}),
    lambda e: bool(catalogue.not_before.get(e, 0) or catalogue.expires.get(e, 0)),
)


class Chain(msgspec.Struct):
    """What a chunk says of one entry (or pointer): its first and last event that matter, and how often that was."""

    first: Event
    last: Event
    n: int


class Chains(msgspec.Struct):
    """Chains by key, and the shortest violation seen so far."""

    by_key: dict[str, Chain] = {}
    bad: Violations = []


class PerKey(Property[Chains]):
    """A property of consecutive events with one key: its summary is linear in keys, not in events."""

    summary_type = Chains

    def key(self, e: Event) -> str | None:
        """Which chain the event belongs to; None if to none."""
        raise NotImplementedError

    def alone(self, e: Event) -> str | None:
        """What is wrong with one event, if anything."""
        return None

    def pair(self, before: Event, now: Event) -> str | None:
        """What is wrong with two consecutive events of one chain, if anything."""
        return None

    def counts(self, e: Event) -> bool:
        """Whether the event is a case in which the property could have been violated."""
        return True

    def map(self, events: Iterable[Event]) -> Chains:
        s = Chains()
        for e in events:
            k = self.key(e) if e.lvl == "model" and e.ev in self.reads else None
            if k is None:
                continue
            if (why := self.alone(e)) is not None:
                self._keep(s, why, [e])
            chain = s.by_key.get(k)
            if chain is None:
                s.by_key[k] = Chain(e, e, int(self.counts(e)))
                continue
            if (why := self.pair(chain.last, e)) is not None:
                self._keep(s, why, [chain.last, e])
            chain.last = e
            chain.n += self.counts(e)
        return s

    def combine(self, left: Chains, right: Chains) -> Chains:
        for why, events in right.bad:
            self._keep(left, why, events)
        for k, later in right.by_key.items():
            earlier = left.by_key.get(k)
            if earlier is None:
                left.by_key[k] = later
                continue
            if (why := self.pair(earlier.last, later.first)) is not None:  # type: ignore[assignment]
                self._keep(left, why, [earlier.last, later.first])
            left.by_key[k] = Chain(earlier.first, later.last, earlier.n + later.n)
        return left

    def finish(self, summary: Chains) -> Finding:
        return Finding.of(self.id, sum(c.n for c in summary.by_key.values()), summary.bad)

    @staticmethod
    def _keep(s: Chains, why: str, events: list[Event]) -> None:
        """Keep the violation that `Finding.of` would choose, and only that: the summary stays small."""
        s.bad = [min([*s.bad, (why, events)], key=lambda v: (len(v[1]), v[1][-1].i))]


class Es1(PerKey):
    """A case is a change of an entry's state."""

    id = "ES-1"
    sentence = "Only legal transitions, each by one compare-and-set from the expected state."
    source = SOURCE
    reads = frozenset({"entry_cas"})

    def key(self, e: Event) -> str | None:
        return e.m if e.ev == "entry_cas" and catalogue.ok(e) else None

    def alone(self, e: Event) -> str | None:
        old, new, how = catalogue.old_state(e), catalogue.new_state(e), catalogue.how(e)
        if how != "cas":
            return f"{e.m} went {old} -> {new} by {how}, not by compare-and-set"
        return None if (old, new) in LEGAL else f"{e.m} went {old} -> {new}"

    def pair(self, before: Event, now: Event) -> str | None:
        left, found = catalogue.new_state(before), catalogue.old_state(now)
        return None if left == found else f"{now.m} was left {left} and found {found}"


class Es2(PerKey):
    """A case is an acquisition."""

    id = "ES-2"
    sentence = "At most one acquirer holds an entry at any time."
    source = SOURCE
    reads = frozenset({"entry_cas"})

    def key(self, e: Event) -> str | None:
        holds = ("ACQUIRED",)
        return (
            e.m
            if e.ev == "entry_cas"
            and catalogue.ok(e)
            and (catalogue.new_state(e) in holds or catalogue.old_state(e) in holds)
            else None
        )

    def counts(self, e: Event) -> bool:
        return bool(catalogue.new_state(e) == "ACQUIRED")

    def pair(self, before: Event, now: Event) -> str | None:
        if catalogue.new_state(before) == "ACQUIRED" and catalogue.new_state(now) == "ACQUIRED":
            return f"{now.m} was acquired by {catalogue.sub(now)} while {catalogue.sub(before)} held it"
        return None


class Es3(OnReplay):
    """A case is an entry that was dequeued."""

    id = "ES-3"
    sentence = (
        "A dequeued entry becomes deleted and nothing else, deleted is final, and no attempt that began after it was "
        "dequeued delivers it or shows it to a browser."
    )
    source = SOURCE

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        for entry in h.entries.values():
            ended: Event | None = None
            last: Event | None = None
            for e in entry.changes:
                if not catalogue.ok(e):
                    continue
                new = catalogue.new_state(e)
                tested += new == "DEQUEUED"
                if last is not None and (
                    catalogue.new_state(last) == "DELETED" or new != "DELETED"
                ):
                    why = f"{entry.m} became {new} after it was {catalogue.new_state(last)}"
                    bad.append((why, [last, e]))
                if new in ENDED:
                    ended, last = ended or e, e
                else:
                    last = None
            if ended is None:
                continue
            for e in (*entry.delivers, *entry.browses):
                attempt = h.call_at(e.i)
                # One that began earlier may have taken it first: the record of a delivery comes after the taking.
                began = attempt.start if attempt is not None and attempt.ev == "attempt" else e.i
                if began > ended.i:
                    how = "shown" if e.ev == "browse" else "delivered"
                    why = f"{entry.m} was {how} to {catalogue.sub(e)} by an attempt after it was dequeued"
                    bad.append((why, [ended, e]))
        return tested


class Es4(OnReplay):
    """A case is a call that ends an acquisition, or that is made by a consumer that does not own the entry."""

    id = "ES-4"
    sentence = (
        "Only its holder releases or dequeues an acquired entry: nothing but such a call for this very entry "
        "ends an acquisition."
    )
    source = SOURCE

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        for op in h.of("release", "dequeue"):
            entry = h.entry(op.first.m)
            state = entry.state.at(op.start)
            if state is not None and state != ("ACQUIRED", op.consumer):
                tested += 1  # a consumer that does not own the entry tries
        for entry in h.entries.values():
            for e in entry.changes:
                if not catalogue.ok(e) or catalogue.old_state(e) != "ACQUIRED":
                    continue
                by = h.call_at(e.i)
                if by is None or by.ev not in ("release", "dequeue") or by.first.m != entry.m:
                    bad.append((f"{entry.m} was taken from {catalogue.sub(e)}", [e]))
                else:
                    tested += 1
                    acquirer = entry.acquirer(e.i - 1)
                    if catalogue.sub(e) != by.consumer or (acquirer or by.by) is not by.by:
                        why = f"{by.ev}({entry.m}) by {by.consumer} ended what {catalogue.sub(e)} held"
                        bad.append((why, [by.first, e]))
        return tested


class Es5(OnReplay):
    """A case is a message whose enqueue had returned when the snapshot was taken."""

    id = "ES-5"
    sentence = (
        "Conservation: at quiescence every enqueued message is available, held by one consumer, or dequeued "
        "(and then deleted); "
        "none lost, none doubled; the queue's counters equal the list's contents."
    )
    source = SOURCE

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        for q, shot in h.snapshots.items():
            listed = catalogue.entries(shot)
            found = {m: (state, holder) for m, _, state, holder in listed}
            mine = [e for e in h.entries.values() if e.q == q and e.enqueued]
            for entry in mine:
                if entry.enqueued is None or entry.enqueued.end > shot.i:
                    continue
                tested += 1
                last = entry.state.last()  # (state, holder)
                if last is None:
                    bad.append((f"{entry.m} was enqueued and never linked", [entry.enqueued.first]))
                elif last[0] in ENDED:
                    if entry.m in found:
                        bad.append((f"{entry.m} is gone and in the list", [shot]))
                    if last[0] != "DELETED":
                        bad.append((f"{entry.m} was dequeued and never deleted", [shot]))
                elif found.get(entry.m, ("nothing", "")) != last:
                    bad.append((f"{entry.m} should be {last}, the list disagrees", [shot]))
                elif last[0] == "ACQUIRED":
                    acquirer = entry.acquirer(shot.i)
                    if acquirer is None or acquirer.until <= shot.i:
                        bad.append((f"{entry.m} is held by {last[1]}, which is closed", [shot]))
            if catalogue.depth_counted(shot) != len(listed):
                counted = catalogue.depth_counted(shot)
                bad.append((f"the counter says {counted}, the list {len(listed)}", [shot]))
        return tested


class Es6(OnReplay):
    """A case is a change of the credit of a consumer that has a limit."""

    id = "ES-6"
    sentence = (
        "Credit taken for an attempt that did not acquire is given back: at quiescence a consumer's credit is what it "
        "was given less what it got, and at no time is it below zero."
    )
    source = SOURCE

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        for shot in h.snapshots.values():
            for name, state in catalogue.consumers(shot).items():
                consumer = h.consumers.get(name)
                if consumer is None or consumer.credit is None:
                    continue
                tested += len(consumer.paid)
                if state["credit"] != consumer.due:
                    why = (
                        f"{name} was given {consumer.credit + consumer.granted}, got {len(consumer.delivers)} "
                        f"messages, and has {state['credit']} left instead of {consumer.due:.0f}"
                    )
                    bad.append((why, [shot]))
        for consumer in h.subscriptions:
            left = consumer.credit or 0
            for e in consumer.paid:
                left += catalogue.delta(e)
                if left < 0:
                    bad.append((f"the credit of {consumer.name} fell to {left}", [e]))
        return tested


class Im1(OnReplay):
    """A case is an immediate message whose enqueue returned."""

    id = "IM-1"
    sentence = (
        "An immediate message is acquired before its enqueue returns or dequeued by that call: "
        "never both, never neither."
    )
    source = SOURCE + ", potential issue"
    case_events = IMMEDIATE_MESSAGE

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        for entry in h.entries.values():
            op = entry.enqueued
            if not entry.immediate or op is None or op.last is None:
                continue
            tested += 1
            given = [
                e for e in entry.changes if catalogue.ok(e) and catalogue.new_state(e) == "ACQUIRED"
            ]
            dropped = [
                e
                for e in entry.changes
                if catalogue.ok(e) and catalogue.new_state(e) == "DEQUEUED" and h.call_at(e.i) is op
            ]
            if given and dropped:
                why = f"{entry.m} was delivered to {catalogue.sub(given[0])} and dequeued as undelivered"
                bad.append((why, sorted([given[0], dropped[0]], key=lambda e: e.i)))
            if not dropped and not [e for e in given if e.i < op.end]:
                bad.append((f"{entry.m} was neither delivered nor dequeued", [op.first, op.last]))
        return tested


class Im2(PerKey):
    """A case is the enqueue of an immediate message."""

    id = "IM-2"
    sentence = (
        "The check-then-dequeue of an immediate message is one compare-and-set from AVAILABLE; "
        "the published form, a check and then a dequeue, breaks IM-1 against a concurrent delivery."
    )
    source = SOURCE + ", potential issue"
    reads = frozenset({"enqueue", "entry_cas"})
    case_events = IMMEDIATE_MESSAGE

    def key(self, e: Event) -> str | None:
        if e.ev == "enqueue":
            return f"{e.proc}:{e.m}" if catalogue.immediate.get(e, False) or e.ph == "ok" else None
        return (
            f"{e.proc}:{e.m}" if catalogue.ok(e) and catalogue.new_state(e) == "DEQUEUED" else None
        )

    def counts(self, e: Event) -> bool:
        return bool(catalogue.immediate.get(e, False))

    def pair(self, before: Event, now: Event) -> str | None:
        if before.ev == "enqueue" and before.ph == "invoke" and now.ev == "entry_cas":
            old, how = catalogue.old_state(now), catalogue.how(now)
            if how != "cas" or old != "AVAILABLE":
                return f"immediate {now.m} was dequeued by {how} from {old}"
        return None


class Im3(OnReplay):
    """A case is a call of one of the three kinds that returned while the message was still available."""

    id = "IM-3"
    sentence = (
        "In a push queue, a message that a call made available (enqueue, release, end of a delay) and that is still "
        "available when the call returns, an asynchronous delivery attempt is pending or has begun since; "
        "the same holds for what a call made deliverable: by credit or interest of a consumer that selects it, "
        "or by setting its group free. Immediate messages count from their first release on. "
        "At most one attempt is pending. A refused attempt has not begun, and is no fault of the call."
    )
    source = SOURCE
    case_events = PUSH_QUEUE

    def cases(self, h: Replay, bad: Violations) -> int:
        jobs = h.named("job")
        submits = [e.i for e in jobs if catalogue.job_at(e) == "submit"]
        begins = [e.i for e in jobs if catalogue.job_at(e) == "begin"]
        refused = [e.i for e in jobs if catalogue.job_at(e) == "refused"]
        for one, other in pairwise(jobs if len(h.queues) == 1 else []):  # which queue's is not said
            if catalogue.job_at(one) == catalogue.job_at(other) == "submit":
                bad.append(("a second delivery is asked for while one is pending", [one, other]))
        tested = 0
        for entry, since, op in self._deliverable(h):
            assert op.last is not None
            if bisect_left(refused, op.end) > bisect_left(refused, since):
                continue  # whoever refused it is to ask again
            tested += 1
            ended = bisect_left(begins, op.end) + bisect_left(refused, op.end)
            pending = bisect_left(submits, op.end) > ended
            if not pending and bisect_left(begins, op.end) <= bisect_right(begins, since):
                why = f"{op.ev} returned, {entry.m} is available, and no delivery will begin"
                bad.append((why, [h.event(since), op.last]))
        return tested

    def _deliverable(self, h: Replay) -> Iterator[tuple[EntryHistory, int, CallSpan]]:
        """Messages that could be delivered when a call returned, the index since which that was so, and the call."""
        for entry in h.entries.values():
            if h.kind(entry.q) == "push" and entry.links:
                yield from self._made_available(h, entry)
        yield from self._set_free(h)
        yield from self._asked_for(h)

    @staticmethod
    def _made_available(
        h: Replay, entry: EntryHistory
    ) -> Iterator[tuple[EntryHistory, int, CallSpan]]:
        acquired = False
        for i, (state, _) in zip(entry.state.when, entry.state.values, strict=True):
            op = h.call_at(i)
            acquired = acquired or state == "ACQUIRED"
            if (
                state == "AVAILABLE"
                and (acquired or not entry.immediate)
                and op is not None
                and op.last is not None
                and op.ev in ("enqueue", "release", "check_status")
                and entry.available_through(i, op.last.i)
            ):
                yield entry, i, op

    @staticmethod
    def _set_free(h: Replay) -> Iterator[tuple[EntryHistory, int, CallSpan]]:
        """By a call that ended the last acquisition of a group, while nobody tried to acquire anything."""
        groups: dict[tuple[str, str], list[EntryHistory]] = {}
        for entry in h.entries.values():
            if entry.group and h.kind(entry.q) == "push":
                groups.setdefault((entry.q, entry.group), []).append(entry)
        for members in groups.values():
            for entry in members:
                for at in entry.acquirers:
                    ended = entry.state.following(at)
                    op = None if ended is None else Im3._sets_free(h, members, ended)
                    if ended is None or op is None or op.last is None:
                        continue
                    if h.attempts_of_others(None, op.start, op.last.i):
                        continue
                    states = [(e.state.at(ended) or ("",))[0] for e in members]
                    if "ACQUIRED" in states:
                        continue
                    for other in members:
                        if other is not entry and other.available_through(ended, op.last.i):
                            yield other, ended, op

    @staticmethod
    def _sets_free(h: Replay, members: list[EntryHistory], ended: int) -> CallSpan | None:
        """Who leaves the group last is not seen: of the calls that ended an acquisition of it while the call at index
        `ended` was under way, itself among them, the last to return has left it by then.
        """
        one = h.call_at(ended)
        others = [
            h.call_at(end)
            for entry in members
            for at in entry.acquirers
            if (end := entry.state.following(at)) is not None and end <= ended
        ]
        beside = [op for op in others if op is not None and one is not None and op.end > one.start]
        return max(beside, key=lambda op: op.end, default=one)

    @staticmethod
    def _asked_for(h: Replay) -> Iterator[tuple[EntryHistory, int, CallSpan]]:
        """By a call for a consumer that has credit when the call returns; the first message that it then could take."""
        asks = [op for op in h.of("work_desired") if op.asks and op.last is not None]
        if not asks:
            return
        offers = Offers(e for e in h.entries.values() if not e.expires)
        for op in sorted(asks, key=lambda op: op.end):
            consumer, last = op.by, op.last
            if consumer is None or last is None or h.kind(consumer.q) != "push":
                continue
            if not consumer.registered < op.start or consumer.until <= last.i:
                continue
            if consumer.credit is not None:
                given = consumer.credit + sum(
                    catalogue.granted(e) for e in consumer.grants if e.i < op.start
                )
                if given <= how_many_before(consumer.delivers, op.end):
                    continue
            for entry in offers.selected(consumer, last.i):
                if (
                    consumer.acquires
                    and entry.offered_before(op.start, last.i)
                    and h.group_free(entry, consumer, op.start, last.i)
                ):
                    yield entry, op.start, op
                    break


class Im4(OnReplay):
    """A case is an enqueue in a push queue that attempted to deliver its message."""

    id = "IM-4"
    sentence = (
        "No attempt without a reason: an enqueue in a push queue asks each consumer once, and none when one has taken "
        "its message; it asks for a delivery job only if its message is not immediate and was available at some moment "
        "after its last attempt to deliver it. "
        "An immediate message is not discarded before each consumer that wanted it all the while was asked."
    )
    source = SOURCE
    case_events = PUSH_QUEUE

    def cases(self, h: Replay, bad: Violations) -> int:
        asked = self._asked(h)
        for call, attempts in asked.items():
            self._in_vain(call, attempts, bad)
        discarded = [op for op in h.of("enqueue") if self._discards(h, op)]
        for call in discarded:
            for consumer in self._not_asked(h, call, asked.get(call, [])):
                why = f"{call.first.m} was discarded, and {consumer.name}, which wanted it, was not asked"
                bad.append((why, [call.first, h.event(int(consumer.registered))]))
        for job in h.named("job"):
            call_at = h.call_at(job.i)
            if call_at is None or call_at.ev != "enqueue" or catalogue.job_at(job) != "submit":
                continue
            entry = h.entries[call_at.first.m]
            since = int(max((a.end for a in asked.get(call_at, ())), default=call_at.start))
            if entry.immediate:
                why = f"enqueue({entry.m}), immediate, asked for a job"
                bad.append((why, [call_at.first, job]))
            elif ("AVAILABLE", "") not in entry.state.during(since, job.i):
                why = (
                    f"enqueue({entry.m}) asked for a job, and {entry.m} was not available any more"
                )
                bad.append((why, [h.event(since), job]))
        return len({*asked, *discarded})

    @staticmethod
    def _discards(h: Replay, op: CallSpan) -> bool:
        """Whether the call linked an immediate message in a push queue, and returned, and nobody had the message."""
        entry = h.entries.get(op.first.m)
        return (
            entry is not None
            and entry.enqueued is op
            and entry.immediate
            and op.last is not None
            and h.kind(entry.q) == "push"
            and not entry.acquirers
            and any(e.i > op.start for e in entry.links)
        )

    @staticmethod
    def _not_asked(
        h: Replay, call: CallSpan, attempts: list[CallSpan]
    ) -> Iterator[ConsumerHistory]:
        """Consumers that were there and wanted any message of theirs for as long as the call took."""
        entry, end = h.entries[call.first.m], int(call.end)
        for consumer in h.subscriptions:
            if (
                consumer.selects(entry)
                and consumer.registered < call.start
                and consumer.until > end
                and consumer.wants.held(True, call.start, end)
                and not any(attempt.by is consumer for attempt in attempts)
            ):
                yield consumer

    @staticmethod
    def _asked(h: Replay) -> dict[CallSpan, list[CallSpan]]:
        """By enqueue: its own attempts, in their order, and none of a job or a call that was made within it."""
        enqueues: dict[str, list[CallSpan]] = {}
        for call in h.of("enqueue"):
            enqueues.setdefault(call.proc, []).append(call)
        found: dict[CallSpan, list[CallSpan]] = {}
        for attempt in h.of("attempt"):
            calls = enqueues.get(attempt.proc, ())
            within = [c for c in calls if c.start < attempt.start < c.end]
            if within and catalogue.path.get(attempt.first, "") in ("general", "shortcut"):
                found.setdefault(within[-1], []).append(attempt)
        return found

    @staticmethod
    def _in_vain(call: CallSpan, attempts: list[CallSpan], bad: Violations) -> None:
        """Find attempts behind the one that took the message, and those for somebody whose turn was over."""
        turns: list[ConsumerHistory | None] = []
        taken = False
        for attempt in attempts:
            if taken:
                why = f"{call.first.m} was taken, and {attempt.consumer} is asked"
                bad.append((why, [call.first, attempt.first]))
            if attempt.by in turns[:-1]:
                bad.append((f"{attempt.consumer} is asked again", [call.first, attempt.first]))
            if not turns or turns[-1] is not attempt.by:
                turns.append(attempt.by)
            taken = bool(attempt.found) and attempt.by is not None and attempt.by.acquires


class Mg1(OnReplay):
    """A case is another message of the group of one that is taken."""

    id = "MG-1"
    sentence = (
        "Messages of one group of a queue are held by at most one consumer at a time; "
        "two consumers of one name, one after the other, are two."
    )
    source = "Consumer-Queue Interactions (blocked by message grouping)"
    case_events = GROUPED_MESSAGE

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        size = Counter((e.q, e.group) for e in h.entries.values() if e.group)
        changes = sorted(
            ((i, entry) for entry in h.entries.values() if entry.group for i in entry.state.when),
            key=itemgetter(0),
        )
        held: dict[tuple[str, str], dict[str, tuple[int, ConsumerHistory | None]]] = {}
        """By group: messages of it that are acquired, since which index and by whom."""
        for i, entry in changes:
            messages = held.setdefault((entry.q, entry.group), {})
            messages.pop(entry.m, None)
            if i not in entry.acquirers:
                continue
            consumer = entry.acquirers[i]
            tested += size[entry.q, entry.group] - 1
            for m, (since, other) in messages.items():
                if other is not consumer and None not in (consumer, other):
                    assert consumer is not None
                    assert other is not None
                    why = (
                        f"{consumer.name} took {entry.m} while {other.name} held {m} "
                        f"of the same group {entry.group}"
                    )
                    bad.append((why, [h.event(since), h.event(i)]))
            messages[entry.m] = (i, consumer)
        return tested


class Tm1(OnReplay):
    """A case is a message with a time that is taken, or shown to a browser."""

    id = "TM-1"
    sentence = (
        "A held message is not delivered before its time, nor shown to a browser, and a message that had expired when "
        "a consumer began to look is not delivered or shown to it."
    )
    source = "Consumer-Queue Interactions (held or TTLed messages)"
    case_events = TIMED_MESSAGE

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        shown = (
            (attempt, e, entry, attempt.by)
            for entry in h.entries.values()
            for e in entry.browses
            if (attempt := h.call_at(e.i)) is not None and attempt.by is not None
        )
        for attempt, at, taken, consumer in (*h.acquisitions(), *shown):
            began, now = h.clock.at(attempt.start), h.clock.at(at.i)
            if taken.expires and began is not None:
                tested += 1
                if began > taken.expires:
                    why = f"{taken.m} had expired at {taken.expires}; {consumer.name} looked at {began}, and got it"
                    bad.append((why, [attempt.first, at]))
            if taken.not_before and now is not None:
                tested += 1
                if now < taken.not_before:
                    why = f"{consumer.name} got {taken.m} at {now}, held until {taken.not_before}"
                    bad.append((why, [at]))
        return tested


class Tm2(OnReplay):
    """A case is an entry whose time had come when a pass of housekeeping began."""

    id = "TM-2"
    sentence = (
        "After a pass of housekeeping nothing is held whose time had come when the pass began, "
        "and nothing is available that had expired then."
    )
    source = "Consumer-Queue Interactions (held or TTLed messages)"
    case_events = TIMED_MESSAGE

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        changes = sorted(
            (
                (i, entry, state)
                for entry in h.entries.values()
                if entry.links and (entry.expires or entry.not_before)
                for i, (state, _) in zip(entry.state.when, entry.state.values, strict=True)
            ),
            key=itemgetter(0),
        )
        played = 0
        waiting: list[tuple[int, int, EntryHistory]] = []
        """From when on a pass must end a state, the event that began the state, and whose it is."""
        for op in h.of("check_status"):
            began = h.clock.at(op.start)
            upto = bisect_right(changes, op.start, key=itemgetter(0))
            for i, entry, state in changes[played:upto]:
                if state == "AVAILABLE" and entry.expires:
                    insort(waiting, (entry.expires + 1, i, entry))
                elif state == "DELAYED":
                    insort(waiting, (entry.not_before, i, entry))
            played = upto
            if op.last is None or began is None:
                continue
            due = bisect_right(waiting, began, key=itemgetter(0))
            waiting[:due] = [w for w in waiting[:due] if w[2].state.since(op.start) == w[1]]
            for _, _, entry in waiting[: bisect_right(waiting, began, key=itemgetter(0))]:
                tested += 1
                now = entry.state.at(op.start)
                if now is not None and entry.state.held(now, op.start, op.last.i):
                    why = f"{entry.m} was {now[0]} all through a pass that should have ended that"
                    bad.append((why, [op.first, op.last]))
        return tested


ENTRIES = (Es1(), Es2(), Es3(), Es4(), Es5(), Es6())
IMMEDIATE = (Im1(), Im2(), Im3(), Im4())
MORE = (Mg1(), Tm1(), Tm2())
