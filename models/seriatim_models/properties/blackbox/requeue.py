"""P6: how late a requeued message comes back.

From outside a client library the instant at which a nack took effect is not known. But commands of one channel take
effect in the order sent, and a delivery under a full prefetch needs the credit that some command of its channel gave.
So if the message m' was requeued by that command or an earlier one, it was back in the queue when the delivery was
made. If the message delivered is a later one, m' was *overtaken*.

Qpid's queue never lets that happen. RabbitMQ 3.10's classic queue does: its process takes acknowledgements (and the
credit they give) before requeues that came earlier
(`rabbit_amqqueue_process:prioritise_cast`), so a requeued message keeps its place but comes back after up to
prefetch - 1 further deliveries.
So the property has a bound, and the default is what the prefetch allows; ``RequeueLateness(within=0)`` is the strict
form.

One pass in recording order. The state keeps what is held, what is on its way back, and, of each message on its way
back, the first `WINDOW` deliveries that overtook it beyond the bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from seriatim_models.history.event import EXACT, GAP, SETTLES, Event, began
from seriatim_models.properties.base import Finding, ProfileValue
from seriatim_models.properties.blackbox.aggregation import AggregationState, SequentialProperty
from seriatim_models.properties.blackbox.channels import CaseCounts
from seriatim_models.properties.blackbox.doubts import Doubts
from seriatim_models.properties.blackbox.lifecycle import (
    ACQUIRES,
    LifecycleKey,
    acquires,
    named,
)
from seriatim_models.properties.blackbox.naming import (
    ENDS,
    ConsumerKey,
    Holder,
    consumer,
    end_of,
    holder,
)
from seriatim_models.properties.blackbox.sessions import ANSWERED
from seriatim_models.properties.blackbox.strict import when

WINDOW = 4096  # deliveries that overtook one message, each perhaps a violation of its own; more are left open


LimitKey = tuple[str, Holder, str | None]
"""What a limit is for: on one queue, of one channel, a consumer, or the channel (None)."""


class Requeued(msgspec.Struct, array_like=True):
    """A message on its way back: who requeued it, by which command, and who overtook it beyond the bound."""

    by: Holder
    command: int
    event: Event
    place: Event
    prio: int | None
    pos: int
    """The command's position."""
    unsure: bool
    """A consumer that was ending may have had it, unseen."""
    overtaken: int = 0
    over: list[int] = []
    """Numbers of the deliveries, see `Late.over`."""


class Overtaker(msgspec.Struct, array_like=True):
    """A delivery that overtook something whose return is not recorded yet."""

    event: Event
    waits: int = 0
    """For how many messages to come back."""
    open: bool = False
    violates: bool = False


class Holding(msgspec.Struct, array_like=True):
    """A delivery not settled, and the limit under which it was made."""

    limit: LimitKey
    event: Event
    counts: bool
    """Against the limit: what is polled does not, nor what needs no settlement."""


class Limit(msgspec.Struct, array_like=True):
    """The credit of one consumer or channel on one queue, counted in commands."""

    delivered: int = 0
    most: int = 0
    """The highest prefetch so far: a delivery may have been made before it was lowered."""
    credit: list[int] = []
    """Commands that gave credit, in order, but for those that were `spent` long ago."""
    spent: int = 0
    unknown: bool = False
    """Lines were lost or a lease ran out, so that the count is."""


class Late(msgspec.Struct):
    """The aggregation state of P6."""

    back: dict[tuple[Holder, str], dict[LifecycleKey, Requeued]] = {}
    """By holder and publisher's stream."""
    at: dict[LifecycleKey, tuple[Holder, str]] = {}
    """Under which of these a message is."""
    held: dict[Holder, dict[LifecycleKey, Holding]] = {}
    commands: dict[Holder, int] = {}
    limits: dict[LimitKey, Limit] = {}
    ending: dict[ConsumerKey, str] = {}
    """What is ending and not known to have ended, and the queue it names."""
    recovering: dict[Holder, None] = {}
    """Who asked for all to be requeued, and was not answered."""
    over: dict[int, Overtaker] = {}
    prio: dict[LifecycleKey, int] = {}
    serial: int = 0
    tested: int = 0
    untestable: int = 0
    doubts: Doubts = msgspec.field(default_factory=Doubts)
    takers: dict[str, dict[Holder, None]] = {}
    """Of each queue, who consumed or polled: any of them may have had a message, unseen, and lost it."""
    lost: bool = False
    """Lines were lost, and takers may be among them."""
    unseen: dict[str, None] = {}
    """Queues with a lease that ran out before its delivery was seen."""
    seen: dict[Holder, int] = {}
    """The highest tag of a channel up to which all was seen: the answer of a poll may overtake deliveries."""


def _of_tag(settlement: Event, tag: int | None) -> bool:
    """Whether a settlement is about a delivery's tag: that of a lease that ran out names the message, and not this."""
    if not settlement.dtag or tag is None:
        return True
    return tag <= settlement.dtag if settlement.multiple else tag == settlement.dtag


class _LatenessPass:
    def __init__(self, state: Late, within: int | None) -> None:
        self.s = state
        self.within = within

    def run(self, events: Iterable[Event]) -> None:
        for event in events:
            self.s.doubts.take(event)
            if event.ev == "publish":
                if event.prio is not None:
                    self.s.prio[event.q, event.m] = event.prio
            elif event.ev in SETTLES:
                if began(event):
                    self._settle(event)
            elif event.ev in ACQUIRES:
                if event.ev == "get":
                    self._asks(event)
                if acquires(event):
                    self._deliver(event)
            else:
                self._called(event)

    def _called(self, event: Event) -> None:
        """Take in what is no traffic."""
        if event.ev == "consume":
            self._asks(event)
        elif event.ev == GAP:
            self._lost()
        elif event.ev == "recover":
            self._recover(event)
        elif event.ev == "expire":
            self._expired((event.q, event.m))
        elif event.ev in ENDS or event.ev == "cancel":
            self._end(event)

    def _asks(self, event: Event) -> None:
        """Somebody consumes from a queue, or polls it."""
        if event.ph == "fail":
            return
        by = holder(event)
        self.s.takers.setdefault(event.q, {})[by] = None
        if event.ev == "consume" and event.ph in ("", "invoke"):
            for ctag in (event.ctag, None):
                self._limit((event.q, by, ctag))

    def _limit(self, name: LimitKey) -> Limit:
        """The credit under a limit, which is there from `consume` on: what comes back unseen concerns it, too."""
        known = self.s.limits.get(name)
        if known is None:
            q, _, _ = name
            known = self.s.limits[name] = Limit(unknown=q in self.s.unseen)
        return known

    def _lost(self) -> None:
        s = self.s
        s.lost = True
        for limit in s.limits.values():
            limit.unknown = True
        self.leave_all_open()
        s.back.clear()
        s.at.clear()

    def _sweep(self, by: Holder) -> None:
        """What a channel had not seen yet was settled, perhaps: how much credit that gave is not known."""
        for (_, whose, _), limit in self.s.limits.items():
            if whose == by:
                limit.unknown = True

    def _recover(self, event: Event) -> None:
        """A channel gives back all that it holds, seen or not: it may have had any message that was on its way."""
        by = holder(event)
        self._sweep(by)
        if event.ph == "invoke":
            self.s.recovering[by] = None
        else:
            self.s.recovering.pop(by, None)
        if event.lvl not in EXACT:
            for group in self.s.back.values():
                for back in group.values():
                    back.unsure = True

    def _expired(self, key: LifecycleKey) -> None:
        """A lease ran out, at an instant that is not known: so is when its holder's credit came back.

        Of a delivery that nobody has seen yet the holder is not known either: then it is any of the queue.
        """
        leases = [
            lease for held in self.s.held.values() if (lease := held.pop(key, None)) is not None
        ]
        for lease in leases:
            self.s.limits[lease.limit].unknown = True
        if not leases:
            q, _ = key
            self.s.unseen[q] = None
            for (of, _, _), limit in self.s.limits.items():
                limit.unknown |= of == q

    def leave_all_open(self) -> None:
        for group in self.s.back.values():
            for back in group.values():
                self._leave_open(back.over)

    def _end(self, event: Event) -> None:
        """A consumer that ends may have had, unseen, any message that was on its way back."""
        s = self.s
        name = ConsumerKey(end_of(event), "") if event.ev in ENDS else consumer(event)
        if event.ph in ("", "ok") and event.ev != "conn_drop":
            s.ending.pop(name, None)
        else:
            s.ending[name] = event.q
        if event.lvl not in EXACT:
            for group in s.back.values():
                for back in group.values():
                    if not event.q or back.place.q in (event.q, ""):
                        back.unsure = True

    def _settle(self, event: Event) -> None:
        s = self.s
        by = holder(event)
        command = s.commands[by] = s.commands.get(by, 0) + 1
        holds = s.held.get(by, {})
        if event.multiple and (not event.dtag or s.seen.get(by, 0) < event.dtag):
            self._sweep(by)
        for key in named(event, holds):
            held = holds.get(key)
            if held is None or not _of_tag(event, held.event.dtag):
                continue
            del holds[key]
            if held.counts:
                s.limits[held.limit].credit.append(command)
            if event.ev == "ack" or event.requeue is False:
                s.prio.pop(key, None)
                continue
            q = held.event.q
            unsure = event.lvl not in EXACT and (
                bool(s.recovering) or any(e in (q, "") for e in s.ending.values())
            )
            prio = self._prio(key, held.event)
            self._forget(key)
            group = by, held.event.pub
            s.back.setdefault(group, {})[key] = Requeued(
                by, command, event, held.event, prio, s.doubts.n, unsure
            )
            s.at[key] = group

    def _prio(self, key: LifecycleKey, event: Event) -> int | None:
        return event.prio if event.prio is not None else self.s.prio.get(key)

    def _forget(self, key: LifecycleKey) -> Requeued | None:
        """It is no longer on its way back."""
        group = self.s.at.pop(key, None)
        if group is None:
            return None
        backs = self.s.back[group]
        back = backs.pop(key)
        if not backs:
            del self.s.back[group]
        return back

    def _deliver(self, event: Event) -> None:  # noqa: C901, PLR0912  # one acquisition meets all kinds of waiting
        s = self.s
        by = holder(event)
        if event.ev == "deliver" or event.lvl not in ("", "api"):
            s.seen[by] = max(s.seen.get(by, 0), event.dtag or 0)
        key = event.q, event.m
        ctag = None if event.scope == "channel" else event.ctag
        name = event.q, by, ctag
        returned = self._forget(key)
        if returned:
            # Something else could have been given instead, on the channel where it was certainly back.
            self.s.tested += not returned.unsure and by == returned.by
            self._judge(returned, event)
        counts = event.ev == "deliver" and not event.autoack
        limit = self._limit(name)
        if not event.autoack:
            held = s.held.setdefault(by, {})
            if key in held:  # two copies, of which settlements name the message alone
                limit.unknown = s.limits[held[key].limit].unknown = True
            held[key] = Holding(name, event, counts)
        if not counts:
            return
        limit.delivered += 1
        limit.unknown |= event.scope != "consumer" and (event.scope is None) == bool(event.prefetch)
        limit.most = max(limit.most, event.prefetch or 0)
        # As many credits had come back as deliveries were made beyond the prefetch, and they came in order.
        last = limit.delivered - limit.most - 1 - limit.spent
        credit = limit.credit[last] if 0 <= last < len(limit.credit) else 0
        if last > 64:
            del limit.credit[:last]
            limit.spent += last
        if event.pseq is None or not event.prefetch or event.dead:
            return
        if limit.unknown:
            s.untestable += any(q == event.q for q, _ in s.back.get((by, event.pub), ()))
            return
        within = event.prefetch if self.within is None else self.within
        overtaker: Overtaker | None = None
        overtakes = False
        for back in s.back.get((by, event.pub), {}).values():
            place = back.place
            if (
                back.command <= credit
                and (place.q, place.part, place.key) == (event.q, event.part, event.key)
                and not place.dead
                and place.pseq is not None
                and place.pseq < event.pseq
                and back.prio == self._prio(key, event)
                and place.key == event.key
            ):
                back.overtaken += 1
                overtakes = True
                if back.overtaken > within:
                    if overtaker is None:
                        overtaker = Overtaker(event)
                        s.over[s.serial] = overtaker
                    if len(back.over) < WINDOW:
                        back.over.append(s.serial)
                        overtaker.waits += 1
                    else:
                        overtaker.open = True
        s.tested += overtakes
        if overtaker is not None:
            self._settled(s.serial)
            s.serial += 1

    def _settled(self, number: int) -> None:
        """Count an overtaker when nothing that it waits for is left. It was counted as tested."""
        s = self.s
        overtaker = s.over[number]
        if overtaker.waits:
            return
        del s.over[number]
        if overtaker.open and not overtaker.violates:
            s.tested -= 1
            s.untestable += 1

    def _judge(self, back: Requeued, event: Event) -> None:
        """The message is back. On the channel that requeued it, deliveries come in the order of acquisition;
        elsewhere it may have been taken earlier than it was recorded.
        """
        s = self.s
        same = holder(event) == back.by
        for number in back.over:
            over = s.over[number]
            late = over.event
            sure = not (back.unsure or s.lost) and (
                same or (event.t_lo is not None and when(late) < event.t_lo)
            )
            over.waits -= 1
            if not sure:
                over.open = True
            elif not over.violates:
                over.violates = True
                self._report(back, late, event)
            self._settled(number)

    def _report(self, back: Requeued, late: Event, event: Event) -> None:
        """Definite if nobody else can have had the message meanwhile."""
        why = (
            f"{back.event.ev} at event {back.event.i} requeued {event.m}; {back.by} was given the later {late.m} "
            f"at event {late.i} with credit from that command or a later one, and {event.m} only at event {event.i}"
        )
        takers = {by for q in (event.q, "") for by in self.s.takers.get(q, ()) if by != back.by}
        witness = [back.place, back.event, late, event]
        self.s.doubts.report(event, takers, why, witness, since=back.pos)

    def _leave_open(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            over = self.s.over[number]
            over.waits -= 1
            over.open = True
            self._settled(number)


class RequeueLateness(SequentialProperty[Late]):
    """P6. A case is a delivery under a prefetch that meets a requeued message: it brings it back to the channel that
    requeued it, or, of a later place in its publisher's stream, overtakes it. Without a requeue there is no case.

    It violates if it overtakes, on the channel that had requeued it, an earlier message of the same publisher that
    was overtaken `within` times before; `within` None stands for the prefetch.
    Definite if everybody else who consumed from the queue or polled it is known to have been there (`doubts`).
    Open: what came back to another channel, at an instant that is not definite; what never came back;
    and what may have been in flight, unseen, to a consumer that ended; deliveries whose credit
    is unknown because lines were lost or a lease ran out.

    Costs O(n + n·k), with k the messages that one channel requeued and that are still on their way.
    """

    id = "P6"
    sentence = "A requeued message comes back before more than a bounded number of later ones."
    source = (
        "RabbitMQ 3.10.8 rabbit_amqqueue_process:prioritise_cast; "
        "https://www.rabbitmq.com/docs/nack (requeued to its original position if possible)"
    )
    rests_on = "which command gave a delivery its credit shows only in all that its channel was given and settled"
    case = (
        "a requeue under a prefetch, and the next deliveries of its channel with `pub` and `pseq`"
    )
    scope = "queue"
    reads = ACQUIRES | SETTLES | ENDS | ANSWERED | {"publish", "expire", GAP}
    queue_check = "seriatim_models.properties.columnar.queues:RegularQueues"
    summary_type = AggregationState[Late]
    keeps = "what is held or on its way back, and who overtook it"
    time = "O(n + n·k), k messages of one channel on their way back"
    options = frozenset({"within"})

    def __init__(self, within: int | None = None) -> None:
        self.within = within

    @classmethod
    def from_options(cls, options: Mapping[str, ProfileValue]) -> RequeueLateness:
        within = options.get("within", "prefetch")
        if within == "prefetch":
            return cls()
        if isinstance(within, int) and within >= 0:
            return cls(within=within)
        raise ValueError(f"within: {within!r} is neither a number of deliveries nor 'prefetch'")

    def feed(self, state: Late, events: Iterable[Event]) -> None:
        _LatenessPass(state, self.within).run(events)

    def close(self, state: Late) -> Finding:
        # Whatever still waits stays open; a violation that was reported already was counted then.
        undecided = sum(not o.violates for o in state.over.values())
        tally = CaseCounts(state.tested - undecided, state.untestable + undecided)
        state.doubts.resolve(tally)
        return tally.finding(self.id)
