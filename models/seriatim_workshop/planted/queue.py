"""A queue in plain Python, with a thread that pushes: right, and written to be read.

``seriatim conform --python seriatim_workshop.planted.mistakes:right`` drives it; `mistakes` holds it with one mistake
each. It knows nothing of the properties that judge it. Its rules, as `spec/conform/README.md` words them:

- a message keeps its place: put back, it is where it was, and marked as redelivered;
- one of higher priority is before those of lower, whenever it came;
- while one consumer holds a message of a group (a get counts as one of its channel), nobody else has one of that group;
- a consumer holds at most its limit, and all consumers of a channel together at most the channel's;
- of consumers that are ready the one of highest priority is served, and equals in turn;
- an exclusive consumer is alone;
- a get takes the first message that nobody holds, and no limit counts for it.

Pushing is the business of one thread, which every command that makes something deliverable wakes.
"""

from __future__ import annotations

import threading
from bisect import insort
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from seriatim_models.conformance.local import Refused

Deliver = Callable[[str, int, bool], None]


@dataclass(order=True)
class StoredMessage:
    """A message with its place in its queue: the higher its priority, the lower `rank`, the further ahead."""

    rank: int
    place: int
    m: str = field(compare=False)
    q: str = field(compare=False)
    key: str = field(compare=False)
    redelivered: bool = field(default=False, compare=False)


@dataclass(eq=False)
class PushConsumer:
    """A consumer: its limit, and how many messages it holds."""

    ch: int
    tag: str
    q: str
    deliver: Deliver
    limit: int
    autoack: bool
    exclusive: bool
    priority: int
    held: int = 0


class Taker(NamedTuple):
    """Who takes messages: a consumer, or with an empty tag whoever gets on that channel."""

    ch: int
    tag: str = ""


@dataclass
class OutstandingMessage:
    """A message that a channel holds, by which of its consumers."""

    message: StoredMessage
    consumer: PushConsumer | None
    taker: Taker


@dataclass
class QueueChannel:
    """A channel: its last tag, what it holds, its limits."""

    tag: int = 0
    held: dict[int, OutstandingMessage] = field(default_factory=dict)
    limit: int = 0
    whole: int = 0


class PlantedQueue:
    """Queues by name, which come into being by the first message or consumer."""

    name = "a queue with one thread"
    can: tuple[str, ...] = (
        *("publish", "get", "ack", "nack", "reject", "qos", "consume", "cancel", "open", "close"),
        *("recover", "multiple", "drop", "channel-qos", "exclusive", "priority", "redelivered"),
        *("autoack", "queues", "message-priority", "groups", "held-groups"),
    )

    def __init__(self) -> None:
        self.lock = threading.Condition()
        self.queues: dict[str, list[StoredMessage]] = {}
        self.channels: dict[int, QueueChannel] = {}
        self.groups: dict[tuple[str, str], Counter[Taker]] = {}
        """By queue and group, who holds messages of it, and how many."""
        self.consumers: list[PushConsumer] = []  # in the order of their turns
        self.published = 0
        self.pushed = 0
        self.woken = False
        self.resting = True
        self.ended = False
        self.pusher = threading.Thread(target=self._push_all, daemon=True)
        self.pusher.start()

    # ---- commands

    def open(self, ch: int) -> None:
        with self.lock:
            self.channels[ch] = QueueChannel()

    def close(self, ch: int) -> None:
        with self.lock:
            channel = self.channels.pop(ch)
            self.consumers = [c for c in self.consumers if c.ch != ch]
            for held in channel.held.values():
                self._let_go(held)
                self._put_back(held)
            self._wake()

    def publish(self, q: str, m: str, prio: int | None = None, key: str = "") -> None:
        with self.lock:
            self.published += 1
            message = StoredMessage(-(prio or 0), self.published, m, q, key)
            insort(self._queue(q), message)
            self._wake()

    def get(self, ch: int, q: str, autoack: bool = False) -> tuple[str, int, bool] | None:
        with self.lock:
            queue = self._queue(q)
            at = self._first(q, Taker(ch))
            if at is None:
                return None
            message = queue.pop(at)
            tag = self._next_tag(ch)
            if not autoack:
                self._hold(OutstandingMessage(message, None, Taker(ch)), tag)
            return message.m, tag, message.redelivered

    def qos(self, ch: int, prefetch: int, scope: str = "consumer") -> None:
        with self.lock:
            channel = self.channels[ch]
            if scope == "channel":
                channel.whole = prefetch
            else:
                channel.limit = prefetch
            self._wake()

    def consume(
        self,
        ch: int,
        q: str,
        ctag: str,
        deliver: Deliver,
        autoack: bool = False,
        exclusive: bool = False,
        cprio: int | None = None,
    ) -> None:
        with self.lock:
            others = [c for c in self.consumers if c.q == q]
            if any(c.exclusive for c in others) or (exclusive and others):
                raise Refused("an exclusive consumer is alone", 403)
            limit = self.channels[ch].limit
            consumer = PushConsumer(ch, ctag, q, deliver, limit, autoack, exclusive, cprio or 0)
            self.consumers.append(consumer)
            self._wake()

    def cancel(self, ch: int, ctag: str) -> None:
        with self.lock:
            self.consumers = [c for c in self.consumers if (c.ch, c.tag) != (ch, ctag)]
            self._wake()

    def ack(self, ch: int, dtag: int, multiple: bool = False) -> None:
        with self.lock:
            self._settled(ch, dtag, multiple)
            self._wake()

    def nack(self, ch: int, dtag: int, multiple: bool = False, requeue: bool = True) -> None:
        with self.lock:
            for held in self._settled(ch, dtag, multiple):
                if requeue:
                    self._put_back(held)
            self._wake()

    def reject(self, ch: int, dtag: int, requeue: bool = True) -> None:
        self.nack(ch, dtag, False, requeue)

    def recover(self, ch: int) -> None:
        with self.lock:
            for tag in list(self.channels[ch].held):
                for held in self._settled(ch, tag, False):
                    self._put_back(held)
            self._wake()

    def sync(self) -> None:
        """Wait until the pushing thread has nothing to do."""
        with self.lock:
            while self.woken or not self.resting:
                self.lock.wait(1.0)

    def end(self) -> None:
        with self.lock:
            self.ended = True
            self.lock.notify_all()

    # ---- what commands share; the lock is held

    def _queue(self, q: str) -> list[StoredMessage]:
        return self.queues.setdefault(q, [])

    def _next_tag(self, ch: int) -> int:
        channel = self.channels[ch]
        channel.tag += 1
        return channel.tag

    def _first(self, q: str, taker: Taker) -> int | None:
        """Where in a queue the first message is that somebody may have; None if there is none."""
        return next((n for n, each in enumerate(self._queue(q)) if self._free(each, taker)), None)

    def _free(self, message: StoredMessage, taker: Taker) -> bool:
        """Whether nobody else holds a message of its group."""
        owners = self.groups.get((message.q, message.key), ())
        return not message.key or all(owner == taker for owner in owners)

    def _hold(self, held: OutstandingMessage, tag: int) -> None:
        """A channel holds a message until it is settled."""
        self.channels[held.taker.ch].held[tag] = held
        owners = self.groups.setdefault((held.message.q, held.message.key), Counter())
        owners[held.taker] += 1

    def _let_go(self, held: OutstandingMessage) -> None:
        """Its taker holds one message less of the group."""
        owners = self.groups[held.message.q, held.message.key]
        owners[held.taker] -= 1
        if not owners[held.taker]:
            del owners[held.taker]

    def _settled(self, ch: int, dtag: int, multiple: bool) -> list[OutstandingMessage]:
        """Take from a channel what a settlement is about. Raises `Refused` if that is nothing."""
        held = self.channels[ch].held
        tags = [t for t in held if t == dtag or (multiple and (t <= dtag or dtag == 0))]
        if not tags and not (multiple and dtag == 0):
            raise Refused(f"unknown delivery tag {dtag}", 406)
        taken = [held.pop(t) for t in tags]
        for each in taken:
            if each.consumer is not None:
                each.consumer.held -= 1
            self._let_go(each)
        return taken

    def _put_back(self, held: OutstandingMessage) -> None:
        """A message is where it was, and the mark says to whoever gets it that it may have been seen."""
        message = held.message
        message.redelivered = True
        insort(self._queue(message.q), message)

    def _wake(self) -> None:
        """Have the pushing thread look again."""
        self.woken = True
        self.lock.notify_all()

    # ---- the pushing thread

    def _push_all(self) -> None:
        while True:
            with self.lock:
                while not self.woken and not self.ended:
                    self.resting = True
                    self.lock.notify_all()
                    self.lock.wait()
                if self.ended:
                    return
                self.woken = False
                self.resting = False
                while self._push_one():
                    pass

    def _push_one(self) -> bool:
        """Push one message, if there is one and somebody is ready for it."""
        ready = [
            c for c in self.consumers if self._has_credit(c) and self._place_for(c) is not None
        ]
        if not ready:
            return False
        consumer = max(ready, key=lambda c: c.priority)  # of equals the first, whose turn it is
        self.consumers.remove(consumer)
        self.consumers.append(consumer)
        at = self._place_for(consumer)
        assert at is not None
        message = self._queue(consumer.q).pop(at)
        self.pushed += 1
        tag = self._next_tag(consumer.ch)
        if not consumer.autoack:
            self._hold(OutstandingMessage(message, consumer, Taker(consumer.ch, consumer.tag)), tag)
            consumer.held += 1
        consumer.deliver(message.m, tag, message.redelivered)
        return True

    def _place_for(self, consumer: PushConsumer) -> int | None:
        """Where the first message is that the consumer may have."""
        return self._first(consumer.q, Taker(consumer.ch, consumer.tag))

    def _has_credit(self, consumer: PushConsumer) -> bool:
        if consumer.autoack:
            return True
        channel = self.channels[consumer.ch]
        everything = sum(held.consumer is not None for held in channel.held.values())
        own = not consumer.limit or consumer.held < consumer.limit
        return own and (not channel.whole or everything < channel.whole)
