"""Scripts as Hypothesis generates them.

Generated before they run and whatever the implementation does, so that an implementation that depends on chance cannot
confuse the generator. What would make no sense is left out when they run.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import msgspec
from hypothesis import strategies as st

from seriatim_models.conformance.script import SETTLING, ScriptStep

CHANNELS = 3
PREFETCH_MAX = 4
HURRY = 8
"""Of how many commands of a hurried load the effect of one is waited for."""
BURST = 4
"""How many messages are published, or taken and then settled, as one move at most."""


def scripts(
    can: frozenset[str], *, steps: int = 30, exact: bool = True
) -> st.SearchStrategy[list[ScriptStep]]:
    """Scripts of at most so many steps, of what the implementation can do."""
    move = _move(can, exact)
    # Long ones as often as short ones: a violation may need much before it, and shrinking takes away what it does not.
    short = st.lists(move, min_size=1, max_size=max(1, steps // 3))
    long = st.lists(move, min_size=max(1, steps // 3), max_size=steps)
    return st.one_of(short, long).map(lambda moves: [step for m in moves for step in m][:steps])


def load(
    can: frozenset[str], drawn: random.Random, steps: int, *, hurried: bool
) -> list[ScriptStep]:
    """A long script of what the implementation can do, for what shows only under load.

    `hurried`: most commands are sent without waiting for the effect of the one before.
    """
    kinds: list[tuple[int, Callable[[], list[ScriptStep]]]] = [
        (weight, make)
        for weight, needs, make in _LOAD
        if not needs or set(needs) & can
        for make in [partial(make, can, drawn)]
    ]
    weights = [weight for weight, _ in kinds]
    made: list[ScriptStep] = []
    while len(made) < steps:
        (_, make), *_ = drawn.choices(kinds, weights)
        made += make()
    if hurried:
        made = [
            msgspec.structs.replace(step, wait=drawn.random() < 1 / HURRY) for step in made[:steps]
        ]
    return made[:steps]


def _load_publish(can: frozenset[str], drawn: random.Random) -> list[ScriptStep]:
    return [ScriptStep(op="publish", q="q")] * drawn.randint(1, BURST)


def _load_get(can: frozenset[str], drawn: random.Random) -> list[ScriptStep]:
    return [ScriptStep(op="get", ch=drawn.randint(1, CHANNELS), q="q")]


def _load_settle(can: frozenset[str], drawn: random.Random) -> list[ScriptStep]:
    settling = sorted(SETTLING & can)
    several = "multiple" in can and drawn.random() < 0.1
    op = "ack" if "ack" in can and drawn.random() < 0.7 else drawn.choice(settling)
    return [
        ScriptStep(
            op=op,
            ch=drawn.randint(1, CHANNELS),
            which=drawn.randint(0, 4),
            multiple=several,
            every=several and drawn.random() < 0.25,
            requeue=not ("drop" in can and drawn.random() < 0.1),
        )
        for _ in range(drawn.randint(1, BURST))
    ]


def _load_consume(can: frozenset[str], drawn: random.Random) -> list[ScriptStep]:
    ch, tag = drawn.randint(1, CHANNELS), f"c{drawn.randint(1, 3)}"
    return list(
        _consume(
            ch,
            tag,
            "autoack" in can and drawn.random() < 0.05,
            drawn.randint(1, PREFETCH_MAX) if "qos" in can else 0,
            "channel-qos" in can and drawn.random() < 0.1,
            "exclusive" in can and drawn.random() < 0.1,
            drawn.choice((None, 0, 1, 2)) if "priority" in can else None,
        )
    )


def _load_cancel(can: frozenset[str], drawn: random.Random) -> list[ScriptStep]:
    ch, tag = drawn.randint(1, CHANNELS), f"c{drawn.randint(1, 3)}"
    return [ScriptStep(op="cancel", ch=ch, ctag=tag)]


def _load_close(can: frozenset[str], drawn: random.Random) -> list[ScriptStep]:
    return [ScriptStep(op="close", ch=drawn.randint(1, CHANNELS))]


def _load_recover(can: frozenset[str], drawn: random.Random) -> list[ScriptStep]:
    return [ScriptStep(op="recover", ch=drawn.randint(1, CHANNELS))]


_LOAD: tuple[tuple[int, tuple[str, ...], Callable[..., list[ScriptStep]]], ...] = (
    (30, (), _load_publish),
    (15, ("get",), _load_get),
    (40, ("ack", "nack", "reject"), _load_settle),
    (12, ("consume",), _load_consume),
    (2, ("cancel",), _load_cancel),
    (2, ("close",), _load_close),
    (1, ("recover",), _load_recover),
)
"""Moves of the load: how often, what they need one of, and what makes them."""


def _move(can: frozenset[str], exact: bool) -> st.SearchStrategy[tuple[ScriptStep, ...]]:
    """One step, or a few that belong together."""
    channel = st.integers(1, CHANNELS)
    consumer = st.integers(1, 3).map(lambda n: f"c{n}")
    kinds: list[st.SearchStrategy[tuple[ScriptStep, ...]]] = [
        st.just((ScriptStep(op="publish", q="q"),)),
        st.integers(1, BURST).map(lambda n: (ScriptStep(op="publish", q="q"),) * n),
    ]
    settling = _settling(can, channel, exact)
    if "get" in can:
        kinds.append(channel.map(lambda ch: (ScriptStep(op="get", ch=ch, q="q"),)))
        kinds.append(st.builds(_gets, channel, st.integers(1, BURST), settling))
    if "consume" in can:
        kinds += [_consuming(can, channel, consumer)] * 2
        if "cancel" in can:
            cancel = st.builds(
                lambda ch, c: ScriptStep(op="cancel", ch=ch, ctag=c), channel, consumer
            )
            kinds.append(cancel.map(lambda step: (step,)))
    if SETTLING & can:
        kinds += [settling] * 2
    if "close" in can:
        kinds.append(channel.map(lambda ch: (ScriptStep(op="close", ch=ch),)))
    if "recover" in can:
        kinds.append(channel.map(lambda ch: (ScriptStep(op="recover", ch=ch),)))
    return st.one_of(kinds)


def _settling(
    can: frozenset[str], channel: st.SearchStrategy[int], exact: bool
) -> st.SearchStrategy[tuple[ScriptStep, ...]]:
    """One settlement; nothing if the implementation knows none."""
    names = sorted(SETTLING & can)
    if not names:
        return st.just(())
    several = "multiple" in can
    step = st.builds(
        ScriptStep,
        op=st.sampled_from(names),
        ch=channel,
        which=st.integers(0, 4),
        multiple=_one_in(3) if several else st.just(False),
        every=_one_in(4) if several else st.just(False),
        requeue=_one_in(5).map(lambda drop: not drop) if "drop" in can else st.just(True),
        wait=st.just(True) if exact else st.booleans(),
    )
    return step.map(lambda made: (made,))


def _consuming(
    can: frozenset[str], channel: st.SearchStrategy[int], consumer: st.SearchStrategy[str]
) -> st.SearchStrategy[tuple[ScriptStep, ...]]:
    """A consumer that begins, with its limit before it."""
    # What is settled by pushing tests little, so rarely.
    autoack = _one_in(10) if "autoack" in can else st.just(False)
    limit = st.integers(0, PREFETCH_MAX) if "qos" in can else st.just(0)
    scope = _one_in(3) if "channel-qos" in can else st.just(False)
    exclusive = _one_in(3) if "exclusive" in can else st.just(False)
    ranked = "priority" in can
    cprio = st.one_of(st.none(), st.integers(0, 2)) if ranked else st.none()
    return st.builds(_consume, channel, consumer, autoack, limit, scope, exclusive, cprio)


def _one_in(n: int) -> st.SearchStrategy[bool]:
    """True once in n times, False when shrunk."""
    return st.integers(0, n - 1).map(lambda drawn: drawn == n - 1)


def _gets(ch: int, n: int, settling: tuple[ScriptStep, ...]) -> tuple[ScriptStep, ...]:
    """A few messages for one channel, and a settlement of some of them."""
    own = tuple(msgspec.structs.replace(step, ch=ch) for step in settling)
    return (ScriptStep(op="get", ch=ch, q="q"),) * n + own


def _consume(
    ch: int,
    ctag: str,
    autoack: bool,
    prefetch: int,
    whole: bool,
    exclusive: bool,
    cprio: int | None,
) -> tuple[ScriptStep, ...]:
    consume = ScriptStep(
        op="consume", ch=ch, q="q", ctag=ctag, autoack=autoack, exclusive=exclusive, cprio=cprio
    )
    if not prefetch:
        return (consume,)
    scope = "channel" if whole else "consumer"
    return (ScriptStep(op="qos", ch=ch, prefetch=prefetch, scope=scope), consume)
