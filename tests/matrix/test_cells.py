"""Programs of two calls: every schedule, judged by properties and by the outcome oracle."""

import re
from dataclasses import replace
from typing import cast

import pytest

from seriatim_models.explorer import Replay, explore
from seriatim_models.matrix.cells import PairProgram, PairResult, difference, explained, run_pair
from seriatim_models.matrix.log_scenes import LOG_SYSTEM, READ_MEANWHILE
from seriatim_models.matrix.queue_scenes import (
    ANY_TURN,
    JUST_PULLING,
    MESSAGE_BY_MESSAGE,
    OVERTAKING,
    PASSED_WHILE_HELD,
    PULL_SYSTEM,
    PUSH_SYSTEM,
    QueueMatrixScene,
    QueueSystem,
)
from seriatim_models.matrix.scene import MatrixSystem
from seriatim_models.matrix.states import edge_problem
from seriatim_models.matrix.work import PairBatch, PairData, do
from seriatim_models.programs import MUTANTS
from seriatim_models.programs.base import Mutants
from seriatim_models.programs.mutant_modules import load, source
from seriatim_models.properties import Finding
from seriatim_models.properties.base import AnyProperty, Violations
from seriatim_workshop.matrix_mutants import edges_of, first_problem
from seriatim_workshop.mutation.exhaustive import modules_with

LIB = load("queue")


def run(
    system: MatrixSystem, key: str, mutant: str = "", max_executions: int | None = None
) -> PairResult:
    lib = load(system.reference, MUTANTS[mutant] if mutant else None)
    return run_pair(system, lib, PairData.read(key, system).pair(system), max_executions)


def without_properties(system: QueueSystem) -> QueueSystem:
    """The system judged by the outcome oracle alone."""
    return replace(system, properties=())


EXCLUSIVES = "settle exclusives: ; subscribe A | subscribe B"


def test_the_reference_admits_one_of_two_exclusive_consumers() -> None:
    result = run(PUSH_SYSTEM, EXCLUSIVES)
    assert result.exhausted
    assert result.executions > 1
    assert not result.problem


def test_the_outcome_oracle_needs_no_property() -> None:
    """Two concurrent exclusive subscribes were both admitted, and no property saw it."""
    of = without_properties(PUSH_SYSTEM)
    result = run(of, EXCLUSIVES, "looks-then-joins")
    assert result.problem.startswith("outcome: ")
    assert "refused" in result.problem
    assert not run(of, EXCLUSIVES).problem


TWO_SUBSCRIBE = "settle two: ; subscribe A | subscribe B"


def test_additions_to_a_counter_commute() -> None:
    """Which of two memberships is counted first is no difference: only what the counter comes to is judged."""
    assert run(PULL_SYSTEM, TWO_SUBSCRIBE).executions == 64
    assert run(replace(PULL_SYSTEM, unrecorded=()), TWO_SUBSCRIBE).executions == 128


def test_a_counter_is_judged_at_rest() -> None:
    mutants = Mutants("queue")
    mutants.add(
        id="counts-in-two-steps",
        killed_by="QL-2",
        program="",
        steps=0,
        origin="an example",
        title="the size is read and then written, so an addition between the two is lost",
        edit=("        self.size.add(1)\n", "        self.size.set(self.size.get() + 1)\n"),
    )
    pair = PairData.read(TWO_SUBSCRIBE, PULL_SYSTEM).pair(PULL_SYSTEM)
    problem = run_pair(PULL_SYSTEM, load("queue", mutants["counts-in-two-steps"]), pair).problem
    assert problem.startswith("QL-2"), problem


def test_what_is_recorded_twice_is_judged_once() -> None:
    judged = 0

    class Counting:
        """A property that counts its cases and violates none."""

        id = "X1"
        case_events = None
        reads = frozenset[str]()

        def check(self, events: object) -> Finding:
            nonlocal judged
            judged += 1
            return Finding.of("X1", 1)

    executions = run(judged_by(Counting()), TWO_SUBSCRIBE).executions
    assert 1 < judged < executions


def judged_by(prop: object) -> QueueSystem:
    """Return the pull queue, judged by one property."""
    return replace(PULL_SYSTEM, properties=(cast(AnyProperty, prop),), expected=())


@pytest.mark.parametrize("wrong", [1, 2, 31, 32, 33])
def test_a_violation_is_seen_wherever_it_stands_among_those_judged_together(wrong: int) -> None:
    class Once:
        """A property that one history violates: the one that it is asked about as number `wrong`."""

        id = "X2"
        case_events = None
        reads = frozenset[str]()
        asked = 0

        def check(self, events: object) -> Finding:
            self.asked += 1
            found: Violations = [(f"history {self.asked}", [])] if self.asked == wrong else []
            return Finding.of("X2", 1, found)

    result = run(replace(judged_by(once := Once()), unrecorded=()), TWO_SUBSCRIBE)
    assert result.problem == f"X2: history {wrong}"
    assert once.asked == wrong, "the first violation ends the judging"
    assert result.executions >= wrong


SERVED = "serve alone: subscribe A; pause A | resume A"


def test_the_executor_runs_beside_a_call_that_only_an_io_thread_may_make() -> None:
    result = run(PUSH_SYSTEM, SERVED)
    assert (result.executions, result.exhausted, result.problem) == (12, True, "")


def test_a_call_that_nobody_makes_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QueueMatrixScene, "serve", lambda scene, first: None)
    assert run(PUSH_SYSTEM, SERVED).problem == "resume A did not return"


def test_a_capped_program_is_not_exhausted() -> None:
    result = run(PULL_SYSTEM, "settle two: ; subscribe A | subscribe B", max_executions=3)
    assert (result.executions, result.exhausted, result.problem) == (3, False, "")


PASSED = (
    "settle group: subscribe A, enqueue m1, pull A, enqueue m2, subscribe B; release A m1 | pull B"
)
"""B passed m1, and may get m2 when the group is free and B's pointer was not moved back yet."""
PASSED_PUSHED = (
    "settle group-credit: subscribe B, enqueue m1, subscribe A; enqueue m2 | release B m1"
)


@pytest.mark.parametrize(
    ("system", "key", "why"),
    [
        (PUSH_SYSTEM, "settle immediate: subscribe A; enqueue m1 | enqueue m2", OVERTAKING.why),
        (PULL_SYSTEM, "settle immediate: subscribe A; enqueue m1 | pull A", JUST_PULLING.why),
        (PUSH_SYSTEM, "settle holding: subscribe B; enqueue m2 | job", ANY_TURN.why),
        (
            PUSH_SYSTEM,
            "settle holding: release A m1, enqueue m2; pause A | job",
            MESSAGE_BY_MESSAGE.why,
        ),
        (
            PUSH_SYSTEM,
            "settle holding: enqueue m2, subscribe B; close A | job",
            PASSED_WHILE_HELD.why,
        ),
        pytest.param(
            PUSH_SYSTEM,
            "settle holding: release A m1, enqueue m2, subscribe B; close A | job",
            PASSED_WHILE_HELD.why,
            marks=pytest.mark.slow,
        ),
        (
            PUSH_SYSTEM,
            PASSED_PUSHED,
            PASSED_WHILE_HELD.why,
        ),
        (PULL_SYSTEM, PASSED, PASSED_WHILE_HELD.why),
        (
            PULL_SYSTEM,
            "settle group: subscribe A, enqueue m1, pull A, enqueue m2, subscribe B; close A | pull B",
            PASSED_WHILE_HELD.why,
        ),
        (
            PULL_SYSTEM,
            "settle holding: pull A, enqueue m2, pull A, subscribe B; close A | pull B",
            PASSED_WHILE_HELD.why,
        ),
        (
            LOG_SYSTEM,
            "settle parking: publish_one bad; publish_one bad | read a 2 | commit a 2",
            READ_MEANWHILE.why,
        ),
    ],
)
def test_what_the_oracle_lets_pass_has_its_reason(system: MatrixSystem, key: str, why: str) -> None:
    assert why in run(system, key).excused
    strict = replace(system, expected=())
    assert run(strict, key).problem.startswith("outcome: "), "and is no order of the calls"


def test_a_batch_may_begin_later_and_has_no_gap() -> None:
    """What a batch has is let pass beside a commit, unless a message between two that it has is left out."""
    key = "settle one-channel: publish_one good, publish_one good, publish_one good; read a 2 | commit a 2"
    pair = PairData.read(key, LOG_SYSTEM).pair(LOG_SYSTEM)
    assert not run_pair(LOG_SYSTEM, load("log"), pair).problem
    old, new = "position = delivery.following", "position = max(delivery.following, self.position)"
    assert source("log").count(old) == 1
    lib = modules_with("log", source("log").replace(old, new))
    problem = run_pair(LOG_SYSTEM, lib, pair, right=load("log")).problem
    assert problem.startswith("outcome: "), problem


def test_letting_pass_hides_nothing_else() -> None:
    """The immediate message may be discarded; the other one may not be lost with it."""
    outcome = {"returned": {}, "m1": "gone", "m2": "gone", "depth": 0}
    order = {"returned": {}, "m2": "ACQUIRED by A", "depth": 1}
    assert OVERTAKING.compared(outcome) != OVERTAKING.compared(order)


@pytest.mark.parametrize(("system", "key"), [(PULL_SYSTEM, PASSED), (PUSH_SYSTEM, PASSED_PUSHED)])
@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (
            "consumer.target.send(consumer, entry)",
            "consumer.target.send(consumer, consumer.pointer.get().entry)",
            "outcome: .*'sent'",
        ),
        (
            """                self._announce_group(entry.message.group)
            else:
""",
            """                self._returned(entry)
            else:
""",
            "outcome: .*m1 is AVAILABLE",
        ),
    ],
    ids=["sent-where-the-pointer-stands", "never-moved-back"],
)
def test_who_passed_a_held_message_may_take_a_later_one_and_nothing_else(
    system: QueueSystem, key: str, old: str, new: str, what: str
) -> None:
    """What is compared is the whole outcome, as if what was released had counted behind the next call."""
    assert old in source("queue")
    wrong = modules_with("queue", source("queue").replace(old, new))
    of = without_properties(system)
    pair = PairData.read(key, system).pair(of)
    assert re.match(what, run_pair(of, wrong, pair, right=LIB).problem)
    assert not run_pair(of, LIB, pair).problem


BESIDE_A_JOB = "settle holding: enqueue m2; {} A m1 | job"


@pytest.mark.parametrize(
    ("call", "old", "new"),
    [
        (
            "release",
            """                self._announce(entry)
        return ok
""",
            """                self._announce(entry)
            ok = entry.available() is not None
        return ok
""",
        ),
        (
            "dequeue",
            """                self._announce_group(entry.message.group)
        return ok

    @operation
    def check_message_status(""",
            """                self._announce_group(entry.message.group)
            ok = self._job_pending.get()
        return ok

    @operation
    def check_message_status(""",
        ),
    ],
    ids=["released-and-taken-again-is-false", "dequeued-while-no-job-is-pending-is-false"],
)
def test_a_call_beside_a_job_returns_what_it_did(call: str, old: str, new: str) -> None:
    """What a job delivers step by step says nothing of what another call returns."""
    assert source("queue").count(old) == 1
    wrong = modules_with("queue", source("queue").replace(old, new))
    of = without_properties(PUSH_SYSTEM)
    pair = PairData.read(BESIDE_A_JOB.format(call), PUSH_SYSTEM).pair(of)
    problem = run_pair(of, wrong, pair, right=LIB).problem
    assert problem.startswith(f"outcome: returned is {{'{call} A m1': 'False'")
    assert not run_pair(of, LIB, pair).problem


def test_a_difference_names_what_differs() -> None:
    assert difference({"a": 1, "b": 2}, [{"a": 1, "b": 3}, {"a": 2, "b": 3}]).startswith(
        "b is 2, and 3 in order"
    )


def test_serving_beside_the_calls_has_more_schedules() -> None:
    rest = "alone: subscribe A; enqueue m1 | enqueue m2"
    settled, served = (run(PUSH_SYSTEM, f"{mode} {rest}") for mode in ("settle", "serve"))
    assert settled.exhausted
    assert served.exhausted
    assert not settled.problem
    assert not served.problem
    assert served.executions > settled.executions


def test_consumers_that_make_no_racing_call_share_an_io_thread() -> None:
    """Two threads that call and one that serves; a call that the consumer itself makes is on its own thread."""

    def threads(key: str) -> set[str]:
        program = PairProgram(PULL_SYSTEM, LIB, PairData.read(key, PULL_SYSTEM).pair(PULL_SYSTEM))
        found: set[str] = set()
        explore(program, on_execution=lambda world: found.update(r.thread for r in world.records))
        return found - {"", "setup"}

    assert threads("serve two: subscribe A; enqueue m1 | subscribe B") == {"T1", "T2", "io"}
    assert threads("serve alone: subscribe A; enqueue m1 | pull A") == {"T1", "io A"}


def test_a_wrong_program_has_a_counterexample_that_replays() -> None:
    lib = load("queue", MUTANTS["looks-then-joins"])
    pair = PairData.read(EXCLUSIVES, PUSH_SYSTEM).pair(PUSH_SYSTEM)
    result, findings = explained(PUSH_SYSTEM, lib, pair)
    assert result.counterexample is not None
    assert [f.property for f in findings] == ["QL-6"]
    again, _ = explained(PUSH_SYSTEM, lib, pair, strategy=Replay(result.counterexample.token))
    assert again.verdict == "violated"


@pytest.mark.parametrize(
    "mutant",
    [
        "tail-unlinked",
        "unlink-acquired",
        pytest.param("looks-then-joins", marks=pytest.mark.slow),
    ],
)
def test_the_matrix_judges_mutants(mutant: str) -> None:
    lib = load("queue", MUTANTS[mutant])
    found = [first_problem(s, lib, depth=1, max_executions=30) for s in ("push", "pull")]
    assert any(found), f"{mutant} survives"


GIVEN_BACK = (
    "settle group-credit: subscribe A, enqueue m1, enqueue m2, subscribe B; release A m1 | job"
)


def test_a_release_that_sets_the_group_free_before_the_message_is_seen() -> None:
    """A mistake by hand that no program of up to 700 schedules shows, and the matrix from depth 4 on."""
    old = """        ok = entry.change(consumer.acquired, State("AVAILABLE"))
        if ok:
            if self.groups.leave(entry.message.group, consumer):
"""
    new = """        ok = entry.state.get() is consumer.acquired
        if ok:
            freed = self.groups.leave(entry.message.group, consumer)
            entry.change(consumer.acquired, State("AVAILABLE"))
            if freed:
"""
    assert source("queue").count(old) == 1
    lib = modules_with("queue", source("queue").replace(old, new))
    pair = PairData.read(GIVEN_BACK, PUSH_SYSTEM).pair(PUSH_SYSTEM)
    found = run_pair(PUSH_SYSTEM, lib, pair, 1000, right=LIB)
    assert found.problem.startswith("MG-1: B took m2 while A held m1")
    right = run_pair(PUSH_SYSTEM, LIB, pair)
    assert right.exhausted
    assert not right.problem


@pytest.mark.parametrize("calls", ["pause A | resume A", "grant A 1 | pause A"])
def test_who_fails_and_is_notified_again_is_on_the_way(calls: str) -> None:
    """B waits for m1, and is woken when A finds nothing more behind m2, which is left to A."""
    key = f"settle ranks-selector: enqueue m2, enqueue m1, subscribe A, subscribe B; {calls}"
    right = run_pair(PULL_SYSTEM, LIB, PairData.read(key, PULL_SYSTEM).pair(PULL_SYSTEM))
    assert right.exhausted
    assert not right.problem


def test_who_closes_may_have_been_sent_what_another_is_sent_then() -> None:
    """Of both orders A is served and nothing is sent twice; B may be served as well, and then closes."""
    key = "serve two: subscribe A, subscribe B; enqueue m1 | close B"
    right = run_pair(PUSH_SYSTEM, LIB, PairData.read(key, PUSH_SYSTEM).pair(PUSH_SYSTEM), 1000)
    assert not right.problem
    assert ANY_TURN.why in right.excused


GROUP_LEFT_BY_TWO = (
    "settle group: enqueue m1, enqueue m2, subscribe A, job; release A m1 | dequeue A m2",
    "settle group: enqueue m1, enqueue m2, subscribe A, job; release A m2 | dequeue A m1",
    "settle group: enqueue m1, enqueue m2, subscribe A, job; close A | dequeue A m2",
)
"""Whoever leaves the group last asks for the job, and this need not be who ended the last acquisition of it."""


@pytest.mark.parametrize("key", GROUP_LEFT_BY_TWO)
def test_who_leaves_a_group_last_may_still_be_about_to_ask_for_the_job(key: str) -> None:
    right = run_pair(PUSH_SYSTEM, LIB, PairData.read(key, PUSH_SYSTEM).pair(PUSH_SYSTEM))
    assert right.exhausted
    assert not right.problem


@pytest.mark.parametrize("key", GROUP_LEFT_BY_TWO[:2])
def test_a_group_that_is_left_without_a_job_is_seen(key: str) -> None:
    old = "if entry.message.group == group and entry.available():\n                self._announce(entry)"
    assert source("queue").count(old) == 1
    lib = modules_with(
        "queue", source("queue").replace(old, old.replace("_announce(", "_rewind_all("))
    )
    pair = PairData.read(key, PUSH_SYSTEM).pair(PUSH_SYSTEM)
    found = run_pair(PUSH_SYSTEM, lib, pair, right=LIB)
    assert "is available, and no delivery will begin" in found.problem


ONE_STAYS = "settle selector: enqueue m1; subscribe A | subscribe B"
"""A job that looks at one consumer only leaves m1 to nobody, whoever comes first."""


def test_a_mutant_is_compared_with_the_orders_of_the_right_reference() -> None:
    """Its own orders are as wrong as its executions: then no difference is seen."""
    of = without_properties(PUSH_SYSTEM)
    pair = PairData.read(ONE_STAYS, PUSH_SYSTEM).pair(of)
    lib = load("queue", MUTANTS["job-stops-at-the-first"])
    assert not run_pair(of, lib, pair).problem
    assert run_pair(of, lib, pair, right=LIB).problem.startswith("outcome: m1 is AVAILABLE")
    assert not run_pair(of, LIB, pair, right=LIB).problem


def test_a_batch_compares_its_mutant_with_the_right_reference() -> None:
    program = PairData.read(ONE_STAYS, PUSH_SYSTEM)
    mutant = PairBatch("push", (program,), 10, "job-stops-at-the-first")
    ((wrong,), (right,)) = (do(b) for b in (mutant, PairBatch("push", (program,), 10)))
    assert wrong.result.problem.startswith(("outcome: ", "WK-1: "))
    assert not right.result.problem


def test_an_edge_of_a_mutant_is_compared_with_the_same_edge_of_the_right_reference() -> None:
    of = without_properties(PUSH_SYSTEM)
    wrong = load("queue", MUTANTS["close-keeps-messages"])
    closes = [
        e
        for e in edges_of("push", 1)
        if e.state.universe.name == "holding" and not e.state.path and e.offer.invocation.call == "close"
    ]  # fmt: skip
    (edge,) = closes
    problem = edge_problem(of, edge.state, edge.offer, wrong, LIB)
    assert problem.startswith("outcome: m1 is ACQUIRED by A, and AVAILABLE over the right")
    assert not edge_problem(of, edge.state, edge.offer, LIB, LIB)
