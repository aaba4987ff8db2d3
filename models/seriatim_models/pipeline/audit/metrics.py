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

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

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

    def add(self, batch: pa.RecordBatch) -> None:
        """The next events, in the run's order, as columns of `history.table`."""
        names = set(batch.schema.names)
        if not {"ev", "t"} <= names:
            return
        rows, right = _Rows(batch, names), Measures()
        right._waits(rows)
        # Who was never notified is given nothing that ends anything, which is so in most runs.
        if rows.has("notify") or self._notified or not self.first:
            right._notifications(rows)
        right._shares(rows)
        right._outstanding(rows)
        self.combine(right)

    def _count(self, metric: str, waited: Ints, windows: Ints, queues: npt.NDArray[Any]) -> None:
        """Many durations at once; `queues` are names."""
        if not len(waited):
            return
        table = pa.table(
            {
                "w": pa.array(windows),
                "q": pa.array(queues, pa.string()),
                "b": pa.array(bucket(np.maximum(waited, 0))),
            }
        )
        grouped = table.group_by(["w", "q", "b"], use_threads=False).aggregate([([], "count_all")])
        for w, q, b, n in zip(
            *(grouped[c].to_pylist() for c in ("w", "q", "b", "count_all")), strict=True
        ):
            self.histograms[metric, w, q][b] += n

    def _count_one_by_one(self, metric: str, pairs: Sequence[tuple[int, int, str]]) -> None:
        """Pairs of begin and end, each with the queue of its end."""
        if pairs:
            begun, ended, queues = zip(*pairs, strict=True)
            at = np.array(ended, np.int64)
            waited = at - np.array(begun, np.int64)
            self._count(metric, waited, at // WINDOW * WINDOW, np.array(queues, object))

    def _waits(self, rows: _Rows) -> None:
        """How long messages wait for their deliveries, from a publish or a requeue on."""
        kind, m, at = rows.waits()
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
            self._count(metric, waited, rows.window(until), rows.queues(until))
        alone = np.ones(len(m), np.bool_)
        alone[left] = alone[right] = False
        for k in np.flatnonzero(alone).tolist():
            row, name = int(at[k]), rows.names[m[k]]
            if begins[k]:
                self._waiting.setdefault(name, []).append(
                    (int(rows.t[row]), bool(kind[k] == _BACK))
                )
            else:
                self._ends.setdefault(name, []).append(rows.end(row))

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
        got = rows.of(rows.acquires & rows.timed)
        if not len(got):
            return
        table = pa.table(
            {
                "w": pa.array(rows.window(got)),
                "q": pa.array(rows.queues(got), pa.string()),
                "c": rows.holders(got, consumer=True),
            }
        )
        grouped = table.group_by(["w", "q", "c"], use_threads=False).aggregate([([], "count_all")])
        for w, q, c, n in zip(
            *(grouped[x].to_pylist() for x in ("w", "q", "c", "count_all")), strict=True
        ):
            self.deliveries[w, q, c] += n

    def _outstanding(self, rows: _Rows) -> None:
        """How much of the prefetch is in use at each delivery, by channel."""
        got = rows.of(rows.acquires & rows.limited)
        done = rows.of(rows.began & rows.is_("ack", "nack", "reject"))
        at = np.concatenate([got, done])
        if not len(at):
            return
        settled = rows.many(done)
        change = np.concatenate([np.ones(len(got), np.int64), -settled])
        by = rows.holders(at, consumer=False).dictionary_encode()
        code = np.asarray(by.indices)
        order = np.lexsort((at, code))
        at, code, change = at[order], code[order], change[order]
        bounds = np.flatnonzero(np.append(True, code[1:] != code[:-1]))
        for begin, end in zip(bounds, [*bounds[1:], len(at)], strict=True):
            open_ = np.cumsum(change[begin:end])
            deliver = change[begin:end] > 0
            seen = open_[deliver]
            limit = int(rows.limit[at[begin:end][deliver]].max()) if len(seen) else 0
            self._use[by.dictionary[int(code[begin])].as_py()] = [
                limit,
                len(seen),
                int(open_[-1]),
                int(seen.sum()),
                int(seen.max()) if len(seen) else -(2**31),
            ]

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


class _Rows:
    """The columns of a batch that are measured, as NumPy arrays."""

    def __init__(self, batch: pa.RecordBatch, names: set[str]) -> None:
        self._batch, self._names = batch, names
        n = len(batch)
        self._n = n
        ev = batch["ev"].dictionary_encode()
        self._kinds = {k: c for c, k in enumerate(ev.dictionary.to_pylist())}
        self._ev = np.asarray(ev.indices)
        t = batch["t"]
        self.timed = np.asarray(pc.is_valid(t))
        self.t: Ints = np.asarray(pc.fill_null(t, 0))
        m = self._text("m")
        self.names = m.dictionary.to_pylist()
        self.m: Ints = np.asarray(m.indices).astype(np.int64)
        ph = self._text("ph")
        phases = ph.dictionary.to_pylist()
        phase = np.array(
            [phases.index(p) if p in phases else -1 for p in ("", "invoke", "ok", "fail")]
        )
        code = np.asarray(ph.indices)
        self.began = (code == phase[0]) | (code == phase[1])
        if "op" in names:
            self.began |= (code == phase[2]) & np.asarray(pc.is_null(batch["op"]))
        else:
            self.began |= code == phase[2]
        done = (code != phase[1]) & (code != phase[3])
        self.named = self.m != (self.names.index("") if "" in self.names else -1)
        self.acquires = self.is_("deliver", "get") & self.named & done
        self.redelivered = self.flag("redelivered", True)
        self.limit: Ints = np.asarray(
            pc.fill_null(batch["prefetch"], 0) if "prefetch" in names else np.zeros(n, np.int64)
        )
        self.limited = (self.limit > 0) & ~self.flag("autoack", True)
        q = self._text("q")
        self._q_names = np.array(q.dictionary.to_pylist(), object)
        self._q = np.asarray(q.indices)

    def _text(self, name: str) -> pa.DictionaryArray:
        if name not in self._names:
            return pa.DictionaryArray.from_arrays(
                pa.array(np.zeros(self._n, np.int32)), pa.array([""])
            )
        return pc.fill_null(self._batch[name], "").dictionary_encode()

    def has(self, kind: str) -> bool:
        return kind in self._kinds

    def is_(self, *kinds: str) -> npt.NDArray[np.bool_]:
        out = np.zeros(self._n, bool)
        for kind in kinds:
            if kind in self._kinds:
                out |= self._ev == self._kinds[kind]
        return out

    def flag(self, name: str, value: bool) -> npt.NDArray[np.bool_]:
        if name not in self._names:
            return np.zeros(self._n, bool)
        return np.asarray(pc.fill_null(pc.equal(self._batch[name], value), False))

    @staticmethod
    def of(mask: npt.NDArray[np.bool_]) -> Ints:
        return np.flatnonzero(mask)

    def window(self, rows: Ints) -> Ints:
        return self.t[rows] // WINDOW * WINDOW

    def queues(self, rows: Ints) -> npt.NDArray[Any]:
        names: npt.NDArray[Any] = self._q_names[self._q[rows]]
        return names

    def end(self, row: int) -> End:
        return int(self.t[row]), self._q_names[self._q[row]], bool(self.redelivered[row])

    def waits(self) -> tuple[npt.NDArray[np.int8], Ints, Ints]:
        """What begins and ends waits of messages, by message and then in the order of the rows: what it is, the code of
        the message in `names`, and the row.
        """
        sent = self.of(self.began & self.is_("publish") & self.named & self.timed)
        back = self.of(
            self.timed
            & self.began
            & (
                (self.is_("nack", "reject") & ~self.flag("requeue", False))
                | (self.is_("expire") & self.flag("requeue", True))
            )
        )
        taken = self.of(self.acquires & self.timed)
        messages, places = self.settled(back)
        kind = np.zeros(self._n, np.int8)
        kind[sent], kind[back], kind[taken] = _SENT, _BACK, _TAKEN
        m = np.concatenate([self.m[sent], messages, self.m[taken]])
        # One number of both is sorted ten times as fast as one after the other.
        both = m * self._n + np.concatenate([sent, places, taken])
        both.sort()
        at = both % self._n
        return kind[at], both // self._n, at

    def many(self, rows: Ints) -> Ints:
        """How many messages each of these commands settles."""
        if "ms" not in self._names:
            return np.zeros(len(rows), np.int64)
        return np.asarray(
            pc.fill_null(pc.list_value_length(self._batch["ms"].take(pa.array(rows))), 0)
        ).astype(np.int64)

    def settled(self, rows: Ints) -> tuple[Ints, Ints]:
        """The messages that these commands name, as codes of `names` (which may grow), and the row of each."""
        if not len(rows):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        taken = pa.array(rows)
        own = self.m[rows]
        place = {name: c for c, name in enumerate(self.names)}
        codes: list[int] = []
        at: list[int] = []
        lists = (
            self._batch["ms"].take(taken).to_pylist() if "ms" in self._names else [None] * len(rows)
        )
        for row, m, ms in zip(rows.tolist(), own.tolist(), lists, strict=True):
            for name in ms or ([self.names[m]] if self.names[m] else []):
                if name not in place:
                    place[name] = len(self.names)
                    self.names.append(name)
                codes.append(place[name])
                at.append(row)
        return np.array(codes, np.int64), np.array(at, np.int64)

    def holders(self, rows: Ints, consumer: bool) -> pa.Array:
        """Who acts in these rows: channel incarnation and, if asked for, consumer."""
        taken = pa.array(rows)

        def text(name: str) -> pa.Array:
            if name not in self._names:
                return pa.array([""] * len(rows), pa.string())
            return pc.fill_null(pc.cast(self._batch[name].take(taken), pa.string()), "")

        by = pc.binary_join_element_wise(text("conn"), text("ch"), "/")
        by = pc.binary_join_element_wise(by, text("gen"), "#")
        return pc.binary_join_element_wise(by, text("ctag"), " ") if consumer else by

    def consumers(self) -> Iterator[tuple[str, str, str, int]]:
        """Notifications and deliveries: what, to whom, from which queue, when."""
        import json

        wanted = self.of(self.is_("notify", "deliver") & self.timed)
        if not self.has("notify"):
            wanted = self._first_of_consumers(wanted)
        taken = self._batch.take(pa.array(wanted))
        args = taken["args"].to_pylist() if "args" in self._names else [None] * len(wanted)
        tags = taken["ctag"].to_pylist() if "ctag" in self._names else [None] * len(wanted)
        kinds = taken["ev"].to_pylist()
        for row, kind, raw, tag in zip(wanted.tolist(), kinds, args, tags, strict=True):
            who = tag or (json.loads(raw).get("sub") if raw else None)
            if who:
                yield kind, str(who), self._q_names[self._q[row]], int(self.t[row])

    def _first_of_consumers(self, rows: Ints) -> Ints:
        """Of some deliveries the first of each consumer; those that do not name it in a field of its own stay."""
        tag = self._text("ctag")
        codes = np.asarray(tag.indices)[rows]
        there = [bool(name) for name in tag.dictionary.to_pylist()]
        named = np.array(there, np.bool_)[codes]
        _, first = np.unique(codes[named], return_index=True)
        found: Ints = np.sort(np.concatenate([rows[named][first], rows[~named]]))
        return found
