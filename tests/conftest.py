"""What concerns the tests of every shelf."""

from __future__ import annotations

import pytest

GROUPS = {"spark": "spark", "browser": "browser"}
"""Session fixtures that are costly, and the group of tests that share one: a group runs in one process."""

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group tests by their costly fixtures, and put long ones first.

    xdist begins with the largest group, which is Spark's, and keeps the order of the others.
    """
    for item in items:
        for fixture in getattr(item, "fixturenames", ()):
            if fixture in GROUPS:
                item.add_marker(pytest.mark.xdist_group(GROUPS[fixture]))
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))
