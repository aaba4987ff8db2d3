"""What an audit found, whichever engine made it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from seriatim_models.history import Event, Rejected
from seriatim_models.history.event import GAP
from seriatim_models.history.unrecorded import kinds_missing
from seriatim_models.pipeline.audit.runs import FileCount, Plan
from seriatim_models.properties.base import (
    AnyProperty,
    Finding,
    Property,
    Verdict,
    left_open,
    undecided,
)
from seriatim_models.properties.standing import confirmed


class RunStatistics(msgspec.Struct):
    """What was in one run."""

    run: str
    events: int = 0
    gaps: int = 0
    """Places where lines were lost."""
    by_event: dict[str, int] = {}
    unrecorded: list[str] = []
    """Kinds of events that one of its recorders never writes."""

    def __add__(self, other: RunStatistics) -> RunStatistics:
        """Of two parts of one run."""
        names = Counter(self.by_event) + Counter(other.by_event)
        return RunStatistics(
            self.run,
            self.events + other.events,
            self.gaps + other.gaps,
            dict(names),
            sorted({*self.unrecorded, *other.unrecorded}),
        )


class JudgedRun(NamedTuple):
    """What a run comes to, whose files were read whole."""

    findings: list[Finding]
    statistics: RunStatistics
    files: list[FileCount]


QUARANTINE_KEPT = 10_000
"""Rejected lines of one source that a report holds; all are counted, and in the table of the Spark engine."""


class AuditReport(msgspec.Struct, kw_only=True):
    """The findings of an audit: one per run and property, in that order, with the run as its subject.

    `statistics` has the totals ``events``, ``rejected``, ``lines`` (header and blank lines included), ``header``,
    ``blank``, ``files``; `runs` and `files` say the same one by one.
    ``lines == header + blank + events + rejected``.
    `quarantine` has the rejected lines, the first `QUARANTINE_KEPT` of each source, and with line 0 every file (or rest
    of a file) that could not be read.
    """

    engine: str
    findings: list[Finding]
    quarantine: list[Rejected]
    statistics: dict[str, int]
    runs: list[RunStatistics]
    files: list[FileCount]

    @property
    def verdict(self) -> Verdict:
        """Violated if anything is; inconclusive if some run was not tested by any property; else ok."""
        if any(f.verdict is Verdict.VIOLATED for f in self.findings):
            return Verdict.VIOLATED
        tested = {f.subject for f in self.findings if f.verdict is Verdict.OK}
        return Verdict.OK if {f.subject for f in self.findings} == tested else Verdict.INCONCLUSIVE


def form(prop: AnyProperty) -> str:
    """In which form a property was judged, as ``key=value``; empty for one that has no other form.

    The keys are those of a profile (spec/HISTORY.md). ``within=null`` is P6 by the prefetch; P14's is in ns.
    """
    keys = sorted(
        k
        for k, v in vars(prop).items()
        if k not in Property.__annotations__ and (v is None or isinstance(v, int | float | str))
    )
    return ", ".join(f"{k}={msgspec.json.encode(vars(prop)[k]).decode()}" for k in keys)


def annotated(prop: AnyProperty, finding: Finding, run: RunStatistics) -> Finding:
    """The finding as the report shows it: its witness judged again, with its run, and with a word on lost lines."""
    finding = left_open(prop, confirmed(prop, finding), run.unrecorded)
    gaps = run.gaps
    why = finding.explanation
    if why and gaps:
        why += f" (lines of this recording were lost in {gaps} place{'s' if gaps > 1 else ''})"
    return msgspec.structs.replace(finding, subject=run.run, explanation=why)


def merged(findings: Sequence[Finding]) -> Finding:
    """One finding from those of the parts of a run that were judged apart."""
    if len(findings) == 1:
        return findings[0]
    violations = [(f.explanation, f.witness) for f in findings if f.verdict is Verdict.VIOLATED]
    found = Finding.of(
        findings[0].property,
        sum(f.n_tested for f in findings),
        violations,
        n_untestable=sum(f.n_untestable for f in findings),
        n_violations=sum(f.n_violations for f in findings),
    )
    open_ = min((f for f in findings if f.decides), key=lambda f: f.explanation, default=None)
    if violations or open_ is None:
        return found
    why = open_.explanation.removesuffix(f"; {open_.decides}")
    return undecided(found, why, open_.decides)


def of_run(
    properties: Sequence[AnyProperty], judged: Mapping[int, Sequence[Finding]], run: RunStatistics
) -> list[Finding]:
    """The findings of a run as the report shows them, from those of its parts by number of the property."""
    return [
        annotated(p, merged(judged[n]) if n in judged else p.finish(p.begin()), run)
        for n, p in enumerate(properties)
    ]


def report(
    engine: str,
    plan: Plan,
    findings: list[Finding],
    quarantine: Iterable[Rejected],
    runs: Iterable[RunStatistics],
    files: Iterable[FileCount],
) -> AuditReport:
    """The report, in an order that does not depend on the engine.

    A planned run without events is reported only if its files held none at all; otherwise the events named other runs.
    """
    listed = sorted(files, key=lambda f: f.source)
    events = {f.source: f.events for f in listed}
    empty = {
        p.run
        for p in plan.runs
        if not any(events.get(s.path) for parts in p.recorders for s in parts)
    }
    shown = [r for r in runs if r.events or r.run in empty]
    names_shown = {r.run for r in shown}
    names = ("lines", "header", "blank", "events", "rejected")
    return AuditReport(
        engine=engine,
        findings=[f for f in findings if f.subject in names_shown],
        quarantine=sorted(quarantine, key=lambda r: (r.source, r.line, r.offset)),
        statistics={n: sum(getattr(f, n) for f in listed) for n in names} | {"files": len(listed)},
        runs=sorted(shown, key=lambda r: r.run),
        files=listed,
    )


def kinds(events: Iterable[Event]) -> Counter[str]:
    """How many events of each name there are; a place where lines were lost counts once, however long it is."""
    return Counter(e.ev for e in events if e.ev != GAP or not e.args.get("going_on"))


def count_events(statistics: RunStatistics, events: Sequence[Event]) -> None:
    """Add some events to a run's statistics."""
    count(statistics, kinds(events), GAP)
    if missing := kinds_missing(events):
        statistics.unrecorded = sorted(missing.union(statistics.unrecorded))


def count(statistics: RunStatistics, names: Counter[str], gap: str) -> None:
    """Add counts of event names to a run's statistics."""
    gaps = names.pop(gap, 0)
    statistics.gaps += gaps
    statistics.events += names.total()
    for name, n in names.items():
        statistics.by_event[name] = statistics.by_event.get(name, 0) + n
