"""The form over columns gives the summary that the readable one gives."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from seriatim_models.history import Event, read_history
from seriatim_models.history.complete import UNKNOWN_GEN, complete
from seriatim_models.pipeline.audit import chunks, columns
from seriatim_models.pipeline.audit.tasks import add_chunk
from seriatim_models.properties.base import Fold
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.columnar.forms import column_map
from seriatim_workshop.bench.simulated_broker import SimulatedBroker

from .conftest import DATA

P4 = next(p for p in BLACKBOX if p.id == "P4")

CHOICES: dict[str, list[Any]] = {
    "ev": ["deliver", "get", "ack"],
    "ph": ["", "ok", "invoke"],
    "m": ["", "a", "b"],
    "q": ["", "q1", "q2"],
    "pub": ["", "p", "p2"],
    "pseq": [None, *range(-2, 7)],
    "redelivered": [None, False, False, False, True],
    "prio": [None, None, 1],
    "ch": [None, 1],
    "gen": [None, UNKNOWN_GEN, 1],
    "ctag": ["", "t", "t2"],
    "proc": ["", "w", "w2"],
}


def compare(events: list[Event], folder: Path) -> None:
    from seriatim_models.history import table

    name = "c.parquet"
    chunks.write_chunk(folder, name, columns.placed(table.columns(events), 0))
    fold = Fold([P4], first=True)
    add_chunk(fold, str(folder / name))
    form = column_map(P4)
    assert form is not None
    summary = form.with_witnesses(
        fold.summaries[0], lambda names: chunks.find([str(folder / name)], names)
    )
    assert P4.finish(summary) == P4.finish(P4.map(events))


@pytest.mark.parametrize("seed", range(40))
def test_equal_on_anything(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    rows = [{k: draw.choice(v) for k, v in CHOICES.items()} for _ in range(1 + seed)]
    for row in rows:
        row["m"] = row["m"] or "a" * (row["ev"] == "deliver")  # a delivery always has one
    compare([Event(i=n, t=n, **r) for n, r in enumerate(rows)], tmp_path)


@pytest.mark.parametrize("name", ["rabbit-classic-lockstep", "rabbit-classic-competing"])
def test_equal_on_recordings(tmp_path: Path, name: str) -> None:
    compare(list(complete(read_history(DATA / f"{name}.jsonl.gz").events)), tmp_path)


def test_equal_on_a_broker_that_does_not_keep_order(tmp_path: Path) -> None:
    compare(list(complete(SimulatedBroker(1, 300, fault="skips").run())), tmp_path)
