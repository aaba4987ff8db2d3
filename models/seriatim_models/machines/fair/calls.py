"""The API calls of the fair consumer: deliveries from the broker, rounds of the loop, and its end.

`FAIR` is the table. See `seriatim_models.machines.calls`. A delivery is its own weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType

import seriatim.fair as reference
from seriatim_models.explorer import World
from seriatim_models.machines.calls import Caller, CallStanding, call, calls_of
from seriatim_models.programs.fair import FairScene


def slots(harness: FairHarness) -> Sequence[reference.Slot[int]]:
    """Return the slots."""
    return harness.slots


def _within_prefetch(harness: FairHarness, slot: reference.Slot[int], weight: int) -> CallStanding:
    full = len(slot.waiting) >= slot.prefetch
    return CallStanding.REFUSED if full else CallStanding.IN_CONTRACT


class FairHarness(FairScene):
    """One fair consumer whose handler fails at the deliveries of one weight."""

    def __init__(
        self,
        world: World,
        lib: ModuleType,
        quanta: Sequence[int],
        prefetch: int = 9,
        fails: Callable[[int], bool] = lambda delivery: False,
    ) -> None:
        def handle(delivery: int) -> None:
            if fails(delivery):
                raise ValueError("no")

        super().__init__(world, lib, quanta, prefetch, handle)

    @call(
        Caller.SYSTEM,
        slot=slots,
        weight=(1, 2, 3, 5, 9),
        standing=_within_prefetch,
        standings=(CallStanding.IN_CONTRACT, CallStanding.REFUSED),
    )
    def deliver(self, slot: reference.Slot[int], weight: int) -> None:
        """Deliver to a slot, as the broker does; more than its prefetch is refused (Overrun)."""
        super().deliver(slot, weight)

    @call(Caller.OWNER, enabled=lambda harness: any(slot.waiting for slot in harness.slots))
    def serve_round(self) -> bool:
        """Serve one round of all slots, and return False if the loop was asked to end."""
        if not self.consumer.park():
            return False
        self.consumer.round()
        return True

    @call()
    def stop(self) -> None:
        """Ask the loop to end."""
        self.consumer.stop()


FAIR = calls_of(FairHarness)
