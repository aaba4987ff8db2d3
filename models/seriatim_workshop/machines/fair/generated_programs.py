"""Generated programs over the fair consumer: brokers that push, a loop that serves, a handler that fails."""

from __future__ import annotations

from types import ModuleType
from typing import ClassVar

from hypothesis import strategies as st

from seriatim_models.machines.fair.calls import FairHarness
from seriatim_models.machines.stages import ProgramStage
from seriatim_workshop.machines.plans import ProgramPlan

Deliveries = tuple[tuple[int, int], ...]
"""(number of the slot, weight) after (number of the slot, weight)."""


class FairPlan(ProgramPlan, frozen=True, omit_defaults=True):
    """A generated program. The loop has two rounds for each delivery, which the weights need, and one for the end."""

    system: ClassVar[str] = "fair"

    preloaded: Deliveries = ()
    brokers: tuple[Deliveries, ...] = ()
    quanta: tuple[int, ...] = (2, 3)
    prefetch: int = 9
    fails_on: int = 0
    """The weight at which the handler fails."""
    stops: bool = False

    def start(self, lib: ModuleType, stage: ProgramStage) -> FairHarness:
        """Set the program up, spawn its threads, and return its harness."""
        harness = FairHarness(
            stage.world, lib, self.quanta, self.prefetch, lambda delivery: delivery == self.fails_on
        )
        harness.fill(*self.preloaded)
        count = len(self.preloaded) + sum(map(len, self.brokers))
        harness.loop(rounds=2 * count + 1)
        for i, deliveries in enumerate(self.brokers):
            harness.push(*deliveries, name=f"broker {i + 1}")  # which calls `deliver`
        if self.stops:
            stage.spawn(harness.stop, name="stop", daemon=False)
        return harness


DELIVERIES = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 3)), max_size=3).map(tuple)
PLANS = st.builds(
    FairPlan,
    preloaded=DELIVERIES,
    brokers=st.lists(DELIVERIES, max_size=2).map(tuple),
    quanta=st.tuples(st.integers(2, 4), st.integers(2, 4)),
    prefetch=st.sampled_from([9, 3]),
    fails_on=st.integers(0, 3),
    stops=st.booleans(),
)
