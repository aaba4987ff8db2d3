"""Events as columns of an Arrow batch (`history.table`), and what is asked of them, as NumPy arrays.

Several checks ask the same of a batch, so what was worked out is kept with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial, wraps
from itertools import compress, count
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seriatim_models.history import table
from seriatim_models.properties.blackbox.naming import Holder
from seriatim_models.properties.columnar.columns import Bools, Ints, Names, distinct
from seriatim_models.properties.columnar.rows import Hashes, hashes

OF_CHANNEL, OF_NONE = ("conn", "ch", "gen"), ("ctag", "proc")
HOLDER = (*OF_CHANNEL, *OF_NONE)
"""The columns that say who acts; the last ones where there is no channel."""
FEW_WORDS = 3
"""So many words are compared one by one, which is faster than a look into a table for each row."""


class Coded(NamedTuple):
    """A column as codes of a vocabulary: row k has the value ``values[codes[k]]``.

    The last of `values` stands for null: the empty text for a field of texts, None for any other. The codes of rows
    with equal values are equal, those of null and of a recorded empty text too. There may be values without a row.
    """

    codes: Ints
    values: list[Any]  # Any: the values of a column, texts or numbers

    def among(self, *words: object) -> Bools:
        """Return for each row whether its value is one of these."""
        wanted = frozenset(words)
        chosen = [v in wanted for v in self.values]
        if chosen.count(True) > FEW_WORDS:
            return np.array(chosen, np.bool_).take(self.codes)
        found = np.zeros(len(self.codes), np.bool_)
        for code in compress(count(), chosen):
            found |= self.codes == code
        return found

    def at(self, rows: Ints | Bools) -> Coded:
        """Return some of the rows."""
        return Coded(self.codes[rows], self.values)

    def texts(self) -> list[Any]:
        """Return the value of each row."""
        return [self.values[k] for k in self.codes.tolist()]

    def numbers(self, names: Names[Any]) -> Ints:
        """Return the number of each row's value; a value without a row is given none."""
        of_value = np.full(len(self.values), -1, np.int64)
        there = distinct(self.codes)
        of_value[there] = [names[self.values[k]] for k in there.tolist()]
        found: Ints = of_value[self.codes]
        return found


class Texts(NamedTuple):
    """A column of texts as hashes; null counts as empty."""

    first: Hashes
    second: Hashes
    some: Bools
    """Not empty."""


P = ParamSpec("P")
R = TypeVar("R")


def _kept(work: Callable[Concatenate[EventBatch, P], R]) -> Callable[Concatenate[EventBatch, P], R]:
    """Work it out once for each batch. Nobody may write into it."""

    @wraps(work)
    def known(batch: EventBatch, /, *args: P.args, **named: P.kwargs) -> R:
        key = (work.__name__, *args, *named.items())
        if key not in batch.known:
            found = work(batch, *args, **named)
            for part in found if isinstance(found, tuple) else (found,):
                if isinstance(part, np.ndarray):
                    part.setflags(write=False)
            batch.known[key] = found
        answer: R = batch.known[key]
        return answer

    return known


Later = Callable[[str], pa.Array | None]
"""Reads a column when it is asked for; None if there is none."""


class EventBatch:
    """Some events as columns. A field of `Event` of which there is no column is empty throughout."""

    def __init__(self, arrow: pa.RecordBatch, later: Later | None = None) -> None:
        """`later` is asked for columns that `arrow` lacks."""
        self.arrow = arrow
        self._later = later
        # Any: whatever was asked
        self.known: dict[tuple[object, ...], Any] = {}
        """What was worked out so far."""
        self._names = frozenset(arrow.schema.names)

    def __len__(self) -> int:
        return len(self.arrow)

    def column(self, name: str) -> pa.Array:
        """Return the column of a field; where there is none, nulls of its type."""
        found = self._held(name)
        return pa.nulls(len(self), table.SCHEMA.field(name).type) if found is None else found

    def _held(self, name: str) -> pa.Array | None:
        if name in self._names:
            return self.arrow[name]
        return None if self._later is None else self._read(name)

    @_kept
    def _read(self, name: str) -> pa.Array | None:
        return None if self._later is None else self._later(name)

    def only(self, rows: Bools) -> EventBatch:
        """Return some of the rows."""
        chosen = pa.array(rows)
        return self._picked(lambda of: of.filter(chosen))

    def select(self, columns: Collection[str]) -> EventBatch:
        """Return the same rows with some of the columns at hand."""
        held = self.arrow.select([name for name in self.arrow.schema.names if name in columns])
        return EventBatch(held, self._held)

    def named(self, names: Collection[str]) -> EventBatch:
        """Return the events of some names."""
        wanted = self.among("ev", *names)
        return self if wanted.all() else self.only(wanted)

    def in_order(self) -> EventBatch:
        """Return the rows in the order of the run."""
        n = np.asarray(self.arrow["n"])
        if (n[1:] > n[:-1]).all():
            return self
        order = pc.array_sort_indices(self.arrow["n"])
        return self._picked(lambda of: of.take(order))

    # Any: Arrow's batches and arrays have the same methods
    def _picked(self, pick: Callable[[Any], Any]) -> EventBatch:
        """Return the rows that `pick` takes, of each column when it is there."""

        def later(name: str) -> pa.Array | None:
            found = self._read(name)
            return None if found is None else pick(found)

        return EventBatch(pick(self.arrow), None if self._later is None else later)

    @_kept
    def coded(self, name: str) -> Coded:
        """Return a column as codes."""
        return _coded(self.column(name), name)

    def words(self, name: str) -> Callable[..., Bools]:
        """Return what says for each row whether a field has one of the words that it is given."""
        return partial(self.among, name)

    @_kept
    def among(self, name: str, *words: object) -> Bools:
        """Return for each row whether its value is one of these."""
        return self.coded(name).among(*words)

    @_kept
    def some(self, name: str) -> Bools:
        """Return for each row whether a field of texts has one that is not empty. Names of messages are nearly all
        different, so this does not make codes of them.
        """
        found = self._held(name)
        if found is None:
            return np.zeros(len(self), np.bool_)
        if not pa.types.is_string(found.type):
            return ~self.coded(name).among("")
        if not len(found):
            return np.zeros(0, np.bool_)
        _, offsets, _ = found.buffers()
        edges = np.frombuffer(offsets, np.int32)[found.offset : found.offset + len(found) + 1]
        filled: Bools = edges[1:] > edges[:-1]
        return filled & self.present(name) if found.null_count else filled

    @_kept
    def present(self, name: str) -> Bools:
        """Return for each row whether it has the field."""
        held = self._held(name)
        if held is None or not held.null_count:
            return np.full(len(self), held is not None)
        found: Bools = np.asarray(pc.is_valid(held))
        return found

    @_kept
    def flags(self, name: str, nothing: bool) -> Bools:
        """Return a field of flags; `nothing` stands for null."""
        found = self.column(name)
        if found.null_count == len(found):
            return np.full(len(found), nothing, np.bool_)
        return np.asarray(pc.fill_null(found, nothing))

    @_kept
    def ints(self, name: str, nothing: int) -> Ints:
        """Return a field of whole numbers; `nothing` stands for null."""
        found = self.column(name)
        if found.null_count == len(found):
            return np.full(len(found), nothing, np.int64)
        return np.asarray(pc.fill_null(found, nothing)).astype(np.int64, copy=False)

    @_kept
    def lengths(self, name: str) -> Ints:
        """Return how many values a field of lists has in each row."""
        found = pc.list_value_length(self.column(name))
        return np.asarray(pc.fill_null(found, 0)).astype(np.int64)

    @_kept
    def texts(self, name: str) -> Texts:
        """Return a field of texts by hash; of a field of lists, the texts of all lists one after another."""
        found = self.column(name)
        return texts(found.flatten() if pa.types.is_list(found.type) else found)

    @_kept
    def holders(self) -> Coded:
        """Return who acts, named as `lifecycle.holder` names it. Several codes may stand for one holder."""
        return _holders(self.coded)

    def holders_at(self, rows: Ints) -> Coded:
        """Return who acts in some rows. Of few it is worked out anew, where it is not known of all."""
        if ("holders",) in self.known or 2 * len(rows) > len(self):
            return self.holders().at(rows)
        return _holders(lambda name: self.coded(name).at(rows))


def _coded(column: pa.Array, name: str) -> Coded:
    field = table.SCHEMA.field(name).type
    null = "" if pa.types.is_string(getattr(field, "value_type", field)) else None
    if column.null_count == len(column):
        return Coded(np.zeros(len(column), np.int64), [null])
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    indices = encoded.indices
    if indices.null_count:
        wide = indices if pa.types.is_int32(indices.type) else indices.cast(pa.int64())
        indices = pc.fill_null(wide, len(values))
    codes: Ints = np.asarray(indices).astype(np.int64, copy=False)
    if null in values:
        codes = np.where(codes == len(values), values.index(null), codes)
    return Coded(codes, [*values, null])


def texts(column: pa.Array) -> Texts:
    """Return a column of texts by hash."""
    if pa.types.is_dictionary(column.type):
        # One more text, the empty one, stands for null.
        each = texts(pa.concat_arrays([column.dictionary.cast(pa.string()), pa.array([""])]))
        codes = np.asarray(pc.fill_null(column.indices.cast(pa.int64()), len(column.dictionary)))
        return Texts(*(values[codes] for values in each))
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        column = column.cast(pa.string())  # of nothing but nulls, or texts in another layout
    width = np.int64 if pa.types.is_large_string(column.type) else np.int32
    _, offsets, held = column.buffers()
    edges = np.frombuffer(offsets, width) if offsets else np.zeros(1, width)
    edges = edges[column.offset : column.offset + len(column) + 1].astype(np.int64)
    if not len(column):
        edges = np.zeros(1, np.int64)
    data = np.frombuffer(held, np.uint8) if held else np.zeros(0, np.uint8)
    data = data[edges[0] : edges[-1]]
    starts, lengths = edges[:-1] - edges[0], np.diff(edges)
    if column.null_count:
        lengths[np.asarray(column.is_null())] = 0
    first, second = hashes(data, starts, lengths)
    return Texts(first, second, lengths > 0)


def _holders(column: Callable[[str], Coded]) -> Coded:
    """Who acts in each row: the channel of some incarnation, or where there is none the consumer or worker."""
    conn, ch, gen = map(column, OF_CHANNEL)
    lone = ch.among(None)
    codes = [conn.codes, ch.codes, np.where(lone, len(gen.values) - 1, gen.codes)]
    others = [*map(column, OF_NONE)] if lone.any() else []
    codes += [np.where(lone, of.codes, len(of.values) - 1) for of in others]
    code, rows = combined(codes)
    named = zip(*(of.at(rows).texts() for of in (conn, ch, gen, *others)), strict=True)
    values = [
        Holder(of[0] or "", of[1], of[2])
        if of[1] is not None
        else Holder(of[0] or "", None, None, of[3] or of[4] or "")
        for of in named
    ]
    return Coded(code, values)


def combined(columns: Iterable[Ints]) -> tuple[Ints, Ints]:
    """Number the different rows of some columns of numbers, none of them negative. Returns the number of each row, and
    one row of each number.
    """
    code: Ints | None = None
    for codes in columns:
        if code is None:
            code = codes
        elif (most := int(codes.max(initial=0)) + 1) > 1:
            code = _dense(code * most + codes)
    assert code is not None
    code = _dense(code)
    rows = np.zeros(int(code.max(initial=-1)) + 1, np.int64)
    rows[code] = np.arange(len(code))
    return code, rows


def _dense(code: Ints) -> Ints:
    """The same distinctions in numbers without holes."""
    most = int(code.max(initial=0)) + 1
    if most > 4 * len(code) + 1000:
        found: Ints = np.unique(code, return_inverse=True)[1]
        return found
    there = np.zeros(most, np.bool_)
    there[code] = True
    dense: Ints = (np.cumsum(there) - 1)[code]
    return dense
