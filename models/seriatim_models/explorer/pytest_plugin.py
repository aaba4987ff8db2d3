"""The pytest plugin: options for `testing.explored`, and a fixture `explorer`."""

from __future__ import annotations

from collections.abc import Callable
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


def pytest_configure(config: pytest.Config) -> None:
    """Pass the options on to `testing`."""
    testing.OPTIONS["replay"] = config.getoption("--explore-replay", None)
    testing.OPTIONS["seconds"] = config.getoption("--explore-seconds", None)


@pytest.fixture
def explorer(request: pytest.FixtureRequest) -> Callable[..., Result]:
    """`explorer(program, strategy, **budgets)`: explore inside a test; fails with the counterexample."""

    def run(
        program: Any, strategy: Any = None, *, exhaustive: bool = False, **budgets: Any
    ) -> Result:
        budgets.setdefault("name", request.node.name)
        return testing.judge(program, strategy, exhaustive, budgets)

    return run
