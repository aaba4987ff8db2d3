"""Loops of coroutines that wait, beside threads: what they await is there already, or lets the event loop run."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Generator


class Box:
    def __init__(self) -> None:
        self.ready = False


async def wrong_never_lets_the_loop_run() -> None:
    """Another task would set the flag, but what is awaited is always there: the event loop does not run again."""
    box, there = Box(), asyncio.Event()
    there.set()

    async def wait() -> None:
        while not box.ready:
            await there.wait()

    async def publish() -> None:
        await asyncio.to_thread(lambda: box.ready)
        box.ready = True

    await asyncio.gather(publish(), wait())


async def wrong_never_lets_the_loop_run_under_a_lock() -> None:
    """As `join()` of a queue for threads and tasks had it."""
    box, there, lock = Box(), asyncio.Event(), threading.Lock()
    there.set()

    async def wait() -> None:
        while True:
            with lock:
                if box.ready:
                    break
            await there.wait()

    async def publish() -> None:
        await asyncio.to_thread(lambda: box.ready)
        with lock:
            box.ready = True

    await asyncio.gather(publish(), wait())


async def right_a_thread_sets_it() -> None:
    box, there = Box(), asyncio.Event()
    there.set()

    async def wait() -> None:
        while not box.ready:
            await there.wait()

    await asyncio.gather(asyncio.to_thread(setattr, box, "ready", True), wait())


async def right_lets_the_loop_run() -> None:
    """Each round lets the event loop run, and another task comes to set the flag."""
    box = Box()

    async def wait() -> None:
        while not box.ready:
            await asyncio.sleep(0)

    async def publish() -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        box.ready = True

    await asyncio.to_thread(lambda: None)
    await asyncio.gather(wait(), publish())


async def right_awaits_with_a_lock() -> None:
    """A condition of asyncio: each round waits until it is notified."""
    box, condition = Box(), asyncio.Condition()

    async def wait() -> None:
        async with condition:
            while not box.ready:
                await condition.wait()

    async def publish() -> None:
        for _ in range(8):
            async with condition:
                condition.notify_all()
        async with condition:
            box.ready = True
            condition.notify_all()

    await asyncio.to_thread(lambda: None)
    await asyncio.gather(wait(), publish())


class LetsOthersRun:
    def __await__(self) -> Generator[None, None, None]:
        yield


def right_is_driven_by_hand() -> None:
    """Who drives this coroutine counts its rounds, in a variable that nobody else sees."""
    box = Box()

    async def wait() -> None:
        while not box.ready:
            await LetsOthersRun()

    def drive(coroutine: Coroutine[None, None, None]) -> None:
        for _ in range(20):
            coroutine.send(None)
        box.ready = True
        with contextlib.suppress(StopIteration):
            coroutine.send(None)

    thread = threading.Thread(target=drive, args=(wait(),))
    thread.start()
    thread.join()


async def right_is_driven_by_hand_in_a_task() -> None:
    await asyncio.to_thread(lambda: None)
    box = Box()

    async def wait() -> None:
        while not box.ready:
            await LetsOthersRun()

    coroutine = wait()
    for _ in range(20):
        coroutine.send(None)
    box.ready = True
    with contextlib.suppress(StopIteration):
        coroutine.send(None)
