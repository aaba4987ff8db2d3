"""Statistics of a run, written as map, combine, finish over columns; memory grows with what is open, not with length.

| metric | from | to |
|---|---|---|
| publish_to_deliver | the publish (its invoke, if there is one) | the message's next delivery, in any queue |
| notify_to_deliver | the first notification of a consumer since its last delivery (white box) | its next delivery |
| requeue_to_deliver | the command that requeued the message | its next delivery |

A delivery ends the wait of its message that began last, be it by a publish or a requeue. So a pair is a pair whatever
comes before it, and a run can be measured in parts, cut anywhere. What is delivered and was not waiting, as far as the
recording says (its publish is recorded later, or not at all), is not measured; nor is what was published and comes
marked redelivered, of which an earlier delivery was not seen.

Times are nanoseconds and are counted in buckets whose bounds grow by 2^(1/8), so a quantile is the upper bound of its
bucket: at most 9.1 % too high. Negative durations (a recorder stamps a callback late) count as 0.
Every row belongs to a window of `WINDOW` of the run's own clock: that of the delivery.
Events without a time are not measured.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seriatim_models.history import table
from seriatim_models.properties.columnar.columns import Names, stable_order
from seriatim_models.properties.columnar.event_batch import Coded, EventBatch, combined

WINDOW = (
    10 * 10**9
)  # ns: short enough to see a stall, long enough that a day of a hundred consumers stays small
_STEPS = 8  # buckets to each doubling
FIELDS = (
    "ev", "t", "ph", "op", "conn", "ch", "gen", "q", "m", "ctag", "redelivered", "requeue", "ms", "autoack", "prefetch",
    "args",
)  # fmt: skip
"""The columns that are measured."""

Cell = tuple[str, int, str]
"""Metric, window, queue."""
Ints = npt.NDArray[np.int64]


Begin = tuple[int, bool]
"""When a wait for delivery began, and whether by a requeue; otherwise by a publish."""
End = tuple[int, str, bool]
"""A delivery: when, from which queue, and whether it is marked redelivered."""
WakeUp = tuple[int | None, int, str]
"""A consumer's first delivery: when it had been notified before, if it was; when, and from which queue."""


class MeasuresState(msgspec.Struct, array_like=True):
    """What goes from process to process."""

    histograms: list[tuple[str, int, str, dict[int, int]]]
    deliveries: list[tuple[int, str, str, int]]
    waiting: dict[str, list[Begin]]
    ends: dict[str, list[End]]
    notified: dict[str, int]
    wakeups: dict[str, WakeUp]
    use: dict[str, list[int]]
    first: bool


def bucket(ns: Ints) -> Ints:
    """Where durations are counted: 0 for 0, else one more than the number of steps above 1 ns."""
    found = np.zeros(len(ns), np.int64)
    some = ns > 0
    found[some] = np.ceil(np.log2(ns[some].astype(np.float64)) * _STEPS - 1e-9).astype(np.int64) + 1
    return found


def bound(number: int) -> float:
    """The longest duration of a bucket, in ns."""
    return 0.0 if number == 0 else float(2 ** ((number - 1) / _STEPS))


class Measures:
    """The metrics of a chunk range of one run."""

    def __init__(self, first: bool = False) -> None:
        """`first` says that the run begins here, so that what is not known yet will not become known."""
        self.first = first
        self.histograms: dict[Cell, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        self.deliveries: dict[tuple[int, str, str], int] = defaultdict(int)
        """By window, queue and consumer."""
        self._waiting: dict[str, list[Begin]] = {}
        """By message: its waits that no delivery has ended yet, the latest last."""
        self._ends: dict[str, list[End]] = {}
        """By message, in order: deliveries that end what began further left. None where the run begins."""
        self._notified: dict[str, int] = {}
        """By consumer: when it was notified, the first time since it was given something in this range."""
        self._wakeups: dict[str, WakeUp] = {}
        """By consumer its first delivery in this range, which may end what began further left. None where the run
        begins.
        """
        self._use: dict[str, list[int]] = {}
        # by channel: [limit, deliveries, outstanding at the end, its sum and its maximum over the deliveries],
        # each counted from an empty start

    def packed(self) -> bytes:
        """For another process; `unpacked` is its inverse."""
        return msgspec.msgpack.encode(self.state())

    def state(self) -> MeasuresState:
        """As data; `of_state` is its inverse."""
        return MeasuresState(
            [(*cell, dict(h)) for cell, h in self.histograms.items()],
            [(*k, n) for k, n in self.deliveries.items()],
            self._waiting,
            self._ends,
            self._notified,
            self._wakeups,
            self._use,
            self.first,
        )

    @staticmethod
    def unpacked(raw: bytes) -> Measures:
        """The metrics that `packed` serialized."""
        return Measures.of_state(msgspec.msgpack.decode(raw, type=MeasuresState))

    @staticmethod
    def of_state(state: MeasuresState) -> Measures:
        """The metrics that `state` gave."""
        out = Measures(state.first)
        for metric, window, q, counts in state.histograms:
            out.histograms[metric, window, q] = defaultdict(int, counts)
        for window, q, by, n in state.deliveries:
            out.deliveries[window, q, by] = n
        out._waiting, out._ends = state.waiting, state.ends
        out._notified, out._wakeups = state.notified, state.wakeups
        out._use = state.use
        return out

    # --- map -----------------------------------------------------------------------------------------------------

    def add(self, batch: EventBatch) -> None:
        """The next events, in the run's order."""
        if not {"ev", "t"} <= {*batch.arrow.schema.names}:
            return
        rows, right = _Rows(batch), Measures()
        right._waits(rows)
        # Who was never notified is given nothing that ends anything, which is so in most runs.
        if rows.notifies or self._notified or not self.first:
            right._notifications(rows)
        right._shares(rows)
        right._outstanding(rows)
        self.combine(right)

    def _count(self, metric: str, waited: Ints, windows: Ints, q: Coded) -> None:
        """Many durations at once, each with the number of its window, and its queue."""
        of = bucket(np.maximum(waited, 0))
        for n, w, name, b in _counts(windows, q, Coded(of, [*range(of.max(initial=0) + 1)])):
            self.histograms[metric, w, name][b] += n

    def _count_one_by_one(self, metric: str, pairs: Sequence[tuple[int, int, str]]) -> None:
        """Pairs of begin and end, each with the queue of its end."""
        if pairs:
            begun, ended, queues = zip(*pairs, strict=True)
            waited = np.array(ended, np.int64) - np.array(begun, np.int64)
            of = bucket(np.maximum(waited, 0)).tolist()
            for at, q, b in zip(ended, queues, of, strict=True):
                self.histograms[metric, at // WINDOW * WINDOW, q][b] += 1

    def _waits(self, rows: _Rows) -> None:
        """How long messages wait for their deliveries, from a publish or a requeue on."""
        kind, m, at, names = rows.waits()
        begins = kind != _TAKEN
        fresh = np.append(True, m[1:] != m[:-1])[: len(m)]
        step = np.where(begins, 1, -1)
        # How many waits of its message are open after each row, counted from its first row on.
        open_ = np.cumsum(step)
        open_ -= (open_ - step)[fresh][np.cumsum(fresh) - 1]
        # A begin and the end that belongs to it are rows of one level that follow each other there.
        level = open_ + ~begins
        order = np.lexsort((level, m)) if (level != 1).any() else np.arange(len(m))
        left, right = order[:-1], order[1:]
        pair = (m[left] == m[right]) & (level[left] == level[right]) & begins[left] & ~begins[right]
        left, right = left[pair], right[pair]
        begun, ended, requeued = at[left], at[right], kind[left] == _BACK
        for metric, which in (
            ("publish_to_deliver", ~requeued & ~rows.redelivered[ended]),
            ("requeue_to_deliver", requeued),
        ):
            until = ended[which]
            waited = rows.t[until] - rows.t[begun[which]]
            self._count(metric, waited, rows.window(until), rows.q.at(until))
        alone = np.ones(len(m), np.bool_)
        alone[left] = alone[right] = False
        chosen = np.flatnonzero(alone)
        of = names.take(pa.array(m[chosen])).to_pylist()
        for name, row, what in zip(of, at[chosen].tolist(), kind[chosen].tolist(), strict=True):
            if what == _TAKEN:
                self._ends.setdefault(name, []).append(rows.end(row))
            else:
                self._waiting.setdefault(name, []).append((int(rows.t[row]), what == _BACK))

    def _notifications(self, rows: _Rows) -> None:
        pairs = []
        for kind, who, q, t in rows.consumers():
            if kind == "notify":
                self._notified.setdefault(who, t)
                continue
            begun = self._notified.pop(who, None)
            if who not in self._wakeups:
                self._wakeups[who] = begun, t, q
            elif begun is not None:
                pairs.append((begun, t, q))
        self._count_one_by_one("notify_to_deliver", pairs)

    def _shares(self, rows: _Rows) -> None:
        got = np.flatnonzero(rows.acquires & rows.timed)
        by = rows.holders(got, consumer=True)
        for n, w, q, c in _counts(rows.window(got), rows.q.at(got), by):
            self.deliveries[w, q, c] += n

    def _outstanding(self, rows: _Rows) -> None:
        """How much of the prefetch is in use at each delivery, by channel."""
        got = rows.acquires & rows.limited
        at = np.flatnonzero(got | rows.settles)
        if not len(at):
            return
        by = rows.holders(at, consumer=False)
        order = stable_order(by.codes)
        at, code = at[order], by.codes[order]
        deliver, change = got[at], np.where(got[at], 1, -rows.settled[at])
        begins = np.flatnonzero(np.append(True, code[1:] != code[:-1]))
        ends = np.append(begins[1:], len(at)) - 1
        total = np.cumsum(change)
        open_ = total - np.repeat((total - change)[begins], ends - begins + 1)
        most = np.where(deliver, open_, -(2**31))
        counted = (
            np.maximum.reduceat(np.where(deliver, rows.limit[at], 0), begins),
            np.add.reduceat(deliver.astype(np.int64), begins),
            open_[ends],
            np.add.reduceat(np.where(deliver, open_, 0), begins),
            np.maximum.reduceat(most, begins),
        )
        names = Coded(code[begins], by.values).texts()
        self._use |= zip(names, np.array(counted).T.tolist(), strict=True)

    # --- combine -------------------------------------------------------------------------------------------------

    def combine(self, right: Measures) -> None:
        """Add the chunk range that follows this one."""
        for cell, counts in right.histograms.items():
            mine = self.histograms[cell]
            for b, n in counts.items():
                mine[b] += n
        for key, n in right.deliveries.items():
            self.deliveries[key] += n
        self._end_waits(right)
        self._end_notifications(right)
        for by, (limit, n, net, total, most) in right._use.items():
            was = self._use.get(by, [0, 0, 0, 0, -(2**31)])
            self._use[by] = [
                max(was[0], limit),
                was[1] + n,
                was[2] + net,
                was[3] + total + n * was[2],
                max(was[4], most + was[2]) if n else was[4],
            ]

    def _end_waits(self, right: Measures) -> None:
        """Match the ends in the chunk range that follows with the begins that this one left open."""
        pairs: dict[bool, list[tuple[int, int, str]]] = {False: [], True: []}
        for name, ends in right._ends.items():
            waiting = self._waiting.get(name, [])
            for t, q, redelivered in ends:
                if waiting:
                    begun, requeued = waiting.pop()
                    if requeued or not redelivered:
                        pairs[requeued].append((begun, t, q))
                elif not self.first:
                    self._ends.setdefault(name, []).append((t, q, redelivered))
            if not waiting:
                self._waiting.pop(name, None)
        for name, begins in right._waiting.items():
            self._waiting.setdefault(name, []).extend(begins)
        self._count_one_by_one("publish_to_deliver", pairs[False])
        self._count_one_by_one("requeue_to_deliver", pairs[True])

    def _end_notifications(self, right: Measures) -> None:
        """The same of notifications, of which the first counts."""
        pairs = []
        for who, (notified, t, q) in right._wakeups.items():
            begun = self._notified.pop(who, notified)
            if not self.first and who not in self._wakeups:
                self._wakeups[who] = begun, t, q
            elif begun is not None:
                pairs.append((begun, t, q))
        for who, t in right._notified.items():
            self._notified.setdefault(who, t)
        self._count_one_by_one("notify_to_deliver", pairs)

    # --- finish --------------------------------------------------------------------------------------------------

    def latency(self, run: str) -> Iterator[dict[str, object]]:
        """Rows of the table ``latency``."""
        for (metric, window, q), counts in sorted(self.histograms.items()):
            total = sum(counts.values())
            row: dict[str, object] = {
                "run": run,
                "metric": metric,
                "window": window,
                "q": q,
                "n": total,
            }
            for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)):
                row[name] = int(_quantile(counts, share * total))
            yield row

    def fairness(self, run: str) -> Iterator[dict[str, object]]:
        """Rows of the table ``fairness``: by window, queue and consumer, with the queue's index of fairness."""
        groups: dict[tuple[int, str], dict[str, int]] = defaultdict(dict)
        for (window, q, by), n in self.deliveries.items():
            groups[window, q][by] = n
        for (window, q), of in sorted(groups.items()):
            total = sum(of.values())
            jain = total**2 / (len(of) * sum(n * n for n in of.values()))
            for by, n in sorted(of.items()):
                yield {
                    "run": run, "window": window, "q": q, "consumer": by,
                    "n": n, "share": n / total, "jain": jain,
                }  # fmt: skip

    def prefetch(self, run: str) -> Iterator[dict[str, object]]:
        """Rows of the table ``prefetch``."""
        for by, (limit, n, _, total, most) in sorted(self._use.items()):
            if n and limit:
                yield {
                    "run": run, "channel": by, "prefetch": limit, "n": n,
                    "mean": total / n, "max": most, "use": total / n / limit,
                }  # fmt: skip


def _quantile(counts: Mapping[int, int], rank: float) -> float:
    seen = 0
    for number in sorted(counts):
        seen += counts[number]
        if seen >= rank - 1e-9:
            return bound(number)
    return 0.0


_SENT, _BACK, _TAKEN = 1, 2, 3
"""What rows say of messages: published, requeued, delivered."""


def _counts(windows: Ints, q: Coded, of: Coded) -> Iterator[tuple[int, int, Any, Any]]:
    """How often each window, of which the numbers are given, queue and third value stand together."""
    if not len(windows):
        return
    code, rows = combined([windows - windows.min(), q.codes, of.codes])
    together = ((windows[rows] * WINDOW).tolist(), q.at(rows).texts(), of.at(rows).texts())
    yield from zip(np.bincount(code).tolist(), *together, strict=True)


class _Rows:
    """What is measured of a batch."""

    def __init__(self, batch: EventBatch) -> None:
        self._batch = batch
        ev, ph = batch.words("ev"), batch.words("ph")
        self.timed, self.t = batch.present("t"), batch.ints("t", 0)
        self.q = batch.coded("q")
        self.notifies = bool(ev("notify").any())
        self.began = ph("", "invoke") | (ph("ok") & ~batch.present("op"))
        self.acquires = ev("deliver", "get") & batch.some("m") & ~ph("invoke", "fail")
        self.redelivered = batch.flags("redelivered", False)
        self.settles, self.settled = self.began & ev("ack", "nack", "reject"), batch.lengths("ms")
        """Which rows settle, and how many messages."""
        self.limit = batch.ints("prefetch", 0)
        self.limited = (self.limit > 0) & ~batch.flags("autoack", False)

    def window(self, rows: Ints) -> Ints:
        """The numbers of the windows: differences of times may be too large for 64 bits, theirs are not."""
        return self.t[rows] // WINDOW

    def end(self, row: int) -> End:
        return int(self.t[row]), self.q.values[self.q.codes[row]], bool(self.redelivered[row])

    def waits(self) -> tuple[npt.NDArray[np.int8], Ints, Ints, pa.Array]:
        """What begins and ends waits of messages, by message and then in the order of the rows: what it is, the code of
        the message, and the row; and the name of each code.
        """
        batch, ev = self._batch, self._batch.words("ev")
        begins = self.timed & self.began
        sent = np.flatnonzero(begins & ev("publish") & batch.some("m"))
        back = ev("nack", "reject") & batch.flags("requeue", True)
        back |= ev("expire") & batch.flags("requeue", False)
        lists = np.flatnonzero(begins & back & (self.settled > 0))
        lone = np.flatnonzero(begins & back & (self.settled == 0) & batch.some("m"))
        taken = np.flatnonzero(self.acquires & self.timed)
        kind = np.zeros(len(batch), np.int8)
        kind[sent], kind[lists], kind[lone], kind[taken] = _SENT, _BACK, _BACK, _TAKEN
        own = pc.fill_null(batch.column("m").cast(pa.string()), "")
        listed = batch.column("ms").take(pa.array(lists)).flatten().cast(pa.string())
        encoded = pa.concat_arrays([own, listed]).dictionary_encode()
        m = np.asarray(encoded.indices).astype(np.int64)
        at = np.concatenate([sent, lone, taken])
        message = np.append(m[at], m[len(batch) :])
        # One number of both is sorted ten times as fast as one after the other.
        both = message * len(batch) + np.append(at, np.repeat(lists, self.settled[lists]))
        both.sort()
        at = both % len(batch)
        return kind[at], both // len(batch), at, encoded.dictionary

    def holders(self, rows: Ints, consumer: bool) -> Coded:
        """Who acts in these rows: channel incarnation and, if asked for, consumer."""
        fields = ("conn", "ch", "gen", "ctag") if consumer else ("conn", "ch", "gen")
        of = [self._batch.coded(name).at(rows) for name in fields]
        code, some = combined([each.codes for each in of])
        texts = zip(*(["" if v is None else v for v in each.at(some).texts()] for each in of), strict=True)  # fmt: skip
        form = "{}/{}#{} {}" if consumer else "{}/{}#{}"
        names: Names[str] = Names()
        numbers = [names[form.format(*by)] for by in texts]
        return Coded(np.array(numbers, np.int64)[code], list(names))

    def consumers(self) -> Iterator[tuple[str, str, str, int]]:
        """Notifications and deliveries: what, to whom, from which queue, when."""
        batch = self._batch
        wanted = np.flatnonzero(batch.among("ev", "notify", "deliver") & self.timed)
        if not self.notifies:
            wanted = self._first_of_consumers(wanted)
        tags, kinds = batch.coded("ctag").at(wanted).texts(), batch.coded("ev").at(wanted).texts()
        args = table.values(batch.column("args").take(pa.array(wanted)))
        queues = self.q.at(wanted).texts()
        for kind, raw, tag, q, t in zip(kinds, args, tags, queues, self.t[wanted].tolist(), strict=True):  # fmt: skip
            who = tag or (json.loads(raw).get("sub") if raw else None)
            if who:
                yield kind, str(who), q, t

    def _first_of_consumers(self, rows: Ints) -> Ints:
        """Of some deliveries the first of each consumer; those that do not name it in a field of its own stay."""
        named = self._batch.some("ctag")[rows]
        (codes, values), backwards = self._batch.coded("ctag"), rows[named][::-1]
        first = np.full(len(values), -1, np.int64)
        first[codes[backwards]] = backwards
        found: Ints = np.sort(np.concatenate([first[first >= 0], rows[~named]]))
        return found
