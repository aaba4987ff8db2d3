"""Checking a learner's answer to the exercise of a chapter.

Beside a chapter `05-….md` lies `05-….py`, whose function `check` judges an answer: it raises AssertionError with
what is wrong, or returns programs that must be ok under every schedule. What any exercise asks for is checked first, by
what it starts from: each name is there, a number is a number, and a function can be called as it is by the judge.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

from seriatim_models.cli.usage_errors import UsageError
from seriatim_models.conformance.patience import interrupted
from seriatim_models.explorer import Result, World, explore
from seriatim_models.explorer.errors import ExplorerError
from seriatim_models.report.lessons import Lesson
from seriatim_models.source_files import unloaded_module

Program = Callable[[World], None]
Check = Callable[[ModuleType], Mapping[str, Program] | None]

SECONDS = 20.0  # for each program of an exercise; the answers need less than one
STEPS_MAX = 400
NAME = "seriatim_answer"  # of the module that the learner's file becomes


class NotYet(Exception):
    """An answer is wrong; the message says which part of it, and why."""


class _Endless(BaseException):
    """The answer ran for `SECONDS` without coming back; no handler for Exception catches it."""


def check(lesson: Lesson, mine: Path) -> dict[str, Result]:
    """Check a learner's file; returns the result of each program by its name; the last may be violated.

    Raises `UsageError` if the file cannot be read or is no Python, `NotYet` if the answer is wrong.
    """
    judge: Check = _module(Path(lesson.file).with_suffix(".py"), "seriatim_judge").check
    answer = _answer(mine)
    _check_shape(lesson.start, answer, mine)
    results: dict[str, Result] = {}
    with _faults_are_the_learners(mine), interrupted(SECONDS, _Endless()):
        programs = judge(answer) or {}
    for name, program in programs.items():
        with _faults_are_the_learners(mine):
            found = explore(program, name=name, seconds=SECONDS, max_steps=STEPS_MAX)
        results[name] = found
        if found.verdict != "ok":
            break
    return results


def _answer(mine: Path) -> ModuleType:
    """The learner's file as a module."""
    try:
        with _faults_are_the_learners(mine), interrupted(SECONDS, _Endless()):
            return _module(mine.resolve(), NAME)
    except OSError as error:
        raise UsageError(f"cannot read {mine}: {error.strerror}") from error
    except SyntaxError as error:
        raise UsageError(f"{mine}, line {error.lineno}: {error.msg}") from error


def _module(path: Path, name: str) -> ModuleType:
    if path.suffix != ".py":
        raise UsageError(f"{path}: an answer is a Python file, whose name ends in .py")
    made, loader = unloaded_module(path, name)
    loader.exec_module(made)
    return made


# --------------------------------------------------------------------------------------------------
# What any exercise asks for
# --------------------------------------------------------------------------------------------------


def _check_shape(start: str, answer: ModuleType, mine: Path) -> None:
    """Compare an answer with what the exercise starts from. Raises `NotYet`."""
    for node in ast.parse(start).body:
        if isinstance(node, ast.FunctionDef):
            _check_function(node, answer, mine)
        elif (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and type(node.value.value) is int  # any other value may be of the learner's choice
        ):
            _check_number(ast.unparse(node.targets[0]), answer, mine)


def _found(name: str, answer: ModuleType, mine: Path) -> object:
    if not hasattr(answer, name):
        raise NotYet(f"{mine}: has no {name!r}, which the exercise asks for")
    return getattr(answer, name)


def _check_number(name: str, answer: ModuleType, mine: Path) -> None:
    found = _found(name, answer, mine)
    if type(found) is not int:
        kind = type(found).__name__
        raise NotYet(
            f"{mine}: {name} is {found!r:.60}, of type {kind}; a whole number is asked for"
        )


def _check_function(node: ast.FunctionDef, answer: ModuleType, mine: Path) -> None:
    found = _found(node.name, answer, mine)
    names = [argument.arg for argument in node.args.args]
    asked = f"{node.name}({', '.join(names)})"
    if not callable(found):
        raise NotYet(f"{mine}: {node.name} is {found!r:.60}; a function {asked} is asked for")
    if inspect.iscoroutinefunction(found) or inspect.isgeneratorfunction(found):
        raise NotYet(
            f"{mine}: {node.name} is called and never runs: a plain `def` is asked for, no async and no yield"
        )
    with contextlib.suppress(ValueError):  # some built-ins have no signature
        signature = inspect.signature(found)
        try:
            signature.bind(*names)
        except TypeError as error:
            raise NotYet(
                f"{mine}: {node.name}{signature} cannot be called as {asked}: {error}"
            ) from error


# --------------------------------------------------------------------------------------------------
# What goes wrong in the learner's own code
# --------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _faults_are_the_learners(mine: Path) -> Iterator[None]:
    """Whatever the learner's code raises, or that it never ends, is a `NotYet` with its line."""
    try:
        yield
    except (NotYet, UsageError, SyntaxError, OSError):
        raise
    except _Endless as error:
        where = _where(error, mine)
        raise NotYet(f"{mine}, {where}: still running after {SECONDS:g} s; does it end?") from None
    except AssertionError as wrong:
        if (where := _where(wrong, mine)) and not str(wrong):
            raise NotYet(f"{mine}, {where}: an assertion of yours fails") from wrong
        raise NotYet(str(wrong)) from wrong
    except ExplorerError as error:  # it says the place itself
        raise NotYet(str(error)) from error
    except BaseException as error:
        if isinstance(error, AttributeError) and getattr(error.obj, "__name__", "") == NAME:
            raise NotYet(f"{mine}: has no {error.name!r}, which the exercise asks for") from error
        if not (where := _where(error, mine)) or _is_ctrl_c(error, mine):
            raise  # not of the learner's making
        raise NotYet(f"{mine}, {where}: {type(error).__name__}: {error}".rstrip(": ")) from error


def _is_ctrl_c(error: BaseException, file: Path) -> bool:
    """Whether it interrupts from outside; what the learner's file raises itself is no Ctrl-C."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    raised = Path(last.filename) == file.resolve() and "raise" in (last.line or "")
    return isinstance(error, KeyboardInterrupt) and not raised


def _where(error: BaseException, file: Path) -> str:
    """The last line of the file that the error came through; empty if it did not."""
    through = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename) == file.resolve()
    ]
    return f"line {through[-1]}" if through else ""
