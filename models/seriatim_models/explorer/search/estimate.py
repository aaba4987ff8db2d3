"""How many traces are there? An unbiased estimate, without finding them.

Walk at random; let p be the probability of the schedule that came out (Knuth 1975: 1/p estimates the number of
*schedules*). A trace is a class of N schedules, the linear extensions of its partial order, so

    E[ 1 / (p * N) ] = sum over schedules of 1/N = number of traces.

N is counted exactly, from the bottom of the partial order up, one step at a time; with few threads there are few
sets of steps that are closed downwards, and few steps that can be next. The estimate is unbiased and skewed: rare walks
weigh much, so most estimates of a lopsided program are too small (over the programs of this project, 60 walks each,
the middle one was too small by a factor of three).
So while a search runs, it is relied on only where the walks agree (`Estimate.sharp`);
else the search goes by the part of its own tree that it has explored (`dpor.DporSearch.explored`), which is biased,
and was within a factor of three from a tenth of the search on.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from math import sqrt

from seriatim_models.explorer.model.execution import Execution
from seriatim_models.explorer.model.guard import guarded
from seriatim_models.explorer.model.operations import Footprint, Thread
from seriatim_models.explorer.model.program import Limits, Program, Setting
from seriatim_models.explorer.search.runner import Runner

DOWNSETS_MAX = 20_000
"""Partial orders with more closed sets are not counted; the walk is left out and counted as skipped."""

WALKS_SECONDS = 0.01
"""Seconds for walks for each progress report, of which there are two a second."""

WALKS_FRACTION = 0.02
"""Of a search's time, what walks may take."""

WALKS_MAX = 500
"""Walks made at one time at most."""


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

    @property
    def sharp(self) -> bool:
        """Whether enough walks agree well enough to rely on them."""
        return self.walks >= 30 and not self.skipped and self.traces_error < self.traces / 4

    def __str__(self) -> str:
        if self.skipped:
            return f"no estimate of all traces: {self.skipped} of {self.skipped + self.walks} walks were too long"
        return (
            f"about {self.traces:,.0f} traces in all "
            f"(standard error {self.traces_error:,.0f}, {self.walks} random walks)"
        )


@dataclass(frozen=True)
class Progress:
    """How far a search is."""

    executions: int
    seconds: float
    estimate: Estimate
    explored: float = 0.0
    """The part of the tree that was explored, as far as the tree is known (`Dpor` only)."""
    samples: bool = False
    """Whether executions are drawn at random: then there is no end to be near."""

    @property
    def rate(self) -> float:
        """Executions a second."""
        return self.executions / max(self.seconds, 1e-9)

    @property
    def total(self) -> float | None:
        """How many executions there will be: by the walks if they agree, else by the part explored; None if unknown."""
        if self.estimate.sharp and (self.samples or self.estimate.traces > self.executions):
            return self.estimate.traces
        return self.executions / self.explored if self.explored > 0 else None

    @property
    def left(self) -> float | None:
        """Seconds to the end, if it is known how far that is."""
        total = None if self.samples else self.total
        return None if total is None else (total - self.executions) / max(self.rate, 1e-9)

    @property
    def size(self) -> str:
        """How large the whole is, in words."""
        if (total := self.total) is None:
            return "an unknown number in all"
        if total == self.estimate.traces:
            return str(self.estimate)
        return f"about {total:,.0f} in all, going by {self.explored:.2%} of the search tree"

    def __str__(self) -> str:
        text = f"{self.executions:,} executions, {self.rate:,.0f}/s"
        if self.samples:
            return f"{text}, of {self.size}" if self.estimate.sharp else text
        if self.left is None:
            return text
        return f"{text}, {self.size}, {timedelta(seconds=round(self.left))} left"


class Watch:
    """A `progress` for `explore` that keeps an estimate, better every time, and reports how far the search is."""

    def __init__(self, report: Callable[[Progress], None]) -> None:
        self._report = report
        self._estimator: Estimator | None = None
        self._spent = 0.0

    def __call__(self, runner: Runner) -> None:
        if self._estimator is None:
            self._estimator = Estimator(runner.program, runner.setting, runner.limits.max_steps)
        # One walk alone may take a second where many steps are independent, and the search is waiting.
        if self._spent <= WALKS_FRACTION * runner.seconds:
            begun = time.perf_counter()
            self._estimator.spend(WALKS_SECONDS)
            self._spent += time.perf_counter() - begun
        self._report(progress(runner, self._estimator.estimate))


def progress(runner: Runner, estimate: Estimate) -> Progress:
    """How far the search of `runner` is."""
    explored = 0.0 if runner.explored is None else runner.explored()
    return Progress(
        runner.executions, runner.seconds, estimate, explored, samples=runner.seed is not None
    )


class Estimator:
    """Random walks of one program, and the estimate from all of them."""

    def __init__(self, program: Program, setting: Setting, max_steps: int, seed: int = 0) -> None:
        self._runner = Runner(program, setting, Limits(max_steps=max_steps))
        self._chance = random.Random(seed)
        self._traces: list[float] = []
        self._schedules: list[float] = []
        self._skipped = 0

    def walk(self, walks: int) -> Estimate:
        """So many walks more."""
        for _ in range(walks):
            ex = self._runner.fresh()
            weight, before = _walk(ex, self._chance, self._runner.limits.max_steps)
            ex.close()
            extensions = linear_extensions(before) if before is not None else None
            if extensions is None:
                self._skipped += 1
                continue
            self._schedules.append(weight)
            self._traces.append(weight / extensions)
        return self.estimate

    def spend(self, seconds: float) -> Estimate:
        """About as many walks as fit into these seconds.

        Walks that happen to be short must not count more often than others, or the estimate would be biased:
        so how many will fit is judged from one that is thrown away.
        """
        begun = time.perf_counter()
        Estimator(self._runner.program, self._runner.setting, self._runner.limits.max_steps).walk(1)
        took = max(time.perf_counter() - begun, 1e-5)
        return self.walk(min(int(seconds / took) + 1, WALKS_MAX))

    @property
    def estimate(self) -> Estimate:
        """The estimate from the walks made so far."""
        n = max(len(self._traces), 1)
        mean = sum(self._traces) / n
        spread = sum((t - mean) ** 2 for t in self._traces) / max(n - 1, 1)
        return Estimate(
            mean, sqrt(spread / n), sum(self._schedules) / n, len(self._traces), self._skipped
        )


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
    with guarded():
        return Estimator(program, Setting(real_time, timeouts, spurious), max_steps, seed).walk(
            walks
        )


def _walk(ex: Execution, chance: random.Random, most: int) -> tuple[float, list[int] | None]:
    """A random schedule: 1/p, and for each step the set of steps that must come before it."""
    weight = 1.0
    order = PartialOrder(ex)
    while enabled := ex.enabled():
        if ex.steps >= most:
            return weight, None
        choices = [
            (t, w) for t in enabled for w in range(t.op.alternatives() if t.op is not None else 0)
        ]
        weight *= len(choices)
        thread, alternative = chance.choice(choices)
        order.step(thread, alternative)
    return weight, order.before


class PartialOrder:
    """Follows an execution and knows what must come before what."""

    def __init__(self, ex: Execution) -> None:
        self._ex = ex
        self._footprints: list[Footprint] = []
        self.before: list[int] = []
        """For each step the steps that come before it in every equivalent execution, as a bit set."""

    def step(self, thread: Thread, alternative: int) -> None:
        """Take a step."""
        op = thread.op
        assert op is not None
        touch = op.touch()
        before = self.before
        past = 0
        for k in (thread.latest, op.after()):
            if k >= 0:
                past |= 1 << k | before[k]
        for k, other in enumerate(self._footprints):
            if other.mask & touch.conf:
                past |= 1 << k | before[k]
        before.append(past)
        self._footprints.append(touch)
        self._ex.step(thread, alternative)


def linear_extensions(before: list[int]) -> int | None:
    """In how many orders can the steps happen? `before[k]` is the set of steps that come before step k.

    None where more than `DOWNSETS_MAX` sets of steps would have to be looked at.
    """
    chains = _chains(before)
    level = {0: (1, (0,) * len(chains))}
    """By set of steps that are done: in how many orders, and how far that is in each chain."""
    seen = 0
    for _ in before:
        following: dict[int, tuple[int, tuple[int, ...]]] = {}
        for done, (orders, reached) in level.items():
            for c, chain in enumerate(chains):
                at = reached[c]
                if at == len(chain) or before[chain[at]] & ~done:
                    continue
                grown = done | 1 << chain[at]
                if grown in following:
                    others, there = following[grown]
                    following[grown] = orders + others, there
                else:
                    following[grown] = orders, (*reached[:c], at + 1, *reached[c + 1 :])
        level = following
        seen += len(level)
        if seen > DOWNSETS_MAX:
            return None
    return next(iter(level.values()))[0]


def _chains(before: list[int]) -> list[list[int]]:
    """All steps, divided so that of each part every step comes before the next: the steps of a thread, or more. Of a
    part only the first step that is not done can be the next.
    """
    chains: list[list[int]] = []
    for k, past in enumerate(before):
        for chain in chains:
            if past >> chain[-1] & 1:
                chain.append(k)
                break
        else:
            chains.append([k])
    return chains
