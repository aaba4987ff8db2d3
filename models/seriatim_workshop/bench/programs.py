"""The programs on which explorers are compared, in our own form: nothing is wrong in six, something in twelve.

The same programs, under the same names, stand under `peers` in the languages of the peers.
"""

from __future__ import annotations

from typing import Any

from seriatim_models.explorer.model.world import World
from seriatim_workshop.litmus import Program, lastzero, racy_counter


class LinkedCell:
    """A node of a Michael-Scott queue."""

    __slots__ = ("next", "value")

    def __init__(self, world: World, value: int) -> None:
        self.value = value
        self.next = world.cell(None)


class LockFreeQueue:
    """The lock-free queue of Michael & Scott (PODC 1996)."""

    def __init__(self, world: World) -> None:
        self.world = world
        dummy = LinkedCell(world, 0)
        self.head = world.cell(dummy, name="head")
        self.tail = world.cell(dummy, name="tail")

    def enqueue(self, value: int) -> None:
        """Append a value."""
        node, tail = LinkedCell(self.world, value), self.tail
        while True:
            last = tail.get()
            following: Any = last.next.get()
            if last is not tail.get():
                continue
            if following is not None:
                tail.compare_and_set(last, following)
            elif last.next.compare_and_set(None, node):  # type: ignore[arg-type]
                tail.compare_and_set(last, node)
                return

    def dequeue(self) -> int | None:
        """Take the first value; None if there is none."""
        head, tail = self.head, self.tail
        while True:
            first, last = head.get(), tail.get()
            following: Any = first.next.get()
            if first is not head.get():
                continue
            if first is not last:
                if head.compare_and_set(first, following):
                    return int(following.value)
            elif following is None:
                return None
            else:
                tail.compare_and_set(last, following)


def michael_scott(enqueuers: int, dequeuers: int) -> Program:
    """So many threads that each enqueue a value, and so many that each dequeue one."""

    def program(world: World) -> None:
        queue = LockFreeQueue(world)
        for k in range(enqueuers):
            world.spawn(lambda k=k: queue.enqueue(k + 1), name=f"enq{k + 1}")  # type: ignore[misc]
        for k in range(dequeuers):
            world.spawn(lambda: world.result(queue.dequeue()), name=f"deq{k + 1}")

    return program


def condition_buffer(items: int) -> Program:
    """A bounded buffer of one place under a condition variable: one putter, one taker."""

    def program(world: World) -> None:
        m = world.lock(name="m")
        changed = world.condition(m, name="changed")
        full = world.cell(False, name="full")

        def move(to: bool) -> None:
            for _ in range(items):
                with m:
                    while full.get() == to:
                        changed.wait()
                    full.set(to)
                    changed.notify()

        world.spawn(lambda: move(True), name="put")
        world.spawn(lambda: move(False), name="take")

    return program


SPEED: dict[str, Program] = {
    "racy counter, 2 threads": racy_counter(2),
    "racy counter, 3 threads": racy_counter(3),
    "racy counter, 4 threads": racy_counter(4),
    "lastzero(5)": lastzero(5),
    "Michael-Scott, 2 enqueuers, 1 dequeuer": michael_scott(2, 1),
    "condition buffer, 3 items": condition_buffer(3),
}
"""Nothing is wrong in them, so that a search goes on to its end."""


def lost_update(world: World) -> None:
    """Two threads increment a counter in two steps."""
    c = world.cell(0, name="counter")
    for _ in range(2):
        world.spawn(lambda: c.set(c.get() + 1))
    world.at_end(lambda: None if c.get() == 2 else f"lost update: {c.get()}")


def lost_wakeup(world: World) -> None:
    """The flag is read before the lock is taken, so the notify can come in between."""
    m = world.lock(name="m")
    changed = world.condition(m, name="changed")
    ready = world.cell(False, name="ready")

    def hasty_wait() -> None:
        if not ready.get():
            with m:
                changed.wait()

    def set_ready() -> None:
        with m:
            ready.set(True)
            changed.notify()

    world.spawn(hasty_wait, name="waiter")
    world.spawn(set_ready, name="setter")


def stolen_wakeup(world: World) -> None:
    """A waiter that does not check again takes an item that another thread has taken."""
    m = world.lock(name="m")
    changed = world.condition(m, name="changed")
    count = world.cell(0, name="count")

    def put_two() -> None:
        for _ in range(2):
            with m:
                count.set(count.get() + 1)
                changed.notify()

    def take_once() -> None:
        with m:
            if count.get() == 0:
                changed.wait()
            assert count.get() > 0, "stolen wake-up: nothing is there"
            count.set(count.get() - 1)

    def take_if_any() -> None:
        with m:
            if count.get() > 0:
                count.set(count.get() - 1)

    for thread in (take_once, take_if_any, put_two):
        world.spawn(thread, name=thread.__name__)


def notify_for_notify_all(world: World) -> None:
    """Two putters and two takers on one condition: a notify may wake the wrong side."""
    m = world.lock(name="m")
    changed = world.condition(m, name="changed")
    full = world.cell(False, name="full")

    def move(to: bool) -> None:
        with m:
            while full.get() == to:
                changed.wait()
            full.set(to)
            changed.notify()

    for to in (True, True, False, False):
        world.spawn(lambda to=to: move(to))  # type: ignore[misc]  # a lambda with a default


def aba(world: World) -> None:
    """A stack whose `pop` compares the head only: a node that came back looks as if it had never left."""
    head = world.cell(1, name="head")
    following = [world.cell(n, name=f"next{k}") for k, n in enumerate((0, 2, 0))]
    owners = [world.cell(0, name=f"owners{k}") for k in range(3)]

    def pop() -> int:
        while top := head.get():
            if head.compare_and_set(top, following[top].get()):
                assert owners[top].get_and_add(1) == 0, "ABA: popped twice"
                return top
        return 0

    def slow() -> None:
        pop()
        pop()

    def quick() -> None:
        one, two = pop(), pop()
        if one and two:
            owners[one].get_and_add(-1)
            while True:
                top = head.get()
                following[one].set(top)
                if head.compare_and_set(top, one):
                    return

    world.spawn(slow, name="slow")
    world.spawn(quick, name="quick")


def immediate_race(world: World) -> None:
    """The publisher looks, then dequeues."""
    entry = world.cell("available", name="entry")
    delivered, dequeued = world.cell(0, name="delivered"), world.cell(0, name="dequeued")

    def deliver() -> None:
        if entry.compare_and_set("available", "acquired"):
            delivered.set(1)

    def publish() -> None:
        if entry.get() != "acquired":
            entry.set("dequeued")
            dequeued.set(1)

    world.spawn(deliver, name="deliverer")
    world.spawn(publish, name="publisher")
    world.at_end(
        lambda: None if delivered.get() + dequeued.get() == 1 else "delivered and dequeued"
    )


def double_dispose(world: World) -> None:
    """Two threads look whether a thing is disposed of, then dispose of it."""
    disposed, times = world.cell(False, name="disposed"), world.cell(0, name="times")

    def dispose() -> None:
        if not disposed.get():
            disposed.set(True)
            assert times.get_and_add(1) == 0, "disposed twice"

    for _ in range(2):
        world.spawn(dispose)


def lock_order(world: World) -> None:
    """Two locks taken in opposite orders."""
    locks = world.lock(name="one"), world.lock(name="two")

    def both(first: int) -> None:
        with locks[first], locks[1 - first]:
            pass

    for first in range(2):
        world.spawn(lambda first=first: both(first))  # type: ignore[misc]  # a lambda with a default


def torn_read(world: World) -> None:
    """Two words written one after the other, and read in between."""
    low, high = world.cell(0, name="low"), world.cell(0, name="high")

    def write() -> None:
        low.set(1)
        high.set(1)

    def read() -> None:
        assert low.get() == high.get(), "torn read"

    world.spawn(write, name="writer")
    world.spawn(read, name="reader")


def peterson_turned(world: World) -> None:
    """Peterson's entry with its two writes in the wrong order; who may not enter goes away."""
    turn, inside = world.cell(0, name="turn"), world.cell(0, name="inside")
    flag = [world.cell(False, name=f"flag{k}") for k in range(2)]

    def enter(me: int) -> None:
        turn.set(1 - me)
        flag[me].set(True)
        if flag[1 - me].get() and turn.get() != me:
            return
        assert inside.get_and_add(1) == 0, "two inside"
        inside.get_and_add(-1)
        flag[me].set(False)

    for me in range(2):
        world.spawn(lambda me=me: enter(me))  # type: ignore[misc]  # a lambda with a default


def unsafe_publication(world: World) -> None:
    """A value is announced before it is written."""
    ready, data = world.cell(False, name="ready"), world.cell(0, name="data")

    def publish() -> None:
        ready.set(True)
        data.set(42)

    def read() -> None:
        if ready.get():
            assert data.get() == 42, "published before it was written"

    world.spawn(publish, name="writer")
    world.spawn(read, name="reader")


def late_counter(world: World) -> None:
    """A list that counts an item after linking it; who takes the item counts it down."""
    linked, size = world.cell(False, name="linked"), world.cell(0, name="size")

    def put() -> None:
        linked.set(True)
        size.get_and_add(1)

    def take() -> None:
        if linked.compare_and_set(True, False):
            assert size.get_and_add(-1) > 0, "counted below zero"

    world.spawn(put, name="putter")
    world.spawn(take, name="taker")


MISTAKES: dict[str, Program] = {
    "lost update": lost_update,
    "lost wake-up": lost_wakeup,
    "stolen wake-up": stolen_wakeup,
    "notify for notify_all": notify_for_notify_all,
    "ABA": aba,
    "immediate race": immediate_race,
    "double dispose": double_dispose,
    "lock order": lock_order,
    "torn read": torn_read,
    "Peterson turned round": peterson_turned,
    "unsafe publication": unsafe_publication,
    "late counter": late_counter,
}
"""Each has a schedule in which something is wrong: does the search find it?"""
