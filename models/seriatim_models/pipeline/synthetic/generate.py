"""Large synthetic histories: those of a correct broker, recorded inside it, with injected violations.

The broker's part is made by columns, a block of eight messages on one queue at a time: all are published, the first is
delivered, requeued and delivered again, then all are settled one after another. So every black-box property has
something to test, and a million events take seconds.
Scenes with violations (`injected`) stand between blocks, at places drawn from the seed.

The files are parts of one run, whose header says that the events are complete; `planted.json` says what was injected.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seriatim_models.files import whole_file, write_whole
from seriatim_models.history import Event, table, write_history
from seriatim_models.history.header import Header, header_object
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.pipeline.synthetic.injected import KINDS, ViolationKind, expected, scene

FORMATS = ("parquet", "jsonl", "jsonl.gz", "jsonl.zst")
MESSAGES = 8
"""Messages of one block."""
PREFETCH = 4
STEP = 1000
"""ns from event to event."""
PART = 2_000_000
"""Events of one file."""
GROUP = 250_000
"""Events of one row group."""

Ints = npt.NDArray[np.int64]

_EVENTS = ("publish", "deliver", "nack", "ack", "ch_open", "qos", "consume", "cancel", "note")
_PUBLISH, _DELIVER, _NACK, _ACK = range(4)


def _template() -> tuple[Ints, Ints, Ints, Ints]:
    """Of each row of a block: event, which message, delivery tag from 1 (0 for none), and 1 for an ``ok``."""
    rows = [(_PUBLISH, m, 0, ok) for m in range(MESSAGES) for ok in (0, 1)]
    rows += [(_DELIVER, 0, 1, 0), (_NACK, 0, 1, 0), (_DELIVER, 0, 2, 0), (_ACK, 0, 2, 0)]
    rows += [(ev, m, m + 2, 0) for m in range(1, MESSAGES) for ev in (_DELIVER, _ACK)]
    ev, m, tag, ok = np.array(rows, np.int64).T
    return ev, m, tag, ok


EV, M, TAG, OK = _template()
BLOCK = len(EV)
"""Events of one block."""
TAGS = MESSAGES + 1
"""Deliveries of one block."""


class GeneratedHistory(msgspec.Struct):
    """What a generated folder holds; `planted.json` is this."""

    events: int
    files: list[str]
    planted: dict[str, int]
    """Scenes of each kind."""
    expected: dict[str, int]
    """Violations that each property must find, exactly."""
    seed: int


def _names(vocabulary: Sequence[str], index: Ints) -> pa.Array:
    return pa.array(vocabulary, pa.string()).take(pa.array(index))


def _blocks(queues: Ints, numbers: Ints, i: int, shift: int) -> pa.RecordBatch:
    """Blocks one after another, as one batch of `BLOCK` events for each.

    `queues` and `numbers` are of one length: of each block its queue, and how many blocks that queue had before.
    The first event has index `i`; the clock is ahead of the indices by `shift` ns.
    """
    n = len(queues)
    # Of each event (n * BLOCK of them): its kind, tag and phase from the template, its queue and block number.
    ev, tag, ok = np.tile(EV, n), np.tile(TAG, n), np.tile(OK, n)
    q, number = np.repeat(queues, BLOCK), np.repeat(numbers, BLOCK)
    # The message's number in its queue, the event's index and time.
    pseq = number * MESSAGES + np.tile(M, n)
    index = np.arange(i, i + n * BLOCK)
    t = index * STEP + shift
    deliver, publish = ev == _DELIVER, ev == _PUBLISH
    settles = ~deliver & ~publish
    names = [f"q{k}" for k in range(int(q.max()) + 1)]
    queue = _names(names, q)
    message = pc.binary_join_element_wise(queue, pc.cast(pa.array(pseq), pa.string()), ":")

    def only(mask: npt.NDArray[np.bool_], values: pa.Array) -> pa.Array:
        return pc.if_else(pa.array(mask), values, pa.nulls(len(values), values.type))

    def fixed(mask: npt.NDArray[np.bool_], value: object, kind: pa.DataType) -> pa.Array:
        return only(mask, pa.array([value], kind).take(pa.array(np.zeros(len(mask), np.int64))))

    # Settlements name their message in a list of one, `ms`; all others have no list.
    offsets = np.concatenate([[0], np.cumsum(settles)]).astype(np.int32)
    listed = pa.ListArray.from_arrays(
        pa.array(offsets), message.filter(pa.array(settles)), mask=pa.array(~settles)
    )
    side = _names(["p", "c"], (~publish).astype(np.int64))
    phase = np.where(publish, ok, np.where(settles, 0, 2))
    columns = {
        "i": pa.array(index),
        "ev": _names(_EVENTS, ev),
        "t": pa.array(t),
        "t_lo": only(deliver, pa.array(t)),
        "ph": _names(["invoke", "ok", ""], phase),
        "op": only(publish, pa.array(index - ok)),
        "conn": pc.binary_join_element_wise(side, queue, "-"),
        "ch": pa.array(np.ones(len(ev), np.int64)),
        "gen": pa.array(np.ones(len(ev), np.int64)),
        "q": queue,
        "m": only(~settles, message),
        "pub": only(~settles, queue),
        "pseq": only(~settles, pa.array(pseq)),
        "ctag": fixed(deliver, "c", pa.string()),
        "dtag": only(tag > 0, pa.array(number * TAGS + tag)),
        "redelivered": only(deliver, pa.array(tag == 2) if n else pa.array([], pa.bool_())),
        "requeue": fixed(ev == _NACK, True, pa.bool_()),
        "ms": listed,
        "autoack": fixed(deliver, False, pa.bool_()),
        "prefetch": fixed(deliver, PREFETCH, pa.int64()),
        "scope": fixed(deliver, "consumer", pa.string()),
    }
    wanted = pa.schema([table.SCHEMA.field(name) for name in columns])
    arrays = [a.cast(f.type) for a, f in zip(columns.values(), wanted, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _edge_events(queues: int, i: int, shift: int, opening: bool) -> list[Event]:
    """The beginning of every consumer, or its end and the depth 0 of its queue."""
    numbers = count(i)
    out = []
    for k in range(queues):
        at: dict[str, object] = {"conn": f"c-q{k}", "ch": 1, "gen": 1, "lvl": "broker"}
        steps: list[dict[str, object]] = (
            [
                {"ev": "ch_open"},
                {"ev": "qos", "prefetch": PREFETCH, "scope": "consumer"},
                {"ev": "consume", "q": f"q{k}", "ctag": "c", "autoack": False},
            ]
            if opening
            else [
                {"ev": "cancel", "q": f"q{k}", "ctag": "c"},
                {"ev": "note", "q": f"q{k}", "args": {"depth": 0}},
            ]
        )
        for step in steps:
            n = next(numbers)
            out.append(msgspec.convert({"i": n, "t": n * STEP + shift, **at, **step}, Event))
    return out


def batches(
    events: int,
    queues: int,
    seed: int,
    inject: Sequence[tuple[ViolationKind, int]],
    hot: float = 0.0,
) -> Iterator[pa.RecordBatch]:
    """The history, at least `events` long, as batches of the schema's columns.

    `inject` are kinds of violations, each with the number of its scene; `hot` is the fraction of blocks on the first
    queue.
    """
    draw = np.random.default_rng(seed)
    opening = _edge_events(queues, 0, 0, True)
    yield table.batch(opening)
    i, shift = len(opening), 0
    blocks = max(1, -(-events // BLOCK))
    size = GROUP // BLOCK
    pending = list(inject)
    random.Random(seed).shuffle(pending)
    done = np.zeros(queues, np.int64)
    for begin in range(0, blocks, size):
        # The queues of the next blocks, in their order.
        n = min(size, blocks - begin)
        chosen = draw.integers(0, queues, n)
        if hot and queues > 1:
            chosen = np.where(draw.random(n) < hot, 0, 1 + chosen % (queues - 1))
        # Of each block: how many blocks its queue had before, as rank among the equal ones plus those done.
        order = np.argsort(chosen, kind="stable")
        sorted_ = chosen[order]
        starts = np.flatnonzero(np.append(True, sorted_[1:] != sorted_[:-1]))
        rank = np.empty(n, np.int64)
        rank[order] = np.arange(n) - np.repeat(starts, np.diff(np.append(starts, n)))
        numbers = done[chosen] + rank
        np.add.at(done, chosen, 1)
        # The scenes due among these blocks, and before which block each stands.
        due = -(-len(pending) * n // max(blocks - begin, 1))
        here, pending = pending[:due], pending[due:]
        cuts = np.sort(draw.integers(0, n + 1, len(here))).tolist()
        at = 0
        for cut, (kind, number) in zip([*cuts, n], [*here, (None, 0)], strict=True):
            if cut > at:
                yield _blocks(chosen[at:cut], numbers[at:cut], i, shift)
                i += (cut - at) * BLOCK
                at = cut
            if kind is not None:
                events_of_scene, shift = scene(kind, number, i, STEP, shift)
                yield table.batch(events_of_scene)
                i += len(events_of_scene)
    yield table.batch(_edge_events(queues, i, shift, False))


def _aligned(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with every column of the schema, so that all batches fit one file."""
    have = set(batch.schema.names)
    columns = [
        batch[f.name] if f.name in have else pa.nulls(len(batch), f.type) for f in table.SCHEMA
    ]
    return pa.RecordBatch.from_arrays(columns, schema=table.SCHEMA)


def generate(
    folder: str | Path,
    events: int,
    *,
    queues: int = 100,
    seed: int = 0,
    kinds: Sequence[str] | None = None,
    each: int = 1,
    format: str = "parquet",
    hot: float = 0.0,
    run: str = "synthetic",
) -> GeneratedHistory:
    """Write a history of at least so many events into a new folder; returns what is in it.

    `kinds` are ids of `injected.KINDS` (or properties, for all of theirs; None for all), `each` how many of each are
    injected. Raises `PipelineError` for an unknown kind or format, or a folder that is not empty.
    """
    folder = Path(folder)
    if format not in FORMATS:
        raise PipelineError(f"there is no format {format!r}; known are {', '.join(FORMATS)}")
    if not (events > 0 and queues > 0 and each >= 0 and 0 <= hot <= 1):
        raise PipelineError("events and queues must be positive, hot a fraction from 0 to 1")
    known = {k.id for k in KINDS} | {k.property for k in KINDS}
    for name in kinds or ():
        if name not in known:
            raise PipelineError(f"there is no kind {name!r}; known are {', '.join(sorted(known))}")
    chosen = [k for k in KINDS if kinds is None or k.id in kinds or k.property in kinds]
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise PipelineError(f"{folder}: is not empty")
    inject = [(k, n) for k in chosen for n in range(each)]
    header = Header(run=run, lvl="broker", clk="made", rec="made", params={"complete": True})
    made = _write_parts(folder, batches(events, queues, seed, inject, hot), header, format)
    generated = GeneratedHistory(
        events=sum(made.values()),
        files=list(made),
        planted={k.id: each for k in chosen if each},
        expected=expected(chosen, each),
        seed=seed,
    )
    written = msgspec.json.format(msgspec.json.encode(generated)) + b"\n"
    write_whole(folder / "planted.json", written, ours=True)
    return generated


def _write_parts(
    folder: Path, source: Iterator[pa.RecordBatch], header: Header, format: str
) -> dict[str, int]:
    """Write batches as files of at least `PART` events; gives the events of each file by its name."""
    out: dict[str, int] = {}
    schema = table.SCHEMA.with_metadata({b"qh": msgspec.json.encode(header_object(header))})
    waiting = next(source, None)
    while waiting is not None:
        name = f"part-{len(out):05d}.{format}"
        held = [_aligned(waiting)]
        while (waiting := next(source, None)) is not None:
            held.append(_aligned(waiting))
            if sum(map(len, held)) >= PART:
                waiting = next(source, None)
                break
        rows = sum(map(len, held))
        if format == "parquet":
            whole = pa.Table.from_batches(held).replace_schema_metadata(schema.metadata)
            with whole_file(folder / name, ours=True) as draft:
                pq.write_table(
                    whole, draft, compression="zstd", compression_level=1, row_group_size=GROUP,
                    use_dictionary=[*table.CODED], column_encoding=table.ENCODINGS,
                )  # fmt: skip
        else:
            write_history(folder / name, (e for batch in held for e in table.events(batch)), header)
        out[name] = rows
    return out
