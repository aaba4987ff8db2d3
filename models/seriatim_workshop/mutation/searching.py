"""Searching the schedules of a program over some modules of its system, and naming what was found."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from math import inf
from types import ModuleType

from seriatim_models.explorer import Dpor, World
from seriatim_models.explorer.model.attributes import AttributeObserver
from seriatim_models.explorer.model.guard import guarded
from seriatim_models.explorer.model.program import Limits, Setting
from seriatim_models.explorer.search.runner import Runner
from seriatim_models.explorer.trace.counterexample import Violation
from seriatim_models.explorer.trace.replay_run import follow
from seriatim_models.programs.base import Program
from seriatim_models.programs.mutant_modules import reference_classes
from seriatim_workshop.mutation.outcomes import OutcomeSet

SOME, ALL = 600, 3000
"""How many executions are run at most, of a program that has more than `ALL`, and of any."""


class SecondsSpent(Exception):
    """A search is not over, and the processor's seconds for it are."""


@dataclass(frozen=True)
class Kill:
    """What a mutant was caught by."""

    by: str
    """A property's id, ``outcome``, an end of the explorer (``deadlock``, ``livelock``, ...) or ``raises Error``."""
    where: str
    """The program, or the cell of the matrix."""

    @property
    def named(self) -> bool:
        """Whether a property or the outcome oracle caught it, and not only an end or an exception."""
        return self.by == "outcome" or re.fullmatch(r"[A-Z]+-\d+", self.by) is not None

    def __str__(self) -> str:
        return f"{self.by} in {self.where}"


def search(
    program: Program,
    lib: ModuleType,
    judge: Callable[[World], str | None],
    executions: int,
    max_steps: int = 5000,
    keep_going: bool = False,
    attributes: bool = False,
    outcomes: OutcomeSet | None = None,
    until: float = inf,
) -> Runner:
    """Search the schedules of a program over some modules of its system, and judge each execution.

    With `attributes` a data race on a plain attribute of the reference is a violation, too; with `outcomes` an outcome
    that is not among those that are known. Raises `SecondsSpent` before an execution that would begin when this process
    has used more than `until` seconds of the processor.
    """

    def build(world: World) -> None:
        if time.process_time() > until:
            raise SecondsSpent
        program.build(world, lib)
        if outcomes is not None:
            world.at_end(lambda: outcomes.observe(world))

    runner = Runner(
        build,
        Setting(program.real_time),
        Limits(max_executions=executions, max_steps=max_steps, keep_going=keep_going),
        on_execution=judge,
        count_traces=False,
        observer=AttributeObserver(reference_classes(lib)) if attributes else None,
    )
    observed = nullcontext() if runner.observer is None else runner.observer.installed()
    with guarded(), observed:
        Dpor(real_time=program.real_time).search(runner)
        if runner.cut and not runner.violations:
            take_turns(runner)
    return runner


def take_turns(runner: Runner) -> None:
    """Look for a livelock in fair schedules and judge it: the search goes into depth and may cut only unfair ones.

    One of them begins as the longest that was cut, half-way to its end: there a thread goes round already that does
    so only after a race. Daemons that go round for ever count, too: the explorer lets a daemon poll, but those of the
    references wait.
    """
    went_round = runner.deepest[: len(runner.deepest) // 2]
    for begins, patience in (([], 1), ([], 2), ([], 3), (went_round, 1)):
        execution = follow(runner, begins, patience=patience)
        assert execution is not None  # only a schedule that cannot be followed gives None
        execution.world.is_replay = False  # it is judged like any other
        cycle = execution.cycle
        if cycle is not None and cycle.fair and execution.steps_show_all_state:
            runner.ended(execution, "livelock", None)
            return
        execution.close()


def named(violations: list[Violation]) -> str:
    """Return what caught a mutant: a property before an end, an end before an outcome, and an exception last."""
    found: dict[str, str] = {}
    for violation in violations:
        text = str(violation.what)
        if violation.kind == "property":
            id = re.match(r"[A-Z]+-\d+", text)
            kind = "outcome" if text.startswith("outcome:") else "property"
            found.setdefault(kind, id.group() if id else text.partition(":")[0][:40])
        elif violation.kind == "error":
            error = re.search(r" raised (\w+)", text)
            found.setdefault("error", f"raises {error.group(1) if error else 'an error'}")
        else:
            found.setdefault("end", violation.kind)
    return next(found[k] for k in ("property", "end", "outcome", "error") if k in found)


def kill_of(program: Program, runner: Runner) -> Kill | None:
    """Return what caught a mutant in a program; None if nothing did."""
    return Kill(named(runner.found[0][1]), program.id) if runner.found else None


def races_of(runner: Runner) -> list[str]:
    """Return the reports of the data races that were found, in the first execution that has some."""
    return (
        [str(v.what) for v in runner.found[0][1] if v.kind == "data race"] if runner.found else []
    )
