"""Rows for the pre-filter from Arrow columns (`history.table`), without an object for each event.

Gives what `rows.rows_of_events` gives of the same events; a test compares them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

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
from seriatim_models.properties.columnar.columns import (
    Bools,
    Ints,
    Names,
    among,
    distinct,
    repeated,
)
from seriatim_models.properties.columnar.event_batch import HOLDER, Coded, EventBatch
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


def _final(batch: EventBatch) -> Bools:
    """Of each settlement, whether it is for good."""
    return batch.among("ev", "ack") | ~batch.flags("requeue", True)


def _kinds(batch: EventBatch, exact: Bools) -> Ints:
    """Of each event what it says of the messages that it names; -1 for nothing."""
    ev, ph = batch.words("ev"), batch.words("ph")
    q_some, m_some = batch.some("q"), batch.some("m")
    kind = np.full(len(batch), -1, np.int64)
    publish = ev("publish")
    kind[publish] = SENT
    kind[publish & ph("ok")] = CONFIRMED
    kind[publish & ph("info")] = OTHER
    kind[publish & exact] = BORN
    kind[publish & ph("fail")] = REFUSED
    acquired = ev(*ACQUIRES) & m_some & ~ph("invoke", "fail")
    kind[acquired] = ACQUIRED
    kind[acquired & (batch.present("pos") | ~q_some)] = OTHER
    worker = ~batch.present("ch")
    kind[acquired & ev("get") & worker] = OTHER
    lone = ~batch.present("op")
    settles = ev(*SETTLES) & (ph("", "invoke") | (ph("ok") & lone))
    kind[settles] = np.where(batch.among("dead", True)[settles], OTHER, RELEASED)
    final = ev(*SETTLES) & _final(batch)
    kind[settles & final] = SETTLED
    kind[settles & ~q_some] = OTHER
    answered = ph("ok") & ~lone
    kind[final & answered] = ANSWERED
    kind[ev(*SETTLES) & (ph("fail", "info") | (answered & worker))] = OTHER
    kind[ev(*(TRAFFIC - ACQUIRES - SETTLES - {"publish"}))] = OTHER
    return kind


def rows_of_batch(batch: EventBatch, holders: Names[Holder]) -> BatchRows:
    """Rows of some events; `n` is their place in the run; `holders` numbers who acts, and is kept between batches.

    The general events have the fields that the batch has columns of: enough for `Prefilter.take`, but
    `Prefiltered.judge` may show them, and wants them whole.
    """
    places = batch.ints("n", -1)
    ev, q = batch.words("ev"), batch.coded("q")
    exact = batch.among("lvl", *EXACT)
    kind = _kinds(batch, exact)
    settles = ev(*SETTLES)
    listed = batch.lengths("ms")
    counts = np.where(kind < 0, 0, np.where(settles, listed, 1))
    counts[(kind == ACQUIRED) & batch.flags("autoack", False)] = 2
    of = repeated(counts)
    rows_listed = settles[of]
    kinds = kind[of].astype(np.int8)
    kinds[1:][(of[1:] == of[:-1]) & ~rows_listed[1:]] = SETTLED  # by the delivery itself
    named, those = batch.texts("m"), batch.texts("ms")
    wanted = np.flatnonzero(np.repeat(settles & (kind >= 0), listed))
    first, second = np.empty(len(of), np.uint64), np.empty(len(of), np.uint64)
    single, several = np.flatnonzero(~rows_listed), np.flatnonzero(rows_listed)
    for out, one, many in (
        (first, named.first, those.first),
        (second, named.second, those.second),
    ):
        out[single], out[several] = one[of[single]], many[wanted]
    acts = np.flatnonzero((kind == ACQUIRED) | (settles & (kind >= 0)))
    by = np.zeros(len(batch), np.int64)
    by[acts] = batch.holders_at(acts).numbers(holders)
    redelivered = np.where(batch.present("redelivered"), batch.flags("redelivered", False), -1)
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
        _general(batch),
        _last(kind, settles, places, q),
        _polls(batch),
        _latest(batch),
    )


def may_concern(batch: EventBatch, messages: Hashes) -> Bools:
    """Which events name one of these messages, which are sorted, or are general. Not of each `rows_of_batch` makes a
    row: see `concerning`.
    """
    concerned = _is_general(batch)
    concerned |= batch.some("m") & among(messages, batch.texts("m").first)
    of = repeated(batch.lengths("ms"))
    concerned[of[among(messages, batch.texts("ms").first)]] = True
    return concerned


def concerning(batch: EventBatch, messages: Hashes) -> EventBatch:
    """The events of which a row is of one of these messages, which are sorted, and the general ones."""
    chosen = batch.only(may_concern(batch, messages))
    if not len(chosen):
        return chosen
    rows, general, *_ = rows_of_batch(chosen, Names())
    places = [place for place, _ in general]
    wanted = np.union1d(rows.n[among(messages, rows.message)], np.array(places, np.int64))
    return chosen.only(np.isin(chosen.ints("n", -1), wanted))


def _latest(batch: EventBatch) -> LatestLines:
    """As `LatestLines.take` of each event."""
    ev, rec, conn = batch.words("ev"), batch.coded("rec"), batch.coded("conn")
    named = ev(*Conservation.reads) & batch.some("rec")
    timed = batch.present("t") & named
    codes = rec.codes[timed]
    latest = np.full(len(rec.values), np.iinfo(np.int64).min)
    np.maximum.at(latest, codes, batch.ints("t", 0)[timed])

    def who(those: Bools) -> set[str]:
        return {rec.values[k] for k in distinct(rec.codes[those]).tolist()}

    gives = named & ev(*GIVES) & batch.some("m")
    pairs = distinct(rec.codes[gives] * len(conn.values) + conn.codes[gives])
    recs, conns = np.divmod(pairs, max(len(conn.values), 1))
    return LatestLines(
        {rec.values[k]: int(latest[k]) for k in distinct(codes).tolist()},
        opened=who(named & ev(*OPENS)),
        shown=who(named & ev(*SHOWS)),
        given={(rec.values[r], conn.values[c]) for r, c in zip(recs, conns, strict=True)},
    )


def _is_general(batch: EventBatch) -> Bools:
    """As `rows.is_general` of each event."""
    ev, ph = batch.words("ev"), batch.words("ph")
    unbegun = batch.ints("t_lo", 0) == ANY_TIME
    began = ph("", "invoke") | (ph("ok") & ~batch.present("op"))
    worker = ~batch.present("ch")
    nothing = (batch.lengths("ms") == 0) & (began | worker | _final(batch))
    unsure = batch.flags("multiple", False) | nothing | unbegun | ph("fail", "info")
    poll = ev("get") & ~batch.some("m")
    found: Bools = ev(*GENERAL) | (ev(*SETTLES) & unsure) | poll
    return found


def _general(batch: EventBatch) -> list[tuple[int, Event]]:
    return _placed(batch, np.flatnonzero(_is_general(batch)), batch.arrow.schema.names)


def _polls(batch: EventBatch) -> list[tuple[int, Event]]:
    """Polls that name a message, in order: by whom, of which queue, in which operation and with which outcome."""
    at = np.flatnonzero(batch.among("ev", "get") & batch.some("m"))
    return _placed(batch, at, ("i", "ev", "lvl", "ph", "q", "m", "op", "autoack", *HOLDER))


def _placed(batch: EventBatch, at: Ints, fields: Sequence[str]) -> list[tuple[int, Event]]:
    """Some events with their places, by which they are sorted."""
    if not len(at):
        return []
    places = batch.ints("n", -1)[at]
    order = np.argsort(places)
    held = batch.arrow.select([c for c in fields if c in batch.arrow.schema.names])
    events = table.events(held.take(pa.array(at[order])))
    return list(zip(places[order].tolist(), events, strict=True))


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
