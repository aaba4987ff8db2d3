"""A property that is not asked, because a history has none of its case events, would have had nothing to say."""

import sys

import pytest

from seriatim_models.explorer import Random, World, explore
from seriatim_models.programs import MUTANTS, PROGRAMS
from seriatim_models.programs.base import Mutant, Program
from seriatim_models.programs.check import history, runnable
from seriatim_models.properties import WHITEBOX, Verdict
from seriatim_models.properties.base import AnyProperty, Finding
from seriatim_models.properties.whitebox.judging import judge

DECLARED = [p for p in WHITEBOX if p.case_events is not None]
QUEUES = [p for p in PROGRAMS.values() if p.reference == "queue"]
WRONG = [m for m in MUTANTS.values() if m.reference == "queue"]
SCHEDULES = 5


def differing(program: Program, mutant: Mutant | None = None) -> set[str]:
    """The properties whose finding on some schedule differs if it is asked whatever the history is."""
    found: set[str] = set()

    def compare(world: World) -> None:
        events = history(world)
        for finding, prop in zip(judge(events, DECLARED), DECLARED, strict=True):
            asked = prop.check(events)
            if summary(asked) != summary(finding):
                found.add(prop.id)

    explore(
        runnable(program, mutant),
        Random(seed=1),
        max_executions=SCHEDULES,
        on_execution=compare,
        keep_going=True,
    )
    return found


def summary(finding: Finding) -> tuple[Verdict, int, int, str]:
    return (finding.verdict, finding.n_tested, finding.n_untestable, finding.explanation)


@pytest.mark.parametrize("program", QUEUES, ids=lambda p: p.id)
def test_without_case_events_there_is_no_case(program: Program) -> None:
    assert not differing(program)


@pytest.mark.parametrize("mutant", WRONG[::7], ids=lambda m: m.id)
def test_nor_in_a_wrong_reference(mutant: Mutant) -> None:
    assert not differing(PROGRAMS[mutant.program], mutant)


def test_the_comparison_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: AnyProperty = next(p for p in DECLARED if p.id == "QL-3")
    never = wrong.case_events._replace(names=frozenset({"no such event"}))  # type: ignore[union-attr]
    unasked: AnyProperty = type("Unasked", (type(wrong),), {"case_events": never})()
    monkeypatch.setattr(sys.modules[__name__], "DECLARED", [unasked])
    assert "QL-3" in differing(PROGRAMS["consumer-list"])
