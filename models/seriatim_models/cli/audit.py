"""`seriatim audit`: check recorded histories against properties, on this machine or on Spark."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import msgspec
import rich_click as click

from seriatim_models.cli.console import Outputs, ProgressCallback, ProgressDisplay, check_folder
from seriatim_models.cli.options import (
    ENGINES,
    HELP,
    JOBS,
    PROFILE_HELP,
    lines,
    master_option,
    number_option,
    outputs,
    profile_option,
    property_option,
    verbose_option,
)
from seriatim_models.cli.recordings import add_drawings, stamps
from seriatim_models.cli.report_builder import audit_run, new_report
from seriatim_models.cli.usage_errors import UsageError, sentence_of, unknown
from seriatim_models.conformance.profile_consistency import (
    ProfileConsistency,
    consistencies,
    forms,
    where_nothing_is_declared,
)
from seriatim_models.conformance.profiles import PROFILES, SYSTEMS, Profile, ProfileError, load
from seriatim_models.files import CHANGED, Fingerprint
from seriatim_models.history import HistoryError
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.intervals import drawn, intervals
from seriatim_models.properties.own import PropertyError, load_properties
from seriatim_models.properties.standing import confirmed
from seriatim_models.report import AuditRun
from seriatim_models.report.terminal import quantity
from seriatim_models.report.text import write


@click.command(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim audit recording.jsonl                     one file, in this process
        seriatim audit recordings --engine spark           a folder, on Spark
        seriatim audit recordings --engine spark --out a   and keep tables in a/tables
        seriatim audit day.jsonl.zst --json - | jq .results
        seriatim audit day.jsonl --profile strict-qpid     under a stricter profile
        seriatim audit day.jsonl --profile mine.toml       yours: spec/HISTORY.md
        seriatim audit day.jsonl --property rules.py:Mine
        seriatim audit day.jsonl --shrink small.jsonl      the least that violates
        seriatim audit day.jsonl -v                        a row for each property

        Files are JSON lines (also .gz and .zst) or Parquet; a folder stands for those in it.
        A line that cannot be read is left out and counted; the rest still gets its verdict.
        What is violated comes first, with the events that show it; then, for each recording, how many
        properties are ok, how many it has no case of, and which profiles it is consistent with. The exit
        code is that of --profile alone. A property without a case is inconclusive; that decides the exit
        code only if nothing at all was tested in the recording.
        """
    )
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@profile_option(PROFILE_HELP)
@property_option
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="local",
    show_default=True,
    help="On this machine, or on Spark.",
)
@click.option(
    "--out",
    metavar="DIR",
    help="Spark: keep what was prepared there, so that the next audit reads only what is new, "
    "and tables of verdicts, witnesses and statistics as Parquet.",
)
@master_option("Spark: the cluster")
@number_option(
    "--jobs",
    "Processors for one long recording: threads or processes share its properties "
    "[dim](all that there are)[/].",
    JOBS,
)
@click.option(
    "--shrink",
    metavar="FILE",
    help="If a property is violated, write the smallest part of the recording that still violates it.",
)
@verbose_option("A row for each property, with what would be a case of it, and for each profile.")
@outputs
@click.rich_config(help_config=HELP)
def audit(
    paths: tuple[str, ...],
    profile: str,
    own: tuple[str, ...],
    engine: str,
    out: str | None,
    master: str | None,
    jobs: int | None,
    shrink: str | None,
    verbose: bool,
    json: str | None,
    html: str | None,
    junit: str | None,
) -> int:
    """Check recorded histories of real brokers against properties."""
    outputs = Outputs(json, html, junit, reads=(*paths, profile, *own), others=(shrink,))
    chosen = with_own(find_profile(profile), own)
    if out is not None and engine != "spark":
        raise UsageError("--out keeps what Spark prepared: it needs --engine spark")
    if out is not None:
        check_folder(out)
    if master is not None and engine != "spark":
        raise UsageError("--master names a Spark cluster: it needs --engine spark")
    if jobs is not None and engine == "spark":
        raise UsageError("--jobs is for --engine local; how many Spark has is in its own files")
    report = new_report(*(["pyspark"] if engine == "spark" else []))
    report.sentences.update({p.id: p.sentence for p in chosen.properties})
    begun = time.monotonic()
    before = stamps(paths)
    with ProgressDisplay(1, "audits").running() as work, work.item(f"audit on {engine}") as shown:
        report.audits.append(
            run_audit(paths, chosen, engine, out, master, events_shown(shown), jobs)
        )
        if html is not None:
            add_drawings(report.audits[0], chosen, before)
    report.seconds = time.monotonic() - begun
    write(outputs.console, report, verbose)
    if shrink is not None:
        outputs.console.print(
            shrunk_to(paths, chosen, shrink, before), markup=False, soft_wrap=True
        )
    outputs.write(report)
    return report.exit_code


def events_shown(report: ProgressCallback) -> Callable[[int], None]:
    """Show how many events were read, and at what rate."""
    begun = time.monotonic()

    def show(events: int) -> None:
        rate = events / max(time.monotonic() - begun, 1e-9)
        report(0, f"{quantity(events, 'event')}, {rate:,.0f}/s")

    return show


def shrunk_to(
    paths: tuple[str, ...], profile: Profile, target: str, before: Mapping[str, Fingerprint]
) -> str:
    """Write the smallest part of a recording that still violates a property; returns a text that describes it.

    Raises `UsageError` if it is not as it was `before`.
    """
    from seriatim_models.history import read_history, write_history
    from seriatim_models.history.complete import complete
    from seriatim_models.properties.shrink import shrunk

    if len(paths) != 1:
        raise UsageError("--shrink needs one recording, not several")
    try:
        history = read_history(paths[0])
        if stamps(paths) != before:
            raise HistoryError(f"{paths[0]}: {CHANGED}")
        events = list(complete(history.events))
        findings = {p: confirmed(p, p.check(events)) for p in profile.properties}
        violated = [p for p, f in findings.items() if f.verdict is Verdict.VIOLATED]
        if not violated:
            return "no property is violated, so there is nothing to shrink"
        first = min(violated, key=lambda p: len(findings[p].witness))
        small = shrunk(first, history.events)
        params = {**history.header.params, "whole": True}
        write_history(target, small.events, msgspec.structs.replace(history.header, params=params))
    except HistoryError as error:
        raise UsageError(str(error)) from error
    return (
        f"{target}: {len(small.events)} of {len(events):,} events still violate it ({small.judged} tries): "
        f"{first.id}: {small.finding.explanation}\n{drawn(intervals(small.finding))}"
    )


def find_profile(name: str) -> Profile:
    """The profile of that name, or the user's own if it is a path that ends in ``.toml``. Raises `UsageError`."""
    if name.endswith(".toml"):
        try:
            return load(name)
        except ProfileError as error:
            raise UsageError(str(error)) from error
    if name not in PROFILES:
        raise unknown("profile", name, PROFILES, "seriatim list profiles")
    return PROFILES[name]


def with_own(profile: Profile, named: tuple[str, ...]) -> Profile:
    """The profile, with properties of the user's own (see `properties.own`). Raises `UsageError`."""
    try:
        own = load_properties(named, profile.properties)
    except PropertyError as error:
        raise UsageError(str(error)) from error
    return replace(profile, properties=(*profile.properties, *own)) if own else profile


def run_audit(
    paths: tuple[str, ...],
    profile: Profile,
    engine: str,
    out: str | None,
    master: str | None = None,
    on_events: Callable[[int], None] | None = None,
    jobs: int | None = None,
) -> AuditRun:
    """Audit the recordings and gather the findings, and the consistency with every profile of a system.

    Raises `UsageError` if something cannot be read.
    """
    from seriatim_models import pipeline

    begun = time.monotonic()
    # What the reference records of itself is not held to the profiles of systems that clients see.
    compared = () if profile.id == "reference" else tuple(SYSTEMS.values())
    judges = forms((profile, *compared))
    try:
        audited = pipeline.audit_paths(
            paths,
            engine,
            judges,
            out,
            master,
            on_events,
            alone=True,
            jobs=jobs or os.cpu_count() or 1,
        )
    except (OSError, HistoryError, pipeline.PipelineError) as error:
        raise UsageError(sentence_of(error)) from error
    by_run: dict[str, list[Finding]] = {}
    for finding in audited.findings:
        by_run.setdefault(finding.subject, []).append(finding)
    run = audit_run(
        audited,
        audited.quarantine,
        paths=paths,
        engine=engine,
        profile=profile,
        seconds=time.monotonic() - begun,
    )
    shown: list[Finding] = []
    standings: list[ProfileConsistency] = []
    for each in by_run.values():
        mine = each[: len(profile.properties)]
        if compared:
            consistent = consistencies(judges, each, compared)
            standings += consistent
            if profile.id == "any":
                mine = where_nothing_is_declared(mine, consistent)
        shown += mine
    return msgspec.structs.replace(run, findings=shown, standings=standings)
