"""What `seriatim conform` shows and keeps of a search: tables, shortest scripts and their histories."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from seriatim_models.cli.audit import find_profile, with_own
from seriatim_models.cli.usage_errors import UsageError, sentence_of
from seriatim_models.conformance.driving import DRAIN, DrivenRun
from seriatim_models.conformance.judging import default_profile
from seriatim_models.conformance.meanings import DECLARED
from seriatim_models.conformance.profiles import SYSTEMS, Profile
from seriatim_models.conformance.protocol import Fault
from seriatim_models.conformance.script import Script, write_script
from seriatim_models.conformance.selftest import NO_TIME, self_test, speed
from seriatim_models.conformance.system import Declaring, System
from seriatim_models.history import Header, HistoryError, write_history
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.causes import causes
from seriatim_models.report import AuditRun
from seriatim_models.report.audit_text import counts, profile_lines, property_table, violation
from seriatim_models.report.terminal import (
    STYLES,
    ShellCommand,
    quantity,
    table,
    titled,
    verdict_text,
)
from seriatim_models.report.visible import in_a_line

if TYPE_CHECKING:
    from seriatim_models.conformance.search import SearchOutcome, Witness

SHOWN = 40
"""Steps of a script that are printed; a script of the load that did not get shorter has thousands."""
CONSISTENT = {Verdict.VIOLATED: "no", Verdict.OK: "yes", Verdict.INCONCLUSIVE: "not enough seen"}


def held_to(console: Console, system: Declaring, profile: str, own: tuple[str, ...]) -> Profile:
    """The profile that is named, else what the system declares, which is printed, or every promise; with properties of
    the user's own. Raises `UsageError`.
    """
    chosen = find_profile(profile) if profile else default_profile(system)
    if chosen.id == DECLARED:
        console.print(Text(f"held to {in_a_line(chosen.title)}"))
    return with_own(chosen, own)


def audit_run(outcome: SearchOutcome) -> AuditRun:
    """The outcome as data of the report."""
    return AuditRun(
        paths=[outcome.name],
        engine="driven",
        profile=outcome.profile,
        findings=outcome.findings,
        events=outcome.events,
        quarantined=0,
        seconds=outcome.seconds,
        command="",
        statistics={"scripts": outcome.scripts, "steps": outcome.steps},
    )


def with_scripts(run: AuditRun, outcome: SearchOutcome) -> AuditRun:
    """The same for files, which have no place of their own for the shortest script of a violation."""
    shortest = {w.property: "; ".join(map(str, w.run.steps)) for w in outcome.witnesses}
    findings = [
        msgspec.structs.replace(f, explanation=f"{f.explanation}. Shortest: {shortest[f.property]}")
        if f.property in shortest
        else f
        for f in run.findings
    ]
    return msgspec.structs.replace(run, findings=findings)


WELL = "well.jsonl"
"""In which file the longest history without a violation is saved."""


def save(outcome: SearchOutcome, folder: Path) -> dict[str, Path]:
    """Save each shortest script with its history, and the longest history without a violation.

    Returns the paths of the scripts by property, and that of the history under its name.
    Raises `UsageError` if they cannot be written.
    """
    saved = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for witness in outcome.witnesses:
            saved[witness.property] = path = folder / f"{witness.property}.json"
            script = Script(
                steps=witness.run.steps,
                seed=outcome.seed,
                profile=outcome.profile,
                violates=witness.property,
                why=witness.finding.explanation,
            )
            write_script(path, script)
            _save_history(path.with_suffix(".jsonl"), outcome, witness.run)
        if outcome.last is not None:
            saved[WELL] = folder / WELL
            _save_history(saved[WELL], outcome, outcome.last)
    except (OSError, HistoryError) as error:
        raise UsageError(f"cannot write to {folder}: {sentence_of(error)}") from error
    return saved


def _save_history(path: Path, outcome: SearchOutcome, run: DrivenRun) -> None:
    header = Header(
        run=path.stem, rec="seriatim conform", broker=outcome.name, params={"seed": outcome.seed}
    )
    write_history(path, run.events, header)


def print_outcome(
    console: Console,
    outcome: SearchOutcome,
    saved: dict[str, Path],
    words: list[str],
    sentences: dict[str, str],
    verbose: bool = False,
) -> None:
    """Print each violation with the shortest script that shows it, what was tested, and the profiles.

    `words` are the options that name the implementation. `verbose`: a row for each property.
    """
    witnesses = {w.property: w for w in outcome.witnesses}
    for cause in causes(outcome.findings):
        for same in _by_script(cause, witnesses):
            shown = [_as_shown(f, witnesses.get(f.property)) for f in same]
            for part in violation(shown, sentences):
                console.print(part)
            if (witness := witnesses.get(same[0].property)) is not None:
                _print_script(console, witness, same, saved.get(witness.property), words)
            console.print()
    if WELL in saved:
        console.print(Text(f"written: {saved[WELL]}, a history without a violation"))
    ended = ", until the time was over" if outcome.ended == "time" else ""
    scripts, steps = quantity(outcome.scripts, "script"), quantity(outcome.steps, "step")
    facts = f"{scripts}, {steps}, seed {outcome.seed}{ended}"
    title = f"{in_a_line(outcome.name)} ({facts})"
    if verbose:
        console.print(titled(title, property_table(outcome.findings, sentences, set())))
        if outcome.profiles:
            console.print(_profile_table(outcome))
        return
    console.print(Text(title, style="bold"))
    systems = {name: v for name, v in outcome.profiles.items() if name in SYSTEMS}
    held = [name for name, violated in systems.items() if not violated]
    for part in counts("", outcome.findings):
        console.print(part)
    for part in profile_lines(
        [name for name in held if name in outcome.tested],
        {name: violated for name, violated in systems.items() if violated},
        [name for name in held if name not in outcome.tested],
    ):
        console.print(part)


def _by_script(
    cause: Sequence[Finding], witnesses: Mapping[str, Witness]
) -> list[Sequence[Finding]]:
    """Those of a cause that one script shows together: events of two scripts are the same by chance only."""
    together: dict[str, list[Finding]] = {}
    for finding in cause:
        witness = witnesses.get(finding.property)
        steps = "" if witness is None else "; ".join(map(str, witness.run.steps))
        together.setdefault(steps, []).append(finding)
    return list(together.values())


def _as_shown(finding: Finding, witness: Witness | None) -> Finding:
    """The finding of the shortest script in place of the first one, if there is one."""
    if witness is None:
        return finding
    return msgspec.structs.replace(witness.finding, n_violations=finding.n_violations)


def _profile_table(outcome: SearchOutcome) -> Table:
    shown = table("profile", "consistent", "violated", "no case of")
    for name, violated in outcome.profiles.items():
        tested = Verdict.OK if name in outcome.tested else Verdict.INCONCLUSIVE
        verdict = Verdict.VIOLATED if violated else tested
        shown.add_row(
            name,
            Text(CONSISTENT[verdict], style=STYLES[verdict]),
            ", ".join(violated),
            ", ".join(outcome.untested[name]),
        )
    return shown


def _print_script(
    console: Console,
    witness: Witness,
    violated: Sequence[Finding],
    script: Path | None,
    words: list[str],
) -> None:
    properties = ", ".join(finding.property for finding in violated)
    console.print(Text(f"  The shortest way to violate {properties}:"))
    steps = witness.run.steps
    for n, step in enumerate(steps[:SHOWN], 1):
        console.print(Text(f"  {n:4}  {step}"))
    if len(steps) > SHOWN:
        more = f"        ... and {len(steps) - SHOWN:,} more, see the file"
        console.print(Text(more))
    if any(event.ch == DRAIN for event in witness.finding.witness):
        at_the_end = (
            "  at the end consumers are cancelled or channels closed, and channel "
            f"{DRAIN} takes out what is left"
        )
        console.print(Text(at_the_end))
    if script is None:
        return
    if witness.again < witness.runs:
        repeated = f"  came again in {witness.again} of {witness.runs} further runs"
        console.print(Text(repeated, style="yellow"))
    command = shlex.join(["seriatim", "conform", *words, "--replay", str(script)])
    console.print(ShellCommand("  replay: ", command), crop=False)


def self_tested(console: Console, system: System, seconds: float) -> bool:
    """Run the self-test before a drive, for so many seconds, and print its result in a line; whether all hold."""
    checks = list(self_test(system, time.monotonic() + seconds))
    failed = [check for check in checks if check.why and not check.skipped]
    held = sum(not check.why for check in checks)
    late = sum(check.why == NO_TIME for check in checks)
    skipped = sum(check.skipped for check in checks) - late
    counted = f"self-test of {system.name}: {held} checks hold, {skipped} it has no use for"
    counted += f", {late} there was no time for" if late else ""
    if not failed:
        console.print(f"{escape(counted)}; now the drive")
        return True
    console.print(Text(f"{counted}, {len(failed)} fail:", style="red"))
    for check in failed:
        console.print(Text(f"  {check.sentence}: {check.why}", style="red"))
    return False


def print_self_test(console: Console, system: System) -> int:
    """Run the self-test and print it; returns the exit code."""
    shown = table("check", "verdict", "why")
    failed = 0
    for check in self_test(system):
        verdict = (
            Verdict.INCONCLUSIVE if check.skipped else Verdict.VIOLATED if check.why else Verdict.OK
        )
        failed += verdict is Verdict.VIOLATED
        shown.add_row(check.sentence, verdict_text(verdict), check.why)
    can = ", ".join(sorted(system.can))
    console.print(titled(f"{system.name} can: {can}", shown))
    if failed:
        first = "Mend these first: until then no verdict on the queue itself means anything."
        console.print(Text(first, style="red"))
        return 1
    try:
        console.print(f"{speed(system):,.0f} requests a second")
    except Fault as fault:
        console.print(Text(str(fault), style="red"))
        return 1
    return 0
