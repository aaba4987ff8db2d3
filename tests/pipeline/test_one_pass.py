"""Complete Parquet in one pass: what is read again, when, and that the findings are those by rows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seriatim_models.history import Event, Header, table, write_history
from seriatim_models.history.reading import read_history
from seriatim_models.pipeline import audit_paths
from seriatim_models.pipeline.audit import chunks, columns, one_pass
from seriatim_models.pipeline.audit.ingest import ingest
from seriatim_models.pipeline.audit.inline import Inline
from seriatim_models.pipeline.audit.queue_groups import QueueGroups
from seriatim_models.pipeline.audit.runs import plan
from seriatim_models.pipeline.audit.tasks import audit_chunks
from seriatim_models.pipeline.synthetic import generate
from seriatim_models.properties.base import Verdict
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.columnar.event_batch import EventBatch

from .conftest import by_rows, in_one_pass


def readings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs that are read from now on, each time."""
    read: list[str] = []
    batches = one_pass._Recording.batches

    def counted(self: one_pass._Recording) -> Any:
        read.append(self.run)
        return batches(self)

    monkeypatch.setattr(one_pass._Recording, "batches", counted)
    return read


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short batches, and few rows that are judged together."""
    monkeypatch.setattr(one_pass, "LENGTH", 700)
    monkeypatch.setattr(chunks, "TOGETHER", 1000)
    monkeypatch.setattr(generate, "PART", 1500)


@pytest.mark.usefixtures("short")
def test_two_runs_of_several_files_are_each_read_again_where_something_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate.generate(tmp_path / "a", 4000, queues=20, kinds=(), run="a")
    generate.generate(tmp_path / "b", 4000, queues=20, each=1, run="b")
    assert len(list(tmp_path.glob("*/*.parquet"))) > 4
    read = readings(monkeypatch)
    report = in_one_pass([tmp_path], BLACKBOX)
    assert report is not None
    assert read == ["a", "b", "b"]
    seen: list[int] = []
    assert audit_paths([tmp_path], properties=BLACKBOX, on_events=seen.append) == report
    assert seen == sorted(seen)
    assert len({*seen}) > 10
    assert seen[-1] == report.statistics["events"]
    assert report == by_rows([tmp_path])


@pytest.mark.usefixtures("short")
def test_where_all_queues_are_left_to_the_rows_they_are_judged_some_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a client has recorded, and so no check of queues clears anything."""
    made = generate.generate(tmp_path, 4000, queues=20, each=1)
    for name in made.files:
        whole = read_history(tmp_path / name)
        events = [msgspec.structs.replace(e, lvl="api") for e in whole.events]
        write_history(tmp_path / name, events, msgspec.structs.replace(whole.header, lvl="api"))
    read = readings(monkeypatch)
    report = in_one_pass([tmp_path], BLACKBOX)
    assert len(read) > 3
    assert report == by_rows([tmp_path])


def on_one_connection() -> list[Event]:
    """In each queue five messages are given out to one consumer of one connection; in `q` not the oldest first."""
    on: dict[str, Any] = {"conn": "c", "ch": 1, "gen": 1, "lvl": "broker"}
    rows: list[dict[str, Any]] = []
    for q in ("q", "r", "s", "t"):
        sent = {"q": q, "pub": f"p{q}", "conn": f"p{q}", "ch": 1, "gen": 1, "lvl": "broker"}
        named = [f"{q}{n}" for n in range(5)]
        rows.append({"ev": "consume", "q": q, "ctag": q, "prefetch": 9, "scope": "consumer", **on})
        rows += [{"ev": "publish", "m": m, "pseq": n, **sent} for n, m in enumerate(named)]
        order = [1, 0, 2, 3, 4] if q == "q" else range(5)
        for n in order:
            given = {"m": named[n], "pub": f"p{q}", "pseq": n, "dtag": 1 + len(rows), "q": q, **on}
            rows.append(
                {"ev": "deliver", "ctag": q, "redelivered": False, "autoack": False, **given}
            )
            rows.append({"ev": "ack", "q": q, "dtag": given["dtag"], "ms": [named[n]], **on})
    return [Event(i=n, t=1000 * n, t_lo=1000 * n, **row) for n, row in enumerate(rows)]


@pytest.mark.parametrize("together", [10, 25, 1000])
def test_a_queue_that_shares_a_connection_with_an_irregular_one_is_judged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    """Whether the checks of both are the same ones or not: where it spoils many rows, each has its own."""
    monkeypatch.setattr(chunks, "TOGETHER", together)
    took: list[int] = []
    take_divided = QueueGroups._take_divided

    def noted(self: QueueGroups, parts: Sequence[int], batch: EventBatch) -> None:
        took.append(len(batch))
        take_divided(self, parts, batch)

    monkeypatch.setattr(QueueGroups, "_take_divided", noted)
    path = tmp_path / "h.parquet"
    write_history(path, on_one_connection(), Header(run="run", params={"complete": True}))
    report = in_one_pass([path], BLACKBOX)
    assert report == by_rows([path])
    assert report is not None
    assert took == ([] if together == 1000 else [len(on_one_connection())])
    ingest(Inline(), plan([path]), tmp_path / "chunks")
    assert audit_chunks(Inline(), tmp_path / "chunks", BLACKBOX).findings == report.findings
    assert len(took) == (0 if together == 1000 else 2)
    found = {f.property: f for f in report.findings}
    assert found["P5"].verdict is Verdict.VIOLATED


def test_columns_that_are_empty_need_not_be_there(tmp_path: Path) -> None:
    """As in what others write: where any was not there, all was read row by row, in nine times the time."""
    made = generate.generate(tmp_path, 2000, queues=5, each=1)
    for path in (tmp_path / name for name in made.files):
        rows = pq.read_table(path)
        full = [n for n in rows.schema.names if rows[n].null_count < len(rows)]
        assert not {*table.CODED} <= {*full}
        pq.write_table(rows.select(full), path)
    report = in_one_pass([tmp_path], BLACKBOX)
    assert report is not None
    assert report == by_rows([tmp_path])


def test_a_recording_that_changes_between_two_readings_is_read_by_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = generate.generate(tmp_path, 2000, queues=5, each=1)
    path, left = tmp_path / made.files[0], one_pass._FirstReading.left

    def changed(self: one_pass._FirstReading) -> Any:
        os.utime(path, ns=(1, 1))
        return left(self)

    with monkeypatch.context() as patch:
        patch.setattr(one_pass._FirstReading, "left", changed)
        assert in_one_pass([tmp_path], BLACKBOX) is None
    assert in_one_pass([tmp_path], BLACKBOX) == by_rows([tmp_path])


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generate.generate(tmp_path / "in", 2000, queues=5, each=1)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(chunks, "write_chunk", None)
    read = readings(monkeypatch)
    assert audit_paths([tmp_path / "in"]).verdict is Verdict.VIOLATED
    assert len(read) == 2
    assert not list((tmp_path / "temporary").iterdir())


def test_a_file_without_rows_is_read_by_row(tmp_path: Path) -> None:
    write_history(tmp_path / "h.parquet", [], Header(run="run", params={"complete": True}))
    assert in_one_pass([tmp_path], BLACKBOX) is None
    assert audit_paths([tmp_path]).statistics["files"] == 1


def test_codes_of_which_two_stand_for_one_text_are_made_anew() -> None:
    """As a stranger's writer may have them: the checks compare codes."""
    texts = pa.array(["a", "b", "a"])
    held = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None], pa.int32()), texts)
    (q,) = columns._typed(pa.RecordBatch.from_pydict({"q": held}), ["q"]).columns
    assert q.dictionary.to_pylist() == ["a", "b"]
    assert q.indices.to_pylist() == [0, 1, 0, None]


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("level", ["broker", "api"])
def test_tasks_of_queues_count_each_queue_once(
    level: str, workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What concerns all queues is of each task, and may name a queue of another one; also where no check clears any."""
    monkeypatch.setattr(chunks, "SLICE", 500)
    monkeypatch.setattr(chunks, "TOGETHER", 1000)
    made = generate.generate(tmp_path / "in", 6000, queues=20, each=2)
    for name in made.files if level == "api" else ():
        whole = read_history(tmp_path / "in" / name)
        events = [msgspec.structs.replace(e, lvl="api") for e in whole.events]
        header = msgspec.structs.replace(whole.header, lvl="api")
        write_history(tmp_path / "in" / name, events, header)
    ingest(Inline(), plan([tmp_path / "in"]), tmp_path / "kept", 1500)
    audited = audit_chunks(Inline(workers), tmp_path / "kept", BLACKBOX, measure=False)
    assert audited.findings == by_rows([tmp_path / "in"]).findings
