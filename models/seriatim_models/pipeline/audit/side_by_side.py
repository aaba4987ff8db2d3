"""One history judged by several processes, each by a share of the properties.

This process reads the lines and completes the events, which is a fold from one to the next, and sends each block to the
others. Each of them judges as it does alone, so the findings are the same, whoever makes them.
Parquet is read by each of them instead: see `one_pass.judged`.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

import msgspec

from seriatim_models.explorer.search.child_process import (
    end_with,
    leave_to_parent,
    shielded,
)
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.pipeline.garbage import rare_collections
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
        context = get_context("spawn")
        self._blocks: list[Connection] = []
        self._answers: list[Connection] = []
        self.processes: list[SpawnProcess] = []
        for share in shares:
            # Two pipes: what a process says is not lost when it ends before all is read that was sent to it.
            reads, writes = context.Pipe(duplex=False)
            hears, answers = context.Pipe(duplex=False)
            of = [properties[n] for n in share]
            process = context.Process(target=_judge, args=(os.getpid(), of, reads, answers))
            with shielded():
                process.start()
            reads.close()
            answers.close()
            self._blocks.append(writes)
            self._answers.append(hears)
            self.processes.append(process)

    def take(self, block: bytes) -> None:
        """Send the next completed events, `encoded`. Waits for a process that does not keep up."""
        for n, blocks in enumerate(self._blocks):
            try:
                blocks.send_bytes(block)
            except OSError:
                self._answer(n)
                raise

    def end(self) -> None:
        """Say that those were all."""
        self.take(b"")

    def judged(self) -> list[Share]:
        """What each share comes to, after the end."""
        return [self._answer(n) for n in range(len(self.shares))]

    def _answer(self, n: int) -> Share:
        """Raises `PipelineError` if a process ended before it answered, and what it raised."""
        try:
            answer = msgspec.msgpack.decode(
                self._answers[n].recv_bytes(), type=Share | ShareFailure
            )
        except (EOFError, OSError) as error:
            raise PipelineError(ENDED) from error
        if isinstance(answer, ShareFailure):
            raise OSError(*answer.of_system) if answer.of_system else RuntimeError(answer.trace)
        return answer


ENDED = "a process that judged some of the properties has ended: was it killed, or out of memory?"


class ShareFailure(msgspec.Struct, tag=True):
    """What ended a process."""

    of_system: tuple[int, str] | None
    """Of an `OSError`, as that there is no room for the second look, its number and text."""
    trace: str


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
        for process in found.processes:
            process.join()


# In the other processes:


@rare_collections()
def _judge(
    parent: int, properties: Sequence[AnyProperty], blocks: Connection, answers: Connection
) -> None:
    leave_to_parent()
    end_with(parent)
    try:
        with SecondLook() as again:
            evaluation = Evaluation(properties, again)
            while raw := blocks.recv_bytes():
                evaluation.take(decoded(raw), raw)
            answer: Share | ShareFailure = evaluation.finish()
    except OSError as error:
        answer = ShareFailure((error.errno or 0, error.strerror or ""), "")
    except Exception:
        answer = ShareFailure(None, traceback.format_exc())
    answers.send_bytes(msgspec.msgpack.encode(answer))
