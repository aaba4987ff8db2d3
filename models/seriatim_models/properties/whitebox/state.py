"""The state of a queue after each event of a white-box history: entries, consumers, lists and calls.

This is the one place where events of a queue become state. Properties ask it, through `Replay`, what held when;
the pages that show an execution print its latest values; and traces are compared with it.
Values that change are kept with the indexes of the events that changed them (`Event.i`), so that the state after
any earlier event can be asked for as well.

An event that names a consumer of which there is no `consumer` event changes nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import ClassVar, Generic, TypeVar

from seriatim_models.history import catalogue
from seriatim_models.history.event import Event

V = TypeVar("V")
Place = tuple[int, int]
"""Sub-queue and number in it."""


class Timeline(Generic[V]):
    """A value that changes at certain indexes."""

    def __init__(self) -> None:
        self.when: list[int] = []
        self.values: list[V] = []

    def put(self, i: int, value: V) -> None:
        """The value is `value` from event `i` on; `i` must not fall."""
        self.when.append(i)
        self.values.append(value)

    def at(self, i: int) -> V | None:
        """The value just after event `i`; None before the first."""
        k = bisect_right(self.when, i) - 1
        return self.values[k] if k >= 0 else None

    def since(self, i: int) -> int | None:
        """The index at which the value that holds just after event `i` began."""
        k = bisect_right(self.when, i) - 1
        return self.when[k] if k >= 0 else None

    def held(self, value: V, lo: int, hi: int) -> bool:
        """Whether the value was `value` just after `lo` and all the way to `hi`."""
        k = bisect_right(self.when, lo) - 1
        return k >= 0 and self.values[k] == value and bisect_right(self.when, hi) - 1 == k

    def last(self) -> V | None:
        """The value after the last event."""
        return self.values[-1] if self.values else None


@dataclass
class CallSpan:
    """A call: from its invocation to its return (`end` is infinite if it never returned)."""

    ev: str
    proc: str
    start: int
    first: Event
    end: float = inf
    last: Event | None = None

    @property
    def consumer(self) -> str:
        """The consumer for which it was made, if its kind has one."""
        return catalogue.sub(self.first)

    @property
    def found(self) -> str:
        """The message that it returned, or ''."""
        return self.last.m if self.last is not None else ""


@dataclass
class EntryHistory:
    """A message in a queue."""

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
    """(name of the state, its owner)."""
    changes: list[Event] = field(default_factory=list)
    """Each attempt to change the state, also those that failed."""
    delivers: list[Event] = field(default_factory=list)
    offered: dict[int, float] = field(default_factory=dict)
    """Index at which it became AVAILABLE -> index at which the call that did it had returned."""
    enqueued: CallSpan | None = None

    def available_through(self, lo: int, hi: int) -> bool:
        """Whether it was AVAILABLE from just after `lo` to `hi`."""
        return self.state.held(("AVAILABLE", ""), lo, hi)

    def offered_before(self, lo: int, hi: int) -> bool:
        """Whether it was AVAILABLE from `lo` to `hi`, by a call that had returned before `lo`."""
        since = self.state.since(lo)
        return (
            since is not None
            and self.available_through(lo, hi)
            and self.offered.get(since, inf) < lo
        )


@dataclass
class ConsumerHistory:
    """A consumer."""

    name: str
    q: str
    acquires: bool
    cprio: int
    keys: frozenset[str] | None
    credit: int | None
    """With which it registered."""
    credit_left: int | None
    exclusive: bool
    since: int
    until: float = inf
    """The index of the call that closes it."""
    closed: bool = False
    """Whether that call has returned."""
    wants: Timeline[bool] = field(default_factory=Timeline)
    listed: Timeline[str] = field(default_factory=Timeline)
    """The manager's list it is certainly in; '' while it is between two."""
    moves: list[Event] = field(default_factory=list)
    delivers: list[Event] = field(default_factory=list)
    """What it was given or, for a browser, shown."""
    granted: int = 0
    paid: list[Event] = field(default_factory=list)
    pointer: list[Event] = field(default_factory=list)
    """Successful moves of its pointer."""

    def selects(self, entry: EntryHistory) -> bool:
        """Whether it wants messages like this one."""
        return entry.q == self.q and (self.keys is None or entry.key in self.keys)

    @property
    def points(self) -> tuple[int, ...]:
        """Where its pointer is now: sub-queue, number, and 1 if it has passed the entry there."""
        return tuple(catalogue.new_pointer(self.pointer[-1])) if self.pointer else (0, 0, 0)


@dataclass
class ListMembers:
    """A list of consumers: which nodes are linked, whether each is marked as deleted, and the list's counter."""

    nodes: dict[str, bool] = field(default_factory=dict)
    size: int = 0

    @property
    def present(self) -> list[str]:
        """Consumers whose nodes are not marked, in order."""
        return [consumer_of(node) for node, marked in self.nodes.items() if not marked]


def consumer_of(node: str) -> str:
    """The consumer whose membership a node ``consumer@list#number`` is."""
    return node.split("@")[0]


def within(name: str, q: str) -> bool:
    """Whether a list, or another part, of this name belongs to the queue."""
    return name == q or name.startswith(f"{q}.")


class QueueState:
    """The state of all queues after the events seen so far."""

    def __init__(self) -> None:
        self.queues: dict[str, Event] = {}
        self.entries: dict[str, EntryHistory] = {}
        self.consumers: dict[str, ConsumerHistory] = {}
        self.calls: list[CallSpan] = []
        """All calls, in the order of their invocations."""
        self.under_way: dict[str, list[CallSpan]] = {}
        """By thread: calls that have not returned, the innermost last."""
        self.notifies: list[Event] = []
        self.snapshots: dict[str, Event] = {}
        """By queue, the latest."""
        self.clock: Timeline[int] = Timeline()

    def see(self, e: Event) -> CallSpan | None:
        """Bring the state forward by an event as the catalogue declares it; the call in which it happened, if any."""
        stack = self.under_way.get(e.proc)
        if stack is None:
            stack = self.under_way[e.proc] = []
        if e.ph == "invoke":
            call = CallSpan(e.ev, e.proc, e.i, e)
            stack.append(call)
            self.calls.append(call)
        inside = stack[-1] if stack else None
        handler = self._HANDLERS.get(e.ev)
        if handler is not None:
            handler(self, e)
        if e.ph == "ok" and inside is not None and inside.ev == e.ev:
            stack.pop()
            inside.end, inside.last = e.i, e
        return inside

    def kind(self, q: str) -> str:
        """``push`` or ``pull``; '' for a queue of which nothing is known."""
        return catalogue.queue_kind.get(self.queues[q], "") if q in self.queues else ""

    def levels(self, q: str) -> int:
        """How many levels of priority a queue has."""
        return catalogue.levels.get(self.queues[q], 1) if q in self.queues else 1

    def entry(self, m: str) -> EntryHistory:
        """The entry of a message, which begins to be known if it was not."""
        if m not in self.entries:
            self.entries[m] = EntryHistory(m, len(self.entries))
        return self.entries[m]

    def _of(self, e: Event) -> ConsumerHistory | None:
        return self.consumers.get(catalogue.sub(e))

    # ---- one method per event

    def _on_queue(self, e: Event) -> None:
        self.queues[e.q] = e

    def _on_enqueue(self, e: Event) -> None:
        entry = self.entry(e.m)
        if e.ph == "invoke":
            entry.q = e.q
            entry.key = e.key or ""
            entry.prio = 4 if e.prio is None else e.prio
            entry.group = catalogue.group.get(e, "")
            entry.immediate = catalogue.immediate.get(e, False)
            entry.not_before = catalogue.not_before.get(e, 0)
            entry.expires = catalogue.expires.get(e, 0)
            entry.enqueued = self.under_way[e.proc][-1]

    def _on_link(self, e: Event) -> None:
        node = catalogue.node(e)
        if "@" in node:
            return
        entry = self.entry(node)
        if not entry.q:
            name = catalogue.list_name(e)
            entry.q = next((q for q in self.queues if within(name, q)), name)
        entry.links.append(e)
        major, minor = catalogue.place(e)
        entry.place = (major, minor)
        if not entry.state.when:
            entry.state.put(e.i, ("DELAYED" if entry.not_before else "AVAILABLE", ""))

    def _on_entry_cas(self, e: Event) -> None:
        entry = self.entry(e.m)
        entry.changes.append(e)
        if catalogue.ok(e):
            new = catalogue.new_state(e)
            entry.state.put(e.i, (new, catalogue.sub(e) if new == "ACQUIRED" else ""))

    def _on_deliver(self, e: Event) -> None:
        entry = self.entry(e.m)
        if (consumer := self._of(e)) is not None:
            entry.delivers.append(e)
            consumer.delivers.append(e)

    def _on_browse(self, e: Event) -> None:
        self.entry(e.m)
        if (consumer := self._of(e)) is not None:
            consumer.delivers.append(e)

    def _on_consumer(self, e: Event) -> None:
        keys = catalogue.keys.get(e, None)
        consumer = ConsumerHistory(
            name=catalogue.sub(e),
            q=e.q,
            acquires=catalogue.acquires(e),
            cprio=e.cprio or 0,
            keys=None if keys is None else frozenset(keys),
            credit=e.credit,
            credit_left=e.credit,
            exclusive=bool(e.exclusive),
            since=e.i,
        )
        consumer.wants.put(e.i, e.credit is None or e.credit > 0)
        consumer.listed.put(e.i, "Removed")
        self.consumers[consumer.name] = consumer

    def _on_close(self, e: Event) -> None:
        if (consumer := self._of(e)) is None:
            return
        if e.ph == "invoke":
            consumer.until = e.i
        else:
            consumer.closed = True

    def _on_wants(self, e: Event) -> None:
        if (consumer := self._of(e)) is not None:
            consumer.wants.put(e.i, catalogue.value_wanted(e))

    def _on_qcm_move(self, e: Event) -> None:
        if (consumer := self._of(e)) is not None:
            consumer.moves.append(e)
            entered = catalogue.move_at(e) == "enter"
            consumer.listed.put(e.i, catalogue.new_list(e) if entered else "")

    def _on_grant(self, e: Event) -> None:
        if (consumer := self._of(e)) is not None:
            consumer.granted += catalogue.granted(e)

    def _on_credit(self, e: Event) -> None:
        if (consumer := self._of(e)) is not None:
            consumer.paid.append(e)
            consumer.credit_left = (consumer.credit_left or 0) + catalogue.delta(e)

    def _on_ptr_cas(self, e: Event) -> None:
        if catalogue.ok(e) and (consumer := self._of(e)) is not None:
            consumer.pointer.append(e)

    def _on_notify(self, e: Event) -> None:
        if self._of(e) is not None:
            self.notifies.append(e)

    def _on_clock(self, e: Event) -> None:
        self.clock.put(e.i, catalogue.now(e))

    def _on_snapshot(self, e: Event) -> None:
        self.snapshots[e.q] = e

    _HANDLERS: ClassVar[Mapping[str, Callable[[QueueState, Event], None]]] = {
        "queue": _on_queue,
        "enqueue": _on_enqueue,
        "link": _on_link,
        "entry_cas": _on_entry_cas,
        "deliver": _on_deliver,
        "browse": _on_browse,
        "consumer": _on_consumer,
        "close": _on_close,
        "wants": _on_wants,
        "qcm_move": _on_qcm_move,
        "grant": _on_grant,
        "credit": _on_credit,
        "ptr_cas": _on_ptr_cas,
        "notify": _on_notify,
        "clock": _on_clock,
        "snapshot": _on_snapshot,
    }


class LinkState:
    """What is linked after the events seen so far: the lists of consumers, and which entries were unlinked.

    Apart from `QueueState`, since most events of a queue are about its lists and few properties ask for them.
    """

    def __init__(self) -> None:
        self.lists: dict[str, ListMembers] = {}
        self.unlinked: set[str] = set()
        """Messages whose entries were unlinked."""

    def see(self, e: Event) -> None:
        """Bring the state forward by an event as the catalogue declares it."""
        if e.ev == "size":
            self._of(e).size = catalogue.list_size(e)
        elif e.ev in ("link", "mark", "unlink"):
            node = catalogue.node(e)
            if "@" not in node:
                if e.ev == "unlink":
                    self.unlinked.add(node)
            elif e.ev == "link":
                self._of(e).nodes.setdefault(node, False)
            elif e.ev == "mark":
                self._of(e).nodes[node] = True
            else:
                self._of(e).nodes.pop(node, None)

    def _of(self, e: Event) -> ListMembers:
        return self.lists.setdefault(catalogue.list_name(e), ListMembers())
