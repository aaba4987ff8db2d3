"""Objects that know nothing but a host, explored through pytest and Hypothesis, against sequential objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from seriatim.host import Host
from seriatim_models.explorer import Result, World
from seriatim_models.explorer.linearize import CallInterval, check_linearizable, linearization
from seriatim_models.explorer.testing import Inconclusive, concurrent_calls, explored, linearizable

Node = tuple[int, Any] | None


class Stack:
    """Treiber's lock-free stack."""

    def __init__(self, host: Host) -> None:
        self.top = host.cell(None, name="top")

    def push(self, value: int) -> None:
        while True:
            old = self.top.get()
            if self.top.compare_and_set(old, (value, old)):  # type: ignore[arg-type]
                return

    def pop(self) -> int | None:
        while True:
            old: Node = self.top.get()
            if old is None:
                return None
            if self.top.compare_and_set(old, old[1]):  # type: ignore[arg-type]
                return old[0]


class HastyStack(Stack):
    """The same with a pop that does not look again."""

    def pop(self) -> int | None:
        old: Node = self.top.get()
        if old is None:
            return None
        self.top.set(old[1])
        return old[0]


class ListStack:
    def __init__(self) -> None:
        self.items: list[int] = []

    def push(self, value: int) -> None:
        self.items.append(value)

    def pop(self) -> int | None:
        return self.items.pop() if self.items else None


class Buffer:
    """A bounded buffer of one place."""

    def __init__(self, host: Host) -> None:
        self.lock = host.lock("m")
        self.changed = host.condition(self.lock, "changed")
        self.item = host.cell(None, name="item")

    def put(self, value: int) -> None:
        with self.lock:
            while self.item.get() is not None:
                self.changed.wait()
            self.item.set(value)  # type: ignore[arg-type]
            self.changed.notify_all()

    def take(self) -> int | None:
        with self.lock:
            while self.item.get() is None:
                self.changed.wait()
            value = self.item.get_and_set(None)
            self.changed.notify_all()
            return value


CALLS = {"push": st.tuples(st.integers(0, 2)), "pop": st.tuples()}


@given(concurrent_calls(CALLS, threads=(2, 2), calls=(1, 2)))
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_lock_free_stack_is_linearizable(threads: list[list[tuple[Any, ...]]]) -> None:
    linearizable(Stack, ListStack, threads)


def test_hypothesis_shrinks_the_program_and_the_explorer_its_schedule() -> None:
    @given(concurrent_calls(CALLS, threads=(2, 2), calls=(1, 2)))
    @settings(
        max_examples=200,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    def search(threads: list[list[tuple[Any, ...]]]) -> None:
        linearizable(HastyStack, ListStack, threads, max_executions=500)

    with pytest.raises(AssertionError, match="not linearizable"):
        search()


def test_the_hasty_stack_hands_one_item_out_twice() -> None:
    result = check_linearizable(HastyStack, ListStack, [[("push", 1), ("pop",)], [("pop",)]])
    assert result.counterexample is not None
    assert "t1: pop() -> 1; t2: pop() -> 1" in result.counterexample.what


@explored(exhaustive=True)
def test_a_bounded_buffer_delivers_everything_once(world: World) -> None:
    buffer = Buffer(world.host)
    taken: list[int | None] = []
    world.spawn(lambda: buffer.put(1), name="p1")
    world.spawn(lambda: buffer.put(2), name="p2")
    world.spawn(lambda: taken.append(buffer.take()), name="c1")
    world.spawn(lambda: taken.append(buffer.take()), name="c2")
    world.at_end(lambda: None if sorted(map(str, taken)) == ["1", "2"] else f"taken {taken}")


def test_the_fixture_explores_inside_a_test(explorer: Callable[..., Result]) -> None:
    def program(world: World) -> None:
        stack = Stack(world.host)
        world.spawn(lambda: stack.push(1))
        world.spawn(lambda: world.result(stack.pop()))

    found = explorer(program, exhaustive=True)
    assert set(found.outcomes) == {None, 1}


def test_the_fixture_fails_with_the_counterexample(explorer: Callable[..., Result]) -> None:
    def program(world: World) -> None:
        stack, taken = HastyStack(world.host), []
        stack.push(1)
        for _ in range(2):
            world.spawn(lambda: taken.append(stack.pop()))
        world.at_end(lambda: None if taken.count(1) < 2 else "one item was handed out twice")

    with pytest.raises(AssertionError, match=r"(?s)handed out twice.*--explore-replay sr1\."):
        explorer(program)


@pytest.fixture
def limit() -> int:
    return 2


@explored()
def test_fixtures_come_after_the_world(world: World, limit: int) -> None:
    x = world.cell(0, name="x")
    world.spawn(lambda: x.set(limit))
    world.at_end(lambda: None if x.get() == 2 else "no")


def test_a_failing_exploration_shows_schedule_and_token() -> None:
    @explored()
    def wrong(world: World) -> None:
        x = world.cell(0, name="x")
        world.spawn(lambda: x.set(1), name="a")
        world.at_end(lambda: "IM-1: always")

    with pytest.raises(AssertionError, match=r"(?s)IM-1.*x\.set\(1\).*--explore-replay sr1\."):
        wrong()


def test_asking_for_everything_and_not_getting_it_fails() -> None:
    @explored(exhaustive=True, max_executions=1)
    def racy(world: World) -> None:
        x = world.cell(0, name="x")
        world.spawn(lambda: x.set(1))
        world.spawn(lambda: x.set(2))

    with pytest.raises(Inconclusive, match="max_executions=1"):
        racy()


def test_a_call_that_did_not_return_may_have_happened_or_not() -> None:
    push = CallInterval("a", ("push", 1), 1)
    seen = CallInterval("b", ("pop",), 2, 3, 1)
    unseen = CallInterval("b", ("pop",), 2, 3, None)
    other = CallInterval("b", ("pop",), 2, 3, 7)
    assert linearization([push, seen], ListStack) is not None
    assert linearization([push, unseen], ListStack) is not None
    assert linearization([push, other], ListStack) is None


def test_real_time_order_is_kept() -> None:
    first = CallInterval("a", ("push", 1), 1, 2)
    empty = CallInterval("b", ("pop",), 3, 4, None)
    assert linearization([first, empty], ListStack) is None
