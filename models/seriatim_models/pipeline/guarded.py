"""Items in a process of their own, so that one that hangs, dies or eats all memory is a result and not the end.

One child works off item after item; only what it dies of costs a new child. So a batch costs one fork, not one an item.
"""

from __future__ import annotations

import gc
import multiprocessing
import resource
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

import msgspec

from seriatim_models.pipeline.items import Item, Outcome, run

POLL = 0.1  # seconds between looks whether to stop
LAST_WORDS = 1.0  # seconds a child has to end when it is told to


def outcomes(
    batch: Sequence[Item], timeout: float, memory: int, stopped: Callable[[], bool]
) -> Iterator[Outcome]:
    """What comes of each item, in their order, until `stopped`.

    `timeout` in seconds for one item; `memory` in bytes of address space on top of what a child starts with.
    """
    child: _Child | None = None
    try:
        for item in batch:
            if stopped():
                return
            if child is None:
                child = _Child(memory)
            begun = time.monotonic()
            child.send(item)
            while not child.ready(POLL):
                if stopped():
                    return
                if time.monotonic() - begun > timeout:
                    break
            outcome = child.outcome(item, time.monotonic() - begun, timeout)
            yield outcome
            if outcome.verdict in ("timeout", "died", "memory"):
                child.end()
                child = None
    finally:
        if child is not None:
            child.end()


class _Child:
    def __init__(self, memory: int) -> None:
        context = multiprocessing.get_context("fork")
        self._mine, its = context.Pipe()
        gc.freeze()  # else the child copies the parent's pages when it first collects
        # Any: the class depends on the context
        self._process: Any = context.Process(
            target=_work, args=(its, self._mine, memory), daemon=True
        )
        self._process.start()
        gc.unfreeze()
        its.close()

    def send(self, item: Item) -> None:
        self._mine.send_bytes(msgspec.json.encode(item))

    def ready(self, seconds: float) -> bool:
        return self._mine.poll(seconds)

    def outcome(self, item: Item, seconds: float, timeout: float) -> Outcome:
        if not self._mine.poll(0):
            return Outcome(
                id=item.id, item=item, verdict="timeout", seconds=seconds,
                why=f"it had not ended after {timeout:g} s",
            )  # fmt: skip
        try:
            return msgspec.json.decode(self._mine.recv_bytes(), type=Outcome)
        except (EOFError, ConnectionError):
            self._process.join(LAST_WORDS)
            code = self._process.exitcode
            why = f"exit code {code}"
            if code is not None and code < 0:
                why = f"signal {signal.Signals(-code).name}"
            return Outcome(id=item.id, item=item, verdict="died", seconds=seconds, why=why)

    def end(self) -> None:
        self._mine.close()
        self._process.kill()
        self._process.join()
        self._process.close()


def _work(pipe: Connection, others: Connection, memory: int) -> None:
    """A child: one item after another until the pipe is closed."""
    others.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if memory:
        with open("/proc/self/statm") as file:  # pages
            held = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + memory, held + memory))
    while True:
        try:
            item = msgspec.json.decode(pipe.recv_bytes(), type=Item)
        except EOFError:
            return
        try:
            outcome = run(item)
        except MemoryError:
            outcome = Outcome(
                id=item.id, item=item, verdict="memory", why=f"more than {memory >> 20} MiB"
            )
        except Exception as error:
            outcome = Outcome(
                id=item.id, item=item, verdict="error", why=f"{type(error).__name__}: {error}"
            )
        pipe.send_bytes(msgspec.json.encode(outcome))
