"""Small scripts of every shape: each command in each of its forms, where a channel holds a few messages.

Scripts drawn at random meet a form of a command that is drawn seldom, in a state that is drawn seldom, hardly ever in
the time of a search: a nack of tag 0 with requeue came up in none of 200. Here each form stands once after each
of a few beginnings, the shortest scripts first, so that a mistake of one command is met in the first seconds.
(Bounded-exhaustive testing by small scopes: Jackson and Damon, Elements of style, ISSTA 1996.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise, zip_longest

import msgspec

from seriatim_models.conformance.script import DEAD, SETTLING, TIME, ScriptStep
from seriatim_models.conformance.timed import SHORT_LEASE

Q = "q"
PLAIN = 12
"""How many scripts of one taker come before the first of two."""
RUN = 12
"""How many messages come one after another where one in some may go astray."""


def small_scripts(can: frozenset[str], lease: float = 0.0) -> list[list[ScriptStep]]:
    """Every beginning followed by every form of every command that the implementation can do, the shortest first.

    `lease`: the seconds of a lease, if there are leases and their length is declared and short enough to wait for.

    Those of priorities, of groups and of two consumers, if it has them, take turns with the others. First among those
    of priorities are consumers that differ in it, with some messages one after another: a wrong turn may come seldom.
    """
    scripts = list(_log_scripts(can)) if "read" in can else []
    scripts += [
        [*beginning, *command, *following]
        for n in (1, 2, 3)
        for beginning in _beginnings(can, n)
        for command in _commands(can, n, consumes=beginning[-1].op != "get")
        for following in _followings(can)
    ]
    if "get" in can:
        scripts += _requeue_scripts(can)
    marked = list(_priority_scripts(can)) if "message-priority" in can else []
    groups = _group_scripts(can) if "groups" in can else ()
    pairs = list(_pair_scripts(can)) if {"consume", "qos"} <= can else []
    together = list(_together_scripts(can))
    timed = list(_time_scripts(can))
    if 0 < lease <= SHORT_LEASE and "get" in can:
        timed += _lease_scripts(can, lease)
    lists = [
        sorted(each, key=len) for each in (scripts, marked, pairs, groups, together, timed)
    ]  # of equal length as made
    lists[2][:0] = [[]] * PLAIN
    if {"consume", "priority"} <= can:
        lists[1] = [*_rank_scripts(), *lists[1]]
    by_turns = (tuple(each) for turn in zip_longest(*lists) for each in turn if each)
    return [list(script) for script in dict.fromkeys(by_turns)]


def _requeue_scripts(can: frozenset[str]) -> Iterator[list[ScriptStep]]:
    """Two of three messages requeued one after the other, in either order: which is next shows where they went."""
    get = ScriptStep(op="get", q=Q)
    for op in sorted({"nack", "reject"} & can):
        for which in (0, 1):
            back = [ScriptStep(op=op, which=which), ScriptStep(op=op)]
            yield [*[ScriptStep(op="publish", q=Q)] * 3, get, get, *back, get]


def _beginnings(can: frozenset[str], n: int) -> Iterator[list[ScriptStep]]:
    """So many messages, and who holds them: what was got, what was pushed, with more waiting or none."""
    published = [ScriptStep(op="publish", q=Q)] * n
    if "get" in can:
        yield [*published, *[ScriptStep(op="get", q=Q)] * n]
    if "consume" not in can:
        return
    yield [_consumer(1), *published]
    yield [_consumer(1), *published, _consumer(2)]  # somebody is ready for what comes back
    if "qos" not in can:
        return
    if n > 1:
        yield [ScriptStep(op="qos", prefetch=n - 1), _consumer(1), *published]
    if n > 2:
        limits = [ScriptStep(op="qos", ch=ch, prefetch=1) for ch in (1, 2)]
        yield [*limits, _consumer(1), _consumer(2), *published]


def _consumer(ch: int, *, autoack: bool = False, alone: bool = False) -> ScriptStep:
    return ScriptStep(op="consume", ch=ch, q=Q, ctag=f"c{ch}", autoack=autoack, exclusive=alone)


def _commands(can: frozenset[str], n: int, *, consumes: bool) -> Iterator[list[ScriptStep]]:
    """No command, and each in each form that makes a difference where `n` messages are held on the first channel."""
    yield []
    for op in sorted(SETTLING & can):
        multiple = "multiple" in can and op != "reject"
        forms = [ScriptStep(op=op)]
        if n > 1:
            forms.append(ScriptStep(op=op, which=n - 1))
            forms += [ScriptStep(op=op, which=n - 1, multiple=True)] * multiple
        forms += [ScriptStep(op=op, multiple=True, every=True)] * multiple
        for form in forms:
            yield [form]
            if op != "ack" and "drop" in can:
                yield [msgspec.structs.replace(form, requeue=False)]
    if "consume" in can:
        yield [_consumer(3)]
        yield from ([_consumer(3, autoack=True)] for _ in {"autoack"} & can)
        yield from ([_consumer(3, alone=True)] for _ in {"exclusive"} & can)
        yield from ([msgspec.structs.replace(_consumer(3), cprio=1)] for _ in {"priority"} & can)
    if consumes:
        yield from ([ScriptStep(op="cancel", ctag="c1")] for _ in {"cancel"} & can)
        yield from ([ScriptStep(op="qos", prefetch=2)] for _ in {"qos"} & can)
    yield from ([ScriptStep(op=op)] for op in ("recover", "close") if op in can)


def _followings(can: frozenset[str]) -> Iterator[list[ScriptStep]]:
    """What comes after it: nothing; or a message more, and another channel that takes one."""
    more = ScriptStep(op="publish", q=Q)
    yield []
    yield [more, *[ScriptStep(op="get", ch=2, q=Q)] * ("get" in can)]


def _rank_scripts() -> Iterator[list[ScriptStep]]:
    """Two consumers of different priority, and messages for them."""
    for n in (1, RUN):
        for ranks in ((0, 1), (1, 0), (1, 2), (2, 0)):
            consumers = [
                msgspec.structs.replace(_consumer(ch), cprio=rank)
                for ch, rank in enumerate(ranks, 1)
            ]
            yield [*consumers, *[ScriptStep(op="publish", q=Q)] * n]


def _pair_scripts(can: frozenset[str]) -> Iterator[list[ScriptStep]]:
    """Two consumers that may hold one message each, on two channels or on one, and what one of them does beside a third
    message; and a channel that holds what it got and what it was pushed.
    """
    publish = ScriptStep(op="publish", q=Q)
    ends = [ScriptStep(op=op) for op in sorted((SETTLING | {"close"}) & can)]
    ends += [ScriptStep(op="cancel", ctag="c1")] if "cancel" in can else []
    several = [
        ScriptStep(op=op, which=1, multiple=True) for op in sorted(SETTLING & can - {"reject"})
    ]
    several = several if "multiple" in can else []
    ranks = [(None, None), *([(1, 0), (0, 1)] if "priority" in can else [])]
    for ch in (2, 1):
        for ranked in ranks:
            begun = [ScriptStep(op="qos", ch=each, prefetch=1) for each in (1, 2)[:ch]]
            begun += [
                msgspec.structs.replace(_consumer(n), ch=min(n, ch), cprio=rank)
                for n, rank in enumerate(ranked, 1)
            ]
            for end in [*ends, *several]:
                yield [*begun, *[publish] * 3, end]
    if "get" in can:
        for end in several:
            yield [publish, ScriptStep(op="get", q=Q), _consumer(1), publish, end]


def _priority_scripts(can: frozenset[str]) -> Iterator[list[ScriptStep]]:
    """Messages of rising, falling and mixed priority, taken by those who can; one of them comes back."""
    for prios in ((0, 1), (2, 1), (0, 2, 1), (1, 2, 0), (0, 0, 2, 2, 1)):
        published = [ScriptStep(op="publish", q=Q, prio=prio) for prio in prios]
        yield published
        for taken in _takings(can, ScriptStep(op="qos", prefetch=1)):
            for end in _endings(can, taken) if len(prios) == 2 else ([],):
                yield [*taken[:-1], *published, taken[-1], *end]
                if taken[-1].op == "consume":
                    yield [*taken, *published, *end]


def _group_scripts(can: frozenset[str]) -> Iterator[list[ScriptStep]]:
    """Messages of groups: one taker has the first or two when another asks, perhaps after one of them was settled."""
    more = ScriptStep(op="publish", q=Q, key="k0")
    limit = ScriptStep(op="qos", prefetch=2)
    third = next(_takings(can, msgspec.structs.replace(limit, ch=3), ch=3))
    pair, three = [more] * 2, [more] * 3
    for taken in _takings(can, limit):
        twice = taken * 2 if taken[-1].op == "get" else taken
        for other in _takings(can, msgspec.structs.replace(limit, ch=2), ch=2):
            for end in _endings(can, taken):
                yield [*pair, *taken, *end, *other]
                yield [*three, *twice, *end, *other]
                if end:
                    yield [*pair, *taken, *other, *end]  # the other one waits for the group
                if end and end[0].op == "close":
                    yield [*pair, *taken, *end, *other, *third]
            for key in ("", "k1"):
                yield [*pair, ScriptStep(op="publish", q=Q, key=key), *taken, *other]
            yield [*pair, *taken, *other, ScriptStep(op="close"), more]
        if "consume" in can:  # another one of the same channel
            yield [*pair, *taken, ScriptStep(op="consume", q=Q, ctag="c2")]


def _takings(can: frozenset[str], limit: ScriptStep, ch: int = 1) -> Iterator[list[ScriptStep]]:
    """One taker: a get, a consumer with a limit."""
    if "get" in can:
        yield [ScriptStep(op="get", ch=ch, q=Q)]
    if "consume" in can:
        yield [*[limit] * ("qos" in can), _consumer(ch)]


def _endings(can: frozenset[str], taken: list[ScriptStep]) -> Iterator[list[ScriptStep]]:
    """What the first taker does with what it was given: nothing, or one of the commands that end a hold."""
    yield []
    yield from ([ScriptStep(op=op)] for op in ("ack", "nack", "close") if op in can)
    if taken[-1].op == "consume":
        yield from ([ScriptStep(op=op, ctag="c1")] for op in {"cancel"} & can)


def _together_scripts(can: frozenset[str]) -> Iterator[list[ScriptStep]]:
    """Transactions that end in each way, several messages got at once, and what was dropped taken where it came to."""
    publish, get = ScriptStep(op="publish", q=Q), ScriptStep(op="get", q=Q)
    other = ScriptStep(op="get", ch=2, q=Q)
    if "tx-begin" in can and "get" in can:
        begin = ScriptStep(op="tx-begin")
        settlements = [ScriptStep(op=op) for op in sorted(SETTLING & can)]
        settlements += [ScriptStep(op=op, requeue=False) for op in sorted({"nack", "reject"} & can)]
        ends = [ScriptStep(op="tx-commit"), ScriptStep(op="tx-rollback")]
        ends += [ScriptStep(op="close")] if "close" in can else []
        for end in ends:
            for inside in ([publish], [publish, publish], *([each] for each in settlements)):
                yield [publish, get, begin, *inside, other, end, other]
                yield [publish, publish, get, begin, *inside, publish, end, other, other]
                yield [publish, begin, get, *inside, end, ScriptStep(op="close"), other]
    if {"tx-begin", "consume", "nack"} <= can:
        back = [ScriptStep(op="nack", which=1), ScriptStep(op="nack")]
        yield [
            _consumer(1),
            publish,
            publish,
            ScriptStep(op="tx-begin"),
            *back,
            ScriptStep(op="tx-commit"),
        ]
    if "batch" in can:
        for n in (1, 2, 3):
            several = msgspec.structs.replace(get, n=2)
            yield [*[publish] * n, several, several]
            yield [
                *[publish] * n,
                several,
                *[ScriptStep(op=op) for op in ("nack", "ack") if op in can],
                several,
            ]
    if "dead-letter" in can and "get" in can:
        buried = msgspec.structs.replace(other, q=Q + DEAD)
        for op in sorted({"nack", "reject"} & can):
            drop = ScriptStep(op=op, requeue=False)
            yield [publish, get, drop, buried]
            yield [publish, publish, get, get, drop, other, drop, buried, buried]
            yield [publish, get, drop, buried, msgspec.structs.replace(drop, ch=2), buried, get]


def _log_scripts(can: frozenset[str]) -> Iterator[list[ScriptStep]]:
    """A reader of a log that reads so far, commits or goes elsewhere, perhaps comes again, and reads on."""
    part = 0 if "partitions" in can else None
    read = ScriptStep(op="read", q=Q, ctag="g1", part=part)
    moves: list[list[ScriptStep]] = [[]]
    moves += [
        [msgspec.structs.replace(read, op=op, which=which)]
        for op in ("commit", "seek")
        for which in (0, 1)
        if op in can
    ]
    ends = [[], [ScriptStep(op="close")]] if "close" in can else [[]]
    for n in (1, 2, 3):
        published = [ScriptStep(op="publish", q=Q, part=part)] * n
        for m in range(n + 1):
            for move in moves:
                for end in ends:
                    yield [*published, *[read] * m, *move, *end, read, read]
    publish, other = ScriptStep(op="publish", q=Q, part=part), msgspec.structs.replace(read, ch=2)
    for n in (1, 2, 5):  # to the end, and beyond it when there is more
        yield [*[publish] * n, *[read] * (n + 1), publish, publish, read, read]
        yield [*[publish] * n, *[read] * n, other, read, publish, other, read, read]
    for op in sorted({"seek", "commit"} & can):  # what another reader of the group does
        for which in (0, 1):
            moved = msgspec.structs.replace(other, op=op, which=which)
            yield [*[publish] * 3, read, read, other, moved, read, other, other]
            yield [*[publish] * 3, read, other, other, other, moved, read, read]


def _lease_scripts(can: frozenset[str], lease: float) -> Iterator[list[ScriptStep]]:
    """What somebody holds is asked for at once, when half of the lease is over, and when it has run out."""
    publish, get = (ScriptStep(op=op, q=Q) for op in ("publish", "get"))
    other, out = ScriptStep(op="get", q=Q, ch=2), ScriptStep(op="pass")
    half = ScriptStep(op="pass", delay=round(lease * 500))
    for before in ([publish], [publish, publish]):
        yield [*before, get, *[other] * len(before)]
        yield [*before, get, half, *[other] * len(before)]
        yield [*before, get, half, other, out, other, other]
        if "ack" in can:
            yield [*before, get, out, other, ScriptStep(op="ack"), ScriptStep(op="ack", ch=2)]


def _time_scripts(can: frozenset[str]) -> Iterator[list[ScriptStep]]:
    """Messages with a delay or a time to live: taken at once, or when it is over, beside others that have none."""
    publish, get, later = (ScriptStep(op=op, q=Q) for op in ("publish", "get", "pass"))
    later = msgspec.structs.replace(later, q="")
    delayed = msgspec.structs.replace(publish, delay=TIME)
    mortal = msgspec.structs.replace(publish, ttl=TIME)
    taken = [get, *[ScriptStep(op="ack")] * ("ack" in can)]
    last = msgspec.structs.replace(get, ch=2)
    for timed in (*[delayed] * ("delay" in can), *[mortal] * ("ttl" in can)):
        if "get" in can:
            yield [timed, *taken, later, get]
            yield [timed, later, get, last]
            yield [timed, msgspec.structs.replace(later, delay=TIME * 3 // 4), get, later, last]
            yield [timed, publish, *taken, later, get, last]
            yield [publish, timed, timed, later, get, last, last]
            yield [publish, timed, get, last, later, last]
            yield [timed, publish, later, get, last]
            if "nack" in can:
                yield [timed, publish, get, ScriptStep(op="nack"), later, get, last]
        if "consume" in can:
            yield [_consumer(1), timed]
            yield [_consumer(1), timed, publish, later]
            yield [timed, later, _consumer(1)]
            if {"qos", "ack"} <= can:
                one = [ScriptStep(op="qos", prefetch=1), _consumer(1), publish]
                yield [*one, timed, later, ScriptStep(op="ack"), later]
                yield [*one, ScriptStep(op="ack"), timed, later]


class PairCoverage:
    """Which pairs of commands came one after the other, on the same channel or on two, in which forms."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str, bool]] = set()

    def brings(self, steps: Iterable[ScriptStep]) -> float:
        """How many pairs of the steps are new, for each step: a longer script is not better by its length alone."""
        steps = list(steps)
        return len(_pairs(steps) - self._seen) / (len(steps) + 1)

    def add(self, steps: Iterable[ScriptStep]) -> None:
        """Count the pairs of a script that was run as seen."""
        self._seen |= _pairs(steps)


def _pairs(steps: Iterable[ScriptStep]) -> set[tuple[str, str, bool]]:
    return {
        (_form(first), _form(second), first.ch == second.ch) for first, second in pairwise(steps)
    }


def _form(step: ScriptStep) -> str:
    """A command with its refinements, without the names in it."""
    flags = {
        "every": step.every,
        "multiple": step.multiple and not step.every,
        "drop": not step.requeue,
        "autoack": step.autoack,
        "exclusive": step.exclusive,
        "priority": step.cprio is not None or step.prio is not None,
        "group": bool(step.key),
        "channel": step.scope == "channel",
        "unlimited": step.op == "qos" and not step.prefetch,
        "hurried": not step.wait,
        "several": step.n > 1,
        "delay": step.delay is not None,
        "ttl": step.ttl is not None,
        "dead": step.q.endswith(DEAD),
    }
    return " ".join([step.op, *(name for name, has in flags.items() if has)])
