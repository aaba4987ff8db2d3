"""What a recorder may leave out: no right system is reported because a field was not recorded."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest

from seriatim_models.history import Event
from seriatim_models.history.complete import complete
from seriatim_models.history.decode import BadLine, checked
from seriatim_models.history.event import GAP
from seriatim_models.properties.base import Verdict
from seriatim_workshop.right.drawing import draw, history
from seriatim_workshop.right.judging import completed, kept

from .blackbox_histories import BY_ID, Recording

FIELDS = (
    "attempt", "cprio", "dead", "op", "pos", "prefetch", "proc", "pseq", "pub", "redelivered", "scope",
)  # fmt: skip
"""Fields without which an event still says what happened: all but those that name who did what to which message, and
`prio` and `key`, without which a message has none."""
C: dict[str, Any] = {"conn": "c", "ch": 1, "gen": 1}


def without(events: Sequence[Event], names: Iterable[str]) -> list[Event]:
    """The events as they are read if the recorder does not know these fields: lost where nothing is left of one."""
    absent = {name: getattr(Event(i=0, ev=""), name) for name in names}
    out = []
    for event in events:
        left = msgspec.structs.replace(event, **absent)
        try:
            out.append(checked(left))
        except BadLine:
            out.append(Event(i=left.i, t=left.t, ev=GAP))
    return out


def reported(seed: int, names: Sequence[str]) -> list[str]:
    """The properties that report a drawn right system whose recorders leave fields out."""
    meaning = draw(seed)
    events = completed(without(history(meaning), names))
    found = [p.check(events) for p in kept(meaning)]
    return [f"{seed} {f.property}: {f.explanation}" for f in found if f.verdict is Verdict.VIOLATED]


@pytest.mark.parametrize(
    ("first", "seeds"), [(7_000, 150), pytest.param(20_000, 2_000, marks=pytest.mark.slow)]
)
def test_no_right_system_is_reported_for_a_field_that_was_not_recorded(
    first: int, seeds: int
) -> None:
    wrong = []
    for seed in range(first, first + seeds):
        chance = random.Random(seed)
        for names in ([chance.choice(FIELDS)], chance.sample(FIELDS, 2), chance.sample(FIELDS, 4)):
            wrong += [f"without {', '.join(names)}: {text}" for text in reported(seed, names)]
    assert not wrong


UNNAMED = (
    ["ctag"], ["conn"], ["conn", "ctag"], ["conn", "proc"], ["conn", "ctag", "proc"], ["conn", "ctag", "part"],
)  # fmt: skip
"""Names that a recorder may not know, so that two of them look alike."""


@pytest.mark.parametrize("names", UNNAMED, ids="+".join)
@pytest.mark.parametrize(
    ("first", "seeds"),
    [(30_000, 60), pytest.param(40_000, 1_000, marks=pytest.mark.slow)],
)
def test_no_right_system_is_reported_where_nobody_is_named(
    names: list[str], first: int, seeds: int
) -> None:
    assert not [text for seed in range(first, first + seeds) for text in reported(seed, names)]


UNNAMED_FOUND = [
    ("conn", 40344), ("conn", 40611), ("conn", 500073), ("conn", 500145), ("ctag", 40300), ("ctag", 40943),
    ("ctag", 700674), ("ctag", 710572), ("ctag", 720465), ("conn+ctag+part", 710472), ("conn+ctag+part", 710625),
]  # fmt: skip
"""Right systems that were reported: a settlement whose delivery is not known, copies on both sides of lost lines, a
consumer that may refuse what it sent, polls of several, consumers of one channel without tags."""


@pytest.mark.parametrize(("names", "seed"), UNNAMED_FOUND)
def test_what_was_reported_where_nobody_is_named_is_not_any_more(names: str, seed: int) -> None:
    assert not reported(seed, names.split("+"))


def found_nothing(event: Event) -> bool:
    return event.ev == "get" and not event.m and event.ph in ("", "ok")


@pytest.mark.parametrize(
    ("first", "seeds"),
    [(50_000, 100), pytest.param(60_000, 2_000, marks=pytest.mark.slow)],
)
def test_no_right_system_is_reported_where_empty_polls_are_not_recorded(
    first: int, seeds: int
) -> None:
    wrong = []
    for seed in (*range(first, first + seeds), 40031, 40045, 40085, 40288, 700455, 720812):
        meaning = draw(seed)
        events = completed([e for e in history(meaning) if not found_nothing(e)])
        found = [p.check(events) for p in kept(meaning)]
        wrong += [
            f"{seed} {f.property}: {f.explanation}" for f in found if f.verdict is Verdict.VIOLATED
        ]
    assert not wrong


def test_a_queue_without_a_declaration_is_a_plain_one() -> None:
    """From which nothing goes by itself: else a recorder that knows no declarations could report no loss."""
    lost = Recording()
    lost.publish("m0")
    lost.publish("m1")
    lost.deliver("m1")
    lost.settle("ack", "m1")
    for ph in ("invoke", "ok"):
        lost.end("conn_close", "a", ph)
    lost.add("note", q="q", args={"depth": 0})
    unmarked = Recording()
    unmarked.deliver("m0")
    unmarked.settle("nack", "m0")
    unmarked.deliver("m0", "b")
    for id, recording in (("P1", lost), ("P3", unmarked)):
        assert BY_ID[id].check(recording.events).verdict is Verdict.VIOLATED, id
        limited = {"x-message-ttl": 1, "x-dead-letter-exchange": ""}
        declared = [Event(i=-1, ev="declare", q="q", t=-1, args=limited), *recording.events]
        if id == "P1":
            assert BY_ID[id].check(declared).verdict is not Verdict.VIOLATED


def handled(**names: Any) -> Recording:
    """Three messages, one at a time, each settled before the next one comes."""
    r = Recording()
    r.add("ch_open", "ok", **C)
    r.add("qos", "ok", prefetch=1, scope="consumer", **C)
    r.add("consume", "ok", q="q", ctag="t", **C)
    for n in range(3):
        r.add("publish", "ok", q="q", m=f"m{n}", conn="p", ch=1, gen=1)
        r.add("deliver", q="q", m=f"m{n}", ctag="t", redelivered=False, **C)
        said = {k: f"m{n}" if v is None else v for k, v in names.items()}
        r.add("ack", **said, **C)
    return r


def test_a_settlement_may_name_its_message_instead_of_a_tag() -> None:
    events = list(complete(handled(m=None).events))
    assert [e.ms for e in events if e.ev == "ack"] == [["m0"], ["m1"], ["m2"]]
    assert BY_ID["P7"].check(events).verdict is Verdict.OK
    r = handled(m=None)
    for m in ("m3", "m4"):  # the second one beyond the limit
        r.add("publish", "ok", q="q", m=m, conn="p", ch=1, gen=1)
        r.add("deliver", q="q", m=m, ctag="t", redelivered=False, **C)
    finding = BY_ID["P7"].check(list(complete(r.events)))
    assert finding.verdict is Verdict.VIOLATED
    assert finding.n_violations == 1


@pytest.mark.parametrize("ev", ["ack", "nack", "reject"])
def test_a_settlement_that_names_nothing_is_left_out(ev: str) -> None:
    with pytest.raises(BadLine, match=f"field dtag: missing from {ev}, and so are ms and m"):
        checked(Event(i=0, ev=ev, ph="invoke"))
    for named in ({"dtag": 0}, {"ms": ["m0"]}, {"m": "m0"}, {"ph": "ok"}):
        event = msgspec.structs.replace(Event(i=0, ev=ev, ph="invoke"), **named)
        assert checked(event) is event


def test_a_limit_without_a_number_is_left_out() -> None:
    with pytest.raises(BadLine, match="field prefetch: missing from qos, and so is credit"):
        checked(Event(i=0, ev="qos", ph="invoke"))
    for named in ({"prefetch": 0}, {"credit": 5}, {"ph": "ok"}):
        event = msgspec.structs.replace(Event(i=0, ev="qos", ph="invoke"), **named)
        assert checked(event) is event
