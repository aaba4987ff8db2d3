"""What the drive needs of an implementation, wherever it runs."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from seriatim_models.conformance.meanings import Meanings
from seriatim_models.conformance.protocol import Answer, Push, Request


@runtime_checkable
class MayWait(Protocol):
    """A system whose publish may wait (`waits`)."""

    room: int | None
    """With so many messages in it a queue was seen to let a publish wait; None if with no number yet."""


class Declaring(Protocol):
    """What says what it can do."""

    name: str
    version: str
    """Empty if it is not known."""
    can: frozenset[str]
    """Operations and features, see `protocol`."""
    means: Meanings
    """What it declares that they mean."""


class System(Declaring, Protocol):
    """An implementation under test. Every method may raise `protocol.Fault`."""

    exact: bool
    """Whether an answer means that the command has taken effect, and `sync` that nothing is on its way.

    Then the drive sees every effect at its instant, and what it records is exact. Brokers behind a network are not.
    """

    def reset(self) -> None:
        """Start anew: no messages, no channels."""

    def do(self, request: Request) -> Answer:
        """Ask for one thing and wait for the answer. What a command without answer sends is only sent."""

    def sync(self) -> bool:
        """Wait until nothing more happens by itself; whether it is certain that all commands took effect."""

    def pushed(self) -> list[Push]:
        """What it sent unasked since the last time, in order; of each channel in the channel's order."""

    def end(self) -> None:
        """Give up everything that it holds. May be called twice."""
