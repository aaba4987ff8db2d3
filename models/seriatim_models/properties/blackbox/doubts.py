"""Violations that are definite only if somebody was still there, which may be known much later.

A property that is one pass in recording order meets a delivery that is wrong if another consumer was there. That it was
is known when its session answers a call that was begun later (`sessions`), and never if its client was killed. So
what looks like a violation waits until the history is over.

Of calls only those that name no queue are such answers, since queues are judged apart. One that names the queue itself
and was answered shows that the recording has answers of its session, so that silence means nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from seriatim_models.history.event import EXACT, SETTLES, Event
from seriatim_models.properties.blackbox.channels import CaseCounts
from seriatim_models.properties.blackbox.lifecycle import acquires, in_order
from seriatim_models.properties.blackbox.naming import ConsumerKey, Holder, each_once, holder
from seriatim_models.properties.blackbox.sessions import (
    ANSWERED,
    PlacedEvent,
    Polls,
    Sessions,
    earliest,
)

_SIGNS = ANSWERED | {"conn_drop", "ch_open"}
"""Events that begin or end a session, or show that it is there."""
_TAKEN = _SIGNS | {"get"}
"""What says anything here, besides settlements of workers that no channel has."""
KEPT = 4096  # violations that wait; what comes later is left open


class Doubt(msgspec.Struct, array_like=True):
    """What looks like a violation, and who must have been there at a position, and at a time if that matters."""

    pos: int
    lvl: str
    q: str
    holders: list[Holder]
    consumers: list[ConsumerKey]
    """Those that must not have been cancelled by the broker."""
    after: int | None
    since: int | None
    """Whose end was confirmed before this position does not matter."""
    silent: bool
    """Whether they may have been gone without a word where no answers are recorded: then no violation is definite."""
    why: str
    witness: list[Event]
    settled: dict[Holder, list[Event]] = {}
    """By worker that no connection names, its settlement of what it was given, begun since; and the good answer."""

    def take(self, event: Event) -> None:
        """Take in a settlement, or its answer."""
        by = holder(event)
        if by not in self.holders or event.op is None or self.settled.get(by, ())[1:]:
            return
        given = {e.m for e in self.witness if acquires(e) and holder(e) == by}
        if event.ph == "invoke" and given.intersection(event.ms or (event.m,)):
            self.settled[by] = [event]
        elif event.ph == "ok" and by in self.settled:
            begun = self.settled[by][0]
            if (begun.ev, begun.op) == (event.ev, event.op):
                self.settled[by] = [begun, event]


class Doubts(msgspec.Struct):
    """What waits, and what is known of sessions."""

    n: int = 0
    sessions: Sessions = msgspec.field(default_factory=Sessions)
    times: dict[int, int] = {}
    """When calls began, by position."""
    named: dict[str, Sessions] = {}
    """By queue, calls that name it: one without an answer may have ended its channel."""
    callers: dict[str, dict[Holder, bool]] = {}
    """By queue, who made a call that names it, and whether one was answered."""
    polls: dict[str, Polls] = {}
    """By queue that a poll names, or none: what workers polled for."""
    waiting: list[Doubt] = []
    dropped: int = 0

    def take(self, event: Event) -> None:
        """Take in the next event."""
        if event.ev in _TAKEN or (event.ch is None and event.ev in SETTLES):
            self._take(event)
        self.n += 1

    def _take(self, event: Event) -> None:
        if event.ev == "get" and not event.m:
            self.polls.setdefault(event.q, Polls()).add(self.n, event)
        elif event.ev in SETTLES and not event.conn:
            for doubt in self.waiting:
                doubt.take(event)
        if event.ev in _SIGNS and event.q:
            self.sessions.add_end(self.n, event)
            self._called(event)
        elif event.ev in _SIGNS:
            self.sessions.add(self.n, event)
            if event.ph == "invoke" and event.t is not None:
                self.times[self.n] = event.t

    def _called(self, event: Event) -> None:
        """Take in a call that names a queue, or its answer."""
        if event.ev not in ANSWERED or event.ph not in ("invoke", "ok", "fail"):
            return
        self.named.setdefault(event.q, Sessions()).add(self.n, event)
        if event.ph == "fail":
            return
        if event.ph == "invoke":
            self.callers.setdefault(event.q, {}).setdefault(holder(event), False)
        elif holder(event) in self.callers.get(event.q, {}):
            self.callers[event.q][holder(event)] = True

    def report(
        self,
        event: Event,
        holders: Iterable[Holder],
        why: str,
        witness: list[Event],
        *,
        consumers: Iterable[ConsumerKey] = (),
        after: int | None = None,
        since: int | None = None,
        silent: bool = False,
    ) -> None:
        """Something looks like a violation, if all of `holders` were still there when `event` was recorded, or at the
        time `after`; but for those whose end was confirmed before position `since`. With `silent` nobody is taken to
        have been there because no end of his is recorded.
        """
        if len(self.waiting) < KEPT:
            doubt = Doubt(
                self.n,
                event.lvl,
                event.q,
                list(holders),
                list(consumers),
                after,
                since,
                silent,
                why,
                list(witness),
            )
            self.waiting.append(doubt)
        else:
            self.dropped += 1

    def resolve(
        self, tally: CaseCounts, explained: Callable[[Doubt], bool] = lambda doubt: False
    ) -> None:
        """Add to counts what has become of it; each was counted as tested. What is `explained` is no violation."""
        self.sessions.settle()
        stuck = self.sessions.stuck
        for sessions in self.named.values():
            sessions.settle()
        for doubt in self.waiting:
            named = self.named.get(doubt.q)
            self.sessions.stuck = earliest(stuck, named.stuck) if named else stuck
            self.sessions.polls = self.polls.get(doubt.q, Polls())
            cancelled = any(
                (end := self.sessions.cancels.get(name)) is not None and not end.asked
                for name in doubt.consumers
            )
            there = all(self._there(by, doubt) for by in doubt.holders)
            if there and not cancelled and not explained(doubt):
                signs = [sign for by in doubt.holders for sign in self._proof(by, doubt)]
                witness = [*doubt.witness, *in_order(signs)]
                tally.report_violation(doubt.why, each_once(witness))
            else:
                tally.tested -= 1
                tally.untestable += 1
        tally.tested -= self.dropped
        tally.untestable += self.dropped

    def _there(self, by: Holder, doubt: Doubt) -> bool:
        sessions = self.sessions
        if doubt.since is not None and sessions.over(by, doubt.since):
            return True
        if not self._answers_count(by, doubt) and not (doubt.silent and doubt.lvl not in EXACT):
            return self._lasts(by, doubt)
        at = sessions.last_sign(by, doubt.pos)
        if doubt.after is None:
            return at >= doubt.pos
        return at >= 0 and self.times.get(at, doubt.after) > doubt.after

    def _lasts(self, by: Holder, doubt: Doubt) -> bool:
        """Whether somebody of whom no calls are recorded was there: a worker that polled, if it is seen to later."""
        gets = [e for e in doubt.witness if e.ev == "get" and holder(e) == by]
        polled = 0 if gets else -1
        if self.sessions.lasts(by, doubt.pos, doubt.lvl, polled=polled):
            return True
        return len(doubt.settled.get(by, ())) > 1

    def _answers_count(self, by: Holder, doubt: Doubt) -> bool:
        """Whether it needs an answer to know that a holder was there; see `Sessions.answers_count`."""
        called = self.callers.get(doubt.q, {}).get(by, False) and (by.ch is not None or by.conn)
        return self.sessions.answers_count(by, doubt.lvl) or (
            bool(called) and doubt.lvl not in EXACT
        )

    def _proof(self, by: Holder, doubt: Doubt) -> list[PlacedEvent]:
        """The call and its answer by which it is known that a holder was there, if it is known by that."""
        if doubt.since is not None and self.sessions.over(by, doubt.since):
            return []
        if self._answers_count(by, doubt):
            return list(self.sessions.sign_of_life(by, doubt.pos) or ())
        at = doubt.pos
        settled = [PlacedEvent(at + n, e) for n, e in enumerate(doubt.settled.get(by, ()), 1)]
        return settled or self.sessions.proof(by, doubt.pos, doubt.lvl)
