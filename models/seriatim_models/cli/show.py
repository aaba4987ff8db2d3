"""`seriatim show`: look at one interleaving, at saved verdicts, or at a recorded history."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import rich_click as click
from rich.markup import escape

from seriatim_models.cli.check import finish, replayed
from seriatim_models.cli.gather import new_report
from seriatim_models.cli.mistakes import Mistake
from seriatim_models.cli.options import HELP, lines, outputs
from seriatim_models.cli.recordings import show_history
from seriatim_models.cli.screen import Outputs, put
from seriatim_models.report.document import Saved, decode
from seriatim_models.report.stepper import page
from seriatim_models.report.text import table, titled, verdict_text

FILE_SUFFIXES = (".json", ".jsonl", ".gz", ".zst", ".parquet", ".html")


@click.command(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim show TOKEN                    replay what a check found
        seriatim show TOKEN --html race.html   the same as a page
        seriatim show verdicts.json            what --json wrote, as a table
        seriatim show recording.jsonl.gz       what is in a recording
        """
    ),
)
@click.argument("what", metavar="TOKEN|FILE")
@outputs
@click.rich_config(help_config=HELP)
def show(what: str, json: str | None, html: str | None, junit: str | None) -> int:
    """Show an interleaving by its token, the verdicts in a .json file, or what a recording holds."""
    out = Outputs(json, html, junit)
    path = Path(what)
    if path.is_file() and path.suffix == ".json":
        return show_verdicts(path, out)
    if path.is_file():
        show_history(path, out.console)
        return 0
    if what.endswith(FILE_SUFFIXES) or "/" in what:
        raise Mistake(f"no such file: {what}")
    begun = time.monotonic()
    report = new_report(None, None, "greenlet")
    report.programs.append(replayed(what))
    report.seconds = time.monotonic() - begun
    if html is not None and (told := report.programs[0].story) is not None:
        out.html = None
        put(html, page(told, f"seriatim show {what}").encode())
    return finish(report, out)


def show_verdicts(path: Path, out: Outputs) -> int:
    """A table of the results; the exit code is that of the command which wrote them."""
    found = read_verdicts(path)
    shown = table(
        "property",
        "verdict",
        "tested",
        "untestable",
        "subject",
        right=("tested", "untestable"),
    )
    for result in found.results:
        shown.add_row(
            escape(result.property),
            verdict_text(result.verdict),
            f"{result.n_tested:,}",
            f"{result.n_untestable:,}",
            escape(result.subject),
        )
    out.console.print(titled(f"{path}: {found.command}", shown))
    return found.exit_code


def read_verdicts(path: Path) -> Saved:
    try:
        return decode(path.read_bytes())
    except OSError as error:
        raise Mistake(f"cannot read {path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise Mistake(f"{path} holds no verdicts of this version: {error}") from error
