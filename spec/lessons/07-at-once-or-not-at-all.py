"""Judges chapter 7: dropped if and only if nobody saw it."""

from collections.abc import Callable
from functools import partial
from types import ModuleType

from seriatim_models.explorer import World


def meeting(world: World, mine: ModuleType, consumers: int, releases: bool) -> None:
    state = world.cell("AVAILABLE", name="m1.state")
    seen: list[bool] = []
    dropped: list[bool] = []

    def deliver() -> None:
        for available in dict.fromkeys(("AVAILABLE", mine.RELEASED)):
            if state.compare_and_set(available, "ACQUIRED"):
                seen.append(True)
                if releases:
                    state.compare_and_set("ACQUIRED", mine.RELEASED)
                return

    def end() -> str | None:
        if seen and dropped:
            return "m1 was delivered, and dropped as undelivered"
        return None if seen or dropped else "m1 was neither delivered nor dropped"

    world.spawn(lambda: dropped.append(True) if mine.give_up(state) else None, name="publisher")
    for _ in range(consumers):
        world.spawn(deliver, name="delivery")
    world.at_end(end)


def check(mine: ModuleType) -> dict[str, Callable[[World], None]]:
    return {
        "nobody there": partial(meeting, mine=mine, consumers=0, releases=False),
        "kept": partial(meeting, mine=mine, consumers=1, releases=False),
        "released": partial(meeting, mine=mine, consumers=1, releases=True),
    }
