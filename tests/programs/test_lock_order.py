"""Two locks taken in two orders: the deadlock that a tracker tells of, what the explorer says of it, and its repair."""

from types import ModuleType

from seriatim_models.explorer import World, explore
from seriatim_models.programs import MUTANTS, Mutant
from seriatim_models.programs.mutant_modules import load
from seriatim_models.programs.scene import PushScene

PUBLISHED = MUTANTS["monitor-and-send-lock"]


def push_and_close(world: World, lib: ModuleType) -> None:
    """The program `push-close`, with threads that have to come to their end and no properties."""
    scene = PushScene(world, lib)
    consumer = scene.subscribe("A")
    scene.publish("m1")
    scene.spawn(lambda: scene.queue.close(consumer), name="A")


def test_explorer_calls_the_two_orders_a_deadlock() -> None:
    lib = load("queue", PUBLISHED)
    found = explore(lambda world: push_and_close(world, lib))
    assert found.verdict == "violated"
    assert found.counterexample is not None
    assert found.counterexample.what.startswith("deadlock:")
    assert "q.monitor" in found.counterexample.what
    assert "A.send_lock" in found.counterexample.what


def test_one_order_is_enough() -> None:
    """The tracker's repair: the lock around enqueue is one that nobody takes under a send lock."""
    *around_enqueue, _under_the_send_lock = PUBLISHED.edits
    repaired = Mutant("repaired", "", "", "queue", tuple(around_enqueue), "WK-1", "push-close", 0)
    lib = load("queue", repaired)
    found = explore(lambda world: push_and_close(world, lib))
    assert (found.verdict, found.exhausted) == ("ok", True)
