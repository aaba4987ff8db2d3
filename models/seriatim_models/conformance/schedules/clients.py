"""Small concurrent clients: drawn from what an object can do, written to a file, made smaller.

An object with `put` and `get` is called as `queue.Queue` is, from threads, or as `asyncio.Queue`, from tasks; two ends
with `send` and `receive` as the memory object streams of anyio; one with `publish` and `get` as
`spec/conform/README.md` says, each client being a channel. Calls that only ask for a size are left out: libraries call
the answer approximate.
"""

from __future__ import annotations

import bisect
import inspect
import random
import threading
from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from pathlib import Path
from queue import Empty
from typing import Any

import msgspec

from seriatim_models.conformance.local import declared, getter
from seriatim_models.conformance.script import ScriptError
from seriatim_models.files import encoded, read_document, write_whole

SCHEMA = "seriatim-clients/1"
QUEUE = "q"
GETS = ("get", "get_nowait", "get_timeout")
PUTS = ("put", "put_nowait", "put_timeout", "publish")
GROWTH = (12, 60, 160, 400)
"""So many clients are drawn with two calls in all; up to the next number with three, and so on."""
SHAPES: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("put | get", (0,)),
    ("put_nowait | put_nowait", (1,)),
    ("put_nowait | get_nowait", (0,)),
    ("get | get | put put", (0, 1)),
    ("put put | get get", (1,)),
    ("put_nowait | get_nowait | get_nowait", (0,)),
    ("put | get | get_nowait", (0,)),
    ("put | put | get get", (1,)),
    ("put | get_timeout", (0,)),
    ("put | get task_done | join", (0,)),
    ("get | put shutdown", (0,)),
    ("get | get | shutdown", (0,)),
    ("publish > get | get", (0,)),
    ("publish > get nack | get", (0,)),
    ("publish | get", (0,)),
    ("publish | get ack | get", (0,)),
    ("publish | get nack | get", (0,)),
    ("publish publish | get | get", (0,)),
)
"""Clients that are run first, with the limits of the queue; `drawn` ones take turns with them.

What stands before ``>`` is called before the clients begin.
"""
WAITING = ("put", "get", "join")
"""Calls that may have to wait for ever."""


class ClientCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of a client."""

    op: str
    m: str = ""
    which: int = -1
    """Of a settlement, which of the messages that the client holds."""
    requeue: bool = True

    def __str__(self) -> str:
        words = [self.op, self.m] if self.m else [self.op]
        if self.op in ("nack", "reject"):
            words.append("requeue" if self.requeue else "drop")
        return " ".join(words)


class Clients(msgspec.Struct, frozen=True, kw_only=True):
    """What each client calls, one after the other, and what is called when all have ended."""

    threads: tuple[tuple[ClientCall, ...], ...]
    after: tuple[ClientCall, ...] = ()
    """Only if no call of a client may wait for ever."""
    maxsize: int = 0
    before: tuple[ClientCall, ...] = ()
    """What is called before they begin."""

    @property
    def calls(self) -> list[ClientCall]:
        """All calls, numbered as in the history of an execution."""
        return [call for thread in (*self.threads, self.after, self.before) for call in thread]

    @property
    def callers(self) -> list[int]:
        """The number of the client that makes each call, from 1; one more is the main thread."""
        main = len(self.threads) + 1
        numbers = [n for n, thread in enumerate(self.threads, 1) for _ in thread]
        return numbers + [main] * len(self.after + self.before)

    @property
    def waits(self) -> bool:
        """Whether a client may rightly wait for ever."""
        return any(call.op in WAITING for thread in self.threads for call in thread)

    def __str__(self) -> str:
        parts = [f"client{n}: {'; '.join(map(str, t))}" for n, t in enumerate(self.threads, 1)]
        if self.before:
            parts.insert(0, f"first: {'; '.join(map(str, self.before))}")
        if self.after:
            parts.append(f"then: {'; '.join(map(str, self.after))}")
        size = f"maxsize {self.maxsize}: " if self.maxsize else ""
        return size + " | ".join(parts)


class Surface(msgspec.Struct, frozen=True, kw_only=True):
    """What an object can be asked, and how."""

    ways: dict[str, tuple[str, dict[str, Any]]]
    """For each call, the method and its named arguments."""
    leases: bool
    """Whether what is got has to be settled."""
    opens: bool = False
    limit: str = ""
    """The parameter of its factory that is the size, "" if there is none."""
    unlimited: float = 0
    """What that parameter is for a queue without a limit."""
    tasks: bool = False
    """Whether its calls are coroutines, and clients tasks of asyncio."""
    empty: str = ""
    """The exception by which a `get` that does not wait says that there is nothing; "" if it returns None."""

    @property
    def bounded(self) -> bool:
        """Whether its factory takes a size."""
        return bool(self.limit)

    def options(self, maxsize: int) -> dict[str, float]:
        """What its factory is given for a size; 0 is none."""
        size = maxsize or self.unlimited
        return {self.limit: size} if self.limit and size else {}

    def step(self, number: int, call: ClientCall, channel: int) -> tuple[Any, ...]:
        """The call as `play` takes it."""
        method, options = self.ways[call.op]
        if not self.leases:
            return number, method, (call.m,) if call.m else (), options, False, -1
        named = dict(options)
        if call.m:
            named["m"] = call.m
        if "ch" in named:
            named["ch"] = channel
        if call.op in ("nack", "reject") and "requeue" in named:
            named["requeue"] = call.requeue
        return number, method, (), named, call.op == "get", call.which


def surface_of(target: object, factory: Callable[..., object]) -> Surface:
    """What an object can be asked. Raises `ValueError` in one sentence if that is too little."""
    if hasattr(target, "publish"):
        return _leasing(target)
    if isinstance(target, tuple) and _has_ends(target):
        return _two_ends(target, factory)
    get = getter(target)
    if not hasattr(target, "put") or get is None:
        raise ValueError("it has neither put and get nor publish and get, which clients could call")
    tasks = inspect.iscoroutinefunction(get)
    if tasks != inspect.iscoroutinefunction(target.put):
        raise ValueError("one of its put and get is a coroutine and the other is not")
    ways = _forms(target)
    if tasks:
        ways |= _within(ways)
    limit = "maxsize" if "maxsize" in parameters(factory) else ""
    asked = not tasks and not {"get", "get_nowait"} <= ways.keys()
    empty = _when_empty(get) if asked else None
    if empty is not None or "get" not in ways:
        ways["get_nowait"] = ways.pop("get", ("get_nowait", {}))
        if "put_nowait" not in ways and not limit and not tasks and _puts_at_once(target):
            ways["put_nowait"] = ways.pop("put")
    for name in ("task_done", "join"):
        if callable(getattr(target, name, None)) and callable(getattr(target, "task_done", None)):
            ways[name] = (name, {})
    if callable(getattr(target, "shutdown", None)):
        ways["shutdown"] = ("shutdown", {})
    return Surface(ways=ways, leases=False, limit=limit, empty=empty or "", tasks=tasks)


def _has_ends(target: tuple[object, ...]) -> bool:
    return len(target) == 2 and hasattr(target[0], "send") and hasattr(target[1], "receive")


def _two_ends(target: tuple[Any, ...], factory: Callable[..., object]) -> Surface:
    """Two ends of a stream. One without a buffer gives a message from hand to hand: that is no queue, and not made."""
    if not inspect.iscoroutinefunction(target[0].send):
        raise ValueError("its send is no coroutine, and clients of two ends are tasks")
    ways: dict[str, tuple[str, dict[str, Any]]] = {}
    for n, (name, op) in enumerate((("send", "put"), ("receive", "get"))):
        for form in ("", "_nowait"):
            if callable(getattr(target[n], name + form, None)):
                ways[op + form] = (f"{n}.{name}{form}", {})
    limit = next((p for p in ("max_buffer_size", "maxsize") if p in parameters(factory)), "")
    limits = "anyio.fail_after" if type(target[0]).__module__.startswith("anyio.") else WAIT_FOR
    return Surface(
        ways=ways | _within(ways, limits), leases=False, limit=limit, unlimited=inf, tasks=True
    )


WAIT_FOR = "asyncio.wait_for"


def _within(
    ways: dict[str, tuple[str, dict[str, Any]]], limits: str = WAIT_FOR
) -> dict[str, tuple[str, dict[str, Any]]]:
    """`put` and `get` of tasks that are cancelled when their time is over; `limits` is what does that."""
    return {f"{op}_timeout": (ways[op][0], {"within": limits}) for op in ("put", "get")}


def _forms(target: Any) -> dict[str, tuple[str, dict[str, Any]]]:
    """`put` and `get` as they are, without waiting, and within a time, as far as an object has that."""
    ways: dict[str, tuple[str, dict[str, Any]]] = {}
    for name in ("put", "get") if hasattr(target, "get") else ("put",):
        accepted = parameters(getattr(target, name))
        ways[name] = (name, {})
        if callable(getattr(target, f"{name}_nowait", None)):
            ways[f"{name}_nowait"] = (f"{name}_nowait", {})
        elif block := next((b for b in ("block", "blocking") if b in accepted), ""):
            ways[f"{name}_nowait"] = (name, {block: False})
        if "timeout" in accepted:
            ways[f"{name}_timeout"] = (name, {"timeout": 1.0})
    return ways


PROBED = 0.5
"""Seconds after which a call of a single thread is taken to wait for another one."""
PUT_AT_ONCE = 8
"""How many messages an object must have room for: more than small clients put."""


def _alone(call: Callable[[], object]) -> list[object]:
    """What a call of a single thread returned or raised; nothing if it waits. Its thread is left behind then."""
    ended: list[object] = []

    def made() -> None:
        try:
            ended.append(call())
        except Exception as error:
            ended.append(error)

    thread = threading.Thread(target=made, daemon=True)
    thread.start()
    thread.join(PROBED)
    return ended


def _when_empty(get: Callable[[], object]) -> str | None:
    """By which exception an object says that there is nothing, "" if by None; None if its `get` waits then."""
    ended = _alone(get)
    if ended == [None]:
        return ""
    return type(ended[0]).__name__ if ended and isinstance(ended[0], LookupError | Empty) else None


def _puts_at_once(target: Any) -> bool:
    """Whether a `put` of an object without a limit does not wait."""
    return all(_alone(partial(target.put, f"m{n}")) == [None] for n in range(PUT_AT_ONCE))


def _leasing(target: object) -> Surface:
    can = declared(target)
    if not {"publish", "get"} <= can:
        raise ValueError("it cannot both publish and get, and what is pushed is not looked at here")
    ways: dict[str, tuple[str, dict[str, Any]]] = {}
    for op in ("publish", "get", "ack", "nack", "reject"):
        if op in can:
            accepted = parameters(getattr(target, op))
            given: dict[str, Any] = {"ch": 0, "q": QUEUE, "autoack": False, "requeue": True}
            ways[op] = (op, {name: given[name] for name in given if name in accepted})
    return Surface(ways=ways, leases=True, opens="open" in can)


def parameters(function: Callable[..., object]) -> frozenset[str]:
    """The names of a function's parameters, none if they cannot be known."""
    try:
        return frozenset(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return frozenset()


def shapes(surface: Surface) -> list[Clients]:
    """Clients of the shapes in which queues are known to fail, as far as the object can be asked so."""
    made = []
    for text, sizes in SHAPES:
        threads, number = [], 0
        first, _, rest = text.rpartition(" > ")
        for part in (first, *rest.split(" | ")):
            thread = []
            for op in part.split():
                which = 0 if op in ("ack", "nack", "reject") else -1
                m = f"m{number}" if op in PUTS else ""
                thread.append(ClientCall(op=op, m=m, which=which))
                number += op in PUTS
            threads.append(tuple(thread))
        if all(call.op in surface.ways for thread in threads for call in thread):
            before, *clients = threads
            made += [
                completed(surface, Clients(threads=tuple(clients), before=before, maxsize=size))
                for size in (sizes if surface.bounded else (0,))
            ]
    return made


def drawn(surface: Surface, seed: int, n: int) -> Clients:
    """The n-th clients: few calls at first, and more with time."""
    chance = random.Random(f"{seed}/{n}")
    size = 2 + bisect.bisect_right(GROWTH, n)
    threads = 3 if size > 2 and chance.random() < 0.5 else 2
    calls = [1] * threads
    for _ in range(size - threads):
        calls[chance.randrange(threads)] += 1
    if surface.leases:
        return _drawn_leases(surface, chance, calls)
    return _drawn_puts(surface, chance, calls)


def _drawn_puts(surface: Surface, chance: random.Random, calls: list[int]) -> Clients:
    waits = chance.random() < 0.6
    numbers = list(range(sum(calls)))
    chance.shuffle(numbers)  # for queues that have an order of their own
    kinds = ["put", "put", "get", "get"] + [k for k in ("shutdown",) if k in surface.ways]
    if "join" in surface.ways:
        kinds += ["done"]
    threads = []
    for count in calls:
        thread: list[ClientCall] = []
        for _ in range(count):
            kind = chance.choice(kinds)
            if kind == "done":
                op = "task_done" if not waits or chance.random() < 0.6 else "join"
            elif kind in ("put", "get"):
                forms = [
                    f for f in (kind, f"{kind}_nowait", f"{kind}_timeout") if f in surface.ways
                ]
                if not waits and len(forms) > 1:
                    forms = forms[1:]
                op = chance.choice(forms)
            else:
                op = kind
            thread.append(ClientCall(op=op, m=f"m{numbers.pop()}" if op in PUTS else ""))
        threads.append(tuple(thread))
    maxsize = chance.choice((0, 1, 1, 2)) if surface.bounded else 0
    return completed(surface, Clients(threads=tuple(threads), maxsize=maxsize))


def _drawn_leases(surface: Surface, chance: random.Random, calls: list[int]) -> Clients:
    settling = [op for op in ("ack", "nack", "reject") if op in surface.ways]
    threads, number = [], 0
    for count in calls:
        thread: list[ClientCall] = []
        for _ in range(count):
            got = any(call.op == "get" for call in thread)
            op = chance.choice(["publish", "get", *(settling if got else ())])
            if op == "publish":
                thread.append(ClientCall(op=op, m=f"m{number}"))
                number += 1
            elif op == "get":
                thread.append(ClientCall(op=op))
            else:
                requeue = chance.random() < 0.7
                thread.append(ClientCall(op=op, which=chance.randrange(2), requeue=requeue))
        threads.append(tuple(thread))
    return completed(surface, Clients(threads=tuple(threads)))


def completed(surface: Surface, clients: Clients) -> Clients:
    """The same with what is left taken out afterwards, if nobody can wait for ever."""
    get = "get" if surface.leases else "get_nowait"
    waits = not surface.leases and clients.waits
    if waits or get not in surface.ways:
        return msgspec.structs.replace(clients, after=())
    puts = sum(call.op in PUTS for thread in (*clients.threads, clients.before) for call in thread)
    return msgspec.structs.replace(clients, after=(ClientCall(op=get),) * (puts + 1))


def smaller(surface: Surface, clients: Clients) -> Iterator[Clients]:
    """The same with a client less, with a call less, or without a limit."""
    threads = clients.threads
    for n in range(len(threads)):
        if len(threads) > 2:
            yield _with(surface, clients, threads[:n] + threads[n + 1 :])
    for n, thread in enumerate(threads):
        for k in range(len(thread)):
            if len(thread) > 1:
                less = thread[:k] + thread[k + 1 :]
                yield _with(surface, clients, (*threads[:n], less, *threads[n + 1 :]))
    if clients.maxsize:
        yield msgspec.structs.replace(clients, maxsize=0)


def _with(
    surface: Surface, clients: Clients, threads: tuple[tuple[ClientCall, ...], ...]
) -> Clients:
    return completed(surface, msgspec.structs.replace(clients, threads=threads))


def worth_running(clients: Clients) -> bool:
    """Whether something can be said of them: somebody puts, and somebody takes."""
    ops = {call.op for call in clients.calls}
    return bool(ops & set(PUTS)) and bool(ops & {*GETS, "join"})


class SavedClients(msgspec.Struct, frozen=True, kw_only=True):
    """A case as it is kept: clients, and the schedule in which they show a violation."""

    schema: str = SCHEMA
    factory: str
    clients: Clients
    token: str
    modules: tuple[str, ...] = ()
    profile: str = ""
    violates: str = ""
    why: str = ""


def write_clients(path: Path, saved: SavedClients) -> None:
    """Save a case."""
    write_whole(path, msgspec.json.format(encoded(saved), indent=1) + b"\n", ours=True)


def read_clients(path: Path) -> SavedClients:
    """A saved case. Raises `ScriptError`."""
    saved = read_document(path, SavedClients, "no clients", ScriptError)
    if saved.schema != SCHEMA:
        raise ScriptError(f"{path}: field schema: {saved.schema!r} is not {SCHEMA!r}")
    return saved
