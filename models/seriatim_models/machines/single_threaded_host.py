"""A host for one thread, with a clock that is set by hand, which keeps every event."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from seriatim.host import Threads
from seriatim_models.explorer import World
from seriatim_models.history.event import Event, event


class SingleThreadedHost(Threads):
    """`Threads` of which only one runs, so that no lock is ever contended."""

    def __init__(self) -> None:
        super().__init__(self._keep)
        self.time = 0
        self.events: list[Event] = []
        self.host = self
        self.world = cast(World, self)  # it has what a scene asks a world for, but for threads

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
        self.events.append(event(i, i, "main", ev, {**args, "lvl": "model"}))
