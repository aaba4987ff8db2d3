"""Runs a command and, asked to end, ends with it all that it started, whatever that did to hide.

A process that forks twice, begins a session and clears its environment has no tie to whoever started it:
its parent has died, its group is another one. On Linux orphans become children of the next *subreaper* above them
(`prctl(2)`), if there is one, and not of process 1. This process is one; so its children, and theirs, are all that
came of the command.
It is run as a file of its own, `python -I -S supervisor.py PARENT GRACE COMMAND...`, and imports little: each has one.

It ends as the command did, once nothing is left. SIGTERM, or the death of who started it, makes it end the rest: the
command has GRACE seconds to go by itself, then all are killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Sequence

SUPERVISED = sys.platform == "linux"
"""Whether there are subreapers here."""
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
GRACE = 0.3
"""Seconds between asking the command to end and killing what is left, if nobody says another number."""
MARK = "SERIATIM_CHILD"
"""A variable of what is started to be tested, by which its processes are found."""
FIRST_KILLED = b"1000"
"""Of what fills memory (proc_pid_oom_score_adj(5)): it is killed, and not who tests it."""
NOT_STARTED = 127
"""The exit code if the command cannot be run, as in a shell; the reason is on standard error."""
ORPHANED = signal.SIGHUP
"""Sent when the thread ends that started this process; it matters only if the whole process has."""
WATCHED = {signal.SIGCHLD, signal.SIGTERM, ORPHANED}


def supervised(command: Sequence[str], grace: float = GRACE) -> list[str]:
    """The command behind a supervisor, where there can be one; else the command itself."""
    before = (sys.executable, "-I", "-S", __file__, str(os.getpid()), str(grace))
    return [*(before if SUPERVISED else ()), *command]


def main(starter: str, grace: str, *arguments: str) -> int:
    """The exit code of the command; this process is killed by the same signal if one killed the command.

    `starter` is the process that started this one, which may be gone before the first line here.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, nobody would learn how a child ended
    before = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    parent = int(starter)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    libc.prctl(PR_SET_PDEATHSIG, ORPHANED)
    if os.getppid() != parent:  # who started it died before that
        return NOT_STARTED
    command = os.fork()
    if not command:
        libc.prctl(
            PR_SET_PDEATHSIG, signal.SIGKILL
        )  # if this process is killed, with nobody to watch
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if MARK in os.environ:
            with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "wb", 0) as file:
                file.write(FIRST_KILLED)
        try:
            os.execvp(arguments[0], arguments)
        except OSError as error:
            os.write(2, f"{arguments[0]}: {error.strerror}\n".encode())
        os._exit(NOT_STARTED)
    for stream in range(3):  # the command's; with a copy here nobody would see that it closed one
        os.close(stream)
    status = watch(command, parent, float(grace))
    if os.WIFSIGNALED(status):
        with contextlib.suppress(OSError):  # of SIGKILL, whose action cannot be set
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.kill(os.getpid(), os.WTERMSIG(status))
    return os.waitstatus_to_exitcode(status)


def watch(command: int, parent: int, grace: float) -> int:
    """How the command ended, as `os.wait` says it, once nothing of it is left."""
    status, asked = 0, 0.0
    while True:
        came = signal.sigtimedwait(WATCHED, 0.005 if asked else 3600)
        to_end = came and came.si_signo == signal.SIGTERM
        if not asked and (to_end or os.getppid() != parent):
            asked = time.monotonic()
            with contextlib.suppress(OSError):
                os.kill(command, signal.SIGTERM)
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                status = ended[1] if ended[0] == command else status
        except ChildProcessError:
            return status
        if asked and time.monotonic() > asked + grace:
            for child in children():
                with contextlib.suppress(OSError):
                    os.kill(child, signal.SIGKILL)


def children() -> list[int]:
    """The processes whose parent is this one. Their children become its own when they are killed."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", encoding="latin-1") as file:
            if int(file.read().rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(name))
    return found


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
