"""Findings on the histories of one implementation, under every profile."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from seriatim_models.conformance.driving import DrivenRun
from seriatim_models.conformance.meanings import declared_profile
from seriatim_models.conformance.profiles import PROFILES, Profile
from seriatim_models.conformance.system import Declaring
from seriatim_models.history.event import Event
from seriatim_models.properties import WHITEBOX
from seriatim_models.properties.base import AnyProperty, Finding, Verdict
from seriatim_models.properties.standing import confirmed

ANSWERS = "answers"
"""Stands for a property's id where an implementation broke the protocol: it has to answer what it is asked."""

_WHITEBOX = frozenset(p.id for p in WHITEBOX)


def black_box_profiles() -> dict[str, Profile]:
    """The profiles that apply to a client's recording."""
    return {
        id: profile
        for id, profile in PROFILES.items()
        if not all(p.id in _WHITEBOX for p in profile.properties)
    }


def default_profile(system: Declaring) -> Profile:
    """What a system is held to where no profile is named: every promise, or those of a log, as it declares them."""
    profile = PROFILES["kafka" if "read" in system.can else "any"]
    return declared_profile(system.means, profile) if system.means else profile


def judged(run: DrivenRun, properties: Iterable[AnyProperty]) -> list[Finding]:
    """The findings on one run; if a fault ended it, that comes first."""
    findings = [confirmed(p, p.check(run.events)) for p in properties]
    if run.fault:
        findings.insert(
            0,
            Finding(
                property=ANSWERS,
                verdict=Verdict.VIOLATED,
                n_tested=1,
                n_violations=1,
                explanation=run.why,
            ),
        )
    return findings


class FindingTally(msgspec.Struct):
    """One property over all runs: counts, and the violation shown, if there is one."""

    verdict: Verdict = Verdict.INCONCLUSIVE
    n_tested: int = 0
    n_untestable: int = 0
    n_violations: int = 0
    explanation: str = ""
    witness: list[Event] = []

    def add(self, finding: Finding) -> None:
        """Add the finding on one run."""
        self.n_tested += finding.n_tested
        self.n_untestable += finding.n_untestable
        self.n_violations += finding.n_violations
        if finding.verdict is Verdict.VIOLATED:
            self.verdict = Verdict.VIOLATED
            shorter = not self.witness or len(finding.witness) <= len(self.witness)
            if not self.explanation or shorter:
                self.explanation, self.witness = finding.explanation, finding.witness
        elif finding.verdict is Verdict.OK and self.verdict is Verdict.INCONCLUSIVE:
            self.verdict = Verdict.OK

    def finding(self, property: str, subject: str) -> Finding:
        """The finding over all runs."""
        return Finding(
            property=property,
            verdict=self.verdict,
            n_tested=self.n_tested,
            n_untestable=self.n_untestable,
            n_violations=self.n_violations,
            subject=subject,
            explanation=self.explanation,
            witness=self.witness,
        )
