"""The interleaving in a terminal: as wide as there is room, the steps whose order matters, and of one execution."""

from __future__ import annotations

import re

import pytest
from rich.console import Console

from seriatim_models import programs
from seriatim_models.cli.report_builder import property_catalogue
from seriatim_models.programs.check import check_program
from seriatim_models.report.interleaving_text import InterleavingText
from seriatim_models.report.stepper import story
from seriatim_models.report.story import Story, race

MUTANTS = ("published-immediate", "published-look-then-rest", "acquire-by-set", "published-rewind")


def broken(mutant: str) -> Story:
    """The story of a mutant's counterexample."""
    found = programs.MUTANTS[mutant]
    result = check_program(programs.PROGRAMS[found.program], found)
    assert result.explored.counterexample is not None
    return story(result.explored.counterexample, result.findings, property_catalogue())


def lines(shown: InterleavingText, width: int = 80) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(shown)
    return capture.get().splitlines()


@pytest.mark.parametrize("mutant", MUTANTS)
@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(mutant: str, width: int) -> None:
    for verbose in (False, True):
        shown = lines(InterleavingText(broken(mutant), verbose), width)
        assert max(map(len, shown)) <= width


@pytest.mark.parametrize("mutant", MUTANTS)
def test_every_step_is_shown_or_counted(mutant: str) -> None:
    shown_story = broken(mutant)
    shown = "\n".join(lines(InterleavingText(shown_story)))
    numbered = re.findall(r"^ *\d+ \|", shown, re.M)
    counted = [int(n) for n in re.findall(r"\.\.\. (\d+) step", shown)]
    assert counted
    assert len(numbered) + sum(counted) == len(shown_story.steps)
    assert len(
        re.findall(r"^ *\d+ \|", "\n".join(lines(InterleavingText(shown_story, True))), re.M)
    ) == (len(shown_story.steps))


def test_the_race_is_a_look_and_the_change_that_overtook_it() -> None:
    shown_story = broken("published-immediate")
    found = race(shown_story)
    assert found is not None
    looked, changed = (shown_story.steps[n - 1] for n in found)
    assert (looked.op, looked.result) == ("m1.state.get()", "AVAILABLE")
    assert changed.op == "m1.state.compare_and_set(AVAILABLE, ACQUIRED by A)"
    assert looked.lane != changed.lane


def test_the_look_that_found_nothing_and_the_rest_that_nobody_saw_are_shown() -> None:
    shown = "\n".join(lines(InterleavingText(broken("published-look-then-rest")), 120))
    assert re.search(r"\| q\.next\.get\(\) -> None +\|$", shown, re.M)
    assert "A@q.Interested.0#2) -> True" in shown


@pytest.mark.parametrize("mutant", MUTANTS)
def test_what_is_said_is_of_the_execution_that_is_shown(mutant: str) -> None:
    shown_story = broken(mutant)
    assert [f"{b.id}: {b.explanation}" for b in shown_story.broken] == shown_story.what
