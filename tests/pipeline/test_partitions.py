"""A run divided by queues, connections or messages, each judged on its own, is judged as a whole run is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from seriatim_models.history import Event, table
from seriatim_models.history.complete import complete
from seriatim_models.pipeline.audit import chunks, columns, tasks
from seriatim_models.pipeline.audit.findings import RunStatistics, annotated, merged
from seriatim_models.pipeline.audit.inline import Inline
from seriatim_models.pipeline.audit.tasks import audit_chunks, judge
from seriatim_models.properties import PROPERTIES as WHITEBOX
from seriatim_models.properties.base import AnyProperty, Finding, Fold
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.blackbox.requeue import RequeueLateness
from seriatim_models.properties.blackbox.wakeups import NoLostWakeup
from seriatim_models.properties.whitebox.composites import COMPOSITES
from seriatim_workshop.bench.simulated_broker import SimulatedBroker

from ..properties.blackbox_histories import Seeded, build

PROPERTIES = [*BLACKBOX, RequeueLateness(within=0), NoLostWakeup(within=4)]
PROPERTY_OF_RUN = WHITEBOX["ES-5"]
APART = [p for p in PROPERTIES if p.partitioning != "run"]


def written(folder: Path, events: Sequence[Event], cut: int) -> chunks.Manifest:
    """The events as two chunk files."""
    made = [
        chunks.write_chunk(folder, f"{a}.parquet", columns.placed(table.columns(events[a:b]), a))
        for a, b in ((0, cut), (cut, len(events)))
        if b > a
    ]
    return chunks.Manifest([chunks.Unit("run", [], {"run": made}, [], [], [])])


def by_partitions(
    folder: Path, manifest: chunks.Manifest, properties: Sequence[AnyProperty]
) -> list[tuple[Finding, int]]:
    """The findings, and in how many parts each was judged."""
    parts = {p.partitioning: 3 for p in properties}
    made: dict[int, list[Finding]] = {}
    for partition in chunks.partitions(folder, manifest, parts):
        for n, finding in judged(partition, properties):
            made.setdefault(n, []).append(finding)
    return [(merged(of), len(of)) for _, of in sorted(made.items())]


def judged(
    partition: chunks.Partition, properties: Sequence[AnyProperty]
) -> Iterator[tuple[int, Finding]]:
    for record in judge(properties, partition):
        yield record.property, msgspec.msgpack.decode(record.payload, type=Finding)


@pytest.mark.parametrize(
    ("histories", "enough"), [(25, 2), pytest.param(250, 50, marks=pytest.mark.night)]
)
def test_any_history_divided_is_judged_as_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, histories: int, enough: int
) -> None:
    monkeypatch.setattr(chunks, "SLICE", 10)  # so that a few events are worth a task
    monkeypatch.setattr(chunks, "WHOLE", 10)
    parts: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    for seed in range(histories):
        choose = Seeded(seed)
        events = build(choose, 60)
        if not events:
            continue
        if seed % 4:  # where all that is moved names its queue, queues are judged apart
            events = [
                msgspec.structs.replace(e, q=e.q or choose.one(["q", "r"]))
                if e.ev in ("publish", "deliver", "get")
                else e
                for e in events
            ]
        manifest = written(tmp_path, events, choose.number(0, len(events)))
        for prop, (found, of) in zip(APART, by_partitions(tmp_path, manifest, APART), strict=True):
            assert found == prop.check(events), (seed, prop.id)
            parts[prop.partitioning] += of > 1
            verdicts[found.verdict] += of > 1
    assert min(parts[scope] for scope in {p.partitioning for p in APART}) > enough
    assert min(verdicts.values()) > enough


def waiting_beside_another_queue() -> list[Event]:
    """In `q` somebody waits beside a message, and nothing more happens there; in `r` things go on for a minute."""
    on = {"conn": "a", "ch": 1, "gen": 1, "ctag": "c"}
    rows = [
        {"ev": "consume", "ph": "ok", "q": "q", **on},
        {"ev": "publish", "ph": "ok", "q": "q", "m": "m", "pub": "p", "pseq": 1, "conn": "p", "ch": 1, "gen": 1},
    ]  # fmt: skip
    rows += [
        {"ev": "publish", "ph": "ok", "q": "r", "m": f"r{n}", "pub": "p", "pseq": n, "conn": "p", "ch": 1, "gen": 1}
        for n in range(60)
    ]  # fmt: skip
    return [Event(i=i, t=i * 10**9, lvl="api", **row) for i, row in enumerate(rows)]  # type: ignore[arg-type]  # fields


def test_a_queue_in_which_nothing_more_happens_ends_when_the_run_does(tmp_path: Path) -> None:
    """Found: judged apart, the lost wake-up of such a queue was left open."""
    events = waiting_beside_another_queue()
    expected = NoLostWakeup().check(events)
    assert expected.n_violations == 1
    assert chunks.bucket("q") != chunks.bucket("r")
    manifest = written(tmp_path, events, 3)
    whole = next(iter(chunks.partitions(tmp_path, manifest, {"queue": 1})))
    apart = [
        finding
        for bucket in (chunks.bucket("q"), chunks.bucket("r"))
        for _, finding in judged(
            chunks.Partition("run", "queue", whole.files, [bucket], ended=whole.ended),
            [NoLostWakeup()],
        )
    ]
    assert merged(apart) == expected


def test_a_settlement_of_all_that_a_channel_holds_concerns_every_queue(tmp_path: Path) -> None:
    """Found: judged apart, the credit of the channel's other queue seemed to be known after it (P6)."""
    on: dict[str, Any] = {"conn": "a", "ch": 1, "gen": 1, "lvl": "broker"}
    q: dict[str, Any] = {
        **on,
        "q": "q",
        "ctag": "c",
        "prefetch": 3,
        "scope": "consumer",
        "pub": "p",
    }
    gives = [Event(i=0, ev="deliver", m=f"m{n}", pseq=n, dtag=n, **q) for n in range(1, 6)]
    rows = [
        Event(i=0, ev="consume", q="q", ctag="c", **on),
        Event(i=0, ev="ack", q="r", dtag=0, multiple=True, ms=["x"], **on),
        *gives[:3],
        Event(i=0, ev="nack", q="q", dtag=2, requeue=True, ms=["m2"], **on),
        gives[3],
        Event(i=0, ev="ack", q="q", dtag=1, ms=["m1"], **on),
        gives[4],
    ]
    events = [msgspec.structs.replace(e, i=n, t=n) for n, e in enumerate(rows)]
    p6 = RequeueLateness()
    assert p6.check(events[:1] + events[2:]).n_tested == 2
    expected = p6.check(events)
    assert (expected.n_tested, expected.n_untestable) == (0, 2)
    assert chunks.bucket("q") != chunks.bucket("r")
    whole = next(iter(chunks.partitions(tmp_path, written(tmp_path, events, 4), {"queue": 1})))
    part = chunks.Partition("run", "queue", whole.files, [chunks.bucket("q")])
    [(_, found)] = judged(part, [p6])
    assert found == expected


@pytest.mark.parametrize(
    "lone",
    [
        {"ev": "deliver", "conn": "a", "ctag": "c", "m": "m", "q": "q"},
        {"ev": "rpc", "conn": "a", "proc": "w"},
    ],
)
def test_whoever_acts_without_a_channel_keeps_connections_together(
    tmp_path: Path, lone: dict[str, str]
) -> None:
    manifest = written(tmp_path, [Event(i=0, **lone)], 0)  # type: ignore[arg-type]  # fields
    assert manifest.units[0].chunks["run"][0].lone
    manifest = written(tmp_path, [Event(i=0, ev="conn_open", conn="a")], 0)
    assert not manifest.units[0].chunks["run"][0].lone


def test_a_chunk_in_which_nobody_names_a_connection_is_judged_once(tmp_path: Path) -> None:
    """Found: it was judged in every part of the connections, and its cases counted in each."""
    rows = [
        {"ev": "publish", "ph": ph, "q": "q", "m": f"m{n}"}
        for n in range(30)
        for ph in ("invoke", "ok")
    ]
    events = [Event(i=i, t=i, lvl="api", **row) for i, row in enumerate(rows)]  # type: ignore[arg-type]  # fields
    (answered,) = [p for p in BLACKBOX if p.id == "P21"]
    expected = answered.check(events)
    assert expected.n_tested == 30
    whole = next(
        iter(chunks.partitions(tmp_path, written(tmp_path, events, 30), {"connection": 1}))
    )
    parts = [msgspec.structs.replace(whole, part=k, parts=3) for k in range(3)]
    assert merged([f for p in parts for _, f in judged(p, [answered])]) == expected


def test_a_hot_queue_goes_first_and_alone() -> None:
    of = [chunks.Chunk("", 100, {"q001": 60, "q002": 10, "q003": 20, "control": 5, "q004": 5})]
    assert chunks._divided(of, 2) == [(["q001"], 65), (["q003", "q002", "q004"], 40)]


def test_what_is_read_together_is_small() -> None:
    rows = {"q001": 60, "q002": 10, "q003": 20, "q004": 5}
    assert chunks.lists(rows, 30) == [["q001"], ["q003", "q002"], ["q004"]]


def test_what_shows_a_loss_is_shown_whole(tmp_path: Path) -> None:
    """The look into the drained queue stands in a chunk that names no irregular message."""
    on = {"q": "q", "m": "m", "pub": "p", "pseq": 1, "conn": "p", "ch": 1, "gen": 1}
    events = [
        Event(i=0, t=0, ev="publish", ph="invoke", rec="r", **on),  # type: ignore[arg-type]  # fields
        Event(i=1, t=9, ev="publish", ph="ok", rec="r", **on),  # type: ignore[arg-type]  # fields
        Event(i=2, t=99, ev="note", ph="info", rec="r", q="q", args={"depth": 0}),
    ]
    manifest = written(tmp_path, events, 2)
    (conservation,) = [p for p in BLACKBOX if p.id == "P1"]
    ((found, _),) = by_partitions(tmp_path, manifest, [conservation])
    assert found == conservation.check(events)
    assert [e.t for e in found.witness] == [0, 9, 99]


def test_only_what_a_property_reads_becomes_an_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A property of a recorder inside a queue reads nothing of a client's recording."""
    events = list(complete(SimulatedBroker(4, 20).run()))
    inside = Event(i=len(events), ev="arrive", lvl="model", rec="r")
    (chunk,) = written(tmp_path, [*events, inside], len(events) + 1).units[0].chunks["run"]
    made: list[Event] = []
    real = table.events

    def counted(batch: pa.RecordBatch) -> list[Event]:
        made.extend(found := list(real(batch)))
        return found

    monkeypatch.setattr(table, "events", counted)
    fold = Fold(COMPOSITES, first=True)
    tasks.add_chunk(fold, str(tmp_path / chunk.path))
    assert [e.ev for e in made] == ["arrive"]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_chunk_files_are_judged_as_the_whole_run(
    workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With so many chunks that their summaries are combined in several rounds."""
    events = list(complete(SimulatedBroker(4, 400, fault="skips").run()))
    made = [
        chunks.write_chunk(
            tmp_path, f"{a}.parquet", columns.placed(table.columns(events[a : a + 40]), a)
        )
        for a in range(0, len(events), 40)
    ]
    statistics = RunStatistics("run", len(events))
    unit = chunks.Unit("run", [], {"run": made}, [], [], [statistics])
    chunks.write_manifest(tmp_path, chunks.Manifest([unit]))
    monkeypatch.setattr(tasks, "RANGES_EACH", 30)
    properties = [*PROPERTIES, PROPERTY_OF_RUN]
    audited = audit_chunks(Inline(workers), tmp_path, properties)
    assert audited.findings == [
        annotated(p, p.check(events), RunStatistics("run")) for p in properties
    ]
    assert {f.property for f in audited.findings if f.n_violations} >= {"P4", "P5"}
    assert [*audited.metrics] == ["run"]
    assert audited.runs == [statistics]
