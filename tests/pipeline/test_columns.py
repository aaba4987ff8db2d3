"""What is taken in by columns is what reading it row by row gives: the same events, the same lines rejected."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seriatim_models.history import Event, HistoryError, table, write_history
from seriatim_models.history.header import Header, header_object
from seriatim_models.pipeline import audit_paths
from seriatim_models.pipeline.audit import chunks, columns
from seriatim_models.pipeline.audit.ingest import ingest
from seriatim_models.pipeline.audit.inline import Inline
from seriatim_models.pipeline.audit.runs import plan
from seriatim_models.pipeline.audit.tasks import audit_chunks
from seriatim_models.pipeline.synthetic.generate import generate
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.columnar.event_batch import EventBatch
from seriatim_models.properties.columnar.lines import RegularLines

ON: dict[str, Any] = {"lvl": "broker", "q": "q"}
BY: dict[str, Any] = {"conn": "c", "ch": 1, "gen": 1, **ON}
EVENTS = [
    Event(i=0, t=1, ev="publish", m="a", pub="p", pseq=0, x={"more": "1"}, **ON),
    Event(i=1, t=2, ev="publish", m="b", pub="p", pseq=1, x={"more": "2"}, **ON),
    Event(i=2, t=3, ev="deliver", m="a", dtag=1, op=1, redelivered=False, **BY),
    Event(i=3, t=4, ev="deliver", m="b", dtag=2, op=2, redelivered=False, **BY),
    Event(i=4, t=5, ev="ack", ms=["a"], dtag=1, op=3, **BY),
    Event(i=5, t=6, ev="ack", ms=["b"], dtag=2, op=4, **BY),
    Event(i=6, t=7, ev="note", args={"depth": 0}, **ON),
]

Spoil = Callable[[dict[str, pa.Array]], None]


def _values(name: str, at: int, value: Any) -> Spoil:  # Any: a value of any column
    def spoil(held: dict[str, pa.Array]) -> None:
        values = held[name].to_pylist()
        values[at] = value
        held[name] = pa.array(values, held[name].type)

    return spoil


def _typed(name: str, kind: pa.DataType, convert: Callable[[Any], Any]) -> Spoil:
    def spoil(held: dict[str, pa.Array]) -> None:
        values = [None if v is None else convert(v) for v in held[name].to_pylist()]
        held[name] = pa.array(values, kind)

    return spoil


def _no_utf8(held: dict[str, pa.Array]) -> None:
    raw = [b"\xff" if v == "a" else v and v.encode() for v in held["m"].to_pylist()]
    held["m"] = pa.array(raw, pa.binary()).view(pa.string())


def _falls(name: str) -> Spoil:
    """From the greatest number to the least: their difference does not fit into 64 bits."""

    def spoil(held: dict[str, pa.Array]) -> None:
        values = held[name].to_pylist()
        held[name] = pa.array([*values[:3], 2**63 - 1, *range(-(2**63), -(2**63) + 3)])

    return spoil


def _closes_nothing(held: dict[str, pa.Array]) -> None:
    for name, value in (("ev", "ch_close"), ("conn", ""), ("ch", 1), ("args", None)):
        _values(name, 6, value)(held)


SPOILT: dict[str, Spoil] = {
    "args that are no JSON": _values("args", 6, '{"depth"'),
    "args that are no object": _values("args", 6, "[0]"),
    "args that are empty": _values("args", 6, ""),
    "args nested too deep": _values("args", 6, '{"depth":' + "[" * 70 + "]" * 70 + "}"),
    "args with a large number": _values("args", 6, '{"depth":' + "9" * 30 + "}"),
    "a publish without its message": _values("m", 0, ""),
    "a connection without a name": _closes_nothing,
    "a message without a name": _values("ms", 4, ["a", None]),
    "an unknown field without a text": _values("x", 1, [("more", None)]),
    "times as times": _typed("t", pa.timestamp("us"), lambda t: t),
    "tags as flags": _typed("dtag", pa.bool_(), bool),
    "indices as texts": _typed("i", pa.string(), str),
    "flags as numbers": _typed("redelivered", pa.int64(), int),
    "texts that are no UTF-8": _no_utf8,
}


def written(path: Path, spoil: Spoil | None = None) -> Path:
    held = table.columns(EVENTS)
    if spoil is not None:
        spoil(held)
    head = header_object(Header(run="r", params={"complete": True}))
    rows = pa.table(held).replace_schema_metadata({b"qh": json.dumps(head).encode()})
    pq.write_table(rows, path)
    return path


def judged(path: Path) -> object:
    try:
        report = audit_paths([path])
    except HistoryError as error:
        return str(error)
    return report.findings, report.quarantine, report.statistics, report.runs


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT.keys())
def test_what_no_event_holds_is_read_row_by_row(
    spoil: Spoil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "r.parquet", spoil)
    found = judged(path)
    monkeypatch.setattr(columns, "header", lambda path: None)
    assert found == judged(path)


@pytest.mark.parametrize("name", ["i", "t"])
def test_rejects_what_falls_further_than_differences_reach(name: str, tmp_path: Path) -> None:
    path = str(written(tmp_path / "r.parquet", _falls(name)))
    head = columns.header(path)
    assert head is not None
    with pytest.raises(columns.RowByRow):
        list(columns.following(path, head, "r", (-1, 0), 100))


@pytest.mark.parametrize("length", [1, 2, 100])
def test_where_some_rows_have_no_stamp_all_are_read_row_by_row(
    length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a row has its place in time from those beside it: P14 had counted 24 cases instead of 9."""
    path = written(tmp_path / "r.parquet", _values("t", 3, None))
    head = columns.header(str(path))
    assert head is not None
    with pytest.raises(columns.RowByRow, match="some have none"):
        list(columns.following(str(path), head, "r", (-1, 0), length))
    rows = pq.read_table(path)
    pq.write_table(rows, path, row_group_size=length)
    monkeypatch.setattr(columns, "PIECE", length)
    (unit,) = ingest(Inline(), plan([path]), tmp_path / "chunks").units
    assert unit.carry, "pieces would leave none"
    bare = rows.set_column(rows.schema.get_field_index("t"), "t", pa.nulls(len(rows), pa.int64()))
    pq.write_table(bare, path, row_group_size=length)
    (unit,) = ingest(Inline(), plan([path]), tmp_path / "chunks").units
    assert not unit.carry
    assert list(columns.following(str(path), head, "r", (-1, 0), length))


def test_a_part_without_rows_is_counted_like_any_other(tmp_path: Path) -> None:
    parts = [written(tmp_path / "a.parquet"), tmp_path / "b.parquet"]
    write_history(parts[1], [], Header(run="r", params={"complete": True}))
    (unit,) = ingest(Inline(), plan(parts), tmp_path / "chunks").units
    assert sorted((f.source, f.events) for f in unit.files) == [
        (str(parts[0]), len(EVENTS)),
        (str(parts[1]), 0),
    ]


def test_columns_of_other_layouts_are_taken_as_they_are(tmp_path: Path) -> None:
    def wide(held: dict[str, pa.Array]) -> None:
        for name in ("ev", "m"):
            held[name] = held[name].cast(pa.large_string())
        held["q"] = held["q"].dictionary_encode()
        held["ms"] = held["ms"].cast(pa.large_list(pa.large_string()))
        held["dtag"] = held["dtag"].cast(pa.int16())
        held["clk"] = pa.nulls(len(held["i"]))

    plain, other = written(tmp_path / "r.parquet"), written(tmp_path / "s.parquet", wide)
    wanted = [msgspec.structs.replace(event, run="r") for event in EVENTS]
    for path in (plain, other):
        head = columns.header(str(path))
        assert head is not None
        (held,) = columns.following(str(path), head, "r", (-1, 0), 100)
        assert list(table.events(pa.RecordBatch.from_pydict(held))) == wanted


@pytest.mark.parametrize("coded", [False, True])
def test_a_text_is_there_if_it_is_neither_null_nor_empty(coded: bool) -> None:
    held = pa.array(["a", "", None, "ü"], pa.string())
    batch = pa.RecordBatch.from_pydict({"m": held.dictionary_encode() if coded else held})
    assert EventBatch(batch).some("m").tolist() == [True, False, False, True]
    assert EventBatch(batch).some("q").tolist() == [False] * 4  # a column that the batch lacks
    assert EventBatch(batch.slice(0, 0)).some("m").tolist() == []
    _, offsets, data = pa.array(["one", "two"]).buffers()
    beneath = pa.StringArray.from_buffers(2, offsets, data, pa.py_buffer(b"\x02"), 1)
    assert EventBatch(pa.RecordBatch.from_pydict({"m": beneath})).some("m").tolist() == [
        False,
        True,
    ]


@pytest.mark.parametrize(("kinds", "readings"), [((), 1), (("P1",), 2)], ids=["clean", "violated"])
def test_chunks_are_read_again_for_messages_only_where_one_is_irregular(
    kinds: tuple[str, ...], readings: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate(tmp_path / "in", 2000, queues=5, kinds=kinds)
    manifest = ingest(Inline(), plan([tmp_path / "in"]), tmp_path / "chunks", slice_length=100)
    files = [c.path for of in manifest.runs().values() for c in of]
    assert len(files) > 2
    read: list[str] = []
    read_chunk = chunks.read_chunk

    def counted(
        file: str,
        columns: Collection[str] | None = None,
        buckets: Collection[str] | None = None,
    ) -> pa.RecordBatch:
        # Whole events are read only of the buckets in which places were found.
        assert (columns is None) == (buckets is not None)
        read.extend([file] if columns is not None and "ev" in columns else [])
        return read_chunk(file, columns, buckets)

    monkeypatch.setattr(chunks, "read_chunk", counted)
    of_messages = [p for p in BLACKBOX if p.partitioning == "message"]
    found = audit_chunks(Inline(), tmp_path / "chunks", of_messages, measure=False).findings
    assert any(f.n_violations for f in found) == bool(kinds)
    assert len(read) == readings * len(files)


@pytest.mark.parametrize(
    ("kind", "lvl", "named"),
    [("deliver", "broker", True), ("get", "broker", False), ("deliver", "model", False)],
)
def test_p4_reads_names_of_messages_only_where_one_may_be_without(
    kind: str, lvl: str, named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A delivery has one, but in a model. A poll may have come back empty, and is no case then."""
    of: dict[str, Any] = {
        "q": "q",
        "conn": "c",
        "ch": 1,
        "gen": 1,
        "pub": "p",
        "redelivered": False,
    }
    rows: list[dict[str, Any]] = [
        {"ev": "deliver", "lvl": "broker", "m": f"m{n}"} for n in range(4)
    ]
    rows[2] = {"ev": kind, "lvl": lvl, "m": "m2" if named else ""}
    events = [Event(i=n, t=n, pseq=n, dtag=n, **row, **of) for n, row in enumerate(rows)]
    chunk = chunks.write_chunk(tmp_path, "c", columns.placed(table.columns(events), 0))
    read: list[str] = []
    read_row_groups = pq.ParquetFile.read_row_groups

    def noted(file: pq.ParquetFile, groups: Any, names: Any, **how: Any) -> Any:
        read.extend(names)
        return read_row_groups(file, groups, names, **how)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", noted)
    (check,) = [p for p in BLACKBOX if p.id == "P4"]
    lines = RegularLines([check])
    lines.take(chunks.read_events(str(tmp_path / chunk.path), lines.columns))
    cleared = lines.finish(None)
    assert cleared is not None
    assert cleared.cases == {"P4": (3 if named else 2, 0)}
    assert read.count("m") == (not named)
    assert not {"ctag", "proc"} & {*read}


@pytest.mark.parametrize("rising", [True, False])
def test_rows_of_a_chunk_are_ordered_by_bucket_and_place(rising: bool) -> None:
    """Whatever buckets there are, and whether the rows come in the order of the run; also none."""
    chance = random.Random(5)
    for length in range(60):
        names = [f"q{chance.randrange(12):03d}" for _ in range(length)]
        buckets = [chance.choice([name, chunks.CONTROL]) for name in names]
        n = chance.sample(range(100), length)
        n = sorted(n) if rising else n
        found = chunks.order(pa.chunked_array([pa.array(buckets, pa.string())]), pa.array(n))
        assert found.to_pylist() == sorted(range(length), key=lambda k: (buckets[k], n[k]))


def test_a_chunk_spends_no_room_on_what_nobody_asks_for(tmp_path: Path) -> None:
    """Statistics are of the bucket alone, and only what repeats is coded: a third of the room less."""
    held = columns.placed(table.columns(EVENTS), 0)
    chunks.write_chunk(tmp_path, "c", held)
    group = pq.read_metadata(tmp_path / "c").row_group(0)
    of = {(c := group.column(k)).path_in_schema: c for k in range(group.num_columns)}
    assert [name for name, c in of.items() if c.is_stats_set] == ["bucket"]
    assert "RLE_DICTIONARY" not in of["i"].encodings
    assert "RLE_DICTIONARY" in of["q"].encodings
