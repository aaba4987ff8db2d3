"""`seriatim record` and `seriatim lint`: recordings of a broker, and what they leave open."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import rich_click as click
from rich.console import Console
from rich.text import Text

from seriatim_models.cli.console import Outputs, check_apart
from seriatim_models.cli.described_systems import opened, system_options
from seriatim_models.cli.implementations import (
    Implementation,
    SeveralClients,
    implementation_options,
    queue_argument_option,
    queue_arguments,
)
from seriatim_models.cli.options import (
    COUNT,
    HELP,
    POSITIVE,
    Finite,
    json_output,
    lines,
    number_option,
)
from seriatim_models.cli.recordings import read
from seriatim_models.cli.usage_errors import UsageError
from seriatim_models.conformance.concurrent.driving import run_workload
from seriatim_models.conformance.concurrent.search import SmallFaults
from seriatim_models.conformance.concurrent.streamed import StreamedRecording
from seriatim_models.conformance.concurrent.workload import ConcurrentWorkload, Phase, plan_faults
from seriatim_models.conformance.lint import Hint
from seriatim_models.conformance.lint import lint as hints
from seriatim_models.conformance.protocol import Fault
from seriatim_models.history import Header, HistoryError, write_history
from seriatim_models.history.event import GAP
from seriatim_models.report.document import indented
from seriatim_models.report.terminal import quantity, table, titled
from seriatim_models.report.visible import in_a_line

if TYPE_CHECKING:
    from seriatim_models.conformance.wire_recording import WireRecorder


HEAL = 1.0
"""Seconds for which clients go on after the last fault has healed."""


# Long: half of it is the list of options.
@click.command(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim record --amqp amqp://guest:guest@127.0.0.1/ --out run.jsonl.gz
        seriatim audit run.jsonl.gz --profile rabbit-classic
        seriatim record --amqp amqp://127.0.0.1/ --out mine.jsonl --listen 5673
        seriatim record --python queue:Queue --clients 4 --seconds 2 --out queue.jsonl
        seriatim record --exec "python3 spec/conform/clients.py" --rate 9 --out p.jsonl

        A program or an object is used by --clients at once, and the recording is on disk as it comes: what was
        seen before the implementation broke is kept.
        With --system a server is started as a TOML file says, broken by --faults while its clients work, healed
        and drained; --exec or --python is the adapter, which finds it by SERIATIM_TARGET.
        spec/conform/README.md has the keys of the file.
        With --listen nothing is done to the broker: let your own clients connect to that port instead of the
        broker's, and stop with Ctrl-C. Encrypted connections cannot be recorded.
        """
    )
)
@implementation_options
@system_options
@click.option(
    "--out",
    required=True,
    metavar="FILE",
    help="The recording: .jsonl, .jsonl.gz, .jsonl.zst, .parquet.",
)
@number_option(
    "--listen", "Only record your own clients.", click.IntRange(1, 65535), metavar="PORT"
)
@number_option(
    "--seconds", "How long [dim](5 by default; with --listen until Ctrl-C)[/].", POSITIVE
)
@number_option(
    "--parts",
    "With --exec and --python: --out is a folder, and gets a file every so many seconds, for seriatim stream.",
    POSITIVE,
    metavar="SECONDS",
)
@number_option("--publishers", None, click.IntRange(1, 64), 2)
@number_option("--consumers", None, click.IntRange(1, 64), 3)
@number_option("--prefetch", None, click.IntRange(1, 1000), 8)
@number_option("--messages", "Of each publisher, at most.", COUNT, 2000)
@number_option("--seed", "What the clients do.", int, 1)
@number_option("--clients", "With --exec and --python: so many at once.", click.IntRange(1, 64), 4)
@number_option("--queues", "With --exec and --python.", click.IntRange(1, 64), 1)
@number_option(
    "--rate",
    "With --exec and --python: commands a second of all clients [dim](as many as they can by default)[/].",
    Finite(1e-6),
)
@number_option("--patience", "How long one answer may take.", POSITIVE, 5.0, metavar="SECONDS")
@queue_argument_option("Such as x-queue-type=quorum.")
@click.rich_config(help_config=HELP)
def record(
    url: str | None,
    factory: str | None,
    command: str | None,
    description: str | None,
    setting: str | None,
    faults: str | None,
    out: str,
    listen: int | None,
    seconds: float | None,
    parts: float | None,
    publishers: int,
    consumers: int,
    prefetch: int,
    messages: int,
    seed: int,
    clients: int,
    queues: int,
    rate: float | None,
    patience: float,
    arguments: tuple[str, ...],
) -> int:
    """Record what a queue does for several clients at once; of a broker frame by frame."""
    check_apart((description, factory), (out,))
    if url is None:
        workload = ConcurrentWorkload(
            clients=clients,
            queues=queues,
            seed=seed,
            rate=rate or 0.0,
            phases=(("load", seconds or 5.0),),
        )
        driven = Implementation(command, factory, None, patience=patience)
        described = (description, setting, faults)
        return _record_clients(driven, workload, Path(out), described, parts or 0.0)
    if command is not None or factory is not None or description or setting or faults:
        raise UsageError("say which implementation: one of --exec, --python and --amqp")
    from seriatim_models.conformance.recording import RecordingPlan
    from seriatim_models.conformance.recording import record as made
    from seriatim_models.conformance.wire_recording import WireRecorder

    console = Outputs().console
    if not Path(out).absolute().parent.is_dir():
        raise UsageError(f"cannot write {out}: there is no such folder")
    recorder = WireRecorder()
    plan = RecordingPlan(
        seconds=seconds or 5.0,
        messages=messages,
        publishers=publishers,
        consumers=consumers,
        prefetch=prefetch,
        seed=seed,
    )
    try:
        if listen is not None:
            _listen(url, listen, seconds, recorder, console)
        else:
            made(url, queue_arguments(arguments), plan, recorder)
    except (Fault, OSError) as error:
        raise UsageError(f"{url}: {error}") from error
    params = {} if listen is not None else {"seed": seed, "arguments": list(arguments)}
    header = Header(rec="seriatim record", lvl="wire", clk="proxy", params=params)
    try:
        count = write_history(out, recorder.events, header)
    except HistoryError as error:
        raise UsageError(str(error)) from error
    console.print(f"{quantity(count, 'event')} in {out}", markup=False, soft_wrap=True)
    if recorder.unreadable:
        console.print(f"{recorder.unreadable} connections could not be read to their end")
    if recorder.full:
        console.print("the recording is full: what came later is not in it")
    show(console, out, hints(recorder.events))
    return 0


def _record_clients(
    implementation: Implementation,
    workload: ConcurrentWorkload,
    out: Path,
    described: tuple[str | None, str | None, str | None],
    parts: float,
) -> int:
    """Let the clients use a program or an object, and record it. Exit code 1 if it broke, 2 if it cannot be driven.

    `described`: a system's description, its setting and the faults, see `described_systems`.
    """
    with opened(implementation, *described) as (system, faults):
        if faults is not None and faults.kinds:
            plan = plan_faults(faults.kinds, workload.seconds, workload.seed, nodes=faults.nodes)
            phases: tuple[tuple[Phase, float], ...] = (("faults", workload.seconds), ("heal", HEAL))
            workload = msgspec.structs.replace(workload, faults=plan, phases=phases)
        return _recorded(implementation, workload, out, parts, system, faults)


def _recorded(
    implementation: Implementation,
    workload: ConcurrentWorkload,
    out: Path,
    parts: float,
    system: SeveralClients,
    faults: SmallFaults | None,
) -> int:
    """Record a system that runs; returns the exit code."""
    console = Outputs().console
    named = implementation.command or implementation.factory or system.name
    params = {"seed": workload.seed, "clients": workload.clients, "rate": workload.rate}
    header = Header(
        run=out.stem,
        rec="seriatim record",
        lvl="api",
        clk="drive",
        broker=f"{system.name} {system.version}".strip(),
        params=params,
    )
    try:
        with StreamedRecording(out, header, part=parts) as recording:
            run = run_workload(
                system,
                workload,
                recording,
                nemesis=faults.injector if faults else None,
                declares=faults.declares if faults else None,
                patience=implementation.patience,
            )
    except HistoryError as error:
        raise UsageError(str(error)) from error
    console.print(
        f"{quantity(recording.count, 'event')} in {out}: "
        f"{quantity(run.commands, 'command')}, {run.unknown:,} of unknown outcome",
        markup=False,
    )
    if system.one_at_a_time:
        console.print("it speaks seriatim-conform/1: its clients took turns")
    if run.fault:
        console.print(in_a_line(f"{named} {run.why}"), markup=False)
        return 1
    if not run.drained:
        why = f" ({run.undrained})" if run.undrained else ""
        unseen = f"the queues were not seen empty at the end{why}"
        console.print(
            f"{unseen}: what is missing is not known to be lost", markup=False, soft_wrap=True
        )
    return 0


def _listen(
    url: str, port: int, seconds: float | None, recorder: WireRecorder, console: Console
) -> None:
    from seriatim_models.conformance.proxy import Proxy
    from seriatim_models.conformance.recording import address

    host, there = address(url)
    until = time.monotonic() + (seconds or float("inf"))
    try:
        proxy = Proxy(host, there, recorder, port)
    except OSError as error:
        why = os.strerror(error.errno or errno.EADDRINUSE)
        raise UsageError(f"--listen: port {port} of 127.0.0.1: {why}") from error
    with proxy:
        console.print(f"listening on 127.0.0.1:{port} for {host}:{there}; Ctrl-C ends it")
        try:
            while time.monotonic() < until and not recorder.full:
                time.sleep(0.1)
        except KeyboardInterrupt:
            console.print("")


@click.command(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim lint recording.jsonl.gz
        seriatim lint recording.jsonl --json -

        A hint is no fault of the broker: it names what the recording leaves open, so that no property can decide it.
        """
    )
)
@click.argument("file", metavar="FILE")
@json_output("the hints")
@click.rich_config(help_config=HELP)
def lint(file: str, json: str | None) -> int:
    """List what a recording leaves open: unobserved acquisitions, clocks, what was never closed."""
    out = Outputs(json, reads=(file,))
    history = read(Path(file))
    open_hints = hints(history.events)
    if history.quarantine:
        first = history.quarantine[0]
        open_hints.append(
            Hint(
                id="left-out",
                count=len(history.quarantine),
                sentence="lines that are no events",
                example=f"line {first.line}: {first.reason}",
            )
        )
    said = history.header.params.get("lint")
    for sentence in said if isinstance(said, list) else []:
        open_hints.append(Hint(id="format", count=1, sentence=str(sentence)))
    if all(event.ev == GAP for event in history.events):
        open_hints.append(
            Hint(id="empty", count=1, sentence="there is no event: nothing can be judged")
        )
    show(out.console, file, open_hints)
    if json is not None:
        out.put(json, indented(open_hints))
    return 0


def show(console: Console, file: str, open_hints: list[Hint]) -> None:
    """Print the hints as a table."""
    if not open_hints:
        console.print(Text(f"{file} leaves nothing open"))
        return
    shown = table("hint", "count", "what is left open", "the first", right=("count",))
    for hint in open_hints:
        said, first = (in_a_line(text) for text in (hint.sentence, hint.example))
        shown.add_row(hint.id, f"{hint.count:,}", said, first)
    console.print(titled(f"What {file} leaves open", shown))
