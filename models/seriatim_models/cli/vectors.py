"""`seriatim vectors`: test vectors that the reference fills, and an implementation held to them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import rich_click as click
from rich.markup import escape
from rich.text import Text

from seriatim_models.cli.conform import open_system
from seriatim_models.cli.console import Outputs, put
from seriatim_models.cli.options import HELP, lines
from seriatim_models.cli.usage_errors import Mistake
from seriatim_models.conformance.protocol import Fault
from seriatim_models.properties.base import Verdict
from seriatim_models.report.text import table, titled, verdict_text

FOLDER = "spec/vectors"


@click.group(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim vectors consume --exec "node queue.js"        hold it to every vector that it can run
        seriatim vectors consume --python mine:Broker --by reference
        seriatim vectors fill                                  write spec/vectors anew
        """
    )
)
@click.rich_config(help_config=HELP)
def vectors() -> None:
    """Test vectors: scripts with the outcomes that are right, for implementations in any language."""


def target(command: click.decorators.FC) -> click.decorators.FC:
    """The options that name an implementation."""
    for name, key, metavar, what in (
        ("--amqp", "url", "URL", "An AMQP 0-9-1 broker."),
        ("--python", "factory", "MODULE:FACTORY", "What makes an object to test."),
        ("--exec", "command", "CMD", "A program that speaks seriatim-conform/1."),
    ):
        command = click.option(name, key, metavar=metavar, help=what)(command)
    return click.option(
        "--folder", default=FOLDER, show_default=True, metavar="DIR", help="Where the vectors are."
    )(command)


@vectors.command()
@target
@click.option(
    "--by", default="", metavar="NAME", help="Accept only what this one does, such as reference."
)
@click.option(
    "--json", "json", metavar="FILE", help="Write what came of each. [dim]-[/] for standard output."
)
@click.rich_config(help_config=HELP)
def consume(
    folder: str,
    command: str | None,
    factory: str | None,
    url: str | None,
    by: str,
    json: str | None,
) -> int:
    """Hold an implementation to the vectors that it can run."""
    from seriatim_models.conformance import vectors as known

    out = Outputs(json)
    try:
        found = known.read_vectors(Path(folder))
        system = open_system(command, factory, url)
    except (known.VectorError, Fault) as error:
        raise Mistake(str(error)) from error
    try:
        judged = list(known.consume(system, found, by))
    finally:
        system.end()
    shown = table("vector", "verdict", "as", "what it asks")
    for each in judged:
        verdict = verdict_of(each)
        shown.add_row(each.id, verdict_text(verdict), ", ".join(each.agrees), escape(each.title))
    out.console.print(titled(f"{system.name} against {len(judged)} vectors", shown))
    for each in judged:
        if each.why:
            out.console.print(Text(f"{each.id}: {each.why}"), soft_wrap=True)
    if json is not None:
        put(json, known.encode({"schema": "seriatim-vectors-judged/1", "results": judged}))
    verdicts = {verdict_of(each) for each in judged}
    if Verdict.VIOLATED in verdicts:
        return 1
    return 0 if Verdict.OK in verdicts else 3


def verdict_of(judged: msgspec.Struct) -> Verdict:
    """One that could not be run is neither right nor wrong."""
    if getattr(judged, "skipped", False):
        return Verdict.INCONCLUSIVE
    return Verdict.VIOLATED if getattr(judged, "why", "") else Verdict.OK


@vectors.command()
@target
@click.option(
    "--as",
    "name",
    metavar="NAME",
    help="Keep what this implementation does under that name, beside the reference.",
)
@click.rich_config(help_config=HELP)
def fill(
    folder: str, command: str | None, factory: str | None, url: str | None, name: str | None
) -> int:
    """Write the vectors anew: what the reference does, and what others were seen to do."""
    from seriatim_models.conformance import vectors as known

    into = Path(folder)
    try:
        if name is not None:
            if not name.replace("-", "").isalnum():
                raise Mistake(
                    f"--as {name!r}: letters, digits and hyphens only, for it names a file"
                )
            system = open_system(command, factory, url)
            try:
                seen = known.observe(system)
            finally:
                system.end()
            put(str(into / "observed" / f"{name}.json"), known.encode(seen))
        made = list(known.fill(into / "observed"))
    except (known.VectorError, Fault) as error:
        raise Mistake(str(error)) from error
    for vector in made:
        put(str(into / f"{vector.id}.json"), known.encode(vector))
    Outputs().console.print(f"{len(made)} vectors in {into}")
    return 0
