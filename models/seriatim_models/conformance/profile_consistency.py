"""Which systems' profiles a recording is consistent with, and what rules out the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import msgspec

from seriatim_models.conformance.profiles import ORACLE, SYSTEMS, Profile
from seriatim_models.properties.base import AnyProperty, Finding, Verdict, undecided
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

    What a documented system allows is then no violation but open: it takes a profile to say more. Whether there are
    delivery tags shows which systems it may be. `compared` are the recording's profiles.
    A property of the user's own stands, since no profile can allow what it forbids.
    """
    tagged = any(
        (f.property == "P8" and f.n_tested + f.n_untestable)
        or any(e.dtag is not None for e in f.witness)
        for f in findings
    )
    kept = [
        SYSTEMS[c.profile]
        for c in compared
        if c.verdict is not Verdict.VIOLATED and _promises(SYSTEMS[c.profile], "P8") == tagged
    ]
    ruled_out = {c.profile: [f.property for f in c.broken] for c in compared if c.broken}
    return [_unless_allowed(f, kept, ruled_out) for f in findings]


def in_one_form(findings: Sequence[Finding]) -> list[ProfileConsistency]:
    """The consistency of one recording with each profile, where each property was judged in its default form alone.

    A profile that promises another form may be ruled out by what it allows, and never the other way round.
    """
    found = {f.property: f for f in findings}
    profiles = [
        replace(
            profile,
            properties=tuple(p for p in ORACLE if _promises(profile, p.id) and p.id in found),
        )
        for profile in SYSTEMS.values()
    ]
    judges = [p for p in ORACLE if p.id in found]
    return consistencies(judges, [found[p.id] for p in judges], profiles)


def where_nothing_is_named(
    findings: Sequence[Finding],
    profiles: Mapping[str, Sequence[str]],
    can: frozenset[str],
    amqp: bool,
) -> list[Finding]:
    """The findings on an implementation that was driven without a profile.

    `profiles` are all profiles, each with its properties that were violated, `can` what the implementation offers,
    `amqp` whether it speaks AMQP, by which it promises what that specification says.
    What it offers it declares (flags, limits, exclusive consumers), and no lease runs out while it is driven; so only
    order, and when something is delivered, may be as some system of its kind documents.
    """
    systems = [
        profile
        for name, violated in profiles.items()
        if not violated
        and (profile := SYSTEMS.get(name)) is not None
        and profile.needs <= can
        and (_promises(profile, "P8") or not amqp)
    ]
    ruled_out = {name: violated for name, violated in profiles.items() if name in SYSTEMS}
    return [
        _unless_allowed(f, systems, ruled_out) if f.property in NOT_OFFERED else f for f in findings
    ]


NOT_OFFERED = frozenset({"P4", "P5", "P6", "P14", "P20"})
"""Promises that no operation or field of a command shows: in which order, and when."""
SPOKEN = frozenset({"P10", "P11", "P22", "P23", "P25", "P26"})
"""Properties that only speak of what a recording itself declares: no silence of a profile takes that back, only its
promise in another form.
"""


def _unless_allowed(
    finding: Finding, kept: Sequence[Profile], ruled_out: Mapping[str, Sequence[str]]
) -> Finding:
    """The finding, inconclusive if one of the profiles that were kept allows what it shows.

    `ruled_out` are the others, each with the properties that were violated.
    """
    if finding.verdict is not Verdict.VIOLATED or finding.property not in _OURS:
        return finding
    allowing = [profile.id for profile in kept if _allows(profile, finding)]
    if not allowing:
        return finding
    stricter = [name for name, broken in ruled_out.items() if finding.property in broken]
    definite = f", {', '.join(stricter)} would not" if stricter else ""
    why = f"{finding.explanation}: {', '.join(allowing)} would allow it{definite}"
    return undecided(finding, why, "name the system by --profile")


_OURS = frozenset(p.id for p in ORACLE)


def _allows(profile: Profile, finding: Finding) -> bool:
    """Whether a system that keeps the profile may do what a violation shows."""
    if finding.property in SPOKEN:
        return _promises(profile, finding.property)
    if _is_of_a_log(finding):  # those that say that they have no positions do not allow it
        return _promises(profile, finding.property)
    if finding.property == "P14" and any(e.ev == "note" for e in finding.witness):
        # At rest no time passes: that none is promised allows nothing.
        polled = not any(e.ev == "consume" for e in finding.witness)
        return polled and any(s.property == "P14" and s.polls for s in profile.silent)
    return True


def _is_of_a_log(finding: Finding) -> bool:
    """Whether a violation is of the positions of a log."""
    return finding.property == "P15" and any(
        e.ev in ("commit", "seek") or (e.part is not None and e.pos is not None)
        for e in finding.witness
    )


def _promises(profile: Profile, property: str) -> bool:
    """Whether a profile promises a property."""
    return any(promise.property == property for promise in profile.promises)
