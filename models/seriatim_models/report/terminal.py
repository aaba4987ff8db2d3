"""What all text for a terminal is made of: verdicts in their colour, tables, prose that wraps under its beginning."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from seriatim_models.properties.base import Verdict

STYLES = {Verdict.OK: "green", Verdict.VIOLATED: "bold red", Verdict.INCONCLUSIVE: "yellow"}


def verdict_text(verdict: Verdict) -> Text:
    """A verdict in its colour."""
    return Text(verdict.value, style=STYLES[verdict])


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """An empty table in the style of all; the first column and numbers never wrap."""
    made = Table(box=box.SIMPLE_HEAD)
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
    return Padding(text, (0, 0, 0, by))
