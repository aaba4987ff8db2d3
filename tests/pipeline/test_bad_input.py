"""Every row of the table of bad input in spec/PIPELINE.md has a test whose docstring begins with the row's first cell.

One folder has most of it at once. Both engines and the stream must give the same answer to it.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import zstandard

from seriatim_models.history import Event, HistoryError, Rejected, write_history
from seriatim_models.history.faults import REASON_MAX, TEXT_MAX
from seriatim_models.history.header import Header
from seriatim_models.history.lines import LINE_MAX, lines
from seriatim_models.pipeline import AuditReport, PipelineError, audit_paths, java
from seriatim_models.pipeline.audit.runs import Placed, plan, read
from seriatim_models.properties.blackbox import BLACKBOX

from .conftest import DATA
from .test_spark import pytestmark as pytestmark
from .test_spark import same
from .test_stream import equal

LINES = 50_000
"""Of a file that grows: reading it takes many times as long as writing a line more."""

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "spec" / "PIPELINE.md"


def cells(page: str) -> list[str]:
    """The first cell of each row under the heading of bad input."""
    _, _, section = page.partition("### Bad input")
    rows = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return [row.split("|")[1].strip() for row in rows[2:]]


def first_words(folder: Path) -> set[str]:
    """What the docstrings of tests begin with, up to the colon."""
    out = set()
    for file in folder.glob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                out.add((ast.get_docstring(node) or "").partition(":")[0])
    return out


def test_every_row_has_a_test() -> None:
    rows = cells(PAGE.read_text())
    assert len(rows) > 10
    assert not [row for row in rows if row not in first_words(HERE)]


def note(i: int, **more: object) -> str:
    return json.dumps({"i": i, "t": i, "ev": "note", **more}) + "\n"


def head(run: str, **more: object) -> str:
    return json.dumps({"schema": "qh/1", "run": run, **more}) + "\n"


def events(n: int) -> list[Event]:
    return [Event(i=i, t=i, ev="note", m=hex(pow(i + 2, 99, 2**127 - 1))) for i in range(n)]


def make(top: Path) -> None:
    """Much that is wrong, each in a run of its own."""
    for inner in ("twice", "several"):
        (top / inner).mkdir(parents=True)
    rows = [note(0), "no json\n", '{"i":"x","ev":"note"}\n', note(3), "\n", note(2), note(4)]
    (top / "lines.jsonl").write_text(head("lines") + "".join(rows))
    long = [note(0), "x" * 10**6 + "\n", note(1, ph="y" * 10**6), note(2)]
    (top / "long.jsonl").write_text(head("long") + "".join(long))
    whole = head("half") + "".join(map(note, range(100)))
    (top / "half.jsonl").write_text(whole[:-9])
    for suffix in (".jsonl.gz", ".jsonl.zst", ".parquet"):
        path = top / f"cut{suffix}"
        write_history(path, events(6_000), Header(run=f"cut{suffix}"))
        path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    shutil.copy(DATA / "rabbit-classic-competing.jsonl.gz", top / "qh0.jsonl.gz")
    (top / "future.jsonl").write_text('{"schema":"qh/7"}\n' + note(0))
    (top / "empty.jsonl").touch()
    (top / "parts.jsonl").mkdir()  # a folder that is called like a file
    (top / "parts.jsonl" / "inside.jsonl").write_text(note(0))
    for name in "ab":
        (top / "twice" / f"{name}.jsonl").write_text(head("twice") + note(0) + note(1))
    for name, times in (("a", (1, 5)), ("b", (2, 6))):
        notes = "".join(note(n, t=t, m=f"{name}{t}") for n, t in enumerate(times))
        (top / "several" / f"{name}.jsonl").write_text(head("several", rec=name, clk="c") + notes)
    (top / "clock.jsonl").write_text(head("clock", clk="a") + note(0) + note(1, clk="b"))


class EngineAnswer(NamedTuple):
    """The answer of one engine, or of the stream."""

    report: AuditReport
    folder: Path

    def file(self, name: str) -> list[int]:
        """Its lines, header, blank, events and rejected."""
        (file,) = [f for f in self.report.files if Path(f.source).name == name]
        return [file.lines, file.header, file.blank, file.events, file.rejected]

    def run(self, name: str) -> tuple[int, int]:
        """Its events and gaps."""
        (run,) = [r for r in self.report.runs if r.run == name]
        return run.events, run.gaps

    def left_out(self, name: str) -> list[Rejected]:
        return [r for r in self.report.quarantine if r.source.endswith(f"/{name}")]


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose folder `in` has much that is wrong."""
    folder = tmp_path_factory.mktemp("bad")
    make(folder / "in")
    return folder


@pytest.fixture(scope="module")
def local(top: Path) -> EngineAnswer:
    """Of the local engine."""
    return EngineAnswer(audit_paths([top / "in"]), top)


@pytest.fixture(scope="module")
def on_spark(spark: Any, top: Path) -> EngineAnswer:
    """Of Spark's."""
    return EngineAnswer(audit_paths([top / "in"], engine="spark", out=top / "batch"), top)


@pytest.fixture(scope="module")
def streamed(spark: Any, top: Path) -> EngineAnswer:
    """Of the stream."""
    from seriatim_models.pipeline.stream.streaming import Stream

    stream = Stream(spark, top / "in", top / "stream", BLACKBOX)
    stream.run(once=True)
    report = stream.report()
    report.quarantine = stream.left_out(1000)
    return EngineAnswer(report, top)


@pytest.fixture(
    params=[
        "local",
        pytest.param("on_spark", marks=pytest.mark.slow),
        pytest.param("streamed", marks=pytest.mark.slow),
    ]
)
def answer(request: pytest.FixtureRequest) -> EngineAnswer:
    """Of each of them: Spark's two take half a minute to begin with, so they are for the slow tests."""
    found: EngineAnswer = request.getfixturevalue(request.param)
    return found


@pytest.mark.slow
def test_engines_and_stream_agree(
    local: EngineAnswer, on_spark: EngineAnswer, streamed: EngineAnswer
) -> None:
    same(on_spark.report, local.report)
    assert streamed.report.statistics == local.report.statistics
    equal(streamed.folder / "stream", on_spark.folder / "batch")


@pytest.mark.slow
def test_lines(answer: EngineAnswer) -> None:
    """lines that are no events: left out, with their place, and a gap where they stood."""
    assert answer.file("lines.jsonl") == [8, 1, 1, 3, 3]
    assert answer.run("lines") == (3, 2)
    assert [(r.line, r.text) for r in answer.left_out("lines.jsonl")] == [
        (3, "no json"), (4, '{"i":"x","ev":"note"}'), (7, note(2).strip()),
    ]  # fmt: skip
    assert "must rise" in answer.left_out("lines.jsonl")[2].reason


def test_long_lines(answer: EngineAnswer) -> None:
    """a line of any length: it costs no more to keep than a short one."""
    first, second = answer.left_out("long.jsonl")
    assert first.text == "x" * TEXT_MAX
    assert len(second.text) == TEXT_MAX
    assert second.reason.startswith("field ph: 'yyy")
    assert len(second.reason) == REASON_MAX


def test_lines_that_packing_makes_small(tmp_path: Path) -> None:
    """a file packed a thousandfold: what is unpacked at a time is bounded, in memory and so in time."""
    path = tmp_path / "h.jsonl.zst"
    text = b"[]" * 2500 + b"\n"
    path.write_bytes(zstandard.compress(text * 10_000))
    assert path.stat().st_size < 10_000
    tracemalloc.start()
    try:
        assert sum(len(line.raw) for line in lines(path)) == 10_000 * 5000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < LINE_MAX + 2**20 < 10_000 * 5000


def test_half_written(answer: EngineAnswer) -> None:
    """a half-written file: it counts as far as it goes."""
    assert answer.file("half.jsonl") == [101, 1, 0, 99, 1]
    for suffix in (".jsonl.gz", ".jsonl.zst"):
        (rest,) = [r for r in answer.left_out(f"cut{suffix}") if not r.line]
        assert "cut off" in rest.reason
        n, header, _, counted, rejected = answer.file(f"cut{suffix}")
        assert 6_000 > n == header + counted + rejected > 1_000
    (rest,) = answer.left_out("cut.parquet")
    assert rest.line == 0


def test_empty(answer: EngineAnswer) -> None:
    """an empty file: in quarantine as a whole, and no file of the report."""
    (rest,) = answer.left_out("empty.jsonl")
    assert (rest.line, rest.reason) == (0, "line 1: the file is empty")


@pytest.mark.slow
def test_named(spark: Any, top: Path) -> None:
    """a file that the caller named himself and that cannot be read: an error of one sentence."""
    for name in ("future.jsonl", "empty.jsonl", "cut.parquet", "cut.jsonl.gz"):
        for engine in ("local", "spark"):
            with pytest.raises(HistoryError, match=name) as raised:
                audit_paths([top / "in" / name], engine=engine)
            assert "\n" not in str(raised.value)


def test_versions(answer: EngineAnswer) -> None:
    """schema versions mixed: those that are known side by side, the others in quarantine."""
    assert answer.file("qh0.jsonl.gz")[3] > 10_000
    (whole,) = answer.left_out("future.jsonl")
    assert whole.line == 0
    assert "'qh/7' cannot be read" in whole.reason


def test_twice(answer: EngineAnswer) -> None:
    """two recordings of one run by one recorder: the first stands."""
    assert answer.run("twice") == (2, 0)
    assert [(r.line, r.duplicate) for r in answer.left_out("b.jsonl")] == [(2, True), (3, True)]


def test_several(answer: EngineAnswer) -> None:
    """one run recorded by several recorders: merged by time."""
    assert answer.run("several") == (4, 0)
    (run,) = plan([answer.folder / "in" / "several"]).runs
    placed = [item.event.m for item in read(run) if isinstance(item, Placed)]
    assert placed == ["a1", "b2", "a5", "b6"]


@pytest.mark.slow
def test_two_clocks(spark: Any, tmp_path: Path) -> None:
    """clocks of several machines in one run: an audit refuses it; a stream refuses the later file and goes on."""
    from seriatim_models.pipeline.stream.streaming import Stream

    (tmp_path / "in").mkdir()
    for name in "ab":
        text = head("r", rec=name, clk=f"host-{name}") + note(0)
        (tmp_path / "in" / f"{name}.jsonl").write_text(text)
    for engine in ("local", "spark"):
        with pytest.raises(HistoryError, match="times of two clocks do not compare"):
            audit_paths([tmp_path / "in"], engine=engine)
    stream = Stream(spark, tmp_path / "in", tmp_path / "out", BLACKBOX)
    stream.run(once=True)
    (refused,) = stream.report().quarantine
    assert "times of two clocks do not compare" in refused.reason
    assert stream.report().statistics["events"] == 1


def test_another_clock(answer: EngineAnswer) -> None:
    """an event of another clock than its recorder's first: keeps its place, and its times are those beside it."""
    assert answer.run("clock") == (2, 0)
    (run,) = [r for r in plan([answer.folder / "in"]).runs if r.run == "clock"]
    placed = [item.event for item in read(run) if isinstance(item, Placed)]
    assert [(e.i, e.t) for e in placed] == [(0, 0), (1, 0)]


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Callable[[], int]]:
    """Somebody writes to a file all the time. Called, it makes him stop and says how many events he wrote."""
    path = tmp_path / "in" / "h.jsonl"
    path.parent.mkdir()
    path.write_text(head("r") + "".join(map(note, range(LINES))))
    stopped = threading.Event()
    written = [LINES]

    def write() -> None:
        while not stopped.wait(0.002):
            with path.open("a") as file:
                file.write(note(written[0]))
            written[0] += 1

    thread = threading.Thread(target=write)
    thread.start()

    def stop() -> int:
        stopped.set()
        thread.join()
        return written[0]

    yield stop
    stop()


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.slow)])
def test_changes(spark: Any, engine: str, tmp_path: Path, growing: Callable[[], int]) -> None:
    """a file that changes while it is read: what was read stands, and the next audit reads it anew."""
    out = tmp_path / "out" if engine == "spark" else None
    report = audit_paths([tmp_path / "in"], engine=engine, out=out)
    there = growing()
    (rest,) = [r for r in report.quarantine if r.line == 0]
    assert rest.reason == "changed while it was read"
    assert LINES <= report.statistics["events"] <= there
    assert report.runs[0].gaps >= 1
    again = audit_paths([tmp_path / "in"], engine=engine, out=out)
    assert (again.statistics["events"], again.quarantine) == (there, [])


@pytest.mark.slow
def test_changes_under_a_stream(spark: Any, tmp_path: Path, growing: Callable[[], int]) -> None:
    """a file that changes after a stream read it: in quarantine, once, and its run has a gap."""
    from seriatim_models.pipeline.stream.streaming import Stream

    stream = Stream(spark, tmp_path / "in", tmp_path / "out", BLACKBOX)
    stream.run(once=True)
    growing()
    for _ in range(2):
        stream.run(once=True)
        reasons = sorted(r.reason for r in stream.left_out(1000) if not r.line)
        assert [r.partition(" (")[0] for r in reasons] == [
            "changed after it was read", "changed while it was read",
        ]  # fmt: skip
    assert stream.report().runs[0].gaps >= 2


def test_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """no Java: one sentence."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(java, "find_spec", lambda _: None)
    with pytest.raises(
        PipelineError, match=r"needs Java 17 or newer.*--engine local needs no Java"
    ):
        java.java_home()


def test_what_is_no_file_in_a_folder_is_named(tmp_path: Path) -> None:
    """It was passed over in silence: a link to a recording that is gone, say, or a folder that cannot be listed."""
    (tmp_path / "a.jsonl").write_text('{"i":0,"ev":"publish","m":"a","q":"q"}\n')
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "zeros.jsonl").symlink_to("/dev/zero")
    (tmp_path / "gone.jsonl").symlink_to("nowhere")
    (tmp_path / "itself.jsonl").symlink_to("itself.jsonl")
    (tmp_path / "again.jsonl").symlink_to("a.jsonl")
    (tmp_path / "up").symlink_to(".")
    (tmp_path / "folder.jsonl").mkdir()
    report = audit_paths([tmp_path], engine="local")
    assert {Path(r.source).name: r.reason.partition(";")[0] for r in report.quarantine} == {
        "pipe.jsonl": "is a pipe, a socket or a device, not a file",
        "zeros.jsonl": "is a pipe, a socket or a device, not a file",
        "gone.jsonl": "cannot be read: No such file or directory",
        "itself.jsonl": "cannot be read: Too many levels of symbolic links",
    }
    assert report.statistics["events"] == 1


def test_a_folder_that_cannot_be_listed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl").write_text('{"i":0,"ev":"publish","m":"a","q":"q"}\n')
    closed = tmp_path / "closed"
    closed.mkdir()
    listed, access = os.scandir, os.access

    def scandir(path: str) -> Any:
        if Path(path) == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(os, "access", lambda path, mode: path != closed and access(path, mode))
    (named,) = audit_paths([tmp_path], engine="local").quarantine
    assert (named.source, named.reason) == (str(closed), "is a folder that cannot be listed")


@pytest.mark.skipif(not Path("/proc/kmsg").exists(), reason="Linux has it")
def test_what_the_system_makes_while_it_is_read_is_a_sentence(tmp_path: Path) -> None:
    """It calls itself a file, and reading it waits for ever."""
    (tmp_path / "k.jsonl").symlink_to("/proc/kmsg")
    with pytest.raises(HistoryError, match="made by the system while it is read"):
        audit_paths([tmp_path / "k.jsonl"], engine="local")
