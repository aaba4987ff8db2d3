"""Recorded files: which there are, and what a look at them shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from seriatim_models.cli.mistakes import Mistake
from seriatim_models.history import History, HistoryError, read_history
from seriatim_models.history.reading import SUFFIXES, stem
from seriatim_models.report.latency import publish_to_delivery
from seriatim_models.report.text import table, titled

PICTURE_MAX = (
    64 * 2**20
)  # bytes; a picture does not need a larger file to be read a second time, into memory


def files(paths: Iterable[str]) -> list[Path]:
    """The files named, and those in the folders named."""
    found = []
    for path in map(Path, paths):
        inside = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        found += [p for p in inside if p == path or p.name.endswith(SUFFIXES)]
    return found


def latencies(paths: Iterable[str]) -> dict[str, list[float]]:
    """Milliseconds from publish to first delivery, by file."""
    return {
        stem(path): publish_to_delivery(read_history(path).events)
        for path in files(paths)
        if path.stat().st_size <= PICTURE_MAX
    }


def read(path: Path) -> History:
    try:
        return read_history(path)
    except HistoryError as error:
        raise Mistake(str(error)) from error


def show_history(path: Path, console: Console) -> None:
    """Who recorded it, what is in it, and what was left out."""
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
        Text(", ".join(f"{name} {value}" for name, value in about.items() if value)), soft_wrap=True
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
        shown.add_row(escape(kind), f"{len(queues):,}", escape(", ".join(q for q, _ in common)))
    console.print(titled(f"{path}: {len(history.events):,} events", shown))
    if history.quarantine:
        console.print(
            Text(f"{len(history.quarantine):,} lines left out, the first of them:", style="yellow")
        )
        for line in history.quarantine[:5]:
            console.print(Text(f"  line {line.line}: {line.reason}"), soft_wrap=True)
