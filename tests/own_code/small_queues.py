"""Small queues for `conform --schedules`: right ones, and each mistake that such queues are known for, once."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from queue import Empty, Full


class Right:
    """A bounded queue with one condition, as textbooks have it."""

    def __init__(self, maxsize: int = 0) -> None:
        self.maxsize = maxsize
        self.items: deque[str] = deque()
        self.changed = threading.Condition()

    def full(self) -> bool:
        return 0 < self.maxsize <= len(self.items)

    def put(self, m: str) -> None:
        with self.changed:
            while self.full():
                self.changed.wait()
            self.items.append(m)
            self.changed.notify_all()

    def put_nowait(self, m: str) -> None:
        with self.changed:
            if self.full():
                raise Full
            self.items.append(m)
            self.changed.notify_all()

    def get(self) -> str:
        with self.changed:
            while not self.items:
                self.changed.wait()
            m = self.items.popleft()
            self.changed.notify_all()
            return m

    def get_nowait(self) -> str:
        with self.changed:
            if not self.items:
                raise Empty
            m = self.items.popleft()
            self.changed.notify_all()
            return m


class RightStack(Right):
    """The same, last in, first out."""

    def get(self) -> str:
        with self.changed:
            while not self.items:
                self.changed.wait()
            m = self.items.pop()
            self.changed.notify_all()
            return m

    def get_nowait(self) -> str:
        with self.changed:
            if not self.items:
                raise Empty
            m = self.items.pop()
            self.changed.notify_all()
            return m


class NotifyOne(Right):
    """`notify` where producers and consumers wait on one condition: it may wake one of the wrong kind."""

    def put(self, m: str) -> None:
        with self.changed:
            while self.full():
                self.changed.wait()
            self.items.append(m)
            self.changed.notify()

    def get(self) -> str:
        with self.changed:
            while not self.items:
                self.changed.wait()
            m = self.items.popleft()
            self.changed.notify()
            return m


class IfForWhile(Right):
    """A consumer that was woken does not look again."""

    def get(self) -> str:
        with self.changed:
            if not self.items:
                self.changed.wait()
            m = self.items.popleft()
            self.changed.notify_all()
            return m


class CheckThenAct(Right):
    """Whether there is something is looked at before the lock is taken."""

    def get_nowait(self) -> str:
        if not self.items:
            raise Empty
        with self.changed:
            return self.items.popleft()


class NotifyOnlyIfEmpty(Right):
    """A producer wakes a consumer only where the queue was empty: the second of two waits on."""

    def __init__(self) -> None:
        super().__init__(0)

    def put(self, m: str) -> None:
        with self.changed:
            was_empty = not self.items
            self.items.append(m)
            if was_empty:
                self.changed.notify()

    def get(self) -> str:
        with self.changed:
            while not self.items:
                self.changed.wait()
            return self.items.popleft()


class LostWakeUp(Right):
    """The queue is looked at under the lock, and waited for after it was let go."""

    def get(self) -> str:
        while True:
            with self.changed:
                if self.items:
                    return self.items.popleft()
            with self.changed:
                self.changed.wait()


class PeekThenPop(Right):
    """The message is read under the lock and removed under it, but not in one go: two may be given the same."""

    def get_nowait(self) -> str:
        with self.changed:
            if not self.items:
                raise Empty
            m = self.items[0]
        with self.changed:
            if self.items:
                self.items.popleft()
            return m


class OverTheLimit(Right):
    """Room is looked for before the lock is taken: two producers may use the same place."""

    def put_nowait(self, m: str) -> None:
        if self.full():
            raise Full
        with self.changed:
            self.items.append(m)
            self.changed.notify_all()


class OppositeLocks(Right):
    """Two locks, taken in opposite orders."""

    def __init__(self) -> None:
        super().__init__(0)
        self.first, self.second = threading.Lock(), threading.Lock()

    def put(self, m: str) -> None:
        with self.first, self.second:
            super().put(m)

    def get_nowait(self) -> str:
        with self.second, self.first:
            return super().get_nowait()


class Leases:
    """Messages are leased: got, then settled. One lock, and what comes back goes to the front."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.ready: list[tuple[int, str, bool]] = []
        self.held: dict[tuple[int, int], tuple[int, str, bool]] = {}
        self.published = 0
        self.tags = 0

    def publish(self, m: str) -> None:
        with self.lock:
            self.published += 1
            self.ready.append((self.published, m, False))

    def get(self, ch: int) -> tuple[str, int, bool] | None:
        with self.lock:
            return self.lease(ch)

    def lease(self, ch: int) -> tuple[str, int, bool] | None:
        if not self.ready:
            return None
        self.ready.sort()
        place, m, again = self.ready.pop(0)
        dtag = sum(c == ch for c, _ in self.held) + self.tags + 1
        self.tags = dtag
        self.held[ch, dtag] = (place, m, True)
        return m, dtag, again

    def ack(self, ch: int, dtag: int) -> None:
        with self.lock:
            del self.held[ch, dtag]

    def nack(self, ch: int, dtag: int, requeue: bool = True) -> None:
        with self.lock:
            held = self.held.pop((ch, dtag))
            if requeue:
                self.ready.append(held)


class LeasedTwice(Leases):
    """The lease is taken without the lock."""

    def get(self, ch: int) -> tuple[str, int, bool] | None:
        if not self.ready:
            return None
        self.ready.sort()
        place, m, again = self.ready[0]
        with self.lock:
            self.ready = [entry for entry in self.ready if entry[0] != place]
            self.tags += 1
            self.held[ch, self.tags] = (place, m, True)
            return m, self.tags, again


class Polled:
    """Never waits: a `get` of nothing is None."""

    def __init__(self) -> None:
        self.items: deque[str] = deque()
        self.lock = threading.Lock()

    def put(self, m: str) -> None:
        with self.lock:
            self.items.append(m)

    def get(self) -> str | None:
        with self.lock:
            return self.items.popleft() if self.items else None


class PolledByError(Polled):
    """The same, but that a `get` of nothing raises what a deque raises."""

    def get(self) -> str:
        with self.lock:
            return self.items.popleft()


class PolledWithoutLock(Polled):
    """Wrong: two may look at the same first message."""

    def get(self) -> str | None:
        if not self.items:
            return None
        m = self.items[0]
        with self.lock:
            if self.items:
                self.items.popleft()
        return m


class Tasks:
    """A queue for tasks: a message wakes one getter, and one that is cancelled wakes another."""

    def __init__(self) -> None:
        self.items: deque[str] = deque()
        self.getters: deque[asyncio.Future[None]] = deque()

    def wake(self) -> None:
        while self.getters:
            getter = self.getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    async def put(self, m: str) -> None:
        self.put_nowait(m)

    def put_nowait(self, m: str) -> None:
        self.items.append(m)
        self.wake()

    async def get(self) -> str:
        while not self.items:
            getter = asyncio.get_running_loop().create_future()
            self.getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                self.cancelled()
                raise
        return self.items.popleft()

    def cancelled(self) -> None:
        """Who was woken and goes away wakes another."""
        if self.items:
            self.wake()

    def get_nowait(self) -> str:
        if not self.items:
            raise asyncio.QueueEmpty
        return self.items.popleft()


class TasksLoseWakeUp(Tasks):
    """A getter that is cancelled after it was woken goes away with the wake-up."""

    def cancelled(self) -> None:
        pass


class TasksHandOver(Tasks):
    """A message is given to the getter that waits, and is lost with it if that is cancelled before it runs."""

    def put_nowait(self, m: str) -> None:
        while self.getters:
            getter = self.getters.popleft()
            if not getter.done():
                getter.set_result(m)  # type: ignore[arg-type]
                return
        self.items.append(m)

    async def get(self) -> str:
        if self.items:
            return self.items.popleft()
        getter: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.getters.append(getter)  # type: ignore[arg-type]
        return await getter


class TasksIfForWhile(Tasks):
    """A getter that was woken does not look again."""

    async def get(self) -> str:
        if not self.items:
            getter = asyncio.get_running_loop().create_future()
            self.getters.append(getter)
            await getter
        return self.items.popleft()


class End:
    """One end of a stream over a queue of tasks."""

    def __init__(self, queue: Tasks) -> None:
        self.send, self.send_nowait = queue.put, queue.put_nowait
        self.receive, self.receive_nowait = queue.get, queue.get_nowait


def two_ends() -> tuple[End, End]:
    """The two ends of a stream."""
    queue = Tasks()
    return End(queue), End(queue)


class WithoutGet:
    """Never waits: it has no `get` but `get_nowait`."""

    def __init__(self) -> None:
        self.items: deque[str] = deque()
        self.lock = threading.Lock()

    def put(self, m: str) -> None:
        with self.lock:
            self.items.append(m)

    def get_nowait(self) -> str:
        with self.lock:
            return self.items.popleft()


class WithoutGetOrLock(WithoutGet):
    """Wrong: two may look at the same first message."""

    def get_nowait(self) -> str:
        m = self.items[0]
        with self.lock:
            if self.items:
                self.items.popleft()
        return m
