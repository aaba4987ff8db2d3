"""Chunk files: a run's events as Parquet, cut so that audits read files and never shuffle.

``<folder>/manifest.json`` names all that counts; what it does not name is left over from an ingest that was killed,
and the next one deletes it.

    manifest.json
    work-*/                 what one ingest wrote
      000000-000000.parquet   a chunk: at most `SLICE` events that follow each other in one run
      000000.quarantine.parquet
      000000.carry            where its next part goes on (a pickle; made anew if it does not fit)

A chunk has the columns of qh/1 (`history.table`; those that are empty throughout are left out) and two more:
`n`, the event's place in the run, and `shelf`, a bucket of queues (``q000`` and so on, or ``control`` for events that
name no queue and so concern all). Its rows are sorted by shelf, then by `n`; the manifest says how many each shelf has.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seriatim_models.history import Event, Rejected, table
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.pipeline.findings import RunStatistics
from seriatim_models.pipeline.runs import FileCount
from seriatim_models.properties.blackbox.lives import ACQUIRES

SCHEMA = "seriatim-chunks/2"
SLICE = 100_000  # events: about 100 MB as Python objects, and a few seconds of work
BUCKETS = 16
CONTROL = "control"
CODED = ("ev", "ph", "rec", "pub", "q", "conn", "ctag", "proc")
"""Columns of few different texts."""

QUARANTINE = pa.schema(
    [
        pa.field("source", pa.string()),
        pa.field("line", pa.int64()),
        pa.field("offset", pa.int64()),
        pa.field("reason", pa.string()),
        pa.field("text", pa.string()),
        pa.field("duplicate", pa.bool_()),
    ]
)


def shelf(q: str) -> str:
    """Where the events of a queue lie."""
    return f"q{zlib.crc32(q.encode()) % BUCKETS:03d}"


def shelf_of(event: Event) -> str:
    """Where an event lies: with its queue; with all of them, if it names none. Only a delivery is always one queue's,
    so those of no known queue count as of a queue without a name."""
    return shelf(event.q) if event.q or (event.m and event.ev in ACQUIRES) else CONTROL


class Chunk(msgspec.Struct, frozen=True):
    """One file, its path relative to the manifest, and how many rows each of its shelves has."""

    path: str
    rows: int
    shelves: dict[str, int]


class Stamp(msgspec.Struct, frozen=True):
    """A file as it was when it was read."""

    path: str
    named: bool
    size: int
    changed: int


class Unit(msgspec.Struct):
    """What was made of the files of one planned run."""

    run: str
    recorders: list[list[Stamp]]
    chunks: dict[str, list[Chunk]]
    """By the run that the events name."""
    files: list[FileCount]
    quarantine: list[str]
    """Files of schema `QUARANTINE`."""
    statistics: list[RunStatistics]
    carry: str = ""


class Manifest(msgspec.Struct):
    """What an ingest left."""

    units: list[Unit]
    slice: int = SLICE
    schema: str = SCHEMA

    def runs(self) -> dict[str, list[Chunk]]:
        """The chunks of each run in order; every planned run is there, be it without any."""
        out: dict[str, list[Chunk]] = {unit.run: [] for unit in self.units}
        for unit in self.units:
            for run, of in unit.chunks.items():
                out.setdefault(run, []).extend(of)
        return out

    def paths(self) -> set[str]:
        """Every file that counts."""
        out = {u.carry for u in self.units if u.carry}
        for unit in self.units:
            out.update(unit.quarantine)
            out.update(c.path for of in unit.chunks.values() for c in of)
        return out


class Task(msgspec.Struct, frozen=True):
    """What one map task summarises: chunks of one run that follow each other."""

    run: str
    shelves: list[str]
    """All buckets of the run."""
    files: list[str]


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Put the manifest in place at once: a reader sees the old one or the new one."""
    fresh = folder / "manifest.json.new"
    fresh.write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
    fresh.replace(folder / "manifest.json")


def read_manifest(folder: Path) -> Manifest:
    """Raises `PipelineError` if the folder holds no chunk files of this version."""
    path = folder / "manifest.json"
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError) as error:
        raise PipelineError(f"{path}: no manifest of chunk files: {error}") from error
    if manifest.schema != SCHEMA:
        raise PipelineError(f"{path}: field schema: {manifest.schema!r}, not {SCHEMA!r}")
    return manifest


def tasks(folder: Path, manifest: Manifest, pieces: int) -> list[Task]:
    """Every run cut into tasks, about `pieces` in all and of like size.

    A chunk is a range of the run's order and not a queue, so a queue that holds most events is cut like all others.
    """
    runs = sorted(manifest.runs().items())
    total = sum(c.rows for _, of in runs for c in of)
    share = max(total / max(pieces, 1), 1)
    out = []
    for run, of in runs:
        shelves = sorted({s for c in of for s in c.shelves} - {CONTROL}) or [CONTROL]
        files: list[str] = []
        rows = 0
        for chunk in of:
            files.append(str(folder / chunk.path))
            rows += chunk.rows
            if rows >= share:
                out.append(Task(run, shelves, files))
                files, rows = [], 0
        if files:
            out.append(Task(run, shelves, files))
    return out


def order(shelves: pa.Array, n: pa.Array) -> pa.Array:
    """The row numbers in the order of a chunk file."""
    keys = pa.table({"shelf": shelves, "n": n})
    return pc.sort_indices(keys, sort_keys=[("shelf", "ascending"), ("n", "ascending")])


def write_chunk(folder: Path, name: str, columns: Mapping[str, pa.Array]) -> Chunk:
    """Write one chunk from unsorted columns, `n` and `shelf` among them. `folder` holds the work folder in `name`."""
    full = {c: a for c, a in columns.items() if a.null_count < len(a)}
    rows = pa.table(full)
    rows = rows.take(order(rows["shelf"], rows["n"]))
    pq.write_table(
        rows, folder / name, compression="zstd", compression_level=1, row_group_size=len(rows)
    )
    counts = pc.value_counts(rows["shelf"]).to_pylist()
    return Chunk(name, len(rows), {c["values"]: c["counts"] for c in counts})


def read_chunk(file: str, columns: list[str] | None = None) -> pa.RecordBatch:
    """A chunk's rows, sorted by shelf and `n`. Raises `PipelineError` if they are not: the verdicts rest on it."""
    try:
        names = pq.read_schema(file).names
        if not {"n", "shelf"} <= set(names):
            raise PipelineError(f"{file}: columns n and shelf are missing")
        chosen = None if columns is None else [c for c in columns if c in names]
        # What repeats is read as codes where nobody wants objects of it.
        coded = [] if columns is None else [c for c in CODED if c in names]
        with pq.ParquetFile(file, read_dictionary=[*coded, "shelf"]) as held:
            rows = held.read(chosen, use_threads=False).combine_chunks()
    except (pa.ArrowException, OSError) as error:
        raise PipelineError(f"{file}: not readable as a chunk: {error}") from error
    batch = rows.to_batches()[0]
    shelves = batch["shelf"].dictionary_encode()
    codes = np.asarray(shelves.indices)
    n = np.asarray(batch["n"])
    same = codes[1:] == codes[:-1]
    if (
        len(shelves.dictionary) != 1 + np.count_nonzero(~same)
        or np.any(n[1:][same] <= n[:-1][same])
        or shelves.dictionary.to_pylist() != sorted(shelves.dictionary.to_pylist())
    ):
        raise PipelineError(f"{file}: its rows are not sorted by shelf and n")
    return batch


def in_order(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of a chunk in the order of the run."""
    return batch.take(pc.array_sort_indices(batch["n"]))


def find(files: Iterable[str], wanted: Iterable[tuple[str, int]]) -> dict[tuple[str, int], Event]:
    """Events of one run by recorder and index, from its chunks."""
    left = set(wanted)
    out: dict[tuple[str, int], Event] = {}
    for file in files:
        if not left:
            break
        indices = pa.array(sorted({i for _, i in left}), pa.int64())
        with pq.ParquetFile(file) as held:
            i = held.read(["i"], use_threads=False)["i"].combine_chunks()
            at = np.flatnonzero(np.asarray(pc.is_in(i, indices)))
            if not len(at):
                continue
            rows = held.read(use_threads=False).take(pa.array(at)).combine_chunks()
        for event in table.events(rows.to_batches()[0]):
            if (event.rec, event.i) in left:
                out[event.rec, event.i] = event
                left.discard((event.rec, event.i))
    return out


def events(batch: pa.RecordBatch) -> Iterator[tuple[str, Event]]:
    """The events of some rows, each with its shelf."""
    return zip(batch["shelf"].to_pylist(), table.events(batch), strict=True)


def read_quarantine(folder: Path, manifest: Manifest, most: int) -> list[Rejected]:
    """The first rejected lines of each source, at most so many."""
    out: list[Rejected] = []
    taken: dict[str, int] = {}
    for unit in manifest.units:
        for name in unit.quarantine:
            with pq.ParquetFile(folder / name) as file:
                for batch in file.iter_batches():
                    for row in batch.to_pylist():
                        taken[row["source"]] = taken.get(row["source"], 0) + 1
                        if taken[row["source"]] <= most:
                            out.append(msgspec.convert(row, Rejected))
    return out
