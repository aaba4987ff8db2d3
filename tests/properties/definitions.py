"""What the properties say, read literally: every event against every other, as their sentences have it.

The properties that the package has give the same verdicts, counts and witnesses, and cost a search where these scan:
`test_definitions.py` compares the two. Whoever doubts a sweep reads here what it must come to.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from seriatim_models.history import Event, catalogue
from seriatim_models.properties.base import Finding, Violations
from seriatim_models.properties.whitebox import entries, lists, order, pointers, wakeups
from seriatim_models.properties.whitebox.order import amqp_0_10_level
from seriatim_models.properties.whitebox.pointers import ahead
from seriatim_models.properties.whitebox.replay import OnReplay, Replay, when
from seriatim_models.properties.whitebox.state import CallSpan, ConsumerHistory, EntryHistory
from seriatim_models.properties.whitebox.wakeups import MAKES_AVAILABLE, RESTING, ready_at_rest


class Literal(Replay):
    """A replay that looks through all entries and all attempts to know who owned a group."""

    def group_free(self, entry: EntryHistory, consumer: ConsumerHistory, lo: int, hi: int) -> bool:
        """Whether certainly nobody but `consumer` owned the entry's group between the two indexes."""
        if not entry.group:
            return True
        for other in self.entries.values():
            if other.group == entry.group and other.q == entry.q:
                for i, by in other.acquirers.items():
                    if by is not consumer and i <= hi:
                        until = next((w for w in other.state.when if w > i), None)
                        ended = None if until is None else self.call_at(until)
                        if until is None or until >= lo or (ended and ended.end >= lo):
                            return False
        return not self.attempts_of_others(consumer, lo, hi)

    def attempts_of_others(self, consumer: ConsumerHistory | None, lo: int, hi: int) -> bool:
        """Whether an attempt for anybody but `consumer` was under way between the two indexes."""
        return any(
            op.start <= hi and op.end >= lo and (op.by is not consumer or consumer is None)
            for op in self.of("attempt")
        )


class So1(order.So1):
    def judge(self, h: Replay) -> Finding:
        bad: Violations = []
        tested = 0
        linked = [e for e in h.entries.values() if e.links]
        places: dict[tuple[str, tuple[int, int]], EntryHistory] = {}
        for entry in linked:
            twin = places.setdefault((entry.q, entry.place), entry)
            if twin is not entry:
                bad.append(
                    (f"{entry.m} and {twin.m} have one place", [twin.links[0], entry.links[0]])
                )
        for x in linked:
            for y in linked:
                if x is y or x.q != y.q or x.place[0] != y.place[0]:
                    continue
                if x.enqueued and y.enqueued and x.enqueued.end < y.enqueued.start:
                    tested += 1
                    if x.place > y.place and x.enqueued.last:
                        bad.append(
                            (
                                f"{x.m} was enqueued before enqueue({y.m}) began, yet stands behind it",
                                [x.enqueued.last, y.enqueued.first, y.links[0]],
                            )
                        )
        return Finding.of(self.id, tested, bad)


def overtaken(
    h: Replay,
    attempt: CallSpan,
    at: Event,
    taken: EntryHistory,
    consumer: ConsumerHistory,
    skips: Callable[[EntryHistory], bool] = lambda e: False,
) -> tuple[list[EntryHistory], int]:
    """Entries before `taken` that were `consumer`'s to take through the whole attempt, and how many are undecidable."""
    passed: list[EntryHistory] = []
    unknown = 0
    for entry in h.entries.values():
        if entry is taken or not entry.links or skips(entry) or not consumer.selects(entry):
            continue
        if entry.place < taken.place and entry.offered_before(attempt.start, at.i):
            if entry.expires or not h.group_free(entry, consumer, attempt.start, at.i):
                unknown += 1
            else:
                passed.append(entry)
    return passed, unknown


def _order(
    prop: OnReplay,
    h: Replay,
    path: str = "",
    skips: Callable[[EntryHistory, EntryHistory], bool] = lambda taken, other: False,
) -> Finding:
    bad: Violations = []
    tested = untestable = 0
    for attempt, at, taken, consumer in h.acquisitions():
        if path and catalogue.path.get(attempt.first, "") != path:
            continue
        tested += any(
            e.links
            and consumer.selects(e)
            and not skips(taken, e)
            and e.state.at(at.i) == ("AVAILABLE", "")
            for e in h.entries.values()
        )
        passed, unknown = overtaken(h, attempt, at, taken, consumer, lambda e: skips(taken, e))  # noqa: B023  # called at once
        untestable += unknown
        if passed:
            first = min(passed, key=lambda e: e.place)
            since = first.state.since(attempt.start)
            offer = next(e for e in h.events if e.i == since)
            bad.append(
                (
                    f"{first.m} was available to {consumer.name} from {when(offer)} on, yet {consumer.name}, "
                    f"which looked from {when(attempt.first)}, took {taken.m} at {when(at)}",
                    [offer, attempt.first, at],
                )
            )
    return Finding.of(prop.id, tested, bad, n_untestable=untestable)


class So3(order.So3):
    def judge(self, h: Replay) -> Finding:
        return _order(self, h)


class So4(order.So4):
    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        for consumer in h.subscriptions:
            if consumer.acquires:
                continue
            for before, now in zip([None, *consumer.delivers], consumer.delivers, strict=False):
                tested += 1
                entry = h.entries[now.m]
                past = [*entry.place, 1]
                if not any(
                    e.proc == now.proc and e.i < now.i and e.args["new"] == past
                    for e in reversed(consumer.pointer)
                ):
                    bad.append((f"{consumer.name} was shown {now.m}, and not moved past it", [now]))
                if not consumer.selects(entry):
                    bad.append(
                        (f"{consumer.name} was shown {now.m}, which it does not select", [now])
                    )
                if before is not None and entry.place <= h.entries[before.m].place:
                    bad.append(
                        (
                            f"{consumer.name} was shown {now.m} after {before.m}: not forward",
                            [before, now],
                        )
                    )
                attempt = h.call_at(now.i)
                if attempt is None or attempt.ev != "attempt":
                    continue
                states = [
                    state
                    for i in range(attempt.start, now.i + 1)
                    if (state := entry.state.at(i)) is not None
                ]
                if states and ("AVAILABLE", "") not in states:
                    why = f"{consumer.name} was shown {now.m}, which was {states[0][0]} and not available"
                    bad.append((why, [attempt.first, now]))
        bad += self._changes(h)
        return tested


class So5(order.So5):
    def judge(self, h: Replay) -> Finding:
        bad: Violations = []
        for entry in h.entries.values():
            levels = h.levels(entry.q)
            if levels > 1 and entry.links:
                level = levels - 1 - entry.place[0]
                due = amqp_0_10_level(entry.prio, levels)
                if level != due:
                    bad.append(
                        (
                            f"{entry.m} of priority {entry.prio} is on level {level} of {levels}, not {due}",
                            entry.links[:1],
                        )
                    )
        order = _order(
            self,
            h,
            skips=lambda taken, other: other.q != taken.q or other.place[0] == taken.place[0],
        )
        if order.witness:
            bad.append((order.explanation, list(order.witness)))
        return Finding.of(self.id, order.n_tested, bad, n_untestable=order.n_untestable)


class So6(order.So6):
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
        for attempt in h.of("attempt"):
            if catalogue.path.get(attempt.first, "") == "shortcut" and attempt.by is not None:
                available = [
                    e
                    for e in h.entries.values()
                    if e.links
                    and attempt.by.selects(e)
                    and e.state.at(attempt.start) == ("AVAILABLE", "")
                ]
                tested += len(available) > 1
        return Finding.of(self.id, tested, bad, n_untestable=order.n_untestable)


class Es4(entries.Es4):
    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        for op in h.of("release", "dequeue"):
            entry = h.entry(op.first.m)
            state = entry.state.at(op.start)
            if state is not None and state != ("ACQUIRED", op.consumer):
                tested += 1  # somebody who does not hold it tries
            for e in entry.changes:
                if catalogue.ok(e) and e.args["old"] == "ACQUIRED" and h.call_at(e.i) is op:
                    tested += 1
                    acquirer = entry.acquirer(e.i - 1)
                    if catalogue.sub(e) != op.consumer or (acquirer or op.by) is not op.by:
                        bad.append(
                            (
                                f"{op.ev}({entry.m}) by {op.consumer} ended what {catalogue.sub(e)} held",
                                [op.first, e],
                            )
                        )
        for entry in h.entries.values():
            for e in entry.changes:
                by = h.call_at(e.i)
                by_holder = (
                    by is not None and by.ev in ("release", "dequeue") and by.first.m == entry.m
                )
                if catalogue.ok(e) and e.args["old"] == "ACQUIRED" and not by_holder:
                    bad.append((f"{entry.m} was taken from {catalogue.sub(e)}", [e]))
        return tested


class Im3(entries.Im3):
    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        submits = [e for e in h.events if e.ev == "job" and e.args["at"] == "submit"]
        begins = [e for e in h.events if e.ev == "job" and e.args["at"] == "begin"]
        refused = [e for e in h.events if e.ev == "job" and e.args["at"] == "refused"]
        for other in submits:
            before = [e for e in h.events if e.ev == "job" and e.i < other.i]
            if len(h.queues) == 1 and before and before[-1] in submits:
                why = "a second delivery is asked for while one is pending"
                bad.append((why, [before[-1], other]))
        for entry, since, op in self._deliverable(h):
            assert op.last is not None
            if [e for e in refused if since <= e.i < op.end]:
                continue
            tested += 1
            ended = len([e for e in (*begins, *refused) if e.i < op.end])
            pending = len([e for e in submits if e.i < op.end]) - ended
            if pending <= 0 and not [e for e in begins if since < e.i < op.end]:
                bad.append(
                    (
                        f"{op.ev} returned, {entry.m} is available, and no delivery will begin",
                        [h.event(since), op.last],
                    )
                )
        return tested


class Mg1(entries.Mg1):
    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        for taken in h.entries.values():
            for i, consumer in taken.acquirers.items():
                for other in h.entries.values():
                    if not taken.group or other is taken:
                        continue
                    if (other.q, other.group) != (taken.q, taken.group):
                        continue
                    tested += 1
                    holder = other.acquirer(i)
                    if consumer is None or holder is None or holder is consumer:
                        continue
                    earlier = next(e for e in h.events if e.i == other.state.since(i))
                    at = next(e for e in h.events if e.i == i)
                    bad.append(
                        (
                            f"{consumer.name} took {taken.m} while {holder.name} held {other.m} "
                            f"of the same group {taken.group}",
                            [earlier, at],
                        )
                    )
        return tested


class Tm2(entries.Tm2):
    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        timed = [e for e in h.entries.values() if e.links and (e.expires or e.not_before)]
        for op in h.of("check_status"):
            began = h.clock.at(op.start)
            if op.last is None or began is None:
                continue
            for entry in timed:
                over = entry.expires and began > entry.expires
                for state, due in (("AVAILABLE", over), ("DELAYED", began >= entry.not_before)):
                    if due and entry.state.at(op.start) == (state, ""):
                        tested += 1
                        if entry.state.held((state, ""), op.start, op.last.i):
                            why = f"{entry.m} was {state} all through a pass that should have ended that"
                            bad.append((why, [op.first, op.last]))
        return tested


class Sp3(pointers.Sp3):
    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        for consumer in h.subscriptions:
            for e in consumer.pointer:
                if catalogue.cause(e) == "rewind":
                    continue
                began = h.scan_start(e)
                tested += 1
                for entry in h.entries.values():
                    if (
                        entry.links
                        and consumer.selects(entry)
                        and not entry.expires
                        and not ahead(e.args["old"], entry)
                        and ahead([*e.args["new"][:2], 0], entry)
                        and entry.available_through(began, e.i)
                        and (not consumer.acquires or h.group_free(entry, consumer, began, e.i))
                    ):
                        since = next(x for x in h.events if x.i == entry.state.since(began))
                        bad.append(
                            (
                                f"{consumer.name} was moved past {entry.m}, available since {when(since)}",
                                [since, e],
                            )
                        )
        return tested


class Wk1(wakeups.Wk1):
    def judge(self, h: Replay) -> Finding:
        bad: Violations = []
        tested = untestable = 0
        for q, shot in h.snapshots.items():
            now = h.clock.at(shot.i)
            for consumer in ready_at_rest(h, q, shot.i):
                for entry in h.entries.values():
                    if not entry.links or not consumer.selects(entry):
                        continue
                    tested += 1
                    if entry.state.at(shot.i) != ("AVAILABLE", ""):
                        continue
                    holders = [
                        other.acquirer(shot.i)
                        for other in h.entries.values()
                        if other.q == q
                        and other.group == entry.group != ""
                        and (other.state.at(shot.i) or ("",))[0] == "ACQUIRED"
                    ]
                    if consumer.acquires and holders and holders[-1] is not consumer:
                        continue
                    if not consumer.acquires and ahead(consumer.points, entry):
                        continue
                    if entry.expires and (now is None or now > entry.expires):
                        untestable += 1
                        continue
                    bad.append(self._forgotten(h, consumer, entry))
        return Finding.of(self.id, tested, bad, n_untestable=untestable)


class Wk2(wakeups.Wk2):
    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        for op in h.of("enqueue"):
            entry = h.entries[op.first.m]
            if op.end == inf or not entry.links or h.kind(entry.q) != "pull":
                continue
            woken = [e for e in h.notifies if e.proc == op.proc and op.start < e.i < op.end]
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
                if consumer.acquires or entry.expires or not consumer.selects(entry):
                    continue
                if (
                    consumer.listed.held("NonAcquiring", op.start, int(op.end))
                    and entry.available_through(entry.links[0].i, int(op.end))
                    and not any(
                        ahead(e.args["new"], entry) for e in consumer.pointer if e.i < op.end
                    )
                ):
                    tested += 1
                    if consumer not in [h.woken[e.i] for e in woken]:
                        bad.append(
                            (f"enqueue({entry.m}) did not wake browser {consumer.name}", [op.first])
                        )
        return tested


class Wk3(wakeups.Wk3):
    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        for e in h.notifies:
            consumer = h.woken[e.i]
            op = h.call_at(e.i)
            for s in h.subscriptions:
                unwilling = s.listed.at(e.i) == "NotInterested" or s.wish.at(e.i) is False
                tested += s.q == consumer.q and unwilling
            began = op.start if op is not None else e.i
            # An acquiring consumer is moved just before it is woken: look at where it was until then.
            # A browser is not; if it was moved in this call, then because it said that it wants work again.
            moved = [
                m
                for m in consumer.moves
                if consumer.acquires and m.proc == e.proc and began < m.i < e.i
            ]
            until = next((m.i for m in reversed(moved) if m.args["at"] == "leave"), e.i)
            if consumer.listed.held("NotInterested", began, until - 1):
                since = next(m for m in reversed(consumer.moves) if m.i < until)
                bad.append(
                    (f"{consumer.name} was notified, NotInterested since {when(since)}", [since, e])
                )
            elif all(consumer.wish.at(i) is False for i in range(began, e.i + 1)):
                asked = next(x for x in h.events if x.i == consumer.wish.since(began))
                bad.append(
                    (
                        f"{consumer.name} was notified, whose client wants no messages since {when(asked)}",
                        [asked, e],
                    )
                )
        return tested


class Wk7(wakeups.Wk7):
    def cases(self, h: Replay, bad: Violations) -> int:
        """A call in which a consumer leaves Notified without taking anything must wake another for whom work waits.

        If the consumer is just being stopped, whoever stops it must, until that call returns.
        Definite only: the work and the other's readiness must have been there from before the call to its end,
        and nobody may be on the way (Notified) at its end.
        """
        tested = 0
        for op, consumer in self._failures(h):
            end = op.end
            for stop in h.of("work_desired", "close"):
                if stop.by is consumer and stop.start < op.end and op.start < stop.end:
                    end = max(end, stop.end)
            if end == inf:
                continue
            tested += 1
            end = int(end)
            others = [
                s for s in h.subscriptions if s is not consumer and s.acquires and s.q == consumer.q
            ]
            if any(s.listed.at(end) in ("Notified", "") for s in others):
                continue
            for other in others:
                idle = other.listed.held("Interested", op.start, end) and other.wish.held(
                    True, op.start, end
                )
                for entry in h.entries.values():
                    if not idle or not other.selects(entry) or entry.expires or entry.group:
                        continue
                    if not entry.offered_before(op.start, end) or self._held_back(
                        h, other, entry, op.start, end
                    ):
                        continue
                    bad.append(
                        (
                            f"{consumer.name} was notified and took nothing; {entry.m} is there, "
                            f"{other.name} waits for it, and was not woken",
                            [op.first, *([op.last] if op.last else [])],
                        )
                    )
        return tested

    @staticmethod
    def _held_back(
        h: Replay, consumer: ConsumerHistory, entry: EntryHistory, start: int, end: int
    ) -> bool:
        """Whether somebody of higher priority may have been waiting for the entry at some time of the call."""
        return any(
            s.cprio > consumer.cprio
            and s.acquires
            and s.selects(entry)
            and not s.wish.held(False, start, end)
            for s in h.subscriptions
        )


class Wk8(wakeups.Wk8):
    def cases(self, h: Replay, bad: Violations) -> int:
        """Looks at the time between a pull that found something and the consumer's next pull."""
        tested = 0
        offers = [op for op in h.of(*MAKES_AVAILABLE, "work_desired") if op.end != inf]
        for consumer in h.subscriptions:
            ops = [op for op in h.of("pull") if op.by is consumer]
            for op, following in zip(ops, [*ops[1:], None], strict=False):
                if not consumer.acquires or not op.found or op.last is None:
                    continue
                until = min(following.start if following else inf, consumer.until)
                rested = (
                    m.i for m in consumer.moves if m.i > op.start and m.args["new"] in RESTING
                )
                until = min(until, next(rested, inf))
                tested += sum(
                    o.start < until and o.end > op.end and self._queue(h, o) in (consumer.q, "")
                    for o in offers
                )
                woken = (e for e in consumer.notified if op.end < e.i < until)
                again = next((e for e in woken if h.decided(e) > op.end), None)
                if again is not None:
                    bad.append(
                        (
                            f"{consumer.name} had taken {op.found}, was about to look for more, and was woken",
                            [op.last, again],
                        )
                    )
        return tested


class Ql3(lists.Ql3):
    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        linked: dict[str, dict[str, Event]] = {}
        marked: dict[str, dict[str, Event]] = {}
        walks: dict[str, list[tuple[Event, list[str]]]] = {}
        for e in h.events:
            name = catalogue.list_name.get(e, "")
            if e.ev == "link":
                linked.setdefault(name, {})[catalogue.node(e)] = e
            elif e.ev == "mark":
                marked.setdefault(name, {})[catalogue.node(e)] = e
            elif e.ev == "walk":
                stack = walks.setdefault(e.proc, [])
                if e.args["at"] == "begin":
                    stack.append((e, []))
                    continue
                # A walk that was given up half-way never says "end": close what began inside this one.
                while stack and catalogue.list_name(stack[-1][0]) != name:
                    stack.pop()
                if not stack:
                    continue
                begin, seen = stack[-1]
                if e.args["at"] == "node":
                    tested += 1
                    node = catalogue.node(e)
                    seen.append(node)
                    gone = marked.get(name, {}).get(node)
                    if gone is not None and gone.i < begin.i:
                        bad.append(
                            (f"{node} was deleted at {when(gone)}, and returned", [gone, begin, e])
                        )
                    continue
                stack.pop()
                for node, link in linked.get(name, {}).items():
                    gone = marked.get(name, {}).get(node)
                    if link.i < begin.i and (gone is None or gone.i > e.i) and node not in seen:
                        bad.append(
                            (f"{node} was in {name} all the while, and missed", [link, begin, e])
                        )
        return tested


class Ql4(lists.Ql4):
    def judge(self, h: Replay) -> Finding:
        bad: Violations = []
        tested = 0
        last: dict[str, Event] = {}
        marks: dict[str, Event] = {}
        unlinked: set[str] = set()
        begun: dict[str, Event] = {}  # the walk of a list that nobody else has touched since
        for e in h.events:
            name = catalogue.list_name.get(e, "")
            if name in begun and begun[name].proc != e.proc:
                del begun[name]
            if e.ev == "walk" and e.args["at"] == "begin":
                begun[name] = e
            elif e.ev == "walk" and e.args["at"] == "end" and name in begun:
                tested += 1
                for node, mark in marks.items():
                    dead = node not in unlinked and catalogue.list_name(mark) == name
                    if dead and mark.i < begun[name].i and catalogue.node(last[name]) != node:
                        bad.append((f"{node} was marked, and a walk left it linked", [mark, e]))
            if e.ev == "link":
                last[catalogue.list_name(e)] = e
            elif e.ev == "mark":
                marks[catalogue.node(e)] = e
            elif e.ev == "unlink":
                node, tail = catalogue.node(e), last.get(catalogue.list_name(e))
                unlinked.add(node)
                tested += 1
                if "@" in node and node not in marks:
                    bad.append((f"{node} was unlinked and not marked", [e]))
                if tail is not None and catalogue.node(tail) == node:
                    bad.append((f"{node} was unlinked though it was the tail", [tail, e]))
        return Finding.of(self.id, tested, bad)


class Ql5(lists.Ql5):
    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        for e in h.notifies:
            op, woken = h.call_at(e.i), h.woken[e.i]
            entry = h.entries.get(op.first.m) if op is not None else None
            if op is None or entry is None or not woken.acquires or entry.group:
                continue
            since = self._literally_since(woken, op.start, h.decided(e))
            for rival in h.subscriptions:
                if rival is woken or rival.cprio != woken.cprio or rival.q != woken.q:
                    continue
                if (
                    rival.acquires
                    and rival.selects(entry)
                    and rival.listed.held("Interested", op.start, e.i)
                    and rival.wish.held(True, op.start, e.i)
                    and entry.available_through(entry.state.when[0], e.i)
                ):
                    tested += 1
                    waits = rival.listed.since(op.start)
                    if since is not None and waits is not None and waits < since:
                        bad.append(
                            (
                                f"{woken.name} was notified before {rival.name}, "
                                f"who has waited longer, since {when(h.event(waits))}",
                                [op.first, e],
                            )
                        )
        return tested

    @staticmethod
    def _literally_since(woken: ConsumerHistory, start: int, until: int) -> float | None:
        """Since when the consumer stood where who notifies it may have met it.

        Who walks the list may still have the place in hand at which the consumer stood when the walk began, although
        somebody else woke it since and it went to the back: that is no overtaking. So the place at `start` counts,
        and only for one who was not there then the last stay before `until`.
        """
        arrivals = [m for m in woken.moves if m.args["at"] == "enter"]
        # A move is recorded where it leaves and where it enters; in between it may still be met at the old place.
        before = [m for m in arrivals if m.i <= start]
        if before and before[-1].args["new"] == "Interested":
            entered: Event | None = before[-1]
        else:
            entered = next(
                (m for m in reversed(arrivals) if m.i < until and m.args["new"] == "Interested"),
                None,
            )
        if entered is None:
            return inf
        at = woken.moves.index(entered)
        return woken.moves[at - 1].i if at else entered.i


LITERALLY: dict[str, OnReplay] = {
    p.id: p
    for p in (
        So1(), So3(), So4(), So5(), So6(), Es4(), Im3(), Mg1(), Tm2(), Sp3(),
        Wk1(), Wk2(), Wk3(), Wk7(), Wk8(), Ql3(), Ql4(), Ql5(),
    )
}  # fmt: skip
