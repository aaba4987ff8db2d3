"""The API calls of the queue: publishing, consuming, settling, time, and what the queue's own threads do.

`PULL`, `PUSH` and `HANDOVER` are the tables of a queue that its consumers pull from, of one that pushes, and of a pull
queue whose consumers are woken through connections that IO threads serve. See `seriatim_models.machines.calls`.

The rules of use that the reference asks for: what concerns a consumer's interest and credit happens on its own IO
thread; only `pause` may come from any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any

import msgspec

import seriatim.queue as reference
from seriatim import handover
from seriatim_models.machines.calls import Caller, CallStanding, call, calls_of, without_inside
from seriatim_models.machines.canonical import canonical
from seriatim_models.machines.stages import Stage
from seriatim_models.recording.queue import recorded, snapshot

CONSUMERS = 4
"""How many consumers there are at most at a time."""
DUE = 5
"""When delayed messages become available, and when those that expire have expired."""


class PlannedMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message of a generated program; its fields are the arguments of `enqueue`."""

    priority: int = 4
    key: str = ""
    group: str = ""
    special: str = ""
    """'', immediate, delayed or expiring."""


def consumers(harness: QueueHarness) -> Sequence[reference.Consumer]:
    """Return all consumers, those that were closed last."""
    return [*harness.consumers.values(), *harness.closed.values()]


def entries(harness: QueueHarness) -> Sequence[reference.QueueEntry]:
    """Return the entries that some consumer holds; if none is held, all that were ever enqueued."""
    every = list(harness.entries.values())
    return [e for e in every if e.state.get().holder] or every


def _room(harness: QueueHarness, **arguments: object) -> bool:
    return len(harness.consumers) < CONSUMERS


def _admitted(
    harness: QueueHarness, exclusive: bool, credit: int | None, **arguments: object
) -> CallStanding:
    beside = harness.exclusive or (exclusive and harness.consumers)
    refused = beside or (credit is not None and credit < 0)
    return CallStanding.REFUSED if refused else CallStanding.IN_CONTRACT


def _open(harness: QueueHarness, consumer: reference.Consumer) -> CallStanding:
    """`close` is final: from then on every call for the consumer is without effect."""
    known = consumer.name in harness.consumers
    return CallStanding.IN_CONTRACT if known else CallStanding.NO_OP


def _granted(harness: QueueHarness, consumer: reference.Consumer, messages: int) -> CallStanding:
    return CallStanding.REFUSED if messages < 1 else _open(harness, consumer)


def _resumed(harness: QueueHarness, consumer: reference.Consumer) -> CallStanding:
    """A consumer that is pulled for, and has no credit, is resumed by a grant only."""
    waits = harness.kind == "pull" and consumer.credit is not None and not consumer.credit.get()
    return CallStanding.NO_OP if waits else _open(harness, consumer)


def _by_holder(
    harness: QueueHarness, consumer: reference.Consumer, entry: reference.QueueEntry
) -> CallStanding:
    mine = entry.state.get().holder == consumer.name
    return CallStanding.IN_CONTRACT if mine else CallStanding.NO_OP


SETTLED = (CallStanding.IN_CONTRACT, CallStanding.NO_OP)


class QueueHarness:
    """A queue of the module `lib`, which may be a mutant, with its open consumers and all its entries."""

    kind = ""

    def __init__(
        self,
        lib: ModuleType,
        stage: Stage,
        target: Callable[[str], reference.Target],
        levels: int = 1,
    ) -> None:
        self.lib = lib
        self.stage = stage
        self.host = recorded(stage.host, stage.unrecorded)
        self.target = target
        """Returns the client's end of a consumer that is subscribed by that name."""
        self.entries: dict[str, reference.QueueEntry] = {}
        self.consumers: dict[str, reference.Consumer] = {}
        self.closed: dict[str, reference.Consumer] = {}
        """The consumers that were closed."""
        self.subscribed = 0
        self.exclusive = ""
        """Name of the exclusive consumer, if there is one."""
        self.queue: Any = self.make_queue(levels)

    def make_queue(self, levels: int) -> reference.Queue:
        """Return a new queue."""
        raise NotImplementedError

    def state(self, woken: Iterable[str], **others: object) -> str:
        """Return the canonical text of the queue, of what its clients know, and of what is left to be done.

        `woken` are the consumers that have to pull; of `others` the text is added. Only on one thread, when nothing
        moves.
        """
        return canonical(
            {
                "queue": self.queue,
                "entries": self.entries,
                "open": self.consumers,
                "closed": self.closed,
                "woken": sorted(woken),
                "jobs": len(getattr(self, "jobs", ())),
                "now": self.host.now(),
                **others,
            }
        )

    def logical_state(self, woken: Iterable[str]) -> dict[str, object]:
        """Return what calls can change, without nodes that are deleted and still linked.

        A call that is refused, or without effect, leaves it as it is, though it may unlink such nodes.
        """
        closed = {
            name: (c.wants_work.get(), c.credit and c.credit.get())
            for name, c in self.closed.items()
        }
        left = {"woken": sorted(woken), "jobs": len(getattr(self, "jobs", ()))}
        return {**snapshot(self.queue), "open": sorted(self.consumers), "closed": closed, **left}

    def record_rest(self) -> None:
        """Record the state of the queue, when nothing moves any more."""
        self.host.record("snapshot", **snapshot(self.queue))

    # ---- publishing

    @call(
        priority=tuple(range(10)),
        key=("", "", "x"),
        group=("", "", "g"),
        special=("", "", "", "immediate", "delayed", "expiring"),
        inside={},
    )
    def enqueue(
        self, priority: int, key: str, group: str, special: str, *, due: int = 5, id: str = ""
    ) -> reference.QueueEntry:
        """Enqueue a message. A delayed one becomes available at the time `due`, an expiring one has expired then."""
        id = id or f"m{len(self.entries) + 1}"
        message = self.lib.Message(
            id,
            priority,
            key,
            group,
            special == "immediate",
            due if special == "delayed" else 0,
            due - 1 if special == "expiring" else 0,
        )
        entry: reference.QueueEntry = self.queue.enqueue(message)
        self.entries[id] = entry
        return entry

    # ---- consumers

    @call(
        acquires=(True, True, True, False),
        priority=(0, 1, 2),
        keys=(None, None, None, frozenset(["x"])),
        credit=(None, None, 0, 1, 2, -1),
        exclusive=(False, False, False, True),
        enabled=_room,
        standing=_admitted,
        standings=(CallStanding.IN_CONTRACT, CallStanding.REFUSED),
        inside={},
    )
    def subscribe(
        self,
        acquires: bool,
        priority: int,
        keys: frozenset[str] | None,
        credit: int | None,
        exclusive: bool,
        *,
        name: str = "",
    ) -> reference.Consumer:
        """Subscribe a consumer; an exclusive one beside others, and others beside it, are refused (QueueMisuse)."""
        name = name or f"C{self.subscribed + 1}"
        consumer: reference.Consumer = self.queue.subscribe(
            name,
            self.target(name),
            acquires=acquires,
            priority=priority,
            keys=keys,
            credit=credit,
            exclusive=exclusive,
        )
        self.subscribed += 1
        self.consumers[name] = consumer
        if exclusive:
            self.exclusive = name
        return consumer

    @call(
        Caller.OWNER,
        consumer=consumers,
        messages=(1, 2, 0, -5),
        standing=_granted,
        standings=(*SETTLED, CallStanding.REFUSED),
        inside={},
    )
    def grant(self, consumer: reference.Consumer, messages: int) -> None:
        """Grant a consumer credit for more messages; less than one is refused (QueueMisuse)."""
        self.queue.grant(consumer, messages)

    @call(consumer=consumers, standing=_open, standings=SETTLED, inside={})
    def pause(self, consumer: reference.Consumer) -> None:
        """Say that a consumer does not want to be notified."""
        self.queue.set_notify_work_desired(consumer, False)

    @call(Caller.OWNER, consumer=consumers, standing=_resumed, standings=SETTLED, inside={})
    def resume(self, consumer: reference.Consumer) -> None:
        """Say that a consumer wants to be notified."""
        self.queue.set_notify_work_desired(consumer, True)

    @call(Caller.OWNER, consumer=consumers, standing=_open, standings=SETTLED, inside={})
    def close(self, consumer: reference.Consumer) -> None:
        """Close a consumer; what it holds is released."""
        self.consumers.pop(consumer.name, None)
        self.closed[consumer.name] = consumer
        self.queue.close(consumer)
        if self.exclusive == consumer.name:
            self.exclusive = ""

    # ---- settling

    @call(consumer=consumers, entry=entries, standing=_by_holder, standings=SETTLED, inside={})
    def release(self, consumer: reference.Consumer, entry: reference.QueueEntry) -> bool:
        """Release an entry, and return whether the consumer held it."""
        done: bool = self.queue.release(entry, consumer)
        return done

    @call(consumer=consumers, entry=entries, standing=_by_holder, standings=SETTLED, inside={})
    def dequeue(self, consumer: reference.Consumer, entry: reference.QueueEntry) -> bool:
        """Dequeue an entry, and return whether the consumer held it."""
        done: bool = self.queue.dequeue(entry, consumer)
        return done

    # ---- time

    @call(Caller.SYSTEM, by=(0, 1, 3, 3))
    def pass_time(self, by: int) -> None:
        """Advance the clock."""
        self.stage.pass_time(by)

    @call(Caller.SYSTEM)
    def check_message_status(self) -> None:
        """Do one pass of housekeeping."""
        self.queue.check_message_status()


class PullHarness(QueueHarness):
    """A queue that its consumers pull from."""

    kind = "pull"

    def make_queue(self, levels: int) -> reference.Queue:
        queue: reference.Queue = self.lib.PullQueue(self.host, "q", levels)
        return queue

    @call(Caller.OWNER, consumer=consumers, standing=_open, standings=SETTLED)
    def pull(self, consumer: reference.Consumer) -> reference.QueueEntry | None:
        """Pull one message for a consumer, and return its entry, if there was any."""
        entry: reference.QueueEntry | None = self.queue.deliver_single_message(consumer)
        return entry


class PushHarness(QueueHarness):
    """A queue that pushes: on enqueue, and by jobs that are submitted to an executor."""

    kind = "push"

    def __init__(
        self,
        lib: ModuleType,
        stage: Stage,
        target: Callable[[str], reference.Target],
        levels: int = 1,
        submitted: Callable[[], None] = lambda: None,
    ) -> None:
        self.jobs: list[Callable[[], None]] = []
        self.submitted = submitted
        """Called for each job that was submitted."""
        super().__init__(lib, stage, target, levels)

    def make_queue(self, levels: int) -> reference.Queue:
        def submit(job: Callable[[], None]) -> None:
            self.jobs.append(job)
            self.submitted()

        queue: reference.Queue = self.lib.PushQueue(self.host, submit, "q", levels)
        return queue

    @call(Caller.SYSTEM, consumer=consumers, standing=_open, standings=SETTLED)
    def attempt(self, consumer: reference.Consumer) -> reference.QueueEntry | None:
        """Attempt one delivery to a consumer that wants work, and return the entry it was given, if any."""
        entry: reference.QueueEntry | None = self.queue.deliver_to(consumer, "job")
        return entry

    @call(Caller.SYSTEM, enabled=lambda harness: bool(harness.jobs))
    def job(self) -> None:
        """Run the job that was submitted first."""
        self.jobs.pop(0)()


class HandoverHarness(PullHarness):
    """A pull queue whose consumers are woken through targets, in sessions of connections, which IO threads serve.

    There are four targets: two in one session, three on one connection, and one on another.
    """

    def __init__(
        self,
        lib: ModuleType,
        stage: Stage,
        target: Callable[[str], reference.Target],
        levels: int = 1,
    ) -> None:
        super().__init__(lib, stage, target, levels)
        self.scheduler: handover.Scheduler = lib.Scheduler(self.host)
        first, second = (lib.Connection(self.scheduler, f"conn{n}") for n in (1, 2))
        one, two, three = (
            lib.Session(connection, name)
            for connection, name in ((first, "s1"), (first, "s2"), (second, "s3"))
        )
        self.sessions = (one, one, two, three)
        """The session of each target."""

    @call(consumer=consumers)
    def notify_work(self, consumer: reference.Consumer) -> None:
        """Notify a consumer's target, as the queue does when there is work, or its client when a request came in."""
        consumer.target.notify_work(consumer)

    @call(Caller.SYSTEM)
    def run_one(self) -> None:
        """Serve the next connection that is ready; wait until there is one."""
        self.scheduler.run_one()


PULL = calls_of(PullHarness)
PUSH = without_inside(calls_of(PushHarness), "enqueue", "close")
"""A queue that pushes sends under the consumer's send lock, on any thread: a callback that enqueues, which delivers
there and then, or that closes its consumer would wait for itself, or two of them for each other."""
HANDOVER = calls_of(HandoverHarness)
