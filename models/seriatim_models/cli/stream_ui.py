"""What `seriatim stream` shows while it runs: one panel that is drawn again and again, or a line for each batch.

Both on standard error. The panel is for a terminal; it stays up to date between batches, for ages grow.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from seriatim_models.pipeline.stream.streaming import Progress

SHOWN = 3  # convictions, and queues, that are named; of the rest there is a number
REFRESH = 4.0  # times a second
STOPPING = "stopping after the batch under way; once more: at once"


class Watch(Protocol):
    """What is told while a stream runs."""

    def __enter__(self) -> Watch: ...
    def __exit__(self, *_: object) -> None: ...
    def tell(self, progress: Progress) -> None:
        """A batch has ended."""

    def stopping(self) -> None:
        """Somebody asked to stop."""


def watch(quiet: bool, folder: str, out: str, clock: Callable[[], float] = time.monotonic) -> Watch:
    """A panel where there is a terminal to draw on, unless `quiet`; else lines."""
    console = Console(stderr=True, highlight=False)
    if quiet or not console.is_terminal:
        return Lines(console)
    return Board(console, f"{folder} → {out}", clock)


class Lines:
    """A line for each batch."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def tell(self, progress: Progress) -> None:
        wrong = f", violated: {', '.join(progress.violated)}" if progress.violated else ""
        more = "".join(f", {said}" for said in left_out(progress))
        self._say(
            f"batch {progress.batch}: {progress.files:,} files, {progress.events:,} events{more}{wrong} "
            f"({progress.seconds:.1f} s)"
        )

    def stopping(self) -> None:
        self._say(STOPPING)

    def _say(self, said: str) -> None:
        self._console.print(said, markup=False, soft_wrap=True)


class Board:
    """The panel."""

    def __init__(self, console: Console, title: str, clock: Callable[[], float]) -> None:
        self._title = title
        self._clock = clock
        self._begun = clock()
        self._told: Progress | None = None
        self._told_at = clock()
        self._stopping = False
        self._live = Live(
            console=console,
            transient=True,
            refresh_per_second=REFRESH,
            get_renderable=self.drawn,
            redirect_stdout=False,
        )

    def __enter__(self) -> Watch:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def tell(self, progress: Progress) -> None:
        self._told, self._told_at = progress, self._clock()

    def stopping(self) -> None:
        self._stopping = True

    def drawn(self) -> Panel:
        """The panel as it is now."""
        rows = Table.grid(padding=(0, 2))
        rows.add_column(style="dim")
        rows.add_column()
        for name, said in self._rows():
            rows.add_row(name, said)
        foot = (
            STOPPING
            if self._stopping
            else "Ctrl-C: stop after the batch under way, then the verdicts"
        )
        return Panel(
            rows, title=Text(self._title), subtitle=Text(foot), title_align="left", width=100
        )

    def _rows(self) -> list[tuple[str, Text]]:
        p, now = self._told, self._clock()
        if p is None:
            return [("waiting", Text(f"for the first file, {now - self._begun:.0f} s so far"))]
        rows = [
            ("events", Text(f"{p.events:,} in {p.files:,} files")),
            ("events/s", Text(f"{p.new / max(p.seconds, 1e-9):,.0f}")),
            ("lag", Text("none" if p.lag is None else f"{p.lag:.1f} s")),
            ("open queues", Text(open_queues(p))),
            ("violations", violations(p)),
            (
                "last batch",
                Text(
                    f"{p.batch}, {p.new:,} events in {p.seconds:.1f} s, {now - self._told_at:.0f} s ago"
                ),
            ),
        ]
        if out := left_out(p):
            rows.insert(5, ("left out", Text(", ".join(out), style="yellow")))
        return rows


def left_out(p: Progress) -> list[str]:
    """What was not judged, as far as there is any."""
    counts = (
        (p.rejected, "rejected"),
        (p.refused, "files refused"),
        (p.changed, "files changed after they were read"),
        (p.late, "late"),
        (p.waiting, "waiting"),
    )
    return [f"{n:,} {what}" for n, what in counts if n]


def open_queues(p: Progress) -> str:
    """Those that hold what nobody got yet, the fullest first."""
    if not p.backlog:
        return "none: all that was published was handed out"
    fullest = sorted(p.backlog.items(), key=lambda item: (-item[1], item[0]))
    named = [f"{q or 'unnamed'} {n:,}" for (_, q), n in fullest[:SHOWN]]
    more = [f"{len(fullest) - SHOWN:,} more"] if len(fullest) > SHOWN else []
    messages = sum(p.backlog.values())
    return f"{len(fullest):,} with {messages:,} messages not handed out: {', '.join(named + more)}"


def violations(p: Progress) -> Text:
    """How many, and of what."""
    if not p.violated:
        return Text("none so far", style="green")
    more = [f"{len(p.violated) - SHOWN:,} more"] if len(p.violated) > SHOWN else []
    return Text(
        f"{p.violations:,} so far: {', '.join([*p.violated[:SHOWN], *more])}", style="bold red"
    )
