"""P23: one group, one consumer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import msgspec

from seriatim_models.history.bounded import ForgetsOldest, forget_oldest
from seriatim_models.history.event import EXACT, GAP, SETTLES, Event, began
from seriatim_models.properties.base import CaseEvents, Finding
from seriatim_models.properties.blackbox.aggregation import AggregationState, SequentialProperty
from seriatim_models.properties.blackbox.channels import CaseCounts
from seriatim_models.properties.blackbox.doubts import Doubts
from seriatim_models.properties.blackbox.in_time import nanoseconds
from seriatim_models.properties.blackbox.lifecycle import (
    ACQUIRES,
    LifecycleKey,
    acquires,
    holders,
    holds_groups,
    named,
)
from seriatim_models.properties.blackbox.naming import ENDS, ConsumerKey, Holder, consumer, holder
from seriatim_models.properties.blackbox.sessions import ANSWERED
from seriatim_models.properties.blackbox.strict import ALWAYS, NEVER, Time, when

EXPIRED_KEPT = 65_536  # messages; a delivery whose lease ran out is seen soon, if at all


class GroupedMessage(msgspec.Struct, array_like=True):
    """A message of a group that somebody holds."""

    key: str
    by: ConsumerKey
    given: Event


class GroupedQueues(msgspec.Struct, ForgetsOldest):
    """The aggregation state of P23."""

    bounded: ClassVar = ("expired",)
    declared: dict[str, Event] = {}
    """Queues whose groups are held, each with its declaration."""
    held: dict[Holder, dict[LifecycleKey, GroupedMessage]] = {}
    swept: dict[Holder, Time] = {}
    """Of each channel that let go of all, until when it may have held messages that it had not seen."""
    lost: Time = ALWAYS
    """Where lines were lost last: what was acquired before may have been let go there."""
    deleted: dict[str, Time] = {}
    """Of each queue that was deleted: what was acquired before is of no group of the next queue of its name."""
    through: dict[Holder, int] = {}
    """Of each channel, the highest tag that a command for several covered."""
    leases: dict[str, int] = {}
    """By queue the nanoseconds for which at least a message is its holder's, where it declares leases."""
    lapsed: dict[str, None] = {}
    """Queues in which a worker without a channel had nothing more, and nothing that it did or declared says why."""
    expired: dict[LifecycleKey, None] = {}
    """Messages whose lease ran out: whoever is seen to get them may not hold them. The latest `EXPIRED_KEPT`."""
    doubts: Doubts = msgspec.field(default_factory=Doubts)
    tally: CaseCounts = msgspec.field(default_factory=CaseCounts)


class OneConsumerOfGroup(SequentialProperty[GroupedQueues]):
    """P23. A case is a delivery of a group of which another message was with somebody; its earliest instant is known,
    or that its own consumer and the other one have both messages then, whichever was given first (gets that overlap).

    Only of queues whose declaration says so (``args={"groups": "held"}``): elsewhere a key orders messages, and more
    than one may have them. Definite if the other consumer had got its message before, has sent nothing since that may
    have ended its hold, and is known to have been there (`doubts`). Whose lease ran out holds nothing for certain; nor
    does a worker without a channel where a settlement was refused, or a message came to one while another had it:
    clients do not see how a lease ends.
    """

    id = "P23"
    sentence = (
        "While a consumer holds a message of a group, no other one is given messages of that group."
    )
    source = "https://qpid.apache.org/releases/qpid-broker-j-9.2.0/book/Java-Broker-Concepts-Queues.html (grouping)"
    rests_on = ""
    case = "a queue declared with groups (`groups`: `held`), and a delivery of a group that somebody holds"
    scope = "queue"
    reads = ACQUIRES | SETTLES | ENDS | ANSWERED | {"expire", "ch_open", GAP}
    summary_type = AggregationState[GroupedQueues]
    keeps = "messages of groups that somebody holds"
    time = "O(n k), k messages of one group that are held"
    case_events = CaseEvents(frozenset({"declare"}), holds_groups, ("args",))
    promised_in: ClassVar[Mapping[str, str]] = {
        "strict-qpid": "https://qpid.apache.org/releases/qpid-broker-j-9.2.0/book/Java-Broker-Concepts-Queues.html: "
        "a group is bound to a consumer while messages of it are acquired",
    }
    silent_elsewhere = (
        "there are no message groups, or a hold ends at an instant that no client sees"
    )

    def feed(self, state: GroupedQueues, events: Iterable[Event]) -> None:  # a branch an event name
        for event in events:
            state.doubts.take(event)
            if event.ev == "declare":
                self._declare(state, event)
            elif event.ev == GAP:
                state.held.clear()
                state.lost = NEVER if event.t is None else event.t
            elif event.ev in ENDS:
                for by in holders(event, state.held):
                    del state.held[by]
            elif event.ev == "delete":
                if event.ph != "fail":
                    self._deleted(state, event)
            elif event.ev == "cancel":
                self._cancelled(state, consumer(event))
            elif event.ev in SETTLES or event.ev == "recover":
                self._let_go(state, event)
            elif event.ev == "expire":
                self._expired(state, (event.q, event.m))
            elif acquires(event) and event.q in state.declared and event.key is not None:
                self._acquired(state, event)

    def _declare(self, state: GroupedQueues, event: Event) -> None:
        if holds_groups(event):
            state.declared.setdefault(event.q, event)
            if lease := nanoseconds(event.args.get("lease")):
                state.leases[event.q] = lease

    def _deleted(self, state: GroupedQueues, event: Event) -> None:
        """A queue is deleted, and its groups with it."""
        state.declared.pop(event.q, None)
        for held in state.held.values():
            for key in [k for k in held if k[0] == event.q]:
                del held[key]
        over = event.ph == "ok" or event.lvl in EXACT
        state.deleted[event.q] = when(event) if over else NEVER

    def _cancelled(self, state: GroupedQueues, name: ConsumerKey) -> None:
        """A consumer ends, and what it holds may be its group's no more."""
        held = state.held.get(name.by, {})
        for key in [k for k, message in held.items() if message.by == name]:
            del held[key]

    def _let_go(self, state: GroupedQueues, event: Event) -> None:
        by = holder(event)
        if event.ph == "fail" and event.ch is None and event.q:
            state.lapsed[event.q] = None
        if event.ev == "recover" and event.ph == "ok":
            state.swept[by] = when(event)
        if not began(event):
            return
        if event.multiple and event.dtag:
            state.through[by] = max(state.through.get(by, 0), event.dtag)
        elif (event.multiple or event.ev == "recover") and event.lvl not in EXACT:
            state.swept[by] = NEVER
        held = state.held.get(by, {})
        for key in named(event, held):
            held.pop(key, None)

    def _expired(self, state: GroupedQueues, key: LifecycleKey) -> None:
        q, _ = key
        if q not in state.declared:
            return
        for held in state.held.values():
            held.pop(key, None)
        state.expired[key] = None
        if len(state.expired) > EXPIRED_KEPT:
            forget_oldest(state.expired)

    def _acquired(self, state: GroupedQueues, event: Event) -> None:
        tally, mine, key = state.tally, consumer(event), (event.q, event.m)
        lo: Time = ALWAYS if event.t_lo is None else event.t_lo
        if event.lvl in EXACT:
            lo = when(event)
        others = [
            other
            for held in state.held.values()
            for (q, m), other in held.items()
            if q == event.q and other.key == event.key and m != event.m
        ]
        for by, held in state.held.items():
            # Of two holders of one message neither is certain.
            if held.pop(key, None) is not None and by.ch is None:
                state.lapsed[event.q] = None
        assert event.key is not None
        unsure = (
            event.autoack
            or (event.autoack is None and state.lost > ALWAYS)  # its consumer may have begun there
            or key in state.expired
            or lo <= max(state.swept.get(mine.by, ALWAYS), state.lost)
            or lo <= state.deleted.get(event.q, ALWAYS)
            or (event.dtag is not None and event.dtag <= state.through.get(mine.by, 0))
            or state.doubts.sessions.sign_before(mine.by, state.doubts.n)
        )
        # Whoever was given first: now both have theirs, if each is known to. Else the other one must have been first.
        before = [
            o
            for o in others
            if (when(o.given) < lo or (not unsure and o.by != mine)) and _has(state, o.given, event)
        ]
        if before:
            tally.tested += 1
        elif others:
            tally.untestable += 1
        for other in before:
            if other.by != mine:
                self._doubted(state, other, event, [] if when(other.given) < lo else [mine])
                break
        if not unsure:
            state.held.setdefault(mine.by, {})[key] = GroupedMessage(event.key, mine, event)

    def _doubted(
        self, state: GroupedQueues, other: GroupedMessage, event: Event, both: list[ConsumerKey]
    ) -> None:
        """Another consumer had a message of the group, if it was still there; and so must be `both`, if it is not known
        who was given first.
        """
        declared = state.declared[event.q]
        why = (
            f"{event.m}, of group {event.key}, was given to {consumer(event)} (event {event.i}) while {other.by} had "
            f"{other.given.m} of that group, which it got at event {other.given.i}"
        )
        witness = [declared, other.given, event]
        there = [other.by, *both]
        if (
            event.q in state.leases
        ):  # a worker that no connection names has its lease, whatever becomes of it
            there = [c for c in there if c.by.ch is not None or c.by.conn]
        state.doubts.report(event, [c.by for c in there], why, witness, consumers=there)

    def close(self, state: GroupedQueues) -> Finding:
        tally = CaseCounts()
        tally.join(state.tally)
        state.doubts.resolve(tally, lambda d: d.q in state.lapsed and _workers(d.holders))
        return tally.finding(self.id)


def _has(state: GroupedQueues, given: Event, now: Event) -> bool:
    """Whether the lease of what was given, if its queue declares leases, cannot be over now."""
    lease = state.leases.get(now.q)
    if lease is None:
        return True
    return given.t_lo is not None and now.t is not None and now.t < given.t_lo + lease


def _workers(among: Iterable[Holder]) -> bool:
    """Whether somebody among them is a worker without a channel."""
    return any(by.ch is None for by in among)
