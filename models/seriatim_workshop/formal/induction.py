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
possible     the invariants are not empty: such a state satisfies them, and there is an initial one
enabled      the action can be taken in a state in which they hold; so its consecution is not vacuous
broken       a broken action in the place of a right one leads out: the check can fail
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import z3
from rich.console import Console
from rich.table import Table

from seriatim_workshop.formal import cti, theory
from seriatim_workshop.formal.theory import Action, Claim, Term, TransitionSystem

SECONDS_MAX = 120
"""For one question to the solver. The slowest takes one or two, but the machine may be busy."""

MUST = {
    "initiation": "proved",
    "consecution": "proved",
    "safety": "proved",
    "possible": "found",
    "enabled": "found",
    "broken": "refuted",
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
    """Whether no state of any size has these facts: proved, refuted or open."""
    solver = z3.Solver()
    solver.set("timeout", SECONDS_MAX * 1000)
    solver.add(*facts)
    return {"unsat": "proved", "sat": "refuted"}.get(str(solver.check()), "open")


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


def enabled(system: TransitionSystem, action: Action) -> Decided:
    """Whether the action can be taken in a state in which the invariants hold."""
    guard, _ = action.build(system.state(), *action.symbols())
    return exists(system, [guard], action)


def possible(system: TransitionSystem, claim: Claim) -> Decided:
    """Whether a state that satisfies the invariants makes the claim true."""
    symbols = [z3.Const(name, sort) for name, sort in claim.parameters.items()]
    return exists(system, [claim.body(system.state(), *symbols)], None)


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
    for c in system.witnesses.values():
        yield make("possible", c.name, "", c.description, partial(possible, system, c))
    for a in system.actions.values():
        yield make("enabled", a.name, "", a.description, partial(enabled, system, a))
    for t in system.broken_variants.values():
        description = f"{t.action.description} ({t.finding}) It must break: {t.breaks}."
        yield make("broken", t.action.name, t.property, description, partial(refuted, system, t))


def decide(obligation: Obligation) -> ProofOutcome:
    """Ask the solver about one obligation."""
    began = time.process_time()
    verdict, case = obligation.decide()
    return ProofOutcome(obligation, verdict, time.process_time() - began, case)


def select(names: list[str]) -> list[Obligation]:
    """Those that are named. Raises ValueError if a name fits none."""
    every = [o for name in theory.SYSTEMS for o in obligations(theory.load(name))]
    for name in names:
        if not any(name in o.id for o in every):
            raise ValueError(f"no obligation has {name} in its name, such as {every[0].id}")
    return [o for o in every if all(name in o.id for name in names)]


def table(outcomes: list[ProofOutcome]) -> Table:
    """One row an obligation."""
    rows = Table(title="Inductive proofs", title_justify="left", box=None, pad_edge=False)
    for name in ("id", "obligation", "what", "is"):
        rows.add_column(name, overflow="fold")
    rows.add_column("seconds", justify="right")
    for o in outcomes:
        verdict = (
            f"[red]{o.verdict}, must be {MUST[o.obligation.kind]}[/]" if o.wrong else o.verdict
        )
        first = o.obligation.description.split(". ")[0]
        rows.add_row(o.obligation.about, o.obligation.id, first, verdict, f"{o.seconds:.2f}")
    return rows


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
        mark = "!" if outcome.wrong else " "
        console.print(
            f"{mark} {n:3}/{len(chosen)} {obligation.id}: {outcome.verdict}, {outcome.seconds:.2f} s",
            highlight=False,
        )
        outcomes.append(outcome)
    console.print(table(outcomes))
    for o in outcomes:
        if o.case and (o.wrong or asked.show):
            print(f"\n{o.obligation.id}, {o.verdict}: {o.obligation.description}\n{o.case}")
    for o in outcomes:
        if o.wrong:
            console.print(
                f"{o.obligation.id}: {o.verdict}, must be {MUST[o.obligation.kind]}", style="red"
            )
    wrong = sum(o.wrong for o in outcomes)
    proved = sum(o.verdict == "proved" for o in outcomes)
    variants = sum(o.verdict == "refuted" for o in outcomes)
    console.print(
        f"{len(outcomes)} obligations: {proved} proved for any number of members, {variants} broken variants refuted, "
        f"{wrong} not as they must be; {sum(o.seconds for o in outcomes):.1f} s"
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
