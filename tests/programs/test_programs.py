"""Every program under every schedule: its verdict, its number of traces, and that each property had cases."""

import pytest

from seriatim_models.cli.report_builder import new_report, program_run
from seriatim_models.explorer import Pct
from seriatim_models.programs import (
    MUTANTS,
    PROGRAMS,
    Program,
    ProgramResult,
    check_program,
    replay,
)
from seriatim_models.properties import Verdict
from seriatim_models.report.document import document
from seriatim_models.report.junit import junit

QUICK = [p for p in PROGRAMS.values() if p.traces <= 500]
SLOW = [p for p in PROGRAMS.values() if p.traces > 500]
LARGEST = "consumer-priorities"


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
# The largest, a fifth of a million traces, at night.
@pytest.mark.parametrize(
    "program",
    [
        *(pytest.param(p, id=p.id) for p in SLOW if p.id != LARGEST),
        *(pytest.param(p, id=p.id, marks=pytest.mark.night) for p in SLOW if p.id == LARGEST),
    ],
)
def test_larger_program_holds_under_every_schedule(program: Program) -> None:
    test_program_holds_under_every_schedule(program)


def shown(result: ProgramResult) -> tuple[str, str, list[tuple[str, int, str]]]:
    """The verdict, why it is inconclusive, and of each finding in JSON the verdict, cases and explanation."""
    run = program_run(result, "dpor", [])
    report = new_report()
    report.programs.append(run)
    found = document(report)
    assert (found["verdict"], run.verdict) == (result.verdict, result.verdict)
    for each in found["results"]:
        assert (each["verdict"] == "inconclusive") <= (
            each["explanation"] in junit(report).decode()
        )
    return (
        result.verdict.value,
        run.doubt,
        [(f["verdict"], f["n_tested"], f["explanation"]) for f in found["results"]],
    )


def test_a_property_without_a_case_is_not_ok() -> None:
    """No message of this program is immediate, whatever the schedule."""
    result = check_program(PROGRAMS["two-takers"], properties=["SO-3", "IM-1"])
    verdict, doubt, findings = shown(result)
    assert result.explored.verdict == "ok"
    assert verdict == "inconclusive"
    assert doubt.endswith("and nothing was wrong; no schedule that was run has a case of IM-1")
    assert findings == [
        ("ok", 28, ""),
        ("inconclusive", 0, "no schedule that was run has a case"),
    ]


def test_what_no_schedule_violates_is_not_ok_where_schedules_are_left() -> None:
    result = check_program(PROGRAMS["two-takers"], properties=["SO-3", "IM-1"], max_executions=2)
    verdict, doubt, findings = shown(result)
    assert verdict == "inconclusive"
    assert "stopped by max_executions=2" in doubt
    assert doubt.endswith("no schedule that was run has a case of IM-1")
    assert [(v, n) for v, n, _ in findings] == [("inconclusive", 2), ("inconclusive", 0)]
    assert findings[0][2] == result.explored.why
    assert findings[1][2] == f"no schedule that was run has a case; {result.explored.why}"


def test_a_violation_ends_the_search_and_leaves_the_other_properties_open() -> None:
    mutant = MUTANTS["published-immediate"]
    result = check_program(PROGRAMS[mutant.program], mutant, properties=["IM-1", "QL-1", "MG-1"])
    verdict, doubt, findings = shown(result)
    assert (verdict, doubt) == ("violated", "")
    assert [v for v, _, _ in findings] == ["violated", "inconclusive", "inconclusive"]
    ended = "a violation ended the search"
    assert [why for _, _, why in findings[1:]] == [
        ended,
        f"no schedule that was run has a case; {ended}",
    ]


def test_a_replayed_schedule_has_the_cases_that_it_has() -> None:
    """It is one schedule: what it does not violate is not ok, but it was tested."""
    mutant = MUTANTS["published-immediate"]
    case = check_program(PROGRAMS[mutant.program], mutant).explored.counterexample
    assert case is not None
    verdict, doubt, findings = shown(replay(case.token))
    assert (verdict, doubt) == ("violated", "")
    assert [(v, n) for v, n, _ in findings] == [("violated", 1)]
