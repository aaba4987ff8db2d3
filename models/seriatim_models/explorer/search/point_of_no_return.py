"""The point of no return: the step of a counterexample after which every continuation is wrong.

The step in which a mistake *shows* is often later than the one that decides.
Here the continuations of a prefix are explored like a program of their own; a prefix is *doomed* if all of them are
wrong. Every longer prefix of the same schedule is doomed too, so the shortest one is found by bisection.
"""

from __future__ import annotations

import time
from contextlib import suppress
from itertools import pairwise

from seriatim_models.explorer.errors import CHANCE, NondeterministicProgram
from seriatim_models.explorer.model.guard import guarded
from seriatim_models.explorer.model.program import Limits, Program, Setting
from seriatim_models.explorer.model.watchdog import watched
from seriatim_models.explorer.search.dpor import Branch, DporSearch
from seriatim_models.explorer.search.runner import Observer, Runner
from seriatim_models.explorer.trace.counterexample import (
    Counterexample,
    PointOfNoReturn,
    Schedule,
)

EXECUTIONS = 120
"""Continuations of one prefix that are tried before it counts as not decided."""
SECONDS = 20.0
"""After these no further one is tried: executions may be long."""


def point_of_no_return(
    program: Program,
    case: Counterexample,
    *,
    setting: Setting | None = None,
    on_execution: Observer | None = None,
    executions: int = EXECUTIONS,
    max_steps: int = 2000,
    seconds: float = SECONDS,
) -> PointOfNoReturn | None:
    """The earliest doomed prefix of `case`, a counterexample of `program`; None if it cannot be determined.

    `setting` and `on_execution` as they were when it was found. Takes at most `executions` runs for each prefix,
    and `seconds` in all, of which one run may take more.
    """
    setting = setting or Setting()
    if case.period:
        return None
    schedule = case.schedule[: len(case.events)]
    continuations: dict[int, int] = {}
    until = time.perf_counter() + seconds

    def doomed(steps: int) -> bool | None:
        """Whether all continuations of the first `steps` steps are wrong; None if the budget ran out."""
        left = max(0.0, until - time.perf_counter())
        limits = Limits(executions, left, max_steps=max_steps, keep_going=True)
        runner = Runner(program, setting, limits, on_execution=on_execution, count_traces=False)
        search = _search_after(runner, schedule[:steps])
        over = False
        while not over and not runner.over():
            over = search.once()
            if runner.complete + runner.cut > runner.violations:
                return False
        continuations[steps] = runner.complete + runner.cut
        return True if over else None

    # The program may differ from run to run, and a check of it may raise: the counterexample is shown all the same.
    with suppress(Exception), guarded(), watched(seconds):
        if doomed(len(schedule)) is not True:
            return None  # the schedule alone does not bring it about: a cycle
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
    return None


def _search_after(runner: Runner, schedule: Schedule) -> DporSearch:
    """A search of all continuations of a schedule."""
    steps: list[Branch] = []
    ex = runner.fresh()
    try:
        for number, alternative in schedule:
            thread = ex.order[number] if number < len(ex.order) else None
            if thread is None or thread.op is None or thread not in ex.enabled():
                raise NondeterministicProgram(
                    f"the schedule that broke the program cannot be run again. {CHANCE}"
                )
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
