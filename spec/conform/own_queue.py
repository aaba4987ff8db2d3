"""The reference's pulled queue on real threads, as an implementation for `seriatim conform`.

    seriatim conform --python own_queue:Pulled --schedules --module seriatim
    seriatim conform --python own_queue:PulledByAtomicReads --schedules --module seriatim

run it, unmodified, under schedules of small clients. Each channel is a consumer that takes for itself. On `Threads`
each cell is read under a mutex, so that two reads of one cell have an order, and there are hundreds of times as many
schedules; the second has the same host but for that: a cell is read as the one attribute that it is.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import TypeVar

import deal

with suppress(RuntimeError):  # they are already
    # A contract is a function of `deal`, which is not observed. What it says is judged by the properties here.
    deal.disable(permament=True)

from seriatim.host import Cell, Threads, _ThreadCell
from seriatim.queue import Consumer, Message, PullQueue, QueueEntry

T = TypeVar("T")


class _ReadAtOnce(_ThreadCell[T]):
    __slots__ = ()

    def get(self) -> T:
        return self._value


class AtomicReads(Threads):
    """`Threads` with cells that are read without their mutex: CPython reads an attribute in one operation."""

    def cell(self, value: T, name: str = "", *, kind: str = "", owner: object = None) -> Cell[T]:
        """As `Host.cell`."""
        return _ReadAtOnce(value)


class Pulled:
    """`seriatim.queue.PullQueue`: a `get` is one attempt of the channel's consumer."""

    name = "seriatim.queue.PullQueue"
    can = ("publish", "get", "ack", "nack", "reject", "open", "drop")

    host: type[Threads] = Threads

    def __init__(self) -> None:
        self._queue = PullQueue(self.host())
        self._consumers: dict[int, Consumer] = {}
        self._held: dict[tuple[int, int], QueueEntry] = {}
        self._tags = count(1)

    def open(self, ch: int) -> None:
        """A channel, and its consumer."""
        self._consumers[ch] = self._queue.subscribe(f"c{ch}", self)

    def publish(self, q: str, m: str) -> None:
        """Enqueue a message."""
        self._queue.enqueue(Message(m))

    def get(self, ch: int, q: str) -> tuple[str, int] | None:
        """Take the next message, if there is one."""
        entry = self._queue.deliver_single_message(self._consumers[ch])
        if entry is None:
            return None
        tag = next(self._tags)
        self._held[ch, tag] = entry
        return entry.message.id, tag

    def ack(self, ch: int, dtag: int) -> None:
        """Delete what the channel got."""
        self._queue.dequeue(self._held.pop((ch, dtag)), self._consumers[ch])

    def nack(self, ch: int, dtag: int, requeue: bool = True) -> None:
        """Make it available again in its place, or delete it."""
        settle = self._queue.release if requeue else self._queue.dequeue
        settle(self._held.pop((ch, dtag)), self._consumers[ch])

    reject = nack

    def notify_work(self, consumer: Consumer) -> None:
        """A client asks when it likes."""

    def send(self, consumer: Consumer, entry: QueueEntry) -> None:
        """`get` has it already."""


class PulledByAtomicReads(Pulled):
    """The same with fewer schedules."""

    host = AtomicReads
