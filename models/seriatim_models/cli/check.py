"""`seriatim check`: run programs under the schedules that matter and say which properties held."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import rich_click as click

from seriatim_models.cli.gather import mutant_run, new_report, program_run
from seriatim_models.cli.mistakes import Mistake, unknown
from seriatim_models.cli.options import HELP, STRATEGIES, lines, outputs
from seriatim_models.cli.screen import Outputs, Tell, Work
from seriatim_models.report import MutantRun, ProgramRun, Report
from seriatim_models.report.text import write

if TYPE_CHECKING:
    from seriatim_models.explorer import Strategy
    from seriatim_models.programs.base import Mutant, Program

SAMPLING_SECONDS = 10.0  # a strategy that samples never ends by itself


@dataclass(frozen=True)
class Search:
    """How schedules are chosen, and for how long."""

    strategy: str = "dpor"
    budget: float | None = None
    seed: int | None = None

    def make(self) -> Strategy | None:
        """None for the exhaustive search: each program knows what it needs of it."""
        from seriatim_models import explorer

        seed = self.seed if self.seed is not None else 0
        if self.strategy == "random":
            return explorer.Random(seed=seed)
        if self.strategy == "pct":
            return explorer.Pct(seed=seed)
        if self.strategy == "pos":
            return explorer.Pos(seed=seed)
        return None

    @property
    def seconds(self) -> float | None:
        if self.budget is None and self.strategy != "dpor":
            return SAMPLING_SECONDS
        return self.budget

    @property
    def options(self) -> list[str]:
        """As they would be typed."""
        typed = ["--strategy", self.strategy] if self.strategy != "dpor" else []
        if self.budget is not None:
            typed += ["--budget", f"{self.budget:g}"]
        if self.seed is not None:
            typed += ["--seed", str(self.seed)]
        return typed

    def run(self, program: Program, mutant: Mutant | None, tell: Tell) -> ProgramRun:
        from seriatim_models import programs

        result = programs.check_program(
            program, mutant, strategy=self.make(), seconds=self.seconds, on_progress=tell
        )
        return program_run(result, self.strategy, self.options)


@click.command(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim check                                every program, every schedule
        seriatim check --mutant published-immediate   see the published race
        seriatim check --mutants                      each must die by its property
        seriatim check --strategy pct --budget 30     sample, 30 s for each program
        seriatim check --json - | jq .verdict         verdicts for another program

        A budget that runs out is never called ok: the verdict is inconclusive, exit code 3.
        """
    )
)
@click.argument("names", metavar="[PROGRAM]...", nargs=-1)
@click.option(
    "--mutant", "mutant_id", metavar="ID", help="Run over this mutant of the reference instead."
)
@click.option("--mutants", "all_mutants", is_flag=True, help="Run every mutant with its program.")
@click.option(
    "--strategy",
    type=click.Choice(STRATEGIES),
    default="dpor",
    show_default=True,
    help="dpor covers every schedule that matters; the others sample.",
)
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop each program after so long [dim](sampling: 10 by default)[/].",
)
@click.option(
    "--seed", type=int, metavar="N", help="Seed of a sampling strategy [dim](0 by default)[/]."
)
@click.option(
    "--replay", "token", metavar="TOKEN", help="Run only the schedule that this token stands for."
)
@outputs
@click.rich_config(help_config=HELP)
def check(
    names: tuple[str, ...],
    mutant_id: str | None,
    all_mutants: bool,
    strategy: str,
    budget: float | None,
    seed: int | None,
    token: str | None,
    json: str | None,
    html: str | None,
    junit: str | None,
) -> int:
    """Run small concurrent programs over the reference under every schedule that matters."""
    out = Outputs(json, html, junit)
    if sum([mutant_id is not None, all_mutants, token is not None]) > 1 or (
        names and (all_mutants or token)
    ):
        raise Mistake("choose one: programs with or without --mutant, or --mutants, or --replay")
    search = Search(strategy, budget, seed)
    report = new_report(None, seed, "greenlet")
    begun = time.monotonic()
    if token is not None:
        report.programs.append(replayed(token))
    elif all_mutants:
        report.mutants.extend(check_mutants(search))
    else:
        mutant = find_mutant(mutant_id) if mutant_id is not None else None
        report.programs.extend(check_programs(find_programs(names, mutant), mutant, search))
    report.seconds = time.monotonic() - begun
    return finish(report, out)


def finish(report: Report, out: Outputs) -> int:
    """Show the report, write what was asked for, and say with which code to leave."""
    write(out.console, report)
    out.write(report)
    return report.exit_code


def find_programs(names: tuple[str, ...], mutant: Mutant | None) -> list[Program]:
    """Those named, in their order; else the mutant's own, else all."""
    from seriatim_models.programs import PROGRAMS

    if not names:
        return [PROGRAMS[mutant.program]] if mutant else list(PROGRAMS.values())
    for name in names:
        if name not in PROGRAMS:
            raise unknown("program", name, PROGRAMS, "seriatim list programs")
    found = [PROGRAMS[name] for name in dict.fromkeys(names)]
    for program in found:
        if mutant and program.reference != mutant.reference:
            raise Mistake(
                f"mutant {mutant.id!r} changes {mutant.reference}.py, "
                f"but program {program.id!r} runs {program.reference}.py"
            )
    return found


def find_mutant(name: str) -> Mutant:
    from seriatim_models.programs import MUTANTS

    if name not in MUTANTS:
        raise unknown("mutant", name, MUTANTS, "seriatim list mutants")
    return MUTANTS[name]


def check_programs(found: list[Program], mutant: Mutant | None, search: Search) -> list[ProgramRun]:
    runs = []
    with Work(len(found), "programs").running() as work:
        for program in found:
            with work.item(program.id) as tell:
                runs.append(search.run(program, mutant, tell))
    return runs


def check_mutants(search: Search) -> list[MutantRun]:
    from seriatim_models.programs import MUTANTS, PROGRAMS

    runs = []
    with Work(len(MUTANTS), "mutants").running() as work:
        for mutant in MUTANTS.values():
            with work.item(mutant.id) as tell:
                run = search.run(PROGRAMS[mutant.program], mutant, tell)
            runs.append(mutant_run(mutant, run))
    return runs


def replayed(token: str) -> ProgramRun:
    """The one schedule that a token stands for."""
    from seriatim_models import programs
    from seriatim_models.explorer.errors import ExplorerError

    try:
        result = programs.replay(token)
    except (ExplorerError, ValueError) as error:
        raise Mistake(f"cannot replay {token!r}: {error}") from error
    return program_run(result, "replay", [])
