"""What concerns the tests of every folder."""

from __future__ import annotations

import re

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

SHARED = {
    "spark": re.compile(r"tests/pipeline/test_(bad_input|ingest|spark|stream)\.py|::TestOnSpark::"),
    "browser": re.compile(r"tests/report/test_\w+_in_a_browser\.py"),
    "queue_histories": re.compile(r"tests/properties/test_(whitebox|definitions)\.py"),
    "stories": re.compile(r"tests/lessons/"),
    "syntax_trees": re.compile(r"tests/test_(house|style)\.py"),
}
"""What is costly to make, most of it a fixture, and the addresses of the tests that share it in one process, first."""

LONG = (
    "tests/programs/test_mutants.py",
    "tests/pipeline/test_session.py",
    "tests/pipeline/test_stream_shown.py",
    "tests/machines/",
    "tests/properties/test_prefilter.py",
    "tests/stress/",
    "tests/explorer/",
)
"""Where the longest tests are. They begin first, so that no process is left with a long one at the end."""


class ByFixture(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """Gives a process one test at a time, or all tests that share a costly fixture.

    It goes by addresses: the process that distributes tests knows nothing else of them. (The marks of
    ``--dist loadgroup`` are without effect: pytest 9.2 no longer reads what xdist 3.8 writes them to.)
    """

    def _split_scope(self, nodeid: str) -> str:
        return shared(nodeid) or nodeid


def shared(nodeid: str) -> str | None:
    """The costly fixture that a test shares, by its address."""
    return next((name for name, of in SHARED.items() if of.search(nodeid)), None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFixture:
    """The scheduler, which keeps the order below.

    With it a run would wait for ever once a process has died and another has come in its place, so
    pyproject.toml forbids that: the run ends, and the test that was under way has failed.
    """
    config.option.loadscopereorder = False
    return ByFixture(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put those that share a fixture first, then long ones.

    Raises `UsageError` if a test uses a costly fixture and its address is not in `SHARED`.
    """
    groups = [*SHARED, None]
    for item in items:
        for fixture in set(SHARED) & set(getattr(item, "fixturenames", ())):
            if shared(item.nodeid) != fixture:
                raise pytest.UsageError(
                    f"{item.nodeid} uses {fixture}, and SHARED in {__file__} leaves it out"
                )
    items.sort(
        key=lambda item: (groups.index(shared(item.nodeid)), not item.nodeid.startswith(LONG))
    )
