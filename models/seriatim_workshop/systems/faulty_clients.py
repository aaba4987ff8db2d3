"""Clients of real systems for `chaos`: each a connection that may break."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, Protocol, TypeVar

import greenstalk
import psycopg
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from seriatim_models.conformance.amqp import BrokerQueues
from seriatim_models.conformance.amqp_clients import AmqpClients
from seriatim_models.conformance.concurrent.client import (
    ConcurrentClient,
    ConcurrentSystem,
    OutcomeUnknown,
    Receiver,
)
from seriatim_models.conformance.faults.described import DescribedSystem
from seriatim_models.conformance.meanings import NOTHING
from seriatim_models.conformance.protocol import Answer, Request

T = TypeVar("T")

PATIENCE = 2.0
"""Seconds until an operation without an answer is given up, with its connection."""
UNCONFIRMED = 10.0
"""The same for what a cluster answers only when it has elected a leader."""
LEASE = 3600
"""Seconds for which a message is a consumer's, where the system has leases: none may run out unseen."""
NAME = "chaos"


WAIT = 0.02
"""Seconds that a get waits for a message."""
COMMON = frozenset({"publish", "get", "ack", "close", "count"})


class RefusedByServer(Exception):
    """The system answered that it did not do it."""


class TakenMessage(NamedTuple):
    """A message that a consumer was given."""

    m: str
    tag: int
    """By which its connection settles it."""
    redelivered: bool | None = None
    claimed: bool = False
    """Whether it was taken from a consumer that had held it too long."""


class FaultyClient(Protocol):
    """One connection to a queue. Methods may raise anything; then their outcome is unknown, unless it is
    `RefusedByServer`.
    """

    def publish(self, m: str) -> None:
        """Returns when the message is confirmed."""

    def get(self) -> TakenMessage | None:
        """The next message, waiting for it for `WAIT` seconds at most; None if there was none."""

    def ack(self, tag: int) -> None:
        """Settle a message for good."""

    def nack(self, tag: int) -> None:
        """Put a message back."""

    def left(self) -> tuple[int, int]:
        """How many messages the queue has ready, and how many consumers hold of it, as the system counts them. Called
        when no other client works; it may claim what clients held that are gone.
        """

    def close(self) -> None:
        """End the connection in order; what it held goes back, where there are no leases."""


class FaultySystem:
    """`ConcurrentSystem` over connections that may break."""

    version = ""
    means = NOTHING

    def __init__(
        self, name: str, connect: Callable[[Receiver], FaultyClient], *features: str
    ) -> None:
        self.name, self._connect = name, connect
        self.can = COMMON | set(features)

    def connect(self, number: int, receive: Receiver) -> ConcurrentClient:
        """A connection for each client."""
        try:
            return _BreakingClient(self._connect(receive))
        except Exception as why:
            raise OutcomeUnknown(str(why)) from why

    def sync(self) -> bool:
        """Behind a network nothing is certain; `count` is."""
        return False

    def end(self) -> None:
        """There is nothing beside the connections."""


class FaultyLogs:
    """`ConcurrentSystem` over connections to a log, which may break."""

    version = ""
    means = NOTHING
    can = frozenset({"publish", "read", "seek", "commit", "close", "partitions"})

    def __init__(self, name: str, reach: str) -> None:
        self.name, self._reach = name, reach

    def connect(self, number: int, receive: Receiver) -> ConcurrentClient:
        """A connection for each client."""
        try:
            return _BreakingReader(FaultyRedisLog(self._reach))
        except Exception as why:
            raise OutcomeUnknown(str(why)) from why

    def sync(self) -> bool:
        """Behind a network nothing is certain."""
        return False

    def end(self) -> None:
        """There is nothing beside the connections."""


class _BreakingClient:
    def __init__(self, client: FaultyClient) -> None:
        self._client = client

    def do(self, request: Request) -> Answer:
        try:
            return self._done(request)
        except RefusedByServer as why:
            return Answer(ok=False, why=str(why)[:200])
        except Exception as why:
            raise OutcomeUnknown(f"{type(why).__name__}: {why}") from why

    def _done(self, request: Request) -> Answer:
        client, tag = self._client, request.dtag or 0
        if request.op == "get":
            taken = client.get()
            if taken is None:
                return Answer()
            flag, expired = taken.redelivered, taken.claimed
            return Answer(m=taken.m, dtag=taken.tag, redelivered=flag, expired=expired)
        if request.op == "count":
            ready, held = client.left()
            return Answer(ready=ready, held=held)
        if request.op == "publish":
            client.publish(request.m)
        elif request.op == "ack":
            client.ack(tag)
        elif request.op == "nack":
            client.nack(tag)
        else:
            client.close()
        return Answer()

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._client.close()


class _BreakingReader(_BreakingClient):
    def __init__(self, log: FaultyRedisLog) -> None:
        self._log = log

    def _done(self, request: Request) -> Answer:
        part, pos = request.part or 0, request.pos or 0
        if request.op == "publish":
            return Answer(pos=self._log.publish(request.m, part))
        if request.op == "read":
            return self._log.read(request.ctag, part)
        if request.op == "seek":
            self._log.at[request.ctag, part] = pos
        elif request.op == "commit":
            self._log.commit(request.ctag, part, pos)
        else:
            self._log.close()
        return Answer()

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._log.close()


def _place(reach: str) -> tuple[str, int]:
    host, _, port = reach.partition(":")
    return host, int(port)


class FaultyBeanstalkd:
    """beanstalkd: a reserved job goes back when its connection ends, or its time to run."""

    def __init__(self, reach: str) -> None:
        self._client = greenstalk.Client(_place(reach), use=NAME, watch=NAME)
        self._client._sock.settimeout(PATIENCE)
        self._jobs: list[Any] = []  # Any: a job is generic in its body

    def publish(self, m: str) -> None:
        try:
            self._client.put(m, ttr=LEASE)
        except (greenstalk.OutOfMemoryError, greenstalk.DrainingError) as why:
            raise RefusedByServer(type(why).__name__) from None

    def get(self) -> TakenMessage | None:
        try:
            # Whole seconds only: polled, so that a client is not blind for a second.
            job = self._client.reserve(timeout=0)
        except greenstalk.TimedOutError:
            time.sleep(WAIT)
            return None
        self._jobs.append(job)
        return TakenMessage(str(job.body), len(self._jobs))

    def ack(self, tag: int) -> None:
        try:
            self._client.delete(self._jobs[tag - 1])
        except greenstalk.NotFoundError:
            raise RefusedByServer("NOT_FOUND") from None

    def nack(self, tag: int) -> None:
        try:
            self._client.release(self._jobs[tag - 1])
        except greenstalk.NotFoundError:
            raise RefusedByServer("NOT_FOUND") from None

    def left(self) -> tuple[int, int]:
        stats = self._client.stats_tube(NAME)
        waiting = stats["current-jobs-ready"] + stats["current-jobs-delayed"]
        return waiting + stats["current-jobs-buried"], stats["current-jobs-reserved"]

    def close(self) -> None:
        self._client.close()


def _redis(reach: str) -> Any:  # Any: redis-py types its answers as Any or awaitable
    host, port = _place(reach)
    return redis.Redis(
        host=host,
        port=port,
        socket_timeout=PATIENCE,
        socket_connect_timeout=PATIENCE,
        decode_responses=True,
        retry=Retry(NoBackoff(), 0),
    )


class FaultyRedis:
    """A stream with a consumer group: what is pending too long is claimed first; what is acknowledged is deleted."""

    GROUP = "all"

    def __init__(self, reach: str) -> None:
        self._redis = _redis(reach)
        self._me = f"{id(self)}-{time.monotonic_ns()}"
        self._ids: list[str] = []
        self._claims = False
        try:
            self._redis.xgroup_create(NAME, self.GROUP, id="0", mkstream=True)
        except redis.ResponseError as why:
            if "BUSYGROUP" not in str(why):
                raise

    def _refused(self, do: Callable[[], Any]) -> Any:
        try:
            return do()
        except redis.ResponseError as why:
            if str(why).startswith(("MISCONF", "OOM", "NOGROUP")):
                raise RefusedByServer(str(why)) from None
            raise

    def publish(self, m: str) -> None:
        self._refused(lambda: self._redis.xadd(NAME, {"m": m}))

    def get(self) -> TakenMessage | None:
        entries = []
        if self._claims:
            answer = self._redis.xautoclaim(NAME, self.GROUP, self._me, min_idle_time=0, count=1)
            entries = answer[1]
        claimed = bool(entries)
        if not entries:
            block = int(WAIT * 1000)
            read = self._redis.xreadgroup(self.GROUP, self._me, {NAME: ">"}, count=1, block=block)
            entries = read[0][1] if read else []
        if not entries:
            return None
        id, fields = entries[0]
        self._ids.append(id)
        return TakenMessage(fields["m"], len(self._ids), claimed=claimed)

    def ack(self, tag: int) -> None:
        def do() -> None:
            pipe = self._redis.pipeline(transaction=True)
            pipe.xack(NAME, self.GROUP, self._ids[tag - 1])
            pipe.xdel(NAME, self._ids[tag - 1])
            pipe.execute()

        self._refused(do)

    def nack(self, tag: int) -> None:
        raise RefusedByServer("an entry stays pending until somebody claims it")

    def left(self) -> tuple[int, int]:
        self._claims = True  # nobody else is there any more
        pending = int(self._redis.xpending(NAME, self.GROUP)["pending"])
        return int(self._redis.xlen(NAME)) - pending, pending

    def close(self) -> None:
        self._redis.close()


class FaultyRedisLog:
    """A list for each partition, to which messages are only added; what a group committed is in a hash."""

    def __init__(self, reach: str) -> None:
        self._redis = _redis(reach)
        self._redis.ping()
        self.at: dict[tuple[str, int], int] = {}
        """By group and partition, the next position to be read."""

    def publish(self, m: str, part: int) -> int:
        """The position of the message."""
        return int(self._redis.rpush(f"{NAME}-{part}", m)) - 1

    def read(self, group: str, part: int) -> Answer:
        """The next message of a group that begins where it has committed; nothing at the end."""
        at = self.at.get((group, part))
        if at is None:
            at = int(self._redis.hget(f"{NAME}-groups", f"{group}-{part}") or 0)
        m = self._redis.lindex(f"{NAME}-{part}", at)
        self.at[group, part] = at + (m is not None)
        return Answer() if m is None else Answer(m=str(m), pos=at)

    def commit(self, group: str, part: int, pos: int) -> None:
        """Keep where readers of a group that begin later begin."""
        self._redis.hset(f"{NAME}-groups", f"{group}-{part}", pos)

    def close(self) -> None:
        """End the connection."""
        self._redis.close()


class FaultyPostgres:
    """A table: what is got is locked by a transaction, of a connection of its own, until that ends."""

    TABLE = "CREATE TABLE IF NOT EXISTS jobs (id bigserial PRIMARY KEY, m text)"
    GET = "SELECT id, m FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
    ALL = "SELECT count(*) FROM jobs"
    READY = "SELECT count(*) FROM (SELECT id FROM jobs FOR UPDATE SKIP LOCKED) AS ready"

    def __init__(self, reach: str) -> None:
        self._place = _place(reach)
        self._held: dict[int, tuple[psycopg.Connection[Any], int]] = {}  # Any: of rows of any shape
        self._last = 0
        self._idle: list[psycopg.Connection[Any]] = []
        connection = self._connection()
        # Two that create one table at a time are not refused, but fail.
        connection.execute("SELECT pg_advisory_xact_lock(1)")
        connection.execute(self.TABLE)
        self._over(connection, done=True)

    def _connection(self) -> psycopg.Connection[Any]:
        if self._idle:
            return self._idle.pop()
        host, port = self._place
        limits = {"connect_timeout": int(PATIENCE), "tcp_user_timeout": int(PATIENCE * 1000)}
        return psycopg.connect(
            host=host, port=port, user="seriatim", dbname="postgres", **limits  # type: ignore[arg-type]
        )  # fmt: skip

    def _over(self, connection: psycopg.Connection[Any], *, done: bool) -> None:
        """End a transaction; whose end fails is not used again."""
        connection.commit() if done else connection.rollback()
        self._idle.append(connection)

    def publish(self, m: str) -> None:
        connection = self._connection()
        connection.execute("INSERT INTO jobs (m) VALUES (%s)", (m,))
        self._over(connection, done=True)

    def get(self) -> TakenMessage | None:
        connection = self._connection()
        found = connection.execute(self.GET).fetchone()
        if found is None:
            self._over(connection, done=False)
            time.sleep(WAIT)
            return None
        self._last += 1
        self._held[self._last] = connection, found[0]
        return TakenMessage(str(found[1]), self._last)

    def ack(self, tag: int) -> None:
        connection, row = self._held.pop(tag)
        connection.execute("DELETE FROM jobs WHERE id = %s", (row,))
        self._over(connection, done=True)

    def nack(self, tag: int) -> None:
        connection, _ = self._held.pop(tag)
        self._over(connection, done=False)

    def left(self) -> tuple[int, int]:
        connection = self._connection()
        every, ready = (
            int((connection.execute(count).fetchone() or (0,))[0])
            for count in (self.ALL, self.READY)
        )
        self._over(connection, done=False)
        return ready, every - ready

    def close(self) -> None:
        """Transactions that are open are rolled back."""
        for connection, _ in self._held.values():
            connection.close()
        for connection in self._idle:
            connection.close()


class FaultyNats:
    """A JetStream work queue and one durable consumer: what is not acknowledged within `ACK_WAIT` comes again."""

    ACK_WAIT = 5.0
    SETTLING = 15.0
    """Seconds for which a stream may have messages that its consumer does not know of."""
    _node = itertools.count()

    def __init__(self, system: DescribedSystem, returned: set[str]) -> None:
        """`returned` are messages that some client gave back: when one comes again no lease has run out."""
        self._loop = asyncio.new_event_loop()
        self._returned = returned
        self._messages: dict[int, Any] = {}  # Any: nats-py's
        self._last = 0
        self._differ = 0.0
        reaches = system.reach.split(",")
        url = reaches[next(FaultyNats._node) % len(reaches)]
        try:
            self._run(self._connect(url, int(system.setting.arguments["replicas"])))
        except BaseException:
            self._end()
            raise

    def _run(self, what: Coroutine[Any, Any, T]) -> T:  # Any: what it sends is the loop's affair
        return self._loop.run_until_complete(what)

    async def _connect(self, url: str, replicas: int) -> None:
        import nats
        from nats.js.api import ConsumerConfig, RetentionPolicy, StorageType

        async def quiet(error: Exception) -> None:
            """Errors are seen by whoever asks."""

        self._nats: Any = await nats.connect(
            url, connect_timeout=2, allow_reconnect=False, error_cb=quiet
        )
        self._js: Any = self._nats.jetstream(timeout=PATIENCE)
        await self._js.add_stream(
            name=NAME,
            subjects=[NAME],
            retention=RetentionPolicy.WORK_QUEUE,
            storage=StorageType.FILE,
            num_replicas=replicas,
        )
        self._subscription: Any = await self._js.pull_subscribe(
            NAME,
            durable="workers",
            config=ConsumerConfig(ack_wait=self.ACK_WAIT, max_ack_pending=100_000),
        )

    def publish(self, m: str) -> None:
        self._run(self._js.publish(NAME, m.encode(), timeout=PATIENCE))

    def get(self) -> TakenMessage | None:
        import nats.errors

        async def fetch() -> Any:
            return await self._subscription.fetch(1, timeout=0.1)

        try:
            (message,) = self._run(fetch())
        except (nats.errors.TimeoutError, TimeoutError):
            # A fetch that is late is none that finds nothing: the consumer's own count decides.
            info = self._run(self._subscription.consumer_info())
            if info.num_pending or info.num_ack_pending > len(self._messages):
                raise RefusedByServer("messages are there, which others may hold") from None
            return None
        m = message.data.decode()
        again = message.metadata.num_delivered > 1
        claimed = again and m not in self._returned
        self._returned.discard(m)
        self._last += 1
        self._messages[self._last] = message
        return TakenMessage(m, self._last, claimed=claimed)

    def ack(self, tag: int) -> None:
        self._run(self._messages.pop(tag).ack_sync(timeout=PATIENCE))

    def nack(self, tag: int) -> None:
        message = self._messages.pop(tag)
        self._returned.add(message.data.decode())
        self._run(message.nak())
        self._run(self._nats.flush(PATIENCE))

    def left(self) -> tuple[int, int]:
        stored = self._run(self._js.stream_info(NAME)).state.messages
        seen = self._run(self._subscription.consumer_info())
        waiting, held = int(seen.num_pending), int(seen.num_ack_pending)
        if stored <= waiting + held:
            self._differ = 0.0
            return waiting, held
        # The stream has more than its consumer knows of: either that is late, or they differ for good.
        self._differ = self._differ or time.monotonic()
        late = time.monotonic() - self._differ < self.SETTLING
        return (int(stored) - held if late else waiting), held

    def close(self) -> None:
        if self._loop.is_closed():
            return
        try:
            self._run(asyncio.wait_for(self._nats.close(), PATIENCE))
        finally:
            self._end()

    def _end(self) -> None:
        """Nothing that the library has begun lives on."""
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._run(asyncio.wait(tasks) if tasks else asyncio.sleep(0))
        self._loop.close()


def clients_of(system: DescribedSystem, *, log: bool = False) -> ConcurrentSystem:
    """What makes connections to a system that runs; `log`: which use it as a log."""
    reach = system.reach
    if log:
        return FaultyLogs("Redis, lists as a log", reach)
    if system.description.id == "redis":
        return FaultySystem("Redis", lambda _: FaultyRedis(reach), "lease")
    if system.description.id == "beanstalkd":
        return FaultySystem("beanstalkd", lambda _: FaultyBeanstalkd(reach), "nack")
    if system.description.id == "postgresql":
        return FaultySystem("PostgreSQL", lambda _: FaultyPostgres(reach), "nack")
    if system.description.id in ("nats", "nats-cluster"):
        returned: set[str] = set()
        return FaultySystem("NATS", lambda _: FaultyNats(system, returned), "lease", "nack")
    setting = system.setting
    queues = BrokerQueues(setting.arguments, durable=True, persistent=setting.persistent)
    return AmqpClients(reach.split(","), queues, patience=2 * UNCONFIRMED)
