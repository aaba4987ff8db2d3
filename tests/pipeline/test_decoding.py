"""Clean recordings are ingested in blocks, and by a second process: the same chunks and state as line by line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from seriatim_models.history import Event, Header, HistoryError, clean, write_history
from seriatim_models.history.clean import NotClean
from seriatim_models.pipeline import PipelineError
from seriatim_models.pipeline.audit import chunks, decoding, ingest
from seriatim_models.pipeline.audit.block_process import BlockProcess
from seriatim_models.pipeline.audit.decoding import RecorderState
from seriatim_models.pipeline.audit.inline import Inline
from seriatim_models.pipeline.audit.runs import plan
from seriatim_models.pipeline.state_file import read_state
from seriatim_workshop.bench.simulated_broker import SimulatedBroker
from seriatim_workshop.crosscheck import reading

from .conftest import first_events

set_ = msgspec.structs.replace
BARE = [set_(e, run="", rec="", clk="") for e in first_events("rabbit-classic-competing", 2500)]
UNNAMED = [e if "open" in e.ev or "close" in e.ev else set_(e, conn="") for e in BARE]
"""Connections are nearly always those of their recorder."""
COMMIT = Event(i=10**6, t=2**61, ev="commit", q="q", pos=3)


def half_named(events: list[Event]) -> list[Event]:
    return [set_(e, rec="a") if n % 2 else e for n, e in enumerate(events)]


Files = dict[str, tuple[dict[str, Any], list[Event]]]
CLEAN: dict[str, Files] = {
    "one file": {"a.jsonl": ({}, BARE)},
    "packed": {"a.jsonl.gz": ({}, BARE), "b.jsonl.zst": ({"run": "s"}, BARE[:700])},
    "parts": {"a.jsonl": ({}, BARE[:1000]), "b.jsonl": ({}, BARE[1000:1500]), "c.jsonl": ({}, BARE[1500:])},
    "a clock": {"a.jsonl": ({"clk": "host"}, BARE)},
    "a clock of the events": {"a.jsonl": ({}, [set_(e, clk="host") for e in BARE])},
    "a clock of some": {"a.jsonl": ({}, [set_(e, clk="host" if n > 1200 else "") for n, e in enumerate(BARE)])},
    "a recorder of every other event": {"a.jsonl": ({}, half_named(BARE))},
    "without connections": {"a.jsonl": ({}, UNNAMED)},
    "without connections at last": {"a.jsonl": ({}, BARE[:1200] + UNNAMED[1200:])},
    "without names": {"a.jsonl": ({"run": "", "rec": ""}, BARE)},
    "inside a broker": {"a.jsonl": ({"lvl": "broker"}, [set_(e, lvl="") for e in SimulatedBroker(3, 80).run()])},
    "complete": {"a.jsonl": ({"params": {"complete": True}}, BARE)},
    "whole": {"a.jsonl": ({"params": {"whole": True}}, BARE[5:])},
    "without stamps": {"a.jsonl": ({}, [set_(e, t=None) for e in BARE])},
    "before the epoch": {"a.jsonl": ({}, [set_(e, t=None if e.t is None else e.t - 2**62) for e in BARE])},
    "no event": {"a.jsonl": ({}, [])},
    "commits": {
        "a.jsonl": ({"params": {"committed": "processed"}}, [*BARE, COMMIT]),
    },
}  # fmt: skip


def written(folder: Path, files: Files) -> Path:
    folder.mkdir()
    for name, (header, events) in files.items():
        write_history(
            folder / name, events, Header(**{"run": "r", "rec": "a", "lvl": "api", **header})
        )
    return folder


class Ingested:
    """What came of an ingest: its chunks, its states and its counts."""

    def __init__(self, source: Path, workers: int = 1, slice_length: int = 300) -> None:
        out = source.parent / f"{source.name}-chunks"
        shutil.rmtree(out, ignore_errors=True)
        manifest = ingest.ingest(Inline(workers), plan([source]), out, slice_length)
        assert not active_children()
        self.chunks = [
            (run, c.rows, c.buckets, pq.read_table(out / c.path).to_pylist())
            for run, of in manifest.runs().items()
            for c in of
        ]
        self.states = [
            read_state(out / u.carry, "recorder", RecorderState, "")
            for u in manifest.units
            if u.carry
        ]
        self.counts = [(u.files, u.statistics) for u in manifest.units]
        self.rejected = [pq.read_table(out / name).to_pylist() for name in manifest.quarantine()]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ingested) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # it is compared, and no key


@pytest.fixture(autouse=True)
def every_file_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "APART", 0)


def line_by_line(source: Path) -> Ingested:
    def refuse(*_: object) -> None:
        raise NotClean("line by line")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "_decode_clean", refuse)
        return Ingested(source)


@pytest.mark.parametrize("files", CLEAN.values(), ids=CLEAN)
def test_blocks_give_what_lines_give(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = written(tmp_path / "in", files)
    expected = line_by_line(source)
    assert not expected.rejected
    assert sum(rows for _, rows, _, _ in expected.chunks) == sum(len(e) for _, e in files.values())
    monkeypatch.setattr(decoding, "_decode_by_line", lambda _: pytest.fail("it is clean"))
    assert Ingested(source) == expected


@pytest.mark.parametrize("name", ["parts", "complete", "no event"])
def test_a_second_process_writes_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = written(tmp_path / "in", CLEAN[name])
    alone = Ingested(source)
    begun: list[bool] = []
    made = decoding._decode_clean

    def noted(work: decoding.DecodeTask, *given: Any) -> Any:
        begun.append(work.apart)
        return made(work, *given)

    monkeypatch.setattr(decoding, "_decode_clean", noted)
    assert Ingested(source, workers=2) == alone
    assert begun == [True]


def damaged(raw: bytes) -> bytes:
    return raw + b"half a li\n"


def unsorted(raw: bytes) -> bytes:
    *before, a, b = raw.splitlines(keepends=True)
    return b"".join([*before, b, a])


def of_two_clocks(raw: bytes) -> bytes:
    head, *lines = raw.splitlines()
    clocked = [
        json.dumps({**json.loads(line), "clk": "a" if n < 2000 else "b"}).encode()
        for n, line in enumerate(lines)
    ]
    return b"\n".join([head, *clocked, b""])


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("spoil", [damaged, unsorted, of_two_clocks])
def test_what_is_not_clean_is_read_by_line(
    spoil: Callable[[bytes], bytes], workers: int, tmp_path: Path
) -> None:
    source = written(tmp_path / "in", CLEAN["one file"])
    path = source / "a.jsonl"
    path.write_bytes(spoil(path.read_bytes()))
    assert Ingested(source, workers) == line_by_line(source)
    out = source.parent / "in-chunks"
    named = chunks.read_manifest(out).paths()
    assert {str(p.relative_to(out)) for p in out.rglob("work-*/*")} == named, "nothing is left over"


def test_a_file_that_cannot_be_read_is_said_by_its_line(tmp_path: Path) -> None:
    path = written(tmp_path / "in", CLEAN["packed"]) / "a.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(
        HistoryError, match=r"a\.jsonl\.gz: line \d+: the compressed file is cut off"
    ):
        Ingested(path, 2)
    assert not active_children()


@pytest.mark.parametrize("when", ["send", "answer"])
def test_a_writer_that_is_killed_is_an_error_of_one_sentence(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = getattr(BlockProcess, when)

    def kill(self: BlockProcess, *given: bytes) -> object:
        self.kill()
        return killed(self, *given)

    monkeypatch.setattr(BlockProcess, when, kill)
    source = written(tmp_path / "in", CLEAN["one file"])
    with pytest.raises(PipelineError, match="wrote chunk files has ended: was it killed"):
        Ingested(source, 2)
    assert not active_children()


@pytest.mark.parametrize("files", [40, pytest.param(2000, marks=pytest.mark.night)])
def test_drawn_files_are_read_alike(files: int, capsys: pytest.CaptureFixture[str]) -> None:
    """A slice of `make crosscheck-reading`."""
    assert reading.main(["--files", str(files)]) == 0
    assert " 0 differences; violated in:\nP1 " in capsys.readouterr().out


def test_a_recorder_that_is_taken_for_two_shows_in_drawn_files(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it was before all events said their recorder or none."""

    def fill_in(events: Sequence[Event], name: str, default: str) -> None:
        if name != "rec":
            clean_fill_in(events, name, default)

    clean_fill_in = clean._fill_in
    monkeypatch.setattr(clean, "_fill_in", fill_in)
    assert reading.main(["--files", "40"]) == 1
    assert ": the audits differ in P" in capsys.readouterr().out
