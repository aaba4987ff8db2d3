"""Judging a folder while it grows: Structured Streaming finds new files, every batch moves the runs they belong to.

What a batch does to the state is a function of the state before it and of its files, so a batch that was killed can
be run again:

    stream.json        the state: which batch was the last, and of each run where its state is and what it comes to
    batch-*/           states of runs and rejected lines, written by the batch of that number
    checkpoint/        Spark's own: which files belong to which batch
    tables/            the tables of an audit (`tables`), after the last batch

`stream.json` is put in place by one rename. A batch of a number that is in it already has been done and is left out;
files that it does not name are left over from a batch that was killed.
What files do to a run, and what becomes of late ones, is in `live`.
"""

from __future__ import annotations

import shutil
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from seriatim_models.history import Event, HistoryError, Rejected
from seriatim_models.history.reading import SUFFIXES, Reader, stem
from seriatim_models.pipeline import findings as found
from seriatim_models.pipeline import tables
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.pipeline.ingest import locked
from seriatim_models.pipeline.live import Arrived, Live, Told
from seriatim_models.pipeline.measures import Measures
from seriatim_models.pipeline.runs import FileCount, Plan
from seriatim_models.pipeline.session import frame
from seriatim_models.properties.base import AnyProperty

SCHEMA = "seriatim-stream/1"
LATENESS = 10.0  # seconds
IDLE = 30.0  # seconds
FILES = 64
"""Files of one batch at most."""

STEP_SCHEMA = T.StructType([T.StructField("step", T.StringType(), False)])
"""A `Step` as JSON."""
TOLD_SCHEMA = T.StructType([T.StructField("told", T.BinaryType(), False)])
"""A `live.Told` as msgpack."""
FILE_SCHEMA = T.StructType(
    [
        T.StructField("path", T.StringType(), False),
        T.StructField("changed", T.LongType(), False),  # microseconds
    ]
)


_LISTING = "path string, modificationTime timestamp, length long, content binary"
"""What Spark calls binaryFile."""


class State(msgspec.Struct):
    """What the stream has come to."""

    batch: int = -1
    newest: int = 0
    """The latest change of any file, ns."""
    runs: dict[str, Told] = {}
    names: dict[str, str] = {}
    """Of runs named after a file: the file."""
    refused: list[Rejected] = []
    """Files that could not even be opened."""
    schema: str = SCHEMA


class Step(msgspec.Struct, frozen=True):
    """What one task does: move one run."""

    folder: str
    into: str
    """Where its new state goes, without suffix."""
    before: Told
    arrived: list[Arrived]
    newest: int
    lateness: int
    final: bool


class Progress(msgspec.Struct, frozen=True):
    """Told after each batch."""

    batch: int
    files: int
    events: int
    rejected: int
    late: int
    waiting: int
    violated: list[str]
    """``run property`` of each conviction."""
    seconds: float


def steps(works: DataFrame, properties: Sequence[AnyProperty]) -> DataFrame:
    """`STEP_SCHEMA` to `TOLD_SCHEMA`: writes the new states and says what the runs come to."""

    def mapped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for raw in batch["step"].to_pylist():
                told = _moved(msgspec.json.decode(raw, type=Step), properties)
                yield pa.RecordBatch.from_arrays(
                    [pa.array([msgspec.msgpack.encode(told)], pa.binary())], names=["told"]
                )

    return works.mapInArrow(mapped, TOLD_SCHEMA)


def _moved(step: Step, properties: Sequence[AnyProperty]) -> Told:
    folder = Path(step.folder)
    before = step.before
    live = Live.load(folder, before.state) if before.state else Live(before.run, properties)
    live.take(step.arrived, step.newest, step.lateness, step.final)
    live.save(folder, step.into)
    return live.told


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
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.spark = spark
        self.source = Path(source).resolve()
        self.out = Path(out).resolve()
        if not self.source.is_dir():
            raise PipelineError(f"{source}: is no folder to watch")
        if self.out == self.source or self.source in self.out.parents:
            raise PipelineError(f"{out}: must not lie in the folder that is watched")
        self.properties = tuple(properties)
        self.lateness = int(lateness * 1e9)
        self.on_progress = on_progress
        self._busy = threading.Lock()
        self._moved_at = time.monotonic()
        self.out.mkdir(parents=True, exist_ok=True)
        self.state = self._read()

    def _read(self) -> State:
        path = self.out / "stream.json"
        if not path.exists():
            return State()
        try:
            state = msgspec.json.decode(path.read_bytes(), type=State)
        except msgspec.DecodeError as error:
            raise PipelineError(f"{path}: not the state of a stream: {error}") from error
        if state.schema != SCHEMA:
            raise PipelineError(f"{path}: field schema: {state.schema!r}, not {SCHEMA!r}")
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
            self._sweep()
            self._publish()
            reader = self.spark.readStream.format("binaryFile").schema(_LISTING)
            reader = reader.option("recursiveFileLookup", "true").option(
                "maxFilesPerTrigger", files
            )
            suffixes = ",".join(s.removeprefix(".") for s in SUFFIXES)
            reader = reader.option("pathGlobFilter", f"*.{{{suffixes}}}")
            # The content is not asked for and so not read.
            new = reader.load(self.source.as_uri()).select(
                "path", F.unix_micros("modificationTime").alias("changed")
            )
            writer = new.writeStream.foreachBatch(self._batch)
            writer = writer.option("checkpointLocation", str(self.out / "checkpoint"))
            writer = (
                writer.trigger(availableNow=True)
                if once
                else writer.trigger(processingTime=f"{int(every * 1000)} milliseconds")
            )
            self._moved_at = time.monotonic()
            query = writer.start()
            try:
                while query.isActive and not stopping():
                    time.sleep(0.1)
                    if not once and time.monotonic() - self._moved_at > idle:
                        self._final()
                if not query.isActive and query.exception() is not None:
                    said = str(query.exception()).strip().splitlines()[0]
                    raise PipelineError(f"the stream broke off: {said}")
            finally:
                with self._busy:  # let the batch under way come to its end
                    query.stop()
            if once and not stopping():
                self._final()

    def _batch(self, frame_: DataFrame, number: int) -> None:
        """Spark's `foreachBatch`; may come a second time with the same number and the same files."""
        with self._busy:
            if number <= self.state.batch:
                return
            rows = [(_local(r["path"]), r["changed"] * 1000) for r in frame_.collect()]
            self._move(number, sorted(rows), final=False)

    def _final(self) -> None:
        """Nobody waits any more."""
        with self._busy:
            self._moved_at = time.monotonic()
            if any(t.waiting for t in self.state.runs.values()):
                self._move(self.state.batch, [], final=True)

    def _move(self, number: int, files: list[tuple[str, int]], final: bool) -> None:
        begun = time.monotonic()
        state = msgspec.structs.replace(
            self.state,
            runs=dict(self.state.runs),
            names=dict(self.state.names),
            refused=list(self.state.refused),
            batch=number,
        )
        state.newest = max([state.newest, *(changed for _, changed in files)])
        arrived: dict[str, list[Arrived]] = defaultdict(list)
        for path, changed in files:
            self._arrive(state, path, changed, arrived)
        # Those who wait may go on because others arrived.
        touched = set(arrived) | {r for r, t in state.runs.items() if t.waiting}
        into = f"batch-{number:08d}-{uuid.uuid4().hex[:8]}"
        (self.out / into).mkdir()
        works = [
            Step(
                str(self.out),
                f"{into}/{n:06d}",
                state.runs.get(run, Told(run)),
                arrived.get(run, []),
                state.newest,
                self.lateness,
                final,
            )
            for n, run in enumerate(sorted(touched))
        ]
        if works:
            rows = [(msgspec.json.encode(w).decode(),) for w in works]
            moved = steps(frame(self.spark, rows, STEP_SCHEMA, len(rows)), self.properties)
            for row in moved.collect():
                told = msgspec.msgpack.decode(bytes(row["told"]), type=Told)
                state.runs[told.run] = told
        fresh = self.out / "stream.json.new"
        fresh.write_bytes(msgspec.json.encode(state))
        fresh.replace(self.out / "stream.json")
        self.state = state
        self._moved_at = time.monotonic()
        self._publish()
        self._sweep()
        if self.on_progress is not None:
            self.on_progress(self._progress(time.monotonic() - begun))

    def _arrive(
        self, state: State, path: str, changed: int, arrived: dict[str, list[Arrived]]
    ) -> None:
        name = stem(Path(path))
        own = name if state.names.setdefault(name, path) == path else path
        try:
            header = Reader(path, run=own).header
            first = next((e.i for e in Reader(path, run=own) if isinstance(e, Event)), 0)
        except HistoryError as error:
            reason = str(error).removeprefix(f"{path}: ")
            state.refused.append(Rejected(source=path, line=0, offset=0, reason=reason, text=""))
            return
        arrived[header.run].append(Arrived(path, header.rec, first, changed))

    def report(self) -> found.AuditReport:
        """What the stream comes to so far, as an audit says it; without the rejected lines."""
        told = [t for _, t in sorted(self.state.runs.items())]
        runs: dict[str, found.RunStatistics] = {}
        for t in told:
            for s in t.statistics or [found.RunStatistics(t.run)]:
                runs[s.run] = runs[s.run] + s if s.run in runs else s
        files: list[FileCount] = [f for t in told for f in t.files]
        findings = [f for t in told for f in t.findings]
        return found.report(
            "spark", Plan([], []), findings, self.state.refused, runs.values(), files
        )

    def _publish(self) -> None:
        """The tables, a function of the state."""
        report = self.report()
        measured: dict[str, Measures] = {}
        for told in self.state.runs.values():
            if told.measures:
                packed = msgspec.msgpack.decode(told.measures, type=dict[str, bytes])
                measured |= {run: Measures.unpacked(raw) for run, raw in packed.items()}
        names = [n for t in self.state.runs.values() for n in t.quarantine]
        rows = tables.rows_of(report) | tables.rows_measured(measured)
        tables.write(self.out, rows, tables.quarantine(self.out, names, self.state.refused))

    def _sweep(self) -> None:
        """Delete what the state does not name."""
        named = set[str]()
        for told in self.state.runs.values():
            named.update(Path(p).parts[0] for p in (told.state, *told.quarantine) if p)
        for folder in self.out.glob("batch-*"):
            if folder.name not in named:
                shutil.rmtree(folder, ignore_errors=True)

    def _progress(self, seconds: float) -> Progress:
        report = self.report()
        return Progress(
            batch=self.state.batch,
            files=len(report.files) + len(self.state.refused),
            events=report.statistics["events"],
            rejected=report.statistics["rejected"],
            late=sum(t.late for t in self.state.runs.values()),
            waiting=sum(t.waiting for t in self.state.runs.values()),
            violated=[f"{f.subject} {f.property}" for f in report.findings if f.n_violations],
            seconds=seconds,
        )


def _local(uri: str) -> str:
    """The path behind Spark's ``file:/...``, in which nothing is escaped."""
    return "/" + uri.removeprefix("file:").lstrip("/")


__all__ = ["Progress", "State", "Stream", "steps"]
