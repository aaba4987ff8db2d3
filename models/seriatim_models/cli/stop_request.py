"""Ctrl-C and SIGTERM as a request that a long command answers when it can."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

from seriatim_models.ending import INTERRUPTED, TERMINATED, Terminated


class StopRequest:
    """While it is entered, the first Ctrl-C (or SIGTERM) asks to stop, and the second one interrupts."""

    def __init__(self) -> None:
        self.asked = False
        self.kind: type[KeyboardInterrupt] = KeyboardInterrupt
        """The exception that stands for the signal."""
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

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for number, before in self._before:
            signal.signal(number, before)
        if kind is KeyboardInterrupt and self.kind is not kind:
            raise self.kind

    @property
    def code(self) -> int:
        """The exit code of who was asked."""
        return TERMINATED if self.kind is Terminated else INTERRUPTED

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise self.kind
        self.asked = True
        self.kind = Terminated if number == signal.SIGTERM else KeyboardInterrupt
