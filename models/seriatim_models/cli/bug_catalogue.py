"""`seriatim museum`: bugs that a broker really had, each made again, convicted and repaired, as pages."""

from __future__ import annotations

from pathlib import Path

import rich_click as click
from rich.progress import track

from seriatim_models.cli.options import HELP, lines
from seriatim_models.cli.report_builder import mutant_run, program_run
from seriatim_models.report.model import MutantRun


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
    from seriatim_models.programs.bug_catalogue import EXHIBITS, NOT_SHOWN
    from seriatim_models.properties import PROPERTIES
    from seriatim_models.report.bug_catalogue import index
    from seriatim_models.report.html import mutant_page

    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    shown = [(e, convicted(e.mutant)) for e in track(EXHIBITS, "exhibits", transient=True)]
    for exhibit, run in shown:
        page = mutant_page(run, PROPERTIES[run.expected].sentence, "index.html", exhibit)
        (folder / f"{run.mutant}.html").write_text(page, encoding="utf-8")
    (folder / "index.html").write_text(index(shown, NOT_SHOWN), encoding="utf-8")
    click.echo(f"{len(shown)} exhibits: {folder / 'index.html'}")


def convicted(id: str) -> MutantRun:
    """The counterexample of an exhibit, with all that its page needs."""
    from seriatim_models.programs import MUTANTS, PROGRAMS, check_program

    mutant = MUTANTS[id]
    result = check_program(PROGRAMS[mutant.program], mutant)
    if result.explored.counterexample is None:
        raise click.ClickException(f"{id} survived: {result.explored.why}")
    return mutant_run(mutant, program_run(result, "dpor", []))
