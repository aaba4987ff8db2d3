"""Drawn programs under drawn schedules; wrong clients are caught by them."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import seriatim.client as reference
from seriatim_models.explorer import Pos, Result, World, explore
from seriatim_models.machines.client.generated_programs import (
    CALLBACKS,
    FLAGS,
    OPERATIONS,
    Plan,
    build,
)
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
    st.tuples(st.integers(0, 1), st.sampled_from(sorted(OPERATIONS))), min_size=1, max_size=3
).map(tuple)
PLANS = st.builds(
    Plan,
    threads=st.lists(STEPS, min_size=1, max_size=3).map(tuple),
    callback=st.sampled_from(sorted(CALLBACKS)),
    flag=st.sampled_from(["", *FLAGS]),
    messages=st.integers(0, 3),
    capacity=st.sampled_from([None, 1]),
    pool=st.integers(1, 2),
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


@pytest.mark.parametrize(
    "mutant",
    ["close-tells-nobody", "published-turn-after-close", "multiple-settles-one", "no-turn"],
)
def test_wrong_client_is_caught(mutant: str) -> None:
    wrong = load("client", MUTANTS[mutant])

    @settings(QUICK, max_examples=200)
    @given(plan=PLANS)
    def look(plan: Plan) -> None:
        assert run(plan, wrong, executions=15).counterexample is None

    with pytest.raises(AssertionError):
        look()
