"""From files to chunk files: decode, validate, quarantine, complete, cut.

Runs are decoded side by side (`decoding`), and of a run that was completed by its recorder (`columns`) the pieces of
each file too.

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
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import msgspec

from seriatim_models.files import check_place, fingerprint, own_folders
from seriatim_models.history import HistoryError
from seriatim_models.pipeline.audit import chunks, columns
from seriatim_models.pipeline.audit.decoding import Decoded, DecodeTask, decode
from seriatim_models.pipeline.audit.runs import FileCount, Plan, RunPlan, Source
from seriatim_models.pipeline.audit.tasks import TaskExecutor, TaskRecord
from seriatim_models.pipeline.errors import PipelineError

APART = 2**23
"""Bytes of files that are worth a second process, which takes a few tenths of a second to begin."""


def _done(executor: TaskExecutor, works: list[DecodeTask]) -> dict[int, Decoded]:
    if not works:
        return {}
    works = _with_help(works, executor.workers - len(works))
    tasks = [TaskRecord(w.run, 0, w.number, msgspec.msgpack.encode(w)) for w in works]
    records = executor.execute(tasks, decode)
    return {r.number: msgspec.msgpack.decode(r.payload, type=Decoded) for r in records}


def _with_help(works: list[DecodeTask], spare: int) -> list[DecodeTask]:
    """The tasks, of which the longest may use a process more each, as many as there are workers to spare."""

    def nbytes(work: DecodeTask) -> int:
        return sum(fingerprint(s.path)[0] for parts in work.recorders for s in parts)

    long = [w for w in works if w.piece is None and nbytes(w) >= APART]
    helped = {w.number for w in sorted(long, key=nbytes)[max(0, len(long) - spare) :]}
    return [msgspec.structs.replace(w, apart=w.number in helped) for w in works]


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
            pieces = columns.pieces(source.path)
            if not pieces:
                return []  # a file without rows is counted too
            for begin, end, rows in pieces:
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
    if times and any(m.unstamped for m in made):
        return False  # see `columns.PARTLY_STAMPED`
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
