"""The number of Mazurkiewicz traces of known programs: exactly, each once, nothing in vain."""

from __future__ import annotations

import pytest

from seriatim_models.explorer import Dpor, Pct, Pos, Random, explore
from seriatim_workshop.litmus import KnownCount, known_counts, racy_counter


@pytest.mark.parametrize("known", known_counts(), ids=lambda k: k.name)
def test_every_trace_exactly_once(known: KnownCount) -> None:
    result = explore(known.program, Dpor())
    assert result.verdict == "ok"
    assert result.exhausted
    assert (result.complete, result.traces) == (known.traces, known.traces)
    assert (result.blocked, result.redundant, result.cut) == (0, 0, 0)


def test_outcomes_are_a_multiset_over_traces() -> None:
    result = explore(racy_counter(2), Dpor())
    assert result.outcomes == {1: 2, 2: 2}


@pytest.mark.parametrize("strategy", [Random(seed=1), Pct(seed=1), Pos(seed=1)], ids=str)
def test_walks_reach_all_traces_of_a_small_program_and_never_claim_it(
    strategy: Random | Pct | Pos,
) -> None:
    result = explore(racy_counter(3), strategy, max_executions=3000)
    assert result.traces == 36
    assert result.verdict == "inconclusive"
    assert not result.exhausted


def test_walks_repeat_themselves_from_their_seed() -> None:
    one = explore(racy_counter(4), Random(seed=7), max_executions=200)
    two = explore(racy_counter(4), Random(seed=7), max_executions=200)
    other = explore(racy_counter(4), Random(seed=8), max_executions=200)
    assert one.outcomes == two.outcomes
    assert one.traces == two.traces
    assert (one.traces, one.outcomes) != (other.traces, other.outcomes)
