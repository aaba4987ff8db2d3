"""Prove the systems of `spec/induction` for any number of members: by induction, with z3.

python -m seriatim_workshop.formal.induction                   # all; exit 1 if anything is not as it must be
python -m seriatim_workshop.formal.induction entries release # obligations whose names begin with, or hold, these words
python -m seriatim_workshop.formal.induction --show            # and the counterexample to induction

An invariant is *inductive* if it holds in the beginning and no action leads out of it.
Kinds of obligation, each decided by one or a few questions to the solver:

initiation   the invariants hold in every initial state
consecution  from any state in which all invariants hold, the action leads to one in which they hold,
             and the step is one that the claims about steps allow
safety       what is promised follows from the invariants
possible     there is an initial state; else initiation would say nothing
reached      from an initial state, a path of steps leads to where the action is taken, or the witness is seen
broken       a broken action in the place of a right one leads out of the invariants: the check can fail
borrowed     what a system takes for granted follows from the claims of another that proves it (`composition.py`)
violates     and from an initial state a path of steps leads to where a promise is broken: the mistake does harm
"""

from __future__ import annotations

import argparse
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import z3
from rich.console import Console

from seriatim_workshop.formal import cti, reach, theory
from seriatim_workshop.formal.theory import Action, Claim, Term, TransitionSystem

SECONDS_MAX = 120
"""For one question to the solver. The slowest takes one or two, but the machine may be busy."""

QUICK_SECONDS = 10
INSTANCES_ONLY = {"smt.mbqi": False, "smt.pull_nested_quantifiers": True}
"""How a question is asked at first, and for how long."""

SEARCH_SECONDS = 10
"""For a path, where the one that is kept does not lead to its goal any more."""

MUST = {
    "initiation": "proved",
    "consecution": "proved",
    "safety": "proved",
    "possible": "found",
    "reached": "reached",
    "broken": "refuted",
    "violates": "reached",
    "borrowed": "proved",
}


Decided = tuple[str, cti.Small | str]
"""A verdict (one of `MUST`, or open), and the state, or pair of states, that goes with it; it is made readable late."""


@dataclass(frozen=True)
class Obligation:
    """Something to prove, or to refute."""

    system: str
    kind: str
    name: str
    about: str
    """The property that it is about; '' if it is about all."""
    description: str
    decide: Callable[[], Decided]

    @property
    def id(self) -> str:
        """System, kind and name."""
        return f"{self.system}/{self.kind}/{self.name}"


@dataclass(frozen=True)
class ProofOutcome:
    """What came of an obligation."""

    obligation: Obligation
    verdict: str
    """proved, refuted, found, not found or open"""
    seconds: float
    """Of the processor."""
    case: cti.Small | str
    """The counterexample, if it was refuted; the state, if one was found."""

    @property
    def wrong(self) -> bool:
        """Whether the verdict is not the one that its kind must have."""
        return self.verdict != MUST[self.obligation.kind]


# ---- questions to the solver


def impossible(*facts: Term) -> str:
    """Whether no state of any size has these facts: proved, refuted or open.

    By instances of what is there alone most proofs are found, and in a moment; no model is ever found so.
    """
    for seconds, options in ((QUICK_SECONDS, INSTANCES_ONLY), (SECONDS_MAX, {})):
        solver = z3.Solver()
        solver.set("timeout", seconds * 1000)
        for option, value in options.items():
            solver.set(option, value)
        solver.add(*facts)
        verdict = {"unsat": "proved", "sat": "refuted"}.get(str(solver.check()), "open")
        if verdict == "proved":
            break
    return verdict


def invariants(system: TransitionSystem) -> list[Term]:
    """All of them, in the present state."""
    state = system.state()
    return [claim.closed(state) for claim in system.invariants.values()]


def initiation(system: TransitionSystem, claim: Claim) -> Decided:
    """Whether the claim holds in every initial state."""
    state = system.state()
    facts = [system.start(state), claim.broken(state)]
    return refute(system, impossible(*facts), facts, None)


def safety(system: TransitionSystem, claim: Claim) -> Decided:
    """Whether the claim follows from the invariants."""
    facts = [*invariants(system), claim.broken(system.state())]
    return refute(system, impossible(*facts), facts, None)


def consecution(system: TransitionSystem, action: Action) -> Decided:
    """All claims, one by one; what is reported is the first that is not preserved, or not proved so."""
    for claim in (*system.invariants.values(), *system.steps.values()):
        verdict, case = preserves(system, action, claim)
        if verdict != "proved":
            return verdict, f"{claim.name}: {claim.description}\n{case}"
    return "proved", ""


def preserves(system: TransitionSystem, action: Action, claim: Claim) -> Decided:
    """Whether the action never breaks the claim."""
    facts = step_facts(system, action, claim)
    return refute(system, impossible(*facts), facts, action)


def step_facts(system: TransitionSystem, action: Action, claim: Claim) -> list[Term]:
    """The invariants hold, the action is taken, and the claim does not hold then."""
    state = system.state()
    guard, after = action.build(state, *action.symbols())
    states = (state, after) if claim.name in system.steps else (after,)
    return [*invariants(system), guard, claim.broken(*states)]


def refute(
    system: TransitionSystem, verdict: str, facts: list[Term], action: Action | None
) -> Decided:
    """If it is not proved, the smallest state that shows it."""
    if verdict == "proved":
        return verdict, ""
    small = cti.smallest(system, facts, action)
    if small is None:
        return "open", "the solver found neither a proof nor a small counterexample"
    return "refuted", small


def exists(system: TransitionSystem, facts: list[Term], action: Action | None) -> Decided:
    """Whether a state satisfies the invariants and these facts."""
    small = cti.smallest(system, [*invariants(system), *facts], action)
    return ("not found", "") if small is None else ("found", small)


def reached(goal: reach.Goal) -> Decided:
    """Whether a path leads from an initial state to the goal: the one that is kept, or one that is found now."""
    return reach.look_for(goal, reach.stored().get(goal.id), SEARCH_SECONDS)


def begins(system: TransitionSystem) -> Decided:
    """There is an initial state; else initiation would say nothing."""
    return exists(system, [system.start(system.state())], None)


def refuted(system: TransitionSystem, variant: theory.BrokenVariant) -> Decided:
    """Whether the variant violates the claim that it must break."""
    claim = {**system.invariants, **system.steps}[variant.breaks]
    facts = step_facts(system, variant.action, claim)
    small = cti.smallest(system, facts, variant.action)  # first: most are found among few members
    if small is not None:
        return "refuted", small
    return impossible(*facts), "no small state shows it"


# ---- all of them


def obligations(system: TransitionSystem) -> Iterator[Obligation]:
    """Everything that there is to show about a system."""

    def make(
        kind: str, name: str, property: str, description: str, decide: Callable[[], Decided]
    ) -> Obligation:
        return Obligation(system.name, kind, name, property, " ".join(description.split()), decide)

    for c in system.invariants.values():
        yield make("initiation", c.name, c.property, c.description, partial(initiation, system, c))
    for a in system.actions.values():
        yield make("consecution", a.name, "", a.description, partial(consecution, system, a))
    for c in system.safety.values():
        yield make("safety", c.name, c.property, c.description, partial(safety, system, c))
    yield make("possible", "start", "", "There is an initial state.", partial(begins, system))
    for t in system.broken_variants.values():
        description = f"{t.action.description} ({t.finding}) It must break: {t.breaks}."
        yield make("broken", t.action.name, t.property, description, partial(refuted, system, t))
    for goal in reach.goals(system):
        kind = "violates" if goal.kind == "broken" else "reached"
        yield make(kind, goal.name, "", f"A path to {goal.id}.", partial(reached, goal))


def lemmas() -> dict[str, Any]:  # Any: `Lemma` of `spec/induction/composition.py`
    """What one system borrows from another, by name."""
    found: dict[str, Any] = theory.module("composition").LEMMAS
    return found


def follows(lenders: Iterable[str], conclusion: Term) -> Decided:
    """Whether the claims, each a system and its name, imply the conclusion. KeyError if there is no such claim."""
    facts = []
    for lender in lenders:
        of, _, name = lender.partition("/")
        system = theory.load(of)
        states = (
            (system.state(), system.next_state()) if name in system.steps else (system.state(),)
        )
        facts.append({**system.safety, **system.steps}[name].closed(*states))
    return impossible(*facts, z3.Not(conclusion)), ""


def borrowed() -> Iterator[Obligation]:
    """Every lemma between systems, after all of these."""
    for name, lemma in lemmas().items():
        decide = partial(follows, lemma.lenders, lemma.conclusion)
        yield Obligation(lemma.borrower, "borrowed", name, "", lemma.description, decide)


def decide(obligation: Obligation) -> ProofOutcome:
    """Ask the solver about one obligation."""
    began = time.process_time()
    verdict, case = obligation.decide()
    return ProofOutcome(obligation, verdict, time.process_time() - began, case)


def select(names: list[str]) -> list[Obligation]:
    """Those that are named. Raises ValueError if a name fits none."""
    every = [o for name in theory.SYSTEMS for o in obligations(theory.load(name))]
    every += borrowed()
    for name in names:
        if not any(name in o.id for o in every):
            raise ValueError(f"no obligation has {name} in its name, such as {every[0].id}")
    return [o for o in every if all(name in o.id for name in names)]


def line(outcome: ProofOutcome, n: int, of: int) -> str:
    """One obligation in one line of 80 columns."""
    mark = "!" if outcome.wrong else " "
    return f"{mark} {n:3}/{of} {outcome.obligation.id:54.54} {outcome.verdict:9} {outcome.seconds:5.1f}"


def totals(outcomes: list[ProofOutcome]) -> list[str]:
    """A line for each system: how many of each kind came out as they must."""
    systems: dict[str, Counter[str]] = {}
    for o in outcomes:
        systems.setdefault(o.obligation.system, Counter())[o.verdict] += not o.wrong
    return [
        f"{name:10} {', '.join(f'{n} {verdict}' for verdict, n in sorted(kinds.items()))}"
        for name, kinds in systems.items()
    ]


def main(args: list[str] | None = None) -> int:
    """Decide the obligations that are named (all); 1 if one is not as it must be."""
    parser = argparse.ArgumentParser(
        prog="python -m seriatim_workshop.formal.induction",
        description="Prove the invariants of spec/induction for any number of threads, entries and consumers. "
        "Exit code 1: something is not proved, or a broken variant is not refuted.",
    )
    parser.add_argument("names", nargs="*", metavar="WORD", help="parts of an obligation's name")
    parser.add_argument(
        "--show",
        action="store_true",
        help="print the states that refute, and those that were found",
    )
    asked = parser.parse_args(args)
    console = Console()
    try:
        chosen = select(asked.names)
    except ValueError as why:
        print(why, file=sys.stderr)
        return 2
    console.print(f"z3 {z3.get_version_string()}, {len(chosen)} obligations")
    outcomes = []
    for n, obligation in enumerate(chosen, 1):
        outcome = decide(obligation)
        console.print(line(outcome, n, len(chosen)), highlight=False, markup=False, soft_wrap=True)
        outcomes.append(outcome)
    for o in outcomes:
        if o.wrong or (asked.show and o.case):
            must = f", must be {MUST[o.obligation.kind]}" if o.wrong else ""
            print(f"\n{o.obligation.id}: {o.verdict}{must}")
            print(f"{textwrap.fill(o.obligation.description, 79)}\n{o.case}")
    print("\n".join(["", *totals(outcomes)]))
    wrong = sum(o.wrong for o in outcomes)
    print(
        f"{len(outcomes)} obligations, {wrong} not as they must be; "
        f"{sum(o.seconds for o in outcomes):.0f} s of the processor"
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
