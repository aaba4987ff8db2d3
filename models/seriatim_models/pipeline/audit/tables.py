"""What an audit leaves behind as Parquet: one file a table, all of schema version `SCHEMA`.

`SCHEMAS` is the documentation of the columns; every file carries the version in its key-value metadata.
    seriatim-audit/2   a property may be judged in several forms: column `form` in verdicts and witnesses
    seriatim-audit/1   one row for each run and property

``<folder>/tables`` is a link to the folder of the latest audit, put in place by one rename: who opens it sees all of
the old tables or all of the new ones.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from seriatim_models.files import place_within
from seriatim_models.history import Rejected, table
from seriatim_models.pipeline.audit import chunks
from seriatim_models.pipeline.audit.findings import AuditReport, form
from seriatim_models.pipeline.audit.metrics import Measures
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.properties.base import AnyProperty

SCHEMA = "seriatim-audit/2"
_KEY = b"seriatim"


def _columns(**types: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(n, t) for n, t in types.items()])


_TEXT, _INT, _REAL = pa.string(), pa.int64(), pa.float64()

SCHEMAS: Mapping[str, pa.Schema] = {
    # One row for each run, property and form of it (`findings.form`). `verdict` is ok, violated or inconclusive.
    "verdicts": _columns(
        run=_TEXT, property=_TEXT, form=_TEXT, verdict=_TEXT, n_tested=_INT, n_untestable=_INT,
        n_violations=_INT, explanation=_TEXT,
    ),
    # The events of each smallest witness, `place` from 0, with all columns of qh/1.
    "witnesses": pa.schema(
        [*_columns(subject=_TEXT, property=_TEXT, form=_TEXT, place=_INT), *table.SCHEMA]
    ),
    # ns from one event to another (`measures`), by metric, window and queue; quantiles are at most 9.1 % too high.
    "latency": _columns(
        run=_TEXT, metric=_TEXT, window=_INT, q=_TEXT, n=_INT, p50=_INT, p90=_INT, p99=_INT, max=_INT,
    ),
    # Deliveries by window, queue and consumer, the consumer's share, and Jain's index of the queue in that window
    # (1 is fair, 1/consumers is one of them getting all).
    "fairness": _columns(
        run=_TEXT, window=_INT, q=_TEXT, consumer=_TEXT, n=_INT, share=_REAL, jain=_REAL,
    ),
    # By channel: its limit, deliveries under it, and how many were outstanding at them (mean, most, mean over limit).
    "prefetch": _columns(
        run=_TEXT, channel=_TEXT, prefetch=_INT, n=_INT, mean=_REAL, max=_INT, use=_REAL,
    ),
    # Every rejected line; with line 0 a file or the rest of one. `text` is its start.
    "quarantine": chunks.QUARANTINE,
    # lines == header + blank + events + rejected
    "files": _columns(source=_TEXT, lines=_INT, header=_INT, blank=_INT, events=_INT, rejected=_INT),
    # What was in each run. `gaps` are the places where lines were lost.
    "runs": _columns(run=_TEXT, events=_INT, gaps=_INT),
}  # fmt: skip


def rows_of(report: AuditReport, properties: Sequence[AnyProperty]) -> dict[str, pa.Table]:
    """The tables that an audit's report fills. `properties` are those that were judged, in their order."""
    verdicts, witnesses = [], [SCHEMAS["witnesses"].empty_table()]
    for f, prop in zip(
        report.findings, cycle(properties), strict=False
    ):  # of each run, all of them
        assert f.property == prop.id, f"{f.subject}: {f.property} stands where {prop.id} should"
        of = form(prop)
        verdicts.append(
            {
                "run": f.subject, "property": f.property, "form": of, "verdict": str(f.verdict),
                "n_tested": f.n_tested, "n_untestable": f.n_untestable,
                "n_violations": f.n_violations, "explanation": f.explanation,
            }
        )  # fmt: skip
        if f.witness:
            held = pa.table(table.columns(f.witness))
            n = len(held)
            first = {
                "subject": pa.array([f.subject] * n),
                "property": pa.array([f.property] * n),
                "form": pa.array([of] * n),
                "place": pa.array(range(n), _INT),
            }
            witnesses.append(
                pa.table({**first, **dict(zip(held.column_names, held.columns, strict=True))})
            )
    files = [{n: getattr(f, n) for n in SCHEMAS["files"].names} for f in report.files]
    runs = [{"run": r.run, "events": r.events, "gaps": r.gaps} for r in report.runs]
    return {
        "verdicts": pa.Table.from_pylist(verdicts, SCHEMAS["verdicts"]),
        "witnesses": pa.concat_tables([w.cast(SCHEMAS["witnesses"]) for w in witnesses]),
        "files": pa.Table.from_pylist(files, SCHEMAS["files"]),
        "runs": pa.Table.from_pylist(runs, SCHEMAS["runs"]),
    }


def rows_measured(measured: Mapping[str, Measures]) -> dict[str, pa.Table]:
    """The tables of the statistics, from those of each run."""
    out = {}
    for name in ("latency", "fairness", "prefetch"):
        rows = [row for run, m in sorted(measured.items()) for row in getattr(m, name)(run)]
        out[name] = pa.Table.from_pylist(rows, SCHEMAS[name])
    return out


def quarantine(
    folder: Path, files: Iterable[str], refused: Sequence[object]
) -> Iterable[pa.RecordBatch]:
    """The rejected lines in files of that schema under `folder`, after whole files that were refused.

    Raises `PipelineError`.
    """
    if refused:
        rows = [msgspec.to_builtins(r) for r in refused]
        yield from pa.Table.from_pylist(rows, chunks.QUARANTINE).to_batches()
    for name in files:
        path = place_within(folder, name, PipelineError)
        with chunks.opened(path) as file:
            if not file.schema_arrow.equals(chunks.QUARANTINE):
                raise PipelineError(f"{path}: has other columns than rejected lines have")
            yield from file.iter_batches()


def first_of_each(rejected: Iterable[pa.RecordBatch], most: int) -> list[Rejected]:
    """The first rejected lines of each source, at most so many."""
    taken: Counter[str] = Counter()
    out = []
    for batch in rejected:
        for row in batch.to_pylist():
            taken[row["source"]] += 1
            if taken[row["source"]] <= most:
                out.append(msgspec.convert(row, Rejected))
    return out


def write(folder: Path, tables: Mapping[str, pa.Table], rejected: Iterable[pa.RecordBatch]) -> Path:
    """Write all tables and put them in place at once; returns the link to them."""
    inside = folder / f"tables-{uuid.uuid4().hex[:12]}"
    inside.mkdir(parents=True)
    for name, rows in tables.items():
        pq.write_table(
            rows.replace_schema_metadata({_KEY: SCHEMA}),
            inside / f"{name}.parquet",
            compression="zstd",
        )
    schema = chunks.QUARANTINE.with_metadata({_KEY: SCHEMA})
    with pq.ParquetWriter(inside / "quarantine.parquet", schema, compression="zstd") as out:
        for batch in rejected:
            out.write_batch(batch.replace_schema_metadata(schema.metadata))
    link = folder / "tables"
    fresh = folder / f"tables.{os.getpid()}"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(inside.name)
    try:
        fresh.replace(link)
    except OSError:  # a folder of somebody else's is there
        fresh.unlink()
        raise
    for old in folder.glob("tables-*"):
        if old != inside:
            shutil.rmtree(old, ignore_errors=True)
    return link


def read(folder: Path) -> dict[str, pa.Table]:
    """The tables under an output folder. Raises `PipelineError` if there are none of this version."""
    out = {}
    for name in SCHEMAS:
        path = folder / "tables" / f"{name}.parquet"
        with chunks.opened(path) as file:
            rows = file.read()
        if (rows.schema.metadata or {}).get(_KEY) != SCHEMA.encode():
            raise PipelineError(f"{path}: not of schema {SCHEMA}")
        out[name] = rows
    return out
