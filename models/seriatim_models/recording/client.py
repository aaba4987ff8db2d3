"""Events of the client, its work pool and its broker: `seriatim.client`, `seriatim.workpool`, `seriatim.broker`.

What happens in the server is recorded as ``srv_...``, what the client does as ``cli_...``, and what the work pool does
as ``pool_...`` and ``work_...``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from seriatim.broker import Act, Delivery, Frame, Queued, Server, ServerChannel, ServerQueue, Wire
from seriatim.client import Call, Channel, Connection
from seriatim.workpool import Executor, Work, WorkPool, WorkService
from seriatim_models.recording.base import (
    CellEvents,
    OperationEvents,
    Record,
    Recording,
    after,
    before,
)
from seriatim_models.watched import WatchedHost

R = TypeVar("R")


def at(channel: ServerChannel) -> dict[str, object]:
    """Return the fields that say at which channel of which connection something happens in the server."""
    return {"conn": channel.wire.name, "ch": channel.number}


# ---- the server


def route(
    _: None, server: Server, channel: ServerChannel, message: Any, queue: ServerQueue
) -> dict[str, object]:
    """Fields of ``srv_route``, with the position that the message got."""
    return {**at(channel), "q": queue.name, "m": message.id, "pos": queue.arrivals}


def hand_out(
    delivery: Delivery,
    server: Server,
    channel: ServerChannel,
    item: Queued,
    consumer: object,
    auto_ack: bool,
) -> dict[str, object]:
    """Fields of ``srv_push``; `ctag` is empty for a get."""
    return {
        **at(channel),
        "ctag": delivery.consumer_tag,
        "dtag": delivery.delivery_tag,
        "q": item.queue.name,
        "m": item.message.id,
        "pos": item.position,
        "autoack": auto_ack,
        "redelivered": delivery.redelivered,
    }


def requeue(
    record: Record, method: Callable[..., None], server: Server, channel: ServerChannel, tag: int
) -> None:
    """Record ``srv_requeue``, with the positions in the queue after it."""
    item = channel.unacked[tag]
    method(server, channel, tag)
    place = {"dtag": tag, "q": item.queue.name, "m": item.message.id, "pos": item.position}
    record("srv_requeue", **at(channel), **place, order=[i.position for i in item.queue.ready])


def request(
    record: Record,
    method: Callable[..., None],
    server: Server,
    wire: Wire,
    number: int,
    act: Act,
    call: int = 0,
) -> None:
    """Record ``cli_call``: info, when a request is sent that is a call."""
    if call:
        record("cli_call", ph="info", conn=wire.name, ch=number, call=call, at="sent")
    method(server, wire, number, act, call)


def qos(record: Record, method: Callable[..., None], server: Server, *args: Any) -> None:
    """Record ``srv_qos`` for the limit of a channel; that of a consumer is a field of ``srv_consume``."""
    channel, prefetch, whole_channel = args
    method(server, *args)
    if whole_channel:
        record("srv_qos", **at(channel), prefetch=prefetch)


def cancel(
    record: Record, method: Callable[..., None], server: Server, channel: ServerChannel, tag: str
) -> None:
    """Record ``srv_cancel`` if there is such a consumer."""
    known = tag in channel.consumers
    method(server, channel, tag)
    if known:
        record("srv_cancel", **at(channel), ctag=tag)


def consume(
    record: Record,
    method: Callable[..., None],
    server: Server,
    channel: ServerChannel,
    name: str,
    tag: str,
    **flags: bool,
) -> None:
    """Record ``srv_consume``, with `ok` false if one was refused because it or another is exclusive (code 403)."""

    def decided(ok: bool) -> None:
        asked = {k: flags.get(k, False) for k in ("auto_ack", "exclusive", "no_local")}
        fields = {k.replace("_", ""): v for k, v in asked.items()}
        prefetch = channel.consumer_prefetch
        record("srv_consume", **at(channel), q=name, ctag=tag, **fields, prefetch=prefetch, ok=ok)

    try:
        method(server, channel, name, tag, **flags)
    except Exception as error:
        if getattr(error, "code", 0) == 403:
            decided(False)
        raise
    decided(True)


# ---- the work pool


def add(
    record: Record, method: Callable[..., bool], service: WorkService, *args: Any, **kwargs: Any
) -> bool:
    """Record ``work_add``: invoke, and ok if the work was put."""
    key, work = args[:2]
    record("work_add", ph="invoke", k=key, w=work.label)
    put = method(service, *args, **kwargs)
    if put:
        record("work_add", ph="ok", k=key, w=work.label)
    return put


def add_work_item(record: Record, method: Callable[..., bool], *args: Any, **kwargs: Any) -> bool:
    """Record ``work_add``: fail, if the work was not put."""
    _, key, work = args[:3]
    try:
        return method(*args, **kwargs)
    except Exception:
        record("work_add", ph="fail", k=key, w=work.label)
        raise


def run_one(
    record: Record,
    method: Callable[..., BaseException | None],
    service: WorkService,
    key: str,
    work: Work,
) -> BaseException | None:
    """Record ``work_start`` and ``work_end``, with the name of what the callback raised."""
    record("work_start", k=key, w=work.label)
    error = method(service, key, work)
    record("work_end", k=key, w=work.label, raised="" if error is None else type(error).__name__)
    return error


# ---- the client


def call_of(channel: Channel, call: Call) -> dict[str, object]:
    """Return the fields that say which call of which channel something is."""
    return {"conn": channel.connection.name, "ch": channel.number, "call": call.number}


def frame_of(channel: Channel, frame: Frame) -> dict[str, object]:
    """Fields of ``cli_frame``; `dtag` is 0 if it is no delivery."""
    tag = frame.delivery.delivery_tag if frame.delivery else 0
    where = {"conn": channel.connection.name, "ch": channel.number}
    return {**where, "kind": frame.kind, "call": frame.call, "dtag": tag}


def converse(record: Record, method: Callable[..., R], channel: Channel, call: Call) -> R:
    """Record ``cli_call``: invoke; ok, with the number of the call that the reply is for; or fail, with the reason.

    If what is returned is not what the reply says, it is for no call: 0.
    """
    fields = call_of(channel, call)
    record("cli_call", ph="invoke", **fields, op=call.op)
    try:
        value = method(channel, call)
    except Exception as error:
        late = type(error).__name__ == "CallTimeout"
        record("cli_call", ph="fail", **fields, why="no reply in time" if late else str(error))
        raise
    reply = call.reply
    record("cli_call", ph="ok", **fields, got=reply.call if reply and value is reply.value else 0)
    return value


_closers: WeakKeyDictionary[Connection, Iterator[int]] = WeakKeyDictionary()
"""The numbers that are left for calls which close a connection."""


def close(record: Record, method: Callable[..., None], connection: Connection) -> None:
    """Record ``cli_call`` for the end of a connection: invoke and ok of a call on channel 0."""
    number = next(_closers.setdefault(connection, count(1)))
    fields: dict[str, object] = {"conn": connection.name, "ch": 0, "call": number}
    record("cli_call", ph="invoke", **fields, op="close")
    method(connection)
    record("cli_call", ph="ok", **fields, got=number)


CELLS: dict[str, CellEvents] = {}
"""The client has no cells: all it shares stands under locks."""

OPERATIONS: dict[str, OperationEvents] = {
    "Server.request": request,
    "Server.close_channel": before("srv_close", lambda server, channel: at(channel)),
    "Server.bind": after(
        "srv_bind", lambda _, server, channel, x, key, q: {"x": x, "key": key, "q": q}
    ),
    "Server.publish": before(
        "srv_publish",
        lambda server, channel, x, key, m: {**at(channel), "m": m.id, "x": x, "key": key},
    ),
    "Server._route": after("srv_route", route),
    "Server.qos": qos,
    "Server.consume": consume,
    "Server.cancel": cancel,
    "Server._hand_out": after("srv_push", hand_out),
    "Server._requeue": requeue,
    "WorkService.add": add,
    "WorkPool.add_work_item": add_work_item,
    "WorkService._run_one": run_one,
    "Connection.close": close,
    "Connection._on_gone": before(
        "cli_frame",
        lambda self, error: {"conn": self.name, "ch": 0, "kind": "gone", "call": 0, "dtag": 0},
    ),
    "Channel.on_frame": before("cli_frame", frame_of),
    "Channel._converse": converse,
}
"""What records each operation, by the method's name."""


def recorded(host: WatchedHost) -> Recording:
    """Return a host that records what clients, work pools and brokers on it do."""
    return Recording(host, CELLS, OPERATIONS)


# ---- states


def server_snapshot(server: Server) -> dict[str, object]:
    """Return the ready messages of each queue, in order, and the unacknowledged ones of each channel (``srv_rest``)."""
    return {
        "queues": {
            queue.name: [[i.message.id, i.position, i.redelivered] for i in queue.ready]
            for queue in server._queues.values()
        },
        "unacked": {
            f"{c.wire.name}.{c.number}": [i.message.id for i in c.unacked.values()]
            for c in server._channels.values()
        },
    }


def pool_snapshot(pool: WorkPool) -> dict[str, object]:
    """Return a work pool's queues and its channels that are ready or in progress."""
    return {
        "queued": {key: [work.label for work in queue] for key, queue in pool._pool.items()},
        "ready": list(pool._ready),
        "in_progress": sorted(pool._in_progress),
    }


def waiting(executor: Executor) -> int:
    """Return how many tasks have not begun. What tells a worker to end is no task."""
    return sum(1 for task in executor._tasks if task is not None)


def on_the_wire(wire: Wire) -> list[Frame]:
    """Return the frames that were sent and not yet received, oldest first."""
    found = []
    link = wire._taken.next
    while link is not None:
        found.append(link.frame)
        link = link.next
    return found


def service_snapshot(service: WorkService) -> dict[str, object]:
    """Return the state of a work pool, and how many runnables have not begun (``cli_rest``)."""
    return {**pool_snapshot(service.pool), "runnables": waiting(service.executor)}
