"""The pytest plugin: options for `testing.explored`, a fixture `explorer`, and ``pytest --explore``.

With ``--explore`` a test that is marked ``@pytest.mark.explore`` runs under every schedule of its threads;
without, once, like any other. The options of the mark are those of `explorer.python.check`, and `exhaustive`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import pytest

from seriatim_models.explorer import testing
from seriatim_models.explorer.result import Result
from seriatim_models.explorer.search.explore import Replay


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
    testing.OPTIONS["seconds"] = config.getoption("--explore-seconds", None)
    config.addinivalue_line(
        "markers",
        "explore(modules=..., seconds=..., exhaustive=...): with --explore, every schedule of a test with threads",
    )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a session in which the token to replay was of none of its tests: all of them were skipped.

    Each process of pytest-xdist counts for itself, so it is asked only of a session in one process.
    """
    alone = not session.config.getoption("numprocesses", None)
    if alone and testing.OPTIONS["skipped"] and not testing.OPTIONS["replayed"]:
        print(
            "\nseriatim: the token of --explore-replay is of no test that was run", file=sys.stderr
        )
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a marked test under every schedule, if ``--explore`` was given."""
    mark = pyfuncitem.get_closest_marker("explore")
    if mark is None or not pyfuncitem.config.getoption("--explore", False):
        return None
    from seriatim_models.explorer.errors import ExplorerError
    from seriatim_models.explorer.python.front import check, demand

    options = dict(mark.kwargs)
    exhaustive = options.pop("exhaustive", False)
    if testing.OPTIONS["seconds"] is not None:
        options["seconds"] = testing.OPTIONS["seconds"]
    strategy = None
    if testing.OPTIONS["replay"] is not None:
        strategy = Replay(testing.OPTIONS["replay"])
    try:
        names = inspect.signature(pyfuncitem.function).parameters
        given = {name: value for name, value in pyfuncitem.funcargs.items() if name in names}
        result = check(pyfuncitem.function, strategy, given=given, **options)
    except ExplorerError as error:
        pytest.fail(f"cannot be explored: {error}", pytrace=False)
    except TypeError as error:
        pytest.fail(f"the mark explore: {error}", pytrace=False)
    try:
        demand(result, exhaustive)
    except AssertionError as error:
        pytest.fail(str(error), pytrace=False)
    return True


@pytest.fixture
def explorer(request: pytest.FixtureRequest) -> Callable[..., Result]:
    """`explorer(program, strategy, **budgets)`: explore inside a test; fails with the counterexample."""

    def run(
        program: Any, strategy: Any = None, *, exhaustive: bool = False, **budgets: Any
    ) -> Result:
        budgets.setdefault("name", request.node.name)
        return testing.judge(program, strategy, exhaustive, budgets)

    return run
