"""P22 to P24: by priority, one group with one consumer, nothing of one's own; seen to hold, to fail, to keep silent."""

from __future__ import annotations

from typing import Any

import pytest

from seriatim_models.conformance.profiles import SYSTEMS
from seriatim_models.history.complete import complete
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.standing import confirmed

from .blackbox_histories import BY_ID, Recording

A: dict[str, Any] = {"conn": "a", "ch": 1, "gen": 1}
B: dict[str, Any] = {"conn": "b", "ch": 1, "gen": 1}


def judge(id: str, r: Recording) -> Finding:
    """The finding, if its witness stands alone."""
    return confirmed(BY_ID[id], BY_ID[id].check(list(complete(r.events))))


def ranked(levels: int | None = 9) -> Recording:
    """A queue with so many priorities."""
    r = Recording()
    r.add("declare", "ok", q="q", args={} if levels is None else {"x-max-priority": levels})
    return r


def publish(r: Recording, m: str, **fields: Any) -> None:
    """Sent and confirmed."""
    for ph in ("invoke", "ok"):
        r.add("publish", ph, m=m, q="q", **({"conn": "p", "ch": 1, "gen": 1} | fields))


def get(r: Recording, m: str, by: dict[str, Any] = A, **fields: Any) -> None:
    """Polled; nobody had it before."""
    r.add("get", "invoke", q="q", op=len(r.events), **by)
    r.add("get", "ok", q="q", op=len(r.events) - 1, m=m, redelivered=False, **by, **fields)


@pytest.mark.parametrize(
    ("levels", "first", "second", "verdict"),
    [
        (9, 1, 5, Verdict.VIOLATED),
        (9, 5, 1, Verdict.OK),
        (9, 5, 5, Verdict.INCONCLUSIVE),  # no choice by priority
        (4, 5, 8, Verdict.INCONCLUSIVE),  # both are of the highest that there is
        (9, None, 5, Verdict.INCONCLUSIVE),  # what none means is not declared
        (None, 1, 5, Verdict.INCONCLUSIVE),  # the queue has no priorities
    ],
)
def test_who_is_of_higher_priority_comes_first(
    levels: int | None, first: int | None, second: int, verdict: Verdict
) -> None:
    r = ranked(levels)
    publish(r, "m0", prio=first)
    publish(r, "m1", prio=second)
    get(r, "m0")
    get(r, "m1")
    assert judge("P22", r).verdict is verdict


def test_a_higher_message_that_was_not_certainly_there_is_not_passed_over() -> None:
    r = ranked()
    publish(r, "m0", prio=1)
    r.add("publish", "invoke", m="m1", q="q", conn="p", ch=1, gen=1, prio=5)
    get(r, "m0")
    r.add("publish", "ok", m="m1", q="q", conn="p", ch=1, gen=1, prio=5)
    get(r, "m1")
    assert judge("P22", r).verdict is Verdict.INCONCLUSIVE


def test_a_higher_message_of_a_group_may_have_to_wait() -> None:
    for key, verdict in (("g", Verdict.INCONCLUSIVE), (None, Verdict.VIOLATED)):
        r = ranked()
        publish(r, "m0", prio=1)
        publish(r, "m1", prio=5, key=key)
        get(r, "m0")
        get(r, "m1", key=key)
        assert judge("P22", r).verdict is verdict, key


def test_of_a_queue_whose_messages_may_die_nothing_is_certain() -> None:
    for args, verdict in (
        ({}, Verdict.VIOLATED),
        ({"x-message-ttl": 5}, Verdict.INCONCLUSIVE),
    ):
        r = Recording()
        r.add("declare", "ok", q="q", args={"x-max-priority": 9} | args)
        publish(r, "m0", prio=1)
        publish(r, "m1", prio=5)
        get(r, "m0")
        get(r, "m1")
        assert judge("P22", r).verdict is verdict, args


def grouped(meaning: str | None = "held") -> Recording:
    """A queue with groups, and two messages of one."""
    r = Recording()
    r.add("declare", "ok", q="q", args={} if meaning is None else {"groups": meaning})
    for m in ("m0", "m1"):
        publish(r, m, key="g")
    return r


@pytest.mark.parametrize(
    ("between", "verdict"),
    [
        ("", Verdict.VIOLATED),
        ("ack", Verdict.INCONCLUSIVE),
        ("recover", Verdict.INCONCLUSIVE),
        ("cancel", Verdict.INCONCLUSIVE),
        ("ch_close", Verdict.INCONCLUSIVE),
        ("conn_drop", Verdict.INCONCLUSIVE),
        ("expire", Verdict.INCONCLUSIVE),
    ],
)
def test_a_group_is_with_one_consumer_until_that_may_have_let_go(
    between: str, verdict: Verdict
) -> None:
    r = grouped()
    get(r, "m0", A, dtag=1)
    match between:
        case "ack":
            r.add("ack", "invoke", dtag=1, **A)
        case "recover" | "ch_close":
            r.add(between, "invoke", **A)
        case "cancel":
            r.add("cancel", "invoke", ctag="", **A)
        case "conn_drop":
            r.add("conn_drop", conn="a")
        case "expire":
            r.add("expire", m="m0", q="q", requeue=True)
    get(r, "m1", B, dtag=1)
    r.alive("a", "b")
    assert judge("P23", r).verdict is verdict


@pytest.mark.parametrize(
    ("between", "there", "verdict"),
    [
        ("", "ab", Verdict.VIOLATED),
        ("", "a", Verdict.INCONCLUSIVE),  # b may have lost its message before a was given another
        ("", "b", Verdict.INCONCLUSIVE),
        ("ack", "ab", Verdict.INCONCLUSIVE),
        ("recover", "ab", Verdict.INCONCLUSIVE),
        ("autoack", "ab", Verdict.INCONCLUSIVE),
        ("same", "ab", Verdict.INCONCLUSIVE),
    ],
)
def test_of_two_gets_that_overlap_both_have_a_message_of_a_group(
    between: str, there: str, verdict: Verdict
) -> None:
    """Which was first is not known, and does not matter once both have theirs."""
    other = A if between == "same" else B
    r = grouped()
    r.add("get", "invoke", q="q", op=90, **A)
    r.add("get", "invoke", q="q", op=91, **other)
    r.add("get", "ok", q="q", op=90, m="m0", redelivered=False, dtag=1, **A)
    if between in ("ack", "recover"):
        r.add(between, "invoke", dtag=1 if between == "ack" else None, **A)
    takes = {"autoack": True} if between == "autoack" else {}
    r.add("get", "ok", q="q", op=91, m="m1", redelivered=False, dtag=2, **other, **takes)
    for by in "ab":
        if by not in there:
            r.add("conn_drop", conn=by)
    r.alive(*there)
    assert judge("P23", r).verdict is verdict


def test_a_group_is_nobodys_if_its_queue_does_not_say_so() -> None:
    for meaning in (None, "ordered"):
        r = grouped(meaning)
        get(r, "m0", A, dtag=1)
        get(r, "m1", B, dtag=1)
        r.alive("a", "b")
        assert judge("P23", r).verdict is Verdict.INCONCLUSIVE


def test_one_consumer_may_have_all_of_a_group() -> None:
    r = grouped()
    get(r, "m0", A, dtag=1)
    get(r, "m1", A, dtag=2)
    assert judge("P23", r).verdict is Verdict.OK


def test_who_may_have_been_killed_may_have_lost_its_group() -> None:
    r = grouped()
    get(r, "m0", A, dtag=1)
    get(r, "m1", B, dtag=1)
    r.alive("b")
    assert judge("P23", r).verdict is not Verdict.OK
    r.add("ch_close", "ok", conn="c", ch=1, gen=1)
    assert judge("P23", r).verdict is Verdict.INCONCLUSIVE


def test_what_is_acquired_before_all_is_let_go_may_be_seen_after_it() -> None:
    r = grouped()
    r.add("consume", "invoke", q="q", ctag="t", **A)
    r.add("recover", "invoke", **A)
    r.add("deliver", m="m0", q="q", ctag="t", dtag=1, redelivered=False, **A)
    get(r, "m1", B, dtag=1)
    r.alive("a", "b")
    assert judge("P23", r).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("case", "verdict"),
    [
        ("own", Verdict.VIOLATED),
        ("another's", Verdict.OK),
        ("not asked for", Verdict.INCONCLUSIVE),
        ("refused", Verdict.INCONCLUSIVE),
        ("older", Verdict.INCONCLUSIVE),
        ("sent twice", Verdict.INCONCLUSIVE),
        ("died elsewhere", Verdict.INCONCLUSIVE),
        ("nobody's", Verdict.INCONCLUSIVE),
    ],
)
def test_a_no_local_consumer_is_given_nothing_of_its_own(case: str, verdict: Verdict) -> None:
    r = Recording("wire")
    mine = B if case == "another's" else A
    if case == "older":
        publish(r, "m0", **mine)
    r.add("consume", "invoke", q="q", ctag="t", nolocal=case != "not asked for", **A)
    r.add("consume", "fail" if case == "refused" else "ok", q="q", ctag="t", **A)
    if case == "sent twice":
        publish(r, "m0", **B)
    if case not in ("older", "nobody's"):
        publish(r, "m0", **mine)
    dead = True if case == "died elsewhere" else None
    r.add("deliver", m="m0", q="q", ctag="t", dtag=1, redelivered=False, dead=dead, **A)
    assert judge("P24", r).verdict is verdict


def test_profiles_promise_them_with_a_source_or_say_why_not() -> None:
    for id, promising in (
        ("P22", {"rabbit-classic"}),
        ("P23", {"pulsar-key-shared", "strict-qpid"}),
        ("P24", {"amqp-0-9-1-4.7", "strict-qpid"}),
    ):
        promised = {p.id for p in SYSTEMS.values() if any(x.property == id for x in p.promises)}
        assert promised == promising
