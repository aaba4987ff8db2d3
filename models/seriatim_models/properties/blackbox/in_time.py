"""P26: nobody is given a message before its delay is over, when its time to live is, nor while another has a lease."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import msgspec

from seriatim_models.history.complete import SETTLES
from seriatim_models.history.event import GAP, Event
from seriatim_models.properties.base import CaseEvents, Finding
from seriatim_models.properties.blackbox.aggregation import AggregationState, SequentialProperty
from seriatim_models.properties.blackbox.channels import CaseCounts

MS = 1_000_000
EARLY, LATE = 20 * MS, 100 * MS
"""How much a delay may be short, as by a clock that ticks every 16 ms, and how long dropping what is old may take."""
LONGEST, TIME_MAX = 2**61, 2**63 - 1
"""Nanoseconds of a delay, a time to live or a lease (73 years; a longer one counts as so long), and of any time: more
could not be written to a state.
"""
KEPT = 65_536  # messages with a delay or a time to live; the state must stay small


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
        said = self.answer.args.get("answered")
        there = said if type(said) is int else self.answer.t
        return None if there is None else min(there + self.delay + self.ttl + LATE, TIME_MAX)


class InTimeState(msgspec.Struct):
    """The aggregation state of P26."""

    messages: dict[tuple[str, str], TimedMessage | None] = {}
    """By queue and message; None if several were published so. The latest `KEPT`."""
    old: dict[str, list[int]] = {}
    """By queue when the time to live of messages was over of which nothing was seen since."""
    rest: Event | None = None
    """The last time that all had come to rest: what was due had been said."""
    leases: dict[str, Event] = {}
    """By queue the declaration of how long a lease is."""
    leased: dict[tuple[str, str], Event] = {}
    """By queue and message who was given it last and has not begun to settle it. The latest `KEPT`."""
    tally: CaseCounts = msgspec.field(default_factory=CaseCounts)


class InTime(SequentialProperty[InTimeState]):
    """P26. A case is a message that was published with a `delay`, in milliseconds, and given to somebody; and one whose
    `ttl` was over when somebody was given one of its queue, or none; and one that was given again, unsettled, in a
    queue that declares how long a `lease` is, in milliseconds.

    It is early if it is recorded less than the delay after its publish began, and late if it was taken more than the
    time to live after that was answered (`answered`, if its end was written down later): polled for, or given to a
    consumer that began then, or after all had come to rest. A delay may be short by 20 ms, and dropping what
    is old may take 100. Open for what was handed out before, published twice under one name, or came by way of
    another queue. A lease begins when its holder asked at the earliest, and may be short by 20 ms, too; it ends with
    the first settlement that is asked for, whatever came of that.
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
    reads = frozenset({"publish", "deliver", "get", "note", "declare", "recover", GAP}) | SETTLES
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
            if event.ev == GAP:
                state.messages.clear()
                state.old.clear()
                state.leased.clear()
                state.rest = None
            elif event.ev == "note":
                state.rest = event if event.args.get("rest") else state.rest
            elif event.ev == "publish":
                self._publish(state, event)
            elif event.ev == "declare":
                if nanoseconds(event.args.get("lease")):
                    state.leases[event.q] = event
            elif event.ev == "recover":
                state.leased.clear()
            elif event.ev in SETTLES:
                self._settled(state, event)
            elif event.ph not in ("invoke", "fail", "info"):
                self._looked(state, event)

    def _publish(self, state: InTimeState, event: Event) -> None:
        name = event.q, event.m
        if event.ph in ("", "invoke"):
            delay, ttl = (nanoseconds(event.args.get(word)) for word in ("delay", "ttl"))
            if name in state.messages:
                before, state.messages[name] = state.messages[name], None
                self._no_longer_old(state, event.q, before)
            elif delay or ttl:
                state.messages[name] = TimedMessage(event, delay, ttl)
                if len(state.messages) > KEPT:
                    del state.messages[next(iter(state.messages))]
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
                state.leased.pop((q, m), None)

    @staticmethod
    def _given_under_lease(state: InTimeState, event: Event) -> None:
        """A message of a queue with leases was given: not to another before the lease of who had it is over."""
        declared, name = state.leases.get(event.q), (event.q, event.m)
        if declared is None:
            return
        before = state.leased.pop(name, None)
        if not event.autoack and not event.dead:
            state.leased[name] = event
            if len(state.leased) > KEPT:
                del state.leased[next(iter(state.leased))]
        if before is None:
            return
        begun, lease = before.t_lo, nanoseconds(declared.args["lease"])
        if begun is None or event.t is None:  # when it was asked for is not known
            state.tally.untestable += 1
            return
        state.tally.tested += 1
        if event.t < begun + lease - EARLY:
            why = (
                f"{event.m} was given at event {event.i}, {_ms(event.t - begun)} after who was given it at event "
                f"{before.i} had asked for one; that has a lease of {_ms(lease)}"
            )
            state.tally.report_violation(why, [declared, before, event])

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
        if event.dead or message.given is not None or asked.t is None or event.t is None:
            tally.untestable += 1
            return
        message.given, message.rest = event, state.rest
        begun = asked.t if asked.t_lo is None else asked.t_lo
        if message.delay:
            tally.tested += 1
            if event.t < begun + message.delay - EARLY:
                why = (
                    f"{event.m} was given at event {event.i}, {_ms(event.t - begun)} after its publish began, which "
                    f"asked for a delay of {_ms(message.delay)}"
                )
                tally.report_violation(why, [asked, event])
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
        return state.tally.finding(self.id)


def nanoseconds(ms: object) -> int:
    """Milliseconds as a declaration has them, in nanoseconds, `LONGEST` at most; 0 if it has none."""
    if not isinstance(ms, int | float) or isinstance(ms, bool):
        return 0
    return round(min(max(0, ms * MS), LONGEST))


def _ms(nanoseconds: int) -> str:
    return f"{nanoseconds / MS:.0f} ms"
