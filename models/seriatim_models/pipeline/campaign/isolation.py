"""Items in a process of their own, so that one that hangs, dies or eats all memory is a result and not the end.

One child works off item after item, and batch after batch; only what it dies of costs a new child.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import mmap
import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

import msgspec

from seriatim_models.pipeline.campaign.items import Item, Outcome, run

POLL = 0.1  # seconds between looks whether to stop
LAST_WORDS = 1.0  # seconds a child has to end when it is told to
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Guard:
    """Who has items done by a child, and a new one whenever that is lost."""

    def __init__(self, memory: int) -> None:
        """`memory` in bytes of address space, for each item, on top of what the child has when the item begins."""
        self._memory = memory
        self._child: _Child | None = None

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the child, whatever it does. There will be another if there is more to do."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def outcomes(
        self, batch: Sequence[Item], timeout: float, stopped: Callable[[], bool]
    ) -> Iterator[Outcome]:
        """What comes of each item, in their order, until `stopped`. `timeout` in seconds for one item."""
        for item in batch:
            if stopped():
                return
            if self._child is None or not self._child.alive():
                self.close()
                self._child = _Child(self._memory)
            child = self._child
            outcome = None
            try:
                outcome = _waited(child, item, timeout, stopped)
            finally:
                if outcome is None or outcome.verdict in ("timeout", "died", "memory"):
                    self.close()  # it is busy, or dead, or who knows what it still holds
            if outcome is None:
                return
            yield outcome


@functools.cache
def kept(memory: int) -> Guard:
    """This process's guard, whose child lasts from batch to batch. It ends when this process does."""
    return Guard(memory)


def _waited(
    child: _Child, item: Item, timeout: float, stopped: Callable[[], bool]
) -> Outcome | None:
    begun = time.monotonic()
    child.send(item)
    while not child.ready(min(POLL, timeout)):
        if stopped():
            return None
        if time.monotonic() - begun > timeout:
            break
    return child.outcome(item, time.monotonic() - begun, timeout)


class _Child:
    def __init__(self, memory: int) -> None:
        context = multiprocessing.get_context("fork")
        self._mine, its = context.Pipe()
        self._reached = memoryview(mmap.mmap(-1, 8)).cast("q")  # shared with the child
        # Any: the class depends on the context
        self._process: Any = context.Process(
            target=_work, args=(its, self._mine, memory, os.getpid(), self._reached), daemon=True
        )
        self._process.start()
        its.close()

    def alive(self) -> bool:
        return bool(self._process.is_alive())

    def send(self, item: Item) -> None:
        # One that has died meanwhile will be noticed when its answer is looked for.
        with contextlib.suppress(ConnectionError):
            self._mine.send_bytes(msgspec.json.encode(item))

    def ready(self, seconds: float) -> bool:
        return self._mine.poll(seconds)

    def outcome(self, item: Item, seconds: float, timeout: float) -> Outcome:
        out = Outcome(id=item.id, item=item.told(), verdict="timeout", seconds=seconds)
        out.reached = self._reached[0]
        if not self._mine.poll(0):
            out.why = f"it had not ended after {timeout:g} s"
            return out
        try:
            return msgspec.json.decode(self._mine.recv_bytes(), type=Outcome)
        except (EOFError, ConnectionError):
            self._process.join(LAST_WORDS)
            code = self._process.exitcode
            out.verdict, out.why = "died", f"exit code {code}"
            if code is not None and code < 0:
                out.why = f"signal {signal.Signals(-code).name}"
            return out

    def end(self) -> None:
        self._mine.close()
        self._process.kill()
        self._process.join()
        self._process.close()


def _work(
    pipe: Connection, others: Connection, memory: int, parent: int, reached: memoryview
) -> None:
    """A child: one item after another until the pipe is closed."""
    gc.freeze()  # else it copies the parent's pages when it first collects
    others.close()
    # Sent to all processes of a group, when Ctrl-C is typed or Spark ends its workers: our end would be taken for the
    # item's. We end with our parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _end_with(parent)
    while True:
        try:
            item = msgspec.json.decode(pipe.recv_bytes(), type=Item)
        except EOFError:
            return
        if memory:
            _allow(memory)
        out = Outcome(id=item.id, item=item.told(), verdict="error")
        begun = time.process_time()
        reached[0] = 0
        try:
            out = run(item, lambda n: reached.__setitem__(0, n))
        except MemoryError:
            out.verdict, out.why = "memory", f"more than {memory >> 20} MiB"
        except Exception as error:
            out.why = f"{type(error).__name__}: {error}"
        out.reached = reached[0]
        out.processor = time.process_time() - begun
        pipe.send_bytes(msgspec.json.encode(out))


def _end_with(parent: int) -> None:
    """Die when the parent does, even by SIGKILL and in the middle of an item. Where that cannot be had (it is Linux's),
    a child ends when it next looks for an item."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before that
            os._exit(1)


def _allow(memory: int) -> None:
    """So many bytes more than are held now."""
    with open("/proc/self/statm") as file:  # pages
        held = int(file.read().split()[0]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (held + memory, most))
