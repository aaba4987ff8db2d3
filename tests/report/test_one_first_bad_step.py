"""One schedule has one first bad step, wherever it is shown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from seriatim_models.cli import run
from seriatim_models.cli.bug_catalogue import counterexample_run
from seriatim_models.explorer import World, explore
from seriatim_models.programs import MUTANTS, PROGRAMS
from seriatim_models.programs.check import check_program
from seriatim_models.report.html import mutant_page
from seriatim_models.report.picture import ROW, TOP

TOKENS = {
    "published-immediate": 8,
    "published-look-then-rest": 66,
    "rewind-test-reversed": 10,
    "group-given-up-in-silence": 45,
}


def of_page(source: str) -> int:
    """The first bad step of the one interleaving on a page."""
    (text,) = re.findall(r'<script type="application/json" class="story">(.*?)</script>', source)
    shown = json.loads(text)
    assert shown["good"] == shown["bad"] - 1
    assert f"first bad: {shown['bad']}<" in source
    return int(shown["bad"])


def of_terminal(text: str) -> int:
    """The step under the line that says up to where it could still end well."""
    (step,) = re.findall(r"\| up to here it could still end well\n *(\d+) \|", text)
    assert f"After step {step} " in " ".join(text.split())
    return int(step)


@pytest.mark.parametrize("mutant", TOKENS)
def test_terminal_pages_catalogue_and_picture_agree(
    mutant: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown, checked, drawn = (tmp_path / name for name in ("show.html", "check.html", "race.svg"))
    case = check_program(PROGRAMS[MUTANTS[mutant].program], MUTANTS[mutant]).explored.counterexample
    assert case is not None
    seen = {"Counterexample.html": of_page(case.html())}
    assert run(["check", "--mutant", mutant, "--html", str(checked)]) == 1
    seen["check"] = of_terminal(capsys.readouterr().out)
    seen["check --html"] = of_page(checked.read_text())
    assert run(["show", case.token, "--html", str(shown)]) == 1
    seen["show TOKEN"] = of_terminal(capsys.readouterr().out)
    seen["show --html"] = of_page(shown.read_text())
    seen["bugs"] = of_page(
        mutant_page(counterexample_run(mutant), "", "index.html", "Bug catalogue")
    )
    if run(["show", mutant, "--svg", str(drawn)]) == 1:  # not too long for a picture
        (y,) = re.findall(r'y1="(\d+)"[^>]* class="lost"/>', drawn.read_text())
        seen["show --svg"] = (int(y) + 1 - TOP) // ROW + 1
    assert seen == dict.fromkeys(seen, TOKENS[mutant])


def test_a_program_of_ones_own_has_it_too() -> None:
    def program(world: World) -> None:
        counter = world.cell(0, name="counter")
        for name in "ab":
            world.spawn(lambda: counter.set(counter.get() + 1), name=name)
        world.at_end(lambda: None if counter.get() == 2 else "an increment is lost")

    case = explore(program).counterexample
    assert case is not None
    lost = case.lost()
    assert lost is not None
    assert lost.decided
    assert of_page(case.html()) == lost.step < len(case.events)


def test_a_plain_test_has_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test = Path(__file__).resolve().parents[2] / "spec" / "own" / "test_counter.py"
    page = tmp_path / "own.html"
    assert run(["check", str(test), "--html", str(page)]) == 1
    assert of_page(page.read_text()) == of_terminal(capsys.readouterr().out) == 5


@pytest.mark.parametrize("mutant", ["published-look-then-rest", "iteration-returns-deleted"])
def test_sentences_count_in_steps_as_the_trace_does(mutant: str) -> None:
    """They named places in the list of events: "available since 47", where it was step 60."""
    run = counterexample_run(mutant).run
    [finding] = [f for f in run.findings if f.witness]
    named = [int(n) for n in re.findall(r"step (\d+)", finding.explanation)]
    assert named
    assert set(named) <= {e.t for e in finding.witness}
    assert not re.search(r"\b(since|at|from) \d", finding.explanation)
