"""`spec/FOLLOWED.md`: which systems follow which program, what lies outside, and where each mutant is rejected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from seriatim_models.explorer.trace.counterexample import Counterexample
from seriatim_models.programs import MUTANTS
from seriatim_workshop.formal.induction import impossible
from seriatim_workshop.formal.simulation import shortened
from seriatim_workshop.formal.theory import SYSTEMS, Claim, TransitionSystem, load

TURNS = "whose turn it is among a target's consumers is outside: `handover` knows targets, not their consumers (WK-10)"
BEGINS = (
    "with whom a push begins is outside: in no system does the list of all have an order (SO-7)"
)
MESSAGES = "how many messages a target takes in a turn is outside of `handover` (WK-12)"
ACCEPTED = {
    "starts-at-the-head": BEGINS,
    "jobs-keep-no-turn": BEGINS,
    "served-until-dry": TURNS,
    "turns-by-number": TURNS,
    "target-until-dry": MESSAGES,
    "turn-for-each-consumer": MESSAGES,
}
"""Mutants of which no execution leaves a system -> why: what they break lies outside of all systems."""


@dataclass
class Followed:
    """What came of a program, or of a mutant in its program."""

    program: str
    mutant: str = ""
    executions: int = 0
    steps: int = 0
    """Steps of the systems, over all executions."""
    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Of shared writes, see `Simulation.counts`."""
    actions: set[tuple[str, str]] = field(default_factory=set)
    notes: set[str] = field(default_factory=set)
    """Systems that do not speak of one of its queues, and why."""
    rejected: str = ""
    """Where and why the first execution was that is no behaviour; '' if none was."""
    system: str = ""
    """Which system rejected it."""
    race: str = ""
    """A data race of changed code of which nothing was rejected; '' if there is none."""
    stood_still: str = ""
    """The step that did not end, and where it is; '' if each did."""
    no_end: str = ""
    """How many executions were cut off, for they had not come to an end after so many steps; '' if each did."""
    counterexample: Counterexample | None = None
    exhausted: bool = False
    seconds: float = 0.0
    """Of the processor."""

    @property
    def verdict(self) -> str:
        """What came of it: rejected, fails (it raised or got stuck first), inconclusive or accepted."""
        if self.rejected:
            return "rejected"
        if self.counterexample is not None:
            return "fails"
        return "inconclusive" if self.inconclusive else "accepted"

    @property
    def inconclusive(self) -> str:
        """Why nothing can be said although nothing was rejected; '' if it can."""
        race = self.race and f"code that races is not accepted: {self.race}"
        return self.stood_still or self.no_end or race

    @property
    def name(self) -> str:
        """The program, and the mutant in it."""
        return f"{self.program}{'+' * bool(self.mutant)}{self.mutant}"

    @property
    def wrong(self) -> str:
        """Why the result is not the expected one; empty if it is."""
        if self.verdict == "inconclusive":
            return f"inconclusive: {self.inconclusive}"
        if self.mutant:
            expected = self.mutant not in ACCEPTED
            if bool(self.rejected) == expected:
                return ""
            return "no execution was rejected" if expected else f"rejected: {self.rejected}"
        if self.rejected or self.counterexample is not None:
            return self.rejected or str(self.counterexample)
        return "" if self.steps else "nothing was followed"

    def writes(self, what: str) -> int:
        """How many shared writes were steps, stutters or outside."""
        return sum(n for (was, _, _), n in self.counts.items() if was == what)

    @property
    def systems(self) -> str:
        """The systems that took a step."""
        return " ".join(sorted({system for system, _ in self.actions}))

    @property
    def outside(self) -> str:
        """The kinds of objects whose writes no system speaks of, and the systems that do not speak of its queue."""
        kinds = " ".join(sorted({kind for what, _, kind in self.counts if what == "outside"}))
        return "; ".join([*([kinds] if kinds else []), *sorted(self.notes)])


def share(outcomes: Iterable[Followed]) -> float:
    """Of all shared writes, the share that is a step of a system."""
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        for what in ("step", "stutter", "outside"):
            counts[what] += outcome.writes(what)
    return counts["step"] / max(1, sum(counts.values()))


def write(page: Path, outcomes: list[Followed]) -> None:
    """Write both tables."""
    right = [o for o in outcomes if not o.mutant]
    wrong = [o for o in outcomes if o.mutant]
    lines = [*HEAD, *proved(), "", *_programs(right), "", *objects(right), "", *_mutants(wrong), ""]
    page.write_text("\n".join(lines), "utf-8")


HEAD = [
    "# What is followed",
    "",
    "Generated: `python -m seriatim_workshop.formal.traces --write spec/FOLLOWED.md`. "
    "Executions of each program are held against all systems of `spec/induction` at once: "
    "every schedule, or where a + stands the first of the search (`--all` takes every one). "
    "A shared write is a successful write of a cell, or an operation on a lock or semaphore. "
    "It is a *step* if a system takes an action for it; a *stutter* if a system knows it by name and checks that it "
    "changes nothing; *outside* if it is one of those that `formal/simulation.py` lists. Anything else is rejected.",
    "",
]


def proved() -> list[str]:
    """The table of what z3 proves for any number of members: each claim of each system."""
    rows = [
        "## What is proved, for any number",
        "",
        "A claim *follows from* one invariant if that is enough by itself: then it is the part of the invariant that "
        "is promised, in the words of the promise. A claim about a step is proved of each action.",
        "",
        "| system | property | claim | it says | follows from |",
        "|---|---|---|---|---|",
    ]
    for name in SYSTEMS:
        system = load(name)
        for claim in (*system.safety.values(), *system.steps.values()):
            says = " ".join(claim.description.split())
            basis = "each action" if claim.name in system.steps else follows_from(system, claim)
            rows.append(f"| `{name}` | {claim.property} | `{claim.name}` | {says} | {basis} |")
    return rows


def follows_from(system: TransitionSystem, claim: Claim) -> str:
    """The one invariant that a claim follows from, or that it needs several."""
    state = system.state()
    for invariant in system.invariants.values():
        if impossible(invariant.closed(state), claim.broken(state)) == "proved":
            return f"`{invariant.name}`"
    return "several invariants"


def _programs(outcomes: list[Followed]) -> list[str]:
    rows = [
        "## Programs",
        "",
        "| program | executions | steps | shared writes that are steps | systems | outside |",
        "|---|---:|---:|---:|---|---|",
    ]
    total = [0, 0]
    for o in outcomes:
        writes = sum(o.counts.values())
        total[0] += o.writes("step")
        total[1] += writes
        rows.append(
            f"| {o.name} | {o.executions:,}{'' if o.exhausted else '+'} | {o.steps:,} "
            f"| {o.writes('step') / max(1, writes):.0%} "
            f"| {o.systems} | {o.outside} |"
        )
    whole = f"{sum(o.executions for o in outcomes):,} | {sum(o.steps for o in outcomes):,}"
    return [*rows, f"| all | {whole} | {total[0] / max(1, total[1]):.1%} | | |"]


def objects(outcomes: Iterable[Followed]) -> list[str]:
    """The table of the kinds of shared objects: how many of their writes are steps, stutters or outside."""
    counts: Counter[tuple[str, str]] = Counter()
    for outcome in outcomes:
        for (what, _, kind), n in outcome.counts.items():
            counts[kind, what] += n
    rows = [
        "## Shared objects",
        "",
        "A lock, a semaphore or a client's wake-up is *drawn* where a thread takes it.",
        "",
        "| what is written | steps | stutters | outside |",
        "|---|---:|---:|---:|",
    ]
    for kind in sorted({kind for kind, _ in counts}):
        numbers = (f"{counts[kind, what]:,}" for what in ("step", "stutter", "outside"))
        rows.append(f"| {kind} | {' | '.join(numbers)} |")
    return rows


def _mutants(outcomes: list[Followed]) -> list[str]:
    rejected = sum(bool(o.rejected) for o in outcomes)
    rows = [
        "## Mutants of the queue",
        "",
        f"{rejected} of {len(outcomes)} leave a system in one of the first 300 schedules of their own program.",
        "",
        "| mutant | breaks | rejected by | where |",
        "|---|---|---|---|",
    ]
    for o in outcomes:
        where = o.rejected or o.inconclusive or ACCEPTED.get(o.mutant, "")
        where = shortened(where).replace("|", "\\|")
        breaks = MUTANTS[o.mutant].killed_by
        rows.append(f"| {o.mutant} | {breaks} | {o.system if o.rejected else 'none'} | {where} |")
    return rows
