"""A process that works for another one, and ends when that does."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with(parent: int) -> None:
    """Die when the parent does, even by SIGKILL and in the middle of an item. Called in the child.

    Only Linux can do this; elsewhere a child ends when it next looks for an item.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before that
            os._exit(1)
