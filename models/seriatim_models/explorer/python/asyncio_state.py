"""`asyncio` in the sandbox: which modules are executed there, what they know at the start, what is wrong at the end.

The modules are executed once in a search, since that takes longer than many tests, and what they keep in globals is
made anew for each execution. They are rewritten only if the program also has threads: what one thread does among its
own tasks needs no announcement.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import signal
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import greenlet  # type: ignore[import-untyped]  # greenlet ships no annotations

from seriatim_models.explorer.errors import ExplorerError
from seriatim_models.explorer.model.guard import NETWORK, refusal, refusing
from seriatim_models.explorer.python.accesses import OF_SOCKETS, now
from seriatim_models.explorer.python.event_loop import name_of
from seriatim_models.explorer.python.execution import (
    BESIDE_THREADS,
    LIFETIMES,
    PythonExecution,
    Search,
)
from seriatim_models.explorer.python.lifetimes import cleans_up
from seriatim_models.explorer.python.places import where
from seriatim_models.explorer.python.primitives import Lock, here
from seriatim_models.explorer.python.threads import FIRST_IDENT, user_traceback
from seriatim_models.files import message_of

LOOP = str(Path(__file__).with_name("sandbox_loop.py"))
"""The file that stands for the loops of the platform."""

PLATFORM = frozenset(("asyncio.unix_events", "asyncio.windows_events"))
REAL = frozenset(
    f"asyncio.{name}"
    for name in ("constants", "exceptions", "log", "protocols", "sslproto", "transports", "trsock")
)
"""Modules of asyncio without state: the real ones are used, so that their exceptions are the real ones, too."""

REFUSED = (
    "add_reader", "add_signal_handler", "add_writer", "connect_accepted_socket", "connect_read_pipe",
    "connect_write_pipe", "create_connection", "create_datagram_endpoint", "create_server", "create_unix_connection",
    "create_unix_server", "getaddrinfo", "getnameinfo", "sendfile", "sock_accept", "sock_connect", "sock_recv",
    "sock_recv_into", "sock_recvfrom", "sock_sendall", "sock_sendfile", "sock_sendto", "start_tls",
    "subprocess_exec", "subprocess_shell",
)  # fmt: skip
"""Methods of a loop that reach out of the program."""


class NativeSet(set[Any]):
    """A set that no thread is said to share: of asyncio's own tasks."""

    __s_native__ = True


class AsyncGenerators:
    """The asynchronous generators of a loop in the order of their first use.

    They are kept until the loop ends them; where lifetimes are followed, only until their last reference goes.
    """

    __s_native__ = True

    def __init__(self) -> None:
        self._known: dict[int, Callable[[], Any]] = {}
        """By address."""

    def add(self, generator: Any) -> None:
        """Note one that is used first."""
        ex = now.execution
        mortal = ex is not None and LIFETIMES in ex.search.promoted
        self._known[id(generator)] = weakref.ref(generator) if mortal else lambda: generator

    def discard(self, generator: Any) -> None:
        """Forget one."""
        self._known.pop(id(generator), None)

    def clear(self) -> None:
        """Forget all."""
        self._known.clear()

    def knows(self, address: int) -> bool:
        """Whether one was used first here."""
        return address in self._known

    def __iter__(self) -> Iterator[Any]:
        alive = [refer() for refer in self._known.values()]
        return iter([generator for generator in alive if generator is not None])

    def __len__(self) -> int:
        return len(list(iter(self)))


def left_open(generators: AsyncGenerators) -> None:
    """Note that a loop ends generators which perhaps died before, see `lifetimes`."""
    ex, _ = here()
    if any(cleans_up(g.ag_code, g.ag_frame) for g in generators):
        ex.need(LIFETIMES, 0)


def is_asyncio(name: str) -> bool:
    """Whether a module is part of asyncio and executed in the sandbox."""
    return (name == "asyncio" or name.startswith("asyncio.")) and name not in REAL


def observed(search: Search) -> bool:
    """Whether the modules of asyncio are rewritten in this round of a search."""
    return search.every_access or BESIDE_THREADS in search.promoted


# -- the modules --------------------------------------------------------------------------------------------------


def adapt(name: str, module: types.ModuleType) -> None:
    """Change what cannot stay in a module that was executed just now."""
    own = module.__dict__
    if name == "asyncio":
        own["__getattr__"] = _loops_of_sockets(own.get("__getattr__"))
    elif name == "asyncio.futures":
        del (
            module.Future.__del__
        )  # it would say that nobody retrieved an exception, long after the end
        set_exception = module.Future.set_exception

        def keeping(self: Any, exception: Any) -> None:
            """`Future.set_exception`, and remember the future."""
            pass_on(exception)
            set_exception(self, exception)
            if now.execution is not None:
                now.execution.failed_futures.append(self)

        module.Future.set_exception = keeping
    elif name == "asyncio.tasks":
        del module.Task.__del__
        own["set"] = _set_of_awaitables
    elif name == "asyncio.base_events":
        del module.BaseEventLoop.__del__
        copy = types.ModuleType("sys")
        copy.__dict__.update({k: v for k, v in vars(sys).items() if not k.startswith("__")})
        copy.__dict__.update(
            set_asyncgen_hooks=lambda *args, **kwargs: None,
            get_asyncgen_hooks=lambda: (None, None),
            set_coroutine_origin_tracking_depth=lambda depth: None,
        )
        own["sys"] = copy
    elif name in PLATFORM:
        for method in REFUSED:
            setattr(module.SelectorEventLoop, method, _refusing(method))
    elif name == "asyncio.runners":
        own["signal"] = types.SimpleNamespace(
            getsignal=lambda number: None, SIGINT=signal.SIGINT, default_int_handler=object()
        )
    elif name == "asyncio.coroutines" and "_iscoroutine_typecache" in own:
        own["_iscoroutine_typecache"] = NativeSet()


def _loops_of_sockets(known: Callable[[str], Any] | None) -> Callable[[str], Any]:
    """`__getattr__` of asyncio, where all programs find the module whose loops are refused, and some change it."""

    def find(name: str) -> Any:
        ex = now.execution
        if ex is not None and f"asyncio.{name}" == OF_SOCKETS:
            return ex.program.sandbox.load(ex, OF_SOCKETS)  # type: ignore[attr-defined]
        if known is None:
            raise AttributeError(f"module 'asyncio' has no attribute {name!r}")
        return known(name)

    return find


def _set_of_awaitables(elements: Any = ()) -> Any:
    """What `as_completed` makes tasks of: coroutines in the order given, and not in that of their addresses."""
    if isinstance(elements, set | frozenset) or not any(map(inspect.iscoroutine, elements)):
        return set(elements)
    return dict.fromkeys(elements)


class Refreshed(NamedTuple):
    """What the modules of asyncio were given for one execution, and when."""

    numbers: dict[int, int]
    objects: int
    """How many objects the thread had numbered and made before."""
    stored: list[tuple[types.ModuleType, str, Any]]

    @property
    def untouched(self) -> bool:
        """Whether nobody has put anything else there."""
        return all(getattr(module, name) is value for module, name, value in self.stored)


def refresh(ex: PythonExecution) -> Refreshed:
    """Give modules that an earlier execution may have used the state that they have after an import."""
    before, objects = dict(ex.numbers), 0 if ex.acting is None else ex.acting.objects
    modules = ex.modules
    for name, module in modules.items():
        if is_asyncio(name) and "concurrent" in module.__dict__:
            module.concurrent = modules["concurrent"]
    events, tasks = modules["asyncio.events"], modules["asyncio.tasks"]
    numbers = itertools.count(1)
    ex.record(numbers, "numbers of tasks", True)
    stored: list[tuple[types.ModuleType, str, Any]] = [
        (tasks, "_task_name_counter", numbers.__next__)
    ]
    sets = ("_all_tasks", "_scheduled_tasks", "_eager_tasks")
    stored += [(tasks, name, NativeSet()) for name in sets if hasattr(tasks, name)]
    current: dict[Any, Any] = {}
    ex.record(current, "dict of tasks.py", True)
    stored.append((tasks, "_current_tasks", current))
    stored.append((events, "_running_loop", events._RunningLoop()))
    policy = modules[platform_module()].DefaultEventLoopPolicy()
    stored.append((events, "_event_loop_policy", policy))
    for module, name in ((events, "_lock"), (modules["asyncio.mixins"], "_global_lock")):
        lock = Lock()
        lock.call_it(f"asyncio.{name}")
        stored.append((module, name, lock))
    for module, name, value in stored:
        setattr(module, name, value)
    return Refreshed(before, objects, stored)


def platform_module() -> str:
    """The module that holds the loops of this platform."""
    return "asyncio.windows_events" if sys.platform == "win32" else "asyncio.unix_events"


# -- the loop -----------------------------------------------------------------------------------------------------


def began(loop: Any) -> None:
    """A loop was made."""
    ex, _ = here()
    ex.loops.append(loop)


def runs_here(loop: Any) -> bool:
    """Whether the calling thread is the one that runs the loop."""
    _, thread = here()
    return bool(loop._thread_id == FIRST_IDENT + thread.tid)


def same_thread(loop: Any) -> None:
    """Note a timer that a thread sets for a loop which another one runs: that is not observed, and not allowed."""
    ex, _ = here()
    if loop._thread_id is not None and not runs_here(loop):
        ex.search.unseen["a timer that is set from another thread than that of its loop"] = None


def _refusing(name: str) -> Callable[..., NoReturn]:
    """What stands for a method of a loop that reaches out of the program."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise refusal(f"loop.{name}", NETWORK, sys._getframe(1))

    return refuse


def pass_on(error: Any) -> None:
    """Raise what ends an execution, and must not be kept in a future."""
    if isinstance(error, ExplorerError | greenlet.GreenletExit):
        raise error


def still_runs() -> None:
    """Raise what ends a thread if the execution is being closed: what a task says of its own end is no finding."""
    here()


def unhandled(context: dict[str, Any]) -> None:
    """Record an exception that asyncio would write into its log."""
    ex, thread = here()
    error = context.get("exception")
    failed = RuntimeError(_message(context))
    failed.__cause__ = error
    if error is not None:
        ex.search.traceback = user_traceback(error)
    ex.failed(thread, failed)


def _message(context: dict[str, Any]) -> str:
    error = context.get("exception")
    task = context.get("task") or context.get("future")
    who = f" ({name_of(task)})" if hasattr(task, "_coro") else ""
    what = "" if error is None else f": {type(error).__name__}: {message_of(error)}"
    return f"{context.get('message') or 'unhandled exception'}{who}{what}"


def is_of_the_real_one(traceback: str) -> bool:
    """Whether an exception says that the real asyncio, in C, runs no loop: in the sandbox a Python function says it."""
    last = "RuntimeError: no running event loop"
    return traceback.rstrip().endswith(last) and "in get_running_loop" not in traceback


# -- the end ------------------------------------------------------------------------------------------------------


def leftovers(ex: PythonExecution) -> None:
    """Raise what asyncio would complain of when the objects are collected.

    Exceptions of tasks and futures that nobody retrieved, coroutines that nobody awaited.
    """
    for future in ex.failed_futures:
        if future._Future__log_traceback:
            future._Future__log_traceback = False
            context = {
                "message": f"{type(future).__name__} exception was never retrieved",
                "exception": future._exception,
                "future": future,
            }
            future._loop.call_exception_handler(context)
    for coroutine, site in ex.coroutines:
        if inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
            raise RuntimeError(
                f"coroutine {coroutine.__qualname__} of {where(site)} was never awaited"
            )


@contextmanager
def quiet() -> Iterator[None]:
    """Say nothing of coroutines of executions that are over; keep asynchronous generators until the end."""
    hook, hooks = sys.unraisablehook, sys.get_asyncgen_hooks()
    real = asyncio.BaseEventLoop.run_forever
    instead = "the loop of an observed module"
    asyncio.BaseEventLoop.run_forever = refusing("an event loop of asyncio", instead, real)  # type: ignore[method-assign]
    sys.unraisablehook = _unraisable(hook)
    sys.set_asyncgen_hooks(firstiter=_first_use, finalizer=_last_use)
    try:
        yield
    finally:
        asyncio.BaseEventLoop.run_forever = real  # type: ignore[method-assign]
        sys.unraisablehook = hook
        sys.set_asyncgen_hooks(*hooks)


def _unraisable(otherwise: Callable[[Any], Any]) -> Callable[[Any], None]:
    def ignore(args: Any) -> None:
        ex = now.execution
        if isinstance(args.exc_value, ExplorerError) and ex is not None:
            ex.search.unseen[f"in a finalizer: {args.exc_value}"] = None
        elif ex is None and not isinstance(
            args.object, types.CoroutineType | types.AsyncGeneratorType
        ):
            otherwise(args)  # of a program: it goes on as if nothing had been raised

    return ignore


def _first_use(generator: Any) -> None:
    """An asynchronous generator is used first: the loop that runs ends it, if nobody else does."""
    ex = now.execution
    if ex is None or ex.current is None:
        return
    for loop in ex.loops:
        if loop._thread_id == FIRST_IDENT + ex.current.tid:
            loop._asyncgens.add(generator)


def _last_use(generator: Any) -> None:
    """The last reference to an asynchronous generator goes: its loop ends it in a task."""
    ex = now.execution
    if ex is None or ex.current is None:
        return
    for loop in ex.loops:
        if loop._asyncgens.knows(id(generator)):
            loop._asyncgen_finalizer_hook(generator)
