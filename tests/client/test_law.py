"""Laws: callbacks in flight, min(channels, pool size), reached and never exceeded; what is closed is read to its end.

No test here depends on time.
"""

from __future__ import annotations

import threading
from functools import partial

import pytest

from seriatim.broker import Delivery, Server
from seriatim.client import Channel, Connection
from seriatim.host import Threads
from seriatim.workpool import Executor, NotPut, Work, WorkPool, WorkService
from seriatim_models.explorer import World as ExplorerWorld
from seriatim_models.explorer import explore
from seriatim_models.recording.client import on_the_wire, waiting

from .conftest import PATIENCE, World, fill, flush


@pytest.mark.parametrize("channels", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_parallelism_is_the_smaller_of_channels_and_pool(
    world: World, channels: int, threads: int
) -> None:
    """The first k callbacks wait until k are there: fewer would hang. The most ever seen is k: more would show."""
    k = min(channels, threads)
    barrier = threading.Barrier(k)
    lock = threading.Lock()
    begun = inside = most = 0

    def on_delivery(channel: Channel, delivery: Delivery) -> None:
        nonlocal begun, inside, most
        with lock:
            begun += 1
            inside += 1
            most = max(most, inside)
            first = begun <= k
        if first:
            barrier.wait(PATIENCE)
        with lock:
            inside -= 1

    c = world.connect(threads=threads)
    opened = [c.open_channel() for _ in range(channels)]
    for i, channel in enumerate(opened):
        fill(channel, 6, queue=f"q{i}")
        # Two consumers on each channel: they do not add to the parallelism.
        channel.basic_consume(f"q{i}", on_delivery, tag="t")
        channel.basic_consume(f"q{i}", on_delivery, tag="u")
    for channel in opened:
        flush(channel)
    assert (begun, inside, most) == (6 * channels, 0, k)
    assert not barrier.broken


@pytest.mark.parametrize(
    ("channels", "threads", "seen"),
    [(1, 1, {1}), (1, 2, {1}), (2, 1, {1}), (2, 2, {1, 2}), (3, 2, {1, 2})],
)
def test_parallelism_over_all_schedules(channels: int, threads: int, seen: set[int]) -> None:
    """The most callbacks at once, over every schedule: the law's number is reached by some and exceeded by none."""

    def program(world: ExplorerWorld) -> None:
        executor = Executor(world.host, threads)
        service = WorkService(world.host, executor)
        inside = world.cell(0, name="inside")
        most = 0

        def run() -> None:
            nonlocal most
            most = max(most, inside.get_and_add(1) + 1)
            inside.get_and_add(-1)

        for i in range(threads):
            world.spawn(executor.worker, name=f"pool{i}", daemon=True)
        for i in range(channels):
            service.pool.register_key(f"{i}")
            service.add(f"{i}", Work(f"{i}", run))
        service.add("0", Work("again", run))
        world.at_end(lambda: world.result(most))

    explored = explore(program)
    assert explored.exhausted, explored.why
    assert set(explored.outcomes) == seen


def test_a_connection_that_is_closed_has_been_read_to_its_end() -> None:
    """Rule 10, over every schedule: `close` returns when the reader has taken the server's last word."""

    def program(world: ExplorerWorld) -> None:
        c = Connection(world.host, Server(world.host), "c", Executor(world.host, 1))
        world.spawn(c.reader, name="reader")

        def close() -> None:
            c.close()
            world.result(len(on_the_wire(c.wire)))

        world.spawn(close, name="A")

    explored = explore(program)
    assert explored.exhausted, explored.why
    assert set(explored.outcomes) == {0}


def test_an_executor_knows_how_many_tasks_have_not_begun() -> None:
    """A request to end is no task."""
    executor = Executor(Threads(), 2)
    done: list[int] = []
    for n in range(3):
        executor.execute(partial(done.append, n))
    executor.shutdown()
    assert (waiting(executor), done) == (3, [])
    executor.worker()
    assert (waiting(executor), done) == (0, [0, 1, 2])


def test_who_waits_for_room_is_woken_by_an_interrupt() -> None:
    def program(world: ExplorerWorld) -> None:
        pool = WorkPool(world.host, capacity=1)
        pool.register_key("a")
        pool.add_work_item("a", Work("1", lambda: None))

        def put() -> None:
            with pytest.raises(NotPut, match="interrupted"):
                pool.add_work_item("a", Work("2", lambda: None))

        world.spawn(put, name="put")
        world.spawn(pool.interrupt, name="interrupt")

    explored = explore(program)
    assert explored.verdict == "ok", explored.why
