"""Known mistakes are found and said right; their repairs are not accused."""

from __future__ import annotations

import pytest

from seriatim_models.explorer import Replay, World, explore
from seriatim_models.explorer.model.world import ControlledCell
from seriatim_workshop.litmus import MISTAKES, REPAIRS, Program
from seriatim_workshop.litmus import lost_wakeup as lost


@pytest.mark.parametrize("name", MISTAKES)
def test_a_known_mistake_is_found_with_its_kind(name: str) -> None:
    program, kind = MISTAKES[name]
    result = explore(program, max_steps=400)
    assert result.verdict == "violated"
    case = result.counterexample
    assert case is not None
    assert case.violations[0].kind == kind


@pytest.mark.parametrize("name", MISTAKES)
def test_its_token_replays(name: str) -> None:
    program, _ = MISTAKES[name]
    case = explore(program, max_steps=400).counterexample
    assert case is not None
    again = explore(program, Replay(case.token), max_steps=400).counterexample
    assert again is not None
    assert again.violations == case.violations
    assert again.events == case.events


@pytest.mark.parametrize("name", REPAIRS)
def test_its_repair_holds(name: str) -> None:
    program: Program = REPAIRS[name]
    result = explore(program, seconds=60)
    assert result.verdict == "ok", result.counterexample
    assert result.blocked == result.redundant == 0


def test_a_token_replays_whether_or_not_the_search_went_on() -> None:
    def program(world: World) -> None:
        x = world.cell(0, name="x")
        world.spawn(lambda: 1 // x.get(), name="a")
        world.spawn(lambda: x.set(x.get() + 1), name="b")

    for keep_going in (False, True):
        case = explore(program, keep_going=keep_going, shrink=0).counterexample
        assert case is not None
        again = explore(program, Replay(case.token)).counterexample
        assert again is not None
        assert again.what == case.what
        assert again.events == case.events


def test_a_lost_wakeup_names_waiter_and_the_notify_that_missed() -> None:
    case = explore(lost).counterexample
    assert case is not None
    assert "waiter sleeps on c since step 7" in case.what
    assert (
        "the last notify, by setter in step 4 after flag.set(True) in step 2, found nobody waiting"
        in case.what
    )


def test_a_deadlock_names_the_circle() -> None:
    case = explore(MISTAKES["crossed_locks"][0]).counterexample
    assert case is not None
    assert "the cycle: one -> two -> one" in case.what


def two_polite(world: World) -> None:
    """Each gives way to the other: some schedules end, and a fair one does not."""
    a, b = world.cell(0, name="a"), world.cell(0, name="b")

    def polite(mine: ControlledCell[int], other: ControlledCell[int]) -> None:
        mine.set(1)
        while other.get() == 1:
            mine.set(0)
            mine.set(1)
        mine.set(0)

    world.spawn(lambda: polite(a, b), name="A")
    world.spawn(lambda: polite(b, a), name="B")


def test_a_livelock_among_schedules_that_end_is_found_by_taking_turns() -> None:
    result = explore(two_polite, max_executions=3)
    assert result.verdict == "violated"
    assert result.counterexample is not None
    assert result.counterexample.end == "livelock"
    assert "A and B repeat" in result.counterexample.what
    assert "nothing changes" in result.counterexample.what
    assert result.counterexample.events[-1].n == 5000
    replayed = explore(two_polite, Replay(result.counterexample.token))
    assert replayed.verdict == "violated"


def test_a_livelock_is_no_violation_where_being_stuck_is_none() -> None:
    result = explore(two_polite, max_executions=3, max_steps=100, stuck_ok=True)
    assert result.verdict == "inconclusive"


def test_a_daemon_may_go_round_for_ever() -> None:
    def program(world: World) -> None:
        x = world.cell(0, name="x")

        def poll() -> None:
            while True:
                x.get()

        world.spawn(poll, name="poll", daemon=True)
        world.spawn(lambda: x.set(1), name="set")

    result = explore(program, max_steps=200, max_executions=5)
    assert result.verdict == "inconclusive"
    assert "poll repeat x.get()" in result.why
