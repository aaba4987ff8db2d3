"""The Spark engine finds what the local engine finds, and rejects what it rejects."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seriatim_models.cli import run
from seriatim_models.explorer import Random, World, explore
from seriatim_models.history import Event, HistoryError, write_history
from seriatim_models.history.header import Header
from seriatim_models.pipeline import AuditReport, audit_paths
from seriatim_models.programs import PROGRAMS
from seriatim_models.programs.check import history, runnable
from seriatim_models.properties import WHITEBOX, Verdict

from .conftest import DATA

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),  # on a busy machine Spark's start alone can take a minute
    # PySpark's own, of its own use of what it depends on
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"
    ),
]


def same(a: AuditReport, b: AuditReport) -> None:
    for mine, theirs in zip(a.findings, b.findings, strict=True):
        assert mine == theirs
    assert a.quarantine == b.quarantine
    assert (a.statistics, a.runs, a.files) == (b.statistics, b.runs, b.files)


@pytest.mark.slow
def test_equal_on_the_recordings_in_one_slice_and_in_many(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = audit_paths([DATA])
    same(audit_paths([DATA], engine="spark", out=tmp_path), local)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["schema"] == "seriatim-chunks/11"
    assert [u["run"] for u in manifest["units"]] == [r.run for r in local.runs]
    rows = sum(c["rows"] for u in manifest["units"] for of in u["chunks"].values() for c in of)
    assert rows == local.statistics["events"]


@pytest.mark.slow
def test_equal_on_a_folder_in_which_much_is_wrong(spark: Any, folder: Path, tmp_path: Path) -> None:
    from seriatim_models.pipeline.audit import chunks, ingest
    from seriatim_models.pipeline.audit.runs import plan
    from seriatim_models.pipeline.audit.spark import OnSpark
    from seriatim_models.pipeline.audit.tasks import audit_chunks
    from seriatim_models.properties import PROPERTIES
    from seriatim_models.properties.blackbox import BLACKBOX

    local = audit_paths([folder])
    same(audit_paths([folder], engine="spark"), local)
    # The same files in slices so short that every channel and message is cut, and with a property of the other kind.
    properties = (*BLACKBOX, PROPERTIES["ES-5"])
    before = audit_paths([folder], properties=properties)
    planned = plan([folder])
    short = 3001
    manifest = ingest.ingest(OnSpark(spark), planned, tmp_path, short)
    assert sum(map(len, manifest.runs().values())) > 10
    audited = audit_chunks(OnSpark(spark), tmp_path, properties)
    assert audited.findings == before.findings
    assert sorted(audited.runs, key=lambda r: r.run) == before.runs
    assert chunks.read_manifest(tmp_path) == manifest


def test_what_a_worker_writes_is_in_the_log_only(
    spark: Any, spark_log: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """`test_session.py` looks at a JVM from its start to its end."""

    def noisy(batches: Iterator[Any]) -> Iterator[Any]:
        os.write(1, b"a worker's standard output")
        os.write(2, b"BrokenPipeError: of a worker")
        yield from batches

    assert spark.range(1).mapInArrow(noisy, "id long").count() == 1
    until = time.monotonic() + 60
    for text in ("a worker's standard output", "BrokenPipeError: of a worker"):
        while text not in spark_log.read_text():  # the JVM copies it when it gets round to it
            assert time.monotonic() < until, text
            time.sleep(0.05)
    assert capfd.readouterr() == ("", "")


def test_rejects_a_named_file_that_is_cut_off(spark: Any, folder: Path) -> None:
    with pytest.raises(
        HistoryError, match=r"cut\.jsonl\.gz: line \d+: the compressed file is cut off"
    ):
        audit_paths([folder / "cut.jsonl.gz"], engine="spark")


def test_equal_on_what_the_reference_recorded(spark: Any, tmp_path: Path) -> None:
    """White-box properties judge the run as a whole, so that no queue has a task of its own."""
    kept: list[Event] = []

    def keep(world: World) -> None:
        kept[:] = history(world)

    program = runnable(PROGRAMS["release-behind"], None)
    explore(program, Random(seed=5), max_executions=1, on_execution=keep)
    path = tmp_path / "reference.jsonl"
    write_history(path, kept)
    local = audit_paths([path], engine="local", properties=WHITEBOX)
    same(local, audit_paths([path], engine="spark", properties=WHITEBOX))
    assert {f.property for f in local.findings if f.verdict is Verdict.OK} >= {"ES-1", "SP-1"}


OWN = """
from seriatim_models.properties.base import WholeHistory

class Few(WholeHistory):
    id, sentence, source, case, reads = "FEW", "Few are sent.", "a rule of ours", "all", frozenset({"publish"})

    def cases(self, events, bad):
        if len(events) > 1:
            bad.append((f"{len(events)} were sent", events[:2]))
        return 1

class ByRun(Few):
    partitioning = "run"

class Raises(Few):
    def cases(self, events, bad):
        return 1 // 0

class Exits(Few):
    def cases(self, events, bad):
        raise SystemExit(0)

class SaysNothing(Few):
    def cases(self, events, bad):
        pass
"""


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("Few", ""),
        ("ByRun", ""),
        ("Raises", "own.py, line 17, in cases of a property of yours: ZeroDivisionError"),
        ("Exits", "own.py, line 21, in cases of a property of yours: SystemExit: 0"),
        ("SaysNothing", "SaysNothing, a property of yours: TypeError: cases must return"),
    ],
)
def test_a_property_of_ones_own_is_judged_in_workers_as_here(
    named: str, said: str, spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.py").write_text(OWN)
    events = [Event(i=i, t=i, ev="publish", q=f"q{i}", m=f"m{i}") for i in range(3)]
    write_history(tmp_path / "run.jsonl", events, Header(run="r"))
    given = ["audit", str(tmp_path / "run.jsonl"), "--property", f"{tmp_path / 'own.py'}:{named}"]
    found = []
    for engine in ("local", "spark"):
        code = run([*given, "--engine", engine, "--json", str(tmp_path / f"{engine}.json")])
        shown = capsys.readouterr().err
        if said:
            assert (code, said in " ".join(shown.split())) == (2, True), shown
        else:
            results = json.loads((tmp_path / f"{engine}.json").read_text())["results"]
            found.append((code, [r for r in results if r["property"] == "FEW"]))
    assert not found or (found[0] == found[1] and found[0][0] == 1)
