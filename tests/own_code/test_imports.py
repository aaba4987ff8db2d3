"""Modules of an execution: what looks for itself, makes modules, or is found by a finder of the program."""

from __future__ import annotations

import atexit
import importlib
import platform
import subprocess
import sys
import typing
from pathlib import Path

import pytest
from tests.own_code import first_search, imports

from seriatim_models.explorer.python import check


@pytest.mark.parametrize(
    "name",
    [
        "knows_itself", "puts_another_in_its_place", "has_a_finder", "has_a_finder_in_the_place_of_another",
        "sees_its_caller", "finalizes",
        "waits_over_its_own_lock", "gives_a_lock_back", "looks_up_classes_of_their_own",
        "polls_in_a_daemon",
    ],
)  # fmt: skip
def test_it_runs_and_nothing_is_wrong(name: str) -> None:
    result = check(getattr(imports, name))
    assert (result.verdict, result.unseen) == ("ok", []), result.why


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the interpreter does not ask it any more")
def test_a_finder_that_finds_modules_without_a_spec_is_asked() -> None:
    result = check(imports.has_a_finder_of_old)
    assert (result.verdict, result.unseen) == ("ok", []), result.why


def test_a_daemon_that_polls_hides_no_deadlock_of_another_one() -> None:
    result = check(imports.waits_for_one_of_two_daemons)
    assert result.counterexample is not None
    assert "the cycle: Thread-2 (takes_it_twice)" in result.counterexample.what


def test_what_machine_it_is_may_be_asked_by_a_program_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "_uname_cache", None)
    result = check(imports.asks_what_machine_it_is)
    assert (result.verdict, result.unseen) == ("ok", []), result.why


@pytest.mark.parametrize("modules", [[], ["logging"]])
def test_logging_is_observed_where_it_matters(modules: list[str]) -> None:
    """What an execution registers for the interpreter's exit is not left to it."""
    for _ in range(2):
        result = check(imports.logs_in_two_threads, modules=modules)
        assert (result.verdict, result.unseen) == ("ok", []), result.why
        assert (result.traces or 0) > 1
    registered = atexit._ncallbacks()
    assert check(imports.cleans_up_at_exit).verdict == "ok"
    assert atexit._ncallbacks() == registered


def test_what_a_getter_reads_is_seen() -> None:
    result = check(imports.gets_by_name)
    assert result.verdict == "violated"
    assert [race.place for race in result.races] == ["Point.x"]


def test_a_condition_over_a_lock_of_the_program_loses_wake_ups() -> None:
    result = check(imports.waits_with_if)
    assert result.verdict == "violated"
    assert "deadlock" in result.ends or "wait" in result.why


@pytest.mark.parametrize("every_access", [False, True])
@pytest.mark.parametrize("name", first_search.PROGRAMS)
def test_the_first_search_of_a_process_is_as_the_second(name: str, every_access: bool) -> None:
    line = f"from tests.own_code.first_search import twice; twice({name!r}, {every_access})"
    command = [sys.executable, "-c", line]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    first, second = ended.stdout.splitlines()
    assert first == second
    assert first.startswith("ok ")
    if name == "looks_for_a_module":
        assert "(['False', 'colorsys'], True)" in first


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("wrong_for_over_modules", "dictionary changed size"),
        ("wrong_for_over_modules_while_one_is_loaded", "dictionary changed size"),
        ("wrong_module_is_there", "assert seen == [False]"),
        ("wrong_module_that_another_has_made", "assert found"),
    ],
)
def test_what_is_in_sys_modules_is_a_place(name: str, why: str) -> None:
    result = check(getattr(imports, name), shrink=0)  # hundreds of names are gone through
    assert result.verdict == "violated", str(result)
    assert result.counterexample is not None
    assert why in result.counterexample.text(width=300)
    assert "sys.modules" in str(result.races)


@pytest.mark.parametrize("name", ["right_modules_in_one_operation", "right_module_is_taken_once"])
def test_c_code_goes_through_sys_modules_in_one_operation(name: str) -> None:
    result = check(getattr(imports, name))
    assert result.verdict == "ok", str(result)


def test_the_verdict_is_withheld_where_an_iterator_of_sys_modules_is_kept() -> None:
    result = check(imports.withheld_iterator_of_modules)
    assert result.verdict == "inconclusive", str(result)
    assert "goes through sys.modules by an iterator" in result.why


@pytest.mark.parametrize(
    "name", sorted(n for n in vars(imports) if n.startswith("wrong_") and "_modules" not in n)
)
def test_which_names_a_module_has_is_a_place(name: str) -> None:
    """What `globals()`, `vars` and `dir` show of a module races with a thread that stores a global."""
    result = check(getattr(imports, name))
    assert result.verdict == "violated", str(result)


def test_the_verdict_is_withheld_where_names_of_a_module_are_changed_as_a_dict() -> None:
    result = check(imports.withheld_names_of_a_module_as_a_dict)
    assert result.verdict == "inconclusive", str(result)
    assert "the names of a module are changed as a dict" in result.why


def test_a_module_without_a_name_is_looked_at_by_what_it_was_called() -> None:
    result = check(imports.right_names_of_a_module_are_taken_away)
    assert result.verdict == "ok", str(result)


def test_nothing_of_it_is_left_behind() -> None:
    modules, finders = set(sys.modules), list(sys.meta_path)
    check(imports.puts_another_in_its_place)
    check(imports.has_a_finder)
    assert sys.meta_path == finders
    assert set(sys.modules) == modules


COUNTER = """
n = 0
def add():
    global n
    n += 1
"""
COUNTS = """
import threading
def test():
    from {package}.inner.deep import counter
    threads = [threading.Thread(target=counter.add) for _ in range(2)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert counter.n == 2
"""
PATCHES = """
import threading, typing
{at_import}
def test():
    def patch():
        {in_a_thread}
    thread = threading.Thread(target=patch)
    thread.start()
    seen = typing.cast
    thread.join()
"""


def made(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, text: str) -> typing.Any:
    """The function `test` of a new module."""
    monkeypatch.syspath_prepend(str(folder))
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    importlib.invalidate_caches()
    return importlib.import_module(name).test


def test_a_folder_of_a_package_needs_no_init(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "bare_parent" / "inner" / "deep"
    inner.mkdir(parents=True)
    (tmp_path / "bare_parent" / "__init__.py").touch()
    (inner / "counter.py").write_text(COUNTER, encoding="utf-8")
    test = made(monkeypatch, tmp_path, "counts_in_bare", COUNTS.format(package="bare_parent"))
    result = check(test, modules=["bare_parent"])
    assert [race.place for race in result.races] == ["global bare_parent.inner.deep.counter.n"], (
        result.why
    )
    assert result.verdict == "violated"
    assert not [name for name in sys.modules if name.startswith("bare_parent")]


def test_what_a_module_sets_elsewhere_before_there_are_threads_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = typing.cast
    monkeypatch.setattr(typing, "cast", before)  # importing the second module sets it for good
    patch = "typing.cast = lambda kind, value: value"
    in_a_thread = PATCHES.format(at_import="", in_a_thread=patch)
    result = check(made(monkeypatch, tmp_path, "patches_in_a_thread", in_a_thread))
    assert result.verdict == "inconclusive"
    assert "typing.cast is set at patches_in_a_thread.py:6" in result.why
    assert typing.cast is before
    at_import = PATCHES.format(at_import=patch, in_a_thread="pass")
    result = check(made(monkeypatch, tmp_path, "patches_at_import", at_import))
    assert (result.verdict, result.unseen) == ("ok", []), result.why


PATCHES_IN_A_LOOP = """
import asyncio
async def test():
    import typing
    before = typing.cast
    async def later():
        await asyncio.sleep(1)
        import patches_what_tasks_read
        assert typing.cast(int, "1") == 1
    async def beside():
        await asyncio.sleep(1)
        {beside}
    await asyncio.gather(beside(), later())
    assert typing.cast is not before
"""


@pytest.mark.parametrize(
    ("beside", "verdict"),
    [
        ("pass", "ok"),
        ('assert typing.cast(int, "1") == "1"', "violated"),
        ("import patches_what_tasks_read", "ok"),
    ],
)
def test_what_a_module_sets_elsewhere_while_a_loop_runs_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: str, verdict: str
) -> None:
    """As typing_extensions does when a task imports it: each order of the tasks is tried, so nothing is missed."""
    before = typing.cast
    (tmp_path / "patches_what_tasks_read.py").write_text(
        "import typing\ntyping.cast = lambda kind, value: kind(value)\n", encoding="utf-8"
    )
    text = PATCHES_IN_A_LOOP.format(beside=beside)
    result = check(made(monkeypatch, tmp_path, f"reads_beside_{len(beside)}", text))
    assert (result.verdict, result.unseen) == (verdict, []), result.why
    assert result.executions > 1
    assert typing.cast is before


PLAIN = """
import sys, types
class Finder:
    def find_spec(self, name, path, target=None):
        if name == "plain_by_finder":
            return types.SimpleNamespace(loader=self)
    def create_module(self, spec): return types.ModuleType("plain_by_finder")
    def exec_module(self, module): pass
def test():
    sys.meta_path.append(Finder())
    import plain_by_finder
    try:
        import plain_by_finder.inner
    except ModuleNotFoundError:
        return
    assert False
"""


def test_a_module_that_is_no_package_has_no_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = check(made(monkeypatch, tmp_path, "imports_below_a_plain_one", PLAIN))
    assert result.counterexample is None, result.why
    assert "there is one schedule only" in result.why
