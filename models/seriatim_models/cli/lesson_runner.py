"""Running what a chapter runs: its programs, its commands, and the check of its exercise."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import shlex
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import cast

from seriatim_models.cli import counterexample_annotation, recordings
from seriatim_models.cli.audit import find_profile, run_audit
from seriatim_models.cli.report_builder import program_run
from seriatim_models.cli.usage_errors import Mistake
from seriatim_models.explorer import Counterexample, Result, World, explore
from seriatim_models.explorer.search.point_of_no_return import point_of_no_return
from seriatim_models.report.lessons import Lesson, Run
from seriatim_models.report.stepper import Story, story

CHECKOUT = Path(__file__).resolve().parents[3] / "spec" / "lessons"
INSTALLED = Path(sys.prefix) / "share" / "seriatim" / "lessons"

Program = Callable[[World], None]


def folder() -> Path:
    """Where the chapters are: in a checkout, or where the wheel put them."""
    for found in (CHECKOUT, INSTALLED):
        if found.is_dir():
            return found
    raise Mistake(f"the lessons are not installed: neither {CHECKOUT} nor {INSTALLED} is there")


class Lab:
    """One chapter's namespace. `run` prints what a reader would see."""

    def __init__(self) -> None:
        self.names: dict[str, object] = {"__name__": "lesson"}
        self.looked_at: set[int] = set()

    def run(self, step: Run) -> None:
        if step.kind == "python":
            exec(compile(step.source, f"<line {step.line}>", "exec"), self.names)
        else:
            self.command(step.source)

    def command(self, line: str) -> int:
        from seriatim_models import cli

        word, *arguments = shlex.split(line)
        if word != "seriatim":
            raise Mistake(f"a chapter runs seriatim and Python, not {word!r}")
        return cli.run(arguments)

    def story(self, step: Run) -> Story | None:
        """The interleaving that this step of the chapter, which was run, came upon."""
        if step.kind == "command":
            words = shlex.split(step.source)
            return _convicted(words[2]) if words[1] == "audit" else _found_by(words)
        for value in self.names.values():
            if isinstance(value, Result) and value.counterexample and self._new(value):
                return self._lost(value.counterexample)
        return None

    def _lost(self, case: Counterexample) -> Story:
        """With the step in which it was lost; a chapter calls its program `program`."""
        program = cast(Program, self.names["program"])
        lost = point_of_no_return(program, case)
        return (
            story(case)
            if lost is None
            else counterexample_annotation.told(story(case), lost.step, str(lost))
        )

    def _new(self, result: Result) -> bool:
        new = id(result) not in self.looked_at
        self.looked_at.add(id(result))
        return new


def _found_by(words: list[str]) -> Story | None:
    """What `seriatim check --mutant ID` finds."""
    from seriatim_models.programs import MUTANTS, PROGRAMS, check_program

    if words[1] != "check" or "--mutant" not in words:
        return None
    mutant = MUTANTS[words[words.index("--mutant") + 1]]
    found = program_run(check_program(PROGRAMS[mutant.program], mutant), "dpor", [])
    return counterexample_annotation.decided(found).story


def _convicted(path: str) -> Story | None:
    """What `seriatim audit PATH` convicts, of what the chapter itself wrote."""
    if not Path(path).is_file():
        return None
    profile = find_profile("any")
    found = run_audit((path,), profile, "local", None).findings
    told = recordings.stories([path], profile, found, f"seriatim audit {path}")
    return next(iter(told.values()))


def stories(lesson: Lesson) -> dict[int, Story]:
    """Every interleaving of a chapter, by the line of its fence.

    Its programs are run; what they print is lost, and so are the files that they write.
    """
    place = Lab()
    found = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for step in lesson.runs:
            if step.kind == "python":
                with contextlib.redirect_stdout(io.StringIO()):
                    place.run(step)
            told = place.story(step)
            if told is not None:
                found[step.line] = told
    return found


# --------------------------------------------------------------------------------------------------
# Exercises
# --------------------------------------------------------------------------------------------------

Check = Callable[[ModuleType], Mapping[str, Program] | None]
"""Raises AssertionError with what is wrong, or gives programs that must be well under every schedule."""

SECONDS = 20.0  # for each program of an exercise; the answers need less than one
STEPS_MAX = 400


def check(lesson: Lesson, mine: Path) -> list[Result]:
    """Judge a learner's file: what was explored, of which the last may be violated.

    Raises `Mistake` if the file cannot be run, AssertionError if it is wrong.
    """
    judge: Check = _module(Path(lesson.file).with_suffix(".py"), "judge").check
    try:
        answer = _module(mine.resolve(), "mine")
    except OSError as error:
        raise Mistake(f"cannot read {mine}: {error.strerror}") from error
    except SyntaxError as error:
        raise Mistake(f"{mine}, line {error.lineno}: {error.msg}") from error
    except Exception as error:
        raise Mistake(f"{mine}, {_where(error, mine)}: {type(error).__name__}: {error}") from error
    found: list[Result] = []
    try:
        for name, program in (judge(answer) or {}).items():
            found.append(explore(program, name=name, seconds=SECONDS, max_steps=STEPS_MAX))
            if found[-1].verdict != "ok":
                break
    except AttributeError as error:
        if error.obj is answer:
            raise Mistake(f"{mine}: has no {error.name!r}, which the exercise asks for") from error
        raise
    return found


def _where(error: Exception, file: Path) -> str:
    lines = [
        f.lineno
        for f in traceback.extract_tb(error.__traceback__)
        if Path(f.filename) == file.resolve()
    ]
    return f"line {lines[-1]}" if lines else "at the beginning"


def _module(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"seriatim_lesson_{name}", path)
    if spec is None or spec.loader is None:
        raise Mistake(f"{path}: an answer is a Python file, whose name ends in .py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made
