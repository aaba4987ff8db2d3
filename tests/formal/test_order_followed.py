"""Mistakes of order are rejected by a system, and one that is caught and accepted has a reason."""

import threading
from dataclasses import replace

import pytest

from seriatim_workshop.formal import SPEC, exploring, order_followed
from seriatim_workshop.formal.followed import Followed
from seriatim_workshop.formal.order_reasons import REASONS, reason


def test_a_mistake_of_order_is_rejected() -> None:
    known = {m.name: m for m in order_followed.mutations()}
    name = next(name for name in known if name.startswith("queue.NodeList.append: compare-and-set"))
    found = order_followed.followed(known[name], "ES-5 in enqueue-enqueue")
    assert (found.verdict, found.system) == ("rejected", "entries")
    assert "has not linked it" in found.where


def test_what_is_caught_and_accepted_has_a_reason_on_the_page() -> None:
    page = (SPEC / "ORDER_FOLLOWED.md").read_text("utf-8")
    assert reason("nowhere") == "not known yet"
    assert reason("nowhere") not in page
    assert [scope for scope, why in REASONS.items() if why not in page] == [], "no mistake needs it"


@pytest.mark.parametrize(
    ("name", "by", "system", "where"),
    [
        (
            "PullQueue._arrived: only-the-first",
            "WK-2 in browsers-and-arrivals",
            "wakeups",
            "wake browser Y",
        ),
        (
            "PullQueue._arrived: acts-before-it-checks",
            "WK-11 in browsers-and-arrivals",
            "wakeups",
            "X selects any message",
        ),
        (
            "PullQueue._arrived: conditions-swapped",
            "WK-11 in arrivals-of-two-kinds",
            "wakeups",
            "A selects the message that Pa walks for",
        ),
        (
            "PushQueue._arrived: all-rather-than-one",
            "IM-4 in push-turns",
            "jobs",
            "what P enqueued is taken",
        ),
        (
            "PushQueue._in_turn: only-the-first",
            "outcome in immediate-ready",
            "jobs",
            "P has asked B",
        ),
    ],
)
def test_who_is_woken_or_asked_beside_the_first(
    name: str, by: str, system: str, where: str
) -> None:
    """Browsers are in `wakeups`, and a publisher's attempts in `jobs`; every schedule sees these mistakes."""
    mutation = next(m for m in order_followed.mutations() if name in m.name)
    found = order_followed.followed(mutation, by)
    assert (found.verdict, found.system) == ("rejected", system)
    assert where in found.where


def test_a_program_that_does_not_come_to_the_mistake_is_left_out() -> None:
    """It would run as with the right code. Where none of those comes to it, others are looked for."""
    known = {m.name: m for m in order_followed.mutations()}
    pushes = known["queue.PushQueue._job: only-the-first: for consumer in self.all.consumers():"]
    tried = order_followed.programs_of(pushes, "WK-1 in push-two")
    assert tried["push-two"] == order_followed.CAUGHT_IN
    assert "push-close" in tried
    assert "enqueue-consume" not in tried
    rare = next(m for name, m in known.items() if name.startswith("queue.Queue.dequeue: read-too"))
    others = order_followed.programs_of(rare, "")
    assert len(others) == order_followed.OTHERS
    assert not set(others) & set(order_followed.PROGRAMS_TRIED)


def test_what_was_followed_with_another_system_is_followed_again() -> None:
    every = order_followed.mutations()
    known = {
        m.key: order_followed.OrderFollowed(
            m.key, m.name, "rejected", digest=order_followed.digest()
        )
        for m in every[1:]
    }
    other = every[3].key
    known[other] = replace(known[other], digest="another")
    assert [m.key for m in order_followed.stale(known)] == [every[0].key, other]


@pytest.mark.parametrize(
    ("name", "verdict", "where"),
    [
        (
            "check-left-out: tail.next.compare_and_set(None, node) is false",
            "rejected",
            "q.All#6 has been added to the size",
        ),
        (
            "NodeList.next: behind-the-loop",
            "endless",
            "has come no further for 2 s of processor time",
        ),
    ],
)
def test_a_loop_in_the_set_up_is_ended_by_processor_time(
    name: str, verdict: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it left a system before it began to loop, it is rejected there."""
    monkeypatch.setattr(exploring, "PROCESSOR", 2)
    # In a copy of this process it would wait for what other tests have left behind, as for this lock.
    held = threading.Lock()
    held.acquire()
    monkeypatch.setattr(order_followed, "load", lambda *_: held.acquire())
    mutation = next(m for m in order_followed.mutations() if name in m.name)
    found = order_followed.isolated(mutation, "")
    assert found.verdict == verdict
    assert where in found.where


def test_the_page_has_its_counts() -> None:
    page = (SPEC / "ORDER_FOLLOWED.md").read_text("utf-8")
    assert (
        "| every schedule | rejected | fails | endless | races | accepted | not reached |" in page
    )


def test_the_page_sums_up_what_every_schedule_catches() -> None:
    rows = [("rejected", "caught"), ("accepted", "caught"), ("accepted", "inconclusive")]
    said = order_followed.summary([*rows, ("fails", "caught"), ("endless", "caught")])
    assert said.startswith("Every schedule catches 4: a system rejects 1 of them, 1 are accepted")
    assert said.endswith("the other 2 go wrong by themselves before that.")


def test_the_page_marks_what_was_followed_with_other_systems(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = order_followed.mutations()[:2]
    known = {
        m.key: order_followed.OrderFollowed(m.key, m.name, "rejected", "nodes", digest=digest)
        for m, digest in ((first, order_followed.digest()), (second, "another"))
    }
    monkeypatch.setattr(order_followed, "tried", lambda: known)
    page = order_followed.page()
    rows = [line for line in page.splitlines() if line.endswith("| `nodes` |  |  |")]
    assert [line.endswith("(before) | `nodes` |  |  |") for line in rows] == [False, True]
    assert "1 of them with the reference and the systems as they are now, the others" in page


def test_a_mistake_is_followed_in_the_program_of_the_matrix_that_caught_it() -> None:
    by = "WK-4 in pull settle ranks: enqueue m1, subscribe B; subscribe A | pull B"
    mutation = next(
        m for m in order_followed.mutations() if "_first_to_take: only-the-first" in m.name
    )
    found = order_followed.followed(mutation, by)
    assert (found.verdict, found.system) == ("rejected", "wakeups")
    assert found.program == "ranks: enqueue m1, subscribe B; subscribe A | pull B"
    assert "B tries to take it" in found.where or "A had no use for m1" in found.where
    assert order_followed.matrix_program("WK-1 in push-two") is None


def test_one_that_was_rejected_is_followed_there_first(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def follow(program: str, executions: int, **_: object) -> Followed:
        tried.append(program)
        return Followed(program, rejected="somewhere", system="nodes")

    monkeypatch.setattr(order_followed, "follow", follow)
    mutation = next(m for m in order_followed.mutations() if "NodeList.append" in m.name)
    found = order_followed.followed(mutation, "ES-5 in enqueue-enqueue", first="close")
    assert (tried, found.program) == (["close"], "close")


def test_an_execution_without_an_end_is_endless() -> None:
    """Two threads that take from what they read once, and never again: no step of them is wrong."""
    mutation = next(m for m in order_followed.mutations() if "WorkSet.take: read-before" in m.name)
    found = order_followed.followed(mutation, "AP-1 in handover-two-threads")
    assert found.verdict == "endless"
    assert "have not come to an end after" in found.where
