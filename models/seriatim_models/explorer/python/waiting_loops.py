"""Loops that wait: `while not flag: pass`, `while queue.empty(): time.sleep(0.01)`.

Such a loop has no end under every schedule, for its thread can go round as often as a scheduler likes. Most of these
rounds say nothing: a round that changes nothing, after which the thread is where it was, can be left out of an
execution, and what is left is an execution of the same program with the same outcome. So a thread that has gone
round once without a change *stops* there:

- if one of the places that the round read has changed since, the execution says nothing new (its end is
  ``superseded``): the search has another one in which the thread reads later, for the reads of the round are steps
  that race with the change;
  This is so, too, if it changed within the round, behind its first read: the next round would read something else;
- if nothing has changed when nothing else can happen, the thread goes round for ever, under the fairest of schedules.

This is the *assume* of stateless model checkers for loops without effect (Kokologiannakis, Ren & Vafeiadis,
"Dynamic partial order reductions for spinloops", FMCAD 2021): as many traces as the loop has with its last round
alone, one blocking read.

**What a round may do**: read places; look at locks, queues and threads without waiting; sleep; take a lock and free it
again, as `queue.Queue.empty` does, if no thread of the program looks at locks without waiting for them; change objects
that it has made itself. Anything else is a change: a store, a notify, a look at the clock, a random number, a
generator that goes on, C code that is not known to only read. So a loop with a deadline, or one that counts its
rounds, is run as it is written. A `for` over what has no end (`itertools.count()`, `repeat(x)`, `iter(f, x)`, made
for it) is such a loop, too: how far it has come nobody knows, if nobody reads its variable.
A loop with `yield` in it is not looked at, and of one with `await` those rounds in which its task has not let the
event loop run: what it awaited was there already. Such rounds are those of a loop without `await`, and hold up all
tasks of the thread.

A strategy that draws schedules lets the thread go on once a place has changed, and so does a replay.
Time that the left out rounds would have slept does not pass.
"""

from __future__ import annotations

import inspect
import itertools
import operator
import sys
import types
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from seriatim_models.explorer.model.guard import program_text
from seriatim_models.explorer.model.operations import (
    READ,
    Footprint,
    LocalOperation,
    Operation,
    Shared,
    Thread,
)
from seriatim_models.explorer.python.places import SharedPlace, where

LOOPS = "loops that wait"
"""What is promoted when a program goes round a loop again and again: from then on its rounds are looked at."""

LOCKS_LOOKED_AT = "locks are looked at"
"""What is promoted when a program with such loops asks for a lock without waiting: it sees who holds it, and when."""

OFTEN = 5
"""Rounds of one loop after which rounds are looked at."""
IN_ONE_STEP = 200
"""Rounds within one step after which the search begins again at once."""
LONG = 50
"""Rounds of one loop that are worth a word if the search does not end."""

ACCESS, LOOKS, SEES_A_LOCK, TAKES, FREES, SLEEPS = range(6)
"""What an operation is in a round: an access to a place; a look, as long as it does not change anything; a look at a
lock; it takes a lock, or frees it; it lets time pass."""

KINDS: dict[type[Operation], int] = {}
"""The operations that are one of these, and no other one; their modules fill it in."""

PRIMITIVE = (int, float, str, bytes, bool, type(None))


class Moment(NamedTuple):
    """What a thread knows at the head of a loop."""

    steps: int
    changes: int
    noted: int
    taken: int
    objects: int
    """How many objects the thread had made."""
    held: tuple[tuple[Shared, int, int], ...]
    """The locks that it had taken, when, and how often."""
    local: dict[str, object]
    """The variables that the loop binds."""


class LoopRounds:
    """What the threads of one execution have done that decides whether a round of a loop changes anything."""

    def __init__(self, ex: Any, *, neutral_locks: bool, mortal: bool) -> None:
        self.ex = ex
        """The `PythonExecution`, whose module imports this one."""
        self.mortal = mortal
        """Whether it shows when objects die."""
        self.neutral_locks = neutral_locks
        """Whether it changes nothing to take a lock and to free it again."""
        self.searched = False
        """Whether the search reverses races, so that a thread that has stopped need not go on."""
        self.changes: defaultdict[Thread, int] = defaultdict(int)
        self.noted: defaultdict[Thread, list[tuple[str, Any]]] = defaultdict(list)
        """What each thread did that may be a change: ``made``, number of an object of its own that it changed;
        ``read``, a footprint. And ``stale``: another thread writes what it has last read after so many steps."""
        self.taken: list[tuple[Thread, int, int]] = []
        """Of each step its thread, what it touched, and what conflicts with it if it was a read in a round."""
        self.held: defaultdict[Thread, dict[Shared, int]] = defaultdict(dict)
        self.stopped: list[NoChange] = []

    def wrote(self, thread: Thread, place: SharedPlace) -> None:
        """A thread is about to write a place."""
        for waiting in self.stopped:
            if waiting.thread is not thread and not waiting.changed:
                waiting.changed = waiting.has_read(place)
        for other, noted in self.noted.items():
            if other is not thread and (last := last_read(place, other)) >= 0:
                noted.append(("stale", last))
        record = place.record
        if record.maker == thread.tid:
            self.noted[thread].append(("made", record.number))
        else:
            self.changes[thread] += 1

    def step(self, thread: Thread, op: Operation) -> None:
        """A thread is about to take a step. Writes to places come to `wrote` besides."""
        footprint, kind = op.touch(), KINDS.get(type(op))
        for waiting in self.stopped:
            if waiting.thread is not thread and not waiting.changed:
                waiting.changed = bool(waiting.touch().conf & footprint.mask)
        rivals = 0
        if kind == SEES_A_LOCK:
            self.ex.need(LOCKS_LOOKED_AT, 0)
        if kind == ACCESS or (kind in (LOOKS, SEES_A_LOCK) and only_looks(op, footprint)):
            self.noted[thread].append(("read", footprint))
            rivals = footprint.conf
        elif kind == TAKES and self.neutral_locks:
            self.held[thread][op.obj] = self.ex.steps
        elif kind == FREES and op.obj in self.held[thread]:
            # One that was taken before the round is missed at its end.
            del self.held[thread][op.obj]
        elif kind != SLEEPS:
            self.changes[thread] += 1
        self.taken.append((thread, footprint.mask, rivals))

    def moment(self, thread: Thread, local: dict[str, object]) -> Moment:
        """What a thread knows now, at the head of a loop that binds these variables."""
        return Moment(
            self.ex.steps,
            self.changes[thread],
            len(self.noted[thread]),
            len(self.taken),
            self.ex.numbers[thread.tid],
            tuple((o, at, getattr(o, "count", 1)) for o, at in self.held[thread].items()),
            local,
        )

    def unchanged(self, thread: Thread, before: Moment, after: Moment) -> bool:
        """Whether a thread is where it was, and has changed nothing meanwhile."""
        return (
            before.changes == after.changes
            and before.held == after.held
            and before.local.keys() == after.local.keys()
            and all(same(value, after.local[name]) for name, value in before.local.items())
            and all(
                kind != "made" or about > before.objects
                for kind, about in self.noted[thread][before.noted :]
            )
        )

    def overtaken(self, thread: Thread, since: Moment) -> bool:
        """Whether another thread has written what a thread had read before in the round that began then."""
        noted = self.noted[thread][since.noted :]
        if any(kind == "stale" and about >= since.steps - 1 for kind, about in noted):
            return True
        rivals = 0
        for other, touched, conflicts in self.taken[since.taken :]:
            if other is thread:
                rivals |= conflicts
            elif rivals & touched:
                return True
        return False

    def reads(self, thread: Thread, since: Moment) -> Footprint:
        """What a thread has read in steps since a moment."""
        found = {
            (index, READ)
            for kind, footprint in self.noted[thread][since.noted :]
            if kind == "read"
            for index, mode in footprint.accesses
            if mode == READ
        }
        made: Footprint = self.ex.footprint(tuple(sorted(found)))
        return made


def only_looks(op: Operation, footprint: Footprint) -> bool:
    """Whether an operation changes nothing, not even how many time limits may still run out."""
    limited = getattr(op, "limited", False) or getattr(op, "seconds", None)
    return not limited and footprint is op.obj.reads


def same(before: object, after: object) -> bool:
    """Whether a variable has not changed, as far as a program could see."""
    return before is after or (
        type(before) is type(after) and type(before) in PRIMITIVE and before == after
    )


def last_read(place: SharedPlace, thread: Thread) -> int:
    """After how many steps a thread has last read a place that is no step; below 0 for never."""
    if place.thread is thread:
        return place.read_at
    found = place.readers.get(thread)
    return found[0] if found else -2


class NoChange(LocalOperation):
    """Go round a loop once more, which has changed nothing."""

    __slots__ = ("changed", "footprint", "rounds", "since", "site", "thread")
    code = 61
    free = False
    goes_round = True

    def __init__(self, rounds: LoopRounds, thread: Thread, since: Moment, site: int) -> None:
        self.rounds = rounds
        self.thread = thread
        self.since = since
        self.site = site
        self.changed = rounds.overtaken(thread, since)
        self.footprint = rounds.reads(thread, since)

    def ready(self, thread: Thread) -> bool:
        """Whether what the loop reads has changed, if that is not left to another execution."""
        return self.changed and not self.rounds.searched

    @property
    def stale(self) -> bool:  # type: ignore[override]
        """Whether what the round read is something else by now, or may be: where something was not seen."""
        return self.changed or bool(self.rounds.ex.search.unseen)

    def touch(self) -> Footprint:
        return self.footprint

    def has_read(self, place: SharedPlace) -> bool:
        """Whether the round has read a place."""
        return last_read(place, self.thread) >= self.since.steps - 1

    def run(self, thread: Thread, alternative: int) -> None:
        self.rounds.stopped.remove(self)

    def describe(self) -> str:
        return f"another round of the loop at {where(self.site)}"

    def waits_for(self) -> str:
        """What the loop reads, and that it goes round for ever."""
        ex = self.rounds.ex
        read = {index for index, _ in self.footprint.accesses}
        places = dict.fromkeys(
            place.label
            for record in list(ex.records.values())
            for place in list(record.places.values())
            if place.index in read or self.has_read(place)
        )
        about = " and ".join(list(places)[:3])
        changed = f"reads {about}, which nobody changes any more" if about else "changes nothing"
        return f"waits for ever: the loop at {where(self.site)} {changed}"


class Loop:
    """A `while` that is being run, or a `for` without an end."""

    __slots__ = ("awaits", "before", "ex", "names", "rounds", "site", "step", "turn", "within")

    def __init__(self, ex: Any, site: int, names: tuple[str, ...]) -> None:
        self.ex = ex
        self.site = site
        self.names = names
        self.rounds = self.within = 0
        self.step = -1
        self.before: Moment | None = None
        self.awaits = False
        """Whether others may have run in its thread during a round."""
        self.turn: int | None = None

    def round(self) -> bool:
        """The thread is at the head of the loop. True, so that its test is evaluated."""
        ex = self.ex
        thread = ex.current
        if thread is None or (self.awaits and self._others_ran()):
            return True
        self.rounds += 1
        if self.rounds > LONG:
            ex.search.goes_round(self.site, self.rounds)
        if len(ex.heads) < 2:
            return True
        if ex.rounds is None:
            self._count()
        else:
            self._look(ex.rounds, thread)
        return True

    def _others_ran(self) -> bool:
        """Whether the event loop may have run since the last round: it has turned, or nobody knows."""
        before, self.turn = self.turn, turns(self.ex, sys._getframe(3))
        if before is not None and before == self.turn:
            return False
        self.rounds, self.before = 0, None
        return True

    def _count(self) -> None:
        """Let rounds be looked at from the next search on, if there are many."""
        ex = self.ex
        if self.rounds > OFTEN:
            ex.need(LOOPS, 0)
        if ex.steps != self.step:
            self.step, self.within = ex.steps, 0
        self.within += 1
        if self.within > IN_ONE_STEP:
            raise ex.promotion(f"the loop at {where(self.site)}")

    def _look(self, rounds: LoopRounds, thread: Thread) -> None:
        """Stop if the last round has changed nothing."""
        local: dict[str, object] = {}
        if self.names and rounds.mortal:
            # To look at the variables of a frame would keep alive what they hold.
            local = {"": object()}
        elif self.names:
            known = sys._getframe(3).f_locals
            local = {name: known[name] for name in self.names if name in known}
        after = rounds.moment(thread, local)
        if self.before is not None and rounds.unchanged(thread, self.before, after):
            waiting = NoChange(rounds, thread, self.before, self.site)
            rounds.stopped.append(waiting)
            thread.op = waiting
            self.ex.switch()
            after = rounds.moment(thread, local)
        self.before = after


KINDS[NoChange] = SLEEPS


def turns(ex: Any, frame: types.FrameType | None) -> int | None:
    """How often event loops have turned, where a coroutine is run by a task of `asyncio`; None elsewhere.

    A task that has let the loop run goes on in a later turn. Of what drives a coroutine by itself nobody knows.
    """
    while frame is not None and frame.f_code.co_flags & inspect.CO_COROUTINE:
        frame = frame.f_back
    while frame is not None and not program_text(frame.f_code.co_filename):
        if frame.f_globals.get("__name__") == "asyncio.tasks":
            return sum(int(loop._timers.turn) for loop in ex.loops)
        frame = frame.f_back
    return None


def going_round(begun: Loop | None) -> bool:
    """The head of a `while`; always True."""
    return begun is None or begun.round()


CALLED_AGAIN = type(iter(int, 1))
"""The class of `iter(f, x)`."""


class EndlessIteration:
    """What a `for` goes through that has no end, and that nothing else goes through: each turn is a round of a loop."""

    __s_native__ = True

    def __init__(self, begun: Loop, real: Iterator[Any]) -> None:
        self.begun = begun
        self.real = real

    def __iter__(self) -> EndlessIteration:
        return self

    def __next__(self) -> Any:
        self.begun.round()
        return next(self.real)


def endless(begun: Loop | None, elements: Any) -> Any:
    """What a `for` goes through that was written as one without an end, if it has none."""
    if begun is None:
        return elements
    real = getattr(elements, "real", elements)
    kind = type(real)
    if kind is CALLED_AGAIN:
        return EndlessIteration(begun, elements)
    if kind is itertools.count or (
        kind is itertools.repeat and operator.length_hint(real, -1) == -1
    ):
        return EndlessIteration(begun, real)
    return elements
