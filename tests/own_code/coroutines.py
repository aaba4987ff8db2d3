"""Plain tests with asyncio, of which `test_asyncio.py` says what the explorer must find. Nothing here knows of it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import pydoc
import threading
import typing
from collections.abc import AsyncIterator

# -- right code ------------------------------------------------------------------------------------


async def locked() -> None:
    lock = asyncio.Lock()
    inside = 0

    async def enter(k: int) -> None:
        nonlocal inside
        await asyncio.sleep(k)
        async with lock:
            inside += 1
            assert inside == 1
            await asyncio.sleep(1)
            inside -= 1

    await asyncio.gather(enter(1), enter(2))


async def queue_with_limit() -> None:
    q: asyncio.Queue[int] = asyncio.Queue(1)

    async def produce() -> None:
        await asyncio.sleep(1)
        await q.put(1)

    task = asyncio.create_task(produce())
    try:
        got = await asyncio.wait_for(q.get(), 2)
    except TimeoutError:
        got = 0
    await task
    assert got + q.qsize() == 1


async def task_group() -> None:
    ended = []

    async def work(k: int) -> None:
        await asyncio.sleep(k)
        if k == 2:
            raise KeyError(k)
        ended.append(k)

    try:
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            for k in (1, 2, 3):
                group.create_task(work(k))
    except* (KeyError, TimeoutError):
        pass
    assert len(ended) <= 2


async def shielded() -> None:
    async def slow() -> int:
        await asyncio.sleep(1)
        return 3

    task = asyncio.create_task(slow())
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(asyncio.shield(task), 1)
    assert await task == 3


async def condition_and_event() -> None:
    changed, ready = asyncio.Condition(), asyncio.Event()
    value = 0

    async def change() -> None:
        nonlocal value
        await ready.wait()
        async with changed:
            value = 1
            changed.notify_all()

    async def look() -> int:
        async with changed:
            await changed.wait_for(lambda: value)
            return value

    tasks = [asyncio.create_task(look()), asyncio.create_task(change())]
    asyncio.get_running_loop().call_later(1, ready.set)
    done, pending = await asyncio.wait(tasks)
    assert len(done) == 2
    assert not pending


async def asynchronous_generator() -> None:
    ended = []

    async def numbers() -> AsyncIterator[int]:
        try:
            for k in range(3):
                yield k
                await asyncio.sleep(1)
        finally:
            await asyncio.sleep(1)
            ended.append(1)

    async for k in numbers():
        if k == 1:
            break
    assert [k async for k in numbers() if k] == [1, 2]
    assert ended in (
        [1],
        [1, 1],
    )  # a task of the loop ends the first one, as soon as it was dropped


async def spins_until_a_timer() -> None:
    flag: list[int] = []
    asyncio.get_running_loop().call_later(1, flag.append, 1)
    while not flag:
        await asyncio.sleep(0)


def thread_and_loop() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        thread = threading.Thread(target=lambda: loop.call_soon_threadsafe(future.set_result, 1))
        thread.start()
        assert await future == 1

    asyncio.run(main())


async def in_a_thread() -> None:
    assert await asyncio.to_thread(lambda: 3) == 3


def two_loops() -> None:
    lock = asyncio.Lock()

    async def hold() -> None:
        async with lock:
            await asyncio.sleep(1)

    async def both() -> None:
        await asyncio.gather(hold(), hold())

    threads = [threading.Thread(target=lambda: asyncio.run(both())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


async def both_in_threads() -> None:
    found: list[int] = []
    await asyncio.gather(asyncio.to_thread(found.append, 1), asyncio.to_thread(found.append, 2))
    assert sorted(found) == [1, 2]


def two_runs() -> None:
    number = contextvars.ContextVar("number", default=0)

    async def count() -> int:
        await asyncio.sleep(1)
        number.set(number.get() + 1)
        return number.get()

    assert [asyncio.run(count()), asyncio.run(count())] == [1, 1]


def imported_only() -> None:
    assert asyncio.__name__ == "asyncio"
    seen: list[int] = []
    thread = threading.Thread(target=seen.append, args=(1,))
    thread.start()
    seen.append(2)
    thread.join()
    assert sorted(seen) == [1, 2]


# -- mistakes --------------------------------------------------------------------------------------


async def order_of_sleeps() -> None:
    seen: list[int] = []

    async def work(k: int) -> None:
        await asyncio.sleep(k)
        seen.append(k)

    await asyncio.gather(work(1), work(2))
    assert seen == [1, 2]


async def read_then_write() -> None:
    total = 0

    async def add() -> None:
        nonlocal total
        old = total
        await asyncio.sleep(1)
        total = old + 1

    await asyncio.gather(add(), add())
    assert total == 2


async def waits_for_ever() -> None:
    async def stand() -> None:
        await asyncio.Event().wait()

    task = asyncio.create_task(stand())
    await asyncio.sleep(1)
    await task


async def two_locks() -> None:
    a, b = asyncio.Lock(), asyncio.Lock()

    async def both(first: asyncio.Lock, second: asyncio.Lock) -> None:
        await asyncio.sleep(1)
        async with first:
            await asyncio.sleep(1)
            async with second:
                pass

    await asyncio.gather(both(a, b), both(b, a))


async def never_retrieved() -> None:
    async def fail() -> None:
        raise ValueError("nobody sees it")

    task = asyncio.create_task(fail())
    await asyncio.sleep(1)
    assert task.done()


async def never_awaited() -> None:
    async def work() -> None:
        pass

    work()  # type: ignore[unused-coroutine]  # the mistake
    await asyncio.sleep(1)


async def fails_in_a_callback() -> None:
    loop = asyncio.get_running_loop()
    loop.call_soon(lambda: [].pop())
    await asyncio.sleep(1)


def not_thread_safe() -> None:
    async def main() -> None:
        future = asyncio.get_running_loop().create_future()
        threading.Thread(target=lambda: future.set_result(1)).start()
        assert await future == 1

    asyncio.run(main())


def two_calls_from_threads() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        seen: list[int] = []
        both = asyncio.Event()

        def keep(k: int) -> None:
            seen.append(k)
            if len(seen) == 2:
                both.set()

        for k in (1, 2):
            threading.Thread(target=loop.call_soon_threadsafe, args=(keep, k)).start()
        await both.wait()
        assert seen == [1, 2]

    asyncio.run(main())


class Gate:
    """Permits with a flag that somebody was woken, as asyncio.Semaphore had it: see gh-90155."""

    def __init__(self, *, passes_on: bool) -> None:
        self.free = 1
        self.woken = False
        self.passes_on = passes_on
        self.waiting: list[asyncio.Future[None]] = []

    async def enter(self) -> None:
        while self.woken or not self.free:
            mine = asyncio.get_running_loop().create_future()
            self.waiting.append(mine)
            try:
                await mine
            except asyncio.CancelledError:
                if self.passes_on and mine.done() and not mine.cancelled():
                    self.woken = False
                    self.wake()
                raise
            self.woken = False
        self.free -= 1

    def leave(self) -> None:
        self.free += 1
        self.wake()

    def wake(self) -> None:
        while self.waiting:
            first = self.waiting.pop(0)
            if not first.done():
                first.set_result(None)
                self.woken = True
                return


async def through_a_gate(gate: Gate) -> None:
    async def enter() -> None:
        await gate.enter()
        gate.leave()

    await gate.enter()
    first, second = asyncio.create_task(enter()), asyncio.create_task(enter())
    asyncio.get_running_loop().call_later(1, first.cancel)
    await asyncio.sleep(1)
    gate.leave()
    await asyncio.gather(first, return_exceptions=True)
    await second


async def gate_that_loses_a_wakeup() -> None:
    await through_a_gate(Gate(passes_on=False))


async def gate_that_passes_it_on() -> None:
    await through_a_gate(Gate(passes_on=True))


async def notified_and_cancelled() -> None:
    """A waiter is cancelled after it was notified and before it runs: gh-112202, asyncio.Condition before 3.13."""
    filled, items = asyncio.Condition(), [0]

    async def take() -> int:
        async with filled:
            await filled.wait_for(lambda: len(items) > 1)
            return items.pop()

    first, second = asyncio.create_task(take()), asyncio.create_task(take())
    asyncio.get_running_loop().call_later(1, first.cancel)
    await asyncio.sleep(1)
    async with filled:
        items.append(1)
        filled.notify()
    await asyncio.wait([first])
    if first.cancelled():
        assert await second == 1
    else:
        second.cancel()


# -- what is said or refused -----------------------------------------------------------------------


async def one_schedule() -> None:
    await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))


async def spins_for_ever() -> None:
    while True:
        await asyncio.sleep(0)


async def opens_a_connection() -> None:
    await asyncio.open_connection("localhost", 80)


async def starts_a_process() -> None:
    await asyncio.create_subprocess_exec("true")


async def takes_the_real_one() -> None:
    pydoc.locate("asyncio").get_running_loop()  # type: ignore[attr-defined]  # a module


async def handles_a_signal() -> None:
    asyncio.get_running_loop().add_signal_handler(2, print)


async def blocks_its_own_loop() -> None:
    lock = threading.Lock()

    async def hold() -> None:
        with lock:
            await asyncio.sleep(1)

    await asyncio.gather(hold(), hold())


class Hits:
    number = 0


def two_in_threads() -> None:
    hits = Hits()

    def hit() -> None:
        hits.number += 1

    async def both() -> None:
        await asyncio.gather(asyncio.to_thread(hit), asyncio.to_thread(hit))

    asyncio.run(both())


async def as_they_end() -> None:
    """`as_completed` makes a set of the coroutines, whose order would be that of their addresses."""

    async def after(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    ended = [await first for first in asyncio.as_completed([after(1), after(2), after(3)])]
    assert sorted(ended) == [1, 2, 3]


async def patches_the_transports_of_sockets() -> None:
    """As httpcore does, which wraps a method of the class whose objects no test makes."""
    transport: typing.Any = asyncio.selector_events._SelectorSocketTransport  # type: ignore[attr-defined]
    write = transport.write
    assert write.__qualname__ == "_SelectorSocketTransport.write"  # of no execution before

    def wrapped(self: object, data: bytes) -> None:
        write(self, data)

    transport.write = wrapped
    await asyncio.gather(asyncio.sleep(1), asyncio.sleep(2))
    assert not hasattr(asyncio, "of_no_such_name")


async def patches_its_locks() -> None:
    """What is set in a class of asyncio is not there in the next execution."""
    acquire = asyncio.Lock.acquire
    assert acquire.__qualname__ == "Lock.acquire"

    async def wrapped(self: asyncio.Lock) -> typing.Any:
        return await acquire(self)

    asyncio.Lock.acquire = wrapped  # type: ignore[method-assign]
    async with asyncio.Lock():
        await asyncio.gather(asyncio.sleep(1), asyncio.sleep(2))
