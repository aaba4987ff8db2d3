"""What the programs over the queue have in common: consumers on threads, jobs on threads, and the end.

The types are those of `seriatim.queue`, the code is that of the module under test, which may be a mutant.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import seriatim.queue as reference
from seriatim_models.explorer import World


class Inbox:
    """A client: keeps what it was sent, and lets a thread wait until it is woken."""

    def __init__(self, world: World, name: str) -> None:
        self.wake = world.semaphore(0, name=f"{name}.wake")
        self.sent: list[reference.QueueEntry] = []

    def notify_work(self, consumer: reference.Consumer) -> None:
        self.wake.release()

    def send(self, consumer: reference.Consumer, entry: reference.QueueEntry) -> None:
        self.sent.append(entry)


class Scene:
    """A world with queues in it. At its end each queue's state is recorded, for the checks at quiescence."""

    def __init__(self, world: World, lib: ModuleType) -> None:
        self.world = world
        self.host = world.host
        self.lib = lib
        self.spawn = world.spawn
        self._queues: list[reference.Queue] = []
        self._now = 0
        world.at_end(self._end)

    # ---- queues

    def pull(self, name: str = "q", levels: int = 1) -> reference.PullQueue:
        queue: reference.PullQueue = self.lib.PullQueue(self.host, name, levels)
        self._queues.append(queue)
        return queue

    def push(self, levels: int = 1) -> tuple[reference.PushQueue, Callable[[], None]]:
        """A push queue, and what a thread must run to be its executor: each job that is submitted, in order."""
        jobs: list[Callable[[], None]] = []
        permits = self.world.semaphore(0, name="jobs")

        def submit(job: Callable[[], None]) -> None:
            jobs.append(job)
            permits.release()

        def executor() -> None:
            while True:
                permits.acquire()
                jobs.pop(0)()

        queue: reference.PushQueue = self.lib.PushQueue(self.host, submit, "q", levels)
        self._queues.append(queue)
        return queue, executor

    def message(
        self,
        id: str,
        *,
        priority: int = 4,
        key: str = "",
        group: str = "",
        immediate: bool = False,
        not_before: int = 0,
        expires: int = 0,
    ) -> reference.Message:
        message: reference.Message = self.lib.Message(
            id, priority, key, group, immediate, not_before, expires
        )
        return message

    # ---- consumers of a pull queue

    def subscribe(
        self,
        queue: reference.Queue,
        name: str,
        *,
        acquires: bool = True,
        priority: int = 0,
        keys: frozenset[str] | None = None,
        credit: int | None = None,
        exclusive: bool = False,
    ) -> tuple[reference.Consumer, Inbox]:
        inbox = Inbox(self.world, name)
        consumer = queue.subscribe(
            name,
            inbox,
            acquires=acquires,
            priority=priority,
            keys=keys,
            credit=credit,
            exclusive=exclusive,
        )
        return consumer, inbox

    def taker(
        self, queue: reference.PullQueue, name: str, *, credit: int | None = None
    ) -> reference.Consumer:
        """A consumer that is not to be woken; a thread takes for it by `attempt`."""
        consumer, _ = self.subscribe(queue, name, credit=credit)
        queue.set_notify_work_desired(consumer, False)
        return consumer

    def serve(
        self,
        consumer: reference.Consumer,
        inbox: Inbox,
        each: Callable[[reference.QueueEntry], None] | None = None,
        *,
        grant: int = 0,
        first: Callable[[], object] | None = None,
    ) -> None:
        """A consumer's IO thread: it waits to be woken and then pulls until there is nothing, for ever.

        `each` says what the client does with an entry, on the same thread; by default it keeps it.
        The thread begins by granting the consumer `grant` messages (one that was subscribed without credit
        has not looked at the queue before that), or by whatever `first` does.
        """
        queue = consumer.queue
        assert hasattr(queue, "deliver_single_message")

        def loop() -> None:
            if grant:
                queue.grant(consumer, grant)
            if first is not None:
                first()
            while True:
                inbox.wake.acquire()
                drain(queue, consumer, each)

        self.world.spawn(loop, name=consumer.name, daemon=True)

    # ---- time

    def pass_time(self, by: int) -> None:
        """The clock goes on, and the history says so."""
        self.world.advance(by)
        self._now += by
        self.host.record("clock", now=self._now)

    def clock_starts(self) -> None:
        self.host.record("clock", now=0)

    def _end(self) -> None:
        for queue in self._queues:
            self.host.record("snapshot", **queue.snapshot())


def drain(
    queue: reference.Queue,
    consumer: reference.Consumer,
    each: Callable[[reference.QueueEntry], None] | None = None,
) -> None:
    """Pull until there is nothing more."""
    pull = queue.deliver_single_message  # type: ignore[attr-defined]  # callers hand in a PullQueue, perhaps a mutant's
    while (entry := pull(consumer)) is not None:
        if each is not None:
            each(entry)


def done(
    queue: reference.Queue, consumer: reference.Consumer
) -> Callable[[reference.QueueEntry], None]:
    """A client that is done at once with every entry it gets."""

    def each(entry: reference.QueueEntry) -> None:
        queue.dequeue(entry, consumer)

    return each


def got(entry: reference.QueueEntry | None) -> reference.QueueEntry:
    """What a program's set-up certainly was given."""
    assert entry is not None, "the set-up of this program is wrong: nothing was delivered"
    return entry
