"""Campaigns: what hangs or dies is a result, what was done is not done again, the traces are those of one process."""

from __future__ import annotations

import importlib
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq
import pytest

from seriatim_models.explorer import World
from seriatim_models.explorer.model.world import ControlledLock
from seriatim_models.pipeline import PipelineError
from seriatim_models.pipeline.campaign.checkpoint import (
    CheckpointLog,
    append,
    log_folder,
    open_log,
)
from seriatim_models.pipeline.campaign.isolation import IsolatedWorker
from seriatim_models.pipeline.campaign.items import ItemResult, SearchItem, Work, items
from seriatim_models.pipeline.campaign.search import run_search
from seriatim_models.programs import PROGRAMS
from seriatim_models.programs.base import Program

from . import campaign_faults
from .test_spark import pytestmark as spark_marks

KILLERS = ("die", "eat", "raise boom")


# Forking while Hypothesis or PySpark have threads: the children only run items.
forks = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


@pytest.fixture
def worker() -> Iterator[IsolatedWorker]:
    with IsolatedWorker(2**28, campaign_faults.work) as worker:
        yield worker


def never() -> bool:
    return False


@pytest.mark.slow
@forks
def test_an_item_that_goes_wrong_is_a_result_and_the_next_goes_on(worker: IsolatedWorker) -> None:
    batch = [SearchItem(t) for what in KILLERS for t in (what, f"work 0.0{len(what)}")]
    found = list(worker.results(batch, 60, never))
    assert [o.verdict for o in found] == ["died", "ok", "memory", "ok", "error", "ok"]
    assert [o.why for o in found][::2] == [
        "signal SIGKILL", "more than 256 MiB", "ValueError: boom",
    ]  # fmt: skip
    assert [o.id for o in found] == [i.id for i in batch]
    hanging = [SearchItem("hang"), SearchItem("hang", seed=1)]
    found = list(worker.results(hanging, 0.5, never))
    assert [(o.verdict, o.why) for o in found] == [("timeout", "it had not ended after 0.5 s")] * 2


@forks
def test_one_child_does_batch_after_batch_until_something_dies_of_it(
    worker: IsolatedWorker,
) -> None:
    def child(test: str) -> str:
        list(worker.results([SearchItem(test)], 60, never))
        return next(worker.results([SearchItem("who")], 60, never)).why

    first = child("work 0.01")
    assert child("raise boom") == child("work 0.02") == first
    assert child("die") != first


@forks
def test_a_child_that_was_killed_between_batches_is_replaced(worker: IsolatedWorker) -> None:
    who = next(worker.results([SearchItem("who")], 60, never)).why
    os.kill(int(who), signal.SIGKILL)
    while Path("/proc", who).exists() and "Z" not in Path("/proc", who, "stat").read_text():
        time.sleep(0.01)
    [again] = worker.results([SearchItem("who")], 60, never)
    assert (again.verdict, again.why != who) == ("ok", True)


@forks
@pytest.mark.parametrize("sent", [signal.SIGHUP, signal.SIGINT])
def test_what_is_sent_to_a_whole_group_is_not_taken_for_the_items_end(
    worker: IsolatedWorker, sent: signal.Signals
) -> None:
    first, _, again = worker.results(
        [SearchItem("who"), SearchItem(f"signal {sent.value}"), SearchItem("who", seed=1)],
        60,
        never,
    )
    assert first.why == again.why, "the signal cost the child"


@forks
def test_what_an_item_may_take_does_not_depend_on_those_before_it(worker: IsolatedWorker) -> None:
    # 150 of 256 MiB each, and the child keeps them: the second has its own 256 as well.
    batch = [SearchItem("keep 150", seed=n) for n in range(3)]
    assert [o.verdict for o in worker.results(batch, 60, never)] == ["ok"] * 3


@forks
def test_stopping_is_quick_even_in_the_middle_of_an_item(worker: IsolatedWorker) -> None:
    looks = iter([False, False, False])  # before the item, and in its first tenths of a second
    assert not list(worker.results([SearchItem("hang")], 3600, lambda: next(looks, True)))


# Elsewhere nothing ends a child when its parent is killed, and guarded.py promises it for Linux only.
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="prctl is Linux's")
def test_a_child_dies_with_its_parent_even_in_the_middle_of_an_item() -> None:
    script = f"""
import sys
sys.path.insert(0, {str(Path(campaign_faults.__file__).parent)!r})
import campaign_faults
from seriatim_models.pipeline.campaign.isolation import IsolatedWorker
from seriatim_models.pipeline.campaign.items import SearchItem
worker = IsolatedWorker(0, campaign_faults.work)
print(next(worker.results([SearchItem("who")], 60, lambda: False)).why, flush=True)
list(worker.results([SearchItem("hang")], 3600, lambda: False))
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = Path("/proc", parent.stdout.readline().strip())
    assert child.exists()
    parent.kill()
    parent.communicate()
    until = time.monotonic() + 60
    while child.exists() and "State:\tZ" not in (child / "status").read_text():
        assert time.monotonic() < until, "an orphan goes on"
        time.sleep(0.05)


def test_batches_begin_large_and_end_with_single_items() -> None:
    from seriatim_models.pipeline.campaign.run import batches

    work = [SearchItem("x", seed=n) for n in range(1000)]
    dealt = batches(work, 2)
    assert sorted(i.seed for b in dealt for i in b) == list(range(1000))
    sizes = [len(b) for b in dealt]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 125
    assert sizes[-7:] == [1] * 7
    assert 40 <= len(sizes) <= 64


def test_items_are_every_combination_that_makes_sense() -> None:
    made = items(["immediate"], ["", "published-immediate"], ["dpor", "pct"], range(3))
    assert len(made) == 2 * (1 + 3)
    assert len({i.id for i in made}) == len(made)
    with pytest.raises(PipelineError, match="no program 'immedite'"):
        items(["immedite"])


def test_two_schedules_of_one_trace_are_one_bug() -> None:
    found = [
        run_search(i)
        for i in items(["immediate"], ["published-immediate"], ["dpor", "pct"], range(4))
    ]
    bugs = [b for o in found for b in o.bugs]
    assert len(bugs) >= 2
    assert {b.bug for b in bugs} == {"IM-1"}
    assert len({b.trace for b in bugs}) < len(bugs)


def test_what_is_no_property_has_one_name_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(world: World, _: ModuleType) -> None:
        first, second = world.lock("first"), world.lock("second")

        def both(a: ControlledLock, b: ControlledLock) -> None:
            with a, b:
                pass

        world.spawn(lambda: both(first, second), name="a")
        world.spawn(lambda: both(second, first), name="b")

    monkeypatch.setitem(PROGRAMS, "locks", Program("locks", "", "queue", (), build, "", 4))
    found = [b for i in items(["locks"], [""], ["random"], range(9)) for b in run_search(i).bugs]
    assert len(found) == 9
    assert {b.bug for b in found} == {"deadlock"}
    assert len({b.trace for b in found}) == 1


@pytest.fixture(scope="module")
def faults(spark: Any) -> Work:
    """`campaign_faults.work`, as executors import it."""
    spark.sparkContext.addPyFile(str(Path(campaign_faults.__file__)))
    work: Work = importlib.import_module("campaign_faults").work
    return work


def test_a_result_in_the_log_that_says_something_else_is_none(tmp_path: Path) -> None:
    """A byte of it that changed may leave it a result, of another verdict: it was taken for what had been found."""
    log = CheckpointLog(tmp_path)
    kept = ItemResult(id="a", item=SearchItem("immediate"), verdict="violated", complete=5)
    with open_log(tmp_path) as file:
        append(file, kept)
    [path] = log_folder(tmp_path).iterdir()
    whole = path.read_bytes()
    assert list(log.new_results()) == [kept]
    for n in range(len(whole) - 1):
        path.write_bytes(whole[:n] + bytes([whole[n] ^ 1]) + whole[n + 1 :])
        assert list(CheckpointLog(tmp_path).new_results()) == [], whole[n:]
    path.write_bytes(whole.replace(b"violated", b"ok"))
    assert list(CheckpointLog(tmp_path).new_results()) == []


def test_tables_are_put_in_place_as_all_files_are(tmp_path: Path) -> None:
    """A draft had a name of its own: it was left, and a link of that name was written through."""
    from seriatim_models.pipeline.campaign.results import write_tables

    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "results.parquet.new").symlink_to(victim)
    write_tables(tmp_path, [], {})
    assert victim.read_text() == "mine"
    assert pq.read_table(tmp_path / "results.parquet").num_rows == 0
    (tmp_path / "results.parquet.new").unlink()
    (tmp_path / "bugs.parquet").unlink()
    (tmp_path / "bugs.parquet").mkdir()
    with pytest.raises(OSError, match="bugs"):
        write_tables(tmp_path, [], {})
    assert [path.name for path in tmp_path.iterdir() if ".new" in path.name] == []


class TestOnSpark:
    pytestmark = spark_marks

    @pytest.mark.slow
    def test_a_campaign_goes_on_where_it_was(
        self, spark: Any, faults: Work, tmp_path: Path
    ) -> None:
        from seriatim_models.pipeline.campaign.results import SCHEMA
        from seriatim_models.pipeline.campaign.run import CampaignProgress, campaign

        work = items(
            ["immediate"], ["", "published-immediate"], ["pct", "random"], range(2), executions=200
        )
        work += [SearchItem("die"), SearchItem("work 0.1")]
        progress: list[CampaignProgress] = []
        first = campaign(spark, work[:6], tmp_path, on_progress=progress.append, work=faults)
        assert first.finished
        assert (progress[-1].done, progress[-1].total) == (6, 6)
        assert progress[-1].rate > 0
        # The last line of a file is cut off; it may be its only one, if a process had one item.
        lines = sorted((tmp_path / "checkpoint").glob("*.jsonl"))
        torn = lines[0].read_bytes()
        lines[0].write_bytes(torn[: torn.rfind(b"\n", 0, -1) + 20])
        left = len(list(CheckpointLog(tmp_path).new_results()))
        assert left == 5
        done = campaign(spark, work, tmp_path, work=faults)
        assert done.finished
        assert len(done.results) == len(work)
        kept = {
            n: pq.read_table(tmp_path / f"{n}.parquet") for n in ("results", "bugs", "coverage")
        }
        assert {t.schema.metadata[b"seriatim"] for t in kept.values()} == {SCHEMA.encode()}
        assert len(kept["results"]) == len(work)
        assert sum(v == "died" for v in kept["results"]["verdict"].to_pylist()) == 1
        coverage = kept["coverage"].to_pylist()
        assert [(c["program"], c["verdict"]) for c in coverage] == [
            ("die", "inconclusive"), ("immediate", "inconclusive"), ("immediate", "violated"), ("work 0.1", "ok"),
        ]  # fmt: skip
        assert [c["exhausted"] for c in coverage[1:3]] == [False] * 2, "samples"
        alone = {o.id: o for o in map(run_search, work[:8])}
        for o in done.results:
            if o.id in alone:
                mine = alone[o.id]
                assert (o.verdict, o.traces, o.names, o.bugs) == (
                    mine.verdict, mine.traces, mine.names, mine.bugs,
                )  # fmt: skip
        before = sum(1 for _ in CheckpointLog(tmp_path).new_results())
        assert campaign(spark, work, tmp_path, work=faults).results == done.results
        assert sum(1 for _ in CheckpointLog(tmp_path).new_results()) == before, (
            "something was done again"
        )

    def test_the_first_bug_ends_those_that_hang(
        self, spark: Any, faults: Work, tmp_path: Path
    ) -> None:
        from seriatim_models.pipeline.campaign.run import CampaignBounds, campaign

        found = SearchItem("find 0.5")
        # It goes first, whatever the number of cores; the others last an hour each.
        hanging = (SearchItem("hang", seed=n) for n in itertools.count())
        work = [found, *itertools.islice((i for i in hanging if i.id > found.id), 3)]
        done = campaign(spark, work, tmp_path, work=faults, bounds=CampaignBounds(first_bug=True))
        assert not done.finished
        assert [b.bug for o in done.results for b in o.bugs] == ["P1"]
