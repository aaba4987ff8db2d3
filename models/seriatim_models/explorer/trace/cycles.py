"""Going round in circles: why an execution has no end.

An execution that reached the bound on steps is looked at once more from its end.
If its last steps are the same few over and over, with the same results, then nothing changes any more.
If moreover every thread that could go took part, no scheduler can be blamed: that is a *livelock*.
If one thread goes round while another, which could go, does not get its turn, it *spins*:
the schedule is unfair, and the program may be right; but no search can exhaust such a loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seriatim_models.explorer.trace.counterexample import Step

SPINS = 10
"""How often one thread must have repeated its last steps to be said to spin."""

ROUNDS = 3
"""How often the same steps must have been repeated at the end to be called a circle."""


@dataclass(frozen=True)
class Circle:
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


def circle(log: Sequence[Step], able: Sequence[str]) -> Circle | None:
    """The circle at the end of an execution, in which the threads `able` could still go."""
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
        fair = set(able) <= set(threads)
        if len(threads) == 1 and not fair:
            longer = _fair(signs, able)
            if longer is not None:
                return longer
        return Circle(period, rounds, threads, _said(tail), fair)
    return _spinning(signs)


def _said(signs: list[tuple[str, str, str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{op} -> {said}" if said else op for _, op, said in signs))


def _spinning(signs: list[tuple[str, str, str]]) -> Circle | None:
    """A thread that did the same over and over, while others went their way."""
    for thread in dict.fromkeys(s[0] for s in reversed(signs)):
        own = [s for s in signs if s[0] == thread]
        for period in range(1, len(own) // SPINS + 1):
            rounds = 1
            while (rounds + 1) * period <= len(own) and (
                own[len(own) - (rounds + 1) * period :][:period] == own[len(own) - period :]
            ):
                rounds += 1
            if rounds >= SPINS:
                return Circle(period, rounds, (thread,), _said(own[-period:]), False)
    return None


def spun(log: Sequence[Step]) -> Circle | None:
    """The longest stretch in which one thread did the same over and over, wherever it is."""
    best: Circle | None = None
    for thread in dict.fromkeys(s.thread for s in log):
        own = [(s.thread, s.op, s.result) for s in log if s.thread == thread]
        for period in range(1, len(own) // SPINS + 1):
            same = 0
            for k in range(period, len(own)):
                same = same + 1 if own[k] == own[k - period] else 0
                rounds = same // period + 1
                if rounds >= SPINS and (best is None or rounds > best.rounds):
                    said = _said(own[k - period + 1 : k + 1])
                    best = Circle(period, rounds, (thread,), said, False)
    return best


def _fair(signs: list[tuple[str, str, str]], able: Sequence[str]) -> Circle | None:
    """One thread at the very end, but perhaps all take their turn at repeating what each repeats."""
    n = len(signs)
    half = signs[n // 2 :]
    by_thread: dict[str, list[tuple[str, str]]] = {}
    for thread, op, said in half:
        by_thread.setdefault(thread, []).append((op, said))
    if not set(able) <= by_thread.keys():
        return None
    steps: list[str] = []
    period = 0
    for did in by_thread.values():
        own = next((p for p in range(1, len(did) // ROUNDS + 1) if did[p:] == did[:-p]), None)
        if own is None:
            return None
        period += own
        steps += [f"{op} -> {said}" if said else op for op, said in did[:own]]
    rounds = min(len(did) for did in by_thread.values())
    return Circle(period, rounds, tuple(by_thread), tuple(dict.fromkeys(steps)), True)
