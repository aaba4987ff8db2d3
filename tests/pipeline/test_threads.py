"""Checks that are shared out among threads are given what one thread would give them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa
import pytest

from seriatim_models.history import Header, write_history
from seriatim_models.history.reading import read_history
from seriatim_models.pipeline import audit_paths
from seriatim_models.pipeline.audit import chunks, one_pass
from seriatim_models.pipeline.audit.queue_groups import PARTS, QueueGroups
from seriatim_models.pipeline.audit.threads import AHEAD, Take, in_threads, read_ahead
from seriatim_models.pipeline.synthetic.generate import generate
from seriatim_models.properties.base import Verdict
from seriatim_models.properties.columnar.event_batch import EventBatch

from .conftest import by_rows, in_one_pass
from .test_one_pass import on_one_connection
from .test_side_by_side import FORMS, Own


def batches(n: int) -> list[EventBatch]:
    return [EventBatch(pa.RecordBatch.from_pydict({"i": [k]})) for k in range(n)]


class Taken:
    """Keeps what it is given, and where; waits for `gate` before each."""

    def __init__(self, gate: threading.Semaphore | None = None) -> None:
        self.gate = gate
        self.batches: list[EventBatch] = []
        self.threads: set[int] = set()

    def __call__(self, batch: EventBatch) -> None:
        if self.gate is not None:
            assert self.gate.acquire(timeout=30)
        self.batches.append(batch)
        self.threads.add(threading.get_ident())


@pytest.mark.parametrize("shares", [1, 2, 3])
def test_each_share_takes_all_in_order_and_in_one_thread(shares: int) -> None:
    given, takes = batches(20), [Taken() for _ in range(4)]
    before, alive = sys.getswitchinterval(), threading.active_count()
    with in_threads([takes[k::shares] for k in range(shares)]) as take:
        for batch in given:
            take(batch)
    assert all(of.batches == given for of in takes)
    assert len(set[int]().union(*(of.threads for of in takes))) == shares
    assert takes[shares - 1].threads == {threading.get_ident()}
    assert sys.getswitchinterval() == before
    assert threading.active_count() == alive


def test_the_caller_waits_for_a_thread_that_does_not_keep_up() -> None:
    gate = threading.Semaphore(0)
    slow, mine = Taken(gate), Taken()
    with in_threads([[slow], [mine]]) as take:
        for k, batch in enumerate(batches(10)):
            if k >= AHEAD - 1:
                gate.release()
            take(batch)
            assert len(mine.batches) - len(slow.batches) < AHEAD
        gate.release(AHEAD - 1)
    assert slow.batches == mine.batches


@pytest.mark.parametrize("wrong", [0, 1])
@pytest.mark.parametrize("when", [0, 4, 9])
def test_what_a_share_raises_is_raised_by_the_caller(wrong: int, when: int) -> None:
    def fails(batch: EventBatch) -> None:
        if batch.arrow["i"][0].as_py() == when:
            raise ValueError(f"at {when}")

    shares: list[list[Take]] = [[Taken()], [Taken()]]
    shares[wrong] = [fails]
    before, alive = sys.getswitchinterval(), threading.active_count()

    def all_of() -> None:
        with in_threads(shares) as take:
            for batch in batches(10):
                take(batch)

    with pytest.raises(ValueError, match=f"at {when}"):
        all_of()
    assert sys.getswitchinterval() == before
    assert threading.active_count() == alive


def test_batches_are_read_ahead_in_order_by_one_thread() -> None:
    given, threads = batches(5), set[int]()

    def reading() -> Iterator[EventBatch]:
        for batch in given:
            threads.add(threading.get_ident())
            yield batch

    assert list(read_ahead(reading())) == given
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_what_reading_ahead_raises_comes_behind_what_was_read() -> None:
    def reading() -> Iterator[EventBatch]:
        yield from batches(2)
        raise ValueError("no more")

    alive, ahead = threading.active_count(), read_ahead(reading())
    assert next(ahead) is not next(ahead)
    with pytest.raises(ValueError, match="no more"):
        next(ahead)
    assert threading.active_count() == alive


def test_reading_ahead_ends_where_nobody_wants_more() -> None:
    alive = threading.active_count()
    reading = read_ahead(iter(batches(9)))
    next(reading)
    del reading
    assert threading.active_count() == alive


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_pass, "LENGTH", 300)
    monkeypatch.setattr(chunks, "TOGETHER", 10)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("threads", [2, 3, 64])
@pytest.mark.parametrize("each", [0, 1])
def test_a_run_is_judged_as_by_one_thread(
    threads: int, each: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate(tmp_path, 4000, queues=9, each=each)
    shares = set[int]()

    def noted(of: Sequence[Sequence[Take]]) -> AbstractContextManager[Take]:
        shares.add(len(of))
        return in_threads(of)

    monkeypatch.setattr(one_pass, "in_threads", noted)
    judges = (Own(), *FORMS)
    seen: list[int] = []
    report = audit_paths([tmp_path], properties=judges, jobs=threads, on_events=seen.append)
    assert shares == {min(threads, one_pass.MOST)}
    assert report == in_one_pass([tmp_path], judges) == by_rows([tmp_path], judges)
    assert (report.verdict is Verdict.VIOLATED) == bool(each)
    assert seen == sorted(seen)
    assert seen[-1] == report.statistics["events"]


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("threads", [2, 3])
def test_parts_of_the_queues_are_shared_out_and_each_is_judged_once(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.parquet"
    write_history(path, on_one_connection(), Header(run="run", params={"complete": True}))
    shares: list[Sequence[int]] = []
    take_divided = QueueGroups._take_divided

    def noted(self: QueueGroups, parts: Sequence[int], batch: EventBatch) -> None:
        shares.append(parts)
        take_divided(self, parts, batch)

    monkeypatch.setattr(QueueGroups, "_take_divided", noted)
    assert audit_paths([path], jobs=threads) == by_rows([path])
    assert len(shares) == threads  # there is one batch
    assert sorted(part for parts in shares for part in parts) == [*range(PARTS)]


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("allowed", [0, 1, 2])
def test_where_the_system_allows_no_more_threads_the_caller_does_the_rest(
    allowed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three that are wanted: one that reads, and two with shares."""
    generate(tmp_path, 2000, queues=5, each=1)
    wanted = audit_paths([tmp_path])
    left, refused, start = [allowed], [0], threading.Thread.start

    def begins(self: threading.Thread) -> None:
        if not left[0]:
            refused[0] += 1
            raise RuntimeError("can't start new thread")
        left[0] -= 1
        start(self)

    monkeypatch.setattr(threading.Thread, "start", begins)
    alive = threading.active_count()
    assert audit_paths([tmp_path], jobs=3) == wanted
    assert refused[0] > 2 - allowed
    assert threading.active_count() == alive


def test_a_file_that_has_to_be_read_by_row_leaves_no_thread(tmp_path: Path) -> None:
    """Its index does not rise, which only reading it shows."""
    made = generate(tmp_path, 1000, queues=5, each=0)
    whole = read_history(tmp_path / made.files[0])
    whole.events[700], whole.events[701] = whole.events[701], whole.events[700]
    write_history(tmp_path / made.files[0], whole.events, whole.header)
    alive = threading.active_count()
    assert audit_paths([tmp_path], jobs=2) == audit_paths([tmp_path])
    assert threading.active_count() == alive
