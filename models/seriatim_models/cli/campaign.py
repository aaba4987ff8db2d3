"""`seriatim campaign`: searches by the thousand, over a cluster if there is one."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import rich_click as click
from rich.console import Console

from seriatim_models.cli.console import Outputs, redraws, terminal
from seriatim_models.cli.options import (
    COUNT,
    HELP,
    POSITIVE,
    STRATEGIES,
    completing,
    lines,
    master_option,
    number_option,
)
from seriatim_models.cli.stop_request import StopRequest
from seriatim_models.cli.usage_errors import UsageError, sentence_of, unknown
from seriatim_models.report.terminal import table, titled

if TYPE_CHECKING:
    from seriatim_models.pipeline.campaign.distributed import DistributedResult
    from seriatim_models.pipeline.campaign.results import BugTokens, CampaignResult
    from seriatim_models.pipeline.campaign.run import CampaignProgress

TIMEOUT = 300.0
MEMORY = 2048


@click.command(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim campaign --out c --strategy pct --seeds 100       all programs
        seriatim campaign immediate --out c --mutants --first-bug  until one breaks
        seriatim campaign PROGRAM --out c --exhaustive             one, shared by all

        Run again with the same DIR, it goes on where it was. Results are Parquet: results, bugs, coverage.
        An item (or a part of an exhaustive search) that hangs, dies or takes all memory is a result.
        Exit code: 1 if a bug was found, 3 if items are left or ended badly or nothing was exhausted, else 0.
        """
    )
)
@click.argument("names", metavar="[PROGRAM]...", nargs=-1, shell_complete=completing("programs"))
@click.option("--out", required=True, metavar="DIR", help="Where checkpoint log and tables go.")
@click.option(
    "--mutant",
    "mutant_ids",
    multiple=True,
    metavar="ID",
    shell_complete=completing("mutants"),
    help="Over this mutant, more than once if you like.",
)
@click.option(
    "--mutants", "all_mutants", is_flag=True, help="Over every mutant that fits the programs."
)
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    type=click.Choice(STRATEGIES),
    help="One or more [dim](pct by default)[/].",
)
@number_option(
    "--seeds", "So many seeds for each sampling strategy.", click.IntRange(1, 1_000_000), 10
)
@number_option("--first-seed", "The first of them.", int, 0)
@number_option("--executions", "At most so many in each item.", COUNT, 1000)
@click.option(
    "--preemptions",
    "bounds",
    multiple=True,
    type=click.IntRange(0),
    metavar="N",
    help="dpor: bound the preemptions, more than once if you like.",
)
@click.option(
    "--exhaustive", is_flag=True, help="Share one exhaustive search of each program instead."
)
@number_option(
    "--timeout",
    "For one item, or one part of an exhaustive search.",
    POSITIVE,
    TIMEOUT,
    metavar="SECONDS",
)
@number_option(
    "--memory",
    "For each of these; 0 for no limit.",
    click.IntRange(0, 2**40),
    MEMORY,
    metavar="MIB",
)
@click.option("--first-bug", is_flag=True, help="Stop when something is found.")
@master_option()
@click.rich_config(help_config=HELP)
def campaign(
    names: tuple[str, ...],
    out: str,
    mutant_ids: tuple[str, ...],
    all_mutants: bool,
    strategies: tuple[str, ...],
    seeds: int,
    first_seed: int,
    executions: int,
    bounds: tuple[int, ...],
    exhaustive: bool,
    timeout: float,
    memory: int,
    first_bug: bool,
    master: str | None,
) -> int:
    """Search programs under many strategies, seeds and bounds, on Spark."""
    from seriatim_models import pipeline
    from seriatim_models.pipeline.session import require, session
    from seriatim_models.programs import MUTANTS, PROGRAMS

    for name in names:
        if name not in PROGRAMS:
            raise unknown("program", name, PROGRAMS, "seriatim list programs")
    for name in mutant_ids:
        if name not in MUTANTS:
            raise unknown("mutant", name, MUTANTS, "seriatim list mutants")
    programs = list(names or PROGRAMS)
    mutants = list(MUTANTS) if all_mutants else list(mutant_ids) or [""]
    console = Outputs(folder=out).console
    try:
        require()
        from seriatim_models.pipeline.campaign import distributed
        from seriatim_models.pipeline.campaign.items import items
        from seriatim_models.pipeline.campaign.run import CampaignBounds
        from seriatim_models.pipeline.campaign.run import campaign as run

        spark = session(master)
        within = CampaignBounds(timeout=timeout, memory=memory << 20, first_bug=first_bug)
        with _Bar() as bar, (stop := StopRequest()):
            if exhaustive:
                asked = distributed.searches(programs, mutants)
                whole = distributed.explore(
                    spark, asked, out, bounds=within, on_progress=bar.update, stopping=lambda: stop.asked,
                )  # fmt: skip
            else:
                wanted = items(
                    programs, mutants, strategies or ("pct",), range(first_seed, first_seed + seeds),
                    executions=executions, preemptions=bounds or (None,),
                )  # fmt: skip
                done = run(
                    spark, wanted, out, bounds=within, on_progress=bar.update, stopping=lambda: stop.asked,
                )  # fmt: skip
    except (OSError, pipeline.PipelineError) as error:
        raise UsageError(sentence_of(error)) from error
    return _show_distributed(console, whole, out) if exhaustive else _show(console, done, out)


def _show(console: Console, done: CampaignResult, out: str) -> int:
    found = done.bugs()
    _show_bugs(console, found)
    traces = sum(c.traces for c in done.coverage().values())
    ended = _verdicts([o.verdict for o in done.results])
    console.print(
        f"{len(done.results):,} of {done.total:,} items ({ended}), "
        f"{traces:,} distinct traces, {done.seconds:.1f} s; tables in {out}",
        markup=False,
    )  # fmt: skip
    if found:
        return 1
    return 0 if done.finished and all(o.verdict == "ok" for o in done.results) else 3


def _show_distributed(console: Console, done: DistributedResult, out: str) -> int:
    found = done.bugs()
    _show_bugs(console, found)
    for search in done.searches:
        name = f"{search.program}+{search.mutant}" if search.mutant else search.program
        all_of_it = "all" if search.exhausted else "not all"
        why = f" ({search.why})" if search.why else ""
        console.print(
            f"{name}: {search.verdict}, {all_of_it} traces{why}: {search.traces:,} in {len(search.results):,} parts",
            markup=False,
        )  # fmt: skip
    ended = _verdicts([o.verdict for o in done.results])
    console.print(
        f"{len(done.results):,} parts ({ended}), {sum(t.traces for t in done.searches):,} distinct traces, "
        f"{done.seconds:.1f} s; tables in {out}",
        markup=False,
    )  # fmt: skip
    if found:
        return 1
    return 0 if all(t.exhausted for t in done.searches) else 3


def _show_bugs(console: Console, found: BugTokens) -> None:
    from seriatim_models.pipeline.campaign.results import shortest

    if not found:
        return
    shown = table("program", "mutant", "violates", "trace", "found", "replay", right=("found",))
    for (program, mutant, bug, trace), tokens in sorted(found.items()):
        replay = shlex.join(["seriatim", "check", "--replay", shortest(tokens)])
        shown.add_row(program, mutant, bug, trace[:8], str(len(tokens)), replay)
    console.print(titled(f"{len(found)} distinct bugs", shown))


def _verdicts(verdicts: list[str]) -> str:
    return ", ".join(f"{verdicts.count(v):,} {v}" for v in sorted(set(verdicts)))


class _Bar:
    """Progress with rate and estimate, on standard error if it can be drawn there: else rich leaves an empty line."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        console = terminal(stderr=True)
        self._progress = Progress(
            BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.fields[note]}"),
            console=console, transient=True, disable=not redraws(console),
        )  # fmt: skip
        self._task = self._progress.add_task("", total=None, note="")

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self, p: CampaignProgress) -> None:
        left = f", about {p.left:.0f} s left" if p.left is not None else ""
        note = f"{p.noun}, {p.rate:,.1f}/s{left}, {p.bugs} bugs"
        self._progress.update(self._task, completed=p.done, total=p.total, note=note)
