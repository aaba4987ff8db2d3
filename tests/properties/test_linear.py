"""P20 against brute force: on small histories the bad patterns report exactly what no order of the calls explains."""

from __future__ import annotations

import random
from collections import Counter, deque
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seriatim_models.explorer.linearize import CallInterval, linearization
from seriatim_models.history import Event
from seriatim_models.history.complete import complete
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.blackbox.linear import QueueLinearizable
from seriatim_models.properties.standing import confirmed

P20 = QueueLinearizable()


class Fifo:
    """The sequential queue."""

    def __init__(self) -> None:
        self.values: deque[str] = deque()

    def enqueue(self, m: str) -> None:
        self.values.append(m)

    def dequeue(self) -> str:
        return self.values.popleft() if self.values else ""


def events_of(calls: list[CallInterval]) -> list[Event]:
    """A history of calls as publishes and gets that take for good."""
    moments: list[tuple[int, int, Event]] = []
    for op, call in enumerate(calls):
        put = call.call[0] == "enqueue"
        ev = "publish" if put else "get"
        m = call.call[1] if put else ""
        for t, ph, got in (
            (call.invoked, "invoke", m),
            (call.returned, "ok", m or call.result),
        ):
            if t is not None:
                assert isinstance(got, str)
                made = Event(
                    i=0, t=t, ev=ev, ph=ph, op=op, proc=call.thread, q="q", m=got, autoack=True
                )
                moments.append((t, ph == "ok", made))
    moments.sort(key=lambda x: x[:2])
    return [
        Event(**{f: getattr(e, f) for f in e.__struct_fields__} | {"i": n})
        for n, (_, _, e) in enumerate(moments)
    ]


def calls_of(choose: random.Random) -> list[CallInterval]:
    """Calls at random instants with random answers, nearly right ones most of the time; some never answered."""
    n = choose.randint(1, 6)
    span = choose.choice([4, 8, 20])
    values = [f"m{k}" for k in range(choose.randint(0, 4))]
    calls = []
    for m in values:
        lo = choose.randint(0, span)
        calls.append(CallInterval("p", ("enqueue", m), lo, lo + choose.randint(0, span // 2)))
    answers = list(values)
    if choose.random() < 0.3:
        choose.shuffle(answers)
    at = 0
    for _ in range(n):
        lo = (
            min(at + choose.randint(0, 3), span)
            if choose.random() < 0.7
            else choose.randint(0, span)
        )
        at = lo
        got = choose.choice([answers.pop(0) if answers else "", ""])
        got = choose.choice([got, got, got, got, choose.choice([*values, "m9"])])
        calls.append(
            CallInterval("c", ("dequeue",), lo, lo + choose.randint(0, span // 2), result=got)
        )
    for call in calls:
        if choose.random() < 0.12:
            call.returned = None
    return calls


def agree(calls: list[CallInterval]) -> tuple[Finding, bool]:
    """Never reports what an order explains; and reports all else, unless it says that something is open."""
    found = P20.check(events_of(calls))
    explained = linearization(calls, Fifo) is not None
    said = "; ".join(map(str, calls))
    if explained:
        assert found.verdict is not Verdict.VIOLATED, (said, found.explanation)
    elif any(c.call[0] == "enqueue" for c in calls) and not found.n_untestable:
        assert found.verdict is Verdict.VIOLATED, said
    return found, explained


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_p20_reports_exactly_what_brute_force_does(seed: int) -> None:
    agree(calls_of(random.Random(seed)))


@pytest.mark.parametrize("histories", [1500, pytest.param(6000, marks=pytest.mark.night)])
def test_p20_and_brute_force_on_many(histories: int) -> None:
    """With each verdict reached often on each side, and few cases left open."""
    seen: Counter[tuple[str, bool]] = Counter()
    undecided = 0
    for seed in range(histories):
        calls = calls_of(random.Random(seed))
        found, explained = agree(calls)
        seen[found.verdict.value, explained] += 1
        put = any(c.call[0] == "enqueue" for c in calls)
        open_ = bool(found.n_untestable) and found.verdict is not Verdict.VIOLATED
        undecided += put and open_ and not explained
    assert seen["ok", True] > histories / 6
    assert seen["violated", False] > histories / 6
    assert undecided < histories / 60


def fifo(*steps: tuple[str, str, int, int | None]) -> Finding:
    return P20.check(
        events_of(
            [
                CallInterval("t", ("enqueue", m), lo, hi)
                if what == "put"
                else CallInterval("t", ("dequeue",), lo, hi, result=m)
                for what, m, lo, hi in steps
            ]
        )
    )


def test_p20_names_each_pattern() -> None:
    fresh = fifo(("put", "a", 0, 1), ("take", "b", 2, 3))
    assert "b was taken at event 3, but it was not there" in fresh.explanation
    twice = fifo(("put", "a", 0, 1), ("take", "a", 2, 3), ("take", "a", 4, 5))
    assert [e.i for e in twice.witness] == [5]
    order = fifo(("put", "a", 0, 1), ("put", "b", 2, 3), ("take", "b", 4, 5), ("take", "a", 6, 7))
    assert [e.i for e in order.witness] == [0, 1, 2, 5, 6, 7]
    assert "a was enqueued by 1, before b; yet b was taken by 5" in order.explanation
    never = fifo(("put", "a", 0, 1), ("put", "b", 2, 3), ("take", "b", 4, 5))
    assert "b was taken by 5 (event 5), but a never" in never.explanation
    empty = fifo(("put", "a", 0, 1), ("take", "", 2, 3))
    assert "event 3 found the queue empty between 2 and 3" in empty.explanation


def test_p20_an_empty_dequeue_is_covered_by_values_that_hand_over() -> None:
    """Neither a nor b was inside all the while, but at each instant one of them was."""
    found = fifo(
        ("put", "a", 0, 1), ("take", "", 2, 20), ("put", "b", 3, 4), ("take", "a", 10, 11),
        ("take", "b", 25, 26),
    )  # fmt: skip
    assert found.verdict is Verdict.VIOLATED
    assert {e.m for e in found.witness} == {"a", "b", ""}
    apart = fifo(
        ("put", "a", 0, 1), ("take", "", 2, 20), ("take", "a", 10, 11), ("put", "b", 12, 13),
        ("take", "b", 25, 26),
    )  # fmt: skip
    assert apart.verdict is Verdict.OK


def test_p20_a_dequeue_without_an_answer_may_have_taken_what_is_missing() -> None:
    for begun, verdict in ((4, Verdict.OK), (6, Verdict.VIOLATED)):
        found = fifo(
            ("put", "a", 0, 1), ("put", "b", 2, 3), ("take", "b", 4, 5), ("take", "", begun, None)
        )
        assert found.verdict is verdict


@pytest.mark.parametrize("ev", ["nack", "recover", "expire", "ch_close"])
def test_p20_keeps_silent_where_messages_come_back(ev: str) -> None:
    at: dict[str, Any] = {"conn": "a", "ch": 1, "gen": 1}
    events = [
        Event(i=0, t=0, ev="publish", m="a", q="q", lvl="broker"),
        Event(i=1, t=1, ev="publish", m="b", q="q", lvl="broker"),
        Event(i=2, t=2, ev="get", m="a", q="q", lvl="broker", **at),
        Event(i=3, t=3, ev=ev, q="" if ev in ("recover", "ch_close") else "q", ms=["a"], m="a", **at),
        Event(i=4, t=4, ev="get", m="a", q="q", lvl="broker", **at),
    ]  # fmt: skip
    found = P20.check(events)
    assert (found.verdict, found.n_tested, found.n_untestable) == (Verdict.OK, 1, 1)


def test_one_value_at_a_time_has_no_order() -> None:
    """A stack would have answered the same."""
    one = (("put", "a", 0, 1), ("take", "a", 2, 3), ("put", "b", 4, 5), ("take", "b", 6, 7))
    assert fifo(*one).verdict is Verdict.INCONCLUSIVE
    assert fifo(*one, ("take", "", 8, 9)).verdict is Verdict.OK
    assert fifo(*one, ("take", "a", 8, 9)).verdict is Verdict.VIOLATED
    overlapping = (("put", "a", 0, 5), ("put", "b", 1, 2), ("take", "b", 6, 7))
    assert fifo(*overlapping).verdict is Verdict.OK


def test_an_empty_dequeue_is_left_open_when_messages_come_back_before_it_is_decided() -> None:
    """`slow` may have taken `a` before `quick` found nothing. That `a` was seen only after the queue had been left
    must not look as if it had been inside all the while."""
    rows = [
        ("publish", "ok", {"m": "a", "proc": "p", "op": 0, "t_lo": 0}),
        ("get", "invoke", {"proc": "slow", "op": 1}),
        ("get", "invoke", {"proc": "quick", "op": 2}),
        ("get", "ok", {"proc": "quick", "op": 2}),
        ("nack", "invoke", {"ms": ["z"], "requeue": True, "proc": "other"}),
        ("get", "ok", {"proc": "slow", "op": 1, "m": "a", "autoack": True}),
    ]
    events = [
        Event(i=i, t=10 * i, ev=ev, ph=ph, q="q", **fields)  # type: ignore[arg-type]  # fields of several types
        for i, (ev, ph, fields) in enumerate(rows)
    ]
    found = P20.check(events)
    assert (found.verdict, found.n_untestable) == (Verdict.INCONCLUSIVE, 2)


@pytest.mark.parametrize("answer", ["info", ""])
def test_p20_a_poll_that_nobody_answered_may_have_taken_a_value(answer: str) -> None:
    """Where no numbers join the phases, the next poll of the same worker is another one."""
    events = [Event(i=0, t=0, ev="publish", q="q", m="a")]
    for ph, t in (("invoke", 10), (answer, 11), ("invoke", 20), ("ok", 30)):
        if ph:
            events.append(Event(i=len(events), t=t, ev="get", ph=ph, q="q", proc="w", autoack=True))
    assert P20.check(events).verdict is not Verdict.VIOLATED


def test_what_was_pushed_to_a_consumer_that_ended_may_never_be_seen() -> None:
    # Broker-J: pushed and settled by that, as auto-ack is; the channel closed before the message was read.
    def events(ended: bool) -> list[Event]:
        made = [
            Event(i=0, t=0, ev="consume", ph="ok", q="q", ctag="c", conn="a", ch=1, autoack=True),
            Event(i=1, t=1, ev="publish", ph="invoke", op=1, q="q", m="m0"),
            Event(i=2, t=2, ev="publish", ph="ok", op=1, q="q", m="m0"),
            Event(i=5, t=5, ev="get", ph="invoke", op=2, q="q", conn="b", ch=1),
            Event(i=6, t=6, ev="get", ph="ok", op=2, q="q", conn="b", ch=1),
            Event(i=7, t=7, ev="get", ph="invoke", op=3, q="q", conn="b", ch=1),
            Event(i=8, t=8, ev="get", ph="ok", op=3, q="q", m="m0", conn="b", ch=1, autoack=True),
        ]
        if ended:
            made[3:3] = [Event(i=3, t=3, ev="ch_close", ph="ok", conn="a", ch=1)]
        return list(complete(made))

    assert QueueLinearizable().check(events(False)).verdict is Verdict.VIOLATED
    assert QueueLinearizable().check(events(True)).verdict is Verdict.INCONCLUSIVE


def test_what_a_consumer_is_about_to_be_given_is_not_inside_for_a_dequeue() -> None:
    # RabbitMQ: both were pushed when the consume was carried out, before the get; they were read later.
    def events(consumed: bool) -> list[Event]:
        made = [
            Event(i=n, t=n, ev="publish", ph=ph, op=m, q="q", m=f"m{m}")
            for n, (m, ph) in enumerate((m, ph) for m in (0, 1) for ph in ("invoke", "ok"))
        ]
        if consumed:
            consume = Event(i=4, t=4, ev="consume", ph="invoke", op=9, q="q", ctag="c")
            made.append(msgspec.structs.replace(consume, conn="a", ch=2, autoack=True))
        made += [
            Event(i=5, t=5, ev="get", ph="invoke", op=10, q="q", conn="a", ch=3),
            Event(i=6, t=6, ev="get", ph="ok", op=10, q="q", conn="a", ch=3),
            Event(i=7, t=7, ev="consume", ph="ok", op=9, q="q", ctag="c", conn="a", ch=2),
        ]
        for m in (0, 1):
            given = Event(i=8 + m, t=8 + m, ev="deliver", q="q", m=f"m{m}", ctag="c", dtag=m + 1)
            made.append(msgspec.structs.replace(given, conn="a", ch=2, autoack=True))
        return list(complete(made if consumed else made[:6]))

    assert QueueLinearizable().check(events(True)).verdict is not Verdict.VIOLATED
    assert QueueLinearizable().check(events(False)).verdict is Verdict.VIOLATED


def test_a_poll_of_which_only_that_nobody_knows_is_recorded_may_have_taken_anything() -> None:
    lines = [
        (ev, ph, m) for m in ("m0", "m1") for ev, ph in (("publish", "invoke"), ("publish", "ok"))
    ]
    lines += [("get", "invoke", ""), ("get", "ok", "m1")]
    for info in ([], [("get", "info", "")]):
        events = [
            Event(
                i=n,
                t=n,
                ev=ev,
                ph=ph,
                m=m,
                q="q",
                proc="x" if ph == "info" else ev,
                autoack=True,
            )
            for n, (ev, ph, m) in enumerate([*lines, *info])
        ]
        assert (P20.check(list(complete(events))).verdict is Verdict.VIOLATED) is (not info)


@pytest.mark.parametrize(
    ("acked", "verdict"),
    [("", Verdict.INCONCLUSIVE), ("info", Verdict.INCONCLUSIVE), ("ok", Verdict.VIOLATED)],
)
def test_what_is_not_known_to_be_settled_may_have_come_back(acked: str, verdict: Verdict) -> None:
    """beanstalkd behind half-open connections: it notices the end of a client before that client does."""
    lines = [("publish", "invoke", 0, "m"), ("publish", "ok", 0, "m")]
    lines += [("get", "invoke", 1, ""), ("get", "ok", 1, "m")]
    lines += [("ack", "invoke", 2, ""), ("ack", acked, 2, "")] if acked else []
    lines += [("get", "invoke", 3, ""), ("get", "ok", 3, "m")]
    events = [
        Event(
            i=n,
            t=n,
            lvl="api",
            ev=ev,
            ph=ph,
            op=op,
            m=m,
            q="q",
            conn="c2" if op == 3 else "c1",
            ch=1,
            dtag=1,
            ms=["m"] if ev == "ack" else None,
            multiple=False if ev == "ack" else None,
            autoack=False if ev == "get" else None,
        )
        for n, (ev, ph, op, m) in enumerate(lines)
    ]
    assert P20.check(list(complete(events))).verdict is verdict
    dropped = Event(i=len(events), t=len(events), lvl="api", ev="conn_drop", conn="c1")
    ended = P20.check(list(complete([*events, dropped]))).verdict
    assert ended is verdict
    mine = [msgspec.structs.replace(e, conn="c1") for e in events]
    assert P20.check(list(complete(mine))).verdict is Verdict.VIOLATED


def recorded(*lines: tuple[str, str, str, str, int]) -> Finding:
    """The finding on calls of several recorders: recorder, event, phase, message, time."""
    numbers = {"publish": 1, "get": 2}
    events = [
        Event(
            i=i, rec=rec, proc=rec, lvl="api", q="q", ev=ev, ph=ph, m=m, t=t,
            op=numbers.get(ev), autoack=True if ev == "get" else None,
        )
        for i, (rec, ev, ph, m, t) in enumerate(lines)
    ]  # fmt: skip
    return confirmed(P20, P20.check(list(complete(events))))


BOTH_IN = (
    ("p", "publish", "invoke", "a", 0),
    ("p", "publish", "ok", "a", 1),
    ("p", "publish", "invoke", "b", 2),
    ("p", "publish", "ok", "b", 3),
)
"""Two values, one after the other."""
ANOTHER_ASKS = (("d", "get", "invoke", "", -2), ("d", "get", "ok", "", -1))


@pytest.mark.parametrize(
    ("found", "later", "violated"),
    [
        ("b", 9, True),  # the other worker's recorder goes on, and shows no `a`
        ("b", None, False),  # it may have been killed, and its worker took `a`
        ("", 9, True),
        ("", None, False),
    ],
)
def test_what_a_worker_may_have_taken_behind_its_recorders_last_line_is_neither_passed_over_nor_there(
    found: str, later: int | None, violated: bool
) -> None:
    """A worker found the later value, or nothing; another one had asked before, and its recorder wrote no more."""
    goes_on = () if later is None else (("d", "get", "invoke", "", later),)
    seen = (("c", "get", "invoke", "", 5), ("c", "get", "ok", found, 6))
    finding = recorded(*ANOTHER_ASKS, *BOTH_IN, *seen, *goes_on)
    assert finding.verdict is (Verdict.VIOLATED if violated else Verdict.OK), finding
    assert finding.n_untestable == (not violated)


def test_a_value_that_another_worker_took_later_was_there_whoever_stopped() -> None:
    seen = (("c", "get", "invoke", "", 5), ("c", "get", "ok", "", 6))
    taken = [
        line
        for k, m in enumerate("ab")
        for line in (("e", "get", "invoke", "", 7 + 2 * k), ("e", "get", "ok", m, 8 + 2 * k))
    ]
    assert recorded(*ANOTHER_ASKS, *BOTH_IN, *seen, *taken).verdict is Verdict.VIOLATED


@pytest.mark.parametrize(("phase", "expected"), [("ok", "violated"), ("invoke", "ok")])
def test_a_worker_that_has_ended_for_certain_takes_nothing_more(phase: str, expected: str) -> None:
    """An end that has only begun is not known to have happened."""
    ends = Event(i=2, rec="d", proc="d", conn="d", lvl="api", ev="conn_close", ph=phase, t=4)
    asks = [
        Event(i=i, rec="d", proc="d", conn="d", lvl="api", q="q", ev="get", ph=ph, op=2, t=i - 2, autoack=True)
        for i, ph in enumerate(("invoke", "ok"))
    ]  # fmt: skip
    lines = [*BOTH_IN, ("c", "get", "invoke", "", 5), ("c", "get", "ok", "b", 6)]
    others = [
        Event(
            i=i, rec=rec, proc=rec, conn=rec, lvl="api", q="q", ev=ev, ph=ph, m=m, t=t,
            op=1 if ev == "publish" else 2, autoack=True if ev == "get" else None,
        )
        for i, (rec, ev, ph, m, t) in enumerate(lines)
    ]  # fmt: skip
    events = sorted([*asks, ends, *others], key=lambda e: e.t or 0)
    assert P20.check(list(complete(events))).verdict.value == expected
