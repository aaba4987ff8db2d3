"""What one task judges of a run from its beginning to its end, so that no summary has to travel or to be joined.

A property's state is small where it starts from the beginning: what is open, and a window of what was just seen.
So what can be judged apart (some queues, the channels of some connections) is read in the run's order, chunk after
chunk, a portion at a time, and the state is all that is held.
Messages are sifted by columns first (`properties.fast.sieve`), which keeps some bytes of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seriatim_models.history import table
from seriatim_models.history.event import GAP, Event
from seriatim_models.pipeline.audit import chunks
from seriatim_models.pipeline.audit import findings as found
from seriatim_models.pipeline.audit.aggregate import PORTION, Fold
from seriatim_models.properties.base import AnyProperty, Finding
from seriatim_models.properties.blackbox.lifecycle import LifecycleProperty
from seriatim_models.properties.columnar import prefilter, rows
from seriatim_models.properties.columnar.batches import COLUMNS, rows_of_batch
from seriatim_models.properties.columnar.columns import Names

Said = tuple[int, Finding]
"""Which of the properties, and what it comes to."""


def judged(share: chunks.Share, properties: Sequence[AnyProperty]) -> Iterator[Said]:
    """What those of the properties that have the share's scope say of it."""
    mine = [n for n, p in enumerate(properties) if p.partitioning == share.scope]
    of = [properties[n] for n in mine]
    if share.scope == "message":
        yield from zip(mine, _messages(share, of), strict=True)
    elif share.scope == "connection":
        yield from zip(mine, _folded(share, of, partial(_of_connections, share)), strict=True)
    else:
        # One bucket after the other: a queue's state is a window, and a thousand windows are no small state.
        apart: list[set[str] | None] = [{shelf, chunks.CONTROL} for shelf in share.shelves]
        for shelves in apart or [None]:
            read = partial(chunks.read_chunk, shelves=shelves)
            yield from zip(mine, _folded(share, of, read), strict=True)


def _folded(
    share: chunks.Share, properties: Sequence[AnyProperty], read: Callable[[str], pa.RecordBatch]
) -> Iterator[Finding]:
    """The findings on what is read of each chunk."""
    fold = Fold(properties, first=True, measure=False)
    for file in share.files:
        fold.rows(chunks.in_order(_read_by(read(file), properties)))
    if share.ended is not None:
        fold.events([Event(i=-1, ev="note", t=share.ended)])
    for _, finding in fold.finish():
        yield finding


def _of_connections(share: chunks.Share, file: str) -> pa.RecordBatch:
    """The events of some connections, and the gaps."""
    batch = chunks.read_chunk(file)
    if share.parts == 1 or "conn" not in batch.schema.names:
        return batch
    conn = batch["conn"].dictionary_encode()
    part = [chunks.bucket(name or "", share.parts) for name in conn.dictionary.to_pylist()]
    codes = np.asarray(pc.fill_null(conn.indices, len(part)))
    mine: npt.NDArray[np.bool_] = (
        np.array([*part, chunks.bucket("", share.parts)])[codes] == share.part
    )
    return batch.filter(pc.or_(pa.array(mine), pc.equal(batch["ev"], GAP)))


def _read_by(batch: pa.RecordBatch, properties: Sequence[AnyProperty]) -> pa.RecordBatch:
    """The events that one of the properties reads."""
    reads = [found.relevant(p) for p in properties]
    if any(r is None for r in reads):
        return batch
    names = sorted(frozenset[str]().union(*(r for r in reads if r is not None)))
    return batch.filter(pc.is_in(batch["ev"], pa.array(names)))


def _messages(share: chunks.Share, properties: Sequence[AnyProperty]) -> Iterator[Finding]:
    """The findings on some messages: the plain ones by columns, and the odd ones in a second reading."""
    sifting = prefilter.Prefilter()
    published = False
    for file in share.files:
        given, mine = _given(share, file, sifting.holders)
        published = published or bool((given.rows.kind <= rows.BORN).any())
        sifting.take(mine, given.general, given.queues)
    # Whether anything is published is a question of the run, and so is the last traffic of a queue.
    sifted = sifting.finish()._replace(published=published)
    again = _odd(share, sifted)
    held = list(islice(again, PORTION))
    for prop in properties:
        assert isinstance(prop, LifecycleProperty)
        # More than can be held is read anew for each.
        yield sifted.judge(prop, held if len(held) < PORTION else _odd(share, sifted))


def _given(share: chunks.Share, file: str, holders: Names) -> tuple[rows.BatchRows, rows.Rows]:
    """What the events of a chunk say of messages: of all, and of those of this share."""
    given = rows_of_batch(chunks.read_chunk(file, (*COLUMNS, "shelf")), holders)
    if share.parts == 1:
        return given, given.rows
    return given, given.rows.only(given.rows.message % np.uint64(share.parts) == share.part)


def _odd(share: chunks.Share, sifted: prefilter.Prefiltered) -> Iterator[tuple[int, Event]]:
    """The events about odd messages, and the few about none."""
    for file in share.files:
        given, mine = _given(share, file, Names())
        # The few as well: they may be shown, and were made of some columns only.
        few = np.array([place for place, _ in given.general], np.int64)
        if not len(wanted := np.union1d(sifted.about_irregular(mine), few)):
            continue
        batch = chunks.read_chunk(file)
        odd = chunks.in_order(batch.filter(pa.array(np.isin(np.asarray(batch["n"]), wanted))))
        for begin in range(0, len(odd), PORTION):
            some = odd.slice(begin, PORTION)
            yield from zip(some["n"].to_pylist(), table.events(some), strict=True)
