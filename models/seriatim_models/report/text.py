"""The report as tables for a terminal. The console decides about colour and width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from seriatim_models.conformance.profiles import ORACLE
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.causes import causes
from seriatim_models.properties.intervals import drawn, intervals
from seriatim_models.report.model import (
    AuditRun,
    CounterexampleSummary,
    MutantRun,
    ProgramRun,
    Report,
)

BARS_MAX = 16  # bars of one finding; a violation has a handful

STYLES = {Verdict.OK: "green", Verdict.VIOLATED: "bold red", Verdict.INCONCLUSIVE: "yellow"}


def write(console: Console, report: Report) -> None:
    """Every section that the report has, then the verdict in one line."""
    for part in _parts(report):
        # Text wider than the terminal is left to the terminal: a cropped interleaving cannot be read.
        console.print(part, soft_wrap=isinstance(part, Text))
    console.print(summary(report), soft_wrap=True)


def summary(report: Report) -> Text:
    """One line: the verdict, and the numbers that it rests on."""
    facts = []
    if report.programs:
        facts.append(f"{_count(report.programs, 'program')}, {report.traces:,} traces")
    if report.mutants:
        killed = sum(m.as_expected for m in report.mutants)
        facts.append(f"{killed} of {_count(report.mutants, 'mutant')} killed as expected")
    if report.audits:
        events = sum(audit.events for audit in report.audits)
        left_out = sum(audit.quarantined for audit in report.audits)
        facts.append(f"{events:,} recorded events, {left_out:,} lines left out")
    facts.append(f"{report.seconds:.1f} s")
    return Text.assemble(verdict_text(report.verdict), ": ", ", ".join(facts))


def verdict_text(verdict: Verdict) -> Text:
    """A verdict in its colour."""
    return Text(verdict.value, style=STYLES[verdict])


def _parts(report: Report) -> Iterator[RenderableType]:
    if report.programs:
        yield programs(report.programs)
        for run in report.programs:
            yield from failures(run)
    if report.mutants:
        yield mutants(report.mutants)
    for audit in report.audits:
        yield audit_table(audit, report.sentences)
        yield from _quarantine(audit)
        yield from map(_explanation, causes(audit.findings))
        if audit.standings:
            yield consistency_table(audit)


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """An empty table in the style of all; the first column and numbers never wrap."""
    made = Table(box=box.SIMPLE_HEAD)
    for column in columns:
        made.add_column(
            column,
            justify="right" if column in right else "left",
            no_wrap=column in right or column == columns[0],
        )
    return made


def titled(title: str, made: Table) -> RenderableType:
    """A table under its title, which rich itself would fold to the width of the table."""
    return Group(Text(title, style="bold"), made)


def programs(runs: list[ProgramRun]) -> RenderableType:
    """The table of programs."""
    made = table(
        "program",
        "verdict",
        "traces",
        "seconds",
        "covered",
        "properties tested",
        right=("traces", "seconds"),
    )
    for run in runs:
        made.add_row(
            escape(f"{run.program} with {run.mutant}" if run.mutant else run.program),
            verdict_text(run.verdict),
            "not counted" if run.traces is None else f"{run.traces:,}",
            f"{run.seconds:.2f}",
            run.covered,
            Text(" ").join(Text(f.property, style=STYLES[f.verdict]) for f in run.findings),
        )
    return titled("Programs", made)


def failures(run: ProgramRun) -> Iterator[Text]:
    """For a program that is not ok: what broke, how, and the command that shows it again."""
    untested = [f.property for f in run.findings if not f.n_tested]
    if run.verdict is Verdict.INCONCLUSIVE and run.exhausted and untested:
        why = f"no schedule has a case of {', '.join(untested)}"
        yield Text(f"{run.program}: {why}", style=STYLES[run.verdict])
    elif run.verdict is not Verdict.OK and run.why and run.counterexample is None:
        yield Text(f"{run.program}: {run.why}", style=STYLES[run.verdict])
    if run.counterexample is not None:  # which begins with what was violated
        yield from counterexample(run.counterexample)


def counterexample(summary: CounterexampleSummary) -> Iterator[Text]:
    """The interleaving, and the command that shows it again."""
    yield Text(summary.text.rstrip("\n"))
    yield Text.assemble("again: ", (summary.again, "bold"), "\n")


def _explanation(cause: Sequence[Finding]) -> Text:
    """One cause, by the property that shows it first; the others that find fault with the same event are named."""
    finding, *others = cause
    same = ", ".join(f.property for f in others)
    return Text.assemble(
        (f"{finding.property} violated", STYLES[Verdict.VIOLATED]),
        f" {finding.n_violations:,} times" if finding.n_violations > 1 else "",
        f" in {finding.subject}" if finding.subject else "",
        f": {finding.explanation}" if finding.explanation else "",
        f"\nthe same event violates {same}" if same else "",
        f"\n{drawn(intervals(finding)[:BARS_MAX])}\n" if finding.witness else "",
    )


def mutants(runs: list[MutantRun]) -> RenderableType:
    """The table of mutants."""
    made = table(
        "mutant",
        "origin",
        "must be killed by",
        "killed by",
        "steps",
        "seconds",
        right=("steps", "seconds"),
    )
    for mutant in runs:
        steps = mutant.run.counterexample.steps if mutant.run.counterexample else None
        made.add_row(
            escape(mutant.mutant),
            escape(mutant.origin),
            mutant.expected,
            Text(mutant.killers, style=STYLES[mutant.verdict]),
            "" if steps is None else str(steps),
            f"{mutant.run.seconds:.2f}",
        )
    return titled("Mutants", made)


_CASES = {p.id: p.case for p in ORACLE}


def _why_open(finding: Finding) -> str:
    """Why a property is inconclusive: what would be a case, if nothing else is known."""
    if finding.verdict is not Verdict.INCONCLUSIVE:
        return ""
    case = _CASES.get(finding.property)
    return finding.explanation or (f"no case: it takes {case}" if case else "")


def audit_table(audit: AuditRun, sentences: dict[str, str]) -> RenderableType:
    """Each recording with its findings; `sentences` are those of the properties, by id.

    Where a property has no case, its line says what would be one.
    """
    made = table(
        "recording",
        "property",
        "verdict",
        "tested",
        "untestable",
        "sentence",
        right=("tested", "untestable"),
    )
    for recording, findings in audit.by_recording().items():
        for n, finding in enumerate(findings):
            made.add_row(
                escape(recording) if n == 0 else "",
                finding.property,
                verdict_text(finding.verdict),
                f"{finding.n_tested:,}",
                f"{finding.n_untestable:,}",
                escape(_why_open(finding) or sentences.get(finding.property, "")),
                end_section=n == len(findings) - 1,
            )
    facts = (
        f"{audit.engine}, profile {audit.profile}, {audit.events:,} events, {audit.seconds:.1f} s"
    )
    return titled(f"Audit of {', '.join(audit.paths)} ({facts})", made)


CONSISTENCY = {
    Verdict.OK: "consistent",
    Verdict.VIOLATED: "ruled out",
    Verdict.INCONCLUSIVE: "not enough seen",
}


def consistency_table(audit: AuditRun) -> RenderableType:
    """Which profiles each recording is consistent with, and what rules out the others."""
    made = table("recording", "profile", "", "because")
    before = ""
    for row in audit.standings:
        made.add_row(
            escape(row.subject) if row.subject != before else "",
            row.profile,
            Text(CONSISTENCY[row.verdict], style=STYLES[row.verdict]),
            escape(row.why),
        )
        before = row.subject
    return titled("Profiles that it is consistent with", made)


def property_table(report: Report) -> RenderableType:
    """Each property once, over everything that the report ran it on."""
    made = table("id", "verdict", "tested", "sentence", "where", right=("tested",))
    for row in report.rows():
        programs = sum(where != "recordings" for where in row.where)
        places = [f"{programs} program{'' if programs == 1 else 's'}"] if programs else []
        places += ["recordings"] if "recordings" in row.where else []
        made.add_row(
            row.id,
            verdict_text(row.verdict),
            f"{row.n_tested:,}",
            escape(report.sentences.get(row.id, "")),
            ", ".join(places) or "nowhere",
        )
    return titled("Properties", made)


def _quarantine(audit: AuditRun) -> Iterator[RenderableType]:
    if not audit.quarantined:
        return
    yield Text(f"{audit.quarantined:,} lines left out of the audit, among them:", style="yellow")
    for line in audit.quarantine[:5]:
        yield Text(f"  {line.file}:{line.line}: {line.reason}")


def _count(things: list[ProgramRun] | list[MutantRun], name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"
