"""`seriatim list`: the names of programs, mutants, properties and profiles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import fill

import rich_click as click
from rich.text import Text

from seriatim_models.cli.console import Outputs
from seriatim_models.cli.options import HELP, json_output, lines, verbose_option
from seriatim_models.cli.report_builder import property_catalogue
from seriatim_models.cli.usage_errors import UsageError, unknown
from seriatim_models.report.document import indented
from seriatim_models.report.terminal import table, titled

Row = dict[str, str]
FEW = 24
"""Rows that are shown with their sentence; of more only the names, which fit a screen."""


@click.command(
    "list",
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim list programs                the names
        seriatim list mutants IM-1            those that IM-1 kills
        seriatim list properties wake-up -v   with every column
        seriatim list properties --json -
        """
    ),
)
@click.argument("what", metavar="programs|mutants|properties|profiles")
@click.argument("words", metavar="[WORD]...", nargs=-1)
@verbose_option("Every column of every row.")
@json_output("the list as JSON")
@click.rich_config(help_config=HELP)
def listing(what: str, words: tuple[str, ...], verbose: bool, json: str | None) -> int:
    """List the programs, mutants, properties or profiles there are: of those in which every WORD stands.

    A few are shown with a line each, many by name.
    """
    if what not in LISTS:
        raise unknown("list of", what, LISTS, "seriatim list --help")
    rows = [row for row in LISTS[what]() if _has(row, words)]
    if not rows:
        raise UsageError(f"none of the {what} has {' and '.join(map(repr, words))} in it")
    out = Outputs(json)
    if json is not None:
        out.put(json, indented(rows))
        return 0
    if verbose:
        shown = table(*rows[0])
        for row in rows:
            shown.add_row(*row.values())
        out.console.print(titled(f"{len(rows)} {what}", shown))
        return 0
    width = out.console.width
    if len(rows) > FEW:
        names = (row[next(iter(row))] for row in rows)
        text = fill(" ".join(names), width, break_on_hyphens=False, break_long_words=False)
        hint = f"{len(rows)} {what}; `seriatim list {what} WORD` shows those with a word, -v all"
        named = text.splitlines()
        room = out.console.height - 5
        if out.console.is_terminal and len(named) > room:
            text = "\n".join([*named[:room], f"... {len(named) - room} lines of names more"])
    else:
        text = "\n".join(_line(row, SENTENCE[what], width) for row in rows)
        hint = f"{len(rows)} of the {what}; -v shows every column"
    out.console.print(Text(f"{text}\n\n{fill(hint, width)}"), soft_wrap=True)
    return 0


def _has(row: Row, words: tuple[str, ...]) -> bool:
    """Whether each word stands in some column, in upper or lower case; an id only whole (IM-1 is not in IM-10)."""
    text = " ".join(row.values())
    return all(
        re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text, re.IGNORECASE)
        if re.search(r"\d$", word)
        else word.lower() in text.lower()
        for word in words
    )


def _line(row: Row, column: str, width: int) -> str:
    """A row's name and, below it, its sentence, in lines of at most `width`."""
    name = row[next(iter(row))]
    return f"{name}\n{fill(row[column], width, initial_indent='    ', subsequent_indent='    ')}"


def _programs() -> Iterator[Row]:
    from seriatim_models.programs import PROGRAMS

    for p in PROGRAMS.values():
        yield {
            "program": p.id,
            "what meets what": p.title,
            "properties": ", ".join(p.properties),
            "bounds, and what lies beyond": p.beyond,
        }


def _mutants() -> Iterator[Row]:
    from seriatim_models.programs import MUTANTS

    for m in MUTANTS.values():
        yield {
            "mutant": m.id,
            "killed by": m.killed_by,
            "program": m.program,
            "mistake": m.title,
            "origin": m.origin,
        }


def _properties() -> Iterator[Row]:
    for p in property_catalogue().values():
        yield {"id": p.id, "kind": p.kind, "sentence": p.sentence, "source": p.source}


def _profiles() -> Iterator[Row]:
    from seriatim_models.conformance.profiles import PROFILES

    for p in PROFILES.values():
        yield {
            "profile": p.id,
            "what is promised": p.title,
            "properties": ", ".join(judge.id for judge in p.properties),
        }


SENTENCE = {
    "programs": "what meets what",
    "mutants": "mistake",
    "properties": "sentence",
    "profiles": "what is promised",
}
"""By list: the column that says what a row is."""

LISTS = {
    "programs": _programs,
    "mutants": _mutants,
    "properties": _properties,
    "profiles": _profiles,
}
