"""A column of an Arrow batch of events (`history.table`) as NumPy codes of a vocabulary, and what is asked of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seriatim_models.history import table
from seriatim_models.properties.columnar.columns import Bools, Ints


def column_of(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return the column of a field of `Event`; where the batch lacks it, nulls of its type."""
    if name in batch.schema.names:
        return batch[name]
    return pa.nulls(len(batch), table.SCHEMA.field(name).type)


def in_order(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows in the order of the run."""
    n = np.asarray(batch["n"])
    return batch if (n[1:] > n[:-1]).all() else batch.take(pc.array_sort_indices(batch["n"]))


class Coded(NamedTuple):
    """A column as codes of a vocabulary: row k has the value ``values[codes[k]]``.

    The last of `values` stands for null: the empty text for a field of texts, None for any other. The codes of rows
    with equal values are equal, those of null and of a recorded empty text too.
    """

    codes: Ints
    values: list[Any]  # Any: the values of a column, texts or numbers

    def among(self, *words: object) -> Bools:
        """Return for each row whether its value is one of these."""
        wanted = frozenset(words)
        found: Bools = np.array([v in wanted for v in self.values], np.bool_).take(self.codes)
        return found


def coded(batch: pa.RecordBatch, name: str) -> Coded:
    """Return the column of a field of `Event` as codes."""
    field = table.SCHEMA.field(name).type
    null = "" if pa.types.is_string(getattr(field, "value_type", field)) else None
    found = column_of(batch, name)
    if found.null_count == len(found):
        return Coded(np.zeros(len(found), np.int64), [null])
    encoded = found if pa.types.is_dictionary(found.type) else found.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    indices = encoded.indices
    if indices.null_count:
        wide = indices if pa.types.is_int32(indices.type) else indices.cast(pa.int64())
        indices = pc.fill_null(wide, len(values))
    codes: Ints = np.asarray(indices).astype(np.int64, copy=False)
    if null in values:
        codes = np.where(codes == len(values), values.index(null), codes)
    return Coded(codes, [*values, null])


def only_named(batch: pa.RecordBatch, names: Collection[str]) -> pa.RecordBatch:
    """Return the events of some names."""
    wanted = coded(batch, "ev").among(*names)
    return batch if wanted.all() else batch.filter(pa.array(wanted))


def some(batch: pa.RecordBatch, name: str) -> Bools:
    """Return for each row whether a field of texts has one that is not empty. Names of messages are nearly all
    different, so this does not make codes of them.
    """
    if name not in batch.schema.names:
        return np.zeros(len(batch), np.bool_)
    found = batch[name]
    if not pa.types.is_string(found.type):
        return ~coded(batch, name).among("")
    if not len(found):
        return np.zeros(0, np.bool_)
    _, offsets, _ = found.buffers()
    edges = np.frombuffer(offsets, np.int32)[found.offset : found.offset + len(found) + 1]
    filled: Bools = edges[1:] > edges[:-1]
    return filled & present(batch, name) if found.null_count else filled


def present(batch: pa.RecordBatch, name: str) -> Bools:
    """Return for each row whether it has the field."""
    if name not in batch.schema.names:
        return np.zeros(len(batch), np.bool_)
    if not batch[name].null_count:
        return np.ones(len(batch), np.bool_)
    found: Bools = np.asarray(pc.is_valid(batch[name]))
    return found
