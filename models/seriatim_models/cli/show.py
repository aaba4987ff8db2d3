"""`seriatim show`: look at one interleaving, at saved verdicts, or at a recorded history."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path

import rich_click as click
from rich.text import Text

from seriatim_models.cli import counterexample_annotation
from seriatim_models.cli.audit import find_profile, run_audit
from seriatim_models.cli.check import finish, replayed
from seriatim_models.cli.console import Outputs, put
from seriatim_models.cli.jobs import Job, SearchOptions
from seriatim_models.cli.options import (
    HELP,
    SECONDS_MAX,
    completing,
    lines,
    outputs,
    profile_option,
    verbose_option,
)
from seriatim_models.cli.recordings import read, show_history, stamps, stories
from seriatim_models.cli.report_builder import new_report
from seriatim_models.cli.usage_errors import UsageError, another, unknown
from seriatim_models.conformance.profiles import Profile
from seriatim_models.files import read_document
from seriatim_models.report import ProgramRun
from seriatim_models.report.document import SavedVerdicts
from seriatim_models.report.picture import TooLong, picture
from seriatim_models.report.recording_page import recording_page
from seriatim_models.report.stepper import page
from seriatim_models.report.story import Story
from seriatim_models.report.terminal import table, titled, verdict_text
from seriatim_models.report.timeline import timeline_svg
from seriatim_models.report.visible import in_a_line

FILE_SUFFIXES = (".json", ".jsonl", ".gz", ".zst", ".parquet", ".html")


@click.command(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim show TOKEN                    replay what a check found
        seriatim show TOKEN --html race.html   the same as a page
        seriatim show published-immediate --svg race.svg
                                               the shortest interleaving that a mutant breaks, as a picture
        seriatim show verdicts.json            what --json wrote, as a table
        seriatim show recording.jsonl.gz       what is in a recording
        seriatim show recording.jsonl.gz --svg timeline.svg   clients, faults, durations
        seriatim show recording.jsonl.gz --svg part.svg --between 3.5:4
        seriatim show recording.jsonl.gz --timeline whole.html
                                               every operation of every client, to move along and search
        seriatim show recording.jsonl.gz --html page.html
                                               who had which message when, and the violations
        """
    ),
)
@click.argument("what", metavar="TOKEN|MUTANT|FILE", shell_complete=completing("mutants"))
@click.option(
    "--svg",
    metavar="FILE",
    help="Write a short interleaving, or the timeline of a recording.",
)
@click.option(
    "--between",
    metavar="FROM:TO",
    callback=lambda _context, _option, given: _window(given),
    help="With --svg: only these seconds of a recording, as large as the whole.",
)
@click.option(
    "--timeline",
    metavar="FILE",
    help="Write a page of a whole recording: clients over time, to move along, magnify and search.",
)
@profile_option("Which properties apply to a recording, when it is drawn.")
@verbose_option("Show every step of an interleaving, and what it records.")
@outputs
@click.rich_config(help_config=HELP)
def show(
    what: str,
    svg: str | None,
    between: tuple[float, float] | None,
    timeline: str | None,
    profile: str,
    verbose: bool,
    json: str | None,
    html: str | None,
    junit: str | None,
) -> int:
    """Show an interleaving by its token or its mutant, the verdicts in a .json file, or what a recording holds."""
    out = Outputs(json, html, junit, reads=(what, profile), others=(svg, timeline))
    path = Path(what)
    promised = find_profile(profile)
    there = os.path.isfile(what)  # `Path.is_file` raises for a name that is too long for the system
    if between is not None and (svg is None or not there):
        raise UsageError("--between is for --svg of a recording")
    if os.path.isdir(what):
        raise UsageError(
            f"{what} is a folder, and show takes one recording: name a file of it; "
            f"{shlex.join(['seriatim', 'audit', what])} judges all of them"
        )
    if timeline is not None and (not there or path.suffix == ".json"):
        raise UsageError("--timeline is for a recording")
    if there and path.suffix == ".json":
        _only_shown("saved verdicts", what, json=json, html=html, junit=junit, svg=svg)
        return show_verdicts(path, out)
    if there:
        _only_shown("a recording", what, json=json, junit=junit)
        show_history(path, out.console)
        if html is not None:
            draw_history(path, promised, html, out)
        if svg is not None or timeline is not None:
            draw_whole(path, promised, svg, between, timeline, out)
        return 0
    if what.endswith(FILE_SUFFIXES) or "/" in what:
        raise UsageError(f"no such file: {what}")
    begun = time.monotonic()
    report = new_report("greenlet")
    report.programs.append(interleaving(what))
    report.seconds = time.monotonic() - begun
    drawn = (
        counterexample_annotation.annotated(report.programs[0]).story
        if html is not None or svg is not None
        else None
    )
    if drawn is not None:
        if html is not None:
            out.html = None
            out.put(html, page(drawn, f"seriatim show {what}").encode())
        if svg is not None:
            out.put(svg, pictured(drawn).encode())
    return finish(report, out, verbose)


def _only_shown(kind: str, what: str, **asked: str | None) -> None:
    """Raise `UsageError` if something is to be written that is not made of what is shown."""
    if named := [name for name, target in asked.items() if target is not None]:
        judged = (
            f"; {shlex.join(['seriatim', 'audit', what])} judges it" if "recording" in kind else ""
        )
        raise UsageError(f"--{named[0]} is for an interleaving, and {what} holds {kind}{judged}")


def _window(given: str | None) -> tuple[float, float] | None:
    """The seconds in ``FROM:TO``. Raises `UsageError`."""
    if given is None:
        return None
    try:
        begin, end = map(float, given.split(":"))
    except ValueError:
        begin = end = 0.0
    if not 0 <= begin < end <= SECONDS_MAX:
        raise UsageError(f"--between {given}: FROM:TO are two numbers of seconds, as in 3.5:4")
    return begin, end


def interleaving(what: str) -> ProgramRun:
    """The run of a token's schedule, or of the shortest one that violates a mutant's property."""
    from seriatim_models.programs import MUTANTS

    if what not in MUTANTS:
        try:
            return replayed(what)
        except UsageError as error:
            if ":" in what:
                raise
            kind = "token, mutant or file"
            right = another(what, kind) or unknown(kind, what, MUTANTS, "seriatim list mutants")
            raise right from error
    mutant = MUTANTS[what]
    return Job(mutant.program, mutant.id, SearchOptions()).run()


def pictured(story: Story) -> str:
    """The story as one picture. Raises `UsageError` if it is too long."""
    try:
        return picture(story)
    except TooLong as error:
        raise UsageError(f"too long for a picture: {error}; --html steps through it") from error


def draw_history(path: Path, profile: Profile, target: str, out: Outputs) -> None:
    """Write a page with one run to step through: the first with a violation, or else the first."""
    command = ["seriatim", "audit", str(path), "--profile", profile.id]
    before = stamps([str(path)])
    audited = run_audit((str(path),), profile, "local", None)
    drawn = stories([str(path)], profile, audited.findings, shlex.join(command), before)
    for n, (run, story) in enumerate(drawn.items()):
        if n == 0:
            put(target, page(story).encode())
        where = f"{target} shows it" if n == 0 else "has a violation too, and is not on the page"
        out.console.print(Text(f"{in_a_line(run)}: {where}"), soft_wrap=True)


def draw_whole(
    path: Path,
    profile: Profile,
    svg: str | None,
    between: tuple[float, float] | None,
    timeline: str | None,
    out: Outputs,
) -> None:
    """Write all of a recording over time, as a picture and as a page, with the violations."""
    events = read(path).events
    if len(runs := list(dict.fromkeys(e.run for e in events))) > 1:
        named = ", ".join(map(in_a_line, runs[:3])) + ", ..." * (len(runs) > 3)
        raise UsageError(
            f"{path} holds {len(runs)} runs ({named}), each with a time of its own, and a timeline shows one: "
            "keep each in a file of its own (the field run)"
        )
    findings = run_audit((str(path),), profile, "local", None).findings
    if svg is not None:
        out.put(svg, timeline_svg(events, path.name, findings, between).encode())
    if timeline is not None:
        command = shlex.join(["seriatim", "audit", str(path), "--profile", profile.id])
        out.put(timeline, recording_page(events, path.name, findings, command).encode())


def show_verdicts(path: Path, out: Outputs) -> int:
    """Print a table of saved results; returns the exit code of the command which wrote them."""
    saved = read_verdicts(path)
    shown = table(
        "property",
        "verdict",
        "tested",
        "untestable",
        "subject",
        right=("tested", "untestable"),
    )
    for result in saved.results:
        shown.add_row(
            in_a_line(result.property),
            verdict_text(result.verdict),
            f"{result.n_tested:,}",
            f"{result.n_untestable:,}",
            in_a_line(result.subject),
        )
    out.console.print(titled(f"{path}: {in_a_line(saved.command)}", shown))
    return saved.exit_code


def read_verdicts(path: Path) -> SavedVerdicts:
    """What `--json` wrote. Raises `UsageError`."""
    return read_document(path, SavedVerdicts, "holds no verdicts of this version", UsageError)
