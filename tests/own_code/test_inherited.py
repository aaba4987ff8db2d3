"""Tests that a class has from another one are those of its own objects, in pytest and on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from seriatim_models.cli import run

TESTS = """
import threading
import unittest

import pytest

from elsewhere import TestsOfElsewhere


class CounterTests:
    step = None

    def test_counts(self):
        self.n = 0
        lock = threading.Lock()

        def add():
            with lock:
                self.n += self.step

        threads = [threading.Thread(target=add) for _ in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert self.n == 2 * self.step


@pytest.mark.explore(modules=["elsewhere"])
class TestOne(CounterTests):
    step = 1


@pytest.mark.explore(modules=["elsewhere"])
class TestTwo(TestOne):
    step = 2

    def test_counts(self):
        super().test_counts()

    test_once_more = CounterTests.test_counts


class TestMixedIn:
    def test_mixed_in(self):
        assert self.step == 2


class CaseTwo(TestMixedIn, CounterTests, unittest.TestCase):
    step = 2


@pytest.mark.explore(modules=["elsewhere"])
class TestElsewhere(TestsOfElsewhere):
    start = 7
"""
ELSEWHERE = """
import threading


class TestsOfElsewhere:
    def test_starts(self):
        seen = []
        thread = threading.Thread(target=lambda: seen.append(self.start))
        thread.start()
        thread.join()
        assert seen == [7]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "test_inherited_tests.py").write_text(TESTS)
    (tmp_path / "elsewhere.py").write_text(ELSEWHERE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def verdicts(name: str, folder: Path, *options: str) -> dict[str, str]:
    run(["check", name, "--json", str(folder / "report.json"), *options])
    report = json.loads((folder / "report.json").read_text())
    return {p["program"].partition("::")[2]: p["verdict"] for p in report["programs"]}


def test_the_command_runs_a_test_for_the_classes_that_have_it(folder: Path) -> None:
    assert verdicts("test_inherited_tests.py", folder) == {
        "TestOne::test_counts": "ok",
        "TestTwo::test_counts": "ok",
        "CaseTwo::test_counts": "ok",
        "CaseTwo::test_mixed_in": "inconclusive",  # it has no threads
    }


@pytest.mark.parametrize("test", ["TestTwo::test_once_more", "TestElsewhere::test_starts"])
def test_what_no_def_of_the_file_shows_can_be_named(test: str, folder: Path) -> None:
    name = f"test_inherited_tests.py::{test}"
    assert verdicts(name, folder, "--module", "elsewhere") == {test: "ok"}


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("TestElsewhere::test_nothing", "TestElsewhere has no test_nothing"),
        ("TestElsewhere", "TestElsewhere has its tests from another file"),
        ("TestOne::test_nothing", "there is no test 'TestOne.test_nothing'"),
        ("TestNothing", "there is no test 'TestNothing'"),
    ],
)
def test_a_test_that_there_is_none_of_is_one_sentence(
    name: str, sentence: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", f"test_inherited_tests.py::{name}"]) == 2
    assert sentence in capsys.readouterr().err


def test_pytest_explores_the_tests_of_each_class(folder: Path) -> None:
    command = [sys.executable, "-m", "pytest", "--explore", "-q", "-rA", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-c", "/dev/null", "--rootdir", ".", "test_inherited_tests.py"],
        capture_output=True, text=True, cwd=folder, check=False,
    )  # fmt: skip
    passed = {line.rpartition("py::")[2] for line in done.stdout.splitlines() if "PASSED" in line}
    assert passed == {
        "TestOne::test_counts",
        "TestTwo::test_counts",
        "TestTwo::test_once_more",
        "CaseTwo::test_counts",  # unmarked, run once
        "CaseTwo::test_mixed_in",
        "TestElsewhere::test_starts",
    }, done.stdout
