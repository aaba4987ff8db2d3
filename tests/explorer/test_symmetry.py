"""Identical threads are explored once up to exchanging them: as many as brute force finds, in fewer executions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import factorial
from pathlib import Path
from typing import Any

import pytest

from seriatim_models.explorer import Dpor, Misuse, Replay, World, explore
from seriatim_models.explorer.search.dpor import DporSearch
from seriatim_models.explorer.search.symmetry import alike
from seriatim_workshop.crosscheck.generated_programs import (
    FLAVOURS,
    generate,
    with_identical_threads,
)
from seriatim_workshop.crosscheck.run import compare_generated
from seriatim_workshop.litmus import racy_counter

BY_EXCHANGE = Dpor(symmetry=True)
Program = Callable[[World], None]


def locked(threads: int, times: int = 1, joined: bool = False) -> Program:
    """Threads add one under a lock; spawned in the set-up, or by a thread that joins them."""

    def program(world: World) -> None:
        lock, x = world.lock(), world.cell(0)

        def work() -> None:
            for _ in range(times):
                with lock:
                    x.set(x.get() + 1)

        def main() -> None:
            for handle in [world.spawn(work) for _ in range(threads)]:
                handle.join()
            world.result(x.get())

        if joined:
            world.spawn(main)
        else:
            for _ in range(threads):
                world.spawn(work)

    return program


def producers_and_consumers(of_each: int) -> Program:
    """Two groups."""

    def program(world: World) -> None:
        ready, taken = world.semaphore(0), world.cell(0)

        def consume() -> None:
            ready.acquire()
            taken.set(taken.get() + 1)

        for _ in range(of_each):
            world.spawn(ready.release)
        for _ in range(of_each):
            world.spawn(consume)

    return program


@pytest.mark.parametrize(
    ("program", "traces", "executions"),
    [
        *((racy_counter(n), factorial(n) ** 2, factorial(n)) for n in (2, 3, 4)),
        *(
            (locked(n, joined=joined), factorial(n), 1)
            for n in (2, 3, 4)
            for joined in (False, True)
        ),
        (locked(5), 120, 1),
        (locked(3, 2), 90, 15),
        (locked(3, 2, joined=True), 90, 15),
    ],
)
def test_each_trace_once_up_to_exchanging(program: Program, traces: int, executions: int) -> None:
    apart, together = explore(program, Dpor()), explore(program, BY_EXCHANGE)
    assert (apart.verdict, apart.executions, apart.unreduced) == ("ok", traces, None)
    assert (together.verdict, together.executions, together.unreduced) == (
        "ok",
        executions,
        traces,
    )
    assert (together.blocked, together.redundant, together.exhausted) == (0, 0, True)
    assert set(together.outcomes) == set(apart.outcomes)
    assert f"{traces} with identical threads distinguished" in together.why


def test_two_groups_are_exchanged_independently() -> None:
    apart = explore(producers_and_consumers(2), Dpor())
    together = explore(producers_and_consumers(2), BY_EXCHANGE)
    assert together.unreduced == apart.traces
    assert together.executions < (apart.traces or 0) / 2


@pytest.mark.parametrize("awaits", [False, True])
def test_generated_programs_agree_with_brute_force(awaits: bool) -> None:
    traces = 0
    for number in range(5 * len(FLAVOURS)):
        program = with_identical_threads(generate(number, awaits))
        found = compare_generated(program, most=300)
        assert not found.wrong, f"{program}\n{found.wrong}"
        traces += found.traces
    assert traces > 5 * len(FLAVOURS)


LOST_ONCE = [(1732, False), (288, True)]
"""Programs of which a trace was lost where a twin was left out instead of being left where it belongs."""


@pytest.mark.parametrize(("number", "awaits"), LOST_ONCE)
def test_a_twin_is_left_where_it_belongs(number: int, awaits: bool) -> None:
    assert not compare_generated(with_identical_threads(generate(number, awaits))).wrong


def test_brute_force_sees_what_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail: here whatever has a twin is left out."""
    monkeypatch.setattr(DporSearch, "_place", lambda *_: None)
    found = [compare_generated(with_identical_threads(generate(k)), most=300) for k in range(40)]
    assert sum("with symmetry" in one.wrong for one in found) > 5


def wrong_once_two_were_lost(world: World) -> None:
    x = world.cell(0)

    def work() -> None:
        x.set(x.get() + 1)

    for _ in range(4):
        world.spawn(work)
    world.at_end(lambda: None if x.get() > 1 else "three were lost")


def test_a_violation_is_found_and_replayed_without_symmetry() -> None:
    case = explore(wrong_once_two_were_lost, BY_EXCHANGE).counterexample
    assert case is not None
    assert explore(wrong_once_two_were_lost, Replay(case.token)).verdict == "violated"


def one_is_joined(world: World) -> None:
    x = world.cell(0)

    def main() -> None:
        one, other = world.spawn(x.get), world.spawn(x.get)
        one.join()
        x.set(1)
        other.join()

    world.spawn(main)


def none_but_one_is_joined(world: World) -> None:
    x = world.cell(0)

    def main() -> None:
        one, _ = world.spawn(x.get), world.spawn(x.get)
        one.join()

    world.spawn(main)


def one_joins_another(world: World) -> None:
    handles: list[Any] = []

    def work() -> None:
        handles[0].join()

    handles.extend(world.spawn(work) for _ in range(2))


def plain_state_tells_apart(world: World) -> None:
    names, last = iter("ab"), world.cell("")

    def work() -> None:
        last.set(next(names))

    for _ in range(2):
        world.spawn(work)
    world.at_end(lambda: world.result(last.get()))


def a_check_looks_at_names(world: World) -> None:
    x, names = world.cell(0), list[str]()

    def work() -> None:
        x.set(x.get() + 1)
        names.append(world.thread)

    for _ in range(2):
        world.spawn(work)
    world.at_end(lambda: "t2 was first" if names[0] == "t2" else None)


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (one_is_joined, "one is joined before the others"),
        (none_but_one_is_joined, "one is joined before the others"),
        (one_joins_another, "one joins another"),
        (plain_state_tells_apart, "with them exchanged"),
        (a_check_looks_at_names, "with them exchanged something is"),
    ],
)
def test_threads_that_are_distinguished_are_refused(program: Program, why: str) -> None:
    with pytest.raises(Misuse, match=why) as refused:
        explore(program, BY_EXCHANGE, stuck_ok=True)
    assert "Explore without symmetry" in str(refused.value)
    assert explore(program, Dpor(), stuck_ok=True).executions


@pytest.mark.parametrize("option", [{"jobs": 2}, {"preemptions": 1}, {"checkpoint": "c.json"}])
def test_what_it_does_not_go_with(
    option: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Misuse, match="symmetry goes with neither"):
        explore(racy_counter(2), BY_EXCHANGE, **option)


def test_others_between_them_end_a_group() -> None:
    """Spawned a, b, a: no two identical ones in a row."""

    def program(world: World) -> None:
        x = world.cell(0)

        def a() -> None:
            x.set(1)

        def b() -> None:
            x.set(2)

        for work in (a, b, a):
            world.spawn(work)

    result = explore(program, BY_EXCHANGE)
    assert (result.executions, result.unreduced) == (6, 6)
    assert "no threads were exchanged" in result.why


def maker(value: object) -> Callable[[], object]:
    return lambda: value


def test_functions_are_alike_over_the_same_variables_and_arguments() -> None:
    x, y, value = [0], [0], object()
    in_a_loop = [lambda: x for _ in range(2)]
    with_defaults = [lambda k=k: k for k in (1, 2)]
    assert alike(*in_a_loop)
    assert not alike(*with_defaults)
    assert alike(x.append, x.append)
    assert not alike(x.append, y.append)
    assert alike(partial(print, 1, value, end=""), partial(print, 1, value, end=""))
    assert not alike(partial(print, x), partial(print, y))
    assert not alike(partial(print, 1), partial(print, True))
    assert not alike(maker(value), maker(object()))
    assert not alike(maker, test_functions_are_alike_over_the_same_variables_and_arguments)
