"""What the executions of a matrix cost, in processor time: how many a second, and the share of judging them.

``python -m seriatim_workshop.bench.matrix_time SYSTEM [--depth K] [--every N]``
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple

from seriatim_models.matrix.cells import PairProgram
from seriatim_models.matrix.plan import plan
from seriatim_models.matrix.systems import SYSTEMS
from seriatim_models.matrix.work import PairData, items, perform_here

PARTS = {
    "judging": ("observe", "judge_the_rest"),
    "setting the state up": ("__call__",),
    "what the calls leave to be done": ("_settle",),
}
"""Methods of `PairProgram` by what they are for. Judging is properties, conversion of events and outcome oracle."""


class MatrixTime(NamedTuple):
    """What some programs cost."""

    programs: int
    executions: int
    seconds: float
    """Of processor time."""
    shares: dict[str, float]
    """Of these, by part as in `PARTS`; the rest is the calls' own steps and the search."""

    def __str__(self) -> str:
        rate = f"{self.executions / self.seconds:.0f} a second"
        parts = ", ".join(f"{part} {share:.0%}" for part, share in self.shares.items())
        return f"{self.programs} programs, {self.executions} executions, {rate} of processor time; {parts}"


def measure(system: str, programs: Sequence[PairData], budget: int) -> MatrixTime:
    """Return what it costs to run programs with a budget of executions each, in this process."""
    spent: Counter[str] = Counter()
    with _timed(spent):
        begun = time.process_time()
        results = [d for some in perform_here(items(system, programs, budget)) for d in some]
        seconds = time.process_time() - begun
    executions = sum(d.result.executions for d in results)
    return MatrixTime(
        len(results), executions, seconds, {p: spent[p] / 1e9 / seconds for p in PARTS}
    )


@contextmanager
def _timed(spent: Counter[str]) -> Iterator[None]:
    """Add to `spent` the nanoseconds of each part, without those of methods within one."""
    usual = {name: getattr(PairProgram, name) for names in PARTS.values() for name in names}
    under_way: list[str] = []

    def timing(part: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def run(*args: Any) -> Any:
            if part in under_way:
                return method(*args)
            under_way.append(part)
            begun = time.process_time_ns()
            try:
                return method(*args)
            finally:
                spent[part] += time.process_time_ns() - begun
                under_way.remove(part)

        return run

    try:
        for part, names in PARTS.items():
            for name in names:
                setattr(PairProgram, name, timing(part, usual[name]))
        yield
    finally:
        for name, method in usual.items():
            setattr(PairProgram, name, method)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure some programs of a system's matrix and print one line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m seriatim_workshop.bench.matrix_time")
    parser.add_argument("system", choices=list(SYSTEMS))
    parser.add_argument("--depth", type=int, default=2, help="calls that lead to a state (2)")
    parser.add_argument("--every", type=int, default=4, help="one program of so many (4)")
    parser.add_argument("--budget", type=int, default=10_000, help="executions of one (10,000)")
    options = parser.parse_args(argv)
    programs = plan(options.system, options.depth).programs[:: options.every]
    print(f"{options.system}: {measure(options.system, programs, options.budget)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
