"""What a matrix consists of: the states of every universe to a depth, their edges, and the programs from them."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial

import msgspec

from seriatim_models.matrix.cells import Mode, pairs
from seriatim_models.matrix.states import SystemState, edge_problem, explore_states
from seriatim_models.matrix.systems import SYSTEMS
from seriatim_models.matrix.totals import EdgeProblem
from seriatim_models.matrix.work import PairData, universe_of
from seriatim_models.programs import MUTANTS
from seriatim_models.programs.mutant_modules import load

SERVE_LESS = 2
"""How many calls less lead to the states from which pairs are run in mode ``serve``, too."""


class MatrixPlan(msgspec.Struct):
    """The states, edges and programs of a system, or of one of its universes."""

    states: int = 0
    edges: int = 0
    problems: list[EdgeProblem] = []
    """Edges that are wrong."""
    programs: list[PairData] = []
    """Those from states of few calls first, and with the settle mode before the serve mode."""

    def add(self, other: MatrixPlan) -> None:
        """Add another universe."""
        self.states += other.states
        self.edges += other.edges
        self.problems += other.problems
        self.programs += other.programs


def plan_universe(
    universe: str, system: str, depth: int, at_once: int = 2, mutant: str = ""
) -> MatrixPlan:
    """Return the plan of one universe, with every edge judged.

    Of a known mutant the states, edges and programs are those of the right reference; its edges are judged.
    """
    of = SYSTEMS[system]
    chosen = universe_of(of, universe)
    right = load(of.reference)
    found = explore_states(of, chosen, right, depth)
    programs = [
        PairData.of(pair)
        for state in found.states
        for pair in pairs(state, _modes(state, depth), at_once)
    ]
    edges = found.edges
    if mutant:
        wrong = load(of.reference, MUTANTS[mutant])
        edges = [
            replace(e, problem=edge_problem(of, e.state, e.offer, wrong, right)) for e in edges
        ]
    problems = [
        EdgeProblem(universe, e.state.path, e.offer.invocation, e.problem)
        for e in edges
        if e.problem
    ]
    return MatrixPlan(len(found.states), len(found.edges), problems, programs)


def _modes(state: SystemState, depth: int) -> tuple[Mode, ...]:
    """Both modes, but not from the deepest states: serving beside the calls has many more schedules."""
    near = len(state.path) <= max(depth - SERVE_LESS, 0)
    return ("settle", "serve") if near else ("settle",)


def plan(
    system: str,
    depth: int,
    at_once: int = 2,
    jobs: int = 1,
    universes: Sequence[str] = (),
    mutant: str = "",
) -> MatrixPlan:
    """Return the plan of a system, made in `jobs` processes; of all universes, or those named."""
    names = universes or [u.name for u in SYSTEMS[system].universes]
    make = partial(plan_universe, system=system, depth=depth, at_once=at_once, mutant=mutant)
    whole = MatrixPlan(problems=[], programs=[])
    for part in _each(make, names, jobs):
        whole.add(part)
    whole.programs = list(distinct(system, whole.programs))
    whole.programs.sort(key=lambda p: (p.mode == "serve", len(p.path)))
    return whole


def distinct(system: str, programs: Iterable[PairData]) -> Iterator[PairData]:
    """Yield the programs without those that differ from an earlier one, of another universe, in names only."""
    of = SYSTEMS[system]
    seen: set[tuple[str, int, str]] = set()
    for program in programs:
        calls = (*program.path, *program.calls)
        text = of.signature(universe_of(of, program.universe), calls)
        signature = (program.mode, len(program.path), text)
        if signature not in seen:
            seen.add(signature)
            yield program


def _each(make: partial[MatrixPlan], names: Iterable[str], jobs: int) -> Iterator[MatrixPlan]:
    if jobs == 1:
        yield from map(make, names)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(make, names)
