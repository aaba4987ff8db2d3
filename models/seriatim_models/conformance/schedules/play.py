"""The clients as a test of ordinary Python: the explorer executes this file anew in each execution.

It is observed like the code under test: what it shares between threads is the object, and nothing else.
"""

from __future__ import annotations

import inspect
import threading
from typing import Any

from seriatim_models.conformance.schedules.marks import answered, invoked, refused

Step = tuple[int, str, tuple[Any, ...], dict[str, Any], bool, int]
"""Number, method, arguments, named arguments, whether a delivery is kept, which of those kept is settled (or -1)."""


def play(
    module: str,
    factory: str,
    options: dict[str, Any],
    opened: tuple[int, ...],
    clients: tuple[tuple[Step, ...], ...],
    after: tuple[Step, ...],
    waits: bool,
    empty: str = "",
    before: tuple[Step, ...] = (),
) -> None:
    """Make the object, call what comes `before` the clients, let the clients use it, and take out what is left.

    Clients that may wait for ever (`waits`) are daemons, and nothing comes after them. `empty` names the exception by
    which a `get` says that there is nothing, if it is none of those that libraries have for it.
    """
    target = made(module, factory, options)
    for channel in opened:
        target.open(ch=channel)
    client(target, before, empty)
    threads = [
        threading.Thread(
            target=client, args=(target, steps, empty), name=f"client{n}", daemon=waits
        )
        for n, steps in enumerate(clients, 1)
    ]
    for thread in threads:
        thread.start()
    if not waits:
        for thread in threads:
            thread.join()
        client(target, after, empty)


def made(module: str, factory: str, options: dict[str, Any]) -> Any:
    """The object that the factory of a module makes."""
    found: Any = __import__(module, fromlist=["factory"])
    for part in factory.split("."):
        found = getattr(found, part)
    return found(**options)


def method_of(target: Any, name: str) -> Any:
    """A method by its name; ``0.send`` is the method `send` of the first of two ends."""
    end, _, method = name.rpartition(".")
    return getattr(target[int(end)] if end else target, method)


def client(target: Any, steps: tuple[Step, ...], empty: str) -> None:
    """Make the calls one after the other; each settlement is of a message that this client holds."""
    held: list[Any] = []
    for number, method, args, options, keeps, which in steps:
        m = args[0] if args and isinstance(args[0], str) else ""
        named = dict(options)
        if which >= 0:
            if not held:
                continue
            m, named["dtag"] = held.pop(which % len(held))
        invoked(number, m, named.get("dtag"))
        try:
            value = method_of(target, method)(*args, **named)
        except Exception as error:
            silent = empty if method in ("get", "get_nowait") else ""
            if not refused(number, error, silent, puts=bool(m)):
                raise
        else:
            taken, dtag = answered(number, value)
            if keeps and taken:
                held.append((taken, dtag))


async def play_tasks(
    module: str,
    factory: str,
    options: dict[str, Any],
    clients: tuple[tuple[Step, ...], ...],
    after: tuple[Step, ...],
    waits: bool,
) -> None:
    """The same with tasks of asyncio: let them use the object until nobody can go on, and take out what is left.

    Tasks alone have one schedule. So each sleeps before each call: sleeps end in any order and between any two turns of
    the loop, which is whatever else a program does between its calls. A time limit that runs out cancels the call.
    Clients that may wait for ever (`waits`) are left waiting, and nothing comes after them.
    """
    import asyncio  # here, since threads do not need it, and it is executed anew in each execution

    target = made(module, factory, options)
    loop: Any = asyncio.get_running_loop()
    rest = loop.create_future()
    loop.when_at_rest(lambda: rest.set_result(None))
    running = [
        asyncio.create_task(task(target, steps, rest), name=f"client{n}")
        for n, steps in enumerate(clients, 1)
    ]
    await rest
    for one in running:
        if one.done() or not waits:
            await one
    if not waits:
        await task(target, after)


async def task(target: Any, steps: tuple[Step, ...], rest: Any = None) -> None:
    """Make the calls one after the other; before `rest` each after a sleep, and none is answered afterwards."""
    import asyncio

    for number, method, args, options, _, _ in steps:
        if rest is not None:
            await asyncio.sleep(1)
        named = dict(options)
        within = named.pop("within", None)
        m = args[0] if args else ""
        invoked(number, m)
        try:
            value = method_of(target, method)(*args, **named)
            if within == "asyncio.wait_for":
                value = await asyncio.wait_for(value, 1)
            elif within == "anyio.fail_after":
                with __import__("anyio").fail_after(1):
                    value = await value
            elif inspect.isawaitable(value):
                value = await value
        except Exception as error:
            if not refused(number, error, puts=bool(m)):
                raise
        else:
            if rest is None or not rest.done():
                answered(number, value)
