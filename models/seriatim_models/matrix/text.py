"""The matrix in a terminal: one table of verdicts, and what is wrong below it."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from seriatim_models.matrix.systems import SYSTEMS
from seriatim_models.matrix.totals import CellTotals, Matrix
from seriatim_models.properties import Verdict

SHOWN = 5
"""How many problems of a system are shown; the JSON document has all."""


def show(console: Console, matrix: Matrix) -> None:
    """Print the table of a system, its numbers, and the shortest of what is wrong."""
    pairs = all(len(c.calls) == 2 for c in matrix.cells)
    console.print(_square(matrix) if pairs else _listed(matrix))
    console.print(summary(matrix), markup=False)
    for why, number in excused(matrix).items():
        console.print(f"  let pass in {number} programs: {why}", markup=False)
    if beside := only_beside_threads(matrix):
        console.print(f"  {beside}", markup=False)
    wrong = [*matrix.edge_problems, *(p for c in matrix.cells for p in c.problems[:1])]
    for problem in wrong[:SHOWN]:
        console.print(f"  {problem}", style="red", markup=False)
    if len(wrong) > SHOWN:
        console.print(f"  and {len(wrong) - SHOWN} more: --json FILE has all", markup=False)


def summary(matrix: Matrix) -> str:
    """Return the numbers of a matrix in one sentence."""
    rest = sum(c.capped for c in matrix.cells), sum(c.missing for c in matrix.cells)
    not_seen = "".join(
        f"; {n:,} programs {what}" for n, what in zip(rest, ("capped", "not run"), strict=True) if n
    )
    if matrix.cut is not None:
        not_seen += f"; the budget ended while the states at depth {matrix.cut} were looked at: it needs a larger one"
    return (
        f"{matrix.system}: {matrix.proved} of {len(matrix.cells)} cells proved at depth {matrix.depth} "
        f"({matrix.verdict}): {matrix.states:,} states, {matrix.edges:,} single calls, "
        f"{matrix.programs:,} programs, {matrix.executions:,} executions{not_seen}; {matrix.seconds:.0f} s"
    )


def only_beside_threads(matrix: Matrix) -> str:
    """Return from which states pairs are run in universes in which calls wait for the system's own threads."""
    depths: dict[int, list[str]] = {}
    for universe in SYSTEMS[matrix.system].universes:
        if universe.serve and not universe.settle:
            depth = max(matrix.depth - universe.serve_less, 0)
            depths.setdefault(depth, []).append(universe.name)
    return "".join(
        f"calls wait for the system's own threads, so pairs race beside these, from states of at most {depth} calls: "
        f"{', '.join(names)}; "
        for depth, names in sorted(depths.items())
        if depth < matrix.depth
    ).removesuffix("; ")


def excused(matrix: Matrix) -> dict[str, int]:
    """Return the reasons by which the outcome oracle let differences pass, and in how many programs."""
    found: dict[str, int] = {}
    for cell in matrix.cells:
        for why, number in cell.excused.items():
            found[why] = found.get(why, 0) + number
    return found


def _mark(cell: CellTotals | None) -> Text:
    if cell is None:
        return Text("·", style="dim")
    if cell.verdict is Verdict.OK:
        return Text(f"{cell.programs:,}", style="green")
    if cell.verdict is Verdict.VIOLATED:
        return Text(f"!{len(cell.problems)}", style="bold red")
    return Text(f"?{cell.capped + cell.missing}", style="yellow")


def _square(matrix: Matrix) -> Table:
    """Return call against call: programs of a cell that is proved, !wrong ones, ?those not seen to the end."""
    cells = {c.calls: c for c in matrix.cells}
    names = [n for n in matrix.calls if any(n in calls for calls in cells)]
    table = Table(
        title=f"{matrix.system}, depth {matrix.depth}: programs proved, "
        "[red]!wrong[/], [yellow]?not seen to the end[/]",
        title_justify="left",
    )
    table.add_column("")
    for number, _ in enumerate(names, 1):
        table.add_column(str(number), justify="right")
    for number, name in enumerate(names, 1):
        row = [cells.get(tuple(sorted((name, other)))) for other in names[:number]]
        table.add_row(f"{number} {name}", *map(_mark, row))
    return table


def _listed(matrix: Matrix) -> Table:
    """Return one line for each cell."""
    table = Table(title=f"{matrix.system}, depth {matrix.depth}", title_justify="left")
    for column in ("calls", "states", "programs", "executions", "verdict"):
        table.add_column(column, justify="left" if column == "calls" else "right")
    for cell in matrix.cells:
        numbers = (f"{n:,}" for n in (cell.states, cell.programs, cell.executions))
        table.add_row(" | ".join(cell.calls), *numbers, _mark(cell))
    return table
