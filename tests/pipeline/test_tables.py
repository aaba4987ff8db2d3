"""The tables of an audit: what tells their rows apart, and that they say which version they are of."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seriatim_models.conformance.profile_consistency import forms
from seriatim_models.conformance.profiles import PROFILES, SYSTEMS
from seriatim_models.pipeline import PipelineError, audit_paths
from seriatim_models.pipeline.audit import tables
from seriatim_models.pipeline.audit.findings import form
from seriatim_models.properties.base import AnyProperty
from seriatim_models.properties.blackbox.conservation import Conservation
from seriatim_models.properties.blackbox.order import FirstDeliveryOrder

from .conftest import DATA


def test_every_form_of_a_property_has_a_name_of_its_own() -> None:
    judges = forms((PROFILES["any"], *SYSTEMS.values()))
    assert len({p.id for p in judges}) < len(judges), "some property is judged in several forms"
    assert len({(p.id, form(p)) for p in judges}) == len(judges)
    assert form(Conservation(again=True)) == "again=true"
    assert {p.id for p in judges if form(p)} == {p.id for p in judges if p.options}


def test_run_property_and_form_tell_the_rows_apart(tmp_path: Path) -> None:
    """A message that comes again after it was settled: one form of P1 reports, the other allows it."""
    got = '{{"i":{0},"t":{0},"ev":"deliver","m":"m","q":"q","conn":"c","ch":1,"dtag":{0},"redelivered":true}}\n'
    ack = '{{"i":{0},"t":{0},"ev":"ack","conn":"c","ch":1,"dtag":{1},"m":"m"}}\n'
    head = '{"schema":"qh/1","run":"again"}\n{"i":0,"t":0,"ev":"publish","m":"m","q":"q"}\n'
    path = tmp_path / "again.jsonl"
    path.write_text(head + got.format(1) + ack.format(2, 1) + got.format(3) + ack.format(4, 3))
    judges: list[AnyProperty] = [Conservation(), Conservation(again=True), FirstDeliveryOrder()]
    report = audit_paths([path, DATA / "rabbit-classic-competing.jsonl.gz"], properties=judges)
    rows = tables.rows_of(report, judges)
    verdicts = {(r["run"], r["property"], r["form"]): r for r in rows["verdicts"].to_pylist()}
    assert len(verdicts) == len(rows["verdicts"]) == 2 * len(judges)
    said = [verdicts["again", "P1", f"again={a}"]["verdict"] for a in ("false", "true")]
    assert said == ["violated", "ok"]
    witnesses = rows["witnesses"].to_pylist()
    assert {(w["subject"], w["property"], w["form"]) for w in witnesses} == {
        ("again", "P1", "again=false")
    }


def test_rejects_findings_of_other_properties() -> None:
    report = audit_paths([DATA / "rabbit-classic-competing.jsonl.gz"], properties=["P4", "P5"])
    with pytest.raises(AssertionError, match="P4 stands where P1 should"):
        tables.rows_of(report, [Conservation(), FirstDeliveryOrder()])


def test_rejects_tables_of_another_version(tmp_path: Path) -> None:
    report = audit_paths([DATA / "rabbit-classic-competing.jsonl.gz"], properties=["P4"])
    rows = tables.rows_of(report, [FirstDeliveryOrder()]) | tables.rows_measured({})
    tables.write(tmp_path, rows, [])
    read = tables.read(tmp_path)
    assert read["verdicts"].column_names == tables.SCHEMAS["verdicts"].names
    path = tmp_path / "tables" / "verdicts.parquet"
    old: pa.Table = read["verdicts"].drop_columns(["form"])
    pq.write_table(old.replace_schema_metadata({b"seriatim": b"seriatim-audit/1"}), path)
    with pytest.raises(PipelineError, match="not of schema seriatim-audit/2"):
        tables.read(tmp_path)
