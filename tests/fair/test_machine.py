"""The fair consumer against deficit round robin as its paper states it: deliver, serve a round, fail, overrun."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from seriatim.fair import FairConsumer, Overrun, Slot
from seriatim.host import Threads

PREFETCH = 4
Delivery = tuple[int, int]
"""(number, weight)"""


class FairMachine(RuleBasedStateMachine):
    """The model is a list of weights and a deficit for each slot."""

    @initialize(quanta=st.lists(st.integers(1, 6), min_size=1, max_size=4))
    def start(self, quanta: list[int]) -> None:
        self.quanta = quanta
        self.waiting: list[list[Delivery]] = [[] for _ in quanta]
        self.deficit = [0 for _ in quanta]
        self.number = 0
        self.fails = False
        self.served: list[tuple[Delivery, bool]] = []
        self.expected: list[tuple[Delivery, bool]] = []
        self.slots = [
            Slot[Delivery](f"p{k}", q, PREFETCH, lambda d: d[1]) for k, q in enumerate(quanta)
        ]
        self.consumer = FairConsumer(
            Threads(), self.slots, self.handle, lambda d, well: self.served.append((d, well))
        )

    def handle(self, delivery: Delivery) -> None:
        if self.fails:
            raise ValueError("no")

    @rule(slot=st.integers(0, 3), weight=st.integers(1, 9))
    def deliver(self, slot: int, weight: int) -> None:
        slot %= len(self.quanta)
        self.number += 1
        delivery = (self.number, weight)
        if len(self.waiting[slot]) == PREFETCH:
            with pytest.raises(Overrun):
                self.consumer.deliver(self.slots[slot], delivery)
        else:
            self.consumer.deliver(self.slots[slot], delivery)
            self.waiting[slot].append(delivery)

    @rule(fails=st.booleans())
    def serve_a_round(self, fails: bool) -> None:
        if not any(self.waiting):
            return  # it would park
        self.fails = fails
        assert self.consumer.park()
        self.consumer.round()
        for k, waiting in enumerate(self.waiting):
            if waiting:
                self.deficit[k] += self.quanta[k]
            while waiting and waiting[0][1] <= self.deficit[k]:
                self.deficit[k] -= waiting[0][1]
                self.expected.append((waiting.pop(0), not fails))
            if not waiting:
                self.deficit[k] = 0

    @invariant()
    def same(self) -> None:
        assert self.served == self.expected
        assert [s.deficit for s in self.slots] == self.deficit
        tokens = 0
        while self.consumer.tokens.try_acquire():
            tokens += 1
        if tokens:
            self.consumer.tokens.release(tokens)
        assert tokens + self.consumer._held == sum(map(len, self.waiting))


FairMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestFairMachine = FairMachine.TestCase
