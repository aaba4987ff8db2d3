"""A white-box history of a queue, replayed: who was in which state when.

Only events of level ``model`` are read: what a recorder around a broker saw has the same names for other things.
Indexes of events are the time here (`Event.i`). Properties ask three kinds of questions of it: the value of something
at an index, whether it had one value through a whole interval, and what was going on in a thread at an index.
An interval is always taken as short as the history allows, so that what is said to hold through it does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any, Generic, TypeVar

from seriatim_models.history.event import Event
from seriatim_models.properties.base import Finding, Property
from seriatim_models.properties.whitebox.sweep import Spans

V = TypeVar("V")
Place = tuple[int, int]

GONE = ("DEQUEUED", "DELETED")


class Timeline(Generic[V]):
    """A value that changes at certain indexes."""

    def __init__(self) -> None:
        self.when: list[int] = []
        self.values: list[V] = []

    def put(self, i: int, value: V) -> None:
        self.when.append(i)
        self.values.append(value)

    def at(self, i: int) -> V | None:
        """The value just after event `i`; None before the first."""
        k = bisect_right(self.when, i) - 1
        return self.values[k] if k >= 0 else None

    def since(self, i: int) -> int | None:
        """When the value that holds just after event `i` began."""
        k = bisect_right(self.when, i) - 1
        return self.when[k] if k >= 0 else None

    def held(self, value: V, lo: int, hi: int) -> bool:
        """Whether the value was `value` just after `lo` and all the way to `hi`."""
        k = bisect_right(self.when, lo) - 1
        return k >= 0 and self.values[k] == value and bisect_right(self.when, hi) - 1 == k

    def last(self) -> V | None:
        return self.values[-1] if self.values else None


@dataclass
class Op:
    """A call: from its invocation to its return (`end` is infinite if it never returned)."""

    ev: str
    proc: str
    start: int
    args: dict[str, Any]
    first: Event
    end: float = inf
    last: Event | None = None
    result: dict[str, Any] = field(default_factory=dict)


@dataclass
class Entry:
    m: str
    number: int = 0
    """In the order in which the history first names them."""
    q: str = ""
    place: Place = (-1, -1)
    links: list[Event] = field(default_factory=list)
    key: str = ""
    group: str = ""
    prio: int = 4
    immediate: bool = False
    not_before: int = 0
    expires: int = 0
    state: Timeline[tuple[str, str]] = field(default_factory=Timeline)
    """(name of the state, its holder)."""
    changes: list[Event] = field(default_factory=list)
    delivers: list[Event] = field(default_factory=list)
    offered: dict[int, float] = field(default_factory=dict)
    """Index at which it became AVAILABLE -> index at which the call that did it had returned."""
    enqueued: Op | None = None

    def available_through(self, lo: int, hi: int) -> bool:
        return self.state.held(("AVAILABLE", ""), lo, hi)

    def offered_before(self, lo: int, hi: int) -> bool:
        """AVAILABLE all the way from `lo` to `hi`, by a call that had returned before `lo`."""
        since = self.state.since(lo)
        return (
            since is not None
            and self.available_through(lo, hi)
            and self.offered.get(since, inf) < lo
        )


@dataclass
class Sub:
    """A consumer."""

    name: str
    q: str
    acquires: bool
    cprio: int
    keys: frozenset[str] | None
    credit: int | None
    exclusive: bool
    since: int
    until: float = inf
    wants: Timeline[bool] = field(default_factory=Timeline)
    listed: Timeline[str] = field(default_factory=Timeline)
    """The manager's list it is certainly in; '' while it is between two."""
    moves: list[Event] = field(default_factory=list)
    delivers: list[Event] = field(default_factory=list)
    """What it was given or, for a browser, shown."""
    granted: int = 0
    paid: list[Event] = field(default_factory=list)
    pointer: list[Event] = field(default_factory=list)

    def selects(self, entry: Entry) -> bool:
        return entry.q == self.q and (self.keys is None or entry.key in self.keys)


class Replay:
    """Everything above, from the events of one run."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = [e for e in events if e.lvl == "model"]
        self.entries: dict[str, Entry] = {}
        self.subs: dict[str, Sub] = {}
        self.queues: dict[str, dict[str, Any]] = {}
        self.ops: list[Op] = []
        self.notifies: list[Event] = []
        self.woken: dict[str, list[Event]] = {}
        """The same, by who was woken."""
        self.snapshots: dict[str, Event] = {}
        self.clock: Timeline[int] = Timeline()
        self._open: dict[str, list[Op]] = {}
        self._op_at: dict[int, Op] = {}
        """Event index -> the innermost call of its thread at that moment."""
        self._before: dict[int, int] = {}
        """Index of a pointer move -> an index after which its thread certainly read what it moved on."""
        self._waking: dict[tuple[str, str], int] = {}
        """(thread, consumer) -> where the one began to move the other to Notified."""
        self._decided: dict[int, int] = {}
        self._choices: dict[tuple[str, frozenset[str] | None], Counter[int]] = {}
        scan_began: dict[str, int] = {}
        for e in self.events:
            stack = self._open.setdefault(e.proc, [])
            if e.ph == "invoke":
                op = Op(e.ev, e.proc, e.i, self._fields(e), e)
                stack.append(op)
                self.ops.append(op)
            if stack:
                self._op_at[e.i] = stack[-1]
            handler = getattr(self, f"_on_{e.ev}", None)
            if handler is not None:
                handler(e)
            if e.ph == "ok" and stack and stack[-1].ev == e.ev:
                op = stack.pop()
                op.end, op.last, op.result = e.i, e, self._fields(e)
            if e.ev == "ptr_cas":
                self._before[e.i] = scan_began.get(e.proc, e.i)
            if e.ev not in ("unlink", "entry_cas"):
                scan_began[e.proc] = e.i
        for entry in self.entries.values():
            for i, (state, _) in zip(entry.state.when, entry.state.values, strict=True):
                if state == "AVAILABLE":
                    by = self._op_at.get(i)
                    entry.offered[i] = by.end if by else i

    @staticmethod
    def _fields(e: Event) -> dict[str, Any]:
        return {**e.args, "m": e.m, "q": e.q, "prio": e.prio, "key": e.key}

    def op_at(self, i: int) -> Op | None:
        return self._op_at.get(i)

    def decided(self, notify: Event) -> int:
        """When it was settled that the consumer is woken: by the move, before the wake-up itself is on record.

        Threads leave time between the two, in which the consumer may have looked, found and looked again.
        """
        return self._decided.get(notify.i, notify.i)

    def scan_start(self, pointer_move: Event) -> int:
        return self._before[pointer_move.i]

    def of(self, *evs: str) -> list[Op]:
        return [op for op in self.ops if op.ev in evs]

    def entry(self, m: str) -> Entry:
        if m not in self.entries:
            self.entries[m] = Entry(m, len(self.entries))
        return self.entries[m]

    # ---- one method per event

    def _on_queue(self, e: Event) -> None:
        self.queues[e.q] = e.args

    def _on_enqueue(self, e: Event) -> None:
        entry = self.entry(e.m)
        if e.ph == "invoke":
            entry.q = e.q
            entry.key = e.key or ""
            entry.prio = 4 if e.prio is None else e.prio
            entry.group = e.args.get("group", "")
            entry.immediate = e.args.get("immediate", False)
            entry.not_before = e.args.get("not_before", 0)
            entry.expires = e.args.get("expires", 0)
            entry.enqueued = self._open[e.proc][-1]

    def _on_link(self, e: Event) -> None:
        node = e.args["node"]
        if "@" not in node:  # nodes of consumer lists are labelled consumer@list#id
            entry = self.entry(node)
            entry.links.append(e)
            entry.place = (e.args["place"][0], e.args["place"][1])
            if not entry.state.when:
                entry.state.put(e.i, ("DELAYED" if entry.not_before else "AVAILABLE", ""))

    def _on_entry_cas(self, e: Event) -> None:
        entry = self.entry(e.m)
        entry.changes.append(e)
        if e.args["ok"]:
            new = e.args["new"]
            entry.state.put(e.i, (new, e.args["sub"] if new == "ACQUIRED" else ""))

    def _on_deliver(self, e: Event) -> None:
        self.entry(e.m).delivers.append(e)
        if (sub := self.subs.get(e.args["sub"])) is not None:
            sub.delivers.append(e)

    def _on_browse(self, e: Event) -> None:
        if (sub := self.subs.get(e.args["sub"])) is not None:
            sub.delivers.append(e)

    def _on_consumer(self, e: Event) -> None:
        a = e.args
        sub = Sub(
            name=a["sub"],
            q=e.q,
            acquires=a["acquires"],
            cprio=e.cprio or 0,
            keys=None if a["keys"] is None else frozenset(a["keys"]),
            credit=e.credit,
            exclusive=bool(e.exclusive),
            since=e.i,
        )
        sub.wants.put(e.i, e.credit is None or e.credit > 0)
        sub.listed.put(e.i, "Removed")
        self.subs[sub.name] = sub

    def _on_close(self, e: Event) -> None:
        if e.ph == "invoke":
            self.subs[e.args["sub"]].until = e.i

    def _on_wants(self, e: Event) -> None:
        self.subs[e.args["sub"]].wants.put(e.i, e.args["value"])

    def _on_qcm_move(self, e: Event) -> None:
        sub = self.subs[e.args["sub"]]
        sub.moves.append(e)
        if e.args["new"] == "Notified" and e.args["at"] == "leave":
            self._waking[e.proc, sub.name] = e.i
        sub.listed.put(e.i, e.args["new"] if e.args["at"] == "enter" else "")

    def _on_grant(self, e: Event) -> None:
        self.subs[e.args["sub"]].granted += e.args["messages"]

    def _on_credit(self, e: Event) -> None:
        self.subs[e.args["sub"]].paid.append(e)

    def _on_ptr_cas(self, e: Event) -> None:
        if e.args["ok"]:
            self.subs[e.args["sub"]].pointer.append(e)

    def _on_notify(self, e: Event) -> None:
        self.notifies.append(e)
        move = self._waking.pop((e.proc, e.args["sub"]), None)
        if move is not None and self.op_at(move) is self.op_at(e.i):
            self._decided[e.i] = move
        self.woken.setdefault(e.args["sub"], []).append(e)

    def _on_clock(self, e: Event) -> None:
        self.clock.put(e.i, e.args["now"])

    def _on_snapshot(self, e: Event) -> None:
        self.snapshots[e.q] = e

    # ---- questions that several properties ask

    def acquisitions(self) -> Iterable[tuple[Op, Event, Entry, Sub]]:
        """Each entry taken by an acquiring consumer: the attempt, the winning compare-and-set, entry and consumer."""
        for entry in self.entries.values():
            for e in entry.changes:
                if e.args["ok"] and e.args["new"] == "ACQUIRED":
                    attempt = self.op_at(e.i)
                    sub = self.subs.get(e.args["sub"])
                    if attempt is not None and attempt.ev == "attempt" and sub is not None:
                        yield attempt, e, entry, sub

    def group_free(self, entry: Entry, sub: Sub, lo: int, hi: int) -> bool:
        """Whether certainly nobody but `sub` owned the entry's group between the two indexes.

        Somebody who holds a message of the group owns it, until the call that ended that has returned;
        and so may anybody who is about to take.
        """
        if not entry.group:
            return True
        return not (
            self._holdings[entry.group].of_others(sub.name, lo, hi)
            or self._attempts.of_others(sub.name, lo, hi)
        )

    @cached_property
    def _holdings(self) -> dict[str, Spans]:
        spans: dict[str, list[tuple[int, float, str]]] = {}
        for entry in self.entries.values():
            held = spans.setdefault(entry.group, [])
            ends = [*entry.state.when[1:], inf]
            for i, until, (state, holder) in zip(
                entry.state.when, ends, entry.state.values, strict=False
            ):
                if state == "ACQUIRED":
                    held.append((i, self._over(until), holder))
        return {group: Spans(held) for group, held in spans.items() if group}

    def _over(self, i: float) -> float:
        """When the call in which event `i` happened had returned."""
        by = None if i == inf else self._op_at.get(int(i))
        return i if by is None else by.end

    @cached_property
    def _attempts(self) -> Spans:
        return Spans((op.start, op.end, op.args["sub"]) for op in self.of("attempt"))

    def event(self, i: int) -> Event:
        """The event with this index."""
        return self._by_index[i]

    @cached_property
    def _by_index(self) -> dict[int, Event]:
        return {e.i: e for e in self.events}

    def choice(self, sub: Sub) -> Counter[int]:
        """How many of the entries that were ever linked `sub` selects, by sub-queue."""
        alike = (sub.q, sub.keys)
        if alike not in self._choices:
            self._choices[alike] = Counter(
                e.place[0] for e in self.entries.values() if e.links and sub.selects(e)
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
        raise NotImplementedError
