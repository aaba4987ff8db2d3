"""The state of a topic with its channels, and what its clients have seen of it, as text. Only at rest."""

from __future__ import annotations

import seriatim.log as reference
from seriatim_models.machines.log.calls import LogHarness, channels, state


def state_text(harness: LogHarness) -> str:
    """Return everything that a later call can depend on: the disk, what is open, and who consumes."""
    topic = harness.topic
    disk = [
        f"{name} {bytes(data)!r} synced={len(harness.storage.synced.get(name, b''))}"
        for name, data in sorted(harness.storage.files.items())
    ]
    connected = [c.name for c in topic._connected.get()]
    head = f"tail={tuple(topic.tail.get())} closed={topic._closed} connected={connected}"
    return "\n".join([*disk, head, *(_channel(c) for c in channels(harness))])


def _channel(channel: reference.Channel) -> str:
    does = state(channel)
    stopping = does != reference.AWAY and channel._stopping
    return (
        f"{channel.name} at={tuple(channel.position)} attempts={channel.attempts} {does} "
        f"stopping={stopping} parking={channel._parked_to.offset}"
    )
