"""Everything that the reference does to shared objects, one after another, while the explorer runs it.

A program is given this instead of its world. Each operation is passed on, is one step as ever,
and is written down with its thread, the object that owns the cell, and the value read or written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, ParamSpec, Self, TypeVar, cast

from seriatim_models.explorer import World
from seriatim_models.explorer.model.world import ControlledCell, ControlledLock, ControlledSemaphore
from seriatim_models.watched import Watch

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")


WRITES = frozenset({"set", "exchange", "cas", "add", "acquire", "release"})


@dataclass(slots=True)
class HostOperation:
    """One operation, or something that was put on record."""

    step: int
    thread: str
    what: str
    """get, set, exchange, cas, add, acquire, release, now; new, when a cell is made; record, or iterate"""
    cell: str
    """The name of the cell, of the lock or semaphore, of the record, or of the list that is iterated over; of several
    lists that are iterated over as one, of the first."""
    owner: Any
    """What the cell belongs to: an entry, a consumer, a list entry; None if the reference names no owner. Or the list.
    Any: it is the reference's own object, or a mutant's."""
    old: Any
    """The value expected by a compare-and-set, or found by an exchange; of an iteration, whether it is at its begin, at
    a node, at its end, or given up. Any: whatever cells hold."""
    new: Any
    """The value read, written or added; of a record its fields; of an iteration the node that it returns."""
    ok: bool = True
    source: Any = None
    """The recorded cell, lock or semaphore itself; of an iteration, what it is known by."""
    kind: str = field(init=False)
    """The last part of the cell's name."""
    writes: bool = field(init=False)
    """Whether it changed a shared object: a cell, a lock or a semaphore. An exchange may find what it brings."""

    def __post_init__(self) -> None:
        self.kind = self.cell.rpartition(".")[2]
        found = self.what == "exchange" and self.old is not None and self.old == self.new
        self.writes = self.ok and self.what in WRITES and not found

    @property
    def examined(self) -> bool:
        """Whether it writes in one step with a look at what was there, so that nobody changes that in between."""
        return self.what in ("cas", "exchange")

    @property
    def by(self) -> int | None:
        """By how much it changed a number, added to or exchanged; None if it was overwritten."""
        if self.what == "add":
            return int(self.new)
        return int(self.new - self.old) if self.examined else None

    def __str__(self) -> str:
        operation = f"{self.cell}.{self.what}" if self.what != "record" else f"record {self.cell}"
        change = f"({self.old!r} -> {self.new!r})" if self.examined else f"({self.new!r})"
        return f"{self.thread}: {operation}{change}{'' if self.ok else ' failed'}"


class RecordedCell(Generic[T]):
    """A cell that writes down what is done to it."""

    def __init__(
        self, recorder: Recorder, inner: ControlledCell[T], name: str, owner: object
    ) -> None:
        self._recorder, self._inner, self._name, self._owner = recorder, inner, name, owner

    @property
    def value(self) -> T:
        """What is in it, without a step."""
        return cast(T, self._inner.value)

    def get(self) -> T:
        value = self._inner.get()
        self._note("get", value)
        return value

    def set(self, value: T) -> None:
        self._inner.set(value)
        self._note("set", value)

    def compare_and_set(self, expected: T, new: T) -> bool:
        ok = self._inner.compare_and_set(expected, new)
        self._note("cas", new, expected, ok)
        return ok

    def get_and_set(self, value: T) -> T:
        old = self._inner.get_and_set(value)
        self._note("exchange", value, old)
        return old

    def get_and_add(self: RecordedCell[int], amount: int) -> int:
        old = self._inner.get_and_add(amount)
        self._note("add", amount)
        return old

    def add(self: RecordedCell[int], amount: int) -> None:
        self._inner.add(amount)
        self._note("add", amount)

    def _note(self, what: str, new: object, old: object = None, ok: bool = True) -> None:
        self._recorder.note(what, self._name, self._owner, old, new, ok, self)


class RecordedLock:
    """A lock that writes down who takes it and gives it back."""

    def __init__(self, recorder: Recorder, inner: ControlledLock, name: str) -> None:
        self._recorder, self._inner, self._name = recorder, inner, name

    def acquire(self) -> None:
        self._inner.acquire()
        self._recorder.note("acquire", self._name, source=self)

    def try_acquire(self) -> bool:
        ok = self._inner.try_acquire()
        self._recorder.note("acquire", self._name, ok=ok, source=self)
        return ok

    def release(self) -> None:
        self._inner.release()
        self._recorder.note("release", self._name, source=self)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *failure: object) -> None:
        self._inner.__exit__(*failure)
        self._recorder.note("release", self._name, source=self)


class RecordedSemaphore:
    """A semaphore that writes down who gives and takes permits."""

    def __init__(self, recorder: Recorder, inner: ControlledSemaphore, name: str) -> None:
        self._recorder, self._inner, self._name = recorder, inner, name

    @property
    def value(self) -> int:
        """How many permits lie there, without a step."""
        return cast(int, self._inner.value)

    def acquire(self) -> None:
        self._inner.acquire()
        self._recorder.note("acquire", self._name, source=self)

    def try_acquire(self, timeout: float | None = None) -> bool:
        ok = self._inner.try_acquire(timeout)
        self._recorder.note("acquire", self._name, ok=ok, source=self)
        return ok

    def release(self, n: int = 1) -> None:
        self._inner.release(n)
        self._recorder.note("release", self._name, new=n, source=self)


@dataclass
class Recorder:
    """In the place of a world. What it does not know the world does."""

    world: World
    listener: Callable[[HostOperation], None]
    """Told of each event before anything else happens."""

    @property
    def host(self) -> Recorder:
        return self

    def cell(
        self,
        value: T,
        name: str = "",
        *,
        kind: str = "",
        owner: object = None,
        watch: Watch[T] | None = None,
    ) -> RecordedCell[T]:
        cell = RecordedCell(self, self.world.cell(value, name, watch=watch), name, owner)
        self.note("new", name, owner, new=value, source=cell)
        return cell

    def lock(self, name: str = "") -> RecordedLock:
        return RecordedLock(self, self.world.lock(name), name)

    def semaphore(self, permits: int, name: str = "") -> RecordedSemaphore:
        return RecordedSemaphore(self, self.world.semaphore(permits, name), name)

    def now(self) -> int:
        time = self.world.now()
        self.note("now", "clock", new=time)
        return time

    def keeps(self) -> bool:
        """Whether records are wanted: always, for the listener hears those too that the world has already."""
        return True

    def record(self, ev: str, /, **args: object) -> None:
        self.world.record(ev, **args)
        self.note("record", ev, new=args)

    def perform(self, method: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return method(*args, **kwargs)

    def iteration(self, of: Any, found: Iterator[T]) -> Iterator[T]:  # Any: a list, as in `owner`
        """Iterate over a list, and note the beginning, each node before it is returned, and the end."""
        known_by, name = object(), of.head.list_name
        self.note("iterate", name, of, old="begin", source=known_by)
        try:
            for node in found:
                self.note("iterate", name, of, old="node", new=node, source=known_by)
                yield node
        except GeneratorExit:
            self.note("iterate", name, of, old="given up", source=known_by)
            raise
        self.note("iterate", name, of, old="end", source=known_by)

    def note(
        self,
        what: str,
        cell: str,
        owner: object = None,
        old: object = None,
        new: object = None,
        ok: bool = True,
        source: object = None,
    ) -> None:
        """Tell the listener of an operation; see `HostOperation` for the parameters."""
        thread = self.world.thread or "set-up"
        self.listener(
            HostOperation(self.world.steps, thread, what, cell, owner, old, new, ok, source)
        )

    def __getattr__(self, name: str) -> Any:  # Any: whatever the world has of that name
        return getattr(self.world, name)
