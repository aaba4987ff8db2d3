"""Many searches at once: one process for each, as many as there are processors; or one search in several processes.

A search is named by plain words (program, mutant, strategy), because what a program *is*, a function, cannot be sent.
The results come back in the order asked for, whatever order they end in.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.queues import SimpleQueue

from seriatim_models.cli.console import Tell, Work
from seriatim_models.cli.report_builder import program_run
from seriatim_models.report import ProgramRun

SAMPLING_SECONDS = 10.0  # a strategy that samples never ends by itself


@dataclass(frozen=True)
class Search:
    """How schedules are chosen, and for how long."""

    strategy: str = "dpor"
    budget: float | None = None
    seed: int | None = None

    @property
    def seconds(self) -> float | None:
        if self.budget is None and self.strategy != "dpor":
            return SAMPLING_SECONDS
        return self.budget

    @property
    def options(self) -> list[str]:
        """As they would be typed."""
        typed = ["--strategy", self.strategy] if self.strategy != "dpor" else []
        if self.budget is not None:
            typed += ["--budget", f"{self.budget:g}"]
        if self.seed is not None:
            typed += ["--seed", str(self.seed)]
        return typed


@dataclass(frozen=True)
class Job:
    """One program, perhaps over a mutant, under one search."""

    program: str
    mutant: str | None
    search: Search

    @property
    def name(self) -> str:
        return self.mutant or self.program

    def run(self, tell: Tell | None = None, processes: int = 1) -> ProgramRun:
        """Explore it, in several processes if told so."""
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
            on_progress=None if tell is None else lambda p: tell(p.executions, str(p)),
            jobs=1 if make else processes,
        )
        return program_run(result, self.search.strategy, self.search.options)


def run_jobs(jobs: Sequence[Job], noun: str, processes: int | None = None) -> list[ProgramRun]:
    """Run them all, with progress: side by side, and each in several processes if it was asked for more than there are.

    Only if asked: which of several counterexamples is met first then depends on who is quicker.
    """
    side_by_side = min(processes or os.cpu_count() or 1, len(jobs))
    share = max((processes or 1) // max(len(jobs), 1), 1)
    with Work(len(jobs), noun).running() as work:
        if side_by_side <= 1:
            return _one_by_one(jobs, work, share)
        return _together(jobs, work, side_by_side, share)


def _one_by_one(jobs: Sequence[Job], work: Work, share: int) -> list[ProgramRun]:
    runs = []
    for job in jobs:
        with work.item(job.name) as tell:
            runs.append(job.run(tell, share))
            tell(runs[-1].complete)
    return runs


def _together(jobs: Sequence[Job], work: Work, processes: int, share: int) -> list[ProgramRun]:
    done: dict[int, ProgramRun] = {}
    # Spawned, not forked: they begin with nothing of this process.
    context = multiprocessing.get_context("spawn")
    news: SimpleQueue[tuple[int, str]] = context.SimpleQueue()
    with ProcessPoolExecutor(
        processes, mp_context=context, initializer=_listen, initargs=(news,)
    ) as pool:
        pending: dict[Future[ProgramRun], int] = {
            pool.submit(_run, job, n, share): n for n, job in enumerate(jobs)
        }
        try:
            while pending:
                work.say(" and ".join(jobs[n].name for n in sorted(pending.values())[:processes]))
                ended: set[Future[ProgramRun]] = set()
                while not ended:
                    ended = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED).done
                    while not news.empty():
                        n, said = news.get()
                        work.note(jobs[n].name, f"{jobs[n].name}: {said}")
                for future in ended:
                    n = pending.pop(future)
                    done[n] = run = future.result()
                    work.finished(jobs[n].name, run.seconds, run.complete)
        except BaseException:
            for future in pending:
                future.cancel()
            for process in list(pool._processes.values()):
                process.terminate()
            raise
    return [done[n] for n in range(len(jobs))]


# In the other processes:

_news: SimpleQueue[tuple[int, str]]


def _listen(news: SimpleQueue[tuple[int, str]]) -> None:
    global _news
    _news = news


def _run(job: Job, n: int, share: int) -> ProgramRun:
    return job.run(lambda executions, said="", /: _news.put((n, said)), share)
