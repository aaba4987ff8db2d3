"""What a stranger writes: the mistake is found and named, and the repaired test is quiet."""

from __future__ import annotations

import re
import time

import pytest
from tests.own_code import ordinary

from seriatim_models.explorer import Pos
from seriatim_models.explorer.python import check, front

WRONG = {
    "singleton": "class attribute found: stored at ordinary.py:",
    "future_set_twice": "InvalidStateError",
    "event_cleared": "lost wake-up: .*Event._cond",
    "task_done": "lost wake-up: .*Queue.all_tasks_done",
    "nested_submit": "lost wake-up: .*Future._condition",
    "stopped_too_early": "assert got == ",
    "stampede": "assert len",
    "cancelled": "assert not lock.locked",
    "long_enough": "assert done",
}


@pytest.mark.parametrize("name", WRONG)
def test_the_mistake_is_found_and_named(name: str) -> None:
    result = check(getattr(ordinary, f"{name}_wrong"), max_executions=60)
    assert result.verdict == "violated", result.why
    assert result.counterexample is not None
    text = " ".join(result.counterexample.text(width=400).split())
    assert re.search(WRONG[name], text), text


@pytest.mark.parametrize("name", WRONG)
def test_the_repaired_test_is_quiet(name: str) -> None:
    result = check(getattr(ordinary, f"{name}_right"), max_executions=2000)
    assert result.verdict == "ok", result.why


def test_schedules_are_drawn_in_time_also_where_executions_are_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, drawn = time.perf_counter(), []

    def draws() -> Pos:
        drawn.append(time.perf_counter() - started)
        return Pos()

    monkeypatch.setattr(front, "SOON", 1_000_000)
    monkeypatch.setattr(front, "Pos", draws)
    assert check(ordinary.many_schedules, seconds=4).verdict == "inconclusive"
    assert drawn[0] < 3.5


def test_the_thread_that_comes_to_a_class_first_decides_nothing() -> None:
    """It gave the class its name, so that the same step of another schedule touched something else."""
    assert check(ordinary.class_touched_by_either_first).verdict == "ok"


def test_attributes_of_a_thread_local_are_no_places() -> None:
    result = check(ordinary.each_thread_has_its_own)
    assert (result.verdict, result.traces) == ("ok", 1)
