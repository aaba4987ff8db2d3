"""The search of one item, in this process."""

from __future__ import annotations

import time
from typing import Any

from seriatim_models.explorer import Dpor, Pct, Pos, Random
from seriatim_models.explorer.model.guard import guarded
from seriatim_models.explorer.model.program import Limits, Setting
from seriatim_models.explorer.search.runner import Runner
from seriatim_models.explorer.trace import replay_token
from seriatim_models.explorer.trace.counterexample import Violation
from seriatim_models.explorer.trace.foata import FoataLevels
from seriatim_models.pipeline.campaign.items import Bug, ItemResult, SearchItem
from seriatim_models.programs import MUTANTS, PROGRAMS
from seriatim_models.programs.check import check_program, runnable

NAMES_MOST = 4096
"""Names of traces that one result carries; coverage counts what is carried."""


def run_search(item: SearchItem) -> ItemResult:
    """Do the search of an item, in this process."""
    begun = time.perf_counter()
    program = PROGRAMS[item.program]
    kept: list[Runner] = []
    strategies = {
        "dpor": Dpor,
        "random": Random,
        "pct": Pct,
        "pos": Pos,
    }
    chosen: Any = strategies[item.strategy]

    class Keeping(chosen):  # type: ignore[misc]  # the strategy that was chosen, keeping its runner
        def search(self, runner: Runner) -> None:
            kept.append(runner)
            super().search(runner)

    strategy = (
        Keeping(real_time=program.real_time) if item.strategy == "dpor" else Keeping(seed=item.seed)
    )
    budgets: dict[str, Any] = {"max_executions": item.executions, "preemptions": item.preemptions}
    result = check_program(
        program,
        MUTANTS[item.mutant] if item.mutant else None,
        strategy=strategy,
        seconds=item.seconds,
        max_steps=item.max_steps,
        **budgets,
    )
    explored = result.explored
    out = ItemResult(
        id=item.id,
        item=item,
        verdict=str(result.verdict),
        why=explored.why,
        complete=explored.complete,
        blocked=explored.blocked,
        cut=explored.cut,
        steps=explored.steps,
        traces=explored.traces,
    )
    if kept and kept[0].seen is not None:
        names = sorted(kept[0].seen.kept)[:NAMES_MOST]
        out.names = b"".join(names)
    case = explored.counterexample
    if case is not None:
        violated = [
            f.property for f in result.findings if f.n_violations or f.verdict == "violated"
        ]
        name = ", ".join(violated) or kind(case.violations[0])
        out.bugs = [Bug(name, canonical_trace(item, case.token), case.token)]
    out.seconds = time.perf_counter() - begun
    return out


def kind(wrong: Violation) -> str:
    """What went wrong, in a word that does not depend on the schedule.

    Raises MemoryError if it is that a thread of the program had none left: that is no mistake of the program.
    """
    if wrong.kind == "error" and "raised MemoryError" in str(wrong.what):
        raise MemoryError
    return wrong.key.removeprefix("property ")


def canonical_trace(item: SearchItem, token: str) -> str:
    """The name of the trace that a token's schedule belongs to, in hexadecimal."""
    parsed = replay_token.read(token.partition(":")[2])
    setting = Setting(parsed.real_time, parsed.timeouts, parsed.spurious)
    with guarded():
        ex = Runner(_runnable(item), setting, Limits()).fresh()
        levels = FoataLevels(ex)
        for number, way in parsed.schedule:
            thread = ex.order[number]
            levels.before(thread, way)
            ex.step(thread, way)
        name = levels.digest().hex()
        ex.close()
    return name


def _runnable(item: SearchItem) -> Any:
    return runnable(PROGRAMS[item.program], MUTANTS[item.mutant] if item.mutant else None)
