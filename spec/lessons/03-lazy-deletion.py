"""Judges chapter 3: nothing appended is lost, nothing deleted is seen, and what is marked goes."""

from collections.abc import Callable
from types import ModuleType

from seriatim_models.explorer import World

Build = Callable[[World], None]


def check(mine: ModuleType) -> dict[str, Build]:
    def start(world: World, *nodes: str):  # type: ignore[no-untyped-def]  # two dicts of cells
        names = ("head", "a", "b", "c")
        following = {n: world.cell(None, name=f"{n}.next") for n in names}
        marked = {n: world.cell(False, name=f"{n}.marked") for n in names}
        for node in nodes:
            mine.append(following, marked, node)
        return following, marked

    def expect(world: World, expected: list[str], cells) -> None:  # type: ignore[no-untyped-def]
        def end() -> str | None:
            found = mine.members(*cells)
            return None if found == expected else f"members are {found}, not {expected}"

        world.at_end(end)

    def append_and_delete(world: World) -> None:
        cells = start(world, "a")
        world.spawn(lambda: mine.append(*cells, "b"), name="append b")
        world.spawn(lambda: mine.delete(*cells, "a"), name="delete a")
        expect(world, ["b"], cells)

    def append_and_walk(world: World) -> None:
        cells = start(world, "a")
        mine.delete(*cells, "a")
        world.spawn(lambda: mine.append(*cells, "b"), name="append b")
        world.spawn(lambda: mine.members(*cells), name="walk")
        expect(world, ["b"], cells)

    def neighbours(world: World) -> None:
        cells = start(world, "a", "b", "c")
        for node in ("a", "b"):
            world.spawn(lambda node=node: mine.delete(*cells, node), name=f"delete {node}")
        world.spawn(lambda: mine.members(*cells), name="walk")
        expect(world, ["c"], cells)

    def unlinked(world: World) -> None:
        cells = start(world, "a", "b")

        def alone() -> None:
            mine.delete(*cells, "a")
            mine.members(*cells)
            assert cells[0]["head"].get() == "b", (
                "a is marked, b is behind it, and a is still linked"
            )

        world.spawn(alone, name="alone")

    return {
        "append-and-delete": append_and_delete,
        "append-and-walk": append_and_walk,
        "neighbours": neighbours,
        "unlinked": unlinked,
    }
