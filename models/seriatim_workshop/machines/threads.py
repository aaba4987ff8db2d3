"""Generated programs on real threads: as many interleavings as the interpreter happens to make.

The same plans, the same record, the same judges as under the explorer.
A run ends when every thread is done or waits for a permit that nobody will give: then nothing can move any more.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import cast

import msgspec

from seriatim.host import Condition, Lock, Semaphore
from seriatim_models.explorer import World
from seriatim_models.history.event import Event, event
from seriatim_models.programs.mutant_modules import load
from seriatim_models.properties import Finding
from seriatim_models.watched import WatchedThreads
from seriatim_workshop.machines.judging import violations
from seriatim_workshop.machines.plans import ProgramPlan

SWITCH = 1e-6
"""Seconds after which the interpreter lets another thread run."""
TOO_LONG = 20.0
"""Seconds after which a run that has not come to rest is a failure."""


class _Over(BaseException):
    """Nothing can move any more, so waiting ends. Not an `Exception`: no code under test may catch it."""


class _Rest:
    """Knows how many threads are running; permits are handed over, so that it never takes a woken one for a waiter."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.running = 0
        self.over = False

    def ended(self) -> None:
        with self.changed:
            self.running -= 1
            self.changed.notify_all()


class _Permits:
    """A semaphore whose waiters do not count as running."""

    def __init__(self, rest: _Rest, permits: int) -> None:
        self._rest = rest
        self._permits = permits
        self._waiting = 0
        self._handed = 0

    @property
    def value(self) -> int:
        """How many permits there are."""
        return self._permits

    def acquire(self) -> None:
        rest = self._rest
        with rest.changed:
            if self._permits:
                self._permits -= 1
                return
            self._waiting += 1
            rest.running -= 1
            rest.changed.notify_all()
            while not self._handed:
                if rest.over:
                    raise _Over
                rest.changed.wait()
            self._handed -= 1

    def try_acquire(self, timeout: float | None = None) -> bool:
        with self._rest.changed:
            if not self._permits:
                return False
            self._permits -= 1
            return True

    def release(self, n: int = 1) -> None:
        with self._rest.changed:
            for _ in range(n):
                if self._waiting:
                    self._waiting -= 1
                    self._handed += 1
                    self._rest.running += 1
                else:
                    self._permits += 1
            self._rest.changed.notify_all()


class _Condition:
    """A condition variable whose waiters do not count as running; a wait with a time limit runs out at once."""

    def __init__(self, rest: _Rest, lock: Lock) -> None:
        self._rest = rest
        self._lock = lock
        self._waiting: list[_Permits] = []  # guarded by the lock, as the callers' state is

    def wait(self, timeout: float | None = None) -> bool:
        if timeout is not None:
            self._lock.release()
            self._lock.acquire()
            return False
        mine = _Permits(self._rest, 0)
        self._waiting.append(mine)
        self._lock.release()
        try:
            mine.acquire()
        finally:
            self._lock.acquire()
        return True

    def notify(self, n: int = 1) -> None:
        for _ in range(min(n, len(self._waiting))):
            self._waiting.pop(0).release()

    def notify_all(self) -> None:
        self.notify(len(self._waiting))


class ThreadStage(WatchedThreads):
    """A plan on real threads, with a clock that is set by hand."""

    def __init__(self) -> None:
        super().__init__(sink=self._sink)
        self.host = self
        self.unrecorded = ()
        self.world = cast(World, self)  # it has what a scene asks a world for
        self.events: list[Event] = []
        self.failures: list[str] = []
        self._rest = _Rest()
        self._checks: list[Callable[[], object]] = []
        self._threads: list[threading.Thread] = []
        self._clock = threading.Lock()
        self._now = 0

    def semaphore(self, permits: int, name: str = "") -> Semaphore:
        return _Permits(self._rest, permits)

    def condition(self, lock: Lock, name: str = "") -> Condition:
        return _Condition(self._rest, lock)

    def now(self) -> int:
        with self._clock:
            return self._now

    def pass_time(self, by: int) -> None:
        """Advance the clock, and record it in the same moment."""
        with self._clock:
            self._now += by
            self._sink(0, threading.current_thread().name, "clock", {"now": self._now})

    def record(self, ev: str, /, **args: object) -> None:
        self._sink(0, threading.current_thread().name, ev, args)

    def _sink(self, t: int, thread: str, ev: str, args: dict[str, object]) -> None:
        # Appending is atomic. Records of changes are made inside the cell's mutex, so the order is one that happened.
        self.events.append(event(0, 0, thread, ev, {**args, "lvl": "model"}))

    def spawn(self, run: Callable[[], object], name: str, daemon: bool = False) -> None:
        """Start a thread when all is set up."""

        def body() -> None:
            try:
                run()
            except _Over:
                return
            except BaseException as error:
                self.failures.append(f"{name} raised {type(error).__name__}: {error}")
            self._rest.ended()

        self._rest.running += 1
        self._threads.append(threading.Thread(target=body, name=name, daemon=True))

    def at_end(self, check: Callable[[], object]) -> None:
        """Call `check` when nothing moves any more."""
        self._checks.append(check)

    def run(self) -> None:
        """Start the threads, and wait until nothing moves."""
        for thread in self._threads:
            thread.start()
        rest = self._rest
        with rest.changed:
            if not rest.changed.wait_for(lambda: not rest.running, TOO_LONG):
                self.failures.append(f"after {TOO_LONG} s the threads had not come to rest")
            rest.over = True
            rest.changed.notify_all()
        for thread in self._threads:
            thread.join(TOO_LONG)
        for check in self._checks:
            check()

    def history(self) -> list[Event]:
        """What was recorded, numbered."""
        return [msgspec.structs.replace(e, i=i, t=i) for i, e in enumerate(self.events)]


@contextmanager
def switching(interval: float = SWITCH) -> Iterator[None]:
    """Threads change as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(interval)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def run(
    plan: ProgramPlan, lib: ModuleType | None = None
) -> tuple[list[Event], list[Finding], list[str]]:
    """Run a plan once; return its history, the findings that it violates, and what threads raised."""
    stage = ThreadStage()
    plan.start(load(plan.system) if lib is None else lib, stage)
    stage.run()
    events = stage.history()
    return events, violations(events), stage.failures


def stress(plan: ProgramPlan, rounds: int, lib: ModuleType | None = None) -> str | None:
    """Run a plan many times; return what was wrong in the first run that was, or None."""
    with switching():
        for n in range(1, rounds + 1):
            _, findings, failures = run(plan, lib)
            wrong = [*failures, *(f"{f.property}: {f.explanation}" for f in findings)]
            if wrong:
                return f"round {n}: " + "; ".join(wrong) + f"\nprogram: {plan.text()}"
    return None
