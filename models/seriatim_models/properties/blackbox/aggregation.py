"""Properties that are one pass in recording order, with a small state carried along.

The state holds what is open (messages not settled, messages on their way back) and a bounded window of what was just
seen; never the whole queue.
It can only be known from the beginning of the history on.
So the summary of a chunk from the middle is the events that the property reads, waiting for the state that they start
from; joined to a summary that has the beginning they are run through at once and forgotten.
Who folds from `begin()` therefore holds the state and one chunk.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar, get_args

import msgspec

from seriatim_models.history.event import Event
from seriatim_models.properties.base import Finding, Property

S = TypeVar("S")


class AggregationState(msgspec.Struct, Generic[S]):
    """Events waiting for the state they start from; or, where the history's beginning is in, the state after them."""

    waiting: list[Event] = []
    state: S | None = None


class SequentialProperty(Property[AggregationState[S]]):
    """Base: a subclass gives the state at the beginning, what events do to it, and the finding it comes to."""

    def start(self) -> S:
        """The state before the first event of the history: one of the type that the summary holds."""
        state: S = get_args(self.summary_type)[0]()
        return state

    def feed(self, state: S, events: Iterable[Event]) -> None:
        """What events, in recording order, do to the state."""
        raise NotImplementedError

    def close(self, state: S) -> Finding:
        """The finding, if the history ends here. Leaves the state as it is."""
        raise NotImplementedError

    def begin(self) -> AggregationState[S]:
        return AggregationState(state=self.start())

    def relevant(self, events: Iterable[Event]) -> Iterable[Event]:
        return events  # `map` chooses

    def map(self, events: Iterable[Event]) -> AggregationState[S]:
        return AggregationState(waiting=[e for e in events if e.ev in self.reads])

    def combine(self, left: AggregationState[S], right: AggregationState[S]) -> AggregationState[S]:
        if right.state is not None:
            raise ValueError(f"{self.id}: the beginning of a history has nothing before it")
        if left.state is None:
            left.waiting += right.waiting
        else:
            self.feed(left.state, right.waiting)
        return left

    def advance(self, summary: AggregationState[S], events: Sequence[Event]) -> AggregationState[S]:
        if summary.state is None or self.overrides(SequentialProperty, "map", "combine"):
            return super().advance(summary, events)
        reads = self.reads
        self.feed(summary.state, [e for e in events if e.ev in reads])
        return summary

    def finish(self, summary: AggregationState[S]) -> Finding:
        if summary.state is not None:
            return self.close(summary.state)
        state = self.start()
        self.feed(state, summary.waiting)
        return self.close(state)
