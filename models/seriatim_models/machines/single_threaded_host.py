"""A host for one thread, with a clock that is set by hand, which keeps every event."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Self, cast

from seriatim.host import Condition, Lock, Semaphore, _ThreadLock, _ThreadSemaphore
from seriatim_models.explorer import World
from seriatim_models.history.event import Event, event
from seriatim_models.watched import WatchedThreads


class WouldWait(AssertionError):
    """The only thread would wait for another one, and so for ever."""


class _LockOfOne(_ThreadLock):
    def acquire(self) -> None:
        if not self.try_acquire():
            raise WouldWait("for a lock")

    def __enter__(self) -> Self:
        self.acquire()
        return self


class _SemaphoreOfOne(_ThreadSemaphore):
    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        taken = super().acquire(blocking=False)
        if not taken and blocking and timeout is None:
            raise WouldWait("for a permit")
        return taken


class _ConditionOfOne(threading.Condition):
    def wait(self, timeout: float | None = None) -> bool:
        if timeout is None:
            raise WouldWait("for a notification")
        return False


class SingleThreadedHost(WatchedThreads):
    """`WatchedThreads` of which only one runs: a lock that is not free it holds itself."""

    def __init__(self) -> None:
        super().__init__(self._keep)
        self.time = 0
        self.events: list[Event] = []
        self.host = self
        self.unrecorded = ()
        self.world = cast(World, self)  # it has what a scene asks a world for, but for threads
        self.alone = True

    def lock(self, name: str = "") -> Lock:
        """A lock that raises `WouldWait` where a thread would wait."""
        return _LockOfOne()

    def semaphore(self, permits: int, name: str = "") -> Semaphore:
        """A semaphore that raises `WouldWait` where a thread would wait."""
        return _SemaphoreOfOne(permits)  # type: ignore[return-value]  # as in `Threads`

    def condition(self, lock: Lock, name: str = "") -> Condition:
        """A condition that raises `WouldWait` where a thread would wait; a wait with a time limit runs out at once."""
        return _ConditionOfOne(lock.inner)  # type: ignore[attr-defined]  # it is one of `Threads`

    def now(self) -> int:
        return self.time

    def pass_time(self, by: int) -> None:
        """Advance the clock, and record it."""
        self.time += by
        self.record("clock", now=self.time)

    def at_end(self, check: Callable[[], object]) -> None:
        """Do nothing: there is no end."""

    def _keep(self, t: int, thread: str, ev: str, args: dict[str, object]) -> None:
        i = len(self.events)
        self.events.append(event(i, i, "main", ev, args, "model"))
