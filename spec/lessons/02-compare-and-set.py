"""Judges chapter 2: takers of credit, as many and as rich as make a difference."""

from collections.abc import Callable
from functools import partial
from types import ModuleType

from seriatim_models.explorer import World


def credit(world: World, mine: ModuleType, credits: int, takers: int) -> None:
    left = world.cell(credits, name="credit")
    paid: list[bool] = []
    for n in range(takers):
        world.spawn(lambda: paid.append(bool(mine.take_credit(left))), name=f"taker {n}")

    def end() -> str | None:
        gone = credits - left.get()
        if left.get() < 0:
            return f"the credit is {left.get()}"
        if sum(paid) != gone:
            return f"{sum(paid)} have paid, and {gone} credits are gone"
        if sum(paid) < min(credits, takers):
            return f"somebody was refused, and {left.get()} credits are left"
        return None

    world.at_end(end)


def check(mine: ModuleType) -> dict[str, Callable[[World], None]]:
    return {
        f"{credits} credits, {takers} takers": partial(
            credit, mine=mine, credits=credits, takers=takers
        )
        for credits, takers in ((1, 2), (2, 2), (2, 3))
    }
