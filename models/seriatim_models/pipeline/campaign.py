"""Searches by the thousand over executors: programs, strategies, seeds and bounds.

    journal/*.jsonl      outcomes as they come, a line each; a campaign that is run again leaves these items out
    stop                 while this file is there, nobody begins anything
    results.parquet      one row an item: verdict and cost
    bugs.parquet         one row a distinct bug: what, where, its canonical trace, the shortest token, how often found
    coverage.parquet     one row a program and mutant: distinct traces, executions, seconds

All are of schema version `SCHEMA`. The folder must be one that driver and executors share.
Items go out in batches, because a task costs tens of milliseconds; each batch works in a child process (`guarded`).
"""

from __future__ import annotations

import base64
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.pipeline.guarded import outcomes
from seriatim_models.pipeline.ingest import locked
from seriatim_models.pipeline.items import Item, Outcome
from seriatim_models.pipeline.session import frame

SCHEMA = "seriatim-campaign/1"
PARTITIONS = 64
TIMEOUT = 300.0  # seconds
MEMORY = 2 * 2**30  # bytes

ITEM_SCHEMA = T.StructType([T.StructField("item", T.StringType(), False)])
"""An `Item` as JSON."""
OUTCOME_SCHEMA = T.StructType([T.StructField("outcome", T.StringType(), False)])
"""An `Outcome` as JSON."""
_OUTCOMES = pa.schema([("outcome", pa.string())])

_TEXT, _INT, _REAL = pa.string(), pa.int64(), pa.float64()
TABLES = {
    "results": pa.schema(
        [
            ("id", _TEXT), ("program", _TEXT), ("mutant", _TEXT), ("strategy", _TEXT), ("seed", _INT),
            ("executions", _INT), ("max_steps", _INT), ("preemptions", _INT), ("verdict", _TEXT),
            ("why", _TEXT), ("complete", _INT), ("blocked", _INT), ("cut", _INT), ("steps", _INT),
            ("traces", _INT), ("seconds", _REAL), ("bug", _TEXT), ("token", _TEXT), ("trace", _TEXT),
        ]
    ),
    "bugs": pa.schema(
        [
            ("program", _TEXT), ("mutant", _TEXT), ("bug", _TEXT), ("trace", _TEXT), ("token", _TEXT),
            ("found", _INT),
        ]
    ),
    "coverage": pa.schema(
        [
            ("program", _TEXT), ("mutant", _TEXT), ("items", _INT), ("executions", _INT),
            ("traces", _INT), ("seconds", _REAL),
        ]
    ),
}  # fmt: skip


class Progress(msgspec.Struct, frozen=True):
    """How far a campaign is."""

    done: int
    total: int
    bugs: int
    rate: float
    """Items a second since this start."""
    left: float | None
    """Seconds, estimated; None before the first item has ended."""


class Campaign(msgspec.Struct):
    """What a campaign came to."""

    outcomes: list[Outcome]
    total: int
    seconds: float

    @property
    def finished(self) -> bool:
        """Whether every item was tried."""
        return len(self.outcomes) == self.total

    def bugs(self) -> dict[tuple[str, str, str, str], list[Outcome]]:
        """Distinct bugs by program, mutant, kind and canonical trace."""
        out: dict[tuple[str, str, str, str], list[Outcome]] = defaultdict(list)
        for o in self.outcomes:
            if o.bug:
                out[o.item.program, o.item.mutant, o.bug, o.trace].append(o)
        return dict(out)

    def coverage(self) -> dict[tuple[str, str], set[bytes]]:
        """The traces seen, by program and mutant."""
        out: dict[tuple[str, str], set[bytes]] = defaultdict(set)
        for o in self.outcomes:
            raw = base64.b64decode(o.names)
            out[o.item.program, o.item.mutant].update(
                raw[k : k + 16] for k in range(0, len(raw), 16)
            )
        return dict(out)


def tried(work: DataFrame, folder: Path, timeout: float, memory: int, first_bug: bool) -> DataFrame:
    """`ITEM_SCHEMA` to `OUTCOME_SCHEMA`; every outcome is in the journal as soon as it is known."""
    out, stop = str(folder), str(folder / "stop")

    def mapped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # All of the input first: a worker that leaves some of it is thrown away.
        items = [
            msgspec.json.decode(raw, type=Item) for b in batches for raw in b["item"].to_pylist()
        ]
        if not items:
            return
        flag = Path(stop)
        journal = Path(out, "journal", f"{uuid.uuid4().hex}.jsonl")
        with journal.open("wb") as file:
            for outcome in outcomes(items, timeout, memory, flag.exists):
                said = msgspec.json.encode(outcome)
                file.write(said + b"\n")
                file.flush()
                if first_bug and outcome.bug:
                    flag.touch()
                yield pa.RecordBatch.from_arrays([pa.array([said.decode()])], schema=_OUTCOMES)

    return work.mapInArrow(mapped, OUTCOME_SCHEMA)


def journal(folder: Path) -> dict[str, Outcome]:
    """The outcomes in a folder's journal, by item. A last line that was cut off is left out."""
    out: dict[str, Outcome] = {}
    for path in sorted((folder / "journal").glob("*.jsonl")):
        for line in path.read_bytes().split(b"\n"):
            try:
                outcome = msgspec.json.decode(line, type=Outcome)
            except msgspec.DecodeError:
                continue
            out[outcome.id] = outcome
    return out


def campaign(
    spark: SparkSession,
    items: Sequence[Item],
    folder: str | Path,
    *,
    timeout: float = TIMEOUT,
    memory: int = MEMORY,
    first_bug: bool = False,
    partitions: int = PARTITIONS,
    on_progress: Callable[[Progress], None] | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> Campaign:
    """Try every item that the folder's journal does not have, and write the tables.

    Ends early when `stopping` says so, or with `first_bug` at the first bug: then the journal is where to go on.
    Raises `PipelineError` if another campaign is at work in the folder.
    """
    if not items:
        raise PipelineError("a campaign without items")
    folder = Path(folder).resolve()
    (folder / "journal").mkdir(parents=True, exist_ok=True)
    with locked(folder):
        (folder / "stop").unlink(missing_ok=True)
        begun = time.monotonic()
        known = journal(folder)
        wanted = {i.id for i in items}
        left = [i for i in items if i.id not in known]
        if first_bug and any(known[i].bug for i in wanted & set(known)):
            left = []
        if left:
            _tried(
                spark,
                left,
                len(wanted),
                folder,
                timeout,
                memory,
                first_bug,
                partitions,
                on_progress,
                stopping,
            )
        found = [o for o in journal(folder).values() if o.id in wanted]
        done = Campaign(sorted(found, key=lambda o: o.id), len(wanted), time.monotonic() - begun)
        write(folder, done)
    return done


def _tried(
    spark: SparkSession,
    left: list[Item],
    total: int,
    folder: Path,
    timeout: float,
    memory: int,
    first_bug: bool,
    partitions: int,
    on_progress: Callable[[Progress], None] | None,
    stopping: Callable[[], bool],
) -> None:
    rows = [(msgspec.json.encode(i).decode(),) for i in left]
    work = tried(frame(spark, rows, ITEM_SCHEMA, partitions), folder, timeout, memory, first_bug)
    failed: list[BaseException] = []

    def job() -> None:
        try:
            # Counted, not collected: what came is in the journal.
            work.foreach(lambda _: None)
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=job, daemon=True)
    begun = time.monotonic()
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.25)
            if stopping():
                (folder / "stop").touch()
            if on_progress is not None:
                on_progress(_progress(folder, len(left), total, begun))
    except BaseException:
        (folder / "stop").touch()
        thread.join(10)
        raise
    if failed:
        said = str(failed[0]).strip().splitlines()[0]
        raise PipelineError(f"the campaign broke off: {said}") from failed[0]


def _progress(folder: Path, left: int, total: int, begun: float) -> Progress:
    known = journal(folder)
    done = len(known)
    fresh = max(done - (total - left), 0)
    spent = max(time.monotonic() - begun, 1e-6)
    rate = fresh / spent
    bugs = len({(o.item.program, o.item.mutant, o.bug, o.trace) for o in known.values() if o.bug})
    return Progress(done, total, bugs, rate, (left - fresh) / rate if fresh else None)


def write(folder: Path, done: Campaign) -> None:
    """The three tables."""
    of_item = [n for n in TABLES["results"].names if n in Item.__struct_fields__]
    of_outcome = [n for n in TABLES["results"].names if n not in of_item]
    results = [
        {n: getattr(o.item, n) for n in of_item} | {n: getattr(o, n) for n in of_outcome}
        for o in done.outcomes
    ]
    bugs = [
        {
            "program": program, "mutant": mutant, "bug": bug, "trace": trace, "found": len(of),
            "token": min((o.token for o in of), key=lambda t: (len(t), t)),
        }
        for (program, mutant, bug, trace), of in sorted(done.bugs().items())
    ]  # fmt: skip
    traces = done.coverage()
    coverage = []
    for program, mutant in sorted({(o.item.program, o.item.mutant) for o in done.outcomes}):
        of = [o for o in done.outcomes if (o.item.program, o.item.mutant) == (program, mutant)]
        coverage.append(
            {
                "program": program, "mutant": mutant, "items": len(of),
                "executions": sum(o.complete + o.blocked + o.cut for o in of),
                "traces": len(traces.get((program, mutant), ())),
                "seconds": sum(o.seconds for o in of),
            }
        )  # fmt: skip
    for name, rows in (("results", results), ("bugs", bugs), ("coverage", coverage)):
        table = pa.Table.from_pylist(rows, TABLES[name].with_metadata({b"seriatim": SCHEMA}))
        fresh = folder / f"{name}.parquet.new"
        pq.write_table(table, fresh, compression="zstd")
        fresh.replace(folder / f"{name}.parquet")
