"""Closed programs over the reference fair consumer: a broker pushes, a loop serves, handlers fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any

import seriatim.fair as reference
from seriatim_models.explorer import World
from seriatim_models.programs.base import Programs, Scene
from seriatim_models.programs.fair_simulation import simulate
from seriatim_models.recording.fair import recorded

FAIR_PROGRAMS = Programs("fair")

Slots = list[reference.Slot[int]]
Consumer = reference.FairConsumer[int]

ROUNDS = 8


class FairScene(Scene):
    """A scene with one fair consumer. A delivery is its own weight; at the end tokens and deliveries are counted."""

    def __init__(
        self,
        world: World,
        lib: ModuleType,
        quanta: Sequence[int],
        prefetch: int = 9,
        handler: Callable[[int], None] = lambda d: None,
    ) -> None:
        super().__init__(world, lib)
        self.slots: Slots = [
            lib.Slot(f"p{k}", quantum, prefetch, lambda d: d) for k, quantum in enumerate(quanta)
        ]
        self.settled: list[tuple[int, bool]] = []
        self.consumer: Consumer = lib.FairConsumer(
            recorded(world.host), self.slots, handler, self.settle
        )
        world.at_end(self._end)

    def settle(self, delivery: int, well: bool) -> None:
        """Note that a delivery was settled: the broker's end, unless a program has its own."""
        self.settled.append((delivery, well))

    def loop(self, rounds: int = ROUNDS) -> None:
        """The main loop on a thread, for more rounds than the program needs: a wrong one may spin.

        What ends it is written down; at rest it is missed.
        """

        def run() -> None:
            try:
                for _ in range(rounds):
                    # An error of `settle`, or an exit of a handler; then the loop is run again.
                    with suppress(ConnectionError, SystemExit):
                        if not self.consumer.park():
                            break
                        self.consumer.round()
            except Exception as error:
                self.world.host.record("died", error=repr(error))

        self.world.spawn(run, name="loop", daemon=True)

    def timed_loop(self, seconds: float = 5) -> None:
        """The main loop as the article has it, which logs "No message" when it was not woken in time."""

        def run() -> None:
            for _ in range(ROUNDS):
                if not self.consumer.tokens.try_acquire(seconds):
                    continue
                self.consumer._held = 1
                if not self.consumer.park():
                    break
                self.consumer.round()

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
                with suppress(self.lib.Overrun):
                    self.deliver(self.slots[slot], weight)

        self.world.spawn(broker, name=name)

    def deliver(self, slot: reference.Slot[int], weight: int) -> None:
        """Deliver to a slot on the calling thread; raises `Overrun`, which is recorded, beyond its prefetch."""
        try:
            self.consumer.deliver(slot, weight)
        except self.lib.Overrun:
            self.world.host.record("overrun", slot=slot.name)
            raise

    def fill(self, *deliveries: tuple[int, int]) -> None:
        """Deliver to slots, given by number with a weight each, before anything runs."""
        for slot, weight in deliveries:
            self.consumer.deliver(self.slots[slot], weight)

    def _end(self) -> None:
        tokens: Any = self.consumer.tokens  # the world's semaphore shows its permits
        known = self.consumer.settle == self.settle
        self.world.host.record(
            "fair_rest",
            tokens=tokens.value + self.consumer._held,
            waiting=sum(len(s.waiting) for s in self.slots),
            **({"settlements": [well for _, well in self.settled]} if known else {}),
        )


def fails(delivery: int) -> None:
    """Raise: a handler."""
    raise ValueError("no")


def exits(delivery: int) -> None:
    """End the thread: a handler."""
    raise SystemExit


scenario = FAIR_PROGRAMS.scenarios(FairScene)


@scenario("FQ-1 FQ-3 FQ-4", traces=4, quanta=(2,))
def fair_park(scene: FairScene) -> None:
    """The broker pushes while the loop is about to park.

    Bounds: One slot, two deliveries of weight 1, quantum 2.
    """
    scene.loop()
    scene.push((0, 1), (0, 1))


@scenario("FQ-1 FQ-2 FQ-3 FQ-4", traces=11, quanta=(2, 1))
def fair_two_brokers(scene: FairScene) -> None:
    """Two slots get their deliveries from two threads while the loop visits both.

    Bounds: Two slots, one delivery there and one arriving in each.
    """
    scene.fill((0, 1), (0, 1), (1, 1), (1, 1))
    scene.loop()
    scene.push((1, 1))


@scenario("FQ-1 FQ-3 FQ-4", traces=16, quanta=(3,))
def fair_just_in_time(scene: FairScene) -> None:
    """Deliveries arrive one by one while the loop visits their slot, each perhaps just after it was found empty.

    Bounds: One slot, quantum 3, one delivery of weight 1 there, two arriving. Each more can add the same again.
    """
    scene.fill((0, 1))
    scene.loop()
    scene.push((0, 1), (0, 1))


@scenario("FQ-1 FQ-3 FQ-4", traces=9, quanta=(2,))
def fair_timed(scene: FairScene) -> None:
    """The broker pushes while the loop's time limit runs out.

    Bounds: One slot, two deliveries of weight 1, quantum 2; one time limit, after which the loop waits again.
    """
    scene.timed_loop()
    scene.push((0, 1), (0, 1))


@scenario("FQ-1 FQ-3 FQ-4", traces=6, quanta=(1,))
def fair_heavy(scene: FairScene) -> None:
    """A delivery weighs more than the quantum, so it takes rounds in which nothing is served.

    Bounds: One slot, weight 3, quantum 1; one delivery there, one arriving.
    """
    scene.fill((0, 3))
    scene.loop()
    scene.push((0, 3))


@scenario("FQ-1 FQ-2 FQ-3 FQ-4", traces=1, quanta=(4, 1), prefetch=24)
def fair_rounds(scene: FairScene) -> None:
    """Two slots that stay busy, with quanta 4 and 1, served by one thread.

    Bounds: Sequential; twenty-four and six deliveries of weight 1, at most eight rounds.
    """
    scene.fill(*[(0, 1)] * 24, *[(1, 1)] * 24)
    scene.rounds(8)


@scenario("FQ-1 FQ-2 FQ-3", traces=1, quanta=(2, 2), prefetch=24)
def fair_starve(scene: FairScene) -> None:
    """A slot whose deliveries weigh more than its quantum, beside one whose do not.

    Bounds: Sequential; two slots, at most eight rounds.
    """
    scene.fill(*[(0, 1)] * 24, (1, 3), (1, 3))
    scene.rounds(8)


@scenario("FQ-3 FQ-4", traces=9, quanta=(1, 1), handler=fails)
def fair_failure(scene: FairScene) -> None:
    """A handler raises, with more waiting in its slot and arriving in another.

    Bounds: Two slots, two deliveries there, one arriving, every handler raises.
    """
    scene.fill((0, 1), (0, 1))
    scene.loop()
    scene.push((1, 1))


@scenario("FQ-1 FQ-3 FQ-4", traces=6, quanta=(2,))
def fair_settle_fails(scene: FairScene) -> None:
    """The broker takes the first settlement with an error, and the loop is run again, while a delivery arrives.

    Bounds: One slot, two deliveries there, one arriving; one error.
    """
    scene.fill((0, 1), (0, 1))
    errors = [ConnectionError("the channel is closed")]

    def settle(delivery: int, well: bool) -> None:
        if errors:
            raise errors.pop()

    scene.consumer.settle = settle
    scene.loop()
    scene.push((0, 1))


@scenario("FQ-3 FQ-4", traces=3, quanta=(1,), handler=exits)
def fair_handler_exits(scene: FairScene) -> None:
    """A handler ends its thread, and the loop is run again, while a delivery arrives.

    Bounds: One slot, one delivery there, one arriving; every handler exits.
    """
    scene.fill((0, 1))
    scene.loop()
    scene.push((0, 1))


@scenario("FQ-3 FQ-4", traces=3, quanta=(1,), prefetch=1)
def fair_overrun(scene: FairScene) -> None:
    """The broker pushes more than the prefetch it was given.

    Bounds: One slot with prefetch 1, two deliveries.
    """
    scene.loop()
    scene.push((0, 1), (0, 1))


@scenario("FQ-4", traces=6, quanta=(1,), prefetch=1)
def fair_room_for_one(scene: FairScene) -> None:
    """Two threads of the broker push at the same time into a slot that has room for one delivery.

    Bounds: One slot with prefetch 1, one delivery of each thread.
    """
    scene.loop()
    scene.push((0, 1), name="one")
    scene.push((0, 1), name="two")


@scenario("FQ-3 FQ-4", traces=34, quanta=(1,))
def fair_stop(scene: FairScene) -> None:
    """The loop is asked to end while a delivery arrives.

    Bounds: One slot, one delivery there and one arriving, one stop.
    """
    scene.fill((0, 1))
    scene.world.spawn(scene.consumer.run, name="loop")
    scene.push((0, 1))
    scene.world.spawn(scene.consumer.stop, name="stop")


@scenario("FQ-4", traces=28, quanta=(1,))
def fair_stop_twice(scene: FairScene) -> None:
    """The loop is asked to end twice, is run again when it has ended, and a delivery arrives.

    Bounds: One slot, one delivery arriving, two stops, the loop run twice on one thread.
    """

    def run() -> None:
        scene.consumer.run()
        scene.consumer.run()

    scene.world.spawn(run, name="loop", daemon=True)
    scene.push((0, 1))
    for n in (1, 2):
        scene.world.spawn(scene.consumer.stop, name=f"stop {n}")


@scenario("FQ-4", traces=1, quanta=(2,))
def fair_stop_in_handler(scene: FairScene) -> None:
    """A handler asks the loop to end, with more waiting in its slot, for which the slot could pay.

    Bounds: One slot, two deliveries there, one stop. What waits is the broker's.
    """
    scene.fill((0, 1), (0, 1))
    scene.consumer.handler = lambda delivery: scene.consumer.stop()
    scene.loop()


@scenario("FQ-1 FQ-3 FQ-4", traces=1, quanta=(1, 1))
def fair_delivers_itself(scene: FairScene) -> None:
    """A handler delivers, and the broker pushes the next delivery before `settle` returns, both on the loop's thread.

    Bounds: Two slots, one delivery of weight 1 there; one more by its handler and one by its settlement.
    """
    consumer, first = scene.consumer, [True, True]

    def handler(delivery: int) -> None:
        if first.pop():
            scene.deliver(scene.slots[1], 1)

    def settle(delivery: int, well: bool) -> None:
        if first:
            first.clear()
            scene.deliver(scene.slots[0], 1)

    scene.fill((0, 1))
    consumer.handler, consumer.settle = handler, settle
    scene.loop()


@scenario("FQ-1 FQ-3 FQ-4", traces=1, quanta=(3, 1))
def fair_own_slot(scene: FairScene) -> None:
    """Two handlers deliver to the slot that is being visited, which could pay for more than that.

    Bounds: One delivery there and one by each of two handlers; one in another slot, whose visit is the next. A visit
    ends when the slot is found empty, or cannot pay.
    """
    more = [True, True]

    def handler(delivery: int) -> None:
        if more:
            more.pop()
            scene.deliver(scene.slots[0], 1)

    scene.fill((0, 1), (1, 1))
    scene.consumer.handler = handler
    scene.loop()


@scenario("FQ-3 FQ-4", traces=4, quanta=(1,))
def fair_weighs_another(scene: FairScene) -> None:
    """To weigh a delivery delivers another one, on the broker's thread.

    Bounds: One slot, one delivery of weight 1, and one by its weighing.
    """
    slot, more = scene.slots[0], [1]

    def weight(delivery: int) -> int:
        if more:
            scene.deliver(slot, more.pop())
        return delivery

    slot.weight = weight
    scene.loop()
    scene.push((0, 1))


@scenario("FQ-3 FQ-4 AP-1", traces=1, quanta=(1,))
def fair_foreign(scene: FairScene) -> None:
    """A delivery comes for a slot of another consumer, and one for a slot of this one.

    Bounds: One slot each, one delivery each, on one thread.
    """
    foreign = scene.lib.Slot("foreign", 1, 9, lambda d: d)
    scene.loop()

    def broker() -> None:
        with scene.refused(ValueError):
            scene.consumer.deliver(foreign, 1)
        scene.consumer.deliver(scene.slots[0], 1)

    scene.world.spawn(broker, name="broker")


@FAIR_PROGRAMS.scenarios(Scene)("FQ-5", traces=1, thread="simulation")
def fair_rates(scene: Scene) -> None:
    """A simulated broker, first faster than the consumer, then slower.

    Bounds: Sequential, in virtual time; three slots, quanta 1, 2 and 3, 600 messages each way.
    """

    scene.world.now()
    for push, expected in ((0.1, [100, 200, 300]), (2.0, [200, 200, 200])):
        outcome = simulate(
            1.0, quanta=(1, 2, 3), weight=1, prefetch=10, total=600, push=push, lib=scene.lib
        )
        scene.world.host.record(
            "rates", expected=expected, served=list(outcome.served), tolerance=0.06
        )
