"""An isolated worker: items are done in a child process, so that one that hangs, dies or takes all memory is a result.

One child does item after item, and batch after batch; only an item that ends it costs a new child.
"""

from __future__ import annotations

import contextlib
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

from seriatim_models.child_process import end_with
from seriatim_models.pipeline.campaign.items import ItemResult, SearchItem, Work

POLL = 0.1  # seconds between looks whether to stop
EXIT_WAIT = 1.0  # seconds that a child whose pipe is closed has to end


class IsolatedWorker:
    """Does items in a child process, and in a new one whenever that is lost."""

    def __init__(self, memory: int, work: Work) -> None:
        """`work` does an item, in the child.

        `memory` is in bytes of address space, for each item, on top of what the child has when the item begins.
        """
        self._memory = memory
        self._work = work
        self._child: _Child | None = None

    def __enter__(self) -> IsolatedWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the child, whatever it does. There will be another if there is more to do."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def results(
        self, batch: Sequence[SearchItem], timeout: float, stopped: Callable[[], bool]
    ) -> Iterator[ItemResult]:
        """The result of each item, in their order, until `stopped`. `timeout` in seconds for one item."""
        for item in batch:
            if stopped():
                return
            if self._child is None or not self._child.alive():
                self.close()
                self._child = _Child(self._memory, self._work)
            child = self._child
            result = None
            try:
                result = _wait_for_result(child, item, timeout, stopped)
            finally:
                if result is None or result.verdict in ("timeout", "died", "memory"):
                    self.close()  # it is busy, or dead, or holds memory that nobody can account for
            if result is None:
                return
            yield result


@functools.cache
def shared_worker(memory: int, work: Work) -> IsolatedWorker:
    """This process's worker, whose child lasts from batch to batch. It ends when this process does."""
    return IsolatedWorker(memory, work)


def _wait_for_result(
    child: _Child, item: SearchItem, timeout: float, stopped: Callable[[], bool]
) -> ItemResult | None:
    begun = time.monotonic()
    child.send(item)
    while not child.ready(min(POLL, timeout)):
        if stopped():
            return None
        if time.monotonic() - begun > timeout:
            break
    return child.result(item, time.monotonic() - begun, timeout)


class _Child:
    def __init__(self, memory: int, work: Work) -> None:
        context = multiprocessing.get_context("fork")
        self._mine, its = context.Pipe()
        self._reached = memoryview(mmap.mmap(-1, 8)).cast("q")  # shared with the child
        # Any: the class depends on the context
        self._process: Any = context.Process(
            target=_do_items,
            args=(its, self._mine, memory, work, os.getpid(), self._reached),
            daemon=True,
        )
        self._process.start()
        its.close()

    def alive(self) -> bool:
        return bool(self._process.is_alive())

    def send(self, item: SearchItem) -> None:
        # One that has died meanwhile will be noticed when its answer is looked for.
        with contextlib.suppress(ConnectionError):
            self._mine.send_bytes(msgspec.json.encode(item))

    def ready(self, seconds: float) -> bool:
        return self._mine.poll(seconds)

    def result(self, item: SearchItem, seconds: float, timeout: float) -> ItemResult:
        out = ItemResult(id=item.id, item=item.summary(), verdict="timeout", seconds=seconds)
        out.reached = self._reached[0]
        if not self._mine.poll(0):
            out.why = f"it had not ended after {timeout:g} s"
            return out
        try:
            return msgspec.json.decode(self._mine.recv_bytes(), type=ItemResult)
        except (EOFError, ConnectionError):
            self._process.join(EXIT_WAIT)
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


def _do_items(
    pipe: Connection, others: Connection, memory: int, work: Work, parent: int, reached: memoryview
) -> None:
    """The child: do one item after another until the pipe is closed."""
    gc.freeze()  # else it copies the parent's pages when it first collects
    others.close()
    # Sent to all processes of a group, when Ctrl-C is typed or Spark ends its workers: our end would be taken for the
    # item's. We end with our parent.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    end_with(parent)
    while True:
        try:
            item = msgspec.json.decode(pipe.recv_bytes(), type=SearchItem)
        except EOFError:
            return
        if memory:
            _limit_memory(memory)
        out = ItemResult(id=item.id, item=item.summary(), verdict="error")
        begun = time.process_time()
        reached[0] = 0
        try:
            out = work(item, lambda n: reached.__setitem__(0, n))
        except MemoryError:
            out.verdict, out.why = "memory", f"more than {memory >> 20} MiB"
        except Exception as error:
            out.why = f"{type(error).__name__}: {error}"
        out.reached = reached[0]
        out.processor = time.process_time() - begun
        pipe.send_bytes(msgspec.json.encode(out))


def _limit_memory(memory: int) -> None:
    """Limit this process's address space to so many bytes more than it has now."""
    with open("/proc/self/statm") as file:  # pages
        held = int(file.read().split()[0]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (held + memory, most))
