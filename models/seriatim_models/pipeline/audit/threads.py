"""One recording judged by several threads, each with a share of the checks.

NumPy and Arrow do most of that work without Python's lock. So threads gain what processes do, and have in common what
was read of a batch and what is worked out of it, which each process would have to do for itself.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from seriatim_models.properties.columnar.event_batch import EventBatch

Take = Callable[[EventBatch], None]
"""Adds the next events to a check."""

AHEAD = 2
"""Batches by which a thread may be ahead of another one. All of them are held."""
TURN = 0.0005
"""Seconds after which a thread in need of Python's lock asks for it. Python's own 5 ms are as long as a dozen steps of
NumPy on a batch.
"""


@contextmanager
def in_threads(shares: Sequence[Sequence[Take]]) -> Iterator[Take]:
    """Give what hands a batch to all that is shared out, and to each in order. The last share is taken by the caller,
    each other one by a thread of its own, or by the caller where the system allows no more of them. Behind the body all
    is taken; what one of them raised is raised here.
    """
    *apart, mine = shares
    waiting: deque[list[Future[None]]] = deque()
    with ExitStack() as behind:
        if apart:
            behind.callback(sys.setswitchinterval, sys.getswitchinterval())
            sys.setswitchinterval(TURN)
        threads: list[tuple[ThreadPoolExecutor, Sequence[Take]]] = []
        for share in apart:
            try:
                threads.append((behind.enter_context(_thread()), share))
            except RuntimeError:
                mine = [*mine, *share]

        def take(batch: EventBatch) -> None:
            waiting.append([thread.submit(_taken, share, batch) for thread, share in threads])
            _taken(mine, batch)
            if len(waiting) == AHEAD:
                _wait_for(waiting.popleft())

        yield take
        for futures in waiting:
            _wait_for(futures)


def read_ahead(batches: Iterable[EventBatch]) -> Iterator[EventBatch]:
    """The same batches, of which another thread, if it is allowed, reads the next while one is looked at."""
    reading = iter(batches)
    with ExitStack() as behind:
        try:
            thread = behind.enter_context(_thread())
        except RuntimeError:
            yield from reading
            return
        coming = thread.submit(next, reading, None)
        while (batch := coming.result()) is not None:
            coming = thread.submit(next, reading, None)
            yield batch


@contextmanager
def _thread() -> Iterator[ThreadPoolExecutor]:
    """A thread that begins nothing more when the body is left. Raises `RuntimeError` if the system allows no more."""
    thread = ThreadPoolExecutor(1)
    try:
        thread.submit(int)  # begins it
        yield thread
    finally:
        thread.shutdown(cancel_futures=True)


def _taken(share: Iterable[Take], batch: EventBatch) -> None:
    for take in share:
        take(batch)


def _wait_for(futures: Iterable[Future[None]]) -> None:
    for future in futures:
        future.result()
