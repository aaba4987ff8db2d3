"""P14 without a clock: where all has come to rest, a ready consumer beside an available message was not woken."""

from __future__ import annotations

import pytest

from seriatim_models.history.complete import complete
from seriatim_models.history.event import Event
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.standing import confirmed

(P14,) = [p for p in BLACKBOX if p.id == "P14"]
REST: dict[str, object] = {"ev": "note", "args": {"rest": True}}


def judged(*events: dict[str, object]) -> Finding:
    """The finding on events of level broker, one connection, one queue."""
    made = []
    for i, fields in enumerate(events):
        named = {"conn": "c", "lvl": "broker", **fields}
        if "q" not in named and named["ev"] in ("publish", "deliver", "get", "consume"):
            named["q"] = "q"
        made.append(Event(i=i, t=i, **named))  # type: ignore[arg-type]
    return P14.check(list(complete(made)))


def opened(*more: dict[str, object], **consumer: object) -> list[dict[str, object]]:
    """All at rest, a channel with a consumer c1, and whatever comes then."""
    begun: dict[str, object] = {"ev": "consume", "ch": 1, "ctag": "c1", **consumer}
    return [REST, {"ev": "ch_open", "ch": 1}, {"ev": "ch_open", "ch": 2}, begun, *more]


PUBLISH: dict[str, object] = {"ev": "publish", "m": "m0", "pub": "p", "pseq": 0}
GOT: dict[str, object] = {"ev": "get", "ch": 2, "m": "m0", "dtag": 1}
NOTHING: dict[str, object] = {"ev": "get", "ch": 2}


def test_a_message_that_lay_beside_a_ready_consumer_is_a_lost_wake_up() -> None:
    finding = judged(*opened(PUBLISH, REST, GOT))
    assert finding.verdict is Verdict.VIOLATED
    assert "c1" in finding.explanation
    assert [e.ev for e in finding.witness] == [
        "publish",
        "note",
        "ch_open",
        "consume",
        "note",
        "get",
    ]


def test_a_get_at_rest_that_finds_nothing_beside_a_message_is_one_too() -> None:
    channel: dict[str, object] = {"ev": "ch_open", "ch": 2}
    finding = judged(REST, channel, PUBLISH, REST, NOTHING, REST, GOT)
    assert finding.verdict is Verdict.VIOLATED
    assert "found nothing" in finding.explanation


def test_the_word_is_ok_if_everybody_who_was_ready_was_served() -> None:
    delivery: dict[str, object] = {"ev": "deliver", "ch": 1, "ctag": "c1", "m": "m0", "dtag": 1}
    assert judged(*opened(PUBLISH, delivery, REST)).verdict is Verdict.OK
    channel: dict[str, object] = {"ev": "ch_open", "ch": 2}
    assert judged(REST, channel, PUBLISH, REST, GOT).verdict is Verdict.OK


@pytest.mark.parametrize(
    ("why", "events"),
    [
        ("no rest was noted", opened(PUBLISH, GOT)),
        ("the message was never seen again", opened(PUBLISH, REST)),
        ("no credit is left", [REST, {"ev": "ch_open", "ch": 1}, {"ev": "ch_open", "ch": 2},
            {"ev": "qos", "ch": 1, "prefetch": 1, "scope": "consumer"},
            {"ev": "consume", "ch": 1, "ctag": "c1"}, {**PUBLISH, "m": "m9", "pseq": 5},
            {"ev": "deliver", "ch": 1, "ctag": "c1", "m": "m9", "dtag": 1},
            PUBLISH, REST, GOT]),
        ("another limit came later", opened({"ev": "qos", "ch": 1, "prefetch": 1, "scope": "channel"},
            PUBLISH, REST, GOT)),
        ("it selects", opened(PUBLISH, REST, GOT, nolocal=True)),
        ("it was cancelled", opened({"ev": "cancel", "ch": 1, "ctag": "c1"}, PUBLISH, REST, GOT)),
        ("its channel had begun to close", opened({"ev": "ch_close", "ch": 1, "ph": "invoke", "op": 7},
            PUBLISH, REST, GOT)),
        ("its opening was not recorded", [REST, {"ev": "consume", "ch": 1, "ctag": "c1"}, PUBLISH, REST, GOT]),
        ("an exclusive one is there", opened({"ev": "consume", "ch": 2, "ctag": "c2", "exclusive": True},
            {"ev": "qos", "ch": 2, "prefetch": 1, "scope": "channel"}, PUBLISH, REST, GOT)),
        ("only one of them is active", [REST, {"ev": "declare", "q": "q", "args": {"x-single-active-consumer": True}},
            *opened(PUBLISH, REST, GOT)]),
        ("the group may be somebody else's", opened({**PUBLISH, "key": "g"}, REST, GOT)),
        ("something was asked since", [REST, {"ev": "ch_open", "ch": 2}, PUBLISH, NOTHING, REST, GOT]),
        ("the publish failed", opened({**PUBLISH, "ph": "fail"}, REST, GOT)),
        ("the publish is under way", opened({**PUBLISH, "ph": "invoke", "op": 3}, REST, GOT)),
    ],
)  # fmt: skip
def test_what_may_be_explained_is_not_reported(why: str, events: list[dict[str, object]]) -> None:
    assert judged(*events).verdict is not Verdict.VIOLATED, why


def test_what_was_put_back_counts_as_available() -> None:
    taken: dict[str, object] = {"ev": "get", "ch": 2, "m": "m0", "dtag": 1}
    back: dict[str, object] = {"ev": "nack", "ch": 2, "dtag": 1, "requeue": True}
    again: dict[str, object] = {**taken, "dtag": 2, "redelivered": True}
    channel: dict[str, object] = {"ev": "ch_open", "ch": 2}
    assert (
        judged(REST, channel, PUBLISH, taken, back, REST, NOTHING, REST, again).verdict
        is Verdict.VIOLATED
    )


GROUPED: dict[str, object] = {"ev": "declare", "q": "q", "args": {"groups": "held"}}
"""Whoever holds a message of a group has it to itself."""
OF_GROUP: list[dict[str, object]] = [
    {**PUBLISH, "key": "g"},
    {**PUBLISH, "m": "m1", "pseq": 1, "key": "g"},
]
NEXT: dict[str, object] = {"ev": "get", "ch": 2, "m": "m1", "dtag": 2, "key": "g"}
ACK: dict[str, object] = {"ev": "ack", "ch": 2, "dtag": 1}
GROUP_GOT: dict[str, object] = {**GOT, "key": "g"}
GROUP_CONSUMER: dict[str, object] = {"ev": "consume", "ch": 2, "ctag": "c2"}
GROUP_GIVEN: dict[str, object] = {
    "ev": "deliver",
    "ch": 2,
    "ctag": "c2",
    "m": "m0",
    "dtag": 1,
    "key": "g",
}
ONE: dict[str, object] = {"ev": "qos", "ch": 2, "prefetch": 1, "scope": "consumer"}


def grouped(*more: dict[str, object]) -> list[dict[str, object]]:
    """A queue whose groups are held, with two messages of one group; a consumer c1 that comes later is ready."""
    channels: list[dict[str, object]] = [{"ev": "ch_open", "ch": ch} for ch in (1, 2)]
    return [REST, GROUPED, *channels, *OF_GROUP, *more]


READY_ONE: dict[str, object] = {"ev": "consume", "ch": 1, "ctag": "c1"}


def test_whoever_waits_for_a_group_is_woken_when_it_is_free() -> None:
    finding = judged(*grouped(GROUP_GOT, READY_ONE, REST, ACK, REST, NEXT))
    assert finding.verdict is Verdict.VIOLATED
    assert "declare" in [e.ev for e in finding.witness]
    assert confirmed(P14, finding).verdict is Verdict.VIOLATED
    over: dict[str, object] = {"ev": "ch_close", "ch": 2}
    again: dict[str, object] = {"ev": "ch_open", "ch": 2}
    gone = grouped(ONE, GROUP_CONSUMER, GROUP_GIVEN, READY_ONE, over, REST, again, NEXT)
    assert judged(*gone).verdict is Verdict.VIOLATED
    nothing: dict[str, object] = {"ev": "get", "ch": 1}
    polled = grouped(GROUP_GOT, ACK, REST, nothing, REST, NEXT)
    assert judged(*polled).verdict is Verdict.VIOLATED


@pytest.mark.parametrize(
    ("why", "events"),
    [
        ("somebody holds one of the group", grouped(GROUP_GOT, READY_ONE, REST, NEXT)),
        ("nothing says that a group is held",
            [e for e in grouped(GROUP_GOT, READY_ONE, ACK, REST, NEXT) if e != GROUPED]),
        ("the group may stay with who had it first",
            grouped(ONE, GROUP_CONSUMER, GROUP_GIVEN, READY_ONE, ACK, {**PUBLISH, "m": "m2", "pseq": 2},
            {**GROUP_GIVEN, "m": "m2", "dtag": 2, "key": None}, REST, {**NEXT, "dtag": 3})),
        ("nobody knows whether the ack had an effect",
            grouped(GROUP_GOT, READY_ONE, *({**ACK, "ph": ph, "op": 5} for ph in ("invoke", "info")), REST, NEXT)),
        ("nobody knows whether a get took one",
            grouped(*({**NOTHING, "ph": ph, "op": 5} for ph in ("invoke", "info")), READY_ONE, REST, NEXT)),
        ("who held one before is not known",
            [GROUPED, *[{"ev": "ch_open", "ch": ch} for ch in (1, 2)], *OF_GROUP, READY_ONE, REST, NEXT]),
    ],
)  # fmt: skip
def test_a_group_that_may_be_somebody_elses_is_not_reported(
    why: str, events: list[dict[str, object]]
) -> None:
    assert judged(*events).verdict is not Verdict.VIOLATED, why


READY: dict[str, object] = {"ev": "note", "q": "q", "args": {"rest": True, "depth": 1}}
EARLY: list[dict[str, object]] = [
    {"ev": "ch_open", "ch": 1},
    {"ev": "consume", "ch": 1, "ctag": "c1"},
    {**PUBLISH, "ph": "ok"},
]
CLOSED: list[dict[str, object]] = [
    {"ev": "ch_close", "ch": 1, "ph": ph, "lvl": "api", "op": 1} for ph in ("invoke", "ok")
]


def at_api(*events: dict[str, object]) -> Finding:
    return judged(*({"lvl": "api", **fields} for fields in events))


def test_what_was_there_before_the_first_note_of_rest_counts() -> None:
    assert judged(*EARLY, REST, GOT).verdict is Verdict.VIOLATED
    assert judged(*EARLY, {**GOT, "ev": "deliver", "ch": 1}, REST).verdict is not Verdict.VIOLATED


def test_a_consumer_that_held_something_before_the_first_note_may_have_no_credit() -> None:
    limited = [EARLY[0], {**EARLY[1], "prefetch": 1}, EARLY[2]]
    had: dict[str, object] = {"ev": "deliver", "ch": 1, "ctag": "c1", "m": "m0", "dtag": 1}
    more = [{**PUBLISH, "m": "m1", "pseq": 1}, REST, {**GOT, "m": "m1"}]
    assert judged(*limited, had, *more).verdict is not Verdict.VIOLATED


def test_a_queue_that_pushes_nothing_is_a_violation_if_it_says_that_it_has_something() -> None:
    assert at_api(*EARLY, READY, *CLOSED).verdict is Verdict.VIOLATED


def test_else_the_verdict_says_what_would_decide_it() -> None:
    finding = at_api(*EARLY, REST, REST, *CLOSED)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "a note of rest with depth" in finding.decides
    assert "m0" in finding.explanation
    empty = {**READY, "args": {"rest": True, "depth": 0}}
    assert at_api(*EARLY, empty, *CLOSED).verdict is Verdict.INCONCLUSIVE


def test_a_client_that_was_killed_unseen_is_no_ready_consumer() -> None:
    """A drawn right history: nothing shows that the consumer was still there."""
    asked: list[dict[str, object]] = [
        {"ev": "qos", "ch": 1, "op": 1, "ph": ph} for ph in ("invoke", "ok")
    ]
    assert at_api(EARLY[0], *asked, *EARLY[1:], READY).verdict is not Verdict.VIOLATED
    assert at_api(EARLY[0], *asked, *EARLY[1:], READY, *CLOSED).verdict is Verdict.VIOLATED


@pytest.mark.parametrize("before", [True, False])
def test_what_was_handed_out_and_settled_before_its_publish_was_answered_is_gone(
    before: bool,
) -> None:
    asked = {**PUBLISH, "ph": "invoke", "op": 1}
    answered = {**asked, "ph": "ok"}
    taken: list[dict[str, object]] = [
        {"ev": "ch_open", "ch": 2},
        asked,
        GOT,
        {"ev": "ack", "ch": 2, "dtag": 1, "q": "q"},
    ]
    begun = [*taken, REST] if before else [REST, *taken]
    finding = judged(*begun, answered, REST, NOTHING)
    assert finding.verdict is not Verdict.VIOLATED
    assert "never seen again" not in finding.explanation
