"""A run of a stream judged by columns has the findings, counts and witnesses of one judged row by row."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seriatim_models.files import Fingerprint
from seriatim_models.history import Event, table, write_history
from seriatim_models.history.complete import complete
from seriatim_models.history.event import GAP
from seriatim_models.history.header import Header
from seriatim_models.history.indices import Indices
from seriatim_models.pipeline.audit import columns, tables
from seriatim_models.pipeline.audit.findings import RunStatistics, annotated
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.pipeline.stream import run_columns, run_state
from seriatim_models.pipeline.stream.run_columns import RunColumns, undelivered
from seriatim_models.pipeline.stream.run_state import ArrivedFile, RunState
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.columnar.event_batch import EventBatch
from seriatim_workshop.bench.simulated_broker import FAULTS, SimulatedBroker
from seriatim_workshop.crosscheck import columnar

HEADER = Header(run="r", params={"complete": True})
FINAL = 10**12


def made(seed: int, messages: int = 70, right: bool = False) -> list[Event]:
    """A completed history of two queues; in most something is wrong."""
    draw = random.Random(seed)
    events: list[Event] = []
    for q in ("q", "r"):
        fault = "" if right else draw.choice(("", *FAULTS))
        broker = SimulatedBroker(seed, messages, prefetch=draw.randrange(1, 6), fault=fault, q=q)
        events += [
            msgspec.structs.replace(e, conn=e.conn and q + e.conn, m=e.m and q + e.m)
            for e in broker.run()
        ]
    lvl = draw.choice(("api", "broker", "broker"))
    events.sort(key=lambda e: e.t or 0)
    return list(
        complete(msgspec.structs.replace(e, i=n, lvl=lvl, clk="") for n, e in enumerate(events))
    )


def files(folder: Path, events: Sequence[Event], cuts: Sequence[int]) -> list[ArrivedFile]:
    """The events as Parquet files, cut there."""
    out = []
    for n, (a, b) in enumerate(pairwise([0, *cuts, len(events)])):
        path = folder / f"{n}.parquet"
        write_history(path, events[a:b], HEADER)
        out.append(ArrivedFile(str(path), "", events[a].i, n))
    return out


class _Stream:
    """Two states of one run, by columns as long as that goes and by rows, that are saved and loaded at each update."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.states = RunState("r", BLACKBOX, folder, "c0"), RunState("r", BLACKBOX)
        self.updates = 0

    def take(
        self, arrived: Sequence[ArrivedFile], changed: dict[str, Fingerprint] | None = None
    ) -> None:
        """Take some files, and compare all that is said of the run."""
        self.updates += 1
        for state, name in zip(self.states, "cr", strict=True):
            state.take(arrived, FINAL, 0, True, changed)
            state.save(self.folder, f"{name}{self.updates}")
        mine, rows = (state.summary for state in self.states)
        assert mine.findings == rows.findings
        assert (mine.late, mine.waiting, mine.backlog) == (rows.late, rows.waiting, rows.backlog)
        assert (mine.files, mine.stamps, mine.held) == (rows.files, rows.stamps, rows.held)
        assert [counted(s) for s in mine.statistics] == [counted(s) for s in rows.statistics]
        c, r = (f"{name}{self.updates}.state" for name in "cr")
        self.states = (
            RunState.load(self.folder, c, BLACKBOX, f"c{self.updates}"),
            RunState.load(self.folder, r, BLACKBOX),
        )
        assert self.states[0].summary == mine

    @property
    def by_columns(self) -> bool:
        return self.states[0]._columns is not None


def counted(statistics: object) -> object:
    return msgspec.to_builtins(statistics)


@pytest.mark.parametrize("seed", range(12))
def test_findings_are_those_by_rows_after_every_file(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_state, "LENGTH", 90)
    events, draw = made(seed), random.Random(seed)
    stream = _Stream(tmp_path)
    parts = files(tmp_path, events, sorted(draw.sample(range(1, len(events)), 3)))
    for part in parts:
        stream.take([part])
    assert stream.by_columns
    assert any(f.verdict is not Verdict.INCONCLUSIVE for f in stream.states[0].summary.findings)


def test_metrics_are_those_by_rows(tmp_path: Path) -> None:
    events, stream = made(2, right=True), _Stream(tmp_path)
    for part in files(tmp_path, events, [120, 333]):
        stream.take([part])
        measured = [tables.rows_measured(state.measured()) for state in stream.states]
        for mine, wanted in zip(measured[0].values(), measured[1].values(), strict=True):
            assert sorted(map(repr, mine.to_pylist())) == sorted(map(repr, wanted.to_pylist()))
    assert stream.by_columns


@pytest.mark.parametrize(
    "histories",
    [12, pytest.param(400, marks=pytest.mark.night)],
)
def test_mutated_histories_are_judged_alike(histories: int) -> None:
    """A slice of `make crosscheck-columnar`."""
    by_columns = 0
    for seed in range(histories):
        events = columnar.history(seed)
        found, wanted = columnar.streamed(events, columnar.by_rows(events))
        assert found == wanted, seed
        by_columns += len(found) == 2 * len(BLACKBOX)
    assert by_columns > histories / 2


@pytest.mark.parametrize(
    ("histories", "length"),
    [
        (3, 20),
        pytest.param(4, 30, marks=pytest.mark.slow),
        pytest.param(60, 60, marks=pytest.mark.night),
    ],
)
def test_a_history_cut_at_every_place_is_judged_as_the_whole(
    histories: int, length: int, tmp_path: Path
) -> None:
    """In two at each place, and in as many parts as there are events, each of which is an update of its own."""
    by_columns = 0
    for seed in range(histories):
        events = columnar.history(seed)[:length]
        wanted = annotated_rows(events)
        for at in range(1, len(events)):
            found = columnar.by_stream(events, [at])
            assert found is None or found == wanted, (seed, at)
        judged = RunColumns("run", BLACKBOX, tmp_path, f"{seed}")
        for n in range(len(events)):
            if not judged.take(judged.keep(table.columns(events[n : n + 1]))):
                break
            assert judged.findings() == annotated_rows(events[: n + 1]), (seed, n)
            by_columns += 1
    assert by_columns > histories * length / 2


def annotated_rows(events: Sequence[Event]) -> list[Finding]:
    gaps = sum(e.ev == GAP for e in events)
    by_rows = zip(BLACKBOX, columnar.by_rows(events), strict=True)
    return [annotated(p, f, RunStatistics("run", gaps=gaps)) for p, f in by_rows]


def _gap(events: list[Event]) -> list[Event]:
    return [*events[:5], Event(i=events[5].i, ev="gap", t=events[5].t), *events[6:]]


def _falls(events: list[Event]) -> list[Event]:
    return [msgspec.structs.replace(events[0], t=0), *events[1:]]


def _fails(events: list[Event]) -> list[Event]:
    at = next(n for n, e in enumerate(events) if e.ev == "ack")
    fail = msgspec.structs.replace(events[at], ph="fail", ms=None)
    return [*events[:at], fail, *events[at + 1 :]]


@pytest.mark.parametrize("spoil", [_gap, _falls])
def test_what_is_read_row_by_row_is_judged_by_columns(
    spoil: Callable[[list[Event]], list[Event]], tmp_path: Path
) -> None:
    events, stream = made(3), _Stream(tmp_path)
    middle = spoil(events[200:400])
    for part in files(tmp_path, [*events[:200], *middle, *events[400:]], [200, 400]):
        stream.take([part])
        assert stream.by_columns


def test_a_settlement_without_effect_that_names_nothing_is_judged_by_rows_from_the_beginning(
    tmp_path: Path,
) -> None:
    events, stream = made(3), _Stream(tmp_path)
    middle = _fails(events[200:400])
    parts = files(tmp_path, [*events[:200], *middle, *events[400:]], [200, 400])
    stream.take(parts[:1])
    assert stream.by_columns
    stream.take(parts[1:2])
    assert not stream.by_columns
    assert not [f for f in stream.states[0].summary.settled if f.endswith(".parquet")]
    stream.take(parts[2:])


def test_late_parts_other_recorders_and_changed_files_are_judged_by_columns(tmp_path: Path) -> None:
    events = made(4)
    first, late, last = files(tmp_path, events, [150, 300])
    other = tmp_path / "other.parquet"
    noted = [Event(i=n, ev="note", t=events[300 + n].t) for n in range(5)]
    write_history(other, noted, Header(run="r", rec="b", params={"complete": True}))
    then: list[tuple[list[ArrivedFile], dict[str, Fingerprint]]] = [
        ([late], {}),
        ([ArrivedFile(str(other), "b", 0, 9)], {}),
        ([], {first.path: (1, 2)}),
    ]
    for arrived, changed in then:
        stream = _Stream(tmp_path)
        stream.take([first, last])
        stream.take(arrived, changed)
        assert stream.by_columns


def _lines(folder: Path, seed: int) -> list[ArrivedFile]:
    """Uncompleted lines of two recorders, publishers and consumers, in four parts each; some of them are no events."""
    draw = random.Random(seed)
    broker = SimulatedBroker(seed, 120, fault=draw.choice(("", *FAULTS)), q="q")
    events = [msgspec.structs.replace(e, clk="") for e in broker.run()]
    out = []
    for rec in ("a", "b"):
        mine = [e for e in events if (e.ev == "publish") == (rec == "a")]
        cuts = sorted(draw.sample(range(1, len(mine)), 3))
        for n, (a, b) in enumerate(pairwise([0, *cuts, len(mine)])):
            path = folder / f"{rec}{n}.jsonl"
            part = [msgspec.structs.replace(e, i=a + k) for k, e in enumerate(mine[a:b])]
            write_history(path, part, Header(run="r", rec=rec))
            if draw.random() < 0.2:
                path.write_text(path.read_text() + "no event\n")
            out.append(ArrivedFile(str(path), rec, a, n))
    return out


@pytest.mark.parametrize("seed", range(6))
def test_lines_of_several_recorders_are_judged_by_columns(seed: int, tmp_path: Path) -> None:
    parts, stream = _lines(tmp_path, seed), _Stream(tmp_path)
    together = seed % 2 == 0
    for n in range(4):
        arrived = [part for part in parts if part.changed == n]
        for some in [arrived] if together else [arrived[:1], arrived[1:]]:
            stream.take(some)
    assert stream.by_columns


def test_lines_and_columns_of_one_recorder_are_judged_in_their_order(tmp_path: Path) -> None:
    events, stream = made(5), _Stream(tmp_path)
    parts = files(tmp_path, events, [150, 300, 450])
    for n in (0, 2):
        path = tmp_path / f"{n}.jsonl"
        write_history(path, events[150 * n : 150 * n + 150], HEADER)
        parts[n] = msgspec.structs.replace(parts[n], path=str(path))
    stream.take(parts[:2])
    stream.take(parts[2:])
    assert stream.by_columns


def test_of_updates_of_few_events_few_chunk_files_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_columns, "LENGTH", 150)
    events, stream = made(9), _Stream(tmp_path)
    cuts = range(9, len(events), 9)
    for part in files(tmp_path, events, cuts):
        stream.take([part])
    assert stream.by_columns
    left = [f for f in stream.states[0].summary.settled if f.endswith(".parquet")]
    assert len(left) <= len(events) // 75 + 8 < len(cuts) / 2
    judged = stream.states[0]._columns
    assert judged is not None
    assert [e for some in judged.events() for e in some] == [
        msgspec.structs.replace(e, run="r") for e in events
    ]


@pytest.mark.parametrize("what", [{"APART": 5}, {"AGAIN": 0, "AGAIN_FIRST": 0}])
def test_where_too_little_is_regular_rows_judge_and_the_findings_stay(
    what: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in what.items():
        monkeypatch.setattr(run_columns, name, value)
    events, stream = made(0), _Stream(tmp_path)
    for part in files(tmp_path, events, [100, 101, 200, 350]):
        stream.take([part])
    assert not stream.by_columns


def test_queues_are_all_left_to_the_rows_where_they_were_read_again_too_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_columns, "AGAIN", 0)
    monkeypatch.setattr(run_columns, "AGAIN_FIRST", 0)
    events = made(6)
    judged = RunColumns("r", BLACKBOX[3:], tmp_path, "x")
    for a, b in pairwise([0, 100, 200, 300, len(events)]):
        judged.take(judged.keep(table.columns(events[a:b])))
        expected = [p.check(events[:b]) for p in BLACKBOX[3:]]
        found = [msgspec.structs.replace(f, subject="") for f in judged.findings()]
        assert [(f.verdict, f.n_tested, f.witness) for f in found] == [
            (f.verdict, f.n_tested, f.witness) for f in expected
        ]
    assert judged.history.too_often
    assert None in [each.names for g in judged._groups for each in g._rows.left.values()]


def test_more_than_is_held_is_checked_before_anything_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "PIECE", 50)
    monkeypatch.setattr(run_state, "LENGTH", 40)
    events = made(7)
    parts = files(tmp_path, _falls(events[::-1])[::-1], [200])
    stream = _Stream(tmp_path)
    stream.take(parts[:1])
    assert stream.by_columns
    stream.take(parts[1:])  # its last stamp falls, so all of it is read row by row


def test_rejects_a_run_of_which_a_chunk_file_is_missing(tmp_path: Path) -> None:
    events = made(8)
    parts = files(tmp_path, events, [200, 300])
    state = RunState("r", BLACKBOX, tmp_path, "c0")
    state.take(parts[:1], FINAL, 0, True)
    (tmp_path / "c0.000000.parquet").unlink()
    with pytest.raises(PipelineError, match=r"c0\.000000\.parquet: cannot be read: No such"):
        state.take(parts[1:], FINAL, 0, True)


SOME = st.builds(
    Event,
    i=st.just(0),
    ev=st.sampled_from(["publish", "publish", "deliver", "get", "return", "expire", "delete", "purge", "ack"]),
    ph=st.sampled_from(["", "invoke", "ok", "fail", "info"]),
    op=st.none() | st.just(1),
    m=st.sampled_from(["", "a", "b", "c"]),
    q=st.sampled_from(["", "q", "r"]),
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(events=st.lists(SOME, max_size=20), cut=st.integers(0, 20))
def test_what_was_not_delivered_is_the_same_by_columns_and_by_rows(
    events: list[Event], cut: int
) -> None:
    rows, waiting = RunState("r", BLACKBOX), dict[str, str]()
    for event in events:
        rows._wait(event)
    for part in (events[:cut], events[cut:]):
        waiting = undelivered(waiting, EventBatch(table.batch(part)))
    assert waiting == rows._waiting


def test_indices_that_rise_are_added_as_ranges() -> None:
    one, each = Indices(), Indices()
    for some in ([3, 4, 5], [6], [], [9, 11, 12], [20, 21, 23, 25, 26, 27]):
        one.extend(some)
        for i in some:
            each.append(i)
    assert one == each
