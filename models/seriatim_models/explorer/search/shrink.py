"""A smaller counterexample: first the fewest preemptions, then the fewest steps.

A person reads a schedule thread by thread, so a switch that nothing forces costs more attention than a step.
Two methods are tried in turn, within a budget of executions:

- *near by*: leave out a run of steps of one thread, join two runs of one thread, put one run before another.
  A changed schedule is followed as far as it can be; what cannot happen is left out, and the rest goes on by itself.
- *from below*: all schedules with no preemption, then with one, and so on (`bounded`).

The budget is of executions, so that a counterexample is the same on each machine; where the search itself may last only
so long, it is of time, too: a search that ends in time with what it has found must say so in time.

A smaller execution counts only if it shows the same mistake: the same kind, and the same property.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from seriatim_models.explorer.model.execution import Execution
from seriatim_models.explorer.search.bounded import schedules
from seriatim_models.explorer.search.runner import Runner
from seriatim_models.explorer.trace.counterexample import Schedule, Violation
from seriatim_models.explorer.trace.foata import FoataLevels
from seriatim_models.explorer.trace.replay_run import follow

AT_LEAST = 2.0
"""Seconds that may be spent even if the time of the search is over."""

Size = tuple[int, int]
"""(preemptions, steps)."""


class Shrinker:
    """Shrinks the first violation of a runner."""

    def __init__(self, runner: Runner, budget: int) -> None:
        self.runner = runner
        self.budget = budget
        self.until = time.perf_counter() + max(AT_LEAST, runner.seconds_left or 0.0)
        """When to end, if the search has an end in time."""
        self.schedule, self.wrong = runner.found[0]
        self.key = self.wrong[0].key
        self.size: Size = (1 << 30, 1 << 30)

    def run(self) -> tuple[Schedule, list[Violation]]:
        """The smallest schedule found, and what is wrong under it."""
        if self.wrong[0].kind == "livelock":
            return self.schedule, self.wrong
        self._try(self.schedule)
        while not self._over() and self._near_by():
            pass
        self._from_below()
        return self.schedule, self.wrong

    def _over(self) -> bool:
        """Whether the budget is spent, or the time."""
        late = self.runner.limits.seconds is not None and time.perf_counter() >= self.until
        return late or self.budget <= 0

    def _try(self, schedule: Schedule) -> bool:
        """Follow a schedule; keep it if it is smaller and as wrong."""
        self.budget -= 1
        ex = follow(self.runner, schedule, lenient=True)
        assert ex is not None
        try:
            size = (sum(s.preempts for s in ex.log or []), len(ex.log or []))
            if size >= self.size:
                return False
            wrong = self.runner.judge(ex, ex.end)
            if not any(v.key == self.key for v in wrong):
                return False
            self.size, self.schedule = size, list(ex.schedule)
            self.wrong = sorted(wrong, key=lambda v: v.key != self.key)
            return True
        finally:
            ex.close()

    def _near_by(self) -> bool:
        for candidate in _neighbours(self.schedule):
            if self._over():
                return False
            if self._try(candidate):
                return True
        return False

    def _from_below(self) -> None:
        for bound in range(self.size[0] + 1):
            if self._over():
                return
            found: list[Schedule] = []

            def ended(
                ex: Execution, end: str, forms: FoataLevels | None, found: list[Schedule] = found
            ) -> bool:
                self.budget -= 1
                try:
                    if end != "cut" and len(ex.schedule) < self.size[1] + (not found) * (1 << 20):
                        ex.world.is_replay = True
                        if any(v.key == self.key for v in self.runner.judge(ex, end)):
                            found.append(list(ex.schedule))
                finally:
                    ex.close()
                return False

            schedules(self.runner, bound, ended, self._over, levels=False)
            for schedule in sorted(found, key=len)[:3]:
                self._try(schedule)
            if self.size[0] <= bound:
                return


def _neighbours(schedule: Schedule) -> Iterator[Schedule]:
    runs: list[Schedule] = []
    for step in schedule:
        if runs and runs[-1][-1][0] == step[0]:
            runs[-1].append(step)
        else:
            runs.append([step])
    for k in range(len(runs) - 1, -1, -1):
        yield _joined([*runs[:k], *runs[k + 1 :]])
    for k in range(len(runs)):
        later = next((m for m in range(k + 1, len(runs)) if runs[m][0][0] == runs[k][0][0]), None)
        if later is not None:
            yield _joined([*runs[: k + 1], runs[later], *runs[k + 1 : later], *runs[later + 1 :]])
            yield _joined([*runs[:k], *runs[k + 1 : later], runs[k], *runs[later:]])
    for k in range(len(runs) - 1):
        yield _joined([*runs[:k], runs[k + 1], runs[k], *runs[k + 2 :]])
    for k, run in enumerate(runs):
        if len(run) > 1:
            yield _joined([*runs[:k], run[:-1], *runs[k + 1 :]])
            yield _joined([*runs[:k], run[:1], *runs[k + 1 :]])


def _joined(runs: list[Schedule]) -> Schedule:
    return [step for run in runs for step in run]
