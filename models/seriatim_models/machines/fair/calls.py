"""The API calls of the fair consumer: deliveries from the broker, rounds of the loop, and its end.

`FAIR` is the table. See `seriatim_models.machines.calls`. A delivery is its own weight. `FairConsumer.run` is
`serve_round` until it returns False.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType

import seriatim.fair as reference
from seriatim_models.explorer import World
from seriatim_models.machines.calls import Caller, CallStanding, call, calls_of
from seriatim_models.programs.fair import FairScene

IN_CONTRACT, NO_OP, REFUSED = CallStanding.IN_CONTRACT, CallStanding.NO_OP, CallStanding.REFUSED


def slots(harness: FairHarness) -> Sequence[reference.Slot[int]]:
    """Return the slots, and last one that is of another consumer."""
    return [*harness.slots, harness.foreign]


def waiting(harness: FairHarness) -> bool:
    """Return whether a delivery waits in some slot."""
    return any(slot.waiting for slot in harness.slots)


def _within_prefetch(harness: FairHarness, slot: reference.Slot[int], weight: int) -> CallStanding:
    refused = len(slot.waiting) >= slot.prefetch or weight <= 0 or slot is harness.foreign
    return REFUSED if refused else IN_CONTRACT


def _can_park(harness: FairHarness) -> bool:
    """Return whether the loop would not sleep."""
    return waiting(harness) or harness.consumer._stopping.get()


def _while_running(harness: FairHarness) -> CallStanding:
    return NO_OP if harness.consumer._ended else IN_CONTRACT


def _with_work(harness: FairHarness) -> CallStanding:
    idle = harness.consumer._stopping.get() or not waiting(harness)
    return NO_OP if idle else IN_CONTRACT


def _to_make(harness: FairHarness, quantum: int, prefetch: int) -> CallStanding:
    return REFUSED if quantum <= 0 or prefetch <= 0 else NO_OP


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
        self.foreign: reference.Slot[int] = lib.Slot("foreign", 1, prefetch, lambda d: d)

    @call(
        Caller.SYSTEM,
        slot=slots,
        weight=(1, 2, 3, 5, 9, 0, -1),
        standing=_within_prefetch,
        standings=(IN_CONTRACT, REFUSED),
        inside={},
    )
    def deliver(self, slot: reference.Slot[int], weight: int) -> None:
        """Deliver to a slot, as the broker does.

        More than its prefetch is refused (Overrun), and so are a weight that is not positive and a slot that nobody
        serves (ValueError).
        """
        super().deliver(slot, weight)

    @call(
        Caller.OWNER,
        enabled=_can_park,
        standing=_while_running,
        standings=(IN_CONTRACT, NO_OP),
    )
    def serve_round(self) -> bool:
        """Serve one round of all slots, and return False if the loop was asked to end, or has ended."""
        if not self.consumer.park():
            return False
        self.consumer.round()
        return True

    @call(Caller.OWNER, standing=_with_work, standings=(IN_CONTRACT, NO_OP))
    def round(self) -> None:
        """Serve one round without parking before it."""
        self.consumer.round()

    @call(
        standing=lambda harness: NO_OP if harness.consumer._stopping.get() else IN_CONTRACT,
        standings=(IN_CONTRACT, NO_OP),
        inside={},
    )
    def stop(self) -> None:
        """Ask the loop to end; once is enough."""
        self.consumer.stop()

    @call(
        quantum=(1, 0, -1),
        prefetch=(1, 0, -1),
        standing=_to_make,
        standings=(NO_OP, REFUSED),
    )
    def make_slot(self, quantum: int, prefetch: int) -> None:
        """Make another slot; one that earns nothing or takes nothing is refused (ValueError)."""
        self.lib.Slot("another", quantum, prefetch)


FAIR = calls_of(FairHarness)
