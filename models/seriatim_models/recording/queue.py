"""What `seriatim.queue` and `seriatim.handover` do, as white-box events of qh/1 (see spec/HISTORY.md).

`recorded(host)` is the host to build a queue with; `snapshot(queue)` is its whole state when nothing moves.
Every function here is called with the objects of the reference, or of a mutant of it, and reads their attributes only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, ClassVar, cast

from seriatim.handover import WorkSet
from seriatim.host import Cell
from seriatim.queue import (
    Consumer,
    ConsumerList,
    ListEntry,
    Message,
    Node,
    Pointer,
    PullQueue,
    PushQueue,
    Queue,
    QueueEntry,
    State,
)
from seriatim_models.recording.base import (
    Around,
    CellEvents,
    OperationEvents,
    Record,
    Recording,
    before,
)
from seriatim_models.watched import Change, WatchedHost


def recorded(host: WatchedHost, unrecorded: Collection[str] = ()) -> Recording:
    """A host around `host` that records everything that a queue, and its hand-over, does.

    But for the changes of cells of the kinds that are `unrecorded`.
    """
    cells = {kind: events for kind, events in CELLS.items() if kind not in unrecorded}
    return QueueRecording(host, cells, OPERATIONS)


class _JobPending:
    """The flag of a delivery job, which knows whether it is being lowered because the job was refused.

    That is seen on the thread that lowers it; what the change is recorded by may run on another stack.
    """

    def __init__(self, inner: Cell[bool]) -> None:
        self.inner = inner
        self.refused = False

    def set(self, value: bool) -> None:
        """Write the flag."""
        error = sys.exception()
        handles = None if error is None or error.__traceback__ is None else error.__traceback__
        self.refused = handles is not None and handles.tb_frame is sys._getframe(1)
        self.inner.set(value)
        self.refused = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class QueueRecording(Recording):
    """A recording that tells a job that was refused from one that begins."""

    around: ClassVar = {"job pending": _JobPending}


def position(pointer: Pointer) -> list[int]:
    """A pointer as comparable data: rank and number of its entry, then whether that was passed (0 or 1)."""
    return [*pointer.entry.place(), int(pointer.passed)]


# ---- changes of cells


def _next(record: Record, at: Node, change: Change[Node | None]) -> None:
    ev, node = ("link", change.new) if change.old is None else ("unlink", change.old)
    if change.ok and node is not None:
        record(ev, list=at.list_name, node=str(node), place=list(node.place()), at=str(at))


def _entry_state(record: Record, entry: QueueEntry, change: Change[State]) -> None:
    record(
        "entry_cas",
        m=entry.message.id,
        how=change.op,
        old=change.old.name,
        new=change.new.name,
        sub=change.new.holder or change.old.holder,
        ok=change.ok,
    )


def _pointer(record: Record, consumer: Consumer, change: Change[Pointer]) -> None:
    record(
        "ptr_cas",
        sub=consumer.name,
        how=change.op,
        old=position(change.old),
        new=position(change.new),
        cause=change.new.cause,
        ok=change.ok,
    )


def _wants(record: Record, consumer: Consumer, change: Change[bool | None]) -> None:
    if change.ok and change.old is not None:
        record("wants", sub=consumer.name, value=bool(change.new))


def _credit(record: Record, consumer: Consumer, change: Change[int]) -> None:
    if change.ok:
        record("credit", sub=consumer.name, delta=change.new - change.old)


def _marked(record: Record, entry: ListEntry, change: Change[bool]) -> None:
    record("mark", list=entry.list_name, node=str(entry), place=list(entry.place()))


def _size(record: Record, members: ConsumerList, change: Change[int]) -> None:
    record("size", list=members.name, value=change.new)


def _job_pending(record: Record, queue: PushQueue, change: Change[bool]) -> None:
    if change.ok:
        ended = "refused" if cast(_JobPending, queue._job_pending).refused else "begin"
        record("job", at="submit" if change.new else ended)


def _work(record: Record, work: WorkSet[Any], change: Change[tuple[Any, ...]]) -> None:
    if change.ok:
        names = [(item._targets if hasattr(item, "_targets") else item).name for item in change.new]
        record("work", set=work.name, items=names)


CELLS: Mapping[str, CellEvents] = {
    "next": _next,
    "entry state": _entry_state,
    "pointer": _pointer,
    "wants": _wants,
    "credit": _credit,
    "marked": _marked,
    "size": _size,
    "job pending": _job_pending,
    "work": _work,
}
"""Kind of a cell -> what records its changes."""


# ---- operations


def _message(queue: Queue, message: Message) -> dict[str, object]:
    """Return a message and the queue that it is given to."""
    return {
        "q": queue.name,
        "m": message.id,
        "prio": message.priority,
        "key": message.key,
        "group": message.group,
        "immediate": message.immediate,
        "not_before": message.not_before,
        "expires": message.expires,
    }


def _placed(entry: QueueEntry, queue: Queue, message: Message) -> dict[str, object]:
    """Return a message and where it was linked."""
    return {"m": message.id, "place": list(entry.place())}


def _settle(queue: Queue, entry: QueueEntry, consumer: Consumer) -> dict[str, object]:
    """Return an entry and the consumer that releases or dequeues it."""
    return {"m": entry.message.id, "sub": consumer.name}


def _settled(done: bool, *call: Any) -> dict[str, object]:
    """Return the same, and whether it was done."""
    return {**_settle(*call), "done": done}


def _nothing(*call: object) -> dict[str, object]:
    """Return no fields."""
    return {}


def _consumer(queue: Queue, consumer: Consumer, *_: object) -> dict[str, object]:
    """Return the consumer that an operation is called for."""
    return {"sub": consumer.name}


def _of_consumer(result: object, queue: Queue, consumer: Consumer, *_: object) -> dict[str, object]:
    """Return the consumer that an operation was called for."""
    return {"sub": consumer.name}


def _attempt(queue: Queue, consumer: Consumer, path: str, only: object) -> dict[str, object]:
    """Return a consumer that something is to be taken for, and the way that led there."""
    return {"sub": consumer.name, "path": path}


def _attempted(taken: tuple[QueueEntry | None, Consumer | None], *call: Any) -> dict[str, object]:
    """Return the same, and the message that was taken, '' if none was."""
    entry, _ = taken
    return {**_attempt(*call), "m": entry.message.id if entry is not None else ""}


def _pulled(entry: QueueEntry | None, queue: Queue, consumer: Consumer) -> dict[str, object]:
    """Return a consumer and the message that it got, '' if none."""
    return {"sub": consumer.name, "m": entry.message.id if entry is not None else ""}


def _desired(queue: Queue, consumer: Consumer, desired: bool) -> dict[str, object]:
    """Return a consumer and whether it wants messages."""
    return {"sub": consumer.name, "desired": desired}


def _subscription(queue: Queue, consumer: Consumer) -> dict[str, object]:
    """Return a new consumer's options."""
    return {
        "q": queue.name,
        "sub": consumer.name,
        "acquires": consumer.acquires,
        "cprio": consumer.priority,
        "keys": None if consumer.keys is None else sorted(consumer.keys),
        "credit": consumer.allowance,
        "exclusive": consumer.exclusive,
    }


def _take(
    record: Record,
    take: Callable[..., QueueEntry | None],
    queue: Queue,
    consumer: Consumer,
    pointer: Pointer,
    seen: State,
) -> QueueEntry | None:
    """Record ``deliver`` or ``browse``, if an entry was taken."""
    entry = take(queue, consumer, pointer, seen)
    if entry is not None:
        ev = "deliver" if consumer.acquires else "browse"
        record(ev, m=entry.message.id, sub=consumer.name)
    return entry


def _members(
    record: Record, members: Callable[..., Iterator[ListEntry]], of: ConsumerList
) -> Iterator[ListEntry]:
    """Record iterations over the lists of `QueueConsumerManager` as ``walk``, but none over `Queue.all`."""
    found = members(of)
    return found if of.name.endswith(".All") else _walk(record, found, of.name)


def _walk(record: Record, found: Iterator[ListEntry], name: str) -> Iterator[ListEntry]:
    """Iterate and record the beginning, each node before it is handed out, and the end if it is reached."""
    record("walk", list=name, at="begin")
    for entry in found:
        record("walk", list=name, at="node", node=str(entry))
        yield entry
    record("walk", list=name, at="end")


OPERATIONS: Mapping[str, OperationEvents | Around] = {
    "Queue.enqueue": Around("enqueue", _message, _placed),
    "Queue.release": Around("release", _settle, _settled),
    "Queue.dequeue": Around("dequeue", _settle, _settled),
    "Queue.check_message_status": Around("check_status", _nothing, _nothing),
    "Queue._attempt_once": Around("attempt", _attempt, _attempted),
    "Queue._take": _take,
    "Queue._join": before("consumer", _subscription),
    "Queue._close": Around("close", _consumer, _of_consumer),
    "PullQueue.deliver_single_message": Around("pull", _consumer, _pulled),
    "PullQueue.set_notify_work_desired": Around("work_desired", _desired, _of_consumer),
    "PushQueue.set_notify_work_desired": Around("work_desired", _desired, _of_consumer),
    "ConsumerList.members": _members,
}
"""Operation, by its method's ``__qualname__`` -> what performs and records it."""


# ---- the state when nothing moves


def snapshot(queue: Queue) -> dict[str, Any]:
    """The whole state as plain data, the fields of a ``snapshot`` event. Only when no operation is under way."""
    entries = [(entry, entry.state.get()) for entry in queue.entries]
    shot: dict[str, Any] = {
        "q": queue.name,
        "entries": [[e.message.id, list(e.place()), s.name, s.holder] for e, s in entries],
        "depth": queue.depth.get(),
        "groups": {g: owner.name for g, (owner, _) in queue.groups.owners.get().items()},
        "group_counts": {g: count for g, (_, count) in queue.groups.owners.get().items()},
        "lists": {queue.all.name: _names_and_size(queue.all)},
        "consumers": {
            c.name: {
                "pointer": position(c.pointer.get()),
                "credit": None if c.credit is None else c.credit.get(),
                "wants_work": c.wants_work.get(),
            }
            for c in queue.all.consumers()
        },
    }
    if queue.kind == "pull":
        manager = cast(PullQueue, queue).manager
        interested = [members for _, members in manager.by_priority.get()]
        lists = (*manager.lists.values(), *interested)
        shot["lists"].update({members.name: _names_and_size(members) for members in lists})
    return shot


def _names_and_size(members: ConsumerList) -> list[Any]:
    """The names of a list's consumers, and what it says its size is."""
    return [[consumer.name for consumer in members.consumers()], members.size.get()]
