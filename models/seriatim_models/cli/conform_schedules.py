"""`seriatim conform --python MODULE:FACTORY --schedules`: small clients under every schedule."""

from __future__ import annotations

import random
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from seriatim_models.cli.audit import find_profile, with_own
from seriatim_models.cli.console import Outputs, ProgressDisplay
from seriatim_models.cli.own_code import importable
from seriatim_models.cli.report_builder import new_report, property_catalogue
from seriatim_models.cli.usage_errors import UsageError, sentence_of
from seriatim_models.conformance.protocol import Fault
from seriatim_models.conformance.script import ScriptError
from seriatim_models.report import CounterexampleSummary, ProgramRun, Report
from seriatim_models.report.stepper import story
from seriatim_models.report.text import write

if TYPE_CHECKING:
    from seriatim_models.conformance.schedules.search import (
        ClientTarget,
        ScheduleOutcome,
        ScheduleWitness,
    )

SEEDS = 1_000_000


def conform_schedules(
    targets: Outputs,
    factory: str,
    modules: tuple[str, ...],
    profile: str | None,
    own: tuple[str, ...],
    seconds: float,
    programs: int | None,
    seed: int | None,
    out: Path,
    replay: str | None,
) -> int:
    """Run the search, or the schedule that a file holds; print and write what came of it; returns the exit code."""
    from seriatim_models.conformance.schedules import search as searching
    from seriatim_models.conformance.schedules.clients import read_clients
    from seriatim_models.explorer import ExplorerError

    with importable(Path.cwd()):
        try:
            saved = None if replay is None else read_clients(Path(replay))
            if saved is not None:
                _check_modules(saved.modules, factory, modules, replay)
                profile = profile or saved.profile
            implementation = searching.implementation(factory, modules)
            default = searching.default_profile(implementation)
            named = profile not in (None, default.id)
            chosen = with_own(find_profile(str(profile)) if named else default, own)
            if saved is not None:
                outcome = searching.replayed(implementation, chosen, saved)
            else:
                seed = random.randrange(SEEDS) if seed is None else seed
                with (
                    ProgressDisplay(1, "searches").running() as work,
                    work.item(implementation.name) as count,
                ):
                    outcome = searching.search(
                        implementation,
                        chosen,
                        seconds=seconds,
                        seed=seed,
                        programs=programs,
                        on_progress=work.describing(count),
                    )
        except (Fault, ScriptError, ExplorerError) as error:
            raise UsageError(str(error)) from error
    if (case := outcome.witness) is not None:
        path = Path(replay) if replay else _save(implementation, chosen.id, case, out)
        again = ["seriatim", "conform", "--python", factory, "--schedules", "--replay", str(path)]
        again += [part for name in modules for part in ("--module", name)]
        shown = case.result.counterexample
        assert shown is not None
        case.result.counterexample = replace(shown, command=shlex.join(again))
    report = _report(implementation, outcome)
    write(targets.console, report)
    _print(targets, outcome)
    targets.write(report)
    return report.exit_code


def _check_modules(
    saved: Sequence[str], factory: str, modules: Sequence[str], replay: str | None
) -> None:
    """Raise `UsageError` for a module that only the file names: to look for one may run code of its package."""
    own = factory.partition(":")[0]
    if unnamed := set(saved) - {own, own.partition(".")[0], *modules}:
        named = " ".join(f"--module {name}" for name in sorted(unnamed))
        raise UsageError(f"{replay}: observes more than {factory}; if it may be run, say {named}")


def _report(implementation: ClientTarget, outcome: ScheduleOutcome) -> Report:
    report = new_report("greenlet", seed=outcome.seed)
    report.seconds = outcome.seconds
    case = outcome.witness
    summary = None
    if case is not None:
        shown = case.result.counterexample
        assert shown is not None
        text = shown.text() + (f"\n\n{case.result.traceback}" if case.result.traceback else "")
        summary = CounterexampleSummary(
            token=case.token,
            steps=len(shown.events),
            text=text,
            story=story(shown, [], property_catalogue()),
        )
    report.programs.append(
        ProgramRun(
            program=implementation.where,
            title=f"small clients of {outcome.name} {implementation.version}".strip(),
            strategy="dpor",
            verdict=outcome.verdict,
            exhausted=outcome.programs == outcome.exhausted,
            traces=outcome.traces,
            complete=outcome.executions,
            blocked=0,
            seconds=outcome.seconds,
            bounds="Two or three clients with a few calls; one step is one Python operation on a shared place.",
            why=outcome.why,
            findings=outcome.findings,
            command=report.command,
            counterexample=summary,
        )
    )
    return report


def _print(targets: Outputs, outcome: ScheduleOutcome) -> None:
    console = targets.console
    case = outcome.witness
    if case is not None:
        title = f"The smallest clients that violate {case.property}:"
        console.print(Text(title, style="bold red"))
        for line in str(case.clients).split(" | "):
            console.print(Text(f"  {line}"))
    console.print(
        Text(
            f"{outcome.name}, profile {outcome.profile}, seed {outcome.seed}: {outcome.programs:,} sets of clients, "
            f"{outcome.exhausted:,} of them under every schedule, {outcome.executions:,} executions"
        )
    )
    if case is None:
        console.print(Text(outcome.why))


def _save(implementation: ClientTarget, profile: str, case: ScheduleWitness, folder: Path) -> Path:
    """Save the clients and their schedule. Raises `UsageError` if they cannot be written."""
    from seriatim_models.conformance.schedules.clients import SavedClients, write_clients

    path = folder / f"schedules-{case.property}.json"
    saved = SavedClients(
        factory=implementation.where,
        clients=case.clients,
        token=case.token,
        modules=implementation.modules,
        profile=profile,
        violates=case.property,
        why=case.why,
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_clients(path, saved)
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {sentence_of(error)}") from error
    return path
