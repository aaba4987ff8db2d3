"""`seriatim vectors`: test vectors that the reference fills, and an implementation compared with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from rich.text import Text

from seriatim_models.cli.console import Outputs, put_within
from seriatim_models.cli.implementations import Implementation, implementation_options
from seriatim_models.cli.options import HELP, F, json_output, lines
from seriatim_models.cli.usage_errors import UsageError
from seriatim_models.conformance.protocol import Fault
from seriatim_models.properties.base import Verdict
from seriatim_models.report.terminal import quantity, table, titled, verdict_text
from seriatim_models.report.visible import in_a_line

if TYPE_CHECKING:
    from seriatim_models.conformance.vectors import VectorResult

FOLDER = "spec/vectors"


@click.group(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim vectors consume --exec "node queue.js"        compare with all it can
        seriatim vectors consume --python mine:Broker --by reference
        seriatim vectors fill                                  write spec/vectors anew
        """
    )
)
@click.rich_config(help_config=HELP)
def vectors() -> None:
    """Test vectors: scripts with the outcomes that are right, for implementations in any language."""


def target(command: F) -> F:
    """The options that name an implementation, and the folder of the vectors."""
    return click.option(
        "--folder", default=FOLDER, show_default=True, metavar="DIR", help="Where the vectors are."
    )(implementation_options(command))


@vectors.command()
@target
@click.option(
    "--by", default="", metavar="NAME", help="Accept only what this one does, such as reference."
)
@json_output("the result of each")
@click.rich_config(help_config=HELP)
def consume(
    folder: str,
    command: str | None,
    factory: str | None,
    url: str | None,
    by: str,
    json: str | None,
) -> int:
    """Compare an implementation with the vectors that it can run."""
    from seriatim_models.conformance import vectors as known

    read = (folder, factory, *map(str, Path(folder).glob("*.json")))
    out = Outputs(json, reads=read)
    named = Implementation(command, factory, url)
    try:
        vectors_read = known.read_vectors(Path(folder))
        system = named.open()
    except known.VectorError as error:
        raise UsageError(str(error)) from error
    except Fault as fault:
        raise UsageError(f"{named}: {fault}") from fault
    try:
        results = list(known.consume(system, vectors_read, by))
    finally:
        system.end()
    shown = table("vector", "verdict", "as", "what it asks")
    for each in results:
        verdict = verdict_of(each)
        shown.add_row(each.id, verdict_text(verdict), ", ".join(each.agrees), each.title)
    out.console.print(
        titled(f"{in_a_line(system.name)} against {quantity(len(results), 'vector')}", shown)
    )
    for each in results:
        if each.why:
            out.console.print(Text(in_a_line(f"{each.id}: {each.why}")))
    if json is not None:
        out.put(json, known.encode({"schema": "seriatim-vectors-judged/1", "results": results}))
    verdicts = {verdict_of(each) for each in results}
    if Verdict.VIOLATED in verdicts:
        return 1
    return 0 if Verdict.OK in verdicts else 3


def verdict_of(result: VectorResult) -> Verdict:
    """Inconclusive if the vector could not be run, violated if it names a difference, else ok."""
    if result.skipped:
        return Verdict.INCONCLUSIVE
    return Verdict.VIOLATED if result.why else Verdict.OK


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
                raise UsageError(
                    f"--as {name!r}: letters, digits and hyphens only, for it names a file"
                )
            system = Implementation(command, factory, url).open()
            try:
                seen = known.observe(system)
            finally:
                system.end()
            put_within(into, f"observed/{name}.json", known.encode(seen))
        made = list(known.fill(into / "observed"))
    except (known.VectorError, Fault) as error:
        raise UsageError(str(error)) from error
    for vector in made:
        put_within(into, f"{vector.id}.json", known.encode(vector))
    Outputs().console.print(f"{quantity(len(made), 'vector')} in {into}", markup=False)
    return 0
