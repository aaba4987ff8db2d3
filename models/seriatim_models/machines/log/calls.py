"""The API calls of the log: publishing, consuming and operating a topic and its channels.

`LOG` is the table. See `seriatim_models.machines.calls`. Of the calls that belong to a channel's consumer at most one
is under way at a time: `connect` refuses a second one (Misuse).

Not in the table: what topic and channels call of each other (`Topic.claim`, `enlist`, `strike`, `start_of_next`),
opening a topic on a disk that is damaged (`tests/log`), and a commit to a position inside a record, which is the
caller's word and which no check can tell from damage: reading there says so, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType

import seriatim.log as reference
from seriatim_models.explorer import World
from seriatim_models.machines.calls import Caller, CallStanding, call, calls_of
from seriatim_models.programs.disk import MemoryDisk
from seriatim_models.programs.log import LogScene, fails_on_bad

SEGMENT = 30
"""Bytes of a segment; a message of as many is too large for it."""

IN_CONTRACT, NO_OP, REFUSED = CallStanding.IN_CONTRACT, CallStanding.NO_OP, CallStanding.REFUSED
EVERY = (IN_CONTRACT, NO_OP, REFUSED)
ONCE = (IN_CONTRACT, NO_OP)
TAKEN = (IN_CONTRACT, REFUSED)


def channels(harness: LogHarness) -> Sequence[reference.Channel]:
    """Return the channels, by name."""
    return list(harness.channels.values())


def positions(harness: LogHarness) -> Sequence[reference.Position]:
    """Return where messages start, the end, and two positions that are none."""
    tail = harness.topic.tail.get()
    found = [reference.Position(0, 0)]
    while (delivery := harness.topic.read(found[-1])) is not None:
        found.append(delivery.following)
    past = reference.Position(tail.segment, tail.offset + 1)
    return [*found, past, reference.Position(-1, 0)]


def state(channel: reference.Channel) -> str:
    """Return whether a channel has a consumer, and what it does."""
    return channel._state.get()


def _to_publish(harness: LogHarness, message: str) -> CallStanding:
    return REFUSED if len(message) >= SEGMENT or harness.topic._closed else IN_CONTRACT


def _by_first(harness: LogHarness, channel: reference.Channel) -> CallStanding:
    return IN_CONTRACT if state(channel) == reference.AWAY else REFUSED


def _to_stop(harness: LogHarness, channel: reference.Channel) -> CallStanding:
    there = state(channel) != reference.AWAY
    return IN_CONTRACT if there and not channel._stopping else NO_OP


def _to_read(harness: LogHarness, channel: reference.Channel, limit: int) -> CallStanding:
    return IN_CONTRACT if channel.read(limit) else NO_OP


def _to_move(
    harness: LogHarness, channel: reference.Channel, position: reference.Position
) -> CallStanding:
    end = harness.storage.size(reference.segment_name(position.segment))
    there = reference.Position(0, 0) <= position <= harness.topic.tail.get()
    if not there or position.offset > end or position < channel.position:
        return REFUSED
    return NO_OP if (position, 0) == (channel.position, channel.attempts) else IN_CONTRACT


def _if_parked(
    harness: LogHarness, channel: reference.Channel, fails: bool = False
) -> CallStanding:
    return IN_CONTRACT if channel.parked() and not fails else NO_OP


def _to_open(
    harness: LogHarness, name: str, max_attempts: int, at_tail: bool = False
) -> CallStanding:
    wrong = name in harness.topic._names or not name.isalpha() or max_attempts < 1
    return REFUSED if wrong else IN_CONTRACT


def _alone(harness: LogHarness, channel: reference.Channel, **arguments: object) -> bool:
    return state(channel) == reference.AWAY


class LogHarness(LogScene):
    """A topic with the channels `a` and `b`."""

    def __init__(self, world: World, lib: ModuleType, max_attempts: int = 1) -> None:
        super().__init__(world, lib, segment_size=SEGMENT)
        self.max_attempts = max_attempts
        self.handled: dict[str, list[str]] = {}
        """What the consumers of each channel that `begin` started handled well, in order, as Latin-1."""
        self.inside: Callable[[reference.Channel, bytes], None] = lambda channel, message: None
        """What handlers do with a message before they handle it."""
        self._open_channels()

    def _open_channels(self) -> None:
        for name in "ab":
            self.channel(name, max_attempts=self.max_attempts)

    def reopen(self, files: dict[str, bytes]) -> None:
        """Open the topic and its channels again, with these files on the disk."""
        self.storage = MemoryDisk(files)
        self.topic = self.open()
        self._open_channels()

    def keeping(self, channel: reference.Channel) -> reference.Handler:
        """Return a handler that fails on "bad" and keeps the rest."""

        def handler(message: bytes) -> None:
            self.inside(channel, message)
            fails_on_bad(message)
            self.handled.setdefault(channel.name, []).append(message.decode("latin-1"))

        return handler

    # ---- the topic

    @call(
        message=("good", "bad", "", "x" * SEGMENT),
        standing=_to_publish,
        standings=TAKEN,
        inside={},
    )
    def publish_one(self, message: str) -> reference.Position:
        """Publish a message, given as Latin-1; refused (Misuse) if it is too large or the topic closed."""
        return self.topic.publish(message.encode("latin-1"))

    @call(
        standing=lambda harness: NO_OP if harness.topic._closed else IN_CONTRACT,
        standings=ONCE,
        inside={},
    )
    def close_topic(self) -> None:
        """Close the topic; one that is closed stays so."""
        self.topic.close()

    @call(
        name=("c", "a", "no name"),
        max_attempts=(1, 0),
        at_tail=(False, True),
        standing=_to_open,
        standings=TAKEN,
        inside={},
    )
    def open_channel(self, name: str, max_attempts: int, at_tail: bool) -> None:
        """Open a channel; a name that is taken or is none, and no attempts, are refused (Misuse)."""
        self.channel(name, max_attempts=max_attempts, at_tail=at_tail)

    # ---- a channel's consumer

    @call(Caller.OWNER, channel=channels, standing=_by_first, standings=TAKEN)
    def consume(
        self,
        channel: reference.Channel,
        handler: Callable[[bytes], None] = fails_on_bad,
    ) -> None:
        """Connect, and consume until the channel is disconnected; a second consumer is refused (Misuse)."""
        channel.connect()
        channel.consume(handler)

    @call(Caller.OWNER, channel=channels, standing=_by_first, standings=TAKEN, inside={})
    def connect(self, channel: reference.Channel) -> None:
        """Become the channel's consumer; a second one is refused (Misuse)."""
        channel.connect()

    @call(
        Caller.OWNER,
        channel=channels,
        standing=lambda harness, channel: (
            IN_CONTRACT if state(channel) == reference.CONNECTED else REFUSED
        ),
        standings=TAKEN,
    )
    def begin(self, channel: reference.Channel) -> None:
        """Consume on a thread of its own; without `connect`, or a second time, refused (Misuse)."""
        if state(channel) != reference.CONNECTED:
            channel.consume(self.keeping(channel))
        self.serve(channel, self.keeping(channel))

    @call(
        Caller.OWNER,
        channel=channels,
        enabled=lambda harness, channel: _alone(harness, channel) and bool(channel.read(1)),
    )
    def consume_one(self, channel: reference.Channel) -> None:
        """Connect, consume the next message, which is there, and end."""
        keep = self.keeping(channel)

        def handler(message: bytes) -> None:
            channel.disconnect()
            keep(message)

        channel.connect()
        channel.consume(handler)

    @call(channel=channels, standing=_to_stop, standings=ONCE, inside={})
    def disconnect(self, channel: reference.Channel) -> None:
        """Ask the channel's consumer to end, if there is one; once is enough."""
        channel.disconnect()

    @call(channel=channels, standing=lambda harness, channel: NO_OP, standings=(NO_OP,), inside={})
    def notify(self, channel: reference.Channel) -> None:
        """Signal to a channel for nothing: its consumer looks, and sleeps again."""
        channel.notify()

    # ---- reading by oneself

    @call(
        channel=channels,
        limit=(1, 2, 5, 0, -1),
        standing=_to_read,
        standings=ONCE,
        inside={"limit": 2},
    )
    def read(self, channel: reference.Channel, limit: int) -> list[reference.Delivery]:
        """Read at most so many of the next messages, and commit none."""
        return channel.read(limit)

    @call(
        Caller.OWNER,
        channel=channels,
        limit=(1, 2, 5),
        enabled=_alone,
        standing=_to_read,
        standings=ONCE,
    )
    def commit(self, channel: reference.Channel, limit: int) -> int:
        """Read a batch, commit it, and return how many messages it had."""
        batch = channel.read(limit)
        if batch:
            channel.commit(batch[-1].following)
        return len(batch)

    @call(
        Caller.OWNER,
        channel=channels,
        position=positions,
        enabled=_alone,
        standing=_to_move,
        standings=EVERY,
    )
    def move(self, channel: reference.Channel, position: reference.Position) -> None:
        """Commit a position; back is refused (Misuse), and so is past the end (PastTheEnd)."""
        channel.commit(position)

    # ---- parked messages

    @call(channel=channels, standing=lambda harness, channel: NO_OP, standings=(NO_OP,), inside={})
    def parked(self, channel: reference.Channel) -> list[reference.Parked]:
        """List what is parked."""
        return channel.parked()

    @call(
        channel=channels,
        fails=(False, False, True),
        standing=_if_parked,
        standings=ONCE,
        inside={},
    )
    def replay(self, channel: reference.Channel, fails: bool = False) -> int:
        """Replay all parked messages, and return how many there were; with a handler that fails they stay."""

        def handler(message: bytes) -> None:
            self.inside(channel, message)
            if fails:
                raise ConnectionError("still no")

        parked = channel.parked()
        for p in parked:
            try:
                channel.replay(p, handler)
            except ConnectionError:
                return 0
        return len(parked)

    @call(channel=channels, standing=lambda harness, channel: REFUSED, standings=(REFUSED,))
    def replay_unparked(self, channel: reference.Channel) -> None:
        """Replay a message that is not parked, or was replayed: refused (Misuse)."""
        end = self.topic.tail.get()
        channel.replay(reference.Parked(end, "", b""), lambda message: None)


LOG = calls_of(LogHarness)
