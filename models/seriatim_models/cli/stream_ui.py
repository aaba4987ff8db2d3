"""The progress of `seriatim stream`: a panel that is redrawn, or a line for each batch.

Both are on standard error. The panel is for a terminal; it is redrawn between batches too, because it shows ages.
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

from seriatim_models.cli.console import Visible, redraws, terminal
from seriatim_models.report.terminal import quantity

if TYPE_CHECKING:
    from seriatim_models.pipeline.stream.streaming import StreamProgress

SHOWN = 3  # violated properties, and queues, that are named; of the rest the number is shown
REFRESH = 4.0  # times a second
STOPPING = "stopping after the batch under way; once more: at once"


class StreamView(Protocol):
    """Shows the progress of a stream while it is entered."""

    def __enter__(self) -> StreamView: ...
    def __exit__(self, *_: object) -> None: ...
    def step(self, files: int) -> None:
        """Show that so many files are being judged."""

    def update(self, progress: StreamProgress) -> None:
        """Show the progress after a batch."""

    def stopping(self) -> None:
        """Show that the user asked to stop."""


def view(
    quiet: bool, folder: str, out: str, clock: Callable[[], float] = time.monotonic
) -> StreamView:
    """A panel where there is a terminal to draw on, unless `quiet`; else lines."""
    console = terminal(stderr=True)
    if quiet or not redraws(console):
        return LineView(console)
    return PanelView(console, f"{folder} → {out}", clock)


class LineView:
    """A line for each batch."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> StreamView:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def step(self, files: int) -> None:
        """The line of the batch says it, once it is over."""

    def update(self, progress: StreamProgress) -> None:
        wrong = f", violated: {first_violated(progress)}" if progress.violated else ""
        more = "".join(f", {part}" for part in left_out(progress))
        if progress.failed:
            self._print(f"batch {progress.batch}: {made_again(progress.failed)}")
        self._print(
            f"batch {progress.batch}: {quantity(progress.files, 'file')}, "
            f"{quantity(progress.events, 'event')}{more}{wrong} "
            f"({progress.seconds:.1f} s)"
        )

    def stopping(self) -> None:
        self._print(STOPPING)

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, soft_wrap=True)


class PanelView:
    """A panel that is redrawn some times a second."""

    def __init__(self, console: Console, title: str, clock: Callable[[], float]) -> None:
        self._title = title
        self._clock = clock
        self._begun = clock()
        self._latest: StreamProgress | None = None
        self._updated_at = clock()
        self._step: tuple[int, float] | None = None
        """How many files are being judged, and since when."""
        self._failed = 0
        self._stopping = False
        self._live = Live(
            console=console,
            transient=True,
            refresh_per_second=REFRESH,
            get_renderable=lambda: Visible(self.panel()),
            redirect_stdout=False,
        )

    def __enter__(self) -> StreamView:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def step(self, files: int) -> None:
        self._step = files, self._clock()

    def update(self, progress: StreamProgress) -> None:
        self._step = None
        self._latest, self._updated_at = progress, self._clock()
        self._failed += progress.failed

    def stopping(self) -> None:
        self._stopping = True

    def panel(self) -> Panel:
        """The panel as it is now."""
        rows = Table.grid(padding=(0, 2))
        rows.add_column(style="dim")
        rows.add_column()
        for name, text in self._rows():
            rows.add_row(name, text)
        foot = (
            STOPPING
            if self._stopping
            else "Ctrl-C: stop after the batch under way, then the verdicts"
        )
        return Panel(
            rows, title=Text(self._title), subtitle=Text(foot), title_align="left", width=100
        )

    def _rows(self) -> list[tuple[str, Text]]:
        p, now = self._latest, self._clock()
        step = []
        if (judged := self._step) is not None:  # another thread sets it
            files, since = judged
            step = [("under way", Text(f"{quantity(files, 'file')}, {now - since:.0f} s so far"))]
        if p is None:
            return step or [
                ("waiting", Text(f"for the first file, {now - self._begun:.0f} s so far"))
            ]
        rows = [
            ("events", Text(f"{p.events:,} in {p.files:,} files")),
            ("events/s", Text(f"{p.new / max(p.seconds, 1e-9):,.0f}")),
            ("lag", Text("none" if p.lag is None else f"{p.lag:.1f} s")),
            ("open queues", Text(open_queues(p))),
            ("violations", violations(p)),
            (
                "last batch",
                Text(
                    f"{p.batch}, {p.new:,} events in {p.seconds:.1f} s, {now - self._updated_at:.0f} s ago"
                ),
            ),
        ]
        if self._failed:
            rows.append(("workers", Text(made_again(self._failed), style="yellow")))
        if out := left_out(p):
            rows.insert(5, ("left out", Text(", ".join(out), style="yellow")))
        return rows + step


def made_again(failed: int) -> str:
    """In words, how many attempts at tasks failed and were made again."""
    return f"{quantity(failed, 'task')} made again whose worker was lost"


def left_out(p: StreamProgress) -> list[str]:
    """Counts of what was left out of the verdicts, those that are not 0."""
    counts = (
        (p.rejected, "rejected"),
        (p.refused, "files refused"),
        (p.changed, "files changed after they were read"),
        (p.late, "late"),
        (p.waiting, "waiting"),
    )
    return [f"{n:,} {what}" for n, what in counts if n]


def open_queues(p: StreamProgress) -> str:
    """The number of queues with undelivered messages, and the fullest of them."""
    if not p.backlog:
        return "none: all that was published was delivered"
    fullest = sorted(p.backlog.items(), key=lambda item: (-item[1], item[0]))
    named = [f"{q or 'unnamed'} {n:,}" for (_, q), n in fullest[:SHOWN]]
    more = [f"{len(fullest) - SHOWN:,} more"] if len(fullest) > SHOWN else []
    messages = sum(p.backlog.values())
    return f"{len(fullest):,} with {messages:,} messages not delivered: {', '.join(named + more)}"


def violations(p: StreamProgress) -> Text:
    """The number of violations, and of which properties."""
    if not p.violated:
        return Text("none so far", style="green")
    return Text(f"{p.violations:,} so far: {first_violated(p)}", style="bold red")


def first_violated(p: StreamProgress) -> str:
    """The first violated properties, each with its run, and how many more there are."""
    more = [f"{len(p.violated) - SHOWN:,} more"] if len(p.violated) > SHOWN else []
    return ", ".join([*p.violated[:SHOWN], *more])
