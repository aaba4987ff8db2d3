"""Operations: what one step can be, when it can happen, and which steps do not commute.

A program is a set of threads that do *visible operations* on shared objects.
A thread announces its next operation before doing it, so the explorer knows for every thread what comes next,
whether it is enabled, and what it would touch.

**Dependency.** Two operations are dependent if doing them in the other order could give another state, another result,
or change whether one of them can happen at all. Everything else is independent and its order is not explored.
The relation is semantic and looks at the state in which an operation happens (Godefroid calls it conditional):

- operations on different objects are independent, except that a spawn comes before its child's first step,
  the last step of a thread before a join on it, and what woke a waiter before the waiter takes its lock again;
- on one object, *reads* commute with reads and *additions* with additions, and nothing else commutes.
  A failed compare-and-set and a failed try_acquire are reads. Two writes of equal values do not commute.

So an operation's `Footprint` is a set of (object, READ | WRITE | ADD), kept as bits:
`a` and `b` are dependent exactly if ``a.mask & b.conf``.

| operation | footprint |
|---|---|
| cell get, clock read | READ |
| cell set, swap, get_and_add | WRITE |
| cell compare_and_set | WRITE if it succeeds, else READ |
| cell add, clock advance | ADD (WRITE on a watched cell: its watcher sees the order) |
| lock acquire, release | WRITE |
| lock try_acquire | WRITE if it succeeds, else READ |
| semaphore acquire | WRITE |
| semaphore try_acquire | WRITE if it succeeds, else READ |
| semaphore release | ADD: two releases in either order leave the same number of permits and wake the same threads |
| condition wait | WRITE on the condition, WRITE on the lock that it lets go |
| taking the lock again after a wait | WRITE on the lock |
| condition notify, with waiters or without | WRITE on the condition |
| time-out or spurious wake-up | ADD on the condition: two of them commute, neither commutes with a notify |
| invoke / response of a call (only if real time matters) | ADD / READ on the order of calls |
| choose, spawn, join | nothing |

**Blocking.** Only three kinds of operation can be disabled by another thread: taking a lock, taking a permit, and the
time-out of a waiter (a notify disables it). `blocking` hashes them. When such an operation of one thread is reversed
with one of another, the two need not be neighbours in the trace (the release stands between two acquires);
see `dpor`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

SETUP: Final = 0
"""Number of the thread that runs the program function itself."""

READ: Final = 0
WRITE: Final = 1
ADD: Final = 2


class Footprint:
    """What a step touches. `mask` has a bit for each (object, mode), `conf` the bits that it does not commute with.

    `keys` and `rivals` are the numbers of these bits.
    """

    __slots__ = ("accesses", "conf", "keys", "mask", "rivals")

    def __init__(self, accesses: tuple[tuple[int, int], ...]) -> None:
        self.accesses = accesses
        self.keys = tuple(3 * index + mode for index, mode in accesses)
        self.rivals = tuple(
            3 * index + other
            for index, mode in accesses
            for other in (READ, WRITE, ADD)
            if other != mode or mode == WRITE
        )
        self.mask = sum(1 << key for key in self.keys)
        self.conf = sum(1 << key for key in self.rivals)

    def __repr__(self) -> str:
        return f"Footprint({self.accesses})"


NOTHING: Final = Footprint(())


class Shared:
    """A shared object: its state is `value`, its three footprints are made once for a whole exploration."""

    __slots__ = ("adds", "ex", "index", "name", "quiet", "reads", "value", "watch", "writes")
    value: Any
    quiet: bool
    """Whether nothing but records would be missing if its watcher were not called."""

    def __init__(self, ex: ExecutionContext, value: Any, kind: str, name: str) -> None:
        self.ex = ex
        self.value = value
        self.watch: Any = None
        self.quiet = True
        self.index, self.reads, self.writes, self.adds, self.name = ex.new_object(kind, name)


class Operation:
    """A visible operation that a thread has announced."""

    __slots__ = ("obj",)
    code = 0
    free = True
    """Whether it is always ready."""
    blocking = False
    """Whether another thread can disable it."""
    takes = False
    """Whether, done, it may disable a `blocking` operation on the same object."""
    adding = False
    """Whether it adds `amount` to its object."""
    amount: int
    goes_round = False
    """Whether it is another round of a loop that has changed nothing."""
    stale = False
    """Whether what such a loop has read is something else by now."""
    chooses = False
    """Whether it may have several alternatives."""
    repeatable = False
    """Whether, taken again, it can be done where it is called, without a switch to the hub: see `Repetition`."""
    obj: Any

    def __init_subclass__(cls) -> None:
        cls.chooses = cls.alternatives is not Operation.alternatives

    def __init__(self, obj: Shared) -> None:
        self.obj = obj

    def ready(self, thread: Thread) -> bool:
        """Whether it can happen now."""
        return True

    def touch(self) -> Footprint:
        """Its footprint if it happened now; unless an operation differs, it writes its object."""
        return self.obj.writes  # type: ignore[no-any-return]

    def touch_at(self, value: Any) -> Footprint | None:
        """Its footprint if its object had this value; None if it could not happen then."""
        return self.touch()

    def after(self) -> int:
        """Index of the step that enabled it, besides the one before it in its thread; -1 if there is none."""
        return -1

    def alternatives(self) -> int:
        """How many alternatives it has: different results that no other thread decides."""
        return 1

    def run(self, thread: Thread, alternative: int) -> Any:
        """Do it, atomically; the result goes to the thread."""
        raise NotImplementedError

    def describe(self) -> str:
        """The operation as a call, for people: part of a program's hash, so it names no addresses."""
        return type(self).__name__.lower()

    def waits_for(self) -> str:
        """Why it cannot happen, in words."""
        return f"{self.describe()} cannot happen"


class Thread:
    """A thread of the program, or the alarm clock of a waiter (which has no code)."""

    __slots__ = (
        "body", "born", "children", "code", "daemon", "done", "end_of", "ex", "greenlet", "held", "last", "name",
        "number", "objects", "op", "resume", "spurious", "tid", "timeouts", "virtual",
    )  # fmt: skip

    def __init__(
        self,
        ex: ExecutionContext,
        tid: int,
        name: str,
        daemon: bool,
        code: Callable[[], object] | None,
    ) -> None:
        self.ex = ex
        self.tid = tid
        """Its number in the whole exploration, the same in every schedule."""
        self.number = len(ex.order)
        """Its number in this execution, in order of creation."""
        self.name = name
        self.daemon = daemon
        self.op: Operation | None = None
        """The operation that it has announced."""
        self.done = False
        self.born = ex.steps - 1
        """Index of the step that spawned it."""
        self.last = -1
        """Index of its last step, -1 before its first."""
        self.children = 0
        self.objects = 0
        self.timeouts = ex.timeouts
        """How many of its time limits may still run out."""
        self.spurious = ex.spurious
        """How often it may still wake up without a notify."""
        self.virtual = code is None
        self.held: list[tuple[str, dict[str, object]]] | None = None
        """Records that wait for its next operation."""
        self.code = code
        self.body: Any = code
        """What it runs, if another thread may run the same (see `search.symmetry`)."""
        self.end_of: int | None = None
        """Index of the object that only its end writes, if another thread made one."""
        self.greenlet: Any = None
        self.resume: Any = self._ring if code is None else None
        ex.order.append(self)
        ex.by_tid[tid] = self

    @property
    def latest(self) -> int:
        """Index of its last step, or of the step that spawned it; -1 if it was spawned in the set-up."""
        return self.last if self.last >= 0 else self.born

    def _ring(self, *_: object) -> None:
        self.done = True
        self.op = None

    def __repr__(self) -> str:
        return f"<thread {self.name}>"


class ExecutionContext(Protocol):
    """What operations and the world need of the execution that they are part of; `execution.Execution` is one."""

    real_time: bool
    timeouts: int
    spurious: int
    steps: int
    order: list[Thread]
    by_tid: dict[int, Thread]
    current: Thread | None
    acting: Thread | None
    setting_up: Thread | None
    closing: bool
    end: str
    schedule: list[tuple[int, int]]
    calls: Shared
    switch: Callable[[], Any]
    repeating: bool
    script: list[Operation]
    ops: list[Operation]
    values: list[Any]
    distinguished: dict[int, str]

    def announce(self, thread: Thread, op: Operation) -> Any:
        """Stop `thread` before `op` until it has been done; its result."""

    def at_once(self, op: Operation) -> Any:
        """Do an operation outside any thread; its result."""

    def new_object(self, kind: str, name: str) -> tuple[int, Footprint, Footprint, Footprint, str]:
        """Index, footprints (reads, writes, adds) and name of an object that is being made."""

    def footprint(self, accesses: tuple[tuple[int, int], ...]) -> Footprint:
        """The one footprint of these (object, mode)."""

    def outside_object(self, name: str, value: Any) -> Shared:
        """An object that no thread made."""

    def repeat(self, thread: Thread, op: Operation) -> Any:
        """Do `op`, the next of the script, at once; its result."""

    def stage(self, fn: Callable[[], object], name: str, daemon: bool) -> Thread:
        """A thread that starts when the set-up is over."""

    def spawn_from(
        self, parent: Thread, fn: Callable[[], object], name: str, daemon: bool
    ) -> Thread:
        """A thread that runs at once up to its first operation."""

    def sleeps(self, waiter: Thread, again: Reacquire, wait: Wait) -> None:
        """Called when a thread went to sleep on a condition."""

    def notified(self, condition: Shared, by: Thread, woke: list[Thread], waiters: int) -> None:
        """Called at each notify."""

    def record_now(self, ev: str, args: dict[str, object]) -> None:
        """Keep a record that is a step of its own."""


class Nowhere:
    """Stands in for the object of an operation that touches nothing shared."""

    index = -1
    value: Any = None


NOWHERE: Final = Nowhere()


class LocalOperation(Operation):
    """An operation that touches nothing shared."""

    __slots__ = ()
    obj: Any = NOWHERE

    def touch(self) -> Footprint:
        return NOTHING


class Get(Operation):
    """Read a cell."""

    __slots__ = ()
    code = 1
    repeatable = True

    def touch(self) -> Footprint:
        return self.obj.reads  # type: ignore[no-any-return]

    def run(self, thread: Thread, alternative: int) -> Any:
        return self.obj.value

    def describe(self) -> str:
        return f"{self.obj.name}.get()"


class Set(Operation):
    """Write a cell."""

    __slots__ = ("new",)
    code = 2
    repeatable = True

    def __init__(self, obj: Shared, new: Any) -> None:
        self.obj = obj
        self.new = new

    def run(self, thread: Thread, alternative: int) -> Any:
        obj = self.obj
        old, obj.value = obj.value, self.new
        if obj.watch is not None:
            obj.changed("set", old, self.new, True)

    def describe(self) -> str:
        return f"{self.obj.name}.set({shown(self.new)})"


class Swap(Set):
    """Write a cell and return what it held."""

    __slots__ = ()
    code = 3

    def run(self, thread: Thread, alternative: int) -> Any:
        obj = self.obj
        old, obj.value = obj.value, self.new
        if obj.watch is not None:
            obj.changed("swap", old, self.new, True)
        return old

    def describe(self) -> str:
        return f"{self.obj.name}.get_and_set({shown(self.new)})"


class CompareAndSet(Operation):
    """Write a cell if it holds the expected value; returns whether it did."""

    __slots__ = ("expected", "new")
    code = 4
    repeatable = True

    def __init__(self, obj: Shared, expected: Any, new: Any) -> None:
        self.obj = obj
        self.expected = expected
        self.new = new

    def touch(self) -> Footprint:
        return self.touch_at(self.obj.value)

    def touch_at(self, value: Any) -> Footprint:
        obj = self.obj
        if value is self.expected or value == self.expected:
            return obj.writes  # type: ignore[no-any-return]
        return obj.reads  # type: ignore[no-any-return]

    def run(self, thread: Thread, alternative: int) -> bool:
        obj = self.obj
        old = obj.value
        ok = old is self.expected or bool(old == self.expected)
        if ok:
            obj.value = self.new
        if obj.watch is not None:
            obj.changed("cas", old, self.new, ok)
        return ok

    def describe(self) -> str:
        return f"{self.obj.name}.compare_and_set({shown(self.expected)}, {shown(self.new)})"


class FetchAdd(Operation):
    """Add to a cell and return what it held before."""

    __slots__ = ("by",)
    code = 5
    repeatable = True

    def __init__(self, obj: Shared, by: int) -> None:
        self.obj = obj
        self.by = by

    def run(self, thread: Thread, alternative: int) -> Any:
        obj = self.obj
        old = obj.value
        obj.value = old + self.by
        if obj.watch is not None:
            obj.changed("add", old, old + self.by, True)
        return old

    def describe(self) -> str:
        return f"{self.obj.name}.get_and_add({self.by})"


class Add(Operation):
    """Add to a cell without looking at it."""

    __slots__ = ("amount",)
    code = 6
    repeatable = True
    adding = True

    def __init__(self, obj: Shared, by: int) -> None:
        self.obj = obj
        self.amount = by

    def touch(self) -> Footprint:
        obj = self.obj
        return obj.adds if obj.watch is None else obj.writes  # type: ignore[no-any-return]

    def run(self, thread: Thread, alternative: int) -> None:
        obj = self.obj
        old = obj.value
        obj.value = old + self.amount
        if obj.watch is not None:
            obj.changed("add", old, old + self.amount, True)

    def describe(self) -> str:
        return f"{self.obj.name}.add({self.amount})"


class Acquire(Operation):
    """The value of a lock is the thread that holds it, or None."""

    __slots__ = ()
    code = 7
    repeatable = True
    free = False
    blocking = True
    takes = True

    def ready(self, thread: Thread) -> bool:
        return self.obj.value is None

    def touch_at(self, value: Any) -> Footprint | None:
        return self.obj.writes if value is None else None

    def run(self, thread: Thread, alternative: int) -> bool | None:
        self.obj.value = thread
        return None

    def describe(self) -> str:
        return f"{self.obj.name}.acquire()"

    def waits_for(self) -> str:
        """Who holds the lock."""
        return f"waits for lock {self.obj.name}, held by {self.obj.value.name}"


class Reacquire(Acquire):
    """The second half of a wait: woken, the thread takes its lock again."""

    __slots__ = ("condition", "limited", "woken")
    code = 8
    repeatable = False

    def __init__(self, lock: Shared, condition: Shared, limited: bool) -> None:
        self.obj = lock
        self.condition = condition
        self.limited = limited
        self.woken: tuple[int, bool] | None = None
        """(index of the step that woke it, what wait returns)."""

    def ready(self, thread: Thread) -> bool:
        return self.woken is not None and self.obj.value is None

    def after(self) -> int:
        return -1 if self.woken is None else self.woken[0]

    def run(self, thread: Thread, alternative: int) -> bool:
        assert self.woken is not None
        self.obj.value = thread
        return self.woken[1]

    def describe(self) -> str:
        return f"{self.condition.name}.wait() wakes"

    def waits_for(self) -> str:
        if self.woken is None:
            return f"waits on condition {self.condition.name}, and nobody is left to notify it"
        return f"was woken on {self.condition.name}, but " + super().waits_for()


class TryAcquire(Operation):
    """Take a lock if it is free; returns whether it was."""

    __slots__ = ()
    code = 9
    repeatable = True
    takes = True

    def touch(self) -> Footprint:
        return self.touch_at(self.obj.value)

    def touch_at(self, value: Any) -> Footprint:
        return self.obj.writes if value is None else self.obj.reads  # type: ignore[no-any-return]

    def run(self, thread: Thread, alternative: int) -> bool:
        if self.obj.value is None:
            self.obj.value = thread
            return True
        return False

    def describe(self) -> str:
        return f"{self.obj.name}.try_acquire()"


class Release(Operation):
    """Free a lock; RuntimeError if the thread does not hold it."""

    __slots__ = ()
    code = 10
    repeatable = True

    def run(self, thread: Thread, alternative: int) -> None:
        if self.obj.value is not thread:
            raise RuntimeError(
                f"release of lock {self.obj.name}, which {thread.name} does not hold"
            )
        self.obj.value = None

    def describe(self) -> str:
        return f"{self.obj.name}.release()"


class Wait(Operation):
    """The first half of a wait: let the lock go and sleep, in one step. `obj` is the lock."""

    __slots__ = ("condition", "timed")
    code = 11

    def __init__(self, lock: Shared, condition: Any, timed: bool) -> None:
        self.obj = lock
        self.condition = condition
        self.timed = timed

    def touch(self) -> Footprint:
        return self.condition.waits  # type: ignore[no-any-return]

    def run(self, thread: Thread, alternative: int) -> Reacquire:
        if self.obj.value is not thread:
            raise RuntimeError(f"wait on {self.condition.name} without holding {self.obj.name}")
        self.obj.value = None
        again = Reacquire(self.obj, self.condition, self.timed)
        self.condition.value.append((thread, again))
        thread.ex.sleeps(thread, again, self)
        return again

    def describe(self) -> str:
        return f"{self.condition.name}.wait({'timeout' if self.timed else ''})"


class Wake(Operation):
    """A wait that ends without a notification: its time ran out, or for no reason at all.

    It belongs to a thread of its own that lives from the wait until the waiter is woken, by it or by a notify.
    """

    __slots__ = ("again", "kinds", "waiter")
    code = 12
    free = False
    blocking = True

    def __init__(self, condition: Shared, waiter: Thread, again: Reacquire, kinds: str) -> None:
        self.obj = condition
        self.waiter = waiter
        self.again = again
        self.kinds = kinds

    def ready(self, thread: Thread) -> bool:
        return self.again.woken is None

    def touch(self) -> Footprint:
        return self.obj.adds  # type: ignore[no-any-return]

    def alternatives(self) -> int:
        return len(self.kinds)

    def run(self, thread: Thread, alternative: int) -> None:
        kind = self.kinds[alternative]
        waiter = self.waiter
        if kind == "t":
            waiter.timeouts -= 1
        else:
            waiter.spurious -= 1
        self.again.woken = (thread.ex.steps - 1, kind != "t")
        self.obj.value[:] = [w for w in self.obj.value if w[1] is not self.again]

    def describe(self) -> str:
        kinds = {"t": "time-out", "s": "spurious wake-up", "ts": "time-out or spurious wake-up"}
        return f"{self.obj.name}: {kinds[self.kinds]} of {self.waiter.name}"


class Notify(Operation):
    """Wakes `n` of the waiters (None: all of them); which ones is a choice."""

    __slots__ = ("lock", "n")
    code = 13

    def __init__(self, condition: Shared, lock: Shared, n: int | None) -> None:
        self.obj = condition
        self.lock = lock
        self.n = n

    def alternatives(self) -> int:
        waiters = len(self.obj.value)
        if self.n is None or self.n >= waiters:
            return 1
        return combinations(waiters, self.n)

    def run(self, thread: Thread, alternative: int) -> None:
        if self.lock.value is not thread:
            raise RuntimeError(f"notify on {self.obj.name} without holding {self.lock.name}")
        waiters = self.obj.value
        n = len(waiters) if self.n is None else min(self.n, len(waiters))
        chosen = combination(len(waiters), n, alternative)
        woken = (self.obj.ex.steps - 1, True)
        for k in chosen:
            waiters[k][1].woken = woken
        self.obj.ex.notified(self.obj, thread, [waiters[k][0] for k in chosen], len(waiters))
        self.obj.value[:] = [w for k, w in enumerate(waiters) if k not in chosen]

    def describe(self) -> str:
        return f"{self.obj.name}.notify{'_all()' if self.n is None else f'({self.n})'}"


class Permit(Operation):
    """Take a permit of a semaphore, waiting for one; with `limited`, give up when the time is over."""

    __slots__ = ("blocking", "limited")
    code = 14
    repeatable = True
    free = False
    takes = True

    def __init__(self, obj: Shared, limited: bool, blocking: bool) -> None:
        self.obj = obj
        self.limited = limited
        self.blocking = blocking

    def ready(self, thread: Thread) -> bool:
        return not self.blocking or self.obj.value > 0

    def touch(self) -> Footprint:
        return self.obj.writes if self.obj.value > 0 else self.obj.reads  # type: ignore[no-any-return]

    def touch_at(self, value: Any) -> Footprint | None:
        if value > 0:
            return self.obj.writes  # type: ignore[no-any-return]
        return None if self.blocking else self.obj.reads

    def run(self, thread: Thread, alternative: int) -> bool:
        if self.obj.value > 0:
            self.obj.value -= 1
            return True
        if self.limited:
            thread.timeouts -= 1
        return False

    def describe(self) -> str:
        if self.blocking and not self.limited:
            return f"{self.obj.name}.acquire()"
        return f"{self.obj.name}.try_acquire({'timeout' if self.limited else ''})"

    def waits_for(self) -> str:
        return f"waits for a permit of {self.obj.name}"


class Restore(Operation):
    """Add permits."""

    __slots__ = ("amount",)
    code = 15
    repeatable = True
    adding = True

    def __init__(self, obj: Shared, n: int) -> None:
        self.obj = obj
        self.amount = n

    def touch(self) -> Footprint:
        return self.obj.adds  # type: ignore[no-any-return]

    def run(self, thread: Thread, alternative: int) -> None:
        self.obj.value += self.amount

    def describe(self) -> str:
        return f"{self.obj.name}.release({'' if self.amount == 1 else self.amount})"


class Choose(LocalOperation):
    """A choice that is no race: one of `n` alternatives."""

    __slots__ = ("n",)
    code = 16

    def __init__(self, n: int) -> None:
        self.n = n

    def alternatives(self) -> int:
        return self.n

    def run(self, thread: Thread, alternative: int) -> int:
        return alternative

    def describe(self) -> str:
        return f"choose({self.n})"


class Spawn(LocalOperation):
    """Start a thread."""

    __slots__ = ("daemon", "fn", "name")
    code = 17

    def __init__(self, fn: Any, name: str, daemon: bool) -> None:
        self.fn = fn
        self.name = name
        self.daemon = daemon

    def run(self, thread: Thread, alternative: int) -> Thread:
        return thread.ex.spawn_from(thread, self.fn, self.name, self.daemon)

    def describe(self) -> str:
        return f"spawn({self.name or getattr(self.fn, '__name__', '')})"


class Join(LocalOperation):
    """Wait until a thread has ended."""

    __slots__ = ("target",)
    code = 18
    free = False

    def __init__(self, target: Thread) -> None:
        self.target = target

    def ready(self, thread: Thread) -> bool:
        return self.target.done

    def after(self) -> int:
        return self.target.latest

    def run(self, thread: Thread, alternative: int) -> None:
        return None

    def describe(self) -> str:
        return f"{self.target.name}.join()"

    def waits_for(self) -> str:
        return f"waits for thread {self.target.name} to end"


class CallBoundary(Operation):
    """The invocation (ADD) or response (READ) of a call, a step of its own where real time matters."""

    __slots__ = ("args", "ev", "invocation")
    code = 19

    def __init__(self, obj: Shared, ev: str, args: dict[str, object], invocation: bool) -> None:
        self.obj = obj
        self.ev = ev
        self.args = args
        self.invocation = invocation

    def touch(self) -> Footprint:
        return self.obj.adds if self.invocation else self.obj.reads  # type: ignore[no-any-return]

    def run(self, thread: Thread, alternative: int) -> None:
        thread.ex.record_now(self.ev, self.args)

    def describe(self) -> str:
        return f"record {self.ev} {self.args.get('ph', '')}"


class Await(Operation):
    """Read a cell when its value passes a test: what a loop does that reads until then, as one step.

    What can disable it is not one kind of step but some writes, others not; so it is no `takes` that says which, but
    the test itself (see `dpor`).
    """

    __slots__ = ("test",)
    code = 20
    repeatable = True
    free = False
    blocking = True

    def __init__(self, obj: Shared, test: Callable[[Any], object]) -> None:
        self.obj = obj
        self.test = test

    def passes(self, value: Any) -> bool:
        """Whether a value passes; one for which the test raises does: the thread gets what it raises."""
        try:
            return bool(self.test(value))
        except Exception:
            return True

    def ready(self, thread: Thread) -> bool:
        return self.passes(self.obj.value)

    def touch(self) -> Footprint:
        return self.obj.reads  # type: ignore[no-any-return]

    def touch_at(self, value: Any) -> Footprint | None:
        return self.obj.reads if self.passes(value) else None

    def run(self, thread: Thread, alternative: int) -> Any:
        self.test(self.obj.value)
        return self.obj.value

    def describe(self) -> str:
        return f"{self.obj.name}.wait_until(...)"

    def waits_for(self) -> str:
        """The value that does not pass."""
        return f"waits until {self.obj.name}, which is {shown(self.obj.value)}, has another value"


def combinations(n: int, k: int) -> int:
    """Binomial coefficient of n and k, at least 1."""
    count = 1
    for i in range(k):
        count = count * (n - i) // (i + 1)
    return max(count, 1)


def combination(n: int, k: int, alternative: int) -> tuple[int, ...]:
    """The `alternative`-th of the k-element subsets of range(n), in lexicographic order."""
    chosen: list[int] = []
    start = 0
    for left in range(k, 0, -1):
        for i in range(start, n):
            count = combinations(n - i - 1, left - 1)
            if alternative < count:
                chosen.append(i)
                start = i + 1
                break
            alternative -= count
    return tuple(chosen)


def shown(value: object) -> str:
    """A value in one line, without addresses, which differ from run to run."""
    text = repr(value)
    if " at 0x" in text:
        named = getattr(value, "name", None)
        text = str(named) if isinstance(named, str) and named else f"<{type(value).__name__}>"
    return text if len(text) <= 40 else text[:37] + "..."
