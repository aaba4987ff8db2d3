"""P12 and P13: what a client library does with its threads: callbacks, and calls that wait for a reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from seriatim_models.history.bounded import ForgetsOldest, forget_oldest
from seriatim_models.history.event import EXACT, GAP, UNKNOWN_GEN, Event, began
from seriatim_models.properties.base import CaseEvents, Finding
from seriatim_models.properties.blackbox.channels import (
    CaseCounts,
    ChannelProperty,
    Suspicion,
    TrackKey,
    Tracks,
)
from seriatim_models.properties.blackbox.naming import NOBODY, Holder, connection, holder


class Callbacks(msgspec.Struct):
    """One connection: the callback that runs on each channel, and the latest delivery whose callback has begun."""

    running: dict[Holder, Event] = {}
    latest: dict[Holder, Event] = {}
    pool: int | None = None
    opened: Event | None = None
    """By which the pool is known."""


class CallbackOrder(ChannelProperty[Callbacks]):
    """P12. A case is a callback that begins (`cb_begin`, with the delivery's `dtag`; `cb_end` when it returns).

    Three things can be wrong with it: another callback of its channel is running (J1); a later delivery of its channel
    had its callback before (J2); more callbacks of its connection run than its pool has threads (J3, if the connection
    says its pool: ``conn_open`` with ``args={"pool": n}``).
    Definite, since begin and end are recorded within the callback.
    """

    id = "P12"
    sentence = "A channel's callbacks run one at a time, in order, and of a connection no more than it has threads."
    source = (
        "The RabbitMQ Threading Model; https://www.rabbitmq.com/client-libraries/java-api-guide"
        "#consumer-thread-pool and #concurrency"
    )
    rests_on = ""
    case = "callbacks (`cb_begin`, `cb_end`)"
    reads = frozenset({"conn_open", "ch_open", "cb_begin", "cb_end", GAP})
    summary_type = Tracks[Callbacks]
    keeps = "the state of each connection"
    case_events = CaseEvents(frozenset({"cb_begin"}))
    opens = "conn_open"

    def key(self, event: Event) -> TrackKey:
        return connection(holder(event))

    def step(self, state: Callbacks, event: Event, by: Holder, tally: CaseCounts) -> None:
        channel = holder(event)
        if event.ev == "conn_open":
            pool = event.args.get("pool")
            state.pool = pool if isinstance(pool, int) else None
            state.opened = event
        elif event.ev == "ch_open":
            state.running.pop(channel, None)
            state.latest.pop(channel, None)
        elif event.ev == "cb_end":
            state.running.pop(channel, None)
        else:
            self._begin(state, event, channel, tally)

    def _begin(self, state: Callbacks, event: Event, channel: Holder, tally: CaseCounts) -> None:
        tally.tested += 1
        running = state.running.get(channel)
        latest = state.latest.get(channel)
        state.running[channel] = event
        if running is not None:
            tally.report_violation(
                f"on {channel} the callback at event {event.i} began while that of event {running.i} ran",
                [running, event],
            )
        elif (
            latest is not None
            and event.dtag is not None
            and latest.dtag is not None
            and event.dtag <= latest.dtag
        ):
            tally.report_violation(
                f"on {channel} the callback of tag {event.dtag} (event {event.i}) began after that of "
                f"tag {latest.dtag} (event {latest.i})",
                [latest, event],
            )
        elif state.pool is not None and len(state.running) > state.pool:
            tally.report_violation(
                f"with event {event.i} {len(state.running)} callbacks of {event.conn} ran, on {state.pool} threads",
                [*([state.opened] if state.opened else []), *state.running.values()],
            )
        state.latest[channel] = event


class Calls(msgspec.Struct, ForgetsOldest):
    """Calls of one channel that wait for their reply, by operation."""

    bounded: ClassVar = ("answered", "unknown", "reused")
    waiting: dict[int, Event] = {}
    answered: dict[int, Event] = {}
    partial: bool = False
    """Lines were lost: a reply may belong to a call that is not known."""
    unknown: dict[int, Event] = {}
    """Calls that nobody waits for any more, though nobody knows their outcome; the latest `ANSWERED_KEPT`."""
    reused: dict[int, Event] = {}
    """Calls whose number stands for another one as well; the latest `ANSWERED_KEPT`."""


ANSWERED_KEPT = (
    256  # operations; a reply that comes twice comes soon, and the state must stay small
)


class CallReply(ChannelProperty[Calls]):
    """P13. A case is a reply (`rpc` with ``ok``; ``invoke`` is the call, `op` joins them; `key`, if both have one, says
    what was asked and what was answered), and at the wire also a call.

    A reply without a call, where its connection's calls are recorded, a second reply, and a reply to another call's
    key violate it. Two calls of one channel at a time violate it at the wire and inside the broker, unless no reply of
    the connection is recorded; above a client library the second may be waiting for the first. A call of unknown
    outcome (`info`) has ended for its caller; its reply may still come.
    """

    id = "P13"
    sentence = (
        "A channel has one synchronous call at a time, and its reply goes to its caller, once."
    )
    source = "The RabbitMQ Threading Model; AMQP 0-9-1 specification, 2.2.2 (synchronous methods)"
    rests_on = ""
    case = "calls and their replies (`rpc`)"
    reads = frozenset({"rpc", "ch_open", GAP})
    summary_type = Tracks[Calls]
    case_events = CaseEvents(frozenset({"rpc"}))

    def key(self, event: Event) -> Holder:
        """Callers without names are those of their recorders, each with numbers of its own."""
        by = holder(event)
        return by._replace(name=event.rec) if by == NOBODY else by

    def start_after_gap(self) -> Calls:
        return Calls(partial=True)

    def step(self, state: Calls, event: Event, by: Holder, tally: CaseCounts) -> None:
        if event.ev != "rpc" or event.op is None:
            return
        if event.gen == UNKNOWN_GEN or event.op in state.reused:
            tally.untestable += event.ph == "ok"
            return
        if event.ph == "invoke":
            state.answered.pop(event.op, None)  # another call of that number
        if event.ph == "invoke" and event.op in state.waiting and event.ch is None:
            _keep(state.reused, event.op, event)  # two callers count alike, and neither is named
            del state.waiting[event.op]
            return
        tally.kinds.add(event)
        if event.ph == "invoke" and began(event):
            if event.lvl in EXACT or event.lvl == "wire":
                tally.tested += 1
                for other in state.waiting.values():
                    why = f"{by} sent a call at event {event.i} while that of event {other.i} waited for its reply"
                    tally.suspects.append(Suspicion(why, [other, event]))
                    break
            state.waiting[event.op] = event
        elif event.ph == "ok":
            self._reply(state, event, by, tally)
        elif event.ph in ("fail", "info"):
            call = state.waiting.pop(event.op, None)
            if call is not None and event.ph == "info":
                _keep(state.unknown, event.op, call)

    def _reply(self, state: Calls, event: Event, by: Holder, tally: CaseCounts) -> None:
        assert event.op is not None
        call = state.waiting.pop(event.op, None) or state.unknown.pop(event.op, None)
        before = state.answered.get(event.op)
        _keep(state.answered, event.op, event)
        if call is None and before is None and state.partial:
            tally.untestable += 1
            return
        tally.tested += 1
        if before is not None:
            why = f"{by} got a reply to operation {event.op} at event {event.i} and before at event {before.i}"
            tally.report_violation(why, [before, event])
        elif call is None:
            why = f"{by} got a reply at event {event.i} to no call of its own"
            tally.suspects.append(Suspicion(why, [event]))
        elif None not in (call.key, event.key) and call.key != event.key:
            why = f"{by} called for {call.key} at event {call.i} and got the reply to {event.key} at event {event.i}"
            tally.report_violation(why, [call, event])

    def finish(self, summary: Tracks[Calls]) -> Finding:
        tally = self.total(summary)
        tally.settle_suspects(lambda suspect: self._half_recorded(suspect, tally))
        return tally.finding(self.id)

    def _half_recorded(self, suspect: Suspicion, tally: CaseCounts) -> bool:
        """Whether the other half of a connection's calls is never recorded: calls of a reply, or replies of calls."""
        shown = suspect.witness[0]
        halves = tally.kinds.begun if shown.ph == "ok" else tally.kinds.numbered
        return (shown.conn, "rpc") not in halves

    def check_witness(self, witness: Sequence[Event]) -> Finding:
        """The finding on a witness alone: that calls and replies are recorded is taken from the run, not from it."""
        summary = self.combine(self.begin(), self.map(witness))
        summary.tally.kinds.begun |= {(e.conn, "rpc") for e in witness}
        summary.tally.kinds.numbered |= summary.tally.kinds.begun
        return self.finish(summary)


def _keep(of: dict[int, Event], op: int, event: Event) -> None:
    """Remember the latest `ANSWERED_KEPT` operations."""
    of[op] = event
    if len(of) > ANSWERED_KEPT:
        forget_oldest(of)
