"""Complete Parquet of one recorder judged in one reading, in one process and without files of its own.

Each batch of a run is given to all checks over columns in turn: of messages, of queues and of connections. They clear
what is regular. If anything is left, the recording is read once more, and the row forms are given the few events that
concern it; of queues so many at a time that what is held of them stays small. What cannot be taken by columns, or is
another file by the time of a second reading, raises `columns.RowByRow`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from seriatim_models.child_process import processes
from seriatim_models.files import fingerprint
from seriatim_models.history import table
from seriatim_models.history.event import GAP
from seriatim_models.pipeline.audit import chunks, columns
from seriatim_models.pipeline.audit import findings as found
from seriatim_models.pipeline.audit.block_process import ended
from seriatim_models.pipeline.audit.groups import (
    BATCH,
    GroupChecks,
    RowsLeft,
    fold_rows,
    placed_events,
    rows_left,
)
from seriatim_models.pipeline.audit.queue_groups import QueueGroups, QueuesLeft
from seriatim_models.pipeline.audit.runs import FileCount, RunPlan
from seriatim_models.pipeline.audit.side_by_side import DOES, ours
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.pipeline.garbage import rare_collections
from seriatim_models.pipeline.spared_imports import spare_pandas
from seriatim_models.properties.base import AnyProperty, Finding
from seriatim_models.properties.blackbox.lifecycle import LifecycleProperty
from seriatim_models.properties.columnar.batches import concerning, rows_of_batch
from seriatim_models.properties.columnar.event_batch import EventBatch
from seriatim_models.properties.columnar.prefilter import IrregularMessages, Prefilter, Prefiltered

ENOUGH = 400_000
"""Rows that are worth a second process."""
LENGTH = 2**17
"""Rows that are held at a time."""


class _Recording:
    """The files of a run, which may be read several times."""

    def __init__(self, run: RunPlan) -> None:
        """Raises `RowByRow` if they may not be taken by columns."""
        if len(run.recorders) != 1:
            raise columns.RowByRow("several recorders")
        self.run = run.run
        paths = [source.path for source in run.recorders[0]]
        self._stamps = {path: fingerprint(path) for path in paths}
        heads = [(path, columns.header(path)) for path in paths]
        self._files = [(path, head) for path, head in heads if head is not None]
        self.rows = {p: sum(rows for _, _, rows in columns.pieces(p)) for p in paths}
        if len(self._files) < len(paths) or not all(self.rows.values()):
            raise columns.RowByRow("no header that says that it is complete, or no rows")

    def batches(self) -> Iterator[EventBatch]:
        """The rows with places and buckets, some at a time. Raises `RowByRow`, behind the last if the files changed."""
        n = 0
        reached = -(2**63), -(2**63)
        for held in columns.in_turn(self._files, self.run, reached, LENGTH, table.CODED):
            placed = columns.placed(held, n)
            n += len(held["i"])
            some = {c: a for c, a in placed.items() if a.null_count < len(a)}
            yield EventBatch(pa.RecordBatch.from_pydict(some))
        if any(fingerprint(path) != stamp for path, stamp in self._stamps.items()):
            raise columns.RowByRow("changed")


class _MessagesLeft:
    """Those who judge irregular messages event by event."""

    def __init__(self, properties: Mapping[int, AnyProperty], prefiltered: Prefiltered) -> None:
        self._prefiltered = prefiltered
        self._judges = {
            n: IrregularMessages(prefiltered, p)
            for n, p in properties.items()
            if isinstance(p, LifecycleProperty)
        }

    @property
    def any(self) -> bool:
        """Whether there is an irregular message."""
        return bool(self._judges) and len(self._prefiltered.irregular) > 0

    def take(self, batch: EventBatch) -> None:
        """Add the next events."""
        chosen = concerning(batch, self._prefiltered.irregular).in_order()
        of = placed_events(chosen)
        while placed := list(islice(of, BATCH)):
            for judge in self._judges.values():
                judge.take(placed)

    def findings(self) -> Iterator[tuple[int, Finding]]:
        """The findings, by number of the property."""
        return ((n, judge.finish()) for n, judge in self._judges.items())


class _FirstReading:
    """All checks of a run, and what is judged as a whole."""

    def __init__(
        self,
        recording: _Recording,
        properties: Sequence[AnyProperty],
        on_events: Callable[[int], None] | None,
    ) -> None:
        of: dict[str, dict[int, AnyProperty]] = {}
        for n, p in enumerate(properties):
            of.setdefault(p.partitioning, {})[n] = p
        self._messages, self._connections = of.get("message", {}), of.get("connection", {})
        self._prefilter = Prefilter()
        self._of_queues = QueueGroups(
            of.get("queue", {}), [f"q{b:03d}" for b in range(chunks.BUCKETS)]
        )
        self._of_connections = GroupChecks(self._connections, "conn")
        self._whole = RowsLeft(None, of.get("run", {}))
        self.statistics = found.RunStatistics(recording.run)
        self.ended: int | None = None
        for batch in recording.batches():
            self._take(batch)
            if on_events is not None:
                on_events(self.statistics.events)
        if self._of_queues.divide(self.ended):
            for batch in recording.batches():
                self._of_queues.take_divided(batch)

    def _take(self, batch: EventBatch) -> None:
        found.count(self.statistics, columns.kinds({"ev": batch.column("ev")}), GAP)
        if "t" in batch.arrow.schema.names:
            latest = pc.max(batch.arrow["t"]).as_py()
            self.ended = latest if self.ended is None else max(self.ended, latest)
        if self._messages:
            rows = rows_of_batch(batch, self._prefilter.holders)
            self._prefilter.take(*rows)
        self._of_queues.take(batch)
        if self._of_connections.looks:
            self._of_connections.take(batch)
        if self._whole.properties:
            fold_rows(batch, [self._whole], "q")

    def findings(self) -> Iterator[tuple[int, Finding]]:
        """The findings on what is cleared, and on the run as a whole."""
        yield from self._of_queues.findings(self.ended)
        yield from self._of_connections.findings(self.ended)
        yield from zip(self._whole.properties, self._whole.fold.finish(), strict=True)

    def left(self) -> tuple[_MessagesLeft, list[RowsLeft], list[QueuesLeft]]:
        """What is left to the rows: of messages, of connections and of queues."""
        connections = rows_left(self._of_connections.left(self.ended), self._connections)
        messages = _MessagesLeft(self._messages, self._prefilter.finish())
        return messages, connections, self._of_queues.left(self.ended)


def judged(
    run: RunPlan,
    properties: Sequence[AnyProperty],
    on_events: Callable[[int], None] | None = None,
    jobs: int = 1,
    alone: bool = False,
) -> found.JudgedRun:
    """Judge a run, in so many processes if it is long: by queues, by connections and by the rest; each reads all of it.

    `on_events` and `alone`: see `audit_paths`. Raises `RowByRow` for what cannot be taken by columns, and
    `PipelineError` if another process was killed.
    """
    if jobs == 1 or _rows(run) < ENOUGH:
        return _judged(run, properties, on_events)
    scopes = ("queue", "connection") if jobs > 2 else ("queue",)
    elsewhere = [
        [n for n, p in enumerate(properties) if p.partitioning == scope and ours(p)]
        for scope in scopes
    ]
    here = [n for n in range(len(properties)) if not any(n in share for share in elsewhere)]
    with processes(len(elsewhere), *([spare_pandas] if alone else [])) as pool:
        futures = [
            pool.submit(_judged_apart, run, [properties[n] for n in share]) for share in elsewhere
        ]
        mine = _judged(run, [properties[n] for n in here], on_events)
        try:
            others = [future.result() for future in futures]
        except BrokenProcessPool as error:
            raise PipelineError(ended(DOES)) from error
    by_number = {
        n: finding
        for numbers, one in zip([here, *elsewhere], [mine, *others], strict=True)
        for n, finding in zip(numbers, one.findings, strict=True)
    }
    return mine._replace(findings=[by_number[n] for n in range(len(properties))])


def _rows(run: RunPlan) -> int:
    """How many rows the files of its first recorder have. Raises `RowByRow`."""
    return sum(n for source in run.recorders[0] for _, _, n in columns.pieces(source.path))


@rare_collections()
def _judged_apart(run: RunPlan, properties: Sequence[AnyProperty]) -> found.JudgedRun:
    return _judged(run, properties)


def _judged(
    run: RunPlan,
    properties: Sequence[AnyProperty],
    on_events: Callable[[int], None] | None = None,
) -> found.JudgedRun:
    recording = _Recording(run)
    reading = _FirstReading(recording, properties, on_events)
    statistics, ended = reading.statistics, reading.ended
    findings, left = [*reading.findings()], reading.left()
    del reading  # what the checks hold is not needed any more
    by_number: dict[int, list[Finding]] = {}
    for n, finding in (*findings, *_read_again(recording, ended, *left)):
        by_number.setdefault(n, []).append(finding)
    files = [FileCount(p, rows, 0, 0, rows, 0) for p, rows in recording.rows.items()]
    return found.JudgedRun(found.of_run(properties, by_number, statistics), statistics, files)


def _read_again(
    recording: _Recording,
    ended: int | None,
    messages: _MessagesLeft,
    connections: list[RowsLeft],
    queues: list[QueuesLeft],
) -> Iterator[tuple[int, Finding]]:
    """The findings on what is left to the rows, in one more reading; in several if many queues are."""
    first = queues.pop() if queues else QueuesLeft(None, [])  # mostly the shortest list
    if messages.any or connections or first.left:
        for batch in recording.batches():
            if messages.any:
                messages.take(batch)
            if connections:
                fold_rows(batch, connections, "conn")
            first.take(batch)
    yield from messages.findings()
    for each in (*connections, *first.left):
        yield from each.findings(ended)
    connections.clear()
    while queues:
        of = queues.pop()
        for batch in recording.batches():
            of.take(batch)
        for each in of.left:
            yield from each.findings(ended)
