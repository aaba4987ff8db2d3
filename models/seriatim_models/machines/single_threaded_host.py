"""A host for one thread, with a clock that is set by hand and a record of everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from seriatim.host import Cell, Condition, Lock, Semaphore, Threads, Watch
from seriatim_models.explorer import World
from seriatim_models.history.event import Event, event

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")


class SingleThreadedHost:
    """Nobody else is running: cells and locks are those of `Threads`, which nobody contends for."""

    def __init__(self) -> None:
        self.time = 0
        self.events: list[Event] = []
        self.host = self
        self.world = cast(World, self)  # it has what a scene asks a world for, but for threads
        self._threads = Threads()

    def cell(
        self,
        value: T,
        name: str = "",
        *,
        kind: str = "",
        owner: object = None,
        watch: Watch[T] | None = None,
    ) -> Cell[T]:
        return self._threads.cell(value, name, kind=kind, owner=owner, watch=watch)

    def lock(self, name: str = "") -> Lock:
        return self._threads.lock(name)

    def condition(self, lock: Lock, name: str = "") -> Condition:
        return self._threads.condition(lock, name)

    def semaphore(self, permits: int, name: str = "") -> Semaphore:
        return self._threads.semaphore(permits, name)

    def now(self) -> int:
        return self.time

    def record(self, ev: str, /, **args: object) -> None:
        i = len(self.events)
        self.events.append(event(i, i, "main", ev, {**args, "lvl": "model"}))

    def perform(self, method: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return method(*args, **kwargs)

    def pass_time(self, by: int) -> None:
        """Advance the clock, and record it."""
        self.time += by
        self.record("clock", now=self.time)

    def at_end(self, check: Callable[[], object]) -> None:
        """Do nothing: there is no end."""
