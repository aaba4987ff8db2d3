"""What several clients do: a few commands each, written out, or a stream of them that a seed draws."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Literal

import msgspec

Phase = Literal["load", "faults", "heal"]
"""Clients work through all phases; in `faults` the system is disturbed, in `heal` no more. Then it is drained."""


class ClientCommand(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One command of a client. A settlement is of one of the messages that it holds, `which` from the oldest."""

    op: str
    q: int = 0
    which: int = 0
    requeue: bool = True

    def __str__(self) -> str:
        words = [self.op]
        if self.op in ("nack", "reject") and not self.requeue:
            words.append("drop")
        if self.q:
            words.append(f"q{self.q}")
        return " ".join(words)


MIX = {"publish": 40, "get": 30, "consume": 2, "cancel": 1, "ack": 30, "nack": 8, "reject": 2}
"""How often each command comes, in proportion; what a system cannot do is left out."""
REOPEN = {"close": 1}
"""The command that gives up a client's channel, with all that it holds, and begins a new one."""


class ConcurrentWorkload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Clients and what they do. Without `commands` they are drawn from `seed`, until the phases are over."""

    clients: int = 4
    commands: tuple[tuple[ClientCommand, ...], ...] = ()
    """Of each client its commands, in place of drawn ones; `clients` does not count then."""
    seed: int = 1
    rate: float = 0.0
    """Commands a second of all clients together; 0 for as many as they can."""
    queues: int = 1
    mix: dict[str, int] = msgspec.field(default_factory=lambda: MIX | REOPEN)
    phases: tuple[tuple[Phase, float], ...] = (("load", 5.0),)
    """Each with its seconds."""
    backlog: int = 1000
    """So many messages of all may be in the system: beyond that nobody publishes."""
    holds: int = 20
    """So many messages a client holds before it settles one."""

    @property
    def seconds(self) -> float:
        """How long all phases take."""
        return sum(seconds for _, seconds in self.phases)

    def of_client(self, number: int, can: frozenset[str]) -> Iterator[ClientCommand]:
        """The commands of a client, counted from 1, of a system that can do so much."""
        if self.commands:
            yield from self.commands[number - 1]
            return
        mix = {op: often for op, often in self.mix.items() if op in can and often > 0}
        drawn = random.Random(f"{self.seed}/client/{number}")
        ops, weights = list(mix), list(mix.values())
        while True:
            (op,) = drawn.choices(ops, weights)
            yield ClientCommand(
                op=op,
                q=drawn.randrange(self.queues),
                which=drawn.randrange(self.holds),
                requeue="drop" not in can or drawn.random() < 0.9,
            )

    def __str__(self) -> str:
        if not self.commands:
            return f"{self.clients} clients for {self.seconds:g} s, seed {self.seed}"
        parts = (f"client{n}: {'; '.join(map(str, c))}" for n, c in enumerate(self.commands, 1))
        return " | ".join(parts)
