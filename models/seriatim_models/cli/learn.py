"""`seriatim learn`: the lessons, in the terminal."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import rich_click as click
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Markdown, MarkdownElement
from rich.syntax import Syntax
from rich.text import Text

from seriatim_models.cli.console import Outputs, put
from seriatim_models.cli.options import HELP, lines
from seriatim_models.cli.running import run_command
from seriatim_models.cli.usage_errors import UsageError
from seriatim_models.report import lessons
from seriatim_models.report.lessons import Lesson
from seriatim_models.report.terminal import quantity, table, titled

if TYPE_CHECKING:
    from seriatim_models.explorer import Counterexample

READABLE = 100  # columns; longer lines of prose are hard to read, programs are shorter


@click.command(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim learn                        the chapters
        seriatim learn 1                      read the first
        seriatim learn 1 --run                run what it runs
        seriatim learn 1 --html lesson.html   with its interleavings to step through
        seriatim learn --html lessons         all chapters, into that folder
        seriatim learn --notebook lessons     all, as notebooks for Jupyter
        seriatim learn 1 --start mine.py      begin the exercise
        seriatim learn 1 --check mine.py      is it right? (0 yes, 1 not yet)
        seriatim learn 1 --hint               a hint; --hint 2 is the next
        seriatim learn 1 --answer             one that is
        """
    ),
)
@click.argument("chapter", metavar="[N]", type=int, required=False)
@click.option("--run", "running", is_flag=True, help="Run the chapter's programs and commands.")
@click.option("--start", metavar="FILE", help="Write what the exercise starts from.")
@click.option("--check", "mine", metavar="FILE", help="Check your answer to the exercise.")
@click.option(
    "--hint",
    metavar="K",
    type=int,
    is_flag=False,
    flag_value=1,
    help="Show a hint, the first or the K-th.",
)
@click.option("--answer", is_flag=True, help="Show an answer.")
@click.option("--html", metavar="FILE|DIR", help="Write the chapter, or all, as pages.")
@click.option(
    "--notebook", metavar="FILE|DIR", help="Write the chapter, or all, as notebooks for Jupyter."
)
@click.rich_config(help_config=HELP)
@click.pass_context
def learn(
    context: click.Context,
    chapter: int | None,
    running: bool,
    start: str | None,
    mine: str | None,
    hint: int | None,
    answer: bool,
    html: str | None,
    notebook: str | None,
) -> int:
    """Lessons: from two threads and one message to auditing a real broker, with exercises."""
    from seriatim_models.cli import lesson_runner

    asked = [running, start, mine, hint, answer, html, notebook]
    if sum(each is not None and each is not False for each in asked) > 1:
        raise UsageError(
            "choose one of --run, --start, --check, --hint, --answer, --html and --notebook"
        )
    chapters = lessons.all_in(lesson_runner.folder())
    out = Outputs(html=html)
    console = out.console
    if chapter is None:
        if running or answer or any(each is not None for each in (start, mine, hint)):
            raise UsageError("which chapter? `seriatim learn` lists them")
        return whole_book(chapters, html, notebook, console)
    if not 1 <= chapter <= len(chapters):
        raise UsageError(f"there is no chapter {chapter}; they are numbered 1 to {len(chapters)}")
    lesson = chapters[chapter - 1]
    if running:
        return run(lesson, console, context.find_root().command)
    if start is not None:
        return begin(lesson, start, console)
    if mine is not None:
        return check_answer(lesson, Path(mine), console)
    if hint is not None:
        return give_hint(lesson, hint, console)
    if html is not None:
        out.put(html, lessons.page(lesson, lesson_runner.stories(lesson), []).encode())
        return 0
    if notebook is not None:
        out.put(notebook, lessons.notebook(lesson))
        return 0
    shown = lesson.hidden if answer else lesson.shown
    console.print(prose(shown), width=min(console.width, READABLE))
    return 0


def whole_book(
    chapters: list[Lesson], html: str | None, notebook: str | None, console: Console
) -> int:
    """Write all chapters as pages or as notebooks into a folder, or print the table of them."""
    if html is not None:
        return write_all(chapters, Path(html), console)
    if notebook is not None:
        return write_notebooks(chapters, Path(notebook), console)
    return contents(chapters, console)


def contents(chapters: list[Lesson], console: Console) -> int:
    """Print the table of chapters."""
    from seriatim_models.cli import learned

    done = learned.names()
    shown = table("n", "chapter", "question", right=("n",))
    for lesson in chapters:
        title = f"{lesson.title} [right]" if lesson.name in done else lesson.title
        shown.add_row(str(lesson.number), title, lesson.question)
    console.print(titled("Lessons: seriatim learn N", shown))
    if done:
        next_one = next((c for c in chapters if c.name not in done), None)
        after = f"; next: seriatim learn {next_one.number}" if next_one else ""
        solved = len(done & {c.name for c in chapters})
        console.print(f"{solved} of {len(chapters)} exercises are right{after}")
    return 0


def write_all(
    chapters: list[Lesson], into: Path, console: Console | None = None, back: str = ""
) -> int:
    """Write a page for each chapter into a folder, and print where, if there is a console.

    `back` is a link to the report that they belong to.
    """
    from seriatim_models.cli import lesson_runner

    for lesson in chapters:
        file = into / f"{lesson.name}.html"
        put(str(file), lessons.page(lesson, lesson_runner.stories(lesson), chapters, back).encode())
        if console is not None:
            console.print(Text(str(file)), soft_wrap=True)
    return 0


def write_notebooks(chapters: list[Lesson], into: Path, console: Console) -> int:
    """Write a notebook for each chapter into a folder, and print where."""
    for lesson in chapters:
        file = into / f"{lesson.name}.ipynb"
        put(str(file), lessons.notebook(lesson))
        console.print(Text(str(file)), soft_wrap=True)
    return 0


class _LeftMargin(CodeBlock):
    """A program as it would stand in a file: it can be copied from the terminal and run."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        language = self.lexer_name or "text"
        yield Syntax(
            str(self.text).rstrip(),
            language,
            theme="ansi_dark",
            background_color="default",
            word_wrap=True,  # what a program printed may be wider than the terminal, and is not cut
        )


class _Prose(Markdown):
    """A chapter; what is inside a fence stands at the left margin."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "fence": _LeftMargin,
        "code_block": _LeftMargin,
    }


def prose(text: str) -> Markdown:
    """The Markdown of a chapter for the terminal."""
    return _Prose(text)


def run(lesson: Lesson, console: Console, app: click.Command) -> int:
    """Run each program and each command of `app` in turn, each shown before what it prints."""
    from seriatim_models.cli import lesson_runner

    runner = lesson_runner.LessonRunner()
    for step in lesson.runs:
        if step.kind == "command":
            console.print(Text(f"$ {step.source}", style="bold"), soft_wrap=True)
        else:
            console.print(prose(f"```python\n{step.source}```"), width=READABLE)
        sys.stdout.flush()
        runner.run(step, partial(run_command, app))
    return 0


def begin(lesson: Lesson, target: str, console: Console) -> int:
    """Write what the exercise starts from; an existing file is never overwritten."""
    if target != "-" and Path(target).exists():
        raise UsageError(f"{target} exists already; choose another name")
    put(target, lesson.start.encode())
    if target != "-":
        console.print(
            Text(f"{target} is yours; then: seriatim learn {lesson.number} --check {target}"),
            soft_wrap=True,
        )
    return 0


def give_hint(lesson: Lesson, n: int, console: Console) -> int:
    """Print one hint, and how to get the next."""
    hints = lesson.hints
    if not 1 <= n <= len(hints):
        raise UsageError(f"chapter {lesson.number} has hints 1 to {len(hints)}")
    console.print(prose(hints[n - 1]), width=min(console.width, READABLE))
    after = f"--hint {n + 1}" if n < len(hints) else "--answer"
    console.print(Text(f"next: seriatim learn {lesson.number} {after}", style="dim"))
    return 0


def _show_interleaving(found: Counterexample, console: Console) -> None:
    """Print what goes wrong, and of its steps those that matter."""
    from seriatim_models.report.interleaving_text import InterleavingText
    from seriatim_models.report.stepper import annotated, story

    shown = annotated(story(found), found)
    console.print(Text(f"{found.what}, in {quantity(len(shown.steps), 'step')}\n"))
    console.print(InterleavingText(shown))
    if shown.no_return:
        console.print(Text(shown.no_return))


def check_answer(lesson: Lesson, mine: Path, console: Console) -> int:
    """Check a learner's file and print the result; returns the exit code."""
    from seriatim_models.cli import exercises, learned

    try:
        results = exercises.check(lesson, mine)
    except exercises.NotYet as wrong:
        console.print(Text(f"Not yet: {wrong}", style="bold red"))
        console.print(Text(f"a hint: seriatim learn {lesson.number} --hint", style="dim"))
        return 1
    name, last = next(reversed(results.items()), ("", None))
    if last is None or last.verdict == "ok":
        traces = sum(r.traces or 0 for r in results.values())
        over = (
            f": {quantity(len(results), 'program')}, {quantity(traces, 'trace')}, and nothing is wrong"
            if results
            else ""
        )
        console.print(Text(f"Right{over}.", style="bold green"))
        learned.add(lesson.name)
        return 0
    for other, result in list(results.items())[:-1]:
        console.print(
            Text(f"{other}: right, {quantity(result.traces or 0, 'trace')}", style="green")
        )
    if last.counterexample is None:
        console.print(Text(f"{name}: not decided: {last.why}", style="yellow"))
        return 3
    console.print(Text(f"{name}: not yet:", style="bold red"))
    _show_interleaving(last.counterexample, console)
    console.print(Text(f"a hint: seriatim learn {lesson.number} --hint", style="dim"))
    return 1
