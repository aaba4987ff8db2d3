"""No right system is ever reported: histories drawn from declared meanings, each under the profiles that it keeps."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from seriatim_models.properties.base import Verdict
from seriatim_workshop.right import broker, clients, drawing, logs, workers
from seriatim_workshop.right.drawing import draw, history
from seriatim_workshop.right.judging import completed, kept, sweep

BLOCKS = 10
EACH = 50


@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_right_history_is_reported(block: int, tmp_path: Path) -> None:
    """500 in all; ``make right-systems N=10000`` takes more."""
    found = sweep(range(block * EACH, (block + 1) * EACH), tmp_path)
    assert not found, "\n".join(map(str, found))


def test_the_instrument_knows_nothing_of_the_oracle() -> None:
    for module in (broker, clients, drawing, logs, workers):
        tree = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))
        imported = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        ours = {m for m in imported if m and m.startswith("seriatim")}
        allowed = {"seriatim_models.history.event"}
        assert {m for m in ours if not m.startswith("seriatim_workshop.right.")} <= allowed


def test_the_histories_are_worth_judging() -> None:
    """They hold what is hard: ends of all kinds, unknown outcomes, refused calls; and the properties have cases."""
    seen: Counter[str] = Counter()
    cases: Counter[str] = Counter()
    for seed in range(100):
        meaning = draw(seed)
        events = history(meaning)
        seen.update(f"{e.ev} {e.ph}" for e in events)
        closed = {(e.conn, e.ch) for e in events if e.ev == "conn_drop"}
        seen["drops"] += len(closed)
        judged = completed(events)
        for p in kept(meaning):
            cases[p.id] += p.check(judged).verdict is Verdict.OK
    for kind in (
        "commit fail",
        "seek ",
        "ack fail",
        "get info",
        "conn_drop info",
        "recover ok",
        "ch_close ok",
        "cancel ok",
    ):
        assert seen[kind], kind
    for id in ("P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9", "P10", "P15", "P20"):
        assert cases[id] > 3, (id, cases)
