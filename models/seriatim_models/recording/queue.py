"""What `seriatim.queue` and `seriatim.handover` do, as white-box events of qh/1 (see spec/HISTORY.md).

`recorded(host)` is the host to build a queue with; `snapshot(queue)` is its whole state when nothing moves.
Every function here is called with the objects of the reference, or of a mutant of it, and reads their attributes only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from seriatim.host import Change, WatchedHost
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
    Target,
)
from seriatim_models.recording.base import (
    CellEvents,
    OperationEvents,
    Record,
    Recording,
)


def recorded(host: WatchedHost) -> Recording:
    """A host around `host` that records everything that a queue, and its hand-over, does."""
    return Recording(host, CELLS, OPERATIONS)


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


def _wants(record: Record, consumer: Consumer, change: Change[bool]) -> None:
    record("wants", sub=consumer.name, value=change.new)


def _credit(record: Record, consumer: Consumer, change: Change[int]) -> None:
    if change.ok:
        record("credit", sub=consumer.name, delta=change.new - change.old)


def _marked(record: Record, entry: ListEntry, change: Change[bool]) -> None:
    record("mark", list=entry.list_name, node=str(entry), place=list(entry.place()))


def _size(record: Record, members: ConsumerList, change: Change[int]) -> None:
    record("size", list=members.name, value=change.new)


def _job_pending(record: Record, queue: PushQueue, change: Change[bool]) -> None:
    if change.ok:
        record("job", at="submit" if change.new else "begin")


CELLS: Mapping[str, CellEvents] = {
    "next": _next,
    "entry state": _entry_state,
    "pointer": _pointer,
    "wants": _wants,
    "credit": _credit,
    "marked": _marked,
    "size": _size,
    "job pending": _job_pending,
}
"""Kind of a cell -> what records its changes."""


# ---- operations


def _enqueue(
    record: Record, enqueue: Callable[..., QueueEntry], queue: Queue, message: Message
) -> QueueEntry:
    record(
        "enqueue",
        ph="invoke",
        q=queue.name,
        m=message.id,
        prio=message.priority,
        key=message.key,
        group=message.group,
        immediate=message.immediate,
        not_before=message.not_before,
        expires=message.expires,
    )
    entry = enqueue(queue, message)
    record("enqueue", ph="ok", m=message.id, place=list(entry.place()))
    return entry


def _settle(ev: str) -> OperationEvents:
    """What records `Queue.release` or `Queue.dequeue`."""

    def settle(
        record: Record,
        method: Callable[..., bool],
        queue: Queue,
        entry: QueueEntry,
        consumer: Consumer,
    ) -> bool:
        record(ev, ph="invoke", m=entry.message.id, sub=consumer.name)
        done = method(queue, entry, consumer)
        record(ev, ph="ok", m=entry.message.id, sub=consumer.name, done=done)
        return done

    return settle


def _check_message_status(record: Record, check: Callable[..., None], queue: Queue) -> None:
    record("check_status", ph="invoke")
    check(queue)
    record("check_status", ph="ok")


def _attempt(
    record: Record,
    attempt: Callable[..., tuple[QueueEntry | None, bool]],
    queue: Queue,
    consumer: Consumer,
    path: str,
    only: QueueEntry | None,
) -> tuple[QueueEntry | None, bool]:
    record("attempt", ph="invoke", sub=consumer.name, path=path)
    entry, paid = attempt(queue, consumer, path, only)
    m = entry.message.id if entry is not None else ""
    record("attempt", ph="ok", sub=consumer.name, path=path, m=m)
    return entry, paid


def _take(
    record: Record,
    take: Callable[..., QueueEntry | None],
    queue: Queue,
    consumer: Consumer,
    pointer: Pointer,
) -> QueueEntry | None:
    entry = take(queue, consumer, pointer)
    if entry is not None:
        ev = "deliver" if consumer.acquires else "browse"
        record(ev, m=entry.message.id, sub=consumer.name)
    return entry


def _join(
    record: Record,
    join: Callable[..., Consumer],
    queue: Queue,
    name: str,
    target: Target,
    acquires: bool,
    priority: int,
    keys: frozenset[str] | None,
    credit: int | None,
    exclusive: bool,
) -> Consumer:
    record(
        "consumer",
        q=queue.name,
        sub=name,
        acquires=acquires,
        cprio=priority,
        keys=None if keys is None else sorted(keys),
        credit=credit,
        exclusive=exclusive,
    )
    return join(queue, name, target, acquires, priority, keys, credit, exclusive)


def _close(record: Record, close: Callable[..., None], queue: Queue, consumer: Consumer) -> None:
    record("close", ph="invoke", sub=consumer.name)
    close(queue, consumer)
    record("close", ph="ok", sub=consumer.name)


def _grant(
    record: Record, grant: Callable[..., None], queue: Queue, consumer: Consumer, messages: int
) -> None:
    record("grant", sub=consumer.name, messages=messages)
    grant(queue, consumer, messages)


def _deliver_single_message(
    record: Record,
    deliver: Callable[..., QueueEntry | None],
    queue: PullQueue,
    consumer: Consumer,
) -> QueueEntry | None:
    record("pull", ph="invoke", sub=consumer.name)
    entry = deliver(queue, consumer)
    m = entry.message.id if entry is not None else ""
    record("pull", ph="ok", sub=consumer.name, m=m)
    return entry


def _set_notify_work_desired(
    record: Record,
    set_desired: Callable[..., None],
    queue: PullQueue,
    consumer: Consumer,
    desired: bool,
) -> None:
    record("work_desired", ph="invoke", sub=consumer.name, desired=desired)
    set_desired(queue, consumer, desired)
    record("work_desired", ph="ok", sub=consumer.name)


def _members(
    record: Record, members: Callable[..., Iterator[ListEntry]], of: ConsumerList
) -> Iterator[ListEntry]:
    """Iterations over the lists of `QueueConsumerManager` are recorded, those over `Queue.all` are not."""
    found = members(of)
    return found if of.name.endswith(".All") else _walk(record, found, of.name)


def _walk(record: Record, found: Iterator[ListEntry], name: str) -> Iterator[ListEntry]:
    record("walk", list=name, at="begin")
    for entry in found:
        record("walk", list=name, at="node", node=str(entry))
        yield entry
    record("walk", list=name, at="end")


OPERATIONS: Mapping[str, OperationEvents] = {
    "Queue.enqueue": _enqueue,
    "Queue.release": _settle("release"),
    "Queue.dequeue": _settle("dequeue"),
    "Queue.check_message_status": _check_message_status,
    "Queue._attempt_once": _attempt,
    "Queue._take": _take,
    "Queue._join": _join,
    "Queue.close": _close,
    "Queue.grant": _grant,
    "PullQueue.deliver_single_message": _deliver_single_message,
    "PullQueue.set_notify_work_desired": _set_notify_work_desired,
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
        "groups": {g: owner for g, (owner, _) in queue.groups.get().items()},
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
