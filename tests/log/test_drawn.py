"""Drawn programs under drawn schedules; wrong logs are caught by them."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import seriatim.log as reference
from seriatim_models.explorer import Pos, Result, World, explore
from seriatim_models.machines.log.generated_programs import OPERATIONS, Plan, build
from seriatim_models.machines.queue.concurrent import verdict
from seriatim_models.programs import MUTANTS
from seriatim_models.programs.mutant_modules import load

QUICK = settings(
    max_examples=25,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
    report_multiple_bugs=False,
)
STEPS = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from(OPERATIONS)), min_size=1, max_size=4
).map(tuple)
PLANS = st.builds(
    Plan,
    threads=st.lists(STEPS, min_size=1, max_size=3).map(tuple),
    backlog=st.lists(st.sampled_from(["good", "bad", "empty"]), max_size=3).map(tuple),
    max_attempts=st.integers(1, 2),
)


def run(plan: Plan, lib: ModuleType = reference, executions: int = 40, seed: int = 0) -> Result:
    def program(world: World) -> None:
        build(plan, world, lib)

    return explore(
        program, Pos(seed=seed), max_executions=executions, on_execution=verdict, shrink=0
    )


@QUICK
@given(plan=PLANS)
def test_reference_passes(plan: Plan) -> None:
    result = run(plan)
    assert result.counterexample is None, f"{plan}\n{result.counterexample.text()}"


@pytest.mark.parametrize("mutant", ["look-without-lock", "poison-dropped"])
def test_wrong_log_is_caught(mutant: str) -> None:
    wrong = load("log", MUTANTS[mutant])

    @settings(QUICK, max_examples=200)
    @given(plan=PLANS)
    def look(plan: Plan) -> None:
        assert run(plan, wrong, executions=15).counterexample is None

    with pytest.raises(AssertionError):
        look()
