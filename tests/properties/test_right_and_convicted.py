"""Right systems that were reported, each in the smallest history; and the mistakes beside them that must not pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seriatim_models.conformance.profiles import PROFILES
from seriatim_models.history import Event, Header, HistoryError, write_history
from seriatim_models.history.complete import complete
from seriatim_models.pipeline import audit_paths
from seriatim_models.properties.base import Verdict
from seriatim_models.properties.blackbox.offsets import LogReader
from seriatim_models.properties.standing import confirmed, in_recorded_order

ANY = {p.id: p for p in PROFILES["any"].properties}
Line = tuple[str, str, dict[str, Any]]
"""An event's name, phase and fields."""


def channel(conn: str) -> dict[str, Any]:
    """The first channel of a connection."""
    return {"conn": conn, "ch": 1}


def events(*lines: Line, rec: str = "") -> list[Event]:
    """Events a millisecond apart, from their names, phases and fields."""
    return [
        Event(i=i, t=i * 1_000_000, ev=ev, ph=ph, rec=rec, lvl="api", **fields)
        for i, (ev, ph, fields) in enumerate(lines, 1)
    ]


def verdict(id: str, history: list[Event]) -> Verdict:
    return ANY[id].check(complete(history)).verdict


def waiting_at_rest(*end: Line) -> list[Event]:
    """A consumer beside a confirmed message when all is at rest; only its calls that name the queue are recorded."""
    c, p = channel("c"), channel("p")
    return events(
        ("ch_open", "", c),
        ("ch_open", "", p),
        ("consume", "invoke", {**c, "q": "q", "ctag": "t", "op": 1}),
        ("consume", "ok", {**c, "q": "q", "ctag": "t", "op": 1}),
        ("note", "", {"args": {"rest": True}}),
        ("publish", "invoke", {**p, "q": "q", "m": "m", "op": 2}),
        ("publish", "ok", {**p, "q": "q", "m": "m", "op": 2}),
        ("note", "", {"q": "q", "args": {"rest": True, "depth": 1}}),
        *end,
    )


def test_a_consumer_whose_calls_name_its_queue_may_be_dead_without_a_word() -> None:
    c = {**channel("c"), "op": 3}
    answered: tuple[Line, ...] = (("ch_close", "invoke", c), ("ch_close", "ok", c))
    assert verdict("P14", waiting_at_rest()) is not Verdict.VIOLATED
    assert verdict("P14", waiting_at_rest(*answered)) is Verdict.VIOLATED


def test_a_callback_of_an_unknown_consumer_may_be_of_an_earlier_incarnation() -> None:
    c = channel("c")
    late = events(
        ("deliver", "", {**c, "q": "q", "m": "m1", "ctag": "new", "dtag": 2}),
        ("ch_open", "ok", c),
        ("deliver", "", {**c, "q": "q", "m": "m2", "ctag": "newer", "dtag": 3}),
        ("deliver", "", {**c, "q": "q", "m": "m3", "ctag": "older", "dtag": 1}),
    )
    assert verdict("P8", late) is not Verdict.VIOLATED
    known = events(
        ("consume", "", {**c, "q": "q", "ctag": "t"}),
        ("deliver", "", {**c, "q": "q", "m": "m1", "ctag": "t", "dtag": 2}),
        ("deliver", "", {**c, "q": "q", "m": "m2", "ctag": "t", "dtag": 1}),
    )
    assert verdict("P8", known) is Verdict.VIOLATED


def read(n: int, pos: int) -> Line:  # of an undivided log
    return ("deliver", "", {**channel("c"), "q": "q", "m": f"m{n}", "ctag": "g", "pos": pos})


def reopened(*after: Line) -> list[Event]:
    """A group reads two positions of a log; its channel ends and is opened anew; no consumer is declared."""
    c = channel("c")
    ends: tuple[Line, ...] = (
        ("ch_close", "invoke", c),
        ("ch_close", "ok", c),
        ("ch_open", "ok", c),
    )
    return events(("ch_open", "ok", c), read(0, 0), read(1, 1), *ends, *after)


def test_a_reader_of_a_log_begins_anew_when_its_channel_is_opened_anew() -> None:
    assert verdict("P15", reopened(read(0, 0), read(1, 1))) is Verdict.OK
    assert verdict("P15", reopened(read(0, 0), read(1, 1), read(0, 0))) is Verdict.VIOLATED


def test_of_a_reader_after_lost_lines_nobody_knows_the_session() -> None:
    gap: Line = ("gap", "", {})
    assert verdict("P15", [*events(gap), *reopened(read(0, 0))]) is not Verdict.VIOLATED


def test_a_recall_among_lost_lines_may_have_freed_what_is_seen_late() -> None:
    c = {**channel("c"), "ctag": "t", "q": "q"}
    limited: dict[str, Any] = {"prefetch": 1, "scope": "consumer"}
    begun: list[Line] = [("ch_open", "", channel("c")), ("consume", "ok", {**c, **limited})]
    two: list[Line] = [
        ("deliver", "", {**c, "m": m, "dtag": n}) for n, m in enumerate(("m1", "m2"), 1)
    ]
    assert (
        verdict("P7", events(*begun, ("gap", "", dict[str, Any]()), *two)) is not Verdict.VIOLATED
    )
    assert verdict("P7", events(*begun, *two)) is Verdict.VIOLATED


def test_of_an_answer_alone_nobody_knows_when_its_publish_began() -> None:
    got: Line = ("get", "", {"proc": "c", "q": "q", "m": "m"})
    sent: dict[str, Any] = {"proc": "p", "q": "q", "m": "m", "op": 1}
    answer = ("publish", "ok", sent)
    assert verdict("P1", events(got, answer)) is not Verdict.VIOLATED
    assert verdict("P1", events(got, ("publish", "invoke", sent), answer)) is Verdict.VIOLATED


def log(*lines: Line) -> Verdict:
    at: dict[str, Any] = {"q": "t", "part": 0, "proc": "r"}
    return (
        LogReader()
        .check(complete(events(*((ev, ph, {**at, **fields}) for ev, ph, fields in lines))))
        .verdict
    )


def test_two_messages_are_not_confirmed_at_one_position() -> None:
    sent: list[Line] = [("publish", "ok", {"m": m, "pos": 5}) for m in ("m1", "m2")]
    assert log(*sent) is Verdict.VIOLATED
    assert log(sent[0], sent[0]) is not Verdict.VIOLATED


def test_a_topic_that_is_made_again_counts_from_its_beginning() -> None:
    def confirmed_at(m: str, pos: int) -> list[Line]:
        return [("publish", "ok", {"m": m, "pos": pos}), ("deliver", "", {"m": m, "pos": pos})]

    before, after = [*confirmed_at("m0", 0), *confirmed_at("m1", 1)], confirmed_at("n0", 0)
    assert log(*before, ("delete", "ok", {}), *after) is not Verdict.VIOLATED
    assert log(*before, *after) is Verdict.VIOLATED


@pytest.mark.parametrize("first", [1, 40])
def test_until_a_recorder_begins_anything_may_happen_unseen(first: int, tmp_path: Path) -> None:
    """A message is marked as redelivered: whoever had it may stand among lines that are missing."""
    p, c, o = map(channel, "pco")
    taker = events(
        ("consume", "ok", {**c, "q": "q", "ctag": "t"}),
        ("rpc", "", c),
        ("rpc", "", c),
        ("deliver", "", {**c, "q": "q", "ctag": "t", "m": "m", "dtag": 1, "redelivered": True}),
    )
    sender = events(
        ("rpc", "", p),
        ("publish", "invoke", {**p, "q": "q", "m": "m", "op": 1}),
        ("publish", "ok", {**p, "q": "q", "m": "m", "op": 1}),
    )
    other = [Event(i=first, t=9_000_000, ev="rpc", lvl="api", **o)]
    for rec, held in (("p", sender), ("c", taker), ("o", other)):
        write_history(tmp_path / f"{rec}.jsonl", held, Header(run="r", rec=rec, clk="k"))
    report = audit_paths([str(tmp_path)], engine="local")
    violated = {f.property for f in report.findings if f.verdict is Verdict.VIOLATED}
    assert violated == ({"P3"} if first == 1 else set())
    assert report.runs[0].gaps == (0 if first == 1 else 2)


A, B, P = channel("a"), channel("b"), channel("p")
GIVEN = {"q": "q", "ctag": "t"}
UNBEGUN: dict[str, tuple[str, list[Line], Line]] = {
    "another message was sent and never answered": (
        "P1",
        [
            ("publish", "ok", {**P, "q": "q", "m": "m", "op": 1}),
            ("deliver", "", {**A, **GIVEN, "m": "n", "dtag": 1}),
        ],
        ("publish", "invoke", {**P, "q": "q", "m": "m", "op": 1}),
    ),
    "the message was sent twice": (
        "P1",
        [
            ("ch_open", "", A),
            ("publish", "ok", {**P, "q": "q", "m": "m", "op": 1}),
            ("deliver", "", {**A, **GIVEN, "m": "m", "dtag": 1}),
            ("ack", "", {**A, "dtag": 1}),
            ("deliver", "", {**A, **GIVEN, "m": "m", "dtag": 2}),
        ],
        ("publish", "invoke", {**P, "q": "q", "m": "m", "op": 1}),
    ),
    "the nack was sent before the message came again": (
        "P2",
        [
            ("deliver", "", {**A, **GIVEN, "m": "m", "dtag": 1}),
            ("deliver", "", {**A, **GIVEN, "m": "m", "dtag": 2}),
            ("nack", "ok", {**A, "dtag": 1, "requeue": True, "op": 2}),
        ],
        ("nack", "invoke", {**A, "dtag": 1, "requeue": True, "op": 2}),
    ),
    "a worker's nack was sent before the message came again": (
        "P2",
        [
            ("get", "", {"proc": "w", "q": "q", "m": "m"}),
            ("get", "invoke", {"proc": "v", "q": "q", "op": 1}),
            ("get", "ok", {"proc": "v", "q": "q", "m": "m", "op": 1}),
            ("nack", "ok", {"proc": "w", "q": "q", "ms": ["m"], "requeue": True, "op": 2}),
        ],
        ("nack", "invoke", {"proc": "w", "q": "q", "ms": ["m"], "requeue": True, "op": 2}),
    ),
    "the ack was sent before the next message came": (
        "P7",
        [
            ("consume", "invoke", {**A, **GIVEN, "prefetch": 1, "op": 3}),
            ("deliver", "", {**A, **GIVEN, "m": "m", "dtag": 1, "prefetch": 1, "scope": "consumer"}),
            ("deliver", "", {**A, **GIVEN, "m": "n", "dtag": 2, "prefetch": 1, "scope": "consumer"}),
            ("ack", "ok", {**A, "dtag": 1, "op": 2}),
        ],
        ("ack", "invoke", {**A, "dtag": 1, "op": 2}),
    ),
    "another message was sent and never answered, in a plain queue": (
        "P20",
        [
            ("publish", "ok", {"proc": "w", "q": "q", "m": "m", "op": 1}),
            ("get", "", {"proc": "v", "q": "q", "m": "n", "autoack": True}),
        ],
        ("publish", "invoke", {"proc": "w", "q": "q", "m": "m", "op": 1}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("why", UNBEGUN)
def test_what_began_nobody_knows_when_explains(why: str) -> None:
    """A violation if all calls are recorded is none where one is known by its answer alone."""
    id, lines, call = UNBEGUN[why]
    assert verdict(id, events(*lines)) is not Verdict.VIOLATED
    at = next(n for n, (ev, ph, _) in enumerate(lines) if (ev, ph) == (call[0], "ok"))
    assert verdict(id, events(*lines[:at], call, *lines[at:])) is Verdict.VIOLATED


def test_who_records_answers_alone_may_have_settled_without_a_line() -> None:
    consumer = {"op": 1, **A, **GIVEN}
    twice: list[Line] = [("deliver", "", {**A, **GIVEN, "m": "m", "dtag": n}) for n in (1, 2)]
    asked: Line = ("consume", "invoke", consumer)
    answered: Line = ("consume", "ok", consumer)
    rest: list[Line] = [("qos", "invoke", {**A, "op": 2}), ("qos", "ok", {**A, "op": 2})]
    assert verdict("P2", events(answered, *twice)) is not Verdict.VIOLATED
    assert verdict("P2", events(asked, answered, *twice, *rest)) is Verdict.VIOLATED


@pytest.mark.parametrize("unseen", [False, True], ids=["polls-recorded", "answers-to-polls"])
def test_a_kind_of_call_without_beginnings_may_hide_settlements(unseen: bool) -> None:
    """Limits and consumers are recorded whole; of polls the beginnings may be missing, and so those of acks."""
    poll: list[Line] = [("get", ph, {**A, "q": "q", "op": 9}) for ph in ("invoke", "ok")]
    history = events(
        ("qos", "", {**A, "prefetch": 1, "scope": "consumer", "op": 1}),
        ("consume", "", {**A, **GIVEN, "op": 2}),
        *(("deliver", "", {**A, **GIVEN, "m": m, "dtag": n}) for n, m in enumerate("mn", 1)),
        *(poll[1:] if unseen else poll),
    )
    assert (verdict("P7", history) is Verdict.VIOLATED) is not unseen


@pytest.mark.parametrize("again", [False, True], ids=["before-its-answer", "begun-again"])
@pytest.mark.parametrize("noted", [False, True], ids=["first-note", "second-note"])
def test_a_consumer_holds_what_it_was_given_before_its_answer(again: bool, noted: bool) -> None:
    """Its prefetch is used up, so it does not wait beside the message that comes last."""
    c, p = channel("c"), channel("p")
    here = {**c, "q": "q", "ctag": "t"}

    def published(n: int) -> list[Line]:
        sent = {**p, "q": "q", "m": f"m{n}", "op": n}
        return [("publish", "invoke", sent), ("publish", "ok", sent)]

    def given(n: int) -> Line:
        return ("deliver", "", {**here, "m": f"m{n}", "dtag": n, "redelivered": False})

    rest: Line = ("note", "", {"args": {"rest": True}})
    begins: Line = ("consume", "invoke", {**here, "op": 90})
    answered: Line = ("consume", "ok", {**here, "op": 90})
    between = [given(1), given(2)]
    if again:  # cancelled with one in its hands, it begins again and is given another
        between = [given(1), answered, ("cancel", "invoke", {**here, "op": 91})]
        between += [("cancel", "ok", {**here, "op": 91}), begins, given(2)]
    history = events(
        ("ch_open", "", c),
        ("ch_open", "", p),
        *([rest] if noted else []),
        ("qos", "", {**c, "prefetch": 2, "scope": "consumer"}),
        *published(1),
        *published(2),
        *published(3),
        begins,
        *between,
        answered,
        rest,
        ("ch_close", "invoke", c),
        ("ch_close", "ok", c),
        ("get", "ok", {**p, "q": "q", "m": "m3", "dtag": 1, "redelivered": False}),
    )
    assert verdict("P14", history) is not Verdict.VIOLATED


def op(n: int, ev: str, fields: dict[str, Any]) -> list[Line]:
    """A call with a number, and its answer."""
    return [(ev, ph, {**fields, "op": n}) for ph in ("invoke", "ok")]


def late_callbacks(reopens: bool) -> list[Event]:
    """A poll's tag covers what runs late; meanwhile the channel is closed, and perhaps opened again."""
    given: list[Line] = [("deliver", "", {**A, **GIVEN, "m": f"m{n}", "dtag": n}) for n in (2, 4)]
    poll = {**A, "q": "q", "m": "m3", "dtag": 3}
    return events(
        ("ch_open", "ok", A),
        ("qos", "", {**A, "prefetch": 1, "scope": "consumer"}),
        *op(1, "consume", {**A, **GIVEN}),
        ("get", "ok", poll),
        ("ack", "", {**A, "dtag": 3, "multiple": reopens}),
        *(op(2, "ch_close", A) + op(3, "ch_open", A) if reopens else []),
        *given,
    )


def asked_alone(arguments: bool) -> list[Event]:
    """Of a consume only the answer is recorded, which does not say whether what it is given has to be settled."""
    return events(
        ("qos", "ok", {**A, "prefetch": 1, "scope": "consumer"}),
        ("consume", "ok", {**A, **GIVEN, **({"autoack": False} if arguments else {})}),
        *(("deliver", "", {**A, **GIVEN, "m": f"m{n}", "dtag": n}) for n in (1, 2)),
    )


def without_tags(tagged: bool) -> list[Event]:
    """What is settled by its tag may be a delivery whose tag is not recorded."""
    return events(
        *op(1, "qos", {**A, "prefetch": 1, "scope": "consumer"}),
        *op(2, "consume", {**A, **GIVEN}),
        ("deliver", "", {**A, **GIVEN, "m": "m1", "dtag": 1 if tagged else None}),
        ("nack", "", {**A, "dtag": 7, "requeue": True}),
        ("deliver", "", {**A, **GIVEN, "m": "m2", "dtag": 2 if tagged else None}),
        ("deliver", "", {**B, **GIVEN, "m": "m1", "dtag": 1, "redelivered": True}),
        *op(3, "qos", {**A, "prefetch": 1, "scope": "consumer"}),
    )


def recovered(asked: bool) -> list[Event]:
    """A channel may have asked for all to be requeued before it settled a message, if only the answer is recorded."""
    given: list[Line] = [("deliver", "", {**A, **GIVEN, "m": "m", "dtag": n}) for n in (1, 2)]
    return events(
        ("publish", "", {**P, "q": "q", "m": "m"}),
        given[0],
        ("ack", "", {**A, "dtag": 1}),
        *op(1, "recover", A)[0 if asked else 1 :],
        given[1],
    )


def recovered_without_number(asked: bool) -> list[Event]:
    return [msgspec.structs.replace(e, op=None) for e in recovered(asked)]


def without_consumers(named: bool) -> list[Event]:
    """A callback without its consumer's tag may be of an earlier incarnation of its channel."""
    given = {**A, "q": "q", "m": "m", **({"ctag": "t"} if named else {})}
    return events(
        ("ch_open", "ok", A),
        *op(1, "ch_close", A),
        ("ch_open", "ok", A),
        *op(2, "consume", {**A, **GIVEN}),
        *(("deliver", "", {**given, "dtag": n}) for n in (1, 2)),
        *op(3, "qos", {**A, "prefetch": 9}),
    )


def unnamed_consumers(second: bool) -> list[Event]:
    """Two deliveries under a limit of one for each consumer, none of which has a tag; there is a second, or not."""
    c = channel("c")
    return events(
        ("ch_open", "ok", c),
        ("qos", "ok", {**c, "prefetch": 1, "scope": "consumer"}),
        *[("consume", "invoke", {**c, "q": "q", "autoack": False})] * (2 if second else 1),
        *[("deliver", "", {**c, "q": "q", "m": f"m{n}", "dtag": n}) for n in (1, 2)],
    )


def cancelled_without_tag(second: bool) -> list[Event]:
    """A consumer without a tag is cancelled; then something is published and delivered, perhaps to the second one."""
    c = channel("c")
    return events(
        ("ch_open", "ok", c),
        *[("consume", "invoke", {**c, "q": "q"})] * (2 if second else 1),
        ("cancel", "ok", c),
        ("publish", "invoke", {**channel("p"), "q": "q", "m": "m"}),
        ("deliver", "", {**c, "q": "q", "m": "m", "dtag": 1}),
    )


def local_without_tags(second: bool) -> list[Event]:
    """A message of its own connection reaches a no-local consumer without a tag, or another one of its channel."""
    c = {**channel("c"), "q": "q"}
    return events(
        ("ch_open", "ok", channel("c")),
        ("consume", "invoke", {**c, "nolocal": True}),
        *([("consume", "invoke", {**c, "autoack": True})] if second else []),
        ("publish", "invoke", {**c, "m": "m"}),
        ("deliver", "", {**c, "m": "m", "dtag": 1}),
    )


def exclusive_without_tags(named: bool) -> list[Event]:
    """Whoever is given a message without a consumer's tag may be the exclusive consumer of its channel."""
    return events(
        *op(1, "consume", {**A, **GIVEN, "exclusive": True}),
        ("publish", "invoke", {**P, "q": "q", "m": "m"}),
        ("deliver", "", {**A, "q": "q", "m": "m", "dtag": 1, **({"ctag": "u"} if named else {})}),
        *op(3, "qos", {**A, "prefetch": 9}),
    )


def one_of_its_channels(ends: bool) -> list[Event]:
    """Of a channel whose end nobody would have recorded its connection's answer says nothing."""
    return events(
        *op(1, "consume", {**A, **GIVEN}),
        ("deliver", "", {**A, **GIVEN, "m": "m", "dtag": 1}),
        ("deliver", "", {**B, **GIVEN, "m": "m", "dtag": 1}),
        *(op(2, "ch_close", P) if ends else []),
        *op(3, "conn_close", {"conn": "a"}),
        *op(4, "qos", {**B, "prefetch": 9}),
    )


def never_answered(answered: bool) -> list[Event]:
    """A worker was killed, or never heard of its ack."""
    ack = {"proc": "w", "q": "q", "ms": ["m"], "op": 1}
    return events(
        ("publish", "", {"proc": "p", "q": "q", "m": "m"}),
        ("get", "", {"proc": "w", "q": "q", "m": "m"}),
        ("ack", "invoke", ack),
        *([("ack", "ok", ack)] if answered else []),
        ("get", "invoke", {"proc": "v", "q": "q", "op": 2}),
        ("get", "ok", {"proc": "v", "q": "q", "m": "m", "op": 2}),
    )


@pytest.mark.parametrize(
    ("id", "history", "right"),
    [
        ("P1", never_answered, False),
        ("P7", late_callbacks, True),
        ("P7", unnamed_consumers, True),
        ("P9", cancelled_without_tag, True),
        ("P24", local_without_tags, True),
        ("P7", asked_alone, False),
        ("P7", without_tags, False),
        ("P2", without_tags, False),
        ("P1", recovered, False),
        ("P1", recovered_without_number, False),
        ("P2", without_consumers, False),
        ("P10", exclusive_without_tags, False),
        ("P2", one_of_its_channels, False),
    ],
)
def test_who_records_less_reports_nothing(
    id: str, history: Callable[[bool], list[Event]], right: bool
) -> None:
    """A right system, and the mistake beside it."""
    assert verdict(id, history(right)) is not Verdict.VIOLATED
    assert verdict(id, history(not right)) is Verdict.VIOLATED


def test_connections_without_names_are_those_of_their_recorders() -> None:
    def first_of(rec: str) -> list[Event]:
        line: Line = ("deliver", "", {"ch": 1, "q": "q", "m": f"m-{rec}", "ctag": "t", "dtag": 1})
        return events(line, rec=rec)

    assert verdict("P8", [*first_of("a"), *first_of("b")]) is not Verdict.VIOLATED
    assert verdict("P8", [*first_of("a"), *first_of("a")]) is Verdict.VIOLATED
    assert verdict("P8", [*first_of(""), *first_of("")]) is Verdict.INCONCLUSIVE


def moved_on(begun_before: bool) -> list[Event]:
    """A message goes from one queue to the next; each call is one line, written down when it has returned."""
    ms = 1_000_000
    lines = events(
        ("get", "", {"proc": "s", "q": "a", "m": "m", "autoack": True}),
        ("publish", "", {"proc": "s", "q": "b", "m": "m"}),
        ("publish", "", {"proc": "p", "q": "a", "m": "m"}),
    )
    begun = (0, 2 * ms, 0 if begun_before else 2 * ms)
    ended = (ms, 2 * ms, 3 * ms)
    return [
        msgspec.structs.replace(e, t_lo=lo, t_hi=hi)
        for e, lo, hi in zip(lines, begun, ended, strict=True)
    ]


def asked_again(gave_up: bool) -> list[Event]:
    """A worker calls a second time, when it has given up waiting for the first answer, or still waits."""
    w = {"proc": "w", "conn": "c"}
    history = events(
        ("rpc", "invoke", {**w, "op": 1}),
        *([("rpc", "info", {**w, "op": 1})] if gave_up else []),
        ("rpc", "invoke", {**w, "op": 2}),
        ("rpc", "ok", {**w, "op": 2}),
        ("rpc", "ok", {**w, "op": 1}),
    )
    return [msgspec.structs.replace(e, lvl="wire") for e in history]


def old_receipt(late: bool) -> list[Event]:
    """A worker's lease has run out; it settles while another one asks for the message, or long before."""
    v, w = {"proc": "v", "q": "q"}, {"proc": "w", "q": "q"}
    ack: Line = ("ack", "invoke", {**v, "ms": ["m"], "op": 2})
    acked: Line = ("ack", "ok", {**v, "ms": ["m"], "op": 2})
    asks: Line = ("get", "invoke", {**w, "op": 3})
    return events(
        ("publish", "invoke", {"proc": "p", "q": "q", "m": "m", "op": 9}),
        ("get", "invoke", {**v, "op": 1}),
        ("get", "ok", {**v, "m": "m", "op": 1}),
        *([asks, ack, acked] if late else [ack, acked, asks]),
        ("get", "ok", {**w, "m": "m", "op": 3}),
    )


def row_lock(killed: bool) -> list[Event]:
    """A worker with a connection of its own has a row; it is killed, of which nobody knows, or polls on."""
    v, w = {"conn": "v", "q": "q"}, {"conn": "w", "q": "q"}
    return events(
        ("publish", "invoke", {"conn": "p", "q": "q", "m": "m", "op": 9}),
        ("get", "invoke", {**v, "op": 1}),
        ("get", "ok", {**v, "m": "m", "op": 1}),
        ("get", "invoke", {**w, "op": 2}),
        ("get", "ok", {**w, "m": "m", "op": 2}),
        *([] if killed else [("get", ph, {**v, "op": 3}) for ph in ("invoke", "ok")]),
    )


def detached(cancelled: bool) -> list[Event]:
    """A link of AMQP 1.0 is detached, and another one of its session is given what it had; or the link stays."""
    a = {"conn": "a", "ch": 1, "gen": 1, "q": "q"}
    ended = {**a, "ctag": "one" if cancelled else "other", "op": 5}
    return events(
        ("ch_open", "ok", {"conn": "a", "ch": 1, "gen": 1}),
        ("publish", "invoke", {"conn": "p", "q": "q", "m": "m", "op": 9}),
        *[
            ("consume", ph, {**a, "ctag": name, "op": n, "autoack": False})
            for n, name in enumerate(("one", "two", "other"))
            for ph in ("invoke", "ok")
        ],
        ("deliver", "", {**a, "ctag": "one", "m": "m", "dtag": 1}),
        *[("cancel", ph, ended) for ph in ("invoke", "ok")],
        ("deliver", "", {**a, "ctag": "two", "m": "m", "dtag": 2}),
    )


def counted_failures(seen: bool) -> list[Event]:
    """The count of attempts is of failures alone (AMQP 1.0): what was released comes again as in its first attempt."""
    g = {"q": "q", "conn": "a", "ch": 1, "gen": 1, "ctag": "t", "attempt": 1}
    sent = [
        ("publish", "invoke", {"conn": "p", "q": "q", "m": f"m{n}", "pub": "p", "pseq": n, "op": n})
        for n in range(2)
    ]
    return events(
        ("ch_open", "ok", {"conn": "a", "ch": 1, "gen": 1}),
        *sent,
        *([("deliver", "", {**g, "m": "m0", "dtag": 1})] if seen else []),
        ("deliver", "", {**g, "m": "m1", "dtag": 2}),
        *(
            [("nack", "", {"conn": "a", "ch": 1, "gen": 1, "dtag": 1, "requeue": True})]
            if seen
            else []
        ),
        ("deliver", "", {**g, "m": "m0", "dtag": 3}),
    )


def tried_often(often: bool) -> list[Event]:
    """A message that was put back is gone: systems park it after so many attempts by default."""
    w = {"proc": "w", "q": "q"}
    tries = range(6 if often else 2)
    return events(
        *[("publish", ph, {"proc": "p", "q": "q", "m": "m", "op": 9}) for ph in ("invoke", "ok")],
        *[
            (
                ev,
                ph,
                {**w, "op": 10 + n}
                | ({} if (ev, ph) == ("get", "invoke") else {"m": "m"})
                | requeued,
            )
            for n in tries
            for ev, requeued in (("get", {}), ("nack", {"requeue": True, "ms": ["m"]}))
            for ph in ("invoke", "ok")
        ],
        ("note", "", {"q": "q", "args": {"depth": 0, "held": 0}}),
    )


def row_lock_dropped(dropped: bool) -> list[Event]:
    """A worker polls on, and learns that its connection was gone, so that its row was free; or is answered."""
    v, w = {"conn": "v", "q": "q"}, {"conn": "w", "q": "q"}
    return events(
        ("publish", "invoke", {"conn": "p", "q": "q", "m": "m", "op": 9}),
        ("get", "invoke", {**v, "op": 1}),
        ("get", "ok", {**v, "m": "m", "op": 1}),
        ("get", "invoke", {**w, "op": 2}),
        ("get", "ok", {**w, "m": "m", "op": 2}),
        ("get", "invoke", {**v, "op": 3}),
        ("get", "fail" if dropped else "ok", {**v, "op": 3}),
    )


def lease_of_a_connection(killed: bool) -> list[Event]:
    """A worker with a connection has a lease and is killed, of which nobody knows, or polls on."""
    v, w = {"conn": "v", "q": "q"}, {"conn": "w", "q": "q"}
    return events(
        ("declare", "ok", {"q": "q", "args": {"lease": 3_600_000}}),
        ("get", "invoke", {**v, "op": 1}),
        ("get", "ok", {**v, "m": "m", "op": 1}),
        ("get", "invoke", {**w, "op": 2}),
        ("get", "ok", {**w, "m": "m", "op": 2}),
        *([] if killed else [("get", ph, {**v, "op": 3}) for ph in ("invoke", "ok")]),
    )


def row_lock_without_connections(killed: bool) -> list[Event]:
    """The same of workers that no connection names: only the settlement of what it had shows that it was not killed."""
    v, w = {"proc": "v", "q": "q"}, {"proc": "w", "q": "q"}
    ended = ("invoke", "fail") if killed else ("invoke", "ok")
    return events(
        ("publish", "invoke", {"proc": "p", "q": "q", "m": "m", "op": 9}),
        ("get", "invoke", {**v, "op": 1}),
        ("get", "ok", {**v, "m": "m", "op": 1}),
        ("get", "invoke", {**w, "op": 2}),
        ("get", "ok", {**w, "m": "m", "op": 2}),
        ("get", "invoke", {**v, "op": 3}),
        ("get", "ok", {**v, "op": 3}),
        *[("ack", ph, {**v, "ms": ["m"], "op": 4}) for ph in ended],
    )


def published(n: int) -> list[Line]:
    """Messages at the first positions of a partition."""
    return [("publish", "ok", {"q": "q", "part": 0, "m": f"m{k}", "pos": k}) for k in range(n)]


def shared_positions(acked: bool) -> list[Event]:
    """Workers of one group are handed out what has positions; they settle one by one, or read a log."""
    g = {"q": "q", "ctag": "g", "part": 0}
    return events(
        *published(3),
        ("deliver", "", {**g, "m": "m2", "pos": 2}),
        *([("ack", "", {**g, "ms": ["m2"]})] if acked else []),
        ("deliver", "", {**g, "m": "m1", "pos": 1}),
    )


def counted_positions(counted: bool) -> list[Event]:
    """A message comes again between others of its log, and its count says so or not."""
    g = {"q": "q", "ctag": "g", "proc": "w", "part": 0}
    return events(
        *published(3),
        *[("deliver", "", {**g, "m": f"m{n}", "pos": n, "attempt": 1}) for n in range(3)],
        ("deliver", "", {**g, "m": "m1", "pos": 1, "attempt": 2 if counted else 1}),
        ("deliver", "", {**g, "m": "m3", "pos": 3, "attempt": 1}),
    )


def another_clock(alone: bool) -> list[Event]:
    """A publish of one line, and a delivery that stands before it; of another clock, so without a time, or not."""
    given, sent = events(
        ("deliver", "", {"conn": "c", "ch": 1, "q": "q", "m": "m"}),
        ("publish", "", {"conn": "p", "ch": 1, "q": "q", "m": "m"}),
    )
    sent = msgspec.structs.replace(sent, t_lo=sent.t)
    return [msgspec.structs.replace(given, t=None) if alone else given, sent]


def alike(nameless: bool) -> list[Event]:
    """Two callers count their calls alike; they are not named, or one and the same."""
    by: dict[str, Any] = {"op": 1} if nameless else {"op": 1, "proc": "w"}
    calls: list[Line] = [("rpc", "invoke", by)] * (2 if nameless else 1)
    return events(*calls, ("rpc", "ok", by), ("rpc", "ok", by))


def anybody_reads(nameless: bool) -> list[Event]:
    """A position is read after a higher one, by one reader or by nobody knows whom."""
    by: dict[str, Any] = {"q": "q", "part": 0} if nameless else {"q": "q", "part": 0, "proc": "w"}
    read = [("deliver", "", {**by, "m": f"m{n}", "pos": n}) for n in (1, 2, 1)]
    return events(*published(3), *read)


def assigned_anew(to_the_commit: bool) -> list[Event]:
    """The only member of a group goes back to what it had committed, as one that its group had not heard of for a while
    and that was assigned its partition anew; or to where nobody begins to read.
    """
    log: dict[str, Any] = {"q": "q", "part": 0}
    reader = {**log, "ctag": "g", "conn": "c"}
    committed = {**reader, "pos": 2, "op": 1, "args": {"committed": "next"}}
    again = 2 if to_the_commit else 3
    return events(
        *published(5),
        *[("deliver", "", {**reader, "m": f"m{n}", "pos": n}) for n in range(2)],
        *[("commit", ph, committed) for ph in ("invoke", "ok")],
        *[("deliver", "", {**reader, "m": f"m{n}", "pos": n}) for n in (2, 3, 4, again)],
    )


def hole(unknown: bool) -> list[Event]:
    """A reader goes from one position to the next but one: a hole of the log, or what was published there."""
    log: dict[str, Any] = {"q": "q", "part": 0}
    sent = [
        ("publish", "ok", {**log, "m": f"m{n}", "pos": None if unknown else n}) for n in range(4)
    ]
    read = [("deliver", "", {**log, "proc": "w", "m": f"m{n}", "pos": n}) for n in (0, 1, 3)]
    return events(*sent, *read)


def test_what_a_reader_left_out_is_not_ok_where_no_position_is_recorded() -> None:
    assert ANY["P15"].check(complete(hole(True)[:6])).verdict is Verdict.OK
    found = ANY["P15"].check(complete(hole(True)))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "went from position 1 (event 6) to 3 at event 7" in found.explanation
    assert "record `pos` of what is published" in found.decides


def another_began(nameless: bool) -> list[Event]:
    """Of a group one reads far beyond what was committed; then one begins, and the next is read, by whom is not known
    or by the one that began.
    """
    g = {"q": "q", "ctag": "g", "part": 0}
    one, other = ({}, {}) if nameless else ({"proc": "v"}, {"proc": "w"})
    begun = {"q": "q", "ctag": "g"}
    sent = [("publish", "ok", {"q": "q", "part": 0, "m": f"m{n}", "pos": n}) for n in range(4)]
    return events(
        *sent,
        ("consume", "ok", {**begun, **one}),
        *[("deliver", "", {**g, **one, "m": f"m{n}", "pos": n}) for n in range(3)],
        ("commit", "ok", {**g, **one, "pos": 1, "args": {"committed": "next"}}),
        ("consume", "ok", {**begun, **other}),
        ("deliver", "", {**g, **other, "m": "m3", "pos": 3}),
    )


@pytest.mark.parametrize(
    ("id", "history"),
    [
        ("P1", moved_on),
        ("P1", tried_often),
        ("P1", old_receipt),
        ("P1", another_clock),
        ("P2", row_lock),
        ("P2", detached),
        ("P2", row_lock_dropped),
        ("P2", row_lock_without_connections),
        ("P26", lease_of_a_connection),
        ("P4", counted_failures),
        ("P13", asked_again),
        ("P13", alike),
        ("P15", anybody_reads),
        ("P15", assigned_anew),
        ("P15", hole),
        ("P15", another_began),
        ("P15", shared_positions),
        ("P15", counted_positions),
    ],
)
def test_what_workers_and_pipelines_may_do_is_not_reported(
    id: str, history: Callable[[bool], list[Event]]
) -> None:
    """Found by systems written from their public documentation; the mistake stands beside each."""
    assert verdict(id, history(True)) is not Verdict.VIOLATED
    shown = confirmed(ANY[id], ANY[id].check(complete(history(False))))
    assert shown.verdict is Verdict.VIOLATED
    assert ANY[id].check_witness(in_recorded_order(shown.witness)).verdict is Verdict.VIOLATED


@pytest.mark.parametrize("clocks", [("a", "b"), ("a", "a")])
def test_recorders_with_clocks_of_their_own_are_refused_wherever_they_say_so(
    clocks: tuple[str, str], tmp_path: Path
) -> None:
    for rec, clk in zip("xy", clocks, strict=True):
        history = events(("note", "", {}), rec=rec)
        history = [msgspec.structs.replace(e, clk=clk) for e in history]
        write_history(tmp_path / f"{rec}.jsonl", history, Header(run="r", rec=rec))
    if clocks[0] == clocks[1]:
        assert len(audit_paths([tmp_path]).runs) == 1
        return
    with pytest.raises(
        HistoryError, match=r"y\.jsonl: field clk: run r has clock 'b' here and 'a'"
    ):
        audit_paths([tmp_path])


@pytest.mark.parametrize("others", [False, True], ids=["alone", "another-consumer"])
def test_where_what_was_handed_out_is_not_marked_another_consumer_explains_order(
    others: bool,
) -> None:
    """Under JMS: what was prefetched by a consumer that ended comes back unmarked, behind what its queue handed on."""
    a = {"conn": "a", "ch": 1, "gen": 1, "q": "q", "ctag": "t", "redelivered": False}
    history = events(
        ("ch_open", "ok", {"conn": "a", "ch": 1, "gen": 1}),
        *[
            ("publish", "invoke", {"conn": "p", "q": "q", "m": f"m{n}", "pub": "p", "pseq": n})
            for n in range(2)
        ],
        *(
            [("consume", "ok", {"conn": "b", "ch": 1, "gen": 1, "q": "q", "ctag": "u"})]
            if others
            else []
        ),
        *[("deliver", "", {**a, "m": f"m{1 - n}", "dtag": n + 1}) for n in range(2)],
    )
    jms = next(p for p in PROFILES["jms-queue"].properties if p.id == "P4")
    rabbit = next(p for p in PROFILES["rabbit-classic"].properties if p.id == "P4")
    assert (jms.check(complete(history)).verdict is Verdict.VIOLATED) is not others
    assert rabbit.check(complete(history)).verdict is Verdict.VIOLATED


def given_and_closed(looked: dict[str, object]) -> list[Event]:
    """A client without channels is given a message and closes its connection; then the queue is seen to be empty."""
    c = {"conn": "c", "ctag": "share", "q": "q"}
    return events(
        ("publish", "invoke", {"conn": "p", "q": "q", "m": "m", "op": 1}),
        ("publish", "ok", {"conn": "p", "q": "q", "m": "m", "op": 1}),
        ("consume", "invoke", {**c, "op": 2}),
        ("consume", "ok", {**c, "op": 2}),
        ("deliver", "", {**c, "m": "m"}),
        ("conn_close", "invoke", {"conn": "c", "op": 3}),
        ("conn_close", "ok", {"conn": "c", "op": 3}),
        ("note", "", {"q": "q", "args": looked}),
    )


def test_what_a_client_without_channels_has_may_be_kept_beyond_its_connection() -> None:
    """A session of MQTT 5 (3.1.2.11.2) and what is pending in a group of Redis streams outlast the connection."""
    assert verdict("P1", given_and_closed({"depth": 0})) is not Verdict.VIOLATED
    assert verdict("P1", given_and_closed({"depth": 0, "held": 0})) is Verdict.VIOLATED


@pytest.mark.parametrize(
    ("answered", "looked", "lost"),
    [
        (True, {"depth": 0}, True),
        (False, {"depth": 0}, False),
        (True, {"depth": 0, "held": 1}, False),
        (False, {"depth": 0, "held": 0}, True),
    ],
)
def test_a_requeue_without_an_answer_or_what_somebody_holds_is_no_loss(
    answered: bool, looked: dict[str, object], lost: bool
) -> None:
    w = {"proc": "w", "ctag": "t", "q": "q"}
    history = events(
        ("publish", "invoke", {"conn": "p", "q": "q", "m": "m", "op": 1}),
        ("publish", "ok", {"conn": "p", "q": "q", "m": "m", "op": 1}),
        ("get", "invoke", {**w, "op": 2}),
        ("get", "ok", {**w, "m": "m", "op": 2}),
        ("nack", "invoke", {**w, "m": "m", "requeue": True, "op": 3}),
        *([("nack", "ok", {**w, "m": "m", "requeue": True, "op": 3})] if answered else []),
        ("note", "", {"q": "q", "args": looked}),
    )
    found = confirmed(ANY["P1"], ANY["P1"].check(complete(history)))
    assert (found.verdict is Verdict.VIOLATED) is lost


@pytest.mark.parametrize(
    ("ends", "definite"),
    [
        ([], True),
        ([("conn_drop", "", {"conn": "other"})], False),
        ([("conn_drop", "", {"conn": "other"}), ("conn_close", "invoke", {"conn": "a"})], True),
    ],
    ids=["no-end-is-recorded", "an-end-of-another", "its-own-end-later"],
)
def test_a_worker_without_channels_may_have_been_killed_where_ends_of_others_are_recorded(
    ends: list[Line], definite: bool
) -> None:
    """Then another one of its name may be given what it had (XREADGROUP from 0), whatever the lease is."""
    history = events(
        ("declare", "ok", {"q": "q", "args": {"lease": 1000}}),
        ("publish", "", {"conn": "p", "q": "q", "m": "m"}),
        ("deliver", "", {"conn": "a", "q": "q", "m": "m", "t_lo": 2_000_000}),
        ("deliver", "", {"conn": "b", "q": "q", "m": "m", "t_lo": 3_000_000}),
        *ends,
    )
    assert (verdict("P26", history) is Verdict.VIOLATED) is definite


@pytest.mark.parametrize("ch", [None, 1])
@pytest.mark.parametrize("scope", ["consumer", "channel", "conn"])
@pytest.mark.parametrize("end", ["conn_drop", "conn_close", ""])
def test_a_connection_of_the_same_name_holds_nothing_of_the_one_before(
    ch: int | None, scope: str, end: str
) -> None:
    """A client that names its connections, and comes back; what it was given before went back to the queue."""
    to = {"conn": "c", "q": "q", "ctag": "t", "ch": ch}
    limited = {**to, "autoack": False, "prefetch": 1, "scope": scope}
    opened: Line = ("conn_open", "ok", {"conn": "c"})
    first: Line = ("deliver", "", {**limited, "m": "m1"})
    second: Line = ("deliver", "", {**limited, "m": "m2"})
    ended: tuple[Line, ...] = ((end, "", {"conn": "c"}),) if end else ()
    assert verdict("P7", events(opened, first, *ended, opened, second)) is not Verdict.VIOLATED
    assert verdict("P7", events(opened, first, second)) is Verdict.VIOLATED


def test_within_the_limit_of_a_connection_nothing_is_said_of_one_channel() -> None:
    limited = {"autoack": False, "prefetch": 2, "scope": "conn", "q": "q"}
    given = events(
        *(("deliver", "", {**channel("c"), **limited, "m": f"m{n}"}) for n in (1, 2)),
    )
    found = ANY["P7"].check(complete(given))
    assert (found.verdict, found.n_tested, found.n_untestable) == (Verdict.INCONCLUSIVE, 0, 2)


@pytest.mark.parametrize(
    "settled", [{"m": "m1"}, {"dtag": 1}, {"m": "m1", "dtag": 1}, {"ms": ["m1"]}]
)
@pytest.mark.parametrize("scope", ["consumer", "channel", "conn"])
@pytest.mark.parametrize("consumer", ["t", ""])
@pytest.mark.parametrize("worker", ["w", "another thread", ""])
def test_who_settles_without_a_channel_need_not_name_its_consumer(
    settled: dict[str, Any], scope: str, consumer: str, worker: str
) -> None:
    """MQTT: a PUBACK names a packet on a connection, and any thread of the client sends it."""
    limited = {"autoack": False, "prefetch": 1, "scope": scope}
    given = {"conn": "c", "q": "q", "ctag": consumer, "proc": "w", **limited}
    history: tuple[Line, ...] = (
        ("deliver", "", {**given, "m": "m1", "dtag": 1}),
        ("ack", "", {"conn": "c", "proc": worker, **settled}),
        ("deliver", "", {**given, "m": "m2", "dtag": 1}),
    )
    assert verdict("P7", events(*history)) is Verdict.OK
    assert verdict("P7", events(history[0], history[2])) is Verdict.VIOLATED


@pytest.mark.parametrize("consumer", ["t", ""])
@pytest.mark.parametrize("worker", ["w", "another thread", ""])
@pytest.mark.parametrize("settled", [{"m": "m"}, {"dtag": 1}])
def test_what_another_thread_of_a_connection_puts_back_is_held_by_nobody(
    consumer: str, worker: str, settled: dict[str, Any]
) -> None:
    c = {"conn": "c", "q": "q", "ctag": consumer, "proc": "w"}
    d = {"conn": "d", "q": "q", "proc": "d"}
    before: tuple[Line, ...] = (
        ("publish", "", {"q": "q", "m": "m"}),
        ("get", "invoke", {**c, "op": 1}),
        ("get", "ok", {**c, "op": 1, "m": "m", "dtag": 1}),
    )
    back: Line = ("nack", "", {"conn": "c", "proc": worker, "requeue": True, **settled})
    after: tuple[Line, ...] = (
        ("get", "invoke", {**d, "op": 2}),
        ("get", "ok", {**d, "op": 2, "m": "m"}),
        ("get", "invoke", {**c, "op": 3}),
        ("get", "ok", {**c, "op": 3}),
    )
    assert verdict("P2", events(*before, back, *after)) is not Verdict.VIOLATED
    assert verdict("P2", events(*before, *after)) is Verdict.VIOLATED


@pytest.mark.parametrize(("answer", "definite"), [("ok", True), ("info", False), ("", False)])
def test_an_ack_that_began_and_was_never_answered_may_have_had_no_effect(
    answer: str, definite: bool
) -> None:
    """SQS: each request is one of its own, whatever else the client asks for and is answered."""
    c = {"conn": "c", "q": "q", "proc": "w"}
    answered: tuple[Line, ...] = (("ack", answer, {**c, "m": "m", "op": 2}),) if answer else ()
    history = events(
        ("publish", "", {"q": "q", "m": "m"}),
        ("get", "invoke", {**c, "op": 1}),
        ("get", "ok", {**c, "op": 1, "m": "m"}),
        ("ack", "invoke", {**c, "m": "m", "op": 2}),
        *answered,
        ("get", "invoke", {**c, "op": 3}),
        ("get", "ok", {**c, "op": 3}),
        ("get", "invoke", {**c, "op": 4}),
        ("get", "ok", {**c, "op": 4, "m": "m"}),
    )
    assert (verdict("P1", history) is Verdict.VIOLATED) is definite


PACKET = {"conn": "c", "q": "q", "ctag": "t", "proc": "w", "autoack": False, "dtag": 1}
"""A delivery of MQTT, whose packet identifier is in use until it is acknowledged (5.0, 2.2.1)."""


@pytest.mark.parametrize(
    ("between", "more"),
    [
        ((("ack", "", {"conn": "c", "dtag": 1}),), {}),
        ((("ack", "", {"conn": "c", "m": "m1"}),), {}),
        ((("ack", "", {"conn": "c", "m": "m0", "multiple": True}),), {}),
        ((("ack", "ok", {"conn": "c", "m": "m9", "op": 1}),), {}),  # others may have begun unseen
        ((("expire", "", {"q": "q", "m": "m1", "requeue": True}),), {}),
        ((("cancel", "ok", {"conn": "c", "ctag": "t"}),), {}),
        ((("conn_drop", "", {"conn": "c"}), ("conn_open", "ok", {"conn": "c"})), {}),
        ((("gap", "", {}),), {}),
        ((), {"m": "m1"}),  # sent again
        ((), {"conn": ""}),  # perhaps another process
        ((), {"conn": "d"}),
        ((), {"ctag": "u"}),
        ((), {"q": "r"}),
        ((), {"autoack": True}),
        ((), {"dtag": 2}),
    ],
)
def test_a_packet_identifier_is_free_when_its_message_may_be_settled(
    between: tuple[Line, ...], more: dict[str, Any]
) -> None:
    first: Line = ("deliver", "", {**PACKET, "m": "m1"})
    again: Line = ("deliver", "", {**PACKET, "m": "m2"})
    late: Line = ("expire", "", {"q": "q", "m": "m1", "requeue": True})
    assert verdict("P8", events(first, again)) is Verdict.VIOLATED
    assert verdict("P8", events(first, again, late)) is not Verdict.VIOLATED
    other: Line = ("deliver", "", {**PACKET, "m": "m2", **more})
    assert verdict("P8", events(first, *between, other)) is not Verdict.VIOLATED


def test_a_worker_that_no_connection_names_may_have_been_started_again() -> None:
    """What it held before is somebody else's by then; nothing in the recording shows that it went on."""
    limited = {"q": "q", "proc": "w", "autoack": False, "prefetch": 1, "scope": "consumer"}
    for conn, definite in (("c", True), ("", False)):
        given = (("deliver", "", {**limited, "conn": conn, "m": m}) for m in ("m1", "m2"))
        assert (verdict("P7", events(*given)) is Verdict.VIOLATED) is definite


@pytest.mark.parametrize("dtag", [0, 9])
def test_a_session_may_put_back_what_it_has_not_seen_yet(dtag: int) -> None:
    """A delivery that comes behind the command for several before it may be of the message before that went back."""
    at = {**channel("c"), "q": "q", "ctag": "t"}
    history = events(
        ("ch_open", "ok", channel("c")),
        ("consume", "ok", {**at, "autoack": False}),
        ("deliver", "", {**at, "m": "m", "dtag": 7}),
        ("nack", "", {**channel("c"), "dtag": dtag, "multiple": True, "requeue": True}),
        ("deliver", "", {**at, "m": "n", "dtag": 8}),
        ("deliver", "", {**at, "m": "n", "dtag": 10}),
    )
    assert verdict("P2", history) is not Verdict.VIOLATED
