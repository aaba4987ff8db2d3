"""The made broker keeps every promise, and each of its faults is convicted by the property that it breaks."""

from __future__ import annotations

import pytest

from seriatim_models.history.complete import complete
from seriatim_models.properties.base import Verdict
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.blackbox.requeue import RequeueLateness
from seriatim_workshop.bench.simulated_broker import FAULTS, SimulatedBroker

CONVICTED_BY = {
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


def convicted(seed: int, fault: str) -> set[str]:
    events = list(complete(SimulatedBroker(seed, 300, fault=fault).run()))
    judges = [*BLACKBOX, RequeueLateness(within=0)]
    return {p.id for p in judges if p.check(events).verdict is Verdict.VIOLATED}


def test_every_fault_has_its_judge() -> None:
    assert set(CONVICTED_BY) == set(FAULTS)


@pytest.mark.parametrize("seed", range(4))
def test_a_broker_without_a_fault_is_not_convicted(seed: int) -> None:
    assert convicted(seed, "") == set()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_convicted_by_what_it_breaks(fault: str) -> None:
    assert CONVICTED_BY[fault] <= convicted(1, fault)
