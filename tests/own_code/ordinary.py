"""Tests as people write them, each wrong (`..._wrong`) and repaired (`..._right`)."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress


def run(*bodies: Callable[[], object]) -> None:
    threads = [threading.Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Config:
    found: Config | None = None
    lock = threading.Lock()

    @classmethod
    def first_wrong(cls) -> Config:
        if cls.found is None:
            cls.found = cls()
        return cls.found

    @classmethod
    def first_right(cls) -> Config:
        with cls.lock:
            return cls.first_wrong()


def _one_object(first: Callable[[], Config]) -> None:
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.submit(first), pool.submit(first)
    assert one.result() is other.result()


def singleton_wrong() -> None:
    _one_object(Config.first_wrong)


def singleton_right() -> None:
    _one_object(Config.first_right)


def _answered_twice(lock: threading.Lock | None) -> None:
    future: Future[int] = Future()

    def answer() -> None:
        if lock is None:
            if not future.done():
                future.set_result(1)
        else:
            with lock:
                if not future.done():
                    future.set_result(1)

    run(answer, answer)


def future_set_twice_wrong() -> None:
    _answered_twice(None)


def future_set_twice_right() -> None:
    _answered_twice(threading.Lock())


def _cleared(at_once: bool) -> None:
    ready = threading.Event()
    waiter = threading.Thread(target=ready.wait)
    waiter.start()
    ready.set()
    if at_once:
        ready.clear()
    waiter.join()
    ready.clear()


def event_cleared_wrong() -> None:
    _cleared(True)


def event_cleared_right() -> None:
    _cleared(False)


def _worker_that_fails(in_finally: bool) -> None:
    items: queue.Queue[int] = queue.Queue()

    def work() -> None:
        while True:
            item = items.get()
            with suppress(ZeroDivisionError):
                try:
                    assert 1 / item
                    if not in_finally:
                        items.task_done()
                finally:
                    if in_finally:
                        items.task_done()

    threading.Thread(target=work, daemon=True).start()
    for item in (1, 0):
        items.put(item)
    items.join()


def task_done_wrong() -> None:
    _worker_that_fails(False)


def task_done_right() -> None:
    _worker_that_fails(True)


def _pool_in_itself(workers: int) -> None:
    with ThreadPoolExecutor(workers) as pool:
        assert pool.submit(lambda: pool.submit(lambda: 1).result()).result() == 1


def nested_submit_wrong() -> None:
    _pool_in_itself(1)


def nested_submit_right() -> None:
    _pool_in_itself(2)


def _drained(to_the_end: bool) -> None:
    items: queue.Queue[int | None] = queue.Queue()
    stop, got = threading.Event(), []

    def work() -> None:
        while (item := items.get()) is not None:
            got.append(item)
            if not to_the_end and stop.is_set():
                return

    worker = threading.Thread(target=work)
    worker.start()
    for item in (1, 2, None):
        items.put(item)
    stop.set()
    worker.join()
    assert got == [1, 2]


def stopped_too_early_wrong() -> None:
    _drained(False)


def stopped_too_early_right() -> None:
    _drained(True)


async def _stampede(shared: bool) -> None:
    cache: dict[int, int] = {}
    loading: dict[int, asyncio.Future[int]] = {}
    calls: list[int] = []

    async def load(key: int) -> int:
        calls.append(key)
        await asyncio.sleep(0.1)
        return 2 * key

    async def get(key: int) -> int:
        if key not in cache:
            if shared:
                if key not in loading:
                    loading[key] = asyncio.ensure_future(load(key))
                cache[key] = await loading[key]
            else:
                cache[key] = await load(key)
        return cache[key]

    await asyncio.gather(get(1), get(1))
    assert len(calls) == 1


async def stampede_wrong() -> None:
    await _stampede(False)


async def stampede_right() -> None:
    await _stampede(True)


async def _cancelled(in_finally: bool) -> None:
    lock = asyncio.Lock()

    async def use() -> None:
        await lock.acquire()
        try:
            await asyncio.sleep(1)
            if not in_finally:
                lock.release()
        finally:
            if in_finally:
                lock.release()

    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(use(), 0.5)
    assert not lock.locked()


async def cancelled_wrong() -> None:
    await _cancelled(False)


async def cancelled_right() -> None:
    await _cancelled(True)


async def _awaited(by_itself: bool) -> None:
    done: list[int] = []

    async def work() -> None:
        await asyncio.sleep(0.1)
        done.append(1)

    task = asyncio.create_task(work())
    if by_itself:
        await task
    else:
        await asyncio.sleep(0.2)  # long enough, on this machine
    assert done


async def long_enough_wrong() -> None:
    await _awaited(False)


async def long_enough_right() -> None:
    await _awaited(True)


def many_schedules() -> None:
    items: queue.Queue[int] = queue.Queue()

    def put() -> None:
        for k in range(3):
            items.put(k)

    def get() -> None:
        for _ in range(3):
            items.get()

    run(put, put, put, get, get, get)


class SharedTotal:
    total = 0


class SharedBox:
    x = y = 0


def class_touched_by_either_first() -> None:
    """Which thread is the first to touch the class decides nothing."""
    box, seen = SharedBox(), dict[int, int]()

    def one() -> None:
        box.x = 0
        while not SharedTotal.total and not seen:
            seen[2] = 1
        box.y += 1

    def two() -> None:
        box.y = 2
        SharedTotal.total = 1
        _ = box.x, box.y

    threads = [threading.Thread(target=each) for each in (one, two)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def each_thread_has_its_own() -> None:
    """Attributes of a `threading.local` are no places that two threads share."""
    own = threading.local()

    def work() -> None:
        own.count = 1
        own.count += 1
        assert own.count == 2

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
