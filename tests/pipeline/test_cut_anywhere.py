"""A history cut anywhere, into files, into slices and into tasks, is judged as if it were in one piece."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seriatim_models.history import Event, write_history
from seriatim_models.history.complete import complete
from seriatim_models.history.header import Header
from seriatim_models.pipeline import audit_paths
from seriatim_models.pipeline.audit.tasks import TaskRecord, combine, packed, unpacked
from seriatim_models.properties.base import Finding, Fold
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_workshop.bench.simulated_broker import FAULTS, SimulatedBroker

from .test_spark import pytestmark as spark_marks
from .test_spark import same


def made(seed: int, fault: str, messages: int = 40) -> list[Event]:
    return list(SimulatedBroker(seed, messages, fault=fault, q=f"q{seed}").run())


def finding(n: int, parts: list[TaskRecord]) -> Finding:
    prop = BLACKBOX[n]
    return prop.finish(unpacked(prop, combine(BLACKBOX, parts).payload))


@settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    seed=st.integers(0, 2**20),
    fault=st.sampled_from(["", *FAULTS]),
    cuts=st.lists(st.integers(0, 250), max_size=5),
)
def test_summaries_of_tasks_join_to_that_of_the_whole(
    seed: int, fault: str, cuts: list[int]
) -> None:
    events = list(complete(made(seed, fault)))
    bounds = [0, *sorted(min(c, len(events)) for c in cuts), len(events)]
    parts: dict[int, list[TaskRecord]] = {}
    for number, (a, b) in enumerate(pairwise(bounds)):
        fold = Fold(BLACKBOX, first=number == 0)
        fold.take(events[a:b])
        for n, (prop, summary) in enumerate(zip(BLACKBOX, fold.summaries, strict=True)):
            parts.setdefault(n, []).append(TaskRecord("", n, number, packed(prop, summary)))
    for n, of in parts.items():
        prop = BLACKBOX[n]
        whole = prop.combine(prop.begin(), prop.map(e for e in events if e.ev in prop.reads))
        assert finding(n, of) == prop.finish(whole)


def cut_into_files(folder: Path, run: str, events: list[Event], cuts: list[int]) -> None:
    bounds = [0, *sorted(min(c, len(events)) for c in cuts), len(events)]
    for number, (a, b) in enumerate(pairwise(bounds)):
        if b > a:
            suffix = ("jsonl", "jsonl.gz", "jsonl.zst", "parquet")[number % 4]
            write_history(folder / f"{run}-{number}.{suffix}", events[a:b], Header(run=run))


class TestOnSpark:
    pytestmark = spark_marks

    @pytest.mark.slow
    def test_equal_on_made_histories_cut_anywhere(
        self, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One audit of many histories: a job costs seconds, a history in it nothing."""
        import random

        draw = random.Random(7)
        for n, fault in enumerate(["", *FAULTS]):
            events = made(draw.randrange(2**20), fault, 300)
            cuts = [draw.randrange(len(events)) for _ in range(draw.randrange(4))]
            cut_into_files(tmp_path, f"{fault or 'right'} {n}", events, cuts)
        local = audit_paths([tmp_path])
        violated = {f.subject for f in local.findings if f.n_violations}
        assert {c.split()[0] for c in violated} == set(FAULTS), "each has something to be found"
        from seriatim_models.pipeline.audit import ingest
        from seriatim_models.pipeline.audit import tasks as engine

        monkeypatch.setattr(ingest.ingest, "__defaults__", (499,))
        monkeypatch.setattr(engine, "RANGES_EACH", 5)
        monkeypatch.setattr(engine, "FAN", 3)
        same(audit_paths([tmp_path], engine="spark"), local)
