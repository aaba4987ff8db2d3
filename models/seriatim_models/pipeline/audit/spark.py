"""The Spark engine: runs the tasks of an audit on DataFrames. No event is shuffled.

The driver sees findings and metrics only.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import pyarrow as pa
from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as all of Spark's documentation calls it
from pyspark.sql import types as T  # noqa: N812  # the same

from seriatim_models.pipeline.audit import findings as found
from seriatim_models.pipeline.audit import tables
from seriatim_models.pipeline.audit.ingest import ingest
from seriatim_models.pipeline.audit.runs import Plan
from seriatim_models.pipeline.audit.tasks import Join, Step, TaskRecord, audit_chunks
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.pipeline.session import frame, session
from seriatim_models.properties import own
from seriatim_models.properties.base import AnyProperty

RECORD_SCHEMA = T.StructType(
    [
        T.StructField("run", T.StringType(), False),
        T.StructField("property", T.LongType(), False),
        T.StructField("number", T.LongType(), False),
        T.StructField("payload", T.BinaryType(), False),
    ]
)
"""A `tasks.TaskRecord`."""
MOST = 1024
"""Spark tasks at a time."""
_RECORDS = pa.schema(
    [
        ("run", pa.string()), ("property", pa.int64()),
        ("number", pa.int64()), ("payload", pa.binary()),
    ]
)  # fmt: skip


def take_along(properties: Sequence[AnyProperty]) -> frozenset[str]:
    """Have the modules of a user's own properties sent with them: a worker may not find these where it runs.

    Returns their files. Raises `PipelineError` for a property whose state cannot be kept.
    """
    for p in properties:
        if p.summary_type is None:
            raise PipelineError(
                f"property {p.id} declares no summary_type, so Spark cannot keep its state"
            )
        if own.is_own(p):
            register_pickle_by_value(sys.modules[type(p).__module__])  # type: ignore[no-untyped-call]  # PySpark's
    return frozenset(own.FILES)


@contextmanager
def in_worker(files: frozenset[str]) -> Iterator[None]:
    """What a property of the user's own raises in a worker is a sentence, whatever it is.

    `files` are those of these properties. Raises `PipelineError`.
    """
    own.FILES.update(files)
    try:
        yield
    except BaseException as error:
        if why := own.raised_in_own(error):
            raise PipelineError(why) from error
        raise


class OnSpark:
    """Runs tasks on Spark, each in a Spark task of its own."""

    def __init__(self, spark: SparkSession, properties: Sequence[AnyProperty] = ()) -> None:
        """`properties` are those that the tasks judge by."""
        self._spark = spark
        self._files = take_along(properties)
        self.workers = spark.sparkContext.defaultParallelism

    def execute(
        self, tasks: Sequence[TaskRecord], step: Step, joins: Sequence[tuple[int, Join]] = ()
    ) -> list[TaskRecord]:
        """See `tasks.TaskExecutor`."""
        records = _stepped(frame(self._spark, tasks, RECORD_SCHEMA, MOST), step, self._files)
        for fan, join in joins:
            records = _joined(records, fan, join, self._files)
        return [
            TaskRecord(r["run"], r["property"], r["number"], bytes(r["payload"]))
            for r in records.collect()
        ]


def _batch(records: Sequence[TaskRecord]) -> pa.RecordBatch:
    columns = zip(*records, strict=True) if records else [[]] * len(_RECORDS)
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, _RECORDS, strict=True)], schema=_RECORDS
    )


def _records(batches: Iterable[pa.RecordBatch]) -> Iterator[TaskRecord]:
    return (TaskRecord(**row) for batch in batches for row in batch.to_pylist())


def _stepped(records: DataFrame, step: Step, files: frozenset[str]) -> DataFrame:
    """What a step makes of each record."""

    def mapped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for record in _records(batches):
            with in_worker(files):
                made = _batch(list(step(record)))
            yield made

    return records.mapInArrow(mapped, RECORD_SCHEMA)


def _joined(records: DataFrame, fan: int, join: Join, files: frozenset[str]) -> DataFrame:
    """What a join makes of each `fan` neighbours of one run and property, or of all of them."""

    def mapped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Those of one run and property follow each other here, sorted by number.
        with in_worker(files):
            made = [
                join(list(of))
                for _, of in groupby(
                    _records(batches), key=lambda r: (*r[:2], r.number // fan if fan else 0)
                )
            ]
        if made:
            yield _batch(made)

    keys = [F.col("run"), F.col("property")]
    neighbours = [F.floor(F.col("number") / fan)] if fan else []
    return (
        records.repartition(*keys, *neighbours)
        .sortWithinPartitions(*keys, "number")
        .mapInArrow(mapped, RECORD_SCHEMA)
    )


def audit(
    plan: Plan,
    properties: Sequence[AnyProperty],
    out: str | Path | None = None,
    master: str | None = None,
) -> found.AuditReport:
    """Ingest the plan's files, judge them, and leave the tables. Raises `HistoryError` and `PipelineError`."""
    executor = OnSpark(session(master), properties)
    with tempfile.TemporaryDirectory(prefix="seriatim-") as temporary:
        folder = Path(out if out is not None else temporary).resolve()
        manifest = ingest(executor, plan, folder)
        audited = audit_chunks(executor, folder, properties, measure=out is not None)
        names = manifest.quarantine()
        kept = tables.first_of_each(tables.quarantine(folder, names, []), found.QUARANTINE_KEPT)
        files = [f for unit in manifest.units for f in unit.files]
        report = found.report(
            "spark", plan, audited.findings, [*plan.refused, *kept], audited.runs, files
        )
        if out is not None:
            rows = tables.rows_of(report, properties) | tables.rows_measured(audited.metrics)
            tables.write(folder, rows, tables.quarantine(folder, names, plan.refused))
    return report
