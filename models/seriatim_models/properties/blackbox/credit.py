"""P7: no more outstanding than the prefetch allows."""

from __future__ import annotations

import msgspec

from seriatim_models.history.event import EXACT, GAP, SETTLES, Event, answer_alone, began
from seriatim_models.properties.base import Finding
from seriatim_models.properties.blackbox.channels import (
    CaseCounts,
    ChannelProperty,
    ExpiredLease,
    Suspicion,
    Tracks,
)
from seriatim_models.properties.blackbox.lifecycle import (
    LifecycleKey,
    acquires,
    named,
)
from seriatim_models.properties.blackbox.naming import Holder, holder, settler

CALLS = SETTLES | {"recover", "qos", "consume", "cancel"}


class Outstanding(msgspec.Struct):
    """Deliveries of one channel, or of a connection without channels, whose settlement has not been sent."""

    open: dict[LifecycleKey, Event] = {}
    partial: bool = False
    """Lines were lost: more may be outstanding than is known."""
    through: int = 0
    """The highest tag that a command for several covered, seen or not."""
    swept: int | None = None
    """When all was settled, seen or not, at the earliest."""
    asked: int | None = None
    """When a later call was begun that the broker answers."""
    clear: int | None = None
    """When that was certainly over: what is acquired later is outstanding."""


class Prefetch(ChannelProperty[Outstanding]):
    """P7: whether more are outstanding than the prefetch limit. A case is a delivery under one.

    A settlement counts from when it was sent, and deliveries that no recorder saw are not counted: both
    make the count a lower bound, so an excess is definite. What a command for several tags may have settled before it
    was seen is not counted either. After lost lines counting starts again from nothing, with
    what was certainly acquired after a later answer; a delivery on a channel opened before them can be a violation,
    and one that is none is untestable.
    The limit holds for a consumer or for its channel, as `scope` says; a delivery whose limit's scope is not known
    is untestable. So is one within the limit of a connection, of whose other channels it says nothing; what one of
    them alone holds beyond that is a violation. Without channels the connection is counted as a whole. Where a
    connection without channels has ended, or was opened anew, nobody knows what a worker of that name still holds,
    and what looks like an excess is untestable.
    Of a limit that was changed while messages were on their way `history.complete` takes the widest.
    """

    id = "P7"
    sentence = "Deliveries outstanding never exceed the prefetch."
    source = "AMQP 0-9-1 specification, basic.qos; https://www.rabbitmq.com/docs/consumer-prefetch"
    rests_on = ""
    case = "a delivery to a consumer with a prefetch whose scope is known"
    reads = CALLS | {"deliver", "get", "expire", "ch_open", GAP}
    summary_type = Tracks[Outstanding]
    channel_check = "seriatim_models.properties.columnar.channel_checks:PrefetchCheck"

    def start_after_gap(self) -> Outstanding:
        return Outstanding(partial=True, swept=0)

    key = staticmethod(settler)
    """A channel; without channels the connection, on which anybody may settle, or else the worker."""

    def step(self, state: Outstanding, event: Event, by: Holder, tally: CaseCounts) -> None:
        if event.ev in CALLS or event.ev == "get":
            tally.kinds.add(event)
        if event.ev in SETTLES:
            if began(event):
                self._settle(state, event)
            if answer_alone(event):
                tally.unbegun.add(event.conn)
        elif event.ev == "expire":
            key = event.q, event.m
            state.open.pop(key, None)
            # Inside the broker its holder is known, unless several had copies.
            unknown = event.lvl not in EXACT or (bool(event.requeue) and not event.conn)
            if unknown:
                tally.expired.add(ExpiredLease(event.conn, key))
        elif event.ev in CALLS:
            self._call(state, event)
        elif event.ev == "deliver" and acquires(event) and not event.autoack:
            unknown = (
                state.partial and event.autoack is None
            )  # its consumer began where lines were lost
            if self._counts(state, event) and not unknown:
                state.open[event.q, event.m] = event
            self._limit(state, event, by, tally)

    def _settle(self, state: Outstanding, event: Event) -> None:
        for key in named(event, state.open):
            state.open.pop(key, None)
        if event.dtag is not None and (event.multiple or not event.ms):
            # Perhaps of those whose tags were not recorded; without channels the tag alone may name it.
            tags = (None,) if event.ch is not None else (None, event.dtag)
            for key in [k for k, e in state.open.items() if e.dtag in tags]:
                del state.open[key]
        if event.multiple and event.dtag is not None and event.lvl not in EXACT:
            state.through = max(state.through, event.dtag)
            if not event.dtag:
                self._sweep(state, event)

    def _sweep(self, state: Outstanding, event: Event) -> None:
        state.open.clear()
        if event.lvl not in EXACT:
            state.swept = event.t if event.t is not None else event.i
            state.asked = state.clear = None

    def _call(self, state: Outstanding, event: Event) -> None:
        """Take in a call: its answer shows that what was sent before it took effect."""
        at = event.t if event.t is not None else event.i
        if event.ev == "recover" and event.ph != "fail":
            if event.ph == "ok" and state.swept is not None:
                state.clear = at
            else:
                self._sweep(state, event)
        elif state.swept is not None and event.ph == "invoke" and state.asked is None:
            state.asked = event.op if event.op is not None else -1
        elif (
            event.ph == "ok"
            and state.clear is None
            and state.asked == (event.op if event.op is not None else -1)
        ):
            state.clear = at

    def _counts(self, state: Outstanding, event: Event) -> bool:
        """Whether a delivery that is recorded now was certainly not settled before."""
        if state.through and (event.dtag is None or event.dtag <= state.through):
            return False
        if state.swept is None or event.lvl in EXACT:
            return True
        return state.clear is not None and event.t_lo is not None and event.t_lo >= state.clear

    def _limit(self, state: Outstanding, event: Event, by: Holder, tally: CaseCounts) -> None:
        if not event.prefetch:  # no limit, or 0, which is none
            return
        if event.scope not in ("consumer", "channel", "conn"):
            tally.untestable += 1
            return
        # A prefetch of the channel covers all its consumers, one of the connection all channels.
        one, asked = event.scope == "consumer", holder(event)
        held: list[Event] = []
        if len(state.open) > event.prefetch:
            if by.ch is None and event.scope != "conn":
                held = [e for e in state.open.values() if holder(e) == asked]
            else:
                held = [e for e in state.open.values() if not one or e.ctag == event.ctag]
        another = event.ch is None and (not event.conn or (event.gen or 1) > 1)
        if len(held) <= event.prefetch or another:
            several = event.scope == "conn" and by.ch is not None
            if state.partial or several or len(held) > event.prefetch:
                tally.untestable += 1
            else:
                tally.tested += 1
        else:
            tally.tested += 1
            whose = f"channel {by}" if by.ch is not None else f"consumer {asked}"
            if one and by.ch is not None:
                whose = f"consumer {event.ctag} on {by}"
            why = (
                f"with {event.m} at event {event.i} {whose} held {len(held)} messages, "
                f"and its prefetch was {event.prefetch}"
            )
            # What may have been settled before it was seen is not counted, but was given as well.
            shown = held if any(e is event for e in held) else [*held, event]
            tally.suspects.append(Suspicion(why, shown))

    def finish(self, summary: Tracks[Outstanding]) -> Finding:
        """The finding; a lease that ran out, or a settlement that began, nobody knows when may have freed what looks
        held.
        """
        tally = self.total(summary)
        tally.settle_suspects(tally.freed)
        return tally.finding(self.id)
