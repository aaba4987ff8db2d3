"""A campaign beside a bare process pool: items of 0.2 s of processor time, over one and more cores."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from seriatim_workshop.bench.campaign_work import busy, busy_item
from seriatim_workshop.bench.explorers import run
from seriatim_workshop.bench.measure import BenchRow, Measured, Series

PART = "campaign"
MODULE = "seriatim_workshop.bench.campaigns"
US = "seriatim, Spark"
POOL = "process pool"
ITEMS = 200
WORK = 0.2
"""Seconds of processor time of one item."""

NOTES = [
    f"{ITEMS} items of {WORK} s of processor time each. The pool (multiprocessing.Pool, one item at a time) only calls "
    "a function; the campaign isolates each item, so that it may hang, die or take all memory, and writes a "
    "checkpoint log and tables. Its session is warm. Who goes first changes from round to round.",
    "items a second of k cores over those of one core is how it scales.",
    "processor time is that of all processes of a side together, Java's too, between the same two moments: "
    "a busy machine disturbs it less than the clock.",
]

Report = Callable[[str], None]


class Took(msgspec.Struct):
    """What a side took, in seconds."""

    clock: float = 0.0
    processor: float = 0.0
    """0 where there is no /proc."""


def processor() -> float:
    """Seconds of processor time of this process and all below it, with those that have ended and were waited for."""
    tick = os.sysconf("SC_CLK_TCK")
    below: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        process = int(folder.name)
        below.setdefault(int(fields[1]), []).append(process)
        used[process] = sum(map(int, fields[11:15])) / tick
    waiting, total = [os.getpid()], 0.0
    while waiting:
        process = waiting.pop()
        total += used.get(process, 0.0)
        waiting += below.get(process, [])
    return total


@contextmanager
def timed() -> Iterator[Took]:
    """Time its body: seconds of the clock, and of the processor with all processes below."""
    took = Took()
    clock, before = time.perf_counter(), processor()
    yield took
    took.clock, took.processor = time.perf_counter() - clock, processor() - before


def pool(cores: int) -> Took:
    """What a bare process pool takes."""
    with multiprocessing.Pool(cores) as running:
        list(running.imap_unordered(busy, [0.0] * cores))  # so that its processes are there
        with timed() as took:
            list(running.imap_unordered(busy, [WORK] * ITEMS))
    return took


def spark(cores: int) -> Took:
    """What a campaign takes, from its items to its tables."""
    from seriatim_models.pipeline.campaign.items import SearchItem
    from seriatim_models.pipeline.campaign.run import campaign
    from seriatim_models.pipeline.session import session

    started = session(f"local[{cores}]")
    with tempfile.TemporaryDirectory(prefix="seriatim-bench-") as folder:
        for n in range(3):
            warm = [SearchItem("warm", seed=k, seconds=0.0) for k in range(ITEMS)]
            campaign(started, warm, Path(folder, f"warm-{n}"), work=busy_item)
        items = [SearchItem("work", seed=n, seconds=WORK) for n in range(ITEMS)]
        with timed() as took:
            done = campaign(started, items, Path(folder, "work"), work=busy_item)
    if not done.finished or {r.verdict for r in done.results} != {"ok"}:
        raise AssertionError("the campaign did not do all of its items")
    return took


SIDES: dict[str, Callable[[int], Took]] = {US: spark, POOL: pool}


def measure(rounds: int, seconds: float, report: Report, largest: int) -> Measured:
    """Both in turn for each number of cores in each round. Neither `seconds` nor `largest` is used."""
    rows: dict[tuple[str, str], BenchRow] = {}
    cores = sorted({1, 2, os.cpu_count() or 1} & set(range(1, (os.cpu_count() or 1) + 1)))
    for n in range(rounds):
        for k in cores:
            for who in list(SIDES) if n % 2 else reversed(SIDES):
                report(f"round {n + 1} of {rounds}: {k} cores, {who}")
                output = run([sys.executable, "-m", MODULE, who, str(k)], seconds=600)
                took = msgspec.json.decode(output.splitlines()[-1], type=Took)
                task = f"{ITEMS} items, {k} core{'s' if k > 1 else ''}"
                for name, spent in ((task, took.clock), (f"{task}: processor", took.processor)):
                    if spent:
                        row = BenchRow(task=name, who=who, verdict="ok", unit="items")
                        row = rows.setdefault((name, who), row)
                        row.seconds.append(spent)
                        row.rate.append(ITEMS / spent)
    return Measured(
        part=PART,
        title="A campaign over cores",
        command="make bench ARGS=campaign",
        rounds=rounds,
        rows=sorted(rows.values(), key=lambda r: (r.task, r.who != US)),
        versions={},
        notes=[*NOTES, *overheads(list(rows.values()))],
        us=US,
    )


def overheads(rows: list[BenchRow]) -> list[str]:
    """How much more than the pool we took, in a sentence for each task."""
    out = []
    for task in sorted({r.task for r in rows}):
        by = {r.who: Series(r.seconds) for r in rows if r.task == task}
        if by.keys() == {US, POOL}:
            more = [r - 1 for r in by[US].over(by[POOL]).values]
            out.append(
                f"{task}: {Series(more).median:+.1%} over the pool ({min(more):+.1%} to {max(more):+.1%})"
            )
    return out


if __name__ == "__main__":
    print(msgspec.json.encode(SIDES[sys.argv[1]](int(sys.argv[2]))).decode())
