"""Histories of a FIFO queue for the bench: clients that enqueue and dequeue, one operation at a time each.

An operation takes effect at one instant inside its interval, so that the history is linearizable by construction;
with a fault, two values far apart come out in each other's place.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from seriatim_models.history import Event

EMPTY = -1


@dataclass(frozen=True)
class QueueOperation:
    """`value` is what was enqueued or dequeued; `EMPTY` if the queue was found empty."""

    client: int
    enqueue: bool
    value: int
    call: int
    back: int

    @property
    def line(self) -> str:
        """The operation as one line of text: client, kind, value, call, return."""
        kind = "enq" if self.enqueue else "deq"
        return f"{self.client} {kind} {self.value} {self.call} {self.back}\n"


def operations(
    n: int, clients: int, seed: int = 0, *, depth: int = 3, think: int = 3000, fault: bool = False
) -> list[QueueOperation]:
    """So many operations, in the order in which they took effect.

    An operation lasts up to 2000 ticks, and `think` ticks at most pass between two of one client;
    the queue is about `depth` long.
    """
    chance = random.Random(seed)
    queue: deque[int] = deque()
    made: list[QueueOperation] = []
    value = 0
    # (instant of effect, client, call): each client has one operation under way.
    under_way = [_next(chance, client, 0, think) for client in range(clients)]
    heapq.heapify(under_way)
    for _ in range(n):
        at, client, call = heapq.heappop(under_way)
        back = at + chance.randrange(1, 1000)
        enqueue = chance.random() < (0.6 if len(queue) < depth else 0.4)
        if enqueue:
            value += 1
            queue.append(value)
            made.append(QueueOperation(client, True, value, call, back))
        else:
            got = queue.popleft() if queue else EMPTY
            made.append(QueueOperation(client, False, got, call, back))
        heapq.heappush(under_way, _next(chance, client, back, think))
    if fault:
        _swap(made)
    return made


def _next(chance: random.Random, client: int, after: int, think: int) -> tuple[int, int, int]:
    call = after + chance.randrange(1, think)
    return call + chance.randrange(1, 1000), client, call


def _swap(made: list[QueueOperation]) -> None:
    """Let two dequeues near the end get each other's value: far enough apart that no overlap explains it."""
    taken = [k for k, o in enumerate(made) if not o.enqueue and o.value != EMPTY]
    late = taken[-1]
    early = next(k for k in reversed(taken) if made[k].back + 10_000 < made[late].call)
    made[early], made[late] = (
        replace(made[early], value=made[late].value),
        replace(made[late], value=made[early].value),
    )


def events(made: list[QueueOperation]) -> Iterator[Event]:
    """The same as a history: an invocation and a completion for each operation, in the order of the clock."""
    ends = [(o.call, 0, n, o) for n, o in enumerate(made)]
    ends += [(o.back, 1, n, o) for n, o in enumerate(made)]
    ends.sort(key=lambda e: e[:3])
    for i, (t, end, n, o) in enumerate(ends):
        client = f"c{o.client}"
        known = o.value != EMPTY and (o.enqueue or end)
        yield Event(
            i=i,
            ev="publish" if o.enqueue else "get",
            lvl="api",
            clk="ticks",
            t=t,
            proc=client,
            conn=client,
            ch=1,
            ph="ok" if end else "invoke",
            op=n,
            q="q",
            m=f"m{o.value}" if known else "",
            autoack=None if o.enqueue else True,
        )


def write_lines(made: list[QueueOperation], path: Path) -> None:
    """One operation a line, as checkers of operations want them: client, kind, value, call, return."""
    path.write_text("".join(o.line for o in made), encoding="utf-8")
