"""The local engine: one process, memory that grows with the summaries and not with the history.

A clean file of lines is judged by the columnar evaluator (`seriatim_models.properties.columnar`), Parquet that is
taken in by columns (`columns`) by the tasks that Spark runs, and all else row by row (`run_fold`), with the same
findings. Without numpy and pyarrow, which the extra `audit` brings, all is judged row by row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from seriatim_models.files import fingerprint
from seriatim_models.history import Event, HistoryError, Rejected
from seriatim_models.history.event import GAP
from seriatim_models.history.lines import PARQUET, first_bytes
from seriatim_models.history.reading import Reader
from seriatim_models.pipeline.audit import findings as found
from seriatim_models.pipeline.audit.run_fold import RunFold
from seriatim_models.pipeline.audit.runs import FileCount, Plan, read
from seriatim_models.pipeline.garbage import rare_collections
from seriatim_models.properties.base import AnyProperty

BATCH = 20_000  # events; long enough that combining costs little, short enough to hold


def _by_columns(
    plan: Plan, properties: Sequence[AnyProperty], on_events: Callable[[int], None] | None
) -> found.AuditReport | None:
    """The same report by the columnar evaluator, for one clean file of one run; None for all else."""
    if find_spec("numpy") is None:
        return None
    from seriatim_models.properties.columnar.evaluator import NotColumnar, judge_file

    [*sources] = [s for run in plan.runs for parts in run.recorders for s in parts]
    if len(sources) != 1:
        return None
    stamp = fingerprint(sources[0].path)
    try:
        # Who completed his events himself has the last word; the columnar evaluator always completes.
        if Reader(sources[0].path).header.params.get("complete") is True:
            return None
        judged = judge_file(sources[0].path, properties, plan.runs[0].run, on_events)
    except (NotColumnar, HistoryError):
        return None  # the row-based way says which line, and what becomes of the rest
    if fingerprint(sources[0].path) != stamp:
        return None  # changed while it was read: the row-based way says what becomes of it
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
    findings = [
        found.annotated(p, f, run) for p, f in zip(properties, judged.findings, strict=True)
    ]
    return found.report("local", plan, findings, plan.refused, [run], [file])


def _is_parquet(path: Path) -> bool:
    try:
        return first_bytes(path) == PARQUET
    except HistoryError:
        return False


def _by_chunks(plan: Plan, properties: Sequence[AnyProperty]) -> found.AuditReport | None:
    """The same report by way of chunk files, for recordings that are taken in by columns; None for all else."""
    paths = [Path(s.path) for run in plan.runs for parts in run.recorders for s in parts]
    if find_spec("numpy") is None or any(p.summary_type is None for p in properties):
        return None
    if not all(map(_is_parquet, paths)):
        return None
    from seriatim_models.pipeline.audit.columns import RowByRow
    from seriatim_models.pipeline.audit.ingest import ingest
    from seriatim_models.pipeline.audit.inline import Inline
    from seriatim_models.pipeline.audit.tasks import audit_chunks

    with TemporaryDirectory(prefix="seriatim-") as name:
        try:
            manifest = ingest(Inline(), plan, Path(name), by_row=False)
        except (RowByRow, OSError):  # also for want of room
            return None
        audited = audit_chunks(Inline(), Path(name), properties, measure=False)
    files = [f for unit in manifest.units for f in unit.files]
    return found.report("local", plan, audited.findings, plan.refused, audited.runs, files)


@rare_collections()
def audit(
    plan: Plan,
    properties: Sequence[AnyProperty],
    on_events: Callable[[int], None] | None = None,
) -> found.AuditReport:
    """Judge every run of the plan; `on_events` is called now and then with how many events have been read.

    Raises `HistoryError`.
    """
    report = _by_columns(plan, properties, on_events) or _by_chunks(plan, properties)
    if report is not None:
        return report
    runs: dict[str, RunFold] = {}
    waiting: dict[str, list[Event]] = {}  # by run: events not taken yet
    quarantine: list[Rejected] = list(plan.refused)
    rejected: Counter[str] = Counter()
    files: list[FileCount] = []
    taken = 0

    def begin(run: str) -> None:
        if run not in runs:
            runs[run], waiting[run] = RunFold(run, properties), []

    for planned in plan.runs:
        begin(planned.run)
        for item in read(planned):
            if isinstance(item, Rejected):
                rejected[item.source] += 1
                if rejected[item.source] <= found.QUARANTINE_KEPT:
                    quarantine.append(item)
            elif isinstance(item, FileCount):
                files.append(item)
            else:
                begin(item.run)
                waiting[item.run].append(item.event)
                if len(waiting[item.run]) == BATCH:
                    runs[item.run].take(waiting[item.run])
                    waiting[item.run] = []
                    taken += BATCH
                    if on_events is not None:
                        on_events(taken)
    for run, events in waiting.items():
        runs[run].take(events)
    findings = [f for _, run in sorted(runs.items()) for f in run.findings()]
    statistics = [r.statistics for r in runs.values()]
    return found.report("local", plan, findings, quarantine, statistics, files)
