"""A message broker's client, by the threading model of RabbitMQ's Java client, as the smallest code that is right.

It is the article "The RabbitMQ Threading Model": one reader for each connection, channels with one synchronous
operation at a time, and the work pool (`seriatim.workpool`), which runs callbacks on a bounded pool of threads.
`seriatim.broker` is the server side that it needs.

How to think of it
------------------
One thread, the reader, takes frames from the wire; it hands replies to their callers and deliveries to the work pool,
and never runs an application's code. Ten rules; 1 to 3 stand in `seriatim.broker`, 5 to 7 in `seriatim.workpool`.

Rule 4 (one reader). Only the reader takes from the wire, so what a channel gets is in the order in which it was pushed.
                    It registers a consumer itself, with the reply that allows it: the next frame may be its delivery.
Rule 8 (one call).  A channel's slot for its synchronous operation is freed by the reply and by nothing else.
                    A call that times out stays in the slot until its reply comes, so that a late reply cannot answer
                    the next call.
Rule 9 (no wait).   The reader does not wait for callbacks, for a callback may wait for a reply. Without a capacity it
                    never waits, and memory is bounded by prefetch; with one it waits, but never while a call is out
                    on any channel of the connection.
Rule 10 (end).      Who waits (for a turn, a reply, room) is woken when what it waits for ends, with the reason.
                    However a connection ends, by the application, a failure here or the server, its reader ends it
                    here, and `Connection.close` returns when the reader has.

What this file does not know
----------------------------
It starts no threads: whoever uses it runs `Connection.reader` on one and `Executor.worker` on as many as the pool is
large. It does not know channel numbers used twice. What the broker does not know it does not know either.

Times are in seconds. A time limit is for one sleep: a waiter that was woken for somebody else's sake sleeps anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from seriatim.broker import Act, Closed, Delivery, Frame, Message, Server, Wire
from seriatim.host import Cell, Host, operation
from seriatim.workpool import BLOCK, CAPACITY, Executor, Misuse, Work, WorkService

__all__ = ["CallTimeout", "Callback", "Channel", "Connection", "Delivery"]


class CallTimeout(Exception):
    """No reply in time. The operation may have happened; the channel waits for its reply before it sends the next."""


class Connection:
    """A connection to a server, open from the start. One thread must run `reader`."""

    def __init__(
        self,
        host: Host,
        server: Server,
        name: str,
        executor: Executor,
        capacity: int | None = CAPACITY,
        block: int = BLOCK,
    ) -> None:
        self.host = host
        self.server = server
        self.name = name
        self.wire = Wire(host, name)
        self.work = WorkService(host, executor, capacity, block, self.fail, name)
        self._lock = host.lock(f"{name}.channels")
        self._over = host.condition(self._lock, f"{name}.over")
        self._channels: Cell[Mapping[int, Channel]] = host.cell({}, f"{name}.opened")
        self._closed: Closed | None = None
        self._gone = False

    def open_channel(self) -> Channel:
        """Open the next channel. Raises `Closed` if the connection has ended."""
        with self._lock:
            if self._closed is not None:
                raise self._closed
            channels = self._channels.get()
            number = len(channels) + 1
            channel = Channel(self, number)
            self._channels.set({**channels, number: channel})
            self.work.pool.register_key(channel.key)
            self.server.open(self.wire, number)
            return channel

    @operation
    def close(self) -> None:
        """End it and return when it has ended. What was delivered here and has not begun to run is dropped.

        The reader must be running, and may not be who calls.
        """
        self._end(Closed(200, "closed by the application"), tell=True)
        with self._lock:
            while not self._gone:
                self._over.wait()

    def fail(self, why: str) -> None:
        """End it without waiting: any thread may do so, in the middle of anything (rule 7)."""
        self._end(Closed(541, f"INTERNAL_ERROR - {why}"), tell=True)

    def reader(self) -> None:
        """Read until the server has sent its last frame."""
        while True:
            frame = self.wire.receive()
            if frame.error is not None and frame.kind == "gone":
                self._on_gone(frame.error)
                return
            # Only `open_channel` adds, and before the server can name it. Nothing is ever removed.
            self._channels.get()[frame.channel].on_frame(frame)

    @operation
    def _on_gone(self, error: Closed) -> None:
        self._end(error)
        with self._lock:
            self._gone = True
            self._over.notify_all()

    def _end(self, error: Closed, tell: bool = False) -> None:
        """Close all channels and open no more; then, with `tell`, end the connection at the server."""
        with self._lock:
            if self._closed is not None:
                return
            self._closed = error
            channels = self._channels.get()
        for channel in channels.values():
            channel.shut_down(error)
        if tell:
            self.server.disconnect(self.wire, error)


Callback = Callable[["Channel", Delivery], None]

Effect = Callable[[], object]
"""What the reader does with the reply to a call before it reads on (rule 4)."""


@dataclass(eq=False)
class Call:
    """A synchronous operation that is under way."""

    number: int
    op: str
    act: Act
    on_reply: Effect | None
    timeout: float | None
    reply: Frame | None = None
    """What the server sent, or what stands for it if the channel ends first."""


class Channel:
    """A channel. Any thread may call it, callbacks included."""

    def __init__(self, connection: Connection, number: int) -> None:
        self.connection = connection
        self.host = connection.host
        self.server = connection.server
        self.number = number
        self.key = f"{connection.name}.{number}"
        self.closed: Closed | None = None
        self._lock = self.host.lock(self.key)
        self._changed = self.host.condition(self._lock, f"{self.key}.changed")
        self._active: Call | None = None
        self._calls = 0
        self._consumers: dict[str, Callback] = {}

    # ---- operations that wait for a reply

    def queue_declare(self, name: str, *, exclusive: bool = False) -> None:
        """Make a queue, if there is none of that name; an exclusive one is deleted with the connection."""
        self._call("declare", lambda c: self.server.declare_queue(c, name, exclusive))

    def queue_bind(self, name: str, exchange: str, key: str = "*") -> None:
        """Have an exchange route messages with this key, or all ('*'), to a queue."""
        if not exchange:
            raise Misuse("the default exchange has its own bindings")
        self._call("bind", lambda c: self.server.bind(c, exchange, key, name))

    def basic_qos(self, prefetch: int, *, whole_channel: bool = False) -> None:
        """Have at most so many unacknowledged, 0 for no limit: for each later consumer, or for the channel together."""
        if prefetch < 0:
            raise Misuse(f"prefetch is 0 (no limit) or more, not {prefetch}")
        self._call("qos", lambda c: self.server.qos(c, prefetch, whole_channel))

    def basic_consume(
        self,
        queue: str,
        callback: Callback,
        *,
        tag: str,
        auto_ack: bool = False,
        exclusive: bool = False,
        no_local: bool = False,
    ) -> None:
        """Have `callback` called for each message of a queue, on a thread of the pool."""
        if not tag:
            raise Misuse("a consumer has a tag: without one it is a get's delivery")
        self._call(
            "consume",
            lambda c: self.server.consume(
                c, queue, tag, auto_ack=auto_ack, exclusive=exclusive, no_local=no_local
            ),
            lambda: self._consumers.update({tag: callback}),
        )

    def basic_cancel(self, tag: str) -> None:
        """End a consumer. Deliveries that are here already still run."""
        self._call(
            "cancel",
            lambda c: self.server.cancel(c, tag),
            lambda: self._consumers.pop(tag, None),
        )

    def basic_get(
        self, queue: str, *, auto_ack: bool = False, timeout: float | None = None
    ) -> Delivery | None:
        """Get the next message or None, at once. After a `CallTimeout` a message that was got is unacknowledged."""
        got = self._call("get", lambda c: self.server.get(c, queue, auto_ack), timeout=timeout)
        return got if isinstance(got, Delivery) else None

    def close(self) -> None:
        """Close the channel: what is unacknowledged is requeued, deliveries that have not begun to run are dropped."""
        with suppress(Closed):  # by somebody else, before or meanwhile
            self._call("close", self.server.close_channel)
        self.shut_down(Closed(200, "the channel was closed by the application"))

    def _call(
        self, op: str, act: Act, on_reply: Effect | None = None, timeout: float | None = None
    ) -> object:
        with self._lock:
            self._calls += 1
            return self._converse(Call(self._calls, op, act, on_reply, timeout))

    @operation
    def _converse(self, call: Call) -> object:
        """Wait for the turn, send, wait for the reply; raises `Closed` or `CallTimeout`. Under the lock."""
        while self._active is not None:
            self._wait(call)
        self._ensure_open()
        self._active = call
        self.connection.work.pool.unlimit(self.key)
        self.server.request(self.connection.wire, self.number, call.act, call.number)
        while call.reply is None:
            self._wait(call)
        if call.reply.error is not None:
            raise call.reply.error
        return call.reply.value

    def _wait(self, call: Call) -> None:
        if not self._changed.wait(call.timeout):
            # rule 8: if it was sent it stays in the slot until its reply has come
            raise CallTimeout(f"no reply within {call.timeout} seconds")

    def _ensure_open(self) -> None:
        if self.closed is not None:
            raise self.closed

    # ---- operations that do not wait

    def basic_publish(self, exchange: str, key: str, message: Message) -> None:
        """Send a message to an exchange."""
        self._send(lambda c: self.server.publish(c, exchange, key, message))

    def basic_ack(self, tag: int, *, multiple: bool = False) -> None:
        """Acknowledge a delivery, or with `multiple` all up to it (tag 0: all)."""
        self._settle(tag, multiple, None)

    def basic_nack(self, tag: int, *, multiple: bool = False, requeue: bool = True) -> None:
        """Refuse a delivery, or with `multiple` all up to it (tag 0: all); the server requeues or drops them."""
        self._settle(tag, multiple, requeue)

    def basic_reject(self, tag: int, *, requeue: bool = True) -> None:
        """Refuse a delivery; the server requeues or drops it."""
        self._settle(tag, False, requeue)

    def _settle(self, tag: int, multiple: bool, requeue: bool | None) -> None:
        if tag < 0:
            raise Misuse(f"delivery tags start at 1, this is {tag}")
        self._send(lambda c: self.server.settle(c, tag, multiple, requeue))

    def _send(self, act: Act) -> None:
        with self._lock:
            self._ensure_open()
            self.server.request(self.connection.wire, self.number, act)

    # ---- what the reader does

    @operation
    def on_frame(self, frame: Frame) -> None:
        """Take what the server sent to this channel."""
        if frame.delivery is not None:
            self._on_delivery(frame.delivery)
        elif frame.kind == "reply":
            self._on_reply(frame)
        elif frame.error is not None:
            self.shut_down(frame.error)

    def _on_delivery(self, delivery: Delivery) -> None:
        with self._lock:
            callback = self._consumers.get(delivery.consumer_tag)
        if callback is None:
            return
        work = Work(f"{self.key}:{delivery.delivery_tag}", partial(callback, self, delivery))
        self.connection.work.add(self.key, work)

    def _on_reply(self, frame: Frame) -> None:
        with self._lock:
            if self._active is not None and self._active.on_reply is not None:
                self._active.on_reply()
            self._finish(frame)

    def _finish(self, reply: Frame) -> None:
        """Free the slot: the call in it, if there is one, has its reply."""
        if self._active is None:
            return
        self._active.reply = reply
        self._active = None
        self.connection.work.pool.limit(self.key)
        self._changed.notify_all()

    def shut_down(self, error: Closed) -> None:
        """Close the channel here: whoever waits for a turn or a reply gets `error`."""
        with self._lock:
            if self.closed is not None:
                return
            self.closed = error
            self._finish(Frame("close", error=error))
        self.connection.work.pool.unregister_key(self.key)
