"""P26: nobody is given a message before its delay is over, when its time to live is, nor while another has a lease."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import msgspec

from seriatim_models.history.bounded import ForgetsOldest, forget_oldest
from seriatim_models.history.event import GAP, SETTLES, Event
from seriatim_models.history.unrecorded import missing_kinds
from seriatim_models.properties.base import CaseEvents, Finding
from seriatim_models.properties.blackbox.aggregation import AggregationState, SequentialProperty
from seriatim_models.properties.blackbox.channels import CaseCounts
from seriatim_models.properties.blackbox.doubts import Doubts
from seriatim_models.properties.blackbox.lifecycle import holders
from seriatim_models.properties.blackbox.naming import (
    ENDS,
    NOBODY,
    Holder,
    consumer,
    each_once,
    holder,
)
from seriatim_models.properties.blackbox.sessions import ANSWERED

MS = 1_000_000
EARLY, LATE = 20 * MS, 100 * MS
"""How much a delay may be short, as by a clock that ticks every 16 ms, if its queue does not declare it (`tick`), and
how long dropping what is old may take."""
LONGEST, TIME_MAX = 2**61, 2**63 - 1
"""Nanoseconds of a delay, a time to live or a lease (73 years; a longer one counts as so long), and of any time: more
could not be written to a state.
"""
TIMES = frozenset({"publish", "deliver", "get", "declare", "delete"})
"""Kinds of events that say when a message was published and given first, and to which queue: without one of another
kind what comes before its delay is over, or after its time to live, came so all the same."""
KEPT = 65_536  # messages with a delay or a time to live; the state must stay small


MessageName = tuple[str, str]
"""Queue and message."""


class TimedMessage(msgspec.Struct):
    """A message that was published once with a delay or a time to live."""

    asked: Event
    delay: int
    ttl: int
    answer: Event | None = None
    """The end of its publish, by which it was there."""
    given: Event | None = None
    """When it was handed out first: later a system may count its time anew."""
    rest: Event | None = None
    """The last time before that all had come to rest."""

    @property
    def over(self) -> int | None:
        """When its time to live is over at the latest. A delay may come first, and nothing says whether its time to
        live begins behind it.
        """
        if self.answer is None or not self.ttl:
            return None
        there = answered(self.answer)
        return None if there is None else min(there + self.delay + self.ttl + LATE, TIME_MAX)


class Lease(msgspec.Struct, array_like=True):
    """Somebody was given a message, and has not begun to settle it."""

    given: Event
    ran_out: Event | None = None
    """Somebody saw that it was the lease that ended, and not its holder."""


class Leases(msgspec.Struct, ForgetsOldest):
    """Who has which message, in queues with leases. The latest `KEPT`."""

    bounded: ClassVar = ("given", "sent", "copied")

    given: dict[MessageName, Lease] = {}
    """By message."""
    of: dict[Holder, dict[MessageName, None]] = {}
    """By holder: which messages it has."""
    sent: dict[MessageName, None] = {}
    """What was published; the latest `KEPT`."""
    copied: dict[str, None] = {}
    """Messages that were published more than once, and may be with several holders; the latest `KEPT`."""

    def begin(self, name: MessageName, event: Event) -> None:
        """A message was given."""
        self.given[name] = Lease(event)
        self.of.setdefault(holder(event), {})[name] = None
        if len(self.given) > KEPT:
            self.end(next(iter(self.given)))

    def end(self, name: MessageName) -> Lease | None:
        """A lease is over, if there is one; returns it."""
        lease = self.given.pop(name, None)
        if lease is not None:
            by = holder(lease.given)
            del self.of[by][name]
            if not self.of[by]:
                del self.of[by]
        return lease

    def ended(self, event: Event) -> None:
        """Leases end otherwise than by a settlement: with their holder, their queue, or their message. One that ran out
        is judged by its time like every other one.
        """
        if event.ev == "expire":
            name = event.q, event.m
            if event.requeue and name in self.given:
                self.given[name].ran_out = event
            gone = [] if event.requeue else [name]
        elif event.ev == "delete":
            gone = [name for name in self.given if name[0] == event.q]
        elif event.ev == "cancel":
            held, by = self.of.get(holder(event), {}), consumer(event)
            gone = [name for name in held if consumer(self.given[name].given) == by]
        else:
            gone = [name for by in holders(event, self.of) for name in self.of[by]]
        for name in gone:
            self.end(name)

    def publish(self, name: MessageName) -> None:
        """A message is published."""
        if name in self.sent:
            self.copied[name[1]] = None
            if len(self.copied) > KEPT:
                forget_oldest(self.copied)
        self.sent[name] = None
        if len(self.sent) > KEPT:
            forget_oldest(self.sent)


class InTimeState(msgspec.Struct, ForgetsOldest):
    """The aggregation state of P26."""

    bounded: ClassVar = ("messages",)
    messages: dict[MessageName, TimedMessage | None] = {}
    """By queue and message; None if several were published so. The latest `KEPT`."""
    old: dict[str, list[int]] = {}
    """By queue when the time to live of messages was over of which nothing was seen since."""
    rest: Event | None = None
    """The last time that all had come to rest: what was due had been said."""
    leases: dict[str, Event] = {}
    """By queue the declaration of how long a lease is."""
    leased: Leases = msgspec.field(default_factory=Leases)
    ticks: dict[str, Event] = {}
    """By queue the declaration of how much what it does in time may be early."""
    doubts: Doubts = msgspec.field(default_factory=Doubts)
    tally: CaseCounts = msgspec.field(default_factory=CaseCounts)


class InTime(SequentialProperty[InTimeState]):
    """P26. A case is a message that has a `delay`, in milliseconds, of its own or its queue's, and is given; and one
    whose `ttl` was over when somebody was given one of its queue, or none; and one that was given again, unsettled,
    in a queue that declares how long a `lease` is, in milliseconds.

    It is early if it is recorded less than the delay after its publish began, and late if it was taken more than the
    time to live after that was answered (`answered`, if its end was written down later): polled for, or given to a
    consumer that began then, or after all had come to rest. A delay may be short by 20 ms, or by what its queue
    declares (`tick`), and dropping what is old may take 100: what comes within that is open, and so is a delay that
    is no longer. Open as well for what was handed out before, published twice under one name, or came by way of
    another queue. A lease begins when its holder asked at the earliest, and may be short by as much; it ends with the
    first settlement that is asked for, whatever came of that, and with its holder, who must be known to have been
    there (`doubts`) if that is a session or a connection. That its holder is given a message again says nothing.
    """

    id = "P26"
    sentence = "No message is given before its delay is over, when its time to live is, nor under another's lease."
    source = (
        "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-timers.html, "
        "sqs-visibility-timeout.html; https://www.rabbitmq.com/docs/ttl"
    )
    rests_on = ""
    case = "a message with a delay or a lease that is given, or somebody looking for one whose time to live is over"
    scope = "queue"
    reads = frozenset({"publish", "deliver", "get", "note", "expire", "ch_open", GAP}) | (
        SETTLES | ENDS | ANSWERED
    )
    summary_type = AggregationState[InTimeState]
    keeps = (
        "the latest 65,536 messages that have a delay or a time to live, and that are under a lease"
    )
    case_events = CaseEvents(
        frozenset({"publish", "declare"}),
        lambda e: bool({"delay", "ttl", "lease"} & e.args.keys()),
        ("args",),
    )
    promised_in: ClassVar[Mapping[str, str]] = {
        "rabbit-classic": "https://www.rabbitmq.com/docs/ttl: the server guarantees that expired messages will not be "
        "delivered",
        "rabbit-quorum": "https://www.rabbitmq.com/docs/ttl: the server guarantees that expired messages will not be "
        "delivered",
        "sqs-standard": "Amazon SQS Developer Guide, message timers: a message stays invisible for its delay",
    }
    silent_elsewhere = "nothing says when a message with a delay or a time to live is given at the earliest or latest"

    def feed(self, state: InTimeState, events: Iterable[Event]) -> None:
        for event in events:
            state.doubts.take(event)
            if event.ev == GAP:
                self._lines_lost(state, event)
            elif event.ev in ENDS or event.ev in ("cancel", "delete", "expire"):
                state.leased.ended(event)
            elif event.ev == "note":
                state.rest = event if event.args.get("rest") else state.rest
            elif event.ev == "publish":
                self._publish(state, event)
            elif event.ev == "declare":
                if nanoseconds(event.args.get("lease")):
                    state.leases[event.q] = event
                if "tick" in event.args:
                    state.ticks[event.q] = event
            elif event.ev == "recover":
                state.leased = Leases()
            elif event.ev in SETTLES:
                self._settled(state, event)
            elif event.ev in ("deliver", "get") and event.ph not in ("invoke", "fail", "info"):
                self._looked(state, event)

    @staticmethod
    def _lines_lost(state: InTimeState, gap: Event) -> None:
        """Lines may be missing here, all of some kinds or any."""
        kinds = missing_kinds(gap)
        if not kinds or not TIMES.isdisjoint(kinds):
            state.messages.clear()
            state.old.clear()
        state.leased = Leases()
        state.rest = None

    def _publish(self, state: InTimeState, event: Event) -> None:
        name = event.q, event.m
        if event.ph in ("", "invoke"):
            state.leased.publish(name)
            delay, ttl = (nanoseconds(event.args.get(word)) for word in ("delay", "ttl"))
            if name in state.messages:
                before, state.messages[name] = state.messages[name], None
                self._no_longer_old(state, event.q, before)
            elif delay or ttl:
                state.messages[name] = TimedMessage(event, delay, ttl)
                if len(state.messages) > KEPT:
                    forget_oldest(state.messages)
        message = state.messages.get(name)
        if message is None or event.ph == "invoke":
            return
        if event.ph in ("", "ok") or "answered" in event.args:
            message.answer = event
            if message.given is not None:
                self._old(state, message, message.given)
            elif message.over is not None:
                state.old.setdefault(event.q, []).append(message.over)
        elif event.ph == "fail":
            del state.messages[name]

    @staticmethod
    def _settled(state: InTimeState, event: Event) -> None:
        """A settlement was asked for or done: from now on the message may be back."""
        for m in event.ms or ([event.m] if event.m else []):
            for q in [event.q] if event.q else list(state.leases):
                state.leased.end((q, m))

    @staticmethod
    def _early(state: InTimeState, q: str) -> int:
        """How many nanoseconds too soon what a queue does in time may be."""
        declared = state.ticks.get(q)
        return EARLY if declared is None else nanoseconds(declared.args["tick"])

    def _given_under_lease(self, state: InTimeState, event: Event) -> None:
        """A message of a queue with leases was given: not to another before the lease of who had it is over."""
        declared, name = state.leases.get(event.q), (event.q, event.m)
        if declared is None:
            return
        over = state.leased.end(name)
        if not event.autoack and not event.dead:
            state.leased.begin(name, event)
        if over is None:
            return
        before, lease, by = over.given, nanoseconds(declared.args["lease"]), holder(over.given)
        early, begun = self._early(state, event.q), before.t_lo
        # When it was asked for may not be known, nor that another one has it now.
        again = NOBODY in (by, holder(event)) or by == holder(event)
        if event.t is None or begun is None or again or event.m in state.leased.copied:
            state.tally.untestable += 1
            return
        if event.t >= begun + lease - early:
            state.tally.count(lease > early and event.t >= begun + lease)
            return
        state.tally.tested += 1
        why = (
            f"{event.m} was given at event {event.i}, {_ms(event.t - begun)} after who was given it at event "
            f"{before.i} had asked for one; that has a lease of {_ms(lease)}"
        )
        witness = each_once([declared, state.ticks.get(event.q), before, over.ran_out, event])
        # Who is seen to be given it later may have had it before, until its session ended.
        either = event.t_lo is None or (before.t is not None and event.t_lo < before.t)
        both = [before, event] if either else [before]
        sessions = [e for e in both if e.ch is not None or e.conn]
        if over.ran_out or not sessions:
            state.tally.report_violation(why, witness)
        else:  # it may have ended
            there = [holder(e) for e in sessions]
            state.doubts.report(event, there, why, witness, consumers=map(consumer, sessions))

    def _looked(self, state: InTimeState, event: Event) -> None:
        """Somebody was given a message, or looked for one."""
        if event.m:
            self._given_under_lease(state, event)
        message = state.messages.get((event.q, event.m))
        self._no_longer_old(state, event.q, message)
        waiting = state.old.get(event.q, [])
        if event.t is not None and (over := [t for t in waiting if t < event.t]):
            state.tally.tested += len(over)
            state.old[event.q] = [t for t in waiting if t >= event.t]
        if message is None or not event.m:
            return
        tally, asked = state.tally, message.asked
        # A delay alone decides the place of a message (`dead`) as a death does.
        died = event.dead and not (message.delay and not message.ttl)
        if died or message.given is not None or asked.t is None or event.t is None:
            tally.untestable += 1
            return
        message.given, message.rest = event, state.rest
        begun = asked.t if asked.t_lo is None else asked.t_lo
        if message.delay:
            due, early = begun + message.delay, self._early(state, event.q)
            if event.t >= due - early:
                tally.count(message.delay > early and event.t >= due)
            else:
                tally.tested += 1
                why = (
                    f"{event.m} was given at event {event.i}, {_ms(event.t - begun)} after its publish began, though "
                    f"it has a delay of {_ms(message.delay)}"
                )
                tally.report_violation(why, each_once([state.ticks.get(event.q), asked, event]))
        if message.answer is not None:
            self._old(state, message, event)

    @staticmethod
    def _no_longer_old(state: InTimeState, q: str, message: TimedMessage | None) -> None:
        if (
            message is not None
            and message.over is not None
            and message.over in state.old.get(q, [])
        ):
            state.old[q].remove(message.over)

    def _old(self, state: InTimeState, message: TimedMessage, event: Event) -> None:
        answer, rest, over = message.answer, message.rest, message.over
        lows = [t for t in (event.t_lo, rest.t if rest else None) if t is not None]
        if answer is None or over is None or not lows or max(lows) <= over:
            return
        state.tally.tested += 1
        why = (
            f"{event.m} was given at event {event.i}, {_ms(max(lows) - over + LATE)} or more after its time to live, "
            f"{_ms(message.ttl)}, was over"
        )
        resting = [rest] if rest is not None and max(lows) == rest.t else []
        begun = [message.asked] if message.asked is not answer else []
        state.tally.report_violation(why, [*begun, answer, *resting, event])

    def close(self, state: InTimeState) -> Finding:
        tally = CaseCounts()
        tally.join(state.tally)
        state.doubts.resolve(tally)
        return tally.finding(self.id)


def answered(end: Event) -> int | None:
    """When a publish was answered whose end may be written down later."""
    said = end.args.get("answered")
    return said if type(said) is int else end.t


def nanoseconds(ms: object) -> int:
    """Milliseconds as a declaration has them, in nanoseconds, `LONGEST` at most; 0 if it has none."""
    if not isinstance(ms, int | float) or isinstance(ms, bool):
        return 0
    return round(min(max(0, ms * MS), LONGEST))


def _ms(nanoseconds: int) -> str:
    return f"{nanoseconds / MS:.0f} ms"
