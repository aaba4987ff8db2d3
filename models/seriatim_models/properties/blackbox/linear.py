"""P20: whether a history of enqueues and dequeues is one of a first-in first-out queue.

Values are distinct, so the question is not a search. A history of a queue is linearizable exactly if none of four
patterns is in it (Henzinger, Sezgin, Vafeiadis, "Aspect-Oriented Linearizability Proofs", CONCUR 2013; Bouajjani,
Emmi, Enea, Hamza, "On Reducing Linearizability to State Reachability", ICALP 2015), which Lee and Mathur check in
O(n log n) ("Efficient Decrease-and-Conquer Linearizability Monitoring", PLDI 2025, arXiv 2410.04581):

- *VFresh*: a value is dequeued that nobody enqueued;
- *VRepet*: a value is dequeued twice;
- *VOrd*: enqueue(a) ended before enqueue(b) began, and b was dequeued although a was not, or dequeue(b) ended before
  dequeue(a) began;
- *VWit*: a dequeue found the queue empty, although at each instant of it some value was definitely inside: its
  enqueue had ended and its dequeue had not begun.

Read in recording order, an enqueued value needs to be remembered only until it is dequeued.
When dequeue(b) ends, every value inside whose enqueue ended before that of b began is *due*: only a dequeue that had
begun by then can still explain it. That is a deadline, given to each value once.
At the end of the history, dequeues without an answer may have taken what is due: the earliest of them the value with
the earliest deadline.

An enqueue is a publish, a dequeue a `get`, or a delivery; both must take for good. So a queue on which messages come
back (a requeue, a holder that ends, a redelivered flag) is no such queue from there on, and is untestable. Nor is one
that is divided (positions, partitions, keys, priorities), one whose consumers select, or one that messages come to
when they die elsewhere, or whose declaration lets them be dropped.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

import msgspec

from seriatim_models.history.bounded import ForgetsOldest, forget_oldest
from seriatim_models.history.event import EXACT, GAP, SETTLES, Event, began
from seriatim_models.properties.base import Finding
from seriatim_models.properties.blackbox.aggregation import AggregationState, SequentialProperty
from seriatim_models.properties.blackbox.lifecycle import ACQUIRES, acquires, holders, may_drop
from seriatim_models.properties.blackbox.naming import (
    ENDS,
    Holder,
    holder,
)
from seriatim_models.properties.blackbox.recorders import LatestLines
from seriatim_models.properties.blackbox.strict import ALWAYS, NEVER, Time, when

HELD_KEPT = 65_536
"""Messages of a queue that are remembered as held. While it has more, any may come back."""
LATE_MOST = 1_000
"""Violations in one queue for which an operation is waited for that is written down late; there are not so many."""


class OperationKey(NamedTuple):
    """An operation under way: by its recorder's number, or else by who performs it."""

    rec: str
    op: int | None
    by: Holder | None
    proc: str


class Value(msgspec.Struct, array_like=True):
    """A value inside the queue, or on its way in: its enqueue was from `lo` to `hi`."""

    m: str
    lo: Time
    hi: Time
    enqueue: list[Event]
    """Its beginning, and its end if that was seen."""
    due: Time = NEVER
    """Only a dequeue that had begun by then explains it, because `over` had ended then."""
    over: list[Event] = []
    """The enqueue of the value that was taken first, and its dequeue."""


class Empty(msgspec.Struct, array_like=True):
    """A dequeue that found nothing, waiting for the dequeues that overlap it."""

    lo: Time
    hi: Time
    dequeue: list[Event]
    """Its beginning, if that was seen, and its end."""


class Full(msgspec.Struct, array_like=True):
    """A dequeue found nothing by `hi` in a full queue, unless one that is not written down yet explains it."""

    hi: Time
    why: str
    witness: list[Event]


class Left(msgspec.Struct, array_like=True):
    """A value was definitely inside from `lo` to `hi`, and has left."""

    lo: Time
    hi: Time
    inside: list[Event]
    """Its enqueue and its dequeue."""


class Inside(msgspec.Struct, ForgetsOldest):
    """One queue."""

    bounded: ClassVar = ("held",)

    values: dict[str, Value] = {}
    unended: int = 0
    """How many of the values are on their way in for ever: of them only that they were sent is known."""
    waiting: list[tuple[Time, str]] = []
    """Values without a deadline whose enqueue has ended, by when."""
    pending: dict[OperationKey, Event] = {}
    """Dequeues under way, by operation: how they began."""
    unheard: int = 0
    """How many of them nobody will ever hear of."""
    empties: list[Empty] = []
    left: list[Left] = []
    full: list[Full] = []
    """Violations that a dequeue may still explain that is written down when it has ended."""
    held: dict[str, Holder] = {}
    """By whom messages were taken that are not known to be settled: each comes back if that one has ended unseen. The
    latest `HELD_KEPT`.
    """
    forgotten: bool = False
    """There were more."""
    unknown: dict[str, Event] = {}
    """Takes of what was not there, unless an enqueue explains them that is written down when it has ended."""
    published: bool = False
    pushed: bool = False
    """Somebody is given messages without asking: what is on its way to him is not seen."""
    consumed: bool = False
    """Somebody consumes: what is inside may be on its way to him."""
    out: bool = False
    """Messages came back here, so this is no plain queue any more."""
    early: list[Event] = []
    """The first of the values taken before anybody was seen to enqueue: phantoms, if enqueues are recorded at all."""
    n_early: int = 0
    recorders: LatestLines = msgspec.field(default_factory=LatestLines)
    """Of lines that put in or take out."""
    takers: dict[Holder, str] = {}
    """Who asked for messages here or was given one, and is not known to have ended: the recorder that wrote it down."""
    empty_early: int = 0
    tested: int = 0
    untestable: int = 0
    violations: int = 0

    def comes_back(self, taken: Event) -> bool:
        """Whether what is taken was already, by who is not known to have settled it; if not, it is held now.

        Its holder may have ended, which is written down when it is noticed; but not if that one takes it again.
        """
        m, held, by = taken.m, self.held, holder(taken)
        again = (by.conn or by.name) and held.get(m) == by
        if m not in self.values and not again and (m in held or self.forgotten):
            return True
        if not taken.autoack and not self.out:
            held[m] = by
            if len(held) > HELD_KEPT:
                forget_oldest(held)
                self.forgotten = True
        return False

    def took(self, event: Event) -> None:
        """Somebody asks, or is answered."""
        self.recorders.take(event)
        if event.rec and not self.out:
            self.takers[holder(event)] = event.rec

    def taken_unseen(self, before: Time, seen: Event) -> bool:
        """Whether somebody may have taken what was there `before` behind the latest line of his recorder: another one
        than that of an event that was `seen`, which wrote nothing later and so may have been killed.
        """
        recs = self.takers.values()
        return bool(seen.rec) and any(
            rec and rec != seen.rec and self.recorders.of.get(rec, NEVER) <= before for rec in recs
        )


class Queues(msgspec.Struct):
    """The aggregation state of P20: what is inside, and what is under way."""

    queues: dict[str, Inside] = {}
    held: dict[Holder, dict[str, int]] = {}
    """Of each holder, how many it holds and has not settled, by queue."""
    consuming: dict[Holder, dict[str, None]] = {}
    """Of each holder, the queues that it consumes: what was pushed to it may never be seen, if it ends."""
    lost: bool = False
    """Lines were lost: what was in any queue is not known."""
    whole: bool = False
    """Every recorder is known to have gone on: that is taken from the run when a witness is judged alone."""
    why: str = ""
    witness: list[Event] = []

    def blame(self, inside: Inside, why: str, witness: list[Event]) -> None:
        """Count a violation, and keep its witness if it is the smallest so far."""
        inside.violations += 1
        if not self.witness or _rank(witness) < _rank(self.witness):
            self.why, self.witness = why, witness


def _rank(witness: list[Event]) -> tuple[int, int]:
    return len(witness), witness[-1].i


def _operation(event: Event) -> OperationKey:
    if event.op is not None:
        return OperationKey(event.rec, event.op, None, "")
    return OperationKey(event.rec, None, holder(event), event.proc)


def _several_lines(event: Event) -> bool:
    """Whether a message shows that its queue is a log, or no single line: priorities, partitions or keys divide it."""
    one = event.prio is None and event.pos is None and event.part is None and event.key is None
    return not one


def _late(event: Event) -> bool:
    """Whether an operation is one line, which may be written down when it has ended."""
    return event.ph == "" and (event.t_lo is not None or event.lvl in ("", "api"))


def _begun(event: Event) -> Time:
    """From when on a publish can have been under way."""
    if event.t_lo is not None:
        return event.t_lo
    return ALWAYS if _late(event) else when(event)


def _never_answered(inside: Inside, begun: Event | None) -> None:
    """A dequeue that had begun has no outcome, or none that anybody knows: it is under way for ever."""
    if begun is not None:
        inside.unheard += 1
        inside.pending[OperationKey("", inside.unheard, None, "unheard")] = begun


class _LinearityPass:
    """Events fed to a state."""

    def __init__(self, state: Queues) -> None:
        self.s = state
        self.n_judged = sum(not inside.out for inside in state.queues.values())
        """Queues that are still judged."""

    def run(self, events: Iterable[Event]) -> None:  # noqa: C901, PLR0912  # a branch an event name
        """Take in the events, in recording order."""
        for event in events:
            ev = event.ev
            if not self.n_judged and self._only_counted(event):
                continue
            if ev == "publish":
                self._enqueue(event)
            elif ev in ACQUIRES:
                self._dequeue(event)
            elif ev in SETTLES:
                if event.ph in ("", "ok"):
                    self._settled(event)
                if began(event):
                    self._settle(event)
            elif ev == GAP:
                self.s.lost = True
                for inside in self.s.queues.values():
                    self.leave(inside)
            elif ev == "consume":
                self.s.consuming.setdefault(holder(event), {})[event.q] = None
                if event.q:
                    self._at(event.q).consumed = True
            elif ev == "declare":
                if may_drop(event):
                    self.leave(self._at(event.q))
            elif ev in ENDS:
                for by in holders(event, self.s.held):
                    for q in self.s.held.pop(by):
                        self.leave(self._at(q))
                for by in holders(event, self.s.consuming):
                    for q in self.s.consuming.pop(by):
                        self.leave(self._at(q))
                self._takes_no_more(event)
            elif event.q:  # recover, expire, purge, delete: messages go or come back by themselves
                self.leave(self._at(event.q))
            else:
                for q in self.s.held.pop(holder(event), {}):
                    self.leave(self._at(q))

    def _takes_no_more(self, end: Event) -> None:
        """Who has ended for certain takes nothing behind the latest line of his recorder."""
        if end.ph == "ok" or end.ev == "conn_drop":
            for inside in self.s.queues.values():
                for by in list(holders(end, inside.takers)):
                    del inside.takers[by]

    def _only_counted(self, event: Event) -> bool:
        """Count an event of a queue, when none is judged any more; False if there is more to do than that.

        Nearly all of a long recording with requeues is counted, so this is kept short.
        """
        inside = self.s.queues.get(event.q)
        if inside is None or inside.unknown or inside.full or inside.early:
            return False
        if event.ev in ACQUIRES:
            answered = event.ev == "get" and event.ph not in ("invoke", "fail", "info")
            inside.untestable += answered or acquires(event)
        elif event.ev == "publish":
            inside.published = inside.published or event.ph in ("", "invoke")
        else:
            return event.ev in SETTLES
        return True

    def leave(self, inside: Inside) -> None:
        """Messages come back to a queue: from now on it is not judged, and nothing of it is remembered.

        What found it empty and is not decided yet stays open: the values that are taken from now on would look as if
        they had been inside all the while.
        """
        if not inside.out:
            inside.out = True
            self.n_judged -= 1
            inside.untestable += len(inside.empties)
            inside.unended = 0
            for kept in (inside.values, inside.waiting, inside.empties, inside.left, inside.held):
                kept.clear()

    def _at(self, q: str) -> Inside:
        inside = self.s.queues.get(q)
        if inside is None:
            inside = self.s.queues[q] = Inside(out=self.s.lost)
            self.n_judged += not inside.out
        return inside

    def _enqueue(self, event: Event) -> None:
        inside = self._at(event.q)
        inside.recorders.take(event)
        if _late(event) and inside.n_early:
            inside.untestable += inside.n_early + inside.empty_early
            inside.n_early, inside.empty_early, inside.early = 0, 0, []
            self.leave(inside)  # which of them it explains is not known any more
        inside.published = inside.published or event.ph in ("", "invoke")
        delayed = bool(event.dead)
        if delayed or _several_lines(event) or (event.ph == "ok" and not inside.published):
            self.leave(
                inside
            )  # of answers alone nobody knows what was never answered, nor since when it was there
        if event.ph in ("", "invoke") and self._explains(inside, event):
            return
        if inside.out:
            return
        if event.ph == "fail":
            inside.values.pop(event.m, None)
            return
        t = when(event)
        value = inside.values.get(event.m)
        if event.ph == "ok":
            if value is not None and value.hi == NEVER:
                value.hi = event.t_hi if event.t_hi is not None else t
                value.enqueue.append(event)
                insort(inside.waiting, (value.hi, value.m))
        elif value is not None and event.ph != "info":
            self.leave(inside)  # two copies of one name
        elif value is None and event.ph != "info":
            lo = _begun(event)
            hi: Time = NEVER
            if event.ph == "":
                hi = event.t_hi if event.t_hi is not None else t if event.lvl in EXACT else NEVER
            inside.values[event.m] = Value(event.m, lo, hi, [event])
            inside.unended += event.ph == "" and hi == NEVER
            if hi < NEVER:
                insort(inside.waiting, (hi, event.m))

    def _explains(self, inside: Inside, event: Event) -> bool:
        """Whether an enqueue written down late is that of a message that was not there when it was taken."""
        taken = inside.unknown.get(event.m)
        if taken is None:
            return False
        begun = _begun(event)
        if begun > when(taken) or (event.t_lo is None and begun == when(taken)):
            return False  # at one instant the lines count
        del inside.unknown[event.m]
        inside.tested -= 1
        inside.untestable += 1
        return True

    def _poll_of_unknown_outcome(self, inside: Inside, begun: Event | None) -> None:
        """It may have taken something since it began; if that is not recorded nobody knows since when."""
        _never_answered(inside, begun)
        if begun is None:
            self.leave(inside)

    def _dequeue(self, event: Event) -> None:
        inside = self._at(event.q)
        inside.took(event)
        if event.ph == "invoke":
            _never_answered(inside, inside.pending.pop(_operation(event), None))
            inside.pending[_operation(event)] = event
            return
        begun = inside.pending.pop(_operation(event), None) if event.ph else None
        if event.ph == "info" and event.ev == "get":
            self._poll_of_unknown_outcome(inside, begun)
            return
        if event.ph == "fail":
            self._decide(inside, when(event))
            return
        hi = event.t_hi if event.t_hi is not None else when(event)
        lo: Time = ALWAYS
        if event.t_lo is not None:
            lo = event.t_lo
        elif begun is not None:
            lo = when(begun)
        elif event.ph == "" and event.ev == "get" and event.lvl in EXACT:
            lo = when(event)
        if event.ev == "get" and begun is None and inside.full:
            overlapped = [x for x in inside.full if x.hi >= lo]
            inside.full = [x for x in inside.full if x.hi < lo]
            inside.tested -= len(overlapped)
            inside.untestable += len(overlapped)
        if acquires(event):
            self._taken(inside, event, lo, hi, begun)
        elif event.ev == "get":
            if inside.out or inside.pushed or lo == ALWAYS:
                inside.untestable += 1
            elif not inside.published:
                inside.empty_early += 1
            else:
                inside.empties.append(Empty(lo, hi, [event] if begun is None else [begun, event]))
        self._decide(inside, when(event))

    def _taken(self, inside: Inside, event: Event, lo: Time, hi: Time, begun: Event | None) -> None:
        s = self.s
        dequeue = [event] if begun is None else [begun, event]
        if event.ev == "deliver":
            inside.pushed = inside.consumed = True
        if not event.autoack:
            held = s.held.setdefault(holder(event), {})
            held[event.q] = held.get(event.q, 0) + 1
        other_kind = event.redelivered or event.nolocal or event.dead or _several_lines(event)
        if other_kind or inside.comes_back(event):
            self.leave(inside)
        if inside.out:
            inside.untestable += 1
            return
        if not inside.published:
            inside.early = inside.early or [event]
            inside.n_early += 1
            return
        value = inside.values.pop(event.m, None)
        if value is None:
            self._not_there(inside, event)
            return
        inside.unended -= value.hi == NEVER and value.enqueue[0].ph == ""
        beside = len(inside.values) > inside.unended
        inside.tested += beside
        inside.untestable += bool(inside.values) and not beside
        if lo > value.due and value.over:
            over = value.over[-1]
            why = (
                f"{value.m} was enqueued by {value.hi}, before {over.m}; yet {over.m} was taken by "
                f"{value.due} (event {over.i}) and {value.m} not before {lo} (event {event.i})"
            )
            s.blame(inside, why, [*value.enqueue, *value.over, *dequeue])
        if value.hi < lo:
            inside.left.append(Left(value.hi, lo, [*value.enqueue, *dequeue]))
        # Whatever is inside and was there before this one began to come in is due.
        waiting = inside.waiting
        kept = 0
        for ended, m in waiting:
            if ended >= value.lo:
                break
            kept += 1
            older = inside.values.get(m)
            if older is not None:
                older.due, older.over = hi, [value.enqueue[0], event]
        del waiting[:kept]

    def _not_there(self, inside: Inside, event: Event) -> None:
        stopped = event.args.get("beyond") or inside.recorders.another_stopped(event)
        if stopped and len(inside.unknown) >= LATE_MOST // 2:
            inside.untestable += 1  # no enqueue explains so many any more: its recorder has stopped
            return
        inside.tested += 1
        if event.m in inside.unknown or len(inside.unknown) >= LATE_MOST:
            self.s.blame(inside, _absent(event), [event])
        else:
            inside.unknown[event.m] = event

    def _settled(self, event: Event) -> None:
        """A settlement has taken effect: what it settled for good does not come back."""
        if (inside := self.s.queues.get(event.q)) is not None:
            for m in event.ms or ():
                inside.held.pop(m, None)

    def _settle(self, event: Event) -> None:
        for q in [event.q] if event.q else list(self.s.held.get(holder(event), ())):
            if event.ev != "ack" and event.requeue is not False:
                self.leave(self._at(q))
            held = self.s.held.get(holder(event), {})
            if q in held:
                held[q] -= len(event.ms or ())
                if held[q] <= 0:
                    del held[q]

    def _decide(self, inside: Inside, now: Time) -> None:
        """Judge the empty dequeues that no dequeue under way overlaps any more, nor one that begins now."""
        earliest = min(map(when, inside.pending.values()), default=NEVER)
        waiting = list[Empty]()
        for empty in inside.empties:
            if earliest <= empty.hi or now <= empty.hi:
                waiting.append(empty)
            elif full := self._judge(inside, empty):
                inside.full.append(full)
                if len(inside.full) > LATE_MOST:
                    self.s.blame(inside, inside.full[0].why, inside.full.pop(0).witness)
        inside.empties = waiting
        horizon = min([earliest, now, *(e.lo for e in waiting)])
        inside.left = [x for x in inside.left if x.hi >= horizon]

    def _judge(self, inside: Inside, empty: Empty) -> Full | None:
        cover = self._cover(inside, empty)
        if not cover and inside.consumed and inside.values:
            inside.untestable += 1
            return None
        inside.tested += 1
        return _full(empty, cover) if cover else None

    def _cover(self, inside: Inside, empty: Empty) -> list[Event]:
        """Enqueues and dequeues of values of which at each instant of the empty dequeue one was inside; or none."""
        spans: list[tuple[Time, Time, list[Event]]] = [(x.lo, x.hi, x.inside) for x in inside.left]
        first = min(
            (v for v in inside.values.values() if v.hi < NEVER),
            key=lambda v: v.hi,
            default=None,
        )
        if first is not None and not inside.consumed:
            spans.append((first.hi, NEVER, first.enqueue))
        reached, cover = empty.lo, list[Event]()
        # The spans are open intervals: where one ends the queue may be empty, unless another reaches over that.
        while True:
            over = [x for x in spans if x[0] < reached < x[1]]
            if not over:
                return []
            furthest = max(over, key=lambda x: x[1])
            cover += furthest[2]
            if furthest[1] > empty.hi:
                return cover
            reached = furthest[1]

    def end(self) -> None:
        """The history ends: what never came back out, and what cannot be known."""
        for inside in self.s.queues.values():
            early = inside.n_early + inside.empty_early
            if not inside.published:
                inside.untestable += early
                continue
            if inside.early and inside.recorders.another_stopped(inside.early[0]):
                inside.untestable += early
                inside.early = []
            else:
                inside.tested += early
            if inside.early:
                first = inside.early[0]
                why = f"{first.m} was taken at event {first.i}, before anybody enqueued it"
                self.s.blame(inside, why, [first])
                inside.violations += inside.n_early - 1
            for taken in inside.unknown.values():
                if taken.args.get("beyond") or inside.recorders.another_stopped(taken):
                    # Whoever saw it enqueued had stopped to write that down, or may have.
                    inside.tested -= 1
                    inside.untestable += 1
                else:
                    self.s.blame(inside, _absent(taken), [taken])
            for full in inside.full:
                self._blame_full(inside, full)
            if inside.out:
                continue
            self._never_taken(inside)
            self._found_nothing(inside)

    def _never_taken(self, inside: Inside) -> None:
        """What is due, and was not taken by a dequeue that has no answer either."""
        spare = sorted(map(when, inside.pending.values()))
        dues = [v for v in inside.values.values() if v.over]
        if inside.consumed:
            dues = []  # it may be on its way to a consumer
        for value in sorted(dues, key=lambda v: (v.due, v.enqueue[0].i)):
            if spare and spare[0] <= value.due:
                del spare[0]
                continue
            over = value.over[-1]
            if not self.s.whole and inside.taken_unseen(value.due, over):
                inside.untestable += 1
                continue
            why = (
                f"{value.m} was enqueued by {value.hi}, before {over.m}; {over.m} was taken by "
                f"{value.due} (event {over.i}), but {value.m} never"
            )
            self.s.blame(inside, why, [*value.enqueue, *value.over])

    def _found_nothing(self, inside: Inside) -> None:
        """Dequeues that found nothing, and that others overlap which never ended."""
        for empty in inside.empties:
            found: Full | None = None
            if all(when(e) > empty.hi for e in inside.pending.values()):
                found = self._judge(inside, empty)
            elif there := self._full_throughout(inside, empty):
                inside.tested += 1
                found = _full(empty, there)
            else:
                inside.untestable += 1
            if found is not None:
                self._blame_full(inside, found)

    def _blame_full(self, inside: Inside, full: Full) -> None:
        """A dequeue found nothing in a full queue, unless somebody took unseen what nobody was seen to take."""
        found = full.witness[-1]
        taken = {e.m for e in full.witness if e.ev in ACQUIRES and e.m}
        left = [e.m for e in full.witness if e.ev == "publish" and e.m not in taken]
        never = any(inside.out or m in inside.values for m in left)
        if never and not self.s.whole and inside.taken_unseen(full.hi, found):
            inside.tested -= 1
            inside.untestable += 1
        else:
            self.s.blame(inside, full.why, full.witness)

    def _full_throughout(self, inside: Inside, empty: Empty) -> list[Event]:
        """Values of which one was inside at each instant, whatever the unanswered dequeues took; or none.

        At an instant the queue can have been empty only if no value that left later was inside for certain, and at
        least as many unanswered dequeues had begun as there are values that never left. It is enough to look where
        one of these counts may fall.
        """
        never = sorted((v for v in inside.values.values() if v.hi < NEVER), key=lambda v: v.hi)
        begun = sorted(map(when, inside.pending.values()))
        instants = {empty.lo, *begun, *(x.hi for x in inside.left)}
        for at in sorted(t for t in instants if empty.lo <= t <= empty.hi):
            spanned = any(x.lo < at < x.hi for x in inside.left)
            if not spanned and sum(v.hi < at for v in never) <= sum(lo <= at for lo in begun):
                return []
        spans = [v.enqueue for v in never if v.hi < empty.hi]
        spans += [x.inside for x in inside.left if x.lo < empty.hi]
        return [e for span in spans for e in span]


def _absent(taken: Event) -> str:
    return f"{taken.m} was taken at event {taken.i}, but it was not there: never enqueued, or taken before"


def _full(empty: Empty, cover: list[Event]) -> Full:
    names = ", ".join(dict.fromkeys(e.m for e in cover if e.m))
    why = (
        f"event {empty.dequeue[-1].i} found the queue empty between {empty.lo} and {empty.hi}, "
        f"although all the while one of {names} was inside"
    )
    return Full(empty.hi, why, [*cover, *empty.dequeue])


class QueueLinearizable(SequentialProperty[Queues]):
    """P20. A case is a completed dequeue beside another value that may be inside, of nothing, or of what is not there:
    one value at a time has no order. Untestable: on queues on which messages come back, or one that is not known to
    be settled is taken by another holder, or of which no publish was recorded; and an empty dequeue that others
    overlap which never answered, or that push may overlap.

    O(n log n), and for a dequeue that found nothing also what overlaps it. Carried: what is inside or under way.
    """

    id = "P20"
    sentence = "Enqueues and dequeues are those of one first-in first-out queue (linearizability, distinct values)."
    source = (
        "Henzinger, Sezgin, Vafeiadis, Aspect-Oriented Linearizability Proofs (2013); Bouajjani, Emmi, Enea, Hamza, "
        "On Reducing Linearizability to State Reachability (2015); Lee, Mathur, arXiv 2410.04581 (PLDI 2025)"
    )
    rests_on = ""
    case = "two values in a queue at once, or none, put and taken for good where nothing comes back"
    scope = "queue"
    reads = (
        ACQUIRES
        | SETTLES
        | ENDS
        | {"declare", "publish", "consume", "recover", "expire", "purge", "delete", GAP}
    )
    queue_check = "seriatim_models.properties.columnar.queues:RegularQueues"
    summary_type = AggregationState[Queues]
    keeps = "what is inside the queue, and operations under way"
    time = "O(n log n)"

    def check_witness(self, witness: Sequence[Event]) -> Finding:
        """The finding on a witness alone: that the run records enqueues, and that its recorders went on, is taken from
        the run, not from an event.
        """
        state = Queues(queues={e.q: Inside(published=True) for e in witness}, whole=True)
        self.feed(state, witness)
        return self.close(state)

    def feed(self, state: Queues, events: Iterable[Event]) -> None:
        _LinearityPass(state).run(events)

    def close(self, state: Queues) -> Finding:
        ended = Queues(
            queues={q: msgspec.structs.replace(i) for q, i in state.queues.items()},
            why=state.why,
            witness=state.witness,
        )
        _LinearityPass(ended).end()
        of = ended.queues.values()
        return Finding.of(
            self.id,
            sum(i.tested for i in of),
            [(ended.why, ended.witness)] if ended.witness else [],
            n_untestable=sum(i.untestable for i in of),
            n_violations=sum(i.violations for i in of),
        )
