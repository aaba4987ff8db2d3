"""The Spark engine: chunk files to findings, each stage from DataFrame to DataFrame. No event is shuffled.

What judges queues, connections or messages is divided by them, since its state is small if it begins at the beginning:

- `apart`: a task reads its share of a run from beginning to end and gives findings (`shares`).

What judges a run as a whole, has a form over columns, or is counted, is divided by time:

- `summaries`: a task folds the chunks of a stretch of one run, as the local engine would, and gives the summaries.
- `combined`: neighbouring summaries are joined, `FAN` at a time, until so few are left.
- `judged`: the rest are joined and `finish` is asked.

The driver sees findings and statistics only.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from seriatim_models.pipeline.audit import chunks, partitions, tables
from seriatim_models.pipeline.audit import findings as found
from seriatim_models.pipeline.audit.aggregate import (
    MEASURED,
    Fold,
    Part,
    findings_of,
    finished,
    joined,
    packed,
)
from seriatim_models.pipeline.audit.ingest import ingest
from seriatim_models.pipeline.audit.metrics import Measures
from seriatim_models.pipeline.audit.runs import Plan
from seriatim_models.pipeline.session import frame, session
from seriatim_models.properties.base import AnyProperty, Finding, Scope

TASK_SCHEMA = T.StructType(
    [
        T.StructField("number", T.LongType(), False),
        T.StructField("first", T.BooleanType(), False),  # whether a run begins here
        T.StructField("task", T.StringType(), False),  # a `chunks.Stretch` as JSON
    ]
)
SHARE_SCHEMA = T.StructType([T.StructField("share", T.StringType(), False)])
"""A `chunks.Share` as JSON."""
PART_SCHEMA = T.StructType(
    [
        T.StructField("run", T.StringType(), False),
        T.StructField("property", T.LongType(), False),  # which; `MEASURED` for the statistics
        T.StructField("number", T.LongType(), False),  # place in the run
        T.StructField("summary", T.BinaryType(), False),
    ]
)
FINDING_SCHEMA = T.StructType(
    [
        T.StructField("run", T.StringType(), False),
        T.StructField("property", T.LongType(), False),
        # A `Finding` as msgpack, or the statistics.
        T.StructField("finding", T.BinaryType(), False),
    ]
)
_PARTS = pa.schema(
    [
        ("run", pa.string()), ("property", pa.int64()),
        ("number", pa.int64()), ("summary", pa.binary()),
    ]
)  # fmt: skip
_FINDINGS = pa.schema([("run", pa.string()), ("property", pa.int64()), ("finding", pa.binary())])
_KEYS = ("run", "property")
FAN = 8
"""Summaries joined at a time."""
TASKS_EACH = 3
"""Tasks to each core: enough that a slow one does not hold up the rest, few enough that combining costs little."""
PARTS_EACH: dict[Scope, int] = {"queue": 2, "connection": 2, "message": 1}
"""Parts of a run to each core. Those of queues differ in size; those of messages are the same work but for its end."""


def _batch(rows: Sequence[Sequence[object]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )


def apart(tasks: DataFrame, properties: Sequence[AnyProperty]) -> DataFrame:
    """`SHARE_SCHEMA` to `FINDING_SCHEMA`: what the properties say of each share."""

    def mapped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch["share"].to_pylist():
                share = msgspec.json.decode(row, type=chunks.Share)
                said = [
                    (share.run, n, msgspec.msgpack.encode(finding))
                    for n, finding in partitions.judged(share, properties)
                ]
                yield _batch(said, _FINDINGS)

    return tasks.mapInArrow(mapped, FINDING_SCHEMA)


def summaries(
    tasks: DataFrame, properties: Sequence[AnyProperty], measure: bool = True
) -> DataFrame:
    """`TASK_SCHEMA` to `PART_SCHEMA`: the summaries of every task, for the properties that are divided by time only."""
    mine = [n for n, p in enumerate(properties) if p.partitioning == "run"]

    def mapped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                task = msgspec.json.decode(row["task"], type=chunks.Stretch)
                fold = Fold([properties[n] for n in mine], row["first"], measure)
                for file in task.files:
                    fold.file(file)
                made = [
                    (task.run, n if n == MEASURED else mine[n], row["number"], summary)
                    for n, summary in fold.made()
                ]
                yield _batch(made, _PARTS)

    return tasks.mapInArrow(mapped, PART_SCHEMA)


def _of_one(batches: Iterable[pa.RecordBatch]) -> Iterator[list[Part]]:
    """Parts of one property and run, which follow each other in the input."""
    parts = (Part(**row) for batch in batches for row in batch.to_pylist())
    for _, of in groupby(parts, key=lambda p: p[:2]):
        yield list(of)


def _together(parts: DataFrame, *more: object) -> DataFrame:
    """The parts of one property and run (and of whatever more) in one partition and in order."""
    keys = [F.col(k) for k in _KEYS]
    return parts.repartition(*keys, *more).sortWithinPartitions(*keys, "number")  # type: ignore[arg-type]  # columns


def combined(parts: DataFrame, properties: Sequence[AnyProperty]) -> DataFrame:
    """`PART_SCHEMA` to itself: each `FAN` neighbours become one."""

    def mapped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        made = []
        for parts in _of_one(batches):
            for group, of in groupby(parts, key=lambda p: p.number // FAN):
                held = list(of)
                first = held[0]
                summary = _joined(properties, held)
                made.append((first.run, first.property, group, summary))
        if made:
            yield _batch(made, _PARTS)

    return _together(parts, F.floor(F.col("number") / FAN)).mapInArrow(mapped, PART_SCHEMA)


def _joined(properties: Sequence[AnyProperty], parts: list[Part]) -> bytes:
    if len(parts) == 1:
        return parts[0].summary
    if parts[0].property == MEASURED:
        whole = Measures.unpacked(parts[0].summary)
        for part in parts[1:]:
            whole.combine(Measures.unpacked(part.summary))
        return whole.packed()
    return packed(properties[parts[0].property], joined(properties, parts))


def judged(
    parts: DataFrame, properties: Sequence[AnyProperty], files: Mapping[str, Sequence[str]]
) -> DataFrame:
    """`PART_SCHEMA` to `FINDING_SCHEMA`: what each property comes to. `files` are the chunks of each run."""

    def mapped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        made = []
        for of in _of_one(batches):
            first = of[0]
            if first.property == MEASURED:
                said = _joined(properties, of)
            else:
                prop = properties[first.property]
                finding = finished(prop, joined(properties, of), files[first.run])
                said = msgspec.msgpack.encode(finding)
            made.append((first.run, first.property, said))
        if made:
            yield _batch(made, _FINDINGS)

    return _together(parts).mapInArrow(mapped, FINDING_SCHEMA)


class Audited(msgspec.Struct):
    """What the chunk files of a folder come to."""

    findings: list[Finding]
    runs: list[found.RunStatistics]
    measured: dict[str, Measures]


def audit_chunks(
    spark: SparkSession, folder: Path, properties: Sequence[AnyProperty], measure: bool = True
) -> Audited:
    """Judge the chunk files of a folder. Raises `PipelineError` if they are not of this version."""
    manifest = chunks.read_manifest(folder)
    properties = tuple(properties)
    said: dict[str, list[tuple[int, Finding]]] = {}
    measured: dict[str, Measures] = {}
    for stage in (
        _by_time(spark, folder, manifest, properties, measure),
        _apart(spark, folder, manifest, properties),
    ):
        for row in stage.collect() if stage is not None else ():
            if row["property"] == MEASURED:
                measured[row["run"]] = Measures.unpacked(bytes(row["finding"]))
            else:
                finding = msgspec.msgpack.decode(bytes(row["finding"]), type=Finding)
                said.setdefault(row["run"], []).append((row["property"], finding))
    statistics = {run: found.RunStatistics(run) for run in manifest.runs()}
    for unit in manifest.units:
        for s in unit.statistics:
            statistics[s.run] = statistics[s.run] + s
    findings = [
        f
        for run, counted in sorted(statistics.items())
        for f in findings_of(properties, said.get(run, []), run, counted.gaps)
    ]
    return Audited(findings, list(statistics.values()), measured)


def _apart(
    spark: SparkSession,
    folder: Path,
    manifest: chunks.Manifest,
    properties: Sequence[AnyProperty],
) -> DataFrame | None:
    """The findings on what can be judged apart; None if there is nothing."""
    scopes = {p.partitioning for p in properties}
    cores = spark.sparkContext.defaultParallelism
    parts = {scope: each * cores for scope, each in PARTS_EACH.items() if scope in scopes}
    tasks = chunks.shares(folder, manifest, parts)
    if not tasks:
        return None
    rows = [(msgspec.json.encode(share).decode(),) for share in tasks]
    return apart(frame(spark, rows, SHARE_SCHEMA, len(rows)), properties)


def _by_time(
    spark: SparkSession,
    folder: Path,
    manifest: chunks.Manifest,
    properties: Sequence[AnyProperty],
    measure: bool,
) -> DataFrame | None:
    """The findings, and the statistics, on runs as a whole; None if nothing is asked for."""
    if not measure and all(p.partitioning != "run" for p in properties):
        return None
    cores = spark.sparkContext.defaultParallelism
    tasks = chunks.stretches(folder, manifest, TASKS_EACH * cores)
    if not tasks:
        return None
    rows, begun = [], set[str]()
    files: dict[str, list[str]] = {}
    for number, task in enumerate(tasks):
        rows.append((number, task.run not in begun, msgspec.json.encode(task).decode()))
        begun.add(task.run)
        files.setdefault(task.run, []).extend(task.files)
    parts = summaries(frame(spark, rows, TASK_SCHEMA, len(rows)), properties, measure)
    left = len(tasks)
    while left > FAN:
        parts = combined(parts, properties)
        left = -(-left // FAN)
    return judged(parts, properties, files)


def audit(
    plan: Plan,
    properties: Sequence[AnyProperty],
    out: str | Path | None = None,
    master: str | None = None,
) -> found.AuditReport:
    """Ingest the plan's files, judge them, and leave the tables. Raises `HistoryError` and `PipelineError`."""
    spark = session(master)
    with tempfile.TemporaryDirectory(prefix="seriatim-") as temporary:
        folder = Path(out if out is not None else temporary).resolve()
        manifest = ingest(spark, plan, folder)
        audited = audit_chunks(spark, folder, properties, measure=out is not None)
        kept = chunks.read_quarantine(folder, manifest, found.QUARANTINE_KEPT)
        files = [f for unit in manifest.units for f in unit.files]
        report = found.report(
            "spark", plan, audited.findings, [*plan.refused, *kept], audited.runs, files
        )
        if out is not None:
            rows = tables.rows_of(report, properties) | tables.rows_measured(audited.measured)
            names = [n for unit in manifest.units for n in unit.quarantine]
            tables.write(folder, rows, tables.quarantine(folder, names, plan.refused))
    return report


__all__ = ["apart", "audit", "audit_chunks", "combined", "judged", "summaries"]
