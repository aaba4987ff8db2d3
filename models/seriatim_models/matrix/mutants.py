"""The matrix as a judge of mutants: the first of its programs that sees that a reference is wrong."""

from __future__ import annotations

import time
from functools import cache
from types import ModuleType

from seriatim_models.matrix.cells import run_pair
from seriatim_models.matrix.plan import plan
from seriatim_models.matrix.systems import SYSTEMS
from seriatim_models.matrix.totals import Problem
from seriatim_models.matrix.work import PairData


@cache
def programs_of(system: str, depth: int) -> tuple[PairData, ...]:
    """Return the programs of a system's matrix over the reference, those from states of few calls first."""
    return tuple(plan(system, depth).programs)


def first_problem(
    system: str, lib: ModuleType, depth: int = 1, max_executions: int = 100, seconds: float = 600
) -> Problem | None:
    """Return the first program of a system's matrix that is wrong over `lib`; None if none was in the time given.

    What is capped at `max_executions` is not a problem.
    """
    of = SYSTEMS[system]
    end = time.monotonic() + seconds
    for program in programs_of(system, depth):
        result = run_pair(of, lib, program.pair(of), max_executions)
        if result.problem:
            return Problem(program, result.problem)
        if time.monotonic() > end:
            return None
    return None
