"""Hosts whose cells can be watched: what a host that records has below it, and real threads as one of them.

The references know nothing of this: they ask `seriatim.host.Host`, whose cells have no watchers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Generic, NamedTuple, Protocol, TypeVar

from seriatim.host import Cell, Host, Threads, _ThreadCell

T = TypeVar("T")


class Change(NamedTuple, Generic[T]):
    """One write, or failed compare-and-set, on a cell, as a `Watch` function sees it.

    `op` is ``set``, ``cas``, ``swap`` or ``add``; `old` is the value found in the cell
    and `new` the value written, or, when `ok` is false, the value that was not written.
    """

    op: str
    old: T
    new: T
    ok: bool


Watch = Callable[[Change[T]], None]
"""Called inside the atomic step that changed the cell, so that what it records is in the order of the changes."""


class RecordingWatch(partial[None]):
    """A `Watch` that does nothing but record.

    A host that takes steps again whose records it has kept need not call it.
    """


class WatchedHost(Host, Protocol):
    """A host whose cells can be watched: what a host that records has below it."""

    def cell(
        self,
        value: T,
        name: str = "",
        *,
        kind: str = "",
        owner: object = None,
        watch: Watch[T] | None = None,
    ) -> Cell[T]:
        """As `Host.cell`; `watch`, if it is given, is called inside the atomic step of each change."""

    def keeps(self) -> bool:
        """Whether what is recorded now is kept. A host that takes steps again may have kept it before."""


class _WatchedCell(_ThreadCell[T]):
    """A cell of real threads with a watcher, which is called before anybody sees the change."""

    __slots__ = ("_changing", "_watch")

    def __init__(self, value: T, watch: Watch[T]) -> None:
        super().__init__(value)
        self._changing = threading.Lock()
        self._watch = watch

    def get(self) -> T:
        with self._changing:
            return super().get()

    def set(self, value: T) -> None:
        with self._changing:
            self._watch(Change("set", super().get_and_set(value), value, True))

    def get_and_set(self, value: T) -> T:
        with self._changing:
            old = super().get_and_set(value)
            self._watch(Change("swap", old, value, True))
            return old

    def compare_and_set(self, expected: T, new: T) -> bool:
        with self._changing:
            old = super().get()
            ok = super().compare_and_set(expected, new)
            self._watch(Change("cas", old, new, ok))
            return ok

    def get_and_add(self: _WatchedCell[int], amount: int) -> int:
        with self._changing:
            old = super().get_and_add(amount)
            self._watch(Change("add", old, old + amount, True))
            return old


Sink = Callable[[int, str, str, dict[str, object]], None]
"""Receives (time in ns, thread name, event, fields) in the order in which things happened."""


class WatchedThreads(Threads):
    """Real threads whose cells can be watched. A `sink` receives what the reference records."""

    def __init__(self, sink: Sink = lambda *event: None) -> None:
        self._sink = sink

    def cell(
        self,
        value: T,
        name: str = "",
        *,
        kind: str = "",
        owner: object = None,
        watch: Watch[T] | None = None,
    ) -> Cell[T]:
        """As `WatchedHost.cell`."""
        return _ThreadCell(value) if watch is None else _WatchedCell(value, watch)

    def keeps(self) -> bool:
        """Always: every event is given to the sink."""
        return True

    def record(self, ev: str, /, **args: object) -> None:
        """Give the event to the sink."""
        self._sink(self.now(), threading.current_thread().name, ev, args)
