"""Call by call: the reference agrees with the model, and wrong queues do not."""

import pytest
from hypothesis.stateful import run_state_machine_as_test

import seriatim.queue as reference
from seriatim_models.programs import MUTANTS
from seriatim_models.programs.mutant_modules import load
from seriatim_workshop.machines.profiles import checking, searching
from seriatim_workshop.machines.queue.sequential import KINDS, machine

QUICK = checking(60, stateful_step_count=30)
# A mutant is only to be found, not to be shown at its smallest.
FINDING = searching(600, stateful_step_count=50)

CAUGHT = {
    "pull": [
        "unlink-acquired",
        "no-rewind-on-release",
        "level-off-by-one",
        "place-ignores-sub-queue",
        "release-without-owner",
        "close-keeps-messages",
        "lowest-first",
        "nobody-else-is-told",
        "expired-is-taken",
        "rewind-test-reversed",
    ],
    "push": ["no-job", "no-rewind-on-release", "advance-by-two", "tail-unlinked"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_reference_agrees_with_the_model(kind: str) -> None:
    run_state_machine_as_test(machine(kind, reference), settings=QUICK)


SLOWLY_CAUGHT = {
    "nobody-else-is-told",
    "expired-is-taken",
    "lowest-first",
    "close-keeps-messages",
}
"""Ten seconds and more each, most of them for shrinking what was drawn."""


@pytest.mark.parametrize(
    ("kind", "mutant"),
    [
        pytest.param(k, m, marks=[pytest.mark.slow] * (m in SLOWLY_CAUGHT))
        for k, ms in CAUGHT.items()
        for m in ms
    ],
)
def test_wrong_queue_is_caught(kind: str, mutant: str) -> None:
    wrong = load("queue", MUTANTS[mutant])
    with pytest.raises(Exception):  # noqa: B017, PT011  # a Disagreement, or whatever the wrong queue raises itself
        run_state_machine_as_test(machine(kind, wrong), settings=FINDING)
