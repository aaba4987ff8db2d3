"""The pre-filter and the row-based form together find what the row-based form finds alone, in every field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seriatim_models.history import Event, read_history, table
from seriatim_models.history.complete import complete
from seriatim_models.history.event import GAP
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.blackbox.conservation import Conservation, ConservationSummary
from seriatim_models.properties.blackbox.holding import OneHolder, RedeliveredFlag
from seriatim_models.properties.blackbox.lifecycle import (
    LifecycleProperty,
)
from seriatim_models.properties.blackbox.naming import Holder, holder
from seriatim_models.properties.columnar import prefilter as prefilter_module
from seriatim_models.properties.columnar.batches import (
    COLUMNS,
    NAMING,
    concerning,
    may_concern,
    rows_of_batch,
)
from seriatim_models.properties.columnar.columns import Names
from seriatim_models.properties.columnar.event_batch import EventBatch, texts
from seriatim_models.properties.columnar.prefilter import Prefilter, Prefiltered
from seriatim_models.properties.columnar.rows import (
    BatchRows,
    Rows,
    is_general,
    rows_of_events,
    text_hashes,
)
from seriatim_workshop.bench.simulated_broker import FAULTS, SimulatedBroker

from .blackbox_histories import Choose, Drawn, Recording, Seeded, any_history, build

DATA = Path(__file__).parent.parent / "data"

PROPERTIES: list[LifecycleProperty] = [
    Conservation(),
    Conservation(again=True),
    OneHolder(),
    RedeliveredFlag(),
]

Placed = list[tuple[int, Event]]
Make = Callable[[Placed, Names[Holder]], BatchRows]
Change = Callable[[Rows], Rows]


def as_it_is(rows: Rows) -> Rows:
    return rows


def few_bits(rows: Rows) -> Rows:
    """As if names were hashed to eight bits."""
    return rows._replace(message=rows.message & np.uint64(0xFF))


def one_bit(rows: Rows) -> Rows:
    return rows._replace(message=rows.message >> np.uint64(63))


def of_columns(placed: Placed, holders: Names[Holder]) -> BatchRows:
    return rows_of_batch(batch(placed), holders)


def batch(placed: Placed, names: Sequence[str] = COLUMNS) -> EventBatch:
    """The events as a chunk file has them: without columns that are empty, with their places."""
    held = table.columns([e for _, e in placed])
    held = {c: a for c, a in held.items() if a.null_count < len(a) and c in names}
    held["n"] = pa.array([n for n, _ in placed], pa.int64())
    return EventBatch(pa.RecordBatch.from_pydict(held))


def coded(placed: Placed, holders: Names[Holder]) -> BatchRows:
    """As read with codes for what repeats, and sorted by queue."""
    of = batch(sorted(placed, key=lambda p: (p[1].q, p[0]))).arrow
    held = {
        name: column.dictionary_encode() if pa.types.is_string(column.type) else column
        for name, column in zip(of.schema.names, of.columns, strict=True)
    }
    return rows_of_batch(EventBatch(pa.RecordBatch.from_pydict(held)), holders)


def places(events: Sequence[Event]) -> Placed:
    """With places that rise by more than one, as they do where other events stand between."""
    return [(3 * n + 7, e) for n, e in enumerate(events)]


def parts(events: Sequence[Event], cuts: Sequence[int]) -> list[Placed]:
    placed = places(events)
    edges = [0, *sorted(min(c, len(events)) for c in cuts), len(events)]
    return [placed[a:b] for a, b in pairwise(edges)]


def prefiltered(
    events: Sequence[Event],
    cuts: Sequence[int] = (),
    make: Make = rows_of_events,
    change: Change = as_it_is,
    groups: int = 1,
) -> tuple[Prefiltered, Placed]:
    """What pre-filters, one a group of messages, count in a history cut into batches, and the events left to judge."""
    out: Prefiltered | None = None
    for group in range(groups):
        prefilter = Prefilter()
        for part in parts(events, cuts):
            given = (
                make(part, prefilter.holders) if part else rows_of_events(part, prefilter.holders)
            )
            rows = change(given.rows)
            rows = rows.only(rows.message % np.uint64(groups) == group)
            prefilter.take(*given._replace(rows=rows))
        out = prefilter.finish() if out is None else out.joined(prefilter.finish())
    assert out is not None
    assert out.irregular.tolist() == sorted(set(out.irregular.tolist()))
    left: Placed = []
    for part in parts(events, cuts):
        chosen = set(out.about_irregular(change(rows_of_events(part, Names()).rows)).tolist())
        left += [(n, e) for n, e in part if is_general(e) or n in chosen]
    return out, left


def judged(events: Sequence[Event], *args: Any, **kwargs: Any) -> list[Finding]:
    found, left = prefiltered(events, *args, **kwargs)
    return [found.judge(p, left) for p in PROPERTIES]


def row_based(events: Sequence[Event]) -> list[Finding]:
    return [p.check(events) for p in PROPERTIES]


def nearly_regular(choose: Choose, size: int, strange: int) -> list[Event]:
    """Mostly what a right broker would do for a few messages; in `strange` of a hundred steps anything else."""
    lvl = choose.one(["api", "api", "broker", "model"])
    publishes = choose.one([True, True, True, False])
    flags = choose.one([True, True, False])
    autoack = choose.one([None, None, False, True])
    confirms = choose.one([True, True, False])
    polls = choose.one([True, False])
    faulty = choose.one([True, False, False])
    """Whether the system is ended and started again, and what was settled may come back."""
    chans = [{"conn": c, "ch": n, "gen": g} for c in ("a", "b") for n in (1, 2) for g in (None, 1)]
    by: list[dict[str, Any]] = [*chans, {"ctag": "alone"}, {"proc": "worker"}]
    out: list[Event] = []
    state: dict[str, str] = {}
    home: dict[str, str] = {}
    held_by: dict[str, dict[str, Any]] = {}
    seen: set[str] = set()

    def add(ev: str, ph: str = "", **fields: Any) -> None:
        out.append(Event(i=len(out), t=len(out), ev=ev, ph=ph, lvl=lvl, **fields))

    def publish(m: str, ph: str) -> None:
        if publishes:
            add("publish", ph, m=m, q=home[m])

    def anything(m: str) -> None:
        who = choose.one(by)
        q = choose.one(["q", "r", "", "two\nlines"])
        flag = choose.one([None, False, True])
        match choose.number(0, 16):
            case 0:
                add(GAP)
            case 1:
                add("recover", choose.one(["", "invoke"]), **who)
            case 2:
                add("expire", m=m, q=q, requeue=choose.one([None, True]))
            case 3:
                add("return", m=m, q=q)
            case 4:
                add("publish", choose.one(["", "invoke", "ok", "fail", "info"]), m=m, q=q)
            case 5 | 6:
                ev, ph = choose.one([("deliver", ""), ("get", "ok"), ("get", "invoke")])
                add(ev, ph, m=choose.one([m, ""]), q=q, redelivered=flag, **who)
            case 7 | 8:
                ms = choose.one([None, [], [m], [m, m], [m, "m0"], ["strange\nm1"]])
                ev = choose.one(["ack", "nack", "reject"])
                ph = choose.one(["", "invoke", "ok"])
                op = choose.one([None, 4])
                add(ev, ph, q=q, ms=ms, op=op, requeue=flag, **who)
            case 9:
                add(
                    choose.one(["ch_close", "conn_close", "conn_drop"]),
                    choose.one(["", "invoke", "info"]),
                    **who,
                )
            case 10:
                add(choose.one(["consume", "cancel"]), "ok", q=q, autoack=autoack, **who)
            case 11:
                add("note", "info", q=q, args={"depth": choose.number(0, 1)})
            case 12:
                ev = choose.one(["declare", "delete", "purge", "qos", "ch_open"])
                add(ev, q=q, args={"x-max-length": 3} if ev == "declare" else {})
            case 13:
                add("deliver", m=f"a line\n{m}", q=q, redelivered=flag, **who)
            case 14 if state.get(m) in ("held", "settled"):
                # Given out again too early, and all is well from there on.
                held_by[m] = who
                again = True if flags else None
                add("deliver", m=m, q=home[m], redelivered=again, autoack=autoack, **who)
                state[m] = "held"
            case 15 if state.get(m) == "held":  # by somebody else than its holder
                requeue = choose.one([None, True])
                add(
                    "nack" if requeue else "ack",
                    "invoke",
                    ms=[m],
                    q=home[m],
                    requeue=requeue,
                    **who,
                )
                state[m] = "back" if requeue else "settled"
            case _:
                pass

    for q in ("q", "r") if faulty else ():
        kept = {"survives": ["kill"], "settled": choose.one([["kill"], ["kill"], []])}
        add("declare", q=q, args=kept)
    for _ in range(size):
        m = f"m{choose.number(0, 5)}"
        if faulty and choose.number(0, 9) == 0:
            for ph in ("invoke", "ok"):
                add(GAP, ph, args={"fault": "kill"})
            if state.get(m) in ("settled", "over"):
                state[m] = "back"
        if choose.number(1, 100) <= strange:
            anything(m)
            continue
        match state.get(m, "new"):
            case "new":
                home[m] = choose.one(["q", "q", "r"])
                publish(m, "invoke")
                state[m] = "sent"
            case "sent" | "back":
                held_by[m] = choose.one(by)
                flag = (m in seen) if flags else None
                if flags and choose.number(1, 100) <= strange:
                    flag = not flag
                what = {"q": home[m], "autoack": autoack, **held_by[m]}
                if polls and held_by[m].get("ch"):
                    what["op"] = choose.one([len(out), None])
                    add("get", "invoke", **what)
                    add("get", "ok", m=m, redelivered=flag, **what)
                else:
                    add("deliver", m=m, redelivered=flag, **what)
                seen.add(m)
                state[m] = "held"
            case "held":
                ev = choose.one(["ack", "ack", "nack", "reject", "ch_close", "conn_close"])
                if ev in ("ch_close", "conn_close"):
                    add(ev, "invoke", **held_by[m])
                    state[m] = "back"
                    continue
                requeue = None if ev == "ack" else choose.one([True, True, False])
                what = {"ms": [m], "q": home[m], "requeue": requeue, **held_by[m]}
                op = len(out) if faulty else None
                add(ev, "invoke", op=op, **what)
                if faulty and choose.number(0, 4):
                    add(ev, "ok", op=op, **what)
                state[m] = "back" if requeue else "settled"
            case "settled":
                if confirms:
                    publish(m, "ok")
                state[m] = "over"
        if confirms and m in home and choose.number(0, 3) == 0 and state[m] != "over":
            publish(m, "ok")
    add("note", "info", q="q", args={"depth": 0})
    return out


@st.composite
def nearly(draw: st.DrawFn) -> list[Event]:
    return nearly_regular(
        Drawn(draw), draw(st.integers(0, 30)), draw(st.sampled_from([0, 0, 5, 20, 60]))
    )


MAKES = [rows_of_events, of_columns, coded]
CUTS = st.lists(st.integers(0, 30), max_size=3)


@settings(max_examples=150, deadline=None)
@given(events=st.one_of(nearly(), any_history()), cuts=CUTS, make=st.sampled_from(MAKES))
def test_any_history_is_judged_as_the_row_based_form_judges_it(
    events: list[Event], cuts: list[int], make: Make
) -> None:
    assert judged(events, cuts, make) == row_based(events)


@settings(max_examples=60, deadline=None)
@given(
    events=st.one_of(nearly(), any_history()),
    cuts=CUTS,
    change=st.sampled_from([few_bits, one_bit]),
    groups=st.integers(1, 3),
)
def test_messages_of_one_hash_are_irregular_and_not_cleared(
    events: list[Event], cuts: list[int], change: Change, groups: int
) -> None:
    assert judged(events, cuts, change=change, groups=groups) == row_based(events)


@pytest.mark.parametrize(
    ("histories", "least"),
    [
        pytest.param(600, 1, marks=pytest.mark.slow),
        pytest.param(1200, 2, marks=pytest.mark.night),
        pytest.param(4800, 10, marks=pytest.mark.night),
    ],
)
def test_many_histories_of_every_kind(histories: int, least: int) -> None:
    """Breadth without shrinking; and everything that can become of a message is met."""
    met: Counter[str] = Counter()
    for seed in range(histories):
        choose = Seeded(seed)
        kind = seed % 5
        strange = (0, 0, 3, 6, 20)[kind]
        events = (
            nearly_regular(choose, choose.number(0, 70), strange) if kind else build(choose, 40)
        )
        cuts = [choose.number(0, len(events)) for _ in range(choose.number(0, 4))]
        change = choose.one([as_it_is, as_it_is, few_bits, one_bit])
        make = choose.one(MAKES)
        found, left = prefiltered(events, cuts, make, change, choose.one([1, 1, 2]))
        for prop in PROPERTIES:
            finding = found.judge(prop, left)
            assert finding == prop.check(events), (seed, prop.id)
            met[f"{prop.id} {finding.verdict}"] += 1
            tested, untestable = prop.regular_cases(found.counted)
            met[f"{prop.id} tested"] += tested > 0
            met[f"{prop.id} untestable"] += untestable > 0
            met[f"{prop.id} regular though violated"] += (
                finding.verdict is Verdict.VIOLATED and tested > 0
            )
        met["all regular"] += found.counted.acquisitions > 0 and not len(found.irregular)
        met["some irregular"] += len(found.irregular) > 0
    assert (
        met.pop("P2 untestable") == 0
    )  # only lost lines leave it open, and such messages are irregular
    expected = {f"{id} {v}" for id in ("P1", "P2", "P3") for v in Verdict}
    expected |= {f"{id} regular though violated" for id in ("P1", "P2", "P3")}
    assert expected <= {*met}
    assert min(met.values()) >= least, met


@pytest.mark.parametrize("fault", ["", *FAULTS])
@pytest.mark.parametrize("closes", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_brokers_faults_are_found_and_most_messages_are_regular(
    fault: str, closes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefilter_module, "BATCH", 11)
    harmless = fault in ("", "tail", "late", "skips", "overruns")  # to what P1 to P3 promise
    for seed in range(4):
        broker = SimulatedBroker(seed, 150, prefetch=1 + seed, fault=fault, closes=closes)
        events = list(complete(broker.run()))
        cuts = list(range(0, len(events), 97))
        expected = row_based(events)
        for make in MAKES:
            assert judged(events, cuts, make) == expected
        found, left = prefiltered(events, cuts)
        assert len(found.irregular) <= (0 if harmless else 75)
        assert {e.ev for _, e in left if not is_general(e)} <= {
            "publish",
            "deliver",
            "ack",
            "nack",
            "reject",
        }
        assert (not len(found.irregular)) == all(is_general(e) for _, e in left)


@pytest.mark.parametrize(
    ("name", "irregular"), [("lockstep", 0), pytest.param("competing", 4, marks=pytest.mark.slow)]
)
def test_of_a_real_brokers_messages_hardly_any_are_irregular(name: str, irregular: int) -> None:
    """Four were on their way to a consumer that was cancelled; the pre-filter knows channels and connections only."""
    events = list(complete(read_history(DATA / f"rabbit-classic-{name}.jsonl.gz").events))
    for make in MAKES:
        found, left = prefiltered(events, range(0, len(events), 2000), make)
        assert len(found.irregular) == irregular
        assert [found.judge(p, left) for p in PROPERTIES] == row_based(events)


def test_a_message_too_often_acquired_for_its_counts_is_irregular(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events = list(complete(SimulatedBroker(1, 100, closes=False).run()))
    assert not len(prefiltered(events)[0].irregular)
    monkeypatch.setattr(prefilter_module, "MOST", 1)
    for cuts in ((), range(0, len(events), 50)):
        assert len(prefiltered(events, cuts)[0].irregular) > 5
        assert judged(events, cuts) == row_based(events)


def one_after_another(messages: int) -> list[Event]:
    """Published, delivered, settled, confirmed, over and over."""
    out: list[Event] = []

    def add(ev: str, ph: str, **fields: Any) -> None:
        out.append(Event(i=len(out), ev=ev, ph=ph, q="q", lvl="api", conn="c", ch=1, **fields))

    for n in range(messages):
        add("publish", "invoke", m=f"m{n}")
        add("deliver", "", m=f"m{n}", redelivered=False)
        add("ack", "invoke", ms=[f"m{n}"])
        if n >= 50:
            add("publish", "ok", m=f"m{n - 50}")
    return out


def test_what_is_done_with_takes_sixteen_bytes() -> None:
    events = one_after_another(6000)
    prefilter = Prefilter()
    for part in parts(events, range(0, len(events), 1000)):
        given = rows_of_events(part, prefilter.holders)
        prefilter.take(*given)
    assert prefilter.nbytes < 16.1 * 6000
    found = prefilter.finish()
    assert not len(found.irregular)
    assert [p.regular_cases(found.counted)[0] for p in PROPERTIES] == [
        6000 + 5950,
        6000 + 5950,
        6000,
        6000,
    ]


@pytest.mark.parametrize("make", [rows_of_events, of_columns, coded])
def test_what_is_settled_by_handing_it_out_is_regular(make: Make) -> None:
    """Once, and to whoever gets it at last; a second time is a duplicate."""
    r = Recording()
    for n in range(6):
        r.publish(f"m{n}")
        if n % 2:
            r.deliver(f"m{n}", "b")
            r.settle("nack", f"m{n}", by="b", requeue=True)
        r.deliver(f"m{n}", autoack=True, redelivered=n % 2 > 0)
    for cuts in ((), (4, 9), range(len(r.events))):
        found, _ = prefiltered(r.events, cuts, make)
        assert not len(found.irregular)
        assert found.counted.acquisitions == 9
        assert found.counted.settled_at_once == 6
        assert judged(r.events, cuts, make) == row_based(r.events)
    assert row_based(r.events)[2].n_tested == 3
    r.deliver("m0", "b", autoack=True, redelivered=True)
    again, _ = prefiltered(r.events, (), make)
    assert again.irregular.tolist() == text_hashes(["m0"])[0].tolist()
    assert judged(r.events, (), make) == row_based(r.events)
    assert row_based(r.events)[0].verdict is Verdict.VIOLATED


@pytest.mark.parametrize("ev", ["deliver", "ack", "publish", "return"])
def test_who_comes_back_is_irregular_and_no_longer_counted(ev: str) -> None:
    events = one_after_another(300)
    back = {"m": "m17"} if ev != "ack" else {"ms": ["m17"]}
    more = Event(i=len(events), ev=ev, q="q", lvl="api", conn="c", ch=1, redelivered=True, **back)
    for cuts in ((), (500,), (20, 21, 500)):
        found, left = prefiltered([*events, more], cuts)
        assert found.irregular.tolist() == text_hashes(["m17"])[0].tolist()
        assert found.counted.acquisitions == 299
        assert [e.ev for _, e in left] == ["publish", "deliver", "ack", "publish", ev]
        assert judged([*events, more], cuts) == row_based([*events, more])


@pytest.mark.parametrize("traffic", [False, True])
def test_traffic_of_regular_messages_says_whether_a_queue_was_drained(traffic: bool) -> None:
    r = Recording()
    r.publish("m0")  # and nobody ever gets it
    r.publish("m1")
    r.deliver("m1")
    if not traffic:
        r.settle("ack", "m1")
    r.add("note", q="q", args={"depth": 0})
    if traffic:
        r.settle("ack", "m1")
    r.add("note", q="another", args={"depth": 0})
    r.end("conn_close", "a")
    found, _ = prefiltered(r.events)
    assert found.irregular.tolist() == text_hashes(["m0"])[0].tolist()
    assert judged(r.events) == row_based(r.events)
    lost = judged(r.events)[0].verdict
    assert lost is (Verdict.OK if traffic else Verdict.VIOLATED)


@pytest.mark.parametrize("end", ["ch_close", "conn_close"])
def test_what_a_client_held_that_comes_and_goes_is_regular(end: str) -> None:
    r = Recording()
    r.publish("m0")
    for gen in (1, 1, 2, 2):  # recorders differ in whether they count a connection's channels on
        r.deliver("m0", gen=gen, redelivered=len(r.events) > 2)
        r.add(end, "invoke", conn="a", **({"ch": 1, "gen": gen} if end == "ch_close" else {}))
    r.deliver("m0", "b", redelivered=True)
    r.settle("ack", "m0", by="b")
    for cuts in ((), (4, 6), range(len(r.events))):
        found, _ = prefiltered(r.events, cuts)
        assert not len(found.irregular)
        assert judged(r.events, cuts) == row_based(r.events)


@pytest.mark.parametrize("make", MAKES)
def test_irregular_is_what_is_settled_in_no_queue(make: Make) -> None:
    r = Recording()
    r.publish("m0", q="")
    r.deliver("m0", q="")
    r.settle("ack", "m0")
    nowhere = [msgspec.structs.replace(e, q="") for e in r.events]
    found, _ = prefiltered(nowhere, (), make)
    assert found.irregular.tolist() == text_hashes(["m0"])[0].tolist()
    assert judged(nowhere, (), make) == row_based(nowhere)


@pytest.mark.parametrize("make", MAKES)
def test_a_name_of_several_lines_is_a_name(make: Make) -> None:
    r = Recording()
    r.publish("m0")
    r.deliver("a line\nm0")
    found, _ = prefiltered(r.events, (), make)
    assert found.irregular.tolist() == text_hashes(["a line\nm0"])[0].tolist()
    assert judged(r.events, (), make) == row_based(r.events)
    assert judged(r.events, (), make)[0].verdict is Verdict.VIOLATED


def test_only_what_is_counted_in_the_same_way_fits() -> None:
    class Other(OneHolder):
        pass

    assert all(p.prefiltered for p in PROPERTIES)
    assert not Other().prefiltered


@settings(max_examples=60, deadline=None)
@given(events=st.one_of(nearly(), any_history()))
def test_both_makers_of_rows_make_the_same(events: list[Event]) -> None:
    if events:
        same_rows(events)


@pytest.mark.slow
def test_both_makers_of_rows_make_the_same_of_many_histories() -> None:
    for seed in range(300):
        same_rows(nearly_regular(Seeded(seed), 1 + seed % 40, 60))


def same_rows(events: list[Event]) -> None:
    placed = places(events)
    names: Names[Holder] = Names()
    wanted = rows_of_events(placed, names)
    for make in (of_columns, coded):
        mine: Names[Holder] = Names()
        given = make(placed, mine)
        # Any: arrays of several types
        pairs: list[tuple[str, Any, Any]] = list(
            zip(Rows._fields, given.rows, wanted.rows, strict=True)
        )
        for name, a, b in pairs:
            if name == "by":  # numbers, in an order of their own
                a, b = (
                    np.array([*map(str, table), ""])[rows.by] if len(table) else rows.by
                    for table, rows in ((mine, given.rows), (names, wanted.rows))
                )
                acts = (wanted.rows.kind >= 4) & (wanted.rows.kind <= 6)
                a, b = a[acts], b[acts]
            assert a.dtype == b.dtype
            assert a.tolist() == b.tolist(), name
        assert given.queues == wanted.queues
        assert [*map(_poll, given.polls)] == [*map(_poll, wanted.polls)]
        assert [n for n, _ in given.general] == [n for n, _ in wanted.general]
        assert [e.ev for _, e in given.general] == [e.ev for _, e in wanted.general]


@settings(max_examples=100, deadline=None)
@given(events=st.one_of(nearly(), any_history()), every=st.integers(1, 5), of=st.integers(0, 4))
def test_a_second_look_has_the_events_that_all_rows_would_give(
    events: list[Event], every: int, of: int
) -> None:
    placed = places([*events, Event(i=10**6, ev="note")])
    rows = rows_of_events(placed, Names()).rows
    messages = np.unique(rows.message)[of % every :: every]
    about = set(rows.n[np.isin(rows.message, messages)].tolist())
    wanted = [n for n, e in placed if n in about or is_general(e)]
    assert concerning(batch(placed), messages).column("n").to_pylist() == wanted
    looked = batch(placed, NAMING)
    some = may_concern(looked, messages)
    assert {*wanted} <= {*looked.column("n").filter(pa.array(some)).to_pylist()}


def _poll(placed: tuple[int, Event]) -> tuple[object, ...]:
    place, event = placed
    return place, event.q, holder(event), event.ph, event.op, event.lvl, event.autoack


def test_a_batch_may_be_empty_or_without_most_columns() -> None:
    whole = batch(places([Event(i=0, ev="publish", m="a", q="q"), Event(i=1, ev="note")])).arrow
    for rows, few in ((whole, 1), (whole.select(["n", "i", "ev"]), 1), (whole.slice(0, 0), 0)):
        given = rows_of_batch(EventBatch(rows), Names())
        assert len(given.rows.n) == len(rows) - len(given.general)
        assert len(given.general) == few


TEXTS = st.text(max_size=40) | st.text(alphabet="ab", min_size=200, max_size=300)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(names=st.lists(TEXTS, min_size=1, max_size=20), data=st.data())
def test_a_name_has_one_hash_wherever_it_stands(names: list[str], data: st.DataObject) -> None:
    first, second = text_hashes(names)
    assert texts(pa.array(names)).first.tolist() == first.tolist()
    a, b = sorted(data.draw(st.tuples(*[st.integers(0, len(names))] * 2)))
    for column in (
        pa.array([*names, None]),
        pa.array(names, pa.large_string()),
        pa.array(names).dictionary_encode(),
    ):
        assert texts(column).first[a:b].tolist() == first[a:b].tolist()
        assert texts(column[a:b]).first.tolist() == first[a:b].tolist()
    assert len({*first.tolist()}) == len({*second.tolist()}) == len({*names})
    assert not {*first.tolist()} & {*second.tolist()}


def test_a_name_that_is_null_is_empty_whatever_lies_beneath() -> None:
    _, offsets, data = pa.array(["one", "two"]).buffers()
    column = pa.StringArray.from_buffers(2, offsets, data, pa.py_buffer(b"\x02"), 1)
    assert column.to_pylist() == [None, "two"]
    assert texts(column).first.tolist() == text_hashes(["", "two"])[0].tolist()


def test_hashes_are_the_same_in_every_process() -> None:
    assert text_hashes(["", "q0:17", "é" * 9])[0].tolist() == PINNED


PINNED = [11286133854226296554, 11442102357515470422, 11409762274539354883]


@pytest.mark.parametrize("goes_on", [True, False])
@pytest.mark.parametrize("make", [rows_of_events, of_columns, coded])
def test_columns_know_which_recorders_went_on(make: Make, goes_on: bool) -> None:
    """By lines about all messages, not only about those that are judged by rows."""
    r = Recording()
    for n in range(3):
        for ph in ("invoke", "ok"):
            r.add("publish", ph, m=f"m{n}", q="q", conn="p", ch=1, gen=1, op=n, rec="first")
    for n in (0, 7):
        r.add("deliver", m=f"m{n}", q="q", conn="c", ch=1, gen=1, dtag=n + 1, rec="second")
    if goes_on:
        r.add("publish", "invoke", m="m9", q="q", conn="p", ch=1, gen=1, op=9, rec="first")
    events = list(complete(r.events))
    found = Conservation().check(events)
    assert (found.verdict is Verdict.VIOLATED) is goes_on
    for groups in (1, 3):
        columns, placed = prefiltered(events, (4,), make, groups=groups)
        assert columns.judge(Conservation(), placed) == found


class _Unasked(dict[Holder, str]):
    """Nobody may go through it."""

    def items(self) -> Any:  # Any: it gives nothing
        raise AssertionError


def test_who_took_is_asked_only_where_a_recorder_stopped() -> None:
    """A broker's recording has a look at each queue, and somebody who takes from each: that was queues squared."""
    look = Event(i=9, t=9, ev="note", q="q", rec="b", args={"depth": 0})
    summary = Conservation().map([msgspec.structs.replace(look, i=8, t=8), look])
    assert isinstance(summary, ConservationSummary)
    summary.traffic.recorded_by = _Unasked()
    assert Conservation().drained(summary, "q")
    summary.recorders.of["c"] = 5
    with pytest.raises(AssertionError):
        Conservation().drained(summary, "q")
