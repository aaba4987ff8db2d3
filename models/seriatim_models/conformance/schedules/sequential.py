"""A queue as one thread sees it: what each call gives, and which calls have to wait.

The explorer's search for a linearization asks it (`explorer.linearize`). A call that has to wait raises `Waits`, which
no real call answers: so a call that returned has an order in which it need not wait, and a client that waits for ever
is right only where every such order ends in a state in which it must.
"""

from __future__ import annotations

import bisect
import inspect
from asyncio import run, wait_for
from collections.abc import Callable
from typing import Any

from seriatim_models.conformance.schedules.play import method_of

FIFO, LIFO, LEAST = ORDERS = ("first in, first out", "last in, first out", "least first")


class Waits(RuntimeError):
    """The call has to wait."""


class QueueEmpty(LookupError):
    """There is nothing."""


class QueueFull(LookupError):
    """There is no room."""


class QueueShutDown(RuntimeError):
    """The queue was shut down."""


class Sequential:
    """A queue of `order` with room for `maxsize` (0: without limit), as `queue.Queue` documents it."""

    def __init__(self, order: str, maxsize: int = 0) -> None:
        self.order = order
        self.maxsize = maxsize
        self.items: list[str] = []
        self.unfinished = 0
        self.over = False

    def put(self, m: str, otherwise: type[Exception] = Waits) -> None:
        """Wait for room, and put."""
        if self.over:
            raise QueueShutDown
        if 0 < self.maxsize <= len(self.items):
            raise otherwise
        if self.order == LEAST:
            bisect.insort(self.items, m)
        else:
            self.items.append(m)
        self.unfinished += 1

    def put_nowait(self, m: str) -> None:
        """Put, if there is room."""
        self.put(m, QueueFull)

    def get(self, otherwise: type[Exception] = Waits) -> str:
        """Wait for a message, and take it."""
        if not self.items:
            raise QueueShutDown if self.over else otherwise
        return self.items.pop(-1 if self.order == LIFO else 0)

    def get_nowait(self) -> str:
        """Take a message, if there is one."""
        return self.get(QueueEmpty)

    put_timeout, get_timeout = put_nowait, get_nowait

    def task_done(self) -> None:
        """One message less of those that are worked on."""
        if self.unfinished <= 0:
            raise ValueError
        self.unfinished -= 1

    def join(self) -> None:
        """Wait until none is worked on."""
        if self.unfinished:
            raise Waits

    def shutdown(self) -> None:
        """Let nobody put any more."""
        self.over = True


def order_of(make: Callable[[], Any], put: str = "put", get: str = "get") -> str:
    """Which of `ORDERS` an object has, by what one thread or task is given; "" for none of them."""

    async def in_turn() -> list[object]:
        target = make()
        found: list[object] = []
        for name, *args in ((put, "m1"), (put, "m2"), (put, "m0"), (get,), (get,), (get,)):
            value: Any = method_of(target, name)(*args)
            found.append(await wait_for(value, 1.0) if inspect.isawaitable(value) else value)
        return found[3:]

    try:
        found = run(in_turn())
    except Exception:
        return ""
    seen = (["m1", "m2", "m0"], ["m0", "m2", "m1"], ["m0", "m1", "m2"])
    return ORDERS[seen.index(found)] if found in seen else ""
