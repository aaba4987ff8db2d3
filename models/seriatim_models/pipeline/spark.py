"""The Spark engine: chunk files to summaries in tasks, summaries to findings in the driver. No event is shuffled.

Each task reads the chunk files of one slice of a run (or of one bucket of its queues) and summarises it by each
property's `map`. The driver joins the summaries of neighbouring slices by `combine` and asks `finish`: what the local
engine does in one process, so the findings are the same.
"""

from __future__ import annotations

import pickle
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from seriatim_models.history import Rejected
from seriatim_models.history.event import GAP
from seriatim_models.pipeline import chunks
from seriatim_models.pipeline import findings as found
from seriatim_models.pipeline.ingest import ingest
from seriatim_models.pipeline.runs import FileCount, Plan
from seriatim_models.pipeline.session import session
from seriatim_models.properties.base import AnyProperty, Finding

TASK_SCHEMA = T.StructType(
    [
        T.StructField("number", T.LongType(), False),
        T.StructField("task", T.StringType(), False),
    ]
)
SUMMARY_SCHEMA = T.StructType(
    [
        T.StructField("number", T.LongType(), False),
        # Which of the properties; -1 for the counts of event names.
        T.StructField("property", T.LongType(), False),
        T.StructField("summary", T.BinaryType(), False),
    ]
)
_SUMMARIES = pa.schema([("number", pa.int64()), ("property", pa.int64()), ("summary", pa.binary())])
_COUNTS = -1


def _judges(prop: AnyProperty, task: chunks.Task) -> bool:
    """Whether a property is judged on this chain: on the run as a whole, or on each bucket of queues."""
    return (task.chain == "run") == (prop.scope == "run")


# Any: each property knows the type of its own summary
def _packed(prop: AnyProperty, summary: Any) -> bytes:
    """A summary on its way to the driver: by its type, or pickled if the property does not tell that.

    Pickle is several times slower, and fit only between two ends of one job, which these are.
    """
    if prop.summary_type is None:
        return pickle.dumps(summary)
    return msgspec.msgpack.encode(summary)


def _unpacked(prop: AnyProperty, raw: bytes) -> Any:
    if prop.summary_type is None:
        return pickle.loads(raw)
    return msgspec.msgpack.decode(raw, type=prop.summary_type)


def _summarise(task: chunks.Task, properties: Sequence[AnyProperty]) -> Iterator[tuple[int, bytes]]:
    events = list(chunks.read_events(task.files))
    if task.chain == "run":
        yield _COUNTS, msgspec.msgpack.encode(Counter(e.ev for e in events))
    for n, prop in enumerate(properties):
        if _judges(prop, task):
            reads = found.relevant(prop)
            summary = prop.map(e for e in events if reads is None or e.ev in reads)
            yield n, _packed(prop, summary)


def summaries(tasks: DataFrame, properties: Sequence[AnyProperty]) -> DataFrame:
    """`TASK_SCHEMA` to `SUMMARY_SCHEMA`: every property's summary of every task's slice."""

    def mapped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                task = msgspec.json.decode(row["task"], type=chunks.Task)
                made = list(_summarise(task, properties))
                columns = [
                    [row["number"]] * len(made),
                    [n for n, _ in made],
                    [packed for _, packed in made],
                ]
                yield pa.RecordBatch.from_arrays(
                    [pa.array(c, f.type) for c, f in zip(columns, _SUMMARIES, strict=True)],
                    schema=_SUMMARIES,
                )

    return tasks.mapInArrow(mapped, SUMMARY_SCHEMA)


def audit_chunks(
    spark: SparkSession, folder: Path, properties: Sequence[AnyProperty]
) -> tuple[list[Finding], list[found.RunStatistics]]:
    """Judge the chunk files of a folder. Raises `PipelineError` if they are not of this version."""
    manifest = chunks.read_manifest(folder)
    tasks = chunks.tasks(folder, manifest)
    statistics = {run: found.RunStatistics(run) for run in sorted(manifest.runs.values())}
    # Any: each property knows the type of its own summary
    joined: dict[tuple[str, int], dict[str, Any]] = defaultdict(dict)
    if tasks:
        rows = [(n, msgspec.json.encode(t).decode()) for n, t in enumerate(tasks)]
        frame = spark.createDataFrame(rows, TASK_SCHEMA).repartitionByRange(
            min(len(rows), 4 * spark.sparkContext.defaultParallelism), "number"
        )
        made = sorted(tuple(row) for row in summaries(frame, tuple(properties)).collect())
        for number, n, raw in made:
            task = tasks[number]
            if n == _COUNTS:
                found.count(statistics[task.run], Counter(msgspec.msgpack.decode(raw)), GAP)
                continue
            chains = joined[task.run, n]
            prop = properties[n]
            summary = _unpacked(prop, raw)
            before = chains.get(task.chain)
            chains[task.chain] = summary if before is None else prop.combine(before, summary)
    findings = []
    for run, counted in statistics.items():
        for n, prop in enumerate(properties):
            chains = joined.get((run, n)) or {"run": prop.map([])}
            finding = found.merged([prop.finish(s) for s in chains.values()])
            findings.append(found.told(finding, run, counted.gaps))
    return findings, list(statistics.values())


def audit(
    plan: Plan, properties: Sequence[AnyProperty], out: str | Path | None = None
) -> found.AuditReport:
    """Ingest the plan's files and judge them. Raises `HistoryError` and `PipelineError`."""
    spark = session()
    with tempfile.TemporaryDirectory(prefix="seriatim-") as temporary:
        folder = Path(out if out is not None else temporary).resolve()
        manifest = ingest(spark, plan, folder)
        quarantine = [
            msgspec.convert(r, Rejected)
            for r in chunks.read_records(folder, manifest, chunks.QUARANTINE)
        ]
        files = [
            msgspec.convert(r, FileCount)
            for r in chunks.read_records(folder, manifest, chunks.FILE)
        ]
        findings, runs = audit_chunks(spark, folder, properties)
    return found.report("spark", plan, findings, [*plan.refused, *quarantine], runs, files)
