"""P4 over columns: queues whose first deliveries keep their order are cleared, at whatever level they were recorded.

A queue is *regular* if no number falls in any line of its first deliveries: of one publisher, to one channel, by one
kind of delivery. Where messages have priorities, partitions, keys or counts of attempts, or a channel's incarnation is
not known, the queue is left to the row-based form. A delivery that names no queue leaves all of them to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seriatim_models.history.event import UNKNOWN_GEN
from seriatim_models.properties.base import AnyProperty
from seriatim_models.properties.blackbox.lifecycle import ACQUIRES
from seriatim_models.properties.blackbox.naming import Holder
from seriatim_models.properties.blackbox.order import FirstDeliveryOrder
from seriatim_models.properties.columnar.batch_columns import (
    coded,
    column_of,
    present,
    some,
)
from seriatim_models.properties.columnar.batches import HOLDER, flags, holder_numbers
from seriatim_models.properties.columnar.columns import Bools, Ints, Names, array_of
from seriatim_models.properties.columnar.queues import ClearedQueues, Counts


class LinesState(msgspec.Struct):
    """What a `RegularLines` keeps of a run."""

    queues: list[str]
    holders: list[Holder]
    lines: list[tuple[int, str, int, str]]
    last: bytes
    irregular: bytes
    counts: bytes
    lost: bool


class RegularLines:
    """Clears regular queues for P4. Kept of a run: of each line its latest number."""

    columns = (
        "n", "bucket", "ev", "lvl", "ph", "q", "m", *HOLDER, "pub", "pseq", "prio", "part", "key", "dead",
        "redelivered", "attempt",
    )  # fmt: skip

    state_type = LinesState
    spreads = False

    def __init__(self, properties: Sequence[AnyProperty]) -> None:
        self._queues: Names[str] = Names()
        self._holders: Names[Holder] = Names()
        self._lines: Names[tuple[int, str, int, str]] = Names()
        self._last: Ints = np.zeros(0, np.int64)
        """By line: its latest number; -1 for none."""
        self._irregular: Bools = np.zeros(0, np.bool_)
        self._counts: Ints = np.zeros((2, 0), np.int64)
        """By queue: tested and untestable cases."""
        self.lost = False

    def take(self, batch: pa.RecordBatch) -> None:
        """Add the next events, those of one queue in the order of the run."""
        if self.lost:
            return
        ev, q = coded(batch, "ev"), coded(batch, "q")
        read = ev.among(*FirstDeliveryOrder.reads)
        if not read.any():
            return
        acquired = ev.among(*ACQUIRES) & some(batch, "m")
        acquired &= ~coded(batch, "ph").among("invoke", "fail")
        nameless = q.among("")
        if (nameless & (acquired | (read & present(batch, "prio")))).any():
            self.lost = True
            return
        queue = np.array([self._queues(n) if n else -1 for n in q.values], np.int64)[q.codes]
        more = len(self._queues.code) - len(self._irregular)
        self._irregular = np.append(self._irregular, np.zeros(more, np.bool_))
        self._counts = np.concatenate([self._counts, np.zeros((2, more), np.int64)], axis=1)
        number: Ints = np.asarray(pc.fill_null(column_of(batch, "pseq"), -1)).astype(np.int64)
        numbered = present(batch, "pseq")
        odd = acquired & (present(batch, "attempt") | (numbered & (number < 0)))
        odd |= acquired & coded(batch, "gen").among(UNKNOWN_GEN)
        for name in ("prio", "part", "key"):
            odd |= read & present(batch, name)
        self._irregular[queue[odd & ~nameless]] = True
        fresh = acquired & ~flags(column_of(batch, "redelivered"), False)
        known = fresh & present(batch, "redelivered") & numbered & ~flags(column_of(batch, "dead"), False)  # fmt: skip
        known &= ~coded(batch, "pub").among("")
        self._counts[1] += np.bincount(queue[fresh & ~known], minlength=len(self._irregular))
        looked = [c for c in ("n", "ev", "lvl", "pub", *HOLDER) if c in batch.schema.names]
        self._advance(batch.select(looked).filter(pa.array(known)), queue[known], number[known])

    def _advance(self, rows: pa.RecordBatch, queue: Ints, number: Ints) -> None:
        """Add first deliveries whose line is known."""
        if not len(rows):
            return
        of_holders = rows.select([c for c in HOLDER if c in rows.schema.names])
        by = holder_numbers(of_holders, self._holders)
        pub, ev = coded(rows, "pub"), coded(rows, "ev")
        # Above a client library deliveries and polls are apart: see `order.way`.
        above = coded(rows, "lvl").among("", "api")
        ways = [*ev.values, ""]
        way = np.where(above, ev.codes, len(ev.values))
        code = ((queue * (int(by.max()) + 1) + by) * len(pub.values) + pub.codes) * len(ways)
        _, at, line = np.unique(code + way, return_index=True, return_inverse=True)
        known = len(self._last)
        of = zip(
            queue[at].tolist(),
            (pub.values[k] for k in pub.codes[at]),
            by[at].tolist(),
            (ways[k] for k in way[at]),
            strict=True,
        )
        numbers = np.array([self._lines(key) for key in of], np.int64)
        fresh = np.count_nonzero(numbers >= known)
        self._last = np.append(self._last, np.full(fresh, -1, np.int64))
        self._counts[0] += np.bincount(queue, minlength=len(self._irregular))
        new = numbers >= known
        self._counts[0] -= np.bincount(queue[at[new]], minlength=len(self._irregular))
        # Sorted by line, each in the order of the run: the number before each.
        order = np.argsort(line, kind="stable")
        line, number = numbers[line[order]], number[order]
        first = np.append(True, line[1:] != line[:-1])
        before = np.where(first, self._last[line], np.append(-1, number[:-1]))
        self._irregular[queue[order][number < before]] = True
        last = np.append(first[1:], True)
        self._last[line[last]] = number[last]

    def state(self) -> LinesState:
        """What is kept of the run so far."""
        return LinesState(
            list(self._queues.code),
            list(self._holders.code),
            list(self._lines.code),
            self._last.tobytes(),
            self._irregular.tobytes(),
            self._counts.tobytes(),
            self.lost,
        )

    def restore(self, state: LinesState) -> None:
        """Go on where another one was that had this state."""
        self._queues, self._holders = Names.of(state.queues), Names.of(state.holders)
        self._lines = Names.of(state.lines)
        self._last = array_of(state.last, np.int64)
        self._irregular = array_of(state.irregular, np.bool_)
        self._counts = array_of(state.counts, np.int64).reshape(2, len(self._irregular))
        self.lost = state.lost

    def finish(self, ended: int | None) -> ClearedQueues | None:
        """What is cleared, if the run is over; None if nothing is."""
        if self.lost:
            return None
        tested, untestable = self._counts[:, ~self._irregular].sum(axis=1).tolist()
        irregular = {q for q, k in self._queues.code.items() if self._irregular[k]}
        return ClearedQueues(irregular, {FirstDeliveryOrder.id: Counts(tested, untestable)})
