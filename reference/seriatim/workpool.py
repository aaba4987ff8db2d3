"""The work pool of RabbitMQ's Java client: callbacks of many channels on a bounded pool of threads.

It is the article "The RabbitMQ Threading Model" and "Channeling Work" (Powell & Harrop, channels.tex in the Java
client's repository). The rules are numbered together with those of `seriatim.broker` (1 to 3) and `seriatim.client`.

How to think of it
------------------
Each channel has a queue of work. The work of one channel runs in order and never at the same time; the work of
different channels runs at the same time, on as many threads as the executor has.

Rule 5 (pool).      A channel's work is dormant, ready or in progress. Queued work is never dormant:
                    putting work in and waking its channel are one critical section.
Rule 6 (runnables). For each channel that becomes ready one runnable goes to the executor; it takes whichever channel is
                    first. So ready channels and runnables that have not begun are equal in number.
Rule 7 (failure).   If a callback raises, the rest of its block runs all the same.
                    If a put is interrupted or times out, or an execution is rejected, the connection is closed: the
                    server then requeues the messages, and none is left behind. The same holds for a channel that is
                    unregistered, whose work is dropped.

The state of the specification is `pool`, a sequence of work for each channel, and the partition of the channels into
dormant, ready (a sequence, no channel twice) and in progress; a dormant channel has no work. Its operations
DeliverDormant, DeliverReady, DeliverInProgress, StartWork, EndWorkMoreToDo and EndWorkNoMoreToDo are named where they
happen. We depart from it in four places:
StartWork takes a block and not one item (with `block` 1 it is the specification's);
channels come and go (`register_key`, `unregister_key`), also while they are in progress;
a put may wait for room, and may be refused; and a callback that raises ends like one that does not.
Of these the specification says nothing.

The Java client of today departs further: it puts outside its lock, so work is for a moment queued in a dormant channel
and a channel may be made ready with nothing to do; and a callback that raises takes the rest of its block with it.

What this file does not know
----------------------------
It starts no threads: whoever uses it runs `Executor.worker` on as many as the pool is large.

Times are in seconds. A time limit is for one sleep: a waiter that was woken for somebody else's sake sleeps anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from seriatim.host import Host, operation

CAPACITY: int | None = None
"""How much work of one channel waits at most; None is no limit (rule 9 of the client). The Java client has 1000."""
BLOCK = 256
"""How many items of one channel a runnable takes at once; the Java client has 256 (16 before 2022), the Z text 1."""


class Misuse(ValueError):
    """The caller asked for something that is not possible."""


class NotPut(Exception):
    """The work was not put into the pool: there was no room in time, or an interrupt."""


class Unregistered(NotPut):
    """The work was not put into the pool: its channel is not there, or not any more."""


class Rejected(Exception):
    """The executor takes no more work."""


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
        """Run tasks until the executor is shut down: one thread of the pool."""
        while True:
            self._permits.acquire()
            with self._lock:
                task = self._tasks.popleft()
            if task is None:
                return
            task()


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
        """Add a channel, dormant."""
        with self._lock:
            self._pool.setdefault(key, deque())
            self.host.record("pool_register", k=key)

    def unregister_key(self, key: str) -> None:
        """Take a channel out and drop its work. Who waits for room in it is woken and refused (rule 10)."""
        with self._lock:
            if key not in self._pool:
                return
            dropped = self._pool.pop(key)
            if key in self._ready:
                self._ready.remove(key)  # its runnable will take another, or find nothing
            self._unlimited.discard(key)
            self._room.notify_all()
            self.host.record("pool_unregister", k=key, dropped=[w.label for w in dropped])

    def unregister_all_keys(self) -> None:
        """Take all channels out, one after the other."""
        with self._lock:
            keys = list(self._pool)
        for key in keys:
            self.unregister_key(key)

    def unlimit(self, key: str) -> None:
        """Lift all limits while a channel has a call out: its reply stands behind deliveries to all channels."""
        with self._lock:
            if key in self._pool:
                self._unlimited.add(key)
                self._room.notify_all()

    def limit(self, key: str) -> None:
        """Note that a channel has no call out any more."""
        with self._lock:
            self._unlimited.discard(key)

    def interrupt(self) -> None:
        """Wake whoever waits for room, without room."""
        with self._lock:
            self._interrupted = True
            self._room.notify_all()

    @operation
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
        """True if a runnable must be started. A channel that was unregistered meanwhile has nothing more.

        It was in progress all the same: if it was registered anew its next work had to wait for this (rule 5).
        """
        with self._lock:
            if key not in self._in_progress:
                raise Misuse(f"{key} is not in progress")
            self._in_progress.remove(key)
            if not self._pool.get(key):
                return False  # EndWorkNoMoreToDo
            self._ready.append(key)  # EndWorkMoreToDo: to the tail, so channels take turns
            return True


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

    @operation
    def add(self, key: str, work: Work, timeout: float | None = None) -> bool:
        """Have it run after all that was added for the same key, and never at the same time as any of it.

        Returns whether it was put; if not, `on_failure` was called, unless the key is not registered.
        """
        try:
            runnable = self.pool.add_work_item(key, work, timeout)
        except NotPut as error:
            if not isinstance(error, Unregistered):
                self.on_failure(str(error))
            return False
        if runnable:
            self._start_runnable()
        return True

    def _start_runnable(self) -> None:
        try:
            self.executor.execute(self._run)
        except Rejected as error:
            self.on_failure(str(error))

    def _run(self) -> None:
        """Take a block of the first ready channel and run it: a runnable."""
        block = self.pool.next_work_block()
        if block is None:
            return
        key, items = block
        for work in items:
            self._run_one(key, work)
        if self.pool.finish_work_block(key):
            self._start_runnable()

    @operation
    def _run_one(self, key: str, work: Work) -> BaseException | None:
        """Run a callback and return what it raised. To exit is the callback's end, not the pool's."""
        try:
            work.run()
        except (Exception, SystemExit) as error:
            return error
        return None
