"""P5: strict order, by interval reasoning.

The broker acquired message m for a consumer at some instant in [lo, hi]. If an earlier message m' was *definitely*
available through all of [lo, hi], the broker took m although m' was there: whatever the instant was, the order is
broken.

When m' is definitely available:

- At first, from when it was enqueued to the earliest instant of its first acquisition. That its first
  *recorded* delivery was its first acquisition is known if that is not marked redelivered, or if the recorder sees
  every acquisition. A message never seen again was perhaps in flight to a channel that closed: nothing is
  definite then, unless the recorder sees everything. Where publishes are recorded, a message is known from its
  publish until it is settled for good; a delivery of one that is not known says nothing about availability.
- After a requeue, from the latest instant at which that took effect, if somebody knows it (`t_hi`, or a recorder
  inside the broker), to the earliest instant of the next acquisition. A nack has no reply: from outside a client
  library there is no such instant, and this property cannot report a broker that requeues to the tail (P6 can).

When m' is definitely earlier than m: both come from one ordered publisher and its sequence is lower; or the broker's
own position is lower; or its publish was confirmed before that of m began. In all three m' was in the queue before m,
so it was enqueued when m was acquired, and the start of its first availability need not be known.

The order is judged within one priority, and within a partition and a key where messages have them. Not judged are
acquisitions by consumers that select (no-local), since they may not want m', and of messages that died: the queue that
they come to has them in the order of deaths.

One pass in recording order. An acquisition [lo, hi] is seen before the end of every availability that could
contradict it, because that end is the lower bound of something recorded later.
So the latest acquisitions wait, sorted by what makes them later (sequence, position, begin of publish; and `lo`, for
whether the broker had a choice at all), and every end of an availability takes out those that it contradicts.
Each is taken out once, so the pass is O(n log n).
They wait for the next `WINDOW` acquisitions of their queue and no longer: a message that comes back later than that
still contradicts acquisitions, but only those that are in the window.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, NamedTuple

import msgspec

from seriatim_models.history.bounded import ForgetsOldest, forget_oldest
from seriatim_models.history.event import EXACT, GAP, SETTLES, Event, began
from seriatim_models.history.unrecorded import missing_kinds
from seriatim_models.properties.base import Finding, ProfileValue
from seriatim_models.properties.blackbox.aggregation import AggregationState, SequentialProperty
from seriatim_models.properties.blackbox.lifecycle import (
    ACQUIRES,
    LifecycleKey,
    acquires,
    first,
    holders,
    may_drop,
    named,
    ranks,
)
from seriatim_models.properties.blackbox.naming import (
    ENDS,
    Holder,
    each_once,
    holder,
)

EMPTIES = frozenset({"purge", "delete"})
NEVER = float("inf")
ALWAYS = float("-inf")
Time = (
    int | float
)  # nanoseconds as Python ints, or one of the two infinities; ints are compared exactly

WINDOW = 2048  # acquisitions of a queue; all consumers together prefetch hundreds, and the state must stay small


GONE_KEPT = 4096  # messages; who sends one again for want of an answer does so soon


class Available(NamedTuple):
    """A message definitely available from `start` to `end`; `until` is the event that ends it, if seen.

    `first` marks the availability that began with enqueueing: against a later message its start does not matter.
    """

    start: Time
    end: Time
    m: str
    until: Event | None
    first: bool
    since: tuple[Event, ...] = ()
    """Of one that came back: its acquisition, and what released it."""


class OrderedLine(NamedTuple):
    """What is ordered by itself in a queue: a partition, a key, a priority."""

    part: int | None = None
    key: str | None = None
    prio: int | None = None


class Place(NamedTuple):
    """A message's place in its queue, as far as it is known, and the bounds of its enqueueing."""

    line: OrderedLine
    stream: str
    number: int
    pos: int | None
    begun: Time
    confirmed: Time
    publish: Event | None
    confirm: Event | None


class Known(msgspec.Struct, array_like=True):
    """A message from its publish, or first acquisition, until it is settled for good."""

    publish: Event | None = None
    confirm: Event | None = None
    taken: bool = False
    """It was acquired, or may have been."""
    back: Time | None = None
    """It was released, at this instant at the latest, and nobody has acquired it since."""
    given: Event | None = None
    """Its latest acquisition."""
    released: Event | None = None
    """By which it is back."""
    prio: int | None = None
    twice: bool = False
    """It was sent more than once, so that it may have either place in its stream."""
    by: Holder | None = None
    """Who acquired it last: only that holder can release it."""
    copies: int = 1
    """How often it was sent and is not settled."""


class Row(msgspec.Struct, array_like=True):
    """An acquisition waiting to be judged."""

    serial: int
    m: str
    line: OrderedLine
    stream: str
    number: int
    pos: int | None
    begun: Time
    lo: Time
    hi: Time
    publish: Event | None
    event: Event
    tested: bool = False
    violates: bool = False


class Lane(msgspec.Struct, array_like=True, dict=True):
    """One queue's window, and its counts. The order of the window is kept beside the fields, see `OrderPass.order`."""

    rows: list[Row] = []
    acquisitions: int = 0
    tested: int = 0
    """Those that left the window."""
    violations: int = 0
    exact: bool = True
    """Every event of the queue was recorded inside the broker."""
    publishers: list[str] = []
    """Streams of which some publish was recorded."""
    drops: bool = False
    """Its messages may leave it by themselves."""
    expired: bool = False
    """That some did was recorded."""
    deleted: bool = False
    """The queue was deleted and is not known to be there again: what is published may go nowhere."""
    asked: bool = False
    """Some publish was recorded when it began: so a confirm of a message that is not known comes late, not alone."""


class Strict(msgspec.Struct, ForgetsOldest):
    """The aggregation state of P5."""

    bounded: ClassVar = ("gone",)
    known: dict[LifecycleKey, Known] = {}
    held: dict[Holder, dict[LifecycleKey, None]] = {}
    """Of each holder, what it holds."""
    lanes: dict[str, Lane] = {}
    inexact: bool = False
    """Some event that names no queue was recorded outside the broker."""
    unplaced: list[str] = []
    """Streams of which some publish named no queue."""
    lost: bool = False
    """Lines were lost: of a message that is confirmed alone nobody knows whether it was given to somebody there."""
    unpublished: bool = False
    """Publishes are declared as not recorded, so that any message may be a copy of another one."""
    gone: dict[LifecycleKey, None] = {}
    """Messages whose settlement was sent, which may never have come, or that lines were lost of; the latest
    `GONE_KEPT`."""
    ranked: list[str] = []
    """Queues to which some message was published with a priority; the empty name stands for all."""
    why: str = ""
    witness: list[Event] = []

    def blame(self, why: str, witness: list[Event]) -> None:
        """Keep the witness of a violation if it is the smallest so far."""
        if not self.witness or _rank(witness) < _rank(self.witness):
            self.why, self.witness = why, witness


def _rank(witness: list[Event]) -> tuple[int, int]:
    return len(witness), witness[-1].i


def when(event: Event) -> int:
    """The instant of recording; the recording index stands for the clock where a history has none."""
    return event.t if event.t is not None else event.i


def place(known: Known | None, event: Event | None) -> Place:
    """Where a message stands, by its publish or, where that does not show it, by its delivery."""
    publish, confirm = (known.publish, known.confirm) if known else (None, None)
    stream, number, pos = "", 0, None
    part, key = None, None
    for seen in (publish, confirm, event):
        if seen is None:
            continue
        sure = known is None or not known.twice or seen is event
        if not stream and sure and seen.pub and seen.pseq is not None:
            stream, number = f"stream {seen.pub}", seen.pseq
        if pos is None:
            pos = seen.pos
        if part is None:
            part = seen.part
        if key is None and (
            seen.q or seen is event
        ):  # an exchange routes by it, and orders nothing
            key = seen.key
    begun: Time = ALWAYS
    confirmed: Time = NEVER
    if publish:
        begun = publish.t_lo if publish.t_lo is not None else when(publish)
        if publish.ph == "ok" and publish.t_lo is None and publish.lvl not in EXACT:
            begun = ALWAYS  # only the confirm was seen
    if confirm:
        confirmed = confirm.t_hi if confirm.t_hi is not None else when(confirm)
    prio = known.prio if known else None
    if prio is None and event is not None:
        prio = event.prio
    return Place(
        OrderedLine(part, key, prio), stream, number, pos, begun, confirmed,
        publish or confirm, confirm,
    )  # fmt: skip


def may_refuse(given: Event, sent: Event | None) -> bool:
    """Whether the consumer of a delivery may have asked for no-local, and not be given what was sent: its `consume` is
    not recorded, and nobody knows that the publisher's connection is not its own.
    """
    asked = given.nolocal is not None or given.ev != "deliver"
    if asked or given.ch is None or given.pos is not None:  # readers of a log refuse nothing
        return False
    return sent is None or not (sent.conn and given.conn) or sent.conn == given.conn


def _another(known: Known, event: Event) -> bool:
    """Whether a delivery says that it is of another publish of its name than the one that is known."""
    sent = known.publish
    counted = sent is not None and sent.pseq is not None and event.pseq is not None
    return counted and sent is not None and sent.pub == event.pub and sent.pseq != event.pseq


def earlier(a: Place, b: Row) -> str:
    """Why a message is definitely before an acquired one; empty if it is not."""
    if a.stream and a.stream == b.stream and a.number < b.number:
        return f"{a.stream}: {a.number} < {b.number}"
    if a.pos is not None and b.pos is not None and a.pos < b.pos:
        return f"position: {a.pos} < {b.pos}"
    if a.confirmed < b.begun:
        return f"confirmed at {a.confirmed}, before the other was sent at {b.begun}"
    return ""


class WaitingRows:
    """The waiting acquisitions of one queue, by everything that may put them behind another message."""

    def __init__(self, rows: list[Row]) -> None:
        """`rows` is the lane's own list, which `add` and `oldest` change."""
        self._lists: dict[tuple[str, OrderedLine], list[tuple[Time, int, Row]]] = {}
        self.rows = rows
        for row in rows:
            self._index(row)

    def _keys(self, row: Row) -> Iterator[tuple[str, Time]]:
        if row.stream:
            yield row.stream, row.number
        if row.pos is not None:
            yield "position", row.pos
        if row.begun > ALWAYS:
            yield "begun", row.begun

    def add(self, row: Row) -> None:
        """Add the latest row."""
        self.rows.append(row)
        self._index(row)

    def _index(self, row: Row) -> None:
        if not row.violates:
            for name, number in self._keys(row):
                insort(self._lists.setdefault((name, row.line), []), (number, row.serial, row))
        if not row.tested:
            insort(self._lists.setdefault(("lo", row.line), []), (row.lo, row.serial, row))

    def _drop(self, name: str, number: Time, row: Row) -> None:
        held = self._lists.get((name, row.line), [])
        at = bisect_left(held, (number, row.serial))
        if at < len(held) and held[at][1] == row.serial:
            del held[at]
            if not held:
                del self._lists[name, row.line]

    def oldest(self) -> Row:
        """Remove and return the row that has waited longest."""
        row = self.rows.pop(0)
        self._drop("lo", row.lo, row)
        for name, number in self._keys(row):
            self._drop(name, number, row)
        return row

    def violating(self, a: Available, of: Place) -> list[Row]:
        """Remove the acquisitions that an availability contradicts, and return them in order."""
        found: dict[int, Row] = {}
        for name, number in (
            (of.stream, of.number),
            ("position", of.pos),
            ("begun", of.confirmed),
        ):
            if name and number is not None:
                for row in self._after(name, of.line, number, a, of.publish):
                    found[row.serial] = row
        for row in found.values():
            row.violates = row.tested = True
            self._drop("lo", row.lo, row)
            for name, value in self._keys(row):
                self._drop(name, value, row)
        return [found[serial] for serial in sorted(found)]

    def chosen(self, a: Available, of: Place) -> None:
        """Mark as tested the acquisitions at which an availability was another choice."""
        start = of.confirmed if a.first else a.start
        chosen = Available(ALWAYS, a.end, a.m, None, a.first)
        for row in self._after("lo", of.line, start, chosen, of.publish):
            row.tested = True
            self._drop("lo", row.lo, row)

    def _after(
        self, name: str, line: OrderedLine, number: Time, a: Available, sent: Event | None
    ) -> list[Row]:
        held = self._lists.get((name, line))
        if not held:
            return []
        at = bisect_right(held, (number, NEVER))
        return [
            row
            for _, _, row in held[at:]
            if row.hi < a.end and a.start < row.lo and not may_refuse(row.event, sent)
        ]


class OrderPass:
    """One pass over some events, which reads and updates the aggregation state."""

    rows_of: type[WaitingRows] = WaitingRows

    def __init__(self, state: Strict, returned: bool) -> None:
        self.state = state
        self._returned = returned

    def run(self, events: Iterable[Event]) -> None:
        """Take in events, in recording order."""
        for event in events:
            self._take(event)

    def _lane(self, q: str) -> Lane:
        lane = self.state.lanes.get(q)
        if lane is None:
            lane = self.state.lanes[q] = Lane()
        return lane

    def order(self, lane: Lane) -> WaitingRows:
        """A lane's waiting rows in order. They stay with the lane from chunk to chunk, but are no field of it: where it
        was read from a file, or copied, they are put in order again.
        """
        order: WaitingRows | None = lane.__dict__.get("order")
        if order is None:
            order = lane.__dict__["order"] = self.rows_of(lane.rows)
        return order

    def _find(self, q: str, m: str) -> Known | None:
        return self.state.known.get((q, m)) or self.state.known.get(("", m))

    def _take(self, event: Event) -> None:
        state = self.state
        if event.lvl not in EXACT:
            if event.q:
                self._lane(event.q).exact = False
            else:
                state.inexact = True
        if event.ev == "publish":
            self._publish(event)
        elif acquires(event):
            self._acquire(event)
        elif (event.ev in SETTLES or event.ev == "recover") and began(event):
            self._settle(event)
        elif event.ev in SETTLES and event.ph in ("fail", "info"):
            self._void(event)
        elif event.ev == "expire":
            self._expired(event)
        elif event.ev == "declare":
            lane = self._lane(event.q)
            lane.drops = lane.drops or may_drop(event)
            done = event.ph == "ok" or (event.ph == "" and event.lvl in EXACT)
            lane.deleted = lane.deleted and not done
        elif event.ev in EMPTIES and event.ph != "fail":
            self._emptied(event)
        elif event.ev in ENDS:
            self._end(event)
        elif event.ev == GAP:
            self._lost()
            self.state.unpublished |= "publish" in missing_kinds(event)

    def _end(self, event: Event) -> None:
        """A channel or connection ends: what it held is back, if the instant is known."""
        if event.lvl not in EXACT and event.t_hi is None:
            return
        held = self.state.held
        for by in holders(event, held):
            for key in held.pop(by):
                self._release(key, event, by)

    def _lost(self) -> None:
        """Lines were lost: what was in a queue, or with somebody, may have been given to anybody; and be there still
        beside what is sent again under its name.
        """
        self.state.lost = True
        for key in self.state.known:
            self._goes(key)
        self.state.known.clear()
        self.state.held.clear()

    def _emptied(self, event: Event) -> None:
        """A queue was purged or deleted: what may have been in it, and not with a consumer, may be gone."""
        known, q = self.state.known, event.q
        if event.ev == "delete":
            self._lane(q).deleted = True
        for key in [k for k in known if k[0] in (q, "")]:
            if not known[key].taken or known[key].back is not None:
                del known[key]

    def _publish(self, event: Event) -> None:
        if event.ph == "fail":
            return
        state = self.state
        lane = self._lane(event.q) if event.q else None
        key = event.q, event.m
        if lane is not None:
            if event.ph == "ok" and (lane.asked or state.lost) and key not in state.known:
                return
            lane.asked = lane.asked or event.ph == "invoke"
        streams = lane.publishers if lane is not None else state.unplaced
        if event.pub not in streams:
            streams.append(event.pub)
        if event.dead or (lane is not None and lane.deleted):
            return  # it is not there yet, or goes nowhere
        known = state.known.get(key)
        if known is None:  # under the name of one that was settled it may be a copy
            known = state.known[key] = Known(twice=key in state.gone)
        if known.publish is None and not known.taken:
            known.publish = event
        elif event.ph in ("", "invoke"):
            known.twice = True
            known.copies += 1
        if (event.ph == "ok" or event.lvl in EXACT) and known.confirm is None:
            known.confirm = event
        if known.prio is None:
            known.prio = event.prio
        if ranks(event) and event.q not in state.ranked:
            state.ranked.append(event.q)

    def _acquire(self, event: Event) -> None:
        state, q, m = self.state, event.q, event.m
        hi = event.t_hi if event.t_hi is not None else when(event)
        exact = event.lvl in EXACT
        lo: Time = event.t_lo if event.t_lo is not None else (when(event) if exact else ALWAYS)
        lane = self._lane(q)
        order = self.order(lane)
        lane.acquisitions += 1
        known = self._find(q, m)
        if known is not None and known.prio is None:
            known.prio = event.prio
        if known is None:
            published = event.pub in lane.publishers or event.pub in state.unplaced
            fresh = not published
        else:
            fresh = not known.taken
        at = place(known, event)
        if (
            known is not None and at.begun > lo
        ):  # perhaps of an earlier copy, whose callback ran late
            at = place(msgspec.structs.replace(known, publish=None, confirm=None), event)
        unranked = at.line.prio is None and not {q, ""}.isdisjoint(state.ranked)
        copied = known is not None and (known.twice or _another(known, event))
        if lo > ALWAYS and not event.dead and not unranked and not copied:
            if fresh:
                key = q, m
                copy = known is None and (state.unpublished or (state.lost and key in state.gone))
                if (exact or first(event)) and not copy:
                    self._ended(q, Available(ALWAYS, lo, m, event, True), known, event)
            elif known is not None and known.back is not None:
                self._came_back(q, m, known, lo, event)
            if not event.nolocal:
                order.add(
                    Row(
                        lane.acquisitions, m, at.line, at.stream, at.number, at.pos, at.begun, lo, hi, at.publish,
                        event,
                    )
                )  # fmt: skip
                if len(order.rows) > WINDOW:
                    lane.tested += order.oldest().tested
        key = q, m
        if event.autoack:
            self._settled(key, event)
            self._settled(("", m), event)
            return
        if known is None:
            known = state.known[key] = Known(prio=event.prio)
        known.taken, known.back = True, None
        known.by, known.given = holder(event), event
        self._holds(known.by, key, event)

    def _holds(self, by: Holder, key: LifecycleKey, event: Event) -> None:
        """Somebody holds a message; one whose consumer began where lines were lost may have nothing to settle."""
        if event.autoack is not None or not self.state.lost:
            self.state.held.setdefault(by, {})[key] = None

    def _settle(self, event: Event) -> None:
        if event.ev == "recover" and event.requeue is False:
            return  # sent again to whoever holds it
        state, by = self.state, holder(event)
        final = event.ev == "ack" or event.requeue is False
        held = state.held.get(by, {})
        for key in named(event, held):
            held.pop(key, None)
            if final:
                self._settled(key, event)
            else:
                self._release(key, event, by)
        if not held:
            state.held.pop(by, None)

    def _settled(self, key: LifecycleKey, event: Event) -> None:
        """A message is settled for good, or one of its copies, whichever that was."""
        state = self.state
        if event.lvl not in EXACT:
            self._goes(key)
        known = state.known.get(key)
        if known is None:
            return
        known.copies -= 1
        known.taken, known.back = True, None
        if not known.copies:
            del state.known[key]

    def _goes(self, key: LifecycleKey) -> None:
        """A message is not known to be there any more, and not known to be gone."""
        gone = self.state.gone
        gone[key] = None
        if len(gone) > GONE_KEPT:
            forget_oldest(gone)

    def _void(self, event: Event) -> None:
        """A settlement had no effect, or nobody knows: what it named is not known to be back."""
        for m in event.ms or ():
            known = self._find(event.q, m)
            if known is not None:
                known.taken, known.back = True, None

    def _release(self, key: LifecycleKey, event: Event, by: Holder | None) -> None:
        """A message is back, if it was with that holder; None for whoever it was with."""
        at: Time | None = event.t_hi
        if at is None and event.lvl in EXACT:
            at = when(event)
        known = self.state.known.get(key)
        if known is not None and known.taken and at is not None and by in (None, known.by):
            known.back, known.by, known.released = at, None, event

    def _expired(self, event: Event) -> None:
        """Take in an expiry. Only a recorder inside the broker knows its instant; otherwise nothing is definite."""
        q, m = event.q, event.m
        key = q, m
        known = self._find(q, m)
        self._lane(q).expired = True
        if known is not None and event.lvl in EXACT and not known.twice:
            end = when(event)
            if not known.taken:
                self._ended(q, Available(ALWAYS, end, m, event, True), known, event)
            elif known.back is not None:
                self._came_back(q, m, known, end, event)
        if event.requeue:
            # A lease ran out: whoever held it has it no longer, and it is there again.
            known = self.state.known.setdefault(key, Known())
            known.taken = True
            self._release(key, event, None)
        else:
            self._settled(key, event)

    def _came_back(self, q: str, m: str, known: Known, end: Time, until: Event | None) -> None:
        """Judge by the availability of a message that was released."""
        assert known.back is not None
        since = tuple(e for e in (known.given, known.released) if e is not None)
        self._ended(q, Available(known.back, end, m, until, False, since), known, until)

    def _ended(self, q: str, a: Available, known: Known | None, until: Event | None) -> None:
        """Judge the waiting acquisitions by an availability whose bounds are now both known."""
        if not (a.first or self._returned):
            return
        lane = self._lane(q)
        order = self.order(lane)
        of = place(known, until)
        found = order.violating(a, of)
        lane.violations += len(found)
        if found:
            # Of those that one availability contradicts the earliest is reported; see `Strict.blame` for the rest.
            row = found[0]
            self.state.blame(*described(row, a, of))
        order.chosen(a, of)

    def open_ended(self) -> None:
        """Judge by what was available until the end, where the recorder misses nothing: nor what a queue drops."""
        for key, known in sorted(self.state.known.items()):
            q, m = key
            lane = self.state.lanes.get(q)
            if lane is None or not lane.exact or self.state.inexact:
                continue
            if known.twice or (lane.drops and not lane.expired):
                continue
            if not known.taken and known.publish is not None:
                self._ended(q, Available(ALWAYS, NEVER, m, None, True), known, None)
            elif known.back is not None:
                self._came_back(q, m, known, NEVER, None)


def described(row: Row, a: Available, of: Place) -> tuple[str, list[Event]]:
    """The explanation of a violation and its events: the publishes, the acquisition, and the one that came too late."""
    start = "its enqueueing" if a.first else a.start
    end = "the end of the recording" if a.end == NEVER else a.end
    why = (
        f"{a.m} was available from {start} to {end}; {holder(row.event)} was given {row.m} between "
        f"{row.lo} and {row.hi} (event {row.event.i}), although {a.m} is earlier ({earlier(of, row)})"
    )
    shown = [of.publish, of.confirm, row.publish, *a.since, row.event, a.until]
    return why, each_once(shown)


class StrictOrder(SequentialProperty[Strict]):
    """P5. A case is an acquisition with both bounds known while some other message was definitely available: the
    broker had a choice, and a wrong one would show. An acquisition from a queue that may have been empty otherwise is
    counted as untestable.

    Kept from one chunk to the next: what is published or held and not settled, and the window.
    """

    id = "P5"
    sentence = "No consumer is given a message while an earlier one is available."
    source = (
        "https://qpid.apache.org strict ordering of the queue entry list (acquire the next available entry); "
        "AMQP 0-9-1 specification 4.7 for the place of a requeued message"
    )
    rests_on = ""
    case = "a delivery whose `t_lo` is known (a prefetch that is used up, a get), beside another available message"
    scope = "queue"
    reads = ACQUIRES | SETTLES | ENDS | EMPTIES | {"declare", "publish", "expire", "recover", GAP}
    queue_check = "seriatim_models.properties.columnar.queues:RegularQueues"
    summary_type = AggregationState[Strict]
    keeps = "what is published or held and not settled; the latest 2,048 acquisitions of each queue"
    time = "O(n log n)"
    column_check = "seriatim_models.properties.columnar.order_checks:strict_order"
    options = frozenset({"returned"})

    def __init__(self, returned: bool = True) -> None:
        """`returned`: whether a requeued message has its old place. If not, only its first availability
        counts.
        """
        self.returned = returned

    @classmethod
    def from_options(cls, options: Mapping[str, ProfileValue]) -> StrictOrder:
        return cls(returned=options.get("returned") is not False)

    def judging(self, state: Strict) -> OrderPass:
        """A pass over some events that updates a state."""
        return OrderPass(state, self.returned)

    def feed(self, state: Strict, events: Iterable[Event]) -> None:
        self.judging(state).run(events)

    def close(self, state: Strict) -> Finding:
        lanes = state.lanes
        if not state.inexact:  # else nothing is judged at the end
            lanes = {q: _copied(lane) if lane.exact else lane for q, lane in lanes.items()}
        ended = msgspec.structs.replace(state, lanes=lanes)
        final = self.judging(ended)
        final.open_ended()
        judged = self.judged_lanes(ended)
        acquisitions = sum(lane.acquisitions for lane in judged)
        tested = sum(lane.tested + sum(row.tested for row in lane.rows) for lane in judged)
        return Finding.of(
            self.id,
            tested,
            [(ended.why, ended.witness)] if ended.witness else [],
            n_untestable=acquisitions - tested,
            n_violations=sum(lane.violations for lane in judged),
        )

    def judged_lanes(self, state: Strict) -> list[Lane]:
        """The lanes of the queues that the property is about."""
        return list(state.lanes.values())


def _copied(lane: Lane) -> Lane:
    """A lane that may be changed without changing this one."""
    rows = [msgspec.structs.replace(row) for row in lane.rows]
    return msgspec.structs.replace(lane, rows=rows)
