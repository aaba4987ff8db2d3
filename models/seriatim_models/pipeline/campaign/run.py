"""Searches by the thousand over executors: programs, strategies, seeds and bounds.

    journal/*.jsonl      outcomes as they come, a line each; a campaign that is run again leaves these items out
    stop                 while this file is there, nobody begins anything
    results.parquet      one row an item: verdict and cost
    bugs.parquet         one row a distinct bug: what, where, its canonical trace, the shortest token, how often found
    coverage.parquet     one row a program and mutant: distinct traces, executions, seconds

All are of schema version `SCHEMA`. The folder must be one that driver and executors share.
Items go out in batches, because a task costs tens of milliseconds; each batch works in a child process (`guarded`).
One exhaustive search of a program is shared in the same way, see `subtrees`.
"""

from __future__ import annotations

import base64
import functools
import gc
import shutil
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from seriatim_models.pipeline.audit.ingest import locked
from seriatim_models.pipeline.campaign import checkpoint
from seriatim_models.pipeline.campaign.checkpoint import Journal
from seriatim_models.pipeline.campaign.isolation import kept
from seriatim_models.pipeline.campaign.items import Item, Outcome, preload
from seriatim_models.pipeline.errors import PipelineError

SCHEMA = "seriatim-campaign/2"
SHARES = 4
"""A batch is the part of what is left that each core would get if there were so many times as many: large ones first,
because a task costs, and single items last, because all wait for the last one. 1000 items on 2 cores: 47 batches."""
TIMEOUT = 300.0  # seconds
MEMORY = 2 * 2**30  # bytes
TICK = 0.25  # seconds between looks at the journal

BATCH_SCHEMA = T.StructType([T.StructField("id", T.LongType(), False)])
"""The number of a batch."""
DONE_SCHEMA = T.StructType(
    [T.StructField("item", T.StringType(), False), T.StructField("verdict", T.StringType(), False)]
)
"""What the journal has in full."""
_DONE = pa.schema([("item", pa.string()), ("verdict", pa.string())])

_TEXT, _INT, _REAL = pa.string(), pa.int64(), pa.float64()
TABLES = {
    "results": pa.schema(
        [
            ("id", _TEXT), ("program", _TEXT), ("mutant", _TEXT), ("strategy", _TEXT), ("seed", _INT),
            ("executions", _INT), ("max_steps", _INT), ("preemptions", _INT), ("prefix", _TEXT), ("depth", _INT),
            ("verdict", _TEXT), ("why", _TEXT), ("complete", _INT), ("blocked", _INT), ("cut", _INT),
            ("steps", _INT), ("traces", _INT), ("seconds", _REAL), ("processor", _REAL),
            ("bug", _TEXT), ("token", _TEXT), ("trace", _TEXT),
        ]
    ),
    "bugs": pa.schema(
        [
            ("program", _TEXT), ("mutant", _TEXT), ("bug", _TEXT), ("trace", _TEXT), ("token", _TEXT),
            ("found", _INT),
        ]
    ),
    "coverage": pa.schema(
        [
            ("program", _TEXT), ("mutant", _TEXT), ("verdict", _TEXT), ("exhausted", pa.bool_()),
            ("items", _INT), ("executions", _INT), ("traces", _INT), ("seconds", _REAL), ("processor", _REAL),
        ]
    ),
}  # fmt: skip
"""`seconds` are those of a clock, `processor` those of a processor. In `coverage`, `exhausted` says whether the traces
are all there are."""


class Bounds(msgspec.Struct, frozen=True):
    """What an item may take, and when to stop."""

    timeout: float = TIMEOUT
    """Seconds."""
    memory: int = MEMORY
    """Bytes of address space; 0 for no limit."""
    first_bug: bool = False


class Progress(msgspec.Struct, frozen=True):
    """How far a campaign is."""

    done: int
    total: int | None
    """None while nobody knows."""
    bugs: int
    rate: float
    """Done each second since this start."""
    left: float | None
    """Seconds, estimated; None before there is something to go by."""
    noun: str = "items"


Tell = Callable[[Progress], None]
Found = dict[tuple[str, str, str, str], list[str]]
"""Tokens by program, mutant, bug and canonical trace."""


class Coverage(msgspec.Struct, frozen=True):
    """What was seen of a program, or a mutant in it."""

    verdict: str
    exhausted: bool
    """Whether `traces` are all there are."""
    traces: int


class Campaign(msgspec.Struct):
    """What a campaign came to."""

    outcomes: list[Outcome]
    total: int
    seconds: float

    @property
    def finished(self) -> bool:
        """Whether every item was tried."""
        return len(self.outcomes) == self.total

    def bugs(self) -> Found:
        """Distinct bugs."""
        return bugs(self.outcomes)

    def coverage(self) -> dict[tuple[str, str], Coverage]:
        """What was seen, by program and mutant. Traces are counted from the names that the outcomes carry."""
        of: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
        for o in self.outcomes:
            of[o.item.program, o.item.mutant].append(o)
        out = {}
        for subject, outcomes in of.items():
            verdicts = {o.verdict for o in outcomes}
            names: set[bytes] = set()
            for o in outcomes:
                raw = base64.b64decode(o.names)
                names.update(raw[k : k + 16] for k in range(0, len(raw), 16))
            out[subject] = Coverage(
                "violated" if any(o.bugs for o in outcomes) else "ok" if verdicts == {"ok"} else "inconclusive",
                any(o.item.strategy == "dpor" and o.item.preemptions is None and o.verdict == "ok" for o in outcomes),
                len(names),
            )  # fmt: skip
        return out


def bugs(outcomes: Iterable[Outcome]) -> Found:
    """Distinct bugs: two schedules of one trace are one."""
    out: Found = defaultdict(list)
    for o in outcomes:
        for b in o.bugs:
            out[o.item.program, o.item.mutant, b.bug, b.trace].append(b.token)
    return dict(out)


def shortest(tokens: Collection[str]) -> str:
    """The one to show."""
    return min(tokens, key=lambda t: (len(t), t))


# On the executors


def tried(work: DataFrame, folder: Path, batches: Path, bounds: Bounds) -> DataFrame:
    """`BATCH_SCHEMA` to `DONE_SCHEMA`: tries the items of each batch, which is the file of that number in `batches`.

    Every outcome is in the journal as soon as it is known.
    """
    home, queue = str(folder), str(batches)

    def mapped(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # All of the input first: a worker that leaves some of it is thrown away.
        numbers = [n for b in rows for n in b["id"].to_pylist()]
        items = [i for n in numbers for i in _read(Path(queue), n)]
        flag = Path(home, "stop")
        if not items or flag.exists():
            return
        preload(items)
        _freeze()
        guard = kept(bounds.memory)
        done = []
        with checkpoint.opened(Path(home)) as file:
            for outcome in guard.outcomes(items, bounds.timeout, flag.exists):
                checkpoint.write(file, outcome)
                if bounds.first_bug and outcome.bugs:
                    flag.touch()
                done.append((outcome.id, outcome.verdict))
        yield pa.RecordBatch.from_pylist([{"item": i, "verdict": v} for i, v in done], schema=_DONE)

    return work.mapInArrow(mapped, DONE_SCHEMA)


def _read(queue: Path, number: int) -> list[Item]:
    return msgspec.json.decode((queue / f"{number}.json").read_bytes(), type=list[Item])


@functools.cache
def _freeze() -> None:
    """Spark collects garbage after every task; going through all that is imported took three quarters of a task."""
    gc.freeze()


# On the driver


def batches(items: Sequence[Item], cores: int) -> list[list[Item]]:
    """Items in batches, in an order of no meaning (that of their ids): neighbours tend to take equally long."""
    left = sorted(items, key=lambda i: i.id)
    out = []
    while left:
        size = -(-len(left) // (SHARES * cores))
        out.append(left[:size])
        left = left[size:]
    return out


@contextmanager
def at_work(folder: Path) -> Iterator[Journal]:
    """Alone in the folder, with its journal. Raises `PipelineError` if another campaign is at work there."""
    with locked(folder):
        (folder / "stop").unlink(missing_ok=True)
        for old in folder.glob("batches-*"):  # of one that was killed
            shutil.rmtree(old, ignore_errors=True)
        yield Journal(folder)


def fan_out(
    spark: SparkSession,
    items: Sequence[Item],
    folder: Path,
    bounds: Bounds,
    tick: Callable[[], None],
    stopping: Callable[[], bool],
) -> None:
    """Try items; what comes of them is in the journal. `tick` is called some times a second, and at the end."""
    queue = folder / f"batches-{uuid.uuid4().hex[:12]}"
    queue.mkdir()
    dealt = batches(items, spark.sparkContext.defaultParallelism)
    for n, batch in enumerate(dealt):
        (queue / f"{n}.json").write_bytes(msgspec.json.encode(batch))
    # Numbers, for which no Python worker is needed; and a sink that asks for none.
    numbers = spark.range(0, len(dealt), 1, len(dealt))
    work = tried(numbers, folder, queue, bounds)
    failed: list[BaseException] = []

    def job() -> None:
        try:
            work.write.format("noop").mode("overwrite").save()
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=job, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(TICK)
            if stopping():
                (folder / "stop").touch()
            tick()
        tick()
    except BaseException:
        (folder / "stop").touch()
        thread.join(10)
        raise
    finally:
        shutil.rmtree(queue, ignore_errors=True)
    if failed:
        said = str(failed[0]).strip().splitlines()[0]
        raise PipelineError(f"the campaign broke off: {said}") from failed[0]


def campaign(
    spark: SparkSession,
    items: Sequence[Item],
    folder: str | Path,
    *,
    bounds: Bounds = Bounds(),  # noqa: B008  # it is frozen
    on_progress: Tell | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> Campaign:
    """Try every item that the folder's journal does not have, and write the tables.

    Ends early when `stopping` says so, or at the first bug if the bounds do: then the journal is where to go on.
    Raises `PipelineError` if another campaign is at work in the folder.
    """
    if not items:
        raise PipelineError("a campaign without items")
    folder = Path(folder).resolve()
    begun = time.monotonic()
    wanted = {i.id: i for i in items}
    known: dict[str, Outcome] = {}
    found: Found = {}
    with at_work(folder) as written:

        def look() -> None:
            news = {o.id: o for o in written.news() if o.id in wanted}
            known.update(news)
            found.update(bugs(news.values()))

        def tick() -> None:
            look()
            if on_progress is not None:
                rate = (len(known) - before) / max(time.monotonic() - begun, 1e-6)
                left = (len(wanted) - len(known)) / rate if rate else None
                on_progress(Progress(len(known), len(wanted), len(found), rate, left))

        look()
        before = len(known)
        left = [i for i in wanted.values() if i.id not in known]
        if bounds.first_bug and found:
            left = []
        if left:
            fan_out(spark, left, folder, bounds, tick, stopping)
        done = Campaign(
            sorted(known.values(), key=lambda o: o.id), len(wanted), time.monotonic() - begun
        )
        write(folder, done.outcomes, done.coverage())
    return done


def write(folder: Path, outcomes: Sequence[Outcome], seen: dict[tuple[str, str], Coverage]) -> None:
    """The three tables."""
    of_item = [n for n in TABLES["results"].names if n in Item.__struct_fields__]
    of_outcome = [n for n in TABLES["results"].names if n in Outcome.__struct_fields__]
    results, of = [], defaultdict(list)
    for o in outcomes:
        row: dict[str, Any] = {n: getattr(o.item, n) for n in of_item}  # Any: of a row's columns
        row |= {n: getattr(o, n) for n in of_outcome}
        if o.bugs:
            row |= {n: getattr(o.bugs[0], n) for n in ("bug", "token", "trace")}
        results.append(row)
        of[o.item.program, o.item.mutant].append(o)
    found = [
        {
            "program": program, "mutant": mutant, "bug": bug, "trace": trace,
            "token": shortest(tokens), "found": len(tokens),
        }
        for (program, mutant, bug, trace), tokens in sorted(bugs(outcomes).items())
    ]  # fmt: skip
    coverage = [
        {
            "program": program, "mutant": mutant, "items": len(mine),
            "executions": sum(o.executions for o in mine),
            "seconds": sum(o.seconds for o in mine), "processor": sum(o.processor for o in mine),
            **msgspec.structs.asdict(seen[program, mutant]),
        }
        for (program, mutant), mine in sorted(of.items())
    ]  # fmt: skip
    for name, rows in (("results", results), ("bugs", found), ("coverage", coverage)):
        table = pa.Table.from_pylist(rows, TABLES[name].with_metadata({b"seriatim": SCHEMA}))
        fresh = folder / f"{name}.parquet.new"
        pq.write_table(table, fresh, compression="zstd")
        fresh.replace(folder / f"{name}.parquet")
