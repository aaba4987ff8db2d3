"""The article's two tables, by simulation: the reference's own loop in virtual time (`seriatim demo fair` shows them).

The broker is one server that pushes one message at a time, first come first served, as fast as the second table's total
says it can; each acknowledgement lets it push one more of that queue. The consumer spends a fixed time on a message.
What is run is `seriatim.fair` itself under a host whose clock jumps to the next push when the loop parks.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

import seriatim.fair as reference
from seriatim.host import Cell, Condition, Lock

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")

PUSH = 1 / 20168
"""Seconds a push takes: 200017 messages in 9.917 s, the second table, in which the broker is the bottleneck."""

TABLES = {
    "100 us": (
        137.2e-6,  # 27.448 s for 200015 messages: the stated 100 us, and what the client itself needs
        (3741, 7377, 11031, 14556, 18195, 21828, 25408, 29024, 32605, 36250),
        0.03,
    ),
    "1 us": (
        1e-6,
        (19546, 19323, 20445, 19750, 20075, 19780, 20040, 20227, 20643, 20188),
        0.036,
    ),
}
"""Name -> time of one message in seconds, the published counts, the largest relative error that is allowed."""

QUANTA = tuple(4 * (i + 1) for i in range(10))
WEIGHT = 4
PREFETCH = 50
TOTAL = 200_000


class _Tokens:
    """A semaphore of one thread: who would sleep makes time pass instead."""

    def __init__(self, permits: int, idle: Callable[[], None]) -> None:
        self.value, self._idle = permits, idle

    def acquire(self) -> None:
        while not self.value:
            self._idle()
        self.value -= 1

    def try_acquire(self, timeout: float | None = None) -> bool:
        taken = self.value > 0
        self.value -= taken
        return taken

    def release(self, n: int = 1) -> None:
        self.value += n


class _NoLock:
    def acquire(self) -> None: ...

    def try_acquire(self) -> bool:
        return True

    def release(self) -> None: ...

    def __enter__(self) -> _NoLock:
        return self

    def __exit__(self, *_: object) -> None: ...


class _Variable:
    def __init__(self, value: Any) -> None:
        self._value = value

    def get(self) -> Any:
        return self._value

    def set(self, value: Any) -> None:
        self._value = value

    def get_and_set(self, value: Any) -> Any:
        before, self._value = self._value, value
        return before


class _Host:
    """One thread and no clock but the simulation's. It has what the fair consumer asks for, and no more."""

    def __init__(self, idle: Callable[[], None]) -> None:
        self._idle = idle

    def cell(self, value: T, name: str = "", *, kind: str = "", owner: object = None) -> Cell[T]:
        return _Variable(value)  # type: ignore[return-value]  # no compare-and-set is asked of it

    def lock(self, name: str = "") -> Lock:
        return _NoLock()

    def condition(self, lock: Lock, name: str = "") -> Condition:
        raise NotImplementedError

    def semaphore(self, permits: int, name: str = "") -> _Tokens:
        return _Tokens(permits, self._idle)

    def now(self) -> int:
        raise NotImplementedError

    def record(self, ev: str, /, **args: object) -> None: ...

    def perform(self, method: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return method(*args, **kwargs)


@dataclass(frozen=True)
class SimulationResult:
    """What a simulation gave."""

    served: tuple[int, ...]
    seconds: float
    permits: int
    """Tokens left over: 0 or a few if each stands for a delivery."""


def simulate(
    cost: float,
    *,
    quanta: tuple[int, ...] = QUANTA,
    weight: int = WEIGHT,
    prefetch: int = PREFETCH,
    total: int = TOTAL,
    push: float = PUSH,
    jitter: float = 0.0,
    seed: int = 0,
    lib: ModuleType = reference,
) -> SimulationResult:
    """Serve `total` messages, each taking `cost` seconds; the queues never run dry.

    With `jitter` j each push and each message takes a time drawn evenly from 1 - j to 1 + j of its own.
    """
    if not 0 <= jitter <= 1:
        raise ValueError(f"jitter is from 0 to 1, not {jitter}")
    chance = random.Random(seed)
    now = free = 0.0
    coming: deque[tuple[float, int]] = deque()
    served = [0] * len(quanta)

    def drawn(seconds: float) -> float:
        return seconds * chance.uniform(1 - jitter, 1 + jitter) if jitter else seconds

    def ask(slot: int) -> None:
        nonlocal free
        free = max(now, free) + drawn(push)
        coming.append((free, slot))

    def arrive() -> None:
        while coming and coming[0][0] <= now:
            slot = coming.popleft()[1]
            consumer.deliver(slots[slot], slot)

    def idle() -> None:
        nonlocal now
        now = max(now, coming[0][0])
        arrive()

    def handle(slot: int) -> None:
        nonlocal now
        now += drawn(cost)
        served[slot] += 1
        if sum(served) >= total:
            consumer.stop()

    def settle(slot: int, well: bool) -> None:
        ask(slot)
        arrive()

    slots = [lib.Slot(f"p{k}", q, prefetch, lambda _: weight) for k, q in enumerate(quanta)]
    consumer = lib.FairConsumer(_Host(idle), slots, handle, settle)
    for k in range(len(quanta)):
        for _ in range(prefetch):
            ask(k)
    consumer.run()
    return SimulationResult(tuple(served), now, consumer.tokens.value)


@dataclass(frozen=True)
class Comparison:
    """One published table and its simulation."""

    name: str
    outcome: SimulationResult
    published: tuple[int, ...]
    errors: tuple[float, ...]
    """Of each queue's count, relative to the published one, as if both tables had the same sum."""
    allowed: float

    def rows(self) -> list[tuple[str, int, int, int, float]]:
        """For each queue its name, quantum, published and simulated count, and the error."""
        names = [f"p{k}" for k in range(len(QUANTA))]
        served = self.outcome.served
        return list(zip(names, QUANTA, self.published, served, self.errors, strict=True))

    @property
    def largest(self) -> float:
        """Return the largest error."""
        return max(map(abs, self.errors))

    @property
    def ok(self) -> bool:
        """Return whether every error is within what is allowed."""
        return self.largest < self.allowed


def compare(name: str, total: int = TOTAL, jitter: float = 0.0, seed: int = 0) -> Comparison:
    """A published table beside its simulation."""
    cost, published, allowed = TABLES[name]
    outcome = simulate(cost, total=total, jitter=jitter, seed=seed)
    scale = sum(published) / sum(outcome.served)
    errors = tuple(s * scale / p - 1 for s, p in zip(outcome.served, published, strict=True))
    return Comparison(name, outcome, published, errors, allowed)


SPEEDS = (0.5, 0.8, 0.95, 1.0, 1.05, 1.1, 1.5, 2.0)
"""How many times faster than the consumer's service the broker's push is, where the turn is looked for."""


def advantage(speed: float, jitter: float = 0.0, seed: int = 0) -> float:
    """How many times the first queue's count the last one's is, whose quantum is ten times as large.

    At the start all queues have their prefetch waiting: that is in the numbers, and keeps them below ten.
    """
    served = simulate(speed * PUSH, total=TOTAL // 10, jitter=jitter, seed=seed).served
    return served[-1] / served[0]


WHY = (
    "Proportional turns flat where the broker pushes no faster than the consumer serves. "
    "Then each visit finds its slot empty after a delivery or two, the rest of the quantum is forgotten, "
    "and what remains is the broker's own order, which favours nobody."
)


def plot(file: str, tables: Sequence[Comparison], turn: Sequence[tuple[float, float]]) -> None:
    """The tables, and where proportional turns flat, as an SVG file; needs the extra `plots`."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(tables) + 1, figsize=(13, 3.5), layout="constrained")
    for axis, t in zip(axes, tables, strict=False):
        axis.bar(range(len(t.published)), t.published, color="0.8", label="published")
        axis.plot(range(len(t.published)), t.outcome.served, "o-", label="simulated")
        axis.set(title=f"{t.name} a message", xlabel="queue", ylabel="consumed", ylim=0)
        axis.legend()
    axes[-1].plot(*zip(*turn, strict=True), "o-")
    axes[-1].axvline(1.0, color="0.8")
    axes[-1].set(
        title="where proportional turns flat",
        xlabel="speed of the push / speed of the service",
        ylabel="p9 / p0",
        ylim=0,
    )
    figure.savefig(file, format="svg")
    pyplot.close(figure)
