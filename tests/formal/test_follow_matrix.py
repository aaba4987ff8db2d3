"""Programs of the call matrix are behaviours of the systems, and those of a mutant are not."""

from functools import cache

import msgspec
import pytest

from seriatim_models.matrix.work import PairData
from seriatim_models.programs import MUTANTS
from seriatim_models.programs.base import Mutant
from seriatim_workshop.formal import follow_matrix


def program(title: str, depth: int, system: str = "push") -> PairData:
    """The program of this title of a queue that pushes, or is pulled from."""
    return by_title(system, depth)[title]


@cache
def by_title(system: str, depth: int) -> dict[str, PairData]:
    """The programs of a system to this depth, by title."""
    return {follow_matrix.title(p): p for p in follow_matrix.programs(system, depth)}


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


BESIDE = [
    ("holding: pull A; subscribe B | release A m1", 1, ("entries", "release")),
    ("holding: pull A; close A | release A m1", 1, ("entries", "release")),
    ("alone: ; enqueue m1 | subscribe A", 1, ("entries", "register")),
    ("alone: subscribe A; enqueue m1 | close A", 1, ("entries", "unregister")),
    ("priority: ; enqueue m1 | subscribe A", 1, ("entries", "insert")),
    ("priority: subscribe A; enqueue m1 | close A", 1, ("entries", "insert")),
    (
        "delayed: enqueue m1, pass_time 5; subscribe A | check_message_status",
        2,
        ("entries", "unhold"),
    ),
]
"""Who comes or goes beside a release, an arrival, one of higher priority, the end of a delay; what has to happen."""


@pytest.mark.slow
@pytest.mark.parametrize(("title", "depth", "action"), BESIDE)
def test_who_comes_or_goes_beside_what_makes_available_is_followed(
    title: str, depth: int, action: tuple[str, str]
) -> None:
    found = follow_matrix.follow_pair("pull", program(title, depth, "pull"))
    assert found.wrong == ""
    assert action in found.actions


@pytest.mark.slow
def test_who_goes_beside_the_end_of_a_delay_is_followed() -> None:
    comes = program(BESIDE[-1][0], 2, "pull")
    goes = program("alone: subscribe A; enqueue m1 | close A", 1, "pull").calls[1]
    there = (comes.path[0], comes.calls[0], comes.path[1])
    calls = (goes, comes.calls[1])
    found = follow_matrix.follow_pair(
        "pull", msgspec.structs.replace(comes, path=there, calls=calls)
    )
    assert (found.wrong, found.exhausted) == ("", True)
    assert ("entries", "unhold") in found.actions


@pytest.mark.slow
@pytest.mark.parametrize("messages", [1, 2])
def test_interest_that_comes_back_in_a_callback_is_followed(messages: int) -> None:
    """A pause lies between what a pull takes and its callback, which grants: the pull returns in Interested.

    If there is another message, its consumer is woken for it by the grant, and not by staying in Notified.
    """
    beside = program("inside-grant: enqueue m1; pause A | pull A", 2, "pull")
    if messages > 1:
        second = program("inside-grant: enqueue m1; enqueue m2 | pull A", 2, "pull").calls[0]
        beside = msgspec.structs.replace(beside, path=(*beside.path, second))
    found = follow_matrix.follow_pair("pull", beside)
    assert (found.wrong, found.exhausted) == ("", True)
    assert {("wakeups", "return_with_something"), ("wakeups", "find_interest")} <= found.actions


@pytest.mark.slow
def test_a_pointer_at_the_head_is_at_no_message() -> None:
    """Whose flag is read by a thread that has looked for another one, which has taken nothing yet."""
    comes = program("credit: subscribe A, subscribe B; grant A 1 | pull B", 2, "pull")
    grant, pull = comes.calls
    again = msgspec.structs.replace(comes, path=(*comes.path, grant), calls=(pull, grant))
    found = follow_matrix.follow_pair("pull", again)
    assert (found.wrong, found.exhausted) == ("", True)
