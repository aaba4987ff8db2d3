"""P5, P6, P14 and P20 over columns: regular queues are cleared without an object for an event.

A queue is *regular* if its recorder sits inside the broker and its history is plain: each message is published once, of
one publisher in the order of its numbers, and then given out, released or settled, one at a time, always the oldest
that is there; no deliveries that settle themselves, priorities, partitions, purges, polls, ends of sessions, failures
or gaps; and its times rise. There none of the four can be violated but P14, whose waits are measured here. The rest is
counting what the row forms count as cases.

All other queues are irregular, and so is every queue that shares a connection with one: those are judged by the rows.

Of a batch most regular queues are of so plain a shape that whole arrays say what comes of them (`queue_arrays`); the
others go through one loop over codes, which gives the same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seriatim_models.history import table
from seriatim_models.history.event import GAP, SETTLES, Event, began
from seriatim_models.properties.base import AnyProperty
from seriatim_models.properties.blackbox.at_rest import handed_early
from seriatim_models.properties.blackbox.lifecycle import ACQUIRES
from seriatim_models.properties.blackbox.linear import QueueLinearizable
from seriatim_models.properties.blackbox.naming import ENDS, Holder
from seriatim_models.properties.blackbox.requeue import RequeueLateness
from seriatim_models.properties.blackbox.strict import StrictOrder
from seriatim_models.properties.blackbox.wakeups import WITHIN, NoLostWakeup
from seriatim_models.properties.columnar.batch_columns import (
    coded,
    column_of,
    in_order,
    only_named,
    present,
    some,
)
from seriatim_models.properties.columnar.batches import HOLDER, flags, holder_numbers
from seriatim_models.properties.columnar.columns import Bools, Ints, Names, distinct
from seriatim_models.properties.columnar.queue_arrays import UNLIMITED, QueueRows, advance
from seriatim_models.properties.columnar.queue_state import (
    ANSWERED,
    BACK,
    CANCELS,
    CONSUMES,
    GENERAL,
    IRREGULAR,
    NONE,
    NOTHING,
    SENT,
    SETTLED,
    TAKEN,
    OpenMessage,
    OpenQueue,
)

READ = StrictOrder.reads | RequeueLateness.reads | NoLostWakeup.reads | QueueLinearizable.reads
COLUMNS = (
    "n", "i", "bucket", "ev", "lvl", "ph", "op", "t", "t_lo", "t_hi", "q", "m", "ms", *HOLDER, "pub", "pseq", "prio",
    "pos", "part", "key", "dead", "nolocal", "autoack", "exclusive", "multiple", "requeue", "redelivered", "prefetch",
    "scope", "dtag", "args",
)  # fmt: skip
"""The columns that are looked at."""

_CONCERNS_QUEUES = ACQUIRES | SETTLES | {
    "publish", "consume", "cancel", "declare", "return", "recover", "expire", "purge", "delete",
}  # fmt: skip
"""Where one of these names no queue, nothing is cleared."""


class Counts(NamedTuple):
    """The cases of a property, tested and untestable."""

    tested: int
    untestable: int


class ClearedQueues(NamedTuple):
    """What is cleared: all queues but the irregular ones, and their cases by property."""

    irregular: set[str]
    cases: dict[str, Counts]
    spoilt: Collection[str] = ()
    """Irregular queues that may be so only because of others that have the same check."""


class QueueCheck(Protocol):
    """Clears regular queues for some properties, given a run's batches in order."""

    columns: Collection[str]
    """Those that are looked at; what a batch lacks is empty throughout."""
    # Any: each check knows the type of its own
    state_type: Any
    """The type of its state."""
    spreads: bool
    """Whether a queue may be irregular because another one is."""
    lost: bool
    """Nothing is cleared."""

    def take(self, batch: pa.RecordBatch) -> None:
        """Add the next events."""

    def state(self) -> Any:
        """What is kept of the run so far."""

    def restore(self, state: Any) -> None:
        """Go on where another one was that had this state."""

    def finish(self, ended: int | None) -> ClearedQueues | None:
        """What is cleared, if the run is over, at the latest at `ended`; None if nothing is. More may come after it."""


class QueuesState(msgspec.Struct):
    """What a `RegularQueues` keeps of a run."""

    queues: dict[str, OpenQueue]
    holders: list[Holder]
    tags: list[str]
    pubs: list[str]
    qos: dict[int, int | None]
    given: set[int]
    end: int
    lost: bool


class RegularQueues:
    """Clears regular queues for P5, P6, P14 and P20."""

    columns = COLUMNS
    state_type = QueuesState
    spreads = True

    def __init__(self, properties: Sequence[AnyProperty]) -> None:
        bounds = [p.within for p in properties if isinstance(p, NoLostWakeup)]
        self._within = min(bounds, default=WITHIN)
        self._queues: dict[str, OpenQueue] = {}
        self._holders: Names[Holder] = Names()
        self._tags: Names[str] = Names()
        self._pubs: Names[str] = Names()
        self._qos: dict[int, int | None] = {}
        self._given: set[int] = set()
        """Holders that were given something."""
        self._joined: set[str] = set()
        """Queues with a consumer who was given something before, perhaps of another queue."""
        self._end = -(2**63)
        """The latest time."""
        self.lost = False
        """Nothing is cleared."""

    def take(self, batch: pa.RecordBatch) -> None:
        """Add the next events."""
        if self.lost:
            return
        batch = only_named(batch, {*READ, GAP})
        if not len(batch):
            return
        batch = in_order(batch)
        kind, clock = _kinds(batch), column_of(batch, "t")
        if kind is None or clock.null_count:
            self.lost = True
            return
        t: Ints = np.asarray(clock)
        if t[0] < self._end or (t[1:] < t[:-1]).any():
            self.lost = True
            return
        self._end = int(t[-1])
        self._advance(batch, kind, t)

    def _advance(self, batch: pa.RecordBatch, kind: Ints, t: Ints) -> None:
        """Give each queue its rows: by whole arrays where it is plain, and else one after the other."""
        q_codes, q_names = coded(batch, "q")
        # A batch may have codes of queues of which it has no row.
        there = np.bincount(q_codes, minlength=len(q_names)).tolist()
        queues = [self._queue(q) if q and n else None for q, n in zip(q_names, there, strict=True)]
        of_holders = batch.select([c for c in HOLDER if c in batch.schema.names])
        by = holder_numbers(of_holders, self._holders)
        tags, pubs = coded(batch, "ctag"), coded(batch, "pub")
        tag = np.array([self._tags(v) for v in tags.values], np.int64)[tags.codes]
        pseq = _ints(batch, "pseq")
        stream = np.array([self._pubs(v) if v else NONE for v in pubs.values], np.int64)
        stream = np.where(pseq == NONE, NONE, stream[pubs.codes])
        _note_connections(batch, kind, q_codes, queues)
        kind, credit, late = self._begun(batch, kind, by)
        self._joined |= {q_names[code] for code in q_codes[late].tolist()}
        mark = coded(batch, "ph").among("invoke") | flags(column_of(batch, "redelivered"), False)
        for code in distinct(q_codes[kind == IRREGULAR]).tolist():
            if (queue := queues[code]) is not None:
                queue.irregular = True
        over = np.array([q is None or q.irregular for q in queues], np.bool_)
        at = np.flatnonzero((kind <= CANCELS) & ~over[q_codes])
        at = at[_stable_order(q_codes[at], len(queues))]
        names, place = _messages(batch, kind)
        dtag = _ints(batch, "dtag")
        rows = QueueRows(
            q_codes, kind, place, by, by * 2**31 + tag, stream, pseq, dtag, t, mark, credit
        ).only(at)
        self._given.update(distinct(rows.who[rows.kind == TAKEN]).tolist())
        done = advance(rows, names, queues, self._within)
        left = np.flatnonzero(~done[rows.queue])
        if len(left):
            rest = rows.only(left)
            self._loop(rest, names.take(pa.array(rest.message)).to_pylist(), queues)

    def _queue(self, name: str) -> OpenQueue:
        if (queue := self._queues.get(name)) is None:
            queue = self._queues[name] = OpenQueue()
        return queue

    def _begun(self, batch: pa.RecordBatch, kind: Ints, by: Ints) -> tuple[Ints, Ints, list[int]]:
        """The kinds, where who consumes after he was given something is irregular; the credit of who consumes; and the
        rows of those irregular ones.
        """
        taken = np.flatnonzero(kind == TAKEN)[::-1]
        first = np.full(int(by.max()) + 1, len(kind))
        first[by[taken]] = taken  # the last of equal ones stands: his first
        kind, credit, late = kind.copy(), np.zeros(len(kind), np.int64), list[int]()
        prefetch = _ints(batch, "prefetch")
        general = iter(table.events(batch.filter(pa.array(kind == GENERAL))))
        for i in np.flatnonzero((kind == GENERAL) | (kind == CONSUMES)).tolist():
            who = int(by[i])
            if kind[i] == GENERAL:
                self._general(next(general), who)
                continue
            limit = self._qos.get(who)
            chosen = limit if limit == 0 or prefetch[i] <= 0 else int(prefetch[i])
            credit[i] = UNLIMITED if chosen is None else chosen
            if who in self._given or first[who] < i:
                kind[i] = IRREGULAR
                late.append(i)
        return kind, credit, late

    def _loop(  # noqa: C901, PLR0912, PLR0915  # one loop: calls cost more than what they do
        self, of_rows: QueueRows, messages: list[str], queues: Sequence[OpenQueue | None]
    ) -> None:
        columns = of_rows._replace(message=of_rows.kind)  # whose names are given apart
        for row, m in zip(
            zip(*(of.tolist() for of in columns), strict=True), messages, strict=True
        ):
            code, what, _, who, consumer, of, number, dtag, now, mark, credit = row
            queue = queues[code]
            if queue is None or queue.irregular:
                continue
            queue.n += 1
            n = queue.n
            if what == ANSWERED:
                if m not in queue.messages and not queue.asked:
                    queue.irregular = True
                if m in queue.early:
                    del queue.early[m]
                else:
                    queue.unread.add(m)
                    queue.wait(now)
                continue
            if now <= queue.t and n > 1:
                queue.irregular = True
                continue
            queue.t = now
            if what == SENT:
                if m in queue.messages or (of >= 0 and queue.numbers.get(of, NONE) >= number):
                    queue.irregular = True
                if of >= 0:
                    queue.numbers[of] = number
                queue.asked = queue.asked or mark
                queue.messages[m] = OpenMessage(n, n, of, number)
                queue.fresh.append(m)
            elif what == TAKEN:
                message = queue.messages.get(m)
                fresh, returned = queue.fresh, queue.returned
                if message is None or message.since == NONE:
                    queue.irregular = True
                    continue
                if of >= 0 and (message.stream, message.number) != (of, number):
                    queue.irregular = True
                if returned and (not fresh or returned[0][0] < queue.messages[fresh[0]].rank):
                    oldest = heappop(returned)[1]
                else:
                    oldest = fresh.popleft()
                if oldest != m:
                    queue.irregular = True
                    continue
                queue.acquired += 1
                queue.choose(n, queue.acquired, message.since, bool(fresh or returned))
                queue.returns += message.back == who
                queue.out = queue.out or mark
                queue.outside += queue.out
                queue.single += not queue.out and bool(fresh)
                message.since = message.back = NONE
                message.by, message.dtag, message.consumer = who, dtag, consumer
                self._pause(queue, now)
                if m in queue.unread:
                    queue.unread.discard(m)
                else:
                    handed_early(queue.early, m)
                waiter = queue.consumers.get(consumer)
                if waiter is not None:
                    waiter[1] = (waiter[1] or 0) + 1
                queue.wait(now)
            elif what in (SETTLED, BACK):
                message = queue.messages.get(m)
                if (
                    message is None
                    or message.since != NONE
                    or message.by != who
                    or (dtag > 0 and message.dtag not in (NONE, dtag))
                ):
                    queue.irregular = True
                    continue
                if what == SETTLED:
                    del queue.messages[m]
                else:
                    queue.out = True
                    message.since, message.back = n, who
                    heappush(queue.returned, (message.rank, m))
                waiter = queue.consumers.get(message.consumer)
                if waiter is not None:
                    waiter[1] = (waiter[1] or 0) - 1
                queue.wait(now)
            elif what == CONSUMES:
                queue.consumers[consumer] = [None if credit == UNLIMITED else credit, 0]
                queue.wait(now)
            else:
                self._pause(queue, now)
                queue.consumers.pop(consumer, None)
                queue.wait(now)

    def _pause(self, queue: OpenQueue, now: int) -> None:
        """A wait ends, as in `NoLostWakeup`."""
        if queue.since is not None:
            queue.waits += 1
            if now - queue.since > self._within:
                queue.irregular = True
            queue.since = None

    def _general(self, event: Event, who: int) -> None:
        """An event that names no queue."""
        if event.ev == "qos":
            if began(event):
                shared = event.scope != "consumer" and bool(event.prefetch)
                self._qos[who] = 0 if shared else event.prefetch or None
        elif event.ev in ENDS:
            for name, queue in self._queues.items():
                queue.irregular = queue.irregular or name == event.q or event.conn in queue.conns

    def state(self) -> QueuesState:
        """What is kept of the run so far."""
        names = list(self._holders.code), list(self._tags.code), list(self._pubs.code)
        return QueuesState(self._queues, *names, self._qos, self._given, self._end, self.lost)

    def restore(self, state: QueuesState) -> None:
        """Go on where another one was that had this state."""
        self._queues, self._holders = state.queues, Names.of(state.holders)
        self._tags, self._pubs = Names.of(state.tags), Names.of(state.pubs)
        self._qos, self._given, self._end, self.lost = (
            state.qos,
            state.given,
            state.end,
            state.lost,
        )

    def _irregular(self, last: int) -> tuple[set[str], set[str]]:
        """The queues that are irregular if the run is over at `last`, and those that may be so by another one."""
        found = set[str]()
        for name, queue in self._queues.items():
            waits = queue.since is not None and last - queue.since > self._within
            if queue.irregular or waits or queue.may_refuse():
                found.add(name)
        spoilt, fresh = set[str](), found
        while fresh:
            conns = set[str]().union(*(self._queues[name].conns for name in fresh))
            known = found | spoilt
            fresh = {n for n, q in self._queues.items() if n not in known and q.conns & conns}
            spoilt |= fresh
        return found | spoilt, spoilt | (self._joined & found)

    def finish(self, ended: int | None) -> ClearedQueues | None:
        """What is cleared, if the run is over, at the latest at `ended`; None if nothing is."""
        if self.lost:
            return None
        last = self._end if ended is None else max(self._end, ended)
        irregular, spoilt = self._irregular(last)
        regular = [q for name, q in self._queues.items() if name not in irregular]
        acquired = sum(q.acquired for q in regular)
        tested = sum(q.tested + q.open_choices() for q in regular)
        single = sum(q.single for q in regular)
        return ClearedQueues(
            irregular,
            {
                StrictOrder.id: Counts(tested, acquired - tested),
                RequeueLateness.id: Counts(sum(q.returns for q in regular), 0),
                NoLostWakeup.id: Counts(
                    sum(q.waits for q in regular), sum(q.since is not None for q in regular)
                ),
                QueueLinearizable.id: Counts(single, sum(q.outside for q in regular)),
            },
            spoilt,
        )


def clears(prop: AnyProperty) -> bool:
    """Whether regular queues are cleared of a property: not of P5 where what was released has another place."""
    return prop.own("queue_check") and not (isinstance(prop, StrictOrder) and not prop.returned)


def _ints(batch: pa.RecordBatch, name: str) -> Ints:
    """A column of whole numbers; null is `NONE`."""
    if name not in batch.schema.names:
        return np.full(len(batch), NONE, np.int64)
    found: Ints = np.asarray(pc.fill_null(batch[name], NONE)).astype(np.int64)
    return found


def _messages(batch: pa.RecordBatch, kind: Ints) -> tuple[pa.Array, Ints]:
    """The names of messages, and of each row the place of the one that it names."""
    settles = (kind == SETTLED) | (kind == BACK)
    of = pa.array(settles)
    names = column_of(batch, "m").filter(pc.invert(of)).cast(pa.string())
    listed = column_of(batch, "ms").filter(of).flatten().cast(pa.string())
    place = np.where(settles, len(names) + np.cumsum(settles), np.cumsum(~settles)) - 1
    return pa.concat_arrays([names, listed]), place


def _note_connections(
    batch: pa.RecordBatch, kind: Ints, q_codes: Ints, queues: Sequence[OpenQueue | None]
) -> None:
    """Note in each queue the connections that act on it."""
    conns = coded(batch, "conn")
    sent = (kind == SENT) | (kind == ANSWERED)
    unsure = (kind == TAKEN) & ~present(batch, "nolocal")
    for of, which in (("conns", ~sent), ("senders", sent), ("unsure", unsure)):
        for pair in distinct(q_codes[which] * len(conns.values) + conns.codes[which]).tolist():
            queue = queues[pair // len(conns.values)]
            if queue is not None:
                getattr(queue, of).add(conns.values[pair % len(conns.values)])


def _stable_order(codes: Ints, most: int) -> Ints:
    """The places of numbers below `most` in their order; small ones in time in proportion to them."""
    small = codes.astype(np.uint16) if most < 2**16 else codes
    found: Ints = np.argsort(small, kind="stable")
    return found


def _kinds(batch: pa.RecordBatch) -> Ints | None:
    """What each row is; None if nothing is cleared."""
    ev, ph, lvl = coded(batch, "ev"), coded(batch, "ph"), coded(batch, "lvl")
    named = ~coded(batch, "q").among("")
    inside = lvl.among("broker")
    overall = ev.among("qos", *ENDS)
    if (
        ev.among(GAP).any()
        or (ev.among(*_CONCERNS_QUEUES) & ~named).any()
        or (overall & ~inside).any()
        or (ev.among("qos") & named).any()
        or any("rest" in a for a in _texts_of(batch, ev.among("note")))
    ):
        return None
    plain = inside & ~_any_flag(batch, "dead", "nolocal", "exclusive", "autoack", "multiple")
    for name in ("prio", "pos", "part", "key"):
        plain &= ~present(batch, name)
    pseq, dtag, prefetch = (_ints(batch, name) for name in ("pseq", "dtag", "prefetch"))
    for name, of in (("pseq", pseq), ("dtag", dtag), ("prefetch", prefetch)):
        plain &= ~(present(batch, name) & (of < 0))
    plain &= (pseq < 0) | ~coded(batch, "pub").among("")
    t = np.asarray(pc.fill_null(column_of(batch, "t"), 0)).astype(np.int64)
    exact = plain.copy()
    for name in ("t_lo", "t_hi"):
        bound = column_of(batch, name)
        exact &= np.asarray(bound.is_null()) | (np.asarray(pc.fill_null(bound, 0)) == t)
    named_m = some(batch, "m")
    kind: Ints = np.where(inside & ~ev.among(*_CONCERNS_QUEUES), NOTHING, IRREGULAR)
    kind[~named] = NOTHING
    kind[overall] = GENERAL
    publish = ev.among("publish") & named_m & ~present(batch, "redelivered")
    kind[publish & exact & ph.among("", "invoke")] = SENT
    kind[publish & plain & ph.among("ok")] = ANSWERED
    scope = coded(batch, "scope")
    unclear = ~scope.among("consumer") & (scope.among(None, "") == (prefetch > 0))
    kind[ev.among("deliver") & exact & named_m & ph.among("") & ~unclear] = TAKEN
    one = np.asarray(pc.fill_null(pc.list_value_length(column_of(batch, "ms")), 0)) == 1
    settles = ev.among(*SETTLES)
    final = ev.among("ack") | ~flags(column_of(batch, "requeue"), True)
    begins = settles & exact & one & ph.among("", "invoke")
    kind[begins & final] = SETTLED
    kind[begins & ~final] = BACK
    kind[settles & plain & ph.among("ok") & present(batch, "op")] = NOTHING
    consume = ev.among("consume") & plain
    kind[consume & ph.among("", "ok")] = CONSUMES
    kind[consume & ph.among("invoke")] = NOTHING
    kind[ev.among("cancel") & inside] = CANCELS
    kind[ev.among("declare") & inside & ~present(batch, "args")] = NOTHING
    return kind


def _texts_of(batch: pa.RecordBatch, of: Bools) -> list[str]:
    """The args of some rows."""
    args = column_of(batch, "args").filter(pa.array(of))
    return [a for a in args.to_pylist() if a]


def _any_flag(batch: pa.RecordBatch, *names: str) -> Bools:
    found: Bools = np.zeros(len(batch), np.bool_)
    for name in names:
        found |= flags(column_of(batch, name), False)
    return found
