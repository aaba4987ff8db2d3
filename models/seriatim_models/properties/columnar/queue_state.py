"""What is open in a queue whose history is plain: see `queues`."""

from __future__ import annotations

from collections import deque
from typing import ClassVar

import msgspec

from seriatim_models.history.bounded import ForgetsOldest
from seriatim_models.properties.blackbox.strict import WINDOW

SENT, ANSWERED, TAKEN, SETTLED, BACK, CONSUMES, CANCELS, NOTHING, IRREGULAR, GENERAL = range(10)
"""Kinds of rows. `GENERAL` are the few that name no queue; `NOTHING` says nothing of a regular queue."""
NONE = -1


class OpenMessage(msgspec.Struct, array_like=True, gc=False):
    """A message from its publish until it is settled for good."""

    rank: int
    """Its place in the queue."""
    since: int
    """The event by which it became available, or `NONE` while somebody has it."""
    stream: int
    number: int
    by: int = NONE
    dtag: int = NONE
    consumer: int = NONE
    """Who had it last, under which tag and as which consumer."""
    back: int = NONE
    """Who gave it back last."""


class OpenQueue(msgspec.Struct, ForgetsOldest):
    """What is open in one queue, and the cases so far."""

    bounded: ClassVar = ("early",)

    irregular: bool = False
    asked: bool = False
    out: bool = False
    n: int = 0
    acquired: int = 0
    t: int = 0
    """Events and acquisitions so far, and the latest time."""
    messages: dict[str, OpenMessage] = {}
    fresh: deque[str] = msgspec.field(default_factory=deque)
    returned: list[tuple[int, str]] = []
    """What is there: never given out, in order; and released, as a heap."""
    numbers: dict[int, int] = {}
    """Of each publisher the latest number."""
    conns: set[str] = set()
    senders: set[str] = set()
    unsure: set[str] = set()
    """Connections: that act otherwise than by publishing, that publish, and that take as a consumer of which
    nobody knows whether it asked for no-local (`strict.may_refuse`)."""
    choices: list[tuple[int, int]] = []
    """P5: acquisitions beside another message, of which it is not known yet that it ends in time: event and number."""
    tested: int = 0
    returns: int = 0
    """P6"""
    unread: set[str] = set()
    early: dict[str, None] = {}
    consumers: dict[int, list[int | None]] = {}
    """P14, as `wakeups.Idle` has them; of a consumer its credit and what it holds."""
    since: int | None = None
    waits: int = 0
    single: int = 0
    outside: int = 0
    """P20: acquisitions beside another value, while nothing has come back; and all since then."""

    def choose(self, n: int, acquired: int, since: int, beside: bool) -> None:
        """Take in P5's next acquisition, of what was there since `since`, and whether another message is there."""
        choices = self.choices
        while choices and choices[-1][0] > since:
            self.tested += choices.pop()[1] >= acquired - WINDOW
        if beside:
            choices.append((n, acquired))
        if len(choices) > 2 * WINDOW:
            del choices[:WINDOW]

    def open_choices(self) -> int:
        """Of the choices that are open at the end, how many were beside a message that is still there."""
        there = [self.messages[m].since for m in (*self.fresh, *(m for _, m in self.returned))]
        first = min(there, default=self.n)
        return sum(n > first and k > self.acquired - WINDOW for n, k in self.choices)

    def may_refuse(self) -> bool:
        """Whether some consumer may have refused what its own connection sent."""
        return bool(self.unsure) and (
            "" in self.unsure or not self.senders.isdisjoint({"", *self.unsure})
        )

    def wait(self, t: int) -> None:
        """Somebody waits beside an unread message from now on, if somebody does."""
        if self.since is None and self.unread:
            for credit, holds in self.consumers.values():
                if credit is None or (holds is not None and holds < credit):
                    self.since = t
                    return
