"""The fair consumer call by call, against deficit round robin as its paper states it."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

import seriatim.fair as reference
from seriatim_models.machines.fair.calls import FAIR, FairHarness
from seriatim_models.machines.single_threaded_host import SingleThreadedHost
from seriatim_workshop.machines.sequential import CallMachine, Disagreement, with_rules

PREFETCH = 4


class FairModel:
    """The weights that wait in each slot, its deficit, and what was settled: (weight, whether it was served well)."""

    def __init__(self, quanta: list[int]) -> None:
        self.quanta = quanta
        self.waiting: list[list[int]] = [[] for _ in quanta]
        self.deficit = [0 for _ in quanta]
        self.settled: list[tuple[int, bool]] = []
        self.fails = False

    def deliver(self, slot: int, weight: int) -> None:
        """Let a delivery wait."""
        self.waiting[slot].append(weight)

    def serve_round(self) -> bool:
        """Serve each slot as far as its deficit allows."""
        for k, waiting in enumerate(self.waiting):
            if waiting:
                self.deficit[k] += self.quanta[k]
            while waiting and waiting[0] <= self.deficit[k]:
                self.deficit[k] -= waiting[0]
                self.settled.append((waiting.pop(0), not self.fails))
            if not waiting:
                self.deficit[k] = 0
        return True

    def round(self) -> None:
        """Serve a round without having been woken."""
        self.serve_round()


@with_rules(FAIR, leave_out=("stop", "make_slot"))
class FairMachine(CallMachine):
    """Deliveries, rounds, failing handlers and overruns in any order. After `stop` there is no next round."""

    lib: ModuleType = reference

    @initialize(quanta=st.lists(st.integers(1, 6), min_size=1, max_size=4))
    def begin(self, quanta: list[int]) -> None:
        """Make the consumer with a slot for each quantum."""
        self.model = FairModel(quanta)
        self.harness = FairHarness(
            SingleThreadedHost().world, self.lib, quanta, PREFETCH, lambda _: self.model.fails
        )

    def refusals(self) -> tuple[type[BaseException], ...]:
        return (self.lib.Overrun, ValueError)

    def label(self, value: Any) -> Any:
        return self.harness.slots.index(value) if isinstance(value, self.lib.Slot) else value

    @precondition(lambda self: any(self.model.waiting))
    @rule()
    def serve_round_in_vain(self) -> None:
        """Serve a round in which every handler fails."""
        self.model.fails = True
        self.make(FAIR["serve_round"])
        self.model.fails = False

    @invariant()
    def agree(self) -> None:
        """What was settled, the deficits, and the tokens are those of the model."""
        if not hasattr(self, "model"):
            return
        model, consumer = self.model, self.harness.consumer
        deficits = [s.deficit for s in self.harness.slots]
        if (self.harness.settled, deficits) != (model.settled, model.deficit):
            raise Disagreement(
                f"settled {self.harness.settled} with deficits {deficits}; "
                f"due was {model.settled} with {model.deficit}"
            )
        tokens = 0
        while consumer.tokens.try_acquire():
            tokens += 1
        if tokens:
            consumer.tokens.release(tokens)
        if tokens + consumer._held != sum(map(len, model.waiting)):
            raise Disagreement(f"{tokens} tokens for {model.waiting}")
