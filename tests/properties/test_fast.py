"""The columnar evaluator finds what the row-based form finds, in every field, on any history."""

from __future__ import annotations

import errno
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from seriatim_models.conformance.profile_consistency import forms
from seriatim_models.conformance.profiles import PROFILES
from seriatim_models.history import (
    Event,
    Header,
    HistoryError,
    clean,
    read_history,
    write_history,
)
from seriatim_models.history.clean import CleanFiles, NotClean
from seriatim_models.history.complete import Completion, complete
from seriatim_models.history.event import UNKNOWN_GEN
from seriatim_models.pipeline import audit_paths
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.blackbox.strict import WINDOW, StrictOrder
from seriatim_models.properties.columnar import evaluator, second_look
from seriatim_models.properties.columnar.columns import Columns
from seriatim_models.properties.columnar.evaluator import Evaluation, judge, judge_files
from seriatim_models.properties.columnar.order_checks import first_delivery_order, strict_order
from seriatim_models.properties.columnar.second_look import SecondLook
from seriatim_workshop.bench.simulated_broker import FAULTS, SimulatedBroker

from .blackbox_histories import Recording, Seeded, any_history, build

DATA = Path(__file__).parent.parent / "data"


def row_based(events: list[Event]) -> list[Finding]:
    return [p.check(events) for p in BLACKBOX]


@settings(max_examples=60, deadline=None)
@given(events=any_history())
def test_the_columnar_evaluator_agrees_on_any_history(events: list[Event]) -> None:
    assert judge(events) == row_based(events)


@pytest.mark.parametrize("q", ["", "q"])
@pytest.mark.parametrize("ch", [None, 1])
@pytest.mark.parametrize("gen", [UNKNOWN_GEN, 1])
@pytest.mark.parametrize("by", [{"ctag": ["t", "u"]}, {"proc": ["w", "v"]}], ids=["tags", "procs"])
def test_the_columnar_evaluator_takes_apart_what_the_properties_do(
    q: str, ch: int | None, gen: int, by: dict[str, list[str]]
) -> None:
    """Two deliveries against the publisher's order, to two consumers or workers."""
    [(field, names)] = by.items()
    sent: dict[str, Any] = {"lvl": "api", "ev": "deliver", "q": q, "pub": "p", "redelivered": False}
    where: dict[str, Any] = {"conn": "c", "ch": ch, "gen": gen if ch else None}
    events = [
        Event(i=i, t=i, m=f"m{n}", pseq=n, **{**sent, **where, field: name})
        for i, (n, name) in enumerate(zip([2, 1], names, strict=True))
    ]
    assert judge(events) == row_based(events)
    [p4] = [f for f in judge(events) if f.property == "P4"]
    apart = ch is None or gen == UNKNOWN_GEN or (field == "ctag" and not q)
    assert p4.verdict is (Verdict.INCONCLUSIVE if apart else Verdict.VIOLATED)


@pytest.mark.parametrize("early", [False, True])
def test_what_was_settled_before_its_delivery_was_no_choice(early: bool) -> None:
    """Of a message that is settled nothing is known any more, so it is not said to have been available."""
    made: dict[str, Any] = {"q": "q", "pub": "p", "lvl": "api"}
    on: dict[str, Any] = {"conn": "c", "ch": 1, "gen": 1, "redelivered": False, **made}
    on["nolocal"] = False
    settled = Event(i=0, ev="ack", q="q", conn="c", ch=1, gen=1, dtag=2, ms=["b"], lvl="api")
    last = Event(i=0, ev="deliver", t_lo=6, m="b", dtag=2, pseq=1, **on)
    events = [
        Event(i=0, ev="publish", ph="invoke", m="a", pseq=0, **made),
        Event(i=0, ev="publish", ph="ok", m="a", pseq=0, **made),
        Event(i=0, ev="publish", ph="invoke", m="b", pseq=1, **made),
        Event(i=0, ev="publish", ph="ok", m="b", pseq=1, **made),
        Event(i=0, ev="deliver", t_lo=4, m="a", dtag=1, pseq=0, **on),
        *([settled, last] if early else [last, settled]),
    ]
    events = [msgspec.structs.replace(e, i=n, t=n) for n, e in enumerate(events)]
    assert judge(events) == row_based(events)
    [p5] = [f for f in judge(events) if f.property == "P5"]
    assert p5.n_tested == (0 if early else 1)


@pytest.mark.parametrize("ev", ["ack", "nack"])
@pytest.mark.parametrize("ph", ["fail", "info"])
def test_a_settlement_without_effect_that_names_no_message_is_looked_into(ev: str, ph: str) -> None:
    """It has the tag of one that did: whether that one took effect is open."""
    where: dict[str, Any] = {"lvl": "broker", "conn": "c", "ch": 1, "gen": 1}
    one: dict[str, Any] = {"q": "q", "m": "m", "pub": "p", "pseq": 0}
    events = [
        Event(i=1, t=1, ev="publish", lvl="broker", **one),
        Event(i=2, t=2, ev="deliver", dtag=1, redelivered=False, **where, **one),
        Event(i=3, t=3, ev=ev, dtag=1, requeue=False, ms=["m"], q="q", **where),
        Event(i=4, t=4, ev=ev, dtag=1, requeue=False, ph=ph, **where),
    ]
    assert judge(events) == row_based(events)
    assert judge(events[:-1]) == row_based(events[:-1])


@pytest.mark.parametrize("between", [0, WINDOW, WINDOW + 1])
@pytest.mark.parametrize("known", [False, True])
def test_only_acquisitions_whose_earliest_instant_is_known_fill_the_window(
    between: int, known: bool
) -> None:
    made = Recording()
    for n in range(between + 2):
        made.publish(f"m{n}")
    for n in range(between + 2):
        judged = known or n in (0, between + 1)
        made.deliver(f"m{n}", lo=len(made.events) if judged else None)
    [p5] = [p for p in BLACKBOX if type(p) is StrictOrder]
    columns = Columns()
    columns.feed(made.events)
    assert strict_order(columns) == p5.check(made.events)


def test_the_columnar_evaluator_agrees_on_many_histories_and_clears_often() -> None:
    """Those of the simulated broker are regular as real ones are; random events are irregular in every way."""
    cleared: Counter[str] = Counter()
    for seed in range(200):
        events = build(Seeded(seed), 40)
        assert judge(events) == row_based(events), seed
    for seed in range(33):
        fault = ("", *FAULTS)[seed % 11]
        events = list(
            complete(SimulatedBroker(seed, 60 + seed, prefetch=1 + seed % 5, fault=fault).run())
        )
        assert judge(events) == row_based(events), (seed, fault)
        if not fault:
            columns = Columns()
            columns.feed(events)
            assert not columns.irregular
            for check in (first_delivery_order, strict_order):
                cleared[check.__name__] += check(columns) is not None
    assert set(cleared.values()) == {3}


@pytest.mark.parametrize("name", ["lockstep", pytest.param("competing", marks=pytest.mark.slow)])
def test_the_columnar_evaluator_agrees_on_the_recordings(name: str, tmp_path: Path) -> None:
    recorded = read_history(DATA / f"rabbit-classic-{name}.jsonl.gz")
    events = list(complete(recorded.events))
    expected = row_based(events)
    assert judge(events) == expected
    for suffix in (".jsonl", ".jsonl.gz", ".jsonl.zst"):
        path = tmp_path / f"{name}{suffix}"
        write_history(path, recorded.events, recorded.header)
        found = judge_files([path])
        assert found.findings == expected
        assert found.events == len(events)
        assert found.nbytes < 120 * len(events)
        assert {"P1", "P2", "P3", "P4", "P5"} <= set(found.shortened)


@pytest.mark.parametrize("fault", ["", *FAULTS])
@pytest.mark.parametrize("why", ["", "long", "irregular"])
def test_columns_are_let_go_where_a_history_is_long_or_irregular(
    why: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held to the end, they took 180 bytes an event of what had long been settled."""
    events = list(complete(SimulatedBroker(7, 300, fault=fault).run()))
    held = 4000 if why == "long" else evaluator.COLUMNS_HELD
    monkeypatch.setattr(evaluator, "COLUMNS_HELD", held)
    if why == "irregular":
        events.append(Event(i=events[-1].i + 1, ev="purge", q="q"))
    with SecondLook() as again:
        evaluation = Evaluation(BLACKBOX, again)
        for begin in range(0, len(events), 10):
            evaluation.take(events[begin : begin + 10])
            assert evaluation.columns.nbytes <= held
        kept = evaluation.columns.n
        found = evaluation.finish()
    assert kept == (0 if why else len(events))
    assert found.findings == row_based(events)
    shortened = {"P4", "P5"} & set(found.shortened)
    if why:
        assert not shortened
    elif not fault:
        assert shortened == {"P4", "P5"}


@pytest.mark.parametrize("fault", ["", *FAULTS])
def test_the_columnar_evaluator_agrees_on_every_form_of_every_profile(fault: str) -> None:
    judges = forms(PROFILES[id] for id in PROFILES if id != "reference")
    assert len(judges) > len(BLACKBOX) + 4
    for seed in range(3):
        events = list(complete(SimulatedBroker(seed, 150, fault=fault).run()))
        assert judge(events, judges) == [p.check(events) for p in judges]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_with_a_fault_is_judged_as_the_row_based_form_judges_it(
    fault: str, tmp_path: Path
) -> None:
    path = tmp_path / "h.jsonl"
    write_history(path, SimulatedBroker(5, 200, fault=fault).run(), Header(run="r", lvl="api"))
    events = list(complete(read_history(path).events))
    assert judge_files([path]).findings == row_based(events)


@pytest.mark.parametrize("held", [1, second_look.IN_MEMORY])
def test_what_is_looked_at_again_is_neither_read_nor_completed_again(
    held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is held in memory or in a file."""
    path = tmp_path / "h.jsonl"
    write_history(path, SimulatedBroker(5, 200, fault="loses").run(), Header(run="r", lvl="api"))
    events = list(complete(read_history(path).events))
    completed: list[Event] = []

    class Counted(Completion):
        def __call__(self, event: Event) -> Event:
            completed.append(event)
            return super().__call__(event)

    monkeypatch.setattr(second_look, "IN_MEMORY", held)
    monkeypatch.setattr(clean, "Completion", Counted)
    found = judge_files([path])
    assert any(f.verdict is Verdict.VIOLATED for f in found.findings)
    assert found.findings == row_based(events)
    assert len(completed) == len(events)


def test_a_file_is_judged_row_by_row_where_there_is_no_room_for_a_second_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.jsonl"
    write_history(path, SimulatedBroker(5, 50).run(), Header(run="r", lvl="api"))
    expected = audit_paths([path]).findings

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(second_look.SecondLook, "keep", full)
    with pytest.raises(HistoryError, match="No space left"):
        judge_files([path])
    assert audit_paths([path]).findings == expected


@pytest.mark.parametrize(
    "line",
    [
        b"half a li",
        b'{"i":1,"ev":"publish","m":"a"}',
        b'{"i":9999,"ev":"publish"}',
        b'{"i":9999,"ev":"note","run":"other"}',
    ],
)
def test_rejects_a_file_that_is_not_clean_and_says_why(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    write_history(path, SimulatedBroker(5, 20).run(), Header(run="r", lvl="api"))
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(NotClean, match=r"h\.jsonl"):
        judge_files([path])


def test_a_line_without_end_is_not_read_by_columns(tmp_path: Path) -> None:
    """Each block copied all that was read before it: 128 MiB of zeros took more than a minute."""
    path = tmp_path / "a.jsonl"
    path.touch()
    os.truncate(path, 40 * 2**20)
    with pytest.raises(NotClean, match="a line is longer than any event"):
        list(CleanFiles().blocks(path))


@pytest.mark.parametrize("block", [1, 100, clean.BLOCK])
def test_what_falls_is_found_wherever_a_block_ends(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clean, "BLOCK", block)
    rising = [{"i": k, "t": k // 2, "ev": "note"} for k in range(6)]
    path = tmp_path / "h.jsonl"

    def read(lines: list[dict[str, Any]]) -> int:
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return sum(map(len, CleanFiles().blocks(path)))

    assert read(rising) == 6
    for at in range(1, 6):
        for spoilt in ({"i": at - 1}, {"t": -1}):
            lines = [dict(line) for line in rising]
            lines[at] |= spoilt
            with pytest.raises(NotClean, match="rise" if "i" in spoilt else "fall"):
                read(lines)
    for at in range(6):  # an index is no stamp
        partly = [line if k != at else {"i": k, "ev": "note"} for k, line in enumerate(rising)]
        with pytest.raises(NotClean, match="some lines have no stamp"):
            read(partly)
    for at in range(1, 6):  # whichever names it first
        clocks = [line | {"clk": "a" if k < at else "b"} for k, line in enumerate(rising)]
        with pytest.raises(NotClean, match="several clocks"):
            read(clocks)
    assert read([{"i": k, "ev": "note"} for k in range(6)]) == 6


def test_either_all_events_say_their_recorder_or_none_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recorders are compared: by whom a publisher's count is known, and who may have stopped."""
    path = tmp_path / "h.jsonl"
    bare, named = {"i": 1, "ev": "note"}, {"i": 2, "ev": "note", "rec": "a"}
    own_connection = {"i": 2, "ev": "publish", "m": "a", "ch": 1}

    def recorders(*lines: dict[str, Any]) -> list[str]:
        head = {"schema": "qh/1", "run": "r", "rec": "a"}
        path.write_text("".join(json.dumps(line) + "\n" for line in (head, *lines)))
        return [e.rec for block in CleanFiles().blocks(path) for e in block]

    assert recorders(bare, {**bare, "i": 2}) == ["", ""]
    for late in (named, own_connection):
        assert recorders(bare, late) == ["a", "a"]
        with monkeypatch.context() as patch:
            patch.setattr(clean, "BLOCK", 1)
            with pytest.raises(NotClean, match="earlier ones do not"):
                recorders(bare, late)


def test_a_recorder_that_only_some_events_name_is_no_second_one(tmp_path: Path) -> None:
    """What nobody published was ok by columns: another recorder, which had stopped, might have seen it sent."""
    of_channel = {"conn": "c", "ch": 1, "q": "q"}
    lines: list[dict[str, Any]] = [
        {"schema": "qh/1", "run": "r", "rec": "a", "lvl": "api"},
        {"ev": "conn_open", "conn": "c"},
        {"ev": "ch_open", "conn": "c", "ch": 1},
        {"ev": "consume", "ctag": "x", "autoack": True, **of_channel},
        {"ev": "publish", "m": "m0", "pub": "p", "pseq": 0, "rec": "a", **of_channel},
    ]
    for k in range(6):
        given = {"ev": "deliver", "ctag": "x", "dtag": k + 1, "redelivered": False, **of_channel}
        lines.append({**given, "m": f"m{k}", "pub": "p", "pseq": k})
    path = tmp_path / "h.jsonl"
    path.write_text(
        "".join(json.dumps({"i": n, "t": n, **e} if n else e) + "\n" for n, e in enumerate(lines))
    )
    events = list(complete(read_history(path).events))
    found = {f.property: (f.verdict, f.n_violations) for f in audit_paths([path]).findings}
    assert found["P1"] == (Verdict.VIOLATED, 5)
    assert found == {f.property: (f.verdict, f.n_violations) for f in row_based(events)}


def test_a_field_that_is_zero_makes_a_case() -> None:
    """A log's first position is 0."""
    read = Event(i=0, t=0, ev="get", ph="ok", q="q", m="m", pos=0, conn="c", ch=1, dtag=1)
    log = next(p for p in BLACKBOX if p.id == "P15")
    case = log.case_events
    assert case is not None
    assert evaluator._has_case(case, [read])
    assert not evaluator._has_case(case, [msgspec.structs.replace(read, pos=None)])
