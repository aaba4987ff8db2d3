"""P21: each publish is answered at most once, and nothing that a correct broker may do is a violation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seriatim_models.conformance.profiles import SYSTEMS
from seriatim_models.history import Event, read_history
from seriatim_models.history.complete import complete
from seriatim_models.history.event import GAP
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.blackbox.confirms import AnsweredOnce
from seriatim_workshop.bench.simulated_broker import FAULTS, SimulatedBroker

from .blackbox_histories import Recording

DATA = Path(__file__).parent.parent / "data"


def check(*events: str, late: bool = False) -> Finding:
    """The finding on a channel's events, each ``phase`` of a publish of m0 or ``phase:op``, or an event's name.

    `late`: the recording begins when the channel is open already.
    """
    r = Recording()
    channel: dict[str, Any] = {"conn": "p", "ch": 1, "gen": 1}
    if not late:
        r.add("ch_open", "ok", **channel)
    for event in events:
        ph, _, op = event.partition(":")
        if ph in ("invoke", "ok", "fail", "info", "whole"):
            phase = "" if ph == "whole" else ph
            r.add("publish", phase, m="m0", q="q", op=int(op) if op else None, **channel)
        else:
            r.add(event, **({} if event == GAP else channel))
    return AnsweredOnce().check(r.events)


def counted(finding: Finding) -> tuple[Verdict, int, int]:
    return finding.verdict, finding.n_tested, finding.n_untestable


@pytest.mark.parametrize("second", ["ok", "fail"])
@pytest.mark.parametrize("first", ["ok", "fail"])
def test_a_second_answer_is_a_violation_and_both_are_shown(first: str, second: str) -> None:
    finding = check("invoke", first, second)
    assert counted(finding) == (Verdict.VIOLATED, 2, 0)
    opened_and_sent = [(0, "ok"), (1, "invoke")]
    assert [(e.i, e.ph) for e in finding.witness] == [*opened_and_sent, (2, first), (3, second)]


@pytest.mark.parametrize(
    ("events", "tested"),
    [
        (["invoke", "ok"], 1),
        (["invoke", "fail"], 1),
        (["invoke", "info"], 0),
        (["invoke", "info", "ok"], 1),  # the outcome was unknown for a while
        (["invoke", "ok", "invoke", "ok"], 2),  # published again
        (
            ["invoke:1", "info:1", "invoke:2", "ok:2", "ok:1"],
            2,
        ),  # ... before the first was answered
        (["invoke", "ok", "return"], 1),
        (["whole", "whole"], 0),
        (["invoke"], 0),
    ],
)
def test_one_answer_to_each_publish_is_right(events: list[str], tested: int) -> None:
    verdict = Verdict.OK if tested else Verdict.INCONCLUSIVE
    assert counted(check(*events)) == (verdict, tested, 0)


@pytest.mark.parametrize(
    ("events", "late", "tested", "untestable"),
    [
        (["ok"], True, 0, 1),  # its publish came before the recording
        (["ok", "ok"], True, 0, 2),
        (
            ["invoke", "ok", "ok"],
            True,
            1,
            1,
        ),  # it may have been published before the recording as well
        (["invoke", GAP, "ok"], False, 0, 1),
        (["invoke", "ok", GAP, "ok"], False, 1, 1),
        (["invoke", GAP, "invoke", "ok", "ok"], False, 1, 1),
        (["ch_open", "ok"], False, 0, 1),
    ],
)
def test_what_the_recording_does_not_have_leaves_it_open(
    events: list[str], late: bool, tested: int, untestable: int
) -> None:
    verdict = Verdict.OK if tested else Verdict.INCONCLUSIVE
    assert counted(check(*events, late=late)) == (verdict, tested, untestable)


def test_one_operation_is_answered_once_however_late_the_recording_begins() -> None:
    assert counted(check("invoke:7", "ok:7", "ok:7", late=True)) == (Verdict.VIOLATED, 2, 0)
    assert counted(check("invoke:7", "ok:7", "ok:8", late=True)) == (Verdict.OK, 1, 1)


def test_two_recorders_of_one_channel_each_see_every_answer() -> None:
    events = [
        Event(i=i, ev=ev, ph=ph, rec=rec, conn="p", ch=1, gen=1, q="q", m="m0")
        for i, (ev, ph) in enumerate([("ch_open", "ok"), ("publish", "invoke"), ("publish", "ok")])
        for rec in ("a", "b")
    ]
    assert counted(AnsweredOnce().check(events)) == (Verdict.OK, 2, 0)


def test_a_state_that_must_stay_small_forgets_and_then_reports_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from seriatim_models.properties.blackbox import confirms

    monkeypatch.setattr(confirms, "WAITING_KEPT", 1)
    r = Recording()
    channel = {"conn": "p", "ch": 1, "gen": 1, "q": "q"}
    r.add("ch_open", "ok", conn="p", ch=1, gen=1)
    for m in ("m0", "m1"):
        r.add("publish", "invoke", m=m, **channel)
    for m in ("m1", "m1", "m0"):
        r.add("publish", "ok", m=m, **channel)
    assert counted(AnsweredOnce().check(r.events)) == (Verdict.OK, 1, 2)


@pytest.mark.parametrize("name", ["lockstep", "competing"])
def test_the_recordings_hold_it_three_thousand_times(name: str) -> None:
    events = complete(read_history(DATA / f"rabbit-classic-{name}.jsonl.gz").events)
    finding = AnsweredOnce().check(events)
    assert counted(finding) == (Verdict.OK, {"lockstep": 3000, "competing": 4000}[name], 0)


@pytest.mark.parametrize("fault", ["", *FAULTS])
def test_no_simulated_broker_answers_twice(fault: str) -> None:
    events = list(complete(SimulatedBroker(3, 200, fault=fault).run()))
    assert counted(AnsweredOnce().check(events)) == (Verdict.OK, 200, 0)


def test_only_systems_with_publisher_confirms_promise_it() -> None:
    promising = {p.id for p in SYSTEMS.values() if any(x.property == "P21" for x in p.promises)}
    assert promising == {"rabbit-classic", "rabbit-quorum"}
    silent = {p.id for p in SYSTEMS.values() if any(x.property == "P21" for x in p.silent)}
    assert silent == set(SYSTEMS) - promising
