"""No right system is ever reported: histories drawn from declared meanings, each under the profiles that it keeps."""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from seriatim_models.history.event import SETTLES, Event
from seriatim_models.properties.base import Verdict
from seriatim_workshop.right import broker, clients, drawing, logs, workers
from seriatim_workshop.right.broker import MS
from seriatim_workshop.right.drawing import AnyMeaning, draw, draw_broker, history
from seriatim_workshop.right.judging import completed, kept, reported, sweep
from seriatim_workshop.right.workers import draw_workers

from .blackbox_histories import BY_ID

P26 = BY_ID["P26"]

BLOCKS = 10
EACH = 50


@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_right_history_is_reported(block: int, tmp_path: Path) -> None:
    """500 in all; ``make right-systems N=10000`` takes more."""
    found = sweep(range(block * EACH, (block + 1) * EACH), tmp_path)
    assert not found, "\n".join(map(str, found))


def delayed(seed: int) -> AnyMeaning:
    """A drawn broker or queue without channels, whose messages wait after their publish."""
    meaning = draw_workers(seed) if seed % 3 == 0 else draw_broker(seed)
    return meaning._replace(delay=random.Random(seed).choice([5, 30, 60]) * MS)


def hasty(meaning: AnyMeaning) -> list[Event]:
    """The history of one that declares a delay and has none."""
    events = history(meaning._replace(delay=0))  # type: ignore[call-arg]  # no log is drawn
    return [
        msgspec.structs.replace(e, args={**e.args, "delay": 60}) if e.ev == "declare" else e
        for e in events
    ]


@pytest.mark.parametrize(
    ("first", "seeds"), [(0, 60), pytest.param(70_000, 600, marks=pytest.mark.slow)]
)
def test_no_right_history_with_delays_is_reported(first: int, seeds: int) -> None:
    """And many that do not keep the delay that they declare."""
    tested = broken = 0
    for seed in range(first, first + seeds):
        meaning = delayed(seed)
        wrong = reported(meaning, history(meaning))
        assert not wrong, f"seed {seed}: {wrong[0].property}: {wrong[0].explanation}"
        tested += P26.check(completed(history(meaning))).verdict is Verdict.OK
        broken += P26.check(completed(hasty(meaning))).verdict is Verdict.VIOLATED
    assert tested > seeds / 10
    assert broken > seeds / 2


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
    for seed in range(130):
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


def answers_alone(events: Sequence[Event]) -> list[Event]:
    """A history as its recorder had it that writes down what returns, and nothing of what begins."""
    left = [e for e in events if e.ph != "invoke"]
    return [msgspec.structs.replace(e, i=i) for i, e in enumerate(left)]


@pytest.mark.parametrize("block", range(4))
def test_no_right_history_is_reported_by_its_numbered_answers_alone(block: int) -> None:
    judged = 0
    for seed in range(block * 100, (block + 1) * 100):
        meaning = draw(seed)
        events = history(meaning)
        calls = [e for e in events if e.ph == "invoke" and e.ev not in SETTLES]
        if not calls or any(e.op is None for e in calls):
            continue  # without a number an answer is the whole of its call
        begun = completed(answers_alone(events))
        found = [p.check(begun) for p in kept(meaning)]
        wrong = [f"{f.property}: {f.explanation}" for f in found if f.verdict is Verdict.VIOLATED]
        assert not wrong, f"seed {seed}: {wrong}"
        judged += any(f.verdict is Verdict.OK for f in found)
    assert judged > 40
