"""Drawn programs under drawn schedules; wrong fair consumers are caught by them."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import seriatim.fair as reference
from seriatim_models.explorer import Pos, Result, World, explore
from seriatim_models.machines.queue.concurrent import verdict
from seriatim_models.programs import MUTANTS
from seriatim_models.programs.fair import FairScene
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
Deliveries = tuple[tuple[int, int], ...]
"""(slot, weight) after (slot, weight)"""


@dataclass(frozen=True)
class Plan:
    """The loop has eight rounds, so that a wrong one ends; weights are small enough for them."""

    there: Deliveries
    brokers: tuple[Deliveries, ...]
    quanta: tuple[int, ...] = (2, 3)
    prefetch: int = 9
    fails_on: int = 0
    """The weight at which the handler fails."""
    stops: bool = False


DELIVERIES = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 3)), max_size=3).map(tuple)
PLANS = st.builds(
    Plan,
    there=DELIVERIES,
    brokers=st.lists(DELIVERIES, max_size=2).map(tuple),
    quanta=st.tuples(st.integers(2, 4), st.integers(2, 4)),
    prefetch=st.sampled_from([9, 3]),
    fails_on=st.integers(0, 3),
    stops=st.booleans(),
)


def run(plan: Plan, lib: ModuleType = reference, executions: int = 40, seed: int = 0) -> Result:
    def fails(delivery: int) -> None:
        if delivery == plan.fails_on:
            raise ValueError("no")

    def program(world: World) -> None:
        s = FairScene(world, lib, plan.quanta, prefetch=plan.prefetch, handler=fails)
        s.fill(*plan.there)
        s.loop()
        for i, deliveries in enumerate(plan.brokers):
            s.push(*deliveries, name=f"broker {i + 1}")
        if plan.stops:
            world.spawn(s.consumer.stop, name="stop")

    return explore(
        program, Pos(seed=seed), max_executions=executions, on_execution=verdict, shrink=0
    )


@settings(QUICK, max_examples=50)
@given(plan=PLANS)
def test_reference_passes(plan: Plan) -> None:
    result = run(plan)
    assert result.counterexample is None, f"{plan}\n{result.counterexample.text()}"


@pytest.mark.parametrize("mutant", ["no-token", "published-looks-twice", "failure-keeps-token"])
def test_wrong_fair_consumer_is_caught(mutant: str) -> None:
    wrong = load("fair", MUTANTS[mutant])

    @settings(QUICK, max_examples=300)
    @given(plan=PLANS)
    def look(plan: Plan) -> None:
        assert run(plan, wrong, executions=15).counterexample is None

    with pytest.raises(AssertionError):
        look()
