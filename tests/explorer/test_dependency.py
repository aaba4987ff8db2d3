"""The dependency relation itself: what is called independent commutes, from whatever state.

For each pair of enabled operations of two threads that are called independent:
both orders can happen, and give the same state, the same results, and the same operations enabled after them.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from seriatim_models.explorer.model.execution import Execution
from seriatim_models.explorer.model.operations import Operation, Reacquire, Thread
from seriatim_models.explorer.model.program import Limits, Setting
from seriatim_models.explorer.search.runner import Runner
from seriatim_workshop.crosscheck.generated_programs import (
    FLAVOURS,
    GeneratedProgram,
    ProgramInterpreter,
    generate,
)

STATES = 60
"""Random states of each flavour."""


def state(ex: Execution, runner: Any) -> object:
    """Everything that can be seen of an execution."""
    program = runner
    return (
        [c.value for c in program.cells],
        [getattr(m.value, "name", None) for m in program.locks],
        sorted(sorted(w[0].name for w in c.value) for c in program.conditions),
        program.semaphore.value,
        {k: list(map(repr, v)) for k, v in program.seen.items()},
        {t.tid: (t.done, said(t)) for t in ex.order},
        sorted(t.tid for t in ex.enabled()),
    )


def said(thread: Thread) -> object:
    """The announced operation of a thread, and whether a sleeper has been woken."""
    op = thread.op
    if op is None:
        return None
    return (op.describe(), isinstance(op, Reacquire) and op.woken is not None, op.alternatives())


def independent(one: Operation, two: Operation) -> bool:
    return not one.touch().mask & two.touch().conf


def reached(runner: Runner, schedule: list[tuple[int, int]]) -> tuple[Execution, object]:
    ex = runner.fresh()
    for number, way in schedule:
        ex.step(ex.order[number], way)
    assert isinstance(runner.program, Watched)
    return ex, state(ex, runner.program.latest)


class Watched:
    """A generated program whose interpreter can be looked into."""

    def __init__(self, program: GeneratedProgram) -> None:
        self.program = program
        self.latest: Any = None

    def __call__(self, world: Any) -> None:
        self.latest = ProgramInterpreter(self.program, world)


@pytest.mark.parametrize("flavour", range(len(FLAVOURS) + 1), ids=[*FLAVOURS, "awaits"])
def test_what_is_called_independent_commutes(flavour: int) -> None:
    chance = random.Random(flavour)
    pairs: Counter[bool] = Counter()
    for k in range(STATES):
        program = generate(k * len(FLAVOURS) + flavour, awaits=flavour == len(FLAVOURS))
        setting = Setting(program.real_time, program.timeouts, program.spurious)
        runner = Runner(Watched(program), setting, Limits())
        ex = runner.fresh()
        for _ in range(chance.randrange(8)):
            able = ex.enabled()
            if not able:
                break
            thread = chance.choice(able)
            assert thread.op is not None
            ex.step(thread, chance.randrange(thread.op.alternatives()))
        prefix = list(ex.schedule)
        ready = [(t.number, t.op) for t in ex.enabled() if t.op is not None]
        checks = [
            (a, b, op_a.alternatives(), op_b.alternatives())
            for i, (a, op_a) in enumerate(ready)
            for b, op_b in ready[i + 1 :]
            if independent(op_a, op_b)
        ]
        pairs[False] += len(ready) * (len(ready) - 1) // 2 - len(checks)
        ex.close()
        for a, b, ways_a, ways_b in checks:
            for way_a in range(ways_a):
                for way_b in range(ways_b):
                    pairs[True] += 1
                    one, first = reached(runner, [*prefix, (a, way_a), (b, way_b)])
                    one.close()
                    two, second = reached(runner, [*prefix, (b, way_b), (a, way_a)])
                    two.close()
                    assert first == second, f"{program}\nafter {prefix}: {a} and {b}"
    assert pairs[True] > 5
    assert pairs[False] > 0
