"""The clients as a test of ordinary Python: the explorer executes this file anew in each execution.

It is observed like the code under test: what it shares between threads is the object, and nothing else.
"""

from __future__ import annotations

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
) -> None:
    """Make the object, let the clients use it, and take out what is left.

    Clients that may wait for ever (`waits`) are daemons, and nothing comes after them. `empty` names the exception by
    which a `get` says that there is nothing, if it is none of those that libraries have for it.
    """
    found: Any = __import__(module, fromlist=["factory"])
    for part in factory.split("."):
        found = getattr(found, part)
    target = found(**options)
    for channel in opened:
        target.open(ch=channel)
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
            value = getattr(target, method)(*args, **named)
        except Exception as error:
            if not refused(number, error, empty if method == "get" else ""):
                raise
        else:
            taken, dtag = answered(number, value)
            if keeps and taken:
                held.append((taken, dtag))
