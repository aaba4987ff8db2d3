"""Closed programs over the reference queue: each is a meeting of a few operations that could go wrong.

Consumers that rest at the end, waiting to be woken, are what a queue looks like when all is well;
the state in which everything rests is recorded and judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial

import seriatim.queue as reference
from seriatim_models.explorer import Handle
from seriatim_models.programs.base import Programs
from seriatim_models.programs.scene import Inbox, PullScene, PushScene, WaitsWhenWoken

QUEUE_PROGRAMS = Programs("queue")
scenario = QUEUE_PROGRAMS.scenarios(PullScene)


# ---- order, state and pointers: threads that take, without being woken


@scenario("SO-1 ES-5", traces=512, real_time=True)
def enqueue_enqueue(scene: PullScene) -> None:
    """Two publishers enqueue at the same time.

    Bounds: Two publishers, two messages each. A third adds only orders of the same two kinds of step.
    """
    for name in ("P1", "P2"):
        scene.publish(f"{name}.1", f"{name}.2", by=name)


@scenario("SO-3 ES-1 ES-2 ES-3 ES-4 ES-5 ES-6 SP-1 SP-3", traces=28)
def two_takers(scene: PullScene) -> None:
    """Two consumers are after the same two messages and are done with what they get.

    Bounds: Two consumers, one attempt each, two messages, no arrivals. More of either repeat the same race.
    """
    a, b = scene.taker("A", credit=1), scene.taker("B", credit=1)
    scene.enqueue("m1", "m2")

    def take(c: reference.Consumer) -> None:
        entry = scene.attempt(c)
        if entry is not None:
            scene.queue.dequeue(entry, c)

    scene.spawn(partial(take, a), name="A")
    scene.spawn(partial(take, b), name="B")


@scenario("SO-2 SO-3 ES-1 ES-2 ES-4 ES-5 SP-1 SP-2 SP-3", traces=77, real_time=True)
def release_behind(scene: PullScene) -> None:
    """A holder releases the first message while another consumer is on its way past it.

    Bounds: Three messages, two consumers, one release, two attempts. Who is woken by the release is for
    `release-rest`.
    """
    a, b = scene.taker("A"), scene.taker("B")
    scene.enqueue("m1", "m2", "m3")
    held = scene.take(a)
    scene.spawn(lambda: scene.queue.release(held, a), name="A")

    def take_two() -> None:
        scene.attempt(b)
        scene.attempt(b)

    scene.spawn(take_two, name="B")


@scenario("SO-2 ES-1 ES-2 ES-4 ES-5 SP-2", traces=20)
def release_again(scene: PullScene) -> None:
    """One entry is released, taken and released again while another consumer, who went past it, comes back.

    Bounds: Two consumers, one message, two releases, one attempt. Whether the other then rests beside it is for
    `release-again-rest`.
    """
    a, b = scene.taker("A"), scene.taker("B")
    scene.enqueue("m1")
    held = scene.take(a)
    scene.attempt(b)
    scene.spawn(lambda: give_back_twice(scene, a, held), name="A")
    scene.spawn(lambda: scene.attempt(b), name="B")


def give_back_twice(
    scene: PullScene, consumer: reference.Consumer, held: reference.QueueEntry
) -> None:
    """Release an entry, take it again if nobody else has, and release it again."""
    scene.queue.release(held, consumer)
    again = scene.attempt(consumer)
    if again is not None:
        scene.queue.release(again, consumer)


@scenario("ES-4 ES-5 SP-1 SP-2", traces=2)
def release_at_once(scene: PullScene) -> None:
    """A client releases a message while the thread that delivered it has not finished with it.

    Bounds: One message, one consumer, one attempt, one release. Another consumer, past which the entry comes back,
    is in `release-behind`.
    """
    a = scene.taker("A")
    entry = scene.enqueue("m1")
    scene.spawn(lambda: scene.attempt(a), name="A")
    scene.spawn(lambda: scene.queue.release(entry, a), name="client")


@scenario("ES-2 ES-4 ES-5", traces=3)
def release_not_mine(scene: PullScene) -> None:
    """A consumer releases and dequeues a message that another one holds.

    Bounds: One message, two consumers, one release by its holder. A stranger that races with the next holder, after
    the release, is not here.
    """
    a, b = scene.taker("A"), scene.taker("B")
    scene.enqueue("m1")
    held = scene.take(a)

    def stranger() -> None:
        scene.queue.release(held, b)
        scene.queue.dequeue(held, b)

    scene.spawn(stranger, name="B")
    scene.spawn(lambda: scene.queue.release(held, a), name="A")


@scenario("SO-2 SO-3 ES-2 ES-4 ES-5 SP-1 SP-2 SP-3", traces=107)
def release_own(scene: PullScene) -> None:
    """A consumer releases the last message that it took and takes again, while another takes too.

    Bounds: Three messages, two consumers; one release, and one attempt each. A release behind another consumer's
    pointer is in `release-behind`.
    """
    a, b = scene.taker("A"), scene.taker("B")
    scene.enqueue("m1", "m2", "m3")
    scene.take(a)
    last = scene.take(a)

    def release_and_take() -> None:
        scene.queue.release(last, a)
        scene.attempt(a)

    scene.spawn(release_and_take, name="A")
    scene.spawn(lambda: scene.attempt(b), name="B")


@scenario("SO-1 SO-3 SO-5 ES-5 SP-1 SP-2 SP-3", traces=21, levels=2)
def priority_arrival(scene: PullScene) -> None:
    """A message of high priority arrives while the pointer of a consumer goes on past the end of the high sub-queue.

    Bounds: Two levels, one message there on each, one arriving on the higher. Wake-ups and a third level are not
    here.
    """
    a, b = scene.taker("A"), scene.taker("B")
    scene.enqueue("high1", priority=9)
    scene.enqueue("low1", priority=0)
    scene.attempt(a)
    scene.spawn(lambda: scene.attempt(b), name="B")
    scene.publish("high2", priority=9)


@scenario("SO-1 SO-3 SO-5", traces=1, levels=3)
def priority_levels(scene: PullScene) -> None:
    """One publisher, ten priorities, three levels: who stands where, and who is taken first.

    Bounds: Sequential; every priority once. Arrivals while somebody takes are in `priority-arrival`; other numbers
    of levels are for `make prove`.
    """
    for p in range(10):
        scene.enqueue(f"p{p}", priority=p)
    a = scene.taker("A")

    def take_all() -> None:
        while (entry := scene.attempt(a)) is not None:
            scene.queue.dequeue(entry, a)

    scene.spawn(take_all, name="A")


@scenario("SO-3 ES-5 SP-2", traces=1, levels=3)
def priority_gap(scene: PullScene) -> None:
    """A consumer takes a message of the highest level and then one of the lowest, with nothing between.

    Bounds: Sequential; three levels, one message on each of two.
    """
    a = scene.taker("A")
    scene.enqueue("high", priority=9)
    scene.enqueue("low", priority=0)
    scene.spawn(lambda: (scene.attempt(a), scene.attempt(a)), name="A")


@scenario("SO-4 SP-1 SP-3 WK-1", traces=379, levels=2)
def browse(scene: PullScene) -> None:
    """A browser looks on while a higher message arrives.

    Bounds: One browser, two messages there, one arrival before them. A second browser has a pointer of its own, and
    is not here.
    """
    scene.enqueue("low1", "low2", priority=0)
    browser = scene.subscribe("browser", acquires=False, credit=0)
    scene.serve(browser, grant=4)
    scene.publish("high", priority=9)


# ---- time and groups


@scenario("SO-3 ES-1 ES-5 SP-2 SP-3 TM-1 TM-2", traces=20)
def held(scene: PullScene) -> None:
    """A held message becomes available while a consumer goes past it.

    Bounds: One held message before one that is not, one pass of housekeeping. The clock goes on in one step before
    the pass; a hold that ends in the middle of one is not here.
    """
    scene.clock_starts()
    c = scene.taker("A")
    scene.enqueue("m1", not_before=5)
    scene.enqueue("m2")
    scene.spawn(lambda: scene.attempt(c), name="A")
    scene.housekeeping(after=5)


@scenario("SP-2 TM-2 WK-1", traces=25)
def due_when_passed(scene: PullScene) -> None:
    """A held message comes to be due when the only consumer has taken what lies behind it, and waits.

    Bounds: One held message and one behind it, one pass of housekeeping. A consumer that goes past the message
    meanwhile is in `held`.
    """
    scene.clock_starts()
    a = scene.subscribe("A")
    scene.enqueue("m1", not_before=5)
    scene.enqueue("m2")
    scene.drain(a)
    scene.serve(a)
    scene.housekeeping(after=5)


@scenario("ES-1 ES-3 ES-5 TM-1 TM-2", traces=1)
def due_and_expired(scene: PullScene) -> None:
    """Two messages come to be due and two expire between two passes of housekeeping, and two stay as they are.

    Bounds: Sequential; the first pass is one tick too early for all of them. A consumer takes one after it and three
    after the second.
    """
    scene.clock_starts()
    a = scene.taker("A")
    for n in (1, 2):
        scene.enqueue(f"held{n}", not_before=5)
        scene.enqueue(f"m{n}")
        scene.enqueue(f"expiring{n}", expires=4)

    def clean_and_take() -> None:
        for passed, taken in ((4, 1), (1, 3)):
            scene.pass_time(passed)
            scene.queue.check_message_status()
            for _ in range(taken):
                scene.attempt(a)

    scene.spawn(clean_and_take, name="A")


@scenario("ES-1 ES-2 ES-3 ES-5 TM-1 TM-2", traces=15)
def expiring(scene: PullScene) -> None:
    """A message expires while a consumer takes it and housekeeping clears it away.

    Bounds: One message that expires, one consumer, one pass of housekeeping. It expires before housekeeping begins;
    a clock that goes on during the pass is not here.
    """
    scene.clock_starts()
    scene.enqueue("m1", expires=5)
    c = scene.subscribe("A", credit=0)
    scene.serve(c, grant=2)
    scene.housekeeping(after=6)


@scenario("ES-1 ES-3 ES-5 TM-2", traces=1)
def held_and_expired(scene: PullScene) -> None:
    """A held message has expired when its time comes: a pass of housekeeping makes it available, the next discards it.

    Bounds: Sequential; one message, two passes of housekeeping.
    """
    scene.clock_starts()
    scene.enqueue("m1", not_before=5, expires=6)

    def clean_twice() -> None:
        scene.pass_time(7)
        scene.queue.check_message_status()
        scene.queue.check_message_status()

    scene.spawn(clean_twice, name="housekeeping")


@scenario("ES-1 ES-3 ES-5 TM-2", traces=1)
def released_and_expired(scene: PullScene) -> None:
    """A message that its holder has released expires, and housekeeping clears it away like one that nobody had.

    Bounds: Sequential; one message, one release, one pass of housekeeping.
    """
    scene.clock_starts()
    a = scene.taker("A")
    scene.enqueue("m1", expires=5)
    held = scene.take(a)

    def life() -> None:
        scene.queue.release(held, a)
        scene.pass_time(6)
        scene.queue.check_message_status()

    scene.spawn(life, name="A")


@scenario("ES-5 WK-1 TM-2", traces=528)
def expired_twice(scene: PullScene) -> None:
    """Two messages expire, one after the other, each as a consumer is about to take it: the third is there for it.

    Bounds: One consumer, which pulls until there is nothing; two passes of housekeeping.
    """
    scene.clock_starts()
    a = scene.subscribe("A")
    scene.enqueue("m1", expires=5)
    scene.enqueue("m2", expires=10)
    scene.enqueue("m3")

    def clean_twice() -> None:
        for _ in range(2):
            scene.pass_time(6)
            scene.queue.check_message_status()

    scene.spawn(clean_twice, name="housekeeping")
    scene.spawn(lambda: scene.drain(a), name="A")


@scenario("ES-2 ES-5 MG-1 MG-2", traces=14)
def group_race(scene: PullScene) -> None:
    """Two consumers are after two messages of one group.

    Bounds: One group of two, two consumers, one attempt each. Neither releases or dequeues: that is `group-freed`
    and `group-released`.
    """
    takers = [scene.taker("A"), scene.taker("B")]
    scene.enqueue("g1", "g2", group="g")
    for c in takers:
        scene.spawn(partial(scene.attempt, c), name=c.name)


@scenario("ES-2 ES-4 ES-5 MG-1", traces=4)
def group_not_mine(scene: PullScene) -> None:
    """A consumer releases and dequeues a message of a group that another one holds, and both are after the next.

    Bounds: One group of two, two consumers, one refused release, one refused dequeue, one attempt each.
    """
    a, b = scene.taker("A"), scene.taker("B")
    scene.enqueue("g1", "g2", group="g")
    held = scene.take(a)

    def stranger() -> None:
        scene.queue.release(held, b)
        scene.queue.dequeue(held, b)
        scene.attempt(b)

    scene.spawn(stranger, name="B")
    scene.spawn(lambda: scene.attempt(a), name="A")


@scenario("ES-5 SP-2 WK-1 MG-1 MG-2", traces=23)
def group_freed(scene: PullScene) -> None:
    """The holder of one message of a group is done with it while another consumer passes over the next.

    Bounds: One group of two, two consumers, the holder takes no more. A holder that goes on taking, and a second
    group, are not here.
    """
    a = scene.taker("A")
    scene.enqueue("g1", "g2", group="g")
    held = scene.take(a)
    b = scene.subscribe("B")
    scene.serve(b, pull_first=True)
    scene.spawn(lambda: scene.queue.dequeue(held, a), name="A")


@scenario("ES-5 SP-2 MG-1 MG-2", traces=118)
def group_arrives(scene: PullScene) -> None:
    """A message of a group arrives, and is passed over, while the group's owner is done with the only one it acquired.

    Bounds: One group of two and one message of none, of which two arrive; two consumers, one dequeue and one attempt.
    Nobody is woken. What is there before is in `group-passed`.
    """
    a, b = scene.taker("A"), scene.taker("B")
    scene.enqueue("g1", group="g")
    held = scene.take(a)
    scene.spawn(lambda: scene.queue.dequeue(held, a), name="A")

    def arrive_and_take() -> None:
        scene.enqueue("g2", group="g")
        scene.enqueue("m3")
        scene.attempt(b)

    scene.spawn(arrive_and_take, name="B")


@scenario("SO-2 ES-4 ES-5 SP-2 MG-1", traces=1349)
def group_released(scene: PullScene) -> None:
    """The holder of a group gives it back, first message first, while another consumer passes over it.

    Bounds: One group of two, two consumers, two releases, one attempt. Nobody is woken, and nobody else takes in
    between.
    """
    a, b = scene.taker("A"), scene.taker("B")
    scene.enqueue("g1", "g2", group="g")
    first, second = scene.take(a), scene.take(a)

    def give_back() -> None:
        scene.queue.release(first, a)
        scene.queue.release(second, a)

    scene.spawn(give_back, name="A")
    scene.spawn(lambda: scene.attempt(b), name="B")


@scenario("SO-3 ES-5 SP-3 MG-1 MG-2", traces=116)
def group_passed(scene: PullScene) -> None:
    """The holder of a group is done with its first message while another consumer looks for anything that it may take.

    Bounds: One group of two and one message of none behind it, two consumers, one attempt; nobody is woken.
    """
    a, b = scene.taker("A"), scene.taker("B")
    scene.enqueue("g1", "g2", group="g")
    scene.enqueue("m3")
    held = scene.take(a)
    scene.spawn(lambda: scene.queue.dequeue(held, a), name="A")
    scene.spawn(lambda: scene.attempt(b), name="B")


@scenario("ES-5 SP-2 MG-1 MG-2", traces=1)
def group_freed_behind(scene: PullScene) -> None:
    """The owner of a group is done with its first message; the next, which was passed over, is not the queue's first.

    Bounds: Sequential; one message before a group of two and one behind it, two consumers.
    """
    a, b = scene.taker("A"), scene.taker("B")
    scene.enqueue("m1")
    scene.enqueue("g1", "g2", group="g")
    scene.enqueue("m4")
    scene.take(a)
    held = scene.take(a)
    scene.take(b)
    scene.spawn(lambda: scene.queue.dequeue(held, a), name="A")


@scenario("ES-5 SP-2 WK-1 MG-1 MG-2", traces=1)
def group_freed_around_held(scene: PullScene) -> None:
    """The owner of a group is done with its message; of the two behind it the first is held, and one waits for both.

    Bounds: Sequential; one group of three, two consumers; the hold does not end.
    """
    scene.clock_starts()
    a = scene.taker("A")
    scene.enqueue("g1", group="g")
    scene.enqueue("g2", group="g", not_before=5)
    scene.enqueue("g3", group="g")
    held = scene.take(a)
    b = scene.subscribe("B")
    scene.drain(b)
    scene.serve(b)
    scene.spawn(lambda: scene.queue.dequeue(held, a), name="A")


@scenario("ES-5 SP-2 MG-1 MG-2", traces=1)
def group_freed_before(scene: PullScene) -> None:
    """The owner of a group is done with its last message; an earlier one, which it gave back before, was passed over.

    Bounds: Sequential; one group of two, one message behind it, two consumers.
    """
    a, b = scene.taker("A"), scene.taker("B")
    scene.enqueue("g1", "g2", group="g")
    scene.enqueue("m3")
    first, second = scene.take(a), scene.take(a)
    scene.take(b)

    def life() -> None:
        scene.queue.release(first, a)
        scene.attempt(b)
        scene.queue.dequeue(second, a)

    scene.spawn(life, name="A")


@scenario("ES-5 SP-2 MG-1 MG-2", traces=1)
def group_released_in_part(scene: PullScene) -> None:
    """The owner of a group releases one of its messages and keeps the other: it may have the first again.

    Bounds: Sequential; one group of two, one consumer.
    """
    a = scene.taker("A")
    scene.enqueue("g1", "g2", group="g")
    first = scene.take(a)
    scene.take(a)
    scene.spawn(lambda: scene.queue.release(first, a), name="A")


@scenario("ES-5 SP-2 MG-1 MG-2", traces=16)
def group_freed_and_joined(scene: PullScene) -> None:
    """The owner of a group is done with its last message while another consumer is about to own the group.

    Bounds: One group of three, of which the first was released and passed over by the other consumer, and the
    last is behind its pointer; one dequeue, one attempt.
    """
    a, b = scene.taker("A"), scene.taker("B")
    scene.enqueue("g1", "g2", group="g")
    scene.enqueue("m3")
    first, second = scene.take(a), scene.take(a)
    scene.queue.release(first, a)
    scene.take(b)
    scene.enqueue("g4", group="g")
    scene.spawn(lambda: scene.queue.dequeue(second, a), name="A")
    scene.spawn(lambda: scene.attempt(b), name="B")


@scenario("ES-5 SP-2 MG-1 MG-2", traces=341)
def group_given_up(scene: PullScene) -> None:
    """A consumer owns a group for a message that expires under its hands, while another passes over the rest of it.

    Bounds: One group of two, of which only one is for the first consumer; the other looks after one pass of
    housekeeping. Nobody is woken; two consumers that both give up are not here.
    """
    scene.clock_starts()
    a = scene.subscribe("A", keys=frozenset({"x"}))
    b = scene.taker("B")
    scene.queue.set_notify_work_desired(a, False)
    scene.enqueue("g1", group="g", key="x", expires=5)
    scene.enqueue("g2", group="g")
    scene.enqueue("m3")
    scene.spawn(lambda: scene.attempt(a), name="A")

    def clean_and_take() -> None:
        scene.pass_time(6)
        scene.queue.check_message_status()
        scene.attempt(b)

    scene.spawn(clean_and_take, name="B")


@scenario("ES-5 MG-1", traces=10)
def group_left_twice(scene: PullScene) -> None:
    """The holder of a group is done with one of its messages while another thread releases the other for it.

    Bounds: One group of two, one consumer, one dequeue, one release; nobody else is after them.
    """
    a = scene.taker("A")
    scene.enqueue("g1", "g2", group="g")
    first, second = scene.take(a), scene.take(a)
    scene.spawn(lambda: scene.queue.dequeue(first, a), name="A")
    scene.spawn(lambda: scene.queue.release(second, a), name="client")


@scenario("MG-1 SP-2 WK-1", traces=4)
def group_left_by_two(scene: PullScene) -> None:
    """The holder of a group is done with both of its messages, on two threads; another waits for the next.

    Bounds: One group, two messages held and one behind them; one who waits, and pulls behind both.
    """
    a = scene.taker("A")
    scene.enqueue("g1", "g2", group="g")
    held = scene.take(a), scene.take(a)
    b = scene.subscribe("B")
    scene.enqueue("g3", group="g")
    threads = [
        scene.spawn(partial(scene.queue.dequeue, entry, a), name=entry.message.id) for entry in held
    ]

    def both_done() -> None:
        for thread in threads:
            thread.join()

    scene.serve(b, first=both_done)


@scenario("ES-5 SP-3", traces=60)
def groups_left_and_joined(scene: PullScene) -> None:
    """Two consumers leave and join two groups at the same time.

    Bounds: Two groups, of which one has two messages; one dequeue and one attempt.
    """
    a, b = scene.taker("A"), scene.taker("B")
    scene.enqueue("g1", group="g")
    held = scene.take(a)
    scene.enqueue("h1", group="h")
    scene.spawn(lambda: scene.queue.dequeue(held, a), name="A")
    scene.spawn(lambda: scene.attempt(b), name="B")


@scenario("SO-4 ES-6 SP-1 SP-3", traces=16)
def browse_taken(scene: PullScene) -> None:
    """A browser is about to be shown a message that another consumer takes, and a publisher moves it on to the next.

    Bounds: One message there, one arriving, one attempt each of a browser and a consumer. The browser looks once,
    and has credit for no more.
    """
    browser = scene.subscribe("browser", acquires=False, credit=1)
    a = scene.taker("A")
    scene.enqueue("m1")
    scene.spawn(lambda: scene.attempt(browser), name="browser")
    scene.spawn(lambda: scene.attempt(a), name="A")
    scene.publish("m2")


@scenario("SO-4 ES-3 ES-5", traces=7, real_time=True)
def browse_dequeued(scene: PullScene) -> None:
    """A browser stands at a message that its holder dequeues, and looks for what it is to be shown next.

    Bounds: One message held, one behind it, one dequeue, one pull of the browser. Nothing arrives meanwhile.
    """
    a = scene.taker("A")
    scene.enqueue("m1", "m2")
    browser = scene.subscribe("browser", acquires=False)
    held = scene.take(a)
    scene.spawn(lambda: scene.queue.dequeue(held, a), name="A")
    scene.spawn(lambda: scene.queue.deliver_single_message(browser), name="browser")


@scenario("ES-5 QL-2", traces=5)
def depth_read(scene: PullScene) -> None:
    """A queue's depth is read while a message arrives and is taken and dequeued.

    Bounds: One message, one attempt, one look.
    """
    a = scene.taker("A")

    def take() -> None:
        entry = scene.attempt(a)
        if entry is not None:
            scene.queue.dequeue(entry, a)

    def look() -> None:
        depth = scene.queue.depth.get()
        scene.host.record("size", list=f"{scene.queue.name}.depth", value=depth)

    scene.spawn(take, name="A")
    scene.spawn(look, name="operator")
    scene.publish("m1")


# ---- wake-ups


@scenario("ES-1 ES-3 ES-5 WK-1 WK-5 QL-1 QL-2", traces=17)
def enqueue_rest(scene: PullScene) -> None:
    """A message arrives while its consumer finds nothing and is about to rest.

    Bounds: One consumer, one message. What a consumer does that has found something is in `enqueue-consume`.
    """
    c = scene.subscribe("A")
    scene.serve(c, lambda entry: scene.queue.dequeue(entry, c), pull_first=True)
    scene.publish("m1")


@scenario("ES-5 WK-1 QL-1 QL-2", traces=4)
def closed_when_woken(scene: PullScene) -> None:
    """A consumer is closed by its client's thread, for which the thread that has woken it waits; another one waits.

    Bounds: Two consumers, one message, which the other one gets.
    """
    client = WaitsWhenWoken(scene.world, "A")
    a = scene.queue.subscribe("A", client)
    scene.serve(scene.subscribe("B"))

    def close() -> None:
        client.wake.acquire()
        scene.queue.close(a)
        client.done.release()

    scene.spawn(close, name="A")
    scene.publish("m1")


@scenario("ES-5 WK-1 WK-5 QL-1", traces=4)
def closed_and_not_pulled(scene: PullScene) -> None:
    """A consumer that was woken closes and does not pull; the message is for the other one.

    Bounds: Two consumers, one message, which is there.
    """
    a = scene.subscribe("A")
    scene.serve(scene.subscribe("B"))
    scene.enqueue("m1")
    scene.spawn(lambda: scene.queue.close(a), name="A")


@scenario("SP-2 WK-1", traces=1)
def group_unselected(scene: PullScene) -> None:
    """A group is set free whose first message nobody selects; who selects the second is woken for it.

    Bounds: One group, a message that is done with and two behind it, one who waits.
    """
    a = scene.taker("A")
    held = scene.enqueue("g1", group="g")
    scene.take(a)
    b = scene.subscribe("B", keys=frozenset({"k"}))
    scene.enqueue("g2", group="g")
    scene.enqueue("g3", group="g", key="k")
    scene.spawn(lambda: scene.queue.dequeue(held, a), name="A")
    scene.serve(b)


class SubscribesWhenWoken(Inbox):
    """A client that, woken first, subscribes another consumer before `notify_work` returns."""

    def __init__(self, scene: PullScene, name: str) -> None:
        super().__init__(scene.world, name)
        self.more = [partial(scene.subscribe, f"{name}-more", keys=frozenset({"x"}))]

    def notify_work(self, consumer: reference.Consumer) -> None:
        """Wake the client's thread, and subscribe."""
        super().notify_work(consumer)
        while self.more:
            self.more.pop()()


@scenario("ES-5 WK-1 QL-1", traces=4)
def subscribes_inside(scene: PullScene) -> None:
    """A consumer is woken by a close, a release, a pause or housekeeping; the client subscribes another there and then.

    Bounds: One message, which the other does not select; four calls that make it available or hand it on.
    """
    a = scene.taker("A")
    scene.enqueue("m1", not_before=1)
    queue = scene.queue

    def housekeeping() -> None:
        scene.pass_time(1)
        queue.check_message_status()

    which = scene.world.choose(4)
    if which:
        housekeeping()
    held = scene.take(a) if which in (1, 2) else None
    woken = scene.subscribe("C") if which == 3 else a
    b = queue.subscribe("B", SubscribesWhenWoken(scene, "B"))
    calls: tuple[Callable[[], object], ...] = (
        housekeeping,
        lambda: queue.close(a),
        lambda: held is not None and queue.release(held, a),
        lambda: queue.set_notify_work_desired(woken, False),
    )
    thread = scene.spawn(calls[which], name="A")
    scene.serve(b, first=thread.join)


@scenario("ES-5 WK-1 WK-5 QL-1", traces=1)
def subscribes_when_woken(scene: PullScene) -> None:
    """A consumer is woken as it subscribes, and its client's thread subscribes another before the first call returns.

    Bounds: One message there, which the second does not select, so that nobody waits for it.
    """
    client = WaitsWhenWoken(scene.world, "A")
    scene.enqueue("m1")

    def subscribe() -> None:
        scene.drain(scene.queue.subscribe("A", client))

    def subscribe_another() -> None:
        client.wake.acquire()
        scene.subscribe("B", keys=frozenset({"x"}))
        client.done.release()

    scene.spawn(subscribe, name="A")
    scene.spawn(subscribe_another, name="client")


class GrantsWhenSent(Inbox):
    """A client that, sent its first message, grants its consumer another before `send` returns."""

    def send(self, consumer: reference.Consumer, entry: reference.QueueEntry) -> None:
        """Keep the entry, and grant."""
        super().send(consumer, entry)
        if len(self.sent) == 1:
            consumer.queue.grant(consumer, 1)


@scenario("ES-5 ES-6 WK-9 QL-1", traces=1)
def grants_when_sent(scene: PullScene) -> None:
    """A client grants credit while it is sent the message for which the last was paid: it is given the next, too.

    Bounds: One consumer with credit for one message, two messages there, one grant.
    """
    scene.enqueue("m1", "m2")
    client = GrantsWhenSent(scene.world, "A")
    scene.serve(scene.queue.subscribe("A", client, credit=1))


@scenario("ES-1 ES-5 ES-6 SP-1 WK-1 WK-5 WK-8 QL-1 QL-2", traces=1364)
def enqueue_consume(scene: PullScene) -> None:
    """A message arrives while its consumer is about to take another, and then to rest.

    Bounds: One consumer, one message there and one arriving. A second consumer is in `pause-and-take`.
    """
    c = scene.subscribe("A", credit=0)
    scene.enqueue("m1")
    scene.serve(c, grant=3)
    scene.publish("m2")


@scenario("SO-2 ES-4 ES-5 SP-2 WK-1 WK-5 QL-1", traces=17)
def release_rest(scene: PullScene) -> None:
    """A message is released while another consumer finds nothing and is about to wait.

    Bounds: Two consumers, one message, one release. The same entry twice is in `release-again-rest`; credit in
    `release-short-of-credit`.
    """
    a = scene.taker("A")
    scene.enqueue("m1")
    held = scene.take(a)
    b = scene.subscribe("B")
    scene.serve(b, pull_first=True)
    scene.spawn(lambda: scene.queue.release(held, a), name="A")


@scenario("SO-2 ES-4 ES-5 SP-2 WK-1 WK-5 QL-1", traces=25)
def release_passed(scene: PullScene) -> None:
    """A message is released that a consumer, who waits, went past and whose successor it took.

    Bounds: Two consumers, two messages, one release; the other consumer waits before, so its pointer is beyond both.
    Who wakes it before the pointer is back lets it find nothing. One that is about to wait is in `release-rest`.
    """
    a = scene.taker("A")
    scene.enqueue("m1")
    held = scene.take(a)
    b = scene.subscribe("B")
    scene.enqueue("m2")
    scene.drain(b)
    scene.serve(b)
    scene.spawn(lambda: scene.queue.release(held, a), name="A")


@scenario("ES-2 ES-5 SP-2 WK-1 WK-5", traces=229)
def release_again_rest(scene: PullScene) -> None:
    """One entry is released, taken and released again while another consumer, who went past it, comes back and rests.

    Bounds: Two consumers, one message, two releases. Nobody else wants it, and its holder gives it back at once.
    """
    a = scene.taker("A")
    scene.enqueue("m1")
    held = scene.take(a)
    b = scene.subscribe("B")
    scene.serve(b)
    scene.spawn(lambda: give_back_twice(scene, a, held), name="A")


@scenario("ES-5 ES-6 SP-2 WK-1 WK-5 WK-9 QL-1", traces=2212)
def release_short_of_credit(scene: PullScene) -> None:
    """A message is released while another consumer, which was short of credit, gets some.

    Bounds: Two consumers, one message, one release, one grant. Credit that is taken away meanwhile is not here;
    `handover-suspend` has that.
    """
    a = scene.taker("A")
    scene.enqueue("m1")
    held = scene.take(a)
    b = scene.subscribe("B", credit=0)
    scene.serve(b, grant=2)
    scene.spawn(lambda: scene.queue.release(held, a), name="A")


@scenario("WK-1 WK-5", traces=25, levels=2)
def priority_wakes(scene: PullScene) -> None:
    """A message of high priority arrives for a consumer that waits beyond its place.

    Bounds: Two levels, one message that was taken, one arriving, one consumer. One that is still on its way is in
    `priority-arrival`.
    """
    a = scene.subscribe("A")
    scene.enqueue("low", priority=0)
    scene.drain(a)
    scene.serve(a)
    scene.publish("high", priority=9)


@scenario("WK-1 QL-1", traces=121)
def woken_past_the_unable(scene: PullScene) -> None:
    """A message of a group arrives for three consumers that wait; its owner is the last of them.

    Bounds: Three consumers, of which the first does not select it and the second may not have it; one message. None of
    them comes or goes.
    """
    owner = scene.subscribe("C")
    scene.enqueue("g1", group="g")
    scene.drain(owner)
    scene.serve(scene.subscribe("A", keys=frozenset({"other"})))
    scene.serve(scene.subscribe("B"))
    scene.queue.set_notify_work_desired(owner, False)
    scene.queue.set_notify_work_desired(owner, True)
    scene.serve(owner)
    scene.publish("g2", group="g")


@scenario("ES-6 WK-4 WK-9", traces=1)
def credit_kept(scene: PullScene) -> None:
    """A consumer with credit for one message pulls, and a consumer of higher priority is to have the message.

    Bounds: Sequential; two priorities, one message. The lower one pays nothing; then the higher one takes it.
    """
    high, low = scene.subscribe("high", priority=1), scene.subscribe("low", credit=1)
    scene.enqueue("m1")

    def pull() -> None:
        scene.queue.deliver_single_message(low)
        scene.queue.deliver_single_message(high)
        scene.enqueue("m2")
        scene.queue.close(high)
        scene.drain(low)

    scene.spawn(pull, name="low")


@scenario("ES-6 WK-9 QL-1 AP-1", traces=1)
def grant_refused(scene: PullScene) -> None:
    """A grant of less than one message is refused, and the credit stays as it was.

    Bounds: Sequential; one consumer with credit for two messages, one of which is there.
    """
    a = scene.subscribe("A", credit=2)

    def grant() -> None:
        with scene.refused(scene.lib.QueueMisuse):
            scene.queue.grant(a, -2)
        scene.enqueue("m1")
        scene.drain(a)

    scene.spawn(grant, name="A")


@scenario("ES-5 ES-6 WK-9", traces=89)
def credit_in_vain(scene: PullScene) -> None:
    """A consumer pays for a message that another one takes, while it is granted more.

    Bounds: Two consumers, one message, one attempt each, credit for one and one more.
    """
    a, b = scene.taker("A", credit=1), scene.taker("B")
    scene.enqueue("m1")
    scene.spawn(lambda: scene.attempt(a), name="A")
    scene.spawn(lambda: scene.attempt(b), name="B")
    scene.spawn(lambda: scene.queue.grant(a, 1), name="grant")


@scenario("QL-1 QL-2", traces=16)
def interested_at_once(scene: PullScene) -> None:
    """Two consumers of different priorities are granted credit at the same time; nobody of theirs was there before.

    Bounds: Two consumers, one grant each, no messages.
    """
    for n, name in enumerate(("A", "B")):
        c = scene.subscribe(name, priority=n, credit=0)
        scene.spawn(partial(scene.queue.grant, c, 1), name=name)


@scenario("WK-1 WK-8 QL-1", traces=1)
def grant_while_busy(scene: PullScene) -> None:
    """A consumer that is taking messages is granted more.

    Bounds: One consumer, two messages, one grant between two pulls; nobody else.
    """
    a = scene.subscribe("A")
    scene.enqueue("m1", "m2")

    def take_and_grant() -> None:
        scene.queue.deliver_single_message(a)
        scene.queue.grant(a, 1)
        scene.drain(a)

    scene.spawn(take_and_grant, name="A")


@scenario("ES-5 ES-6 WK-9 QL-1", traces=13)
def credit_spent(scene: PullScene) -> None:
    """A consumer with credit for one message takes it while another message arrives.

    Bounds: One consumer, one message there and one arriving, credit for one. Credit that comes later is in
    `release-short-of-credit`; a second consumer is in `consumer-priorities`.
    """
    a = scene.subscribe("A", credit=1)
    scene.enqueue("m1")
    scene.serve(a)
    scene.publish("m2")


@scenario("ES-5 WK-1 WK-5 WK-9 QL-1 QL-2 QL-3 QL-4", traces=338)
def interest(scene: PullScene) -> None:
    """A consumer loses its interest and finds it again while a message arrives.

    Bounds: One consumer, one message, one pause. There is no other consumer to notify; that is `pause-and-take`.
    """
    c = scene.subscribe("A")

    def pause() -> None:
        scene.queue.set_notify_work_desired(c, False)
        scene.queue.set_notify_work_desired(c, True)

    scene.serve(c, first=pause)
    scene.publish("m1")


@scenario("WK-2 WK-3 WK-7 QL-1 QL-2 QL-4", traces=55, real_time=True)
def pause(scene: PullScene) -> None:
    """A message arrives for two consumers, one of which pauses.

    Bounds: Two consumers that take nothing, one message, one pause that does not end. Who ought to be woken is
    seen, not whether he takes: that is `pause-and-take`.
    """
    a = scene.subscribe("A")
    scene.subscribe("B")
    scene.spawn(lambda: scene.queue.set_notify_work_desired(a, False), name="A")
    scene.publish("m1")


@scenario("ES-5 WK-1 WK-3 WK-5 WK-7", traces=1369)
def pause_and_take(scene: PullScene) -> None:
    """A message arrives for two consumers; one pauses, so the other must take it.

    Bounds: Two consumers, one message, one pause that does not end. A third consumer to pass it on to, and a pause
    that ends, are not here.
    """
    a = scene.subscribe("A")
    b = scene.subscribe("B")
    scene.serve(b)
    scene.spawn(lambda: scene.queue.set_notify_work_desired(a, False), name="A")
    scene.publish("m1")


@scenario("SO-2 ES-4 ES-5 SP-2 WK-1 WK-5 QL-1 QL-2", traces=28)
def close(scene: PullScene) -> None:
    """A consumer that holds a message closes while another finds nothing and is about to rest.

    Bounds: Two consumers, one message held, one close. It closes on its own thread, after its last pull; the
    reference asks for that.
    """
    a = scene.subscribe("A", credit=1)
    scene.enqueue("m1")
    scene.queue.deliver_single_message(a)
    b = scene.subscribe("B")
    scene.serve(b, pull_first=True)
    scene.spawn(lambda: scene.queue.close(a), name="A")


@scenario("ES-5 ES-7 WK-1 WK-5 QL-1", traces=1)
def close_then_grant(scene: PullScene) -> None:
    """A closed consumer is granted credit, which is too late, and a message arrives while another consumer waits.

    Bounds: Two consumers, the closed one of higher priority, one message; close, grant, pull and publication on
    one thread. Calls of other threads that meet a close are in `close-and-pause` and `close-twice`.
    """
    a, b = scene.subscribe("A", priority=1, credit=0), scene.subscribe("B")
    scene.serve(b)

    def too_late() -> None:
        scene.queue.close(a)
        scene.queue.grant(a, 1)
        scene.queue.deliver_single_message(a)
        scene.enqueue("m1")

    scene.spawn(too_late, name="A")


@scenario("QL-1 QL-2", traces=6)
def close_and_pause(scene: PullScene) -> None:
    """A consumer closes, twice, while another thread suspends it.

    Bounds: One consumer, two closes on one thread, one suspension, no messages.
    """
    a = scene.subscribe("A")

    def close() -> None:
        scene.queue.close(a)
        scene.queue.close(a)

    scene.spawn(close, name="A")
    scene.spawn(lambda: scene.queue.set_notify_work_desired(a, False), name="suspend")


@scenario("ES-4 ES-5 QL-1 QL-2", traces=6)
def close_twice(scene: PullScene) -> None:
    """A consumer that holds a message is closed by two threads.

    Bounds: One consumer, one message, two closes. The reference asks for one thread; of two it must be one that closes.
    """
    a = scene.subscribe("A", credit=1)
    scene.enqueue("m1")
    scene.queue.deliver_single_message(a)
    for name in ("A", "also"):
        scene.spawn(lambda: scene.queue.close(a), name=name)


@scenario("WK-1 WK-5 WK-9 QL-1", traces=316)
def pause_and_resume(scene: PullScene) -> None:
    """A consumer resumes while another thread suspends it and then publishes a message.

    Bounds: One consumer, one message, one of each. Whether it takes the message depends on which of the two is last.
    """
    a = scene.subscribe("A")
    scene.serve(a, first=lambda: scene.queue.set_notify_work_desired(a, True))

    def suspend() -> None:
        scene.queue.set_notify_work_desired(a, False)
        scene.enqueue("m1")

    scene.spawn(suspend, name="suspend")


@scenario("ES-5 WK-1 WK-5 WK-9 QL-1", traces=1)
def resume_without_credit(scene: PullScene) -> None:
    """A consumer of high priority resumes without credit, and then a message arrives that a lower one would take.

    Bounds: Two priorities, one message, published on the thread that resumes. The higher one is granted nothing.
    """
    high, low = scene.subscribe("high", priority=1, credit=0), scene.subscribe("low")
    scene.serve(low)

    def resume() -> None:
        scene.queue.set_notify_work_desired(high, True)
        scene.enqueue("m1")

    scene.spawn(resume, name="high")


def subscribe_or_not(scene: PullScene | PushScene, name: str) -> None:
    """Subscribe a consumer; it may be refused."""
    with suppress(scene.lib.QueueMisuse):
        scene.subscribe(name)


@scenario("QL-1 QL-2", traces=2)
def same_name(scene: PullScene) -> None:
    """Two consumers of one name subscribe at the same time; one is refused.

    Bounds: No other consumer, no messages, and nobody closes.
    """
    for thread in ("A1", "A2"):
        scene.spawn(lambda: subscribe_or_not(scene, "A"), name=thread)


@scenario("ES-5 WK-1 WK-5 QL-1", traces=127)
def subscribe(scene: PullScene) -> None:
    """A consumer registers while a message arrives.

    Bounds: One new consumer, one arrival. Nobody else is registered, and nobody closes meanwhile.
    """

    def newcomer() -> None:
        scene.pull_when_woken(scene.subscribe("B"))

    scene.spawn(newcomer, name="B", daemon=True)
    scene.publish("m1")


@scenario("SO-2 ES-4 ES-5 SP-2 QL-1", traces=77)
def subscribe_release(scene: PullScene) -> None:
    """A consumer registers and goes past two messages that another holds, while that one releases the first.

    Bounds: One new consumer, which takes nothing, two messages, one release. A message that arrives, and a newcomer
    that takes it, are in `subscribe`.
    """
    a = scene.taker("A")
    scene.enqueue("m1", "m2")
    first, _ = scene.take(a), scene.take(a)
    scene.spawn(lambda: scene.subscribe("B"), name="B")
    scene.spawn(lambda: scene.queue.release(first, a), name="A")


@scenario("ES-5 WK-1 WK-3 WK-5 QL-1", traces=1)
def first_without_credit(scene: PullScene) -> None:
    """A message arrives for two consumers, of which the first to register has no credit.

    Bounds: Two consumers that pull when they are woken, one message. Credit that comes later is in
    `release-short-of-credit`.
    """
    scene.serve(scene.subscribe("A", credit=0))
    scene.serve(scene.subscribe("B"))
    scene.publish("m1")


@scenario("ES-6 WK-1 WK-3 WK-4 WK-7 WK-9 QL-1", traces=22462)
def consumer_priorities(scene: PullScene) -> None:
    """The consumer of high priority runs out of credit while a message arrives that both want.

    Bounds: Two priorities, one message there, one arriving, credit for one, which is all that the higher one takes.
    Three priorities, and a higher one that gets new credit, are not here.
    """
    high = scene.subscribe("high", priority=1, credit=1)
    low = scene.subscribe("low", priority=0)
    scene.enqueue("m1")
    scene.spawn(lambda: scene.queue.deliver_single_message(high), name="high")
    scene.serve(low)
    scene.publish("m2")


@scenario("ES-1 ES-2 ES-4 SP-2 WK-4", traces=151)
def priority_returns(scene: PullScene) -> None:
    """The consumer of high priority takes the message, gives it back and loses interest; a lower one looks.

    Bounds: Two priorities, one message, one attempt of each, one release. Who is woken by the release is for
    `release-rest`.
    """
    high, low = scene.subscribe("high", priority=1), scene.subscribe("low")
    scene.enqueue("m1")

    def take_and_give_back() -> None:
        entry = scene.attempt(high)
        if entry is not None:
            scene.queue.release(entry, high)
        scene.queue.set_notify_work_desired(high, False)

    scene.spawn(take_and_give_back, name="high")
    scene.spawn(lambda: scene.attempt(low), name="low")


@scenario("WK-2 QL-1 QL-5", traces=578, real_time=True)
def take_turns(scene: PullScene) -> None:
    """Two publishers, and two equal consumers that wait to be woken.

    Bounds: Two arrivals; the consumers take nothing. How places are taken anew after a pull, and a third consumer,
    are not here.
    """
    scene.subscribe("A")
    scene.subscribe("B")
    for name in ("P1", "P2"):
        scene.publish(name, by=name)


@scenario("WK-2 QL-1 QL-5", traces=1)
def turn_lost(scene: PullScene) -> None:
    """A consumer that was woken takes its message and runs dry; the next is for the other one, who has waited longer.

    Bounds: Sequential; two equal consumers, two messages.
    """
    a = scene.subscribe("A")
    scene.subscribe("B")
    scene.enqueue("m1")

    def life() -> None:
        scene.drain(a)
        scene.enqueue("m2")

    scene.spawn(life, name="A")


@scenario("SO-4 WK-1 WK-2", traces=10)
def browser_woken(scene: PullScene) -> None:
    """A message arrives for a consumer and for a browser that is about to rest.

    Bounds: One consumer that takes nothing, one browser, one message. The other consumer has no credit, so it is
    not woken; who wakes whom first is not looked at.
    """
    browser = scene.subscribe("browser", acquires=False)
    scene.subscribe("A", credit=0)
    scene.serve(browser, pull_first=True)
    scene.publish("m1")


@scenario("SO-4 WK-1", traces=43)
def browser_selects(scene: PullScene) -> None:
    """Messages arrive for a browser that looks for one of them only.

    Bounds: One browser with a selector, about to rest; two messages, the second of which it wants. What it wants
    arrives last; a browser beside consumers is in `browser-woken`.
    """
    browser = scene.subscribe("browser", acquires=False, keys=frozenset({"b"}))
    scene.serve(browser, pull_first=True)

    def publish() -> None:
        scene.enqueue("m1", key="a")
        scene.enqueue("m2", key="b")

    scene.spawn(publish, name="P")


@scenario("WK-1 WK-3 WK-4 WK-5 WK-7 QL-1", traces=735)
def priority_pause(scene: PullScene) -> None:
    """The consumer of high priority loses interest while a message arrives that a lower one would take.

    Bounds: Two priorities, one message, one pause that does not end. The higher one does not come back; equals of
    the lower one are not here.
    """
    high = scene.subscribe("high", priority=1)
    low = scene.subscribe("low", priority=0)
    scene.serve(low)
    scene.spawn(lambda: scene.queue.set_notify_work_desired(high, False), name="high")
    scene.publish("m1")


def drain_if_woken(scene: PullScene, consumer: reference.Consumer) -> None:
    """Take what there is for the consumer, if it was woken."""
    inbox = consumer.target
    assert isinstance(inbox, Inbox)
    if inbox.wake.try_acquire():
        scene.drain(consumer)


def drain_behind(
    scene: PullScene, threads: Iterable[Handle], consumers: Sequence[reference.Consumer]
) -> None:
    """Spawn the consumers' client: behind the threads, each that was woken takes what there is, in this order."""

    def client() -> None:
        for thread in threads:
            thread.join()
        for consumer in consumers:
            drain_if_woken(scene, consumer)

    scene.spawn(client, name="clients")


@scenario("WK-1", traces=251)
def discarded_while_offered(scene: PullScene) -> None:
    """A message is discarded before its publisher has woken anybody, and meanwhile a consumer of low priority, who
    left it to one of high priority, was not woken for the next.

    Bounds: Two priorities, of which the higher one does not want the second message; one message that expires, one
    that comes meanwhile, one pass of housekeeping behind it. Who was woken looks when all that is over.
    """
    consumers = (
        scene.subscribe("high", priority=1, keys=frozenset({"a"})),
        scene.subscribe("low"),
    )

    def meanwhile() -> None:
        scene.enqueue("m2", key="b")
        scene.pass_time(6)
        scene.queue.check_message_status()

    threads = (
        scene.spawn(lambda: scene.enqueue("m1", key="a", expires=5), name="P"),
        scene.spawn(meanwhile, name="Q"),
    )

    drain_behind(scene, threads, consumers)


@scenario("WK-1 WK-11", traces=4)
def resumes_below_another(scene: PullScene) -> None:
    """A consumer resumes while a message arrives that it leaves to one of higher priority, which rests.

    Bounds: Two priorities, one message. Who is woken looks when all is over.
    """
    consumers = (scene.subscribe("high", priority=1), scene.subscribe("low"))
    scene.queue.set_notify_work_desired(consumers[1], False)
    threads = (
        scene.spawn(lambda: scene.enqueue("m1"), name="P"),
        scene.spawn(lambda: scene.queue.set_notify_work_desired(consumers[1], True), name="low"),
    )
    drain_behind(scene, threads, consumers)


@scenario("WK-1 WK-11", traces=110)
def looks_and_is_woken_by_itself(scene: PullScene) -> None:
    """A consumer finds nothing, and a message arrives before it passes on, which one of low priority leaves to it.

    Bounds: Two priorities, one message. Who is woken looks when all is over.
    """
    consumers = (scene.subscribe("high", priority=1), scene.subscribe("low"))
    threads = (
        scene.spawn(lambda: scene.enqueue("m1"), name="P"),
        scene.spawn(lambda: scene.drain(consumers[0]), name="high"),
    )
    drain_behind(scene, threads, consumers)


@scenario("WK-1", traces=340)
def left_and_expired(scene: PullScene) -> None:
    """A consumer of high priority resumes, one of low priority leaves a message to it, and that message expires before
    the high one looks.

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
    drain_behind(scene, threads, (high, low, high))


@scenario("WK-1", traces=1058)
def left_to_a_newcomer(scene: PullScene) -> None:
    """A message is left to a consumer of high priority that subscribes at this moment, and expires before it looks.

    Bounds: Two priorities; the higher one does not want the second message. Who is woken looks when all is over.
    """
    low = scene.subscribe("low")
    scene.enqueue("m1", key="a", expires=5)
    scene.enqueue("m2", key="b")
    consumers = [low]

    def newcomer() -> None:
        high = scene.subscribe("high", priority=1, keys=frozenset({"a"}))
        consumers.extend((high, low))

    threads = (
        scene.spawn(lambda: drain_if_woken(scene, low), name="low"),
        scene.spawn(newcomer, name="high"),
        scene.spawn(lambda: scene.pass_time(6), name="clock"),
    )
    drain_behind(scene, threads, consumers)


@scenario("WK-1", traces=314)
def left_by_a_publisher(scene: PullScene) -> None:
    """A consumer of high priority resumes, and a publisher that looks for somebody leaves a message to it on behalf of
    one of low priority; that message expires before the high one looks.

    Bounds: Two priorities; the higher one does not want the second message. Who is woken looks when all is over.
    """
    high = scene.subscribe("high", priority=1, keys=frozenset({"a"}))
    scene.queue.set_notify_work_desired(high, False)
    low = scene.subscribe("low")

    def publisher() -> None:
        scene.enqueue("m1", key="a", expires=5)
        scene.enqueue("m2", key="b")

    threads = (
        scene.spawn(publisher, name="P"),
        scene.spawn(lambda: scene.queue.set_notify_work_desired(high, True), name="high"),
        scene.spawn(lambda: scene.pass_time(6), name="clock"),
    )
    drain_behind(scene, threads, (high, low, high))


@scenario("QL-2 QL-3 QL-4", traces=34)
def consumer_list(scene: PullScene) -> None:
    """One thread appends to a list while two others walk it and delete what they find.

    Bounds: One node there, one appended; each is deleted once. Two appends at once are in `enqueue-enqueue`: the
    list is the same but for its size.
    """
    c = scene.taker("A")
    members = scene.lib.ConsumerList(scene.host, "list")
    there, arriving = (scene.lib.ListEntry(scene.host, "list", c) for _ in range(2))
    members.add(there)

    def delete_first() -> None:
        members.delete(there)
        look()

    def delete_second() -> None:
        for entry in members:
            if entry is arriving:
                members.delete(entry)

    def look() -> None:
        for _ in members.consumers():
            pass

    scene.spawn(lambda: members.add(arriving), name="append")
    scene.spawn(delete_first, name="first")
    scene.spawn(delete_second, name="second")
    scene.world.at_end(look)


@scenario("QL-2 QL-3 QL-4", traces=8)
def consumer_list_middle(scene: PullScene) -> None:
    """A node in the middle of a list is deleted while another is appended and a third thread walks.

    Bounds: Three nodes there, one appended, one deleted. One deletion: neighbours that are deleted at once are not
    here.
    """
    c = scene.taker("A")
    members = scene.lib.ConsumerList(scene.host, "list")
    first, middle, last, arriving = (scene.lib.ListEntry(scene.host, "list", c) for _ in range(4))
    for entry in (first, middle, last):
        members.add(entry)

    def look() -> None:
        for _ in members.consumers():
            pass

    scene.spawn(lambda: members.add(arriving), name="append")
    scene.spawn(lambda: members.delete(middle), name="delete")
    scene.spawn(look, name="walk")
    scene.world.at_end(look)


# ---- who is woken, and for what


@scenario("WK-1 WK-2 WK-11", traces=1)
def woken_one_of_several(scene: PullScene) -> None:
    """A consumer that was woken pauses: one of those that could take the message instead is woken, and no more.

    Bounds: Sequential; four consumers, the second of which wants other messages, one message, one pause.
    """
    a = scene.subscribe("A")
    scene.subscribe("B", keys=frozenset({"other"}))
    for name in ("C", "D"):
        scene.serve(scene.subscribe(name))

    def pause() -> None:
        scene.enqueue("m1")
        scene.queue.set_notify_work_desired(a, False)

    scene.spawn(pause, name="A")


@scenario("WK-2 WK-11", traces=1)
def browsers_and_arrivals(scene: PullScene) -> None:
    """Messages arrive for two browsers, one of which does not want all of them, and none of them yet.

    Bounds: Sequential; two browsers that look at nothing, three messages: both want the first, one the second, and
    the third is held.
    """
    scene.clock_starts()
    scene.subscribe("X", acquires=False, keys=frozenset({"b"}))
    scene.subscribe("Y", acquires=False)

    def publish() -> None:
        scene.enqueue("m1", key="b")
        scene.enqueue("m2", key="a")
        scene.enqueue("m3", key="b", not_before=5)

    scene.spawn(publish, name="P")


@scenario("WK-11", traces=16)
def arrivals_of_two_kinds(scene: PullScene) -> None:
    """Two messages arrive at the same time for a consumer that wants one of them: that one wakes it.

    Bounds: Two publishers, one consumer that takes nothing.
    """
    scene.subscribe("A", keys=frozenset({"b"}))
    for key in ("a", "b"):
        scene.publish(f"m-{key}", by=f"P{key}", key=key)


@scenario("WK-11 MG-2", traces=4)
def freed_beside_arrival(scene: PullScene) -> None:
    """A group is set free while a message that is of none arrives: who waits is woken for that by its arrival alone.

    Bounds: One message of the group, which is dequeued, one arriving, one consumer that takes nothing.
    """
    a = scene.taker("A")
    scene.enqueue("g1", group="g")
    held = scene.take(a)
    scene.subscribe("B")
    scene.spawn(lambda: scene.queue.dequeue(held, a), name="A")
    scene.publish("m1")


@scenario("WK-11 MG-2", traces=1)
def freed_by_release(scene: PullScene) -> None:
    """The owner of a group gives its only message back: of the two who wait, the owner among them, one is woken.

    Bounds: Sequential; one message of the group, two consumers that wait.
    """
    a = scene.subscribe("A")
    scene.subscribe("B")
    entry = scene.enqueue("g1", group="g")

    def life() -> None:
        scene.drain(a)
        scene.queue.release(entry, a)

    scene.spawn(life, name="A")


@scenario("WK-11 SO-4", traces=12)
def browser_wakes_nobody(scene: PullScene) -> None:
    """A browser that finds nothing, and pauses, wakes nobody while a message arrives that another consumer waits for.

    Bounds: One browser, which pulls once and pauses, one consumer that takes nothing, one message.
    """
    browser = scene.subscribe("browser", acquires=False)
    scene.subscribe("A")

    def look() -> None:
        scene.queue.deliver_single_message(browser)
        scene.queue.set_notify_work_desired(browser, False)

    scene.spawn(look, name="browser")
    scene.publish("m1")


@scenario("SO-4 MG-2 ES-5 WK-1 QL-1", traces=1)
def browse_group(scene: PullScene) -> None:
    """A browser is shown a message of a group and leaves, and a consumer takes it: to look at a message owns no group.

    Bounds: Sequential; one browser, one consumer, one message.
    """
    browser, a = scene.subscribe("browser", acquires=False), scene.subscribe("A")
    scene.enqueue("g1", group="g")

    def look_and_take() -> None:
        scene.drain(browser)
        scene.queue.close(browser)
        scene.drain(a)

    scene.spawn(look_and_take, name="A")


@scenario("QL-1 AP-1", traces=1, thread="C")
def third_refused(scene: PullScene) -> None:
    """Two consumers are there; a third is refused that has the name of the second, is exclusive, or begins in debt.

    Bounds: Sequential; no messages.
    """

    scene.subscribe("A")
    scene.subscribe("B")
    with scene.refused(scene.lib.QueueMisuse):
        scene.subscribe("B")
    with scene.refused(scene.lib.QueueMisuse):
        scene.subscribe("C", exclusive=True)
    with scene.refused(scene.lib.QueueMisuse):
        scene.subscribe("C", credit=-1)


@scenario("ES-5 WK-9", traces=1)
def pull_while_suspended(scene: PullScene) -> None:
    """A consumer that was woken is suspended and pulls: it is given nothing, and what is there stays.

    Bounds: Sequential; one consumer, one message.
    """
    a = scene.subscribe("A")

    def pull() -> None:
        scene.enqueue("m1")
        scene.queue.set_notify_work_desired(a, False)
        scene.drain(a)

    scene.spawn(pull, name="A")


@scenario("ES-5 SO-2 QL-6", traces=3)
def exclusive_handed_back(scene: PullScene) -> None:
    """An exclusive consumer closes with two messages; who is admitted behind it finds the first of them.

    Bounds: One exclusive consumer that holds two of three messages, one other, which asks once and pulls once.
    """
    a = scene.subscribe("A", exclusive=True, credit=2)
    scene.enqueue("m1", "m2", "m3")
    scene.drain(a)

    def other() -> None:
        with suppress(scene.lib.QueueMisuse):
            scene.queue.deliver_single_message(scene.subscribe("B", credit=1))

    scene.spawn(lambda: scene.queue.close(a), name="A")
    scene.spawn(other, name="B")
