"""Judges chapter 10 by the bounds that the paper proves, over drawn weights and quanta."""

import random
from dataclasses import dataclass, field
from types import ModuleType

ROUNDS = 40
HEAVIEST = 9


@dataclass
class Slot:
    quantum: int
    deficit: int = 0
    waiting: list[int] = field(default_factory=list)


def check(mine: ModuleType) -> None:
    chance = random.Random(0)
    for _ in range(200):
        slots = [Slot(chance.randint(1, 12)) for _ in range(3)]
        served = [0.0] * 3
        for _ in range(ROUNDS):
            for n, slot in enumerate(slots):
                while len(slot.waiting) < 50:  # more than a visit can pay for: it is never idle
                    slot.waiting.append(chance.randint(1, HEAVIEST))
                before = sum(slot.waiting)
                mine.visit(slot)
                served[n] += (before - sum(slot.waiting)) / slot.quantum
                assert 0 <= slot.deficit < slot.quantum + HEAVIEST, (
                    f"the deficit is {slot.deficit} with a quantum of {slot.quantum}"
                )
        for a in range(3):
            for b in range(a):
                bound = 1 + HEAVIEST / slots[a].quantum + HEAVIEST / slots[b].quantum
                assert abs(served[a] - served[b]) <= bound, (
                    f"quanta {slots[a].quantum} and {slots[b].quantum}: "
                    f"served {served[a]:.1f} and {served[b]:.1f} times their quantum"
                )
    idle = Slot(quantum=5, waiting=[1])
    mine.visit(idle)
    assert not idle.waiting, "a job that can be paid for was not done"
    for _ in range(3):
        mine.visit(idle)
    assert idle.deficit == 0, "nothing waits, and the deficit is saved up"
