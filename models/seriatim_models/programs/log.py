"""Closed programs over the reference log: publishers, consumers, stops and crashes that meet.

The disk is in memory and no step of its own: what lies before the tail never changes, and nobody reads beyond it.
"""

from __future__ import annotations

from collections.abc import Sized
from contextlib import suppress
from types import ModuleType

import seriatim.log as reference
from seriatim_models.explorer import World
from seriatim_models.programs.base import Programs

LOG_PROGRAMS = Programs("log")
program = LOG_PROGRAMS.program


class LogScene:
    """A world with one topic. At its end the state of every channel is recorded."""

    def __init__(
        self,
        world: World,
        lib: ModuleType,
        segment_size: int = 1000,
        storage: reference.Memory | None = None,
    ) -> None:
        self.world, self.lib = world, lib
        self.segment_size = segment_size
        self.channels: dict[str, reference.Channel] = {}
        self.storage: reference.Memory = storage or lib.Memory()
        self.topic = self.open()
        world.at_end(self._end)

    def open(self) -> reference.Topic:
        topic: reference.Topic = self.lib.Topic(self.world.host, self.storage, self.segment_size)
        return topic

    def restart(self, kept: int | None = None, zeros: bool = False) -> None:
        """The machine starts again with what survived on its disk; channels are to be opened anew."""
        self.storage = self.lib.Memory(self.storage.survivors(kept, zeros))
        self.topic = self.open()

    def channel(
        self, name: str = "c", *, at_tail: bool = False, max_attempts: int = 2
    ) -> reference.Channel:
        """Two attempts, and one time limit that may run out: as many as a thread of the explorer has."""
        channel: reference.Channel = self.lib.Channel(
            self.topic, name, max_attempts=max_attempts, at_tail=at_tail
        )
        self.channels[name] = channel
        return channel

    def serve(
        self,
        channel: reference.Channel,
        handler: reference.Handler = lambda message: None,
        *,
        daemon: bool = True,
        name: str = "",
    ) -> None:
        self.world.spawn(lambda: channel.consume(handler), name=name or channel.name, daemon=daemon)

    def publish(self, *messages: bytes, name: str = "P") -> None:
        def publisher() -> None:
            for message in messages:
                self.topic.publish(message)

        self.world.spawn(publisher, name=name)

    def _end(self) -> None:
        self.world.host.record("log_rest", **rest(self.topic, self.channels))


def rest(topic: reference.Topic, channels: dict[str, reference.Channel]) -> dict[str, object]:
    """What the properties want to know of a topic and its channels when nothing moves any more."""
    tail = topic.tail.get()
    return {"tail": list(tail), "channels": {name: state(c, tail) for name, c in channels.items()}}


def state(channel: reference.Channel, tail: reference.Position) -> dict[str, object]:
    try:
        parked = [list(p.place) for p in channel.parked()]
    except (
        Exception
    ):  # a mutant's `Damaged`, which is another class: what cannot be read is not listed
        parked = []
    return {
        "place": list(channel.topic.start_of_next(channel.position, tail)),
        "connected": channel._state.get() != reference.AWAY,
        "parked": parked,
        "held": sum(
            len(v)
            for v in vars(channel).values()
            if isinstance(v, Sized) and not isinstance(v, str | tuple)
        ),
    }


@program(
    "log-rest",
    "A message is published while the consumer finds nothing and is about to sleep.",
    "LC-1 LC-2 LC-3 LC-4 LC-5",
    "One channel, one message. A second repeats the race.",
    4,
)
def _(world: World, lib: ModuleType) -> None:
    s = LogScene(world, lib)
    c = s.channel()
    c.connect()
    s.serve(c)
    s.publish(b"m1")


@program(
    "log-two-messages",
    "Two messages are published one after the other while the consumer reads.",
    "LC-1 LC-2 LC-3 LC-4 LC-5",
    "One channel, two messages.",
    42,
)
def _(world: World, lib: ModuleType) -> None:
    s = LogScene(world, lib)
    c = s.channel()
    c.connect()
    s.serve(c)
    s.publish(b"m1", b"m2")


@program(
    "log-backlog",
    "A consumer connects to a backlog, over the end of a segment; nothing more is published.",
    "LC-1 LC-2 LC-4 LC-5",
    "Two messages in two segments, one channel, one consumer.",
    1,
)
def _(world: World, lib: ModuleType) -> None:
    s = LogScene(world, lib, segment_size=20)
    c = s.channel()
    s.topic.publish(b"m1")
    s.topic.publish(b"m2")
    c.connect()
    s.serve(c)


@program(
    "log-backlog-and-news",
    "A consumer works off a backlog while a message arrives.",
    "LC-1 LC-2 LC-3 LC-4 LC-5",
    "One message there, one arriving, in a segment of its own.",
    14,
)
def _(world: World, lib: ModuleType) -> None:
    s = LogScene(world, lib, segment_size=20)
    c = s.channel()
    s.topic.publish(b"m1")
    c.connect()
    s.serve(c)
    s.publish(b"m2")


@program(
    "log-two-channels",
    "One message for two channels, one of which connects meanwhile.",
    "LC-1 LC-2 LC-3 LC-4 LC-5",
    "Two channels, one message.",
    20,
)
def _(world: World, lib: ModuleType) -> None:
    s = LogScene(world, lib)
    a, b = s.channel("a"), s.channel("b")
    a.connect()
    s.serve(a)

    def late() -> None:
        b.connect()
        b.consume(lambda message: None)

    world.spawn(late, name="b", daemon=True)
    s.publish(b"m1")


@program(
    "log-new-channel",
    "A channel is made at the tail, and connects, while a message is published.",
    "LC-1 LC-3 LC-4 LC-5",
    "One new channel, one message.",
    16,
)
def _(world: World, lib: ModuleType) -> None:
    s = LogScene(world, lib)

    def newcomer() -> None:
        c = s.channel(at_tail=True)
        c.connect()
        c.consume(lambda message: None)

    world.spawn(newcomer, name="c", daemon=True)
    s.publish(b"m1")


@program(
    "log-stuck-handler",
    "Messages are published while a handler never returns and another channel is disconnected.",
    "LC-1 LC-3",
    "Two messages, one handler that waits for ever, one channel nobody reads.",
    10,
)
def _(world: World, lib: ModuleType) -> None:
    s = LogScene(world, lib)
    c, _ = s.channel(), s.channel("away")
    never = world.semaphore(0, name="never")
    busy = world.cell(False, name="busy")

    def handler(message: bytes) -> None:
        busy.set(True)
        never.acquire()

    c.connect()
    s.serve(c, handler)
    s.publish(b"m1", b"m2")


@program(
    "log-poison",
    "A message that always fails lies before one that does not.",
    "LC-1 LC-2 LC-5 LC-6",
    "Two attempts, so one pause; two messages there, one arriving.",
    44,
)
def _(world: World, lib: ModuleType) -> None:
    s = LogScene(world, lib)
    c = s.channel()
    s.topic.publish(b"bad")
    s.topic.publish(b"good")
    c.connect()
    s.serve(c, fails_on_bad)
    s.publish(b"more")


def fails_on_bad(message: bytes) -> None:
    if message == b"bad":
        raise ValueError("bad")


@program(
    "log-poison-once",
    "A message that may be tried once fails.",
    "LC-1 LC-2 LC-6",
    "One attempt, so no pause; one message there, one arriving.",
    14,
)
def _(world: World, lib: ModuleType) -> None:
    s = LogScene(world, lib)
    c = s.channel(max_attempts=1)
    s.topic.publish(b"bad")
    c.connect()
    s.serve(c, fails_on_bad)
    s.publish(b"more")


@program(
    "log-reconnect",
    "A consumer is asked to end while it works, and another takes over where it stopped.",
    "LC-1 LC-2 LC-4 LC-5",
    "Two messages there, one stop; the other connects when the first has ended.",
    4,
)
def _(world: World, lib: ModuleType) -> None:
    s = LogScene(world, lib)
    c = s.channel()
    s.topic.publish(b"m1")
    s.topic.publish(b"m2")
    c.connect()

    def first() -> None:
        c.consume(lambda message: None)
        c.connect()
        s.serve(c, name="second")

    world.spawn(first, name="first")
    world.spawn(c.disconnect, name="stop")


@program(
    "log-two-consumers",
    "Two threads would consume from one channel.",
    "LC-1 LC-2",
    "One message there, two consumers.",
    4,
)
def _(world: World, lib: ModuleType) -> None:
    s = LogScene(world, lib)
    c = s.channel()
    s.topic.publish(b"m1")
    handling = world.cell(0, name="handling")

    def consumer() -> None:
        try:
            c.connect()
        except lib.Misuse:
            return
        c.consume(handler)

    def handler(message: bytes) -> None:
        handling.get_and_add(1)
        handling.get_and_add(-1)

    world.spawn(consumer, name="A", daemon=True)
    world.spawn(consumer, name="B", daemon=True)


@program(
    "log-too-large",
    "A message too large for a segment is refused; another publisher goes on.",
    "LC-3 LC-7",
    "Two publishers, one of which is refused.",
    1,
)
def _(world: World, lib: ModuleType) -> None:
    s = LogScene(world, lib, segment_size=20)
    s.channel()

    def too_large() -> None:
        try:
            s.topic.publish(b"x" * 20)
        except lib.Misuse:
            pass
        else:
            raise AssertionError("it was not refused")

    world.spawn(too_large, name="large")
    s.publish(b"m1")


@program(
    "log-crash",
    "The machine stops at any write, and the topic and its channel are opened again.",
    "LC-1 LC-2 LC-7 LC-8",
    "One publisher and consumer in turn, two messages in two segments; every byte and every other change of the disk.",
    120,
)
def _(world: World, lib: ModuleType) -> None:
    s = LogScene(world, lib, segment_size=20)

    def life() -> None:
        s.storage.budget = s.storage.spent + world.choose(CRASHES)
        with suppress(lib.Crash):
            both(s, s.channel())
        kept = (None, 0)[world.choose(2)]
        s.restart(kept, zeros=True)
        both(s, s.channel())

    world.spawn(life, name="life")


CRASHES = 60
"""More than the disk is changed in `both`: two records of 14 bytes, two syncs, two positions."""


def both(s: LogScene, c: reference.Channel) -> None:
    """Publish, and consume all there is, twice, on one thread."""
    for message in (b"m1", b"m2"):
        s.topic.publish(message)
        work_off(c)


def work_off(c: reference.Channel) -> None:
    """Consume all there is, on this thread: the consumer asks itself to end."""
    there = len(c.read(9))
    if not there:
        return
    seen: list[bytes] = []

    def handler(message: bytes) -> None:
        seen.append(message)
        if len(seen) == there:
            c.disconnect()

    c.connect()
    c.consume(handler)


@program(
    "log-seen-before-durable",
    "A consumer looks whenever a message is about to be made durable, and the machine stops there.",
    "LC-1 LC-2 LC-8",
    "One publisher and consumer in turn on one thread, one message before the crash, one after it.",
    60,
)
def _(world: World, lib: ModuleType) -> None:
    class Watched(reference.Memory):
        """A disk before whose every sync of a segment the consumer looks for messages."""

        looks: reference.Channel | None = None

        def sync(self, name: str) -> None:
            if self.looks is not None and name.endswith(".log"):
                work_off(self.looks)
            super().sync(name)

    s = LogScene(world, lib, storage=Watched())

    def life() -> None:
        s.storage.looks = s.channel()  # type: ignore[attr-defined]  # it is a `Watched`
        s.storage.budget = s.storage.spent + world.choose(CRASHES)
        with suppress(reference.Crash):
            s.topic.publish(b"m1")
            work_off(s.channels["c"])
        s.restart(0)
        c = s.channel()
        s.topic.publish(b"m2")
        work_off(c)

    world.spawn(life, name="life")


@program(
    "log-empty-message",
    "An empty message lies before another one when the topic is opened again.",
    "LC-1 LC-2 LC-7 LC-8",
    "Sequential; two messages, one more after the reopening.",
    1,
)
def _(world: World, lib: ModuleType) -> None:
    s = LogScene(world, lib)

    def life() -> None:
        for message in (b"", b"m2"):
            s.topic.publish(message)
        s.restart()
        c = s.channel()
        s.topic.publish(b"m3")
        work_off(c)

    world.spawn(life, name="life")


@program(
    "log-roll-over",
    "A publisher fills one segment after the other while a consumer reads over their ends.",
    "LC-1 LC-2 LC-3 LC-4 LC-5 LC-7 LC-8",
    "Two messages, a segment each, one consumer.",
    42,
)
def _(world: World, lib: ModuleType) -> None:
    s = LogScene(world, lib, segment_size=20)
    c = s.channel()
    c.connect()
    s.serve(c)

    def publisher() -> None:
        for message in (b"m1", b"m2"):
            with suppress(lib.Misuse):
                s.topic.publish(message)

    world.spawn(publisher, name="P")


@program(
    "log-batch",
    "A batch is read over the end of a segment, and then handled, while a message is published.",
    "LC-1 LC-2 LC-7",
    "Two messages there, in two segments, one arriving; one batch of at most three.",
    5,
)
def _(world: World, lib: ModuleType) -> None:
    s = LogScene(world, lib, segment_size=20)
    c = s.channel()
    s.topic.publish(b"m1")
    s.topic.publish(b"m2")

    def batch() -> None:
        found = c.read(3)
        for d in found:
            at = {
                "channel": "c",
                "place": list(d.place),
                "body": bytes(d.message).decode("latin-1"),
            }
            world.host.record("handle", ph="invoke", **at)
            world.host.record("handle", ph="ok", **at)
        c.commit(found[-1].following)

    world.spawn(batch, name="batch")
    s.publish(b"m3")


@program(
    "log-name-taken",
    "A second channel of a name would be opened and consumed, while messages are published to the first.",
    "LC-1 LC-2 LC-3 LC-4",
    "Two messages, one channel, one who asks for another of its name.",
    420,
)
def _(world: World, lib: ModuleType) -> None:
    s = LogScene(world, lib)
    c = s.channel()
    c.connect()
    s.serve(c)

    def second() -> None:
        with suppress(lib.Misuse):
            same = lib.Channel(s.topic, "c")
            same.connect()
            same.consume(lambda message: None)

    world.spawn(second, name="second", daemon=True)
    s.publish(b"m1", b"m2")


@program(
    "log-replay",
    "An operator replays a parked message while the consumer parks another and is asked to end.",
    "LC-1 LC-2 LC-6",
    "One message parked, one that fails, one stop.",
    4,
)
def _(world: World, lib: ModuleType) -> None:
    s = LogScene(world, lib)
    c = s.channel(max_attempts=1)

    def fails(message: bytes) -> None:
        if message == b"bad":
            c.disconnect()
        fails_on_bad(message)

    s.topic.publish(b"bad")
    s.topic.publish(b"bad")
    s.topic.publish(b"good")

    def consumer() -> None:
        for _ in range(2):  # asked to end by each bad message
            c.connect()
            c.consume(fails)

    def operator() -> None:
        for p in c.parked():
            c.replay(p, lambda message: None)

    world.spawn(consumer, name="c")
    world.spawn(operator, name="operator")
