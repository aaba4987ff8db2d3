"""Hold your own queue to a profile from your own tests.

    from seriatim_models.conformance.testing import Conformance

    class TestMine(Conformance):
        profile = "strict-qpid"

        def implementation(self):
            return Mine()

pytest collects two tests. The object lives in the test's process, made anew for each script; `spec/conform/README.md`
lists the methods it may have. A failure shows the shortest script, the property and the seed.
"""

from __future__ import annotations

from typing import ClassVar

from seriatim_models.conformance.local import Implementation, Local
from seriatim_models.conformance.patience import limited
from seriatim_models.conformance.profiles import PROFILES
from seriatim_models.conformance.protocol import abilities
from seriatim_models.conformance.search import SearchBounds, SearchOutcome, search
from seriatim_models.conformance.selftest import self_test
from seriatim_models.properties.base import Verdict

SEED = 1


class Conformance:
    """Base of a test class: subclass it under a name that pytest collects and define `implementation`."""

    profile: ClassVar[str] = "any"
    bounds: ClassVar[SearchBounds] = SearchBounds(seconds=10.0, scripts=100, steps=30)
    seed: ClassVar[int | None] = SEED
    """None draws other scripts each time; the failure names the seed."""
    can: ClassVar[tuple[str, ...]] = ()
    """What it can do beside what its methods and its own `can` say, such as ``held-groups``."""

    def implementation(self) -> Implementation:
        """A new one, empty."""
        raise NotImplementedError(f"{type(self).__name__} must define `implementation`")

    def _system(self) -> Local:
        system = Local(self.implementation)
        system.can = abilities({*system.can, *self.can})
        return system

    def test_it_answers_as_the_protocol_says(self) -> None:
        """The self-test passes."""
        with limited(self.bounds.seconds, "the self-test"):
            system = self._system()
            wrong = [f"{c.sentence}: {c.why}" for c in self_test(system) if c.why and not c.skipped]
            system.end()
        assert not wrong, "\n".join(wrong)

    def test_it_keeps_its_profile(self) -> None:
        """No script violates a property of the profile, and some property was tested."""
        with limited(3 * self.bounds.seconds, "all scripts"):
            system = self._system()
            outcome = search(system, PROFILES[self.profile], self.bounds, self.seed)
        assert not outcome.witnesses, failure(outcome)
        verdicts = {finding.verdict for finding in outcome.findings}
        assert Verdict.OK in verdicts, f"{outcome.scripts} scripts tested nothing of {self.profile}"


def failure(outcome: SearchOutcome) -> str:
    """The text that a failed test shows."""
    lines = [f"{outcome.name} does not keep {outcome.profile} (seed {outcome.seed})"]
    for witness in outcome.witnesses:
        lines += [f"{witness.property}: {witness.finding.explanation}", "the shortest way:"]
        lines += [f"  {n:2}  {step}" for n, step in enumerate(witness.run.steps, 1)]
    return "\n".join(lines)
