"""A program that speaks seriatim-conform/2 over its standard input and output: several requests outstanding.

One that speaks version 1 is asked by one client after the other: it is driven as before, and nothing meets in it.
The program is not trusted, see `child`: it may write nothing, garbage, two answers to one request or gigabytes. Whoever
waits for it then gets a `Fault`, and it is ended with all that it started.
"""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import subprocess
import threading
import time
import uuid

import msgspec

from seriatim_models.conformance import supervisor
from seriatim_models.conformance.child import STDERR_KEPT, reap, spawned
from seriatim_models.conformance.concurrent.client import ConcurrentClient, Receiver
from seriatim_models.conformance.protocol import (
    CONCURRENT,
    FLOOD_MAX,
    LINE_MAX,
    Answer,
    Fault,
    Request,
    abilities,
    as_answer,
    as_hello,
    as_push,
    parse,
    shown,
)

STARTING = 10.0
"""Seconds that the handshake may take at least: a busy machine takes long to start an interpreter."""


class _Asked:
    """A request that is outstanding."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.message: dict[str, object] | None = None


class ConcurrentCommand:
    """`ConcurrentSystem` over a program."""

    def __init__(self, command: str, *, patience: float = 5.0) -> None:
        """`patience` is how many seconds an answer may take. Raises `Fault` if there is no handshake."""
        try:
            self._arguments = shlex.split(command)
        except ValueError as error:
            raise Fault("start", f"cannot be started: {error}") from None
        self._patience = patience
        self.name, self.version = command, ""
        self.can: frozenset[str] = frozenset()
        self._process: subprocess.Popen[bytes] | None = None
        self._start()

    def reset(self) -> None:
        """Ask for a fresh start; a program that is broken is started anew. Raises `Fault`."""
        if self._process is None or self._fault is not None:
            self._start()
        self._receivers.clear()
        self.ask(Request(op="reset"))

    def _start(self) -> None:
        self.end()
        self._asked: dict[int, _Asked] = {}
        self._receivers: dict[int, Receiver] = {}
        self._number = 0
        self._fault: Fault | None = None
        self._budget = FLOOD_MAX
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._turn: threading.Lock | None = threading.Lock()
        self._stderr = bytearray()
        self._mark = uuid.uuid4().hex
        self._process = spawned(self._arguments, self._mark)
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        for work in (self._read_answers, self._read_errors):
            threading.Thread(target=work, args=(self._process,), daemon=True).start()
        try:
            hello = as_hello(self._exchange(Request(op="hello", protocol=CONCURRENT), STARTING))
        except Fault:
            self.end()
            raise
        self.name, self.version = hello.name or self.name, hello.version
        self.can = abilities(hello.can)
        if hello.protocol == CONCURRENT:
            self._turn = None

    @property
    def one_at_a_time(self) -> bool:
        """Whether it speaks version 1, so that its clients take turns."""
        return self._turn is not None

    def connect(self, number: int, receive: Receiver) -> ConcurrentClient:
        """A client that is channel `number`."""
        self._receivers[number] = receive
        if "open" in self.can:
            answer = self.ask(Request(op="open", client=number, ch=number))
            if not answer.ok:
                raise Fault("garbage", f"refused to open a channel: {answer.why or 'no reason'}")
        return _CommandClient(self, number)

    def ask(self, request: Request) -> Answer:
        """Ask and wait for the answer. Raises `Fault`."""
        with self._turn or contextlib.nullcontext():
            return as_answer(self._exchange(request))

    def end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            self._failed(Fault("died", "was ended"))
            reap(process, self._mark)

    # ---- the pipes

    def _exchange(self, request: Request, patience: float = 0.0) -> dict[str, object]:
        """Ask and wait for the answer, so many seconds if not the usual. Raises `Fault`."""
        patience = max(patience, self._patience)
        asked = _Asked()
        with self._lock:
            if self._fault is not None:
                raise self._fault
            self._number += 1
            number = self._number
            self._asked[number] = asked
        self._write(msgspec.json.encode(msgspec.structs.replace(request, id=number)) + b"\n")
        if not asked.done.wait(patience):
            why = f"gave no answer to {request.op} within {patience:g} s{self._errors()}"
            self._failed(Fault("silent", why))
        if asked.message is None:
            assert self._fault is not None
            raise self._fault
        return asked.message

    def _write(self, data: bytes) -> None:
        process = self._process
        waiting, until = memoryview(data), time.monotonic() + self._patience
        with self._writing:
            while waiting and process is not None and process.stdin is not None:
                try:
                    waiting = waiting[os.write(process.stdin.fileno(), waiting) :]
                except BlockingIOError:
                    left = until - time.monotonic()
                    if left <= 0:
                        why = f"did not read a request within {self._patience:g} s"
                        self._failed(Fault("deaf", why))
                        return
                    with contextlib.suppress(OSError, ValueError):
                        select.select([], [process.stdin.fileno()], [], left)
                except (OSError, ValueError):
                    return  # it closed its input; whether it ended, its output shows

    def _read_answers(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        output = bytearray()
        try:
            while block := os.read(process.stdout.fileno(), LINE_MAX):
                self._budget -= len(block)
                if self._budget < 0:
                    raise Fault("flood", f"wrote more than {FLOOD_MAX:,} bytes without an answer")
                output += block
                *lines, rest = output.split(b"\n")
                output = bytearray(rest)
                if len(output) > LINE_MAX:
                    raise Fault("flood", f"wrote a line longer than {LINE_MAX:,} bytes")
                for line in lines:
                    self._take(parse(bytes(line)))
        except Fault as fault:
            self._failed(fault)
            return
        except (OSError, ValueError):
            pass
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(supervisor.GRACE)
        code = process.returncode
        how = "closed its output" if code is None else f"ended with exit code {code}"
        if code is not None and code < 0:
            how = f"was killed by signal {-code}"
        half = f"; what came last was half a line, {shown(bytes(output))}" if output else ""
        self._failed(Fault("died", f"{how}{half}{self._errors()}"))

    def _take(self, message: dict[str, object]) -> None:
        """One message of the program: what it pushed, or an answer. Raises `Fault`."""
        if "ev" in message:
            push = as_push(message)
            receive = self._receivers.get(push.ch)
            if receive is None:
                raise Fault("garbage", f"said {push.ev} on channel {push.ch}, which nobody opened")
            receive(push)
            return
        number = message.get("id")
        with self._lock:
            asked = self._asked.pop(number, None) if isinstance(number, int) else None
        if asked is None:
            why = f"answered {number!r}, which was not asked or is answered already"
            raise Fault("garbage", why)
        self._budget = FLOOD_MAX
        asked.message = message
        asked.done.set()

    def _read_errors(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        with contextlib.suppress(OSError, ValueError):
            while block := os.read(process.stderr.fileno(), LINE_MAX):
                self._stderr += block
                del self._stderr[:-STDERR_KEPT]

    def _errors(self) -> str:
        text = bytes(self._stderr).decode("utf-8", "backslashreplace").strip()
        return f"; the end of its standard error: {text.splitlines()[-1]}" if text else ""

    def _failed(self, fault: Fault) -> None:
        """It is broken: whoever waits gets the first reason."""
        with self._lock:
            if self._fault is None:
                self._fault = fault
            waiting, self._asked = list(self._asked.values()), {}
        for asked in waiting:
            asked.done.set()


class _CommandClient:
    def __init__(self, system: ConcurrentCommand, number: int) -> None:
        self._system, self._number = system, number

    def do(self, request: Request) -> Answer:
        return self._system.ask(msgspec.structs.replace(request, client=self._number))

    def close(self) -> None:
        pass
