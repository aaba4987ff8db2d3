"""P24: a no-local consumer is not given what its own connection sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import msgspec

from seriatim_models.history.bounded import ForgetsOldest, forget_oldest
from seriatim_models.history.event import GAP, Event, began
from seriatim_models.properties.base import CaseEvents, Finding
from seriatim_models.properties.blackbox.aggregation import AggregationState, SequentialProperty
from seriatim_models.properties.blackbox.channels import CaseCounts
from seriatim_models.properties.blackbox.naming import ENDS, ConsumerKey, consumer, ends

SENT_KEPT = 65_536  # messages; what is sent is handed out soon, and the state must stay small


class NoLocalState(msgspec.Struct, ForgetsOldest):
    """The aggregation state of P24; positions are those of its events."""

    bounded: ClassVar = ("sent",)
    n: int = 0
    consumers: dict[ConsumerKey, tuple[int, Event]] = {}
    """Consumers that asked for nothing of their own connection, and where they did."""
    sent: dict[tuple[str, str], tuple[int, Event | None]] = {}
    """By queue and message where it was sent, or None if more than one was sent so; the latest `SENT_KEPT`."""
    tally: CaseCounts = msgspec.field(default_factory=CaseCounts)


class NothingOfItsOwn(SequentialProperty[NoLocalState]):
    """P24. A case is a delivery to a consumer that asked for no-local, of a message whose publish was recorded.

    It is a violation if that publish was of the consumer's connection, and began after the consumer did: a connection
    of that name may have been another one before. Open if the publish is older, if a message was sent to the queue
    twice under one name, and for what may have come by way of another queue: then it was the broker that sent it.
    """

    id = "P24"
    sentence = "A no-local consumer is given no message that its own connection sent."
    source = "AMQP 0-9-1 specification, domain no-local"
    rests_on = ""
    case = "a no-local consumer, and a delivery to it of a message whose publish was recorded"
    scope = "queue"
    reads = ENDS | {"publish", "consume", "cancel", "deliver", GAP}
    summary_type = AggregationState[NoLocalState]
    keeps = "no-local consumers, and who sent the latest 65,536 messages"
    case_events = CaseEvents(frozenset({"consume"}), lambda e: bool(e.nolocal), ("nolocal",))
    promised_in: ClassVar[Mapping[str, str]] = {
        "amqp-0-9-1-4.7": "AMQP 0-9-1 specification, domain no-local: the server will not send messages to the "
        "connection that published them",
        "strict-qpid": "AMQP 0-9-1 specification, domain no-local",
    }
    silent_elsewhere = "there is no such consumer; RabbitMQ ignores the field (https://www.rabbitmq.com/docs/specification)"

    def feed(self, state: NoLocalState, events: Iterable[Event]) -> None:
        for event in events:
            if event.ev == GAP:
                state.consumers.clear()
            elif event.ev in ENDS:
                for name in [n for n in state.consumers if ends(event, n.by)]:
                    del state.consumers[name]
            elif event.ev == "consume":
                self._consume(state, event)
            elif event.ev == "cancel":
                state.consumers.pop(consumer(event), None)
            elif event.ev == "publish":
                self._publish(state, event)
            elif consumer(event) in state.consumers:
                self._deliver(state, event)
            state.n += 1

    def _consume(self, state: NoLocalState, event: Event) -> None:
        name = consumer(event)
        if event.ph == "fail":
            state.consumers.pop(name, None)
        elif began(event) and event.nolocal:
            state.consumers[name] = state.n, event

    def _publish(self, state: NoLocalState, event: Event) -> None:
        name = event.q, event.m
        before = state.sent.get(name)
        begins = event.ph in ("", "invoke")
        if before is None or begins:
            # Of one whose beginning is not seen nobody knows when it was sent.
            state.sent[name] = state.n, event if begins and before is None else None
        if len(state.sent) > SENT_KEPT:
            forget_oldest(state.sent)

    def _deliver(self, state: NoLocalState, event: Event) -> None:
        tally = state.tally
        since, asked = state.consumers[consumer(event)]
        at, sent = state.sent.get((event.q, event.m), (0, None))
        another = (
            not event.ctag and not event.nolocal
        )  # perhaps: of several consumers none has a tag
        earlier = sent is not None and sent.conn == event.conn and at < since
        if sent is None or event.dead or not sent.conn or earlier or another:
            tally.untestable += 1
            return
        tally.tested += 1
        if sent.conn == event.conn:
            why = (
                f"{event.m} was given to {consumer(event)} at event {event.i}, which had asked for no-local at event "
                f"{asked.i}, although its own connection sent it at event {sent.i}"
            )
            tally.report_violation(why, [asked, sent, event])

    def close(self, state: NoLocalState) -> Finding:
        return state.tally.finding(self.id)
