"""Fair consuming: deficit weighted round robin over several queues, as the smallest code that is right.

A broker pushes deliveries into *slots*, one a queue, on its own thread. One *main loop* serves the slots in turn,
each in proportion to its quantum (Shreedhar & Varghese, "Efficient Fair Queuing using Deficit Round-Robin", 1996;
article "Fair Consuming with RabbitMQ"). While no delivery waits anywhere, the loop is parked on a semaphore.

How to think of it
------------------
Rule 1 (earn).    A visit to a slot in which something waits adds its quantum to its deficit.
Rule 2 (spend).   The slot's first delivery is served while its weight is at most the deficit, which pays for it.
Rule 3 (forget).  A slot found empty at the end of its visit has deficit 0: an idle slot does not save up.
Rule 4 (token).   There is one token for each delivery that waits. Both appear and both disappear under one lock, so
                  outside that lock they are equal in number. The loop may *hold* one: the token that woke it, which
                  the next delivery that it takes uses up.
Rule 5 (settle).  Every delivery taken is settled once: well, or, if its handler raised or exited, not well.
                  Its token is gone by then, so whatever handler and broker do, the count stays right.
Rule 6 (end).     `stop` ends the loop between two deliveries, for good. `run` passes an error of `settle`, and an exit
                  of the handler, on to its caller: the broker will deliver that message again, nothing else is changed,
                  and `run` may be called again.
                  There is one loop: a handler that never returns stops it for all slots. Deliveries are still
                  taken in, as many as each slot's prefetch, and are the broker's until they are settled.

Why proportional rates turn flat: a slot can only be served what waits in it. If the broker pushes more slowly than the
loop serves, each visit finds its slot empty after a delivery or two, rule 3 forgets the rest of the quantum,
and what is left is the broker's own order. The same happens with a prefetch of 1, however fast the broker.

What this file does not know
----------------------------
The broker: somebody calls `deliver` for each push, at most `prefetch` unsettled per slot, and gives `settle`.
Threads and clocks: it asks its `Host`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from seriatim.host import Host, operation

D = TypeVar("D")


class Overrun(Exception):
    """The broker pushed more than the prefetch it was given. The delivery was not taken in."""


class Slot(Generic[D]):
    """A queue that deliveries come from: `weight` is what a delivery costs, `quantum` what a visit pays."""

    def __init__(
        self, name: str, quantum: int, prefetch: int, weight: Callable[[D], int] = lambda d: 1
    ) -> None:
        if quantum <= 0 or prefetch <= 0:
            raise ValueError(f"slot {name}: {quantum=} and {prefetch=} must be positive")
        self.name, self.quantum, self.prefetch, self.weight = name, quantum, prefetch, weight
        self.deficit = 0
        self.waiting: deque[tuple[D, int]] = deque()
        """Deliveries with their weights, guarded by the consumer's lock."""


class FairConsumer(Generic[D]):
    """The main loop and its slots. `deliver` and `stop` may be called from any thread, the other methods from one."""

    def __init__(
        self,
        host: Host,
        slots: Iterable[Slot[D]],
        handler: Callable[[D], None],
        settle: Callable[[D, bool], None],
    ) -> None:
        self.host, self.slots, self.handler, self.settle = host, list(slots), handler, settle
        self._lock = host.lock("intake")
        self.tokens = host.semaphore(0, "tokens")
        self._held = 0
        self._ended = False
        self._stopping = host.cell(False, "stopping")
        for slot in self.slots:
            host.record("slot", slot=slot.name, quantum=slot.quantum, prefetch=slot.prefetch)

    def deliver(self, slot: Slot[D], delivery: D) -> None:
        """Take in what the broker pushes. Raises `Overrun` if it is beyond the slot's prefetch.

        Raises `ValueError` if nobody would serve it: the slot is another consumer's, or the weight is not positive.
        """
        if slot not in self.slots:
            raise ValueError(f"slot {slot.name} is not one of this consumer's")
        weight = slot.weight(delivery)
        if weight <= 0:
            raise ValueError(f"slot {slot.name}: a weight is positive, not {weight}")
        with self._lock:
            if len(slot.waiting) >= slot.prefetch:
                raise Overrun(f"slot {slot.name}: a delivery beyond its prefetch {slot.prefetch}")
            slot.waiting.append((delivery, weight))
            self.host.record("arrive", slot=slot.name, weight=weight)
            self.tokens.release()

    def stop(self) -> None:
        """End the loop after the delivery that it is handling. What waits stays unsettled, and the broker's."""
        if not self._stopping.get_and_set(True):
            self.tokens.release()

    def run(self) -> None:
        """Serve until stopped, or until `settle` raises or the handler exits, which it passes on."""
        while self.park():
            self.round()

    def park(self) -> bool:
        """Sleep until something waits; return False if the loop must end, or has ended."""
        if self._ended:
            return False
        if self._held == 0:
            self._sleep()
        if self._stopping.get():
            self._held, self._ended = 0, True  # the token of `stop`, or another in its place
            self.host.record("stopped")
            return False
        return True

    @operation
    def _sleep(self) -> None:
        self.tokens.acquire()
        self._held = 1

    @operation
    def round(self) -> None:
        """Visit each slot once."""
        for slot in self.slots:
            self._visit(slot)

    def _visit(self, slot: Slot[D]) -> None:
        quantum = slot.quantum
        while not self._stopping.get():
            with self._lock:
                taken = self._take(slot, quantum)
            if taken is None:
                return
            quantum = 0  # rule 1: once a visit
            delivery, _ = taken
            well = False
            try:
                well = self._handle(delivery) is None
            finally:
                self.settle(delivery, well)

    @operation
    def _take(self, slot: Slot[D], quantum: int) -> tuple[D, int] | None:
        """Take the slot's first delivery, with its weight, if the deficit pays for it. Under the lock."""
        if not slot.waiting:
            slot.deficit = 0
            return None
        slot.deficit += quantum
        delivery, weight = slot.waiting[0]
        if weight > slot.deficit:
            return None
        slot.waiting.popleft()
        slot.deficit -= weight
        if self._held:
            self._held = 0
        else:
            self.tokens.acquire()  # rule 4: there is one
        return delivery, weight

    @operation
    def _handle(self, delivery: D) -> Exception | None:
        """Call the handler and return what it raised."""
        try:
            self.handler(delivery)
        except Exception as error:
            return error
        return None
