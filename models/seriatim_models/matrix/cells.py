"""Two calls beside each other, from one state, under every schedule: the programs of the matrix.

A *cell* of the matrix is a pair of call names; a *pair* here is one program of it: a universe, a state, two
invocations, and a mode. In mode ``settle`` only the two calls race, and what they leave to be done is done afterwards
in a fixed order; in mode ``serve`` the system's own threads run beside them.

Each execution is judged by every property of the system. All executions together are judged by the outcome oracle,
which needs no property: what clients see at the end must be what they see after the two calls, one after the other,
in one order or the other. What the oracle lets pass is listed by the system, each with its reason.
A mutant's outcomes are compared with the orders of the right reference: so one that does the same wrong thing in every
order is seen, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import permutations, product
from types import ModuleType
from typing import Any, Literal

import msgspec

from seriatim_models.explorer import Dpor, ExplorerError, Misuse, Result, World, explore
from seriatim_models.explorer.model.guard import guarded
from seriatim_models.explorer.model.program import Limits, Setting
from seriatim_models.explorer.model.world import Record
from seriatim_models.explorer.search.runner import Runner
from seriatim_models.history.event import Event, event
from seriatim_models.machines.calls import CallStanding
from seriatim_models.machines.stages import WorldStage
from seriatim_models.matrix.callbacks import UNFINISHED
from seriatim_models.matrix.scene import (
    Invocation,
    MatrixScene,
    MatrixSystem,
    Offer,
    Universe,
    Unsettled,
)
from seriatim_models.matrix.states import SystemState, recorded_scene, seen_by_clients, text
from seriatim_models.properties import Finding, Verdict
from seriatim_models.properties.whitebox.judging import judge

Mode = Literal["settle", "serve"]
MAX_STEPS = 2000
"""Steps of one execution; the longest of these programs needs fewer than 400."""
JUDGED_TOGETHER = 32
"""So many executions of a program are judged one after the other, when they are over: between others judging takes
half as long again."""


@dataclass(frozen=True)
class CallPair:
    """A program: two or more calls, each on a thread of its own, from one state."""

    universe: Universe
    path: tuple[Invocation, ...]
    calls: tuple[Invocation, ...]
    owners: tuple[str, ...]
    """The thread that makes each call, where only one may; '' for any."""
    mode: Mode = "settle"

    def __str__(self) -> str:
        before = ", ".join(map(str, self.path))
        at_once = " | ".join(map(str, self.calls))
        serving = " (serve)" if self.mode == "serve" else ""
        return f"{self.universe.name}: {before}{'; ' if before else ''}{at_once}{serving}"


class PairResult(msgspec.Struct, frozen=True):
    """What came of one program."""

    executions: int
    exhausted: bool
    problem: str = ""
    """What was wrong in the first execution that was wrong; '' if nothing was."""
    excused: tuple[str, ...] = ()
    """The reasons by which the outcome oracle let differences pass."""


def pairs(
    state: SystemState, modes: Sequence[Mode] = ("settle",), at_once: int = 2
) -> Iterator[CallPair]:
    """Yield every program of `at_once` calls from a state.

    Left out are calls that one thread must make, and sets of which no call is in contract. Calls without effect stand
    beside others in universes that say so. A call that its arguments alone refuse has nothing to race for.
    """
    offers = [
        o
        for o in state.offers
        if o.standing is CallStanding.IN_CONTRACT or (state.universe.idle and not o.by_arguments)
    ]
    for mode in modes:
        if state.universe.serve if mode == "serve" else state.universe.settle:
            beside = at_once - state.universe.callback_races
            for chosen in _combinations(offers, beside, state.universe.twice):
                yield CallPair(
                    state.universe,
                    state.path,
                    tuple(o.invocation for o in chosen),
                    tuple(o.thread for o in chosen),
                    mode,
                )


def _combinations(
    offers: Sequence[Offer], at_once: int, twice: bool = False
) -> Iterator[tuple[Offer, ...]]:
    def extend(chosen: tuple[Offer, ...], start: int) -> Iterator[tuple[Offer, ...]]:
        if len(chosen) == at_once:
            if any(o.standing is CallStanding.IN_CONTRACT for o in chosen):
                yield chosen
            return
        for n in range(start, len(offers)):
            offer = offers[n]
            if any(o.thread and o.thread == offer.thread for o in chosen):
                continue
            if offer.twin_of is not None and offer.twin_of not in [o.invocation for o in chosen]:
                continue
            yield from extend((*chosen, offer), n if twice else n + 1)

    return extend((), 0)


class PairProgram:
    """A pair as a program of the explorer, which keeps what the executions showed."""

    def __init__(
        self,
        system: MatrixSystem,
        lib: ModuleType,
        pair: CallPair,
        each: bool = False,
        right: ModuleType | None = None,
    ) -> None:
        """Run `pair` over `lib`, and the orders of its calls over `right`; over `lib` itself if that is None.

        With `each` the execution whose outcome is wrong is the one that is wrong, also if it is the first.
        """
        self.each = each or right is not None
        self.system = system
        self.lib = lib
        self.right = lib if right is None else right
        self.pair = pair
        self.outcomes: dict[bytes, Mapping[str, Any]] = {}
        """The outcomes of executions so far, by their text."""
        self.excused: set[str] = set()
        self.violated: dict[str, Finding] = {}
        """The last finding of each property that was violated."""
        self.scene: MatrixScene
        self.results: list[str]
        self._recorded = 0
        self._set_up: list[Event] = []
        """The events of the set-up, which are the same in every execution."""
        self._known: set[bytes] = set()
        """What executions recorded, as digests."""
        self._unjudged: list[Sequence[Record]] = []
        """What executions recorded that no property was asked about yet."""
        self._orders: list[Mapping[str, Any]] | None = None
        self._judged: dict[bytes, str | None] = {}
        """Outcome -> what is wrong with it."""
        self.__name__ = self.__qualname__ = str(pair)

    def __call__(self, world: World) -> None:
        """Set the state up, spawn the calls, and let everything settle at the end."""
        pair = self.pair
        stage = WorldStage(world, self.system.unrecorded)
        scene = self.scene = self.system.scene(pair.universe, self.lib, stage)
        for invocation in pair.path:
            scene.make(invocation)
        if not world.repeating:
            self._recorded = len(world.records)
        self.results = [UNFINISHED] * len(pair.calls)
        first: dict[str, Callable[[], None]] = {}
        for n, owner in enumerate(pair.owners):
            call = partial(self._call, n)
            if owner and pair.mode == "serve":
                first[owner] = call
            else:
                world.spawn(call, name=f"T{n + 1}")
        if pair.mode == "serve":
            scene.serve(first)
        world.at_end(self._settle)

    def _call(self, n: int) -> None:
        self.results[n] = self.scene.make(self.pair.calls[n])

    def _settle(self) -> str | None:
        try:
            self.scene.settle()
        except Unsettled as error:
            return f"settling: {error}"
        except Misuse as error:
            return f"settling: a call would wait for ever ({error})"
        self.scene.record_rest()
        return None

    def observe(self, world: World) -> str | None:
        """Judge an execution after its end, and keep its outcome; returns what is wrong with it.

        Without `each`, properties are asked about several executions together: then it may be one before it that is
        wrong, and after the last `judge_the_rest` says what is wrong with those that are left.
        """
        recorded = self._recorded_text(world)
        if recorded not in self._known:
            self._known.add(recorded)
            self._unjudged.append(world.records)
            if self.each or len(self._unjudged) == JUDGED_TOGETHER:
                wrong = self.judge_the_rest()
                if wrong is not None:
                    self._known.discard(recorded)
                    return wrong
        outcome = seen_by_clients(self.scene, zip(self.pair.calls, self.results, strict=True))
        wrong = self._against_orders(msgspec.msgpack.encode(outcome), outcome) or self._unfinished()
        return wrong and (self.judge_the_rest() or wrong)

    def _unfinished(self) -> str | None:
        """Return which racing call has not returned, if one has not."""
        for call, result in zip(self.pair.calls, self.results, strict=True):
            if result == UNFINISHED:
                return f"{call} did not return"
        return None

    def judge_the_rest(self) -> str | None:
        """Ask the properties about what was not judged yet; returns the first violation."""
        unjudged, self._unjudged = self._unjudged, []
        for records in unjudged:
            for finding in judge(self._history(records), self.system.properties):
                if finding.verdict is Verdict.VIOLATED:
                    self.violated[finding.property] = finding
                    return text(finding)
        return None

    def _recorded_text(self, world: World) -> bytes:
        """Return a digest of all that properties read of an execution: its events in their order, without the steps.

        Executions differ in steps that record nothing, such as reads: of several that record the same one is judged.
        """
        records = [(r.thread, r.ev, r.args) for r in world.records[self._recorded :]]
        return blake2b(msgspec.msgpack.encode(records), digest_size=16).digest()

    def _history(self, records: Sequence[Record]) -> list[Event]:
        known = self._set_up
        for i in range(len(known), len(records)):
            if i == self._recorded:
                break
            r = records[i]
            known.append(event(i, 0, r.thread, r.ev, r.args, "model"))
        return known + [
            event(i, r.step, r.thread, r.ev, r.args, "model")
            for i, r in enumerate(records[self._recorded :], self._recorded)
        ]

    # ---- the outcome oracle

    def _against_orders(self, key: bytes, outcome: Mapping[str, Any]) -> str | None:
        """Return what is wrong with an outcome, or with one before it.

        The executions include one of each order, up to commuting steps: so if all executions have one outcome,
        it is that of the orders over the same modules, and nothing needs to be compared.
        """
        if key in self.outcomes:
            return self._judged.get(key)
        self.outcomes[key] = outcome
        if len(self.outcomes) == 1 and not self.each:
            return None
        if self._orders is None:
            self._orders = list(self._in_all_orders(self.pair.universe, self.pair.calls))
        for known, other in self.outcomes.items():
            if known not in self._judged:
                wrong = other not in self._orders and not self._expected(other)
                text = f"outcome: {difference(other, self._orders)}" if wrong else None
                self._judged[known] = text
        return self._judged[key] if self.each else next(filter(None, self._judged.values()), None)

    def _in_all_orders(
        self, universe: Universe, calls: Sequence[Invocation]
    ) -> Iterator[Mapping[str, Any]]:
        """Yield the outcome of each order; in mode ``serve`` what is left to be done may be done before any call."""
        serving = (False, True) if self.pair.mode == "serve" else (False,)
        for order in dict.fromkeys(permutations(calls)):  # some are the same call once more
            for served in product(serving, repeat=len(calls)):
                with suppress(
                    Exception
                ):  # an order that fails has no outcome; it is an execution, and wrong there
                    yield self._in_order(universe, order, served)

    def _in_order(
        self, universe: Universe, order: Sequence[Invocation], served: Sequence[bool]
    ) -> Mapping[str, Any]:
        scene, _ = recorded_scene(self.system, universe, self.right)
        for invocation in (*self.pair.path, *map(Invocation.read, universe.then)):
            scene.make(invocation)
        results = []
        for invocation, serve in zip(order, served, strict=True):
            if serve:
                scene.settle()
            results.append((invocation, scene.make(invocation)))
        scene.settle()
        return seen_by_clients(scene, results)

    def _expected(self, outcome: Mapping[str, Any]) -> bool:
        pair = self.pair
        for known in self.system.expected:
            due = known.compared(outcome)
            for universe, calls in known.instead(pair.universe, pair.calls):
                if any(known.compared(o) == due for o in self._in_all_orders(universe, calls)):
                    self.excused.add(known.why)
                    return True
        return False


def difference(outcome: Mapping[str, Any], orders: Sequence[Mapping[str, Any]]) -> str:
    """Return how an outcome differs from that of the order which is nearest to it."""

    def differing(order: Mapping[str, Any]) -> list[str]:
        return [k for k in {**order, **outcome} if outcome.get(k) != order.get(k)]

    if not orders:
        return "no order of the calls comes to an end"
    nearest = min(orders, key=lambda order: len(differing(order)))
    parts = [f"{k} is {outcome.get(k)}, and {nearest.get(k)} in order" for k in differing(nearest)]
    return "; ".join(parts) + " (no order of the calls leads there)"


def run_pair(
    system: MatrixSystem,
    lib: ModuleType,
    pair: CallPair,
    max_executions: int | None = None,
    right: ModuleType | None = None,
) -> PairResult:
    """Run a program under every schedule, or as many as the budget allows, until something is wrong.

    If `lib` is a mutant, `right` is the right reference, with whose orders its outcomes are compared.
    """
    program = PairProgram(system, lib, pair, right=right)
    runner = Runner(
        program,
        Setting(),
        Limits(max_executions=max_executions, max_steps=MAX_STEPS),
        on_execution=program.observe,
        count_traces=False,
    )
    try:
        with guarded():
            Dpor().search(runner)
    except ExplorerError as error:
        return PairResult(runner.executions, False, f"cannot be explored: {error}")
    except Exception as error:  # out of the reference, while the state is set up
        return PairResult(runner.executions, False, f"error: {type(error).__name__}: {error}")
    found = str(runner.found[0][1][0]) if runner.found else ""
    problem = program.judge_the_rest() or found
    return PairResult(runner.executions, runner.exhausted, problem, tuple(sorted(program.excused)))


def explained(
    system: MatrixSystem,
    lib: ModuleType,
    pair: CallPair,
    right: ModuleType | None = None,
    **options: Any,
) -> tuple[Result, list[Finding]]:
    """Return the result of `explore` on a program, with its shortest counterexample, and the properties it violates.

    `right` is as in `run_pair`; `options` are those of `explore`.
    """
    program = PairProgram(system, lib, pair, each=True, right=right)
    result = explore(program, on_execution=program.observe, max_steps=MAX_STEPS, **options)
    return result, list(program.violated.values())
