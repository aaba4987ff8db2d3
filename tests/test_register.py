"""One id from end to end: register, executable property, program, mutant."""

import re
from pathlib import Path

import pytest

from seriatim_models.programs import MUTANTS, PROGRAMS, Mutant, Program
from seriatim_models.programs.mutant_modules import texts
from seriatim_models.properties import PROPERTIES
from seriatim_workshop import property_register

REGISTER = Path(__file__).parent.parent / "spec" / "PROPERTIES.md"

COUNTS = {
    "SO": 7,
    "ES": 7,
    "SP": 3,
    "IM": 3,
    "WK": 10,
    "QL": 6,
    "MG": 2,
    "CH": 4,
    "QS": 3,
    "EX": 1,
    "NL": 1,
    "RPC": 1,
    "RT": 1,
}
DUE = [f"{kind}-{n}" for kind, count in COUNTS.items() for n in range(1, count + 1)]


def test_register_is_up_to_date() -> None:
    text = REGISTER.read_text(encoding="utf-8")
    assert property_register.renewed(text) == text, (
        "spec/PROPERTIES.md differs from the registries: "
        "run python -m seriatim_workshop.property_register spec/PROPERTIES.md and look at the difference"
    )


@pytest.mark.parametrize("id", DUE)
def test_promise_has_not_been_dropped(id: str) -> None:
    assert id in PROPERTIES, f"{id} is in the catalogue and has no executable property"


@pytest.mark.parametrize("id", PROPERTIES)
def test_property_has_a_program_and_a_mutant(id: str) -> None:
    if id.startswith("P") and id[1:].isdigit():
        return  # black-box properties are shown to fail on planted histories
    assert [p.id for p in PROGRAMS.values() if id in p.properties], (
        f"{id} is tested by no program: name it in one of models/seriatim_models/programs"
    )
    assert [m.id for m in MUTANTS.values() if id == m.killed_by or id in m.also], (
        f"{id} was seen to fail on nothing: add a mutant that it must kill"
    )


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda p: p.id)
def test_program_names_known_properties(program: Program) -> None:
    unknown = set(program.properties) - set(PROPERTIES)
    assert not unknown, f"{program.id} says it tests {unknown}, which nobody has written"


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=lambda m: m.id)
def test_mutant_applies_and_has_its_program(mutant: Mutant) -> None:
    assert mutant.program in PROGRAMS
    assert mutant.killed_by in PROGRAMS[mutant.program].properties, (
        f"{mutant.program} does not say that it tests {mutant.killed_by}"
    )
    assert texts(mutant.reference, mutant) != texts(mutant.reference), (
        f"{mutant.id} changes nothing"
    )


def test_findings_count_their_steps_right() -> None:
    """Every `--mutant` that FINDINGS.md names has, on its line or the one before, as many steps as are pinned."""
    text = (REGISTER.parent / "FINDINGS.md").read_text(encoding="utf-8")
    said = re.findall(r"(\d+) steps[^`]*`seriatim check --mutant ([\w-]+)`", text)
    assert {id for _, id in said} == set(re.findall(r"--mutant ([\w-]+)`", text))
    wrong = {id: (int(n), MUTANTS[id].steps) for n, id in said if int(n) != MUTANTS[id].steps}
    assert not wrong, f"spec/FINDINGS.md says (first), pinned is (second): {wrong}"
