"""Chunk files: a run's events as Parquet, cut so that audits read files and never shuffle.

``<folder>/manifest.json`` names the files of the current ingest, ``<folder>/chunks-*/`` holds them:

    run_key=<key>/shelf=<shelf>/slice=<n>/*.parquet

- `run_key` is a key of the run's name; the name itself is in the manifest.
- `shelf` is ``q000`` and so on, a bucket of queues; ``control`` for events that name no queue, which concern all;
  ``quarantine`` for rejected lines; ``file`` for counts of files; ``error`` for a file that stopped the ingest.
- `slice` is a range of the run's order, `SLICE` events long over all its shelves.

Within a file the events are in the run's order, by `n`.
The columns are those of qh/1 (`history.table`) and `n` and `record`; `record` is JSON, and only on shelves that hold
  no events.
"""

from __future__ import annotations

import heapq
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from seriatim_models.history import Event, table
from seriatim_models.pipeline.errors import PipelineError

SCHEMA = "seriatim-chunks/1"
SLICE = 100_000  # events: about 10 MB of memory a task, and a few seconds of work
BUCKETS = 16
CONTROL, QUARANTINE, FILE, ERROR = "control", "quarantine", "file", "error"

COLUMNS = pa.schema(
    [
        *table.SCHEMA,
        pa.field("n", pa.int64()),
        pa.field("record", pa.string()),
        pa.field("run_key", pa.string()),
        pa.field("shelf", pa.string()),
        pa.field("slice", pa.int64()),
    ]
)


def shelf(q: str) -> str:
    """Where the events of a queue lie."""
    return f"q{zlib.crc32(q.encode()) % BUCKETS:03d}" if q else CONTROL


class Chunk(msgspec.Struct, frozen=True):
    """One file, its path relative to the manifest."""

    run_key: str
    shelf: str
    slice: int
    path: str
    rows: int


class Manifest(msgspec.Struct):
    """What an ingest left: the chunk files, and the run behind each key."""

    runs: dict[str, str]
    chunks: list[Chunk]
    schema: str = SCHEMA


class Task(msgspec.Struct, frozen=True):
    """What one map task summarises: a slice of a chain, as files to be merged by `n`."""

    run: str
    chain: str
    """``run`` for the whole run, or the shelf of a bucket of queues."""
    slice: int
    files: list[str]


class Numbered(NamedTuple):
    n: int
    event: Event


def listed(folder: Path, inside: Path, runs: dict[str, str]) -> Manifest:
    """The manifest of the chunk files under `inside`, which is in `folder`."""
    chunks = []
    for path in sorted(inside.glob("run_key=*/shelf=*/slice=*/*.parquet")):
        slice_, shelf_, run_key = (p.name.partition("=")[2] for p in list(path.parents)[:3])
        rows = pq.read_metadata(path).num_rows
        chunks.append(Chunk(run_key, shelf_, int(slice_), str(path.relative_to(folder)), rows))
    return Manifest(runs, chunks)


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


def tasks(folder: Path, manifest: Manifest) -> list[Task]:
    """The map tasks: each slice of each run, and each slice of each bucket of queues with the events of no queue."""
    by_run: dict[str, dict[str, dict[int, str]]] = {}
    for chunk in manifest.chunks:
        if chunk.shelf in (QUARANTINE, FILE, ERROR):
            continue
        shelves = by_run.setdefault(chunk.run_key, {})
        shelves.setdefault(chunk.shelf, {})[chunk.slice] = str(folder / chunk.path)
    out = []
    for key, run in sorted(manifest.runs.items(), key=lambda item: item[1]):
        shelves = by_run.get(key, {})
        control = shelves.get(CONTROL, {})
        buckets = sorted(set(shelves) - {CONTROL}) or [CONTROL]
        chains = {"run": shelves} | {b: {b: shelves.get(b, {}), CONTROL: control} for b in buckets}
        for chain, of in chains.items():
            for place in sorted({p for files in of.values() for p in files}):
                merged = sorted({files[place] for files in of.values() if place in files})
                out.append(Task(run, chain, place, merged))
    return out


def read_events(files: Sequence[str]) -> Iterator[Event]:
    """The events of chunk files in the run's order. Raises `PipelineError` where a file is out of order."""
    last = -1
    for n, event in heapq.merge(*(_numbered(f) for f in files), key=lambda row: row.n):
        if n <= last:
            raise PipelineError(f"{', '.join(files)}: event number {n} follows {last}: not sorted")
        last = n
        yield event


def _numbered(file: str) -> Iterator[Numbered]:
    with pq.ParquetFile(file) as chunk:
        for batch in chunk.iter_batches(16384):
            for n, event in zip(batch.column("n").to_pylist(), table.events(batch), strict=True):
                yield Numbered(n, event)


def read_records(folder: Path, manifest: Manifest, shelf: str) -> list[object]:
    """The JSON records of a shelf that holds no events."""
    out = []
    for chunk in manifest.chunks:
        if chunk.shelf == shelf:
            with pq.ParquetFile(folder / chunk.path) as file:
                out += [json.loads(r) for r in file.read(["record"])["record"].to_pylist()]
    return out
