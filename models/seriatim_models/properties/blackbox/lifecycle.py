"""Message lifecycles as consumers see them: what conservation, one holder and the redelivered flag are judged on.

A lifecycle is the list of a message's steps in recording order: acquired (a delivery, a get), released (a command that
requeues it was sent), settled (a command that ends it was sent). Two steps that follow each other are judged as soon
as both are known and then dropped, so the summary of any chunk keeps for each message the steps up to its first
acquisition in the chunk and those from the last on, however long the chunk is.

What is observed is one-sided. An acquisition happened before it was recorded, the effect of a command comes after it
was recorded. A holder therefore *definitely* holds from the recorded delivery to the first recorded act that could
release it: its own command on the message, a recover, the end of its channel or connection.
A connection that ended without being asked to may have ended, for the broker, long before the recorder noticed;
nothing is definite about a holder on it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

import msgspec

from seriatim_models.history.complete import EXACT, SETTLES
from seriatim_models.history.event import GAP, Event
from seriatim_models.properties.base import Property, Scope

ENDS = frozenset({"ch_close", "conn_close", "conn_drop"})
ACQUIRES = frozenset({"deliver", "get"})

ACQUIRED, RELEASED, SETTLED = "acquired", "released", "settled"

Name = TypeVar("Name", "Holder", "ConsumerKey")


def acquires(event: Event) -> bool:
    """Whether a message was handed out: a get that came back empty carries none, and one under way has none yet."""
    return event.ev in ACQUIRES and bool(event.m) and event.ph not in ("invoke", "fail")


def first(event: Event) -> bool | None:
    """Whether a delivery is its message's first, by its flag or else by the count of attempts; None: not known."""
    if event.redelivered is not None:
        return not event.redelivered
    return None if event.attempt is None else event.attempt <= 1


def began(event: Event) -> bool:
    """Whether the event is the beginning of its operation (or the whole of it)."""
    return event.ph in ("", "invoke") or (event.ph == "ok" and event.op is None)


class Holder(NamedTuple):
    """Who acts: the incarnation of a channel, or the consumer or worker in systems without channels.

    Its parts are kept apart, since any of the names may hold any character.
    """

    conn: str = ""
    ch: int | None = None
    gen: int | None = None
    name: str = ""
    """The consumer, or else the worker; empty where there are channels."""

    def __str__(self) -> str:
        """How it is named to readers."""
        if self.ch is not None:
            return f"{self.conn}/{self.ch}#{self.gen}"
        return self.name or self.conn


NOBODY = Holder()
"""Whoever holds it: of an event that says nothing of that."""


def holder(event: Event) -> Holder:
    """Who acts in an event."""
    if event.ch is not None:
        return Holder(event.conn, event.ch, event.gen)
    return Holder(event.conn, None, None, event.ctag or event.proc)


class ConsumerKey(NamedTuple):
    """A consumer: its channel's incarnation and its tag."""

    by: Holder
    ctag: str

    def __str__(self) -> str:
        """How it is named to readers."""
        return f"{self.by} {self.ctag}" if self.by.ch is not None else str(self.by)


def consumer(event: Event) -> ConsumerKey:
    """The consumer that an event is about."""
    return ConsumerKey(holder(event), event.ctag)


def end_of(event: Event) -> Holder:
    """What ends: a channel as `holder` names it, or a whole connection as `connection` does."""
    if event.ev == "ch_close":
        return holder(event)
    return Holder(event.conn)


def connection(by: Holder) -> Holder:
    """The connection of a holder, as `end_of` names it."""
    return Holder(by.conn)


def ends(event: Event, by: Holder) -> bool:
    """Whether the end of a channel or connection ends a holder."""
    return end_of(event) in (by, connection(by))


class LifecycleKey(NamedTuple):
    """The lifecycle of a message, which has one in each queue that it was routed to."""

    q: str
    m: str


class Step(msgspec.Struct, array_like=True, gc=False):
    """One step; `pos` is its position among the events of the chunk that holds it."""

    pos: int
    kind: str
    by: Holder
    event: Event


class PlacedEvent(msgspec.Struct, array_like=True, gc=False):
    """An event and its position."""

    pos: int
    event: Event


class Birth(msgspec.Struct, array_like=True):
    """The publishing of one message: when it was first sent, when confirmed, and when refused or returned."""

    sent: PlacedEvent | None = None
    confirmed: PlacedEvent | None = None
    refused: PlacedEvent | None = None


class End(msgspec.Struct, array_like=True, gc=False):
    """The end of a channel, a connection or a consumer: the first sign of it, whether its client had asked for it,
    and when the broker confirmed it. A connection that was dropped is never confirmed.
    """

    pos: int
    asked: bool
    done: int | None = None
    q: str = ""
    """The consumer's queue, for the end of a consumer."""


class Suspect(msgspec.Struct, array_like=True):
    """A violation at `pos` that an end of `by` or its connection may still excuse: one that began before,
    in an earlier chunk, or one at any time that nobody had asked for.
    """

    pos: int
    by: Holder
    why: str
    events: list[Event]


class Lifecycles(msgspec.Struct):
    """The summary of one chunk."""

    n: int = 0
    gaps: list[int] = []
    lifecycles: dict[LifecycleKey, list[Step]] = {}
    unplaced: dict[str, list[Step]] = {}
    """Settling steps by message, of commands that span queues."""
    births: dict[LifecycleKey, Birth] = {}
    ends: dict[Holder, End] = {}
    """Ends of channels and of connections, see `end_of`."""
    recovers: dict[Holder, list[int]] = {}
    cancels: dict[ConsumerKey, End] = {}
    tested: int = 0
    untestable: int = 0
    suspects: list[Suspect] = []

    def gap_between(self, after: int, before: int) -> bool:
        """Whether lines were lost between two positions."""
        return bisect_right(self.gaps, after) < bisect_right(self.gaps, before)

    def ended(self, by: Holder, before: int) -> bool:
        """Whether a holder's channel or connection may have begun to end before a position."""
        return any(
            (end := self.ends.get(name)) is not None and end.pos < before
            for name in (by, connection(by))
        )

    def unasked(self, by: Holder) -> bool:
        """Whether a holder's channel or connection ended without its client having asked."""
        return any(
            (end := self.ends.get(name)) is not None and not end.asked
            for name in (by, connection(by))
        )

    def violating(self) -> tuple[list[Suspect], int]:
        """The suspects that no end excuses, and the number of those for whom an unasked end leaves it open."""
        held = [s for s in self.suspects if not self.ended(s.by, s.pos)]
        violating = [s for s in held if not self.unasked(s.by)]
        return violating, len(held) - len(violating)

    def recovered(self, by: Holder, after: int, before: int) -> bool:
        """Whether a holder asked for all its messages to be requeued between two positions."""
        return any(after < pos < before for pos in self.recovers.get(by, ()))


def named(event: Event, held: Iterable[LifecycleKey]) -> list[LifecycleKey]:
    """The lifecycles that a settlement, or a recover, is about, of those that its sender holds."""
    if event.ev == "recover":
        return [k for k in held if event.q in ("", k.q)]
    if event.q:
        return [LifecycleKey(event.q, m) for m in event.ms or ()]
    about = set(event.ms or ())
    return [k for k in held if k.m in about]


def holders(event: Event, among: Iterable[Holder]) -> list[Holder]:
    """Those of some holders that the end of a channel or connection ends."""
    return [by for by in among if ends(event, by)]


class RegularCounts(NamedTuple):
    """What the pre-filter counted of regular messages (see `columnar.prefilter`), of which none is violating."""

    acquisitions: int
    undecided_flags: int
    """Of these, the ones whose redelivered flag is not known or decides nothing."""
    confirmed_settled: int
    """Messages that were confirmed and settled."""
    confirmed_open: int
    """Messages that were confirmed and are not settled yet."""


class LifecycleProperty(Property[Lifecycles]):
    """Base of what judges message lifecycles: they say what a pair of acquisitions means, and the rest in `finish`."""

    keeps = "each message's publish, first and last acquisition"

    reads = ACQUIRES | SETTLES | ENDS | {"publish", "return", "recover", "expire", "cancel", GAP}
    summary_type = Lifecycles

    def regular_cases(self, counted: RegularCounts) -> tuple[int, int]:
        """How many cases regular messages were, tested and untestable.

        A class that declares it lets the pre-filter clear regular messages and judges the irregular ones alone.
        """
        raise NotImplementedError

    @property
    def prefiltered(self) -> bool:
        """Whether regular messages need not be judged one by one."""
        return self.own("regular_cases")

    @property
    def partitioning(self) -> Scope:
        return "message" if self.prefiltered else "run"

    def judge(
        self, summary: Lifecycles, before: Step, between: Sequence[Step], after: Step
    ) -> None:
        """Judge two acquisitions of one message that follow each other; `between` are the steps between them."""
        raise NotImplementedError

    def map(self, events: Iterable[Event]) -> Lifecycles:
        out = Lifecycles()
        for event in events:
            self._add(out, event)
            out.n += 1
        for key, steps in out.lifecycles.items():
            out.lifecycles[key] = self._compact(out, steps)
        return out

    def _add(self, out: Lifecycles, event: Event) -> None:  # noqa: C901, PLR0912  # a branch an event name
        pos = out.n
        ev = event.ev
        if acquires(event):
            steps = out.lifecycles.setdefault(LifecycleKey(event.q, event.m), [])
            steps.append(Step(pos, ACQUIRED, holder(event), event))
            if event.autoack:  # handing it out settles it
                steps.append(Step(pos, SETTLED, holder(event), event))
        elif ev in SETTLES:
            if not began(event):
                return
            final = ev == "ack" or event.requeue is False
            step = Step(pos, SETTLED if final else RELEASED, holder(event), event)
            for m in event.ms or ():
                if event.q:
                    out.lifecycles.setdefault(LifecycleKey(event.q, m), []).append(step)
                else:
                    out.unplaced.setdefault(m, []).append(step)
        elif ev == "expire":
            # A lease that ran out or a message that was too old: the holder, whoever it was, has it no longer.
            kind = RELEASED if event.requeue else SETTLED
            step = Step(pos, kind, NOBODY, event)
            out.lifecycles.setdefault(LifecycleKey(event.q, event.m), []).append(step)
        elif ev == "publish":
            birth = out.births.setdefault(LifecycleKey(event.q, event.m), Birth())
            placed = PlacedEvent(pos, event)
            if event.ph == "fail":
                birth.refused = birth.refused or placed
            else:
                birth.sent = birth.sent or placed
                if event.ph == "ok" or event.lvl in EXACT:
                    birth.confirmed = birth.confirmed or placed
        elif ev == "return":
            birth = out.births.setdefault(LifecycleKey(event.q, event.m), Birth())
            birth.refused = birth.refused or PlacedEvent(pos, event)
        elif ev in ENDS:
            _end(out.ends, end_of(event), _sign(pos, event))
        elif ev == "recover":
            out.recovers.setdefault(holder(event), []).append(pos)
        elif ev == "cancel":
            _end(out.cancels, consumer(event), _sign(pos, event))
        elif ev == GAP:
            out.gaps.append(pos)

    def _compact(self, out: Lifecycles, steps: list[Step]) -> list[Step]:
        """Judge each pair of acquisitions that follow each other, and keep both ends of the lifecycle."""
        taken = [n for n, s in enumerate(steps) if s.kind == ACQUIRED]
        for a, b in pairwise(taken):
            self.judge(out, steps[a], steps[a + 1 : b], steps[b])
        if len(taken) > 1:
            steps = steps[: taken[0] + 1] + steps[taken[-1] :]
        return steps

    def combine(self, left: Lifecycles, right: Lifecycles) -> Lifecycles:
        shift = left.n
        left.n += right.n
        left.gaps += [p + shift for p in right.gaps]
        for by, positions in right.recovers.items():
            left.recovers.setdefault(by, []).extend(p + shift for p in positions)
        _join_ends(left.ends, right.ends, shift)
        _join_ends(left.cancels, right.cancels, shift)
        for born, birth in right.births.items():
            mine = left.births.setdefault(born, Birth())
            mine.sent = mine.sent or _shifted(birth.sent, shift)
            mine.confirmed = mine.confirmed or _shifted(birth.confirmed, shift)
            mine.refused = mine.refused or _shifted(birth.refused, shift)
        for m, steps in right.unplaced.items():
            left.unplaced.setdefault(m, []).extend(
                Step(s.pos + shift, s.kind, s.by, s.event) for s in steps
            )
        left.tested += right.tested
        left.untestable += right.untestable
        left.suspects += [Suspect(s.pos + shift, s.by, s.why, s.events) for s in right.suspects]
        # Last, because judging needs the ends, recovers and gaps of both sides.
        for key, steps in right.lifecycles.items():
            moved = [Step(s.pos + shift, s.kind, s.by, s.event) for s in steps]
            mine_steps = left.lifecycles.get(key)
            left.lifecycles[key] = self._join(left, mine_steps, moved) if mine_steps else moved
        return left

    def _join(self, out: Lifecycles, mine: list[Step], more: list[Step]) -> list[Step]:
        """Judge the one pair that the cut had parted; the pairs on either side are judged already."""
        last = max((n for n, s in enumerate(mine) if s.kind == ACQUIRED), default=None)
        first = min((n for n, s in enumerate(more) if s.kind == ACQUIRED), default=None)
        if last is None or first is None:
            return mine + more
        self.judge(out, mine[last], mine[last + 1 :] + more[:first], more[first])
        opening = min(n for n, s in enumerate(mine) if s.kind == ACQUIRED)
        closing = max(n for n, s in enumerate(more) if s.kind == ACQUIRED)
        return mine[: opening + 1] + more[closing:]


def _sign(pos: int, event: Event) -> End:
    whole = event.lvl in EXACT
    done = pos if whole or (event.ph in ("", "ok") and event.ev != "conn_drop") else None
    q = event.q if event.ev == "cancel" else ""
    return End(pos, whole or event.ph in ("", "invoke"), done, q)


def _join_ends(mine: dict[Name, End], more: Mapping[Name, End], shift: int) -> None:
    """Join the ends of the chunk that follows after `shift` events."""
    for name, end in more.items():
        done = None if end.done is None else end.done + shift
        _end(mine, name, End(end.pos + shift, end.asked, done, end.q))


def _end(signs: dict[Name, End], name: Name, sign: End) -> None:
    """Join a sign of an end to those before it."""
    known = signs.setdefault(name, sign)
    if known.done is None:
        known.done = sign.done
    known.q = known.q or sign.q


def _shifted(placed: PlacedEvent | None, shift: int) -> PlacedEvent | None:
    return PlacedEvent(placed.pos + shift, placed.event) if placed else None


def died(between: Sequence[Step]) -> bool:
    """Whether a message was dead-lettered: it may come back as a new one, for queues of the dead may lead anywhere."""
    return any(s.event.dead for s in between)


def let_go(summary: Lifecycles, before: Step, between: Sequence[Step], after: Step) -> bool:
    """Whether the holder of `before` may have let its message go by the time `after` was recorded."""
    by = before.by
    loose = summary.unplaced.get(before.event.m, ())
    return (
        any(s.kind != ACQUIRED and s.by in (by, NOBODY) for s in between)
        or any(s.by == by and before.pos < s.pos < after.pos for s in loose)
        or summary.ended(by, after.pos)
        or summary.recovered(by, before.pos, after.pos)
        or summary.gap_between(before.pos, after.pos)
    )
