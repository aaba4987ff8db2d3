"""What an event loop waits for, under the control of a schedule: timers, and calls from other threads.

The loop itself is the interpreter's own `asyncio`, in Python: its ready queue is first in, first out, and a test
with nothing else has one schedule. Three things are not decided by the program, and are explored:

- **Timers** (`sleep`, `wait_for`, `timeout`, `call_later`) end in any order, early or late: a duration stands for
  work that lasts as long as it likes. With ``timers="deadline"`` a timer ends after all that were set before it for
  no longer.
- **Where** in the ready queue a timer ends: between any two turns of the loop.
- **Threads**: what `call_soon_threadsafe`, `to_thread` and `run_in_executor` do, step by step like all threads.

A *turn* runs the callbacks that were ready when it began. A timer that the real loop finds expired before a turn runs
in it, after all others. Here it is decided after the turn whether the timer has run in it, and it is run then, before
the next turn begins: that is the same, and if the turn has made nothing ready, ending in it and ending while
the loop waits are one schedule and not two.

What is bounded, and said with a verdict: a timer is overtaken by at most `OVERTAKEN` timers that were set later and
for longer, and it ends at the latest after `LATEST` turns in which the loop had something else to do.
"""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from seriatim_models.explorer.errors import Misuse
from seriatim_models.explorer.model.guard import program_text
from seriatim_models.explorer.model.operations import (
    Footprint,
    LocalOperation,
    Operation,
    Restore,
    Shared,
)
from seriatim_models.explorer.model.operations import Thread as EngineThread
from seriatim_models.explorer.python.execution import PythonExecution
from seriatim_models.explorer.python.places import where
from seriatim_models.explorer.python.primitives import Primitive, do, here
from seriatim_models.explorer.python.threads import START

OVERTAKEN = 4
"""How many timers that were set later, and for longer, may end before a timer."""

LATEST = 40
"""Turns after which a timer ends, if the loop had something else to do in each of them."""

SPINNING = 1000
"""Turns without a step after which there is one, so that other threads have their turn beside a loop of `sleep(0)`."""

LIVELOCK = 20
"""So many such steps in a row, in a program without other threads and timers, are a loop without an end."""

SOON = 1e-5
"""Seconds that two delays may differ and be the same: the clock goes on a little whenever it is read."""


class TimerEnd:
    """What a step of the loop shows: the timer that has ended in it."""

    def __init__(self, timer: Timer) -> None:
        self.timer = timer

    def __repr__(self) -> str:
        return f"timer of {self.timer.label}"


class Timer:
    """A pending call of `call_later` or `call_at`."""

    __slots__ = ("delay", "handle", "label", "number", "overtaken", "turn", "when")

    def __init__(self, handle: Any, number: int, turn: int, delay: float, label: str) -> None:
        self.handle = handle
        self.number = number
        self.turn = turn
        """The turn of the loop in which it was set."""
        self.delay = delay
        self.when: float = handle._when
        self.label = label
        self.overtaken = 0

    def said(self) -> str:
        """The timer, with the seconds for which it was set."""
        return f"{self.label} ({self.delay:.4g} s)"


class BetweenTurns(LocalOperation):
    """Choose the timer that has ended, if any, where the loop has something else to do."""

    __slots__ = ("late", "timers")
    code = 53
    at_line = ""

    def __init__(self, timers: list[Timer], late: bool) -> None:
        self.timers = timers
        self.late = late
        """Whether one must end now."""

    def alternatives(self) -> int:
        return len(self.timers) + (not self.late)

    def run(self, thread: EngineThread, alternative: int) -> TimerEnd | None:
        chosen = alternative if self.late else alternative - 1
        return TimerEnd(self.timers[chosen]) if chosen >= 0 else None

    def describe(self) -> str:
        return "the loop goes on; timers: " + (", ".join(t.label for t in self.timers) or "none")


class WhileIdle(Operation):
    """Wait for a timer or for another thread; `obj` counts the calls of other threads since the last wait."""

    __slots__ = ("loop", "timers")
    code = 54
    free = False
    at_line = ""

    def __init__(self, wakes: Shared, timers: list[Timer], loop: Any) -> None:
        self.obj = wakes
        self.timers = timers
        self.loop = loop

    def ready(self, thread: EngineThread) -> bool:
        return bool(self.timers) or self.obj.value > 0

    def touch_at(self, value: Any) -> Footprint | None:
        return self.obj.writes if self.timers or value > 0 else None

    def alternatives(self) -> int:
        return len(self.timers) + bool(self.obj.value)

    def run(self, thread: EngineThread, alternative: int) -> TimerEnd | None:
        self.obj.value = 0
        timers = self.timers
        return TimerEnd(timers[alternative]) if alternative < len(timers) else None

    def describe(self) -> str:
        return "the loop waits; timers: " + (", ".join(t.label for t in self.timers) or "none")

    def waits_for(self) -> str:
        """What each task of the loop waits for."""
        waiting = "; ".join(waits(self.loop))
        return f"runs an event loop that waits for ever: {waiting or 'it has no task'}"


class WakeLoop(Restore):
    """Another thread wakes the loop, as `call_soon_threadsafe` does."""

    __slots__ = ()
    code = 55

    def __init__(self, wakes: Shared) -> None:
        self.obj = wakes
        self.amount = 1

    def describe(self) -> str:
        return "wake the event loop"


class Wakes(Primitive):
    """How often other threads have woken a loop."""

    __slots__ = ()
    __s_native__ = True

    def __init__(self, ex: PythonExecution) -> None:
        Shared.__init__(self, ex, 0, "loop", "")


class Timers:
    """The timers of one loop: what a selector is for a loop with sockets."""

    __s_native__ = True

    def __init__(self, loop: Any) -> None:
        ex, _ = here()
        self.loop = loop
        self.wakes = Wakes(ex)
        self.pending: list[Timer] = []
        self.turn = 0
        self.number = 0
        self.quiet = 0
        """Turns since the last step."""
        self.spun = 0
        """Steps in a row that only show that the loop goes on."""
        self.at_rest: Any = None
        """A handle that is run once the loop has nothing to do and no timer, instead of waiting for ever."""

    def add(self, handle: Any) -> None:
        """Keep a timer that was set just now."""
        ex, thread = here()
        self.number += 1
        label = f"{_current_task(ex, self.loop)}{line_of_caller()}"
        delay = handle._when - (START + ex.clocks[thread])
        self.pending.append(Timer(handle, self.number, self.turn, delay, label))

    def cancelled(self, handle: Any) -> None:
        """Forget a timer that was cancelled."""
        self.pending = [timer for timer in self.pending if timer.handle is not handle]

    def wake(self) -> None:
        """Another thread has put something into the ready queue."""
        ex, thread = here()
        do(ex, thread, WakeLoop(self.wakes))

    def due(self) -> list[Any]:
        """Take out the timers without a delay: they are ready, and in their order."""
        due = [timer for timer in self.pending if timer.delay <= SOON]
        if due:
            self.pending = [timer for timer in self.pending if timer.delay > SOON]
        return [timer.handle for timer in sorted(due, key=lambda timer: timer.when)]

    def ends(self, idle: bool) -> Any:
        """The handle of a timer that ends now, None if none does; a step if there is a choice, or the loop waits."""
        ex, thread = here()
        timers = self._candidates(ex, idle)
        if idle and not timers and self.at_rest is not None and len(ex.heads) == 1:
            handle, self.at_rest = self.at_rest, None
            return handle
        self.quiet += 1
        op: Operation
        if idle:
            op = WhileIdle(self.wakes, timers, self.loop)
        elif timers or self.quiet > SPINNING:
            late = any(self.turn - timer.turn > LATEST for timer in timers)
            ex.search.timers_bounded |= late
            op = BetweenTurns(timers, late)
        else:
            return None
        self.quiet = 0
        self.spun = 0 if timers or idle else self.spun + 1
        if self.spun > LIVELOCK and len(ex.heads) == 1:
            raise Misuse(
                f"a livelock is suspected: in {SPINNING * LIVELOCK} turns of the event loop no task has waited for "
                f"anything: {'; '.join(waits(self.loop))}. Bound the loop, or wait for an event in it"
            )
        ended = do(ex, thread, op)
        if ended is None:
            return None
        timer: Timer = ended.timer
        self.pending.remove(timer)
        self.turn += idle  # it begins a turn, in which others may end
        for other in self.pending:
            if other.number < timer.number and other.when < timer.when:
                other.overtaken += 1
            if _comes_first(other, timer):
                ex.search.overtook = f"{timer.said()} ended before {other.said()}"
        ex.search.timers_ended = True
        ex.pass_time(thread, max(0.0, timer.when - START - ex.clocks[thread]))
        return timer.handle

    def _candidates(self, ex: PythonExecution, idle: bool) -> list[Timer]:
        """The timers that may end now, the earliest deadline first."""
        timers = [timer for timer in self.pending if idle or timer.turn < self.turn]
        if not timers:
            return timers
        if ex.search.timers == "deadline":
            timers = [
                timer
                for timer in timers
                if not any(_comes_first(other, timer) for other in self.pending)
            ]
        else:
            stale = [timer for timer in self.pending if timer.overtaken >= OVERTAKEN]
            free = [
                timer
                for timer in timers
                if not any(o.number < timer.number and o.when < timer.when for o in stale)
            ]
            ex.search.timers_bounded |= len(free) < len(timers)
            timers = free
        return sorted(timers, key=lambda timer: (timer.when, timer.number))


def _comes_first(one: Timer, other: Timer) -> bool:
    """Whether a timer was set before another one and for no longer."""
    return one.number < other.number and one.delay <= other.delay + SOON


def _current_task(ex: PythonExecution, loop: Any) -> str:
    task = ex.modules["asyncio.tasks"]._current_tasks.get(loop)
    return "" if task is None else f"{task.get_name()} "


def line_of_caller() -> str:
    """File and line of the program that calls."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and not program_text(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return "asyncio"
    return f"{PurePath(frame.f_code.co_filename).name}:{frame.f_lineno}"


# -- what is said of tasks -------------------------------------------------------------------------


def tasks_of(ex: PythonExecution) -> list[Any]:
    """All tasks of an execution, in the order in which they were made."""
    module = ex.modules.get("asyncio.tasks")
    if module is None:
        return []
    names = ("_all_tasks", "_scheduled_tasks", "_eager_tasks")
    found = [task for name in names for task in getattr(module, name, ())]
    return sorted(
        found, key=lambda task: ex.records[id(task)].number if id(task) in ex.records else 0
    )


def waits(loop: Any) -> Iterator[str]:
    """For each task of the loop that has not ended: where it stands, and the source of that line."""
    ex = loop._timers.wakes.ex
    made = {id(coroutine): where(site) for coroutine, site in ex.coroutines}
    for task in tasks_of(ex):
        if task._loop is loop and not task.done():
            coroutine = task._coro
            yield f"{name_of(task)} at {standing(coroutine, made.get(id(coroutine), ''))}"


def name_of(task: Any) -> str:
    """Name and function of a task."""
    return f"{task.get_name()} ({getattr(task._coro, '__qualname__', '?')})"


def standing(coroutine: Any, made: str = "") -> str:
    """The innermost line of the program at which a coroutine waits."""
    found = f"its beginning, made at {made}" if made else "its beginning"
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "ag_frame", None)
        if frame is not None and program_text(frame.f_code.co_filename):
            path, line = frame.f_code.co_filename, frame.f_lineno
            source = linecache.getline(path, line).strip()
            found = f"{PurePath(path).name}:{line}: `{source}`"
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "ag_await", None)
    return found
