"""A schedule that breaks a property: its steps, its token, how to read it."""

from __future__ import annotations

from dataclasses import dataclass

from seriatim_models.explorer.errors import NondeterministicProgram
from seriatim_models.explorer.model.execution import PATIENCE, Execution, going_on
from seriatim_models.explorer.model.operations import Spawn, Thread, Wait, shown
from seriatim_models.explorer.model.world import Record
from seriatim_models.explorer.search.runner import Runner, Violation, stop_early
from seriatim_models.explorer.trace import render, replay_token
from seriatim_models.explorer.trace.cycles import circle
from seriatim_models.explorer.trace.termination import STUCK, classify, explain

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
    period: int = 0
    """How many of the last steps repeat for ever, if they do."""
    command: str = ""
    """How to replay it, where there is a better way than `replay` knows."""

    @property
    def replay(self) -> str:
        """The line that replays it."""
        return self.command or f"explore(program, Replay({self.token!r}))"

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


def follow(
    runner: Runner, schedule: Schedule, *, lenient: bool = False, patience: int = PATIENCE
) -> Execution | None:
    """Run a schedule with everything kept for reading.

    After its last step the execution goes on by itself, without choices, if it can;
    after `patience` steps in a row the next thread has its turn.
    With `lenient` (for shrinking) steps that cannot happen are left out; without, None is returned when one cannot.
    """
    ex = runner.fresh(log=True)
    try:
        ex.world.rehearsal = True
        log: list[Step] = ex.log if ex.log is not None else []
        last: Thread | None = None
        turns = 0
        at = 0
        while True:
            able = ex.able()
            if not able:
                ex.end = classify(ex)
                break
            early = stop_early(ex, runner.limits)
            if early == "failed" and at < len(schedule):
                early = ""  # it was found by a search that went on
            if early:
                ex.end = early
                if early == "cut":
                    ex.circle = circle(log, [t.name for t in able])
                    owed = any(not t.daemon for t in able)
                    if ex.circle is not None and ex.circle.fair and owed:
                        ex.end = "livelock"
                break
            thread = None
            while at < len(schedule):
                number, way = schedule[at]
                at += 1
                found = ex.order[number] if number < len(ex.order) else None
                if found in able and found is not None and way < _ways(found):
                    thread = found
                    break
                if not lenient:
                    ex.close()
                    return None
            if thread is None:
                thread, way = going_on(able, last, turns, patience), 0
            turns = turns + 1 if thread is last else 1
            log.append(_taken(ex, thread, way, last is not None and last in able))
            if not thread.virtual:
                last = thread
        ex.finish(ex.end)
        return ex
    except BaseException:
        ex.close()
        raise


def _ways(thread: Thread) -> int:
    return thread.op.ways() if thread.op is not None else 0


def _taken(ex: Execution, thread: Thread, way: int, last_could: bool) -> Step:
    """Take a step and say what it was."""
    op = thread.op
    assert op is not None
    said = op.describe()
    records = len(ex.world.records)
    previous = ex.log[-1].thread if ex.log else thread.name
    result = ex.step(thread, way)
    if isinstance(op, Spawn):
        shows = str(result.name)
    elif result is None or isinstance(op, Wait):
        shows = ""
    else:
        shows = shown(result)
    preempts = last_could and previous != thread.name and not thread.virtual
    return Step(ex.steps, thread.name, said, shows, preempts, tuple(ex.world.records[records:]))


def counterexample(
    runner: Runner, name: str, schedule: Schedule, violations: list[Violation]
) -> Counterexample:
    """Run the schedule again, and keep what there is to read."""
    ex = follow(runner, schedule)
    if ex is None:
        raise NondeterministicProgram(
            "the schedule that broke the program cannot be run again. Is every source of chance inside the model?"
        )
    stuck = ex.end in STUCK and ex.end != "livelock"
    why = explain(ex) if stuck else ""
    made = Counterexample(
        name,
        tokened(runner, name, ex),
        list(ex.schedule),
        list(ex.log or []),
        [Violation(v.kind, why) if stuck and v.kind == ex.end else v for v in violations],
        ex.end,
        [t.name for t in ex.order[1:] if not t.virtual],
        list(ex.world.records),
        0 if ex.circle is None else ex.circle.period,
    )
    ex.close()
    return made


def tokened(runner: Runner, name: str, ex: Execution) -> str:
    """The token of an execution that was followed."""
    operations = [f"{s.thread} {s.op}" for s in ex.log or []]
    setting = runner.setting
    return replay_token.write(
        replay_token.Replayable(
            replay_token.program_hash(name, operations),
            setting.real_time,
            setting.timeouts,
            setting.spurious,
            list(ex.schedule),
        )
    )
