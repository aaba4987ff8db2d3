"""`seriatim learn`: the lessons, in the terminal."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import rich_click as click
from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape
from rich.text import Text

from seriatim_models.cli.console import Outputs, put
from seriatim_models.cli.options import HELP, lines
from seriatim_models.cli.running import run_command
from seriatim_models.cli.usage_errors import UsageError
from seriatim_models.report import lessons
from seriatim_models.report.lessons import Lesson
from seriatim_models.report.terminal import table, titled

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
        seriatim learn 1 --start mine.py      begin the exercise
        seriatim learn 1 --check mine.py      is it right? (0 yes, 1 not yet)
        seriatim learn 1 --answer             one that is
        """
    ),
)
@click.argument("chapter", metavar="[N]", type=int, required=False)
@click.option("--run", "running", is_flag=True, help="Run the chapter's programs and commands.")
@click.option("--start", metavar="FILE", help="Write what the exercise starts from.")
@click.option("--check", "mine", metavar="FILE", help="Check your answer to the exercise.")
@click.option("--answer", is_flag=True, help="Show an answer.")
@click.option("--html", metavar="FILE|DIR", help="Write the chapter, or all, as pages.")
@click.rich_config(help_config=HELP)
@click.pass_context
def learn(
    context: click.Context,
    chapter: int | None,
    running: bool,
    start: str | None,
    mine: str | None,
    answer: bool,
    html: str | None,
) -> int:
    """Lessons: from two threads and one message to auditing a real broker, with exercises."""
    from seriatim_models.cli import lesson_runner

    if sum([running, start is not None, mine is not None, answer, html is not None]) > 1:
        raise UsageError("choose one of --run, --start, --check, --answer and --html")
    chapters = lessons.all_in(lesson_runner.folder())
    console = Outputs().console
    if chapter is None:
        if running or start is not None or mine is not None or answer:
            raise UsageError("which chapter? `seriatim learn` lists them")
        if html is not None:
            return write_all(chapters, Path(html), console)
        return contents(chapters, console)
    if not 1 <= chapter <= len(chapters):
        raise UsageError(f"there is no chapter {chapter}; they are numbered 1 to {len(chapters)}")
    lesson = chapters[chapter - 1]
    if running:
        return run(lesson, console, context.find_root().command)
    if start is not None:
        return begin(lesson, start, console)
    if mine is not None:
        return check_answer(lesson, Path(mine), console)
    if html is not None:
        put(html, lessons.page(lesson, lesson_runner.stories(lesson), []).encode())
        return 0
    shown = lesson.hidden if answer else lesson.shown
    console.print(Markdown(shown), width=min(console.width, READABLE))
    return 0


def contents(chapters: list[Lesson], console: Console) -> int:
    """Print the table of chapters."""
    shown = table("n", "chapter", "question", right=("n",))
    for lesson in chapters:
        shown.add_row(str(lesson.number), escape(lesson.title), escape(lesson.question))
    console.print(titled("Lessons: seriatim learn N", shown))
    return 0


def write_all(chapters: list[Lesson], into: Path, console: Console | None = None) -> int:
    """Write a page for each chapter into a folder, and print where, if there is a console."""
    from seriatim_models.cli import lesson_runner

    for lesson in chapters:
        file = into / f"{lesson.name}.html"
        put(str(file), lessons.page(lesson, lesson_runner.stories(lesson), chapters).encode())
        if console is not None:
            console.print(Text(str(file)), soft_wrap=True)
    return 0


def run(lesson: Lesson, console: Console, app: click.Command) -> int:
    """Run each program and each command of `app` in turn, each shown before what it prints."""
    from seriatim_models.cli import lesson_runner

    runner = lesson_runner.LessonRunner()
    for step in lesson.runs:
        if step.kind == "command":
            console.print(Text(f"$ {step.source}", style="bold"), soft_wrap=True)
        else:
            console.print(Markdown(f"```python\n{step.source}```"), width=READABLE)
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


def check_answer(lesson: Lesson, mine: Path, console: Console) -> int:
    """Check a learner's file and print the result; returns the exit code."""
    from seriatim_models.cli import lesson_runner

    try:
        results = lesson_runner.check(lesson, mine)
    except AssertionError as wrong:
        console.print(Text(f"Not yet: {wrong}", style="bold red"), soft_wrap=True)
        return 1
    last = results[-1] if results else None
    if last is None or last.verdict == "ok":
        traces = sum(r.traces or 0 for r in results)
        over = (
            f": {len(results)} programs, {traces:,} traces, and nothing is wrong" if results else ""
        )
        console.print(Text(f"Right{over}.", style="bold green"), soft_wrap=True)
        return 0
    if last.counterexample is None:
        console.print(Text(f"Not decided: {last.why}", style="yellow"), soft_wrap=True)
        return 3
    console.print(Text("Not yet:", style="bold red"))
    console.print(Text(last.counterexample.text(console.width)), soft_wrap=True)
    return 1
