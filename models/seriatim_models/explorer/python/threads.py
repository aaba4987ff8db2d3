"""`threading`, `_thread` and `time` for explored programs.

`Thread`, `Lock`, `RLock`, `Condition`, the semaphores and `local` are made here of controlled primitives. `Event`,
`Barrier`, `Timer` and what else `threading` has are the classes of the interpreter's own `threading.py`, rewritten like
the user's code: so they have the steps, and the mistakes, of the version that runs.
"""

from __future__ import annotations

import _thread
import ast
import contextvars
import datetime
import functools
import sys
import threading
import time
import traceback
import types
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import greenlet  # type: ignore[import-untyped]  # greenlet ships no annotations

from seriatim_models.explorer.errors import ExplorerError
from seriatim_models.explorer.model.operations import Join, Spawn
from seriatim_models.explorer.model.operations import Thread as EngineThread
from seriatim_models.explorer.python import primitives
from seriatim_models.explorer.python.accesses import (
    ITERATING,
    MARK,
    get,
    library,
    named,
    no_program,
    now,
)
from seriatim_models.explorer.python.callers import site_of_caller
from seriatim_models.explorer.python.calls import call
from seriatim_models.explorer.python.execution import PythonExecution
from seriatim_models.explorer.python.hooks import HOOKS
from seriatim_models.explorer.python.places import OF_EXECUTION, ObjectRecord
from seriatim_models.explorer.python.primitives import (
    BoundedSemaphore,
    Condition,
    EndOfThread,
    IsAlive,
    Life,
    Lock,
    Pause,
    RLock,
    Semaphore,
    ThreadLocal,
    do,
    here,
)
from seriatim_models.explorer.python.rewrite import MODULE_TOKEN, rewritten_tree

__s_observed__ = True  # as in `primitives`

FIRST_IDENT = 1000
START = 1_000_000.0
"""What a clock shows at the start, in seconds."""


INHERITS = bool(getattr(sys.flags, "thread_inherit_context", False))
"""Whether a thread begins with the context variables of the one that starts it: on free-threaded builds since 3.14."""


class LimitedJoin(Join):
    """Wait for a thread with a time limit that does not run out any more in this search."""

    __slots__ = ()
    code = 52
    limited = True


class PythonThread:
    """`threading.Thread`."""

    __s_native__ = True

    _initialized = False

    def __init__(
        self,
        group: None = None,
        target: Callable[..., object] | None = None,
        name: str | None = None,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        daemon: bool | None = None,
        context: Any = None,
    ) -> None:
        if group is not None:
            raise AssertionError("group argument must be None for now")
        if context is not None and sys.version_info < (3, 14):
            raise TypeError("Thread.__init__() got an unexpected keyword argument 'context'")
        ex, thread = here()
        self._context = context
        """The context variables it begins with, an empty `contextvars.Context` if None."""
        self._target = target
        self._args = tuple(args)
        self._kwargs = dict(kwargs or {})
        for given in (*self._args, *self._kwargs.values()):
            if type(given) in ITERATING:  # others have their names where they are made
                named(ex, given, 0)
        if name is None:
            name = _fresh_name(ex)
            if target is not None and hasattr(target, "__name__"):
                name = f"{name} ({target.__name__})"
        self._name = str(name)
        parent = ex.heads.get(thread)
        self._daemon = bool(parent is not None and parent._daemon) if daemon is None else daemon
        self._life = Life(ex)
        self._said = ex.record(object(), "Thread", True)
        """The places of what others may ask it: its name, whether it is a daemon."""
        self._engine: EngineThread | None = None
        self._given: Any = None
        """What it runs, with its arguments; two threads may be alike in it (see `search.symmetry`)."""
        if type(self) is PythonThread and callable(target) and not ex.mortal and context is None:
            self._given = functools.partial(target, *self._args, **self._kwargs)
        self._initialized = True

    def start(self) -> None:
        """Start it; its first operation is announced before this returns."""
        if not self._initialized:
            raise RuntimeError("thread.__init__() not called")
        ex, thread = here()
        if self._engine is not None:
            raise RuntimeError("threads can only be started once")
        if self._context is None and INHERITS:
            self._context = contextvars.copy_context()
        engine = do(ex, thread, Spawn(self._bootstrap, self._name, self._daemon))
        assert self._engine is engine

    def run(self) -> None:
        """Call the target; a subclass may do something else."""
        try:
            if self._target is not None:
                call(self._target, 0, *self._args, **self._kwargs)
        finally:
            del self._target, self._args, self._kwargs  # as CPython does

    def _bootstrap(self) -> None:
        ex, thread = here()
        self._engine = thread
        thread.body, thread.end_of = self._given, self._life.index
        del self._given
        ex.heads[thread] = self
        ex.has_threads()
        run_to_the_end(ex, thread, self._life, self._run)

    def _run(self) -> None:
        if self._context is None:
            self.run()
        else:
            call(self._context.run, 0, self.run)

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended, or the time is over."""
        ex, thread = here()
        if not self._initialized:
            raise RuntimeError("Thread.__init__() not called")
        target = self._engine
        if target is None:
            raise RuntimeError("cannot join thread before it is started")
        if target is thread:
            raise RuntimeError("cannot join current thread")
        if timeout is None:
            do(ex, thread, Join(target))
            return
        self._distinguished("a join with a time limit")
        if timeout <= 0:
            do(ex, thread, IsAlive(self._life))
        elif thread.timeouts > 0:
            do(ex, thread, IsAlive(self._life, timeout))
        else:
            do(ex, thread, LimitedJoin(target))

    def is_alive(self) -> bool:
        """Whether it was started and has not ended."""
        ex, thread = here()
        if self._engine is None:
            return False
        self._distinguished("is_alive()")
        return bool(do(ex, thread, IsAlive(self._life)))

    def _distinguished(self, asked: str) -> None:
        """A program asks something of this thread that of another one it would not."""
        if self._engine is not None:
            self._engine.ex.distinguished.setdefault(self._engine.tid, f"{asked} is asked for")

    def _asked(self) -> None:
        """Which number a thread has is no place: who waits for it in a loop cannot be known to wait."""
        self._distinguished("its number")
        ex = now.execution
        if ex is not None and ex.current is not self._engine:
            ex.changes(ex.current)

    def _touch(self, what: str, write: bool) -> None:
        """Announce that its name, or whether it is a daemon, is read or set."""
        self._distinguished(what)
        ex = now.execution
        if ex is not None and (thread := ex.current) is not None:
            ex.touch(thread, self._said, what, write, site_of_caller())

    @property
    def name(self) -> str:
        """Its name."""
        self._touch("name", False)
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._touch("name", True)
        self._name = str(name)

    def getName(self) -> str:  # noqa: N802
        """The old way to ask for it."""
        return self.name

    def setName(self, name: str) -> None:  # noqa: N802
        """The old way to name it."""
        self.name = name

    @property
    def ident(self) -> int | None:
        """A number, None before it was started."""
        self._asked()
        return None if self._engine is None else FIRST_IDENT + self._engine.tid

    native_id = ident

    @property
    def daemon(self) -> bool:
        """Whether the program may end while it still waits."""
        self._touch("daemon", False)
        return self._daemon

    @daemon.setter
    def daemon(self, daemon: bool) -> None:
        if self._engine is not None:
            raise RuntimeError("cannot set daemon status of active thread")
        self._touch("daemon", True)
        self._daemon = daemon

    def isDaemon(self) -> bool:  # noqa: N802
        """The old way to ask."""
        return self.daemon

    def setDaemon(self, daemon: bool) -> None:  # noqa: N802
        """The old way to set it."""
        self.daemon = daemon

    def __hash__(self) -> int:
        return self._life.index  # the same in every execution

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        self._distinguished("repr()")
        return f"<Thread({self._name})>"


PythonThread.__name__ = PythonThread.__qualname__ = "Thread"


class MainThread(PythonThread):
    """The thread that runs the test."""

    def __init__(self, engine: EngineThread, ex: PythonExecution) -> None:
        super().__init__(name="MainThread", daemon=False)
        self._engine = engine
        ex.heads[engine] = self


def _fresh_name(ex: PythonExecution) -> str:
    ex.numbers[-1] += 1
    return f"Thread-{ex.numbers[-1]}"


def run_to_the_end(
    ex: PythonExecution, thread: EngineThread, life: Life, body: Callable[[], object]
) -> None:
    """Run what a thread runs, and end it with a step, so that a join orders all that it did."""
    ex.begins()
    try:
        body()
    except SystemExit as error:
        if isinstance(ex.heads.get(thread), MainThread) and not ex.closing:
            ex.search.traceback = user_traceback(error)
            ex.failed(thread, error)  # to pytest, too, it is one: nothing behind it is tested
    except (ExplorerError, greenlet.GreenletExit):
        raise
    except BaseException as error:
        if ex.closing:
            raise
        main = isinstance(ex.heads.get(thread), MainThread)  # what fails there has failed
        hook = ignored_exception if main else get(ex.modules["threading"], "excepthook", 0)
        if hook is ignored_exception:
            ex.search.traceback = user_traceback(error)
            ex.failed(thread, error)
        else:
            said = (type(error), error, error.__traceback__, ex.heads.get(thread))
            call(hook, 0, threading.ExceptHookArgs(said))
    if not ex.closing:
        do(ex, thread, EndOfThread(life))


OURS = str(Path(__file__).resolve().parent)
ASYNCIO = str(Path(threading.__file__).with_name("asyncio"))


def user_traceback(error: BaseException) -> str:
    """The traceback of an exception, without the frames of the explorer and of the event loop."""
    lines = traceback.TracebackException.from_exception(error)
    shown = [frame for frame in lines.stack if not frame.filename.startswith(OURS)]
    last = max((k for k, f in enumerate(shown) if not f.filename.startswith(ASYNCIO)), default=0)
    lines.stack = traceback.StackSummary.from_list(
        # How a task is run says nothing; where asyncio itself has raised does.
        [f for k, f in enumerate(shown) if k > last or not f.filename.startswith(ASYNCIO)]
    )
    return "".join(lines.format())


def ignored_exception(args: Any) -> None:
    """`threading.excepthook` as long as a program sets none: an exception that leaves a thread is a violation."""


# -- the modules ------------------------------------------------------------------------------------------------------

KEPT = (
    "Event",
    "Barrier",
    "BrokenBarrierError",
    "Timer",
    "Condition",
)
"""Classes of `threading.py` that are rewritten as they are."""

_library: dict[str, Any] = {}


def observed_classes(
    module: types.ModuleType, names: Sequence[str], **space: Any
) -> dict[str, Any]:
    """The namespace of these classes and functions of a library module, rewritten; `space` is what else they use."""
    path = module.__file__
    assert path is not None
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    tree.body = [
        n for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef) and n.name in names
    ]
    rewritten_tree(tree, path)
    known = {"__name__": module.__name__, "__package__": module.__package__, MARK: True, **HOOKS,
             MODULE_TOKEN: None, **space}  # fmt: skip
    with no_program():
        exec(compile(tree, path, "exec", dont_inherit=True), known)
    return known


def library_classes() -> dict[str, Any]:
    """The rewritten classes of the interpreter's `threading.py`; they have no state of their own."""
    if not _library:
        known = observed_classes(
            threading, KEPT, Thread=PythonThread, Lock=Lock, RLock=RLock, _allocate_lock=Lock, _deque=deque,
            _time=monotonic,
        )  # fmt: skip
        Condition.over_others = known["Condition"]
        known["Condition"] = Condition  # what Event and Barrier find there
        _library.update(known)
    return _library


def current_thread() -> Any:
    """The `Thread` that calls."""
    ex, thread = here()
    ex.distinguished.setdefault(thread.tid, "current_thread() is asked for")
    return ex.heads.get(thread)


def get_ident() -> int:
    """The number of the calling thread."""
    ex, thread = here()
    ex.distinguished.setdefault(thread.tid, "get_ident() is asked for")
    return FIRST_IDENT + thread.tid


def enumerate_() -> list[PythonThread]:
    """All threads that were started and have not ended."""
    ex, thread = here()
    ex.changes(thread)  # which threads there are is no place
    return [t for t in list(ex.heads.values()) if t is current_thread() or t.is_alive()]


TICK = 1e-6
"""Seconds that pass when a program looks at the clock, so that a loop on the time has an end."""


def monotonic() -> float:
    """The time of the calling thread, in seconds."""
    ex, thread = here()
    ex.pass_time(thread, TICK)
    ex.changes(thread)
    return START + ex.clocks[thread]


OWN: dict[str, Any] = {
    "Thread": PythonThread, "Lock": Lock, "RLock": RLock, "Condition": Condition, "local": ThreadLocal,
    "Semaphore": Semaphore, "BoundedSemaphore": BoundedSemaphore,
    "current_thread": current_thread, "currentThread": current_thread, "get_ident": get_ident,
    "get_native_id": get_ident, "enumerate": enumerate_, "active_count": lambda: len(enumerate_()),
    "main_thread": lambda: next(iter(here()[0].heads.values())), "excepthook": ignored_exception,
    "__excepthook__": ignored_exception, "TIMEOUT_MAX": primitives.TIMEOUT_MAX, "ThreadError": RuntimeError,
    "_register_atexit": lambda function, *a, **k: here()[0].at_exit.append(lambda: function(*a, **k)),
    "stack_size": lambda size=0: 0, "settrace": lambda function: None, "setprofile": lambda function: None,
    "_time": monotonic, "_RLock": RLock, "_PyRLock": RLock, "_CRLock": RLock,
    "ExceptHookArgs": threading.ExceptHookArgs,
}  # fmt: skip
"""What is in `threading` besides `KEPT`."""


def threading_module(ex: PythonExecution) -> types.ModuleType:
    """`threading` for one execution."""
    module = types.ModuleType("threading", threading.__doc__)
    kept = library_classes()
    module.__dict__.update(
        OWN, __all__=list(threading.__all__), **{name: kept[name] for name in KEPT}
    )
    # What a program sets as its `excepthook` is a global as that of an observed module.
    module.__dict__[MODULE_TOKEN] = ObjectRecord(
        module, "global threading", OF_EXECUTION, 6, True, None
    )
    return module


def thread_module(ex: PythonExecution) -> types.ModuleType:
    """`_thread` for one execution."""
    module = types.ModuleType("_thread")

    def start_new_thread(
        function: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> int:
        """Start a thread without a `Thread`."""
        started = PythonThread(target=function, args=args, kwargs=kwargs, daemon=True)
        started.start()
        return started.ident or 0

    module.__dict__.update(
        allocate_lock=Lock, allocate=Lock, LockType=Lock, lock=Lock, RLock=RLock, get_ident=get_ident,
        start_new_thread=start_new_thread, start_new=start_new_thread, error=RuntimeError, _local=ThreadLocal,
        TIMEOUT_MAX=primitives.TIMEOUT_MAX, get_native_id=get_ident, interrupt_main=_thread.interrupt_main,
        exit=_thread.exit, exit_thread=_thread.exit, stack_size=OWN["stack_size"],
        _count=lambda: len(enumerate_()) - 1,
    )  # fmt: skip
    return module


def threading_local_module(ex: PythonExecution) -> types.ModuleType:
    """`_threading_local` for one execution: its own `local` would take all threads for one."""
    module = types.ModuleType("_threading_local", ThreadLocal.__doc__)
    module.__dict__.update(local=ThreadLocal, __all__=["local"])
    return module


def wall_clock() -> float:
    """As `monotonic`, since 1970."""
    return 1_700_000_000.0 + monotonic()


def today(kind: Any, name: str, tz: Any = None) -> Any:
    """`now`, `utcnow` or `today` of a class of `datetime`."""
    seconds = wall_clock()
    if name == "utcnow":
        return kind.fromtimestamp(seconds, datetime.UTC).replace(tzinfo=None)
    return kind.fromtimestamp(seconds) if tz is None else kind.fromtimestamp(seconds, tz)


def _at_that_time(function: Callable[..., Any], before: int) -> Callable[..., Any]:
    """A function of `time` whose argument number `before` is, if it is left out, the time that it is."""

    def asked(*given: Any) -> Any:
        if len(given) > before and given[before] is not None:
            return function(*given)
        moment: Any = wall_clock()
        if function in (time.strftime, time.asctime):
            moment = time.localtime(moment)
        return function(*given[:before], moment)

    return asked


def sleep(seconds: float) -> None:
    """Let time pass for the calling thread."""
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    ex, thread = here()
    do(ex, thread, Pause(seconds))


def time_module(ex: PythonExecution) -> types.ModuleType:
    """`time` for one execution: virtual."""
    module = types.ModuleType("time", time.__doc__)
    module.__dict__.update({k: v for k, v in vars(time).items() if not k.startswith("__")})
    module.__dict__.update(
        monotonic=monotonic, perf_counter=monotonic, process_time=monotonic, thread_time=monotonic, time=wall_clock,
        sleep=sleep, monotonic_ns=lambda: int(monotonic() * 1e9), perf_counter_ns=lambda: int(monotonic() * 1e9),
        time_ns=lambda: int(wall_clock() * 1e9), process_time_ns=lambda: int(monotonic() * 1e9),
        thread_time_ns=lambda: int(monotonic() * 1e9), clock_gettime=lambda clock: wall_clock(),
        localtime=_at_that_time(time.localtime, 0), gmtime=_at_that_time(time.gmtime, 0),
        ctime=_at_that_time(time.ctime, 0), asctime=_at_that_time(time.asctime, 0),
        strftime=_at_that_time(time.strftime, 1),
    )  # fmt: skip
    return module


library.today = today

assert now
assert sys
