"""A host on which whoever waits does meanwhile what the system's own threads would do.

A call of the client waits for its reply, which the reader brings; work that is added to a full pool waits for a worker.
While a state is set up, in a sequence of calls, and at the end of an execution, no thread runs but one. So there a wait
lets the reader, or else a worker, go on until it finds nothing more, and only then returns; if none of them has
anything to do the wait would be for ever, and `WouldWait` is raised. While threads run each wait is a wait.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Self, cast

from seriatim.host import Condition, Lock, Semaphore
from seriatim_models.explorer import World
from seriatim_models.machines.single_threaded_host import WouldWait
from seriatim_models.machines.stages import ProgramStage
from seriatim_models.matrix.scene import Unsettled
from seriatim_models.watched import WatchedHost

MOST = 1000
"""Permits that own threads take in one scene before its work counts as endless; the states here need some dozens."""


class NothingToDo(WouldWait):
    """A thread of the system has nothing to do."""


class OwnThreads:
    """The threads of a system, which wait for permits: started as threads, or run by whoever waits."""

    def __init__(self, alone: Callable[[], bool]) -> None:
        self.alone = alone
        """Returns whether no thread runs but the one that sets up, makes calls one by one, or looks at the end."""
        self.threads: dict[str, Callable[[], object]] = {}
        """What each does, by name; the first that has something to do goes on."""
        self.taken = 0
        """How many permits were taken for them by whoever waits."""
        self._going_on: set[str] = set()
        self._ended: set[str] = set()
        self._most = MOST

    def start(self, stage: ProgramStage) -> None:
        """Start them on a stage, as daemons: at the end they wait for more."""
        for name in self.threads:
            stage.spawn(partial(self._to_its_end, name), name=name, daemon=True)

    def _to_its_end(self, name: str) -> None:
        self.threads[name]()
        self._ended.add(name)

    def go_on(self) -> bool:
        """Let the first thread that has something to do go on until it finds nothing; returns whether there was one.

        Those that wait themselves, further up on the stack, do not, nor do those that have come to their end.
        """
        return any(
            self.run(name) for name in self.threads if name not in (*self._going_on, *self._ended)
        )

    def run(self, name: str, permits: int = MOST) -> bool:
        """Let one thread go on until it finds nothing, or has taken so many permits; returns whether it took one."""
        taken, before, most = self.taken, self._going_on, self._most
        self._going_on, self._most = {*before, name}, taken + permits
        try:
            with suppress(NothingToDo):
                self._to_its_end(name)
        finally:
            self._going_on, self._most = before, most
        return self.taken > taken

    def may_take(self) -> bool:
        """Return whether a thread that runs may take one more permit. Raises `Unsettled` if there were too many."""
        if self.taken >= MOST:
            raise Unsettled(f"after {MOST} frames and tasks there is more to do")
        return self.taken < self._most


class _WaiterLock:
    """A lock that is never waited for while no thread runs: whoever holds it would wait, too."""

    __slots__ = ("inner", "own")

    def __init__(self, inner: Lock, own: OwnThreads) -> None:
        self.inner = inner
        self.own = own

    def acquire(self) -> None:
        if not self.own.alone():
            self.inner.acquire()
        elif not self.inner.try_acquire():
            raise WouldWait("for a lock")

    def try_acquire(self) -> bool:
        return self.inner.try_acquire()

    def release(self) -> None:
        self.inner.release()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *failure: object) -> None:
        self.inner.__exit__(*failure)


class _WaiterCondition:
    """A condition on which own threads go on while somebody waits."""

    __slots__ = ("inner", "lock", "notify", "notify_all", "own")

    def __init__(self, inner: Condition, lock: _WaiterLock, own: OwnThreads) -> None:
        self.inner = inner
        self.lock = lock
        self.own = own
        self.notify = inner.notify
        self.notify_all = inner.notify_all

    def wait(self, timeout: float | None = None) -> bool:
        """Wait; a time limit runs out if none of the threads has anything to do."""
        if not self.own.alone():
            return self.inner.wait(timeout)
        self.lock.release()
        try:
            moved = self.own.go_on()
        finally:
            self.lock.acquire()
        if not moved and timeout is None:
            raise WouldWait("for a notification")
        return moved


class _WaiterSemaphore:
    """A semaphore whose permits are what the threads have to do."""

    __slots__ = ("inner", "own", "release")

    def __init__(self, inner: Semaphore, own: OwnThreads) -> None:
        self.inner = inner
        self.own = own
        self.release = inner.release

    def acquire(self) -> None:
        if not self.own.alone():
            self.inner.acquire()
        elif self.own.may_take() and self.inner.try_acquire():
            self.own.taken += 1
        else:
            raise NothingToDo("for a permit")

    def try_acquire(self, timeout: float | None = None) -> bool:
        return self.inner.try_acquire(timeout)


class HostOfWaiters:
    """A host around another one, whose waits are those of `OwnThreads`."""

    def __init__(self, inner: WatchedHost, own: OwnThreads) -> None:
        self.inner = inner
        self.own = own

    def lock(self, name: str = "") -> Lock:
        """A lock of the inner host."""
        return _WaiterLock(self.inner.lock(name), self.own)

    def condition(self, lock: Lock, name: str = "") -> Condition:
        """A condition of the inner host."""
        assert isinstance(lock, _WaiterLock)
        return _WaiterCondition(self.inner.condition(lock.inner, name), lock, self.own)

    def semaphore(self, permits: int, name: str = "") -> Semaphore:
        """A semaphore of the inner host."""
        return _WaiterSemaphore(self.inner.semaphore(permits, name), self.own)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class WorldOfWaiters:
    """A stage's world for scenes that spawn their own threads while they are set up, and record the end themselves."""

    def __init__(self, world: World, own: OwnThreads) -> None:
        self._world = world
        self._own = own
        self.host = HostOfWaiters(world.host, own)

    def spawn(self, run: Callable[[], object], name: str, daemon: bool = False) -> None:
        """Keep what a thread does until the threads are started."""
        self._own.threads[name] = run

    def at_end(self, check: Callable[[], object]) -> None:
        """Do nothing: the matrix asks a scene to record its end, when all has settled."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)

    @classmethod
    def of(cls, world: World, own: OwnThreads) -> World:
        """Return a world, as scenes take it."""
        return cast(World, cls(world, own))
