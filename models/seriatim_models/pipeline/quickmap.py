"""`map` over the columns of a chunk, for the properties that have such a form: the same summary, in less time.

A form is given the rows of a chunk in order, and makes `Event` objects only of the few that the summary keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seriatim_models.history import Event, table
from seriatim_models.properties.base import AnyProperty
from seriatim_models.properties.blackbox.order import FirstDeliveryOrder, Line, Lines, Low

Ints = npt.NDArray[np.int64]


class Rows:
    """Makes events of rows of a chunk file, by their place in the run; reads the whole file only if asked."""

    def __init__(self, path: str, n: pa.Array) -> None:
        self._path, self._n = path, n

    def events(self, rows: Ints) -> dict[int, Event]:
        """Events by row of the batch."""
        if not len(rows):
            return {}
        wanted = self._n.take(pa.array(rows))
        with pq.ParquetFile(self._path) as file:
            whole = file.read(use_threads=False)
        at = pc.index_in(wanted, whole["n"].combine_chunks())
        batch = whole.take(at).combine_chunks().to_batches()[0]
        return dict(zip(rows.tolist(), table.events(batch), strict=True))


class Quick(NamedTuple):
    """A property's form over columns."""

    of: type[AnyProperty]
    columns: tuple[str, ...]
    # Any: the summary is the property's own
    map: Callable[[pa.RecordBatch, Rows], Any]


def _text(batch: pa.RecordBatch, name: str) -> pa.Array:
    if name not in batch.schema.names:
        return pa.array([""]).take(pa.array(np.zeros(len(batch), np.int32)))
    return pc.fill_null(pc.cast(batch[name], pa.string()), "")


def _codes(texts: Iterable[pa.Array]) -> Ints:
    """One number for each combination of texts."""
    out: Ints | None = None
    for text in texts:
        encoded = text.dictionary_encode()
        codes = np.asarray(encoded.indices).astype(np.int64)
        if out is None:
            out = codes
        elif len(encoded.dictionary) > 1:
            out = np.unique(out * len(encoded.dictionary) + codes, return_inverse=True)[1]
    assert out is not None
    return out


def first_delivery_order(batch: pa.RecordBatch, rows: Rows) -> Lines:
    """P4: see `FirstDeliveryOrder.map`."""
    ph = _text(batch, "ph")
    wanted = pc.and_(
        pc.is_in(batch["ev"], pa.array(["deliver", "get"])), pc.not_equal(_text(batch, "m"), "")
    )
    wanted = pc.and_(wanted, pc.invert(pc.is_in(ph, pa.array(["invoke", "fail"]))))
    if "redelivered" in batch.schema.names:
        wanted = pc.and_(wanted, pc.invert(pc.fill_null(batch["redelivered"], False)))
        known = pc.is_valid(batch["redelivered"])
    else:
        known = pa.array(np.zeros(len(batch), bool))
    if "pseq" in batch.schema.names:
        known = pc.and_(known, pc.is_valid(batch["pseq"]))
    else:
        known = pa.array(np.zeros(len(batch), bool))
    known = pc.and_(known, pc.not_equal(_text(batch, "pub"), ""))
    mask = np.asarray(wanted)
    out = Lines(unknown=int(np.count_nonzero(mask & ~np.asarray(known))))
    at: Ints = np.flatnonzero(mask & np.asarray(known))
    if not len(at):
        return out
    taken = batch.take(pa.array(at))
    if pc.min(taken["pseq"]).as_py() < 0:  # below every sequence there is: where "none yet" stands
        whole = rows.events(np.arange(len(batch)))
        return FirstDeliveryOrder().map(whole.values())
    # Columns that name the receiving channel, or whatever stands for it.
    names = ("pub", "q", "prio", "conn", "ch", "gen", "ctag", "proc")
    lone = pc.equal(_text(taken, "ch"), "")
    texts = [_text(taken, n) for n in names[:6]]
    texts += [pc.if_else(lone, _text(taken, n), "") for n in names[6:]]
    code = _codes(texts)
    seq = np.asarray(taken["pseq"]).astype(np.int64)
    order = np.argsort(code, kind="stable")
    at, code, seq = at[order], code[order], seq[order]
    begins = np.append(True, code[1:] != code[:-1])
    group = np.cumsum(begins) - 1
    starts = np.flatnonzero(begins)
    # Each group is lifted (or sunk) beyond all numbers of those before, so that one running extreme serves all.
    span = np.int64(seq.max()) - np.int64(seq.min()) + 1
    lifted = seq + group * span
    top = np.maximum.accumulate(lifted)
    above = np.append(np.int64(0), top[:-1])
    fresh = begins | (lifted > above)
    peak = np.maximum.accumulate(
        np.where(fresh, np.arange(len(at)), 0)
    )  # where the highest so far stands
    before = np.append(0, peak[:-1])  # ... and the highest before each
    sunk = seq - group * span
    least = np.minimum.accumulate(sunk)
    lows = np.flatnonzero(begins | (sunk < np.append(np.int64(0), least[:-1])))
    fell = np.flatnonzero(~begins & (lifted < above))
    _, first = np.unique(group[fell], return_index=True)
    worst = dict(zip(group[fell][first].tolist(), fell[first].tolist(), strict=True))
    ends = np.append(starts[1:], len(at)) - 1
    kept = np.unique(
        np.concatenate([peak[ends], lows, before[lows], fell[first], before[fell[first]]])
    )
    made = rows.events(at[kept])
    event = {k: made[r] for k, r in zip(kept.tolist(), at[kept].tolist(), strict=True)}

    def low(k: int, start: int) -> Low:
        return Low(k - start, event[k], None if k == start else event[int(before[k])])

    of_group: dict[int, list[int]] = {}
    for k, g in zip(lows.tolist(), group[lows].tolist(), strict=True):
        of_group.setdefault(g, []).append(k)
    for g, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        highest = event[int(peak[end])]
        out.lines[_key(highest)] = Line(
            n=end - start + 1,
            top=highest,
            lows=[low(k, start) for k in of_group[g]],
            worst=low(worst[g], start) if g in worst else None,
        )
    return out


def _key(event: Event) -> str:
    from seriatim_models.properties.blackbox.lives import holder

    return f"{event.pub}\n{event.q}\n{event.prio}\n{holder(event)}"


QUICK: dict[str, Quick] = {
    "P4": Quick(
        FirstDeliveryOrder,
        (
            "ev",
            "ph",
            "m",
            "redelivered",
            "pseq",
            "pub",
            "q",
            "prio",
            "conn",
            "ch",
            "gen",
            "ctag",
            "proc",
        ),
        first_delivery_order,
    )
}


def fits(prop: AnyProperty) -> bool:
    """Whether a property has a form over columns. A subclass may judge otherwise, so it has none."""
    form = QUICK.get(prop.id)
    return form is not None and type(prop) is form.of
