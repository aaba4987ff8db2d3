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


class Plain(NamedTuple):
    """A program: its state, what each thread does with it, and what must hold at the end."""

    setup: Callable[[], Any]
    workers: list[Callable[[Any], None]]
    holds: Callable[[Any], bool] = lambda state: True
    waits: bool = True
    """Whether threads wait on conditions."""


class Counter:
    def __init__(self) -> None:
        self.value = 0

    def increment(self) -> None:
        value = self.value
        self.value = value + 1


def racy_counter(threads: int) -> Plain:
    return Plain(Counter, [Counter.increment] * threads, waits=False)


class Row:
    def __init__(self, length: int) -> None:
        self.a = [0] * length


def lastzero(n: int) -> Plain:
    def search(row: Row) -> None:
        i = n
        while row.a[i] != 0:
            i -= 1

    def writer(j: int) -> Callable[[Row], None]:
        def write(row: Row) -> None:
            v = row.a[j - 1]
            row.a[j] = v + 1

        return write

    return Plain(lambda: Row(n + 1), [search, *(writer(j) for j in range(1, n + 1))], waits=False)


class Node:
    def __init__(self, value: int) -> None:
        self.value = value
        self.next: Node | None = None
        self.lock = threading.Lock()

    def set_next(self, expected: Node | None, new: Node) -> bool:
        """Compare and set."""
        with self.lock:
            if self.next is expected:
                self.next = new
                return True
            return False


class Queue:
    """The lock-free queue of Michael & Scott."""

    def __init__(self) -> None:
        self.head = self.tail = Node(0)
        self.head_lock = threading.Lock()
        self.tail_lock = threading.Lock()

    def set_head(self, expected: Node, new: Node) -> bool:
        with self.head_lock:
            if self.head is expected:
                self.head = new
                return True
            return False

    def set_tail(self, expected: Node, new: Node) -> bool:
        with self.tail_lock:
            if self.tail is expected:
                self.tail = new
                return True
            return False

    def enqueue(self, value: int) -> None:
        node = Node(value)
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


def michael_scott() -> Plain:
    return Plain(
        Queue, [lambda q: q.enqueue(1), lambda q: q.enqueue(2), lambda q: q.dequeue()], waits=False
    )


class Buffer:
    """A buffer of one place. One of those who wait is notified, whoever it is."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.full = False

    def move(self, to: bool, items: int = 1) -> None:
        for _ in range(items):
            with self.changed:
                while self.full == to:
                    self.changed.wait()
                self.full = to
                self.changed.notify()


def condition_buffer(items: int) -> Plain:
    return Plain(Buffer, [lambda b: b.move(True, items), lambda b: b.move(False, items)])


SPEED: dict[str, Plain] = {
    "racy counter, 2 threads": racy_counter(2),
    "racy counter, 3 threads": racy_counter(3),
    "racy counter, 4 threads": racy_counter(4),
    "lastzero(5)": lastzero(5),
    "Michael-Scott, 2 enqueuers, 1 dequeuer": michael_scott(),
    "condition buffer, 3 items": condition_buffer(3),
}
"""Programs in which nothing is wrong, so that a search goes on to its end. Named as in `bench`."""


class Flag:
    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.ready = False

    def hasty_wait(self) -> None:
        """Looks before it holds the lock."""
        if not self.ready:
            with self.changed:
                self.changed.wait()

    def set(self) -> None:
        with self.changed:
            self.ready = True
            self.changed.notify()


class Items:
    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.count = 0
        self.stolen = False

    def put_two(self) -> None:
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
    with items.changed:
        if items.count > 0:
            items.count -= 1


MISTAKES: dict[str, Plain] = {
    "lost update": Plain(Counter, [Counter.increment] * 2, lambda c: c.value == 2, False),
    "lost wake-up": Plain(Flag, [Flag.hasty_wait, Flag.set]),
    "stolen wake-up": Plain(
        Items, [Items.take_once, take_if_any, Items.put_two], lambda items: not items.stolen
    ),
    "notify for notify_all": Plain(
        Buffer, [lambda b: b.move(True)] * 2 + [lambda b: b.move(False)] * 2
    ),
}
"""Each has a schedule in which something is wrong. Named as in `comparison`."""
