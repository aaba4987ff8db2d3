"""Closed programs over the reference log: publishers, consumers, stops and crashes that meet.

The disk is in memory and no step of its own: what lies before the tail never changes, and nobody reads beyond it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Sized
from contextlib import suppress
from functools import partial
from itertools import pairwise
from types import ModuleType

import seriatim.log as reference
from seriatim.host import Cell, Condition
from seriatim_models.explorer import World
from seriatim_models.programs.base import Programs, Scene
from seriatim_models.programs.disk import Crash, MemoryDisk, ReorderingDisk
from seriatim_models.programs.folder import Folder, files_on
from seriatim_models.recording.log import recorded

LOG_PROGRAMS = Programs("log")


class LogScene(Scene):
    """A scene with one topic. At its end the state of every channel is recorded."""

    def __init__(
        self,
        world: World,
        lib: ModuleType,
        segment_size: int = 1000,
        memory: type[MemoryDisk] | None = None,
    ) -> None:
        super().__init__(world, lib)
        self.segment_size = segment_size
        self.channels: dict[str, reference.Channel] = {}
        self.storage: MemoryDisk = (memory or MemoryDisk)()
        self.topic = self.open()
        world.at_end(self._end)

    def open(self) -> reference.Topic:
        """Return the topic on the disk, opened anew."""
        topic: reference.Topic = self.lib.Topic(
            recorded(self.world.host), self.storage, self.segment_size
        )
        return topic

    def restart(self, kept: int | None = None, zeros: bool = False) -> None:
        """The machine starts again with what survived on its disk; channels are to be opened anew."""
        self.storage = MemoryDisk(self.storage.survivors(kept, zeros))
        self.topic = self.open()

    def recovery(
        self, name: str, before: bytes, *, spoilt: bool = False, refused: bool = False
    ) -> None:
        """Record a file as it was before a topic was opened on it, and as it is now."""
        files = {
            ev: bytes(self.storage.files.get(of, b"")).decode("latin-1")
            for ev, of in (("after", name), ("aside", f"{name}.torn"))
        }
        files["aside"] = files["aside"][: len(before) - len(files["after"])]
        fields = {"before": before.decode("latin-1"), "spoilt": spoilt, "refused": refused}
        self.world.host.record("recovery", **fields, **files)

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
        """Spawn a thread that consumes from a channel."""
        self.world.spawn(lambda: channel.consume(handler), name=name or channel.name, daemon=daemon)

    def consumer(self) -> reference.Channel:
        """Return a channel that is connected and consumed from, on a thread of its own."""
        channel = self.channel()
        channel.connect()
        self.serve(channel)
        return channel

    def backlog(self, *messages: bytes) -> None:
        """Publish on the calling thread."""
        for message in messages:
            self.topic.publish(message)

    def publish(self, *messages: bytes, name: str = "P") -> None:
        """Spawn a publisher of these messages."""
        self.world.spawn(lambda: self.backlog(*messages), name=name)

    def _end(self) -> None:
        self.world.host.record("log_rest", **rest(self.topic, self.channels))


class FilesScene(LogScene):
    """A scene in which the topic lies in a folder of the operating system, by `seriatim.log.Files`."""

    def __init__(self, world: World, lib: ModuleType, segment_size: int = 20) -> None:
        self.folder = Folder()
        super().__init__(world, lib, segment_size)

    def open(self) -> reference.Topic:
        """Return the topic in the folder, opened anew."""
        host, files = recorded(self.world.host), files_on(self.folder, self.lib)
        topic: reference.Topic = self.lib.Topic(host, files, self.segment_size)
        return topic

    def crashed(self, names_synced: bool, data_synced: bool) -> None:
        """The machine starts again with what survived; channels are to be opened anew."""
        self.folder = Folder(self.folder.survivors(names_synced, data_synced))
        self.topic = self.open()

    def _end(self) -> None:
        open_files = len(self.folder.opened)
        self.world.host.record("log_rest", **rest(self.topic, self.channels), open_files=open_files)


def rest(topic: reference.Topic, channels: dict[str, reference.Channel]) -> dict[str, object]:
    """What the properties want to know of a topic and its channels when nothing moves any more."""
    tail = topic.tail.get()
    return {"tail": list(tail), "channels": {name: state(c, tail) for name, c in channels.items()}}


def state(channel: reference.Channel, tail: reference.Position) -> dict[str, object]:
    """Return what the properties read of one channel at rest, `tail` being the end of its topic."""
    try:
        parked = [list(p.place) for p in channel.parked()]
    except Exception:  # a mutant's `Damaged` is another class; what cannot be read is not listed
        parked = []
    return {
        "place": list(channel.topic.start_of_next(channel.position, tail)),
        "connected": channel._state.get() != reference.AWAY,
        "asked": bool(vars(channel).get("_stopping")),
        "listed": sum(c is channel for c in channel.topic._connected.get()),
        "parked": parked,
        "held": sum(
            len(v)
            for v in vars(channel).values()
            if isinstance(v, Sized) and not isinstance(v, str | tuple)
        ),
    }


def fails_on_bad(message: bytes) -> None:
    """Raise if the message is "bad": a handler."""
    if message == b"bad":
        raise ValueError("bad")


SYSTEM_CALLS = 50
"""More than `both` makes that change or sync something."""
CLEARS = 8
"""More changes of the disk than there are when a message of six bytes is published behind one that failed."""
CRASHES = 60
"""More than the disk is changed in `both`: two records of 14 bytes, two syncs, two positions."""
CRASHES_PARKING = 70
"""More than it is changed while a message fails twice and is parked: 67 times, each byte of its record counted."""


def both(scene: LogScene, c: reference.Channel) -> None:
    """Publish, and consume all there is, twice, on one thread."""
    for message in (b"m1", b"m2"):
        scene.topic.publish(message)
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


def handled(scene: LogScene, batch: Sequence[reference.Delivery]) -> None:
    """Record that the messages of a batch were handled, one by one, by who reads channel `c`."""
    for d in batch:
        at = {
            "channel": "c",
            "place": list(d.place),
            "body": bytes(d.message).decode("latin-1"),
        }
        scene.world.host.record("handle", ph="invoke", **at)
        scene.world.host.record("handle", ph="ok", **at)


class Halves(MemoryDisk):
    """A disk that writes to parking files in two halves, and lets somebody else go between them."""

    between: Callable[[], None] | None = None

    def append(self, name: str, data: bytes) -> None:
        """Write one half, let the other go, and write the rest."""
        if self.between is None or not name.endswith(".parked"):
            super().append(name, data)
            return
        super().append(name, data[: len(data) // 2])
        self.between()
        super().append(name, data[len(data) // 2 :])


class Watched(MemoryDisk):
    """A disk before whose every sync of a segment the consumer looks for messages."""

    looks: reference.Channel | None = None

    def sync(self, name: str) -> None:
        """Let the consumer look, and then sync."""
        if self.looks is not None and name.endswith(".log"):
            work_off(self.looks)
        super().sync(name)


scenario = LOG_PROGRAMS.scenarios(LogScene)


@scenario("LC-1 LC-2 LC-3 LC-4 LC-5", traces=4)
def log_rest(scene: LogScene) -> None:
    """A message is published while the consumer finds nothing and is about to sleep.

    Bounds: One channel, one message. A second repeats the race.
    """
    scene.consumer()
    scene.publish(b"m1")


@scenario("LC-1 LC-2 LC-3 LC-4 LC-5", traces=42)
def log_two_messages(scene: LogScene) -> None:
    """Two messages are published one after the other while the consumer reads.

    Bounds: One channel, two messages.
    """
    scene.consumer()
    scene.publish(b"m1", b"m2")


@scenario("LC-1 LC-2 LC-4 LC-5", traces=1, segment_size=20)
def log_backlog(scene: LogScene) -> None:
    """A consumer connects to a backlog, over the end of a segment; nothing more is published.

    Bounds: Two messages in two segments, one channel, one consumer.
    """
    c = scene.channel()
    scene.backlog(b"m1", b"m2")
    c.connect()
    scene.serve(c)


@scenario("LC-1 LC-2 LC-3 LC-4 LC-5", traces=14, segment_size=20)
def log_backlog_and_news(scene: LogScene) -> None:
    """A consumer works off a backlog while a message arrives.

    Bounds: One message there, one arriving, in a segment of its own.
    """
    c = scene.channel()
    scene.backlog(b"m1")
    c.connect()
    scene.serve(c)
    scene.publish(b"m2")


@scenario("LC-1 LC-2 LC-3 LC-4 LC-5", traces=173)
def log_backlog_and_two(scene: LogScene) -> None:
    """A consumer works off a backlog while one message arrives, and another after it.

    Bounds: One message there, two arriving, one publisher.
    """
    c = scene.channel()
    scene.backlog(b"m1")
    c.connect()
    scene.serve(c)
    scene.publish(b"m2", b"m3")


@scenario("LC-1 LC-2 LC-3 LC-4 LC-5", traces=200)
def log_two_publishers(scene: LogScene) -> None:
    """Two publish at once while a consumer is there, which may sleep again between their messages.

    Bounds: One message from each publisher, no backlog.
    """
    scene.consumer()
    scene.publish(b"m1", name="P")
    scene.publish(b"m2", name="Q")


@scenario("LC-1 LC-2 LC-3 LC-4 LC-5", traces=20)
def log_two_channels(scene: LogScene) -> None:
    """One message for two channels, one of which connects meanwhile.

    Bounds: Two channels, one message.
    """
    a, b = scene.channel("a"), scene.channel("b")
    a.connect()
    scene.serve(a)

    def late() -> None:
        b.connect()
        b.consume(lambda message: None)

    scene.world.spawn(late, name="b", daemon=True)
    scene.publish(b"m1")


@scenario("LC-1 LC-3 LC-4 LC-5", traces=16)
def log_new_channel(scene: LogScene) -> None:
    """A channel is made at the tail, and connects, while a message is published.

    Bounds: One new channel, one message.
    """

    def newcomer() -> None:
        c = scene.channel(at_tail=True)
        c.connect()
        c.consume(lambda message: None)

    scene.world.spawn(newcomer, name="c", daemon=True)
    scene.publish(b"m1")


@scenario("LC-1 LC-3", traces=10)
def log_stuck_handler(scene: LogScene) -> None:
    """Messages are published while a handler never returns and another channel is disconnected.

    Bounds: Two messages, one handler that waits for ever, one channel nobody reads.
    """
    c, _ = scene.channel(), scene.channel("away")
    never = scene.world.semaphore(0, name="never")
    busy = scene.world.cell(False, name="busy")

    def handler(message: bytes) -> None:
        busy.set(True)
        never.acquire()

    c.connect()
    scene.serve(c, handler)
    scene.publish(b"m1", b"m2")


@scenario("LC-1 LC-2 LC-4 LC-5 LC-6", traces=44)
def log_poison(scene: LogScene) -> None:
    """A message that always fails lies before one that does not.

    Bounds: Two attempts, so one pause; two messages there, one arriving.
    """
    c = scene.channel()
    scene.backlog(b"bad", b"good")
    c.connect()
    scene.serve(c, fails_on_bad)
    scene.publish(b"more")


@scenario("LC-1 LC-2 LC-6", traces=14)
def log_poison_once(scene: LogScene) -> None:
    """A message that may be tried once fails.

    Bounds: One attempt, so no pause; one message there, one arriving.
    """
    c = scene.channel(max_attempts=1)
    scene.backlog(b"bad")
    c.connect()
    scene.serve(c, fails_on_bad)
    scene.publish(b"more")


@scenario("LC-1 LC-2 LC-4 LC-5", traces=4)
def log_reconnect(scene: LogScene) -> None:
    """A consumer is asked to end while it works, and another takes over where it stopped.

    Bounds: Two messages there, one stop; the other connects when the first has ended.
    """
    c = scene.channel()
    scene.backlog(b"m1", b"m2")
    c.connect()

    def first() -> None:
        c.consume(lambda message: None)
        c.connect()
        scene.serve(c, name="second")

    scene.world.spawn(first, name="first")
    scene.world.spawn(c.disconnect, name="stop")


@scenario("LC-1 LC-2", traces=4)
def log_two_consumers(scene: LogScene) -> None:
    """Two threads would consume from one channel.

    Bounds: One message there, two consumers.
    """
    c = scene.channel()
    scene.backlog(b"m1")
    handling = scene.world.cell(0, name="handling")

    def consumer() -> None:
        try:
            c.connect()
        except scene.lib.Misuse:
            return
        c.consume(handler)

    def handler(message: bytes) -> None:
        handling.get_and_add(1)
        handling.get_and_add(-1)

    scene.world.spawn(consumer, name="A", daemon=True)
    scene.world.spawn(consumer, name="B", daemon=True)


@scenario("LC-3 LC-7 AP-1", traces=1, segment_size=20)
def log_too_large(scene: LogScene) -> None:
    """A message too large for a segment is refused; another publisher goes on.

    Bounds: Two publishers, one of which is refused.
    """
    scene.channel()

    def too_large() -> None:
        with scene.refused(scene.lib.Misuse):
            scene.topic.publish(b"x" * 20)

    scene.world.spawn(too_large, name="large")
    scene.publish(b"m1")


@scenario("LC-1 LC-2 LC-7 LC-8", traces=120, segment_size=20, thread="life")
def log_crash(scene: LogScene) -> None:
    """The machine stops at any write, and the topic and its channel are opened again.

    Bounds: One publisher and consumer in turn, two messages in two segments; every byte and every other change of
    the disk.
    """

    scene.storage.budget = scene.storage.spent + scene.world.choose(CRASHES)
    with suppress(Crash):
        both(scene, scene.channel())
    kept = (None, 0)[scene.world.choose(2)]
    scene.restart(kept, zeros=True)
    both(scene, scene.channel())


@scenario("LC-1 LC-2 LC-8", traces=60, memory=Watched, thread="life")
def log_seen_before_durable(scene: LogScene) -> None:
    """A consumer looks whenever a message is about to be made durable, and the machine stops there.

    Bounds: One publisher and consumer in turn on one thread, one message before the crash, one after it.
    """

    scene.storage.looks = scene.channel()  # type: ignore[attr-defined]  # it is a `Watched`
    scene.storage.budget = scene.storage.spent + scene.world.choose(CRASHES)
    with suppress(Crash):
        scene.topic.publish(b"m1")
        work_off(scene.channels["c"])
    scene.restart(0)
    c = scene.channel()
    scene.topic.publish(b"m2")
    work_off(c)


@scenario("LC-1 LC-2 LC-7 LC-8", traces=1, thread="life")
def log_empty_message(scene: LogScene) -> None:
    """An empty message lies before another one when the topic is opened again.

    Bounds: Sequential; two messages, one more after the reopening.
    """

    for message in (b"", b"m2"):
        scene.topic.publish(message)
    scene.restart()
    c = scene.channel()
    scene.topic.publish(b"m3")
    work_off(c)


@scenario("LC-1 LC-2 LC-3 LC-4 LC-5 LC-7 LC-8", traces=42, segment_size=20)
def log_roll_over(scene: LogScene) -> None:
    """A publisher fills one segment after the other while a consumer reads over their ends.

    Bounds: Two messages, a segment each, one consumer.
    """
    scene.consumer()

    def publisher() -> None:
        for message in (b"m1", b"m2"):
            with suppress(scene.lib.Misuse):
                scene.topic.publish(message)

    scene.world.spawn(publisher, name="P")


@scenario("LC-1 LC-2 LC-7", traces=5, segment_size=20)
def log_batch(scene: LogScene) -> None:
    """A batch is read over the end of a segment, and then handled, while a message is published.

    Bounds: Two messages there, in two segments, one arriving; one batch of at most three.
    """
    c = scene.channel()
    scene.backlog(b"m1", b"m2")

    def batch() -> None:
        found = c.read(3)
        handled(scene, found)
        c.commit(found[-1].following)

    scene.world.spawn(batch, name="batch")
    scene.publish(b"m3")


@scenario("LC-1 LC-2 LC-3 LC-4", traces=420)
def log_name_taken(scene: LogScene) -> None:
    """A second channel of a name would be opened and consumed, while messages are published to the first.

    Bounds: Two messages, one channel, one who asks for another of its name.
    """
    scene.consumer()

    def second() -> None:
        with suppress(scene.lib.Misuse):
            same = scene.lib.Channel(scene.topic, "c")
            same.connect()
            same.consume(lambda message: None)

    scene.world.spawn(second, name="second", daemon=True)
    scene.publish(b"m1", b"m2")


@scenario("LC-1 LC-2 LC-3", traces=2)
def log_opened_at_once(scene: LogScene) -> None:
    """Two threads open a channel of one name, and consume; one of them is refused.

    Bounds: One message there, two who open, neither of whom was there before.
    """
    scene.backlog(b"m1")

    def consumer() -> None:
        with suppress(scene.lib.Misuse):
            c = scene.channel()
            c.connect()
            c.consume(lambda message: None)

    scene.world.spawn(consumer, name="A", daemon=True)
    scene.world.spawn(consumer, name="B", daemon=True)


@scenario("LC-1 LC-2 LC-6", traces=2)
def log_refused_and_tried(scene: LogScene) -> None:
    """A message fails, and a commit behind the end or before it is refused: how often it failed stays as it was.

    Bounds: Sequential; one message that is handled and one that fails, three attempts, one refused commit after the
    first.
    """
    c = scene.channel(max_attempts=3)
    scene.backlog(b"good", b"bad")

    def life() -> None:
        handle_until_bad(scene, c)
        refused = (scene.lib.Position(5, 0), scene.lib.Position(0, 0))[scene.world.choose(2)]
        with suppress(scene.lib.PastTheEnd, scene.lib.Misuse):
            c.commit(refused)
        handle_until_bad(scene, c)
        handle_until_bad(scene, c)

    scene.world.spawn(life, name="life")


@scenario("LC-1 LC-2", traces=1)
def log_commit_back(scene: LogScene) -> None:
    """Two messages are handled, and the second is committed before the first.

    Bounds: Sequential; two messages there, one channel.
    """
    c = scene.channel()
    scene.backlog(b"m1", b"m2")

    def batch() -> None:
        found = c.read(2)
        handled(scene, found)
        for d in reversed(found):
            with suppress(scene.lib.Misuse):
                c.commit(d.following)

    scene.world.spawn(batch, name="batch")


@scenario("LC-1 LC-2 LC-6", traces=1, memory=Halves)
def log_parked_while_opened(scene: LogScene) -> None:
    """A consumer parks a message, and another channel of the name would be opened while half of it is written.

    Bounds: Sequential but for the disk, which stops between the two halves; one message that fails.
    """
    c = scene.channel(max_attempts=1)
    scene.backlog(b"bad")

    def second() -> None:
        with suppress(scene.lib.Misuse):
            scene.lib.Channel(scene.topic, "c")

    def fails(message: bytes) -> None:
        c.disconnect()
        fails_on_bad(message)

    def consumer() -> None:
        scene.storage.between = second  # type: ignore[attr-defined]  # it is a `Halves`
        c.connect()
        c.consume(fails)

    scene.world.spawn(consumer, name="c")


@scenario("LC-1 LC-2 LC-6", traces=5)
def log_replay(scene: LogScene) -> None:
    """An operator replays a parked message while the consumer parks another and is asked to end.

    Bounds: One message parked, one that fails, one stop.
    """
    c = scene.channel(max_attempts=1)

    def fails(message: bytes) -> None:
        if message == b"bad":
            c.disconnect()
        fails_on_bad(message)

    scene.backlog(b"bad", b"bad", b"good")

    def consumer() -> None:
        for _ in range(2):  # asked to end by each bad message
            c.connect()
            c.consume(fails)

    def operator() -> None:
        for p in c.parked():
            c.replay(p, lambda message: None)

    scene.world.spawn(consumer, name="c")
    scene.world.spawn(operator, name="operator")


@scenario("LC-1 LC-2 LC-6", traces=1, thread="life")
def log_attempts_kept(scene: LogScene) -> None:
    """A message has failed once; two commits are refused, and the topic is opened again.

    Bounds: Sequential; two attempts, one message that is handled and two that fail, a stop at each failure.
    """

    scene.backlog(b"good", b"bad", b"bad")
    c = scene.channel()
    handle_until_bad(scene, c)
    for refused in (scene.lib.Position(9, 0), scene.lib.Position(0, 0)):
        with suppress(scene.lib.Misuse, scene.lib.PastTheEnd):
            c.commit(refused)
    for times in (2, 1):
        scene.restart()
        c = scene.channel()
        for _ in range(times):
            handle_until_bad(scene, c)


@scenario("LC-7 LC-8", traces=6)
def log_closed(scene: LogScene) -> None:
    """A topic is closed while a message is published; then its segment is lost, and it is opened again.

    Bounds: One message, one closing, all of the segment. What was there is missed: `Damaged`.
    """
    done = scene.world.semaphore(0, name="done")

    def publisher() -> None:
        with suppress(scene.lib.Misuse):
            scene.topic.publish(b"m1")
        done.release()

    def closer() -> None:
        scene.topic.close()
        done.release()

    def loser() -> None:
        done.acquire()
        done.acquire()
        scene.storage.truncate("00000000.log", 0)
        with suppress(scene.lib.Damaged):
            scene.open()

    for fn in (publisher, closer, loser):
        scene.world.spawn(fn, name=fn.__name__)


@scenario("LC-8", traces=180, thread="life")
def log_crash_while_opened(scene: LogScene) -> None:
    """The machine stops at any write, and again while the topic is opened: what was cut off stands beside the segment.

    Bounds: Sequential; one message, every byte and every other change of the disk, one stop each time.
    """

    scene.storage.budget = scene.storage.spent + scene.world.choose(CRASHES)
    with suppress(Crash):
        scene.backlog(b"m1")
    scene.storage = MemoryDisk(scene.storage.survivors(), scene.world.choose(3))
    was = scene.storage.survivors()
    with suppress(Crash):
        scene.open()
    scene.restart()
    for name in set(was) - {"topic.json"}:
        scene.recovery(name, was[name])


@scenario("LC-8", traces=14, thread="life")
def log_damaged(scene: LogScene) -> None:
    """One byte of the last message is wrong when the topic is opened: it says so and changes nothing.

    Bounds: Sequential; two messages, each byte of the second.
    """

    scene.backlog(b"m1", b"m2")
    data = scene.storage.files["00000000.log"]
    data[len(data) // 2 + scene.world.choose(len(data) // 2)] ^= 0xFF
    was = scene.storage.survivors()
    try:
        scene.open()
    except scene.lib.Damaged:
        scene.recovery("00000000.log", was["00000000.log"], spoilt=True, refused=True)
    else:
        scene.recovery("00000000.log", was["00000000.log"], spoilt=True)


class FailsOnce(ReorderingDisk):
    """A disk whose changes are counted: of them one fails, and at one the machine stops, without effect.

    An append fails half-way, a sync without effect, a replace when it has happened.
    """

    changes = 0
    fails_at: int | None = None
    stops_at: int | None = None

    def _fails(self) -> bool:
        if self.changes == self.stops_at:
            raise Crash
        self.changes += 1
        return self.changes - 1 == self.fails_at

    def append(self, name: str, data: bytes) -> None:
        """Write all, or write one half and raise `OSError`."""
        failing = self._fails()
        super().append(name, data[: len(data) // 2] if failing else data)
        if failing:
            raise OSError("no space left")

    def truncate(self, name: str, size: int) -> None:
        """Cut a file off."""
        self._fails()
        super().truncate(name, size)

    def sync(self, name: str) -> None:
        """Sync the file, or raise `OSError`."""
        if self._fails():
            raise OSError("input/output error")
        super().sync(name)

    def replace(self, name: str, data: bytes) -> None:
        """Write a whole file, and then perhaps raise `OSError`: the folder could not be synced."""
        failing = self._fails()
        super().replace(name, data)
        if failing:
            raise OSError("input/output error")


@scenario("LC-1 LC-2 LC-8", traces=507, segment_size=30, memory=FailsOnce)
def log_crash_while_cleared(scene: LogScene) -> None:
    """A publish fails; the next one clears what it left; the machine stops there, and leaves any part of what was not
    synced.

    Bounds: Sequential; one message there, one that fails at any of its three changes of the disk, one behind it, in
    the same segment or, being longer, in the next; every change of the disk; a file as long as it was at any moment, or
    half-way between, with each four bytes of it old or new.
    """
    disk = scene.storage
    assert isinstance(disk, FailsOnce)

    def life() -> None:
        scene.backlog(b"m1")
        disk.fails_at = disk.changes + scene.world.choose(3)
        with suppress(OSError):
            scene.topic.publish(b"m2")
        message = (b"m3", b"longer")[scene.world.choose(2)]
        disk.stops_at = disk.changes + scene.world.choose(CLEARS)
        with suppress(Crash):
            scene.topic.publish(message)
        left = disk.left(scene.world.choose)
        scene.storage = MemoryDisk(left)
        try:
            scene.topic = scene.open()
            scene.topic.publish(b"m4")
            work_off(scene.channel())
        except scene.lib.Damaged as error:
            scene.recovery(error.file, left[error.file], refused=True)

    scene.world.spawn(life, name="life")


VANISHED = 45
"""The length of a segment in which three messages of two bytes lie."""


def vanished(files: dict[str, bytes], size: int) -> list[tuple[str, dict[str, bytes]]]:
    """Return what may happen to whole records of `size` bytes and to segments, each with the file that it befalls."""
    logs = sorted(name for name in files if name.endswith(".log"))
    found = []
    for name in logs:
        data = files[name]
        starts = range(0, len(data), size)
        found += [(name, {**files, name: data[:at]}) for at in starts]
        found += [(name, {**files, name: data[:at] + data[at + size :]}) for at in starts[:-1]]
    for one, other in pairwise(logs):
        found.append((one, {**files, one: files[other], other: files[one]}))
    return found


def exchanged(
    lives: Sequence[dict[str, bytes]], other: dict[str, bytes], size: int
) -> list[tuple[str, dict[str, bytes]]]:
    """Return what another topic's records of `size` bytes may do in the places of a topic's own.

    `lives` has the files of the topic after each message: a record stands before the mark, or is the one behind it.
    Of an empty topic nobody can say whose the one behind the mark is.
    """
    found = []
    for now, then in pairwise(lives):
        name, at = next((n, len(now.get(n, b""))) for n in sorted(then) if then[n] != now.get(n))
        record = other[name][at : at + size]
        if now is not lives[0]:
            found.append((name, {**now, name: now.get(name, b"") + record}))
        whole = lives[-1][name]
        found.append((name, {**lives[-1], name: whole[:at] + record + whole[at + size :]}))
    return found


def read_spoilt(scene: LogScene, name: str, left: dict[str, bytes]) -> None:
    """Read a topic to its end from these files, one of which is spoilt, and record whether it was refused."""
    scene.storage = MemoryDisk(left)
    seen = False
    try:
        scene.lib.Channel(scene.open(), "reader").read(9)
    except scene.lib.Damaged:
        seen = True
    scene.recovery(name, left[name], spoilt=True, refused=seen)


def put_back_mark(scene: LogScene, messages: int) -> dict[str, bytes]:
    """Publish so many, put the state file back as it was after any number of them, and return the files before that."""
    marks = [scene.storage.survivors()]
    for k in range(messages):
        scene.topic.publish(b"m%d" % k)
        marks.append(scene.storage.survivors())
    mark = marks[scene.world.choose(len(marks))]["topic.json"]
    scene.storage = MemoryDisk({**marks[-1], "topic.json": mark})
    return marks[-1]


@scenario("LC-8", traces=29, segment_size=VANISHED)
def log_vanished(scene: LogScene) -> None:
    """Whole records are gone, at the end or before it, or segments are empty or have changed places: it is noticed.

    Bounds: Sequential; seven messages in three segments, each record and each segment by itself, neighbours swapped,
    or a record or a segment of another topic in the place of one, or a record behind the mark; at once or when it is
    read.
    """

    elsewhere = MemoryDisk()
    other_topic = scene.lib.Topic(scene.world.host, elsewhere, scene.segment_size)

    def life() -> None:
        size = reference.HEADER.size + 2
        lives = [scene.storage.survivors()]
        for k in range(7):
            scene.topic.publish(b"m%d" % k)
            other_topic.publish(b"x%d" % k)
            lives.append(scene.storage.survivors())
        mine, other = lives[-1], elsewhere.survivors()
        ways = vanished(mine, size) + exchanged(lives, other, size)
        ways += [(n, {**mine, n: other[n]}) for n in sorted(mine) if n.endswith(".log")]
        name, left = ways[scene.world.choose(len(ways))]
        read_spoilt(scene, name, left)

    scene.world.spawn(life, name="life")


@scenario("LC-1 LC-2 LC-8", traces=8, segment_size=VANISHED, thread="life")
def log_old_mark(scene: LogScene) -> None:
    """The topic's state file is put back as it was some messages ago: each message that lies behind it is taken.

    Bounds: Sequential; seven messages in three segments, the state file as it was after any number of them.
    """

    written = put_back_mark(scene, 7)
    try:
        scene.topic = scene.open()
        work_off(scene.channel())
    except scene.lib.Damaged as error:
        scene.recovery(error.file, written[error.file], refused=True)
    for name in written:
        if name.endswith(".log"):
            scene.recovery(name, written[name])


@scenario("LC-8", traces=35, segment_size=VANISHED, thread="life")
def log_vanished_behind_old_mark(scene: LogScene) -> None:
    """The topic is opened with an older state file and takes what lies behind it; records that go then are missed.

    Bounds: Sequential; four messages in two segments, the state file as it was after any number of them, then each
    record and each segment by itself, or both segments swapped.
    """

    put_back_mark(scene, 4)
    scene.open()
    ways = vanished(scene.storage.survivors(), reference.HEADER.size + 2)
    name, left = ways[scene.world.choose(len(ways))]
    read_spoilt(scene, name, left)


# ---- the disk itself

files_scenario = LOG_PROGRAMS.scenarios(FilesScene)


@files_scenario("LC-1 LC-2 LC-3 LC-8", traces=200, thread="life")
def log_files_crash(scene: FilesScene) -> None:
    """The machine stops at any call of the operating system; of names and of data what was synced is left, or all.

    Bounds: One publisher and consumer in turn, two messages in two segments, one crash; nothing survives of what was
    not synced, or everything, for all names alike and for what is in all files alike.
    """

    scene.folder.crash_at = scene.folder.calls + scene.world.choose(SYSTEM_CALLS)
    with suppress(Crash):
        both(scene, scene.channel())
    names, data = scene.world.choose(2), scene.world.choose(2)
    scene.crashed(names == 0, data == 0)
    both(scene, scene.channel())


@files_scenario("LC-1 LC-2 LC-3 LC-8", traces=50, thread="life")
def log_files_fail(scene: FilesScene) -> None:
    """Any one call of the operating system fails; then the topic is opened again, and no file is left open.

    Bounds: One publisher and consumer in turn, two messages in two segments, one failure.
    """

    scene.folder.fail_at = scene.folder.calls + scene.world.choose(SYSTEM_CALLS)
    with suppress(OSError):
        both(scene, scene.channel())
    scene.folder.fail_at = None
    scene.topic = scene.open()
    both(scene, scene.channel())


# ---- failures of handlers and of the disk, and calls that come at the wrong moment


class Failing(MemoryDisk):
    """A disk on which the next write to the log or to a parking file fails half-way, as often as `failures` says."""

    failures = 0

    def append(self, name: str, data: bytes) -> None:
        """Write all, or write one half and raise `OSError`."""
        if self.failures and not name.endswith(".channel"):
            self.failures -= 1
            super().append(name, data[: len(data) // 2])
            raise OSError("no space left")
        super().append(name, data)


def handle_until_bad(scene: LogScene, c: reference.Channel) -> None:
    """Connect and consume; the consumer asks itself to end at each message that fails."""

    def fails(message: bytes) -> None:
        if message == b"bad":
            c.disconnect()
        fails_on_bad(message)

    c.connect()
    c.consume(fails)


@scenario("LC-1 LC-2 LC-6", traces=1)
def log_replay_fails(scene: LogScene) -> None:
    """A parked message is replayed by a handler that fails, and stays parked.

    Bounds: Sequential; one parked message, one channel, one replay. One that succeeds is in `log-replay-again`.
    """
    c = scene.channel(max_attempts=1)
    scene.backlog(b"bad", b"good")

    def life() -> None:
        handle_until_bad(scene, c)
        (parked,) = c.parked()
        with suppress(ValueError):
            c.replay(parked, fails_on_bad)

    scene.world.spawn(life, name="life")


@scenario("LC-1 LC-2 LC-6", traces=1)
def log_replay_again(scene: LogScene) -> None:
    """A parked message is replayed, and once more, which is refused: its handler is not called.

    Bounds: Sequential; one parked message, one channel.
    """
    c = scene.channel(max_attempts=1)
    scene.backlog(b"bad", b"good")

    def life() -> None:
        handle_until_bad(scene, c)
        (parked,) = c.parked()

        def handler(message: bytes) -> None:
            at = {"channel": "operator", "place": list(parked.place), "body": "bad"}
            for ph in ("invoke", "ok"):
                scene.world.host.record("handle", ph=ph, **at)

        for _ in range(2):
            with suppress(scene.lib.Misuse):
                c.replay(parked, handler)

    scene.world.spawn(life, name="life")


@scenario("LC-1 LC-2 LC-6", traces=1)
def log_replay_calls(scene: LogScene) -> None:
    """The handler of a replay publishes to the topic, and asks what else is parked.

    Bounds: Sequential; one parked message, one channel, whose consumer has ended.
    """
    c = scene.channel(max_attempts=1)
    scene.backlog(b"bad", b"good")

    def life() -> None:
        handle_until_bad(scene, c)
        (parked,) = c.parked()

        def handler(message: bytes) -> None:
            scene.topic.publish(b"again")
            assert c.parked() == [parked], "it is parked until its handler has returned"

        c.replay(parked, handler)

    scene.world.spawn(life, name="life")


@scenario("LC-1 LC-2 LC-6", traces=1, thread="life")
def log_parked_and_stopped(scene: LogScene) -> None:
    """A message is parked, the topic is opened again, and the next message fails, too.

    Bounds: Sequential; two attempts, two messages that fail, a stop at each failure.
    """

    scene.backlog(b"bad", b"bad")
    c = scene.channel()
    for _ in range(2):
        handle_until_bad(scene, c)
    scene.restart()
    c = scene.channel()
    for _ in range(2):
        handle_until_bad(scene, c)


@scenario("LC-1 LC-2 LC-6", traces=1, thread="life")
def log_stopped_in_pause(scene: LogScene) -> None:
    """The machine stops while a consumer pauses after a failure: the failure counts when it goes on.

    Bounds: Sequential; two attempts, one message that fails, one stop in the first pause.
    """

    scene.backlog(b"bad")
    c = scene.channel()
    c._asked = Stops()  # type: ignore[assignment]  # all that a pause asks of it
    with suppress(Crash):
        c.connect()
        c.consume(fails_on_bad)
    scene.restart()
    handle_until_bad(scene, scene.channel())


class Stops:
    """A condition at which the machine stops."""

    def wait(self, timeout: float) -> bool:
        """Raise `Crash`."""
        raise Crash

    def notify(self) -> None:
        """Do nothing: nobody waits."""


@scenario("LC-1 LC-6", traces=15)
def log_pause_ended(scene: LogScene) -> None:
    """A consumer that pauses after a failure, for longer than anybody waits, wakes for no reason, and is asked to end.

    Bounds: One message that fails, one such moment, one request to end; the consumer's thread then publishes.
    """
    scene.backlog(b"bad")
    c = scene.channel()
    c._asked = LongPause(c._asked)
    c.connect()

    def life() -> None:
        c.consume(fails_on_bad)
        scene.topic.publish(b"after")

    def wake_in_vain() -> None:
        with c._lock:
            c._asked.notify_all()

    scene.world.spawn(life, name="life")
    scene.world.spawn(c.disconnect, name="operator")
    scene.world.spawn(wake_in_vain, name="nobody")


class LongPause:
    """A condition at which no time limit runs out."""

    def __init__(self, condition: Condition) -> None:
        self.condition = condition
        self.notify, self.notify_all = condition.notify, condition.notify_all

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until notified."""
        return self.condition.wait()


@scenario("LC-1 LC-2", traces=1, thread="life")
def log_read_before_damage(scene: LogScene) -> None:
    """A message before one that was damaged is read by itself, handled and committed.

    Bounds: Sequential; two messages. The last byte of the second came to be wrong behind the back of the open topic.
    """

    scene.backlog(b"m1", b"m2")
    scene.storage.files["00000000.log"][-1] ^= 0xFF
    c = scene.channel()
    found = c.read(1)
    handled(scene, found)
    c.commit(found[-1].following)


@scenario("LC-1 LC-2", traces=1)
def log_commit_refused(scene: LogScene) -> None:
    """A commit past the end is refused, and the channel goes on where it stood.

    Bounds: Sequential; two messages, one commit behind them, in a segment that is not there.
    """
    c = scene.channel()
    scene.backlog(b"m1", b"m2")

    def life() -> None:
        with suppress(scene.lib.PastTheEnd):
            c.commit(scene.lib.Position(7, 0))
        work_off(c)

    scene.world.spawn(life, name="life")


@scenario("LC-1 LC-2 AP-1", traces=1)
def log_commit_when_connected(scene: LogScene) -> None:
    """A channel's consumer commits a batch between connecting and consuming, and consumes the rest; back is refused.

    Bounds: Sequential; two messages there, a batch of one.
    """
    scene.backlog(b"m1", b"m2")
    c = scene.channel()

    def life() -> None:
        c.connect()
        batch = c.read(1)
        handled(scene, batch)
        with scene.accepted(scene.lib.Misuse):
            c.commit(batch[-1].following)
        with scene.refused(scene.lib.Misuse):
            c.commit(batch[-1].place)
        c.consume(lambda message: c.disconnect())

    scene.world.spawn(life, name="life")


@scenario("LC-1 LC-2 LC-7 LC-8", traces=1, segment_size=40, memory=Failing)
def log_disk_fails(scene: LogScene) -> None:
    """Two publishes fail half-way; one is made again in its place, the other is given up, and a segment begins.

    Bounds: Sequential; two messages that get there and are read, one that does not, one consumer.
    """
    c = scene.channel()

    def life() -> None:
        for message, failures in ((b"m1", 1), (b"m1", 0), (b"m2", 1), (b"m3 is much longer", 0)):
            scene.storage.failures = failures  # type: ignore[attr-defined]  # it is a `Failing`
            with suppress(OSError):
                scene.topic.publish(message)
        work_off(c)

    scene.world.spawn(life, name="life")


@scenario("LC-1 LC-2 LC-6", traces=1, memory=Failing)
def log_replay_disk_fails(scene: LogScene) -> None:
    """The disk fails half-way when a message that was replayed is struck off; it is replayed again.

    Bounds: Sequential; one parked message, two replays, one failure of the disk.
    """
    c = scene.channel(max_attempts=1)
    scene.backlog(b"bad")

    def life() -> None:
        handle_until_bad(scene, c)
        (parked,) = c.parked()
        for failures in (1, 0):
            scene.storage.failures = failures  # type: ignore[attr-defined]  # it is a `Failing`
            with suppress(OSError):
                c.replay(parked, lambda message: None)

    scene.world.spawn(life, name="life")


@scenario("LC-1 LC-2 LC-6", traces=1, memory=Failing)
def log_parking_fails(scene: LogScene) -> None:
    """The disk fails half-way when a message is parked; it is parked in the next attempt, and listed.

    Bounds: Sequential; two messages that fail twice, one failure of the disk for each: the channel of the first goes
    on, and that of the second is opened again.
    """
    c = scene.channel(max_attempts=2)
    scene.backlog(b"bad", b"bad")

    def fails_to_park() -> None:
        handle_until_bad(scene, c)
        scene.storage.failures = 1  # type: ignore[attr-defined]  # it is a `Failing`
        with suppress(OSError):
            handle_until_bad(scene, c)

    def life() -> None:
        fails_to_park()
        handle_until_bad(scene, c)
        fails_to_park()
        scene.restart()
        handle_until_bad(scene, scene.channel(max_attempts=2))

    scene.world.spawn(life, name="life")


@scenario("LC-1 LC-2 LC-3", traces=1)
def log_handler_exits(scene: LogScene) -> None:
    """A handler ends its thread; the channel is connected to again, and the message is handled.

    Bounds: Sequential; one message, one handler that exits, one that returns.
    """
    c = scene.channel()
    scene.backlog(b"m1")

    def exits(message: bytes) -> None:
        raise SystemExit

    def life() -> None:
        with suppress(SystemExit):
            c.connect()
            c.consume(exits)
        work_off(c)

    scene.world.spawn(life, name="life")


@scenario("LC-1 LC-3 LC-4", traces=16)
def log_take_over(scene: LogScene) -> None:
    """A consumer ends while another connects in its place; then a message is published.

    Bounds: One channel, one consumer that was asked to end, one that tries once, one message.
    """
    c = scene.channel()
    c.connect()
    c.disconnect()

    def other() -> None:
        with suppress(scene.lib.Misuse):
            c.connect()
            c.consume(lambda message: None)

    scene.serve(c, name="first")
    scene.world.spawn(other, name="second", daemon=True)
    scene.publish(b"m1")


@scenario("LC-3", traces=6)
def log_stop_and_news(scene: LogScene) -> None:
    """A consumer that may sleep is asked to end; the message that is published after that is not for it.

    Bounds: One consumer, one stop, one message on the thread that stops.
    """
    c = scene.consumer()

    def stop() -> None:
        c.disconnect()
        scene.topic.publish(b"m1")

    scene.world.spawn(stop, name="stop")


@scenario("LC-3", traces=7)
def log_leave_and_join(scene: LogScene) -> None:
    """One channel's consumer ends while another channel is connected; then a message is published.

    Bounds: Two channels, of which nobody consumes the second, one message.
    """
    a, b = scene.channel("a"), scene.channel("b")
    a.connect()
    a.disconnect()
    scene.serve(a)

    def join() -> None:
        b.connect()
        scene.topic.publish(b"m1")

    scene.world.spawn(join, name="b")


@scenario("LC-1 LC-2 LC-6", traces=3, memory=Halves)
def log_parked_while_parking(scene: LogScene) -> None:
    """A consumer parks a message while an operator looks at what is parked.

    Bounds: One message that fails, one look; the disk writes a parked message in two halves.
    """
    c = scene.channel(max_attempts=1)
    scene.backlog(b"bad")
    half = scene.world.cell(0, name="half")
    scene.storage.between = lambda: half.set(1)  # type: ignore[attr-defined]  # it is a `Halves`

    def look() -> None:
        half.get()
        c.parked()

    scene.world.spawn(partial(handle_until_bad, scene, c), name="c")
    scene.world.spawn(look, name="operator")


@scenario("LC-3 LC-7 LC-8", traces=2, segment_size=30)
def log_full_for_two(scene: LogScene) -> None:
    """Two publishers meet where a segment ends: both messages go into the next one.

    Bounds: Two messages, which fill a segment; two publishers with one message each, and one channel nobody reads.
    """
    scene.channel()
    scene.backlog(b"m1", b"m2")
    for name in ("P1", "P2"):
        scene.publish(name.encode(), name=name)


@scenario("LC-7 LC-8 AP-1", traces=3, segment_size=30)
def log_closed_and_opened(scene: LogScene) -> None:
    """A topic is closed while a message is published; it is opened anew, as by another process, and published to.

    Bounds: One message there, one to each of the two, of which the first wants a new segment; one that is refused.
    """
    scene.backlog(b"m0")
    first = scene.topic

    def publisher() -> None:
        with suppress(scene.lib.Misuse):
            first.publish(b"longer one")

    def closer() -> None:
        first.close()
        scene.topic = scene.open()
        scene.topic.publish(b"m2")
        with scene.refused(scene.lib.Misuse):
            first.publish(b"longer one")
        scene.topic = scene.open()

    scene.world.spawn(publisher, name="P")
    scene.world.spawn(closer, name="closer")


@scenario("LC-5", traces=3)
def log_connect_and_stop(scene: LogScene) -> None:
    """A consumer connects while it is asked to end.

    Bounds: No messages, one consumer, one request, which comes too early or ends it.
    """
    c = scene.channel()

    def consumer() -> None:
        c.connect()
        c.consume(lambda message: None)

    scene.world.spawn(consumer, name="c", daemon=True)
    scene.world.spawn(c.disconnect, name="stop")


class SlowToRead(MemoryDisk):
    """A disk that reads from a segment only when somebody has published meanwhile."""

    before_reading: Callable[[], object] | None = None

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Wait, once, and read."""
        wait, self.before_reading = self.before_reading, None
        if wait is not None:
            wait()
        return super().read(name, offset, length)


@scenario("LC-1 LC-3 LC-4", traces=4, memory=SlowToRead)
def log_slow_to_read(scene: LogScene) -> None:
    """A message is published while a consumer waits for the disk that is to read another.

    Bounds: One message there, one arriving, one read that ends when that is published.
    """
    published = scene.world.semaphore(0, name="published")
    scene.backlog(b"m1")
    scene.consumer()
    scene.storage.before_reading = published.acquire  # type: ignore[attr-defined]  # it is a `SlowToRead`

    def publisher() -> None:
        scene.topic.publish(b"m2")
        published.release()

    scene.world.spawn(publisher, name="P")


class Stepwise(MemoryDisk):
    """A disk each of whose calls that concern a channel's state is a step, so that others come between."""

    there: Cell[int] | None = None

    def _step(self, writes: bool) -> None:
        if self.there is not None:
            self.there.add(1) if writes else self.there.get()

    def names(self) -> list[str]:
        """Return the names of all files."""
        self._step(writes=False)
        return super().names()

    def size(self, name: str) -> int:
        """Return the length of a file."""
        self._step(writes=False)
        return super().size(name)

    def replace(self, name: str, data: bytes) -> None:
        """Write a whole file."""
        self._step(writes=True)
        super().replace(name, data)


@scenario("LC-1", traces=12, memory=FailsOnce)
def log_opened_while_failing(scene: LogScene) -> None:
    """Two threads open a channel of one name, and the disk fails for the first: then both try again.

    Bounds: One failure; one message there, which one of them reads.
    """
    disk = scene.storage
    assert isinstance(disk, FailsOnce)
    scene.backlog(b"m1")
    disk.fails_at = disk.changes

    def opens() -> None:
        for _ in range(2):
            with suppress(scene.lib.Misuse, OSError):
                handled(scene, scene.channel().read())

    scene.world.spawn(opens, name="A")
    scene.world.spawn(opens, name="B")
    scene.world.at_end(lambda: _opened(scene))


def _opened(scene: LogScene) -> None:
    """Record that nobody could open the channel, though each was asked to twice, if so."""
    if not scene.channels:
        scene.world.host.record("raised", error="nobody could open c", declared=False)


@scenario("LC-1 LC-2 AP-1", traces=1)
def log_handler_commits(scene: LogScene) -> None:
    """A handler would commit past its message, and past the next: it is refused, and both are handled.

    Bounds: Sequential; two messages there, one consumer.
    """
    scene.backlog(b"m1", b"m2")
    c = scene.channel()

    def handler(message: bytes) -> None:
        with scene.refused(scene.lib.Misuse):
            c.commit(scene.topic.tail.get())
        if message == b"m2":
            c.disconnect()

    def life() -> None:
        c.connect()
        c.consume(handler)

    scene.world.spawn(life, name="life")


@scenario("LC-1 LC-6 AP-1", traces=1, thread="life")
def log_tried_often(scene: LogScene) -> None:
    """A message that has failed two thousand times fails once more, and the consumer pauses no longer than it may.

    Bounds: Sequential; one message, one pause. A first pause that is no number, or longer than an hour, is refused.
    """
    scene.backlog(b"bad")
    for pause in (math.nan, 3601.0):
        with scene.refused(scene.lib.Misuse):
            scene.lib.Channel(scene.topic, "c", pause=pause)
    c = scene.channel(max_attempts=3000)
    c.attempts = 2000

    def fails(message: bytes) -> None:
        if c.attempts > 2000:
            c.disconnect()
        fails_on_bad(message)

    c.connect()
    try:
        c.consume(fails)
    except OverflowError as error:
        scene.world.host.record("raised", error=repr(error), declared=False)


@scenario("LC-1", traces=22, memory=Stepwise)
def log_opened_step_by_step(scene: LogScene) -> None:
    """Two threads open a channel of one name while the disk shows each what the other has done so far.

    Bounds: One message there; one of them is refused, and the other reads.
    """
    scene.backlog(b"m1")
    scene.storage.there = scene.world.cell(0, name="disk")  # type: ignore[attr-defined]  # it is a `Stepwise`

    def opens() -> None:
        with suppress(scene.lib.Misuse):
            work_off(scene.channel())

    for name in ("A", "B"):
        scene.world.spawn(opens, name=name)


@scenario("LC-1 LC-2 LC-6", traces=70, thread="life")
def log_crash_while_parked(scene: LogScene) -> None:
    """The machine stops at any write while a message fails and is parked: it is tried as often as is stated.

    Bounds: Sequential; two attempts, one message that fails, every byte and every other change of the disk.
    """

    scene.backlog(b"bad")
    scene.storage.budget = scene.storage.spent + scene.world.choose(CRASHES_PARKING)
    with suppress(Crash):
        c = scene.channel()
        for _ in range(2):
            handle_until_bad(scene, c)
    scene.restart()
    c = scene.channel()
    while c.read():
        handle_until_bad(scene, c)


@scenario("LC-1 LC-2 LC-3", traces=2)
def log_consumed_twice(scene: LogScene) -> None:
    """Two threads would consume from a channel that one of them connected; one is refused.

    Bounds: One message there, two threads.
    """
    scene.backlog(b"m1")
    c = scene.channel()
    c.connect()

    def consumer() -> None:
        with suppress(scene.lib.Misuse):
            c.consume(lambda message: None)

    for name in ("A", "B"):
        scene.world.spawn(consumer, name=name, daemon=True)


@scenario("LC-1 AP-1", traces=1)
def log_not_connected(scene: LogScene) -> None:
    """A channel to which nobody is connected is consumed, before there was anybody and after; both are refused.

    Bounds: Sequential; one message, one consumer between the two calls.
    """
    scene.backlog(b"m1")
    c = scene.channel()

    def life() -> None:
        for _ in range(2):
            with scene.refused(scene.lib.Misuse):
                c.consume(lambda message: None)
            work_off(c)

    scene.world.spawn(life, name="life")


SPOILT = (
    lambda state: b"",
    lambda state: b"[" * 10_000,
    lambda state: b"[]",
    lambda state: state.replace(b"0", b"1e999", 1),
    lambda state: state.replace(b"0", b"[]", 1),
    lambda state: state.replace(b"0", b"1", 1),
)
"""What may have become of a state file, which has a 0 somewhere: a number too large for one, or of another kind, ..."""


@scenario("LC-8 AP-1", traces=18, thread="life")
def log_state_spoilt(scene: LogScene) -> None:
    """A state file is not what was written to it when it is read again: it is said to be damaged, and nothing else.

    When it is put back the channel is opened, on the same topic if that was open.
    Bounds: Sequential; the files of a topic, of a channel and of its parking file, each in six ways; with the last one
    the channel's own was taken away, and is not written.
    """

    scene.backlog(b"m1")
    scene.channel()
    names = ("topic.json", "c.channel", "c.parking")
    name = names[scene.world.choose(len(names))]
    files = scene.storage.survivors()
    whole = files[name]
    if name == "c.parking":
        del files["c.channel"]
    files[name] = SPOILT[scene.world.choose(len(SPOILT))](whole)
    scene.storage = MemoryDisk(files)
    with scene.refused(scene.lib.Damaged):
        scene.topic = scene.open()
        scene.channel()
    changed = scene.storage.survivors() != files
    scene.world.host.record(
        "recovery", before="", after="x" if changed else "", aside="", spoilt=True, refused=True
    )
    scene.storage.replace(name, whole)
    if name == "topic.json":
        scene.topic = scene.open()
    try:
        scene.channel()
    except scene.lib.Misuse as error:
        scene.world.host.record("raised", error=repr(error), declared=False)
