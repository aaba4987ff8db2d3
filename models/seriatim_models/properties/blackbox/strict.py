"""P5: strict order, by interval reasoning.

The broker acquired message m for a consumer at some instant in [lo, hi]. If an earlier message m' was *definitely*
available through all of [lo, hi], the broker took m although m' was there: whatever the instant was, the order is
broken.

When m' is definitely available:

- At first, from when it was enqueued to the earliest instant of its first acquisition. That its first
  *recorded* delivery was its first acquisition is known if that is not marked redelivered, or if the recorder sees
  every acquisition. A message never seen again was perhaps in flight to a channel that closed: nothing is
  definite then, unless the recorder sees everything.
- After a requeue, from the latest instant at which that took effect, if somebody knows it (`t_hi`, or a recorder
  inside
  the broker), to the earliest instant of the next acquisition. A nack has no reply: from outside a client library
  there is no such instant, and a broker that requeues to the tail cannot be convicted by this property (P6 is for
  that).

When m' is definitely earlier than m: both come from one ordered publisher and its sequence is lower; or the broker's
own
position is lower; or its publish was confirmed before that of m began. In all three m' was in the queue before m, so
it was
enqueued when m was acquired, and the start of its first availability need not be known.

The order is judged within one priority. Not for queues whose consumers select: there the consumer may not want m'.

The sweep: acquisitions by lo, each asking, among the availabilities begun before lo and ending after hi,
for the earliest message. "Ending after hi" is a suffix in the order of ends, so a Fenwick tree of minima answers in
O(log n), O(n log n) in all. One tree for each ordered stream, one for confirmed-before-begun.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from seriatim_models.history.complete import EXACT, SETTLES
from seriatim_models.history.event import Event
from seriatim_models.properties.base import Finding, WholeHistory
from seriatim_models.properties.blackbox.lives import (
    ACQUIRES,
    ENDS,
    acquires,
    began,
    connection,
    end_of,
    holder,
)

NEVER = float("inf")
ALWAYS = float("-inf")
Time = float  # nanoseconds as Python ints, or one of the two infinities; ints are compared exactly


class Acquisition(NamedTuple):
    lo: Time
    hi: Time
    event: Event


class Available(NamedTuple):
    """A message definitely available from `start` to `end`; `until` is the acquisition that ends it, if seen.

    `first` marks the availability that began with enqueueing: against a later message its start does not matter.
    """

    start: Time
    end: Time
    m: str
    until: Event | None
    first: bool


class Place(NamedTuple):
    """A message's place in the queue: its streams with its number in each, and the bounds of its enqueueing."""

    streams: tuple[tuple[str, int], ...]
    begun: Time
    confirmed: Time
    publish: Event | None


class Violation(NamedTuple):
    """`why` says by what `available.m` is earlier."""

    acquisition: Acquisition
    available: Available
    why: str


def when(event: Event) -> int:
    """The instant of recording; the recording index stands for the clock where a history has none."""
    return event.t if event.t is not None else event.i


class Queue:
    """One queue's facts, gathered from its events in recording order."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.publishes: dict[str, Event] = {}
        self.confirms: dict[str, Event] = {}
        self.acquisitions: dict[str, list[Acquisition]] = defaultdict(list)
        self.available: list[Available] = []
        self._first_ends: dict[str, Available | None] = {}
        # Releases whose effect is bounded from above, not yet followed by an acquisition: message -> instant.
        self._back: dict[str, Time] = {}
        self._held: dict[str, dict[str, None]] = defaultdict(dict)
        self._exact = True
        for event in events:
            self._exact = self._exact and event.lvl in EXACT
            self._take(event)
        if self._exact:
            self._open_ended()

    def _take(self, event: Event) -> None:
        if event.ev == "publish":
            if event.ph == "fail":
                return
            self.publishes.setdefault(event.m, event)
            if event.ph == "ok" or event.lvl in EXACT:
                self.confirms.setdefault(event.m, event)
        elif acquires(event):
            self._acquire(event)
        elif event.ev in SETTLES and began(event):
            final = event.ev == "ack" or event.requeue is False
            for m in event.ms or ():
                self._held[holder(event)].pop(m, None)
                if not final:
                    self._release(m, event)
        elif event.ev == "expire":
            # Gone at an instant that is known only to a recorder inside; otherwise nothing is definite.
            self._gone(event)
        elif event.ev in ENDS and event.lvl in EXACT:
            name = end_of(event)
            for by in [b for b in self._held if b == name or connection(b) == name]:
                for m in self._held.pop(by):
                    self._release(m, event)

    def _acquire(self, event: Event) -> None:
        m, hi = event.m, event.t_hi if event.t_hi is not None else when(event)
        exact = event.lvl in EXACT
        lo: Time = event.t_lo if event.t_lo is not None else (when(event) if exact else ALWAYS)
        if m not in self._first_ends:
            known = exact or event.redelivered is False
            self._first_ends[m] = (
                Available(ALWAYS, lo, m, event, True) if known and lo > ALWAYS else None
            )
        elif m in self._back:
            self.available.append(Available(self._back[m], lo, m, event, False))
        self._back.pop(m, None)
        self.acquisitions[m].append(Acquisition(lo, hi, event))
        if not event.autoack:
            self._held[holder(event)][m] = None

    def _release(self, m: str, event: Event) -> None:
        if event.t_hi is not None:
            self._back[m] = event.t_hi
        elif event.lvl in EXACT:
            self._back[m] = when(event)

    def _gone(self, event: Event) -> None:
        m = event.m
        end: Time = when(event) if event.lvl in EXACT else ALWAYS
        if m not in self._first_ends:
            self._first_ends[m] = Available(ALWAYS, end, m, event, True) if end > ALWAYS else None
        elif m in self._back and end > ALWAYS:
            self.available.append(Available(self._back[m], end, m, event, False))
        self._back.pop(m, None)

    def _open_ended(self) -> None:
        """A recorder that misses nothing: what was not taken until the end was available until the end."""
        for m in self.publishes:
            if m not in self._first_ends:
                self._first_ends[m] = Available(ALWAYS, NEVER, m, None, True)
        for m, start in self._back.items():
            self.available.append(Available(start, NEVER, m, None, False))

    def place(self, m: str) -> Place:
        """Where a message stands, as far as its publish and its deliveries tell."""
        publish, confirm = self.publishes.get(m), self.confirms.get(m)
        streams: list[tuple[str, int]] = []
        told = [e for e in (publish, confirm) if e] + [
            a.event for a in self.acquisitions.get(m, ())[:1]
        ]
        for event in told:
            if not streams and event.pub and event.pseq is not None:
                streams.append((f"stream {event.pub}", event.pseq))
        for event in told:
            if event.pos is not None:
                streams.append(("position", event.pos))
                break
        begun: Time = ALWAYS
        confirmed: Time = NEVER
        if publish:
            begun = publish.t_lo if publish.t_lo is not None else when(publish)
            if publish.ph == "ok" and publish.t_lo is None and publish.lvl not in EXACT:
                begun = ALWAYS  # only the confirm was seen
        if confirm:
            confirmed = confirm.t_hi if confirm.t_hi is not None else when(confirm)
        return Place(tuple(streams), begun, confirmed, publish or confirm)

    def availabilities(self) -> list[Available]:
        """Every interval in which some message was definitely available."""
        return [a for a in self._first_ends.values() if a] + self.available

    def taken(self) -> list[Acquisition]:
        """Every acquisition with two bounds, by the lower one."""
        held = [a for of in self.acquisitions.values() for a in of if a.lo > ALWAYS]
        return sorted(held, key=lambda a: (a.lo, a.hi, a.event.i))


class _Minima:
    """A Fenwick tree over the ends of intervals: the least key among those that end after a given instant."""

    def __init__(self, ends: Iterable[Time]) -> None:
        self._ends = sorted(set(ends))
        self._best: list[tuple[Time, int] | None] = [None] * (len(self._ends) + 1)

    def insert(self, end: Time, key: Time, what: int) -> None:
        # Ranks count from the latest end, so that "ends after" is a prefix.
        rank = len(self._ends) - bisect_left(self._ends, end)
        entry = (key, what)
        while rank <= len(self._ends):
            best = self._best[rank]
            if best is None or entry < best:
                self._best[rank] = entry
            rank += rank & -rank

    def least(self, after: Time) -> tuple[Time, int] | None:
        rank = len(self._ends) - bisect_right(self._ends, after)
        found: tuple[Time, int] | None = None
        while rank > 0:
            best = self._best[rank]
            if best is not None and (found is None or best < found):
                found = best
            rank -= rank & -rank
        return found


class Judged(NamedTuple):
    """`tested`: acquisitions at which the broker definitely had another choice, or made a wrong one."""

    acquisitions: int
    tested: int
    violations: list[Violation]


def sweep(queue: Queue) -> Judged:
    """Judge one queue in O(n log n)."""
    intervals = queue.availabilities()
    places = {m: queue.place(m) for m in {a.m for a in intervals} | set(queue.acquisitions)}
    in_stream: dict[str, list[Time]] = defaultdict(list)
    for a in intervals:
        for stream, _ in places[a.m].streams:
            in_stream[stream].append(a.end)
    streams = {s: _Minima(ends) for s, ends in in_stream.items()}
    confirmed = _Minima(a.end for a in intervals)
    choice = _Minima(a.end for a in intervals)

    def enter_order(n: int) -> None:
        a = intervals[n]
        for stream, number in places[a.m].streams:
            streams[stream].insert(a.end, number, n)
        if places[a.m].confirmed < NEVER:
            confirmed.insert(a.end, places[a.m].confirmed, n)

    by_order = _Entering(((a.start, n) for n, a in enumerate(intervals)), enter_order)
    by_choice = _Entering(
        ((_start(a, places), n) for n, a in enumerate(intervals)),
        lambda n: choice.insert(intervals[n].end, 0, n),
    )
    taken = queue.taken()
    tested = 0
    violations = []
    for acq in taken:
        by_order.until(acq.lo)
        by_choice.until(acq.lo)
        mine = places[acq.event.m]
        found = None
        for stream, number in mine.streams:
            best = streams[stream].least(acq.hi) if stream in streams else None
            if best and best[0] < number:
                found = Violation(acq, intervals[best[1]], f"{stream}: {best[0]} < {number}")
                break
        if found is None:
            best = confirmed.least(acq.hi)
            if best and best[0] < mine.begun:
                why = f"confirmed at {best[0]}, before the other was sent at {mine.begun}"
                found = Violation(acq, intervals[best[1]], why)
        if found:
            violations.append(found)
        tested += found is not None or choice.least(acq.hi) is not None
    return Judged(sum(map(len, queue.acquisitions.values())), tested, violations)


class _Entering:
    """Intervals waiting to enter a tree, by start."""

    def __init__(self, starts: Iterable[tuple[Time, int]], enter: Callable[[int], None]) -> None:
        self._waiting = sorted(starts, reverse=True)
        self._enter = enter

    def until(self, instant: Time) -> None:
        """Let in all that began before the instant."""
        while self._waiting and self._waiting[-1][0] < instant:
            self._enter(self._waiting.pop()[1])


def _start(a: Available, places: dict[str, Place]) -> Time:
    """When an availability had definitely begun, seen from a message that may be earlier or later."""
    return places[a.m].confirmed if a.first else a.start


def naive(queue: Queue) -> Judged:
    """Judge one queue by comparing every acquisition with every availability: the sentence itself, O(n²)."""
    intervals = queue.availabilities()
    places = {m: queue.place(m) for m in {a.m for a in intervals} | set(queue.acquisitions)}
    tested = 0
    violations = []
    for acq in queue.taken():
        mine = places[acq.event.m]
        through = [a for a in intervals if a.start < acq.lo and a.end > acq.hi]
        wrong = [(why, a) for a in through if (why := _earlier(places[a.m], mine))]
        if wrong:
            violations.append(Violation(acq, wrong[0][1], wrong[0][0]))
        choice = any(_start(a, places) < acq.lo and a.end > acq.hi for a in intervals)
        tested += bool(wrong) or choice
    return Judged(sum(map(len, queue.acquisitions.values())), tested, violations)


def _earlier(a: Place, b: Place) -> str:
    """Why a message is definitely before another; empty if it is not."""
    numbers = dict(b.streams)
    for stream, number in a.streams:
        if stream in numbers and number < numbers[stream]:
            return f"{stream}: {number} < {numbers[stream]}"
    if a.confirmed < b.begun:
        return f"confirmed at {a.confirmed}, before the other was sent at {b.begun}"
    return ""


class StrictOrder(WholeHistory):
    """P5. A case is an acquisition with both bounds known while some other message was definitely available: the
    broker had a choice, and a wrong one would show. An acquisition from a queue that may have been empty otherwise is
    counted as untestable.
    """

    id = "P5"
    sentence = "No consumer is given a message while an earlier one is available."
    source = (
        "https://qpid.apache.org strict ordering of the queue entry list (acquire the next available entry); "
        "AMQP 0-9-1 specification 4.7 for the place of a requeued message"
    )
    kind = "safety"
    scope = "queue"
    reads = ACQUIRES | SETTLES | ENDS | {"publish", "expire"}

    def finish(self, summary: list[Event]) -> Finding:
        acquisitions = tested = 0
        violations = []
        for _, events in sorted(queues(summary)):
            queue = Queue(events)
            judged = sweep(queue)
            acquisitions += judged.acquisitions
            tested += judged.tested
            violations += [_told(queue, v) for v in judged.violations]
        return Finding.of(self.id, tested, violations, n_untestable=acquisitions - tested)


def queues(events: Iterable[Event]) -> Iterator[tuple[str, list[Event]]]:
    """The events of each queue and priority; those that name no queue go to each that has a delivery."""
    own: dict[tuple[str, int | None], list[Event]] = defaultdict(list)
    prio: dict[tuple[str, str], int | None] = {}
    held = list(events)
    for event in held:
        if (event.ev == "publish" and event.prio is not None) or (
            acquires(event) and event.prio is not None
        ):
            prio.setdefault((event.q, event.m), event.prio)
    keys = {(e.q, prio.get((e.q, e.m))) for e in held if acquires(e)}
    by_queue: dict[str, list[tuple[str, int | None]]] = defaultdict(list)
    for key in sorted(keys, key=str):
        by_queue[key[0]].append(key)
    for event in held:
        if event.m and event.q:
            own[event.q, prio.get((event.q, event.m))].append(event)
        elif event.q:
            for key in by_queue[event.q]:
                own[key].append(event)
        else:
            for key in keys:
                own[key].append(event)
    for key in keys:
        yield str(key), own[key]


def _told(queue: Queue, v: Violation) -> tuple[str, list[Event]]:
    """A violation in words, with its events: the two publishes, the acquisition, and the one that came too late."""
    m, taken = v.available.m, v.acquisition
    start = "its enqueueing" if v.available.first else v.available.start
    end = "the end of the recording" if v.available.end == NEVER else v.available.end
    why = (
        f"{m} was available from {start} to {end}; {holder(taken.event)} was given {taken.event.m} between "
        f"{taken.lo} and {taken.hi} (event {taken.event.i}), although {m} is earlier ({v.why})"
    )
    events = [
        p.publish for p in (queue.place(m), queue.place(taken.event.m)) if p.publish is not None
    ]
    events.append(taken.event)
    if v.available.until is not None:
        events.append(v.available.until)
    return why, events
