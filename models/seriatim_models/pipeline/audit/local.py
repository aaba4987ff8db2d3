"""The local engine: one process or a few. Memory grows with the summaries and not with the history; columns of lines
are held up to a bound (`seriatim_models.properties.columnar.evaluator`).

Clean files of lines of one recorder are read in blocks and judged by the columnar evaluator
(`seriatim_models.properties.columnar`), long ones by several processes (`side_by_side`); what is not clean is read by
line (`runs.read`) and judged by it. Parquet that is taken in by columns (`columns`) is judged in one reading, by some
threads (`one_pass`). Without numpy and pyarrow, which the extra `audit` brings, all is judged row by row (`run_fold`),
as are the runs of recordings that name each other's. The findings are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

from seriatim_models.files import fingerprint
from seriatim_models.history import Event, HistoryError, Rejected
from seriatim_models.history.clean import NotClean
from seriatim_models.history.event import GAP
from seriatim_models.history.lines import PARQUET, first_bytes
from seriatim_models.pipeline.audit import findings as found
from seriatim_models.pipeline.audit.run_fold import RunFold
from seriatim_models.pipeline.audit.runs import FileCount, Plan, RunPlan, read
from seriatim_models.pipeline.garbage import rare_collections
from seriatim_models.pipeline.spared_imports import spare_pandas
from seriatim_models.properties.base import AnyProperty, Finding

FILES = 16
"""Runs that are open at a time and have a temporary file each; further ones are judged row by row."""
BATCH = 20_000  # events; long enough that combining costs little, short enough to hold


def _of_lines(
    planned: RunPlan,
    properties: Sequence[AnyProperty],
    on_events: Callable[[int], None] | None,
    jobs: int,
) -> found.JudgedRun | None:
    """What a run comes to whose files are clean lines; None for all else."""
    from seriatim_models.pipeline.audit.side_by_side import shares
    from seriatim_models.properties.columnar.evaluator import judge_files

    paths = [s.path for s in planned.recorders[0]]
    try:
        nbytes = sum(fingerprint(path)[0] for path in paths)
        with shares(properties, jobs, nbytes) as elsewhere:
            judged = judge_files(paths, properties, planned.run, on_events, elsewhere)
    except (NotClean, HistoryError):
        return None  # the row-based way says which line, and what becomes of the rest
    run = found.RunStatistics(planned.run)
    found.count(run, Counter(judged.by_event), GAP)
    files = [
        FileCount(path, events + header, header, 0, events, 0)
        for path, (events, header) in zip(paths, judged.files, strict=True)
    ]
    findings = [
        found.annotated(p, f, run) for p, f in zip(properties, judged.findings, strict=True)
    ]
    return found.JudgedRun(findings, run, files)


def _of_parquet(
    planned: RunPlan,
    properties: Sequence[AnyProperty],
    on_events: Callable[[int], None] | None,
    jobs: int,
    alone: bool,
) -> found.JudgedRun | None:
    """What a run comes to that is taken in by columns; None for all else."""
    if any(p.summary_type is None for p in properties):
        return None
    if alone:
        spare_pandas()
    from seriatim_models.pipeline.audit.columns import RowByRow
    from seriatim_models.pipeline.audit.one_pass import judged

    try:
        return judged(planned, properties, on_events, threads=jobs)
    except RowByRow:
        return None


def _by_columns(
    planned: RunPlan,
    properties: Sequence[AnyProperty],
    on_events: Callable[[int], None] | None,
    jobs: int,
    alone: bool,
) -> found.JudgedRun | None:
    """What a run comes to whose files are of one recorder and need no look at single lines; None for all else."""
    if len(planned.recorders) != 1:
        return None
    sources = planned.recorders[0]
    stamps = [fingerprint(s.path) for s in sources]
    try:
        parquet = {first_bytes(Path(s.path)) == PARQUET for s in sources}
    except HistoryError:
        return None
    if parquet == {True}:
        judged = _of_parquet(planned, properties, on_events, jobs, alone)
    elif parquet == {False} and all(s.continues is None for s in sources):
        judged = _of_lines(planned, properties, on_events, jobs)
    else:
        return None
    # Changed while it was read: line by line it is said what becomes of it.
    return judged if [fingerprint(s.path) for s in sources] == stamps else None


@rare_collections()
def audit(
    plan: Plan,
    properties: Sequence[AnyProperty],
    on_events: Callable[[int], None] | None = None,
    alone: bool = False,
    jobs: int = 1,
) -> found.AuditReport:
    """Judge every run of the plan; `on_events` is called now and then with how many events have been read, `alone`
    says that this process does nothing else, and `jobs` on how many processors a run may be judged.

    Raises `HistoryError`.
    """
    columns = find_spec("numpy") is not None
    try:
        with ExitStack() as files:
            runs = _Runs(properties, on_events, files if columns else None)
            return _one_by_one(plan, runs, jobs, alone)
    except NotOneByOneError:
        return _one_by_one(plan, _Runs(properties, on_events, None, closes=False), jobs, alone)


class NotOneByOneError(Exception):
    """The lines of a recording are of a run that was judged when its own recordings were over, or there is no room for
    a second look at its events.
    """


class _ColumnFold:
    """What a `RunFold` is, by the columnar evaluator."""

    def __init__(self, run: str, properties: Sequence[AnyProperty], files: ExitStack) -> None:
        from seriatim_models.properties.columnar.evaluator import Evaluation
        from seriatim_models.properties.columnar.second_look import SecondLook

        self.statistics = found.RunStatistics(run)
        self._again = files.enter_context(SecondLook())
        self._evaluation = Evaluation(properties, self._again)

    def take(self, events: Sequence[Event]) -> None:
        """Add completed events that follow those before. Raises `NotOneByOneError` where there is no room."""
        found.count_events(self.statistics, events)
        try:
            self._evaluation.take(events)
        except OSError as error:
            raise NotOneByOneError from error

    def findings(self) -> list[Finding]:
        """The finding of every property; no more events may be added."""
        evaluation = self._evaluation
        judged = zip(evaluation.properties, evaluation.finish().findings, strict=True)
        self._again.__exit__()
        return [found.annotated(prop, finding, self.statistics) for prop, finding in judged]


class _Runs:
    """The runs that are open, and what was found of those that are over."""

    def __init__(
        self,
        properties: Sequence[AnyProperty],
        on_events: Callable[[int], None] | None,
        files: ExitStack | None,
        *,
        closes: bool = True,
    ) -> None:
        """`closes`: a run is judged behind the last recording whose header names it, and then takes no memory.

        `files`: where what is judged by columns leaves its temporary files; None if all is judged row by row.
        """
        self.properties = properties
        self.closes = closes
        self._files = files
        self.taken = 0
        self._on_events = on_events
        self.open: dict[str, RunFold | _ColumnFold] = {}
        self.waiting: dict[str, list[Event]] = {}
        """By run: events not taken yet."""
        self.findings: dict[str, list[Finding]] = {}
        self.statistics: dict[str, found.RunStatistics] = {}

    def begin(self, run: str) -> None:
        """Take in that a recording names a run."""
        if run in self.findings:
            raise NotOneByOneError
        if run not in self.open:
            fold: RunFold | _ColumnFold
            if self._files is None or len(self.open) >= FILES:
                fold = RunFold(run, self.properties)
            else:
                fold = _ColumnFold(run, self.properties, self._files)
            self.open[run] = fold
            self.waiting[run], self.statistics[run] = [], fold.statistics

    def take(self, run: str, event: Event) -> None:
        """Take in a run's next event. Raises `NotOneByOneError` if the run was judged."""
        self.begin(run)
        waiting = self.waiting[run]
        waiting.append(event)
        if len(waiting) == BATCH:
            self.open[run].take(waiting)
            self.waiting[run] = []
            self.taken += BATCH
            self.read(0)

    def read(self, more: int) -> None:
        """Tell that so many events more were read than are `taken`."""
        if self._on_events is not None:
            self._on_events(self.taken + more)

    def judged(self, planned: RunPlan, jobs: int, alone: bool) -> list[FileCount]:
        """Judge a planned run by columns, if that is possible, and nothing of it was met yet; returns what was read."""
        if self._files is None or planned.run in self.open or planned.run in self.findings:
            return []
        by_columns = _by_columns(planned, self.properties, self.read, jobs, alone)
        if by_columns is None:
            return []
        self.findings[planned.run], self.statistics[planned.run], files = by_columns
        self.taken += by_columns.statistics.events
        self.read(0)
        return files

    def end(self, run: str) -> None:
        """Judge a run."""
        fold = self.open.pop(run)
        fold.take(self.waiting.pop(run))
        self.findings[run] = fold.findings()


def _one_by_one(plan: Plan, runs: _Runs, jobs: int, alone: bool) -> found.AuditReport:
    quarantine: list[Rejected] = list(plan.refused)
    rejected: Counter[str] = Counter()
    files: list[FileCount] = []
    for planned in plan.runs:
        if by_columns := runs.judged(planned, jobs, alone):
            files += by_columns
            continue
        runs.begin(planned.run)
        for item in read(planned):
            if isinstance(item, Rejected):
                rejected[item.source] += 1
                if rejected[item.source] <= found.QUARANTINE_KEPT:
                    quarantine.append(item)
            elif isinstance(item, FileCount):
                files.append(item)
            else:
                runs.take(item.run, item.event)
        if runs.closes:
            runs.end(planned.run)
    for run in [*runs.open]:
        runs.end(run)
    findings = [f for _, of in sorted(runs.findings.items()) for f in of]
    return found.report("local", plan, findings, quarantine, list(runs.statistics.values()), files)
