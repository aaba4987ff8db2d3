"""A campaign: thousands of searches over Spark's executors, over programs, strategies, seeds and bounds.

    checkpoint/*.jsonl   results as they come, a line each; a campaign that resumes leaves these items out
    stop                 while this file is there, no item is begun
    *.parquet            the tables (`results`)

The folder must be one that driver and executors share.
Items go out in batches, because a task costs tens of milliseconds; each batch is done by an isolated worker.
One exhaustive search of a program is distributed in the same way, see `distributed`.
"""

from __future__ import annotations

import functools
import gc
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from seriatim_models.pipeline.audit.ingest import locked
from seriatim_models.pipeline.campaign import checkpoint
from seriatim_models.pipeline.campaign.checkpoint import CheckpointLog
from seriatim_models.pipeline.campaign.isolation import shared_worker
from seriatim_models.pipeline.campaign.items import ItemResult, SearchItem, Work
from seriatim_models.pipeline.campaign.results import (
    BugTokens,
    CampaignResult,
    distinct_bugs,
    write_tables,
)
from seriatim_models.pipeline.campaign.subtree import run_item
from seriatim_models.pipeline.errors import PipelineError

BATCHES_PER_CORE = 4
"""A batch has this part of a core's equal part of the items that are left: large batches first, because a task costs,
and single items last, because all wait for the last one. 1000 items on 2 cores: 47 batches."""
TIMEOUT = 300.0  # seconds
MEMORY = 2 * 2**30  # bytes
STOP_WAIT = 10.0  # seconds for the items under way to end when the driver is interrupted
TICK = 0.25  # seconds between looks at the checkpoint log

DONE_SCHEMA = StructType(
    [StructField("item", StringType(), False), StructField("verdict", StringType(), False)]
)
"""What the checkpoint log has in full."""
_DONE = pa.schema([("item", pa.string()), ("verdict", pa.string())])


class CampaignBounds(msgspec.Struct, frozen=True):
    """What an item may take, and when to stop."""

    timeout: float = TIMEOUT
    """Seconds."""
    memory: int = MEMORY
    """Bytes of address space; 0 for no limit."""
    first_bug: bool = False


class CampaignProgress(msgspec.Struct, frozen=True):
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


Tell = Callable[[CampaignProgress], None]


# On the executors


def do_batches(
    numbers: DataFrame, folder: Path, batches: Path, bounds: CampaignBounds, work: Work
) -> DataFrame:
    """Numbers of batches (`id`) to `DONE_SCHEMA`: do the items of each, which is the file of that number in `batches`.

    Every result is in the checkpoint log as soon as it is known.
    """
    home, queue = str(folder), str(batches)

    def mapped(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # All of the input first: a worker that leaves some of it is thrown away.
        asked = [n for b in rows for n in b["id"].to_pylist()]
        items = [i for n in asked for i in _read(Path(queue), n)]
        flag = Path(home, "stop")
        if not items or flag.exists():
            return
        _freeze()
        worker = shared_worker(bounds.memory, work)
        done = []
        with checkpoint.open_log(Path(home)) as file:
            for result in worker.results(items, bounds.timeout, flag.exists):
                checkpoint.append(file, result)
                if bounds.first_bug and result.bugs:
                    flag.touch()
                done.append((result.id, result.verdict))
        yield pa.RecordBatch.from_pylist([{"item": i, "verdict": v} for i, v in done], schema=_DONE)

    return numbers.mapInArrow(mapped, DONE_SCHEMA)


def _read(queue: Path, number: int) -> list[SearchItem]:
    return msgspec.json.decode((queue / f"{number}.json").read_bytes(), type=list[SearchItem])


@functools.cache
def _freeze() -> None:
    """Exempt the imports from garbage collection, once: Spark collects after every task, and that took 3/4 of it."""
    gc.freeze()


# On the driver


def batches(items: Sequence[SearchItem], cores: int) -> list[list[SearchItem]]:
    """Items in batches, in an order of no meaning (that of their ids): neighbours tend to take equally long."""
    left = sorted(items, key=lambda i: i.id)
    out = []
    while left:
        size = -(-len(left) // (BATCHES_PER_CORE * cores))
        out.append(left[:size])
        left = left[size:]
    return out


@contextmanager
def exclusive(folder: Path) -> Iterator[CheckpointLog]:
    """Hold the folder's lock; gives its checkpoint log. Raises `PipelineError` if another campaign holds it."""
    with locked(folder):
        (folder / "stop").unlink(missing_ok=True)
        for old in folder.glob("batches-*"):  # of one that was killed
            shutil.rmtree(old, ignore_errors=True)
        yield CheckpointLog(folder)


def fan_out(
    spark: SparkSession,
    items: Sequence[SearchItem],
    folder: Path,
    bounds: CampaignBounds,
    tick: Callable[[], None],
    stopping: Callable[[], bool],
    work: Work = run_item,
) -> None:
    """Do items on the executors; their results are in the checkpoint log.

    `tick` is called some times a second, and at the end. Raises `PipelineError` if Spark's job fails.
    """
    queue = folder / f"batches-{uuid.uuid4().hex[:12]}"
    queue.mkdir()
    dealt = batches(items, spark.sparkContext.defaultParallelism)
    for n, batch in enumerate(dealt):
        (queue / f"{n}.json").write_bytes(msgspec.json.encode(batch))
    # Numbers, for which no Python worker is needed; and a sink that asks for none.
    numbers = spark.range(0, len(dealt), 1, len(dealt))
    done = do_batches(numbers, folder, queue, bounds, work)
    failed: list[BaseException] = []

    def job() -> None:
        try:
            done.write.format("noop").mode("overwrite").save()
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
        thread.join(STOP_WAIT)
        raise
    finally:
        shutil.rmtree(queue, ignore_errors=True)
    if failed:
        message = str(failed[0]).strip().splitlines()[0]
        raise PipelineError(f"the campaign broke off: {message}") from failed[0]


def campaign(
    spark: SparkSession,
    items: Sequence[SearchItem],
    folder: str | Path,
    *,
    bounds: CampaignBounds = CampaignBounds(),  # noqa: B008  # it is frozen
    on_progress: Tell | None = None,
    stopping: Callable[[], bool] = lambda: False,
    work: Work = run_item,
) -> CampaignResult:
    """Do every item that the folder's checkpoint log does not have, and write the tables.

    Ends early when `stopping` says so, or at the first bug if the bounds do: then the checkpoint log is where to go on.
    `work` does an item, in an isolated worker on an executor; it must be importable there.
    Raises `PipelineError` if another campaign is at work in the folder.
    """
    if not items:
        raise PipelineError("a campaign without items")
    folder = Path(folder).resolve()
    begun = time.monotonic()
    wanted = {i.id: i for i in items}
    known: dict[str, ItemResult] = {}
    found: BugTokens = {}
    with exclusive(folder) as log:

        def look() -> None:
            news = {
                o.id: msgspec.structs.replace(o, item=wanted[o.id])
                for o in log.new_results()
                if o.id in wanted
            }
            known.update(news)
            found.update(distinct_bugs(news.values()))

        def tick() -> None:
            look()
            if on_progress is not None:
                rate = (len(known) - before) / max(time.monotonic() - begun, 1e-6)
                left = (len(wanted) - len(known)) / rate if rate else None
                on_progress(CampaignProgress(len(known), len(wanted), len(found), rate, left))

        look()
        before = len(known)
        left = [i for i in wanted.values() if i.id not in known]
        if bounds.first_bug and found:
            left = []
        if left:
            fan_out(spark, left, folder, bounds, tick, stopping, work)
        done = CampaignResult(
            sorted(known.values(), key=lambda r: r.id), len(wanted), time.monotonic() - begun
        )
        write_tables(folder, done.results, done.coverage())
    return done
