"""The programs of the comparison in plain Python with `threading`, as both peers want them.

Run by the interpreters of the peers: nothing of this project can be imported here.
A read of a cell is a plain read of an attribute; only compare-and-set, which Python lacks, takes a lock,
one for each cell. That is the least that a peer has to look at.
Every line touches at most one shared thing, so that switching between lines loses nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple


class PlainProgram(NamedTuple):
    """A program: its state, what each thread does with it, and what must hold at the end."""

    setup: Callable[[], Any]
    workers: list[Callable[[Any], None]]
    holds: Callable[[Any], bool] = lambda state: True
    waits: bool = True
    """Whether threads wait on conditions."""


class Counter:
    """A number that two threads increment in two steps."""

    def __init__(self) -> None:
        self.value = 0

    def increment(self) -> None:
        """Read, then write: another increment between them is lost."""
        value = self.value
        self.value = value + 1


def racy_counter(threads: int) -> PlainProgram:
    """So many threads that increment one counter."""
    return PlainProgram(Counter, [Counter.increment] * threads, waits=False)


class Zeros:
    """An array of zeros."""

    def __init__(self, length: int) -> None:
        self.a = [0] * length


def lastzero(n: int) -> PlainProgram:
    """A reader looks for the last zero of an array that n threads fill."""

    def search(row: Zeros) -> None:
        i = n
        while row.a[i] != 0:
            i -= 1

    def writer(j: int) -> Callable[[Zeros], None]:
        def write(row: Zeros) -> None:
            v = row.a[j - 1]
            row.a[j] = v + 1

        return write

    return PlainProgram(
        lambda: Zeros(n + 1), [search, *(writer(j) for j in range(1, n + 1))], waits=False
    )


class ListNode:
    """A node of a linked queue."""

    def __init__(self, value: int) -> None:
        self.value = value
        self.next: ListNode | None = None
        self.lock = threading.Lock()

    def set_next(self, expected: ListNode | None, new: ListNode) -> bool:
        """Compare and set."""
        with self.lock:
            if self.next is expected:
                self.next = new
                return True
            return False


class MichaelScottQueue:
    """The lock-free queue of Michael & Scott."""

    def __init__(self) -> None:
        self.head = self.tail = ListNode(0)
        self.head_lock = threading.Lock()
        self.tail_lock = threading.Lock()

    def set_head(self, expected: ListNode, new: ListNode) -> bool:
        """Compare and set."""
        with self.head_lock:
            if self.head is expected:
                self.head = new
                return True
            return False

    def set_tail(self, expected: ListNode, new: ListNode) -> bool:
        """Compare and set."""
        with self.tail_lock:
            if self.tail is expected:
                self.tail = new
                return True
            return False

    def enqueue(self, value: int) -> None:
        """Append a value."""
        node = ListNode(value)
        while True:
            last = self.tail
            following = last.next
            if last is not self.tail:
                continue
            if following is not None:
                self.set_tail(last, following)
            elif last.set_next(None, node):
                self.set_tail(last, node)
                return

    def dequeue(self) -> int | None:
        """Take the first value; None if the queue is empty."""
        while True:
            first = self.head
            last = self.tail
            following = first.next
            if first is not self.head:
                continue
            if first is not last:
                assert following is not None
                if self.set_head(first, following):
                    return following.value
            elif following is None:
                return None
            else:
                self.set_tail(last, following)


def michael_scott() -> PlainProgram:
    """Two enqueuers and a dequeuer of one queue."""
    return PlainProgram(
        MichaelScottQueue,
        [lambda q: q.enqueue(1), lambda q: q.enqueue(2), lambda q: q.dequeue()],
        waits=False,
    )


class Buffer:
    """A buffer of one place. One of those who wait is notified, whoever it is."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.full = False

    def move(self, to: bool, items: int = 1) -> None:
        """Fill or empty the place so many times, waiting for the other side."""
        for _ in range(items):
            with self.changed:
                while self.full == to:
                    self.changed.wait()
                self.full = to
                self.changed.notify()


def condition_buffer(items: int) -> PlainProgram:
    """One putter and one taker of a buffer of one place."""
    return PlainProgram(Buffer, [lambda b: b.move(True, items), lambda b: b.move(False, items)])


SPEED: dict[str, PlainProgram] = {
    "racy counter, 2 threads": racy_counter(2),
    "racy counter, 3 threads": racy_counter(3),
    "racy counter, 4 threads": racy_counter(4),
    "lastzero(5)": lastzero(5),
    "Michael-Scott, 2 enqueuers, 1 dequeuer": michael_scott(),
    "condition buffer, 3 items": condition_buffer(3),
}
"""Programs in which nothing is wrong, so that a search goes on to its end. Named as in `bench.programs`."""


class Flag:
    """A flag, and a condition for those who wait for it."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.ready = False

    def hasty_wait(self) -> None:
        """Looks before it holds the lock."""
        if not self.ready:
            with self.changed:
                self.changed.wait()

    def set(self) -> None:
        """Set the flag and notify, under the lock."""
        with self.changed:
            self.ready = True
            self.changed.notify()


class Items:
    """A number of items, and a condition for those who wait for one."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.count = 0
        self.stolen = False

    def put_two(self) -> None:
        """Put two items, with a notify each."""
        for _ in range(2):
            with self.changed:
                self.count += 1
                self.changed.notify()

    def take_once(self) -> None:
        """Waits once, and does not look again."""
        with self.changed:
            if self.count == 0:
                self.changed.wait()
            if self.count == 0:
                self.stolen = True
            else:
                self.count -= 1


def take_if_any(items: Items) -> None:
    """Take an item if there is one."""
    with items.changed:
        if items.count > 0:
            items.count -= 1


class Stack:
    """A stack whose `pop` compares the head only: a node that came back looks as if it had never left."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.head = 1
        self.next = [0, 2, 0]
        self.owned_1 = False
        self.owned_2 = False
        self.wrong = False

    def set_head(self, expected: int, new: int) -> bool:
        """Compare and set."""
        with self.lock:
            if self.head == expected:
                self.head = new
                return True
            return False

    def take(self, node: int) -> None:
        """Note that the node has an owner, and whether it had one already."""
        with self.lock:
            if node == 1:
                self.wrong = self.wrong or self.owned_1
                self.owned_1 = True
            else:
                self.wrong = self.wrong or self.owned_2
                self.owned_2 = True

    def pop(self) -> int:
        """Take the first node; 0 if there is none."""
        while True:
            top = self.head
            if top == 0:
                return 0
            following = self.next[top]
            if self.set_head(top, following):
                self.take(top)
                return top

    def slow(self) -> None:
        """Pop twice; the other thread may run between reading the head and comparing."""
        self.pop()
        self.pop()

    def quick(self) -> None:
        """Pop two nodes and push the first back."""
        one = self.pop()
        two = self.pop()
        if one and two:
            self.push(one)

    def push(self, node: int) -> None:
        """Put a node back."""
        with self.lock:
            if node == 1:
                self.owned_1 = False
            else:
                self.owned_2 = False
        while True:
            top = self.head
            self.next[node] = top
            if self.set_head(top, node):
                return


AVAILABLE, ACQUIRED, DEQUEUED = range(3)


class RacyEntry:
    """A message that is delivered or dequeued, by a check that is not atomic."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.state = AVAILABLE
        self.delivered = 0
        self.dequeued = 0

    def acquire(self) -> bool:
        """Compare and set from available to acquired."""
        with self.lock:
            if self.state == AVAILABLE:
                self.state = ACQUIRED
                return True
            return False

    def deliver(self) -> None:
        """Acquire the entry and count a delivery."""
        if self.acquire():
            self.delivered = 1

    def publish(self) -> None:
        """Looks, then dequeues."""
        state = self.state
        if state != ACQUIRED:
            self.state = DEQUEUED
            self.dequeued = 1


class Resource:
    """Something to be disposed of once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.disposed = False
        self.times = 0

    def dispose(self) -> None:
        """Look, then dispose."""
        disposed = self.disposed
        if not disposed:
            self.disposed = True
            with self.lock:
                self.times += 1


class Locks:
    """Two locks that are taken in opposite orders."""

    def __init__(self) -> None:
        self.one = threading.Lock()
        self.two = threading.Lock()

    def forth(self) -> None:
        """The first lock, then the second."""
        with self.one:  # noqa: SIM117  # one step a line
            with self.two:
                pass

    def back(self) -> None:
        """The second lock, then the first."""
        with self.two:  # noqa: SIM117  # one step a line
            with self.one:
                pass


class TwoWords:
    """Two halves that should be read together."""

    def __init__(self) -> None:
        self.low = 0
        self.high = 0
        self.wrong = False

    def write(self) -> None:
        """Write both halves, one after the other."""
        self.low = 1
        self.high = 1

    def read(self) -> None:
        """Read both halves and compare."""
        low = self.low
        high = self.high
        if low != high:
            self.wrong = True


class Peterson:
    """Peterson's entry with its two writes in the wrong order; who may not enter goes away."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.turn = 0
        self.flag = [False, False]
        self.inside = 0
        self.wrong = False

    def enter(self, me: int) -> None:
        """Enter the critical section once, or go away."""
        self.turn = 1 - me
        self.flag[me] = True
        if self.may_not(me):
            return
        with self.lock:
            self.inside += 1
            self.wrong = self.wrong or self.inside > 1
        with self.lock:
            self.inside -= 1
        self.flag[me] = False

    def may_not(self, me: int) -> bool:
        """Whether the other thread has the right of way."""
        other = self.flag[1 - me]
        if not other:
            return False
        turn = self.turn
        return turn != me


class Published:
    """A value that is announced before it is written."""

    def __init__(self) -> None:
        self.ready = False
        self.data = 0
        self.wrong = False

    def publish(self) -> None:
        """Announce, then write."""
        self.ready = True
        self.data = 42

    def read(self) -> None:
        """Read the value if it has been announced."""
        ready = self.ready
        if ready:
            data = self.data
            if data != 42:
                self.wrong = True


class Counted:
    """A list that counts an item after linking it; who takes the item counts it down."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.linked = False
        self.size = 0
        self.wrong = False

    def put(self) -> None:
        """Link an item, then count it."""
        self.linked = True
        with self.lock:
            self.size += 1

    def unlink(self) -> bool:
        """Unlink the item; whether there was one."""
        with self.lock:
            if self.linked:
                self.linked = False
                return True
            return False

    def take(self) -> None:
        """Take the item and count it down."""
        if self.unlink():
            with self.lock:
                self.size -= 1
                self.wrong = self.size < 0


def nothing_wrong(state: Any) -> bool:
    """Whether no thread has seen anything wrong."""
    return not state.wrong


MISTAKES: dict[str, PlainProgram] = {
    "lost update": PlainProgram(Counter, [Counter.increment] * 2, lambda c: c.value == 2, False),
    "lost wake-up": PlainProgram(Flag, [Flag.hasty_wait, Flag.set]),
    "stolen wake-up": PlainProgram(
        Items, [Items.take_once, take_if_any, Items.put_two], lambda items: not items.stolen
    ),
    "notify for notify_all": PlainProgram(
        Buffer, [lambda b: b.move(True)] * 2 + [lambda b: b.move(False)] * 2
    ),
    "ABA": PlainProgram(Stack, [Stack.slow, Stack.quick], nothing_wrong, False),
    "immediate race": PlainProgram(
        RacyEntry,
        [RacyEntry.deliver, RacyEntry.publish],
        lambda e: e.delivered + e.dequeued == 1,
        False,
    ),
    "double dispose": PlainProgram(Resource, [Resource.dispose] * 2, lambda r: r.times == 1, False),
    "lock order": PlainProgram(Locks, [Locks.forth, Locks.back]),
    "torn read": PlainProgram(TwoWords, [TwoWords.write, TwoWords.read], nothing_wrong, False),
    "Peterson turned round": PlainProgram(
        Peterson, [lambda p: p.enter(0), lambda p: p.enter(1)], nothing_wrong, False
    ),
    "unsafe publication": PlainProgram(
        Published, [Published.publish, Published.read], nothing_wrong, False
    ),
    "late counter": PlainProgram(Counted, [Counted.put, Counted.take], nothing_wrong, False),
}
"""Each has a schedule in which something is wrong. Named as in `bench.programs`."""
