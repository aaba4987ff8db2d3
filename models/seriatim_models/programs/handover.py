"""Closed programs over the hand-over: from the thread that enqueues to the thread that sends."""

from __future__ import annotations

from functools import partial

from seriatim.queue import Consumer, QueueEntry
from seriatim_models.programs.base import Programs
from seriatim_models.programs.scene import HandoverScene

HANDOVER_PROGRAMS = Programs("queue")
scenario = HANDOVER_PROGRAMS.scenarios(HandoverScene)


@scenario("ES-5 WK-1 WK-5 WK-6 QL-1", traces=7782)
def handover(scene: HandoverScene) -> None:
    """A publisher on two queues wakes one connection, which one of two IO threads serves.

    Bounds: One target on two queues, one session, one connection, two IO threads, one message on each queue. Two
    connections are in `handover-two-connections`, consumers that lose interest in `handover-suspend`.
    """
    target = scene.target
    target.consumers = [q.subscribe(f"on-{q.name}", target) for q in scene.queues]
    scene.io_threads("io1", "io2")

    def publish() -> None:
        for q in scene.queues:
            q.enqueue(scene.message(f"m-{q.name}"))

    scene.spawn(publish, name="P")


@scenario("ES-5 WK-1 WK-5 WK-6 QL-1", traces=1)
def handover_one(scene: HandoverScene) -> None:
    """A message arrives for the only consumer of a connection, whose IO thread sleeps.

    Bounds: One queue, one consumer, one message, one IO thread. A thread that is at work is in `handover-meanwhile`.
    """
    q, _ = scene.queues
    scene.target.consumers = [q.subscribe("A", scene.target)]
    scene.io_threads("io")
    scene.spawn(lambda: q.enqueue(scene.message("m1")), name="P")


@scenario("ES-5 WK-1 WK-5 WK-6", traces=1)
def handover_once(scene: HandoverScene) -> None:
    """A message arrives, and an IO thread serves one connection, for which it may have to wait.

    Bounds: One queue, one consumer, one message, one IO thread that ends when it has served.
    """
    q, _ = scene.queues
    scene.target.consumers = [q.subscribe("A", scene.target)]
    scene.spawn(scene.scheduler.run_one, name="io")
    scene.spawn(lambda: q.enqueue(scene.message("m1")), name="P")


@scenario("WK-1 WK-5 WK-6", traces=109)
def handover_meanwhile(scene: HandoverScene) -> None:
    """A session is notified of a target that has nothing for it, while an IO thread is at work on another.

    Bounds: Two sessions, one target each, one message, which is there; the second target is notified, no message
    arrives. Messages that arrive are in `handover-two-sessions`.
    """
    q, _ = scene.queues
    other = scene.new_session(scene.connection, "other session")
    idle = scene.new_target(other, "idle target")
    scene.target.consumers = [q.subscribe("A", scene.target)]
    q.enqueue(scene.message("m1"))
    scene.io_threads("io")
    scene.spawn(lambda: other.notify_work(idle), name="notify")


@scenario("ES-5 WK-1 WK-5 WK-6", traces=1258)
def handover_served_in_vain(scene: HandoverScene) -> None:
    """A message arrives while an IO thread serves its target, which was notified and had nothing.

    Bounds: One queue, one consumer, one message, one IO thread. Two targets are in `handover-two-targets`.
    """
    q, _ = scene.queues
    scene.target.consumers = [q.subscribe("A", scene.target)]
    scene.session.notify_work(scene.target)
    scene.io_threads("io")
    scene.spawn(lambda: q.enqueue(scene.message("m1")), name="P")


@scenario("WK-1 WK-5 WK-6", traces=10)
def handover_two_threads(scene: HandoverScene) -> None:
    """Two connections with a message each are ready, and two IO threads take them.

    Bounds: One consumer on each, all is there; no arrivals.
    """
    q1, q2 = scene.queues
    other = scene.new_target(
        scene.new_session(scene.new_connection("other conn"), "other session"), "other target"
    )
    scene.target.consumers = [q1.subscribe("A", scene.target)]
    other.consumers = [q2.subscribe("B", other)]
    q1.enqueue(scene.message("m1"))
    q2.enqueue(scene.message("m2"))
    scene.io_threads("io1", "io2")


@scenario("WK-6", traces=432)
def handover_notified_twice(scene: HandoverScene) -> None:
    """Two threads notify one connection of two targets, neither of which has a message, and two IO threads serve it.

    Bounds: Two sessions with one target each, which has no consumer; one notification each.
    """
    other = scene.new_session(scene.connection, "other session")
    scene.io_threads("io1", "io2")
    for n, session in enumerate((scene.session, other)):
        target = scene.new_target(session, f"target {n}")
        scene.spawn(partial(session.notify_work, target), name=f"N{n}")


@scenario("ES-5 WK-1 WK-5 WK-6 QL-1", traces=1)
def handover_second(scene: HandoverScene) -> None:
    """A target's first consumer has nothing, the second has a message.

    Bounds: Sequential; two queues, one message on the second, one IO thread.
    """
    q1, q2 = scene.queues
    scene.target.consumers = [q1.subscribe("A", scene.target), q2.subscribe("B", scene.target)]
    q2.enqueue(scene.message("m1"))
    scene.io_threads("io")


@scenario("WK-10", traces=1)
def handover_turns(scene: HandoverScene) -> None:
    """A target takes from two queues in turn.

    Bounds: One target with a consumer on each of two queues, two messages on the first queue and one on the second,
    one connection, one IO thread, no arrivals. A third consumer, one that is suspended, is in `handover-suspend`.
    """
    (q1, q2), target = scene.queues, scene.target
    target.consumers = [q.subscribe(f"on-{q.name}", target) for q in scene.queues]
    q1.enqueue(scene.message("m1"))
    q1.enqueue(scene.message("m2"))
    q2.enqueue(scene.message("m3"))
    scene.io_threads("io")


@scenario("WK-12", traces=1)
def handover_targets_in_turn(scene: HandoverScene) -> None:
    """A session has two targets with two messages each, and serves them in turn.

    Bounds: Sequential: one session, all messages there, one IO thread. Two sessions are in `handover-sessions-in-turn`.
    """
    second = scene.new_target(scene.session, "other target")
    scene.two_for_each(scene.target, second)
    scene.io_threads("io")


@scenario("WK-12", traces=1)
def handover_sessions_in_turn(scene: HandoverScene) -> None:
    """A connection has two sessions, whose targets have two messages each, and serves them in turn.

    Bounds: Sequential: two sessions with one target each, all messages there, one IO thread.
    """
    second = scene.new_target(scene.new_session(scene.connection, "other session"), "other target")
    scene.two_for_each(scene.target, second)
    scene.io_threads("io")


@scenario("WK-12", traces=1)
def handover_waits_in_turn(scene: HandoverScene) -> None:
    """A target has a message for each of its two consumers, and one that waits for its turn is notified once more.

    Bounds: Sequential: one session with three targets, three messages, all there, one IO thread, which notifies the
    target that waits while it sends for another one. That has no consumer, so it takes nothing in its turn.
    """
    (q1, q2), session = scene.queues, scene.session
    waits = scene.new_target(session, "waits")

    class Notifying(scene.lib.ConsumerTarget):  # type: ignore[misc, name-defined]  # of the reference under test
        def send(self, consumer: Consumer, entry: QueueEntry) -> None:
            super().send(consumer, entry)
            session.notify_work(waits)

    two, one = scene.target, Notifying(session, "one")
    two.consumers = [q1.subscribe("A", two), q2.subscribe("B", two)]
    one.consumers = [q1.subscribe("C", one)]
    for q, id in ((q2, "m1"), (q1, "m2"), (q1, "m3")):
        q.enqueue(scene.message(id))
    session.notify_work(waits)
    scene.io_threads("io")


@scenario("WK-12", traces=1)
def handover_waits_once(scene: HandoverScene) -> None:
    """A target that waits behind another one is notified once more: it has one turn for that, as if it had been once.

    Bounds: One session with two targets, two messages for each, all there, one IO thread.
    """
    one, two = scene.target, scene.new_target(scene.session, "two")
    scene.two_for_each(one, two)
    scene.session.notify_work(two)
    scene.io_threads("io")


@scenario("WK-10", traces=1)
def handover_leave(scene: HandoverScene) -> None:
    """One of a target's three consumers has had its turn and closes.

    Bounds: One target, three consumers on two queues, a message for each and one more, all there; its IO thread
    serves it, closes the second consumer and serves it again. A consumer that joins is not here.
    """
    (q1, q2), target = scene.queues, scene.target
    leaving = q2.subscribe("B", target)
    target.consumers = [q1.subscribe("A", target), leaving, q1.subscribe("C", target)]
    for q, id in ((q1, "m1"), (q1, "m2"), (q1, "m3"), (q2, "m4")):
        q.enqueue(scene.message(id))

    def serve() -> None:
        target.process()
        target.process()
        target.consumers.remove(leaving)
        q2.close(leaving)
        target.process()
        target.process()

    scene.spawn(serve, name="io")


@scenario("ES-2 ES-5 SP-3 WK-1 WK-3 WK-5 WK-6 WK-7 WK-9 WK-10 QL-1", traces=3927)
def handover_suspend(scene: HandoverScene) -> None:
    """One of a target's consumers is suspended, by another thread, while the IO thread is about to serve them.

    Bounds: One target with three consumers on two queues, a message on each, one connection, one IO thread, one
    suspension that does not end, no arrivals. Any thread may suspend a consumer; its interest is
    declared on the IO thread, as the reference requires.
    """
    (q1, q2), target = scene.queues, scene.target
    suspended = q1.subscribe("A", target)
    target.consumers = [suspended, q2.subscribe("B", target), q1.subscribe("C", target)]
    q1.enqueue(scene.message("m1"))
    q2.enqueue(scene.message("m2"))
    scene.io_threads("io")
    scene.spawn(lambda: q1.set_notify_work_desired(suspended, False), name="suspend")


@scenario("ES-5 SP-3 WK-1 WK-5 WK-6 QL-1", traces=1)
def handover_in_turn(scene: HandoverScene) -> None:
    """A session has two targets with work, and the one that has less is served first.

    Bounds: Sequential: one session, one message for the first target and two for the second, all there; one IO thread.
    Arrivals while the session is served are in `handover-two-targets`.
    """
    q1, q2 = scene.queues
    first, second = scene.target, scene.new_target(scene.session, "other target")
    first.consumers = [q1.subscribe("A", first)]
    second.consumers = [q2.subscribe("B", second)]
    for q, m in ((q1, "m1"), (q2, "m2"), (q2, "m3")):
        q.enqueue(scene.message(m))
    scene.io_threads("io")


@scenario("ES-5 SP-3 WK-1 WK-5 WK-6 QL-1", traces=4782)
def handover_two_targets(scene: HandoverScene) -> None:
    """A publisher wakes two targets of one session, while the IO thread serves it.

    Bounds: One session, two targets with a consumer on a queue each, one message for each, one publisher, one IO
    thread. Two sessions and two publishers are in `handover-two-sessions`, two IO threads in `handover`.
    """
    q1, q2 = scene.queues
    first, second = scene.target, scene.new_target(scene.session, "other target")
    first.consumers = [q1.subscribe("A", first)]
    second.consumers = [q2.subscribe("B", second)]
    scene.io_threads("io")

    def publish() -> None:
        q1.enqueue(scene.message("m1"))
        q2.enqueue(scene.message("m2"))

    scene.spawn(publish, name="P")


@scenario("ES-5 SP-3 WK-1 WK-5 WK-6 QL-1", traces=502)
def handover_two_sessions(scene: HandoverScene) -> None:
    """Two publishers wake two sessions of one connection, while the IO thread serves it.

    Bounds: Two sessions with one target each, one message for each, one IO thread. Two targets of one session are in
    `handover-two-targets`.
    """
    q1, q2 = scene.queues
    other = scene.new_session(scene.connection, "other session")
    first, second = scene.target, scene.new_target(other, "other target")
    first.consumers = [q1.subscribe("A", first)]
    second.consumers = [q2.subscribe("B", second)]
    scene.io_threads("io")
    scene.spawn(lambda: q1.enqueue(scene.message("m1")), name="P1")
    scene.spawn(lambda: q2.enqueue(scene.message("m2")), name="P2")


@scenario("ES-2 ES-5 SP-3 WK-1 WK-5 WK-6 WK-7 QL-1", traces=528)
def handover_two_connections(scene: HandoverScene) -> None:
    """A consumer that was woken is suspended, and the one that is woken instead is on another connection.

    Bounds: One queue with a consumer on each of two connections, one message there, two IO threads, one suspension
    that does not end. Arrivals are in `handover`.
    """
    q, _ = scene.queues
    other = scene.new_target(
        scene.new_session(scene.new_connection("other conn"), "other session"), "other target"
    )
    woken = q.subscribe("A", scene.target)
    scene.target.consumers = [woken]
    other.consumers = [q.subscribe("B", other)]
    q.enqueue(scene.message("m1"))
    scene.io_threads("io1", "io2")
    scene.spawn(lambda: q.set_notify_work_desired(woken, False), name="suspend")
