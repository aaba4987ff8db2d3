"""Where output goes: people read the console, programs read files or standard output.

If a file is `-`, it gets standard output to itself and everything for people goes to standard error.
Progress always goes to standard error: a moving line on a terminal, one plain line per finished item elsewhere.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from seriatim_models.cli.usage_errors import Mistake
from seriatim_models.report import Report

if TYPE_CHECKING:
    from seriatim_models.report.html import Beside

PIPE_WIDTH = 140  # a pipe has no width; tables need some


@dataclass
class Outputs:
    """The files that a command was asked to write."""

    json: str | None = None
    html: str | None = None
    junit: str | None = None
    console: Console = field(init=False)
    """For people."""

    def __post_init__(self) -> None:
        to_stdout = [target for target in (self.json, self.html, self.junit) if target == "-"]
        if len(to_stdout) > 1:
            raise Mistake("only one of --json, --html and --junit can go to standard output")
        self.console = _console(stderr=bool(to_stdout))

    def write(self, report: Report, beside: Beside | None = None) -> None:
        """Draw what was asked for."""
        if self.json is not None:
            from seriatim_models.report.document import encode

            put(self.json, encode(report))
        if self.html is not None:
            from seriatim_models.cli import counterexample_annotation
            from seriatim_models.report.html import html

            programs = [counterexample_annotation.decided(run) for run in report.programs]
            drawn = msgspec.structs.replace(report, programs=programs)
            if beside is not None and beside.race is not None:
                beside = beside._replace(race=counterexample_annotation.decided_race(beside.race))
            put(self.html, html(drawn, beside).encode())
        if self.junit is not None:
            from seriatim_models.report.junit import junit

            put(self.junit, junit(report))


def _console(stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console = Console(stderr=stderr, highlight=False, width=PIPE_WIDTH)
    return console


def put(target: str, content: bytes) -> None:
    if target == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    path = Path(target)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise Mistake(f"cannot write {target}: {error.strerror}") from error


class Tell(Protocol):
    """Called now and then by what works, with how many executions it has behind it, and how far that is."""

    def __call__(self, executions: int, said: str = "", /) -> None: ...


PATIENCE = 10.0  # seconds without a word, where lines do not move


class Work:
    """Progress over a known number of items."""

    def __init__(self, total: int, noun: str) -> None:
        self._console = _console(stderr=True)
        self._total, self._done = total, 0
        self._live = self._console.is_terminal
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn(noun),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[note]}"),
            console=self._console,
            transient=True,
            disable=not self._live,
            auto_refresh=False,  # no thread of its own: a search may fork this process
        )
        self._said = time.monotonic()

    @contextmanager
    def running(self) -> Iterator[Work]:
        with self._progress:
            self._task = self._progress.add_task("", total=self._total, note="")
            yield self

    def say(self, description: str) -> None:
        """What is being worked on."""
        self._progress.update(self._task, description=description, note="", refresh=True)

    def note(self, name: str, said: str) -> None:
        """How far `name` is."""
        self._progress.update(self._task, note=said, refresh=True)
        if not self._live and time.monotonic() - self._said > PATIENCE:
            self._line(f"[{self._done}/{self._total}] {name}: {said} ...")

    def _line(self, said: str) -> None:
        self._said = time.monotonic()
        self._console.print(said, markup=False, soft_wrap=True)

    def finished(self, name: str, seconds: float, executions: int = 0) -> None:
        """One item ended; the plain form prints its line."""
        self._done += 1
        self._progress.update(self._task, completed=self._done, refresh=True)
        if not self._live:
            detail = f", {executions:,} executions" if executions else ""
            self._line(f"[{self._done}/{self._total}] {name}: {seconds:.1f} s{detail}")

    @contextmanager
    def item(self, name: str) -> Iterator[Tell]:
        """One item in this process, which tells how far it is."""
        begun = time.monotonic()
        self.say(name)
        executions = 0

        def tell(count: int, said: str = "", /) -> None:
            nonlocal executions
            executions = count
            rate = count / max(time.monotonic() - begun, 1e-9)
            self.note(name, said or f"{count:,} executions, {rate:,.0f}/s")

        yield tell
        self.finished(name, time.monotonic() - begun, executions)
