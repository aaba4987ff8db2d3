"""Judging a folder while it grows: Structured Streaming finds new files, every batch updates the runs they belong to.

What a batch does to the state is a function of the state before it and of its files, so a batch that was killed can
be run again:

    stream.json        the state: which batch was the last, and of each run where its state is and its results
    batch-*/           states of runs, messages set aside (`settled`) and rejected lines, of the batch of that number
    checkpoint/        Spark's own: which files belong to which batch
    tables/            the tables of an audit (`tables`), after the last batch

`stream.json` is put in place by one rename. A batch of a number that is in it already has been done and is left out;
files that it does not name are left over from a batch that was killed.
How files change a run, also late ones, is in `run_state`.

A file is read once, and may be deleted then. Whether those that were read have changed is checked before every batch,
while no file comes, and at the end: one that has is in quarantine (line 0), once, and its run has a gap from there on.
A file that could not even be opened is tried again when it has changed: nothing of it was read, so nothing is doubled.
Spark leaves out files that are empty when it first sees them, and never comes back to them; those are found here.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import unix_micros
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from seriatim_models.files import (
    GONE,
    Fingerprint,
    check_place,
    fingerprint,
    own_folders,
    place_within,
    read_document,
    write_whole,
)
from seriatim_models.history import Event, HistoryError, Rejected
from seriatim_models.history.header import Header
from seriatim_models.history.parts import PartEdges, begins_in_the_middle, continued, edges
from seriatim_models.history.reading import SUFFIXES, Reader, named_as_history, stem
from seriatim_models.pipeline.audit import findings as found
from seriatim_models.pipeline.audit import tables
from seriatim_models.pipeline.audit.ingest import locked
from seriatim_models.pipeline.audit.metrics import Measures, MeasuresState
from seriatim_models.pipeline.audit.runs import (
    FileCount,
    Plan,
    histories_in,
    two_clocks,
    whole,
)
from seriatim_models.pipeline.audit.spark import in_worker, take_along
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.pipeline.garbage import rare_collections
from seriatim_models.pipeline.session import frame
from seriatim_models.pipeline.stream.run_state import (
    ArrivedFile,
    RunState,
    RunSummary,
    refused_state,
)
from seriatim_models.properties.base import AnyProperty

SCHEMA = "seriatim-stream/13"
LATENESS = 10.0  # seconds
IDLE = 30.0  # seconds
LOOK = 20
"""Looking whether files changed takes at most one part in so many of the time."""
FILES = 64
"""Files of one batch at most."""
BYTES = 4 * 2**20
"""Bytes of the files that are judged together first, for each processor, unless one file has more: some seconds of
work. What is killed more often than it can judge so much never gets on."""

UPDATE_SCHEMA = StructType([StructField("update", StringType(), False)])
"""A `RunUpdate` as JSON."""
UPDATED_SCHEMA = StructType([StructField("updated", BinaryType(), False)])
"""An `UpdatedRun` as msgpack."""

_LISTING = "path string, modificationTime timestamp, length long, content binary"
"""What Spark calls binaryFile."""


class StreamState(msgspec.Struct):
    """The stream after its last batch."""

    batch: int = -1
    newest: int = 0
    """The latest change of any file, ns."""
    runs: dict[str, RunSummary] = {}
    names: dict[str, str] = {}
    """Of runs named after a file: the file."""
    refused: list[Rejected] = []
    """Files that could not even be opened."""
    unread: dict[str, Fingerprint] = {}
    """What those were then."""
    changed: list[Rejected] = []
    """Files that are not any more what they were when they were read."""
    clocks: dict[str, tuple[str, str]] = {}
    """Of each run: its clock, and the first file that named it."""
    orphans: dict[str, int] = {}
    """Files without a header that begin in the middle, and when they were last changed: what they continue may come."""
    schema: str = SCHEMA


class RunUpdate(msgspec.Struct, frozen=True):
    """What one task does: update one run."""

    folder: str
    into: str
    """Where its new state goes, without suffix."""
    before: RunSummary
    arrived: list[ArrivedFile]
    newest: int
    lateness: int
    final: bool
    changed: dict[str, Fingerprint]


class UpdatedRun(msgspec.Struct, frozen=True):
    """What a `RunUpdate` came to."""

    summary: RunSummary
    error: str = ""
    """Why the run's state could not be used; then `summary` is as before."""
    failed: int = 0
    """Attempts at this task that failed before this one, as where a worker was killed."""


class StreamProgress(msgspec.Struct, frozen=True):
    """Reported after each batch: totals so far, and of the batch its size and times."""

    batch: int
    files: int
    events: int
    rejected: int
    """Lines."""
    refused: int
    """Files that could not be opened."""
    changed: int
    """Files that changed after they were read."""
    late: int
    waiting: int
    violated: list[str]
    """``run property`` of each violated property."""
    violations: int
    """How often, in all."""
    backlog: dict[tuple[str, str], int]
    """By run and queue: messages that were published and not yet delivered."""
    new: int
    """Events of the batch."""
    seconds: float
    """That the batch took."""
    lag: float | None
    """Seconds from the change of the batch's oldest file until its verdicts stood; None without a file."""
    failed: int = 0
    """Attempts at tasks of the batch that failed, as where a worker was killed, and were made again."""


def update_runs(
    updates: DataFrame, properties: Sequence[AnyProperty], files: frozenset[str]
) -> DataFrame:
    """`UPDATE_SCHEMA` to `UPDATED_SCHEMA`: writes the new states and gives the runs' results.

    `files` are those of a user's own properties.
    """

    def mapped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for raw in batch["update"].to_pylist():
                update = msgspec.json.decode(raw, type=RunUpdate)
                updated = _updated(update, properties, files)
                task = TaskContext.get()
                assert task is not None, "this runs in a worker"
                updated = msgspec.structs.replace(updated, failed=task.attemptNumber())
                yield pa.RecordBatch.from_arrays(
                    [pa.array([msgspec.msgpack.encode(updated)], pa.binary())], names=["updated"]
                )

    return updates.mapInArrow(mapped, UPDATED_SCHEMA)


@rare_collections()
def _updated(
    update: RunUpdate, properties: Sequence[AnyProperty], files: frozenset[str]
) -> UpdatedRun:
    folder = Path(update.folder)
    before = update.before
    try:
        with in_worker(files):
            state = (
                RunState.load(folder, before.state, properties, update.into)
                if before.state
                else RunState(before.run, properties, folder, update.into)
            )
            state.take(update.arrived, update.newest, update.lateness, update.final, update.changed)
    except PipelineError as error:
        # A result, not a failed task: Spark would try again and then show a stack trace.
        return UpdatedRun(before, str(error))
    state.save(folder, update.into)
    return UpdatedRun(state.summary)


def check_links(folder: Path) -> None:
    """Raise `PipelineError` for a link to a folder above itself: Spark follows it again and again."""
    for where, folders, _ in os.walk(folder):
        real = Path(os.path.realpath(where))
        for name in folders:
            link = Path(where, name)
            if link.is_symlink() and real.is_relative_to(os.path.realpath(link)):
                raise PipelineError(f"{link}: a link to a folder that it lies in; remove it")


def check_kept(folder: Path, state: StreamState) -> None:
    """Raise `OSError` where what is no file lies in the place of one that the state needs, and `PipelineError` for a
    place outside the folder.
    """
    for name in _named(state):
        check_place(place_within(folder, name, refused_state))


def sweep(folder: Path, state: StreamState) -> None:
    """Delete what lies in the folders of a stream's batches and the state does not name."""
    named = _named(state)
    for batch in own_folders(folder, "batch-*"):
        for path in batch.iterdir():
            if f"{batch.name}/{path.name}" not in named:
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # something of it is needed
            batch.rmdir()


class Stream:
    """A stream of one folder into one output folder. Raises `PipelineError` if the output is another stream's."""

    def __init__(
        self,
        spark: SparkSession,
        source: str | Path,
        out: str | Path,
        properties: Sequence[AnyProperty],
        *,
        lateness: float = LATENESS,
        on_progress: Callable[[StreamProgress], None] | None = None,
        on_step: Callable[[int], None] | None = None,
    ) -> None:
        """`on_step` is called before files are judged together, with their number; `on_progress` after it."""
        self.spark = spark
        self.source = Path(source).resolve()
        self.out = Path(out).resolve()
        if not self.source.is_dir():
            raise PipelineError(f"{source}: is no folder to watch")
        if self.out == self.source or self.source in self.out.parents:
            raise PipelineError(f"{out}: must not lie in the folder that is watched")
        self.properties = tuple(properties)
        self._files = take_along(self.properties)
        self.lateness = int(lateness * 1e9)
        self.on_progress = on_progress
        self.on_step = on_step
        self._room = BYTES * spark.sparkContext.defaultParallelism
        """Bytes of the files of the next step."""
        self._busy = threading.Lock()
        self._broken: PipelineError | None = None
        """Why the last batch that Spark brought could not be judged."""
        self._advanced_at = time.monotonic()
        self._missed: dict[
            str, Fingerprint
        ] = {}  # files that Spark did not bring, at the last look,
        self._looked_after = -1  # which was after this batch
        self._edges_read: dict[Path, tuple[Fingerprint, PartEdges]] = {}
        self.out.mkdir(parents=True, exist_ok=True)
        self.state = self._read()

    def _read(self) -> StreamState:
        path = self.out / "stream.json"
        if not path.exists():
            return StreamState()
        state = read_document(path, StreamState, "not the state of a stream", PipelineError)
        if state.schema != SCHEMA:
            raise refused_state(f"{path}: field schema: {state.schema!r}, not {SCHEMA!r}")
        check_kept(self.out, state)
        return state

    def run(
        self,
        *,
        once: bool = False,
        idle: float = IDLE,
        every: float = 1.0,
        stopping: Callable[[], bool] = lambda: False,
        files: int = FILES,
    ) -> None:
        """Go on where the last run ended, until `stopping`; with `once`, until all that is there has been read.

        Looks for new files every so many seconds.
        """
        with locked(self.out):
            check_links(self.source)
            sweep(self.out, self.state)
            self._publish()
            reader = self.spark.readStream.format("binaryFile").schema(_LISTING)
            reader = reader.option("recursiveFileLookup", "true").option(
                "maxFilesPerTrigger", files
            )
            reader = reader.option("pathGlobFilter", _names())
            # The content is not asked for and so not read.
            new = reader.load(self.source.as_uri()).select(
                "path", unix_micros("modificationTime").alias("changed")
            )
            writer = new.writeStream.foreachBatch(self._batch)
            writer = writer.option("checkpointLocation", str(self.out / "checkpoint"))
            writer = (
                writer.trigger(availableNow=True)
                if once
                else writer.trigger(processingTime=f"{int(every * 1000)} milliseconds")
            )
            if stopping():
                return
            self._advanced_at = time.monotonic()
            look_at = 0.0
            query = writer.start()
            try:
                while query.isActive and not stopping():
                    time.sleep(0.1)
                    if not once and time.monotonic() - self._advanced_at > idle:
                        self._final()
                    if not once and time.monotonic() > look_at:
                        began = time.monotonic()
                        self._take_missed()
                        took = time.monotonic() - began
                        look_at = began + took + max(every, LOOK * took)
                if self._broken is not None:
                    raise self._broken
                if not query.isActive and query.exception() is not None:
                    message = str(query.exception()).strip().splitlines()[0]
                    raise PipelineError(f"the stream broke off: {message}")
            finally:
                with self._busy:  # let the batch under way come to its end
                    query.stop()
            if once and not stopping():
                self._final()
                while self._take_missed(patient=False):
                    pass

    def _batch(self, frame_: DataFrame, number: int) -> None:
        """Spark's `foreachBatch`; may come a second time with the same number and the same files."""
        with self._busy:
            if number <= self.state.batch:
                return
            rows = [(_local(r["path"]), r["changed"] * 1000) for r in frame_.collect()]
            known = self._known()
            try:
                steps = self._steps(
                    [r for r in rows if r[0] not in known and not self._another(r[0])]
                )
                for step in steps[:-1]:  # the batch is not done with them, and may come again
                    self._advance(self.state.batch, step, final=False)
                self._advance(number, steps[-1], final=False)
            except PipelineError as error:
                self._broken = error  # Spark keeps no more than the text of it
                raise

    def _steps(self, files: list[tuple[str, int]]) -> list[list[tuple[str, int]]]:
        """The files of a batch as they are judged together, those first that changed first; at least one step.

        What a step came to is kept: killed in the middle, a stream goes on behind its last step. Each has room for
        twice as much as the one before: the fewer there are, the more runs are judged side by side.
        """
        steps, size = [list[tuple[str, int]]()], 0
        for path, at in sorted(files, key=lambda file: (file[1], file[0])):
            of = max(fingerprint(path)[0], 0)
            if steps[-1] and size + of > self._room:
                steps.append([])
                size = 0
                self._room *= 2
            steps[-1].append((path, at))
            size += of
        return [sorted(step) for step in steps]

    def _final(self) -> None:
        """Read what waits, without waiting any longer."""
        with self._busy:
            self._advanced_at = time.monotonic()
            if self.state.orphans or any(t.waiting for t in self.state.runs.values()):
                self._advance(self.state.batch, [], final=True)

    def _known(self) -> set[str]:
        """Files that were opened."""
        opened = {p for t in self.state.runs.values() for p in (*t.stamps, *t.held)}
        return opened | self.state.orphans.keys()

    def _take_missed(self, patient: bool = True) -> bool:
        """Take files that changed after they were read, and those that Spark missed; whether there were any of these.

        With `patient`, only missed files are taken that were there, unchanged, at the last look, if Spark brought
        nothing since: it may be about to bring them.
        """
        with self._busy:
            known = self._known() | set(self.state.unread)
            missed = {
                path: fingerprint(path)
                for path in map(str, histories_in(self.source))
                if path not in known and not self._hidden(path) and not self._another(path)
            }
            old = {} if self._looked_after != self.state.batch else self._missed
            left = [
                (path, stamp[1])
                for path, stamp in missed.items()
                if stamp != GONE and (not patient or old.get(path) == stamp)
            ][:FILES]
            self._missed, self._looked_after = missed, self.state.batch
            if left or any(self._changed()):
                for step in self._steps(left):
                    self._advance(self.state.batch, step, final=False)
            return bool(left)

    def _hidden(self, path: str) -> bool:
        """Whether Spark ignores a file of this name: so it may be written under it, and renamed."""
        inner = Path(path).relative_to(self.source)
        return any(name.startswith((".", "_")) for name in inner.parts)

    def _another(self, path: str) -> bool:
        """Whether this is another name of a file that is read under its own: a link, or behind a link to a folder."""
        real = os.path.realpath(path)
        return (
            real != path
            and Path(real).is_relative_to(self.source)
            and named_as_history(real)
            and not self._hidden(real)
        )

    def _changed(self) -> Iterator[tuple[str, str, Fingerprint, Fingerprint]]:
        """Files that are not what they were: run ('' if they could not be opened), path, what they were and are."""
        known = [("", self.state.unread), *((r, t.stamps) for r, t in self.state.runs.items())]
        for run, stamps in known:
            for path, stamp in stamps.items():
                now = fingerprint(path)
                if now not in (stamp, GONE):
                    yield run, path, stamp, now

    def _advance(self, number: int, files: list[tuple[str, int]], final: bool) -> None:
        begun = time.monotonic()
        before = self._begin_step(len(files))
        state = msgspec.structs.replace(
            before,
            runs=dict(before.runs),
            names=dict(before.names),
            refused=list(before.refused),
            unread=dict(before.unread),
            changed=list(before.changed),
            clocks=dict(before.clocks),
            orphans={},
            batch=number,
        )
        changed: dict[str, dict[str, Fingerprint]] = defaultdict(dict)
        for run, path, stamp, now in self._changed():
            if run:
                changed[run][path] = now
                if all(r.source != path for r in state.changed):
                    state.changed.append(whole(path, _how(stamp, now)))
            elif all(path != new for new, _ in files):
                files = [*files, (path, now[1])]
        state.newest = max([state.newest, *(at for _, at in files)])
        arrived = self._arrivals(state, [*files, *before.orphans.items()], final)
        # Runs that wait may go on because files of others arrived.
        touched = {*arrived, *changed, *(r for r, t in state.runs.items() if t.waiting)}
        into = f"batch-{number:08d}-{uuid.uuid4().hex[:8]}"
        (self.out / into).mkdir()
        updates = [
            RunUpdate(
                str(self.out),
                f"{into}/{n:06d}",
                state.runs.get(run, RunSummary(run)),
                arrived.get(run, []),
                state.newest,
                self.lateness,
                final,
                changed.get(run, {}),
            )
            for n, run in enumerate(sorted(touched))
        ]
        failed = 0
        if updates:
            rows = [(msgspec.json.encode(u).decode(),) for u in updates]
            updated = update_runs(
                frame(self.spark, rows, UPDATE_SCHEMA, len(rows)), self.properties, self._files
            )
            for row in updated.collect():
                run_ = msgspec.msgpack.decode(bytes(row["updated"]), type=UpdatedRun)
                if run_.error:
                    raise PipelineError(run_.error)
                failed += run_.failed
                state.runs[run_.summary.run] = run_.summary
        write_whole(self.out / "stream.json", msgspec.json.encode(state), ours=True)
        self.state = state
        self._advanced_at = time.monotonic()
        self._publish()
        sweep(self.out, self.state)
        self._report(before, files, time.monotonic() - begun, failed)

    def _begin_step(self, files: int) -> StreamState:
        """Say that so many files are being judged; gives the state before."""
        if self.on_step is not None:
            self.on_step(files)
        return self.state

    def _report(
        self, before: StreamState, files: list[tuple[str, int]], seconds: float, failed: int
    ) -> None:
        """Report the progress of a batch of these files (path and change in ns) that took so many seconds."""
        if self.on_progress is not None:
            oldest = min((at for _, at in files), default=None)
            lag = None if oldest is None else max(time.time() - oldest / 1e9, 0.0)
            new = _events(self.state) - _events(before)
            progress = self._progress(new, seconds, lag)
            self.on_progress(msgspec.structs.replace(progress, failed=failed))

    def _arrivals(
        self, state: StreamState, files: Sequence[tuple[str, int]], final: bool
    ) -> dict[str, list[ArrivedFile]]:
        """By run: the files that belong to it. Those that may continue one that has not come are put into the state."""
        arrived: dict[str, list[ArrivedFile]] = defaultdict(list)
        for path, at in files:
            waits = not final and at > state.newest - self.lateness
            self._arrive(state, path, at, arrived, waits)
        for path in list(state.orphans):  # what they continue may have come after them
            self._arrive(state, path, state.orphans.pop(path), arrived, waits=True)
        return arrived

    def _arrive(
        self,
        state: StreamState,
        path: str,
        changed: int,
        arrived: dict[str, list[ArrivedFile]],
        waits: bool,
    ) -> None:
        """Say of which run a file is; with `waits` one that begins in the middle may wait for what it continues."""
        name = stem(Path(path))
        own = name if state.names.setdefault(name, path) == path else path
        stamp = fingerprint(path)
        if state.unread.pop(path, None) is not None:
            state.refused = [r for r in state.refused if r.source != path]
        try:
            reader = Reader(path, run=own)
            header, begun = reader.header, None
            if not reader.names_run and begins_in_the_middle(Path(path)):
                begun = self._continued(state, path, header, arrived)
                if begun is None and waits:
                    state.orphans[path] = changed
                    return
                header = begun or header
            first = next((e for e in Reader(path, run=own) if isinstance(e, Event)), None)
            # What a later part of a recorder begins with may be of another clock.
            mine = header.clk or (first.clk if first and first.i <= 1 else "")
            if mine:
                clk, other = state.clocks.setdefault(header.run, (mine, path))
                if clk != mine:
                    raise HistoryError(two_clocks(header.run, mine, clk, other))
        except HistoryError as error:
            state.refused.append(whole(path, error))
            state.unread[path] = stamp
            return
        at = first.i if first else 0
        arrived[header.run].append(ArrivedFile(path, header.rec, at, changed, begun))

    def _continued(
        self,
        state: StreamState,
        path: str,
        header: Header,
        arrived: dict[str, list[ArrivedFile]],
    ) -> Header | None:
        """The header of the recording that a file is a later part of, among those of its folder that were opened."""
        nameless = {Path(path): header}
        others: dict[Path, Header] = {}
        opened = {p for t in state.runs.values() for p in (*t.stamps, *t.held)}
        for mate in opened | {f.path for files in arrived.values() for f in files}:
            if Path(mate).parent == Path(path).parent and Path(mate).exists():
                own = stem(Path(mate)) if state.names.get(stem(Path(mate))) == mate else mate
                reader = Reader(mate, run=own)
                (others if reader.names_run else nameless)[Path(mate)] = reader.header
        found = continued(nameless, others, self._edges)
        return found[Path(path)][1] if Path(path) in found else None

    def _edges(self, path: Path) -> PartEdges:
        """The edges of a file, which is read once for them."""
        stamp = fingerprint(str(path))
        known = self._edges_read.get(path)
        if known is None or known[0] != stamp:
            known = self._edges_read[path] = stamp, edges(path)
        return known[1]

    def report(self) -> found.AuditReport:
        """The results so far, as those of an audit; rejected lines are in `left_out`."""
        summaries = [t for _, t in sorted(self.state.runs.items())]
        runs: dict[str, found.RunStatistics] = {}
        for t in summaries:
            for s in t.statistics or [found.RunStatistics(t.run)]:
                runs[s.run] = runs[s.run] + s if s.run in runs else s
        files: list[FileCount] = [f for t in summaries for f in t.files]
        findings = [f for t in summaries for f in t.findings]
        return found.report(
            "spark", Plan([], []), findings, self._whole_files(), runs.values(), files
        )

    def left_out(self, most: int) -> list[Rejected]:
        """The first rejected lines of each file, at most so many, and with line 0 whole files."""
        return tables.first_of_each(self._rejected(), most)

    def _rejected(self) -> Iterable[pa.RecordBatch]:
        names = [n for t in self.state.runs.values() for n in t.quarantine]
        return tables.quarantine(self.out, names, self._whole_files())

    def _whole_files(self) -> list[Rejected]:
        """The files in quarantine as a whole, or from where they ended when they were read."""
        return [*self.state.refused, *self.state.changed]

    def _publish(self) -> None:
        """Write the tables, which depend only on the state."""
        report = self.report()
        measured: dict[str, Measures] = {}
        for summary in self.state.runs.values():
            if summary.measures:
                held = msgspec.msgpack.decode(summary.measures, type=dict[str, MeasuresState])
                measured |= {run: Measures.of_state(state) for run, state in held.items()}
        rows = tables.rows_of(report, self.properties) | tables.rows_measured(measured)
        tables.write(self.out, rows, self._rejected())

    def _progress(self, new: int, seconds: float, lag: float | None) -> StreamProgress:
        report = self.report()
        return StreamProgress(
            batch=self.state.batch,
            files=len(report.files) + len(self.state.refused),
            events=report.statistics["events"],
            rejected=report.statistics["rejected"],
            late=sum(t.late for t in self.state.runs.values()),
            waiting=sum(t.waiting for t in self.state.runs.values()) + len(self.state.orphans),
            refused=len(self.state.refused),
            changed=len(self.state.changed),
            violated=[f"{f.subject} {f.property}" for f in report.findings if f.n_violations],
            violations=sum(f.n_violations for f in report.findings),
            backlog={(t.run, q): n for t in self.state.runs.values() for q, n in t.backlog.items()},
            new=new,
            seconds=seconds,
            lag=lag,
        )


def _named(state: StreamState) -> set[str]:
    """The files of a state that are needed, relative to the stream's folder."""
    return {
        name for s in state.runs.values() for name in (s.state, *s.quarantine, *s.settled) if name
    }


def _names() -> str:
    """The pattern, as Spark's source matches names, of histories in capitals or not."""
    letters = (f"[{c}{c.upper()}]" if c.isalpha() else c for c in ",".join(SUFFIXES))
    return f"*{{{''.join(letters)}}}"


def _events(state: StreamState) -> int:
    return sum(f.events for summary in state.runs.values() for f in summary.files)


def _how(was: Fingerprint, now: Fingerprint) -> str:
    """How a file changed, and what that means."""
    length = (
        f"it had {was[0]:,} bytes and has {now[0]:,}" if was[0] != now[0] else "as long as before"
    )
    return f"changed after it was read ({length}); what is new in it is not read"


def _local(uri: str) -> str:
    """The path behind Spark's ``file:/...``, in which nothing is escaped."""
    return "/" + uri.removeprefix("file:").lstrip("/")
