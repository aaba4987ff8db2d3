"""Columnar judging of mutated histories: a slice of what `make crosscheck-columnar` compares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from seriatim_models.history.event import UNKNOWN_GEN
from seriatim_models.pipeline.audit import chunks
from seriatim_models.properties.base import CaseEvents
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.blackbox.consumers import SoleConsumer
from seriatim_workshop.crosscheck import columnar

from .blackbox_histories import Recording

QUEUES = ("q", "r")  # of different buckets


def workers_of_two_connections(made: Recording) -> None:
    for n, conn in enumerate("abababab"):
        made.deliver(f"m{n}", conn=conn, ch=None, gen=None, ctag="")


def dead_and_requeued(made: Recording) -> None:
    made.publish("m0")
    made.deliver("m0")
    made.settle("nack", "m0", dead=True)
    made.deliver("m0", redelivered=True)


def _two_consumers(made: Recording) -> None:
    for q in QUEUES:
        on = {"conn": q, "ch": 1, "gen": 1}
        made.add("ch_open", "ok", **on)
        made.add("consume", "ok", q=q, ctag=q, **on)
        made.publish("m0", q=q)


def rest_of_all_seen_at_one(made: Recording) -> None:
    _two_consumers(made)
    made.deliver("m0", q="r", to="r", ctag="r", autoack=True)
    made.add("note", q="q", args={"rest": True})


def two_queues_left_open_at_rest(made: Recording) -> None:
    _two_consumers(made)
    made.add("note", args={"rest": True})


def another_queue_between_rest_and_get(made: Recording) -> None:
    made.publish("m0", q="q")
    made.add("note", args={"rest": True})
    made.publish("m1", q="r")
    made.add("get", "ok", q="q", conn="g", ch=1, gen=1)
    made.deliver("m0", q="q", to="q")


def a_settlement_failed_in_one_queue(made: Recording) -> None:
    on = {"conn": "a", "ch": 1, "gen": 1}
    for q in QUEUES:
        made.add("consume", "ok", q=q, ctag=q, **on)
    made.deliver("m9", q="r", ctag="r")
    for ph in ("invoke", "fail"):
        made.add("ack", ph, ms=["m9"], q="r", **on)
    made.publish("m0", q="q")
    made.deliver("m0", q="q", ctag="q")


def a_call_of_a_poll_with_a_priority(made: Recording) -> None:
    made.deliver("m0")
    made.add("get", "invoke", q="q", conn="a", ch=1, gen=1, prio=1)
    made.deliver("m1")


def taken_from_two_queues_without_having_been_there(made: Recording) -> None:
    for q in QUEUES:
        made.publish("m0", q=q)
        made.deliver("m0", q=q, autoack=True)
    made.publish("m1", q="q")
    for q in QUEUES:
        made.deliver("m7", q=q, autoack=True)


def given_on_a_channel_that_nobody_knows(made: Recording) -> None:
    made.deliver("m0", ctag="", gen=UNKNOWN_GEN, nolocal=False)


def polls_of_another_message_answered_before_one_comes_back(made: Recording) -> None:
    on = {"q": "q", "conn": "", "ch": None, "gen": None}
    for n in range(4):  # of both parts
        for ph, m in (("invoke", ""), ("ok", f"n{n}")):
            made.add("get", ph, op=n, proc="b", m=m, **on)
    for op in (10, 20):  # twice, with the first settled in between
        made.add("get", "invoke", op=op, proc="a", **on)
        made.add("get", "ok", op=op, proc="a", m="m", t_lo=10 * len(made.events) - 10, **on)
        for ph in ("invoke", "ok"):
            made.add("ack", ph, op=op + 1, proc="a", ms=["m"], **on)


FOUND = (
    polls_of_another_message_answered_before_one_comes_back,
    given_on_a_channel_that_nobody_knows,
    workers_of_two_connections,
    dead_and_requeued,
    rest_of_all_seen_at_one,
    two_queues_left_open_at_rest,
    another_queue_between_rest_and_get,
    a_settlement_failed_in_one_queue,
    a_call_of_a_poll_with_a_priority,
    taken_from_two_queues_without_having_been_there,
)


def test_the_queues_of_these_histories_are_judged_apart() -> None:
    assert len({chunks.bucket(q) for q in QUEUES}) == 2


@pytest.mark.parametrize(
    ("histories", "every"), [(170, 20), pytest.param(1000, 4, marks=pytest.mark.night)]
)
def test_mutated_histories_are_judged_alike(
    histories: int, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "SLICE", 10)
    monkeypatch.setattr(chunks, "WHOLE", 10)
    violated: Counter[str] = Counter()
    found = [
        text
        for seed in range(histories)
        for text in columnar.differences(columnar.history(seed), seed % every == 0, violated)
    ]
    assert not found
    assert {p.id for p in BLACKBOX} == {*violated}


@pytest.mark.parametrize("write", FOUND)
def test_histories_once_judged_otherwise(
    write: Callable[[Recording], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found: each cause that the comparison has shown, by the smallest history that shows it."""
    monkeypatch.setattr(chunks, "SLICE", 2)
    monkeypatch.setattr(chunks, "WHOLE", 2)
    recording = Recording()
    write(recording)
    assert not columnar.differences(recording.events, True, Counter())


def test_the_comparison_fails_where_a_case_is_overlooked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "SLICE", 10)
    monkeypatch.setattr(chunks, "WHOLE", 10)
    monkeypatch.setattr(SoleConsumer, "case_events", CaseEvents(frozenset({"no such event"})))
    ways: set[str] = set()
    for seed in range(60):
        events = columnar.history(seed)
        if SoleConsumer().check(events).n_tested:
            texts = columnar.differences(events, True, Counter())
            ways |= {text.split()[0] for text in texts if "P10" in text}
        if len(ways) == 3:
            break
    assert ways == {"columns", "chunks", "streams"}
