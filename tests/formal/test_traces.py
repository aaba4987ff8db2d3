"""Executions of the reference are behaviours of the specifications; mutants leave them where they go wrong."""

import pytest

from seriatim_workshop.formal import traces
from seriatim_workshop.formal.concrete import Concrete, NotThat
from seriatim_workshop.formal.theory import load
from seriatim_workshop.formal.traces import Case, follow


def case(name: str) -> Case:
    (found,) = (c for c in traces.CASES if c.name == name)
    return found


@pytest.mark.parametrize(
    "name", ["entries: immediate-returned", "entries: release-again", "lists: enqueue-rest"]
)
def test_every_execution_of_the_reference_is_accepted(name: str) -> None:
    found = follow(case(name))
    assert found.wrong == ""
    assert found.steps > 100


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("entries: immediate-race+published-immediate", "m1.state.set(DEQUEUED)"),
        (
            "entries: immediate-returned+published-immediate-repair",
            "status(m1) is RETURNED in the specification, and AVAILABLE",
        ),
        ("entries: release-behind+published-rewind", "all_told(t = A) is not possible"),
        ("lists: enqueue-consume+left-in-the-old-list", "enter(t = A, c = A) is not possible"),
    ],
)
def test_a_mutant_is_rejected_at_the_step_where_it_goes_wrong(name: str, where: str) -> None:
    found = follow(case(name))
    assert where in found.rejected
    assert found.wrong == ""


def test_rejects_a_mutant_that_is_never_rejected() -> None:
    found = follow(Case("lists", "immediate-race", "published-immediate"))  # of other matters
    assert "no execution" in found.wrong


def test_a_concrete_state_and_the_solver_agree_on_an_action() -> None:
    state = Concrete(
        load("entries"), {"Entry": ["m"], "Consumer": ["A", "B"], "Thread": ["t"], "Mark": ["k"]}
    )
    state.take("count", e="m")
    state.take("append", t="t", e="m", p=1)
    state.take("acquire", e="m", c="A")
    assert state.broken() == []
    with pytest.raises(NotThat, match=r"acquire\(e = m, c = B\) is not possible here"):
        state.take("acquire", e="m", c="B")
    state.put("owner", "m", "B")
    assert state.broken() == ["who_holds"]


def test_rejects_a_word_that_no_case_has() -> None:
    assert traces.main(["nosuch"]) == 2
