"""Judges chapter 4: nobody's plan survives a release, and what is not free is still passed."""

from collections.abc import Callable
from types import ModuleType

from seriatim_models.explorer import World


def check(mine: ModuleType) -> dict[str, Callable[[World], None]]:
    def race(world: World, advances: int = 1) -> None:
        free = world.cell(False, name="m1.is_free")
        pointer = world.cell(mine.start(), name="B.pointer")

        def b() -> None:
            for _ in range(advances):
                if not mine.passed(pointer.get()):
                    mine.advance(pointer, free)

        world.spawn(b, name="B")
        world.spawn(lambda: mine.release(pointer, free), name="A")
        world.at_end(
            lambda: "m1 is free, and B has gone past it" if mine.passed(pointer.get()) else None
        )

    def alone(world: World) -> None:
        free = world.cell(False, name="m1.is_free")
        pointer = world.cell(mine.start(), name="B.pointer")
        world.spawn(lambda: mine.advance(pointer, free), name="B")
        world.at_end(
            lambda: None if mine.passed(pointer.get()) else "m1 is not free, and B stays before it"
        )

    return {"race": race, "twice": lambda world: race(world, 2), "alone": alone}
