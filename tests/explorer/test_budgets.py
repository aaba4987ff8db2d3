"""Bounds are said, and a budget that ran out is never ok."""

from __future__ import annotations

import itertools

import pytest

from seriatim_models.explorer import Dpor, Random, Result, World, explore
from seriatim_models.explorer.search import shrink
from seriatim_models.explorer.search.runner import Runner
from seriatim_workshop.litmus import racy_counter


def spins(world: World) -> None:
    """One thread polls a cell that another one sets."""
    x = world.cell(0, name="x")

    def spin() -> None:
        while x.get() == 0:
            pass

    world.spawn(spin, name="spin")
    world.spawn(lambda: x.set(1), name="set")


def test_executions_that_ran_out_make_it_inconclusive() -> None:
    result = explore(racy_counter(3), max_executions=10)
    assert (result.verdict, result.exhausted, result.complete) == ("inconclusive", False, 10)
    assert "max_executions=10" in result.why


def test_seconds_that_ran_out_make_it_inconclusive() -> None:
    result = explore(racy_counter(6), seconds=0.05)
    assert result.verdict == "inconclusive"
    assert "seconds=0.05" in result.why


def test_a_search_that_ends_in_time_says_in_time_what_it_has_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = []

    def program(world: World) -> None:
        runs.append(world)
        c = world.cell(0, name="c")

        def add() -> None:
            own = world.cell(0)
            for _ in range(3):
                own.get()
            c.set(c.get() + 1)

        for _ in range(3):
            world.spawn(add)
        world.at_end(lambda: None if c.get() > 1 else "two increments were lost")

    assert explore(program, Random(seed=1), seconds=60).verdict == "violated"
    shrunk = len(runs)
    runs.clear()
    monkeypatch.setattr(shrink, "AT_LEAST", 0.0)
    monkeypatch.setattr(Runner, "seconds_left", property(lambda runner: 0.0))  # it is over
    assert explore(program, Random(seed=1), seconds=60).verdict == "violated"
    assert len(runs) < shrunk - 100


def test_a_bound_on_preemptions_is_said() -> None:
    results = {k: explore(racy_counter(3), Dpor(), preemptions=k) for k in range(4)}
    assert [r.traces for r in results.values()] == [6, 24, 36, 36]
    assert all(r.verdict == "ok" for r in results.values())
    assert "within preemptions=1" in results[1].why
    assert results[1].bounds["preemptions"] == 1


def test_a_spin_loop_is_explained() -> None:
    result = explore(spins, max_steps=60)
    assert result.verdict == "inconclusive"
    assert "max_steps=60" in result.why
    assert "spin repeat x.get() -> 0" in result.why


def test_violations_are_counted_when_going_on() -> None:
    def program(world: World) -> None:
        c = world.cell(0, name="c")
        for _ in range(2):
            world.spawn(lambda: c.set(c.get() + 1))
        world.at_end(lambda: None if c.get() == 2 else "SO-1: an increment was lost")

    first, every = explore(program), explore(program, keep_going=True)
    assert (every.complete, every.violations, every.exhausted) == (4, 2, True)
    assert every.verdict == first.verdict == "violated"
    assert first.complete < 4


def test_the_observer_sees_every_execution_and_may_object() -> None:
    def observer_counts() -> Result:
        return explore(racy_counter(2), on_execution=lambda w: seen.append(w.results[0]))

    seen: list[object] = []
    assert observer_counts().verdict == "ok"
    assert sorted(seen, key=str) == [1, 1, 2, 2]
    result = explore(racy_counter(2), on_execution=lambda w: "no" if w.results == [1] else None)
    assert result.counterexample is not None
    assert result.counterexample.what == "no"


def test_records_belong_to_their_step_and_thread() -> None:
    def program(world: World) -> None:
        def seen(change: object) -> None:
            world.record("changed")

        x = world.cell(0, name="x", watch=seen)
        world.record("setup")

        def work() -> None:
            world.record("started")
            x.set(1)
            world.record("done", value=1)

        world.spawn(work, name="a")

    said: list[tuple[int, str, str]] = []
    explore(
        program, on_execution=lambda w: said.extend((r.step, r.thread, r.ev) for r in w.records)
    )
    assert said == [
        (0, "setup", "setup"),
        (0, "a", "started"),
        (1, "a", "changed"),
        (1, "a", "done"),
    ]


def test_time_outs_and_spurious_wakeups_keep_to_their_budget() -> None:
    def program(world: World) -> None:
        m = world.lock(name="m")
        c = world.condition(m, name="c")

        def wait() -> None:
            with m:
                world.result(tuple(c.wait(1) for _ in range(2)))

        world.spawn(wait, daemon=True)

    def outcomes(timeouts: int, spurious: int) -> dict[object, int]:
        return dict(explore(program, timeouts=timeouts, spurious=spurious).outcomes)

    assert outcomes(0, 0) == outcomes(1, 0) == {}
    assert outcomes(2, 0) == {(False, False): 1}
    assert outcomes(1, 1) == {(False, True): 1, (True, False): 1}
    assert outcomes(2, 2) == dict.fromkeys(itertools.product((False, True), repeat=2), 1)


def test_a_choice_of_whom_to_wake() -> None:
    def program(world: World) -> None:
        m = world.lock(name="m")
        c = world.condition(m, name="c")
        woken: list[str] = []

        def wait(name: str) -> None:
            with m:
                c.wait()
                woken.append(name)

        for name in "abc":
            world.spawn(lambda name=name: wait(name), name=name, daemon=True)  # type: ignore[misc]

        def notify() -> None:
            with m:
                if len(c.value) == 3:
                    c.notify(2)

        world.spawn(notify, name="n")
        world.at_end(lambda: world.result("".join(sorted(woken))))

    assert set(explore(program).outcomes) == {"", "ab", "ac", "bc"}


def test_choices_while_setting_up() -> None:
    def program(world: World) -> None:
        n = world.choose(3)
        x = world.cell(0, name="x")
        for _ in range(n):
            world.spawn(lambda: x.set(x.get() + 1))
        world.at_end(lambda: world.result((n, x.get())))

    result = explore(program)
    assert result.outcomes == {(0, 0): 1, (1, 1): 1, (2, 1): 2, (2, 2): 2}
    assert result.blocked == result.redundant == 0


def test_a_spin_loop_is_explained_also_where_the_time_ran_out() -> None:
    result = explore(spins, max_executions=30)
    assert result.verdict == "inconclusive"
    assert "max_executions=30" in result.why
    assert "spin repeat x.get() -> 0" in result.why
    assert "block on a condition or by wait_until of the cell instead" in result.why


def test_every_bound_stands_in_the_verdict() -> None:
    result = explore(racy_counter(2), timeouts=2, spurious=1, max_steps=77)
    assert result.verdict == "ok"
    assert "within max_steps=77, timeouts=2, spurious=1" in result.why
