"""The estimate of the number of traces is unbiased, because the schedules of a trace are counted exactly."""

from __future__ import annotations

from collections import Counter

import pytest

from seriatim_models.explorer.brute import interleavings
from seriatim_models.explorer.estimate import PartialOrder, estimate, linear_extensions
from seriatim_models.explorer.generated import generate
from seriatim_models.explorer.litmus import (
    Program,
    casrot,
    example2,
    lastzero,
    locked_counter,
    lost_wakeup,
    racy_counter,
    readers,
)
from seriatim_models.explorer.runner import Limits, Runner, Setting

PROGRAMS: list[Program] = [
    readers(4), racy_counter(2), lastzero(2), casrot(4), example2, lost_wakeup, locked_counter(3),
    *(generate(n) for n in (9, 20, 36, 41, 70)),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_the_schedules_of_a_trace_are_its_linear_extensions(number: int) -> None:
    runner = Runner(PROGRAMS[number], Setting(timeouts=0), Limits())
    schedules: Counter[bytes] = Counter()
    example: dict[bytes, list[tuple[int, int]]] = {}
    for ex, levels in interleavings(runner.fresh):
        schedules[levels.digest()] += 1
        example[levels.digest()] = list(ex.schedule)
        assert schedules.total() < 20_000
    for name, count in schedules.items():
        ex = runner.fresh()
        order = PartialOrder(ex)
        for thread, way in example[name]:
            order.step(ex.order[thread], way)
        ex.close()
        assert linear_extensions(order.before) == count


def test_the_estimate_of_an_even_program_is_near() -> None:
    guess = estimate(racy_counter(3), 400, seed=1)
    assert 30 < guess.traces < 42
    assert guess.skipped == 0


def test_linear_extensions() -> None:
    assert linear_extensions([0, 0, 0]) == 6
    assert linear_extensions([0, 1, 3]) == 1
    assert linear_extensions([0, 1, 0, 4]) == 6
