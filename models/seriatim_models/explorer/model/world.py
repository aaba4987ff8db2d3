"""What a program sees: a world of shared objects, threads, choices and a clock.

A `World` is also a `seriatim.host.Host`: give `world.host` to code that asks a host for its cells and locks,
and each operation on them becomes one step of a deterministic schedule.

Inside a thread an operation is a step: the thread stops before it and the strategy decides which thread goes.
While the program is being set up, inside a watcher, and in what runs at the end, operations happen at once:
no other thread runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, ParamSpec, Self, TypeVar, cast

from seriatim_models.explorer.errors import Misuse
from seriatim_models.explorer.model.operations import (
    WRITE,
    Acquire,
    Add,
    Await,
    CallBoundary,
    Choose,
    CompareAndSet,
    ExecutionContext,
    FetchAdd,
    Footprint,
    Get,
    Join,
    Notify,
    Operation,
    Permit,
    Release,
    Restore,
    Set,
    Shared,
    Spawn,
    Swap,
    Thread,
    TryAcquire,
    Wait,
)
from seriatim_models.watched import Change, RecordingWatch, Watch

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")


class Record(NamedTuple):
    """An event that a program recorded: in step `step` (0: before the first), by thread `thread`."""

    step: int
    thread: str
    ev: str
    args: dict[str, object]


class ControlledCell(Shared, Generic[T]):
    """A shared variable with atomic operations."""

    __slots__ = ()

    def __init__(self, ex: ExecutionContext, value: T, name: str, watch: Watch[T] | None) -> None:
        self.ex = ex
        self.value = value
        self.watch = watch
        self.quiet = watch is None or watch.__class__ is RecordingWatch
        self.index, self.reads, self.writes, self.adds, self.name = ex.new_object("cell", name)

    def changed(self, op: str, old: T, new: T, ok: bool) -> None:
        """Tell the watcher of a change, unless it only records and knows already."""
        if not self.quiet or not self.ex.repeating:
            self.watch(Change(op, old, new, ok))

    # The three commonest operations do by themselves what `_do` does, and of a script (see `Execution.take_again`)
    # what `Execution.repeat` does.

    def get(self) -> T:
        """The value; one step."""
        ex = self.ex
        thread = ex.current
        if thread is None:
            found: T = self.value
            return found
        if ex.script:
            before = ex.script[-1]
            if before.__class__ is Get and before.obj.index == self.index:
                before.obj = self
                ex.script.pop()
                thread.held = None
                ex.steps += 1
                found = self.value
                ex.values.append(found)
                return found
        thread.op = Get(self)
        return ex.switch()  # type: ignore[no-any-return]  # what the operation returns

    def set(self, value: T) -> None:
        """Write the value; one step."""
        ex = self.ex
        thread = ex.current
        if thread is None:
            if ex.closing:
                ex.at_once(Set(self, value))
            old, self.value = self.value, value
            if self.watch is not None:
                self.changed("set", old, value, True)
            return
        if ex.script:
            before = ex.script[-1]
            if before.__class__ is Set and before.obj.index == self.index and self.quiet:
                before.obj, before.new = self, value
                ex.script.pop()
                thread.held = None
                ex.steps += 1
                ex.values.append(self.value)
                self.value = value
                return
        thread.op = Set(self, value)
        ex.switch()

    def compare_and_set(self, expected: T, new: T) -> bool:
        """Write `new` if the cell holds `expected`; whether it did. One step."""
        ex = self.ex
        thread = ex.current
        if thread is None:
            return cast(bool, ex.at_once(CompareAndSet(self, expected, new)))
        if ex.script:
            before = ex.script[-1]
            if before.__class__ is CompareAndSet and before.obj.index == self.index and self.quiet:
                before.obj, before.expected, before.new = self, expected, new
                ex.script.pop()
                thread.held = None
                ex.steps += 1
                old = self.value
                ex.values.append(old)
                if old is expected or old == expected:
                    self.value = new
                    return True
                return False
        thread.op = CompareAndSet(self, expected, new)
        return cast(bool, ex.switch())

    def get_and_set(self, value: T) -> T:
        """Write the value and return the one before; one step."""
        return cast(T, _do(self.ex, Swap(self, value)))

    def get_and_add(self: ControlledCell[int], amount: int) -> int:
        """Add `amount` and return the value before; one step."""
        return cast(int, _do(self.ex, FetchAdd(self, amount)))

    def wait_until(self, test: Callable[[T], object]) -> T:
        """Wait until the value passes `test`, and return it; one step.

        It stands for a loop that reads the cell until then, which has a schedule for each number of times that it may
        read in vain. `test` looks at the value alone. Raises `Misuse` if the cell is one to which `add` adds, for which
        of the additions came first is not seen: use `get_and_add`.
        """
        return cast(T, _do(self.ex, Await(self, test)))

    def add(self: ControlledCell[int], amount: int) -> None:
        """Add `amount` without looking at the value, so that two additions commute; one step."""
        _do(self.ex, Add(self, amount))

    def __repr__(self) -> str:
        return f"<cell {self.name}>"


class ControlledLock(Shared):
    """A mutual exclusion lock, not re-entrant."""

    __slots__ = ()

    def __init__(self, ex: ExecutionContext, name: str) -> None:
        Shared.__init__(self, ex, None, "lock", name)

    def acquire(self) -> None:
        """Wait until the lock is free and take it."""
        _do(self.ex, Acquire(self))

    def try_acquire(self) -> bool:
        """Take the lock if it is free; whether it was."""
        return cast(bool, _do(self.ex, TryAcquire(self)))

    def release(self) -> None:
        """Free the lock; RuntimeError if the thread does not hold it."""
        _do(self.ex, Release(self))

    def __enter__(self) -> Self:
        _do(self.ex, Acquire(self))
        return self

    def __exit__(self, *failure: object) -> None:
        if not self.ex.closing:
            _do(self.ex, Release(self))

    def __repr__(self) -> str:
        return f"<lock {self.name}>"


class ControlledCondition(Shared):
    """A condition variable. Its value is the list of (thread, second half of its wait) in order of arrival."""

    __slots__ = ("lock", "waits")

    def __init__(self, ex: ExecutionContext, lock: ControlledLock, name: str) -> None:
        Shared.__init__(self, ex, [], "condition", name)
        self.lock = lock
        self.waits: Footprint = ex.footprint(((lock.index, WRITE), (self.index, WRITE)))

    def wait(self, timeout: float | None = None) -> bool:
        """Free the lock, sleep until notified, take the lock again; False if a time limit ran out first."""
        ex = self.ex
        thread = ex.current
        if thread is None:
            raise Misuse(f"{self.name}.wait() needs a thread: spawn one")
        thread.op = Wait(self.lock, self, timeout is not None)
        thread.op = ex.switch()
        return cast(bool, ex.switch())

    def notify(self, n: int = 1) -> None:
        """Wake `n` of the threads that wait; which ones is a choice. Needs the lock."""
        _do(self.ex, Notify(self, self.lock, n))

    def notify_all(self) -> None:
        """Wake all threads that wait. Needs the lock."""
        _do(self.ex, Notify(self, self.lock, None))

    def __repr__(self) -> str:
        return f"<condition {self.name}>"


class ControlledSemaphore(Shared):
    """A counting semaphore. Its value is the number of permits."""

    __slots__ = ()

    def __init__(self, ex: ExecutionContext, permits: int, name: str) -> None:
        Shared.__init__(self, ex, permits, "semaphore", name)

    def acquire(self) -> None:
        """Wait for a permit and take it."""
        _do(self.ex, Permit(self, limited=False, blocking=True))

    def try_acquire(self, timeout: float | None = None) -> bool:
        """Take a permit; False if there is none (with `timeout`: before the time ran out)."""
        thread = self.ex.current
        limited = timeout is not None and timeout > 0
        blocking = limited and (thread is None or thread.timeouts <= 0)
        return cast(bool, _do(self.ex, Permit(self, limited, blocking)))

    def release(self, n: int = 1) -> None:
        """Add `n` permits; ValueError if n < 1."""
        if n < 1:
            raise ValueError("release(n) needs n >= 1")
        _do(self.ex, Restore(self, n))

    def __repr__(self) -> str:
        return f"<semaphore {self.name}>"


class Handle:
    """A thread, for the code that spawned it."""

    __slots__ = ("_thread",)

    def __init__(self, thread: Thread) -> None:
        self._thread = thread

    @property
    def name(self) -> str:
        """Name of the thread."""
        return self._thread.name

    def join(self) -> None:
        """Wait until it has ended."""
        _do(self._thread.ex, Join(self._thread))


class World:
    """The surroundings of one execution of a program."""

    __slots__ = ("_clock", "_ex", "checks", "is_replay", "records", "results")

    def __init__(self, ex: ExecutionContext) -> None:
        self._ex = ex
        self._clock: Shared | None = None
        self.records: list[Record] = []
        self.is_replay = False
        """True where an execution is run again, to shrink or to show it: an observer that counts should skip it."""
        self.results: list[object] = []
        self.checks: list[Callable[[], object]] = []

    # -- the Host --------------------------------------------------------------------------------------------------

    @property
    def host(self) -> World:
        """The `seriatim.host.Host` of this world, which is the world itself."""
        return self

    def cell(
        self,
        value: T,
        name: str = "",
        *,
        kind: str = "",
        owner: object = None,
        watch: Watch[T] | None = None,
    ) -> ControlledCell[T]:
        """A shared cell that holds `value`; `watch` is called with each change, inside the step."""
        return ControlledCell(self._ex, value, name, watch)

    def lock(self, name: str = "") -> ControlledLock:
        """A mutual exclusion lock."""
        return ControlledLock(self._ex, name)

    def condition(self, lock: object, name: str = "") -> ControlledCondition:
        """A condition variable over a lock of this world; raises `Misuse` for any other lock."""
        if not isinstance(lock, ControlledLock) or lock.ex is not self._ex:
            raise Misuse("condition() needs a lock of this world: world.lock()")
        return ControlledCondition(self._ex, lock, name)

    def semaphore(self, permits: int, name: str = "") -> ControlledSemaphore:
        """A semaphore with so many permits."""
        return ControlledSemaphore(self._ex, permits, name)

    def now(self) -> int:
        """The time in ticks (a host calls them nanoseconds). It stands still until a thread advances it."""
        return cast(int, _do(self._ex, Get(self._time())))

    def record(self, ev: str, /, **args: object) -> None:
        """Say what happened, inside the atomic step in which it happens.

        An invocation (``ph="invoke"``) made inside a thread is held back, with what the thread records after it,
        and placed just before the thread's next operation: code between two operations of a thread may run at
        any time between them, so this is an execution too, and the one in which the call took the least time.
        With `real_time` invocations and responses are steps of their own, and nothing is held back.
        """
        ex = self._ex
        thread = ex.current
        if thread is not None and "ph" in args:
            ph = args["ph"]
            if ex.real_time:
                if ph == "invoke" or ph == "ok" or ph == "fail":
                    _do(ex, CallBoundary(ex.calls, ev, args, ph == "invoke"))
                    return
            elif ph == "invoke" and thread.held is None:
                thread.held = []
        if thread is not None and thread.held is not None:
            thread.held.append((ev, args))
            return
        if ex.repeating:
            return
        acting = ex.acting
        # As `Record(...)`, at half the price.
        found = (ex.steps, "" if acting is None else acting.name, ev, args)
        self.records.append(tuple.__new__(Record, found))

    def keeps(self) -> bool:
        """Whether what is recorded now is kept: see `WatchedHost.keeps`."""
        ex = self._ex
        if not ex.repeating or ex.real_time:
            return True
        # A thread that does the next operation of a script at once drops what it holds back; else it may be needed.
        return ex.current is not None and not ex.script

    def perform(self, method: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call an operation of the code under test and return its result."""
        return method(*args, **kwargs)

    def flush(self, thread: Thread) -> None:
        """Place what a thread held back: its next operation is being done, or it has ended, or all is over."""
        held, thread.held = thread.held, None
        if self._ex.repeating:
            return
        for ev, args in held or ():
            self.records.append(Record(self._ex.steps, thread.name, ev, args))

    def note(self, step: int, thread: str, ev: str, args: dict[str, object]) -> None:
        """Keep a record that was a step of its own."""
        if self._ex.repeating:
            return
        self.records.append(Record(step, thread, ev, args))

    # -- for programs ----------------------------------------------------------------------------------------------

    def advance(self, ticks: int = 1) -> None:
        """Let time pass."""
        if ticks < 0:
            raise Misuse("time does not run backwards: advance(ticks) needs ticks >= 0")
        _do(self._ex, Add(self._time(), ticks))

    def choose(self, n: int) -> int:
        """One of 0 .. n-1; every one of them is explored."""
        if n < 1:
            raise Misuse(f"choose({n}): there is nothing to choose from")
        ex = self._ex
        thread = ex.current or ex.setting_up
        if thread is None:
            raise Misuse("choose() after the end: choose inside a thread or while setting up")
        return cast(int, ex.announce(thread, Choose(n)))

    def spawn(self, fn: Callable[[], object], name: str = "", daemon: bool = False) -> Handle:
        """Start a thread. A daemon may still wait at the end: that is no violation.

        Raises `Misuse` if `fn` cannot be called: ``spawn(work())`` has done the work already.
        """
        if not callable(fn):
            raise Misuse(
                f"spawn({fn!r}): a {type(fn).__name__} cannot be called. Name the function and do not call it: "
                "spawn(work), or spawn(lambda: work(1))"
            )
        ex = self._ex
        thread = ex.current
        if thread is None:
            return Handle(ex.stage(fn, name, daemon))
        return Handle(cast(Thread, _do(ex, Spawn(fn, name, daemon))))

    def at_end(self, check: Callable[[], object]) -> None:
        """Call `check` after the last step. It returns None, or what is wrong, or raises AssertionError.

        Raises `Misuse` if `check` cannot be called.
        """
        if not callable(check):
            raise Misuse(f"at_end({check!r}): a {type(check).__name__} cannot be called")
        self.checks.append(check)

    def result(self, value: object) -> None:
        """An outcome of this execution, for the exploration to count."""
        self.results.append(value)

    @property
    def steps(self) -> int:
        """How many steps have been taken."""
        return self._ex.steps

    @property
    def thread(self) -> str:
        """Name of the thread that is running, "" in set-up and at the end."""
        acting = self._ex.acting
        return "" if acting is None else acting.name

    @property
    def alone(self) -> bool:
        """Whether no thread is running: in set-up, inside a watcher, and at the end."""
        return self._ex.current is None

    @property
    def repeating(self) -> bool:
        """Whether steps are taken, or a set-up is made, that have been before.

        What they record has been kept, and is not recorded again: it is there when the repetition is over.
        """
        return self._ex.repeating

    @property
    def end(self) -> str:
        """How the execution ended: see `ends`."""
        return self._ex.end

    def _time(self) -> Shared:
        # The clock is made on first use, but its number must not depend on who uses it first.
        if self._clock is None:
            self._clock = self._ex.outside_object("clock", 0)
        return self._clock


def _do(ex: ExecutionContext, op: Operation) -> Any:
    """Announce an operation and stop until it has been done; outside a thread, do it at once."""
    thread = ex.current
    if thread is None:
        return ex.at_once(op)
    if ex.script and op.repeatable:
        before, obj = ex.script[-1], op.obj
        alike = before.__class__ is op.__class__ and before.obj.index == obj.index
        if alike and obj.quiet and (op.free or op.ready(thread)):
            return ex.repeat(thread, op)
    thread.op = op
    return ex.switch()
