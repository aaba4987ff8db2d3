"""Generated programs under sampled schedules: Hypothesis makes the program, the explorer its schedules.

`python -m seriatim_workshop.machines.concurrent SYSTEM PLAN [TOKEN]` runs a plan again, or one schedule of it.
"""

from __future__ import annotations

import sys
from types import ModuleType

from seriatim_models.explorer import BadToken, Dpor, Pos, Replay, Result, World, explore
from seriatim_models.machines.stages import WorldStage
from seriatim_models.programs.check import history
from seriatim_models.programs.mutant_modules import load
from seriatim_workshop.machines.client.generated_programs import ClientPlan
from seriatim_workshop.machines.fair.generated_programs import FairPlan
from seriatim_workshop.machines.judging import violations
from seriatim_workshop.machines.log.generated_programs import LogPlan
from seriatim_workshop.machines.plans import ProgramPlan
from seriatim_workshop.machines.queue.generated_programs import QueuePlan

NAME = "machine"
"""The name under which a plan's schedules stand in tokens: the token checks the program by what it does."""

PLANS: dict[str, type[ProgramPlan]] = {
    p.system: p for p in (QueuePlan, ClientPlan, LogPlan, FairPlan)
}


def build(plan: ProgramPlan, world: World, lib: ModuleType) -> None:
    """Set a plan up as a program for the explorer."""
    plan.start(lib, WorldStage(world))


def verdict(world: World) -> str | None:
    """Return the explanation of the first property that an execution violates, or None."""
    for finding in violations(history(world)):
        return f"{finding.property}: {finding.explanation}"
    return None


def run(
    plan: ProgramPlan,
    lib: ModuleType | None = None,
    *,
    executions: int = 60,
    seed: int = 0,
    token: str = "",
    shrink: int = 200,
) -> Result:
    """Explore all schedules of a plan if there are few; else the first in order, and as many sampled ones.

    `lib` is the system's reference if not given; `executions` bounds each of the two searches; with a `token` only
    its schedule is run.
    """
    subject = load(plan.system) if lib is None else lib

    def body(world: World) -> None:
        build(plan, world, subject)

    def search(strategy: Dpor | Pos | Replay, budget: int | None) -> Result:
        return explore(
            body, strategy, name=NAME, max_executions=budget, on_execution=verdict, shrink=shrink
        )

    if token:
        return search(Replay(token), None)
    result = search(Dpor(), executions)
    if result.verdict == "inconclusive":
        sampled = search(Pos(seed=seed), executions)
        sampled.complete += result.complete
        sampled.blocked += result.blocked
        sampled.cut += result.cut
        # The two may overlap: a lower bound.
        sampled.traces = max(result.traces or 0, sampled.traces or 0)
        result = sampled
    return result


def report(plan: ProgramPlan, result: Result, seed: int) -> str:
    """Return a failure as text: the schedule, the program, and the command that replays it."""
    case = result.counterexample
    assert case is not None
    return (
        f"{case.text()}\n\nprogram: {plan.text()}\nseed: {seed}\n"
        f"replay: python -m seriatim_workshop.machines.concurrent {plan.system} '{plan.text()}' {case.token}"
    )


def main(arguments: list[str]) -> int:
    """Run the command line; return 0, 1 if a violation was found, 2 if the arguments cannot be read."""
    if not 2 <= len(arguments) <= 3 or arguments[0] not in PLANS:
        print(__doc__, file=sys.stderr)
        return 2
    plan = PLANS[arguments[0]].read(arguments[1])
    token = arguments[2] if len(arguments) > 2 else ""
    try:
        result = run(plan, token=token, executions=5000)
    except BadToken as error:
        print(error, file=sys.stderr)
        return 2
    if result.counterexample is not None:
        print(report(plan, result, 0))
        return 1
    print(result)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
