"""P14: whether anybody is given a message that is available; `at_rest` judges it where all has come to rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import msgspec

from seriatim_models.history.bounded import ForgetsOldest
from seriatim_models.history.event import EXACT, GAP, SETTLES, Event, began
from seriatim_models.properties.base import Finding, ProfileValue, Verdict, undecided
from seriatim_models.properties.blackbox import at_rest
from seriatim_models.properties.blackbox.aggregation import AggregationState, SequentialProperty
from seriatim_models.properties.blackbox.channels import CaseCounts
from seriatim_models.properties.blackbox.doubts import Doubts
from seriatim_models.properties.blackbox.lifecycle import (
    ACQUIRES,
    LifecycleKey,
    acquires,
    holders,
    may_drop,
    named,
)
from seriatim_models.properties.blackbox.naming import (
    ENDS,
    ConsumerKey,
    Holder,
    consumer,
    each_once,
    ends,
    holder,
)

WITHIN_MAX = 1_000_000_000
"""Seconds of the longest bound: thirty years."""


class Waiter(msgspec.Struct, array_like=True):
    """A consumer: how much it may hold (None: any number), and how much it holds."""

    credit: int | None
    ok: Event
    holds: int = 0


class Idle(msgspec.Struct, ForgetsOldest):
    """One queue: what was never handed out, and who waits."""

    bounded: ClassVar = ("early",)

    unread: dict[str, Event] = {}
    consumers: dict[ConsumerKey, Waiter] = {}
    since: int | None = None
    """Since when something is unread, somebody waits, and nothing was handed out."""
    now: int = 0
    """The latest time of an event of the queue."""
    latest: Event | None = None
    """That event."""
    early: dict[str, None] = {}
    """Handed out and not known to be confirmed: the confirm may come later. The latest `EARLY_KEPT`."""
    takers: dict[Holder, None] = {}
    """Who consumed or polled, until its end is confirmed: it may have been given messages that nobody saw."""
    blind: bool = False
    """Messages may leave by themselves, or not every consumer may be given one: nothing is definite."""


class Wakeups(msgspec.Struct):
    """The aggregation state of P14."""

    queues: dict[str, Idle] = {}
    qos: dict[Holder, int | None] = {}
    held: dict[Holder, dict[LifecycleKey, ConsumerKey]] = {}
    """Of each holder, which of its consumers holds a message."""
    common: int = 0
    """The latest time of an event that names no queue. The times of other queues' events are left out, so that
    queues can be judged apart; where times fall it would make a difference."""
    latest: Event | None = None
    """That event."""
    end: int = 0
    """The latest time of all."""
    lost: bool = False
    """Lines were lost: others may consume, who were given what looks unread."""
    doubts: Doubts = msgspec.field(default_factory=Doubts)
    rest: at_rest.RestState = msgspec.field(default_factory=at_rest.RestState)
    """What is judged where all had come to rest, without times."""
    tally: CaseCounts = msgspec.field(default_factory=CaseCounts)


DECIDES = (
    "record how many messages are ready (a note of rest with depth), and a later answer to the "
    "consumer's channel"
)
"""What makes it certain that nobody woke a consumer, where its message is never seen again."""
_COMMON = ACQUIRES | {"publish"}
"""Nearly all events; looked at first."""
WITHIN = 10_000_000_000  # ns; far beyond what a broker on one machine needs to hand a message over


class NoLostWakeup(SequentialProperty[Wakeups]):
    """P14. A case is a time in which a confirmed message was never yet handed out while a consumer was registered that
    held less than its prefetch. It ends with the next delivery from the queue. Longer than `within` it violates.

    This is liveness with a bound, so it judges the broker, the network and the client's threads together; the bound
    has to be far above what they need. Times are nanoseconds; a history counted in steps (level model) is not judged:
    WK-1 and WK-5 are for that. Where the recorder notes that all had come to rest (`note` with ``rest``), no clock is
    needed: see `at_rest`.
    Definite: all who consumed from the queue or polled it, and whose end was not confirmed, answered a call that began
    after the bound; one that was killed, or dropped before the broker noticed, may have been given the message unseen
    (`doubts`). Only first deliveries count, since a requeued message may be dropped on its way (delivery limits).
    Not judged: queues that may drop messages, and those with exclusive, single active or no-local consumers.
    """

    id = "P14"
    sentence = "No consumer that is ready waits longer than a bound beside a message that nobody was given."
    source = "Building a queue, part 4 (wake-ups of waiting consumers); Consumer-Queue Interactions"
    rests_on = ""
    kind = "liveness"
    case = "a ready consumer beside a confirmed message, with times, or a note of rest"
    scope = "queue"
    reads = (
        ACQUIRES
        | SETTLES
        | ENDS
        | {"publish", "return", "qos", "consume", "cancel", "declare", "delete", "purge", "expire"}
        | {"recover", "note", "ch_open", "rpc", GAP}
    )
    queue_check = "seriatim_models.properties.columnar.queues:RegularQueues"
    summary_type = AggregationState[Wakeups]
    keeps = "consumers, what is held, what nobody was given"
    time = "O(n k), k consumers of a queue"
    options = frozenset({"within"})

    def __init__(self, within: int = WITHIN) -> None:
        self.within = within

    @classmethod
    def from_options(cls, options: Mapping[str, ProfileValue]) -> NoLostWakeup:
        within = options.get("within")
        if within is None:
            return cls()
        if isinstance(within, int | float) and 0 < within <= WITHIN_MAX:
            return cls(within=int(within * 1_000_000_000))
        raise ValueError(f"within: {within!r} is no number of seconds")

    def feed(self, state: Wakeups, events: Iterable[Event]) -> None:  # noqa: C901, PLR0912  # a branch an event name
        for event in events:
            if state.rest.begun or event.ev in at_rest.EARLY or event.ev == "note":
                self._take_rest(state, event)
            state.doubts.take(event)
            if event.lvl == "model" or event.t is None:
                continue
            if event.t > state.end:
                state.end = event.t
            if event.q:
                queue = state.queues.get(event.q)
                if queue is None:
                    queue = state.queues[event.q] = Idle(blind=state.lost)
                if queue.latest is None or event.t > queue.now:
                    queue.now, queue.latest = event.t, event
            elif state.latest is None or event.t > state.common:
                state.common, state.latest = event.t, event
            if event.q and event.ev in _COMMON:
                self._on_queue(state, state.queues[event.q], event)
            elif event.ev == GAP:
                state.lost = True
                for idle in state.queues.values():
                    idle.blind = True
                    idle.unread.clear()
                    idle.consumers.clear()
                    idle.since = None
            elif event.ev == "qos":
                if began(event):
                    # A channel's limit is shared by its consumers, of other queues too: none is surely ready.
                    shared = event.scope != "consumer" and bool(event.prefetch)
                    state.qos[holder(event)] = 0 if shared else event.prefetch or None
            elif event.ev in ENDS:
                for by in holders(event, state.held):
                    del state.held[by]
                over = event.ev != "conn_drop" and (event.ph == "ok" or event.lvl in EXACT)
                for idle in state.queues.values():
                    if over or event.lvl in EXACT:
                        for by in holders(event, idle.takers):
                            del idle.takers[by]
                    gone = [n for n in idle.consumers if ends(event, n.by)]
                    if gone:
                        # What was on its way to it goes back first, so the wait begins anew.
                        self._pause(state, idle)
                    for name in gone:
                        del idle.consumers[name]
                    self._look(state, idle)
            elif event.ev in SETTLES or event.ev == "recover":
                if began(event):
                    self._settle(state, event)
                elif event.ph in ("fail", "info"):
                    self._unsettled(state, event)
            elif event.q:
                self._on_queue(state, state.queues[event.q], event)

    def _take_rest(self, state: Wakeups, event: Event) -> None:
        """Take in what `at_rest` judges."""
        if event.ev == "note" and event.args.get("rest") and state.rest.begun is None:
            self._begin_rest(state)
        at_rest.take(state.rest, state.tally, event)
        while state.rest.seen:
            ready, why, seen = state.rest.seen.pop()
            state.doubts.report(event, [ready.by], why, seen, consumers=[ready], silent=True)

    def _begin_rest(self, state: Wakeups) -> None:
        """The first note of rest: what was kept of each queue until now is what `at_rest` begins with."""
        for q, idle in state.queues.items():
            unread = {} if idle.blind else idle.unread
            holds_none = [n for n, c in idle.consumers.items() if not c.holds]
            at_rest.begin(state.rest, q, unread, idle.early, holds_none)

    def _on_queue(self, state: Wakeups, idle: Idle, event: Event) -> None:  # noqa: C901, PLR0912  # a branch an event name
        if event.ev == "publish":
            # A partition or a group may belong to one consumer, beside whom the others wait with good reason.
            idle.blind = idle.blind or event.part is not None or event.key is not None
            if event.ph != "ok" or event.dead:
                return  # nobody waits for it yet
            if event.m in idle.early:
                del idle.early[event.m]
            elif event.key is None:  # with groups nobody may be allowed to have it
                idle.unread[event.m] = event
        elif acquires(event):
            name = consumer(event)
            by = name.by
            self._pause(state, idle, by)
            if idle.unread.pop(event.m, None) is None:
                at_rest.handed_early(idle.early, event.m)
            if event.ev == "deliver" and not event.autoack:
                state.held.setdefault(by, {})[event.q, event.m] = name
                waiter = idle.consumers.get(name)
                if waiter is not None:
                    waiter.holds += 1
        elif event.ev == "declare":
            sole = bool(event.args.get("x-single-active-consumer"))
            idle.blind = idle.blind or sole or may_drop(event)
        elif event.ev in ("delete", "purge"):
            idle.unread.clear()
            idle.since = None
            # Who consumes from the next queue of its name, and what is published to none, is not known.
            idle.blind = idle.blind or event.ev == "delete"
        elif event.ev == "expire":
            idle.blind = True
        elif event.ev == "return":
            self._pause(state, idle)
            idle.unread.pop(event.m, None)
        elif event.ev == "consume":
            idle.blind = idle.blind or bool(event.exclusive or event.nolocal)
            if event.ph != "fail":
                idle.takers[holder(event)] = None
            if event.ph in ("", "ok"):
                limit = state.qos.get(holder(event))
                credit = limit if limit == 0 else event.prefetch or limit
                # What it was given before this answer, or before it was cancelled and began again, it may hold still.
                mine = state.held.get(holder(event), {}).values()
                holds = sum(of == consumer(event) for of in mine)
                idle.consumers[consumer(event)] = Waiter(credit, event, holds)
        elif event.ev == "cancel":
            self._pause(state, idle)
            idle.consumers.pop(consumer(event), None)
        elif event.ev == "get" and not event.m:
            idle.takers[holder(event)] = None
            idle.blind = idle.blind or event.ph == "info"  # it may have taken a message
        self._look(state, idle)

    def _settle(self, state: Wakeups, event: Event) -> None:
        held = state.held.get(holder(event), {})
        for key in named(event, held):
            name = held.pop(key, None)
            if name is None:
                continue
            q, _ = key
            idle = state.queues[q]
            waiter = idle.consumers.get(name)
            if waiter is not None:
                waiter.holds -= 1
            self._look(state, idle)

    def _unsettled(self, state: Wakeups, event: Event) -> None:
        """A settlement had no effect, or nobody knows: how much its sender holds is not known any more."""
        for q, idle in state.queues.items():
            if event.q not in ("", q):
                continue
            for name in [n for n in idle.consumers if n.by == holder(event)]:
                self._pause(state, idle)
                del idle.consumers[name]
            self._look(state, idle)

    def _waits(self, idle: Idle) -> bool:
        if idle.unread:
            for c in idle.consumers.values():
                if c.credit is None or c.holds < c.credit:
                    return True
        return False

    def _look(self, state: Wakeups, idle: Idle) -> None:
        """Whether somebody waits beside a message from now on."""
        if idle.since is None and not idle.blind and self._waits(idle):
            idle.since = max(state.common, idle.now)

    def _pause(self, state: Wakeups, idle: Idle, by: Holder | None = None) -> None:
        """A time of waiting ends; to be called before what ends it. `by` was given a message, so it was there."""
        since, idle.since = idle.since, None
        if since is None or idle.blind:
            return
        now = max(state.common, idle.now)
        state.tally.tested += 1
        if now - since > self.within:
            self._waited(state, idle, since, now, by)

    def _waited(
        self, state: Wakeups, idle: Idle, since: int, now: int, there: Holder | None = None
    ) -> None:
        """Somebody waited longer than the bound."""
        oldest = next(iter(idle.unread.values()))
        ready = {
            str(n): c for n, c in idle.consumers.items() if c.credit is None or c.holds < c.credit
        }
        names = ", ".join(sorted(ready))
        why = (
            f"{oldest.m}, confirmed at event {oldest.i}, lay in {oldest.q} from {since} to {now} while "
            f"{names} waited, and nothing was handed out"
        )
        others = [by for by in idle.takers if by != there]
        waiter = ready[min(ready)].ok if ready else oldest
        witness = each_once([waiter, oldest, self._ended(state, idle, now)])
        state.doubts.report(oldest, others, why, witness, after=since + self.within)

    def _ended(self, state: Wakeups, idle: Idle, now: int) -> Event:
        """The event at which a time of waiting was over; where the recording only ended then, a note of that."""
        for event in (idle.latest, state.latest):
            if event is not None and event.t == now:
                return event
        return Event(i=-1, ev="note", t=now)

    def close(self, state: Wakeups) -> Finding:
        tally = CaseCounts()
        tally.join(state.tally)
        doubts = msgspec.structs.replace(state.doubts, waiting=list(state.doubts.waiting))
        ended = msgspec.structs.replace(state, doubts=doubts)
        for idle in state.queues.values():
            if idle.since is None or idle.blind:
                continue
            if state.end - idle.since > self.within and self._waits(idle):
                tally.tested += 1
                self._waited(ended, idle, idle.since, state.end)
            else:
                tally.untestable += 1
        doubts.resolve(tally)
        found = tally.finding(self.id)
        why = at_rest.undecided_at_rest(state.rest)
        if not why or found.verdict is Verdict.VIOLATED:
            return found
        return undecided(found, why, DECIDES)
