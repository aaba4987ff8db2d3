"""The log and the fair consumer in the matrix: their edges and some of their pairs hold, and wrong ones are found."""

from __future__ import annotations

from types import ModuleType

import pytest

from seriatim_models.matrix.cells import CallPair, pairs, run_pair
from seriatim_models.matrix.fair_scenes import FAIR_SYSTEM
from seriatim_models.matrix.handover_scenes import HANDOVER_SYSTEM
from seriatim_models.matrix.log_scenes import LOG_SYSTEM
from seriatim_models.matrix.scene import Invocation, MatrixSystem
from seriatim_models.matrix.states import explore_path, explore_states
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


# ---- the hand-over


@pytest.mark.parametrize("universe", [u.name for u in HANDOVER_SYSTEM.universes])
def test_hand_over_is_right_in_its_states(universe: str) -> None:
    [of] = [u for u in HANDOVER_SYSTEM.universes if u.name == universe]
    found = explore_states(HANDOVER_SYSTEM, of, load("queue"), 1)
    assert [e.problem for e in found.edges if e.problem] == []
    served = [p for state in found.states for p in pairs(state, ("settle",)) if run_beside(p)]
    assert served or not of.given, "a connection is ready in some state"
    for pair in served[::EACH]:
        assert run_pair(HANDOVER_SYSTEM, load("queue"), pair, 50).problem == "", str(pair)


def run_beside(pair: CallPair) -> bool:
    return any(call.call == "run_one" for call in pair.calls)


@pytest.mark.parametrize(
    ("mutant", "universe", "path", "by"),
    [
        ("connection-not-looked-at-again", "target", ["enqueue m1"], "WK-6"),
        ("connection-looks-then-clears", "target", ["enqueue m1"], "WK-6"),
    ],
)
def test_wrong_hand_over_is_found_beside_a_run(
    mutant: str, universe: str, path: list[str], by: str
) -> None:
    wrong = load("queue", MUTANTS[mutant])
    [of] = [u for u in HANDOVER_SYSTEM.universes if u.name == universe]
    state = explore_path(HANDOVER_SYSTEM, of, load("queue"), [Invocation.read(x) for x in path])
    programs = [p for p in pairs(state, ("settle",)) if run_beside(p)]
    found = [run_pair(HANDOVER_SYSTEM, wrong, p, 200, load("queue")).problem for p in programs]
    assert any(by in problem for problem in found if problem), found


def test_two_calls_of_one_io_thread_are_not_concurrent() -> None:
    [of] = [u for u in HANDOVER_SYSTEM.universes if u.name == "targets"]
    start = [Invocation.read("enqueue m1")]
    state = explore_path(HANDOVER_SYSTEM, of, load("queue"), start)
    together = {frozenset(map(str, p.calls)) for p in pairs(state, ("settle",))}
    assert {"enqueue m2", "run_one"} in together
    assert {"close A", "run_one"} not in together, "both are of the one connection's IO thread"
    assert {"close A", "close B"} not in together
