"""Small programs of which a generator or coroutine does something when it is closed: see test_lifetimes.

Each has one schedule, and returns what CPython returns.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any


class Holder:
    held: Any = None


class Manager:
    def __init__(self, log: list[str]) -> None:
        self.log = log

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self.log.append("closed")


def within(log: list[str]) -> Iterator[int]:
    with Manager(log):
        yield 1
        yield 2


def tried(log: list[str]) -> Iterator[int]:
    try:
        yield 1
        yield 2
    finally:
        log.append("closed")


def delegating(log: list[str]) -> Iterator[int]:
    yield from tried(log)


async def waiting(log: list[str]) -> AsyncIterator[int]:
    try:
        yield 1
        yield 2
    finally:
        log.append("closed")


def begun(generator: Any) -> Any:
    next(generator)
    return generator


def list_is_dropped() -> object:
    log: list[str] = []
    held = [begun(within(log))]
    del held
    log.append("after")
    return log


def list_is_cleared() -> object:
    log: list[str] = []
    held = [begun(within(log))]
    held.clear()
    log.append("after")
    return log


def object_is_dropped() -> object:
    log: list[str] = []
    holder = Holder()
    holder.held = begun(tried(log))
    del holder
    log.append("after")
    return log


def attribute_is_replaced() -> object:
    log: list[str] = []
    holder = Holder()
    holder.held = begun(delegating(log))
    holder.held = None
    log.append("after")
    return log


def circle_is_dropped() -> object:
    log: list[str] = []
    holder = Holder()
    holder.held = holder, begun(tried(log))
    del holder
    log.append("after")
    return log


def iterator_of_c_is_dropped() -> object:
    log: list[str] = []
    texts: Any = map(str, tried(log))
    next(texts)
    texts = None
    log.append("after")
    return log


def loop_is_left() -> object:
    log: list[str] = []
    for _ in within(log):
        break
    log.append("after")
    return log


def thread_ends() -> object:
    log: list[str] = []

    def body() -> None:
        holder = Holder()
        holder.held = begun(tried(log))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    log.append("after")
    return log


def lock_is_released() -> object:
    log: list[str] = []
    lock = threading.Lock()

    def under_the_lock() -> Iterator[int]:
        with lock:
            yield 1
            yield 2

    holder = Holder()
    holder.held = begun(under_the_lock())
    del holder
    log.append("free" if lock.acquire(timeout=1) else "held")
    return log


def coroutine_is_dropped() -> object:
    log: list[str] = []

    async def sleeps() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            log.append("closed")

    holder = Holder()
    holder.held = sleeps()
    holder.held.send(None)
    del holder
    log.append("after")
    return log


async def turns() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


async def asynchronous_loop_is_left() -> object:
    log: list[str] = []
    async for _ in waiting(log):
        break
    await turns()
    log.append("after")
    return log


async def asynchronous_generator_is_held() -> object:
    log: list[str] = []
    generator = waiting(log)
    await anext(generator)
    await turns()
    log.append("after")
    return log, generator is not None


async def holder_of_an_asynchronous_one_is_dropped() -> object:
    log: list[str] = []
    holder = Holder()
    holder.held = waiting(log)
    await anext(holder.held)
    del holder
    await turns()
    log.append("after")
    return log


async def asynchronous_lock_is_released() -> object:
    lock = asyncio.Lock()

    async def under_the_lock() -> AsyncIterator[int]:
        async with lock:
            yield 1
            yield 2

    async for _ in under_the_lock():
        break
    async with lock:
        return "free"


PROGRAMS: list[Callable[[], Any]] = [
    list_is_dropped, list_is_cleared, object_is_dropped, attribute_is_replaced, circle_is_dropped,
    iterator_of_c_is_dropped, loop_is_left, thread_ends, lock_is_released, coroutine_is_dropped,
    asynchronous_loop_is_left, asynchronous_generator_is_held, holder_of_an_asynchronous_one_is_dropped,
    asynchronous_lock_is_released,
]  # fmt: skip
