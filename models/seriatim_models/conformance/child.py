"""An implementation as a child process that speaks `protocol` over its standard input and output.

It is asked by one client (`System`) or by several at once (`ConcurrentSystem`); one that speaks version 1 is asked by
one client after the other.

The child is not trusted: it may write nothing, garbage, half a line, two answers or gigabytes, never read, die, ignore
signals, or leave processes behind. Every wait has an end, every buffer a size, and whatever happens the child and what
it started are killed: its process group, and on Linux, where a `supervisor` stands between, all that came of it.
Elsewhere who forks twice and begins a session of its own lives on.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import msgspec

from seriatim_models.conformance.concurrent.client import (
    ConcurrentClient,
    OutcomeUnknown,
    Receiver,
)
from seriatim_models.conformance.meanings import NOTHING, meanings
from seriatim_models.conformance.protocol import (
    CONCURRENT,
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
from seriatim_models.supervisor import GRACE, MARK, SUPERVISED, supervised

HASTE = 0.5
"""Seconds that are always waited for an answer."""
STARTING = 10.0
"""Seconds that the handshake may take: a busy machine is slow to start a program."""
DYING = 2.0
"""Seconds that what was killed may take to be gone."""
STDERR_KEPT = 2000  # bytes, the last ones, of which the last line is shown when the child fails
STDERR_SHOWN = 300  # characters of it, the last ones
WRONG = re.compile(r"(?!\s).*(error|exception)|panic|fatal", re.IGNORECASE)
"""The beginning of a line that says what went wrong."""
TRACEBACK = "Traceback (most recent call last)"
HALF_LINE = "; what came was half a line"


class _Asked:
    """A request that is outstanding."""

    def __init__(self, op: str) -> None:
        self.op = op
        self.done = threading.Event()
        self.message: dict[str, object] | None = None


class ChildProcess:
    """`System` and `ConcurrentSystem` over pipes. One child serves one script after another; after a fault a new one is
    started.
    """

    exact = True
    starting = STARTING
    """Seconds that the handshake may take, if not more are allowed for any answer."""

    def __init__(
        self,
        command: str,
        *,
        patience: float = 5.0,
        protocol: str = VERSION,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`patience` is how many seconds an answer may take. Raises `Fault` if there is no handshake."""
        try:
            self._arguments = shlex.split(command)
        except ValueError as error:
            raise Fault("start", f"cannot be started: {error}") from None
        if not self._arguments:
            raise Fault("start", "cannot be started: the command is empty")
        self._patience, self._protocol = patience, protocol
        self._environment = dict(environment or {})
        self.starting = max(patience, self.starting)
        self._slowest = 0.0
        self.name, self.version = command, ""
        self.can: frozenset[str] = frozenset()
        self.means = NOTHING
        self.room: int | None = None
        self._start()

    # ---- System

    def reset(self) -> None:
        self.start()
        receivers = self.program.receivers
        for number in receivers:  # until it answers what was before may go on
            receivers[number] = _forget
        self.ask(Request(op="reset"))
        receivers.clear()
        self.program.pushes.clear()

    def do(self, request: Request) -> Answer:
        return self.ask(request)

    def sync(self) -> bool:
        return self.ask(Request(op="sync")).ok

    def pushed(self) -> list[Push]:
        taken, self.program.pushes = self.program.pushes, []
        return taken

    def end(self) -> None:
        self.program.end()

    # ---- ConcurrentSystem

    @property
    def one_at_a_time(self) -> bool:
        """Whether it speaks version 1, so that its clients take turns."""
        return self.program.turn is not None

    def connect(self, number: int, receive: Receiver) -> ConcurrentClient:
        """A client that is channel `number`."""
        self.program.receivers[number] = receive
        client = _ChildClient(self, self.program, number)
        if "open" in self.can:
            answer = client.do(Request(op="open", ch=number))
            if not answer.ok:
                raise Fault("garbage", f"refused to open a channel: {answer.why or 'no reason'}")
        return client

    # ---- the program

    def start(self) -> None:
        """Start a program if none is running. Raises `Fault` if there is no handshake."""
        if self.program.over:
            self._start()

    def _start(self) -> None:
        concurrent = self._protocol == CONCURRENT
        self.program = _RunningProgram(self._arguments, self._environment, concurrent)
        try:
            asked = Request(op="hello", protocol=self._protocol)
            hello = as_hello(self.program.exchange(asked, self.starting))
            self.name, self.version = hello.name or self.name, hello.version
            self.can = abilities(hello.can)
            self.means = meanings(hello.means, self.can)
        except Fault:
            self.end()
            raise
        if concurrent and hello.protocol == CONCURRENT:
            self.program.turn = None

    def ask(self, request: Request, within: float | None = None) -> Answer:
        """Ask and wait for the answer, `within` so many seconds if not the usual. Raises `Fault`; then it is ended."""
        return self.ask_program(self.program, request, within)

    def ask_program(
        self, program: _RunningProgram, request: Request, within: float | None = None
    ) -> Answer:
        """The same of a program that may not be the one that is running any more. Then it is that which failed."""
        try:
            with program.turn or contextlib.nullcontext():
                begun = time.monotonic()
                answer = program.exchange(request, self._patience if within is None else within)
                self._slowest = max(self._slowest, time.monotonic() - begun)
                return as_answer(answer)
        except Fault as fault:
            if fault.kind == "silent":
                # It will be silent again in every attempt to shorten the script: then wait no longer than a multiple
                # of the slowest answer.
                self._patience = min(self._patience, max(HASTE, 20 * self._slowest))
            # So that the other clients are given this reason, and not the end that follows.
            program.failed(fault)
            program.end()
            raise


def _forget(push: Push) -> None:
    """Take what nobody waits for any more."""


class _RunningProgram:
    """One process from its start to its end, and what was said to it and by it."""

    def __init__(
        self, arguments: list[str], environment: Mapping[str, str], concurrent: bool
    ) -> None:
        """Raises `Fault` if it cannot be started."""
        self.concurrent = concurrent
        """Whether what it pushes has a channel of its own."""
        self.pushes: list[Push] = []
        """What it pushed, if it has not."""
        self.receivers: dict[int, Receiver] = {}
        self.turn: threading.Lock | None = threading.Lock()
        """Who has it may ask; None if several may at once."""
        self.mark = uuid.uuid4().hex
        self.over = False
        self._ending = threading.RLock()
        self._asked: dict[int, _Asked] = {}
        self._number = 0
        self._fault: Fault | None = None
        self._budget, self._pushed = FLOOD_MAX, 0
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._output = bytearray()
        self._stderr = bytearray()
        self.process = spawned(arguments, self.mark, environment)
        stdin, stdout, stderr = self.process.stdin, self.process.stdout, self.process.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        self._stdin = stdin
        os.set_blocking(stdin.fileno(), False)
        self._errors = threading.Thread(target=self._read_errors, args=(stderr,), daemon=True)
        self._errors.start()  # whoever reads the end of the answers waits for the errors
        threading.Thread(target=self._read_answers, args=(stdout,), daemon=True).start()

    def end(self) -> None:
        """End it and all that it started. Returns when nothing is left, also if another thread ends it."""
        with self._ending:
            if not self.over:
                self.over = True
                self.failed(Fault("died", "was ended"))
                reap(self.process, self.mark)
                # A pipe is closed by whoever uses it: its number is soon that of another program's.
                with self._writing, contextlib.suppress(OSError):
                    self._stdin.close()

    def exchange(self, request: Request, patience: float) -> dict[str, object]:
        """Send one request and wait for its answer. Raises `Fault`."""
        begun = time.monotonic()
        asked = _Asked(request.op)
        with self._lock:
            if self._fault is not None:
                raise self._fault
            self._number += 1
            number = self._number
            self._asked[number] = asked
        data = msgspec.json.encode(msgspec.structs.replace(request, id=number)) + b"\n"
        self._write(data, begun + patience, patience)
        if not asked.done.wait(max(0.0, begun + patience - time.monotonic())):
            half = HALF_LINE if self._output else ""
            why = f"gave no answer to {request.op} within {patience:g} s{half}{self._stderr_end()}"
            self.failed(Fault("silent", why))
        if asked.message is None:
            assert self._fault is not None
            raise self._fault
        return asked.message

    def _write(self, data: bytes, until: float, patience: float) -> None:
        waiting = memoryview(data)
        with self._writing:
            while waiting:
                try:
                    waiting = waiting[os.write(self._stdin.fileno(), waiting) :]
                except BlockingIOError:
                    left = until - time.monotonic()
                    if left <= 0:
                        why = f"did not read a request within {patience:g} s"
                        self.failed(Fault("deaf", why))
                        return
                    with contextlib.suppress(OSError, ValueError):
                        select.select([], [self._stdin.fileno()], [], left)
                except (OSError, ValueError):
                    return  # it closed its input; whether it ended, its output shows

    def _read_answers(self, pipe: IO[bytes]) -> None:
        """What the thread does that reads its output."""
        with pipe:
            self.failed(self._answers(pipe) or self._ended())

    def _answers(self, pipe: IO[bytes]) -> Fault | None:
        """Read until the output ends; what was wrong with it, if that is why."""
        try:
            while block := os.read(pipe.fileno(), LINE_MAX):
                self._budget -= len(block)
                if self._budget < 0:
                    raise Fault("flood", f"wrote more than {FLOOD_MAX:,} bytes without an answer")
                self._output += block
                *lines, rest = self._output.split(b"\n")
                self._output = rest
                if len(rest) > LINE_MAX:
                    raise Fault("flood", f"wrote a line longer than {LINE_MAX:,} bytes")
                for line in lines:
                    self._take(parse(bytes(line)))
        except Fault as fault:
            return fault
        except (OSError, ValueError):
            pass
        return None

    def _take(self, message: dict[str, object]) -> None:
        """One message of the program: what it pushed, or an answer. Raises `Fault`."""
        if "ev" in message:
            self._push(as_push(message))
            return
        number = message.get("id")
        with self._lock:
            asked = self._asked.pop(number, None) if isinstance(number, int) else None
        if asked is None:
            turns = self.turn is not None
            when = f" when {self._number} was asked" if turns and number != self._number else ""
            again = turns and isinstance(number, int) and 0 < number <= self._number
            what = "without an id" if number is None else f"{number!r}{' once more' * again}"
            never = "" if turns or number is None else NEVER_ASKED
            raise Fault("garbage", f"answered {what}{when}{never}")
        self._budget, self._pushed = FLOOD_MAX, 0
        asked.message = message
        asked.done.set()

    def _push(self, push: Push) -> None:
        self._pushed += 1
        if self._pushed > PUSHES_MAX:
            raise Fault("flood", f"pushed more than {PUSHES_MAX:,} times")
        if self.concurrent:
            receive = self.receivers.get(push.ch)
            if receive is None:
                raise Fault("garbage", f"said {push.ev} on channel {push.ch}, which nobody opened")
            receive(push)
            return
        self.pushes.append(push)

    def _read_errors(self, pipe: IO[bytes]) -> None:
        """What the thread does that reads its standard error."""
        with pipe, contextlib.suppress(OSError, ValueError):
            while block := os.read(pipe.fileno(), LINE_MAX):
                self._stderr += block
                del self._stderr[:-STDERR_KEPT]

    def _ended(self) -> Fault:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(GRACE)
        self._errors.join(GRACE)
        code = self.process.returncode
        how = (
            "closed its output"
            if code is None
            else f"was killed by signal {-code}"
            if code < 0
            else f"ended with exit code {code}"
        )
        with self._lock:
            asked = list(self._asked.values())
        when = f" when {asked[0].op} was asked" if asked and self.turn is not None else ""
        half = HALF_LINE if self._output else ""
        return Fault("died", f"{how}{when}{half}{self._stderr_end()}")

    def _stderr_end(self) -> str:
        text = bytes(self._stderr).decode("utf-8", "backslashreplace").strip()
        # Of a traceback that was cut off its first line says nothing.
        lines = [line for line in text.splitlines() if not line.startswith(TRACEBACK)]
        # A runtime may say more behind what went wrong: frames of the stack, its version.
        last = next((line for line in reversed(lines) if WRONG.match(line)), (lines or [""])[-1])
        return f"; the end of its standard error: {last[-STDERR_SHOWN:]}" if last else ""

    def failed(self, fault: Fault) -> None:
        """It is broken: whoever waits gets the first reason."""
        with self._lock:
            if self._fault is None:
                self._fault = fault
            waiting, self._asked = list(self._asked.values()), {}
        for asked in waiting:
            asked.done.set()


NEVER_ASKED = ", which was not asked or is answered already"


class _ChildClient:
    """A client of one program: of the next one, after a fault, it is none."""

    def __init__(self, system: ChildProcess, program: _RunningProgram, number: int) -> None:
        self._system, self._program, self._number = system, program, number

    def do(self, request: Request) -> Answer:
        asked = msgspec.structs.replace(request, client=self._number)
        answer = self._system.ask_program(self._program, asked)
        if answer.unknown:
            raise OutcomeUnknown(answer.why)
        return answer

    def close(self) -> None:
        """There is nothing to give up: the number is not used again."""


def spawned(
    arguments: list[str], mark: str, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """A command with pipes for its three streams, which `reap` ends. Raises `Fault` if it cannot be started."""
    try:
        if shutil.which(arguments[0]) is None:
            number = errno.EACCES if Path(arguments[0]).exists() else errno.ENOENT
            raise OSError(number, os.strerror(number))
        return subprocess.Popen(
            supervised(arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, **(environment or {}), MARK: mark, "PYTHONUNBUFFERED": "1"},
        )
    except (OSError, ValueError, IndexError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise Fault("start", f"cannot be started: {why}") from None


def reap(process: subprocess.Popen[bytes], mark: str) -> None:
    """End a child and all that it started, and leave no zombie."""
    _signal_group(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE + (DYING if SUPERVISED else 0))
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
