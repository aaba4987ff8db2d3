"""What consumers are promised by their queue: who may stand beside whom, and what is sent to whom."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from math import inf

from seriatim_models.history import catalogue
from seriatim_models.history.event import Event
from seriatim_models.properties.base import CaseEvents, Finding, Violations
from seriatim_models.properties.whitebox.replay import PUSH_QUEUE, OnReplay, Replay
from seriatim_models.properties.whitebox.state import (
    CallSpan,
    ConsumerHistory,
    EntryHistory,
    consumer_of,
)
from seriatim_models.properties.whitebox.sweep import how_many_before


class Ql6(OnReplay):
    """A case is a pair of consumers that registered one after the other, at least one of them as exclusive.

    Also a message that an exclusive consumer had acquired, when that consumer leaves.
    A consumer is registered from the moment at which it is linked in All until it is marked there.
    """

    id = "QL-6"
    sentence = (
        "While an exclusive consumer is in All, linked and not marked, no other consumer is; "
        "and it holds no message any more when it leaves."
    )
    source = "Strict Ordering, the shortcut for an exclusive subscriber"
    case_events = CaseEvents(frozenset({"consumer"}), lambda e: bool(e.exclusive))

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        exclusive: dict[str, bool] = {}
        """By consumer: how it asked for registration last."""
        came: dict[str, list[bool]] = {}
        """By list: whether each of those that registered was exclusive."""
        there: dict[str, dict[str, Event]] = {}
        """By list: the nodes that are linked and not marked, with their links."""
        everybody = {f"{q}.All" for q in h.queues}
        for e in h.events:
            if e.ev == "consumer":
                exclusive[catalogue.sub(e)] = bool(e.exclusive)
            elif catalogue.list_name.get(e, "") not in everybody:
                continue
            elif e.ev == "mark":
                node = catalogue.node(e)
                present = there.get(catalogue.list_name(e), {})
                if present.pop(node, None) and exclusive.get(consumer_of(node), False):
                    tested += self._held_by(h, consumer_of(node), e, bad)
            elif e.ev == "link":
                name, node = catalogue.list_name(e), catalogue.node(e)
                alone = exclusive.get(consumer_of(node), False)
                before = came.setdefault(name, [])
                tested += len(before) if alone else sum(before)
                before.append(alone)
                present = there.setdefault(name, {})
                for other, link in present.items():
                    if alone or exclusive.get(consumer_of(other), False):
                        who = consumer_of(node if alone else other)
                        bad.append(
                            (f"{node} registered beside {other}; {who} is exclusive", [link, e])
                        )
                present[node] = e
        return tested

    @staticmethod
    def _held_by(h: Replay, name: str, leaves: Event, bad: Violations) -> int:
        """Add each message that an exclusive consumer holds as it leaves; how many it ever had."""
        had = 0
        for entry in h.entries.values():
            mine = [i for i, by in entry.acquirers.items() if by is not None and by.name == name]
            had += bool(mine)
            now = entry.acquirer(leaves.i)
            if now is not None and now.name == name:
                why = f"{name}, which is exclusive, leaves while it holds {entry.m}"
                bad.append((why, [h.event(max(i for i in mine if i < leaves.i)), leaves]))
        return had


class Mg2(OnReplay):
    """A case is a group of which messages had been acquired when the snapshot was taken."""

    id = "MG-2"
    sentence = (
        "At quiescence a group is owned by exactly the consumer that holds its messages, as often as it holds some, "
        "and by nobody if none is held."
    )
    source = "Consumer-Queue Interactions (blocked by message grouping)"
    case_events = CaseEvents(
        frozenset({"enqueue", "snapshot"}),
        lambda e: bool(catalogue.group.get(e, "") or catalogue.groups.get(e, {})),
    )

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        for q, shot in h.snapshots.items():
            owners, counts = catalogue.groups(shot), self._counts(shot)
            held: dict[str, Counter[str]] = {group: Counter() for group in owners}
            for entry in h.entries.values():
                if entry.q != q or not entry.group:
                    continue
                if any(state == "ACQUIRED" for state, _ in entry.state.values):
                    held.setdefault(entry.group, Counter())
                state = entry.state.at(shot.i)
                if state is not None and state[0] == "ACQUIRED":
                    held[entry.group][state[1]] += 1
            for group, holders in held.items():
                tested += 1
                owner = owners.get(group)
                if [owner] * (owner is not None) != list(holders):
                    why = f"group {group} is owned by {owner}, its messages are held by {dict(holders)}"
                    bad.append((why, [shot]))
                elif counts is not None and counts.get(group, 0) != holders.total():
                    why = f"group {group} is counted {counts.get(group, 0)} times, {holders.total()} are held"
                    bad.append((why, [shot]))
        return tested

    @staticmethod
    def _counts(shot: Event) -> dict[str, int] | None:
        return catalogue.group_counts(shot) if "group_counts" in shot.args else None


class Es7(OnReplay):
    """A case is a consumer whose close had returned while a message that it selects was, or became, available."""

    id = "ES-7"
    sentence = "After the call that closes a consumer has returned, nothing is acquired for it, shown or sent to it."
    source = "Strict Ordering, the send lock (it prevents the removal of a subscriber that is being served)"

    def cases(self, h: Replay, bad: Violations) -> int:
        ends = {
            op.consumer: op
            for op in h.of("close")
            if op.last is not None and op.consumer in h.consumers
        }
        if not ends:
            return 0
        offers: dict[tuple[str, frozenset[str] | None], float] = {}
        tested = 0
        for name, op in ends.items():
            alike = (h.consumers[name].q, h.consumers[name].keys)
            if alike not in offers:
                offers[alike] = self._last_offer(h, h.consumers[name])
            tested += offers[alike] > op.end
        for e in h.events:
            closed = ends.get(catalogue.sub.get(e, ""))
            if closed is None or closed.last is None or e.i < closed.end:
                continue
            if e.ev == "entry_cas":
                what = (
                    "acquired for"
                    if catalogue.ok(e) and catalogue.new_state(e) == "ACQUIRED"
                    else ""
                )
            elif e.ev == "send":
                what = "sent to" if e.ph == "invoke" else ""
            else:
                what = {"deliver": "delivered to", "browse": "shown to"}.get(e.ev, "")
            if what and h.consumers[closed.consumer].since < closed.start:
                why = f"{e.m} was {what} {closed.consumer}, whose close had returned"
                bad.append((why, [closed.last, e]))
        return tested

    @staticmethod
    def _last_offer(h: Replay, consumer: ConsumerHistory) -> float:
        """The index until which an entry that the consumer selects was available; -1 if none ever was."""
        until = [-1.0]
        for entry in h.entries.values():
            if consumer.selects(entry) and entry.state.when:  # not one that was never linked
                ends = [*entry.state.when[1:], inf]
                until += [
                    end
                    for end, (state, _) in zip(ends, entry.state.values, strict=True)
                    if state == "AVAILABLE"
                ]
        return max(until)


class Wk9(OnReplay):
    """A case is a consumer that is open at quiescence."""

    id = "WK-9"
    sentence = (
        "At quiescence credit is not negative, and a consumer wants messages if and only if the last that was said is "
        "that it does (registration, grant, resume or pause) and, in a queue that is pulled from, it has credit; "
        "there it is NotInterested if and only if it does not want messages."
    )
    source = "Consumer-Queue Interactions, setNotifyWorkDesired and the NotInterested list"

    def judge(self, h: Replay) -> Finding:
        """In a pull queue a consumer that was given something outside a pull is untestable.

        So is a consumer for which two threads said different things at the same time, but for its list.
        """
        bad: Violations = []
        tested = untestable = 0
        pulls = Pulls(h)
        inside: dict[str, list[CallSpan]] = {}
        for op in h.of("work_desired"):
            if not pulls.around(op.start, op.proc):
                inside.setdefault(op.consumer, []).append(op)
        for q, shot in h.snapshots.items():
            at_rest = catalogue.consumers(shot)
            for consumer in h.consumers.values():
                if consumer.q != q or consumer.until < shot.i or consumer.name not in at_rest:
                    continue
                pull = h.kind(q) == "pull"
                if pull and any(not pulls.around(e.i, e.proc) for e in consumer.delivers):
                    untestable += 1
                    continue
                tested += 1
                credit = self._credit(consumer)
                wants = bool(consumer.wants.at(shot.i))
                due = self._said(consumer, inside.get(consumer.name, []))
                if credit < 0:
                    bad.append((f"{consumer.name} has credit {credit}", [shot]))
                elif due is None:
                    untestable += 1
                elif wants != (due and (credit > 0 or not pull)):
                    said = "wants" if wants else "does not want"
                    why = f"{consumer.name} {said} messages; it last said {due}, and has credit {credit}"
                    bad.append((why, [shot]))
                if pull and wants == self._not_interested(consumer, shot):
                    said = "wants" if wants else "does not want"
                    why = f"{consumer.name} {said} messages, and its list says otherwise"
                    bad.append((why, [*consumer.moves[-1:], shot]))
        return Finding.of(self.id, tested, bad, n_untestable=untestable)

    @staticmethod
    def _credit(consumer: ConsumerHistory) -> float:
        """What was granted and is not used; infinite without a limit."""
        if consumer.credit is None:
            return inf
        return consumer.credit + consumer.granted - len(consumer.delivers)

    @staticmethod
    def _said(consumer: ConsumerHistory, said: list[CallSpan]) -> bool | None:
        """What was last said of whether it wants messages; None if two said different things at the same time."""
        if not said:
            return consumer.credit is None or consumer.credit > 0
        last = catalogue.desired.get(said[-1].first, False)
        for op in said[:-1]:
            if op.end > said[-1].start and catalogue.desired.get(op.first, False) != last:
                return None
        return last

    @staticmethod
    def _not_interested(consumer: ConsumerHistory, shot: Event) -> bool:
        members, _ = catalogue.lists(shot).get(f"{consumer.q}.NotInterested", ([], 0))
        return consumer.name in members


class Pulls:
    """The pulls of each thread: whether one was under way, and no callback of a client within it."""

    def __init__(self, h: Replay) -> None:
        self._pulls: dict[str, list[CallSpan]] = {}
        self._sends: dict[str, list[CallSpan]] = {}
        for spans, ev in ((self._pulls, "pull"), (self._sends, "send")):
            for op in h.of(ev):
                spans.setdefault(op.proc, []).append(op)

    def around(self, i: int, proc: str) -> bool:
        """Whether the thread was pulling at an index; what a client calls when it is sent something is its own."""
        began = _under_way_since(self._pulls.get(proc, []), i)
        return began >= 0 and _under_way_since(self._sends.get(proc, []), i) < began


def _under_way_since(calls: list[CallSpan], i: int) -> int:
    """Return when the call of a thread began that was under way at an index; -1 if none was."""
    k = bisect_right(calls, i, key=lambda call: call.start)
    return calls[k - 1].start if k > 0 and calls[k - 1].end > i else -1


class Wk10(OnReplay):
    """A case is a consumer of a target while another one of it has its turn twice."""

    id = "WK-10"
    sentence = (
        "A target asks its consumers in turn: between two turns of one of them, each other that is its consumer "
        "all the while has one."
    )
    source = "Consumer-Queue Interactions, steps 10 and 11"
    case_events = CaseEvents(frozenset({"turn"}))

    def cases(self, h: Replay, bad: Violations) -> int:
        tested = 0
        latest: dict[str, dict[str, Event]] = {}
        """By target: the latest turn of each of its consumers."""
        joined: dict[str, dict[str, int]] = {}
        """By target: since which turn each of its consumers has been one."""
        for e in h.named("turn"):
            target, name, among = catalogue.target(e), catalogue.sub(e), catalogue.among(e)
            turns, since = latest.setdefault(target, {}), joined.get(target, {})
            joined[target] = since = {other: since.get(other, e.i) for other in among}
            if (before := turns.get(name)) is not None and since.get(name, e.i) <= before.i:
                for other in among:
                    if other == name or since[other] > before.i:
                        continue
                    tested += 1
                    had = turns.get(other)
                    if had is None or had.i < before.i:
                        why = f"{name} had two turns of {target}, and {other} had none between"
                        bad.append((why, [before, e]))
            turns[name] = e
        return tested


class Wk12(OnReplay):
    """A case is a message that a target takes, or a session for it, while another has waited since its last one."""

    id = "WK-12"
    sentence = (
        "Sessions of a connection, and targets of a session, take messages in turn: between two messages of one of "
        "them, each other that waits all the while has its turn."
    )
    source = "Consumer-Queue Interactions, steps 8 and 9"
    case_events = CaseEvents(frozenset({"work"}))

    def cases(self, h: Replay, bad: Violations) -> int:
        """Who waits, and is taken out, is read from the sets of work; a message is what a consumer pulls in a turn."""
        tested = 0
        waiting: dict[str, dict[str, int]] = {}
        """By set of work: who waits in it, and since when."""
        home: dict[str, str] = {}
        """The set in which each session or target waits."""
        taken: dict[str, Event] = {}
        """The last time that each was taken out of its set."""
        last: dict[str, tuple[Event, Event]] = {}
        """The last message of each, and the event by which it had been taken out of its set before that."""
        turns: dict[str, Event] = {}
        """By thread: the turn in which it has taken no message yet."""
        for e in h.named("work", "turn", "pull"):
            if e.ev == "work":
                name, items = catalogue.work_set(e), catalogue.work_items(e)
                was = waiting.get(name, {})
                waiting[name] = {item: was.get(item, e.i) for item in items}
                home.update(dict.fromkeys(items, name))
                taken.update({item: e for item in was if item not in items})
            elif e.ev == "turn":
                turns[e.proc] = e
            elif e.ph == "ok" and e.m and (turn := turns.pop(e.proc, None)) is not None:
                of = catalogue.target(turn)
                while of in home:
                    before, begun = last.get(of), taken.get(of, turn)
                    if before is not None:
                        if begun.i < before[0].i:
                            begun = turn  # it was not taken out for this message
                        for other, since in waiting[home[of]].items():
                            if other == of:
                                continue
                            tested += 1
                            if since < before[1].i:
                                who, late = (n.removesuffix(".targets") for n in (of, other))
                                why = f"{who} took two messages, and {late} waited and had no turn"
                                bad.append((why, [before[1], before[0], e]))
                    last[of] = (e, begun)
                    of = home[of]
        return tested


class Credit:
    """The credit of a consumer over time."""

    def __init__(self, consumer: ConsumerHistory) -> None:
        left = inf if consumer.credit is None else consumer.credit
        self._levels = list(accumulate((catalogue.delta(e) for e in consumer.paid), initial=left))
        self._paid = consumer.paid

    def least(self, lo: int, hi: int) -> float:
        """The least that it was from just after one index until just before another."""
        first = how_many_before(self._paid, lo + 1)
        return min(self._levels[first : how_many_before(self._paid, hi) + 1])


@dataclass(frozen=True)
class Pushed:
    """A delivery on enqueue that met nothing else."""

    begun: int
    """When its enqueue began."""
    given: Event
    to: ConsumerHistory
    entry: EntryHistory
    behind: ConsumerHistory
    """Who had been served last by then."""


class Pushes:
    """The deliveries on enqueue of a push queue that met nothing else, and behind whom each began, by a sweep.

    From the beginning of its enqueue on no other one was under way, nothing else was available, nobody else was served,
    and no thread was about to store whom it had served. Who is shown a message, and does not take it, is served, too.
    """

    def __init__(self, h: Replay, q: str) -> None:
        self.h = h
        self.q = q
        self.found: list[Pushed] = []
        self._waiting: set[str] = set()
        self._open: dict[str, tuple[int, ConsumerHistory | None]] = {}
        """By message whose enqueue is under way and met nothing so far: when it began, and who had been served last."""
        self._under_way: set[str] = set()
        self._last: ConsumerHistory | None = None
        """Who was served last; None if nobody was, or if two threads stored it at once."""
        self._storing: set[str] = set()
        """Threads that have served somebody and perhaps not stored whom."""
        for e in h.events:
            self._see(e)

    def _see(self, e: Event) -> None:
        if e.ph == "invoke" or (e.ph == "ok" and e.ev != "attempt"):
            self._storing.discard(e.proc)
        entry = self.h.entries.get(e.m) if e.m else None
        if e.ev == "link":
            linked = self.h.entries.get(catalogue.node(e))
            if linked is not None and linked.q == self.q:
                self._state_of(linked.m, e.i)
        elif entry is None or entry.q != self.q:
            return
        elif e.ev == "enqueue" and e.ph == "invoke":
            if self._under_way or self._waiting or self._storing:
                self._open.clear()
            else:
                self._open[e.m] = (e.i, self._last)
            self._under_way.add(e.m)
        elif e.ev == "enqueue":
            self._under_way.discard(e.m)
            self._open.pop(e.m, None)
        elif e.ev == "entry_cas":
            self._state_of(e.m, e.i)
        elif e.ev in ("deliver", "browse"):
            self._served(entry, e)

    def _state_of(self, m: str, i: int) -> None:
        if self.h.entries[m].state.at(i) == ("AVAILABLE", ""):
            self._waiting.add(m)
            if len(self._waiting) > 1:
                self._open.clear()
        else:
            self._waiting.discard(m)

    def _served(self, entry: EntryHistory, e: Event) -> None:
        attempt, op = self.h.call_at(e.i), entry.enqueued
        path = catalogue.path.get(attempt.first, "") if attempt is not None else ""
        if attempt is None or path == "pull":
            return  # no turn of the queue's
        met_nothing = self._open.get(entry.m)
        if path != "general" or op is None or op.proc != e.proc:
            self._open.clear()
        elif met_nothing is not None and e.ev == "deliver":
            begun, behind = met_nothing
            if attempt.by is not None and behind is not None:
                self.found.append(Pushed(begun, e, attempt.by, entry, behind))
        self._last = None if self._storing - {e.proc} else attempt.by
        self._storing.add(e.proc)


class So7(OnReplay):
    """A case is a consumer that was ready while another was served on enqueue."""

    id = "SO-7"
    sentence = (
        "A push begins behind the consumer that was served last, on enqueue or by a job: if nothing else waits or is "
        "under way, the first from there on, in the order of registration, that is ready gets the message."
    )
    source = "Strict Ordering, where the search for a subscription starts, for fairness"
    case_events = PUSH_QUEUE

    def cases(self, h: Replay, bad: Violations) -> int:
        if len(h.named("deliver", "browse")) < 2 or len(h.consumers) < 2:
            return 0
        tested = 0
        for push in (p for q in h.queues if h.kind(q) == "push" for p in Pushes(h, q).found):
            turn = self._turn(push, push.to)
            for consumer in h.subscriptions:
                if consumer is not push.to and self._ready(consumer, push):
                    tested += 1
                    if self._turn(push, consumer) < turn:
                        why = (
                            f"{push.to.name} was given {push.entry.m}, and {consumer.name}, which was ready, "
                            f"comes first behind {push.behind.name}, which was served last"
                        )
                        bad.append((why, [push.given]))
        return tested

    @staticmethod
    def _turn(push: Pushed, consumer: ConsumerHistory) -> tuple[bool, float]:
        """Whose turn is earlier has the smaller one: first those behind whom was served last, then the others."""
        return (consumer.registered <= push.behind.registered, consumer.registered)

    @staticmethod
    def _ready(consumer: ConsumerHistory, push: Pushed) -> bool:
        """Whether a consumer would have taken the message at any moment from its enqueue to its delivery."""
        since, until = push.begun, push.given.i
        entry = push.entry
        return (
            consumer.acquires
            and consumer.registered <= since
            and consumer.until > until
            and consumer.selects(entry)
            and consumer.wants.held(True, since, until)
            and Credit(consumer).least(since, until) > 0
            and not entry.group
            and not entry.expires
        )


CONSUMERS = (Ql6(), Mg2(), Es7(), Wk9(), Wk10(), Wk12(), So7())
