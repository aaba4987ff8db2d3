"""`seriatim stream`: judge a folder of recordings while it grows."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import rich_click as click

from seriatim_models.cli.audit import find_profile, with_own
from seriatim_models.cli.console import Outputs, check_folder
from seriatim_models.cli.options import (
    HELP,
    Seconds,
    lines,
    master_option,
    number_option,
    outputs,
    profile_option,
    property_option,
    verbose_option,
)
from seriatim_models.cli.report_builder import QUARANTINE_SHOWN, audit_run, new_report
from seriatim_models.cli.stop_request import StopRequest
from seriatim_models.cli.stream_ui import view
from seriatim_models.cli.usage_errors import UsageError, sentence_of
from seriatim_models.conformance.profile_consistency import in_one_form, where_nothing_is_declared
from seriatim_models.report import AuditRun
from seriatim_models.report.text import write


@click.command(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim stream recordings --out v             until Ctrl-C; again, it goes on
        seriatim stream recordings --out v --once      what is there now, no waiting
        seriatim stream recordings --out v --lateness 60   parts may be a minute late
        seriatim stream recordings --out v --quiet     a line a batch, for a service
        seriatim stream recordings --out v --once --json - | jq .results

        [bold]What to put into the folder[/]
        Recordings as seriatim audit takes them, also in folders inside it.
        A run may come in many files: each has the run's header, and its index i goes
        on where the file before it ended.
        A file must be whole when it appears: write it elsewhere, or under a name that
        begins with a dot, and rename it. It is read once, and may be deleted then.
        One that changes after it was read is in quarantine, and what is new in it is
        not read: begin a new file instead.

        [bold]What is shown[/]
        events/s     those of the last batch, by how long it took
        lag          from the change of its oldest file until its verdicts stood
        open queues  those with messages published and not yet delivered
        violations   of what has come so far; what comes later may clear one
        under way    files that are being judged, and for how long
        left out     lines rejected or late, files refused or changed, parts that wait
        On a terminal a panel, otherwise a line a batch, on standard error.

        [bold]Without --profile[/]
        Every promise is held against the system; what some documented system
        allows is open at the end, and the exit code 3. A stream keeps one form of
        each property, where seriatim audit judges each profile by its own: so it
        may still report what only another form allows. Name the system.

        [bold]To stop[/]
        Ctrl-C, or SIGTERM, lets the batch under way end, shows the verdicts and exits
        with their code. A second one stops at once. Killed at any moment, it goes on
        where it was: nothing lost, nothing doubled.
        DIR/tables has the tables of seriatim audit --out, after the last batch.
        """
    )
)
@click.argument("folder", metavar="FOLDER")
@click.option("--out", required=True, metavar="DIR", help="Where state and tables go.")
@profile_option("Which properties this system promises.")
@property_option
@number_option(
    "--lateness",
    "How long a part waits for one that should come before it.",
    Seconds(0),
    10.0,
    metavar="SECONDS",
)
@number_option(
    "--idle",
    "After so long without a new file no part waits any more.",
    Seconds(0),
    30.0,
    metavar="SECONDS",
)
@number_option("--every", "Look for new files so often.", Seconds(0.1), 1.0, metavar="SECONDS")
@click.option("--once", is_flag=True, help="Read all that is there, then stop.")
@click.option(
    "--quiet", is_flag=True, help="A line for each batch also on a terminal; so it is with --json."
)
@master_option()
@verbose_option("A row for each property at the end, with what would be a case of it.")
@outputs
@click.rich_config(help_config=HELP)
def stream(
    folder: str,
    out: str,
    profile: str,
    own: tuple[str, ...],
    lateness: float,
    idle: float,
    every: float,
    once: bool,
    quiet: bool,
    master: str | None,
    verbose: bool,
    json: str | None,
    html: str | None,
    junit: str | None,
) -> int:
    """Judge a folder of recordings while it grows.

    New files are found as they appear; each batch moves the runs that its files belong to, and their verdicts.
    """
    outputs = Outputs(json, html, junit, reads=(folder, profile, *own))
    chosen = with_own(find_profile(profile), own)
    from seriatim_models import pipeline

    if Path(folder).is_dir():
        check_folder(out)
    begun = time.monotonic()
    stop = StopRequest()
    shown = view(quiet or json is not None, folder, out)
    try:
        from seriatim_models.pipeline.session import require, session

        require()
        from seriatim_models.pipeline.stream.streaming import Stream

        watching = Stream(
            session(master), folder, out, pipeline.chosen_of(chosen.properties), lateness=lateness,
            on_progress=shown.update, on_step=shown.step,
        )  # fmt: skip
        # Only now: Spark's session sets a handler of its own.
        with stop, shown:
            watching.run(
                once=once, idle=idle, every=every, stopping=lambda: stop.shown(shown.stopping)
            )
    except (OSError, pipeline.PipelineError) as error:
        raise UsageError(sentence_of(error)) from error
    report = new_report("pyspark")
    report.seconds = time.monotonic() - begun
    run = audit_run(
        watching.report(),
        watching.left_out(QUARANTINE_SHOWN),
        paths=[folder],
        engine="spark",
        profile=chosen,
        seconds=report.seconds,
    )
    report.audits.append(_undeclared(run) if chosen.id == "any" else run)
    write(outputs.console, report, verbose)
    outputs.write(report)
    return report.exit_code


def _undeclared(run: AuditRun) -> AuditRun:
    """The result where no profile was named: what a documented system allows is open."""
    findings = [
        finding
        for findings in run.by_recording().values()
        for finding in where_nothing_is_declared(findings, in_one_form(findings))
    ]
    return msgspec.structs.replace(run, findings=findings)
