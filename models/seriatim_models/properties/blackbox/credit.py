"""P7: no more outstanding than the prefetch allows."""

from __future__ import annotations

import msgspec

from seriatim_models.history.complete import SETTLES
from seriatim_models.history.event import GAP, Event
from seriatim_models.properties.blackbox.channels import CaseCounts, ChannelProperty, Tracks
from seriatim_models.properties.blackbox.lifecycle import Holder, acquires, began


class Outstanding(msgspec.Struct):
    """Deliveries of one channel whose settlement has not been sent, by message."""

    open: dict[str, Event] = {}
    partial: bool = False
    """Lines were lost: more may be outstanding than is known."""


class Prefetch(ChannelProperty[Outstanding]):
    """P7: whether more are outstanding than the prefetch limit. A case is a delivery under one.

    A settlement counts from when it was sent, and deliveries that no recorder saw are not counted: both
    make the count a lower bound, so an excess is definite. After lost lines counting starts again from nothing,
    and a delivery on a channel opened before them can be a violation; one that is none is untestable.
    The limit holds for a consumer or for its channel, as `scope` says; a delivery whose limit's scope is not known
    is untestable.
    """

    id = "P7"
    sentence = "Deliveries outstanding never exceed the prefetch."
    source = "AMQP 0-9-1 specification, basic.qos; https://www.rabbitmq.com/docs/consumer-prefetch"
    kind = "safety"
    case = "a delivery to a consumer with a prefetch whose scope is known"
    reads = frozenset({"deliver", "ch_open", "recover", GAP}) | SETTLES
    summary_type = Tracks[Outstanding]

    def start(self) -> Outstanding:
        return Outstanding()

    def start_after_gap(self) -> Outstanding:
        return Outstanding(partial=True)

    def step(self, state: Outstanding, event: Event, by: Holder, tally: CaseCounts) -> None:
        if event.ev in SETTLES:
            if began(event):
                for m in event.ms or ():
                    state.open.pop(m, None)
        elif event.ev == "recover":
            state.open.clear()
        elif acquires(event) and not event.autoack:
            state.open[event.m] = event
            self._limit(state, event, by, tally)

    def _limit(self, state: Outstanding, event: Event, by: Holder, tally: CaseCounts) -> None:
        if not event.prefetch:  # no limit, or 0, which is none
            return
        if event.scope == "consumer":
            held = [e for e in state.open.values() if e.ctag == event.ctag]
            whose = f"consumer {event.ctag} on {by}"
        elif event.scope == "channel":
            # A prefetch of the channel covers all its consumers.
            held = list(state.open.values())
            whose = f"channel {by}"
        else:
            tally.untestable += 1
            return
        if len(held) <= event.prefetch:
            if state.partial:
                tally.untestable += 1
            else:
                tally.tested += 1
        else:
            tally.tested += 1
            tally.report_violation(
                f"with {event.m} at event {event.i} {whose} held {len(held)} messages, "
                f"and its prefetch was {event.prefetch}",
                held,
            )
