"""The report as tables for a terminal. The console decides about colour and width."""

from __future__ import annotations

import io
from collections.abc import Iterator

import msgspec
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from seriatim_models.properties.base import Verdict
from seriatim_models.report.audit_text import audit_parts
from seriatim_models.report.interleaving_text import InterleavingText
from seriatim_models.report.model import CounterexampleSummary, MutantRun, ProgramRun, Report
from seriatim_models.report.stepper import RepeatableInterleaving, annotated, story
from seriatim_models.report.terminal import (
    STYLES,
    ShellCommand,
    indented,
    quantity,
    table,
    titled,
    verdict_text,
)


def write(console: Console, report: Report, verbose: bool = False) -> None:
    """What broke, then the rest in a few lines (`verbose`: in tables), then the verdict in one line."""
    for part in _parts(report, verbose):
        # Text wider than the terminal is left to the terminal: a cropped interleaving cannot be read.
        console.print(part, soft_wrap=isinstance(part, Text), crop=False)
    console.print(indented(summary(report), 0))


def summary(report: Report) -> Text:
    """One line: the verdict, and the numbers that it rests on."""
    facts = []
    if report.programs:
        facts.append(
            f"{quantity(len(report.programs), 'program')}, {quantity(report.traces, 'trace')}"
        )
    if report.mutants:
        killed = sum(m.as_expected for m in report.mutants)
        facts.append(f"{killed} of {quantity(len(report.mutants), 'mutant')} killed as expected")
    if report.audits:
        events = sum(audit.events for audit in report.audits)
        left_out = sum(audit.quarantined for audit in report.audits)
        facts.append(f"{quantity(events, 'recorded event')}, {quantity(left_out, 'line')} left out")
    facts.append(f"{report.seconds:.1f} s")
    return Text.assemble(verdict_text(report.verdict), ": ", ", ".join(facts))


def _parts(report: Report, verbose: bool) -> Iterator[RenderableType]:
    if report.programs:
        for run in report.programs:
            yield from failures(run, verbose)
        yield programs(report.programs, verbose)
    if report.mutants:
        yield from survivors(report.mutants)
        yield mutants(report.mutants, verbose)
    for audit in report.audits:
        yield from audit_parts(audit, report.sentences, verbose)


FEW = 20
"""Rows of what went well that are shown; of more there is a line."""


def programs(runs: list[ProgramRun], verbose: bool) -> RenderableType:
    """The table of programs, of many only of those not ok; `verbose`: of all, and which properties each one tested."""
    shown = runs
    if len(runs) > FEW and not verbose:
        shown = [run for run in runs if run.verdict is not Verdict.OK]
    columns = ["program", "verdict", "covered", "traces", "seconds"]
    made = table(*columns, *(["properties tested"] if verbose else []), right=("traces", "seconds"))
    for column in made.columns:
        column.no_wrap = column is not made.columns[0] and column.header != "properties tested"
    for run in shown:
        tested = Text(" ").join(Text(f.property, style=STYLES[f.verdict]) for f in run.findings)
        made.add_row(
            f"{run.program} with {run.mutant}" if run.mutant else run.program,
            verdict_text(run.verdict),
            run.covered,
            "not counted" if run.traces is None else f"{run.traces:,}",
            f"{run.seconds:.2f}",
            *([tested] if verbose else []),
        )
    well = f"{quantity(len(runs) - len(shown), 'program')} ok under every schedule; -v lists them"
    return _with_rest("Programs", made, well if len(shown) < len(runs) else "")


def _with_rest(title: str, made: Table, rest: str) -> RenderableType:
    """The table, if it has a row, and a line for what has none."""
    parts = [titled(title, made)] if made.row_count or not rest else []
    return Group(*parts, *([indented(rest, 0)] if rest else []))


def failures(run: ProgramRun, verbose: bool = False) -> Iterator[RenderableType]:
    """For a program that is not ok: what broke, how, and the command that shows it again."""
    if run.verdict is not Verdict.OK and run.counterexample is None:
        why = run.doubt or run.why
        yield indented(Text(f"{run.program}: {why}", style=STYLES[run.verdict]), 0)
    if run.counterexample is not None:  # which begins with what was violated
        yield from counterexample(run.counterexample, verbose)


def counterexample(
    summary: CounterexampleSummary, verbose: bool = False
) -> Iterator[RenderableType]:
    """The interleaving, and the command that shows it again."""
    shown = summary.story
    if shown is None:
        yield Text(summary.text.rstrip("\n"))
    else:
        for what in shown.what:
            yield indented(Text(what, style=STYLES[Verdict.VIOLATED]), 0)
        many = sum(step.preempts for step in shown.steps)
        preemptions = f"{many} preemption{'s' * (many != 1)}"
        yield indented(
            f"in {shown.title}, {summary.steps} steps with {preemptions}, end: {shown.end}", 0
        )
        for broken in shown.broken:
            yield indented(Text(broken.sentence, style="italic"))
        if not verbose:
            yield indented("the steps whose order matters; the command below shows all with -v", 0)
        yield Text()
        yield InterleavingText(shown, verbose)
        if shown.no_return:
            yield indented(Text(shown.no_return), 0)
        if shown.traceback:
            yield Text(f"\n{shown.traceback.rstrip()}")
    yield Text()
    yield ShellCommand("replay: ", summary.again)
    yield Text()


RAISED = "AssertionError: "
"""What Python writes before the first line of what a failing test says."""


def counterexample_text(
    case: RepeatableInterleaving, width: int, again: str, traceback: str, verbose: bool
) -> str:
    """The message of a failing test, which is what `Counterexample.brief` returns."""
    shown = annotated(story(case, traceback=traceback), case)
    what = [RAISED + shown.what[0], *shown.what[1:]]
    summary = CounterexampleSummary(
        token="",
        steps=len(case.events),
        text="",
        story=msgspec.structs.replace(shown, what=what, replay=again),
    )
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as captured:
        for part in counterexample(summary, verbose):
            console.print(part, soft_wrap=isinstance(part, Text), crop=False)
    lines = (line.rstrip() for line in captured.get().splitlines())
    return "\n".join(lines).removeprefix(RAISED).rstrip()


def survivors(runs: list[MutantRun]) -> Iterator[RenderableType]:
    """A paragraph for each mutant that was not killed by the property that must kill it."""
    for run in runs:
        if not run.as_expected:
            must = f"must be killed by {run.expected}, and was killed by {run.killers}"
            yield indented(Text.assemble((run.mutant, STYLES[run.verdict]), f": {must}"), 0)


def mutants(runs: list[MutantRun], verbose: bool) -> RenderableType:
    """The table of mutants, of many only of survivors; `verbose`: of all, where each comes from, and the seconds."""
    shown = runs
    if len(runs) > FEW and not verbose:
        shown = [mutant for mutant in runs if not mutant.as_expected]
    more = ["seconds", "origin"] if verbose else []
    made = table("mutant", "killed by", "steps", *more, right=("steps", "seconds"))
    for mutant in shown:
        steps = mutant.run.counterexample.steps if mutant.run.counterexample else None
        made.add_row(
            mutant.mutant,
            Text(", ".join(mutant.killed_by) or "see above", style=STYLES[mutant.verdict]),
            "" if steps is None else str(steps),
            *([f"{mutant.run.seconds:.2f}", mutant.origin] if verbose else []),
        )
    killed = quantity(len(runs) - len(shown), "mutant")
    rest = f"{killed} killed by the property that must kill them; -v lists them"
    return _with_rest("Mutants", made, rest if len(shown) < len(runs) else "")


def properties_line(report: Report) -> RenderableType:
    """How many properties hold over everything that was run; those that do not, and those without a case, by id."""
    by_verdict = {v: [row.id for row in report.rows() if row.verdict is v] for v in Verdict}
    words = {Verdict.VIOLATED: "violated", Verdict.INCONCLUSIVE: "without a case or cut short"}
    parts = [f"{len(by_verdict[Verdict.OK])} properties ok"]
    parts += [f"{w}: {', '.join(by_verdict[v])}" for v, w in words.items() if by_verdict[v]]
    return indented("; ".join(parts), 0)
