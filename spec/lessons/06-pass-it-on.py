"""Judges chapter 6: the message is taken in the end, whoever was woken first."""

from collections.abc import Callable
from types import ModuleType

from seriatim_models.explorer import World


def check(mine: ModuleType) -> dict[str, Callable[[World], None]]:
    def program(world: World) -> None:
        waiting = world.cell(False, name="message waits")
        high_wants = world.cell(True, name="high.wants")
        bell = {name: world.semaphore(0, name=f"{name}.bell") for name in ("high", "low")}

        def publish() -> None:
            waiting.set(True)
            bell["high" if high_wants.get() else "low"].release()

        def low() -> None:
            while True:
                bell["low"].acquire()
                if not high_wants.get():
                    waiting.set(False)

        world.spawn(publish, name="publisher")
        world.spawn(lambda: mine.lose_interest(waiting, high_wants, bell), name="high")
        world.spawn(low, name="low", daemon=True)

        def end() -> str | None:
            if high_wants.get():
                return "high still wants"
            return "the message waits, and low sleeps" if waiting.get() else None

        world.at_end(end)

    return {"pause": program}
