"""An implementation as a child process that speaks `protocol` over its standard input and output.

The child is not trusted: it may write nothing, garbage, half a line or gigabytes, never read, die, ignore signals, or
leave processes behind. Every wait has an end, every buffer a size, and whatever happens the child and what it
started are killed: its process group, and on Linux, where a `supervisor` stands between, all that came of it.
Elsewhere who forks twice and begins a session of its own lives on.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import msgspec

from seriatim_models.conformance import supervisor
from seriatim_models.conformance.protocol import (
    FLOOD_MAX,
    LINE_MAX,
    PUSHES_MAX,
    VERSION,
    Answer,
    Fault,
    Push,
    Request,
    abilities,
    as_answer,
    as_hello,
    as_push,
    parse,
)

MARK = "SERIATIM_CHILD"
SUPERVISED = sys.platform == "linux"
SUPERVISOR = (sys.executable, "-I", "-S", supervisor.__file__)
HASTE = 0.5
"""Seconds that are always waited for an answer."""
DYING = 2.0
"""Seconds that what was killed may take to be gone."""
STDERR_KEPT = 2000  # bytes, the last ones, shown when the child fails
HALF_LINE = "; what came was half a line"


class ChildProcess:
    """`System` over a pipe. One child serves one script after another; after a fault a new one is started."""

    exact = True
    starting: float | None = None
    """Seconds that the handshake may take; None for the patience of any answer."""

    def __init__(self, command: str, *, patience: float = 5.0) -> None:
        """`patience` is how many seconds an answer may take. Raises `Fault` if there is no handshake."""
        self._arguments = shlex.split(command)
        self._patience = patience
        self._slowest = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._pushes: list[Push] = []
        self.name, self.version = command, ""
        self.can: frozenset[str] = frozenset()
        self._start()

    # ---- System

    def reset(self) -> None:
        if self._process is None:
            self._start()
        self._pushes.clear()
        self._ask(Request(op="reset"))
        self._pushes.clear()

    def do(self, request: Request) -> Answer:
        return self._ask(request)

    def sync(self) -> bool:
        self._ask(Request(op="sync"))
        return True

    def pushed(self) -> list[Push]:
        taken, self._pushes = self._pushes, []
        return taken

    def end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            self._selector.close()
            reap(process, self._mark)

    # ---- the pipe

    def _start(self) -> None:
        self._mark = uuid.uuid4().hex
        self._process = spawned(self._arguments, self._mark)
        self._output = bytearray()
        self._stderr = bytearray()
        self._number = 0
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        assert all(pipes)
        self._in, self._out, self._err = (pipe.fileno() for pipe in pipes if pipe)
        self._selector = selectors.DefaultSelector()
        for fd in (self._in, self._out, self._err):
            os.set_blocking(fd, False)
        for fd in (self._out, self._err):
            self._selector.register(fd, selectors.EVENT_READ)
        try:
            hello = as_hello(self._exchange(Request(op="hello", protocol=VERSION), self.starting))
        except Fault:
            self.end()
            raise
        self.name, self.version = hello.name or self.name, hello.version
        self.can = abilities(hello.can)

    def _ask(self, request: Request, within: float | None = None) -> Answer:
        if self._process is None:
            raise Fault("died", "is not running any more")
        try:
            return as_answer(self._exchange(request, within))
        except Fault:
            self.end()
            raise

    def _exchange(self, request: Request, within: float | None = None) -> dict[str, object]:
        """Send one request and read until its answer; what is pushed meanwhile is kept.

        `within` is how many seconds the answer may take, if not the usual.
        """
        self._number += 1
        request = msgspec.structs.replace(request, id=self._number)
        waiting = memoryview(msgspec.json.encode(request) + b"\n")
        begun = time.monotonic()
        until = begun + (self._patience if within is None else within)
        budget = FLOOD_MAX
        if len(waiting):
            self._selector.register(self._in, selectors.EVENT_WRITE)
        try:
            while True:
                while (line := self._line()) is not None:
                    message = parse(line)
                    if "ev" in message:
                        self._push(as_push(message))
                    elif message.get("id") == self._number and not len(waiting):
                        self._slowest = max(self._slowest, time.monotonic() - begun)
                        return message
                    else:
                        why = f"answered {message.get('id')!r} when {self._number} was asked"
                        raise Fault("garbage", why)
                ready = self._selector.select(max(0.0, until - time.monotonic()))
                if not ready and time.monotonic() >= until:
                    raise self._late(request, bool(len(waiting)), until - begun)
                for key, _ in ready:
                    if key.fd == self._in:
                        waiting = self._write(waiting)
                    else:
                        budget -= self._read(key.fd, request)
                        if budget < 0:
                            raise Fault(
                                "flood", f"wrote more than {FLOOD_MAX:,} bytes to one {request.op}"
                            )
        finally:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(self._in)

    def _write(self, waiting: memoryview) -> memoryview:
        try:
            waiting = waiting[os.write(self._in, waiting) :]
        except BlockingIOError:
            return waiting
        except OSError:
            # It closed its input; whether it ended or only does not listen, reading shows.
            waiting = waiting[:0]
        if not len(waiting):
            self._selector.unregister(self._in)
        return waiting

    def _read(self, fd: int, request: Request) -> int:
        """Bytes read, of either stream."""
        try:
            block = os.read(fd, LINE_MAX)
        except BlockingIOError:
            return 0
        if fd == self._err:
            if not block:
                self._selector.unregister(fd)
            self._stderr += block
            del self._stderr[:-STDERR_KEPT]
        elif not block:
            raise self._ended(request)
        else:
            self._output += block
            if len(self._output) > LINE_MAX and b"\n" not in self._output:
                raise Fault("flood", f"wrote a line longer than {LINE_MAX:,} bytes")
        return len(block)

    def _line(self) -> bytes | None:
        end = self._output.find(b"\n")
        if end < 0:
            return None
        line = bytes(self._output[:end])
        del self._output[: end + 1]
        return line

    def _push(self, push: Push) -> None:
        if len(self._pushes) >= PUSHES_MAX:
            raise Fault("flood", f"pushed more than {PUSHES_MAX:,} times")
        self._pushes.append(push)

    def _late(self, request: Request, unread: bool, waited: float) -> Fault:
        if unread:
            return Fault("deaf", f"did not read a request within {waited:g} s")
        half = HALF_LINE if self._output else ""
        why = f"gave no answer to {request.op} within {waited:g} s{half}{self._stderr_end()}"
        # It will be silent again in every attempt to shorten the script: then wait no longer than a multiple of the
        # slowest answer.
        if self._number > 1:
            self._patience = min(self._patience, max(HASTE, 20 * self._slowest))
        return Fault("silent", why)

    def _ended(self, request: Request) -> Fault:
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(supervisor.GRACE)
        with contextlib.suppress(OSError):
            self._stderr += os.read(self._err, LINE_MAX)
        code = self._process.returncode
        how = (
            "closed its output"
            if code is None
            else f"was killed by signal {-code}"
            if code < 0
            else f"ended with exit code {code}"
        )
        half = HALF_LINE if self._output else ""
        return Fault("died", f"{how} when {request.op} was asked{half}{self._stderr_end()}")

    def _stderr_end(self) -> str:
        text = bytes(self._stderr[-STDERR_KEPT:]).decode("utf-8", "backslashreplace").strip()
        return f"; the end of its standard error: {text.splitlines()[-1]}" if text else ""


def spawned(arguments: list[str], mark: str) -> subprocess.Popen[bytes]:
    """A command with pipes for its three streams, which `reap` ends. Raises `Fault` if it cannot be started."""
    try:
        if shutil.which(arguments[0]) is None:
            number = errno.EACCES if Path(arguments[0]).exists() else errno.ENOENT
            raise OSError(number, os.strerror(number))
        return subprocess.Popen(
            [*SUPERVISOR, *arguments] if SUPERVISED else arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, MARK: mark, "PYTHONUNBUFFERED": "1"},
        )
    except (OSError, ValueError, IndexError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise Fault("start", f"cannot be started: {why}") from None


def reap(process: subprocess.Popen[bytes], mark: str) -> None:
    """End a child and all that it started, and leave no zombie."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    _signal_group(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(supervisor.GRACE + (DYING if SUPERVISED else 0))
    # The group is killed even if its leader has ended: others of it may live. No other group can have the number
    # as long as one of them does, and if none does there is nobody to hit.
    _signal_group(process.pid, signal.SIGKILL)
    process.wait()
    until = time.monotonic() + DYING
    while (left := marked(mark)) and time.monotonic() < until:
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def marked(mark: str) -> list[int]:
    """Processes that were started with a mark in their environment. None where there is no /proc."""
    wanted = f"{MARK}={mark}".encode()
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                pids.append(int(folder.name))
    return pids
