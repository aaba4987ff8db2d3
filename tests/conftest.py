"""What concerns the tests of every folder."""

from __future__ import annotations

import re

import pytest

SHARED = {
    "spark": re.compile(r"tests/pipeline/test_(bad_input|ingest|spark|stream)\.py|::TestOnSpark::"),
    "browser": re.compile(r"tests/report/test_\w+_in_a_browser\.py"),
    "stories": re.compile(r"tests/lessons/"),
}
"""Fixtures that are costly, and the addresses of the tests that share one: these begin first."""

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


def shared(nodeid: str) -> str | None:
    """The costly fixture that a test shares, by its address."""
    return next((name for name, of in SHARED.items() if of.search(nodeid)), None)


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
