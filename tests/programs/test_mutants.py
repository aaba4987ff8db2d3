"""Every mutant is killed, by the property that must kill it, in as many steps as is written beside it."""

import importlib
from functools import partial
from pathlib import Path

import pytest

from seriatim_models import programs
from seriatim_models.explorer import Replay
from seriatim_models.programs import MUTANTS, PROGRAMS, Mutant, check_program, replay
from seriatim_models.programs.base import Mutants, Programs
from seriatim_models.programs.mutant_modules import StaleMutant, load, texts
from seriatim_models.programs.scene import PullScene

FOLDER = Path(programs.__file__).parent
LATE = {"suspended-with-its-target", "published-put-in-the-channels-lock"}
"""Thousands of schedules are run before the one that shows it: five seconds and more."""


@pytest.mark.parametrize(
    "mutant",
    [pytest.param(m, id=m.id, marks=[pytest.mark.slow] * (m.id in LATE)) for m in MUTANTS.values()],
)
def test_mutant_is_killed_by_its_property_and_the_others_it_names(mutant: Mutant) -> None:
    program = PROGRAMS[mutant.program]
    explored = check_program(program, mutant).explored
    assert explored.verdict == "violated", f"{mutant.id} survived: {explored.why}"
    case = explored.counterexample
    assert case is not None
    assert case.what.startswith(f"{mutant.killed_by}:"), f"killed by something else: {case.what}"
    assert len(case.events) == mutant.steps
    for id in mutant.also:
        # Most of them are violated under the schedule that was found; for the rest another one is looked for.
        found = Replay(case.token.partition(":")[2])
        others = check_program(program, mutant, strategy=found, properties=[id]).explored
        if others.verdict != "violated":
            others = check_program(program, mutant, properties=[id]).explored
        assert others.verdict == "violated", f"{id} does not see {mutant.id}"


def test_published_race_in_a_dozen_steps_and_its_repair() -> None:
    """The article doubts its own check-then-dequeue; it is right to."""
    mutant = MUTANTS["published-immediate"]
    broken = check_program(PROGRAMS[mutant.program], mutant).explored
    assert broken.counterexample is not None
    assert len(broken.counterexample.events) <= 12
    whole = check_program(PROGRAMS["immediate"]).explored
    assert (whole.verdict, whole.exhausted) == ("ok", True)


def test_token_replays_the_counterexample() -> None:
    mutant = MUTANTS["published-two-pointers"]
    found = check_program(PROGRAMS[mutant.program], mutant).explored.counterexample
    assert found is not None
    again = replay(found.token).explored.counterexample
    assert again is not None
    assert (again.what, again.token) == (found.what, found.token)


def test_rejects_a_mutant_whose_text_is_gone() -> None:
    stale = Mutant("stale", "", "", "queue", (("no such text", ""),), "ES-1", "two-takers", 0)
    with pytest.raises(StaleMutant, match="stands 0 times"):
        texts("queue", stale)


def test_rejects_a_mutant_whose_text_stands_in_two_modules() -> None:
    doubtful = Mutant("two", "", "", "client", (("from __future__", ""),), "CH-1", "consume", 0)
    with pytest.raises(StaleMutant, match="stands 3 times"):
        texts("client", doubtful)


def test_rejects_a_second_program_or_mutant_of_one_name() -> None:
    add = partial(Mutants("queue").add, killed_by="ES-1", program="p", steps=1, origin="", title="")
    add(id="twice", edit=("a", "b"))
    with pytest.raises(ValueError, match="two mutants are called twice"):
        add(id="twice", edit=("a", "c"))
    scenario = Programs("queue").scenarios(PullScene)

    def once(scene: PullScene) -> None:
        """A title.

        Bounds: None.
        """

    scenario("ES-1", traces=1)(once)
    with pytest.raises(ValueError, match="two programs are called once"):
        scenario("ES-1", traces=1)(once)


def test_every_registry_of_programs_is_in_the_list_once() -> None:
    modules = [
        importlib.import_module(f"seriatim_models.programs.{p.stem}") for p in FOLDER.glob("*.py")
    ]
    found = [r for m in modules for r in vars(m).values() if isinstance(r, Programs)]
    registries = {id(r): r for r in found}.values()
    assert sum(map(len, registries)) == len(PROGRAMS)
    assert {p for r in registries for p in r} == set(PROGRAMS)


def test_other_modules_of_the_system_use_the_mutant() -> None:
    right, wrong = load("client"), load("client", MUTANTS["youngest-work-first"])
    for lib in (right, wrong):
        assert lib.Connection.__init__.__globals__["WorkService"] is lib.WorkService
        assert lib.WorkService.__init__.__globals__["WorkPool"] is lib.WorkPool
    assert wrong.WorkPool is not right.WorkPool
    assert wrong.Connection is not right.Connection
