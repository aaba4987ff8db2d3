"""Generated programs on real threads, as many interleavings as the interpreter makes."""

from types import ModuleType

import pytest
from hypothesis import given

from seriatim_models.machines.queue.calls import PlannedMessage
from seriatim_models.programs import MUTANTS
from seriatim_models.programs.mutant_modules import load
from seriatim_workshop.machines import threads
from seriatim_workshop.machines.profiles import searching
from seriatim_workshop.machines.queue.generated_programs import PlannedConsumer, QueuePlan, plans


def first_mistake(lib: ModuleType, examples: int, rounds: int) -> str | None:
    """What was wrong first. It is not raised at once: Hypothesis would want to see the same interleaving again."""
    found: list[str] = []

    @searching(examples)
    @given(plan=plans(threads=4, operations=4))
    def look(plan: QueuePlan) -> None:
        wrong = None if found else threads.stress(plan, rounds, lib)
        if wrong is not None:
            found.append(wrong)

    look()
    return found[0] if found else None


def test_reference_passes() -> None:
    assert first_mistake(load("queue"), examples=15, rounds=5) is None


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param("close-keeps-messages", marks=pytest.mark.slow),
        pytest.param("advance-by-two", marks=pytest.mark.slow),
        "state-by-set",
    ],
)
def test_wrong_queue_is_caught(mutant: str) -> None:
    """Mistakes that need no rare schedule: what is tested here is the record and the judges, not luck."""
    assert first_mistake(load("queue", MUTANTS[mutant]), examples=200, rounds=2) is not None


def test_a_run_ends_when_nothing_can_move() -> None:
    plan = QueuePlan(
        consumers=(PlannedConsumer(script=("pull",)),),
        publishers=((PlannedMessage(), PlannedMessage()),),
    )
    events, violated, failures = threads.run(plan)
    assert not violated
    assert not failures
    assert [e.m for e in events if e.ev == "deliver"] == ["P1.1", "P1.2"]
    assert events[-1].ev == "snapshot"
