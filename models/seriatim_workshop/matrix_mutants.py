"""The matrix as a judge of mutants: the first of its edges or programs that sees that a reference is wrong.

A mutant is judged in the states of the right reference, and what clients see is compared with what they see over that.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from types import ModuleType

from seriatim_models.matrix.cells import run_pair
from seriatim_models.matrix.plan import plan
from seriatim_models.matrix.states import Edge, edge_problem, explore_states
from seriatim_models.matrix.systems import SYSTEMS
from seriatim_models.matrix.totals import EdgeProblem, Problem
from seriatim_models.matrix.work import PairData
from seriatim_models.programs.mutant_modules import load


@cache
def programs_of(system: str, depth: int) -> tuple[PairData, ...]:
    """Return the programs of a system's matrix over the reference, those from states of few calls first."""
    return tuple(plan(system, depth).programs)


@cache
def edges_of(system: str, depth: int) -> tuple[Edge, ...]:
    """Return the edges of a system's matrix over the reference, those from states of few calls first."""
    of = SYSTEMS[system]
    right = load(of.reference)
    found = [e for u in of.universes for e in explore_states(of, u, right, depth).edges]
    return tuple(sorted(found, key=lambda e: len(e.state.path)))


def first_problem(
    system: str, lib: ModuleType, depth: int = 1, max_executions: int = 100, seconds: float = 600
) -> Problem | EdgeProblem | None:
    """Return the first edge or program of a matrix that is wrong over `lib`; None if none was in the time given.

    What is capped at `max_executions` is not a problem.
    """
    end = time.monotonic() + seconds
    for problem in _problems(system, lib, depth, max_executions):
        if problem is not None or time.monotonic() > end:
            return problem
    return None


def _problems(
    system: str, lib: ModuleType, depth: int, max_executions: int
) -> Iterator[Problem | EdgeProblem | None]:
    of = SYSTEMS[system]
    right = load(of.reference)
    for edge in edges_of(system, depth):
        state, call = edge.state, edge.offer.invocation
        what = edge_problem(of, state, edge.offer, lib, right)
        yield EdgeProblem(state.universe.name, state.path, call, what) if what else None
    for program in programs_of(system, depth):
        result = run_pair(of, lib, program.pair(of), max_executions, right)
        yield Problem(program, result.problem) if result.problem else None
