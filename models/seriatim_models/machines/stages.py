"""Where a system is run: in an execution of the explorer, on real threads (`threads`), or on one thread.

The last is `single_threaded_host`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from seriatim_models.explorer import World
from seriatim_models.watched import WatchedHost


class Stage(Protocol):
    """A host whose clock can be advanced."""

    @property
    def host(self) -> WatchedHost:
        """The host of everything that the system makes."""

    @property
    def unrecorded(self) -> Collection[str]:
        """Kinds of cells whose changes are not recorded."""

    def pass_time(self, by: int) -> None:
        """Advance the clock, and record it in the same moment."""


class ProgramStage(Stage, Protocol):
    """A stage with threads."""

    @property
    def world(self) -> World:
        """What a scene of the closed programs runs in: an execution, or what does the same on real threads."""

    def spawn(self, run: Callable[[], object], name: str, daemon: bool) -> object:
        """Start a thread when all is set up. A daemon may still be waiting at the end."""

    def at_end(self, check: Callable[[], object]) -> None:
        """Call `check` when nothing moves any more."""


class WorldStage:
    """An execution of the explorer.

    Two additions to a cell commute, unless an event for each says what the cell held then: so the fewer kinds of cells
    are recorded, the fewer schedules differ.
    """

    def __init__(self, world: World, unrecorded: Collection[str] = ()) -> None:
        self.world = world
        self.unrecorded = unrecorded
        self.host = world.host
        self.spawn = world.spawn
        self.at_end = world.at_end
        self._now = 0

    def pass_time(self, by: int) -> None:
        """Advance the clock, and record it in the same moment."""
        self.world.advance(by)
        self._now += by
        self.host.record("clock", now=self._now)
