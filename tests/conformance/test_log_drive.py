"""The drive of logs: read, seek, commit, partitions; the planted log, right and wrong."""

from __future__ import annotations

import pytest

from seriatim_models.conformance.driving import drive
from seriatim_models.conformance.judging import default_profile
from seriatim_models.conformance.local import Local
from seriatim_models.conformance.script import ScriptStep
from seriatim_models.conformance.search import SearchBounds, SearchOutcome, search
from seriatim_models.history.event import Event
from seriatim_models.properties.base import Verdict
from seriatim_models.properties.blackbox.offsets import LogReader
from seriatim_workshop.planted import log_mistakes
from seriatim_workshop.planted.log import PlantedLog


def step(op: str, **more: object) -> ScriptStep:
    return ScriptStep(op=op, q="q", ctag="" if op == "publish" else "g", part=0, **more)  # type: ignore[arg-type]


def searched(name: str, seconds: float, first: bool) -> SearchOutcome:
    system = Local(getattr(log_mistakes, name))
    bounds = SearchBounds(seconds=seconds, first=first)
    return search(system, default_profile(system), bounds, seed=1)


def test_a_log_is_held_to_what_kafka_promises() -> None:
    assert default_profile(Local(PlantedLog)).id == "kafka"


def test_the_right_log_violates_nothing_and_is_tested() -> None:
    outcome = searched("right", 5.0, False)
    assert outcome.witnesses == []
    assert {"kafka", "at-least-once-log"} <= set(outcome.tested)


@pytest.mark.parametrize(
    "name",
    [
        name if n < 2 else pytest.param(name, marks=pytest.mark.slow)
        for n, name in enumerate(log_mistakes.MISTAKES)
    ],
)
def test_each_mistake_of_the_log_is_found(name: str) -> None:
    outcome = searched(
        name, 100.0, True
    )  # most take a second, what two readers do to each other up to 45
    assert [w.property for w in outcome.witnesses] != []
    assert outcome.witnesses[0].again > 0


def test_a_reader_that_comes_again_begins_at_the_commit_of_its_group() -> None:
    steps = [step("publish")] * 3 + [step("read")] * 2
    steps += [step("commit", which=1), ScriptStep(op="close"), step("read")]
    run = drive(Local(PlantedLog), steps)
    read = [e.pos for e in run.events if e.ev == "deliver" and e.ctag == "g"]
    assert read == [0, 1, 1]
    assert [e.pos for e in run.events if e.ev == "commit"] == [1]
    # The end: a group that was never there reads everything.
    assert [e.pos for e in run.events if e.ev == "deliver" and e.ctag == "drain"] == [0, 1, 2]


def log(*events: Event) -> tuple[Verdict, str]:
    """P15's verdict on a log whose positions 0 to 4 were published."""
    published = [Event(i=n, t=n, ev="publish", m=f"m{n}", q="q", part=0, pos=n) for n in range(5)]
    finding = LogReader().check([*published, *events])
    return finding.verdict, finding.explanation


def reading(i: int, ev: str, pos: int, **more: object) -> Event:
    m = f"m{pos}" if ev == "deliver" else ""
    fields = {"m": m, "q": "q", "part": 0, "ctag": "g", "conn": "c", "ch": 1, "pos": pos, **more}
    return Event(i=i, t=i, ev=ev, **fields)  # type: ignore[arg-type]


def test_what_is_read_after_a_seek_is_where_it_went() -> None:
    to_next = {"args": {"committed": "next"}}
    went = reading(5, "seek", 2, **to_next)
    assert log(went, reading(6, "deliver", 2))[0] is Verdict.OK
    assert "left out 2" in log(went, reading(6, "deliver", 3))[1]
    assert "which is before it" in log(went, reading(6, "deliver", 1))[1]


def test_a_seek_of_undeclared_meaning_may_name_the_last_or_the_next() -> None:
    went = reading(5, "seek", 2)
    for first in (2, 3):
        assert log(went, reading(6, "deliver", first))[0] is not Verdict.VIOLATED
    assert "left out 3" in log(went, reading(6, "deliver", 4))[1]


def test_a_seek_beyond_the_end_may_be_answered_by_going_back() -> None:
    went = reading(5, "seek", 40, args={"committed": "next"})
    assert log(went, reading(6, "deliver", 0))[0] is Verdict.INCONCLUSIVE


def test_the_seek_of_another_member_says_nothing_about_this_one() -> None:
    went = reading(5, "seek", 2, args={"committed": "next"}, ch=2)
    assert log(went, reading(6, "deliver", 4))[0] is Verdict.INCONCLUSIVE


def test_another_message_at_a_confirmed_position_is_a_violation() -> None:
    assert "which is that of m2" in log(reading(5, "deliver", 2, m="m0"))[1]


def test_a_member_that_may_have_lost_the_partition_since_its_seek_begins_anywhere() -> None:
    went = reading(5, "seek", 0, args={"committed": "next"})
    other = reading(6, "deliver", 0, conn="d")
    assert log(went, other, reading(7, "deliver", 3))[0] is not Verdict.VIOLATED
