"""An interleaving for a terminal: a column a thread, the steps that meet others, and where it went wrong."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from seriatim_models.report.story import StepRow, Story, race, steps_that_matter
from seriatim_models.report.terminal import COLUMNS_LEAST

NARROW = 14  # no column is narrower


class InterleavingText:
    """The steps of a story in the width that there is.

    Shown are the steps that matter; the others are counted. `verbose` shows all, with what each recorded. Bold are
    the two steps of the `race`, red is the first bad one.
    """

    def __init__(self, story: Story, verbose: bool = False) -> None:
        self._story = story
        self._verbose = verbose
        matter = steps_that_matter(story)
        self._shown = [step for step in story.steps if verbose or step.n in matter]
        self._race = race(story) or ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self._lines(options.max_width):
            line.no_wrap, line.overflow = True, "ignore"
            yield line

    def _lines(self, width: int) -> Iterator[Text]:
        story = self._story
        number = len(str(len(story.steps)))
        lanes = max(len(story.threads), 1)
        room = max(NARROW, (width - number) // lanes - 3)
        needed = [len(name) for name in story.threads]
        for step in self._shown:
            needed[step.lane] = max([needed[step.lane], *map(len, self._texts(step))])
        widths = [min(room, n) for n in needed]
        names = [_folded(name, w) for name, w in zip(story.threads, widths, strict=True)]
        for parts in zip_longest(*names, fillvalue=""):
            yield _row("", number, dict(enumerate(parts)), widths, "bold")
        yield Text("-" * number + "".join("-+-" + "-" * w for w in widths))
        before = 0
        for step in self._shown:
            if step.n - before > 1:
                yield Text(f"{'':>{number}} | ... {_steps(step.n - before - 1)}", style="dim")
            before = step.n
            if step.n == story.bad and story.no_return:
                yield Text(f"{'':>{number}} | up to here it could still end well", style="dim")
            style = "bold red" if step.n == story.bad else "bold" if step.n in self._race else ""
            mark = str(step.n)
            for text in self._texts(step):
                for part in _folded(text, widths[step.lane]):
                    yield _row(mark, number, {step.lane: part}, widths, style)
                    mark = ""
        if len(story.steps) > before:
            yield Text(f"{'':>{number}} | ... {_steps(len(story.steps) - before)}", style="dim")
        if story.left_out:
            yield Text(story.left_out, style="dim")
        yield from self._sources(number, width)

    def _sources(self, number: int, width: int) -> Iterator[Text]:
        """Where in the source the two steps of the race and the first bad one are, if the columns do not say it."""
        read = {*self._race, self._story.bad}
        silent = [s for s in self._shown if s.n in read and not s.line]
        steps = [(s.n, *s.place) for s in silent if s.place]
        if steps:
            yield Text("")
        for n, file, line, function in steps:
            text = self._story.sources[file].get(line, "").strip()
            where = f"{n:>{number}}  {file}:{line} in {function}"
            style = "bold red" if n == self._story.bad else "bold"
            if len(f"{where}  {text}") <= width:
                yield Text(f"{where}  {text}", style=style)
                continue
            yield from (Text(part, style=style) for part in _folded(where, width))
            indent = " " * (number + 4)
            for part in _folded(text, width - len(indent)):
                yield Text(indent + part, style=style)

    def _texts(self, step: StepRow) -> list[str]:
        file, _, source = step.line.partition(": ")
        shown = [f"{step.op} -> {step.result}" if step.result else step.op]
        shown += [f"  {part}" for part in (file, source) if part]
        return shown + [f"  * {record}" for record in step.records if self._verbose]


def _steps(count: int) -> str:
    return f"{count} step{'s' * (count != 1)}"


def _row(mark: str, number: int, cells: dict[int, str], widths: list[int], style: str) -> Text:
    row = Text(f"{mark:>{number}}")
    for lane, width in enumerate(widths):
        row.append(" | ").append(f"{cells.get(lane, ''):<{width}}", style=style)
    row.rstrip()
    return row


def _folded(text: str, width: int) -> list[str]:
    parts = []
    width = max(width, COLUMNS_LEAST)
    while len(text) > width:
        cut = text.rfind(" ", 1, width + 1)
        cut = cut if cut > width // 2 else width
        parts.append(text[:cut].rstrip())
        text = "  " + text[cut:].lstrip()
    return [*parts, text]
