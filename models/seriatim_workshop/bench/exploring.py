"""The explorer beside its peers: executions a second, time to the end, redundancy, and mistakes found."""

from __future__ import annotations

from collections.abc import Callable

from seriatim_workshop.bench.explorers import EXPLORERS, Absent, Explorer, prepared
from seriatim_workshop.bench.measure import BenchRow, Measured
from seriatim_workshop.bench.programs import MISTAKES, SPEED

PART = "explorer"
MISTAKE_SECONDS = 10.0
"""How long each may look for a mistake."""

NOTES = [
    "An execution is one run of the program from start to end. What one costs differs: we switch between operations "
    "of a controlled host, frontrun and interleave-test between bytecodes or lines of plain Python, Lincheck between "
    "instructions of the JVM; loom also explores what a weak memory model allows; Spin stores states.",
    "count: executions (or states) of one whole search; + if the time was over first. Our count is that of the "
    "Mazurkiewicz traces, which is optimal.",
    "Times are of the search; Spin's include starting a process.",
    "shuttle searches exhaustively without reduction; shuttle-random is its usual way, which never ends by itself.",
    "A mistake is missed if the verdict is that nothing is wrong; not found, if the time was over.",
]

Report = Callable[[str], None]


def measure(
    rounds: int,
    seconds: float,
    report: Report,
    largest: int = 0,
    explorers: tuple[Explorer, ...] = EXPLORERS,
) -> Measured:
    """Each participant in turn in each round; mistakes are searched for in the first. There is no `largest` size."""
    rows: dict[tuple[str, str], BenchRow] = {}
    versions, skipped = prepared(explorers, report)
    for n in range(rounds):
        for program in [*SPEED, *(MISTAKES if n == 0 else ())]:
            for explorer in explorers:
                if explorer.name not in versions:
                    continue
                report(f"round {n + 1} of {rounds}: {program}, {explorer.name}")
                _add(rows, explorer, program, seconds)
    return Measured(
        part=PART,
        title="Exploring every schedule",
        command="make bench-explorer",
        rounds=rounds,
        rows=list(rows.values()),
        versions=versions,
        skipped=skipped,
        notes=NOTES,
    )


def _add(
    rows: dict[tuple[str, str], BenchRow], explorer: Explorer, program: str, seconds: float
) -> None:
    mistaken = program in MISTAKES
    row = rows.setdefault(
        (program, explorer.name),
        BenchRow(task=program, who=explorer.name, verdict="", unit=explorer.unit),
    )
    try:
        found = explorer.explore(program, MISTAKE_SECONDS if mistaken else seconds)
    except Absent as why:
        row.verdict = f"failed: {why}"
        return
    row.verdict, row.count = found.verdict, found.executions
    if found.verdict.startswith("refused"):
        return
    row.rate.append(found.speed)
    if found.seconds is not None:
        row.seconds.append(found.seconds)
    if mistaken:
        if found.verdict == "ok":
            row.verdict = "missed: reports that nothing is wrong"
        elif not found.verdict.startswith("violated"):
            row.verdict = "not found"
