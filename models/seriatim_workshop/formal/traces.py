"""Hold executions of the reference against the specifications of `spec/induction`, step by step.

python -m seriatim_workshop.formal.traces                  # every schedule of the programs; mutants must be rejected
python -m seriatim_workshop.formal.traces release-behind   # some of them
python -m seriatim_workshop.formal.traces --show           # and where each mutant leaves the specification
python -m seriatim_workshop.formal.traces --fields         # which field of the specification is which of the reference

Exit code 1: an execution of the reference is no behaviour of the specification, or a mutant's all are.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from types import ModuleType
from typing import cast

from rich.console import Console
from rich.table import Table

import seriatim.queue as reference
from seriatim_models.explorer import Dpor, World, explore
from seriatim_models.explorer.trace.counterexample import Counterexample
from seriatim_models.programs import MUTANTS, PROGRAMS
from seriatim_models.programs.base import Mutant
from seriatim_models.programs.check import subject
from seriatim_models.programs.mutant_modules import load
from seriatim_workshop.formal.concrete import NotThat
from seriatim_workshop.formal.followers import Entries, Follower, Lists
from seriatim_workshop.formal.recorder import HostOperation, Recorder

FOLLOWERS: dict[str, type[Entries] | type[Lists]] = {"entries": Entries, "lists": Lists}


@dataclass(frozen=True)
class Case:
    """A program, or a mutant in its program, and the system that it is held against."""

    system: str
    program: str
    mutant: str = ""

    @property
    def name(self) -> str:
        return f"{self.system}: {self.program}{'+' * bool(self.mutant)}{self.mutant}"


def _cases(system: str, programs: str, mutants: str) -> list[Case]:
    right = [Case(system, p) for p in programs.split()]
    return right + [Case(system, MUTANTS[m].program, m) for m in mutants.split()]


CASES = [
    *_cases(
        "entries",
        "two-takers release-behind release-again release-at-once release-not-mine priority-arrival held "
        "enqueue-rest release-rest close immediate immediate-race immediate-returned",
        "published-immediate published-immediate-repair published-rewind published-priority-arrival "
        "published-pointer-by-value",
    ),
    *_cases(
        "lists",
        "enqueue-rest release-rest pause close subscribe browser-woken",
        "left-in-the-old-list closed-before-disinterest",
    ),
]
"""Programs with groups, browsers and expiring messages are left out: the systems do not know them."""


@dataclass(frozen=True)
class Outcome:
    """What came of a case."""

    case: Case
    executions: int
    steps: int
    """Steps of the specification, over all executions."""
    rejected: str
    """Where and why the first one was; '' if none was."""
    counterexample: Counterexample | None
    exhausted: bool
    seconds: float

    @property
    def wrong(self) -> str:
        """Why the result is not the expected one; empty if it is."""
        if self.case.mutant:
            return "" if self.rejected else "no execution of this mutant was rejected"
        if self.rejected or self.counterexample is not None:
            return self.rejected or str(self.counterexample)
        return "" if self.exhausted and self.steps else "not every schedule was looked at"


class Watch:
    """Follows one execution until it leaves the specification."""

    def __init__(self, follower: Follower, rejections: list[str]) -> None:
        self.follower = follower
        self.rejected = ""
        self._rejections = rejections

    def __call__(self, event: HostOperation) -> None:
        if self.rejected:
            return
        try:
            self.follower(event)
        except NotThat as why:
            self.rejected = f"step {event.step}, {event}: {why}"
            self._rejections.append(self.rejected)  # here too, for a program that raises has no end


def follow(case: Case) -> Outcome:
    """Every schedule of the program, each held against the system as it happens; the first that leaves it ends this."""
    program = PROGRAMS[case.program]
    mutant: Mutant | None = MUTANTS[case.mutant] if case.mutant else None
    lib: ModuleType = load(program.reference, mutant)
    counted = [0]
    rejections: list[str] = []
    began = time.perf_counter()

    def run(world: World) -> None:
        watch = Watch(FOLLOWERS[case.system](lib), rejections)
        program.build(cast(World, Recorder(world, watch)), lib)

        def conform() -> str | None:
            counted[0] += watch.follower.steps
            broken = watch.follower.state.broken()
            if broken and not watch.rejected:
                rejections.append(f"at its end {', '.join(broken)} does not hold")
            return f"{case.system}: {rejections[-1]}" if watch.rejected or broken else None

        world.at_end(conform)

    name = subject(program, mutant)
    found = explore(run, Dpor(), name=name, shrink=200)
    return Outcome(
        case,
        found.executions,
        counted[0],
        rejections[-1] if rejections else "",  # of the shrunk one, which is the one that is shown
        found.counterexample,
        found.exhausted,
        time.perf_counter() - began,
    )


def fields() -> Table:
    """Which is which, as the followers compare it."""
    rows = Table(title="Specification and reference", title_justify="left", box=None)
    for name in ("system", "field of the specification", "field of the reference"):
        rows.add_column(name)
    for system, make in FOLLOWERS.items():
        for field in make(reference).fields():
            rows.add_row(system, field.name, field.means)
    rows.add_row("entries", "counted - uncounted, summed over all entries", "Queue.depth")
    rows.add_row("entries", "counted, uncounted, disposing", "Queue.depth.add, by thread")
    rows.add_row(
        "entries",
        "looking, cursor, passed",
        "what the thread has read since its Consumer.pointer.get",
    )
    rows.add_row("entries", "owes, announcer", "nothing: what the thread has still to do")
    rows.add_row("entries", "holds, delivered, dropped, given_up", "nothing: what happened")
    return rows


def table(outcomes: list[Outcome]) -> Table:
    """One row a case."""
    rows = Table(title="Executions against the specification", title_justify="left", box=None)
    for name in ("case", "must", "is"):
        rows.add_column(name, overflow="fold")
    for name in ("executions", "steps", "seconds"):
        rows.add_column(name, justify="right")
    for o in outcomes:
        outcome = "rejected" if o.rejected else "accepted"
        rows.add_row(
            o.case.name,
            "be rejected" if o.case.mutant else "be accepted",
            f"[red]{outcome}[/]" if o.wrong else outcome,
            f"{o.executions:,}",
            f"{o.steps:,}",
            f"{o.seconds:.1f}",
        )
    return rows


def main(args: list[str] | None = None) -> int:
    """Follow the cases that are asked for and print what came of them; the exit code is 1 if any is not as it must."""
    parser = argparse.ArgumentParser(
        prog="python -m seriatim_workshop.formal.traces",
        description="Hold every execution of small programs against the specifications of spec/induction.",
    )
    parser.add_argument("names", nargs="*", metavar="WORD", help="part of a case's name")
    parser.add_argument("--show", action="store_true", help="print where mutants are rejected")
    parser.add_argument("--fields", action="store_true", help="print which field is which")
    asked = parser.parse_args(args)
    console = Console()
    if asked.fields:
        console.print(fields())
        return 0
    cases = [c for c in CASES if all(word in c.name for word in asked.names)]
    if not cases:
        print(
            f"no case has {' '.join(asked.names)} in its name; one is {CASES[0].name}",
            file=sys.stderr,
        )
        return 2
    outcomes = []
    for n, case in enumerate(cases, 1):
        outcome = follow(case)
        outcomes.append(outcome)
        mark = "!" if outcome.wrong else " "
        result = outcome.rejected or f"{outcome.executions} executions accepted"
        console.print(f"{mark} {n:2}/{len(cases)} {case.name}: {result}", highlight=False)
    console.print(table(outcomes))
    for o in outcomes:
        if o.counterexample is not None and (asked.show or o.wrong):
            print(f"\n{o.counterexample}")
    wrong = [o for o in outcomes if o.wrong]
    for o in wrong:
        console.print(f"{o.case.name}: {o.wrong}", style="red", highlight=False)
    console.print(
        f"{sum(o.executions for o in outcomes):,} executions, {sum(o.steps for o in outcomes):,} steps "
        f"of the specification, {len(wrong)} cases not as they must be"
    )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
