"""Many searches at once: one process for each, as many as there are processors; or one search in several processes.

A search is sent to a process by the names of program, mutant and strategy, because functions cannot be sent.
The results come back in the order asked for, whatever order they end in.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from multiprocessing.queues import SimpleQueue
from typing import Protocol

from seriatim_models.cli.console import ProgressCallback, ProgressDisplay
from seriatim_models.cli.report_builder import program_run
from seriatim_models.report import ProgramRun

SAMPLING_SECONDS = 10.0  # a strategy that samples never ends by itself


@dataclass(frozen=True)
class SearchOptions:
    """How schedules are chosen, and for how long, and whether plain attributes are observed."""

    strategy: str = "dpor"
    budget: float | None = None
    seed: int | None = None
    attributes: bool = False
    timers: str = "any"
    """The order in which timers of asyncio end, of tests of one's own."""
    symmetry: bool = False
    """Whether identical threads are explored up to exchanging them, of tests of one's own."""

    @property
    def seconds(self) -> float | None:
        """The budget, with the default of a strategy that samples; None is no limit."""
        if self.budget is None and self.strategy != "dpor":
            return SAMPLING_SECONDS
        return self.budget

    @property
    def options(self) -> list[str]:
        """The options as they would be typed."""
        typed = ["--strategy", self.strategy] if self.strategy != "dpor" else []
        if self.budget is not None:
            typed += ["--budget", f"{self.budget:g}"]
        if self.seed is not None:
            typed += ["--seed", str(self.seed)]
        if self.attributes:
            typed.append("--attributes")
        if self.timers != "any":
            typed += ["--timers", self.timers]
        if self.symmetry:
            typed.append("--symmetry")
        return typed


class Searches(Protocol):
    """A search that can be sent to a process."""

    @property
    def name(self) -> str:
        """The name under which its progress is shown."""

    def run(self, on_progress: ProgressCallback | None = None, processes: int = 1) -> ProgramRun:
        """Search, in as many processes as `processes` if it can be split."""


@dataclass(frozen=True)
class Job:
    """One program, perhaps over a mutant, under one search."""

    program: str
    mutant: str | None
    search: SearchOptions

    @property
    def name(self) -> str:
        """The name under which its progress is shown."""
        return self.mutant or self.program

    def run(self, on_progress: ProgressCallback | None = None, processes: int = 1) -> ProgramRun:
        """Explore it, in as many processes as `processes`."""
        from seriatim_models import explorer, programs

        sampling = {"random": explorer.Random, "pct": explorer.Pct, "pos": explorer.Pos}
        make = sampling.get(self.search.strategy)
        # Without one, each program knows what it needs of the exhaustive search.
        strategy = make(seed=self.search.seed or 0) if make else None
        result = programs.check_program(
            programs.PROGRAMS[self.program],
            programs.MUTANTS[self.mutant] if self.mutant else None,
            strategy=strategy,
            seconds=self.search.seconds,
            on_progress=None
            if on_progress is None
            else lambda p: on_progress(p.executions, str(p)),
            jobs=1 if make else processes,
            attributes=self.search.attributes,
        )
        return program_run(result, self.search.strategy, self.search.options)


def run_jobs(jobs: Sequence[Searches], noun: str, processes: int | None = None) -> list[ProgramRun]:
    """Run all jobs with progress, side by side; each in several processes if more of them are asked for than jobs.

    Only if asked: which of several counterexamples is found first then depends on who is quicker.
    """
    side_by_side = min(processes or os.cpu_count() or 1, len(jobs))
    split_into = max((processes or 1) // max(len(jobs), 1), 1)
    with ProgressDisplay(len(jobs), noun).running() as work:
        if side_by_side <= 1:
            return _one_by_one(jobs, work, split_into)
        return _together(jobs, work, side_by_side, split_into)


def _one_by_one(
    jobs: Sequence[Searches], work: ProgressDisplay, split_into: int
) -> list[ProgramRun]:
    runs = []
    for job in jobs:
        with work.item(job.name) as report:
            runs.append(job.run(report, split_into))
            report(runs[-1].complete)
    return runs


def _together(
    jobs: Sequence[Searches], work: ProgressDisplay, side_by_side: int, split_into: int
) -> list[ProgramRun]:
    from seriatim_models.child_process import processes

    done: dict[int, ProgramRun] = {}
    messages: SimpleQueue[tuple[int, str]] = multiprocessing.get_context("spawn").SimpleQueue()
    with processes(side_by_side, _connect, messages) as pool:
        pending: dict[Future[ProgramRun], int] = {
            pool.submit(_run, job, n, split_into): n for n, job in enumerate(jobs)
        }
        while pending:
            oldest = min(
                pending.values()
            )  # the one that is shown: two would take turns on the line
            work.describe(jobs[oldest].name)
            ended: set[Future[ProgramRun]] = set()
            while not ended:
                ended = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED).done
                while not messages.empty():
                    n, text = messages.get()
                    if n == oldest:
                        work.note(jobs[n].name, text)
            for future in ended:
                n = pending.pop(future)
                done[n] = run = future.result()
                work.finished(jobs[n].name, run.seconds, run.complete)
    return [done[n] for n in range(len(jobs))]


# In the other processes:

_messages: SimpleQueue[tuple[int, str]]


def _connect(messages: SimpleQueue[tuple[int, str]]) -> None:
    global _messages
    _messages = messages


def _run(job: Searches, n: int, split_into: int) -> ProgramRun:
    return job.run(lambda executions, text="", /: _messages.put((n, text)), split_into)
