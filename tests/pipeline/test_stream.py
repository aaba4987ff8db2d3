"""A stream comes to what a batch audit comes to, and doing a batch twice changes nothing."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest

from seriatim_models.cli import run
from seriatim_models.history import Event, write_history
from seriatim_models.history.header import Header
from seriatim_models.pipeline import PipelineError, audit_paths
from seriatim_models.pipeline.audit import tables
from seriatim_models.properties.base import Verdict, Violations, WholeHistory
from seriatim_models.properties.blackbox import BLACKBOX

from .conftest import first_events
from .test_spark import pytestmark as pytestmark


def equal(a: Path, b: Path) -> None:
    """The tables of two folders, as sets of rows."""
    mine, theirs = tables.read(a), tables.read(b)
    for name, rows in mine.items():
        assert sorted(map(repr, rows.to_pylist())) == sorted(map(repr, theirs[name].to_pylist())), (
            name
        )


@pytest.mark.slow
def test_equal_to_a_batch_audit_and_idempotent(spark: Any, tmp_path: Path) -> None:
    from seriatim_models.pipeline.stream.streaming import Stream

    folder = tmp_path / "in" / "with space %20"
    folder.mkdir(parents=True)
    events = first_events("rabbit-classic-lockstep", 3000)
    for n in (1, 0, 2):  # the second part appears first
        path = folder / f"part{n}.jsonl.zst"
        write_history(path, events[1000 * n : 1000 * n + 1000], Header(run="r"))
        os.utime(path, (100 + n, 100 + n if n else 102))
    (folder / "future.jsonl").write_text('{"schema":"qh/7"}\n')
    (folder / "mixed.jsonl").write_text('{"i":0,"ev":"note"}\nhalf a li')
    seen: list[Any] = []
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
    (folder / "new.JSONL").write_text('{"i":0,"ev":"note"}\n')
    again.run(once=True)
    assert [r.run for r in again.report().runs] == ["mixed", "new", events[0].run]


def test_a_batch_that_is_killed_again_and_again_goes_on(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of many files is judged in steps, and goes on behind the last step that was done."""
    from seriatim_models.pipeline.stream import streaming as module

    monkeypatch.setattr(module, "BYTES", 1)
    (tmp_path / "in").mkdir()
    events = first_events("rabbit-classic-lockstep", 3000)
    for n in range(3):
        path = tmp_path / "in" / f"{2 - n}.jsonl"  # those that changed first are first
        write_history(path, events[1000 * n : 1000 * n + 1000], Header(run="r"))
        os.utime(path, (100 + n, 100 + n))
    advance = module.Stream._advance

    for begun in range(3):
        stream = module.Stream(spark, tmp_path / "in", tmp_path / "out", BLACKBOX)
        rows = [(f"file:{tmp_path}/in/{n}.jsonl", 100 + 2 - n) for n in range(3)]
        files = spark.createDataFrame(rows, "path string, changed long")
        steps = list[int]()

        def one_step(self: Any, number: int, some: Any, final: bool, of: list[int] = steps) -> None:
            if of:
                raise KeyboardInterrupt
            of.append(len(some))
            advance(self, number, some, final)

        monkeypatch.setattr(module.Stream, "_advance", one_step)
        if begun < 2:
            with pytest.raises(KeyboardInterrupt):
                stream._batch(files, 0)
            assert stream.state.batch == -1
        else:
            stream._batch(files, 0)
            assert stream.state.batch == 0
        assert steps == [1]
        assert len(stream._known()) == begun + 1
    monkeypatch.setattr(module.Stream, "_advance", advance)
    audit_paths([tmp_path / "in"], engine="spark", out=tmp_path / "batch")
    equal(tmp_path / "out", tmp_path / "batch")


def test_steps_grow(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a stream that lives judges many runs side by side, as soon as it has been seen to live."""
    from seriatim_models.pipeline.stream import streaming as module

    monkeypatch.setattr(module, "BYTES", 10)
    (tmp_path / "in").mkdir()
    stream = module.Stream(spark, tmp_path / "in", tmp_path / "out", BLACKBOX)
    side_by_side = spark.sparkContext.defaultParallelism
    paths = [tmp_path / "in" / f"{n:03d}.jsonl" for n in range(10 * side_by_side)]
    for path in paths:
        path.write_text("x" * 10)
    steps = stream._steps([(str(path), 0) for path in paths])
    assert [len(step) / side_by_side for step in steps] == [1, 2, 4, 3]
    assert [path for step in steps for path, _ in step] == list(map(str, paths))
    assert stream._steps([]) == [[]]


def test_rejects_an_output_inside_what_is_watched(spark: Any, tmp_path: Path) -> None:
    from seriatim_models.pipeline.stream.streaming import Stream

    with pytest.raises(PipelineError, match="must not lie in the folder"):
        Stream(spark, tmp_path, tmp_path / "out", BLACKBOX)
    with pytest.raises(PipelineError, match="no folder to watch"):
        Stream(spark, tmp_path / "nowhere", tmp_path / "out", BLACKBOX)


NOTE = '{{"i":{0},"t":{0},"ev":"note"}}\n'


def test_a_file_that_changes_after_it_was_read_is_in_quarantine(spark: Any, tmp_path: Path) -> None:
    """Also across a restart, also if it was read long ago, and said once however often it changes."""
    from seriatim_models.pipeline.stream.streaming import Stream

    (tmp_path / "in").mkdir()
    first, other, half = (tmp_path / "in" / f"{n}.jsonl" for n in ("a1", "other", "half"))
    head = '{"schema":"qh/1","run":"r"}\n'
    first.write_text(head + NOTE.format(0) + NOTE.format(1))
    other.write_text(NOTE.format(0))
    half.touch()  # a recorder has opened it and written nothing
    (tmp_path / "in" / ".a2.jsonl").write_text("is being written")
    seen: list[Any] = []

    def go_on() -> Stream:
        """A new process, as far as the state is concerned."""
        stream = Stream(spark, tmp_path / "in", tmp_path / "out", BLACKBOX, on_progress=seen.append)
        stream.run(once=True)
        return stream

    go_on()
    assert (seen[-1].changed, seen[-1].refused, seen[-1].events) == (0, 1, 3)
    was = first.stat().st_size
    with first.open("a") as file:
        file.write(NOTE.format(2))
    half.write_text(NOTE.format(0))
    stream = go_on()
    assert (seen[-1].changed, seen[-1].refused, seen[-1].events) == (1, 0, 4)
    (refused,) = stream.report().quarantine
    assert (refused.source, refused.line) == (str(first), 0)
    now = first.stat().st_size
    assert refused.reason.startswith(
        f"changed after it was read (it had {was:,} bytes and has {now:,})"
    )
    # What comes after it is read, beyond a gap; and nothing is doubled.
    with first.open("a") as file:
        file.write(NOTE.format(3))
    (tmp_path / "in" / "a2.jsonl").write_text(head + NOTE.format(4))
    other.unlink()
    report = go_on().report()
    assert [(r.run, r.events, r.gaps) for r in report.runs] == [
        ("half", 1, 0), ("other", 1, 0), ("r", 3, 2),
    ]  # fmt: skip
    assert report.quarantine == [refused]
    kept = tables.read(tmp_path / "out")["quarantine"].to_pylist()
    assert [(r["source"], r["line"], r["reason"]) for r in kept] == [
        (str(first), 0, refused.reason)
    ]
    before = (tmp_path / "out" / "stream.json").read_bytes()
    go_on()
    assert (tmp_path / "out" / "stream.json").read_bytes() == before, "nothing changed any more"


def test_files_that_were_empty_are_found_without_an_event(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the stream runs: more than one batch takes, and none that Spark is about to bring is taken twice."""
    from seriatim_models.pipeline.stream import streaming as module

    monkeypatch.setattr(module, "FILES", 2)
    (tmp_path / "in").mkdir()
    paths = [tmp_path / "in" / f"{n}.jsonl" for n in range(3)]
    for path in paths:
        path.touch()
    seen: list[Any] = []
    until = time.monotonic() + 100

    def stopping() -> bool:
        if seen and seen[-1].refused == len(paths):
            for path in (*paths, tmp_path / "in" / "new.jsonl"):
                if not path.exists() or not path.stat().st_size:
                    (tmp_path / path.name).write_text(NOTE.format(0))
                    (tmp_path / path.name).rename(path)
        assert time.monotonic() < until, seen[-1:]
        return bool(seen) and seen[-1].events == len(paths) + 1

    stream = module.Stream(
        spark, tmp_path / "in", tmp_path / "out", [BLACKBOX[0]], on_progress=seen.append
    )
    stream.run(every=0.2, stopping=stopping)
    # No progress may be reported before the first are found, but they come two at a time.
    assert list(dict.fromkeys(p.refused for p in seen if p.refused))[:2] == [2, 3]
    report = stream.report()
    assert report.statistics["lines"] == report.statistics["events"] == len(report.files)
    assert not report.quarantine


def test_what_was_appended_is_no_violation(spark: Any, tmp_path: Path) -> None:
    """The publish of a message is appended to a file that was read, its delivery comes in the next part."""
    from seriatim_models.pipeline.stream.streaming import Stream

    (tmp_path / "in").mkdir()
    head = '{"schema":"qh/1","run":"r"}\n'
    sent = '{{"i":{0},"t":{0},"ev":"publish","m":"m{0}","q":"q"}}\n'
    got = '{{"i":{0},"t":{0},"ev":"deliver","m":"m{1}","q":"q","ctag":"c"}}\n'
    first = tmp_path / "in" / "1.jsonl"
    first.write_text(head + sent.format(0))
    verdicts = []
    for append in (False, True):
        stream = Stream(spark, tmp_path / "in", tmp_path / f"out{append}", BLACKBOX)
        stream.run(once=True)
        if append:
            with first.open("a") as file:
                file.write(sent.format(1))
        (tmp_path / "in" / "2.jsonl").write_text(head + got.format(2, 0) + got.format(3, 1))
        stream.run(once=True)
        verdicts.append({f.property: f.verdict for f in stream.report().findings}["P1"])
        (tmp_path / "in" / "2.jsonl").unlink()
    assert verdicts == [Verdict.VIOLATED, Verdict.OK]


def test_rejects_a_file_of_another_clock_and_goes_on(spark: Any, tmp_path: Path) -> None:
    from seriatim_models.pipeline.stream.streaming import Stream

    (tmp_path / "in").mkdir()
    seen: list[Any] = []
    stream = Stream(spark, tmp_path / "in", tmp_path / "out", BLACKBOX, on_progress=seen.append)
    for name, clk in (("a", "one"), ("b", "two"), ("c", "one")):
        head = f'{{"schema":"qh/1","run":"r","rec":"{name}","clk":"{clk}"}}\n'
        (tmp_path / "in" / f"{name}.jsonl").write_text(head + NOTE.format(1))
        stream.run(once=True)
    report = stream.report()
    assert [(r.run, r.events) for r in report.runs] == [("r", 2)]
    (refused,) = report.quarantine
    assert (Path(refused.source).name, refused.line) == ("b.jsonl", 0)
    assert "times of two clocks do not compare" in refused.reason
    assert seen[-1].refused == 1


def test_progress_says_how_far_it_is(spark: Any, tmp_path: Path) -> None:
    from seriatim_models.pipeline.stream.streaming import Stream

    (tmp_path / "in").mkdir()
    lines = ['{"schema":"qh/1","run":"r"}']
    for i, q in enumerate("aab"):
        lines.append(f'{{"i":{i},"t":{i},"ev":"publish","m":"m{i}","q":"{q}"}}')
    lines.append('{"i":3,"t":3,"ev":"deliver","m":"m0","q":"a","ctag":"c"}')
    lines.append('{"i":4,"t":4,"ev":"deliver","m":"never","q":"a","ctag":"c"}')
    path = tmp_path / "in" / "h.jsonl"
    path.write_text("\n".join(lines) + "\n")
    os.utime(path, (path.stat().st_mtime - 1000,) * 2)
    seen: list[Any] = []
    Stream(spark, tmp_path / "in", tmp_path / "out", BLACKBOX, on_progress=seen.append).run(
        once=True
    )
    (progress,) = seen
    assert (progress.batch, progress.files, progress.events, progress.new) == (0, 1, 5, 5)
    assert progress.backlog == {("r", "a"): 1, ("r", "b"): 1}
    assert (progress.violated, progress.violations) == (["r P1", "r P20"], 2)
    assert 1000 < progress.lag < 1100
    assert 0 < progress.seconds < 100


def test_a_damaged_state_ends_the_stream_in_one_sentence_and_loses_nothing(
    spark: Any, tmp_path: Path
) -> None:
    from seriatim_models.pipeline.stream.streaming import Stream

    (tmp_path / "in").mkdir()
    events = first_events("rabbit-classic-lockstep", 300)
    write_history(tmp_path / "in" / "a.jsonl", events[:200], Header(run="r"))
    Stream(spark, tmp_path / "in", tmp_path / "out", BLACKBOX).run(once=True)
    (state,) = (tmp_path / "out").glob("batch-*/*.state")
    sound, before = state.read_bytes(), (tmp_path / "out" / "stream.json").read_bytes()
    state.write_bytes(sound[:-9])
    write_history(tmp_path / "in" / "b.jsonl", events[200:], Header(run="r"))
    with pytest.raises(PipelineError) as refused:
        Stream(spark, tmp_path / "in", tmp_path / "out", BLACKBOX).run(once=True)
    assert str(refused.value).startswith(f"{state}: is damaged")
    assert "delete" in str(refused.value)
    assert (tmp_path / "out" / "stream.json").read_bytes() == before
    state.write_bytes(sound)
    again = Stream(spark, tmp_path / "in", tmp_path / "out", BLACKBOX)
    again.run(once=True)
    assert again.report().statistics["events"] == 300


def test_parts_without_a_header_are_those_of_their_recording(spark: Any, tmp_path: Path) -> None:
    """Also if they come before what they continue; one whose beginning never comes is a run of its own."""
    import msgspec

    from seriatim_models.pipeline.stream.streaming import Stream

    folder = tmp_path / "in"
    folder.mkdir()
    recorded = first_events("rabbit-classic-lockstep", 300)
    events = [msgspec.structs.replace(e, run="", rec="") for e in recorded]
    write_history(folder / "z.jsonl", events[:100], Header(run="r", lvl="wire", rec="x"))
    for n, name in ((1, "b"), (2, "a")):
        rows = [msgspec.json.encode(e) for e in events[100 * n : 100 * n + 100]]
        (folder / f"{name}.jsonl").write_bytes(b"\n".join(rows) + b"\n")
    other = tmp_path / "in" / "other"
    other.mkdir()
    (other / "lone.jsonl").write_text(NOTE.format(7))
    for n, path in enumerate((folder / "a.jsonl", folder / "b.jsonl", folder / "z.jsonl")):
        os.utime(path, (100 + n, 100 + n))
    stream = Stream(spark, folder, tmp_path / "out", BLACKBOX)
    stream.run(once=True, files=1)
    audit_paths([folder], engine="spark", out=tmp_path / "batch")
    equal(tmp_path / "out", tmp_path / "batch")
    assert [r.run for r in stream.report().runs] == ["lone", "r"]


def test_a_property_of_ones_own_is_judged_from_batch_to_batch(spark: Any, tmp_path: Path) -> None:
    parts = [("publish", "pay-1"), ("publish", "refund-1")], [("deliver", "refund-1")]
    named = f"{Path(__file__).parents[2] / 'spec' / 'own' / 'refunds.py'}:RefundAfterPayment"
    args = ["stream", str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--once", "--quiet"]
    header, i = Header(run="r"), 0
    (tmp_path / "in").mkdir()
    for n, part in enumerate(parts):
        events = [Event(i=i + k, t=i + k, ev=ev, m=m) for k, (ev, m) in enumerate(part)]
        write_history(tmp_path / "in" / f"{n}.jsonl", events, header)
        i += len(part)
        code = run([*args, "--property", named, "--json", str(tmp_path / "found.json")])
        assert code == (3, 1)[n]
    found = json.loads((tmp_path / "found.json").read_text())["results"]
    assert [r["property"] for r in found if r["verdict"] == "violated"] == ["REFUND"]


def test_what_a_property_of_ones_own_raises_in_a_worker_is_a_sentence(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    write_history(tmp_path / "in" / "0.jsonl", [Event(i=0, t=0, ev="publish", m="m")], Header())
    rule = tmp_path / "rule.py"
    text = (Path(__file__).parents[2] / "spec" / "own" / "refunds.py").read_text()
    rule.write_text(f"{text}\n    def map(self, events):\n        raise SystemExit(0)\n")
    named = f"{rule}:RefundAfterPayment"
    args = ["stream", str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--once", "--quiet"]
    assert run([*args, "--property", named]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "in map of a property of yours: SystemExit: 0" in said
    assert "Traceback" not in said


class KillsItsWorker(WholeHistory):
    """Ends the process that judges by it, once in each folder of `SERIATIM_KILLS` that is there."""

    id = "KILLS"
    sentence = "Nothing is judged."
    source = "this file"
    kind = "safety"
    reads = frozenset({"publish"})

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def cases(self, events: list[Event], bad: Violations) -> int:
        for mark in sorted(Path(self.folder).iterdir()):
            mark.rmdir()
            os.kill(os.getpid(), signal.SIGKILL)
        return len(events)


@pytest.mark.parametrize("kills", [1, 3])
def test_a_killed_worker_costs_its_task_and_no_more(spark: Any, tmp_path: Path, kills: int) -> None:
    """Spark in one process gave up after the first, and the stream ended with exit code 2."""
    from seriatim_models.pipeline.stream.streaming import Stream

    events = first_events("rabbit-classic-lockstep", 300)
    (tmp_path / "in").mkdir()
    write_history(tmp_path / "in" / "a.jsonl", events, Header(run="a"))
    for n in range(kills):
        (tmp_path / "kills" / str(n)).mkdir(parents=True)
    seen: list[Any] = []
    properties = [*BLACKBOX, KillsItsWorker(str(tmp_path / "kills"))]
    Stream(spark, tmp_path / "in", tmp_path / "out", properties, on_progress=seen.append).run(
        once=True
    )
    assert [p.failed for p in seen] == [kills]
    audit_paths([tmp_path / "in"], engine="spark", properties=properties, out=tmp_path / "batch")
    equal(tmp_path / "out", tmp_path / "batch")


def test_rejects_a_property_whose_state_cannot_be_kept(spark: Any, tmp_path: Path) -> None:
    from seriatim_models.pipeline.stream.streaming import Stream

    class Bare(WholeHistory):
        id = "BARE"
        summary_type: ClassVar[Any] = None

    (tmp_path / "in").mkdir()
    with pytest.raises(PipelineError, match="BARE declares no summary_type"):
        Stream(spark, tmp_path / "in", tmp_path / "out", [Bare()])


def test_a_file_is_read_once_under_however_many_names(spark: Any, tmp_path: Path) -> None:
    """Spark follows links: of one file behind a link to its own folder it made 41."""
    from seriatim_models.pipeline.stream.streaming import Stream

    source = tmp_path / "in"
    (source / "day").mkdir(parents=True)
    (source / "day" / "a.jsonl").write_text('{"i":0,"ev":"publish","m":"a","q":"q"}\n')
    (source / "b.jsonl").symlink_to("day/a.jsonl")
    (source / "latest").symlink_to("day")
    os.mkfifo(source / "pipe.jsonl")
    (tmp_path / "c.jsonl").write_text('{"i":0,"ev":"publish","m":"c","q":"q"}\n')
    (source / "c.jsonl").symlink_to(tmp_path / "c.jsonl")
    stream = Stream(spark, source, tmp_path / "out", BLACKBOX)
    stream.run(once=True)
    assert stream.report().statistics["events"] == 2
    (refused,) = stream.state.refused
    assert refused.reason.startswith("is a pipe, a socket or a device")
    (source / "day" / "up").symlink_to("..")
    with pytest.raises(PipelineError, match=r"day/up: a link to a folder that it lies in"):
        Stream(spark, source, tmp_path / "out", BLACKBOX).run(once=True)
