"""A whole audit, from a file to its report with every black-box property: processor time and memory.

    python -m seriatim_workshop.bench.whole_audit [EVENTS [rabbitmq] [broker] [api] [jobs=N]]

rabbitmq: the two recordings of RabbitMQ in `tests/data`, copied one after another, each copy with its own names and
time, as JSON lines. broker: what `generate` makes without violations, 1000 queues, recorded inside the broker, as
Parquet. api: a FIFO queue whose eight clients poll with auto-ack, recorded by them, as JSON lines.
jobs=N: as `seriatim audit --jobs N`; else 1. Processor time and memory are those of the first process.
Each is judged in a process of its own, after it was made in another one.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path

import msgspec

from seriatim_models.history import Event, Header, read_history, write_history
from seriatim_models.pipeline import audit_paths
from seriatim_models.pipeline.synthetic.generate import generate
from seriatim_workshop.bench import growing
from seriatim_workshop.bench.explorers import run
from seriatim_workshop.bench.measure import peak_memory

EVENTS = 1_000_000
MODULE = "seriatim_workshop.bench.whole_audit"
DATA = Path(__file__).parents[3] / "tests" / "data"
RECORDINGS = ("rabbit-classic-lockstep", "rabbit-classic-competing")


class AuditCost(msgspec.Struct):
    """What one audit took: seconds of a processor and of the clock, peak bytes, and how many verdicts of each."""

    processor: float
    clock: float
    memory: int
    verdicts: dict[str, int]


def copied(recordings: list[list[Event]]) -> Iterator[Event]:
    """The events of some recordings in turns, without end: each copy follows the one before, with names of its own."""
    index, begin = count(1), 0
    for n in count():
        events = recordings[n % len(recordings)]
        stamps = [e.t for e in events if e.t is not None]
        for e in events:
            named = {
                name: f"{n}.{v}" for name in ("q", "conn", "m", "pub") if (v := getattr(e, name))
            }
            listed = None if e.ms is None else [f"{n}.{m}" for m in e.ms]
            t = None if e.t is None else e.t - stamps[0] + begin
            defaults = {"run": "", "rec": "", "lvl": "", "clk": ""}  # those of the header
            yield msgspec.structs.replace(e, i=next(index), t=t, ms=listed, **defaults, **named)
        begin += max(stamps) - stamps[0] + 1


def write_recorded(events: int, file: Path) -> None:
    """Write a copied recording of RabbitMQ with so many events."""
    recorded = [read_history(DATA / f"{name}.jsonl.gz") for name in RECORDINGS]
    header = Header(run="rabbitmq", rec="pika", lvl="api", broker=recorded[0].header.broker)
    write_history(file, islice(copied([r.events for r in recorded]), events), header)


def write_generated(events: int, file: Path) -> None:
    """Write a folder of Parquet with at least so many events of a right broker."""
    generate(file, events, queues=1000, kinds=())


KINDS: dict[str, tuple[str, Callable[[int, Path], None]]] = {
    "rabbitmq": ("recorded.jsonl", write_recorded),
    "broker": ("generated", write_generated),
    "api": ("fifo.jsonl", growing.write),
}
"""The name of the file or folder, and who writes it."""


def judge(path: Path, jobs: int) -> AuditCost:
    """Audit, begun in this process."""
    processor, clock = time.process_time(), time.perf_counter()
    report = audit_paths([path], alone=True, jobs=jobs)
    verdicts = [str(f.verdict) for f in report.findings]
    return AuditCost(
        time.process_time() - processor,
        time.perf_counter() - clock,
        peak_memory(),
        {v: verdicts.count(v) for v in dict.fromkeys(verdicts)},
    )


def main(events: int, kinds: list[str], jobs: int = 1) -> None:
    """Print a line for each kind."""
    for kind in kinds or KINDS:
        with tempfile.TemporaryDirectory(prefix="seriatim-bench-") as folder:
            file = Path(folder) / KINDS[kind][0]
            run([sys.executable, "-m", MODULE, "write", kind, str(events), str(file)], seconds=3600)
            output = run(
                [sys.executable, "-m", MODULE, "judge", str(file), str(jobs)], seconds=3600
            )
        cost = msgspec.json.decode(output, type=AuditCost)
        found = ", ".join(f"{n} {verdict}" for verdict, n in cost.verdicts.items())
        print(f"{kind}, {events:,} events: {1e6 * cost.processor / events:.1f} us of a processor each, "
              f"{cost.clock:.1f} s by the clock, peak {cost.memory / 2**20:.0f} MB; {found}", flush=True)  # fmt: skip


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["write", kind, events, file]:
            KINDS[kind][1](int(events), Path(file))
        case ["judge", path, jobs]:
            print(msgspec.json.encode(judge(Path(path), int(jobs))).decode())
        case [events, *kinds, jobs] if jobs.startswith("jobs="):
            main(int(events), kinds, int(jobs.removeprefix("jobs=")))
        case [events, *kinds]:
            main(int(events), kinds)
        case _:
            main(EVENTS, [])
