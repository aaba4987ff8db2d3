"""Rows for the pre-filter from Arrow columns (`history.table`), without an object for each event.

Gives what `rows.rows_of_events` gives of the same events; a test compares them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seriatim_models.history import Event, table
from seriatim_models.history.event import ANY_TIME, EXACT, SETTLES
from seriatim_models.properties.blackbox.conservation import Conservation
from seriatim_models.properties.blackbox.lifecycle import (
    ACQUIRES,
)
from seriatim_models.properties.blackbox.naming import (
    Holder,
)
from seriatim_models.properties.blackbox.recorders import GIVES, OPENS, SHOWS, LatestLines
from seriatim_models.properties.columnar.batch_columns import Coded, coded, column_of, present, some
from seriatim_models.properties.columnar.columns import Bools, Ints, Names, distinct
from seriatim_models.properties.columnar.rows import (
    ACQUIRED,
    ANSWERED,
    BORN,
    CONFIRMED,
    GENERAL,
    OTHER,
    REFUSED,
    RELEASED,
    SENT,
    SETTLED,
    SURELY,
    TRAFFIC,
    BatchRows,
    Hashes,
    Rows,
    among,
    hashes,
    lifecycle_hashes,
    text_hashes,
)

COLUMNS = (
    "n", "i", "ev", "lvl", "ph", "op", "conn", "ch", "gen", "q", "m", "ctag", "proc",
    "redelivered", "requeue", "ms", "autoack", "pos", "multiple", "dead", "args", "t_lo", "rec", "t",
)  # fmt: skip
"""The columns that `rows_of_batch` looks at; those that a batch lacks are empty throughout."""

NAMING = ("n", "ev", "ph", "op", "ch", "m", "requeue", "ms", "multiple", "t_lo")
"""Those of them that `may_concern` looks at."""

HOLDER = ("conn", "ch", "gen", "ctag", "proc")
"""Those of them that say who acts."""


class Texts(NamedTuple):
    """A column of texts as hashes; null counts as empty."""

    first: Hashes
    second: Hashes
    some: Bools
    """Not empty."""


def texts(column: pa.Array) -> Texts:
    """A column of texts, by hash."""
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


def message_hash(column: pa.Array) -> Hashes:
    """The hash of each message's name: what `Rows.message` has, by which messages can be divided."""
    return texts(column).first


def flags(column: pa.Array, nothing: bool) -> Bools:
    """A column of flags; `nothing` stands for null."""
    if column.null_count == len(column):
        return np.full(len(column), nothing, np.bool_)
    return np.asarray(pc.fill_null(column, nothing))


def _final(batch: pa.RecordBatch, ev: Coded) -> Bools:
    """Of each settlement, whether it is for good."""
    return ev.among("ack") | ~flags(column_of(batch, "requeue"), True)


def _kinds(batch: pa.RecordBatch, ev: Coded, exact: Bools, q_some: Bools, m_some: Bools) -> Ints:
    """Of each event what it says of the messages that it names; -1 for nothing."""
    ph = coded(batch, "ph")
    kind = np.full(len(batch), -1, np.int64)
    publish = ev.among("publish")
    kind[publish] = SENT
    kind[publish & ph.among("ok")] = CONFIRMED
    kind[publish & ph.among("info")] = OTHER
    kind[publish & exact] = BORN
    kind[publish & ph.among("fail")] = REFUSED
    acquired = ev.among(*ACQUIRES) & m_some & ~ph.among("invoke", "fail")
    kind[acquired] = ACQUIRED
    kind[acquired & (present(batch, "pos") | ~q_some)] = OTHER
    worker = np.asarray(column_of(batch, "ch").is_null())
    kind[acquired & ev.among("get") & worker] = OTHER
    lone = np.asarray(column_of(batch, "op").is_null())
    settles = ev.among(*SETTLES) & (ph.among("", "invoke") | (ph.among("ok") & lone))
    kind[settles] = np.where(coded(batch, "dead").among(True)[settles], OTHER, RELEASED)
    final = ev.among(*SETTLES) & _final(batch, ev)
    kind[settles & final] = SETTLED
    kind[settles & ~q_some] = OTHER
    answered = ph.among("ok") & ~lone
    kind[final & answered] = ANSWERED
    kind[ev.among(*SETTLES) & (ph.among("fail", "info") | (answered & worker))] = OTHER
    kind[ev.among(*(TRAFFIC - ACQUIRES - SETTLES - {"publish"}))] = OTHER
    return kind


def holder_numbers(batch: pa.RecordBatch, holders: Names[Holder]) -> Ints:
    """The number of each row's holder, named as `lifecycle.holder` names it."""
    fields = [coded(batch, name) for name in HOLDER]
    lone = np.asarray(column_of(batch, "ch").is_null())
    code = np.zeros(len(batch), np.int64)
    for name, (codes, values) in zip(HOLDER, fields, strict=True):
        # Consumer and worker count only where there is no channel, and the incarnation only where there is one.
        if name not in ("conn", "ch"):
            codes = np.where(lone == (name in ("ctag", "proc")), codes, len(values) - 1)
        code = _dense(code * len(values) + codes) if len(values) > 1 else code
    some = np.zeros(int(code.max(initial=-1)) + 1, np.int64)
    some[code] = np.arange(len(code))  # any row of that holder
    conn, ch, gen, ctag, proc = ([values[k] for k in codes[some]] for codes, values in fields)
    number = [
        holders(
            Holder(of[0] or "", of[1], of[2])
            if of[1] is not None
            else Holder(of[0] or "", None, None, of[3] or of[4] or "")
        )
        for of in zip(conn, ch, gen, ctag, proc, strict=True)
    ]
    found: Ints = np.array(number, np.int64)[code]
    return found


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


def rows_of_batch(batch: pa.RecordBatch, holders: Names[Holder]) -> BatchRows:
    """Rows of some events; `n` is their place in the run; `holders` numbers who acts, and is kept between batches.

    The general events have the fields that the batch has columns of: enough for `Prefilter.take`, but
    `Prefiltered.judge` may show them, and wants them whole.
    """
    places: Ints = np.asarray(batch["n"]).astype(np.int64)
    ev = coded(batch, "ev")
    q = coded(batch, "q")
    named = texts(column_of(batch, "m"))
    q_some = ~q.among("")
    exact = coded(batch, "lvl").among(*EXACT)
    kind = _kinds(batch, ev, exact, q_some, named.some)
    settles = ev.among(*SETTLES)
    ms = column_of(batch, "ms")
    listed: Ints = np.asarray(pc.fill_null(pc.list_value_length(ms), 0)).astype(np.int64)
    counts = np.where(kind < 0, 0, np.where(settles, listed, 1))
    counts[(kind == ACQUIRED) & flags(column_of(batch, "autoack"), False)] = 2
    of = np.repeat(np.arange(len(batch)), counts)
    rows_listed = settles[of]
    kinds = kind[of].astype(np.int8)
    kinds[1:][(of[1:] == of[:-1]) & ~rows_listed[1:]] = SETTLED  # by the delivery itself
    those = texts(ms.flatten())
    wanted = np.repeat(settles & (kind >= 0), listed)
    first, second = np.empty(len(of), np.uint64), np.empty(len(of), np.uint64)
    single = of[~rows_listed]
    for out, one, many in (
        (first, named.first, those.first),
        (second, named.second, those.second),
    ):
        out[~rows_listed] = one[single]
        out[rows_listed] = many[wanted]
    acts = np.flatnonzero((kind == ACQUIRED) | (settles & (kind >= 0)))
    by = np.zeros(len(batch), np.int64)
    of_holders = batch.select([c for c in HOLDER if c in batch.schema.names])
    by[acts] = holder_numbers(of_holders.take(pa.array(acts)), holders)
    flag = column_of(batch, "redelivered")
    redelivered = np.where(np.asarray(flag.is_null()), -1, flags(flag, False))
    redelivered[(redelivered == 1) & exact] = SURELY
    of_queue = text_hashes(q.values)[0]
    rows = Rows(
        places[of],
        kinds,
        first,
        lifecycle_hashes(second, of_queue[q.codes[of]]),
        by[of],
        redelivered[of].astype(np.int8),
    )
    if (places[1:] <= places[:-1]).any():
        rows = rows.only(np.argsort(rows.n, kind="stable"))
    return BatchRows(
        rows,
        _general(batch, places, ev),
        _last(kind, settles, places, q),
        _polls(batch, places, ev),
        _latest(batch, ev),
    )


def may_concern(batch: pa.RecordBatch, messages: Hashes) -> Bools:
    """Which events name one of these messages, which are sorted, or are general. Not of each `rows_of_batch` makes a
    row: see `concerning`.
    """
    concerned = _is_general(batch, coded(batch, "ev"))
    named, ms = texts(column_of(batch, "m")), column_of(batch, "ms")
    concerned |= named.some & among(messages, named.first)
    of = np.asarray(pc.list_parent_indices(ms))
    concerned[of[among(messages, texts(ms.flatten()).first)]] = True
    return concerned


def concerning(batch: pa.RecordBatch, messages: Hashes) -> pa.RecordBatch:
    """The events of which a row is of one of these messages, which are sorted, and the general ones."""
    chosen = batch.filter(pa.array(may_concern(batch, messages)))
    if not len(chosen):
        return chosen
    of = chosen.select([c for c in COLUMNS if c in chosen.schema.names])
    rows, general, *_ = rows_of_batch(of, Names())
    places = [place for place, _ in general]
    wanted = np.union1d(rows.n[among(messages, rows.message)], np.array(places, np.int64))
    return chosen.filter(pa.array(np.isin(np.asarray(chosen["n"]), wanted)))


def _latest(batch: pa.RecordBatch, ev: Coded) -> LatestLines:
    """As `LatestLines.take` of each event."""
    rec, t = coded(batch, "rec"), column_of(batch, "t")
    named = ev.among(*Conservation.reads) & ~rec.among("")
    timed = np.asarray(t.is_valid()) & named
    codes = rec.codes[timed]
    latest = np.full(len(rec.values), np.iinfo(np.int64).min)
    np.maximum.at(latest, codes, np.asarray(pc.fill_null(t, 0)).astype(np.int64)[timed])

    def who(those: Bools) -> set[str]:
        return {rec.values[k] for k in distinct(rec.codes[those]).tolist()}

    conn = coded(batch, "conn")

    gives = named & ev.among(*GIVES) & some(batch, "m")
    pairs = distinct(rec.codes[gives] * len(conn.values) + conn.codes[gives])
    recs, conns = np.divmod(pairs, max(len(conn.values), 1))
    return LatestLines(
        {rec.values[k]: int(latest[k]) for k in distinct(codes).tolist()},
        opened=who(named & ev.among(*OPENS)),
        shown=who(named & ev.among(*SHOWS)),
        given={(rec.values[r], conn.values[c]) for r, c in zip(recs, conns, strict=True)},
    )


def _is_general(batch: pa.RecordBatch, ev: Coded) -> Bools:
    """As `rows.is_general` of each event."""
    several = flags(column_of(batch, "multiple"), False)
    unbegun = np.asarray(pc.fill_null(column_of(batch, "t_lo"), 0)) == ANY_TIME
    ph = coded(batch, "ph")
    began = ph.among("", "invoke") | (ph.among("ok") & ~present(batch, "op"))
    worker = ~present(batch, "ch")
    listed = np.asarray(pc.fill_null(pc.list_value_length(column_of(batch, "ms")), 0))
    nothing = (listed == 0) & (began | worker | _final(batch, ev))
    sweeping = ev.among(*SETTLES) & (several | nothing | unbegun | ph.among("fail", "info"))
    poll = ev.among("get") & ~some(batch, "m")
    found: Bools = ev.among(*GENERAL) | sweeping | poll
    return found


def _general(batch: pa.RecordBatch, places: Ints, ev: Coded) -> list[tuple[int, Event]]:
    at = np.flatnonzero(_is_general(batch, ev))
    if not len(at):
        return []
    at = at[np.argsort(places[at])]
    return list(zip(places[at].tolist(), table.events(batch.take(pa.array(at))), strict=True))


def _polls(batch: pa.RecordBatch, places: Ints, ev: Coded) -> list[tuple[int, Event]]:
    """Polls that name a message, in order: by whom, of which queue, in which operation and with which outcome."""
    at = np.flatnonzero(ev.among("get") & some(batch, "m"))
    if not len(at):
        return []
    named = batch.select(
        [
            c
            for c in ("i", "ev", "lvl", "ph", "q", "m", "op", "autoack", *HOLDER)
            if c in batch.schema.names
        ]
    )
    at = at[np.argsort(places[at])]
    return list(zip(places[at].tolist(), table.events(named.take(pa.array(at))), strict=True))


def _last(kind: Ints, settles: Bools, places: Ints, q: Coded) -> dict[str, int]:
    """Place of the last traffic by queue."""
    codes, values = q
    traffic = (kind >= 0) | settles
    last = np.full(len(values), -1, np.int64)
    np.maximum.at(last, codes[traffic], places[traffic])
    out: dict[str, int] = {}
    for name, place in zip(values, last.tolist(), strict=True):
        if place >= 0:
            out[name] = max(out.get(name, -1), place)
    return out
