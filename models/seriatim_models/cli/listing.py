"""`seriatim list`: the names of programs, mutants, properties and profiles."""

from __future__ import annotations

from collections.abc import Iterator

import rich_click as click
from rich.markup import escape

from seriatim_models.cli.console import Outputs, put
from seriatim_models.cli.options import HELP, json_output, lines
from seriatim_models.cli.report_builder import property_catalogue
from seriatim_models.cli.usage_errors import unknown
from seriatim_models.report.document import indented
from seriatim_models.report.terminal import table, titled

Row = dict[str, str]


@click.command(
    "list",
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim list programs
        seriatim list properties --json -
        """
    ),
)
@click.argument("what", metavar="programs|mutants|properties|profiles")
@json_output("the list as JSON")
@click.rich_config(help_config=HELP)
def listing(what: str, json: str | None) -> int:
    """List the programs, mutants, properties or profiles there are."""
    if what not in LISTS:
        raise unknown("list of", what, LISTS, "seriatim list --help")
    rows = list(LISTS[what]())
    out = Outputs(json)
    if json is not None:
        put(json, indented(rows))
        return 0
    if rows:
        shown = table(*rows[0])
        for row in rows:
            shown.add_row(*map(escape, row.values()))
        out.console.print(titled(f"{len(rows)} {what}", shown))
    return 0


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


LISTS = {
    "programs": _programs,
    "mutants": _mutants,
    "properties": _properties,
    "profiles": _profiles,
}
