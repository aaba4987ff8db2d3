"""What exploring costs over only running: executions a second, bare, under optimal DPOR and under sampling."""

from __future__ import annotations

import time
from collections.abc import Callable

from seriatim_models.explorer.model.program import Limits, Setting
from seriatim_models.explorer.search.dpor import DporSearch
from seriatim_models.explorer.search.explore import explore
from seriatim_models.explorer.search.runner import Runner
from seriatim_models.explorer.search.sampling import Pos, Random
from seriatim_workshop.bench.measure import BenchRow, Measured
from seriatim_workshop.bench.programs import SPEED
from seriatim_workshop.litmus import Program

PART = "overhead"

NOTES = [
    "bare: executions with no bookkeeping at all, always the first enabled thread.",
    "DPOR: the whole search again and again; its cost over bare is what optimality is bought for.",
]

Report = Callable[[str], None]


def bare(program: Program, seconds: float) -> float:
    """Executions a second of a program that always runs the first enabled thread."""
    runner = Runner(program, Setting(), Limits())
    count, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        execution = runner.fresh()
        while enabled := execution.enabled():
            execution.step(enabled[0], 0)
        execution.close()
        count += 1
    return count / (time.perf_counter() - begun)


def dpor(program: Program, seconds: float) -> float:
    """Executions a second of whole searches by optimal DPOR."""
    count, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        runner = Runner(program, Setting(), Limits())
        DporSearch(runner).run()
        count += runner.complete
    return count / (time.perf_counter() - begun)


def random(program: Program, seconds: float) -> float:
    """Executions a second of uniform random walks."""
    return explore(program, Random(), seconds=seconds, shrink=0).speed


def pos(program: Program, seconds: float) -> float:
    """Executions a second of partial order sampling."""
    return explore(program, Pos(), seconds=seconds, shrink=0).speed


STRATEGIES: dict[str, Callable[[Program, float], float]] = {
    "DPOR": dpor,
    "bare": bare,
    "random walk": random,
    "POS": pos,
}


def measure(rounds: int, seconds: float, report: Report, largest: int) -> Measured:
    """Each strategy in turn on every program in every round. There is no `largest` size."""
    rows = {
        (program, strategy): BenchRow(task=program, who=strategy, verdict="ok", unit="executions")
        for program in SPEED
        for strategy in STRATEGIES
    }
    for n in range(rounds):
        for name, program in SPEED.items():
            for strategy, speed in STRATEGIES.items():
                report(f"round {n + 1} of {rounds}: {name}, {strategy}")
                rows[name, strategy].rate.append(speed(program, seconds / 2))
    return Measured(
        part=PART,
        title="What exploring costs over only running",
        command="make bench ARGS=overhead",
        rounds=rounds,
        rows=list(rows.values()),
        versions={},
        notes=NOTES,
        us="DPOR",
    )
