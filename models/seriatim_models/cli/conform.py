"""`seriatim conform`: drive an implementation with drawn commands and judge what it does."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import rich_click as click
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from seriatim_models.cli.audit import find_profile
from seriatim_models.cli.console import Outputs, Work
from seriatim_models.cli.options import HELP, completing, lines, outputs
from seriatim_models.cli.report_builder import new_report
from seriatim_models.cli.usage_errors import Mistake
from seriatim_models.conformance.child import Child
from seriatim_models.conformance.driving import Run, drive
from seriatim_models.conformance.judging import judged
from seriatim_models.conformance.profiles import Profile
from seriatim_models.conformance.protocol import Fault
from seriatim_models.conformance.script import Script, ScriptError, read_script, write_script
from seriatim_models.conformance.selftest import self_test, speed
from seriatim_models.conformance.system import System
from seriatim_models.history import Header, HistoryError, write_history
from seriatim_models.properties.base import Verdict
from seriatim_models.report import AuditRun
from seriatim_models.report.text import STYLES, table, titled, verdict_text, write

if TYPE_CHECKING:
    from seriatim_models.conformance import search as searching


@click.command(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim conform --exec "node queue.js" --self-test   is the protocol spoken right?
        seriatim conform --exec "node queue.js"               then: is it a queue?
        seriatim conform --python queue:Queue                 an object of Python
        seriatim conform --python mine:Broker --profile strict-qpid
        seriatim conform --amqp amqp://guest:guest@127.0.0.1/ a broker
        seriatim conform --exec ./q --replay build/conform/P5.json

        A broker gets queues of its own, whose names begin with seriatim-conform, and loses them again.
        spec/conform/README.md describes the protocol, with examples in two languages and a faulty one.
        """
    )
)
@click.option("--exec", "command", metavar="CMD", help="A program that speaks seriatim-conform/1.")
@click.option(
    "--python", "factory", metavar="MODULE:FACTORY", help="What makes the object to test."
)
@click.option(
    "--amqp", "url", metavar="URL", help="An AMQP 0-9-1 broker [dim](needs the extra amqp)[/]."
)
@click.option(
    "--queue-argument",
    "arguments",
    metavar="NAME=VALUE",
    multiple=True,
    help="With --amqp: an argument of the queue, such as x-queue-type=quorum.",
)
@click.option(
    "--self-test", "test", is_flag=True, help="Only see that the protocol is spoken right."
)
@click.option("--replay", metavar="FILE", help="Run only this script, as --out keeps them.")
@click.option(
    "--profile",
    shell_complete=completing("profiles"),
    metavar="NAME",
    help="Which properties it promises [dim](any by default; with --replay, the script's)[/].",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    metavar="N",
    help="Search no longer [dim](at most twice that, to shorten what was found)[/].",
)
@click.option(
    "--scripts",
    type=click.IntRange(min=1),
    default=300,
    show_default=True,
    metavar="N",
    help="Draw no more scripts than that [dim](shortening one takes further runs)[/].",
)
@click.option(
    "--steps",
    type=click.IntRange(1, 500),
    default=30,
    show_default=True,
    metavar="N",
    help="Of so many commands at most.",
)
@click.option(
    "--seed", type=int, metavar="N", help="What is drawn [dim](new each time by default)[/]."
)
@click.option(
    "--patience",
    type=click.FloatRange(min=0, min_open=True),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="How long one answer may take.",
)
@click.option(
    "--out",
    default="build/conform",
    show_default=True,
    metavar="DIR",
    help="Where shortest scripts and their histories go.",
)
@outputs
@click.rich_config(help_config=HELP)
def conform(
    command: str | None,
    factory: str | None,
    url: str | None,
    arguments: tuple[str, ...],
    test: bool,
    replay: str | None,
    profile: str | None,
    seconds: float,
    scripts: int,
    steps: int,
    seed: int | None,
    patience: float,
    out: str,
    json: str | None,
    html: str | None,
    junit: str | None,
) -> int:
    """Drive a queue of yours with drawn commands, and say what it promises and breaks."""
    from seriatim_models.conformance import search as searching

    targets = Outputs(json, html, junit)
    script = _script(replay) if replay is not None else None
    chosen = find_profile(profile or (script.profile if script else "") or "any")
    if arguments and url is None:
        raise Mistake("--queue-argument is for --amqp")
    try:
        system = open_system(command, factory, url, arguments, patience)
    except Fault as fault:
        raise Mistake(f"{command or factory or url}: {fault}") from fault
    try:
        if test:
            return _tested(system, targets.console)
        bounds = searching.Bounds(seconds=seconds, scripts=scripts, steps=steps)
        begun = time.monotonic()
        report = new_report(None, seed, "hypothesis")
        if script is not None:
            outcome = _replayed(system, chosen, script, bounds)
        else:
            with Work(1, "searches").running() as work, work.item(system.name) as tell:

                def tell_both(what: str, count: int) -> None:
                    work.say(what)
                    tell(count)

                outcome = searching.search(system, chosen, bounds, seed, tell_both)
    finally:
        system.end()
    report.seed = outcome.seed
    report.seconds = time.monotonic() - begun
    report.audits.append(audit_run(outcome))
    kept = keep(outcome, Path(out)) if script is None else {}
    write(targets.console, report)
    tell_outcome(targets.console, outcome, kept, _target(command, factory, url, arguments))
    targets.write(report)
    return report.exit_code


def open_system(
    command: str | None,
    factory: str | None,
    url: str | None,
    arguments: tuple[str, ...] = (),
    patience: float = 5.0,
) -> System:
    """The implementation that the options name. Raises `Fault` if it cannot be driven."""
    if sum(given is not None for given in (command, factory, url)) != 1:
        raise Mistake("say which implementation: one of --exec, --python and --amqp")
    if command is not None:
        return Child(command, patience=patience)
    if factory is not None:
        # In a process of its own, so that what hangs or floods does not do so here.
        serve = [sys.executable, "-m", "seriatim_models.conformance.serve", factory]
        return Child(shlex.join(serve), patience=patience)
    from seriatim_models.conformance.amqp import Broker

    assert url is not None
    return Broker(url, queue_arguments(arguments), patience=patience)


def queue_arguments(given: tuple[str, ...]) -> dict[str, str | int]:
    """``("x-max-length=3",)`` as AMQP has it: what looks like a number is one."""
    found: dict[str, str | int] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not name or not equals:
            raise Mistake(f"--queue-argument {each!r} is not NAME=VALUE")
        found[name] = int(value) if value.lstrip("-").isdigit() else value
    return found


def audit_run(outcome: searching.Outcome) -> AuditRun:
    """The outcome in the form that reports are drawn from."""
    shortest = {w.property: "; ".join(map(str, w.run.steps)) for w in outcome.witnesses}
    findings = [
        msgspec.structs.replace(f, explanation=f"{f.explanation}. Shortest: {shortest[f.property]}")
        if f.property in shortest
        else f
        for f in outcome.findings
    ]
    return AuditRun(
        paths=[outcome.name],
        engine="driven",
        profile=outcome.profile,
        findings=findings,
        events=outcome.events,
        quarantined=0,
        seconds=outcome.seconds,
        command="",
        statistics={"scripts": outcome.scripts, "steps": outcome.steps},
    )


def keep(outcome: searching.Outcome, folder: Path) -> dict[str, Path]:
    """Save each shortest script and its history, and a long history of nothing wrong; the scripts' paths."""
    kept = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for witness in outcome.witnesses:
            kept[witness.property] = path = folder / f"{witness.property}.json"
            script = Script(
                steps=witness.run.steps,
                seed=outcome.seed,
                profile=outcome.profile,
                violates=witness.property,
                why=witness.finding.explanation,
            )
            write_script(path, script)
            _keep_history(path.with_suffix(".jsonl"), outcome, witness.run)
        if outcome.last is not None:
            _keep_history(folder / "well.jsonl", outcome, outcome.last)
    except (OSError, HistoryError) as error:
        raise Mistake(f"cannot write to {folder}: {error}") from error
    return kept


def _keep_history(path: Path, outcome: searching.Outcome, run: Run) -> None:
    header = Header(
        run=path.stem, rec="seriatim conform", broker=outcome.name, params={"seed": outcome.seed}
    )
    write_history(path, run.events, header)


def tell_outcome(
    console: Console, outcome: searching.Outcome, kept: dict[str, Path], target: list[str]
) -> None:
    """Which profiles it keeps, and the shortest way to break each property that it breaks."""
    from seriatim_models.conformance import search as searching

    shown = table("profile", "consistent", "violated", "no case of")
    for name, violated in outcome.profiles.items():
        untested = outcome.untested[name]
        verdict = (
            Verdict.VIOLATED
            if violated
            else Verdict.OK
            if name in outcome.tested
            else Verdict.INCONCLUSIVE
        )
        said = {Verdict.VIOLATED: "no", Verdict.OK: "yes", Verdict.INCONCLUSIVE: "no case"}
        yes = Text(said[verdict], style=STYLES[verdict])
        shown.add_row(escape(name), yes, ", ".join(violated), ", ".join(untested))
    facts = f"{outcome.scripts:,} scripts, {outcome.steps:,} steps, seed {outcome.seed}"
    ended = ", until the time was over" if outcome.ended == "time" else ""
    if outcome.profiles:
        console.print(titled(f"{outcome.name} under each profile ({facts}{ended})", shown))
    for witness in outcome.witnesses:
        title = f"The shortest way to violate {witness.property}:"
        console.print(Text(title, style=STYLES[Verdict.VIOLATED]))
        for n, step in enumerate(witness.run.steps, 1):
            console.print(Text(f"  {n:2}  {step}"), soft_wrap=True)
        console.print(Text(f"  {witness.finding.explanation}"), soft_wrap=True)
        if witness.again < searching.CONFIRM and witness.property in kept:
            console.print(
                Text(f"  in {witness.again} of {searching.CONFIRM} further runs", style="yellow")
            )
        if witness.property in kept:
            again = shlex.join(
                ["seriatim", "conform", *target, "--replay", str(kept[witness.property])]
            )
            console.print(Text.assemble("  again: ", (again, "bold")), soft_wrap=True)


def _target(
    command: str | None, factory: str | None, url: str | None, arguments: tuple[str, ...]
) -> list[str]:
    """The options that name the implementation, to be typed again."""
    named = [("--exec", command), ("--python", factory), ("--amqp", url)]
    said = [word for option, value in named if value is not None for word in (option, value)]
    return said + [word for argument in arguments for word in ("--queue-argument", argument)]


def _script(path: str) -> Script:
    try:
        return read_script(Path(path))
    except ScriptError as error:
        raise Mistake(str(error)) from error


def _replayed(
    system: System, profile: Profile, script: Script, bounds: searching.Bounds
) -> searching.Outcome:
    from seriatim_models.conformance import search as searching

    run = drive(system, script.steps, until=time.monotonic() + bounds.seconds)
    findings = [
        msgspec.structs.replace(f, subject=system.name) for f in judged(run, profile.properties)
    ]
    outcome = searching.Outcome(
        name=system.name,
        profile=profile.id,
        seed=script.seed or 0,
        findings=findings,
        scripts=1,
        steps=len(run.steps),
        events=len(run.events),
        last=run,
    )
    convicted = next((f for f in findings if f.verdict is Verdict.VIOLATED), None)
    if convicted is not None:
        witness = searching.Witness(property=convicted.property, finding=convicted, run=run)
        outcome.witnesses = [witness]
    return outcome


def _tested(system: System, console: Console) -> int:
    """What the self-test says, and its exit code."""
    shown = table("check", "verdict", "why")
    failed = 0
    for check in self_test(system):
        verdict = (
            Verdict.INCONCLUSIVE if check.skipped else Verdict.VIOLATED if check.why else Verdict.OK
        )
        failed += verdict is Verdict.VIOLATED
        shown.add_row(escape(check.sentence), verdict_text(verdict), escape(check.why))
    can = ", ".join(sorted(system.can))
    console.print(titled(f"{system.name} can: {can}", shown))
    if failed:
        console.print(
            Text(
                "Mend these first: until then no verdict on the queue itself means anything.",
                style="red",
            )
        )
        return 1
    try:
        console.print(f"{speed(system):,.0f} requests a second")
    except Fault as fault:
        console.print(Text(str(fault), style="red"))
        return 1
    return 0
