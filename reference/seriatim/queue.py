"""A message queue that keeps its promises, in as little code as is correct.

Two published designs of one broker are written down here: the queue that *pushes* (article "Strict Ordering":
a publisher tries to deliver what it has just enqueued) and the queue that is *pulled* from (article "Consumer-Queue
Interactions": the queue wakes a consumer, which then takes messages until there are none).
They share the list, the entries and the pointers; `PushQueue` and `PullQueue` differ only in what they do when an entry
becomes available. `seriatim.handover` leads from the thread that enqueues to the thread that sends.

How to think of it
------------------
There is one list of entries, in an order that never changes, and there are many threads.
Each shared fact is in one cell, and changes only by compare-and-set from the value that was examined: nine rules.

Rule 1 (place).       An entry is linked once, behind the tail, and never moves. Its order is its place.
Rule 2 (state).       An entry changes state only along `LEGAL`, each time by one compare-and-set from the state it is
                      expected to be in. The thread that wins does what follows from it; a thread that loses, nothing.
Rule 3 (advance).     A consumer's pointer moves forward only past an entry that was seen unwanted, by compare-and-set
                      from the very pointer object from which that entry was reached.
Rule 4 (rewind).      A thread that makes an entry wanted (release, priority arrival, end of a delay, group set free)
                      puts a *fresh* pointer object into every acquiring consumer, moved back if it had gone past the
                      entry. So an advance that was decided on old knowledge loses its compare-and-set.
Rule 5 (announce).    Make the entry available, then rewind, then look for a consumer to take it. In that order.
Rule 6 (re-check).    A thread that is about to wait first publishes that intent (clears its flag, moves to Interested)
                      and then checks once more. So either the arriving work sees the waiting consumer, or the
                      consumer sees the work.
Rule 7 (hand-off).    A consumer that was woken and does not take, for whatever reason, wakes another that could. Who
                      leaves an entry to a consumer of higher priority wakes that one, which may find it gone.
Rule 8 (lists).       Deleting marks; only iteration unlinks; the last node stays linked, for an append may be under way
                      behind it. Counters go up before and down after, so they never read negative.
Rule 9 (close).       `close` is final: from then on every call for the consumer is without effect, a second `close`
                      too. Which call closes is decided once, in `wants_work`. What a caller may not ask for is refused
                      (`QueueMisuse`) before anything has changed.

Why no wake-up is lost: suppose an entry is available and a ready consumer wants it. Who announced it either found the
consumer in Interested and notified it, or did not, for it was Notified or moving; then it has a check ahead of it
(rules 6 and 7). `spec/PROPERTIES.md` says this exactly; WK-1 checks it.

What this file does not know
----------------------------
Threads, clocks and logs: it asks its `Host`. Persistence, transactions, bytes, back-pressure other than credit, and the
network. Only the thread that runs a consumer's connection may `grant`, resume (`set_notify_work_desired(True)`), pull
(`deliver_single_message`) and `close`, as in the articles; everything else may be called from any thread.
Memory is reclaimed by the garbage collector: a node that is still referenced is never used again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import deal

from seriatim.groups import Groups
from seriatim.host import Cell, Host, operation
from seriatim.message import Message as Message
from seriatim.message import sub_queue

# ==== A list: append at the tail, mark to delete, unlink while iterating (Michael & Scott, PODC 1996)


class Node:
    """A node of a list. `id` rises in link order; a bare `Node` is the sentinel before the first."""

    def __init__(self, host: Host, list_name: str, rank: int = 0) -> None:
        self.list_name = list_name
        self.rank = rank
        self.id = 0
        self.next: Cell[Node | None] = host.cell(None, f"{list_name}.next", kind="next", owner=self)

    def deleted(self) -> bool:
        """Whether it was deleted for good, though it may still be linked. A sentinel never is asked."""
        raise NotImplementedError

    def place(self) -> tuple[int, int]:
        """Smaller is earlier: by list, then in order of arrival."""
        return (self.rank, self.id)

    def __repr__(self) -> str:
        return f"{self.list_name}#{self.id}"


N = TypeVar("N", bound=Node)


class NodeList(Generic[N]):
    """A lock-free list: appends behind the tail, iterates over what is not deleted, unlinks what is."""

    def __init__(self, host: Host, name: str, rank: int = 0) -> None:
        self.host = host
        self.name = name
        self.head = Node(host, name, rank)
        self._tail: Cell[Node] = host.cell(self.head, f"{name}.tail")

    def append(self, node: N) -> None:
        """Link the node behind the last, which gives it its number."""
        while True:
            tail = self._tail.get()
            node.id = tail.id + 1
            if tail.next.compare_and_set(None, node):
                self._tail.compare_and_set(tail, node)
                return
            following = tail.next.get()
            assert following is not None
            self._tail.compare_and_set(tail, following)  # finish what another append began

    def next(self, node: Node) -> N | None:
        """The first node behind `node` that is not deleted; deleted nodes are unlinked on the way."""
        following = node.next.get()
        while following is not None and following.deleted():
            beyond = following.next.get()
            if beyond is None:
                return None  # rule 8: the last node stays
            node.next.compare_and_set(following, beyond)
            following = node.next.get()
        return following  # type: ignore[return-value]  # only `append` links, and it takes N

    def __iter__(self) -> Iterator[N]:
        node = self.next(self.head)
        while node is not None:
            yield node
            node = self.next(node)


# ==== Entries and their states


@dataclass(frozen=True, eq=False)
class State:
    """A state of an entry, compared by identity: each release makes a new AVAILABLE, each consumer has its ACQUIRED."""

    name: str
    holder: str = ""
    """The consumer that has acquired the entry."""

    def __repr__(self) -> str:
        return f"{self.name} by {self.holder}" if self.holder else self.name


AVAILABLE = State("AVAILABLE")
DELAYED = State("DELAYED")
DEQUEUED = State("DEQUEUED")
DELETED = State("DELETED")

LEGAL = frozenset(
    {
        ("DELAYED", "AVAILABLE"),  # its time came
        ("AVAILABLE", "ACQUIRED"),  # a consumer took it
        ("ACQUIRED", "AVAILABLE"),  # the consumer released it
        ("ACQUIRED", "DEQUEUED"),  # the consumer is done with it
        ("AVAILABLE", "DEQUEUED"),  # expired, or immediate and not delivered
        ("DEQUEUED", "DELETED"),  # final
    }
)


@deal.ensure(
    lambda before, after, result: not result or before.name != "DELETED",
    message="ES-3: deleted is final",
)
def legal(before: State, after: State) -> bool:
    """Whether an entry may go from one state to the other (ES-1)."""
    return (before.name, after.name) in LEGAL


class QueueEntry(Node):
    """A message in its place."""

    def __init__(
        self, host: Host, list_name: str, rank: int, message: Message, state: State
    ) -> None:
        super().__init__(host, list_name, rank)
        self.message = message
        self.state = host.cell(state, f"{message.id}.state", kind="entry state", owner=self)

    def deleted(self) -> bool:
        return self.state.get().name in ("DEQUEUED", "DELETED")

    def available(self) -> State | None:
        """The state from which a consumer may acquire it now, if it may."""
        return state if (state := self.state.get()).name == "AVAILABLE" else None

    @deal.pre(lambda self, expected, new: legal(expected, new), message="ES-1: no such transition")
    def change(self, expected: State, new: State) -> bool:
        """The only way to change the state (rule 2)."""
        return self.state.compare_and_set(expected, new)

    def __repr__(self) -> str:
        return self.message.id


class OrderedQueueEntryList(NodeList[QueueEntry]):
    """First in, first out."""

    overtaking = False
    """Whether an arrival can stand before an entry that arrived earlier."""

    def add(self, message: Message, state: State) -> QueueEntry:
        """Append a new entry and return it."""
        entry = QueueEntry(self.host, self.name, self.head.rank, message, state)
        self.append(entry)
        return entry


class PriorityQueueEntryList:
    """Sub-queues from the highest priority down: the end of one is followed by the beginning of the next."""

    overtaking = True

    def __init__(self, host: Host, name: str, levels: int) -> None:
        self._by_rank = [OrderedQueueEntryList(host, f"{name}.{n}", n) for n in range(levels)]
        self.head = self._by_rank[0].head

    def add(self, message: Message, state: State) -> QueueEntry:
        """Append a new entry to the sub-queue of its priority and return it."""
        level = sub_queue(message.priority, len(self._by_rank))
        return self._by_rank[-1 - level].add(message, state)

    def next(self, node: Node) -> QueueEntry | None:
        """The first entry behind `node` that is not deleted, in its sub-queue or a lower one."""
        entry = self._by_rank[node.rank].next(node)
        for lower in self._by_rank[node.rank + 1 :]:
            if entry is not None:
                break
            entry = lower.next(lower.head)
        return entry

    def __iter__(self) -> Iterator[QueueEntry]:
        for level in self._by_rank:
            yield from level


QueueEntryList = OrderedQueueEntryList | PriorityQueueEntryList
"""Both have a `head`, which stands before every entry."""


# ==== Consumers and their pointers


class Pointer:
    """A consumer's progress: `entry` is the next to examine or, when `passed`, the last that it was given.

    Compared by identity, so a fresh pointer at the same place is another one (rules 3 and 4). `cause` says why it is.
    """

    def __init__(self, entry: Node, cause: str, passed: bool = False) -> None:
        self.entry = entry
        self.cause = cause
        self.passed = passed

    def __repr__(self) -> str:
        return f"{'past' if self.passed else 'at'} {self.entry}"


class Target(Protocol):
    """The client's end of a consumer: it is woken, and it is sent what was taken for it. Neither raises.

    A queue that pushes calls `send` on any thread, under the consumer's send lock: from there a client neither enqueues
    nor closes, for it would wait for itself, or two clients for each other. All else that is said of the consumer's own
    thread may be done from `send`, too.
    """

    def notify_work(self, consumer: Consumer) -> None:
        """The consumer was woken: its thread has to take messages. From here the queue may be called."""

    def send(self, consumer: Consumer, entry: QueueEntry) -> None:
        """The entry was acquired for the consumer, or shown to it if it is a browser."""


@dataclass(eq=False, repr=False)
class Consumer:
    """A subscription to one queue. Made by `Queue.subscribe`."""

    queue: Queue
    name: str
    target: Target
    acquires: bool
    """False for a browser, which is shown messages and acquires none."""
    priority: int
    keys: frozenset[str] | None
    """What it selects; None: everything."""
    allowance: int | None
    """Its credit to begin with; None: without limit."""
    exclusive: bool

    def __post_init__(self) -> None:
        host, name = self.queue.host, self.name
        self.acquired = State("ACQUIRED", name)
        start = Pointer(self.queue.entries.head, "start")
        self.pointer = host.cell(start, f"{name}.pointer", kind="pointer", owner=self)
        self.credit: Cell[int] | None = None
        if self.allowance is not None:
            self.credit = host.cell(self.allowance, f"{name}.credit", kind="credit", owner=self)
        # None: closed. In a pull queue it is raised when the consumer comes into Interested.
        wants: bool | None = self.queue.kind == "push" and self.allowance != 0
        self.wants_work = host.cell(wants, f"{name}.wants_work", kind="wants", owner=self)
        self.send_lock = host.lock(f"{name}.send_lock")
        self.in_all = ListEntry(host, self.queue.all.name, self)
        self.moving = host.lock(f"{name}.moving")
        self.listed = REMOVED  # which list of the manager it is in; guarded by `moving`
        self.in_list: ListEntry | None = None  # and where; guarded by `moving`

    def has_interest(self, entry: QueueEntry) -> bool:
        """Whether its selector matches the entry, whatever the entry's state or its own credit."""
        return self.keys is None or entry.message.key in self.keys

    def set_wants(self, desired: bool) -> bool:
        """Set whether it wants messages at present; False if it is closed."""
        changed = self.wants_work.compare_and_set(not desired, desired)
        return changed or self.wants_work.get() is not None

    def has_credit(self) -> bool:
        """Whether it could pay for a message."""
        return self.credit is None or self.credit.get() > 0

    def take_credit(self) -> bool:
        """Pay for one message in advance; False if it cannot."""
        if self.credit is None:
            return True
        while (left := self.credit.get()) > 0:
            if self.credit.compare_and_set(left, left - 1):
                return True
        return False

    def restore_credit(self) -> None:
        """Restore what an attempt paid that acquired nothing (ES-6)."""
        if self.credit is not None:
            self.credit.add(1)


class ListEntry(Node):
    """A consumer's membership of one list. Leaving marks it; a later iteration unlinks it."""

    def __init__(self, host: Host, list_name: str, consumer: Consumer) -> None:
        super().__init__(host, list_name)
        self.consumer = consumer
        self.marked = host.cell(False, f"{list_name}.marked", kind="marked", owner=self)

    def deleted(self) -> bool:
        return self.marked.get()

    def __repr__(self) -> str:
        return f"{self.consumer.name}@{super().__repr__()}"


class ConsumerList(NodeList[ListEntry]):
    """A list of consumers: append and delete cost O(1), and its size is known without iterating."""

    def __init__(self, host: Host, name: str) -> None:
        super().__init__(host, name)
        self.size = host.cell(0, f"{name}.size", kind="size", owner=self)

    def add(self, entry: ListEntry) -> None:
        """Append a membership."""
        self.size.add(1)
        self.append(entry)

    def delete(self, entry: ListEntry) -> None:
        """End a membership."""
        entry.marked.set(True)
        self.size.add(-1)

    def consumers(self) -> Iterator[Consumer]:
        """Every consumer that is in the list from the iteration's first step to its last, and perhaps others."""
        for entry in self.members():
            yield entry.consumer

    @operation
    def members(self) -> Iterator[ListEntry]:
        """The memberships that have not ended."""
        return iter(self)


class QueueMisuse(Exception):
    """The caller asked for what the queue cannot do, and nothing was changed."""


# ==== The queue, but for how it delivers


class Queue:
    """What makes an entry available, acquired or deleted. When one becomes available a subclass delivers or wakes."""

    kind: str

    def __init__(self, host: Host, name: str = "q", levels: int = 1) -> None:
        self.host = host
        self.name = name
        self.entries: QueueEntryList = (
            OrderedQueueEntryList(host, name)
            if levels == 1
            else PriorityQueueEntryList(host, name, levels)
        )
        self.depth = host.cell(0, f"{name}.depth")
        self.all = ConsumerList(host, f"{name}.All")
        self._admission = host.lock(f"{name}.admission")
        self.exclusive: Cell[Consumer | None] = host.cell(None, f"{name}.exclusive")
        self.groups = Groups[Consumer](host, name)
        host.record("queue", q=name, levels=levels, kind=self.kind)

    @operation
    def enqueue(self, message: Message) -> QueueEntry:
        """Give the message its place, then find a consumer for it.

        Everything that decides who may have it is set before it is linked: from then on it is public.
        """
        self.depth.add(1)
        entry = self.entries.add(message, DELAYED if message.not_before else AVAILABLE)
        if not message.not_before:
            if self.entries.overtaking:
                self._rewind_all(entry)
            self._arrived(entry)
        if message.immediate:
            self.undelivered(entry)
        return entry

    def undelivered(self, entry: QueueEntry) -> None:
        """Discard an immediate message unless it was delivered by now.

        One compare-and-set decides, because a delivery on another thread may be taking it at this moment; the article
        "Strict Ordering" has a check and then a dequeue here, and doubts it. It starts from the AVAILABLE in which
        the entry was made: one that was delivered and released is in another, and an ordinary message from then on.
        """
        if entry.change(AVAILABLE, DEQUEUED):
            self._dispose(entry)

    # ---- what a consumer does with an entry that it acquired

    @operation
    def release(self, entry: QueueEntry, consumer: Consumer) -> bool:
        """Make an entry that `consumer` acquired available again, in its place; False if it has not acquired it."""
        ok = entry.change(consumer.acquired, State("AVAILABLE"))
        if ok:
            if self.groups.leave(entry.message.group, consumer):
                self._announce_group(entry.message.group)
            else:
                self._announce(entry)
        return ok

    @operation
    def dequeue(self, entry: QueueEntry, consumer: Consumer) -> bool:
        """Delete an entry that `consumer` acquired and is done with; False if it has not acquired it."""
        ok = entry.change(consumer.acquired, DEQUEUED)
        if ok:
            self._dispose(entry)
            if self.groups.leave(entry.message.group, consumer):
                self._announce_group(entry.message.group)
        return ok

    @operation
    def check_message_status(self) -> None:
        """Housekeeping, on any thread: make available what was delayed until now, discard what expired."""
        for entry in self.entries:
            if self.host.now() >= entry.message.not_before and entry.change(DELAYED, AVAILABLE):
                self._announce(entry)
            elif (
                self._expired(entry)
                and (seen := entry.available())
                and entry.change(seen, DEQUEUED)
            ):
                self._dispose(entry)

    def _expired(self, entry: QueueEntry) -> bool:
        return entry.message.expires != 0 and self.host.now() > entry.message.expires

    def _dispose(self, entry: QueueEntry) -> None:
        self.depth.add(-1)
        entry.change(DEQUEUED, DELETED)

    # ---- pointers

    def next_available(self, consumer: Consumer) -> tuple[Pointer, State] | None:
        """The pointer at the first entry that `consumer` wants, advanced to it, and the state in which that was seen.

        None if there is no such entry. Any thread may call it for any consumer.
        """
        while True:
            pointer = consumer.pointer.get()
            if not pointer.passed and (seen := self._wanted(consumer, pointer.entry)):
                return pointer, seen
            following = self.entries.next(pointer.entry)
            if following is None:
                return None
            consumer.pointer.compare_and_set(pointer, Pointer(following, "advance"))

    def _wanted(self, consumer: Consumer, node: Node) -> State | None:
        """The state from which `consumer` could acquire it now: available, not expired, selected, its group free."""
        if (
            isinstance(node, QueueEntry)
            and (seen := node.available())
            and not self._expired(node)
            and consumer.has_interest(node)
            and (not consumer.acquires or self.groups.allow(node.message.group, consumer))
        ):
            return seen
        return None

    def _rewind_all(self, entry: QueueEntry) -> None:
        for consumer in self.all.consumers():
            if consumer.acquires:  # a browser never goes back: it sees each entry once (SO-4)
                self._rewind(consumer, entry)

    def _rewind(self, consumer: Consumer, entry: QueueEntry) -> None:
        while True:
            pointer = consumer.pointer.get()
            back = min(entry, pointer.entry, key=Node.place)
            if consumer.pointer.compare_and_set(pointer, Pointer(back, "rewind")):
                return

    def _announce(self, entry: QueueEntry) -> None:
        """An entry that had been passed over is available (rule 5)."""
        self._rewind_all(entry)
        self._returned(entry)

    def _announce_group(self, group: str) -> None:
        """What other consumers had to pass over is available to them again."""
        for entry in self.entries:
            if entry.message.group == group and entry.available():
                self._announce(entry)

    def _arrived(self, entry: QueueEntry) -> None:
        """A new entry is available: deliver it, or see to it that a consumer will check."""
        raise NotImplementedError

    def _returned(self, entry: QueueEntry) -> None:
        """An old entry is available again: see to it that a consumer will check."""
        raise NotImplementedError

    # ---- acquiring

    def attempt(
        self, consumer: Consumer, path: str, only: QueueEntry | None = None
    ) -> QueueEntry | None:
        """Take the next entry for `consumer` (only if it is `only`, when that is given), or None.

        Credit is paid before the entry is acquired and restored if another consumer was faster.
        `path` names the way that led here: `deliver_single_message` or `deliver_to`, where it cannot close meanwhile.
        """
        return self._attempt(consumer, path, only)[0]

    def _attempt(
        self, consumer: Consumer, path: str, only: QueueEntry | None = None
    ) -> tuple[QueueEntry | None, Consumer | None]:
        """The entry that was taken, or None and, if it was left to another consumer, that one."""
        while True:
            entry, first = self._attempt_once(consumer, path, only)
            if entry is not None or first is not consumer:
                return entry, first
            consumer.restore_credit()

    @operation
    def _attempt_once(
        self, consumer: Consumer, path: str, only: QueueEntry | None
    ) -> tuple[QueueEntry | None, Consumer | None]:
        """The entry that was taken, and `consumer` if it paid, or whom it leaves an entry to."""
        found = self.next_available(consumer)
        if found is None or (only is not None and found[0].entry is not only):
            return None, None
        first = self._first_to_take(consumer, found[0].entry)
        if first is not consumer:
            return None, first
        if not consumer.take_credit():
            return None, None
        return self._take(consumer, *found), consumer

    @operation
    def _take(self, consumer: Consumer, pointer: Pointer, seen: State) -> QueueEntry | None:
        entry = pointer.entry
        assert isinstance(entry, QueueEntry)
        if consumer.acquires:
            if not self.groups.join(entry.message.group, consumer):
                return None
            if not entry.change(seen, consumer.acquired):  # as it was when `_first_to_take` looked
                if self.groups.leave(entry.message.group, consumer):
                    self._announce_group(entry.message.group)
                return None
        elif not consumer.pointer.compare_and_set(pointer, Pointer(entry, "browse", passed=True)):
            return None
        return entry

    def _first_to_take(self, consumer: Consumer, entry: Node) -> Consumer:
        """`consumer`, which could take the entry, or to whom it has to leave it."""
        return consumer

    # ---- consumers come and go

    def subscribe(
        self,
        name: str,
        target: Target,
        *,
        acquires: bool = True,
        priority: int = 0,
        keys: frozenset[str] | None = None,
        credit: int | None = None,
        exclusive: bool = False,
    ) -> Consumer:
        """Register a consumer, with `credit` messages to begin with (None: without limit).

        Raises `QueueMisuse` if `credit` is negative, or if another consumer is there, or closing, and has the same
        name (by which histories know it) or one of the two wants to be the only one.
        """
        if credit is not None and credit < 0:
            raise QueueMisuse(f"consumer {name}: credit is 0 or more, not {credit}")
        consumer = Consumer(self, name, target, acquires, priority, keys, credit, exclusive)
        with self._admission:
            for other in self.all.consumers():
                if exclusive or other.exclusive or other.name == name:
                    raise QueueMisuse(f"queue {self.name} has {other.name}; {name} cannot join it")
            self._join(consumer)
        self._begin(consumer)
        return consumer

    @operation
    def _join(self, consumer: Consumer) -> None:
        if consumer.exclusive:
            self.exclusive.set(consumer)
        self.all.add(consumer.in_all)

    def close(self, consumer: Consumer) -> None:
        """Remove the consumer, on its thread. What it acquired goes back to its place, for the others."""
        with consumer.send_lock:  # after any delivery to it that is under way
            if consumer.wants_work.get_and_set(None) is None:
                return
        self._close(consumer)
        if consumer.exclusive:
            self.exclusive.set(None)
        self.all.delete(consumer.in_all)  # last: from here on others are admitted

    @operation
    def _close(self, consumer: Consumer) -> None:
        self._end(consumer)
        for entry in self.entries:
            if entry.state.get() is consumer.acquired:
                self.release(entry, consumer)

    def grant(self, consumer: Consumer, messages: int) -> None:
        """Allow `messages` more, at least 1 (else `QueueMisuse`), and resume. On the consumer's thread."""
        if messages < 1:
            raise QueueMisuse(f"consumer {consumer.name}: a grant is 1 or more, not {messages}")
        if consumer.wants_work.get() is not None:
            self.host.record("grant", sub=consumer.name, messages=messages)
            if consumer.credit is not None:
                consumer.credit.add(messages)
            self.set_notify_work_desired(consumer, True)

    def set_notify_work_desired(self, consumer: Consumer, desired: bool) -> None:
        """Set whether the consumer wants messages at present (flow control, credit, back-pressure).

        Any thread may say no, only the consumer's yes; a `PullQueue` ignores a yes without credit.
        """
        raise NotImplementedError

    def _begin(self, consumer: Consumer) -> None:
        """Let a consumer that is in All be served."""
        raise NotImplementedError

    def _end(self, consumer: Consumer) -> None:
        """Let a consumer that is closed be served no more."""


# ==== Push: article "Strict Ordering"

Submit = Callable[[Callable[[], None]], None]
"""Hands a job to an executor, not to run there and then: the caller may hold a send lock. If it raises, no call fails
for that: the next that needs a job asks again, or who refused does, with `deliver_async`, once jobs are taken again."""


class PushQueue(Queue):
    """The publisher delivers what it enqueued if it can; otherwise a job does, later, on another thread.

    Restored credit, regained interest and released entries start the job too.
    """

    kind = "push"

    def __init__(self, host: Host, submit: Submit, name: str = "q", levels: int = 1) -> None:
        super().__init__(host, name, levels)
        self._submit = submit
        self._job_pending = host.cell(False, f"{name}.job_pending", kind="job pending", owner=self)
        self._last_delivered: Cell[Node] = host.cell(self.all.head, f"{name}.last_delivered")

    def _arrived(self, entry: QueueEntry) -> None:
        alone = self.exclusive.get()
        path = "general" if alone is None else "shortcut"
        for consumer in self._in_turn() if alone is None else (alone,):
            if self.deliver_to(consumer, path, entry) and consumer.acquires:
                return
        if not entry.message.immediate and entry.available():
            self.deliver_async()

    def _returned(self, entry: QueueEntry) -> None:
        self.deliver_async()  # not here and now: the caller may hold a send lock

    def _in_turn(self) -> Iterator[Consumer]:
        """All consumers, beginning behind the one that was served last."""
        last = self._last_delivered.get()
        node = self.all.next(last)
        while node is not None:
            yield node.consumer
            node = self.all.next(node)
        for node in self.all:
            if node.id > last.id:
                return
            yield node.consumer

    def deliver_to(
        self, consumer: Consumer, path: str, only: QueueEntry | None = None
    ) -> QueueEntry | None:
        """One attempt, for a consumer that wants work, under its send lock, so that it does not close meanwhile."""
        with consumer.send_lock:
            entry = self.attempt(consumer, path, only) if consumer.wants_work.get() else None
            if entry is not None:
                self._last_delivered.set(consumer.in_all)
                consumer.target.send(consumer, entry)
            return entry

    def deliver_async(self) -> None:
        """See to it that a delivery job begins after this moment."""
        if self._job_pending.compare_and_set(False, True):
            try:
                self._submit(self._job)
            except BaseException as error:
                self._job_pending.set(False)
                if not isinstance(error, Exception):
                    raise

    def _job(self) -> None:
        self._job_pending.set(False)  # rule 6: clear the flag, then check
        for consumer in self.all.consumers():
            while self.deliver_to(consumer, "job"):
                pass

    @operation
    def set_notify_work_desired(self, consumer: Consumer, desired: bool) -> None:
        if consumer.set_wants(desired) and desired:
            self.deliver_async()

    def _begin(self, consumer: Consumer) -> None:
        self.deliver_async()


# ==== Pull: article "Consumer-Queue Interactions"

REMOVED, NON_ACQUIRING, NOT_INTERESTED = "Removed", "NonAcquiring", "NotInterested"
INTERESTED, NOTIFIED = "Interested", "Notified"


class QueueConsumerManager:
    """Which consumer is in which list. Amid a move, under its own lock, it is in none: hence `Queue.all`."""

    def __init__(self, host: Host, name: str) -> None:
        self.host = host
        self.name = name
        self.lists = {
            kind: ConsumerList(host, f"{name}.{kind}")
            for kind in (NON_ACQUIRING, NOT_INTERESTED, NOTIFIED)
        }
        self.by_priority: Cell[tuple[tuple[int, ConsumerList], ...]] = host.cell(
            (), f"{name}.{INTERESTED}"
        )
        """The lists of the Interested, each with its consumers' priority, highest first."""

    def interested(self) -> Iterator[Consumer]:
        """The Interested, those of higher priority first, those who have waited longer first among equals."""
        for _, members in self.by_priority.get():
            yield from members.consumers()

    def set_interest(self, consumer: Consumer, desired: bool, new: bool = False) -> bool:
        """Move a consumer that wants messages, or no longer does; False if it is not where the move begins.

        One that is `new` is in no list, as one that was removed; nothing else leads out of Removed.
        """
        wanting = INTERESTED if consumer.acquires else NON_ACQUIRING
        origins = (NOT_INTERESTED,) if desired else (wanting, NOTIFIED)
        to = wanting if desired else NOT_INTERESTED
        return self._move(consumer, (REMOVED,) if new else origins, to, wants=desired)

    def set_notified(self, consumer: Consumer, notified: bool) -> bool:
        """Move a consumer to or from Notified; False if it is not where the move begins.

        A browser is never in Notified: it may be woken at any time it wants to be.
        """
        origin, to = (INTERESTED, NOTIFIED) if notified else (NOTIFIED, INTERESTED)
        return not consumer.acquires or self._move(consumer, (origin,), to)

    def remove(self, consumer: Consumer) -> None:
        """Take a consumer out of its list for good."""
        self._move(consumer, (NON_ACQUIRING, NOT_INTERESTED, INTERESTED, NOTIFIED), REMOVED)

    def _move(
        self, consumer: Consumer, origins: tuple[str, ...], to: str, wants: bool | None = None
    ) -> bool:
        with consumer.moving:
            # The flag first: a consumer woken next must not be held back by an interest that is over.
            if wants is not None:
                consumer.set_wants(wants)
            origin = consumer.listed
            if origin not in origins:
                return False
            self.host.record("qcm_move", sub=consumer.name, old=origin, new=to, at="leave")
            if consumer.in_list is not None:
                self._list(origin, consumer.priority).delete(consumer.in_list)
            consumer.listed = to
            consumer.in_list = None
            if to != REMOVED:
                members = self._list(to, consumer.priority)
                consumer.in_list = ListEntry(self.host, members.name, consumer)
                members.add(consumer.in_list)
            self.host.record("qcm_move", sub=consumer.name, old=origin, new=to, at="enter")
            return True

    def _list(self, name: str, priority: int) -> ConsumerList:
        if name != INTERESTED:
            return self.lists[name]
        while True:
            pairs = self.by_priority.get()
            for at, members in pairs:
                if at == priority:
                    return members
            pair = (priority, ConsumerList(self.host, f"{self.name}.{INTERESTED}.{priority}"))
            self.by_priority.compare_and_set(
                pairs, tuple(sorted((*pairs, pair), key=lambda p: -p[0]))
            )


class PullQueue(Queue):
    """The queue wakes a consumer; the consumer, on its own thread, takes messages until there are none for it."""

    kind = "pull"

    def __init__(self, host: Host, name: str = "q", levels: int = 1) -> None:
        super().__init__(host, name, levels)
        self.manager = QueueConsumerManager(host, name)

    def _arrived(self, entry: QueueEntry) -> None:
        """Wake every browser that wants it, and one consumer."""
        for consumer in self.manager.lists[NON_ACQUIRING].consumers():
            if consumer.has_interest(entry):
                self._notify(consumer)
        for consumer in self.manager.interested():
            if consumer.has_interest(entry) and self._notify(consumer):
                return

    _returned = _arrived

    def _notify(self, consumer: Consumer) -> bool:
        """If there is an entry for `consumer`, wake who is the first to take it; return whether that was done."""
        found = self.next_available(consumer)
        return found is not None and self._wake(self._first_to_take(consumer, found[0].entry))

    def _wake(self, consumer: Consumer) -> bool:
        if not self.manager.set_notified(consumer, True):
            return False
        self.host.record("notify", sub=consumer.name)
        consumer.target.notify_work(consumer)
        return True

    def _notify_other(self, consumer: Consumer) -> None:
        """Rule 7: another consumer, if there is one, has to check now."""
        for other in self.manager.interested():
            if other is not consumer and self._notify(other):
                return

    def _first_to_take(self, consumer: Consumer, entry: Node) -> Consumer:
        """`consumer`, or the first of highest priority above it that wants work and would take this entry."""
        first = consumer
        for other in self.all.consumers() if consumer.acquires else ():
            if (
                other.priority > first.priority
                and other.acquires
                and self._wanted(other, entry)
                and other.wants_work.get()
            ):
                first = other
        return first

    @operation
    def deliver_single_message(self, consumer: Consumer) -> QueueEntry | None:
        """Take the next entry for a consumer that was woken, or None. Called on the consumer's own thread.

        While it gets entries it stays in Notified, and must call again.
        """
        self.manager.set_notified(consumer, False)  # rule 6: be seen to wait, then check
        entry = None
        if consumer.wants_work.get():
            entry, first = self._attempt(consumer, "pull")
            if entry is not None:
                self.manager.set_notified(consumer, True)
                consumer.target.send(consumer, entry)
                if not consumer.has_credit():
                    self.set_notify_work_desired(consumer, False)
            elif consumer.acquires and (first is None or not self._wake(first)):
                self._notify_other(consumer)
        return entry

    @operation
    def set_notify_work_desired(self, consumer: Consumer, desired: bool) -> None:
        if desired and not consumer.has_credit():
            return  # a grant will resume it
        if self.manager.set_interest(consumer, desired):
            if desired:
                self._notify(consumer)
            elif consumer.acquires:
                self._notify_other(consumer)

    def _begin(self, consumer: Consumer) -> None:
        wants = consumer.has_credit()
        self.manager.set_interest(consumer, wants, new=True)
        if wants:
            self._notify(consumer)

    def _end(self, consumer: Consumer) -> None:
        self.set_notify_work_desired(consumer, False)
        self.manager.remove(consumer)
