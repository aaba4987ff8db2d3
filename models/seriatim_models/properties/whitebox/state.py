"""The state of a queue after each event of a white-box history: entries, consumers, lists and calls.

This is the one place where events of a queue become state. Properties ask it, through `Replay`, what held when;
the pages that show an execution print its latest values; and traces are compared with it.
Values that change are kept with the indexes of the events that changed them (`Event.i`), so that the state after
any earlier event can be asked for as well.

An event that names a consumer of which there is no `consumer` event changes nothing.

Two consumers may bear one name, one after the other. An event belongs to the one that its call was made for,
and else to the one that subscribed last.
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

    __slots__ = ("values", "when")

    def __init__(self) -> None:
        self.when: list[int] = []
        self.values: list[V] = []

    def put(self, i: int, value: V) -> None:
        """The value is `value` from event `i` on; `i` must not fall."""
        self.when.append(i)
        self.values.append(value)

    def change(self, i: int, value: V) -> None:
        """The same; if that is the value already, then since it began."""
        if not self.values or self.values[-1] != value:
            self.put(i, value)

    def at(self, i: int) -> V | None:
        """The value just after event `i`; None before the first."""
        k = bisect_right(self.when, i) - 1
        return self.values[k] if k >= 0 else None

    def since(self, i: int) -> int | None:
        """The index at which the value that holds just after event `i` began."""
        k = bisect_right(self.when, i) - 1
        return self.when[k] if k >= 0 else None

    def following(self, i: int) -> int | None:
        """The index of the first change after event `i`."""
        k = bisect_right(self.when, i)
        return self.when[k] if k < len(self.when) else None

    def held(self, value: V, lo: int, hi: int) -> bool:
        """Whether the value was `value` just after `lo` and all the way to `hi`."""
        k = bisect_right(self.when, lo) - 1
        return k >= 0 and self.values[k] == value and bisect_right(self.when, hi) - 1 == k

    def during(self, lo: int, hi: int) -> list[V]:
        """The values that it had at any time from just after `lo` to `hi`."""
        return self.values[max(bisect_right(self.when, lo) - 1, 0) : bisect_right(self.when, hi)]

    def last(self) -> V | None:
        """The value after the last event."""
        return self.values[-1] if self.values else None


@dataclass(slots=True, eq=False)
class CallSpan:
    """A call: from its invocation to its return (`end` is infinite if it never returned)."""

    ev: str
    proc: str
    start: int
    first: Event
    by: ConsumerHistory | None = None
    """The consumer for which it was made, if its kind has one that is known."""
    end: float = inf
    last: Event | None = None
    asks: bool | None = None
    """Whether the client asks for messages by it (True) or for none; None for a call that asks neither."""

    @property
    def consumer(self) -> str:
        """Name of the consumer for which it was made, if its kind has one."""
        return catalogue.sub(self.first)

    @property
    def found(self) -> str:
        """The message that it returned, or ''."""
        return self.last.m if self.last is not None else ""


@dataclass(slots=True, eq=False)
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
    acquirers: dict[int, ConsumerHistory | None] = field(default_factory=dict)
    """Index at which it became ACQUIRED -> the consumer that it was acquired for, if that is known."""
    changes: list[Event] = field(default_factory=list)
    """Each attempt to change the state, also those that failed."""
    delivers: list[Event] = field(default_factory=list)
    browses: list[Event] = field(default_factory=list)
    """Each time that a browser was shown it."""
    offered: dict[int, float] = field(default_factory=dict)
    """Index at which it became AVAILABLE -> index at which the call that did it had returned."""
    enqueued: CallSpan | None = None

    def acquirer(self, i: int) -> ConsumerHistory | None:
        """The consumer that has acquired it just after event `i`, if it is acquired and that is known."""
        since = self.state.since(i)
        return None if since is None else self.acquirers.get(since)

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


@dataclass(slots=True, eq=False)
class ConsumerHistory:
    """A consumer: one subscription. Another one of the same name is another consumer."""

    name: str
    number: int
    """In the order in which they subscribed."""
    q: str
    acquires: bool
    cprio: int
    keys: frozenset[str] | None
    credit: int | None
    """With which it registered."""
    credit_left: int | None
    exclusive: bool
    since: int
    registered: float = inf
    """The index at which it was linked in the list of all consumers: from then on others can meet it."""
    leaves: int | None = None
    """The index at which its flag was last cleared by no call on record: there a call that closes it may have begun."""
    until: float = inf
    """The index of the call that closes it, or, without one, at which it left the list of all consumers."""
    closed: bool = False
    """Whether that call has returned."""
    wants: Timeline[bool] = field(default_factory=Timeline)
    """The flag that the queue keeps."""
    wish: Timeline[bool | None] = field(default_factory=Timeline)
    """Whether its client wants messages, by the calls that the client made: subscribe, grant, pause, resume, close,
    and pulls that used up the credit. None while such a call is under way."""
    asking: int = 0
    """Calls under way by which the client asks for messages or for none."""
    asked: set[bool] = field(default_factory=set)
    """What these, and those that they overlapped, ask."""
    listed: Timeline[str] = field(default_factory=Timeline)
    """The manager's list it is certainly in; '' while it is between two."""
    moves: list[Event] = field(default_factory=list)
    delivers: list[Event] = field(default_factory=list)
    """What it was given or, for a browser, shown."""
    granted: int = 0
    grants: list[Event] = field(default_factory=list)
    notified: list[Event] = field(default_factory=list)
    """Each time that it was woken."""
    paid: list[Event] = field(default_factory=list)
    pointer: list[Event] = field(default_factory=list)
    """Successful moves of its pointer."""

    def selects(self, entry: EntryHistory) -> bool:
        """Whether it wants messages like this one."""
        return entry.q == self.q and (self.keys is None or entry.key in self.keys)

    @property
    def due(self) -> float:
        """How many more messages it may get: what it subscribed with and was granted, less what it got."""
        return inf if self.credit is None else self.credit + self.granted - len(self.delivers)

    def is_open(self, i: int) -> bool:
        """Whether it is known to others just after event `i`, and not about to close."""
        return (self.registered <= i or bool(self.moves)) and self.until > i

    def wants_at_rest(self, i: int) -> bool:
        """Whether its client wants messages just after event `i`, the last, when no call is under way."""
        wish = self.wish.at(i)
        return self.asked == {True} if wish is None else wish

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
        """By name, the latest that bears it."""
        self.subscriptions: list[ConsumerHistory] = []
        """All consumers, in the order in which they subscribed."""
        self._registrations: dict[str, ConsumerHistory] = {}
        """By their memberships in the lists of all consumers."""
        self._entered: dict[str, tuple[str, ConsumerHistory]] = {}
        """By thread: the call (`consumer` or `grant`) that it has just begun, and for whom."""
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
            call = CallSpan(e.ev, e.proc, e.i, e, self._of(e))
            stack.append(call)
            self.calls.append(call)
        inside = stack[-1] if stack else None
        handler = self._HANDLERS.get(e.ev)
        if handler is not None:
            handler(self, e)
        if self._entered and e.ev not in AT_THE_BEGINNING:
            self._entered.pop(e.proc, None)
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
        name = catalogue.sub.get(e, "")
        stack = self.under_way.get(e.proc)
        if stack and (by := stack[-1].by) is not None and by.name == name:
            return by
        return self.consumers.get(name)

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
            self._joined(e, node)
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

    def _joined(self, e: Event, node: str) -> None:
        """A consumer's membership was linked: if it is that of all consumers, then the consumer is registered."""
        if not catalogue.list_name(e).endswith(".All"):
            return
        name = consumer_of(node)
        _, by = self._entered.get(e.proc, ("", None))
        consumer = by if by is not None and by.name == name else self.consumers.get(name)
        if consumer is not None and consumer.registered == inf:
            consumer.registered = e.i
            self._registrations[node] = consumer

    def _on_mark(self, e: Event) -> None:
        """A membership ended: if it is that of all consumers, then so did the subscription, with a close or without."""
        consumer = self._registrations.get(catalogue.node(e))
        if consumer is not None:
            consumer.until = min(consumer.until, e.i)

    def _on_entry_cas(self, e: Event) -> None:
        entry = self.entry(e.m)
        entry.changes.append(e)
        if catalogue.ok(e):
            new = catalogue.new_state(e)
            if new == "ACQUIRED":
                entry.acquirers[e.i] = self._of(e)
                entry.state.put(e.i, (new, catalogue.sub(e)))
            else:
                entry.state.put(e.i, (new, ""))

    def _on_deliver(self, e: Event) -> None:
        entry = self.entry(e.m)
        if (consumer := self._of(e)) is not None:
            entry.delivers.append(e)
            self._got(consumer, e)

    def _on_browse(self, e: Event) -> None:
        entry = self.entry(e.m)
        if (consumer := self._of(e)) is not None:
            entry.browses.append(e)
            self._got(consumer, e)

    def _got(self, consumer: ConsumerHistory, e: Event) -> None:
        """It was given or shown a message; if that used up its credit in a pull, it is about to want no more."""
        consumer.delivers.append(e)
        if consumer.due == 0 and any(call.ev == "pull" for call in self.under_way[e.proc]):
            consumer.wish.change(e.i, None)

    def _on_pull(self, e: Event) -> None:
        consumer = self._of(e)
        if e.ph == "ok" and consumer is not None and consumer.due == 0 and e.m:
            consumer.wish.change(e.i, False)

    def _on_consumer(self, e: Event) -> None:
        keys = catalogue.keys.get(e, None)
        consumer = ConsumerHistory(
            name=catalogue.sub(e),
            number=len(self.subscriptions),
            q=e.q,
            acquires=catalogue.acquires(e),
            cprio=e.cprio or 0,
            keys=None if keys is None else frozenset(keys),
            credit=e.credit,
            credit_left=e.credit,
            exclusive=bool(e.exclusive),
            since=e.i,
        )
        wants = e.credit is None or e.credit > 0
        consumer.wants.put(e.i, wants)
        consumer.wish.put(e.i, wants)
        consumer.listed.put(e.i, "Removed")
        self.consumers[consumer.name] = consumer
        self.subscriptions.append(consumer)
        self._entered[e.proc] = ("consumer", consumer)

    def _on_close(self, e: Event) -> None:
        if (consumer := self._of(e)) is None:
            return
        if e.ph == "invoke":
            consumer.until = min(
                consumer.until, e.i if consumer.leaves is None else consumer.leaves
            )
            consumer.wish.change(e.i, None)
        else:
            consumer.closed = True
            consumer.wish.change(e.i, False)

    def _on_wants(self, e: Event) -> None:
        if (consumer := self._of(e)) is not None:
            wants = catalogue.value_wanted(e)
            consumer.wants.change(e.i, wants)
            consumer.leaves = None
            if not self.under_way[e.proc]:  # a call that is not on record, or that closes it
                consumer.wish.change(e.i, wants or None)
                consumer.leaves = None if wants else e.i

    def _on_qcm_move(self, e: Event) -> None:
        if (consumer := self._of(e)) is not None:
            consumer.moves.append(e)
            entered = catalogue.move_at(e) == "enter"
            consumer.listed.put(e.i, catalogue.new_list(e) if entered else "")

    def _on_work_desired(self, e: Event) -> None:
        """The client asks for messages or for none, unless it is the queue that says so in another of its calls.

        A consumer of a pull queue that has no credit asks in vain: a grant will resume it.
        """
        consumer, stack = self._of(e), self.under_way[e.proc]
        if consumer is None or not stack or stack[-1].ev != e.ev:
            return
        call = stack[-1]
        if e.ph == "invoke":
            # A grant is followed by one such call; the next one of this thread is the client's.
            ev, by = self._entered.pop(e.proc, ("", None))
            of_the_queue = len(stack) > 1 and stack[-2].ev in ("pull", "close")
            in_vain = consumer.due <= 0 and catalogue.desired(e) and self.kind(consumer.q) == "pull"
            if of_the_queue or in_vain:
                return
            call.asks = True if ev == "grant" and by is consumer else catalogue.desired(e)
            consumer.asking += 1
            consumer.asked.add(call.asks)
            consumer.wish.change(e.i, None)
        elif call.asks is not None:
            consumer.asking -= 1
            if not consumer.asking:
                # Of several that overlapped the one counts that wrote the flag last.
                alike = len(consumer.asked) == 1
                consumer.wish.change(e.i, call.asks if alike else consumer.wants.last())
                consumer.asked.clear()

    def _on_grant(self, e: Event) -> None:
        if (consumer := self._of(e)) is not None:
            consumer.granted += catalogue.granted(e)
            consumer.grants.append(e)
            consumer.asked.add(True)
            consumer.wish.change(e.i, None)
            self._entered[e.proc] = ("grant", consumer)

    def _on_credit(self, e: Event) -> None:
        if (consumer := self._of(e)) is not None:
            consumer.paid.append(e)
            consumer.credit_left = (consumer.credit_left or 0) + catalogue.delta(e)

    def _on_ptr_cas(self, e: Event) -> None:
        if catalogue.ok(e) and (consumer := self._of(e)) is not None:
            consumer.pointer.append(e)

    def _on_notify(self, e: Event) -> None:
        if (consumer := self._of(e)) is not None:
            self.notifies.append(e)
            consumer.notified.append(e)

    def _on_clock(self, e: Event) -> None:
        self.clock.put(e.i, catalogue.now(e))

    def _on_snapshot(self, e: Event) -> None:
        self.snapshots[e.q] = e

    _HANDLERS: ClassVar[Mapping[str, Callable[[QueueState, Event], None]]] = {
        "queue": _on_queue,
        "enqueue": _on_enqueue,
        "link": _on_link,
        "mark": _on_mark,
        "entry_cas": _on_entry_cas,
        "deliver": _on_deliver,
        "browse": _on_browse,
        "pull": _on_pull,
        "work_desired": _on_work_desired,
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


AT_THE_BEGINNING = frozenset(
    {"consumer", "grant", "size", "link", "unlink", "mark", "credit", "work_desired"}
)
"""Events that a call may record before the one by which it sets what its client asked for."""


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
