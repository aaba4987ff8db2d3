"""An audit for a terminal: what is violated first, with what shows it; then what was seen, in a line a recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from seriatim_models.conformance.profile_consistency import ProfileConsistency
from seriatim_models.conformance.profiles import ORACLE
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.causes import causes
from seriatim_models.properties.intervals import Interval, drawn, intervals
from seriatim_models.report.model import AuditRun
from seriatim_models.report.terminal import (
    STYLES,
    indented,
    quantity,
    table,
    titled,
    verdict_text,
)
from seriatim_models.report.visible import in_a_line

BARS_MAX = 16  # bars of one finding; a violation has a handful
BARS_WIDTH = 60  # columns of a bar, where there is room for its label beside it
BARS_LEAST = 16

_CASES = {p.id: p.case for p in ORACLE}


def audit_parts(
    audit: AuditRun, sentences: dict[str, str], verbose: bool, more: str = "-v"
) -> Iterator[RenderableType]:
    """What was left out, each violation, what each recording had a case of, and the profiles.

    `sentences` are those of the properties, by id. `verbose` has a row for each property and each profile; `more` is
    what a reader types for that.
    """
    facts = f"{audit.engine}, profile {audit.profile}, {quantity(audit.events, 'event')}"
    title = f"Audit of {', '.join(map(in_a_line, audit.paths))} ({facts})"
    yield indented(Text(title, style="bold"), 0)
    yield from _quarantine(audit)
    for cause in causes(audit.findings):
        yield Text()
        yield from violation(cause, sentences)
    profiles = _standings_by_recording(audit)
    explained: set[str] = set()
    for recording, findings in audit.by_recording().items():
        yield Text()
        name = in_a_line(recording)
        if verbose:
            yield titled(name, property_table(findings, sentences, explained))
            if recording in profiles:
                yield titled(f"{name} as a system", _profile_table(profiles[recording]))
        else:
            yield from counts(name, findings, more)
            yield from _standing_lines(profiles.get(recording, []))


class Bars:
    """The witness as intervals, a line each, as wide as the terminal has room beside their labels."""

    def __init__(self, rows: Sequence[Interval]) -> None:
        self._rows = [msgspec.structs.replace(r, label=in_a_line(r.label)) for r in rows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        labels = max(len(line) for line in drawn(self._rows, 1).splitlines())
        width = min(BARS_WIDTH, max(BARS_LEAST, options.max_width - labels))
        yield Text(drawn(self._rows, width), no_wrap=True, overflow="ignore")


def violation(cause: Sequence[Finding], sentences: dict[str, str]) -> Iterator[RenderableType]:
    """One cause, by the property that shows it first; the others that find fault with the same event are named."""
    finding, *others = cause
    headline = Text.assemble(
        (f"{finding.property} violated", STYLES[Verdict.VIOLATED]),
        f" {finding.n_violations:,} times" if finding.n_violations > 1 else "",
        f" in {in_a_line(finding.subject)}" if finding.subject else "",
        f": {in_a_line(finding.explanation)}" if finding.explanation else "",
    )
    yield indented(headline, 0)
    if finding.property in sentences:
        yield indented(Text(sentences[finding.property], style="italic"))
    if others:
        yield indented(f"the same event violates {', '.join(f.property for f in others)}")
    if finding.witness and (rows := intervals(finding)[:BARS_MAX]):  # none if it takes no message
        yield indented(Bars(rows))  # type: ignore[arg-type]  # a renderable


def _standing_lines(profiles: Sequence[ProfileConsistency]) -> Iterator[RenderableType]:
    """As what system a recording could pass."""
    yield from profile_lines(
        [row.profile for row in profiles if row.verdict is Verdict.OK],
        {
            row.profile: [row.broken[0].property]
            for row in profiles
            if row.verdict is Verdict.VIOLATED
        },
        [row.profile for row in profiles if row.verdict is Verdict.INCONCLUSIVE],
    )


def counts(name: str, findings: Sequence[Finding], more: str = "-v") -> Iterator[RenderableType]:
    """How many properties are violated, ok and without a case; what else left one open is said."""
    by_verdict = {v: [f for f in findings if f.verdict is v] for v in Verdict}
    silent = [f for f in by_verdict[Verdict.INCONCLUSIVE] if not f.explanation]
    numbers = Text(", ").join(
        Text.assemble((f"{count} {words}", STYLES[verdict] if count else ""))
        for count, words, verdict in (
            (len(by_verdict[Verdict.VIOLATED]), "violated", Verdict.VIOLATED),
            (len(by_verdict[Verdict.OK]), "ok", Verdict.OK),
            (len(silent), "not in this recording", Verdict.INCONCLUSIVE),
        )
        if count or verdict is Verdict.OK
    )
    named = Text.assemble((name, "bold"), ": ") if name else ""
    yield indented(Text.assemble(named, numbers, f"; {more} lists them"), 0)
    by_reason: dict[str, list[str]] = {}
    for finding in by_verdict[Verdict.INCONCLUSIVE]:
        if finding.explanation:
            by_reason.setdefault(finding.explanation, []).append(finding.property)
    for reason, properties in by_reason.items():
        yield indented(f"{', '.join(properties)} inconclusive: {in_a_line(reason)}")


def profile_lines(
    consistent: Sequence[str], ruled_out: Mapping[str, Sequence[str]], unseen: Sequence[str]
) -> Iterator[RenderableType]:
    """The profiles that what was seen is consistent with, those that properties rule out, and the others."""
    if consistent:
        yield indented(f"consistent with {', '.join(consistent)}")
    by_cause: dict[tuple[str, ...], list[str]] = {}
    for profile, properties in ruled_out.items():
        by_cause.setdefault(tuple(properties), []).append(profile)
    for cause, profiles in by_cause.items():
        rules = "rules" if len(cause) == 1 else "each rule"
        yield indented(f"{', '.join(cause)} {rules} out {', '.join(profiles)}")
    if unseen:
        yield indented(f"not enough seen to say of {', '.join(unseen)}")


def _standings_by_recording(audit: AuditRun) -> dict[str, list[ProfileConsistency]]:
    by_subject: dict[str, list[ProfileConsistency]] = {}
    for row in audit.standings:
        by_subject.setdefault(row.subject, []).append(row)
    return by_subject


def _why_open(finding: Finding) -> str:
    """Why a property is inconclusive: what would be a case, if nothing else is known."""
    if finding.verdict is not Verdict.INCONCLUSIVE:
        return ""
    case = _CASES.get(finding.property)
    return finding.explanation or (f"no case: it takes {case}" if case else "")


def property_table(
    findings: Sequence[Finding], sentences: dict[str, str], explained: set[str]
) -> Table:
    """A row for each property. One without a case says what would be one; a sentence stands where it is new."""
    made = table("property", "verdict", "tested", "", right=("tested",))
    made.columns[1].no_wrap = True
    for finding in findings:
        sentence = sentences.get(finding.property, "")
        shown = _why_open(finding) or ("" if sentence in explained else sentence)
        explained.add(shown)
        of = finding.n_tested + finding.n_untestable
        made.add_row(
            finding.property,
            verdict_text(finding.verdict),
            f"{finding.n_tested:,}" + (f" of {of:,}" if finding.n_untestable else ""),
            in_a_line(shown),
        )
    return made


CONSISTENCY = {
    Verdict.OK: "consistent",
    Verdict.VIOLATED: "ruled out",
    Verdict.INCONCLUSIVE: "not enough seen",
}


def _profile_table(rows: Sequence[ProfileConsistency]) -> Table:
    """Which profiles a recording is consistent with, and what rules out the others."""
    made = table("profile", "", "because")
    for row in rows:
        verdict = Text(CONSISTENCY[row.verdict], style=STYLES[row.verdict])
        made.add_row(row.profile, verdict, in_a_line(row.why))
    return made


def _quarantine(audit: AuditRun) -> Iterator[RenderableType]:
    if not audit.quarantined:
        return
    left = quantity(audit.quarantined, "line")
    yield Text(f"{left} left out of the audit, among them:", style="yellow")
    for line in audit.quarantine[:5]:
        where = f"{line.file}:{line.line}" if line.line else line.file  # 0: the whole file
        yield indented(in_a_line(f"{where}: {line.reason}"))
