"""SO-6 from outside: with the shortcut and without it, the same things can happen."""

from collections import Counter
from types import ModuleType

import pytest

from seriatim_models.explorer import World, explore
from seriatim_models.programs.mutant_modules import load
from seriatim_models.programs.scene import Inbox, PushScene


def outcomes(exclusive: bool, credit: int) -> Counter[object]:
    lib: ModuleType = load("queue")

    def program(world: World) -> None:
        scene = PushScene(world, lib)
        c = scene.subscribe("A", credit=credit, exclusive=exclusive)
        inbox = c.target
        assert isinstance(inbox, Inbox)
        scene.publish("m1", "m2")
        scene.spawn(lambda: scene.queue.grant(c, 1), name="A")
        world.at_end(lambda: world.result(tuple(e.message.id for e in inbox.sent)))

    result = explore(program)
    assert result.exhausted
    return result.outcomes


@pytest.mark.parametrize("credit", [0, 1])
def test_so6_shortcut_has_the_outcomes_of_the_general_path(credit: int) -> None:
    short, general = outcomes(True, credit), outcomes(False, credit)
    assert set(short) == set(general)
