"""The table of the corpus of known bugs; the corpus itself needs a network and is run by `make corpus`."""

from __future__ import annotations

import inspect
import logging
import types
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from tests.own_code import published

from seriatim_models.explorer.errors import NotObserved
from seriatim_models.explorer.python import calls, check
from seriatim_workshop.corpus import by_peers, drivers
from seriatim_workshop.corpus.run import (
    BEGIN,
    BUGS,
    END,
    SETS,
    HandlerWithoutLock,
    driver_of,
    row,
)

PAGE = (Path(__file__).parents[2] / "spec/OWN_CODE.md").read_text(encoding="utf-8")


def result(verdict: str) -> dict[str, Any]:
    return {"verdict": verdict, "why": "", "executions": 1, "seconds": 0.1}


def test_every_bug_has_a_driver_and_two_versions() -> None:
    for module, bugs in SETS:
        for bug in bugs:
            assert driver_of(bug.driver) is getattr(module, bug.driver)
            assert bug.buggy != bug.fixed


def test_every_driver_with_threads_can_be_cut_for_other_explorers() -> None:
    """What stands before its `together`, the threads, and what stands behind."""
    for bug in BUGS:
        if inspect.iscoroutinefunction(getattr(drivers, bug.driver)):
            continue
        driver, threads = by_peers.cut(bug.driver)
        assert inspect.isgeneratorfunction(driver)
        assert threads > 1


def test_a_driver_that_is_cut_still_asserts() -> None:
    def driver() -> Generator[tuple[Callable[[], object], ...]]:
        seen: list[int] = []
        yield lambda: seen.append(1), lambda: None
        assert seen

    for bodies, right in ((2, True), (0, False)):
        running = driver()
        for body in next(running)[:bodies]:
            body()
        assert by_peers.holds((running, ())) is right


def test_a_missed_bug_and_a_loud_repair_stand_in_the_table() -> None:
    assert "| found | 1 |" in row(BUGS[0], result("violated"), result("ok"))
    assert "| missed (ok) | 1 |" in row(BUGS[0], result("ok"), result("ok"))
    broken = {**result("violated"), "why": "error: main raised ImportError in step 0 (execution 1)"}
    assert "| missed (violated) | 1 |" in row(BUGS[0], broken, result("ok"))
    assert "| not quiet (violated) |" in row(BUGS[0], result("violated"), result("violated"))
    assert "verdict withheld" in row(BUGS[0], result("violated"), result("inconclusive"))


def test_the_page_has_a_row_for_each() -> None:
    table = PAGE.partition(BEGIN)[2].partition(END)[0]
    assert table.count("| found |") == len(BUGS)


@pytest.mark.parametrize(("wrong", "right", "report"), published.REPORTS)
def test_a_published_mistake_is_found_and_its_right_form_is_exhausted(
    wrong: str, right: str, report: str
) -> None:
    found, quiet = check(getattr(published, wrong)), check(getattr(published, right))
    assert found.verdict == "violated", str(found)
    assert (quiet.verdict, quiet.redundant, quiet.blocked) == ("ok", 0, 0), str(quiet)
    assert report in PAGE


def test_two_timers_that_end_in_one_turn_are_in_deadline_order_too() -> None:
    """Both sleep for a second, so the loop wakes once for both: the real `asyncio.run` loses the item, always."""
    assert (
        check(published.wrong_item_of_a_cancelled_getter, timers="deadline").verdict == "violated"
    )
    assert check(published.right_item_is_put_back, timers="deadline").verdict == "ok"


def test_a_handler_that_does_nothing_may_be_added_where_logging_is_not_observed() -> None:
    """Also one of a class of the program's own, which the runner puts in the place of `StreamHandler`."""

    class Writes(logging.NullHandler):
        def emit(self, record: logging.LogRecord) -> None:
            print(record)

    add = logging.getLogger("seriatim.nobody").addHandler
    for handler in (logging.NullHandler(), HandlerWithoutLock()):
        assert calls._logs(add, types.MethodType, (handler,))
    with pytest.raises(NotObserved):
        calls._logs(add, types.MethodType, (Writes(),))
