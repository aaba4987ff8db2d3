"""Generated programs over the client: threads that make a few calls each, on two channels of one connection."""

from __future__ import annotations

from contextlib import suppress
from types import ModuleType
from typing import ClassVar

from hypothesis import strategies as st

import seriatim.client as reference
from seriatim.broker import Delivery
from seriatim_models.machines.calls import callable_inside
from seriatim_models.machines.client.calls import CLIENT, ClientHarness
from seriatim_models.machines.stages import ProgramStage
from seriatim_workshop.machines.plans import PlannedCalls, ProgramPlan, steps, thread

CALLBACKS = ("keep", "fail", *callable_inside(CLIENT))
"""What a callback does: nothing, raise, or make a call."""
TWICE = 2
"""How often the callbacks of a channel make their call; it is not made for what comes again."""


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
        refusals = (lib.Closed, lib.CallTimeout, lib.Misuse)
        flags = {self.flag: True} if self.flag else {}
        harness.inside = self._callback(harness, refusals)
        harness.consuming(harness.channels[0], "q", harness.keep, **flags)
        for i, calls in enumerate(self.threads):
            harness.spawn(thread(calls, CLIENT, harness, refusals), f"T{i + 1}")
        return harness

    def _callback(
        self, harness: ClientHarness, refusals: tuple[type[Exception], ...]
    ) -> reference.Callback:
        """Return what callbacks do; those of a channel run one after the other, so its count is theirs alone."""
        made: dict[str, int] = {}

        def called(channel: reference.Channel, delivery: Delivery) -> None:
            if self.callback == "keep" or delivery.redelivered or made.get(channel.key) == TWICE:
                return
            made[channel.key] = made.get(channel.key, 0) + 1
            if self.callback == "fail":
                raise RuntimeError("the callback's own fault")
            call = CLIENT[self.callback]
            known = harness.known_inside(channel, delivery)
            with suppress(*refusals):
                call.run(harness, **call.arguments_inside(harness, **known))

        return called


OFTEN = 2 * [CLIENT["get"], CLIENT["ack"], CLIENT["ack"], CLIENT["nack"]]
"""What needs another call before it to have an effect is generated more often than the rest."""
PLANS = st.builds(
    ClientPlan,
    threads=st.lists(steps([*CLIENT.values(), *OFTEN], 3), min_size=1, max_size=3).map(tuple),
    callback=st.sampled_from(CALLBACKS),
    flag=st.sampled_from(["", *FLAGS]),
    messages=st.integers(0, 3),
    capacity=st.sampled_from([None, 1]),
    pool=st.integers(1, 2),
)
