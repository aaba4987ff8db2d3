"""Ctrl-C and SIGTERM as a request that a long command answers when it can."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType


class StopRequest:
    """While it is entered, the first Ctrl-C (or SIGTERM) asks to stop, and the second one interrupts."""

    def __init__(self) -> None:
        self.asked = False
        self._shown = False

    def shown(self, show: Callable[[], None]) -> bool:
        """Whether the user asked to stop. The first time that is so, `show` is called."""
        if self.asked and not self._shown:
            self._shown = True
            show()
        return self.asked

    def __enter__(self) -> StopRequest:
        self._before = [(s, signal.getsignal(s)) for s in (signal.SIGINT, signal.SIGTERM)]
        for number, _ in self._before:
            signal.signal(number, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before:
            signal.signal(number, before)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
