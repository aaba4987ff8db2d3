"""The sweeps against the literal readings: on any history, right, wrong or spoilt, they find the same."""

from __future__ import annotations

import random
import sys
from collections import Counter
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seriatim_models.explorer import Random, World
from seriatim_models.explorer.model.guard import guarded
from seriatim_models.explorer.model.program import Limits, Setting
from seriatim_models.explorer.search.runner import Runner
from seriatim_models.history import Event
from seriatim_models.machines.queue.calls import PlannedMessage
from seriatim_models.programs.check import history
from seriatim_models.programs.mutant_modules import load
from seriatim_models.properties import PROPERTIES
from seriatim_models.properties.base import Finding
from seriatim_models.properties.whitebox.replay import OnReplay, Replay
from seriatim_workshop.machines.concurrent import build
from seriatim_workshop.machines.queue.generated_programs import PlannedConsumer, QueuePlan

from .definitions import LITERALLY, Literal
from .whitebox_histories import queue_histories, spoilt


def said(p: OnReplay, h: Replay) -> Finding | str:
    try:
        return p.judge(h)
    except (LookupError, StopIteration, AssertionError) as error:
        return type(error).__name__  # what no recorder writes: a consumer nobody has heard of


def agree(events: list[Event], seen: Counter[tuple[str, str]]) -> None:
    try:
        h, literal = Replay(events), Literal(events)
    except LookupError:  # the same: a pointer of somebody who is not there
        return
    for id, definition in LITERALLY.items():
        p = PROPERTIES[id]
        assert isinstance(p, OnReplay)
        found, due = said(p, h), said(definition, literal)
        if isinstance(found, Finding) and isinstance(due, Finding):
            assert found == due
            seen[id, found.verdict.value] += 1


def at_random(choose: random.Random) -> list[Event]:
    return spoilt(choose, choose.choice(queue_histories()))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_sweep_finds_what_its_definition_does(seed: int) -> None:
    agree(at_random(random.Random(seed)), Counter())


@pytest.mark.slow
def test_sweeps_find_what_their_definitions_do_on_many() -> None:
    """With each property violated by some and not by others."""
    seen: Counter[tuple[str, str]] = Counter()
    for events in queue_histories():
        agree(events, seen)
    for seed in range(4000):
        agree(at_random(random.Random(seed)), seen)
    for id in LITERALLY:
        assert seen[id, "ok"] > 20, seen
        assert seen[id, "violated"] > 1, seen


# ---- what they cost

FEW, MANY = 40, 320
"""Messages; what costs a scan for each is eight times as dear for an event of the longer history."""


def recorded(messages: int) -> dict[str, list[Event]]:
    """Return three histories by name: one that wakes, one with groups, priorities and time, one that pushes.

    The schedules are sampled with a seed, so the histories are the same on every machine, however busy it is.
    """
    choose = random.Random(messages)

    def message() -> PlannedMessage:
        return PlannedMessage(
            priority=choose.choice([4, 9]),
            key=choose.choice(["", "x"]),
            group=choose.choice(["", "", f"g{choose.randrange(messages // 4)}"]),
            special=choose.choice(["", "", "expiring", "held"]),
        )

    half = (PlannedMessage(),) * (messages // 2)
    mixed = tuple(message() for _ in half)
    consumers = (
        PlannedConsumer(keeps="return"),
        PlannedConsumer(keeps="dequeue"),
        PlannedConsumer(acquires=False),
    )
    busy = PlannedConsumer(script=("dequeue",) * messages)
    plans = {
        "pull": QueuePlan(publishers=(half, half), consumers=consumers),
        "mixed": QueuePlan(
            levels=2, preloaded=mixed, publishers=(mixed,), consumers=consumers, housekeeping=True
        ),
        "push": QueuePlan(kind="push", publishers=(half, half), consumers=(busy, busy)),
    }
    return {name: one_history(plan) for name, plan in plans.items()}


def one_history(plan: QueuePlan) -> list[Event]:
    """Return the history of a plan under one sampled schedule, always the same one.

    Of the steps of `explore` only the search itself: the rest costs several executions of thousands of steps each.
    """
    executed: list[list[Event]] = []
    lib = load(plan.system)

    def keep(world: World) -> None:
        executed.append(history(world))

    runner = Runner(
        lambda world: build(plan, world, lib),
        Setting(stuck_ok=True),
        Limits(max_executions=1, max_steps=1_000_000),
        on_execution=keep,
        count_traces=False,
    )
    with guarded():
        Random(seed=1).search(runner)
    assert not runner.cut
    assert not runner.violations
    (events,) = executed
    return events


def cost(p: OnReplay, events: list[Event]) -> float:
    """How many lines of Python are run to judge, for each event of the history."""
    lines = 0

    # Any: what a trace function is given besides the frame means something else for each kind of event
    def count(frame: FrameType, kind: str, arg: Any) -> Any:
        nonlocal lines
        lines += 1
        return count

    h = Literal(events) if p is LITERALLY.get(p.id) else Replay(events)
    before = sys.gettrace()
    sys.settrace(count)
    try:
        p.judge(h)
    finally:
        sys.settrace(before)
    return lines / len(events)


@pytest.fixture(scope="module")
def recordings() -> list[tuple[list[Event], list[Event]]]:
    few, many = recorded(FEW), recorded(MANY)
    return [(few[name], many[name]) for name in few]


def dearer(p: OnReplay, few: list[Event], many: list[Event]) -> float:
    """By how much an event of the longer history is dearer than one of the shorter."""
    return cost(p, many) / max(cost(p, few), 1)


@pytest.mark.parametrize("id", [p for p in PROPERTIES if isinstance(PROPERTIES[p], OnReplay)])
def test_judging_costs_what_the_history_is_long(
    id: str, recordings: list[tuple[list[Event], list[Event]]]
) -> None:
    p = PROPERTIES[id]
    assert isinstance(p, OnReplay)
    assert max(dearer(p, few, many) for few, many in recordings) < 3


def test_a_definition_does_not_inherit_the_judgement_it_is_compared_with() -> None:
    for id, definition in LITERALLY.items():
        own = vars(type(definition))
        assert "judge" in own or ("cases" in own and type(definition).judge is OnReplay.judge), id


@pytest.mark.slow
def test_judging_by_the_definitions_costs_more(
    recordings: list[tuple[list[Event], list[Event]]],
) -> None:
    """So the test above would notice."""
    for id in ("SO-1", "SO-3", "SP-3"):
        assert any(dearer(LITERALLY[id], few, many) > 4 for few, many in recordings), id
