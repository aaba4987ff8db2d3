"""Drawn programs over the log: publishers, consumers that come and go, operators, and a machine that stops."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType

import seriatim.log as reference
from seriatim_models.explorer import World
from seriatim_models.programs.disk import Crash
from seriatim_models.programs.log import LogScene, fails_on_bad

PUBLISHED = {"good": b"g", "bad": b"bad", "empty": b"", "too large": b"x" * 30}
OPERATIONS = (*PUBLISHED, "consume", "stop", "peek", "replay", "new channel", "close topic")


@dataclass(frozen=True)
class Plan:
    """What a program does. A thread is a list of (channel, operation)."""

    threads: tuple[tuple[tuple[str, str], ...], ...]
    backlog: tuple[str, ...] = ()
    max_attempts: int = 1
    stops_after: int | None = None
    """How much of the disk may be changed before the machine stops."""


def build(plan: Plan, world: World, lib: ModuleType = reference) -> None:
    s = LogScene(world, lib, segment_size=30)
    for name in "ab":
        s.channel(name, max_attempts=plan.max_attempts)
    for kind in plan.backlog:
        s.topic.publish(PUBLISHED[kind])
    if plan.stops_after is not None:
        s.storage.budget = s.storage.spent + plan.stops_after

    def do(name: str, operation: str) -> None:
        channel = s.channels[name]
        if operation in PUBLISHED:
            s.topic.publish(PUBLISHED[operation])
        elif operation == "consume":
            channel.connect()
            channel.consume(fails_on_bad)
        elif operation == "stop":
            channel.disconnect()
        elif operation == "peek":
            channel.read(2)
        elif operation == "replay":
            for parked in channel.parked():
                channel.replay(parked, lambda message: None)
        elif operation == "new channel":
            lib.Channel(s.topic, name, at_tail=True)
        else:
            s.topic.close()

    def thread(steps: tuple[tuple[str, str], ...]) -> Callable[[], None]:
        def run() -> None:
            for name, operation in steps:
                with suppress(lib.Misuse):
                    do(name, operation)

        return run

    def stopping(run: Callable[[], None]) -> Callable[[], None]:
        def stops() -> None:
            with suppress(Crash):
                run()

        return stops

    for i, steps in enumerate(plan.threads):
        world.spawn(stopping(thread(steps)), name=f"T{i + 1}", daemon=True)
