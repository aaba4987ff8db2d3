"""What one task of an ingest does: it decodes a run, or a piece of one, and writes its chunk files.

Lines are read, completed and rejected by the code of the local engine, so that both engines have the same events: in
blocks where they are clean (`history.clean`), else one by one (`runs.read`). Completion is a fold from one event to the
next, so no task divides it; where a core is free, a process beside it writes what it completed (`block_process`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from seriatim_models.files import Fingerprint, fingerprint, place_within
from seriatim_models.history import Event, HistoryError, Rejected, table
from seriatim_models.history.clean import CleanFiles, NotClean
from seriatim_models.history.event import GAP
from seriatim_models.history.lines import DAMAGE
from seriatim_models.pipeline.audit import chunks, columns
from seriatim_models.pipeline.audit import findings as found
from seriatim_models.pipeline.audit.block_process import BlockProcess
from seriatim_models.pipeline.audit.runs import (
    Carry,
    Completions,
    FileCount,
    RunItem,
    RunPlan,
    Source,
    read,
    recorder,
)
from seriatim_models.pipeline.audit.tasks import TaskRecord
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.pipeline.garbage import rare_collections
from seriatim_models.pipeline.state_file import read_state, write_state
from seriatim_models.properties.columnar.second_look import decoded, encoded

COLUMNS = 4
"""How many times as long a chunk is that is made of columns, since nothing of it is ever an object."""
_REJECTED = 4096  # rejected lines held before they are written


class DecodeTask(msgspec.Struct, frozen=True):
    """What one task decodes: a planned run, the parts that came to it, or a piece of one Parquet file."""

    number: int
    run: str
    recorders: list[list[Source]]
    folder: str
    """That of the manifest."""
    into: str
    """The work folder in it."""
    slice: int
    carry: str = ""
    """Where the parts before ended; empty at the start."""
    piece: tuple[int, int, int] | None = None
    """Row groups from and to, and the place of the first row in the run."""
    apart: bool = False
    """Whether a process of its own may write what this one completes."""


class Decoded(msgspec.Struct):
    """What came of a `DecodeTask`."""

    number: int
    error: str = ""
    """Why a recording cannot be read."""
    damaged: str = ""
    """Why the state before cannot be used."""
    row_by_row: bool = False
    chunks: dict[str, list[chunks.Chunk]] = {}
    files: list[FileCount] = []
    quarantine: list[str] = []
    statistics: list[found.RunStatistics] = []
    carry: str = ""
    first: int | None = None
    """Of a piece: its first and last index."""
    last: int | None = None
    times: tuple[int, int] | None = None
    """Of a piece: its first and last stamp."""
    unstamped: bool = False
    """Of a piece: whether rows of it have no stamp."""


class RecorderState(msgspec.Struct):
    """A file ``*.carry``: where the parts of a run's only recorder ended."""

    carry: Carry
    counts: dict[str, int]
    """Events so far, by the run that they name."""
    completions: Completions = msgspec.field(default_factory=Completions)


_REMEDY = "delete it, and the next audit into this folder reads its recordings anew"


class _WaitingEvents:
    """Events of a run that are not written yet: as arrays, and the latest few as they are."""

    def __init__(self) -> None:
        self.parts: list[dict[str, pa.Array]] = []
        self.rows = 0
        """Events of the parts."""
        self.events: list[Event] = []


class ChunkWriter:
    """Gathers a run's items into chunk files."""

    def __init__(self, work: DecodeTask, counts: dict[str, int]) -> None:
        self.made = Decoded(work.number)
        self.counts = counts
        self._work = work
        self._folder = Path(work.folder)
        self._waiting: dict[str, _WaitingEvents] = defaultdict(_WaitingEvents)
        self._rejected: list[Rejected] = []
        self._quarantine: pq.ParquetWriter | None = None
        self._statistics: dict[str, found.RunStatistics] = {}
        self._n_chunks = 0

    def add(self, item: RunItem) -> None:
        if isinstance(item, Rejected):
            self._rejected.append(item)
            if len(self._rejected) == _REJECTED:
                self._flush_rejected()
        elif isinstance(item, FileCount):
            self.made.files.append(item)
        else:
            self.take(item.run, (item.event,))

    def take(self, run: str, events: Sequence[Event]) -> None:
        """Add completed events of a run."""
        at = 0
        while at < len(events):
            waiting = self._waiting[run]
            # Some at a time, so that a process that sends them does not wait until a whole chunk is made.
            room = min(table.HELD, self._work.slice - waiting.rows)
            begin, at = at, at + room - len(waiting.events)
            waiting.events += events[begin:at]
            if len(waiting.events) == room:
                self._make_columns(run, waiting)

    def rows(self, run: str, held: dict[str, pa.Array], n: int) -> None:
        """Rows that are columns already."""
        found.count(self._statistics_of(run), columns.kinds(held), GAP)
        self._write(run, columns.placed(held, n))

    def close(self) -> None:
        for run, waiting in list(self._waiting.items()):
            self._make_columns(run, waiting)
            if run in self._waiting:
                self._flush(run)
        self._flush_rejected()
        if self._quarantine is not None:
            self._quarantine.close()
        self.made.statistics = list(self._statistics.values())

    def _statistics_of(self, run: str) -> found.RunStatistics:
        return self._statistics.setdefault(run, found.RunStatistics(run))

    def _make_columns(self, run: str, waiting: _WaitingEvents) -> None:
        """Make arrays of the events that wait, and write them when they are as many as a chunk has."""
        if waiting.events:
            found.count_events(self._statistics_of(run), waiting.events)
            waiting.parts.append(table.columns(waiting.events))
            waiting.rows += len(waiting.events)
            waiting.events = []
        if waiting.rows == self._work.slice:
            self._flush(run)

    def _flush(self, run: str) -> None:
        waiting = self._waiting.pop(run)
        n = self.counts.get(run, 0)
        self.counts[run] = n + waiting.rows
        self._write(run, columns.placed(table.joined(waiting.parts), n))

    def _write(self, run: str, held: dict[str, pa.Array]) -> None:
        name = f"{self._work.into}/{self._work.number:06d}-{self._n_chunks:06d}.parquet"
        self._n_chunks += 1
        self.made.chunks.setdefault(run, []).append(chunks.write_chunk(self._folder, name, held))

    def _flush_rejected(self) -> None:
        if not self._rejected:
            return
        if self._quarantine is None:
            name = f"{self._work.into}/{self._work.number:06d}.quarantine.parquet"
            self._quarantine = pq.ParquetWriter(self._folder / name, chunks.QUARANTINE)
            self.made.quarantine.append(name)
        rows = [msgspec.to_builtins(r) for r in self._rejected]
        self._quarantine.write_table(pa.Table.from_pylist(rows, chunks.QUARANTINE))
        self._rejected = []


@rare_collections()
def do(work: DecodeTask) -> Decoded:
    """One task, in a worker."""
    if work.piece is not None:
        try:
            return _decode_piece(work, work.piece)
        except columns.RowByRow:
            return Decoded(work.number, row_by_row=True)
    if not work.carry and len(work.recorders) == 1:
        # What is not clean is said line by line; what was written of it by then is overwritten, or swept away.
        with suppress(NotClean, HistoryError, *DAMAGE):
            return _decode_clean(work, work.recorders[0])
    return _decode_by_line(work)


def _decode_by_line(work: DecodeTask) -> Decoded:
    folder = Path(work.folder)
    before = RecorderState(Carry(work.run), {})
    try:
        if work.carry:
            before = read_state(
                place_within(folder, work.carry, PipelineError), "recorder", RecorderState, _REMEDY
            )
    except PipelineError as error:
        return Decoded(work.number, damaged=str(error))
    carry = before.carry
    writer = ChunkWriter(work, before.counts)
    try:
        if len(work.recorders) == 1:
            parts = recorder(carry, work.recorders[0])
            items: Iterator[RunItem] = (before.completions(item) for _, item in parts)
        else:
            items = read(RunPlan(work.run, work.recorders))
        for item in items:
            writer.add(item)
    except HistoryError as error:
        # A result, not a failed task: Spark would try again and then show a stack trace.
        return Decoded(work.number, error=str(error))
    writer.close()
    if len(work.recorders) == 1:
        writer.made.carry = f"{work.into}/{work.number:06d}.carry"
        write_state(folder / writer.made.carry, "recorder", before)
    return writer.made


def _decode_clean(work: DecodeTask, sources: Sequence[Source]) -> Decoded:
    """The files of one recorder in blocks. Raises `NotClean`, and what reading and writing raises."""
    if any(source.continues is not None for source in sources):
        raise NotClean("a later part without a header")
    clean = CleanFiles(work.run, named=True)
    apart = BlockProcess(partial(written, work), "wrote chunk files") if work.apart else None
    try:
        writer = ChunkWriter(work, {})
        for source in sources:
            stamp = fingerprint(source.path)
            for block in clean.blocks(Path(source.path)):
                if apart is None:
                    writer.take(block[0].run, block)
                else:
                    apart.send(encoded(block))
            if fingerprint(source.path) != stamp:
                raise NotClean(f"{source.path}: changed")
        made = _closed(writer) if apart is None else _answered(apart)
    except PipelineError as error:
        return Decoded(work.number, damaged=str(error))
    finally:
        if apart is not None:
            apart.kill()
    for source, (events, header) in zip(sources, clean.files, strict=True):
        made.files.append(FileCount(source.path, events + header, header, 0, events, 0))
    made.carry = f"{work.into}/{work.number:06d}.carry"
    write_state(Path(work.folder) / made.carry, "recorder", _state_of(work.run, clean, stamp))
    return made


def _state_of(planned: str, clean: CleanFiles, stamp: Fingerprint) -> RecorderState:
    """Where clean files ended."""
    carry = Carry(planned, stamp=stamp)
    if clean.last is None:
        return RecorderState(carry, {})
    run = clean.last.run
    key = run, clean.last.rec
    carry.seen, carry.begun, carry.last = {key: clean.indices}, {key: None}, {run: clean.last}
    carry.clocks = {key: clean.clock} if clean.clock else {}
    carry.at = max(carry.at, clean.newest or 0)
    completions = Completions({} if clean.complete else {run: clean.completion})
    return RecorderState(carry, {run: sum(events for events, _ in clean.files)}, completions)


def _closed(writer: ChunkWriter) -> Decoded:
    writer.close()
    return writer.made


def _answered(process: BlockProcess) -> Decoded:
    process.send(b"")
    return msgspec.msgpack.decode(process.answer(), type=Decoded)


def written(work: DecodeTask, blocks: Iterable[bytes]) -> bytes:
    """What came of writing completed events, in a process of its own: a `Decoded`."""
    writer = ChunkWriter(work, {})
    for raw in blocks:
        events = decoded(raw)
        writer.take(events[0].run, events)
    return msgspec.msgpack.encode(_closed(writer))


def _decode_piece(work: DecodeTask, piece: tuple[int, int, int]) -> Decoded:
    begin, end, n = piece
    (source,) = work.recorders[0]
    head = columns.header(source.path)
    stamp = fingerprint(source.path)
    if head is None:
        raise columns.RowByRow("no header")
    writer = ChunkWriter(work, {})
    rows = 0
    last = -(2**63)
    for batch in columns.batches(source.path, begin, end, COLUMNS * work.slice):
        held = columns.checked(batch, head, work.run, last)
        if writer.made.first is None:
            writer.made.first = held["i"][0].as_py()
        last = writer.made.last = held["i"][-1].as_py()
        _stamped(writer.made, held)
        writer.rows(work.run, held, n + rows)
        rows += len(batch)
    if fingerprint(source.path) != stamp:
        raise columns.RowByRow("changed")
    writer.close()
    writer.made.files.append(FileCount(source.path, rows, 0, 0, rows, 0))
    return writer.made


def _stamped(made: Decoded, held: dict[str, pa.Array]) -> None:
    """Note the stamps of a batch. Raises `RowByRow` if they fall behind those of the batch before."""
    stamps = held["t"].drop_null() if "t" in held else None
    if stamps is not None and len(stamps):
        begun, ended = stamps[0].as_py(), stamps[-1].as_py()
        if made.times is not None and begun < made.times[1]:
            raise columns.RowByRow("stamps fall")
        made.times = (made.times[0] if made.times is not None else begun), ended
    else:
        made.unstamped = True


def decode(task: TaskRecord) -> Iterator[TaskRecord]:
    """Do the `DecodeTask` of a task: writes chunk files, and gives a `Decoded` that names them."""
    made = do(msgspec.msgpack.decode(task.payload, type=DecodeTask))
    yield task._replace(payload=msgspec.msgpack.encode(made))
