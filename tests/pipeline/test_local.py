"""The local engine: which files make which runs, what is left out, and what the report says."""

from __future__ import annotations

import gc
import json
import random
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import msgspec
import pytest

from seriatim_models.conformance.profiles import PROFILES
from seriatim_models.history import Event, HistoryError, write_history
from seriatim_models.history.reading import read_history
from seriatim_models.pipeline import AuditReport, PipelineError, audit_paths
from seriatim_models.pipeline.audit import local as engine
from seriatim_models.pipeline.audit.runs import plan
from seriatim_models.pipeline.synthetic import generate
from seriatim_models.properties.base import Finding, Property, Verdict
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_workshop.bench.simulated_broker import FAULTS, SimulatedBroker

from .conftest import DATA, by_rows, in_one_pass, spoiled


def events(path: Path, *objects: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(o) + "\n" for o in objects))
    return path


def adds_up(report: AuditReport) -> bool:
    s = report.statistics
    return s["lines"] == s["header"] + s["blank"] + s["events"] + s["rejected"]


@cache
def whole() -> AuditReport:
    """The report of the recordings."""
    return audit_paths([DATA])


@pytest.mark.slow
def test_the_recordings_are_two_runs_and_violate_nothing() -> None:
    report = whole()
    assert report.verdict is Verdict.OK
    assert [r.run for r in report.runs] == ["rabbit-classic-competing", "rabbit-classic-lockstep"]
    assert [f.subject for f in report.findings[:: len(BLACKBOX)]] == [r.run for r in report.runs]
    assert report.statistics == {
        "lines": 31313, "header": 2, "blank": 0, "events": 31311, "rejected": 0, "files": 2,
    }  # fmt: skip
    assert report.runs[1].by_event["deliver"] == 4520


@pytest.mark.slow
def test_short_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    findings = whole().findings
    monkeypatch.setattr(engine, "BATCH", 777)
    assert audit_paths([DATA]).findings == findings


@pytest.mark.parametrize("seed", range(3))
def test_complete_parquet_is_judged_by_columns_as_by_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """With injected violations, in several files of one run and of two."""
    monkeypatch.setattr(generate, "PART", 3000)
    for run in "ab"[: 1 + seed % 2]:
        generate.generate(tmp_path / run, 8000, queues=5, each=1, seed=seed, run=run)
    properties = PROFILES["any"].properties
    columns = in_one_pass([tmp_path], properties)
    assert columns is not None
    assert columns == audit_paths([tmp_path], properties=properties)
    assert columns == by_rows([tmp_path], properties)


def test_what_cannot_be_taken_by_columns_is_judged_by_rows(tmp_path: Path) -> None:
    """A row out of place, one recorded inside a queue, a property whose state is of no type."""
    made = generate.generate(tmp_path, 2000, queues=2, seed=1)
    path = tmp_path / made.files[0]
    first, second, *rest = read_history(path).events
    header = read_history(path).header
    properties = PROFILES["any"].properties

    def judged(*events: Event) -> AuditReport | None:
        write_history(path, events, header)
        return in_one_pass([tmp_path], properties)

    assert judged(first, second, *rest) is not None
    assert judged(second, first, *rest) is None
    assert audit_paths([tmp_path]).statistics["rejected"] == 1
    model = msgspec.structs.replace(rest[-1], lvl="model")
    assert judged(first, second, *rest[:-1], model) is None
    write_history(path, [first, second, *rest], header)

    class Untyped(Property[int]):
        id = "own"
        reads = frozenset({"note"})

        def map(self, events: Iterable[Event]) -> int:
            return len(list(events))

        def combine(self, left: int, right: int) -> int:
            return left + right

        def finish(self, summary: int) -> Finding:
            return Finding.of(self.id, summary)

    assert in_one_pass([tmp_path], [Untyped()]) is None
    assert audit_paths([tmp_path], properties=[Untyped()]).findings[0].n_tested


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("rabbit-classic-lockstep", 0.001),
        ("rabbit-classic-competing", 0.05),
        pytest.param("rabbit-classic-lockstep", 0.05, marks=pytest.mark.slow),
        pytest.param("rabbit-classic-lockstep", 0.5, marks=pytest.mark.slow),
        pytest.param("rabbit-classic-competing", 0.001, marks=pytest.mark.slow),
        pytest.param("rabbit-classic-competing", 0.5, marks=pytest.mark.slow),
    ],
)
def test_lost_lines_are_no_violation(tmp_path: Path, name: str, rate: float) -> None:
    """What may be in the lost lines is allowed for, so a compliant history has no violation."""
    path = tmp_path / "h.jsonl"
    path.write_bytes(spoiled(name, rate))
    report = audit_paths([path])
    assert not [f for f in report.findings if f.verdict is Verdict.VIOLATED]
    assert len(report.quarantine) == report.statistics["rejected"] > 0
    assert report.runs[0].gaps <= len(report.quarantine)
    assert adds_up(report)


@pytest.mark.slow
def test_a_folder_with_broken_files_is_audited_as_far_as_it_goes(folder: Path) -> None:
    report = audit_paths([folder])
    runs = ["cut", "spoiled", "whole", "wrong order"]
    assert [r.run for r in report.runs if r.events] == runs
    whole_files = {Path(r.source).name: r.reason for r in report.quarantine if r.line == 0}
    assert set(whole_files) == {"binary.jsonl", "future.jsonl", "cut.jsonl.gz"}
    assert "'qh/7' cannot be read" in whole_files["future.jsonl"]
    assert "the compressed file is cut off" in whole_files["cut.jsonl.gz"]
    assert report.verdict is Verdict.VIOLATED
    violated = [(f.subject, f.property) for f in report.findings if f.verdict is Verdict.VIOLATED]
    assert violated == [("wrong order", "P4")]
    assert adds_up(report)


def test_rejects_a_file_that_the_caller_named(folder: Path) -> None:
    for name in ("binary.jsonl", "future.jsonl", "cut.jsonl.gz"):
        with pytest.raises(HistoryError, match=name):
            audit_paths([folder / name])


def test_rejects_paths_without_histories(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="no history there"):
        audit_paths([tmp_path])
    with pytest.raises(HistoryError, match="no such file or folder"):
        audit_paths([tmp_path / "nowhere"])


def test_rejects_unknown_names() -> None:
    with pytest.raises(PipelineError, match="no engine 'hadoop'; known are local and spark"):
        audit_paths([DATA], engine="hadoop")
    with pytest.raises(PipelineError, match="no property 'P77'; did you mean P7"):
        audit_paths([DATA], properties=["P77"])


def test_properties_are_chosen_by_id() -> None:
    report = audit_paths([DATA], properties=["P5", "P4"])
    assert [f.property for f in report.findings] == ["P5", "P4"] * 2


def test_files_of_one_run_and_recorder_are_parts_in_the_order_of_their_index(
    tmp_path: Path,
) -> None:
    def part(name: str, *indices: int) -> None:
        head = {"schema": "qh/1", "run": "r"}
        events(tmp_path / name, head, *({"i": i, "t": i, "ev": "note"} for i in indices))

    part("part10.jsonl", 5, 6)
    part("part9.jsonl", 1, 2)
    part("again.jsonl", 1, 2)
    report = audit_paths([tmp_path])
    assert [(r.run, r.events, r.gaps) for r in report.runs] == [("r", 4, 0)]
    assert [r.duplicate for r in report.quarantine] == [True, True]


def test_recorders_of_one_run_are_merged_by_time(tmp_path: Path) -> None:
    """The publisher's recorder and the consumer's: only together they show that nothing is a phantom."""

    def recorder(name: str, clk: str, *rows: dict[str, object]) -> Path:
        head = {"schema": "qh/1", "run": "r", "rec": name, "clk": clk}
        return events(tmp_path / clk / f"{name}.jsonl", head, *rows)

    sent = {"i": 0, "t": 1, "ev": "publish", "ph": "invoke", "m": "m0", "q": "q"}
    got = {"i": 0, "t": 5, "ev": "deliver", "m": "m0", "q": "q"}
    other = {"i": 1, "t": 9, "ev": "publish", "ph": "invoke", "m": "m1", "q": "q"}
    recorder("consumer", "one", got)
    recorder("publisher", "one", sent, other)
    (p1,) = audit_paths([tmp_path / "one"], properties=["P1"]).findings
    assert (p1.verdict, p1.n_tested) == (Verdict.OK, 1)
    recorder("stranger", "two", other)
    with pytest.raises(HistoryError, match="times of two clocks do not compare"):
        audit_paths([tmp_path])


def test_files_of_one_name_in_two_folders_are_two_runs(tmp_path: Path) -> None:
    for name in ("a", "b"):
        events(tmp_path / name / "h.jsonl", {"i": 0, "ev": "note"})
    assert len(audit_paths([tmp_path]).runs) == 2


def test_one_file_may_hold_several_runs(tmp_path: Path) -> None:
    path = events(tmp_path / "h.jsonl", *({"i": 0, "ev": "note", "run": r} for r in "ab"))
    assert [(r.run, r.events) for r in audit_paths([path]).runs] == [("a", 1), ("b", 1)]


def test_a_history_without_events_is_a_run_about_which_nothing_is_known(tmp_path: Path) -> None:
    path = events(tmp_path / "h.jsonl", {"schema": "qh/1"})
    report = audit_paths([path])
    assert [(r.run, r.events) for r in report.runs] == [("h", 0)]
    assert report.verdict is Verdict.INCONCLUSIVE


@pytest.mark.slow
def test_parquet_is_audited_like_json_lines(tmp_path: Path) -> None:
    source = DATA / "rabbit-classic-lockstep.jsonl.gz"
    path = tmp_path / "rabbit-classic-lockstep.parquet"
    history = read_history(source)
    write_history(path, history.events, history.header)
    of_source = [f for f in whole().findings if f.subject == "rabbit-classic-lockstep"]
    assert audit_paths([path]).findings == of_source


def test_the_package_costs_nothing_until_spark_is_asked_for() -> None:
    code = (
        "import sys; from seriatim_models.pipeline import audit_paths; "
        f"audit_paths([{str(DATA)!r}], properties=['P4']); "
        "print([m for m in ('pyspark', 'pandas', 'pyarrow') if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_the_command_judges_parquet_without_pandas(tmp_path: Path) -> None:
    """Which pyarrow imports by itself; what asks for it afterwards still gets it."""
    generate.generate(tmp_path / "made", 2000, queues=2, kinds=())
    code = (
        f"import sys; from seriatim_models.cli import run; run(['audit', {str(tmp_path / 'made')!r}]); "
        "import pyarrow as pa; print('pandas' in sys.modules, len(pa.table({'a': [1]}).to_pandas()))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines()[-1] == "False 1"


def test_a_file_that_changes_while_it_is_read_stands_as_far_as_it_was_read(tmp_path: Path) -> None:
    from seriatim_models.history import Rejected
    from seriatim_models.pipeline.audit.runs import Placed, read

    path = events(tmp_path / "h.jsonl", *({"i": i, "t": i, "ev": "note"} for i in range(9000)))
    for paths, named in (([tmp_path], False), ([path], True)):
        (run,) = plan(paths).runs
        reading = read(run)
        first = next(reading)
        with path.open("a") as file:
            file.write('{"i": 99999, "t": 99999, "ev": "note"}\n')
        if named:
            with pytest.raises(HistoryError, match="changed while it was read"):
                list(reading)
            continue
        items = [first, *reading]
        (rejected,) = [item for item in items if isinstance(item, Rejected)]
        assert (rejected.line, rejected.reason) == (0, "changed while it was read")
        placed = [item.event.ev for item in items if isinstance(item, Placed)]
        assert placed == ["note"] * 9001 + ["gap"]


def test_an_event_of_another_clock_keeps_its_place_and_loses_its_times(tmp_path: Path) -> None:
    from seriatim_models.pipeline.audit.runs import Placed, read

    def note(i: int, **more: object) -> dict[str, object]:
        return {"i": i, "t": 10 + i, "t_lo": i, "ev": "note", **more}

    path = events(tmp_path / "h.jsonl", note(0, clk="a"), note(1, clk="b"), note(2, clk="a"))
    (run,) = plan([path]).runs
    seen = [item.event for item in read(run) if isinstance(item, Placed)]
    # Where it is said to have happened is no earlier than what stands before it.
    assert [(e.i, e.t, e.t_lo) for e in seen] == [(0, 10, 0), (1, 10, None), (2, 12, 2)]
    assert audit_paths([path]).statistics["events"] == 3


def test_an_audit_is_not_interrupted_by_collections_of_garbage() -> None:
    """They took a tenth of its time, and found none."""
    before, collected = gc.get_threshold(), 0

    def count(phase: str, _: dict[str, int]) -> None:
        nonlocal collected
        collected += phase == "start"

    gc.callbacks.append(count)
    try:
        audit_paths([DATA / "rabbit-classic-lockstep.jsonl.gz"])
        assert collected <= 4  # what reads the file may be looked at before and after
    finally:
        gc.callbacks.remove(count)
    assert gc.get_threshold() == before


def test_recorders_of_one_file_that_are_not_sorted_are_no_recording(tmp_path: Path) -> None:
    """One file that was put together of two: verdicts would be of another order of events."""

    def note(rec: str, i: int, ms: int) -> dict[str, object]:
        return {"i": i, "t": ms * 1_000_000, "ev": "note", "rec": rec}

    blocks = [note("a", 0, 0), note("a", 1, 100), note("b", 0, 1), note("b", 1, 101)]
    path = events(tmp_path / "h.jsonl", *blocks)
    with pytest.raises(HistoryError, match="event 0 of recorder b stands behind later ones"):
        audit_paths([path])
    assert audit_paths([tmp_path]).statistics["events"] == 0  # nothing of it is judged
    events(path, *sorted(blocks, key=lambda e: str(e["i"])))
    assert audit_paths([path]).statistics["events"] == 4


def two_events(path: Path, run: str, *more: object) -> Path:
    sent = {"i": 0, "ev": "publish", "t": 1, "m": f"of {run}", "q": "q", "proc": "p"}
    got = {"i": 1, "ev": "deliver", "t": 2, "m": f"of {run}", "q": "q", "proc": "w"}
    return events(path, {"schema": "qh/1", "run": run}, sent, got, *more)


def test_a_run_that_is_over_takes_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what was found of it; its summaries took 100 kB."""
    paths = [two_events(tmp_path / f"{n}.jsonl", f"r{n}") for n in range(20)]
    open_: list[int] = []
    end = engine._Runs.end

    def counted(runs: engine._Runs, run: str) -> None:
        open_.append(len(runs.open))
        end(runs, run)

    monkeypatch.setattr(engine._Runs, "end", counted)
    monkeypatch.setattr(engine, "_by_columns", lambda *_: None)
    report = audit_paths(paths)
    assert open_ == [1] * 20
    assert len(report.findings) == 20 * len(BLACKBOX)
    assert len(report.runs) == 20


def not_whole(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs that are from now on not judged by columns as a whole."""
    by_row: list[str] = []
    end = engine._Runs.end

    def noted(runs: engine._Runs, run: str) -> None:
        by_row.append(run)
        end(runs, run)

    monkeypatch.setattr(engine._Runs, "end", noted)
    return by_row


def test_of_several_runs_each_is_judged_by_columns_that_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others go row by row; the report is the same as if all did."""
    paths = [two_events(tmp_path / f"{n}.jsonl", f"r{n}") for n in range(4)]
    paths[1].write_bytes(paths[1].read_bytes() + b"half a li\n")
    by_row = not_whole(monkeypatch)
    seen: list[int] = []
    report = audit_paths(paths, on_events=seen.append)
    assert by_row == ["r1"]
    assert seen == sorted(seen)
    assert adds_up(report)
    monkeypatch.setattr(engine, "_by_columns", lambda *_: None)
    assert audit_paths(paths) == report
    assert by_row == ["r1", "r0", "r1", "r2", "r3"]


@pytest.mark.parametrize("fault", ["", "loses", "doubles"])
@pytest.mark.parametrize("spoilt", ["", "header", "index", "stamp", "line"])
def test_parts_of_one_recorder_are_judged_by_columns(
    fault: str, spoilt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one file is; and row by row where the second is not like the first, or does not follow it."""
    lines = [json.loads(e) for e in map(msgspec.json.encode, SimulatedBroker(5, 200, fault=fault).run())]  # fmt: skip
    header = {"schema": "qh/1", "run": "r", "rec": "a", "lvl": "api"}
    half = len(lines) // 2
    later = [{**header, "broker": "b"} if spoilt == "header" else header, *lines[half:]]
    if spoilt in ("index", "stamp"):
        later[1] = {**later[1], **({"i": 1} if spoilt == "index" else {"t": -1})}
    parts = [
        events(tmp_path / "a.jsonl", header, *lines[:half]),
        events(tmp_path / "b.jsonl", *later, *([[]] if spoilt == "line" else [])),
    ]
    by_columns: list[bool] = []
    judged = engine._by_columns

    def noted(*given: object) -> object:
        found = judged(*given)  # type: ignore[arg-type]
        by_columns.append(found is not None)
        return found

    monkeypatch.setattr(engine, "_by_columns", noted)
    report = audit_paths(parts)
    assert by_columns == [not spoilt]
    assert adds_up(report)
    monkeypatch.setattr(engine, "_by_columns", lambda *_: None)
    assert audit_paths(parts) == report


def test_lines_that_their_recorder_completed_are_judged_by_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `generate` writes as JSON lines, with one violation of each kind; nothing is completed again."""
    generate.generate(tmp_path, 3000, queues=5, format="jsonl")
    by_row = not_whole(monkeypatch)
    report = audit_paths([tmp_path])
    assert report.verdict is Verdict.VIOLATED
    assert by_row == []
    monkeypatch.setattr(engine, "_by_columns", lambda *_: None)
    assert audit_paths([tmp_path]) == report
    assert by_row == ["synthetic"]


def test_a_run_that_a_later_recording_names_on_its_lines_is_judged_with_those(
    tmp_path: Path,
) -> None:
    again = {"i": 2, "ev": "deliver", "t": 3, "run": "a", "m": "nobody's", "q": "q", "proc": "w"}
    paths = [
        two_events(tmp_path / "a.jsonl", "a"),
        two_events(tmp_path / "b.jsonl", "b", again),
    ]
    report = audit_paths(paths)
    assert {f.subject for f in report.findings if f.verdict is Verdict.VIOLATED} == {"a"}
    assert [r.events for r in report.runs] == [3, 2]
    assert adds_up(report)


def _spoilt(folder: Path, seed: int) -> list[Path]:
    """A recording in up to three files of one or several recorders, with lines that are lost, cut or doubled."""
    choose = random.Random(seed)
    fault = choose.choice(["", *FAULTS])
    lines = [json.loads(msgspec.json.encode(e)) for e in SimulatedBroker(seed, 150, fault=fault).run()]  # fmt: skip
    recorders = choose.choice([1, 1, 2, 3])
    made: list[list[dict[str, object]]] = [[] for _ in range(recorders)]
    for line in lines:
        of = made[zlib.crc32(f"{seed}{line.get('conn')}{line.get('proc')}".encode()) % recorders]
        of.append({**line, "i": len(of) + 1})
    paths = []
    for n, of in enumerate(made):
        header: dict[str, object] = {
            "schema": "qh/1",
            "run": "r",
            "rec": f"rec{n}",
            "lvl": "api",
            "clk": "made",
        }
        if choose.random() < 0.2:
            header["params"] = {"unrecorded": ["consume"]}
        text = [json.dumps(line) for line in of]
        for _ in range(choose.choice([0, 0, 1, 3]) if len(text) > 9 else 0):
            at = choose.randrange(len(text))
            cut = text[at : at + 1]
            text[at : at + 1] = choose.choice([[], cut * 2, [line[:-9] for line in cut]])
        path = folder / f"{n}.jsonl"
        path.write_text("".join(f"{line}\n" for line in [json.dumps(header), *text]))
        paths.append(path)
    return paths


@pytest.mark.parametrize("seeds", [range(20), pytest.param(range(20, 150), marks=pytest.mark.slow)])
def test_spoilt_recordings_of_several_recorders_are_judged_as_row_by_row(
    seeds: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_columns: list[str] = []
    findings = engine._ColumnFold.findings

    def noted(fold: engine._ColumnFold) -> list[Finding]:
        by_columns.append(fold.statistics.run)
        return findings(fold)

    monkeypatch.setattr(engine._ColumnFold, "findings", noted)
    monkeypatch.setattr(engine, "BATCH", 50)
    verdicts: Counter[Verdict] = Counter()
    for seed in seeds:
        folder = tmp_path / str(seed)
        folder.mkdir()
        paths = _spoilt(folder, seed)
        report = audit_paths(paths)
        assert by_rows(paths) == report, seed
        verdicts[report.verdict] += 1
    assert len(verdicts) > 1
    assert len(seeds) // 2 < len(by_columns) < len(seeds)
