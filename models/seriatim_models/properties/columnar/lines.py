"""P4 over columns: queues whose first deliveries keep their order are cleared, at whatever level they were recorded.

A queue is *regular* if no number falls in any line of its first deliveries: of one publisher, to one channel, by one
kind of delivery. Where messages have priorities, partitions, keys or counts of attempts, or a channel's incarnation is
not known, the queue is left to the row-based form. A delivery that names no queue leaves all of them to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from seriatim_models.history.catalogue import REQUIRED
from seriatim_models.history.event import UNKNOWN_GEN
from seriatim_models.properties.base import AnyProperty
from seriatim_models.properties.blackbox.lifecycle import ACQUIRES
from seriatim_models.properties.blackbox.naming import Holder
from seriatim_models.properties.blackbox.order import FirstDeliveryOrder
from seriatim_models.properties.columnar.columns import Bools, Ints, Names, array_of, stable_order
from seriatim_models.properties.columnar.event_batch import OF_CHANNEL, EventBatch
from seriatim_models.properties.columnar.queues import ClearedQueues, Counts

NAMELESS = frozenset(name for name in ACQUIRES if "m" not in REQUIRED.get(name, ()))
"""What may give out nothing."""


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
        "n", "bucket", "ev", "lvl", "ph", "q", *OF_CHANNEL, "pub", "pseq", "prio", "part", "key", "dead", "redelivered",
        "attempt",
    )  # fmt: skip
    """The others are seldom asked for: who acts without a channel, and whether a poll or an event of a model has a
    message, as each delivery has one.
    """

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

    def take(self, batch: EventBatch) -> None:
        """Add the next events, those of one queue in the order of the run."""
        if self.lost:
            return
        ev, q = batch.words("ev"), batch.coded("q")
        read = ev(*FirstDeliveryOrder.reads)
        if not read.any():
            return
        acquired = ev(*ACQUIRES) & ~batch.among("ph", "invoke", "fail")
        if (acquired & (ev(*NAMELESS) | batch.among("lvl", "model"))).any():
            acquired &= batch.some("m")
        nameless = ~batch.some("q")
        if (nameless & (acquired | (read & batch.present("prio")))).any():
            self.lost = True
            return
        queue = q.numbers(self._queues)
        more = len(self._queues) - len(self._irregular)
        self._irregular = np.append(self._irregular, np.zeros(more, np.bool_))
        self._counts = np.concatenate([self._counts, np.zeros((2, more), np.int64)], axis=1)
        number, numbered = batch.ints("pseq", -1), batch.present("pseq")
        odd = acquired & (batch.present("attempt") | (numbered & (number < 0)))
        odd |= acquired & batch.among("gen", UNKNOWN_GEN)
        for name in ("prio", "part", "key"):
            odd |= read & batch.present(name)
        self._irregular[queue[odd & ~nameless]] = True
        fresh = acquired & ~batch.flags("redelivered", False)
        known = fresh & batch.present("redelivered") & numbered & ~batch.flags("dead", False)
        known &= batch.some("pub")
        self._counts[1] += np.bincount(queue[fresh & ~known], minlength=len(self._irregular))
        at = np.flatnonzero(known)
        if len(at):
            self._advance(batch, at, queue[at], number[at])

    def _advance(self, batch: EventBatch, rows: Ints, queue: Ints, number: Ints) -> None:
        """Add first deliveries whose line is known: some rows, with their queues and numbers."""
        by = batch.holders_at(rows).numbers(self._holders)
        pub, ev = batch.coded("pub").at(rows), batch.coded("ev").at(rows)
        # Above a client library deliveries and polls are apart: see `order.way`.
        above = batch.coded("lvl").at(rows).among("", "api")
        ways = [*ev.values, ""]
        way = np.where(above, ev.codes, len(ev.values))
        code = ((queue * (int(by.max()) + 1) + by) * len(pub.values) + pub.codes) * len(ways) + way
        # Sorted by line, each in the order of the run.
        order = stable_order(code)
        code, queue, number = code[order], queue[order], number[order]
        first = np.append(True, code[1:] != code[:-1])
        at = order[first]
        of = zip(
            queue[first].tolist(),
            (pub.values[k] for k in pub.codes[at]),
            by[at].tolist(),
            (ways[k] for k in way[at]),
            strict=True,
        )
        known = len(self._last)
        numbers = np.array([self._lines[key] for key in of], np.int64)
        new = numbers >= known
        self._last = np.append(self._last, np.full(np.count_nonzero(new), -1, np.int64))
        self._counts[0] += np.bincount(queue, minlength=len(self._irregular))
        self._counts[0] -= np.bincount(queue[first][new], minlength=len(self._irregular))
        line = numbers[np.cumsum(first) - 1]
        before = np.where(first, self._last[line], np.append(-1, number[:-1]))
        self._irregular[queue[number < before]] = True
        last = np.append(first[1:], True)
        self._last[line[last]] = number[last]

    def state(self) -> LinesState:
        """What is kept of the run so far."""
        return LinesState(
            list(self._queues),
            list(self._holders),
            list(self._lines),
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
        irregular = {q for q, k in self._queues.items() if self._irregular[k]}
        return ClearedQueues(irregular, {FirstDeliveryOrder.id: Counts(tested, untestable)})
