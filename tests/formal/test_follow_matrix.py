"""Programs of the call matrix are behaviours of the systems, and those of a mutant are not."""

import pytest

from seriatim_models.matrix.work import PairData
from seriatim_models.programs import MUTANTS
from seriatim_models.programs.base import Mutant
from seriatim_workshop.formal import follow_matrix


def program(title: str, depth: int) -> PairData:
    """The program of this title of a queue that pushes."""
    every = follow_matrix.programs("push", depth)
    return next(p for p in every if follow_matrix.title(p) == title)


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


JOB_BESIDE_A_RELEASE = [
    ("holding: enqueue m2; release A m1 | job", 1),
    ("holding: enqueue m2, dequeue A m2; release A m1 | job", 2),
    ("alone: subscribe A, enqueue m1, enqueue m2; release A m1 | job", 3),
]
"""A job that comes between a release and its rewind: the one that follows delivers."""


@pytest.mark.slow
@pytest.mark.parametrize(("title", "depth"), JOB_BESIDE_A_RELEASE)
def test_a_job_may_miss_what_its_maker_has_not_announced(title: str, depth: int) -> None:
    found = follow_matrix.follow_pair("push", program(title, depth))
    assert (found.wrong, found.exhausted) == ("", True)
    assert ("jobs", "leave_it_to_its_maker") in found.actions


@pytest.mark.slow
@pytest.mark.parametrize(("title", "depth"), JOB_BESIDE_A_RELEASE)
def test_a_job_may_not_miss_what_was_announced_before_the_rewind(title: str, depth: int) -> None:
    edits = (
        (
            "        self._rewind_all(entry)\n        self._returned(entry)\n",
            "        self._returned(entry)\n        self._rewind_all(entry)\n",
        ),
    )
    early = Mutant("early", "", "a job, then the rewind", "queue", edits, "", "push", 0)
    found = follow_matrix.follow_pair("push", program(title, depth), mutant=early)
    assert found.system == "jobs"
    assert "could go to A all the while" in found.rejected


@pytest.mark.slow
def test_what_a_browser_is_shown_may_have_come_back_since_its_pointer_was_moved() -> None:
    title = "browser: enqueue m1, subscribe B, subscribe A; close B | job"
    found = follow_matrix.follow_pair("push", program(title, 3))
    assert (found.wrong, found.exhausted) == ("", True)
