"""A call that is recorded begins as late as it can: with the next operation of its thread."""

from __future__ import annotations

from seriatim_models.explorer import Dpor, World, explore

Said = list[tuple[int, str, str]]


def said(world: World) -> Said:
    return [(r.step, r.thread, str(r.args.get("ph", r.ev))) for r in world.records]


def test_what_precedes_a_threads_first_operation_does_not_begin_at_the_start() -> None:
    def program(world: World) -> None:
        x = world.cell(0, name="x")

        def work() -> None:
            world.record("call", ph="invoke")
            world.record("inside")
            x.get_and_add(1)
            world.record("call", ph="ok")

        world.spawn(work, name="a")
        world.spawn(work, name="b")
        world.at_end(lambda: world.result(tuple(said(world))))

    one = ["invoke", "inside", "ok"]
    assert {tuple(o) for o in explore(program).outcomes} == {
        tuple([(1, p, s) for s in one] + [(2, q, s) for s in one])
        for p, q in (("a", "b"), ("b", "a"))
    }


def test_a_call_without_operations_begins_and_ends_before_its_thread_does() -> None:
    def program(world: World) -> None:
        x = world.cell(0, name="x")

        def empty() -> None:
            x.get()
            world.record("call", ph="invoke")
            world.record("call", ph="ok")

        child = world.spawn(empty, name="a")
        world.spawn(child.join, name="b")
        world.at_end(lambda: world.result(tuple(said(world))))

    assert set(explore(program).outcomes) == {((1, "a", "invoke"), (1, "a", "ok"))}


def test_a_call_that_never_returns_has_begun() -> None:
    def program(world: World) -> None:
        m = world.lock(name="m")
        m.try_acquire()

        def stuck() -> None:
            world.record("call", ph="invoke")
            m.acquire()

        world.spawn(stuck, name="a", daemon=True)
        world.at_end(lambda: world.result(tuple(said(world))))

    assert set(explore(program, stuck_ok=True).outcomes) == {((0, "a", "invoke"),)}


def test_with_real_time_nothing_is_held_back() -> None:
    def program(world: World) -> None:
        x = world.cell(0, name="x")

        def work() -> None:
            world.record("call", ph="invoke")
            world.record("inside")
            x.get()

        world.spawn(work, name="a")
        world.at_end(lambda: world.result(tuple(said(world))))

    assert set(explore(program, Dpor(real_time=True)).outcomes) == {
        ((1, "a", "invoke"), (1, "a", "inside"))
    }
