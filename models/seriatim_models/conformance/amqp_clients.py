"""A broker of AMQP 0-9-1 that several clients use at once: `amqp`'s operations, a connection for each client.

Beside the thread that asks each client has one that takes in what comes while nothing is asked, which keeps the
heartbeats going, and ends a connection on which the broker leaves a question without an answer.

A client that is gone holds messages for as long as the broker does not know it. So each connection declares a queue of
its own (`exclusive`), which the broker deletes with the connection: `count` counts only when those of all that are gone
are deleted.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
import pika
import pika.exceptions
from pika import spec

from seriatim_models.conformance.amqp import SETTLE, AmqpBroker, BrokerQueues
from seriatim_models.conformance.concurrent.client import (
    ConcurrentClient,
    OutcomeUnknown,
    Receiver,
)
from seriatim_models.conformance.protocol import Answer, Fault, Push, Request

T = TypeVar("T")

TICK = 0.01
"""Seconds between two looks at what has come."""
HEARTBEAT = 2
"""Seconds between two heartbeats: a connection that is half open is noticed after two."""
GONE = 0.1
"""Seconds after a connection was seen gone until what it held is back in its queue, wherever that is."""
UNUSED = frozenset({"recover", "multiple", "channel-qos", "autoack", "mandatory", "immediate"})
"""What several clients do not use."""


class AmqpClients:
    """`ConcurrentSystem`, which can start anew: every reset gives other queues."""

    one_at_a_time = False

    def __init__(
        self,
        urls: Sequence[str],
        queues: BrokerQueues,
        *,
        patience: float = 5.0,
    ) -> None:
        """By turns clients connect to one of the `urls`. Raises `Fault` if there is no broker."""
        self._urls, self._patience = itertools.cycle(urls), patience
        self.queues = queues
        self._home = AmqpBroker(next(self._urls), patience=patience, queues=queues)
        self.name, self.version, self.means = (
            self._home.name, self._home.version, self._home.means,
        )  # fmt: skip
        self.can = self._home.can - UNUSED | {"declare"}
        self.counts_held = self._home._counts_held
        self.clients: list[AmqpClient] = []
        """All since the last reset, those that are gone as well."""
        self.leaving: dict[str, float] = {}
        """The own queues of connections that are gone here, and when each was seen gone there; 0 if it was not."""

    def connect(self, number: int, receive: Receiver) -> ConcurrentClient:
        """A connection with one channel of that number."""
        try:
            client = AmqpClient(self, next(self._urls), number, receive, self._patience / 2)
        except (Fault, pika.exceptions.AMQPError, OSError) as why:
            raise OutcomeUnknown(str(why)) from why
        self.clients.append(client)
        return client

    def reset(self) -> None:
        """Raises `Fault`."""
        for client in self.clients:
            client.close()
        self.clients, self.leaving = [], {}
        self._home.reset()

    def sync(self) -> bool:
        """Whether every queue has what is published and not settled, and nobody could be given more."""
        asks = next((client for client in self.clients if not client.over), None)
        until = time.monotonic() + SETTLE
        used = {q for client in self.clients for q in client.live}
        with contextlib.suppress(OutcomeUnknown):
            while asks is not None and not all(self._settled(asks, q) for q in used):
                if time.monotonic() > until:
                    return False
                time.sleep(TICK)
            return asks is not None
        return False

    def _settled(self, asks: AmqpClient, q: str) -> bool:
        live = sum(client.live.get(q, 0) for client in self.clients)
        counted = asks.do(Request(op="count", ch=asks.ch, q=q))
        if counted.ready is None or counted.held is None:
            return False
        waits = counted.ready and any(client.waits(q) for client in self.clients)
        return counted.ready + counted.held == live and not waits

    def end(self) -> None:
        for client in self.clients:
            client.close()
        self._home.end()


class AmqpClient(AmqpBroker):
    """One client. `do` is called by one thread; what comes is given to its receiver by that or by the client's own."""

    def __init__(
        self, clients: AmqpClients, url: str, ch: int, receive: Receiver, limit: float
    ) -> None:
        """Raises `Fault`, or what pika raises."""
        self._clients, self._receive, self._limit = clients, receive, limit
        self._turn = threading.Lock()
        self._asked: float | None = None
        self._over = threading.Event()
        self.ch = ch
        self.own = f"{clients.queues.name('client')}-{ch}"
        super().__init__(url, patience=limit, queues=clients.queues)
        self._counts_held = clients.counts_held
        threading.Thread(target=self._take_in, daemon=True).start()
        try:
            self._alone(lambda: self._admin.queue_declare(self.own, exclusive=True))
            self._alone(lambda: AmqpBroker.do(self, Request(op="open", ch=ch)))
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        self._parameters.heartbeat = HEARTBEAT
        self._parameters.socket_timeout = self._parameters.stack_timeout = self._limit
        self._connect()
        self.name, self.version, self.can = (
            self._clients.name, self._clients.version, self._clients.can,
        )  # fmt: skip

    # ---- ConcurrentClient

    def do(self, request: Request) -> Answer:
        try:
            answer = self._alone(lambda: AmqpBroker.do(self, request))
        except (Fault, pika.exceptions.AMQPError, OSError) as why:
            raise OutcomeUnknown(str(why)) from why
        return answer

    def close(self) -> None:
        if self._over.is_set():
            return
        # Else its channel was closed in order, and what it held is back.
        if self._channels or self._queues.durable:
            self._clients.leaving[self.own] = 0.0
        self._over.set()
        connection, self._connection = self._connection, None
        self._shut(connection)
        if connection is not None and self._turn.acquire(timeout=self._limit):
            # pika sees that it is over, and gives up what it has: with an exception of one kind or another.
            with contextlib.suppress(Exception):
                while connection.is_open:
                    connection.process_data_events(1)
            self._turn.release()

    # ---- what the others see

    @property
    def over(self) -> bool:
        """Whether it is given up."""
        return self._over.is_set()

    @property
    def live(self) -> dict[str, int]:
        """By queue how many messages this client has published, less those that it has settled."""
        return self._live

    def held(self, q: str) -> int:
        """How many messages of a queue it holds."""
        if self.over:
            return 0
        return sum(
            queue == q for c in [*self._channels.values()] for queue, _ in [*c.held.values()]
        )

    def waits(self, q: str) -> bool:
        """Whether a consumer of its could be given a message of a queue."""
        return not self.over and any(
            consumer.queue == q and consumer.may_take(channel)
            for channel in list(self._channels.values())
            for consumer in list(channel.consumers.values())
        )

    # ---- operations

    def _count(self, request: Request) -> Answer:
        if not self._seen_gone():
            return Answer(ok=False, why="the broker still has a connection that was ended")
        answer = super()._count(request)
        held = sum(client.held(request.q) for client in self._clients.clients)
        if self._counts_held and answer.ready is not None:
            return Answer(ready=answer.ready + (answer.held or 0) - held, held=held)
        return Answer(ready=answer.ready, held=held)

    def _seen_gone(self) -> bool:
        """Whether the broker has done with all connections that were ended here."""
        now = time.monotonic()
        for own, seen in list(self._clients.leaving.items()):
            if not seen and not self._is_there(own):
                self._clients.leaving[own] = now
            elif seen and now - seen > GONE:
                del self._clients.leaving[own]
        return not self._clients.leaving

    def _is_there(self, name: str) -> bool:
        assert self._connection is not None
        channel = self._connection.channel()
        try:
            channel.queue_declare(name, passive=True)
        except pika.exceptions.ChannelClosedByBroker as closed:
            return bool(closed.reply_code != spec.NOT_FOUND)
        channel.close()
        return True

    def _cancel(self, request: Request) -> Answer:
        """Without pika's own cancel, which gives back what comes between the request and its answer, unseen."""
        channel = self._channels[request.ch]
        cancel = spec.Basic.Cancel(consumer_tag=request.ctag, nowait=True)
        getattr(channel.pika, "_impl")._send_method(cancel)  # noqa: B009
        channel.pika.exchange_declare("amq.direct", passive=True)
        self._dispatch()
        channel.consumers.pop(request.ctag, None)
        return Answer()

    # ---- the connection

    def _alone(self, do: Callable[[], T]) -> T:
        """What it returns, called while nobody else uses the connection, and limited in time."""
        with self._turn:
            self._asked = time.monotonic()
            try:
                return do()
            finally:
                self._asked = None

    def _push(self, push: Push) -> None:
        if self.over:
            return  # what is on its way to one that is gone reaches nobody
        called = push.ev == "deliver"  # by pika, and what is recorded within is seen by P12
        if called:
            self._receive(msgspec.structs.replace(push, ev="cb_begin"))
        self._receive(push)
        if called:
            self._receive(msgspec.structs.replace(push, ev="cb_end"))

    def _take_in(self) -> None:
        """What the client's own thread does."""
        while not self._over.wait(TICK):
            connection, asked = self._connection, self._asked
            if asked is not None and time.monotonic() - asked > self._limit:
                self._shut(connection)
            if connection is None or asked is not None or not self._turn.acquire(blocking=False):
                continue
            try:
                connection.process_data_events(0)
            except (pika.exceptions.AMQPError, OSError):
                return  # which the next question shows
            finally:
                self._turn.release()

    def _shut(self, connection: pika.BlockingConnection | None) -> None:
        """End a connection at once, from any thread."""
        transport = getattr(getattr(connection, "_impl", None), "_transport", None)
        with contextlib.suppress(OSError, AttributeError):
            getattr(transport, "_sock").shutdown(socket.SHUT_RDWR)  # noqa: B009
