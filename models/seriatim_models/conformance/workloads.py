"""Scripts as Hypothesis generates them.

Generated before they run and whatever the implementation does, so that an implementation that depends on chance cannot
confuse the generator. What would make no sense is left out when they run.
"""

from __future__ import annotations

from hypothesis import strategies as st

from seriatim_models.conformance.script import SETTLING, ScriptStep

CHANNELS = 3
PREFETCH_MAX = 4


def scripts(
    can: frozenset[str], *, steps: int = 30, exact: bool = True
) -> st.SearchStrategy[list[ScriptStep]]:
    """Scripts of at most so many steps, of what the implementation can do."""
    move = _move(can, exact)
    # Long ones as often as short ones: a violation may need much before it, and shrinking takes away what it does not.
    short = st.lists(move, min_size=1, max_size=max(1, steps // 3))
    long = st.lists(move, min_size=max(1, steps // 3), max_size=steps)
    return st.one_of(short, long).map(lambda moves: [step for m in moves for step in m][:steps])


def _move(can: frozenset[str], exact: bool) -> st.SearchStrategy[tuple[ScriptStep, ...]]:
    """One step, or a few that belong together."""
    channel = st.integers(1, CHANNELS)
    consumer = st.integers(1, 3).map(lambda n: f"c{n}")
    kinds: list[st.SearchStrategy[tuple[ScriptStep, ...]]] = [
        st.just((ScriptStep(op="publish", q="q"),))
    ] * 2
    if "get" in can:
        kinds += [channel.map(lambda ch: (ScriptStep(op="get", ch=ch, q="q"),))] * 2
    if "consume" in can:
        # What is settled by pushing tests little, so rarely.
        autoack = _one_in(10) if "autoack" in can else st.just(False)
        limit = st.integers(0, PREFETCH_MAX) if "qos" in can else st.just(0)
        scope = _one_in(3) if "channel-qos" in can else st.just(False)
        kinds.append(st.builds(_consume, channel, consumer, autoack, limit, scope))
        if "cancel" in can:
            kinds.append(
                st.builds(
                    lambda ch, c: (ScriptStep(op="cancel", ch=ch, ctag=c),), channel, consumer
                )
            )
    if settling := sorted(SETTLING & can):
        settle = st.builds(
            ScriptStep,
            op=st.sampled_from(settling),
            ch=channel,
            which=st.integers(0, 4),
            multiple=_one_in(5) if "multiple" in can else st.just(False),
            requeue=_one_in(5).map(lambda drop: not drop) if "drop" in can else st.just(True),
            wait=st.just(True) if exact else st.booleans(),
        )
        kinds += [settle.map(lambda step: (step,))] * 2
    if "close" in can:
        kinds.append(channel.map(lambda ch: (ScriptStep(op="close", ch=ch),)))
    return st.one_of(kinds)


def _one_in(n: int) -> st.SearchStrategy[bool]:
    """True once in n times, False when shrunk."""
    return st.integers(0, n - 1).map(lambda drawn: drawn == n - 1)


def _consume(
    ch: int, ctag: str, autoack: bool, prefetch: int, whole: bool
) -> tuple[ScriptStep, ...]:
    consume = ScriptStep(op="consume", ch=ch, q="q", ctag=ctag, autoack=autoack)
    if not prefetch:
        return (consume,)
    scope = "channel" if whole else "consumer"
    return (ScriptStep(op="qos", ch=ch, prefetch=prefetch, scope=scope), consume)
