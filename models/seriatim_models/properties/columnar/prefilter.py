"""Message lifecycles over columns: regular messages are cleared, and only the irregular ones judged event by event.

Nearly every message is *regular*: published, delivered, perhaps released and delivered again, settled. What a property
of lifecycles counts for it follows from how often it was acquired, how often without a flag that decides something,
and whether it was confirmed (`LifecycleProperty.regular_cases`). Exactly then a message is regular:

- all its events name one and the same queue;
- it begins with its publish, and nothing else is a beginning; it was not refused, returned or expired;
- its first delivery is not marked redelivered, every later one is, or it is not known; a first one may be marked if a
  channel or connection was ending since the publish, which may have had the message unseen;
- before every later delivery its holder released it or was seen to end, and no lines were lost between the two;
- only its holder releases it or settles it, once, or handing it out does (auto-ack), and nothing follows the
  settlement but the publish's confirmation.

One that is not yet settled at the end is regular too, unless it was confirmed and some queue was drained: it might be
lost. Where a settlement failed, or its outcome is unknown, and it does not say of which messages it was, no message is
regular: it may have been this one's. All others, and whatever is not sure, are *irregular*, and known by a hash. The
row-based form then judges the events of irregular messages; it alone reports violations (`Prefiltered.judge`), so a
finding is the row-based form's in every field.

What is remembered of a message that is done with is 16 bytes: its hash, half of its lifecycle's hash, and the counts.
What meets that hash again makes the message irregular and takes the counts back. So do two messages of one hash, since
they differ in the second (see `rows`): a collision of hashes makes messages irregular, and clears none, unless both
agree.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from seriatim_models.history.event import GAP, SETTLES, Event
from seriatim_models.history.unrecorded import missing_kinds
from seriatim_models.properties.base import Finding
from seriatim_models.properties.blackbox.conservation import (
    Conservation,
    ConservationSummary,
    Poll,
    UnseenPolls,
)
from seriatim_models.properties.blackbox.lifecycle import (
    LifecycleProperty,
    Lifecycles,
    RegularCounts,
)
from seriatim_models.properties.blackbox.naming import (
    Holder,
    connection,
)
from seriatim_models.properties.blackbox.recorders import LatestLines
from seriatim_models.properties.columnar.columns import (
    Bools,
    Ints,
    Names,
    among,
    array_of,
    stable_order,
)
from seriatim_models.properties.columnar.rows import (
    ACQUIRED,
    ANSWERED,
    BORN,
    CONFIRMED,
    OTHER,
    REFUSED,
    SENT,
    SETTLED,
    SURELY,
    Hashes,
    Rows,
)

FAR = 2**62
NEVER_HELD = -1
"""Since when a settled message was held, if it was settled by being handed out."""
GONE = -1
"""The state of a row that is no longer open."""
MOST = 2**14 - 1
"""Acquisitions of one message that its counts have room for; with more it is irregular."""
BATCH = 50_000
"""Events that the row-based form summarises at a time."""

# Any: a row of several fields, or a word
Entries = npt.NDArray[Any]

OPEN = np.dtype(
    [
        ("lifecycle", np.uint64),
        ("begun", np.int64),  # the place of its publish
        ("since", np.int64),  # the place of the last acquisition or else publish; `NEVER_HELD`
        ("by", np.int32),
        ("count", np.uint16),
        ("unknown", np.uint16),  # acquisitions whose flag says nothing
        ("state", np.int8),  # the last of SENT, ACQUIRED, RELEASED, SETTLED
        ("confirmed", np.bool_),
    ],
    align=True,
)

# A finished message's word: half of its lifecycle's hash, three flags and two counts.
_LIFE = np.uint64(0xFFFFFFFF00000000)
_BACK = np.uint64(1 << 31)
"""Its counts were taken back: it turned out to be irregular."""
_CONFIRMED = np.uint64(1 << 30)
_AT_ONCE = np.uint64(1 << 29)
"""It was settled by being handed out."""
_UNKNOWN_AT = np.uint64(14)
_COUNT = np.uint64(MOST)
_WHOLE = np.uint64(2**64 - 1)


class _SortedRun:
    """Sorted hashes, each with what is kept of it, in arrays of one length."""

    def __init__(self, hashes: Hashes, kept: Entries, gone: int = 0) -> None:
        self.hashes = hashes
        self.kept = kept
        self.gone = gone
        """How many of them are GONE, for those that have a state."""

    def __len__(self) -> int:
        return len(self.hashes)


class _SortedRuns:
    """What is kept by hash, in sorted runs; two of like size become one, which is n log n work in all."""

    def __init__(self) -> None:
        self.runs: list[_SortedRun] = []

    def find(self, hashes: Hashes) -> Iterator[tuple[_SortedRun, Ints, Ints]]:
        """Each run that has some, the places in it, and which of the hashes they are."""
        for run in self.runs:
            at = np.searchsorted(run.hashes, hashes)
            at[at == len(run)] = 0
            which = np.flatnonzero(run.hashes[at] == hashes)
            if len(which):
                yield run, at[which], which

    def add(self, hashes: Hashes, kept: Entries) -> None:
        """Sorted hashes that are not there yet."""
        if not len(hashes):
            return
        self.runs.append(_SortedRun(hashes, kept))
        while len(self.runs) > 1 and len(self.runs[-2]) < 2 * len(self.runs[-1]):
            self.runs[-2:] = [_merged(*self.runs[-2:])]

    def state(self) -> list[tuple[bytes, bytes, int]]:
        """The runs as data."""
        return [(run.hashes.tobytes(), run.kept.tobytes(), run.gone) for run in self.runs]

    def restore(self, state: Iterable[tuple[bytes, bytes, int]], kind: npt.DTypeLike) -> None:
        """Have the runs of another one that had this state; `kind` is that of what is kept."""
        self.runs = [
            _SortedRun(array_of(hashes, np.uint64), array_of(kept, kind), gone)
            for hashes, kept, gone in state
        ]

    @property
    def nbytes(self) -> int:
        return sum(r.hashes.nbytes + r.kept.nbytes for r in self.runs)


def _merged(a: _SortedRun, b: _SortedRun) -> _SortedRun:
    at = np.searchsorted(a.hashes, b.hashes) + np.arange(len(b))
    of_a = np.ones(len(a) + len(b), np.bool_)
    of_a[at] = False
    hashes = np.empty(len(of_a), a.hashes.dtype)
    kept = np.empty(len(of_a), a.kept.dtype)
    hashes[at], hashes[of_a] = b.hashes, a.hashes
    kept[at], kept[of_a] = b.kept, a.kept
    return _SortedRun(hashes, kept, a.gone + b.gone)


class _Opens(_SortedRuns):
    """Messages that are not done with. Those that are GONE stay until they are more than half of their run."""

    def tidy(self) -> None:
        for k, run in enumerate(self.runs):
            if 2 * run.gone > len(run):
                there = run.kept["state"] != GONE
                self.runs[k] = _SortedRun(run.hashes[there], run.kept[there])
        self.runs = [run for run in self.runs if len(run)]


class Prefiltered(NamedTuple):
    """What the pre-filter counted, and what is left to judge."""

    counted: RegularCounts
    """Of regular messages."""
    irregular: Hashes
    """Sorted: the messages that the row-based form must judge."""
    published: bool
    """Whether the history records any publish."""
    last: Mapping[str, int]
    """Place of the last traffic by queue."""
    polls: Mapping[Poll, int]
    """How many polls of somebody were not answered, whatever they name."""
    unknown: Sequence[str]
    """Queues of polls whose outcome nobody knows."""
    unseen_polls: UnseenPolls
    """By their places in the run."""
    recorders: LatestLines
    """Of all recorders."""

    def joined(self, other: Prefiltered) -> Prefiltered:
        """Of two pre-filters that had different messages of one run."""
        return Prefiltered(
            RegularCounts(*(a + b for a, b in zip(self.counted, other.counted, strict=True))),
            np.union1d(self.irregular, other.irregular),
            self.published or other.published,
            {
                q: max(self.last.get(q, -1), other.last.get(q, -1))
                for q in {**self.last, **other.last}
            },
            self.polls,
            self.unknown,
            self.unseen_polls,
            self.recorders,
        )

    def about_irregular(self, rows: Rows) -> Ints:
        """The places of the events that name an irregular message."""
        return places_about(self.irregular, rows)

    def judge(self, prop: LifecycleProperty, placed: Iterable[tuple[int, Event]]) -> Finding:
        """The finding of a pre-filtered property. `placed`: the events that name an irregular message, and those that
        concern none (`rows.is_general`), in the run's order with their places. Without irregular messages none are
        needed.
        """
        left = IrregularMessages(self, prop)
        left.take(placed)
        return left.finish()


def places_about(messages: Hashes, rows: Rows) -> Ints:
    """The places of the events that name one of these messages, which are sorted."""
    return places_naming(messages, rows.n, rows.message)


def places_naming(messages: Hashes, n: Ints, message: Hashes) -> Ints:
    """The same of rows of which only the place `n` and the message are known."""
    found: Ints = np.unique(n[among(messages, message)])
    return found


class IrregularMessages:
    """`Prefiltered.judge`, given its events in batches."""

    def __init__(self, prefiltered: Prefiltered, prop: LifecycleProperty) -> None:
        assert prop.prefiltered
        self._prefiltered = prefiltered
        self._prop = prop
        self._summary: Lifecycles | None = None
        self._places = array("q")
        self._waiting: list[Event] = []

    def take(self, placed: Iterable[tuple[int, Event]]) -> None:
        """Add the next events."""
        for place, event in placed:
            if event.ev in self._prop.reads and (event.ev != GAP or self._prop.may_miss(event)):
                self._places.append(place)
                self._waiting.append(event)
                if len(self._waiting) == BATCH:
                    self._fold()

    def _fold(self) -> Lifecycles:
        more = self._prop.map(self._waiting)
        known, self._waiting = self._summary, []
        self._summary = more if known is None else self._prop.combine(known, more)
        return self._summary

    def _position(self, place: int) -> int:
        """Of a place in the run, the position of the last event given that is not after it."""
        return bisect_right(self._places, place) - 1

    def finish(self) -> Finding:
        """The finding on the whole run."""
        summary, prefiltered = self._fold(), self._prefiltered
        if isinstance(summary, ConservationSummary):
            # The traffic of regular messages counts too. It is compared with positions of the events given.
            last = {q: bisect_left(self._places, p) for q, p in prefiltered.last.items()}
            summary.traffic.last = last
            summary.traffic.polls = dict(prefiltered.polls)
            summary.traffic.unknown = set(prefiltered.unknown)
            summary.traffic.unseen_polls = prefiltered.unseen_polls.moved(self._position)
            summary.published = prefiltered.published
            summary.recorders.join(prefiltered.recorders)
        tested, untestable = self._prop.regular_cases(prefiltered.counted)
        summary.tested += tested
        summary.untestable += untestable
        return self._prop.finish(summary)


class PrefilterState(msgspec.Struct):
    """What a `Prefilter` keeps of a run."""

    holders: list[Holder]
    kept: ConservationSummary
    opens: list[tuple[bytes, bytes, int]]
    finished: list[tuple[bytes, bytes, int]]
    irregular: list[tuple[bytes, bytes, int]]
    published: bool
    voids: bool
    last: dict[str, int]
    end: bytes


class Prefilter:
    """Clears regular messages by the rows of a run, which it is given batch after batch in order."""

    def __init__(self) -> None:
        self.holders: Names[Holder] = Names()
        """The numbers of holders, for whoever makes the rows."""
        self._judge = Conservation()
        self._kept = ConservationSummary()
        self._opens = _Opens()
        self._finished = _SortedRuns()
        self._irregular = _SortedRuns()
        self._published = False
        self.voids = False
        """Whether some settlement without effect, or perhaps without, does not say of which messages it was."""
        self._last: dict[str, int] = {}
        self._end: Ints = np.zeros(0, np.int64)
        """By number of a holder: the place of the first sign of its end, or far."""
        self._of_connection: dict[Holder, list[int]] = defaultdict(list)

    @property
    def nbytes(self) -> int:
        """Bytes that are kept for messages."""
        return self._opens.nbytes + self._finished.nbytes + self._irregular.nbytes

    def take(
        self,
        rows: Rows,
        general: Sequence[tuple[int, Event]],
        queues: Mapping[str, int],
        polls: Sequence[tuple[int, Event]],
        recorders: LatestLines,
    ) -> None:
        """Add the next batch, see `BatchRows`: `general`, `polls` and `recorders` are of all messages, and go up to the
        batch's last place.
        """
        self._last |= queues
        self._kept.recorders.join(recorders)
        self._take_general(merge(general, polls, key=itemgetter(0)))
        if len(rows.n):
            self._published |= rows.publishes_begin
        steps = np.flatnonzero(rows.kind != ANSWERED)
        if len(steps):
            self._advance_messages(rows.only(steps[stable_order(rows.message[steps])]))
            self._opens.tidy()

    def _take_general(self, general: Iterable[tuple[int, Event]]) -> None:
        """Ends, gaps, looks, consumers and polls, as the row-based form summarises them."""
        ends = self._kept.sessions.ends
        known = len(ends)
        for place, event in general:
            if missing_kinds(event):
                self.voids = True  # each property misses something else
            elif event.ev == "get" and event.m:
                self._judge.poll(self._kept.traffic, event, place)
            elif event.ev not in SETTLES:
                self._kept.n = place
                self._judge.add(self._kept, event)
            elif event.ph in ("fail", "info") and not event.ms:
                self.voids = True
        begin = len(self._end)
        fresh = list(islice(self.holders, begin, None))
        self._end = np.append(self._end, np.full(len(fresh), FAR, np.int64))
        for number, name in enumerate(fresh, begin):
            self._of_connection[connection(name)].append(number)
            for ended in (name, connection(name)):
                if ended in ends:
                    self._end[number] = min(self._end[number], ends[ended].pos)
        for name in islice(ends, known, None):
            numbers = self._of_connection.get(name, [])
            lone = self.holders.get(name)
            at = np.array(numbers if lone is None else [*numbers, lone], np.int64)
            self._end[at] = np.minimum(self._end[at], ends[name].pos)

    def _advance_messages(self, rows: Rows) -> None:
        """Move the state of every message that the rows, sorted by message, name; what ends or becomes irregular
        changes its table.
        """
        # Of each row: whether a message begins there, and the message's number.
        begins = np.append(True, rows.message[1:] != rows.message[:-1])
        of = np.cumsum(begins) - 1
        # From here on one element a message: its hash, and its state before the batch, that of a new one until found.
        message = rows.message[begins]
        now = np.zeros(len(message), OPEN)
        now["state"] = SENT
        now["lifecycle"] = rows.lifecycle[begins]
        now["begun"] = now["since"] = rows.n[begins]
        # Which bits of the lifecycle's hash must agree; all, but for what is done with.
        agrees = np.full(len(message), _WHOLE)
        new = np.ones(len(message), np.bool_)
        known = np.zeros(len(message), np.bool_)  # to be irregular
        opens, done = [], []
        for run, at, which in self._opens.find(message):
            there = run.kept["state"][at] != GONE
            opens.append((run, at[there], which[there]))
            now[which[there]] = run.kept[at[there]]
            new[which[there]] = False
        for run, at, which in self._finished.find(message):
            there = (run.kept[at] & _BACK) == 0
            done.append((run, at[there], which[there]))
            now["lifecycle"][which[there]] = run.kept[at[there]]
            now["state"][which[there]] = SETTLED
            now["begun"][which[there]] = 0  # not remembered
            agrees[which[there]] = _LIFE
            new[which[there]] = False
        for _, _, which in self._irregular.find(message):
            known[which] = True
        # `now` becomes the state after the batch, and `bad` says which messages have become irregular in it.
        bad = self._advance(rows, of, begins & new[of], now, agrees)
        bad &= ~known
        settled = now["state"] == SETTLED
        # Back into the tables: open ones stay or leave, finished ones are marked, the rest is added.
        for run, at, which in opens:
            over = bad[which] | settled[which]
            run.kept[at[~over]] = now[which[~over]]
            run.kept["state"][at[over]] = GONE
            run.gone += int(np.count_nonzero(over))
        good = ~bad & ~known
        for run, at, which in done:
            run.kept[at[bad[which]]] |= _BACK
            run.kept[at[now["confirmed"][which]]] |= _CONFIRMED
            good[which] = False
        self._irregular.add(message[bad], now["begun"][bad])
        self._finished.add(message[good & settled], _words(now[good & settled]))
        fresh = good & new & ~settled
        self._opens.add(message[fresh], now[fresh])

    def _advance(self, rows: Rows, of: Ints, births: Bools, now: Entries, agrees: Hashes) -> Bools:
        """Move `now`, the state of each message, over the rows sorted by message; returns which are irregular."""
        # Of each row: whether it says what a regular message's row may not.
        kind = rows.kind
        confirms = (kind == CONFIRMED) | (kind == BORN)
        wrong = ((rows.lifecycle ^ now["lifecycle"][of]) & agrees[of]) != 0
        wrong |= births != (kind == SENT)
        wrong[births & confirms] = False
        wrong |= (kind == REFUSED) | (kind == OTHER)
        now["confirmed"][of[confirms]] = True
        bad = np.zeros(len(now), np.bool_)
        bad[of[wrong]] = True

        # From here on only the steps of lifecycles, sorted by message: acquired, released, settled.
        steps = np.flatnonzero((kind >= ACQUIRED) & (kind <= SETTLED))
        of, kind, n, by = of[steps], kind[steps], rows.n[steps], rows.by[steps]
        flag = rows.redelivered[steps]
        first = np.append(True, of[1:] != of[:-1])[: len(of)]
        begin = of[first]
        acquired = kind == ACQUIRED

        def before(values: npt.NDArray[Any], at_first: npt.NDArray[Any]) -> npt.NDArray[Any]:
            """Of each step what the step before it had, or what was known when the batch began."""
            out = np.empty_like(values)
            out[1:] = values[:-1]
            out[first] = at_first[begin]
            return out

        # Of each step: the kind, holder and place of the one before it, of which the place is an acquisition's.
        was = before(kind, now["state"])
        who = before(by, now["by"])
        # A step that is no acquisition follows one, or is wrong.
        since = np.where(acquired, n, before(n, now["since"]))
        earlier = before(since, now["since"])
        # Which acquisitions are not the first, come while another holds the message, are first and marked all the same.
        again = acquired & (was != SENT)
        held = again & (was == ACQUIRED)
        marked = acquired & ~again & (flag > 0)
        wrong = again & (flag == 0)
        wrong |= marked & ((flag == SURELY) | ~self._ending(earlier, n, marked))
        wrong |= acquired & (was == SETTLED)
        wrong |= held & (self._end[who] >= n)
        wrong |= ~acquired & ((was != ACQUIRED) | (who != by))
        # A fault, of which P1 knows what it may do, is a gap to P2 and P3.
        if kept := [*self._kept.gaps, *(f.pos for f in self._kept.traffic.faults)]:
            gaps = np.sort(kept)
            wrong |= again & (np.searchsorted(gaps, earlier) != np.searchsorted(gaps, n))
        bad[of[wrong]] = True

        # Of each message its last step in the batch, and its counts.
        last = np.append(first[1:], True)[: len(of)]
        at = of[last]
        now["state"][at], now["by"][at] = kind[last], by[last]
        now["since"][at] = np.where((kind == SETTLED) & (since == n), NEVER_HELD, since)[last]
        count = now["count"] + np.bincount(of[acquired], minlength=len(now))
        unknown = np.bincount(of[acquired & ((flag == -1) | marked)], minlength=len(now))
        bad |= count > MOST
        now["count"] = np.minimum(count, MOST)
        now["unknown"] += np.minimum(unknown, MOST).astype(np.uint16)
        return bad

    def _ending(self, after: Ints, before: Ints, wanted: Bools) -> Bools:
        """Of the wanted: whether a channel or connection was ending between two places, as `holding.Endings` has it.
        Ends of single consumers would excuse as well, but only in their queue; they are left to it.
        """
        out = np.zeros(len(wanted), np.bool_)
        if wanted.any():
            ends = [*self._kept.sessions.all_ends()]
            begun = np.sort(np.array([end.pos for end in ends], np.int64))
            done = np.sort(np.array([end.done for end in ends if end.done is not None], np.int64))
            out[wanted] = np.searchsorted(begun, before[wanted], "right") > np.searchsorted(
                done, after[wanted], "right"
            )
        return out

    def begun(self, messages: Hashes) -> int:
        """A place in the run before which nothing is recorded of these messages, which are open or irregular."""
        found = [run.kept[at] for run, at, _ in self._irregular.find(messages)]
        for run, at, _ in self._opens.find(messages):
            there = run.kept[at]
            found.append(there["begun"][there["state"] != GONE])
        return min((int(of.min()) for of in found if len(of)), default=0)

    def state(self) -> PrefilterState:
        """What is kept of the run so far."""
        return PrefilterState(
            list(self.holders),
            self._kept,
            self._opens.state(),
            self._finished.state(),
            self._irregular.state(),
            self._published,
            self.voids,
            self._last,
            self._end.tobytes(),
        )

    def restore(self, state: PrefilterState) -> None:
        """Go on where another one was that had this state."""
        self.holders, self._kept = Names.of(state.holders), state.kept
        self._opens.restore(state.opens, OPEN)
        self._finished.restore(state.finished, np.uint64)
        self._irregular.restore(state.irregular, np.int64)
        self._published, self.voids, self._last = state.published, state.voids, state.last
        self._end = array_of(state.end, np.int64)
        for number, name in enumerate(state.holders):
            self._of_connection[connection(name)].append(number)

    def _drained(self) -> bool:
        self._kept.traffic.last = dict(self._last)
        return any(self._judge.drained(self._kept, q) for q in self._kept.traffic.looks)

    def irregular(self) -> Hashes:
        """Sorted: the messages that the row-based form must judge, if the run is over."""
        return self._irregular_if(not self.voids and self._drained())

    def _irregular_if(self, drained: bool) -> Hashes:
        """The same, where it is known whether some queue was drained."""
        found = [run.hashes for run in self._irregular.runs]
        if self.voids:
            found += [run.hashes[run.kept["state"] != GONE] for run in self._opens.runs]
            found += [run.hashes[(run.kept & _BACK) == 0] for run in self._finished.runs]
        elif drained:
            found += [
                run.hashes[(run.kept["state"] != GONE) & run.kept["confirmed"]]
                for run in self._opens.runs
            ]
        return np.sort(np.concatenate([np.zeros(0, np.uint64), *found]))

    def finish(self) -> Prefiltered:
        """The run is over."""
        kept = self._kept
        drained = self._drained()
        irregular = self._irregular_if(drained)
        count = unknown = at_once = safe = left = 0
        if self.voids:
            self._opens, self._finished = _Opens(), _SortedRuns()
        for run in self._opens.runs:
            there = run.kept["state"] != GONE
            if drained:
                there &= ~run.kept["confirmed"]
            count += int(run.kept["count"][there].sum(dtype=np.int64))
            unknown += int(run.kept["unknown"][there].sum(dtype=np.int64))
            left += int(np.count_nonzero(run.kept["confirmed"][there]))
        for run in self._finished.runs:
            words = run.kept[(run.kept & _BACK) == 0]
            count += int((words & _COUNT).sum())
            unknown += int(((words >> _UNKNOWN_AT) & _COUNT).sum())
            at_once += int(np.count_nonzero(words & _AT_ONCE))
            safe += int(np.count_nonzero(words & _CONFIRMED))
        return Prefiltered(
            counted=RegularCounts(
                acquisitions=count,
                undecided_flags=unknown,
                settled_at_once=at_once,
                confirmed_settled=safe,
                confirmed_open=left,
            ),
            irregular=irregular,
            published=self._published,
            last=dict(self._last),
            polls=dict(kept.traffic.polls),
            unknown=list(kept.traffic.unknown),
            unseen_polls=kept.traffic.unseen_polls,
            recorders=kept.recorders,
        )


def _words(now: Entries) -> Hashes:
    counts = now["count"].astype(np.uint64) | (now["unknown"].astype(np.uint64) << _UNKNOWN_AT)
    flags = np.where(now["confirmed"], _CONFIRMED, np.uint64(0))
    flags |= np.where(now["since"] == NEVER_HELD, _AT_ONCE, np.uint64(0))
    found: Hashes = (now["lifecycle"] & _LIFE) | counts | flags
    return found
