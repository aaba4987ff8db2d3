"""The article's two tables, by simulation: the reference's own loop in virtual time.

python -m seriatim_models.programs.fair_simulation [--svg FILE]

The broker is one server that pushes one message at a time, first come first served, as fast as the second table's total
says it can; each acknowledgement lets it push one more of that queue. The consumer spends a fixed time on a message.
What is run is `seriatim.fair` itself under a host whose clock jumps to the next push when the loop parks.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeVar

import seriatim.fair as reference
from seriatim.host import Cell, Condition, Lock, Watch

T = TypeVar("T")

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


class _Host:
    """One thread and no clock but the simulation's. It has what the fair consumer asks for, and no more."""

    def __init__(self, idle: Callable[[], None]) -> None:
        self._idle = idle

    def cell(self, value: T, name: str = "", watch: Watch[T] | None = None) -> Cell[T]:
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


@dataclass(frozen=True)
class Outcome:
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
    lib: ModuleType = reference,
) -> Outcome:
    """Serve `total` messages, each taking `cost` seconds; the queues never run dry."""
    now = free = 0.0
    coming: deque[tuple[float, int]] = deque()
    served = [0] * len(quanta)

    def ask(slot: int) -> None:
        nonlocal free
        free = max(now, free) + push
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
        now += cost
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
    return Outcome(tuple(served), now, consumer.tokens.value)


def compare(total: int = TOTAL) -> dict[str, tuple[Outcome, tuple[int, ...], float]]:
    """Each table simulated: outcome, published counts, largest relative error."""
    found: dict[str, tuple[Outcome, tuple[int, ...], float]] = {}
    for name, (cost, published, _) in TABLES.items():
        outcome = simulate(cost, total=total)
        scale = sum(published) / sum(outcome.served)
        errors = [abs(s * scale - p) / p for s, p in zip(outcome.served, published, strict=True)]
        found[name] = (outcome, published, max(errors))
    return found


def text(total: int = TOTAL) -> str:
    """The tables side by side."""
    lines = []
    for name, (outcome, published, error) in compare(total).items():
        lines += [f"{name} a message", "queue  quantum  published  simulated   error"]
        for k, (p, s) in enumerate(zip(published, outcome.served, strict=True)):
            lines.append(f"p{k}     {QUANTA[k]:7}  {p:9}  {s:9}  {(s - p) / p:+6.1%}")
        lines.append(f"{outcome.seconds:.2f} s simulated; largest error {error:.1%}\n")
    lines.append(
        "Proportional turns flat where the broker pushes no faster than the consumer serves:\n"
        "then each visit finds its slot empty, and its deficit is forgotten."
    )
    return "\n".join(lines)


def plot(file: str, total: int = TOTAL) -> None:
    """Both tables as an SVG file; needs the extra `plots`."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    for axis, (name, (outcome, published, _)) in zip(axes, compare(total).items(), strict=True):
        axis.bar(range(10), published, color="0.8", label="published")
        axis.plot(range(10), outcome.served, "o-", label="simulated")
        axis.set(title=f"{name} a message", xlabel="queue", ylabel="consumed", ylim=0)
        axis.legend()
    figure.savefig(file)
    pyplot.close(figure)


if __name__ == "__main__":
    sys.stdout.write(text() + "\n")
    if "--svg" in sys.argv:
        plot(sys.argv[sys.argv.index("--svg") + 1])
