"""Processes that work for another one, and end when that does."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar, cast

T = TypeVar("T")

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with(parent: int) -> None:
    """Die when the parent does, even by SIGKILL and in the middle of an item. Called in the child.

    Only Linux can do this; elsewhere a child ends when it next looks for an item.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before that
            os._exit(1)


STOPPING = (signal.SIGINT, signal.SIGTERM)
"""Signals for the parent that come to its whole process group, from a terminal, `timeout` or a service manager."""


@contextmanager
def shielded() -> Iterator[None]:
    """Begin processes with `STOPPING` blocked: one that came before `leave_to_parent` would end them, or be printed."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_to_parent() -> None:
    """Have `STOPPING` do nothing here, also what came since the process began. Called in the child."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)


class ShieldedProcesses(ProcessPoolExecutor):
    """A pool whose processes begin `shielded`."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Submit a call, for which a process may be started."""
        with shielded():
            return super().submit(fn, *args, **kwargs)


@contextmanager
def processes(
    jobs: int, begin: Callable[..., None] | None = None, *given: Any
) -> Iterator[ProcessPoolExecutor]:
    """Give a pool whose processes leave `STOPPING` to this one, and are ended with it, or when the body is left.

    They are spawned, not forked: they share nothing with this process. Each calls `begin` first, with what is given.
    """
    pool = ShieldedProcesses(
        jobs,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin,
        initargs=(os.getpid(), begin, given),
    )
    try:
        with _failing_with_its_manager(pool):
            yield pool
    finally:
        working = list((pool._processes or {}).values())
        manager = cast("threading.Thread | None", pool._executor_manager_thread)
        pool.shutdown(wait=False, cancel_futures=True)
        for process in working:
            process.kill()
        # It closes the pipe into which the interpreter would write at its end: a traceback, if it did so meanwhile.
        if manager is not None and manager.ident is not None:  # None: it could not be started
            manager.join()


@contextmanager
def _failing_with_its_manager(pool: ProcessPoolExecutor) -> Iterator[None]:
    """Let what ends the thread that manages a pool, as that no more threads may be started, end all that waits for the
    pool: the library only prints it, and waits for ever.
    """
    before = threading.excepthook

    def ended(what: threading.ExceptHookArgs) -> None:
        manager = cast("threading.Thread | None", pool._executor_manager_thread)
        if manager is None or what.thread is not manager:
            before(what)
            return
        for waiting in list(pool._pending_work_items.values()):
            waiting.future.set_exception(what.exc_value or what.exc_type())

    threading.excepthook = ended
    try:
        yield
    finally:
        threading.excepthook = before


def _begin(parent: int, begin: Callable[..., None] | None, given: tuple[Any, ...]) -> None:
    leave_to_parent()
    end_with(parent)
    gc.freeze()  # what the imports have left need not be looked at again
    if begin is not None:
        begin(*given)
