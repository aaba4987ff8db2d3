"""An end to waiting for code that runs in this process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType

from seriatim_models.conformance.protocol import Fault


def limited(seconds: float, what: str) -> AbstractContextManager[None]:
    """Raise `Fault` in what runs inside, if it takes longer; see `interrupted`."""
    return interrupted(seconds, Fault("silent", f"gave no answer to {what} within {seconds:g} s"))


@contextmanager
def interrupted(seconds: float, error: BaseException) -> Iterator[None]:
    """Raise `error` in what runs inside, if it takes longer.

    By an alarm signal, which reaches the main thread alone: elsewhere, and on Windows, nothing is limited.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "setitimer"
    ):
        yield
        return

    def late(number: int, frame: FrameType | None) -> None:
        raise error

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
