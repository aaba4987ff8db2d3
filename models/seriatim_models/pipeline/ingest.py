"""From files to chunk files: decode, validate, quarantine, sort into buckets.

`decode` and `placed` are functions from DataFrame to DataFrame with explicit schemas.
A run is decoded by one task, with the same code as in the local engine (`runs.read`), so that both engines reject the
same lines and complete events the same way; runs are decoded side by side.
"""

from __future__ import annotations

import hashlib
import shutil
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from seriatim_models.history import Event, HistoryError, Rejected, table
from seriatim_models.pipeline import chunks
from seriatim_models.pipeline.runs import FileCount, Plan, RunPlan, read

PLAN_SCHEMA = T.StructType(
    [
        T.StructField("number", T.LongType(), False),
        T.StructField("plan", T.StringType(), False),
    ]
)
_BATCH = 8192  # rows of one Arrow batch on the way from Python to the JVM
_NUMBERS = 2**40  # events of one planned run: the numbers of two do not meet
_SLICES = 2**24  # slices of one planned run


def _spark_type(kind: pa.DataType) -> T.DataType:
    if pa.types.is_boolean(kind):
        return T.BooleanType()
    if pa.types.is_int64(kind):
        return T.LongType()
    if pa.types.is_list(kind):
        return T.ArrayType(T.StringType())
    if pa.types.is_map(kind):
        return T.MapType(T.StringType(), T.StringType())
    return T.StringType()


ROW_SCHEMA = T.StructType([T.StructField(f.name, _spark_type(f.type)) for f in chunks.COLUMNS])


def run_key(run: str) -> str:
    """A name for a run that any file system takes."""
    return hashlib.sha256(run.encode()).hexdigest()[:16]


class _Rows:
    """Rows of `chunks.COLUMNS`, gathered into batches."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._places: list[tuple[int | None, str | None, str, str, int]] = []

    def event(self, n: int, place: int, run: str, event: Event) -> None:
        self._events.append(event)
        self._places.append((n, None, run_key(run), chunks.shelf(event.q), place))

    def record(self, run: str, shelf: str, record: object) -> None:
        self._events.append(Event(i=0, ev="", run=run))
        text = msgspec.json.encode(record).decode()
        self._places.append((None, text, run_key(run), shelf, 0))

    def __len__(self) -> int:
        return len(self._events)

    def take(self) -> pa.RecordBatch:
        arrays = list(table.columns(self._events).values())
        for field, values in zip(
            list(chunks.COLUMNS)[len(arrays) :], zip(*self._places, strict=True), strict=True
        ):
            arrays.append(pa.array(values, field.type))
        self._events, self._places = [], []
        return pa.RecordBatch.from_arrays(arrays, schema=chunks.COLUMNS)


def _decode_plan(
    number: int, plan: RunPlan, rows: _Rows, slice_length: int
) -> Iterator[pa.RecordBatch]:
    counts: dict[str, int] = defaultdict(int)
    try:
        for item in read(plan):
            if isinstance(item, Rejected):
                rows.record(plan.run, chunks.QUARANTINE, item)
            elif isinstance(item, FileCount):
                rows.record(plan.run, chunks.FILE, item)
            else:
                n = counts[item.run]
                counts[item.run] = n + 1
                place = number * _SLICES + n // slice_length
                rows.event(number * _NUMBERS + n, place, item.run, item.event)
            if len(rows) >= _BATCH:
                yield rows.take()
    except HistoryError as error:
        # A result, not a failed task: Spark would try again and then show a stack trace.
        rows.record(plan.run, chunks.ERROR, str(error))


def decode(plans: DataFrame, slice_length: int = chunks.SLICE) -> DataFrame:
    """`PLAN_SCHEMA` to `ROW_SCHEMA`: every event, rejected line and file count of each planned run."""

    def decoded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = _Rows()
        for batch in batches:
            for row in batch.to_pylist():
                plan = msgspec.json.decode(row["plan"], type=RunPlan)
                yield from _decode_plan(row["number"], plan, rows, slice_length)
        if len(rows):
            yield rows.take()

    return plans.mapInArrow(decoded, ROW_SCHEMA)


def placed(rows: DataFrame) -> DataFrame:
    """The rows of one chunk file together and in order."""
    keys = ["run_key", "shelf", "slice"]
    return rows.repartition(*keys).sortWithinPartitions(*keys, "n")


def plans(spark: SparkSession, plan: Plan) -> DataFrame:
    """The planned runs as a DataFrame, one to a partition."""
    rows = [(n, msgspec.json.encode(run).decode()) for n, run in enumerate(plan.runs)]
    frame = spark.createDataFrame(rows, PLAN_SCHEMA)
    return frame.repartitionByRange(min(len(rows), 1024), "number")


def ingest(
    spark: SparkSession, plan: Plan, folder: Path, slice_length: int = chunks.SLICE
) -> chunks.Manifest:
    """Write the chunk files of a plan and then, at once, the manifest; returns it.

    What an earlier ingest left in the folder is replaced; if this one is killed, it still stands.
    Raises `HistoryError` if a file that the caller named cannot be read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    inside = folder / f"chunks-{uuid.uuid4().hex[:12]}"
    partitions = ("run_key", "shelf", "slice")
    placed(decode(plans(spark, plan), slice_length)).write.partitionBy(*partitions).parquet(
        str(inside)
    )
    manifest = chunks.listed(folder, inside, {})
    for error in chunks.read_records(folder, manifest, chunks.ERROR):
        shutil.rmtree(inside)
        raise HistoryError(str(error))
    manifest.runs = _names(folder, manifest) | {run_key(p.run): p.run for p in plan.runs}
    chunks.write_manifest(folder, manifest)
    for old in folder.glob("chunks-*"):
        if old != inside:
            shutil.rmtree(old, ignore_errors=True)
    return manifest


def _names(folder: Path, manifest: chunks.Manifest) -> dict[str, str]:
    """The run behind each key, as the events tell it."""
    import pyarrow.parquet as pq

    names: dict[str, str] = {}
    for chunk in manifest.chunks:
        if chunk.run_key not in names and chunk.rows:
            with pq.ParquetFile(folder / chunk.path) as file:
                head = next(file.iter_batches(1, columns=["run"]))
            names[chunk.run_key] = head["run"][0].as_py() or ""
    return names
