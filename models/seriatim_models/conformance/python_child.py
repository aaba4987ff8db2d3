"""An object of Python in a process of its own, which is given whole scripts.

A script driven there costs one exchange with the process instead of two for each step, so that long ones can be
driven. What hangs, ends or breaks the process is driven again step by step, which shows the command that did it.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from seriatim_models.conformance.child import ChildProcess
from seriatim_models.conformance.driving import DrivenRun, drive_steps
from seriatim_models.conformance.protocol import Fault, Request
from seriatim_models.conformance.script import ScriptStep
from seriatim_models.conformance.system import MayWait, System

WHOLE_SECONDS = 1.0
"""Seconds beyond the patience for one answer that a script may take, and as much again for each `STEPS` of it."""
STEPS = 100


def served(where: str) -> str:
    """The command that serves the object that ``package.module:name`` makes."""
    return shlex.join([sys.executable, "-m", "seriatim_models.conformance.serve", where])


class DriveTask(msgspec.Struct, frozen=True, kw_only=True):
    """What `serve` is asked to drive: a script, for so many seconds, by a system that can do so much."""

    steps: list[ScriptStep]
    seconds: float | None
    can: list[str]
    room: int | None = None


class PythonChild(ChildProcess):
    """`System` over the object that ``package.module:name`` makes."""

    _folder: tempfile.TemporaryDirectory[str] | None = None
    """Where scripts are given to the process, and their runs come back."""
    starting = (
        30.0  # a busy machine takes long to start an interpreter, which is not the object's doing
    )

    def __init__(
        self,
        where: str,
        *,
        patience: float = 5.0,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Raises `Fault` if there is no such object."""
        super().__init__(served(where), patience=patience, environment=environment)

    def drive(self, steps: Iterable[ScriptStep], seconds: float) -> DrivenRun | None:
        """The run of a whole script within so many seconds; None if it must be driven step by step."""
        task = DriveTask(
            steps=list(steps),
            seconds=seconds if seconds != float("inf") else None,
            can=sorted(self.can),
            room=self.room,
        )
        within = self._patience + WHOLE_SECONDS * (1 + len(task.steps) / STEPS)
        try:
            self.start()
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="seriatim-drive-")
            path = Path(self._folder.name) / "script"
            path.write_bytes(msgspec.msgpack.encode(task))
            self.ask(Request(op="drive", path=str(path)), within)
            return msgspec.msgpack.decode(path.read_bytes(), type=DrivenRun)
        except (Fault, OSError, msgspec.MsgspecError):
            return None

    def end(self) -> None:
        super().end()
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.cleanup()


def drive_task(system: System, path: Path) -> None:
    """Drive the task of a file, and write the run in its place."""
    task = msgspec.msgpack.decode(path.read_bytes(), type=DriveTask)
    system.can = frozenset(task.can)
    if isinstance(system, MayWait):
        system.room = task.room
    run = drive_steps(system, task.steps, float("inf") if task.seconds is None else task.seconds)
    path.write_bytes(msgspec.msgpack.encode(run))
