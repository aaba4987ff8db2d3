"""The hand-over of a `PullQueue`: from the thread that enqueues to the thread that sends.

Article "Consumer-Queue Interactions": a consumer that is woken notifies its target, the target its session, the session
its connection, and the connection is given to a pool of IO threads. An IO thread goes the same way down and takes the
messages. Each level keeps the set of those below it that have work (`WorkSet`), so each waits there at most once.
The rules that are named here are those of `seriatim.queue`.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from seriatim.host import Cell, Host
from seriatim.queue import Consumer, PullQueue, QueueEntry

W = TypeVar("W")


class WorkSet(Generic[W]):
    """Those that have work, each at most once, oldest first. Taking removes *before* the work is examined (rule 6)."""

    def __init__(self, host: Host, name: str) -> None:
        self.name = name
        self._waiting: Cell[tuple[W, ...]] = host.cell((), name, kind="work", owner=self)

    def add(self, item: W) -> bool:
        """Add an item; False if it was waiting already: then the thread that added it does what follows."""
        while True:
            waiting = self._waiting.get()
            if item in waiting:
                return False
            if self._waiting.compare_and_set(waiting, (*waiting, item)):
                return True

    def take(self) -> W | None:
        """Remove and return the oldest item; None if there is none."""
        while True:
            waiting = self._waiting.get()
            if not waiting:
                return None
            if self._waiting.compare_and_set(waiting, waiting[1:]):
                return waiting[0]

    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting.get()


class ConsumerTarget:
    """The broker's side of a consuming client: consumers on one or more queues, served in turn."""

    def __init__(self, session: Session, name: str) -> None:
        self.session = session
        self.name = name
        self.consumers: list[Consumer] = []
        """In the order of their next turns. Touched only by the connection's IO thread."""
        self.sent: list[QueueEntry] = []  # likewise: the IO buffer

    def notify_work(self, consumer: Consumer) -> None:
        """Steps 3 and 4: the consumer notifies its target, the target its session."""
        self.session.notify_work(self)

    def send(self, consumer: Consumer, entry: QueueEntry) -> None:
        """Step 12: the entry goes into the IO buffer."""
        self.sent.append(entry)

    def process(self) -> bool:
        """Steps 10 and 11: take one message for one consumer, each asked at most once; False if there was none."""
        for _ in range(len(self.consumers)):
            consumer = self.consumers.pop(0)
            self.consumers.append(consumer)
            names = [each.name for each in self.consumers]
            self.session.host.record("turn", target=self.name, sub=consumer.name, among=names)
            queue = consumer.queue
            assert isinstance(queue, PullQueue)
            if queue.deliver_single_message(consumer) is not None:
                return True
        return False


class Session:
    """One conversation on a connection, with its targets."""

    def __init__(self, connection: Connection, name: str) -> None:
        self.connection = connection
        self.host = connection.host
        self._targets: WorkSet[ConsumerTarget] = WorkSet(self.host, f"{name}.targets")

    def notify_work(self, target: ConsumerTarget) -> None:
        """Step 5: a target has work."""
        if self._targets.add(target):
            self.connection.notify_work(self)

    def process(self) -> bool:
        """Step 9: serve one target; True if there is more to do."""
        target = self._targets.take()
        if target is not None and target.process():
            self._targets.add(target)
        return not self._targets.empty()


class Connection:
    """Runs on at most one IO thread at a time, and runs again after every notification."""

    def __init__(self, scheduler: Scheduler, name: str) -> None:
        self.host = scheduler.host
        self.scheduler = scheduler
        self.name = name
        self._sessions: WorkSet[Session] = WorkSet(self.host, f"{name}.sessions")
        self._scheduled = self.host.cell(False, f"{name}.scheduled")

    def notify_work(self, session: Session) -> None:
        """Step 6, the switch of threads: a session has work."""
        self.host.record("conn_notify", conn=self.name)
        if self._sessions.add(session):
            self._schedule()

    def _schedule(self) -> None:
        if self._scheduled.compare_and_set(False, True):
            self.scheduler.submit(self)

    def run(self) -> None:
        """Step 8, on an IO thread: serve every session that has work."""
        self.host.record("conn_run", conn=self.name, at="begin")
        while (session := self._sessions.take()) is not None:
            if session.process():
                self._sessions.add(session)
        self.host.record("conn_run", conn=self.name, at="end")
        self._scheduled.set(False)  # rule 6 once more: from here on a notification schedules,
        if not self._sessions.empty():  # and one that came before is seen here
            self._schedule()


class Scheduler:
    """The pool of IO threads."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._ready: WorkSet[Connection] = WorkSet(host, "scheduler.ready")
        self._permits = host.semaphore(0, "scheduler.permits")

    def submit(self, connection: Connection) -> None:
        """Give a connection with work to the next free IO thread."""
        self._ready.add(connection)
        self._permits.release()

    def run_one(self) -> None:
        """Step 7: wait for a connection with work and serve it. An IO thread repeats this for ever."""
        self._permits.acquire()
        connection = self._ready.take()
        assert connection is not None  # there is a permit for each that is ready
        connection.run()
