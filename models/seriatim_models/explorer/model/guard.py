"""While a program is explored, what reaches past the world fails with an error that names the replacement.

Only code that runs inside a controlled thread is stopped; all other threads, locks and clocks keep working.
What is written in Python is refused in its class or module, by whatever name a program knows it.
What is written in C can be refused in its module only; `survey` finds it where a program has it by another name.
"""

from __future__ import annotations

import _thread
import bdb
import builtins
import importlib
import linecache
import multiprocessing
import os
import queue
import select
import selectors
import signal
import socket
import socketserver
import sqlite3
import subprocess
import sys
import sysconfig
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import process
from contextlib import contextmanager
from multiprocessing import pool, shared_memory, synchronize
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from seriatim_models.explorer.errors import OutsideModel
from seriatim_models.explorer.model.execution import inside

QUEUE = "world.condition(lock) with a cell that holds the items"
EVENT = "world.condition(lock) with a cell"
SPAWN = "world.spawn(fn)"
PROCESS = "a test with real processes"
DEBUGGER = "the counterexample, which shows each step,"
POOL = "ThreadPoolExecutor of concurrent.futures"
SIGNAL = "a call of the handler by the program"
DATABASE = "a dict that stands for the database"
INPUT = "an argument of the program"
NETWORK = "an object of the host that stands for the other side"


def _interpreters() -> list[tuple[Any, str, str]]:
    """Interpreters of one process, which there are since 3.14: what runs in another one nobody sees."""
    if sys.version_info < (3, 14):
        return []
    of_pool: Any = importlib.import_module("concurrent.futures.interpreter")
    return [
        (importlib.import_module("concurrent.interpreters"), "create", PROCESS),
        (of_pool.InterpreterPoolExecutor, "__init__", POOL),
    ]


INSTEAD: tuple[tuple[Any, str, str], ...] = (
    (threading.Thread, "__init__", SPAWN),
    (threading.Thread, "start", SPAWN),
    (threading.Thread, "join", "the join() of what world.spawn(fn) returns"),
    (threading, "Lock", "world.lock()"),
    (threading, "RLock", "world.lock() (the model has no re-entrant lock)"),
    (threading, "Condition", "world.condition(lock)"),
    (threading, "Semaphore", "world.semaphore(n)"),
    (threading, "BoundedSemaphore", "world.semaphore(n)"),
    (threading, "Event", EVENT),
    (threading, "Barrier", EVENT),
    (threading, "Timer", "world.spawn(fn) and world.advance(ticks)"),
    *((threading.Condition, name, "world.condition(lock)") for name in (
        "__init__", "__enter__", "wait", "wait_for", "notify", "notify_all")),
    *((threading.Semaphore, name, "world.semaphore(n)") for name in (
        "__init__", "__enter__", "acquire", "release")),
    *((threading.Event, name, EVENT) for name in ("__init__", "wait", "set", "clear", "is_set")),
    *((threading.Barrier, name, EVENT) for name in ("__init__", "wait", "reset", "abort")),
    *((queue.Queue, name, QUEUE) for name in (
        "__init__", "put", "get", "join", "task_done", "qsize", "empty", "full")),
    (time, "sleep", "world.advance(ticks), or a wait with a time limit"),
    (time, "time", "world.now()"),
    (time, "time_ns", "world.now()"),
    (time, "monotonic", "world.now()"),
    (time, "monotonic_ns", "world.now()"),
    (time, "perf_counter", "world.now()"),
    (time, "perf_counter_ns", "world.now()"),
    *((os, name, PROCESS) for name in (
        "wait", "wait3", "wait4", "waitid", "waitpid", "system", "fork", "forkpty", "posix_spawn", "posix_spawnp",
        "execv", "execve", "kill", "killpg", "_exit", "abort")),
    *((os, name, NETWORK) for name in ("pipe", "pipe2", "eventfd", "mkfifo", "openpty")),
    *((signal, name, SIGNAL) for name in (
        "signal", "alarm", "setitimer", "raise_signal", "pause", "sigwait", "sigwaitinfo", "sigtimedwait",
        "pthread_kill", "pidfd_send_signal", "set_wakeup_fd")),
    (_thread, "interrupt_main", SIGNAL),
    *((pool, name, POOL) for name in ("Pool", "ThreadPool")),
    (pool.Pool, "__init__", POOL),
    (socketserver.BaseServer, "__init__", NETWORK),
    *((bdb.Bdb, name, DEBUGGER) for name in ("set_trace", "run", "runeval", "runcall")),
    (subprocess.Popen, "__init__", PROCESS),
    (multiprocessing.Process, "start", PROCESS),
    (process.ProcessPoolExecutor, "__init__", PROCESS),
    *_interpreters(),
    (queue, "SimpleQueue", QUEUE),
    (synchronize.SemLock, "__init__", PROCESS),
    (shared_memory.SharedMemory, "__init__", PROCESS),
    *((select, name, NETWORK) for name in ("select", "poll", "epoll", "kqueue")),
    (selectors._BaseSelectorImpl, "__init__", NETWORK),  # of all selectors
    *((sqlite3, name, DATABASE) for name in ("connect", "Connection")),
    (socket, "getaddrinfo", NETWORK),
    *((socket.socket, name, NETWORK) for name in (
        "__init__", "accept", "connect", "recv", "recv_into", "recvfrom", "send", "sendall", "sendto")),
    (builtins, "input", INPUT),
)  # fmt: skip

_leave = os._exit


def _not_twice() -> None:
    """End a process that an explored program has forked all the same, by C: it would explore and fork, too."""
    if inside():
        _leave(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_not_twice)

HARNESS = Path(__file__).resolve().parent.parent
"""Frames of files below are the explorer's own."""

STANDARD = (
    sysconfig.get_path("stdlib"),
    sysconfig.get_path("platstdlib"),
    "<frozen ",
    "<string>",
)
INSTALLED = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})

refused: list[OutsideModel] = []
"""What was refused since the outermost `guarded` began: a program may swallow it, and is no better for that."""


def program_text(path: str) -> bool:
    """Whether a file belongs to the program, and not to the explorer (also when installed) or the standard library."""
    if path.startswith(str(HARNESS)):
        return False
    return path.startswith(INSTALLED) or not path.startswith(STANDARD)


def foreign(code: CodeType) -> bool:
    """Whether some code belongs to the program and not to the explorer or the standard library."""
    return program_text(code.co_filename)


def place(frame: FrameType | None) -> str:
    """File, line and text of the innermost line of the program at or around `frame`, "" if there is none."""
    found = line_of(frame)
    return "" if found is None else _shown_place(*found)


def line_of(frame: FrameType | None) -> tuple[str, int, str] | None:
    """File, line and function of the innermost line of the program at or around `frame`."""
    while frame is not None and not foreign(frame.f_code):
        frame = frame.f_back
    return (
        None if frame is None else (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
    )


def raised_at(error: BaseException) -> str:
    """As `place`, for the innermost line of the program that an exception came through."""
    through = [t for t in traceback.walk_tb(error.__traceback__) if foreign(t[0].f_code)]
    if not through:
        return ""
    frame, line = through[-1]
    return _shown_place(frame.f_code.co_filename, line, frame.f_code.co_name)


def _shown_place(file: str, line: int, function: str) -> str:
    text = linecache.getline(file, line).strip()
    return f"{Path(file).name}:{line} in {function}" + (f" `{text}`" if text else "")


_own_code = 0


@contextmanager
def own_code() -> Iterator[None]:
    """While the body runs the program is ordinary Python, whose author knows nothing of a world or a host."""
    global _own_code
    _own_code += 1
    try:
        yield
    finally:
        _own_code -= 1


def explores_own_code() -> bool:
    """Whether the program that is explored is ordinary Python."""
    return _own_code > 0


def _user(frame: FrameType | None) -> str:
    """The module, or package, that uses what is refused; "" for code that is observed already."""
    if frame is None or Path(frame.f_code.co_filename).is_relative_to(HARNESS):
        return ""  # the rewritten code calls by a function of the explorer
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def refusal(what: str, instead: str, frame: FrameType | None) -> OutsideModel:
    """The error for a use of `what`, kept in `refused`."""
    where = place(frame)
    advice = f"Use {instead} instead"
    if explores_own_code():
        advice = "Put a stub in its place in the test"
        if instead is DEBUGGER:
            advice = (
                "Take it out: the counterexample shows each step, and its replay stops with --pdb"
            )
        elif instead is POOL:
            advice += f", or use a {POOL}"
        elif instead not in (PROCESS, NETWORK, SIGNAL, DATABASE, INPUT):
            name = _user(frame)
            advice += f", or have {name} observed: --module {name}" if name else ""
    error = OutsideModel(
        f"{what} is outside the model: no schedule controls it. {advice}"
        + (f" (at {where})" if where else "")
    )
    refused.append(error)
    return error


def name_of(owner: Any, name: str) -> str:
    """What an entry of `INSTEAD` is called."""
    where = (
        f"{owner.__module__}.{owner.__qualname__}" if isinstance(owner, type) else owner.__name__
    )
    return where if name == "__init__" else f"{where}.{name}"


class RefusedClass:
    """Stands for a class that threads of a program may not make objects of; for all else it is the class."""

    def __init__(self, what: str, instead: str, real: type) -> None:
        self._what = what
        self._instead = instead
        self._real = real

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if inside():
            raise refusal(self._what, self._instead, sys._getframe(1))
        return self._real(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __instancecheck__(self, thing: object) -> bool:
        return isinstance(thing, self._real)

    def __subclasscheck__(self, kind: type) -> bool:
        return issubclass(kind, self._real)

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return (self._real,)

    def __or__(self, other: Any) -> Any:
        return self._real | other

    def __ror__(self, other: Any) -> Any:
        return other | self._real


def refusing(what: str, instead: str, real: Any) -> Callable[..., Any]:
    """What refuses to be called by a thread of a program, and calls `real` for all others."""
    if isinstance(real, type):
        return RefusedClass(what, instead, real)

    def refuse(*args: Any, **kwargs: Any) -> Any:
        if inside():
            raise refusal(what, instead, sys._getframe(1))
        return real(*args, **kwargs)

    return refuse


_depth = 0
_replaced: list[tuple[Any, str, Any, bool]] = []
"""What the outermost `guarded` put something in the place of: owner, name, thing, and whether it is the owner's own."""


@contextmanager
def guarded() -> Iterator[None]:
    """Refuse while the body runs, and raise at its end what a program has swallowed. May be nested."""
    global _depth
    _depth += 1
    if _depth == 1:
        refused.clear()
        _refuse()
    try:
        yield
        if refused:
            raise refused[0]
    finally:
        _depth -= 1
        if _depth == 0:
            refused.clear()
            _allow()


@contextmanager
def lifted() -> Iterator[None]:
    """Within `guarded`: nothing is refused while the body runs.

    A module that is imported now keeps what it imports by name. If that refused, what it does later would depend on
    whether it was imported before.
    """
    there = [(owner, name, getattr(owner, name)) for owner, name, _, _ in _replaced]
    for owner, name, real, _ in _replaced:
        setattr(owner, name, real)
    try:
        yield
    finally:
        for owner, name, thing in there:
            setattr(owner, name, thing)


def _refuse() -> None:
    _replaced[:] = [
        (owner, name, getattr(owner, name), name in vars(owner))
        for owner, name, _ in INSTEAD
        if hasattr(owner, name)
    ]
    for owner, name, instead in INSTEAD:
        if hasattr(owner, name):
            setattr(owner, name, refusing(name_of(owner, name), instead, getattr(owner, name)))


def _allow() -> None:
    for owner, name, thing, its_own in _replaced:
        if its_own:
            setattr(owner, name, thing)
        else:
            delattr(owner, name)
    _replaced.clear()
