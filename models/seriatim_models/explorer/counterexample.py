"""A schedule that breaks a property: its steps, its token, how to read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from seriatim_models.explorer import render, token
from seriatim_models.explorer.ends import classify
from seriatim_models.explorer.errors import NondeterministicProgram
from seriatim_models.explorer.execution import Execution
from seriatim_models.explorer.operations import shown
from seriatim_models.explorer.runner import Runner, Violation, stop_early
from seriatim_models.explorer.world import Record

Schedule = list[tuple[int, int]]


@dataclass(frozen=True)
class Step:
    """One step as it happened."""

    n: int
    """From 1."""
    thread: str
    op: str
    result: str
    preempts: bool
    """Whether another thread was interrupted that could have gone on."""
    records: tuple[Record, ...]

    def __str__(self) -> str:
        return f"{self.op} -> {self.result}" if self.result else self.op


@dataclass(frozen=True)
class Counterexample:
    """One execution in which something is wrong."""

    program: str
    token: str
    schedule: Schedule
    events: list[Step]
    violations: list[Violation]
    end: str
    threads: list[str]
    records: list[Record]

    @property
    def preemptions(self) -> int:
        return sum(step.preempts for step in self.events)

    @property
    def what(self) -> str:
        """The first thing that is wrong."""
        return str(self.violations[0]) if self.violations else ""

    def text(self, width: int = 120) -> str:
        """Columns, one a thread, and the line that replays it."""
        return render.text(self, width)

    def html(self) -> str:
        """A page that needs nothing else."""
        return render.html(self)

    def __str__(self) -> str:
        return self.text()


def follow(runner: Runner, schedule: Schedule, *, lenient: bool = False) -> Execution | None:
    """Run a schedule with everything kept for reading.

    After its last step the execution goes on by itself, without choices, if it can.
    With `lenient` (for shrinking) steps that cannot happen are left out. Otherwise None is returned when one cannot.
    """
    ex = runner.fresh(log=True)
    try:
        log: list[Any] = ex.log if ex.log is not None else []
        last = None
        queue = list(schedule)
        at = 0
        while True:
            able = ex.able()
            if not able:
                ex.end = classify(ex)
                break
            early = stop_early(ex, runner.limits)
            if early:
                ex.end = early
                break
            thread = None
            while at < len(queue):
                number, way = queue[at]
                at += 1
                found = ex.order[number] if number < len(ex.order) else None
                if found is not None and found in able and way < found.op.ways():  # type: ignore[union-attr]
                    thread = found
                    break
                if not lenient:
                    ex.close()
                    return None
            if thread is None:
                thread, way = (last if last in able and last is not None else able[0]), 0
            op = thread.op
            assert op is not None
            said = op.describe()
            records = len(ex.world.records)
            preempts = last is not None and last is not thread and last in able
            result = ex.step(thread, way)
            shows = "" if result is None or op.code in (7, 11) else shown(result)
            if op.code == 17:
                shows = result.name
            log.append(
                Step(
                    ex.steps,
                    thread.name,
                    said,
                    shows,
                    preempts,
                    tuple(ex.world.records[records:]),
                )
            )
            if not thread.virtual:
                last = thread
        return ex
    except BaseException:
        ex.close()
        raise


def counterexample(runner: Runner, name: str, schedule: Schedule) -> Counterexample:
    """Run the schedule again, and keep what there is to read."""
    ex = follow(runner, schedule)
    if ex is None:
        raise NondeterministicProgram(
            "the schedule that broke the program cannot be run again. Is every source of chance inside the model?"
        )
    seen = runner.on_execution
    violations = runner.judge(ex, ex.end)
    assert seen is runner.on_execution
    made = Counterexample(
        name,
        tokened(runner, name, ex),
        list(ex.schedule),
        list(ex.log or []),
        violations,
        ex.end,
        [t.name for t in ex.order[1:] if not t.virtual],
        list(ex.world.records),
    )
    ex.close()
    return made


def tokened(runner: Runner, name: str, ex: Execution) -> str:
    """The token of an execution that was followed."""
    operations = [f"{s.thread} {s.op}" for s in ex.log or []]
    setting = runner.setting
    return token.write(
        token.Replayable(
            token.program_hash(name, operations),
            setting.real_time,
            setting.timeouts,
            setting.spurious,
            list(ex.schedule),
        )
    )
