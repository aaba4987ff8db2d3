"""Search for scripts in which an implementation violates a property, and shorten each.

Hypothesis generates scripts and shrinks the first with a violation; then steps are left out as long as it stays.
Then the search goes on for properties not yet violated, until the time or the number of scripts is over.

What is rare does not show in short scripts, however many. So if these find nothing, the rest of the time goes to
load: scripts that grow as long as the time allows, by turns with and without waiting between the commands.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec
from hypothesis import HealthCheck, Phase, errors, given, seed, settings

from seriatim_models.conformance.driving import DrivenRun, drive
from seriatim_models.conformance.judging import ANSWERS, FindingTally, black_box_profiles, judged
from seriatim_models.conformance.profile_consistency import forms
from seriatim_models.conformance.profiles import Profile
from seriatim_models.conformance.script import STEPS_MAX, ScriptStep
from seriatim_models.conformance.system import System
from seriatim_models.conformance.workloads import load, scripts
from seriatim_models.properties.base import Finding, Verdict

QUICK = 0.05
"""Seconds of a script, above which Hypothesis does not shrink."""
CONFIRM = 3
"""How often a shortest script is run again, to see how often the violation repeats."""
SHORT_SCRIPTS, SHORT_STEPS = 300, 30
"""How many scripts come before the load, and how long they are, unless bounds say otherwise."""
SHORT_SHARE = 0.5
"""What part of the time they may take."""
LOAD_STEPS = 250
"""Steps of the first script of the load. Each is twice as long as the one before it, as the time allows."""
LOAD_SHARE = 0.25
"""What part of the time that is left one of them may take."""


class SearchBounds(msgspec.Struct, frozen=True, kw_only=True):
    """Where a search ends, whatever the implementation does."""

    seconds: float = 30.0
    """At most twice that, if something was found that has to be made short."""
    scripts: int | None = None
    """None: as many as the time allows, `SHORT_SCRIPTS` short ones and then the load."""
    steps: int | None = None
    """None: `SHORT_STEPS` of a short script, and as many as the time allows of one of the load."""
    first: bool = False
    """Whether the first property that is violated ends the search, as soon as its script is short."""

    @property
    def short_scripts(self) -> int:
        """How many scripts are drawn by Hypothesis at most."""
        return SHORT_SCRIPTS if self.scripts is None else min(self.scripts, SHORT_SCRIPTS)

    @property
    def loads(self) -> bool:
        """Whether there may be load after the short scripts."""
        return self.scripts is None or self.scripts > SHORT_SCRIPTS


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


class _OutOfTime(BaseException):
    """Not an Exception, or Hypothesis would take it for a finding."""


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
        self.until = self.begun + bounds.seconds * (SHORT_SHARE if bounds.loads else 1.0)
        self._latest = self.begun + 2 * bounds.seconds
        self.seed = chance
        self.forms = {id(p): p for p in forms((profile, *black_box_profiles().values()))}
        self.tallies = {key: FindingTally() for key in self.forms}
        self.witnesses: dict[str, Witness] = {}
        self.last_seconds = 0.0
        """How long the last script took."""
        self.outcome = SearchOutcome(name=system.name, profile=profile.id, seed=chance)

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
            finding = form.check(run.events)
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

    def quick(self) -> bool:
        """Whether Hypothesis may shrink first, which takes hundreds of runs. Others are shortened by halves alone."""
        spent = time.monotonic() - self.begun
        return self.outcome.scripts > 0 and spent / self.outcome.scripts < QUICK

    def run(self) -> SearchOutcome:
        """Search until a bound is reached."""
        try:
            self.outcome.ended = self._phase(self.short)
            if self.bounds.loads and not self.witnesses:
                self.until = self.begun + self.bounds.seconds
                self.outcome.ended = self._phase(self.load)
        finally:
            self.system.end()
        self.outcome.seconds = time.monotonic() - self.begun
        return self.finished()

    def _phase(self, search: Callable[[], None]) -> str:
        """Search in one way; returns what ended it."""
        try:
            search()
        except _OutOfTime:
            return "time"
        return "scripts"

    def short(self) -> None:
        """Search with short scripts, until all were run."""
        self.execute([])  # how long the least script takes
        round = 0
        while self.outcome.scripts < self.bounds.short_scripts:
            witness = self.one(self.seed + round)
            if witness is None:
                return
            round += 1
            self.shortened(witness)
            if self.bounds.first:
                return

    def load(self) -> None:
        """Search with long scripts, until all were run."""
        length = min(LOAD_STEPS, self.bounds.steps or STEPS_MAX)
        number = 0
        while self.bounds.scripts is None or self.outcome.scripts < self.bounds.scripts:
            number += 1
            drawn = random.Random(f"{self.seed}/load/{number}")
            begun = time.monotonic()
            run, violations = self.execute(
                load(self.system.can, drawn, length, hurried=number % 2 == 0)
            )
            new = next((p for p in violations if p not in self.witnesses), None)
            if new is not None:
                self._more_time()
                witness = self._keep(new, violations, run)
                self.shortened(witness)
                if self.bounds.first:
                    return
            now = time.monotonic()
            if number % 2 == 0 and 2 * (now - begun) < LOAD_SHARE * (self.until - now):
                length = min(2 * length, self.bounds.steps or STEPS_MAX)

    def _more_time(self) -> None:
        """What was found shall also be made short: as much time again, and not more than twice in all."""
        now = time.monotonic()
        self.until = min(self._latest, max(self.until, now + self.bounds.seconds))

    def one(self, chance: int) -> Witness | None:
        """The first violation of a property not violated before, shrunk by Hypothesis."""
        best: list[Witness] = []
        known = set(self.witnesses)

        @seed(chance)
        @settings(
            max_examples=max(1, self.bounds.short_scripts - self.outcome.scripts),
            database=None,
            deadline=None,
            report_multiple_bugs=False,
            phases=[Phase.generate, Phase.shrink] if self.quick() else [Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(
            scripts(
                self.system.can,
                steps=self.bounds.steps or SHORT_STEPS,
                exact=self.system.exact,
            )
        )
        def attempt(steps: list[ScriptStep]) -> None:
            run, violations = self.execute(steps)
            target = (
                best[0].property if best else next((p for p in violations if p not in known), None)
            )
            if target is None or target not in violations:
                return
            if not best:
                self._more_time()
            witness = Witness(property=target, finding=violations[target], run=run)
            if not best or len(run.steps) <= len(best[0].run.steps):
                best[:] = [witness]
            raise _ViolationFound

        try:
            attempt()
        except (_ViolationFound, errors.Flaky, errors.FlakyFailure):
            pass
        except _OutOfTime:
            if not best:
                raise
            self.witnesses[best[0].property] = best[0]
            raise
        return best[0] if best else None

    def _keep(self, property: str, violations: Mapping[str, Finding], run: DrivenRun) -> Witness:
        """Make this run the witness of a property."""
        kept = Witness(property=property, finding=violations[property], run=run)
        self.witnesses[property] = kept
        return kept

    def shortened(self, witness: Witness) -> None:
        """Make the script of a witness short, and see how often the violation repeats.

        One that does not come again with the same script cannot be made short: its history is the evidence.
        """
        self.witnesses[witness.property] = witness
        try:
            self.repeated(witness)
            if witness.again:
                witness = self.plainer(self.halved(witness))
        finally:
            witness = self.witnesses[witness.property]
            if witness.runs < CONFIRM:
                # A few runs more, even if the time is over: how often it repeats is part of the finding.
                self.until = max(self.until, time.monotonic() + self.last_seconds * (CONFIRM + 1))
                with contextlib.suppress(_OutOfTime):
                    self.repeated(witness)

    def repeated(self, witness: Witness) -> None:
        """Run the script of a witness again, to see how often the property is violated."""
        while witness.runs < CONFIRM:
            _, violations = self.execute(witness.run.steps, witness.property)
            witness.runs += 1
            witness.again += witness.property in violations

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
            if Verdict.OK in verdicts.values() and profile.core.isdisjoint(out.untested[name]):
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
        )
        if getattr(step, name) != plain
    ]


class _ViolationFound(Exception):
    """Raised so that Hypothesis keeps and shrinks a script."""


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
