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
from seriatim_models.properties.columnar.columns import Bools, Ints, Names, distinct, stable_order
from seriatim_models.properties.columnar.event_batch import HOLDER, EventBatch
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

    def take(self, batch: EventBatch) -> None:
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

    def take(self, batch: EventBatch) -> None:
        """Add the next events."""
        if self.lost:
            return
        batch = batch.named({*READ, GAP}).in_order()
        if not len(batch):
            return
        kind, t = _kinds(batch), batch.ints("t", 0)
        falls = t[0] < self._end or (t[1:] < t[:-1]).any()
        if kind is None or falls or not batch.present("t").all():
            self.lost = True
            return
        self._end = int(t[-1])
        self._advance(batch, kind, t)

    def _advance(self, batch: EventBatch, kind: Ints, t: Ints) -> None:
        """Give each queue its rows: by whole arrays where it is plain, and else one after the other."""
        q_codes, q_names = batch.coded("q")
        # A batch may have codes of queues of which it has no row.
        there = np.bincount(q_codes, minlength=len(q_names)).tolist()
        queues = [self._queue(q) if q and n else None for q, n in zip(q_names, there, strict=True)]
        by = batch.holders().numbers(self._holders)
        tag, pseq = batch.coded("ctag").numbers(self._tags), batch.ints("pseq", NONE)
        stream = np.where(pseq == NONE, NONE, batch.coded("pub").numbers(self._pubs))
        _note_connections(batch, kind, q_codes, queues)
        kind, credit, late = self._begun(batch, kind, by)
        self._joined |= {q_names[code] for code in q_codes[late].tolist()}
        mark = batch.among("ph", "invoke") | batch.flags("redelivered", False)
        for code in distinct(q_codes[kind == IRREGULAR]).tolist():
            if (queue := queues[code]) is not None:
                queue.irregular = True
        over = np.array([q is None or q.irregular for q in queues], np.bool_)
        at = np.flatnonzero((kind <= CANCELS) & ~over[q_codes])
        at = at[stable_order(q_codes[at])]
        names, place = _messages(batch, kind)
        dtag = batch.ints("dtag", NONE)
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

    def _begun(self, batch: EventBatch, kind: Ints, by: Ints) -> tuple[Ints, Ints, list[int]]:
        """The kinds, where who consumes after he was given something is irregular; the credit of who consumes; and the
        rows of those irregular ones.
        """
        taken = np.flatnonzero(kind == TAKEN)[::-1]
        first = np.full(int(by.max()) + 1, len(kind))
        first[by[taken]] = taken  # the last of equal ones stands: his first
        kind, credit, late = kind.copy(), np.zeros(len(kind), np.int64), list[int]()
        prefetch = batch.ints("prefetch", NONE)
        general = iter(table.events(batch.only(kind == GENERAL).arrow))
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
        names = list(self._holders), list(self._tags), list(self._pubs)
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


def _messages(batch: EventBatch, kind: Ints) -> tuple[pa.Array, Ints]:
    """The names of messages, and of each row the place of the one that it names."""
    settles = (kind == SETTLED) | (kind == BACK)
    names = batch.column("m").filter(pa.array(~settles)).cast(pa.string())
    listed = batch.column("ms").filter(pa.array(settles)).flatten().cast(pa.string())
    place = np.where(settles, len(names) + np.cumsum(settles), np.cumsum(~settles)) - 1
    return pa.concat_arrays([names, listed]), place


def _note_connections(
    batch: EventBatch, kind: Ints, q_codes: Ints, queues: Sequence[OpenQueue | None]
) -> None:
    """Note in each queue the connections that act on it."""
    conns = batch.coded("conn")
    pairs = q_codes * len(conns.values) + conns.codes
    sent = (kind == SENT) | (kind == ANSWERED)
    unsure = (kind == TAKEN) & ~batch.present("nolocal")
    for of, which in (("conns", ~sent), ("senders", sent), ("unsure", unsure)):
        for pair in distinct(pairs[np.flatnonzero(which)]).tolist():
            queue = queues[pair // len(conns.values)]
            if queue is not None:
                getattr(queue, of).add(conns.values[pair % len(conns.values)])


def _kinds(batch: EventBatch) -> Ints | None:
    """What each row is; None if nothing is cleared."""
    ev, ph = batch.words("ev"), batch.words("ph")
    named = batch.some("q")
    inside = batch.among("lvl", "broker")
    overall = ev("qos", *ENDS)
    if (
        ev(GAP).any()
        or (ev(*_CONCERNS_QUEUES) & ~named).any()
        or (overall & ~inside).any()
        or (ev("qos") & named).any()
        or any("rest" in a for a in _texts_of(batch, ev("note")))
    ):
        return None
    plain = inside.copy()
    for name in ("dead", "nolocal", "exclusive", "autoack", "multiple"):
        plain &= ~batch.flags(name, False)
    for name in ("prio", "pos", "part", "key"):
        plain &= ~batch.present(name)
    for name in ("pseq", "dtag", "prefetch"):
        plain &= ~(batch.present(name) & (batch.ints(name, NONE) < 0))
    plain &= (batch.ints("pseq", NONE) < 0) | batch.some("pub")
    t, exact = batch.ints("t", 0), plain.copy()
    for name in ("t_lo", "t_hi"):
        exact &= ~batch.present(name) | (batch.ints(name, 0) == t)
    named_m = batch.some("m")
    kind: Ints = np.where(inside & ~ev(*_CONCERNS_QUEUES), NOTHING, IRREGULAR)
    kind[~named] = NOTHING
    kind[overall] = GENERAL
    publish = ev("publish") & named_m & ~batch.present("redelivered")
    kind[publish & exact & ph("", "invoke")] = SENT
    kind[publish & plain & ph("ok")] = ANSWERED
    scope, limited = batch.coded("scope"), batch.ints("prefetch", NONE) > 0
    unclear = ~scope.among("consumer") & (scope.among(None, "") == limited)
    kind[ev("deliver") & exact & named_m & ph("") & ~unclear] = TAKEN
    settles = ev(*SETTLES)
    final = ev("ack") | ~batch.flags("requeue", True)
    begins = settles & exact & (batch.lengths("ms") == 1) & ph("", "invoke")
    kind[begins & final] = SETTLED
    kind[begins & ~final] = BACK
    kind[settles & plain & ph("ok") & batch.present("op")] = NOTHING
    consume = ev("consume") & plain
    kind[consume & ph("", "ok")] = CONSUMES
    kind[consume & ph("invoke")] = NOTHING
    kind[ev("cancel") & inside] = CANCELS
    kind[ev("declare") & inside & ~batch.present("args")] = NOTHING
    return kind


def _texts_of(batch: EventBatch, of: Bools) -> list[str]:
    """The args of some rows."""
    args = batch.column("args").filter(pa.array(of))
    return [a for a in args.to_pylist() if a]
