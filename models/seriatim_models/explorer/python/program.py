"""A test function as a program of the explorer: its body is the main thread."""

from __future__ import annotations

import functools
import gc
import inspect
import os
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from seriatim_models.explorer.errors import ExplorerError, Misuse, OutsideModel, SkippedTest
from seriatim_models.explorer.model.execution import refuse_unstarted
from seriatim_models.explorer.model.guard import HARNESS
from seriatim_models.explorer.model.world import World
from seriatim_models.explorer.python.accesses import forget_classes, now
from seriatim_models.explorer.python.asyncio_state import leftovers
from seriatim_models.explorer.python.debugger import stopping
from seriatim_models.explorer.python.execution import LIFETIMES, PythonExecution, Search
from seriatim_models.explorer.python.given import arguments, copied
from seriatim_models.explorer.python.lifetimes import MortalExecution
from seriatim_models.explorer.python.primitives import here
from seriatim_models.explorer.python.sandbox import Sandbox, Sources
from seriatim_models.explorer.python.threads import MainThread, run_to_the_end
from seriatim_models.explorer.python.xunit import Surroundings, bases, undrawn

COLLECT_EVERY = 50
"""Executions between two garbage collections; none happens within one. What few executions leave fits into caches."""
WORTH_IT = 50
"""Objects of an execution for which that is done: where most are alive, each collection would look at them in vain."""
DRAWS_LATER = ("hypothesis.strategies._internal.core", "DataObject")
LIBRARY = str(Path(os.__file__).parent)
SKIPS = {
    ("unittest.case", "SkipTest"),
    ("builtins", "Skipped"),
    ("_pytest.outcomes", "XFailed"),
    ("hypothesis.errors", "UnsatisfiedAssumption"),
}
"""Exceptions with which a test says that it is not meant for this machine, or for what was drawn; pytest gives its own
that module."""
UNDER_MAIN = 'what a script does when it is run, and no test needs, is put under `if __name__ == "__main__":`'
SELDOM = 1000
"""Executions between two where it is not."""


@dataclass(frozen=True)
class Target:
    """A test function, by the module that defines it."""

    module: str
    path: str
    name: str
    """Its name in the module, with dots for a method of a class."""
    args: tuple[Any, ...] = ()
    given: tuple[tuple[str, Any], ...] = ()
    """Arguments by name, which each execution is given a copy of."""
    attributes: tuple[tuple[str, Any], ...] = ()
    """Of the object whose method the test is; what its class does not set is copied from there, too."""

    @property
    def address(self) -> str:
        """The test as a command line names it: its file as seen from the current folder, if it is in there."""
        beside = os.path.relpath(self.path)
        path = self.path if beside.startswith("..") else beside
        return f"{path}::{self.name.replace('.', '::')}"

    @classmethod
    def of(cls, test: Callable[..., object], given: Mapping[str, object] | None = None) -> Target:
        """Where a function is defined. Raises `Misuse` for what cannot be found again by its name.

        `given` are arguments by name; each execution is given a copy of them.
        """
        if not callable(test):
            raise Misuse(
                f"{test!r} cannot be called: name a test function and do not call it: explore(test)"
            )
        function = inspect.unwrap(test)
        attributes: dict[str, Any] = {}
        owner = None
        if inspect.ismethod(
            function
        ):  # whose object is that of pytest; each execution makes one anew
            attributes = getattr(function.__self__, "__dict__", {})
            owner = _class_of(function)
            function = inspect.unwrap(function.__func__)
        if not inspect.isfunction(function):
            raise Misuse(f"{test!r} is no function written in Python: give a test function")
        defined, name = owner or (function, function.__qualname__)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise Misuse(
                f"{name} has a `yield`: calling it runs no line of it. Write a plain function"
            )
        if "<locals>" in name or "<lambda>" in name:
            raise Misuse(
                f"{name} is defined inside another function. A test is run anew with its module in each execution, so "
                "it must have a name there: define it at the top of the module"
            )
        path = inspect.getsourcefile(defined)
        if path is None or not Path(path).is_file():
            raise Misuse(f"the source of {name} cannot be found: put it into a file")
        patched = sum(  # what `unittest.mock.patch` gives comes last
            p.attribute_name is None and p.new is mock.DEFAULT
            for p in getattr(test, "patchings", ())
        )
        needed = [
            p.name
            for p in inspect.signature(function).parameters.values()
            if p.default is p.empty
            and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
            and p.name not in (given or {})
        ][: -patched or None]
        if needed and not name.count("."):
            raise Misuse(
                f"{name} has the parameter {needed[0]}: a test is run many times, each time anew, so it takes no "
                "fixtures. Make what it needs in its body"
            )
        _copied_for_each(name, given or {})
        return cls(
            defined.__module__,
            path,
            name,
            given=tuple((given or {}).items()),
            attributes=tuple(attributes.items()),
        )


def _class_of(method: types.MethodType) -> tuple[type, str] | None:
    """The class of a method's object, which may have it from another class, and the method's name from its module on.

    None if no name of a module leads to it.
    """
    kind = method.__self__ if isinstance(method.__self__, type) else type(method.__self__)
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    if found is not kind:
        return None
    function = inspect.unwrap(method.__func__)
    held = {n: value for c in reversed(kind.__mro__) for n, value in vars(c).items()}
    names = [n for n, value in held.items() if _inner(value) is function]
    if not names:
        return None
    return (
        kind,
        f"{kind.__qualname__}.{function.__name__ if function.__name__ in names else names[0]}",
    )


def _inner(held: Any) -> Any:
    """The function in what a class holds, without its decorators."""
    held = getattr(held, "__func__", held)
    return inspect.unwrap(held) if inspect.isfunction(held) else held


def _copied_for_each(test: str, given: Mapping[str, object]) -> None:
    """Raise `Misuse` for arguments that each execution cannot be given a copy of."""
    for argument, value in given.items():
        if DRAWS_LATER in bases(type(value)):
            raise Misuse(
                f"{test} is given {argument} of data(), which would draw something else in each execution: "
                "let @given draw what the test needs"
            )
        try:
            copied(value, sys.modules.__getitem__)
        except Exception as error:
            raise Misuse(
                f"{test} is given {argument}, which cannot be copied for each execution ({error}). "
                "Make it in the body of the test"
            ) from error


@contextmanager
def _as_imported() -> Iterator[None]:
    """For Hypothesis no test is running: at the head of a module it takes ``@given`` within one for a mistake."""
    control: Any = sys.modules.get("hypothesis.control")
    running = getattr(control, "_current_build_context", None)
    if running is None:
        yield
    else:
        with running.with_value(None):
            yield


def _said(error: BaseException) -> str:
    """An exception of the user's module: its last line there, its kind and its text; of an import only its text."""
    text = " ".join(str(error).split())
    if isinstance(error, ImportError):
        return text
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not f.filename.startswith((str(HARNESS), LIBRARY, "<"))]
    where = f"{os.path.relpath(own[-1].filename)}:{own[-1].lineno}: " if own else ""
    return f"{where}{type(error).__name__}{': ' * bool(text)}{text}"


def import_failed(error: BaseException) -> str:
    """Why the module of a test cannot be imported; of a script that ends itself, what to do about it."""
    advice = f"; {UNDER_MAIN}" if isinstance(error, SystemExit) else ""
    return f"the module of the test cannot be imported: {_said(error)}{advice}"


class PythonProgram:
    """A program for `explorer.explore`: every call of it sets up one execution."""

    def __init__(self, target: Target, sources: Sources, search: Search) -> None:
        self.target = target
        self.search = search
        self.sandbox = Sandbox(sources, search)
        self.__name__ = target.name
        mortal = LIFETIMES in search.promoted
        self.execution_class = MortalExecution if mortal else PythonExecution
        self.executions = 0
        self.collect_at = COLLECT_EVERY

    def __call__(self, world: World) -> None:
        """Begin one execution."""
        execution = world._ex
        assert isinstance(execution, PythonExecution)
        now.execution = execution
        if self.search.stop_at is not None:
            execution.switch = stopping(execution, self.search.stop_at)
        self.executions += 1
        self.search.overtook = ""
        if self.executions == self.collect_at:
            forget_classes()  # a class that a program has made holds its module, and that the whole execution
            worth_it = gc.collect() >= WORTH_IT * COLLECT_EVERY
            self.collect_at += COLLECT_EVERY if worth_it else SELDOM
        world.spawn(self._main, name="main")

    def _module(self, ex: PythonExecution) -> Any:
        """The module of the test, run anew.

        Raises `Misuse` if it fails before it has started a thread: no schedule is at fault, and the test did not begin.
        So it does of a script that ends itself, and of one that the explorer refuses `OutsideModel`.
        """
        try:
            with _as_imported():
                return self.sandbox.imported(ex, self.target.module)
        except OutsideModel as error:
            raise OutsideModel(f"{error}, when the module is imported: {UNDER_MAIN}") from error
        except ExplorerError:
            raise
        except (Exception, SystemExit) as error:
            script = isinstance(error, SystemExit)
            begun = len(ex.heads) > 1 and not isinstance(error, ImportError) and not script
            if begun or not SKIPS.isdisjoint(bases(type(error))):
                raise
            raise Misuse(import_failed(error)) from error

    def _skipped(self, skip: BaseException) -> Misuse:
        """What is raised for a test that skips itself: under one schedule and not under another says nothing."""
        if self.executions == 1:
            return SkippedTest(self.target.name, skip)
        return Misuse(
            f"{self.target.name} skips itself under some schedules and not under others ({skip}): "
            "skip before threads are started"
        )

    def _main(self) -> None:
        ex, thread = here()
        self.sandbox.load(ex, "threading")
        main = MainThread(thread, ex)
        world = ex.world

        def body() -> None:
            try:
                test()
            except BaseException as error:
                if SKIPS.isdisjoint(bases(type(error))):
                    raise
                raise self._skipped(error) from None

        def test() -> None:
            module = self._module(ex)
            load = functools.partial(self.sandbox.load, ex)
            attributes = dict(self.target.attributes)
            around = Surroundings(module, self.target.name, attributes, load)
            given = arguments(dict(self.target.given), self.target.module, load)
            result = undrawn(around.test)(*self.target.args, **given)
            if inspect.iscoroutine(result):
                result = self.sandbox.load(ex, "asyncio").run(result)
            leftovers(ex)
            refuse_unstarted(f"the test {self.target.name}", result)
            around.end()
            if result is not None:
                world.result(result)
            for function in reversed(ex.at_exit):
                function()

        try:
            run_to_the_end(ex, thread, main._life, body)
        finally:
            self.search.threads = max(self.search.threads, len(ex.heads))
