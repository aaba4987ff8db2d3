"""What would put another process in the place of the one that explores, or beside it."""

from __future__ import annotations

import _thread
import os
import signal


def waits_for_any() -> None:
    os.wait3(0)


def waits_for_any_with_usage() -> None:
    os.wait4(-1, 0)


def waits_by_id() -> None:
    os.waitid(os.P_ALL, 0, os.WEXITED)


def forks_on_a_terminal() -> None:
    os.forkpty()


def starts_by_name() -> None:
    os.posix_spawnp("true", ["true"], {})


def becomes_another() -> None:
    os.execv("/bin/true", ["true"])


def becomes_another_by_list() -> None:
    os.execl("/bin/true", "true")


def becomes_another_by_name() -> None:
    os.execvpe("true", ["true"], {"PATH": "/bin"})


def starts_and_waits() -> None:
    os.spawnl(os.P_WAIT, "/bin/true", "true")


def signals_by_descriptor() -> None:
    signal.pidfd_send_signal(0, signal.SIGTERM)


def interrupts_main() -> None:
    _thread.interrupt_main()
