"""Turns of a session's targets (WK-12) in a program of one schedule, where two mistakes by hand are seen."""

from types import ModuleType

import pytest

from seriatim_models.programs.base import Programs
from seriatim_models.programs.check import Judge
from seriatim_models.programs.mutant_modules import load, source
from seriatim_models.programs.scene import HandoverScene
from seriatim_workshop.mutation.exhaustive import modules_with
from seriatim_workshop.mutation.searching import Kill, kill_of, search

TURNS = Programs("queue")


@TURNS.scenarios(HandoverScene)("WK-12", traces=1)
def waits_in_turn(scene: HandoverScene) -> None:
    """A target has two consumers with a message each; another one waits for its turn, and is notified once more.

    Bounds: Sequential: one session, a message on each of two queues, all there; the target that is notified has no
    consumer, and is notified by the IO thread. Targets that both have messages are in `handover-targets-in-turn`.
    """
    target, other = scene.target, scene.new_target(scene.session, "other target")
    target.consumers = [q.subscribe(f"on-{q.name}", target) for q in scene.queues]
    for q in scene.queues:
        q.enqueue(scene.message(f"m-{q.name}"))
    scene.session.notify_work(other)

    def serve() -> None:
        scene.session.process()
        scene.session.notify_work(other)
        scene.session.process()
        scene.session.process()

    scene.spawn(serve, name="io")


def kill(lib: ModuleType) -> Kill | None:
    program = TURNS["waits-in-turn"]
    found = search(program, lib, Judge(program.properties), 10)
    assert found.executions == 1
    return kill_of(program, found)


def test_a_target_takes_one_message_in_a_turn_and_keeps_its_place() -> None:
    assert kill(load("queue")) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            """            if queue.deliver_single_message(consumer) is not None:
                return True
        return False
""",
            """            served.append(queue.deliver_single_message(consumer) is not None)
        return any(served)
""",
        ),
        (
            """            if item in waiting:
                return False
            if self._waiting.compare_and_set(waiting, (*waiting, item)):
                return True
""",
            """            others = tuple(each for each in waiting if each is not item)
            if self._waiting.compare_and_set(waiting, (*others, item)):
                return item not in waiting
""",
        ),
    ],
    ids=["serves-each-of-its-consumers", "notified-again-goes-to-the-end"],
)
def test_a_target_that_takes_the_turn_of_another_is_seen(old: str, new: str) -> None:
    text = source("handover")
    assert text.count(old) == 1
    loop = "        for _ in range(len(self.consumers)):\n"
    changed = text.replace(old, new).replace(loop, f"        served: list[bool] = []\n{loop}")
    assert kill(modules_with("handover", changed)) == Kill("WK-12", "waits-in-turn")
