"""Complete Parquet of one recorder judged in one reading, in one process and without files of its own.

Each batch of a run is given to all checks over columns in turn: of messages, of queues and of connections. They clear
what is regular. If anything is left, the recording is read once more, and the row forms are given the few events that
concern it; of queues so many at a time that what is held of them stays small. What cannot be taken by columns, or is
another file by the time of a second reading, raises `columns.RowByRow`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from seriatim_models.files import fingerprint
from seriatim_models.history import table
from seriatim_models.history.event import GAP
from seriatim_models.pipeline.audit import chunks, columns
from seriatim_models.pipeline.audit import findings as found
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
from seriatim_models.pipeline.audit.threads import in_threads, read_ahead
from seriatim_models.properties.base import AnyProperty, Finding
from seriatim_models.properties.blackbox.lifecycle import LifecycleProperty
from seriatim_models.properties.columnar.batches import concerning, rows_of_batch
from seriatim_models.properties.columnar.event_batch import EventBatch
from seriatim_models.properties.columnar.prefilter import IrregularMessages, Prefilter, Prefiltered

LENGTH = 2**17
"""Rows that are held at a time."""
MOST = 3
"""Shares of the checks, at most: those of queues, of messages and of connections. One more thread reads."""


class _Recording:
    """The files of a run, which may be read several times."""

    def __init__(self, run: RunPlan, ahead: bool) -> None:
        """`ahead`: another thread reads them. Raises `RowByRow` if they may not be taken by columns."""
        if len(run.recorders) != 1:
            raise columns.RowByRow("several recorders")
        self.run = run.run
        self._ahead = ahead
        paths = [source.path for source in run.recorders[0]]
        self._stamps = {path: fingerprint(path) for path in paths}
        heads = [(path, columns.header(path)) for path in paths]
        self._files = [(path, head) for path, head in heads if head is not None]
        self.rows = {p: sum(rows for _, _, rows in columns.pieces(p)) for p in paths}
        if len(self._files) < len(paths) or not all(self.rows.values()):
            raise columns.RowByRow("no header that says that it is complete, or no rows")

    def batches(self) -> Iterator[EventBatch]:
        """The rows with places and buckets, some at a time. Raises `RowByRow`, behind the last if the files changed."""
        return read_ahead(self._read()) if self._ahead else self._read()

    def _read(self) -> Iterator[EventBatch]:
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
        threads: int,
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
        self._on_events = on_events
        queues, messages, rest = self._of_queues.take, self._take_messages, self._take_rest
        ways = [
            [[queues, messages, rest]],
            [[queues], [messages, rest]],
            [[queues], [messages], [rest]],
        ]
        with in_threads(ways[threads - 1]) as take:
            for batch in recording.batches():
                take(batch)
        if self._of_queues.divide(self.ended):
            with in_threads([[of] for of in self._of_queues.divided(threads)]) as take:
                for batch in recording.batches():
                    take(batch)

    def _take_messages(self, batch: EventBatch) -> None:
        if self._messages:
            self._prefilter.take(*rows_of_batch(batch, self._prefilter.holders))

    def _take_rest(self, batch: EventBatch) -> None:
        found.count(self.statistics, columns.kinds({"ev": batch.column("ev")}), GAP)
        if "t" in batch.arrow.schema.names:
            latest = pc.max(batch.arrow["t"]).as_py()
            self.ended = latest if self.ended is None else max(self.ended, latest)
        if self._of_connections.looks:
            self._of_connections.take(batch)
        if self._whole.properties:
            fold_rows(batch, [self._whole], "q")
        if self._on_events is not None:
            self._on_events(self.statistics.events)

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
    threads: int = 1,
) -> found.JudgedRun:
    """Judge a run, in so many threads, of which this one calls `on_events` (see `audit_paths`).

    Raises `RowByRow` for what cannot be taken by columns.
    """
    threads = min(threads, MOST)
    recording = _Recording(run, ahead=threads > 1)
    reading = _FirstReading(recording, properties, on_events, threads)
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
