"""An interleaving for a terminal: a column a thread, the steps that meet others, and where it went wrong."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from seriatim_models.report.stepper import StepRow, Story

NARROW = 14  # no column is narrower


class InterleavingText:
    """The steps of a story in the width that there is.

    Shown are steps of which the order matters: with a step of another thread on the same cell; a change of a list that
    others read, and a look that found its end; where a thread was interrupted; what shows the violation. The others
    are counted. `verbose` shows all, with what each recorded. Bold are the two steps of the `race`, red is the first
    bad one.
    """

    def __init__(self, story: Story, verbose: bool = False) -> None:
        self._story = story
        self._verbose = verbose
        meeting = {n for pair in story.arrows for n in pair} | _in_shared_lists(story)
        self._shown = [
            step
            for step in story.steps
            if verbose or step.witness or step.preempts or step.n in meeting or step.n == story.bad
        ]
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
        yield _row("", number, dict(enumerate(story.threads)), widths, "bold")
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

    def _texts(self, step: StepRow) -> list[str]:
        shown = [f"{step.op} -> {step.result}" if step.result else step.op]
        return shown + [f"  * {record}" for record in step.records if self._verbose]


def race(story: Story) -> tuple[int, int] | None:
    """The two steps that met badly: of different threads, on one object, before it was too late; None if none did.

    A thread that acts on what it saw before another changed it: its look and that change, on the object of the first
    bad step. Otherwise the last two steps that met.
    """
    if not story.bad:
        return None
    steps = {step.n: step for step in story.steps}
    bad = steps[story.bad]
    overtaken = [
        (earlier, later)
        for earlier, later in story.arrows
        if later < bad.n
        and steps[earlier].lane == bad.lane
        and _object(steps[earlier]) == _object(bad)
    ]
    met = [pair for pair in story.arrows if pair[1] <= bad.n]
    return max(overtaken or met, key=lambda pair: (pair[1], pair[0]), default=None)


def _object(step: StepRow) -> str:
    return step.op.partition("(")[0].rpartition(".")[0]


def _in_shared_lists(story: Story) -> set[int]:
    """Steps on the links of a list that several threads use: those that changed one or found the end."""
    users: dict[str, set[int]] = {}
    links = [s for s in story.steps if _object(s).rpartition(".")[2] in ("next", "marked")]
    for step in links:
        users.setdefault(_object(step), set()).add(step.lane)
    changed = {_object(s) for s in links if _changes(s)}
    return {
        s.n
        for s in links
        if len(users[_object(s)]) > 1
        and _object(s) in changed
        and (_changes(s) or s.result in ("", "None"))
    }


def _changes(step: StepRow) -> bool:
    return not step.op.endswith(".get()") and step.result != "False"


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
    while len(text) > width:
        cut = text.rfind(" ", 1, width + 1)
        cut = cut if cut > width // 2 else width
        parts.append(text[:cut].rstrip())
        text = "  " + text[cut:].lstrip()
    return [*parts, text]
