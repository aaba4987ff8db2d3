"""Drawn programs over the client: threads that do a few things each, on two channels.

Whoever draws gives a `Plan`; `build` is the program. Nothing is expected of it but the properties.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType

import seriatim.client as reference
from seriatim_models.explorer import World
from seriatim_models.programs.client import ClientScene

OPERATIONS: dict[str, Callable[[ClientScene, reference.Channel], object]] = {
    "publish": lambda s, ch: ch.basic_publish("x", "", s.message(s.fresh())),
    "get": lambda s, ch: ch.basic_get("q"),
    "get and forget": lambda s, ch: ch.basic_get("q", auto_ack=True),
    "get in time": lambda s, ch: ch.basic_get("q", timeout=1),
    "ack": lambda s, ch: ch.basic_ack(1),
    "ack all": lambda s, ch: ch.basic_ack(0, multiple=True),
    "ack up to two": lambda s, ch: ch.basic_ack(2, multiple=True),
    "give all back": lambda s, ch: ch.basic_nack(0, multiple=True),
    "reject": lambda s, ch: ch.basic_reject(2, requeue=False),
    "limit": lambda s, ch: ch.basic_qos(1),
    "limit channel": lambda s, ch: ch.basic_qos(1, whole_channel=True),
    "cancel": lambda s, ch: ch.basic_cancel("t"),
    "close": lambda s, ch: ch.close(),
    "close connection": lambda s, ch: ch.connection.close(),
    "crash": lambda s, ch: s.crash(ch.connection),
    "interrupt": lambda s, ch: ch.connection.work.pool.interrupt(),
    "stop executor": lambda s, ch: s.executor.shutdown(),
}


def keep(channel: reference.Channel, delivery: reference.Delivery) -> None:
    pass


def acknowledge(channel: reference.Channel, delivery: reference.Delivery) -> None:
    channel.basic_ack(delivery.delivery_tag)


def fail(channel: reference.Channel, delivery: reference.Delivery) -> None:
    raise RuntimeError("the callback's own fault")


def call(channel: reference.Channel, delivery: reference.Delivery) -> None:
    channel.basic_qos(1)


def give_back_once(channel: reference.Channel, delivery: reference.Delivery) -> None:
    channel.basic_nack(delivery.delivery_tag, requeue=not delivery.redelivered)


def close(channel: reference.Channel, delivery: reference.Delivery) -> None:
    channel.close()


CALLBACKS: dict[str, reference.Callback] = {
    f.__name__.replace("_", " "): f for f in (keep, acknowledge, fail, call, give_back_once, close)
}
FLAGS = ("auto_ack", "exclusive", "no_local")


@dataclass(frozen=True)
class Plan:
    """What a program does. A thread is a list of (channel 0 or 1, operation)."""

    threads: tuple[tuple[tuple[int, str], ...], ...]
    callback: str = "keep"
    flag: str = ""
    messages: int = 2
    capacity: int | None = None
    pool: int = 1


def build(plan: Plan, world: World, lib: ModuleType = reference) -> None:
    s = ClientScene(world, lib, threads=plan.pool)
    channels = s.client(channels=2, messages=plan.messages, capacity=plan.capacity, block=1)
    s.at(channels[0], lambda x: s.server.bind(x, "x", "*", "q"))
    s.consuming(
        channels[0], "q", CALLBACKS[plan.callback], **({plan.flag: True} if plan.flag else {})
    )

    def thread(steps: tuple[tuple[int, str], ...]) -> Callable[[], None]:
        def run() -> None:
            for number, operation in steps:
                with suppress(lib.Closed, lib.CallTimeout):
                    OPERATIONS[operation](s, channels[number])

        return run

    for i, steps in enumerate(plan.threads):
        s.spawn(thread(steps), f"T{i + 1}")
