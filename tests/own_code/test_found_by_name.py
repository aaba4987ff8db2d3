"""What the library finds by a name is that of the execution: right tests are no violation, whatever is observed."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest
from tests.own_code import found_by_name

from seriatim_models.cli import run
from seriatim_models.explorer import Misuse
from seriatim_models.explorer.python import PythonResult, check
from seriatim_models.explorer.python.execution import Search
from seriatim_models.explorer.python.front import explored
from seriatim_models.explorer.python.program import Target
from seriatim_models.explorer.python.sandbox import SHARED_WITH_C

RIGHT = [
    name
    for name, value in vars(found_by_name).items()
    if inspect.isfunction(value) and value.__module__ == found_by_name.__name__
]
HELPERS = {"both", "tried_twice"}


def searched(name: str) -> PythonResult:
    target = Target(found_by_name.__name__, str(found_by_name.__file__), name)
    return explored(target, Search(), None, (), 60, {})


@pytest.mark.parametrize("name", [name for name in RIGHT if name not in HELPERS])
def test_right_functions_hold_under_every_schedule(name: str) -> None:
    assert searched(name).verdict == "ok"


@pytest.mark.parametrize(
    "name",
    ["Case.right", "Case.right_in_threads", "Case.logs", "Case.warns", "AsyncCase.right"],
)
def test_methods_of_a_test_case_hold_too(name: str) -> None:
    result = searched(name)
    assert result.verdict == "ok", result.why


def test_what_a_library_has_warned_of_before_is_forgotten_without_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(json.decoder, "__warningregistry__", {"version": 1}, raising=False)
    result = searched("Case.warns")
    assert result.verdict == "ok", result.why


def test_what_a_test_case_asserts_is_asked_under_every_schedule() -> None:
    result = searched("Case.racing")
    assert result.verdict == "violated"
    assert "1 != 2" in result.traceback
    assert "Case.total" in {race.place for race in result.races}


@pytest.mark.parametrize("module", [name for name in sorted(SHARED_WITH_C) if name[0] != "_"])
def test_modules_that_c_looks_for_are_refused_by_name(module: str) -> None:
    with pytest.raises(Misuse, match="C code of the interpreter looks for this module"):
        check(found_by_name.json_raises_its_own_error, modules=[module])


@pytest.mark.parametrize("module", ["re", "enum", "decimal", "csv", "typing", "collections.abc"])
def test_other_modules_of_the_library_can_be_named(module: str) -> None:
    for test in (found_by_name.expressions_are_compiled, found_by_name.modules_are_found):
        result = check(test, modules=[module], seconds=60)
        assert result.verdict == "ok", result.why


def test_what_patch_passes_is_no_fixture(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    path = tmp_path / "test_given.py"
    path.write_text(
        "from unittest import mock\n\n@mock.patch('json.dumps')\ndef test_given(dumps, more):\n    pass\n"
    )
    assert run(["check", f"{path}::test_given"]) == 2
    assert "has the parameter" in capsys.readouterr().err


MIXED = """
import threading
from concurrent.futures import ProcessPoolExecutor


def run(*calls):
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_process():
    ProcessPoolExecutor(1)


def test_fixture(tmp_path): ...


class TestTwo:
    def test_right(self):
        lock = threading.Lock()
        run(lock.acquire, list)

    def test_wrong(self):
        numbers = [1]
        run(lambda: numbers and numbers.pop(), lambda: numbers and numbers.pop())
"""


def test_what_cannot_be_explored_does_not_keep_the_rest_of_its_file_from_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    path = tmp_path / "test_mixed.py"
    path.write_text(MIXED)
    written = tmp_path / "verdicts.json"
    assert run(["check", str(path), "--json", str(written)]) == 1
    verdicts = {
        run["program"].partition("::")[2]: (run["verdict"], run["why"])
        for run in json.loads(written.read_text())["programs"]
    }
    assert {name: verdict for name, (verdict, _) in verdicts.items()} == {
        "test_process": "inconclusive",
        "test_fixture": "inconclusive",
        "TestTwo::test_right": "ok",
        "TestTwo::test_wrong": "violated",
    }
    assert "ProcessPoolExecutor is outside the model" in verdicts["test_process"][1]
    assert "takes no fixtures" in verdicts["test_fixture"][1]
    assert run(["check", f"{path}::TestTwo"]) == 1
    capsys.readouterr()
    assert run(["check", f"{path}::test_process"]) == 2, "alone it is a mistake"
    path.write_text("def test_a(x): ...\ndef test_b(y): ...\n")
    assert run(["check", str(path)]) == 2, "all of them too"
    assert "test_a has the parameter x" in capsys.readouterr().err
