"""What a recording implies: incarnations, settled messages, publishers, and the earliest instant of a delivery."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from seriatim_models.conformance.lint import lint
from seriatim_models.history import Event
from seriatim_models.history import complete as completion
from seriatim_models.history.complete import Completion, complete
from seriatim_models.history.event import GAP


def recording(*rows: tuple[str, str, dict[str, Any]], lvl: str = "api") -> list[Event]:
    """Events of one channel, completed; `t` is ten times the index."""
    return list(
        complete(
            Event(i=i, t=10 * i, ev=ev, ph=ph, lvl=lvl, **{"conn": "c", "ch": 1, **fields})
            for i, (ev, ph, fields) in enumerate(rows)
        )
    )


OPEN: tuple[str, str, dict[str, Any]] = ("ch_open", "ok", {})
QOS = ("qos", "invoke", {"prefetch": 1, "scope": "consumer"})
CONSUME = ("consume", "invoke", {"q": "q", "ctag": "t", "autoack": False})


def deliver(m: str, dtag: int) -> tuple[str, str, dict[str, Any]]:
    return ("deliver", "info", {"m": m, "ctag": "t", "dtag": dtag})


def test_channel_numbers_used_again_are_new_incarnations() -> None:
    events = recording(OPEN, ("ch_close", "invoke", {}), OPEN, CONSUME)
    assert [e.gen for e in events] == [1, 1, 2, 2]


def test_lint_names_a_consumer_with_the_tag_of_one_of_an_earlier_incarnation() -> None:
    """A callback of that one may run late, and nothing but `gen` tells them apart."""
    for tag, gen, named in (("t", None, True), ("t", 2, False), ("other", None, False)):
        again = ("consume", "invoke", {"q": "q", "ctag": tag, "autoack": False, "gen": gen})
        rows: tuple[tuple[str, str, dict[str, Any]], ...] = (
            OPEN,
            CONSUME,
            ("ch_close", "invoke", {}),
            OPEN,
            again,
        )
        recorded = [
            Event(i=i, t=10 * i, ev=ev, ph=ph, lvl="api", **{"conn": "c", "ch": 1, **fields})
            for i, (ev, ph, fields) in enumerate(rows)
        ]
        assert ("no-incarnation" in {h.id for h in lint(recorded)}) is named


def test_a_late_callback_is_of_the_incarnation_that_its_recorder_names() -> None:
    """Its consumer has the limit and the queue of that one, though the later one's has the same tag."""
    mine = ("consume", "invoke", {"q": "mine", "ctag": "t", "autoack": True, "gen": 2})
    rows: tuple[tuple[str, str, dict[str, Any]], ...] = (
        OPEN,
        QOS,
        CONSUME,
        ("ch_close", "invoke", {}),
        OPEN,
        mine,
    )
    for gen, said in ((1, ("q", False, 1)), (2, ("mine", True, None))):
        late = ("deliver", "", {"m": "x", "ctag": "t", "dtag": 1, "gen": gen})
        for recorded in (rows, [r for r in rows if r[0] != "ch_open"]):
            got = recording(*recorded, late)[-1]
            assert (got.q, got.autoack, got.prefetch) == said
            assert got.gen == gen


@pytest.mark.parametrize(("asked", "ctag"), [(1, "t"), (2, "")])
def test_a_tag_that_was_asked_for_twice_names_nobody_where_channels_are_not_known(
    asked: int, ctag: str
) -> None:
    rows: list[tuple[str, str, dict[str, Any]]]
    rows = [("consume", "invoke", {"q": "q", "ctag": "t", "conn": ""})] * asked
    assert recording(*rows, ("deliver", "", {"m": "x", "ctag": "t", "conn": ""}))[-1].ctag == ctag


def test_a_delivery_gets_queue_limit_and_publisher() -> None:
    sent = ("publish", "invoke", {"m": "x", "q": "q"})
    *_, got = recording(OPEN, sent, QOS, CONSUME, deliver("x", 1))
    assert (got.q, got.autoack, got.prefetch, got.scope) == ("q", False, 1, "consumer")
    assert (got.pub, got.pseq, got.t_lo) == ("c/1/1", 0, 30)


def test_a_multiple_settlement_names_all_up_to_its_tag() -> None:
    events = recording(
        OPEN,
        CONSUME,
        *(deliver(f"m{n}", n) for n in (1, 2, 3)),
        ("ack", "invoke", {"dtag": 2, "multiple": True}),
        ("nack", "invoke", {"dtag": 3, "requeue": True}),
    )
    assert [(e.ms, e.q) for e in events[-2:]] == [(["m1", "m2"], "q"), (["m3"], "q")]


def test_what_the_recorder_says_is_kept() -> None:
    *_, e = recording(
        OPEN, CONSUME, ("deliver", "info", {"m": "x", "ctag": "t", "gen": 9, "t_lo": 1})
    )
    assert (e.gen, e.t_lo) == (9, 1)


def credit(*between: tuple[str, str, dict[str, Any]]) -> int | None:
    events = recording(
        OPEN,
        QOS,
        CONSUME,
        deliver("m1", 1),
        ("ack", "invoke", {"dtag": 1}),
        *between,
        deliver("m2", 2),
    )
    return events[-1].t_lo


def test_a_full_window_bounds_the_next_delivery_by_the_settlement_that_made_room() -> None:
    assert credit() == 40
    assert credit((GAP, "", {"conn": "", "ch": None})) == 20, (
        "after lost lines only the consume bounds"
    )


def test_inside_the_broker_the_instant_is_exact() -> None:
    *_, e = recording(OPEN, CONSUME, deliver("m1", 1), lvl="model")
    assert e.t_lo == e.t


def test_without_openings_a_command_after_the_end_opens_a_channel() -> None:
    sent = ("publish", "", {"m": "x", "q": "q"})
    for end in (("ch_close", "ok", {}), ("conn_drop", "info", {}), ("conn_open", "", {"ch": None})):
        events = recording(sent, end, ("deliver", "", {"m": "y", "dtag": 7}), sent)
        assert [events[n].gen for n in (0, 2, 3)] == [1, 1, 2], end[0]
        events = recording(OPEN, sent, end, sent)
        assert events[-1].gen == 1, "its openings are recorded, and there was none"


def test_a_delivery_is_the_first_only_if_nobody_else_may_have_had_the_message() -> None:
    sent = ("publish", "", {"m": "x", "q": "q", "ch": 9})
    other = {"q": "q", "ctag": "u", "ch": 2}
    for before, first in (
        ([], 1),
        ([("consume", "", other)], None),
        ([("consume", "", {**other, "autoack": True})], 1),
        ([("get", "", {"q": "q", "ch": 2})], None),
        ([("consume", "", other), ("ch_close", "ok", {"ch": 2})], 1),
        ([("consume", "", other), ("ch_close", "invoke", {"ch": 2})], None),
        ([("get", "invoke", {"q": "q", "conn": "", "ch": None, "proc": "w"})], None),
        ([("deliver", "", {"m": "x", "q": "q", "ch": 3}), ("ch_close", "ok", {"ch": 3})], None),
    ):
        *_, got = recording(
            *before, CONSUME, sent, (*deliver("x", 1)[:1], "", *deliver("x", 1)[2:])
        )
        assert got.attempt == first, before


def test_what_one_recorder_saw_bounds_what_another_one_did() -> None:
    rows: list[tuple[str, str, dict[str, Any]]] = [
        ("publish", "p", {"m": "x", "q": "q"}),
        ("get", "c", {"q": "q", "m": "x", "ph": "ok"}),
    ]

    def got(**how: Any) -> Event:
        rows[0][2].update(how)
        events = complete(
            Event(i=0, t=n, ev=ev, rec=rec, conn=rec, ch=1, **fields)
            for n, (ev, rec, fields) in enumerate(rows)
        )
        return list(events)[1]

    assert (got(ph="invoke").pub, got(ph="invoke").t_lo) == ("p/1/1", 0)
    assert got(ph="").t_lo is None  # perhaps the line was written behind the call
    assert got(ph="", t_lo=-3).t_lo == -3


def test_lines_of_one_channel_that_stand_behind_their_time_have_no_place() -> None:
    sent = [
        ("a", 1),
        ("c", 3),
        ("b", 2),
        ("d", 4),
    ]  # b was written down behind c, which was sent later
    events = complete(
        Event(i=i, t=10 + i, t_lo=t_lo, ev="publish", m=m, q="q", conn="p", ch=1)
        for i, (m, t_lo) in enumerate(sent)
    )
    assert [e.m for e in events if e.pseq is not None] == ["a", "c", "d"]


def test_a_limit_bounds_nothing_that_need_not_be_settled() -> None:
    for autoack in (False, True):
        limit = ("qos", "invoke", {"prefetch": 1, "scope": "channel"})
        begun = ("consume", "invoke", {"q": "q", "ctag": "t", "autoack": autoack})
        ack = ("ack", "", {"dtag": 1})
        *_, got = recording(OPEN, limit, begun, deliver("x", 1), ack, deliver("y", 2))
        assert got.t_lo == (20 if autoack else 40)


def test_what_an_exchange_routed_may_have_died_in_another_queue() -> None:
    for args in ({}, {"x-dead-letter-exchange": "x"}):
        declared = ("declare", "ok", {"q": "q", "args": args})
        sent = ("publish", "", {"m": "x", "q": ""})
        *_, got = recording(declared, sent, ("deliver", "", {"m": "x", "q": "dead", "dtag": 1}))
        assert bool(got.dead) is bool(args)


@pytest.mark.parametrize("channels", [1, 7])
@pytest.mark.parametrize("closes", [False, True])
def test_what_waits_for_an_outcome_is_bounded_after_the_state_was_loaded_too(
    channels: int, closes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settlements that nobody answers, of all channels together, also of those that ended: the oldest are forgotten,
    and the rest has its outcome. It was so many of each channel, and of a thousand that was more than all else.
    """
    monkeypatch.setattr(completion, "UNANSWERED_KEPT", 100)
    n = 120
    on = [{"conn": "c", "ch": 1 + k % channels, "gen": 1, "q": "q"} for k in range(n + 1)]
    of: list[dict[str, Any]] = [
        {"ev": "ch_open", "ph": "ok", **by, "q": ""} for by in on[:channels]
    ]
    for k in range(1, n + 1):
        of.append({"ev": "deliver", "ph": "info", "m": f"m{k}", "dtag": k, **on[k]})
        of.append({"ev": "ack", "ph": "invoke", "dtag": k, **on[k]})
        if closes and k > n - channels:
            of.append({"ev": "ch_close", **on[k], "q": ""})
    of += [{"ev": "ack", "ph": "ok", "dtag": k, **on[k]} for k in (20, 21, n)]
    events = [Event(i=i, t=i, **fields) for i, fields in enumerate(of)]
    half = len(events) // 2
    first, second = Completion(), Completion()
    whole = [first(e) for e in events]
    for e in events[:half]:
        second(e)
    loaded = msgspec.msgpack.decode(msgspec.msgpack.encode(second), type=Completion)
    assert [loaded(e) for e in events[half:]] == whole[half:]
    assert [e.ms for e in whole[-3:]] == [None, ["m21"], [f"m{n}"]]
    assert len(first._unanswered) == 98


def test_channels_of_one_number_have_answers_of_their_own() -> None:
    """Of two connections, and of one that was opened anew: the answer may come late, and is of the first there."""
    by: dict[str, Any] = {"ch": 1, "q": "q"}
    events = [
        *(Event(i=k, t=k, ev="deliver", conn=conn, m=f"m{k}", dtag=1, **by) for k, conn in enumerate("ab")),
        *(Event(i=2 + k, t=2 + k, ev="ack", ph="invoke", conn=conn, dtag=1, **by) for k, conn in enumerate("ab")),
        Event(i=4, t=4, ev="ch_open", ph="ok", conn="b", ch=1),
        *(Event(i=5 + k, t=5 + k, ev="ack", ph="ok", conn=conn, dtag=1, **by) for k, conn in enumerate("ba")),
    ]  # fmt: skip
    *_, b, a = complete(events)
    assert (b.ms, a.ms) == (["m1"], ["m0"])


def test_numbers_of_a_session_with_credit_say_what_is_settled_and_are_no_tags() -> None:
    """A delivery-id of AMQP 1.0 may begin anywhere, and AMQP 0-9-1 has no credit and no tag zero."""
    for credit, first, tagged in ((1, 7, False), (None, 0, False), (None, 1, True)):
        events = [
            Event(i=0, ev="consume", ph="ok", conn="c", ch=1, q="q", ctag="l", credit=credit),
            Event(i=1, ev="deliver", conn="c", ch=1, ctag="l", m="m0", dtag=first),
            Event(i=2, ev="deliver", conn="c", ch=1, ctag="l", m="m1", dtag=first + 1),
            Event(i=3, ev="ack", conn="c", ch=1, dtag=first),
            Event(i=4, ev="ack", conn="c", ch=1, dtag=first + 9),
        ]
        done = list(complete(events))
        assert done[3].ms == ["m0"]
        assert [e.dtag is not None for e in done[1:4]] == [tagged] * 3
        assert done[4].dtag == first + 9  # what it settles is not known otherwise


@pytest.mark.parametrize(
    ("fields", "before", "first", "tagged"),
    [
        ({"ch": 0}, (), 1, False),
        ({"ch": 1}, (), 1, True),
        ({"ch": 1}, (), 7, False),
        ({"ch": 1, "lvl": "wire"}, (), 7, True),  # a broker that leaves a tag out is wrong
        ({"ch": 1, "lvl": "broker"}, (), 7, True),
        ({"ch": 1}, (Event(i=2, ev="get", conn="c", ch=1, ph="info"),), 7, True),
        ({"ch": 1}, (Event(i=2, ev="cancel", conn="c", ch=1, ctag="k"),), 7, True),
        ({"ch": 1}, (Event(i=2, ev="gap"),), 7, True),
    ],
)
def test_a_session_zero_and_a_first_tag_above_one_are_of_no_channel_of_amqp_0_9_1(
    fields: dict[str, Any], before: tuple[Event, ...], first: int, tagged: bool
) -> None:
    """Channel 0 is the connection's (4.2.3), and tags of a channel begin at 1; of a poll that nobody answered, of a
    cancelled consumer, or of lost lines, the tags before are not seen.
    """
    at: dict[str, Any] = {"conn": "c", "lvl": "api"} | fields
    beside = at | {"ch": 2}
    events = [
        Event(i=0, ev="ch_open", ph="ok", **at),
        Event(i=1, ev="consume", ph="ok", q="q", ctag="l", **at),
        *before,
        Event(i=3, ev="deliver", ctag="l", m="m0", dtag=first, **at),
        Event(i=4, ev="ack", dtag=first, **at),
        Event(i=5, ev="deliver", ctag="k", m="m1", dtag=1, **beside),
    ]
    done = [e for e in complete(events) if e.ev in ("deliver", "ack")]
    assert done[1].ms == ["m0"]
    assert [e.dtag is not None for e in done] == [tagged] * 3


def test_numbers_that_are_no_tags_stay_where_a_settlement_is_for_several() -> None:
    """It is also of deliveries that came and nobody has seen yet."""
    at: dict[str, Any] = {"conn": "c", "ch": 0}
    events = [
        Event(i=0, ev="deliver", ctag="l", q="q", m="m0", dtag=5, **at),
        Event(i=1, ev="nack", dtag=5, multiple=True, requeue=True, **at),
    ]
    assert [(e.dtag, e.ms) for e in complete(events)] == [(None, None), (5, ["m0"])]
