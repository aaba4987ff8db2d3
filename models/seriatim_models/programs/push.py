"""Closed programs over a queue that pushes: the attempt on enqueue, immediate messages, and the job."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import seriatim.queue as reference
from seriatim_models.programs.base import Programs
from seriatim_models.programs.queue import subscribe_or_not
from seriatim_models.programs.scene import Inbox, PushScene, RecordedInbox

PUSH_PROGRAMS = Programs("queue")
scenario = PUSH_PROGRAMS.scenarios(PushScene)


@scenario("ES-1 ES-2 ES-3 ES-5 IM-1 IM-2", traces=60)
def immediate(scene: PushScene) -> None:
    """An immediate message, and a delivery job that is running on another thread.

    Bounds: One consumer whose credit comes back while the publisher gives up. Two consumers are not here; a client
    that gives it back is in `immediate-returned`.
    """
    c = scene.subscribe("A", credit=0)
    scene.publish("m1", immediate=True)
    scene.spawn(lambda: scene.queue.grant(c, 1), name="A")


@scenario("ES-5 IM-1", traces=1, executor=False)
def immediate_ready(scene: PushScene) -> None:
    """Immediate messages arrive for a consumer that is ready, beside one that is not, and one that is ready once.

    Bounds: Sequential; three consumers in turn, four messages, one publisher, no job. The turn of the third message
    comes first to one that is not ready, that of the fourth to one that still wants messages and has spent its credit.
    """
    scene.subscribe("A", credit=0)
    scene.subscribe("B")
    scene.subscribe("C", credit=1)
    scene.publish("m1", "m2", "m3", "m4", immediate=True)


@scenario("ES-5 IM-1 IM-4 QL-6", traces=11, executor=False)
def immediate_after_exclusive(scene: PushScene) -> None:
    """An exclusive consumer closes; who is admitted behind it gets an immediate message that is published then.

    Bounds: One exclusive consumer, which closes, one other, which asks once and then publishes, an ordinary message
    if it was refused.
    """
    a = scene.subscribe("A", exclusive=True)

    def other() -> None:
        try:
            scene.subscribe("B")
        except scene.lib.QueueMisuse:
            scene.enqueue("m2")  # so that a message that was discarded is told from none
        else:
            scene.enqueue("m1", immediate=True)

    scene.spawn(lambda: scene.queue.close(a), name="A")
    scene.spawn(other, name="B")


class PublishesWhenServed(Inbox):
    """A client that, sent its first message, publishes another before `send` returns."""

    def __init__(self, scene: PushScene, name: str) -> None:
        super().__init__(scene.world, name)
        self.scene = scene

    def send(self, consumer: reference.Consumer, entry: reference.QueueEntry) -> None:
        """Keep the entry, and publish."""
        super().send(consumer, entry)
        if len(self.sent) == 1:
            self.scene.enqueue("m2")


@scenario("ES-5 WK-1", traces=1, executor=False)
def push_publishes_when_served(scene: PushScene) -> None:
    """A client publishes while it is sent a message: the turn is the next consumer's.

    Bounds: Sequential; two consumers, the first of which publishes once, one message before.
    """
    scene.queue.subscribe("A", PublishesWhenServed(scene, "A"))
    scene.subscribe("B")
    scene.publish("m1")


@scenario("ES-5 WK-1", traces=1, executor=False)
def push_shown_first(scene: PushScene) -> None:
    """A message is pushed while a browser comes before the consumer that takes it: both see it.

    Bounds: Sequential; one browser, one consumer, one message, no job.
    """
    scene.subscribe("A", acquires=False)
    scene.subscribe("B")
    scene.publish("m1")


@scenario("ES-1 ES-2 ES-3 ES-5 IM-1 IM-2", traces=8, executor=False)
def immediate_race(scene: PushScene) -> None:
    """The last act of enqueuing an immediate message, against a delivery by another thread.

    Bounds: Linked already and offered in vain; one delivery attempt by a job. Everything before that is in
    `immediate`.
    """
    c = scene.subscribe("A")
    scene.give_up("m1")
    scene.spawn(lambda: scene.queue.attempt(c, "job"), name="job")


@scenario("ES-1 ES-4 ES-5 IM-1 IM-2", traces=9, executor=False)
def immediate_returned(scene: PushScene) -> None:
    """The last act of enqueuing an immediate message, against a delivery that the client releases at once.

    Bounds: Linked already and offered in vain; one delivery and one release. A second delivery of what was
    released is not here.
    """
    c = scene.subscribe("A")
    scene.give_up("m1")

    def reject() -> None:
        given = scene.queue.attempt(c, "job")
        if given is not None:
            scene.queue.release(given, c)

    scene.spawn(reject, name="job")


@scenario("ES-1 ES-2 ES-5 ES-6 SP-1 IM-3 WK-1 WK-5 WK-9", traces=47)
def push(scene: PushScene) -> None:
    """A message that cannot be delivered on enqueue, because credit comes a moment too late.

    Bounds: One consumer, one message, one grant. Two consumers, and which of them is in turn, are not here.
    """
    c = scene.subscribe("A", credit=0)
    scene.publish("m1")
    scene.spawn(lambda: scene.queue.grant(c, 2), name="A")


@scenario("ES-5 WK-1 WK-5 QL-1", traces=1, executor=False)
def push_runs_at_once(scene: PushScene) -> None:
    """A consumer closes with a message, and the executor runs the job before `submit` returns.

    Bounds: Two consumers, one message, which the second then gets; one thread.
    """
    scene.queue._submit = lambda job: job()
    a = scene.subscribe("A")
    scene.enqueue("m1")
    scene.subscribe("B")
    scene.spawn(lambda: scene.queue.close(a), name="A")


def _refused_once(scene: PushScene, a: reference.Consumer, call: Callable[[], object]) -> None:
    """Spawn the client of `a`: the executor refuses the job that `call` asks for, and takes that of a later grant."""
    submit = scene.queue._submit

    def refuses(job: Callable[[], None]) -> None:
        scene.queue._submit = submit
        raise RuntimeError("the executor is shut down")

    def client() -> None:
        scene.queue._submit = refuses
        with suppress(RuntimeError):  # of a mutant: what it leaves is judged
            call()
        scene.queue.grant(a, 2)
        while scene._jobs:
            scene.run_job()

    scene.spawn(client, name="A")


@scenario("ES-5 WK-1 WK-5", traces=1, executor=False)
def push_executor_refuses(scene: PushScene) -> None:
    """The executor refuses a job, and takes the next one, which a second grant asks for.

    Bounds: One consumer without credit, one message there, one refusal. Arrivals beside a refusal are not here.
    """
    a = scene.subscribe("A", credit=0)
    scene.enqueue("m1")
    scene.run_job()
    _refused_once(scene, a, lambda: scene.queue.grant(a, 1))


@scenario("ES-5 WK-1 WK-5", traces=1, executor=False)
def push_executor_exits(scene: PushScene) -> None:
    """To hand the executor a job ends the thread that does so; the next grant asks for another, which is run.

    Bounds: One consumer without credit, one message there, one exit. Whoever does not exit publishes a second message.
    """
    a = scene.subscribe("A", credit=0)
    scene.enqueue("m1")
    scene.run_job()
    submit = scene.queue._submit

    def exits(job: Callable[[], None]) -> None:
        scene.queue._submit = submit
        raise SystemExit

    def client() -> None:
        scene.queue._submit = exits
        with suppress(SystemExit):
            scene.queue.grant(a, 1)
            scene.enqueue("m2")
        scene.queue.grant(a, 2)
        while scene._jobs:
            scene.run_job()

    scene.spawn(client, name="A")


@scenario("ES-5", traces=1, executor=False)
def push_group_refused(scene: PushScene) -> None:
    """The executor refuses the job for the next of a group, whose first message is settled, and takes the one that a
    grant asks for.

    Bounds: One consumer, two messages of one group, one refusal.
    """
    a = scene.subscribe("A", credit=1)
    first = scene.enqueue("m1", group="g")
    scene.enqueue("m2", group="g")
    while scene._jobs:
        scene.run_job()
    _refused_once(scene, a, lambda: scene.queue.dequeue(first, a))


@scenario("ES-5 QL-1", traces=1, executor=False)
def push_close_refused(scene: PushScene) -> None:
    """The executor refuses the job for the first message that a consumer releases as it closes: the second comes back,
    too, and another consumer gets both when it is granted credit.

    Bounds: Two consumers, the first of which holds two messages, one refusal.
    """
    a, b = scene.subscribe("A"), scene.subscribe("B", credit=0)
    scene.enqueue("m1", "m2")
    scene.run_job()
    _refused_once(scene, b, lambda: scene.queue.close(a))


@scenario("SO-1 ES-2 ES-5 ES-6 IM-3 WK-9", traces=552)
def push_two(scene: PushScene) -> None:
    """Two publishers push to one consumer with credit for one message.

    Bounds: Two publishers, one message each. One consumer and one level: turns between consumers, and priorities,
    are not here.
    """
    scene.subscribe("A", credit=1)
    for name in ("P1", "P2"):
        scene.publish(name, by=name)


@scenario("SO-2 ES-2 ES-4 ES-5 IM-3 WK-1", traces=33)
def push_returned(scene: PushScene) -> None:
    """A client gives a message back, and the job that looks for another consumer is under way already.

    Bounds: Two consumers, of which the first has no credit left; one message released. No message arrives meanwhile.
    """
    a = scene.subscribe("A", credit=1)
    held = scene.enqueue("m1")
    scene.subscribe("B")
    scene.spawn(lambda: scene.queue.release(held, a), name="A")


@scenario("ES-2 ES-5 IM-3", traces=229)
def push_close(scene: PushScene) -> None:
    """A consumer closes while a message is pushed to it.

    Bounds: One consumer, which closes, and one message. What it was given before it closed goes back to nobody:
    there is no second consumer.
    """
    a = scene.subscribe("A")
    scene.publish("m1")
    scene.spawn(lambda: scene.queue.close(a), name="A")


@scenario("ES-2 ES-5 WK-1", traces=5532)
def push_close_beside(scene: PushScene) -> None:
    """One of two consumers closes while a message is pushed.

    Bounds: Two consumers without limit, one of which closes, and one message.
    """
    a = scene.subscribe("A")
    scene.subscribe("B")
    # Daemons: whether somebody is stuck is for the properties to say.
    scene.spawn(lambda: scene.enqueue("m1"), name="P", daemon=True)
    scene.spawn(lambda: scene.queue.close(a), name="A", daemon=True)


@scenario("ES-2 ES-5 ES-6 IM-3 WK-1 WK-5", traces=84)
def push_past_idle(scene: PushScene) -> None:
    """The delivery job comes to a consumer without credit before the one that gets some.

    Bounds: Two consumers, of which the later one is granted two messages; one message arrives.
    """
    scene.subscribe("A", credit=0)
    b = scene.subscribe("B", credit=0)
    scene.publish("m1")
    scene.spawn(lambda: scene.queue.grant(b, 2), name="B")


@scenario("ES-7", traces=16, real_time=True, executor=False)
def send_close(scene: PushScene) -> None:
    """A consumer closes while a message is pushed to it and its connection takes its time.

    Bounds: One consumer, which holds a message and closes, and one more message. Nobody else takes them, and no job
    runs; the rest of the queue is in `push-close`.
    """
    a = scene.queue.subscribe("A", RecordedInbox(scene, "A"))
    scene.enqueue("m0")
    scene.publish("m1")
    scene.spawn(lambda: scene.queue.close(a), name="A")


@scenario("SO-7", traces=2, executor=False)
def push_turns(scene: PushScene) -> None:
    """Messages are pushed to three consumers in turn, one of which pauses.

    Bounds: One publisher, three messages, three consumers without limits, one pause that does not end. Two publishers
    at once share a turn, and what a job delivers keeps no turns; neither is here.
    """
    scene.subscribe("A")
    b = scene.subscribe("B")
    scene.subscribe("C")
    scene.publish("m1", "m2", "m3")
    scene.spawn(lambda: scene.queue.set_notify_work_desired(b, False), name="B")


@scenario("SO-7", traces=1, executor=False)
def push_turns_kept(scene: PushScene) -> None:
    """A job that delivers nothing runs between two messages: the turn is that of the next consumer all the same.

    Bounds: Sequential; three consumers without limits, four messages, one run of the job.
    """
    for name in ("A", "B", "C"):
        scene.subscribe(name)

    def publish() -> None:
        scene.enqueue("m1")
        scene.run_job()
        scene.enqueue("m2", "m3", "m4")

    scene.spawn(publish, name="P")


@scenario("SO-7", traces=1, executor=False)
def push_turns_behind_a_job(scene: PushScene) -> None:
    """A job serves a consumer; another one subscribes, and the next message is its.

    Bounds: Sequential; two consumers without limits, one message that waits for the job and one that is pushed.
    """
    scene.enqueue("m1")
    scene.subscribe("A")
    scene.run_job()
    scene.subscribe("B")
    scene.publish("m2")


@scenario("SO-7", traces=1, executor=False)
def push_turn_browser(scene: PushScene) -> None:
    """A browser is shown what no other consumer selects; the next message is for who comes behind the browser.

    Bounds: Sequential; a browser between two consumers without limits, one message for the browser alone, which then
    expires, and one for all.
    """
    scene.subscribe("A", keys=frozenset({"k"}))
    scene.subscribe("browser", acquires=False)
    scene.subscribe("B", keys=frozenset({"k"}))

    def publish() -> None:
        scene.enqueue("m1", expires=1)
        scene.pass_time(2)
        scene.queue.check_message_status()
        scene.enqueue("m2", key="k")

    scene.spawn(publish, name="P")


@scenario("ES-5 WK-1", traces=1, executor=False)
def push_turns_unaided(scene: PushScene) -> None:
    """Messages are pushed to two consumers that are ready; the executor waits for a job, and none is asked for.

    Bounds: One publisher, two messages, two consumers without limits, one job at most. It would take the second
    consumer's turn for the first.
    """
    for name in ("A", "B"):
        scene.subscribe(name)
    scene.run_job()  # what the two have asked for
    scene.spawn_executor()
    scene.publish("m1", "m2")


@scenario("ES-2 ES-5 IM-3", traces=164)
def exclusive_close(scene: PushScene) -> None:
    """An exclusive consumer closes while a message is pushed to it.

    Bounds: One exclusive consumer, which closes, and one message. A next consumer, who subscribes when the
    exclusive one is gone, is not here.
    """
    a = scene.subscribe("A", exclusive=True)
    scene.publish("m1")
    scene.spawn(lambda: scene.queue.close(a), name="A")


@scenario("QL-6", traces=3, executor=False)
def exclusive_handed_on(scene: PushScene) -> None:
    """An exclusive consumer closes while another subscribes, which is refused until the first is gone.

    Bounds: One exclusive consumer, which closes, and one other, which asks once; no messages. Two consumers that
    subscribe at the same time are not here.
    """
    a = scene.subscribe("A", exclusive=True)

    scene.spawn(lambda: scene.queue.close(a), name="A")
    scene.spawn(lambda: subscribe_or_not(scene, "B"), name="B")


def come_and_go(scene: PushScene, name: str, exclusive: bool) -> None:
    """Subscribe a consumer, which may be refused, and close it."""
    with suppress(scene.lib.QueueMisuse):
        scene.queue.close(scene.subscribe(name, exclusive=exclusive))


@scenario("QL-6", traces=8, executor=False)
def exclusive_and_other(scene: PushScene) -> None:
    """Two consumers come and go at the same time, one of which wants to be the only one.

    Bounds: Two threads that ask once each, no messages. Two that both want to be the only one are in `exclusive-twice`.
    """
    scene.spawn(lambda: come_and_go(scene, "A", exclusive=True), name="A")
    scene.spawn(lambda: come_and_go(scene, "B", exclusive=False), name="B")


@scenario("QL-6", traces=8, executor=False)
def exclusive_twice(scene: PushScene) -> None:
    """Two consumers come and go at the same time, and each wants to be the only one.

    Bounds: Two threads that ask once each, no messages.
    """
    for name in ("A", "B"):
        scene.spawn(partial(come_and_go, scene, name, exclusive=True), name=name)


@scenario("SO-1 SO-3 SO-6 ES-5 ES-6 IM-3 WK-1", traces=570)
def exclusive(scene: PushScene) -> None:
    """The shortcut for an exclusive consumer, with an earlier message still waiting for credit.

    Bounds: One exclusive consumer, one message waiting, two arriving, credit for all coming meanwhile. The consumer
    neither closes (`exclusive-close`) nor releases.
    """
    c = scene.subscribe("A", credit=0, exclusive=True)
    scene.enqueue("m1")
    scene.spawn(lambda: scene.queue.grant(c, 4), name="A")
    scene.publish("m2", "m3")


@scenario("ES-2 ES-5 ES-6 SP-2 MG-1 MG-2 WK-1", traces=141)
def push_group(scene: PushScene) -> None:
    """A push finds that its message expired under its hands, while it owns the group of the next one.

    Bounds: One group of two, of which the first expires; one consumer, which gets credit, and one pass of
    housekeeping. What two consumers do to a group is the same in a queue that is pulled from (`group-race`,
    `group-freed`).
    """
    scene.clock_starts()
    scene.enqueue("g1", group="g", expires=5)
    scene.enqueue("g2", group="g")
    a = scene.subscribe("A", credit=0)
    # Daemons: whether somebody is stuck is for the properties to say.
    scene.spawn(lambda: scene.queue.grant(a, 3), name="A")
    scene.housekeeping(after=6, daemon=True)


@scenario("IM-1 ES-5 ES-6", traces=3, executor=False)
def immediate_while_granted(scene: PushScene) -> None:
    """An immediate message arrives for a consumer with credit for one message, which is granted another meanwhile.

    Bounds: One consumer, one message, one grant; the job that the grant asks for does not run.
    """
    a = scene.subscribe("A", credit=1)
    scene.publish("m1", immediate=True)
    scene.spawn(lambda: scene.queue.grant(a, 1), name="A")


@scenario("IM-4 ES-5", traces=10, executor=False)
def push_taken_meanwhile(scene: PushScene) -> None:
    """A message arrives that a job delivers meanwhile, and an immediate one that nobody takes: neither asks for a job.

    Bounds: Two consumers, of which one wants neither and one has credit for one message, one attempt beside the
    publisher's.
    """
    scene.subscribe("A", keys=frozenset({"other"}))
    b = scene.subscribe("B", credit=1)
    scene.run_job()  # what the two have asked for
    scene.spawn(lambda: scene.queue.deliver_to(b, "job"), name="job")

    def publish() -> None:
        scene.enqueue("m1")
        scene.enqueue("m2", immediate=True)

    scene.spawn(publish, name="P")
