"""What several clients do: a few commands each, written out, or a stream of them that a seed draws."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, get_args

import msgspec

from seriatim_models.conformance.script import DEAD, PRIORITIES, TIME

Phase = Literal["load", "faults", "heal"]
"""Clients work through all phases; in `faults` the system is disturbed, in `heal` no more. Then it is drained."""


FaultKind = Literal[
    "kill", "restart", "pause", "cut", "half-open", "delay", "throttle", "disk-full", "partition"
]
"""What can be done to a system."""
ENDING: tuple[FaultKind, ...] = ("kill", "restart")
"""Faults that end the process: what it had only in memory is gone."""


class PlannedFault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fault: how many seconds after the one before it has healed, and for how many."""

    after: float
    kind: FaultKind
    seconds: float
    nodes: tuple[int, ...] = (0,)
    """Of a cluster, those to which it is done. A partition cuts them off from the others, and from each other."""

    def __str__(self) -> str:
        where = (
            f" of {', '.join(f'node {n + 1}' for n in self.nodes)}" if self.nodes != (0,) else ""
        )
        return f"{self.kind}{where} after {self.after:.2f} s for {self.seconds:.2f} s"


def plan_faults(
    kinds: Sequence[FaultKind], seconds: float, seed: int, *, longest: float = 1.0, nodes: int = 1
) -> tuple[PlannedFault, ...]:
    """Faults for so many seconds, each kind as often as the others but for one. The first comes always.

    Of a cluster mostly one node is hit, which the others can do without, and every fourth time all.
    """
    drawn = random.Random(f"{seed}/faults")
    plan: list[PlannedFault] = []
    used = 0.0
    while kinds:
        turn = list(kinds)
        drawn.shuffle(turn)
        for kind in turn:
            after, lasts = drawn.uniform(0.3, 1.5), drawn.uniform(0.1, longest)
            hit: tuple[int, ...] = (0,)
            if nodes > 1:
                every = drawn.random() < 0.25
                hit = tuple(range(nodes)) if every else (drawn.randrange(nodes),)
            used += after + lasts
            if plan and used > seconds:
                return tuple(plan)
            plan.append(PlannedFault(after=after, kind=kind, seconds=lasts, nodes=hit))
    return tuple(plan)


def kinds_of(text: str) -> list[FaultKind]:
    """The kinds in a list with commas. Raises `ValueError` for one that there is not."""
    known: tuple[FaultKind, ...] = get_args(FaultKind)
    found: list[FaultKind] = []
    for name in filter(None, text.split(",")):
        if name not in known:
            raise ValueError(f"no fault {name!r}; there are {', '.join(known)}")
        found += [kind for kind in known if kind == name]
    return found


class ClientCommand(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One command of a client. A settlement is of one of the messages that it holds, `which` from the oldest; of a log
    `which` says for what group and how far from where it is.
    """

    op: str
    q: int = 0
    which: int = 0
    requeue: bool = True
    exclusive: bool = False
    rank: int | None = None
    """The priority of a consumer or a message."""
    key: str = ""
    """The group of a message."""
    delay: int | None = None
    """Milliseconds of a publish, until its message is there."""
    ttl: int | None = None
    """Milliseconds of a publish, after which its message is gone."""
    part: int = 0
    """The partition of a log, if it has some."""
    n: int = 1
    """Of a get: how many messages at once."""
    dead: bool = False
    """Of a get or a consumer: of the queue of the dead."""

    @property
    def queue(self) -> str:
        """The name of its queue."""
        return f"q{self.q}" + DEAD * self.dead

    def __str__(self) -> str:
        words = [self.op]
        if self.op in ("nack", "reject") and not self.requeue:
            words.append("drop")
        if self.exclusive:
            words.append("exclusive")
        if self.rank is not None:
            words.append(f"priority {self.rank}")
        words += [f"{word} {ms} ms" for word in ("delay", "ttl") if (ms := getattr(self, word))]
        words += [self.key] * bool(self.key) + [f"part {self.part}"] * bool(self.part)
        words += [f"{self.n} at once"] * (self.n > 1)
        if self.q or self.dead:
            words.append(self.queue)
        return " ".join(words)


MIX = {
    "publish": 40, "get": 30, "consume": 2, "cancel": 1, "ack": 30, "nack": 8, "reject": 2,
    "read": 40, "seek": 3, "commit": 10, "tx-begin": 4, "tx-commit": 8, "tx-rollback": 2, "declare": 2,
}  # fmt: skip
"""How often each command comes, in proportion; what a system cannot do is left out."""
REOPEN = {"close": 1}
"""The command that gives up a client's channel, with all that it holds, and begins a new one."""
PREFETCH = 5
"""Of consumers, if nothing else is said."""
SEVERAL, FROM_THE_DEAD = 0.2, 0.2
"""How often a get is of several messages, and a get or a consumer of the queue of the dead."""
REFINED = {
    "exclusive": 0.1, "priority": 0.5, "message-priority": 0.2, "groups": 0.2, "delay": 0.02, "ttl": 0.02,
}  # fmt: skip
"""How often a command has a refinement, of a system that has this feature."""


TIMED = ("delay", "ttl")
"""Refinements of a publish that take their time. Never both."""


def refined(
    command: ClientCommand, can: frozenset[str], often: Mapping[str, float], drawn: random.Random
) -> ClientCommand:
    """The command with refinements drawn, each as `often` as it says, and with its partition."""

    def has(feature: str) -> bool:
        return feature in can and drawn.random() < often[feature]

    more: dict[str, object] = {}
    if command.op == "consume":
        more["exclusive"] = has("exclusive")
    ranks = {"consume": "priority", "publish": "message-priority"}.get(command.op)
    if ranks and has(ranks):
        more["rank"] = drawn.randrange(PRIORITIES)
    if command.op == "publish" and has("groups"):
        more["key"] = f"k{drawn.randrange(2)}"
    if command.op == "publish":
        timed = next((word for word in TIMED if has(word)), "")
        more |= {timed: TIME} if timed else {}
    if "partitions" in can:
        more["part"] = drawn.randrange(2)
    if command.op == "get" and "batch" in can and "lease" not in can and drawn.random() < SEVERAL:
        more["n"] = drawn.randint(2, 3)
    if command.op in ("get", "consume") and "dead-letter" in can:
        more["dead"] = drawn.random() < FROM_THE_DEAD
    return msgspec.structs.replace(command, **more)


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
    faults: tuple[PlannedFault, ...] = ()
    """What is done to the system in the phase `faults`."""
    backlog: int = 1000
    """So many messages of all may be in the system: beyond that nobody publishes."""
    holds: int = 20
    """So many messages a client holds before it settles one."""
    prefetch: int = PREFETCH
    """Of consumers, where there is one."""
    settles: bool = False
    """Whether at the end all clients acknowledge what they hold, and what they are given by that."""

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
            command = ClientCommand(
                op=op,
                q=drawn.randrange(self.queues),
                which=drawn.randrange(self.holds),
                requeue="drop" not in can or drawn.random() < 0.9,
            )
            yield refined(command, can, REFINED, drawn)

    def __str__(self) -> str:
        if not self.commands:
            return f"{self.clients} clients for {self.seconds:g} s, seed {self.seed}"
        parts = [f"client{n}: {'; '.join(map(str, c))}" for n, c in enumerate(self.commands, 1)]
        if self.prefetch != PREFETCH:
            parts.insert(0, f"prefetch {self.prefetch}")
        if self.settles:
            parts.append("then all acknowledge what they hold")
        return " | ".join(
            [*parts, *(["faults: " + "; ".join(map(str, self.faults))] if self.faults else [])]
        )
