"""Real threads, much at once; the fixture judges the history by every property of the client."""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from functools import partial

import pytest

from seriatim.broker import Closed, Delivery, Message
from seriatim.client import Channel

from .conftest import PATIENCE, World, flush


@pytest.mark.parametrize("capacity", [None, 2])
@pytest.mark.parametrize("seed", range(3))
def test_everything_published_is_processed_once_acknowledged(
    world: World, seed: int, capacity: int | None
) -> None:
    """Consumers ack, put back and raise; publishers publish; every message is acknowledged in the end, exactly once."""
    chance = random.Random(seed)
    total = 120
    acked: list[str] = []
    all_acked = threading.Event()

    def on_delivery(channel: Channel, delivery: Delivery) -> None:
        what = chance.random()
        if what < 0.2:
            channel.basic_nack(delivery.delivery_tag)
        elif what < 0.25:
            channel.basic_reject(delivery.delivery_tag)
            raise RuntimeError("after giving back")
        else:
            acked.append(delivery.message.id)
            channel.basic_ack(delivery.delivery_tag)
            if len(acked) == total:
                all_acked.set()

    c = world.connect(threads=3, capacity=capacity)
    d = world.connect("d", threads=2)
    setup = c.open_channel()
    setup.queue_declare("q")
    setup.queue_bind("q", "x")
    for connection in (c, c, d):
        channel = connection.open_channel()
        channel.basic_qos(chance.randint(1, 5))
        channel.basic_consume("q", on_delivery, tag="t")

    def publish(name: str, channel: Channel) -> None:
        for i in range(total // 2):
            channel.basic_publish("x", "any", Message(f"{name}.{i}"))

    for name, connection in (("p", c), ("s", d)):
        channel = connection.open_channel()
        world.start(partial(publish, name, channel))
    assert all_acked.wait(PATIENCE)
    assert sorted(acked) == sorted(f"{n}.{i}" for n in "ps" for i in range(total // 2))
    assert world.ready() == []


@pytest.mark.parametrize("seed", range(3))
def test_crashes_lose_nothing_that_was_not_acknowledged(world: World, seed: int) -> None:
    """Connections come and go while messages are consumed; what was not acknowledged is in the queue at the end."""
    total = 60
    acked: list[str] = []
    keeper = world.connect("keeper").open_channel()
    keeper.queue_declare("q")
    for i in range(total):
        keeper.basic_publish("", "q", Message(str(i)))
    chance = random.Random(seed)

    def on_delivery(channel: Channel, delivery: Delivery) -> None:
        if chance.random() < 0.5:
            with suppress(Closed):
                channel.basic_ack(delivery.delivery_tag)
                acked.append(delivery.message.id)

    for n in range(4):
        c = world.connect(f"c{n}")
        channel = c.open_channel()
        channel.basic_qos(7)
        with suppress(Closed):
            channel.basic_consume("q", on_delivery, tag="t")
            if n % 2:
                flush(channel)
                channel.close()
        world.crash(c)
    left = world.ready()
    assert set(left) | set(acked) == {str(i) for i in range(total)}
    assert len(left) == len(set(left))
    assert left == sorted(left, key=int)


def test_callers_of_one_channel_take_turns(world: World) -> None:
    ch = world.connect().open_channel()
    ch.queue_declare("q")
    for i in range(60):
        ch.basic_publish("", "q", Message(str(i)))
    got: list[str] = []

    def get() -> None:
        for _ in range(20):
            delivery = ch.basic_get("q", auto_ack=True)
            assert delivery is not None
            got.append(delivery.message.id)

    threads = [world.start(get) for _ in range(3)]
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(got, key=int) == [str(i) for i in range(60)]
