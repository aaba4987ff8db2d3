"""What all text for a terminal is made of: verdicts in their colour, tables, prose that wraps under its beginning."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from seriatim_models.properties.base import Verdict

STYLES = {Verdict.OK: "green", Verdict.VIOLATED: "bold red", Verdict.INCONCLUSIVE: "yellow"}


def quantity(n: int, thing: str) -> str:
    """So many of a thing, whose plural ends in s."""
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


COLUMNS_LEAST = 8


def verdict_text(verdict: Verdict) -> Text:
    """A verdict in its colour."""
    return Text(verdict.value, style=STYLES[verdict])


class _Columns(Table):
    """A table; where the terminal is too narrow for its cells each row is a paragraph, for no cell is cut.

    A cell that is a `str` is text, whatever brackets are in it.
    """

    # Any: as rich declares it
    def add_row(self, *cells: RenderableType | None, **style: Any) -> None:
        """Add a row of cells."""
        super().add_row(*(Text(c) if isinstance(c, str) else c for c in cells), **style)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        cells = [[_text(cell) for cell in column.cells] for column in self.columns]
        needed = len(self.columns) * 3 + 1  # lines and blanks between the cells
        for column, texts in zip(self.columns, cells, strict=True):
            sizes = [
                Measurement.get(console, options, text) for text in (*texts, _text(column.header))
            ]
            needed += max(m.maximum if column.no_wrap else m.minimum for m in sizes)
        if needed <= options.max_width:
            yield from super().__rich_console__(console, options)
            return
        for row in zip(*cells, strict=True):
            yield Text()
            for column, text in zip(self.columns, row, strict=True):
                if text:
                    yield Text.assemble((f"{column.header}: ", "dim"), text)


def _text(cell: RenderableType) -> Text:
    return Text.from_markup(cell) if isinstance(cell, str) else cell  # type: ignore[return-value]  # we give no others


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """An empty table in the style of all; the first column and numbers never wrap."""
    made = _Columns(box=box.SIMPLE_HEAD)
    for column in columns:
        made.add_column(
            column,
            justify="right" if column in right else "left",
            no_wrap=column in right or column == columns[0],
        )
    return made


def titled(title: str, made: Table) -> RenderableType:
    """A table under its title, which rich itself would fold to the width of the table."""
    return Group(Text(title, style="bold"), made)


def indented(text: Text | str, by: int = 2) -> RenderableType:
    """A paragraph that is folded to the width of the terminal, `by` columns further right."""
    return Padding(Text(text) if isinstance(text, str) else text, (0, 0, 0, by))


class ShellCommand:
    """A command to be pasted, after a label: a shell reads its lines as one, for all but the last end with a backslash.

    Where nobody has said how wide lines may be (a pipe without COLUMNS) it is one line.
    """

    def __init__(self, label: str, command: str) -> None:
        self._label = label
        self._command = command

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        if not console.is_terminal and "COLUMNS" not in os.environ:
            width = len(self._label) + len(self._command)
        for n, line in enumerate(shell_lines(self._command, width, len(self._label))):
            label = self._label if n == 0 else ""
            yield Text.assemble(label, (line, "bold"), no_wrap=True, overflow="ignore")


def shell_lines(command: str, width: int, taken: int = 0) -> Iterator[str]:
    """The command in lines of at most `width` columns, the first shorter by `taken`.

    It is cut between words and, where a word without quotes is too long, in the word; never into lines of less than
    `COLUMNS_LEAST`, however little room there is.
    """
    width = max(width, COLUMNS_LEAST)
    taken = min(taken, width - COLUMNS_LEAST)
    words = re.findall(r"(?:[^\s'\"]|'[^']*'|\"[^\"]*\")+", command)
    line, room = "", width - taken
    for n, word in enumerate(words):
        end = 0 if n == len(words) - 1 else 2  # for the backslash
        if line and len(line) + 1 + len(word) + end > room:
            yield f"{line} \\"
            line, room = " ", width
        line += f" {word}" if line else word
        while len(line) + end > room and "'" not in word and '"' not in word:
            yield line[: room - 1] + "\\"
            line, room = line[room - 1 :], width
    yield line
