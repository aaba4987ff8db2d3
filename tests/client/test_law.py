"""Callbacks in flight: min(channels, pool size), reached and never exceeded. No test here depends on time."""

from __future__ import annotations

import threading

import pytest

from seriatim.client import Channel, Delivery

from .conftest import PATIENCE, World, fill, flush


@pytest.mark.parametrize("channels", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_parallelism_is_the_smaller_of_channels_and_pool(
    world: World, channels: int, threads: int
) -> None:
    """The first k callbacks wait until k are there: fewer would hang. The most ever seen is k: more would show."""
    k = min(channels, threads)
    barrier = threading.Barrier(k)
    lock = threading.Lock()
    begun = inside = most = 0

    def on_delivery(channel: Channel, delivery: Delivery) -> None:
        nonlocal begun, inside, most
        with lock:
            begun += 1
            inside += 1
            most = max(most, inside)
            first = begun <= k
        if first:
            barrier.wait(PATIENCE)
        with lock:
            inside -= 1

    c = world.connect(threads=threads)
    opened = [c.open_channel() for _ in range(channels)]
    for i, channel in enumerate(opened):
        fill(channel, 6, queue=f"q{i}")
        # Two consumers on each channel: they do not add to the parallelism.
        channel.basic_consume(f"q{i}", on_delivery, tag="t")
        channel.basic_consume(f"q{i}", on_delivery, tag="u")
    for channel in opened:
        flush(channel)
    assert (begun, inside, most) == (6 * channels, 0, k)
    assert not barrier.broken
