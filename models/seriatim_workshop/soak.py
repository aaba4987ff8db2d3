"""The machines for as long as you like: `make soak SECONDS=120`.

Rounds of three kinds take turns, each from a seed of its own: call by call against the model, generated programs
under the explorer, generated programs on real threads. `python -m seriatim_workshop.soak SECONDS [SEED]`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable

from hypothesis import given, seed, settings
from hypothesis.stateful import run_state_machine_as_test

import seriatim.queue as reference
from seriatim_workshop.machines import concurrent, threads
from seriatim_workshop.machines.profiles import checking
from seriatim_workshop.machines.queue import sequential
from seriatim_workshop.machines.queue.generated_programs import QueuePlan, plans

ROUND = 30
"""Examples of one round."""


class Soak:
    """One run of it."""

    def __init__(self, seconds: float, first: int) -> None:
        self.until = time.monotonic() + seconds
        self.first = self.seed = first
        self.done: Counter[str] = Counter()

    def over(self) -> bool:
        """Return whether the time is over."""
        return time.monotonic() >= self.until

    def settings(self) -> settings:
        """Return the settings of one round."""
        return checking(
            ROUND, derandomize=False, stateful_step_count=50, report_multiple_bugs=False
        )

    def calls(self) -> None:
        """The reference against the model, one call after the other."""
        for kind in sequential.KINDS:
            made = staticmethod(lambda: self.done.update(machines=1))
            machine = seed(self.seed)(sequential.machine(kind, reference, made=made))
            run_state_machine_as_test(machine, settings=self.settings())

    def schedules(self) -> None:
        """Generated programs under sampled schedules."""

        @seed(self.seed)
        @self.settings()
        @given(plans(threads=3, operations=3))
        def look(plan: QueuePlan) -> None:
            if self.over():
                return
            result = concurrent.run(plan, executions=300, seed=self.seed)
            self.done.update(
                {
                    "programs": 1,
                    "schedules": result.executions,
                    "distinct traces": result.traces or 0,
                }
            )
            if result.counterexample is not None:
                raise AssertionError(concurrent.report(plan, result, self.seed))

        look()

    def rounds(self) -> None:
        """Generated programs on real threads."""

        # Raised only afterwards: Hypothesis would want to see the same interleaving again.
        found: list[str] = []

        @seed(self.seed)
        @self.settings()
        @given(plans(threads=4, operations=4))
        def look(plan: QueuePlan) -> None:
            if self.over() or found:
                return
            wrong = threads.stress(plan, 20)
            self.done.update({"programs": 1, "runs on threads": 20})
            if wrong is not None:
                found.append(wrong)

        look()
        if found:
            raise AssertionError(found[0])

    def run(self) -> int:
        """Take turns until the time is over; return 1 if something was wrong."""
        kinds: list[Callable[[], None]] = [self.calls, self.schedules, self.rounds]
        reported = time.monotonic()
        while not self.over():
            try:
                for kind in kinds:
                    if not self.over():
                        kind()
            except Exception as error:
                notes = "\n".join(getattr(error, "__notes__", []))
                print(f"{error}\n{notes}\n\nfailed with seed {self.seed}; again: {self.again()}")
                return 1
            self.seed += 1
            if time.monotonic() - reported > 10:
                reported = time.monotonic()
                print(self.so_far(), flush=True)
        print(f"nothing was wrong in {self.so_far()}")
        return 0

    def again(self) -> str:
        """Return the command that repeats the round under way."""
        return f"python -m seriatim_workshop.soak 600 {self.seed}"

    def so_far(self) -> str:
        """Return what was done, in words."""
        parts = [
            f"{self.done[k]} {k}" for k in ("machines", "programs", "schedules", "distinct traces")
        ]
        return (
            f"{', '.join(parts)} (a lower bound), {self.done['runs on threads']} runs on threads, "
            f"seeds {self.first} to {self.seed}"
        )


def main(arguments: list[str]) -> int:
    """Run the machines for so many seconds; return 1 if something was wrong.

    Raises SystemExit with code 2 if the arguments are wrong, and with 0 for `--help`.
    """
    parser = argparse.ArgumentParser(
        prog="python -m seriatim_workshop.soak",
        description="Check the reference with random programs, round after round, each from the next seed.",
        epilog="The exit code is 1 if something was wrong: its seed is printed then.",
    )
    parser.add_argument("seconds", type=float, metavar="SECONDS", help="for how long")
    parser.add_argument(
        "seed", type=int, nargs="?", default=1, metavar="SEED", help="of the first round (1)"
    )
    asked = parser.parse_args(arguments)
    return Soak(asked.seconds, asked.seed).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
