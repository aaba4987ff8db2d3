"""Loops that wait are one blocking read; those that change something are run as they are written."""

from __future__ import annotations

import re
import sys

import pytest
from tests.own_code import waiting, waiting_tasks

from seriatim_models.explorer import Random, Replay
from seriatim_models.explorer.python import check

FUTURE = 1 if sys.version_info < (3, 12) else 2
"""Since 3.12 the worker of an executor looks whether there is work before it waits: a race with `submit`."""

RIGHT = {
    # How many traces: those of the program in which each loop has its last round alone, one blocking read.
    "flag": 1, "polled": 1, "closure": 1, "locked": 1, "spin_lock": 2, "empty_queue": 1, "tried": 1,
    "under_a_lock": 1, "as_many": 2, "alive": 1, "all_done": 1, "popped": 1, "event": 1, "future": FUTURE,
    "taken_over": 1, "peterson": 8, "daemon": 1, "counted_without_end": 1, "repeated_without_end": 1,
    "asked_until_it_is_so": 1, "read_twice_in_a_round": 1, "read_twice_under_a_lock": 1, "asked_twice": 1,
    "alive_twice": 1,
}  # fmt: skip
READS = "reads .*{}, which nobody changes any more"
WRONG = {
    "never_set": r"main waits for ever: the loop at waiting.py:\d+ " + READS.format("Box.ready"),
    "never_though_read_twice": READS.format("Box.value"),
    "never_counted": READS.format("Box.ready"),
    "never_asked_with_success": READS.format("Box.ready"),
    "too_early": "assert box.value == 1",
    "for_each_other": "a livelock: these loops wait for each other",
    "dekker_that_never_yields": "a livelock: these loops wait for each other",
    "within_its_lock": "waits for lock .*, held by .*" + READS.format("Box.ready"),
    "flickers": READS.format("Box.ready"),
    "lost_count": READS.format("Box.value"),
    # These give up, which is seen as well:
    "bounded": "assert tries < 8",
    "bounded_in_an_attribute": "assert mine.value < 8",
    "bounded_in_a_class": "assert Box.total < 8",
    "bounded_in_a_local": "assert mine.tries < 8",
    "bounded_by_a_generator": "assert next",
    "bounded_by_its_own_count": "assert tries < 8",
    "bounded_by_repetition": "assert not late",
    "counted_by_two": "assert next",
    "looks_at_its_variables": "assert names",
    "looked_at_from_outside": "assert not seen.ready",
}
ENDS_BY_ITSELF = {
    "until_a_deadline": 12, "by_chance": 19, "a_call_twice": 1, "limited": 2,
    "taken_as_often_as_possible": 10,
}  # fmt: skip
CHANGES_SOMETHING = {
    "counts_for_ever": "while not box.ready",
    "notifies_in_a_loop": "while not box.ready",
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_loop_that_waits_is_one_blocking_read(name: str) -> None:
    result = check(getattr(waiting, name), max_executions=50)
    assert (result.verdict, result.traces) == ("ok", RIGHT[name]), result.why


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_about_a_loop_is_found_and_replayed(name: str) -> None:
    result = check(getattr(waiting, name), max_executions=50)
    assert result.verdict == "violated", result.why
    assert re.search(WRONG[name], result.why), result.why
    assert result.counterexample is not None
    again = check(getattr(waiting, name), Replay(result.counterexample.token))
    assert again.verdict == "violated"
    assert re.search(WRONG[name], again.why), again.why


@pytest.mark.parametrize("name", ENDS_BY_ITSELF)
def test_a_loop_that_changes_something_is_run_as_it_is_written(name: str) -> None:
    result = check(getattr(waiting, name), max_executions=50)
    assert (result.verdict, result.traces) == ("ok", ENDS_BY_ITSELF[name]), result.why


@pytest.mark.parametrize("name", CHANGES_SOMETHING)
def test_a_loop_that_may_change_something_for_ever_is_named(name: str) -> None:
    result = check(getattr(waiting, name), max_executions=60)
    assert result.verdict == "inconclusive"
    assert re.search(r"the loop at waiting\.py:\d+ went round \d+ times", result.why), result.why
    assert "wait for an Event or a Condition instead, or bound the loop" in result.why


def test_a_sample_goes_on_when_what_it_waits_for_has_changed() -> None:
    result = check(waiting.flag, Random(seed=1), max_executions=40)
    assert result.complete >= 40
    assert dict(result.ends) == {"finished": result.complete}


@pytest.mark.parametrize("name", ["peterson", "as_many", "under_a_lock"])
def test_several_processes_see_the_same(name: str) -> None:
    result = check(getattr(waiting, name), jobs=2)
    assert (result.verdict, result.traces) == ("ok", RIGHT[name])


@pytest.mark.parametrize("name", [name for name in vars(waiting_tasks) if name.startswith("wrong")])
def test_a_task_that_waits_without_letting_the_event_loop_run_waits_for_ever(name: str) -> None:
    result = check(getattr(waiting_tasks, name), max_executions=50)
    assert result.verdict == "violated", result.why
    assert re.search(r"main waits for ever: the loop at waiting_tasks.py:\d+", result.why), (
        result.why
    )
    assert result.counterexample is not None
    again = check(getattr(waiting_tasks, name), Replay(result.counterexample.token))
    assert (again.verdict, again.why.partition(" (")[0]) == (
        "violated",
        result.why.partition(" (")[0],
    )


@pytest.mark.parametrize("name", [name for name in vars(waiting_tasks) if name.startswith("right")])
def test_a_task_goes_on_where_the_event_loop_or_another_thread_has_run(name: str) -> None:
    result = check(getattr(waiting_tasks, name), seconds=60)
    assert result.verdict == "ok", result.why
