"""The simulated broker keeps every promise, and each of its faults is reported by the property that it breaks."""

from __future__ import annotations

import pytest

from seriatim_models.history.complete import complete
from seriatim_models.properties.base import Verdict
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.blackbox.requeue import RequeueLateness
from seriatim_workshop.bench.simulated_broker import FAULTS, SimulatedBroker

REPORTED_BY = {
    "loses": {"P1"},
    "doubles": {"P2"},
    "tail": {"P6"},
    "late": {"P6"},
    "skips": {"P4", "P5"},
    "unmarked": {"P3"},
    "overruns": {"P7"},
    "repeats-tag": {"P8"},
    "phantom": {"P1"},
    "after-ack": {"P1"},
}


def violated(seed: int, fault: str) -> set[str]:
    events = list(complete(SimulatedBroker(seed, 300, fault=fault).run()))
    judges = [*BLACKBOX, RequeueLateness(within=0)]
    return {p.id for p in judges if p.check(events).verdict is Verdict.VIOLATED}


def test_every_fault_has_its_judge() -> None:
    assert set(REPORTED_BY) == set(FAULTS)


@pytest.mark.parametrize("seed", range(4))
def test_a_broker_without_a_fault_violates_nothing(seed: int) -> None:
    assert violated(seed, "") == set()


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_violates_what_it_breaks(fault: str) -> None:
    assert REPORTED_BY[fault] <= violated(1, fault)
