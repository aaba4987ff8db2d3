"""Message lifecycles as consumers see them: what conservation, one holder and the redelivered flag are judged on.

A lifecycle is the list of a message's steps in recording order: acquired (a delivery, a get), released (a command that
requeues it was sent), settled (a command that ends it was sent). Two steps that follow each other are judged as soon
as both are known and then dropped, so the summary of any chunk keeps for each message the steps up to its first
acquisition in the chunk and those from the last on, however long the chunk is. What looks like a violation then is a
*suspect*; whether anything explains it is decided in `finish`, when all of the history is known.

What is observed is one-sided. An acquisition happened before it was recorded (perhaps long before: a callback may run
late, even after its channel is gone), the effect of a command comes after it was recorded. So of two acquisitions of
one message either may have been the first, and `may_precede` asks whether one of them may have been over when the
other happened: its holder sent a command that may have ended it, or its session may have ended (`sessions`).
A command that failed had no effect, and of one whose outcome is unknown (`info`) nobody knows.
A message that was published more than once is several copies of one name, of which nothing is definite.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from seriatim_models.history.event import (
    EXACT,
    GAP,
    SETTLES,
    UNKNOWN_GEN,
    Event,
    answer_alone,
    began,
)
from seriatim_models.history.unrecorded import missing_kinds
from seriatim_models.properties.base import Property, Scope
from seriatim_models.properties.blackbox.naming import ENDS as ENDS
from seriatim_models.properties.blackbox.naming import NOBODY, Holder, connection, ends, holder
from seriatim_models.properties.blackbox.sessions import ANSWERED, PlacedEvent, Sessions

ACQUIRES = frozenset({"deliver", "get"})
DROPPING = ("x-message-ttl", "x-expires", "x-max-length", "x-max-length-bytes", "x-delivery-limit")
"""Arguments of a queue by which a broker may drop messages on its own, or have them die: a loss there is no fault.
https://www.rabbitmq.com/docs/ttl, .../docs/maxlength, .../docs/quorum-queues#poison-message-handling
"""
ATTEMPTS = "max_attempts"
"""The argument of a queue's declaration that says how often a message is tried before it is parked elsewhere."""
LEVELS = "x-max-priority"
"""The argument of a queue's declaration that says how many priorities its messages have."""
GROUPS = "groups"
"""The argument of a queue's declaration that says what keys mean, see `holds_groups`."""
REQUEUE_END = "requeue"
"""The argument of a queue's declaration that says to which end nack and reject put what they requeue."""

ACQUIRED, RELEASED, SETTLED = "acquired", "released", "settled"


def acquires(event: Event) -> bool:
    """Whether a message was handed out: a get that came back empty carries none, and one under way has none yet."""
    return event.ev in ACQUIRES and bool(event.m) and event.ph not in ("invoke", "fail")


def first(event: Event) -> bool | None:
    """Whether a delivery is its message's first, by its flag or else by the count of attempts; None: not known, as
    where the flag says so and the count denies it.
    """
    if event.redelivered is not None:
        denied = not event.redelivered and (event.attempt or 1) > 1
        return None if denied else not event.redelivered
    return None if event.attempt is None else event.attempt <= 1


def may_drop(event: Event) -> bool:
    """Whether a declaration says that messages may leave its queue by themselves."""
    return any(a in event.args for a in (*DROPPING, ATTEMPTS))


def declares(event: Event) -> bool:
    """Whether a `declare` says what its queue is: not one that only asks whether it is there, nor an answer alone."""
    return began(event) and not event.args.get("passive")


def requeues_to(event: Event) -> str:
    """The end of its queue, ``head`` or ``tail``, to which a declaration says that messages are requeued, or empty."""
    end = event.args.get(REQUEUE_END) if event.ph != "fail" else None
    return end if end in ("head", "tail") else ""


def holds_groups(event: Event) -> bool:
    """Whether a declaration says that a group is one consumer's while that holds a message of it."""
    return event.args.get(GROUPS) == "held" and event.ph != "fail"


def ranks(event: Event) -> bool:
    """Whether an event says that the messages of its queue have priorities."""
    return event.prio is not None


LifecycleKey = tuple[str, str]
"""The lifecycle of a message, which has one in each queue that it was routed to: queue and message. A plain tuple,
since every property makes one for nearly every event, and that of a class takes five times as long.
"""


class Step(msgspec.Struct, array_like=True, gc=False):
    """One step; `pos` is its position among the events of the chunk that holds it."""

    pos: int
    kind: str
    by: Holder
    event: Event


class Birth(msgspec.Struct, array_like=True):
    """The publishing of one message: when it was first sent, when confirmed, and when refused or returned."""

    sent: PlacedEvent | None = None
    confirmed: PlacedEvent | None = None
    refused: PlacedEvent | None = None
    begun: int = 0
    """How often a publish of it began."""
    answered: int = 0
    """How often one was confirmed."""

    @property
    def copies(self) -> int:
        """How many copies there may be."""
        return max(self.begun, self.answered)

    @property
    def begins(self) -> bool:
        """Whether the beginning of a publish is recorded; of answers alone nobody knows how many were never given."""
        return bool(self.begun or (self.sent and self.sent.event.lvl in EXACT))


class Sweep(msgspec.Struct, array_like=True, gc=False):
    """A command of which the messages are not known by name: for all that its channel holds up to a delivery tag, where
    tag 0 stands for everything, seen or not yet; or for `one` delivery, that has the tag or of which none was recorded.
    """

    pos: int
    through: int
    final: bool
    answer: bool = False
    """It is the answer: where no call is recorded that asks for it, it may have been sent at any time before."""
    one: bool = False

    def covers(self, tag: int | None) -> bool:
        """Whether it may have settled a delivery with that tag; None if none was recorded."""
        if tag is None:
            return True
        return self.through == tag if self.one else self.through == 0 or tag <= self.through


class Command(NamedTuple):
    """A settlement, as its outcome names it."""

    by: Holder
    ev: str
    op: int | None
    dtag: int | None


def command(event: Event) -> Command:
    """What joins a settlement and its outcome."""
    return Command(holder(event), event.ev, event.op, event.dtag)


class Suspect(msgspec.Struct, array_like=True):
    """Two acquisitions of one message that look like a violation; `settled` is the command between them that ended
    the first for good, if that is why.
    """

    before: Step
    after: Step
    why: str
    settled: Step | None = None


class Lifecycles(msgspec.Struct):
    """The summary of one chunk."""

    n: int = 0
    gaps: list[int] = []
    gaps_of_others: list[int] = []
    """Of the gaps, those where no publish is missing."""
    lifecycles: dict[LifecycleKey, list[Step]] = {}
    again: dict[LifecycleKey, int] = {}
    """How often a message was handed out again, of those that were."""
    unplaced: dict[str, list[Step]] = {}
    """Settling steps by message, of commands that span queues."""
    births: dict[LifecycleKey, Birth] = {}
    sessions: Sessions = msgspec.field(default_factory=Sessions)
    sweeps: dict[Holder, list[Sweep]] = {}
    voided: dict[Command, str] = {}
    """Settlements that failed, or whose outcome is unknown."""
    confirmed: dict[Command, PlacedEvent] = {}
    """Settlements of workers without a channel, and their answers."""
    expired: list[LifecycleKey] = []
    """Lifecycles that had a lease that ran out, whenever that was."""
    dead: list[str] = []
    """Queues from which messages may go elsewhere, and so come back."""
    declared: list[str] = []
    """Queues whose declaration was recorded."""
    queues: dict[str, None] = {}
    """Queues that something was published to; the empty name stands for an exchange."""
    mortal: list[str] = []
    """Queues whose messages may die by themselves: limited in age or length."""
    takers: dict[str, dict[Holder, int]] = {}
    """Of each queue, who consumed or polled, and since when."""
    unbegun: list[Holder] = []
    """Connections, or workers, of which a settlement is recorded by its answer alone: they may have made others."""
    tested: int = 0
    untestable: int = 0
    suspects: list[Suspect] = []

    def gap_between(self, after: int, before: int) -> bool:
        """Whether lines were lost between two positions."""
        return bisect_right(self.gaps, after) < bisect_right(self.gaps, before)

    def publishes_lost(self, before: int) -> bool:
        """Whether a publish may be missing before a position."""
        return bisect_left(self.gaps, before) > bisect_left(self.gaps_of_others, before)

    def settles_unseen(self, by: Holder) -> bool:
        """Whether a holder may have settled something without a line of it: beginnings are not recorded there."""
        return connection(by) in self.unbegun or by.conn in self.sessions.kinds.quiet

    def swept(self, taken: Step, before: int) -> list[Sweep]:
        """The commands sent before a position that may have settled a delivery together with others."""
        tag = taken.event.dtag
        asked = (taken.by.conn, "recover") in self.sessions.kinds.begun
        exact = taken.event.lvl in EXACT
        return [
            s
            for s in self._sweeps_by(taken.by)
            if (s.pos < before or (s.answer and not asked))
            and (not exact or s.pos > taken.pos)
            and s.covers(tag)
        ]

    def _sweeps_by(self, by: Holder) -> list[Sweep]:
        """What a holder sent; where the incarnation of its channel is not known, what any of them did."""
        if by.gen != UNKNOWN_GEN:
            mine = self.sweeps.get(by, [])
            return mine if by.ch is not None else [*mine, *self.sweeps.get(NOBODY, ())]
        channel = (by.conn, by.ch)
        return [s for of, sent in self.sweeps.items() if (of.conn, of.ch) == channel for s in sent]

    def may_end(self, taken: Step, before: int) -> bool:
        """Whether the session that an acquisition belongs to may have ended before a position."""
        polled = taken.pos if taken.event.ev == "get" else -1
        return not self.sessions.lasts(taken.by, before, taken.event.lvl, polled=polled)

    def settled_after(self, taken: Step, other: Step) -> list[PlacedEvent]:
        """The settlement by which a worker that no connection names is known to have had a message when another one was
        given it: it began later, nobody was given the message since, and it was answered well.
        """
        by, at = taken.by, other.pos
        if by.ch is not None or by.conn or by in (NOBODY, other.by):
            return []
        steps = self.lifecycles.get((taken.event.q, taken.event.m), [])
        for step in steps:
            if step.kind == ACQUIRED or step.by != by or step.pos <= at:
                continue
            if any(s.kind == ACQUIRED and s.pos > at for s in steps):
                return []  # perhaps it was given the message anew
            name = command(step.event)
            answer = self.confirmed.get(name)
            numbered = step.event.op is not None and name not in self.voided
            if numbered and answer is not None and answer.pos > step.pos:
                return [PlacedEvent(step.pos, step.event), answer]
        return []

    def may_be_gone(self, by: Holder, at: int, again: Event) -> bool:
        """Whether a session may have ended silently before a message came back. The broker says so by marking it as
        redelivered, or counting it; only an answer to a call that was begun after position `at` denies it, or to a poll
        of a worker that has no channel.
        """
        has_session = again.lvl not in EXACT and (by.ch is not None or bool(by.conn))
        if not has_session or first(again) is not False or self.sessions.last_sign(by, at) >= at:
            return False
        return not self.sessions.polled_since(by, at)

    def proof_that_there(self, by: Holder, at: int, again: Event) -> list[PlacedEvent]:
        """The call and its answer by which it is known that `may_be_gone` is false, if it is known by that."""
        return self.sessions.proof(by, at, again.lvl) if first(again) is False else []

    def anew(self, first: Step, second: Step) -> bool:
        """Whether the channel of two acquisitions may have been opened anew between them: its tags did not rise, and
        no opening is recorded there.
        """
        return _falls(first, second) and first.by.conn not in self.sessions.opens

    def may_precede(self, first: Step, second: Step) -> bool:
        """Whether `first` may have been acquired, and let go otherwise than by a command that names its message, before
        `second` was acquired.
        """
        if _stamped_alike(first.event, second.event) or UNKNOWN_GEN in (
            first.by.gen,
            second.by.gen,
        ):
            return True
        if self.anew(first, second):
            return True
        if _ordered(second, first):
            return False
        if self.gaps and self.gap_between(-1, second.pos):
            return True
        if first.event.autoack:
            return False  # it was gone at once
        return (
            bool(self.swept(first, second.pos))
            or (first.event.q, first.event.m) in self.expired
            or (
                not _same_channel(first, second)
                and self.may_end(first, second.pos)
                and not self.settled_after(first, second)
            )
        )

    def proof_that_kept(self, first: Step, second: Step) -> list[PlacedEvent]:
        """What shows that `may_precede` is false, if it is known by that: the call and its answer by which whoever had
        `first` was still there at `second`, or an opening, so that others are recorded too, see `anew`.
        """
        if _falls(first, second):
            opening = self.sessions.opens.get(first.by.conn)
            return [opening] if opening else []
        if _ordered(second, first) or first.event.autoack or _same_channel(first, second):
            return []
        shown = self.sessions.proof(first.by, second.pos, first.event.lvl)
        return shown or self.settled_after(first, second)

    def may_die(self, settled: Step) -> bool:
        """Whether a command that refused a message may have sent it elsewhere, from where it may come back."""
        event = settled.event
        if event.ev == "ack" or event.ev in ACQUIRES or event.dead is False:
            return False
        return event.dead is True or self.leads_on(event.q) or bool(self.dead and not event.q)

    def refused(self, settled: Step) -> bool:
        """Whether a settlement certainly had no effect: without a number a refusal may be that of another one."""
        return settled.event.op is not None and self.voided.get(command(settled.event)) == "fail"

    def not_refused(self, settled: Step) -> bool:
        """Whether it is known by now that a settlement is none of those."""
        return settled.event.op is None or command(settled.event) in self.confirmed

    def leads_on(self, q: str) -> bool:
        """Whether messages of a queue may go elsewhere: of one whose declaration is not recorded nobody knows."""
        return q in self.dead or q not in self.declared

    def swept_away(self, taken: Step, before: int) -> bool:
        """Whether a command for all that its channel held may have sent a delivery elsewhere, and so back."""
        return self.leads_on(taken.event.q) and any(s.final for s in self.swept(taken, before))

    def unseen(self, by: Holder, after: int, first: Step) -> bool:
        """Whether a consumer may have had a message between a position and a delivery, and ended, unseen."""
        known = [takers[by] for takers in self.takers.values() if by in takers]
        if min(known) > first.pos or self.sessions.over(by, after):
            return False
        # That the message is marked says that somebody had it: who gives no sign of life may have been killed.
        named = by.ch is not None or bool(by.conn)
        silent = named and self.sessions.last_sign(by, first.pos) < first.pos
        return silent or not self.sessions.lasts(by, first.pos, first.event.lvl)

    def copied(self, event: Event) -> bool:
        """Whether a message's name may stand for several copies in its queue. Of one whose publish is not seen to
        begin, though it is answered or lines were lost, nobody knows.
        """
        born = [b for q in {event.q, ""} if (b := self.births.get((q, event.m)))]
        if (self.gaps or born) and not any(b.begins for b in born):
            return True
        routed = self.births.get(("", event.m))
        if self.dead and routed is not None:
            return True
        if self.dead:  # a copy in any queue may have come here
            every = (self.births.get((q, event.m)) for q in self.queues)
            born = [b for b in every if b]
        return sum(b.copies for b in born) > 1

    def took_effect(self, settled: Step) -> bool:
        """Whether a settlement has certainly taken effect: it neither failed nor may have died with its session, and if
        there is none it was answered.
        """
        event = settled.event
        if command(event) in self.voided:
            return False
        if event.lvl in EXACT:
            return True
        if settled.by.gen == UNKNOWN_GEN:
            return False
        if settled.by.ch is None and command(event) in self.confirmed:
            return True
        # Begun and never answered: on a connection, too, its request may have been lost alone (SQS: each is one).
        if settled.by.ch is None and (event.ph == "invoke" or not settled.by.conn):
            return event.ph != "invoke"
        return self.sessions.answered_after(settled.by, settled.pos)


def _same_channel(first: Step, second: Step) -> bool:
    return first.by == second.by and first.by.ch is not None


def _falls(first: Step, second: Step) -> bool:
    """Whether the later of two acquisitions on one channel, outside a broker, does not have the higher tag."""
    earlier, later = sorted((first, second), key=lambda step: step.pos)
    tags = earlier.event.dtag, later.event.dtag
    falls = tags[0] is not None and tags[1] is not None and tags[1] <= tags[0]
    return falls and _same_channel(first, second) and first.event.lvl not in EXACT


def _stamped_alike(one: Event, other: Event) -> bool:
    """Whether nothing orders two events: they are of two recorders, at one instant."""
    return one.t is not None and one.t == other.t and one.rec != other.rec


def _ordered(first: Step, second: Step) -> bool:
    """Whether the first of two acquisitions certainly happened before the second."""
    lo, hi = second.event.t_lo, first.event.t
    if lo is not None and hi is not None and lo > hi:
        return True
    if second.event.lvl in EXACT and second.pos > first.pos:
        return True
    tags = second.event.dtag, first.event.dtag
    if not _same_channel(first, second) or tags[0] is None or tags[1] is None:
        return False
    return tags[0] > tags[1]  # one channel's deliveries are in the order of their tags


def in_order(steps: Iterable[Step | PlacedEvent]) -> list[Event]:
    """The events of a witness in the order of the history, each once."""
    by_place = {s.pos: s.event for s in steps}
    return [by_place[pos] for pos in sorted(by_place)]


def named(event: Event, held: Iterable[LifecycleKey]) -> list[LifecycleKey]:
    """The lifecycles that a settlement, or a recover, is about, of those that its sender holds."""
    if event.ev == "recover":
        return [(q, m) for q, m in held if event.q in ("", q)]
    if event.q:
        q = event.q
        return [(q, m) for m in event.ms or ()]
    about = set(event.ms or ())
    return [(q, m) for q, m in held if m in about]


def holders(event: Event, among: Iterable[Holder]) -> list[Holder]:
    """Those of some holders that the end of a channel or connection ends."""
    return [by for by in among if ends(event, by)]


class RegularCounts(NamedTuple):
    """What the pre-filter counted of regular messages (see `columnar.prefilter`), of which none is violating."""

    acquisitions: int
    undecided_flags: int
    """Of these, the ones whose redelivered flag is not known or decides nothing."""
    settled_at_once: int
    """Of these, the ones that settled their message (auto-ack)."""
    confirmed_settled: int
    """Messages that were confirmed and settled."""
    confirmed_open: int
    """Messages that were confirmed and are not settled yet."""


class LifecycleProperty(Property[Lifecycles]):
    """Base of what judges message lifecycles: they say what a pair of acquisitions means, and the rest in `finish`."""

    keeps = "each message's publish, first and last acquisition"

    reads = ACQUIRES | SETTLES | ENDS | ANSWERED | {"publish", "return", "expire", "ch_open", GAP}
    summary_type = Lifecycles

    def regular_cases(self, counted: RegularCounts) -> tuple[int, int]:
        """How many cases regular messages were, tested and untestable.

        A class that declares it lets the pre-filter clear regular messages and judges the irregular ones alone.
        """
        raise NotImplementedError

    def settled_cases(self, birth: Birth, steps: Sequence[Step]) -> tuple[int, int] | None:
        """How many cases, tested and untestable, `finish` counts for a message that was sent, then handed out, and
        settled at last; None if that depends on what may still come about others.

        A stream sets messages aside by it (`pipeline.stream.settled`); what `judge` counted is not among them.
        """
        return None

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
        out: Lifecycles = self.summary_type()
        for event in events:
            self.add(out, event)
            out.n += 1
        for key, steps in out.lifecycles.items():
            out.lifecycles[key] = self._compact(out, steps)
        return out

    def add(self, out: Lifecycles, event: Event) -> None:
        """Take in the event at position `out.n`, without judging it yet."""
        ev = event.ev
        if ev == "get" and not event.m:
            out.takers.setdefault(event.q, {}).setdefault(holder(event), out.n)
            out.sessions.polls.add(out.n, event)
        if acquires(event):
            self._acquired(out, event)
        elif ev in SETTLES:
            self._settled(out, event)
        elif ev in ("publish", "return"):
            _publish(out, event)
        elif ev == "expire":
            # A lease that ran out or a message that was too old: the holder, whoever it was, has it no longer.
            key = event.q, event.m
            kind = RELEASED if event.requeue else SETTLED
            out.lifecycles.setdefault(key, []).append(Step(out.n, kind, NOBODY, event))
            if key not in out.expired:
                out.expired.append(key)
        elif ev == GAP:
            out.gaps.append(out.n)
            if (kinds := missing_kinds(event)) and "publish" not in kinds:
                out.gaps_of_others.append(out.n)
        else:
            _general(out, event)

    def _acquired(self, out: Lifecycles, event: Event) -> None:
        step = Step(out.n, ACQUIRED, holder(event), event)
        key = event.q, event.m
        steps = out.lifecycles.setdefault(key, [])
        if any(s.kind == ACQUIRED for s in steps):
            out.again[key] = out.again.get(key, 0) + 1
        steps.append(step)
        if event.autoack:  # the delivery settles it
            steps.append(Step(out.n, SETTLED, step.by, event))

    def _settled(self, out: Lifecycles, event: Event) -> None:
        if event.ph in ("fail", "info"):
            out.voided[command(event)] = event.ph
        elif event.ph == "ok" and event.ch is None:
            out.confirmed[command(event)] = PlacedEvent(out.n, event)
        if answer_alone(event) and (by := connection(holder(event))) not in out.unbegun:
            out.unbegun.append(by)
        if not began(event):
            return
        if event.dtag is not None and (event.multiple or not event.ms):
            final = event.ev == "ack" or event.requeue is False
            sweep = Sweep(out.n, event.dtag, final, one=not event.multiple)
            out.sweeps.setdefault(holder(event), []).append(sweep)
        final = event.ev == "ack" or event.requeue is False
        if event.multiple and event.ch is None:
            # Where there are no channels it is of all that was given before, whoever was given it.
            out.sweeps.setdefault(NOBODY, []).append(Sweep(out.n, 0, final))
        step = Step(out.n, SETTLED if final else RELEASED, holder(event), event)
        for m in event.ms or ():
            if event.q:
                out.lifecycles.setdefault((event.q, m), []).append(step)
            else:
                out.unplaced.setdefault(m, []).append(step)

    def _compact(self, out: Lifecycles, steps: list[Step]) -> list[Step]:
        """Judge each pair of acquisitions that follow each other, and keep both ends of the lifecycle."""
        taken = [n for n, s in enumerate(steps) if s.kind == ACQUIRED]
        for a, b in pairwise(taken):
            self.judge(out, steps[a], steps[a + 1 : b], steps[b])
        return _kept(out, steps, taken[0], taken[-1]) if len(taken) > 1 else steps

    def combine(self, left: Lifecycles, right: Lifecycles) -> Lifecycles:
        shift = left.n
        left.n += right.n
        left.gaps += [p + shift for p in right.gaps]
        left.gaps_of_others += [p + shift for p in right.gaps_of_others]
        left.sessions.join(right.sessions, shift)
        for by, sweeps in right.sweeps.items():
            moved_sweeps = (
                Sweep(s.pos + shift, s.through, s.final, s.answer, s.one) for s in sweeps
            )
            left.sweeps.setdefault(by, []).extend(moved_sweeps)
        left.voided |= right.voided
        left.confirmed |= {
            key: PlacedEvent(p.pos + shift, p.event) for key, p in right.confirmed.items()
        }
        left.expired += [k for k in right.expired if k not in left.expired]
        left.unbegun += [by for by in right.unbegun if by not in left.unbegun]
        left.declared += [q for q in right.declared if q not in left.declared]
        left.queues |= right.queues
        left.mortal += [q for q in right.mortal if q not in left.mortal]
        left.dead += [q for q in right.dead if q not in left.dead]
        for q, takers in right.takers.items():
            known = left.takers.setdefault(q, {})
            for by, pos in takers.items():
                known.setdefault(by, pos + shift)
        for born, birth in right.births.items():
            mine = left.births.setdefault(born, Birth())
            mine.sent = mine.sent or _shifted(birth.sent, shift)
            mine.confirmed = mine.confirmed or _shifted(birth.confirmed, shift)
            mine.refused = mine.refused or _shifted(birth.refused, shift)
            mine.begun += birth.begun
            mine.answered += birth.answered
        for m, steps in right.unplaced.items():
            left.unplaced.setdefault(m, []).extend(_moved(s, shift) for s in steps)
        left.tested += right.tested
        left.untestable += right.untestable
        left.suspects += [
            Suspect(
                _moved(s.before, shift),
                _moved(s.after, shift),
                s.why,
                _moved(s.settled, shift) if s.settled else None,
            )
            for s in right.suspects
        ]
        for key, times in right.again.items():
            left.again[key] = left.again.get(key, 0) + times
        # Last, because judging needs the gaps of both sides.
        for key, steps in right.lifecycles.items():
            moved = [_moved(s, shift) for s in steps]
            mine_steps = left.lifecycles.get(key)
            left.lifecycles[key] = self._join(left, key, mine_steps, moved) if mine_steps else moved
        return left

    def _join(
        self, out: Lifecycles, key: LifecycleKey, mine: list[Step], more: list[Step]
    ) -> list[Step]:
        """Judge the one pair that the cut had parted; the pairs on either side are judged already."""
        last = max((n for n, s in enumerate(mine) if s.kind == ACQUIRED), default=None)
        first = min((n for n, s in enumerate(more) if s.kind == ACQUIRED), default=None)
        if last is None or first is None:
            return mine + more
        out.again[key] = out.again.get(key, 0) + 1
        self.judge(out, mine[last], mine[last + 1 :] + more[:first], more[first])
        opening = min(n for n, s in enumerate(mine) if s.kind == ACQUIRED)
        closing = max(n for n, s in enumerate(more) if s.kind == ACQUIRED)
        return _kept(out, mine + more, opening, len(mine) + closing)


def _kept(out: Lifecycles, steps: list[Step], opening: int, closing: int) -> list[Step]:
    """What is kept of a lifecycle: up to its first acquisition, and from the last on; and of what lies between the
    latest command that may have ended it for good, and before it those that the latest does not stand for, since it may
    be refused.
    """
    ended = [s for s in steps[opening + 1 : closing] if s.kind == SETTLED]
    latest = ended[-1:]
    if not any(out.not_refused(s) for s in latest):
        certain = [s for s in ended if out.not_refused(s)]
        latest = (certain[-1:] or [s for s in ended[:-1] if not out.refused(s)]) + latest
    return steps[: opening + 1] + latest + steps[closing:]


def _publish(out: Lifecycles, event: Event) -> None:
    out.queues[event.q] = None
    birth = out.births.setdefault((event.q, event.m), Birth())
    placed = PlacedEvent(out.n, event)
    if event.ph == "fail" or event.ev == "return":
        birth.refused = birth.refused or placed
        return
    birth.sent = birth.sent or placed
    birth.begun += event.ph in ("", "invoke")
    birth.answered += event.ph == "ok"
    if event.ph == "ok" or event.lvl in EXACT:
        birth.confirmed = birth.confirmed or placed


def _general(out: Lifecycles, event: Event) -> None:
    """Take in an event that concerns no one message."""
    ev = event.ev
    out.sessions.add(out.n, event)
    if ev == "recover" and event.ph != "fail":
        sweep = Sweep(out.n, 0, False, event.ph == "ok")
        out.sweeps.setdefault(holder(event), []).append(sweep)
    elif ev == "declare":
        if declares(event) and event.q not in out.declared:
            out.declared.append(event.q)
        if any(a.startswith("x-dead-letter") for a in event.args) and event.q not in out.dead:
            out.dead.append(event.q)
        if may_drop(event) and event.q not in out.mortal:
            out.mortal.append(event.q)
    elif ev == "consume" and event.ph != "fail":
        out.takers.setdefault(event.q, {}).setdefault(holder(event), out.n)


def _moved(step: Step, shift: int) -> Step:
    return Step(step.pos + shift, step.kind, step.by, step.event)


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
        or summary.sessions.sign_before(by, after.pos)
        or summary.gap_between(before.pos, after.pos)
    )
