"""Known mistakes are found and said right; their repairs are not accused."""

from __future__ import annotations

import pytest

from seriatim_models.explorer import Replay, World, explore
from seriatim_models.explorer.litmus import MISTAKES, REPAIRS, Program
from seriatim_models.explorer.litmus import lost_wakeup as lost


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
    assert "the last notify, by setter in step 4, found nobody waiting" in case.what


def test_a_deadlock_names_the_circle() -> None:
    case = explore(MISTAKES["crossed_locks"][0]).counterexample
    assert case is not None
    assert "the circle: one -> two -> one" in case.what
