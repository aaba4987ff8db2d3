"""`seriatim stream`: judge a folder of recordings while it grows."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import rich_click as click

from seriatim_models.cli.audit import QUARANTINE_SHOWN, find_profile
from seriatim_models.cli.gather import new_report
from seriatim_models.cli.mistakes import Mistake
from seriatim_models.cli.options import HELP, completing, lines, outputs
from seriatim_models.cli.screen import Outputs
from seriatim_models.report import AuditRun, Quarantined
from seriatim_models.report.text import write

if TYPE_CHECKING:
    from seriatim_models.pipeline.stream import Progress


@click.command(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim stream recordings --out verdicts          until Ctrl-C; go on with the same command
        seriatim stream recordings --out verdicts --once   what is there now, and no waiting
        seriatim stream recordings --out v --lateness 60   parts may come a minute out of order

        A file must be whole when it appears: write it elsewhere and rename it.
        The tables in DIR/tables are those of seriatim audit --out, after the latest batch.
        Killed at any moment, it goes on where it was: nothing lost, nothing doubled.
        """
    )
)
@click.argument("folder", metavar="FOLDER")
@click.option("--out", required=True, metavar="DIR", help="Where state and tables go.")
@click.option(
    "--profile",
    shell_complete=completing("profiles"),
    default="any",
    show_default=True,
    metavar="NAME",
    help="Which properties this system promises.",
)
@click.option(
    "--lateness",
    type=click.FloatRange(0),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a part waits for one that should come before it.",
)
@click.option(
    "--idle",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="After so long without a new file nobody waits any more.",
)
@click.option(
    "--every",
    type=click.FloatRange(0.1),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Look for new files so often.",
)
@click.option("--once", is_flag=True, help="Read all that is there, then stop.")
@click.option(
    "--master",
    metavar="URL",
    help="Spark's cluster [dim](SERIATIM_SPARK_MASTER, else this machine)[/].",
)
@outputs
@click.rich_config(help_config=HELP)
def stream(
    folder: str,
    out: str,
    profile: str,
    lateness: float,
    idle: float,
    every: float,
    once: bool,
    master: str | None,
    json: str | None,
    html: str | None,
    junit: str | None,
) -> int:
    """Judge a folder of recordings while it grows."""
    outputs = Outputs(json, html, junit)
    chosen = find_profile(profile)
    from seriatim_models import pipeline

    begun = time.monotonic()
    stop = _Stop()
    try:
        from seriatim_models.pipeline.session import require, session

        require()
        from seriatim_models.pipeline.stream import Stream

        properties = pipeline.chosen_of(chosen.properties)
        watching = Stream(
            session(master), folder, out, properties, lateness=lateness, on_progress=_tell()
        )
        with stop:
            watching.run(once=once, idle=idle, every=every, stopping=lambda: stop.asked)
    except (OSError, pipeline.PipelineError) as error:
        raise Mistake(str(error)) from error
    found = watching.report()
    report = new_report(None, None, "pyspark")
    report.seconds = time.monotonic() - begun
    rejected = found.statistics["rejected"] + len(found.quarantine)
    report.audits.append(
        AuditRun(
            paths=[folder],
            engine="spark",
            profile=chosen.id,
            findings=found.findings,
            events=found.statistics["events"],
            quarantined=rejected,
            quarantine=[
                Quarantined(file=line.source, line=line.line, reason=line.reason)
                for line in found.quarantine[:QUARANTINE_SHOWN]
            ],
            statistics=found.statistics,
            seconds=report.seconds,
            command=f"seriatim audit {Path(folder)} --engine spark --profile {chosen.id}",
        )
    )
    write(outputs.console, report)
    outputs.write(report)
    return report.exit_code


class _Stop:
    """While it is entered, the first Ctrl-C (or SIGTERM) asks to stop, and the second one interrupts."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> None:
        self._before = [(s, signal.getsignal(s)) for s in (signal.SIGINT, signal.SIGTERM)]
        for number, _ in self._before:
            signal.signal(number, self._ask)

    def __exit__(self, *_: object) -> None:
        for number, before in self._before:
            signal.signal(number, before)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


def _tell() -> Callable[[Progress], None]:
    """A line for each batch on standard error."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)

    def tell(p: Progress) -> None:
        wrong = f", violated: {', '.join(p.violated)}" if p.violated else ""
        more = "".join(
            f", {n:,} {what}"
            for n, what in ((p.rejected, "rejected"), (p.late, "late"), (p.waiting, "waiting"))
            if n
        )
        console.print(
            f"batch {p.batch}: {p.files:,} files, {p.events:,} events{more}{wrong} ({p.seconds:.1f} s)",
            markup=False, soft_wrap=True,
        )  # fmt: skip

    return tell
