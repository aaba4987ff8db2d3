"""The command `seriatim`.

Each subcommand is a module of this package; what they gather goes into one `Report` (see `seriatim_models.report`),
whose verdict decides the exit code:
0 all well, 1 a property is violated, 2 bad usage or unreadable input, 3 inconclusive.
What is slow to import is imported by the command that needs it.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

import rich_click as click

from seriatim_models.cli.audit import audit
from seriatim_models.cli.bug_catalogue import museum
from seriatim_models.cli.campaign import campaign
from seriatim_models.cli.check import check
from seriatim_models.cli.conform import conform
from seriatim_models.cli.demo import demo
from seriatim_models.cli.generate import generate
from seriatim_models.cli.help_page import manual
from seriatim_models.cli.learn import learn
from seriatim_models.cli.listing import listing
from seriatim_models.cli.options import HELP, lines
from seriatim_models.cli.record import lint, record
from seriatim_models.cli.show import show
from seriatim_models.cli.stream import stream
from seriatim_models.cli.tour import tour
from seriatim_models.cli.vectors import vectors

FAULT = 70
INTERRUPTED = 130


@click.group(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim tour                              all of it once, with a report
        seriatim check                             every program, every schedule
        seriatim check --mutants                   is every known mistake noticed?
        seriatim audit recordings --engine spark   judge what a real broker did
        seriatim conform --exec ./queue            is this queue right?
        seriatim list properties                   what is claimed at all
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
    manual,
    museum,
    vectors,
    record,
    lint,
):
    app.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; every mistake of the caller becomes one sentence and exit code 2."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """The same, giving the exit code back."""
    try:
        code = app.main(args=arguments, prog_name="seriatim", standalone_mode=False)
    except click.ClickException as mistake:
        click.echo(f"seriatim: {mistake.format_message()}", err=True)
        return mistake.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("seriatim: interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        # Who read our output has had enough; keep the interpreter from complaining when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception:
        # Not exit code 1: that would say that a property is violated.
        traceback.print_exc()
        click.echo("seriatim: this is a fault of seriatim itself, not of what it checked", err=True)
        return FAULT
    return code if isinstance(code, int) else 0
