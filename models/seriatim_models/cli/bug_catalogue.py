"""`seriatim bugs`: bugs that a broker really had, each reproduced, found by a property and repaired, as pages."""

from __future__ import annotations

from pathlib import Path

import rich_click as click
from rich.progress import track
from rich.text import Text

from seriatim_models.cli.console import Outputs, put_within
from seriatim_models.cli.counterexample_annotation import annotated_mutant
from seriatim_models.cli.options import HELP, lines
from seriatim_models.cli.report_builder import mutant_run, program_run
from seriatim_models.report.model import MutantRun


@click.command(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim bugs                      an index and a page for each bug
        seriatim bugs --out /tmp/bugs      the same elsewhere
        """
    ),
)
@click.option(
    "--out", default="build/bugs", show_default=True, metavar="DIR", help="Where the pages go."
)
@click.rich_config(help_config=HELP)
def bugs(out: str) -> None:
    """Write the bug catalogue: each bug with what happened, the shortest interleaving step by step, and the repair."""
    from seriatim_models.programs.bug_catalogue import BUG_CASES, NOT_SHOWN
    from seriatim_models.properties import PROPERTIES
    from seriatim_models.report.html import bug_catalogue_page, mutant_page

    folder = Path(out)
    console = Outputs(folder=out).console
    cases = [
        (case, counterexample_run(case.mutant)) for case in track(BUG_CASES, "bugs", transient=True)
    ]
    for case, run in cases:
        page = mutant_page(
            run, PROPERTIES[run.expected].sentence, "index.html", "Bug catalogue", case
        )
        put_within(folder, f"{run.mutant}.html", page.encode())
    put_within(folder, "index.html", bug_catalogue_page(cases, NOT_SHOWN).encode())
    console.print(Text(f"{len(cases)} bugs: {folder / 'index.html'}"), soft_wrap=True)


def counterexample_run(id: str) -> MutantRun:
    """The search that finds the bug of this mutant, with all that its page needs."""
    from seriatim_models.programs import MUTANTS, PROGRAMS, check_program

    mutant = MUTANTS[id]
    result = check_program(PROGRAMS[mutant.program], mutant)
    if result.explored.counterexample is None:
        raise click.ClickException(f"{id} survived: {result.explored.why}")
    return annotated_mutant(mutant_run(mutant, program_run(result, "dpor", [])))
