"""P8 and P9: delivery tags, and silence after a cancel or close."""

from __future__ import annotations

import zlib
from typing import ClassVar, NamedTuple

import msgspec

from seriatim_models.history.bounded import ForgetsOldest, forget_oldest, ordered
from seriatim_models.history.event import (
    EXACT,
    GAP,
    SETTLES,
    UNKNOWN_GEN,
    Event,
    answer_alone,
    began,
)
from seriatim_models.properties.base import Finding
from seriatim_models.properties.blackbox.channels import (
    CaseCounts,
    ChannelProperty,
    ExpiredLease,
    Suspicion,
    Tracks,
)
from seriatim_models.properties.blackbox.lifecycle import ACQUIRES, acquires
from seriatim_models.properties.blackbox.naming import (
    Holder,
    holder,
    settler,
)
from seriatim_models.properties.blackbox.sessions import ANSWERED


class Twice(msgspec.Struct, array_like=True):
    """A tag was settled twice, unless one of the two had no effect."""

    why: str
    given: Event
    first: Event
    second: Event
    asked: list[Event] = []
    """Calls of the channel that were begun since and are not answered: the recording ended before the answers."""
    taken: list[Event] = []
    """What shows that the second one was not refused: a call that was begun after it, and its answer."""

    def take(self, event: Event) -> None:
        """Take in what shows that the channel went on, or that nobody knows whether it did."""
        if self.taken:
            return
        if event.ph == "invoke" and event.ev in _CALLS:
            self.asked = [*self.asked[1 - ASKED_KEPT :], event]
        elif event.ph == "ok" and not event.err:
            call = next((e for e in self.asked if (e.ev, e.op) == (event.ev, event.op)), None)
            if call is not None:
                self.taken = [call, event]

    @property
    def open(self) -> bool:
        """Whether the broker may have refused the second one after the last line."""
        return bool(self.asked) and not self.taken and self.second.lvl not in EXACT


class LeftOut(msgspec.Struct, array_like=True):
    """Tags were left out between two deliveries, unless the recorder left those deliveries out."""

    last: Event
    """The delivery before, or the opening of the channel."""
    event: Event
    polls: list[int]
    """Polls under way then that were not answered since: each may have been given one of the tags."""
    settled: bool = False
    """One of the tags was settled, so that its delivery is not recorded."""

    @property
    def explained(self) -> bool:
        """Whether it is no mistake of the broker's for certain."""
        missing = (self.event.dtag or 0) - (self.last.dtag or 0) - 1
        return self.settled or len(self.polls) >= missing

    def holds(self, dtag: int) -> bool:
        """Whether a tag is among those left out."""
        return (self.last.dtag or 0) < dtag < (self.event.dtag or 0)


class PacketKey(NamedTuple):
    """A tag of a system without channels, which its consumer has for one message at a time."""

    by: Holder
    q: str
    dtag: int


class Tags(msgspec.Struct, ForgetsOldest):
    """The tags of one channel: the latest delivery and poll, and those not settled."""

    bounded: ClassVar = ("settled", "polls")

    last: dict[str, Event] = {}
    open: dict[int, Event] = {}
    settled: dict[int, tuple[Event, Event]] = {}
    """The latest settlements by tag, each after its delivery, to show them when a tag is settled again."""
    resting: bytes = b""
    """The same, packed, while nothing comes of the channel."""
    twice: list[Twice] = []
    opened: Event | None = None
    """The opening of the channel, if it is recorded; else it may have been opened anew."""
    closing: bool = False
    """The channel's close was asked for: what is given then may be of the channel opened anew, or is seen late."""
    asked: dict[str, None] = {}
    """Consumers that were begun when something had been given already, and were given nothing yet."""
    polls: dict[int, int | None] = {}
    """Polls that are not answered, each by its number, with its operation; the latest `SETTLED_KEPT`."""
    n_polls: int = 0
    unseen: list[int] = []
    """Tags that were settled although no delivery has them; the latest `SETTLED_KEPT`."""
    left_out: list[LeftOut] = []
    packets: dict[PacketKey, Event] = {}
    """Without a channel: deliveries that are not settled, by their tags."""


_Settled = dict[int, tuple[Event, Event]]
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(_Settled).decode
_CALLS = (ANSWERED | {"get"}) - {"conn_close"}
ENDING_HOLDS = frozenset({"cancel", "recover"})
"""Calls by which a consumer may have nothing any more."""
_TAGGED = ACQUIRES | SETTLES
"""Events of which a tag says anything."""
ASKED_KEPT = 16  # calls of one channel, which has one at a time
SETTLED_KEPT = 256  # tags; a client that settles twice does so soon, and the state must stay small


class DeliveryTags(ChannelProperty[Tags]):
    """P8. A case is a delivery after another on its channel, or a settlement by tag; without channels a delivery while
    its connection has others that are not settled.

    A tag left out is a violation only for a recorder at the wire or in the broker, and none if its delivery is not
    recorded: a poll was not answered, or somebody settles it. Above a client library it is
    untestable: the library may have refused the delivery itself (pika's cancel does). There the answer of a poll may
    be recorded before deliveries that came earlier and wait for their callback; so the two kinds are compared apart.
    Where the opening of a channel is not recorded, a first tag, given to a poll or to a consumer that was begun since,
    or to anybody after its close was asked for, may be of the channel opened anew.
    Without a channel a tag is another system's, which may use it again once it is settled (the packet identifier of
    MQTT, 2.2.1): that it stands for two messages of one consumer's connection at a time is a violation, unless a lease
    ran out, or nobody records when settlements are sent.
    A settlement that failed or whose outcome is unknown settles nothing for certain, and one for several tags covers
    what was not seen yet: to settle that again is no violation of the broker's.
    Nor is it one if the broker closed the channel after it, with an error: so it answers a settlement that it refuses;
    or if it may have, since a call that was begun after it waits for its answer when the recording ends.
    """

    id = "P8"
    sentence = "Delivery tags of a channel count up by one, and each is settled at most once."
    source = (
        "AMQP 0-9-1 specification, domain delivery-tag, basic.ack rules delivery-tag and multiple"
    )
    rests_on = ""
    case = (
        "two deliveries on one channel, or a settlement, with their delivery tags; without channels a delivery while "
        "its connection has others that are not settled"
    )
    reads = ACQUIRES | SETTLES | _CALLS | {"ch_open", "expire", GAP}
    summary_type = Tracks[Tags]
    channel_check = "seriatim_models.properties.columnar.channel_checks:TagCheck"

    key = staticmethod(settler)
    """A channel; without channels the connection, on which anybody may settle."""

    def rest(self, state: Tags) -> None:
        if state.settled:
            state.resting = zlib.compress(_pack(state.settled), 1)
            state.settled.clear()

    def step(self, state: Tags, event: Event, by: Holder, tally: CaseCounts) -> None:
        if event.ch is None:
            self._packet(state, event, tally)
        else:
            self._of_channel(state, event, by, tally)

    def _of_channel(self, state: Tags, event: Event, by: Holder, tally: CaseCounts) -> None:
        """Take in an event of a channel."""
        if state.resting:
            state.settled = ordered(_unpack(zlib.decompress(state.resting)))
            state.resting = b""
        for twice in state.twice:
            twice.take(event)
        if event.ev == "ch_close":
            self._close(state, event, tally)
        elif event.ev == "ch_open":
            state.opened = state.opened or (event if event.ph in ("", "ok") else None)
        elif event.ev == "consume" and state.last and event.ph != "fail":
            state.asked[event.ctag] = None
        elif event.ev == "get":
            self._poll(state, event)
        if event.dtag is None or event.ev not in _TAGGED:
            return
        if event.gen == UNKNOWN_GEN:
            tally.untestable += 1
        elif acquires(event):
            self._deliver(state, event, by, tally)
        elif event.ev in SETTLES and began(event):
            self._settle(state, event, by, tally)
        elif event.ev in SETTLES and event.ph in ("fail", "info"):
            self._void(state, event, tally)

    def _packet(self, state: Tags, event: Event, tally: CaseCounts) -> None:
        """Take in an event without a channel."""
        tally.kinds.add(event)
        if event.ev == "expire":
            tally.expired.add(ExpiredLease(event.conn, (event.q, event.m)))
        elif event.ev in ENDING_HOLDS:
            state.packets.clear()
        elif event.ev in SETTLES:
            if answer_alone(event):
                tally.unbegun.add(event.conn)
            if began(event):
                state.packets = {k: e for k, e in state.packets.items() if not _settles(event, e)}
        elif acquires(event) and event.dtag and not event.autoack:
            if not event.conn or (event.gen or 1) > 1:
                tally.untestable += 1  # perhaps another one of that name
                return
            key = PacketKey(holder(event), event.q, event.dtag)
            before = state.packets.get(key)
            tally.tested += bool(state.packets)
            if before is not None and before.m != event.m:
                why = (
                    f"tag {event.dtag} was {before.m} (event {before.i}) and, not settled, {event.m} "
                    f"(event {event.i}) for {key.by}"
                )
                tally.suspects.append(Suspicion(why, [before, event]))
            state.packets[key] = event

    def _close(self, state: Tags, event: Event, tally: CaseCounts) -> None:
        """The channel's close is asked for or confirmed; with an error it answers what was settled twice."""
        if event.err:
            tally.tested -= len(state.twice)
            tally.untestable += len(state.twice)
            state.twice = []
        state.closing = event.ph != "fail"

    def _poll(self, state: Tags, event: Event) -> None:
        """A poll begins, or is answered; of one whose outcome is unknown nobody knows what it was given."""
        if event.ph == "invoke":
            state.n_polls += 1
            state.polls[state.n_polls] = event.op
            if len(state.polls) > SETTLED_KEPT:
                forget_oldest(state.polls)
        elif event.ph in ("ok", "fail"):
            poll = next((n for n, op in state.polls.items() if op == event.op), None)
            if poll is not None:
                del state.polls[poll]
                for left_out in state.left_out:
                    left_out.polls = [n for n in left_out.polls if n != poll]

    def _anew(self, state: Tags, event: Event) -> bool:
        """Whether a tag that is given or settled may be one of the first of a channel that was opened anew."""
        # Each poll that was not answered may have been given a tag before it.
        known = state.opened is not None or event.lvl in EXACT
        if known or (event.dtag or 0) > len(state.polls) + acquires(event):
            return False
        return event.ev != "deliver" or event.ctag in state.asked or state.closing

    def _deliver(self, state: Tags, event: Event, by: Holder, tally: CaseCounts) -> None:
        above = event.lvl in ("", "api")
        kind = event.ev if above else ""
        last, dtag = state.last.get(kind), event.dtag or 0
        if last is not None and dtag <= (last.dtag or 0) and self._anew(state, event):
            last = None
            tally.untestable += 1
            state.last, state.open = {}, {}
            state.settled.clear()
        state.last[kind] = event
        if event.ev == "deliver":
            state.asked.pop(event.ctag, None)
        if not event.autoack:
            state.open[dtag] = event
        if last is None and state.opened is not None and dtag > 1 and not above:
            self._left_out(state, state.opened, event, tally)
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
            self._left_out(state, last, event, tally)
        else:
            tally.tested += 1

    def _left_out(self, state: Tags, last: Event, event: Event, tally: CaseCounts) -> None:
        """Tags are missing between two deliveries, or between the opening of a channel and its first one."""
        tally.tested += 1
        left_out = LeftOut(last, event, list(state.polls))
        left_out.settled = any(left_out.holds(d) for d in state.unseen)
        state.left_out.append(left_out)
        if len(state.left_out) > SETTLED_KEPT:
            self._decide(state.left_out.pop(0), tally)

    def _settle(self, state: Tags, event: Event, by: Holder, tally: CaseCounts) -> None:
        dtag = event.dtag or 0
        covered = [d for d in state.open if d <= dtag or dtag == 0] if event.multiple else [dtag]
        before = state.settled.get(dtag)
        again = not event.multiple and before is not None and dtag not in state.open
        if again and self._anew(state, event):
            tally.untestable += 1
            del state.settled[dtag]
        elif again and before is not None:
            tally.tested += 1
            why = f"{by} settled tag {dtag} at event {event.i} and before at event {before[1].i}"
            state.twice.append(Twice(why, *before, event))
            while len(state.twice) > SETTLED_KEPT:
                self._report(state.twice.pop(0), tally)
        elif dtag in state.open or (event.multiple and covered):
            tally.tested += 1
        else:
            tally.untestable += 1
            if not event.multiple and before is None:
                state.unseen = [*state.unseen[1 - SETTLED_KEPT :], dtag]
                for left_out in state.left_out:
                    left_out.settled = left_out.settled or left_out.holds(dtag)
        for d in covered:
            if (given := state.open.pop(d, None)) is not None:
                state.settled[d] = given, event
        while len(state.settled) > SETTLED_KEPT:
            forget_oldest(state.settled)

    def _void(self, state: Tags, outcome: Event, tally: CaseCounts) -> None:
        """A settlement had no effect, or nobody knows."""
        for d in [d for d, (_, e) in state.settled.items() if _same(e, outcome)]:
            del state.settled[d]
        kept = [t for t in state.twice if not (_same(t.first, outcome) or _same(t.second, outcome))]
        tally.tested -= len(state.twice) - len(kept)
        tally.untestable += len(state.twice) - len(kept)
        state.twice = kept

    def _report(self, twice: Twice, tally: CaseCounts) -> None:
        if twice.open:
            tally.tested -= 1
            tally.untestable += 1
        else:
            shown = [twice.given, twice.first, twice.second, *twice.taken]
            tally.report_violation(twice.why, shown)

    def _decide(self, left_out: LeftOut, tally: CaseCounts) -> None:
        last, event = left_out.last, left_out.event
        if left_out.explained:
            tally.tested -= 1
            tally.untestable += 1
            return
        before = f"tag {last.dtag}" if last.dtag else "its opening"
        tally.report_violation(
            f"on {holder(event)} tag {event.dtag} (event {event.i}) followed {before} (event {last.i})",
            [last, event],
        )

    def finish(self, summary: Tracks[Tags]) -> Finding:
        """The finding; as with P7 a lease that ran out, or what nobody saw begin, may have freed a tag."""
        tally = self.total(summary)
        tally.settle_suspects(tally.freed)
        return tally.finding(self.id)

    def end(self, state: Tags, tally: CaseCounts) -> None:
        for twice in state.twice:
            self._report(twice, tally)
        for left_out in state.left_out:
            self._decide(left_out, tally)


def _settles(settlement: Event, given: Event) -> bool:
    """Whether a settlement, without a channel, may be of a delivery: it names its message or tag, or is for several."""
    return (
        bool(settlement.multiple)
        or given.dtag == settlement.dtag
        or given.m in (settlement.ms or ())
    )


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
