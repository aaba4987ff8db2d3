"""P26: before its delay is over nobody is given a message, and nobody when its time to live is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from seriatim_models.conformance.lint import lint
from seriatim_models.history.complete import complete
from seriatim_models.history.event import Event
from seriatim_models.history.unrecorded import with_gaps
from seriatim_models.properties.base import Verdict
from seriatim_models.properties.blackbox.in_time import InTime
from seriatim_models.properties.standing import confirmed

from .blackbox_histories import BY_ID, Recording

MS = 1_000_000
P26 = BY_ID["P26"]


def event(ev: str, t: float, ph: str = "", **fields: object) -> Event:
    # Any field of Event; msgspec does not check on construction
    at = {"i": 0, "t": round(t * MS), "ev": ev, "ph": ph, "lvl": "api", "q": "q", "conn": "c"}
    return Event(**(at | fields))  # type: ignore[arg-type]


def verdict(*events: Event) -> Verdict:
    numbered = [
        Event(**{**{f: getattr(e, f) for f in e.__struct_fields__}, "i": i})
        for i, e in enumerate(events)
    ]
    return confirmed(P26, P26.check(list(complete(numbered)))).verdict


def published(args: dict[str, object], *, m: str = "m", answer: str = "ok") -> tuple[Event, Event]:
    """From 0 to 10 ms; its end perhaps written down at 900."""
    at = 900 if "answered" in args else 10
    begun = {k: v for k, v in args.items() if k != "answered"}
    return (
        event("publish", 0, "invoke", m=m, op=1, args=begun),
        event("publish", at, answer, m=m, op=1, args=args),
    )


def got(t: float, m: str = "m", **fields: object) -> tuple[Event, Event]:
    """Polled for from then, answered 5 ms later."""
    return event("get", t, "invoke", op=int(t), ch=2), event(
        "get", t + 5, "ok", op=int(t), ch=2, m=m, dtag=1, **fields
    )


@pytest.mark.parametrize(
    ("delay", "t", "expected"),
    [
        (200, 100, Verdict.VIOLATED),
        (200, 174, Verdict.VIOLATED),  # answered at 179
        (200, 176, Verdict.INCONCLUSIVE),  # 20 ms may be missing
        (200, 194, Verdict.INCONCLUSIVE),
        (200, 196, Verdict.OK),
        (20, 1, Verdict.INCONCLUSIVE),  # nor could it be reported
        (20, 100, Verdict.INCONCLUSIVE),
        (21, 100, Verdict.OK),
        (200, 500, Verdict.OK),
        (0, 1, Verdict.INCONCLUSIVE),
        (True, 1, Verdict.INCONCLUSIVE),
        ("200", 1, Verdict.INCONCLUSIVE),
        (1e308, 500, Verdict.VIOLATED),  # more nanoseconds than a float holds
        (-1e308, 1, Verdict.INCONCLUSIVE),
        (2**63 - 1, 500, Verdict.VIOLATED),
    ],
)
def test_a_delay_counts_from_when_its_publish_began(
    delay: object, t: float, expected: Verdict
) -> None:
    assert verdict(*published({"delay": delay}), *got(t)) is expected


def test_a_queue_may_declare_how_exact_its_clock_is() -> None:
    sent = published({"delay": 15})
    assert verdict(*sent, *got(1)) is Verdict.INCONCLUSIVE
    exact = event("declare", 0, args={"tick": 1})
    assert verdict(exact, *sent, *got(1)) is Verdict.VIOLATED
    assert verdict(exact, *sent, *got(11)) is Verdict.OK


@pytest.mark.parametrize(
    ("t", "expected"),
    [(100, Verdict.INCONCLUSIVE), (309, Verdict.INCONCLUSIVE), (311, Verdict.VIOLATED)],
)
def test_a_time_to_live_counts_from_the_answer(t: float, expected: Verdict) -> None:
    assert verdict(*published({"ttl": 200}), *got(t)) is expected
    # The answer may be written down later, also behind what was got.
    begun, ended = published({"ttl": 200, "answered": 10 * MS}, answer="info")
    assert verdict(begun, *got(t), ended) is expected


def test_looking_for_what_is_old_is_a_case() -> None:
    assert verdict(*published({"ttl": 200}), *got(400, m="")) is Verdict.OK
    assert verdict(*published({"ttl": 200}), *got(100, m="")) is Verdict.INCONCLUSIVE


def test_what_is_pushed_after_all_had_come_to_rest_was_not_on_its_way() -> None:
    consume = (
        event("consume", 0, "invoke", ch=2, ctag="t"),
        event("consume", 1, "ok", ch=2, ctag="t"),
    )
    pushed = event("deliver", 900, ch=2, ctag="t", m="m", dtag=1)
    rest = event("note", 800, args={"rest": True})
    assert verdict(*consume, *published({"ttl": 200}), pushed) is Verdict.INCONCLUSIVE
    assert verdict(*consume, *published({"ttl": 200}), rest, pushed) is Verdict.VIOLATED


def test_of_what_may_have_another_time_nothing_is_said() -> None:
    begun, ended = published({"ttl": 200})
    unknown = published({"ttl": 200}, answer="info")
    first, back = got(50), event("nack", 60, ch=2, dtag=1, requeue=True, m="m")
    assert verdict(begun, ended, *first, back, *got(700)) is Verdict.INCONCLUSIVE
    assert verdict(*unknown, *got(700)) is Verdict.INCONCLUSIVE
    assert verdict(begun, ended, begun, ended, *got(700)) is Verdict.INCONCLUSIVE
    assert verdict(begun, ended, *got(700, dead=True)) is Verdict.INCONCLUSIVE
    refused = published({"delay": 200}, answer="fail")
    assert verdict(*refused, *got(20)) is Verdict.INCONCLUSIVE


def test_any_number_of_milliseconds_can_be_written_to_a_state() -> None:
    """Streams keep what P26 keeps as numbers of 64 bits; a `ttl` may be any number, and `answered` another."""
    for said in ({}, {"answered": True}, {"answered": 2**63 - 1}):
        args: dict[str, object] = {"ttl": 2**63 - 1, "delay": 1e308, **said}
        assert isinstance(P26, InTime)
        state = P26.start()
        P26.feed(state, [*published(args), *got(20)])
        msgspec.msgpack.encode(state)


def test_an_answer_at_a_time_that_is_none_is_when_it_was_written_down() -> None:
    assert verdict(*published({"ttl": 1000, "answered": True}), *got(1500)) is Verdict.INCONCLUSIVE
    assert verdict(*published({"ttl": 1000, "answered": 10 * MS}), *got(1500)) is Verdict.VIOLATED


def leased(**args: object) -> Event:
    return event("declare", 0, args={"lease": 200, **args})


def taken(t: float, by: str = "", ch: int | None = None, **who: str) -> tuple[Event, Event]:
    """A worker asks for a message, and is given it 5 ms later."""
    named = {"conn": "", "proc": by, "ch": ch, "dtag": 1 if ch else None, **who}
    op = round(t)
    return (
        event("get", t, "invoke", op=op, **named),
        event("get", t + 5, "ok", op=op, m="m", **named),
    )


def lasts(by: str, t: float) -> tuple[Event, Event]:
    """A call of a channel and its answer, by which it is known to have been there."""
    named: dict[str, Any] = {"conn": by, "ch": 1, "q": "", "op": 9, "prefetch": 1}
    return event("qos", t, "invoke", **named), event("qos", t + 1, "ok", **named)


SENT = (event("publish", 0, "invoke", m="m", op=1), event("publish", 5, "ok", m="m", op=1))
A: dict[str, Any] = {"conn": "a", "ch": 1}
B: dict[str, Any] = {"conn": "b", "ch": 1}


def test_a_lease_is_another_ones() -> None:
    """Who has a message may ask for it again: XREADGROUP of Redis with an id gives what is pending."""
    first = taken(10, "w1")
    assert verdict(leased(), *SENT, *first, *taken(100, "w2")) is Verdict.VIOLATED
    assert verdict(leased(), *SENT, *first, *taken(100, "w1")) is Verdict.INCONCLUSIVE
    assert verdict(leased(), *SENT, *taken(10), *taken(100)) is Verdict.INCONCLUSIVE
    over = event("expire", 50, m="m", requeue=True, conn="")
    assert verdict(leased(), *SENT, *first, over, *taken(100, "w2")) is Verdict.VIOLATED
    assert verdict(leased(), *SENT, *first, *taken(196, "w2")) is Verdict.INCONCLUSIVE
    assert verdict(leased(tick=1), *SENT, *first, *taken(196, "w2")) is Verdict.VIOLATED
    assert verdict(leased(tick=1), *SENT, *first, *taken(206, "w2")) is Verdict.OK


def test_two_copies_are_under_two_leases() -> None:
    again = (event("publish", 6, "invoke", m="m", op=2), event("publish", 7, "ok", m="m", op=2))
    both = *taken(10, "w1"), *taken(100, "w2")
    assert verdict(leased(), *SENT, *again, *both) is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    "end",
    [
        event("ch_close", 50, "invoke", **A),
        event("conn_drop", 50, conn="a"),
        event("conn_close", 50, conn="a"),
        event("cancel", 50, **A),
        event("delete", 50),
        event("expire", 50, m="m", requeue=False, conn=""),
    ],
    ids=lambda end: str(end.ev),
)
def test_a_lease_ends_with_its_holder(end: Event) -> None:
    """A session or a connection that is closed gives back what it had (Azure Service Bus, Pulsar)."""
    first, second = taken(10, **A), taken(100, **B)
    assert verdict(leased(), *SENT, *first, *second, *lasts("a", 110)) is Verdict.VIOLATED
    assert verdict(leased(), *SENT, *first, end, *second, *lasts("a", 110)) is Verdict.INCONCLUSIVE


def test_whose_connection_may_have_ended_unseen_may_have_no_lease() -> None:
    first, second = taken(10, **A), taken(100, **B)
    assert verdict(leased(), *SENT, *lasts("a", 7), *first, *second) is Verdict.INCONCLUSIVE
    assert verdict(leased(), *SENT, *first, *second, *lasts("a", 110)) is Verdict.VIOLATED


CH: dict[str, Any] = {"conn": "a", "ch": 1, "gen": 1}
FIRST: dict[str, Any] = {"redelivered": False, **CH}


def call(r: Recording, ev: str, **fields: Any) -> None:
    """Asked and answered."""
    op = len(r.events)
    for ph in ("invoke", "ok"):
        r.add(ev, ph, op=op, **fields)


def sent(r: Recording, m: str, delay: int, **fields: Any) -> None:
    """Published by p, perhaps with a delay."""
    named = {"q": "q", "pub": "p", "pseq": int(m[1:]), "conn": "p", "ch": 1, "gen": 1, **fields}
    call(r, "publish", m=m, args={"delay": delay} if delay else {}, **named)


def overtaken(delay: int) -> Recording:
    """P4 and P5: the second message comes first."""
    r = Recording()
    sent(r, "m0", delay)
    sent(r, "m1", 0)
    for dtag, m in ((1, "m1"), (2, "m0")):
        call(r, "get", q="q", m=m, dtag=dtag, **FIRST)
    return r


def found_empty(delay: int) -> Recording:
    """P20."""
    r = Recording()
    sent(r, "m0", delay)
    for m in ("", "m0"):
        call(r, "get", q="q", m=m, autoack=True, proc="w")
    return r


def low_first(delay: int) -> Recording:
    """P22."""
    r = Recording()
    call(r, "declare", q="q", args={"x-max-priority": 2}, **CH)
    for n, prio in ((0, 1), (1, 0)):
        sent(r, f"m{n}", delay * prio, prio=prio)
    for dtag, m in ((1, "m1"), (2, "m0")):
        call(r, "get", q="q", m=m, dtag=dtag, **FIRST)
    return r


def before_the_requeued(delay: int) -> Recording:
    """P25: what was requeued goes to the head, and the other one is given."""
    r = Recording("broker")
    r.add("declare", q="q", args={"requeue": "tail"}, **CH)
    for n in (0, 1):
        begun = {"delay": delay} if n else {}
        r.add("publish", q="q", m=f"m{n}", args=begun or {}, conn="p", ch=1, gen=1)
    r.add("get", q="q", m="m0", dtag=1, **FIRST)
    r.add("nack", q="q", ms=["m0"], dtag=1, requeue=True, **CH)
    r.add("get", q="q", m="m0", dtag=2, redelivered=True, **CH)
    return r


def woken_late(delay: int) -> Recording:
    """P14: a consumer is ready at rest beside the message, which it is given later."""
    r = Recording()
    r.add("note", args={"rest": True})
    call(r, "ch_open", **CH)
    call(r, "consume", q="q", ctag="t", **CH)
    sent(r, "m0", delay)
    r.add("note", args={"rest": True})
    call(r, "get", q="other", **CH)
    r.add("deliver", q="q", m="m0", ctag="t", dtag=1, **FIRST)
    r.alive("a")
    return r


def seen_empty(delay: int) -> Recording:
    """P1: nothing is ready, and nobody has anything."""
    r = Recording()
    sent(r, "m0", delay)
    r.add("note", q="q", args={"depth": 0, "held": 0, "rest": True})
    return r


@pytest.mark.parametrize(
    ("made", "ids"),
    [
        (overtaken, ["P4", "P5"]), (found_empty, ["P20"]), (low_first, ["P22"]), (before_the_requeued, ["P25"]),
        (woken_late, ["P14"]), (seen_empty, ["P1"]),
    ],
)  # fmt: skip
def test_a_message_that_waits_is_not_there_yet(
    made: Callable[[int], Recording], ids: list[str]
) -> None:
    for id in ids:
        for delay, expected in ((0, True), (50, False)):
            events = list(complete(made(delay).events))
            assert (BY_ID[id].check(events).verdict is Verdict.VIOLATED) is expected, (id, delay)
            assert list(complete(events)) == events


@pytest.mark.parametrize(("made", "id"), [(woken_late, "P14"), (seen_empty, "P1")])
def test_a_message_whose_delay_is_over_is_there(made: Callable[[int], Recording], id: str) -> None:
    events = [
        Event(**{**{f: getattr(e, f) for f in e.__struct_fields__}, "t": 60 * MS * e.i})
        for e in made(50).events
    ]
    assert BY_ID[id].check(list(complete(events))).verdict is Verdict.VIOLATED


def of_its_queue(r: Recording, delay: int) -> list[Event]:
    """The same, where the queue was declared with the delay, and no message has one of its own."""
    args: dict[str, Any] = {"delay": delay} if delay else {}
    changed: dict[str, dict[str, Any]] = {"declare": args, "publish": {"delay": None}}
    events = [
        msgspec.structs.replace(
            e, args={k: v for k, v in {**e.args, **changed[e.ev]}.items() if v is not None}
        )
        if e.ev in changed
        else e
        for e in r.events
    ]
    return [Event(i=-1, ev="declare", t=-1, q="q", args=args, lvl=r.lvl), *events]


@pytest.mark.parametrize(
    ("made", "ids"),
    [
        (overtaken, ["P4", "P5"]), (found_empty, ["P20"]), (low_first, ["P22"]), (before_the_requeued, ["P25"]),
        (woken_late, ["P14"]), (seen_empty, ["P1"]),
    ],
)  # fmt: skip
def test_the_delay_of_a_queue_is_that_of_each_of_its_messages(
    made: Callable[[int], Recording], ids: list[str]
) -> None:
    for id in ids:
        for delay, expected in ((0, True), (50, False)):
            events = list(complete(of_its_queue(made(0), delay)))
            assert (BY_ID[id].check(events).verdict is Verdict.VIOLATED) is expected, (id, delay)
            assert list(complete(events)) == events


@pytest.mark.parametrize(("made", "id"), [(woken_late, "P14"), (seen_empty, "P1")])
def test_a_message_whose_queues_delay_is_over_is_there(
    made: Callable[[int], Recording], id: str
) -> None:
    events = [msgspec.structs.replace(e, t=60 * MS * e.i) for e in of_its_queue(made(0), 50)]
    assert BY_ID[id].check(list(complete(events))).verdict is Verdict.VIOLATED


def declared(delay: object, ph: str = "ok", **args: object) -> Event:
    return event("declare", -9, ph, args={"delay": delay, **args})


@pytest.mark.parametrize(
    ("before", "own", "expected"),
    [
        ([declared(200)], {}, Verdict.VIOLATED),
        ([declared(200, ""), declared(200)], {}, Verdict.VIOLATED),  # declared again as it was
        ([declared(200)], {"delay": 0}, Verdict.INCONCLUSIVE),  # a message's own goes first
        ([declared(0)], {"delay": 200}, Verdict.VIOLATED),
        ([declared(200, passive=True)], {}, Verdict.INCONCLUSIVE),
        ([declared("200")], {}, Verdict.INCONCLUSIVE),
        ([declared(True)], {}, Verdict.INCONCLUSIVE),
        ([declared(200, "invoke"), declared(200, "fail")], {}, Verdict.INCONCLUSIVE),
        ([declared(200, "invoke")], {}, Verdict.INCONCLUSIVE),
        ([declared(200, "invoke"), event("declare", -8, "ok")], {}, Verdict.VIOLATED),
        ([declared(200), event("declare", -8, "invoke")], {}, Verdict.INCONCLUSIVE),
        ([declared(200), event("declare", -8, "ok", q="other")], {}, Verdict.VIOLATED),
        ([declared(200), declared(300)], {}, Verdict.INCONCLUSIVE),  # which it has is not known
        ([declared(200), event("gap", -5, q="")], {}, Verdict.INCONCLUSIVE),  # nor here
        ([declared(200), event("delete", -5, "ok")], {}, Verdict.INCONCLUSIVE),
    ],
)
def test_a_message_is_early_by_the_delay_of_its_queue(
    before: list[Event], own: dict[str, object], expected: Verdict
) -> None:
    assert verdict(*before, *published(own), *got(50)) is expected


def test_with_a_delay_that_is_not_known_nothing_is_lost() -> None:
    for changed, expected in (([], True), ([declared(0), declared(50)], False)):
        events = [
            *changed,
            *(msgspec.structs.replace(e, i=e.i + 10) for e in seen_empty(0).events),
        ]
        found = BY_ID["P1"].check(list(complete(events)))
        assert (found.verdict is Verdict.VIOLATED) is expected


def test_lint_names_a_delay_that_was_changed() -> None:
    for delays, expected in (((50, 50), 0), ((50, 60), 1)):
        given = {hint.id: hint.count for hint in lint(declared(d) for d in delays)}
        assert given.get("changed-delay", 0) == expected


@pytest.mark.parametrize(
    ("args", "t", "kinds", "expected"),
    [
        ({"delay": 200}, 100, ["expire"], Verdict.VIOLATED),
        ({"delay": 200}, 100, ["ack", "conn_close", "nack"], Verdict.VIOLATED),
        ({"delay": 200}, 100, ["get"], Verdict.INCONCLUSIVE),  # it may have been given before
        ({"delay": 200}, 100, ["declare"], Verdict.INCONCLUSIVE),  # nor is its clock known
        ({"ttl": 200}, 500, ["expire"], Verdict.VIOLATED),
        ({"ttl": 200}, 500, ["deliver", "expire"], Verdict.INCONCLUSIVE),
    ],
)
def test_an_end_that_no_recorder_writes_down_explains_no_time(
    args: dict[str, object], t: float, kinds: list[str], expected: Verdict
) -> None:
    """A client does not see a lease end; what it sees of delays is as definite as ever."""
    recorded = with_gaps([*published(args), *got(t)], kinds)
    assert verdict(*recorded) is expected
