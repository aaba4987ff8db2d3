"""The API calls of the client: a channel's methods, what ends a connection, and the work pool by itself.

`CLIENT` is the table of a connection with two channels, on whose queue `q` the first one consumes; `POOL` that of a
work pool with its executor. See `seriatim_models.machines.calls`. Every call may come from any thread: the reference
asks for nothing else. An unknown delivery tag is no misuse of the client: the server closes the channel for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import seriatim.client as reference
from seriatim_models.explorer import World
from seriatim_models.machines.calls import Caller, call, calls_of
from seriatim_models.programs.client import ClientScene, idle

CHANNELS = 2


def channels(harness: ClientHarness) -> Sequence[reference.Channel]:
    """Return the channels of the connection."""
    return harness.channels


class ClientHarness(ClientScene):
    """One connection with its channels; the queue `q`, bound to the exchange `x`, has some messages."""

    def __init__(
        self, world: World, lib: ModuleType, pool: int, messages: int, capacity: int | None
    ) -> None:
        super().__init__(world, lib, threads=pool)
        self.channels = self.client(
            channels=CHANNELS, messages=messages, capacity=capacity, block=1
        )
        self.at(self.channels[0], lambda x: self.server.bind(x, "x", "*", "q"))

    @call(channel=channels)
    def publish(self, channel: reference.Channel) -> None:
        """Publish a message."""
        channel.basic_publish("x", "", self.message(self.fresh()))

    @call(channel=channels, auto_ack=(False, True), timeout=(None, 1))
    def get(self, channel: reference.Channel, auto_ack: bool, timeout: float | None) -> object:
        """Get one message, if there is any."""
        return channel.basic_get("q", auto_ack=auto_ack, timeout=timeout)

    @call(channel=channels, tag=(0, 1, 2, 2), multiple=(False, True, True))
    def ack(self, channel: reference.Channel, tag: int, multiple: bool) -> None:
        """Acknowledge a delivery, or all up to it (0: all there are)."""
        channel.basic_ack(tag, multiple=multiple)

    @call(channel=channels, tag=(0, 1), multiple=(False, True))
    def nack(self, channel: reference.Channel, tag: int, multiple: bool) -> None:
        """Requeue a delivery, or all up to it."""
        channel.basic_nack(tag, multiple=multiple)

    @call(channel=channels, tag=(1, 2))
    def reject(self, channel: reference.Channel, tag: int) -> None:
        """Discard a delivery."""
        channel.basic_reject(tag, requeue=False)

    @call(channel=channels, whole_channel=(False, True))
    def qos(self, channel: reference.Channel, whole_channel: bool) -> None:
        """Limit the unacknowledged deliveries of each further consumer, or of the channel, to one."""
        channel.basic_qos(1, whole_channel=whole_channel)

    @call(channel=channels, exclusive=(False, False, True))
    def consume(self, channel: reference.Channel, exclusive: bool) -> None:
        """Consume, with a callback that keeps what it gets, under a tag that was not used before."""
        tag = self.fresh()
        channel.basic_consume("q", idle, tag=tag, exclusive=exclusive)

    @call(channel=channels)
    def declare(self, channel: reference.Channel) -> None:
        """Declare the queue, which is there."""
        channel.queue_declare("q")

    @call(channel=channels)
    def cancel(self, channel: reference.Channel) -> None:
        """Cancel the consumer `t`."""
        channel.basic_cancel("t")

    @call(channel=channels)
    def close(self, channel: reference.Channel) -> None:
        """Close a channel."""
        channel.close()

    @call(channel=channels)
    def close_connection(self, channel: reference.Channel) -> None:
        """Close the connection."""
        channel.connection.close()

    @call(Caller.SYSTEM, channel=channels)
    def disconnect(self, channel: reference.Channel) -> None:
        """Let the server lose the connection: a crash of the client, or of the network."""
        self.crash(channel.connection)

    @call(channel=channels)
    def interrupt(self, channel: reference.Channel) -> None:
        """Interrupt the reader where it may wait for room in the work pool."""
        channel.connection.work.pool.interrupt()

    @call()
    def shutdown(self) -> None:
        """Shut the executor down."""
        self.executor.shutdown()


def keys(harness: PoolHarness) -> Sequence[str]:
    """Return the names of the channels that the work pool may know."""
    return ("a", "b")


class PoolHarness(ClientScene):
    """A work pool with its executor, by itself; the reader is whoever adds work."""

    def __init__(self, world: World, lib: ModuleType, pool: int, capacity: int | None) -> None:
        super().__init__(world, lib, threads=pool)
        self.served = self.service(capacity=capacity)

    @call(key=keys)
    def register(self, key: str) -> None:
        """Register a channel."""
        self.served.pool.register_key(key)

    @call(key=keys)
    def unregister(self, key: str) -> None:
        """Unregister a channel; its work is dropped."""
        self.served.pool.unregister_key(key)

    @call()
    def unregister_all(self) -> None:
        """Unregister all channels."""
        self.served.pool.unregister_all_keys()

    @call(Caller.OWNER, key=keys)
    def add(self, key: str) -> None:
        """Add work for a channel; wait for room if the channel is limited and full."""
        self.served.add(key, self.work(f"{key}:{self.fresh()}"))

    @call(key=keys)
    def unlimit(self, key: str) -> None:
        """Let a channel take more work than there is room for, as one with a call under way must."""
        self.served.pool.unlimit(key)

    @call(key=keys)
    def limit(self, key: str) -> None:
        """End what `unlimit` began."""
        self.served.pool.limit(key)

    @call()
    def interrupt(self) -> None:
        """Interrupt who waits for room."""
        self.served.pool.interrupt()

    @call()
    def shutdown(self) -> None:
        """Shut the executor down."""
        self.executor.shutdown()


CLIENT = calls_of(ClientHarness)
POOL = calls_of(PoolHarness)
