"""Litmus programs: small ones with known numbers of traces, and small ones with known mistakes.

The counts were confirmed by at least two independent engines.
The number of Mazurkiewicz traces is a property of the program, whatever the order in which they are found.
All cells start at 0; sequential consistency.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import factorial

from seriatim_models.explorer.model.world import ControlledCell, World

Program = Callable[[World], None]


def readers(n: int) -> Program:
    """One writer, n readers of one cell: 2^n, since each reader comes before or after the write."""

    def program(world: World) -> None:
        x = world.cell(0, name="x")
        world.spawn(lambda: x.set(1), name="w")
        for k in range(n):
            world.spawn(x.get, name=f"r{k}")

    return program


def lastzero(n: int) -> Program:
    """Abdulla et al. 2014, figure 3: a reader looks for the last zero of an array that n threads fill."""

    def program(world: World) -> None:
        a = [world.cell(0, name=f"a{k}") for k in range(n + 1)]

        def last() -> None:
            i = n
            while a[i].get() != 0:
                i -= 1

        def fill(j: int) -> None:
            a[j].set(a[j - 1].get() + 1)

        world.spawn(last, name="last")
        for j in range(1, n + 1):
            world.spawn(lambda j=j: fill(j), name=f"t{j}")  # type: ignore[misc]

    return program


def filesystem(n: int) -> Program:
    """Flanagan & Godefroid 2005: threads take an inode each, and a free block for it. 26 blocks, 32 inodes."""

    def program(world: World) -> None:
        blocks, inodes = 26, 32
        li = [world.lock(name=f"li{k}") for k in range(inodes)]
        inode = [world.cell(0, name=f"inode{k}") for k in range(inodes)]
        lb = [world.lock(name=f"lb{k}") for k in range(blocks)]
        busy = [world.cell(0, name=f"busy{k}") for k in range(blocks)]

        def work(t: int) -> None:
            i = t % inodes
            li[i].acquire()
            if inode[i].get() == 0:
                b = (i * 2) % blocks
                while True:
                    lb[b].acquire()
                    if busy[b].get() == 0:
                        busy[b].set(1)
                        inode[i].set(b + 1)
                        lb[b].release()
                        break
                    lb[b].release()
                    b = (b + 1) % blocks
            li[i].release()

        for t in range(n):
            world.spawn(lambda t=t: work(t), name=f"t{t}")  # type: ignore[misc]

    return program


def indexer(n: int) -> Program:
    """Flanagan & Godefroid 2005: threads put four words each into a hash table of 128 by compare-and-set."""

    def program(world: World) -> None:
        size = 128
        table = [world.cell(0, name=f"tab{k}") for k in range(size)]

        def work(t: int) -> None:
            for m in range(1, 5):
                w = 11 * m + t
                h = 7 * w % size
                while not table[h].compare_and_set(0, w):
                    h = (h + 1) % size

        for t in range(n):
            world.spawn(lambda t=t: work(t), name=f"t{t}")  # type: ignore[misc]

    return program


def control_flow(n: int) -> Program:
    """Readers of x and writers of y decide what others see: what a thread touches depends on the schedule."""

    def program(world: World) -> None:
        x, y, z = (world.cell(0, name=k) for k in "xyz")
        for k in range(n):
            world.spawn(x.get, name=f"r{k}")
        for k in range(n):
            world.spawn(lambda: y.set(1), name=f"w{k}")
        world.spawn(lambda: z.set(1) if y.get() == 0 else None, name="p")

        def q() -> None:
            if z.get() == 1 and y.get() == 0:
                x.set(1)

        world.spawn(q, name="q")

    return program


def sigma(n: int) -> Program:
    """Threads spawned one after another read a counter that the main thread advances: (2n-1)!!."""

    def program(world: World) -> None:
        idx = world.cell(-1, name="idx")
        a = [world.cell(0, name=f"a{k}") for k in range(n)]

        def main() -> None:
            for _ in range(n):
                idx.set(idx.get() + 1)
                world.spawn(lambda: a[idx.get()].set(1))

        world.spawn(main, name="main")

    return program


def casrot(n: int) -> Program:
    """So many compare-and-sets, each of which may enable the next."""

    def program(world: World) -> None:
        x = world.cell(0, name="x")
        for i in range(1, n + 1):
            world.spawn(lambda i=i: x.compare_and_set(i - 1, i), name=f"t{i}")  # type: ignore[misc]

    return program


def racy_counter(n: int) -> Program:
    """Threads read, then write one more: (n!)^2."""

    def program(world: World) -> None:
        c = world.cell(0, name="c")
        for k in range(n):
            world.spawn(lambda: c.set(c.get() + 1), name=f"t{k}")
        world.at_end(lambda: world.result(c.get()))

    return program


def locked_counter(n: int) -> Program:
    """The same under a lock: n!."""

    def program(world: World) -> None:
        c = world.cell(0, name="c")
        m = world.lock(name="m")

        def work() -> None:
            with m:
                c.set(c.get() + 1)

        for k in range(n):
            world.spawn(work, name=f"t{k}")
        world.at_end(lambda: None if c.get() == n else f"counter is {c.get()}, not {n}")

    return program


def floating_read(n: int) -> Program:
    """Writers of one cell, and a reader: (n+1)!."""

    def program(world: World) -> None:
        x = world.cell(0, name="x")
        for i in range(1, n + 1):
            world.spawn(lambda i=i: x.set(i), name=f"w{i}")  # type: ignore[misc]
        world.spawn(x.get, name="r")

    return program


def example2(world: World) -> None:
    """Abdulla et al. 2014, example 2: source sets alone run into 5 blocked executions."""
    x, y, z = (world.cell(0, name=k) for k in "xyz")
    world.spawn(lambda: x.set(1), name="p")
    world.spawn(lambda: y.set(1), name="q")
    world.spawn(lambda: z.set(1) if y.get() == 0 else None, name="r")

    def s() -> None:
        if z.get() == 1 and y.get() == 0:
            x.set(2)

    world.spawn(s, name="s")


def two_writes(crossed: bool) -> Program:
    """a=1; b=2 against b=3; a=4 (crossed: 3 traces) or a=3; b=4 (4 traces)."""

    def program(world: World) -> None:
        a, b = world.cell(0, name="a"), world.cell(0, name="b")

        def write(first: ControlledCell[int], v: int, second: ControlledCell[int], u: int) -> None:
            first.set(v)
            second.set(u)

        world.spawn(lambda: write(a, 1, b, 2), name="p")
        world.spawn(lambda: write(b, 3, a, 4) if crossed else write(a, 3, b, 4), name="q")

    return program


def peterson(rounds: int) -> Program:
    """Peterson's mutual exclusion, `rounds` times each.

    A thread looks at flag and turn at most twice, then gives up and leaves: a spin loop would have no end.
    """

    def program(world: World) -> None:
        flag = [world.cell(0, name=f"flag{k}") for k in range(2)]
        turn = world.cell(0, name="turn")
        counter = world.cell(0, name="counter")
        entered = [0, 0]

        def enters(me: int, other: int) -> bool:
            for _ in range(2):
                up, last = flag[other].get(), turn.get()
                if not (up == 1 and last == other):
                    return True
            return False

        def work(me: int) -> None:
            other = 1 - me
            for _ in range(rounds):
                flag[me].set(1)
                turn.set(other)
                if not enters(me, other):
                    return
                counter.set(counter.get() + 1)
                entered[me] += 1
                flag[me].set(0)

        for me in range(2):
            world.spawn(lambda me=me: work(me), name=f"t{me}")  # type: ignore[misc]
        world.at_end(
            lambda: None if counter.get() == sum(entered) else "two threads were inside at once"
        )

    return program


@dataclass(frozen=True)
class KnownCount:
    """A program and its number of traces."""

    name: str
    program: Program
    traces: int


def double_factorial(n: int) -> int:
    """The product n (n-2) (n-4) ..."""
    return 1 if n <= 1 else n * double_factorial(n - 2)


def known_counts() -> list[KnownCount]:
    """The table."""
    rows = [KnownCount(f"readers({n})", readers(n), 2**n) for n in range(1, 9)]
    rows += [KnownCount(f"lastzero({n})", lastzero(n), (n + 3) * 2 ** (n - 2)) for n in range(2, 8)]
    rows += [KnownCount(f"filesystem({n})", filesystem(n), 2 ** (n - 13)) for n in (13, 14, 16, 18)]
    rows += [KnownCount(f"indexer({n})", indexer(n), 8 ** (n - 11)) for n in (11, 12, 13)]
    rows += [
        KnownCount(f"control_flow({n})", control_flow(n), c) for n, c in ((1, 5), (2, 18), (3, 90))
    ]
    rows += [KnownCount(f"sigma({n})", sigma(n), double_factorial(2 * n - 1)) for n in (2, 3, 4)]
    rows += [
        KnownCount(f"casrot({n})", casrot(n), c) for n, c in ((2, 2), (3, 5), (4, 14), (5, 43))
    ]
    rows += [
        KnownCount(f"racy_counter({n})", racy_counter(n), factorial(n) ** 2) for n in (2, 3, 4)
    ]
    rows += [
        KnownCount(f"locked_counter({n})", locked_counter(n), factorial(n)) for n in (2, 3, 4, 5)
    ]
    rows += [
        KnownCount(f"floating_read({n})", floating_read(n), factorial(n + 1)) for n in (1, 2, 3, 5)
    ]
    rows += [
        KnownCount("example2", example2, 5),
        KnownCount("two_writes(crossed)", two_writes(True), 3),
        KnownCount("two_writes(parallel)", two_writes(False), 4),
        KnownCount("peterson(2)", peterson(2), 2420),
    ]
    return rows


# -- mistakes that must be found, and their repairs that must not --------------------------------------------------


def lost_wakeup(world: World) -> None:
    """The flag is looked at before the lock is taken: the notify can come in between, and no thread waits for it."""
    m = world.lock(name="m")
    c = world.condition(m, name="c")
    flag = world.cell(False, name="flag")

    def waiter() -> None:
        if not flag.get():
            with m:
                c.wait()

    def setter() -> None:
        flag.set(True)
        with m:
            c.notify()

    world.spawn(waiter, name="waiter")
    world.spawn(setter, name="setter")


def heard_wakeup(world: World) -> None:
    """The same with the flag under the lock: nothing is lost."""
    m = world.lock(name="m")
    c = world.condition(m, name="c")
    flag = world.cell(False, name="flag")

    def waiter() -> None:
        with m:
            while not flag.get():
                c.wait()

    def setter() -> None:
        with m:
            flag.set(True)
            c.notify()

    world.spawn(waiter, name="waiter")
    world.spawn(setter, name="setter")


def stolen_wakeup(again: bool) -> Program:
    """One item, two consumers; between a notify and the waking the other consumer takes the item.

    With `again` the waiter checks again (a while), else it does not (an if), and takes what is not there.
    """

    def program(world: World) -> None:
        m = world.lock(name="m")
        c = world.condition(m, name="c")
        items = world.cell(0, name="items")

        def taker() -> None:
            with m:
                if again:
                    while items.get() == 0:
                        c.wait()
                elif items.get() == 0:
                    c.wait()
                items.set(items.get() - 1)

        def giver() -> None:
            with m:
                items.set(items.get() + 1)
                c.notify()

        world.spawn(taker, name="sleeper", daemon=True)
        world.spawn(taker, name="thief", daemon=True)
        world.spawn(giver, name="giver")
        world.at_end(lambda: None if items.get() >= 0 else "an item was taken that was not there")

    return program


def one_condition_buffer(notify_all: bool) -> Program:
    """A buffer of one place, two takers and a putter with two items, one condition for both sides.

    With notify() a putter's wake-up can go to another waiter who cannot use it; with notify_all() all is well.
    """

    def program(world: World) -> None:
        m = world.lock(name="m")
        c = world.condition(m, name="c")
        full = world.cell(False, name="full")

        def change(to: bool) -> None:
            with m:
                while full.get() == to:
                    c.wait()
                full.set(to)
                if notify_all:
                    c.notify_all()
                else:
                    c.notify()

        def putter() -> None:
            change(True)
            change(True)

        world.spawn(lambda: change(False), name="taker1")
        world.spawn(lambda: change(False), name="taker2")
        world.spawn(putter, name="putter")

    return program


class LockFreeStack:
    """A lock-free stack A, B; `tagged` counts the changes of its top, so that an A that came back is another A."""

    def __init__(self, world: World, tagged: bool) -> None:
        self.tagged = tagged
        self.following = {"A": world.cell("B", name="A.next"), "B": world.cell("", name="B.next")}
        self.top = world.cell(("A", 0), name="top")
        self.popped: list[str] = []

    def pop(self) -> str:
        """Take the first node; "" if there is none."""
        while True:
            old, tag = self.top.get()
            if not old:
                return ""
            new = self.following[old].get()
            if self.top.compare_and_set((old, tag), (new, tag + 1 if self.tagged else 0)):
                self.popped.append(old)
                return old

    def push(self, node: str) -> None:
        """Put a node back."""
        while True:
            old, tag = self.top.get()
            self.following[node].set(old)
            if self.top.compare_and_set((old, tag), (node, tag + 1 if self.tagged else 0)):
                self.popped.remove(node)
                return

    def wrong(self) -> str | None:
        """At the end: a node that was popped twice, or is popped and still in the stack."""
        node, free = self.top.get()[0], []
        while node:
            free.append(node)
            node = self.following[node].get()
        both = sorted(set(free) & set(self.popped))
        twice = len(self.popped) != len(set(self.popped))
        return f"{both or self.popped} popped and still in the stack" if both or twice else None


def aba(tagged: bool) -> Program:
    """The ABA problem: a pop is interrupted between reading and swinging the top; meanwhile A, B, A.

    With `tagged` the interrupted pop notices it.
    """

    def program(world: World) -> None:
        stack = LockFreeStack(world, tagged)

        def interfere() -> None:
            first = stack.pop()
            stack.pop()
            if first:
                stack.push(first)

        world.spawn(stack.pop, name="pop")
        world.spawn(interfere, name="mischief")
        world.at_end(stack.wrong)

    return program


def crossed_locks(world: World) -> None:
    """Two locks in opposite order."""
    m, n = world.lock(name="m"), world.lock(name="n")

    def one() -> None:
        with m, n:
            pass

    def two() -> None:
        with n, m:
            pass

    world.spawn(one, name="one")
    world.spawn(two, name="two")


def ordered_locks(world: World) -> None:
    """Two locks in one order."""
    m, n = world.lock(name="m"), world.lock(name="n")

    def work() -> None:
        with m, n:
            pass

    world.spawn(work, name="one")
    world.spawn(work, name="two")


def spinning(world: World) -> None:
    """Two threads wait for each other's flag, without blocking: nothing ever changes."""
    x, y = world.cell(0, name="x"), world.cell(0, name="y")

    def one() -> None:
        while x.get() == 0:
            pass
        y.set(1)

    def two() -> None:
        while y.get() == 0:
            pass
        x.set(1)

    world.spawn(one, name="one")
    world.spawn(two, name="two")


def starved(world: World) -> None:
    """Two threads, one permit, never released."""
    s = world.semaphore(1, name="s")
    world.spawn(s.acquire, name="one")
    world.spawn(s.acquire, name="two")


MISTAKES: dict[str, tuple[Program, str]] = {
    "lost_wakeup": (lost_wakeup, "lost wake-up"),
    "stolen_wakeup": (stolen_wakeup(False), "property"),
    "one_condition_buffer": (one_condition_buffer(False), "lost wake-up"),
    "aba": (aba(False), "property"),
    "crossed_locks": (crossed_locks, "deadlock"),
    "starved": (starved, "starved"),
    "spinning": (spinning, "livelock"),
}
"""Program and the kind of its violation."""

REPAIRS: dict[str, Program] = {
    "heard_wakeup": heard_wakeup,
    "stolen_wakeup, looking again": stolen_wakeup(True),
    "one_condition_buffer, notify_all": one_condition_buffer(True),
    "aba, tagged": aba(True),
    "ordered_locks": ordered_locks,
    "peterson(1)": peterson(1),
    "locked_counter(3)": locked_counter(3),
}
