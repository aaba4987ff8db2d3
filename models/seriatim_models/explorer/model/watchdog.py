"""An exploration that stands still is ended with the line on which it stands.

One step of a thread of the model is a few lines of Python. A real wait in it (a queue, a socket, a lock that another
thread of the model holds) stops all threads at once, since all of them are greenlets of one thread of the system, and
a loop over a plain attribute never ends. No budget would be looked at again.
So a thread of its own looks twice a second at where the exploration is. If it is still in the same step after some
seconds, it is interrupted there: by a signal if it runs in the main thread, which also ends a wait;
elsewhere only a loop can be ended, and a wait is at least named on stderr.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import accumulate, chain, repeat, starmap, tee
from operator import attrgetter, itemgetter
from pathlib import Path, PurePath
from types import CodeType, FrameType
from typing import Any

from seriatim_models.explorer.errors import ExplorerError, OutsideModel
from seriatim_models.explorer.model import execution
from seriatim_models.explorer.model.guard import HARNESS, explores_own_code, foreign, place

PATIENCE = 10.0
"""Seconds that one step may take; fewer if the whole exploration has fewer."""

OWN_CODE = 4.0
"""Seconds that a step of ordinary Python may take: there, what waits for real is the rule and no accident."""

LEAST = 2.0
"""Seconds that a step may take however small the budget is."""

EVERY = 0.5
"""Seconds between two looks."""

COMPUTES = 0.1
"""A thread that used so much of the time, or more, has computed and not waited; a busy machine gives it no more."""

AT_LEAST = 0.2
"""So much of the time counts also while others keep the thread from the processor: an end must come."""

CHECKS: dict[CodeType, int] = {}
"""Functions of the explorer that call a program's checks, and how many times longer these may take than a step."""

SIGNAL = getattr(signal, "SIGURG", None)
"""Ignored by default, so that one that comes too late does no harm."""

READ_ALONG = ("ex", "thread", "result", "error")
"""The variables of `execution._work` that hold something of an execution."""

Place = tuple[FrameType, CodeType]
"""Where a thread is, or has called from."""

_sleep, _now, _process_time = time.sleep, time.monotonic, time.process_time


@dataclass(eq=False)
class Patience:
    """How long one step may take instead, while a `patient` runs."""

    processor: float | None = None
    """Seconds of processor time of this process; None: as long as it likes."""
    error: OutsideModel | None = None
    """What was interrupted because it took longer."""


_asked: list[Patience] = []
"""One for each `patient` that runs, the innermost last."""


@contextmanager
def patient(processor: float | None = None) -> Iterator[Patience]:
    """While the body runs nothing is interrupted, for a person is asked what to do; or `processor` says when.

    So many seconds of processor time do not depend on what else the machine does. What waits for something real uses
    none, and is not ended.
    """
    patience = Patience(processor)
    _asked.append(patience)
    try:
        yield patience
    finally:
        _asked.remove(patience)


class Watch:
    """One exploration that is watched."""

    def __init__(self, seconds: float | None) -> None:
        self.own_code = explores_own_code()
        most = OWN_CODE if self.own_code else PATIENCE
        self.patience = most if seconds is None else min(most, max(LEAST, seconds))
        self.thread = threading.get_ident()
        self.native = threading.get_native_id()
        self.main = threading.current_thread() is threading.main_thread() and SIGNAL is not None
        self.error: OutsideModel | None = None
        """What it was interrupted with."""
        self.times = 0
        """How often; a program may swallow the error."""
        self._seen: tuple[int, ...] = ()
        self._still = 0.0
        self._used = 0.0
        self._spent = 0.0
        self._kept_waiting = 0.0

    def look(self) -> None:
        """See where the exploration is, and interrupt it if it has been there for too long.

        What counts is the time in which its thread has run, or has waited for something else than a processor; of who
        is `patient` the processor time alone.
        """
        before, self._kept_waiting = self._kept_waiting, _time_kept_waiting(self.native)
        frames = _frames_of(self.thread)
        bottom, factor = _bottom(frames)
        if bottom is None:
            self._seen, self._still = (), 0.0
            return
        ex = _local(bottom, "ex")
        # A module of ordinary Python that is imported is progress, too: rewriting a large one takes a second.
        seen = (
            id(bottom),
            getattr(ex, "nth", 0),
            getattr(ex, "steps", 0),
            len(getattr(ex, "modules", ())),
        )
        asked = _asked[-1] if _asked else None
        if self.error is not None and asked is None:
            self._send()  # it was swallowed, and what goes on says nothing any more
            return
        if seen != self._seen or (asked is not None and asked.processor is None):
            self._seen, self._still = seen, 0.0
            self._used, self._spent = _processor_time(self.thread), _process_time()
            return
        if asked is not None and asked.processor is not None:
            if _process_time() - self._spent >= asked.processor * factor:
                self._spent = _process_time()
                self._interrupt(frames, bottom, True, f"{asked.processor:.0f} s of processor time")
            return
        self._still += max(AT_LEAST * EVERY, EVERY - (self._kept_waiting - before))
        if self._still >= self.patience * factor:
            used = _processor_time(self.thread) - self._used
            computes = used >= COMPUTES * self._still
            self._still = 0.0
            self._interrupt(frames, bottom, computes, f"{self.patience:.0f} s")

    def _interrupt(
        self, frames: Sequence[Place], bottom: FrameType, computes: bool, how_long: str
    ) -> None:
        thread = _local(bottom, "thread")
        who = f"thread {thread.name}" if thread is not None else "a check of at_end()"
        why = (
            "Real locks, queues, sockets, processes and sleeps stop all threads of the model at once, and a loop on a "
            "plain attribute never ends. Use world.lock(), world.condition(lock), world.semaphore(n) or a cell "
            "instead, and wait on a condition instead of in a loop"
        )
        if self.own_code and computes:
            why = (
                f"It does not wait, but computes ({_innermost(frames)}): a long computation, which needs less to do in "
                "the test, or a loop that does not end in this schedule"
            )
        elif self.own_code:
            why = (
                "A real wait (a socket, a pipe, a process, a lock of a module that is not observed) stops all threads "
                "at once. Put a stub in its place in the test, or name the module that waits in modules="
            )
        stands = next((frame for frame, code in frames if foreign(code)), None)
        self.error = OutsideModel(
            f"{who} has come no further for {how_long}: it is at {place(stands)}. {why}"
        )
        if _asked:
            _asked[-1].error = self.error
        if not self.main:
            # Not sys.stderr, which may be what a program is given.
            print(f"seriatim explorer: {self.error}", file=sys.__stderr__, flush=True)
        self._send()

    def _send(self) -> None:
        self.times += 1
        if self.main and SIGNAL is not None:
            signal.pthread_kill(self.thread, SIGNAL)
        else:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self.thread),
                ctypes.py_object(OutsideModel if self.times == 1 else KeyboardInterrupt),
            )

    def interrupted(self, number: int, frame: FrameType | None) -> None:
        """The handler of the signal: raise what was found, if it is still so."""
        walked = () if frame is None else traceback.walk_stack(frame)
        around = [(f, f.f_code) for f, _ in walked]
        if self.error is None or _bottom(around)[0] is None:
            return
        if self.times > 1:  # the error was swallowed: this one leaves `except Exception`, too
            raise KeyboardInterrupt(str(self.error))
        raise self.error


def _innermost(frames: Sequence[Place]) -> str:
    """File, line and function of the innermost code, also of the library, that is not the explorer's."""
    others = (p for p in frames if not p[1].co_filename.startswith(str(HARNESS)))
    frame, code = next(others, frames[0])
    return f"{PurePath(code.co_filename).name}:{frame.f_lineno} in {code.co_name}"


def _processor_time(thread: int) -> float:
    """Seconds of the processor that a thread of the system has used; 0 where the system does not say."""
    clock = getattr(time, "pthread_getcpuclockid", None)
    return 0.0 if clock is None else time.clock_gettime(clock(thread))


def _time_kept_waiting(native: int) -> float:
    """Seconds in which a thread of the system could have run and got no processor; 0 where the system does not say.

    On a machine that others keep busy a step of a tenth of a second may last for many.
    """
    try:
        return int(Path(f"/proc/self/task/{native}/schedstat").read_bytes().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def _local(frame: FrameType, name: str) -> Any:  # Any: whatever the variable holds
    """The value of a variable of the explorer's frame, None if it has none.

    Before Python 3.13 a frame keeps what was once read from it, and that of an idle greenlet lives on, out of sight of
    the garbage collector: each look kept an execution for ever. So it is taken out again, unless a debugger reads it.
    """
    variables = frame.f_locals
    value = variables.get(name)
    if isinstance(variables, dict) and frame.f_trace is None:
        for kept in READ_ALONG:
            variables.pop(kept, None)
    return value


def _frames_of(thread: int) -> list[Place]:
    """The frames of another thread with their code, the innermost first; none if it has ended.

    They are taken by one call of C, in which that thread cannot run. Between two lines of Python it may go on and leave
    a greenlet, and then a frame of that one, or its `f_back`, may be memory of something else: the process crashed.
    """
    now = map(itemgetter(thread), starmap(sys._current_frames, [()]))
    frames, again = tee(accumulate(chain(now, repeat("f_back")), getattr))
    found: deque[Place] = deque()
    with suppress(KeyError, AttributeError):  # the outermost frame has none behind it
        found.extend(zip(frames, map(attrgetter("f_code"), again), strict=True))
    return list(found)


def _bottom(frames: Iterable[Place]) -> tuple[FrameType | None, int]:
    """The frame of the explorer that has called the program's code, and its factor of patience."""
    for frame, code in frames:
        if code is execution._work.__code__:
            return frame, 1
        if code in CHECKS:
            return frame, CHECKS[code]
    return None, 1


_locks = [threading.Lock()]
_watches: list[Watch] = []
_watcher: list[int] = []
"""The thread that looks, by its number."""


def _forget() -> None:
    """In a process that was forked nobody looks, and the lock may be held by who does not exist there."""
    _locks[0] = threading.Lock()
    _watches.clear()
    _watcher.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _look_on() -> None:
    while True:
        _sleep(EVERY)
        with _locks[0]:
            if not _watches:
                _watcher.clear()
                return
            watches = list(_watches)
        for watch in watches:
            watch.look()


def _begin(watch: Watch) -> None:
    with _locks[0]:
        _watches.append(watch)
        if not _watcher:
            # Not by `threading`, whose start waits for the thread: for ever, if that has no memory to begin.
            with suppress(RuntimeError):  # no room for a thread: then nobody looks
                _watcher.append(_thread.start_new_thread(_look_on, ()))


@contextmanager
def watched(seconds: float | None = None) -> Iterator[None]:
    """Interrupt what stands still in the body; raises `OutsideModel`. `seconds`: the budget of the exploration."""
    watch = Watch(seconds)
    _begin(watch)
    before: Callable[..., Any] | int | None = None
    if watch.main and SIGNAL is not None:
        before = signal.signal(SIGNAL, watch.interrupted)
    try:
        yield
        if watch.error is not None:
            raise watch.error
    except (KeyboardInterrupt, ExplorerError) as error:  # also what came of being interrupted
        if watch.error is not None and error is not watch.error:
            raise watch.error from None
        raise
    finally:
        if watch.main and SIGNAL is not None:
            signal.signal(SIGNAL, before or signal.SIG_DFL)
        with _locks[0]:
            if watch in _watches:
                _watches.remove(watch)
