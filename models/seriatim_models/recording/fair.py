"""Events of the fair consumer, `seriatim.fair`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from seriatim.fair import FairConsumer, Slot
from seriatim_models.recording.base import (
    CellEvents,
    OperationEvents,
    Record,
    Recording,
)
from seriatim_models.watched import Change, WatchedHost

D = TypeVar("D")


def sleep(record: Record, method: Callable[..., None], consumer: FairConsumer[Any]) -> None:
    """Record ``park`` and ``unpark``: the loop sleeps between them."""
    record("park")
    method(consumer)
    record("unpark")


def take(
    record: Record,
    method: Callable[..., tuple[D, int] | None],
    consumer: FairConsumer[D],
    slot: Slot[D],
    quantum: int,
) -> tuple[D, int] | None:
    """Record ``take``, or ``visit`` if the visit ends because nothing waits or the deficit does not pay for it."""
    taken = method(consumer, slot, quantum)
    if taken is None:
        record("visit", slot=slot.name, deficit=slot.deficit, empty=not slot.waiting)
    else:
        record("take", slot=slot.name, weight=taken[1])
    return taken


def handle(
    record: Record, method: Callable[..., Exception | None], *args: object
) -> Exception | None:
    """Record ``failed``, if the handler raised."""
    error = method(*args)
    if error is not None:
        record("failed", error=repr(error))
    return error


def going_round(record: Record, method: Callable[..., None], consumer: FairConsumer[Any]) -> None:
    """Record ``round``, and ``interrupted`` if an error, or a handler that exits, ends it."""
    record("round")
    try:
        method(consumer)
    except (Exception, SystemExit):
        record("interrupted")
        raise


def asked_to_end(record: Record, owner: object, change: Change[bool]) -> None:
    """Record ``stopping`` when the flag is set for the first time."""
    if change.new and not change.old:
        record("stopping")


CELLS: dict[str, CellEvents] = {"stopping": asked_to_end}
"""What records the changes of the fair consumer's one cell."""

OPERATIONS: dict[str, OperationEvents] = {
    "FairConsumer._sleep": sleep,
    "FairConsumer.round": going_round,
    "FairConsumer._take": take,
    "FairConsumer._handle": handle,
}
"""What records each operation, by the method's name."""


def recorded(host: WatchedHost) -> Recording:
    """Return a host that records what fair consumers on it do."""
    return Recording(host, CELLS, OPERATIONS)
