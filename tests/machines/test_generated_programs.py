"""Generated programs over the client, the log and the fair consumer: wrong references are caught by them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seriatim_models.programs import MUTANTS
from seriatim_models.programs.mutant_modules import load
from seriatim_workshop.machines import concurrent, threads
from seriatim_workshop.machines.client.generated_programs import PLANS as CLIENT
from seriatim_workshop.machines.fair.generated_programs import PLANS as FAIR
from seriatim_workshop.machines.log.generated_programs import PLANS as LOG
from seriatim_workshop.machines.plans import ProgramPlan
from seriatim_workshop.machines.profiles import checking, searching

PLANS: dict[str, st.SearchStrategy[ProgramPlan]] = {"client": CLIENT, "log": LOG, "fair": FAIR}
CAUGHT = {
    "close-tells-nobody": 200,
    "published-turn-after-close": 200,
    "no-turn": 200,
    "look-without-lock": 200,
    "poison-dropped": 200,
    "no-token": 300,
    "failure-keeps-token": 300,
}
"""Mutants, and among how many plans one must be that shows each."""
SLOWLY_CAUGHT = {"multiple-settles-one": 800, "published-looks-twice": 300}
"""Those that few plans show: seconds each."""


@pytest.mark.parametrize("system", PLANS)
def test_reference_passes(system: str) -> None:
    @checking(25 if system != "fair" else 50)
    @given(plan=PLANS[system])
    def look(plan: ProgramPlan) -> None:
        result = concurrent.run(plan, executions=20, shrink=0)
        assert result.executions > 0
        assert result.counterexample is None, concurrent.report(plan, result, 0)
        assert type(plan).read(plan.text()) == plan

    look()


@pytest.mark.parametrize(
    ("mutant", "plans"),
    [
        *CAUGHT.items(),
        *(pytest.param(*late, marks=pytest.mark.slow) for late in SLOWLY_CAUGHT.items()),
    ],
)
def test_wrong_reference_is_caught(mutant: str, plans: int) -> None:
    wrong = MUTANTS[mutant]
    lib = load(wrong.reference, wrong)

    @searching(plans)
    @given(plan=PLANS[wrong.reference])
    def look(plan: ProgramPlan) -> None:
        result = concurrent.run(plan, lib, executions=15, shrink=0)
        assert result.counterexample is None

    with pytest.raises(AssertionError):
        look()


@pytest.mark.parametrize("system", PLANS)
def test_reference_passes_on_threads(system: str) -> None:
    @checking(15)
    @given(plan=PLANS[system])
    def look(plan: ProgramPlan) -> None:
        assert threads.stress(plan, 3) is None

    look()
