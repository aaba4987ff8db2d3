"""The drawn systems with one fault each, and which property reports it in how many histories.

``python -m seriatim_workshop.right.faults --table spec/RECALL.md`` draws histories for each fault, counts those in
which it happened at all, and of these the ones in which a property is violated. The fault happens now and then, each
second or third time that it could; the rest of the system is as right as `seriatim_workshop.right` draws it.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from seriatim_models.files import write_whole
from seriatim_models.history.event import Event
from seriatim_models.properties.base import Verdict
from seriatim_workshop.right.broker import (
    DrawnBroker,
    DrawnChannel,
    DrawnConsumer,
    DrawnHolding,
    DrawnMessage,
    DrawnQueue,
    RefusedCall,
)
from seriatim_workshop.right.drawing import AnyMeaning, DrawnPlay, draw_broker
from seriatim_workshop.right.judging import completed, kept
from seriatim_workshop.right.logs import (
    DrawnLog,
    DrawnMember,
    DrawnPartition,
    LogRecord,
    draw_log,
)
from seriatim_workshop.right.needed import needed_rows
from seriatim_workshop.right.workers import DrawnWorker, DrawnWorkers, QueueRow, draw_workers


class Mishap:
    """When a fault happens, and how often it did."""

    happened = 0

    def now(self, one_in: int = 2) -> bool:
        """Whether it happens this time."""
        if not hasattr(self, "_faults"):
            self._faults = random.Random(f"fault {self.meaning.seed}")  # type: ignore[attr-defined]  # of the system
        if self._faults.randrange(one_in):
            return False
        self.happened += 1
        return True


class LosesPublishes(Mishap, DrawnBroker):
    """A message is confirmed and forgotten."""

    def publish(self, q: str, message: DrawnMessage, **fields: Any) -> None:
        """A message is enqueued, or not."""
        if not self.now():
            super().publish(q, message, **fields)
        else:
            self.exact("publish", m=message.m, q=q, key=message.key, **fields)


class LosesRequeued(Mishap, DrawnBroker):
    """What goes back is lost: by nack, recover, or the end of its channel."""

    def back(self, channel: DrawnChannel, tag: int) -> None:
        """What is held goes back, or is gone."""
        if self.now():
            self.release(channel, tag)
        else:
            super().back(channel, tag)


class EnqueuesTwice(Mishap, DrawnBroker):
    """A message is in its queue twice."""

    def publish(self, q: str, message: DrawnMessage, **fields: Any) -> None:
        """A message is enqueued, perhaps twice."""
        super().publish(q, message, **fields)
        if self.now():
            self.queues[q].last(
                DrawnMessage(message.m, message.prio, message.key, message.pub, message.pseq)
            )


class Invents(Mishap, DrawnBroker):
    """A message is there that nobody sent."""

    def publish(self, q: str, message: DrawnMessage, **fields: Any) -> None:
        """A message is enqueued, and perhaps another one."""
        super().publish(q, message, **fields)
        if self.now():
            self.queues[q].last(
                DrawnMessage(f"{message.m}?", message.prio, message.key, "nobody", message.pseq)
            )


class ComesBack(Mishap, DrawnBroker):
    """What was settled for good is there again."""

    def done(self, held: DrawnHolding) -> None:
        """A message leaves its queue, or not."""
        if self.now():
            held.q.last(held.message)
        super().done(held)


class Reorders(Mishap, DrawnBroker):
    """A message overtakes others when it is enqueued."""

    def publish(self, q: str, message: DrawnMessage, **fields: Any) -> None:
        """A message is enqueued, perhaps before all others."""
        queue = self.queues[q]
        before = len(queue.ready)
        super().publish(q, message, **fields)
        if before and self.now():
            queue.first_place -= 1
            message.place = queue.first_place
            queue.ready.sort(key=lambda x: (-x.prio, x.place))


class RequeuesElsewhere(Mishap, DrawnBroker):
    """What goes back to its place goes to the tail."""

    def back(self, channel: DrawnChannel, tag: int) -> None:
        """What is held goes back, perhaps behind all others."""
        message, queue = channel.held[tag].message, channel.held[tag].q
        if len(queue.ready) > 0 and self.now():
            queue.next_place += 1
            message.place = queue.next_place
        super().back(channel, tag)


class RequeuesToPlace(Mishap, DrawnBroker):
    """What a queue declares to requeue to its tail goes back to its place."""

    def back(self, channel: DrawnChannel, tag: int) -> None:
        """What is held goes to the tail, or not."""
        queue = channel.held[tag].q
        if len(queue.ready) > 0 and self.now():
            message = self.release(channel, tag).message
            queue.put(message)
            self.grows_old(queue, message)
        else:
            super().back(channel, tag)


class ForgetsFlag(Mishap, DrawnBroker):
    """What comes again is not marked."""

    def flag(self, message: DrawnMessage) -> bool:
        """The flag, or none."""
        return message.given > 0 and not self.now()


class MarksNew(Mishap, DrawnBroker):
    """What is new is marked as redelivered."""

    def flag(self, message: DrawnMessage) -> bool:
        """The flag, perhaps a wrong one."""
        return message.given > 0 or self.now()


class Overruns(Mishap, DrawnBroker):
    """A limit is not heeded."""

    def may_have(self, consumer: DrawnConsumer, message: DrawnMessage) -> bool:
        """Whether a consumer may be given a message, by its limit or in spite of it."""
        if super().may_have(consumer, message):
            return True
        return self.group_free(consumer.q, message, consumer) and self.now(8)


class WrongQueue(Mishap, DrawnBroker):
    """A message goes to another queue than it was published to."""

    def publish(self, q: str, message: DrawnMessage, **fields: Any) -> None:
        """A message is enqueued somewhere."""
        other = random.Random(message.m).choice(sorted(self.queues))
        if other != q and self.now(1):
            self.exact("publish", m=message.m, q=q, key=message.key, **fields)
            self.queues[other].last(message)
            self.kick(self.queues[other])
        else:
            super().publish(q, message, **fields)


class WrongGroup(Mishap, DrawnBroker):
    """Messages of one group are with two consumers."""

    def group_free(self, queue: DrawnQueue, message: DrawnMessage, by: object) -> bool:
        """Whether a group is free, or is taken to be."""
        if super().group_free(queue, message, by):
            return True
        owner = queue.groups.get(message.key or "")
        return owner is not None and self.now(4)


class GivesHeld(Mishap, DrawnBroker):
    """A message is given to a second consumer while the first has it."""

    def acquire(
        self,
        queue: DrawnQueue,
        message: DrawnMessage,
        channel: DrawnChannel,
        consumer: DrawnConsumer | None,
        autoack: bool,
    ) -> dict[str, Any]:
        """Hand a message out, and perhaps leave it where it is."""
        content = super().acquire(queue, message, channel, consumer, autoack)
        if not autoack and message.key is None and self.now(3):
            queue.put(message)
            self.kick(queue)
        return content


class NotAlone(Mishap, DrawnBroker):
    """Of single active consumers another one is given messages."""

    def active(self, queue: DrawnQueue) -> list[DrawnConsumer]:
        """Who may be given messages."""
        return queue.consumers if len(queue.consumers) > 1 and self.now() else super().active(queue)


class LowFirst(Mishap, DrawnBroker):
    """The consumer of the lowest priority comes first."""

    def foremost(self, ready: list[DrawnConsumer]) -> list[DrawnConsumer]:
        """Who comes first."""
        low = min(c.rank for c in ready)
        if low < max(c.rank for c in ready) and self.now():
            return [c for c in ready if c.rank == low]
        return super().foremost(ready)


class WakesNobody(Mishap, DrawnBroker):
    """What can be handed out is not."""

    def kick(self, queue: DrawnQueue) -> None:
        """What a queue can hand out is handed out, or not."""
        if queue.consumers and queue.ready and self.now(3):
            return
        super().kick(queue)


class RepeatsTags(Mishap, DrawnBroker):
    """A delivery tag is left out."""

    def tag_after(self, tag: int) -> int:
        """The next tag, or the one after it."""
        return tag + 2 if self.now(4) else tag + 1


class AfterCancel(Mishap, DrawnBroker):
    """A cancelled consumer is given messages."""

    def cancel(self, channel: DrawnChannel, ctag: str) -> None:
        """A consumer is no more, or seems so."""
        consumer = channel.consumers.get(ctag)
        super().cancel(channel, ctag)
        if consumer and self.now(1):
            consumer.q.consumers.append(consumer)

    def close(self, channel: DrawnChannel) -> None:
        """A channel ends, and all its consumers."""
        super().close(channel)
        for queue in self.queues.values():
            queue.consumers[:] = [c for c in queue.consumers if c.channel is not channel]


class SettlesAll(Mishap, DrawnBroker):
    """A command for several settles all that its channel holds."""

    def settled_by(self, channel: DrawnChannel, dtag: int, multiple: bool) -> list[int]:
        """The tags that a command settles, or more."""
        tags = super().settled_by(channel, dtag, multiple)
        return (
            sorted(channel.held)
            if multiple and len(channel.held) > len(tags) and self.now(1)
            else tags
        )


class SettlesOne(Mishap, DrawnBroker):
    """A command for several settles one."""

    def settled_by(self, channel: DrawnChannel, dtag: int, multiple: bool) -> list[int]:
        """The tags that a command settles, or one of them."""
        tags = super().settled_by(channel, dtag, multiple)
        return tags[-1:] if len(tags) > 1 and self.now(1) else tags


class ConfirmsTwice(Mishap, DrawnBroker):
    """A publish is confirmed twice."""

    def answers(self) -> int:
        """How often a publish is confirmed."""
        return 2 if self.now() else 1


class IgnoresPriority(Mishap, DrawnBroker):
    """Messages of low priority come first."""

    def publish(self, q: str, message: DrawnMessage, **fields: Any) -> None:
        """A message is enqueued, perhaps as if its priority were the lowest."""
        message.forgotten = message.prio > 0 and self.now()
        super().publish(q, message, **fields)


class AcceptsSecond(Mishap, DrawnBroker):
    """A second consumer is accepted beside an exclusive one, or an exclusive one beside others."""

    def seat(self, consumer: DrawnConsumer) -> None:
        """Accept a consumer that ought to be refused, or refuse it."""
        try:
            super().seat(consumer)
        except RefusedCall:
            if not self.now():
                raise


class GivesOwn(Mishap, DrawnBroker):
    """A no-local consumer is given what its own connection sent."""

    def may_have(self, consumer: DrawnConsumer, message: DrawnMessage) -> bool:
        """Whether a consumer may be given a message, also if that is its own."""
        if not consumer.nolocal or message.conn != consumer.channel.link.name:
            return super().may_have(consumer, message)
        consumer.nolocal = False
        may = super().may_have(consumer, message)
        consumer.nolocal = True
        return may and self.now()


class KeepsRefused(Mishap, DrawnBroker):
    """A publish is refused, and its message is in the queue."""

    def refuse(self, q: str, message: DrawnMessage) -> None:
        """A refused message is kept, or not."""
        if self.now():
            self.queues[q].last(message)
            self.kick(self.queues[q])


class DropsYoung(Mishap, DrawnBroker):
    """A message of a queue with a time to live is dropped before its time."""

    def grows_old(self, queue: DrawnQueue, message: DrawnMessage) -> None:
        """A message waits as long as it may, or not at all."""
        if self.meaning.ttl and message in queue.ready and self.now(3):
            queue.ready.remove(message)
        else:
            super().grows_old(queue, message)


class GivesUncommitted(Mishap, DrawnBroker):
    """What is published in a transaction is handed out before that is committed."""

    def enlist(self, channel: DrawnChannel, ev: str, do: Callable[[], object]) -> None:
        """A publish takes effect, or waits."""
        if ev == "publish" and self.now():
            do()
        else:
            super().enlist(channel, ev, do)


class LosesCommitted(Mishap, DrawnBroker):
    """A transaction is committed, and a message of it is lost."""

    def commit(self, channel: DrawnChannel) -> None:
        """All that was sent takes effect, or all but a publish."""
        publishes = [step for step in channel.pending if step[0] == "publish"]
        if publishes and self.now():
            channel.pending.remove(publishes[0])
        super().commit(channel)


class KeepsRolledBackPublishes(Mishap, DrawnBroker):
    """A transaction is taken back, and a message of it stays."""

    def rollback(self, channel: DrawnChannel) -> None:
        """Nothing that was sent takes effect, but a publish."""
        keep(self, channel, lambda ev: ev == "publish")
        super().rollback(channel)


class KeepsRolledBackSettlements(Mishap, DrawnBroker):
    """A transaction is taken back, and what it settled stays settled."""

    def rollback(self, channel: DrawnChannel) -> None:
        """Nothing that was sent takes effect, but settlements."""
        keep(self, channel, lambda ev: ev != "publish")
        super().rollback(channel)


def keep(broker: Mishap, channel: DrawnChannel, which: Callable[[str], bool]) -> None:
    """Let some of what is taken back take effect, perhaps."""
    steps = [do for ev, do in channel.pending if which(ev)]
    if steps and broker.now():
        for do in steps:
            do()


# logs


class SkipsPositions(Mishap, DrawnLog):
    """A reader is not given a position."""

    def readable(self, partition: DrawnPartition, by: DrawnMember, start: int) -> list[LogRecord]:
        """What a member may be given, less one."""
        rest = super().readable(partition, by, start)
        return rest[1:] if len(rest) > 1 and self.now(4) else rest


class RepeatsPositions(Mishap, DrawnLog):
    """A reader is given once more what it had."""

    def readable(self, partition: DrawnPartition, by: DrawnMember, start: int) -> list[LogRecord]:
        """What a member may be given, and something before it."""
        earlier = [r for r in partition.records if r.pos < start]
        rest = super().readable(partition, by, start)
        return [*earlier[-1:], *rest] if earlier and by.last and self.now(4) else rest


class SwapsPositions(Mishap, DrawnLog):
    """A reader is given two positions the wrong way round."""

    def readable(self, partition: DrawnPartition, by: DrawnMember, start: int) -> list[LogRecord]:
        """What a member may be given, in another order."""
        rest = super().readable(partition, by, start)
        return [rest[1], rest[0], *rest[2:]] if len(rest) > 1 and self.now(4) else rest


class LosesCommits(Mishap, DrawnLog):
    """A commit is answered and forgotten."""

    def store(self, partition: DrawnPartition, group: str, to: int) -> None:
        """A commit takes effect, or not."""
        if partition.committed.get(group) != to and self.now():
            return
        super().store(partition, group, to)


class CommitsTooFar(Mishap, DrawnLog):
    """A commit stores a position that is too high."""

    def store(self, partition: DrawnPartition, group: str, to: int) -> None:
        """A commit takes effect, two positions further."""
        super().store(partition, group, to + 2 if to + 2 <= partition.end and self.now() else to)


class InventsRecords(Mishap, DrawnLog):
    """A log has a message that nobody wrote."""

    def append(self, number: int, m: str, fields: dict[str, Any]) -> int:
        """A message gets its position, and perhaps another one."""
        pos = super().append(number, m, fields)
        if self.now(4):
            partition = self.parts[number]
            partition.records.append(LogRecord(partition.end, f"{m}?", {}))
            partition.end += 1
        return pos


class WrongPartition(Mishap, DrawnLog):
    """Readers of one partition are given what another one has."""

    def readable(self, partition: DrawnPartition, by: DrawnMember, start: int) -> list[LogRecord]:
        """What a member may be given, of any partition."""
        other = self.parts[(partition.number + 1) % len(self.parts)]
        return super().readable(
            other if other is not partition and self.now(4) else partition, by, start
        )


# queues without channels


class LosesRows(Mishap, DrawnWorkers):
    """A message is confirmed and forgotten."""

    def put(self, row: QueueRow) -> None:
        """A message is enqueued, or not."""
        if not self.now(4):
            super().put(row)


class LastFirst(Mishap, DrawnWorkers):
    """The latest message is handed out."""

    def choice(self, by: DrawnWorker) -> QueueRow | None:
        """Which message is next."""
        row = super().choice(by)
        free = [r for r in self.rows if not r.by and row and r.key == row.key]
        return free[-1] if len(free) > 1 and self.now() else row


class GivesTwice(Mishap, DrawnWorkers):
    """What one worker has is given to another one."""

    def choice(self, by: DrawnWorker) -> QueueRow | None:
        """Which message is next, of those that are not free either."""
        held = [r for r in self.rows if r.by]
        return held[0] if held and self.now(4) else super().choice(by)


class TakesNothing(Mishap, DrawnWorkers):
    """A poll leaves what it returns."""

    def take(self, by: DrawnWorker) -> QueueRow | None:
        """Hand a message out, and keep it."""
        row = super().take(by)
        if row and row not in self.rows and self.now(4):
            row.by = None
            self.rows.insert(0, row)
        return row


class SeesNothing(Mishap, DrawnWorkers):
    """A poll comes back empty although messages are there."""

    def take(self, by: DrawnWorker) -> QueueRow | None:
        """Hand a message out, or say that there is none."""
        free = any(not r.by for r in self.rows)
        return None if free and self.now() else super().take(by)


class AcksNothing(Mishap, DrawnWorkers):
    """An ack is confirmed, and the message comes back."""

    def settle(self, by: DrawnWorker, row: QueueRow, given: int, ev: str) -> bool:
        """An ack takes effect, or not."""
        done = super().settle(by, row, given, ev)
        if done and ev == "ack" and self.now(4):
            self.rows.insert(0, row)
        return done


class InventsRows(Mishap, DrawnWorkers):
    """A message is there that nobody sent."""

    def put(self, row: QueueRow) -> None:
        """A message is enqueued, and perhaps another one."""
        super().put(row)
        if self.now(4):
            super().put(QueueRow(f"{row.m}?", row.key, {}))


class PlantedFault(NamedTuple):
    """One fault: the system that has it, what it needs to show at all, and why it is not always seen."""

    kind: type[Mishap]
    setting: dict[str, object]
    why: str = ""

    @property
    def name(self) -> str:
        """Its name, in small letters."""
        words = "".join(f"-{c.lower()}" if c.isupper() else c for c in self.kind.__name__)
        return words.removeprefix("-")


NO_DRAIN = "definite only where a queue is seen empty with every channel's end confirmed; most histories just stop"
FAULTS: tuple[PlantedFault, ...] = (
    PlantedFault(LosesPublishes, {"confirms": True}, NO_DRAIN),
    PlantedFault(LosesRequeued, {}, NO_DRAIN),
    PlantedFault(EnqueuesTwice, {"twice": False}, "two copies look like a requeue after an end that nobody recorded"),
    PlantedFault(Invents, {"dead": False}, "only what is handed out is seen"),
    PlantedFault(ComesBack, {"dead": False}, "an ack certainly took effect if its channel answers a later call"),
    PlantedFault(Reorders, {"levels": 1, "dead": False, "flags": True}, "neither first nor sequence may be known"),
    PlantedFault(RequeuesElsewhere, {"requeue": "place", "dead": False}, "nobody knows when a nack took effect"),
    PlantedFault(
        RequeuesToPlace, {"requeue": "tail", "declares_end": True, "lvl": "broker", "dead": False, "ttl": 0},
        "a place matters only beside another message, and what the end of a channel brings back has none",
    ),
    PlantedFault(ForgetsFlag, {"flags": True}, "which delivery was the first is open if the holder may have ended"),
    PlantedFault(MarksNew, {"flags": True}, "any consumer that may have ended unseen may have had it"),
    PlantedFault(Overruns, {"leases": 0}, "a limit binds only while nothing that frees credit may be under way"),
    PlantedFault(WrongQueue, {"queues": 2}, "P1 asks whether anybody sent a message, not where to"),
    PlantedFault(WrongGroup, {"groups": 2}, "the first consumer may have ended, or settled what it had not seen"),
    PlantedFault(GivesHeld, {"leases": 0, "groups": 0}, "the first holder may have ended"),
    PlantedFault(NotAlone, {"sole": True}, "the active one may have ended"),
    PlantedFault(LowFirst, {"ranks": True, "leases": 0}, "ready is known only of a consumer that answers a later call"),
    PlantedFault(WakesNobody, {"confirms": True}, "the next command wakes the queue again, and only rest is definite"),
    PlantedFault(RepeatsTags, {}, "a channel's last deliveries may not be seen"),
    PlantedFault(AfterCancel, {}, "only a consumer that is cancelled while messages come"),
    PlantedFault(SettlesAll, {"sweeps": True}, "seen as a loss, or when a later settlement of them fails"),
    PlantedFault(SettlesOne, {"sweeps": True}, "seen when what was settled comes again"),
    PlantedFault(ConfirmsTwice, {"confirms": True, "lvl": "api"}, "the second may be lost with its connection"),
    PlantedFault(IgnoresPriority, {"levels": 3, "groups": 0, "dead": False}, "messages seldom wait for each other"),
    PlantedFault(AcceptsSecond, {"alone": True, "sole": False}, "the first consumer may have ended"),
    PlantedFault(GivesOwn, {"local": True}, "another of that name may have sent it, before the consumer was there"),
    PlantedFault(KeepsRefused, {"refuses": True, "confirms": True, "twice": False}, "the refusal may not be seen"),
    PlantedFault(DropsYoung, {"ttl": 25_000_000}, "a queue that may drop messages is not asked for them"),
    PlantedFault(GivesUncommitted, {"tx": True, "twice": False}, "a message may be committed before it is seen"),
    PlantedFault(LosesCommitted, {"tx": True}, "definite only where all channels' ends are confirmed"),
    PlantedFault(KeepsRolledBackPublishes, {"tx": True, "twice": False}, "only what is handed out is seen"),
    PlantedFault(KeepsRolledBackSettlements, {"tx": True}, "as for what is lost; what is settled again looks the same"),
    PlantedFault(SkipsPositions, {"compacts": False}, "the publish of that position must be known, and who reads"),
    PlantedFault(RepeatsPositions, {}, "a member that has just begun may go back"),
    PlantedFault(SwapsPositions, {}, "a member that has just begun may go back"),
    PlantedFault(
        LosesCommits, {"members": 2},
        "seen only by who begins to read after the commit was answered, of the same group (`ctag`)",
    ),
    PlantedFault(
        CommitsTooFar, {"members": 2, "compacts": False},
        "as for a lost commit; by one position only where a commit says what it means (`committed`)",
    ),
    PlantedFault(InventsRecords, {}, "only what is read is seen"),
    PlantedFault(WrongPartition, {"parts": 2}, "its positions are not compared with what was published where"),
    PlantedFault(LosesRows, {"kind": "fifo"}, "a poll of unknown outcome may have taken it"),
    PlantedFault(LastFirst, {"kind": "fifo"}, "publishes or polls that overlap have either order"),
    PlantedFault(TakesNothing, {"kind": "fifo"}, "only if the value is taken again"),
    PlantedFault(SeesNothing, {"kind": "fifo", "waits": False}, "a poll of unknown outcome may have taken it"),
    PlantedFault(GivesTwice, {"kind": "lock"}, "the first holder may have ended"),
    PlantedFault(AcksNothing, {"kind": "lock"}, "no answer proves that the ack's session was there"),
    PlantedFault(InventsRows, {"kind": "lock"}, "only what is handed out is seen"),
)  # fmt: skip


@dataclass
class FaultCount:
    """Of one fault: in how many histories it happened, was reported, and by which properties."""

    fault: PlantedFault
    happened: int = 0
    reported: int = 0
    by: Counter[str] = field(default_factory=Counter)

    def row(self) -> str:
        """Its row of the table."""
        most = sorted(self.by.items(), key=lambda found: (-found[1], found[0]))
        shares = ", ".join(f"{p} {100 * n / self.happened:.0f}" for p, n in most if n)
        total = f"{100 * self.reported / self.happened:.0f}" if self.happened else ""
        what = (self.fault.kind.__doc__ or "").strip().rstrip(".")
        what = what[0].lower() + what[1:]
        return f"| {self.fault.name} | {what} | {self.happened} | {total} | {shares} | {self.fault.why} |"


def faulty(fault: PlantedFault, seed: int) -> tuple[AnyMeaning, list[Event], int]:
    """A system drawn with a fault: its meaning, its history, and how often the fault happened."""
    kind = fault.kind
    if issubclass(kind, DrawnLog):
        log = kind(draw_log(seed)._replace(**fault.setting))  # type: ignore[arg-type]  # fields by name
        return log.meaning, log.events(), log.happened
    if issubclass(kind, DrawnWorkers):
        workers = kind(draw_workers(seed)._replace(**fault.setting))  # type: ignore[arg-type]  # fields by name
        return workers.meaning, workers.events(), workers.happened
    assert issubclass(kind, DrawnBroker)
    play = DrawnPlay(draw_broker(seed)._replace(**fault.setting), kind)  # type: ignore[arg-type]  # fields by name
    events = play.events()
    broker = play.world.broker
    assert isinstance(broker, Mishap)
    return play.world.meaning, events, broker.happened


def count(fault: PlantedFault, seeds: range) -> FaultCount:
    """Judge the histories of a fault."""
    out = FaultCount(fault)
    for seed in seeds:
        meaning, events, happened = faulty(fault, seed)
        if not happened:
            continue
        out.happened += 1
        judged = completed(events)
        ids = {p.id for p in kept(meaning) if p.check(judged).verdict is Verdict.VIOLATED}
        out.reported += bool(ids)
        out.by.update(ids)
    return out


PAGE = """# Faults of the simulated systems

Made by `python -m seriatim_workshop.right.faults --n {n} --table spec/RECALL.md`: systems as `make right-systems` draws
them (brokers, logs, queues without channels; recorded above a client library, on the wire, inside), one fault each.
Seeds {first} to {last}. A history counts if the fault happened in it at all; histories are short (2 to 20 messages a
publisher), and are judged by the profiles that the right system keeps. Numbers are percent of the histories that count.
What no history of a fault shows as a violation is inconclusive or a case of something else; the last column says why.
`spec/PLANTED.md` has what `conform` finds when it chooses the commands itself.

Of {faults} faults {found} are reported in at least one history, {half} in at least half of them.

| fault | what is wrong | histories | reported | by property | not reported because |
|---|---|---|---|---|---|
{rows}

## What has to be recorded

Thirteen systems were written from their documentation by somebody else, with faults each. Of those faults these were
shown by none or one of 300 histories. Each was there, and is reported as soon as the recording shows it; of each the
smallest history is in `seriatim_workshop.right.needed`, and is judged anew whenever this page is made.

| fault | planted in | property | as often recorded | what has to be recorded | then |
|---|---|---|---|---|---|
{needed}

Others take a profile (`--profile`) that promises otherwise, for documented systems allow what they do:
beanstalkd that serves the newest job first (P4, P5); one whose deleted jobs come again, a table, Pub/Sub and JetStream
that forget an ack (P1: at least once); Artemis that heeds no window (P7, of which JMS says nothing); Pub/Sub that lets
a message of a key overtake others (P5: a lease that ran out, or a lost answer, may have moved these behind).
A count of attempts that does not rise is no violation (JetStream: skip-count): it may be of failures alone.
A table that gives the rows of another queue is reported by nothing: that no exchange, divert or bridge leads from one
queue to the other is declared nowhere.
Nor is any other of these: what comes before the delay that a `nack` asked for, and more held by all workers of one
durable consumer together than it may have (JetStream: no-delay, overruns), because no field says either; and what is
given more often than its queue declares (`max_attempts`, ignores-max), which no property asks yet.
More load does not show what goes to the tail instead of its place: what was on its way overtakes rightly.
"""


def page(counts: list[FaultCount], seeds: range) -> str:
    """The page with the table."""
    return PAGE.format(
        n=len(seeds),
        first=seeds[0],
        last=seeds[-1],
        faults=len(counts),
        found=sum(c.reported > 0 for c in counts),
        half=sum(2 * c.reported >= c.happened > 0 for c in counts),
        rows="\n".join(c.row() for c in counts),
        needed=needed_rows(),
    )


def main(argv: list[str] | None = None) -> int:
    """Count, and write the page; returns 0."""
    parser = argparse.ArgumentParser(
        prog="python -m seriatim_workshop.right.faults", description=__doc__
    )
    parser.add_argument("--n", type=int, default=200, help="histories of each fault (default: 200)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--fault", help="only this one")
    parser.add_argument("--table", type=Path, help="where the page goes; else it is printed")
    args = parser.parse_args(argv)
    seeds = range(args.first, args.first + args.n)
    counts = []
    begun = time.monotonic()
    for fault in FAULTS:
        if args.fault in (None, fault.name):
            counts.append(count(fault, seeds))
            print(counts[-1].row(), file=sys.stderr, flush=True)
    print(f"{time.monotonic() - begun:.0f} s", file=sys.stderr)
    text = page(counts, seeds)
    if args.table:
        write_whole(args.table, text.encode())
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
