"""Programs of the call matrix are behaviours of the systems, and those of a mutant are not."""

import pytest

from seriatim_models.programs import MUTANTS
from seriatim_workshop.formal import follow_matrix


@pytest.mark.parametrize("system", ["pull", "push"])
def test_a_slice_of_the_matrix_is_followed(system: str) -> None:
    found = [follow_matrix.follow_pair(system, p, 5) for p in follow_matrix.programs(system, 1, 8)]
    assert [f.wrong for f in found] == [""] * len(found)
    assert sum(f.steps for f in found) > 100


def test_a_mutant_is_rejected_in_a_program_of_the_matrix() -> None:
    mutant = MUTANTS["state-by-set"]
    programs = follow_matrix.programs("pull", 1, 30)
    rejected = [follow_matrix.follow_pair("pull", p, 5, mutant).system for p in programs]
    assert "entries" in rejected
