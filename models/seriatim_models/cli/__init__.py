"""The command `seriatim`.

Each subcommand is a module of this package; its results go into one `Report` (see `seriatim_models.report`),
whose verdict decides the exit code:
0 ok, 1 a property is violated, 2 bad usage or unreadable input, 3 inconclusive.
What is slow to import is imported by the command that needs it.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from copy import copy

import rich_click as click

from seriatim_models.cli.audit import audit
from seriatim_models.cli.bug_catalogue import bugs
from seriatim_models.cli.campaign import campaign
from seriatim_models.cli.check import check
from seriatim_models.cli.conform import conform
from seriatim_models.cli.demo import demo
from seriatim_models.cli.explain import explain
from seriatim_models.cli.generate import generate
from seriatim_models.cli.help_page import help_command
from seriatim_models.cli.learn import learn
from seriatim_models.cli.listing import listing
from seriatim_models.cli.matrix import matrix
from seriatim_models.cli.options import HELP, lines
from seriatim_models.cli.record import lint, record
from seriatim_models.cli.running import checked_process, run_command
from seriatim_models.cli.show import show
from seriatim_models.cli.stream import stream
from seriatim_models.cli.tour import tour
from seriatim_models.cli.vectors import vectors
from seriatim_models.ending import WORDS


@click.group(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim tour                              all of it once, with a report
        seriatim check                             every program, every schedule
        seriatim check --mutants                   is every known bug detected?
        seriatim matrix pull                       every call beside every other
        seriatim audit recordings --engine spark   check what a real broker did
        seriatim conform --exec ./queue            is this queue right?
        seriatim list properties wake-up           the properties that say so
        seriatim learn                             lessons with exercises
        seriatim demo fair                         two published tables, simulated

        [bold]Exit codes[/]
        0  all well
        1  a property is violated, or a mutant survived
        2  bad usage or unreadable input
        3  inconclusive: nothing broke, but not everything was seen
        """
    ),
)
@click.version_option(package_name="seriatim", message="%(prog)s %(version)s")
@click.rich_config(help_config=HELP)
@click.pass_context
def app(context: click.Context) -> None:
    """Check the threads of a message queue: a reference, its properties, and every way to break them."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for command in (
    check,
    matrix,
    audit,
    conform,
    stream,
    campaign,
    generate,
    show,
    listing,
    learn,
    demo,
    tour,
    help_command,
    explain,
    bugs,
    vectors,
    record,
    lint,
):
    app.add_command(command)


hidden = copy(bugs)
hidden.hidden = True
app.add_command(hidden, "museum")  # what the command was called first


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    checked_process()
    code = run(arguments)
    if code in WORDS:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what it started is being ended
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return run_command(app, arguments)
