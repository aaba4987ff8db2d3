"""A server that is started, killed, paused, stopped and started again, and gone at the end whatever happens.

A `supervisor` stands between: what the server starts, even in a session and under a parent of its own, ends with it,
also if the driver is killed. All signals go to every process below the supervisor.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from seriatim_models.conformance.child import reap
from seriatim_models.conformance.protocol import Fault as ProtocolFault
from seriatim_models.supervisor import MARK, SUPERVISED, supervised

STARTING = 90.0
"""Seconds until a server must listen."""
STOPPING = 30.0
"""Seconds that a server may take to end when it is asked to."""
LOG_SHOWN = 500  # characters of a server's log that say why it did not start
POLL = 0.02
LOOPBACK = "127.0.0.1"


class ServerNode:
    """One server process and all that it starts. A context manager: started on entry, gone on exit."""

    def __init__(
        self,
        command: Sequence[str],
        home: Path,
        port: int,
        *,
        host: str = LOOPBACK,
        environment: Mapping[str, str] | None = None,
        stop: str = "TERM",
    ) -> None:
        """`port` of `host`: by whose listening it is ready. `stop`: the signal that asks it to end.

        Raises `Fault` for a signal that does not exist.
        """
        self.command, self.home, self.host, self.port = list(command), home, host, port
        self.environment = dict(environment or {})
        try:
            self._stop = signal.Signals[f"SIG{stop}"]
        except KeyError:
            raise ProtocolFault("start", f"there is no signal {stop!r}") from None
        self._mark = f"server-{os.getpid()}-{host}-{port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._main = 0

    def __enter__(self) -> ServerNode:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def log(self) -> Path:
        """Where what it prints is kept."""
        return self.home / "seriatim.log"

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self, within: float = STARTING) -> None:
        """Start it, and wait until it listens. Raises `Fault` with the end of its log."""
        if self.host == LOOPBACK and taken(self.port):
            raise ProtocolFault("start", f"port {self.port} of 127.0.0.1 is taken")
        if shutil.which(self.command[0]) is None:
            raise ProtocolFault("start", f"{self.command[0]}: there is no such program")
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                supervised(self.command),
                cwd=self.home,
                env={**os.environ, **self.environment, MARK: self._mark},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._listening(time.monotonic() + within, within)
        except BaseException:
            self.close()
            raise
        below = descendants(self._process.pid)
        self._main = min(below, key=_started, default=self._process.pid)

    def _listening(self, until: float, within: float) -> None:
        process = self._process
        assert process is not None
        while True:
            ended = process.poll() is not None
            if not ended:
                with (
                    contextlib.suppress(OSError),
                    socket.create_connection((self.host, self.port), timeout=1),
                ):
                    return
            if ended or time.monotonic() > until:
                how = (
                    f"ended with exit code {process.returncode}"
                    if ended
                    else f"does not listen after {within:g} s"
                )
                raise ProtocolFault("start", f"{Path(self.command[0]).name} {how}: {self.said()}")
            time.sleep(POLL)

    def said(self) -> str:
        """The last line that it printed."""
        with contextlib.suppress(OSError):
            text = self.log.read_text(encoding="utf-8", errors="replace").strip()[-LOG_SHOWN:]
            if text:
                return text.splitlines()[-1]
        return "it printed nothing"

    def pids(self) -> list[int]:
        """Its processes."""
        if self._process is None:
            return []
        return descendants(self._process.pid) if SUPERVISED else [self._process.pid]

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all its processes."""
        for pid in self.pids():
            with contextlib.suppress(OSError):
                os.kill(pid, number)

    def kill(self) -> None:
        """Kill all of it at once, as a crash does; returns when it is gone."""
        # Stopped first, so that none is started while the others die.
        self.signal(signal.SIGSTOP)
        self.signal(signal.SIGKILL)
        self.close()

    def stop(self) -> None:
        """Ask it to end, wait until it has, and kill what is left then."""
        if self._process is None:
            return
        with contextlib.suppress(OSError):
            os.kill(self._main, self._stop)
        until = time.monotonic() + STOPPING
        while alive(self._main) and time.monotonic() < until:
            time.sleep(POLL)
        self.close()

    def pause(self) -> None:
        """Stop its processes without ending them; returns when they stand still."""
        until = time.monotonic() + STOPPING
        while time.monotonic() < until:
            self.signal(signal.SIGSTOP)
            if all(_stat(pid)[:1] in ([], ["T"], ["Z"]) for pid in self.pids()):
                return
            time.sleep(POLL)

    def resume(self) -> None:
        """Let it go on."""
        self.signal(signal.SIGCONT)

    def close(self) -> None:
        """End it and all that it started."""
        process, self._process = self._process, None
        if process is not None:
            reap(process, self._mark)


def taken(port: int) -> bool:
    """Whether somebody listens on a port of the loopback."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    return _stat(pid)[:1] not in ([], ["Z"])


def descendants(pid: int) -> list[int]:
    """Children of a process, their children, and so on, as they are now. Empty where there is no /proc."""
    below: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc") if SUPERVISED else ()):
        if len(fields := _stat(int(name))) > 1:
            below.setdefault(int(fields[1]), []).append(int(name))
    found, to_see = [], [pid]
    while to_see:
        children = below.get(to_see.pop(), [])
        found += children
        to_see += children
    return found


def _started(pid: int) -> tuple[int, int]:
    """When a process began, in ticks; its number decides between two of one tick."""
    fields = _stat(pid)
    return (int(fields[19]) if len(fields) > 19 else 0, pid)


def _stat(pid: int) -> list[str]:
    """The fields of a process in /proc from its state on; empty if it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="latin-1")
    except OSError:
        return []
    return text.rpartition(")")[2].split()
