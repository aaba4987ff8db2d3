"""One run of a stream: its small state, and how new files change it. No Spark here.

- A file is one part of one recorder and must be whole when it appears: write it elsewhere and rename it into place.
- *Out of order*: a part that does not follow what was read (its first index leaves a hole) waits for the missing one.
  A recorder's first part is one that begins with index 0 or 1.
- *Watermark*: a part waits no longer than `lateness`, by the times of the files themselves: it goes on as soon as
  some file of the stream was changed that much later. So what is late does not depend on when it was looked at.
- *Late*: a part that comes after its place was passed is read, its lines are rejected, counted as late and
  in quarantine. The verdicts stand on what came in time.
- *Several recorders of one run* are merged by time, up to the least of their latest times. One whose
  first file comes later, with earlier times, is taken in the order of arrival, and these events count as late.
- *Changed after it was read*: what is new in such a file is not read. Its recorder has a gap from there on, so that
  nothing is concluded from the missing lines.
- *Idle*: a run without new files is not touched and costs nothing; its verdict stands. When no file at all has come
  for as long as the caller says, no part waits any more (`final`).

A violation is one of what has come so far: the unexpected end of a connection, recorded later, may still clear it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seriatim_models.files import CHANGED, Fingerprint, fingerprint, place_within
from seriatim_models.history import Event, Rejected, table
from seriatim_models.history.event import began
from seriatim_models.history.header import Header
from seriatim_models.history.indices import Indices
from seriatim_models.pipeline.audit import chunks, columns
from seriatim_models.pipeline.audit import findings as found
from seriatim_models.pipeline.audit.metrics import FIELDS, Measures, MeasuresState
from seriatim_models.pipeline.audit.run_fold import RunFold
from seriatim_models.pipeline.audit.runs import (
    Carry,
    Completions,
    FileCount,
    Placed,
    RunItem,
    Source,
    lose,
    merged,
    recorder,
)
from seriatim_models.pipeline.audit.tasks import packed
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.pipeline.state_file import decoded, read_state, write_state
from seriatim_models.pipeline.stream.run_columns import (
    LENGTH,
    RunColumns,
    SavedColumns,
    undelivered,
)
from seriatim_models.pipeline.stream.settled import SavedSettled, SettledMessages
from seriatim_models.properties.base import AnyProperty, Finding
from seriatim_models.properties.blackbox.lifecycle import acquires
from seriatim_models.properties.columnar.event_batch import EventBatch

BATCH = 20_000  # events aggregated at a time


class ArrivedFile(msgspec.Struct, frozen=True):
    """A file that appeared, with its recorder, its first index, and when it was last changed (ns)."""

    path: str
    recorder: str
    first: int
    changed: int
    continues: Header | None = None
    """See `Source.continues`."""


class RunSummary(msgspec.Struct):
    """The results of one run so far."""

    run: str
    state: str = ""
    """File of its state, relative to the stream's folder."""
    findings: list[Finding] = []
    statistics: list[found.RunStatistics] = []
    files: list[FileCount] = []
    quarantine: list[str] = []
    settled: list[str] = []
    """Files of messages that are set aside, and of the run's events, relative to the stream's folder."""
    late: int = 0
    """Lines that came too late."""
    waiting: int = 0
    """Files and events that wait."""
    measures: bytes = b""
    stamps: dict[str, Fingerprint] = {}
    """Of each file that was read."""
    held: list[str] = []
    """Files that were not read yet."""
    backlog: dict[str, int] = {}
    """By queue: messages that were published to it and not yet delivered, as far as the recording says."""


class _RecorderState:
    """What one recorder of a run has written: read, or not yet."""

    def __init__(self, carry: Carry) -> None:
        self.carry = carry
        self.parts: list[ArrivedFile] = []
        """Not read yet."""
        self.items: list[tuple[int, RunItem]] = []
        """Read, and waiting for other recorders."""


class _SavedItem(msgspec.Struct, array_like=True):
    """A `RunItem` with its place in time; one of the three is there."""

    at: int
    placed: Placed | None = None
    rejected: Rejected | None = None
    count: FileCount | None = None

    @staticmethod
    def of(at: int, item: RunItem) -> _SavedItem:
        """That of an item."""
        if isinstance(item, Placed):
            return _SavedItem(at, placed=item)
        return (
            _SavedItem(at, rejected=item)
            if isinstance(item, Rejected)
            else _SavedItem(at, count=item)
        )

    def items(self) -> list[tuple[int, RunItem]]:
        """The item again."""
        kept = (self.placed, self.rejected, self.count)
        return [(self.at, item) for item in kept if item is not None]


class _SavedRecorder(msgspec.Struct):
    """A `_RecorderState`; what its carry has seen stands in the state of the run."""

    carry: Carry
    parts: list[ArrivedFile]
    items: list[_SavedItem]


class _SavedFold(msgspec.Struct):
    """A `RunFold`, and the metrics of its events."""

    statistics: found.RunStatistics
    summaries: list[bytes]
    """By property, each encoded by its own type."""
    measures: MeasuresState
    settled: SavedSettled


class SavedRun(msgspec.Struct):
    """A file ``*.state``: a `RunState`."""

    run: str
    properties: list[str]
    """Which they are, and in which forms."""
    summary: RunSummary
    seen: dict[tuple[str, str], Indices]
    recorders: dict[str, _SavedRecorder]
    wrote: dict[str, str]
    waiting: dict[str, str]
    folds: dict[str, _SavedFold]
    columns: SavedColumns | None
    """Of a run that is judged by columns: instead of its fold."""
    passed: int
    completions: Completions


_REMEDY = "delete the stream's output folder, and a new stream reads the recordings anew"


def refused_state(fault: str) -> PipelineError:
    """The error for what a stream cannot go on from: what is wrong, and what to do."""
    return PipelineError(f"{fault}; {_REMEDY}")


def _forms(properties: Sequence[AnyProperty]) -> list[str]:
    """Each property with its form, as a state names it."""
    return [f"{p.id} {found.form(p)}".strip() for p in properties]


class RunState:
    """The state of one planned run; `summary` is its results."""

    def __init__(
        self, run: str, properties: Sequence[AnyProperty], folder: Path = Path(), into: str = ""
    ) -> None:
        """`into`: the name in the stream's folder under which messages are set aside; if it is empty, none are."""
        self.run = run
        self._folder, self._into = folder, into
        self.summary = RunSummary(run)
        self._properties = tuple(properties)
        self._seen = Carry(run).seen
        self._recorders: dict[str, _RecorderState] = {}
        self._wrote: dict[str, str] = {}  # by file that was read: its recorder
        self._waiting: dict[str, str] = {}  # by message that was not delivered yet: its queue
        self._folds: dict[str, RunFold] = {}  # by the run that events name
        self._settled: dict[str, SettledMessages] = {}
        self._metrics: dict[str, Measures] = {}
        self._columns = RunColumns(run, self._properties, folder, into) if into else None
        """None if the run is judged row by row, from now on."""
        self._passed = -1
        self._completions = Completions()
        self._rejected: list[Rejected] = []

    def take(
        self,
        arrived: Sequence[ArrivedFile],
        newest: int,
        lateness: int,
        final: bool,
        changed: Mapping[str, Fingerprint] | None = None,
    ) -> None:
        """Read what may be read now. `newest` is the latest change of any file of the stream, in ns, as is `lateness`.

        `changed` are files that were read and have changed since, with what they are now. With `final` no part waits.
        """
        for path, stamp in (changed or {}).items():
            known = self._recorders[self._wrote[path]]
            known.items += lose(known.carry)
            self.summary.stamps[path] = stamp
        for part in arrived:
            if part.recorder not in self._recorders:
                self._recorders[part.recorder] = _RecorderState(Carry(self.run, self._seen))
            self._recorders[part.recorder].parts.append(part)
        for known in self._recorders.values():
            self._read(known, newest - lateness, final)
        self._release(final)
        self.summary.waiting = sum(len(r.parts) + len(r.items) for r in self._recorders.values())
        self.summary.held = [p.path for r in self._recorders.values() for p in r.parts]
        self.summary.findings, self.summary.statistics = self._findings(), self._counted()
        self.summary.backlog = dict(Counter(self._waiting.values()))

    def _findings(self) -> list[Finding]:
        """The finding of every property on each run, if it ended here."""
        judged: dict[str, RunFold | RunColumns] = {**self._folds, **self._judged_by_columns()}
        found_ = [f for _, run in sorted(judged.items()) for f in run.findings()]
        return found_ or RunFold(self.run, self._properties).findings()

    def _read(self, known: _RecorderState, watermark: int, final: bool) -> None:
        known.parts.sort(key=lambda p: (p.first, p.path))
        while known.parts:
            part = known.parts[0]
            last = max((i.last for i in self._last(known) if i.last is not None), default=0)
            if not (final or part.first <= last + 1 or part.changed <= watermark):
                return
            known.parts.pop(0)
            if self._read_by_columns(known, part, final):
                continue
            source = Source(part.path, named=False, continues=part.continues)
            reported = False
            for at, item in recorder(known.carry, [source]):
                reported |= isinstance(item, Rejected) and not item.line and item.reason == CHANGED
                known.items.append((at, item))
                # With others the least of their times decides, which is known when all are read.
                if len(known.items) >= BATCH and len(self._recorders) == 1:
                    self._release(final)
            # What changed meanwhile is in quarantine already, and shall not be so twice.
            self.summary.stamps[part.path] = (
                fingerprint(part.path) if reported else known.carry.stamp
            )
            self._wrote[part.path] = part.recorder

    def _read_by_columns(self, known: _RecorderState, part: ArrivedFile, final: bool) -> bool:
        """Read a part by columns; False if that cannot be, and then nothing of it was read."""
        if self._columns is None or len(self._recorders) > 1 or part.continues is not None:
            return False
        carry, stamp = known.carry, fingerprint(part.path)
        if carry.waits:  # lines stamped alike are in no order
            return False
        head = columns.header(part.path)
        key = (self.run, part.recorder)
        if head is None or head.rec != part.recorder:
            return False
        if head.clk and carry.clocks.get(key, head.clk) != head.clk:
            return False
        try:
            read = columns.following(part.path, head, self.run, self._reached(carry), LENGTH)
        except columns.RowByRow:
            return False
        if fingerprint(part.path) != stamp:
            return False
        self._release(final)
        rows = 0
        try:
            for held in read:
                rows += len(held["i"])
                self._carry_on(carry, key, head, self._judge_columns(held))
        except columns.RowByRow as error:  # though all of it was checked
            raise PipelineError(f"{part.path}: {CHANGED}") from error
        carry.stamp = self.summary.stamps[part.path] = stamp
        self._wrote[part.path] = part.recorder
        self.summary.files.append(FileCount(part.path, rows, 0, 0, rows, 0))
        return True

    def _reached(self, carry: Carry) -> tuple[int, int]:
        """The latest index and time that were read."""
        last = (i.last for i in self._seen.values() if i.last is not None)
        return max(last, default=-(2**63)), carry.at

    def _carry_on(
        self, carry: Carry, key: tuple[str, str], head: Header, rows: pa.RecordBatch
    ) -> None:
        """Note what reading these rows one by one would leave behind."""
        seen = self._seen.setdefault(key, Indices())
        seen.extend(np.asarray(rows["i"]).tolist())
        carry.begun[key], carry.in_gap = None, False
        (carry.last[self.run],) = table.events(rows.slice(len(rows) - 1))
        if head.clk:
            carry.clocks[key] = head.clk
        if "t" in rows.schema.names:
            carry.at = max(carry.at, pc.max(rows["t"]).as_py())
        self._passed = max(self._passed, carry.at)

    def _judge_columns(self, held: Mapping[str, pa.Array]) -> pa.RecordBatch:
        """Judge the next completed events of the run; returns their columns."""
        if self._columns is None:  # left since the reading of a part began
            batch = pa.RecordBatch.from_pydict(dict(held))
            for begin in range(0, len(batch), BATCH):
                self._judge(self.run, list(table.events(batch.slice(begin, BATCH))))
            return batch
        kept = self._columns.keep(held)
        self._waiting = undelivered(self._waiting, kept)
        if not self._columns.take(kept):
            self._leave_columns(self._columns)
        return kept.arrow

    def _leave_columns(self, left: RunColumns) -> None:
        """Go on row by row, with all events from the beginning."""
        self._columns = None
        for events in left.events():
            self._fold(self.run, events)

    def _last(self, known: _RecorderState) -> list[Indices]:
        """The indices read from this recorder."""
        return [i for key, i in self._seen.items() if key in known.carry.begun]

    def _release(self, final: bool) -> None:
        """Judge the events before which no recorder can have another."""
        low = min((r.carry.at for r in self._recorders.values()), default=0)
        alone = len(self._recorders) == 1
        streams = []
        for _, known in sorted(self._recorders.items()):
            if final or alone:
                ready, known.items = known.items, []
            else:
                ready = [item for item in known.items if item[0] < low]
                known.items = known.items[len(ready) :]
            streams.append(ready)
        batches: dict[str, list[Event]] = {}
        for at, raw in merged(streams):
            item = self._completions(raw)
            if isinstance(item, Rejected):
                self._rejected.append(item)
                self.summary.late += "; the index must rise" in item.reason
            elif isinstance(item, FileCount):
                self.summary.files.append(item)
            else:
                self.summary.late += at < self._passed
                self._passed = max(self._passed, at)
                batch = batches.setdefault(item.run, [])
                batch.append(item.event)
                if len(batch) == BATCH:
                    self._judge(item.run, batches.pop(item.run))
        for run, batch in batches.items():
            self._judge(run, batch)

    def _judge(self, run: str, events: list[Event]) -> None:
        if run == self.run and self._columns is not None:
            self._judge_columns(table.columns(events))
            return
        self._fold(run, events)
        for event in events:
            self._wait(event)

    def _fold(self, run: str, events: list[Event]) -> None:
        """Judge events row by row."""
        if run not in self._folds:
            self._folds[run] = RunFold(run, self._properties)
            self._metrics[run] = Measures(first=True)
            self._settled[run] = self._set_aside(run)
        summaries = self._folds[run].fold.summaries
        self._settled[run].recall(summaries, events)
        self._folds[run].take(events)
        self._settled[run].set_aside(summaries)
        self._metrics[run].add(EventBatch(table.batch(events, FIELDS)))

    def _set_aside(self, run: str, saved: SavedSettled | None = None) -> SettledMessages:
        """Where the messages of a run go that events name. Several runs of one recording have a folder each."""
        into = self._into and f"{self._into}.{len(self._settled)}"
        return SettledMessages(self._properties, self._folder, into, _REMEDY, saved)

    def _wait(self, event: Event) -> None:
        """Keep track of the messages that were not delivered yet."""
        if event.ev == "publish":
            if event.ph == "fail":
                self._waiting.pop(event.m, None)
            elif began(event):
                self._waiting[event.m] = event.q
        elif event.m in self._waiting and (acquires(event) or event.ev in ("return", "expire")):
            del self._waiting[event.m]
        elif event.ev in ("delete", "purge"):
            self._waiting = {m: q for m, q in self._waiting.items() if q != event.q}

    def measured(self) -> dict[str, Measures]:
        """The metrics, by run."""
        judged = self._judged_by_columns()
        return self._metrics | {run: of.measures for run, of in judged.items()}

    def _judged_by_columns(self) -> dict[str, RunColumns]:
        """By run, of which there is one or none."""
        some = self._columns is not None and self._columns.history.n
        return {self.run: self._columns} if self._columns is not None and some else {}

    def _counted(self) -> list[found.RunStatistics]:
        """What was in each run."""
        judged: tuple[RunFold | RunColumns, ...] = (
            *self._judged_by_columns().values(),
            *self._folds.values(),
        )
        return [of.statistics for of in judged]

    def save(self, folder: Path, name: str) -> None:
        """Leave the state as ``<name>.state``, and what was rejected since the last time beside it."""
        if self._rejected:
            path = f"{name}.rejected.parquet"
            rows = [msgspec.to_builtins(r) for r in self._rejected]
            pq.write_table(pa.Table.from_pylist(rows, chunks.QUARANTINE), folder / path)
            self.summary.quarantine.append(path)
            self._rejected = []
        for run, settled in self._settled.items():
            settled.set_aside(self._folds[run].fold.summaries, all=True)
        self.summary.settled = [f for s in self._settled.values() for f in s.files()]
        if self._columns is not None:
            self.summary.settled += [file.path for file in self._columns.history.files]
        self.summary.state = f"{name}.state"
        measures = {run: m.state() for run, m in self.measured().items()}
        self.summary.measures = msgspec.msgpack.encode(measures)
        saved = SavedRun(
            self.run,
            _forms(self._properties),
            # These two are in the folds.
            msgspec.structs.replace(self.summary, measures=b"", statistics=[]),
            self._seen,
            {name: _saved(recorder) for name, recorder in self._recorders.items()},
            self._wrote,
            self._waiting,
            {
                run: _SavedFold(
                    fold.statistics,
                    [
                        packed(p, s)
                        for p, s in zip(self._properties, fold.fold.summaries, strict=True)
                    ],
                    measures[run],
                    self._settled[run].saved,
                )
                for run, fold in self._folds.items()
            },
            None if self._columns is None else self._columns.state(),
            self._passed,
            self._completions,
        )
        write_state(folder / self.summary.state, "run", saved)

    @staticmethod
    def load(
        folder: Path, name: str, properties: Sequence[AnyProperty], into: str = ""
    ) -> RunState:
        """The state that `save` left; `into` is as for a new one.

        Raises `PipelineError` if it cannot be used, or was of other properties.
        """
        path = place_within(folder, name, refused_state)
        saved = read_state(path, "run", SavedRun, _REMEDY)
        if saved.properties != _forms(properties):
            raise PipelineError(
                f"{path}: judges by {', '.join(saved.properties)}, and this stream by "
                f"{', '.join(_forms(properties))}; ask for the same properties, or {_REMEDY}"
            )
        try:
            return RunState(saved.run, properties, folder, into)._go_on(saved, path)
        except PipelineError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # Whoever can compute its checksum can write lists of other lengths, and numbers of no row.
            raise PipelineError(
                f"{path}: is not what this version writes ({error}); {_REMEDY}"
            ) from error

    def _go_on(self, saved: SavedRun, path: Path) -> RunState:
        """Take in what was saved in the file `path`."""
        state, properties = self, self._properties
        state.summary, state._seen = saved.summary, saved.seen
        state._wrote, state._waiting = saved.wrote, saved.waiting
        state._passed = saved.passed
        state._completions = saved.completions
        for name_, recorder_ in saved.recorders.items():
            recorder_.carry.seen = state._seen
            state._recorders[name_] = known = _RecorderState(recorder_.carry)
            known.parts = recorder_.parts
            known.items = [pair for item in recorder_.items for pair in item.items()]
        for run, kept in saved.folds.items():
            state._folds[run] = fold = RunFold(run, properties)
            fold.statistics = kept.statistics
            fold.fold.summaries = [
                decoded(path, raw, p.summary_type, _REMEDY)
                for p, raw in zip(properties, kept.summaries, strict=True)
            ]
            state._settled[run] = state._set_aside(run, kept.settled)
            state._metrics[run] = Measures.of_state(kept.measures)
        state._columns = None
        if saved.columns is not None:
            state._columns = RunColumns(state.run, properties, state._folder, state._into)
            state._columns.restore(saved.columns, path, _REMEDY)
        state.summary.statistics = state._counted()
        state.summary.measures = msgspec.msgpack.encode(
            {run: kept.state() for run, kept in state.measured().items()}
        )
        return state


def _saved(recorder: _RecorderState) -> _SavedRecorder:
    return _SavedRecorder(
        msgspec.structs.replace(recorder.carry, seen={}),
        recorder.parts,
        [_SavedItem.of(at, item) for at, item in recorder.items],
    )
