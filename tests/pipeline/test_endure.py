"""What `make endure` compares would not pass if anything was lost, changed or done twice."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from seriatim_models.conformance.profiles import PROFILES
from seriatim_models.pipeline import audit_paths
from seriatim_models.pipeline.audit.tables import read
from seriatim_workshop import endure

pytestmark = [pytest.mark.slow, pytest.mark.spark]


def test_a_difference_of_any_table_is_seen(tmp_path: Path) -> None:
    """A part of a run that the stream had not taken, and then one row of one table."""
    parts = endure.made_parts(tmp_path / "made", 0, 250, seed=3)
    assert len(parts) == endure.PARTS
    (tmp_path / "in").mkdir()
    for n, path in enumerate(parts[:-1]):
        path.rename(tmp_path / "in" / f"{n}.parquet")
    for out in ("one", "same"):
        audit_paths([tmp_path / "in"], engine="spark", out=tmp_path / out)
    assert endure.differing(tmp_path / "one", [tmp_path / "same"]) == []
    parts[-1].rename(tmp_path / "in" / "last.parquet")
    audit_paths([tmp_path / "in"], engine="spark", out=tmp_path / "later")
    assert {"verdicts", "files", "runs"} <= set(
        endure.differing(tmp_path / "one", [tmp_path / "later"])
    )
    (changed,) = (tmp_path / "same").glob("tables-*/files*")
    path = changed if changed.is_file() else next(changed.glob("*.parquet"))
    rows = pq.read_table(path)
    pq.write_table(rows.slice(1), path)
    assert endure.differing(tmp_path / "one", [tmp_path / "same"]) == ["files"]
    assert len(read(tmp_path / "one")["files"]) == endure.PARTS - 1


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({}, []),
        ({"tables that differ from the batch audit": ["runs"]}, ["runs differs"]),
        ({"MiB in the last quarter": 301}, ["memory grew from 200 to 301 MiB"]),
        ({"MiB in the last quarter": 301, "seconds": 60.0}, []),
        ({"wrong with them": ["a part was done twice"]}, ["a part was done twice"]),
        ({"seconds behind in the last quarter": 61}, ["the stream was 61 seconds behind"]),
        ({"seconds behind in the last quarter": 61, "seconds": 60.0}, []),
        ({"faults": {}}, ["nothing was done to the stream"]),
        ({"faults of the matrix": {}}, ["nothing was done to the matrix"]),
    ],
)
def test_what_must_not_be_is_a_problem(changed: endure.Figures, problem: list[str]) -> None:
    sound: endure.Figures = {
        "seconds": 600.0, "faults": {endure.KILL: 1},
        "tables that differ from the batch audit": [], "wrong with them": [],
        "MiB in the second quarter": 200, "MiB in the last quarter": 299, "seconds behind in the last quarter": 60,
    }  # fmt: skip
    assert endure.problems(sound | changed) == problem


def test_runs_are_audited_some_at_a_time_as_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables of the audits are together those of one audit, without the last of them they are not."""
    monkeypatch.setattr(endure, "PART", 0.1)
    monkeypatch.setattr(endure, "SLICE", 2)
    (tmp_path / "in").mkdir()
    feeder = endure.Feeder(tmp_path / "made", tmp_path / "in", 3, 5000, seed=3)
    auditor = endure.Auditor(feeder, tmp_path / "batch")
    feeder.start()
    auditor.start()
    auditor.join()
    assert auditor.error is None
    assert [path.name for path in feeder.fed] == [f"{n:05d}.parquet" for n in range(12)]
    assert len(auditor.audits) == 2
    properties = PROFILES["any"].properties
    audit_paths([tmp_path / "in"], engine="spark", properties=properties, out=tmp_path / "one")
    assert endure.differing(tmp_path / "one", auditor.audits) == []
    assert "runs" in endure.differing(tmp_path / "one", auditor.audits[:1])
    assert [p.name.split("-")[0] for p in sorted(auditor.audits[0].iterdir())] == ["tables"] * 2


class Standing(endure.Disturbed):
    """Any process in place of a command of ours."""

    def begin(self, *more: str) -> None:
        self._command = ["sleep", "600"]
        super().begin()


def test_a_fault_hits_what_it_names(tmp_path: Path) -> None:
    run = Standing(tmp_path / "log", random.Random(1), [], None)
    try:
        first = run.process.pid
        run.fault(endure.KILL, endure.KILL_WORKER, endure.PAUSE_WORKER, endure.FILL)
        assert run.faults == {endure.KILL: 1}, "no worker, no disk: the driver it is"
        assert run.process.pid != first
        assert run.process.poll() is None
        assert run.processes() == [run.process.pid]
    finally:
        run.stop()
    assert run.processes() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="a disk of its own takes root")
def test_the_full_disk_is_full_for_the_process_that_is_disturbed(tmp_path: Path) -> None:
    """And one that ends there by anything but a sentence ends the run."""
    with endure.small_disk(tmp_path / "out") as disk:
        assert disk is not None
        prefix = disk.prefix
        script = f"while head -c 9000 /dev/zero >> {tmp_path}/out/x; do sleep 0.01; done; exit 2"

        class Writing(endure.Disturbed):
            def begin(self, *more: str) -> None:
                self._command = [*prefix, "sh", "-c", script]
                super().begin()

        run = Writing(tmp_path / "log", random.Random(1), [], disk)
        try:
            until = time.monotonic() + 30
            while not (disk.seen / "x").exists():
                assert time.monotonic() < until
                time.sleep(0.02)
            run.fault(endure.FILL)
            assert run.faults["ended because the disk was full"] == 1
            script = script.replace("exit 2", "exit 70")
            run.stop()
            run.begin()
            with pytest.raises(SystemExit, match="did so with 70"):
                run.fault(endure.FILL)
        finally:
            run.stop()
