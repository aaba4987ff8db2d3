"""The oracle beside other checkers of queue histories: time of the check alone, peak memory, verdict, growth.

Each checks in a process of its own, after it has read the history.
"""

from __future__ import annotations

import functools
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from seriatim_workshop.bench import histories
from seriatim_workshop.bench.explorers import (
    HERE,
    PLACE,
    Absent,
    Participant,
    copy,
    need,
    prepared,
    run,
)
from seriatim_workshop.bench.measure import BenchRow, Measured, peak_memory

PART = "oracle"
CLIENTS = 8
SECONDS_MAX = 30.0
"""How long anybody may take for one check; who has given up on a smaller history of the same kind is not asked."""

NOTES = [
    "Histories of a FIFO queue with distinct values; each operation takes effect at one instant of its interval. "
    "In the broken ones two values come out in each other's place.",
    "seriatim is P20 alone; seriatim, all: every black-box property. Porcupine searches for a linearization; "
    "the scan looks for doubled and invented values only, and cannot see order.",
    "unfinished: no verdict in the time given, or none on a smaller history of the same kind.",
]

Report = Callable[[str], None]


class CheckerVerdict(msgspec.Struct):
    """What one checker output. `verdict` is ok, violated, or unfinished."""

    verdict: str
    seconds: float
    memory: int


class Checker(Participant, Protocol):
    """One checker of queue histories, ours or a peer's."""

    def check(self, folder: Path, seconds: float) -> CheckerVerdict:
        """Check the history in this folder, in so many seconds. Raises `Absent`."""


@dataclass(frozen=True)
class Python:
    """One of the checks that run in this interpreter."""

    name: str
    kind: str

    def prepare(self) -> str:
        from importlib.metadata import version

        return version("seriatim") if self.name.startswith("seriatim") else ""

    def check(self, folder: Path, seconds: float) -> CheckerVerdict:
        module = "seriatim_workshop.bench.oracle"
        command = [sys.executable, "-m", module, self.kind, str(folder)]
        try:
            # Reading may take as long again as checking, and twice that on a busy machine.
            output = run(command, seconds=10 * seconds)
        except Absent as late:
            if "took more than" in str(late):
                return CheckerVerdict("unfinished", seconds, 0)
            raise
        verdict = msgspec.json.decode(output, type=CheckerVerdict)
        return (
            verdict
            if verdict.seconds <= seconds
            else CheckerVerdict("unfinished", seconds, verdict.memory)
        )


@dataclass(frozen=True)
class Porcupine:
    """Porcupine (Go) with a queue of two persistent lists as its model."""

    name: str = "Porcupine"

    def prepare(self) -> str:
        pinned = (HERE / "go" / "go.mod").read_text().split("porcupine v")[1].split()[0]
        porcupine()
        return f"{pinned}, {run(['go', 'version'], seconds=30).split()[2]}"

    def check(self, folder: Path, seconds: float) -> CheckerVerdict:
        output = run(
            [porcupine(), folder / "operations.txt", str(seconds)], seconds=2 * seconds + 60
        )
        verdict = msgspec.json.decode(output, type=CheckerVerdict)
        verdict.verdict = {"Ok": "ok", "Illegal": "violated"}.get(verdict.verdict, "unfinished")
        return verdict


@functools.cache
def porcupine() -> Path:
    """The compiled Porcupine checker. Raises `Absent`."""
    need("go")
    home = PLACE.absolute() / "go"
    copy(HERE / "go", home)
    run(["go", "build", "-o", "porcupine", "."], seconds=300, cwd=home)
    return home / "porcupine"


@dataclass(frozen=True)
class Knossos:
    """Jepsen's linearizability checker."""

    name: str = "Knossos"

    def prepare(self) -> str:
        raise Absent("it comes from Clojars through Leiningen, which this bench does not install")

    def check(self, folder: Path, seconds: float) -> CheckerVerdict:
        raise Absent("not driven")


CHECKERS: tuple[Checker, ...] = (
    Python("seriatim", "linearizable"),
    Python("seriatim, all", "all"),
    Porcupine(),
    Python("scan", "scan"),
    Knossos(),
)


@dataclass(frozen=True)
class Task:
    """One history to check: its size, its number of clients, and whether it is broken."""

    operations: int
    clients: int
    fault: bool = False

    @property
    def name(self) -> str:
        """The task in words."""
        broken = ", broken" if self.fault else ""
        return f"{self.operations:,} operations, {self.clients} clients{broken}"

    @property
    def kind(self) -> tuple[int, bool]:
        """What histories of different sizes have in common."""
        return self.clients, self.fault


def tasks(largest: int) -> list[Task]:
    """Sizes by tens for a few clients; other numbers of clients, and broken histories, at two sizes."""
    sizes = [10**k for k in range(3, 8) if 10**k <= largest]
    made = [Task(n, CLIENTS) for n in sizes]
    made += [Task(n, clients) for clients in (2, 64) for n in sizes[:2]]
    made += [Task(n, clients, True) for clients in (2, CLIENTS) for n in sizes[:2]]
    return made


def measure(
    rounds: int,
    seconds: float,
    report: Report,
    largest: int,
    checkers: tuple[Checker, ...] = CHECKERS,
) -> Measured:
    """Each checker in turn on each history. `seconds` is not used: a check ends, or is ended after `SECONDS_MAX`."""
    versions, skipped = prepared(checkers, report)
    rows: list[BenchRow] = []
    gave_up: set[tuple[str, tuple[int, bool]]] = set()
    for task in tasks(largest):
        folder = Path(tempfile.mkdtemp(prefix="seriatim-bench-"))
        try:
            report(f"making {task.name}")
            write(task, folder)
            mine = {c.name: BenchRow(task=task.name, who=c.name, verdict="") for c in checkers}
            for n in range(rounds):
                for checker in checkers:
                    row = mine[checker.name]
                    if checker.name in skipped:
                        continue
                    if (checker.name, task.kind) in gave_up:
                        row.verdict = "unfinished"
                        continue
                    report(f"round {n + 1} of {rounds}: {task.name}, {checker.name}")
                    try:
                        verdict = checker.check(folder, SECONDS_MAX)
                    except Absent as why:
                        row.verdict = f"failed: {why}"
                        continue
                    row.verdict = verdict.verdict
                    if verdict.verdict == "unfinished":
                        gave_up.add((checker.name, task.kind))
                        continue
                    row.seconds.append(verdict.seconds)
                    row.memory.append(verdict.memory)
                    if task.kind == (CLIENTS, False):
                        row.size = task.operations
            rows += [row for row in mine.values() if row.verdict]
        finally:
            shutil.rmtree(folder)
    return Measured(
        part=PART,
        title="Judging the history of a queue",
        command="make bench ARGS=oracle",
        rounds=rounds,
        rows=rows,
        versions=versions,
        skipped=skipped,
        notes=NOTES,
    )


def write(task: Task, folder: Path) -> None:
    """The history in both forms: for us, and as operations."""
    from seriatim_models.history import write_history

    made = histories.operations(task.operations, task.clients, fault=task.fault)
    write_history(folder / "history.jsonl", histories.events(made))
    histories.write_lines(made, folder / "operations.txt")


def check_here(kind: str, folder: Path) -> CheckerVerdict:
    """One check, in this process."""
    return scan(folder) if kind == "scan" else properties(kind, folder)


def properties(kind: str, folder: Path) -> CheckerVerdict:
    """Check with P20 alone, or with every black-box property; in this process."""
    from seriatim_models.history import read_history
    from seriatim_models.properties.blackbox import BLACKBOX

    chosen = [p for p in BLACKBOX if kind == "all" or p.id == "P20"]
    events = read_history(folder / "history.jsonl").events
    begun = time.perf_counter()
    verdicts = {p.check(events).verdict for p in chosen}
    seconds = time.perf_counter() - begun
    return CheckerVerdict("violated" if "violated" in verdicts else "ok", seconds, peak_memory())


def scan(folder: Path) -> CheckerVerdict:
    """The simplest check: no value twice, no value that was never enqueued."""
    lines = [line.split() for line in (folder / "operations.txt").read_text().splitlines()]
    begun = time.perf_counter()
    wrong = False
    enqueued: set[str] = set()
    taken: set[str] = set()
    for _, kind, value, _, _ in lines:
        seen = enqueued if kind == "enq" else taken
        if kind == "enq" or value != str(histories.EMPTY):
            wrong = wrong or value in seen
            seen.add(value)
    wrong = wrong or not taken <= enqueued
    return CheckerVerdict("violated" if wrong else "ok", time.perf_counter() - begun, peak_memory())


if __name__ == "__main__":
    print(msgspec.json.encode(check_here(sys.argv[1], Path(sys.argv[2]))).decode())
