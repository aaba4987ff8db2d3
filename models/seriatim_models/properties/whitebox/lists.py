"""QL: the lists of the queue consumer manager (article "Consumer-Queue Interactions")."""

from __future__ import annotations

from itertools import pairwise
from math import inf

from seriatim_models.history import catalogue
from seriatim_models.history.event import Event
from seriatim_models.properties.base import CaseEvents, Violations
from seriatim_models.properties.whitebox.replay import OnReplay, Replay, when
from seriatim_models.properties.whitebox.state import ConsumerHistory
from seriatim_models.properties.whitebox.sweep import last_before

SOURCE = "Consumer-Queue Interactions"

ACQUIRING_MOVES = {
    ("Removed", "Interested"),
    ("Removed", "NotInterested"),
    ("NotInterested", "Interested"),
    ("Interested", "NotInterested"),
    ("Interested", "Notified"),
    ("Notified", "Interested"),
    ("Notified", "NotInterested"),
    ("Interested", "Removed"),
    ("NotInterested", "Removed"),
    ("Notified", "Removed"),
}
BROWSER_MOVES = {
    ("Removed", "NonAcquiring"),
    ("Removed", "NotInterested"),
    ("NotInterested", "NonAcquiring"),
    ("NonAcquiring", "NotInterested"),
    ("NonAcquiring", "Removed"),
    ("NotInterested", "Removed"),
}


class Ql1(OnReplay):
    """A case is a move between lists, and a consumer in a snapshot."""

    id = "QL-1"
    sentence = (
        "At quiescence an open consumer is in All once and, of a pull queue, in exactly one of NonAcquiring, "
        "NotInterested, Interested, Notified, and a closed one in none; at no time is one in two of these; "
        "only the article's moves happen."
    )
    source = SOURCE

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        for consumer in h.subscriptions:
            for e in consumer.moves:
                if catalogue.move_at(e) == "enter":
                    continue
                tested += 1
                move = (catalogue.old_list(e), catalogue.new_list(e))
                if move not in (ACQUIRING_MOVES if consumer.acquires else BROWSER_MOVES):
                    bad.append((f"{consumer.name} moved from {move[0]} to {move[1]}", [e]))
        self._in_two(h, bad)
        for q, shot in h.snapshots.items():
            lists = {name: members for name, (members, _) in catalogue.lists(shot).items()}
            everybody = lists.pop(f"{q}.All", [])
            due = {s.name: 0 for s in h.subscriptions if s.q == q}
            for s in h.subscriptions:
                if s.q == q:
                    due[s.name] |= s.until > shot.i  # of one name only one may be open
            for name, n in due.items():
                where = [k for k, members in lists.items() for m in members if m == name]
                managed = len(where) if h.kind(q) == "pull" else n
                tested += 1
                if managed != n or everybody.count(name) != n:
                    moves = h.consumers[name].moves
                    why = f"{name} is {everybody.count(name)} times in All and in {where}"
                    bad.append((why, [*moves[-1:], shot]))
        return tested

    def _in_two(self, h: Replay, bad: Violations) -> None:
        """Look for a consumer that joins one of a queue's lists before it has left another."""
        lists = {name: q for q, shot in h.snapshots.items() for name in catalogue.lists(shot)}
        there: dict[tuple[str, str], Event] = {}
        for e in h.named("link", "mark"):
            name = catalogue.list_name(e)
            q = lists.get(name, "")
            if not q or name == f"{q}.All":
                continue
            who = catalogue.node(e).partition("@")[0]
            before = there.get((q, who))
            if e.ev == "mark":
                if before is not None and catalogue.node(before) == catalogue.node(e):
                    del there[q, who]
            elif before is not None:
                bad.append((f"{who} is in {catalogue.list_name(before)} still", [before, e]))
            else:
                there[q, who] = e


class Ql2(OnReplay):
    """A case is a change of a counter, and a list in a snapshot."""

    id = "QL-2"
    sentence = (
        "Size counters equal contents at quiescence, and are never below the number of members that are linked and not "
        "marked: so they never read negative."
    )
    source = SOURCE

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        linked: dict[str, set[str]] = {}
        sizes: dict[str, int] = {}
        for e in h.named("size", "link", "mark"):
            name = catalogue.list_name(e)
            there = linked.setdefault(name, set())
            if e.ev == "size":
                tested += 1
                sizes[name] = catalogue.list_size(e)
            elif e.ev == "link":
                there.add(catalogue.node(e))
            else:
                there.discard(catalogue.node(e))
            if sizes.get(name, 0 if e.ev == "size" else len(there)) < len(there):
                bad.append(
                    (f"the size of {name} reads {sizes[name]}, {sorted(there)} are in it", [e])
                )
            elif sizes.get(name, 0) < 0:
                bad.append((f"the size of {name} reads {sizes[name]}", [e]))
        for shot in h.snapshots.values():
            for name, (members, size) in catalogue.lists(shot).items():
                tested += 1
                if len(members) != size:
                    bad.append((f"{name} holds {members}, its counter says {size}", [shot]))
        return tested


class Ql3(OnReplay):
    """A case is a node that an iteration returned."""

    id = "QL-3"
    sentence = (
        "An iteration misses no node that was in the list from its start to its end, "
        "and returns no node deleted before it began."
    )
    source = SOURCE
    case_events = CaseEvents(frozenset({"walk"}))

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        members: dict[str, dict[str, Event]] = {}  # linked, and not marked
        marked: dict[str, dict[str, Event]] = {}
        walks: dict[str, list[tuple[Event, set[str]]]] = {}
        for e in h.named("link", "mark", "walk"):
            name = catalogue.list_name(e)
            if e.ev == "link" and catalogue.node(e) not in marked.get(name, {}):
                members.setdefault(name, {})[catalogue.node(e)] = e
            elif e.ev == "mark":
                marked.setdefault(name, {})[catalogue.node(e)] = e
                members.get(name, {}).pop(catalogue.node(e), None)
            elif e.ev == "walk":
                stack, at = walks.setdefault(e.proc, []), catalogue.walk_at(e)
                if at == "begin":
                    stack.append((e, set()))
                    continue
                # A walk that was given up half-way never says "end": close what began inside this one.
                while stack and catalogue.list_name(stack[-1][0]) != name:
                    stack.pop()
                if not stack:
                    continue
                begin, seen = stack[-1]
                if at == "node":
                    tested += 1
                    node = catalogue.node(e)
                    seen.add(node)
                    deleted = marked.get(name, {}).get(node)
                    if deleted is not None and deleted.i < begin.i:
                        why = f"{node} was deleted at {when(deleted)}, and returned"
                        bad.append((why, [deleted, begin, e]))
                    continue
                stack.pop()
                for node, link in members.get(name, {}).items():
                    if link.i < begin.i and node not in seen:
                        bad.append(
                            (f"{node} was in {name} all the while, and missed", [link, begin, e])
                        )
        return tested


class Ql4(OnReplay):
    """A case is a node that was unlinked, and an iteration that nobody else disturbed."""

    id = "QL-4"
    sentence = (
        "Deletion marks; only what is marked is unlinked, and never the tail; "
        "an iteration that nobody disturbs leaves nothing linked that was marked before it but the tail."
    )
    source = SOURCE
    case_events = CaseEvents(frozenset({"unlink", "walk"}))

    def cases(self, h: Replay, bad: Violations) -> int:  # noqa: C901  # a branch per event
        tested = 0
        last: dict[str, Event] = {}
        marks: dict[str, Event] = {}
        unlinked: set[str] = set()
        dead: dict[str, dict[str, Event]] = {}  # by list: marked, and not unlinked
        begun: dict[str, Event] = {}  # the walk of a list that nobody else has touched since
        for e in h.named("link", "unlink", "mark", "size", "walk"):
            name = catalogue.list_name(e)
            if name in begun and begun[name].proc != e.proc:
                del begun[name]
            at = catalogue.walk_at(e) if e.ev == "walk" else ""
            if at == "begin":
                begun[name] = e
            elif at == "end" and name in begun:
                tested += 1
                for node, mark in dead.get(name, {}).items():
                    at_tail = name in last and catalogue.node(last[name]) == node
                    if mark.i < begun[name].i and not at_tail:
                        bad.append((f"{node} was marked, and a walk left it linked", [mark, e]))
            if e.ev == "link":
                last[name] = e
            elif e.ev == "mark":
                marks[catalogue.node(e)] = e
                if catalogue.node(e) not in unlinked:
                    dead.setdefault(name, {})[catalogue.node(e)] = e
            elif e.ev == "unlink":
                node, tail = catalogue.node(e), last.get(name)
                unlinked.add(node)
                dead.get(name, {}).pop(node, None)
                tested += 1
                if "@" in node and node not in marks:
                    bad.append((f"{node} was unlinked and not marked", [e]))
                if tail is not None and catalogue.node(tail) == node:
                    bad.append((f"{node} was unlinked though it was the tail", [tail, e]))
        return tested


class Ql5(OnReplay):
    """A case is a notification while another consumer of equal priority waited for the same message."""

    id = "QL-5"
    sentence = (
        "A consumer that ran dry goes to the back of Interested: of consumers of equal priority that wait for "
        "a message, the one that has been Interested longest is notified of it."
    )
    source = SOURCE
    case_events = CaseEvents(frozenset({"notify"}))

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        places = {consumer: self._places(consumer) for consumer in h.subscriptions}
        for e in h.notifies:
            op, woken = h.call_at(e.i), h.woken[e.i]
            entry = h.entries.get(op.first.m) if op is not None else None
            if op is None or entry is None or not woken.acquires or entry.group:
                continue
            since = self._waiting_since(*places[woken], op.start, h.decided(e))
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
                    if waits is not None and waits < since:
                        why = (
                            f"{woken.name} was notified before {rival.name}, "
                            f"who has waited longer, since {when(h.event(waits))}"
                        )
                        bad.append((why, [op.first, e]))
        return tested

    @staticmethod
    def _places(consumer: ConsumerHistory) -> tuple[list[Event], list[Event], dict[int, int]]:
        """Where a consumer came to stand, when that was among the Interested, and when it set out for there.

        It is linked some time between the two records of a move, so its place is at least as old as the first.
        """
        arrivals = [m for m in consumer.moves if catalogue.move_at(m) == "enter"]
        left = {m.i: before.i for before, m in pairwise(consumer.moves)}
        return arrivals, [m for m in arrivals if catalogue.new_list(m) == "Interested"], left

    @staticmethod
    def _waiting_since(
        arrivals: list[Event],
        interested: list[Event],
        left: dict[int, int],
        start: int,
        until: int,
    ) -> float:
        """The index since which the consumer stood where the notifying thread may have found it.

        A thread that walks the list may still have the place in hand at which the consumer stood when the walk began,
        although it was woken since by another thread and went to the back: that is no overtaking.
        So the place at `start` counts and, for a consumer that was not there then, its last stay before `until`.
        """
        # A move is recorded where it leaves and where it enters; in between it may still be met at the old place.
        met = last_before(arrivals, start + 1)
        if met is not None and catalogue.new_list(met) == "Interested":
            return left.get(met.i, met.i)
        entered = last_before(interested, until)
        return left.get(entered.i, entered.i) if entered is not None else inf


LISTS = (Ql1(), Ql2(), Ql3(), Ql4(), Ql5())
