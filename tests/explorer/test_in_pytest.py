"""What a user of pytest sees of a failure: the own test as the last frame, and a command that replays it."""

from __future__ import annotations

import re
import shlex

import pytest

from seriatim_models.explorer.testing import explored

pytest_plugins = ["pytester"]

SUITE = """
import threading
import pytest
from hypothesis import Phase, given, settings, strategies as st
from seriatim_models.explorer.testing import concurrent_calls, explored, linearizable


def increments(world):
    counter = world.cell(0, name="counter")
    for name in "ab":
        world.spawn(lambda: counter.set(counter.get() + 1), name=name)
    world.at_end(lambda: None if counter.get() == 2 else "lost")


class Register:
    def __init__(self, host):
        self.value = host.cell(0, "value")

    def add(self, n):
        self.value.set(self.value.get() + n)

    def read(self):
        return self.value.get()


class Plain:
    def __init__(self):
        self.value = 0

    def add(self, n):
        self.value += n

    def read(self):
        return self.value


@pytest.mark.parametrize("of", ["a b"])
def test_fixture(explorer, of):
    explorer(increments)


@explored()
def test_decorator(world):
    increments(world)


class TestIn:
    def test_calls(self):
        linearizable(Register, Plain, [[("add", 1)], [("add", 1), ("read",)]])


@settings(deadline=None, max_examples=50, phases=set(Phase) - {Phase.explain})
@given(concurrent_calls({"add": st.tuples(st.integers(1, 3)), "read": st.tuples()}))
def test_drawn(threads):
    linearizable(Register, Plain, threads)


@explored()
def test_right(world):
    world.spawn(world.cell(0, name="other").get)


class Counter:
    def __init__(self):
        self.value = 0

    def increment(self):
        self.value += 1


@pytest.mark.explore
def test_own():
    counter = Counter()
    threads = [threading.Thread(target=counter.increment) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.value == 2
"""
LAST_FRAME = {
    "test_fixture": "explorer(increments)",
    "test_decorator": "@explored()",
    "test_calls": "linearizable(Register, Plain, [[",
    "test_drawn": "linearizable(Register, Plain, threads)",
}
"""By test: the marked line of the last frame."""


@pytest.fixture(autouse=True)
def at_a_desk(monkeypatch: pytest.MonkeyPatch) -> None:
    """In CI pytest shows a message twice, and Hypothesis keeps no examples, of which a replay needs the failed one."""
    for name in ("CI", "BUILD_NUMBER", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:xdist", *options)


@pytest.mark.slow
def test_failures_end_in_the_own_test_with_a_command_that_replays_them(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_it=SUITE)
    ran = run(pytester)
    ran.assert_outcomes(failed=4, passed=2)
    shown = ran.stdout.str()
    assert "seriatim_models/" not in shown, "no frame of ours"
    assert "kwargs = {}" not in shown
    for name, line in LAST_FRAME.items():
        [section] = re.findall(
            rf"^_+ [\w.]*{name}(?:\[[^\n]*)? _+$(.*?)(?=^_{{3,}} |^=+ )",
            shown,
            re.DOTALL | re.MULTILINE,
        )
        marked = re.findall(r"^> +(.*)$", section, re.MULTILINE)
        assert marked[-1].startswith(line)
        [command] = re.findall(r"^E? *replay: pytest (.*)$", section, re.MULTILINE)
        again = run(pytester, *shlex.split(command))
        again.assert_outcomes(failed=1)
        assert command in again.stdout.str(), "the same schedule"


def test_a_decorator_without_parentheses_is_named() -> None:
    def test_it(world: object) -> None: ...

    with pytest.raises(TypeError, match=r"write @explored\(\) above test_it"):
        explored(test_it)  # type: ignore[arg-type]  # that is the mistake


def test_a_failure_of_a_plain_test_is_shown_once(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=SUITE)
    shown = run(pytester, "--explore", "-k", "own").stdout.str()
    assert shown.count("racing pair: Counter.value") == 1
    assert "During handling" not in shown
    assert len(re.findall(r"^replay: seriatim check \S+::test_own --replay \S+$", shown, re.M)) == 1


def test_a_failure_folds_what_does_not_matter_and_fits_the_columns(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    pytester.makepyfile(test_it=SUITE)
    chosen = ("--explore", "-k", "decorator or calls or own")
    shown = run(pytester, *chosen).stdout.str()
    assert shown.count("the steps whose order matters") == 3
    assert shown.count("| ... ") > 3
    assert len(re.findall(r"After step \d+ .* wrong", shown)) == 3
    for line in shown.partition("= FAILURES =")[2].splitlines():
        assert len(line) <= 80 or line.startswith('  File "'), line
    assert "| ... " not in run(pytester, *chosen, "-v").stdout.str(), "with -v every step"


MISFITS = """
import threading
from seriatim_models.explorer.testing import linearizable


class Register:
    def __init__(self, host):
        self.value = host.cell(0, "value")

    def read(self):
        return self.value.get()


class Plain:
    def read(self):
        return 0


class Locked(Plain):
    def __init__(self):
        self.lock = threading.Lock()


def test_without_host():
    linearizable(Plain, Plain, [[("read",)]])


def test_with_host():
    linearizable(Register, Register, [[("read",)]])


def test_other_methods():
    linearizable(Register, Plain, [[("write", 1)]])


def test_other_arguments():
    linearizable(Register, Plain, [[("read", [1])]])


def test_no_data():
    linearizable(Register, Locked, [[("read",)]])
"""


def test_objects_that_do_not_fit_are_said_at_the_line_of_the_test(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_it=MISFITS)
    ran = run(pytester)
    ran.assert_outcomes(failed=5)
    shown = ran.stdout.str()
    assert "seriatim_models/" not in shown, "no frame of ours"
    assert "kwargs = {}" not in shown
    assert re.findall(r"^E +TypeError: (.*)$", shown, re.MULTILINE) == [
        "linearizable calls Plain(host): too many positional arguments",
        "linearizable calls Register(): missing a required argument: 'host'",
        "linearizable compares with Plain, which has no write()",
        "linearizable calls Plain.read([1]): too many positional arguments",
        "the state of Locked must be plain data, which can be copied: cannot pickle '_thread.lock' object",
    ]


@pytest.mark.slow
def test_an_example_that_the_token_is_not_of_is_no_failure_of_the_property(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_it=SUITE)
    shown = run(pytester, "-k", "decorator").stdout.str()
    [command] = re.findall(r"replay: pytest \S+ (.*)$", shown, re.MULTILINE)
    ran = run(pytester, *shlex.split(command), "-k", "drawn")
    assert ran.ret != 0, "nothing was replayed"
    assert "not linearizable" not in ran.stdout.str()


def test_markers_and_fixtures_are_listed(pytester: pytest.Pytester) -> None:
    assert "@pytest.mark.explore(" in run(pytester, "--markers").stdout.str()
    assert re.search(r"^explorer -- ", run(pytester, "--fixtures").stdout.str(), re.MULTILINE)
