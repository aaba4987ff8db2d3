"""A program in which the machine stops at any change of the disk comes to the last change, and past it."""

from __future__ import annotations

from typing import Any

import pytest

from seriatim_models.explorer import World, explore
from seriatim_models.programs import PROGRAMS
from seriatim_models.programs.disk import MemoryDisk
from seriatim_models.programs.folder import Folder
from seriatim_models.programs.log import FailsOnce
from seriatim_models.programs.mutant_modules import load

STOPPING = (
    "log-crash",
    "log-crash-while-opened",
    "log-crash-while-cleared",
    "log-crash-while-parked",
    "log-seen-before-durable",
    "log-files-crash",
)


def left(disk: MemoryDisk | Folder) -> int | None:
    """Return how many changes more would have been made without a stop; None if none was asked for."""
    if isinstance(disk, Folder):
        return None if disk.crash_at is None else disk.crash_at - disk.calls
    if isinstance(disk, FailsOnce) and disk.stops_at is not None:
        return disk.stops_at - disk.changes
    return None if disk.budget is None else disk.budget - disk.spent


@pytest.mark.parametrize("id", STOPPING)
def test_a_stop_is_tried_at_every_change_of_the_disk(
    id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, lib = PROGRAMS[id], load("log")
    made: list[MemoryDisk | Folder] = []
    lefts: set[int] = set()
    for cls in (MemoryDisk, Folder):

        def noted(self: Any, *args: Any, init: Any = cls.__init__, **kwargs: Any) -> None:
            init(self, *args, **kwargs)
            made.append(self)

        monkeypatch.setattr(cls, "__init__", noted)

    def build(world: World) -> None:
        made.clear()
        program.build(world, lib)
        world.at_end(lambda: lefts.update(n for d in made if (n := left(d)) is not None))

    assert explore(build, max_executions=600).exhausted
    assert max(lefts) > 0
