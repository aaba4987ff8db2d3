"""The work pool against its specification, "Channeling Work" (Powell & Harrop), operation by operation.

The model is the text's state: `pool` and the partition of its channels. With a block of one every operation is the
text's; with larger ones StartWork takes several. Channels that come and go, of which it says nothing, are modelled too.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from seriatim.host import Threads
from seriatim.workpool import Misuse, Unregistered, Work, WorkPool
from seriatim_models.recording.client import pool_snapshot

CHANNELS = st.sampled_from("ab")


class ChannelingWork(RuleBasedStateMachine):
    """State and operations are named as in the text."""

    @initialize(block=st.sampled_from([1, 1, 2, 256]))
    def start(self, block: int) -> None:
        self.block = block
        self.under_test = WorkPool(Threads(), block=block)
        self.pool: dict[str, list[str]] = {}
        self.ready: list[str] = []
        self.in_progress: set[str] = set()
        self.made = 0
        self.register("a")

    @property
    def dormant(self) -> set[str]:
        return set(self.pool) - set(self.ready) - self.in_progress

    @rule(c=CHANNELS)
    def register(self, c: str) -> None:
        self.under_test.register_key(c)
        self.pool.setdefault(c, [])

    @rule(c=CHANNELS)
    def unregister(self, c: str) -> None:
        self.under_test.unregister_key(c)
        self.pool.pop(c, None)
        if c in self.ready:
            self.ready.remove(c)

    @rule(c=CHANNELS)
    def deliver(self, c: str) -> None:
        """DeliverDormant, DeliverReady and DeliverInProgress."""
        self.made += 1
        work = Work(f"{c}{self.made}", lambda: None)
        if c not in self.pool:
            with pytest.raises(Unregistered):
                self.under_test.add_work_item(c, work)
            return
        was_dormant = c in self.dormant
        self.pool[c].append(work.label)
        if was_dormant:
            self.ready.append(c)
        assert self.under_test.add_work_item(c, work) is was_dormant

    @rule()
    def start_work(self) -> None:
        """StartWork: the head of ready, and its first item (or block)."""
        got = self.under_test.next_work_block()
        if not self.ready:
            assert got is None
            return
        c = self.ready.pop(0)
        self.in_progress.add(c)
        taken, self.pool[c] = self.pool[c][: self.block], self.pool[c][self.block :]
        assert got is not None
        assert (got[0], [w.label for w in got[1]]) == (c, taken)

    @precondition(lambda self: self.in_progress)
    @rule(data=st.data())
    def end_work(self, data: st.DataObject) -> None:
        """EndWorkNoMoreToDo and EndWorkMoreToDo."""
        c = data.draw(st.sampled_from(sorted(self.in_progress)), "channel")
        more = bool(self.pool.get(c))
        self.in_progress.remove(c)
        if more:
            self.ready.append(c)
        assert self.under_test.finish_work_block(c) is more

    @rule(c=CHANNELS)
    def end_work_that_was_not_started(self, c: str) -> None:
        if c not in self.in_progress:
            with pytest.raises(Misuse):
                self.under_test.finish_work_block(c)

    @invariant()
    def same(self) -> None:
        snapshot = pool_snapshot(self.under_test)
        assert snapshot["queued"] == self.pool
        assert snapshot["ready"] == self.ready
        assert snapshot["in_progress"] == sorted(self.in_progress)

    @invariant()
    def the_texts_invariant(self) -> None:
        """A partition, ready without repetition, and no work in a dormant channel; and ours (CH-6): ready has work."""
        assert len(set(self.ready)) == len(self.ready)
        assert not set(self.ready) & self.in_progress
        assert all(not self.pool[c] for c in self.dormant)
        assert all(self.pool[c] for c in self.ready)


ChannelingWork.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestChannelingWork = ChannelingWork.TestCase
