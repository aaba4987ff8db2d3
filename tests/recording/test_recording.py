"""A host that records: the kinds and operations it knows, in the step of the change, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from seriatim.host import Change, Host, Threads, operation
from seriatim_models.explorer import World, explore
from seriatim_models.recording.base import Record, Recording


class Counter:
    """A thing with one cell and two operations."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.value = host.cell(0, "value", kind="value", owner=self)
        self.other = host.cell(0, "other", kind="other", owner=self)

    @operation
    def rise(self, by: int, *, upto: int = 10) -> int:
        if by > upto:
            raise ValueError(f"{by} is too much")
        self.value.add(by)
        self.other.add(by)
        return by

    @operation
    def unknown(self) -> str:
        return "unknown"


def changed(record: Record, owner: Counter, change: Change[int]) -> None:
    record("value", type=type(owner).__name__, old=change.old, new=change.new)


def risen(record: Record, rise: Callable[..., int], counter: Counter, by: int, **more: Any) -> int:
    record("rise", ph="invoke", by=by)
    try:
        result = rise(counter, by, **more)
    except ValueError as error:
        record("rise", ph="fail", why=str(error))
        raise
    record("rise", ph="ok", got=result)
    return result


def recorded(inner: Any) -> Recording:
    return Recording(inner, {"value": changed}, {"Counter.rise": risen})


EVENTS: list[tuple[str, dict[str, object]]] = [
    ("rise", {"ph": "invoke", "by": 2}),
    ("value", {"type": "Counter", "old": 0, "new": 2}),
    ("rise", {"ph": "ok", "got": 2}),
]


def test_cells_and_operations_become_events() -> None:
    events: list[tuple[str, dict[str, object]]] = []
    counter = Counter(recorded(Threads(lambda t, thread, ev, args: events.append((ev, args)))))
    assert counter.rise(2, upto=3) == 2
    assert events == EVENTS
    assert counter.unknown() == "unknown"
    with pytest.raises(ValueError, match="too much"):
        counter.rise(5, upto=3)
    assert events[3:] == [
        ("rise", {"ph": "invoke", "by": 5}),
        ("rise", {"ph": "fail", "why": "5 is too much"}),
    ]


def test_a_host_that_records_nothing_performs_all_the_same() -> None:
    events: list[object] = []
    counter = Counter(Threads(lambda *event: events.append(event)))
    assert counter.rise(2) == 2
    assert counter.value.get() == counter.other.get() == 2
    assert not events


def test_a_change_is_recorded_in_its_own_step() -> None:
    steps: list[list[int]] = []

    def program(world: World) -> None:
        counter = Counter(recorded(world.host))
        world.spawn(lambda: counter.rise(2), name="A")
        world.at_end(lambda: steps.append([r.step for r in world.records]))

    explored = explore(program)
    assert explored.verdict == "ok", explored.why
    assert steps == [[1, 1, 2]]


def test_recordings_can_be_nested() -> None:
    events: list[str] = []
    inner = recorded(Threads(lambda t, thread, ev, args: events.append(ev)))
    counter = Counter(Recording(inner, {}, {}))
    counter.rise(1)
    assert events == ["rise", "value", "rise"]
