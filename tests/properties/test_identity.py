"""Who is who: names may hold any character, and two names that only look alike when joined are two."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from seriatim_models.history import Event
from seriatim_models.properties.base import Finding, Fold, Verdict
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.columnar.evaluator import judge

from .blackbox_histories import BY_ID, Seeded, build

NAMED = ("q", "conn", "ctag", "m", "pub", "proc", "key")


def renamed(events: Sequence[Event], name: Callable[[str, str], str]) -> list[Event]:
    """The events with every name, by its field, made another one; no name stays empty."""
    out = []
    for e in events:
        new: dict[str, Any] = {f: name(f, old) for f in NAMED if (old := getattr(e, f))}
        if e.ms:
            new["ms"] = [name("m", m) for m in e.ms]
        out.append(msgspec.structs.replace(e, **new))
    return out


ODD = ["\n", " ", "/1#1", "\n\n", "a\nq", " \t", "#", "/", "q\na", "\x00", "1 1", "//"]


def odd(seed: int) -> Callable[[str, str], str]:
    """Odd names, different ones for different old ones of a field."""
    names: dict[tuple[str, str], str] = {}
    chosen = random.Random(seed)

    def name(field: str, old: str) -> str:
        if (field, old) not in names:
            taken = {new for (f, _), new in names.items() if f == field}
            length = 1
            while (new := "".join(chosen.choices(ODD, k=length))) in taken:
                length += 1
            names[field, old] = new
        return names[field, old]

    return name


def verdicts(findings: Sequence[Finding]) -> list[tuple[str, Verdict, int, int, int]]:
    """What does not depend on names."""
    return [(f.property, f.verdict, f.n_tested, f.n_untestable, f.n_violations) for f in findings]


def test_odd_names_change_no_verdict() -> None:
    for seed in range(150):
        events = build(Seeded(seed), 40)
        plain = verdicts([p.check(events) for p in BLACKBOX])
        strange = renamed(events, odd(seed))
        assert verdicts([p.check(strange) for p in BLACKBOX]) == plain, seed
        assert verdicts(judge(strange)) == plain, seed


def test_odd_names_survive_the_state_of_a_stream() -> None:
    for seed in range(20):
        events = renamed(build(Seeded(seed), 40), odd(seed))
        expected = [p.check(events) for p in BLACKBOX]
        fold = Fold(BLACKBOX, first=True)
        for event in events:
            fold.take([event])
            for n, prop in enumerate(BLACKBOX):
                written = msgspec.msgpack.encode(fold.summaries[n])
                fold.summaries[n] = msgspec.msgpack.decode(written, type=prop.summary_type)
        assert verdicts(fold.finish()) == verdicts(expected), seed


def ev(ev: str, ph: str = "", **fields: Any) -> dict[str, Any]:
    return {"ev": ev, "ph": ph, "lvl": "api"} | fields


def history(*events: dict[str, Any]) -> list[Event]:
    """Events in order, 10 ns apart."""
    return [Event(i=i, t=10 * i, **e) for i, e in enumerate(events)]


def test_the_end_of_a_connection_ends_its_workers_where_there_are_no_channels() -> None:
    take: dict[str, Any] = {"q": "q", "m": "m", "redelivered": False}
    events = history(
        ev("deliver", **take, conn="c1", ctag="w1"),
        ev("conn_drop", "invoke", conn="c1"),
        ev("deliver", **(take | {"redelivered": True}), conn="c2", ctag="w2"),
    )
    assert BY_ID["P2"].check(events).verdict is not Verdict.VIOLATED


def test_the_end_of_a_connection_ends_nobody_whose_name_only_looks_like_it() -> None:
    take: dict[str, Any] = {"q": "q", "m": "m", "redelivered": False}
    events = history(
        ev("deliver", **take, ctag="c1/w1"),
        ev("conn_drop", "invoke", conn="c1"),
        ev("deliver", **(take | {"redelivered": True}), ctag="w2"),
    )
    assert BY_ID["P2"].check(events).verdict is Verdict.VIOLATED


@pytest.mark.parametrize("part", [0, None])
def test_order_is_that_of_a_partition(part: int | None) -> None:
    take: dict[str, Any] = {"q": "topic", "pub": "p", "redelivered": False, "ctag": "group"}
    events = history(
        ev("deliver", **take, m="m1", pseq=1, part=1),
        ev("deliver", **take, m="m0", pseq=0, part=part),
    )
    assert BY_ID["P4"].check(events).verdict is Verdict.INCONCLUSIVE
    assert judge(events)[3].verdict is Verdict.INCONCLUSIVE
