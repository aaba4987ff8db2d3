"""Generated programs over the client: threads that make a few calls each, on two channels of one connection."""

from __future__ import annotations

from types import ModuleType
from typing import ClassVar

from hypothesis import strategies as st

import seriatim.client as reference
from seriatim_models.machines.client.calls import CLIENT, ClientHarness
from seriatim_models.machines.stages import ProgramStage
from seriatim_workshop.machines.plans import PlannedCalls, ProgramPlan, steps, thread


def keep(channel: reference.Channel, delivery: reference.Delivery) -> None:
    """Do nothing."""


def acknowledge(channel: reference.Channel, delivery: reference.Delivery) -> None:
    """Acknowledge."""
    channel.basic_ack(delivery.delivery_tag)


def fail(channel: reference.Channel, delivery: reference.Delivery) -> None:
    """Raise."""
    raise RuntimeError("the callback's own fault")


def call(channel: reference.Channel, delivery: reference.Delivery) -> None:
    """Call on the same channel."""
    channel.basic_qos(1)


def give_back_once(channel: reference.Channel, delivery: reference.Delivery) -> None:
    """Requeue; discard what was requeued before."""
    channel.basic_nack(delivery.delivery_tag, requeue=not delivery.redelivered)


def close(channel: reference.Channel, delivery: reference.Delivery) -> None:
    """Close the channel."""
    channel.close()


CALLBACKS: dict[str, reference.Callback] = {
    f.__name__.replace("_", " "): f for f in (keep, acknowledge, fail, call, give_back_once, close)
}
FLAGS = ("auto_ack", "exclusive", "no_local")


class ClientPlan(ProgramPlan, frozen=True, omit_defaults=True):
    """A generated program: what the consumer on the first channel does with its deliveries, and what threads call."""

    system: ClassVar[str] = "client"

    threads: tuple[PlannedCalls, ...] = ()
    callback: str = "keep"
    flag: str = ""
    messages: int = 2
    capacity: int | None = None
    pool: int = 1

    def start(self, lib: ModuleType, stage: ProgramStage) -> ClientHarness:
        """Set the program up, spawn its threads, and return its harness."""
        harness = ClientHarness(stage.world, lib, self.pool, self.messages, self.capacity)
        flags = {self.flag: True} if self.flag else {}
        harness.consuming(harness.channels[0], "q", CALLBACKS[self.callback], **flags)
        for i, calls in enumerate(self.threads):
            harness.spawn(
                thread(calls, CLIENT, harness, (lib.Closed, lib.CallTimeout, lib.Misuse)),
                f"T{i + 1}",
            )
        return harness


OFTEN = 2 * [CLIENT["get"], CLIENT["ack"], CLIENT["ack"], CLIENT["nack"]]
"""What needs another call before it to have an effect is generated more often than the rest."""
PLANS = st.builds(
    ClientPlan,
    threads=st.lists(steps([*CLIENT.values(), *OFTEN], 3), min_size=1, max_size=3).map(tuple),
    callback=st.sampled_from(sorted(CALLBACKS)),
    flag=st.sampled_from(["", *FLAGS]),
    messages=st.integers(0, 3),
    capacity=st.sampled_from([None, 1]),
    pool=st.integers(1, 2),
)
