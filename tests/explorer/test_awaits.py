"""A thread that waits for a value of a cell: one step instead of a loop that reads, and the same ends and outcomes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from seriatim_models.explorer import Misuse, Random, explore
from seriatim_models.explorer.model.world import World


def is_one(value: int) -> bool:
    return value == 1


def handed_over(world: World) -> None:
    flag, box = world.cell(0, name="flag"), world.cell(0, name="box")

    def give() -> None:
        box.set(7)
        flag.set(1)

    def take() -> None:
        assert flag.wait_until(is_one) == 1
        world.result(box.get())

    world.spawn(give, name="giver")
    world.spawn(take, name="taker")


def test_who_waits_for_one_write_has_one_trace() -> None:
    result = explore(handed_over)
    assert (result.verdict, result.traces, result.executions) == ("ok", 1, 1)
    assert dict(result.outcomes) == {7: 1}


def flickering(world: World) -> None:
    x = world.cell(1, name="x")

    def flicker() -> None:
        x.set(0)
        x.set(1)
        x.set(2)

    world.spawn(flicker, name="writer")
    world.spawn(lambda: x.wait_until(is_one), name="waiter")


def test_it_can_stop_waiting_before_each_write_that_ends_what_it_waits_for() -> None:
    result = explore(flickering, stuck_ok=True)
    # Before the first write, between the second and the third, or never.
    assert (result.traces, dict(result.ends)) == (3, {"finished": 2, "starved": 1})


def test_who_waits_for_what_nobody_writes_is_starved() -> None:
    result = explore(flickering)
    assert result.verdict == "violated"
    assert result.counterexample is not None
    assert "waiter waits until x, which is 2, has another value" in result.counterexample.what


def ticket_lock(threads: int) -> Callable[[World], None]:
    def program(world: World) -> None:
        following, serving = world.cell(0, name="following"), world.cell(0, name="serving")
        inside = world.cell(0, name="inside")

        def enter() -> None:
            mine = following.get_and_add(1)
            serving.wait_until(lambda now: now == mine)
            before = inside.get()
            inside.set(before + 1)
            serving.set(mine + 1)

        for _ in range(threads):
            world.spawn(enter)
        world.at_end(lambda: None if inside.get() == threads else "two were inside")

    return program


@pytest.mark.parametrize(("threads", "traces"), [(2, 2), (3, 6), (4, 24)])
def test_a_ticket_lock_is_right_in_as_many_traces_as_there_are_orders(
    threads: int, traces: int
) -> None:
    result = explore(ticket_lock(threads))
    assert (result.verdict, result.traces, result.executions) == ("ok", traces, traces)


def written_and_read(wait: Callable[[Any], object]) -> Callable[[World], None]:
    def program(world: World) -> None:
        x, y = world.cell(0, name="x"), world.cell(0, name="y")

        def first() -> None:
            y.set(1)
            x.set(1)
            y.set(2)

        def second() -> None:
            if wait(x) is not None:
                world.result(y.get())

        world.spawn(first)
        world.spawn(second)
        world.spawn(lambda: x.compare_and_set(1, 2))

    return program


def by_reading(x: Any) -> object:
    for _ in range(3):
        if x.get() >= 1:
            return True
    return None


def test_the_outcomes_are_those_of_a_loop_that_reads() -> None:
    waits = explore(written_and_read(lambda x: x.wait_until(lambda value: value >= 1)))
    loops = explore(written_and_read(by_reading))
    assert waits.verdict == loops.verdict == "ok"
    assert set(waits.outcomes) == set(loops.outcomes) - {None} == {1, 2}
    assert waits.traces is not None
    assert loops.traces is not None
    assert 2 * waits.traces < loops.traces


def test_a_sample_waits_as_well() -> None:
    result = explore(ticket_lock(3), Random(seed=1), max_executions=50)
    assert (result.violations, result.complete) == (0, 50)


def test_additions_that_commute_are_refused_beside_it() -> None:
    def program(world: World) -> None:
        x = world.cell(0, name="x")
        world.spawn(lambda: x.add(1))
        world.spawn(lambda: x.wait_until(is_one))

    with pytest.raises(Misuse, match="x is waited for and added to: use get_and_add"):
        explore(program)


def test_a_test_that_raises_is_a_violation_of_its_thread() -> None:
    def program(world: World) -> None:
        x = world.cell("", name="x")
        world.spawn(lambda: x.wait_until(lambda value: value > 1), name="asks")  # type: ignore[operator]

    result = explore(program)
    assert result.counterexample is not None
    assert "asks raised TypeError" in result.counterexample.what


def test_outside_a_thread_it_may_not_wait() -> None:
    with pytest.raises(
        Misuse, match=r"x\.wait_until\(\.\.\.\) would wait for ever outside a thread"
    ):
        explore(lambda world: world.cell(0, name="x").wait_until(is_one))
