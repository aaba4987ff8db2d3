"""What a recording implies but does not say, worked out in one pass in recording order.

Recorders write down what they see; properties want every event to stand on its own, so that a history can be cut
anywhere. `Completion` fills in, from the events of all recorders of a run in the order of time, and only where the
recorder left the field empty:

| field | on | from |
|---|---|---|
| conn | events of a channel | the recorder, above a client library: without names each connection has one of its own |
| gen | events of a channel | 0 if its connection has no name and lines were lost, or no recorder of its own |
| gen | events of a channel | how often the channel was opened before, since channel numbers are used again |
| gen | deliver, get without a channel | 2 if one of its connection's name had ended or been opened before |
| gen | deliver | 0 if its consumer is unknown, may be of an earlier incarnation, and is no reader of a log |
| ctag | deliver | none, if its channel is not known and several consumers were asked for by that tag |
| q, autoack | deliver, cancel, consume ok | the `consume` of the consumer tag |
| nolocal | deliver | the `consume` of the consumer tag; if that is not known, false as long as nobody asked for it |
| prefetch, scope | deliver | the `consume`, or else the `qos` that holds for the consumer |
| attempt | deliver, get | 1 if no flag is recorded and nobody else can have had the message and given it back |
| attempt | deliver, get | 2 if the flag says that it is the first, though another one of the message is recorded |
| ms, q | ack, nack, reject | the outstanding delivery tags, `multiple` covering all up to `dtag` |
| ctag, proc | ack, nack, reject without a channel and a consumer | the delivery that it names: any thread may settle |
| pub, pseq, q | publish, deliver | the publishing channel and its count; confirm and delivery have the publish's |
| op | the phases of an ack, nack or reject | its beginning, as a negative number, where calls have no numbers |
| prio, key | deliver | the publish; `key` if that names a queue, since an exchange routes by it |
| dead | deliver | the message died, or was published to another queue: deaths decide its place, not publishers |
| dead | publish, deliver | it was published with a delay (`delay`): when that is over decides its place |
| args | publish | `delay`, if its queue was declared with one and it has none of its own |
| dead | nack, reject, expire | the queue was declared with a place for what dies in it |
| dtag | deliver, get, and what settles them | taken out of a channel whose numbers are no tags, see `_Channel.ids` |
| t_lo | the answer of an ack, nack or reject of which no beginning is recorded | it began at any time: `ANY_TIME` |
| t_lo | deliver, get | the latest of the lower bounds below |
| args | deliver, get | `beyond`, if its publisher counted further than what is recorded of it, and its publish is not |
| conn, ch, gen | expire, inside the broker | the channel that held the message |

Where the opening of a connection's channels is not recorded, a command on one that has ended opens it again.

A delivery was acquired by the broker at some time in [t_lo, t]. Not before its consumer was asked for; not before the
message was published; not before the command that requeued it, if that is known to have taken effect (`t_hi`): else
its session may have ended before, and the message have gone back then; and, with a prefetch of p, the n-th delivery
not before the (n-p)-th settlement was sent, because until then p messages were outstanding.
An `ack` is sent before the broker sees it, so the time of sending bounds from below.
Recorders inside the broker (`lvl` broker or model) see the acquisition itself: there t_lo is t.

After a `gap` nothing is known about credit, so that bound is dropped for consumers begun before it. Of a queue that was
not declared since then nobody knows where what dies in it goes, nor how a message came to it whose publish is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import msgspec

from seriatim_models.history.bounded import ForgetsOldest, forget_oldest
from seriatim_models.history.event import (
    ANY_TIME,
    EXACT,
    GAP,
    IMPLIES_NOTHING,
    SETTLES,
    UNKNOWN_GEN,
    Event,
)
from seriatim_models.history.known_channels import (
    SENT_KEPT,
    AskedLimit,
    CreditLimiter,
    Given,
    KnownChannel,
    KnownConsumer,
    shows_ids,
)
from seriatim_models.history.known_messages import (
    KnownMessage,
    KnownMessages,
    Milliseconds,
    QueueDelay,
    milliseconds,
)
from seriatim_models.history.takers import TAKERS, Takers, operation
from seriatim_models.history.unrecorded import missing_kinds

DEAD_LETTERING = ("x-dead-letter-exchange", "x-dead-letter-routing-key")
"""Arguments of a queue by which what dies in it goes elsewhere (https://www.rabbitmq.com/docs/dlx)."""
EARLIER_KEPT = 8  # incarnations of a channel whose callbacks may still run
TAGS_KEPT = 65_536  # tags of consumers


class _OpenPolls(msgspec.Struct):
    """Polls under way that nothing tells apart, and when the first of them began: one of them may be of anybody."""

    since: int
    n: int = 0


_UNSEEN = frozenset({"ch_close", "conn_close", "conn_drop", "cancel", "recover", "expire", "seek"})
"""Events by which, or before which, somebody may have had a message that no recorder saw him have; and those by which a
reader of a log goes elsewhere, so that what it is given first is not what was sent first."""


# Any: a partial set of Event's fields, whose types msgspec does not check on replace
def _left_out(event: Event, implied: dict[str, Any]) -> dict[str, Any]:
    """What is implied and the recorder left empty; and how often a message was given, if it counted less, and whose
    worker settled it for another one of its connection.
    """
    left = {}
    for name, value in implied.items():
        if value is None:
            continue
        held = getattr(event, name)
        if (
            held is None
            or held == ""
            or name in ("args", "proc")
            or (name == "attempt" and value > held)
        ):
            left[name] = value
    return left


def _about(event: Event) -> list[tuple[object, ...]]:
    """What names a delivery where there are no channels, and who may settle it: its connection, or else its worker."""
    by = (event.conn, "" if event.conn else event.proc)
    keys: list[tuple[object, ...]] = [(*by, m) for m in event.ms or (event.m,) if m]
    return keys if event.dtag is None else [*keys, (*by, event.dtag)]


def _named(names: _Names) -> dict[str, object]:
    """The field by which a holder is known: its consumer, or else its worker."""
    ctag, proc = names
    return {"ctag": ctag} if ctag else {"proc": proc or None}


_TRAFFIC = frozenset({"publish", "deliver"}) | SETTLES
"""Nearly all events; of other channels they say nothing."""
OPEN_ONLY = frozenset({"publish", "get", "consume", "qos", "declare", "delete", "purge", "recover"})
"""Commands that a client sends on a channel that is open for all it knows."""
_OPENING = OPEN_ONLY | {"ch_open", "ch_close"}
"""Events by which a channel may be opened; see `Completion._opened`."""
UNANSWERED_KEPT = 65_536  # settlements; the outcome of one comes soon, if at all
ENDED_KEPT = 1024  # channels; a callback of one that ended comes soon
GIVEN_KEPT = 65_536  # messages and tags; one is settled while its holder has it, or soon after
LIVES_KEPT = 65536  # names of connections, which may come again at any time
FIRST, ENDED, AGAIN = range(3)
"""Of the name of a connection: it is the first, that has ended, or it was opened anew."""
_Names = tuple[str, str]
"""A consumer and a worker, see `Event.ctag` and `Event.proc`."""


class Completion(msgspec.Struct, ForgetsOldest):
    """Fills in a run's events, given in their order. Memory grows with what is open, not with the length."""

    bounded: ClassVar = (
        "_ended", "_sent", "_unanswered", "_unnumbered", "_lives", "_given", "_tags", "_consumed",
    )  # fmt: skip
    _gens: dict[tuple[str, int], int] = {}
    _channels: dict[tuple[str, int], KnownChannel] = {}
    _n_channels: int = 0
    """How many there were so far."""
    _unanswered: dict[tuple[int, str, int | None, int | None], dict[str, object]] = {}
    """What settlements on channels were about whose outcome is not known yet, by the channel's number, name, operation
    and tag; the latest `UNANSWERED_KEPT`. Those of RabbitMQ's clients are never answered.
    """
    _ended: dict[tuple[str, int], None] = {}
    """Channels that ended, the latest last: callbacks of what came before may still run."""
    _lives: dict[str, int] = {}
    """Connections that were opened or have ended, the latest `LIVES_KEPT`: `FIRST`, `ENDED` or `AGAIN`. Whoever comes
    again under the same name has nothing of what it had."""
    _messages: KnownMessages = msgspec.field(default_factory=KnownMessages)
    _asked: dict[tuple[object, ...], _OpenPolls] = {}
    """Gets under way where there are no channels."""
    _sent: dict[tuple[object, ...], _Names] = {}
    """Settlements under way where there are no channels, with the names that they leave out; the latest `SENT_KEPT`."""
    _given: dict[tuple[object, ...], _Names] = {}
    """Who was given messages where there are no channels, by message and by tag; the latest `GIVEN_KEPT`."""
    _unnumbered: dict[tuple[object, ...], int] = {}
    """Numbers of settlements under way whose recorder gives none; the latest `SENT_KEPT`."""
    _tags: dict[str, int] = {}
    """How often consumers of channels that nobody knows were asked for by tag; the latest `TAGS_KEPT`."""
    _consumed: dict[tuple[str, str], str] = {}
    """Where there are no channels, the queue of a consumer by its connection and tag; the latest `TAGS_KEPT`."""
    _doubts: int = 0
    """Counts whatever lets a message be taken unseen: lost lines, ends of clients, unknown outcomes."""
    _opens: set[str] = set()
    """Connections whose channels are recorded when they are opened."""
    _no_tags: set[str] = set()
    """Connections whose delivery tags are none, see `shows_ids`."""
    _takers: Takers = msgspec.field(default_factory=Takers)
    _dead_lettering: set[str] = set()
    """Queues that were declared with a place for what dies in them."""
    _declared: set[str] = set()
    _delays: dict[str, QueueDelay] = {}
    """Queues that were declared with a delay of their messages."""
    _lost: bool = False
    """Lines were lost, perhaps declarations and publishes."""
    _no_local: bool = False
    """Somebody asked for no-local: a consumer that is not known may be the one."""

    def __call__(self, event: Event) -> Event:
        """The event with what the ones before it imply."""
        ev = event.ev
        if ev == GAP:
            if not IMPLIES_NOTHING.issuperset(missing_kinds(event) or (GAP,)):
                self._lose()
            return event
        if not event.conn or ev in SETTLES:
            event = self._named(event)
        traffic = ev in _TRAFFIC
        if event.ph == "info" or (not traffic and ev in _UNSEEN):
            self._doubts += 1
        if not traffic:
            if ev == "expire" and event.lvl in EXACT and event.ch is None:
                return self._expire(event)
            self._take_in(event)
        if event.ch is None:
            return self._without_channel(event)
        if not event.conn:
            return msgspec.structs.replace(
                self._without_channel(self._of_several(event)), gen=UNKNOWN_GEN
            )
        return self._of_channel(event, event.ch)

    def _lose(self) -> None:
        """Lines were lost."""
        self._lost = True
        self._doubts += 1
        for delay in self._delays.values():
            delay.doubtful = True
        for channel in self._channels.values():
            self._forget(channel)
            channel.lose()

    def _take_in(self, event: Event) -> None:
        """What an event says of others than its channel."""
        if event.ev in TAKERS:
            self._takers.take(event)
        if event.ev == "declare":
            self._declare(event)
        elif event.ev == "delete" and event.ph == "ok":
            self._delays.pop(event.q, None)
        elif event.ev == "expire":
            for known in self._channels.values():
                self._forget(known)  # it gave credit
        elif event.ch is None and event.ev in ("conn_open", "conn_close", "conn_drop"):
            # Where one is opened, another one of its name has ended.
            self._end_connection(event)

    def _of_channel(self, event: Event, ch: int) -> Event:
        key, gen = (event.conn, ch), event.gen
        channel = self._channels.get(key)
        traffic = event.ev in _TRAFFIC
        if not traffic or channel is None or gen is None or self._gens.get(key) != gen:
            channel, gen = self._incarnation(event, key)
        if event.ev == "deliver" and not (event.ctag and event.ctag in channel.consumers):
            back = channel.back_to(event.ctag) if event.ctag else 0
            if back:  # a callback that ran late: its consumer is one of an earlier incarnation
                channel = channel.earlier(back)
                gen = gen - back if event.gen is None else gen
            elif event.lvl in ("", "api") and (
                self._lost
                or (channel.before and event.pos is None)
                or (key in self._ended and self._lives.get(event.conn) == AGAIN)
            ):
                # A callback may run late: of which incarnation an unknown consumer is nobody knows.
                # A log is read at a position, and needs no consumer for it.
                channel, gen = KnownChannel(), UNKNOWN_GEN
        implied = self._implied(event, gen, channel)
        new = _left_out(event, implied)
        if channel.ids and event.dtag is not None and (event.m or event.ms or new.get("ms")):
            # It is none, and what is meant is known without it; one for several is also of what nobody saw yet.
            new |= {} if event.multiple else {"dtag": None}
        if traffic:
            pass
        elif event.ev in ("conn_close", "conn_drop"):
            self._end_connection(event)
        elif event.ev == "ch_close":
            self._end(key)
        return msgspec.structs.replace(event, **new) if new else event

    def _incarnation(self, event: Event, key: tuple[str, int]) -> tuple[KnownChannel, int]:
        """The channel of an event, which may open it, and the number of its incarnation: the latest, or the earlier one
        that the recorder names (`gen`).
        """
        if event.ev == "ch_open" and event.ph in ("", "ok"):
            self._opens.add(event.conn)
        if (event.gen is not None or event.ev in _OPENING) and self._opened(event, key):
            self._gens[key] = event.gen if event.gen is not None else self._gens.get(key, 0) + 1
            before = self._channels.get(key)
            self._channels[key] = channel = self._new_channel()
            channel.opened = event.ev == "ch_open"
            self._ended.pop(key, None)
            if before:
                channel.before = before
                before.earlier(EARLIER_KEPT).before = None
        gen = event.gen if event.gen is not None else self._gens.setdefault(key, 1)
        latest = self._channels.get(key)
        if latest is None:
            latest = self._channels[key] = self._new_channel()
        back = self._gens.get(key, event.gen) - event.gen if event.gen else 0
        return (latest.earlier(back) if back > 0 else latest), gen

    def _new_channel(self) -> KnownChannel:
        self._n_channels += 1
        return KnownChannel(self._n_channels)

    def _of_several(self, event: Event) -> Event:
        """An event of a channel that nobody knows; a consumer's tag that was asked for twice may be of several."""
        if event.ev == "consume" and event.ph in ("", "invoke"):
            self._tags[event.ctag] = self._tags.get(event.ctag, 0) + 1
            if len(self._tags) > TAGS_KEPT:
                forget_oldest(self._tags)
        if event.ev == "deliver" and event.ctag and self._tags.get(event.ctag, 0) > 1:
            return msgspec.structs.replace(event, ctag="")
        return event

    def _named(self, event: Event) -> Event:
        """The event with what it says in other fields: its connection, what it settles, and its number."""
        mine = not event.conn and event.ch is not None and event.lvl in ("", "api")
        if mine and event.rec and not self._lost:
            event = msgspec.structs.replace(event, conn=event.rec)
        if event.ev in SETTLES:
            if event.m and event.ms is None:
                event = msgspec.structs.replace(event, ms=[event.m])
            if event.ph and event.op is None:
                event = self._numbered(event)
        return event

    def _declare(self, event: Event) -> None:
        self._declared.add(event.q)
        if not event.args.get("passive"):
            self._declare_delay(event)
        if any(a in event.args for a in DEAD_LETTERING):
            self._dead_lettering.add(event.q)

    def _declare_delay(self, event: Event) -> None:
        """Take in the delay of a queue's messages."""
        delay, begins = milliseconds(event.args.get("delay")), event.ph in ("", "invoke")
        known = self._delays.get(event.q)
        if known is None and delay:
            known = self._delays[event.q] = QueueDelay(delay)
        if known is None:
            return
        another = known.asked != delay and (begins or "delay" in event.args)
        known.doubtful |= another or event.ph in ("fail", "info")
        known.answered |= event.ph in ("", "ok")

    def _leads_on(self, q: str) -> bool:
        """Whether what dies in a queue may go elsewhere; its declaration may be among lost lines."""
        return q in self._dead_lettering or (self._lost and q not in self._declared)

    def _moved(self, m: str, q: str) -> bool:
        """Whether a message may have come to a queue by another way than its publish."""
        if not q and (self._lost or self._dead_lettering):
            return True  # whose consumer is not known has it from any queue
        if not (self._lost or self._dead_lettering):
            return self._messages.moved(m, q)
        known = self._messages.find(m, q)
        unknown = self._lost and q not in self._declared and known is None
        # What an exchange routed, or what is a copy of another one, may have died in another queue.
        several = known is None or not known.q or self._messages.copied(m)
        return unknown or (several and bool(self._dead_lettering)) or self._messages.moved(m, q)

    def _seen(self, m: str, q: str) -> None:
        """A message is handed out: of one that died elsewhere, a queue that leads on may lead back."""
        if not self._leads_on(q):
            return
        own = self._messages.queues(m)
        left = any(self._leads_on(each) or (not each and self._dead_lettering) for each in own)
        if left and self._messages.moved(m, q):
            self._messages.came_by_death(m)

    def _opened(self, event: Event, key: tuple[str, int]) -> bool:
        """Whether an event opens a channel. If its connection's are not recorded, a command after its end does, or
        whatever names a later incarnation.
        """
        if event.ev == "ch_open":
            return event.ph in ("", "ok")
        if event.gen is not None:
            return self._gens.setdefault(key, event.gen) < event.gen
        if event.conn in self._opens or key not in self._ended:
            return False
        return (event.ev in OPEN_ONLY and event.ph in ("", "invoke")) or (
            event.ev == "ch_close" and event.ph == "invoke"
        )

    def _implied(self, event: Event, gen: int, channel: KnownChannel) -> dict[str, object]:
        new: dict[str, object]
        ev = event.ev
        given = ev == "deliver" and not (channel.used and event.ch and event.dtag != 0)
        if self._no_tags or given or ev not in _TRAFFIC:
            self._look_for_ids(event, channel)
        if ev == "publish":
            new = self._publish(event, gen, channel)
        elif ev == "deliver" and event.m:
            new = self._deliver(event, channel)
        elif ev not in SETTLES:
            new = self._called(event, channel)
        elif event.ph in ("", "invoke"):
            new = self._settle(event, channel)
        else:
            new = self._settled_by_answer(event, channel)
        if event.gen is None:
            new = new | {"gen": gen}
        return new

    def _called(self, event: Event, channel: KnownChannel) -> dict[str, object]:
        """What is implied by, and of, all but traffic."""
        match event.ev:
            case "qos":
                self._qos(event, channel)
            case "recover" if event.ph in ("", "invoke"):
                channel.open.clear()
                self._forget(channel)
            case "consume" if event.ph in ("", "invoke") or (
                event.ph == "ok" and event.op is None and event.ctag not in channel.consumers
            ):
                self._consume(event, channel)
            case "consume" | "cancel":
                consumer = channel.consumer(event.ctag)
                return {"q": consumer.q if consumer else None}
            case "get" if event.ph == "invoke":
                channel.poll(event)
            case "get" if not event.m:
                channel.polled(event)
            case "get":
                return self._deliver(event, channel)
        return {}

    def _look_for_ids(self, event: Event, channel: KnownChannel) -> None:
        """Whether the numbers of a channel are tags: what shows that they are none speaks for its whole connection."""
        channel.ids = event.conn in self._no_tags or shows_ids(event, channel)
        if channel.ids:
            self._no_tags.add(event.conn)
        polled = event.ev == "get" and not event.m
        channel.unseen = channel.unseen or polled or event.ev in ("cancel", "recover")

    def _expire(self, event: Event) -> Event:
        """A lease that ran out, with the channel that had it. If several have copies nobody knows which."""
        had = [
            (key, channel)
            for key, channel in self._channels.items()
            if key not in self._ended and channel.holds(event)
        ]
        if len(had) != 1:
            return event
        [((conn, ch), channel)] = had
        channel.expire(event)
        return msgspec.structs.replace(event, conn=conn, ch=ch, gen=self._gens.get((conn, ch)))

    def _without_channel(self, event: Event) -> Event:
        """Recorders of systems without channels: only what needs none."""
        new: dict[str, object] = {}
        match event.ev:
            case "publish":
                if event.ph in ("", "invoke"):
                    self._messages.publish(event, event.pub, event.pseq, self._doubts)
                elif event.ph == "fail":
                    self._messages.settle(event.m, event.q)
                new = self._delayed(event, new)
            case "deliver" | "get" if event.m:
                new |= self._taken(event)
                if event.gen is None and self._lives.get(event.conn):
                    new["gen"] = 2
            case "get" if event.ph == "invoke" and event.t is not None:
                self._poll(event, event.t)
            case "get" if (
                event.ph != "info"
            ):  # of unknown outcome it may have taken a message at any time
                self._answered(event)
            case "expire" if not event.requeue:
                self._messages.die(event.m, event.q)
                new["dead"] = self._leads_on(event.q) or None
            case "consume" | "cancel" if event.conn and event.ctag:
                new |= self._of_consumer(event)
            case "ack" | "nack" | "reject":
                new |= self._settled_without_channel(event)
        new = _left_out(event, new)
        return msgspec.structs.replace(event, **new) if new else event

    def _of_consumer(self, event: Event) -> dict[str, object]:
        """The queue of a consumer that is cancelled: the one that it was asked for."""
        if event.ev == "cancel":
            return {"q": self._consumed.get((event.conn, event.ctag))}
        if event.ph != "fail":
            self._consumed[event.conn, event.ctag] = event.q
            if len(self._consumed) > TAGS_KEPT:
                forget_oldest(self._consumed)
        return {}

    def _poll(self, event: Event, t: int) -> None:
        """A poll begins. A worker that is named has given up the one that it had under way."""
        by = operation(event)
        if event.ch is None and (event.conn or event.proc or event.op is not None):
            self._asked.pop(by, None)
        self._asked.setdefault(by, _OpenPolls(t)).n += 1

    def _answered(self, event: Event) -> int | None:
        """When the poll that is answered began, at the earliest."""
        polls = self._asked.get(operation(event))
        if polls is None:
            return None
        polls.n -= 1
        if not polls.n:
            del self._asked[operation(event)]
        return polls.since

    def _taken(self, event: Event) -> dict[str, object]:
        """What is known of a message that is handed out where there are no channels."""
        new: dict[str, object] = {}
        asked = self._answered(event) if event.ev == "get" else None
        known = self._messages.handed_out(event.m, event.q)
        new |= self._messages.beyond(event, known)
        if not event.autoack:
            names = event.ctag, event.proc
            for key in _about(event):
                # Of two that one connection was given alike, nobody knows whose a settlement is.
                self._given[key] = names if self._given.get(key, names) == names else ("", "")
                if len(self._given) > GIVEN_KEPT:
                    forget_oldest(self._given)
        if known:
            new |= {"pub": known.pub, "pseq": known.pseq, "prio": known.prio, "key": known.key}
            new["attempt"] = self._first(event, known, event.q)
        bounds = [b for b in (asked, known.since if known else None) if b is not None]
        new["t_lo"] = event.t if event.lvl in EXACT else max(bounds, default=None)
        if self._moved(event.m, event.q):
            new["dead"] = True
        self._seen(event.m, event.q)
        if event.autoack:
            self._messages.ack(event.m, event.q, event.lvl in EXACT)
        return new

    def _first(self, event: Event, known: KnownMessage, q: str) -> int | None:
        """1 if a delivery is certainly the first of its message and carries no flag that says so; 2 if its flag says
        so, and another one of the message is recorded.
        """
        given, taken = known.given, known.taken
        known.given = known.taken = True
        unmarked = event.redelivered is None
        counted = unmarked and event.attempt is not None and event.pos is None
        if given and (event.redelivered is False or counted):
            # Whichever of the two was first: one of the flags is wrong, or the name stands for two, or the count is of
            # failures alone (AMQP 1.0, delivery-count: 3.2.1).
            return 2
        first = unmarked and not event.attempt and not taken and known.doubts == self._doubts
        if first and event.ph in ("", "ok") and not self._takers.others(event, q):
            return 1
        return None

    def _end(self, key: tuple[str, int]) -> None:
        """A channel ends or may have ended: what it consumed is remembered for a while."""
        self._ended[key] = None
        if len(self._ended) > ENDED_KEPT:
            self._channels.pop(forget_oldest(self._ended), None)

    def _end_connection(self, event: Event) -> None:
        """A connection is opened, or ends: its channels have ended, and what comes may be of another of its name."""
        conn, opened = event.conn, event.ev == "conn_open"
        for key in [k for k in self._channels if k[0] == conn and k not in self._ended]:
            self._end(key)
        if opened and event.ph not in ("", "ok"):
            return
        before = self._lives.pop(conn, None)
        life = FIRST if before is None else before
        self._lives[conn] = max(life, ENDED) if not opened else FIRST if before is None else AGAIN
        if len(self._lives) > LIVES_KEPT:
            forget_oldest(self._lives)

    def _qos(self, event: Event, channel: KnownChannel) -> None:
        if event.ph not in ("", "invoke"):
            asked = next((x for x in channel.limits if x.answered_by(event)), None)
            if asked is not None:
                asked.unanswered = False
                if event.ph == "ok":
                    asked.since = event.t
                elif event.ph == "fail" and len(channel.limits) > 1:
                    channel.limits.remove(asked)
            if asked is not None or event.ph != "ok" or event.op is not None:
                return  # else the answer alone is recorded
        if event.scope == "channel":
            # A second limit on a channel that has deliveries outstanding, or on their way, has no simple count: no
            # bound from it.
            fresh = channel.limiter is None and not channel.used and not channel.consumers
            limiter = CreditLimiter(event.prefetch if fresh else None, None)
            channel.limiter = channel.add_limiter(limiter, channel.limiter)
        else:
            channel.limiters.pop(channel.limiter or 0, None)
            channel.limiter = None
        if not channel.limits and channel.consumers:
            channel.limits.append(AskedLimit(None, unanswered=False))  # until then there was none
        elif not channel.consumers and not channel.used:
            channel.limits = [
                x for x in channel.limits if x.unanswered
            ]  # nothing was given under them
        since = event.t if event.ph == "ok" else None
        # That of consumers is none of the channel's.
        limit = (event.prefetch or None) if event.scope == "channel" else None
        channel.limits.append(AskedLimit(limit, event.op, event.ph != "ok", since))
        channel.prefetch = event.prefetch
        channel.scope = event.scope
        if event.scope != "channel":
            channel.own = event.prefetch

    def _limit(self, channel: KnownChannel, t_lo: int | None) -> int | None:
        """The limit of the channel under which a delivery was made: the widest of those that may have held."""
        held: list[int | None] = []
        for limit in channel.limits:
            if limit.since is not None and t_lo is not None and limit.since < t_lo:
                held.clear()
            held.append(limit.prefetch)
        if None in held:
            return None
        return max((n for n in held if n is not None), default=channel.prefetch)

    def _forget(self, channel: KnownChannel) -> None:
        """Deliveries that nobody saw yet were settled, perhaps: credit bounds nothing from here on."""
        for limiter in channel.limiters.values():
            limiter.forget()

    def _consume(self, event: Event, channel: KnownChannel) -> None:
        asks = (event.autoack, event.exclusive, event.nolocal, event.prefetch, event.cprio)
        # Of the answer alone, without what was asked, nobody knows whether what it is given has to be settled.
        unknown = event.ph == "ok" and asks == (None,) * 5
        self._no_local = self._no_local or bool(event.nolocal)
        own = event.prefetch is not None
        limit = channel.prefetch if channel.scope == "consumer" else None
        # Of the answer alone it is not known when it was asked for.
        asked = None if event.ph == "ok" else event.t
        limiter = CreditLimiter(event.prefetch if own else limit, asked)
        prefetch = event.prefetch if own else channel.own
        channel.unnamed += not event.ctag
        before = channel.consumers.get(event.ctag)
        number = channel.add_limiter(limiter, before.limiter if before else None)
        channel.consumers[event.ctag] = KnownConsumer(
            event.q, event.autoack, event.nolocal, prefetch, number, own, unknown
        )
        channel.unknown.pop(event.ctag, None)
        if unknown:
            channel.unknown[event.ctag] = None

    def _publish(self, event: Event, gen: int, channel: KnownChannel) -> dict[str, object]:
        if event.ph not in ("", "invoke"):
            new: dict[str, object] = {}
            if event.ph != "fail" and event.q and event.pub and event.pseq is not None:
                return self._delayed(event, new)  # it says all that its beginning does
            known = self._messages.find(event.m, event.q)
            if event.ph == "fail" and known:
                self._messages.settle(event.m, known.q)
            if known:
                new = {"q": known.q, "pub": known.pub, "pseq": known.pseq}
            return self._delayed(event, new)
        channel.published += 1
        if event.pub and event.pseq is not None:
            self._messages.publish(event, event.pub, event.pseq, self._doubts)
            return self._delayed(event, {})
        pub = event.pub or f"{event.conn}/{event.ch}/{gen}"
        pseq: int | None = event.pseq if event.pseq is not None else channel.published - 1
        begun = event.t if event.t_lo is None else event.t_lo
        if event.pseq is None and begun is not None:
            if event.ph == "" and event.t_lo is not None and begun < channel.began:
                pub, pseq = "", None  # written down after one that was sent later
            channel.began = max(channel.began, begun)
        self._messages.publish(event, pub, pseq, self._doubts)
        return self._delayed(event, {"pub": pub, "pseq": pseq})

    def _delayed(self, event: Event, new: dict[str, object]) -> dict[str, object]:
        """What is implied, and that a message is not there when it is published, if it is to wait."""
        if not (event.args or self._delays or self._messages.any_delayed):
            return new
        own = "delay" in event.args
        if event.ph in ("", "invoke"):
            of_queue, waits = self._delay_of(event.q)
            if milliseconds(event.args["delay"]) if own else waits:
                self._messages.delay(event.m, None if own else of_queue)
        if not self._messages.delayed(event.m):
            return new
        delay = self._messages.delay_of_queue(event.m)
        args = {} if own or delay is None else {"args": {**event.args, "delay": delay}}
        return {**new, "dead": True, **args}

    def _delay_of(self, q: str) -> tuple[Milliseconds | None, bool]:
        """The delay of messages that are published to a queue, if it is known, and whether they may have one."""
        if not q:
            return None, bool(self._delays)  # by way of an exchange, to any
        known = self._delays.get(q)
        certain = known is not None and known.answered and not known.doubtful
        return (known.asked if known and certain else None), known is not None

    def _asked_for_no_local(self, event: Event, consumer: KnownConsumer | None) -> bool | None:
        """Whether a delivery's consumer did; None if it may have, for its `consume` is not known."""
        if consumer is not None and not consumer.unknown:
            return bool(consumer.nolocal)
        return None if event.ev != "deliver" or self._no_local or self._lost else False

    def _deliver(self, event: Event, channel: KnownChannel) -> dict[str, object]:
        consumer = channel.consumer(event.ctag) if event.ev == "deliver" else None
        new: dict[str, object] = {}
        if event.nolocal is None:
            new["nolocal"] = self._asked_for_no_local(event, consumer)
        q, autoack, dtag = event.q, event.autoack, event.dtag
        limiter = t_lo = None
        if consumer:
            if not q:
                new["q"] = q = consumer.q
            if autoack is None:
                new["autoack"] = autoack = consumer.autoack
            limiter, t_lo = self._credit(consumer, channel, autoack)
        if event.ev == "get":
            t_lo = channel.polled(event)
        t_lo = self._known_of(event, q, t_lo, new)
        new["t_lo"] = t_lo
        if consumer and not consumer.unknown:
            since = event.t_lo if event.t_lo is not None else t_lo
            new["prefetch"], new["scope"] = self._prefetch(consumer, channel, since)
        if dtag is not None:
            channel.ids = channel.ids or not dtag
            if dtag > channel.seen and (event.ev == "deliver" or event.lvl not in ("", "api")):
                channel.seen = dtag
        channel.used = True
        if autoack:
            self._messages.ack(event.m, q, event.lvl in EXACT)
        elif dtag is not None and (dtag > channel.through or channel.ids):
            channel.open[dtag] = (event.m, q, limiter)
        return new

    def _known_of(
        self, event: Event, q: str, t_lo: int | None, new: dict[str, object]
    ) -> int | None:
        """Add what is known of a message that is handed out, and return when it was acquired at the earliest, for all
        that is known of it and by `t_lo`.
        """
        known = self._messages.handed_out(event.m, q)
        if known:
            if not event.pub or event.pseq is None:
                new["pub"], new["pseq"] = known.pub, known.pseq
            if known.prio is not None or known.key is not None:
                new["prio"], new["key"] = known.prio, known.key
            new["attempt"] = self._first(event, known, q)
            if known.since is not None and (t_lo is None or t_lo < known.since):
                t_lo = known.since
        elif event.pub:
            new.update(self._messages.beyond(event, known))
        if self._moved(event.m, q):
            new["dead"] = True
        if self._lost or self._dead_lettering:
            self._seen(event.m, q)
        return event.t if event.lvl in EXACT else t_lo

    def _credit(
        self, consumer: KnownConsumer, channel: KnownChannel, autoack: bool | None
    ) -> tuple[int | None, int | None]:
        """The number of the limiter of a delivery, if there is one, and when the broker had credit for it at the
        earliest.
        """
        since = channel.limiters[consumer.limiter].since
        whole = channel.scope == "channel" and not consumer.own
        limiter = channel.limiter if whole else consumer.limiter
        if autoack or limiter is None:  # what need not be settled is not limited
            return None, since
        later = channel.limiters[limiter].deliver()
        return limiter, later if since is None or (later is not None and since < later) else since

    def _prefetch(
        self, consumer: KnownConsumer, channel: KnownChannel, since: int | None
    ) -> tuple[int | None, str | None]:
        """The limit of a delivery that was made since some time, and its scope."""
        if consumer.own or channel.scope != "channel":
            scope = "consumer" if consumer.own else channel.scope
            return consumer.prefetch, None if consumer.prefetch is None else scope
        if channel.prefetch is None:
            return None, None
        return self._limit(channel, since), channel.scope

    def _settle(self, event: Event, channel: KnownChannel) -> dict[str, object]:
        if event.multiple or event.dtag is None:
            settled = self._settle_several(event, channel)
        else:
            one = channel.open.pop(event.dtag, None)
            settled = [one] if one else []
        if channel.unknown:
            self._show_unknown(event, channel, settled)
        if event.t is not None:
            for _, _, number in settled:
                limiter = channel.limiters.get(number or 0)
                if limiter:
                    limiter.settle(event.t)
        if settled:
            about = [(m, q) for m, q, _ in settled]
            new = self._settled(event, about)
            new["ms"] = [m for m, _ in about]
            if len(about) == 1 or len({q for _, q in about}) == 1:
                new["q"] = about[0][1]
        else:
            new = self._settled(event, [(m, event.q) for m in event.ms or ()])
        if event.ph == "invoke" and channel.number:
            self._unanswered[channel.number, event.ev, event.op, event.dtag] = new
            if len(self._unanswered) > UNANSWERED_KEPT:
                forget_oldest(self._unanswered)
        return new

    def _show_unknown(self, event: Event, channel: KnownChannel, settled: list[Given]) -> None:
        """What a settlement shows of consumers of which nobody knew whether what they are given must be settled."""
        for ctag in list(channel.unknown):  # what is named by no tag may be any consumer's
            consumer = channel.consumers[ctag]
            its = (consumer.limiter, channel.limiter)
            of_it = any(number is not None and number in its for _, _, number in settled)
            if of_it or (event.ms and not settled):
                consumer.unknown = False
                del channel.unknown[ctag]

    def _settle_several(self, event: Event, channel: KnownChannel) -> list[Given]:
        """What a settlement of all up to its tag is about, or one that names messages and no tag."""
        if event.dtag is None:
            names = event.ms or ()
            tags = [d for d, (m, _, _) in channel.open.items() if m in names]
        else:
            tags = [d for d in channel.open if d <= event.dtag or event.dtag == 0]
            channel.through = max(channel.through, event.dtag)
            if event.dtag == 0 or channel.seen < event.dtag:
                self._forget(channel)
        return [channel.open.pop(d) for d in tags]

    def _settled_by_answer(self, event: Event, channel: KnownChannel) -> dict[str, object]:
        """What a settlement was about that is answered, perhaps after its channel was opened anew."""
        of: KnownChannel | None = channel
        while of is not None:
            key = (of.number, event.ev, event.op, event.dtag)
            if key in self._unanswered:
                return self._unanswered.pop(key)
            of = of.before
        if self._lost or event.lvl in EXACT:
            return {}
        if event.ph != "fail":
            self._settle(event, channel)  # by now, and nobody knows since when
        return {"t_lo": ANY_TIME}

    def _numbered(self, event: Event) -> Event:
        """A settlement of a recorder without numbers: its answer is joined to the latest alike of its client."""
        by = event.proc if event.ch is None else event.ch
        key = (event.rec, event.conn, by, event.ev, event.dtag, event.multiple, *(event.ms or ()))
        if event.ph != "invoke":
            op = self._unnumbered.pop(key, None)
            return event if op is None else msgspec.structs.replace(event, op=op)
        self._unnumbered[key] = -1 - event.i
        if len(self._unnumbered) > SENT_KEPT:
            forget_oldest(self._unnumbered)
        return msgspec.structs.replace(event, op=-1 - event.i)

    def _settled_without_channel(self, event: Event) -> dict[str, object]:
        key = (*operation(event), event.ev, event.dtag, *(event.ms or ()))
        about = [(m, event.q) for m in event.ms or ()]
        if event.ph in ("", "invoke"):
            names = self._whose(event)
            if event.ph:
                self._sent[key] = names
                if len(self._sent) > SENT_KEPT:
                    forget_oldest(self._sent)
            return self._settled(event, about) | _named(names)
        if key in self._sent:
            return _named(self._sent.pop(key))
        new = self._settled(event, about) if event.ph != "fail" else {}
        new |= _named(self._whose(event))
        return new if self._lost or event.lvl in EXACT else new | {"t_lo": ANY_TIME}

    def _whose(self, event: Event) -> _Names:
        """The names of who was given what a settlement is about, if it leaves out the consumer."""
        if event.ctag:
            return "", ""
        return next((self._given[key] for key in _about(event) if key in self._given), ("", ""))

    def _settled(self, event: Event, messages: Sequence[tuple[str, str]]) -> dict[str, object]:
        """Messages, each with its queue, are settled: what the event itself does not say of that."""
        for m, q in messages:
            if event.ev == "ack":
                self._messages.ack(m, q, event.lvl in EXACT)
            elif event.requeue is False:
                self._messages.die(m, q)
            else:
                self._messages.put_back(m, q, None if event.t_hi is None else event.t)
        dies = event.ev != "ack" and event.requeue is False
        return {"dead": True} if dies and any(self._leads_on(q) for _, q in messages) else {}


def complete(events: Iterable[Event]) -> Iterator[Event]:
    """The events of a run, in their order, each with what those before it imply."""
    completion = Completion()
    for event in events:
        yield completion(event)
