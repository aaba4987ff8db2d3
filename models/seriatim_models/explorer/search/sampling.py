"""Random schedules, for what is too large to exhaust. Each is reproducible from its seed.

- `Random`: at every step any thread that can go, with equal probability.
- `Pct`: probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi & Nagarakatte, ASPLOS 2010).
  Threads get random priorities, the highest goes, and at d-1 random steps the running thread drops to the bottom.
  A bug that needs d ordered events, in a program of n threads and k steps, is found by one run with probability
  at least 1 / (n * k**(d-1)). The bound assumes that n and k are right: they are the largest seen so far.
- `Pos`: partial order sampling (Yuan, Yang & Gu, CAV 2018). Every announced operation has a random priority, the
  highest goes, and what conflicts with it draws again. Spreads better over traces than a walk over schedules.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from seriatim_models.explorer.model.execution import Execution
from seriatim_models.explorer.model.operations import Thread
from seriatim_models.explorer.search.runner import Runner
from seriatim_models.explorer.trace.foata import FoataLevels
from seriatim_models.explorer.trace.termination import classify

Pick = Callable[[Execution, list[Thread]], Thread]

RUNS = 1000
"""Executions of a walk that was given no budget."""


class SamplingStrategy:
    """What the sampling strategies have in common: executions under schedules drawn from one seed."""

    def __init__(self, seed: int = 0, *, real_time: bool = False) -> None:
        self.seed = seed
        self.real_time = real_time

    def __str__(self) -> str:
        return f"{type(self).__name__}(seed={self.seed})"

    def search(self, runner: Runner) -> None:
        """Run executions until a budget runs out (without one: `RUNS` of them) or a violation ends the search."""
        limits = runner.limits
        runner.seed = self.seed
        if limits.max_executions is None and limits.seconds is None:
            limits.max_executions = RUNS
        chance = random.Random(self.seed)
        while not runner.over():
            ex = runner.fresh()
            try:
                levels = FoataLevels(ex) if runner.seen is not None else None
                end = self._one(ex, runner, chance, levels)
                if levels is not None and runner.forms is not None and end not in ("cut", "failed"):
                    runner.forms.add(levels.form())
                stop = runner.ended(ex, end, levels.digest() if levels is not None else None)
            except BaseException:
                ex.close()
                raise
            if stop:
                break

    def _one(
        self, ex: Execution, runner: Runner, chance: random.Random, levels: FoataLevels | None
    ) -> str:
        pick = self.picker(runner, chance)
        limits = runner.limits
        while True:
            enabled = ex.enabled()
            if not enabled:
                return classify(ex)
            early = limits.stop(ex)
            if early:
                return early
            thread = pick(ex, enabled) if len(enabled) > 1 else enabled[0]
            alternatives = thread.op.alternatives()  # type: ignore[union-attr]
            alternative = chance.randrange(alternatives) if alternatives > 1 else 0
            if levels is not None:
                levels.before(thread, alternative)
            ex.step(thread, alternative)

    def picker(self, runner: Runner, chance: random.Random) -> Pick:
        """A function that picks the next thread, for one execution."""
        raise NotImplementedError


class Random(SamplingStrategy):
    """A uniform random walk over schedules."""

    def picker(self, runner: Runner, chance: random.Random) -> Pick:
        """Any enabled thread, with equal probability."""
        fraction = chance.random
        return lambda ex, enabled: enabled[int(fraction() * len(enabled))]


class Pct(SamplingStrategy):
    """Probabilistic concurrency testing for bugs of depth `depth`."""

    def __init__(self, depth: int = 3, seed: int = 0, *, real_time: bool = False) -> None:
        super().__init__(seed, real_time=real_time)
        self.depth = depth
        self.threads = 0

    def __str__(self) -> str:
        return f"Pct(depth={self.depth}, seed={self.seed})"

    def search(self, runner: Runner) -> None:
        """As any sampling strategy; then the guarantee for the number of threads and steps that were seen."""
        super().search(runner)
        if self.threads and runner.depth:
            runner.chance = 1 / (self.threads * runner.depth ** (self.depth - 1))

    def picker(self, runner: Runner, chance: random.Random) -> Pick:
        """The enabled thread of the highest priority, which drops at `depth` - 1 random steps."""
        priority: dict[int, float] = {}
        length = max(runner.depth, 2)
        changes = {chance.randrange(length): -1.0 - c for c in range(self.depth - 1)}
        spins = [0, -1]

        def pick(ex: Execution, enabled: list[Thread]) -> Thread:
            for t in enabled:
                if t.tid not in priority:
                    priority[t.tid] = chance.random()
            self.threads = max(self.threads, len(priority))
            best = max(enabled, key=lambda t: priority[t.tid])
            low = changes.pop(ex.steps, None)
            spins[0] = spins[0] + 1 if spins[1] == best.tid else 0
            spins[1] = best.tid
            if low is None and spins[0] > 2 * length + 50:
                low = (
                    min(priority.values()) - 1
                )  # it spins: another thread must go, or the execution never ends
                spins[0] = 0
            if low is not None:
                priority[best.tid] = low
                best = max(enabled, key=lambda t: priority[t.tid])
            return best

        return pick


class Pos(SamplingStrategy):
    """Partial order sampling."""

    def picker(self, runner: Runner, chance: random.Random) -> Pick:
        """The thread whose announced operation has the highest priority; conflicting operations draw anew."""
        priority: dict[int, float] = {}

        def pick(ex: Execution, enabled: list[Thread]) -> Thread:
            for t in enabled:
                if t.tid not in priority:
                    priority[t.tid] = chance.random()
            best = max(enabled, key=lambda t: priority[t.tid])
            footprint = best.op.touch()  # type: ignore[union-attr]
            del priority[best.tid]
            if footprint.mask:
                for t in enabled:
                    if t is not best and t.op.touch().conf & footprint.mask:  # type: ignore[union-attr]
                        priority.pop(t.tid, None)
            return best

        return pick
