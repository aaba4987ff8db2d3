"""Chunk files: a run's events as Parquet, cut so that audits read files and never shuffle.

``<folder>/manifest.json`` names all that counts; what it does not name is left over from an ingest that was killed,
and the next one deletes it.

    manifest.json
    work-*/                 what one ingest wrote
      000000-000000.parquet   a chunk: at most `SLICE` events that follow each other in one run
      000000.quarantine.parquet
      000000.carry            where its next part goes on (a `state_file`)

A chunk has the columns of qh/1 (`history.table`; those that are empty throughout are left out) and two more:
`n`, the event's place in the run, and `bucket`, one of queues (``q000`` and so on, or ``control`` for events that
concern all: those that name no queue, that settle all that a channel holds, and notes of rest). Its rows are sorted by
bucket, then by `n`; each bucket is a row group, and the manifest says how long.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seriatim_models.files import open_file, place_within, read_document, write_whole
from seriatim_models.history import table
from seriatim_models.pipeline.audit.findings import RunStatistics
from seriatim_models.pipeline.audit.runs import FileCount
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.properties.base import Scope
from seriatim_models.properties.blackbox.lifecycle import ACQUIRES
from seriatim_models.properties.columnar.event_batch import EventBatch

SCHEMA = "seriatim-chunks/11"
SLICE = 100_000  # events: about 100 MB as Python objects, and a few seconds of work
WHOLE = 25_000_000
"""Events of a run whose messages, or connections, are judged by one task. Its parts would each read all of the run:
of messages half of a run costs what all of it does, so they are divided for their memory only."""
BUCKETS = 64  # of queues: what is left to the rows reads those that have some of it
TOGETHER = 250_000
"""Rows of queues that are left to the row forms together: as many may be held, and each time all that concerns all
queues is read again. No fewer are worth another reading by columns either.
"""
CONTROL = "control"
_TYPES = {f.name: f.type for f in table.SCHEMA} | {"n": pa.int64(), "bucket": pa.string()}
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


_REMEDY = "delete the output folder, and the recordings are read anew"


def hashed(name: str, of: int) -> int:
    """One of so many numbers, the same in every process."""
    return zlib.crc32(name.encode()) % of


def bucket(q: str) -> str:
    """The bucket that holds the events of a queue."""
    return f"q{hashed(q, BUCKETS):03d}"


class Chunk(msgspec.Struct, frozen=True):
    """One file, its path relative to the manifest, and how many rows each of its buckets has."""

    path: str
    rows: int
    buckets: dict[str, int]
    latest: int | None = None
    """The latest time in it, in ns."""
    lone: bool = False
    """Somebody acts on a connection without a channel, so that connections do not tell apart who acts."""
    nameless: bool = False
    """Something is published to, delivered from or settled up to a tag in a queue without a name: it may be any, and
    which tags of the channel were seen in all of them says whether the settlement covers more.
    """


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

    def quarantine(self) -> list[str]:
        """The files of rejected lines."""
        return [name for unit in self.units for name in unit.quarantine]

    def paths(self) -> set[str]:
        """Every file that counts."""
        out = {*self.quarantine(), *(u.carry for u in self.units if u.carry)}
        for unit in self.units:
            out.update(c.path for of in unit.chunks.values() for c in of)
        return out


class ChunkRange(msgspec.Struct, frozen=True):
    """What one task summarises of a run that is divided by time: chunks that follow each other."""

    run: str
    files: list[str]
    number: int
    """Its place among all chunk ranges."""
    first: bool
    """Whether the run begins here."""


class Partition(msgspec.Struct, frozen=True):
    """What one task judges of a run from its beginning to its end: all of some queues, connections or messages."""

    run: str
    scope: Scope
    files: list[str]
    buckets: list[str] = []
    """Of scope ``queue``: which; none stands for all together."""
    part: int = 0
    parts: int = 1
    """Of the other scopes: which of so many by hash."""
    ended: int | None = None
    """The latest time in the run, which for some queues is over when the last event of another one is."""


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Put the manifest in place at once: a reader sees the old one or the new one."""
    content = msgspec.json.format(msgspec.json.encode(manifest))
    write_whole(folder / "manifest.json", content, ours=True)


def read_manifest(folder: Path) -> Manifest:
    """Raises `PipelineError` if the folder holds no chunk files of this version."""
    path = folder / "manifest.json"
    manifest = read_document(path, Manifest, "no manifest of chunk files", PipelineError)
    if manifest.schema != SCHEMA:
        raise PipelineError(f"{path}: field schema: {manifest.schema!r}, not {SCHEMA!r}; {_REMEDY}")
    for name in manifest.paths():
        place_within(folder, name, lambda fault: PipelineError(f"{fault}; {_REMEDY}"))
    return manifest


def ranges(folder: Path, manifest: Manifest, pieces: int) -> list[ChunkRange]:
    """Every run divided by time, into about `pieces` chunk ranges in all and of like size.

    A chunk is a range of the run's order and not a queue, so a queue that holds most events is cut like all others.
    """
    runs = sorted(manifest.runs().items())
    total = sum(c.rows for _, of in runs for c in of)
    enough = max(total / max(pieces, 1), 1)
    out: list[ChunkRange] = []
    for run, of in runs:
        files: list[str] = []
        rows = 0
        first = True
        for chunk in of:
            files.append(str(folder / chunk.path))
            rows += chunk.rows
            if rows >= enough or chunk is of[-1]:
                out.append(ChunkRange(run, files, len(out), first))
                files, rows, first = [], 0, False
    return out


def partitions(folder: Path, manifest: Manifest, parts: Mapping[Scope, int]) -> list[Partition]:
    """Every run divided by each of some scopes, into at most so many parts; the longest first.

    Whoever is given the next one when he is done with his last then ends about when the others do.
    """
    sized: list[tuple[float, Partition]] = []
    for run, of in sorted(manifest.runs().items()):
        rows = sum(c.rows for c in of)
        if not rows:
            continue
        whole = Partition(
            run,
            "run",
            [str(folder / c.path) for c in of],
            ended=max((c.latest for c in of if c.latest is not None), default=None),
        )
        for scope, most in sorted(parts.items()):
            # A run of a few chunks is not worth many tasks.
            n_parts = max(1, min(most, -(-rows // (SLICE if scope == "queue" else WHOLE))))
            if scope == "queue":
                together = any(c.nameless for c in of)
                sized += [
                    (held, msgspec.structs.replace(whole, scope=scope, buckets=buckets))
                    for buckets, held in ([([], rows)] if together else _divided(of, n_parts))
                ]
            else:
                apart = 1 if scope == "connection" and any(c.lone for c in of) else n_parts
                sized += [
                    (rows / apart, msgspec.structs.replace(whole, scope=scope, part=k, parts=apart))
                    for k in range(apart)
                ]
    return [partition for _, partition in sorted(sized, key=lambda of: -of[0])]


def _divided(of: Iterable[Chunk], parts: int) -> list[tuple[list[str], int]]:
    """The buckets of queues in parts of like size, the longest bucket first, and how many rows each part has."""
    rows: Counter[str] = Counter()
    for chunk in of:
        rows.update(chunk.buckets)
    control = rows.pop(CONTROL, 0)
    made: list[tuple[list[str], int]] = [([], control) for _ in range(min(parts, len(rows)) or 1)]
    for name, n in sorted(rows.items(), key=lambda counted: (-counted[1], counted[0])):
        # The longest bucket to the shortest part.
        at = min(range(len(made)), key=lambda k: made[k][1])
        mine, held = made[at]
        made[at] = ([*mine, name], held + n)
    return made


def lists(rows: Mapping[str, int], most: int) -> list[list[str]]:
    """Buckets in lists of at most so many rows, or of one bucket; the longest first."""
    out: list[list[str]] = []
    for name, n in sorted(rows.items(), key=lambda counted: (-counted[1], counted[0])):
        if out and sum(rows[b] for b in out[-1]) + n <= most:
            out[-1].append(name)
        else:
            out.append([name])
    return out


def order(buckets: pa.Array | pa.ChunkedArray, n: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The row numbers in the order of a chunk file."""
    encoded = pc.dictionary_encode(buckets)
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    places = np.asarray(n)
    # Of each bucket its rank by name, in so few bits that sorting takes time in proportion to the rows.
    rank = np.asarray(pc.rank(encoded.dictionary)).astype(np.uint16)
    of = rank[np.asarray(encoded.indices)]
    if (places[1:] > places[:-1]).all():
        return pa.array(np.argsort(of, kind="stable"))
    return pa.array(np.lexsort((places, of)))


def write_chunk(folder: Path, name: str, columns: Mapping[str, pa.Array]) -> Chunk:
    """Write one chunk from unsorted columns, `n` and `bucket` among them. `folder` holds the work folder in `name`."""
    full = {c: a for c, a in columns.items() if a.null_count < len(a)}
    places = order(full["bucket"], full["n"])
    # Codes would be written with all their texts into each row group.
    full["bucket"] = full["bucket"].cast(pa.string())
    rows = pa.RecordBatch.from_pydict(full).take(places)
    counts = {c["values"]: c["counts"] for c in pc.value_counts(rows["bucket"]).to_pylist()}
    counts = dict(sorted(counts.items()))
    encodings = {**table.ENCODINGS, "n": table.ENCODINGS["i"]}
    with pq.ParquetWriter(
        folder / name,
        rows.schema,
        compression="lz4",
        use_dictionary=[c for c in (*table.CODED, "bucket") if c in full],
        column_encoding={c: e for c, e in encodings.items() if c in full},
        write_statistics=["bucket"],  # see `_buckets`
    ) as file:
        begin = 0
        for n in counts.values():
            file.write_batch(rows.slice(begin, n), row_group_size=n)
            begin += n
    latest = pc.max(rows["t"]).as_py() if "t" in full else None
    of = EventBatch(rows)
    return Chunk(name, len(rows), counts, latest, _lone(of), nameless(of))


def _lone(rows: EventBatch) -> bool:
    """See `Chunk.lone`."""
    acts = ~np.asarray(pc.starts_with(rows.arrow["ev"], "conn_"))
    return bool((acts & ~rows.present("ch") & rows.some("conn")).any())


def nameless(rows: EventBatch) -> bool:
    """See `Chunk.nameless`."""
    unnamed = ~rows.some("q")
    if not unnamed.any():
        return False
    several = rows.flags("multiple", False) & (rows.ints("dtag", 0) > 0)
    moved = rows.coded("ev").among("publish", *ACQUIRES) | several
    return bool((unnamed & moved).any())


@contextmanager
def opened(path: Path, coded: Collection[str] = ()) -> Iterator[pq.ParquetFile]:
    """A Parquet file of ours, columns `coded` as codes where it has them. Raises `PipelineError` for what is none, also
    for what reading it meets.
    """
    with open_file(path, PipelineError) as held:
        try:
            footer = pq.read_metadata(held)
            names = footer.schema.to_arrow_schema().names
            codes = [c for c in coded if c in names]
            with pq.ParquetFile(held, metadata=footer, read_dictionary=codes) as file:
                yield file
        except PipelineError:
            raise
        except table.DAMAGE as error:
            raise PipelineError(f"{path}: not readable as Parquet: {error}") from error


def read_events(
    file: str, columns: Collection[str], buckets: Collection[str] | None = None
) -> EventBatch:
    """As `read_chunk`. A column that is not among those is read if it is asked for, which may raise the same."""
    names: list[str] = []
    rows = read_chunk(file, columns, buckets, names)

    def later(name: str) -> pa.Array | None:
        return read_chunk(file, (name, "n", "bucket"), buckets)[name] if name in names else None

    return EventBatch(rows, later)


def read_chunk(
    file: str,
    columns: Iterable[str] | None = None,
    buckets: Collection[str] | None = None,
    names: list[str] | None = None,
) -> pa.RecordBatch:
    """A chunk's rows, or those of some of its buckets, sorted by bucket and `n`; `names` is given all its columns.

    Raises `PipelineError` if they are not: the verdicts rest on it.
    """
    with opened(Path(file), [*table.CODED, "bucket"]) as held:
        there = held.schema_arrow.names
        if not {"n", "bucket"} <= set(there):
            raise PipelineError(f"{file}: columns n and bucket are missing")
        for field in held.schema_arrow:
            kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
            if _TYPES.get(field.name) != kind:
                raise PipelineError(f"{file}: column {field.name} is of type {kind}")
        chosen = None if columns is None else [c for c in columns if c in there]
        groups = [
            g
            for g, name in enumerate(_buckets(held.metadata))
            if buckets is None or name in buckets
        ]
        rows = held.read_row_groups(groups, chosen, use_threads=False).combine_chunks()
    if names is not None:
        names += there
    if not len(rows):
        return pa.RecordBatch.from_arrays(
            [pa.nulls(0, f.type) for f in rows.schema], schema=rows.schema
        )
    batch = rows.to_batches()[0]
    encoded = batch["bucket"].dictionary_encode()
    codes = np.asarray(encoded.indices)
    n = np.asarray(batch["n"])
    same = codes[1:] == codes[:-1]
    if (
        len(encoded.dictionary) != 1 + np.count_nonzero(~same)
        or np.any(same & (n[1:] <= n[:-1]))
        or encoded.dictionary.to_pylist() != sorted(encoded.dictionary.to_pylist())
    ):
        raise PipelineError(f"{file}: its rows are not sorted by bucket and n")
    return batch


def _buckets(footer: pq.FileMetaData) -> Iterator[str]:
    """The bucket that each row group has, by the file's own statistics."""
    (at,) = [c for c in range(footer.num_columns) if footer.schema.column(c).path == "bucket"]
    for group in range(footer.num_row_groups):
        found = footer.row_group(group).column(at).statistics
        if found is None or found.min != found.max:
            raise PipelineError(f"row group {group} is not of one bucket")
        yield str(found.min)
