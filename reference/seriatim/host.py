"""The seam between the reference and the world that runs it.

The reference never touches `threading`, a clock or a log.
It asks a `Host` for shared objects (cells, locks, conditions, semaphores) and for the time.
It does not record what it does either. It creates each cell with its kind and the object that owns it, and marks each
operation once, with the decorator `operation`; so a host that wants to record sees every change of a cell and every
call and return. What is neither is one line, `Host.record`. A host that records nothing has nothing to do.

Two hosts matter:

- `Threads`, here: real threads of this interpreter. What you would use.
- the controlled host of `seriatim_models.explorer`: every access to a cell, a lock, a condition, a semaphore or the
  clock is one step of a deterministic schedule. What we check with.

The same source runs under both, so what is checked is what is used.

Memory model: sequential consistency.
Every operation on a cell is atomic,
and all operations have one total order that agrees with each thread's program order.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial, wraps
from typing import Concatenate, Generic, NamedTuple, ParamSpec, Protocol, Self, TypeVar

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")


class Change(NamedTuple, Generic[T]):
    """One write, or failed compare-and-set, on a cell, as a `Watch` function sees it.

    `op` is ``set``, ``cas``, ``swap`` or ``add``; `old` is the value found in the cell
    and `new` the value written, or, when `ok` is false, the value that was not written.
    """

    op: str
    old: T
    new: T
    ok: bool


Watch = Callable[[Change[T]], None]
"""Called inside the atomic step that changed the cell, so that what it records is in the order of the changes."""


class RecordingWatch(partial[None]):
    """A `Watch` that does nothing but record.

    A host that takes steps again whose records it has kept need not call it.
    """


class Cell(Protocol[T]):
    """A shared variable with atomic operations. Values are compared with ``==``."""

    def get(self) -> T:
        """Return the value."""

    def set(self, value: T) -> None:
        """Write `value`."""

    def compare_and_set(self, expected: T, new: T) -> bool:
        """Write `new` if the value equals `expected`; return whether it was written."""

    def get_and_set(self, value: T) -> T:
        """Write `value` and return the value before."""

    def get_and_add(self: Cell[int], amount: int) -> int:
        """Add `amount` and return the value before."""

    def add(self: Cell[int], amount: int) -> None:
        """Add without reading: two such additions commute, which halves what must be explored."""


class Lock(Protocol):
    """A mutual exclusion lock, not re-entrant."""

    def acquire(self) -> None:
        """Wait until the lock is free and take it."""

    def try_acquire(self) -> bool:
        """Take the lock if it is free; return whether it was."""

    def release(self) -> None:
        """Free the lock."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *failure: object) -> None: ...


class Condition(Protocol):
    """A condition variable over a lock that the caller holds. A waiter may wake without a notification."""

    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock, sleep until notified (or until `timeout` seconds passed), take it again.

        Returns False if the time ran out.
        """

    def notify(self, n: int = 1) -> None:
        """Wake `n` waiters, or all if there are fewer."""

    def notify_all(self) -> None:
        """Wake all waiters."""


class Semaphore(Protocol):
    """A counting semaphore."""

    def acquire(self) -> None:
        """Wait until there is a permit and take it."""

    def try_acquire(self, timeout: float | None = None) -> bool:
        """Take a permit if there is one, waiting at most `timeout` seconds (not at all by default)."""

    def release(self, n: int = 1) -> None:
        """Add `n` permits."""


class Host(Protocol):
    """What the reference asks of its surroundings."""

    def cell(self, value: T, name: str = "", *, kind: str = "", owner: object = None) -> Cell[T]:
        """A shared variable that holds `value`.

        `kind` says what it is, e.g. ``"entry state"``, and `owner` is the object that it belongs to: a host that
        records turns its changes into events by these two.
        """

    def lock(self, name: str = "") -> Lock:
        """A new lock, free."""

    def condition(self, lock: Lock, name: str = "") -> Condition:
        """A new condition over a lock of this host."""

    def semaphore(self, permits: int, name: str = "") -> Semaphore:
        """A new semaphore with so many permits."""

    def now(self) -> int:
        """The time in nanoseconds, from a clock that never runs backwards."""

    def record(self, ev: str, /, **args: object) -> None:
        """Record an event that is neither a change of a cell nor an operation.

        `ev` names the event, `args` are its fields, all plain data (str, int, bool, None, list).
        """

    def perform(self, method: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call an operation of the reference and return its result; see `operation`."""


class WatchedHost(Host, Protocol):
    """A host whose cells can be watched: what a host that records has below it."""

    def cell(
        self,
        value: T,
        name: str = "",
        *,
        kind: str = "",
        owner: object = None,
        watch: Watch[T] | None = None,
    ) -> Cell[T]:
        """As `Host.cell`; `watch`, if it is given, is called inside the atomic step of each change."""


class HasHost(Protocol):
    """An object of the reference that knows its host."""

    @property
    def host(self) -> Host:
        """The host that the object asks for everything."""


S = TypeVar("S", bound=HasHost)


def operation(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Mark a method as an operation: its host performs it, and so sees the call and the return."""

    @wraps(method)
    def performed(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.host.perform(method, self, *args, **kwargs)

    return performed


Sink = Callable[[int, str, str, dict[str, object]], None]
"""Receives (time in ns, thread name, event, fields) in the order in which things happened."""


class _ThreadCell(Generic[T]):
    """Python has no compare-and-set, so each cell has its own small mutex.

    Reads take it too. Then what a watcher records lies in the same critical section as the change,
    and the order of recording is an order in which the operations could have happened one by one.
    """

    __slots__ = ("_mutex", "_value", "_watch")

    def __init__(self, value: T, watch: Watch[T] | None) -> None:
        self._mutex = threading.Lock()
        self._value = value
        self._watch = watch

    def get(self) -> T:
        with self._mutex:
            return self._value

    def set(self, value: T) -> None:
        self._write("set", value)

    def get_and_set(self, value: T) -> T:
        return self._write("swap", value)

    def compare_and_set(self, expected: T, new: T) -> bool:
        with self._mutex:
            old = self._value
            ok = old is expected or old == expected
            if ok:
                self._value = new
            if self._watch is not None:
                self._watch(Change("cas", old, new, ok))
            return ok

    def get_and_add(self: _ThreadCell[int], amount: int) -> int:
        with self._mutex:
            old = self._value
            self._value = old + amount
            if self._watch is not None:
                self._watch(Change("add", old, old + amount, True))
            return old

    def add(self: _ThreadCell[int], amount: int) -> None:
        self.get_and_add(amount)

    def _write(self, op: str, value: T) -> T:
        with self._mutex:
            old, self._value = self._value, value
            if self._watch is not None:
                self._watch(Change(op, old, value, True))
            return old


class _ThreadLock:
    __slots__ = ("inner",)

    def __init__(self) -> None:
        self.inner = threading.Lock()

    def acquire(self) -> None:
        self.inner.acquire()

    def try_acquire(self) -> bool:
        return self.inner.acquire(blocking=False)

    def release(self) -> None:
        self.inner.release()

    def __enter__(self) -> Self:
        self.inner.acquire()
        return self

    def __exit__(self, *failure: object) -> None:
        self.inner.release()


class _ThreadSemaphore:
    __slots__ = ("_inner",)

    def __init__(self, permits: int) -> None:
        self._inner = threading.Semaphore(permits)

    def acquire(self) -> None:
        self._inner.acquire()

    def try_acquire(self, timeout: float | None = None) -> bool:
        if timeout is None:
            return self._inner.acquire(blocking=False)
        return self._inner.acquire(timeout=timeout)

    def release(self, n: int = 1) -> None:
        self._inner.release(n)


class Threads:
    """Real threads. Give it a `sink` to keep what the reference records; without one nothing is kept."""

    def __init__(self, sink: Sink | None = None) -> None:
        self._sink = sink

    def cell(
        self,
        value: T,
        name: str = "",
        *,
        kind: str = "",
        owner: object = None,
        watch: Watch[T] | None = None,
    ) -> Cell[T]:
        """As `WatchedHost.cell`."""
        return _ThreadCell(value, watch)

    def lock(self, name: str = "") -> Lock:
        """A lock of `threading`."""
        return _ThreadLock()

    def condition(self, lock: Lock, name: str = "") -> Condition:
        """A condition of `threading`. Raises `TypeError` if another host made the lock."""
        if not isinstance(lock, _ThreadLock):
            raise TypeError("condition() needs a lock that this host made: host.lock()")
        return threading.Condition(lock.inner)

    def semaphore(self, permits: int, name: str = "") -> Semaphore:
        """A semaphore of `threading`."""
        return _ThreadSemaphore(permits)

    def now(self) -> int:
        """The monotonic clock of the operating system."""
        return time.monotonic_ns()

    def record(self, ev: str, /, **args: object) -> None:
        """Give the event to the sink, if there is one."""
        if self._sink is not None:
            self._sink(self.now(), threading.current_thread().name, ev, args)

    def perform(self, method: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the method."""
        return method(*args, **kwargs)
