"""How our costs grow: of an execution with its steps, a search with its executions, an audit with its events.

Each point is measured in a process of its own, so that its memory is its own.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from seriatim_workshop.bench import histories
from seriatim_workshop.bench.explorers import run
from seriatim_workshop.bench.measure import BenchRow, Measured, peak_memory

PART = "growth"
MODULE = "seriatim_workshop.bench.growing"
EXECUTIONS = 200
STEPS = (20, 40, 80, 160, 320)
SEARCHES = (300, 1000, 3000, 10_000)

NOTES = [
    "an execution by its steps: two threads that increment a racy counter, the first 200 traces of it.",
    "a search by its executions: a Michael-Scott queue with two enqueuers and two dequeuers, cut off after so many.",
    "an audit by its events: the local engine with every black-box property, from a file to the report.",
]

Report = Callable[[str], None]


class Point(msgspec.Struct):
    """The cost of one size: seconds, and peak memory in bytes."""

    seconds: float
    memory: int


def execution(steps: int) -> Point:
    """One execution of so many steps, averaged over the first traces."""
    from seriatim_models.explorer import World, explore

    def program(world: World) -> None:
        counter = world.cell(0, name="counter")

        def increment() -> None:
            for _ in range(steps // 4):
                counter.set(counter.get() + 1)

        for _ in range(2):
            world.spawn(increment)

    begun = time.perf_counter()
    explore(program, max_executions=EXECUTIONS)
    return Point((time.perf_counter() - begun) / EXECUTIONS, peak_memory())


def search(executions: int) -> Point:
    """A search of so many executions."""
    from seriatim_models.explorer import explore
    from seriatim_workshop.bench.programs import michael_scott

    begun = time.perf_counter()
    explore(michael_scott(2, 2), max_executions=executions)
    return Point(time.perf_counter() - begun, peak_memory())


def audit(events: int) -> Point:
    """An audit of a file with so many events; writing the file is not in it."""
    from seriatim_models.pipeline import audit_paths

    with tempfile.TemporaryDirectory(prefix="seriatim-bench-") as folder:
        file = Path(folder) / "history.jsonl"
        # Made in another process, whose memory is not ours.
        run([sys.executable, "-m", MODULE, "write", str(events), str(file)], seconds=600)
        begun = time.perf_counter()
        audit_paths([file], engine="local")
        return Point(time.perf_counter() - begun, peak_memory())


def write(events: int, file: Path) -> None:
    """Write a synthetic history of so many events to `file`."""
    from seriatim_models.history import write_history

    write_history(file, histories.events(histories.operations(events // 2, 8)))


COSTS: dict[str, Callable[[int], Point]] = {
    "an execution by its steps": execution,
    "a search by its executions": search,
    "an audit by its events": audit,
}


def measure(rounds: int, seconds: float, report: Report, largest: int) -> Measured:
    """`seconds` is not used: each point takes what it takes."""
    sizes = {
        "an execution by its steps": STEPS,
        "a search by its executions": SEARCHES,
        "an audit by its events": tuple(10**k for k in range(4, 8) if 10**k <= largest),
    }
    rows = []
    for name in COSTS:
        for size in sizes[name]:
            row = BenchRow(task=f"{size:,} {name.split()[-1]}", who=name, verdict="ok", size=size)
            for n in range(rounds):
                report(f"round {n + 1} of {rounds}: {name}, {size:,}")
                output = run([sys.executable, "-m", MODULE, name, str(size)], seconds=1800)
                point = msgspec.json.decode(output, type=Point)
                row.seconds.append(point.seconds)
                row.memory.append(point.memory)
            rows.append(row)
    return Measured(
        part=PART,
        title="How our costs grow",
        command="make bench ARGS=growth",
        rounds=rounds,
        rows=rows,
        versions={},
        notes=NOTES,
    )


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(int(sys.argv[2]), Path(sys.argv[3]))
    else:
        print(msgspec.json.encode(COSTS[sys.argv[1]](int(sys.argv[2]))).decode())
