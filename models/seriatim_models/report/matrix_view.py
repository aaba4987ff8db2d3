"""The matrix as pages: call against call, the programs of each cell, and interleavings of some to step through.

Either one page that holds all of it, or a folder: `index.html` with the tables, a page for each cell in `cells`, and
a page for each interleaving in `steps`. Everything that comes from a run is escaped; the pages work without a script.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from seriatim_models.properties.base import Verdict
from seriatim_models.report.model import worst
from seriatim_models.report.story import Story
from seriatim_models.report.templating import render

PROGRAMS_MAX = 200
"""So many programs of a cell stand on a page that holds all cells; the cell's own page has all."""


class ProgramLine(msgspec.Struct, frozen=True, kw_only=True):
    """A program of a cell."""

    id: str
    """Names it among all programs; a part of file names and addresses."""
    state: str
    """The calls that lead to its state, behind the universe."""
    calls: str
    """Those that are made at once."""
    verdict: Verdict
    executions: int
    note: str
    """What was wrong, or why it is inconclusive, or which differences were let pass."""
    command: str
    """Runs it again."""
    story: Story | None = None
    """An interleaving of it, if one was produced."""


class CellView(msgspec.Struct, frozen=True, kw_only=True):
    """A cell of the table."""

    id: str
    calls: tuple[str, ...]
    verdict: Verdict
    states: int
    programs: int
    executions: int
    wrong: int
    """Programs that are."""
    capped: int
    """Programs that a budget ended."""
    missing: int
    """Programs that were not run."""
    shortest: str
    """The shortest program, of those that are wrong if any is: state and calls."""
    lines: Sequence[ProgramLine]

    @property
    def title(self) -> str:
        """The calls, as they stand beside each other."""
        return " | ".join(self.calls)

    @property
    def mark(self) -> str:
        """How many programs it has; behind ``!`` how many are wrong, behind ``?`` how many were not seen to the end."""
        if self.verdict is Verdict.VIOLATED:
            return f"!{self.wrong:,}"
        open_ones = self.capped + self.missing
        return f"?{open_ones:,}" if self.verdict is Verdict.INCONCLUSIVE else f"{self.programs:,}"

    @property
    def note(self) -> str:
        """How many programs are not proved, in words; empty if none."""
        numbers = ("wrong", self.wrong), ("capped", self.capped), ("not run", self.missing)
        return ", ".join(f"{number:,} {what}" for what, number in numbers if number)

    @property
    def summary(self) -> str:
        """Its numbers in one sentence."""
        numbers = (
            f"{self.states:,} states, {self.programs:,} programs, {self.executions:,} executions"
        )
        return f"{numbers}; {self.note}" if self.note else numbers


class MatrixView(msgspec.Struct, frozen=True, kw_only=True):
    """The matrix of one system."""

    name: str
    summary: str
    verdict: Verdict
    command: str
    cells: Sequence[CellView]
    calls: Sequence[str]
    """Names of the calls, in the order of rows and columns."""
    excused: Mapping[str, int]
    """Reason by which the outcome oracle let differences pass -> programs."""
    wrong_calls: Sequence[str]
    """Calls that are wrong by themselves, with the states in which they are."""

    @property
    def square(self) -> list[tuple[str, list[CellView | None]]]:
        """The lower half of call against call, by rows; empty unless every cell is of two calls."""
        by_calls = {c.calls: c for c in self.cells}
        if any(len(calls) != 2 for calls in by_calls):
            return []
        names = [n for n in self.calls if any(n in calls for calls in by_calls)]
        return [
            (name, [by_calls.get(tuple(sorted((name, other)))) for other in names[:number]])
            for number, name in enumerate(names, 1)
        ]


class MatrixSection(NamedTuple):
    """The matrix as a section of a report, and where its pages are."""

    systems: Sequence[MatrixView]
    extent: str
    """Which depth this is, and whether it is a part of what there is, in a sentence."""
    folder: str
    """Where the pages of the cells are, relative to the report."""


def address(*words: str) -> str:
    """Return words as a part of a file name, and of an address within a page."""
    return re.sub(r"[^\w.-]+", "-", ".".join(words))


def one_page(systems: Sequence[MatrixView], command: str) -> str:
    """Return a page that holds everything. `command` makes it again."""
    return render(
        "matrix.html.j2",
        systems=systems,
        verdict_of_all=worst(s.verdict for s in systems),
        command=command,
        folder=None,
        back="",
        most=PROGRAMS_MAX,
        stories=any(p.story for s in systems for c in s.cells for p in c.lines),
    )


def pages(systems: Sequence[MatrixView], command: str, back: str = "") -> Iterator[tuple[str, str]]:
    """Yield the pages of a folder, by their paths in it; those with an interleaving are `stepper.page`.

    `back` is a link to the report that the folder belongs to.
    """
    yield (
        "index.html",
        render(
            "matrix.html.j2",
            systems=systems,
            verdict_of_all=worst(s.verdict for s in systems),
            command=command,
            folder="",
            back=back,
            most=0,
            stories=False,
        ),
    )
    for system in systems:
        for cell in system.cells:
            yield f"cells/{cell.id}.html", render("matrix_cell.html.j2", system=system, cell=cell)
