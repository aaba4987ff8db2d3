"""Judges chapter 8: all work is done, and by one thread at a time."""

from collections.abc import Callable
from functools import partial
from types import ModuleType

from seriatim_models.explorer import World


def channel(world: World, mine: ModuleType, deliveries: int, threads: int) -> None:
    work = world.cell(0, name="work")
    in_progress = world.cell(False, name="in_progress")
    jobs = world.semaphore(0, name="jobs")
    inside = world.cell(0, name="inside")
    done: list[int] = []

    def callback() -> None:
        assert inside.get_and_add(1) == 0, "two threads are at work on one channel"
        done.append(1)
        inside.add(-1)

    def reader() -> None:
        for _ in range(deliveries):
            mine.deliver(work, in_progress, jobs)

    def thread() -> None:
        while True:
            jobs.acquire()
            mine.serve(work, in_progress, jobs, callback)

    def end() -> str | None:
        left = deliveries - len(done)
        return f"{left} of {deliveries} callbacks never ran" if left else None

    world.spawn(reader, name="reader")
    for n in range(threads):
        world.spawn(thread, name=f"thread {n + 1}", daemon=True)
    world.at_end(end)


def check(mine: ModuleType) -> dict[str, Callable[[World], None]]:
    return {
        "one thread": partial(channel, mine=mine, deliveries=2, threads=1),
        "two threads": partial(channel, mine=mine, deliveries=2, threads=2),
    }
