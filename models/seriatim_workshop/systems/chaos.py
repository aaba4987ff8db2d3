"""``python -m seriatim_workshop.systems.chaos [SYSTEM[/SETTING] ...]``: break real systems while they work.

Each case is a system, a setting and some faults: it is started, used by publishers and consumers while the faults come
and go, healed, drained and judged. A name stands for all cases that begin with it; without one, all are run.
Histories are kept in ``--out``; ``--table`` writes the rows of all cases that were ever run into a page.
Exit code 1 if a system violates what it promises and is not known to violate, or a case ended early; 2 for bad usage.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from seriatim_models.conformance.concurrent.driving import ConcurrentRun, run_workload
from seriatim_models.conformance.concurrent.streamed import StreamedRecording
from seriatim_models.conformance.concurrent.workload import (
    MIX,
    REOPEN,
    ConcurrentWorkload,
    FaultKind,
    plan_faults,
)
from seriatim_models.conformance.faults.described import found
from seriatim_models.conformance.faults.description import SystemDescription
from seriatim_models.conformance.faults.nemesis import NETWORK
from seriatim_models.conformance.profiles import PROFILES
from seriatim_models.conformance.protocol import Fault
from seriatim_models.files import write_whole
from seriatim_models.history import Header, read_history
from seriatim_models.history.complete import complete
from seriatim_models.history.event import Event
from seriatim_models.properties import audit
from seriatim_models.properties.base import Verdict
from seriatim_models.properties.standing import confirmed
from seriatim_workshop.systems import servers
from seriatim_workshop.systems.faulty_clients import clients_of

CLIENTS, RATE = 4, 400.0
"""How many clients a case has, and how many commands a second they are asked for together."""
CONSUMING = {"consume": 8, "close": 4}
"""How often a client begins a consumer, and anew: several shall meet, some exclusive, of unlike priorities."""
PREFETCH = 50
"""Of consumers: while one has been given fewer, it is known to be ready (P11)."""
PATIENCE = 60.0
"""Seconds that one operation may take while the system is broken."""
CLUSTER_FAULT = 8.0
"""The most seconds of a fault of a cluster: it has to notice, and to elect another leader."""
DISK = 32
"""Megabytes of the disk that is filled up."""
HEADING = "## Under faults"
"""Of the last section of the page, which is this module's."""


@dataclass(frozen=True)
class ChaosCase:
    """A system in a setting, and what is done to it."""

    system: str
    setting: str
    faults: tuple[FaultKind, ...]
    seconds: float = 8.0
    profile: str = "any"
    log: bool = False
    """Its clients use it as a log."""
    known: frozenset[str] = frozenset()
    """Properties that it is known to violate; any other is news."""
    argued: str = ""
    """Why what is seen is, or is not, against its documentation, if its setting does not say it."""

    @property
    def id(self) -> str:
        """The name of the case: system/setting/faults."""
        kind = "-log" if self.log else ""
        return f"{self.system}{kind}/{self.setting}/{'+'.join(self.faults)}"


UNREGISTERED = (
    "RabbitMQ 3.10.8 writes the names of its Raft servers to names.dets late (synced at once since "
    "github.com/rabbitmq/ra pull request 443). Nodes that are killed soon after a quorum queue was declared come back "
    "without its name: the queue has no leader (github.com/rabbitmq/rabbitmq-server issue 10070), no get is answered, "
    "and after `ra:trigger_election` the queue is empty: 20 of 20 confirmed messages were gone. Killed 20 s after the "
    "declaration all 20 were there. So it cannot be drained here, and nothing is said of it. P10 is not of the faults: "
    "without any, too, an exclusive consumer of a quorum queue is accepted beside another one."
)
GONE = (
    "P1 in one run of four on 30 November 2026, on a busy machine: one of 2,097 acknowledged messages was given to "
    "nobody. It was the first that NATS 2.9.10 acknowledged, 1.2 ms after it was sent, when for 9.7 s it had "
    "acknowledged none; the next one of the same client was delivered, and at the end the stream had no message and "
    "its consumer none. The other three runs kept all messages."
)
ORPHANS = (
    "In one run of three 82 of 877 acknowledged messages stayed in the stream of NATS 2.9.10 after a node had been "
    "killed, and its consumer did not know of them: nothing is lost, and the stream is never empty."
)
EXCLUSIVE = (
    "P10 without any fault, too: RabbitMQ 3.10.8 accepts an exclusive consumer of a quorum queue beside another one, "
    "and serves both (see the table above); https://www.rabbitmq.com/docs/consumers#exclusivity says that it is alone."
)
NOT_ALONE = frozenset({"P10"})
ENDED: tuple[FaultKind, ...] = ("kill", "restart", "pause")
CASES = (
    ChaosCase("beanstalkd", "memory", ("kill",)),
    ChaosCase("beanstalkd", "binlog", ENDED),
    ChaosCase("beanstalkd", "binlog-unsynced", ("kill",)),
    ChaosCase("beanstalkd", "binlog", NETWORK),
    ChaosCase("beanstalkd", "binlog-small", ("disk-full",)),
    ChaosCase("redis", "memory", ("kill",)),
    ChaosCase("redis", "aof-always", ENDED),
    ChaosCase("redis", "aof-everysec", ("kill",)),
    ChaosCase("redis", "aof-always", NETWORK),
    ChaosCase("redis", "aof-always", ("disk-full",)),
    ChaosCase("redis", "aof-always", ENDED, profile="at-least-once-log", log=True),
    ChaosCase("redis", "aof-always", NETWORK, profile="at-least-once-log", log=True),
    ChaosCase("rabbitmq", "transient", ("kill",), 12.0, "rabbit-classic"),
    ChaosCase("rabbitmq", "persistent", ("kill",), 20.0, "rabbit-classic"),
    ChaosCase("rabbitmq", "persistent", ("restart", "pause"), 25.0, "rabbit-classic"),
    ChaosCase("rabbitmq", "persistent", NETWORK, 12.0, "rabbit-classic"),
    ChaosCase(
        "rabbitmq", "quorum", ("kill", "pause"), 25.0, "rabbit-quorum",
        known=NOT_ALONE, argued=UNREGISTERED,
    ),
    ChaosCase("postgresql", "synchronous", ENDED, 12.0, "postgres-skip-locked"),
    ChaosCase("postgresql", "asynchronous", ("kill",), 12.0, "postgres-skip-locked"),
    ChaosCase("postgresql", "asynchronous", ("restart", "pause"), 12.0, "postgres-skip-locked"),
    ChaosCase("nats", "file", ENDED, 12.0, "jetstream-workqueue"),
    ChaosCase(
        "nats-cluster", "replicated", ("partition",), 20.0,
        known=frozenset({"P1"}), argued=GONE,
    ),
    ChaosCase("nats-cluster", "replicated", ENDED, 20.0, argued=ORPHANS),
    ChaosCase(
        "rabbitmq-cluster", "quorum", ("partition",), 40.0, "rabbit-quorum",
        known=NOT_ALONE, argued=EXCLUSIVE,
    ),
    ChaosCase(
        "rabbitmq-cluster", "quorum", ("kill", "pause"), 40.0, "rabbit-quorum",
        known=NOT_ALONE, argued=UNREGISTERED,
    ),
)  # fmt: skip


class ChaosRow(msgspec.Struct, kw_only=True):
    """One case, as the table shows it."""

    id: str
    title: str
    version: str = ""
    setting: str = ""
    not_run: str = ""
    """Why, if it was not run."""
    ended: str = ""
    """Why it ended early, if it did."""
    faults: dict[str, int] = {}
    """How often each fault was done and healed."""
    confirmed: int = 0
    lost: int = 0
    again: int = 0
    unknown: int = 0
    drained: bool = False
    undrained: str = ""
    """Why it was not drained, if that is known."""
    profile: str = ""
    violates: list[str] = []
    why: list[str] = []
    tested: list[str] = []
    """Properties that had a case."""
    says: str = ""
    source: str = ""
    argued: str = ""
    seed: int = 1
    seconds: float = 0.0
    date: str = ""


def run_case(case: ChaosCase, seed: int, out: Path, factor: float = 1.0) -> ChaosRow:
    """Everything from start to stop; `factor` is by how much longer than usual."""
    description = servers.description_of(case.system)
    setting = description.setting_of(case.setting)
    row = ChaosRow(
        id=case.id,
        title=description.title + (", lists as a log" if case.log else ""),
        setting=case.setting,
        says=setting.says,
        source=setting.source,
        argued=case.argued,
        profile=case.profile,
        seed=seed,
        date=time.strftime("%Y-%m-%d"),
    )
    begun = time.monotonic()
    seconds = case.seconds * factor
    longest = 1.0 if description.nodes == 1 else CLUSTER_FAULT
    faults = plan_faults(case.faults, seconds, seed, longest=longest, nodes=description.nodes)
    workload = ConcurrentWorkload(
        clients=CLIENTS,
        seed=seed,
        rate=RATE,
        mix=MIX | REOPEN | CONSUMING,
        prefetch=PREFETCH,
        faults=faults,
        phases=(("faults", seconds),),
    )
    relayed = not set(NETWORK).isdisjoint(case.faults)
    disk = DISK if "disk-full" in case.faults else 0
    path = out / f"{case.id.replace('/', '-')}.jsonl"
    header = Header(run=case.id, rec="chaos", lvl="api", clk="drive", params={"seed": seed})
    promised = {"survives": list(setting.survives), "settled": list(setting.settled)}
    try:
        with (
            servers.server(case.system, setting=case.setting, relayed=relayed, disk=disk) as system,
            StreamedRecording(path, header) as recording,
        ):
            row.version = version_of_description(description)
            run = run_workload(
                clients_of(system, log=case.log),
                workload,
                recording,
                nemesis=system.faults,
                declares=promised,
                patience=PATIENCE,
            )
            row.faults = dict(Counter(system.faults.done))
    except servers.NotHere as why:
        row.not_run = str(why)
        return row
    except Fault as why:
        row.ended = str(why)
        return row
    row.seconds = round(time.monotonic() - begun, 1)
    return judged_row(row, run, list(read_history(path).events))


def version_of_description(description: SystemDescription) -> str:
    """The version that the program prints, or the one that the description says."""
    if isinstance(description.version, str):
        return description.version
    path = os.pathsep.join([*found(description.search), os.environ["PATH"]])
    try:
        program = shutil.which(description.version[0], path=path) or description.version[0]
        done = subprocess.run(
            [program, *description.version[1:]],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired, IndexError):
        return ""
    lines = (done.stdout + done.stderr).decode("utf-8", "replace").strip().splitlines()
    words = lines[-1].replace("v=", " ").split() if lines else []
    return next((word.lstrip("v") for word in words if word.lstrip("v")[:1].isdigit()), "")


def judged_row(row: ChaosRow, run: ConcurrentRun, events: list[Event]) -> ChaosRow:
    """The row with what was seen and what the properties of its profile say of it."""
    outcomes = message_outcomes(events)
    row.confirmed, row.again = len(outcomes.confirmed), len(outcomes.again)
    row.lost = len(outcomes.confirmed - outcomes.settled) if run.drained else 0
    row.unknown, row.drained, row.undrained, row.ended = (
        run.unknown, run.drained, run.undrained, run.why,
    )  # fmt: skip
    properties = PROFILES[row.profile].properties
    findings = audit(list(complete(events)), properties)
    for prop, finding in zip(properties, findings, strict=True):
        sure = confirmed(prop, finding)
        if sure.verdict is Verdict.VIOLATED:
            row.violates.append(sure.property)
            row.why.append(f"{sure.property}: {sure.explanation}")
        if sure.n_tested:
            row.tested.append(sure.property)
    return row


class MessageOutcomes(msgspec.Struct):
    """What became of the messages of a run."""

    confirmed: set[str] = set()
    settled: set[str] = set()
    """Whose settlement was sent."""
    answered: set[str] = set()
    """Whose settlement was answered."""
    again: set[str] = set()
    """Given to somebody after their settlement had been answered."""


def message_outcomes(events: Iterable[Event]) -> MessageOutcomes:
    """What became of the messages of a history."""
    outcomes = MessageOutcomes()
    for event in events:
        if event.ev == "publish" and event.ph == "ok":
            outcomes.confirmed.add(event.m)
        elif event.ev == "deliver" and event.pos is not None:
            outcomes.settled.add(event.m)  # of a log what was read is not lost
        elif event.ev in ("get", "deliver") and event.m in outcomes.answered:
            outcomes.again.add(event.m)
        elif event.ms and (event.ev == "ack" or event.requeue is False):
            (outcomes.answered if event.ph == "ok" else outcomes.settled).update(event.ms)
    return outcomes


def outcome(row: ChaosRow) -> str:
    """What became of the confirmed messages, in words."""
    if row.not_run:
        return f"not run: {row.not_run}"
    if row.ended:
        return f"ended early: {row.ended}"
    if not row.drained:
        why = f" ({row.undrained})" if row.undrained else ""
        return f"not drained{why}, so nothing is known of {row.confirmed} confirmed messages"
    lost = f"lost {row.lost} of {row.confirmed} confirmed messages"
    again = f"{row.again} came again after their acknowledgement" if row.again else "none doubled"
    return f"{lost if row.lost else f'kept all {row.confirmed} confirmed messages'}, {again}"


def verdict(row: ChaosRow) -> str:
    """Whether that is against what the system promises in this setting."""
    if row.violates:
        return f"VIOLATES {', '.join(row.violates)} of {row.profile}"
    if "P1" not in row.tested:
        return "inconclusive: no case of P1"
    if not row.drained:
        return "inconclusive: not drained"
    return "as documented" if row.lost or row.again else "kept"


def summary(row: ChaosRow) -> str:
    """The row for the terminal."""
    faults = ", ".join(f"{n} x {kind}" for kind, n in row.faults.items()) or "no fault"
    head = f"{row.id} ({row.version}): {faults}: {outcome(row)}"
    if row.not_run or row.ended:
        return head
    tail = f"{verdict(row)} ({row.unknown} of unknown outcome, seed {row.seed}, {row.seconds:g} s)"
    return "\n".join([f"{head}: {tail}", *(f"  {why}" for why in row.why)])


def table(rows: Sequence[ChaosRow]) -> list[str]:
    """The table of all cases, and what each setting promises."""
    lines = [
        HEADING,
        "",
        "Made by `make chaos`: publishers and consumers at work while the system is broken and healed, then drained.",
        "A message is lost if it was confirmed, nobody settled it, and the queue was seen empty with nothing held.",
        "",
        "| system, setting | version | faults | confirmed messages | against what it promises | tested | again |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        again = f"`make chaos CASE={row.id}`"
        faults = ", ".join(f"{n} {kind}" for kind, n in row.faults.items())
        said = "" if row.not_run or row.ended else verdict(row)
        name = f"{row.title}, {row.setting}"
        lines.append(
            f"| {name} | {row.version} | {faults} | {outcome(row)} | {said} | {', '.join(row.tested)} | {again} |"
        )
    lines += ["", "What is promised, and where:", ""]
    promised = {f"{row.title}, {row.setting}": row for row in rows}
    lines += [f"- {name}: {row.says}; {row.source}." for name, row in promised.items()]
    lines += ["", "Beside the documentation:", ""]
    lines += [f"- {row.id}: {row.argued}" for row in rows if row.argued]
    lines += [""]
    lines += [f"- {row.id}: {row.date}, seed {row.seed}, {row.seconds:g} s." for row in rows]
    return lines


def chosen(names: Sequence[str]) -> list[ChaosCase]:
    """Raises SystemExit with code 2 for a name that stands for nothing."""
    for name in names:
        if not any(case.id.startswith(name) for case in CASES):
            print(
                f"no case {name!r}; there are {', '.join(case.id for case in CASES)}",
                file=sys.stderr,
            )
            raise SystemExit(2)
    return [case for case in CASES if not names or any(case.id.startswith(n) for n in names)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases that are named (all) and print what was found.

    Returns 1 if a violation was not known, and 3 if a case that was asked for by name was not run.
    """
    parser = argparse.ArgumentParser(description=__doc__, prog="make chaos")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--factor", type=float, default=1.0, help="how much longer than usual")
    parser.add_argument("--out", type=Path, default=Path("build/chaos"))
    parser.add_argument("--table", type=Path, help="write the rows of all cases into this page")
    asked = parser.parse_args(arguments)
    asked.out.mkdir(parents=True, exist_ok=True)
    news, missed = [], []
    for case in chosen(asked.cases):
        row = run_case(case, asked.seed, asked.out, asked.factor)
        kept = asked.out / f"{case.id.replace('/', '-')}.row.json"
        write_whole(kept, msgspec.json.encode(row))
        print(summary(row), flush=True)
        news += [f"{row.id} violates {p}" for p in row.violates if p not in case.known]
        news += [f"{row.id} ended early: {row.ended}"] if row.ended else []
        missed += [row.id] if row.not_run and asked.cases else []
    if asked.table is not None:
        paths = [asked.out / f"{case.id.replace('/', '-')}.row.json" for case in CASES]
        rows = [msgspec.json.decode(p.read_bytes(), type=ChaosRow) for p in paths if p.exists()]
        before = asked.table.read_text(encoding="utf-8").partition(HEADING)[0]
        write_whole(asked.table, (before + "\n".join(table(rows)) + "\n").encode())
    for each in news:
        print(f"NEW: {each}", file=sys.stderr)
    return 1 if news else 3 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
