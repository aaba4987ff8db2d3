"""The log and the fair consumer in the matrix: their edges and some of their pairs hold, and wrong ones are found."""

from __future__ import annotations

from types import ModuleType

import pytest

from seriatim_models.matrix.cells import pairs, run_pair
from seriatim_models.matrix.fair_scenes import FAIR_SYSTEM
from seriatim_models.matrix.log_scenes import LOG_SYSTEM
from seriatim_models.matrix.scene import MatrixSystem
from seriatim_models.matrix.states import explore_states
from seriatim_models.programs import MUTANTS
from seriatim_models.programs.mutant_modules import load

SYSTEMS: dict[str, MatrixSystem] = {"fair": FAIR_SYSTEM, "log": LOG_SYSTEM}
EACH = 7
"""One pair in so many is run."""


def problem(system: MatrixSystem, lib: ModuleType, each: int = 1) -> str:
    """The first thing that is wrong with an edge, or a pair, from the states that one call leads to."""
    for universe in system.universes:
        found = explore_states(system, universe, lib, 1)
        wrong = [e.problem for e in found.edges if e.problem]
        if wrong:
            return wrong[0]
        programs = [p for state in found.states for p in pairs(state, ("settle", "serve"))]
        for pair in programs[::each]:
            result = run_pair(system, lib, pair, 100)
            if result.problem:
                return f"{pair}: {result.problem}"
    return ""


@pytest.mark.parametrize("system", SYSTEMS)
def test_reference_is_right_in_its_states(system: str) -> None:
    assert problem(SYSTEMS[system], load(system), EACH) == ""


@pytest.mark.parametrize(
    ("mutant", "by"),
    [
        ("published-release-after-offer", "FQ-4"),
        ("published-looks-twice", "FQ-1"),
        ("foreign-slot", "outcome"),
        ("poison-dropped", "LC-2"),
    ],
)
def test_wrong_reference_is_found(mutant: str, by: str) -> None:
    wrong = MUTANTS[mutant]
    assert by in problem(SYSTEMS[wrong.reference], load(wrong.reference, wrong))
