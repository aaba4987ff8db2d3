"""Making a recording: publishers and consumers around a broker, through the proxy that records them.

The consumers acknowledge, requeue, reject, keep for a while, close their channels and have their connections cut,
as a seed decides. At the end the queue is drained, so that a lost message can be recognised.
"""

from __future__ import annotations

import random
import socket
import threading
import time
import uuid
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import urlparse

import pika
import pika.exceptions
from pika.adapters.blocking_connection import BlockingChannel
from pika.adapters.utils.connection_workflow import AMQPConnectorException

from seriatim_models.conformance.amqp import reason
from seriatim_models.conformance.protocol import Fault
from seriatim_models.conformance.proxy import Proxy
from seriatim_models.conformance.wire_recording import WireRecorder

GRACE = 20.0
"""Seconds that the end may take beyond those asked for."""
AMQP_PORT = 5672


@dataclass(frozen=True)
class RecordingPlan:
    """What is done, and for how long."""

    seconds: float = 5.0
    messages: int = 2_000
    """Of each publisher, at most."""
    publishers: int = 2
    consumers: int = 3
    prefetch: int = 8
    seed: int = 1


def address(url: str) -> tuple[str, int]:
    """Host and port of a URL. Raises `Fault`."""
    try:
        parts = urlparse(url)
        host, port = parts.hostname, parts.port or AMQP_PORT
    except ValueError as error:
        raise Fault("start", f"not a URL of a broker: {error}") from None
    if parts.scheme != "amqp" or not host:
        raise Fault("start", "not a URL of a broker: amqp://USER:PASSWORD@HOST:PORT/ is one")
    return host, port


def through(url: str, port: int) -> str:
    """The URL of a broker, through its proxy at `port`."""
    parts = urlparse(url)
    user, at, _ = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user}{at}127.0.0.1:{port}").geturl()


def record(
    url: str, arguments: dict[str, str | int], plan: RecordingPlan, recorder: WireRecorder
) -> str:
    """Do the plan and record it; returns the queue's name. Raises `Fault` if there is no broker."""
    host, port = address(url)
    try:
        socket.create_connection((host, port), GRACE).close()
    except OSError as error:  # which the proxy between would hide
        raise Fault("start", f"cannot be connected: {reason(error)}") from None
    q = f"seriatim-record-{uuid.uuid4().hex[:8]}"
    durable = arguments.get("x-queue-type") == "quorum"
    with Proxy(host, port, recorder) as proxy:
        near = pika.URLParameters(through(url, proxy.port))
        near.socket_timeout = near.stack_timeout = near.blocked_connection_timeout = GRACE
        try:
            setup = pika.BlockingConnection(near)
        except (pika.exceptions.AMQPError, AMQPConnectorException, OSError) as error:
            raise Fault("start", f"cannot be connected: {reason(error)}") from None
        try:
            channel = setup.channel()
            channel.queue_declare(q, durable=durable, arguments=arguments)
        except pika.exceptions.AMQPError as error:
            raise Fault("start", f"refused a queue: {reason(error)}") from None
        until = time.monotonic() + plan.seconds
        publishers = [_PublisherThread(near, q, plan, n, until) for n in range(plan.publishers)]
        consumers = [_ConsumerThread(near, q, plan, n, until, proxy) for n in range(plan.consumers)]
        for each in (*publishers, *consumers):
            each.start()
        for each in (*publishers, *consumers):
            each.join(plan.seconds + GRACE)
        _drain(channel, q)
        channel.queue_delete(q)
        setup.close()
    errors = [str(each.error) for each in (*publishers, *consumers) if each.error is not None]
    if errors:
        raise Fault("died", errors[0])
    return q


class _ClientThread(threading.Thread):
    role: ClassVar[str]
    """Part of what the random numbers are drawn from."""

    def __init__(
        self, near: pika.URLParameters, q: str, plan: RecordingPlan, n: int, until: float
    ) -> None:
        super().__init__(daemon=True)
        self.near, self.q, self.plan, self.number, self.until = near, q, plan, n, until
        self.random = random.Random(f"{plan.seed}/{self.role}/{n}")
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.work()
        except Exception as error:  # raised by the thread that started it
            self.error = error

    def work(self) -> None:
        raise NotImplementedError


class _PublisherThread(_ClientThread):
    role = "_Publisher"

    def work(self) -> None:
        connection = pika.BlockingConnection(self.near)
        channel = connection.channel()
        confirms = True
        try:
            channel.confirm_delivery()
        except pika.exceptions.AMQPError:
            confirms = False
            channel.tx_select()
        for n in range(self.plan.messages):
            if time.monotonic() > self.until:
                break
            m = f"p{self.number}:{n}"
            properties = pika.BasicProperties(message_id=m)
            channel.basic_publish("", self.q, m.encode(), properties)
            if not confirms:
                channel.tx_commit()
        connection.close()


class _ConsumerThread(_ClientThread):
    role = "_Consumer"

    def __init__(
        self,
        near: pika.URLParameters,
        q: str,
        plan: RecordingPlan,
        n: int,
        until: float,
        proxy: Proxy,
    ) -> None:
        super().__init__(near, q, plan, n, until)
        self.proxy = proxy

    def work(self) -> None:
        while time.monotonic() < self.until:
            connection = pika.BlockingConnection(self.near)
            try:
                self.use(connection)
                connection.close()
            except pika.exceptions.AMQPConnectionError:
                continue  # the one that was cut

    def use(self, connection: pika.BlockingConnection) -> None:
        """One connection, of several channels one after another."""
        for _ in range(self.random.randint(1, 4)):
            channel = connection.channel()
            channel.basic_qos(prefetch_count=self.plan.prefetch)
            for _ in range(self.random.randint(10, 200)):
                if time.monotonic() > self.until:
                    break
                self.consume_one(channel)
            if self.random.random() < 0.1:
                self.cut(connection)
            channel.close()  # with whatever it holds, and what is in flight to it

    def consume_one(self, channel: BlockingChannel) -> None:
        method, _, _ = next(channel.consume(self.q, inactivity_timeout=0.05))
        if method is None:
            return
        tag, what = method.delivery_tag, self.random.random()
        if what < 0.65:
            channel.basic_ack(tag)
        elif what < 0.70:
            channel.basic_ack(tag, multiple=True)
        elif what < 0.85:
            channel.basic_nack(tag, requeue=True)
        elif what < 0.92:
            channel.basic_reject(tag, requeue=True)
        # else it is kept until something covers it or the channel closes

    def cut(self, connection: pika.BlockingConnection) -> None:
        """Cut the connection off in the proxy, which knows it by the client's port."""
        transport = getattr(getattr(connection, "_impl", None), "_transport", None)
        sock = getattr(transport, "_sock", None)
        if sock is not None:
            self.proxy.drop(self.proxy.name_of(sock.getsockname()[1]))


def _drain(channel: BlockingChannel, q: str) -> None:
    """Take out what is left, until the broker answers that the queue is empty."""
    until = time.monotonic() + GRACE
    empty = 0
    # A connection that was cut may be noticed late: several empty answers, a moment apart.
    while time.monotonic() < until and empty < 3:
        method, _, _ = channel.basic_get(q)
        if method is None:
            empty += 1
            time.sleep(0.1)
        else:
            empty = 0
            channel.basic_ack(method.delivery_tag)
    channel.queue_declare(q, passive=True)
