"""Recorded files: which there are, what is in them, and the drawings of a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from seriatim_models.cli.usage_errors import UsageError
from seriatim_models.conformance.profiles import Profile
from seriatim_models.history import Event, History, HistoryError, read_history
from seriatim_models.history.reading import named_as_history
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.report import AuditRun
from seriatim_models.report.history_view import history_story
from seriatim_models.report.story import Story
from seriatim_models.report.terminal import indented, quantity, table, titled
from seriatim_models.report.visible import in_a_line

PICTURE_MAX = (
    64 * 2**20
)  # bytes; a picture does not need a larger file to be read a second time, into memory


def files(paths: Iterable[str]) -> list[Path]:
    """The files named, and the recordings in the folders named."""
    recorded = []
    for path in map(Path, paths):
        inside = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        recorded += [p for p in inside if p == path or named_as_history(p.name)]
    return recorded


def add_drawings(audit: AuditRun, profile: Profile) -> None:
    """Add to an audit what a page draws: the runs with a violation."""
    if audit.verdict is Verdict.VIOLATED:
        audit.stories.update(stories(audit.paths, profile, audit.findings, audit.command))


def stories(
    paths: Iterable[str], profile: Profile, findings: Sequence[Finding], command: str
) -> dict[str, Story]:
    """The runs with a violation as stories, by run; without any, the first run. Large files are left out.

    `command` judges them again.
    """
    from seriatim_models.pipeline.audit import runs

    plan = runs.plan([p for p in files(paths) if p.stat().st_size <= PICTURE_MAX])
    properties = {p.id: p for p in profile.properties}
    violations: dict[str, list[Finding]] = {}
    for f in findings:
        if f.verdict is Verdict.VIOLATED:
            violations.setdefault(f.subject, []).append(f)
    events: dict[str, list[Event]] = {}
    for planned in plan.runs:
        for item in runs.read(planned):
            if isinstance(item, runs.Placed) and (not violations or item.run in violations):
                events.setdefault(item.run, []).append(item.event)
        if events and not violations:
            break
    return {
        run: history_story(run, run_events, violations.get(run, ()), properties, command)
        for run, run_events in events.items()
    }


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
            escape(in_a_line(kind)),
            f"{len(queues):,}",
            escape(", ".join(in_a_line(q) for q, _ in common)),
        )
    console.print(titled(f"{path}: {quantity(len(history.events), 'event')}", shown))
    if history.quarantine:
        left = quantity(len(history.quarantine), "line")
        console.print(Text(f"{left} left out, the first of them:", style="yellow"))
        for line in history.quarantine[:5]:
            console.print(indented(in_a_line(f"line {line.line}: {line.reason}")))
