"""One exhaustive search as a campaign: the traces of one process, each once, whatever is cut, killed or lost."""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq
import pytest

from seriatim_models.explorer import World
from seriatim_models.explorer.model.guard import guarded
from seriatim_models.explorer.search.dpor import DporSearch
from seriatim_models.explorer.search.runner import Runner
from seriatim_models.pipeline import PipelineError
from seriatim_models.pipeline.campaign.isolation import IsolatedWorker
from seriatim_models.pipeline.campaign.items import SearchItem
from seriatim_models.pipeline.campaign.search import run_search
from seriatim_models.pipeline.campaign.subtree import run_item
from seriatim_models.programs import PROGRAMS
from seriatim_models.programs.base import Program

from .test_campaign import forks
from .test_spark import pytestmark as spark_marks

pytest.importorskip("pyspark")

from seriatim_models.pipeline.campaign import checkpoint, distributed, subtree
from seriatim_models.pipeline.campaign.run import CampaignBounds, CampaignProgress

Tick = Callable[[], None]
Stopping = Callable[[], bool]


def alone(program: str, mutant: str = "") -> Runner:
    """The search of one process."""
    runner = subtree.runner_of(program, mutant)
    with guarded():
        DporSearch(runner).run()
    return runner


def table(folder: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / f"{name}.parquet").to_pylist()
    return rows


class Here:
    """In place of the executors: one worker in this process, so that its children know what a test changed."""

    def __init__(self) -> None:
        self.tried: list[str] = []
        self.most = 10**9
        """Items to try before this process is as good as killed."""

    def fan_out(
        self, spark: Any, items: Sequence[SearchItem], folder: Path, bounds: CampaignBounds, tick: Tick,
        stopping: Stopping,
    ) -> None:  # fmt: skip
        with (
            IsolatedWorker(bounds.memory, run_item) as worker,
            checkpoint.open_log(folder) as file,
        ):
            for item in items:
                if self.most <= len(self.tried):
                    raise KeyboardInterrupt
                [result] = worker.results([item], bounds.timeout, lambda: False)
                checkpoint.append(file, result)
                self.tried.append(item.id)
                tick()
                if bounds.first_bug and result.bugs:
                    break


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Here:
    made = Here()
    monkeypatch.setattr(distributed, "fan_out", made.fan_out)
    return made


def explored(folder: Path, *asked: tuple[str, str], **more: Any) -> distributed.DistributedResult:
    return distributed.explore(None, asked, folder, **more)  # type: ignore[arg-type]  # no Spark here


def seen(tree: distributed.DistributedSearch) -> set[bytes]:
    assert tree.runner.seen is not None
    return tree.runner.seen.kept


@pytest.mark.slow
@forks
@pytest.mark.parametrize("executions", [1, 3, 40])
@pytest.mark.parametrize("mutant", ["", "published-immediate"])
def test_in_parts_it_finds_the_traces_of_one_process(
    here: Here, tmp_path: Path, executions: int, mutant: str
) -> None:
    progress: list[CampaignProgress] = []
    done = explored(
        tmp_path, ("immediate", mutant), executions=executions, on_progress=progress.append
    )
    [tree], whole = done.searches, alone("immediate", mutant)
    assert whole.seen is not None
    assert tree.exhausted
    assert seen(tree) == whole.seen.kept
    assert (tree.traces, tree.runner.complete) == (whole.complete, whole.complete)
    assert (tree.runner.violations > 0) == bool(mutant)
    assert tree.done == pytest.approx(1)
    assert progress[-1].done == progress[-1].total == whole.complete
    results = table(tmp_path, "results")
    assert sum(r["complete"] for r in results) == whole.complete
    assert len(results) == len(here.tried) > 1
    assert {r["prefix"] == "" for r in results if r["depth"] == 0} == {True}
    assert all(len(r["prefix"].split()) == r["depth"] for r in results)
    assert len({r["prefix"] for r in results}) == len(results), "two parts begin alike"
    [coverage] = table(tmp_path, "coverage")
    assert (coverage["traces"], coverage["exhausted"]) == (whole.complete, True)
    assert coverage["verdict"] == ("violated" if mutant else "ok")
    # What the search of one process makes its first counterexample into.
    item = SearchItem("immediate", mutant)
    found = [(b["bug"], b["trace"]) for b in table(tmp_path, "bugs")]
    assert found == [(b.bug, b.trace) for b in run_search(item).bugs]
    assert bool(found) == bool(mutant)


@forks
def test_killed_again_and_again_it_does_no_part_twice(here: Here, tmp_path: Path) -> None:
    asked = ("immediate", "published-immediate"), ("two-takers", "")
    whole = [alone(*a) for a in asked]
    for here.most in range(3, 1000, 7):
        try:
            done = explored(tmp_path, *asked, executions=2)
            break
        except KeyboardInterrupt:
            continue
    assert here.most > 20, "it was not killed often enough"
    assert len(set(here.tried)) == len(here.tried)
    for tree, of in zip(done.searches, whole, strict=True):
        assert of.seen is not None
        assert tree.exhausted
        assert seen(tree) == of.seen.kept
        assert tree.runner.complete == of.complete
    tried = len(here.tried)
    assert len(explored(tmp_path, *asked, executions=2).results) == tried == len(here.tried)


@forks
def test_after_the_first_bug_it_goes_on_to_the_end_if_asked(here: Here, tmp_path: Path) -> None:
    asked = ("immediate", "published-immediate")
    first = explored(tmp_path, asked, executions=4, bounds=CampaignBounds(first_bug=True))
    assert len(first.bugs()) == 1
    assert not first.searches[0].exhausted
    assert first.searches[0].verdict == "violated"
    tried = len(here.tried)
    again = explored(tmp_path, asked, executions=4, bounds=CampaignBounds(first_bug=True))
    assert len(here.tried) == tried, "the bug is known"
    assert again.bugs() == first.bugs()
    rest = explored(tmp_path, asked, executions=4)
    assert rest.searches[0].exhausted
    assert rest.searches[0].traces == alone(*asked).complete
    assert len(set(here.tried)) == len(here.tried)


@forks
def test_a_part_ends_at_the_first_bug_if_asked(here: Here, tmp_path: Path) -> None:
    asked = ("immediate", "published-immediate")
    first = explored(tmp_path, asked, executions=1000, bounds=CampaignBounds(first_bug=True))
    assert len(first.results) == 1
    assert first.results[0].complete < alone(*asked).complete


@forks
def test_chance_outside_the_model_is_reported(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = itertools.count()

    def build(world: World, _: ModuleType) -> None:
        cell, n = world.cell(0, name="cell"), next(runs)
        world.spawn(lambda: cell.set(n), name="a")

    monkeypatch.setitem(PROGRAMS, "chance", Program("chance", "", "queue", (), build, "", 1))
    done = explored(tmp_path, ("chance", ""))
    assert done.searches[0].verdict == "inconclusive"
    [row] = table(tmp_path, "results")
    assert row["verdict"] == "error"
    assert row["why"].startswith("NondeterministicProgram: two runs of one schedule differ")


@forks
def test_answers_for_another_text_are_not_taken(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explored(tmp_path, ("two-takers", ""), executions=4)
    tried = len(here.tried)
    monkeypatch.setattr(distributed, "fingerprint", lambda program, mutant: "another")
    done = explored(tmp_path, ("two-takers", ""), executions=4)
    assert done.searches[0].exhausted
    assert len(here.tried) == 2 * tried


def _trap(snap: Callable[[], object]) -> Program:
    """Two threads write to a cell, a third reads it twice; who reads both falls into the trap."""

    def build(world: World, _: ModuleType) -> None:
        cell = world.cell(0, name="cell")

        def read() -> None:
            if (cell.get(), cell.get()) == (1, 2):
                snap()

        for n in (1, 2):
            world.spawn(lambda n=n: cell.set(n), name=f"writer {n}")  # type: ignore[misc]
        world.spawn(read, name="reader")

    return Program("trap", "", "queue", (), build, "", 12)


C = ctypes.CDLL(None)
"""What no guard sees: `os.kill` and `signal.pause` are refused in a program."""


def _hang() -> None:
    while True:
        C.pause()


@forks
@pytest.mark.parametrize("executions", [pytest.param(1, marks=pytest.mark.slow), 100])
@pytest.mark.parametrize(
    ("snap", "verdict", "why"),
    [
        (lambda: C.kill(os.getpid(), signal.SIGKILL), "died", "signal SIGKILL"),
        (lambda: C._exit(3), "died", "exit code 3"),
        (_hang, "timeout", "it had not ended after 4 s"),
        (lambda: bytearray(2**40), "memory", "more than 512 MiB"),
    ],
)
def test_a_part_that_dies_is_a_result_and_costs_what_is_below_it(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    snap: Callable[[], object], verdict: str, why: str, executions: int,
) -> None:  # fmt: skip
    monkeypatch.setitem(PROGRAMS, "trap", _trap(lambda: None))
    whole = alone("trap")
    assert whole.seen is not None
    monkeypatch.setitem(PROGRAMS, "trap", _trap(snap))
    done = explored(
        tmp_path,
        ("trap", ""),
        executions=executions,
        bounds=CampaignBounds(timeout=4, memory=2**29),
    )
    [tree] = done.searches
    lost = [o for o in done.results if o.verdict != "ok"]
    assert {(o.verdict, o.why) for o in lost} == {(verdict, why)}
    assert (tree.verdict, tree.exhausted, tree.lost) == ("inconclusive", False, 1)
    assert seen(tree) < whole.seen.kept
    assert len(seen(tree)) == whole.complete - 1, "the others are all there"
    assert tree.runner.complete == whole.complete - 1
    rows = [r for r in table(tmp_path, "results") if r["verdict"] != "ok"]
    assert [r["why"] for r in rows] == [why] * len(lost)
    [coverage] = table(tmp_path, "coverage")
    assert (coverage["verdict"], coverage["exhausted"]) == ("inconclusive", False)
    tried = len(here.tried)
    explored(tmp_path, ("trap", ""), executions=executions)
    assert len(here.tried) == tried, "what died stands"


@forks
def test_a_livelock_is_a_bug_here_too(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(world: World, _: ModuleType) -> None:
        cell = world.cell(0, name="cell")

        def wait() -> None:
            while cell.get() == 0:
                pass

        world.spawn(wait, name="a")
        world.spawn(wait, name="b")

    monkeypatch.setitem(PROGRAMS, "spin", Program("spin", "", "queue", (), build, "", 0))
    done = explored(tmp_path, ("spin", ""), bounds=CampaignBounds(first_bug=True), max_steps=50)
    assert [bug for _, _, bug, _ in done.bugs()] == ["livelock"]


def test_without_anything_asked_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="without items"):
        explored(tmp_path)


class TestOnSpark:
    pytestmark = spark_marks

    def test_over_executors_it_finds_the_traces_of_one_process(
        self, spark: Any, tmp_path: Path
    ) -> None:
        asked = [("immediate", ""), ("two-takers", ""), ("immediate", "published-immediate")]
        done = distributed.explore(spark, asked, tmp_path, executions=20)
        for tree in done.searches:
            whole = alone(tree.program, tree.mutant)
            assert whole.seen is not None
            assert tree.exhausted
            assert tree.runner.complete == tree.traces == whole.complete
            assert seen(tree) == whole.seen.kept
        assert done.searches[0].traces == PROGRAMS["immediate"].traces
        assert {bug for _, _, bug, _ in done.bugs()} == {"IM-1"}
        lines = [p.read_bytes() for p in (tmp_path / "checkpoint").glob("*.jsonl")]
        assert sum(line.count(b"\n") for line in lines) == len(done.results)
        again = distributed.explore(spark, asked, tmp_path, executions=20)
        assert [p.read_bytes() for p in (tmp_path / "checkpoint").glob("*.jsonl")] == lines
        assert again.coverage() == done.coverage()

    def test_where_no_memory_is_allowed_nothing_is_exhausted(
        self, spark: Any, tmp_path: Path
    ) -> None:
        done = distributed.explore(
            spark, [("immediate", "")], tmp_path, bounds=CampaignBounds(memory=1)
        )
        assert [o.verdict for o in done.results] in (["memory"], ["died"])
        assert done.searches[0].verdict == "inconclusive"

    def test_the_command_writes_tables_and_says_what_was_not_exhausted(
        self, spark: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        from seriatim_models import cli

        command = ["campaign", "two-takers", "--exhaustive", "--out", str(tmp_path / "a")]
        assert cli.run(command) == 0
        assert "two-takers: ok, all traces: 28 in 1 parts" in capfd.readouterr().out
        assert table(tmp_path / "a", "coverage")[0]["traces"] == 28
        command[-1] = str(tmp_path / "b")
        assert cli.run([*command, "--timeout", "0.000001"]) == 3
        said = capfd.readouterr().out
        assert "two-takers: inconclusive, not all traces (what is below 1 of them is lost)" in said
