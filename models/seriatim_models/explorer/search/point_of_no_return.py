"""The point of no return: the step of a counterexample after which every continuation is wrong.

The step in which a mistake *shows* is often later than the one that decides.
Here the continuations of a prefix are explored like a program of their own; a prefix is *doomed* if all of them are
wrong. Every longer prefix of the same schedule is doomed too, so the shortest one is found by bisection.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from seriatim_models.explorer.model.guard import guarded
from seriatim_models.explorer.model.program import Limits, Program, Setting
from seriatim_models.explorer.search.dpor import Branch, DporSearch
from seriatim_models.explorer.search.runner import Observer, Runner
from seriatim_models.explorer.trace.counterexample import Counterexample, Schedule

EXECUTIONS = 120
"""Continuations of one prefix that are tried before it counts as not decided."""


@dataclass(frozen=True)
class PointOfNoReturn:
    """What is known of the prefixes of a counterexample, by their number of steps."""

    step: int
    """After this step every continuation is wrong. 0: every execution of the program is."""
    continuations: int
    """How many continuations the prefix has, each of a trace of its own; all were tried."""
    open: int
    """After this step there is still a right continuation; -1 if not even at the beginning."""

    @property
    def decided(self) -> bool:
        """Whether no step lies between `open` and `step`, so that `step` is the earliest."""
        return self.open == self.step - 1

    def __str__(self) -> str:
        n = self.continuations
        if self.step == 0:
            return f"Every schedule of this program is wrong ({n} traces were tried)."
        which = "the only continuation" if n == 1 else f"each of the {n} continuations"
        doomed = f"After step {self.step} {which} is wrong"
        if self.decided:
            return f"{doomed}; before it there was one that is right."
        since = f", at the earliest after step {self.open + 1}" if self.open >= 0 else ""
        return f"{doomed}; whether that was so earlier{since}, was not decided within the budget."


def point_of_no_return(
    program: Program,
    case: Counterexample,
    *,
    real_time: bool = False,
    on_execution: Observer | None = None,
    executions: int = EXECUTIONS,
    max_steps: int = 2000,
) -> PointOfNoReturn | None:
    """The earliest doomed prefix of `case`, a counterexample of `program`; None if it cannot be determined.

    `real_time` and `on_execution` as they were when it was found. Takes at most `executions` runs for each prefix.
    """
    setting = Setting(real_time=real_time)
    schedule = case.schedule[: len(case.events)]
    continuations: dict[int, int] = {}

    def doomed(steps: int) -> bool | None:
        """Whether all continuations of the first `steps` steps are wrong; None if the budget ran out."""
        limits = Limits(max_executions=executions, max_steps=max_steps, keep_going=True)
        runner = Runner(program, setting, limits, on_execution=on_execution, count_traces=False)
        search = _search_after(runner, schedule[:steps])
        over = False
        while not over and not runner.over():
            over = search.once()
            if runner.complete + runner.cut > runner.violations:
                return False
        continuations[steps] = runner.complete + runner.cut
        return True if over else None

    with guarded():
        if doomed(len(schedule)) is not True:
            return None  # the schedule alone does not bring it about: a time limit, a cycle
        right, wrong, first = -1, len(schedule), 0
        while first < wrong:
            middle = (first + wrong) // 2
            found = doomed(middle)
            if found:
                wrong = middle
            else:
                first = middle + 1
                if found is False:
                    right = max(right, middle)
    return PointOfNoReturn(wrong, continuations[wrong], right)


def _search_after(runner: Runner, schedule: Schedule) -> DporSearch:
    """A search of all continuations of a schedule."""
    steps: list[Branch] = []
    ex = runner.fresh()
    try:
        for number, alternative in schedule:
            thread = ex.order[number]
            assert thread.op is not None
            steps.append(Branch(thread.tid, alternative, thread.op.touch()))
            ex.step(thread, alternative)
    finally:
        ex.close()
    for step, following in pairwise(steps):
        step.children = [following]
    search = DporSearch(runner)
    search.path = steps[:1]
    search.floor = len(steps)
    return search
