"""One history judged by several processes, each by a share of the properties.

This process reads the lines and completes the events, which is a fold from one to the next, and sends each block to the
others. Each of them judges as it does alone, so the findings are the same, whoever makes them.
Parquet is judged by threads instead: see `threads`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import msgspec

from seriatim_models.pipeline.audit.block_process import BlockProcess
from seriatim_models.properties.base import AnyProperty
from seriatim_models.properties.blackbox.lifecycle import LifecycleProperty
from seriatim_models.properties.columnar.evaluator import Evaluation, Share
from seriatim_models.properties.columnar.second_look import SecondLook, decoded

ENOUGH = 2**23
"""Bytes of a file that are worth a second process, which takes a few tenths of a second to begin."""
MOST = 3
"""More processes gain nothing: then reading and completing is what the others wait for."""

_READING, _RECEIVING, _LIFECYCLES, _COLUMNS, _OF_QUEUES, _OF_CONNECTIONS = 6, 1, 3, 2, 1.7, 0.7
"""What takes how long, in microseconds an event of a recording of RabbitMQ: reading and completing, receiving it, the
pre-filter, the columns, and each property that is judged row by row."""


def divided(properties: Sequence[AnyProperty], jobs: int) -> list[list[int]]:
    """The numbers of properties that each process but this one judges by, so that all take about as long.

    What a user wrote is judged in this process, where it was imported.
    """
    together: dict[str, list[int]] = {}
    """By number, or by what is made once for several."""
    costs: dict[str, float] = {}
    for n, p in enumerate(properties):
        if ours(p):
            name, cost = _cost(p)
            together.setdefault(name or str(n), []).append(n)
            costs[name or str(n)] = cost
    loads = [float(_READING), *[float(_RECEIVING)] * (min(jobs, MOST) - 1)]
    shares: list[list[int]] = [[] for _ in loads]
    for name, cost in sorted(costs.items(), key=lambda of: -of[1]):
        least = loads.index(min(loads))
        loads[least] += cost
        shares[least] += together[name]
    return [sorted(of) for of in shares[1:] if of]


def ours(p: AnyProperty) -> bool:
    """Whether another process can import it, whatever this one has imported."""
    return type(p).__module__.startswith("seriatim_models.")


def _cost(p: AnyProperty) -> tuple[str, float]:
    """What others share with a property, and what that or it costs."""
    if isinstance(p, LifecycleProperty) and p.prefiltered:
        return "lifecycles", _LIFECYCLES
    if p.own("column_check"):
        return "columns", _COLUMNS
    if p.case_events is not None:
        return "", 0
    return "", _OF_CONNECTIONS if p.scope == "connection" else _OF_QUEUES


class Shares:
    """See `evaluator.Elsewhere`."""

    def __init__(self, shares: Sequence[Sequence[int]], properties: Sequence[AnyProperty]) -> None:
        self.shares = shares
        self.processes = [
            BlockProcess(partial(judged, [properties[n] for n in share]), DOES) for share in shares
        ]

    def take(self, block: bytes) -> None:
        """Send the next completed events, `encoded`. Waits for a process that does not keep up."""
        for process in self.processes:
            process.send(block)

    def end(self) -> None:
        """Say that those were all."""
        self.take(b"")

    def judged(self) -> list[Share]:
        """What each share comes to, after the end."""
        return [msgspec.msgpack.decode(p.answer(), type=Share) for p in self.processes]


DOES = "judged some of the properties"


@contextmanager
def shares(properties: Sequence[AnyProperty], jobs: int, nbytes: int) -> Iterator[Shares | None]:
    """Processes for a file of so many bytes, which are ended behind the body; None if this one judges alone."""
    parts = divided(properties, jobs) if jobs > 1 and nbytes >= ENOUGH else []
    if not parts:
        yield None
        return
    found = Shares(parts, properties)
    try:
        yield found
    finally:
        for process in found.processes:
            process.kill()


def judged(properties: Sequence[AnyProperty], blocks: Iterable[bytes]) -> bytes:
    """The `Share` of some properties, in a process of its own."""
    with SecondLook() as again:
        evaluation = Evaluation(properties, again)
        for raw in blocks:
            evaluation.take(decoded(raw), raw)
        return msgspec.msgpack.encode(evaluation.finish())
