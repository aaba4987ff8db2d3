"""Closed programs over the reference queue: each is a meeting of a few operations that could go wrong.

Consumers that rest at the end, waiting to be woken, are what a queue looks like when all is well;
the state in which everything rests is recorded and judged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType

import seriatim.queue as reference
from seriatim_models.explorer import World
from seriatim_models.programs.base import Build, Program
from seriatim_models.programs.scene import Scene, done, drain, got

QUEUE_PROGRAMS: dict[str, Program] = {}


def program(
    id: str, title: str, properties: str, beyond: str, *, real_time: bool = False
) -> Callable[[Build], Build]:
    """Register the decorated builder as a program that tests the named properties."""

    def register(build: Build) -> Build:
        QUEUE_PROGRAMS[id] = Program(
            id, title, "queue", tuple(properties.split()), build, beyond, real_time
        )
        return build

    return register


# ---- order and state


@program(
    "enqueue-enqueue",
    "Two publishers enqueue at the same time.",
    "SO-1 ES-1 ES-5",
    "Two publishers, two messages each. A third adds only orders of the same two kinds of step.",
    real_time=True,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    for name in ("P1", "P2"):

        def publish(name: str = name) -> None:
            q.enqueue(s.message(f"{name}.1"))
            q.enqueue(s.message(f"{name}.2"))

        s.spawn(publish, name=name)


@program(
    "two-takers",
    "Two consumers are after the same two messages and are done with what they get.",
    "SO-3 ES-1 ES-2 ES-3 ES-4 ES-5 ES-6 SP-1 SP-3 QL-2 QL-3 QL-4",
    "Two consumers, two messages, no arrivals. More of either repeat the same race.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    q.enqueue(s.message("m1"))
    q.enqueue(s.message("m2"))
    for name in ("A", "B"):
        c, _ = s.subscribe(q, name, credit=2)
        s.spawn(partial(drain, q, c, done(q, c)), name=name)


@program(
    "enqueue-consume",
    "A message arrives while its consumer is about to rest.",
    "SO-1 ES-1 ES-3 ES-5 SP-1 WK-1 WK-5 QL-1 QL-2",
    "One consumer, one message there and one arriving.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    c, inbox = s.subscribe(q, "A", credit=0)
    q.enqueue(s.message("m1"))
    s.serve(c, inbox, done(q, c), grant=2)
    s.spawn(lambda: q.enqueue(s.message("m2")), name="P")


@program(
    "release-behind",
    "A holder gives back the first message while another consumer is on its way past it.",
    "SO-2 SO-3 ES-1 ES-2 ES-4 ES-5 SP-1 SP-2 SP-3 WK-1 WK-5 QL-1",
    "Two messages, two consumers, one release.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    a, _ = s.subscribe(q, "A", credit=1)
    q.enqueue(s.message("m1"))
    q.enqueue(s.message("m2"))
    held = got(q.deliver_single_message(a))
    b, inbox = s.subscribe(q, "B", credit=0)
    s.serve(b, inbox, grant=2)
    s.spawn(lambda: q.release(held, a), name="A")


@program(
    "release-again",
    "One entry is released, taken and released again while another consumer, who has seen it, looks at it.",
    "SO-2 ES-1 ES-2 ES-4 ES-5 SP-2 WK-1 WK-5",
    "Two consumers, one message, two releases.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    a, _ = s.subscribe(q, "A", credit=1)
    q.enqueue(s.message("m1"))
    held = got(q.deliver_single_message(a))
    b, inbox = s.subscribe(q, "B")
    s.serve(b, inbox)
    s.spawn(lambda: give_back_twice(q, a, held), name="A")


@program(
    "release-short-of-credit",
    "One entry is released, taken and released again while another consumer is short of credit.",
    "SO-2 ES-1 ES-2 ES-4 ES-5 ES-6 SP-2 WK-1 WK-5",
    "Two consumers, one message, two releases, one grant of credit.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    a, _ = s.subscribe(q, "A", credit=1)
    b, inbox = s.subscribe(q, "B", credit=1)
    q.enqueue(s.message("m1"))
    q.enqueue(s.message("m2"))
    held = got(q.deliver_single_message(a))
    q.deliver_single_message(b)
    s.serve(b, inbox, grant=1)
    s.spawn(lambda: give_back_twice(q, a, held), name="A")


def give_back_twice(
    q: reference.PullQueue, consumer: reference.Consumer, held: reference.QueueEntry
) -> None:
    """Release an entry, take it again if nobody else has, and release it again."""
    q.release(held, consumer)
    q.grant(consumer, 1)
    again = q.deliver_single_message(consumer)
    q.set_notify_work_desired(consumer, False)
    if again is not None:
        q.release(again, consumer)


@program(
    "release-not-mine",
    "A consumer gives back, and declares done, what another one holds.",
    "ES-4 ES-2 ES-5",
    "One message, two consumers, sequential but for the holder's own release.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    a, _ = s.subscribe(q, "A", credit=1)
    b, _ = s.subscribe(q, "B", credit=0)
    q.enqueue(s.message("m1"))
    held = got(q.deliver_single_message(a))

    def stranger() -> None:
        q.release(held, b)
        q.dequeue(held, b)

    s.spawn(stranger, name="B")
    s.spawn(lambda: q.release(held, a), name="A")


# ---- priorities of messages


@program(
    "priority-arrival",
    "A message of high priority arrives while the pointer of a consumer goes on past the end of the high sub-queue.",
    "SO-1 SO-3 SO-5 ES-5 SP-1 SP-2 SP-3 WK-1",
    "Two levels, one message there on each, one arriving on the higher.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull(levels=2)
    a, _ = s.subscribe(q, "A", credit=1)
    q.enqueue(s.message("high1", priority=9))
    q.enqueue(s.message("low1", priority=0))
    q.deliver_single_message(a)
    b, inbox = s.subscribe(q, "B", credit=0)
    s.serve(b, inbox, grant=1)
    s.spawn(lambda: q.enqueue(s.message("high2", priority=9)), name="P")


@program(
    "priority-levels",
    "One publisher, ten priorities, three levels: who stands where, and who is taken first.",
    "SO-1 SO-3 SO-5",
    "Sequential but for the consumer; every priority once.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull(levels=3)
    for p in range(10):
        q.enqueue(s.message(f"p{p}", priority=p))
    a, _ = s.subscribe(q, "A")
    s.spawn(lambda: drain(q, a, done(q, a)), name="A")


@program(
    "browse",
    "A browser looks on while a higher message arrives.",
    "SO-4 SO-5 SP-1 SP-3 WK-1 WK-2",
    "One browser, two messages there, one arrival before them.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull(levels=2)
    q.enqueue(s.message("low1", priority=0))
    q.enqueue(s.message("low2", priority=0))
    browser, inbox = s.subscribe(q, "browser", acquires=False, credit=0)
    s.serve(browser, inbox, grant=4)
    s.spawn(lambda: q.enqueue(s.message("high", priority=9)), name="P")


# ---- wake-ups


@program(
    "interest",
    "A consumer loses its interest and finds it again while a message arrives.",
    "SO-1 ES-5 WK-1 WK-3 WK-5 QL-1 QL-2 QL-3 QL-4",
    "One consumer, one message, one pause.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    c, inbox = s.subscribe(q, "A")

    def pause() -> None:
        q.set_notify_work_desired(c, False)
        q.set_notify_work_desired(c, True)

    s.serve(c, inbox, first=pause)
    s.spawn(lambda: q.enqueue(s.message("m1")), name="P")


@program(
    "not-interested",
    "A message arrives for two consumers, one of which pauses.",
    "WK-1 WK-2 WK-3 WK-7 QL-1 QL-2 QL-4",
    "Two consumers, one message, one pause that does not end.",
    real_time=True,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    a, inbox_a = s.subscribe(q, "A")
    b, inbox_b = s.subscribe(q, "B")
    s.serve(a, inbox_a, first=lambda: q.set_notify_work_desired(a, False))
    s.serve(b, inbox_b)
    s.spawn(lambda: q.enqueue(s.message("m1")), name="P")


@program(
    "close",
    "A consumer that holds a message closes while another is about to rest.",
    "SO-2 ES-4 ES-5 SP-2 WK-1 WK-5 QL-1 QL-2",
    "Two consumers, one message held, one close.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    a, _ = s.subscribe(q, "A")
    q.enqueue(s.message("m1"))
    q.deliver_single_message(a)
    b, inbox = s.subscribe(q, "B", credit=0)
    s.serve(b, inbox, grant=1)
    s.spawn(lambda: q.close(a), name="A")


@program(
    "consumer-priorities",
    "The consumer of high priority runs out of credit while a message arrives that both want.",
    "ES-6 WK-1 WK-4 WK-7 QL-1",
    "Two priorities, one message there, one arriving, credit for one.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    high, high_inbox = s.subscribe(q, "high", priority=1, credit=1)
    low, low_inbox = s.subscribe(q, "low", priority=0, credit=1)
    q.enqueue(s.message("m1"))
    s.serve(high, high_inbox)
    s.serve(low, low_inbox)
    s.spawn(lambda: q.enqueue(s.message("m2")), name="P")


@program(
    "take-turns",
    "Two equal consumers, and two messages, one after the other.",
    "WK-1 WK-2 QL-5 QL-1",
    "Two consumers, two arrivals from one publisher.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    for name in ("A", "B"):
        c, inbox = s.subscribe(q, name, credit=1)
        s.serve(c, inbox)

    def publish() -> None:
        q.enqueue(s.message("m1"))
        q.enqueue(s.message("m2"))

    s.spawn(publish, name="P")


@program(
    "consumer-list",
    "One thread appends to a list while two others walk it and delete what they find.",
    "QL-2 QL-3 QL-4",
    "One node there, one appended; each is deleted by whoever comes first.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    c, _ = s.subscribe(q, "A", credit=0)
    members = lib.ConsumerList(s.host, "list")
    there, arriving = (lib.ListEntry(s.host, "list", c) for _ in range(2))
    members.add(there)
    mine = s.host.cell(False, "first is deleted")

    def delete_first() -> None:
        for _ in members.walk():
            pass
        if mine.compare_and_set(False, True):
            members.delete(there)

    def delete_second() -> None:
        for entry in members:
            if entry is arriving:
                members.delete(entry)

    def look() -> None:
        for _ in members.walk():
            pass

    s.spawn(lambda: members.add(arriving), name="append")
    s.spawn(delete_first, name="first")
    s.spawn(delete_second, name="second")
    world.at_end(look)


# ---- push: the attempt on enqueue, and the job


@program(
    "immediate",
    "An immediate message, and a delivery job that is running on another thread.",
    "SO-1 ES-1 ES-2 ES-3 ES-5 IM-1 IM-2",
    "One consumer whose credit comes back while the publisher gives up.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q, executor = s.push()
    c, _ = s.subscribe(q, "A", credit=0)
    s.spawn(executor, name="job", daemon=True)
    s.spawn(lambda: q.enqueue(s.message("m1", immediate=True)), name="P")
    s.spawn(lambda: q.grant(c, 1), name="A")


@program(
    "immediate-race",
    "The last act of enqueuing an immediate message, against a delivery by another thread.",
    "ES-1 ES-2 ES-3 ES-5 IM-1 IM-2",
    "Linked already and offered in vain; one delivery attempt by a job. Everything before that is in `immediate`.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q, _ = s.push()
    c, _ = s.subscribe(q, "A", credit=0)
    message = s.message("m1", immediate=True)
    q.depth.add(1)

    def publisher() -> None:
        s.host.record("enqueue", ph="invoke", q=q.name, m=message.id, immediate=True)
        entry = entries[0]
        q.undelivered(entry)
        s.host.record("enqueue", ph="ok", m=message.id, place=list(entry.place()))

    entries = [q.entries.add(message, lib.AVAILABLE)]
    q.grant(c, 1)
    s.spawn(publisher, name="P")
    s.spawn(lambda: q._attempt(c, "job"), name="job")


@program(
    "push",
    "A message that cannot be delivered on enqueue, because credit comes back a moment too late.",
    "SO-1 SO-3 ES-1 ES-2 ES-5 ES-6 SP-1 IM-3 WK-1 WK-5",
    "One consumer, two messages, credit for one, then for one more.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q, executor = s.push()
    c, _ = s.subscribe(q, "A", credit=0)
    s.spawn(executor, name="job", daemon=True)
    s.spawn(lambda: q.enqueue(s.message("m1")), name="P")
    s.spawn(lambda: q.grant(c, 1), name="A")


@program(
    "push-two",
    "Two publishers push to two consumers with credit for one message each.",
    "SO-1 SO-3 ES-2 ES-5 ES-6 IM-3 WK-1",
    "Two publishers, two consumers, one message and one credit each.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q, executor = s.push()
    s.subscribe(q, "A", credit=1)
    s.subscribe(q, "B", credit=1)
    s.spawn(executor, name="job", daemon=True)
    for name in ("P1", "P2"):
        s.spawn(partial(q.enqueue, s.message(name)), name=name)


@program(
    "exclusive",
    "The shortcut for an exclusive consumer, with an earlier message still waiting for credit.",
    "SO-1 SO-3 SO-6 ES-5 ES-6 IM-3 WK-1",
    "One exclusive consumer, one message waiting, one arriving, credit for both coming meanwhile.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q, executor = s.push()
    c, _ = s.subscribe(q, "A", credit=0, exclusive=True)
    q.enqueue(s.message("m1"))
    s.spawn(executor, name="job", daemon=True)
    s.spawn(lambda: q.enqueue(s.message("m2")), name="P")
    s.spawn(lambda: q.grant(c, 2), name="A")


# ---- time and groups


@program(
    "held",
    "A held message becomes available while its consumer goes past it.",
    "SO-3 ES-1 ES-5 SP-2 SP-3 WK-1 WK-5 TM-1",
    "One held message before one that is not, one pass of housekeeping.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    s.clock_starts()
    q.enqueue(s.message("m1", not_before=5))
    q.enqueue(s.message("m2"))
    c, inbox = s.subscribe(q, "A", credit=0)
    s.serve(c, inbox, grant=2)

    def housekeeping() -> None:
        s.pass_time(5)
        q.check_message_status()

    s.spawn(housekeeping, name="housekeeping")


@program(
    "expiring",
    "A message expires while a consumer takes it and housekeeping clears it away.",
    "ES-1 ES-2 ES-3 ES-5 TM-1",
    "One message that expires, one consumer, one pass of housekeeping.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    s.clock_starts()
    q.enqueue(s.message("m1", expires=5))
    c, inbox = s.subscribe(q, "A", credit=0)
    s.serve(c, inbox, grant=1)

    def housekeeping() -> None:
        s.pass_time(6)
        q.check_message_status()

    s.spawn(housekeeping, name="housekeeping")


@program(
    "group",
    "The holder of one message of a group is done with it while another consumer passes over the next.",
    "ES-5 SP-2 WK-1 MG-1",
    "One group of two, two consumers, the holder without further credit.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    a, _ = s.subscribe(q, "A", credit=1)
    q.enqueue(s.message("g1", group="g"))
    q.enqueue(s.message("g2", group="g"))
    held = got(q.deliver_single_message(a))
    b, inbox = s.subscribe(q, "B", credit=0)
    s.serve(b, inbox, grant=1)
    s.spawn(lambda: q.dequeue(held, a), name="A")


@program(
    "group-race",
    "Two consumers are after two messages of one group.",
    "ES-2 ES-5 MG-1",
    "One group of two, two consumers with credit for one each.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    q.enqueue(s.message("g1", group="g"))
    q.enqueue(s.message("g2", group="g"))
    for name in ("A", "B"):
        c, _ = s.subscribe(q, name, credit=1)
        s.spawn(partial(q.deliver_single_message, c), name=name)


# ---- the hand-over


@program(
    "handover",
    "Two publishers on two queues wake one connection, which one of two IO threads serves.",
    "ES-5 WK-1 WK-5 WK-6 QL-1",
    "One target on two queues, one session, one connection, two IO threads, one message on each queue.",
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    scheduler = lib.Scheduler(s.host)
    session = lib.Session(lib.Connection(scheduler, "conn"), "session")
    target = lib.ConsumerTarget(session, "target")
    queues = [s.pull("q1"), s.pull("q2")]
    target.consumers = [q.subscribe(f"on-{q.name}", target) for q in queues]

    def io_thread() -> None:
        while True:
            scheduler.run_one()

    s.spawn(io_thread, name="io1", daemon=True)
    s.spawn(io_thread, name="io2", daemon=True)
    for q in queues:
        s.spawn(partial(q.enqueue, s.message(f"m-{q.name}")), name=f"P-{q.name}")
