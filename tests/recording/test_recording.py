"""A host that records: the kinds and operations it knows, in the step of the change, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from seriatim.host import Host, operation
from seriatim_models.explorer import World, explore
from seriatim_models.recording.base import Record, Recording
from seriatim_models.watched import Change, WatchedThreads


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
    counter = Counter(
        recorded(WatchedThreads(lambda t, thread, ev, args: events.append((ev, args))))
    )
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
    counter = Counter(WatchedThreads(lambda *event: events.append(event)))
    assert counter.rise(2) == 2
    assert counter.value.get() == counter.other.get() == 2
    assert not events


def test_a_watcher_of_real_threads_sees_each_change_once_in_order() -> None:
    seen: list[tuple[str, int, int, bool]] = []
    cell = WatchedThreads().cell(1, watch=lambda c: seen.append((c.op, c.old, c.new, c.ok)))
    assert not cell.compare_and_set(2, 3)
    assert cell.compare_and_set(1, 2)
    assert cell.get_and_set(5) == 2
    assert cell.get_and_add(2) == 5
    cell.add(1)
    cell.set(0)
    assert cell.get() == 0
    assert seen == [
        ("cas", 1, 3, False),
        ("cas", 1, 2, True),
        ("swap", 2, 5, True),
        ("add", 5, 7, True),
        ("add", 7, 8, True),
        ("set", 8, 0, True),
    ]


def test_nobody_reads_a_change_of_real_threads_that_is_not_recorded_yet() -> None:
    watching, go_on = threading.Event(), threading.Event()

    def watch(change: Change[int]) -> None:
        watching.set()
        go_on.wait(60)

    cell = WatchedThreads().cell(0, watch=watch)
    read: list[int] = []
    writer = threading.Thread(target=cell.set, args=(1,), daemon=True)
    reader = threading.Thread(target=lambda: read.append(cell.get()), daemon=True)
    writer.start()
    assert watching.wait(60)
    reader.start()
    reader.join(0.1)
    assert not read
    go_on.set()
    reader.join(60)
    assert read == [1]


def test_a_sink_gets_time_thread_event_and_fields() -> None:
    got: list[tuple[int, str, str, dict[str, object]]] = []
    host = WatchedThreads(lambda *event: got.append(event))
    before = host.now()
    host.record("x", a=1)
    [(at, who, ev, fields)] = got
    assert (who, ev, fields) == (threading.current_thread().name, "x", {"a": 1})
    assert before <= at <= host.now()
    WatchedThreads().record("nobody listens")


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
    inner = recorded(WatchedThreads(lambda t, thread, ev, args: events.append(ev)))
    counter = Counter(Recording(inner, {}, {}))
    counter.rise(1)
    assert events == ["rise", "value", "rise"]
