"""Which systems' profiles a recording is consistent with, and what rules out the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from seriatim_models.conformance.profiles import ORACLE, SYSTEMS, Profile
from seriatim_models.properties.base import AnyProperty, Finding, Verdict
from seriatim_models.properties.causes import causes


class ProfileConsistency(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a recording is consistent with a profile: `ok` if it is, `violated` if that is ruled out, and
    `inconclusive` if not enough was seen: none of its promises was broken, but a core one had no case.
    """

    profile: str
    title: str
    subject: str
    """The recording."""
    verdict: Verdict
    broken: list[Finding]
    """What rules it out, the first violation first."""
    tested: dict[str, tuple[int, int]]
    """Properties that held: in how many cases, and in how many more it was left open."""
    untested: list[str]
    """Properties of which the recording has no case."""
    missing: list[str] = []
    """Those of them that are core promises of the profile: without a case of each nothing is said."""
    takes: str = ""
    """What must be recorded or driven for a case of the first of these."""

    @property
    def why(self) -> str:
        """The reason in a sentence."""
        if self.broken:
            first, *others = causes(self.broken)
            also = "".join(f"; {_named(group)}" for group in others)
            return f"{_named(first)}: {first[0].explanation}{also}"
        if self.missing:
            return f"no case of {', '.join(self.missing)}: {self.missing[0]} takes {self.takes}"
        open_ = f", no case of {', '.join(self.untested)}" if self.untested else ""
        held = [
            id if few >= open_cases else f"{id} ({few:,} of {few + open_cases:,})"
            for id, (few, open_cases) in self.tested.items()
        ]
        return f"{', '.join(held) or 'nothing'} held{open_}"


def _named(cause: Sequence[Finding]) -> str:
    """The property that shows a cause, how often, and those that see the same event."""
    first, *others = cause
    times = f" ({first.n_violations:,} times)" if first.n_violations > 1 else ""
    same = f" (so do {', '.join(f.property for f in others)})" if others else ""
    return f"{first.property}{times}{same}"


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
        broken = [f for cause in causes(mine) for f in cause]
        tested = {f.property: (f.n_tested, f.n_untestable) for f in mine if f.verdict is Verdict.OK}
        untested = [f.property for f in mine if f.verdict is Verdict.INCONCLUSIVE]
        missing = [p for p in profile.properties if p.id in untested and p.id in profile.core]
        verdict = Verdict.INCONCLUSIVE if missing or not tested else Verdict.OK
        out.append(
            ProfileConsistency(
                profile=profile.id,
                title=profile.title,
                subject=mine[0].subject if mine else "",
                verdict=Verdict.VIOLATED if broken else verdict,
                broken=broken,
                tested=tested,
                untested=untested,
                missing=[p.id for p in missing],
                takes=missing[0].case if missing else "",
            )
        )
    return out


def where_nothing_is_declared(
    findings: Sequence[Finding], compared: Sequence[ProfileConsistency]
) -> list[Finding]:
    """The findings on one recording whose system nobody has named.

    Without delivery tags nothing shows what kind of system it is. What some system of those that have none documents is
    then no violation but open: it takes a profile to say more. `compared` are the recording's profiles.
    A property of the user's own stands, since no profile can allow what it forbids.
    """
    tagged = any(
        (f.property == "P8" and f.n_tested + f.n_untestable)
        or any(e.dtag is not None for e in f.witness)
        for f in findings
    )
    allowing = [
        c.profile
        for c in compared
        if c.verdict is not Verdict.VIOLATED and not _promises(c.profile, "P8")
    ]
    if tagged:
        return list(findings)
    ours = {p.id for p in ORACLE}
    out = []
    for f in findings:
        allow = [name for name in allowing if not _is_of_a_log(f) or _promises(name, f.property)]
        if f.verdict is Verdict.VIOLATED and f.property in ours and allow:
            why = (
                f"{f.explanation}: {', '.join(allow)} would allow it; name the system by --profile"
            )
            f = msgspec.structs.replace(
                f, verdict=Verdict.INCONCLUSIVE, explanation=why, n_violations=0
            )
        out.append(f)
    return out


def _is_of_a_log(finding: Finding) -> bool:
    """Whether a violation is of the positions of a log: those that say that they have none do not allow it."""
    return finding.property == "P15" and any(
        e.ev in ("commit", "seek") or (e.part is not None and e.pos is not None)
        for e in finding.witness
    )


def _promises(profile: str, property: str) -> bool:
    """Whether a profile promises a property."""
    return any(promise.property == property for promise in SYSTEMS[profile].promises)
