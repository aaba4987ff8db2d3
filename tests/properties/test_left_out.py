"""What a recorder may leave out: no right system is reported because a field was not recorded."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seriatim_models.history import Event
from seriatim_models.history.complete import complete
from seriatim_models.history.decode import BadLine, checked
from seriatim_models.history.event import GAP
from seriatim_models.history.header import Header
from seriatim_models.history.writing import write_history
from seriatim_models.pipeline import audit_paths
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
    ("first", "seeds"), [(7_000, 150), pytest.param(20_000, 2_000, marks=pytest.mark.night)]
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
    [(30_000, 60), pytest.param(40_000, 1_000, marks=pytest.mark.night)],
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
    [(50_000, 100), pytest.param(60_000, 2_000, marks=pytest.mark.night)],
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


ENDS = ("ch_close", "conn_close", "conn_drop")
UNWRITTEN: dict[str, Callable[[Event], bool]] = {
    "ends of channels": lambda e: e.ev == "ch_close",
    "ends": lambda e: e.ev in ENDS,
    "answers": lambda e: (
        e.ph == "ok" and e.ev not in ("seek", "declare")
    ),  # which have no begin there
    "confirms": lambda e: e.ev == "publish" and e.ph in ("ok", "fail"),
    "openings": lambda e: e.ev == "ch_open",
    "calls": lambda e: e.ev == "rpc",
}
"""Kinds of lines that a recorder may never write."""
UNWRITTEN_FOUND = [
    ("ends of channels", 90004), ("ends of channels", 90013), ("ends of channels", 90021), ("ends of channels", 90030),
    ("ends of channels", 90043), ("ends", 90035), ("answers", 90001), ("answers", 90003), ("answers", 90010),
    ("answers", 90020), ("answers", 90044), ("answers", 92013), ("answers", 92054),
]  # fmt: skip
"""Right systems that were reported: channels that were opened anew, in a broker too, tags that begin again, polls and
calls that nobody answers."""


def reported_without(kind: str, seed: int) -> list[str]:
    """The properties that report a drawn right system whose recorders never write a kind of line."""
    meaning = draw(seed)
    events = completed([e for e in history(meaning) if not UNWRITTEN[kind](e)])
    found = [p.check(events) for p in kept(meaning)]
    return [f"{seed} {f.property}: {f.explanation}" for f in found if f.verdict is Verdict.VIOLATED]


@pytest.mark.parametrize(("kind", "seed"), UNWRITTEN_FOUND)
def test_what_was_reported_for_want_of_a_kind_of_line_is_not_any_more(kind: str, seed: int) -> None:
    assert not reported_without(kind, seed)


@pytest.mark.parametrize("kind", ["confirms", "openings", "calls"])
@pytest.mark.parametrize(
    ("first", "seeds"), [(90_000, 40), pytest.param(91_000, 500, marks=pytest.mark.night)]
)
def test_no_right_system_is_reported_where_a_kind_of_line_is_never_written(
    kind: str, first: int, seeds: int
) -> None:
    assert not [t for seed in range(first, first + seeds) for t in reported_without(kind, seed)]


def closed(recorded: str, opens: bool = True) -> Recording:
    """A message that comes to another channel; the first one was closed, or its recorder says that it was not."""
    r = Recording()
    for ch in (1, 2):
        r.add("ch_open", "ok", conn="c", ch=ch, gen=1)
        r.add("consume", "ok", q="q", ctag=f"t{ch}", conn="c", ch=ch, gen=1)
    r.publish("m0")
    r.add("deliver", q="q", m="m0", ctag="t1", dtag=1, conn="c", ch=1, gen=1)
    if recorded == "before":
        r.add("ch_close", "ok", conn="c", ch=1, gen=1)
    r.add("deliver", q="q", m="m0", ctag="t2", dtag=1, conn="c", ch=2, gen=1)
    if recorded == "after":
        r.add("ch_close", "invoke", conn="c", ch=1, gen=1)
        r.add("ch_close", "ok", conn="c", ch=1, gen=1)
    if opens:
        r.add("ch_open", "ok", conn="c", ch=1, gen=2)
    if recorded:
        r.add("qos", "invoke", prefetch=1, conn="c", ch=2, gen=1)
        r.add("qos", "ok", prefetch=1, conn="c", ch=2, gen=1)
    return r


@pytest.mark.parametrize(
    ("recorded", "opens", "violates"),
    [("before", True, False), ("", True, False), ("after", True, True), ("", False, True)],
)
@pytest.mark.parametrize("lvl", ["api", "broker"])
def test_a_channel_that_is_opened_anew_had_ended(
    recorded: str, opens: bool, violates: bool, lvl: str
) -> None:
    """At some time before, if its end is not recorded; else where that is."""
    r = closed(recorded, opens)
    events = [msgspec.structs.replace(e, lvl=lvl) for e in r.events]
    assert (BY_ID["P2"].check(events).verdict is Verdict.VIOLATED) is violates


def tagged(lvl: str, *given: tuple[str, int], opened: bool = False, polls: int = 0) -> Verdict:
    """P8 of deliveries to consumers, by tag, after polls that nobody answered; those in capitals have no `consume`."""
    r = Recording(lvl)
    if opened:
        r.add("ch_open", "ok", **C)
    for op in range(polls):
        r.add("get", "invoke", q="q", op=op, **C)
    for n, (ctag, dtag) in enumerate(given):
        if ctag not in [c for c, _ in given[:n]] and ctag.islower():
            r.add("consume", "ok", q="q", ctag=ctag, **C)
        r.add("deliver" if ctag else "ack", q="q", m=f"m{n}", ctag=ctag, dtag=dtag, **C)
    return BY_ID["P8"].check(r.events).verdict


@pytest.mark.parametrize(
    ("given", "how", "violates"),
    [
        ([("t", 1), ("t", 2), ("u", 1)], {}, False),  # opened anew, of which there is no line
        ([("t", 1), ("t", 2), ("u", 1)], {"opened": True}, True),
        ([("t", 1), ("t", 2), ("t", 1)], {}, True),  # its consumer is that of before
        ([("t", 1), ("t", 2), ("X", 1)], {}, True),  # of which there is no line either
        ([("t", 1), ("t", 2), ("u", 2)], {}, True),
        ([("t", 1), ("t", 2), ("u", 2)], {"polls": 1}, False),
        ([("t", 1), ("t", 3)], {"opened": True}, True),
        ([("t", 1), ("t", 3)], {"opened": True, "polls": 1}, False),
        ([("t", 1), ("t", 4)], {"opened": True, "polls": 1}, True),
        (
            [("t", 1), ("t", 3), ("", 2)],
            {"opened": True},
            False,
        ),  # somebody settles it: it was given
        ([("t", 1), ("t", 3), ("", 3)], {"opened": True}, True),
    ],
)
def test_tags_that_no_delivery_has_were_given_to_somebody_unseen_or_left_out(
    given: list[tuple[str, int]], how: dict[str, Any], violates: bool
) -> None:
    assert (tagged("wire", *given, **how) is Verdict.VIOLATED) is violates


@pytest.mark.parametrize(("ch", "violates"), [(1, True), (None, False)])
@pytest.mark.parametrize("lvl", ["api", "wire", "broker"])
def test_without_a_channel_a_tag_may_be_used_again(
    ch: int | None, violates: bool, lvl: str, tmp_path: Path
) -> None:
    """Packet identifiers of MQTT are free again once they are acknowledged."""
    r = Recording(lvl)
    where: dict[str, Any] = {"conn": "c", "ch": ch, "gen": ch}
    r.add("ch_open" if ch else "conn_open", "ok", **where)
    for n in range(2):
        r.add("deliver", q="q", m=f"m{n}", dtag=1, **where)
        r.add("ack", q="q", ms=[f"m{n}"], dtag=1, **where)
    path = tmp_path / "packets.jsonl"
    write_history(path, r.events, Header(run="r", lvl=lvl))
    (read,) = audit_paths([path], properties=["P8"]).findings
    for finding in (BY_ID["P8"].check(list(complete(r.events))), read):
        expected = Verdict.VIOLATED if violates else Verdict.INCONCLUSIVE
        assert finding.verdict is expected


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


@pytest.mark.parametrize(
    ("named", "violates"),
    [
        ({"pub": "s", "pseq": 1}, False),
        ({"pub": "s", "pseq": 7}, False),
        ({"pub": "s", "pseq": 0}, True),  # that was another message
        ({"pub": "nobody", "pseq": 1}, True),  # of whom nothing is recorded at all
        ({}, True),
        ({"pub": "s", "pseq": 1, "rec": "first"}, True),  # whose recorder goes on
    ],
)
@pytest.mark.parametrize("conn", ["c", ""])
@pytest.mark.parametrize("id", ["P1", "P20"])
def test_a_message_after_all_that_is_recorded_of_its_publisher_shows_a_recorder_that_stopped(
    id: str, conn: str, named: dict[str, Any], violates: bool
) -> None:
    r = Recording()
    for ph in ("invoke", "ok"):
        r.add("publish", ph, m="m0", q="q", pub="s", pseq=0, conn="p", ch=1, gen=1, rec="first")
    where = {"conn": conn, "ch": 1, "gen": 1} if conn else {"proc": "w"}
    for m, says in (("m0", {"pub": "s", "pseq": 0}), ("m1", named)):
        r.add("get", q="q", m=m, autoack=True, **{"rec": "second"} | where | says)
    events = list(complete(r.events))
    # The other recorder may have stopped at its last line, whatever the message says.
    assert BY_ID[id].check(events).verdict is not Verdict.VIOLATED
    [*_, last] = events
    assert bool(last.args.get("beyond")) is not violates
    assert list(complete(events)) == events
    r.add("publish", "invoke", m="m9", q="q", conn="p", ch=1, gen=1, rec="first")
    r.add("get", q="q", autoack=True, **{"rec": "second"} | where)
    events = list(complete(r.events))
    assert (BY_ID[id].check(events).verdict is Verdict.VIOLATED) is violates


@pytest.mark.parametrize("id", ["P1", "P20"])
@pytest.mark.parametrize("goes_on", [True, False])
def test_what_nobody_sent_was_sent_if_another_recorder_may_have_stopped(
    id: str, goes_on: bool
) -> None:
    """It is known to have gone on by a later line of its own alone; a second at one instant orders nothing."""
    r = Recording()
    for ph in ("invoke", "ok"):
        r.add("publish", ph, m="m0", q="q", proc="p", rec="first")
    for m in ("m0", "m1"):
        r.add("get", q="q", m=m, autoack=True, proc="w", rec="second")
    last = r.add("publish", "invoke", m="m9", q="q", proc="p", rec="first")
    r.events[-1] = msgspec.structs.replace(last, t=(r.events[-2].t or 0) + goes_on)
    events = list(complete(r.events))
    assert (BY_ID[id].check(events).verdict is Verdict.VIOLATED) is goes_on


def stopped(seed: int) -> list[str]:
    """What is reported of a drawn right system, one of whose recorders stops early, as lost or sent by nobody."""
    meaning = draw(seed)._replace(own_recorders=True)
    events = history(meaning)
    chance = random.Random(seed)
    one = chance.choice(sorted({e.rec for e in events}))
    stops = chance.choice([e.i for e in events if e.rec == one])
    left = [e for e in events if e.rec != one or e.i < stops]
    # Of one that wrote down nothing at all nobody knows that it was there.
    if one not in {
        e.rec for e in left if e.ev in BY_ID["P20" if seed % 10 in (6, 7) else "P1"].reads
    }:
        return []
    found = [(p, p.check(completed(left))) for p in kept(meaning) if p.id in ("P1", "P20")]
    return [
        f"{seed} {f.property}: {f.explanation}"
        for _, f in found
        if f.verdict is Verdict.VIOLATED
        and any(text in f.explanation for text in ("nobody sent", "never enqueued", "was drained"))
    ]


@pytest.mark.parametrize(
    ("first", "seeds"), [(95_000, 60), pytest.param(96_000, 600, marks=pytest.mark.night)]
)
def test_no_right_system_is_reported_for_what_it_was_sent_after_a_recorder_stopped(
    first: int, seeds: int
) -> None:
    assert not [text for seed in range(first, first + seeds) for text in stopped(seed)]


def test_a_right_system_is_not_reported_for_what_was_taken_after_a_recorder_stopped() -> None:
    assert not stopped(300_273)


@pytest.mark.parametrize("opens", ["ch_open", "conn_open"])
@pytest.mark.parametrize("shown", [None, "publish", "ch_close"])
def test_who_only_opened_a_channel_may_have_taken_what_is_gone(
    shown: str | None, opens: str
) -> None:
    """His recorder was killed behind the opening; where it wrote down what he does, or his end, the message is lost."""
    r = Recording()
    r.add(opens, "ok", conn="k", ch=1 if opens == "ch_open" else None, rec="second")
    if shown is not None:
        r.add(shown, "ok", conn="k", ch=1, rec="second", m="m1" if shown == "publish" else "")
    for ph in ("invoke", "ok"):
        r.add("publish", ph, m="m0", q="q", proc="p", op=97, rec="first")
    r.add("note", q="q", args={"depth": 0, "held": 0}, rec="first")
    found = BY_ID["P1"].check(list(complete(r.events)))
    assert (found.verdict is Verdict.VIOLATED) is (shown is not None)


def test_a_right_system_whose_consumer_had_only_opened_its_channel_is_not_reported() -> None:
    assert not stopped(96_303)


@pytest.mark.parametrize("goes_on", [False, True], ids=["killed", "goes on"])
def test_what_a_killed_recorder_did_not_see_taken_is_not_lost(goes_on: bool) -> None:
    """The poller's recorder wrote nothing after somebody had looked: it may have taken the message and settled it."""
    r = Recording()
    for ph in ("invoke", "ok"):
        r.add("get", ph, q="q", proc="w", op=98, rec="second")
    for ph in ("invoke", "ok"):
        r.add("publish", ph, m="m0", q="q", proc="p", op=97, rec="first")
    r.add("note", q="q", args={"depth": 0, "held": 0}, rec="first")
    if goes_on:
        for ph in ("invoke", "ok"):
            r.add("get", ph, q="q", proc="w", op=99, rec="second")
    lost = BY_ID["P1"].check(list(complete(r.events)))
    assert (lost.verdict is Verdict.VIOLATED) is goes_on


@pytest.mark.parametrize("shown", ["ack", "reject", "redelivered", ""])
def test_what_shows_a_log_that_is_read_one_by_one(shown: str) -> None:
    """A share group of Kafka: whatever settles a message, or a delivery that says itself that it comes again."""
    r = Recording("broker")
    for n in range(3):
        r.add("publish", m=f"m{n}", q="q", part=0, pos=n, proc="p")
    for n in (0, 1, 2):
        r.add("deliver", m=f"m{n}", q="q", part=0, pos=n, ctag="w", proc="w")
    if shown in ("ack", "reject"):
        refuses: dict[str, Any] = {"requeue": False} if shown == "reject" else {}
        r.add(shown, m="m2", q="q", part=0, ctag="w", proc="w", **refuses)
    if shown == "reject":
        r.add("deliver", m="m2", q="q", part=0, pos=2, ctag="w", proc="w")
    again: dict[str, Any] = {"redelivered": True} if shown == "redelivered" else {}
    r.add("deliver", m="m1", q="q", part=0, pos=1, ctag="w", proc="w", **again)
    assert (BY_ID["P15"].check(list(complete(r.events))).verdict is Verdict.VIOLATED) is (not shown)


@pytest.mark.parametrize("ends", ["", "conn_close"])
@pytest.mark.parametrize("mine", [True, False], ids=["given", "another-given"])
def test_whose_recorder_stopped_when_it_was_only_given_something_may_have_taken_more(
    ends: str, mine: bool
) -> None:
    """No consumer and no poll of it is recorded; of a connection that had ended by then nothing is open."""
    r = Recording()
    for n in range(2):
        for ph in ("invoke", "ok"):
            r.add("publish", ph, m=f"m{n}", q="q", proc="p", op=n, rec="first")
    for n in (0, 1) if mine else (0,):
        r.add("deliver", m=f"m{n}", q="q", conn="w", proc="w", rec="second")
        for ph in ("invoke", "ok") if n == 0 else ():
            r.add("ack", ph, m=f"m{n}", q="q", conn="w", proc="w", op=90 + n, rec="second")
    if ends:
        for ph in ("invoke", "ok"):
            r.add(ends, ph, conn="w", op=99, rec="second")
    r.add("note", q="q", args={"depth": 0, "held": 0}, rec="first")
    lost = BY_ID["P1"].check(list(complete(r.events)))
    assert (lost.verdict is Verdict.VIOLATED) is bool(ends)


def test_acks_that_name_no_queue_show_a_log_that_is_read_one_by_one() -> None:
    """A share group of Kafka: each position may be anybody's, and come again."""
    for acked in (False, True):
        r = Recording("broker")
        for n in range(3):
            r.add("publish", m=f"m{n}", q="q", part=0, pos=n, proc="p")
        for n in (0, 2, 0):
            r.add("deliver", m=f"m{n}", q="q", part=0, pos=n, ctag="w", proc="w")
        if acked:
            r.add("ack", m="m0", ctag="w", proc="w")
        found = BY_ID["P15"].check(list(complete(r.events)))
        assert (found.verdict is Verdict.VIOLATED) is not acked


@pytest.mark.parametrize("id", ["P1", "P20"])
def test_a_recorder_may_have_stopped_long_before_the_others(id: str) -> None:
    r = Recording()
    for n, ph in ((0, "invoke"), (0, "ok"), (1, "invoke")):
        r.add("publish", ph, m=f"m{n}", q="q", pub="s", pseq=n, op=n, proc="p", rec="first")
    for n in range(2, 3_000):
        r.add("get", q="q", m=f"m{n}", pub="s", pseq=n, autoack=True, proc="w", rec="second")
    assert BY_ID[id].check(list(complete(r.events))).verdict is not Verdict.VIOLATED
