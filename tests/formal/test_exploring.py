"""What is said of code that was changed: never that it is accepted if it races, and nothing by the clock."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

import seriatim.queue as reference
from seriatim_models.explorer import OutsideModel, World
from seriatim_models.programs.base import Mutant
from seriatim_models.programs.mutant_modules import load
from seriatim_workshop.formal import exploring
from seriatim_workshop.formal.exploring import explore_changed_into
from seriatim_workshop.formal.follow_matrix import follow_pair, programs, title
from seriatim_workshop.formal.followed import Followed
from seriatim_workshop.formal.recorder import HostOperation, Recorder
from seriatim_workshop.formal.traces import follow

NOTIFIED_NOT_REWOUND = (
    (
        "            if consumer.acquires:  # a browser never goes back",
        "            if consumer.acquires and consumer.listed != NOTIFIED:  # a browser never goes back",
    ),
)
"""It loses a message in one thread (m1 and m2 are pulled, and m1 is released); in most programs nothing shows that."""

ATTEMPTS_COUNTED = (
    (
        "        found = self.next_available(consumer)\n        if found is None or (only",
        "        self.attempts = getattr(self, 'attempts', 0) + 1\n"
        "        found = self.next_available(consumer)\n        if found is None or (only",
    ),
)
"""Of two that count at once one may be lost: no system knows the number, and no schedule shows it."""

LOOPS = (
    (
        "        self.depth.add(-1)\n",
        "        while entry:\n            pass\n        self.depth.add(-1)\n",
    ),
)


def changed(what: str, edits: tuple[tuple[str, str], ...], program: str) -> Followed:
    edited = Mutant(what, "", what, "queue", edits, "", program, 0)
    return follow(program, executions=30, lib=load("queue", edited))


@pytest.mark.parametrize(
    ("program", "edits", "on"),
    [
        ("release-again-rest", NOTIFIED_NOT_REWOUND, "Consumer.listed"),
        ("release-rest", NOTIFIED_NOT_REWOUND, "Consumer.listed"),
        ("two-takers", ATTEMPTS_COUNTED, "PullQueue.attempts"),
    ],
)
def test_code_that_races_is_not_accepted(
    program: str, edits: tuple[tuple[str, str], ...], on: str
) -> None:
    found = changed("races", edits, program)
    assert (found.rejected, found.counterexample) == ("", None)
    assert found.steps > 100
    assert found.verdict == "inconclusive"
    assert found.inconclusive.startswith(f"code that races is not accepted: {on}: ")
    assert found.wrong == f"inconclusive: {found.inconclusive}"


def test_what_is_rejected_is_rejected_though_it_races() -> None:
    found = changed("races", NOTIFIED_NOT_REWOUND, "credit-kept")
    assert (found.verdict, found.system, found.inconclusive) == ("rejected", "entries", "")
    assert "low owes low a rewind for m1" in found.rejected


def test_the_reference_itself_is_followed_once() -> None:
    found = follow("release-rest")
    assert (found.verdict, found.exhausted, found.wrong) == ("accepted", True, "")


def test_a_program_of_the_matrix_is_not_accepted_if_it_races() -> None:
    known = {title(p): p for p in programs("pull", 1)}
    edited = Mutant("races", "", "", "queue", ATTEMPTS_COUNTED, "", "", 0)
    data = known["holding: subscribe B; pull A | pull B"]
    found = follow_pair("pull", data, mutant=edited)
    assert found.verdict == "inconclusive", found.wrong
    assert "PullQueue.attempts" in found.inconclusive


def test_a_step_that_does_not_end_is_given_up_by_processor_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exploring, "PROCESSOR", 1.0)
    found = changed("loops", LOOPS, "two-takers")
    assert (found.verdict, found.rejected) == ("inconclusive", "")
    assert "has come no further for 1 s of processor time: it is at" in found.inconclusive
    assert "in _dispose" in found.inconclusive


def test_a_step_that_ends_only_when_it_is_observed_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second time, when its attributes are observed, a program may need longer."""
    monkeypatch.setattr(exploring, "PROCESSOR", 1.0)

    def build(world: World) -> None:
        cell = world.cell(0)

        def work() -> None:
            cell.get()
            while not isinstance(world, Recorder):
                pass

        world.spawn(work, name="a")

    found = Followed("loops")
    explore_changed_into(found, reference, build, [reference.Consumer])
    assert found.verdict == "inconclusive"
    assert "has come no further for 1 s of processor time" in found.inconclusive


def test_what_is_outside_of_the_model_is_no_verdict_either() -> None:
    edits = (
        (
            "        self.depth.add(-1)\n",
            "        __import__('threading').Lock().acquire()\n        self.depth.add(-1)\n",
        ),
    )
    with pytest.raises(OutsideModel):
        changed("locks", edits, "two-takers")


# ---- iterations that are on no record


def test_an_iteration_says_where_it_is_and_whether_it_was_given_up() -> None:
    seen: list[HostOperation] = []
    world = cast(World, SimpleNamespace(thread="A", steps=0))
    of: Any = SimpleNamespace(head=SimpleNamespace(list_name="q.All"))
    recorder = Recorder(world, seen.append)
    assert [*recorder.iteration(of, iter("ab"))] == ["a", "b"]
    given_up = recorder.iteration(of, iter("ab"))
    next(given_up)
    given_up.close()  # type: ignore[attr-defined]  # it is a generator
    assert [(e.old, e.new) for e in seen] == [
        ("begin", None), ("node", "a"), ("node", "b"), ("end", None),
        ("begin", None), ("node", "a"), ("given up", None),
    ]  # fmt: skip
    assert len({id(e.source) for e in seen}) == 2
    assert not any(e.writes for e in seen)


@pytest.mark.parametrize(
    ("program", "mutant", "where"),
    [
        ("push-close", "iteration-returns-deleted", "q.All.iterate(A@q.All#1): hand_out"),
        ("expiring", "iteration-returns-deleted", "q.iterate(m1): hand_out"),
    ],
)
def test_an_iteration_over_all_or_the_entries_is_rejected_where_it_goes_wrong(
    program: str, mutant: str, where: str
) -> None:
    found = follow(program, mutant, executions=30)
    assert found.system == "nodes", found.wrong
    assert where in found.rejected


def test_the_class_that_iterates_is_as_before() -> None:
    iterate = reference.NodeList.__iter__
    found = follow("push", executions=2)
    assert ("nodes", "end_walk") in found.actions
    assert reference.NodeList.__iter__ is iterate
