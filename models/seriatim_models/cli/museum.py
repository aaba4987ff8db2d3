"""`seriatim museum`: bugs that a broker really had, each made again, convicted and repaired, as pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from rich.progress import track

from seriatim_models.cli.gather import told_of
from seriatim_models.cli.options import HELP, lines
from seriatim_models.report.stepper import story

if TYPE_CHECKING:
    from seriatim_models.programs.museum import Exhibit
    from seriatim_models.report.museum import Shown


@click.command(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim museum                        write build/museum/index.html and a page for each bug
        seriatim museum --out /tmp/museum      the same elsewhere
        """
    ),
)
@click.option(
    "--out", default="build/museum", show_default=True, metavar="DIR", help="Where the pages go."
)
@click.rich_config(help_config=HELP)
def museum(out: str) -> None:
    """Write the museum: for each bug what happened, the shortest interleaving to step through, and the repair."""
    from seriatim_models.programs.museum import EXHIBITS, NOT_SHOWN
    from seriatim_models.report.museum import pages

    shown = [_shown(e) for e in track(EXHIBITS, "exhibits", transient=True)]
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages(shown, NOT_SHOWN).items():
        (folder / name).write_text(text, encoding="utf-8")
    click.echo(f"{len(shown)} exhibits: {folder / 'index.html'}")


def _shown(exhibit: Exhibit) -> Shown:
    from seriatim_models.programs import MUTANTS, PROGRAMS, check_program
    from seriatim_models.programs.variants import diff
    from seriatim_models.properties import PROPERTIES
    from seriatim_models.report.museum import Shown

    mutant = MUTANTS[exhibit.mutant]
    program = PROGRAMS[mutant.program]
    result = check_program(program, mutant)
    case = result.explored.counterexample
    if case is None:
        raise click.ClickException(f"{mutant.id} survived: {result.explored.why}")
    return Shown(
        bug=exhibit.bug,
        title=mutant.title,
        alike=exhibit.alike,
        happened=exhibit.happened,
        repair=exhibit.repair,
        property=mutant.killed_by,
        sentence=PROPERTIES[mutant.killed_by].sentence,
        program=program.title,
        steps=len(case.events),
        story=story(case, result.findings, told_of()),
        diff=diff(mutant),
        command=f"seriatim check --mutant {mutant.id}",
        file=f"{mutant.id}.html",
    )
