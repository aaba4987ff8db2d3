"""Drawn inputs and all schedules: `@given` over `@explore`, parametrize and fixtures under ``pytest --explore``."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seriatim_models.explorer import Misuse
from seriatim_models.explorer.python import explore
from seriatim_models.explorer.python.front import check

pytest_plugins = ["pytester"]


class Tally:
    def __init__(self) -> None:
        self.total = 0

    def add(self, amounts: list[int]) -> None:
        for amount in amounts:
            if amount > 2:
                self.total += amount


def adding(amounts: list[int]) -> None:
    tally = Tally()
    threads = [threading.Thread(target=tally.add, args=(amounts,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tally.total == 2 * sum(amount for amount in amounts if amount > 2)
    amounts.clear()  # a copy: the next execution has them all again


@pytest.mark.slow
def test_the_inputs_and_the_schedule_are_made_short() -> None:
    drawn = given(amounts=st.lists(st.integers(0, 9), max_size=3))
    small = settings(max_examples=40, deadline=None, derandomize=True, database=None)
    searched = small(drawn(explore(adding)))
    with pytest.raises(AssertionError, match=r"racing pair: Tally\.total") as caught:
        searched()
    assert "the sides were 3 and 6" in str(caught.value)  # [3], the least that is added


def test_arguments_are_copied_for_each_execution() -> None:
    amounts = [1, 2]
    assert check(adding, given={"amounts": amounts}).verdict == "ok"
    assert amounts == [1, 2]


def test_what_cannot_be_copied_is_said() -> None:
    with pytest.raises(Misuse, match="cannot be copied"):
        check(adding, given={"amounts": threading.Lock()})


SUITE = """
import threading
import pytest

@pytest.fixture
def start():
    return 40

@pytest.mark.explore(seconds=20)
@pytest.mark.parametrize("threads", [1, 2])
def test_count(start, threads):
    found = [start]
    def add():
        found[0] += 1
    running = [threading.Thread(target=add) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert found[0] == start + threads
"""


@pytest.mark.slow
def test_parameters_and_fixtures_reach_each_execution(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)
    explored = pytester.runpytest_subprocess("--explore", "-p", "no:cacheprovider")
    explored.assert_outcomes(passed=1, failed=1)
    explored.stdout.fnmatch_lines(["*racing pair*"])
