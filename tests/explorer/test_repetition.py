"""Steps that a search takes again are not recorded again, and show no difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest
from msgspec.structs import replace

from seriatim_models.explorer import Dpor, World, explore
from seriatim_models.explorer.model.program import Limits, ProgramUnderTest, Setting
from seriatim_models.explorer.model.world import Record
from seriatim_models.explorer.trace.replay_run import follow
from seriatim_models.programs import PROGRAMS
from seriatim_models.programs.check import Judge, history, runnable
from seriatim_models.properties import PROPERTIES
from seriatim_models.properties.whitebox.judging import judge
from seriatim_models.recording.base import Around, Recording
from seriatim_models.watched import Change

MANY = 30
"""Executions of a program that are compared: enough to go back to the first steps of the smaller ones."""


def every_operation(world: World) -> None:
    """Threads that make threads, wait, are woken by choice, and touch what is watched and what is not."""

    def seen(change: Change[int]) -> None:
        world.record("seen", new=change.new)
        count.add(1)

    def seen_only(record: Callable[..., None], owner: object, change: Change[int]) -> None:
        record("changed", how=change.op, new=change.new, ok=change.ok)

    def nothing(*_: object) -> dict[str, object]:
        return {}

    host = Recording(world, {"kept": seen_only}, {"called": Around("called", nothing, nothing)})
    count = world.cell(0, name="count")
    x, y = world.cell(0, name="x", watch=seen), host.cell(0, name="y", kind="kept")
    m = world.lock(name="m")
    c, s = world.condition(m, name="c"), world.semaphore(0, name="s")
    world.record("kind", value=world.choose(2))

    def called() -> None:
        y.add(1)
        y.get_and_add(2)
        with m:
            s.release()
        x.get_and_set(y.get())

    called.__qualname__ = "called"

    def waits() -> None:
        with m:
            world.record("woken", in_time=c.wait(1))
        s.try_acquire()

    def child() -> None:
        y.compare_and_set(0, 5)
        y.set(7)

    def works() -> None:
        host.perform(called)
        started = world.spawn(child, name="child")
        with m:
            c.notify()
        world.record("chosen", value=world.choose(2))
        started.join()
        s.acquire()
        world.record("time", now=world.now())
        x.set(1)

    world.spawn(waits, name="waits")
    world.spawn(works, name="works")
    world.spawn(lambda: world.record("read", x=x.get(), y=y.get()), name="reads")
    world.at_end(lambda: world.record("end", count=count.get(), x=x.get()))


def compare(program: Callable[[World], object], most: int, *, real_time: bool = False) -> int:
    """Compare the records of a search with those of each schedule run by itself; returns how many executions had some.

    Raises AssertionError for the first that differ.
    """
    setting = Setting(real_time=real_time)
    alone = ProgramUnderTest(program, setting, Limits())
    kept: list[tuple[list[tuple[int, int]], list[Record]]] = []
    explore(
        program,
        Dpor(real_time=real_time),
        max_executions=most,
        keep_going=True,
        attributes=False,
        on_execution=lambda world: (
            kept.append((world._ex.schedule, list(world.records)))  # a test: no program may see it
            if not world.is_replay
            else None
        ),
    )
    for schedule, records in kept:
        ex = follow(alone, schedule)
        assert ex is not None
        for check in ex.world.checks:
            check()
        assert list(ex.schedule) == schedule
        assert ex.world.records == records
        ex.close()
    return sum(bool(records) for _, records in kept)


@pytest.mark.parametrize("real_time", [False, True])
def test_what_is_recorded_is_that_of_the_schedule_run_by_itself(real_time: bool) -> None:
    assert compare(every_operation, 500, real_time=real_time) == 444


@pytest.mark.parametrize("id", PROGRAMS)
def test_histories_of_the_programs_are_those_of_their_schedules(id: str) -> None:
    program = PROGRAMS[id]
    compared = compare(runnable(program, None), MANY, real_time=program.real_time)
    assert compared == min(MANY, program.traces)


def test_a_watcher_that_does_more_than_record_sees_every_change() -> None:
    seen = Counter[int]()

    def program(world: World) -> None:
        mine = Counter[int]()

        def watch(change: Change[int]) -> None:
            mine[change.new] += 1

        x = world.cell(0, watch=watch)

        def works(n: int) -> None:
            x.set(n)
            x.get()

        for n in (1, 2, 3):
            world.spawn(partial(works, n))
        world.at_end(lambda: seen.update(mine))

    result = explore(program, attributes=False, keep_going=True)
    assert result.traces is not None
    assert result.executions == result.traces > 6
    assert set(seen) == {1, 2, 3}
    assert len(set(seen.values())) == 1
    assert seen[1] == result.traces


@pytest.mark.parametrize("id", PROGRAMS)
def test_a_history_judged_once_counts_for_each_execution(id: str) -> None:
    """The steps are left out where histories are compared: no finding may rest on them."""
    program = PROGRAMS[id]
    judged, properties = Judge(program.properties), [PROPERTIES[p] for p in program.properties]
    cases = Counter[str]()
    untestable = Counter[str]()

    def observe(world: World) -> object:
        events = history(world)
        wrong = judged(world)
        findings = judge(events, properties)
        assert judge([replace(e, t=0) for e in events], properties) == findings
        for finding in findings:
            cases[finding.property] += finding.n_tested
            untestable[finding.property] += finding.n_untestable
        return wrong

    explore(
        runnable(program, None),
        Dpor(real_time=program.real_time),
        max_executions=MANY,
        on_execution=lambda world: None if world.is_replay else observe(world),
        attributes=False,
    )
    assert judged.tested == {p.id: cases[p.id] for p in properties}
    assert judged.untestable == {p.id: untestable[p.id] for p in properties}
