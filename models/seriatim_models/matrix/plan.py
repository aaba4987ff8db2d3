"""What a matrix consists of: the states of every universe to a depth, their edges, and the programs from them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import wait
from dataclasses import replace
from functools import partial

import msgspec

from seriatim_models.child_process import processes
from seriatim_models.matrix.cells import Mode, pairs
from seriatim_models.matrix.states import SystemState, edge_problem, explore_states
from seriatim_models.matrix.systems import SYSTEMS
from seriatim_models.matrix.totals import EdgeProblem
from seriatim_models.matrix.work import PATIENCE, PairData, universe_of
from seriatim_models.programs import MUTANTS
from seriatim_models.programs.mutant_modules import load


class MatrixPlan(msgspec.Struct):
    """The states, edges and programs of a system, or of one of its universes."""

    states: int = 0
    edges: int = 0
    problems: list[EdgeProblem] = []
    """Edges that are wrong."""
    programs: list[PairData] = []
    """Those from states of few calls first, and with the settle mode before the serve mode."""
    cut: int | None = None
    """From which depth on states are missing, if the time ended that they may take; None if none are."""

    def add(self, other: MatrixPlan) -> None:
        """Add another universe."""
        self.states += other.states
        self.edges += other.edges
        self.problems += other.problems
        self.programs += other.programs
        self.cut = min((c for c in (self.cut, other.cut) if c is not None), default=None)


def plan_universe(
    universe: str,
    system: str,
    depth: int,
    at_once: int = 2,
    mutant: str = "",
    until: float | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> MatrixPlan:
    """Return the plan of one universe, with every edge judged; or a part, at the time `until` (as `time.time` has it)
    or when `stopped` says so.

    Of a known mutant the states, edges and programs are those of the right reference; its edges are judged.
    """
    of = SYSTEMS[system]
    chosen = universe_of(of, universe)
    depth = max(depth - chosen.given_counts * len(chosen.given), 0)
    right = load(of.reference)
    found = explore_states(
        of, chosen, right, depth, lambda: stopped() or (until is not None and time.time() > until)
    )
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
    return MatrixPlan(len(found.states), len(found.edges), problems, programs, found.cut)


def _modes(state: SystemState, depth: int) -> tuple[Mode, ...]:
    """Both modes, but from the deepest states only one, where the universe says so."""
    near = len(state.path) <= max(depth - state.universe.serve_less, 0)
    return ("settle", "serve") if near else ("settle",)


def plan(
    system: str,
    depth: int,
    at_once: int = 2,
    jobs: int = 1,
    universes: Sequence[str] = (),
    mutant: str = "",
    until: float | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> MatrixPlan:
    """Return the plan of a system, made in `jobs` processes; of all universes, or those named.

    At the time `until` it is what was found by then. Raises `KeyboardInterrupt` when `stopped` says so.
    """
    names = universes or [u.name for u in SYSTEMS[system].universes]
    make = partial(
        plan_universe, system=system, depth=depth, at_once=at_once, mutant=mutant, until=until
    )
    whole = MatrixPlan(problems=[], programs=[])
    for part in _each(make, names, jobs, stopped):
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


def _each(
    make: partial[MatrixPlan], names: Iterable[str], jobs: int, stopped: Callable[[], bool]
) -> Iterator[MatrixPlan]:
    if jobs == 1:
        for name in names:
            yield make(name, stopped=stopped)
            if stopped():
                raise KeyboardInterrupt
        return
    with processes(jobs) as pool:
        for part in [pool.submit(make, name) for name in names]:
            while not wait([part], PATIENCE).done:
                if stopped():
                    raise KeyboardInterrupt
            yield part.result()
