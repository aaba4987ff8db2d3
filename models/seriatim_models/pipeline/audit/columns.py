"""Parquet histories taken in by columns, without an object for each event.

Possible where nothing has to be worked out: the header says that the recorder completed its events, and every row is
as the schema wants it. Both are checked, and what fails goes the way of `runs.read`, row by row, which says what is
wrong; so both ways give the same.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seriatim_models.files import open_file
from seriatim_models.history import HistoryError, table
from seriatim_models.history.catalogue import REQUIRED, SETTLEMENTS
from seriatim_models.history.depth import DEPTH_MAX, too_deep, too_large
from seriatim_models.history.event import GAP, LEVELS, PHASES, SCOPES
from seriatim_models.history.header import Header
from seriatim_models.history.lines import PARQUET, first_bytes
from seriatim_models.history.unrecorded import unrecorded
from seriatim_models.pipeline.audit import chunks
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.properties.blackbox.lifecycle import ACQUIRES
from seriatim_models.properties.blackbox.naming import ENDS
from seriatim_models.properties.columnar.columns import Bools, distinct
from seriatim_models.properties.columnar.event_batch import EventBatch

PARTLY_STAMPED = "some rows have a stamp and some have none"
"""A row without one has its place in time from those beside it, see `history.order`."""
PIECE = 1_000_000  # rows: what one task takes of a file


class RowByRow(Exception):
    """This file must be read row by row."""


def header(path: str) -> Header | None:
    """The header, if the file may be taken by columns."""
    try:
        if first_bytes(Path(path)) != PARQUET:
            return None
        found = table.read_header(Path(path))
    except HistoryError:
        return None
    if found.params.get("committed") is not None or unrecorded(found):  # which events need
        return None
    return found if found.params.get("complete") is True else None


def pieces(path: str) -> list[tuple[int, int, int]]:
    """Ranges of row groups of a file: first, one past the last, and how many rows. Raises `RowByRow`."""
    try:
        with open_file(Path(path), RowByRow) as held, pq.ParquetFile(held) as file:
            counts = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
    except table.DAMAGE as error:
        raise RowByRow(str(error)) from error
    out = []
    begin = rows = 0
    for g, count in enumerate(counts):
        rows += count
        if rows >= PIECE or g == len(counts) - 1:
            out.append((begin, g + 1, rows))
            begin, rows = g + 1, 0
    return out


def batches(
    path: str, first: int, end: int, length: int, codes: Sequence[str] = ()
) -> Iterator[pa.RecordBatch]:
    """The rows of some row groups in batches of `length`, columns of the schema's types, but texts that are `codes` as
    codes of different texts. Raises `RowByRow`.
    """
    try:
        with chunks.opened(Path(path), codes) as file:
            names = file.schema_arrow.names
            if not set(names) <= set(table.FIELDS):
                raise RowByRow("unknown fields belong into x")
            waiting: list[pa.RecordBatch] = []
            rows = 0
            for batch in file.iter_batches(
                length, row_groups=list(range(first, end)), use_threads=False
            ):
                waiting.append(batch)
                rows += len(batch)
                while rows >= length:
                    whole = _joined(waiting)
                    yield _typed(whole.slice(0, length), codes)
                    waiting = [whole.slice(length)] if len(whole) > length else []
                    rows -= length
            if rows:
                yield _typed(_joined(waiting), codes)
    except PipelineError as error:
        raise RowByRow(str(error)) from error


def _joined(of: list[pa.RecordBatch]) -> pa.RecordBatch:
    return of[0] if len(of) == 1 else pa.Table.from_batches(of).combine_chunks().to_batches()[0]


def _typed(batch: pa.RecordBatch, codes: Sequence[str]) -> pa.RecordBatch:
    """The columns in the types of the schema. Raises `RowByRow` for texts that are no UTF-8, and for columns of
    another kind: Arrow would make numbers of times, flags and digits, which are none when read row by row.
    """
    held: dict[str, pa.Array] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        wanted = table.SCHEMA.field(name).type
        if not _alike(column.type, wanted):
            raise RowByRow(f"{name} is of type {column.type}")
        if name not in codes:
            held[name] = column.cast(wanted)
        elif column.type == _CODES and _all_differ(column.dictionary):
            held[name] = column
        else:  # also a stranger's codes, of which two may stand for one text
            held[name] = column.cast(wanted).dictionary_encode()
    typed = pa.RecordBatch.from_pydict(held)
    typed.validate(full=True)
    return typed


_CODES = pa.dictionary(pa.int32(), pa.string())


def _all_differ(texts: pa.Array) -> bool:
    """Whether no text is there twice, and none is null."""
    return bool(texts.null_count == 0 and len(pc.unique(texts)) == len(texts))


def _alike(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of one type mean the same in another, if they have room there."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_null(kind):
        return True
    if pa.types.is_string(wanted):
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
    if pa.types.is_list(wanted):
        listed = pa.types.is_list(kind) or pa.types.is_large_list(kind)
        return bool(listed and _alike(kind.value_type, wanted.value_type))
    if pa.types.is_map(wanted):
        texts = pa.types.is_map(kind) and _alike(kind.key_type, wanted.key_type)
        return bool(texts and _alike(kind.item_type, wanted.item_type))
    if pa.types.is_integer(wanted):
        return bool(pa.types.is_integer(kind))
    return bool(pa.types.is_boolean(kind))


def checked(batch: pa.RecordBatch, head: Header, run: str, last: int) -> dict[str, pa.Array]:
    """The columns, with the header's defaults filled in. Raises `RowByRow` for what reading by row would treat."""
    held = dict(zip(batch.schema.names, batch.columns, strict=True))
    if held["i"].null_count or held["ev"].null_count:
        raise RowByRow("i or ev is missing")
    i = np.asarray(held["i"])
    # Compared and not subtracted: differences of numbers of 64 bits may be too large for them.
    if i[0] <= last or np.any(i[1:] <= i[:-1]):
        raise RowByRow("the index does not rise")
    t = np.asarray(held["t"].drop_null()) if "t" in held else np.zeros(0, np.int64)
    if 0 < len(t) < len(i):
        raise RowByRow(PARTLY_STAMPED)
    if np.any(t[1:] < t[:-1]):
        raise RowByRow("stamps fall")
    _check_nested(held)
    for name, allowed in (("ph", PHASES), ("lvl", LEVELS), ("scope", SCOPES)):
        if name in held and not set(pc.unique(held[name]).to_pylist()) <= {*allowed, None}:
            raise RowByRow(f"unknown {name}")
    for name, default in (("run", run), ("rec", head.rec), ("clk", head.clk)):
        if name in held and not set(pc.unique(held[name]).to_pylist()) <= {default, None}:
            raise RowByRow(f"more than one {name}")
    if "model" in {head.lvl, *(pc.unique(held["lvl"]).to_pylist() if "lvl" in held else ())}:
        raise RowByRow("white-box events are checked one by one")
    for name in ("run", "rec", "lvl", "clk"):
        default = run if name == "run" else getattr(head, name)
        if default:
            held[name] = _filled(held.get(name), held["ev"], default)
    _check_required(EventBatch(pa.RecordBatch.from_pydict(held)))
    return held


def _filled(column: pa.Array | None, beside: pa.Array, default: str) -> pa.Array:
    """A column of texts with a default for null: as codes, where the column beside it has codes."""
    if column is not None and not column.null_count:
        return column
    if column is not None and column.null_count < len(column):
        return pc.fill_null(column.cast(pa.string()), default)
    if pa.types.is_dictionary(beside.type):
        codes = pa.array(np.zeros(len(beside), np.int32))
        return pa.DictionaryArray.from_arrays(codes, pa.array([default]))
    return pa.repeat(default, len(beside))


def _check_required(batch: EventBatch) -> None:
    """Raises `RowByRow` for events without a field that they need, and gaps."""
    ev = batch.coded("ev")
    kinds = {ev.values[k] for k in distinct(ev.codes).tolist()}
    if GAP in kinds:
        raise RowByRow("a gap")
    for kind in kinds & REQUIRED.keys():
        of = ev.among(kind)
        for name in REQUIRED[kind]:
            if (of & _without(batch, name)).any():
                raise RowByRow(f"{kind} without {name}")
    if kinds & SETTLEMENTS and (ev.among(*SETTLEMENTS) & _without(batch, "dtag")).any():
        raise RowByRow("a settlement that names its messages otherwise than by a tag")
    if "qos" in kinds and (ev.among("qos") & _without(batch, "prefetch")).any():
        raise RowByRow("a limit without a number")


def _without(batch: EventBatch, name: str) -> Bools:
    """Of each row whether it lacks a field, or has an empty text."""
    texts = pa.types.is_string(table.SCHEMA.field(name).type)
    return ~(batch.some(name) if texts else batch.present(name))


def _check_nested(held: dict[str, pa.Array]) -> None:
    """Raises `RowByRow` if values within values are not as an event has them."""
    if "args" in held and not all(map(_arguments, pc.unique(held["args"].drop_null()).to_pylist())):
        raise RowByRow("args that are no JSON object, or nested too deep")
    if "ms" in held and held["ms"].flatten().null_count:
        raise RowByRow("a list of messages with one that has no name")
    if "x" in held and held["x"].items.null_count:
        raise RowByRow("an unknown field without a text")


def _arguments(text: str) -> bool:
    """Whether this is what `Event.args` may hold."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and not too_deep(found, DEPTH_MAX - 1) and not too_large(found)


def in_turn(
    files: Iterable[tuple[str, Header]],
    run: str,
    reached: tuple[int, int],
    length: int,
    codes: Sequence[str] = (),
) -> Iterator[dict[str, pa.Array]]:
    """The columns of files that follow an index and a time and each other, so many rows at a time.

    Raises `RowByRow` if they do not follow, or for what reading by row would treat.
    """
    last, at = reached
    for path, head in files:
        stamped: set[bool] = set()
        for begin, end, _ in pieces(path):
            for batch in batches(path, begin, end, length, codes):
                held = checked(batch, head, run, last)
                last = held["i"][-1].as_py()
                stamps = held["t"].drop_null() if "t" in held else pa.nulls(0)
                stamped.add(len(stamps) > 0)
                if len(stamped) > 1:
                    raise RowByRow(PARTLY_STAMPED)
                if len(stamps):
                    if stamps[0].as_py() < at:
                        raise RowByRow("stamps fall")
                    at = stamps[-1].as_py()
                yield held


def following(
    path: str, head: Header, run: str, reached: tuple[int, int], length: int
) -> Iterable[dict[str, pa.Array]]:
    """As `in_turn` of one file, but all of it is checked first. Raises `RowByRow` as that does."""
    files = [(path, head)]
    if sum(rows for _, _, rows in pieces(path)) <= PIECE:
        return list(in_turn(files, run, reached, length))
    for _ in in_turn(files, run, reached, length):  # more than is held at a time
        pass
    return in_turn(files, run, reached, length)


_OF_ALL_QUEUES = {*ENDS, "conn_open", "ch_open", "qos", "recover", GAP}


def placed(held: dict[str, pa.Array], n: int) -> dict[str, pa.Array]:
    """The columns with `n`, counted from the one given, and `bucket` as codes."""
    batch = EventBatch(pa.RecordBatch.from_pydict(held))
    ev, q = batch.coded("ev"), batch.coded("q")
    of = [chunks.bucket(name) if name else chunks.CONTROL for name in q.values]
    names = sorted({*of, chunks.CONTROL, chunks.bucket("")})
    code = {name: k for k, name in enumerate(names)}
    bucket = np.array([code[name] for name in of], np.int32)[q.codes]
    acquired = ev.among(*ACQUIRES) & (bucket == code[chunks.CONTROL])
    if acquired.any():
        bucket[acquired & batch.some("m")] = code[chunks.bucket("")]
    # It settles all that its channel holds, of other queues too, whatever of it was seen.
    overall = batch.flags("multiple", False) & (batch.ints("dtag", -1) == 0)
    # Whoever looked at one queue may say of all that they had come to rest.
    if (notes := ev.among("note")).any():
        said = pc.match_substring(batch.column("args"), '"rest"')
        overall |= notes & np.asarray(pc.fill_null(said, False))
    # What concerns a channel or connection does so in all queues, whichever of them it names.
    overall |= ev.among(*_OF_ALL_QUEUES)
    bucket[overall] = code[chunks.CONTROL]
    codes = pa.DictionaryArray.from_arrays(pa.array(bucket), pa.array(names))
    return {**held, "n": pa.array(np.arange(n, n + len(batch))), "bucket": codes}


def kinds(held: dict[str, pa.Array]) -> Counter[str]:
    """How often each event name stands there."""
    return Counter({c["values"]: c["counts"] for c in pc.value_counts(held["ev"]).to_pylist()})
