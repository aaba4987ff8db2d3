"""Who is who: names may hold any character, and two names that only look alike when joined are two."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from seriatim_models.history import Event
from seriatim_models.history.complete import complete
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
        ev("get", "invoke", q="q", ctag="w2", op=2),
        ev("get", "ok", **(take | {"redelivered": True}), ctag="w2", op=2),
        ev("ack", "invoke", q="q", m="m", ms=["m"], ctag="c1/w1", op=1),
        ev("ack", "ok", q="q", m="m", ms=["m"], ctag="c1/w1", op=1),
    )
    assert BY_ID["P2"].check(list(complete(events))).verdict is Verdict.VIOLATED


@pytest.mark.parametrize("part", [0, None])
def test_order_is_that_of_a_partition(part: int | None) -> None:
    take: dict[str, Any] = {"q": "topic", "pub": "p", "redelivered": False, "ctag": "group"}
    events = history(
        ev("deliver", **take, m="m1", pseq=1, part=1),
        ev("deliver", **take, m="m0", pseq=0, part=part),
    )
    assert BY_ID["P4"].check(events).verdict is Verdict.INCONCLUSIVE
    assert judge(events)[3].verdict is Verdict.INCONCLUSIVE


def completed(*events: dict[str, Any]) -> list[Event]:
    """Events in order with what they imply."""
    return list(complete(history(*events)))


CHANNEL: dict[str, Any] = {"conn": "c", "ch": 1}
OPENED = (
    ev("ch_open", "ok", **CHANNEL),
    ev("qos", "invoke", **CHANNEL, prefetch=10, scope="consumer"),
    ev("consume", "invoke", **CHANNEL, q="q", ctag="t", autoack=False),
    ev("consume", "ok", **CHANNEL, ctag="t"),
)


def sent(m: str, q: str = "q", **fields: Any) -> list[dict[str, Any]]:
    """A publish and its confirm, on a channel of its own."""
    where: dict[str, Any] = {"conn": "p", "ch": 1, "m": m, "q": q}
    return [ev("publish", ph, **(where | fields)) for ph in ("invoke", "ok")]


def given(m: str, dtag: int, ctag: str = "t", **fields: Any) -> dict[str, Any]:
    return ev("deliver", **CHANNEL, m=m, ctag=ctag, dtag=dtag, redelivered=False, **fields)


ORDER = ("P4", "P5", "P6", "P20")


def violated(
    events: Sequence[Event], *ids: str, levels: Sequence[str] = ("api", "broker")
) -> list[str]:
    """Which of the properties are violated, seen by clients or inside the broker, in both forms."""
    found = []
    for lvl in levels:
        there = [msgspec.structs.replace(e, lvl=lvl, t_lo=None) for e in events]
        there = list(complete(there))
        rows = [p.check(there) for p in BLACKBOX if p.id in ids]
        assert judge(there, [p for p in BLACKBOX if p.id in ids]) == rows
        found += [f.property for f in rows if f.verdict is Verdict.VIOLATED]
    return [id for id in ids if id in found]


def test_an_order_that_is_wrong_is_found() -> None:
    events = completed(*OPENED, *sent("a"), *sent("b"), given("b", 1), given("a", 2))
    assert violated(events, *ORDER) == ["P4", "P5", "P20"]


def test_a_priority_that_only_the_publish_names_orders_its_delivery() -> None:
    events = completed(
        *OPENED, *sent("a", prio=1), *sent("b", prio=9), given("b", 1), given("a", 2)
    )
    assert violated(events, *ORDER) == []


def test_a_priority_that_another_recorder_saw_leaves_the_order_open() -> None:
    given_: dict[str, Any] = {"pub": "p/1/1", "redelivered": False, "q": "q", "t_lo": 100}
    events = [
        *history(*OPENED, *sent("a", prio=1), *sent("b", prio=9)),
        Event(i=20, t=200, ev="deliver", lvl="api", m="b", pseq=1, rec="r", **CHANNEL, **given_),
        Event(i=21, t=210, ev="deliver", lvl="api", m="a", pseq=0, rec="r", **CHANNEL, **given_),
    ]
    assert violated(events, *ORDER) == []


def test_messages_of_two_keys_have_no_order_and_those_of_one_have() -> None:
    two = completed(*OPENED, *sent("a", key="g"), *sent("b", key="h"), given("b", 1), given("a", 2))
    assert violated(two, *ORDER) == []
    one = completed(*OPENED, *sent("a", key="g"), *sent("b", key="g"), given("b", 1), given("a", 2))
    assert violated(one, *ORDER) == ["P4", "P5"]


def test_a_close_that_has_begun_forgets_no_queue() -> None:
    others = (
        ev("consume", "invoke", **CHANNEL, q="r", ctag="u", autoack=False),
        ev("consume", "ok", **CHANNEL, ctag="u"),
    )
    events = completed(
        *OPENED, *others, *sent("a", q="q"), *sent("b", q="r"),
        ev("ch_close", "invoke", **CHANNEL), given("b", 1, "u"), given("a", 2, "t"),
    )  # fmt: skip
    assert [e.q for e in events[-2:]] == ["r", "q"]
    assert violated(events, *ORDER) == []


def test_a_consumer_that_wants_not_its_own_connections_messages_breaks_no_order() -> None:
    mine: dict[str, Any] = {"conn": "c", "ch": 2}
    nolocal = (
        ev("consume", "invoke", **CHANNEL, q="q", ctag="n", autoack=False, nolocal=True),
        ev("consume", "ok", **CHANNEL, ctag="n"),
    )
    events = completed(
        *OPENED, *nolocal, *sent("a", **mine), *sent("b"), given("b", 1, "n"), given("a", 2, "t")
    )
    assert violated(events, *ORDER) == []


DLQ = (
    ev("consume", "invoke", **CHANNEL, q="dlq", ctag="d", autoack=False),
    ev("consume", "ok", **CHANNEL, ctag="d"),
)


@pytest.mark.parametrize("exchange", [False, True])
def test_a_dead_letter_queue_has_the_order_of_deaths(exchange: bool) -> None:
    to = {"q": "" if exchange else "q"}
    events = completed(
        *OPENED, *DLQ, *sent("a", **to), *sent("b", **to), given("a", 1), given("b", 2),
        ev("reject", **CHANNEL, dtag=2, requeue=False),
        ev("reject", **CHANNEL, dtag=1, requeue=False),
        given("b", 3, "d"), given("a", 4, "d"),
    )  # fmt: skip
    assert violated(events, *ORDER) == []


def test_what_died_unseen_has_the_order_of_deaths_too() -> None:
    events = completed(
        *OPENED, *DLQ, *sent("a"), *sent("b"), given("b", 1, "d"), given("a", 2, "d")
    )
    assert violated(events, *ORDER) == []


@pytest.mark.parametrize("leads_on", [False, True])
def test_what_was_seen_in_a_queue_that_leads_on_may_come_back(leads_on: bool) -> None:
    # Two queues that lead to each other: the message died unseen in the second one, too.
    declared = [
        ev("declare", q=q, args={"x-dead-letter-exchange": "anywhere"} if leads else {})
        for q, leads in (("q", True), ("dlq", leads_on))
    ]
    events = completed(
        *declared, *OPENED, *DLQ, *sent("a"), *sent("b"),
        given("a", 1, "d"), given("b", 2), given("a", 3),
    )  # fmt: skip
    assert violated(events, "P4") == ([] if leads_on else ["P4"])


def test_what_died_may_come_back_to_its_queue_as_new() -> None:
    dies = (
        given("a", 1),
        ev("reject", **CHANNEL, dtag=1, requeue=False),
        given("a", 2),
    )
    declared = ev("declare", q="q", args={"x-dead-letter-exchange": "retry"})
    assert violated(completed(declared, *OPENED, *sent("a"), *dies), "P1", "P2", "P3") == []
    assert violated(completed(*OPENED, *sent("a"), *dies), "P1", "P2", "P3") == []
    plain = ev("declare", q="q")
    assert violated(completed(plain, *OPENED, *sent("a"), *dies), "P1", "P2", "P3") == ["P1", "P3"]


def test_one_message_in_two_queues_is_settled_in_one() -> None:
    events = completed(
        *OPENED, *DLQ, *sent("a", q="q"), *sent("a", q="dlq"), given("a", 1), given("a", 2, "d"),
        ev("nack", "invoke", **CHANNEL, dtag=1, requeue=True, t_hi=125), given("a", 3),
        ev("ack", "invoke", **CHANNEL, dtag=2),
    )  # fmt: skip
    first, second, _, again, _ = events[-5:]
    assert [e.q for e in (first, second, again)] == ["q", "dlq", "q"]
    assert [e.t_lo for e in (first, second, again)] == [first.t_lo, second.t_lo, 120]
    assert second.t_lo is not None
    assert second.t_lo < 120


def test_a_message_that_is_sent_again_may_have_either_place() -> None:
    twice = (
        sent("a")[0],
        ev("publish", "info", conn="p", ch=1, m="a", q="q"),
        *sent("b"),
        *sent("a"),
    )
    events = completed(*OPENED, *twice, given("b", 1), given("a", 2))
    assert violated(events, *ORDER, levels=["api", "wire"]) == []
