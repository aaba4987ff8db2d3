"""`seriatim conform --clients N`: small workloads of several clients at once."""

from __future__ import annotations

import random
import time
from pathlib import Path

from rich.text import Text

from seriatim_models.cli.audit import find_profile
from seriatim_models.cli.conform_results import held_to
from seriatim_models.cli.console import Outputs, ProgressDisplay
from seriatim_models.cli.described_systems import opened
from seriatim_models.cli.implementations import Implementation
from seriatim_models.cli.report_builder import new_report
from seriatim_models.cli.usage_errors import UsageError, sentence_of
from seriatim_models.conformance.concurrent.search import search_clients
from seriatim_models.conformance.protocol import Fault
from seriatim_models.history import Header, HistoryError, write_history
from seriatim_models.report import AuditRun
from seriatim_models.report.text import write

SEEDS = 1_000_000


# Long: a report, and the lines that say what the smallest clients are.
def conform_clients(
    targets: Outputs,
    implementation: Implementation,
    clients: int,
    profile: str | None,
    own: tuple[str, ...],
    seconds: float,
    most: int | None,
    seed: int | None,
    out: Path,
    described: tuple[str | None, str | None, str | None] = (None, None, None),
    verbose: bool = False,
) -> int:
    """Search, print what came of it and keep the history of a violation; returns the exit code.

    `described`: a system's description, its setting and the faults, see `described_systems`.
    """
    if profile:
        find_profile(profile)
    seed = random.randrange(SEEDS) if seed is None else seed
    begun = time.monotonic()
    with opened(implementation, *described) as (system, faults):
        chosen = held_to(targets.console, system, profile or "", own)
        try:
            with (
                ProgressDisplay(1, "searches").running() as work,
                work.item(system.name) as count,
            ):
                outcome = search_clients(
                    system,
                    chosen.properties,
                    clients=clients,
                    seconds=seconds,
                    seed=seed,
                    most=most,
                    patience=implementation.patience,
                    faults=faults,
                    on_progress=count,
                )
        except Fault as fault:
            raise UsageError(f"{system.name}: {fault}") from fault
    report = new_report("random", seed=seed)
    report.seconds = time.monotonic() - begun
    report.sentences.update({p.id: p.sentence for p in chosen.properties})
    report.audits.append(
        AuditRun(
            paths=[system.name],
            engine="driven",
            profile=chosen.id,
            findings=outcome.findings,
            events=outcome.recorded,
            quarantined=0,
            seconds=report.seconds,
            command="",
            statistics={"workloads": outcome.runs, "commands": outcome.commands},
        )
    )
    write(targets.console, report, verbose)
    facts = f"{outcome.runs:,} workloads, {outcome.commands:,} commands, seed {seed}"
    targets.console.print(Text(f"{system.name}: {facts}"))
    if system.one_at_a_time:
        targets.console.print("it speaks seriatim-conform/1: its clients took turns")
    elif implementation.factory is not None and not described[0] and not outcome.violated:
        targets.console.print(
            "its threads met by chance: --schedules runs small clients under every schedule"
        )
    if outcome.workload is not None:
        path = out / f"clients-{outcome.violated}.jsonl"
        try:
            out.mkdir(parents=True, exist_ok=True)
            write_history(path, outcome.events, Header(run=path.stem, rec="seriatim conform"))
        except (OSError, HistoryError) as error:
            raise UsageError(f"cannot write to {out}: {sentence_of(error)}") from error
        lines = [
            f"The smallest clients that violate {outcome.violated}, again in {outcome.shown} of {outcome.tried} runs:",
            *(f"  {line}" for line in str(outcome.workload).split(" | ")),
            f"Their history: {path}",
            *(
                [f"They were not made smaller to the end: {system.name} {outcome.failed}"]
                if outcome.failed
                else []
            ),
        ]
        for line in lines:
            targets.console.print(Text(line))
    targets.write(report)
    return report.exit_code
