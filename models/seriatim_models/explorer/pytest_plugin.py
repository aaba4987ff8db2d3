"""The pytest plugin: programs and plain tests under every schedule. It is there once seriatim is installed.

The fixture `explorer` explores a program (a function of a world) inside a test, and the decorator
`seriatim_models.explorer.testing.explored` makes a test of one:

    def test_counter(explorer):
        explorer(program, seconds=10)

With `--explore` a test that is marked `@pytest.mark.explore` runs under every schedule of its threads; without, once,
like any other. The options of the mark are those of `explorer.python.check`, and `exhaustive`:

    @pytest.mark.explore(seconds=10)
    def test_transfer():
        ...    # threading, queue and concurrent.futures, as always

`linearizable(make, spec, threads)` compares what threads call with a sequential object; with the extra `hypothesis`,
`concurrent_calls` draws these calls (under `@settings(deadline=None)`: an exploration takes longer than 200 ms).

A failure shows the schedule, a column for each thread (the steps whose order matters; with -v all), and the command
that runs this schedule again:

    pytest tests/test_counter.py::test_counter --explore-replay TOKEN

`--explore-seconds N` is the budget of each exploration. `pytest --markers` and `pytest --fixtures` list what is here.
A search that saw too little raises `testing.Inconclusive`, which is no success.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import unittest
from collections.abc import Callable, Generator
from typing import Any

import pytest

from seriatim_models.explorer import testing
from seriatim_models.explorer.result import Result


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--explore-replay`` and ``--explore-seconds`` to pytest."""
    group = parser.getgroup("explorer", "exploring concurrent programs")
    group.addoption("--explore-replay", metavar="TOKEN", help="run only the schedule of this token")
    group.addoption(
        "--explore-seconds", type=float, metavar="SECONDS", help="budget of each exploration"
    )
    group.addoption(
        "--explore",
        action="store_true",
        help="run tests that are marked explore under every schedule of their threads",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Pass the options on to `testing`."""
    testing.OPTIONS["replay"] = config.getoption("--explore-replay", None)
    testing.OPTIONS["replayed"] = 0
    testing.OPTIONS["seconds"] = config.getoption("--explore-seconds", None)
    testing.OPTIONS["paths"] = bool(config.getini("pythonpath"))
    testing.OPTIONS["marked"] = config.getoption("--explore", False)
    testing.OPTIONS["verbose"] = config.getoption("verbose", 0) > 0
    config.addinivalue_line(
        "markers",
        "explore(modules=..., seconds=..., exhaustive=...): with --explore, every schedule of a test with threads",
    )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a session in which the token to replay was of none of its tests.

    Each process of pytest-xdist counts for itself, so it is asked only of a session in one process.
    """
    alone = not session.config.getoption("numprocesses", None)
    if alone and testing.OPTIONS["replay"] is not None and not testing.OPTIONS["replayed"]:
        print(
            "\nseriatim: the token of --explore-replay is of no test that was run (tests that are marked explore need "
            "--explore, too; if Hypothesis draws the test, put the failing example above it with @example)",
            file=sys.stderr,
        )
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A module that ends the process when it is imported is not collected; pytest itself would end with a traceback."""
    try:
        return (yield)
    except SystemExit as error:
        if not collector.config.getoption("--explore", False):
            raise
        from seriatim_models.explorer.python.program import import_failed

        return pytest.CollectReport(collector.nodeid, "failed", import_failed(error), [])


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remember the address of the test, for the command that replays its failure.

    Refuse what pytest leaves to unittest: such a test would run once, and look as if it had been explored.
    """
    _, names, rest = item.nodeid.partition("::")
    testing.OPTIONS["test"] = address = os.path.relpath(item.path) + names + rest
    case = issubclass(getattr(item, "cls", None) or object, unittest.TestCase)
    if case and item.get_closest_marker("explore") and item.config.getoption("--explore", False):
        pytest.fail(
            f"a unittest.TestCase is not explored by pytest; `seriatim check {address}` does it",
            pytrace=False,
        )


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a marked test under every schedule, if ``--explore`` was given."""
    mark = pyfuncitem.get_closest_marker("explore")
    if mark is None or not pyfuncitem.config.getoption("--explore", False):
        return None
    from seriatim_models.explorer.errors import ExplorerError, SkippedTest
    from seriatim_models.explorer.python.front import check, demand, explore

    options = dict(mark.kwargs)
    drawn = getattr(pyfuncitem.function, "hypothesis", None)
    if drawn is not None:  # Hypothesis calls the inner test with each example
        drawn.inner_test = explore(drawn.inner_test, **options)
        return None
    exhaustive = options.pop("exhaustive", False)
    wrong = ""  # said when no exception is handled any more, or pytest would show that, too
    try:
        names = inspect.signature(pyfuncitem.function).parameters
        given = {name: value for name, value in pyfuncitem.funcargs.items() if name in names}
        run = functools.partial(check, pyfuncitem.obj, given=given)
        strategy = options.pop("strategy", None)
        demand(testing.as_asked(run, strategy, options), exhaustive, indent=0)
    except SkippedTest as error:
        raise error.skip from None
    except ExplorerError as error:
        wrong = f"cannot be explored: {error}"
    except TypeError as error:
        wrong = f"the mark explore: {error}"
    except AssertionError as error:
        wrong = str(error)
    if wrong:
        pytest.fail(wrong, pytrace=False)
    return True


@pytest.fixture
def explorer(request: pytest.FixtureRequest) -> Callable[..., Result]:
    """`explorer(program, strategy, **budgets)`: explore inside a test; fails with the counterexample."""

    def run(
        program: Any, strategy: Any = None, *, exhaustive: bool = False, **budgets: Any
    ) -> Result:
        __tracebackhide__ = True
        budgets.setdefault("name", request.node.name)
        return testing.judge(program, strategy, exhaustive, budgets)

    return run
