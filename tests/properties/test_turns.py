"""SO-7: what keeps turns of a push queue and what does not."""

from __future__ import annotations

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


def test_a_browser_that_alone_was_shown_a_message_may_begin_the_turn_anew() -> None:
    """The queue goes on behind the consumer that it served last, and that was the browser."""
    stage = ThreadStage()
    queue = reference.PushQueue(recorded(stage.host), lambda job: None)

    queue.subscribe("browser", Client(), acquires=False)
    for name in ("A", "B"):
        queue.subscribe(name, Client(), keys=frozenset({"x"}))
    queue.enqueue(reference.Message("m1", key="x"))
    queue.enqueue(reference.Message("m2", key="y", immediate=True))
    queue.enqueue(reference.Message("m3", key="x"))
    events = stage.history()
    assert [e.args["sub"] for e in events if e.ev == "deliver"] == ["A", "A"]
    found = PROPERTIES["SO-7"].check(events)
    assert found.verdict is Verdict.INCONCLUSIVE


def test_a_consumer_that_is_ready_gets_every_other_message_of_two() -> None:
    stage = ThreadStage()
    queue = reference.PushQueue(recorded(stage.host), lambda job: None)
    for name in ("A", "B"):
        queue.subscribe(name, Client())
    for n in range(4):
        queue.enqueue(reference.Message(f"m{n}"))
    events = stage.history()
    assert [e.args["sub"] for e in events if e.ev == "deliver"] == ["A", "B", "A", "B"]
    found = PROPERTIES["SO-7"].check(events)
    assert (found.verdict, found.n_tested) == (Verdict.OK, 2)
