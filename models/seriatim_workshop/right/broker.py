"""A broker that keeps what it declares, in virtual time: what takes effect, and when.

Nothing is recorded here but by a recorder inside the broker; what clients see travels on wires (`clients`).
Sources: AMQP 0-9-1 specification, basic.ack, basic.nack (RabbitMQ's extension), basic.recover, channel.close, class tx;
spec/HISTORY.md.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from seriatim_models.history.event import Event

MS = 1_000_000
"""Nanoseconds of a millisecond."""


class Meaning(NamedTuple):
    """What one drawn system declares, and how it is recorded. Times are nanoseconds."""

    seed: int
    requeue: str = "place"
    """Where a requeued message goes: its place, the head or the tail."""
    lvl: str = "api"
    """Where is recorded: api, wire or broker."""
    flags: bool = True
    """Whether recorders write `redelivered`."""
    headers: bool = True
    """Whether a delivery carries publisher and sequence."""
    phases: bool = True
    """Whether ends are recorded with `invoke` and `ok`; else one event, as a proxy writes it."""
    ops: bool = True
    """Whether `op` joins the phases."""
    answers: bool = True
    """Whether calls about consumers and limits are recorded with their answers; else what was asked alone."""
    own_recorders: bool = False
    """Whether each connection has a recorder of its own."""
    late: int = 3 * MS
    """By how much a callback may be stamped late."""
    notices: int = 30 * MS
    """By how much either side may notice the end of a connection late."""
    runs_on: bool = True
    """Whether callbacks that wait still run after their channel's end."""
    slow_confirms: bool = False
    """Whether a confirm may come after the delivery."""
    confirms: bool = True
    lag: int = MS
    """How long the broker takes to hand out what it has."""
    queues: int = 1
    levels: int = 1
    """Priorities of messages."""
    groups: int = 0
    """Groups of messages, each held by one consumer at a time; 0 for none."""
    dead: bool = False
    """Whether what is refused goes to a dead-letter queue, and from there back when that refuses it."""
    sole: bool = False
    """Single active consumer."""
    ranks: bool = False
    """Whether consumers have priorities."""
    scope: str = "consumer"
    """What a prefetch limits."""
    leases: int = 0
    """Nanoseconds after which what is held goes back; 0 for never."""
    until: int = 60 * MS
    """When the clients stop."""
    messages: int = 8
    consumers: int = 2
    publishers: int = 1
    sweeps: bool = True
    """Whether clients settle with tag 0 and multiple, and recover."""
    twice: bool = True
    """Whether a publisher sends the same message again after an unknown outcome."""
    rests: bool = False
    """Whether who looks into a queue at the end notes that all has come to rest."""
    kills: bool = True
    """Whether clients are killed without any end."""
    drops: bool = True
    alone: bool = False
    """Whether consumers may ask to be exclusive."""
    local: bool = False
    """Whether who consumes publishes, too, and may ask for nothing of its own connection (no-local)."""
    ttl: int = 0
    """Nanoseconds that a message may wait; 0 for ever."""
    delay: int = 0
    """Nanoseconds after its publish for which a message is not there, as each queue declares."""
    refuses: bool = False
    """Whether a publish may be refused."""
    tx: bool = False
    """Whether some channels publish and settle in transactions."""
    declares_end: bool = False
    """Whether queues declare the end to which they requeue."""
    handover: bool = False
    """Whether a consumer of higher priority that begins is the single active one from then on, while the one before
    still holds messages."""
    same_tags: bool = False
    """Whether the consumers of a channel that is opened again have the tags of those before; its recorder then says
    which incarnation it is (`gen`)."""


class VirtualTime:
    """Virtual time: calls at their instants, in order."""

    def __init__(self) -> None:
        self.now = 0
        self._calls: list[tuple[int, int, Callable[[], object]]] = []
        self._n = 0

    def at(self, t: int, call: Callable[[], object]) -> None:
        """Have something done at an instant, or now if that has gone by."""
        heapq.heappush(self._calls, (max(t, self.now), self._n, call))
        self._n += 1

    def run(self) -> None:
        """Do all that is to be done."""
        while self._calls:
            self.now, _, call = heapq.heappop(self._calls)
            call()


class RecordedAs(Protocol):
    """What a meaning says of its recorders."""

    @property
    def lvl(self) -> str:
        """Where is recorded."""

    @property
    def ops(self) -> bool:
        """Whether `op` joins the phases."""

    @property
    def own_recorders(self) -> bool:
        """Whether each connection has a recorder of its own."""


class DrawnRecorder:
    """Events as they are recorded."""

    def __init__(self, loop: VirtualTime, meaning: RecordedAs) -> None:
        self.loop = loop
        self.meaning = meaning
        self._rows: list[tuple[int, int, dict[str, Any]]] = []  # Any: fields of an event

    def add(self, ev: str, ph: str = "", **fields: Any) -> None:
        """Record an event now; fields that are None are left out."""
        content = {k: v for k, v in fields.items() if v is not None}
        if not self.meaning.ops:
            content.pop("op", None)
        if not self.meaning.own_recorders or self.meaning.lvl == "broker":
            content.pop("rec", None)
        self._rows.append((self.loop.now, len(self._rows), {"ev": ev, "ph": ph, **content}))

    def events(self) -> list[Event]:
        """The events in the order of their stamps, numbered."""
        lvl = self.meaning.lvl
        return [
            Event(i=i, t=t, lvl=lvl, clk="virtual", **fields)
            for i, (t, _, fields) in enumerate(sorted(self._rows, key=lambda r: r[:2]))
        ]


@dataclass(eq=False)
class DrawnMessage:
    """A copy of a message in a queue; two publishes of one id are two copies."""

    m: str
    prio: int
    key: str | None
    pub: str
    pseq: int
    place: int = 0
    given: int = 0
    conn: str = ""
    """The connection that sent it."""
    forgotten: bool = False
    """Its queue takes its priority for the lowest, which no right one does."""


@dataclass(eq=False)
class DrawnConsumer:
    """A consumer; `credit` None is without limit."""

    channel: DrawnChannel
    ctag: str
    q: DrawnQueue
    autoack: bool
    credit: int | None
    rank: int
    holds: int = 0
    exclusive: bool = False
    nolocal: bool = False


@dataclass(eq=False)
class DrawnChannel:
    """The broker's end of a channel."""

    link: Any  # clients.DrawnConnection: what carries frames to the client
    fields: dict[str, Any]
    tag: int = 0
    held: dict[int, DrawnHolding] = field(default_factory=dict)
    consumers: dict[str, DrawnConsumer] = field(default_factory=dict)
    limit: int | None = None
    prefetch: int | None = None
    gone: bool = False
    pending: list[tuple[str, Callable[[], object]]] = field(default_factory=list)
    """What was sent in its transaction, which has not ended."""


class RefusedCall(Exception):
    """A call that the broker answers by closing its channel."""


class DrawnHolding(NamedTuple):
    """What is handed out and not settled."""

    message: DrawnMessage
    q: DrawnQueue
    consumer: DrawnConsumer | None
    since: int


class DrawnQueue:
    """Ready messages in order, and who consumes them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ready: list[DrawnMessage] = []
        self.consumers: list[DrawnConsumer] = []
        self.next_place = 0
        self.first_place = 0
        self.due = False
        self.dead: DrawnQueue | None = None
        self.groups: dict[str, tuple[object, int]] = {}
        """Who holds messages of a group, and how many."""

    def put(self, message: DrawnMessage) -> None:
        """Take a message in at its place: by priority, then by place."""
        self.ready.append(message)
        self.ready.sort(key=lambda x: (0 if x.forgotten else -x.prio, x.place))

    def last(self, message: DrawnMessage) -> None:
        """Take a message in behind all others."""
        self.next_place += 1
        message.place = self.next_place
        self.put(message)


class DrawnBroker:
    """Queues, and what commands do to them at the instant at which they take effect."""

    def __init__(self, loop: VirtualTime, meaning: Meaning, recorder: DrawnRecorder) -> None:
        self.loop, self.meaning, self.recorder = loop, meaning, recorder
        self.random = random.Random(f"broker {meaning.seed}")
        self.queues = {name: DrawnQueue(name) for name in [f"q{n}" for n in range(meaning.queues)]}
        if meaning.dead:
            dead = self.queues["dead"] = DrawnQueue("dead")
            for queue in self.queues.values():
                queue.dead = self.queues["q0"] if queue is dead else dead
        self._turn = 0

    def exact(self, ev: str, ph: str = "", **fields: Any) -> None:
        """Record inside the broker, if that is where the recorder is."""
        if self.meaning.lvl == "broker":
            self.recorder.add(ev, ph, **fields)

    def publish(self, q: str, message: DrawnMessage, **fields: Any) -> None:
        """A message is enqueued."""
        self.exact("publish", m=message.m, q=q, key=message.key, **fields)
        if self.meaning.delay:
            due = self.loop.now + self.meaning.delay
            self.loop.at(due, lambda: self.arrives(self.queues[q], message))
        else:
            self.arrives(self.queues[q], message)

    def arrives(self, queue: DrawnQueue, message: DrawnMessage) -> None:
        """A message is there, behind all others."""
        queue.last(message)
        self.grows_old(queue, message)
        self.kick(queue)

    def grows_old(self, queue: DrawnQueue, message: DrawnMessage) -> None:
        """A message that has waited too long is dropped, or dies."""
        ttl = (
            self.meaning.ttl if queue.name != "dead" else 0
        )  # else what dies would go round for ever

        def too_old() -> None:
            if message not in queue.ready:
                return
            queue.ready.remove(message)
            self.exact("expire", m=message.m, q=queue.name, requeue=False)
            if queue.dead:
                self._dies(queue.dead, message)

        if ttl:
            self.loop.at(self.loop.now + ttl, too_old)

    def refuses(self) -> bool:
        """Whether a publish is refused this time."""
        return self.meaning.refuses and self.random.random() < 0.15

    def refuse(self, q: str, message: DrawnMessage) -> None:
        """A publish is refused: nothing is enqueued."""

    def answers(self) -> int:
        """How often a publish is confirmed."""
        return 1

    def kick(self, queue: DrawnQueue) -> None:
        """What a queue can hand out is handed out soon."""
        if not queue.due:
            queue.due = True
            self.loop.at(
                self.loop.now + self.random.randrange(self.meaning.lag), lambda: self.serve(queue)
            )

    def serve(self, queue: DrawnQueue) -> None:
        """Hand out what can be handed out."""
        queue.due = False
        while self.serve_one(queue):
            pass

    def serve_one(self, queue: DrawnQueue) -> bool:
        """Hand one message out; False if there is none that anybody may have."""
        for message in queue.ready:
            ready = [c for c in self.active(queue) if self.may_have(c, message)]
            if ready:
                best = self.foremost(ready)
                self._turn += 1
                consumer = best[self._turn % len(best)]
                self.acquire(queue, message, consumer.channel, consumer, consumer.autoack)
                return True
        return False

    def foremost(self, ready: list[DrawnConsumer]) -> list[DrawnConsumer]:
        """Those of the ready consumers that come before the others."""
        top = max(c.rank for c in ready)
        return [c for c in ready if c.rank == top]

    def active(self, queue: DrawnQueue) -> list[DrawnConsumer]:
        """The consumers that may be given messages."""
        if self.meaning.sole and self.meaning.handover:
            return sorted(queue.consumers, key=lambda c: -c.rank)[:1]
        return queue.consumers[:1] if self.meaning.sole else queue.consumers

    def may_have(self, consumer: DrawnConsumer, message: DrawnMessage) -> bool:
        """Whether a consumer may be given a message now: its limit, its channel's, and the message's group allow it."""
        channel = consumer.channel
        if consumer.nolocal and message.conn == channel.link.name:
            return False
        if not consumer.autoack:
            if consumer.credit is not None and consumer.holds >= consumer.credit:
                return False
            pushed = sum(h.consumer is not None for h in channel.held.values())
            if channel.limit is not None and pushed >= channel.limit:
                return False
        return self.group_free(consumer.q, message, consumer)

    def group_free(self, queue: DrawnQueue, message: DrawnMessage, by: object) -> bool:
        """Whether nobody else holds messages of a message's group."""
        if message.key is None:
            return True
        owner = queue.groups.get(message.key)
        return owner is None or owner[0] is by

    def acquire(
        self,
        queue: DrawnQueue,
        message: DrawnMessage,
        channel: DrawnChannel,
        consumer: DrawnConsumer | None,
        autoack: bool,
    ) -> dict[str, Any]:
        """Hand a message out; returns what the client receives."""
        queue.ready.remove(message)
        channel.tag = self.tag_after(channel.tag)
        content: dict[str, Any] = {  # Any: fields of an event
            "m": message.m,
            "q": queue.name,
            "dtag": channel.tag,
            "redelivered": self.flag(message),
            "key": message.key,
        }
        if self.meaning.headers:
            content |= {"pub": message.pub, "pseq": message.pseq}
        if self.meaning.levels > 1:
            content["prio"] = message.prio
        if not self.meaning.flags:
            content.pop("redelivered")
        message.given += 1
        if autoack:
            content["autoack"] = True
        else:
            held = DrawnHolding(message, queue, consumer, self.loop.now)
            channel.held[channel.tag] = held
            if consumer:
                consumer.holds += 1
            if message.key is not None:
                owner = consumer or channel
                queue.groups[message.key] = (
                    owner,
                    queue.groups.get(message.key, (owner, 0))[1] + 1,
                )
            # A client that is slower than its leases would be given the same for ever: later ones never run out.
            if self.meaning.leases and self.loop.now < self.meaning.until + 200 * MS:
                tag = channel.tag
                self.loop.at(
                    self.loop.now + self.meaning.leases, lambda: self._expire(channel, tag, held)
                )
        if consumer:
            content["ctag"] = consumer.ctag
            channel.link.push(channel, content)
        self.exact("deliver" if consumer else "get", **channel.fields, **content)
        return content

    def tag_after(self, tag: int) -> int:
        """The delivery tag that follows another one of its channel."""
        return tag + 1

    def flag(self, message: DrawnMessage) -> bool:
        """What a delivery says of whether the message was handed out before."""
        return message.given > 0

    def _expire(self, channel: DrawnChannel, tag: int, held: DrawnHolding) -> None:
        if channel.held.get(tag) is held:
            self.exact("expire", m=held.message.m, q=held.q.name, requeue=True)
            # Its holder's own clock says so.
            link = channel.link
            link.world.record(link, "expire", m=held.message.m, q=held.q.name, requeue=True)
            self.back(channel, tag)

    def get(self, q: str, channel: DrawnChannel, autoack: bool) -> dict[str, Any]:
        """What a poll finds, or nothing."""
        queue = self.queues[q]
        for message in queue.ready:
            if self.group_free(queue, message, channel):
                return self.acquire(queue, message, channel, None, autoack)
        return {"q": q}

    def release(self, channel: DrawnChannel, tag: int) -> DrawnHolding:
        """What is held is held no more."""
        held = channel.held.pop(tag)
        if held.consumer:
            held.consumer.holds -= 1
        key = held.message.key
        if key is not None:
            owner, n = held.q.groups[key]
            held.q.groups[key] = (owner, n - 1)
            if n == 1:
                del held.q.groups[key]
        return held

    def back(self, channel: DrawnChannel, tag: int) -> None:
        """What is held goes back to where requeued messages go."""
        held = self.release(channel, tag)
        queue, message = held.q, held.message
        if self.meaning.requeue == "tail":
            queue.last(message)
        elif self.meaning.requeue == "head":
            queue.first_place -= 1
            message.place = queue.first_place
            queue.put(message)
        else:
            queue.put(message)
        self.grows_old(queue, message)
        self.kick(queue)

    def settle(
        self, channel: DrawnChannel, ev: str, dtag: int, multiple: bool, requeue: bool
    ) -> bool:
        """An ack, nack or reject takes effect; False if it names nothing that is held."""
        tags = self.settled_by(channel, dtag, multiple)
        content: dict[str, Any] = {"multiple": multiple} if ev != "reject" else {}  # Any: as above
        if ev != "ack":
            content["requeue"] = requeue
        self.exact(ev, ph="" if tags else "fail", dtag=dtag, **content, **channel.fields)
        for tag in tags if ev != "ack" else reversed(tags):
            if ev != "ack" and requeue:
                self.back(channel, tag)
            else:
                held = self.release(channel, tag)
                self.done(held)
                if ev != "ack" and held.q.dead:
                    self._dies(held.q.dead, held.message)
        for consumer in channel.consumers.values():
            self.kick(consumer.q)
        return bool(tags)

    def settled_by(self, channel: DrawnChannel, dtag: int, multiple: bool) -> list[int]:
        """The tags that a command settles."""
        return [
            t for t in sorted(channel.held) if t == dtag or (multiple and (t < dtag or not dtag))
        ]

    def done(self, held: DrawnHolding) -> None:
        """A message leaves its queue for good."""
        self.kick(held.q)

    def _dies(self, dead: DrawnQueue, message: DrawnMessage) -> None:
        """A message goes to the queue of the dead, as a new one."""
        again = DrawnMessage(
            message.m, message.prio, message.key, message.pub, message.pseq, conn=message.conn
        )
        dead.last(again)
        self.grows_old(dead, again)
        self.kick(dead)

    def enlist(self, channel: DrawnChannel, ev: str, do: Callable[[], object]) -> None:
        """A publish or a settlement waits for the end of its transaction."""
        channel.pending.append((ev, do))

    def commit(self, channel: DrawnChannel) -> None:
        """All that was sent in a transaction takes effect, at once and in order."""
        for _, do in channel.pending:
            do()
        channel.pending.clear()

    def rollback(self, channel: DrawnChannel) -> None:
        """Nothing that was sent in a transaction takes effect."""
        channel.pending.clear()

    def recover(self, channel: DrawnChannel) -> None:
        """All that a channel holds goes back."""
        self.exact("recover", requeue=True, **channel.fields)
        for tag in sorted(channel.held):
            self.back(channel, tag)

    def consume(self, channel: DrawnChannel, consumer: DrawnConsumer) -> None:
        """A consumer is there. Raises `RefusedCall` if it, or another one, is to be alone."""
        self.seat(consumer)
        channel.consumers[consumer.ctag] = consumer
        consumer.q.consumers.append(consumer)
        self.kick(consumer.q)

    def seat(self, consumer: DrawnConsumer) -> None:
        """Refuse a consumer that cannot be alone, or that is beside one that is."""
        others = consumer.q.consumers
        if any(c.exclusive for c in others) or (consumer.exclusive and others):
            raise RefusedCall

    def cancel(self, channel: DrawnChannel, ctag: str) -> None:
        """A consumer is no more; what it holds stays its channel's."""
        consumer = channel.consumers.pop(ctag, None)
        if consumer:
            consumer.q.consumers.remove(consumer)
            self.exact("cancel", ctag=ctag, q=consumer.q.name, **channel.fields)
            self.kick(consumer.q)

    def close(self, channel: DrawnChannel) -> None:
        """A channel ends, for whatever reason: its consumers go, what it held goes back."""
        if channel.gone:
            return
        channel.gone = True
        self.rollback(channel)
        self.exact("ch_close", **channel.fields)
        for ctag in list(channel.consumers):
            consumer = channel.consumers.pop(ctag)
            consumer.q.consumers.remove(consumer)
            self.kick(consumer.q)
        for tag in sorted(channel.held):
            self.back(channel, tag)
