"""Happens-before: what each thread knows of the others, as vector clocks.

A schedule puts all steps into one order, but most of that order is an accident. One step *happens before* another only
if the program itself leads from the one to the other: within a thread, from a spawn to the thread that it starts, from
the end of a thread to a join on it, and by synchronisation through an object of the host:

| what passes it on | what receives it |
|---|---|
| cell set, add, swap, get_and_add, a compare_and_set that succeeds | cell get, swap, get_and_add, any compare_and_set |
| lock release, condition wait (it lets the lock go) | lock acquire, a try_acquire that succeeds, the end of a wait |
| semaphore release | semaphore acquire, a try_acquire that succeeds |

So a read never orders a later write, and a blind write orders nothing for its own thread. A notify is not in the table:
its thread holds the lock, which passes the order on. The clock and the order of calls pass nothing on:
that time has passed tells no thread what another has written. Neither does a try_acquire that fails.
These are the rules of Java's memory model for volatile variables, and of `java.util.concurrent` for locks and
semaphores, in the form that FastTrack gives them (Flanagan & Freund, PLDI 2009, "Extensions");
the clocks are Mattern's and Fidge's.

What these rules order, the dependency of `operations` orders too, so the executions of one Mazurkiewicz trace agree
on them, and one execution of each trace is enough.
"""

from __future__ import annotations

from seriatim_models.explorer.model.operations import (
    Acquire,
    Add,
    Await,
    CompareAndSet,
    FetchAdd,
    Get,
    Join,
    Operation,
    Permit,
    Reacquire,
    Release,
    Restore,
    Set,
    Shared,
    Swap,
    Thread,
    TryAcquire,
    Wait,
)

Clock = dict[int, int]
"""Number of a thread -> how much of that thread is known; what is not there is 0."""

RECEIVING = frozenset(
    op.code
    for op in (Get, Await, Swap, FetchAdd, CompareAndSet, Acquire, Reacquire, TryAcquire, Permit)
)
PASSING_ON = frozenset(
    op.code for op in (Set, Swap, FetchAdd, CompareAndSet, Add, Release, Wait, Restore)
)
RECEIVES_IF_DONE = frozenset(op.code for op in (TryAcquire, Permit))
PASSES_ON_IF_DONE = frozenset((CompareAndSet.code,))


class HappensBefore:
    """The vector clocks of one execution. Threads are known by their number in it, objects by their index."""

    __slots__ = ("_objects", "threads")

    def __init__(self) -> None:
        self.threads: dict[int, Clock] = {}
        """What each thread that runs knows. Its own entry counts what it has passed on, from 1."""
        self._objects: dict[int, Clock] = {}

    def start(self, thread: Thread, parent: Thread | None) -> None:
        """Begin a thread that `parent` spawned; None: the set-up, which happens before everything."""
        known: Clock = {} if parent is None else dict(self.threads[parent.number])
        known[thread.number] = 1
        self.threads[thread.number] = known
        if parent is not None:
            self.threads[parent.number][parent.number] += 1

    def step(self, thread: Thread, op: Operation) -> None:
        """Account for `op`, which `thread` is about to do. The set-up and alarms never started and have no clock."""
        clock = self.threads.get(thread.number)
        if clock is None:
            return
        code = op.code
        if code == Join.code:
            _learn(clock, self.threads[op.target.number])  # type: ignore[attr-defined]
            return
        obj = op.obj
        if type(obj) is Shared:  # the clock, the order of calls
            return
        if code in RECEIVING and (code not in RECEIVES_IF_DONE or op.touch() is obj.writes):
            passed_on = self._objects.get(obj.index)
            if passed_on is not None:
                _learn(clock, passed_on)
        if code in PASSING_ON and (code not in PASSES_ON_IF_DONE or op.touch() is obj.writes):
            _learn(self._objects.setdefault(obj.index, {}), clock)
            clock[thread.number] += 1

    def knows(self, thread: int, of: int, moment: int) -> bool:
        """Whether what thread `of` did at its `moment` happens before what thread number `thread` does now."""
        return moment <= self.threads[thread].get(of, 0)


def _learn(clock: Clock, other: Clock) -> None:
    """Add what `other` knows to `clock`."""
    for thread, moment in other.items():
        if moment > clock.get(thread, 0):
            clock[thread] = moment
