"""WK: which consumers are woken, and that none that should be is forgotten (article "Consumer-Queue Interactions")."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate
from math import inf

from seriatim_models.history import catalogue
from seriatim_models.history.event import Event
from seriatim_models.properties.base import CaseEvents, Finding, Violations
from seriatim_models.properties.whitebox.pointers import ahead
from seriatim_models.properties.whitebox.replay import PULL_QUEUE, OnReplay, Replay, when
from seriatim_models.properties.whitebox.state import CallSpan, ConsumerHistory, EntryHistory
from seriatim_models.properties.whitebox.sweep import (
    Ended,
    Offers,
    between,
    how_many_before,
    last_before,
)

SOURCE = "Consumer-Queue Interactions"

MAKES_AVAILABLE = ("enqueue", "release", "check_status")
RESTING = ("NotInterested", "Removed")


def ready_at_rest(h: Replay, q: str, i: int) -> list[ConsumerHistory]:
    """Consumers of the queue that are open, want messages and have credit, at quiescence just after event `i`.

    By what their clients asked for and got, not by what the queue keeps of that.
    """
    return [
        s for s in h.subscriptions if s.q == q and s.is_open(i) and s.wants_at_rest(i) and s.due > 0
    ]


class Wk1(OnReplay):
    """A case is a message that a consumer which is ready at rest selects."""

    id = "WK-1"
    sentence = (
        "No lost wake-up: at quiescence there is no interested consumer with an available message "
        "that it could take; by what clients asked for and were given, not by what the queue keeps of that."
    )
    source = SOURCE

    def judge(self, h: Replay) -> Finding:
        bad: Violations = []
        tested = untestable = 0
        for q, shot in h.snapshots.items():
            owners = h.group_owners(q, shot.i)
            now = h.clock.at(shot.i)
            available = [
                e
                for e in h.entries.values()
                if e.q == q and e.links and e.state.at(shot.i) == ("AVAILABLE", "")
            ]
            for consumer in ready_at_rest(h, q, shot.i):
                tested += h.choice(consumer).total()
                for entry in available:
                    if not consumer.selects(entry):
                        continue
                    if consumer.acquires:
                        if owners.get(entry.group, consumer) is not consumer:
                            continue
                    elif ahead(consumer.points, entry):
                        continue
                    if entry.expires and (now is None or now > entry.expires):
                        untestable += 1
                        continue
                    bad.append(self._forgotten(h, consumer, entry))
        return Finding.of(self.id, tested, bad, n_untestable=untestable)

    @staticmethod
    def _forgotten(
        h: Replay, consumer: ConsumerHistory, entry: EntryHistory
    ) -> tuple[str, list[Event]]:
        since = h.event(entry.state.when[-1])
        woken = consumer.notified[-1:]
        why = f"{consumer.name} rests and is ready, {entry.m} is available since {when(since)}, and nothing moves"
        if woken:
            why += f"; {consumer.name} was last woken at {when(woken[0])}"
        return why, sorted([since, *woken], key=lambda e: e.i)


class Wk2(OnReplay):
    """A case is an enqueue while several consumers waited that select it, and a browser that waited for it."""

    id = "WK-2"
    sentence = (
        "No herd: one new message notifies every interested non-acquiring consumer "
        "and at most one acquiring one."
    )
    source = SOURCE
    case_events = PULL_QUEUE

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        by_thread: dict[str, list[Event]] = {}
        for e in h.notifies:
            by_thread.setdefault(e.proc, []).append(e)
        furthest = {
            s.number: list(accumulate((catalogue.new_pointer(e) for e in s.pointer), max))
            for s in h.subscriptions
            if not s.acquires
        }
        for op in h.of("enqueue"):
            entry = h.entries[op.first.m]
            if op.end == inf or not entry.links or h.kind(entry.q) != "pull":
                continue
            woken = between(by_thread.get(op.proc, ()), op.start, op.end)
            acquiring = [e for e in woken if h.woken[e.i].acquires]
            waiting = [
                s
                for s in h.subscriptions
                if s.acquires and s.selects(entry) and s.listed.at(op.start) == "Interested"
            ]
            tested += len(waiting) > 1
            if len(acquiring) > 1:
                names = [catalogue.sub(e) for e in acquiring]
                bad.append((f"enqueue({entry.m}) woke {names}", acquiring))
            for consumer in h.subscriptions:
                # Nobody is woken for what has expired, and when it did one cannot tell from outside.
                if consumer.acquires or entry.expires or not consumer.selects(entry):
                    continue
                moves = how_many_before(consumer.pointer, op.end)
                if (
                    consumer.listed.held("NonAcquiring", op.start, int(op.end))
                    and entry.available_through(entry.links[0].i, int(op.end))
                    and not (moves and ahead(furthest[consumer.number][moves - 1], entry))
                ):
                    tested += 1
                    if all(h.woken[e.i] is not consumer for e in woken):
                        bad.append(
                            (f"enqueue({entry.m}) did not wake browser {consumer.name}", [op.first])
                        )
        return tested


class Wk3(OnReplay):
    """A case is a consumer that was NotInterested, or wanted nothing, when one of its queue was notified."""

    id = "WK-3"
    sentence = (
        "A consumer that is NotInterested is not notified, nor one whose client had said, "
        "before the call that notifies began, that it wants no messages."
    )
    source = SOURCE
    case_events = CaseEvents(frozenset({"notify"}))

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        for e in h.notifies:
            consumer = h.woken[e.i]
            op = h.call_at(e.i)
            tested += sum(
                s.q == consumer.q
                and (s.listed.at(e.i) == "NotInterested" or s.wish.at(e.i) is False)
                for s in h.subscriptions
            )
            began = op.start if op is not None else e.i
            # An acquiring consumer is moved just before it is woken: look at where it was until then.
            # A browser is not; if it was moved in this call, then because it said that it wants work again.
            moved = [
                m
                for m in between(consumer.moves, began, e.i)
                if consumer.acquires and m.proc == e.proc
            ]
            until = next((m.i for m in reversed(moved) if catalogue.move_at(m) == "leave"), e.i)
            if consumer.listed.held("NotInterested", began, until - 1):
                since = last_before(consumer.moves, until)
                assert since is not None
                bad.append(
                    (f"{consumer.name} was notified, NotInterested since {when(since)}", [since, e])
                )
            elif consumer.wish.held(False, began, e.i):
                since_when = consumer.wish.since(began)
                unwilling = h.event(began if since_when is None else since_when)
                why = f"{consumer.name} was notified, whose client wants no messages since {when(unwilling)}"
                bad.append((why, [unwilling, e]))
        return tested


class Wk4(OnReplay):
    """A case is a consumer of higher priority that selects what a lower one is notified of, or takes."""

    id = "WK-4"
    sentence = (
        "A higher-priority consumer that wants the message is notified before a lower one; "
        "when it loses interest, the lower one is notified."
    )
    source = SOURCE
    case_events = CaseEvents(frozenset({"consumer"}), lambda e: bool(e.cprio))

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        for e in h.notifies:
            low, op = h.woken[e.i], h.call_at(e.i)
            if op is None or op.ev not in MAKES_AVAILABLE or not low.acquires:
                continue
            entry = h.entries.get(op.first.m)
            for high in self._higher(h, low):
                if entry is None or not high.selects(entry) or entry.group or entry.expires:
                    continue
                tested += 1
                if high.listed.held("Interested", op.start, e.i) and self._wants(
                    high, op.start, e.i
                ):
                    why = (
                        f"{low.name} (priority {low.cprio}) was notified of {entry.m} while {high.name} "
                        f"(priority {high.cprio}) was Interested"
                    )
                    bad.append((why, [op.first, e]))
        for attempt, at, entry, low in h.acquisitions():
            # What expires may be wanted when the lower one looks for itself, and not when it looks for the higher one.
            if h.kind(entry.q) != "pull" or entry.expires:
                continue
            for high in self._higher(h, low):
                if not high.selects(entry) or not h.group_free(entry, high, attempt.start, at.i):
                    continue
                tested += 1
                if high.until > at.i and self._wants(high, attempt.start, at.i):
                    why = (
                        f"{low.name} (priority {low.cprio}) took {entry.m} although {high.name} "
                        f"(priority {high.cprio}) wanted work all the while"
                    )
                    bad.append((why, [attempt.first, at]))
        return tested

    @staticmethod
    def _higher(h: Replay, low: ConsumerHistory) -> list[ConsumerHistory]:
        return [s for s in h.subscriptions if s.acquires and s.q == low.q and s.cprio > low.cprio]

    @staticmethod
    def _wants(consumer: ConsumerHistory, lo: int, hi: int) -> bool:
        """Whether it could be woken, and its client wanted messages, all through the interval.

        Others step back for it from the moment at which it first comes into a list of the manager, for before nobody
        could wake it; not from the record of its subscription, which is older, or its link in the list of all.
        """
        came = any(move.i < lo for move in consumer.moves[:1])
        return came and consumer.wish.held(True, lo, hi)


class Wk5(OnReplay):
    """A case is a message that was available and that a consumer which is ready at rest selects."""

    id = "WK-5"
    sentence = "Under fair scheduling every available wanted message is eventually delivered."
    source = SOURCE
    kind = "liveness"

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        for q, shot in h.snapshots.items():
            ready = [s for s in ready_at_rest(h, q, shot.i) if s.acquires]
            owners = h.group_owners(q, shot.i)
            for entry in h.entries.values():
                if entry.immediate or entry.expires or not entry.links:
                    continue
                if ("AVAILABLE", "") not in entry.state.values:
                    continue
                takers = [
                    s.name for s in ready if s.selects(entry) and owners.get(entry.group, s) is s
                ]
                if not takers:
                    continue
                tested += 1
                if not entry.delivers:
                    why = f"{entry.m} was never delivered, though {takers} would take it"
                    bad.append((why, entry.links[:1]))
        return tested


class Wk6(OnReplay):
    """A case is a notification of a connection."""

    id = "WK-6"
    sentence = (
        "The hand-over consumer, target, session, connection, scheduler, IO thread schedules a connection "
        "at least once after every notification, leaves nobody waiting when nothing moves any more, "
        "and never runs one connection on two threads; a thread that runs connections gives no target a turn but while "
        "it runs one."
    )
    source = SOURCE + ", the twelve steps"
    case_events = CaseEvents(frozenset({"conn_notify", "conn_run", "handover_rest"}))

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        running: dict[str, Event] = {}
        ended: dict[str, Event] = {}
        """By thread, the end of the connection that it ran, until it runs another."""
        last_end: dict[str, int] = {}
        for e in h.named("conn_run", "turn"):
            if e.ev == "turn":
                if e.proc in ended:
                    bad.append(
                        (f"{e.proc} gives a turn, and runs no connection", [ended[e.proc], e])
                    )
            elif catalogue.run_at(e) == "begin":
                ended.pop(e.proc, None)
                if e.conn in running:
                    bad.append((f"{e.conn} runs on two threads", [running[e.conn], e]))
                running[e.conn] = e
            else:
                running.pop(e.conn, None)
                ended[e.proc] = e
                last_end[e.conn] = e.i
        for e in h.named("handover_rest"):
            for name, n in catalogue.waiting_below(e).items():
                if n:
                    bad.append((f"{n} wait in {name}, and nothing moves", [e]))
        if h.snapshots:
            for e in h.named("conn_notify"):
                tested += 1
                if last_end.get(e.conn, -1) < e.i:
                    bad.append((f"{e.conn} was notified at {when(e)} and not run after that", [e]))
        return tested


class Wk7(OnReplay):
    """A case is a call in which a notified consumer took nothing."""

    id = "WK-7"
    sentence = (
        "After a notified consumer fails to do the work expected of it, somebody else is notified."
    )
    source = SOURCE
    case_events = CaseEvents(frozenset({"qcm_move"}))

    def cases(self, h: Replay, bad: Violations) -> int:
        """A call in which a consumer leaves Notified without taking anything must wake another for whom work waits.

        If the consumer is just being stopped, whoever stops it must, until that call returns.
        Definite only: the work and the other's readiness must have been there from before the call to its end,
        and nobody may be on the way (Notified) at its end, also not the consumer itself, notified again.
        """
        tested = 0
        offers = Offers(e for e in h.entries.values() if not e.expires and not e.group)
        stops: dict[ConsumerHistory | None, list[CallSpan]] = {}
        for call in h.of("work_desired", "close"):
            stops.setdefault(call.by, []).append(call)
        for op, consumer in sorted(self._failures(h), key=lambda f: f[0].end):
            beside = [
                c.end for c in stops.get(consumer, ()) if c.start < op.end and op.start < c.end
            ]
            over = max([op.end, *beside])
            if over == inf:
                continue
            tested += 1
            end = int(over)
            acquirers = [s for s in h.subscriptions if s.acquires and s.q == consumer.q]
            if any(s.listed.at(end) in ("Notified", "") for s in acquirers):
                continue
            others = [s for s in acquirers if s is not consumer]
            for other in others:
                idle = other.listed.held("Interested", op.start, end) and other.wish.held(
                    True, op.start, end
                )
                rivals = self._held_back_by(h, other, op.start, end)
                if not idle or any(r.keys is None for r in rivals):
                    continue
                for entry in offers.selected(other, end):
                    if not entry.offered_before(op.start, end) or any(
                        r.selects(entry) for r in rivals
                    ):
                        continue
                    why = (
                        f"{consumer.name} was notified and took nothing; {entry.m} is there, "
                        f"{other.name} waits for it, and was not woken"
                    )
                    bad.append((why, [op.first, *([op.last] if op.last else [])]))
        return tested

    @staticmethod
    def _failures(h: Replay) -> Iterator[tuple[CallSpan, ConsumerHistory]]:
        """Calls by which a Notified consumer gave up: a dry pull, or interest lost, as on closing."""
        for consumer in h.subscriptions:
            for e in consumer.moves:
                if catalogue.old_list(e) != "Notified" or catalogue.move_at(e) != "enter":
                    continue
                op = h.call_at(e.i)
                if op is None or op.end == inf:
                    continue
                dry = op.ev == "pull" and not op.found
                if dry or (op.ev == "work_desired" and catalogue.new_list(e) != "Interested"):
                    yield op, consumer

    @staticmethod
    def _held_back_by(
        h: Replay, consumer: ConsumerHistory, start: int, end: int
    ) -> list[ConsumerHistory]:
        """Consumers of higher priority that may have wanted work at some time between two indexes."""
        return [
            s
            for s in h.subscriptions
            if s.cprio > consumer.cprio
            and s.acquires
            and s.q == consumer.q
            and not s.wish.held(False, start, end)
        ]


class Wk8(OnReplay):
    """A case is a call that may make work available in the queue before a consumer that found something pulls again."""

    id = "WK-8"
    sentence = (
        "A consumer that was woken is not woken again while it keeps finding messages: "
        "it stays in Notified until it has run dry or lost interest."
    )
    source = SOURCE + ", the Notified list"
    case_events = CaseEvents(frozenset({"pull"}))

    def cases(self, h: Replay, bad: Violations) -> int:
        """Looks at the time between a pull that found something and the consumer's next pull."""
        tested = 0
        pulls: dict[ConsumerHistory, list[CallSpan]] = {}
        for op in h.of("pull"):
            if op.by is not None:
                pulls.setdefault(op.by, []).append(op)
        looks: dict[str, list[tuple[Event, float, ConsumerHistory]]] = {}
        """By queue: the end of each pull that found something, and until when its consumer was about to look again."""
        for consumer, ops in pulls.items():
            rests = [m.i for m in consumer.moves if catalogue.new_list(m) in RESTING]
            for op, following in zip(ops, [*ops[1:], None], strict=True):
                if not consumer.acquires or not op.found or op.last is None:
                    continue
                rested = rests[bisect_right(rests, op.start) :][:1]
                until = min([following.start if following else inf, consumer.until, *rested])
                looks.setdefault(consumer.q, []).append((op.last, until, consumer))
        for q, of_queue in looks.items():
            offers = [op for op in h.of(*MAKES_AVAILABLE, "work_desired") if op.end != inf]
            offers = [op for op in offers if self._queue(h, op) in (q, "")]
            starts = [o.start for o in offers]
            over = Ended((o.end, o.start) for o in offers)
            for found, until, consumer in sorted(of_queue, key=lambda look: look[0].i):
                # Begun before the next look, but for those that were over before this one ended.
                tested += bisect_left(starts, until) - bisect_left(over.before(found.i), until)
                woken = between(consumer.notified, found.i, until)
                again = next((e for e in woken if h.decided(e) > found.i), None)
                if again is not None:
                    why = f"{consumer.name} had taken {found.m}, was about to look for more, and was woken"
                    bad.append((why, [found, again]))
        return tested

    @staticmethod
    def _queue(h: Replay, op: CallSpan) -> str:
        """The queue that a call is about; '' for housekeeping, which does not say."""
        if op.by is not None:
            return op.by.q
        return h.entries[op.first.m].q if op.first.m in h.entries else ""


class Wk11(OnReplay):
    """A case is a call that may wake others, while a consumer of its queue waits to be woken."""

    id = "WK-11"
    sentence = (
        "No wake-up without a reason: a call that makes messages available wakes consumers that select one of them, "
        "at most one acquiring consumer for each; one by which a consumer resumes wakes that one, "
        "one by which an acquiring consumer gives up or finds nothing at most one other; no other call wakes anybody. "
        "In place of a consumer one of higher priority is woken to which it leaves a message that both select."
    )
    source = SOURCE
    case_events = PULL_QUEUE

    def cases(self, h: Replay, bad: Violations) -> int:
        woken: dict[CallSpan, list[Event]] = {}
        for e in h.notifies:
            call = h.call_at(e.i)
            if call is not None and not self._joined_in(h, h.woken[e.i], call):
                woken.setdefault(call, []).append(e)
        for call, events in woken.items():
            if wrong := self._without_reason(h, call, events):
                names = [catalogue.sub(e) for e in events]
                bad.append((f"{call.ev} woke {names}: {wrong}", [call.first, *events]))
        waiting = [s for s in h.subscriptions if s.listed.values]
        return sum(
            any(
                s is not call.by and s.listed.at(call.start) in ("Interested", "NonAcquiring")
                for s in waiting
            )
            for call in h.of(*MAKES_AVAILABLE, "dequeue", "pull", "work_desired")
        )

    @staticmethod
    def _joined_in(h: Replay, consumer: ConsumerHistory, call: CallSpan) -> bool:
        """Whether the consumer subscribed within the call, by the target that the call woke: it looks for itself."""
        return consumer.since > call.start and h.event(consumer.since).proc == call.proc

    def _without_reason(self, h: Replay, call: CallSpan, events: list[Event]) -> str:
        """What is wrong with the wake-ups of a call; '' if nothing is."""
        consumers = [h.woken[e.i] for e in events]
        acquiring = sum(c.acquires for c in consumers)
        if call.ev in ("pull", "work_desired"):
            resumes = call.ev == "work_desired" and catalogue.desired(call.first)
            if len(events) > 1:
                return "at most one has a reason"
            due = [call.by] if resumes else [c for c in h.subscriptions if c is not call.by]
            if not any(self._may_wake(h, consumers[0], c, call, events[0].i) for c in due):
                return (
                    f"it is {'not ' * resumes}the one that {'resumes' if resumes else 'gives up'}"
                )
            gives_up = resumes or (call.by is not None and call.by.acquires and not call.found)
            return "" if gives_up else "nobody gave up"
        announced = self._announced(h, call, events[-1].i)
        if acquiring > len(announced):
            return f"{acquiring} for {[entry.m for entry in announced]}"
        select = [c for c in h.subscriptions if any(c.selects(entry) for entry in announced)]
        for woken, event in zip(consumers, events, strict=True):
            if not any(self._may_wake(h, woken, c, call, event.i) for c in select):
                return f"not all of them select any of {[entry.m for entry in announced]}"
        return ""

    @staticmethod
    def _may_wake(
        h: Replay, woken: ConsumerHistory, due: ConsumerHistory | None, call: CallSpan, until: int
    ) -> bool:
        """Whether `woken` is the one due, or of higher priority, and a message was there that both select."""
        if due is None or woken is due:
            return woken is due
        return (
            woken.acquires
            and due.acquires
            and woken.cprio > due.cprio
            and any(
                woken.selects(entry)
                and due.selects(entry)
                and ("AVAILABLE", "") in entry.state.during(call.start, until)
                for entry in h.entries.values()
            )
        )

    @staticmethod
    def _announced(h: Replay, call: CallSpan, until: int) -> list[EntryHistory]:
        """The messages that the call may have made available, those of a group that it may have set free included."""
        if call.ev == "check_status":
            return [
                entry
                for entry in h.entries.values()
                if any(
                    catalogue.ok(e) and catalogue.new_state(e) == "AVAILABLE"
                    for e in entry.changes
                    if h.call_at(e.i) is call
                )
            ]
        entry = h.entries.get(call.first.m)
        own = []
        if entry is not None and (
            call.ev == "release" or (call.ev == "enqueue" and not entry.not_before)
        ):
            own = [entry]
        # An attempt that joined a group in vain leaves it again.
        group = entry.group if entry is not None else None if call.ev == "attempt" else ""
        if call.ev == "enqueue" or group == "":
            return own
        return [
            other
            for other in h.entries.values()
            if other.group
            and group in (None, other.group)
            and ("AVAILABLE", "") in other.state.during(call.start, until)
        ]


WAKEUPS = (Wk1(), Wk2(), Wk3(), Wk4(), Wk5(), Wk6(), Wk7(), Wk8(), Wk11())
