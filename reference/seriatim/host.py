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
from functools import wraps
from typing import Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")


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


class HasHost(Protocol):
    """An object of the reference that knows its host, which it asks for everything."""

    host: Host


S = TypeVar("S", bound=HasHost)


def operation(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Mark a method as an operation: its host performs it, and so sees the call and the return."""

    @wraps(method)
    def performed(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.host.perform(method, self, *args, **kwargs)

    return performed


class _ThreadCell(Generic[T]):
    """Python has no compare-and-set, so each cell has its own small mutex."""

    __slots__ = ("_mutex", "_value")

    def __init__(self, value: T) -> None:
        self._mutex = threading.Lock()
        self._value = value

    def get(self) -> T:
        with self._mutex:
            return self._value

    def set(self, value: T) -> None:
        self.get_and_set(value)

    def get_and_set(self, value: T) -> T:
        with self._mutex:
            old, self._value = self._value, value
            return old

    def compare_and_set(self, expected: T, new: T) -> bool:
        with self._mutex:
            ok = self._value is expected or self._value == expected
            if ok:
                self._value = new
            return ok

    def get_and_add(self: _ThreadCell[int], amount: int) -> int:
        with self._mutex:
            old = self._value
            self._value = old + amount
            return old

    def add(self: _ThreadCell[int], amount: int) -> None:
        self.get_and_add(amount)


class _ThreadLock:
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


class _ThreadSemaphore(threading.Semaphore):
    def try_acquire(self, timeout: float | None = None) -> bool:
        return self.acquire(timeout is not None, timeout)


class Threads:
    """Real threads. Nothing is recorded."""

    def cell(self, value: T, name: str = "", *, kind: str = "", owner: object = None) -> Cell[T]:
        """As `Host.cell`."""
        return _ThreadCell(value)

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
        return _ThreadSemaphore(permits)  # type: ignore[return-value]  # `acquire` returns True

    def now(self) -> int:
        """The monotonic clock of the operating system."""
        return time.monotonic_ns()

    def record(self, ev: str, /, **args: object) -> None:
        """Do nothing."""

    def perform(self, method: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the method."""
        return method(*args, **kwargs)
