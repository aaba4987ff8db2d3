"""The tables of calls: complete, and readable without knowing the system."""

from __future__ import annotations

import pytest
from hypothesis.stateful import run_state_machine_as_test

from seriatim_models.machines.calls import ApiCall, Caller, CallStanding
from seriatim_models.machines.client.calls import CLIENT, POOL
from seriatim_models.machines.fair.calls import FAIR
from seriatim_models.machines.log.calls import LOG
from seriatim_models.machines.queue.calls import HANDOVER, PULL, PUSH, PullHarness
from seriatim_models.machines.single_threaded_host import SingleThreadedHost
from seriatim_models.programs import MUTANTS
from seriatim_models.programs.mutant_modules import load
from seriatim_models.programs.scene import Inbox
from seriatim_workshop.machines.fair.sequential import FairMachine
from seriatim_workshop.machines.log.sequential import LogMachine
from seriatim_workshop.machines.profiles import checking, searching
from seriatim_workshop.machines.sequential import CallMachine

TABLES = {
    "pull": PULL,
    "push": PUSH,
    "hand-over": HANDOVER,
    "client": CLIENT,
    "pool": POOL,
    "log": LOG,
    "fair": FAIR,
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_call_says_what_it_does(table: dict[str, ApiCall]) -> None:
    for name, call in table.items():
        assert call.name == name
        assert call.title.endswith("."), name
        assert call.standings, name


def test_a_table_has_the_calls_of_its_kind() -> None:
    assert set(PULL) - set(PUSH) == {"pull"}
    assert set(PUSH) - set(PULL) == {"attempt", "job"}
    assert set(HANDOVER) - set(PULL) == {"notify_work", "run_one"}
    assert {c.name for c in PULL.values() if c.caller is Caller.OWNER} == {
        *("grant", "resume", "close", "pull")
    }


def test_choices_are_what_can_be_called_now() -> None:
    class Quiet(Inbox):
        def __init__(self) -> None:
            self.sent = []

        def notify_work(self, consumer: object) -> None: ...

    harness = PullHarness(load("queue"), SingleThreadedHost(), lambda name: Quiet())

    def choices(name: str, standing: CallStanding | None = None, **fixed: object) -> int:
        return len(list(PULL[name].choices(harness, standing, **fixed)))

    assert choices("pull") == choices("release") == 0
    negative = choices("subscribe", credit=-1)
    assert choices("subscribe", CallStanding.REFUSED) == negative
    a = harness.subscribe(True, 0, None, 0, exclusive=False)
    assert choices("pull") == 1
    assert choices("grant", CallStanding.IN_CONTRACT) == 2
    assert choices("grant", CallStanding.REFUSED) == 2, "less than one"
    assert choices("resume", CallStanding.IN_CONTRACT) == 0, "it has no credit"
    refused = choices("subscribe", CallStanding.REFUSED)
    assert refused == choices("subscribe", exclusive=True, credit=None) * 4 + negative
    entry = harness.enqueue(4, "", "", "")
    assert choices("release", CallStanding.NO_OP) == 1
    harness.grant(a, 1)
    harness.pull(a)
    assert list(PULL["release"].choices(harness, CallStanding.IN_CONTRACT)) == [
        {"consumer": a, "entry": entry}
    ]
    harness.close(a)
    for name in ("grant", "pause", "resume", "close", "pull", "release"):
        assert choices(name, CallStanding.IN_CONTRACT) == 0, "it is closed"
        assert choices(name, CallStanding.NO_OP) > 0


@pytest.mark.parametrize("machine", [LogMachine, FairMachine])
def test_reference_agrees_with_the_model(machine: type[CallMachine]) -> None:
    run_state_machine_as_test(machine, settings=checking(60, stateful_step_count=30))


@pytest.mark.parametrize(
    ("machine", "mutant"),
    [(LogMachine, "poison-dropped"), (FairMachine, "failure-keeps-token")],
)
def test_wrong_reference_disagrees(machine: type[CallMachine], mutant: str) -> None:
    lib = load(MUTANTS[mutant].reference, MUTANTS[mutant])
    wrong = type(machine.__name__, (machine,), {"lib": lib, "__module__": __name__})
    with pytest.raises(Exception):  # noqa: B017, PT011  # a Disagreement, or whatever the wrong reference raises itself
        run_state_machine_as_test(wrong, settings=searching(200, stateful_step_count=30))
