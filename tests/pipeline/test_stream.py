"""A stream comes to what a batch audit comes to, and doing a batch twice changes nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from seriatim_models.history import read_history, write_history
from seriatim_models.history.header import Header
from seriatim_models.pipeline import PipelineError, audit_paths, tables
from seriatim_models.properties.blackbox import BLACKBOX

from .conftest import DATA
from .test_spark import pytestmark as pytestmark


def equal(a: Path, b: Path) -> None:
    """The tables of two folders, as sets of rows."""
    mine, theirs = tables.read(a), tables.read(b)
    for name, rows in mine.items():
        assert sorted(map(repr, rows.to_pylist())) == sorted(map(repr, theirs[name].to_pylist())), (
            name
        )


def test_equal_to_a_batch_audit_and_idempotent(spark: Any, tmp_path: Path) -> None:
    from seriatim_models.pipeline.stream import Stream

    folder = tmp_path / "in" / "with space %20"
    folder.mkdir(parents=True)
    events = read_history(DATA / "rabbit-classic-lockstep.jsonl.gz").events[:3000]
    for n in (1, 0, 2):  # the second part appears first
        path = folder / f"part{n}.jsonl.zst"
        write_history(path, events[1000 * n : 1000 * n + 1000], Header(run="r"))
        os.utime(path, (100 + n, 100 + n if n else 102))
    (folder / "future.jsonl").write_text('{"schema":"qh/7"}\n')
    (folder / "mixed.jsonl").write_text('{"i":0,"ev":"note"}\nhalf a li')
    seen = []
    stream = Stream(spark, tmp_path / "in", tmp_path / "out", BLACKBOX, on_progress=seen.append)
    stream.run(once=True, files=2)
    audit_paths([tmp_path / "in"], engine="spark", out=tmp_path / "batch")
    equal(tmp_path / "out", tmp_path / "batch")
    assert [p.files for p in seen] == [2, 4, 5]
    assert (seen[-1].late, seen[-1].waiting, seen[-1].events) == (0, 0, 3001)
    # Spark may ask for a batch again, if it was killed before it had written down that the batch was done.
    before = (tmp_path / "out" / "stream.json").read_bytes()
    again = Stream(spark, tmp_path / "in", tmp_path / "out", BLACKBOX)
    files = spark.createDataFrame([(f"file:{path}", 1)], "path string, changed long")
    again._batch(files, again.state.batch)
    again.run(once=True)
    assert (tmp_path / "out" / "stream.json").read_bytes() == before
    # A new file, and the stream goes on.
    (folder / "new.jsonl").write_text('{"i":0,"ev":"note"}\n')
    again.run(once=True)
    assert [r.run for r in again.report().runs] == ["mixed", "new", events[0].run]


def test_rejects_an_output_inside_what_is_watched(spark: Any, tmp_path: Path) -> None:
    from seriatim_models.pipeline.stream import Stream

    with pytest.raises(PipelineError, match="must not lie in the folder"):
        Stream(spark, tmp_path, tmp_path / "out", BLACKBOX)
    with pytest.raises(PipelineError, match="no folder to watch"):
        Stream(spark, tmp_path / "nowhere", tmp_path / "out", BLACKBOX)
