"""States: known by a canonical text, reached by the shortest path, every edge judged."""

from dataclasses import replace

import pytest

from seriatim.host import Threads
from seriatim_models.machines.canonical import UnknownObject, canonical
from seriatim_models.matrix.fair_scenes import FAIR_SYSTEM
from seriatim_models.matrix.queue_scenes import (
    PULL_SYSTEM,
    PULL_UNIVERSES,
    PUSH_SYSTEM,
    QueueSystem,
)
from seriatim_models.matrix.scene import Invocation
from seriatim_models.matrix.states import (
    explore_path,
    explore_states,
    recorded_scene,
    sequence_problems,
)
from seriatim_models.matrix.work import universe_of
from seriatim_models.programs import MUTANTS
from seriatim_models.programs.mutant_modules import load

LIB = load("queue")
LIB_FAIR = load(FAIR_SYSTEM.reference)


def state_after(universe: str, *calls: str) -> str:
    scene, _ = recorded_scene(PULL_SYSTEM, universe_of(PULL_SYSTEM, universe), LIB)
    for call in calls:
        scene.make(Invocation.read(call))
    return scene.state()


def test_paths_that_lead_to_one_state_have_one_text() -> None:
    left = state_after("selector", "enqueue m1", "subscribe A", "pause A")
    right = state_after("selector", "subscribe A", "pause A", "enqueue m1")
    assert left != right, "A looked at m1 on one path only"
    again = ["subscribe A", "pull A", "enqueue m1", "pull A", "release A m1", "pull A"]
    assert state_after("alone", *again) == state_after("alone", *again)


def test_a_consumer_that_has_to_pull_is_another_state() -> None:
    served = state_after("alone", "subscribe A", "enqueue m1", "pull A", "pull A")
    woken = state_after("alone", "subscribe A", "enqueue m1", "pull A")
    assert served != woken, "what the last pull returned is part of the state"


def test_the_text_follows_identity_and_not_addresses() -> None:
    host = Threads()
    shared, other = host.cell(1), host.cell(1)
    assert canonical({"a": [shared, shared]}) == canonical({"a": [other, other]})
    assert canonical({"a": [shared, shared]}) != canonical({"a": [shared, other]})
    assert canonical({"a": host.cell(1)}) != canonical({"a": host.cell(2)})


def test_what_has_no_text_is_an_error() -> None:
    with pytest.raises(UnknownObject, match="object"):
        canonical({"a": object()})


@pytest.mark.parametrize("system", [PULL_SYSTEM, PUSH_SYSTEM])
def test_a_state_is_expanded_once(system: QueueSystem) -> None:
    found = explore_states(system, universe_of(system, "alone"), LIB, 2)
    assert len({s.path for s in found.states}) == len(found.states)
    assert {len(s.path) for s in found.states} == {0, 1, 2}
    offered = sum(1 for s in found.states for o in s.offers if o.twin_of is None)
    assert len(found.edges) == offered, "every call that can be made is tried from every state"
    assert not [e for e in found.edges if e.problem]


def test_a_depth_that_no_state_has_ends_with_the_last_state() -> None:
    found = explore_states(FAIR_SYSTEM, universe_of(FAIR_SYSTEM, "full"), LIB_FAIR, 10**12)
    assert (len(found.states), len(found.edges), found.cut) == (6, 35, None)


@pytest.mark.parametrize(
    ("mutant", "universe", "call"),
    [("granted-after-close", "two", "grant A 1"), ("closed-twice", "two", "close A")],
)
def test_a_wrong_call_after_close_is_an_edge_that_is_wrong(
    mutant: str, universe: str, call: str
) -> None:
    lib = load("queue", MUTANTS[mutant])
    found = explore_states(PULL_SYSTEM, universe_of(PULL_SYSTEM, universe), lib, 2)
    wrong = {str(e.offer.invocation) for e in found.edges if e.problem}
    assert call in wrong


@pytest.mark.parametrize("system", [PULL_SYSTEM, PUSH_SYSTEM])
@pytest.mark.parametrize("before", [["subscribe A"], ["subscribe A", "grant A 1"]])
def test_who_is_paused_is_owed_nothing(system: QueueSystem, before: list[str]) -> None:
    """Both were taken for the queue's own calls once, and the consumer for one that wants messages."""
    universe = universe_of(system, "two")
    path = [Invocation.read(c) for c in (*before, "pause A")]
    state = explore_path(system, universe, LIB, path)
    assert not list(sequence_problems(system, state, [Invocation.read("enqueue m1")], LIB))


def test_a_call_that_cannot_be_made_there_is_refused() -> None:
    with pytest.raises(ValueError, match="pull B cannot be made there"):
        explore_path(PUSH_SYSTEM, universe_of(PUSH_SYSTEM, "two"), LIB, [Invocation.read("pull B")])


def test_one_of_two_equal_messages_is_enqueued_first() -> None:
    universe, selector = (
        next(u for u in PULL_UNIVERSES if u.name == name) for name in ("alone", "selector")
    )
    offers = explore_path(PULL_SYSTEM, universe, LIB, []).offers
    twins = {str(o.invocation): str(o.twin_of) for o in offers if o.twin_of is not None}
    assert twins == {"enqueue m2": "enqueue m1"}
    different = replace(universe, messages=selector.messages)
    assert not [o for o in explore_path(PULL_SYSTEM, different, LIB, []).offers if o.twin_of]
