"""What ends a holder, and how one knows that it has not ended yet.

A channel or connection may end without a word: its client is killed, or the broker notices a break long before its
client or never tells. So that no end was recorded proves nothing. What proves that a session was alive for the broker
is an answer: the broker answered a call that its client had begun at that instant or later. Commands of one channel
take effect in the order sent (AMQP 0-9-1, 4.7), so such an answer also proves that the commands sent before that call
took effect.

An end that its client asked for begins when that is recorded; any other sign of an end comes at some time after it.
A channel that is opened anew had ended at some time before, also where no recorder writes ends down.
Only an answer (`ok`) confirms an end. The broker may close while its client does, and then answers that close as well:
a recorder that sees so notes the broker's reason (`err`), and then the answer proves nothing.
A recorder inside the broker sees ends themselves and misses none.
A worker that is named by its connection, and polls, was there if it polls again. One that is only given messages is
believed to be there until an end of it is recorded, unless ends of others alone are: it may have been killed.
Workers without channel and connection have no session: they hold until they settle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeVar

import msgspec

from seriatim_models.history.event import EXACT, Event
from seriatim_models.properties.blackbox.naming import (
    ENDS,
    ConsumerKey,
    Holder,
    connection,
    consumer,
    end_of,
    holder,
)

Name = TypeVar("Name", Holder, ConsumerKey)

ANSWERED = frozenset(
    {"consume", "cancel", "qos", "recover", "declare", "delete", "purge", "rpc"}
    | {"ch_close", "conn_close"}
)
"""Calls whose answer proves that the session was there. Publishes and gets are left out: they concern messages, and
what judges some messages does not see those of others."""


NEVER_STUCK = 2**63
"""Behind every position."""


class PlacedEvent(msgspec.Struct, array_like=True, gc=False):
    """An event and its position."""

    pos: int
    event: Event


class End(msgspec.Struct, array_like=True, gc=False):
    """The end of a channel, a connection or a consumer: the first sign of it, whether its client asked for it there,
    and when the broker confirmed it. A connection that was dropped is never confirmed.
    """

    pos: int
    asked: bool
    done: int | None = None
    q: str = ""
    """The consumer's queue, for the end of a consumer."""
    event: Event | None = None
    """The confirmation."""

    def moved(self, shift: int) -> End:
        """The same in a history that has so many events before."""
        done = None if self.done is None else self.done + shift
        return End(self.pos + shift, self.asked, done, self.q, self.event)


class CallKey(NamedTuple):
    """A call of a session: by its operation, else all of one kind for one consumer and queue."""

    by: Holder
    ev: str
    name: str


CallKind = tuple[str, str]
"""Calls of one kind on one connection: the connection, and their event name."""


class CallKinds(msgspec.Struct):
    """Of what kinds of call it is recorded that they begin, and of what kinds answers with a number; an answer without
    one is the whole of its call.
    """

    begun: set[CallKind] = set()
    numbered: set[CallKind] = set()

    def add(self, event: Event) -> None:
        """Take in that a call begins, or is answered."""
        if event.ph in ("", "invoke"):
            self.begun.add((event.conn, event.ev))
        elif event.ph == "ok" and event.op is not None:
            self.numbered.add((event.conn, event.ev))

    def join(self, other: CallKinds) -> None:
        """Add those of another part of the history."""
        self.begun |= other.begun
        self.numbered |= other.numbered

    @property
    def quiet(self) -> set[str]:
        """Connections of which answers alone are recorded of some kind of call, as where only what the broker sends is
        seen. They may have sent anything that is not answered.
        """
        return {conn for conn, _ in self.numbered - self.begun}


class Polling(msgspec.Struct, array_like=True):
    """The polls of one worker in a chunk: the first line that says how one ended that had begun before, and the latest
    that began and is not known to have ended.
    """

    first: PlacedEvent
    begun: PlacedEvent | None = None


class Polls(msgspec.Struct):
    """Polls of workers without a channel that are named by their connections.

    What judges some messages does not see the answer of a poll that took another one. But who polls again had an
    answer, and one that failed, or whose outcome nobody knows, names no message and is seen by all.
    """

    of: dict[Holder, Polling] = {}
    """By worker."""
    answered: dict[Holder, tuple[PlacedEvent, PlacedEvent]] = {}
    """By connection, the latest poll that was answered well, and what shows that."""

    def add(self, pos: int, event: Event) -> None:
        """Take in a poll that names no message: its beginning, or its end."""
        if event.ch is not None or not event.conn:
            return
        by, placed = holder(event), PlacedEvent(pos, event)
        polling = self.of.get(by)
        if polling is None:
            polling = self.of[by] = Polling(placed)
        else:
            self._shown(polling.begun, placed)
        if not event.ph:
            self.answered[connection(by)] = placed, placed
        polling.begun = placed if event.ph == "invoke" else None

    def _shown(self, begun: PlacedEvent | None, by: PlacedEvent) -> None:
        """A line shows that the poll that had begun was answered well, unless it ends that poll and says otherwise."""
        if begun is None or by.event.ph in ("fail", "info"):
            return
        name = Holder(begun.event.conn)
        known = self.answered.get(name)
        if known is None or known[0].pos < begun.pos:
            self.answered[name] = begun, by

    def join(self, right: Polls, shift: int) -> None:
        """Add those of the chunk that follows after `shift` events."""
        for by, more in right.of.items():
            first = PlacedEvent(more.first.pos + shift, more.first.event)
            mine = self.of.get(by)
            if mine is None:
                mine = self.of[by] = Polling(first)
            else:
                self._shown(mine.begun, first)
            mine.begun = (
                PlacedEvent(more.begun.pos + shift, more.begun.event) if more.begun else None
            )
        for name, pair in right.answered.items():
            begun, shown = (PlacedEvent(p.pos + shift, p.event) for p in pair)
            known = self.answered.get(name)
            if known is None or known[0].pos < begun.pos:
                self.answered[name] = begun, shown


class Sessions(msgspec.Struct):
    """Ends, and signs of life, of one chunk; positions are those of its events."""

    ends: dict[Holder, End] = {}
    """Of channels and of connections, see `end_of`."""
    later_ends: dict[Holder, list[End]] = {}
    """Of connections whose name was used again, the ends behind the first that was confirmed."""
    cancels: dict[ConsumerKey, End] = {}
    calls: dict[CallKey, list[PlacedEvent]] = {}
    """Where calls began."""
    answers: dict[CallKey, list[PlacedEvent]] = {}
    """Where they were answered, in the order of the calls."""
    lives: dict[Holder, tuple[PlacedEvent, PlacedEvent]] = {}
    """Of channels and connections: the latest call that was answered, and its answer; see `settle`."""
    early_lives: dict[Holder, tuple[PlacedEvent, PlacedEvent]] = {}
    """Of connections that ended, the same of calls begun before: later ones are of another connection of that name."""
    refused: set[Holder] = set()
    """Channels and connections that the broker closed, for a reason that was recorded."""
    kinds: CallKinds = msgspec.field(default_factory=CallKinds)
    refusals: dict[CallKey, int] = {}
    """How many calls certainly had no effect."""
    stuck: dict[Holder, int] = {}
    """Of channels with a call that was never answered, where that is recorded of others: where the first of them began.
    Perhaps the broker closed the channel instead; see `settle`."""
    callers: set[Holder] = set()
    """Channels and connections that began a call, if the recording has answers at all; see `settle`."""
    reopened: dict[Holder, int] = {}
    """Where each incarnation of a channel but the first was opened."""
    opens: dict[str, PlacedEvent] = {}
    """Of each connection of which openings of channels are recorded, the earliest one."""
    polls: Polls = msgspec.field(default_factory=Polls)
    """What workers without a channel polled for."""
    channels_end: bool = False
    """An end of some channel is recorded; see `settle`."""
    omits: bool = False
    """Some channel was opened anew and its end is not recorded: others may have ended so, too; see `settle`."""

    def add(self, pos: int, event: Event) -> None:
        """Take in an event of `ANSWERED`, an end, or the opening of a channel."""
        self.add_end(pos, event)
        if event.ev == "ch_open" and event.ph in ("", "ok"):
            self.opens.setdefault(event.conn, PlacedEvent(pos, event))
            if (event.gen or 0) > 1:
                self.reopened.setdefault(holder(event), pos)
        # With an error it is the broker that closes: no answer, even if the client had asked to close.
        if event.err and event.ev in ENDS:
            self.refused.add(end_of(event))
        if event.ev in ANSWERED and event.ph == "fail":
            key = call_key(event)
            self.refusals[key] = self.refusals.get(key, 0) + 1
        if event.ev in ANSWERED and event.ph in ("invoke", "ok") and not event.err:
            key = call_key(event)
            self.kinds.add(event)
            signs = self.calls if event.ph == "invoke" else self.answers
            signs.setdefault(key, []).append(PlacedEvent(pos, event))

    def add_end(self, pos: int, event: Event) -> None:
        """Take in the end of a channel, a connection or a consumer; other events say nothing."""
        if event.ev in ENDS:
            self._add_end(end_of(event), _sign(pos, event))
        elif event.ev == "cancel":
            join_end(self.cancels, consumer(event), _sign(pos, event))

    def _add_end(self, name: Holder, sign: End) -> None:
        """Take in a sign of an end: of the one that is under way, or of the next connection of that name."""
        known = self.ends.get(name)
        if name.ch is not None or known is None or known.done is None:
            join_end(self.ends, name, sign)
            return
        later = self.later_ends.setdefault(name, [])
        if later and later[-1].done is None:
            join_sign(later[-1], sign)
        else:
            later.append(sign)

    def all_ends(self) -> Iterator[End]:
        """Those of channels and of connections, also of connections whose name was used again."""
        yield from self.ends.values()
        for later in self.later_ends.values():
            yield from later

    def join(self, right: Sessions, shift: int) -> None:
        """Add the chunk that follows after `shift` events."""
        for known, more in ((self.calls, right.calls), (self.answers, right.answers)):
            for key, positions in more.items():
                known.setdefault(key, []).extend(
                    PlacedEvent(p.pos + shift, p.event) for p in positions
                )
        for key, n in right.refusals.items():
            self.refusals[key] = self.refusals.get(key, 0) + n
        self.refused |= right.refused
        moved = {by: pos + shift for by, pos in right.reopened.items()}
        self.reopened = moved | self.reopened
        for conn, opening in right.opens.items():
            self.opens.setdefault(conn, PlacedEvent(opening.pos + shift, opening.event))
        self.kinds.join(right.kinds)
        self.polls.join(right.polls, shift)
        for name, end in right.ends.items():
            self._add_end(name, end.moved(shift))
        for name, later in right.later_ends.items():
            for end in later:
                self._add_end(name, end.moved(shift))
        for consumed, end in right.cancels.items():
            join_end(self.cancels, consumed, end.moved(shift))

    def settle(self) -> None:
        """Work out the signs of life, when all calls and answers are known."""
        self.lives, self.early_lives = {}, {}
        self.channels_end = any(name.ch is not None for name in self.ends)
        before = (by._replace(gen=(by.gen or 0) - 1) for by in self.reopened)
        self.omits = any(self._replaced(by) for by in before)
        self.callers = {key.by for key in self.calls} if self.answers else set()
        self.stuck = {}
        answered = {(key.by.conn, key.ev) for key in self.answers}
        for key, calls in self.calls.items():
            done = len(self.answers.get(key, ())) + self.refusals.get(key, 0)
            if done < len(calls) and (key.by.conn, key.ev) in answered:
                first = calls[done].pos
                self.stuck[key.by] = min(first, self.stuck.get(key.by, first))
        for key, answers in self.answers.items():
            if key.ev in ENDS and not self.refused.isdisjoint((key.by, connection(key.by))):
                continue
            calls = self.calls.get(key, [])
            # An answer whose call was not seen would shift all others: then the latest calls are not believed.
            for call, answer in zip(calls, answers[-len(calls) :] if calls else [], strict=False):
                if call.pos < answer.pos:
                    _latest(self.lives, key.by, call, answer)
                    if call.pos <= self._ended_at(key.by):
                        _latest(self.early_lives, key.by, call, answer)

    def sign_before(self, by: Holder, at: int) -> bool:
        """Whether a sign of a holder's end was recorded before a position."""
        return any(
            (end := self.ends.get(name)) is not None and end.pos < at
            for name in (by, connection(by))
        )

    def lasts(self, by: Holder, at: int, lvl: str = "", *, polled: int = -1) -> bool:
        """Whether a holder's session certainly had not ended, for the broker, at a position; `polled` is where it is
        known to have polled.
        """
        if self.answers_count(by, lvl):
            return self.last_sign(by, at) >= at
        if lvl in EXACT:
            return not self.sign_before(by, at) and not self.omits
        return (
            not self.sign_before(by, at)
            and not self._noticed(by)
            and self._polls_on(by, at, polled)
        )

    def _polls_on(self, by: Holder, at: int, polled: int) -> bool:
        """Whether a worker without a channel that polls certainly still did so at a position: its client may have been
        killed, of which nothing is recorded. Who is not named by a connection may be another one by then: a process
        that is started again has its name.
        """
        if by.ch is not None:
            return True
        if not by.conn:
            return False
        known = self.polls.answered.get(connection(by))
        latest = max(polled, -1 if known is None else known[0].pos)
        if latest >= 0:
            return latest >= at
        return not self.ends or connection(by) in self.ends

    def polled_since(self, by: Holder, at: int) -> bool:
        """Whether a worker without a channel is seen to have polled behind a position, where it was there still."""
        known = self.polls.answered.get(connection(by)) if by.ch is None else None
        return known is not None and known[0].pos >= at and self.lasts(by, at)

    def _replaced(self, by: Holder) -> bool:
        """Whether a holder's channel was opened anew, so that it had ended before, of which nothing is recorded."""
        opened = None if by.gen is None else self.reopened.get(by._replace(gen=by.gen + 1))
        return opened is not None and by not in self.ends and not self.sign_before(by, opened)

    def _noticed(self, by: Holder) -> bool:
        """Whether an end of a holder was recorded that its client did not ask for, and so came at some time before."""
        return self._replaced(by) or any(
            (end := self.ends.get(name)) is not None and not end.asked
            for name in (by, connection(by))
        )

    def answers_count(self, by: Holder, lvl: str) -> bool:
        """Whether it needs an answer to know that a session was there: not inside the broker, nor for a worker that has
        none. Nor where the recording has no call of the session, or no answer to anybody; then its end is believed to
        be recorded, unless a message comes back marked as redelivered (`Lifecycles.may_be_gone`), or the recording has
        ends of others: so a channel without any may be that of a client that was killed.
        """
        named = by.ch is not None or bool(by.conn)
        called = by in self.callers or connection(by) in self.callers
        return (
            lvl not in EXACT
            and named
            and (called or (by.ch is not None and (bool(self.ends) or self.omits)))
        )

    def _ended_at(self, name: Holder) -> int:
        """Where the first sign of a connection's end is; -1 if there is none, or it is a channel."""
        end = self.ends.get(name) if name.ch is None else None
        return -1 if end is None else end.pos

    def _life(self, name: Holder, at: int) -> tuple[PlacedEvent, PlacedEvent] | None:
        """The latest call that was answered to a channel or connection that was there at a position."""
        sign = self.lives.get(name)
        another = sign is not None and at <= self._ended_at(name) < sign[0].pos
        return self.early_lives.get(name) if another else sign

    def last_sign(self, by: Holder, at: int) -> int:
        """Until where a holder's session that was there at a position certainly was; -1 if that is not known."""
        sign = self.sign_of_life(by, at)
        return sign[0].pos if sign else -1

    def sign_of_life(self, by: Holder, at: int) -> tuple[PlacedEvent, PlacedEvent] | None:
        """The latest call of a holder's session, which was there at a position, that was answered, and its answer."""
        own = self._life(by, at)
        # Of a channel that ended by itself before the connection's answers say nothing; nor of one that did not answer,
        # nor where no channel's end is recorded, unless the call names the channel.
        over = by in self.ends or self._replaced(by)
        of_connection = None if over else self._life(connection(by), at)
        if of_connection is not None and not self.channels_end:
            of_connection = of_connection if of_connection[0].event.ch == by.ch else None
        if of_connection is not None and self.stuck.get(by, NEVER_STUCK) < of_connection[0].pos:
            of_connection = None
        signs = [sign for sign in (own, of_connection) if sign is not None]
        return max(signs, key=lambda sign: sign[0].pos, default=None)

    def proof(self, by: Holder, at: int, lvl: str = "") -> list[PlacedEvent]:
        """The call and the answer, or the poll, by which a holder that `lasts` is known to, if it is known by one."""
        if self.answers_count(by, lvl):
            return list(self.sign_of_life(by, at) or ())
        if by.ch is not None or lvl in EXACT:
            return []
        return list(self.polls.answered.get(connection(by), ()))

    def answered_after(self, by: Holder, at: int) -> bool:
        """Whether what a holder had sent at a position has certainly taken effect: a later call was answered."""
        return self.lasts(by, at)

    def over(self, by: Holder, at: int) -> bool:
        """Whether a holder's end was confirmed before a position, and it was not there later: on a connection of the
        same name it would be another one's end.
        """
        own = self.ends.get(by) if by.ch is not None else None
        if own is not None and own.done is not None and own.done < at:
            return True
        name = connection(by)
        life = self.lives.get(by if by.ch is not None else name)
        since = -1 if life is None else life[0].pos
        ends = [e for e in (self.ends.get(name), *self.later_ends.get(name, ())) if e is not None]
        return any(e.done is not None and since <= e.done < at for e in ends)


def _latest(
    lives: dict[Holder, tuple[PlacedEvent, PlacedEvent]],
    by: Holder,
    call: PlacedEvent,
    answer: PlacedEvent,
) -> None:
    """Keep a call that was answered if it is the latest one of its session."""
    known = lives.get(by)
    if known is None or known[0].pos < call.pos:
        lives[by] = call, answer


def earliest(one: Mapping[Name, int], other: Mapping[Name, int]) -> dict[Name, int]:
    """The positions of two mappings, of those in both the earlier."""
    return {**one, **{name: min(pos, one.get(name, pos)) for name, pos in other.items()}}


def call_key(event: Event) -> CallKey:
    """The call that an event begins or answers."""
    of_connection = event.ch is None or event.ev == "conn_close"
    by = connection(holder(event)) if of_connection else holder(event)
    return CallKey(by, event.ev, str(event.op) if event.op is not None else event.ctag)


def _sign(pos: int, event: Event) -> End:
    whole = event.lvl in EXACT
    done = pos if whole or (event.ph == "ok" and event.ev != "conn_drop") else None
    q = event.q if event.ev == "cancel" else ""
    asked = event.ph == "invoke" and event.ev != "conn_drop"
    return End(pos, whole or asked, done, q, event if done is not None else None)


def join_end(signs: dict[Name, End], name: Name, sign: End) -> None:
    """Join a sign of an end to those before it."""
    join_sign(signs.setdefault(name, sign), sign)


def join_sign(known: End, sign: End) -> None:
    """Join a sign of an end to that end; to itself it adds nothing."""
    if sign.event is not None and sign.event.err:
        known.asked = known.asked and sign.asked
    if known.done is None:
        known.done, known.event = sign.done, sign.event
    known.q = known.q or sign.q
