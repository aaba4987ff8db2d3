"""A host for one thread, with a clock that is set by hand, which keeps every event."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import cast

from seriatim.host import Condition, Lock, Semaphore, Threads, _ThreadSemaphore
from seriatim_models.explorer import World
from seriatim_models.history.event import Event, event


class WouldWait(AssertionError):
    """The only thread would wait for another one, and so for ever."""


class _SemaphoreOfOne(_ThreadSemaphore):
    __slots__ = ()

    def acquire(self) -> None:
        if not self.try_acquire():
            raise WouldWait("for a permit")


class _ConditionOfOne(threading.Condition):
    def wait(self, timeout: float | None = None) -> bool:
        if timeout is None:
            raise WouldWait("for a notification")
        return False


class SingleThreadedHost(Threads):
    """`Threads` of which only one runs, so that no lock is ever contended."""

    def __init__(self) -> None:
        super().__init__(self._keep)
        self.time = 0
        self.events: list[Event] = []
        self.host = self
        self.unrecorded = ()
        self.world = cast(World, self)  # it has what a scene asks a world for, but for threads
        self.alone = True

    def semaphore(self, permits: int, name: str = "") -> Semaphore:
        """A semaphore that raises `WouldWait` where a thread would wait."""
        return _SemaphoreOfOne(permits)

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
