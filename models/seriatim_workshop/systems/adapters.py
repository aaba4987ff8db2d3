"""Queues of other people behind the methods that `seriatim_models.conformance.local` calls.

An adapter adds nothing that its queue does not have: no order, no redelivery, no tags of the broker's. What a queue
does not offer (channels, consumers, flags) is missing from the `can` of its adapter.
Those that need a server find it by the environment variable ``SERIATIM_TARGET``, ``host:port``.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import queue
import tempfile
import time
import uuid
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")
# Any: what other people's libraries hand out, most of them without types
Handle = Any
Got = tuple[str, int, bool | None]

TARGET = "SERIATIM_TARGET"
PATIENCE = 2.0
"""Seconds that a server has to notice the end of a connection."""


def target() -> tuple[str, int]:
    """Host and port of the server."""
    host, _, port = os.environ[TARGET].rpartition(":")
    return host, int(port)


class TagTable:
    """Delivery tags, counted by channel, for queues that know handles of their own."""

    def __init__(self) -> None:
        self._last: dict[int, int] = {}
        self._held: dict[tuple[int, int], Handle] = {}

    def give(self, ch: int, handle: Handle) -> int:
        """The next delivery tag of the channel, for a handle that is kept."""
        tag = self._last[ch] = self._last.get(ch, 0) + 1
        self._held[ch, tag] = handle
        return tag

    def take(self, ch: int, tag: int) -> Handle:
        """The handle of a tag, which is then settled. Raises KeyError."""
        return self._held.pop((ch, tag))

    def close(self, ch: int) -> list[Handle]:
        """What the channel still holds."""
        self._last.pop(ch, None)
        return [self._held.pop(key) for key in sorted(self._held) if key[0] == ch]

    def __len__(self) -> int:
        return len(self._held)


class AsyncioQueue:
    """`asyncio.Queue` in a loop of its own."""

    name = "asyncio.Queue"
    can = ("publish", "get", "autoack")

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._queues: dict[str, asyncio.Queue[str]] = {}

    def publish(self, q: str, m: str) -> None:
        self._loop.run_until_complete(self._queues.setdefault(q, asyncio.Queue()).put(m))

    def get(self, q: str) -> tuple[str, None, None] | None:
        async def got() -> str:
            return await asyncio.wait_for(self._queues.setdefault(q, asyncio.Queue()).get(), 0.01)

        try:
            return self._loop.run_until_complete(got()), None, None
        except TimeoutError:
            return None

    def end(self) -> None:
        self._loop.close()


class PersistQueue:
    """`persistqueue.SQLiteAckQueue`. Its `ack_failed` is our reject without requeue."""

    name = "persist-queue SQLiteAckQueue"
    can = ("publish", "get", "ack", "nack", "reject", "drop")

    def __init__(self) -> None:
        from persistqueue import SQLiteAckQueue

        self._make = SQLiteAckQueue
        self._folder = tempfile.TemporaryDirectory(prefix="seriatim-persist-queue-")
        self._queues: dict[str, Handle] = {}
        self._tags = TagTable()

    def _queue(self, q: str) -> Handle:
        if q not in self._queues:
            self._queues[q] = self._make(os.path.join(self._folder.name, q), auto_resume=True)
        return self._queues[q]

    def publish(self, q: str, m: str) -> None:
        self._queue(q).put(m)

    def get(self, ch: int, q: str) -> Got | None:
        import persistqueue

        try:
            found = self._queue(q).get(block=False, raw=True)
        except persistqueue.Empty:
            return None
        return found["data"], self._tags.give(ch, (q, found["pqid"])), None

    def ack(self, ch: int, dtag: int) -> None:
        q, number = self._tags.take(ch, dtag)
        self._queue(q).ack(id=number)

    def nack(self, ch: int, dtag: int, requeue: bool = True) -> None:
        q, number = self._tags.take(ch, dtag)
        settle = self._queue(q).nack if requeue else self._queue(q).ack_failed
        settle(id=number)

    reject = nack

    def end(self) -> None:
        for each in self._queues.values():
            each.close()
        self._folder.cleanup()


class LiteQueue:
    """`litequeue.LiteQueue` in memory. Its `mark_failed` is our reject without requeue, its `retry` our nack."""

    name = "litequeue"
    can = ("publish", "get", "ack", "nack", "reject", "drop")

    def __init__(self) -> None:
        from litequeue import LiteQueue as Queue

        self._make = Queue
        self._queues: dict[str, Handle] = {}
        self._tags = TagTable()

    def _queue(self, q: str) -> Handle:
        if q not in self._queues:
            self._queues[q] = self._make(":memory:")
        return self._queues[q]

    def publish(self, q: str, m: str) -> None:
        self._queue(q).put(m)

    def get(self, ch: int, q: str) -> Got | None:
        found = self._queue(q).pop()
        if found is None:
            return None
        claim = {"claim_id": found.claim_id} if hasattr(found, "claim_id") else {}  # since 0.14
        return found.data, self._tags.give(ch, (q, found.message_id, claim)), None

    def ack(self, ch: int, dtag: int) -> None:
        q, number, claim = self._tags.take(ch, dtag)
        self._queue(q).done(number, **claim)

    def nack(self, ch: int, dtag: int, requeue: bool = True) -> None:
        q, number, claim = self._tags.take(ch, dtag)
        settle = self._queue(q).retry if requeue else self._queue(q).mark_failed
        settle(number, **claim)

    reject = nack

    def end(self) -> None:
        for each in self._queues.values():
            each.close()


class DiskCacheQueue:
    """`diskcache.Cache.push` and `pull`, which `diskcache.Deque` is made of too. What is pulled is gone."""

    name = "diskcache push and pull"
    can = ("publish", "get", "autoack", "queues")

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="seriatim-diskcache-")
        self._cache: Handle = importlib.import_module("diskcache").Cache(self._folder.name)

    def publish(self, q: str, m: str) -> None:
        self._cache.push(m, prefix=q)

    def get(self, q: str) -> tuple[str, None, None] | None:
        _, found = self._cache.pull(prefix=q)
        return None if found is None else (found, None, None)

    def end(self) -> None:
        self._cache.close()
        self._folder.cleanup()


class QueuelibFifo:
    """`queuelib.FifoDiskQueue`. What is popped is gone."""

    name = "queuelib FifoDiskQueue"
    made = "FifoDiskQueue"
    can = ("publish", "get", "autoack", "queues")

    def __init__(self) -> None:
        self._make: Handle = getattr(importlib.import_module("queuelib"), self.made)
        self._folder = tempfile.TemporaryDirectory(prefix="seriatim-queuelib-")
        self._queues: dict[str, Handle] = {}

    def _queue(self, q: str) -> Handle:
        if q not in self._queues:
            self._queues[q] = self._make(os.path.join(self._folder.name, q))
        return self._queues[q]

    def publish(self, q: str, m: str) -> None:
        self._queue(q).push(m.encode())

    def get(self, q: str) -> tuple[str, None, None] | None:
        found = self._queue(q).pop()
        return None if found is None else (found.decode(), None, None)

    def end(self) -> None:
        for each in self._queues.values():
            each.close()
        self._folder.cleanup()


class QueuelibLifo(QueuelibFifo):
    """`queuelib.LifoDiskQueue`, a stack."""

    name = "queuelib LifoDiskQueue"
    made = "LifoDiskQueue"


class HueySqlite:
    """The task queue of `huey.SqliteHuey`. A task that is dequeued is gone; its worker runs it once."""

    name = "huey SqliteStorage"
    can = ("publish", "get", "autoack", "queues", "message-priority")

    def __init__(self) -> None:
        self._make: Handle = importlib.import_module("huey.storage").SqliteStorage
        self._folder = tempfile.TemporaryDirectory(prefix="seriatim-huey-")
        self._queues: dict[str, Handle] = {}

    def _queue(self, q: str) -> Handle:
        if q not in self._queues:
            self._queues[q] = self._make(q, filename=os.path.join(self._folder.name, f"{q}.db"))
        return self._queues[q]

    def publish(self, q: str, m: str, prio: int | None = None) -> None:
        self._queue(q).enqueue(m.encode(), priority=prio)

    def get(self, q: str) -> tuple[str, None, None] | None:
        found = self._queue(q).dequeue()
        return None if found is None else (bytes(found).decode(), None, None)

    def end(self) -> None:
        for each in self._queues.values():
            each.close()
        self._folder.cleanup()


class DramatiqStub:
    """`dramatiq.brokers.stub.StubBroker`. Its `requeue` is documented to do nothing."""

    name = "dramatiq StubBroker"
    can = ("publish", "get", "ack", "queues")
    EMPTY = 1
    """Milliseconds after which a queue counts as empty."""

    def __init__(self) -> None:
        self._dramatiq: Handle = importlib.import_module("dramatiq")
        stub = importlib.import_module("dramatiq.brokers.stub")
        self._broker: Handle = stub.StubBroker(middleware=[])
        self._consumers: dict[tuple[int, str], Handle] = {}
        self._tags = TagTable()

    def publish(self, q: str, m: str) -> None:
        self._broker.declare_queue(q)
        message = self._dramatiq.Message(
            queue_name=q, actor_name="actor", args=(m,), kwargs={}, options={}
        )
        self._broker.enqueue(message)

    def get(self, ch: int, q: str) -> Got | None:
        self._broker.declare_queue(q)
        if (ch, q) not in self._consumers:
            self._consumers[ch, q] = self._broker.consume(q, prefetch=10_000, timeout=self.EMPTY)
        consumer = self._consumers[ch, q]
        found = next(consumer)
        return (
            None if found is None else (found.args[0], self._tags.give(ch, (consumer, found)), None)
        )

    def ack(self, ch: int, dtag: int) -> None:
        consumer, message = self._tags.take(ch, dtag)
        consumer.ack(message)


class MotoSqs:
    """SQS as moto answers for it, in this process: a standard queue. A visibility timeout of 0 is our nack."""

    name = "moto SQS"
    can: tuple[str, ...] = ("publish", "get", "ack", "nack", "open", "close", "queues")
    attributes: ClassVar[dict[str, str]] = {}
    suffix = ""

    def __init__(self) -> None:
        credentials = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "nobody")
        os.environ.update(
            credentials
        )  # moto's client signs with them, and nothing leaves the process
        self._mock: Handle = importlib.import_module("moto").mock_aws()
        self._mock.start()
        self._sqs: Handle = importlib.import_module("boto3").client("sqs", region_name="eu-west-1")
        self._urls: dict[str, str] = {}
        self._tags = TagTable()

    def _name(self, q: str) -> str:
        return q + self.suffix

    def _url(self, q: str) -> str:
        if q not in self._urls:
            made = self._sqs.create_queue(QueueName=self._name(q), Attributes=self.attributes)
            self._urls[q] = made["QueueUrl"]
        return self._urls[q]

    def open(self, ch: int) -> None: ...

    def publish(self, q: str, m: str, key: str = "") -> None:
        self._sqs.send_message(QueueUrl=self._url(q), MessageBody=m)

    def get(self, ch: int, q: str) -> Got | None:
        asked = {"QueueUrl": self._url(q), "MaxNumberOfMessages": 1, "WaitTimeSeconds": 0}
        found = self._sqs.receive_message(**asked).get("Messages")
        if not found:
            return None
        handle = (q, found[0]["ReceiptHandle"])
        return found[0]["Body"], self._tags.give(ch, handle), None

    def ack(self, ch: int, dtag: int) -> None:
        q, receipt = self._tags.take(ch, dtag)
        self._sqs.delete_message(QueueUrl=self._url(q), ReceiptHandle=receipt)

    def nack(self, ch: int, dtag: int) -> None:
        self._visible(*self._tags.take(ch, dtag))

    def close(self, ch: int) -> None:
        """A receiver that died: its leases run out."""
        for q, receipt in self._tags.close(ch):
            self._visible(q, receipt)

    def _visible(self, q: str, receipt: str) -> None:
        self._sqs.change_message_visibility(
            QueueUrl=self._url(q), ReceiptHandle=receipt, VisibilityTimeout=0
        )

    def end(self) -> None:
        self._mock.stop()


class MotoSqsFifo(MotoSqs):
    """The same, a FIFO queue. Without a group of its own a message is of the group that all such are of."""

    name = "moto SQS FIFO"
    can = (*MotoSqs.can, "held-groups")
    attributes: ClassVar[dict[str, str]] = {
        "FifoQueue": "true",
        "ContentBasedDeduplication": "true",
    }
    suffix = ".fifo"

    def publish(self, q: str, m: str, key: str = "") -> None:
        group = key or "none"
        self._sqs.send_message(QueueUrl=self._url(q), MessageBody=m, MessageGroupId=group)


class PostgresSkipLocked:
    """A table of PostgreSQL: what is got is locked by a transaction, of a connection of its own, until it ends."""

    name = "PostgreSQL, FOR UPDATE SKIP LOCKED"
    can = ("publish", "get", "ack", "nack", "reject", "drop", "open", "close", "queues")
    GET = "SELECT id, m FROM jobs WHERE q = %s ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"

    def __init__(self) -> None:
        self._connect: Handle = importlib.import_module("psycopg").connect
        self._idle: list[Handle] = []
        self._tags = TagTable()
        self._publisher = self._connection()
        self.version = self._publisher.info.parameter_status("server_version")
        with self._publisher.transaction():
            self._publisher.execute("DROP TABLE IF EXISTS jobs")
            self._publisher.execute("CREATE TABLE jobs (id bigserial PRIMARY KEY, q text, m text)")

    def _connection(self) -> Handle:
        if self._idle:
            return self._idle.pop()
        host, port = target()
        return self._connect(host=host, port=port, user="seriatim", dbname="postgres")

    def open(self, ch: int) -> None: ...

    def publish(self, q: str, m: str) -> None:
        with self._publisher.transaction():
            self._publisher.execute("INSERT INTO jobs (q, m) VALUES (%s, %s)", (q, m))

    def get(self, ch: int, q: str) -> Got | None:
        connection = self._connection()
        found = connection.execute(self.GET, (q,)).fetchone()
        if found is None:
            self._ended(connection, done=False)
            return None
        number, m = found
        return m, self._tags.give(ch, (connection, number)), None

    def _ended(self, connection: Handle, *, done: bool) -> None:
        connection.commit() if done else connection.rollback()
        self._idle.append(connection)

    def ack(self, ch: int, dtag: int) -> None:
        connection, number = self._tags.take(ch, dtag)
        connection.execute("DELETE FROM jobs WHERE id = %s", (number,))
        self._ended(connection, done=True)

    def nack(self, ch: int, dtag: int, requeue: bool = True) -> None:
        if not requeue:
            self.ack(ch, dtag)
            return
        connection, _ = self._tags.take(ch, dtag)
        self._ended(connection, done=False)

    reject = nack

    def close(self, ch: int) -> None:
        """A worker that died: its transactions are rolled back."""
        for connection, _ in self._tags.close(ch):
            self._ended(connection, done=False)

    def end(self) -> None:
        for ch in range(1, 1_001):
            self.close(ch)
        for connection in (*self._idle, self._publisher):
            connection.close()


class KombuMemory:
    """kombu's transport ``memory://``."""

    name = "kombu memory transport"
    can = (
        *("publish", "get", "ack", "nack", "reject", "drop", "qos", "consume", "cancel"),
        *("open", "close"),
    )

    def __init__(self) -> None:
        # Not by an import statement: kombu has types for a part of itself only.
        self._kombu: Handle = importlib.import_module("kombu")
        self._connection = self._kombu.Connection("memory://")
        self._publisher = self._connection.channel()
        self._channels: dict[int, Handle] = {}
        self._consumers: dict[str, Handle] = {}
        self._tags = TagTable()
        # The transport keeps its queues for all connections of the process.
        self._mark = uuid.uuid4().hex
        self._declared: set[str] = set()

    def _queue(self, q: str, channel: Handle) -> Handle:
        name = f"{q}-{self._mark}"
        found = self._kombu.Queue(name, self._kombu.Exchange(name, type="direct"), name)(channel)
        if q not in self._declared:
            self._declared.add(q)
            found.declare()
        return found

    def open(self, ch: int) -> None:
        self._channels[ch] = self._connection.channel()

    def close(self, ch: int) -> None:
        self._channels.pop(ch).close()
        self._tags.close(ch)

    def publish(self, q: str, m: str) -> None:
        found = self._queue(q, self._publisher)
        self._kombu.Producer(self._publisher, found.exchange, found.routing_key).publish(m)

    def get(self, ch: int, q: str) -> Got | None:
        found = self._queue(q, self._channels[ch]).get()
        return None if found is None else self._given(ch, found)

    def _given(self, ch: int, message: Handle) -> Got:
        # The transport marks the payload and loses the mark when it makes a message of it: redelivered is unknown.
        return message.payload, self._tags.give(ch, message), None

    def qos(self, ch: int, prefetch: int) -> None:
        self._channels[ch].basic_qos(0, prefetch, False)

    def consume(self, ch: int, q: str, ctag: str, deliver: Callable[..., None]) -> None:
        def receive(message: Handle) -> None:
            deliver(*self._given(ch, message))

        consumer = self._kombu.Consumer(
            self._channels[ch], [self._queue(q, self._channels[ch])], on_message=receive
        )
        consumer.consume()
        self._consumers[ctag] = consumer

    def cancel(self, ch: int, ctag: str) -> None:
        self._consumers.pop(ctag).cancel()

    def ack(self, ch: int, dtag: int) -> None:
        self._tags.take(ch, dtag).ack()

    def nack(self, ch: int, dtag: int, requeue: bool = True) -> None:
        message = self._tags.take(ch, dtag)
        message.requeue() if requeue else message.reject()

    reject = nack

    def sync(self) -> None:
        """Until nothing comes any more."""
        while True:
            try:
                self._connection.drain_events(timeout=0.002)
            except (TimeoutError, queue.Empty):
                return

    def end(self) -> None:
        self._connection.close()


class Beanstalkd:
    """beanstalkd through greenstalk. What a connection has reserved is its own, so a channel is a connection."""

    name = "beanstalkd"
    can = (
        "publish",
        "get",
        "ack",
        "nack",
        "reject",
        "drop",
        "open",
        "close",
        "redelivered",
        "message-priority",
    )
    ORDINARY = 2**16
    """The priority of a job where none is said; the most urgent is 0 (protocol.txt)."""

    def __init__(self) -> None:
        self._mark = uuid.uuid4().hex
        self._clients: dict[int, Handle] = {0: self._client()}
        self.version = self._clients[0].stats()["version"]
        self._tags = TagTable()

    def _client(self) -> Handle:
        import greenstalk

        return greenstalk.Client(target())

    def _tube(self, q: str) -> str:
        return f"{q}-{self._mark}"

    def open(self, ch: int) -> None:
        self._clients[ch] = self._client()

    def publish(self, q: str, m: str, prio: int | None = None) -> None:
        self._clients[0].use(self._tube(q))
        self._clients[0].put(m, priority=self.ORDINARY - (prio or 0))

    def get(self, ch: int, q: str) -> Got | None:
        import greenstalk

        client = self._clients[ch]
        client.watch(self._tube(q))
        try:
            job = client.reserve(timeout=0)
        except greenstalk.TimedOutError:
            return None
        known = client.stats_job(job)
        return job.body, self._tags.give(ch, (job, known["pri"])), known["reserves"] > 1

    def ack(self, ch: int, dtag: int) -> None:
        job, _ = self._tags.take(ch, dtag)
        self._clients[ch].delete(job)

    def nack(self, ch: int, dtag: int, requeue: bool = True) -> None:
        """A release names the priority anew."""
        job, priority = self._tags.take(ch, dtag)
        client = self._clients[ch]
        client.release(job, priority=priority) if requeue else client.delete(job)

    reject = nack

    def close(self, ch: int) -> None:
        """The server releases what the connection had reserved when it sees its end."""
        self._tags.close(ch)
        self._clients.pop(ch).close()
        until = time.monotonic() + PATIENCE
        while self._clients[0].stats()["current-jobs-reserved"] > len(self._tags):
            if time.monotonic() > until:
                return
            time.sleep(0.001)

    def end(self) -> None:
        import greenstalk

        for client in self._clients.values():
            client.close()
        # Leave nothing behind for the next script.
        last = self._client()
        for tube in last.tubes():
            if self._mark in tube:
                last.watch(tube)
        try:
            while True:
                last.delete(last.reserve(timeout=0))
        except greenstalk.TimedOutError:
            last.close()


class RedisStreams:
    """Redis streams with a consumer group.

    Redis 7.0 has no nack: by the recipe of its documentation a consumer that wants no more of a message lets its
    lease run out, and others claim it (XAUTOCLAIM) before they read on. XCLAIM with IDLE makes that happen at once.
    """

    name = "redis streams"
    can = ("publish", "get", "ack", "nack", "open", "close", "redelivered")
    LEASE = 60_000  # milliseconds

    def __init__(self) -> None:
        import redis

        host, port = target()
        self._redis: Handle = redis.Redis(host, port, decode_responses=True)
        self.version = self._redis.info("server")["redis_version"]
        self._mark = uuid.uuid4().hex
        self._made: set[str] = set()
        self._tags = TagTable()

    def _stream(self, q: str) -> str:
        name = f"{q}-{self._mark}"
        if name not in self._made:
            self._made.add(name)
            self._redis.xgroup_create(name, "group", id="0", mkstream=True)
        return name

    def open(self, ch: int) -> None: ...

    def publish(self, q: str, m: str) -> None:
        self._redis.xadd(self._stream(q), {"m": m})

    def get(self, ch: int, q: str) -> Got | None:
        name, consumer = self._stream(q), f"consumer-{ch}"
        claimed = self._redis.xautoclaim(name, "group", consumer, self.LEASE, "0-0", count=1)[1]
        if claimed:
            found, again = claimed[0], True
        else:
            read = self._redis.xreadgroup("group", consumer, {name: ">"}, count=1)
            if not read:
                return None
            # A dict in RESP3, a list of pairs in RESP2.
            entries = next(iter(read.values()))[0] if isinstance(read, dict) else read[0][1]
            found, again = entries[0], False
        number, fields = found
        return fields["m"], self._tags.give(ch, (name, consumer, number)), again

    def ack(self, ch: int, dtag: int) -> None:
        name, _, number = self._tags.take(ch, dtag)
        self._redis.xack(name, "group", number)

    def nack(self, ch: int, dtag: int) -> None:
        self._expire(self._tags.take(ch, dtag))

    def close(self, ch: int) -> None:
        """A consumer that died: its leases run out."""
        for handle in self._tags.close(ch):
            self._expire(handle)

    def _expire(self, handle: tuple[str, str, str]) -> None:
        name, consumer, number = handle
        self._redis.xclaim(name, "group", consumer, 0, [number], idle=self.LEASE + 1, justid=True)

    def end(self) -> None:
        if self._made:
            self._redis.delete(*self._made)
        self._redis.close()


class JetStream:
    """NATS JetStream: a stream with work-queue retention and one durable pull consumer."""

    name = "NATS JetStream work queue"
    can = ("publish", "get", "ack", "nack", "reject", "drop", "redelivered")
    EMPTY = 0.05
    """Seconds after which a fetch is taken to have found nothing."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._mark = uuid.uuid4().hex
        self._subscriptions: dict[str, Handle] = {}
        self._held: dict[str, int] = {}
        self._tags = TagTable()
        self._run(self._connect())

    def _run(
        self, what: Coroutine[Any, Any, T]
    ) -> T:  # Any: what it sends and yields is the loop's affair
        return self._loop.run_until_complete(what)

    async def _connect(self) -> None:
        import nats

        host, port = target()
        self._nats: Handle = await nats.connect(f"nats://{host}:{port}")
        self._js: Handle = self._nats.jetstream()
        self.version = str(self._nats.connected_server_version).strip("<>").split()[-1]

    def _subject(self, q: str) -> str:
        return f"{q}-{self._mark}"

    async def _subscription(self, q: str) -> Handle:
        from nats.js.api import RetentionPolicy, StorageType

        if q not in self._subscriptions:
            name = self._subject(q)
            await self._js.add_stream(
                name=name,
                subjects=[name],
                retention=RetentionPolicy.WORK_QUEUE,
                storage=StorageType.MEMORY,
            )
            self._subscriptions[q] = await self._js.pull_subscribe(name, durable="workers")
        return self._subscriptions[q]

    def publish(self, q: str, m: str) -> None:
        async def publish() -> None:
            await self._subscription(q)
            await self._js.publish(self._subject(q), m.encode())

        self._run(publish())

    def get(self, ch: int, q: str) -> Got | None:
        import nats.errors

        async def fetch() -> Handle:
            return await (await self._subscription(q)).fetch(1, timeout=self.EMPTY)

        async def empty() -> bool:
            """A fetch that is late is not a fetch that finds nothing: the consumer's own count decides."""
            info = await (await self._subscription(q)).consumer_info()
            return bool(not info.num_pending and info.num_ack_pending <= self._held.get(q, 0))

        until = time.monotonic() + PATIENCE
        while True:
            try:
                (message,) = self._run(fetch())
                break
            except (nats.errors.TimeoutError, TimeoutError):
                if self._run(empty()):
                    return None
                if time.monotonic() > until:
                    raise RuntimeError("messages are there, and no fetch gets them") from None
        self._held[q] = self._held.get(q, 0) + 1
        again = message.metadata.num_delivered > 1
        return message.data.decode(), self._tags.give(ch, (q, message)), again

    def _taken(self, ch: int, dtag: int) -> Handle:
        q, message = self._tags.take(ch, dtag)
        self._held[q] -= 1
        return message

    def ack(self, ch: int, dtag: int) -> None:
        self._run(self._taken(ch, dtag).ack_sync())

    def nack(self, ch: int, dtag: int, requeue: bool = True) -> None:
        message = self._taken(ch, dtag)

        async def give_back() -> None:
            await (message.nak() if requeue else message.term())
            await self._nats.flush()
            # A nak is not answered; the server handles it after the flush by itself.
            await asyncio.sleep(0.02)

        self._run(give_back())

    reject = nack

    def end(self) -> None:
        async def end() -> None:
            for q in self._subscriptions:
                await self._js.delete_stream(self._subject(q))
            await self._nats.close()

        self._run(end())
        self._loop.close()
