"""How an execution ended, and why.

- ``finished``: every thread ended;
- ``quiescent``: only daemons still wait, and they may;
- ``deadlock``: threads wait for each other in a cycle of locks and joins, or for a lock that nobody will release;
- ``lost wake-up``: a thread sleeps on a condition and nobody is left who could notify it;
- ``starved``: a thread waits for a permit that nobody will give, or a value that nobody will write, be it in a loop;
- ``waiting``: what still waits has a time limit whose budget is spent: no error, only the end of the bounded search;
- ``livelock``: the threads repeat a cycle of steps that changes nothing (see `cycles`);
- ``superseded``: a thread has stopped in a loop that waits, and what it read has changed since: another execution has
  it read later (see `python.waiting_loops`);
- ``cut``: the bound on steps was reached; ``failed``: a thread raised an exception; ``blocked``: sleep-set blocked.
"""

from __future__ import annotations

from seriatim_models.explorer.model.execution import Execution, Notification
from seriatim_models.explorer.model.operations import (
    Acquire,
    Await,
    Join,
    Permit,
    Reacquire,
    Thread,
)

STUCK = ("deadlock", "lost wake-up", "starved", "livelock")
"""The ends that are violations unless the caller allows them."""


def classify(ex: Execution) -> str:
    """The end of an execution in which nothing can happen any more."""
    waiting = [t for t in ex.threads if not t.done and not t.virtual]
    if not waiting:
        return "finished"
    if any(t.op is not None and t.op.stale for t in waiting):
        return "superseded"
    owed = [t for t in waiting if not t.daemon]
    if not owed:
        return "quiescent"
    kinds = {_kind(t) for t in owed}
    for kind, end in (
        ("lock", "deadlock"),
        ("condition", "lost wake-up"),
        ("permit", "starved"),
        ("limited", "waiting"),
    ):
        if kind in kinds:
            return end
    if "loop" in kinds:  # whose time limit runs out once more may change what the loop reads
        return "waiting" if any(_kind(t) == "limited" for t in waiting) else "starved"
    # Only joins: what are the joined waiting for?
    behind = {_kind(t) for t in waiting if t.daemon}
    if all(_kind(_joined(t)) == "limited" for t in owed):
        return "waiting"  # a daemon that polls goes on when its time limit runs out once more
    return "lost wake-up" if "condition" in behind and "lock" not in behind else "deadlock"


def _kind(thread: Thread) -> str:
    op = thread.op
    if isinstance(op, Reacquire) and op.woken is None:
        return "limited" if op.limited else "condition"
    if getattr(op, "limited", False):
        return "limited"
    if op is not None and op.goes_round:
        return "loop"
    if isinstance(op, Permit | Await):
        return "permit"
    if isinstance(op, Join):
        return "join"
    return "lock"


def _joined(thread: Thread) -> Thread:
    """The thread behind a chain of joins; one that joins, where they are a cycle."""
    seen: list[Thread] = []
    while isinstance(thread.op, Join) and thread not in seen:
        seen.append(thread)
        thread = thread.op.target
    return thread


def _next(thread: Thread) -> Thread | None:
    """The thread that it waits for, if there is exactly one."""
    op = thread.op
    if isinstance(op, Join):
        return op.target
    if isinstance(op, Acquire) and not (isinstance(op, Reacquire) and op.woken is None):
        holder = op.obj.value
        return holder if isinstance(holder, Thread) else None
    return None


def explain(ex: Execution) -> str:
    """What each thread waits for; the cycle, if there is one; the last notify that missed a waiter."""
    waiting = [t for t in ex.threads if not t.done and not t.virtual]
    lines = [
        f"{t.name} {t.op.waits_for() if t.op is not None else 'has ended'}"
        + (" (a daemon)" if t.daemon else "")
        for t in waiting
    ]
    if sum(t.op is not None and t.op.goes_round for t in waiting) > 1:
        lines.append("a livelock: these loops wait for each other")
    cycle = _wait_cycle(waiting)
    if cycle:
        lines.append("the cycle: " + " -> ".join(t.name for t in [*cycle, cycle[0]]))
    for t in waiting:
        op = t.op
        if isinstance(op, Reacquire) and op.woken is None:
            lines.append(_missed(ex, t, op))
        elif isinstance(op, Acquire) and isinstance(op.obj.value, Thread) and op.obj.value.done:
            lines.append(f"{op.obj.value.name} ended without releasing {op.obj.name}")
    return "; ".join(lines)


def _missed(ex: Execution, waiter: Thread, op: Reacquire) -> str:
    condition = op.condition
    slept = waiter.last + 1
    notifies: list[Notification] = [m for m in ex.notifies if m.condition is condition]
    if not notifies:
        return f"{condition.name} was never notified"
    last = notifies[-1]
    if last.step > slept:
        woke = f"woke {', '.join(last.woke) or 'nobody'} of {last.waiters} waiting"
    else:
        woke = f"woke {', '.join(last.woke)}" if last.woke else "found nobody waiting"
    return (
        f"{waiter.name} sleeps on {condition.name} since step {slept}; "
        f"the last notify, by {last.by} in step {last.step}{_work(ex, last)}, {woke}"
    )


CHANGES = (".set(", ".compare_and_set(", ".get_and_set(", ".get_and_add(", ".add(")
"""Operations on cells that may leave something to be done."""


def _work(ex: Execution, notify: Notification) -> str:
    """What the notify was about: the last thing that its thread changed before it."""
    for step in reversed((ex.log or [])[: notify.step]):
        if step.thread == notify.by and any(change in step.op for change in CHANGES):
            return f" after {step.op} in step {step.n}"
    return ""


def _wait_cycle(waiting: list[Thread]) -> list[Thread]:
    for start in waiting:
        seen: list[Thread] = []
        t: Thread | None = start
        while t is not None and t not in seen:
            seen.append(t)
            t = None if t.done else _next(t)
        if t is not None:
            return seen[seen.index(t) :]
    return []
