"""P4 over the columns of a chunk: the summary that `FirstDeliveryOrder.map` makes of its rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seriatim_models.history import Event
from seriatim_models.history.complete import UNKNOWN_GEN
from seriatim_models.properties.blackbox.order import (
    DeliveryLine,
    DeliveryLines,
    FirstDeliveryOrder,
    Low,
    line_key,
)
from seriatim_models.properties.columnar.batch_columns import Coded, coded, column_of, present
from seriatim_models.properties.columnar.columns import Ints
from seriatim_models.properties.columnar.forms import ColumnMap, FindEvents

NAMES = ("rec", "ev", "pub", "q", "part", "key", "prio", "conn", "ch", "gen", "ctag", "proc")
"""Columns that determine whose line a delivery is in."""


def first_delivery_order(batch: pa.RecordBatch) -> DeliveryLines:
    """P4: see `FirstDeliveryOrder.map`."""
    wanted = coded(batch, "ev").among("deliver", "get")
    wanted &= ~coded(batch, "ph").among("invoke", "fail")
    flag = present(batch, "redelivered")
    attempt = column_of(batch, "attempt")
    counted = ~flag & present(batch, "attempt")
    again = np.asarray(pc.fill_null(attempt, 0)) > 1
    wanted &= ~coded(batch, "redelivered").among(True) & ~(counted & again)
    if _gets(batch):  # one that came back empty carries no message; a delivery always does
        wanted &= coded(batch, "ev").among("deliver") | ~coded(batch, "m").among("")
    known = (flag | counted) & present(batch, "pseq") & ~coded(batch, "pub").among("")
    known &= ~coded(batch, "dead").among(True) & ~again
    out = DeliveryLines(unknown=int(np.count_nonzero(wanted & ~known)), ranked=_ranked(batch))
    at = np.flatnonzero(wanted & known)
    if not len(at):
        return out
    taken = batch.take(pa.array(at))
    seq: Ints = np.asarray(taken["pseq"]).astype(np.int64)
    columns = {name: coded(taken, name) for name in NAMES}
    lone = ~present(taken, "ch")
    by_consumer = lone | columns["q"].among("") | columns["gen"].among(UNKNOWN_GEN)
    # Of each delivery the number of its line: another one for every different combination of the names that count.
    code = np.zeros(len(at), np.int64)
    for name in NAMES[1:]:
        codes, values = columns[name]
        # Consumer and worker tell lines apart only where there is no channel, and the consumer where queue or
        # incarnation are unknown; an incarnation only where there is a channel.
        counts = {"ctag": by_consumer, "proc": lone, "gen": ~lone}.get(name)
        codes = codes if counts is None else np.where(counts, codes, 0)
        if len(values) > 1:
            code = np.unique(code * len(values) + codes, return_inverse=True)[1]
    if lone.any() and not coded(taken.filter(pa.array(lone)), "ctag").among("").all():
        # A worker counts only where there is no consumer tag either.
        return _row_by_row(taken, columns, seq, out)
    if seq.min() < 0:  # below every sequence there is: where "none yet" stands
        return _row_by_row(taken, columns, seq, out)
    _add_lines(out, taken, columns, code, seq)
    return out


def _add_lines(
    out: DeliveryLines,
    taken: pa.RecordBatch,
    columns: Mapping[str, Coded],
    code: Ints,
    seq: Ints,
) -> None:
    """Add the line of every different `code`, from the deliveries that are taken; all arguments have a row for each."""
    # The rows sorted by line, and within a line by place; of each the number of its line, and where the lines begin.
    order = np.lexsort((np.asarray(taken["n"]), code))
    code, seq = code[order], seq[order]
    begins = np.append(True, code[1:] != code[:-1])
    group = np.cumsum(begins) - 1
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(seq)) - 1
    # Each line is lifted beyond all numbers of those before, so that one running maximum serves all: of each row the
    # maximum before it, where the maximum up to it stands, and where the one before it does.
    span = np.int64(seq.max()) - np.int64(seq.min()) + 1
    lifted = seq + group * span
    above = np.append(np.int64(0), np.maximum.accumulate(lifted)[:-1])
    fresh = begins | (lifted > above)
    peak = np.maximum.accumulate(np.where(fresh, np.arange(len(seq)), 0))
    before = np.append(0, peak[:-1])
    # In the same way each line is sunk for a running minimum: the rows that are lower than all before them in a line.
    sunk = seq - group * span
    least = np.append(np.int64(0), np.minimum.accumulate(sunk)[:-1])
    lows = np.flatnonzero(begins | (sunk < least))
    # The rows below a maximum before them, of each line the first, by the line's number.
    fell = np.flatnonzero(~begins & (lifted < above))
    _, first = np.unique(group[fell], return_index=True)
    worst = dict(zip(group[fell][first].tolist(), fell[first].tolist(), strict=True))
    # Only the rows that a summary holds become events.
    kept = np.unique(
        np.concatenate([peak[ends], lows, before[lows], fell[first], before[fell[first]]])
    )
    made = _events(
        taken.take(pa.array(order[kept])),
        {n: Coded(c[order[kept]], v) for n, (c, v) in columns.items()},
    )
    event = dict(zip(kept.tolist(), made, strict=True))

    def low(k: int, start: int) -> Low:
        return Low(k - start, event[k], None if k == start else event[int(before[k])])

    lows_of: dict[int, list[int]] = {}
    for k, g in zip(lows.tolist(), group[lows].tolist(), strict=True):
        lows_of.setdefault(g, []).append(k)
    for g, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        highest = event[int(peak[end])]
        out.lines[line_key(highest)] = DeliveryLine(
            n=end - start + 1,
            top=highest,
            lows=[low(k, start) for k in lows_of[g]],
            worst=low(worst[g], start) if g in worst else None,
        )


def _ranked(batch: pa.RecordBatch) -> list[str]:
    """The queues in which some message has a priority."""
    some = coded(batch, "ev").among("deliver", "get", "publish") & present(batch, "prio")
    codes, values = coded(batch, "q")
    return sorted({values[code] for code in np.unique(codes[some]).tolist()})


def _gets(batch: pa.RecordBatch) -> bool:
    """Whether there are gets, of which only `m` says whether one came back empty."""
    return bool(coded(batch, "ev").among("get").any())


def _events(taken: pa.RecordBatch, columns: Mapping[str, Coded]) -> list[Event]:
    """Deliveries with what the order is decided by."""
    fields = {n: [v[c] for c in codes.tolist()] for n, (codes, v) in columns.items()}
    rows = zip(taken["i"].to_pylist(), taken["pseq"].to_pylist(), *fields.values(), strict=True)
    out = []
    for i, pseq, *values in rows:
        named = {n: v for n, v in zip(fields, values, strict=True) if v not in ("", None)}
        out.append(Event(i=i, m="?", redelivered=False, pseq=pseq, **named))
    return out


def _row_by_row(
    taken: pa.RecordBatch,
    columns: Mapping[str, Coded],
    seq: Ints,
    out: DeliveryLines,
) -> DeliveryLines:
    order = np.argsort(np.asarray(taken["n"]))
    events = _events(taken, columns)
    found = FirstDeliveryOrder().map(events[k] for k in order.tolist())
    found.unknown += out.unknown
    found.ranked = out.ranked
    return found


def _with_witnesses(lines: DeliveryLines, find: FindEvents) -> DeliveryLines:
    """Return the lines with the recorded events in place of those that show the violation."""
    shown = [
        e
        for line in lines.lines.values()
        if line.worst
        for e in (line.worst.event, line.worst.above)
        if e
    ]
    known = find({(e.rec, e.i) for e in shown})
    for line in lines.lines.values():
        if line.worst and line.worst.above:
            late, above = (known[e.rec, e.i] for e in (line.worst.event, line.worst.above))
            line.worst = Low(line.worst.n, late, above)
    return lines


FORM = ColumnMap(
    columns=("i", "ph", "redelivered", "attempt", "dead", "pseq", *NAMES),
    map=first_delivery_order,
    with_witnesses=_with_witnesses,
    needs_more=_gets,
)
