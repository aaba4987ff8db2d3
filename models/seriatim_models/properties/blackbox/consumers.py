"""P10, P11: who of several consumers is given a message.

Of a consumer is known when it was certainly there: from the broker's `consume ok`, or from when it was given something,
until the first sign of its end.
In between it is *definitely registered*. What else is definite about it depends on where was recorded; see each
property.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from seriatim_models.history.event import EXACT, GAP, SETTLES, UNKNOWN_GEN, Event, began
from seriatim_models.properties.base import CaseEvents, Finding, ProfileValue
from seriatim_models.properties.blackbox.aggregation import AggregationState, SequentialProperty
from seriatim_models.properties.blackbox.channels import CaseCounts
from seriatim_models.properties.blackbox.doubts import Doubts
from seriatim_models.properties.blackbox.lifecycle import LifecycleKey, acquires, holders, named
from seriatim_models.properties.blackbox.naming import (
    ENDS,
    ConsumerKey,
    Holder,
    consumer,
    each_once,
    ends,
    holder,
)
from seriatim_models.properties.blackbox.sessions import ANSWERED
from seriatim_models.properties.blackbox.strict import ALWAYS, Time, when


def accepted(consume: Event) -> bool:
    """Whether a consume says that the broker took it on: a client that records no answers wrote down what it asked."""
    return consume.ph == "ok" or (consume.ph == "" and consume.lvl in EXACT)


# P10


class Asked(msgspec.Struct, array_like=True):
    """A consume under way or done: what was asked, and since when it certainly holds."""

    event: Event
    exclusive: Event | None
    """The call that asked for it to be alone, or its answer."""
    ok: Event | None = None
    several: bool = False
    """Another one of its channel was asked for without a tag: which of them is meant nobody knows."""


REIGNS_KEPT = 64  # of the active consumers of a queue; who was it longer ago is not shown


class Seats(msgspec.Struct):
    """One queue: its consumers, and who was last given something."""

    consumers: dict[ConsumerKey, Asked] = {}
    single: Event | None = None
    """The declaration by which it has a single active consumer."""
    ranked: bool = False
    """Consumers have priorities, so that the active one may be replaced."""
    last: Event | None = None
    left: list[ConsumerKey] = []
    """Consumers that ended: a callback of theirs may still run."""
    turns: int = -1
    """Where the active one may change: how often somebody began or ended otherwise than by its turn, less how often it
    certainly changed; the first consumer is the first active one.
    """
    met: dict[ConsumerKey, None] = {}
    """Those that were given something, of which no `consume` is known."""
    reigns: list[Event] = []
    """Of each consumer that was the active one in turn the delivery that shows it, the latest `REIGNS_KEPT`."""
    unanswered: list[ConsumerKey] = []
    """Consumers whose end began before their consume was answered: that answer is of nobody who is there."""


class Sole(msgspec.Struct):
    """The aggregation state of P10."""

    queues: dict[str, Seats] = {}
    doubts: Doubts = msgspec.field(default_factory=Doubts)
    tally: CaseCounts = msgspec.field(default_factory=CaseCounts)


class SoleConsumer(SequentialProperty[Sole]):
    """P10. Cases: a consume that succeeds while an exclusive consumer is definitely registered, or an exclusive one
    while any is; a delivery to somebody else while an exclusive consumer is; and, on a queue with
    ``x-single-active-consumer``, a delivery that follows one to another consumer which has not ended since.

    Definite: the other consumer's `ok` was recorded before this one asked, no sign of its end until this one's `ok`,
    and its channel or connection answered a later call, so that its client was not killed (`doubts`); a delivery counts
    by its earliest instant.

    Where who begins may become the active one (consumers have priorities, or the form `joins`), the active one changes
    once at most for each that begins or ends: definite is one change more, if all others were still there.
    """

    id = "P10"
    sentence = (
        "An exclusive consumer is alone, and of single active consumers only one is given messages."
    )
    source = (
        "AMQP 0-9-1 specification, basic.consume field exclusive; "
        "https://www.rabbitmq.com/docs/consumers#exclusivity and #single-active-consumer"
    )
    rests_on = ""
    case = "an exclusive consume beside another one, or deliveries of a queue with a single active consumer"
    scope = "queue"
    reads = ENDS | ANSWERED | {"deliver", "ch_open", GAP}
    summary_type = AggregationState[Sole]
    keeps = "the consumers of each queue"
    time = "O(n k), k consumers of a queue"
    case_events = CaseEvents(
        frozenset({"consume", "declare"}),
        lambda e: bool(e.exclusive) or bool(e.args.get("x-single-active-consumer")),
        ("exclusive", "args"),
    )
    options = frozenset({"joins"})

    def __init__(self, joins: bool = False) -> None:
        """`joins`: who begins may become the active consumer although the one before is there still."""
        self.joins = joins

    @classmethod
    def from_options(cls, options: Mapping[str, ProfileValue]) -> SoleConsumer:
        return cls(joins=bool(options.get("joins")))

    def feed(self, state: Sole, events: Iterable[Event]) -> None:  # noqa: C901, PLR0912  # a branch an event name
        for event in events:
            state.doubts.take(event)
            seats = state.queues.setdefault(event.q, Seats()) if event.q else None
            if event.ev == GAP:
                for every in state.queues.values():
                    every.consumers.clear()
                    every.met.clear()
                    every.reigns.clear()
                    every.last, every.turns = None, -1
            elif event.ev in ENDS:
                for every in state.queues.values():
                    for name in [n for n in (*every.consumers, *every.met) if ends(event, n.by)]:
                        self._leave(every, name)
                    if every.last and ends(event, holder(every.last)):
                        every.last = None
            elif seats is None or event.gen == UNKNOWN_GEN:
                if seats is not None and event.ev in ("consume", "cancel"):
                    seats.turns += 1
            elif event.ev == "declare":
                single = event if event.args.get("x-single-active-consumer") else None
                seats.single = seats.single or single
            elif event.ev == "consume":
                self._consume(state, seats, event)
            elif event.ev == "cancel":
                self._leave(seats, consumer(event))
            elif event.ev == "delete" and event.ph != "fail":
                for name in (*seats.consumers, *seats.met):
                    self._leave(seats, name)
                seats.single = seats.last = None
                seats.reigns.clear()
            elif acquires(event):
                self._deliver(state, seats, event)

    def _leave(self, seats: Seats, name: ConsumerKey) -> None:
        asked = seats.consumers.pop(name, None)
        if asked is not None:
            seats.left.append(name)
            if asked.ok is None:
                seats.unanswered.append(name)
        seats.met.pop(name, None)
        if seats.reigns and consumer(seats.reigns[-1]) == name:
            seats.reigns.clear()
        else:
            seats.turns += 1
        if seats.last and consumer(seats.last) == name:
            seats.last = None

    def _consume(self, state: Sole, seats: Seats, event: Event) -> None:
        name = consumer(event)
        if event.ph != "invoke" and name in seats.unanswered:
            seats.unanswered.remove(name)
            return
        # A callback of the earlier consumer of that name would look like one of this one, if nothing is answered.
        if name in seats.left and event.ph:
            seats.left.remove(name)
        if event.ph == "fail":
            seats.consumers.pop(name, None)
            return
        mine = seats.consumers.get(name)
        if mine is None or event.ph in ("", "invoke"):
            seats.turns += 1 + (mine is not None)  # one that is there has ended, unseen
        if mine is None:
            mine = seats.consumers[name] = Asked(event, None)
        elif not event.ctag and event.ph == "invoke":
            mine.several = True
        if event.exclusive:
            mine.exclusive = mine.exclusive or event
        seats.ranked = seats.ranked or event.cprio is not None
        if accepted(event) and mine.ok is None:
            self._seated(state, seats, name, mine, event)

    def _seated(
        self, state: Sole, seats: Seats, name: ConsumerKey, mine: Asked, event: Event
    ) -> None:
        """A consumer is there: by the broker's answer, or because it is given something."""
        tally = state.tally
        mine.ok = event
        for other_name, other in seats.consumers.items():
            if other_name == name or other.ok is None or not (other.exclusive or mine.exclusive):
                continue
            if when(other.ok) >= when(mine.event) or mine.several or other.several:
                tally.untestable += 1
                continue
            tally.tested += 1
            who = other_name if other.exclusive else name
            why = (
                f"{name} was accepted as consumer of {event.q} at event {event.i} while {other_name}, accepted at "
                f"event {other.ok.i}, was there, and {who} is exclusive"
            )
            witness = [*_asked(other, other.ok), *_asked(mine, event)]
            state.doubts.report(event, [other_name.by], why, witness, consumers=[other_name])
            return
        if mine.exclusive:
            tally.tested += 1

    def _deliver(self, state: Sole, seats: Seats, event: Event) -> None:
        tally = state.tally
        name = consumer(event)
        mine = seats.consumers.get(name)
        if mine is not None and mine.ok is None and name not in seats.left:
            self._seated(state, seats, name, mine, event)
        lo: Time = event.t_lo if event.t_lo is not None else ALWAYS
        if event.lvl in EXACT:
            lo = when(event)
        self._beside_exclusive(state, seats, event, lo)
        if mine is None and name not in seats.left and name not in seats.met:
            seats.met[name] = None
            seats.turns += 1
        if seats.single is None or name in seats.left:
            return
        if seats.ranked or self.joins:
            self._turn(state, seats, event, lo)
            return
        last = seats.last
        seats.last = event
        if last is None:
            return
        if consumer(last) == name:
            tally.tested += 1
        elif when(last) < lo:
            tally.tested += 1
            was = consumer(last)
            why = (
                f"{event.m} was given to {name} at event {event.i}, although the single active consumer was "
                f"{was}, given {last.m} at event {last.i} and not gone since"
            )
            witness = [seats.single, last, event]
            state.doubts.report(event, [was.by], why, witness, consumers=[was])
        else:
            tally.untestable += 1

    def _beside_exclusive(self, state: Sole, seats: Seats, event: Event, lo: Time) -> None:
        """A delivery to another consumer while an exclusive one is there."""
        tally, name = state.tally, consumer(event)
        for other_name, other in seats.consumers.items():
            if other_name != name and other.exclusive and other.ok is not None:
                unnamed = not event.ctag and other_name.by[:2] == name.by[:2]
                if when(other.ok) < lo and not unnamed and not other.several:
                    tally.tested += 1
                    why = (
                        f"{event.m} was given to {name} at event {event.i}, although {other_name} has been the "
                        f"exclusive consumer since event {other.ok.i}"
                    )
                    witness = [*_asked(other, other.ok), event]
                    state.doubts.report(
                        event, [other_name.by], why, witness, consumers=[other_name]
                    )
                else:
                    tally.untestable += 1

    def _turn(self, state: Sole, seats: Seats, event: Event, lo: Time) -> None:
        """A delivery of a queue whose active consumer may change: to the same one, or to the next."""
        tally, name, reigns = state.tally, consumer(event), seats.reigns
        last = reigns[-1] if reigns else None
        if last is None or consumer(last) == name:
            tally.tested += last is not None
            if last is None:
                reigns.append(event)
            elif when(event) < when(last):
                reigns[-1] = event
            return
        if not when(last) < lo:
            tally.untestable += 1
            return
        seats.turns -= 1
        shown = [n for n, e in enumerate(reigns) if consumer(e) == name]
        reigns.append(event)
        if seats.turns >= 0 or not shown:
            tally.untestable += 1
        else:
            tally.tested += 1
            before = reigns[shown[-1]]
            why = (
                f"{event.m} was given to {name} at event {event.i}, although the single active consumer was "
                f"{consumer(last)}, given {last.m} at event {last.i} after {name} had been given {before.m} at event "
                f"{before.i}, and too few began or ended for it to be the active one again"
            )
            others = (*seats.consumers, *seats.met)
            there = dict.fromkeys(other.by for other in others)
            witness = each_once([seats.single, *reigns[shown[-1] :]])
            state.doubts.report(event, there, why, witness, consumers=others)
        del reigns[:-REIGNS_KEPT]

    def close(self, state: Sole) -> Finding:
        tally = CaseCounts()
        tally.join(state.tally)
        state.doubts.resolve(tally)
        return tally.finding(self.id)


def _asked(consume: Asked, ok: Event) -> list[Event]:
    """What asked for a consumer, as far as it matters, and what shows that it was accepted."""
    if acquires(ok):
        return [consume.event, ok]
    if consume.exclusive is None or ok.exclusive:
        return [ok]
    return [consume.exclusive, ok]


# P11


class Ranked(msgspec.Struct, array_like=True):
    """A consumer with its rank; `credit` None: without limit. `given` and `freed` count since it began."""

    event: Event
    prio: int
    credit: int | None
    limited: Event | None = None
    """What set the limit, if that was not the consume."""
    ranked: Event | None = None
    """What gave it its rank."""
    ok: Event | None = None
    given: int = 0
    freed: int = 0
    several: bool = False
    """Another one of its channel has no tag either: which of them is meant nobody knows."""
    passed: list[tuple[Event, Event]] = []
    """Deliveries to lower consumers that it would have wanted, if it turns out to have had room, each after the
    consume of the one that was given it."""

    def has_room(self, exact: bool) -> bool:
        """Whether it holds fewer messages than its prefetch; from outside, where nobody knows when a settlement took
        effect, whether all that it is known to have been given are fewer.
        """
        if self.credit is None:
            return exact
        return self.given - self.freed * exact < self.credit


class Ranks(msgspec.Struct):
    """The aggregation state of P11."""

    queues: dict[str, dict[ConsumerKey, Ranked]] = {}
    qos: dict[Holder, Event] = {}
    """By holder: what set the prefetch that consumers begun from now on get."""
    capped: list[Holder] = []
    """Channels with a limit of their own."""
    held: dict[Holder, dict[LifecycleKey, ConsumerKey]] = {}
    """Of each holder, which of its consumers holds a message."""
    sole: list[str] = []
    """Queues with a single active consumer."""
    lost: bool = False
    """Lines were lost, perhaps limits: who begins later is surely ready only under one that was asked for since."""
    tally: CaseCounts = msgspec.field(default_factory=CaseCounts)


PASSED = (
    64  # deliveries at a time that wait for one consumer; the next it gets itself decides them all
)


class ConsumerPriority(SequentialProperty[Ranks]):
    """P11. A case is a delivery while a consumer of higher priority was definitely registered; one to the higher, too,
    while a lower one was registered and had room by what it was given: that one could have been given it.

    Inside the broker it is known how many messages the higher one held; if fewer than its prefetch, it was ready.
    From outside, a delivery may be on its way to it, unseen, and nobody knows when a settlement took effect. So
    there it was definitely ready only if all that it was ever given until then, settled or not, is below its prefetch;
    and what it was given until then is known when it gets something that it cannot have been given earlier.
    A consumer without prefetch can be blocked by its connection alone, which only the broker sees.
    """

    id = "P11"
    sentence = (
        "A consumer is given a message only if no consumer of higher priority is ready for it."
    )
    source = "https://www.rabbitmq.com/docs/consumer-priority"
    rests_on = ""
    case = "consumers of different priority with a prefetch, and a delivery to one while the other had room"
    scope = "queue"
    reads = (
        ENDS
        | SETTLES
        | {"declare", "delete", "qos", "consume", "cancel", "deliver", "recover", GAP}
    )
    summary_type = AggregationState[Ranks]
    keeps = "consumers, what is held, what nobody was given"
    time = "O(n k), k consumers of a queue"
    case_events = CaseEvents(frozenset({"consume"}), lambda e: e.cprio is not None, ("cprio",))

    def feed(self, state: Ranks, events: Iterable[Event]) -> None:  # noqa: C901, PLR0912  # a branch an event name
        for event in events:
            if event.ev == GAP:
                state.lost = True
                state.qos.clear()
                for consumers in state.queues.values():
                    consumers.clear()
            elif event.ev in ENDS:
                for by in holders(event, state.held):
                    del state.held[by]
                for consumers in state.queues.values():
                    for name in [n for n in consumers if ends(event, n.by)]:
                        self._gone(state, consumers, name)
            elif event.ev == "declare":
                if event.args.get("x-single-active-consumer") and event.q not in state.sole:
                    state.sole.append(event.q)
            elif event.ev == "qos":
                if began(event):
                    self._limit(state, event)
            elif event.ev == "consume":
                self._consume(state, event)
            elif event.ev == "cancel":
                self._gone(state, state.queues.get(event.q, {}), consumer(event))
            elif event.ev == "delete":
                if event.ph != "fail":
                    self._deleted(state, event.q)
            elif event.ev in SETTLES or event.ev == "recover":
                if began(event):
                    self._settle(state, event)
            elif acquires(event):
                self._deliver(state, event)

    def _limit(self, state: Ranks, event: Event) -> None:
        by = holder(event)
        if event.scope == "consumer":
            state.qos[by] = event
            return
        if by not in state.capped:
            state.capped.append(by)
        for consumers in state.queues.values():
            for name, mine in consumers.items():
                if name.by == by:
                    mine.credit = 0

    def _gone(self, state: Ranks, consumers: dict[ConsumerKey, Ranked], name: ConsumerKey) -> None:
        gone = consumers.pop(name, None)
        if gone is not None:
            state.tally.untestable += len(gone.passed)

    def _deleted(self, state: Ranks, q: str) -> None:
        """A queue is deleted, and its consumers with it; one being begun may be of the next queue of its name."""
        consumers = state.queues.get(q, {})
        for name, mine in [*consumers.items()]:
            if mine.ok is None:
                mine.credit = 0  # never surely ready
            else:
                self._gone(state, consumers, name)
        if q in state.sole:
            state.sole.remove(q)

    def _consume(self, state: Ranks, event: Event) -> None:
        consumers = state.queues.setdefault(event.q, {})
        name = consumer(event)
        if event.ph == "fail":
            consumers.pop(name, None)
            return
        if name not in consumers:
            limited = None if event.prefetch else state.qos.get(name.by)
            credit = (limited or event).prefetch or None
            unsure = state.lost and limited is None and not event.prefetch
            if name.by in state.capped or event.nolocal or unsure:
                credit = 0  # others of its channel may use it up, or it may not want the message: never surely ready
            consumers[name] = Ranked(event, event.cprio or 0, credit, limited)
        elif not event.ctag and event.ph in ("", "invoke"):
            consumers[name].several, consumers[name].credit = True, 0
        mine = consumers[name]
        if event.cprio is not None:
            mine.prio, mine.ranked = event.cprio, event
        if accepted(event):
            mine.ok = event

    def _settle(self, state: Ranks, event: Event) -> None:
        by = holder(event)
        held = state.held.get(by, {})
        for key in named(event, held):
            name = held.pop(key, None)
            if name is None or event.lvl not in EXACT:
                continue
            q, _ = key
            mine = state.queues.get(q, {}).get(name)
            if mine is not None:
                mine.freed += 1

    def _deliver(self, state: Ranks, event: Event) -> None:
        consumers = state.queues.get(event.q, {})
        name = consumer(event)
        exact = event.lvl in EXACT
        mine = consumers.get(name)
        lo: Time = when(event) if exact else (ALWAYS if event.t_lo is None else event.t_lo)
        if mine is not None:
            mine.ok = mine.ok or event
            self._decide(state, name, mine, lo, event)
            mine.given += 1
            mine.freed += bool(event.autoack)
            if not event.autoack:
                held = state.held.setdefault(holder(event), {})
                key = event.q, event.m
                if (
                    key in held
                ):  # two copies, of which settlements name the message alone: never surely ready
                    mine.credit = 0
                    if held[key] in consumers:
                        consumers[held[key]].credit = 0
                held[key] = name
        rank = mine.prio if mine is not None and not mine.several else None
        if mine is None or rank is None or event.key is not None or event.q in state.sole:
            return  # with groups or a single active consumer the higher one may not have it
        there = [
            (n, c)
            for n, c in consumers.items()
            if c.prio != rank and c.ok is not None and when(c.ok) < lo
        ]
        state.tally.tested += any(c.prio < rank and c.has_room(exact) for _, c in there)
        higher = [(n, c) for n, c in there if c.prio > rank]
        for other_name, other in higher:
            if exact:
                state.tally.tested += 1
                if other.has_room(exact):
                    self._report(state, [mine.ranked or mine.event], event, other_name, other, [])
            elif other.has_room(exact) and len(other.passed) < PASSED:
                other.passed.append((mine.ranked or mine.event, event))
            else:
                state.tally.untestable += 1

    def _decide(
        self, state: Ranks, name: ConsumerKey, mine: Ranked, lo: Time, given: Event
    ) -> None:
        """What was recorded before `lo` passed by a consumer that had, until then, been given `given` and no more."""
        waiting = []
        for asked, low in mine.passed:
            hi = low.t_hi if low.t_hi is not None else when(low)
            if mine.credit is None or mine.given >= mine.credit:
                state.tally.untestable += 1
            elif hi < lo:
                state.tally.tested += 1
                self._report(state, [asked], low, name, mine, [given])
            else:
                waiting.append((asked, low))
        mine.passed = waiting

    def _report(
        self,
        state: Ranks,
        asked: list[Event],
        low: Event,
        name: ConsumerKey,
        high: Ranked,
        given: list[Event],
    ) -> None:
        """Count a violation: `asked` began the lower consumer, and `given` shows how much the higher one had had."""
        assert high.ok is not None
        shown = [e for e in (high.limited, high.ranked or high.event, high.ok) if e is not None]
        room = "no limit" if high.credit is None else f"a prefetch of {high.credit}"
        state.tally.report_violation(
            f"{low.m} was given to {consumer(low)} at event {low.i}, although {name}, of priority {high.prio}, was "
            f"there since event {high.ok.i} and ready: it had {room} and held {high.given - high.freed} at most",
            each_once([*shown, *asked, low, *given]),
        )

    def close(self, state: Ranks) -> Finding:
        tally = CaseCounts()
        tally.join(state.tally)
        tally.untestable += sum(
            len(c.passed) for consumers in state.queues.values() for c in consumers.values()
        )
        return tally.finding(self.id)
