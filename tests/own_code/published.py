"""Concurrency mistakes that were published in issues of Python projects, each in the smallest form of our own.

Each mistake is a plain test that takes the wrong or the right form; `REPORTS` says where it was reported.
None of it is code of the project that it names.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any


def run(*bodies: Callable[[], Any]) -> None:
    threads = [threading.Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# -- a dict is there when it is looked for, and gone when it is read ---------------------------------------------------


class CachedTable:
    def __init__(self) -> None:
        self.cache: dict[str, int] | None = None

    def populate(self) -> dict[str, int]:
        cache = self.cache
        if cache is None:
            cache = self.cache = {"key": 1}
        return cache

    def wrong_get(self, key: str) -> int:
        self.populate()
        return self.cache[key]  # type: ignore[index]  # that is the mistake

    def right_get(self, key: str) -> int:
        return self.populate()[key]

    def invalidate(self) -> None:
        self.cache = None


def wrong_cached_table() -> None:
    table = CachedTable()
    run(lambda: table.wrong_get("key"), table.invalidate)


def right_cached_table() -> None:
    table = CachedTable()
    run(lambda: table.right_get("key"), table.invalidate)


# -- two threads see the same key expired, both delete it --------------------------------------------------------------


def expire(table: dict[str, int]) -> None:
    for key in list(table):
        if key in table:
            del table[key]  # noqa: RUF051 - that is the mistake


def wrong_expiry() -> None:
    table = {"old": 1}
    run(lambda: expire(table), lambda: expire(table))


def right_expiry() -> None:
    table, lock = {"old": 1}, threading.Lock()

    def locked() -> None:
        with lock:
            expire(table)

    run(locked, locked)
    assert not table


# -- one timer for all calls: the start of one overwrites that of another ----------------------------------------------


class Timer:
    def __init__(self) -> None:
        self.start = 0

    def timed(self, start: int) -> int:
        self.start = start
        return self.start


def wrong_shared_timer() -> None:
    timer, starts = Timer(), dict[int, int]()

    def call(now: int) -> None:
        starts[now] = timer.timed(now)

    run(lambda: call(1), lambda: call(2))
    assert starts == {1: 1, 2: 2}


def right_timer_of_each_call() -> None:
    starts: dict[int, int] = {}

    def call(now: int) -> None:
        starts[now] = Timer().timed(now)

    run(lambda: call(1), lambda: call(2))
    assert starts == {1: 1, 2: 2}


# -- double-checked locking: the first key is there before the second --------------------------------------------------


class Index:
    def __init__(self) -> None:
        self.cache: dict[str, int] = {}
        self.lock = threading.Lock()

    def wrong(self) -> int:
        if "words" not in self.cache:
            with self.lock:
                if "words" not in self.cache:
                    self.cache["words"] = 1
                    self.cache["links"] = 2
        return self.cache["words"] + self.cache["links"]

    def right(self) -> int:
        if "words" not in self.cache:
            with self.lock:
                if "words" not in self.cache:
                    self.cache.update(words=1, links=2)
        return self.cache["words"] + self.cache["links"]


def wrong_published_in_parts() -> None:
    index = Index()
    run(index.wrong, index.wrong)


def right_published_at_once() -> None:
    index = Index()
    run(index.right, index.right)


# -- a consumer that does not look again after it was woken ------------------------------------------------------------


def consumers(again: bool) -> None:
    condition, items, got = threading.Condition(), deque[int](), list[int]()

    def consume() -> None:
        with condition:
            if again:
                while not items:
                    condition.wait()
            elif not items:
                condition.wait()
            got.append(items.popleft())

    def produce() -> None:
        for item in (1, 2):
            with condition:
                items.append(item)
                condition.notify()

    run(consume, consume, produce)
    assert sorted(got) == [1, 2]


def wrong_condition_without_loop() -> None:
    consumers(again=False)


def right_condition_in_a_loop() -> None:
    consumers(again=True)


# -- an executor that is shut down while it gets a worker --------------------------------------------------------------


class Workers:
    """What an executor and the end of the interpreter do with the list of its workers."""

    def __init__(self) -> None:
        self.closed = False
        self.started: list[str] = []
        self.joined: list[str] = []
        self.lock = threading.Lock()

    def submit(self) -> None:
        if not self.closed:
            self.started.append("worker")

    def close(self) -> None:
        self.closed = True
        self.joined = list(self.started)

    def locked(self, body: Callable[[], None]) -> None:
        with self.lock:
            body()


def wrong_worker_after_shutdown() -> None:
    workers = Workers()
    run(workers.submit, workers.close)
    assert workers.joined == workers.started


def right_shutdown_with_a_lock() -> None:
    workers = Workers()
    run(lambda: workers.locked(workers.submit), lambda: workers.locked(workers.close))
    assert workers.joined == workers.started


# -- asyncio: the pool is full when the connection has come ------------------------------------------------------------


async def filled_pool(counted_first: bool) -> None:
    size, free = 0, list[object]()

    async def fill() -> None:
        nonlocal size
        if size >= 1:
            return
        if counted_first:
            size += 1
        await asyncio.sleep(1)  # the connection is made
        if not counted_first:
            size += 1
        free.append(object())

    await asyncio.gather(fill(), fill())
    assert len(free) == 1


async def wrong_pool_over_its_limit() -> None:
    await filled_pool(counted_first=False)


async def right_pool_within_its_limit() -> None:
    await filled_pool(counted_first=True)


# -- asyncio: a queue hands an item to a getter that is cancelled before it runs ---------------------------------------


class HandingQueue:
    def __init__(self, keeps: bool) -> None:
        self.keeps = keeps
        self.items: deque[int] = deque()
        self.getters: deque[asyncio.Future[int]] = deque()

    def put(self, item: int) -> None:
        while self.getters:
            getter = self.getters.popleft()
            if not getter.done():
                getter.set_result(item)
                return
        self.items.append(item)

    async def get(self) -> int:
        if self.items:
            return self.items.popleft()
        getter: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.getters.append(getter)
        try:
            return await getter
        except asyncio.CancelledError:
            if self.keeps and getter.done() and not getter.cancelled():
                self.items.appendleft(getter.result())
            raise


async def cancelled_getter(keeps: bool) -> None:
    queue, got = HandingQueue(keeps), list[int]()

    async def consume() -> None:
        got.append(await queue.get())

    async def produce() -> None:
        await asyncio.sleep(1)
        queue.put(7)

    async def cancel() -> None:
        await asyncio.sleep(1)
        consumer.cancel()

    consumer = asyncio.create_task(consume())
    await asyncio.gather(produce(), cancel())
    await asyncio.gather(consumer, return_exceptions=True)
    assert [*got, *queue.items] == [7]


async def wrong_item_of_a_cancelled_getter() -> None:
    await cancelled_getter(keeps=False)


async def right_item_is_put_back() -> None:
    await cancelled_getter(keeps=True)


REPORTS = (
    ("wrong_cached_table", "right_cached_table", "adamchainz/django-modeldict/issues/18"),
    ("wrong_expiry", "right_expiry", "tkem/cachetools/issues/115"),
    ("wrong_shared_timer", "right_timer_of_each_call", "prometheus/client_python/issues/287"),
    ("wrong_published_in_parts", "right_published_at_once", "jgravelle/jcodemunch-mcp/issues/490"),
    ("wrong_condition_without_loop", "right_condition_in_a_loop", "laurentluce/python-tutorials/issues/2"),
    ("wrong_worker_after_shutdown", "right_shutdown_with_a_lock", "python/cpython/issues/75964"),
    ("wrong_pool_over_its_limit", "right_pool_within_its_limit", "aio-libs/aiopg/issues/18"),
    ("wrong_item_of_a_cancelled_getter", "right_item_is_put_back", "tornadoweb/tornado/issues/2826"),
)  # fmt: skip
"""The wrong form, the right form, and the report at github.com."""
