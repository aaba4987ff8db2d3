"""Running a chapter: its programs, its commands, and the interleavings that they find."""

from __future__ import annotations

import contextlib
import io
import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from seriatim_models.cli import recordings
from seriatim_models.cli.audit import find_profile, run_audit
from seriatim_models.cli.bug_catalogue import counterexample_run
from seriatim_models.cli.jobs import SearchOptions
from seriatim_models.cli.own_code import is_own, own_runs
from seriatim_models.cli.usage_errors import UsageError
from seriatim_models.explorer import Result
from seriatim_models.report.lessons import Lesson, LessonStep
from seriatim_models.report.stepper import annotated, story
from seriatim_models.report.story import Story

CHECKOUT = Path(__file__).resolve().parents[3] / "spec" / "lessons"
INSTALLED = Path(sys.prefix) / "share" / "seriatim" / "lessons"


def folder() -> Path:
    """The folder of the chapters: in a checkout, or where the wheel put it."""
    for path in (CHECKOUT, INSTALLED):
        if path.is_dir():
            return path
    raise UsageError(f"the lessons are not installed: neither {CHECKOUT} nor {INSTALLED} is there")


class LessonRunner:
    """Runs the steps of one chapter, whose programs share one namespace."""

    def __init__(self) -> None:
        self.names: dict[str, object] = {"__name__": "lesson"}
        self._shown: set[int] = set()

    def run_program(self, step: LessonStep) -> None:
        """Run a program of the chapter; it prints what a reader would see."""
        exec(compile(step.source, f"<line {step.line}>", "exec"), self.names)

    def run(self, step: LessonStep, run_command: Callable[[list[str]], int]) -> None:
        """Run a program, or a command by calling `run_command` with its arguments."""
        if step.kind == "python":
            self.run_program(step)
            return
        word, *arguments = shlex.split(step.source)
        if word != "seriatim":
            raise UsageError(f"a chapter runs seriatim and Python, not {word!r}")
        run_command(arguments)

    def story(self, step: LessonStep) -> Story | None:
        """The interleaving that this step of the chapter found, once its programs were run."""
        if step.kind == "command":
            words = shlex.split(step.source)
            return _audit_story(words[2]) if words[1] == "audit" else _check_story(words)
        for value in self.names.values():
            if isinstance(value, Result) and value.counterexample and id(value) not in self._shown:
                self._shown.add(id(value))
                return annotated(story(value.counterexample), value.counterexample)
        return None


def _check_story(words: list[str]) -> Story | None:
    """The story of what `seriatim check --mutant ID`, or a test in a file, is found to do; None if nothing is wrong."""
    if words[1] == "check" and is_own(words[2]):
        [ran] = own_runs((words[2],), SearchOptions(), (), None, 1)
        return None if ran.counterexample is None else ran.counterexample.story
    if words[1] != "check" or "--mutant" not in words:
        return None
    return counterexample_run(words[words.index("--mutant") + 1]).run.story


def _audit_story(path: str) -> Story | None:
    """The story of the violation that `seriatim audit PATH` finds in a recording that the chapter wrote."""
    if not Path(path).is_file():
        return None
    profile = find_profile("any")
    before = recordings.stamps([path])
    findings = run_audit((path,), profile, "local", None).findings
    by_run = recordings.stories([path], profile, findings, f"seriatim audit {path}", before)
    return next(iter(by_run.values()))


def stories(lesson: Lesson) -> dict[int, Story]:
    """Every interleaving of a chapter, by the line of its fence.

    Its programs are run; their output is discarded, and so are the files that they write.
    """
    runner = LessonRunner()
    made = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for step in lesson.runs:
            if step.kind == "python":
                with contextlib.redirect_stdout(io.StringIO()):
                    runner.run_program(step)
            if (shown := runner.story(step)) is not None:
                made[step.line] = shown
    return made
