"""`seriatim conform`: drive an implementation with generated commands and check what it does."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import rich_click as click

from seriatim_models.cli.audit import find_profile
from seriatim_models.cli.conform_clients import conform_clients
from seriatim_models.cli.conform_results import (
    audit_run,
    held_to,
    print_outcome,
    print_self_test,
    save,
    self_tested,
    with_scripts,
)
from seriatim_models.cli.conform_schedules import conform_schedules
from seriatim_models.cli.console import Outputs, ProgressDisplay
from seriatim_models.cli.described_systems import system_options
from seriatim_models.cli.implementations import (
    Implementation,
    implementation_options,
    queue_argument_option,
)
from seriatim_models.cli.options import (
    COUNT,
    HELP,
    POSITIVE,
    lines,
    number_option,
    outputs,
    profile_option,
    property_option,
    verbose_option,
)
from seriatim_models.cli.report_builder import new_report
from seriatim_models.cli.usage_errors import UsageError
from seriatim_models.conformance.driving import drive
from seriatim_models.conformance.judging import judged
from seriatim_models.conformance.meanings import DECLARED
from seriatim_models.conformance.profile_consistency import where_nothing_is_named
from seriatim_models.conformance.profiles import Profile
from seriatim_models.conformance.protocol import Fault
from seriatim_models.conformance.script import Script, ScriptError, read_script
from seriatim_models.conformance.system import System
from seriatim_models.properties.base import Verdict
from seriatim_models.report.text import summary

if TYPE_CHECKING:
    from seriatim_models.conformance import search as searching


SELF_TEST = 10.0
"""Seconds that the self-test before a drive has, if the drive has fewer."""
CLIENTS = 4
"""Of a system that is started here, if nothing else is said."""


# Long: half of it is the list of options.
@click.command(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim conform --exec "node queue.js" --self-test   does it speak right?
        seriatim conform --exec "node queue.js"               then: is it a queue?
        seriatim conform --python queue:Queue                 an object of Python
        seriatim conform --python mine:Broker --profile strict-qpid
        seriatim conform --python queue:Queue --schedules     all its schedules
        seriatim conform --python queue:Queue --clients 3     several clients at once
        seriatim conform --amqp amqp://guest:guest@127.0.0.1/ a broker
        seriatim conform --amqp amqp://127.0.0.1/ --clients 3 several clients of it
        seriatim conform --exec ./q --replay build/conform/P5.json

        A broker gets queues of its own, whose names begin with seriatim-conform, and loses them again.
        Without --profile every promise is held against the queue, and each profile is compared. What a
        documented system that offers the same operations allows, in order or in time, is inconclusive then
        (exit code 3) and is shown with those systems; --profile any allows nothing.
        A log, which has read instead of get and consume, is held to the profile kafka.
        What an implementation declares that its words mean (means, as requeue: tail) it is held to instead.
        spec/conform/README.md describes the protocol, with examples in two languages and a faulty one.
        """
    )
)
@implementation_options
@system_options
@queue_argument_option("With --amqp: an argument of the queue, such as x-queue-type=quorum.")
@click.option(
    "--self-test", "test", is_flag=True, help="Only see that the protocol is spoken right."
)
@click.option(
    "--schedules",
    is_flag=True,
    help="With --python: small concurrent clients over the unmodified object, under every schedule of their threads.",
)
@number_option(
    "--clients",
    "Small workloads of so many clients at once, the smallest that shows a violation.",
    click.IntRange(2, 64),
)
@click.option(
    "--module",
    "modules",
    metavar="NAME",
    multiple=True,
    help="An installed module whose code is observed, too, with --schedules [dim](repeatable)[/].",
)
@click.option("--replay", metavar="FILE", help="Run only this script, as --out keeps them.")
@profile_option(
    "Which properties it promises [dim](any by default, kafka for a log; with --replay, the script's)[/].",
    None,
)
@property_option
@number_option(
    "--seconds",
    "Search no longer [dim](at most twice that, to shorten what was found)[/].",
    POSITIVE,
    30.0,
)
@number_option(
    "--scripts",
    "Generate no more scripts than that [dim](by default as many as the time allows, long ones among them; "
    "shortening one takes further runs)[/].",
    COUNT,
)
@number_option(
    "--steps",
    "The most commands of one script [dim](40 of a short one by default)[/].",
    click.IntRange(1, 500),
)
@number_option("--seed", "Seed of the scripts [dim](new each time by default)[/].")
@number_option("--patience", "How long one answer may take.", POSITIVE, 5.0, metavar="SECONDS")
@click.option(
    "--out",
    default="build/conform",
    show_default=True,
    metavar="DIR",
    help="Where shortest scripts and their histories go.",
)
@verbose_option("A row for each property and each profile, with what there was no case of.")
@outputs
@click.rich_config(help_config=HELP)
def conform(
    command: str | None,
    factory: str | None,
    url: str | None,
    arguments: tuple[str, ...],
    test: bool,
    schedules: bool,
    clients: int | None,
    description: str | None,
    setting: str | None,
    faults: str | None,
    modules: tuple[str, ...],
    replay: str | None,
    profile: str | None,
    own: tuple[str, ...],
    seconds: float,
    scripts: int | None,
    steps: int | None,
    seed: int | None,
    patience: float,
    out: str,
    verbose: bool,
    json: str | None,
    html: str | None,
    junit: str | None,
) -> int:
    """Drive a queue of yours with generated commands, and show which properties it violates."""
    from seriatim_models.conformance import search as searching

    reads = (factory, description, replay, profile, *own)
    targets = Outputs(json, html, junit, folder=out, reads=reads)
    if schedules:
        if factory is None or command or url or test or steps is not None:
            raise UsageError("--schedules is for --python alone, without --self-test and --steps")
        return conform_schedules(
            targets, factory, modules, profile, own, seconds, scripts, seed, Path(out), replay
        )
    if modules:
        raise UsageError("--module is for --schedules: else every module is run as it is")
    described = (description, setting, faults)
    if clients is not None or any(described):
        if test or replay is not None or steps is not None:
            raise UsageError("--clients and --system go without --self-test, --replay and --steps")
        driven = Implementation(command, factory, url, arguments, patience)
        return conform_clients(
            targets, driven, clients or CLIENTS, profile, own, seconds, scripts, seed, Path(out),
            described, verbose,
        )  # fmt: skip
    script = _script(replay) if replay is not None else None
    named = _named(profile, script)
    if arguments and url is None:
        raise UsageError("--queue-argument is for --amqp")
    implementation = Implementation(command, factory, url, arguments, patience)
    try:
        system = implementation.open()
    except Fault as fault:
        raise UsageError(f"{implementation}: {fault}") from fault
    try:
        if test:
            return print_self_test(targets.console, system)
        bounds = searching.SearchBounds(seconds=seconds, scripts=scripts, steps=steps)
        sound = script is not None or self_tested(targets.console, system, max(seconds, SELF_TEST))
        chosen = held_to(targets.console, system, named, own)
        begun = time.monotonic()
        report = new_report("hypothesis", seed=seed)
        report.sentences.update({p.id: p.sentence for p in chosen.properties})
        if script is not None:
            outcome = _replayed(system, chosen, script, bounds)
        else:
            outcome = _searched(system, chosen, bounds, seed)
    finally:
        system.end()
    if profile is None and chosen.id == "any":
        outcome.findings = where_nothing_is_named(
            outcome.findings, outcome.profiles, system.can, amqp=url is not None
        )
    report.seed = outcome.seed
    report.seconds = time.monotonic() - begun
    report.audits.append(audit_run(outcome))
    saved = save(outcome, Path(out)) if script is None else {}
    words = implementation.words
    print_outcome(targets.console, outcome, saved, words, report.sentences, verbose)
    _print_what_one_thread_leaves(targets, factory, outcome)
    targets.console.print(summary(report))
    report.audits = [with_scripts(run, outcome) for run in report.audits]
    targets.write(report)
    return report.exit_code if sound else max(report.exit_code, 1)


def _print_what_one_thread_leaves(
    targets: Outputs, factory: str | None, outcome: searching.SearchOutcome
) -> None:
    """Print how an object is tried by several threads, where one found nothing."""
    if factory is not None and not outcome.witnesses:
        targets.console.print(
            "one thread drove it: --schedules runs small clients of several under every schedule"
        )


def _searched(
    system: System, chosen: Profile, bounds: searching.SearchBounds, seed: int | None
) -> searching.SearchOutcome:
    """The outcome of a search, whose progress is shown."""
    from seriatim_models.conformance.search import search

    with (
        ProgressDisplay(1, "searches").running() as work,
        work.item(system.name) as report_count,
    ):
        return search(system, chosen, bounds, seed, work.describing(report_count))


def _named(profile: str | None, script: Script | None) -> str:
    """The profile that is asked for, by option or script; empty if none is. A wrong name is a usage error."""
    named = profile or (script.profile if script else "")
    if named == DECLARED:
        return ""  # the system says itself what that is
    if named:
        find_profile(named)
    return named


def _script(path: str) -> Script:
    """A saved script. Raises `UsageError`."""
    try:
        return read_script(Path(path))
    except ScriptError as error:
        raise UsageError(str(error)) from error


def _replayed(
    system: System, profile: Profile, script: Script, bounds: searching.SearchBounds
) -> searching.SearchOutcome:
    """Run one script and judge it, in the form of a search."""
    from seriatim_models.conformance import search as searching

    run = drive(system, script.steps, until=time.monotonic() + bounds.seconds)
    findings = [
        msgspec.structs.replace(f, subject=system.name) for f in judged(run, profile.properties)
    ]
    outcome = searching.SearchOutcome(
        name=system.name,
        profile=profile.id,
        seed=script.seed or 0,
        findings=findings,
        scripts=1,
        steps=len(run.steps),
        events=len(run.events),
        last=run,
    )
    violation = next((f for f in findings if f.verdict is Verdict.VIOLATED), None)
    if violation is not None:
        witness = searching.Witness(property=violation.property, finding=violation, run=run)
        outcome.witnesses = [witness]
    return outcome
