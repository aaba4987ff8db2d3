"""The hand-over in the matrix: a pull queue whose consumers are served by the IO threads of their connections.

There is no mode ``serve``: that an IO thread runs a connection is a call, `run_one`, beside which any other is run.
What concerns a consumer's interest and credit happens on its connection's IO thread. So two such calls of one
connection are never concurrent, and neither is one of them with `run_one` where that would serve this connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import seriatim.queue as reference
from seriatim import handover
from seriatim_models.machines.calls import ApiCall, Caller, CallStanding
from seriatim_models.machines.queue.calls import HANDOVER, HandoverHarness, PlannedMessage
from seriatim_models.machines.stages import Stage
from seriatim_models.matrix.queue_scenes import (
    ANY_TURN,
    GROUPED,
    HIGH,
    JUST_PULLING,
    ONE,
    PLAIN,
    QUEUE_PROPERTIES,
    ROUNDS,
    SELECTOR,
    UNRECORDED,
    M,
    QueueMatrixScene,
    QueueUniverse,
    Subscriber,
    X,
)
from seriatim_models.matrix.scene import Invocation, MatrixSystem, Offer, Unsettled
from seriatim_models.matrix.table_scene import without

TABLE = without(HANDOVER, "pull")
"""Who pulls is the target, in `run_one`."""
ANOTHER = "again"
"""The argument of a second `run_one` beside the first."""


@dataclass(frozen=True)
class HandoverUniverse(QueueUniverse):
    """Consumers at targets: 0 and 1 are of one session; 2 is of another one on their connection; 3 of another one."""

    targets: tuple[int, ...] = (0, 0)

    def target(self, name: str) -> int:
        """Return the number of a consumer's target."""
        return self.targets["ABC".index(name)]


class HandoverMatrixScene(QueueMatrixScene):
    """A queue, and the targets, sessions and connections through which its consumers are served."""

    made = HandoverHarness
    table = TABLE
    harness: HandoverHarness

    def __init__(self, universe: HandoverUniverse, lib: ModuleType, stage: Stage) -> None:
        super().__init__(universe, lib, stage)
        harness = self.harness
        self.scheduler = harness.scheduler
        kind = _target_class(lib, self)
        self.targets = [kind(session, f"t{n}") for n, session in enumerate(harness.sessions)]

    def end_of(self, name: str) -> reference.Target:
        """Return the target of a consumer."""
        return self._target(name)

    def _target(self, name: str) -> handover.ConsumerTarget:
        assert isinstance(self.universe, HandoverUniverse)
        return self.targets[self.universe.target(name)]

    def _io(self, target: handover.ConsumerTarget) -> str:
        return f"io {target.session.connection.name}"

    # ---- calls

    def _offers_of(self, call: ApiCall) -> Iterator[Offer]:
        if call.name == "run_one":
            yield from self._runs()
            return
        for offer in super()._offers_of(call):
            if call.caller is Caller.OWNER or call.name == "subscribe":
                name = offer.invocation.arguments[0]
                yield replace(offer, thread=self._io(self._target(name)))
            else:
                yield offer

    def _runs(self) -> Iterator[Offer]:
        """Yield a run of the connection that is ready first; if two are, another IO thread may run beside it."""
        ready: Sequence[handover.Connection] = self.scheduler._ready._waiting.get()
        if ready:
            first = Invocation("run_one")
            yield Offer(first, CallStanding.IN_CONTRACT, f"io {ready[0].name}")
            if len(ready) > 1:
                other = Invocation("run_one", (ANOTHER,))
                thread = f"io {ready[1].name}"
                yield Offer(other, CallStanding.IN_CONTRACT, thread, twin_of=first)

    def make(self, invocation: Invocation) -> str:
        """Make a call and return what its caller sees. Who subscribes, or closes, is one of its target's, or not."""
        if invocation.call == "run_one":
            self.table["run_one"].run(self.harness)
            return ""
        result = super().make(invocation)
        name = invocation.arguments[0] if invocation.arguments else ""
        if invocation.call == "subscribe" and result != "refused":
            self._target(name).consumers.append(self.harness.consumers[name])
        elif invocation.call == "close":
            here = self._target(name).consumers
            here[:] = [c for c in here if c.name != name]
        return result

    # ---- what is left to be done

    def settle(self) -> None:
        """Run the connections that are ready until none is."""
        for _ in range(ROUNDS):
            if self.scheduler._ready.empty():
                return
            self.scheduler.run_one()
        raise Unsettled(f"after {ROUNDS} runs of connections one is ready")

    def serve(self, first: Mapping[str, Callable[[], None]]) -> None:
        """Raise `NotImplementedError`: what IO threads do is a call of the table, beside which any other is run."""
        raise NotImplementedError("run_one is a call")

    # ---- looking

    def state(self) -> str:
        """Return the text of the queue and of who has work, from the targets up to the scheduler."""
        return self.harness.state((), scheduler=self.scheduler, targets=self.targets)


def _target_class(lib: ModuleType, scene: HandoverMatrixScene) -> type[handover.ConsumerTarget]:
    """Return the reference's target, or a mutant's, that tells the scene what it sends."""

    class Target(lib.ConsumerTarget):  # type: ignore[misc, name-defined]  # the class of the reference under test
        def send(self, consumer: reference.Consumer, entry: reference.QueueEntry) -> None:
            scene.send(consumer, entry)
            super().send(consumer, entry)

    return Target


def _universe(
    name: str,
    why: str,
    consumers: tuple[Subscriber, ...],
    messages: tuple[PlannedMessage, ...],
    targets: tuple[int, ...] = (0, 0),
    **options: Any,
) -> HandoverUniverse:
    """Return a universe whose consumers are there from the start: how two arrive is for the pull queue's matrix."""
    given = tuple(f"subscribe {name}" for name in "ABC"[: len(consumers)])
    return HandoverUniverse(
        name, why, given, consumers=consumers, messages=messages, targets=targets, **options
    )


UNIVERSES = (
    HandoverUniverse("arrival", "a consumer comes", messages=(M,), idle=True),
    _universe("target", "one consumer, two messages", (PLAIN,), (M, M), idle=True),
    _universe("target-spent", "one consumer, which runs out of credit", (ONE,), (M, M)),
    _universe("turns", "one target, two consumers in turn", (PLAIN, PLAIN), (M, M)),
    _universe("target-credit", "one target, one runs out of credit", (ONE, PLAIN), (M, M)),
    _universe("target-ranks", "one target, the higher one first", (HIGH, PLAIN), (M, M)),
    _universe("targets", "two targets of one session", (PLAIN, PLAIN), (M, M), (0, 1)),
    _universe("sessions", "two sessions of one connection", (PLAIN, PLAIN), (M, M), (0, 2)),
    _universe("connections", "two connections, two IO threads", (PLAIN, PLAIN), (M, M), (0, 3)),
    _universe("connections-selector", "one wants what the other passes", (SELECTOR, PLAIN), (M, X), (0, 3)),
    _universe("connections-group", "a group has one owner", (PLAIN, PLAIN), (GROUPED, GROUPED), (0, 3)),
)  # fmt: skip
HANDOVER_SYSTEM = MatrixSystem(
    "handover",
    "queue",
    TABLE,
    UNIVERSES,
    HandoverMatrixScene,
    QUEUE_PROPERTIES,
    expected=(JUST_PULLING, ANY_TURN),
    unrecorded=UNRECORDED,
)
