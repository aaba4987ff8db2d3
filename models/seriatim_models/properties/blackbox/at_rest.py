"""Lost wake-ups without a clock: what is judged of P14 where the recorder says that all had come to rest.

A `note` with ``args={"rest": true}`` says that every command recorded before it has taken effect, and that everything
those commands set off is recorded before it. The drive of `seriatim conform` writes it after `sync`.
At such a moment a message that nobody holds, beside a consumer that is ready for it, is a wake-up that was lost:
nothing is on its way, so nothing but a further command can bring the two together.
In the same way a `get` that is asked at rest and finds nothing, beside a message that nobody holds, went astray.
What happens in another queue does not end the rest of this one, for queues are judged apart; unless a consumer of this
one may have credit again by it, for then its messages may be on their way: no get is judged beside such a consumer.

Before the first such note only channels and consumers are kept, so a recording without one pays little; what nobody
was given until then comes from P14 itself (`begin`).

Definite only if the message was certainly there, which its next acquisition shows: a message that is never seen again
may be lost (P1) or may have been dropped. So a case waits until its message is handed out, or until a note of rest
says that ready messages are in the queue (``depth``) and the consumer's channel answers a later call. Where neither
comes, it is undecided: `undecided_at_rest`.

A consumer is ready if it began (`ok`) and no sign of its end is recorded, and if under every reading of its prefetch
it has credit left: its own limit counts what it holds, and a later limit of its channel counts from then on for it too.
Never definitely ready are consumers of a channel with a limit of its own, which messages of other queues may use up,
or of one whose opening was not recorded; those that held something at the first such note; no-local ones; others
beside an exclusive one; and consumers of a queue with a single active one.
A message with a key is judged only in a queue that declares that a group is held while a message of it is (P23),
where nobody holds one of its group and no other consumer that is still there ever had one: a group may stay with the
consumer that had it first. Elsewhere a group may belong to somebody else for any reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, NamedTuple

import msgspec

from seriatim_models.history.bounded import ForgetsOldest, forget_oldest
from seriatim_models.history.event import GAP, SETTLES, Event, began
from seriatim_models.properties.blackbox.channels import CaseCounts
from seriatim_models.properties.blackbox.in_time import answered, nanoseconds
from seriatim_models.properties.blackbox.lifecycle import acquires, holds_groups
from seriatim_models.properties.blackbox.naming import (
    ENDS,
    ConsumerKey,
    Holder,
    consumer,
    each_once,
    ends,
    holder,
)


class AvailableMessage(msgspec.Struct, array_like=True):
    """A message that nobody holds; `passed` is what went by it at rest, if anything did, and `why` says what."""

    event: Event
    """By which it became available."""
    given: Event | None = None
    """By which whoever gave it back had got it; none if it was published."""
    passed: list[Event] = []
    why: str = ""


class RestingConsumer(msgspec.Struct, array_like=True):
    """A consumer; `limit` None: any number."""

    key: ConsumerKey
    ok: Event | None
    limit: int | None
    sole: bool
    choosy: bool
    """It may not want every message."""
    holds: int = 0


class HeldMessage(msgspec.Struct, array_like=True):
    """Who holds a message: a channel, and which of its consumers, if it was not a get."""

    by: Holder
    consumer: ConsumerKey | None
    given: Event


class RestingQueue(msgspec.Struct, ForgetsOldest):
    """One queue as the recording shows it."""

    bounded: ClassVar = ("early",)

    available: dict[str, AvailableMessage] = {}
    early: dict[str, None] = {}
    """Handed out before the answer to their publish, as in P14."""
    held: dict[str, HeldMessage] = {}
    consumers: dict[ConsumerKey, RestingConsumer] = {}
    keyed: dict[str, str] = {}
    """Messages with a key, by which they are of a group."""
    groups: Event | None = None
    """By which a group is somebody's while he holds a message of it; none if it is not known who does."""
    had: dict[str, list[ConsumerKey]] = {}
    """Of each group, the consumers that were given messages of it."""
    single: bool = False
    deleted: bool = False
    """It was deleted and is not known to be there again: what is published goes nowhere."""


class RestingChannel(msgspec.Struct, array_like=True):
    """A channel whose opening was seen."""

    opened: Event
    own: int | None = None
    """The limit of consumers that begin from now on."""
    whole: int | None = None
    """The limit of all that it holds."""


class RestingGet(NamedTuple):
    """A get under way: by whom, and which of theirs."""

    by: Holder
    op: int | None


class SeenReady(NamedTuple):
    """A consumer beside messages that a note of rest counts: a violation if the consumer was still there."""

    consumer: ConsumerKey
    why: str
    witness: list[Event]


class RestState(msgspec.Struct):
    """All queues and channels, and the latest note of rest, if nothing happened since that concerns all queues."""

    queues: dict[str, RestingQueue] = {}
    channels: dict[Holder, RestingChannel] = {}
    resting: Event | None = None
    stirred: list[str] = []
    """Queues in which something happened since that note."""
    asked: dict[RestingGet, list[Event]] = {}
    """Gets under way that were asked at rest, each with the note that says so."""
    begun: Event | None = None
    """The first note of rest."""
    seen: list[SeenReady] = []
    """Of the last event; each is counted as tested."""


EARLY_KEPT = 65_536  # messages; a confirm comes soon
EARLY = ENDS | {"ch_open", "qos", "consume", "cancel", "declare", "delete", GAP}
"""What is taken in before the first note of rest."""


def begin(
    state: RestState,
    q: str,
    unread: Mapping[str, Event],
    early: Iterable[str],
    idle: Iterable[ConsumerKey],
) -> None:
    """Before the first note of rest: which messages of a queue nobody was given, which were handed out early, and who
    of its consumers held none.
    """
    queue = state.queues.setdefault(q, RestingQueue())
    queue.early |= dict.fromkeys(early)
    queue.available |= {m: AvailableMessage(event) for m, event in unread.items()}
    for name in queue.consumers.keys() - set(idle):
        queue.consumers[name].choosy = True  # what it holds is not known here


def take(state: RestState, tally: CaseCounts, event: Event) -> None:  # noqa: C901, PLR0912, PLR0915  # a branch an event name
    """What one event does to the state; before the first note of rest, one of `EARLY`, or a note. Violations and cases
    go to `tally`.
    """
    ev = event.ev
    if ev == "note":
        if event.args.get("rest"):
            state.begun = state.begun or event
            state.resting, state.stirred = event, []
            _rest(state, tally, event)
        return
    rested = None if event.q in state.stirred else state.resting
    if not event.q:
        state.resting = None
    elif rested:
        state.stirred.append(event.q)
    if ev == "get":
        _get(state, tally, event, rested)
        return
    queue = state.queues.setdefault(event.q, RestingQueue()) if event.q else None
    if ev == GAP:
        state.queues.clear()
        state.channels.clear()
    elif ev == "ch_open":
        if event.ph in ("", "ok"):
            state.channels[holder(event)] = RestingChannel(event)
    elif ev in ENDS:
        if event.ph in ("", "ok"):
            _end(state, event)
        else:
            _leave(state, event)
    elif ev == "qos":
        if began(event):
            _limit(state, event)
    elif ev in SETTLES or ev == "recover":
        _settle(state, event)
    elif queue is None:
        return
    elif ev == "publish":
        _publish(queue, event)
    elif ev == "return":
        queue.available.pop(event.m, None)
    elif ev in ("delete", "purge", "expire"):
        queue.available.clear()
        if ev == "delete":
            queue.consumers.clear()
            queue.single, queue.deleted = False, True
    elif ev == "declare":
        queue.deleted = queue.deleted and event.ph == "invoke"
        queue.single = queue.single or bool(event.args.get("x-single-active-consumer"))
        queue.groups = queue.groups or (event if state.begun and holds_groups(event) else None)
    elif ev == "consume":
        _consume(state, queue, event)
    elif ev == "cancel":
        queue.consumers.pop(consumer(event), None)
    elif acquires(event):
        _acquire(state, tally, queue, event)


def handed_early(early: dict[str, None], m: str) -> None:
    """Keep that a message was handed out, whose publish may be answered later; of the latest `EARLY_KEPT`."""
    early[m] = None
    if len(early) > EARLY_KEPT:
        forget_oldest(early)


def _publish(queue: RestingQueue, event: Event) -> None:
    if event.key is not None:
        queue.keyed[event.m] = event.key
    if event.ph == "invoke" or (event.dead and not nanoseconds(event.args.get("delay"))):
        return
    given = event.m in queue.early or event.m in queue.held
    queue.early.pop(event.m, None)
    if event.ph in ("", "ok") and not given and not queue.deleted:
        queue.available.setdefault(event.m, AvailableMessage(event))


def _consume(state: RestState, queue: RestingQueue, event: Event) -> None:
    name, by = consumer(event), holder(event)
    if event.ph == "fail":
        queue.consumers.pop(name, None)
        return
    mine = queue.consumers.get(name)
    if mine is None:
        channel = state.channels.get(by)
        limit = _least(event.prefetch, channel.own if channel else None)
        choosy = bool(event.nolocal) or bool(event.args)
        holds = sum(
            held.consumer == name for held in queue.held.values()
        )  # of one that it was before
        mine = RestingConsumer(name, None, limit, bool(event.exclusive), choosy, holds)
        queue.consumers[name] = mine
    if event.ph in ("", "ok"):
        mine.ok = event


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit), default=None)


def _limit(state: RestState, event: Event) -> None:
    by = holder(event)
    channel = state.channels.get(by)
    if channel is None:
        return
    if event.scope != "consumer":
        channel.whole = event.prefetch
        return
    channel.own = event.prefetch
    for queue in state.queues.values():
        for mine in queue.consumers.values():
            if mine.key.by == by:
                mine.limit = _least(mine.limit, event.prefetch)


def _acquire(state: RestState, tally: CaseCounts, queue: RestingQueue, event: Event) -> None:
    if event.key is not None:
        queue.keyed[event.m] = event.key
    there = queue.available.pop(event.m, None)
    if there is None:
        handed_early(queue.early, event.m)
    elif there.passed:
        tally.tested += 1
        tally.report_violation(
            f"{there.why}, although {event.m} was there: available since event {there.event.i}, "
            f"handed out at event {event.i}",
            each_once([there.given, there.event, *there.passed, event]),
        )
    to = consumer(event) if event.ev == "deliver" else None
    if to is not None and event.key is not None:
        had = queue.had.setdefault(event.key, [])
        if to not in had:
            had.append(to)
    if event.autoack:
        return
    queue.held[event.m] = HeldMessage(holder(event), to, event)
    if to is not None and (mine := queue.consumers.get(to)) is not None:
        mine.holds += 1


def _settle(state: RestState, event: Event) -> None:
    if event.ph == "info" or (event.ph == "fail" and event.op is not None):
        for queue in state.queues.values():
            queue.groups = None  # what began may not have let go
    if event.ph == "fail" or not began(event):
        return
    by = holder(event)
    back = event.ev == "recover" or (event.ev != "ack" and event.requeue is not False)
    for q, queue in state.queues.items():
        if event.q and event.q != q:
            continue
        among = queue.held if event.ev == "recover" else event.ms or ()
        held = [m for m in dict.fromkeys(among) if m in queue.held and queue.held[m].by == by]
        for m in held:
            given = _let_go(queue, m)
            if back and not event.dead:
                queue.available[m] = AvailableMessage(event, given)


def _let_go(queue: RestingQueue, m: str) -> Event:
    """Take a message from its holder; returns the event by which that had got it."""
    held = queue.held.pop(m)
    if held.consumer is not None and (mine := queue.consumers.get(held.consumer)) is not None:
        mine.holds -= 1
    return held.given


def _leave(state: RestState, event: Event) -> None:
    """A channel or connection begins to end: its consumers may be gone already."""
    for queue in state.queues.values():
        for name in [n for n in queue.consumers if ends(event, n.by)]:
            del queue.consumers[name]


def _end(state: RestState, event: Event) -> None:
    """A channel or connection has ended, and what it held is back."""
    _leave(state, event)
    for queue in state.queues.values():
        for m in [m for m, held in queue.held.items() if ends(event, held.by)]:
            given = _let_go(queue, m)
            queue.available[m] = AvailableMessage(event, given)
    for by in [by for by in state.channels if ends(event, by)]:
        del state.channels[by]


def _ready(state: RestState, queue: RestingQueue) -> list[RestingConsumer]:
    if queue.single:
        return []
    consumers = list(queue.consumers.values())
    sole = [c for c in consumers if c.sole]
    return [
        c
        for c in (sole if len(sole) == 1 else consumers if not sole else [])
        if c.ok is not None
        and not c.choosy
        and (not c.limit or c.holds < c.limit)
        and not _shares_credit(state, c)
    ]


def _due(there: AvailableMessage, now: Event) -> bool:
    """Whether a message's delay, if it was published with one, was over."""
    event = there.event
    delay = nanoseconds(event.args.get("delay")) if event.ev == "publish" else 0
    if not delay:
        return True
    since = answered(event)
    return since is not None and now.t is not None and since + delay <= now.t


def _free(queue: RestingQueue, now: Event, taker: ConsumerKey | None = None) -> list[str]:
    """The messages that nobody holds and `taker`, or whoever gets, may be given: none of a group of somebody else's,
    and none whose delay is not over.
    """
    due = [m for m, there in queue.available.items() if _due(there, now)]
    if not queue.keyed:
        return due
    taken = {queue.keyed.get(m) for m in queue.held} if queue.groups else {*queue.keyed.values()}
    taken |= {
        k for k, had in queue.had.items() if any(c in queue.consumers and c != taker for c in had)
    }
    return [m for m in due if (key := queue.keyed.get(m)) is None or key not in taken]


def _divides(queue: RestingQueue, m: str) -> list[Event]:
    """What a witness needs to say that nobody else's group is that of a message."""
    return [queue.groups] if queue.groups is not None and m in queue.keyed else []


def _shares_credit(state: RestState, consumer: RestingConsumer) -> bool:
    """Whether settling a message of another queue may give a consumer credit, as far as is known."""
    channel = state.channels.get(consumer.key.by)
    return channel is None or bool(channel.whole)


def _rest(state: RestState, tally: CaseCounts, event: Event) -> None:
    """All is at rest: whoever is ready beside a message was not woken."""
    for q, queue in state.queues.items():
        if not queue.consumers:
            continue
        ready = _ready(state, queue)
        if not ready:
            continue
        takers = ready[::-1] if queue.keyed else ready[:1]
        waiting = {m: c for c in takers for m in _free(queue, event, c.key)}
        if not waiting:
            tally.tested += 1  # whoever was ready had been given all that there was
            continue
        assert state.begun is not None
        for m, first in waiting.items():
            assert first.ok is not None
            opened = state.channels[first.key.by].opened
            there = queue.available[m]
            if not there.passed:
                there.passed = [state.begun, *_divides(queue, m), opened, first.ok, event]
                there.why = (
                    f"{first.key} was ready at event {event.i}, where all had come to rest, "
                    f"and was given nothing from {q}"
                )
        depth = event.args.get("depth")
        if event.q != q or not isinstance(depth, int) or depth <= 0:
            continue
        if queue.keyed.keys().isdisjoint(queue.available):
            first = ready[0]
            there = queue.available[next(iter(waiting))]
            opened = state.channels[first.key.by].opened
            why = (
                f"{first.key} was ready at event {event.i}, where all had come to rest, and was "
                f"given nothing, although {depth} messages were ready in {q}"
            )
            witness = [there.given, there.event, *there.passed[:1], opened, first.ok, event]
            state.seen.append(SeenReady(first.key, why, each_once(witness)))
            tally.tested += 1


def undecided_at_rest(state: RestState) -> str:
    """What looks like a lost wake-up at rest and is none for certain, the first of several by its text; empty if
    nothing does.
    """
    return min(
        (
            f"{there.why}; {m} was never seen again, so it may have been lost or dropped"
            for queue in state.queues.values()
            for m, there in queue.available.items()
            if there.passed
        ),
        default="",
    )


def _get(state: RestState, tally: CaseCounts, event: Event, rested: Event | None) -> None:
    """A get: begun at rest, ended with a message or with none."""
    operation = RestingGet(holder(event), event.op)
    if event.ph == "invoke":
        if rested:
            state.asked[operation] = [rested, event]
        return
    begun = [] if event.op is None else state.asked.pop(operation, [])
    if rested and not begun:
        begun = [rested]
    queue = state.queues.setdefault(event.q, RestingQueue())
    if event.ph == "info":
        queue.groups = None  # who knows what it took
    if event.ph in ("fail", "info"):
        return
    if event.m:
        tally.tested += bool(begun) and event.m in queue.available
        _acquire(state, tally, queue, event)
        return
    if not begun or queue.single:
        return
    if any(c.sole or _shares_credit(state, c) for c in queue.consumers.values()):
        return
    for m in _free(queue, begun[-1]):
        there = queue.available[m]
        if not there.passed:
            assert state.begun is not None
            there.passed = [state.begun, *_divides(queue, m), *begun, event]
            there.why = (
                f"{holder(event)} asked {event.q} at rest, at event {event.i}, and found nothing"
            )
