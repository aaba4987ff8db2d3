"""The report as JSON, schema `seriatim-verdicts/1`, and back.

`results` holds one object per finding, whatever was judged: `property`, `verdict`, `n_tested`, `n_untestable`,
`subject`, `witness` and `explanation`; `kind` says where it comes from and `expected` what a mutant must get.
A violation in a recording also has `intervals`: who had what when, as bars (`properties.intervals`).
Fields may be added under this schema tag; none changes its meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from seriatim_models.files import encoded
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.intervals import intervals
from seriatim_models.report.model import AuditRun, MutantRun, ProgramRun, Report

SCHEMA = "seriatim-verdicts/1"


# Any: the value is JSON, whose shape the module's docstring gives.
Json = dict[str, Any]


class SavedResult(msgspec.Struct):
    """What a reader of saved verdicts may rely on, of each finding."""

    property: str
    verdict: Verdict
    n_tested: int
    n_untestable: int
    subject: str


class SavedVerdicts(msgspec.Struct):
    """What a reader of saved verdicts may rely on, of the whole."""

    schema: Literal["seriatim-verdicts/1"]
    command: str
    exit_code: Literal[0, 1, 2, 3]
    results: list[SavedResult]


def document(report: Report) -> Json:
    """The report as plain data, ready to be written."""
    return {
        "schema": SCHEMA,
        "command": report.command,
        "verdict": report.verdict.value,
        "exit_code": report.exit_code,
        "started": report.started,
        "seconds": round(report.seconds, 3),
        "seed": report.seed,
        "versions": report.versions,
        "quarantined": sum(audit.quarantined for audit in report.audits),
        "traces": report.traces,
        "results": list(_results(report)),
        "programs": [_program(run) for run in report.programs],
        "mutants": [_mutant(run) for run in report.mutants],
        "audits": [_audit(run) for run in report.audits],
    }


def encode(report: Report) -> bytes:
    """The report as indented JSON."""
    return indented(document(report))


def indented(value: object) -> bytes:
    """Plain data as JSON that people can read too."""
    return msgspec.json.format(encoded(value), indent=2) + b"\n"


def _results(report: Report) -> Iterator[Json]:
    for run in report.programs:
        for finding in run.findings:
            yield _finding(report, finding, run.program, kind="program", mutant=run.mutant)
    for mutant in report.mutants:
        for finding in mutant.run.findings:
            expected = {"expected": "violated"} if finding.property == mutant.expected else {}
            yield (
                _finding(report, finding, mutant.run.program, kind="mutant", mutant=mutant.mutant)
                | expected
            )
    for audit in report.audits:
        for finding in audit.findings:
            bars = msgspec.to_builtins(intervals(finding))
            drawn = {"intervals": bars} if bars else {}
            yield _finding(report, finding, ", ".join(audit.paths), kind="audit") | drawn


def _finding(report: Report, finding: Finding, subject: str, **more: str | None) -> Json:
    plain: Json = {
        "property": finding.property,
        "verdict": finding.verdict.value,
        "n_tested": finding.n_tested,
        "n_untestable": finding.n_untestable,
        "n_violations": finding.n_violations,
        "subject": finding.subject or subject,
        "witness": msgspec.to_builtins(finding.witness),
        "explanation": finding.explanation,
        "sentence": report.sentences.get(finding.property, ""),
    }
    if finding.decides:
        plain["decides"] = finding.decides
    return plain | {key: value for key, value in more.items() if value is not None}


def _program(run: ProgramRun) -> Json:
    plain = _plain(run, leave_out={"findings"})
    if plain["counterexample"]:
        del plain["counterexample"]["story"]  # for the page; the token gives it again
    return plain


def _mutant(mutant: MutantRun) -> Json:
    return _plain(mutant, leave_out={"run"}) | {
        "program": mutant.run.program,
        "killed_by": mutant.killed_by,
        "as_expected": mutant.as_expected,
        "steps": mutant.run.counterexample.steps if mutant.run.counterexample else None,
        "run": _program(mutant.run),
    }


def _audit(audit: AuditRun) -> Json:
    return _plain(audit, leave_out={"findings", "stories"}) | {"verdict": audit.verdict.value}


def _plain(struct: msgspec.Struct, leave_out: set[str]) -> Json:
    plain: Json = msgspec.to_builtins(struct)
    return {
        key: round(value, 3) if isinstance(value, float) else value
        for key, value in plain.items()
        if key not in leave_out
    }
