"""Generated programs under sampled schedules: wrong queues are caught, and what is found can be replayed."""

import pytest
from hypothesis import given

from seriatim_models.machines.queue.calls import PlannedMessage
from seriatim_models.programs import MUTANTS
from seriatim_models.programs.mutant_modules import load
from seriatim_workshop.machines import concurrent
from seriatim_workshop.machines.profiles import checking, searching
from seriatim_workshop.machines.queue.generated_programs import PlannedConsumer, QueuePlan, plans
from seriatim_workshop.machines.queue.regression_seeds import REGRESSION_SEEDS

QUICK = checking(20)
FINDING = searching(80)

# What the plans are about that show a mutant, and how many schedules of each are looked at.
CAUGHT = {
    "published-rewind": ("giving back", 150),
    "published-pointer-by-value": ("giving back", 150),
    "published-look-then-rest": ("waking", 30),
    "number-drawn-early": ("arriving", 30),
    "link-without-cas": ("arriving", 30),
    "no-rewind-on-release": ("giving back", 150),
    "no-job": ("anything", 30),
    "wake-the-sleeping": ("waking", 30),
    "lowest-first": ("first come", 30),
}

IMMEDIATE_RELEASED = QueuePlan(
    consumers=(PlannedConsumer(keeps="return", script=("pull",)),),
    publishers=((PlannedMessage(special="immediate"),),),
)


@QUICK
@given(plan=plans())
def test_reference_passes(plan: QueuePlan) -> None:
    result = concurrent.run(plan, executions=20)
    assert result.executions > 0
    assert result.counterexample is None, concurrent.report(plan, result, 0)


@pytest.mark.parametrize("plan", REGRESSION_SEEDS.values(), ids=REGRESSION_SEEDS)
def test_reference_passes_where_it_failed_before(plan: QueuePlan) -> None:
    result = concurrent.run(plan, executions=300)
    assert result.counterexample is None, concurrent.report(plan, result, 0)


SLOWLY_CAUGHT = {
    "published-pointer-by-value",
    "no-rewind-on-release",
    "published-rewind",
    "number-drawn-early",
}
"""Seconds each: few schedules show them."""


@pytest.mark.parametrize(
    "mutant", [pytest.param(m, marks=[pytest.mark.slow] * (m in SLOWLY_CAUGHT)) for m in CAUGHT]
)
def test_wrong_queue_is_caught(mutant: str) -> None:
    wrong = load("queue", MUTANTS[mutant])
    about, executions = CAUGHT[mutant]
    seen = []

    @FINDING
    @given(plan=plans(*(2, 2) if about == "giving back" else (3, 3), theme=about))
    def look(plan: QueuePlan) -> None:
        result = concurrent.run(plan, wrong, executions=executions, shrink=0)
        seen.append(result.verdict)
        assert result.verdict != "violated"

    with pytest.raises(AssertionError):
        look()
    assert "violated" in seen


def test_a_list_that_lost_a_node_is_judged_all_the_same() -> None:
    """An entry that was overwritten is there at the end, and nothing ever happened to it."""
    plan = QueuePlan(
        preloaded=(PlannedMessage(),),
        consumers=(PlannedConsumer(credit=1, held=1, script=("resume",)),),
        publishers=((PlannedMessage(), PlannedMessage()), (PlannedMessage(), PlannedMessage())),
    )
    result = concurrent.run(plan, load("queue", MUTANTS["link-without-cas"]), executions=100)
    assert result.verdict == "violated"


@pytest.mark.parametrize(
    "mutant",
    [
        "connection-not-looked-at-again",
        "connection-on-two-threads",
        "connection-looks-then-clears",
    ],
)
def test_wrong_hand_over_is_caught(mutant: str) -> None:
    wrong = load("queue", MUTANTS[mutant])
    plan = REGRESSION_SEEDS[
        "a request comes in while an IO thread is about to leave the connection"
    ]
    assert concurrent.run(plan, wrong, executions=300, shrink=0).verdict == "violated"


@pytest.mark.parametrize("executions", [150, pytest.param(3000, marks=pytest.mark.slow)])
def test_an_immediate_message_released_at_once_is_not_discarded(executions: int) -> None:
    """It has 1,410 traces."""
    result = concurrent.run(IMMEDIATE_RELEASED, executions=executions)
    assert result.verdict == ("ok" if executions > 1410 else "inconclusive"), result.why


def test_what_was_found_can_be_replayed() -> None:
    wrong = load("queue", MUTANTS["published-rewind"])
    # One consumer releases the first message while the other consumer is on its way past it.
    plan = QueuePlan(
        preloaded=(PlannedMessage(), PlannedMessage(), PlannedMessage()),
        consumers=(
            PlannedConsumer(credit=1, held=1, script=("release",)),
            PlannedConsumer(credit=0, script=("grant",)),
        ),
    )
    found = concurrent.run(plan, wrong, executions=2000)
    assert found.counterexample is not None
    assert QueuePlan.read(plan.text()) == plan
    again = concurrent.run(QueuePlan.read(plan.text()), wrong, token=found.counterexample.token)
    assert again.counterexample is not None
    assert str(again.counterexample.what) == str(found.counterexample.what)
