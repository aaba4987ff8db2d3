"""Where a counterexample was lost, against all interleavings one by one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from seriatim_models.explorer import Counterexample, World, explore
from seriatim_models.explorer.model.program import Limits, Setting
from seriatim_models.explorer.search.point_of_no_return import point_of_no_return
from seriatim_models.explorer.search.runner import Runner
from seriatim_models.explorer.trace.counterexample import PointOfNoReturn
from seriatim_models.programs import MUTANTS, PROGRAMS
from seriatim_models.programs.check import Judge, check_program, runnable
from seriatim_workshop.crosscheck.brute_force import interleavings
from seriatim_workshop.litmus import aba, crossed_locks, racy_counter, stolen_wakeup

Program = Callable[[World], None]


def wrong_counter(world: World) -> None:
    racy_counter(2)(world)
    counter = world.results
    world.at_end(lambda: None if counter == [2] else f"counter is {counter}")


def by_brute_force(program: Program, case: Counterexample, judge: Judge | None) -> int:
    """The first prefix of which every execution is wrong."""
    runner = Runner(program, Setting(), Limits(), on_execution=judge)
    executions = []
    for ex, _ in interleavings(runner.fresh):
        executions.append((list(ex.schedule), bool(runner.judge(ex, ex.end))))
    return next(
        k
        for k in range(len(case.schedule) + 1)
        if all(wrong for steps, wrong in executions if steps[:k] == case.schedule[:k])
    )


@pytest.mark.parametrize(
    "program",
    [wrong_counter, crossed_locks, stolen_wakeup(again=False), aba(tagged=False)],
    ids=["counter", "crossed locks", "stolen wake-up", "aba"],
)
def test_it_is_where_brute_force_says(program: Program) -> None:
    case = explore(program).counterexample
    assert case is not None
    found = point_of_no_return(program, case)
    assert found is not None
    assert found.decided
    assert found.step == by_brute_force(program, case, None)
    assert 0 < found.step <= len(case.events)


@pytest.mark.parametrize("name", ["published-immediate", "published-immediate-repair"])
def test_a_mutant_is_doomed_where_brute_force_says(name: str) -> None:
    mutant = MUTANTS[name]
    program = runnable(PROGRAMS[mutant.program], mutant)
    case = check_program(PROGRAMS[mutant.program], mutant).explored.counterexample
    assert case is not None
    judge = Judge((mutant.killed_by,))
    found = point_of_no_return(program, case, on_execution=judge)
    assert found is not None
    assert found.step == by_brute_force(program, case, judge)


def test_where_every_schedule_is_wrong_the_start_is_doomed() -> None:
    def program(world: World) -> None:
        x = world.cell(0, name="x")
        for name in "ab":
            world.spawn(lambda: x.add(1), name=name)
        world.at_end(lambda: "always")

    case = explore(program).counterexample
    assert case is not None
    found = point_of_no_return(program, case)
    assert found is not None
    assert found.step == 0
    assert str(found).startswith("Every schedule of this program is wrong")


def test_what_was_not_decided_is_reported() -> None:
    case = explore(wrong_counter).counterexample
    assert case is not None
    hurried = point_of_no_return(wrong_counter, case, executions=1)
    assert hurried is not None
    assert not PointOfNoReturn(7, 2, 3).decided
    assert str(PointOfNoReturn(7, 2, 3)).endswith(
        "whether that was so earlier, at the earliest after step 4, was not decided within the budget."
    )


def test_where_no_time_is_left_it_is_not_decided() -> None:
    case = explore(wrong_counter).counterexample
    assert case is not None
    assert point_of_no_return(wrong_counter, case) is not None
    assert point_of_no_return(wrong_counter, case, seconds=0.0) is None
