"""A limit of processor seconds for a part of a process, which does not outlive that part."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType


class Endless(BaseException):
    """What runs has used all the seconds that it was given: a loop without end, in which no step of a schedule is."""


class ProcessorLimit:
    """What became of a limit."""

    def __init__(self) -> None:
        self.exceeded_in = ""
        """The innermost function of a reference that ran when the seconds were over; '' if they were not."""

    def __bool__(self) -> bool:
        return bool(self.exceeded_in)


@contextmanager
def processor_seconds(seconds: float) -> Iterator[ProcessorLimit]:
    """Raise `Endless` in what runs when it has used so many seconds of the processor, and each second after that.

    `Endless` ends with the block: whoever asked looks at the limit. Only in the main thread, where signals arrive;
    elsewhere there is no limit.
    """
    limit = ProcessorLimit()
    if threading.current_thread() is not threading.main_thread():
        yield limit
        return

    def over(signum: int, frame: FrameType | None) -> None:
        limit.exceeded_in = limit.exceeded_in or _place(frame)
        raise Endless(limit.exceeded_in)

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
    try:
        yield limit
    except Endless:
        pass
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def _place(frame: FrameType | None) -> str:
    """The innermost function of a reference, or of a mutant of it, that is running."""
    innermost = frame
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("seriatim."):
            return f"{frame.f_code.co_qualname}"
        frame = frame.f_back
    return "" if innermost is None else innermost.f_code.co_qualname


def location(error: BaseException) -> str:
    """Return the function in which an error was raised."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else trace.tb_frame.f_code.co_qualname
