"""Kinds of events that a recorder declares it never writes: what depends on them is neither violated nor ok."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seriatim_models.conformance.lint import lint
from seriatim_models.history import Event, HistoryError, read_history, write_history
from seriatim_models.history.catalogue import CLIENT_EVENTS
from seriatim_models.history.complete import complete
from seriatim_models.history.header import Header
from seriatim_models.history.unrecorded import missing_kinds, with_gaps
from seriatim_models.pipeline import audit_paths
from seriatim_models.pipeline.audit import runs
from seriatim_models.pipeline.audit.ingest import ingest
from seriatim_models.pipeline.audit.inline import Inline
from seriatim_models.pipeline.audit.tasks import audit_chunks
from seriatim_models.pipeline.stream.run_state import ArrivedFile, RunState
from seriatim_models.properties.base import AnyProperty, Finding, Verdict, audit
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.report.audit_text import counts
from seriatim_workshop.right.drawing import draw, history
from seriatim_workshop.right.faults import FAULTS, faulty
from seriatim_workshop.right.judging import kept

from .blackbox_histories import Recording

KINDS = (
    "ack", "cancel", "ch_close", "ch_open", "commit", "conn_close", "conn_drop", "consume", "declare", "deliver",
    "expire", "get", "nack", "note", "publish", "qos", "recover", "reject", "rpc", "seek",
)  # fmt: skip
"""Kinds of events that drawn systems have."""


def in_time(events: Sequence[Event]) -> list[Event]:
    return sorted(events, key=lambda e: (e.t or 0, e.i))


def judged(
    events: Sequence[Event], properties: Sequence[AnyProperty], *kinds: str
) -> list[Finding]:
    """The findings on a history whose recorders never write events of some kinds, and say so."""
    left = [e for e in in_time(events) if e.ev not in kinds]
    return audit(complete(with_gaps(left, sorted(kinds))), properties)


@pytest.mark.parametrize(
    ("first", "seeds"),
    [
        (200_010, 6),
        (200_024, 4),
        pytest.param(201_000, 100, marks=pytest.mark.slow),
        pytest.param(201_000, 1_000, marks=pytest.mark.night),
    ],
)
def test_no_right_system_is_reported_for_a_kind_of_events_that_is_declared_unrecorded(
    first: int, seeds: int
) -> None:
    left_out: Counter[str] = Counter()
    for seed in range(first, first + seeds):
        meaning = draw(seed)
        events, properties = history(meaning), kept(meaning)
        for kind in sorted({e.ev for e in events}):
            left_out[kind] += 1
            found = judged(events, properties, kind)
            wrong = [f for f in found if f.verdict is Verdict.VIOLATED]
            assert not wrong, f"{seed} without {kind}: {wrong[0].property}: {wrong[0].explanation}"
    assert left_out.keys() == set(KINDS) or seeds < 1_000


@pytest.mark.parametrize(
    ("first", "seeds"),
    [
        (0, 1),
        pytest.param(100, 5, marks=pytest.mark.slow),
        pytest.param(100, 20, marks=pytest.mark.night),
    ],
)
def test_less_that_is_recorded_reports_nothing_new_and_calls_nothing_ok_that_was_violated(
    first: int, seeds: int
) -> None:
    """Of systems with a mistake: and what does not depend on the kind is reported still."""
    before, after = Counter[str](), Counter[str]()
    for fault in FAULTS:
        for seed in range(first, first + seeds):
            meaning, events, _ = faulty(fault, seed)
            properties = kept(meaning)
            whole = judged(events, properties)
            for kind in ("ack", "nack", "expire", "seek"):
                for was, found in zip(whole, judged(events, properties, kind), strict=True):
                    broken = was.verdict is Verdict.VIOLATED
                    assert broken or found.verdict is not Verdict.VIOLATED, (fault.name, seed, kind)
                    assert not broken or found.verdict is not Verdict.OK, (fault.name, seed, kind)
                    before[kind] += broken
                    after[kind] += found.verdict is Verdict.VIOLATED
    for kind in before:
        assert 0 < after[kind] <= before[kind], (kind, before, after)


def test_what_rests_on_a_kind_that_a_property_does_not_read_is_not_ok() -> None:
    """P4 reads no `ack`, but whether a delivery is the first of its message was concluded from them."""
    (fault,) = [f for f in FAULTS if f.name == "forgets-flag"]
    meaning, events, _ = faulty(fault, 102)
    properties = [p for p in kept(meaning) if p.id == "P4"]
    assert [f.verdict for f in judged(events, properties)] == [Verdict.VIOLATED]
    assert [f.verdict for f in judged(events, properties, "ack")] == [Verdict.INCONCLUSIVE]


def given_twice() -> Recording:
    """Two consumers are given one message: right only if the first one requeued it."""
    r = Recording()
    for by in "ab":
        r.add("consume", "ok", q="q", ctag=f"tag-{by}", conn=by, ch=1, gen=1)
    r.publish("m0")
    r.deliver("m0", "a")
    r.deliver("m0", "b", redelivered=True)
    for ph in ("invoke", "ok"):
        r.add("qos", ph, conn="a", ch=1, gen=1, op=1, prefetch=1)
    return r


def verdicts(findings: Sequence[Finding]) -> dict[str, Verdict]:
    return {f.property: f.verdict for f in findings}


def test_what_a_kind_that_is_not_recorded_would_explain_is_no_violation_and_not_ok() -> None:
    r = given_twice()
    whole = verdicts(judged(r.events, BLACKBOX))
    without = verdicts(judged(r.events, BLACKBOX, "nack"))
    assert whole["P2"] is Verdict.VIOLATED
    assert without["P2"] is Verdict.INCONCLUSIVE
    assert (whole["P1"], without["P1"]) == (Verdict.OK, Verdict.INCONCLUSIVE)
    assert verdicts(judged(r.events, BLACKBOX, "commit"))["P1"] is Verdict.OK  # which reads none


@pytest.mark.parametrize(
    ("kind", "violates"), [("nack", True), ("expire", True), ("publish", False)]
)
def test_a_message_that_nobody_sent_does_not_depend_on_what_became_of_others(
    kind: str, violates: bool
) -> None:
    r = given_twice()
    r.deliver("m9", "b")
    found = verdicts(judged(r.events, BLACKBOX, kind))["P1"]
    assert (found is Verdict.VIOLATED) is violates


def written(path: Path, kinds: object, events: Sequence[Event] = ()) -> Path:
    """A recording whose header declares kinds of events as unrecorded."""
    header = Header(run="r", params={"unrecorded": kinds})
    write_history(path, events or given_twice().events, header)
    return path


def as_told(found: Sequence[Finding]) -> list[tuple[Any, ...]]:
    return [(f.property, f.verdict, f.n_tested, f.n_untestable, f.explanation) for f in found]


@pytest.mark.parametrize("kind", ["nack", "commit", "note"])
def test_all_engines_know_what_is_not_recorded(kind: str, tmp_path: Path) -> None:
    """And so does who reads a file and judges it himself; of nothing that was put in anything is written again."""
    path = written(tmp_path / "r.jsonl", [kind])
    local = as_told(audit_paths([path], properties=BLACKBOX).findings)
    ingest(Inline(), runs.plan([path]), tmp_path / "chunks")
    assert as_told(audit_chunks(Inline(), tmp_path / "chunks", BLACKBOX).findings) == local
    stream = RunState("r", BLACKBOX)
    stream.take([ArrivedFile(str(path), "", 0, 0)], 0, 0, True)
    assert as_told(stream.summary.findings) == local
    read = read_history(path)
    mine = audit(complete(read.events), BLACKBOX)
    assert [f.verdict for f in mine] == [x[1] for x in local]
    assert (verdicts(mine)["P2"] is Verdict.VIOLATED) is (kind != "nack")
    again = tmp_path / "again.jsonl"
    write_history(again, read.events, read.header)
    assert read_history(again) == msgspec.structs.replace(read, source=str(again))
    assert "gap" not in again.read_text()
    with_parquet = written(tmp_path / "r.parquet", [kind])
    assert [x[:2] for x in as_told(audit_paths([with_parquet], properties=BLACKBOX).findings)] == [
        x[:2] for x in local
    ]


def test_one_of_several_recorders_may_write_less(tmp_path: Path) -> None:
    """What its clients did may be missing; the others' lines are all there."""
    events = given_twice().events
    of_a = [e for e in events if e.conn == "a"]
    write_history(
        tmp_path / "a.jsonl", of_a, Header(run="r", rec="a", params={"unrecorded": ["nack"]})
    )
    others = [e for e in events if e.conn != "a"]
    write_history(tmp_path / "b.jsonl", others, Header(run="r", rec="b", params={"whole": True}))
    found = verdicts(audit_paths([tmp_path], properties=BLACKBOX).findings)
    assert found["P2"] is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("kinds", "why"),
    [
        (["nak"], "'nak' is no event that a client sees; known are ack, cancel, "),
        (["gap"], "'gap' is no event that a client sees"),
        ("nack", "is no list of names of events"),
        ([1], "is no list of names of events"),
    ],
)
def test_rejects_a_declaration_of_what_is_no_event(kinds: object, why: str, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps({"schema": "qh/1", "params": {"unrecorded": kinds}}))
    with pytest.raises(HistoryError) as error:
        read_history(path)
    assert str(error.value).startswith(f"{path}: line 1: field params.unrecorded: {why}")


def test_every_event_of_a_client_may_be_unrecorded() -> None:
    assert "gap" not in CLIENT_EVENTS
    assert set(KINDS) < CLIENT_EVENTS
    assert [missing_kinds(e) for e in with_gaps([Event(i=1, ev="ack")], ["nack"])] == [
        ["nack"],
        [],
        ["nack"],
    ]


def test_an_audit_says_in_one_sentence_what_was_left_open(tmp_path: Path) -> None:
    found = audit_paths([written(tmp_path / "r.jsonl", ["nack"])], properties=BLACKBOX).findings
    shown = [str(getattr(part, "renderable", "")) for part in counts("r", found)]
    (line,) = [line for line in shown if "not recorded" in line]
    assert line.startswith("P1, P2, P3, P4, P5,")
    assert line.endswith("it depends on events that are declared as not recorded: nack")


def hints(events: Sequence[Event]) -> dict[str, int]:
    return {hint.id: hint.count for hint in lint(events)}


def test_lint_suggests_the_declaration_where_nothing_is_ever_settled_or_brought_back() -> None:
    r = given_twice()
    assert hints(r.events).keys() > {"no-settlements", "no-requeues"}
    declared = hints(list(with_gaps(r.events, ["nack"])))
    assert declared["unrecorded"] == 1
    assert not declared.keys() & {"no-settlements", "no-requeues", "gaps"}
    settled: list[dict[str, Any]] = [{"ev": "nack"}, {"ev": "ack"}]
    for said in settled:
        more = Recording()
        more.events = list(r.events)
        more.settle(said["ev"], "m0")
        assert "no-settlements" not in hints(more.events)
