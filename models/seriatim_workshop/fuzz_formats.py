"""Cases of the fuzz target in every other format that is read, and the accounts of both engines on one file.

A case is a valid document of its format, changed as data where the format can be decoded (a value replaced, dropped,
doubled, exchanged with another), as bytes else and besides, and encoded again.
"""

from __future__ import annotations

import io
import json
import random
import tempfile
import traceback
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

from seriatim_models.conformance import profiles, script
from seriatim_models.conformance.schedules import clients
from seriatim_models.conformance.script import ScriptError, read_script
from seriatim_models.conformance.vectors import VectorError, read_observed, read_vectors
from seriatim_models.files import BadFile, read_document
from seriatim_models.history import HistoryError
from seriatim_models.history.event import Event
from seriatim_models.history.header import Header
from seriatim_models.history.writing import write_history
from seriatim_models.matrix.work import Journal, WrongJournal, header
from seriatim_models.pipeline.audit import chunks, local, tables
from seriatim_models.pipeline.audit import findings as found
from seriatim_models.pipeline.audit.ingest import ingest
from seriatim_models.pipeline.audit.inline import Inline
from seriatim_models.pipeline.audit.runs import plan
from seriatim_models.pipeline.audit.tasks import audit_chunks
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.report.document import SavedVerdicts

ROOT = Path(__file__).resolve().parents[2]
PROFILE = "rabbit-classic.toml"
TOKEN = (
    b"two-takers+published-immediate:sr1.5c7c395b.n1-0.cgEIAR8BUg.550f",
    b"log-files-fail+folder-left-open:sr1.8c7f8f99.n1-0.cgEJAZAB.012f",
)
"""Of an earlier version: none is of this one, so each is refused, changed or not."""

_OPERATIONS: list[dict[str, Any]] = [
    {"type": kind, "f": f, "process": p, "value": value, "time": t, "index": t}
    for t, (kind, f, p, value) in enumerate(
        [
            ("invoke", "enqueue", 0, 1), ("ok", "enqueue", 0, 1), ("invoke", "enqueue", 1, 2),
            ("info", "enqueue", 1, 2), ("invoke", "dequeue", 2, None), ("ok", "dequeue", 2, 1),
            ("invoke", "drain", 2, None), ("ok", "drain", 2, [2]), ("fail", "dequeue", 3, None),
        ]
    )
]  # fmt: skip
_SPANS: dict[str, Any] = {
    "resourceSpans": [{
        "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "s"}}]},
        "scopeSpans": [{"scope": {"name": "opentelemetry.instrumentation.pika"}, "spans": [
            {
                "traceId": "0" * 31 + "1", "spanId": f"{n:016x}", "parentSpanId": "" if kind == 4 else f"{1:016x}",
                "name": f"q {name}", "kind": kind, "startTimeUnixNano": str(n * 10), "endTimeUnixNano": str(n * 10 + 5),
                "attributes": [
                    {"key": "messaging.system", "value": {"stringValue": "rabbitmq"}},
                    {"key": "messaging.destination.name", "value": {"stringValue": "q"}},
                    {"key": "messaging.operation", "value": {"stringValue": name}},
                    {"key": "messaging.message.id", "value": {"stringValue": "m"}},
                ],
            }
            for n, (kind, name) in enumerate([(4, "publish"), (5, "receive"), (5, "process"), (3, "ack")], 1)
        ]}],
    }]
}  # fmt: skip


def _saved(name: str) -> Any:
    """A document of the project as data."""
    return json.loads((ROOT / "spec" / name).read_bytes())


DOCUMENTS: Mapping[str, tuple[Any, Callable[[Path], object]]] = {
    "manifest.json": (
        {
            "units": [{
                "run": "r", "recorders": [[]], "files": [], "quarantine": [], "statistics": [],
                "chunks": {"r": [{"path": "w/0.parquet", "rows": 1, "buckets": {"control": 1}}]},
            }],
            "slice": 1000,
            "schema": chunks.SCHEMA,
        },
        lambda path: chunks.read_manifest(path.parent).paths(),
    ),
    "script.json": (
        {
            "schema": script.SCHEMA, "profile": "any", "violates": "P1", "seed": 1,
            "steps": [{"op": "open", "ch": 1}, {"op": "publish", "ch": 1, "q": "q", "m": "m"}],
        },
        read_script,
    ),
    "vector.json": (_saved("vectors/01-immediate.json"), read_vectors),
    "observed.json": ({"01-immediate": [{"refused": 540}]}, read_observed),
    "clients.json": (
        {"schema": clients.SCHEMA, "factory": "m:f", "clients": {"commands": [[]]}, "token": "t"}, clients.read_clients,
    ),
    "verdicts.json": (
        {
            "schema": "seriatim-verdicts/1", "command": "x", "exit_code": 0, "results": [
                {"property": "P1", "verdict": "ok", "n_tested": 1, "n_untestable": 0, "subject": "s"},
            ],
        },
        lambda path: read_document(path, SavedVerdicts, "no verdicts"),
    ),
    "journal.jsonl": (
        [json.loads(msgspec.json.encode(header("fair", 0))), {"crc32": 2745614147, "result": {}}],
        lambda path: Journal(path, "fair", 0).read(),
    ),
}  # fmt: skip
"""By the end of its name, each document that is kept between commands: a valid one, and what reads it."""


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every container of a document with every key or index in it."""
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree)
    found_here = [(tree, key) for key, _ in inner] if isinstance(tree, dict | list) else []
    for container, key in list(found_here):
        if isinstance(container[key], dict | list):
            found_here += places(container[key])
    return found_here


def changed(choose: random.Random, tree: Any, values: tuple[Any, ...]) -> None:
    """One change of one place of a document, in place."""
    where = places(tree)
    if not where:
        return
    (container, key), (other, name) = choose.choice(where), choose.choice(where)
    match choose.randrange(5):
        case 0:
            del container[key]
        case 1:
            container[key] = json.loads(json.dumps(other[name]))
        case 2 if isinstance(container, dict):
            name = choose.choice(("", "\x00", "value", "time", "a" * 300))
            container[name] = deepcopy(choose.choice(values))
        case 3 if isinstance(container, list):
            container.insert(0, container[key])
        case _:  # a copy: a later change of it would be one of all later cases, and may put it into itself
            container[key] = deepcopy(choose.choice(values))


def edn(value: Any) -> str:
    """A document as EDN, keys of maps as keywords."""
    match value:
        case None | True | False:
            return {None: "nil", True: "true", False: "false"}[value]
        case dict():
            return "{" + ", ".join(f":{k} {edn(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + " ".join(map(edn, value)) + "]"
        case str() if value in ("invoke", "ok", "info", "fail", "enqueue", "dequeue", "drain"):
            return f":{value}"
    return json.dumps(value)


@cache
def parquet(source: Path) -> bytes:
    """The first events of a recording as a Parquet history."""
    from seriatim_models.history import iter_history

    events = [
        e for e, _ in zip(iter_history(source), range(60), strict=False) if isinstance(e, Event)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "h.parquet"
        write_history(path, events, Header(run="r"))
        return path.read_bytes()


def of_parquet(choose: random.Random, source: Path) -> bytes:
    """A Parquet history with columns gone, renamed, of other types or exchanged."""
    rows = pq.read_table(io.BytesIO(parquet(source)))
    for _ in range(choose.randrange(1, 4)):
        if not rows.num_columns:
            break
        at = choose.randrange(rows.num_columns)
        column, name = rows.column(at), rows.column_names[at]
        match choose.randrange(4):
            case 0:
                rows = rows.remove_column(at)
            case 1:
                other = choose.randrange(rows.num_columns)  # of two of one name, one
                rows = rows.set_column(at, name, rows.column(other))
            case 2:
                rows = rows.append_column(choose.choice((name, "zz", "")), column)
            case _:
                rows = rows.set_column(
                    at,
                    name,
                    column.cast("string", safe=False).cast("large_binary")
                    if str(column.type) in ("string", "int64", "dictionary")
                    else column,
                )
    out = io.BytesIO()
    pq.write_table(rows, out)
    return out.getvalue()


def of_documents(choose: random.Random, values: tuple[Any, ...], kind: str) -> bytes:
    """A changed Jepsen history or OTLP document."""
    tree = json.loads(json.dumps(_SPANS if kind == "otlp.json" else _OPERATIONS))
    for _ in range(choose.randrange(1, 6)):
        changed(choose, tree, values)
    if kind == "otlp.json":
        return json.dumps(tree).encode()
    lines = [edn(line) if kind == "edn" else json.dumps(line) for line in tree]
    return "\n".join(lines).encode("utf-8", "surrogatepass") + b"\n"


def of_toml(choose: random.Random) -> bytes:
    """A profile with lines gone, doubled, exchanged, and values of other types."""
    text = Path(profiles.__file__).with_name(PROFILE).read_text(encoding="utf-8")
    lines = text.splitlines()
    for _ in range(choose.randrange(1, 6)):
        at, other = choose.randrange(len(lines)), choose.randrange(len(lines))
        key = lines[at].partition("=")[0]
        lines[at] = choose.choice((
            "", lines[other], lines[at] + "\n" + lines[at], f"{key}= 1", f"{key}= [[1]]", f"{key}= inf", f"{key}= ''",
            f"{key}= {'[' * 3000}", f"{key}= 1979-05-27", f"{key}= {'9' * 5000}", '[["a".b]]', "\x00",
        ))  # fmt: skip
    return "\n".join(lines).encode()


def of_document(choose: random.Random, values: tuple[Any, ...], kind: str) -> bytes:
    """A kept document with values replaced; of a journal, one or both of its lines."""
    tree = json.loads(json.dumps(DOCUMENTS[kind][0]))
    for _ in range(choose.randrange(1, 4)):
        changed(choose, tree, values)
    lines = tree if kind == "journal.jsonl" else [tree]
    return b"\n".join(json.dumps(line).encode() for line in lines) + b"\n"


def spoiled(choose: random.Random, raw: bytes) -> bytes:
    """Bytes of which some are cut, doubled, flipped, or others in between."""
    at, to = sorted((choose.randrange(len(raw) + 1), choose.randrange(len(raw) + 1)))
    return choose.choice((
        raw[:at], raw[:at] + raw[to:], raw[:to] + raw[at:], raw[:at] + b"\xff\x00\x1b" + raw[at:],
        raw[:at] + b"[{(" * 2000 + raw[at:], raw[:at] + bytes([raw[at] ^ 1 << choose.randrange(8)]) + raw[at + 1 :]
        if at < len(raw) else raw,
    ))  # fmt: skip


def formats(
    values: tuple[Any, ...], source: Path
) -> Mapping[str, Callable[[random.Random], bytes]]:
    """What makes a case of each format, by the suffix that its file gets."""
    return {
        "edn": lambda choose: of_documents(choose, values, "edn"),
        "jepsen.jsonl": lambda choose: of_documents(choose, values, "jepsen.jsonl"),
        "otlp.json": lambda choose: of_documents(choose, values, "otlp.json"),
        "parquet": lambda choose: of_parquet(choose, source),
        "token": lambda choose: choose.choice(TOKEN),
        "profile.toml": of_toml,
    } | {kind: partial(of_document, values=values, kind=kind) for kind in DOCUMENTS}


def case(choose: random.Random, values: tuple[Any, ...], source: Path) -> tuple[str, bytes]:
    """The suffix and the bytes of a case in one of these formats."""
    made = formats(values, source)
    suffix = choose.choice(sorted(made))
    raw = made[suffix](choose)
    return suffix, spoiled(choose, raw) if choose.random() < 0.4 or suffix == "token" else raw


def account(report: found.AuditReport) -> dict[str, object]:
    """What both engines must say alike of one file: every line, every run, every finding, what is in quarantine."""
    return {
        "statistics": report.statistics,
        "files": [(f.lines, f.header, f.blank, f.events, f.rejected) for f in report.files],
        "runs": [(r.run, r.events, r.gaps, r.by_event) for r in report.runs],
        "findings": sorted(
            (f.subject, f.property, str(f.verdict), f.n_tested) for f in report.findings
        ),
        "quarantine": [(r.line, r.offset) for r in report.quarantine],
    }


def engines_differ(path: Path) -> str:
    """Return how the accounts of both engines on a file differ; empty if they do not, or both refuse the file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        accounts: list[dict[str, object] | None] = []
        for engine in (_by_local, _by_tasks):
            try:
                accounts.append(account(engine(path, folder)))
            except (HistoryError, PipelineError):
                accounts.append(None)
            except Exception:
                return f"{engine.__name__}: {traceback.format_exc()[-1500:]}"
    one, other = accounts
    if one == other:
        return ""
    if one is None or other is None:
        return f"the {'local engine' if one is None else 'tasks of Spark'} alone refuse it"
    return "; ".join(f"{k}: {one[k]!r} and {other[k]!r}" for k in one if one[k] != other[k])[:2000]


def _by_local(path: Path, folder: Path) -> found.AuditReport:
    return local.audit(plan([path]), BLACKBOX)


def _by_tasks(path: Path, folder: Path) -> found.AuditReport:
    planned, executor = plan([path]), Inline()
    manifest = ingest(executor, planned, folder)
    audited = audit_chunks(executor, folder, BLACKBOX, measure=False)
    kept = tables.first_of_each(
        tables.quarantine(folder, manifest.quarantine(), []), found.QUARANTINE_KEPT
    )
    files = [f for unit in manifest.units for f in unit.files]
    return found.report(
        "spark", planned, audited.findings, [*planned.refused, *kept], audited.runs, files
    )


def document_fault(path: Path) -> str:
    """How reading a kept document ended otherwise than by what is declared; empty if it did not, or is none."""
    kind = path.name.partition(".")[2]
    if kind not in DOCUMENTS:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        name = kind if kind == "manifest.json" else path.name
        (Path(folder) / name).write_bytes(path.read_bytes())
        try:
            DOCUMENTS[kind][1](Path(folder) / name)
        except (BadFile, PipelineError, ScriptError, VectorError, WrongJournal):
            return ""
        except Exception:
            return f"{kind}: {traceback.format_exc()[-1500:]}"
    return ""
