"""SO-7: what keeps turns of a push queue and what does not."""

from __future__ import annotations

import pytest

import seriatim.queue as reference
from seriatim_models.properties import PROPERTIES, Verdict
from seriatim_models.recording.queue import recorded
from seriatim_workshop.machines.threads import ThreadStage


class Client:
    """A client that takes what it is sent."""

    def notify_work(self, consumer: reference.Consumer) -> None:
        """Do nothing."""

    def send(self, consumer: reference.Consumer, entry: reference.QueueEntry) -> None:
        """Do nothing."""


def pushing(*consumers: str, browser: bool = False) -> tuple[ThreadStage, reference.PushQueue]:
    """A queue that pushes, with a browser and consumers that select the key x."""
    stage = ThreadStage()
    queue = reference.PushQueue(recorded(stage.host), lambda job: None)
    if browser:
        queue.subscribe("browser", Client(), acquires=False)
    for name in consumers:
        queue.subscribe(name, Client(), keys=frozenset({"x"}))
    return stage, queue


def judged(stage: ThreadStage) -> tuple[list[str], Verdict, int]:
    """Who was served, and what SO-7 says."""
    events = stage.history()
    found = PROPERTIES["SO-7"].check(events)
    served = [str(e.args["sub"]) for e in events if e.ev == "deliver"]
    return served, found.verdict, found.n_tested


def test_a_browser_that_alone_was_shown_a_message_was_served_last() -> None:
    stage, queue = pushing("A", "B", browser=True)
    queue.enqueue(reference.Message("m1", key="x"))
    queue.enqueue(reference.Message("m2", key="y", immediate=True))
    queue.enqueue(reference.Message("m3", key="x"))
    assert judged(stage) == (["A", "A"], Verdict.OK, 1)


def test_a_consumer_that_is_ready_gets_every_other_message_of_two() -> None:
    stage, queue = pushing("A", "B")
    for n in range(4):
        queue.enqueue(reference.Message(f"m{n}", key="x"))
    assert judged(stage) == (["A", "B", "A", "B"], Verdict.OK, 3)


@pytest.mark.parametrize(("last", "due"), [("A", "B"), ("B", "C"), ("C", "A")])
def test_a_push_begins_behind_whom_a_job_served(last: str, due: str) -> None:
    stage, queue = served_by_a_job(last)
    queue.enqueue(reference.Message("m2", key="x"))
    assert judged(stage) == ([last, due], Verdict.OK, 2)


@pytest.mark.parametrize(("last", "instead"), [("A", "C"), ("B", "A"), ("C", "C")])
def test_rejects_a_push_that_begins_elsewhere_behind_a_job(last: str, instead: str) -> None:
    stage, queue = served_by_a_job(last)
    before = [c.in_all for c in queue.all.consumers()]
    queue._last_delivered.set(before["ABC".index(instead) - 1])
    queue.enqueue(reference.Message("m2", key="x"))
    served, verdict, _ = judged(stage)
    assert (served, verdict) == ([last, instead], Verdict.VIOLATED)


def served_by_a_job(last: str) -> tuple[ThreadStage, reference.PushQueue]:
    """A queue with three consumers that are ready, of which a job served one."""
    stage, queue = pushing("A", "B", "C")
    consumers = list(queue.all.consumers())
    for consumer in consumers:
        queue.set_notify_work_desired(consumer, False)
    queue.enqueue(reference.Message("m1", key="x"))
    for consumer in consumers:
        queue.set_notify_work_desired(consumer, True)
    queue.deliver_to(consumers["ABC".index(last)], "job")
    return stage, queue
