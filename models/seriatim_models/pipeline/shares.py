"""What one task judges of a run from its beginning to its end, so that no summary has to travel or to be joined.

A property's state is small where it starts from the beginning: what is open, and a window of what was just seen.
So what can be judged apart (some queues, the channels of some connections, some messages) is read in the run's order,
chunk after chunk, `PORTION` events at a time, and the state is all that is held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seriatim_models.history.event import GAP, Event
from seriatim_models.pipeline import chunks, quickmap
from seriatim_models.pipeline import findings as found
from seriatim_models.pipeline.summarise import Fold
from seriatim_models.properties.base import AnyProperty, Finding, Scope

Said = tuple[int, Finding]
"""Which of the properties, and what it comes to."""


def scope(prop: AnyProperty) -> Scope:
    """By what a property's work is divided among tasks; ``run``: by time only."""
    return "run" if quickmap.fits(prop) or prop.scope == "message" else prop.scope


def judged(share: chunks.Share, properties: Sequence[AnyProperty]) -> Iterator[Said]:
    """What those of the properties that have the share's scope say of it."""
    mine = [n for n, p in enumerate(properties) if scope(p) == share.scope]
    fold = Fold([properties[n] for n in mine], first=True, measure=False)
    for file in share.files:
        batch = _of_queues(share, file) if share.scope == "queue" else _of_connections(share, file)
        fold.rows(chunks.in_order(_read_by(batch, fold.properties)))
    if share.ended is not None:
        fold.events([Event(i=-1, ev="note", t=share.ended)])
    for n, finding in fold.finish():
        yield mine[n], finding


def _of_queues(share: chunks.Share, file: str) -> pa.RecordBatch:
    return chunks.read_chunk(file, shelves={*share.shelves, chunks.CONTROL})


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
