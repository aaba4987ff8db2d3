"""Brokers behind a socket of their own, as `adapters` has those behind a library: NSQ, ActiveMQ Artemis, ElasticMQ.

The two that push are asked what they count, so that `sync` knows when nothing more is on its way.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import socket
import struct
import time
import uuid
from collections.abc import Callable
from typing import Any
from urllib.request import Request, urlopen

from seriatim_workshop.systems.adapters import (
    PATIENCE,
    TARGET,
    Handle,
    MotoSqs,
    MotoSqsFifo,
    TagTable,
    target,
)

POLL = 0.002
"""Seconds between two looks at what a server counts."""


def ports() -> tuple[int, int]:
    """The port of the protocol, and that of HTTP, of ``host:port:port``."""
    _, port, http = os.environ[TARGET].split(":")
    return int(port), int(http)


def http(path: str, *, post: bool = False) -> bytes:
    """What the server answers over HTTP."""
    request = Request(f"http://127.0.0.1:{ports()[1]}{path}", method="POST" if post else "GET")
    with urlopen(request, timeout=PATIENCE) as answer:
        found: bytes = answer.read()
        return found


class ServerConnection:
    """A connection to the server's port, and what came on it that is not read yet."""

    def __init__(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", ports()[0]), timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()

    def send(self, data: bytes) -> None:
        """Send all of it."""
        self.socket.sendall(data)

    def receive(self, seconds: float) -> bool:
        """Read what has come, after at most so many seconds; whether there was something."""
        if not select.select([self.socket], [], [], seconds)[0]:
            return False
        more = self.socket.recv(2**16)
        self.buffer += more
        return bool(more)  # nothing: the server has closed the connection

    def refused(self, why: str) -> RuntimeError:
        """The error for a refusal, after which the connection is of no use."""
        self.socket.close()
        return RuntimeError(f"refused: {why}")


def until_quiet(receive: Callable[[], None], quiet: Callable[[], bool], what: str) -> None:
    """Receive until `quiet` says twice that nothing is under way. Raises TimeoutError."""
    limit = time.monotonic() + PATIENCE
    calm = 0
    while calm < 2:
        receive()
        calm = calm + 1 if quiet() else 0
        if time.monotonic() > limit:
            raise TimeoutError(f"{what} does not come to rest")
        time.sleep(POLL if not calm else 0)


# ---- NSQ


class NsqConnection(ServerConnection):
    """A client of nsqd's protocol V2, https://nsq.io/clients/tcp_protocol_spec.html."""

    RESPONSE, MESSAGE = 0, 2

    def __init__(self, on_message: Callable[[bytes, int, str], None]) -> None:
        super().__init__()
        self.on_message = on_message
        """Called with id, attempts and body."""
        self.topic = ""
        self.received = self.finished = self.requeued = self.ready = 0
        self._responses: list[bytes] = []
        self.send(b"  V2")
        settings = {"output_buffer_timeout": -1, "output_buffer_size": -1}
        self.ask(b"IDENTIFY\n", json.dumps(settings).encode())

    @property
    def name(self) -> str:
        """The client's address, by which nsqd lists it."""
        return "{}:{}".format(*self.socket.getsockname())

    def ask(self, command: bytes, body: bytes | None = None) -> bytes:
        """Send a command that is answered. Raises RuntimeError if it is refused."""
        self.send(command + (b"" if body is None else struct.pack(">I", len(body)) + body))
        limit = time.monotonic() + PATIENCE
        while not self._responses:
            if time.monotonic() > limit:
                raise TimeoutError(f"no answer to {command!r}")
            self.take(POLL)
        return self._responses.pop(0)

    def take(self, seconds: float = 0.0) -> None:
        """Take in all frames that have come."""
        while self.receive(seconds):
            seconds = 0.0
        while len(self.buffer) >= 8:
            size, kind = struct.unpack_from(">II", self.buffer)
            if len(self.buffer) < size + 4:
                return
            frame = bytes(self.buffer[8 : size + 4])
            del self.buffer[: size + 4]
            if kind == self.MESSAGE:
                self.received += 1
                attempts = struct.unpack_from(">H", frame, 8)[0]
                self.on_message(frame[10:26], attempts, frame[26:].decode())
            elif frame == b"_heartbeat_":
                self.send(b"NOP\n")
            elif kind == self.RESPONSE:
                self._responses.append(frame)
            else:
                raise self.refused(frame.decode())


class Nsq:
    """nsqd: a consumer is a connection that subscribes to the channel ``all`` of a topic; RDY is its prefetch.

    A connection that ends gives nothing back until the message times out, so that nothing is closed here.
    """

    name = "nsqd"
    can = (
        *("publish", "consume", "cancel", "qos", "ack", "nack", "reject"),
        *("queues", "redelivered"),
    )
    ALL = 2_500
    """RDY without a limit: the most that nsqd allows."""

    def __init__(self) -> None:
        self._mark = uuid.uuid4().hex[:12]
        self._limits: dict[int, int] = {}
        self._consumers: dict[str, NsqConnection] = {}
        self._connections: list[NsqConnection] = []
        self._topics: dict[str, int] = {}
        """Topics, and how many messages were published to each."""
        self._tags = TagTable()
        self._publisher = NsqConnection(lambda *_: None)
        self.version = json.loads(http("/info"))["version"]

    def _topic(self, q: str) -> str:
        name = f"{q}-{self._mark}"
        if name not in self._topics:
            self._topics[name] = 0
            http(f"/topic/create?topic={name}", post=True)
            http(f"/channel/create?topic={name}&channel=all", post=True)
        return name

    def publish(self, q: str, m: str) -> None:
        topic = self._topic(q)
        self._publisher.ask(f"PUB {topic}\n".encode(), m.encode())
        self._topics[topic] += 1

    def qos(self, ch: int, prefetch: int) -> None:
        self._limits[ch] = prefetch

    def consume(self, ch: int, q: str, ctag: str, deliver: Callable[..., None]) -> None:
        def on_message(id: bytes, attempts: int, m: str) -> None:
            deliver(m, self._tags.give(ch, (connection, id)), attempts > 1)

        connection = NsqConnection(on_message)
        connection.topic = self._topic(q)
        connection.ask(f"SUB {connection.topic} all\n".encode())
        connection.ready = self._limits.get(ch) or self.ALL
        connection.send(f"RDY {connection.ready}\n".encode())
        self._connections.append(connection)
        self._consumers[ctag] = connection

    def cancel(self, ch: int, ctag: str) -> None:
        """Close cleanly: nothing more is sent, and what is in flight may still be settled."""
        connection = self._consumers.pop(ctag)
        connection.ask(b"CLS\n")
        connection.ready = 0

    def ack(self, ch: int, dtag: int) -> None:
        connection, id = self._tags.take(ch, dtag)
        connection.send(b"FIN " + id + b"\n")
        connection.finished += 1

    def nack(self, ch: int, dtag: int) -> None:
        connection, id = self._tags.take(ch, dtag)
        connection.send(b"REQ " + id + b" 0\n")
        connection.requeued += 1

    reject = nack

    def sync(self) -> None:
        """Until nsqd counts what was sent, what came, and nothing that a consumer is ready for."""
        until_quiet(self._receive, self._quiet, "nsqd")

    def _receive(self) -> None:
        for connection in self._connections:
            connection.take()

    def _quiet(self) -> bool:
        topics = json.loads(http("/stats?format=json&include_mem=false"))["topics"]
        return all(self._at_rest(topic) for topic in topics if topic["topic_name"] in self._topics)

    def _at_rest(self, topic: dict[str, Any]) -> bool:  # Any: JSON of another's making
        """Whether every message that was published is waiting, in flight or finished, and none could be sent."""
        own = [c for c in self._connections if c.topic == topic["topic_name"]]
        finished = sum(c.finished for c in own)
        flying = sum(c.received - c.finished - c.requeued for c in own)
        (channel,) = topic["channels"]
        counts = channel["message_count"], channel["in_flight_count"], channel["deferred_count"]
        published = self._topics[topic["topic_name"]]
        if counts != (published, flying, 0) or channel["depth"] != published - finished - flying:
            return False
        by_name = {c.name: c for c in own}
        return all(
            _client_at_rest(client, by_name.get(client["remote_address"]), channel["depth"])
            for client in channel["clients"] or ()
        )

    def end(self) -> None:
        for connection in (*self._connections, self._publisher):
            connection.socket.close()
        for topic in self._topics:
            http(f"/topic/delete?topic={topic}", post=True)


def _client_at_rest(client: dict[str, Any], mine: NsqConnection | None, depth: int) -> bool:
    """Whether nsqd has taken in all that a connection sent, and has nothing for it that it is ready for."""
    if mine is None:
        return False
    counted = [client[f"{name}_count"] for name in ("message", "finish", "requeue", "ready")]
    if counted != [mine.received, mine.finished, mine.requeued, mine.ready]:
        return False
    return not depth or bool(client["in_flight_count"] >= client["ready_count"])


# ---- STOMP


class StompConnection(ServerConnection):
    """A client of STOMP 1.2, https://stomp.github.io/stomp-specification-1.2.html."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[tuple[dict[str, str], str]] = []
        """Headers and body of what came."""
        self._receipts: set[str] = set()
        self._asked = 0
        self.server = ""
        self.frame("CONNECT", {"accept-version": "1.2", "host": "localhost"})
        self._wait(lambda: bool(self.server))

    def frame(self, command: str, headers: dict[str, str], body: str = "") -> None:
        """Send a frame."""
        lines = [command, *(f"{name}:{value}" for name, value in headers.items()), "", body]
        self.send("\n".join(lines).encode() + b"\0")

    def ask(self, command: str, headers: dict[str, str], body: str = "") -> None:
        """Send a frame, and wait for its receipt. Raises RuntimeError if it is refused."""
        self._asked += 1
        self.frame(command, {**headers, "receipt": str(self._asked)}, body)
        self._wait(lambda: str(self._asked) in self._receipts)

    def _wait(self, done: Callable[[], bool]) -> None:
        limit = time.monotonic() + PATIENCE
        while not done():
            if time.monotonic() > limit:
                raise TimeoutError("no receipt")
            self.take(POLL)

    def take(self, seconds: float = 0.0) -> None:
        """Take in all frames that have come."""
        while self.receive(seconds):
            seconds = 0.0
        while b"\0" in self.buffer:
            raw, _, rest = bytes(self.buffer).partition(b"\0")
            self.buffer = bytearray(rest)
            head, _, body = raw.decode().lstrip("\n").partition("\n\n")
            command, *lines = head.split("\n")
            # Of a header that stands twice the first counts.
            headers = dict(line.split(":", 1) for line in reversed(lines))
            if command == "MESSAGE":
                self.messages.append((headers, body))
            elif command == "RECEIPT":
                self._receipts.add(headers["receipt-id"])
            elif command == "CONNECTED":
                self.server = headers.get("server", "unknown")
            elif command == "ERROR":
                raise self.refused(headers.get("message", ""))


class ArtemisStomp:
    """ActiveMQ Artemis through STOMP: a channel is a connection, whose end gives back what it holds.

    Its flag is not passed on: JMSRedelivered is a hint (Jakarta Messaging 3.1, 3.4.7), and Artemis sets it for what was
    settled or seen by the consumer, not for all that had been sent to it.
    """

    name = "ActiveMQ Artemis"
    can = ("publish", "consume", "ack", "open", "close", "queues")

    def __init__(self) -> None:
        self._mark = uuid.uuid4().hex
        self._publisher = StompConnection()
        self.version = self._publisher.server.partition("/")[2].split(" ")[0]
        self._channels: dict[int, StompConnection] = {}
        self._deliver: dict[tuple[int, str], tuple[str, Callable[..., None]]] = {}
        self._held: dict[tuple[int, int], str] = {}
        """The queue of each delivery that a channel holds."""
        self._tags = TagTable()
        self._published: dict[str, int] = {}
        self._acked: dict[str, int] = {}

    def _queue(self, q: str) -> str:
        name = f"{q}-{self._mark}"
        self._published.setdefault(name, 0)
        self._acked.setdefault(name, 0)
        return name

    def open(self, ch: int) -> None:
        self._channels[ch] = StompConnection()

    def publish(self, q: str, m: str) -> None:
        queue = self._queue(q)
        self._publisher.ask("SEND", {"destination": queue, "destination-type": "ANYCAST"}, m)
        self._published[queue] += 1

    def consume(self, ch: int, q: str, ctag: str, deliver: Callable[..., None]) -> None:
        self._deliver[ch, ctag] = self._queue(q), deliver
        to = {"destination": self._queue(q), "subscription-type": "ANYCAST"}
        self._channels[ch].ask("SUBSCRIBE", {"id": ctag, "ack": "client-individual", **to})

    def ack(self, ch: int, dtag: int) -> None:
        self._acked[self._held.pop((ch, dtag))] += 1
        self._channels[ch].frame("ACK", {"id": self._tags.take(ch, dtag)})

    def close(self, ch: int) -> None:
        self.sync()
        connection = self._channels.pop(ch)
        connection.ask("DISCONNECT", {})
        connection.socket.close()
        self._tags.close(ch)
        self._held = {key: q for key, q in self._held.items() if key[0] != ch}
        self._deliver = {key: to for key, to in self._deliver.items() if key[0] != ch}
        self.sync()

    def _receive(self) -> None:
        for ch, connection in self._channels.items():
            connection.take()
            for headers, m in connection.messages:
                queue, deliver = self._deliver[ch, headers["subscription"]]
                dtag = self._tags.give(ch, headers["ack"])
                self._held[ch, dtag] = queue
                deliver(m, dtag)
            connection.messages.clear()

    def sync(self) -> None:
        """Until Artemis counts as acknowledged and as delivering what it is here."""
        until_quiet(self._receive, self._quiet, "Artemis")

    def _quiet(self) -> bool:
        for queue, acked in self._acked.items():
            count, delivering, acknowledged, consumers = map(int, http(f"/{queue}").split())
            held = sum(each == queue for each in self._held.values())
            wanted = sum(each == queue for each, _ in self._deliver.values())
            if (delivering, acknowledged, consumers) != (held, acked, wanted):
                return False
            if count + acknowledged != self._published[queue]:
                return False  # a receipt may come before the queue counts the message
            if consumers and count > delivering:
                return False
        return True

    def end(self) -> None:
        for connection in (*self._channels.values(), self._publisher):
            connection.socket.close()


# ---- SQS


class ElasticMq(MotoSqs):
    """ElasticMQ: SQS's protocol in a process of its own, a standard queue. A visibility timeout of 0 is our nack."""

    name = "ElasticMQ"
    version = "1.6.12"  # as elasticmq.xml pins it; the server does not say

    def __init__(self) -> None:
        host, port = target()
        make: Handle = importlib.import_module("boto3").client
        keys = dict.fromkeys(("aws_access_key_id", "aws_secret_access_key"), "nobody")
        at = f"http://{host}:{port}"
        self._sqs: Handle = make("sqs", region_name="elasticmq", endpoint_url=at, **keys)
        self._urls: dict[str, str] = {}
        self._tags = TagTable()
        self._mark = uuid.uuid4().hex[:12]

    def _name(self, q: str) -> str:
        return f"{q}-{self._mark}{self.suffix}"

    def end(self) -> None:
        for url in self._urls.values():
            self._sqs.delete_queue(QueueUrl=url)


class ElasticMqFifo(ElasticMq, MotoSqsFifo):
    """The same, a FIFO queue."""

    name = "ElasticMQ FIFO"
