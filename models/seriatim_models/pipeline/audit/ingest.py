"""From files to chunk files: decode, validate, quarantine, complete, cut.

A planned run is decoded with the same code as in the local engine (`runs.read`), so that both engines reject the same
lines and complete events the same way; runs are decoded side by side, and of a run that was completed by its recorder
(`columns`) the pieces of each file too.

- *Idempotent*: a run whose files did not change is left as it is.
- *Incremental*: a new run costs itself; a new part at the end of a recorder's parts goes on where the last one ended.
  Any other change makes that run anew, and no other.
- *Atomic*: all that counts is named by the manifest, which is put in place by one rename at the end.
  An ingest that is killed leaves the old state; a second one into the same folder at the same time is refused.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from seriatim_models.files import check_place, fingerprint, own_folders, place_within
from seriatim_models.history import Event, HistoryError, Rejected, table
from seriatim_models.history.event import GAP
from seriatim_models.pipeline.audit import chunks, columns
from seriatim_models.pipeline.audit import findings as found
from seriatim_models.pipeline.audit.runs import (
    Carry,
    Completions,
    FileCount,
    Plan,
    RunItem,
    RunPlan,
    Source,
    read,
    recorder,
)
from seriatim_models.pipeline.audit.tasks import TaskExecutor, TaskRecord
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.pipeline.state_file import read_state, write_state

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


class RecorderState(msgspec.Struct):
    """A file ``*.carry``: where the parts of a run's only recorder ended."""

    carry: Carry
    counts: dict[str, int]
    """Events so far, by the run that they name."""
    completions: Completions = msgspec.field(default_factory=Completions)


_REMEDY = "delete it, and the next audit into this folder reads its recordings anew"


class _Writer:
    """Gathers a run's items into chunk files."""

    def __init__(self, work: DecodeTask, counts: dict[str, int]) -> None:
        self.made = Decoded(work.number)
        self.counts = counts
        self._work = work
        self._folder = Path(work.folder)
        self._waiting: dict[str, list[Event]] = defaultdict(list)
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
            waiting = self._waiting[item.run]
            waiting.append(item.event)
            if len(waiting) == self._work.slice:
                self._flush(item.run)

    def rows(self, run: str, held: dict[str, pa.Array], n: int) -> None:
        """Rows that are columns already."""
        found.count(self._statistics_of(run), columns.kinds(held), GAP)
        self._write(run, columns.placed(held, n))

    def close(self) -> None:
        for run in list(self._waiting):
            self._flush(run)
        self._flush_rejected()
        if self._quarantine is not None:
            self._quarantine.close()
        self.made.statistics = list(self._statistics.values())

    def _statistics_of(self, run: str) -> found.RunStatistics:
        return self._statistics.setdefault(run, found.RunStatistics(run))

    def _flush(self, run: str) -> None:
        events = self._waiting.pop(run)
        if events:
            found.count_events(self._statistics_of(run), events)
            n = self.counts.get(run, 0)
            self.counts[run] = n + len(events)
            self._write(run, columns.placed(table.columns(events), n))

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


def _decode(work: DecodeTask) -> Decoded:
    """One task, in a worker."""
    if work.piece is not None:
        try:
            return _decode_piece(work, work.piece)
        except columns.RowByRow:
            return Decoded(work.number, row_by_row=True)
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
    writer = _Writer(work, before.counts)
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


def _decode_piece(work: DecodeTask, piece: tuple[int, int, int]) -> Decoded:
    begin, end, n = piece
    (source,) = work.recorders[0]
    head = columns.header(source.path)
    stamp = fingerprint(source.path)
    if head is None:
        raise columns.RowByRow("no header")
    writer = _Writer(work, {})
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


def decode(task: TaskRecord) -> Iterator[TaskRecord]:
    """Do the `DecodeTask` of a task: writes chunk files, and gives a `Decoded` that names them."""
    made = _decode(msgspec.msgpack.decode(task.payload, type=DecodeTask))
    yield task._replace(payload=msgspec.msgpack.encode(made))


def _done(executor: TaskExecutor, works: list[DecodeTask]) -> dict[int, Decoded]:
    if not works:
        return {}
    tasks = [TaskRecord(w.run, 0, w.number, msgspec.msgpack.encode(w)) for w in works]
    records = executor.execute(tasks, decode)
    return {r.number: msgspec.msgpack.decode(r.payload, type=Decoded) for r in records}


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Nobody else writes into the folder meanwhile. The system lets go of it if this process dies."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ".lock"
    try:  # somebody else's link is not followed, his pipe not waited for, and nothing cut off
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        raise PipelineError(f"{path}: is no file of ours: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(file)
        raise PipelineError(f"{folder}: another seriatim is writing there") from error
    try:
        yield
    finally:
        os.close(file)


def ingest(
    executor: TaskExecutor,
    plan: Plan,
    folder: Path,
    slice_length: int = chunks.SLICE,
) -> chunks.Manifest:
    """Bring the folder's chunk files up to the plan, then put its manifest in place at once; returns that.

    What cannot be taken by columns is read row by row.
    Raises `HistoryError` if a file that the caller named cannot be read, `PipelineError` if the folder is in use.
    """
    with locked(folder):
        check_place(folder / "manifest.json")  # before the work
        manifest = _ingested(executor, plan, folder, slice_length)
        chunks.write_manifest(folder, manifest)
        _sweep(folder, manifest)
    return manifest


def _stamps(run: RunPlan) -> list[list[chunks.Stamp]]:
    return [
        [chunks.Stamp(s.path, s.named, *fingerprint(s.path)) for s in parts]
        for parts in run.recorders
    ]


def _ingested(
    executor: TaskExecutor, plan: Plan, folder: Path, slice_length: int
) -> chunks.Manifest:
    before = _before(folder, slice_length)
    into = f"work-{uuid.uuid4().hex[:12]}"
    (folder / into).mkdir()
    stamps = {run.run: _stamps(run) for run in plan.runs}
    jobs: dict[str, list[DecodeTask]] = {}
    kept: dict[str, chunks.Unit] = {}
    numbers = iter(range(2**31))

    def work(run: str, recorders: list[list[Source]], carry: str = "") -> DecodeTask:
        return DecodeTask(next(numbers), run, recorders, str(folder), into, slice_length, carry)

    def rows(run: RunPlan) -> list[DecodeTask]:
        return [work(run.run, run.recorders)]

    for run in plan.runs:
        unit = before.get(run.run)
        if unit is not None and unit.recorders == stamps[run.run]:
            kept[run.run] = unit
            continue
        if unit is not None and unit.carry and _extends(unit.recorders, stamps[run.run]):
            kept[run.run] = unit
            new = run.recorders[0][len(unit.recorders[0]) :]
            jobs[run.run] = [work(run.run, [new], unit.carry)]
            continue
        jobs[run.run] = _pieces(run, work) or rows(run)
    made = _done(executor, [w for of in jobs.values() for w in of])
    again = {
        run.run: rows(run)
        for run in plan.runs
        if not _fit([made[w.number] for w in jobs.get(run.run, [])])
    }
    made |= _done(executor, [w for of in again.values() for w in of])
    jobs |= again
    units = []
    for run in plan.runs:
        of = [made[w.number] for w in jobs.get(run.run, [])]
        for m in of:
            if m.error or m.damaged:
                shutil.rmtree(folder / into)
                raise HistoryError(m.error) if m.error else PipelineError(m.damaged)
        units.append(_unit(run.run, stamps[run.run], kept.get(run.run), of))
    return chunks.Manifest(units, slice_length)


def _before(folder: Path, slice_length: int) -> dict[str, chunks.Unit]:
    """What the last ingest left, by planned run; nothing if it is of another version, or not all there."""
    try:
        old = chunks.read_manifest(folder)
    except PipelineError:
        return {}
    for name in old.paths():
        check_place(folder / name)
    if old.slice != slice_length or not all((folder / p).exists() for p in old.paths()):
        return {}
    return {u.run: u for u in old.units}


def _extends(old: list[list[chunks.Stamp]], new: list[list[chunks.Stamp]]) -> bool:
    """Whether one recorder's parts are what they were, and some more."""
    return len(old) == len(new) == 1 and old[0] == new[0][: len(old[0])]


def _pieces(run: RunPlan, work: object) -> list[DecodeTask]:
    """The run cut into pieces for `columns`, if all of it may be taken so."""
    assert callable(work)
    if len(run.recorders) != 1 or not all(columns.header(s.path) for s in run.recorders[0]):
        return []
    out = []
    n = 0
    try:
        for source in run.recorders[0]:
            for begin, end, rows in columns.pieces(source.path):
                whole: DecodeTask = work(run.run, [[source]])
                out.append(msgspec.structs.replace(whole, piece=(begin, end, n)))
                n += rows
    except columns.RowByRow:  # it has changed since its header was read
        return []
    return out


def _fit(made: list[Decoded]) -> bool:
    """Whether pieces that were decoded apart follow each other."""
    if any(m.row_by_row for m in made):
        return False
    bounds = [(m.first, m.last) for m in made if m.first is not None and m.last is not None]
    times = [m.times for m in made if m.times is not None]
    in_turn = all(a[1] < b[0] for a, b in pairwise(bounds))
    return in_turn and all(a[1] <= b[0] for a, b in pairwise(times))


def _unit(
    run: str, stamps: list[list[chunks.Stamp]], old: chunks.Unit | None, made: list[Decoded]
) -> chunks.Unit:
    """What a run consists of now: what it did before, and what was made."""
    unit = old or chunks.Unit(run, stamps, {}, [], [], [])
    held: dict[str, list[chunks.Chunk]] = {r: list(of) for r, of in unit.chunks.items()}
    files: dict[str, FileCount] = {f.source: f for f in unit.files}
    statistics = {
        s.run: msgspec.structs.replace(s, by_event=dict(s.by_event)) for s in unit.statistics
    }
    quarantine = list(unit.quarantine)
    for m in made:
        for name, of in m.chunks.items():
            held.setdefault(name, []).extend(of)
        for f in m.files:
            files[f.source] = f if f.source not in files else f + files[f.source]
        for s in m.statistics:
            statistics[s.run] = statistics[s.run] + s if s.run in statistics else s
        quarantine += m.quarantine
    carry = made[-1].carry if made else unit.carry
    return chunks.Unit(
        run, stamps, held, list(files.values()), quarantine, list(statistics.values()), carry
    )


def _sweep(folder: Path, manifest: chunks.Manifest) -> None:
    """Delete what the manifest does not name: old states, and what killed ingests left."""
    named = manifest.paths()
    for work in own_folders(folder, "work-*"):
        left = [p for p in work.iterdir() if f"{work.name}/{p.name}" not in named]
        for path in left:
            path.unlink(missing_ok=True)
        if not any(work.iterdir()):
            work.rmdir()
