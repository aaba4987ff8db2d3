"""The stream: how long after a file has come its verdict is there, and how fast a backlog is read."""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import msgspec

from seriatim_workshop.bench import histories
from seriatim_workshop.bench.explorers import run
from seriatim_workshop.bench.measure import BenchRow, Measured, peak_memory

PART = "stream"
MODULE = "seriatim_workshop.bench.streams"
US = "seriatim, Spark"
FILES = 12
OPERATIONS = 1000
"""In each file; two events each."""
RUNS = 4
EACH = 500_000
"""Runs that recorders completed, as Parquet, and the events of each."""
PATIENCE = 180.0
"""Seconds after which a verdict that has not come is a fault."""

NOTES = [
    f"{FILES} histories of {2 * OPERATIONS:,} events, in each of which two values come out in each other's place.",
    "latency: one file a second is put into the folder; from then until its violation is reported (median).",
    f"whole: {RUNS} runs of {EACH:,} generated events of a right broker, completed, as Parquet; judged by columns.",
    "backlog and whole: all files are there before the stream; from its first batch to its last. The session is warm.",
]

Report = Callable[[str], None]


class Timing(msgspec.Struct):
    """One round: seconds until a verdict, for the backlog and for the whole runs, and peak memory in bytes."""

    latency: float
    backlog: float
    whole: float
    memory: int


def write(folder: Path) -> list[Path]:
    """The histories, each a run of its own, ready to be moved."""
    from seriatim_models.history import write_history
    from seriatim_models.history.header import Header

    made = []
    for n in range(FILES):
        file = folder / f"r{n}.jsonl"
        operations = histories.operations(OPERATIONS, 8, n, fault=True)
        write_history(file, histories.events(operations), Header(run=file.stem))
        made.append(file)
    return made


def write_whole(folder: Path) -> None:
    """The runs that recorders completed."""
    from seriatim_models.pipeline.synthetic.generate import generate

    for n in range(RUNS):
        generate(folder / f"g{n}", EACH, queues=200, kinds=(), seed=n, run=f"g{n}")


def timed() -> Timing:
    """One round, in this process."""
    from seriatim_models.pipeline.session import session
    from seriatim_models.pipeline.stream.streaming import Stream, StreamProgress
    from seriatim_models.properties.blackbox import BLACKBOX

    spark = session()

    def of_all(files: Path, out: str) -> float:
        """Seconds for files that are there."""
        begun = time.perf_counter()
        Stream(spark, files, files.with_name(out), BLACKBOX).run(once=True)
        return time.perf_counter() - begun

    with tempfile.TemporaryDirectory(prefix="seriatim-bench-") as name:
        top = Path(name)
        for folder in ("made", "backlog", "growing"):
            (top / folder).mkdir()
        files = write(top / "made")
        for file in files:
            (top / "backlog" / file.name).write_bytes(file.read_bytes())
        of_all(top / "backlog", "warm")
        backlog = of_all(top / "backlog", "out-backlog")
        write_whole(top / "generated")
        (top / "whole").mkdir()
        for file in (top / "generated").glob("*/*.parquet"):
            file.rename(top / "whole" / f"{file.parent.name}-{file.name}")
        whole = of_all(top / "whole", "out-whole")

        came: dict[str, float] = {}
        reported: dict[str, float] = {}

        def note(progress: StreamProgress) -> None:
            now = time.perf_counter()
            for violation in progress.violated:
                reported.setdefault(violation.split()[0], now)

        def drop() -> None:
            for file in files:
                came[file.stem] = time.perf_counter()
                file.rename(top / "growing" / file.name)
                time.sleep(1.0)

        stream = Stream(spark, top / "growing", top / "out-growing", BLACKBOX, on_progress=note)
        thread = threading.Thread(target=drop, daemon=True)
        thread.start()
        until = time.perf_counter() + PATIENCE
        stream.run(stopping=lambda: len(reported) == FILES or time.perf_counter() > until)
        thread.join()
    if missing := set(came) - set(reported):
        raise AssertionError(f"no verdict in {PATIENCE:.0f} s on {', '.join(sorted(missing))}")
    latency = median(reported[r] - came[r] for r in came)
    return Timing(latency, backlog, whole, peak_memory())


def measure(rounds: int, seconds: float, report: Report, largest: int) -> Measured:
    """Each round in a process of its own. Neither `seconds` nor `largest` is used."""
    events = 2 * OPERATIONS * FILES
    latency = BenchRow(task="latency", who=US, verdict="ok")
    backlog = BenchRow(task=f"backlog of {events:,} events", who=US, verdict="ok", unit="events")
    whole = BenchRow(
        task=f"whole runs, {RUNS * EACH:,} events", who=US, verdict="ok", unit="events"
    )
    for n in range(rounds):
        report(f"round {n + 1} of {rounds}")
        timing = msgspec.json.decode(
            run([sys.executable, "-m", MODULE], seconds=600).splitlines()[-1], type=Timing
        )
        latency.seconds.append(timing.latency)
        backlog.seconds.append(timing.backlog)
        backlog.rate.append(events / timing.backlog)
        backlog.memory.append(timing.memory)
        whole.seconds.append(timing.whole)
        whole.rate.append(RUNS * EACH / timing.whole)
    return Measured(
        part=PART,
        title="A stream of growing recordings",
        command="make bench ARGS=stream",
        rounds=rounds,
        rows=[latency, backlog, whole],
        versions={},
        notes=NOTES,
        us=US,
    )


if __name__ == "__main__":
    print(msgspec.json.encode(timed()).decode())
