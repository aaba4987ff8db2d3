"""The fair consumer in the matrix: brokers that deliver, a loop that serves, and whoever stops it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, ParamSpec, TypeVar, cast

from seriatim_models.machines.calls import ApiCall
from seriatim_models.machines.fair.calls import FAIR, FairHarness, waiting
from seriatim_models.machines.stages import ProgramStage, Stage
from seriatim_models.matrix.callbacks import CallInside
from seriatim_models.matrix.scene import (
    ExpectedDifference,
    Invocation,
    MatrixSystem,
    Universe,
    Unsettled,
)
from seriatim_models.matrix.table_scene import TableScene, UnobservedWorld, without
from seriatim_models.properties.whitebox.fair import FAIR as PROPERTIES

P = ParamSpec("P")
R = TypeVar("R")

ROUNDS = 40
"""More than any state here needs to be served."""


@dataclass(frozen=True)
class FairUniverse(Universe):
    """A fair consumer with a slot for each quantum."""

    quanta: tuple[int, ...] = (2, 1)
    prefetch: int = 2
    weights: tuple[int, ...] = (1,)
    """Of the deliveries that come; 0 is refused."""
    fails_on: int = 0
    """The weight at which the handler raises."""
    callers: tuple[str, ...] = ("handler", "settle", "weight")
    """Who calls what a callback calls, each once."""


class FairMatrixScene(TableScene[FairHarness]):
    """A fair consumer in a universe."""

    def __init__(self, universe: FairUniverse, lib: ModuleType, stage: Stage) -> None:
        world = UnobservedWorld.of(cast(ProgramStage, stage).world)
        harness = FairHarness(
            world, lib, universe.quanta, universe.prefetch, lambda w: w == universe.fails_on
        )
        super().__init__(harness, TABLE, (ValueError, lib.Overrun))
        self.universe = universe
        self.stage = stage
        self.inside: CallInside | None = None
        if universe.callback:
            call = TABLE[universe.callback]
            self.inside = CallInside(call, harness, partial(self._run_inside, call), self.state)
            self._call_from(harness)

    def _call_from(self, harness: FairHarness) -> None:
        """Have handler, settlement and weighing make the callback's call before they do what they do."""
        consumer = harness.consumer
        consumer.handler = self._calling("handler", consumer.handler)
        consumer.settle = self._calling("settle", consumer.settle)
        for slot in harness.slots:
            slot.weight = self._calling("weight", slot.weight)

    def _calling(self, who: str, then: Callable[P, R]) -> Callable[P, R]:
        def callback(*args: P.args, **kwargs: P.kwargs) -> R:
            if self.inside is not None and who in self.universe.callers:
                alone = cast(ProgramStage, self.stage).world.alone
                self.inside.make(who, alone, slot=self.harness.slots[0])
            return then(*args, **kwargs)

        return callback

    def _run_inside(self, call: ApiCall, who: str, arguments: Mapping[str, Any]) -> str:
        return self.run(call, arguments)

    def offered(self, call: ApiCall, arguments: Mapping[str, Any]) -> bool:
        """Return whether a delivery has a weight of this universe, or none, or comes for another's slot.

        One without a weight is weighed before it is refused, so where weighing calls it is not without effect. And
        where callbacks deliver there is room for them: else one of them is refused amid a round, or another's delivery.
        """
        if call.name != "deliver":
            return True
        slot, callbacks = arguments["slot"], len(self.universe.callers)
        if self.inside is not None and len(slot.waiting) + callbacks >= slot.prefetch:
            return False
        foreign = slot is self.harness.foreign
        none = (0,) if not foreign and self.inside is None else ()
        weights = self.universe.weights[:1] if foreign else (*self.universe.weights, *none)
        return arguments["weight"] in weights

    def thread(self, call: ApiCall, arguments: Mapping[str, Any]) -> str:
        """Return the loop's thread for what only it may do."""
        return "loop" if call.name in ("serve_round", "round") else ""

    def make(self, invocation: Invocation) -> str:
        """Make a call and return what its caller sees. Raises `Unsettled` for a round before which the loop sleeps."""
        if invocation.call == "serve_round" and not self._awake():
            raise Unsettled("the loop sleeps, for nothing waits")
        return super().make(invocation)

    def _awake(self) -> bool:
        """Return whether the loop would not sleep: by its tokens, since others may be putting something into a slot."""
        consumer = self.harness.consumer
        return bool(consumer._held or _permits(consumer.tokens)) or consumer._stopping.get()

    def settle(self) -> None:
        """Serve until nothing waits, or until the loop has ended if it was asked to; look at what callbacks called."""
        self._serve_what_waits()
        if self.inside is not None:
            self.inside.check_end()

    def _serve_what_waits(self) -> None:
        consumer = self.harness.consumer
        for _ in range(ROUNDS):
            if not (waiting(self.harness) or consumer._stopping.get()):
                return
            if not self.harness.serve_round():
                return
        raise Unsettled(f"after {ROUNDS} rounds something waits")

    def serve(self, first: Mapping[str, Callable[[], None]]) -> None:
        """Spawn the loop."""
        run = partial(self._loop, first.get("loop"))
        cast(ProgramStage, self.stage).spawn(run, name="loop", daemon=True)

    def _loop(self, first: Callable[[], None] | None) -> None:
        if first is not None:
            first()
        for _ in range(ROUNDS):
            if not self.harness.consumer.park():
                return
            self.harness.consumer.round()

    def record_rest(self) -> None:
        """Record tokens and deliveries."""
        consumer = self.harness.consumer
        waits = sum(len(slot.waiting) for slot in self.harness.slots)
        tokens = _permits(consumer.tokens) + consumer._held
        self.stage.host.record("fair_rest", tokens=tokens, waiting=waits)

    def state(self) -> str:
        """Return what waits, the deficits, the tokens, and whether the loop was stopped."""
        consumer = self.harness.consumer
        slots = [([w for _, w in s.waiting], s.deficit) for s in self.harness.slots]
        permits = _permits(consumer.tokens)
        ends = (consumer._stopping.get(), consumer._ended)
        called = "" if self.inside is None else f" called={sorted(self.inside.returned)}"
        return f"{slots} tokens={permits} held={consumer._held} ends={ends}{called}"

    def outcome(self) -> Mapping[str, Any]:
        """Return what was settled of each weight, what waits in each slot, and whether the loop has ended."""
        harness = self.harness
        return {
            "settled": sorted(harness.settled),
            **{slot.name: [w for _, w in slot.waiting] for slot in harness.slots},
            "ended": harness.consumer._ended,
            **({} if self.inside is None else {"called": dict(self.inside.returned)}),
        }


def _permits(semaphore: Any) -> int:
    """Return how many permits there are, on one thread or in an execution of the explorer."""
    return cast(int, semaphore.value if hasattr(semaphore, "value") else semaphore._value)


TABLE = without(FAIR, "make_slot")


def _all_there(outcome: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what was delivered, settled or not, and what is not about it."""
    kept = {k: v for k, v in outcome.items() if k in ("ended", "called")}
    slots = [w for k, v in outcome.items() if k.startswith("p") for w in v]
    returned = {c: r for c, r in outcome["returned"].items() if not c.startswith("serve_round")}
    settled = [w for w, _ in outcome["settled"]]
    return {**kept, "returned": returned, "deliveries": sorted(settled + slots)}


BETWEEN_TWO = ExpectedDifference(
    "a loop that is asked to end does so between two deliveries, so within a round: some of what waits is served",
    compared=_all_there,
)


UNIVERSES = (
    FairUniverse("one-slot", "one slot, and who wakes the loop", quanta=(1,), serve=True),
    FairUniverse("two-slots", "turns", serve=True),
    FairUniverse("heavy", "a delivery takes several rounds", quanta=(2, 1), weights=(1, 3)),
    FairUniverse("full", "the prefetch is used up", quanta=(1,), prefetch=1, serve=True),
    FairUniverse("failing", "handlers raise", quanta=(2,), weights=(1, 2), fails_on=2, serve=True),
    FairUniverse(
        "inside-deliver",
        "handler, settlement and weighing deliver",
        quanta=(1,),
        prefetch=9,
        serve=True,
        callback="deliver",
    ),
    FairUniverse(
        "inside-stop",
        "handler and settlement ask the loop to end",
        given=("deliver p0 1",),
        quanta=(1,),
        serve=True,
        callback="stop",
        callers=("handler", "settle"),
    ),
)
FAIR_SYSTEM = MatrixSystem(
    "fair",
    "fair",
    TABLE,
    UNIVERSES,
    FairMatrixScene,
    [p for p in PROPERTIES if p.id != "FQ-5"],  # which reads simulations
    expected=(BETWEEN_TWO,),
)
