"""The state of connections, server and work pool, and what their clients have seen of them, as text.

Only at rest. Names of messages are replaced by numbers in the order of their places, and numbers of calls, which no
decision reads, are left out; so states that differ in these only have one text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from seriatim.broker import Queued, Server, ServerChannel, ServerConsumer, ServerQueue
from seriatim.client import Channel
from seriatim.workpool import Executor, Work, WorkPool
from seriatim_models.machines.client.calls import ClientHarness, PoolHarness
from seriatim_models.recording.client import on_the_wire, pool_snapshot, waiting


def state_text(harness: ClientHarness) -> str:
    """Return everything that a later call can depend on."""
    lines = _server(harness.server)
    for connection in harness.connections:
        ended = connection._closed.code if connection._closed is not None else 0
        frames = [(f.kind, f.channel) for f in on_the_wire(connection.wire)]
        lines.append(
            f"{connection.name} ended={ended} {connection.wire.gone} {connection._gone} wire={frames}"
        )
        lines += [_channel(c) for c in connection._channels.get().values()]
        lines.append(_pool(connection.work.pool))
    return "\n".join([*lines, _executor(harness.executor)])


def outcome(harness: ClientHarness) -> dict[str, Any]:
    """Return what clients see at the end: callbacks, what is closed and why, and the messages in the queues."""
    found: dict[str, Any] = {
        c.key: {
            "closed": c.closed.code if c.closed is not None else 0,
            "got": harness.delivered.get(c.key, []),
            "holds": [],
        }
        for c in harness.channels
    }
    for channel in harness.server._channels.values():
        holds = [(tag, item.message.id) for tag, item in channel.unacked.items()]
        found[f"{channel.wire.name}.{channel.number}"]["holds"] = holds
    for queue in _queues(harness.server):
        found[queue.name] = [(i.message.id, i.redelivered) for i in queue.ready]
    return found


def pool_state_text(harness: PoolHarness) -> str:
    """Return everything that a later call on a work pool by itself can depend on."""
    return f"{_pool(harness.served.pool)}\n{_executor(harness.executor)}"


def pool_outcome(harness: PoolHarness) -> dict[str, Any]:
    """Return what ran of each channel, in order, which channels there are, and whether the executor takes tasks."""
    pool = harness.served.pool
    return {
        "ran": harness.ran,
        "queued": {key: [work.label for work in queue] for key, queue in pool._pool.items()},
        "unlimited": sorted(pool._unlimited),
        "open": harness.executor._open,
    }


# ---- parts


def _server(server: Server) -> list[str]:
    queues = _queues(server)
    held: dict[int, str] = {}
    for channel in server._channels.values():
        for tag, item in channel.unacked.items():
            held[id(item)] = _holder(channel, tag, item.consumer)
    numbers: dict[str, int] = {}
    return [
        *(_queue(queue, server, held, numbers) for queue in queues),
        *(_server_channel(channel) for channel in server._channels.values()),
    ]


def _queues(server: Server) -> list[ServerQueue]:
    """Return the queues by name: in which order they were declared decides nothing."""
    return [queue for _, queue in sorted(server._queues.items())]


def _holder(channel: ServerChannel, tag: int, consumer: ServerConsumer | None) -> str:
    return f"{channel.wire.name}.{channel.number}:{tag}:{consumer.tag if consumer else ''}"


def _queue(
    queue: ServerQueue, server: Server, held: dict[int, str], numbers: dict[str, int]
) -> str:
    unacked = [i for c in server._channels.values() for i in c.unacked.values() if i.queue is queue]
    items = sorted([*queue.ready, *unacked], key=lambda i: i.position)
    consumers = [_consumer(c) for c in queue.consumers]
    return (
        f"{queue.name} owner={queue.owner!r} bindings={sorted(queue.bindings)} "
        f"items={[_item(i, held, numbers) for i in items]} consumers={consumers}"
    )


def _item(item: Queued, held: dict[int, str], numbers: dict[str, int]) -> str:
    number = numbers.setdefault(item.message.id, len(numbers) + 1)
    return f"{number} {item.origin} {held.get(id(item), 'ready')}{' again' * item.redelivered}"


def _consumer(consumer: ServerConsumer) -> str:
    flags = (consumer.auto_ack, consumer.exclusive, consumer.no_local, consumer.prefetch)
    return f"{consumer.channel.wire.name}.{consumer.channel.number}:{consumer.tag} {flags}"


def _server_channel(channel: ServerChannel) -> str:
    limits = (channel.prefetch, channel.consumer_prefetch)
    return f"{channel.wire.name}.{channel.number} tag={channel.tag} limits={limits}"


def _channel(channel: Channel) -> str:
    closed = channel.closed.code if channel.closed is not None else 0
    out = channel._active.op if channel._active is not None else ""
    return f"{channel.key} closed={closed} out={out!r} consumers={sorted(channel._consumers)}"


def _pool(pool: WorkPool) -> str:
    shot = pool_snapshot(pool)
    shot["queued"] = {key: _ranks(queue) for key, queue in sorted(pool._pool.items())}
    return f"{shot} unlimited={sorted(pool._unlimited)} interrupted={pool._interrupted}"


def _ranks(queue: Iterable[Work]) -> list[int]:
    """Return the places of some work in the order of its labels, which say when it was made."""
    labels = [(len(work.label), work.label) for work in queue]
    return [sorted(labels).index(label) for label in labels]


def _executor(executor: Executor) -> str:
    return f"executor open={executor._open} tasks={waiting(executor)}"
