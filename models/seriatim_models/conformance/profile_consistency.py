"""Which systems' profiles a recording is consistent with, and what rules out the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from seriatim_models.conformance.profiles import SYSTEMS, Profile
from seriatim_models.properties.base import AnyProperty, Finding, Verdict


class ProfileConsistency(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a recording is consistent with a profile: `ok` if it is, `violated` if that is ruled out."""

    profile: str
    title: str
    subject: str
    """The recording."""
    verdict: Verdict
    broken: list[Finding]
    """What rules it out, the smallest witness first."""
    tested: dict[str, tuple[int, int]]
    """Properties that held: in how many cases, and in how many more it was left open."""
    untested: list[str]
    """Properties of which the recording has no case."""

    @property
    def why(self) -> str:
        """The reason in a sentence."""
        if self.broken:
            first = self.broken[0]
            times = f" ({first.n_violations:,} times)" if first.n_violations > 1 else ""
            also = (
                f"; also {', '.join(f.property for f in self.broken[1:])}"
                if self.broken[1:]
                else ""
            )
            return f"{first.property}{times}: {first.explanation}{also}"
        open_ = f", no case of {', '.join(self.untested)}" if self.untested else ""
        held = [
            id if few >= open_cases else f"{id} ({few:,} of {few + open_cases:,})"
            for id, (few, open_cases) in self.tested.items()
        ]
        return f"{', '.join(held) or 'nothing'} held{open_}"


def forms(profiles: Iterable[Profile]) -> list[AnyProperty]:
    """Every form of every property that some profile promises, once; see `consistencies`."""
    return list({id(p): p for profile in profiles for p in profile.properties}.values())


def consistencies(
    judges: Sequence[AnyProperty],
    findings: Sequence[Finding],
    profiles: Iterable[Profile] = tuple(SYSTEMS.values()),
) -> list[ProfileConsistency]:
    """The consistency of one recording with each profile, given the finding of each judge, in their order."""
    found = {id(judge): f for judge, f in zip(judges, findings, strict=True)}
    out = []
    for profile in profiles:
        mine = [found[id(p)] for p in profile.properties]
        broken = sorted(
            (f for f in mine if f.verdict is Verdict.VIOLATED),
            key=lambda f: (len(f.witness), int(f.property.removeprefix("P"))),
        )
        tested = {f.property: (f.n_tested, f.n_untestable) for f in mine if f.verdict is Verdict.OK}
        verdict = Verdict.OK if tested else Verdict.INCONCLUSIVE
        out.append(
            ProfileConsistency(
                profile=profile.id,
                title=profile.title,
                subject=mine[0].subject if mine else "",
                verdict=Verdict.VIOLATED if broken else verdict,
                broken=broken,
                tested=tested,
                untested=[f.property for f in mine if f.verdict is Verdict.INCONCLUSIVE],
            )
        )
    return out
