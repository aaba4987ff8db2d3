"""`make bench-spark`: one check (P4, first deliveries in order) by plain Python, DuckDB, Polars and this pipeline.

All run in turn in every round, over the same synthetic history, each in a process of its own but for the warm Spark
session; each must come to the same two numbers. DuckDB and Polars get an environment of their own under the output
folder. Written: ``bench.json``, and a table on standard output.

- *plain*: a lean loop over the columns of the raw Parquet files, one process.
- *chunks*: this pipeline's own summaries over its chunk files, in one process without Spark.
- *spark*: the same chunk files in a warm session.
- *ingest*, and *bucketing*: what ingest costs, and what Spark's own repartition, sort and write of the same rows does.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from seriatim_models.pipeline import chunks
from seriatim_models.pipeline.generate import generate
from seriatim_models.pipeline.runs import plan
from seriatim_models.pipeline.session import session
from seriatim_models.pipeline.summarise import Fold, finished
from seriatim_models.properties.blackbox.order import FirstDeliveryOrder

PEERS = ("duckdb>=1,<2", "polars>=1,<2", "pyarrow")
SIZES = (10**6, 3 * 10**6, 10**7)
MIB = 2**20

PLAIN = """
import pyarrow.parquet as pq
top, tested, wrong = {}, 0, set()
for file in files:
    for batch in pq.ParquetFile(file).iter_batches(65536, columns=NAMES):
        for ev, red, pub, q, conn, ch, gen, pseq in zip(*(batch[n].to_pylist() for n in NAMES)):
            if ev != "deliver" or red or pseq is None:
                continue
            key = pub, q, conn, ch, gen
            last = top.get(key)
            if last is None:
                top[key] = pseq
            else:
                tested += 1
                if pseq < last:
                    wrong.add(key)
                else:
                    top[key] = pseq
said = tested, len(wrong)
"""

DUCKDB = """
import duckdb
duckdb.execute("set threads = 2")
said = duckdb.sql('''
    with a as (
        select pub, q, conn, ch, gen, pseq,
          max(pseq) over (partition by pub, q, conn, ch, gen order by i
            rows between unbounded preceding and 1 preceding) as top
        from read_parquet($files) where ev = 'deliver' and not redelivered and pseq is not null
    )
    select count(top), count(distinct case when pseq < top then (pub, q, conn, ch, gen) end) from a
''', params={"files": files}).fetchone()
"""

POLARS = """
import polars as pl
keys = ["pub", "q", "conn", "ch", "gen"]
rows = pl.scan_parquet(files).filter((pl.col("ev") == "deliver") & ~pl.col("redelivered"))
rows = rows.filter(pl.col("pseq").is_not_null())
rows = rows.select([*keys, "i", "pseq"]).sort("i")
rows = rows.with_columns(top=pl.col("pseq").cum_max().shift(1).over(keys))
out = rows.select(
    pl.col("top").count(),
    pl.struct(keys).filter(pl.col("pseq") < pl.col("top")).n_unique().alias("wrong"),
).collect()
said = out.row(0)
"""

_RUN = """
import json, resource, sys, time
files = json.loads(sys.argv[1])
NAMES = ["ev", "redelivered", "pub", "q", "conn", "ch", "gen", "pseq"]
begun = time.perf_counter()
{code}
print(json.dumps([time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, *said]))
"""


def apart(python: str, code: str, files: Sequence[str]) -> tuple[float, int, tuple[int, int]]:
    """Seconds without start-up and imports of the interpreter, peak bytes, and what was found."""
    run = subprocess.run(
        [python, "-c", _RUN.format(code=code), json.dumps(list(files))],
        capture_output=True, text=True, check=True,
        env=os.environ | {"POLARS_MAX_THREADS": "2"},
    )  # fmt: skip
    # The last line: DuckDB draws a bar of progress before it.
    seconds, peak, tested, wrong = json.loads(run.stdout.strip().splitlines()[-1])
    return seconds, peak, (tested, wrong)


def environment(out: Path) -> str:
    """The interpreter of the peers' environment, made if it is not there."""
    home = out / "peers"
    python = home / "bin" / "python"
    if not (home / "made").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PEERS], check=True)
        (home / "made").touch()
    return str(python)


def one_process(folder: Path) -> tuple[int, int]:
    """The pipeline's own work in one process."""
    manifest = chunks.read_manifest(folder)
    (task,) = chunks.tasks(folder, manifest, 1)
    fold = Fold([FirstDeliveryOrder()], task.shelves, first=True, measure=False)
    for file in task.files:
        fold.file(file)
    prop = fold.properties[0]
    found = [finished(prop, s, task.files) for s in fold.summaries.values()]
    return sum(f.n_tested for f in found), sum(f.n_violations for f in found)


CHUNKS = """
from pathlib import Path
from seriatim_models.pipeline.bench import one_process
begun = time.perf_counter()
said = one_process(Path(files[0]))
"""


@contextmanager
def peak_of_children(into: list[int]) -> Iterator[None]:
    """The most memory that this process and its descendants held together, sampled ten times a second."""
    stop = threading.Event()
    most = [0]

    def sample() -> None:
        while not stop.wait(0.1):
            most[0] = max(most[0], _held(os.getpid()))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        into.append(most[0])


def _held(root: int) -> int:
    """Proportional set sizes would be fairer and cost too much; resident pages shared by forks count once each."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(
                    (entry / "stat").read_text().rpartition(")")[2].split()[1]
                )
            except OSError:
                continue
    mine = {root}
    while more := {p for p, parent in parents.items() if parent in mine} - mine:
        mine |= more
    total = 0
    for pid in mine:
        try:
            fields = Path(f"/proc/{pid}/statm").read_text().split()
        except OSError:
            continue
        total += (int(fields[1]) - (int(fields[2]) if pid != root else 0)) * resource.getpagesize()
    return total


def measure(
    out: Path, sizes: Sequence[int], rounds: int, hot: float, console: Console
) -> dict[str, object]:
    """All of it; the result is what is written as JSON."""
    from seriatim_models.pipeline.ingest import ingest
    from seriatim_models.pipeline.spark import audit_chunks

    python = environment(out)
    spark = session()
    results: list[dict[str, object]] = []
    for size in sizes:
        for share in (0.0, hot) if size == sizes[0] else (0.0,):
            data = out / f"history-{size}-{share:g}"
            if not (data / "planted.json").exists():
                shutil.rmtree(data, ignore_errors=True)
                console.print(f"making {size:,} events")
                generate(data, size, queues=1000, hot=share, each=3)
            files = [str(p) for p in sorted(data.glob("*.parquet"))]
            folder = out / f"chunks-{size}-{share:g}"
            shutil.rmtree(folder, ignore_errors=True)
            begun = time.perf_counter()
            ingest(spark, plan([data]), folder)
            ingested = time.perf_counter() - begun
            begun = time.perf_counter()
            bucketed(spark, files, out / "bucketed")
            bare = time.perf_counter() - begun
            shutil.rmtree(out / "bucketed", ignore_errors=True)
            peaks: list[int] = []

            def warm(
                folder: Path = folder, peaks: list[int] = peaks
            ) -> tuple[float, int, tuple[int, int]]:
                begun = time.perf_counter()
                with peak_of_children(peaks):
                    audited = audit_chunks(spark, folder, [FirstDeliveryOrder()], measure=False)
                (finding,) = audited.findings
                return (
                    time.perf_counter() - begun,
                    peaks[-1],
                    (finding.n_tested, finding.n_violations),
                )

            sides: dict[str, Callable[[], tuple[float, int, tuple[int, int]]]] = {
                "plain": partial(apart, sys.executable, PLAIN, files),
                "duckdb": partial(apart, python, DUCKDB, files),
                "polars": partial(apart, python, POLARS, files),
                "chunks": partial(apart, sys.executable, CHUNKS, [str(folder)]),
                "spark": warm,
            }
            warm()  # the first job of a session is not what is measured
            seconds: dict[str, list[float]] = {name: [] for name in sides}
            memory: dict[str, int] = dict.fromkeys(sides, 0)
            said: set[tuple[int, int]] = set()
            for number in range(rounds):
                for name, side in sides.items():
                    took, peak, found = side()
                    seconds[name].append(took)
                    memory[name] = max(memory[name], peak)
                    said.add(found)
                    console.print(f"{size:,} hot {share:g} round {number + 1} {name}: {took:.2f} s")
            if len(said) != 1:
                raise AssertionError(f"they do not agree: {said}")
            results.append(
                {
                    "events": size, "hot": share, "seconds": seconds, "memory": memory,
                    "found": said.pop(), "ingest": ingested, "bucketing": bare,
                }
            )  # fmt: skip
    return {
        "schema": "seriatim-bench-spark/1",
        "cores": os.cpu_count(),
        "rounds": rounds,
        "results": results,
    }


def bucketed(spark: object, files: Sequence[str], into: Path) -> None:
    """What Spark does to put the same rows into sorted buckets, and nothing else."""
    from pyspark.sql import SparkSession

    assert isinstance(spark, SparkSession)
    rows = spark.read.parquet(*files).selectExpr("*", f"pmod(hash(q), {chunks.BUCKETS}) as bucket")
    rows.repartition(chunks.BUCKETS, "bucket").sortWithinPartitions("bucket", "i").write.mode(
        "overwrite"
    ).partitionBy("bucket").parquet(str(into))


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """The slope of log time over log size, least squares: 1 is linear."""
    x, y = [math.log(s) for s in sizes], [math.log(s) for s in seconds]
    mx, my = statistics.mean(x), statistics.mean(y)
    return sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True)) / sum(
        (a - mx) ** 2 for a in x
    )


def show(result: dict[str, object], console: Console) -> None:
    """The table."""
    held = result["results"]
    assert isinstance(held, list)
    table = Table(
        "events", "who", "seconds", "events/s", "peak MiB", "spark is so many times as fast"
    )
    for row in held:
        best = {who: statistics.median(s) for who, s in row["seconds"].items()}
        for who, s in best.items():
            ratio = statistics.median(
                a / b for a, b in zip(row["seconds"][who], row["seconds"]["spark"], strict=True)
            )
            size = f"{row['events']:,}" + (f", {row['hot']:.0%} in one queue" if row["hot"] else "")
            table.add_row(
                size,
                who,
                f"{s:.2f}",
                f"{row['events'] / s:,.0f}",
                f"{row['memory'][who] / MIB:,.0f}",
                f"{ratio:.2f}",
            )
        table.add_row(
            "",
            "ingest",
            f"{row['ingest']:.2f}",
            f"{row['events'] / row['ingest']:,.0f}",
            "",
            f"{row['ingest'] / row['bucketing']:.2f} x bare bucketing ({row['bucketing']:.2f} s)",
        )
    console.print(table)
    even = [r for r in held if not r["hot"]]
    if len(even) > 1:
        for who in even[0]["seconds"]:
            slope = exponent(
                [r["events"] for r in even], [statistics.median(r["seconds"][who]) for r in even]
            )
            console.print(f"{who}: time grows with events to the power of {slope:.2f}")


def main() -> None:
    """The command line of the bench."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("build/bench-spark"),
        help="where data, environment and results go",
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="events")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--hot", type=float, default=0.5, help="share of one queue, for the smallest size"
    )
    arguments = parser.parse_args()
    console = Console(highlight=False, width=140)
    arguments.out.mkdir(parents=True, exist_ok=True)
    result = measure(
        arguments.out.resolve(), arguments.sizes, arguments.rounds, arguments.hot, console
    )
    (arguments.out / "bench.json").write_text(json.dumps(result, indent=1) + "\n")
    show(result, console)


if __name__ == "__main__":
    main()
