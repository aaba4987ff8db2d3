"""Plain tests with and without a data race: see test_races."""

from __future__ import annotations

import functools
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

VISITS = 0


class Box:
    total = 0

    def __init__(self) -> None:
        self.value = 0
        self.ready = False


def run(*bodies: Callable[[], Any]) -> None:
    threads = [threading.Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def race_of_a_write_and_a_read() -> None:
    box = Box()
    run(lambda: setattr(box, "value", 1), lambda: box.value)


def race_of_a_container() -> None:
    table: dict[str, int] = {}
    run(lambda: table.update(a=1), lambda: table.get("a"))


def race_of_a_global() -> None:
    def visit() -> None:
        global VISITS
        VISITS = 1

    run(visit, visit)


def race_of_a_class_attribute() -> None:
    def add() -> None:
        Box.total = 1

    run(add, lambda: Box.total)


def race_behind_a_spin() -> None:
    """The flag is waited for in a loop: it becomes a step, and still orders nothing."""
    box = Box()

    def wait() -> None:
        while not box.ready:
            pass
        assert box.value == 1

    def publish() -> None:
        box.value = 1
        box.ready = True

    run(wait, publish)


def race_in_one_schedule() -> None:
    """Only who comes first reads without the lock."""
    box, lock = Box(), threading.Lock()

    def write() -> None:
        with lock:
            box.ready = True
        box.value = 1

    def read() -> None:
        with lock:
            ready = box.ready
        if not ready:
            return
        assert box.value in (0, 1)

    run(write, read)


def orderly_lock() -> None:
    box, lock = Box(), threading.Lock()

    def add() -> None:
        with lock:
            box.value += 1

    run(add, add)
    assert box.value == 2


def orderly_queue() -> None:
    box, items = Box(), queue.Queue[Box]()

    def put() -> None:
        box.value = 1
        items.put(box)

    run(put, lambda: items.get().value)


def orderly_event() -> None:
    """`is_set` takes no lock, and what was written before `set` is there."""
    box, event = Box(), threading.Event()

    def publish() -> None:
        box.value = 1
        event.set()

    def look() -> None:
        if event.is_set():
            assert box.value == 1

    run(publish, look)


def orderly_executor() -> None:
    with ThreadPoolExecutor(2) as pool:
        assert [f.result() for f in [pool.submit(Box), pool.submit(Box)]]


def orderly_cache() -> None:
    """The cache of functools may be used by several threads, as its documentation says."""

    @functools.lru_cache(1)
    def doubled(x: int) -> int:
        return 2 * x

    run(lambda: doubled(1), lambda: doubled(2))


def orderly_readers() -> None:
    box = Box()
    run(lambda: box.value, lambda: box.value)
