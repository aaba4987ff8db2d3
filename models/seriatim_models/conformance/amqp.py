"""An AMQP 0-9-1 broker as a `System`, through pika.

A settlement has no reply, so when it took effect can only be seen: `sync` compares the number of ready messages that
the broker counts with the number that must be ready once all that was sent has taken effect. When they agree and no
consumer has both credit and something to get, everything has. If they do not agree in time, it is uncertain.

Qpid counts what is held too, so its count shows nothing of requeueing. But it does what a channel asks one after
another, on one thread, before it answers a later request of that channel: there the answer is the proof.
(In RabbitMQ it is none: the channel asks the queue, which is a process of its own and answers a count first.)
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pika
import pika.exceptions
from pika.adapters.blocking_connection import BlockingChannel
from pika.spec import Basic, BasicProperties

from seriatim_models.conformance.meanings import NOTHING
from seriatim_models.conformance.patience import limited
from seriatim_models.conformance.protocol import Answer, Fault, Push, Request
from seriatim_models.conformance.script import PRIORITIES

SETTLE = 0.4
"""Seconds that `sync` waits for the counts to agree."""
POLL = 0.001


@dataclass
class _AmqpConsumer:
    queue: str
    autoack: bool
    prefetch: int
    held: int = 0

    def may_take(self, channel: _AmqpChannel) -> bool:
        limits = [] if self.autoack else [(self.prefetch, self.held)]
        if not self.autoack:
            limits.append((channel.limit, sum(c.held for c in channel.consumers.values())))
        return all(not limit or held < limit for limit, held in limits)


@dataclass
class _AmqpChannel:
    number: int
    pika: BlockingChannel
    prefetch: int = 0
    limit: int = 0
    consumers: dict[str, _AmqpConsumer] = field(default_factory=dict)
    held: dict[int, tuple[str, _AmqpConsumer | None]] = field(default_factory=dict)
    settling: bool = False
    """Whether a settlement was sent since it last answered."""


def reason(error: BaseException) -> str:
    """Why there is no connection: what the innermost exception says, without pika's brackets around it."""
    for inner in error.args:
        if isinstance(inner, BaseException):
            return reason(inner)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    said = (text for text in error.args if isinstance(text, str) and text)
    return next(said, f"is a broker running there? ({type(error).__name__})")


class BrokerQueues:
    """The queues of a drive in the broker, by the names that all its connections use."""

    def __init__(
        self,
        arguments: Mapping[str, str | int | bool],
        *,
        durable: bool = False,
        persistent: bool = False,
    ) -> None:
        """`durable`: they are to outlive the broker's process; `persistent`: their messages are."""
        self.arguments, self.persistent = dict(arguments), persistent
        self.durable = durable or self.arguments.get("x-queue-type") == "quorum"
        self.declared: set[str] = set()
        self.anew()

    def anew(self) -> None:
        """From now on all names stand for other queues."""
        self.token = uuid.uuid4().hex
        self.declared.clear()

    def name(self, q: str) -> str:
        """What a queue is called in the broker."""
        return f"seriatim-conform-{self.token}-{q}"


class AmqpBroker:
    """One connection. Every reset gives fresh queues, whose names begin with ``seriatim-conform-``."""

    exact = False
    means = NOTHING
    can: frozenset[str] = frozenset(
        {
            *("publish", "get", "ack", "nack", "reject", "qos", "consume", "cancel"),
            *("open", "close", "recover", "count"),
            *("multiple", "drop", "channel-qos", "prefetch-size", "exclusive", "priority"),
            *("queues", "redelivered", "autoack", "mandatory", "immediate"),
        }
    )

    def __init__(
        self,
        url: str,
        arguments: Mapping[str, str | int | bool] | None = None,
        *,
        patience: float = 5.0,
        queues: BrokerQueues | None = None,
    ) -> None:
        """`queues`: those that it uses with other connections, in place of its own with these `arguments`.

        Raises `Fault` if there is no broker.
        """
        self._queues = queues or BrokerQueues(arguments or {})
        arguments = self._queues.arguments
        if int(arguments.get("x-max-priority", 0)) >= PRIORITIES - 1:
            self.can = self.can | {"message-priority"}
        if arguments.get("x-queue-type") == "quorum":
            # https://www.rabbitmq.com/docs/quorum-queues#global-qos: not supported
            self.can = self.can - {"channel-qos"}
        self._patience = patience
        self._pushes: list[Push] = []
        self._channels: dict[int, _AmqpChannel] = {}
        self._names: dict[str, str] = {}
        self._live: dict[str, int] = {}  # queue: messages published and not settled
        self._strange: dict[str, int] = {}  # queue: by how many its count is not what it must be
        try:
            self._parameters = pika.URLParameters(url)
            scheme = urlsplit(url).scheme
        except (ValueError, TypeError, LookupError, AttributeError):
            scheme = ""  # pika's words are those of its own slices
        if scheme not in ("amqp", "amqps"):
            raise Fault("start", "not a URL of a broker: amqp://USER:PASSWORD@HOST:PORT/ is one")
        self._parameters.blocked_connection_timeout = patience
        self._connection: pika.BlockingConnection | None = None
        self._confirms = True
        self._counts_held = False
        self._begin()

    def _begin(self) -> None:
        """Connect, and see what the broker is. Raises `Fault`."""
        self._connect()
        self.name, self.version = self._introduction()
        if "Qpid" in self.name:
            # AMQP 0-9-1's own meaning: a prefetch is the channel's. RabbitMQ made it the consumer's.
            self.can = self.can - {"channel-qos"} | {"whole-qos"}
        self._counts_held = self._asks_for_counts()

    # ---- System

    def reset(self) -> None:
        try:
            with self._guarded("reset"):
                self._delete_queues()
                for channel in self._channels.values():
                    with contextlib.suppress(pika.exceptions.AMQPChannelError):
                        if channel.pika.is_open:
                            channel.pika.close()
        except Fault:
            # What an earlier script broke shall not break this one.
            self._connection = None
        if self._connection is None or self._connection.is_closed:
            self._names.clear()
            self._connect()
        self._queues.anew()
        self._channels.clear()
        self._pushes.clear()
        self._live.clear()
        self._strange.clear()

    def do(self, request: Request) -> Answer:
        if request.op not in ("open", "publish") and request.ch not in self._channels:
            return Answer(ok=False, why="its channel is closed")
        if self._connection is None:
            return Answer(ok=False, why="its connection is closed")
        with self._guarded(request.op):
            try:
                answer: Answer = getattr(self, f"_{request.op}", self._cannot)(request)
            except pika.exceptions.ChannelClosedByBroker as closed:
                self._closed(request.ch, closed.reply_code, closed.reply_text)
                answer = Answer(ok=False, code=closed.reply_code, why=closed.reply_text)
            except pika.exceptions.ConnectionClosedByBroker as closed:
                # What is not implemented costs the connection, and all channels with it.
                for ch in list(self._channels):
                    self._closed(ch, closed.reply_code, closed.reply_text)
                self._connection = None
                answer = Answer(ok=False, code=closed.reply_code, why=closed.reply_text)
        return answer

    def sync(self) -> bool:
        if self._connection is None:
            return False
        until = time.monotonic() + SETTLE
        with self._guarded("sync"):
            self._fence()
            while True:
                self._dispatch()
                if all(self._at_rest(q) for q in self._names):
                    return not any(self._strange.values())
                if time.monotonic() > until:
                    # Messages were lost or came from nowhere: from here on the count is compared with this one.
                    for q in self._names:
                        self._strange[q] = self._counted(q) - self._expected(q)
                    return False
                time.sleep(POLL)

    def pushed(self) -> list[Push]:
        taken, self._pushes = self._pushes, []
        return taken

    def end(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and connection.is_open:
            with (
                contextlib.suppress(pika.exceptions.AMQPError, Fault),
                limited(self._patience, "close"),
            ):
                self._delete_queues()
                connection.close()

    def _push(self, push: Push) -> None:
        """Something came unasked."""
        self._pushes.append(push)

    # ---- the connection

    def _connect(self) -> None:
        try:
            with limited(self._patience, "connect"):
                self._connection = pika.BlockingConnection(self._parameters)
                self._admin = self._connection.channel()
                self._publisher = self._connection.channel()
                try:
                    if self._confirms:
                        self._publisher.confirm_delivery()
                    else:
                        self._publisher.tx_select()
                except pika.exceptions.AMQPError:
                    if not self._confirms:
                        raise
                    # No publisher confirms in the standard: without them a transaction confirms that a message is in.
                    self._confirms = False
                    self._connect()
        except (pika.exceptions.AMQPError, OSError) as error:
            raise Fault("start", f"cannot be connected: {reason(error)}") from None

    def _introduction(self) -> tuple[str, str]:
        """What the broker calls itself, and its version."""
        # pika keeps the properties that the broker sent when the connection began, and has no public name for them
        properties = (
            getattr(getattr(self._connection, "_impl", None), "server_properties", None) or {}
        )
        product, version = (properties.get(name, "") for name in ("product", "version"))
        return str(product) or "broker", str(version)

    @contextmanager
    def _guarded(self, what: str) -> Iterator[None]:
        """Every failure of the connection is a fault of the broker."""
        try:
            with limited(self._patience, what):
                yield
        except pika.exceptions.ChannelClosedByBroker:
            raise
        except (pika.exceptions.AMQPError, OSError) as error:
            self._connection = None
            raise Fault("died", f"{what}: {type(error).__name__} {error}".strip()) from None

    def _dispatch(self) -> None:
        assert self._connection is not None
        self._connection.process_data_events(0)

    def _delete_queues(self) -> None:
        for name in list(self._queues.declared):
            with contextlib.suppress(pika.exceptions.ChannelClosedByBroker):
                self._admin.queue_delete(name)
        self._queues.declared.clear()
        self._names.clear()

    def _queue(self, q: str) -> str:
        if q not in self._names:
            name, of = self._queues.name(q), self._queues
            self._admin.queue_declare(name, durable=of.durable, arguments=of.arguments)
            of.declared.add(name)
            self._names[q] = name
            self._live[q] = 0
        return self._names[q]

    def _asks_for_counts(self) -> bool:
        """Whether the number of messages that the broker reports includes those that a consumer holds."""
        with self._guarded("counting"):
            name = self._queue("count")
            self._put(name, "m")
            method, _, _ = self._admin.basic_get(name)
            declared = self._admin.queue_declare(name, passive=True)
            if method is not None:
                self._admin.basic_ack(method.delivery_tag)
            self._delete_queues()
        return bool(declared.method.message_count)

    def _fence(self) -> None:
        """Ask each channel that settled something for an answer, which comes after a refusal of that."""
        for ch in [ch for ch, channel in self._channels.items() if channel.settling]:
            channel = self._channels[ch]
            channel.settling = False
            try:
                channel.pika.exchange_declare("amq.direct", passive=True)
            except pika.exceptions.ChannelClosedByBroker as closed:
                self._closed(ch, closed.reply_code, closed.reply_text)

    def _closed(self, ch: int, code: int, why: str) -> None:
        """The broker closed a channel by itself."""
        self._push(Push(ev="closed", ch=ch, code=code, why=why, t=time.monotonic_ns()))
        self._channels.pop(ch, None)

    def _counted(self, q: str) -> int:
        declared = self._admin.queue_declare(self._names[q], passive=True)
        return int(declared.method.message_count)

    def _held(self, q: str) -> int:
        return sum(queue == q for c in self._channels.values() for queue, _ in c.held.values())

    def _expected(self, q: str) -> int:
        return self._live[q] - (0 if self._counts_held else self._held(q))

    def _at_rest(self, q: str) -> bool:
        counted = self._counted(q)
        self._dispatch()
        off = self._strange.get(q, 0)
        if counted != self._expected(q) + off:
            return False
        ready = self._live[q] + off - self._held(q)
        return ready <= 0 or not any(
            consumer.queue == q and consumer.may_take(channel)
            for channel in self._channels.values()
            for consumer in channel.consumers.values()
        )

    # ---- operations

    def _cannot(self, request: Request) -> Answer:
        return Answer(ok=False, why=f"cannot {request.op}")

    def _open(self, request: Request) -> Answer:
        assert self._connection is not None
        self._channels[request.ch] = _AmqpChannel(request.ch, self._connection.channel())
        return Answer()

    def _close(self, request: Request) -> Answer:
        self._channels[request.ch].pika.close()
        self._dispatch()
        del self._channels[request.ch]
        return Answer()

    def _publish(self, request: Request) -> Answer:
        if request.immediate or request.mandatory:
            return self._publish_strictly(request)
        name = self._queue(request.q)
        try:
            self._put(name, request.m, request.prio)
        except pika.exceptions.NackError:
            return Answer(ok=False, why="the broker refused it")
        self._live[request.q] += 1
        return Answer()

    def _publish_strictly(self, request: Request) -> Answer:
        """Mandatory, to a queue that is not there; or immediate, to one that is."""
        assert self._connection is not None
        absent = f"seriatim-conform-absent-{uuid.uuid4().hex}"
        key = self._queue(request.q) if request.immediate else absent
        channel = self._connection.channel()
        channel.add_on_return_callback(self._returned)
        # pika's blocking channel has no parameter for immediate: the frame is made here
        method = Basic.Publish(
            exchange="", routing_key=key, mandatory=request.mandatory, immediate=request.immediate
        )
        body = (BasicProperties(message_id=request.m), request.m.encode())
        getattr(channel, "_impl")._send_method(method, body)  # noqa: B009
        channel.exchange_declare("amq.direct", passive=True)
        self._dispatch()
        channel.close()
        return Answer()

    def _returned(
        self, _: BlockingChannel, method: Basic.Return, properties: BasicProperties, body: bytes
    ) -> None:
        now = time.monotonic_ns()
        self._push(Push(ev="return", m=body.decode(), code=method.reply_code, t=now))

    def _count(self, request: Request) -> Answer:
        self._queue(request.q)
        held = self._held(request.q)
        ready = self._counted(request.q) - (held if self._counts_held else 0)
        return Answer(ready=ready, held=held)

    def _declare(self, request: Request) -> Answer:
        """Ask for a queue that is there, on the client's own channel: a call, whose reply has the queue's name."""
        name = self._queue(request.q)
        declared = self._channels[request.ch].pika.queue_declare(name, passive=True)
        same = declared.method.queue == name
        return Answer(q=request.q if same else declared.method.queue)

    def _recover(self, request: Request) -> Answer:
        channel = self._channels[request.ch]
        channel.pika.basic_recover(requeue=request.requeue is not False)
        for _, consumer in channel.held.values():
            if consumer is not None:
                consumer.held -= 1
        channel.held.clear()
        return Answer()

    def _put(self, name: str, m: str, priority: int | None = None) -> None:
        """Until the broker has it."""
        mode = 2 if self._queues.persistent else 1
        properties = BasicProperties(message_id=m, delivery_mode=mode, priority=priority)
        self._publisher.basic_publish("", name, m.encode(), properties)
        if not self._confirms:
            self._publisher.tx_commit()

    def _get(self, request: Request) -> Answer:
        channel = self._channels[request.ch]
        method, _, body = channel.pika.basic_get(self._queue(request.q), auto_ack=request.autoack)
        if method is None:
            return Answer()
        if request.autoack:
            self._live[request.q] -= 1
        else:
            channel.held[method.delivery_tag] = (request.q, None)
        return Answer(m=body.decode(), dtag=method.delivery_tag, redelivered=method.redelivered)

    def _qos(self, request: Request) -> Answer:
        channel, count = self._channels[request.ch], request.prefetch or 0
        whole = request.scope == "channel"
        size = request.prefetch_size or 0
        # In RabbitMQ `global` means the channel; in AMQP 0-9-1 it would be the connection's.
        flag = whole and "whole-qos" not in self.can
        channel.pika.basic_qos(prefetch_size=size, prefetch_count=count, global_qos=flag)
        if whole or "whole-qos" in self.can:
            channel.limit = count
        else:
            channel.prefetch = count
        return Answer()

    def _consume(self, request: Request) -> Answer:
        channel = self._channels[request.ch]
        name = self._queue(request.q)
        consumer = _AmqpConsumer(request.q, request.autoack, channel.prefetch)
        # Before it is asked: pika may hand out the first delivery before it returns.
        channel.consumers[request.ctag] = consumer
        try:
            channel.pika.basic_consume(
                name,
                self._receiver(channel, request.ctag, consumer),
                auto_ack=request.autoack,
                exclusive=request.exclusive,
                consumer_tag=request.ctag,
                arguments={"x-priority": request.cprio} if request.cprio is not None else None,
            )
        except pika.exceptions.ChannelClosedByBroker:
            del channel.consumers[request.ctag]
            raise
        return Answer()

    def _receiver(
        self, channel: _AmqpChannel, ctag: str, consumer: _AmqpConsumer
    ) -> Callable[[BlockingChannel, Basic.Deliver, BasicProperties, bytes], None]:
        def receive(
            _: BlockingChannel, method: Basic.Deliver, properties: BasicProperties, body: bytes
        ) -> None:
            tag = method.delivery_tag
            if consumer.autoack:
                self._live[consumer.queue] -= 1
            else:
                channel.held[tag] = (consumer.queue, consumer)
                consumer.held += 1
            push = Push(
                ev="deliver",
                ch=channel.number,
                ctag=ctag,
                dtag=tag,
                m=body.decode(),
                redelivered=method.redelivered,
                t=time.monotonic_ns(),
            )
            self._push(push)

        return receive

    def _cancel(self, request: Request) -> Answer:
        channel = self._channels[request.ch]
        # pika requeues by itself what it has not handed out yet: that must be handed out before.
        self._dispatch()
        channel.pika.basic_cancel(request.ctag)
        self._dispatch()
        channel.consumers.pop(request.ctag, None)
        return Answer()

    def _ack(self, request: Request) -> Answer:
        return self._settle(request)

    _nack = _reject = _ack

    def _settle(self, request: Request) -> Answer:
        channel, tag = self._channels[request.ch], request.dtag or 0
        channel.settling = True
        if request.op == "ack":
            channel.pika.basic_ack(tag, multiple=request.multiple)
        elif request.op == "nack":
            channel.pika.basic_nack(
                tag, multiple=request.multiple, requeue=request.requeue is not False
            )
        else:
            channel.pika.basic_reject(tag, requeue=request.requeue is not False)
        for t in [
            t for t in channel.held if t == tag or (request.multiple and (t <= tag or tag == 0))
        ]:
            queue, consumer = channel.held.pop(t)
            if consumer is not None:
                consumer.held -= 1
            if request.op == "ack" or request.requeue is False:
                self._live[queue] -= 1
        return Answer()
