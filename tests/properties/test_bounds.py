"""Bounds that are tight: what just keeps within is right, and one more or less is a violation."""

from __future__ import annotations

from typing import Any

import pytest

from seriatim_models.history import Event
from seriatim_models.properties import PROPERTIES, Verdict

Said = tuple[str, dict[str, Any]]
"""An event's name, and fields of the envelope and of `args`."""


def judged(id: str, *events: Said) -> Verdict:
    """Return the verdict of a property on events."""
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
    return PROPERTIES[id].check(history).verdict


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
