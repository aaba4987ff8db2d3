"""What `--jobs 2` could gain: the processor time of one process beside that of each of two that share the search.

``python -m seriatim_workshop.bench.sharing [--rounds N]``. On two free cores a search cannot end before the busier of
its two processes has: one process's time over that is the most that sharing gains, whatever else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence

from seriatim_models.explorer import explore
from seriatim_models.programs import PROGRAMS, check_program
from seriatim_workshop.bench.programs import condition_buffer
from seriatim_workshop.litmus import racy_counter

JUDGED = ("group-released", "release-short-of-credit", "pause-and-take")
SEARCHES: dict[str, Callable[[int], object]] = {
    "racy counter, 5 threads": lambda jobs: explore(racy_counter(5), jobs=jobs),
    "condition buffer, 6 items": lambda jobs: explore(condition_buffer(6), jobs=jobs),
}
SEARCHES |= {
    name: lambda jobs, name=name: check_program(PROGRAMS[name], jobs=jobs)  # type: ignore[misc]
    for name in JUDGED
}
"""Each takes some seconds of a processor."""


def spent(who: int) -> float:
    """Seconds of the processor that this process, or its children that have ended, took so far."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def measured(name: str, jobs: int) -> tuple[float, float]:
    """What the coordinator and its worker took, in a process of its own."""
    command = [sys.executable, "-m", __spec__.name, "--one", name, str(jobs)]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ)
    own, children = json.loads(ran.stdout)
    return own, children


def main(argv: Sequence[str] | None = None) -> int:
    """Measure each search in turns and print the round with the least processor time; returns 0."""
    parser = argparse.ArgumentParser(
        prog="python -m seriatim_workshop.bench.sharing",
        description=(__doc__ or "").split("\n")[0],
    )
    parser.add_argument("--rounds", type=int, default=3, help="turns of each (3)")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.one:
        name, jobs = options.one
        before = spent(resource.RUSAGE_SELF)
        SEARCHES[name](int(jobs))
        own = spent(resource.RUSAGE_SELF) - before
        print(json.dumps([own, spent(resource.RUSAGE_CHILDREN)]))
        return 0
    print("| program | one process | two | gains at most |\n|---|---|---|---|")
    for name in SEARCHES:
        alone, shared = [], []
        for _ in range(options.rounds):
            alone.append(sum(measured(name, 1)))
            shared.append(measured(name, 2))
        one, two = min(alone), min(shared, key=sum)
        print(
            f"| {name} | {one:.2f} s | {two[0]:.2f} + {two[1]:.2f} s | {one / max(two):.2f} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
