"""From the results of the explorer to the plain data of the report."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from textwrap import dedent
from typing import TYPE_CHECKING

from seriatim_models.properties.base import AnyProperty, Verdict
from seriatim_models.report import (
    AuditRun,
    CounterexampleSummary,
    Edit,
    MutantRun,
    ProgramRun,
    Quarantined,
    Report,
    worst,
)
from seriatim_models.report.stepper import story

if TYPE_CHECKING:
    from seriatim_models.conformance.profiles import Profile
    from seriatim_models.history.faults import Rejected
    from seriatim_models.pipeline import AuditReport
    from seriatim_models.programs import Mutant, ProgramResult

QUARANTINE_SHOWN = 20  # enough to see what is wrong with a file; the count says how much of it


def new_report(*packages: str, seed: int | None = None) -> Report:
    """An empty report of this command. `packages` are the distributions whose versions it names."""
    return Report(
        command=shlex.join(["seriatim", *sys.argv[1:]]),
        started=datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        seed=seed,
        versions=_versions("seriatim", *packages) | {"python": platform.python_version()},
        sentences={id: p.sentence for id, p in property_catalogue().items()},
    )


def _versions(*packages: str) -> dict[str, str]:
    installed = {}
    for package in packages:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            continue
    return installed


def property_catalogue() -> dict[str, AnyProperty]:
    """Every property by id: those that read the reference's own record, then those that read what clients saw."""
    from seriatim_models import properties
    from seriatim_models.conformance.profiles import ORACLE

    return {p.id: p for p in (*properties.PROPERTIES.values(), *ORACLE)}


def program_run(result: ProgramResult, strategy: str, options: list[str]) -> ProgramRun:
    """The result as data of the report.

    `options` are those of the command line that change the search, so that the command can be repeated.
    """
    program, mutant, explored = result.program, result.mutant, result.explored
    arguments = [
        "seriatim",
        "check",
        program.id,
        *(["--mutant", mutant.id] if mutant else []),
        *options,
    ]
    case = explored.counterexample
    return ProgramRun(
        program=program.id,
        title=program.title,
        mutant=mutant.id if mutant else None,
        strategy=strategy,
        verdict=worst([Verdict(explored.verdict), *(f.verdict for f in result.findings)]),
        exhausted=explored.exhausted,
        traces=explored.traces,
        complete=explored.complete,
        blocked=explored.blocked,
        seconds=result.seconds,
        bounds=program.beyond,
        why=explored.why,
        limits={name: limit for name, limit in explored.bounds.items() if limit is not None},
        split="" if explored.split is None else str(explored.split),
        findings=list(result.findings),
        command=shlex.join(arguments),
        counterexample=None
        if case is None
        else CounterexampleSummary(
            token=case.token,
            steps=len(case.events),
            text=case.text(),
            story=story(case, result.findings, property_catalogue()),
        ),
    )


def mutant_run(mutant: Mutant, run: ProgramRun) -> MutantRun:
    """The run of a mutant's program as data of the report, with what the mutant changes."""
    return MutantRun(
        mutant=mutant.id,
        title=mutant.title,
        origin=mutant.origin,
        expected=mutant.killed_by,
        expected_steps=mutant.steps,
        run=run,
        edits=[_edit(mutant, old, new) for old, new in mutant.edits],
    )


def audit_run(
    report: AuditReport,
    quarantine: Sequence[Rejected],
    *,
    paths: Sequence[str],
    engine: str,
    profile: Profile,
    seconds: float,
) -> AuditRun:
    """What an audit or a stream reports, as data of the report; `quarantine` has the first lines left out."""
    command = ["seriatim", "audit", *paths, "--engine", engine, "--profile", profile.id]
    return AuditRun(
        paths=list(paths),
        engine=engine,
        profile=profile.id,
        findings=report.findings,
        events=report.statistics["events"],
        # A line of number 0 is a whole file, which the statistics of lines do not count.
        quarantined=report.statistics["rejected"] + sum(line.line == 0 for line in quarantine),
        quarantine=[
            Quarantined(file=line.source, line=line.line, reason=line.reason)
            for line in quarantine[:QUARANTINE_SHOWN]
        ],
        statistics=report.statistics,
        seconds=seconds,
        command=shlex.join(command),
    )


def _edit(mutant: Mutant, old: str, new: str) -> Edit:
    """One edit of a mutant, with the line before (after, below a docstring) if it only adds, removes or indents."""
    from seriatim_models.programs.mutant_modules import texts

    shown = edit(old, new)
    if shown.reference and shown.mutant and shown.reference != shown.mutant:
        return shown
    source = next(text for text in texts(mutant.reference).values() if old in text)
    before, _, after = source.partition(old)
    line = before.rstrip().rpartition("\n")[2]
    first, last = f"{line}\n", ""
    if line.endswith('"""'):
        first, last = "", after.lstrip("\n").partition("\n")[0]
    sides = (dedent(first + side + last).strip("\n") for side in (old, new))
    return Edit(**dict(zip(("reference", "mutant"), sides, strict=True)))


def edit(reference: str, mutant: str) -> Edit:
    """The lines that differ, not indented, without the equal lines around them."""
    old, new = reference.splitlines(), mutant.splitlines()
    while len(old) > 1 and len(new) > 1 and old[-1] == new[-1]:
        old.pop()
        new.pop()
    while len(old) > 1 and len(new) > 1 and old[0] == new[0]:
        del old[0], new[0]
    return Edit(reference=dedent("\n".join(old)).strip(), mutant=dedent("\n".join(new)).strip())
