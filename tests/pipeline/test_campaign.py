"""Campaigns: what hangs or dies is a result, what was done is not done again, the traces are those of one process."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from seriatim_models.pipeline import PipelineError
from seriatim_models.pipeline.guarded import outcomes
from seriatim_models.pipeline.items import Item, items, run
from seriatim_models.programs import PROGRAMS

from .test_spark import pytestmark as spark_marks

KILLERS = ("die", "eat", "raise boom")


# Forking while Hypothesis or PySpark have threads: the children only run items.
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_an_item_that_goes_wrong_is_a_result_and_the_next_goes_on() -> None:
    batch = [Item("x", test=t) for what in KILLERS for t in (what, f"work 0.0{len(what)}")]
    found = list(outcomes(batch, timeout=60, memory=2**28, stopped=lambda: False))
    assert [o.verdict for o in found] == ["died", "ok", "memory", "ok", "error", "ok"]
    assert [o.why for o in found][::2] == [
        "signal SIGKILL", "more than 256 MiB", "ValueError: boom",
    ]  # fmt: skip
    assert [o.id for o in found] == [i.id for i in batch]
    hanging = [Item("x", test="hang"), Item("x", test="hang", seed=1)]
    found = list(outcomes(hanging, timeout=0.5, memory=0, stopped=lambda: False))
    assert [(o.verdict, o.why) for o in found] == [("timeout", "it had not ended after 0.5 s")] * 2


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_stopping_is_quick_even_in_the_middle_of_an_item() -> None:
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    begun = time.monotonic()
    assert not list(outcomes([Item("x", test="hang")], 60, 0, stop.is_set))
    assert time.monotonic() - begun < 2


def test_items_are_every_combination_that_makes_sense() -> None:
    made = items(["immediate"], ["", "published-immediate"], ["dpor", "pct"], range(3))
    assert len(made) == 2 * (1 + 3)
    assert len({i.id for i in made}) == len(made)
    with pytest.raises(PipelineError, match="no program 'immedite'"):
        items(["immedite"])


def test_two_schedules_of_one_trace_are_one_bug() -> None:
    found = [
        run(i) for i in items(["immediate"], ["published-immediate"], ["dpor", "pct"], range(4))
    ]
    convicted = [o for o in found if o.bug]
    assert len(convicted) >= 2
    assert {o.bug for o in convicted} == {"IM-1"}
    assert len({o.trace for o in convicted}) < len(convicted)


class TestOnSpark:
    pytestmark = spark_marks

    def test_a_campaign_goes_on_where_it_was(self, spark: Any, tmp_path: Path) -> None:
        from seriatim_models.pipeline.campaign import SCHEMA, campaign, journal

        work = items(
            ["immediate"], ["", "published-immediate"], ["pct", "random"], range(2), executions=40
        )
        work += [Item("x", test="die"), Item("x", test="work 0.1")]
        told = []
        first = campaign(spark, work[:6], tmp_path, partitions=2, on_progress=told.append)
        assert first.finished
        assert told[-1].total == 6
        lines = sorted((tmp_path / "journal").glob("*.jsonl"))
        torn = lines[0].read_bytes()
        lines[0].write_bytes(torn[: torn.rindex(b"\n", 0, -1) + 20])
        left = len(journal(tmp_path))
        assert left == 5
        done = campaign(spark, work, tmp_path, partitions=2)
        assert done.finished
        assert len(done.outcomes) == len(work)
        kept = {
            n: pq.read_table(tmp_path / f"{n}.parquet") for n in ("results", "bugs", "coverage")
        }
        assert {t.schema.metadata[b"seriatim"] for t in kept.values()} == {SCHEMA.encode()}
        assert len(kept["results"]) == len(work)
        assert sum(v == "died" for v in kept["results"]["verdict"].to_pylist()) == 1
        alone = {o.id: o for o in map(run, work[:8])}
        for o in done.outcomes:
            if o.id in alone:
                mine = alone[o.id]
                assert (o.verdict, o.traces, o.names, o.trace) == (
                    mine.verdict, mine.traces, mine.names, mine.trace,
                )  # fmt: skip

    def test_the_first_bug_ends_it_within_a_second(self, spark: Any, tmp_path: Path) -> None:
        from seriatim_models.pipeline.campaign import campaign

        work = [Item("x", seed=n, test="hang") for n in range(3)]
        work.insert(1, Item("x", test="find 0.5"))
        begun = time.monotonic()
        done = campaign(spark, work, tmp_path, partitions=4, first_bug=True)
        assert not done.finished
        assert [o.bug for o in done.outcomes] == ["P1"]
        assert time.monotonic() - begun < 60, "hanging items last an hour"

    def test_one_search_over_executors_finds_the_traces_of_one_process(self, spark: Any) -> None:
        from seriatim_models.explorer.dpor import Search
        from seriatim_models.explorer.guard import guarded
        from seriatim_models.pipeline import subtrees

        name = "immediate"
        shared = subtrees.explore(spark, name, portion=5)
        alone = subtrees.runner_of(name, "", False)
        with guarded():
            Search(alone).run()
        assert shared.exhausted
        assert shared.complete == alone.complete == PROGRAMS[name].traces
        assert shared.seen is not None
        assert alone.seen is not None
        assert shared.seen.kept == alone.seen.kept
        found = subtrees.explore(spark, "immediate", "published-immediate", portion=1)
        assert found.found
