"""An AMQP 0-9-1 broker as far as order and possession go: exchanges, queues, consumers, acknowledgements.

It is the server side that `seriatim.client` needs; rules 4 to 10 are that file's and those of `seriatim.workpool`.

How to think of it
------------------
Everything that a server does is one step under its lock. What it sends goes into the connection's wire, in order.

Rule 1 (place).     A message gets its position in a queue when it is routed there, and keeps it: requeueing is sorting.
Rule 2 (possession). A message is ready, or unacknowledged on one channel, or settled. Auto-ack settles by pushing.
Rule 3 (prefetch).  A limit is checked before each push, for the consumer and for its channel; `basic_get` has none.

Where AMQP and RabbitMQ differ this file says at the line what it does. It honours no-local, which RabbitMQ ignores.

What this file does not know
----------------------------
It does not know bytes, heartbeats, persistence, transactions, confirms, mandatory and immediate publishing,
consumer priorities, channel numbers used twice, or the time that a request is under way to the server: a request takes
effect when it is sent. Of a client that crashes it knows what the server sees, which is a connection that is gone.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass, field

import deal

from seriatim.host import Host, operation


class Closed(Exception):
    """The channel or its connection is closed; AMQP's reply code says why (200: somebody asked for it)."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(f"{code} {why}")
        self.code = code


@dataclass(frozen=True)
class Message:
    """A message as a publisher hands it in."""

    id: str
    body: object = None


@dataclass(frozen=True)
class Delivery:
    """A message as a channel gets it."""

    message: Message
    delivery_tag: int
    consumer_tag: str
    """Empty if it is the answer to a get."""
    redelivered: bool


@dataclass(frozen=True)
class Frame:
    """What the server sends: ``deliver``, ``reply``, ``close`` (of a channel) or ``gone`` (of the connection)."""

    kind: str
    channel: int = 0
    call: int = 0
    """Which call it answers. For recordings only: on the wire there is no such number, and no decision reads it."""
    value: object = None
    delivery: Delivery | None = None
    error: Closed | None = None


@dataclass(eq=False)
class _Link:
    """A frame on a wire, and the link behind it."""

    frame: Frame
    next: _Link | None = None


class Wire:
    """One direction of a connection. The server writes under its lock, one reader reads.

    Each has an end of its own, as in the queue with two locks of Michael & Scott (PODC 1996); the permit for a link is
    released when the writer is done with it.
    """

    def __init__(self, host: Host, name: str) -> None:
        self.name = name
        self.gone = False
        """Whether the server has sent its last frame; under the server's lock."""
        self._last = self._taken = _Link(Frame("open"))
        """The link that was sent last, under the server's lock, and the one that was taken last, by the reader."""
        self._arrived = host.semaphore(0, f"{name}.wire")

    def send(self, frame: Frame) -> None:
        """Put a frame behind those that were sent before."""
        link = _Link(frame)
        self._last.next = link
        self._last = link
        self._arrived.release()

    def receive(self) -> Frame:
        """Wait for the next frame and take it."""
        self._arrived.acquire()
        link = self._taken.next
        assert link is not None, "a permit stands for a frame"
        self._taken = link
        return link.frame


@dataclass(eq=False)
class Queued:
    """A message in its place in a queue; ready, or unacknowledged on a channel."""

    queue: ServerQueue
    position: int
    message: Message
    origin: str
    """The connection that published it, for no-local."""
    consumer: ServerConsumer | None = None
    """Whom it was pushed to last; None if it is the answer to a get, which counts against no prefetch."""
    redelivered: bool = False


@dataclass(eq=False)
class ServerQueue:
    """A queue: its ready messages and its consumers."""

    name: str
    owner: str
    """The connection that an exclusive queue belongs to and is deleted with."""
    bindings: set[tuple[str, str]]
    """(exchange, routing key) that lead here; the key '*' is any. The default exchange '' leads here by the name."""
    ready: list[Queued] = field(default_factory=list)
    """Sorted by position (rule 1)."""
    consumers: list[ServerConsumer] = field(default_factory=list)
    """Whose turn is next comes first."""
    arrivals: int = 0


@dataclass(eq=False)
class ServerConsumer:
    """A consumer, as `Server.consume` made it."""

    tag: str
    queue: ServerQueue
    channel: ServerChannel
    auto_ack: bool
    exclusive: bool
    no_local: bool
    prefetch: int

    def may_take(self, item: Queued) -> bool:
        """Return whether no-local (NL-1) and both limits (QS-1; none with auto-ack, as in RabbitMQ) allow it."""
        if self.no_local and item.origin == self.channel.wire.name:
            return False
        if self.auto_ack:
            return True
        pushed = [i.consumer for i in self.channel.unacked.values() if i.consumer is not None]
        mine = pushed.count(self)
        return within(self.prefetch, mine) and within(self.channel.prefetch, len(pushed))


@dataclass(eq=False)
class ServerChannel:
    """The server's side of a channel."""

    wire: Wire
    number: int
    tag: int = 0
    unacked: dict[int, Queued] = field(default_factory=dict)
    """By delivery tag, rising."""
    consumers: dict[str, ServerConsumer] = field(default_factory=dict)
    prefetch: int = 0
    """Of the channel as a whole (RabbitMQ: global); 0 is no limit."""
    consumer_prefetch: int = 0
    """Of each consumer that comes after it was set, as in RabbitMQ; AMQP 0-9-1 would make it the channel's."""


@deal.pre(lambda limit, unacked: limit >= 0 and unacked >= 0)
@deal.ensure(
    lambda limit, unacked, result: result or 0 < limit <= unacked,
    message="QS-1: refused only when full",
)
def within(limit: int, unacked: int) -> bool:
    """Return whether one more fits under a limit; 0 is no limit."""
    return limit == 0 or unacked < limit


@deal.ensure(
    lambda outstanding, tag, multiple, result: set(result) <= set(outstanding),
    message="QS-1: what is settled was outstanding",
)
def settled_by(outstanding: list[int], tag: int, multiple: bool) -> list[int]:
    """Return the delivery tags that settling `tag` settles; 0 with `multiple` is all (AMQP 0-9-1, basic.ack)."""
    if multiple:
        return [t for t in outstanding if t <= tag or tag == 0]
    return [t for t in outstanding if t == tag]


Act = Callable[[ServerChannel], object]
"""What a request does at the server; its value is the reply. It raises `Closed` to refuse and close the channel."""


class Server:
    """Exchanges, queues and what every channel has unacknowledged, under one lock."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._lock = host.lock("server")
        self._queues: dict[str, ServerQueue] = {}
        self._channels: dict[tuple[str, int], ServerChannel] = {}

    # ---- connections, channels, requests

    def open(self, wire: Wire, number: int) -> None:
        """Open a channel, unless the connection has ended."""
        with self._lock:
            if wire.gone:
                return
            self._channels[wire.name, number] = ServerChannel(wire, number)
            self.host.record("srv_open", conn=wire.name, ch=number)

    @operation
    def request(self, wire: Wire, number: int, act: Act, call: int = 0) -> None:
        """Do what a channel requests and, if it is a call, answer. A request on a closed channel is ignored."""
        with self._lock:
            channel = self._channels.get((wire.name, number))
            if channel is None:
                return
            try:
                value = act(channel)
            except Closed as error:
                self.close_channel(channel)
                wire.send(Frame("close", number, call, error=error))
            else:
                if call:
                    wire.send(Frame("reply", number, call, value))
            self._push_all()

    def disconnect(self, wire: Wire, reason: Closed) -> None:
        """End a connection that was closed or crashed: its channels close and its exclusive queues go (QS-2, EX-1)."""
        with self._lock:
            if wire.gone:
                return
            wire.gone = True
            self.host.record("srv_gone", conn=wire.name)
            for channel in [c for c in self._channels.values() if c.wire is wire]:
                self.close_channel(channel)
            for queue in [q for q in self._queues.values() if q.owner == wire.name]:
                del self._queues[queue.name]
                self.host.record("srv_delete", q=queue.name)
            wire.send(Frame("gone", error=reason))
            self._push_all()

    @operation
    def close_channel(self, channel: ServerChannel) -> None:
        """End its consumers and requeue what it has unacknowledged."""
        for consumer in channel.consumers.values():
            consumer.queue.consumers.remove(consumer)
        for tag in list(channel.unacked):
            self._requeue(channel, tag)
        self._channels.pop((channel.wire.name, channel.number), None)

    # ---- declarations and routing

    def declare_queue(self, channel: ServerChannel, name: str, exclusive: bool = False) -> None:
        """Make a queue, if there is none of that name. Raises `Closed` if there is one that is not as exclusive."""
        owner = channel.wire.name if exclusive else ""
        queue = self._queues.setdefault(name, ServerQueue(name, owner, {("", name)}))
        if queue.owner != owner:
            raise Closed(405, f"RESOURCE_LOCKED - {name!r} is not what was asked for")
        self.host.record("srv_queue", q=name, owner=owner)

    @operation
    def bind(self, channel: ServerChannel, exchange: str, key: str, name: str) -> None:
        """Bind a queue. One exchange type is enough: with the key '*' it is a fanout's, with others a direct one's."""
        self._reachable(channel, name).bindings.add((exchange, key))

    @operation
    def publish(self, channel: ServerChannel, exchange: str, key: str, message: Message) -> None:
        """Route to each queue once, however many bindings lead there."""
        for queue in self._queues.values():
            if {(exchange, key), (exchange, "*")} & queue.bindings:
                self._route(channel, message, queue)

    @operation
    def _route(self, channel: ServerChannel, message: Message, queue: ServerQueue) -> None:
        queue.arrivals += 1
        queue.ready.append(Queued(queue, queue.arrivals, message, channel.wire.name))

    def _reachable(self, channel: ServerChannel, name: str) -> ServerQueue:
        queue = self._queues.get(name)
        if queue is None:
            raise Closed(404, f"NOT_FOUND - no queue {name!r}")
        if queue.owner not in ("", channel.wire.name):
            raise Closed(405, f"RESOURCE_LOCKED - {name!r} is exclusive to another connection")
        return queue

    # ---- consuming

    @operation
    def qos(self, channel: ServerChannel, prefetch: int, whole_channel: bool) -> None:
        """Set the limit of unacknowledged messages, of the channel or of each later consumer."""
        if whole_channel:
            channel.prefetch = prefetch
        else:
            channel.consumer_prefetch = prefetch

    @operation
    def consume(
        self,
        channel: ServerChannel,
        name: str,
        tag: str,
        *,
        auto_ack: bool = False,
        exclusive: bool = False,
        no_local: bool = False,
    ) -> None:
        """Add a consumer to a queue. Raises `Closed` if the tag is in use or an exclusive one would not be alone."""
        queue = self._reachable(channel, name)
        if tag in channel.consumers:
            raise Closed(530, f"NOT_ALLOWED - consumer tag {tag!r} is in use")
        taken = any(c.exclusive for c in queue.consumers)
        if taken or (exclusive and queue.consumers):
            raise Closed(403, f"ACCESS_REFUSED - {name!r} in exclusive use")
        consumer = ServerConsumer(
            tag, queue, channel, auto_ack, exclusive, no_local, channel.consumer_prefetch
        )
        queue.consumers.append(consumer)
        channel.consumers[tag] = consumer

    @operation
    def cancel(self, channel: ServerChannel, tag: str) -> None:
        """End a consumer, if it is there (RabbitMQ). What it has not acknowledged stays with the channel."""
        consumer = channel.consumers.pop(tag, None)
        if consumer is not None:
            consumer.queue.consumers.remove(consumer)

    def get(self, channel: ServerChannel, name: str, auto_ack: bool) -> Delivery | None:
        """Hand out the first ready message, or None at once. An exclusive consumer does not prevent it (RabbitMQ)."""
        queue = self._reachable(channel, name)
        if not queue.ready:
            return None
        return self._hand_out(channel, queue.ready.pop(0), None, auto_ack)

    def settle(
        self, channel: ServerChannel, tag: int, multiple: bool, requeue: bool | None
    ) -> None:
        """Ack (`requeue` is None), or nack and reject, which requeue or drop. Raises `Closed` for an unknown tag."""
        if tag not in channel.unacked and not (multiple and tag == 0):
            raise Closed(406, f"PRECONDITION_FAILED - unknown delivery tag {tag}")
        tags = settled_by(list(channel.unacked), tag, multiple)
        asked = {"dtag": tag, "multiple": multiple, "requeue": bool(requeue), "tags": tags}
        self.host.record("srv_settle", conn=channel.wire.name, ch=channel.number, **asked)
        for t in tags:
            if requeue:
                self._requeue(channel, t)
            else:
                del channel.unacked[t]

    def _push_all(self) -> None:
        """Hand each ready message, in order, to the first consumer in turn that may take it."""
        for queue in self._queues.values():
            for item in list(queue.ready):
                consumer = next((c for c in queue.consumers if c.may_take(item)), None)
                if consumer is None:
                    continue
                queue.ready.remove(item)
                queue.consumers.remove(consumer)
                queue.consumers.append(consumer)
                channel = consumer.channel
                delivery = self._hand_out(channel, item, consumer, consumer.auto_ack)
                channel.wire.send(Frame("deliver", channel.number, delivery=delivery))

    @operation
    def _hand_out(
        self, channel: ServerChannel, item: Queued, consumer: ServerConsumer | None, auto_ack: bool
    ) -> Delivery:
        item.consumer = consumer
        channel.tag += 1
        if not auto_ack:
            channel.unacked[channel.tag] = item
        tag = consumer.tag if consumer is not None else ""
        return Delivery(item.message, channel.tag, tag, item.redelivered)

    @operation
    def _requeue(self, channel: ServerChannel, tag: int) -> None:
        """Put a message back into its old place, marked (QS-2). If its queue was deleted meanwhile, it is too."""
        item = channel.unacked.pop(tag)
        item.redelivered = True
        insort(item.queue.ready, item, key=lambda i: i.position)
