"""The pipeline beside plain Python, DuckDB and Polars: one check (P4, first deliveries in order) by every participant;
and every black-box property, by the pipeline on Spark and in one process.

All run in turn in every round over the same synthetic history, each in a process of its own but for the warm Spark
session, and must come to the same two numbers. DuckDB and Polars get an environment of their own.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from seriatim_models.properties.base import Finding
from seriatim_workshop.bench.explorers import PLACE, Absent, run
from seriatim_workshop.bench.measure import BenchRow, Measured

PART = "pipeline"
US = "seriatim, Spark"
PEERS = ("duckdb>=1,<2", "polars>=1,<2", "pyarrow")
SIZES = (10**6, 3 * 10**6, 10**7, 2 * 10**7, 5 * 10**7)
ALL = 3 * 10**6
"""The largest history audited with every property here: half a minute for each million events."""
HOT = 0.5
"""What one queue holds of all events in the uneven history."""

NOTES = [
    "plain Python, DuckDB, Polars: the check over the raw Parquet files; seriatim, one process, and seriatim, Spark "
    "(a warm session): over the chunk files that ingest made of them once.",
    "ingest beside what Spark's own repartition, sort and write of the same rows costs. The peak of Spark is that of "
    "all its processes together.",
]

Report = Callable[[str], None]
Side = Callable[[], tuple[float, int, tuple[int, int]]]
"""Seconds, peak bytes, and what was found: cases tested, and violations."""

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
result = tested, len(wrong)
"""

DUCKDB = """
import duckdb
duckdb.execute("set threads = 2")
result = duckdb.sql('''
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
result = out.row(0)
"""

_RUN = """
import json, sys, time
files = json.loads(sys.argv[1])
NAMES = ["ev", "redelivered", "pub", "q", "conn", "ch", "gen", "pseq"]
begun = time.perf_counter()
{code}
taken = time.perf_counter() - begun
peak = next(int(l.split()[1]) * 1024 for l in open("/proc/self/status") if l.startswith("VmHWM"))
print(json.dumps([taken, peak, *result]))
"""


def apart(python: str, code: str, files: Sequence[str]) -> tuple[float, int, tuple[int, int]]:
    """Seconds without start-up and imports of the interpreter, peak bytes, and what was found. Raises `Absent`."""
    program = _RUN.format(code=code)
    env = os.environ | {"POLARS_MAX_THREADS": "2"}
    ended = subprocess.run(
        [python, "-c", program, json.dumps(list(files))],
        capture_output=True,
        text=True,
        check=False,
        env=env,
    )
    if ended.returncode:
        raise Absent(f"failed: {ended.stderr.strip().splitlines()[-1:]}")
    seconds, peak, tested, wrong = json.loads(ended.stdout.strip().splitlines()[-1])
    return seconds, peak, (tested, wrong)


def environment() -> str:
    """The interpreter of the peers' environment, made if it is not there. Raises `Absent`."""
    home = PLACE.absolute() / "pipeline"
    python = home / "bin" / "python"
    if not (home / "made").exists():
        run([sys.executable, "-m", "venv", "--clear", home], seconds=120)
        run([python, "-m", "pip", "install", "-q", *PEERS], seconds=600)
        (home / "made").touch()
    return str(python)


def versions(python: str) -> dict[str, str]:
    """Of the peers, as they are installed."""
    result = run(
        [python, "-c", "import duckdb, polars; print(duckdb.__version__, polars.__version__)"],
        seconds=60,
    )
    duckdb, polars = result.split()
    return {"DuckDB": duckdb, "Polars": polars}


def one_process(folder: Path, ids: Sequence[str] | None) -> tuple[int, int]:
    """The pipeline's own work in one process, for some properties or all."""
    from seriatim_models.pipeline import chosen_of
    from seriatim_models.pipeline.audit.inline import Inline
    from seriatim_models.pipeline.audit.tasks import audit_chunks

    return _numbers(audit_chunks(Inline(), folder, chosen_of(ids), measure=False).findings)


def _numbers(found: Sequence[Finding]) -> tuple[int, int]:
    return sum(f.n_tested for f in found), sum(f.n_violations for f in found)


CHUNKS = """
from pathlib import Path
from seriatim_workshop.bench.pipelines import one_process
begun = time.perf_counter()
result = one_process(Path(files[0]), {ids})
"""

BUCKETED = """
from pathlib import Path
from seriatim_workshop.bench.pipelines import bucketed
from seriatim_models.pipeline.session import session
session().range(1).count()
begun = time.perf_counter()
bucketed(files[1:], Path(files[0]))
result = 0, 0
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


def measure(rounds: int, seconds: float, report: Report, largest: int) -> Measured:
    """Sizes up to `largest`, the smallest also with one queue that holds half. `seconds` is not used."""
    from seriatim_models.pipeline.session import require

    require()
    python = environment()
    rows: list[BenchRow] = []
    with _folder() as folder:
        for size in [s for s in SIZES if s <= largest] or [largest]:
            for hot in (0.0,) if rows else (0.0, HOT):
                rows += _one(folder, size, hot, python, rounds, report)
    return Measured(
        part=PART,
        title="Auditing many events",
        command="make bench-spark",
        rounds=rounds,
        rows=rows,
        versions=versions(python),
        notes=NOTES,
        us=US,
    )


def history(folder: Path, size: int, hot: float = 0.0) -> list[str]:
    """Write what all participants read, with three violations of each kind; returns its files.

    Without those of priorities: each priority is a line of its own to P4, of which the peers' check knows nothing.
    """
    from seriatim_models.pipeline.synthetic.generate import generate
    from seriatim_models.pipeline.synthetic.injected import KINDS

    kinds = [k.id for k in KINDS if k.property != "P22"]
    generate(folder, size, queues=1000, kinds=kinds, hot=hot, each=3)
    return [str(p) for p in sorted(folder.glob("*.parquet"))]


@contextmanager
def _folder() -> Iterator[Path]:
    """A place for histories; a few gigabytes at the largest sizes."""
    folder = Path("build/bench/histories").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _one(
    folder: Path, size: int, hot: float, python: str, rounds: int, report: Report
) -> list[BenchRow]:
    from seriatim_models.pipeline import chosen_of
    from seriatim_models.pipeline.audit.ingest import ingest
    from seriatim_models.pipeline.audit.runs import plan
    from seriatim_models.pipeline.audit.spark import OnSpark
    from seriatim_models.pipeline.audit.tasks import audit_chunks
    from seriatim_models.pipeline.session import session

    spark = session()
    task = f"{size:,} events" + (f", {hot:.0%} in one queue" if hot else "")
    data, kept = folder / f"{size}-{hot:g}", folder / f"chunks-{size}-{hot:g}"
    report(f"making {task}")
    files = history(data, size, hot)
    report(f"ingest of {task}")
    begun = time.perf_counter()
    ingest(OnSpark(spark), plan([data]), kept)
    ingested = time.perf_counter() - begun
    # In a process of its own: the memory that its shuffle takes is not released.
    bare, _, _ = apart(sys.executable, BUCKETED, [str(folder / "bucketed"), *files])
    shutil.rmtree(folder / "bucketed", ignore_errors=True)

    def warm(ids: Sequence[str] | None) -> tuple[float, int, tuple[int, int]]:
        peaks: list[int] = []
        begun = time.perf_counter()
        with peak_of_children(peaks):
            audited = audit_chunks(OnSpark(spark), kept, chosen_of(ids), measure=False)
        return time.perf_counter() - begun, peaks[0], _numbers(audited.findings)

    warm(["P4"])  # the first job of a session is not what is measured
    one = "seriatim, one process"
    rows = _rounds(
        task,
        size,
        not hot,
        {
            US: partial(warm, ["P4"]),
            one: partial(apart, sys.executable, CHUNKS.format(ids=["P4"]), [str(kept)]),
            "plain Python": partial(apart, sys.executable, PLAIN, files),
            "DuckDB": partial(apart, python, DUCKDB, files),
            "Polars": partial(apart, python, POLARS, files),
        },
        rounds,
        report,
    )
    if size <= ALL:  # of no size: what grows is the one check
        every = partial(apart, sys.executable, CHUNKS.format(ids=None), [str(kept)])
        task_of_all = f"{task}, every property"
        rows += _rounds(
            task_of_all, size, False, {US: partial(warm, None), one: every}, rounds, report
        )
    shutil.rmtree(data)
    shutil.rmtree(kept)
    return [*rows, *_ingest_rows(task, size, {US: ingested, "bare bucketing": bare})]


def _ingest_rows(task: str, size: int, seconds: dict[str, float]) -> list[BenchRow]:
    """What the ingest took, and what Spark's own repartition, sort and write took."""
    return [
        BenchRow(
            task=f"ingest of {task}",
            who=who,
            verdict="ok",
            unit="events",
            seconds=[s],
            rate=[size / s],
        )
        for who, s in seconds.items()
    ]


def _rounds(
    task: str, size: int, even: bool, sides: Mapping[str, Side], rounds: int, report: Report
) -> list[BenchRow]:
    """Each side in turn, so many times. Raises AssertionError if their results differ."""
    rows = {
        who: BenchRow(task=task, who=who, verdict="ok", unit="events", size=size if even else None)
        for who in sides
    }
    result: set[tuple[int, int]] = set()
    for n in range(rounds):
        for who, side in sides.items():
            report(f"round {n + 1} of {rounds}: {task}, {who}")
            took, peak, found = side()
            rows[who].seconds.append(took)
            rows[who].rate.append(size / took)
            rows[who].memory.append(peak)
            result.add(found)
    if len(result) != 1:
        raise AssertionError(f"they do not agree: {result}")
    return list(rows.values())


def bucketed(files: Sequence[str], into: Path) -> None:
    """What Spark does to put the same rows into sorted buckets, and nothing else."""
    from seriatim_models.pipeline.audit import chunks
    from seriatim_models.pipeline.session import session

    rows = session().read.parquet(*files)
    rows = rows.selectExpr("*", f"pmod(hash(q), {chunks.BUCKETS}) as bucket")
    spread = rows.repartition(chunks.BUCKETS, "bucket").sortWithinPartitions("bucket", "i")
    spread.write.mode("overwrite").partitionBy("bucket").parquet(str(into))
