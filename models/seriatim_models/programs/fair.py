"""Closed programs over the reference fair consumer: a broker pushes, a loop serves, handlers fail."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

import seriatim.fair as reference
from seriatim_models.explorer import World
from seriatim_models.programs.base import Programs
from seriatim_models.programs.fair_simulation import simulate

FAIR_PROGRAMS = Programs("fair")
program = FAIR_PROGRAMS.program

Slots = list[reference.Slot[int]]
Consumer = reference.FairConsumer[int]

ROUNDS = 8


class FairScene:
    """A world with one fair consumer. A delivery is its own weight; at the end tokens and deliveries are counted."""

    def __init__(
        self,
        world: World,
        lib: ModuleType,
        *quanta: int,
        prefetch: int = 9,
        handler: Callable[[int], None] = lambda d: None,
    ) -> None:
        self.world, self.lib = world, lib
        self.slots: Slots = [
            lib.Slot(f"p{k}", quantum, prefetch, lambda d: d) for k, quantum in enumerate(quanta)
        ]
        self.settled: list[tuple[int, bool]] = []
        self.consumer: Consumer = lib.FairConsumer(
            world.host, self.slots, handler, lambda d, well: self.settled.append((d, well))
        )
        world.at_end(self._end)

    def loop(self) -> None:
        """The main loop on a thread, for more rounds than any program here needs: a wrong one may spin.

        What ends it is written down; at rest it is missed.
        """

        def run() -> None:
            try:
                for _ in range(ROUNDS):
                    with suppress(ConnectionError):  # of `settle`; then the loop is run again
                        if not self.consumer.park():
                            break
                        self.consumer.round()
            except Exception as error:
                self.world.host.record("died", error=repr(error))

        self.world.spawn(run, name="loop", daemon=True)

    def rounds(self, n: int) -> None:
        """At most `n` rounds, for a loop that could go round for ever."""

        def run() -> None:
            for _ in range(n):
                if not any(slot.waiting for slot in self.slots) or not self.consumer.park():
                    return
                self.consumer.round()
            self.world.host.record("stopped")

        self.world.spawn(run, name="loop")

    def push(self, *deliveries: tuple[int, int], name: str = "broker") -> None:
        """A broker's thread: (slot, weight) after (slot, weight)."""

        def broker() -> None:
            for slot, weight in deliveries:
                try:
                    self.consumer.deliver(self.slots[slot], weight)
                except self.lib.Overrun:
                    self.world.host.record("overrun", slot=self.slots[slot].name)

        self.world.spawn(broker, name=name)

    def fill(self, *deliveries: tuple[int, int]) -> None:
        for slot, weight in deliveries:
            self.consumer.deliver(self.slots[slot], weight)

    def _end(self) -> None:
        tokens: Any = self.consumer.tokens  # the world's semaphore shows its permits
        self.world.host.record(
            "fair_rest",
            tokens=tokens.value + self.consumer._held,
            waiting=sum(len(s.waiting) for s in self.slots),
        )


@program(
    "fair-park",
    "The broker pushes while the loop is about to park.",
    "FQ-1 FQ-3 FQ-4",
    "One slot, two deliveries of weight 1, quantum 2.",
    4,
)
def _(world: World, lib: ModuleType) -> None:
    s = FairScene(world, lib, 2)
    s.loop()
    s.push((0, 1), (0, 1))


@program(
    "fair-two-brokers",
    "Two slots get their deliveries from two threads while the loop visits both.",
    "FQ-1 FQ-2 FQ-3 FQ-4",
    "Two slots, one delivery there and one arriving in each.",
    11,
)
def _(world: World, lib: ModuleType) -> None:
    s = FairScene(world, lib, 2, 1)
    s.fill((0, 1), (0, 1), (1, 1), (1, 1))
    s.loop()
    s.push((1, 1))


@program(
    "fair-just-in-time",
    "Deliveries arrive one by one while the loop visits their slot, each perhaps just after it was found empty.",
    "FQ-1 FQ-3 FQ-4",
    "One slot, quantum 3, one delivery of weight 1 there, two arriving. Each more can add the same again.",
    16,
)
def _(world: World, lib: ModuleType) -> None:
    s = FairScene(world, lib, 3)
    s.fill((0, 1))
    s.loop()
    s.push((0, 1), (0, 1))


@program(
    "fair-heavy",
    "A delivery weighs more than the quantum, so it takes rounds in which nothing is served.",
    "FQ-1 FQ-3 FQ-4",
    "One slot, weight 3, quantum 1; one delivery there, one arriving.",
    6,
)
def _(world: World, lib: ModuleType) -> None:
    s = FairScene(world, lib, 1)
    s.fill((0, 3))
    s.loop()
    s.push((0, 3))


@program(
    "fair-rounds",
    "Two slots that stay busy, with quanta 4 and 1, served by one thread.",
    "FQ-1 FQ-2 FQ-3 FQ-4",
    "Sequential; twenty-four and six deliveries of weight 1, at most eight rounds.",
    1,
)
def _(world: World, lib: ModuleType) -> None:
    s = FairScene(world, lib, 4, 1, prefetch=24)
    s.fill(*[(0, 1)] * 24, *[(1, 1)] * 24)
    s.rounds(8)


@program(
    "fair-starve",
    "A slot whose deliveries weigh more than its quantum, beside one whose do not.",
    "FQ-1 FQ-2 FQ-3",
    "Sequential; two slots, at most eight rounds.",
    1,
)
def _(world: World, lib: ModuleType) -> None:
    s = FairScene(world, lib, 2, 2, prefetch=24)
    s.fill(*[(0, 1)] * 24, (1, 3), (1, 3))
    s.rounds(8)


@program(
    "fair-failure",
    "A handler raises, with more waiting in its slot and arriving in another.",
    "FQ-3 FQ-4",
    "Two slots, two deliveries there, one arriving, every handler raises.",
    9,
)
def _(world: World, lib: ModuleType) -> None:
    def fails(delivery: int) -> None:
        raise ValueError("no")

    s = FairScene(world, lib, 1, 1, handler=fails)
    s.fill((0, 1), (0, 1))
    s.loop()
    s.push((1, 1))


@program(
    "fair-settle-fails",
    "The broker takes the first settlement with an error, and the loop is run again, while a delivery arrives.",
    "FQ-1 FQ-3 FQ-4",
    "One slot, two deliveries there, one arriving; one error.",
    6,
)
def _(world: World, lib: ModuleType) -> None:
    s = FairScene(world, lib, 2)
    s.fill((0, 1), (0, 1))
    errors = [ConnectionError("the channel is closed")]

    def settle(delivery: int, well: bool) -> None:
        if errors:
            raise errors.pop()

    s.consumer.settle = settle

    s.loop()
    s.push((0, 1))


@program(
    "fair-overrun",
    "The broker pushes more than the prefetch it was given.",
    "FQ-3 FQ-4",
    "One slot with prefetch 1, two deliveries.",
    3,
)
def _(world: World, lib: ModuleType) -> None:
    s = FairScene(world, lib, 1, prefetch=1)
    s.loop()
    s.push((0, 1), (0, 1))


@program(
    "fair-stop",
    "The loop is asked to end while a delivery arrives.",
    "FQ-4",
    "One slot, one delivery there and one arriving, one stop.",
    34,
)
def _(world: World, lib: ModuleType) -> None:
    s = FairScene(world, lib, 1)
    s.fill((0, 1))
    world.spawn(s.consumer.run, name="loop")
    s.push((0, 1))
    world.spawn(s.consumer.stop, name="stop")


@program(
    "fair-rates",
    "A simulated broker, first faster than the consumer, then slower.",
    "FQ-5",
    "Sequential, in virtual time; three slots, quanta 1, 2 and 3, 600 messages each way.",
    1,
)
def _(world: World, lib: ModuleType) -> None:
    def both() -> None:
        world.now()
        for push, expected in ((0.1, [100, 200, 300]), (2.0, [200, 200, 200])):
            outcome = simulate(
                1.0, quanta=(1, 2, 3), weight=1, prefetch=10, total=600, push=push, lib=lib
            )
            world.host.record(
                "rates", expected=expected, served=list(outcome.served), tolerance=0.06
            )

    world.spawn(both, name="simulation")
