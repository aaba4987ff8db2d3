"""Judges chapter 5: the consumer does not sleep beside a message, and does not turn round and round."""

from collections.abc import Callable
from functools import partial
from types import ModuleType

from seriatim_models.explorer import World

LOOKS_MAX = 4


def meeting(world: World, mine: ModuleType, publishers: int) -> None:
    messages = world.cell(0, name="messages")
    resting = world.cell(False, name="resting")
    bell = world.semaphore(0, name="bell")

    def consume() -> None:
        mine.consume(messages, resting, bell)
        assert messages.get() > 0, "consume came back, and there is no message"

    def publish() -> None:
        messages.add(1)
        if resting.get():
            bell.release()

    world.spawn(consume, name="consumer")
    for n in range(publishers):
        world.spawn(publish, name=f"publisher {n + 1}")


def check(mine: ModuleType) -> dict[str, Callable[[World], None]]:
    return {
        "one publisher": partial(meeting, mine=mine, publishers=1),
        "two publishers": partial(meeting, mine=mine, publishers=2),
    }
