"""What counts as a case: where a wrong system could have done otherwise. Without one there is no "ok"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from seriatim_models.history import Event
from seriatim_models.history.complete import complete
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.columnar.evaluator import judge

from .blackbox_histories import BY_ID, Recording

OK, VIOLATED, INCONCLUSIVE = Verdict.OK, Verdict.VIOLATED, Verdict.INCONCLUSIVE


def found(id: str, events: Sequence[Event]) -> Finding:
    """The finding, which both forms agree on."""
    finding = BY_ID[id].check(events)
    assert judge(events, [BY_ID[id]]) == [finding]
    return finding


def prefetched(r: Recording, m: str, **fields: Any) -> None:
    r.deliver(m, prefetch=1, scope="consumer", **fields)


def test_p6_without_a_requeue_has_no_case() -> None:
    r = Recording()
    for n in range(4):
        r.publish(f"m{n}")
        prefetched(r, f"m{n}")
        r.settle("ack", f"m{n}")
    assert found("P6", r.events).verdict is INCONCLUSIVE


def test_p6_with_a_requeue_has_one() -> None:
    r = Recording()
    for n in range(2):
        r.publish(f"m{n}")
    prefetched(r, "m0")
    r.settle("nack", "m0")
    prefetched(r, "m0", redelivered=True)
    finding = found("P6", r.events)
    assert (finding.verdict, finding.n_tested) == (OK, 1)


def test_p2_has_no_case_where_handing_out_settles() -> None:
    r = Recording()
    r.publish("m0")
    r.deliver("m0", autoack=True)
    assert found("P2", r.events).verdict is INCONCLUSIVE
    r.publish("m1")
    r.deliver("m1")
    assert found("P2", r.events).verdict is OK


@pytest.mark.parametrize("ended", [False, True])
def test_a_second_delivery_after_auto_ack_is_a_duplicate(ended: bool) -> None:
    r = Recording()
    r.publish("m0")
    r.deliver("m0", autoack=True)
    if ended:
        r.end("conn_drop", "a")
    r.deliver("m0", "b", autoack=True)
    finding = found("P1", r.events)
    assert finding.verdict is VIOLATED
    assert "although it was settled when it was given to a/1#1" in finding.explanation


def test_readers_of_a_log_double_nothing() -> None:
    r = Recording()
    r.publish("m0")
    for group in "ab":
        r.deliver("m0", group, autoack=True, pos=0)
    for id in ("P1", "P2"):
        assert found(id, r.events).verdict is not VIOLATED


def put_and_get(*ms: str) -> list[Event]:
    """Puts of m0 to m2 by one worker, and gets of these by another; nothing carries a flag."""
    events: list[Event] = []

    def add(ev: str, ph: str, **fields: Any) -> None:
        i = len(events)
        events.append(Event(i=i, t=10 * i, ev=ev, ph=ph, lvl="api", q="q", **fields))

    for n in range(3):
        for ph in ("invoke", "ok"):
            add("publish", ph, m=f"m{n}", pub="p", pseq=n, proc="p", op=n)
    for n, m in enumerate(ms):
        add("get", "invoke", proc="c", op=100 + n)
        add("get", "ok", m=m, proc="c", op=100 + n, autoack=True)
    return list(complete(events))


def test_a_complete_history_knows_first_deliveries_without_a_flag() -> None:
    assert found("P4", put_and_get("m0", "m1", "m2")).verdict is OK
    stack = put_and_get("m2", "m1", "m0")
    assert found("P4", stack).verdict is VIOLATED
    assert found("P5", stack).verdict is VIOLATED
    assert found("P1", put_and_get("m0", "m0", "m1", "m2")).verdict is VIOLATED


def test_who_may_have_had_it_unseen_leaves_that_open() -> None:
    events = put_and_get("m2", "m1")
    dropped = Event(i=99, t=65, ev="conn_drop", conn="x", lvl="api")
    mixed = sorted([*events, dropped], key=lambda e: e.t or 0)
    plain = [e for e in mixed if e.attempt is None]
    assert len(plain) == len(mixed) - 2
    again = [msgspec.structs.replace(e, attempt=None) for e in mixed]
    assert [e.attempt for e in complete(again) if e.ev == "get" and e.m] == [None, None]


def limited(prefetch: int, held: int) -> list[Event]:
    """A consumer that asked for its limit itself, and was given `held` messages at once."""
    at: dict[str, Any] = {"conn": "c", "ch": 1}
    rows: list[tuple[str, str, dict[str, Any]]] = [
        ("ch_open", "ok", {}),
        ("consume", "invoke", {"q": "q", "ctag": "t", "autoack": False, "prefetch": prefetch}),
        *(("deliver", "", {"m": f"m{n}", "ctag": "t", "dtag": n + 1}) for n in range(held)),
    ]
    return list(
        complete(
            Event(i=i, t=10 * i, ev=ev, ph=ph, lvl="api", **at, **fields)
            for i, (ev, ph, fields) in enumerate(rows)
        )
    )


def test_the_prefetch_of_consume_is_heeded() -> None:
    assert found("P7", limited(2, 2)).verdict is OK
    assert found("P7", limited(2, 3)).verdict is VIOLATED


def test_p14_a_limit_that_a_channel_shares_makes_nobody_surely_ready() -> None:
    second = 1_000_000_000
    where: dict[str, Any] = {"conn": "c", "ch": 1, "q": "q"}
    rows: list[tuple[int, str, str, dict[str, Any]]] = [
        (0, "qos", "invoke", {"prefetch": 1, "scope": "channel"}),
        (1, "consume", "ok", {"ctag": "t"}),
        (2, "publish", "ok", {"m": "m1"}),
        (60, "deliver", "", {"m": "m1", "ctag": "t"}),
    ]
    for scope, verdict in (("channel", INCONCLUSIVE), ("consumer", VIOLATED)):
        rows[0][3]["scope"] = scope
        events = [
            Event(i=i, t=t * second, ev=ev, ph=ph, lvl="api", **(where | fields))
            for i, (t, ev, ph, fields) in enumerate(rows)
        ]
        assert found("P14", events).verdict is verdict


def one_of_each() -> list[Event]:
    """One message through one channel: sent and never confirmed, given once, without a limit, and settled."""
    r = Recording()
    r.add("ch_open", "ok", conn="a", ch=1, gen=1)
    r.add("publish", "invoke", m="m0", q="q", pub="p", pseq=0, conn="pub", ch=1, gen=1)
    r.add("deliver", m="m0", q="q", conn="a", ch=1, gen=1, ctag="t", autoack=True, pub="p", pseq=0)
    return r.events


@pytest.mark.parametrize("id", [p.id for p in BLACKBOX if p.id not in ("P1", "P20")])
def test_a_history_in_which_nothing_could_have_been_done_otherwise_is_inconclusive(id: str) -> None:
    assert found(id, one_of_each()).verdict is INCONCLUSIVE
    assert BY_ID[id].case


def test_what_was_taken_could_have_come_from_nowhere() -> None:
    assert found("P1", one_of_each()).verdict is OK
    assert found("P1", []).verdict is INCONCLUSIVE
