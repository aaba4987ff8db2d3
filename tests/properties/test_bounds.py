"""Bounds that are tight: what just keeps within is right, and one more or less is a violation."""

from __future__ import annotations

from typing import Any

import pytest

from seriatim_models.history import Event
from seriatim_models.properties import PROPERTIES, Finding, Verdict

Said = tuple[str, dict[str, Any]]
"""An event's name, and fields of the envelope and of `args`."""


def judged(id: str, *events: Said) -> Verdict:
    """Return the verdict of a property on events."""
    return finding(id, *events).verdict


def finding(id: str, *events: Said) -> Finding:
    """Return what a property finds in events."""
    envelope = set(Event.__struct_fields__)
    history = [
        Event(
            i=i,
            ev=ev,
            lvl="model",
            args={k: v for k, v in fields.items() if k not in envelope},
            **{k: v for k, v in fields.items() if k in envelope},
        )
        for i, (ev, fields) in enumerate(events)
    ]
    return PROPERTIES[id].check(history)


@pytest.mark.parametrize("weight", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("late", [0, 1])
def test_a_first_delivery_is_taken_in_as_many_rounds_as_its_weight_needs(
    weight: int, late: int
) -> None:
    slot = {"slot": "p", "quantum": 2}
    some = {"slot": "p", "weight": weight}
    rounds: list[Said] = [("round", {})] * (-(-weight // 2) + late)
    verdict = judged("FQ-3", ("slot", slot), ("arrive", some), *rounds, ("take", some))
    assert verdict is (Verdict.VIOLATED if late else Verdict.OK)


def test_a_round_that_was_interrupted_does_not_count() -> None:
    some = {"slot": "p", "weight": 1}
    events: list[Said] = [("slot", {"slot": "p", "quantum": 1}), ("arrive", some), ("round", {})]
    served: list[Said] = [("round", {}), ("take", some)]
    assert judged("FQ-3", *events, ("interrupted", {}), *served) is Verdict.OK
    assert judged("FQ-3", *events, *served) is Verdict.VIOLATED


def test_a_round_after_the_loop_was_asked_to_end_does_not_count() -> None:
    slot = {"slot": "p", "quantum": 1}
    begun: list[Said] = [("slot", slot), ("arrive", {"slot": "p", "weight": 2}), ("round", {})]
    after: list[Said] = [("round", {}), ("round", {}), ("stopped", {})]
    assert judged("FQ-3", *begun, ("stopping", {}), *after) is Verdict.OK
    assert judged("FQ-3", *begun, *after) is Verdict.VIOLATED


@pytest.mark.parametrize(
    ("stored", "tries", "parks", "verdict"),
    [
        (0, 2, 1, Verdict.VIOLATED),
        (0, 3, 1, Verdict.OK),
        (0, 3, 2, Verdict.VIOLATED),
        (0, 4, 1, Verdict.VIOLATED),
        (1, 2, 1, Verdict.OK),
        (1, 3, 1, Verdict.VIOLATED),
    ],
)
def test_a_message_is_parked_once_after_its_last_attempt(
    stored: int, tries: int, parks: int, verdict: Verdict
) -> None:
    here = {"channel": "c", "place": [0, 0]}
    attempt: list[Said] = [
        ("handle", {**here, "body": "bad", "ph": "invoke"}),
        ("handle", {**here, "body": "bad", "ph": "fail"}),
        ("back_off", {"channel": "c"}),
    ]
    opened: Said = ("channel", {**here, "max_attempts": 3, "attempts": stored})
    assert judged("LC-6", opened, *attempt * tries, *[("park", here)] * parks) is verdict


@pytest.mark.parametrize(
    ("consumer", "pushed", "verdict"),
    [
        ({"prefetch": 2}, 1, Verdict.VIOLATED),
        ({"prefetch": 2}, 2, Verdict.OK),
        ({"prefetch": 2}, 3, Verdict.VIOLATED),
        ({"prefetch": 0}, 2, Verdict.VIOLATED),
        ({"prefetch": 2, "autoack": True}, 2, Verdict.VIOLATED),
        ({"prefetch": 2, "nolocal": True}, 0, Verdict.OK),
    ],
)
def test_a_server_pushes_as_many_as_there_is_room_for(
    consumer: dict[str, Any], pushed: int, verdict: Verdict
) -> None:
    here = {"conn": "c", "ch": 1, "q": "q"}
    messages = [{**here, "m": f"m{n}", "pos": n} for n in (1, 2, 3)]
    events: list[Said] = [("srv_consume", {**here, "ctag": "t", "ok": True, **consumer})]
    for message in messages:
        events += [("srv_publish", {**message, "x": ""}), ("srv_route", message)]
    auto = consumer.get("autoack", False)
    for tag, message in enumerate(messages[:pushed], 1):
        events.append(("srv_push", {**message, "ctag": "t", "dtag": tag, "autoack": auto}))
    rest: Said = ("srv_rest", {"queues": {}, "unacked": {}})
    assert judged("QS-1", *events, rest) is verdict


@pytest.mark.parametrize(
    ("deficit", "verdict"),
    [(0, Verdict.OK), (2, Verdict.OK), (3, Verdict.VIOLATED), (-1, Verdict.VIOLATED)],
)
def test_a_visit_leaves_less_than_the_first_delivery_costs(deficit: int, verdict: Verdict) -> None:
    visit = {"slot": "p", "deficit": deficit, "empty": False}
    some = {"slot": "p", "weight": 3}
    heavier = {"slot": "p", "weight": 9}
    events: list[Said] = [
        ("slot", {"slot": "p", "quantum": 5}),
        ("arrive", some),
        ("arrive", heavier),
    ]
    assert judged("FQ-1", *events, ("visit", visit)) is verdict


def test_a_slot_is_idle_by_what_was_taken_whatever_its_visit_says() -> None:
    some = {"slot": "p", "weight": 1}
    events: list[Said] = [("slot", {"slot": "p", "quantum": 5}), ("arrive", some), ("take", some)]
    kept = ("visit", {"slot": "p", "deficit": 4, "empty": False})
    assert judged("FQ-1", *events, kept) is Verdict.VIOLATED


@pytest.mark.parametrize(("publisher", "tested"), [("c", 1), ("d", 0)])
def test_a_message_of_another_connection_is_no_case_of_no_local(
    publisher: str, tested: int
) -> None:
    message = {"conn": publisher, "ch": 1, "m": "m", "q": "q", "pos": 1}
    found = finding(
        "NL-1",
        ("srv_consume", {"conn": "c", "ch": 1, "q": "q", "ctag": "t", "ok": True, "nolocal": True}),
        ("srv_publish", {**message, "x": ""}),
        ("srv_route", message),
    )
    assert found.n_tested == tested


@pytest.mark.parametrize(
    ("conn", "verdict"), [("c", Verdict.OK), ("d", Verdict.VIOLATED)], ids=["own", "another"]
)
def test_a_call_lifts_the_limits_of_its_own_connection(conn: str, verdict: Verdict) -> None:
    put = {"k": "c.1", "w": "c.1:2", "n": 2, "capacity": 1}
    call = ("cli_call", {"conn": conn, "ch": 1, "call": 1, "ph": "info", "at": "sent"})
    assert judged("CH-5", call, ("pool_put", put)) is verdict


@pytest.mark.parametrize(
    ("then", "verdict"),
    [
        ([{"call": 1, "ph": "info", "at": "sent"}], Verdict.OK),
        ([{"call": 1, "ph": "fail", "why": "closed"}], Verdict.VIOLATED),
        ([{"call": 2, "ph": "invoke", "op": "get"}, {"call": 2, "ph": "info"}], Verdict.VIOLATED),
        ([], Verdict.VIOLATED),
    ],
    ids=["sent", "failed", "another-sent", "never-sent"],
)
def test_a_call_that_is_just_being_sent_has_lifted_the_limits(
    then: list[dict[str, object]], verdict: Verdict
) -> None:
    put = {"k": "c.1", "w": "c.1:2", "n": 2, "capacity": 1}
    asked = {"conn": "c", "ch": 1, "call": 1, "ph": "invoke", "op": "get"}
    calls: list[Said] = [("cli_call", {"conn": "c", "ch": 1, **call}) for call in then]
    assert judged("CH-5", ("cli_call", asked), ("pool_put", put), *calls) is verdict


@pytest.mark.parametrize(
    ("last", "verdict"),
    [
        (("look", {"channel": "c", "unread": True}), Verdict.VIOLATED),
        (("sleep", {"channel": "c"}), Verdict.VIOLATED),
        (("handle", {"channel": "c", "place": [0, 0], "body": "m", "ph": "invoke"}), Verdict.OK),
        (("back_off", {"channel": "c"}), Verdict.OK),
    ],
)
def test_a_consumer_that_rests_beside_a_message_has_to_be_at_work(
    last: Said, verdict: Verdict
) -> None:
    here = {"channel": "c", "place": [0, 0]}
    stands = {"place": [0, 9], "connected": True, "held": 0, "parked": []}
    assert (
        judged(
            "LC-4",
            ("channel", {**here, "max_attempts": 3}),
            ("append", {"place": [0, 0], "body": "m"}),
            ("connect", {"channel": "c"}),
            last,
            ("log_rest", {"tail": [0, 9], "channels": {"c": stands}}),
        )
        is verdict
    )


@pytest.mark.parametrize(
    ("between", "verdict"),
    [
        ([("handle", {"channel": "c", "place": [0, 0], "body": "m", "ph": "ok"})], Verdict.OK),
        (
            [("handle", {"channel": "d", "place": [0, 0], "body": "m", "ph": "ok"})],
            Verdict.VIOLATED,
        ),
        ([("park", {"channel": "c", "place": [0, 0]})], Verdict.OK),
        ([], Verdict.VIOLATED),
    ],
    ids=["handled", "handled-by-another", "parked", "unseen"],
)
def test_what_a_channel_has_handled_it_saw_though_its_writing_is_recorded_later(
    between: list[Said], verdict: Verdict
) -> None:
    stands = ("channel", {"channel": "c", "place": [0, 0], "max_attempts": 1, "attempts": 0})
    moved = ("commit", {"channel": "c", "place": [0, 9]})
    written = ("append", {"place": [0, 0], "body": "m"})
    assert judged("LC-2", stands, *between, moved, written) is verdict


def test_what_a_channel_handled_before_it_was_made_anew_is_no_excuse() -> None:
    handled = ("handle", {"channel": "c", "place": [0, 0], "body": "m", "ph": "ok"})
    stands = ("channel", {"channel": "c", "place": [0, 9], "max_attempts": 1, "attempts": 0})
    written = ("append", {"place": [0, 0], "body": "n"})
    assert judged("LC-2", handled, stands, written) is Verdict.VIOLATED
