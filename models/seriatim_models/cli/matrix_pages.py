"""The matrix as pages: from its results to what they show, with interleavings of some programs to step through."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from seriatim_models.cli.console import ProgressDisplay, put, put_within
from seriatim_models.cli.counterexample_annotation import with_first_bad_step
from seriatim_models.cli.report_builder import program_run, property_catalogue
from seriatim_models.properties import Verdict
from seriatim_models.report import ProgramRun
from seriatim_models.report.matrix_view import (
    CellView,
    MatrixSection,
    MatrixView,
    ProgramLine,
    address,
    one_page,
    pages,
)
from seriatim_models.report.stepper import page, story
from seriatim_models.report.story import Story

if TYPE_CHECKING:
    from seriatim_models.cli.matrix_run import MatrixRun
    from seriatim_models.cli.stop_request import StopRequest
    from seriatim_models.matrix.totals import CellTotals, ProgramRow
    from seriatim_models.matrix.work import PairData

DRAWN = 5
"""So many wrong programs of a cell can be stepped through, because producing each takes a search."""


# ---- one program


def pair_command(system: str, key: str, mutant_id: str = "") -> list[str]:
    """The command that runs a program of the table again."""
    mutant = ["--mutant", mutant_id] if mutant_id else []
    return ["seriatim", "matrix", system, "--pair", key, *mutant]


def pair_run(
    system: str, program: PairData, mutant_id: str = "", token: str | None = None
) -> ProgramRun:
    """Run one program of the table to its end, or one schedule of it, as data of the report.

    Raises `ValueError` if the token is none of it.
    """
    from seriatim_models.cli.check import find_mutant
    from seriatim_models.explorer import Replay
    from seriatim_models.matrix.cells import explained
    from seriatim_models.matrix.systems import SYSTEMS
    from seriatim_models.programs.base import Program
    from seriatim_models.programs.check import ProgramResult
    from seriatim_models.programs.mutant_modules import load

    of = SYSTEMS[system]
    mutant = find_mutant(mutant_id) if mutant_id else None
    options = {} if token is None else {"strategy": Replay(token)}
    pair = program.pair(of)
    right = load(of.reference)
    lib, compared = (right, None) if mutant is None else (load(of.reference, mutant), right)
    result, findings = explained(of, lib, pair, compared, **options)
    again = pair_command(system, program.key, mutant_id)
    if (case := result.counterexample) is not None:
        again += ["--replay", case.token]
        result.counterexample = replace(case, command=shlex.join(again))
    beyond = "Two calls from one state; other states and calls are other programs of the matrix."
    shown = Program(
        str(pair), pair.universe.why, of.reference, (), lambda world, lib: None, beyond, 0
    )
    run = program_run(ProgramResult(shown, mutant, findings, result, result.seconds), "dpor", [])
    if (case := result.counterexample) is not None:
        run = with_first_bad_step(run, case)
    return msgspec.structs.replace(run, command=shlex.join(again))


def example_story(system: str, program: PairData, mutant_id: str = "") -> Story:
    """The execution of a program in which the threads take turns, to step through."""
    from seriatim_models.matrix.example import taking_turns
    from seriatim_models.matrix.systems import SYSTEMS
    from seriatim_models.programs import MUTANTS
    from seriatim_models.programs.mutant_modules import load

    of = SYSTEMS[system]
    lib = load(of.reference, MUTANTS[mutant_id] if mutant_id else None)
    case = taking_turns(of, lib, program.pair(of))
    command = shlex.join([*pair_command(system, program.key, mutant_id), "--replay", case.token])
    return story(replace(case, command=command), (), property_catalogue())


def produced_story(system: str, row: ProgramRow, mutant_id: str = "") -> Story | None:
    """An interleaving of a program: its shortest counterexample, or else an example. None if it cannot be set up."""
    try:
        made = pair_run(system, row.program, mutant_id).story if _wrong(row) else None
        return made or example_story(system, row.program, mutant_id)
    except Exception:  # a reference that is wrong may raise anything while the state is set up
        return None


def _wrong(row: ProgramRow) -> bool:
    return row.verdict is Verdict.VIOLATED


# ---- all of them


def view(run: MatrixRun, command: str) -> MatrixView:
    """The matrix of a system as its page shows it, without interleavings. `command` makes it again."""
    from seriatim_models.matrix.text import excused, summary

    matrix = run.matrix
    return MatrixView(
        name=matrix.system,
        summary=summary(matrix).removeprefix(f"{matrix.system}: "),
        verdict=matrix.verdict,
        command=command,
        cells=[_cell(run, totals) for totals in matrix.cells],
        calls=matrix.calls,
        excused=excused(matrix),
        wrong_calls=[str(p) for p in matrix.edge_problems],
    )


def _cell(run: MatrixRun, totals: CellTotals) -> CellView:
    system = run.matrix.system
    lines = [_line(run, row) for row in run.programs[totals.calls]]
    return CellView(
        id=address(system, *totals.calls),
        calls=totals.calls,
        verdict=totals.verdict,
        states=totals.states,
        programs=totals.programs,
        executions=totals.executions,
        wrong=len(totals.problems),
        capped=totals.capped,
        missing=totals.missing,
        shortest=f"{lines[0].state}; {lines[0].calls}",
        lines=lines,
    )


def _line(run: MatrixRun, row: ProgramRow) -> ProgramLine:
    program, result = row.program, row.result
    before = ", ".join(map(str, program.path)) or "the beginning"
    serving = " (serve)" if program.mode == "serve" else ""
    digest = blake2b(program.key.encode(), digest_size=6).hexdigest()
    return ProgramLine(
        id=address(run.matrix.system, digest),
        state=f"{program.universe}: {before}",
        calls=" | ".join(map(str, program.calls)) + serving,
        verdict=row.verdict,
        executions=0 if result is None else result.executions,
        note=_note(row, run.lost.get(program.key)),
        command=shlex.join(pair_command(run.matrix.system, program.key, run.mutant)),
    )


def _note(row: ProgramRow, lost: str | None) -> str:
    if row.result is None:
        return f"lost ({lost})" if lost else "not run"
    if row.result.problem:
        return row.result.problem
    if not row.result.exhausted:
        return "capped: not every schedule was seen"
    return "; ".join(f"let pass: {why}" for why in row.result.excused)


class _Place(NamedTuple):
    """Where a program stands among cells."""

    cell: int
    line: int
    row: ProgramRow


def _to_draw(run: MatrixRun) -> Iterator[_Place]:
    """The programs of which an interleaving is produced: of each cell the shortest, or the wrong ones."""
    for c, totals in enumerate(run.matrix.cells):
        rows = run.programs[totals.calls]
        for n, row in enumerate(rows[:DRAWN]):
            if row.result is not None and (n == 0 or _wrong(row)):
                yield _Place(c, n, row)


def drawn(run: MatrixRun, command: str, stopped: Callable[[], bool] = lambda: False) -> MatrixView:
    """The matrix as its page shows it, with an interleaving for some programs, until `stopped`."""
    shown = view(run, command)
    places = list(_to_draw(run))
    lines = [list(cell.lines) for cell in shown.cells]
    with ProgressDisplay(len(places), "interleavings").running() as display:
        for done, (c, n, row) in enumerate(places, 1):
            if stopped():
                break
            made = produced_story(shown.name, row, run.mutant)
            line = lines[c][n]
            if made is not None:
                made = msgspec.structs.replace(made, id=f"steps-{line.id}")
                lines[c][n] = msgspec.structs.replace(line, story=made)
            display.completed(done, shown.name, row.program.key)
    cells = [
        msgspec.structs.replace(c, lines=its) for c, its in zip(shown.cells, lines, strict=True)
    ]
    return msgspec.structs.replace(shown, cells=cells)


def is_folder(target: str) -> bool:
    """Whether pages go to a folder of that name, and not to one file."""
    path = Path(target)
    return target != "-" and (path.is_dir() or not (path.suffix or path.is_file()))


def write_pages(target: str, systems: Sequence[MatrixView], command: str, back: str = "") -> None:
    """Write one page, or a folder of pages if `target` names one, with a link `back`. Raises `UsageError`."""
    if not is_folder(target):
        put(target, one_page(systems, command).encode())
        return
    folder = Path(target)
    for system in systems:
        for cell in system.cells:
            for line in cell.lines:
                if line.story is not None:
                    made = page(line.story, f"{line.command} --html FILE")
                    put_within(folder, f"steps/{line.id}.html", made.encode())
    for path, text in pages(systems, command, back):  # the index refers to what is there
        put_within(folder, path, text.encode())


# ---- in a report

DEPTH_KEPT = 1
"""What a report shows of a system if a journal has it."""
HEAVY = ("handover", "client")
"""Systems whose depth 0 is not a matter of seconds: a report has them from journals only."""


def overview(stop: StopRequest) -> tuple[list[MatrixRun], str]:
    """The matrix of the systems for a report, and which part of it this is, in a sentence.

    It is what journals have of depth `DEPTH_KEPT`; without these a slice, which takes seconds in this process.
    """
    from seriatim_models.cli.matrix_run import Run, journal_path
    from seriatim_models.matrix.systems import SYSTEMS

    runs: list[MatrixRun] = []
    for name in SYSTEMS:
        deep, flat = (Run(name, depth, 2, 1, None, (), stop) for depth in (DEPTH_KEPT, 0))
        found = deep.kept(journal_path(name, DEPTH_KEPT, 2))
        if found is None and name not in HEAVY:
            found = flat.matrix(journal_path(name, 0, 2), fresh=False)
        runs += [found] if found is not None else []
    return runs, _extent({run.matrix.system: run.matrix.depth for run in runs}, list(SYSTEMS))


def _extent(depths: Mapping[str, int], systems: Sequence[str]) -> str:
    """Which part of the matrix it is, if these systems are shown at these depths."""
    make = f"“make matrix DEPTH={DEPTH_KEPT}”"
    kept, flat, left = (
        ", ".join(name for name in systems if depths.get(name, -1) == depth)
        for depth in (DEPTH_KEPT, 0, -1)
    )
    parts = []
    if kept:
        parts.append(f"Depth {DEPTH_KEPT}, from the journals that {make} left: {kept}.")
    if flat:
        parts.append(
            f"A slice, depth 0, which is only the states that the universes begin with: {flat}."
        )
    if left:
        parts.append(f"Not here, because it takes minutes: {left}.")
    if flat or left:
        parts.append(f"{make} runs more of it, which this report shows from then on.")
    return " ".join(parts)


def section(runs: Sequence[MatrixRun], extent: str, out: Path, folder: str) -> MatrixSection:
    """Write the matrix below a report's folder, and return it as a section of that report."""
    depth = max(run.matrix.depth for run in runs)
    command = f"seriatim matrix --depth {depth}"
    shown = [drawn(run, command) for run in runs]
    write_pages(str(out / folder), shown, f"{command} --html {folder}", "../matrix.html")
    return MatrixSection(shown, extent, f"{folder}/")
