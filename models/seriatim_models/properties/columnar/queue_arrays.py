"""Plain queues over whole arrays: what `queues.RegularQueues` does row by row, for all queues of a batch at once.

A queue is advanced here only if each of its rows is of the simplest shape; then its state is the same as after the loop
over rows, but for what is stale in it. Every other queue is left as it was, and goes to the loop. So nothing rests on
what is refused here; a test compares the two.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from seriatim_models.properties.blackbox.at_rest import EARLY_KEPT
from seriatim_models.properties.blackbox.strict import WINDOW
from seriatim_models.properties.columnar.columns import Bools, Ints, among, stable_order
from seriatim_models.properties.columnar.queue_state import (
    ANSWERED,
    BACK,
    CANCELS,
    CONSUMES,
    NONE,
    SENT,
    SETTLED,
    TAKEN,
    OpenMessage,
    OpenQueue,
)

UNLIMITED = 2**62
"""The credit of a consumer that has no limit."""
_TRAILING = 64
"""Acquisitions of a queue at the end of a batch that are looked at one by one, at most."""
_AMONG = 4
"""How many acquisitions are compared for each row of a queue, at most, while something that came back is there."""
_MESSAGE = ("kind", "queue", "who", "consumer", "stream", "number", "dtag", "n", "rank")


class QueueRows(NamedTuple):
    """Rows sorted by queue, and then in the order of the run. `NONE` stands for what a row does not have."""

    queue: Ints
    """Its code; here all queues are given to `advance`."""
    kind: Ints
    message: Ints
    """Which of the names."""
    who: Ints
    consumer: Ints
    stream: Ints
    number: Ints
    dtag: Ints
    t: Ints
    mark: Bools
    """Of a publish, that an answer is to come; of a delivery, that it was given out before."""
    credit: Ints
    """Of a consumer that begins; `UNLIMITED` for no limit."""

    def only(self, at: Ints) -> QueueRows:
        """The rows at some places."""
        return QueueRows(**{name: of[at] for name, of in self._asdict().items()})


def advance(
    rows: QueueRows, names: pa.Array, queues: Sequence[OpenQueue | None], within: int
) -> Bools:
    """Give some queues their next rows. Returns for each code whether its queue has taken them; all others are as they
    were. `within` is the longest wait, in ns.
    """
    done = np.zeros(len(queues), np.bool_)
    if len(rows.queue):
        judged = _ArrayPass(rows, names, queues)
        judged.look(within)
        judged.keep()
        done[judged.codes[~judged.bad]] = True
    return done


class _Carried(NamedTuple):
    """The open messages of some queues, as rows before all others; and which of them are unread."""

    names: list[str]
    fields: Ints
    """A row for each of `_MESSAGE`."""
    unread: Bools


def _carried(queues: Sequence[OpenQueue]) -> _Carried:
    names, fields, unread = list[str](), list[tuple[int, ...]](), list[bool]()
    for k, queue in enumerate(queues):
        for name, m in queue.messages.items():
            names.append(name)
            unread.append(name in queue.unread)
            if m.since == NONE:
                kind, who = TAKEN, m.by
            else:
                kind, who = (SENT, NONE) if m.back == NONE else (BACK, m.back)
            fields.append((kind, k, who, m.consumer, m.stream, m.number, m.dtag, m.since, m.rank))
    made = np.array(fields, np.int64).reshape(len(names), len(_MESSAGE)).T
    return _Carried(names, made, np.array(unread, np.bool_))


class _ArrayPass:
    """The rows of a batch, and what is worked out of them. Places are among all rows."""

    def __init__(
        self, rows: QueueRows, names: pa.Array, queues: Sequence[OpenQueue | None]
    ) -> None:
        self.rows, self.kind = rows, rows.kind
        self.starts = np.flatnonzero(np.append(True, rows.queue[1:] != rows.queue[:-1]))
        self.codes = rows.queue[self.starts]
        self.queues = [q for code in self.codes.tolist() if (q := queues[code]) is not None]
        self.ends = np.append(self.starts[1:], len(rows.queue))
        self.of = np.repeat(np.arange(len(self.codes)), self.ends - self.starts)
        """Of each row its queue, numbered without holes."""
        self.bad = np.zeros(len(self.codes), np.bool_)
        """By queue: it goes to the loop over rows."""
        self.n = np.arange(len(self.of)) - self.starts[self.of] + self._each("n")[self.of] + 1
        self.carried = _carried(self.queues)
        known = pa.array(self.carried.names, pa.string())
        encoded = pa.concat_arrays([names, known]).dictionary_encode()
        code = np.asarray(encoded.indices.fill_null(0)).astype(np.int64)
        self.names, self.n_names = encoded.dictionary, max(len(encoded.dictionary), 1)
        self.message = code[rows.message]
        self.carried_message = code[len(names) :]
        self.taken, self.back = self.kind == TAKEN, self.kind == BACK
        self.fresh, self.own, self.in_unread = (np.zeros(len(self.of), np.bool_) for _ in range(3))
        self.since, self.rank = np.zeros(len(self.of), np.int64), np.zeros(len(self.of), np.int64)
        self.consumer = rows.consumer.copy()
        self.unread = np.zeros(len(self.of), np.int64)
        """By how much each row changes how many are unread."""

    def _each(self, name: str) -> Ints:
        """A number of each queue."""
        return np.array([getattr(q, name) for q in self.queues], np.int64)

    def _sum(self, of: Bools) -> list[int]:
        """By queue: how many rows."""
        found: list[int] = np.add.reduceat(of.astype(np.int64), self.starts).tolist()
        return found

    def _running(self, values: Ints, begin: Ints) -> Ints:
        """The running sum of each queue, which begins with `begin`."""
        total = np.cumsum(values)
        base = total[self.starts] - values[self.starts] - begin
        found: Ints = total - base[self.of]
        return found

    def _spoil(self, of: Ints) -> None:
        self.bad[of] = True

    def look(self, within: int) -> None:
        """See which queues are plain, and what their rows come to."""
        later = np.flatnonzero(self.kind != ANSWERED)
        of, t = self.of[later], self.rows.t[later]
        first = np.append(True, of[1:] != of[:-1])[: len(of)]
        before = np.where(first, self._each("t")[of], np.append(0, t[:-1])[: len(of)])
        self._spoil(of[t <= before])
        self._look_at_messages()
        self._look_at_numbers()
        self._look_at_order()
        self._look_at_waits(within)

    def _look_at_messages(self) -> None:
        """Each message on its own: published once, then given out and released or settled in turns."""
        rows, at = self.rows, np.flatnonzero(self.kind <= BACK)
        made = (rows.who, rows.consumer, rows.stream, rows.number, rows.dtag, self.n, self.n)
        old = len(self.carried.names)
        fields = np.empty((len(_MESSAGE), old + len(at)), np.int64)
        fields[:, :old] = self.carried.fields
        for out, values in zip(fields, (self.kind, self.of, *made), strict=True):
            out[old:] = values[at]
        key = fields[1] * self.n_names + np.append(self.carried_message, self.message[at])
        order = stable_order(key)
        key, fields = key[order], fields.take(order, axis=1)
        place = np.append(np.full(len(self.carried.names), NONE), at)[order]
        unread = np.append(self.carried.unread, np.zeros(len(at), np.bool_))[order]
        self._look_at_answers(key, fields[0], place, unread)
        steps = np.flatnonzero(fields[0] != ANSWERED)
        key, fields, place = key[steps], fields.take(steps, axis=1), place[steps]
        kind, of, who, consumer, stream, number, dtag, n, rank = fields
        same = np.append(False, key[1:] == key[:-1])[: len(key)]
        prior = np.maximum(np.arange(len(key)) - 1, 0)
        begin = np.maximum.accumulate(np.where(same, 0, np.arange(len(key))))
        before = np.where(same, kind[prior], NONE)
        real, settles = place >= 0, (kind == SETTLED) | (kind == BACK)
        taken = kind == TAKEN
        odd = (kind == SENT) & same
        odd |= taken & (before != SENT) & (before != BACK)
        odd |= settles & (before != TAKEN)
        odd |= settles & (who != who[prior])
        odd |= settles & (dtag > 0) & (dtag[prior] != NONE) & (dtag[prior] != dtag)
        odd |= taken & (stream >= 0) & ((stream[begin] != stream) | (number[begin] != number))
        self._spoil(of[odd & real])
        now, then = np.flatnonzero(taken & real), np.flatnonzero(settles & real)
        at, earlier = place[now], prior[now]
        self.fresh[at] = before[now] == SENT
        self.own[at] = (before[now] == BACK) & (who[earlier] == who[now])
        self.since[at], self.rank[at] = n[earlier], rank[begin[now]]
        self.consumer[place[then]] = consumer[prior[then]]
        last = np.append(~same[1:], True)[: len(key)]
        self._look_at_returned(of, kind, place, rank[begin], last)
        open_ = np.flatnonzero(last & (kind != SETTLED))
        self.open = np.vstack([key[open_], fields[:, open_]])
        self.open[-1] = rank[begin[open_]]
        self.open_stream, self.open_number = stream[begin[open_]], number[begin[open_]]
        over = self.still_unread[~among(key[open_], self.still_unread)]
        self._spoil(over // self.n_names)

    def _look_at_returned(self, of: Ints, kind: Ints, place: Ints, rank: Ints, last: Bools) -> None:
        """While something that came back is there, nobody is given what is behind it."""
        takes = np.flatnonzero(self.taken)
        which = np.flatnonzero(kind == BACK)
        begin = np.where(place[which] < 0, self.starts[of[which]], place[which])
        following = np.minimum(which + 1, len(kind) - 1)
        end = np.where(last[which], self.ends[of[which]], place[following])
        first, behind = np.searchsorted(takes, begin), np.searchsorted(takes, end)
        several = behind - first
        compared = np.bincount(of[which], several, len(self.codes))
        self.bad |= compared > _AMONG * (self.ends - self.starts)
        several = np.where(self.bad[of[which]], 0, several)
        total = np.cumsum(several)
        each = np.repeat(np.arange(len(which)), several)
        index = np.arange(len(each)) - np.repeat(total - several, several) + first[each]
        # Of what was taken the rank is there already: this is called once it is worked out.
        self._spoil(of[which[each[self.rank[takes[index]] > rank[which[each]]]]])

    def _look_at_answers(self, key: Ints, kind: Ints, place: Ints, unread: Bools) -> None:
        """Which messages are confirmed and not given out yet, as P14 counts them."""
        real = place >= 0
        where = np.arange(len(key))
        head = np.append(True, key[1:] != key[:-1])[: len(key)]
        begin = np.maximum.accumulate(np.where(head, where, 0))
        of = key // self.n_names

        def before(which: Bools) -> Ints:
            """How many of these rows of the message stand before each."""
            total: Ints = np.cumsum(which) - which
            found: Ints = total - total[begin]
            return found

        answered, taken = kind == ANSWERED, (kind == TAKEN) & real
        given = before(taken) > 0
        known = given.copy()
        asked = np.flatnonzero(answered & ~given)
        handed = np.array([len(q.early) for q in self.queues])
        asked = asked[handed[of[asked]] > 0]
        texts = self.names.take(pa.array(key[asked] % self.n_names)).to_pylist()
        there: list[bool] = []
        for k, n in enumerate(np.bincount(of[asked]).tolist()):  # they are sorted by queue
            there += map(self.queues[k].early.__contains__, texts[len(there) : len(there) + n])
        known[asked] = there
        sent = ~real | (kind == SENT)
        odd = answered & ((before(answered) > 0) | unread[begin] | (~known & (before(sent) == 0)))
        self._spoil(of[odd])
        confirmed = answered & ~known
        was_unread = np.flatnonzero(taken & ~given & (unread[begin] | (before(confirmed) > 0)))
        self.unread[place[np.flatnonzero(confirmed)]] = 1
        self.unread[place[was_unread]] = -1
        self.in_unread[place[was_unread]] = True
        self.early_gone = np.zeros(len(self.of), np.bool_)
        self.early_gone[place[np.flatnonzero(answered & known)]] = True
        counted = np.bincount(of[unread], minlength=len(self.codes))
        self.bad |= counted != [len(q.unread) for q in self.queues]
        into = self._sum(self.taken & ~self.in_unread)
        self.bad |= handed + into > EARLY_KEPT
        # Both are sorted, since the rows are.
        waiting, gone = key[np.flatnonzero(confirmed | unread)], key[was_unread]
        left = np.searchsorted(gone, waiting, "left") == np.searchsorted(gone, waiting, "right")
        self.still_unread = waiting[left]
        first = np.where(
            self.rows.mark & (self.kind == SENT), np.arange(len(self.of)), len(self.of)
        )
        first = np.minimum.reduceat(first, self.starts)
        first[[q.asked for q in self.queues]] = NONE
        late = (self.kind == ANSWERED) & (np.arange(len(self.of)) < first[self.of])
        self._spoil(self.of[late])

    def _look_at_numbers(self) -> None:
        """Of each publisher the numbers rise."""
        at = np.flatnonzero((self.kind == SENT) & (self.rows.stream >= 0))
        most = int(self.rows.stream.max(initial=0)) + 1
        key = self.of[at] * most + self.rows.stream[at]
        order = stable_order(key)
        key, number = key[order], self.rows.number[at][order]
        same = np.append(False, key[1:] == key[:-1])[: len(key)]
        before = np.append(NONE, number[:-1])[: len(key)]
        for i in np.flatnonzero(~same).tolist():
            k, stream = divmod(int(key[i]), most)
            before[i] = self.queues[k].numbers.get(stream, NONE)
        self._spoil(key[number <= before] // most)
        last = np.append(~same[1:], True)[: len(key)]
        self.numbers = [
            (*divmod(k, most), v)
            for k, v in zip(key[last].tolist(), number[last].tolist(), strict=True)
        ]

    def _look_at_order(self) -> None:
        """Always the oldest is given out; and what there is to choose from."""
        sent, again = self.kind == SENT, self.taken & ~self.fresh
        fresh = np.array([len(q.fresh) for q in self.queues])
        self.there = self._running(sent.astype(np.int64) - self.fresh, fresh)
        """Of what was never given out, how much is there."""
        released = np.array([len(q.returned) for q in self.queues])
        self.beside = self.there + self._running(self.back.astype(np.int64) - again, released) > 0
        # What was never given out is given out as it stands in the queue.
        at = np.flatnonzero(self.fresh)
        of, rank = self.of[at], self.rank[at]
        every = np.flatnonzero(sent)
        of_all = np.append(self.carried_fresh_of(), self.of[every])
        ranks = np.append(self.carried_fresh_rank(), self.n[every])
        order = stable_order(of_all)
        begin = np.searchsorted(of_all[order], np.arange(len(self.codes)))
        place = np.arange(len(at)) - np.searchsorted(of, np.arange(len(self.codes)))[of]
        expected = np.minimum(begin[of] + place, max(len(order) - 1, 0))
        if len(at):
            self._spoil(of[ranks[order][expected] != rank])
        self.acquired = self._running(self.taken.astype(np.int64), self._each("acquired"))
        oldest = np.array([q.choices[0][1] if q.choices else q.acquired + 1 for q in self.queues])
        number = self.acquired[at]
        first = np.append(True, of[1:] != of[:-1])[: len(of)]
        before = np.where(first, oldest[of], np.append(0, number[:-1])[: len(of)])
        self._spoil(of[number - before > WINDOW])
        self.last_fresh = self.starts.copy()
        self.last_fresh[of] = at  # the last of those of a queue stands
        self.any_fresh = np.zeros(len(self.codes), np.bool_)
        self.any_fresh[of] = True
        trailing = self.taken & (np.arange(len(self.of)) >= self.last_fresh[self.of])
        self.bad |= np.array(self._sum(trailing)) > _TRAILING
        self.trailing = trailing

    def carried_fresh_of(self) -> Ints:
        """Of what was there before and never given out: the queues."""
        found: Ints = self.carried.fields[1][self.carried.fields[0] == SENT]
        return found

    def carried_fresh_rank(self) -> Ints:
        """Of what was there before and never given out: the ranks."""
        found: Ints = self.carried.fields[8][self.carried.fields[0] == SENT]
        return found

    def _look_at_waits(self, within: int) -> None:
        """P14: from when on somebody waits beside an unread message until the next is given out."""
        ready = self._running(*self._look_at_consumers())
        unread = self._running(self.unread, np.array([len(q.unread) for q in self.queues]))
        waiting = np.flatnonzero((ready > 0) & (unread > 0))
        t = self.rows.t
        ends = np.flatnonzero(self.taken | (self.kind == CANCELS))
        of = self.of[ends]
        first = np.append(True, of[1:] != of[:-1])[: len(of)]
        begin = np.where(first, self.starts[of], np.append(0, ends[:-1])[: len(of)])
        never = len(self.of)
        waiting = np.append(waiting, never)
        since = waiting[np.searchsorted(waiting, begin)]
        waits = since < ends
        since_t = t[np.minimum(since, never - 1)]
        before = np.array([UNLIMITED if q.since is None else q.since for q in self.queues])
        known = first & (before[of] != UNLIMITED)
        waits |= known
        since_t = np.where(known, before[of], since_t)
        self._spoil(of[waits & (t[ends] - since_t > within)])
        self.waits = np.bincount(of[waits], minlength=len(self.codes)).tolist()
        last = self.starts.copy()
        last[of] = ends
        paused = np.zeros(len(self.codes), np.bool_)
        paused[of] = True
        since = waiting[np.searchsorted(waiting, last)]
        begun = np.where(since < self.ends, t[np.minimum(since, never - 1)], UNLIMITED)
        self.waiting_since = np.where(paused | (before == UNLIMITED), begun, before).tolist()

    def _look_at_consumers(self) -> tuple[Ints, Ints]:
        """By how much each row changes how many consumers are ready, and how many are at the beginning."""
        at = np.flatnonzero(self.taken | (self.kind >= SETTLED))
        before = [
            (k, consumer, UNLIMITED if credit is None else credit, holds or 0)
            for k, q in enumerate(self.queues)
            for consumer, (credit, holds) in q.consumers.items()
        ]
        held = np.array(before, np.int64).reshape(len(before), 4).T
        encoded = pa.array(np.append(held[1], self.consumer[at])).dictionary_encode()
        ids, code = np.asarray(encoded.dictionary), np.asarray(encoded.indices).astype(np.int64)
        of = np.append(held[0], self.of[at])
        key = of * max(len(ids), 1) + code
        order = stable_order(key)
        key, of, place = key[order], of[order], np.append(np.full(len(before), NONE), at)[order]
        real = place >= 0
        kind = np.where(real, self.kind[place], CONSUMES)
        change = np.select([kind == TAKEN, (kind == SETTLED) | (kind == BACK)], [1, -1], 0)
        change[~real] = np.append(held[3], np.zeros(len(at), np.int64))[order][~real]
        credit = np.append(held[2], self.rows.credit[at])[order]
        head = np.append(True, key[1:] != key[:-1])[: len(key)]
        begin = np.maximum.accumulate(np.where(head, np.arange(len(key)), 0))
        self._spoil(of[(kind == CONSUMES) & ~head])
        total, gone = np.cumsum(change), np.cumsum(kind == CANCELS)
        holds = total - (total - change)[begin]
        there = (kind[begin] == CONSUMES) & (gone == gone[begin])
        ready = there & (holds < credit[begin])
        changes = np.zeros(len(self.of), np.int64)
        step = ready.astype(np.int64) - np.where(head, 0, np.append(0, ready[:-1])[: len(key)])
        changes[place[real]] = step[real]
        last = np.append(head[1:], True)[: len(key)]
        self.consumers = [
            (k, consumer, None if limit == UNLIMITED else limit, n, stays)
            for k, consumer, limit, n, stays in zip(
                of[last].tolist(),
                ids[key[last] % max(len(ids), 1)].tolist(),
                credit[begin[last]].tolist(),
                holds[last].tolist(),
                there[last].tolist(),
                strict=True,
            )
        ]
        at_first = np.bincount(of[~real & ready], minlength=len(self.codes))
        return changes, at_first

    # What becomes of it.

    def keep(self) -> None:
        """Write into the queues that are plain what their rows come to."""
        self._keep_counts()
        self._keep_trailing()
        self._keep_early()
        self._keep_messages()
        for k, stream, number in self.numbers:
            if not self.bad[k]:
                self.queues[k].numbers[stream] = number
        for k, consumer, credit, holds, stays in self.consumers:
            if self.bad[k]:
                continue
            if stays:
                self.queues[k].consumers[consumer] = [credit, holds]
            else:
                self.queues[k].consumers.pop(consumer, None)

    def _keep_counts(self) -> None:
        """The cases, and what is known of a queue as a whole."""
        taken, places = self.taken, np.arange(len(self.of))
        out = np.where(self.back | (taken & self.rows.mark), places, len(places))
        out = np.minimum.reduceat(out, self.starts)
        is_out = out < self.ends
        out[[q.out for q in self.queues]] = NONE
        outside = taken & (places >= out[self.of])
        choices = taken & self.beside & (places < self.last_fresh[self.of])
        counts = zip(
            self.queues,
            self.bad.tolist(),
            (self.ends - self.starts).tolist(),
            self._sum(taken),
            self._sum(choices),
            self._sum(self.own),
            self._sum(outside),
            self._sum(taken & ~outside & (self.there > 0)),
            self._sum(self.rows.mark & (self.kind == SENT)),
            is_out.tolist(),
            self.waits,
            self.waiting_since,
            self.any_fresh.tolist(),
            self._latest(),
            strict=True,
        )
        for (
            queue,
            bad,
            n,
            acquired,
            tested,
            own,
            after,
            single,
            asked,
            back,
            waits,
            since,
            fresh,
            t,
        ) in counts:
            if bad:
                continue
            queue.n += n
            queue.acquired += acquired
            queue.returns += own
            queue.outside += after
            queue.single += single
            queue.asked = queue.asked or asked > 0
            queue.out = queue.out or back
            queue.waits += waits
            queue.since = None if since == UNLIMITED else since
            queue.t = max(queue.t, t)
            if fresh:  # which ends whatever there was to choose before
                queue.tested += tested + len(queue.choices)
                queue.choices = []

    def _latest(self) -> list[int]:
        """By queue: the latest time that counts."""
        t = np.where(self.kind == ANSWERED, np.iinfo(np.int64).min, self.rows.t)
        found: list[int] = np.maximum.reduceat(t, self.starts).tolist()
        return found

    def _keep_trailing(self) -> None:
        """The last acquisitions one by one: what they chose from may be open still."""
        at = np.flatnonzero(self.trailing & ~self.bad[self.of])
        of = (self.queues[k] for k in self.of[at].tolist())
        columns = (self.n, self.acquired, self.since, self.beside)
        for queue, *each in zip(of, *(c[at].tolist() for c in columns), strict=True):
            queue.choose(*each)

    def _keep_early(self) -> None:
        """What was given out before its publish was answered, or again."""
        into = self.taken & ~self.in_unread
        at = np.flatnonzero((into | self.early_gone) & ~self.bad[self.of])
        texts = self.names.take(pa.array(self.message[at])).to_pylist()
        of = (self.queues[k] for k in self.of[at].tolist())
        for queue, m, add in zip(of, texts, into[at].tolist(), strict=True):
            if add:
                queue.early[m] = None
            else:
                queue.early.pop(m, None)

    def _keep_messages(self) -> None:
        """What is open at the end."""
        key, kind, of, who, consumer, _, _, dtag, n, rank = self.open
        chosen = np.flatnonzero(~self.bad[of])
        chosen = chosen[np.lexsort((rank[chosen], of[chosen]))]
        for k, queue in enumerate(self.queues):
            if not self.bad[k]:
                queue.messages, queue.fresh = {}, deque()
                queue.returned, queue.unread = [], set()
        columns = (of, key, kind, rank, who, consumer, dtag, n, self.open_stream, self.open_number)
        texts = self.names.take(pa.array(key[chosen] % self.n_names)).to_pylist()
        still_unread = set(self.still_unread.tolist())
        for m, k, of_key, what, place, by, as_, tag, since, stream, number in zip(
            texts, *(c[chosen].tolist() for c in columns), strict=True
        ):
            queue = self.queues[k]
            if of_key in still_unread:
                queue.unread.add(m)
            if what == TAKEN:
                made = OpenMessage(place, NONE, stream, number, by, tag, as_)
            elif what == SENT:
                made = OpenMessage(place, since, stream, number)
                queue.fresh.append(m)
            else:
                made = OpenMessage(place, since, stream, number, back=by)
                queue.returned.append((place, m))
            queue.messages[m] = made
