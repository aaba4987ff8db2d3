"""One run of a stream, without Spark: in whatever order its parts come, and in whatever portions."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from seriatim_models.history import Event, read_history, write_history
from seriatim_models.history.header import Header
from seriatim_models.pipeline import audit_paths
from seriatim_models.pipeline.audit import tables
from seriatim_models.pipeline.stream.run_state import Arrived, Live
from seriatim_models.properties.base import Verdict
from seriatim_models.properties.blackbox import BLACKBOX

from .conftest import DATA

EVENTS = read_history(DATA / "rabbit-classic-lockstep.jsonl.gz").events[:4000]
SECOND = 10**9


@pytest.fixture
def parts(tmp_path: Path) -> list[Arrived]:
    """Eight parts of one recorder, changed a second apart."""
    out = []
    for n in range(8):
        events = EVENTS[500 * n : 500 * n + 500]
        path = tmp_path / f"part{n}.jsonl"
        write_history(path, events, Header(run="r"))
        out.append(Arrived(str(path), "", events[0].i, n * SECOND))
    return out


def moved(live: Live, arrived: list[Arrived], newest: int = 0, final: bool = False) -> Live:
    live.take(arrived, newest, 10 * SECOND, final)
    again = pickle.loads(pickle.dumps(live))
    assert isinstance(again, Live)
    return again


def judged(live: Live) -> list[object]:
    return [(f.property, f.verdict, f.n_tested, f.n_untestable) for f in live.told.findings]


def expected(tmp_path: Path) -> list[object]:
    found = audit_paths([tmp_path]).findings
    return [(f.property, f.verdict, f.n_tested, f.n_untestable) for f in found]


def test_parts_out_of_order_wait_for_those_before(parts: list[Arrived], tmp_path: Path) -> None:
    live = moved(Live("r", BLACKBOX), [parts[2], parts[1]])
    assert (live.told.waiting, live.told.files) == (2, [])
    live = moved(live, [parts[0], parts[4]])
    assert (live.told.waiting, len(live.told.files)) == (1, 3)
    live = moved(live, [parts[3]])
    live = moved(live, parts[5:])
    assert (live.told.waiting, live.told.late) == (0, 0)
    assert judged(live) == expected(tmp_path)
    assert live.told.findings == pickle.loads(pickle.dumps(live)).told.findings


def test_nobody_waits_longer_than_the_watermark_and_the_late_are_counted(
    parts: list[Arrived],
) -> None:
    live = moved(Live("r", BLACKBOX), [parts[0], parts[2]], newest=11 * SECOND)
    assert live.told.waiting == 1
    live = moved(live, [], newest=12 * SECOND)
    assert live.told.waiting == 0
    live = moved(live, [parts[1]], newest=13 * SECOND)
    assert live.told.late == 500
    assert sum(f.rejected for f in live.told.files) == 500
    assert not [f for f in live.told.findings if f.verdict is Verdict.VIOLATED]


def test_recorders_are_merged_up_to_the_time_that_all_have_reached(tmp_path: Path) -> None:
    def recorder(name: str, times: list[int]) -> Arrived:
        events = [Event(i=n, t=t, ev="note", m=name) for n, t in enumerate(times)]
        path = tmp_path / f"{name}.jsonl"
        write_history(path, events, Header(run="r", rec=name))
        return Arrived(str(path), name, 0, 0)

    a, b = recorder("a", [1, 5, 9]), recorder("b", [2, 6])
    live = moved(Live("r", BLACKBOX), [a, b])
    assert [s.events for s in live.told.statistics] == [4 - 1]  # 1, 2 and 5: b may still tell of 6
    live = moved(live, [], final=True)
    assert [s.events for s in live.told.statistics] == [5]
    late = recorder("c", [3])
    live = moved(live, [late], final=True)
    assert live.told.late == 1


def test_what_was_rejected_is_left_beside_the_state(parts: list[Arrived], tmp_path: Path) -> None:
    live = Live("r", BLACKBOX)
    live.take([parts[0], parts[0]], 0, 0, True)
    live.save(tmp_path, "x")
    again = Live.load(tmp_path, "x.state")
    assert again.told == live.told
    rows = list(tables.quarantine(tmp_path, live.told.quarantine, []))
    assert sum(map(len, rows)) == 500
