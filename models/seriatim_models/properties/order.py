"""SO: the queue gives its messages an order and keeps it (article "Strict Ordering")."""

from __future__ import annotations

from collections.abc import Callable

from seriatim_models.history.event import Event
from seriatim_models.properties.base import Finding
from seriatim_models.properties.replay import GONE, Entry, OnReplay, Op, Replay, Sub

Violations = list[tuple[str, list[Event]]]
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
    id = "SO-1"
    sentence = (
        "Enqueue fixes a strict total order: if enqueue(x) returned before enqueue(y) began, "
        "x precedes y within one priority."
    )
    source = SOURCE
    kind = "safety"

    def judge(self, h: Replay) -> Finding:
        bad: Violations = []
        tested = 0
        linked = [e for e in h.entries.values() if e.links]
        places: dict[tuple[str, tuple[int, int]], Entry] = {}
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
        return Finding.of(self.id, tested + len(places) * (len(places) > 1), bad)


class So2(OnReplay):
    id = "SO-2"
    sentence = "An entry keeps its place for life: acquire, release, requeue and consumer close never move it."
    source = SOURCE
    kind = "safety"

    def judge(self, h: Replay) -> Finding:
        bad: Violations = []
        came_back = [e for e in h.entries.values() if len(e.offered) > 1]
        for entry in h.entries.values():
            if len(entry.links) > 1:
                bad.append((f"{entry.m} was linked twice", entry.links[:2]))
        for e in h.events:
            if e.ev == "unlink" and e.args["node"] in h.entries:
                entry = h.entries[e.args["node"]]
                state = entry.state.at(e.i)
                if state is not None and state[0] not in GONE:
                    bad.append((f"{entry.m} was unlinked while {state[0]}", [*entry.links[:1], e]))
        for q, shot in h.snapshots.items():
            found = [(m, tuple(place)) for m, place, *_ in shot.args["entries"]]
            there = sorted(
                (e.place, e.m)
                for e in h.entries.values()
                if e.q == q and e.links and (e.state.last() or ("", ""))[0] not in GONE
            )
            if [m for m, _ in found] != [m for _, m in there]:
                bad.append((f"the list holds {[m for m, _ in found]}, placed were {there}", [shot]))
        return Finding.of(self.id, len(came_back), bad)


def overtaken(
    h: Replay,
    attempt: Op,
    at: Event,
    taken: Entry,
    sub: Sub,
    skips: Callable[[Entry], bool] = lambda e: False,
) -> tuple[list[Entry], int]:
    """Entries before `taken` that were `sub`'s to take through the whole attempt, and how many cannot be told."""
    passed: list[Entry] = []
    unknown = 0
    for entry in h.entries.values():
        if entry is taken or not entry.links or skips(entry) or not sub.selects(entry):
            continue
        if entry.place < taken.place and entry.offered_before(attempt.start, at.i):
            if entry.expires or not h.group_free(entry, sub, attempt.start, at.i):
                unknown += 1
            else:
                passed.append(entry)
    return passed, unknown


def _order(
    prop: OnReplay,
    h: Replay,
    path: str = "",
    skips: Callable[[Entry, Entry], bool] = lambda taken, other: False,
) -> Finding:
    bad: Violations = []
    tested = untestable = 0
    for attempt, at, taken, sub in h.acquisitions():
        if path and attempt.args["path"] != path:
            continue
        rivals = [
            e
            for e in h.entries.values()
            if e is not taken and e.links and sub.selects(e) and not skips(taken, e)
        ]
        if not rivals and not path:
            continue
        tested += 1
        passed, unknown = overtaken(h, attempt, at, taken, sub, lambda e: skips(taken, e))  # noqa: B023  # called at once
        untestable += unknown
        if passed:
            first = min(passed, key=lambda e: e.place)
            since = first.state.since(attempt.start)
            offer = next(e for e in h.events if e.i == since)
            bad.append(
                (
                    f"{first.m} was available to {sub.name} from {since} on, "
                    f"yet {sub.name}, which looked from {attempt.start}, took {taken.m} at {at.i}",
                    [offer, attempt.first, at],
                )
            )
    return Finding.of(prop.id, tested, bad, n_untestable=untestable)


class So3(OnReplay):
    id = "SO-3"
    sentence = (
        "An acquiring consumer gets the next AVAILABLE entry after its pointer that it has interest in: "
        "no earlier matching entry was available to it through the whole acquire."
    )
    source = SOURCE
    kind = "safety"

    def judge(self, h: Replay) -> Finding:
        return _order(self, h)


class So4(OnReplay):
    id = "SO-4"
    sentence = "A browser sees each matching entry at most once, in order, and changes nothing."
    source = SOURCE
    kind = "safety"

    def judge(self, h: Replay) -> Finding:
        bad: Violations = []
        tested = 0
        for sub in h.subs.values():
            if sub.acquires:
                continue
            for before, now in zip([None, *sub.delivers], sub.delivers, strict=False):
                tested += 1
                entry = h.entries[now.m]
                past = [*entry.place, 1]
                if not any(
                    e.proc == now.proc and e.i < now.i and e.args["new"] == past
                    for e in reversed(sub.pointer)
                ):
                    bad.append((f"{sub.name} was shown {now.m}, and not moved past it", [now]))
                if not sub.selects(entry):
                    bad.append((f"{sub.name} was shown {now.m}, which it does not select", [now]))
                if before is not None and entry.place <= h.entries[before.m].place:
                    bad.append(
                        (
                            f"{sub.name} was shown {now.m} after {before.m}: not forward",
                            [before, now],
                        )
                    )
            for entry in h.entries.values():
                for e in entry.changes:
                    if e.args["ok"] and e.args["sub"] == sub.name:
                        bad.append((f"browser {sub.name} changed the state of {entry.m}", [e]))
        return Finding.of(self.id, tested, bad)


class So5(OnReplay):
    id = "SO-5"
    sentence = (
        "Priority queue: strict priority between sub-queues, FIFO within one; "
        "the mapping of message priority to sub-queue is AMQP 0-10's and JMS-compliant."
    )
    source = SOURCE + "; AMQP 0-10, message priority"
    kind = "safety"

    def judge(self, h: Replay) -> Finding:
        bad: Violations = []
        for entry in h.entries.values():
            levels = h.queues.get(entry.q, {}).get("levels", 1)
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


class So6(OnReplay):
    id = "SO-6"
    sentence = "The exclusive-subscriber shortcut delivers exactly what the general path would."
    source = SOURCE
    kind = "safety"

    def judge(self, h: Replay) -> Finding:
        bad: Violations = []
        order = _order(self, h, path="shortcut")
        if order.witness:
            bad.append((order.explanation, list(order.witness)))
        for attempt, at, taken, sub in h.acquisitions():
            if attempt.args["path"] != "shortcut":
                continue
            rivals = [
                s.name
                for s in h.subs.values()
                if s is not sub and s.q == sub.q and s.since < attempt.start < s.until
            ]
            if rivals or not sub.selects(taken):
                bad.append((f"shortcut gave {taken.m} to {sub.name}; others were {rivals}", [at]))
        return Finding.of(self.id, order.n_tested, bad, n_untestable=order.n_untestable)


ORDER = (So1(), So2(), So3(), So4(), So5(), So6())
