"""The states that a few calls lead to, and the judgement of every edge between them.

A state is known by its canonical text and named by the shortest sequence of calls that leads to it. Two sequences that
lead to one text lead to states that behave alike, so only the first goes on. *Edges* are what must all be tried: a call
that is wrong in one state is right in a thousand others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from types import ModuleType
from typing import Any

from seriatim_models.machines.single_threaded_host import SingleThreadedHost
from seriatim_models.matrix.scene import (
    Invocation,
    MatrixScene,
    MatrixSystem,
    Offer,
    Universe,
    Unsettled,
)
from seriatim_models.properties import Finding, Verdict
from seriatim_models.properties.whitebox.judging import judge


@dataclass(frozen=True)
class SystemState:
    """A state of a universe, with the calls that can be made in it."""

    universe: Universe
    path: tuple[Invocation, ...]
    """The calls that lead to it, after those that the universe gives."""
    offers: tuple[Offer, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.path)) or "the beginning"


@dataclass(frozen=True)
class Edge:
    """A call made in a state, alone, with everything that it leaves to be done."""

    state: SystemState
    offer: Offer
    problem: str = ""
    """What was wrong; '' if nothing was."""


@dataclass
class Exploration:
    """All states of a universe to a depth, and all edges from them."""

    states: list[SystemState] = field(default_factory=list)
    """In the order of their depth."""
    edges: list[Edge] = field(default_factory=list)
    cut: int | None = None
    """From which depth on states or edges are missing, if `over` ended it; None if none are."""


def explore_states(
    system: MatrixSystem,
    universe: Universe,
    lib: ModuleType,
    depth: int,
    over: Callable[[], bool] = lambda: False,
) -> Exploration:
    """Return all states that at most `depth` calls lead to, and every edge from them, judged; or some, until `over`.

    A state behind an edge that is wrong is not entered.
    """
    found = Exploration()
    seen: set[bytes] = set()
    first = _replay(system, universe, lib, ())
    seen.add(_digest(first))
    level = [SystemState(universe, (), tuple(first.offers()))]
    for reached in range(depth + 1):
        found.states += level
        following: list[SystemState] = []
        for state in level:
            if over():
                found.cut = reached
                return found
            for offer in state.offers:
                if offer.twin_of is not None:
                    continue
                edge, after = _edge(system, state, offer, lib)
                found.edges.append(edge)
                if reached < depth and after is not None and _digest(after) not in seen:
                    seen.add(_digest(after))
                    path = (*state.path, offer.invocation)
                    following.append(SystemState(universe, path, tuple(after.offers())))
        if not following:
            break
        level = following
    return found


def explore_path(
    system: MatrixSystem, universe: Universe, lib: ModuleType, path: Sequence[Invocation]
) -> SystemState:
    """Return the state that these calls lead to. Raises `ValueError` if one of them cannot be made there."""
    scene, _ = recorded_scene(system, universe, lib)
    for invocation in path:
        if invocation not in [o.invocation for o in scene.offers()]:
            raise ValueError(f"{invocation} cannot be made there")
        scene.make(invocation)
    return SystemState(universe, tuple(path), tuple(scene.offers()))


def _replay(
    system: MatrixSystem, universe: Universe, lib: ModuleType, path: Sequence[Invocation]
) -> MatrixScene:
    scene, _ = recorded_scene(system, universe, lib)
    for invocation in path:
        scene.make(invocation)
    return scene


def recorded_scene(
    system: MatrixSystem, universe: Universe, lib: ModuleType
) -> tuple[MatrixScene, SingleThreadedHost]:
    """Return a scene on one thread, and the host that keeps what it records."""
    host = SingleThreadedHost()
    return system.scene(universe, lib, host), host


def seen_by_clients(
    scene: MatrixScene, results: Iterable[tuple[Invocation, str]]
) -> Mapping[str, Any]:
    """Return what clients see at the end: what their calls returned, and the scene's outcome."""
    returned: dict[str, list[str]] = {}
    for call, result in results:
        returned.setdefault(str(call), []).append(result)
    # Of a call that was made twice it does not matter which of the two returned what.
    shown = {call: ", ".join(sorted(filter(None, found))) for call, found in returned.items()}
    return {"returned": shown, **scene.outcome()}


def _digest(scene: MatrixScene) -> bytes:
    return blake2b(scene.state().encode(), digest_size=16).digest()


def _edge(
    system: MatrixSystem, state: SystemState, offer: Offer, lib: ModuleType
) -> tuple[Edge, MatrixScene | None]:
    """Make a call in a state; returns the edge, and the scene behind it, before settling, if nothing was wrong."""
    after = _replay(system, state.universe, lib, state.path)
    before = after.logical_state()
    result = after.make(offer.invocation)
    problem = offer.problem(result, before == after.logical_state())
    if not problem:
        problem = "; ".join(sequence_problems(system, state, (offer.invocation,), lib))
    edge = Edge(state, offer, problem)
    return edge, None if problem else after


def sequence_problems(
    system: MatrixSystem, state: SystemState, calls: Sequence[Invocation], lib: ModuleType
) -> Iterator[str]:
    """Yield what is wrong with a state after some calls, one after the other, and after settling."""
    scene, host = recorded_scene(system, state.universe, lib)
    for invocation in (*state.path, *calls):
        scene.make(invocation)
    try:
        scene.settle()
    except Unsettled as error:
        yield f"settling: {error}"
        return
    scene.record_rest()
    for finding in judge(host.events, system.properties):
        if finding.verdict is Verdict.VIOLATED:
            yield text(finding)


def edge_problem(
    system: MatrixSystem, state: SystemState, offer: Offer, lib: ModuleType, right: ModuleType
) -> str:
    """Return what is wrong with an edge of the right reference over a mutant of it; '' if nothing is.

    The edge is judged as over the right reference, and what clients see behind it must be what they see there.
    An error that the mutant raises is a problem like any other.
    """
    try:
        edge, _ = _edge(system, state, offer, lib)
        return edge.problem or _against_right(system, state, offer, lib, right)
    except Exception as error:
        return f"error: {type(error).__name__}: {error}"


def _against_right(
    system: MatrixSystem, state: SystemState, offer: Offer, lib: ModuleType, right: ModuleType
) -> str:
    seen = []
    for modules in (lib, right):
        scene = _replay(system, state.universe, modules, state.path)
        result = scene.make(offer.invocation)
        scene.settle()
        seen.append(seen_by_clients(scene, [(offer.invocation, result)]))
    mine, due = seen
    parts = [
        f"{k} is {mine.get(k)}, and {due.get(k)} over the right reference"
        for k in {**due, **mine}
        if mine.get(k) != due.get(k)
    ]
    return f"outcome: {'; '.join(parts)}" if parts else ""


def text(finding: Finding) -> str:
    """Return a violation in one line."""
    return f"{finding.property}: {finding.explanation}"
