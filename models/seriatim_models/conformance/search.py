"""Search for scripts in which an implementation violates a property, and shorten each.

Short scripts and load take turns. Every other short script is the next of `shapes.small_scripts`, until these are over;
the others are drawn, each the one of a few that brings most pairs of commands that no short script had.
Of a script that violates a property steps are left out
as long as the violation stays. Then the search goes on for properties not yet violated, until the time or the number of
scripts is over.

What is rare does not show in short scripts, however many: load is scripts that grow as long as the time allows, of
mixes that get most done (`load`).
Of both some are sent without waiting between the commands, so that these meet in the implementation.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from seriatim_models.conformance.driving import DrivenRun, drive
from seriatim_models.conformance.judging import ANSWERS, FindingTally, black_box_profiles, judged
from seriatim_models.conformance.load import Loads
from seriatim_models.conformance.profile_consistency import forms
from seriatim_models.conformance.profiles import Profile
from seriatim_models.conformance.script import ScriptStep
from seriatim_models.conformance.shapes import PairCoverage, small_scripts
from seriatim_models.conformance.system import System
from seriatim_models.conformance.workloads import drawn_script
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.standing import confirmed

CONFIRM = 3
"""How often a shortest script is run again, to see how often the violation repeats."""
CONFIRM_SHARE = 0.1
"""What part of the time of the search these further runs may take beyond it, if their own time would be shorter."""
SHORT_SCRIPTS, SHORT_STEPS = 300, 40
"""How many scripts may be run before there is load if bounds give a number of scripts, and how long short ones are."""
SMALL_SHARE = 0.3
"""For what part of the time small scripts of every shape come before there is load."""
CANDIDATES = 4
"""Of how many scripts drawn the one is run that brings most that is new."""
HURRIED = 4
"""Of how many short scripts one is sent without waiting between the commands, where there may be load."""
SHORT_SHARE = 0.3
"""What part of the time short scripts take beside the load."""
SHORTER, SHORTER_THAN, SHORTER_SHARE = 100, 3, 0.1
"""How many scripts are drawn that are shorter than one shortened, of how many steps it must have, for what part of the
time that is left.
"""
SHORTENING = 0.75
"""What part of the time of the search making a script short may take beyond it."""


class SearchBounds(msgspec.Struct, frozen=True, kw_only=True):
    """Where a search ends, whatever the implementation does."""

    seconds: float = 30.0
    """At most twice that, if something was found that has to be made short."""
    scripts: int | None = None
    """None: as many as the time allows, and load among them; else load comes after `SHORT_SCRIPTS` short ones.

    With `steps` as well the scripts of a seed are the same on every machine that has the time for them.
    """
    steps: int | None = None
    """None: `SHORT_STEPS` of a short script, and as many as the time allows of one of the load."""
    first: bool = False
    """Whether the first property that is violated ends the search, as soon as its script is short."""


class Witness(msgspec.Struct, kw_only=True):
    """The shortest script found for one property."""

    property: str
    finding: Finding
    run: DrivenRun
    again: int = 0
    """Of `runs` further runs, in how many the property was violated."""
    runs: int = 0


class SearchOutcome(msgspec.Struct, kw_only=True):
    """What a search found."""

    name: str
    profile: str
    seed: int
    findings: list[Finding] = []
    """One for each property of the profile, over all scripts; those that it shares with others are counted once."""
    witnesses: list[Witness] = []
    profiles: dict[str, list[str]] = {}
    """Each profile, with the properties of it that were violated; none means that all runs are consistent with it."""
    tested: list[str] = []
    """Profiles of whose core promises each had a case; of the others not enough was seen."""
    untested: dict[str, list[str]] = {}
    """Each profile, with its properties of which no case came up."""
    scripts: int = 0
    steps: int = 0
    events: int = 0
    seconds: float = 0.0
    ended: str = ""
    """What ended it: ``scripts``, ``time``, or a fault that repeats."""
    last: DrivenRun | None = None
    """The longest run without a violation: a history to keep."""


class _OutOfTime(Exception):
    """Raised where a script would begin after the end of the time."""


SearchProgress = Callable[[str, int], None]
"""Called with what is going on, and how many scripts were run."""


class _ViolationSearch:
    def __init__(
        self,
        system: System,
        profile: Profile,
        bounds: SearchBounds,
        chance: int,
        on_progress: SearchProgress,
    ) -> None:
        self.system, self.profile, self.bounds = system, profile, bounds
        self.on_progress = on_progress
        self.begun = time.monotonic()
        self.until = self.begun + bounds.seconds
        self._latest = self.begun + 2 * bounds.seconds
        self.seed = chance
        self.forms = {id(p): p for p in forms((profile, *black_box_profiles().values()))}
        self.tallies = {key: FindingTally() for key in self.forms}
        self.witnesses: dict[str, Witness] = {}
        self.last_seconds = 0.0
        """How long the last script took."""
        self.kept_seconds = 0.0
        """How long the script of the last witness took."""
        self.outcome = SearchOutcome(name=system.name, profile=profile.id, seed=chance)
        self.small = small_scripts(system.can, system.means.lease)[::-1]
        """Small scripts of every shape that are still to be run, the next one last."""
        self.covered = PairCoverage()
        """Pairs of commands that short scripts had."""

    def execute(
        self, steps: Sequence[ScriptStep], only: str = ""
    ) -> tuple[DrivenRun, dict[str, Finding]]:
        """Run and check, one property only if it is named; the violations under the profile asked for, by property."""
        if time.monotonic() > self.until:
            raise _OutOfTime
        begun = time.monotonic()
        run = drive(self.system, steps, until=self.until)
        out = self.outcome
        out.scripts += 1
        out.steps += len(run.steps)
        out.events += len(run.events)
        violations: dict[str, Finding] = {}
        own = {id(p) for p in self.profile.properties}
        for key, form in self.forms.items():
            if only not in ("", form.id):
                continue
            finding = confirmed(form, form.check(run.events))
            self.tallies[key].add(finding)
            if key in own and finding.verdict is Verdict.VIOLATED:
                violations[form.id] = finding
        if run.fault:
            violations[ANSWERS] = judged(run, ())[0]
        if (
            not violations
            and not only
            and (out.last is None or len(run.events) > len(out.last.events))
        ):
            out.last = run
        self.last_seconds = time.monotonic() - begun
        self.on_progress("searching", out.scripts)
        return run, violations

    def run(self) -> SearchOutcome:
        """Search until a bound is reached."""
        try:
            self.execute([])  # how long the least script takes
            self._search()
            self.outcome.ended = "scripts"
        except _OutOfTime:
            self.outcome.ended = "time"
        finally:
            self.system.end()
        self.outcome.seconds = time.monotonic() - self.begun
        return self.finished()

    def _search(self) -> None:
        """Run short scripts and load by turns, and make short what is found, until all scripts were run."""
        by_time = self.bounds.scripts is None
        loads = Loads(self.system.can, self.seed, self.bounds.steps, by_time=by_time)
        shorts = 0
        loading = 0.0  # seconds that the load took
        while self.bounds.scripts is None or self.outcome.scripts < self.bounds.scripts:
            begun = time.monotonic()
            if self._load_is_next(loading):
                load = loads.next()
                run = self._attempt(load.script)
                took = time.monotonic() - begun
                loading += took
                loads.add(load, run, took, self.until - time.monotonic())
            else:
                shorts += 1
                self._attempt(self._short(shorts))
            if self.bounds.first and self.witnesses:
                return

    def _load_is_next(self, loading: float) -> bool:
        """Whether load comes next: not once a violation is known, which long scripts would only show again."""
        if self.witnesses:
            return False
        if self.bounds.scripts is not None:
            return self.outcome.scripts >= SHORT_SCRIPTS
        spent = time.monotonic() - self.begun
        if self.small and spent < SMALL_SHARE * self.bounds.seconds:
            return False
        return self.outcome.scripts > 2 * HURRIED and loading < (1 - SHORT_SHARE) * spent

    def _short(self, n: int) -> list[ScriptStep]:
        """The short script of that number: by turns the next small one, and one that is drawn."""
        if self.small and n % 2:
            return self.small.pop()
        drawn = random.Random(f"{self.seed}/short/{n}")
        # With a number of scripts the search is exact: one command after another, where the implementation allows it.
        hurried = n % HURRIED == 0 and (self.bounds.scripts is None or not self.system.exact)
        longest = self.bounds.steps or SHORT_STEPS
        return max(
            (
                drawn_script(self.system.can, drawn, drawn.randint(1, longest), hurried=hurried)
                for _ in range(CANDIDATES)
            ),
            key=self.covered.brings,
        )

    def _attempt(self, script: Sequence[ScriptStep]) -> DrivenRun:
        """Run a script, and make it short if it violates something new. Returns the run."""
        run, violations = self.execute(script)
        if len(run.steps) <= SHORT_STEPS:
            self.covered.add(run.steps)
        new = next((p for p in violations if p not in self.witnesses), None)
        if new is not None:
            self._more_time()
            self.shortened(self._keep(new, violations, run))
            if not self.bounds.first:
                self._same_cause(self.witnesses[new])
        return run

    def _same_cause(self, witness: Witness) -> None:
        """What else a shortest script violates is most likely the same mistake, and needs no script of its own."""
        run, violations = self.execute(witness.run.steps)
        if witness.property not in violations:
            return
        for property in violations.keys() - self.witnesses.keys():
            self.repeated(self._keep(property, violations, run))

    def _more_time(self) -> None:
        """What was found shall also be made short: as much time again, and not more than twice in all."""
        now = time.monotonic()
        more = now + SHORTENING * self.bounds.seconds
        self.until = min(self._latest, max(self.until, more))

    def _keep(self, property: str, violations: Mapping[str, Finding], run: DrivenRun) -> Witness:
        """Make this run the witness of a property."""
        kept = Witness(property=property, finding=violations[property], run=run)
        self.witnesses[property] = kept
        self.kept_seconds = self.last_seconds
        return kept

    def shortened(self, witness: Witness) -> None:
        """Make the script of a witness short, and see how often the violation repeats.

        One that does not come again with the same script cannot be made short: its history is the evidence.
        """
        self.witnesses[witness.property] = witness
        try:
            self.repeated(witness)
            if witness.again:
                witness = self.drawn_shorter(self.plainer(self.halved(witness)))
                witness = self.renamed(witness)
        finally:
            witness = self.witnesses[witness.property]
            if witness.runs < CONFIRM:
                # A few runs more, even if the time is over: how often it repeats is part of the finding.
                each = max(self.last_seconds, self.kept_seconds)
                # A machine may stand still for a moment.
                least = CONFIRM_SHARE * self.bounds.seconds
                more = time.monotonic() + max(each * (CONFIRM + 1), least)
                self.until = max(self.until, min(more, self._latest))
                with contextlib.suppress(_OutOfTime):
                    self.repeated(witness)

    def repeated(self, witness: Witness) -> None:
        """Run the script of a witness again, to see how often the property is violated."""
        while witness.runs < CONFIRM:
            run, violations = self.execute(witness.run.steps, witness.property)
            came = witness.property in violations
            if (
                not came
                and len(run.steps) < len(witness.run.steps)
                and time.monotonic() > self.until
            ):
                raise _OutOfTime  # the clock cut it short, so it says nothing
            witness.runs += 1
            witness.again += came

    def halved(self, witness: Witness) -> Witness:
        """Leave out halves, quarters, single steps as long as the violation stays."""
        steps = list(witness.run.steps)
        size = max(1, len(steps) // 2)
        while size:
            at = len(steps) - size
            while at >= 0:
                self.on_progress(f"shortening for {witness.property}", self.outcome.scripts)
                run, violations = self.execute(steps[:at] + steps[at + size :], witness.property)
                if witness.property in violations:
                    witness = self._keep(witness.property, violations, run)
                    steps = list(run.steps)
                    at = min(at, len(steps))
                at -= size
            size //= 2
        return witness

    def drawn_shorter(self, witness: Witness) -> Witness:
        """Draw scripts that are shorter: there may be one that leaving out steps does not lead to."""
        drawn = random.Random(f"{self.seed}/shorter/{witness.property}")
        allowed = time.monotonic() + SHORTER_SHARE * (self.until - time.monotonic())
        for _ in range(SHORTER):
            if len(witness.run.steps) <= SHORTER_THAN or time.monotonic() > allowed:
                break
            steps = drawn.randint(2, len(witness.run.steps) - 1)
            run, violations = self.execute(
                drawn_script(self.system.can, drawn, steps), witness.property
            )
            if witness.property in violations:
                witness = self._keep(witness.property, violations, run)
                witness = self.plainer(self.halved(witness))
        return witness

    def renamed(self, witness: Witness) -> Witness:
        """Number channels, consumers and messages in the order in which they occur, if the violation stays."""
        run, violations = self.execute(_renamed(witness.run.steps), witness.property)
        if witness.property in violations and len(run.steps) == len(witness.run.steps):
            return self._keep(witness.property, violations, run)
        return witness

    def plainer(self, witness: Witness) -> Witness:
        """Take refinements of single steps away as long as the violation stays."""
        steps = list(witness.run.steps)
        for at, step in enumerate(steps):
            for plain in _plainer(step):
                tried = [*steps[:at], plain, *steps[at + 1 :]]
                run, violations = self.execute(tried, witness.property)
                if witness.property in violations and len(run.steps) == len(steps):
                    witness = self._keep(witness.property, violations, run)
                    steps[at] = plain
        return witness

    def finished(self) -> SearchOutcome:
        """The outcome with the findings and profiles of all runs."""
        out = self.outcome
        out.witnesses = list(self.witnesses.values())
        shortest = {w.property: w.finding for w in out.witnesses}
        for form in self.profile.properties:
            tally = self.tallies[id(form)]
            if form.id in shortest:
                tally.explanation, tally.witness = (
                    shortest[form.id].explanation,
                    shortest[form.id].witness,
                )
            out.findings.append(tally.finding(form.id, out.name))
        if ANSWERS in shortest:
            out.findings.insert(0, msgspec.structs.replace(shortest[ANSWERS], subject=out.name))
        for name, profile in black_box_profiles().items():
            verdicts = {p.id: self.tallies[id(p)].verdict for p in profile.properties}
            out.profiles[name] = [p for p, v in verdicts.items() if v is Verdict.VIOLATED]
            out.untested[name] = [p for p, v in verdicts.items() if v is Verdict.INCONCLUSIVE]
            seen = Verdict.OK in verdicts.values() and profile.core.isdisjoint(out.untested[name])
            if seen and profile.needs <= self.system.can:
                out.tested.append(name)
        return out


def _plainer(step: ScriptStep) -> list[ScriptStep]:
    """The same step with one of its refinements taken away."""
    return [
        msgspec.structs.replace(step, **{name: plain})
        for name, plain in (
            ("wait", True),
            ("every", False),
            ("multiple", False),
            ("autoack", False),
            ("exclusive", False),
            ("cprio", None),
            ("prio", None),
            ("key", ""),
            ("n", 1),
        )
        if getattr(step, name) != plain
    ]


def _renamed(steps: Sequence[ScriptStep]) -> list[ScriptStep]:
    """The same steps with channels, consumers and messages numbered in the order in which they occur."""
    channels: dict[int, int] = {}
    tags, messages = {"": ""}, {"": ""}
    out = []
    bare = "tx-begin" not in {step.op for step in steps}  # then it is no matter where one publishes
    for step in steps:
        publishes = step.op == "publish"
        ch = 1 if publishes and bare else channels.setdefault(step.ch, len(channels) + 1)
        ctag = tags.setdefault(step.ctag, f"c{len(tags)}")
        m = messages.setdefault(step.m, f"m{len(messages) - 1}")
        out.append(msgspec.structs.replace(step, ch=ch, ctag=ctag, m=m))
    return out


def search(
    system: System,
    profile: Profile,
    bounds: SearchBounds | None = None,
    seed: int | None = None,
    on_progress: SearchProgress = lambda what, scripts: None,
) -> SearchOutcome:
    """Search for violations within bounds. The system is ended in any case."""
    chance = random.randrange(2**31) if seed is None else seed
    return _ViolationSearch(system, profile, bounds or SearchBounds(), chance, on_progress).run()
