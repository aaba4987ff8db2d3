"""Search for scripts in which an implementation violates a property, and shorten each.

Hypothesis generates scripts and shrinks the first with a violation; then steps are left out as long as it stays.
Then the search goes on for properties not yet violated, until the time or the number of scripts is over.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec
from hypothesis import HealthCheck, Phase, errors, given, seed, settings

from seriatim_models.conformance.driving import DrivenRun, drive
from seriatim_models.conformance.judging import ANSWERS, FindingTally, black_box_profiles, judged
from seriatim_models.conformance.profile_consistency import forms
from seriatim_models.conformance.profiles import Profile
from seriatim_models.conformance.script import ScriptStep
from seriatim_models.conformance.system import System
from seriatim_models.conformance.workloads import scripts
from seriatim_models.properties.base import Finding, Verdict

QUICK = 0.05
"""Seconds of a script, above which Hypothesis does not shrink."""
CONFIRM = 3
"""How often a shortest script is run again, to see how often the violation repeats."""


class SearchBounds(msgspec.Struct, frozen=True, kw_only=True):
    """Where a search ends, whatever the implementation does."""

    seconds: float = 30.0
    """At most twice that, if something was found that has to be made short."""
    scripts: int = 300
    steps: int = 30


class Witness(msgspec.Struct, kw_only=True):
    """The shortest script found for one property."""

    property: str
    finding: Finding
    run: DrivenRun
    again: int = 0
    """Of `CONFIRM` further runs, in how many the property was violated."""


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
    """Profiles of which some property was tested and held."""
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
        self.until = self.begun + bounds.seconds
        self._latest = self.until + bounds.seconds
        self.seed = chance
        self.forms = {id(p): p for p in forms((profile, *black_box_profiles().values()))}
        self.tallies = {key: FindingTally() for key in self.forms}
        self.witnesses: dict[str, Witness] = {}
        self.outcome = SearchOutcome(name=system.name, profile=profile.id, seed=chance)

    def execute(self, steps: Sequence[ScriptStep]) -> tuple[DrivenRun, dict[str, Finding]]:
        """Run and check; returns the violations by property, under the profile asked for."""
        if time.monotonic() > self.until:
            raise _OutOfTime
        run = drive(self.system, steps, until=self.until)
        out = self.outcome
        out.scripts += 1
        out.steps += len(run.steps)
        out.events += len(run.events)
        violations: dict[str, Finding] = {}
        own = {id(p) for p in self.profile.properties}
        for key, form in self.forms.items():
            finding = form.check(run.events)
            self.tallies[key].add(finding)
            if key in own and finding.verdict is Verdict.VIOLATED:
                violations[form.id] = finding
        if run.fault:
            violations[ANSWERS] = judged(run, ())[0]
        if not violations and (out.last is None or len(run.events) > len(out.last.events)):
            out.last = run
        self.on_progress("searching", out.scripts)
        return run, violations

    def quick(self) -> bool:
        """Whether Hypothesis may shrink first, which takes hundreds of runs. Others are shortened by halves alone."""
        spent = time.monotonic() - self.begun
        return self.outcome.scripts > 0 and spent / self.outcome.scripts < QUICK

    def run(self) -> SearchOutcome:
        """Search until a bound is reached."""
        begun = time.monotonic()
        round = 0
        try:
            self.execute([])  # how long the least script takes
            while self.outcome.scripts < self.bounds.scripts:
                witness = self.one(self.seed + round)
                if witness is None:
                    self.outcome.ended = "scripts"
                    break
                round += 1
                self.witnesses[witness.property] = self.shortened(witness)
            self.outcome.ended = self.outcome.ended or "scripts"
        except _OutOfTime:
            self.outcome.ended = "time"
        finally:
            self.system.end()
        self.outcome.seconds = time.monotonic() - begun
        return self.finished()

    def one(self, chance: int) -> Witness | None:
        """The first violation of a property not violated before, shrunk by Hypothesis."""
        best: list[Witness] = []
        known = set(self.witnesses)

        @seed(chance)
        @settings(
            max_examples=max(1, self.bounds.scripts - self.outcome.scripts),
            database=None,
            deadline=None,
            report_multiple_bugs=False,
            phases=[Phase.generate, Phase.shrink] if self.quick() else [Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(scripts(self.system.can, steps=self.bounds.steps, exact=self.system.exact))
        def attempt(steps: list[ScriptStep]) -> None:
            run, violations = self.execute(steps)
            target = (
                best[0].property if best else next((p for p in violations if p not in known), None)
            )
            if target is None or target not in violations:
                return
            if not best:
                # What was found shall also be made short: as much time again, and not more than twice in all.
                now = time.monotonic()
                self.until = min(self._latest, max(self.until, now + self.bounds.seconds))
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

    def shortened(self, witness: Witness) -> Witness:
        """Leave out halves, quarters, single steps as long as the violation stays; then see how often it repeats."""
        self.witnesses[witness.property] = witness
        steps = list(witness.run.steps)
        size = max(1, len(steps) // 2)
        while size:
            at = len(steps) - size
            while at >= 0:
                self.on_progress(f"shortening for {witness.property}", self.outcome.scripts)
                run, violations = self.execute(steps[:at] + steps[at + size :])
                if witness.property in violations:
                    witness = self._keep(witness.property, violations, run)
                    steps = list(run.steps)
                    at = min(at, len(steps))
                at -= size
            size //= 2
        for at, step in enumerate(steps):
            for plainer in _plainer(step):
                run, violations = self.execute([*steps[:at], plainer, *steps[at + 1 :]])
                if witness.property in violations and len(run.steps) == len(steps):
                    witness = self._keep(witness.property, violations, run)
                    steps[at] = plainer
        for _ in range(CONFIRM):
            _, violations = self.execute(steps)
            witness.again += witness.property in violations
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
            if Verdict.OK in verdicts.values():
                out.tested.append(name)
            out.untested[name] = [p for p, v in verdicts.items() if v is Verdict.INCONCLUSIVE]
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
