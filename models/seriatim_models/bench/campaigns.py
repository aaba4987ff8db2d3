"""A campaign beside a bare process pool: items of 0.2 s of processor time, over one and more cores."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec

from seriatim_models.bench.explorers import run
from seriatim_models.bench.measure import Measured, Row

PART = "campaign"
MODULE = "seriatim_models.bench.campaigns"
US = "seriatim, Spark"
ITEMS = 100
WORK = 0.2
"""Seconds of processor time of one item."""

NOTES = [
    f"{ITEMS} items of {WORK} s each. The pool only calls a function; the campaign guards each item against hanging, "
    "dying and eating memory, and writes a journal and tables. Its session is warm.",
    "items a second of k cores over those of one core is how it scales.",
]

Tell = Callable[[str], None]


def work(seconds: float) -> None:
    """Keep a processor busy."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def pool(cores: int) -> float:
    """Seconds that a bare process pool takes."""
    with ProcessPoolExecutor(cores) as executor:
        list(executor.map(work, [0.0] * cores))  # so that its processes are there
        begun = time.perf_counter()
        list(executor.map(work, [WORK] * ITEMS))
        return time.perf_counter() - begun


def spark(cores: int) -> float:
    """Seconds that a campaign takes, from its items to its tables."""
    from seriatim_models.pipeline.campaign import campaign
    from seriatim_models.pipeline.items import Item
    from seriatim_models.pipeline.session import session

    started = session(f"local[{cores}]")
    with tempfile.TemporaryDirectory(prefix="seriatim-bench-") as folder:
        campaign(
            started,
            [Item("warm", seed=n, test="work 0") for n in range(cores)],
            Path(folder) / "warm",
        )
        items = [Item("work", seed=n, test=f"work {WORK}") for n in range(ITEMS)]
        begun = time.perf_counter()
        done = campaign(started, items, Path(folder) / "work")
        seconds = time.perf_counter() - begun
    if not done.finished or {o.verdict for o in done.outcomes} != {"ok"}:
        raise AssertionError("the campaign did not do all of its items")
    return seconds


SIDES: dict[str, Callable[[int], float]] = {US: spark, "process pool": pool}


def measure(rounds: int, seconds: float, tell: Tell, largest: int) -> Measured:
    """Both in turn for each number of cores in each round. Neither `seconds` nor `largest` is used."""
    rows: dict[tuple[int, str], Row] = {}
    cores = sorted({1, 2, os.cpu_count() or 1} & set(range(1, (os.cpu_count() or 1) + 1)))
    for n in range(rounds):
        for k in cores:
            for who in SIDES:
                tell(f"round {n + 1} of {rounds}: {k} cores, {who}")
                took = float(
                    run([sys.executable, "-m", MODULE, who, str(k)], seconds=600).split()[-1]
                )
                task = f"{ITEMS} items, {k} core{'s' if k > 1 else ''}"
                row = rows.setdefault((k, who), Row(task=task, who=who, verdict="ok", unit="items"))
                row.seconds.append(took)
                row.rate.append(ITEMS / took)
    return Measured(
        part=PART,
        title="A campaign over cores",
        command="make bench ARGS=campaign",
        rounds=rounds,
        rows=list(rows.values()),
        versions={},
        notes=NOTES,
        us=US,
    )


if __name__ == "__main__":
    print(msgspec.json.encode(SIDES[sys.argv[1]](int(sys.argv[2]))).decode())
