"""How a process of ours ends at Ctrl-C and SIGTERM, from its first moment: in one word, by exit code 130 or 143."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import NoReturn

INTERRUPTED, TERMINATED = 130, 143
WORDS = {INTERRUPTED: b"seriatim: interrupted\n", TERMINATED: b"seriatim: terminated\n"}
IMPORTING = "<frozen importlib._bootstrap>"
"""The file of the frames that import a module."""


class Terminated(KeyboardInterrupt):
    """SIGTERM, as an exception: commands leave as they do at Ctrl-C."""


def interruption(error: BaseException | None) -> KeyboardInterrupt | None:
    """The Ctrl-C or SIGTERM that `error` is, or while which was being handled it was raised: a library that closes its
    connection may fail at that, and the failure takes the interrupt's place.
    """
    seen: set[int] = set()  # a chain of somebody else's may be a circle
    while error is not None and not isinstance(error, KeyboardInterrupt) and id(error) not in seen:
        seen.add(id(error))
        behind = None if error.__suppress_context__ else error.__context__
        error = error.__cause__ or behind
    return error if isinstance(error, KeyboardInterrupt) else None


def end_in_a_word() -> None:
    """Let this process, which is a command without the command line, end so; the second signal ends it at once."""
    sys.excepthook, sys.unraisablehook = in_a_word, _at_once
    for number, kind in ((signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)):
        usual = (signal.default_int_handler, signal.SIG_DFL)
        if signal.getsignal(number) in usual:  # and not ignored, as behind nohup or &
            signal.signal(number, _raising(kind))


def _raising(kind: type[KeyboardInterrupt]) -> Callable[[int, FrameType | None], None]:
    mine, asked = os.getpid(), False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if os.getpid() != mine:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        at = frame
        while at is not None and at.f_code.co_filename != IMPORTING:
            at = at.f_back
        # What is called back while a module is imported would swallow it.
        if asked or at is not None:
            leave(_code(kind))
        asked = True
        raise kind

    return interrupt


def _code(kind: type[BaseException]) -> int:
    return TERMINATED if issubclass(kind, Terminated) else INTERRUPTED


def in_a_word(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    """`sys.excepthook`: of what nobody caught."""
    if (interrupt := interruption(error)) is None:
        sys.__excepthook__(kind, error, where)
        return
    code = _code(type(interrupt))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # it is being ended
    _say(code)
    raise SystemExit(code)


def _at_once(what: sys.UnraisableHookArgs) -> None:
    """`sys.unraisablehook`: what is raised in what the interpreter calls by itself, as a finalizer, is lost else."""
    if not issubclass(what.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(what)
        return
    leave(_code(what.exc_type))


def leave(code: int) -> NoReturn:
    """End this process at once."""
    _say(code)
    os._exit(code)


def _say(code: int) -> None:
    with suppress(OSError):  # closed, or full: the exit code says it, too
        os.write(2, WORDS[code])
