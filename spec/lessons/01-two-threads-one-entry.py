"""Judges chapter 1: the numbers are counted."""

from types import ModuleType

from seriatim_models.explorer import World, explore


def program(world: World) -> None:
    """The chapter's."""
    state = world.cell("AVAILABLE", name="m1.state")
    owners: list[str] = []

    def take(name: str) -> None:
        if state.get() == "AVAILABLE":
            state.set("ACQUIRED")
            owners.append(name)

    world.spawn(lambda: take("A"), name="A")
    world.spawn(lambda: take("B"), name="B")
    world.at_end(lambda: None if len(owners) == 1 else "two owners")


def check(mine: ModuleType) -> None:
    all_orders = explore(program, preemptions=4, keep_going=True)
    counted = {
        "RUNS": all_orders.complete,
        "WRONG": all_orders.violations,
        "TRACES": all_orders.traces,
    }
    off = [name for name, number in counted.items() if getattr(mine, name) != number]
    assert not off, f"{' and '.join(off)} is another number"
