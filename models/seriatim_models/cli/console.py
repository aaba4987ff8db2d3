"""Where output goes: people read the console, programs read files or standard output.

If a file is `-`, it gets standard output to itself and everything for people goes to standard error.
Progress always goes to standard error: a moving line on a terminal, one plain line per finished item elsewhere.
"""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook
from rich.markup import escape
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.table import Column
from rich.text import Text

from seriatim_models.cli.usage_errors import UsageError
from seriatim_models.files import check_place, write_whole
from seriatim_models.history.reading import named_as_history
from seriatim_models.report import Report
from seriatim_models.report.terminal import quantity
from seriatim_models.report.visible import in_a_line, visible

if TYPE_CHECKING:
    from seriatim_models.report.html import TourSections

PIPE_WIDTH = 140  # a pipe has no width of its own; tables need some, where COLUMNS does not say


@dataclass
class Outputs:
    """The files that a command was asked to write."""

    json: str | None = None
    html: str | None = None
    junit: str | None = None
    folder: str | None = None
    """What the command writes besides goes there."""
    reads: Sequence[str | None] = ()
    """Words that name what the command reads: none of that is written to."""
    others: Sequence[str | None] = ()
    """What it writes besides, each to a file of its own."""
    console: Console = field(init=False)
    """For people; standard error if a file goes to standard output."""

    def __post_init__(self) -> None:
        to_stdout = [target for target in (self.json, self.html, self.junit) if target == "-"]
        if len(to_stdout) > 1:
            raise UsageError("only one of --json, --html and --junit can go to standard output")
        check_apart(self.reads, (self.json, self.html, self.junit, *self.others))
        for target in (self.json, self.html, self.junit):
            check_writable(target, folder=target == self.html)
        if self.folder is not None:
            check_folder(self.folder)
        self.console = terminal(stderr=bool(to_stdout))

    def put(self, target: str, content: bytes) -> None:
        """Write a file, or standard output if `target` is `-`, and say which file it was. Raises `UsageError`."""
        put(target, content)
        if target != "-":
            self.console.print(Text(f"written: {target}"), soft_wrap=True)

    def write(self, report: Report, sections: TourSections | None = None) -> None:
        """Write the report to the files; with `sections` it is a folder of pages."""
        if self.json is not None:
            from seriatim_models.report.document import encode

            self.put(self.json, encode(report))
        if self.html is not None:
            from seriatim_models.cli import counterexample_annotation as annotation
            from seriatim_models.report.html import html, pages

            programs = [annotation.annotated(run) for run in report.programs]
            report = msgspec.structs.replace(report, programs=programs)
            if sections is not None and sections.race is not None:
                sections = sections._replace(race=annotation.annotated_mutant(sections.race))
            if sections is None:
                self.put(self.html, html(report).encode())
            else:
                for name, page in pages(report, sections).items():
                    put_within(Path(self.html).parent, name, page.encode())
        if self.junit is not None:
            from seriatim_models.report.junit import junit

            self.put(self.junit, junit(report))


WIDTH_LEAST = 20
"""Columns that are written for on a terminal that has fewer, where nothing could be laid out."""


class Visible:
    """A renderable whose texts are `visible`. The terminal's own commands are none of its texts."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        rendered = console.render(self._renderable, options)
        shown = (s if s.control else Segment(visible(s.text), s.style) for s in rendered)
        yield from shown if console.is_terminal else _unpadded(shown)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._renderable)


def _unpadded(segments: Iterable[Segment]) -> Iterator[Segment]:
    """The segments without the blanks at the end of each line, which only a terminal's background needs."""
    blank = ""
    for segment in segments:
        for text in segment.text.splitlines(keepends=True):
            bare = text.rstrip(" \n")
            if bare:
                yield Segment(blank + bare, segment.style)
                blank = ""
            blank += text[len(bare) :]
            if blank.endswith("\n"):
                yield Segment.line()
                blank = ""
    if blank:
        yield Segment(blank)


class _Border(RenderHook):
    """Makes whatever is printed `visible`."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [Visible(renderable) for renderable in renderables]


def terminal(stderr: bool) -> Console:
    """Standard output or standard error for people: every text of it passes `visible`."""
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(stderr=stderr, highlight=False, width=PIPE_WIDTH)
    if console.width < WIDTH_LEAST:  # COLUMNS=0, or a window of some columns
        console.width = WIDTH_LEAST
    console.push_render_hook(_Border())
    return console


def redraws(console: Console) -> bool:
    """Whether lines can be drawn anew there: a terminal, and none that says that it is dumb (`TERM`)."""
    return console.is_terminal and not console.is_dumb_terminal


def put(target: str, content: bytes) -> None:
    """Write a file and the folders above it, or standard output if `target` is `-`. Raises `UsageError`."""
    if target == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    path = Path(target)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror}") from error


def put_within(folder: Path, name: str, content: bytes) -> None:
    """Write a file of a folder under a name that the user has not given: what is no file there is left as it is.

    Raises `UsageError`.
    """
    path = folder / name
    try:
        check_place(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    put(str(path), content)


def check_apart(reads: Iterable[str | None], writes: Iterable[str | None]) -> None:
    """Raise `UsageError` if a file is to be written that is read, or one is to be written twice.

    `reads` are words that name what is read: files, folders of recordings, ``FILE.py::test``, ``module:Name``. Those
    that name no file are passed over.
    """
    named = {path for word in reads if word is not None for path in _files_of(word)}
    taken = {os.path.realpath(path): "read" for path in named if os.path.exists(path)}
    folders = {Path(path) for path in taken if os.path.isdir(path)}
    for target in writes:
        if target is None or target == "-" or target.startswith("/dev/"):
            continue
        place = Path(os.path.realpath(target))
        recording = named_as_history(place.name) and not folders.isdisjoint(place.parents)
        was = taken.get(str(place), "read" if recording and place.exists() else "")
        if was:
            raise UsageError(f"{target} is {was} too; choose another name to write to")
        taken[str(place)] = "written"


def _files_of(word: str) -> Iterator[str]:
    """The files that a word of the command line may name."""
    yield word
    where, colon, _ = word.partition("::") if "::" in word else word.rpartition(":")
    if colon:
        yield where if where.endswith(".py") else f"{where.replace('.', '/')}.py"


def check_writable(target: str | None, folder: bool = False) -> None:
    """Raise `UsageError` for a target that `put` could not write, before the work; a folder is one unless `folder`."""
    if target is None or target == "-":
        return
    path = Path(target)
    above = next(p for p in (path, *path.absolute().parents) if p.exists())
    if above == path and path.is_dir() and not folder:
        number = errno.EISDIR
    elif above != path and not above.is_dir():
        number = errno.ENOTDIR
    elif not os.access(above, os.W_OK) or (
        above.is_dir() and not os.statvfs(above).f_blocks and not _takes(above)
    ):
        number = errno.EACCES
    else:
        return
    raise UsageError(f"cannot write {target}: {os.strerror(number)}")


def _takes(folder: Path) -> bool:
    """Whether a new file can be in a folder of a system without blocks: /proc says that root may, and refuses."""
    with suppress(OSError), tempfile.TemporaryDirectory(dir=folder):
        return True
    return False


def check_folder(target: str) -> None:
    """Raise `UsageError` for a target that is to be a folder and is a file or cannot be written, before the work."""
    if Path(target).exists() and not Path(target).is_dir():
        raise UsageError(f"cannot write to {target}: it is a file, and a folder is needed")
    check_writable(target, folder=True)


class ProgressCallback(Protocol):
    """Called now and then by what works, with the number of executions done and a text on the progress."""

    def __call__(self, executions: int, text: str = "", /) -> None: ...


LINE_EVERY = 10.0  # seconds between lines where they cannot be redrawn
LINES = 20  # of so many items each gets one
BAR_FROM = 100  # columns; a narrower terminal has room for numbers only


def _cell(text: str) -> str:
    """A text for the moving line, which is drawn behind the border that all else that is printed passes."""
    return escape(in_a_line(text))


class ProgressDisplay:
    """Progress over a known number of items."""

    def __init__(self, total: int, noun: str) -> None:
        self._console = terminal(stderr=True)
        self._console.file = sys.stderr  # also while code of somebody else's is given another one
        self._total, self._done = total, 0
        self._live = redraws(self._console)
        self._progress = Progress(
            *([BarColumn(bar_width=24)] if self._console.width >= BAR_FROM else []),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TextColumn(noun),
            TimeElapsedColumn(table_column=Column(no_wrap=True)),
            # What is left of the line; the numbers before it are never cut.
            TextColumn(
                "{task.description} [dim]{task.fields[note]}",
                table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
            ),
            expand=True,
            console=self._console,
            transient=True,
            disable=not self._live,
            auto_refresh=False,  # no thread of its own: a search may fork this process
        )
        self._printed_at = time.monotonic()

    @contextmanager
    def running(self) -> Iterator[ProgressDisplay]:
        """Show the progress as long as the context lasts."""
        with self._progress:
            self._task = self._progress.add_task("", total=self._total, note="")
            yield self

    def describe(self, description: str) -> None:
        """Show what is being worked on."""
        self._progress.update(self._task, description=_cell(description), note="", refresh=True)

    def describing(self, report: ProgressCallback) -> Callable[[str, int], None]:
        """Return what shows both what is being worked on and how much of it is done, by the item's callback."""

        def show(what: str, count: int) -> None:
            self.describe(what)
            report(count)

        return show

    def note(self, name: str, text: str) -> None:
        """Show the progress of one item."""
        self._progress.update(self._task, note=_cell(text), refresh=True)
        if not self._live and time.monotonic() - self._printed_at > LINE_EVERY:
            self._line(f"[{self._done}/{self._total}] {name}: {text} ...")

    def _line(self, text: str) -> None:
        self._printed_at = time.monotonic()
        self._console.print(text, markup=False)

    def finished(self, name: str, seconds: float, executions: int = 0) -> None:
        """Count an item that ended; where lines cannot be redrawn, print one, of many items one now and then."""
        self._done += 1
        self._progress.update(self._task, completed=self._done, refresh=True)
        due = self._total <= LINES or self._done == self._total
        if not self._live and (due or time.monotonic() - self._printed_at > LINE_EVERY):
            detail = f", {quantity(executions, 'execution')}" if executions else ""
            self._line(f"[{self._done}/{self._total}] {name}: {seconds:.1f} s{detail}")

    def completed(self, done: int, name: str, text: str) -> None:
        """Show that `done` of the items ended, without a line for each."""
        self._done = done
        self._progress.update(self._task, completed=done, note=_cell(text), refresh=True)
        if not self._live and time.monotonic() - self._printed_at > LINE_EVERY:
            self._line(f"[{done}/{self._total}] {name}: {text} ...")

    @contextmanager
    def item(self, name: str) -> Iterator[ProgressCallback]:
        """Work on one item in this process; gives the callback for its progress."""
        begun = time.monotonic()
        self.describe(name)
        executions = 0

        def report(count: int, text: str = "", /) -> None:
            nonlocal executions
            executions = count
            rate = count / max(time.monotonic() - begun, 1e-9)
            self.note(name, text or f"{quantity(count, 'execution')}, {rate:,.0f}/s")

        yield report
        self.finished(name, time.monotonic() - begun, executions)
