"""`seriatim tour`: all commands once, for somebody who has never seen them; what `make run` runs."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from rich.console import Console
from rich.text import Text

from seriatim_models.cli import counterexample_annotation
from seriatim_models.cli.audit import find_profile, run_audit
from seriatim_models.cli.check import check_mutants, check_programs, find_mutant, find_programs
from seriatim_models.cli.console import Outputs, ProgressDisplay, put_within
from seriatim_models.cli.jobs import Job, SearchOptions, run_jobs
from seriatim_models.cli.options import ENGINES, HELP, POSITIVE, lines, number_option
from seriatim_models.cli.recordings import add_drawings, stamps
from seriatim_models.cli.report_builder import mutant_run, new_report
from seriatim_models.cli.stop_request import StopRequest
from seriatim_models.cli.usage_errors import UsageError, sentence_of
from seriatim_models.report import AuditRun, MutantRun, ProgramRun, Report
from seriatim_models.report.audit_text import audit_parts
from seriatim_models.report.figures import Fairness
from seriatim_models.report.html import LessonLink, TourSections, mutant_page
from seriatim_models.report.matrix_view import MatrixSection
from seriatim_models.report.terminal import STYLES, indented, quantity
from seriatim_models.report.text import (
    counterexample,
    failures,
    properties_line,
    summary,
    survivors,
)

RACE = "published-immediate"
"""The mutant that is the check-then-dequeue code as its author published it."""

if TYPE_CHECKING:
    from seriatim_models.programs.bug_catalogue import BugCase


@click.command(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim tour                            all of it
        seriatim tour --engine local             the same without Spark
        seriatim tour --no-mutants               a minute less
        seriatim tour --data recordings          others than tests/data
        """
    )
)
@click.option(
    "--data", default="tests/data", show_default=True, metavar="DIR", help="Recordings to audit."
)
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="spark",
    show_default=True,
    help="What audits them.",
)
@number_option(
    "--budget",
    "Stop each program after so long [dim](never by default)[/].",
    POSITIVE,
    metavar="SECONDS",
)
@click.option(
    "--mutants/--no-mutants",
    default=True,
    show_default=True,
    help="Run every mutant, and write a page for each that was published or that a broker really had.",
)
@click.option(
    "--out", default="build/report", show_default=True, metavar="DIR", help="Where the page goes."
)
@click.rich_config(help_config=HELP)
def tour(data: str, engine: str, budget: float | None, mutants: bool, out: str) -> int:
    """Check every program and every mutant, audit real recordings, write a report."""
    if not Path(data).is_dir():
        raise UsageError(
            f"no folder {data!r} with recordings here; run it in a checkout or name one with --data"
        )
    if engine == "spark":
        _spark_is_there()
    page = Path(out) / "index.html"
    outputs = Outputs(json=str(Path(out) / "verdicts.json"), html=str(page), folder=out)
    console = outputs.console
    report = new_report("greenlet", "pyspark")
    begun = time.monotonic()

    console.rule("[bold]1. Every program, every pair of calls, every schedule", align="left")
    programs = find_programs((), None)
    systems = {program.id: program.reference for program in programs}
    report.programs.extend(check_programs(programs, None, SearchOptions(budget=budget)))
    for run in report.programs:
        for part in failures(run):
            console.print(part, soft_wrap=isinstance(part, Text), crop=False)
    race = counterexample_annotation.annotated_mutant(_race())
    repaired = next((run for run in report.programs if run.program == race.run.program), None)
    report.mutants.append(race)
    pages = {}
    if mutants:
        report.mutants = check_mutants(SearchOptions(budget=budget))
        pages = write_pages(report, Path(out))
        for part in survivors(report.mutants):
            console.print(part)
    table = _matrix(console, Path(out))
    report.matrix = [system.verdict for system in table.systems]
    report.seconds = time.monotonic() - begun
    sections = _Sections(console, begun)
    sections.over(summary(report))
    console.rule("[bold]2. The race that was published", align="left")
    _print_race(console, race, repaired)
    sections.over()
    console.rule(f"[bold]3. What a real broker did, audited on {engine}", align="left")
    with ProgressDisplay(1, "audits").running() as work, work.item(f"audit of {data} on {engine}"):
        report.audits.append(_audited(data, engine))
    more = shlex.join(["seriatim", "audit", data, "-v"])
    for part in audit_parts(report.audits[0], report.sentences, verbose=False, more=more):
        console.print(part)
    sections.over()
    report.seconds = time.monotonic() - begun

    console.rule("[bold]All of it", align="left")
    console.print(properties_line(report))
    console.print(indented(summary(report), 0))
    outputs.write(
        report,
        TourSections(
            race, repaired, pages, _findings(), _lessons(Path(out)), _fairness(), table, systems,
            bugs_with_pages(report, pages),
        ),
    )  # fmt: skip
    console.print(Text(f"The report: {page.resolve()}", style="bold"), soft_wrap=True)
    return report.exit_code


def _spark_is_there() -> None:
    """Raise `UsageError` before minutes of work that Spark cannot end."""
    from seriatim_models.pipeline import PipelineError
    from seriatim_models.pipeline.session import check_ready

    try:
        check_ready()
    except PipelineError as error:
        raise UsageError(sentence_of(error)) from error


class _Sections:
    """Says at the end of each section how long it took."""

    def __init__(self, console: Console, begun: float) -> None:
        self._console = console
        self._begun = begun

    def over(self, found: Text | None = None) -> None:
        """End a section, with what was found in it; the next one begins now."""
        now = time.monotonic()
        if found is None:
            found = Text(f"{now - self._begun:.1f} s")
        self._console.print(indented(found, 0))
        self._console.print()
        self._begun = now


def write_pages(report: Report, out: Path) -> dict[str, str]:
    """Write a page for each mutant that was published or is in the bug catalogue; returns their links by mutant."""
    from seriatim_models.programs.bug_catalogue import BUG_CASES

    cases = {case.mutant: case for case in BUG_CASES}
    pages = {}
    shown = [
        m
        for m in report.mutants
        if m.run.story and (m.mutant in cases or m.mutant.startswith("published-"))
    ]
    with ProgressDisplay(len(shown), "pages").running() as work:
        for mutant in shown:
            with work.item(f"page of {mutant.mutant}"):
                link = f"mutants/{mutant.mutant}.html"
                sentence = report.sentences.get(mutant.expected, "")
                run = counterexample_annotation.annotated_mutant(mutant)
                case = cases.get(mutant.mutant)
                back = ("../bugs.html", "Bug catalogue") if case else ("../mutants.html", "Mutants")
                page = mutant_page(run, sentence, *back, case)
                put_within(out, link, page.encode())
                pages[mutant.mutant] = link
    return pages


def bugs_with_pages(report: Report, pages: dict[str, str]) -> list[tuple[BugCase, MutantRun]]:
    """The bugs of the catalogue that `write_pages` wrote pages of, with their mutants."""
    from seriatim_models.programs.bug_catalogue import BUG_CASES

    runs = {m.mutant: m for m in report.mutants if m.mutant in pages}
    return [(case, runs[case.mutant]) for case in BUG_CASES if case.mutant in runs]


def _findings() -> str:
    """The page of findings in published designs as Markdown; empty if this is no checkout."""
    from seriatim_models.cli.lesson_runner import CHECKOUT

    file = CHECKOUT.parent / "FINDINGS.md"
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _lessons(out: Path) -> list[LessonLink]:
    """Write the chapters' pages; returns the links to them."""
    from seriatim_models.cli.learn import write_all
    from seriatim_models.cli.lesson_runner import folder
    from seriatim_models.report import lessons

    chapters = lessons.all_in(folder())
    write_all(chapters, out / "lessons", back="../lessons.html")
    return [LessonLink(c.title, c.question, f"lessons/{c.name}.html") for c in chapters]


def _fairness() -> list[Fairness]:
    from seriatim_models.programs.fair_simulation import QUANTA, TABLES, compare

    tables = [compare(name) for name in TABLES]
    return [Fairness(t.name, QUANTA, t.published, t.outcome.served) for t in tables]


def _audited(data: str, engine: str) -> AuditRun:
    """The audit of a folder, with what a page draws of it."""
    before, anything = stamps([data]), find_profile("any")
    audit = run_audit((data,), anything, engine, None)
    add_drawings(audit, anything, before)
    return audit


def _matrix(console: Console, out: Path) -> MatrixSection:
    """Print the numbers of each system's matrix, and write its pages."""
    from seriatim_models.cli.matrix_pages import overview, section
    from seriatim_models.matrix.text import summary as matrix_summary

    with StopRequest() as stop:
        runs, extent = overview(stop)
    if stop.asked:
        raise stop.kind
    console.print(indented(Text(extent), 0))
    for run in runs:
        console.print(indented(Text(matrix_summary(run.matrix)), 0))
    return section(runs, extent, out, "matrix")


def _race() -> MutantRun:
    mutant = find_mutant(RACE)
    (run,) = run_jobs([Job(mutant.program, mutant.id, SearchOptions())], "mutants")
    return mutant_run(mutant, run)


def _print_race(console: Console, race: MutantRun, repaired: ProgramRun | None) -> None:
    console.print(indented(race.title[:1].upper() + race.title[1:] + ".", 0))
    if race.run.counterexample is None:
        console.print(
            Text("The race was not found: that is a fault of this checker.", style="bold red")
        )
    else:
        for part in counterexample(race.run.counterexample):
            console.print(part, soft_wrap=isinstance(part, Text), crop=False)
    if repaired is not None:
        extent = "in all of" if repaired.exhausted else "after"
        traces = f"{quantity(repaired.traces or repaired.complete, 'trace')} of {repaired.program}"
        line = f"With the repair: {repaired.verdict.value} {extent} {traces}."
        console.print(Text(line, style=STYLES[repaired.verdict]), soft_wrap=True)
