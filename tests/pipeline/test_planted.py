"""What was planted is found, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from seriatim_models.pipeline import PipelineError, audit_paths
from seriatim_models.pipeline.synthetic.generate import generate
from seriatim_models.pipeline.synthetic.injected import KINDS, ViolationKind, scene
from seriatim_models.properties import audit
from seriatim_models.properties.blackbox import BLACKBOX


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.id)
def test_a_scene_violates_what_it_says(kind: ViolationKind) -> None:
    found = audit(scene(kind, 0, 0, 1000)[0], BLACKBOX)
    assert {f.property: f.n_violations for f in found if f.n_violations} == kind.violations
    assert kind.property in kind.violations


def test_every_property_has_a_scene_that_violates_it() -> None:
    assert {p.id for p in BLACKBOX} == {id for kind in KINDS for id in kind.violations}


@pytest.mark.parametrize("seed", range(3))
def test_every_planted_violation_is_found_and_no_other(tmp_path: Path, seed: int) -> None:
    made = generate(tmp_path, 15_000, queues=7, seed=seed, each=1 + seed, hot=0.5 * (seed == 2))
    report = audit_paths([tmp_path])
    assert {f.property: f.n_violations for f in report.findings if f.n_violations} == made.expected
    assert report.statistics["events"] == made.events
    for finding in report.findings:
        if finding.n_violations:
            planted = {e.q or e.m.rpartition(":")[0] for e in finding.witness}
            assert all("#" in q for q in planted if q), "the witness is of a planted scene"


def test_a_clean_history_tests_much_and_violates_nothing(tmp_path: Path) -> None:
    generate(tmp_path, 15_000, queues=7, kinds=[])
    findings = {f.property: f for f in audit_paths([tmp_path]).findings}
    assert not [f for f in findings.values() if f.n_violations]
    for id in ("P1", "P2", "P3", "P4", "P5", "P7", "P8"):
        assert findings[id].n_tested > 1000
    assert findings["P6"].n_tested > 400  # requeued messages, and what overtakes them
    assert findings["P9"].n_tested == 7


def test_the_same_seed_gives_the_same_history_in_every_form(tmp_path: Path) -> None:
    for n, form in enumerate(("parquet", "jsonl.zst")):
        generate(tmp_path / str(n), 4000, queues=3, seed=9, format=form)
    one, two = (audit_paths([tmp_path / str(n)]) for n in range(2))
    assert one.findings == two.findings


def test_rejects_unknown_kinds_and_full_folders(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="no kind 'P8:thrice'"):
        generate(tmp_path, 100, kinds=["P8:thrice"])
    with pytest.raises(PipelineError, match="no format 'xml'"):
        generate(tmp_path, 100, format="xml")
    (tmp_path / "something").touch()
    with pytest.raises(PipelineError, match="not empty"):
        generate(tmp_path, 100)
