"""What the explorer says of tests with asyncio: timers in every order, threads beside the loop, mistakes, refusals."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest
from tests.own_code.test_verdicts import load

from seriatim_models.cli import run
from seriatim_models.explorer import Misuse, OutsideModel, Replay, World
from seriatim_models.explorer.python import check, explore, sandbox_loop
from seriatim_models.explorer.python.event_loop import Timers
from seriatim_models.explorer.python.execution import PythonExecution

HERE = Path(__file__).with_name("coroutines.py")
coroutines: Any = load("plain_coroutines", HERE)


@pytest.mark.parametrize(
    ("name", "traces"),
    [
        ("locked", None),
        ("queue_with_limit", None),
        ("task_group", None),
        ("shielded", None),
        ("condition_and_event", None),
        ("asynchronous_generator", 29),
        ("spins_until_a_timer", 41),
        ("thread_and_loop", 2),
        ("in_a_thread", None),
        ("two_runs", 1),
        ("imported_only", 2),
        ("as_they_end", None),
    ],
)
def test_right_code_is_exhausted(name: str, traces: int | None) -> None:
    result = check(getattr(coroutines, name))
    assert (result.verdict, result.redundant, result.blocked) == ("ok", 0, 0), str(result)
    assert traces is None or result.traces == traces


def test_the_loops_of_sockets_are_where_they_are_in_asyncio() -> None:
    result = check(coroutines.patches_the_transports_of_sockets)
    assert (result.verdict, result.unseen) == ("ok", []), str(result)
    assert (result.traces or 0) > 1


def test_what_a_program_sets_in_a_class_of_asyncio_is_gone_when_it_ends() -> None:
    result = check(coroutines.patches_its_locks)
    assert result.verdict == "inconclusive", str(result)
    assert "Lock.acquire is set at" in result.why
    assert result.executions > 1


def test_what_goes_through_the_queue_of_a_loop_is_no_place_if_that_is_one() -> None:
    result = check(coroutines.both_in_threads, max_executions=40)
    assert [race.place for race in result.races if "Handle" in race.place] == []
    assert any(race.place.startswith("deque of base_events") for race in result.races)


def test_loops_of_two_threads_leave_no_coroutine_that_nobody_awaits(
    recwarn: pytest.WarningsRecorder,
) -> None:
    check(coroutines.two_loops, max_executions=40)
    gc.collect()
    assert [str(warning.message) for warning in recwarn] == []


def test_known_mistakes_of_asyncio_are_found() -> None:
    """gh-90155 as a program of our own, gh-112202 in the interpreter that runs, if it is older than 3.13."""
    lost = check(coroutines.gate_that_loses_a_wakeup)
    assert lost.counterexample is not None, str(lost)
    assert "enter) at coroutines.py" in lost.counterexample.what
    assert check(coroutines.gate_that_passes_it_on).verdict == "ok"
    repaired = hasattr(asyncio.Condition, "_notify")
    found = check(coroutines.notified_and_cancelled)
    assert found.verdict == ("ok" if repaired else "violated"), str(found)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("order_of_sleeps", "the sides were [2, 1] and [1, 2]"),
        ("read_then_write", "the sides were 1 and 2"),
        ("waits_for_ever", ": `await asyncio.Event().wait()`"),
        ("two_locks", ": `async with second:`"),
        ("blocks_its_own_loop", "main waits for lock lock, held by main"),
        ("never_retrieved", "Task exception was never retrieved (Task-2 (never_retrieved"),
        ("never_awaited", " was never awaited"),
        ("fails_in_a_callback", "pop from empty list"),
        ("not_thread_safe", "waits for ever: Task-1"),
        ("two_calls_from_threads", "the sides were [2, 1] and [1, 2]"),
    ],
)
def test_mistakes_are_found_and_replayed(name: str, what: str) -> None:
    test = getattr(coroutines, name)
    result = check(test)
    case = result.counterexample
    assert case is not None, str(result)
    assert what in case.text(width=400)
    again = check(test, Replay(case.token)).counterexample
    assert again is not None
    assert (again.what, again.schedule) == (case.what, case.schedule)


def test_the_order_of_deadlines_is_an_option() -> None:
    result = check(coroutines.order_of_sleeps, timers="deadline")
    assert result.verdict == "ok"
    assert "in the order of their deadlines" in result.why
    assert check(coroutines.read_then_write, timers="deadline").verdict == "violated"
    with pytest.raises(Misuse, match="any, deadline"):
        check(coroutines.order_of_sleeps, timers="none")


def test_a_bound_on_timers_is_said() -> None:
    assert "each within 40 turns" in check(coroutines.spins_until_a_timer).why
    assert "each within" not in check(coroutines.shielded).why


def test_without_a_timer_there_is_one_schedule() -> None:
    result = check(coroutines.one_schedule)
    assert result.verdict == "inconclusive"
    assert "waits for no timer" in result.why


@pytest.mark.parametrize(
    ("name", "error", "why"),
    [
        ("opens_a_connection", OutsideModel, r"create_connection.*stub.*coroutines\.py"),
        ("starts_a_process", OutsideModel, r"subprocess_exec.*stub.*coroutines\.py"),
        ("handles_a_signal", OutsideModel, r"add_signal_handler.*stub.*coroutines\.py"),
        ("takes_the_real_one", OutsideModel, r"real asyncio.*modules="),
        ("spins_for_ever", Misuse, r"livelock is suspected.*sleep\(0\)"),
    ],
)
def test_what_cannot_be_explored_is_refused(name: str, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        check(getattr(coroutines, name))


def test_the_command_says_it_once_and_within_the_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["check", f"{HERE}::order_of_sleeps"]) == 1
    shown = capsys.readouterr().out
    assert shown.count(" py1.") == 1
    _, _, text = shown.partition("assert seen")
    # Where the project lies is no matter of ours: paths may be longer.
    ours = [line for line in text.splitlines() if str(HERE) not in line]
    assert all(len(line) <= 80 for line in ours)
    assert "asyncio/runners.py" not in shown  # how a task is run says nothing


@explore(seconds=10)
async def test_the_decorator_makes_a_test_of_a_coroutine_function() -> None:
    task = asyncio.create_task(asyncio.sleep(1, 3))
    await asyncio.wait([task], timeout=1)
    assert await task == 3


def test_a_timer_that_never_ends_early_hides_the_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    """What finds `order_of_sleeps` is that every pending timer may end: a loop that takes the first one misses it."""
    every = Timers._candidates

    def first(self: Timers, ex: Any, idle: bool) -> list[Any]:
        return every(self, ex, idle)[:1] if idle else []

    monkeypatch.setattr(Timers, "_candidates", first)
    assert check(coroutines.order_of_sleeps).verdict == "ok"


def test_the_loop_can_be_read_outside_of_the_sandbox() -> None:
    assert sandbox_loop.EventLoop is sandbox_loop.SelectorEventLoop


def test_executions_that_are_over_are_let_go() -> None:
    """Each makes the classes of `concurrent.futures` anew, by which what is known of classes held all of them."""
    alive: list[int] = []

    def look(world: World) -> None:
        last = len(alive) == 110
        alive.append(sum(type(x) is PythonExecution for x in gc.get_objects()) if last else 0)

    check(coroutines.two_in_threads, max_executions=120, on_execution=look)
    assert 0 < max(alive) < 80
