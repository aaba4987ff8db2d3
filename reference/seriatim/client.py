"""A broker and its client, by the threading model of RabbitMQ and its Java client, as the smallest code that is right.

The server half is AMQP 0-9-1 as far as order and possession go: exchanges, queues, consumers, acknowledgements.
The client half is the article "The RabbitMQ Threading Model": one reader for each connection, channels with one
synchronous operation at a time, and the work pool, which runs callbacks on a bounded pool of threads.

How to think of it
------------------
Everything that a server does is one step under its lock. What it has to say goes into the connection's wire, in order.
One thread, the reader, takes frames from the wire; it hands replies to their callers and deliveries to the work pool,
and never runs an application's code. Ten rules.

Rule 1 (place).     A message gets its position in a queue when it is routed there, and keeps it: requeueing is sorting.
Rule 2 (possession). A message is ready, or unacknowledged on one channel, or settled. Auto-ack settles by pushing.
Rule 3 (prefetch).  A limit is looked at before each push, for the consumer and for its channel; `basic_get` has none.
Rule 4 (one reader). Only the reader takes from the wire, so what a channel gets is in the order in which it was pushed.
                    It registers a consumer itself, with the reply that allows it: the next frame may be its delivery.
Rule 5 (pool).      A channel's work is dormant, ready or in progress. Queued work is never dormant:
                    putting work in and waking its channel are one critical section.
Rule 6 (runnables). For each channel that becomes ready one runnable goes to the executor; it takes whichever channel is
                    first. So ready channels and runnables that have not begun are equal in number.
Rule 7 (failure).   A callback that raises spoils nothing but itself: the rest of its block runs.
                    A put that is interrupted or out of time and an execution that is rejected close the connection:
                    then the server has the messages again, and nothing is stranded. So it has those of a channel
                    that was unregistered, whose work is thrown away.
Rule 8 (one call).  A channel's slot for its synchronous operation is freed by the reply and by nothing else.
                    A caller whose patience ends leaves the slot behind, so a late reply cannot answer the next call.
Rule 9 (no wait).   The reader does not wait for callbacks, for a callback may wait for a reply. Without a capacity it
                    never waits, and memory is bounded by prefetch; with one it waits, but never while a call is out
                    on any channel of the connection.
Rule 10 (end).      Who waits (for a turn, a reply, room) is woken by the end of what it waits for, and told.
                    However a connection ends, by the application, a failure here or the server, its reader ends it
                    here, and `Connection.close` returns when the reader has.

The work pool is "Channeling Work" (Powell & Harrop, channels.tex in the Java client's repository). Its state is `pool`,
a sequence of work for each channel, and the partition of the channels into dormant, ready (a sequence, no channel
twice) and in progress; a dormant channel has no work. Its operations DeliverDormant, DeliverReady, DeliverInProgress,
StartWork, EndWorkMoreToDo and EndWorkNoMoreToDo are named where they happen. We depart from it in four places:
StartWork takes a block and not one item (with `block` 1 it is the specification's);
channels come and go (`register_key`, `unregister_key`), also while they are in progress;
a put may wait for room, and may be refused; and a callback that raises ends like one that does not.
Of these the specification says nothing.

The Java client of today departs further: it puts outside its lock, so work is for a moment queued in a dormant channel
and a channel may be made ready with nothing to do; and a callback that raises takes the rest of its block with it.

Where AMQP and RabbitMQ differ this file says at the line what it does. It honours no-local, which RabbitMQ ignores.

What this file does not know
----------------------------
It starts no threads: whoever uses it runs `Connection.reader` on one and `Executor.worker` on as many as the pool is
large. It does not know bytes, heartbeats, persistence, transactions, confirms, mandatory and immediate publishing,
consumer priorities, channel numbers used twice, or the time that a request is under way to the server: a request takes
effect when it is sent. Of a client that crashes it knows what the server sees, which is a connection that is gone.

Times are in seconds. A time limit is for one sleep: a waiter that was woken for somebody else's sake sleeps anew.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import deal

from seriatim.host import Host

CAPACITY: int | None = None
"""How much work of one channel waits at most; None is no limit (rule 9). The Java client has 1000."""
BLOCK = 256
"""How many items of one channel a runnable takes at once; the Java client has 256, 16 before 2022, the Z text 1."""


class Misuse(ValueError):
    """The caller did something that cannot mean anything."""


class Closed(Exception):
    """The channel or its connection is closed; AMQP's reply code says why (200: somebody asked for it)."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(f"{code} {why}")
        self.code = code


class CallTimeout(Exception):
    """No reply in time. The operation may have happened, and the channel waits for its reply before the next one."""


class NotPut(Exception):
    """The work was not put into the pool: there was no room in time, or an interrupt."""


class Unregistered(NotPut):
    """The work was not put into the pool: its channel is not there, or not any more."""


class Rejected(Exception):
    """The executor takes no more work."""


# --------------------------------------------------------------------------------------------------
# The wire: what the server says to one connection, in order
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Message:
    """What a publisher hands in."""

    id: str
    body: object = None


@dataclass(frozen=True)
class Delivery:
    """A message as a channel gets it."""

    message: Message
    delivery_tag: int
    consumer_tag: str
    """Empty if it was got, not pushed."""
    redelivered: bool


@dataclass(frozen=True)
class Frame:
    """What the server says: ``deliver``, ``reply``, ``close`` (of a channel) or ``gone`` (the connection)."""

    kind: str
    channel: int = 0
    call: int = 0
    """Which call it answers. For the record only: on the wire there is no such number, and no decision reads it."""
    value: object = None
    delivery: Delivery | None = None
    error: Closed | None = None


class Wire:
    """One direction of a connection. The server writes under its lock, one reader reads."""

    def __init__(self, host: Host, name: str) -> None:
        self.name = name
        self.gone = False
        """Whether the server has said its last word; under the server's lock."""
        self._frames: deque[Frame] = deque()
        self._arrived = host.semaphore(0, f"{name}.wire")

    def send(self, frame: Frame) -> None:
        self._frames.append(frame)
        self._arrived.release()

    def receive(self) -> Frame:
        self._arrived.acquire()
        return self._frames.popleft()


# --------------------------------------------------------------------------------------------------
# The server
# --------------------------------------------------------------------------------------------------


@dataclass
class Queued:
    """A message in its place in a queue."""

    position: int
    message: Message
    origin: str
    """The connection that published it, for no-local."""
    redelivered: bool = False


@dataclass
class ServerQueue:
    name: str
    owner: str = ""
    """The connection that an exclusive queue belongs to and dies with."""
    ready: list[Queued] = field(default_factory=list)
    """Sorted by position (rule 1)."""
    consumers: list[ServerConsumer] = field(default_factory=list)
    """Whose turn is next comes first."""
    arrivals: int = 0


@dataclass(eq=False)
class ServerConsumer:
    tag: str
    queue: ServerQueue
    channel: ServerChannel
    auto_ack: bool
    exclusive: bool
    no_local: bool
    prefetch: int

    def may_take(self, item: Queued) -> bool:
        """Not its own connection's (NL-1), and within both limits (QS-1); auto-ack has none, as in RabbitMQ."""
        if self.no_local and item.origin == self.channel.wire.name:
            return False
        if self.auto_ack:
            return True
        held = [u.consumer for u in self.channel.unacked.values() if u.consumer is not None]
        mine = sum(1 for c in held if c is self)
        return within(self.prefetch, mine) and within(self.channel.prefetch, len(held))


@dataclass
class Unacked:
    queue: ServerQueue
    item: Queued
    consumer: ServerConsumer | None
    """None if it was got: that counts against no prefetch."""


@dataclass(eq=False)
class ServerChannel:
    wire: Wire
    number: int
    tag: int = 0
    unacked: dict[int, Unacked] = field(default_factory=dict)
    """By delivery tag, rising."""
    consumers: dict[str, ServerConsumer] = field(default_factory=dict)
    prefetch: int = 0
    """Of the channel as a whole (RabbitMQ: global); 0 is no limit."""
    consumer_prefetch: int = 0
    """Of each consumer that comes after it was set, as in RabbitMQ; AMQP 0-9-1 would make it the channel's."""


@deal.pre(lambda limit, held: limit >= 0 and held >= 0)
@deal.ensure(
    lambda limit, held, result: result or 0 < limit <= held, message="QS-1: refused only when full"
)
def within(limit: int, held: int) -> bool:
    """Whether one more fits under a limit; 0 is no limit."""
    return limit == 0 or held < limit


@deal.ensure(
    lambda outstanding, tag, multiple, result: set(result) <= set(outstanding),
    message="QS-1: what is settled was outstanding",
)
def settled_by(outstanding: list[int], tag: int, multiple: bool) -> list[int]:
    """The delivery tags that settling `tag` settles; 0 with `multiple` is all (AMQP 0-9-1, basic.ack)."""
    if multiple:
        return [t for t in outstanding if t <= tag or tag == 0]
    return [t for t in outstanding if t == tag]


Act = Callable[[ServerChannel], object]
"""What a request does at the server; its value is the reply. It raises `Closed` to refuse and close the channel."""


class Server:
    """Exchanges, queues and what every channel holds, under one lock."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._lock = host.lock("server")
        self._queues: dict[str, ServerQueue] = {}
        self._bindings: dict[str, list[tuple[str, str]]] = {}
        """Exchange -> (routing key, queue); the key '*' is any."""
        self._channels: dict[tuple[str, int], ServerChannel] = {}

    def _say(self, ev: str, channel: ServerChannel, /, **args: object) -> None:
        self.host.record(ev, conn=channel.wire.name, ch=channel.number, **args)

    # ---- connections, channels, requests

    def open(self, wire: Wire, number: int) -> None:
        with self._lock:
            if wire.gone:
                return
            channel = self._channels[wire.name, number] = ServerChannel(wire, number)
            self._say("srv_open", channel)

    def request(self, wire: Wire, number: int, act: Act, call: int = 0) -> None:
        """A request arrives, is done and, if it is a call, answered. For a channel that is closed it means nothing."""
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
        """The connection is gone, closed or crashed: all it held returns, and its exclusive queues die (QS-2, EX-1)."""
        with self._lock:
            if wire.gone:
                return
            wire.gone = True
            self.host.record("srv_gone", conn=wire.name)
            for channel in [c for c in self._channels.values() if c.wire is wire]:
                self.close_channel(channel)
            for queue in [q for q in self._queues.values() if q.owner == wire.name]:
                self._delete(queue)
            wire.send(Frame("gone", error=reason))
            self._push_all()

    def close_channel(self, channel: ServerChannel) -> None:
        for consumer in channel.consumers.values():
            consumer.queue.consumers.remove(consumer)
        self._say("srv_close", channel)
        self._requeue(channel, list(channel.unacked))
        self._channels.pop((channel.wire.name, channel.number), None)

    # ---- declarations and routing

    def declare_queue(self, channel: ServerChannel, name: str, exclusive: bool = False) -> None:
        queue = self._queues.get(name)
        if queue is not None:
            self._reachable(channel, name)
            return
        owner = channel.wire.name if exclusive else ""
        self._queues[name] = ServerQueue(name, owner)
        self.host.record("srv_queue", q=name, owner=owner)

    def bind(self, channel: ServerChannel, exchange: str, key: str, name: str) -> None:
        """One exchange type is enough: the key '*' makes a binding a fanout's, any other a direct exchange's."""
        self._reachable(channel, name)
        self._bindings.setdefault(exchange, []).append((key, name))
        self.host.record("srv_bind", x=exchange, key=key, q=name)

    def publish(self, channel: ServerChannel, exchange: str, key: str, message: Message) -> None:
        """To each queue once, however many bindings lead there. The default exchange, '', leads to the queue named."""
        bound = self._bindings.get(exchange, [])
        names = {q for k, q in bound if k in ("*", key)} if exchange else {key}
        origin = channel.wire.name
        self._say("srv_publish", channel, m=message.id, x=exchange, key=key)
        for name in sorted(names & self._queues.keys()):
            queue = self._queues[name]
            queue.arrivals += 1
            queue.ready.append(Queued(queue.arrivals, message, origin))
            self._say("srv_route", channel, q=name, m=message.id, pos=queue.arrivals)

    def _reachable(self, channel: ServerChannel, name: str) -> ServerQueue:
        queue = self._queues.get(name)
        if queue is None:
            raise Closed(404, f"NOT_FOUND - no queue {name!r}")
        if queue.owner not in ("", channel.wire.name):
            raise Closed(405, f"RESOURCE_LOCKED - {name!r} is exclusive to another connection")
        return queue

    def _delete(self, queue: ServerQueue) -> None:
        """An exclusive queue, whose consumers are its owner's and gone with the owner's channels."""
        del self._queues[queue.name]
        self.host.record("srv_delete", q=queue.name)

    # ---- consuming

    def qos(self, channel: ServerChannel, prefetch: int, whole_channel: bool) -> None:
        if whole_channel:
            channel.prefetch = prefetch
            self._say("srv_qos", channel, prefetch=prefetch)
        else:
            channel.consumer_prefetch = prefetch

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
        queue = self._reachable(channel, name)
        if tag in channel.consumers:
            raise Closed(530, f"NOT_ALLOWED - consumer tag {tag!r} is in use")
        taken = any(c.exclusive for c in queue.consumers)
        refused = taken or bool(exclusive and queue.consumers)
        self._say(
            "srv_consume",
            channel,
            q=name,
            ctag=tag,
            autoack=auto_ack,
            exclusive=exclusive,
            nolocal=no_local,
            prefetch=channel.consumer_prefetch,
            ok=not refused,
        )
        if refused:
            raise Closed(403, f"ACCESS_REFUSED - {name!r} in exclusive use")
        consumer = ServerConsumer(
            tag, queue, channel, auto_ack, exclusive, no_local, channel.consumer_prefetch
        )
        queue.consumers.append(consumer)
        channel.consumers[tag] = consumer

    def cancel(self, channel: ServerChannel, tag: str) -> None:
        """What it has not acknowledged stays with the channel. To cancel what is not there is no error (RabbitMQ)."""
        consumer = channel.consumers.pop(tag, None)
        if consumer is not None:
            consumer.queue.consumers.remove(consumer)
            self._say("srv_cancel", channel, ctag=tag)

    def get(self, channel: ServerChannel, name: str, auto_ack: bool) -> Delivery | None:
        """The first ready message, or None at once. An exclusive consumer does not stand in its way (RabbitMQ)."""
        queue = self._reachable(channel, name)
        if not queue.ready:
            return None
        return self._hand_out(channel, queue, queue.ready.pop(0), None, auto_ack)

    def settle(
        self, channel: ServerChannel, tag: int, multiple: bool, requeue: bool | None
    ) -> None:
        """Ack (`requeue` is None), or nack and reject, which put back or throw away."""
        tags = settled_by(list(channel.unacked), tag, multiple)
        if not tags and not (multiple and tag == 0):
            raise Closed(406, f"PRECONDITION_FAILED - unknown delivery tag {tag}")
        self._say(
            "srv_settle", channel, dtag=tag, multiple=multiple, requeue=bool(requeue), tags=tags
        )
        if requeue:
            self._requeue(channel, tags)
        else:
            for t in tags:
                del channel.unacked[t]

    def _push_all(self) -> None:
        """Each ready message, in order, to the first consumer in turn that may take it."""
        for queue in self._queues.values():
            for item in list(queue.ready):
                consumer = next((c for c in queue.consumers if c.may_take(item)), None)
                if consumer is None:
                    continue
                queue.ready.remove(item)
                queue.consumers.remove(consumer)
                queue.consumers.append(consumer)
                channel = consumer.channel
                delivery = self._hand_out(channel, queue, item, consumer, consumer.auto_ack)
                channel.wire.send(Frame("deliver", channel.number, delivery=delivery))

    def _hand_out(
        self,
        channel: ServerChannel,
        queue: ServerQueue,
        item: Queued,
        consumer: ServerConsumer | None,
        auto_ack: bool,
    ) -> Delivery:
        channel.tag += 1
        if not auto_ack:
            channel.unacked[channel.tag] = Unacked(queue, item, consumer)
        tag = consumer.tag if consumer is not None else ""
        self._say(
            "srv_push",
            channel,
            ctag=tag,
            dtag=channel.tag,
            q=queue.name,
            m=item.message.id,
            pos=item.position,
            autoack=auto_ack,
            redelivered=item.redelivered,
        )
        return Delivery(item.message, channel.tag, tag, item.redelivered)

    def _requeue(self, channel: ServerChannel, tags: list[int]) -> None:
        """Back to the old place, marked (QS-2). A queue that is gone meanwhile takes nothing back."""
        for tag in tags:
            held = channel.unacked.pop(tag)
            held.item.redelivered = True
            insort(held.queue.ready, held.item, key=lambda item: item.position)
            self._say(
                "srv_requeue",
                channel,
                dtag=tag,
                q=held.queue.name,
                m=held.item.message.id,
                pos=held.item.position,
                order=[item.position for item in held.queue.ready],
            )

    def snapshot(self) -> dict[str, object]:
        """For checks at rest."""
        return {
            "queues": {
                q.name: [[i.message.id, i.position, i.redelivered] for i in q.ready]
                for q in self._queues.values()
            },
            "unacked": {
                f"{c.wire.name}.{c.number}": [u.item.message.id for u in c.unacked.values()]
                for c in self._channels.values()
            },
        }


# --------------------------------------------------------------------------------------------------
# The client: a bounded pool of threads, and the work pool
# --------------------------------------------------------------------------------------------------


class Executor:
    """A pool of `size` threads: as many must run `worker`."""

    def __init__(self, host: Host, size: int) -> None:
        if size < 1:
            raise Misuse(f"a pool has at least one thread, not {size}")
        self.size = size
        self._lock = host.lock("executor")
        self._open = True
        self._tasks: deque[Callable[[], None] | None] = deque()
        self._permits = host.semaphore(0, "executor.tasks")

    def execute(self, task: Callable[[], None]) -> None:
        """Have a worker run it; raises `Rejected`."""
        with self._lock:
            if not self._open:
                raise Rejected("the executor is shut down")
            self._tasks.append(task)
        self._permits.release()

    def shutdown(self) -> None:
        """Take no more; workers do what they were given, and end."""
        with self._lock:
            if not self._open:
                return
            self._open = False
            self._tasks.extend([None] * self.size)
        self._permits.release(self.size)

    def worker(self) -> None:
        while True:
            self._permits.acquire()
            task = self._tasks.popleft()
            if task is None:
                return
            task()

    @property
    def waiting(self) -> int:
        """How many tasks have not begun."""
        return sum(1 for t in self._tasks if t is not None)


@dataclass(frozen=True)
class Work:
    """Something to run, with a name that is unique."""

    label: str
    run: Callable[[], None]


class WorkPool:
    """The work of each channel, in order, and which channels are ready or in progress. All others are dormant."""

    def __init__(self, host: Host, capacity: int | None = None, block: int = BLOCK) -> None:
        if (capacity is not None and capacity < 1) or block < 1:
            raise Misuse(f"capacity and block are at least 1, not {capacity} and {block}")
        self.host = host
        self.capacity = capacity
        self.block = block
        self._lock = host.lock("pool")
        self._room = host.condition(self._lock, "pool.room")
        self._pool: dict[str, deque[Work]] = {}
        self._ready: deque[str] = deque()
        self._in_progress: set[str] = set()
        self._unlimited: set[str] = set()
        """Channels with a call out. One call for each channel, so a set counts them."""
        self._interrupted = False

    def register_key(self, key: str) -> None:
        with self._lock:
            self._pool.setdefault(key, deque())
            self.host.record("pool_register", k=key)

    def unregister_key(self, key: str) -> None:
        """Throw away the channel's work. Who waits for room in it is woken and refused (rule 10)."""
        with self._lock:
            if key not in self._pool:
                return
            dropped = self._pool.pop(key)
            if key in self._ready:
                self._ready.remove(key)  # its runnable will take another, or find nothing
            self._in_progress.discard(key)
            self._unlimited.discard(key)
            self._room.notify_all()
            self.host.record("pool_unregister", k=key, dropped=[w.label for w in dropped])

    def unregister_all_keys(self) -> None:
        with self._lock:
            keys = list(self._pool)
        for key in keys:
            self.unregister_key(key)

    def unlimit(self, key: str) -> None:
        """No queue is bounded while any channel has a call out: its reply stands behind deliveries to all of them."""
        with self._lock:
            if key in self._pool:
                self._unlimited.add(key)
                self._room.notify_all()

    def limit(self, key: str) -> None:
        with self._lock:
            self._unlimited.discard(key)

    def interrupt(self) -> None:
        """Wake whoever waits for room, without room."""
        with self._lock:
            self._interrupted = True
            self._room.notify_all()

    def add_work_item(self, key: str, work: Work, timeout: float | None = None) -> bool:
        """Put, waiting for room if there is a bound; True if a runnable must be started. Raises `NotPut`.

        Waiting gives up the lock, so a full channel does not block the pool.
        """
        with self._lock:
            while self._full(key):
                if self._interrupted:
                    self._interrupted = False
                    raise NotPut("interrupted")
                if not self._room.wait(timeout):
                    raise NotPut("no room in time")
            if key not in self._pool:
                raise Unregistered(f"{key} is not registered")
            queue = self._pool[key]
            queue.append(work)
            self.host.record("pool_put", k=key, w=work.label, n=len(queue), capacity=self.capacity)
            if key in self._ready or key in self._in_progress:
                return False  # DeliverReady, DeliverInProgress
            self._ready.append(key)  # DeliverDormant
            return True

    def _full(self, key: str) -> bool:
        return (
            self.capacity is not None
            and not self._unlimited
            and len(self._pool.get(key, ())) >= self.capacity
        )

    def next_work_block(self) -> tuple[str, list[Work]] | None:
        """StartWork: the channel that has been ready longest, and up to a block of its work."""
        with self._lock:
            if not self._ready:
                return None
            key = self._ready.popleft()
            self._in_progress.add(key)
            queue = self._pool[key]
            block = [queue.popleft() for _ in range(min(self.block, len(queue)))]
            self.host.record("pool_block", k=key, n=len(block))
            if self.capacity is not None:
                self._room.notify_all()
            return key, block

    def finish_work_block(self, key: str) -> bool:
        """True if a runnable must be started. A channel that was unregistered meanwhile has nothing more."""
        with self._lock:
            if key not in self._pool:
                return False
            if key not in self._in_progress:
                raise Misuse(f"{key} is not in progress")
            self._in_progress.remove(key)
            if not self._pool[key]:
                return False  # EndWorkNoMoreToDo
            self._ready.append(key)  # EndWorkMoreToDo: to the tail, so channels take turns
            return True

    def snapshot(self) -> dict[str, object]:
        """For checks at rest."""
        return {
            "queued": {k: [w.label for w in q] for k, q in self._pool.items()},
            "ready": list(self._ready),
            "in_progress": sorted(self._in_progress),
        }


class WorkService:
    """The work pool on an executor. `on_failure` must see to it that all keys are unregistered (rule 7)."""

    def __init__(
        self,
        host: Host,
        executor: Executor,
        capacity: int | None = CAPACITY,
        block: int = BLOCK,
        on_failure: Callable[[str], None] | None = None,
        name: str = "",
    ) -> None:
        self.host = host
        self.executor = executor
        self.pool = WorkPool(host, capacity, block)
        self.on_failure = on_failure or (lambda _: self.pool.unregister_all_keys())
        host.record("pool_size", conn=name, threads=executor.size)

    def add(self, key: str, work: Work, timeout: float | None = None) -> None:
        """Have it run after all that was added for the same key, and never at the same time as any of it."""
        self.host.record("work_add", ph="invoke", k=key, w=work.label)
        try:
            runnable = self.pool.add_work_item(key, work, timeout)
        except NotPut as error:
            self.host.record("work_add", ph="fail", k=key, w=work.label)
            if not isinstance(error, Unregistered):
                self.on_failure(str(error))
            return
        if runnable:
            self._start_runnable()
        self.host.record("work_add", ph="ok", k=key, w=work.label)

    def _start_runnable(self) -> None:
        try:
            self.executor.execute(self._run)
        except Rejected as error:
            self.on_failure(str(error))

    def _run(self) -> None:
        """A runnable."""
        block = self.pool.next_work_block()
        if block is None:
            return
        key, items = block
        for work in items:
            self.host.record("work_start", k=key, w=work.label)
            try:
                work.run()
            except (
                Exception,
                SystemExit,
            ) as error:  # to exit is the callback's end, not the pool's
                self.host.record("work_end", k=key, w=work.label, raised=type(error).__name__)
            else:
                self.host.record("work_end", k=key, w=work.label, raised="")
        if self.pool.finish_work_block(key):
            self._start_runnable()

    def snapshot(self) -> dict[str, object]:
        return {**self.pool.snapshot(), "runnables": self.executor.waiting}


# --------------------------------------------------------------------------------------------------
# The client: connection and channels
# --------------------------------------------------------------------------------------------------


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
        self._channels: dict[int, Channel] = {}
        self._closed: Closed | None = None
        self._gone = False
        self._closers = 0

    def open_channel(self) -> Channel:
        with self._lock:
            if self._closed is not None:
                raise self._closed
            number = len(self._channels) + 1
            channel = self._channels[number] = Channel(self, number)
            self.work.pool.register_key(channel.key)
            self.server.open(self.wire, number)
            return channel

    def close(self) -> None:
        """Return when it is over. What was delivered here and has not begun to run is thrown away.

        The reader must be running, and may not be who calls.
        """
        with self._lock:
            self._closers += 1
            number = self._closers
            self.host.record("cli_call", ph="invoke", conn=self.name, ch=0, call=number, op="close")
        self._end(Closed(200, "closed by the application"), tell=True)
        with self._lock:
            while not self._gone:
                self._over.wait()
            self.host.record("cli_call", ph="ok", conn=self.name, ch=0, call=number, got=number)

    def fail(self, why: str) -> None:
        """End it, and wait for nobody: any thread may do so, in the middle of anything (rule 7)."""
        self._end(Closed(541, f"INTERNAL_ERROR - {why}"), tell=True)

    def reader(self) -> None:
        """Read until the server's last word."""
        while True:
            frame = self.wire.receive()
            if frame.error is not None and frame.kind == "gone":
                self.host.record("cli_frame", conn=self.name, ch=0, kind="gone", call=0, dtag=0)
                self._end(frame.error)
                with self._lock:
                    self._gone = True
                    self._over.notify_all()
                return
            # Only `open_channel` adds, and before the server can name it. Nothing is ever removed.
            self._channels[frame.channel].on_frame(frame)

    def _end(self, error: Closed, tell: bool = False) -> None:
        """No more channels, and none that is open; then the server is told, if it did not tell us."""
        with self._lock:
            if self._closed is not None:
                return
            self._closed = error
            channels = list(self._channels.values())
        for channel in channels:
            channel.shut_down(error)
        if tell:
            self.server.disconnect(self.wire, error)


Callback = Callable[["Channel", Delivery], None]


@dataclass(eq=False)
class Call:
    """A synchronous operation that is under way."""

    number: int
    on_reply: Callable[[], None] | None = None
    """What the reader does with the reply before it reads on (rule 4)."""
    done: bool = False
    value: object = None
    error: Closed | None = None
    answered_by: int = 0


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
        self._call("declare", lambda c: self.server.declare_queue(c, name, exclusive))

    def queue_bind(self, name: str, exchange: str, key: str = "*") -> None:
        if not exchange:
            raise Misuse("the default exchange has its own bindings")
        self._call("bind", lambda c: self.server.bind(c, exchange, key, name))

    def basic_qos(self, prefetch: int, *, whole_channel: bool = False) -> None:
        """At most so many unacknowledged, 0 for no limit: for each later consumer, or for the channel together."""
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
        def register() -> None:
            self._consumers[tag] = callback

        self._call(
            "consume",
            lambda c: self.server.consume(
                c, queue, tag, auto_ack=auto_ack, exclusive=exclusive, no_local=no_local
            ),
            register,
        )

    def basic_cancel(self, tag: str) -> None:
        """Deliveries that are here already still run."""
        self._call("cancel", lambda c: self.server.cancel(c, tag))

    def basic_get(
        self, queue: str, *, auto_ack: bool = False, timeout: float | None = None
    ) -> Delivery | None:
        """The next message or None, at once. After a `CallTimeout` a message that was got belongs to the channel."""
        got = self._call("get", lambda c: self.server.get(c, queue, auto_ack), timeout=timeout)
        return got if isinstance(got, Delivery) else None

    def close(self) -> None:
        """What is not acknowledged goes back, and deliveries that have not begun to run are thrown away."""
        with suppress(Closed):  # by somebody else, before or meanwhile
            self._call("close", self.server.close_channel)
        self.shut_down(Closed(200, "the channel was closed by the application"))

    def _call(
        self,
        op: str,
        act: Act,
        on_reply: Callable[[], None] | None = None,
        timeout: float | None = None,
    ) -> object:
        """Wait for the turn, send, wait for the reply; raises `Closed` or `CallTimeout`."""
        with self._lock:
            self._calls += 1
            call = Call(self._calls, on_reply)
            self._record_call("invoke", call, op=op)
            while self._active is not None:
                self._wait(call, timeout)
            self._ensure_open(call)
            self._active = call
            self.connection.work.pool.unlimit(self.key)
            self._record_call("info", call, at="sent")
            self.server.request(self.connection.wire, self.number, act, call.number)
            while not call.done:
                self._wait(call, timeout)
            if call.error is not None:
                self._record_call("fail", call, why=str(call.error))
                raise call.error
            self._record_call("ok", call, got=call.answered_by)
            return call.value

    def _wait(self, call: Call, timeout: float | None) -> None:
        if not self._changed.wait(timeout):
            # rule 8: if it was sent it stays in the slot until its reply has come
            self._record_call("fail", call, why="no reply in time")
            raise CallTimeout(f"no reply within {timeout} seconds")

    def _ensure_open(self, call: Call | None = None) -> None:
        if self.closed is not None:
            if call is not None:
                self._record_call("fail", call, why=str(self.closed))
            raise self.closed

    def _record_call(self, ph: str, call: Call, **more: object) -> None:
        self.host.record(
            "cli_call",
            ph=ph,
            conn=self.connection.name,
            ch=self.number,
            call=call.number,
            **more,
        )

    # ---- operations that do not wait

    def basic_publish(self, exchange: str, key: str, message: Message) -> None:
        self._send(lambda c: self.server.publish(c, exchange, key, message))

    def basic_ack(self, tag: int, *, multiple: bool = False) -> None:
        self._settle(tag, multiple, None)

    def basic_nack(self, tag: int, *, multiple: bool = False, requeue: bool = True) -> None:
        self._settle(tag, multiple, requeue)

    def basic_reject(self, tag: int, *, requeue: bool = True) -> None:
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

    def on_frame(self, frame: Frame) -> None:
        self.host.record(
            "cli_frame",
            conn=self.connection.name,
            ch=self.number,
            kind=frame.kind,
            call=frame.call,
            dtag=frame.delivery.delivery_tag if frame.delivery else 0,
        )
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
            call = self._active
            if call is None:
                return
            if call.on_reply is not None:
                call.on_reply()
            call.value, call.answered_by = frame.value, frame.call
            self._finish(call)

    def _finish(self, call: Call) -> None:
        call.done = True
        self._active = None
        self.connection.work.pool.limit(self.key)
        self._changed.notify_all()

    def shut_down(self, error: Closed) -> None:
        """Whoever waits for a turn or a reply is told why there will be none."""
        with self._lock:
            if self.closed is not None:
                return
            self.closed = error
            if self._active is not None:
                self._active.error = error
                self._finish(self._active)
        self.connection.work.pool.unregister_key(self.key)
