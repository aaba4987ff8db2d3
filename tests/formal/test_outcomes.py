"""Outcomes in Promela and in Python: they agree, and a difference on either side is seen and shown."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from seriatim_models.programs import PROGRAMS
from seriatim_workshop.formal import outcomes, pairs, pan

# Programs of the machine, not of .venv. `make spec`, which runs before the tests in .ci/run, installs them and makes
# the same comparison over all pairs, without a skip.
spin = pytest.mark.skipif(
    shutil.which("spin") is None or shutil.which("gcc") is None,
    reason="spin and gcc are not installed; make spec installs them, or says how",
)


def pair(name: str) -> pairs.Pair:
    (found,) = (p for p in pairs.PAIRS if p.name == name)
    return found


def test_every_pair_is_of_a_program_that_exists_and_every_model_has_one() -> None:
    for p in pairs.PAIRS:
        assert p.program in PROGRAMS or p.run is not None
    models = {path.name for path in pan.PROMELA.glob("*.pml")}
    assert models == {p.file for p in pairs.PAIRS}


@spin
def test_both_sides_find_the_same_outcomes(tmp_path: Path) -> None:
    found = outcomes.compare(pair("immediate-race"), tmp_path)
    assert found.agree
    assert found.python == {"gone, delivered 0 times", "held, delivered 1 times"}


@spin
def test_a_mistake_in_python_alone_is_seen_and_both_sides_are_shown(tmp_path: Path) -> None:
    planted = replace(pair("immediate-race"), mutant="published-immediate")
    found = outcomes.compare(planted, tmp_path)
    assert found.only_python == ["gone, delivered 1 times"]
    said = outcomes.explain(found, tmp_path)
    assert "only the explorer finds: gone, delivered 1 times" in said
    assert "in Promela, outcome:" in said
    assert "over the reference, outcome: gone, delivered 1 times" in said


@spin
def test_a_mistake_in_promela_alone_is_seen_and_both_sides_are_shown(tmp_path: Path) -> None:
    planted = replace(pair("immediate-race"), flags=["-DPUBLISHED"])
    found = outcomes.compare(planted, tmp_path)
    assert found.only_spin == ["gone, delivered 1 times"]
    said = outcomes.explain(found, tmp_path)
    assert "in Promela, outcome: gone, delivered 1 times" in said
    assert "dequeues it" in said
    assert "over the reference, outcome:" in said


def test_rejects_a_name_that_no_pair_has() -> None:
    assert outcomes.main(["nosuch"]) == 2
