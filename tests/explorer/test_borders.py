"""What the explorer cannot see is never ok: no visible step, functions that never ran, real locks, real waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from seriatim_models.explorer import Misuse, Random, Result, World, explore
from seriatim_models.explorer.testing import Inconclusive, explored, linearizable


class Counter:
    """A counter that two threads can get wrong, in a plain attribute."""

    def __init__(self, host: object = None) -> None:
        self.n = 0

    def increment(self) -> int:
        """Read, then write."""
        before = self.n
        self.n = before + 1
        return before


class Sequential(Counter):
    """The same, called by one thread only."""


def nothing_visible(world: World) -> None:
    counter = Counter()
    world.spawn(counter.increment)
    world.spawn(counter.increment)
    world.at_end(lambda: None if counter.n == 2 else "an increment was lost")


def only_spawn_and_join(world: World) -> None:
    counter = Counter()

    def main() -> None:
        for child in [world.spawn(counter.increment), world.spawn(counter.increment)]:
            child.join()

    world.spawn(main)


@pytest.mark.parametrize("program", [nothing_visible, only_spawn_and_join, lambda world: None])
@pytest.mark.parametrize("strategy", [None, Random()])
def test_without_a_visible_step_nothing_was_tested(program: Any, strategy: Any) -> None:
    result = explore(program, strategy, max_executions=3)
    assert result.verdict == "inconclusive"
    assert "no thread took a visible step" in result.why


def test_one_visible_step_is_a_case() -> None:
    def program(world: World) -> None:
        x = world.cell(0)
        world.spawn(lambda: x.set(1))

    assert explore(program).verdict == "ok"
    assert explore(lambda world: world.choose(2)).verdict == "ok"


def test_a_test_that_tested_nothing_fails(explorer: Callable[..., Result]) -> None:
    with pytest.raises(Inconclusive, match="no thread took a visible step"):
        explored()(nothing_visible)()
    with pytest.raises(Inconclusive, match="no thread took a visible step"):
        explorer(nothing_visible)
    with pytest.raises(Inconclusive, match="no thread took a visible step"):
        linearizable(Counter, Sequential, [[("increment",)], [("increment",)]])


def test_a_program_that_never_ran_is_refused() -> None:
    async def coroutine(world: World) -> None:
        world.at_end(lambda: "never reached")

    def generator(world: World) -> Any:
        yield world

    async def both(world: World) -> Any:
        yield world

    for program, kind in [
        (coroutine, "coroutine"),
        (generator, "generator"),
        (both, "async_generator"),
    ]:
        for front in (explore, lambda p: explored()(p)()):
            with pytest.raises(Misuse, match=f"returned a {kind} .*nothing of it has run"):
                front(program)


def test_a_thread_that_never_ran_is_refused() -> None:
    async def work() -> None: ...

    def staged(world: World) -> None:
        world.spawn(work, name="a")

    def inside(world: World) -> None:
        x = world.cell(0)
        world.spawn(lambda: (x.get(), world.spawn(lambda: work(), name="a")))

    for program in (staged, inside):
        with pytest.raises(Misuse, match="function of a returned a coroutine"):
            explore(program)


def test_what_cannot_be_called_is_refused() -> None:
    def started(world: World) -> None:
        x = world.cell(0)
        done: Any = x.get_and_set(None)  # type: ignore[arg-type]
        world.spawn(done)

    def inside(world: World) -> None:
        x = world.cell(0)
        world.spawn(lambda: world.spawn(x.get()))  # type: ignore[arg-type]

    with pytest.raises(Misuse, match=r"spawn\(0\): a int cannot be called"):
        explore(started)
    with pytest.raises(Misuse, match=r"spawn\(0\): a int cannot be called"):
        explore(inside)
    with pytest.raises(Misuse, match=r"at_end\(True\): a bool cannot be called"):
        explore(lambda world: world.at_end(True))  # type: ignore[arg-type]


async def finds_nothing() -> None: ...


@pytest.mark.parametrize("said", [True, False, "", [], 0])
def test_a_check_that_says_nothing_is_refused(said: object) -> None:
    def program(world: World) -> None:
        x = world.cell(0)
        world.spawn(lambda: x.set(1))
        world.at_end(lambda: said)

    with pytest.raises(Misuse, match="does not say whether something is wrong"):
        explore(program)


def test_a_check_that_never_ran_is_refused() -> None:
    with pytest.raises(Misuse, match="check finds_nothing of at_end"):
        explore(lambda world: world.at_end(finds_nothing))
