"""WK: which consumers are woken, and that none that should be is forgotten (article "Consumer-Queue Interactions")."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate
from math import inf

from seriatim_models.history import catalogue
from seriatim_models.history.catalogue import ConsumerAtRest
from seriatim_models.history.event import Event
from seriatim_models.properties.base import Finding
from seriatim_models.properties.whitebox.entries import Violations
from seriatim_models.properties.whitebox.pointers import ahead
from seriatim_models.properties.whitebox.replay import OnReplay, Replay
from seriatim_models.properties.whitebox.state import CallSpan, ConsumerHistory
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


def ready_at_rest(h: Replay, shot: Event) -> Iterator[tuple[ConsumerHistory, ConsumerAtRest]]:
    """Consumers that, at quiescence, are open, want work and can pay for a message."""
    for name, state in catalogue.consumers(shot).items():
        consumer = h.consumers.get(name)
        if (
            consumer is not None
            and consumer.until > shot.i
            and state["wants_work"]
            and state["credit"] != 0
        ):
            yield consumer, state


class Wk1(OnReplay):
    """A case is a message that a consumer which is ready at rest selects."""

    id = "WK-1"
    sentence = (
        "No lost wake-up: at quiescence there is no interested consumer with an available message "
        "that it could take."
    )
    source = SOURCE
    kind = "safety"

    def judge(self, h: Replay) -> Finding:
        bad: Violations = []
        tested = untestable = 0
        for q, shot in h.snapshots.items():
            groups = catalogue.groups(shot)
            now = h.clock.at(shot.i)
            for consumer, state in ready_at_rest(h, shot):
                tested += h.choice(consumer).total() if consumer.q == q else 0
                for m, _, name, _ in catalogue.entries(shot):
                    entry = h.entries.get(m)
                    if entry is None or name != "AVAILABLE" or not consumer.selects(entry):
                        continue
                    if (
                        consumer.acquires
                        and groups.get(entry.group, consumer.name) != consumer.name
                    ):
                        continue
                    if not consumer.acquires and ahead(state["pointer"], entry):
                        continue
                    if entry.expires and (now is None or now > entry.expires):
                        untestable += 1
                        continue
                    since = h.event(entry.state.when[-1])
                    woken = h.woken.get(consumer.name, [])[-1:]
                    bad.append(
                        (
                            f"{consumer.name} rests and is ready, {m} is available since {since.i}, and nothing moves"
                            + (
                                f"; {consumer.name} was last woken at {woken[0].i}" if woken else ""
                            ),
                            sorted([since, *woken], key=lambda e: e.i),
                        )
                    )
        return Finding.of(self.id, tested, bad, n_untestable=untestable)


class Wk2(OnReplay):
    """A case is an enqueue while several consumers waited, and a browser that waited for the message."""

    id = "WK-2"
    sentence = (
        "No herd: one new message notifies every interested non-acquiring consumer "
        "and at most one acquiring one."
    )
    source = SOURCE
    kind = "safety"

    def judge(self, h: Replay) -> Finding:
        bad: Violations = []
        tested = 0
        by_thread: dict[str, list[Event]] = {}
        for e in h.notifies:
            by_thread.setdefault(e.proc, []).append(e)
        furthest = {
            s.name: list(accumulate((catalogue.new_pointer(e) for e in s.pointer), max))
            for s in h.consumers.values()
            if not s.acquires
        }
        for op in h.of("enqueue"):
            entry = h.entries[op.first.m]
            if op.end == inf or not entry.links or h.kind(entry.q) != "pull":
                continue
            woken = between(by_thread.get(op.proc, ()), op.start, op.end)
            acquiring = [e for e in woken if h.consumers[catalogue.sub(e)].acquires]
            waiting = [
                s
                for s in h.consumers.values()
                if s.acquires and s.listed.at(op.start) == "Interested"
            ]
            tested += len(waiting) > 1
            if len(acquiring) > 1:
                names = [catalogue.sub(e) for e in acquiring]
                bad.append((f"enqueue({entry.m}) woke {names}", acquiring))
            for consumer in h.consumers.values():
                # Nobody is woken for what has expired, and when it did one cannot tell from outside.
                if consumer.acquires or entry.expires or not consumer.selects(entry):
                    continue
                moves = how_many_before(consumer.pointer, op.end)
                if (
                    consumer.listed.held("NonAcquiring", op.start, int(op.end))
                    and entry.available_through(entry.links[0].i, int(op.end))
                    and not (moves and ahead(furthest[consumer.name][moves - 1], entry))
                ):
                    tested += 1
                    if consumer.name not in [catalogue.sub(e) for e in woken]:
                        bad.append(
                            (f"enqueue({entry.m}) did not wake browser {consumer.name}", [op.first])
                        )
        return Finding.of(self.id, tested, bad)


class Wk3(OnReplay):
    """A case is a consumer that was NotInterested when another was notified."""

    id = "WK-3"
    sentence = "A consumer that is NotInterested is not notified."
    source = SOURCE
    kind = "safety"

    def judge(self, h: Replay) -> Finding:
        bad: Violations = []
        tested = 0
        for e in h.notifies:
            consumer = h.consumers[catalogue.sub(e)]
            op = h.call_at(e.i)
            tested += sum(s.listed.at(e.i) == "NotInterested" for s in h.consumers.values())
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
                    (f"{consumer.name} was notified, NotInterested since {since.i}", [since, e])
                )
        return Finding.of(self.id, tested, bad)


class Wk4(OnReplay):
    """A case is a consumer of higher priority when a lower one is notified or takes a message."""

    id = "WK-4"
    sentence = (
        "A higher-priority consumer that wants the message is notified before a lower one; "
        "when it loses interest, the lower one is notified."
    )
    source = SOURCE
    kind = "safety"

    def judge(self, h: Replay) -> Finding:
        bad: Violations = []
        tested = 0
        for e in h.notifies:
            low, op = h.consumers[catalogue.sub(e)], h.call_at(e.i)
            if op is None or op.ev not in MAKES_AVAILABLE or not low.acquires:
                continue
            entry = h.entries.get(op.first.m)
            for high in self._higher(h, low):
                if entry is None or not high.selects(entry) or entry.group:
                    continue
                tested += 1
                if high.listed.held("Interested", op.start, e.i) and self._wants(
                    high, op.start, e.i
                ):
                    bad.append(
                        (
                            f"{low.name} (priority {low.cprio}) was notified of {entry.m} while {high.name} "
                            f"(priority {high.cprio}) was Interested",
                            [op.first, e],
                        )
                    )
        for attempt, at, entry, low in h.acquisitions():
            if h.kind(entry.q) != "pull":
                continue
            for high in self._higher(h, low):
                if not high.selects(entry) or not h.group_free(entry, high, attempt.start, at.i):
                    continue
                tested += 1
                if high.until > at.i and self._wants(high, attempt.start, at.i):
                    bad.append(
                        (
                            f"{low.name} (priority {low.cprio}) took {entry.m} although {high.name} "
                            f"(priority {high.cprio}) wanted work all the while",
                            [attempt.first, at],
                        )
                    )
        return Finding.of(self.id, tested, bad)

    @staticmethod
    def _higher(h: Replay, low: ConsumerHistory) -> list[ConsumerHistory]:
        return [
            s for s in h.consumers.values() if s.acquires and s.q == low.q and s.cprio > low.cprio
        ]

    @staticmethod
    def _wants(consumer: ConsumerHistory, lo: int, hi: int) -> bool:
        return consumer.wants.held(True, lo, hi) and consumer.since < lo


class Wk5(OnReplay):
    """A case is a message that was available and that a consumer which is ready at rest selects."""

    id = "WK-5"
    sentence = "Under fair scheduling every available wanted message is eventually delivered."
    source = SOURCE
    kind = "liveness"

    def judge(self, h: Replay) -> Finding:
        bad: Violations = []
        tested = 0
        for q, shot in h.snapshots.items():
            takers = [s for s, _ in ready_at_rest(h, shot) if s.acquires and s.q == q]
            for entry in h.entries.values():
                if entry.immediate or entry.expires or not any(s.selects(entry) for s in takers):
                    continue
                if ("AVAILABLE", "") not in entry.state.values or entry.group:
                    continue
                tested += 1
                given = [e for e in entry.delivers if h.consumers[catalogue.sub(e)].acquires]
                if not given:
                    bad.append(
                        (
                            f"{entry.m} was never delivered, though {[s.name for s in takers]} would take it",
                            entry.links[:1],
                        )
                    )
        return Finding.of(self.id, tested, bad)


class Wk6(OnReplay):
    """A case is a notification of a connection."""

    id = "WK-6"
    sentence = (
        "The hand-over consumer, target, session, connection, scheduler, IO thread schedules a connection "
        "at least once after every notification and never runs one connection on two threads."
    )
    source = SOURCE + ", the twelve steps"
    kind = "safety"

    def judge(self, h: Replay) -> Finding:
        bad: Violations = []
        tested = 0
        running: dict[str, Event] = {}
        last_end: dict[str, int] = {}
        for e in h.events:
            if e.ev != "conn_run":
                continue
            if catalogue.run_at(e) == "begin":
                if e.conn in running:
                    bad.append((f"{e.conn} runs on two threads", [running[e.conn], e]))
                running[e.conn] = e
            else:
                running.pop(e.conn, None)
                last_end[e.conn] = e.i
        if h.snapshots:
            for e in h.events:
                if e.ev == "conn_notify":
                    tested += 1
                    if last_end.get(e.conn, -1) < e.i:
                        bad.append((f"{e.conn} was notified at {e.i} and not run after that", [e]))
        return Finding.of(self.id, tested, bad)


class Wk7(OnReplay):
    """A case is a call in which a notified consumer took nothing."""

    id = "WK-7"
    sentence = (
        "After a notified consumer fails to do the work expected of it, somebody else is notified."
    )
    source = SOURCE
    kind = "safety"

    def judge(self, h: Replay) -> Finding:
        """A call in which a consumer leaves Notified without taking anything must wake another for whom work waits.

        Definite only: the work and the other's readiness must have been there from before the call to its end,
        and nobody may be on the way (Notified) at its end.
        """
        bad: Violations = []
        tested = 0
        offers = Offers(e for e in h.entries.values() if not e.expires and not e.group)
        for op, consumer in sorted(self._failures(h), key=lambda f: f[0].end):
            tested += 1
            end = int(op.end)
            others = [
                s
                for s in h.consumers.values()
                if s is not consumer and s.acquires and s.q == consumer.q
            ]
            if any(s.listed.at(end) in ("Notified", "") for s in others):
                continue
            for other in others:
                idle = other.listed.held("Interested", op.start, end) and other.wants.held(
                    True, op.start, end
                )
                rivals = self._held_back_by(h, other, op)
                if not idle or any(r.keys is None for r in rivals):
                    continue
                for entry in offers.selected(other, end):
                    if not entry.offered_before(op.start, end) or any(
                        r.selects(entry) for r in rivals
                    ):
                        continue
                    bad.append(
                        (
                            f"{consumer.name} was notified and took nothing; {entry.m} is there, "
                            f"{other.name} waits for it, and was not woken",
                            [op.first, *([op.last] if op.last else [])],
                        )
                    )
        return Finding.of(self.id, tested, bad)

    @staticmethod
    def _failures(h: Replay) -> Iterator[tuple[CallSpan, ConsumerHistory]]:
        """Calls by which a Notified consumer gave up: a dry pull, or interest lost, as on closing."""
        for consumer in h.consumers.values():
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
    def _held_back_by(h: Replay, consumer: ConsumerHistory, op: CallSpan) -> list[ConsumerHistory]:
        """Consumers of higher priority that may have wanted work at some time of the call."""
        return [
            s
            for s in h.consumers.values()
            if s.cprio > consumer.cprio
            and s.acquires
            and s.q == consumer.q
            and not s.wants.held(False, op.start, int(op.end))
        ]


class Wk8(OnReplay):
    """A case is a call that makes work available before a consumer that found something pulls again."""

    id = "WK-8"
    sentence = (
        "A consumer that was woken is not woken again while it keeps finding messages: "
        "it stays in Notified until it has run dry or lost interest."
    )
    source = SOURCE + ", the Notified list"
    kind = "safety"

    def judge(self, h: Replay) -> Finding:
        """Looks at the time between a pull that found something and the consumer's next pull."""
        bad: Violations = []
        tested = 0
        pulls: dict[str, list[CallSpan]] = {}
        for op in h.of("pull"):
            if op.consumer in h.consumers:
                pulls.setdefault(op.consumer, []).append(op)
        looks: list[tuple[Event, float, ConsumerHistory]] = []
        """The end of each pull that found something, and until when its consumer was about to look again."""
        for name, ops in pulls.items():
            consumer = h.consumers[name]
            rests = [m.i for m in consumer.moves if catalogue.new_list(m) in RESTING]
            for op, following in zip(ops, [*ops[1:], None], strict=True):
                if not consumer.acquires or not op.found or op.last is None:
                    continue
                rested = rests[bisect_right(rests, op.start) :][:1]
                until = min([following.start if following else inf, consumer.until, *rested])
                looks.append((op.last, until, consumer))
        offers = [op for op in h.of(*MAKES_AVAILABLE, "work_desired") if op.end != inf]
        starts = [o.start for o in offers]
        over = Ended((o.end, o.start) for o in offers)
        for found, until, consumer in sorted(looks, key=lambda look: look[0].i):
            # Begun before the next look, but for those that were over before this one ended.
            tested += bisect_left(starts, until) - bisect_left(over.before(found.i), until)
            woken = between(h.woken.get(consumer.name, ()), found.i, until)
            again = next((e for e in woken if h.decided(e) > found.i), None)
            if again is not None:
                bad.append(
                    (
                        f"{consumer.name} had taken {found.m}, was about to look for more, and was woken",
                        [found, again],
                    )
                )
        return Finding.of(self.id, tested, bad)


WAKEUPS = (Wk1(), Wk2(), Wk3(), Wk4(), Wk5(), Wk6(), Wk7(), Wk8())
