"""Recorded files: which there are, what is in them, and the drawings of a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from seriatim_models.cli.usage_errors import UsageError
from seriatim_models.conformance.profiles import Profile
from seriatim_models.files import CHANGED, Fingerprint, fingerprint
from seriatim_models.history import Event, History, HistoryError, read_history
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.report import AuditRun
from seriatim_models.report.history_view import history_story
from seriatim_models.report.story import Story
from seriatim_models.report.terminal import indented, quantity, table, titled
from seriatim_models.report.visible import in_a_line

PICTURE_MAX = (
    64 * 2**20
)  # bytes; a picture does not need a larger file to be read a second time, into memory


def stamps(paths: Sequence[str]) -> dict[str, Fingerprint]:
    """By which it is known later whether a recording changed; nothing where none is found, which who reads it says."""
    from seriatim_models.pipeline.audit import runs

    try:
        return {source.path: fingerprint(source.path) for source in runs.find(paths)}
    except HistoryError:
        return {}


def add_drawings(audit: AuditRun, profile: Profile, before: Mapping[str, Fingerprint]) -> None:
    """Add to an audit what a page draws: the runs with a violation, of recordings that are as they were `before` it.

    Raises `UsageError` if one that was named has changed.
    """
    if audit.verdict is Verdict.VIOLATED:
        audit.stories.update(stories(audit.paths, profile, audit.findings, audit.command, before))


def stories(
    paths: Sequence[str],
    profile: Profile,
    findings: Sequence[Finding],
    command: str,
    before: Mapping[str, Fingerprint],
) -> dict[str, Story]:
    """The runs with a violation as stories, by run; without any, the first run. Large files are left out, and runs of
    which a file in a folder is not as it was `before` the findings.

    `command` judges them again. Raises `UsageError` if a file that was named has changed.
    """
    properties = {p.id: p for p in profile.properties}
    violations: dict[str, list[Finding]] = {}
    for f in findings:
        if f.verdict is Verdict.VIOLATED:
            violations.setdefault(f.subject, []).append(f)
    try:
        events = _events(paths, violations, before)
    except HistoryError as error:
        raise UsageError(str(error)) from error
    return {
        run: history_story(run, run_events, violations.get(run, ()), properties, command)
        for run, run_events in events.items()
    }


def _events(
    paths: Sequence[str], wanted: Collection[str], before: Mapping[str, Fingerprint]
) -> dict[str, list[Event]]:
    """The events of the runs that are wanted, or of the first one if none is. Raises `HistoryError`."""
    from seriatim_models.pipeline.audit import runs

    out: dict[str, list[Event]] = {}
    for planned in runs.plan(paths).runs:
        small = [
            [part for part in parts if fingerprint(part.path)[0] <= PICTURE_MAX]
            for parts in planned.recorders
        ]
        read: dict[str, list[Event]] = {}
        for item in runs.read(runs.RunPlan(planned.run, [parts for parts in small if parts])):
            if isinstance(item, runs.Placed) and (not wanted or item.run in wanted):
                read.setdefault(item.run, []).append(item.event)
        changed = [
            part
            for parts in small
            for part in parts
            if fingerprint(part.path) != before.get(part.path)
        ]
        for part in changed:
            if part.named:
                raise HistoryError(f"{part.path}: {CHANGED}")
        if not changed:
            out.update(read)
        if out and not wanted:
            break
    return out


def read(path: Path) -> History:
    """A recorded history. Raises `UsageError`."""
    try:
        return read_history(path)
    except HistoryError as error:
        raise UsageError(str(error)) from error


def show_history(path: Path, console: Console) -> None:
    """Print who recorded a history, what is in it, and what was left out."""
    history = read(path)
    header = history.header
    about = {
        "schema": header.schema,
        "run": header.run,
        "recorder": header.rec,
        "level": header.lvl,
        "broker": header.broker,
    }
    console.print(
        Text(", ".join(f"{name} {in_a_line(value)}" for name, value in about.items() if value))
    )
    kinds: dict[str, list[str]] = {}
    for e in history.events:
        kinds.setdefault(e.ev, []).append(e.q)
    shown = table(
        "event",
        "count",
        "queues",
        right=("count",),
    )
    for kind, queues in sorted(kinds.items(), key=lambda item: -len(item[1])):
        common = Counter(q for q in queues if q).most_common(3)
        shown.add_row(
            in_a_line(kind),
            f"{len(queues):,}",
            ", ".join(in_a_line(q) for q, _ in common),
        )
    console.print(titled(f"{path}: {quantity(len(history.events), 'event')}", shown))
    if history.quarantine:
        left = quantity(len(history.quarantine), "line")
        console.print(Text(f"{left} left out, the first of them:", style="yellow"))
        for line in history.quarantine[:5]:
            console.print(indented(in_a_line(f"line {line.line}: {line.reason}")))
