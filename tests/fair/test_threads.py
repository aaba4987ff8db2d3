"""Real threads, much at once; the history is judged by every property of the fair consumer."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from seriatim.fair import FairConsumer, Slot
from seriatim_models.history.event import Event, event
from seriatim_models.properties import Verdict
from seriatim_models.properties.whitebox.fair import FAIR
from seriatim_models.recording.fair import recorded
from seriatim_models.watched import WatchedThreads

PATIENCE = 30
Delivery = tuple[str, int]


class Judged:
    """A consumer whose brokers push as much as they are allowed to, on a thread each."""

    def __init__(self, quanta: dict[str, int], prefetch: int) -> None:
        self.records: list[Event] = []
        self._recording = threading.Lock()
        self.host = recorded(WatchedThreads(self._record))
        self.settled: list[Delivery] = []
        self.room = {name: threading.Semaphore(prefetch) for name in quanta}
        self.slots = {
            name: Slot[Delivery](name, quantum, prefetch, lambda d: 1 + d[1] % 4)
            for name, quantum in quanta.items()
        }
        self.consumer = FairConsumer(self.host, self.slots.values(), self.handle, self.settle)

    def _record(self, t: int, thread: str, ev: str, args: dict[str, object]) -> None:
        with self._recording:
            i = len(self.records)
            self.records.append(event(i, t, thread, ev, {**args, "lvl": "model"}))

    def handle(self, delivery: Delivery) -> None:
        if delivery[1] % 3 == 0:
            raise ValueError("every third")

    def settle(self, delivery: Delivery, well: bool) -> None:
        self.settled.append(delivery)
        self.room[delivery[0]].release()

    def push(self, name: str, total: int) -> None:
        for k in range(total):
            assert self.room[name].acquire(timeout=PATIENCE)
            self.consumer.deliver(self.slots[name], (name, k))

    def rest(self) -> None:
        tokens = 0
        while self.consumer.tokens.try_acquire():
            tokens += 1
        waiting = sum(len(s.waiting) for s in self.slots.values())
        self.host.record("fair_rest", tokens=tokens, waiting=waiting)
        for p in FAIR[:4]:
            finding = p.check(self.records)
            assert finding.verdict is not Verdict.VIOLATED, f"{p.id}: {finding.explanation}"
            # With a prefetch of one no two slots are busy together for long.
            assert finding.n_tested or p.id == "FQ-2", p.id


@pytest.mark.parametrize("prefetch", [1, 3, 50])
def test_what_many_threads_recorded_is_fair(prefetch: int) -> None:
    judged = Judged({"a": 5, "b": 2, "c": 1}, prefetch)
    each = 300
    loop = threading.Thread(target=judged.consumer.run, daemon=True)
    brokers = [threading.Thread(target=partial(judged.push, n, each)) for n in judged.slots]
    for thread in [loop, *brokers]:
        thread.start()
    for thread in brokers:
        thread.join(PATIENCE)
    for name in judged.slots:
        for _ in range(prefetch):  # all room is there again when all was settled
            assert judged.room[name].acquire(timeout=PATIENCE)
    judged.consumer.stop()
    loop.join(PATIENCE)
    assert not loop.is_alive()
    for name in judged.slots:
        assert [k for n, k in judged.settled if n == name] == list(range(each))
    judged.rest()


def test_handler_that_never_returns_stops_the_loop_and_loses_nothing() -> None:
    """Rule 6: deliveries are still taken in, and served when it returns after all."""
    judged = Judged({"a": 1, "b": 1}, 4)
    inside, leave = threading.Event(), threading.Event()

    def handle(delivery: Delivery) -> None:
        inside.set()
        assert leave.wait(PATIENCE)

    judged.consumer.handler = handle
    loop = threading.Thread(target=judged.consumer.run, daemon=True)
    loop.start()
    judged.push("a", 4)
    judged.push("b", 4)
    assert inside.wait(PATIENCE)
    assert judged.settled == []
    assert sum(len(s.waiting) for s in judged.slots.values()) == 7
    leave.set()
    for name in "ab":
        for _ in range(4):
            assert judged.room[name].acquire(timeout=PATIENCE)
    judged.consumer.stop()
    loop.join(PATIENCE)
    judged.rest()
