"""The matrix itself: call against call, each cell with its programs, executions, verdict and the shortest sequence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from seriatim_models.matrix.cells import PairResult
from seriatim_models.matrix.scene import Invocation
from seriatim_models.matrix.work import Done, PairData
from seriatim_models.properties import Verdict


class Problem(msgspec.Struct, frozen=True):
    """A program that is wrong."""

    program: PairData
    what: str

    @property
    def key(self) -> str:
        """A text that names it among those of its system."""
        return self.program.key

    def __str__(self) -> str:
        return f"{self.key}\n    {self.what}"


class ProgramRow(msgspec.Struct, frozen=True):
    """A program of a cell, and what came of it."""

    program: PairData
    result: PairResult | None = None
    """None if it was not run."""

    @property
    def verdict(self) -> Verdict:
        """Ok only if every schedule was seen."""
        if self.result is None:
            return Verdict.INCONCLUSIVE
        if self.result.problem:
            return Verdict.VIOLATED
        return Verdict.OK if self.result.exhausted else Verdict.INCONCLUSIVE


class CellTotals(msgspec.Struct):
    """One cell: the calls of one name beside those of another, from every state."""

    calls: tuple[str, ...]
    states: int = 0
    programs: int = 0
    executions: int = 0
    capped: int = 0
    """Programs that a budget ended."""
    missing: int = 0
    """Programs that were not run."""
    problems: list[Problem] = []
    """The shortest first."""
    excused: dict[str, int] = {}
    """Reason by which the outcome oracle let a difference pass -> programs."""

    @property
    def verdict(self) -> Verdict:
        """Violated if any program is, inconclusive if any was capped or not run, ok else."""
        if self.problems:
            return Verdict.VIOLATED
        done = self.programs > 0 and not self.capped and not self.missing
        return Verdict.OK if done else Verdict.INCONCLUSIVE


class EdgeProblem(msgspec.Struct, frozen=True):
    """A call that is wrong by itself."""

    universe: str
    path: tuple[Invocation, ...]
    call: Invocation
    what: str

    @property
    def key(self) -> str:
        """A text that names it among those of its system."""
        return f"{self.universe}: {', '.join(map(str, self.path))}; {self.call}"

    def __str__(self) -> str:
        return f"{self.key}\n    {self.what}"


class Matrix(msgspec.Struct):
    """What is known of all cells of a system at a depth."""

    system: str
    depth: int
    states: int
    edges: int
    calls: tuple[str, ...]
    """The names of the calls, in the order of the table."""
    cells: list[CellTotals]
    edge_problems: list[EdgeProblem]
    seconds: float = 0.0
    cut: int | None = None
    """From which depth on states are missing, because the budget ended while they were found; None if none are."""

    @property
    def verdict(self) -> Verdict:
        """Violated if any edge or cell is, ok only if all cells are and no state is missing."""
        verdicts = {c.verdict for c in self.cells}
        if self.edge_problems or Verdict.VIOLATED in verdicts:
            return Verdict.VIOLATED
        whole = verdicts == {Verdict.OK} and self.cut is None
        return Verdict.OK if whole else Verdict.INCONCLUSIVE

    @property
    def programs(self) -> int:
        """How many programs were run."""
        return sum(c.programs for c in self.cells)

    @property
    def executions(self) -> int:
        """How many executions they had."""
        return sum(c.executions for c in self.cells)

    @property
    def proved(self) -> int:
        """How many cells are ok; none if states are missing."""
        return 0 if self.cut is not None else sum(c.verdict is Verdict.OK for c in self.cells)


def add_up(planned: Sequence[PairData], done: Iterable[Done]) -> list[CellTotals]:
    """Return every cell that has a program, in the order in which their calls first appear."""
    cells: dict[tuple[str, ...], CellTotals] = {}
    states: dict[tuple[str, ...], set[tuple[str, tuple[Invocation, ...]]]] = {}
    results = {d.program.key: d.result for d in done}
    for program in planned:
        names = program.cell
        cell = cells.setdefault(names, CellTotals(names))
        result = results.get(program.key)
        if result is None:
            cell.missing += 1
            continue
        states.setdefault(names, set()).add((program.universe, program.path))
        cell.programs += 1
        cell.executions += result.executions
        cell.capped += not result.exhausted and not result.problem
        if result.problem:
            cell.problems.append(Problem(program, result.problem))
        for why in result.excused:
            cell.excused[why] = cell.excused.get(why, 0) + 1
    for names, cell in cells.items():
        cell.states = len(states.get(names, ()))
        cell.problems.sort(key=lambda p: _length(p.program))
    return list(cells.values())


def by_cell(
    planned: Sequence[PairData], done: Iterable[Done]
) -> dict[tuple[str, ...], list[ProgramRow]]:
    """Return the programs of every cell with their results: the wrong ones first, and the shortest first."""
    cells: dict[tuple[str, ...], list[ProgramRow]] = {}
    results = {d.program.key: d.result for d in done}
    for program in planned:
        row = ProgramRow(program, results.get(program.key))
        cells.setdefault(program.cell, []).append(row)
    for rows in cells.values():
        rows.sort(key=lambda r: (r.verdict is not Verdict.VIOLATED, *_length(r.program)))
    return cells


def _length(program: PairData) -> tuple[int, int, str]:
    """Calls that lead to the state, and then the length of its name."""
    return len(program.path), len(program.key), program.key
