"""Ingest: what is left alone, what is made anew, and that a reader sees the old state or the new one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from seriatim_models.history import Event, HistoryError, read_history, write_history
from seriatim_models.history.header import Header
from seriatim_models.pipeline import PipelineError, audit_paths
from seriatim_models.pipeline.audit import tables
from seriatim_models.pipeline.audit.runs import plan

from .conftest import DATA, by_rows, first_events
from .test_spark import pytestmark as pytestmark
from .test_spark import same

EVENTS = [
    msgspec.structs.replace(e, run="", rec="", clk="")
    for e in first_events("rabbit-classic-lockstep", 3000)
]


def write(path: Path, events: list[Event], **header: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_history(path, events, Header(**{"run": "r", "rec": "a", **header}))
    return path


@pytest.fixture
def ingest(spark: Any, tmp_path: Path) -> Callable[[], Any]:
    from seriatim_models.pipeline.audit import ingest as module
    from seriatim_models.pipeline.audit.spark import OnSpark

    def again() -> Any:
        return module.ingest(OnSpark(spark), plan([tmp_path / "in"]), tmp_path / "out", 1000)

    return again


@pytest.mark.slow
def test_only_what_is_new_is_read(ingest: Callable[[], Any], spark: Any, tmp_path: Path) -> None:
    write(tmp_path / "in/p1.jsonl", EVENTS[:1000])
    write(tmp_path / "in/other.jsonl.zst", EVENTS[:500], run="other")
    first = ingest()
    assert ingest() == first, "nothing changed, so nothing is made"
    write(tmp_path / "in/p2.jsonl.gz", EVENTS[1000:2500])
    second = ingest()
    old, new = first.runs(), second.runs()
    assert new["other"] == old["other"]
    assert new["r"][:1] == old["r"], "a new part goes on where the last one ended"
    assert [c.rows for c in new["r"]] == [1000, 1000, 500]
    os.utime(tmp_path / "in/p1.jsonl", (1, 1))
    third = ingest()
    assert third.runs()["other"] == old["other"]
    assert [c.rows for c in third.runs()["r"]] == [1000, 1000, 500]
    assert {c.path for c in third.runs()["r"]}.isdisjoint(c.path for c in new["r"])
    held = {p.relative_to(tmp_path / "out") for p in (tmp_path / "out").rglob("work-*/*.*")}
    assert {str(p) for p in held} == third.paths(), "old states are swept away"
    # Completed part by part and in one go, the events are the same.
    from seriatim_models.pipeline.audit.spark import OnSpark
    from seriatim_models.pipeline.audit.tasks import audit_chunks
    from seriatim_models.properties.blackbox import BLACKBOX

    local = audit_paths([tmp_path / "in"])
    assert audit_chunks(OnSpark(spark), tmp_path / "out", BLACKBOX).findings == local.findings


def test_an_ingest_that_dies_leaves_the_old_state(
    ingest: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seriatim_models.pipeline.audit import chunks

    write(tmp_path / "in/p1.jsonl", EVENTS[:1000])
    ingest()
    before = chunks.read_manifest(tmp_path / "out")
    write(tmp_path / "in/p2.jsonl", EVENTS[1000:1100])
    with monkeypatch.context() as patch:
        patch.setattr(chunks, "write_manifest", _die)
        with pytest.raises(KeyboardInterrupt):
            ingest()
    assert chunks.read_manifest(tmp_path / "out") == before
    assert all((tmp_path / "out" / p).exists() for p in before.paths())
    after = ingest()
    assert sum(c.rows for c in after.runs()["r"]) == 1100


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_rejects_a_second_ingest_at_the_same_time(
    ingest: Callable[[], Any], tmp_path: Path
) -> None:
    from seriatim_models.pipeline.audit.ingest import locked

    write(tmp_path / "in/p1.jsonl", EVENTS[:10])
    with locked(tmp_path / "out"), pytest.raises(PipelineError, match="another seriatim"):
        ingest()


@pytest.mark.slow
def test_a_worker_of_spark_has_a_second_process_where_one_is_free(
    ingest: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seriatim_models.pipeline.audit import ingest as module
    from seriatim_models.pipeline.audit.inline import Inline

    write(tmp_path / "in/p1.jsonl", EVENTS)
    alone = module.ingest(Inline(), plan([tmp_path / "in"]), tmp_path / "alone", 1000)
    helped: list[bool] = []
    with_help = module._with_help

    def noted(*given: Any) -> Any:
        works = with_help(*given)
        helped.extend(w.apart for w in works)
        return works

    monkeypatch.setattr(module, "APART", 0)
    monkeypatch.setattr(module, "_with_help", noted)
    made = ingest()
    assert helped == [True]
    for a, b in zip(alone.runs()["r"], made.runs()["r"], strict=True):
        tables_of = [
            pq.read_table(tmp_path / where / c.path) for where, c in (("alone", a), ("out", b))
        ]
        assert tables_of[0].equals(tables_of[1])
    assert alone.units[0].statistics == made.units[0].statistics


@pytest.mark.slow
def test_equal_on_every_form_of_input_at_once(spark: Any, tmp_path: Path) -> None:
    """Both schemas, every packing, duplicates, bad lines, half-written files, a foreign clock."""
    folder = tmp_path / "in"
    for n, suffix in enumerate(("jsonl", "jsonl.gz", "jsonl.zst", "parquet")):
        write(folder / f"form{n}.{suffix}", EVENTS, run=f"form {n}")
    (folder / "qh0.jsonl.gz").write_bytes((DATA / "rabbit-classic-competing.jsonl.gz").read_bytes())
    write(folder / "twice/a.jsonl", EVENTS[:50], run="twice")
    write(folder / "twice/b.jsonl", EVENTS[:60], run="twice")
    odd = [e if n % 7 else _with(e, clk="other") for n, e in enumerate(EVENTS)]
    write(folder / "clocks.jsonl", odd, run="clocks", clk="mine")
    whole = (folder / "form0.jsonl").read_bytes()
    (folder / "half.jsonl").write_bytes(whole[: len(whole) // 2].replace(b"form 0", b"half", 1))
    (folder / "half.parquet").write_bytes((folder / "form3.parquet").read_bytes()[:5000])
    lines = ["not json", '{"i": "x"}', "\xff"]
    bad = [json.dumps({"schema": "qh/1", "run": "bad"}), '{"i":0,"t":0,"ev":"note"}']
    (folder / "bad.jsonl").write_text("\n".join([*bad, *(lines * 7000)]) + "\n")
    local = audit_paths([folder])
    found = audit_paths([folder], engine="spark", out=tmp_path / "out")
    same(found, local)
    s = found.statistics
    assert s["lines"] == s["header"] + s["blank"] + s["events"] + s["rejected"]
    kept = tables.read(tmp_path / "out")
    whole_files = [r for r in kept["quarantine"].to_pylist() if r["line"] == 0]
    assert len(kept["quarantine"]) == s["rejected"] + len(whole_files)
    assert [Path(r["source"]).name for r in whole_files] == ["half.parquet"]
    assert len(found.quarantine) < len(kept["quarantine"]), "a report holds the first, a table all"
    assert [r.duplicate for r in found.quarantine if "twice" in r.source] == [True] * 50
    verdicts = {(f.subject, f.property): f for f in found.findings}
    for form in ("form 1", "form 2", "form 3"):
        assert _bare(verdicts[form, "P1"]) == _bare(verdicts["form 0", "P1"])


def _bare(finding: Any) -> tuple[Any, ...]:
    return finding.verdict, finding.n_tested, finding.n_untestable


def _with(event: Event, **new: Any) -> Event:
    return msgspec.structs.replace(event, **new)


@pytest.mark.slow
def test_complete_histories_are_taken_by_columns_and_judged_the_same(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seriatim_models.pipeline.synthetic.generate import generate

    made = generate(tmp_path / "in", 6000, queues=5, each=1, seed=3)
    by_columns = audit_paths([tmp_path / "in"])
    local = by_rows([tmp_path / "in"])
    same(by_columns, local)
    same(audit_paths([tmp_path / "in"], engine="spark"), local)
    # A file in which one row is out of place goes row by row, and that row is rejected.
    history = read_history(tmp_path / "in" / made.files[0])
    events = [history.events[1], history.events[0], *history.events[2:]]
    write_history(tmp_path / "in" / made.files[0], events, history.header)
    local = audit_paths([tmp_path / "in"])
    assert local.statistics["rejected"] == 1
    same(audit_paths([tmp_path / "in"], engine="spark"), local)


def test_rejects_clocks_of_two_machines_in_one_run(spark: Any, tmp_path: Path) -> None:
    write(tmp_path / "in/a.jsonl", EVENTS[:5], clk="one")
    write(tmp_path / "in/b.jsonl", EVENTS[5:9], clk="two", rec="b")
    with pytest.raises(HistoryError, match="times of two clocks do not compare"):
        audit_paths([tmp_path / "in"], engine="spark")


def test_a_damaged_state_of_a_recorder_is_refused_and_made_anew_without_it(
    ingest: Callable[[], Any], tmp_path: Path
) -> None:
    write(tmp_path / "in/p1.jsonl", EVENTS[:1000])
    first = ingest()
    (carry,) = (tmp_path / "out").glob("work-*/*.carry")
    carry.write_bytes(carry.read_bytes()[:-1])
    write(tmp_path / "in/p2.jsonl", EVENTS[1000:1500])
    with pytest.raises(PipelineError, match=r"\.carry: is damaged.*delete it, and the next"):
        ingest()
    assert {str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").glob("work-*/*")} == (
        first.paths()
    )
    carry.unlink()
    assert [c.rows for c in ingest().runs()["r"]] == [1000, 500]
