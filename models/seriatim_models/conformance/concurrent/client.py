"""What a drive by several clients at once needs of an implementation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from seriatim_models.conformance.protocol import Answer, Push, Request
from seriatim_models.conformance.system import Declaring

Receiver = Callable[[Push], None]
"""Called with what an implementation sends unasked, by any thread."""


class OutcomeUnknown(Exception):
    """An operation ended without an answer: it may have taken effect, and still may. The client is given up."""


class ConcurrentClient(Protocol):
    """One client. Its methods are called by one thread, one after the other; those of other clients meanwhile."""

    def do(self, request: Request) -> Answer:
        """Ask for one thing and wait for the answer. What is refused (`Answer.ok` false) has had no effect.

        Raises `OutcomeUnknown` if nobody knows whether it has, and `protocol.Fault` if the implementation is broken.
        """

    def close(self) -> None:
        """Give the client up, in any state. Never raises."""


class ConcurrentSystem(Declaring, Protocol):
    """An implementation that several clients use at once."""

    def connect(self, number: int, receive: Receiver) -> ConcurrentClient:
        """A client of that number, which is its channel's, too. A number may come again once its client is closed.

        Raises `OutcomeUnknown` if it cannot be reached now, and `protocol.Fault` if it is broken.
        """

    def sync(self) -> bool:
        """While no client asks: wait until nothing more happens by itself; whether it is certain that nothing does.

        Raises `protocol.Fault`.
        """

    def end(self) -> None:
        """Give up everything that it holds. May be called twice."""
