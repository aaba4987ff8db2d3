"""Hold executions of the reference against all systems of `spec/induction` at once, step by step.

python -m seriatim_workshop.formal.traces                  # the first executions of every program of the queue
python -m seriatim_workshop.formal.traces --all            # every schedule of every program (some minutes)
python -m seriatim_workshop.formal.traces release-behind   # programs with this in their names
python -m seriatim_workshop.formal.traces --mutants        # every mutant of the queue: which system rejects it
python -m seriatim_workshop.formal.traces --write spec/FOLLOWED.md     # the two tables, of a larger slice
python -m seriatim_workshop.formal.traces --fields         # which field of a system is which of the reference

Exit code 1: an execution of the reference is no behaviour of the systems, or a mutant's all are that had to leave them.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

from rich.console import Console
from rich.table import Table

from seriatim_models.explorer import World
from seriatim_models.programs import MUTANTS, PROGRAMS
from seriatim_models.programs.base import Mutant
from seriatim_models.programs.check import observed_classes
from seriatim_models.programs.mutant_modules import load
from seriatim_workshop.formal import SPEC, journal
from seriatim_workshop.formal.exploring import explore_changed_into, explore_into, race_into
from seriatim_workshop.formal.follow_entries import Entries
from seriatim_workshop.formal.follow_handover import HandoverFollower
from seriatim_workshop.formal.follow_jobs import JobFollower
from seriatim_workshop.formal.follow_lists import Consumers, Lists, Nodes
from seriatim_workshop.formal.follow_wakeups import WakeupFollower
from seriatim_workshop.formal.followed import Followed, share, write
from seriatim_workshop.formal.page import renewed

SLICE = 40
"""So many executions of each program are followed, unless all are asked for: the first of the search."""


WRITTEN_SLICE = 100
"""And so many for the page, unless all are asked for."""
MUTANT_SLICE = 300
"""And of each mutant, which ends with the first that is rejected."""


def programs() -> list[str]:
    """Every program over the queue and its hand-over."""
    return [name for name, program in PROGRAMS.items() if program.reference == "queue"]


def mutants() -> list[str]:
    """Every mutant of the queue and its hand-over, in such a program."""
    every = MUTANTS.items()
    return [name for name, mutant in every if mutant.program in programs()]


def follow(
    program_id: str,
    mutant_id: str = "",
    executions: int | None = None,
    lib: ModuleType | None = None,
    seconds: float | None = None,
    may_race: bool = False,
) -> Followed:
    """Follow the schedules of a program as they happen; the first execution that is no behaviour ends it.

    `executions` is how many at most, and `seconds` for how long; None is every one.
    `lib` is the module under test, if it is no registered mutant. Code that was changed must not race, either, unless
    it `may_race`: then `races` is to be asked before it is accepted.
    """
    program = PROGRAMS[program_id]
    mutant: Mutant | None = MUTANTS[mutant_id] if mutant_id else None
    module = lib or load(program.reference, mutant)
    found = Followed(program_id, mutant_id)

    def build(world: World) -> None:
        program.build(world, module)

    if may_race or module is load(program.reference):
        explore_into(found, module, build, executions, seconds)
    else:
        observed = observed_classes(program, module)
        explore_changed_into(found, module, build, observed, executions, seconds)
    return found


def races(program_id: str, lib: ModuleType, executions: int | None = None) -> Followed:
    """Explore a program over changed code with its attributes observed; says whether it races, and follows nothing."""
    program = PROGRAMS[program_id]
    found = Followed(program_id)

    def build(world: World) -> None:
        program.build(world, lib)

    race_into(found, build, observed_classes(program, lib), executions)
    return found


def fields() -> Table:
    """Which is which, as the followers compare it."""
    rows = Table(title="Specification and reference", title_justify="left", box=None)
    for name in ("system", "field of the specification", "field of the reference"):
        rows.add_column(name, overflow="fold")
    for follower in (
        *(Nodes, Entries, Lists, Consumers),
        *(WakeupFollower, JobFollower, HandoverFollower),
    ):
        for name, (means, _) in follower.fields.items():
            rows.add_row(follower.system, name, means)
    rows.add_row("entries", "counted - uncounted, summed over all entries", "Queue.depth")
    rows.add_row("entries", "joined and ACQUIRED, counted for a group", "the count in Queue.groups")
    rows.add_row("nodes", "counted - uncounted, summed over a list", "ConsumerList.size")
    return rows


def main(args: list[str] | None = None) -> int:
    """Follow what is asked for and print what came of it; the exit code is 1 if anything is not as it must be."""
    parser = argparse.ArgumentParser(
        prog="python -m seriatim_workshop.formal.traces",
        description="Hold executions of the programs of the queue against the systems of spec/induction.",
    )
    parser.add_argument(
        "names", nargs="*", metavar="WORD", help="part of a program's or mutant's name"
    )
    parser.add_argument("--all", action="store_true", help="every schedule, not a slice")
    parser.add_argument("--mutants", action="store_true", help="the mutants, not the programs")
    parser.add_argument(
        "--write", metavar="PAGE", type=Path, help="write both tables, of a larger slice"
    )
    parser.add_argument("--fields", action="store_true", help="print which field is which")
    parser.add_argument(
        "--seconds", metavar="N", type=float, help="with --all: of each program so long at most"
    )
    journal.add_option(parser)
    asked = parser.parse_args(args)
    console = Console()
    if asked.fields:
        console.print(fields())
        return 0
    pairs = [("", p) for p in programs()] if not asked.mutants or asked.write else []
    if asked.mutants or asked.write:
        pairs += [(m, MUTANTS[m].program) for m in mutants()]
    pairs = [p for p in pairs if all(word in f"{p[1]} {p[0]}" for word in asked.names)]
    if not pairs:
        print(f"nothing has {' '.join(asked.names)} in its name", file=sys.stderr)
        return 2
    outcomes = []
    for n, (mutant, program) in enumerate(pairs, 1):
        limit = MUTANT_SLICE if mutant else WRITTEN_SLICE if asked.write else SLICE
        run = partial(follow, program, mutant, None if asked.all else limit, seconds=asked.seconds)
        outcome = journal.once(asked.journal, f"{program} {mutant} {asked.seconds}", run)
        outcomes.append(outcome)
        console.print(line(outcome, n, len(pairs)), highlight=False, markup=False, soft_wrap=True)
    if asked.write:
        write(asked.write, outcomes)
        if asked.write.resolve() == (SPEC / "FOLLOWED.md").resolve():  # which README.md sums up
            readme = SPEC / "README.md"
            readme.write_text(renewed(readme.read_text("utf-8")), "utf-8")
    print(summary(outcomes))
    return int(any(o.wrong for o in outcomes))


def line(outcome: Followed, n: int, of: int) -> str:
    """One outcome in one line of 80 columns; a rejection that must not be has a second one."""
    mark = "!" if outcome.wrong else " "
    head = f"{mark} {n:3}/{of} {outcome.name[:50]:50}"
    if outcome.mutant and not outcome.wrong:
        by = outcome.system or ("rejected" if outcome.rejected else "accepted")
        return f"{head} {by:9}"
    tail = f"{outcome.executions:5,} {share([outcome]):4.0%}{' ' if outcome.exhausted else '+'}"
    return f"{head} {tail}" + (f"\n      {outcome.wrong}" if outcome.wrong else "")


def summary(outcomes: list[Followed]) -> str:
    """Executions, steps, steps a second, and the share of shared writes that are steps."""
    steps, seconds = sum(o.steps for o in outcomes), sum(o.seconds for o in outcomes)
    rejected = sum(bool(o.rejected) for o in outcomes if o.mutant)
    right = [o for o in outcomes if not o.mutant]
    of = sum(bool(o.mutant) for o in outcomes)
    lines = [
        f"{sum(o.executions for o in outcomes):,} executions, {steps:,} steps, "
        f"{steps / max(seconds, 0.001):,.0f} a second"
    ]
    if right:
        whole = sum(o.exhausted for o in right)
        lines.append(
            f"{len(right)} programs, {whole} of them in every schedule; "
            f"{share(right):.1%} of shared writes are steps"
        )
    if of:
        lines.append(f"{rejected} of {of} mutants rejected")
    lines.append(f"{sum(bool(o.wrong) for o in outcomes)} not as they must be")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
