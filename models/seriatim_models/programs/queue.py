"""Closed programs over the reference queue: each is a meeting of a few operations that could go wrong.

Consumers that rest at the end, waiting to be woken, are what a queue looks like when all is well;
the state in which everything rests is recorded and judged.
"""

from __future__ import annotations

from functools import partial
from types import ModuleType

import seriatim.queue as reference
from seriatim_models.explorer import World
from seriatim_models.programs.base import Programs
from seriatim_models.programs.scene import Scene, done, drain, got

QUEUE_PROGRAMS = Programs("queue")
program = QUEUE_PROGRAMS.program


# ---- order, state and pointers: threads that take, without being woken


@program(
    "enqueue-enqueue",
    "Two publishers enqueue at the same time.",
    "SO-1 ES-5",
    "Two publishers, two messages each. A third adds only orders of the same two kinds of step.",
    512,
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
    "SO-3 ES-1 ES-2 ES-3 ES-4 ES-5 ES-6 SP-1 SP-3",
    "Two consumers, one attempt each, two messages, no arrivals. More of either repeat the same race.",
    36,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    a, b = s.taker(q, "A", credit=1), s.taker(q, "B", credit=1)
    q.enqueue(s.message("m1"))
    q.enqueue(s.message("m2"))

    def take(c: reference.Consumer) -> None:
        entry = q.attempt(c, "pull")
        if entry is not None:
            q.dequeue(entry, c)

    s.spawn(partial(take, a), name="A")
    s.spawn(partial(take, b), name="B")


@program(
    "release-behind",
    "A holder gives back the first message while another consumer is on its way past it.",
    "SO-2 SO-3 ES-1 ES-2 ES-4 ES-5 SP-1 SP-2 SP-3",
    "Three messages, two consumers, one release, two attempts. "
    "Who is woken by the release is for `release-rest`.",
    77,
    real_time=True,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    a, b = s.taker(q, "A"), s.taker(q, "B")
    q.enqueue(s.message("m1"))
    q.enqueue(s.message("m2"))
    q.enqueue(s.message("m3"))
    held = got(q.attempt(a, "pull"))
    s.spawn(lambda: q.release(held, a), name="A")

    def take_two() -> None:
        q.attempt(b, "pull")
        q.attempt(b, "pull")

    s.spawn(take_two, name="B")


@program(
    "release-again",
    "One entry is released, taken and released again while another consumer, who went past it, comes back.",
    "SO-2 ES-1 ES-2 ES-4 ES-5 SP-2",
    "Two consumers, one message, two releases, one attempt. "
    "Whether the other then rests beside it is for `release-again-rest`.",
    30,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    a, b = s.taker(q, "A"), s.taker(q, "B")
    q.enqueue(s.message("m1"))
    held = got(q.attempt(a, "pull"))
    q.attempt(b, "pull")
    s.spawn(lambda: give_back_twice(q, a, held), name="A")
    s.spawn(lambda: q.attempt(b, "pull"), name="B")


def give_back_twice(
    q: reference.PullQueue, consumer: reference.Consumer, held: reference.QueueEntry
) -> None:
    """Release an entry, take it again if nobody else has, and release it again."""
    q.release(held, consumer)
    again = q.attempt(consumer, "pull")
    if again is not None:
        q.release(again, consumer)


@program(
    "release-at-once",
    "A client gives back a message while the thread that delivered it is still about it.",
    "ES-4 ES-5 SP-1 SP-2",
    "One message, one consumer, one attempt, one release. "
    "Another consumer, past which the entry comes back, is in `release-behind`.",
    2,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    a = s.taker(q, "A")
    entry = q.enqueue(s.message("m1"))
    s.spawn(lambda: q.attempt(a, "pull"), name="A")
    s.spawn(lambda: q.release(entry, a), name="client")


@program(
    "release-not-mine",
    "A consumer gives back, and declares done, what another one holds.",
    "ES-2 ES-4 ES-5",
    "One message, two consumers, one release by its holder. "
    "A stranger that races with the next holder, after the release, is not here.",
    3,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    a, b = s.taker(q, "A"), s.taker(q, "B")
    q.enqueue(s.message("m1"))
    held = got(q.attempt(a, "pull"))

    def stranger() -> None:
        q.release(held, b)
        q.dequeue(held, b)

    s.spawn(stranger, name="B")
    s.spawn(lambda: q.release(held, a), name="A")


@program(
    "priority-arrival",
    "A message of high priority arrives while the pointer of a consumer goes on past the end of the high sub-queue.",
    "SO-1 SO-3 SO-5 ES-5 SP-1 SP-2 SP-3",
    "Two levels, one message there on each, one arriving on the higher. "
    "Wake-ups and a third level are not here.",
    21,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull(levels=2)
    a, b = s.taker(q, "A"), s.taker(q, "B")
    q.enqueue(s.message("high1", priority=9))
    q.enqueue(s.message("low1", priority=0))
    q.attempt(a, "pull")
    s.spawn(lambda: q.attempt(b, "pull"), name="B")
    s.spawn(lambda: q.enqueue(s.message("high2", priority=9)), name="P")


@program(
    "priority-levels",
    "One publisher, ten priorities, three levels: who stands where, and who is taken first.",
    "SO-1 SO-3 SO-5",
    "Sequential; every priority once. "
    "Arrivals while somebody takes are in `priority-arrival`; other numbers of levels are for `make prove`.",
    1,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull(levels=3)
    for p in range(10):
        q.enqueue(s.message(f"p{p}", priority=p))
    a = s.taker(q, "A")

    def take_all() -> None:
        while (entry := q.attempt(a, "pull")) is not None:
            q.dequeue(entry, a)

    s.spawn(take_all, name="A")


@program(
    "browse",
    "A browser looks on while a higher message arrives.",
    "SO-4 SP-1 SP-3 WK-1",
    "One browser, two messages there, one arrival before them. "
    "A second browser has a pointer of its own, and is not here.",
    379,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull(levels=2)
    q.enqueue(s.message("low1", priority=0))
    q.enqueue(s.message("low2", priority=0))
    browser, inbox = s.subscribe(q, "browser", acquires=False, credit=0)
    s.serve(browser, inbox, grant=4)
    s.spawn(lambda: q.enqueue(s.message("high", priority=9)), name="P")


# ---- time and groups


@program(
    "held",
    "A held message becomes available while a consumer goes past it.",
    "SO-3 ES-1 ES-5 SP-2 SP-3 TM-1 TM-2",
    "One held message before one that is not, one pass of housekeeping. "
    "The clock goes on in one step before the pass; a hold that ends in the middle of one is not here.",
    20,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    s.clock_starts()
    c = s.taker(q, "A")
    q.enqueue(s.message("m1", not_before=5))
    q.enqueue(s.message("m2"))
    s.spawn(lambda: q.attempt(c, "pull"), name="A")

    def housekeeping() -> None:
        s.pass_time(5)
        q.check_message_status()

    s.spawn(housekeeping, name="housekeeping")


@program(
    "expiring",
    "A message expires while a consumer takes it and housekeeping clears it away.",
    "ES-1 ES-2 ES-3 ES-5 TM-1 TM-2",
    "One message that expires, one consumer, one pass of housekeeping. "
    "It expires before housekeeping begins; a clock that goes on during the pass is not here.",
    15,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    s.clock_starts()
    q.enqueue(s.message("m1", expires=5))
    c, inbox = s.subscribe(q, "A", credit=0)
    s.serve(c, inbox, grant=2)

    def housekeeping() -> None:
        s.pass_time(6)
        q.check_message_status()

    s.spawn(housekeeping, name="housekeeping")


@program(
    "group-race",
    "Two consumers are after two messages of one group.",
    "ES-2 ES-5 MG-1",
    "One group of two, two consumers, one attempt each. "
    "Neither gives back or is done: that is `group-freed` and `group-released`.",
    14,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    takers = [s.taker(q, "A"), s.taker(q, "B")]
    q.enqueue(s.message("g1", group="g"))
    q.enqueue(s.message("g2", group="g"))
    for c in takers:
        s.spawn(partial(q.attempt, c, "pull"), name=c.name)


@program(
    "group-freed",
    "The holder of one message of a group is done with it while another consumer passes over the next.",
    "ES-5 SP-2 WK-1 MG-1",
    "One group of two, two consumers, the holder takes no more. "
    "A holder that goes on taking, and a second group, are not here.",
    25,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    a = s.taker(q, "A")
    q.enqueue(s.message("g1", group="g"))
    q.enqueue(s.message("g2", group="g"))
    held = got(q.attempt(a, "pull"))
    b, inbox = s.subscribe(q, "B")
    s.serve(b, inbox, first=lambda: q.deliver_single_message(b))
    s.spawn(lambda: q.dequeue(held, a), name="A")


@program(
    "group-released",
    "The holder of a group gives it back, first message first, while another consumer passes over it.",
    "SO-2 ES-4 ES-5 SP-2 MG-1",
    "One group of two, two consumers, two releases, one attempt. "
    "Nobody is woken, and nobody else takes in between.",
    1349,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    a, b = s.taker(q, "A"), s.taker(q, "B")
    for m in ("g1", "g2"):
        q.enqueue(s.message(m, group="g"))
    first, second = got(q.attempt(a, "pull")), got(q.attempt(a, "pull"))

    def give_back() -> None:
        q.release(first, a)
        q.release(second, a)

    s.spawn(give_back, name="A")
    s.spawn(lambda: q.attempt(b, "pull"), name="B")


@program(
    "group-passed",
    "The holder of a group is done with its first message while another consumer looks for anything that it may take.",
    "SO-3 ES-5 SP-3 MG-1",
    "One group of two and one message of none behind it, two consumers, one attempt; nobody is woken.",
    116,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    a, b = s.taker(q, "A"), s.taker(q, "B")
    q.enqueue(s.message("g1", group="g"))
    q.enqueue(s.message("g2", group="g"))
    q.enqueue(s.message("m3"))
    held = got(q.attempt(a, "pull"))
    s.spawn(lambda: q.dequeue(held, a), name="A")
    s.spawn(lambda: q.attempt(b, "pull"), name="B")


@program(
    "group-given-up",
    "A consumer owns a group for a message that expires under its hands, while another passes over the rest of it.",
    "ES-5 SP-2 MG-1",
    "One group of two, of which only one is for the first consumer; the other looks after one pass of housekeeping. "
    "Nobody is woken; two consumers that both give up are not here.",
    428,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    s.clock_starts()
    a, _ = s.subscribe(q, "A", keys=frozenset({"x"}))
    b = s.taker(q, "B")
    q.set_notify_work_desired(a, False)
    q.enqueue(s.message("g1", group="g", key="x", expires=5))
    q.enqueue(s.message("g2", group="g"))
    q.enqueue(s.message("m3"))
    s.spawn(lambda: q.attempt(a, "pull"), name="A")

    def clean_and_take() -> None:
        s.pass_time(6)
        q.check_message_status()
        q.attempt(b, "pull")

    s.spawn(clean_and_take, name="B")


@program(
    "browse-taken",
    "A browser is about to be shown a message that another consumer takes, and a publisher moves it on to the next.",
    "SO-4 ES-6 SP-1 SP-3",
    "One message there, one arriving, one attempt each of a browser and a consumer. "
    "The browser looks once, and has credit for no more.",
    16,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    browser, _ = s.subscribe(q, "browser", acquires=False, credit=1)
    a = s.taker(q, "A")
    q.enqueue(s.message("m1"))
    s.spawn(lambda: q.attempt(browser, "pull"), name="browser")
    s.spawn(lambda: q.attempt(a, "pull"), name="A")
    s.spawn(lambda: q.enqueue(s.message("m2")), name="P")


# ---- wake-ups


@program(
    "enqueue-rest",
    "A message arrives while its consumer finds nothing and is about to rest.",
    "ES-1 ES-3 ES-5 WK-1 WK-5 QL-1 QL-2",
    "One consumer, one message. "
    "What a consumer does that has found something is in `enqueue-consume`.",
    18,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    c, inbox = s.subscribe(q, "A")
    s.serve(c, inbox, done(q, c), first=lambda: q.deliver_single_message(c))
    s.spawn(lambda: q.enqueue(s.message("m1")), name="P")


@program(
    "enqueue-consume",
    "A message arrives while its consumer is about to take another, and then to rest.",
    "ES-1 ES-5 ES-6 SP-1 WK-1 WK-5 WK-8 QL-1 QL-2",
    "One consumer, one message there and one arriving. A second consumer is in `pause-and-take`.",
    1342,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    c, inbox = s.subscribe(q, "A", credit=0)
    q.enqueue(s.message("m1"))
    s.serve(c, inbox, grant=3)
    s.spawn(lambda: q.enqueue(s.message("m2")), name="P")


@program(
    "release-rest",
    "A message is given back while another consumer finds nothing and is about to rest.",
    "SO-2 ES-4 ES-5 SP-2 WK-1 WK-5 QL-1",
    "Two consumers, one message, one release. "
    "The same entry twice is in `release-again-rest`; credit in `release-short-of-credit`.",
    19,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    a = s.taker(q, "A")
    q.enqueue(s.message("m1"))
    held = got(q.attempt(a, "pull"))
    b, inbox = s.subscribe(q, "B")
    s.serve(b, inbox, first=lambda: q.deliver_single_message(b))
    s.spawn(lambda: q.release(held, a), name="A")


@program(
    "release-again-rest",
    "One entry is released, taken and released again while another consumer, who went past it, comes back and rests.",
    "ES-2 ES-5 SP-2 WK-1 WK-5",
    "Two consumers, one message, two releases. "
    "Nobody else wants it, and its holder gives it back at once.",
    379,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    a = s.taker(q, "A")
    q.enqueue(s.message("m1"))
    held = got(q.attempt(a, "pull"))
    b, inbox = s.subscribe(q, "B")
    s.serve(b, inbox)
    s.spawn(lambda: give_back_twice(q, a, held), name="A")


@program(
    "release-short-of-credit",
    "A message is given back while another consumer, who was short of credit, gets some.",
    "ES-5 ES-6 SP-2 WK-1 WK-5 QL-1",
    "Two consumers, one message, one release, one grant. "
    "Credit that is taken away meanwhile is not here; `handover-suspend` has that.",
    2235,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    a = s.taker(q, "A")
    q.enqueue(s.message("m1"))
    held = got(q.attempt(a, "pull"))
    b, inbox = s.subscribe(q, "B", credit=0)
    s.serve(b, inbox, grant=2)
    s.spawn(lambda: q.release(held, a), name="A")


@program(
    "grant-while-busy",
    "A consumer that is taking messages is granted more.",
    "WK-1 WK-8 QL-1",
    "One consumer, two messages, one grant between two pulls; nobody else.",
    1,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    a, _ = s.subscribe(q, "A")
    for m in ("m1", "m2"):
        q.enqueue(s.message(m))

    def take_and_grant() -> None:
        q.deliver_single_message(a)
        q.grant(a, 1)
        drain(q, a)

    s.spawn(take_and_grant, name="A")


@program(
    "interest",
    "A consumer loses its interest and finds it again while a message arrives.",
    "ES-5 WK-1 WK-5 QL-1 QL-2 QL-3 QL-4",
    "One consumer, one message, one pause. "
    "There is nobody else to be told; that is `pause-and-take`.",
    341,
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
    "pause",
    "A message arrives for two consumers, one of which pauses.",
    "WK-2 WK-3 WK-7 QL-1 QL-2 QL-4",
    "Two consumers that take nothing, one message, one pause that does not end. "
    "Who ought to be woken is seen, not whether he takes: that is `pause-and-take`.",
    55,
    real_time=True,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    a, _ = s.subscribe(q, "A")
    s.subscribe(q, "B")
    s.spawn(lambda: q.set_notify_work_desired(a, False), name="A")
    s.spawn(lambda: q.enqueue(s.message("m1")), name="P")


@program(
    "pause-and-take",
    "A message arrives for two consumers; one pauses, so the other must take it.",
    "ES-5 WK-1 WK-3 WK-5 WK-7",
    "Two consumers, one message, one pause that does not end. "
    "A third consumer to pass it on to, and a pause that ends, are not here.",
    1373,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    a, _ = s.subscribe(q, "A")
    b, inbox = s.subscribe(q, "B")
    s.serve(b, inbox)
    s.spawn(lambda: q.set_notify_work_desired(a, False), name="A")
    s.spawn(lambda: q.enqueue(s.message("m1")), name="P")


@program(
    "close",
    "A consumer that holds a message closes while another finds nothing and is about to rest.",
    "SO-2 ES-4 ES-5 SP-2 WK-1 WK-5 QL-1 QL-2",
    "Two consumers, one message held, one close. "
    "It closes on its own thread, after its last pull; the reference asks for that.",
    34,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    a, _ = s.subscribe(q, "A", credit=1)
    q.enqueue(s.message("m1"))
    q.deliver_single_message(a)
    b, inbox = s.subscribe(q, "B")
    s.serve(b, inbox, first=lambda: q.deliver_single_message(b))
    s.spawn(lambda: q.close(a), name="A")


@program(
    "subscribe",
    "A consumer registers while a message arrives.",
    "ES-5 WK-1 WK-5 QL-1",
    "One new consumer, one arrival. Nobody else is registered, and nobody closes meanwhile.",
    128,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()

    def newcomer() -> None:
        c, inbox = s.subscribe(q, "B")
        while True:
            inbox.wake.acquire()
            drain(q, c)

    s.spawn(newcomer, name="B", daemon=True)
    s.spawn(lambda: q.enqueue(s.message("m1")), name="P")


@program(
    "consumer-priorities",
    "The consumer of high priority runs out of credit while a message arrives that both want.",
    "ES-6 WK-1 WK-3 WK-4 WK-7 QL-1",
    "Two priorities, one message there, one arriving, credit for one, which is all that the higher one takes. "
    "Three priorities, and a higher one that gets new credit, are not here.",
    16975,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    high, _ = s.subscribe(q, "high", priority=1, credit=1)
    low, inbox = s.subscribe(q, "low", priority=0)
    q.enqueue(s.message("m1"))
    s.spawn(lambda: q.deliver_single_message(high), name="high")
    s.serve(low, inbox)
    s.spawn(lambda: q.enqueue(s.message("m2")), name="P")


@program(
    "take-turns",
    "Two publishers, and two equal consumers that wait to be woken.",
    "WK-2 QL-1 QL-5",
    "Two arrivals; the consumers take nothing. "
    "How places are taken anew after a pull, and a third consumer, are not here.",
    578,
    real_time=True,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    s.subscribe(q, "A")
    s.subscribe(q, "B")
    for name in ("P1", "P2"):
        s.spawn(partial(q.enqueue, s.message(name)), name=name)


@program(
    "browser-woken",
    "A message arrives for a consumer and for a browser that is about to rest.",
    "SO-4 WK-1 WK-2",
    "One consumer that takes nothing, one browser, one message. "
    "The other consumer has no credit, so it is not woken; who wakes whom first is not looked at.",
    10,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    browser, inbox = s.subscribe(q, "browser", acquires=False)
    s.subscribe(q, "A", credit=0)
    s.serve(browser, inbox, first=lambda: q.deliver_single_message(browser))
    s.spawn(lambda: q.enqueue(s.message("m1")), name="P")


@program(
    "browser-selects",
    "Messages arrive for a browser that looks for one of them only.",
    "SO-4 WK-1",
    "One browser with a selector, about to rest; two messages, the second of which it wants. "
    "What it wants arrives last; a browser beside consumers is in `browser-woken`.",
    43,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    browser, inbox = s.subscribe(q, "browser", acquires=False, keys=frozenset({"b"}))
    s.serve(browser, inbox, first=lambda: q.deliver_single_message(browser))

    def publish() -> None:
        q.enqueue(s.message("m1", key="a"))
        q.enqueue(s.message("m2", key="b"))

    s.spawn(publish, name="P")


@program(
    "priority-pause",
    "The consumer of high priority loses interest while a message arrives that a lower one would take.",
    "WK-1 WK-3 WK-4 WK-5 WK-7 QL-1",
    "Two priorities, one message, one pause that does not end. "
    "The higher one does not come back; equals of the lower one are not here.",
    535,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    high, _ = s.subscribe(q, "high", priority=1)
    low, inbox = s.subscribe(q, "low", priority=0)
    s.serve(low, inbox)
    s.spawn(lambda: q.set_notify_work_desired(high, False), name="high")
    s.spawn(lambda: q.enqueue(s.message("m1")), name="P")


@program(
    "consumer-list",
    "One thread appends to a list while two others walk it and delete what they find.",
    "QL-2 QL-3 QL-4",
    "One node there, one appended; each is deleted once. "
    "Two appends at once are in `enqueue-enqueue`: the list is the same but for its size.",
    34,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    c = s.taker(q, "A")
    members = lib.ConsumerList(s.host, "list")
    there, arriving = (lib.ListEntry(s.host, "list", c) for _ in range(2))
    members.add(there)

    def delete_first() -> None:
        members.delete(there)
        look()

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


@program(
    "consumer-list-middle",
    "A node in the middle of a list is deleted while another is appended and a third thread walks.",
    "QL-2 QL-3 QL-4",
    "Three nodes there, one appended, one deleted. "
    "One deletion: neighbours that are deleted at once are not here.",
    8,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q = s.pull()
    c = s.taker(q, "A")
    members = lib.ConsumerList(s.host, "list")
    first, middle, last, arriving = (lib.ListEntry(s.host, "list", c) for _ in range(4))
    for entry in (first, middle, last):
        members.add(entry)

    def look() -> None:
        for _ in members.walk():
            pass

    s.spawn(lambda: members.add(arriving), name="append")
    s.spawn(lambda: members.delete(middle), name="delete")
    s.spawn(look, name="walk")
    world.at_end(look)


# ---- push: the attempt on enqueue, and the job


@program(
    "immediate",
    "An immediate message, and a delivery job that is running on another thread.",
    "ES-1 ES-2 ES-3 ES-5 IM-1 IM-2",
    "One consumer whose credit comes back while the publisher gives up. "
    "Two consumers are not here; a client that gives it back is in `immediate-returned`.",
    64,
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
    9,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q, _ = s.push()
    c, _ = s.subscribe(q, "A")
    message = s.message("m1", immediate=True)
    q.depth.add(1)
    entry = q.entries.add(message, lib.AVAILABLE)

    def publisher() -> None:
        s.host.record("enqueue", ph="invoke", q=q.name, m=message.id, immediate=True)
        q.undelivered(entry)
        s.host.record("enqueue", ph="ok", m=message.id, place=list(entry.place()))

    s.spawn(publisher, name="P")
    s.spawn(lambda: q.attempt(c, "job"), name="job")


@program(
    "immediate-returned",
    "The last act of enqueuing an immediate message, against a delivery that the client gives back at once.",
    "ES-1 ES-4 ES-5 IM-1 IM-2",
    "Linked already and offered in vain; one delivery and one release. "
    "A second delivery of what was given back is not here.",
    10,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q, _ = s.push()
    c, _ = s.subscribe(q, "A")
    message = s.message("m1", immediate=True)
    q.depth.add(1)
    entry = q.entries.add(message, lib.AVAILABLE)

    def publisher() -> None:
        s.host.record("enqueue", ph="invoke", q=q.name, m=message.id, immediate=True)
        q.undelivered(entry)
        s.host.record("enqueue", ph="ok", m=message.id, place=list(entry.place()))

    s.spawn(publisher, name="P")

    def reject() -> None:
        given = q.attempt(c, "job")
        if given is not None:
            q.release(given, c)

    s.spawn(reject, name="job")


@program(
    "push",
    "A message that cannot be delivered on enqueue, because credit comes a moment too late.",
    "ES-1 ES-2 ES-5 ES-6 SP-1 IM-3 WK-1 WK-5",
    "One consumer, one message, one grant. "
    "Two consumers, and which of them is in turn, are not here.",
    47,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q, executor = s.push()
    c, _ = s.subscribe(q, "A", credit=0)
    s.spawn(executor, name="job", daemon=True)
    s.spawn(lambda: q.enqueue(s.message("m1")), name="P")
    s.spawn(lambda: q.grant(c, 2), name="A")


@program(
    "push-two",
    "Two publishers push to one consumer with credit for one message.",
    "SO-1 ES-2 ES-5 ES-6 IM-3",
    "Two publishers, one message each. "
    "One consumer and one level: turns between consumers, and priorities, are not here.",
    552,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q, executor = s.push()
    s.subscribe(q, "A", credit=1)
    s.spawn(executor, name="job", daemon=True)
    for name in ("P1", "P2"):
        s.spawn(partial(q.enqueue, s.message(name)), name=name)


@program(
    "push-close",
    "A consumer closes while a message is pushed to it.",
    "ES-2 ES-5 IM-3",
    "One consumer, which closes, and one message. "
    "What it was given before it closed goes back to nobody: there is no second consumer.",
    137,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q, executor = s.push()
    a, _ = s.subscribe(q, "A")
    s.spawn(executor, name="job", daemon=True)
    s.spawn(lambda: q.enqueue(s.message("m1")), name="P")
    s.spawn(lambda: q.close(a), name="A")


@program(
    "exclusive-close",
    "An exclusive consumer closes while a message is pushed to it.",
    "ES-2 ES-5 IM-3",
    "One exclusive consumer, which closes, and one message. "
    "A next consumer, who subscribes when the exclusive one is gone, is not here.",
    62,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q, executor = s.push()
    a, _ = s.subscribe(q, "A", exclusive=True)
    s.spawn(executor, name="job", daemon=True)
    s.spawn(lambda: q.enqueue(s.message("m1")), name="P")
    s.spawn(lambda: q.close(a), name="A")


@program(
    "exclusive",
    "The shortcut for an exclusive consumer, with an earlier message still waiting for credit.",
    "SO-1 SO-3 SO-6 ES-5 ES-6 IM-3 WK-1",
    "One exclusive consumer, one message waiting, two arriving, credit for all coming meanwhile. "
    "The consumer neither closes (`exclusive-close`) nor gives back.",
    570,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q, executor = s.push()
    c, _ = s.subscribe(q, "A", credit=0, exclusive=True)
    q.enqueue(s.message("m1"))
    s.spawn(executor, name="job", daemon=True)
    s.spawn(lambda: q.grant(c, 4), name="A")

    def publish() -> None:
        q.enqueue(s.message("m2"))
        q.enqueue(s.message("m3"))

    s.spawn(publish, name="P")


@program(
    "push-group",
    "A push finds that its message expired under its hands, while it owns the group of the next one.",
    "ES-2 ES-5 ES-6 SP-2 MG-1 WK-1",
    "One group of two, of which the first expires; one consumer, which gets credit, and one pass of housekeeping. "
    "What two consumers do to a group is the same in a queue that is pulled from (`group-race`, `group-freed`).",
    147,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    q, executor = s.push()
    s.clock_starts()
    q.enqueue(s.message("g1", group="g", expires=5))
    q.enqueue(s.message("g2", group="g"))
    a, _ = s.subscribe(q, "A", credit=0)
    # Daemons: whether somebody is stuck is for the properties to say.
    s.spawn(executor, name="job", daemon=True)
    s.spawn(lambda: q.grant(a, 3), name="A")

    def housekeeping() -> None:
        s.pass_time(6)
        q.check_message_status()

    s.spawn(housekeeping, name="housekeeping", daemon=True)


# ---- the hand-over


@program(
    "handover",
    "A publisher on two queues wakes one connection, which one of two IO threads serves.",
    "ES-5 WK-1 WK-5 WK-6 QL-1",
    "One target on two queues, one session, one connection, two IO threads, one message on each queue. "
    "Two connections at once, and consumers that lose interest (`handover-suspend`), are not here.",
    7784,
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

    def publish() -> None:
        for q in queues:
            q.enqueue(s.message(f"m-{q.name}"))

    s.spawn(publish, name="P")


@program(
    "handover-suspend",
    "One of a target's consumers is suspended, by another thread, while the IO thread is about to serve them.",
    "ES-2 ES-5 SP-3 WK-1 WK-3 WK-5 WK-6 QL-1",
    "One target with three consumers on two queues, a message on each, one connection, one IO thread, "
    "one suspension that does not end, no arrivals. "
    "That a consumer stops another thread may say; that it wants more is said on the IO thread, as the reference asks.",
    4094,
)
def _(world: World, lib: ModuleType) -> None:
    s = Scene(world, lib)
    scheduler = lib.Scheduler(s.host)
    session = lib.Session(lib.Connection(scheduler, "conn"), "session")
    target = lib.ConsumerTarget(session, "target")
    q1, q2 = s.pull("q1"), s.pull("q2")
    suspended = q1.subscribe("A", target)
    target.consumers = [suspended, q2.subscribe("B", target), q1.subscribe("C", target)]
    q1.enqueue(s.message("m1"))
    q2.enqueue(s.message("m2"))

    def io_thread() -> None:
        while True:
            scheduler.run_one()

    s.spawn(io_thread, name="io", daemon=True)
    s.spawn(lambda: q1.set_notify_work_desired(suspended, False), name="suspend")
