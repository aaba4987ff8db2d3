"""What judges the queues of a run, all of them in one reading: in the one pass, and in the tasks that have some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seriatim_models.pipeline.audit import chunks
from seriatim_models.pipeline.audit.groups import (
    GroupChecks,
    RowsLeft,
    Wanted,
    fold_rows,
    rows_left,
    spreads,
)
from seriatim_models.properties.base import AnyProperty, Finding
from seriatim_models.properties.columnar.event_batch import EventBatch

READINGS = 8
"""Lists of queues that are left to the rows, each of which reads the recording once more, at most."""
MANY = 0.25
"""What part of the rows made irregular by other queues is worth another reading: by columns one costs a fifth."""
PARTS = 16
"""Parts of the queues, if they are divided: each costs something with each batch, whatever the part has of it."""


class QueueGroups:
    """What judges queues. Where one irregular queue makes many others so, a second reading by columns divides them by
    their buckets, and each part has checks of its own.
    """

    def __init__(
        self,
        properties: Mapping[int, AnyProperty],
        buckets: Sequence[str] = (),
        looks: bool = True,
    ) -> None:
        """`buckets` are those of the queues, none for any; `looks`: whether events may be `chunks.nameless`."""
        self._properties = properties
        divided = {n: p for n, p in properties.items() if spreads(p)}
        self._parts = [GroupChecks(divided, "q")]
        self._buckets = buckets
        others = {n: p for n, p in properties.items() if n not in divided}
        self._whole = GroupChecks(others, "q")
        self._rows: Counter[str] = Counter()
        """By queue."""
        self._looks, self._nameless = looks, False
        self.columns = {"ev", "q", *self._whole.columns, *self._parts[0].columns}
        """Those that are looked at."""
        if looks:
            self.columns |= {"multiple", "dtag"}

    def take(self, batch: EventBatch) -> None:
        """Add the next events."""
        if not self._properties:
            return
        codes, names = batch.coded("q")
        counts = np.bincount(codes, minlength=len(names)).tolist()
        self._rows.update({q: n for q, n in zip(names, counts, strict=True) if n})
        (all_of,) = self._parts
        if self._looks and chunks.nameless(batch):
            self._looks, self._nameless = False, True  # it may be of any queue
            all_of.give_up()
        for checks in (self._whole, all_of):
            if checks.looks:
                checks.take(batch)

    def divide(self, ended: int | None) -> bool:
        """Divide the queues if one made many others irregular. Whether it did: then all events are `divided` anew."""
        spoilt = sum(self._rows[q] for q in self._parts[0].spoilt(ended))
        if self._nameless or spoilt <= max(chunks.TOGETHER, MANY * self._rows.total()):
            return False
        divided = {n: p for n, p in self._properties.items() if spreads(p)}
        parts = min(PARTS, len(self._buckets))
        if parts > 1:
            self._parts = [GroupChecks(divided, "q") for _ in range(parts)]
        return parts > 1

    def divided(self, shares: int = 1) -> list[Callable[[EventBatch], None]]:
        """What adds the next events to the checks of the parts, each to those of a share of the parts."""
        return [
            partial(self._take_divided, range(k, len(self._parts), shares)) for k in range(shares)
        ]

    def _take_divided(self, parts: Sequence[int], batch: EventBatch) -> None:
        part_of = {bucket: k % len(self._parts) for k, bucket in enumerate(self._buckets)}
        held = batch.select({"bucket", *self._parts[0].columns})
        bucket = held.arrow["bucket"]
        # What is of no part concerns all.
        of = [part_of.get(name, -1) for name in bucket.dictionary.to_pylist()]
        part = np.array(of, np.int64)[np.asarray(bucket.indices)]
        for k in parts:
            self._parts[k].take(held.only((part == k) | (part < 0)))

    def findings(self, ended: int | None) -> Iterator[tuple[int, Finding]]:
        """The findings on the queues that are cleared, by number of the property."""
        for part in (*self._parts, self._whole):
            yield from part.findings(ended)

    def left(self, ended: int | None) -> list[QueuesLeft]:
        """What is left to the rows, so many queues at a time."""
        wanted: Wanted = {}
        for part in (*self._parts, self._whole):
            for key, names in part.left(ended).items():
                before, here = wanted.get(key, frozenset()), names and self._mine(names)
                if here is None or here:
                    wanted[key] = None if here is None or before is None else here | before
        if not wanted:
            return []
        mine = self._mine(self._rows)
        named = [mine if names is None else names for names in wanted.values()]
        rows: Counter[str] = Counter()
        for q in frozenset[str]().union(*named) - {""}:
            rows[chunks.bucket(q)] += self._rows[q]
        most = max(chunks.TOGETHER, -(-rows.total() // READINGS))
        apart = chunks.lists(rows, most)
        if self._nameless or (None in wanted.values() and len(apart) < 2):
            return [QueuesLeft(None, rows_left(wanted, self._properties))]
        found = [self._left_of(wanted, {*buckets}) for buckets in apart]
        return [of for of in found if of.left]

    def _mine(self, names: Iterable[str]) -> frozenset[str]:
        """Those of some queues that are of some part; others are named by what concerns all queues."""
        of = frozenset(self._buckets)
        found = frozenset(q for q in names if q and (not of or chunks.bucket(q) in of))
        return found | {""} if found else found

    def _left_of(self, wanted: Wanted, buckets: set[str]) -> QueuesLeft:
        """What is left to the rows in some buckets."""
        mine: Wanted = {}
        for key, names in wanted.items():
            here = names and frozenset(q for q in names if q and chunks.bucket(q) in buckets)
            if here is None or here:
                mine[key] = here and here | {""}
        if None not in mine.values():
            buckets = {chunks.bucket(q) for names in mine.values() for q in names or () if q}
        return QueuesLeft(buckets | {chunks.CONTROL}, rows_left(mine, self._properties))


class QueuesLeft(NamedTuple):
    """Those who judge the queues of some buckets event by event."""

    buckets: set[str] | None
    """None for all."""
    left: list[RowsLeft]

    def take(self, batch: EventBatch) -> None:
        """Add the next events."""
        if self.buckets is not None and any(each.names is None for each in self.left):
            mine = pc.is_in(batch.arrow["bucket"], pa.array(sorted(self.buckets)))
            batch = EventBatch(batch.arrow.filter(mine))
        if self.left:
            fold_rows(batch, self.left, "q")
