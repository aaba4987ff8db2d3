"""The inductive proofs: all that is claimed is proved, and whatever is broken on purpose is refuted."""

import re
from dataclasses import replace

import pytest
import z3

from seriatim_workshop.formal import follower, induction, reach, theory
from seriatim_workshop.formal.theory import SymbolicState, Term, TransitionSystem, at, every
from seriatim_workshop.formal.traces import follow
from seriatim_workshop.formal.wording import PHRASES

SYSTEMS = [theory.load(name) for name in theory.SYSTEMS]


@pytest.mark.timeout(
    600
)  # five seconds of processor, but many in one test on a machine that may be busy
@pytest.mark.parametrize(
    "system",
    # The largest takes most of the time; `make prove` decides all of them, too.
    [
        *(pytest.param(s, id=s.name) for s in SYSTEMS if s.name != "entries"),
        *(
            pytest.param(s, id=s.name, marks=pytest.mark.night)
            for s in SYSTEMS
            if s.name == "entries"
        ),
    ],
)
def test_every_obligation_of_a_system_comes_out_as_it_must(system: TransitionSystem) -> None:
    outcomes = [induction.decide(o) for o in induction.obligations(system)]
    wrong = [f"{o.obligation.id}: {o.verdict}\n{o.case}" for o in outcomes if o.wrong]
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: s.name)
def test_every_property_that_is_proved_has_a_twin_that_breaks_it(system: TransitionSystem) -> None:
    proved = {c.property for c in (*system.safety.values(), *system.steps.values())}
    broken = {variant.property for variant in system.broken_variants.values()}
    assert proved <= broken, f"no broken variant breaks {proved - broken}"


def test_what_is_not_inductive_is_refuted_with_a_readable_pair() -> None:
    """Without the fresh object of rule 4: the released entry, and a thread that has passed it already."""
    entries = theory.load("entries")
    verdict, case = induction.refuted(entries, entries.broken_variants["rewind_as_published"])
    assert verdict == "refuted"
    said = str(case)
    assert said.startswith("rewind_as_published(t = t1, e = e1, c = c1")
    facts = {line.split("  ")[1].strip(): line for line in said.splitlines()[2:]}
    assert "AVAILABLE" in facts["status e1"]
    assert "passed t1" in facts
    assert facts["owes t1 e1 c1"].split()[-2:] == ["True", "False"]


FROZEN: dict[tuple[str, str], tuple[theory.Formula, str]] = {
    ("nodes", "link"): (lambda s, n, x: s.marked(x), "action/link"),
    ("entries", "register"): (lambda s, c, k: s.registered(c), "action/register"),
    ("entries", "look"): (lambda s, t, c: s.pointer(c) > 0, "action/advance"),
    ("entries", "acquire"): (lambda s, t, e, c: s.holds(c, e), "action/acquire"),
    ("lists", "lock"): (lambda s, t, c: s.closed(c), "action/enter"),
    ("consumers", "join"): (lambda s, t, c: s.present(c), "action/leave"),
    ("wakeups", "wake"): (lambda s, t, c: s.lies(c) > 0, "action/draw"),
    ("jobs", "begin_job"): (lambda s, t: s.looks(t), "action/end_job"),
    ("handover", "draw_permit"): (lambda s, t, p: s.drawn(t, p), "action/begin_run"),
    ("wakeups", "begin_look"): (lambda s, t, c: s.runs(c) != t, "action/take"),
}
"""System and action -> a condition that its guard gets besides, and the goal that nobody reaches any more."""


def strengthened(right: TransitionSystem, name: str, more: theory.Formula) -> TransitionSystem:
    """The system, of which one action asks for one thing more."""
    action = right.actions[name]

    def build(s: SymbolicState, *given: Term) -> tuple[Term, SymbolicState]:
        """The action, if the condition holds besides."""
        guard, after = action.build(s, *given)
        return z3.And(guard, more(s, *given)), after

    return replace(right, actions={**right.actions, name: replace(action, build=build)})


@pytest.mark.slow
@pytest.mark.parametrize(("system", "action"), FROZEN)
def test_a_guard_that_freezes_a_system_fails(system: str, action: str) -> None:
    """The guard asks for what only comes of the action itself: all claims still hold, of almost nothing."""
    more, name = FROZEN[system, action]
    cold = strengthened(theory.load(system), action, more)
    (goal,) = (g for g in reach.goals(cold) if g.id == f"{system}/{name}")
    verdict, why = reach.look_for(goal, reach.stored()[goal.id], seconds=1)
    assert verdict == "not reached"
    assert "not possible here" in why


ENTRIES, WAKEUPS, JOBS, HANDOVER = map(theory.module, ("entries", "wakeups", "jobs", "handover"))

PARTLY_FROZEN: dict[str, tuple[str, str, theory.Formula]] = {
    "nodes/witness/the_tail_lags": (
        "link",
        "an append waits until the tail is the last",
        lambda s, n, x: s.tail(s.of(x)) == x,
    ),
    "entries/witness/a_walk_past_a_held_entry": (
        "pass_by",
        "a look waits until what another holds is released",
        lambda s, t, e: s.status(e) != ENTRIES.ACQUIRED,
    ),
    "entries/witness/delivered_immediately": (
        "release",
        "an immediate entry is never released",
        lambda s, t, e, c: z3.Not(s.immediate(e)),
    ),
    "lists/witness/two_on_the_move": (
        "lock",
        "one lock for all consumers",
        lambda s, t, c: every(c.sort(), lambda d: z3.Not(s.locked(d))),
    ),
    "consumers/witness/one_after_the_other": (
        "leave",
        "who was the only one stays for good",
        lambda s, c: z3.Not(s.exclusive(c)),
    ),
    "consumers/witness/the_last_credit_in_flight": (
        "pay",
        "one credit is kept in reserve",
        lambda s, t, c: s.credit(c) > 1,
    ),
    "wakeups/witness/seen_to_rest": (
        "announce",
        "who announces waits until nobody looks",
        lambda s, t, m: every(WAKEUPS.Consumer, lambda c: s.phase(c) != WAKEUPS.LOOKING),
    ),
    "jobs/witness/comes_during_a_job": (
        "set_pending",
        "no job is started while one runs",
        lambda s, t: every(t.sort(), lambda u: z3.Not(s.looks(u))),
    ),
    "jobs/witness/misses_what_is_on_its_way": (
        "leave_it_to_its_maker",
        "a job waits for the maker of what could go to somebody",
        lambda s, t, u, c, m: z3.Not(s.deliverable(c, m)),
    ),
    "jobs/witness/taken_as_it_was_seen": (
        "see_it_there",
        "a publisher looks again only if it asked nobody",
        lambda s, t, m: every(JOBS.Consumer, lambda c: z3.Not(s.asked(t, c))),
    ),
    "handover/witness/work_comes_while_it_ends": (
        "end_run",
        "a run ends only when nothing waits",
        lambda s, t, c: every(HANDOVER.Session, lambda n: z3.Not(s.queued(n))),
    ),
}
"""Witness -> an action, what its guard asks for besides, in words, and the condition: the action can still be taken."""


@pytest.mark.slow
@pytest.mark.parametrize("witness", PARTLY_FROZEN)
def test_a_guard_that_freezes_a_part_of_a_system_fails(witness: str) -> None:
    """The action can still be taken, and every claim holds; what the witness names does not happen any more."""
    action, _, more = PARTLY_FROZEN[witness]
    kept = reach.stored()
    cold = strengthened(theory.load(witness.partition("/")[0]), action, more)
    goals = {goal.id: goal for goal in reach.goals(cold)}
    verdict, why = reach.look_for(goals[witness], kept[witness], seconds=2)
    assert verdict == "not reached"
    assert f": {action}(" in why
    taken = f"{cold.name}/action/{action}"
    assert reach.look_for(goals[taken], kept[taken], seconds=10)[0] == "reached"


TOO_STRONG_FOR_THE_CODE: dict[str, tuple[str, str, theory.Formula, str, str]] = {
    "one connection runs at a time": (
        "handover",
        "begin_run",
        lambda s, t, c, p: every(HANDOVER.Thread, c.sort(), lambda u, d: z3.Not(s.runs(u, d))),
        "handover-two-connections",
        "it must not be that io1 runs connection conn",
    ),
    "only what is first in a list is unlinked": (
        "nodes",
        "unlink",
        lambda s, t, x: s.is_head(x),
        "consumer-list-middle",
        "is the head of a list",
    ),
    "nobody comes into Notified": (
        "lists",
        "enter",
        lambda s, t, c: s.listed(c) != theory.module("lists").NOTIFIED,
        "enqueue-rest",
        "the list of A is not NOTIFIED",
    ),
    "one publisher at a time": (
        "jobs",
        "begin_to_deliver",
        lambda s, t, m: every(t.sort(), lambda u: z3.Not(JOBS.arriving(s, u))),
        "push-two",
        "it must not be that P1 delivers P1, which it enqueued",
    ),
}
"""In words -> a system, an action, what its guard asks for besides, a program, and what the rejection of it says."""


@pytest.mark.parametrize("words", TOO_STRONG_FOR_THE_CODE)
def test_a_guard_that_is_too_strong_for_the_code_alone_rejects_what_it_does(
    words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No path that is kept needs more, so every obligation is as it must be: the bond to the code is what breaks."""
    system, action, more, program, why = TOO_STRONG_FOR_THE_CODE[words]
    cold = strengthened(theory.load(system), action, more)
    kept = reach.stored()
    assert [g.id for g in reach.goals(cold) if reach.check(g, kept[g.id])] == []
    monkeypatch.setattr(
        follower, "load", lambda name: cold if name == system else theory.load(name)
    )
    assert why in follow(program, executions=100).rejected


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: s.name)
def test_an_action_that_can_never_be_taken_breaks_its_path(system: TransitionSystem) -> None:
    kept = reach.stored()
    for action in system.actions.values():

        def never(s: SymbolicState, *given: Term, right: theory.Action = action) -> theory.Term:
            """The action, and its guard is false."""
            return z3.BoolVal(False), right.build(s, *given)[1]

        frozen = {**system.actions, action.name: replace(action, build=never)}
        cold = replace(system, actions=frozen)
        goal = next(g for g in reach.goals(cold) if g.id == f"{system.name}/action/{action.name}")
        assert "not possible here" in reach.check(goal, kept[goal.id])


def test_every_path_that_is_kept_leads_to_its_goal() -> None:
    kept = reach.stored()
    every = [goal for system in SYSTEMS for goal in reach.goals(system)]
    assert kept.keys() == {goal.id for goal in every}
    assert [why for goal in every if (why := reach.check(goal, kept[goal.id]))] == []


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: s.name)
def test_a_guard_is_worded_whatever_function_it_asks_for(system: TransitionSystem) -> None:
    for name, function in system.functions.items():
        phrase = PHRASES.get(f"{system.name}.{name}") or PHRASES.get(name)
        assert phrase is not None, f"{system.name}.{name} has no words"
        places = {int(digit) for digit in re.findall(r"{(\d)}", phrase)}
        assert places <= {*range(function.arity())}, f"{system.name}.{name}: {phrase}"


LENT = [(name, lender) for name, lemma in induction.lemmas().items() for lender in lemma.lenders]


@pytest.mark.parametrize("name", induction.lemmas())
def test_what_a_system_borrows_follows_from_what_another_proves(name: str) -> None:
    lemma = induction.lemmas()[name]
    assert induction.follows(lemma.lenders, lemma.conclusion)[0] == "proved"
    for lender in lemma.lenders:
        system, _, claim = lender.partition("/")
        assert system != lemma.borrower
        of = theory.load(system)
        if claim in of.safety:
            assert induction.safety(of, of.safety[claim])[0] == "proved"
        else:
            steps = (induction.preserves(of, a, of.steps[claim])[0] for a in of.actions.values())
            assert {*steps} == {"proved"}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "lender"), LENT)
def test_a_lemma_does_not_follow_when_a_claim_says_less(
    name: str, lender: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim that is missing is an error, and one that says nothing does not carry what is borrowed."""
    monkeypatch.setattr(induction, "SECONDS_MAX", 5)
    lemma = induction.lemmas()[name]
    system, _, claim = lender.partition("/")
    of = theory.load(system)
    kind = "safety" if claim in of.safety else "steps"
    claims = getattr(of, kind)
    empty = replace(claims[claim], body=lambda *states_and_parameters: z3.BoolVal(True))
    monkeypatch.setattr(of, kind, {**claims, claim: empty})  # in its place, which pages show
    assert induction.follows(lemma.lenders, lemma.conclusion)[0] in ("refuted", "open")
    monkeypatch.setattr(of, kind, {name: c for name, c in claims.items() if name != claim})
    with pytest.raises(KeyError, match=claim):
        induction.follows(lemma.lenders, lemma.conclusion)


def counter() -> TransitionSystem:
    """A number that goes up by two, and the claim that it stays even, which needs no help."""
    thing = z3.DeclareSort("Thing")
    system = TransitionSystem("counter", "a number for each thing", (thing,))
    system.declare("n", thing, z3.IntSort())
    system.initially(lambda s: every(thing, lambda x: s.n(x) == 0))

    def up(s: SymbolicState, x: Term) -> tuple[Term, SymbolicState]:
        """Up by two."""
        return z3.BoolVal(True), s.but(n=at(s.n, x, s.n(x) + 2))

    def not_one(s: SymbolicState, x: Term) -> Term:
        """It is never one: true, but not inductive."""
        return s.n(x) != 1

    system.action(x=thing)(up)
    system.invariant("ES-1", x=thing)(not_one)
    return system


def test_a_claim_that_is_true_but_not_inductive_is_not_called_proved() -> None:
    system = counter()
    by_kind = {o.kind: induction.decide(o) for o in induction.obligations(system)}
    assert by_kind["initiation"].verdict == "proved"
    assert by_kind["consecution"].wrong
    assert "n t1" in str(by_kind["consecution"].case)


def test_an_action_that_can_never_be_taken_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    system = counter()
    thing = system.sorts[0]

    def never(s: SymbolicState, x: Term) -> tuple[Term, SymbolicState]:
        """Never."""
        return s.n(x) == 1, s

    system.action(x=thing)(never)
    monkeypatch.setattr(induction, "SEARCH_SECONDS", 1)
    found = {o.id: induction.decide(o) for o in induction.obligations(system)}
    assert found["counter/consecution/never"].verdict == "proved"  # of nothing
    assert found["counter/reached/never"].wrong
    assert not found["counter/reached/up"].wrong


def test_rejects_a_word_that_no_obligation_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert induction.main(["nosuch"]) == 2
    assert "nosuch" in capsys.readouterr().err
