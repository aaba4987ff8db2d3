"""Drawn inputs and all schedules: `@given` over `@explore`, parametrize and fixtures under ``pytest --explore``."""

from __future__ import annotations

import functools
import re
import shlex
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seriatim_models.explorer import Misuse
from seriatim_models.explorer.python import explore
from seriatim_models.explorer.python.front import check

pytest_plugins = ["pytester"]

COMMAND = (sys.executable, "-c", "from seriatim_models.cli import main; main()")
"""`seriatim`, which is on nobody's path where `make` runs the tests."""


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


class Methods:
    def both(self) -> None:
        adding([1, 2])


def test_what_another_plugin_has_put_around_a_method_is_taken_off() -> None:
    method = Methods().both

    @functools.wraps(method)
    def in_a_loop() -> None:
        raise NotImplementedError

    assert check(in_a_loop).verdict == "ok"


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


DRAWN = """
import threading
import pytest
import seriatim
from hypothesis import assume, given, settings, strategies as st


class Tally:
    def __init__(self):
        self.total = 0
        self.lock = threading.Lock()

    def add(self, amount):
        self.total += amount

    def add_alone(self, amount):
        with self.lock:
            self.total += amount


def run(amounts, add="add"):
    tally = Tally()
    threads = [threading.Thread(target=getattr(tally, add), args=(n,)) for n in amounts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tally.total == sum(amounts)


@settings(deadline=None, max_examples=12)
@given(amounts=st.lists(st.integers(0, 9), max_size=3))
@seriatim.explore(seconds=10)
def test_lost(amounts):
    run(amounts)


@settings(deadline=None, max_examples=12)
@given(st.lists(st.integers(0, 9), max_size=2))
@seriatim.explore
def test_right(amounts):
    assume(sum(amounts) != 5)
    run(amounts, "add_alone")


@settings(deadline=None, max_examples=12)
@given(st.integers())
@seriatim.explore
def test_nothing_to_explore(n):
    assert n == n


class TestMethods:
    @seriatim.explore
    def test_method(self):
        run([1, 2])

    @pytest.mark.explore
    @settings(deadline=None, max_examples=12)
    @given(st.integers(1, 5))
    def test_marked(self, n):
        run([n, n])


@settings(deadline=None, max_examples=12)
@given(st.data())
@seriatim.explore
def test_draws_later(data):
    run([data.draw(st.integers())])


@seriatim.explore
def test_skips():
    pytest.skip("not here")


@seriatim.explore
def test_known():
    pytest.xfail("known")
"""


def test_what_is_drawn_in_a_file_of_the_user_is_explored_and_comes_again(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CI", "BUILD_NUMBER", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)  # there Hypothesis keeps no examples
    pytester.makepyfile(test_it=DRAWN)
    plain = ("-p", "no:cacheprovider", "-p", "no:xdist")
    ran = pytester.runpytest_subprocess("--explore", *plain)
    ran.assert_outcomes(passed=1, failed=5, skipped=1, xfailed=1)
    shown = ran.stdout.str()
    assert "Nesting @given" not in shown
    assert "filtering out a lot of inputs" in shown  # of test_nothing_to_explore
    assert "let @given draw what the test needs" in shown
    assert "All traceback entries are hidden" not in shown
    commands = [shlex.split(c) for c in re.findall(r"replay: (.*)$", shown, re.MULTILINE)]
    assert [(command[0], command[-2]) for command in commands] == [
        ("pytest", "--explore-replay"),
        ("seriatim", "--replay"),
        ("pytest", "--explore-replay"),
    ]
    for command in commands:
        if command[0] == "pytest":
            again = pytester.runpytest_subprocess(*command[1:], *plain)
            again.assert_outcomes(failed=1)
            assert shlex.join(command) in again.stdout.str()
        else:
            assert pytester.run(*COMMAND, *command[1:]).ret == 1


AROUND = """
import threading
import unittest
import pytest
import seriatim
from hypothesis import given, settings, strategies as st

begun = []


def run(*calls):
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def setup_module(module):
    begun.append(module.__name__)


def setup_function(function):
    begun.append(function.__name__)


@pytest.mark.explore
def test_function():
    run(list, list)
    assert begun == ["test_it", "test_function"]


class TestBetween:
    @pytest.fixture(autouse=True)
    def five(self):
        self.five = 5

    def setup_class(cls):
        cls.three = 3

    def setup_method(self):
        self.lock = threading.Lock()
        self.n = 0

    def alone(self):
        with self.lock:
            self.n += self.five - self.three

    @pytest.mark.explore
    def test_marked(self):
        run(self.alone, self.alone)
        assert self.n == 4

    @seriatim.explore
    def test_decorated(self):
        run(self.alone, self.alone)
        assert self.n == 4

    @pytest.mark.explore
    @settings(deadline=None, max_examples=3)
    @given(st.integers())
    def test_drawn(self, n):
        run(self.alone, self.alone)
        assert self.n == 4 and n == int(n)


class TestBehind:
    open = False

    def teardown_method(self, method):
        assert not self.open, method.__name__

    def set(self, value):
        self.open = value

    @seriatim.explore
    def test_race(self):
        run(lambda: self.set(True), lambda: self.set(False))


class TestUncopied:
    @pytest.fixture(autouse=True)
    def lock(self):
        self.lock = threading.Lock()

    @pytest.mark.explore
    def test_it(self):
        run(list, list)


class TestCase(unittest.TestCase):
    def setUp(self):
        self.one = 1

    @seriatim.explore
    def test_case(self):
        run(list, list)
        assert self.one == 1
"""


def test_what_pytest_calls_around_a_test_is_called_in_each_execution(
    pytester: pytest.Pytester,
) -> None:
    plain = ("-p", "no:cacheprovider", "-p", "no:xdist")
    pytester.makepyfile(test_it=AROUND)
    ran = pytester.runpytest_subprocess("--explore", *plain)
    ran.assert_outcomes(passed=5, failed=2)
    shown = ran.stdout.str()
    assert "self.lock, which a fixture has set, cannot be copied for each execution" in shown
    assert "AssertionError: test_race" in shown
    assert pytester.run(*COMMAND, "check", "test_it.py::TestBehind").ret == 1
    refused = pytester.run(*COMMAND, "check", "test_it.py::TestBetween::test_marked")
    assert refused.ret == 2
    assert "pytest calls TestBetween.five around TestBetween.test_marked" in refused.stderr.str()


def test_a_fixture_of_a_conftest_that_all_tests_get_is_refused_and_pytest_runs_it(
    pytester: pytest.Pytester,
) -> None:
    """That of the folder above counts, and not the one above the root."""
    inner = pytester.mkdir("project").joinpath("tests")
    inner.mkdir()
    inner.parent.joinpath("pytest.ini").write_text("[pytest]\n")
    fixture = "import pytest\n\n@pytest.fixture(autouse=True)\ndef {}():\n    import tallied\n    tallied.total = 1\n"
    pytester.path.joinpath("conftest.py").write_text(fixture.format("outside"))
    inner.joinpath("tallied.py").write_text("total = 0\n")
    inner.joinpath("test_it.py").write_text(
        "import threading, pytest, tallied\n\n@pytest.mark.explore\ndef test_all():\n"
        "    thread = threading.Thread(target=list)\n    thread.start()\n    thread.join()\n"
    )
    found = pytester.run(*COMMAND, "check", "project/tests/test_it.py::test_all")
    assert found.ret == 0, found.stderr.str()
    inner.parent.joinpath("conftest.py").write_text(fixture.format("counted"))
    refused = pytester.run(*COMMAND, "check", "project/tests/test_it.py::test_all")
    assert refused.ret == 2
    assert "project/conftest.py:4: pytest calls counted around test_all" in refused.stderr.str()
    assert "mark it @pytest.mark.explore and run pytest --explore" in refused.stderr.str()


def test_the_command_finds_the_modules_that_pytest_was_shown(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\npythonpath = src")
    pytester.mkdir("src").joinpath("tally.py").write_text(
        "class Tally:\n    total = 0\n    def add(self):\n        self.total += 1\n"
    )
    pytester.makepyfile(
        test_it="""
        import threading
        import pytest
        from tally import Tally

        @pytest.mark.explore
        def test_it():
            tally = Tally()
            threads = [threading.Thread(target=tally.add) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert tally.total == 2
        """
    )
    plain = ("-p", "no:cacheprovider", "-p", "no:xdist")
    ran = pytester.runpytest_subprocess("--explore", *plain)
    [command] = {
        *re.findall(r"replay: pytest (.*)$", ran.stdout.str(), re.MULTILINE)
    }  # twice in CI
    again = pytester.runpytest_subprocess(*shlex.split(command), *plain)
    again.assert_outcomes(failed=1)
    assert command in again.stdout.str()


def test_the_two_names_of_the_front_door() -> None:
    import seriatim

    assert seriatim.explore is explore
    assert seriatim.check is check
    with pytest.raises(AttributeError, match="module 'seriatim' has no attribute 'nothing'"):
        _ = seriatim.nothing
