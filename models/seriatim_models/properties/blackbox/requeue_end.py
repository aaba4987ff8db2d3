"""P25: what is requeued goes to the end of the queue that the queue declares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

import msgspec

from seriatim_models.history.event import EXACT, GAP, SETTLES, Event, began
from seriatim_models.properties.base import CaseEvents, Finding
from seriatim_models.properties.blackbox.aggregation import AggregationState, SequentialProperty
from seriatim_models.properties.blackbox.channels import CaseCounts
from seriatim_models.properties.blackbox.lifecycle import (
    ACQUIRES,
    LifecycleKey,
    acquires,
    holders,
    holds_groups,
    may_drop,
    named,
    ranks,
    requeues_to,
)
from seriatim_models.properties.blackbox.naming import ENDS, Holder, holder
from seriatim_models.properties.blackbox.strict import EMPTIES, OrderedLine, when


class Entry(NamedTuple):
    """How a message came into its queue: by its publish, or by what requeued it."""

    line: OrderedLine
    trail: tuple[Event, ...]
    """Its publish; and, of one that came back, its acquisition and what requeued it."""
    begun: Event
    """Before it the message was not there, and from the last of the trail on it was."""
    back: bool = False
    """Whether it was requeued."""

    def before(self, other: Entry) -> bool:
        """Whether it was certainly there before the other came."""
        return when(self.trail[-1]) < when(other.begun)


class DeclaredQueue(msgspec.Struct):
    """A queue that declares where requeued messages go."""

    declaration: Event
    end: str
    """``head`` or ``tail``."""
    waiting: dict[str, Entry] = {}
    """Messages that are certainly in it, and how each came."""
    lines: dict[str, tuple[OrderedLine, tuple[Event, ...]]] = {}
    """Of each message not settled for good: what it is ordered in, and its publish."""
    back: dict[OrderedLine, int] = {}
    """How many of `waiting` were requeued."""
    selects: bool = False
    """A consumer does not want every message."""
    ranked: bool = False
    """Its messages have priorities, so that one of unknown priority may be anywhere."""
    grouped: bool = False
    """Its groups are held, so that one of an unknown group may have to wait."""

    def enter(self, m: str, entry: Entry) -> None:
        """A message is in the queue."""
        self.waiting[m] = entry
        if entry.back:
            self.back[entry.line] = self.back.get(entry.line, 0) + 1

    def leave(self, m: str) -> Entry | None:
        """It is not, or nobody knows; returns how it had come, if it was there."""
        entry = self.waiting.pop(m, None)
        if entry is not None and entry.back:
            self.back[entry.line] -= 1
            if not self.back[entry.line]:
                del self.back[entry.line]
        return entry

    def forget(self, m: str) -> None:
        """Nothing is known of the message any more."""
        self.leave(m)
        self.lines.pop(m, None)


class RequeueEnds(msgspec.Struct):
    """The aggregation state of P25."""

    queues: dict[str, DeclaredQueue] = {}
    sent: dict[LifecycleKey, Event] = {}
    """Publishes that have begun and are not answered."""
    held: dict[Holder, dict[LifecycleKey, Event]] = {}
    tally: CaseCounts = msgspec.field(default_factory=CaseCounts)


class RequeueEnd(SequentialProperty[RequeueEnds]):
    """P25. A case is an acquisition while a message that was requeued and another one of its line are in the queue.

    Only of queues whose declaration says so (``args={"requeue": "tail"}``, or ``head``), seen from inside or by a drive
    that sees every effect: elsewhere nobody knows when a requeue took effect, and the acquisition is untestable.
    At the tail a requeued message is behind all that were there before it, and before all that come later; at the head
    it is before all others, the last one first. Of those that one command requeued the order is not judged; nor of what
    came back because its channel ended, was recovered or lost its lease; nor where a queue drops messages by itself or
    has a consumer that selects.
    """

    id = "P25"
    sentence = "A requeued message goes to that end of its queue which the queue declares."
    source = (
        "the queue's own declaration; to the tail: https://nsq.io/overview/features_and_guarantees.html (un-ordered, "
        "since a requeued message is queued again); to the head: AMQP 0-9-1 specification, basic.recover"
    )
    rests_on = ""
    case = (
        "a queue declared with `requeue`: `head` or `tail`, recorded where effects are seen, and a requeue beside "
        "another message"
    )
    scope = "queue"
    reads = (
        ACQUIRES
        | SETTLES
        | ENDS
        | EMPTIES
        | {"declare", "publish", "return", "recover", "expire", "consume", GAP}
    )
    summary_type = AggregationState[RequeueEnds]
    keeps = "messages that are not settled"
    time = "O(n k), k messages that are in a queue while requeued ones are"
    case_events = CaseEvents(frozenset({"declare"}), lambda e: bool(requeues_to(e)), ("args",))
    silent_elsewhere: ClassVar[str] = "a queue that promises it declares it"

    def feed(self, state: RequeueEnds, events: Iterable[Event]) -> None:
        for event in events:
            if event.ev == "declare":
                self._declare(state, event)
            elif event.ev == GAP:
                self._lost(state)
            elif event.ev == "publish":
                self._publish(state, event)
            elif acquires(event):
                self._acquired(state, event)
            elif event.ev in SETTLES:
                self._settled(state, event)
            elif event.ev in ENDS or event.ev == "recover":
                self._unplaced(state, event)
            elif event.q in state.queues:
                self._removed(state, state.queues[event.q], event)
                if event.ev == "delete" and event.ph != "fail":
                    self._deleted(state, event.q)

    def _declare(self, state: RequeueEnds, event: Event) -> None:
        end = requeues_to(event)
        if end and event.ph in ("", "ok") and not may_drop(event):
            queue = DeclaredQueue(event, end, ranked=ranks(event), grouped=holds_groups(event))
            state.queues.setdefault(event.q, queue)

    def _lost(self, state: RequeueEnds) -> None:
        """Anything may have happened in the lines that were lost."""
        state.held.clear()
        state.sent.clear()
        for queue in state.queues.values():
            queue.waiting.clear()
            queue.lines.clear()
            queue.back.clear()

    def _removed(self, state: RequeueEnds, queue: DeclaredQueue, event: Event) -> None:
        """Messages left the queue otherwise, or came back at an instant that is not known; or a consumer selects."""
        if event.ev == "consume":
            queue.selects = queue.selects or bool(event.nolocal)
            return
        gone = [event.m] if event.ev in ("return", "expire") else [*queue.lines]
        for m in gone:
            queue.forget(m)
            state.sent.pop((event.q, m), None)
            for held in state.held.values():
                held.pop((event.q, m), None)

    def _deleted(self, state: RequeueEnds, q: str) -> None:
        """A queue is deleted: the next of its name declares anew, and has none of its messages."""
        del state.queues[q]
        for held in state.held.values():
            for key in [k for k in held if k[0] == q]:
                del held[key]

    def _publish(self, state: RequeueEnds, event: Event) -> None:
        queue, key = state.queues.get(event.q), (event.q, event.m)
        if queue is None:
            return
        if event.ph == "invoke" and event.m not in queue.lines and key not in state.sent:
            state.sent[key] = event
            return
        begun = event if event.ph == "" else state.sent.pop(key, None)
        queue.ranked = queue.ranked or ranks(event)
        unplaced = (queue.ranked and event.prio is None) or (queue.grouped and event.key is None)
        unplaced = unplaced or bool(event.dead)  # it comes in when its delay is over
        if event.m in queue.lines or event.ph not in ("", "ok") or begun is None or unplaced:
            queue.forget(event.m)  # sent twice, refused, or nobody knows
        elif event.lvl in EXACT:
            line = OrderedLine(event.part, event.key, event.prio)
            trail = (event,) if begun is event else (begun, event)
            queue.lines[event.m] = line, trail
            if not any(key in held for held in state.held.values()):
                queue.enter(event.m, Entry(line, trail, begun))

    def _acquired(self, state: RequeueEnds, event: Event) -> None:
        queue = state.queues.get(event.q)
        if queue is None:
            return
        entry = queue.leave(event.m)
        if event.lvl not in EXACT or event.dead or queue.selects or entry is None:
            state.tally.untestable += 1
        else:
            self._judge(state.tally, queue, entry, event)
        state.sent.pop((event.q, event.m), None)  # its answer is too late to place it
        if event.autoack:
            queue.forget(event.m)
        else:
            state.held.setdefault(holder(event), {})[event.q, event.m] = event

    def _judge(self, tally: CaseCounts, queue: DeclaredQueue, taken: Entry, event: Event) -> None:
        """Whether another message was before the one that was taken."""
        if not (taken.back or queue.back.get(taken.line)):
            return
        others = [e for e in queue.waiting.values() if e.line == taken.line and e.back | taken.back]
        tally.tested += bool(others)
        for other in others:
            if queue.end == "tail":
                wrong = other.before(taken)
            else:
                wrong = other.back and (not taken.back or taken.before(other))
            if wrong:
                came = other.trail[-1]
                why = (
                    f"{event.m} was taken at event {event.i} although {other.trail[0].m}, in {event.q} since event "
                    f"{came.i} ({came.ev}), was before it: what is requeued goes to the {queue.end}"
                )
                witness = {e.i: e for e in (queue.declaration, *taken.trail, *other.trail, event)}
                tally.report_violation(why, [witness[i] for i in sorted(witness)])
                return

    def _settled(self, state: RequeueEnds, event: Event) -> None:
        if event.ph == "info":
            self._unknown(state, event)
            return
        held = state.held.get(holder(event), {})
        for key in named(event, held):
            given = held.get(key)
            if given is None or not began(event):
                continue
            del held[key]
            q, m = key
            queue = state.queues[q]
            requeued = event.ev != "ack" and event.requeue is True
            if requeued and m in queue.lines and event.lvl in EXACT and event.ph == "":
                line, published = queue.lines[m]
                queue.enter(m, Entry(line, (*published, given, event), event, back=True))
            else:
                queue.forget(m)

    def _unknown(self, state: RequeueEnds, event: Event) -> None:
        """Nobody knows whether a settlement had an effect, nor where its messages are."""
        for q, queue in state.queues.items():
            for m in event.ms or [*queue.lines]:
                queue.forget(m)
                for held in state.held.values():
                    held.pop((q, m), None)

    def _unplaced(self, state: RequeueEnds, event: Event) -> None:
        """What was held is back, at a place that is not declared."""
        gone = [holder(event)] if event.ev == "recover" else holders(event, state.held)
        for by in gone:
            for q, m in state.held.pop(by, {}):
                state.queues[q].forget(m)

    def close(self, state: RequeueEnds) -> Finding:
        return state.tally.finding(self.id)
