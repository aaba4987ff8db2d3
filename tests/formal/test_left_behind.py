"""F-112: what is left to a consumer of higher priority may be gone before he is woken for it. Not repaired yet.

Two programs that are not in the register, since there every schedule of a program must hold. Whoever repairs the
reference takes the marks away and makes programs of them.
"""

import pytest

import seriatim.queue as reference
from seriatim_models.explorer import Dpor, Replay
from seriatim_models.programs import PROGRAMS
from seriatim_models.programs.base import Programs
from seriatim_models.programs.check import check_program
from seriatim_models.programs.scene import Inbox, PullScene
from seriatim_models.properties import Verdict
from seriatim_workshop.formal.traces import follow

LEFT_BEHIND = Programs("queue")
scenario = LEFT_BEHIND.scenarios(PullScene)


def drain_if_woken(scene: PullScene, consumer: reference.Consumer) -> None:
    """Take messages until there are none, if the consumer was woken."""
    inbox = consumer.target
    assert isinstance(inbox, Inbox)
    if inbox.wake.try_acquire():
        scene.drain(consumer)


@scenario("WK-1", traces=0)
def left_and_expired(scene: PullScene) -> None:
    """A consumer of high priority resumes, a lower one leaves a message to it, and that message expires.

    Bounds: Two priorities; the higher one does not want the second message. Who is woken looks when all is over.
    """
    high = scene.subscribe("high", priority=1, keys=frozenset({"a"}))
    scene.queue.set_notify_work_desired(high, False)
    low = scene.subscribe("low")
    scene.enqueue("m1", key="a", expires=5)
    scene.enqueue("m2", key="b")
    threads = (
        scene.spawn(lambda: drain_if_woken(scene, low), name="low"),
        scene.spawn(lambda: scene.queue.set_notify_work_desired(high, True), name="high"),
        scene.spawn(lambda: scene.pass_time(6), name="clock"),
    )

    def clients() -> None:
        for thread in threads:
            thread.join()
        for consumer in (high, low, high, low):
            drain_if_woken(scene, consumer)

    scene.spawn(clients, name="clients")


@scenario("WK-1", traces=0)
def taken_by_a_paused_one(scene: PullScene) -> None:
    """The same, but the message is taken, by a consumer that another thread has paused amid its pull.

    Bounds: As above, with three consumers, and nothing expires.
    """
    high = scene.subscribe("high", priority=1, keys=frozenset({"a"}))
    scene.queue.set_notify_work_desired(high, False)
    x = scene.subscribe("x", keys=frozenset({"a"}))
    low = scene.subscribe("low")
    scene.enqueue("b", key="a")
    scene.enqueue("m", key="b")
    threads = (
        scene.spawn(lambda: drain_if_woken(scene, low), name="low"),
        scene.spawn(lambda: scene.queue.set_notify_work_desired(high, True), name="high"),
        scene.spawn(lambda: scene.queue.deliver_single_message(x), name="x"),
        scene.spawn(lambda: scene.queue.set_notify_work_desired(x, False), name="u"),
    )

    def clients() -> None:
        for thread in threads:
            thread.join()
        for consumer in (high, low, x, high, low, x):
            drain_if_woken(scene, consumer)

    scene.spawn(clients, name="clients")


@pytest.mark.xfail(reason="F-112", strict=True, raises=AssertionError)
def test_a_message_that_expires_leaves_nobody_behind() -> None:
    found = check_program(LEFT_BEHIND["left-and-expired"], strategy=Dpor(), max_executions=1000)
    assert found.verdict is not Verdict.VIOLATED


@pytest.mark.xfail(reason="F-112", strict=True, raises=AssertionError)
def test_a_message_that_is_taken_leaves_nobody_behind() -> None:
    """One schedule of many, found by sampling: a repair that changes the steps needs another search."""
    token = "sr1.1de4651b.n1-0.cgMeBCgCBAE2AwwFAAIkBRY.215f"
    found = check_program(LEFT_BEHIND["taken-by-a-paused-one"], strategy=Replay(token))
    assert found.verdict is not Verdict.VIOLATED


def test_the_systems_reject_the_step_at_which_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROGRAMS, "left-and-expired", LEFT_BEHIND["left-and-expired"])
    found = follow("left-and-expired", executions=1000)
    assert found.system == "wakeups"
    assert "clock.now(6): m1 is gone, with which others were left" in found.rejected
