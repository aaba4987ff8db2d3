"""The tasks of an audit of chunk files, which an executor only runs: Spark, or one process (the workshop's).

A run in chunk files is divided in two ways (`Property.partitioning`). No event is shuffled.

- `judge`: what judges queues, connections or messages reads its *partition* of a run from beginning to end and gives
  findings. A state is small if it begins at the beginning: what is open, and a window of what was just seen.
- `summarise`: what judges a run as a whole, and the metrics, fold a *chunk range* and give
  summaries, which `combine` joins, `FAN` neighbours at a time, and of which `finish` makes findings.

A run that comes as events is folded by `run_fold`, in the local engine and in a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seriatim_models.history.event import GAP, Event
from seriatim_models.pipeline.audit import chunks
from seriatim_models.pipeline.audit import findings as found
from seriatim_models.pipeline.audit.groups import (
    BATCH,
    GroupChecks,
    event_batches,
    fold_rows,
    placed_events,
    read_by,
    rows_left,
)
from seriatim_models.pipeline.audit.metrics import FIELDS, Measures
from seriatim_models.pipeline.audit.queue_groups import QueueGroups
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.properties.base import AnyProperty, Finding, Fold, Scope
from seriatim_models.properties.blackbox.lifecycle import (
    LifecycleProperty,
)
from seriatim_models.properties.columnar.batches import (
    COLUMNS,
    NAMING,
    concerning,
    may_concern,
    rows_of_batch,
)
from seriatim_models.properties.columnar.event_batch import EventBatch
from seriatim_models.properties.columnar.prefilter import Prefilter, Prefiltered

METRICS = -1
"""Stands for the metrics where a property's number stands."""
FAN = 8
"""Summaries joined at a time."""
RANGES_EACH = 3
"""Chunk ranges for each worker: enough that a slow one does not hold up the rest, few enough to combine cheaply."""
PARTITIONS_EACH: dict[Scope, int] = {"queue": 2, "connection": 1, "message": 1}
"""Partitions of a run for each worker, at most. Those of queues differ in size, those of messages hardly; and
a partition of connections or messages reads all of a run, since chunks are cut by queue (`chunks.WHOLE`)."""


class TaskRecord(NamedTuple):
    """What executors hand from step to step: a task, a summary or a finding, as bytes."""

    run: str
    property: int
    """Its number among the properties, or `METRICS`; of a task it means nothing."""
    number: int
    """The place in the run, of what has one."""
    payload: bytes


Step = Callable[[TaskRecord], Iterable[TaskRecord]]
"""What is made of one record."""
Join = Callable[[Sequence[TaskRecord]], TaskRecord]
"""What is made of those of one run and property, in the order of their numbers."""


class TaskExecutor(Protocol):
    """Runs tasks. Steps and joins may run in other processes, so they must be picklable."""

    @property
    def workers(self) -> int:
        """How many tasks it can run at a time."""

    def execute(
        self, tasks: Sequence[TaskRecord], step: Step, joins: Sequence[tuple[int, Join]] = ()
    ) -> list[TaskRecord]:
        """Do the step on every task, then each join in turn, so many neighbours at a time; 0 stands for all."""


# Any: each property knows the type of its own summary
def packed(prop: AnyProperty, summary: Any) -> bytes:
    """A summary on its way to another process or into a file, by its type. Raises `PipelineError` if it has none."""
    if prop.summary_type is None:
        raise PipelineError(
            f"property {prop.id} declares no summary_type, so it can be judged by the local engine only"
        )
    return msgspec.msgpack.encode(summary)


def unpacked(prop: AnyProperty, raw: bytes) -> Any:
    """What `packed` packed. Raises `msgspec.DecodeError` for anything else."""
    return msgspec.msgpack.decode(raw, type=prop.summary_type)


# Chunk ranges: by time.


def summarise(
    properties: Sequence[AnyProperty], measure: bool, task: chunks.ChunkRange
) -> Iterator[TaskRecord]:
    """The summaries of a chunk range, of the properties that are divided by time only; and its metrics."""
    mine = [n for n, p in enumerate(properties) if p.partitioning == "run"]
    fold = Fold([properties[n] for n in mine], task.first)
    metrics = Measures(task.first) if measure else None
    for file in task.files:
        add_chunk(fold, file, metrics)
    for n, summary in zip(mine, fold.summaries, strict=True):
        yield TaskRecord(task.run, n, task.number, packed(properties[n], summary))
    if metrics is not None:
        yield TaskRecord(task.run, METRICS, task.number, metrics.packed())


def add_chunk(fold: Fold, file: str, metrics: Measures | None = None) -> None:
    """Add the events of a chunk to a fold, and to the metrics."""
    columns = None if fold.properties else (*FIELDS, "n", "bucket")  # events are whole
    batch = EventBatch(chunks.read_chunk(file, columns)).in_order()
    if metrics is not None:
        metrics.add(batch)
    for events in event_batches(read_by(batch, fold.properties).arrow):
        fold.take(events)


def combine(properties: Sequence[AnyProperty], of: Sequence[TaskRecord]) -> TaskRecord:
    """The summary of chunk ranges that follow each other, from theirs; or their metrics."""
    first = of[0]
    if len(of) == 1:
        payload = first.payload
    elif first.property == METRICS:
        whole = Measures.unpacked(first.payload)
        for record in of[1:]:
            whole.combine(Measures.unpacked(record.payload))
        payload = whole.packed()
    else:
        prop = properties[first.property]
        summary = unpacked(prop, first.payload)
        for record in of[1:]:
            summary = prop.combine(summary, unpacked(prop, record.payload))
        payload = packed(prop, summary)
    return TaskRecord(first.run, first.property, first.number // FAN, payload)


def finish(properties: Sequence[AnyProperty], of: Sequence[TaskRecord]) -> TaskRecord:
    """The finding on a run, from the summaries of its chunk ranges; or its metrics."""
    whole = combine(properties, of)
    if whole.property == METRICS:
        return whole
    prop = properties[whole.property]
    summary = unpacked(prop, whole.payload)
    return whole._replace(payload=msgspec.msgpack.encode(prop.finish(summary)))


# Partitions: by queue, connection or message.


def judge(properties: Sequence[AnyProperty], task: chunks.Partition) -> Iterator[TaskRecord]:
    """The findings on a partition, of the properties that are divided so."""
    mine = [n for n, p in enumerate(properties) if p.partitioning == task.scope]
    for n, finding in _judged(task, {n: properties[n] for n in mine}):
        yield TaskRecord(task.run, n, 0, msgspec.msgpack.encode(finding))


def _judged(
    task: chunks.Partition, properties: Mapping[int, AnyProperty]
) -> Iterator[tuple[int, Finding]]:
    of = list(properties.values())
    if task.scope == "message":
        yield from zip(properties, _judged_by_message(task, of), strict=True)
    elif task.scope == "connection":
        yield from _judged_by_connection(task, properties)
    else:
        yield from _judged_by_queue(task, properties)


def _judged_by_queue(
    task: chunks.Partition, properties: Mapping[int, AnyProperty]
) -> Iterator[tuple[int, Finding]]:
    """The findings on some queues: regular ones are cleared by columns in one reading; the others are judged event by
    event, so many at a time that what is held of them stays small.
    """
    mine = {chunks.CONTROL, *task.buckets} if task.buckets else None
    # Where a chunk is nameless all queues are one partition, without buckets.
    queues = QueueGroups(properties, task.buckets, looks=not task.buckets)
    for file in task.files if properties else ():
        queues.take(chunks.read_events(file, queues.columns, mine))
    if queues.divide(task.ended):
        (take,) = queues.divided()
        for file in task.files:
            take(chunks.read_events(file, queues.columns, mine))
    yield from queues.findings(task.ended)
    for left in queues.left(task.ended):
        for file in task.files:
            left.take(EventBatch(chunks.read_chunk(file, None, left.buckets or mine)))
        for each in left.left:
            yield from each.findings(task.ended)


def _judged_by_connection(
    task: chunks.Partition, properties: Mapping[int, AnyProperty]
) -> Iterator[tuple[int, Finding]]:
    """The findings on some connections: regular ones are cleared by columns, irregular ones judged event by event in
    one more reading.
    """
    checks = GroupChecks(properties, "conn")
    for file in task.files if checks.looks else ():
        checks.take(_of_connections(task, file, checks.columns))
    left = rows_left(checks.left(task.ended), properties)
    yield from checks.findings(task.ended)
    names = {n for each in left for n in each.names or ()}
    for file in task.files if left else ():
        buckets = None
        if all(each.names is not None for each in left):
            named = EventBatch(chunks.read_chunk(file, ("n", "bucket", "conn")))
            buckets = _buckets(named, named.coded("conn").among(*names))
        fold_rows(_of_connections(task, file, None, buckets), left, "conn")
    for each in left:
        yield from each.findings(task.ended)


def _buckets(batch: EventBatch, some: npt.NDArray[np.bool_]) -> set[str]:
    """Those that have some of the rows: nothing else of the file need be read for these."""
    return set(batch.arrow["bucket"].filter(pa.array(some)).unique().to_pylist())


def _of_connections(
    task: chunks.Partition,
    file: str,
    columns: Collection[str] | None,
    buckets: Collection[str] | None = None,
) -> EventBatch:
    """The events of some connections, the gaps, and the leases that ran out on nobody knows which."""
    wanted = columns if columns is None else {*columns, "conn"}
    batch = chunks.read_chunk(file, wanted, buckets)
    if task.parts == 1:
        return EventBatch(batch)
    # A chunk in which nobody names a connection has no such column: it is of the part of those who name none.
    named = batch["conn"] if "conn" in batch.schema.names else pa.nulls(len(batch), pa.string())
    # Of each different connection, and at the end of none: its part. Then of each row whether that is this one.
    conn = named.dictionary_encode()
    part = [chunks.hashed(name or "", task.parts) for name in conn.dictionary.to_pylist()]
    codes = np.asarray(pc.fill_null(conn.indices, len(part)))
    parts = np.array([*part, chunks.hashed("", task.parts)])
    mine: npt.NDArray[np.bool_] = parts[codes] == task.part
    nowhere = pc.and_(pc.equal(batch["ev"], "expire"), pa.array(codes == len(part)))
    some = pc.or_(pc.or_(pa.array(mine), pc.equal(batch["ev"], GAP)), nowhere)
    return EventBatch(batch.filter(some))


def _judged_by_message(
    task: chunks.Partition, properties: Sequence[AnyProperty]
) -> Iterator[Finding]:
    """The findings on some messages: regular ones are cleared by columns, irregular ones judged in a second reading."""
    prefilter = Prefilter()
    published = False
    for file in task.files:
        batch = EventBatch(chunks.read_chunk(file, (*COLUMNS, "bucket")))
        given = rows_of_batch(batch, prefilter.holders)
        published = published or given.rows.publishes_begin
        if task.parts > 1:
            mine = given.rows.message % np.uint64(task.parts) == task.part
            given = given._replace(rows=given.rows.only(mine))
        prefilter.take(*given)
    # Whether anything is published is a question of the run, and so is the last traffic of a queue.
    prefiltered = prefilter.finish()._replace(published=published)
    # Without irregular messages no event is needed.
    again = _irregular(task, prefiltered) if len(prefiltered.irregular) else iter(())
    held = list(islice(again, BATCH))
    for prop in properties:
        assert isinstance(prop, LifecycleProperty)
        # More than can be held is read anew for each.
        yield prefiltered.judge(prop, held if len(held) < BATCH else _irregular(task, prefiltered))


def _irregular(task: chunks.Partition, prefiltered: Prefiltered) -> Iterator[tuple[int, Event]]:
    """The events that name irregular messages, and those about none, with their places."""
    messages = prefiltered.irregular
    for file in task.files:
        looked = EventBatch(chunks.read_chunk(file, (*NAMING, "bucket")))
        if (some := may_concern(looked, messages)).any():
            batch = EventBatch(chunks.read_chunk(file, None, _buckets(looked, some)))
            yield from placed_events(concerning(batch, messages).in_order())


# A whole folder.


class Audited(msgspec.Struct):
    """What the chunk files of a folder come to."""

    findings: list[Finding]
    runs: list[found.RunStatistics]
    metrics: dict[str, Measures]
    """By run."""


def audit_chunks(
    executor: TaskExecutor, folder: Path, properties: Sequence[AnyProperty], measure: bool = True
) -> Audited:
    """Judge the chunk files of a folder. Raises `PipelineError` if they are not of this version."""
    manifest = chunks.read_manifest(folder)
    records = [
        *_audit_by_time(executor, folder, manifest, properties, measure),
        *_audit_partitions(executor, folder, manifest, properties),
    ]
    metrics = {r.run: Measures.unpacked(r.payload) for r in records if r.property == METRICS}
    by_run: dict[str, dict[int, list[Finding]]] = {}
    for record in records:
        if record.property != METRICS:
            finding = msgspec.msgpack.decode(record.payload, type=Finding)
            by_run.setdefault(record.run, {}).setdefault(record.property, []).append(finding)
    statistics = {run: found.RunStatistics(run) for run in manifest.runs()}
    for unit in manifest.units:
        for s in unit.statistics:
            statistics[s.run] = statistics[s.run] + s
    findings = []
    for run, counted in sorted(statistics.items()):
        findings += found.of_run(properties, by_run.get(run, {}), counted)
    return Audited(findings, list(statistics.values()), metrics)


def _audit_partitions(
    executor: TaskExecutor,
    folder: Path,
    manifest: chunks.Manifest,
    properties: Sequence[AnyProperty],
) -> list[TaskRecord]:
    """The findings on what can be judged apart."""
    scopes = {p.partitioning for p in properties}
    parts = {s: each * executor.workers for s, each in PARTITIONS_EACH.items() if s in scopes}
    tasks = [
        TaskRecord(task.run, 0, 0, msgspec.msgpack.encode(task))
        for task in chunks.partitions(folder, manifest, parts)
    ]
    return executor.execute(tasks, partial(_judge, properties)) if tasks else []


def _judge(properties: Sequence[AnyProperty], task: TaskRecord) -> Iterator[TaskRecord]:
    return judge(properties, msgspec.msgpack.decode(task.payload, type=chunks.Partition))


def _audit_by_time(
    executor: TaskExecutor,
    folder: Path,
    manifest: chunks.Manifest,
    properties: Sequence[AnyProperty],
    measure: bool,
) -> list[TaskRecord]:
    """The findings on runs as a whole, and the metrics."""
    if not measure and all(p.partitioning != "run" for p in properties):
        return []
    ranges = chunks.ranges(folder, manifest, RANGES_EACH * executor.workers)
    if not ranges:
        return []
    joins: list[tuple[int, Join]] = []
    left = len(ranges)
    while left > FAN:
        joins.append((FAN, partial(combine, properties)))
        left = -(-left // FAN)
    joins.append((0, partial(finish, properties)))
    tasks = [TaskRecord(r.run, 0, r.number, msgspec.msgpack.encode(r)) for r in ranges]
    return executor.execute(tasks, partial(_summarise, properties, measure), joins)


def _summarise(
    properties: Sequence[AnyProperty], measure: bool, task: TaskRecord
) -> Iterator[TaskRecord]:
    return summarise(
        properties, measure, msgspec.msgpack.decode(task.payload, type=chunks.ChunkRange)
    )
