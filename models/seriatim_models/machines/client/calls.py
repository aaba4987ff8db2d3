"""The API calls of the client: a channel's methods, what ends a connection, and the work pool by itself.

`CLIENT` is the table of one or two connections with their channels, on whose queue `q` the first one consumes; `POOL`
that of a work pool with its executor. See `seriatim_models.machines.calls`. Every call may come from any thread: the
reference asks for nothing else.

What the client can know is wrong, and any call on a closed channel or connection, is refused: `Misuse` or `Closed`.
What only the server can know is wrong is no misuse of the client: the server closes the channel for it, with the
reply code that AMQP 0-9-1 has for it. `reply_code` says which; such a call is in contract.

Not in the tables: what the objects of the reference call of each other (`Channel.on_frame`, `Channel.shut_down`,
`Wire`, `Server`), and what a runnable alone may do (`next_work_block` with a channel that is ready).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import seriatim.client as reference
from seriatim.broker import Delivery, ServerChannel, settled_by
from seriatim_models.explorer import World
from seriatim_models.machines.calls import Caller, CallStanding, call, calls_of
from seriatim_models.programs.client_scene import ClientScene, idle

CHANNELS = 2
"""How many channels the first connection has, and at most opens."""

IN_CONTRACT, NO_OP, REFUSED = CallStanding.IN_CONTRACT, CallStanding.NO_OP, CallStanding.REFUSED
EVERY = (IN_CONTRACT, NO_OP, REFUSED)
ONCE = (IN_CONTRACT, NO_OP)
TAKEN = (IN_CONTRACT, REFUSED)


def channels(harness: ClientHarness) -> Sequence[reference.Channel]:
    """Return the channels of all connections."""
    return harness.channels


def connections(harness: ClientHarness) -> Sequence[reference.Connection]:
    """Return the connections."""
    return harness.connections


# ---- what the server thinks of a request


def at_server(harness: ClientHarness, channel: reference.Channel) -> ServerChannel | None:
    """Return the server's side of a channel; None if it has closed it."""
    return harness.server._channels.get((channel.connection.name, channel.number))


def _unreachable(harness: ClientHarness, channel: reference.Channel, queue: str) -> int:
    there = harness.server._queues.get(queue)
    if there is None:
        return 404
    return 405 if there.owner not in ("", channel.connection.name) else 0


def _of_queue(
    harness: ClientHarness, channel: reference.Channel, queue: str, **arguments: object
) -> int:
    return _unreachable(harness, channel, queue)


def _of_declare(
    harness: ClientHarness, channel: reference.Channel, queue: str, exclusive: bool
) -> int:
    there = harness.server._queues.get(queue)
    owner = channel.connection.name if exclusive else ""
    return 405 if there is not None and there.owner != owner else 0


def _of_consume(
    harness: ClientHarness, channel: reference.Channel, queue: str, tag: str, flag: str
) -> int:
    there = at_server(harness, channel)
    unreachable = _unreachable(harness, channel, queue)
    if unreachable:
        return unreachable
    if there is not None and tag in there.consumers:
        return 530
    others = harness.server._queues[queue].consumers
    alone = flag == "exclusive" or any(c.exclusive for c in others)
    return 403 if others and alone else 0


def _of_settlement(
    harness: ClientHarness,
    channel: reference.Channel,
    tag: int,
    multiple: bool = False,
    requeue: bool = False,
) -> int:
    there = at_server(harness, channel)
    known = there is not None and tag in there.unacked
    return 0 if known or (multiple and tag == 0) else 406


REPLY_CODES: Mapping[str, Callable[..., int]] = {
    "get": _of_queue,
    "consume": _of_consume,
    "declare": _of_declare,
    "bind": _of_queue,
    "ack": _of_settlement,
    "nack": _of_settlement,
    "reject": _of_settlement,
}


def reply_code(harness: ClientHarness, name: str, arguments: Mapping[str, Any]) -> int:
    """Return the code with which the server closes the channel for a call on an open one; 0 if it does not."""
    answers = REPLY_CODES.get(name)
    return answers(harness, **arguments) if answers is not None else 0


# ---- classes


def _open(
    refuses: Callable[..., bool] = lambda **arguments: False,
    idle: Callable[..., bool] = lambda harness, channel, **arguments: False,
) -> Callable[..., CallStanding]:
    """Return the class of a call that an open channel takes unless `refuses`, without effect where `idle`."""

    def standing(
        harness: ClientHarness, channel: reference.Channel, **arguments: Any
    ) -> CallStanding:
        if channel.closed is not None or refuses(**arguments):
            return REFUSED
        return NO_OP if idle(harness, channel, **arguments) else IN_CONTRACT

    return standing


def _goes_nowhere(harness: ClientHarness, channel: reference.Channel, to: str) -> bool:
    queues = harness.server._queues
    exchange, key = ("x", "") if to == "x" else ("", to)
    return not any({(exchange, key), (exchange, "*")} & q.bindings for q in queues.values())


def _finds_none(
    harness: ClientHarness, channel: reference.Channel, queue: str, **arguments: object
) -> bool:
    return not _unreachable(harness, channel, queue) and not harness.server._queues[queue].ready


def _settles_none(
    harness: ClientHarness,
    channel: reference.Channel,
    tag: int,
    multiple: bool,
    requeue: bool = False,
) -> bool:
    there = at_server(harness, channel)
    return multiple and tag == 0 and not (there and settled_by(list(there.unacked), tag, multiple))


def _set_already(
    harness: ClientHarness, channel: reference.Channel, prefetch: int, whole_channel: bool
) -> bool:
    there = at_server(harness, channel)
    assert there is not None
    return prefetch == (there.prefetch if whole_channel else there.consumer_prefetch)


def _declared(
    harness: ClientHarness, channel: reference.Channel, queue: str, exclusive: bool
) -> bool:
    return queue in harness.server._queues and not _of_declare(harness, channel, queue, exclusive)


def _bound(
    harness: ClientHarness, channel: reference.Channel, queue: str, exchange: str, key: str
) -> bool:
    if _unreachable(harness, channel, queue):
        return False
    return (exchange, key) in harness.server._queues[queue].bindings


def _not_there(harness: ClientHarness, channel: reference.Channel, tag: str) -> bool:
    there = at_server(harness, channel)
    return there is None or tag not in there.consumers


def _of_connection(ended: CallStanding) -> Callable[..., CallStanding]:
    def standing(harness: ClientHarness, connection: reference.Connection) -> CallStanding:
        return ended if connection._closed is not None else IN_CONTRACT

    return standing


class ClientHarness(ClientScene):
    """Connections with their channels; the queue `q`, bound to the exchange `x`, has some messages.

    The first connection has two channels, the second, if there is one, one. Callbacks keep what they get.
    """

    def __init__(
        self,
        world: World,
        lib: ModuleType,
        pool: int,
        messages: int,
        capacity: int | None,
        connections: int = 1,
    ) -> None:
        super().__init__(world, lib, threads=pool)
        self.delivered: dict[str, list[tuple[str, str, bool]]] = {}
        """What the callbacks of each channel got, in order: (consumer tag, message, whether it was redelivered)."""
        self.inside: reference.Callback = idle
        """What every callback does behind that."""
        self.channels = self.client(
            channels=CHANNELS, messages=messages, capacity=capacity, block=1
        )
        if connections > 1:
            self.channels += self.client("d", capacity=capacity, block=1)
        self.connections = list(dict.fromkeys(c.connection for c in self.channels))
        self.at(self.channels[0], lambda x: self.server.bind(x, "x", "*", "q"))

    def keep(self, channel: reference.Channel, delivery: Delivery) -> None:
        """Keep a delivery: the callback of `consume`."""
        got = (delivery.consumer_tag, delivery.message.id, delivery.redelivered)
        self.delivered.setdefault(channel.key, []).append(got)
        self.inside(channel, delivery)

    def known_inside(self, channel: reference.Channel, delivery: Delivery) -> dict[str, object]:
        """Return what a callback knows: its channel, the channel's connection, and the delivery's tag."""
        return {
            "channel": channel,
            "connection": channel.connection,
            "tag": delivery.delivery_tag,
        }

    # ---- without a reply

    @call(
        channel=channels,
        to=("x", "x", "q", "none"),
        standing=_open(idle=_goes_nowhere),
        standings=EVERY,
        inside={},
    )
    def publish(self, channel: reference.Channel, to: str, *, id: str = "") -> None:
        """Publish to the exchange `x`, or to a queue by the default exchange; if none is bound it goes nowhere."""
        exchange, key = ("x", "") if to == "x" else ("", to)
        channel.basic_publish(exchange, key, self.message(id or self.fresh()))

    @call(
        channel=channels,
        tag=(0, 1, 2, 2, -1),
        multiple=(False, True, True),
        standing=_open(lambda tag, **_: tag < 0, _settles_none),
        standings=EVERY,
        inside={},
    )
    def ack(self, channel: reference.Channel, tag: int, multiple: bool) -> None:
        """Acknowledge a delivery, or all up to it (0: all there are); unknown ones close the channel (406)."""
        channel.basic_ack(tag, multiple=multiple)

    @call(
        channel=channels,
        tag=(0, 1, 2),
        multiple=(False, True),
        requeue=(True, True, False),
        standing=_open(idle=_settles_none),
        standings=EVERY,
        inside={},
    )
    def nack(self, channel: reference.Channel, tag: int, multiple: bool, requeue: bool) -> None:
        """Requeue or discard a delivery, or all up to it; unknown ones close the channel (406)."""
        channel.basic_nack(tag, multiple=multiple, requeue=requeue)

    @call(
        channel=channels,
        tag=(1, 2, -1),
        requeue=(False, True),
        standing=_open(lambda tag, **_: tag < 0),
        standings=TAKEN,
        inside={},
    )
    def reject(self, channel: reference.Channel, tag: int, requeue: bool) -> None:
        """Discard or requeue a delivery; an unknown one closes the channel (406)."""
        channel.basic_reject(tag, requeue=requeue)

    # ---- with a reply

    @call(
        channel=channels,
        queue=("q", "q", "q", "none"),
        auto_ack=(False, True),
        timeout=(None, 1),
        standing=_open(idle=_finds_none),
        standings=EVERY,
        inside={},
    )
    def get(
        self, channel: reference.Channel, queue: str, auto_ack: bool, timeout: float | None
    ) -> Delivery | None:
        """Get one message, or None at once if there is none; a queue that is not there closes the channel (404)."""
        return channel.basic_get(queue, auto_ack=auto_ack, timeout=timeout)

    @call(
        channel=channels,
        prefetch=(1, 1, 0, -1),
        whole_channel=(False, True),
        standing=_open(lambda prefetch, **_: prefetch < 0, _set_already),
        standings=EVERY,
        inside={"whole_channel": True},
    )
    def qos(self, channel: reference.Channel, prefetch: int, whole_channel: bool) -> None:
        """Limit the unacknowledged deliveries of each further consumer, or of the channel."""
        channel.basic_qos(prefetch, whole_channel=whole_channel)

    @call(
        channel=channels,
        queue=("q", "q", "q", "none"),
        tag=("t", "u", "u", ""),
        flag=("", "", "exclusive", "auto_ack", "no_local"),
        standing=_open(lambda tag, **_: not tag),
        standings=TAKEN,
        inside={"tag": "u"},
    )
    def consume(self, channel: reference.Channel, queue: str, tag: str, flag: str) -> None:
        """Consume, with a callback that keeps what it gets; 403, 404 or 530 closes the channel."""
        channel.basic_consume(queue, self.keep, tag=tag, **({flag: True} if flag else {}))

    @call(
        channel=channels,
        tag=("t", "u"),
        standing=_open(idle=_not_there),
        standings=EVERY,
        inside={"tag": "t"},
    )
    def cancel(self, channel: reference.Channel, tag: str) -> None:
        """Cancel a consumer; one that is not there is none already."""
        channel.basic_cancel(tag)

    @call(
        channel=channels,
        queue=("q", "q", "r"),
        exclusive=(False, False, True),
        standing=_open(idle=_declared),
        standings=EVERY,
        inside={"queue": "r"},
    )
    def declare(self, channel: reference.Channel, queue: str, exclusive: bool) -> None:
        """Declare a queue; one that is there and is not the same closes the channel (405)."""
        channel.queue_declare(queue, exclusive=exclusive)

    @call(
        channel=channels,
        queue=("r", "r", "q", "none"),
        exchange=("x", "x", "y", ""),
        key=("*", "k"),
        standing=_open(lambda exchange, **_: not exchange, _bound),
        standings=EVERY,
        inside={},
    )
    def bind(self, channel: reference.Channel, queue: str, exchange: str, key: str) -> None:
        """Bind a queue to an exchange; one that is not there closes the channel (404)."""
        channel.queue_bind(queue, exchange, key)

    # ---- ends

    @call(
        channel=channels,
        standing=lambda harness, channel: NO_OP if channel.closed is not None else IN_CONTRACT,
        standings=ONCE,
        inside={},
    )
    def close(self, channel: reference.Channel) -> None:
        """Close a channel; one that is closed stays so."""
        channel.close()

    @call(
        connection=connections,
        enabled=lambda harness, connection: (
            len(connection._channels.get()) < CHANNELS or connection._closed is not None
        ),
        standing=_of_connection(REFUSED),
        standings=TAKEN,
        inside={},
    )
    def open_channel(self, connection: reference.Connection) -> None:
        """Open a channel; a connection that has ended opens none (Closed)."""
        self.channels.append(connection.open_channel())

    @call(connection=connections, standing=_of_connection(NO_OP), standings=ONCE, inside={})
    def close_connection(self, connection: reference.Connection) -> None:
        """Close a connection; one that has ended stays so."""
        connection.close()

    @call(connection=connections, standing=_of_connection(NO_OP), standings=ONCE, inside={})
    def fail(self, connection: reference.Connection) -> None:
        """End a connection for an error of the client's own, without waiting."""
        connection.fail("an error of its own")

    @call(Caller.SYSTEM, connection=connections, standing=_of_connection(NO_OP), standings=ONCE)
    def disconnect(self, connection: reference.Connection) -> None:
        """Let the server lose the connection: a crash of the client, or of the network."""
        self.crash(connection)

    @call(
        connection=connections,
        standing=lambda harness, connection: (
            NO_OP if connection.work.pool._interrupted else IN_CONTRACT
        ),
        standings=ONCE,
        inside={},
    )
    def interrupt(self, connection: reference.Connection) -> None:
        """Interrupt the reader where it waits, or will wait next, for room in the work pool."""
        connection.work.pool.interrupt()

    @call(
        standing=lambda harness: IN_CONTRACT if harness.executor._open else NO_OP,
        standings=ONCE,
        inside={},
    )
    def shutdown(self) -> None:
        """Shut the executor down; once is enough."""
        self.executor.shutdown()


# ---- the work pool by itself


def keys(harness: PoolHarness) -> Sequence[str]:
    """Return the names of the channels that the work pool may know."""
    return ("a", "b")


def _if(there: Callable[[Any, str], bool]) -> Callable[..., CallStanding]:
    """Return the class of a call that has an effect on a channel of which `there` holds, and none on others."""
    return lambda harness, key: IN_CONTRACT if there(harness.served.pool, key) else NO_OP


def _makes_nothing(
    harness: PoolHarness, capacity: int | None, block: int, size: int
) -> CallStanding:
    wrong = (capacity is not None and capacity < 1) or block < 1 or size < 1
    return REFUSED if wrong else NO_OP


class PoolHarness(ClientScene):
    """A work pool with its executor, by itself; the reader is whoever adds work.

    Its work is noted when it runs; with `raises` it then raises.
    """

    def __init__(
        self,
        world: World,
        lib: ModuleType,
        pool: int,
        capacity: int | None,
        block: int = 1,
        raises: bool = False,
    ) -> None:
        super().__init__(world, lib, threads=pool)
        self.raises = raises
        self.ran: dict[str, list[str]] = {}
        """The work of each channel that was run, in order."""
        self.served = self.service(capacity=capacity, block=block)

    @call(key=keys, standing=_if(lambda pool, key: key not in pool._pool), standings=ONCE)
    def register(self, key: str) -> None:
        """Register a channel; one that is there keeps its work."""
        self.served.pool.register_key(key)

    @call(key=keys, standing=_if(lambda pool, key: key in pool._pool), standings=ONCE)
    def unregister(self, key: str) -> None:
        """Unregister a channel; its work is dropped."""
        self.served.pool.unregister_key(key)

    @call(
        standing=lambda harness: IN_CONTRACT if harness.served.pool._pool else NO_OP,
        standings=ONCE,
    )
    def unregister_all(self) -> None:
        """Unregister all channels."""
        self.served.pool.unregister_all_keys()

    @call(
        Caller.OWNER,
        key=keys,
        standing=_if(lambda pool, key: key in pool._pool),
        standings=ONCE,
    )
    def add(self, key: str, *, id: str = "") -> bool:
        """Add work for a channel, and return whether it is there; wait for room if the channel is limited and full."""
        label = f"{key}:{id or self.fresh()}"

        def run() -> None:
            self.ran.setdefault(key, []).append(label)
            if self.raises:
                raise RuntimeError("the callback's own fault")

        return self.served.add(key, self.work(label, run))

    @call(
        Caller.OWNER,
        key=keys,
        enabled=lambda harness, key: key not in harness.served.pool._pool,
        standing=lambda harness, key: REFUSED,
        standings=(REFUSED,),
    )
    def put(self, key: str) -> bool:
        """Put work into a channel that is not registered, without the service: refused (Unregistered)."""
        return self.served.pool.add_work_item(key, self.work(f"{key}:unregistered"))

    @call(
        key=keys,
        standing=_if(lambda pool, key: key in pool._pool and key not in pool._unlimited),
        standings=ONCE,
    )
    def unlimit(self, key: str) -> None:
        """Let a channel take more work than there is room for, as one with a call under way must."""
        self.served.pool.unlimit(key)

    @call(key=keys, standing=_if(lambda pool, key: key in pool._unlimited), standings=ONCE)
    def limit(self, key: str) -> None:
        """End what `unlimit` began."""
        self.served.pool.limit(key)

    @call(
        standing=lambda harness: NO_OP if harness.served.pool._interrupted else IN_CONTRACT,
        standings=ONCE,
    )
    def interrupt(self) -> None:
        """Interrupt who waits for room, or who will wait next."""
        self.served.pool.interrupt()

    @call(
        key=keys,
        enabled=lambda harness, key: key not in harness.served.pool._in_progress,
        standing=lambda harness, key: REFUSED,
        standings=(REFUSED,),
    )
    def finish(self, key: str) -> bool:
        """Finish a block that nobody began: refused (Misuse)."""
        return self.served.pool.finish_work_block(key)

    @call(
        enabled=lambda harness: not harness.served.pool._ready,
        standing=lambda harness: NO_OP,
        standings=(NO_OP,),
    )
    def next(self) -> object:
        """Ask for a block when no channel is ready: there is none."""
        return self.served.pool.next_work_block()

    @call(
        standing=lambda harness: IN_CONTRACT if harness.executor._open else REFUSED,
        standings=TAKEN,
    )
    def execute(self) -> None:
        """Have the executor run a task that does nothing; refused (Rejected) when it is shut down."""
        self.executor.execute(lambda: None)

    @call(
        standing=lambda harness: IN_CONTRACT if harness.executor._open else NO_OP,
        standings=ONCE,
    )
    def shutdown(self) -> None:
        """Shut the executor down; once is enough."""
        self.executor.shutdown()

    @call(
        capacity=(None, 1, 0),
        block=(1, 0),
        size=(1, 0),
        standing=_makes_nothing,
        standings=(NO_OP, REFUSED),
    )
    def make(self, capacity: int | None, block: int, size: int) -> None:
        """Make another pool and executor; one without room, blocks or threads is refused (Misuse)."""
        self.lib.WorkPool(self.host, capacity, block)
        self.lib.Executor(self.host, size)


CLIENT = calls_of(ClientHarness)
POOL = calls_of(PoolHarness)
