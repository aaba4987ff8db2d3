"""The local engine: one process, memory that grows with the summaries and not with the history.

A clean file is judged by columns (`seriatim_models.properties.columnar`),
all else event by event, with the same findings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from seriatim_models.history import Event, Rejected
from seriatim_models.history.event import GAP
from seriatim_models.history.reading import Reader
from seriatim_models.pipeline.audit import findings as found
from seriatim_models.pipeline.audit.runs import FileCount, Plan, fingerprint, read
from seriatim_models.properties.base import AnyProperty, Finding
from seriatim_models.properties.columnar.evaluator import NotColumnar, judge_file

CHUNK = 20_000  # events; long enough that combining costs little, short enough to hold


class _Run:
    """One run under way: the summaries so far, and the events not yet summarised."""

    def __init__(self, run: str, properties: Sequence[AnyProperty]) -> None:
        self.statistics = found.RunStatistics(run)
        self._properties = properties
        # Any: each property knows the type of its own summary
        self._summaries: list[Any] = [p.begin() for p in properties]
        self._waiting: list[Event] = []

    def add(self, event: Event) -> None:
        self._waiting.append(event)
        if len(self._waiting) == CHUNK:
            self._summarise()

    def _summarise(self) -> None:
        events = self._waiting
        found.count(self.statistics, Counter(e.ev for e in events), GAP)
        for n, prop in enumerate(self._properties):
            reads = found.relevant(prop)
            summary = prop.map(e for e in events if reads is None or e.ev in reads)
            self._summaries[n] = prop.combine(self._summaries[n], summary)
        self._waiting = []

    def finish(self) -> list[Finding]:
        self._summarise()
        return [
            found.told(p.finish(s), self.statistics.run, self.statistics.gaps)
            for p, s in zip(self._properties, self._summaries, strict=True)
        ]


def _by_columns(plan: Plan, properties: Sequence[AnyProperty]) -> found.AuditReport | None:
    """The same report by the fast form, for one clean file of one run; None for all else."""
    [*sources] = [s for run in plan.runs for parts in run.recorders for s in parts]
    if len(sources) != 1:
        return None
    stamp = fingerprint(sources[0].path)
    try:
        # Who completed his events himself has the last word; the fast form always completes.
        if Reader(sources[0].path).header.params.get("complete") is True:
            return None
        judged = judge_file(sources[0].path, properties, plan.runs[0].run)
    except NotColumnar:
        return None
    if fingerprint(sources[0].path) != stamp:
        return None  # changed while it was read: the readable form says what becomes of it
    run = found.RunStatistics(plan.runs[0].run)
    found.count(run, Counter(judged.by_event), GAP)
    file = FileCount(
        source=sources[0].path,
        lines=judged.events + judged.header,
        header=judged.header,
        blank=0,
        events=judged.events,
        rejected=0,
    )
    findings = [found.told(f, run.run, 0) for f in judged.findings]
    return found.report("local", plan, findings, plan.refused, [run], [file])


def audit(plan: Plan, properties: Sequence[AnyProperty]) -> found.AuditReport:
    """Judge every run of the plan. Raises `HistoryError`."""
    quick = _by_columns(plan, properties)
    if quick is not None:
        return quick
    runs: dict[str, _Run] = {}
    quarantine: list[Rejected] = list(plan.refused)
    rejected: Counter[str] = Counter()
    files: list[FileCount] = []
    for planned in plan.runs:
        runs.setdefault(planned.run, _Run(planned.run, properties))
        for item in read(planned):
            if isinstance(item, Rejected):
                rejected[item.source] += 1
                if rejected[item.source] <= found.QUARANTINE_KEPT:
                    quarantine.append(item)
            elif isinstance(item, FileCount):
                files.append(item)
            else:
                if item.run not in runs:
                    runs[item.run] = _Run(item.run, properties)
                runs[item.run].add(item.event)
    findings = [f for _, run in sorted(runs.items()) for f in run.finish()]
    statistics = [r.statistics for r in runs.values()]
    return found.report("local", plan, findings, quarantine, statistics, files)
