"""Profiles: what the files must say, what is refused, and how the two recordings of RabbitMQ stand to each."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from seriatim_models.conformance.profile_consistency import (
    ProfileConsistency,
    consistencies,
    forms,
    where_nothing_is_declared,
)
from seriatim_models.conformance.profiles import (
    ORACLE,
    PROFILES,
    SYSTEMS,
    ProfileError,
    load,
    parse,
)
from seriatim_models.history import Event, read_history
from seriatim_models.history.complete import complete
from seriatim_models.properties.base import Verdict
from seriatim_models.properties.causes import causes
from seriatim_workshop.bench.simulated_broker import SimulatedBroker
from seriatim_workshop.right.drawing import history
from seriatim_workshop.right.faults import FAULTS, faulty
from seriatim_workshop.right.judging import completed

DATA = Path(__file__).parent.parent / "data"
NAMES = {
    "strict-qpid", "amqp-0-9-1-4.7", "rabbit-classic", "rabbit-quorum", "at-least-once-log", "unordered-lease",
    "fifo-adt", "sqs-standard", "sqs-fifo", "kafka", "nsq", "jms-queue", "postgres-skip-locked", "jetstream-workqueue",
    "pulsar-shared", "pulsar-key-shared", "pulsar-failover",
}  # fmt: skip
PULSAR = {"pulsar-shared", "pulsar-key-shared", "pulsar-failover"}
"""What may come again after it was settled, and has one holder."""
AGAIN = {"sqs-standard", "nsq", "jetstream-workqueue"}
"""What may come again after it was settled, without order."""
LIKELY = {"jms-queue", "kafka", "at-least-once-log"}
"""What promises order for first deliveries, and nothing of the flag that says which these are."""


@cache
def stand(name: str) -> dict[str, ProfileConsistency]:
    if name.startswith("made"):
        events = list(complete(SimulatedBroker(1, 300, fault=name.removeprefix("made ")).run()))
    else:
        recorded = read_history(DATA / f"rabbit-classic-{name}.jsonl.gz").events
        events = list(complete(recorded))
    judges = forms(SYSTEMS.values())
    found = consistencies(judges, [p.check(events) for p in judges])
    return {s.profile: s for s in found}


def test_the_promised_profiles_are_there_and_every_promise_has_a_source() -> None:
    assert set(SYSTEMS) == NAMES
    assert set(PROFILES) == NAMES | {"any", "reference"}
    for profile in SYSTEMS.values():
        assert all(p.source for p in profile.promises)
        assert all(s.why for s in profile.silent)
        named = {p.property for p in profile.promises} | {s.property for s in profile.silent}
        assert named == {p.id for p in ORACLE}


@pytest.mark.parametrize(
    ("name", "late"), [pytest.param("lockstep", 1135, marks=pytest.mark.slow), ("competing", 75)]
)
def test_the_recordings_rule_out_strict_qpid_by_lateness_and_nothing_else(
    name: str, late: int
) -> None:
    found = stand(name)
    assert {p for p, s in found.items() if s.verdict is Verdict.VIOLATED} == {"strict-qpid"}
    out = found["strict-qpid"]
    assert [(f.property, f.n_violations) for f in out.broken] == [("P6", late)]
    shown = [e.ev for e in out.broken[0].witness]
    assert shown[2:4] == ["deliver", "deliver"]
    assert set(shown[4:]) <= {"ch_close", "conn_close"}  # by whose answers the others were there


@pytest.mark.parametrize(
    ("fault", "kept"),
    [
        ("", NAMES),
        ("tail", NAMES - {"strict-qpid", "rabbit-classic"}),
        ("late", NAMES - {"strict-qpid", "rabbit-classic"}),
        ("after-ack", {"unordered-lease", "at-least-once-log", *AGAIN, "kafka", *PULSAR}),
        (
            "doubles",
            {"unordered-lease", "at-least-once-log", *AGAIN, "kafka", "pulsar-failover"},
        ),
        ("loses", set()),
        (
            "unmarked",
            {"unordered-lease", "fifo-adt", "postgres-skip-locked", *AGAIN, *LIKELY, *PULSAR},
        ),
    ],
)
def test_a_fault_rules_out_who_promises_otherwise(fault: str, kept: set[str]) -> None:
    found = stand(f"made {fault}")
    assert {p for p, s in found.items() if s.verdict is not Verdict.VIOLATED} == kept
    for consistency in found.values():
        assert bool(consistency.broken) == (consistency.verdict is Verdict.VIOLATED)
        assert all(f.witness and f.explanation for f in consistency.broken)


def test_a_profile_without_a_case_of_a_core_promise_is_not_called_consistent() -> None:
    log = stand("made ")["at-least-once-log"]
    assert (log.verdict, log.missing) == (Verdict.INCONCLUSIVE, ["P15"])
    assert log.why.startswith("no case of P15: P15 takes a reader that is given one position")
    for profile in SYSTEMS.values():
        assert profile.core
        assert profile.core <= {p.id for p in profile.properties}


def test_one_cause_is_shown_once_and_the_first_violation_first() -> None:
    out = stand("made unmarked")["strict-qpid"]
    assert out.broken[0].property == "P3"
    lasts = [max(e.i for e in f.witness) for f in out.broken]
    assert lasts == sorted(lasts)
    doubled = [
        Event(i=i, ev="deliver", m="m", q="q", t=i, conn=f"c{i}", ch=1, redelivered=False)
        for i in (1, 2)
    ]
    alive = [
        Event(i=i, ev="qos", ph=ph, t=i, conn=f"c{1 + i % 2}", ch=1, op=i % 2)
        for i, ph in ((3, "invoke"), (4, "invoke"), (5, "ok"), (6, "ok"))
    ]
    sent = Event(i=0, ev="publish", m="m", q="q", t=0)
    found = [p.check([sent, *doubled, *alive]) for p in ORACLE]
    [cause] = causes(found)
    assert {f.property for f in cause} == {"P2", "P3"}


@pytest.mark.parametrize(
    ("fault", "profile", "id"),
    [
        ("loses-publishes", "pulsar-shared", "P1"),
        ("invents", "pulsar-shared", "P1"),
        ("gives-held", "pulsar-shared", "P2"),
        ("enqueues-twice", "pulsar-shared", "P2"),
        ("wrong-group", "pulsar-key-shared", "P23"),
        ("reorders", "pulsar-failover", "P4"),
        ("not-alone", "pulsar-failover", "P10"),
        ("accepts-second", "pulsar-failover", "P10"),
    ],
)
def test_a_mistake_of_a_subscription_is_a_violation_of_its_profile(
    fault: str, profile: str, id: str
) -> None:
    """The same systems, right, keep it."""
    (planted,) = [f for f in FAULTS if f.name == fault]
    found = set()
    for seed in range(25):
        meaning, events, happened = faulty(planted, seed)
        properties = PROFILES[profile].properties
        if happened:
            judged = completed(events)
            found |= {p.id for p in properties if p.check(judged).verdict is Verdict.VIOLATED}
        right = completed(history(meaning))
        assert not [p for p in properties if p.check(right).verdict is Verdict.VIOLATED]
    assert id in found


GOOD = """
format = "seriatim-profile/1"
id = "mine"
title = "mine"
[[promise]]
property = "P6"
source = "the manual"
within = 3
""" + "".join(f'[[silent]]\nproperty = "{p.id}"\nwhy = "-"\n' for p in ORACLE if p.id != "P6")


def test_a_profile_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    assert [getattr(p, "within", None) for p in load(path).properties] == [3]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("profile/1", "profile/9", "mine.toml: format: 'seriatim-profile/9' cannot be read"),
        ("within = 3", "within = -3", "P6: within: -3 is neither a number"),
        ("within = 3", "again = true", "P6: has no form again"),
        ("within = 3", "withn = 3", "unknown field `withn`"),
        ('property = "P6"', 'property = "P66"', "property: there is no P66"),
        ('property = "P6"', 'property = "P7"', "property: P7 stands twice"),
        ('[[silent]]\nproperty = "P9"\nwhy = "-"\n', "", "P9: neither promised nor silent"),
        ("title", "title title", "mine.toml"),
        ('title = "mine"', 'title = "mine"\ncore = ["P1"]', "core: P1 is not promised"),
    ],
)
def test_rejects_a_profile_that_says_what_cannot_be_meant(old: str, new: str, why: str) -> None:
    with pytest.raises(ProfileError) as error:
        parse(GOOD.replace(old, new), "mine.toml")
    assert why in str(error.value)
    assert str(error.value).startswith("mine.toml")


def test_rejects_a_profile_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="cannot be read"):
        load(tmp_path / "none.toml")


def test_who_joins_a_failover_subscription_may_take_over() -> None:
    """The master before still has what the new one is given. Its profile does not report it, nor does no profile."""
    events = [Event(i=0, t=0, ev="declare", q="q", args={"x-single-active-consumer": True})]

    def call(ev: str, *phases: str, **fields: Any) -> None:
        op = len(events)
        for ph in phases or ("invoke", "ok"):
            n = len(events)
            events.append(Event(i=n, t=n, t_lo=n - 1, ev=ev, ph=ph, op=op, **fields))

    call("publish", q="q", m="m", proc="p", pub="p", pseq=0)
    for by in "ba":
        call("consume", q="q", conn=by, ctag=by, autoack=False)
        call("deliver", "", q="q", m="m", conn=by, ctag=by)
    for by in "ba":
        call("ack", q="q", m="m", conn=by, ctag=by)
        call("rpc", conn=by)
    judges = forms((PROFILES["any"], *SYSTEMS.values()))
    judged = list(complete(events))
    findings = [p.check(judged) for p in judges]
    compared = consistencies(judges, findings)
    found = {c.profile: c.verdict for c in compared}
    assert found["pulsar-failover"] is not Verdict.VIOLATED
    assert found["rabbit-quorum"] is Verdict.VIOLATED
    mine = {f.property: f for f in where_nothing_is_declared(findings[: len(ORACLE)], compared)}
    assert mine["P10"].verdict is Verdict.INCONCLUSIVE
    assert "pulsar-failover would allow it" in mine["P10"].explanation
    assert mine["P2"].verdict is not Verdict.VIOLATED
