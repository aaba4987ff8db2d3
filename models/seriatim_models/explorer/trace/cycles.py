"""Cycle detection: why an execution has no end.

An execution that reached the bound on steps is examined again from its end.
If its last steps are the same few over and over, with the same results, then nothing changes any more.
If moreover every thread that could go took part, no scheduler can be blamed: that is a *livelock*.
If one thread goes round while another, which could go, does not get its turn, it *spins*:
the schedule is unfair, and the program may be right; but no search can exhaust such a loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from seriatim_models.explorer.trace.counterexample import Step

SPINS = 10
"""How often one thread must have repeated its last steps to count as spinning."""

ROUNDS = 3
"""How often the same steps must have been repeated at the end to count as a cycle."""


@dataclass(frozen=True)
class Cycle:
    """The steps that repeat at the end."""

    period: int
    rounds: int
    threads: tuple[str, ...]
    steps: tuple[str, ...]
    """What they do, without repetition."""
    fair: bool

    def __str__(self) -> str:
        names = " and ".join(self.threads)
        what = ", ".join(self.steps[:6]) + (", ..." if len(self.steps) > 6 else "")
        return (
            f"{names} repeat {what}: {self.period} step{'s' * (self.period != 1)}, "
            f"{self.rounds} times, and nothing changes"
        )


def find_cycle(log: Sequence[Step], enabled: Sequence[str]) -> Cycle | None:
    """The cycle at the end of an execution in which the threads `enabled` could still go, or None."""
    signs = [(s.thread, s.op, s.result) for s in log]
    n = len(signs)
    for period in range(1, n // ROUNDS + 1):
        if signs[n - period :] != signs[n - 2 * period : n - period]:
            continue
        rounds = 1
        while rounds * period + period <= n and (
            signs[n - (rounds + 1) * period : n - rounds * period] == signs[n - period :]
        ):
            rounds += 1
        if rounds < ROUNDS:
            continue
        tail = signs[n - period :]
        threads = tuple(dict.fromkeys(s[0] for s in tail))
        fair = set(enabled) <= set(threads)
        if len(threads) == 1 and not fair:
            longer = _fair(signs, enabled)
            if longer is not None:
                return longer
        return Cycle(period, rounds, threads, _described(tail), fair)
    return _spinning(signs)


def _described(signs: list[tuple[str, str, str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{op} -> {result}" if result else op for _, op, result in signs))


def _spinning(signs: list[tuple[str, str, str]]) -> Cycle | None:
    """A thread that did the same over and over, while others did something else."""
    for thread in dict.fromkeys(s[0] for s in reversed(signs)):
        own = [s for s in signs if s[0] == thread]
        for period in range(1, len(own) // SPINS + 1):
            rounds = 1
            while (rounds + 1) * period <= len(own) and (
                own[len(own) - (rounds + 1) * period :][:period] == own[len(own) - period :]
            ):
                rounds += 1
            if rounds >= SPINS:
                return Cycle(period, rounds, (thread,), _described(own[-period:]), False)
    return None


def longest_spin(log: Sequence[Step]) -> Cycle | None:
    """The longest run of steps in which one thread did the same over and over, wherever it is."""
    best: Cycle | None = None
    repeated: list[int] = []
    numbers: dict[tuple[str, str, str], int] = {}  # these are compared with each other very often
    signs = [(s.thread, s.op, s.result) for s in log]
    for thread in dict.fromkeys(s.thread for s in log):
        own = [numbers.setdefault(sign, len(numbers)) for sign in signs if sign[0] == thread]
        for period in range(1, len(own) // SPINS + 1):
            if best is not None and best.rounds >= len(own) // period:
                break  # so many rounds of so many steps there cannot be
            same = 0
            for k in range(period, len(own)):
                same = same + 1 if own[k] == own[k - period] else 0
                rounds = same // period + 1
                if rounds >= SPINS and (best is None or rounds > best.rounds):
                    best = Cycle(period, rounds, (thread,), (), False)
                    repeated = own[k - period + 1 : k + 1]
    if best is None:
        return None
    known = list(numbers)
    return replace(best, steps=_described([known[number] for number in repeated]))


def _fair(signs: list[tuple[str, str, str]], enabled: Sequence[str]) -> Cycle | None:
    """One thread at the very end, but perhaps all take their turn at repeating what each repeats."""
    n = len(signs)
    half = signs[n // 2 :]
    by_thread: dict[str, list[tuple[str, str]]] = {}
    for thread, op, result in half:
        by_thread.setdefault(thread, []).append((op, result))
    if not set(enabled) <= by_thread.keys():
        return None
    steps: list[str] = []
    period = 0
    for did in by_thread.values():
        own = next((p for p in range(1, len(did) // ROUNDS + 1) if did[p:] == did[:-p]), None)
        if own is None:
            return None
        period += own
        steps += [f"{op} -> {result}" if result else op for op, result in did[:own]]
    rounds = min(len(did) for did in by_thread.values())
    return Cycle(period, rounds, tuple(by_thread), tuple(dict.fromkeys(steps)), True)
