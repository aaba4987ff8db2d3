"""`seriatim check`: run programs under the schedules that matter and show which properties held."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING

import msgspec
import rich_click as click

from seriatim_models.cli import counterexample_annotation
from seriatim_models.cli.console import Outputs
from seriatim_models.cli.jobs import Job, SearchOptions, run_jobs
from seriatim_models.cli.options import (
    HELP,
    JOBS,
    POSITIVE,
    STRATEGIES,
    completing,
    lines,
    number_option,
    outputs,
    verbose_option,
)
from seriatim_models.cli.own_code import is_own, own_runs
from seriatim_models.cli.report_builder import mutant_run, new_report, program_run
from seriatim_models.cli.usage_errors import UsageError, another, unknown
from seriatim_models.report import MutantRun, ProgramRun, Report
from seriatim_models.report.text import write

if TYPE_CHECKING:
    from seriatim_models.programs.base import Mutant, Program


@click.command(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim check                                every program, every schedule
        seriatim check --mutant published-immediate   see the published race
        seriatim check --mutants                      each must die by its property
        seriatim check --strategy pct --budget 30     sample, 30 s for each program
        seriatim check handover --jobs 4              one program in four processes
        seriatim check --json - | jq .verdict         verdicts for another program
        seriatim check test_pool.py::test_close       a plain test of your own
        seriatim check --attributes two-takers        also data races

        [bold]Data races[/]
        Threads change places only at cells, locks, semaphores and conditions. A plain attribute
        (self.closed = True) is none of these, so no schedule shows what goes wrong between its uses.
        With --attributes every use is watched: two threads, one of them writing, and nothing that
        orders the two is a violation, with both lines. The way out is a cell of the host, or one lock
        held at every use. Lists, dicts, sets and deques in attributes are watched, too; closures and
        globals are not. It takes two to three times as long.

        A budget that runs out is never ok: the verdict is inconclusive, exit code 3.
        """
    )
)
@click.argument("names", metavar="[PROGRAM]...", nargs=-1, shell_complete=completing("programs"))
@click.option(
    "--mutant",
    "mutant_id",
    metavar="ID",
    shell_complete=completing("mutants"),
    help="Run over this mutant of the reference instead.",
)
@click.option("--mutants", "all_mutants", is_flag=True, help="Run every mutant with its program.")
@click.option(
    "--strategy",
    type=click.Choice(STRATEGIES),
    default="dpor",
    show_default=True,
    help="dpor covers every schedule that matters; the others sample.",
)
@number_option(
    "--budget",
    "Stop each program after so long [dim](sampling: 10 by default)[/].",
    POSITIVE,
    metavar="SECONDS",
)
@number_option("--seed", "Seed of a sampling strategy [dim](0 by default)[/].")
@number_option(
    "--jobs",
    "Processes: so many programs or tests at once, and a program's schedules split among those to spare "
    "[dim](as many at once as there are processors, none split)[/].",
    JOBS,
)
@click.option(
    "--attributes",
    is_flag=True,
    help="Report plain attributes that two threads use with nothing to order them, too.",
)
@click.option(
    "--replay", "token", metavar="TOKEN", help="Run only the schedule that this token stands for."
)
@click.option(
    "--pdb",
    "debugging",
    is_flag=True,
    help="With --replay and FILE.py::test: stop in the debugger where the schedule goes wrong.",
)
@click.option(
    "--module",
    "modules",
    metavar="NAME",
    multiple=True,
    help="An installed module whose code is observed, too, with FILE.py [dim](repeatable)[/].",
)
@click.option(
    "--timers",
    type=click.Choice(["any", "deadline"]),
    default="any",
    show_default=True,
    help="In which order timers of asyncio end, with FILE.py.",
)
@click.option(
    "--symmetry",
    is_flag=True,
    help="Explore threads that run one function up to exchanging them, with FILE.py.",
)
@verbose_option("Show which properties each program tested, and where each mutant comes from, too.")
@outputs
@click.rich_config(help_config=HELP)
def check(
    names: tuple[str, ...],
    mutant_id: str | None,
    all_mutants: bool,
    strategy: str,
    budget: float | None,
    seed: int | None,
    jobs: int | None,
    attributes: bool,
    token: str | None,
    debugging: bool,
    modules: tuple[str, ...],
    timers: str,
    symmetry: bool,
    verbose: bool,
    json: str | None,
    html: str | None,
    junit: str | None,
) -> int:
    """Run small concurrent programs over the reference under every schedule that matters."""
    out = Outputs(json, html, junit, reads=names)
    own = [name for name in names if is_own(name)]
    search = SearchOptions(strategy, budget, seed, attributes, timers, symmetry)
    report = new_report("greenlet", seed=seed)
    begun = time.monotonic()
    if symmetry and (strategy != "dpor" or token):
        raise UsageError("--symmetry is for all schedules: leave out --strategy and --replay")
    if debugging and not (own and token):
        raise UsageError(
            "--pdb stops in one schedule: seriatim check FILE.py::test --replay TOKEN --pdb"
        )
    if own:
        if len(own) < len(names) or mutant_id or all_mutants or (token and len(own) > 1):
            raise UsageError(
                "tests of your own (FILE.py::test) go without programs and mutants; "
                "--replay needs one test"
            )
        report.programs.extend(own_runs(names, search, modules, token, jobs, debugging))
        report.seconds = time.monotonic() - begun
        return finish(report, out, verbose)
    if modules or timers != "any" or symmetry:
        what = "--module" if modules else "--symmetry" if symmetry else "--timers"
        raise UsageError(f"{what} is for tests of your own: seriatim check FILE.py::test")
    if sum([mutant_id is not None, all_mutants, token is not None]) > 1 or (
        names and (all_mutants or token)
    ):
        raise UsageError("choose one: programs with or without --mutant, or --mutants, or --replay")
    if token is not None:
        report.programs.append(replayed(token, attributes))
    elif all_mutants:
        report.mutants.extend(check_mutants(search, jobs))
    else:
        mutant = find_mutant(mutant_id) if mutant_id is not None else None
        report.programs.extend(check_programs(find_programs(names, mutant), mutant, search, jobs))
    report.seconds = time.monotonic() - begun
    return finish(report, out, verbose)


def finish(report: Report, out: Outputs, verbose: bool = False) -> int:
    """Show the report and write the files; returns the exit code."""
    report.programs = [counterexample_annotation.annotated(run) for run in report.programs]
    write(out.console, report, verbose)
    for run in report.programs:
        for said in filter(None, (run.split, run.exchanged)):
            out.console.print(f"{run.program}: {said}", markup=False)
    out.write(report)
    return report.exit_code


def find_programs(names: tuple[str, ...], mutant: Mutant | None) -> list[Program]:
    """The programs named, in their order; else the mutant's own, else all. Raises `UsageError`."""
    from seriatim_models.programs import PROGRAMS

    if not names:
        return [PROGRAMS[mutant.program]] if mutant else list(PROGRAMS.values())
    for name in names:
        if name not in PROGRAMS:
            raise another(name, "program") or unknown(
                "program", name, PROGRAMS, "seriatim list programs"
            )
    programs = [PROGRAMS[name] for name in dict.fromkeys(names)]
    for program in programs:
        if mutant and program.reference != mutant.reference:
            raise UsageError(
                f"mutant {mutant.id!r} changes {mutant.reference}.py, "
                f"but program {program.id!r} runs {program.reference}.py"
            )
    return programs


def find_mutant(name: str) -> Mutant:
    """The mutant of that name. Raises `UsageError`."""
    from seriatim_models.programs import MUTANTS

    if name not in MUTANTS:
        raise another(name, "mutant") or unknown("mutant", name, MUTANTS, "seriatim list mutants")
    return MUTANTS[name]


def check_programs(
    programs: list[Program], mutant: Mutant | None, search: SearchOptions, jobs: int | None = None
) -> list[ProgramRun]:
    """Run programs, over a mutant if there is one."""
    named = mutant.id if mutant else None
    return run_jobs([Job(program.id, named, search) for program in programs], "programs", jobs)


def check_mutants(search: SearchOptions, jobs: int | None = None) -> list[MutantRun]:
    """Run each mutant with the program that detects it."""
    from seriatim_models.programs import MUTANTS

    mutants = list(MUTANTS.values())
    runs = run_jobs([Job(m.program, m.id, search) for m in mutants], "mutants", jobs)
    return [mutant_run(mutant, run) for mutant, run in zip(mutants, runs, strict=True)]


def replayed(token: str, attributes: bool = False) -> ProgramRun:
    """The run of the one schedule that a token stands for. Raises `UsageError`."""
    from seriatim_models import programs
    from seriatim_models.explorer import BadToken

    try:
        result = programs.replay(token, attributes=attributes)
    except BadToken as error:
        raise UsageError(f"cannot replay {token!r}: {error}") from error
    option = ["--attributes"] if attributes else []
    again = ["seriatim", "check", *option, "--replay", token]
    return msgspec.structs.replace(program_run(result, "replay", []), command=shlex.join(again))
