"""A recording changes at any moment of an ingest or of a stream's update: what is said is of what was read, or that it
changed, and the next ingest comes to what the file then holds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seriatim_models import files
from seriatim_models.history import HistoryError, lines, reading, table, write_history
from seriatim_models.history.header import Header
from seriatim_models.pipeline.audit import columns, tables
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.pipeline.stream.run_state import ArrivedFile, RunState
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_workshop import fuzz_formats

from .conftest import first_events

EVENTS = [
    msgspec.structs.replace(e, run="", rec="", clk="")
    for e in first_events("rabbit-classic-lockstep", 120)
]
MOMENTS = 12
FIRST = 10
"""Of all moments, and at the beginning, so many are tried."""


def write(path: Path, begin: int, end: int) -> None:
    """A recording that its recorder completed, so that Parquet is taken by columns."""
    write_history(path, EVENTS[begin:end], Header(run="r", params={"complete": True}))


def _other(path: Path, begin: int, end: int) -> None:
    beside = path.with_name(f"beside{path.suffix}")
    write(beside, begin, end)
    beside.replace(path)


def _instead(put: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        path.unlink()
        put(path)

    return change


CHANGES: dict[str, Callable[[Path], object]] = {
    "appended to": lambda path: write(path, 0, 120),
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "emptied": lambda path: os.truncate(path, 0),
    "replaced": lambda path: _other(path, 0, 30),
    "deleted": lambda path: path.unlink(),
    "a folder": _instead(lambda path: path.mkdir()),
    "a pipe": _instead(os.mkfifo),
}
LENGTHS = {"appended to": 120, "replaced": 30}
"""Events of what the file then is."""


class Moments:
    """Counts what reading does: each file that is opened, each line, each batch; changes it at one of these moments."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.n, self.at = 0, -1
        self.change: Callable[[], object] = lambda: None

        def opened(*given: Any) -> Any:
            self.tick()
            return open_file(*given)

        def each(what: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
            def counted(*given: Any) -> Iterator[Any]:
                for item in what(*given):
                    self.tick()
                    yield item
                self.tick()

            return counted

        open_file = files.open_file
        for module in (lines, table, columns):
            monkeypatch.setattr(module, "open_file", opened)
        monkeypatch.setattr(reading, "lines", each(lines.lines))
        monkeypatch.setattr(columns, "batches", each(columns.batches))

    def tick(self) -> None:
        if self.n == self.at:
            self.at = -1
            self.change()
        self.n += 1

    def count(self, what: Callable[[], object]) -> list[int]:
        """The moments of `what` that are tried."""
        self.n = 0
        what()
        return sorted({*range(min(FIRST, self.n)), *range(0, self.n, max(1, self.n // MOMENTS))})


def _renewed(path: Path) -> None:
    path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
    write(path, 0, 60)


def _ingested(path: Path, out: Path) -> dict[str, object] | str:
    """The account of the tasks that Spark runs, or why there is none."""
    try:
        report = fuzz_formats._by_tasks(path.parent, out)
    except (HistoryError, PipelineError) as error:
        return str(error)
    if any(r.line == 0 and r.source == str(path) for r in report.quarantine):
        return f"{path}: left out: {report.quarantine[0].reason}"
    return fuzz_formats.account(report)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
@pytest.mark.parametrize("change", CHANGES)
def test_an_ingest_says_what_is_true_and_comes_to_what_is_there(
    change: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "in" / f"a{suffix}"
    path.parent.mkdir()
    moments = Moments(monkeypatch)
    moments.change = lambda: CHANGES[change](path)
    _renewed(path)
    before = _ingested(path, tmp_path / "before")
    assert isinstance(before, dict)
    tried = moments.count(lambda: _ingested(path, tmp_path / "counted"))
    CHANGES[change](path)
    after = _ingested(path, tmp_path / "after")
    for at in tried:
        _renewed(path)
        out = tmp_path / f"out{at}"
        moments.n, moments.at = 0, at
        said = _ingested(path, out)
        assert moments.at == -1
        assert said in (before, after) or (isinstance(said, str) and str(path) in said), (at, said)
        assert _ingested(path, out) == after, at


@pytest.mark.timeout(120)
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_stream_says_what_is_true(
    change: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of the file as it was, or what of it was read and that it changed; by columns and row by row."""
    path = tmp_path / f"a{suffix}"
    moments = Moments(monkeypatch)
    moments.change = lambda: CHANGES[change](path)

    def taken(into: str) -> tuple[int, bool]:
        """How many events were judged, and whether something of the file is in quarantine."""
        state = RunState("r", BLACKBOX, tmp_path, into)
        state.take([ArrivedFile(str(path), "", EVENTS[0].i, 0)], 0, 0, True)
        state.save(tmp_path, into)
        rows = tables.quarantine(tmp_path, state.summary.quarantine, [])
        left_out = [row for batch in rows for row in batch.to_pylist()]
        known = state.summary.stamps[str(path)]
        assert isinstance(known, tuple)
        return sum(f.events for f in state.summary.files), bool(left_out)

    _renewed(path)
    whole, refused = taken("whole"), list[str]()
    assert whole == (60, False)
    for at in moments.count(lambda: taken("counted")):
        _renewed(path)
        moments.n, moments.at = 0, at
        try:
            said = taken(f"x{at}")
        except PipelineError as error:
            refused.append(str(error))
            continue
        assert said[1] or said == whole or said == (LENGTHS.get(change), False), (at, said)
    assert all("changed while it was read" in each for each in refused)
