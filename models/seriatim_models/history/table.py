"""qh/1 as Arrow tables: the schema of Parquet histories and of the pipeline's chunk files.

One column a field, in the order of `Event`; an empty text, map or list is null, `args` is JSON text.
Needs pyarrow, which comes with the extra `spark`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec

from seriatim_models.extras import how_to_install
from seriatim_models.files import open_file
from seriatim_models.history.catalogue import wrong_type
from seriatim_models.history.decode import BadLine, checked
from seriatim_models.history.depth import too_deep
from seriatim_models.history.event import Event
from seriatim_models.history.faults import HistoryError
from seriatim_models.history.header import Header, header_object, header_of
from seriatim_models.history.lines import LINES, LINES_A_BYTE, Line

try:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
except ImportError as missing:
    raise HistoryError(how_to_install("pyarrow", "a history in Parquet")) from missing

_HEADER = b"qh"
_BATCH = 16384
HELD = 1024
"""Events whose fields are taken at a time: of 100,000 it takes three to four times as long."""
_TEXTS = {
    "ev", "run", "rec", "lvl", "clk", "proc", "ph", "conn", "q", "m", "pub", "key", "ctag", "scope", "err",
}  # fmt: skip
_FLAGS = {
    "redelivered", "multiple", "requeue", "dead", "autoack", "exclusive", "nolocal",
}  # fmt: skip


def _type(name: str) -> pa.DataType:
    if name in _TEXTS or name == "args":
        return pa.string()
    if name in _FLAGS:
        return pa.bool_()
    if name == "ms":
        return pa.list_(pa.string())
    if name == "x":
        return pa.map_(pa.string(), pa.string())
    return pa.int64()


FIELDS: tuple[str, ...] = Event.__struct_fields__
SCHEMA = pa.schema([pa.field(name, _type(name)) for name in FIELDS])
CODED = ("ev", "run", "rec", "lvl", "clk", "ph", "pub", "q", "conn", "ctag", "proc", "scope")
"""Columns of few different texts: Parquet of ours has codes of them."""
ENCODINGS = {
    f.name: "DELTA_BINARY_PACKED" if pa.types.is_integer(f.type) else "DELTA_BYTE_ARRAY"
    for f in SCHEMA
    if f.name not in CODED and (pa.types.is_integer(f.type) or pa.types.is_string(f.type))
}
"""Of other columns how Parquet of ours has them. What follows each other mostly counts on, so this is half of the bytes
or less, and half of the time to read them.
"""
_DEFAULTS = {n: getattr(Event(i=0, ev=""), n) for n in FIELDS}


def columns(events: Sequence[Event], fields: Sequence[str] = FIELDS) -> dict[str, pa.Array]:
    """Fields of the events, two at least, as arrays of the types of `SCHEMA`."""
    of = attrgetter(*fields)
    parts = [_columns(events[at : at + HELD], fields, of) for at in range(0, len(events), HELD)]
    return joined(parts) if parts else _columns((), fields, of)


def joined(parts: Sequence[dict[str, pa.Array]]) -> dict[str, pa.Array]:
    """The arrays of events that follow each other, of which there are some."""
    if len(parts) == 1:
        return parts[0]
    return {name: pa.concat_arrays([part[name] for part in parts]) for name in parts[0]}


def _columns(
    events: Sequence[Event], fields: Sequence[str], of: attrgetter[tuple[Any, ...]]
) -> dict[str, pa.Array]:
    """The same of so few that they are still in the processor's cache, field by field."""
    out: dict[str, pa.Array] = {}
    # Field by field over all events in C: the loop over 45 fields of every event is what writing costs.
    transposed = zip(*map(of, events), strict=True) if events else ((),) * len(fields)
    for name, values in zip(fields, transposed, strict=True):
        field = SCHEMA.field(name)
        if name not in ("i", "ev") and not any(v is not None and v not in ("", {}) for v in values):
            out[name] = pa.nulls(len(values), field.type)
        elif name == "args":
            texts = [json.dumps(v, separators=(",", ":")) if v else None for v in values]
            out[name] = pa.array(texts, field.type)
        elif name == "x":
            out[name] = pa.array([list(v.items()) if v else None for v in values], field.type)
        elif name in _TEXTS and name not in ("ev", "key", "err", "scope"):
            out[name] = pa.array([v or None for v in values], field.type)
        else:
            out[name] = pa.array(values, field.type)
    return out


DAMAGE = (pa.ArrowException, OSError, ValueError, TypeError, LookupError, OverflowError)
"""What a damaged file makes the library raise; a name or a text that is no UTF-8 is a `ValueError`."""


def batch(events: Sequence[Event], fields: Sequence[str] = FIELDS) -> pa.RecordBatch:
    """The events as a record batch of `SCHEMA`, or of some of its fields."""
    schema = SCHEMA if fields is FIELDS else pa.schema([SCHEMA.field(name) for name in fields])
    return pa.RecordBatch.from_arrays(list(columns(events, fields).values()), schema=schema)


def _finite(text: str) -> float:
    """A number of JSON. Raises `ValueError` for NaN, Infinity and what is too large, which Python's decoder takes."""
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is no number of JSON")
    return number


def _foreign(text: Any) -> Any:
    """What the args of a stranger's row say; what is no JSON, or nested too deep, stays text and is refused as such."""
    try:
        found = json.loads(text, parse_float=_finite, parse_constant=_finite)
    except (ValueError, TypeError, RecursionError):
        return text
    return text if too_deep(found) else found


def values(column: pa.Array) -> list[Any]:
    """The column's values, null as None, as `to_pylist` has them in several times the time."""
    kind = column.type
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind):
        coded = column if pa.types.is_dictionary(kind) else column.dictionary_encode()
        words = [*coded.dictionary.to_pylist(), None]
        return [words[k] for k in pc.fill_null(coded.indices, len(words) - 1).to_numpy().tolist()]
    if pa.types.is_int64(kind) or pa.types.is_boolean(kind):
        filled = pc.fill_null(column, pa.scalar(0, pa.int64()).cast(kind))
        plain: list[Any] = filled.to_numpy(zero_copy_only=False).tolist()
        for at in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
            plain[at] = None
        return plain
    if pa.types.is_list(kind):
        flat = values(column.flatten())
        ends = np.cumsum(pc.fill_null(pc.list_value_length(column), 0).to_numpy()).tolist()
        there = column.is_valid().to_numpy(zero_copy_only=False).tolist()
        return [flat[a:b] if t else None for a, b, t in zip([0, *ends], ends, there, strict=False)]
    other: list[Any] = column.to_pylist()
    return other


def rows(table: pa.RecordBatch, parse: Callable[[Any], Any]) -> Iterator[dict[str, Any]]:
    """The rows of a batch as the fields an `Event` takes: nulls left out, `args` (parsed) and `x` as mappings."""
    names, cols = [], []
    for name in table.schema.names:
        column = table.column(name)
        # Most fields are empty in most histories; an empty column costs nothing from here on.
        if name in _DEFAULTS and column.null_count < len(column):
            names.append(name)
            cols.append(values(column))
    for held in zip(*cols, strict=True):
        row = {n: v for n, v in zip(names, held, strict=True) if v is not None}
        if "args" in row:
            row["args"] = parse(row["args"])
        if "x" in row:
            row["x"] = dict(row["x"]) if isinstance(row["x"], list) else row["x"]
        yield row


def events(table: pa.RecordBatch) -> Iterator[Event]:
    """The events of a batch that this package wrote.

    Those of one name are made together, for most fields are empty in all of them.
    """
    names = table["ev"].cast(pa.string()).dictionary_encode()
    codes = np.asarray(names.indices)
    out = np.empty(len(table), object)
    for code in range(len(names.dictionary)):
        at = np.flatnonzero(codes == code)
        made = [Event(**row) for row in _full_rows(table.take(pa.array(at)))]
        out[at] = np.fromiter(made, object, len(made))
    return iter(out.tolist())


def _full_rows(table: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows as the fields an `Event` takes: nulls as defaults, but no field that is null throughout."""
    there = [n for n in FIELDS if n in table.schema.names and table[n].null_count < len(table)]
    given: list[list[Any]] = []
    for name in there:
        default, held = _DEFAULTS[name], values(table[name])
        if name == "args":
            held = [json.loads(v) if v else {} for v in held]
        elif name == "x":
            held = [dict(v) if v else {} for v in held]
        elif default is not None:
            held = [default if v is None else v for v in held]
        given.append(held)
    return (dict(zip(there, row, strict=True)) for row in zip(*given, strict=True))


def read_header(path: Path) -> Header:
    """The header that a Parquet history carries in its key-value metadata, or an empty one. Raises `HistoryError`."""
    try:
        with open_file(path, HistoryError) as file:
            metadata = pq.read_metadata(file)
        schema = metadata.schema.to_arrow_schema()
        names, held = schema.names, (schema.metadata or {}).get(_HEADER)
    except DAMAGE as error:
        raise HistoryError(f"{path}: not readable as Parquet: {error}") from error
    size = path.stat().st_size
    if metadata.num_rows > max(LINES, LINES_A_BYTE * size):
        raise HistoryError(f"{path}: {size:,} packed bytes become {metadata.num_rows:,} rows")
    for needed in ("i", "ev"):
        if needed not in names:
            raise HistoryError(f"{path}: column {needed}: missing, so this is no history")
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise HistoryError(f"{path}: column {twice[0]}: there more than once")
    if held is None:
        return Header()
    try:
        return header_of(msgspec.json.decode(held, type=dict[str, object]), f"{path}: metadata")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HistoryError(f"{path}: metadata qh: {error}") from error


def read_events(path: Path, header: Header) -> Iterator[tuple[Line, Event | str]]:
    """Each row as an event, or why it is none. The line number is that of the row, from 1. Raises `HistoryError`."""
    defaults = {k: v for k in ("run", "rec", "lvl", "clk") if (v := getattr(header, k))}
    number = 0
    try:
        with open_file(path, HistoryError) as held, pq.ParquetFile(held) as file:
            for table in file.iter_batches(_BATCH):
                for row in rows(table, _foreign):
                    number += 1
                    line = Line(number, 0, b"")
                    try:
                        yield line, checked(msgspec.convert({**defaults, **row}, Event))
                    except msgspec.ValidationError as error:
                        shown = json.dumps(row, default=str).encode()
                        yield line._replace(raw=shown), wrong_type(error)
                    except BadLine as error:
                        shown = json.dumps(row, default=str).encode()
                        yield line._replace(raw=shown), str(error)
    except DAMAGE as error:
        raise HistoryError(f"{path}: row {number + 1}: damaged Parquet: {error}") from error


def write_events(path: Path, events: Iterable[Event], header: Header) -> int:
    """Write a Parquet history; returns how many events."""
    held = msgspec.json.encode(header_object(header))
    schema = SCHEMA.with_metadata({_HEADER: held})
    n = 0
    source = iter(events)
    with pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=[*CODED], column_encoding=ENCODINGS
    ) as writer:
        while block := list(islice(source, _BATCH)):
            writer.write_batch(batch(block).replace_schema_metadata(schema.metadata))
            n += len(block)
    return n
