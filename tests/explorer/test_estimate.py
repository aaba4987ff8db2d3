"""The estimate of the number of traces is unbiased, because the schedules of a trace are counted exactly."""

from __future__ import annotations

import re
import time
from collections import Counter
from hashlib import blake2b

import pytest

from seriatim_models.explorer import Estimate, Progress, Watch, explore
from seriatim_models.explorer.model.program import Limits, Setting
from seriatim_models.explorer.search.dpor import DporSearch
from seriatim_models.explorer.search.estimate import (
    Estimator,
    PartialOrder,
    estimate,
    linear_extensions,
)
from seriatim_models.explorer.search.runner import Runner
from seriatim_models.explorer.trace.foata import TraceSample
from seriatim_workshop.crosscheck.brute_force import interleavings
from seriatim_workshop.crosscheck.generated_programs import generate
from seriatim_workshop.litmus import (
    Program,
    casrot,
    example2,
    lastzero,
    locked_counter,
    lost_wakeup,
    racy_counter,
    readers,
)

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


def test_names_are_counted_exactly_while_there_is_room_and_nearly_beyond() -> None:
    names = TraceSample(most=1000)
    for k in range(500):
        assert not names.met(named(k))
        assert names.met(named(k))
    assert (names.count, names.one_in) == (500, 1)
    for _ in range(2):
        for k in range(40_000):
            names.met(named(k))
    assert len(names.kept) <= 1000
    assert names.one_in >= 32
    assert names.count == pytest.approx(40_000, rel=0.15)


def test_names_of_two_join_whatever_their_shares() -> None:
    few, many = TraceSample(most=1000), TraceSample(most=1000)
    for k in range(600):
        few.met(named(k))
    for k in range(20_000):
        many.met(named(k))
    again = few.join(many.kept, many.one_in)
    assert few.count == many.count == pytest.approx(20_000, rel=0.15)
    assert again * few.one_in == pytest.approx(600, rel=0.5)
    assert many.join(few.kept, few.one_in) == len(few.kept)


def named(k: int) -> bytes:
    return blake2b(str(k).encode(), digest_size=16).digest()


def test_the_share_of_the_tree_grows_to_one() -> None:
    search = DporSearch(Runner(racy_counter(4), Setting(), Limits()))
    explored = []
    while not search.once():
        explored.append(search.explored())
    assert explored[0] < 0.2
    assert explored[-1] > 0.95
    assert 0.1 < explored[288] < 0.9


def test_progress_is_told_with_a_size_and_the_time_left() -> None:
    said: list[Progress] = []
    watch = Watch(said.append)
    runner = Runner(racy_counter(4), Setting(), Limits(max_executions=200))
    DporSearch(runner).run()
    watch(runner)
    progress = said[0]
    assert progress.executions == 200
    assert progress.estimate.walks > 0
    assert progress.total is not None
    assert progress.left is not None
    assert re.search(
        r"200 executions, [\d,]+/s, about [\d,]+ .*in all.*, 0:00:0\d left", str(progress)
    )


def test_walks_take_a_small_part_of_the_time_however_long_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where many steps are independent a walk takes a second. The search went on at two executions a second."""
    clock, spent = [0.0], []

    def spend(self: Estimator, seconds: float) -> Estimate:
        clock[0] += 1.0
        spent.append(clock[0])
        return self.estimate

    monkeypatch.setattr(Estimator, "spend", spend)
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    runner = Runner(racy_counter(2), Setting(), Limits())
    watch = Watch(lambda progress: None)
    for _ in range(400):
        clock[0] += 0.5
        watch(runner)
    assert runner.seconds > 200
    assert 1 < len(spent) <= 0.06 * runner.seconds


def test_a_sample_has_a_size_but_no_end() -> None:
    size = Estimate(traces=576, traces_error=10, schedules=2520, walks=200, skipped=0)
    progress = Progress(1000, 0.5, size, samples=True)
    assert progress.left is None
    assert str(progress).startswith("1,000 executions, 2,000/s, of about 576 traces in all")


def test_a_budget_that_ran_out_says_how_much_there_is() -> None:
    result = explore(racy_counter(4), max_executions=300)
    assert result.progress is not None
    assert result.progress.total is not None
    assert 300 < result.progress.total < 5000
    assert result.progress.size in result.why
    assert explore(racy_counter(4)).progress is None


def test_linear_extensions() -> None:
    assert linear_extensions([0, 0, 0]) == 6
    assert linear_extensions([0, 1, 3]) == 1
    assert linear_extensions([0, 1, 0, 4]) == 6


def test_what_takes_too_long_to_count_is_left_out() -> None:
    """Two chains of hundreds of steps have few closed sets and very many comparisons."""
    steps = 400
    chains = [sum(1 << j for j in range(k % 2, k, 2)) for k in range(steps)]
    begun = time.process_time()
    assert linear_extensions(chains) is None
    assert time.process_time() - begun < 2
    assert linear_extensions(chains[:6]) == 20
