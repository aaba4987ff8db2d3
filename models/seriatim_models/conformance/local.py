"""An implementation as an object in this process.

The object has a method for each operation that it can do; `spec/conform/README.md` lists them. An object that only has
`put` and `get`, as `queue.Queue` has, is taken as a queue that settles what it hands out.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any

from seriatim_models.conformance.meanings import meanings
from seriatim_models.conformance.protocol import (
    NAME_MAX,
    OPERATIONS,
    PUSHES_MAX,
    Answer,
    Fault,
    Got,
    Push,
    Request,
    abilities,
    brief,
)
from seriatim_models.files import message_of

# Any: other people's objects, of which only the methods that they have are called
Implementation = Any
Factory = Callable[[], Implementation]


class Refused(Exception):
    """Raised by an implementation that refuses a request; anything else that it raises is a fault of its own.

    `closed` says that the refusal closed the channel, as AMQP's do.
    """

    def __init__(self, why: str, code: int | None = None, closed: bool = False) -> None:
        super().__init__(why)
        self.code = code
        self.closed = closed


class Unknown(Exception):
    """Raised by an implementation of which nobody knows whether it did what was asked, or still will: a connection that
    broke before the answer. What the client held is given up with it.
    """


class Local:
    """`System` over an object. The factory makes a new one for each script."""

    exact = True

    def __init__(self, factory: Factory, name: str = "") -> None:
        """Raises `Fault` if the object cannot be made or is no implementation."""
        self._factory = factory
        self._object: Implementation = None
        # Taken out one by one, for another thread may put in meanwhile.
        self._pushes: deque[Push] = deque()
        self._fault: Fault | None = None
        self.room: int | None = None
        self.reset()
        self.name = name or getattr(self._object, "name", "") or type(self._object).__name__
        self.version = str(getattr(self._object, "version", ""))
        self.can = declared(self._object)
        self.means = meanings(getattr(self._object, "means", {}), self.can)

    def reset(self) -> None:
        self.end()
        try:
            made = self._factory()
        except Exception as error:
            raise Fault("start", f"cannot be made: {one_line(error)}") from error
        bare = not hasattr(made, "publish") and hasattr(made, "put") and getter(made) is not None
        self._object = PutGetAdapter(made, self._factory) if bare else made
        self._pushes = deque()
        self._fault = None

    def do(self, request: Request) -> Answer:
        method = getattr(self._object, request.op.replace("-", "_"), None)
        if request.op not in OPERATIONS or method is None:
            return Answer(ok=False, why=f"cannot {request.op}")
        try:
            value = method(**self._arguments(request, method))
        except Refused as refusal:
            if refusal.closed:
                why = str(refusal)
                self._taker()(Push(ev="closed", ch=request.ch, code=refusal.code, why=why))
            return Answer(ok=False, code=refusal.code, why=brief(str(refusal)))
        except Unknown as why:
            return Answer(ok=False, unknown=True, why=brief(str(why)))
        except Exception as error:
            raise Fault("died", f"{request.op} raised {one_line(error)}") from error
        if request.op == "get":
            return (
                _batch_of(value) if request.n > 1 and isinstance(value, list) else answer_of(value)
            )
        if request.op == "read":
            return _read(value)
        if request.op == "publish" and isinstance(value, int):
            return Answer(pos=value)
        if request.op == "count":
            return _counted(value)
        if request.op == "declare" and isinstance(value, str):
            return Answer(q=value)
        if request.op in ("dwrr", "dwrr-table"):
            return Answer(served=list(value))
        return Answer()

    def sync(self) -> bool:
        if (sync := getattr(self._object, "sync", None)) is not None:
            try:
                sync()
            except Exception as error:
                raise Fault("died", f"sync raised {one_line(error)}") from error
        return True

    def pushed(self) -> list[Push]:
        taken = []
        while self._pushes:
            taken.append(self._pushes.popleft())
        if self._fault is not None:
            raise self._fault
        return taken

    def end(self) -> None:
        over, self._object = self._object, None
        if over is not None and (end := getattr(over, "end", None)) is not None:
            end()

    def _taker(self) -> Callable[[Push], None]:
        """What keeps what this object pushes until it is asked for."""
        return self._pushes.append

    def _arguments(self, request: Request, method: Callable[..., object]) -> dict[str, object]:
        """The fields of the request that the method has a name for."""
        asked: dict[str, object] = {
            name: getattr(request, name) for name in request.__struct_fields__ if name != "op"
        }
        if request.op == "consume":
            asked["deliver"] = self._deliverer(request.ch, request.ctag)
        names = inspect.signature(method).parameters
        if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in names.values()):
            return asked
        return {name: value for name, value in asked.items() if name in names}

    def _deliverer(self, ch: int, ctag: str) -> Callable[..., None]:
        """What an object calls for a consumer. One that has given way to the next may have threads that go on."""
        made, took, pushes = self._object, self._taker(), self._pushes

        def deliver(m: str, dtag: int, redelivered: bool | None = None) -> None:
            now = time.monotonic_ns()
            if made is not self._object:
                return
            if len(pushes) >= PUSHES_MAX:
                self._fault = Fault("flood", f"pushed more than {PUSHES_MAX:,} times")
            elif not isinstance(m, str) or not 0 < len(m) <= NAME_MAX or not isinstance(dtag, int):
                self._fault = Fault("garbage", f"deliver was called with {m!r:.80}, {dtag!r:.80}")
            else:
                flag = None if redelivered is None else bool(redelivered)
                push = Push(ev="deliver", ch=ch, ctag=ctag, m=m, dtag=dtag, redelivered=flag, t=now)
                took(push)

        return deliver


SHOWN = {
    "exclusive": ("consume", "exclusive"),
    "priority": ("consume", "cprio"),
    "message-priority": ("publish", "prio"),
    "groups": ("publish", "key"),
    "delay": ("publish", "delay"),
    "ttl": ("publish", "ttl"),
    "batch": ("get", "n"),
}
"""Features that a method shows by a parameter. That a group is held is no parameter: `can` has to say it."""


class PutGetAdapter:
    """A queue that has only `put` and `get` (or `get_nowait`): what is got is settled by that. Both may be coroutines,
    as in asyncio.

    A queue with a greatest length is given nothing while it is full: such a put is refused.
    A message may take a moment from `put` to `get` (multiprocessing documents that, for a thread of its own carries it
    over): where something must be left, a get that can wait waits for it.
    """

    can: tuple[str, ...] = ("publish", "get", "autoack")
    WAITS = 0.5
    """Seconds that a get waits where something must be left."""

    def __init__(self, queue: Implementation, factory: Factory) -> None:
        self.name = type(queue).__name__
        self._factory = factory
        if not inspect.iscoroutinefunction(queue.put) and not _stops_waiting(queue):
            self.can = (*self.can, "waits")
        self._queues: dict[str, Implementation] = {"": queue}
        self._left: Counter[str] = Counter()
        """By queue, how many more were put than got."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        """For what several clients at once would count wrong; no call of the queue is made with it."""

    def publish(self, q: str, m: str) -> None:
        queue = self._queue(q)
        if callable(full := getattr(queue, "full", None)) and full():
            raise Refused("full")
        try:
            if _stops_waiting(queue) and not inspect.iscoroutinefunction(queue.put):
                queue.put(m, timeout=self.WAITS)  # another client may have filled it meanwhile
            else:
                self._done(queue.put(m))
        except Exception as error:
            if type(error).__name__ in ("Full", "QueueFull"):
                raise Refused("full") from error
            raise
        self._count(q, 1)

    def get(self, q: str) -> tuple[str, int | None, bool | None] | None:
        queue = self._queue(q)
        left = self._left[q] > 0
        get = getter(queue)
        polls = _has(get, "block") and not inspect.iscoroutinefunction(get)
        polls = polls or not hasattr(queue, "get")
        if not polls and not left and hasattr(queue, "empty") and queue.empty():
            return None  # such a get would wait; any other is asked, for it may go wrong there
        try:
            if inspect.iscoroutinefunction(get):
                found = self._done(asyncio.wait_for(get(), self.WAITS if left else 0.01))
            elif left and _has(get, "block", "timeout"):
                found = get(block=True, timeout=self.WAITS)
            elif _has(get, "block"):
                found = get(block=False)
            else:
                found = get()
        except Exception as error:
            if type(error).__name__ in ("Empty", "QueueEmpty", "TimeoutError", "IndexError"):
                return None
            raise
        if found is None:
            return None
        self._count(q, -1)
        return found, None, None

    def _count(self, q: str, n: int) -> None:
        with self._lock:
            self._left[q] += n

    def _done(self, value: Any) -> Any:
        """The value, or what it comes to if it is to be awaited."""
        if not inspect.isawaitable(value):
            return value
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(value)

    def _queue(self, q: str) -> Implementation:
        with self._lock:
            if q not in self._queues:
                first = self._queues.pop("", None)
                self._queues[q] = self._factory() if first is None else first
            return self._queues[q]

    def end(self) -> None:
        """Close the loop, and what has a `close` or an `end`."""
        if self._loop is not None:
            self._loop.close()
        for queue in self._queues.values():
            for name in ("close", "end"):
                if callable(over := getattr(queue, name, None)):
                    over()
                    break


def getter(queue: Implementation) -> Any:
    """What takes a message: `get`, else `get_nowait`, which never waits; None if it has neither."""
    return getattr(queue, "get", None) or getattr(queue, "get_nowait", None)


def _stops_waiting(queue: Implementation) -> bool:
    """Whether a put has a timeout, and raises `Full` then: of a queue that says how long it may be."""
    bounds = (getattr(queue, name, None) for name in ("maxsize", "_maxsize"))
    return any(bound is not None for bound in bounds) and _has(queue.put, "timeout")


def _has(get: Callable[..., object], *names: str) -> bool:
    """Whether a get has parameters of these names. Of one in C that shows none, `block` is taken for granted."""
    try:
        parameters = inspect.signature(get).parameters
    except (TypeError, ValueError):
        return names == ("block",)
    return set(names) <= parameters.keys() or any(
        p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()
    )


def declared(implementation: Implementation) -> frozenset[str]:
    """What it declares in `can`; else the operations that it has a method for. Raises `Fault`."""
    can: Iterable[str] | None = getattr(implementation, "can", None)
    if can is not None:
        return abilities(can)
    # A method `declare` of somebody's may be anything: only `can` says that it is this one.
    named_so = [op for op in OPERATIONS if op != "declare"]
    methods = {op: getattr(implementation, op.replace("-", "_"), None) for op in named_so}
    found: dict[str, Callable[..., object]] = {
        op: method for op, method in methods.items() if callable(method)
    }
    named = {name for method in found.values() for name in inspect.signature(method).parameters}
    shown = {
        feature
        for feature, (op, name) in SHOWN.items()
        if op in found and name in inspect.signature(found[op]).parameters
    }
    drop = {"drop"} if "requeue" in named else set()
    return abilities({*found, *drop, *({"multiple", "autoack"} & named), *shown})


def load(where: str) -> Factory:
    """The factory at ``package.module:name``. Raises `Fault` in one sentence."""
    module, colon, name = where.partition(":")
    if not colon or not module or not name:
        raise Fault("start", f"{where!r} is not MODULE:FACTORY")
    try:
        factory: object = importlib.import_module(module)
    except Exception as error:
        raise Fault("start", f"module {module!r} cannot be imported: {one_line(error)}") from error
    for part in name.split("."):
        factory = getattr(factory, part, None)
    if not callable(factory):
        raise Fault("start", f"module {module!r} has no {name!r} that can be called")
    return factory


def one_line(error: BaseException) -> str:
    """An exception in one line."""
    return f"{type(error).__name__}: {message_of(error)}".splitlines()[0]


def answer_of(value: object) -> Answer:
    """The answer for what `get` returned: nothing, a tuple (m, dtag, redelivered, expired), or an object with these."""
    if value is None:
        return Answer()
    fields = (
        value
        if isinstance(value, tuple)
        else tuple(getattr(value, n, None) for n in ("m", "dtag", "redelivered", "expired"))
    )
    m, dtag, redelivered, expired = (*fields, None, None, None)[:4]
    if not isinstance(m, str) or not 0 < len(m) <= NAME_MAX:
        raise Fault("garbage", f"get returned {value!r:.80}, which names no message")
    return Answer(m=m, dtag=dtag, redelivered=redelivered, expired=bool(expired))


def _batch_of(values: list[object]) -> Answer:
    """The answer for what a `get` of several returned: a list of what `get` returns."""
    found = [answer_of(value) for value in values]
    return Answer(batch=[Got(m=a.m, dtag=a.dtag, redelivered=a.redelivered) for a in found])


def _counted(value: object) -> Answer:
    """The answer for what `count` returned, a tuple (ready, held)."""
    match value:
        case (int(ready), int(held)):
            return Answer(ready=ready, held=held)
    raise Fault("garbage", f"count returned {value!r:.80}, which is not (ready, held)")


def _read(value: object) -> Answer:
    """The answer for what `read` returned: nothing, or a tuple (m, pos)."""
    match value:
        case None:
            return Answer()
        case (str(m), int(pos)) if 0 < len(m) <= NAME_MAX:
            return Answer(m=m, pos=pos)
    raise Fault("garbage", f"read returned {value!r:.80}, which is neither None nor (m, pos)")
