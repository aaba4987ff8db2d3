"""The table of spec/MATRIX.md: what the matrix has proved of each system, counted by a run of it.

`python -m seriatim_workshop.matrix_table spec/MATRIX.md` runs every system's matrix at its depth (`DEPTHS`), or only
what its journals (those of `make matrix`) do not have; with `--check` nothing is written.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence

from seriatim_models.cli.matrix_run import Run, journal_path
from seriatim_models.cli.stop_request import StopRequest
from seriatim_models.matrix.systems import SYSTEMS
from seriatim_models.matrix.totals import Matrix
from seriatim_workshop import page_tables

DEPTHS = {name: 0 if name == "handover" else 1 for name in SYSTEMS}
"""At which depth each system is counted. The hand-over has 2,677 programs at depth 1, some of very many schedules."""
BEGIN = "<!-- made: by python -m seriatim_workshop.matrix_table"
END = "<!-- made: end -->"
COLUMNS = ("system", "depth", "cells proved", "states", "single calls", "programs", "executions")


def measured() -> list[Matrix]:
    """Return the matrix of every system at its depth. Raises `KeyboardInterrupt` if it was asked to stop."""
    found = []
    with StopRequest() as stop:
        for name, depth in DEPTHS.items():
            run = Run(name, depth, 2, os.cpu_count() or 1, None, (), stop)
            found.append(run.matrix(journal_path(name, depth, 2), fresh=False).matrix)
            if stop.asked:
                raise KeyboardInterrupt
    return found


def numbers(matrix: Matrix) -> tuple[int, ...]:
    """Return the numbers of a row: depth, cells proved, cells, states, single calls, programs, executions."""
    m = matrix
    return (m.depth, m.proved, len(m.cells), m.states, m.edges, m.programs, m.executions)


def table(matrices: Sequence[Matrix]) -> str:
    """Return one row for each system."""
    rows = [(m.system, *_cells(numbers(m))) for m in matrices]
    return "\n".join([_line(COLUMNS), _line("---" for _ in COLUMNS), *map(_line, rows)])


def _cells(row: Sequence[int]) -> list[str]:
    depth, proved, cells, *others = row
    return [str(depth), f"{proved} of {cells}", *(f"{n:,}" for n in others)]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def rows_of(text: str) -> dict[str, tuple[int, ...]]:
    """Return the rows of a page's table, as `numbers` has them, by system."""
    made = text.partition(BEGIN)[2].partition(END)[0]
    rows = {}
    for line in made.splitlines()[1:]:
        name, *found = [cell.strip() for cell in line.strip("| ").split("|")]
        if name in SYSTEMS:
            rows[name] = tuple(int(n) for n in re.findall(r"\d+", " ".join(found).replace(",", "")))
    return rows


def sentence(text: str) -> str:
    """Return what the front page says of a page's table."""
    rows = rows_of(text)
    parts = []
    for depth in sorted({row[0] for row in rows.values()}, reverse=True):
        names = [name for name, row in rows.items() if row[0] == depth]
        proved, cells = (sum(rows[name][n] for name in names) for n in (1, 2))
        command = f"seriatim matrix {' '.join(names)} --depth {depth}"
        parts.append(f"{proved} of {cells} cells proved at depth {depth} (`{command}`)")
    states, _, programs, executions = (sum(row[n] for row in rows.values()) for n in range(3, 7))
    sums = f"{states:,} states, {programs:,} programs, {executions:,} executions"
    return f"{', '.join(parts)}: {sums}."


def renewed(text: str) -> str:
    """Return the page's text with its table measured anew."""
    return page_tables.replaced(text, BEGIN, END, table(measured()))


if __name__ == "__main__":
    sys.exit(
        page_tables.main(
            "python -m seriatim_workshop.matrix_table",
            "Write the table of spec/MATRIX.md from a run of the matrix.",
            renewed,
            sys.argv[1:],
        )
    )
