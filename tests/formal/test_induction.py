"""The inductive proofs: all that is claimed is proved, and whatever is broken on purpose is refuted."""

import pytest
import z3

from seriatim_workshop.formal import induction, theory
from seriatim_workshop.formal.theory import SymbolicState, Term, TransitionSystem, at, every

SYSTEMS = [theory.load(name) for name in theory.SYSTEMS]


@pytest.mark.timeout(
    600
)  # five seconds of processor, but many in one test on a machine that may be busy
@pytest.mark.parametrize(
    "system",
    # The largest takes most of the time; `make prove` decides all of them, too.
    [pytest.param(s, id=s.name, marks=[pytest.mark.slow] * (s.name == "entries")) for s in SYSTEMS],
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


def test_an_action_that_can_never_be_taken_is_found_out() -> None:
    system = counter()
    thing = system.sorts[0]

    def never(s: SymbolicState, x: Term) -> tuple[Term, SymbolicState]:
        """Never."""
        return s.n(x) == 1, s

    system.action(x=thing)(never)
    found = {o.id: induction.decide(o) for o in induction.obligations(system)}
    assert found["counter/consecution/never"].verdict == "proved"  # of nothing
    assert found["counter/enabled/never"].wrong


def test_rejects_a_word_that_no_obligation_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert induction.main(["nosuch"]) == 2
    assert "nosuch" in capsys.readouterr().err
