"""How many traces are there? An unbiased estimate, without finding them.

Walk at random; let p be the probability of the schedule that came out (Knuth 1975: 1/p estimates the number of
*schedules*). A trace is a class of N schedules, the linear extensions of its partial order, so

    E[ 1 / (p * N) ] = sum over schedules of 1/N = number of traces.

N is counted exactly, from the bottom of the partial order up, one step at a time; with few threads there are few
sets of steps that are closed downwards. The estimate is unbiased and skewed: rare walks weigh much,
so most estimates of a lopsided program are too small.
The standard error is given with the mean; take it as a hint.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from math import sqrt

from seriatim_models.explorer.execution import Execution, Thread
from seriatim_models.explorer.guard import guarded
from seriatim_models.explorer.operations import Footprint
from seriatim_models.explorer.runner import Limits, Program, Runner, Setting

DOWNSETS_MAX = 20_000
"""Partial orders with more closed sets are not counted; the walk is left out, and said."""


@dataclass(frozen=True)
class Estimate:
    """Estimated sizes of the search."""

    traces: float
    traces_error: float
    """Standard error of the mean."""
    schedules: float
    walks: int
    skipped: int
    """Walks that were too long to count; if there are any, the estimate is too small."""

    def __str__(self) -> str:
        return f"about {self.traces:.3g} traces (standard error {self.traces_error:.2g}, {self.walks} walks)"


def estimate(
    program: Program,
    walks: int = 200,
    seed: int = 0,
    *,
    real_time: bool = False,
    timeouts: int = 1,
    spurious: int = 0,
    max_steps: int = 500,
) -> Estimate:
    """Estimate the number of traces of a program from random walks."""
    runner = Runner(program, Setting(real_time, timeouts, spurious), Limits(max_steps=max_steps))
    chance = random.Random(seed)
    traces: list[float] = []
    schedules: list[float] = []
    skipped = 0
    with guarded():
        for _ in range(walks):
            ex = runner.fresh()
            weight, before = _walk(ex, chance, max_steps)
            ex.close()
            extensions = linear_extensions(before) if before is not None else None
            if extensions is None:
                skipped += 1
                continue
            schedules.append(weight)
            traces.append(weight / extensions)
    n = max(len(traces), 1)
    mean = sum(traces) / n
    spread = sum((t - mean) ** 2 for t in traces) / max(n - 1, 1)
    return Estimate(mean, sqrt(spread / n), sum(schedules) / n, len(traces), skipped)


def _walk(ex: Execution, chance: random.Random, most: int) -> tuple[float, list[int] | None]:
    """A random schedule: 1/p, and for each step the set of steps that must come before it."""
    weight = 1.0
    order = PartialOrder(ex)
    while able := ex.able():
        if ex.steps >= most:
            return weight, None
        choices = [(t, w) for t in able for w in range(t.op.ways() if t.op is not None else 0)]
        weight *= len(choices)
        thread, way = chance.choice(choices)
        order.step(thread, way)
    return weight, order.before


class PartialOrder:
    """Follows an execution and knows what must come before what."""

    def __init__(self, ex: Execution) -> None:
        self._ex = ex
        self._prints: list[Footprint] = []
        self.before: list[int] = []
        """For each step the steps that come before it in every equivalent execution, as a bit set."""

    def step(self, thread: Thread, way: int) -> None:
        """Take a step."""
        op = thread.op
        assert op is not None
        touch = op.touch()
        before = self.before
        past = 0
        for k in (thread.last if thread.last >= 0 else thread.born, op.after()):
            if k >= 0:
                past |= 1 << k | before[k]
        for k, other in enumerate(self._prints):
            if other.mask & touch.conf:
                past |= 1 << k | before[k]
        before.append(past)
        self._prints.append(touch)
        self._ex.step(thread, way)


def linear_extensions(before: list[int]) -> int | None:
    """In how many orders can the steps happen? `before[k]` is the set of steps that come before step k."""
    level = {0: 1}
    seen = 0
    for _ in before:
        following: dict[int, int] = {}
        for done, ways in level.items():
            for k, past in enumerate(before):
                if not done >> k & 1 and past & ~done == 0:
                    grown = done | 1 << k
                    following[grown] = following.get(grown, 0) + ways
        level = following
        seen += len(level)
        if seen > DOWNSETS_MAX:
            return None
    return next(iter(level.values()))
