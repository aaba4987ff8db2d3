"""The API calls of the log: publishing, consuming and operating a topic and its channels.

`LOG` is the table. See `seriatim_models.machines.calls`. Of the calls that belong to a channel's consumer at most one
is under way at a time: `consume` refuses a second one (Misuse).
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


def channels(harness: LogHarness) -> Sequence[reference.Channel]:
    """Return the channels, by name."""
    return list(harness.channels.values())


def _of_size(harness: LogHarness, message: str) -> CallStanding:
    return CallStanding.REFUSED if len(message) >= SEGMENT else CallStanding.IN_CONTRACT


class LogHarness(LogScene):
    """A topic with the channels `a` and `b`."""

    def __init__(self, world: World, lib: ModuleType, max_attempts: int = 1) -> None:
        super().__init__(world, lib, segment_size=SEGMENT)
        self.max_attempts = max_attempts
        self._open_channels()

    def _open_channels(self) -> None:
        for name in "ab":
            self.channel(name, max_attempts=self.max_attempts)

    def reopen(self, files: dict[str, bytes]) -> None:
        """Open the topic and its channels again, with these files on the disk."""
        self.storage = MemoryDisk(files)
        self.topic = self.open()
        self._open_channels()

    @call(
        message=("good", "bad", "", "x" * SEGMENT),
        standing=_of_size,
        standings=(CallStanding.IN_CONTRACT, CallStanding.REFUSED),
    )
    def publish_one(self, message: str) -> reference.Position:
        """Publish a message, given as Latin-1; one that is too large for a segment is refused (Misuse)."""
        return self.topic.publish(message.encode("latin-1"))

    @call(Caller.OWNER, channel=channels)
    def consume(
        self,
        channel: reference.Channel,
        handler: Callable[[bytes], None] = fails_on_bad,
    ) -> None:
        """Connect, and consume until the channel is disconnected."""
        channel.connect()
        channel.consume(handler)

    @call(channel=channels)
    def disconnect(self, channel: reference.Channel) -> None:
        """Ask the channel's consumer to end."""
        channel.disconnect()

    @call(channel=channels, limit=(1, 2, 5))
    def read(self, channel: reference.Channel, limit: int) -> list[reference.Delivery]:
        """Read at most so many of the next messages, and commit none."""
        return channel.read(limit)

    @call(Caller.OWNER, channel=channels, limit=(1, 2, 5))
    def commit(self, channel: reference.Channel, limit: int) -> int:
        """Read a batch, commit it, and return how many messages it had."""
        batch = channel.read(limit)
        if batch:
            channel.commit(batch[-1].following)
        return len(batch)

    @call(channel=channels)
    def replay(self, channel: reference.Channel) -> int:
        """Replay all parked messages with a handler that succeeds, and return how many there were."""
        parked = channel.parked()
        for p in parked:
            channel.replay(p, lambda message: None)
        return len(parked)

    @call(
        channel=channels,
        standing=lambda harness, channel: CallStanding.REFUSED,
        standings=(CallStanding.REFUSED,),
    )
    def open_again(self, channel: reference.Channel) -> reference.Channel:
        """Open a second channel of that name, which is refused (Misuse)."""
        second: reference.Channel = self.lib.Channel(self.topic, channel.name, at_tail=True)
        return second

    @call()
    def close_topic(self) -> None:
        """Close the topic."""
        self.topic.close()


LOG = calls_of(LogHarness)
