"""Where it was lost: the step of a counterexample after which every way to go on is wrong.

The step in which a mistake *shows* is often later, and the step that convicts is sometimes earlier, than the one that
decides. Here the continuations of a prefix are explored like a program of their own; a prefix is *lost* if all of them
are wrong. Longer prefixes of one schedule stay lost, so the first one is found by halving.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from seriatim_models.explorer.model.guard import guarded
from seriatim_models.explorer.model.program import Limits, Program, Setting
from seriatim_models.explorer.search.dpor import Branch, Search
from seriatim_models.explorer.search.runner import Observer, Runner
from seriatim_models.explorer.trace.counterexample import Counterexample, Schedule

EXECUTIONS = 120
"""Continuations of one prefix that are tried before it counts as not decided."""


@dataclass(frozen=True)
class Fate:
    """What is known of the prefixes of a counterexample, by their number of steps."""

    lost: int
    """After this step every continuation is wrong. 0: every execution of the program is."""
    ways: int
    """How many continuations it has, each of a trace of its own; all were tried."""
    saved: int
    """After this step there is still one that is right; -1 if not even at the beginning."""

    @property
    def decided(self) -> bool:
        """Whether nothing lies between the two."""
        return self.saved == self.lost - 1

    def __str__(self) -> str:
        if self.lost == 0:
            return f"Every schedule of this program is wrong ({self.ways} traces were tried)."
        ways = "the only way" if self.ways == 1 else f"each of the {self.ways} ways"
        says = f"After step {self.lost} {ways} to go on is wrong"
        if self.decided:
            return f"{says}; before it there was one that is right."
        since = f" after step {self.saved}" if self.saved >= 0 else ""
        return f"{says}; when{since} the last right one was lost was not found out."


def fate(
    program: Program,
    case: Counterexample,
    *,
    real_time: bool = False,
    on_execution: Observer | None = None,
    executions: int = EXECUTIONS,
    max_steps: int = 2000,
) -> Fate | None:
    """When `case`, a counterexample of `program`, was lost; None if it cannot be said.

    `real_time` and `on_execution` as they were when it was found. Takes at most `executions` runs for each halving.
    """
    setting = Setting(real_time=real_time)
    schedule = case.schedule[: len(case.events)]
    ways: dict[int, int] = {}

    def lost(steps: int) -> bool | None:
        limits = Limits(max_executions=executions, max_steps=max_steps, keep_going=True)
        runner = Runner(program, setting, limits, on_execution=on_execution, count_traces=False)
        search = _from(runner, schedule[:steps])
        over = False
        while not over and not runner.over():
            over = search.once()
            if runner.complete + runner.cut > runner.violations:
                return False
        ways[steps] = runner.complete + runner.cut
        return True if over else None

    with guarded():
        if lost(len(schedule)) is not True:
            return None  # the schedule alone does not bring it about: a time limit, a circle
        right, wrong, first = -1, len(schedule), 0
        while first < wrong:
            middle = (first + wrong) // 2
            found = lost(middle)
            if found:
                wrong = middle
            else:
                first = middle + 1
                if found is False:
                    right = max(right, middle)
    return Fate(wrong, ways[wrong], right)


def _from(runner: Runner, schedule: Schedule) -> Search:
    """A search of what can follow a schedule."""
    steps: list[Branch] = []
    ex = runner.fresh()
    try:
        for number, way in schedule:
            thread = ex.order[number]
            assert thread.op is not None
            steps.append(Branch(thread.tid, way, thread.op.touch()))
            ex.step(thread, way)
    finally:
        ex.close()
    for step, following in pairwise(steps):
        step.children = [following]
    search = Search(runner)
    search.path = steps[:1]
    search.floor = len(steps)
    return search
