"""What the explorer says of plain tests with threads: mistakes of many kinds are found, right code is exhausted."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from seriatim_models.explorer import Misuse, OutsideModel, Pos
from seriatim_models.explorer.python import check, explore, front


def load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses looks for it there
    spec.loader.exec_module(module)
    return module


plain: Any = load("plain_threads", Path(__file__).with_name("plain.py"))


@pytest.mark.parametrize(
    ("name", "traces"),
    [
        ("locked_counter", 6),
        pytest.param("two_producers_two_consumers", 2616, marks=pytest.mark.slow),
        ("barrier", None),
        ("virtual_time", 1),
        ("shared_iterator", None),
        ("executor", None),
        ("thread_local", 1),
        ("daemon_that_waits", 12),
        ("subclass_of_thread", 2),
        ("context_manager", 2),
        ("containers_of_its_own", 2),
    ],
)
def test_right_code_is_exhausted(name: str, traces: int | None) -> None:
    result = check(getattr(plain, name))
    assert (result.verdict, result.redundant, result.blocked) == ("ok", 0, 0), str(result)
    assert traces is None or result.traces == traces
    assert "granularity of Python operations" in result.why


@pytest.mark.parametrize(
    ("name", "what", "race"),
    [
        ("racing_counter", "assert counter.value == 2", "Counter.value"),
        ("class_attribute", "assert counter.total == 2", "class attribute total"),
        ("racing_global", "assert VISITS == 2", "global plain_threads.VISITS"),
        ("racing_closure", "assert seen == 2", "variables of racing_closure.seen"),
        ("loop_variable", "assert sorted(seen)", "variables of loop_variable.k"),
        ("check_then_act", "assert len(cache['k']) == 2", "dict of plain.py"),
        ("dict_changes_size", "dictionary changed size", "dict of plain.py"),
        ("racing_dataclass", "assert point.x == 2", "Point.x"),
        ("error_in_a_thread", "KeyError", "dict of plain.py"),
        ("lost_wakeup", "lost wake-up", ""),
        ("event_that_is_cleared", "lost wake-up", ""),
        ("deadlock", "the cycle", ""),
        ("timer", "assert fired == []", ""),
        ("containers_of_its_own_that_race", "assert len(numbers) == 2", "OwnList of plain.py"),
        ("get_with_a_limit", "assert q.empty()", ""),
    ],
)
def test_mistakes_are_found_and_the_racing_pair_is_named(name: str, what: str, race: str) -> None:
    result = check(getattr(plain, name))
    assert result.verdict == "violated", str(result)
    assert result.counterexample is not None
    assert what in result.counterexample.text(width=300)
    assert any(r.place.startswith(race) for r in result.races) or not race
    if race:
        assert "plain.py:" in str(result.races[0])


def test_a_loop_that_waits_for_a_plain_list_is_one_blocking_read() -> None:
    result = check(plain.busy_wait, max_executions=50)
    assert (result.verdict, result.traces) == ("ok", 1)


def test_a_loop_that_makes_progress_is_no_livelock() -> None:
    """Its steps repeat with the same results, but it counts where no step shows it."""
    cut = check(plain.long_loops, max_steps=300, max_executions=20)
    assert cut.verdict == "inconclusive", str(cut)
    assert "livelock is suspected" in cut.why
    assert check(plain.long_loops, max_executions=20).verdict == "ok"
    assert check(plain.long_local_loop, max_executions=20).verdict == "ok"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("no_thread", "starts no thread"),
        ("names_of_the_module_as_a_dict", "names of a module"),
        ("code_of_a_text", "made of a text"),
        ("format_that_looks_inside", "looks into its arguments"),
    ],
)
def test_what_was_not_seen_withholds_the_verdict(name: str, why: str) -> None:
    result = check(getattr(plain, name))
    assert result.verdict == "inconclusive"
    assert why in result.why


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "error", "why"),
    [
        ("opens_a_socket", OutsideModel, r"socket.*stub.*plain\.py"),
        ("locks_a_file_twice", OutsideModel, r"come no further.*plain\.py:.*A real wait.*modules="),
        (
            "chooses_from_what_is_emptied",
            OutsideModel,
            r"does not wait, but computes \(random.py:\d+ in _randbelow_with_getrandbits\)",
        ),
        ("waits_for_a_number", OutsideModel, r"computes \(plain.py:\d+ in <genexpr>\)"),
        ("stops_at_a_breakpoint", OutsideModel, r"plain\.py:\d+: a debugger.*Take out"),
        ("stops_in_pdb", OutsideModel, r"plain\.py:\d+: a debugger.*Take out"),
        (
            "stops_in_a_debugger_object",
            OutsideModel,
            r"bdb.Bdb.set_trace.*Take it out.*plain\.py:\d+",
        ),
        ("pickled", OutsideModel, r"pickle.dumps at plain\.py"),
        ("generator", Misuse, "yield"),
        ("takes_a_fixture", Misuse, "tmp_path"),
    ],
)
def test_what_cannot_be_explored_is_refused(name: str, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        check(getattr(plain, name), seconds=2)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(Misuse, match="cannot be called"):
        check(3)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(Misuse, match="inside another function"):
        check(lambda: None)
    with pytest.raises(Misuse, match="no module of this name"):
        check(plain.locked_counter, modules=["no_such_module_at_all"])
    with pytest.raises(Misuse, match="a checkpoint is for programs of a World"):
        check(plain.locked_counter, checkpoint="kept.json")


def test_other_strategies_and_bounds_find_it_too() -> None:
    assert check(plain.racing_counter, Pos(seed=1), max_executions=200).verdict == "violated"
    assert check(plain.racing_counter, preemptions=1).verdict == "violated"
    sampled = check(plain.locked_counter, Pos(), max_executions=20)
    assert sampled.verdict == "inconclusive"


def test_modules_are_fresh_and_the_real_ones_untouched() -> None:
    before = dict(sys.modules)
    assert check(plain.racing_global).verdict == "violated"
    assert plain.VISITS == 0
    assert sys.modules == before


@explore(max_executions=100)
def test_the_decorator_makes_a_test() -> None:
    counter = plain_counter()
    threads = [threading.Thread(target=counter.increment_locked) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.value == 2


import threading  # noqa: E402 - the module is executed anew, like any other


class Own:
    def __init__(self) -> None:
        self.value = 0
        self.lock = threading.Lock()

    def increment_locked(self) -> None:
        with self.lock:
            self.value += 1


def plain_counter() -> Own:
    return Own()


def test_a_decorated_test_fails_with_the_counterexample() -> None:
    with pytest.raises(AssertionError, match=r"replay"):
        explore(plain.racing_counter)()


def test_a_breakpoint_that_is_switched_off_stops_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(plain.has_a_hook_for_breakpoints).verdict == "ok"
    monkeypatch.setenv("PYTHONBREAKPOINT", "0")
    with_threads = check(plain.stops_at_a_breakpoint)
    assert "debugger" not in with_threads.why


def test_a_search_that_begins_again_and_again_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each execution shows another place to be observed: where executions are long, that took minutes."""
    monkeypatch.setattr(front, "AT_LEAST", 0)
    monkeypatch.setattr(front, "OVERTIME", 0)
    result = check(plain.racing_counter, seconds=60)
    assert result.verdict == "inconclusive"
    assert "no execution came to its end within seconds=60" in result.why
    assert "the last Counter.value" in result.why
