"""Every program under every schedule: its verdict, its number of traces, and that each property had cases."""

import pytest

from seriatim_models.explorer import Pct
from seriatim_models.programs import PROGRAMS, Program, check_program
from seriatim_models.properties import Verdict

QUICK = [p for p in PROGRAMS.values() if p.traces <= 500]
SLOW = [p for p in PROGRAMS.values() if p.traces > 500]


@pytest.mark.parametrize("program", QUICK, ids=lambda p: p.id)
def test_program_holds_under_every_schedule(program: Program) -> None:
    result = check_program(program)
    explored = result.explored
    assert explored.verdict == "ok", explored.counterexample
    assert explored.exhausted
    assert (explored.traces, explored.complete) == (program.traces, program.traces)
    assert (explored.blocked, explored.redundant) == (0, 0)
    for finding in result.findings:
        assert finding.verdict is Verdict.OK, f"{finding.property} had {finding.n_tested} cases"


@pytest.mark.parametrize("program", SLOW, ids=lambda p: p.id)
def test_larger_program_holds_where_sampled(program: Program) -> None:
    """Exhausted by `seriatim check`; here a sample keeps them from rotting."""
    result = check_program(program, strategy=Pct(depth=3, seed=7), max_executions=150)
    assert result.explored.verdict == "inconclusive", result.explored.counterexample
    assert {f.property for f in result.findings if not f.n_tested} == set()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("program", SLOW, ids=lambda p: p.id)
def test_larger_program_holds_under_every_schedule(program: Program) -> None:
    test_program_holds_under_every_schedule(program)


def test_a_property_without_a_case_is_not_ok() -> None:
    """No message of this program is immediate, whatever the schedule."""
    result = check_program(PROGRAMS["two-takers"], properties=["IM-1"])
    assert [(f.verdict, f.n_tested) for f in result.findings] == [(Verdict.INCONCLUSIVE, 0)]
    assert result.verdict is Verdict.INCONCLUSIVE
