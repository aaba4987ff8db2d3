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


WHY = {
    "RUNS": "whoever looks at an entry that is taken already takes no second step",
    "WRONG": "both get m1 if and only if both look before either takes",
    "TRACES": "two looks disturb nobody, so which of the two comes first makes no difference; two takes do",
}


def check(mine: ModuleType) -> None:
    all_orders = explore(program, preemptions=4, keep_going=True)
    counted = {
        "RUNS": all_orders.complete,
        "WRONG": all_orders.violations,
        "TRACES": all_orders.traces,
    }
    wrong = []
    for name, number in counted.items():
        found = getattr(mine, name)
        assert number is not None
        if found != number:
            wrong.append(
                f"{name} = {found} is too {'few' if found < number else 'many'}: {WHY[name]}"
            )
    right = [name for name in counted if getattr(mine, name) == counted[name]]
    if right and wrong:
        wrong.append(f"{' and '.join(right)} {'is' if len(right) == 1 else 'are'} right")
    assert not wrong, "\n".join(wrong)
