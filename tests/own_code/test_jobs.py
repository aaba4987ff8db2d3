"""Several processes share the search of a plain test, and find what one finds: verdict, counts, places that race."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest
from tests.own_code import shared_search

from seriatim_models.explorer import OutsideModel, Replay
from seriatim_models.explorer.errors import NotObserved
from seriatim_models.explorer.model.world import World
from seriatim_models.explorer.python import check, front
from seriatim_models.explorer.search import parallel


@pytest.fixture(autouse=True)
def workers_do_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first process runs one execution of a round, and gives all others away."""
    monkeypatch.setattr(front, "SOON", 1)
    monkeypatch.setattr(front, "SAMPLED", 1)
    monkeypatch.setattr(parallel, "EXECUTIONS_PER_TASK", 1)
    monkeypatch.setattr(parallel.Coordinator, "explore_one_task", lambda self, pool: None)


@pytest.mark.parametrize("test", [shared_search.nothing_rare, shared_search.a_rare_race])
def test_the_counts_are_those_of_one_process(test: Callable[[], None]) -> None:
    alone, shared = check(test), check(test, jobs=2)
    assert (shared.verdict, shared.traces, shared.executions, shared.rounds) == (
        "ok",
        alone.traces,
        alone.executions,
        alone.rounds,
    )
    assert (shared.races, shared.blocked, shared.redundant) == (alone.races, 0, 0)
    racing = {race.place for race in shared.races}
    assert ("Box.flag" in racing) == (test is shared_search.a_rare_race)


def test_a_violation_in_another_process_is_shown_and_replayed() -> None:
    shared = check(shared_search.a_rare_mistake, jobs=2)
    assert shared.verdict == "violated"
    assert 'raise LookupError("seen")' in shared.traceback
    case = shared.counterexample
    assert case is not None
    assert check(shared_search.a_rare_mistake, Replay(case.token)).verdict == "violated"


def test_a_refusal_in_another_process_ends_the_search() -> None:
    with pytest.raises(OutsideModel, match="pickle"):
        check(shared_search.a_rare_refusal, jobs=2)


def test_what_an_observer_says_in_another_process_is_heard() -> None:
    def look(world: World) -> str | None:
        return None if world.is_replay else "seen"

    assert check(shared_search.nothing_rare, jobs=2, on_execution=look).verdict == "violated"


def test_a_module_that_another_process_needs_keeps_its_name() -> None:
    sent = pickle.loads(pickle.dumps(NotObserved("sched")))  # what a worker sends
    assert sent.module == "sched"
    assert str(sent) == str(NotObserved("sched"))
