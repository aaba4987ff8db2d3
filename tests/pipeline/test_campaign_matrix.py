"""The matrix as a campaign: the table of one process, whatever is capped, killed or lost on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seriatim_models.matrix.plan import plan_universe
from seriatim_models.matrix.totals import add_up
from seriatim_models.matrix.work import Waves, header, perform_here, run_waves
from seriatim_models.pipeline import PipelineError
from seriatim_models.pipeline.campaign.isolation import IsolatedWorker
from seriatim_models.pipeline.campaign.items import ItemResult, SearchItem, Work
from seriatim_models.properties import Verdict

from .test_campaign import forks
from .test_spark import pytestmark as spark_marks

pytest.importorskip("pyspark")

from seriatim_models.pipeline.campaign import checkpoint, matrix
from seriatim_models.pipeline.campaign.matrix import MatrixCampaign, programs_per_item, run_batch
from seriatim_models.pipeline.campaign.run import CampaignBounds

WAVES = (3, 8, 100_000)
PROGRAMS = plan_universe("two", "push", 1).programs
BOUNDS = CampaignBounds(timeout=60)


def alone() -> Waves:
    """What one process finds."""
    waves = Waves("push", PROGRAMS, WAVES)
    assert run_waves(waves, perform_here)
    return waves


ALONE = alone()
CAPPED = sum(d.result.executions > WAVES[0] for d in ALONE.results.values())
"""Programs that the first wave does not bring to an end."""


class Here:
    """In place of the executors: one worker in this process."""

    def __init__(self) -> None:
        self.tried: list[SearchItem] = []
        self.most = 10**9
        """Items to try before this process is as good as killed."""
        self.work: Work = run_batch

    def fan_out(
        self, spark: Any, items: Sequence[SearchItem], folder: Path, bounds: CampaignBounds,
        tick: Callable[[], None], stopping: Callable[[], bool], work: Work,
    ) -> None:  # fmt: skip
        assert work is run_batch
        with (
            IsolatedWorker(bounds.memory, self.work) as worker,
            checkpoint.open_log(folder) as file,
        ):
            for item in items:
                if self.most <= len(self.tried):
                    raise KeyboardInterrupt
                [result] = worker.results([item], bounds.timeout, lambda: False)
                checkpoint.append(file, result)
                self.tried.append(item)
                tick()
                if stopping():
                    return


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Here:
    made = Here()
    monkeypatch.setattr(matrix, "fan_out", made.fan_out)
    return made


def campaign(folder: Path, **more: Any) -> MatrixCampaign:
    """A campaign over all programs, run."""
    made = MatrixCampaign(None, Waves("push", PROGRAMS, WAVES), folder, header("push", 1))  # type: ignore[arg-type]  # no Spark here
    made.run(BOUNDS, **more)
    return made


def programs_of(item: SearchItem) -> int:
    return len(msgspec.json.decode(item.batch)["programs"])


@forks
def test_it_finds_what_one_process_finds(here: Here, tmp_path: Path) -> None:
    found = campaign(tmp_path).waves.results
    assert found == ALONE.results
    assert add_up(PROGRAMS, found.values()) == add_up(PROGRAMS, ALONE.results.values())
    budgets = [item.executions for item in here.tried]
    assert budgets == sorted(budgets, key=lambda b: b or 0)
    assert set(budgets) == set(WAVES), "what was capped comes again in the next wave"
    for budget, due in ((WAVES[0], len(PROGRAMS)), (WAVES[1], CAPPED)):
        asked = sum(programs_of(i) for i in here.tried if i.executions == budget)
        assert asked == due, "nothing is done twice"


@forks
def test_killed_again_and_again_it_does_no_batch_twice(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix, "PAIRS_PER_ITEM", 3)
    kills = 0
    for here.most in range(1, 1000):
        try:
            found = campaign(tmp_path).waves.results
            break
        except KeyboardInterrupt:
            kills += 1
    assert kills > 5
    assert found == ALONE.results
    ids = [i.id for i in here.tried]
    assert len(set(ids)) == len(ids)
    here.tried.clear()
    assert campaign(tmp_path).waves.results == ALONE.results
    assert here.tried == []


@forks
def test_asked_to_stop_it_keeps_what_there_is(here: Here, tmp_path: Path) -> None:
    stopped = campaign(tmp_path, stopping=lambda: len(here.tried) >= 1)
    assert 0 < len(stopped.waves.results) < len(PROGRAMS)
    cells = add_up(PROGRAMS, stopped.waves.results.values())
    assert Verdict.INCONCLUSIVE in {c.verdict for c in cells}


def dies_of(name: str) -> Work:
    """The work, but whoever runs this call dies."""

    def work(item: SearchItem, reached: Callable[[int], None] = lambda _: None) -> ItemResult:
        if f'"call":"{name}"' in item.batch.partition('"calls"')[2]:
            os.kill(os.getpid(), signal.SIGKILL)
        return run_batch(item, reached)

    return work


@forks
def test_who_kills_the_process_is_found_and_nobody_else_is_lost(here: Here, tmp_path: Path) -> None:
    here.work = dies_of("grant")
    made = campaign(tmp_path)
    guilty = {p.key for p in PROGRAMS if "grant" in [c.call for c in p.calls]}
    assert guilty
    missing = {p.key for p in PROGRAMS} - set(made.waves.results)
    assert guilty <= missing
    assert set(made.lost) == missing
    assert set(made.lost.values()) == {"died: signal SIGKILL"}
    verdicts = {c.calls: c.verdict for c in add_up(PROGRAMS, made.waves.results.values())}
    assert verdicts["enqueue", "grant"] is Verdict.INCONCLUSIVE
    assert verdicts["enqueue", "subscribe"] is Verdict.OK
    here.work = run_batch
    again = campaign(tmp_path)
    assert (again.waves.results, again.lost) == (ALONE.results, {})


@forks
def test_a_folder_of_something_else_is_refused_and_left_as_it_is(
    here: Here, tmp_path: Path
) -> None:
    campaign(tmp_path, stopping=lambda: bool(here.tried))
    other = MatrixCampaign(None, Waves("push", PROGRAMS), tmp_path, header("push", 2))  # type: ignore[arg-type]
    with pytest.raises(PipelineError, match="has results of depth 1 and not 2; give another"):
        other.run(BOUNDS)
    mark = tmp_path / "matrix-push.json"
    mark.write_bytes(b"hello")
    with pytest.raises(PipelineError, match="does not say of which matrix"):
        campaign(tmp_path)
    assert mark.read_bytes() == b"hello"


def test_later_waves_have_smaller_batches() -> None:
    assert [programs_per_item(n) for n in (100, 1_000, 10_000, 100_000)] == [12, 12, 1, 1]


# ---- on Spark, as a command

PUSH = ("push", "--depth", "1", "--universe", "two", "--universe", "holding")


def command(folder: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "seriatim_models.cli.submit", "matrix", *PUSH, *more]


def table(path: Path) -> dict[str, Any]:
    [system] = msgspec.json.decode(path.read_bytes())["systems"]
    return {k: v for k, v in system.items() if k != "seconds"}


def results_in(folder: Path) -> int:
    return sum(p.read_bytes().count(b"\n") for p in (folder / "checkpoint").glob("*.jsonl"))


class TestOnSpark:
    pytestmark = spark_marks

    @pytest.mark.slow
    @pytest.mark.timeout(900)  # three commands, two of which start Spark
    def test_killed_it_goes_on_and_has_the_table_of_one_process(self, tmp_path: Path) -> None:
        folder, one, all_of_it = tmp_path / "c", tmp_path / "one.json", tmp_path / "all.json"
        process = subprocess.Popen(
            command(tmp_path, "--campaign", str(folder)),
            cwd=tmp_path, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        while results_in(folder) < 3:
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        kept = results_in(folder)
        for target, more in (
            (all_of_it, ("--campaign", str(folder))),
            (one, ("--jobs", "1", "--journal", str(tmp_path / "journal"))),
        ):
            done = subprocess.run(
                command(tmp_path, *more, "--json", str(target)), cwd=tmp_path, capture_output=True,
                text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
        assert table(all_of_it) == table(one)
        assert table(one)["verdict"] == "ok"
        assert results_in(folder) > kept
