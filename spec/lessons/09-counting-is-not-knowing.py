"""Judges chapter 9: everything is read, and nobody is awake for nothing."""

from collections.abc import Callable
from functools import partial
from types import ModuleType

from seriatim_models.explorer import World


def log(world: World, mine: ModuleType, backlog: int, publishers: int) -> None:
    lock = world.lock(name="lock")
    news = world.condition(lock, name="news")
    written = world.cell(backlog, name="written")
    waiting = world.cell(0, name="waiting")
    handled: list[int] = []

    def publish() -> None:
        written.add(1)
        with lock:
            waiting.add(1)
            news.notify()

    def handle(found: int) -> None:
        assert found > 0, "awake, and there is nothing to read"
        handled.append(found)

    def end() -> str | None:
        total = backlog + publishers
        return (
            None if sum(handled) == total else f"{sum(handled)} of {total} read, and all is quiet"
        )

    for n in range(publishers):
        world.spawn(publish, name=f"P{n + 1}")
    world.spawn(
        lambda: mine.consume(lock, news, written, waiting, handle), name="consumer", daemon=True
    )
    world.at_end(end)


def check(mine: ModuleType) -> dict[str, Callable[[World], None]]:
    return {
        "two publishers": partial(log, mine=mine, backlog=0, publishers=2),
        "a backlog": partial(log, mine=mine, backlog=1, publishers=1),
        "a backlog and no news": partial(log, mine=mine, backlog=1, publishers=0),
    }
