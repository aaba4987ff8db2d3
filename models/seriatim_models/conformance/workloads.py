"""Scripts drawn at random, of what an implementation can do.

Drawn before they run and whatever the implementation does, so that an implementation that depends on chance cannot
confuse the generator. What would make no sense is left out when they run.

Each script is drawn from a mix of its own: which moves occur in it and how often, how many channels, consumers and
queues there are, which refinements are used and how often. A mistake that shows only where consumers have priorities
and nobody closes a channel is then met by the scripts whose mix leaves closing out, where one mix for all scripts would
hide it. (Swarm testing: Groce, Zhang, Eide, Chen and Regehr, ISSTA 2012.)
"""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec

from seriatim_models.conformance.script import DEAD, PRIORITIES, SETTLING, TIME, ScriptStep

CHANNELS_MAX = 4
CONSUMERS_MAX = 4
PREFETCH_MAX = 4
HURRY = 8
"""Of how many commands of a hurried script the effect of one is waited for."""
BURST = 4
"""How many messages are published, or taken and then settled, as one move at most."""
BURSTS = (1, BURST, BURST)
"""How many are published at most in a mix: where it is one, the queue is often empty."""
LEFT_OUT = 0.25
"""How often a move is left out of a mix."""

REFINEMENTS = {
    "multiple": "multiple",
    "every": "multiple",
    "drop": "drop",
    "autoack": "autoack",
    "whole": "channel-qos",
    "exclusive": "exclusive",
    "cprio": "priority",
    "prio": "message-priority",
    "key": "groups",
    "several": "batch",
    "dead": "dead-letter",
    "delay": "delay",
    "ttl": "ttl",
}
"""Refinements of moves, each with what the implementation must be able to do for it."""
OFTEN = (0.0, 0.1, 0.3, 0.7)
"""How often a refinement may occur in a mix."""
SELDOM = {"prio": (0.0, 0.0, 0.3, 1.0), "key": (0.0, 0.0, 0.3, 0.7)}
SELDOM |= {"delay": (0.0, 0.0, 0.0, 0.2), "ttl": (0.0, 0.0, 0.0, 0.2)}  # each takes its time
"""The same of refinements that leave less to be judged of other promises: a message of a group may have to wait."""
LIMITED = (0.2, 0.9, 1.0)
"""How often a consumer begins with a limit in a mix: without one it takes all that there is."""


class Mix:
    """What the moves of one script are drawn from."""

    def __init__(self, can: frozenset[str], drawn: random.Random) -> None:
        self.can, self.drawn = can, drawn
        self.channels = drawn.randint(1, CHANNELS_MAX)
        self.consumers = drawn.randint(1, CONSUMERS_MAX)
        self.queues = ("q", "r") if "queues" in can and drawn.random() < LEFT_OUT else ("q",)
        self.settling = sorted(SETTLING & can)
        self.often = {
            name: drawn.choice(SELDOM.get(name, OFTEN)) if needs in can else 0.0
            for name, needs in REFINEMENTS.items()
        }
        self.often["limit"] = drawn.choice(LIMITED)
        moves = [move for move in _MOVES if not move[1] or set(move[1]) & can]
        kept = [m for m in moves if not m[1] or drawn.random() >= LEFT_OUT]
        if not any(make in (_get, _consume, _read) for _, _, make in kept):
            kept = moves  # somebody must take something
        self.moves = [make for _, _, make in kept]
        self.weights = [weight * drawn.choice((1, 1, 3)) for weight, _, _ in kept]
        self.burst = drawn.choice(BURSTS)

    def chance(self, refinement: str) -> bool:
        """Whether the next move has the refinement."""
        return self.drawn.random() < self.often[refinement]

    def channel(self) -> int:
        """One of the channels."""
        return self.drawn.randint(1, self.channels)

    def queue(self) -> str:
        """One of the queues."""
        return self.drawn.choice(self.queues)

    def source(self) -> str:
        """One of the queues that messages are taken from: also one of those where dropped ones come."""
        q = self.queue()
        return q + DEAD if "dead-letter" in self.can and self.chance("dead") else q

    def part(self) -> int | None:
        """One of the partitions, if there are some."""
        return self.drawn.randrange(2) if "partitions" in self.can else None

    def reading(self, op: str, which: int | None = None) -> ScriptStep:
        """A step of one of the readers: a group, which a channel reads for."""
        group = f"g{self.drawn.randint(1, min(2, self.consumers))}"
        ch, q, part = self.channel(), self.queue(), self.part()
        return ScriptStep(op=op, ch=ch, q=q, ctag=group, part=part, which=which)

    def consumer(self) -> str:
        """The tag of one of the consumers."""
        return f"c{self.drawn.randint(1, self.consumers)}"

    def move(self) -> list[ScriptStep]:
        """One step, or a few that belong together."""
        (make,) = self.drawn.choices(self.moves, self.weights)
        return make(self)


def drawn_script(
    can: frozenset[str], drawn: random.Random, steps: int, *, hurried: bool = False
) -> list[ScriptStep]:
    """A script of so many steps, of what the implementation can do.

    `hurried`: most commands are sent without waiting for the effect of the one before.
    """
    return script_of(Mix(can, drawn), steps, hurried=hurried)


def script_of(mix: Mix, steps: int, *, hurried: bool = False) -> list[ScriptStep]:
    """A script of so many steps of a mix, see `drawn_script`."""
    made: list[ScriptStep] = []
    while len(made) < steps:
        made += mix.move()
    if hurried:
        made = [msgspec.structs.replace(step, wait=mix.drawn.random() < 1 / HURRY) for step in made]
    return made[:steps]


def _publish(mix: Mix) -> list[ScriptStep]:
    ch = mix.channel() if "tx-begin" in mix.can else 1  # it tells only in a transaction
    return [
        _timed(
            mix,
            ScriptStep(
                op="publish",
                q=mix.queue(),
                ch=ch,
                prio=mix.drawn.randrange(PRIORITIES) if mix.chance("prio") else None,
                key=f"k{mix.drawn.randrange(PRIORITIES)}" if mix.chance("key") else "",
                part=mix.part(),
            ),
        )
        for _ in range(mix.drawn.randint(1, mix.burst))
    ]


def _timed(mix: Mix, publish: ScriptStep) -> ScriptStep:
    """The publish with a delay or a time to live, or mostly neither."""
    if "delay" in mix.can and mix.chance("delay"):
        return msgspec.structs.replace(publish, delay=TIME)
    if "ttl" in mix.can and mix.chance("ttl"):
        return msgspec.structs.replace(publish, ttl=TIME)
    return publish


def _get(mix: Mix) -> list[ScriptStep]:
    """A few messages for one channel, and perhaps a settlement of some of them."""
    ch = mix.channel()
    autoack = mix.chance("autoack")
    several = mix.drawn.randint(2, BURST) if "batch" in mix.can and mix.chance("several") else 1
    gets = [ScriptStep(op="get", ch=ch, q=mix.source(), autoack=autoack, n=several)]
    if mix.drawn.random() < LEFT_OUT:
        gets *= mix.drawn.randint(1, BURST)
        if mix.settling:
            gets.append(_settlement(mix, ch))
    return gets


def _settle(mix: Mix) -> list[ScriptStep]:
    return [_settlement(mix, mix.channel()) for _ in range(mix.drawn.randint(1, BURST))]


def _settlement(mix: Mix, ch: int) -> ScriptStep:
    every = mix.chance("every")
    acked = "ack" in mix.settling and mix.drawn.random() < 0.4
    return ScriptStep(
        op="ack" if acked else mix.drawn.choice(mix.settling),
        ch=ch,
        which=mix.drawn.randint(0, BURST),
        multiple=every or mix.chance("multiple"),
        every=every,
        requeue=not mix.chance("drop"),
    )


def _consume(mix: Mix) -> list[ScriptStep]:
    """A consumer that begins, with its limit before it."""
    ch = mix.channel()
    consume = ScriptStep(
        op="consume",
        ch=ch,
        q=mix.source(),
        ctag=mix.consumer(),
        autoack=mix.chance("autoack"),
        exclusive=mix.chance("exclusive"),
        cprio=mix.drawn.randrange(PRIORITIES) if mix.chance("cprio") else None,
    )
    return [*_qos(mix, ch), consume]


def _qos(mix: Mix, ch: int) -> list[ScriptStep]:
    if "qos" not in mix.can or not mix.chance("limit"):
        return []
    prefetch, scope = mix.drawn.randint(0, PREFETCH_MAX), "channel" if mix.chance("whole") else ""
    return [ScriptStep(op="qos", ch=ch, prefetch=prefetch, scope=scope or "consumer")]


def _limit(mix: Mix) -> list[ScriptStep]:
    """A limit that changes later."""
    return _qos(mix, mix.channel())


def _cancel(mix: Mix) -> list[ScriptStep]:
    return [ScriptStep(op="cancel", ch=mix.channel(), ctag=mix.consumer())]


def _close(mix: Mix) -> list[ScriptStep]:
    return [ScriptStep(op="close", ch=mix.channel())]


def _read(mix: Mix) -> list[ScriptStep]:
    return [mix.reading("read")] * mix.drawn.randint(1, BURST)


def _seek(mix: Mix) -> list[ScriptStep]:
    """A reader that goes elsewhere, and reads there."""
    seek = mix.reading("seek", mix.drawn.randrange(2 * BURST))
    return [seek, msgspec.structs.replace(seek, op="read", which=None)]


def _commit(mix: Mix) -> list[ScriptStep]:
    """A commit of what was read last, or of something before it; perhaps the reader ends and comes again."""
    commit = mix.reading("commit", mix.drawn.choice((0, 0, 0, 1, 2)))
    read = msgspec.structs.replace(commit, op="read", which=None)
    steps = [*[read] * mix.drawn.randint(0, 2), commit]
    if "close" in mix.can and mix.drawn.random() < 0.5:
        steps += [ScriptStep(op="close", ch=commit.ch), read]
    return steps


def _pass(mix: Mix) -> list[ScriptStep]:
    return [ScriptStep(op="pass", delay=mix.drawn.choice((None, TIME * 3 // 4)))]


def _recover(mix: Mix) -> list[ScriptStep]:
    return [ScriptStep(op="recover", ch=mix.channel())]


def _begin(mix: Mix) -> list[ScriptStep]:
    return [ScriptStep(op="tx-begin", ch=mix.channel())]


def _commit_or_not(mix: Mix) -> list[ScriptStep]:
    op = "tx-commit" if mix.drawn.random() < 0.7 else "tx-rollback"
    return [ScriptStep(op=op, ch=mix.channel())]


_MOVES: tuple[tuple[int, tuple[str, ...], Callable[[Mix], list[ScriptStep]]], ...] = (
    (30, (), _publish),
    (15, ("get",), _get),
    (25, ("ack", "nack", "reject"), _settle),
    (15, ("consume",), _consume),
    (3, ("qos",), _limit),
    (5, ("cancel",), _cancel),
    (5, ("close",), _close),
    (4, ("recover",), _recover),
    (3, ("delay", "ttl"), _pass),
    (40, ("read",), _read),
    (8, ("seek",), _seek),
    (12, ("commit",), _commit),
    (10, ("tx-begin",), _begin),
    (10, ("tx-begin",), _commit_or_not),
)
"""Moves: how often, what they need one of, and what makes them."""
