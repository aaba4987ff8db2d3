"""P8 and P9: delivery tags, and silence after a cancel or close."""

from __future__ import annotations

import msgspec

from seriatim_models.history.complete import EXACT, SETTLES, UNKNOWN_GEN
from seriatim_models.history.event import GAP, Event
from seriatim_models.properties.blackbox.channels import CaseCounts, ChannelProperty, Tracks
from seriatim_models.properties.blackbox.lifecycle import (
    ACQUIRES,
    acquires,
    began,
)
from seriatim_models.properties.blackbox.naming import (
    Holder,
)


class Twice(msgspec.Struct, array_like=True):
    """A tag was settled twice, unless one of the two had no effect."""

    why: str
    given: Event
    first: Event
    second: Event


class Tags(msgspec.Struct):
    """The tags of one channel: the latest delivery and poll, and those not settled."""

    last: dict[str, Event] = {}
    open: dict[int, Event] = {}
    settled: dict[int, tuple[Event, Event]] = {}
    """The latest settlements by tag, each after its delivery, to show them when a tag is settled again."""
    twice: list[Twice] = []


SETTLED_KEPT = 256  # tags; a client that settles twice does so soon, and the state must stay small


class DeliveryTags(ChannelProperty[Tags]):
    """P8. A case is a delivery after another on its channel, or a settlement by tag.

    A tag left out is a violation only for a recorder at the wire or in the broker. Above a client library it is
    untestable: the library may have refused the delivery itself (pika's cancel does). There the answer of a poll may
    be recorded before deliveries that came earlier and wait for their callback; so the two kinds are compared apart.
    A settlement that failed or whose outcome is unknown settles nothing for certain, and one for several tags covers
    what was not seen yet: to settle that again is no violation of the broker's.
    Nor is it one if the broker closed the channel after it, with an error: so it answers a settlement that it refuses.
    """

    id = "P8"
    sentence = "Delivery tags of a channel count up by one, and each is settled at most once."
    source = (
        "AMQP 0-9-1 specification, domain delivery-tag, basic.ack rules delivery-tag and multiple"
    )
    rests_on = ""
    case = "two deliveries on one channel, or a settlement, with their delivery tags"
    reads = ACQUIRES | SETTLES | {"ch_open", "ch_close", "recover", GAP}
    summary_type = Tracks[Tags]
    channel_check = "seriatim_models.properties.columnar.channel_checks:TagCheck"

    def step(self, state: Tags, event: Event, by: Holder, tally: CaseCounts) -> None:
        if event.ev == "ch_close" and event.err:
            tally.tested -= len(state.twice)
            tally.untestable += len(state.twice)
            state.twice = []
        if event.dtag is None:
            return
        if event.gen == UNKNOWN_GEN:
            tally.untestable += 1
        elif acquires(event):
            self._deliver(state, event, by, tally)
        elif event.ev in SETTLES and began(event):
            self._settle(state, event, by, tally)
        elif event.ev in SETTLES and event.ph in ("fail", "info"):
            self._void(state, event, tally)

    def _deliver(self, state: Tags, event: Event, by: Holder, tally: CaseCounts) -> None:
        above = event.lvl in ("", "api")
        kind = event.ev if above else ""
        last, dtag = state.last.get(kind), event.dtag or 0
        state.last[kind] = event
        if not event.autoack:
            state.open[dtag] = event
        if last is None or last.dtag is None:
            return
        if dtag <= last.dtag:
            tally.tested += 1
            tally.report_violation(
                f"on {by} tag {dtag} (event {event.i}) came after tag {last.dtag} (event {last.i})",
                [last, event],
            )
        elif dtag > last.dtag + 1 and above:
            tally.untestable += 1
        elif dtag > last.dtag + 1:
            tally.tested += 1
            tally.report_violation(
                f"on {by} tag {dtag} (event {event.i}) followed tag {last.dtag} (event {last.i})",
                [last, event],
            )
        else:
            tally.tested += 1

    def _settle(self, state: Tags, event: Event, by: Holder, tally: CaseCounts) -> None:
        dtag = event.dtag or 0
        covered = [d for d in state.open if d <= dtag or dtag == 0] if event.multiple else [dtag]
        before = state.settled.get(dtag)
        if not event.multiple and before is not None and dtag not in state.open:
            tally.tested += 1
            state.twice.append(
                Twice(
                    f"{by} settled tag {dtag} at event {event.i} and before at event {before[1].i}",
                    *before,
                    event,
                )
            )
            while len(state.twice) > SETTLED_KEPT:
                self._report(state.twice.pop(0), tally)
        elif dtag in state.open or (event.multiple and covered):
            tally.tested += 1
        else:
            tally.untestable += 1
        for d in covered:
            if (given := state.open.pop(d, None)) is not None:
                state.settled[d] = given, event
        while len(state.settled) > SETTLED_KEPT:
            del state.settled[next(iter(state.settled))]

    def _void(self, state: Tags, outcome: Event, tally: CaseCounts) -> None:
        """A settlement had no effect, or nobody knows."""
        for d in [d for d, (_, e) in state.settled.items() if _same(e, outcome)]:
            del state.settled[d]
        kept = [t for t in state.twice if not (_same(t.first, outcome) or _same(t.second, outcome))]
        tally.tested -= len(state.twice) - len(kept)
        tally.untestable += len(state.twice) - len(kept)
        state.twice = kept

    def _report(self, twice: Twice, tally: CaseCounts) -> None:
        tally.report_violation(twice.why, [twice.given, twice.first, twice.second])

    def end(self, state: Tags, tally: CaseCounts) -> None:
        for twice in state.twice:
            self._report(twice, tally)


def _same(settlement: Event, outcome: Event) -> bool:
    """Whether an outcome is that of a settlement."""
    return (settlement.ev, settlement.op, settlement.dtag) == (outcome.ev, outcome.op, outcome.dtag)


class Silence(msgspec.Struct):
    """Consumers of one channel whose cancel was confirmed, and the channel's own confirmed close."""

    cancelled: dict[str, Event] = {}
    closed: Event | None = None
    unnamed: int = 0
    """How many consumers without a tag were begun: of several nobody knows which one was cancelled."""


class SilenceAfterEnd(ChannelProperty[Silence]):
    """P9. A case is a confirmed cancel of a consumer or close of a channel.

    At the wire and in the broker every later delivery is a violation. Above a client library the callback may run
    later than the frame came in, so a delivery is one only if it was definitely acquired after the confirmation.
    An end without phases is not known to be confirmed, unless the recorder is inside the broker.
    """

    id = "P9"
    sentence = (
        "After cancel-ok a consumer is given nothing, and after close-ok a channel carries nothing."
    )
    source = "AMQP 0-9-1 specification, basic.cancel and channel.close-ok"
    rests_on = ""
    case = "a confirmed cancel of a consumer, or close of a channel"
    reads = frozenset({"deliver", "cancel", "ch_open", "ch_close", "consume", GAP})
    summary_type = Tracks[Silence]
    channel_check = "seriatim_models.properties.columnar.channel_checks:SilenceCheck"

    def step(self, state: Silence, event: Event, by: Holder, tally: CaseCounts) -> None:
        if event.gen == UNKNOWN_GEN:
            tally.untestable += acquires(event)
            return
        confirmed = event.ph == "ok" or (event.ph == "" and event.lvl in EXACT)
        if event.ev == "cancel" and confirmed:
            state.cancelled[event.ctag] = event
            tally.tested += 1
        elif event.ev == "ch_close" and confirmed:
            state.closed = event
            tally.tested += 1
        elif event.ev == "consume" and event.ph != "fail":
            state.unnamed += not event.ctag and began(event)
            state.cancelled.pop(event.ctag, None)
            state.closed = None  # opened again, which was not recorded
        elif acquires(event):
            end = state.closed or state.cancelled.get(event.ctag)
            if end is None:
                return
            if end.ev == "cancel" and not event.ctag and state.unnamed > 1:
                tally.untestable += 1
                return
            after = event.lvl in EXACT or event.lvl == "wire"
            if not after and event.t_lo is not None and end.t is not None:
                after = event.t_lo > end.t
            if after:
                tally.report_violation(
                    f"{event.m} was given to {event.ctag or by} at event {event.i}, after its {end.ev} was "
                    f"confirmed at event {end.i}",
                    [end, event],
                )
            else:
                tally.untestable += 1
