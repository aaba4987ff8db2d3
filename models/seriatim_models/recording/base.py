"""A host around another host: it records what the reference does, and passes everything on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, ParamSpec, TypeVar, cast

from seriatim.host import Cell, Condition, Lock, Semaphore
from seriatim_models.watched import Change, RecordingWatch, Watch, WatchedHost

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")

Record = Callable[..., None]
"""`Host.record`: takes the event's name and its fields."""

CellEvents = Callable[[Record, Any, Change[Any]], None]
"""Records one change of a cell: takes `Record`, the cell's owner and the change. Called inside the atomic step."""

OperationEvents = Callable[..., Any]
"""Performs one operation and records its call and return: takes `Record`, the method and its arguments, the first of
which is the object that it is called on. Returns what the method returns, and raises what it raises."""


def before(ev: str, fields: Callable[..., dict[str, object]]) -> OperationEvents:
    """Return what records `ev`, with ``fields(*arguments)``, and then performs the operation."""

    def perform(record: Record, method: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        record(ev, **fields(*args, **kwargs))
        return method(*args, **kwargs)

    return perform


def after(ev: str, fields: Callable[..., dict[str, object]]) -> OperationEvents:
    """Return what performs the operation and then records `ev`, with ``fields(result, *arguments)``, if it returns."""

    def perform(record: Record, method: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        result = method(*args, **kwargs)
        record(ev, **fields(result, *args, **kwargs))
        return result

    return perform


class Around(NamedTuple):
    """Records both ends of an operation as `ev`.

    The invocation (``ph="invoke"``) has ``call(*arguments)``; if the operation returns, the response (``ph="ok"``) has
    ``response(result, *arguments)``. Neither is asked for where it would not be kept.
    """

    ev: str
    call: Callable[..., dict[str, object]]
    response: Callable[..., dict[str, object]]


class Recording:
    """A host that records events by the kinds of cells and the names of operations, and passes everything on.

    `cells` has what records the changes of a cell, by the cell's kind, or by its name if it is of no kind; `operations`
    what records an operation, by the method's ``__qualname__``, e.g. ``"Queue.enqueue"``. What has no entry is not
    recorded. Recordings can be nested.
    """

    around: ClassVar[Mapping[str, Callable[[Cell[Any]], Any]]] = {}
    """Kind of a cell -> what is handed out in place of such a cell of the inner host."""

    def __init__(
        self,
        inner: WatchedHost,
        cells: Mapping[str, CellEvents],
        operations: Mapping[str, OperationEvents | Around],
    ) -> None:
        self.inner = inner
        self._record = inner.record
        self._cells = cells
        self._operations = operations

    def cell(
        self,
        value: T,
        name: str = "",
        *,
        kind: str = "",
        owner: object = None,
        watch: Watch[T] | None = None,
    ) -> Cell[T]:
        """A cell of the inner host, watched if its kind is recorded, or its name if it is of no kind."""
        events = self._cells.get(kind or name)
        if events is not None:
            watch = RecordingWatch(events, self._record, owner)
        made = self.inner.cell(value, name, kind=kind, owner=owner, watch=watch)
        around = self.around.get(kind)
        return made if around is None else cast(Cell[T], around(made))

    def lock(self, name: str = "") -> Lock:
        """A lock of the inner host."""
        return self.inner.lock(name)

    def condition(self, lock: Lock, name: str = "") -> Condition:
        """A condition of the inner host."""
        return self.inner.condition(lock, name)

    def semaphore(self, permits: int, name: str = "") -> Semaphore:
        """A semaphore of the inner host."""
        return self.inner.semaphore(permits, name)

    def now(self) -> int:
        """The inner host's time."""
        return self.inner.now()

    def record(self, ev: str, /, **args: object) -> None:
        """Record an event as it is."""
        self.inner.record(ev, **args)

    def keeps(self) -> bool:
        """Whether the inner host keeps what is recorded now."""
        return self.inner.keeps()

    def perform(self, method: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Perform an operation, and record its call and return if it has an entry."""
        events = self._operations.get(method.__qualname__)
        if events is None:
            return self.inner.perform(method, *args, **kwargs)
        if isinstance(events, Around):
            inner = self.inner
            if inner.keeps():
                inner.record(events.ev, ph="invoke", **events.call(*args, **kwargs))
            result = method(*args, **kwargs)
            if inner.keeps():
                inner.record(events.ev, ph="ok", **events.response(result, *args, **kwargs))
            return result
        performed: R = events(self.inner.record, method, *args, **kwargs)
        return performed
