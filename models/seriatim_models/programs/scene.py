"""The scenes of the programs over the queue: a queue, its consumers and publishers on threads, and the end.

The types are those of the reference, the code is that of the module under test, which may be a mutant.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, TypedDict, Unpack

import seriatim.queue as reference
from seriatim import handover
from seriatim_models.explorer import World
from seriatim_models.programs.base import Scene
from seriatim_models.recording.queue import recorded, snapshot


class MessageFields(TypedDict, total=False):
    """What a message may have besides its id."""

    priority: int
    key: str
    group: str
    immediate: bool
    not_before: int
    expires: int


class Subscription(TypedDict, total=False):
    """The options of `Queue.subscribe`."""

    acquires: bool
    priority: int
    keys: frozenset[str] | None
    credit: int | None
    exclusive: bool


class Inbox:
    """A client: keeps what it was sent, and lets a thread wait until it is woken."""

    def __init__(self, world: World, name: str) -> None:
        self.wake = world.semaphore(0, name=f"{name}.wake")
        self.sent: list[reference.QueueEntry] = []

    def notify_work(self, consumer: reference.Consumer) -> None:
        """Wake the client's thread."""
        self.wake.release()

    def send(self, consumer: reference.Consumer, entry: reference.QueueEntry) -> None:
        """Keep the entry."""
        self.sent.append(entry)


class WaitsWhenWoken(Inbox):
    """A client that lets whoever wakes it wait until its own thread has done what it does then."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.done = world.semaphore(0, name=f"{name}.answer")

    def notify_work(self, consumer: reference.Consumer) -> None:
        """Wake the client's thread and wait for it."""
        super().notify_work(consumer)
        self.done.acquire()


class RecordedInbox(Inbox):
    """A client whose connection takes its time: writing an entry to it is a call that is recorded."""

    def __init__(self, scene: QueueScene, name: str) -> None:
        super().__init__(scene.world, name)
        self.host = scene.host

    def send(self, consumer: reference.Consumer, entry: reference.QueueEntry) -> None:
        """Write the entry."""
        self.host.record("send", ph="invoke", m=entry.message.id, sub=consumer.name)
        super().send(consumer, entry)
        self.host.record("send", ph="ok", m=entry.message.id, sub=consumer.name)


class QueueScene(Scene):
    """Queues whose state is recorded at the end, for the checks at quiescence."""

    def __init__(self, world: World, lib: ModuleType) -> None:
        super().__init__(world, lib)
        self.host = recorded(world.host)
        self.spawn = world.spawn
        self.queues: list[reference.Queue] = []
        self._now = 0
        world.at_end(self._end)

    def message(self, id: str, **fields: Unpack[MessageFields]) -> reference.Message:
        """Return a message of the module under test; its priority is 4 unless `fields` has another."""
        message: reference.Message = self.lib.Message(id, **{"priority": 4, **fields})
        return message

    def clock_starts(self) -> None:
        """Record that the clock shows 0."""
        self.host.record("clock", now=0)

    def pass_time(self, by: int) -> None:
        """Advance the clock and record it."""
        self.world.advance(by)
        self._now += by
        self.host.record("clock", now=self._now)

    def _end(self) -> None:
        for queue in self.queues:
            self.host.record("snapshot", **snapshot(queue))


class SingleQueueScene(QueueScene):
    """One queue `q` with its consumers and publishers."""

    queue: reference.Queue

    def enqueue(self, id: str, *more: str, **fields: Unpack[MessageFields]) -> reference.QueueEntry:
        """Enqueue messages on the calling thread, and return the entry of the last."""
        entry = self.queue.enqueue(self.message(id, **fields))
        return self.enqueue(*more, **fields) if more else entry

    def publish(self, *ids: str, by: str = "P", **fields: Unpack[MessageFields]) -> None:
        """Spawn a publisher, the thread `by`, that enqueues messages one after the other."""

        def publisher() -> None:
            self.enqueue(*ids, **fields)

        self.spawn(publisher, name=by)

    def subscribe(self, name: str, **options: Unpack[Subscription]) -> reference.Consumer:
        """Return a new consumer whose client is an `Inbox`."""
        return self.queue.subscribe(name, Inbox(self.world, name), **options)

    def housekeeping(self, after: int, *, daemon: bool = False) -> None:
        """Spawn one pass of housekeeping; the clock is advanced by `after` just before."""

        def housekeeping() -> None:
            self.pass_time(after)
            self.queue.check_message_status()

        self.spawn(housekeeping, name="housekeeping", daemon=daemon)


class PullScene(SingleQueueScene):
    """A queue that its consumers pull from."""

    queue: reference.PullQueue

    def __init__(self, world: World, lib: ModuleType, levels: int = 1) -> None:
        super().__init__(world, lib)
        self.queue = lib.PullQueue(self.host, "q", levels)
        self.queues.append(self.queue)

    def taker(self, name: str, *, credit: int | None = None) -> reference.Consumer:
        """Return a consumer that does not want to be woken; a thread takes for it by `attempt`."""
        consumer = self.subscribe(name, credit=credit)
        self.queue.set_notify_work_desired(consumer, False)
        return consumer

    def attempt(self, consumer: reference.Consumer) -> reference.QueueEntry | None:
        """Attempt one delivery to the consumer, and return the entry it was given, if any."""
        return self.queue.attempt(consumer, "pull")

    def take(self, consumer: reference.Consumer) -> reference.QueueEntry:
        """Return the entry that an attempt in the set-up gives the consumer; there must be one."""
        entry = self.attempt(consumer)
        assert entry is not None, "the set-up of this program is wrong: nothing was delivered"
        return entry

    def drain(self, consumer: reference.Consumer) -> None:
        """Pull until there is nothing more."""
        while self.queue.deliver_single_message(consumer) is not None:
            pass

    def pull_when_woken(
        self,
        consumer: reference.Consumer,
        each: Callable[[reference.QueueEntry], object] = lambda entry: None,
    ) -> None:
        """Wait to be woken, pull until there is nothing, and so on for ever; `each` is called with every entry."""
        inbox = consumer.target
        assert isinstance(inbox, Inbox)
        while True:
            inbox.wake.acquire()
            while (entry := self.queue.deliver_single_message(consumer)) is not None:
                each(entry)

    def serve(
        self,
        consumer: reference.Consumer,
        each: Callable[[reference.QueueEntry], object] = lambda entry: None,
        *,
        grant: int = 0,
        pull_first: bool = False,
        first: Callable[[], object] | None = None,
    ) -> None:
        """Spawn a consumer's IO thread, which pulls when it is woken.

        `each` is what the client does with an entry, on the same thread; by default it keeps it.
        The thread begins by granting the consumer `grant` messages (one that was subscribed without credit
        has not looked at the queue before that), by one pull, or by calling `first`.
        """

        def loop() -> None:
            if grant:
                self.queue.grant(consumer, grant)
            if pull_first:
                self.queue.deliver_single_message(consumer)
            if first is not None:
                first()
            self.pull_when_woken(consumer, each)

        self.spawn(loop, name=consumer.name, daemon=True)


class PushScene(SingleQueueScene):
    """A queue that pushes to its consumers, and the thread `job` that is its executor."""

    queue: reference.PushQueue

    def __init__(self, world: World, lib: ModuleType, executor: bool = True) -> None:
        super().__init__(world, lib)
        self._jobs: list[Callable[[], None]] = []
        self._permits = world.semaphore(0, name="jobs")

        def submit(job: Callable[[], None]) -> None:
            self._jobs.append(job)
            self._permits.release()

        self.queue = lib.PushQueue(self.host, submit, "q")
        self.queues.append(self.queue)
        if executor:
            self.spawn_executor()

    def spawn_executor(self) -> None:
        """Spawn the thread that runs the jobs that are submitted."""

        def run_jobs() -> None:
            while True:
                self.run_job()

        self.spawn(run_jobs, name="job", daemon=True)

    def run_job(self) -> None:
        """Wait for a job that was submitted, and run it on this thread."""
        self._permits.acquire()
        self._jobs.pop(0)()

    def give_up(self, id: str) -> None:
        """Spawn a publisher at its last act: its immediate message is linked and was offered in vain."""
        queue, message = self.queue, self.message(id, immediate=True)
        queue.depth.add(1)
        entry = queue.entries.add(message, self.lib.AVAILABLE)

        def publisher() -> None:
            self.host.record("enqueue", ph="invoke", q=queue.name, m=message.id, immediate=True)
            queue.undelivered(entry)
            self.host.record("enqueue", ph="ok", m=message.id, place=list(entry.place()))

        self.spawn(publisher, name="P")


class HandoverScene(QueueScene):
    """The queues `q1` and `q2`, and a connection; on it a session with one target that is woken for both."""

    def __init__(self, world: World, lib: ModuleType) -> None:
        super().__init__(world, lib)
        self.scheduler: handover.Scheduler = lib.Scheduler(self.host)
        self.sets: dict[str, handover.WorkSet[Any]] = {"scheduler": self.scheduler._ready}
        self.connection = self.new_connection("conn")
        self.session = self.new_session(self.connection, "session")
        self.target = self.new_target(self.session, "target")
        self.queues += [lib.PullQueue(self.host, name) for name in ("q1", "q2")]

    def new_connection(self, name: str) -> handover.Connection:
        """Return a connection that the same IO threads serve."""
        connection: handover.Connection = self.lib.Connection(self.scheduler, name)
        self.sets[name] = connection._sessions
        return connection

    def new_session(self, connection: handover.Connection, name: str) -> handover.Session:
        """Return a session of the connection."""
        session: handover.Session = self.lib.Session(connection, name)
        self.sets[name] = session._targets
        return session

    def new_target(self, session: handover.Session, name: str) -> handover.ConsumerTarget:
        """Return a target of the session; it has no consumer yet."""
        target: handover.ConsumerTarget = self.lib.ConsumerTarget(session, name)
        return target

    def _end(self) -> None:
        super()._end()
        waiting = {name: len(waits._waiting.get()) for name, waits in self.sets.items()}
        self.host.record("handover_rest", waiting=waiting)

    def two_for_each(self, *targets: handover.ConsumerTarget) -> None:
        """Give each target a consumer of a queue of its own, and that queue two messages."""
        for queue, target in zip(self.queues, targets, strict=True):
            target.consumers = [queue.subscribe(f"on-{queue.name}", target)]
            for n in range(2):
                queue.enqueue(self.message(f"{queue.name}.{n}"))

    def io_threads(self, *names: str) -> None:
        """Spawn threads that serve the connections."""

        def io_thread() -> None:
            while True:
                self.scheduler.run_one()

        for name in names:
            self.spawn(io_thread, name=name, daemon=True)
