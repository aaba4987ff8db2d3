"""Drawn programs under drawn schedules: Hypothesis makes the program, the explorer its schedules.

`python -m seriatim_models.machines.queue.concurrent PLAN [TOKEN]` runs a plan again, or one schedule of it.
"""

from __future__ import annotations

import sys
from types import ModuleType

from seriatim_models.explorer import BadToken, Dpor, Pos, Replay, Result, World, explore
from seriatim_models.machines.judging import convicted
from seriatim_models.machines.queue.generated_programs import Plan, start
from seriatim_models.programs.check import history
from seriatim_models.programs.mutant_modules import load
from seriatim_models.recording.queue import recorded, snapshot

REFERENCE = load("queue")
"""The module under test unless another is given."""

NAME = "machine"
"""The name under which a plan's schedules stand in tokens: the token checks the program by what it does."""


class WorldStage:
    """A plan in a world of the explorer."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.host = recorded(world.host)
        self.spawn = world.spawn
        self._now = 0

    def pass_time(self, by: int) -> None:
        self.world.advance(by)
        self._now += by
        self.host.record("clock", now=self._now)


def program(world: World, plan: Plan, lib: ModuleType) -> None:
    """The plan as the explorer takes it."""
    queue = start(plan, lib, WorldStage(world))
    world.at_end(lambda: world.host.record("snapshot", **snapshot(queue)))


def verdict(world: World) -> str | None:
    """What all properties say of an execution: the first that convicts it."""
    for finding in convicted(history(world)):
        return f"{finding.property}: {finding.explanation}"
    return None


def run(
    plan: Plan,
    lib: ModuleType = REFERENCE,
    *,
    executions: int = 60,
    seed: int = 0,
    token: str = "",
    shrink: int = 200,
) -> Result:
    """All schedules of a plan if there are few; else the first of them in order, and as many drawn by chance."""

    def body(world: World) -> None:
        program(world, plan, lib)

    def search(strategy: Dpor | Pos | Replay, budget: int | None) -> Result:
        return explore(
            body,
            strategy,
            name=NAME,
            max_executions=budget,
            on_execution=verdict,
            shrink=shrink,
        )

    if token:
        return search(Replay(token), None)
    result = search(Dpor(), executions)
    if result.verdict == "inconclusive":
        drawn = search(Pos(seed=seed), executions)
        drawn.complete += result.complete
        drawn.blocked += result.blocked
        drawn.cut += result.cut
        drawn.traces = max(
            result.traces or 0, drawn.traces or 0
        )  # which may overlap: a lower bound
        result = drawn
    return result


def report(plan: Plan, result: Result, seed: int) -> str:
    """A failure: the program, its story, and how to see it again."""
    case = result.counterexample
    assert case is not None
    return (
        f"{case.text()}\n\nprogram: {plan.text()}\nseed: {seed}\n"
        f"replay: python -m seriatim_models.machines.queue.concurrent '{plan.text()}' {case.token}"
    )


def main(arguments: list[str]) -> int:
    if not 1 <= len(arguments) <= 2:
        print(__doc__, file=sys.stderr)
        return 2
    plan = Plan.read(arguments[0])
    token = arguments[1] if len(arguments) > 1 else ""
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
