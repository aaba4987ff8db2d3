"""One run of a stream, without Spark: in whatever order its parts come, and in whatever batches."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from seriatim_models.history import Event, write_history
from seriatim_models.history.header import Header
from seriatim_models.pipeline import audit_paths
from seriatim_models.pipeline.audit import runs, tables
from seriatim_models.pipeline.audit.runs import RunItem
from seriatim_models.pipeline.stream import run_state
from seriatim_models.pipeline.stream.run_state import ArrivedFile, RunState
from seriatim_models.properties.base import Verdict
from seriatim_models.properties.blackbox import BLACKBOX

from .conftest import first_events

EVENTS = first_events("rabbit-classic-lockstep", 4000)
SECOND = 10**9


@pytest.fixture
def parts(tmp_path: Path) -> list[ArrivedFile]:
    """Eight parts of one recorder, changed a second apart."""
    out = []
    for n in range(8):
        events = EVENTS[500 * n : 500 * n + 500]
        path = tmp_path / f"part{n}.jsonl"
        write_history(path, events, Header(run="r"))
        out.append(ArrivedFile(str(path), "", events[0].i, n * SECOND))
    return out


def moved(
    state: RunState, arrived: list[ArrivedFile], newest: int = 0, final: bool = False
) -> RunState:
    state.take(arrived, newest, 10 * SECOND, final)
    with TemporaryDirectory() as folder:
        state.save(Path(folder), "x")
        return RunState.load(Path(folder), "x.state", BLACKBOX)


def judged(state: RunState) -> list[object]:
    return [(f.property, f.verdict, f.n_tested, f.n_untestable) for f in state.summary.findings]


def expected(tmp_path: Path) -> list[object]:
    found = audit_paths([tmp_path]).findings
    return [(f.property, f.verdict, f.n_tested, f.n_untestable) for f in found]


def test_parts_out_of_order_wait_for_those_before(parts: list[ArrivedFile], tmp_path: Path) -> None:
    state = moved(RunState("r", BLACKBOX), [parts[2], parts[1]])
    assert (state.summary.waiting, state.summary.files) == (2, [])
    state = moved(state, [parts[0], parts[4]])
    assert (state.summary.waiting, len(state.summary.files)) == (1, 3)
    state = moved(state, [parts[3]])
    state = moved(state, parts[5:])
    assert (state.summary.waiting, state.summary.late) == (0, 0)
    assert judged(state) == expected(tmp_path)
    assert state.summary.findings == moved(state, []).summary.findings


def test_nobody_waits_longer_than_the_watermark_and_the_late_are_counted(
    parts: list[ArrivedFile],
) -> None:
    state = moved(RunState("r", BLACKBOX), [parts[0], parts[2]], newest=11 * SECOND)
    assert state.summary.waiting == 1
    state = moved(state, [], newest=12 * SECOND)
    assert state.summary.waiting == 0
    state = moved(state, [parts[1]], newest=13 * SECOND)
    assert state.summary.late == 500
    assert sum(f.rejected for f in state.summary.files) == 500
    assert not [f for f in state.summary.findings if f.verdict is Verdict.VIOLATED]


def test_recorders_are_merged_up_to_the_time_that_all_have_reached(tmp_path: Path) -> None:
    def recorder(name: str, times: list[int]) -> ArrivedFile:
        events = [Event(i=n, t=t, ev="note", m=name) for n, t in enumerate(times)]
        path = tmp_path / f"{name}.jsonl"
        write_history(path, events, Header(run="r", rec=name))
        return ArrivedFile(str(path), name, 0, 0)

    a, b = recorder("a", [1, 5, 9]), recorder("b", [2, 6])
    state = moved(RunState("r", BLACKBOX), [a, b])
    assert [s.events for s in state.summary.statistics] == [
        4 - 1
    ]  # 1, 2 and 5: b may still tell of 6
    state = moved(state, [], final=True)
    assert [s.events for s in state.summary.statistics] == [5]
    late = recorder("c", [3])
    state = moved(state, [late], final=True)
    assert state.summary.late == 1


def test_what_was_rejected_is_left_beside_the_state(
    parts: list[ArrivedFile], tmp_path: Path
) -> None:
    state = RunState("r", BLACKBOX)
    state.take([parts[0], parts[0]], 0, 0, True)
    state.save(tmp_path, "x")
    again = RunState.load(tmp_path, "x.state", BLACKBOX)
    assert again.summary == state.summary
    rows = list(tables.quarantine(tmp_path, state.summary.quarantine, []))
    assert sum(map(len, rows)) == 500


def test_a_recorder_alone_is_judged_while_it_is_read(
    parts: list[ArrivedFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else all that one look finds of a run is in memory before the first event is judged: 1.2 GB of 800,000."""
    monkeypatch.setattr(run_state, "BATCH", 300)
    read = judged_from = 0

    def counted(*given: Any) -> Iterator[tuple[int, RunItem]]:
        nonlocal read
        for pair in runs.recorder(*given):
            read += 1
            yield pair

    def judge(self: RunState, run: str, events: list[Event]) -> None:
        nonlocal judged_from
        judged_from = judged_from or read

    monkeypatch.setattr(run_state, "recorder", counted)
    monkeypatch.setattr(RunState, "_judge", judge)
    RunState("r", BLACKBOX).take(parts, 0, 10 * SECOND, False)
    assert (read, judged_from) == (4000 + 8, 300)


def test_an_update_is_not_interrupted_by_collections_of_garbage(
    parts: list[ArrivedFile], tmp_path: Path
) -> None:
    """They took a fifth of its time, and found none."""
    from seriatim_models.pipeline.stream.streaming import RunUpdate, _updated

    before, collected = gc.get_threshold(), 0

    def count(phase: str, _: dict[str, int]) -> None:
        nonlocal collected
        collected += phase == "start"

    summary = run_state.RunSummary("r")
    gc.callbacks.append(count)
    try:
        for n in range(4):
            (tmp_path / str(n)).mkdir()
            arrived = parts[2 * n : 2 * n + 2]
            update = RunUpdate(str(tmp_path), f"{n}/x", summary, arrived, 0, SECOND, False, {})
            updated = _updated(update, BLACKBOX, frozenset())
            assert (updated.error, gc.get_threshold()) == ("", before)
            summary = updated.summary
        assert collected <= 4  # what an update gives back may be looked at after each of them
    finally:
        gc.callbacks.remove(count)
    (tmp_path / summary.state).write_bytes(b"damaged")
    spoilt = RunUpdate(str(tmp_path), "3/y", summary, [], 0, SECOND, False, {})
    assert _updated(spoilt, BLACKBOX, frozenset()).error
    assert gc.get_threshold() == before
