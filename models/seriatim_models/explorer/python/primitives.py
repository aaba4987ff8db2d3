"""The primitives under the control of a schedule: locks, condition variables, semaphores, the queue of C, and the end
of a thread.

They behave as those of CPython (Modules/_threadmodule.c, Modules/_queuemodule.c, Lib/threading.py): a lock may be
released by a thread that did not take it, a condition wakes its waiters first come, first served. Each operation is one
step; what only the calling thread can see (taking an RLock again, a notify under the lock) is none. A semaphore of the
library does all under a lock of its own, so that it cannot be seen half done, and whoever was woken looks again: one
step too, which can happen while there is a permit, whoever waited first.

A time limit may run out whenever what is waited for is not there, at most `timeouts` times in a thread; after that the
wait is one without a limit, and an execution that ends in it is no deadlock (end ``waiting``).
"""

from __future__ import annotations

import sys
import types
from typing import Any, Self

import greenlet  # type: ignore[import-untyped]  # greenlet ships no annotations

from seriatim_models.explorer.errors import Misuse
from seriatim_models.explorer.model.operations import (
    Acquire,
    Footprint,
    LocalOperation,
    Notify,
    Operation,
    Permit,
    Reacquire,
    Restore,
    Shared,
    Thread,
    TryAcquire,
    Wait,
)
from seriatim_models.explorer.python.accesses import now
from seriatim_models.explorer.python.execution import PythonExecution
from seriatim_models.explorer.python.waiting_loops import (
    FREES,
    KINDS,
    LOOKS,
    SEES_A_LOCK,
    SLEEPS,
    TAKES,
)

TIMEOUT_MAX = 9223372036.0

__s_observed__ = True  # a call of what is defined here needs no look: it announces what it does


def here() -> tuple[PythonExecution, Thread]:
    """The execution and thread that call. Raises what ends a thread when the execution is being closed."""
    ex = now.execution
    if ex is None:
        raise Misuse("a primitive of an explored program was used after its end")
    thread = ex.current
    if thread is None:
        if ex.closing:
            raise greenlet.GreenletExit
        raise Misuse("a primitive of an explored program was used outside its threads")
    return ex, thread


def do(ex: PythonExecution, thread: Thread, op: Operation) -> Any:
    """Announce an operation and wait until it has been done."""
    thread.op = op
    return ex.switch()


# -- operations ------------------------------------------------------------------------------------


class ReleaseByAnyone(Operation):
    """Free a lock, whoever took it."""

    __slots__ = ()
    code = 41

    def run(self, thread: Thread, alternative: int) -> None:
        if self.obj.value is None:
            raise RuntimeError("release unlocked lock")
        self.obj.value = None

    def describe(self) -> str:
        return f"{self.obj.name}.release()"


class LimitedTry(TryAcquire):
    """Take a lock within a time limit that may run out: if the lock is not free now, it has."""

    __slots__ = ("seconds",)
    code = 42

    def __init__(self, obj: Shared, seconds: float) -> None:
        self.obj = obj
        self.seconds = seconds

    def run(self, thread: Thread, alternative: int) -> bool:
        if self.obj.value is None:
            self.obj.value = thread
            return True
        thread.timeouts -= 1
        thread.ex.pass_time(thread, self.seconds)  # type: ignore[attr-defined]
        return False

    def describe(self) -> str:
        return f"{self.obj.name}.acquire(timeout={self.seconds:g})"


class LimitedAcquire(Acquire):
    """Take a lock within a time limit that does not run out any more in this search."""

    __slots__ = ()
    code = 43
    limited = True


class IsLocked(Operation):
    """Whether a lock is taken."""

    __slots__ = ()
    code = 44

    def touch(self) -> Footprint:
        return self.obj.reads  # type: ignore[no-any-return]

    def run(self, thread: Thread, alternative: int) -> bool:
        return self.obj.value is not None

    def describe(self) -> str:
        return f"{self.obj.name}.locked()"


class ConditionWait(Wait):
    """Let the lock go and sleep."""

    __slots__ = ("seconds",)
    code = 45
    seconds: float

    def run(self, thread: Thread, alternative: int) -> Reacquire:
        if self.obj.value is None:
            raise RuntimeError("cannot wait on un-acquired lock")
        self.obj.value = None
        again = WakeUp(self.obj, self.condition, self.timed)
        again.seconds = self.seconds
        self.condition.value.append((thread, again))
        thread.ex.sleeps(thread, again, self)
        return again


class WakeUp(Reacquire):
    """Woken, take the lock again."""

    __slots__ = ("seconds",)
    code = 46
    seconds: float

    def run(self, thread: Thread, alternative: int) -> bool:
        notified = super().run(thread, alternative)
        if not notified:
            thread.ex.pass_time(thread, self.seconds)  # type: ignore[attr-defined]
        return notified


class NotifyInOrder(Notify):
    """Wake the waiters that have waited longest."""

    __slots__ = ()
    code = 47

    def alternatives(self) -> int:
        return 1

    def run(self, thread: Thread, alternative: int) -> None:
        wake_first(self.obj, thread, self.n, thread.ex.steps - 1)


class LookWhetherWoken(Operation):
    """The end of a wait with a time limit of 0: look whether it was notified meanwhile."""

    __slots__ = ("again",)
    code = 48

    def __init__(self, condition: Shared, again: Reacquire) -> None:
        self.obj = condition
        self.again = again

    def run(self, thread: Thread, alternative: int) -> bool:
        if self.again.woken is not None:
            return True
        self.obj.value[:] = [w for w in self.obj.value if w[1] is not self.again]
        return False

    def describe(self) -> str:
        return f"{self.obj.name}.wait(0) looks"


class Pause(LocalOperation):
    """Sleep: time passes for this thread, and others may run."""

    __slots__ = ("seconds",)
    code = 49

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def run(self, thread: Thread, alternative: int) -> None:
        if self.seconds > 0:
            thread.ex.pass_time(thread, self.seconds)  # type: ignore[attr-defined]

    def describe(self) -> str:
        return f"sleep({self.seconds:g})"


class LimitedPermit(Permit):
    """Take a permit within a time limit that may run out: if there is none now, it has."""

    __slots__ = ("seconds",)
    code = 56

    def __init__(self, obj: Shared, seconds: float) -> None:
        super().__init__(obj, limited=True, blocking=False)
        self.seconds = seconds

    def run(self, thread: Thread, alternative: int) -> bool:
        taken = super().run(thread, alternative)
        if not taken:
            thread.ex.pass_time(thread, self.seconds)  # type: ignore[attr-defined]
        return taken


class BoundedRestore(Restore):
    """Add permits, at most up to a bound: whether there is room depends on who was first."""

    __slots__ = ("bound",)
    code = 57
    adding = False

    def __init__(self, obj: Shared, n: int, bound: int) -> None:
        super().__init__(obj, n)
        self.bound = bound

    def touch(self) -> Footprint:
        return self.obj.writes  # type: ignore[no-any-return]

    def run(self, thread: Thread, alternative: int) -> None:
        if self.obj.value + self.amount > self.bound:
            raise ValueError("Semaphore released too many times")
        super().run(thread, alternative)


class PutItem(Operation):
    """Append to a queue."""

    __slots__ = ("item",)
    code = 58

    def __init__(self, obj: Shared, item: Any) -> None:
        self.obj = obj
        self.item = item

    def run(self, thread: Thread, alternative: int) -> None:
        self.obj.value = (*self.obj.value, self.item)

    def describe(self) -> str:
        return f"{self.obj.name}.put()"


class TakeItem(Permit):
    """Take the first item of a queue, in a tuple; an empty one if there was none and nobody waits."""

    __slots__ = ("seconds",)
    code = 59
    repeatable = False

    def __init__(self, obj: Shared, blocking: bool, limited: bool, seconds: float) -> None:
        super().__init__(obj, limited, blocking)
        self.seconds = seconds

    def ready(self, thread: Thread) -> bool:
        return not self.blocking or bool(self.obj.value)

    def touch(self) -> Footprint:
        return self.obj.writes if self.obj.value else self.obj.reads  # type: ignore[no-any-return]

    def touch_at(self, value: Any) -> Footprint | None:
        if value:
            return self.obj.writes  # type: ignore[no-any-return]
        return None if self.blocking else self.obj.reads

    def run(self, thread: Thread, alternative: int) -> tuple[Any, ...]:  # type: ignore[override]  # what was taken
        first: tuple[Any, ...] = self.obj.value[:1]
        self.obj.value = self.obj.value[1:]
        if not first and self.limited:
            thread.timeouts -= 1
            thread.ex.pass_time(thread, self.seconds)  # type: ignore[attr-defined]
        return first

    def describe(self) -> str:
        limit = f"timeout={self.seconds:g}" if self.limited else ""
        return f"{self.obj.name}.get({limit if self.blocking or self.limited else 'block=False'})"

    def waits_for(self) -> str:
        """For what it waits."""
        return f"waits for an item of {self.obj.name}"


class Look(Operation):
    """What a semaphore or queue has at this moment."""

    __slots__ = ("what",)
    code = 60

    def __init__(self, obj: Shared, what: str) -> None:
        self.obj = obj
        self.what = what

    def touch(self) -> Footprint:
        return self.obj.reads  # type: ignore[no-any-return]

    def run(self, thread: Thread, alternative: int) -> Any:
        return self.obj.value

    def describe(self) -> str:
        return f"{self.obj.name}.{self.what}"


class Life(Shared):
    """Whether a thread has ended, which others may ask."""

    __slots__ = ()

    def __init__(self, ex: PythonExecution) -> None:
        Shared.__init__(self, ex, False, "thread", "")


class EndOfThread(Operation):
    """The end of a thread."""

    __slots__ = ()
    code = 50

    def run(self, thread: Thread, alternative: int) -> None:
        self.obj.value = True

    def describe(self) -> str:
        return "end of the thread"


class IsAlive(Operation):
    """Whether a thread has not ended yet; the end of a join whose time limit may run out."""

    __slots__ = ("seconds",)
    code = 51

    def __init__(self, life: Life, seconds: float | None = None) -> None:
        self.obj = life
        self.seconds = seconds

    def touch(self) -> Footprint:
        return self.obj.reads  # type: ignore[no-any-return]

    def run(self, thread: Thread, alternative: int) -> bool:
        alive = not self.obj.value
        if alive and self.seconds:
            thread.timeouts -= 1
            thread.ex.pass_time(thread, self.seconds)  # type: ignore[attr-defined]
        return alive

    def describe(self) -> str:
        return "is_alive()" if self.seconds is None else f"join(timeout={self.seconds:g})"


KINDS.update({
    Acquire: TAKES, ReleaseByAnyone: FREES, IsLocked: SEES_A_LOCK, TryAcquire: SEES_A_LOCK, LimitedTry: SEES_A_LOCK,
    Look: LOOKS, IsAlive: LOOKS, Permit: LOOKS, TakeItem: LOOKS, Pause: SLEEPS,
})  # fmt: skip


def wake_first(condition: Shared, thread: Thread, n: int | None, step: int) -> None:
    """Wake the `n` waiters that came first; None: all of them."""
    condition.ex.changes(thread)  # type: ignore[attr-defined]
    waiters = condition.value
    woken = waiters[:n]
    for _, again in woken:
        again.woken = (step, True)
    condition.ex.notified(condition, thread, [waiter for waiter, _ in woken], len(waiters))
    del waiters[: len(woken)]


# -- what programs use -----------------------------------------------------------------------------


class Primitive(Shared):
    """What all of them have in common: in sets they stand in the same order in every execution."""

    __slots__ = ("__weakref__", "called")

    def call_it(self, name: str) -> None:
        """Take the name of the first attribute or variable in which it is stored."""
        if not getattr(self, "called", False):
            self.called = True
            self.name = name

    def __hash__(self) -> int:
        return self.index

    def __eq__(self, other: object) -> bool:
        return self is other


class Lock(Primitive):
    """`threading.Lock`."""

    __slots__ = ()
    __s_native__ = __s_of_c__ = True

    def __init__(self) -> None:
        ex, _ = here()
        Shared.__init__(self, ex, None, "lock", "")

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock; whether it was taken."""
        ex, thread = here()
        if not blocking:
            if timeout != -1:
                raise ValueError("can't specify a timeout for a non-blocking call")
            return bool(do(ex, thread, TryAcquire(self)))
        if timeout < 0:
            if timeout != -1:
                raise ValueError("timeout value must be a non-negative number")
            thread.op = Acquire(self)
            ex.switch()
            return True
        if timeout > TIMEOUT_MAX:
            raise OverflowError("timeout value is too large")
        if timeout == 0:
            return bool(do(ex, thread, TryAcquire(self)))
        if thread.timeouts > 0:
            return bool(do(ex, thread, LimitedTry(self, timeout)))
        do(ex, thread, LimitedAcquire(self))
        return True

    def release(self) -> None:
        """Free the lock; RuntimeError if it is not taken."""
        ex = now.execution
        if ex is None or (thread := ex.current) is None:
            return  # the execution is being closed
        thread.op = ReleaseByAnyone(self)
        ex.switch()

    def locked(self) -> bool:
        """Whether it is taken."""
        ex, thread = here()
        return bool(do(ex, thread, IsLocked(self)))

    def __enter__(self) -> bool:
        ex, thread = here()
        thread.op = Acquire(self)
        ex.switch()
        return True

    def __exit__(self, *error: object) -> None:
        self.release()

    acquire_lock, release_lock, locked_lock = acquire, release, locked

    def _at_fork_reinit(self) -> None:
        """Nobody forks."""

    def __repr__(self) -> str:
        return f"<{'locked' if self.value is not None else 'unlocked'} {self.name}>"


class RLock(Primitive):
    """`threading.RLock`: only its first acquire and its last release are steps."""

    __slots__ = ("count",)
    __s_native__ = True

    def __init__(self) -> None:
        ex, _ = here()
        Shared.__init__(self, ex, None, "rlock", "")
        self.count = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock, or take it once more; whether it was taken."""
        _, thread = here()
        if self.value is thread:
            self.count += 1
            return True
        taken = Lock.acquire(self, blocking, timeout)  # type: ignore[arg-type]
        if taken:
            self.count = 1
        return taken

    def release(self) -> None:
        """Let the lock go once; RuntimeError if the thread does not hold it."""
        ex = now.execution
        if ex is None or (thread := ex.current) is None:
            return
        if self.value is not thread:
            raise RuntimeError("cannot release un-acquired lock")
        self.count -= 1
        if self.count == 0:
            thread.op = ReleaseByAnyone(self)
            ex.switch()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()

    def locked(self) -> bool:
        """Whether it is taken."""
        ex, thread = here()
        return bool(do(ex, thread, IsLocked(self)))

    def _is_owned(self) -> bool:
        _, thread = here()
        return self.value is thread

    def _release_save(self) -> int:
        """Let the lock go altogether; returns how often it was taken, as `threading.Condition` asks for it."""
        _, thread = here()
        if self.value is not thread:
            raise RuntimeError("cannot release un-acquired lock")
        count, self.count = self.count, 1
        self.release()
        return count

    def _acquire_restore(self, count: int) -> None:
        """Take the lock as often as it was taken before `_release_save`."""
        self.acquire()
        self.count = count

    def _recursion_count(self) -> int:
        _, thread = here()
        return self.count if self.value is thread else 0


class Condition(Primitive):
    """`threading.Condition` over one of our locks; its value is the list of waiters in order of arrival."""

    __slots__ = ("_limited", "_lock", "acquire", "release", "waits")
    __s_native__ = True

    over_others: Any = None
    """The class of the interpreter's `threading.py`, rewritten: for locks that a program has made itself."""

    def __new__(cls, lock: Any = None) -> Any:
        """Make it; over a lock that is none of `threading`, as `threading.py` does it."""
        if lock is None or isinstance(lock, Lock | RLock):
            return super().__new__(cls)
        if cls is not Condition:
            raise Misuse(
                f"a subclass of threading.Condition over a {type(lock).__name__}: only Lock and RLock of "
                "threading are known there. Use threading.Condition itself, or one of these locks"
            )
        return Condition.over_others(lock)

    def __init__(self, lock: Lock | RLock | None = None) -> None:
        ex, _ = here()
        if lock is None:
            lock = RLock()
        Shared.__init__(self, ex, [], "condition", "")
        self._lock = lock
        self._limited = 0
        """How many have begun to wait with a time limit and do not have the lock again."""
        self.acquire = lock.acquire
        self.release = lock.release
        self.waits: Footprint = ex.footprint(((lock.index, 1), (self.index, 1)))

    def call_it(self, name: str) -> None:
        """Take a name, and give the lock one, if it has none."""
        super().call_it(name)
        self._lock.call_it(f"the lock of {name}")

    def __enter__(self) -> bool:
        return self._lock.__enter__()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    if sys.version_info >= (3, 14):

        def locked(self) -> bool:
            """Whether its lock is taken."""
            return self._lock.locked()

    def _held(self, thread: Thread, what: str) -> None:
        holder = self._lock.value
        if holder is None or (holder is not thread and isinstance(self._lock, RLock)):
            raise RuntimeError(f"cannot {what} on un-acquired lock")

    def wait(self, timeout: float | None = None) -> bool:
        """Free the lock, sleep until notified, take the lock again; False if the time ran out first."""
        ex, thread = here()
        self._held(thread, "wait")
        lock = self._lock
        count = lock.count if isinstance(lock, RLock) else 0
        immediate = timeout is not None and timeout <= 0
        self._limited += timeout is not None
        op = ConditionWait(lock, self, timeout is not None and not immediate)
        op.seconds = timeout or 0.0
        again = do(ex, thread, op)
        if immediate:
            again.limited = True
            result = bool(do(ex, thread, LookWhetherWoken(self, again)))
            do(ex, thread, Acquire(lock))
        else:
            result = bool(do(ex, thread, again))
        self._limited -= timeout is not None
        if isinstance(lock, RLock):
            lock.count = count
        return result

    def wait_for(self, predicate: Any, timeout: float | None = None) -> Any:
        """Wait until the predicate holds, or the time is over; its last value."""
        ex, thread = here()
        result = predicate()
        end = None if timeout is None else ex.clocks[thread] + timeout
        while not result:
            left = None
            if end is not None:
                left = end - ex.clocks[thread]
                if left <= 0:
                    break
            self.wait(left)
            result = predicate()
        return result

    def notify(self, n: int | None = 1) -> None:
        """Wake the `n` threads that have waited longest."""
        ex, thread = here()
        self._held(thread, "notify")
        if self._lock.value is not thread or self._limited:
            do(ex, thread, NotifyInOrder(self, self._lock, n))
        else:
            # Nobody can see when this happens while the lock is held, unless a time limit runs out: no step of its own.
            # Whether one may is asked of what only the lock's holders change, not of who still waits.
            wake_first(self, thread, n, ex.steps - 1)

    def notify_all(self) -> None:
        """Wake all threads that wait."""
        self.notify(None)

    notifyAll = notify_all  # noqa: N815 - the name of the library

    def _is_owned(self) -> bool:
        _, thread = here()
        return self._lock.value is thread

    def __repr__(self) -> str:
        return f"<{self.name}({self._lock!r}, {len(self.value)})>"


class Semaphore(Primitive):
    """`threading.Semaphore`; its value is how many permits there are."""

    __slots__ = ()
    __s_native__ = True

    def __init__(self, value: int = 1) -> None:
        if value < 0:
            raise ValueError("semaphore initial value must be >= 0")
        ex, _ = here()
        Shared.__init__(self, ex, value, "semaphore", "")

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Take a permit; whether there was one before the time was over."""
        if not blocking and timeout is not None:
            raise ValueError("can't specify timeout for non-blocking acquire")
        ex, thread = here()
        if not blocking or (timeout is not None and timeout <= 0):
            return bool(do(ex, thread, Permit(self, limited=False, blocking=False)))
        if timeout is not None and thread.timeouts > 0:
            return bool(do(ex, thread, LimitedPermit(self, timeout)))
        return bool(do(ex, thread, Permit(self, limited=timeout is not None, blocking=True)))

    def release(self, n: int = 1) -> None:
        """Add permits."""
        if n < 1:
            raise ValueError("n must be one or more")
        self._restore(Restore(self, n))

    def _restore(self, op: Restore) -> None:
        ex = now.execution
        if (
            ex is not None and (thread := ex.current) is not None
        ):  # else the execution is being closed
            do(ex, thread, op)

    __enter__ = (
        acquire  # this one, as in the library: what a subclass has in its place is not called
    )

    def __exit__(self, *error: object) -> None:
        self.release()

    @property
    def _value(self) -> int:
        ex, thread = here()
        return int(do(ex, thread, Look(self, "_value")))

    @property
    def _cond(self) -> Any:
        raise Misuse(
            f"{self.name}._cond: the lock inside a threading.Semaphore is not there under the explorer, where each "
            "of its operations is one step. Use a threading.Condition and a number"
        )

    def __repr__(self) -> str:
        return f"<{self.name}: value={self.value}>"


class BoundedSemaphore(Semaphore):
    """`threading.BoundedSemaphore`."""

    __slots__ = ("_initial_value",)
    __s_native__ = True

    def __init__(self, value: int = 1) -> None:
        super().__init__(value)
        self._initial_value = value

    def release(self, n: int = 1) -> None:
        """Add permits; ValueError if there were more than at first."""
        if n < 1:
            raise ValueError("n must be one or more")
        self._restore(BoundedRestore(self, n, self._initial_value))

    def __repr__(self) -> str:
        return f"<{self.name}: value={self.value}/{self._initial_value}>"


Empty = type("Empty", (Exception,), {"__module__": "_queue"})
"""`queue.Empty`, which `_queue` has."""


class SimpleQueue(Primitive):
    """`queue.SimpleQueue` as `_queue` has it in C, where each call is atomic; its value is the tuple of its items."""

    __slots__ = ()
    __s_native__ = __s_of_c__ = True

    def __init__(self) -> None:
        ex, _ = here()
        Shared.__init__(self, ex, (), "queue", "")

    __class_getitem__: Any = classmethod(types.GenericAlias)

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Append an item; there is always room."""
        ex = now.execution
        if (
            ex is not None and (thread := ex.current) is not None
        ):  # else the execution is being closed
            do(ex, thread, PutItem(self, item))

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Take the first item; `Empty` if there is none, or none within the time."""
        if block and timeout is not None and timeout < 0:
            raise ValueError("'timeout' must be a non-negative number")
        ex, thread = here()
        limited = block and timeout is not None and timeout > 0
        waits = block and timeout != 0 and not (limited and thread.timeouts > 0)
        found = do(ex, thread, TakeItem(self, waits, limited, timeout or 0.0))
        if not found:
            raise Empty
        return found[0]

    def put_nowait(self, item: Any) -> None:
        """Append an item. As in C, what a subclass has in the place of `put` is not called."""
        SimpleQueue.put(self, item)

    def get_nowait(self) -> Any:
        """Take the first item; `Empty` if there is none."""
        return SimpleQueue.get(self, False)

    def empty(self) -> bool:
        """Whether it has no item."""
        return not SimpleQueue.qsize(self)

    def qsize(self) -> int:
        """How many items it has."""
        ex, thread = here()
        return len(do(ex, thread, Look(self, "qsize()")))

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self.value)} items>"


class ThreadLocal:
    """`threading.local`: attributes for each thread."""

    __s_native__ = "inherited"
    __s_of_each_thread__ = True

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Make it; a subclass's `__init__` runs in every thread that uses it."""
        if (args or kwargs) and cls.__init__ is object.__init__:
            raise TypeError("Initialization arguments are not supported")
        made = super().__new__(cls)
        object.__setattr__(made, "_of", {})
        object.__setattr__(made, "_arguments", (args, kwargs))
        _attributes(made)  # the caller's __init__ comes by itself
        return made

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") and name != "__dict__":
            return object.__getattribute__(self, name)
        own = _attributes(self, init=True)
        if name == "__dict__":
            return own
        if name in own:
            return own[name]
        return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        _changes()
        _attributes(self, init=True)[name] = value

    def __delattr__(self, name: str) -> None:
        _changes()
        own = _attributes(self, init=True)
        if name not in own:
            raise AttributeError(name)
        del own[name]


def _changes() -> None:
    """The calling thread changes what it alone can see."""
    if now.execution is not None:
        now.execution.changes(now.execution.current)


def _attributes(local: ThreadLocal, init: bool = False) -> dict[str, Any]:
    ex = now.execution
    key = None if ex is None else ex.current
    of = object.__getattribute__(local, "_of")
    if key not in of:
        of[key] = {}
        if init and type(local).__init__ is not object.__init__:
            args, kwargs = object.__getattribute__(local, "_arguments")
            type(local).__init__(local, *args, **kwargs)
    found: dict[str, Any] = of[key]
    return found
