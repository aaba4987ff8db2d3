"""A run of a stream judged by columns: what is regular is cleared, as in an audit of chunk files (`audit.tasks`).

The same checks clear messages, connections and queues, with the same counts; what they keep of a run is small, and
stands in the state from update to update. What is irregular is judged event by event, from its beginning: so the events
of the run are kept in chunk files beside the state, of which those are read again that may hold something of it.

- *Messages*: the events about irregular ones, and those about none, are kept apart and judged anew at each update.
- *Queues and connections*: each group of properties has a fold over the irregular ones. When one more becomes irregular
  it is made again from the chunk files. If that has been done too often, it is over all of them from then on.

Where that is not worth it, or no message is regular, the run goes on row by row (`run_state`), beginning with the
events in the chunk files. Of updates of few events each the chunk files are joined, so that few have to be read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seriatim_models.files import place_within
from seriatim_models.history import Event, table
from seriatim_models.history.event import GAP
from seriatim_models.pipeline.audit import chunks, columns
from seriatim_models.pipeline.audit import findings as found
from seriatim_models.pipeline.audit.groups import (
    GroupChecks,
    RowsLeft,
    Wanted,
    event_batches,
    finished,
    fold_rows,
    placed_events,
)
from seriatim_models.pipeline.audit.metrics import Measures, MeasuresState
from seriatim_models.pipeline.audit.tasks import packed
from seriatim_models.pipeline.errors import PipelineError
from seriatim_models.pipeline.state_file import decoded, encoded
from seriatim_models.properties.base import AnyProperty, Finding, Fold
from seriatim_models.properties.blackbox.lifecycle import ACQUIRES, LifecycleProperty
from seriatim_models.properties.columnar.batches import may_concern, rows_of_batch
from seriatim_models.properties.columnar.columns import Ints, Names, array_of
from seriatim_models.properties.columnar.event_batch import EventBatch
from seriatim_models.properties.columnar.prefilter import (
    Prefilter,
    PrefilterState,
    places_about,
)
from seriatim_models.properties.columnar.rows import Hashes, is_general, rows_of_events

LENGTH = 200_000
"""Rows that are judged at a time; a chunk becomes no longer by being joined to the one before."""
APART = 20_000
"""Events about irregular messages, and about none, that are judged anew at each update at most."""
AGAIN = 4
"""Rows read again for each event, on average, at most."""
AGAIN_FIRST = 1_000_000
"""Rows that may be read again whatever the length of the run."""


class HistoryFile(msgspec.Struct, array_like=True):
    """A chunk file, relative to the stream's folder, and the place in the run behind its last event."""

    path: str
    end: int


class SavedRows(msgspec.Struct):
    """A `RowsLeft`."""

    names: list[str] | None
    summaries: list[bytes]
    """By property, each encoded by its own type."""


class SavedGroups(msgspec.Struct):
    """A `_Groups`: of queues or of connections."""

    checks: list[bytes]
    cases: dict[int, list[str]]
    rows: list[tuple[list[int], SavedRows]]


class SavedColumns(msgspec.Struct):
    """A `RunColumns`."""

    history: list[HistoryFile]
    written: int
    again: int
    ended: int | None
    statistics: found.RunStatistics
    measures: MeasuresState
    prefilter: PrefilterState
    apart: list[tuple[int, Event]]
    fetched: bytes
    groups: list[SavedGroups]
    whole: list[bytes]


class _History:
    """The events of a run in chunk files."""

    def __init__(self, folder: Path, into: str) -> None:
        self._folder, self._into = folder, into
        self.files: list[HistoryFile] = []
        self.written = 0
        """How many files were."""
        self.again = 0
        """Rows that were read again."""

    @property
    def n(self) -> int:
        """The events so far."""
        return self.files[-1].end if self.files else 0

    def add(self, held: Mapping[str, pa.Array]) -> None:
        """Write the next events, with their places and buckets."""
        self._join_short()
        self._write(held, self.n)

    def _write(self, held: Mapping[str, pa.Array], begin: int) -> None:
        name = f"{self._into}.{self.written:06d}.parquet"
        chunk = chunks.write_chunk(self._folder, name, held)
        self.files.append(HistoryFile(name, begin + chunk.rows))
        self.written += 1

    def _join_short(self) -> None:
        """Join the last files to longer ones, if that is due: of updates of few events each there would be many, and
        so each event is written anew a few times at most. Those that were joined stay until the state is saved.
        """
        while len(self.files) > 1:
            begin, middle, end = (f.end for f in ([HistoryFile("", 0), *self.files])[-3:])
            if middle - begin >= 2 * (end - middle) or end - begin > LENGTH:
                return
            parts = [EventBatch(chunks.read_chunk(self._place(f))) for f in self.files[-2:]]
            names = {
                name for part in parts for name in part.arrow.schema.names if name in table.FIELDS
            }
            held = {
                name: pa.concat_arrays(
                    [part.column(name).cast(table.SCHEMA.field(name).type) for part in parts]
                )
                for name in sorted(names)
            }
            for name, kind in (("n", pa.int64()), ("bucket", pa.string())):
                held[name] = pa.concat_arrays([part.arrow[name].cast(kind) for part in parts])
            del self.files[-2:]
            self._write(held, begin)

    def _place(self, file: HistoryFile) -> str:
        return str(place_within(self._folder, file.path, PipelineError))

    def read(
        self, since: int = 0, buckets: Collection[str] | None = None, last: bool = True
    ) -> Iterator[EventBatch]:
        """The chunks that go beyond a place, without the last one if that is not wanted; or some buckets of them."""
        for file in self.files if last else self.files[:-1]:
            if file.end > since:
                batch = EventBatch(chunks.read_chunk(self._place(file), None, buckets))
                self.again += len(batch)
                if len(batch):
                    yield batch

    @property
    def too_often(self) -> bool:
        """Whether more was read again than that is worth."""
        return self.again > AGAIN * self.n + AGAIN_FIRST


class _MessageColumns:
    """P1 to P3: regular messages are cleared, the events of the others kept apart."""

    def __init__(self, properties: Mapping[int, AnyProperty], history: _History) -> None:
        self._properties, self._history = properties, history
        self.prefilter = Prefilter()
        self.apart: dict[int, Event] = {}
        """By place: events about messages that are irregular, or were, and those about none."""
        self.fetched: Hashes = np.zeros(0, np.uint64)
        """Sorted: of which messages all events are there."""

    def take(self, batch: EventBatch) -> bool:
        """Add the next events, which are the last in the history already; whether that is worth it."""
        if not self._properties:
            return True
        given = rows_of_batch(batch, self.prefilter.holders)
        self.prefilter.take(*given)
        if self.prefilter.voids:
            return False
        fresh = np.setdiff1d(self.prefilter.irregular(), self.fetched, assume_unique=True)
        if len(fresh):
            self._fetch(fresh, self.prefilter.begun(fresh))
            self.fetched = np.union1d(self.fetched, fresh)
        about = places_about(self.fetched, given.rows)
        general = np.array([place for place, _ in given.general], np.int64)
        self._keep(batch, np.union1d(about, general))
        return len(self.apart) <= APART and not self._history.too_often

    def _fetch(self, messages: Hashes, since: int) -> None:
        """Bring the earlier events of messages that have become irregular."""
        for batch in self._history.read(since, last=False):
            some = batch.only(may_concern(batch, messages))
            self._keep(some, places_about(messages, rows_of_batch(some, Names()).rows))

    def _keep(self, batch: EventBatch, places: Ints) -> None:
        self.apart |= placed_events(batch.only(np.isin(batch.ints("n", -1), places)))

    def findings(self) -> Iterator[tuple[int, Finding]]:
        """The findings, by number of the property."""
        if not self._properties:
            return
        prefiltered = self.prefilter.finish()
        placed = sorted(self.apart.items(), key=lambda of: of[0])
        rows = rows_of_events(placed, Names()).rows
        irregular = set(prefiltered.about_irregular(rows).tolist())
        placed = [(at, e) for at, e in placed if at in irregular or is_general(e)]
        for n, prop in self._properties.items():
            assert isinstance(prop, LifecycleProperty)
            yield n, prefiltered.judge(prop, placed)


class _IrregularFolds:
    """The folds over irregular queues or connections, each by the numbers of its properties."""

    def __init__(self, history: _History, field: str) -> None:
        self._history, self._field = history, field
        self.left: dict[tuple[int, ...], RowsLeft] = {}

    def take(
        self,
        batch: EventBatch,
        wanted: Wanted,
        properties: Mapping[int, AnyProperty],
    ) -> None:
        """Add the next events, which are the last in the history already; what is wanted only grows."""
        forward, anew = list[RowsLeft](), list[RowsLeft]()
        begins = len(self._history.files) == 1
        for key, names in wanted.items():
            known = self.left.get(key)
            if known is None or known.names != names:
                known = self.left[key] = RowsLeft(names, {n: properties[n] for n in key})
                (forward if begins else anew).append(known)
            else:
                forward.append(known)
        if forward:
            fold_rows(batch, forward, self._field)
        if anew:
            for earlier in self._history.read(0, self._buckets(anew)):
                fold_rows(earlier, anew, self._field)

    def _buckets(self, left: Iterable[RowsLeft]) -> set[str] | None:
        """Those that have all events of some queues; None for all."""
        names = set[str]()
        for each in left:
            if each.names is None or self._field != "q":
                return None
            names.update(each.names)
        return {chunks.CONTROL, *map(chunks.bucket, names)}

    def state(self) -> list[tuple[list[int], SavedRows]]:
        """The folds as data."""
        return [
            (
                list(key),
                SavedRows(
                    None if each.names is None else sorted(each.names),
                    [
                        packed(p, s)
                        for p, s in zip(each.properties.values(), each.fold.summaries, strict=True)
                    ],
                ),
            )
            for key, each in self.left.items()
        ]


class _Groups:
    """Properties of queues, or of connections: what is regular is cleared, what is not is folded."""

    def __init__(
        self, properties: Mapping[int, AnyProperty], field: str, history: _History
    ) -> None:
        self._properties, self._history = properties, history
        self._checks = GroupChecks(properties, field)
        self._rows = _IrregularFolds(history, field)

    def take(self, batch: EventBatch, ended: int | None) -> None:
        """Add the next events. The run ends at `ended` so far."""
        self._checks.take(batch)
        if self._history.too_often:
            self._checks.give_up()
        self._rows.take(batch, self._checks.left(ended), self._properties)

    def findings(self, ended: int | None) -> Iterator[tuple[int, Finding]]:
        """The findings, several of some properties, by number of the property."""
        yield from self._checks.findings(ended)
        for each in self._rows.left.values():
            # The last event of a fold is one that does not belong to it, so it is given to a copy.
            of = list(each.properties.values())
            copy = Fold(of, first=True)
            copy.summaries = [
                msgspec.msgpack.decode(packed(p, s), type=p.summary_type)
                for p, s in zip(of, each.fold.summaries, strict=True)
            ]
            yield from zip(each.properties, finished(copy, ended), strict=True)

    def state(self) -> SavedGroups:
        """What is kept of the run so far."""
        checks = [encoded(check.state()) for _, check in self._checks.checks]
        cases = {n: sorted(names) for n, names in self._checks.cases.groups.items()}
        return SavedGroups(checks, cases, self._rows.state())

    def restore(self, saved: SavedGroups, path: Path, remedy: str) -> None:
        """Go on where another one was that had this state."""
        for (_, check), raw in zip(self._checks.checks, saved.checks, strict=True):
            check.restore(decoded(path, raw, check.state_type, remedy))
        for n, names in saved.cases.items():
            self._checks.cases.groups[n] = set(names)
        for key, rows in saved.rows:
            left = RowsLeft(
                None if rows.names is None else set(rows.names),
                {n: self._properties[n] for n in key},
            )
            left.fold.summaries = [
                decoded(path, raw, self._properties[n].summary_type, remedy)
                for n, raw in zip(key, rows.summaries, strict=True)
            ]
            self._rows.left[tuple(key)] = left


class RunColumns:
    """One run that comes as columns, from its beginning."""

    def __init__(
        self, run: str, properties: Sequence[AnyProperty], folder: Path, into: str
    ) -> None:
        """`into`: the name in the stream's folder that chunk files begin with."""
        self._all = properties
        of: dict[str, dict[int, AnyProperty]] = {}
        for n, p in enumerate(properties):
            of.setdefault(p.partitioning, {})[n] = p
        self.history = _History(folder, into)
        self.statistics = found.RunStatistics(run)
        self.measures = Measures(first=True)
        self.ended: int | None = None
        self._messages = _MessageColumns(of.get("message", {}), self.history)
        self._groups: tuple[_Groups, ...] = (
            _Groups(of.get("queue", {}), "q", self.history),
            _Groups(of.get("connection", {}), "conn", self.history),
        )
        self._whole_numbers = list(of.get("run", {}))
        self._whole = RowsLeft(None, of.get("run", {}))

    def keep(self, held: Mapping[str, pa.Array]) -> EventBatch:
        """Write down the next completed events, columns of the schema's types; returns them with their places."""
        placed = columns.placed(dict(held), self.history.n)
        self.history.add(placed)
        found.count(self.statistics, columns.kinds(dict(held)), GAP)
        some = {name: of for name, of in placed.items() if of.null_count < len(of)}
        return EventBatch(pa.RecordBatch.from_pydict(some))

    def take(self, batch: EventBatch) -> bool:
        """Judge the events that were written down last. If that is not worth it, returns False; then use only `keep`
        and `events` afterwards.
        """
        if "t" in batch.arrow.schema.names:
            latest = pc.max(batch.arrow["t"]).as_py()
            self.ended = latest if self.ended is None else max(self.ended, latest)
        self.measures.add(batch)
        if not self._messages.take(batch):
            return False
        for group in self._groups:
            group.take(batch, self.ended)
        if self._whole.properties:
            fold_rows(batch, [self._whole], "q")
        return True

    def findings(self) -> list[Finding]:
        """The finding of every property, if the run ended here; more events may be added afterwards."""
        judged: dict[int, list[Finding]] = {}
        of_whole = zip(self._whole_numbers, self._whole.fold.finish(), strict=True)
        for n, finding in (*self._messages.findings(), *of_whole):
            judged.setdefault(n, []).append(finding)
        for group in self._groups:
            for n, finding in group.findings(self.ended):
                judged.setdefault(n, []).append(finding)
        return found.of_run(self._all, judged, self.statistics)

    def events(self) -> Iterator[list[Event]]:
        """All events from the beginning, a batch at a time."""
        for batch in self.history.read():
            yield from event_batches(batch.in_order().arrow)

    def state(self) -> SavedColumns:
        """What is kept of the run so far."""
        return SavedColumns(
            self.history.files,
            self.history.written,
            self.history.again,
            self.ended,
            self.statistics,
            self.measures.state(),
            self._messages.prefilter.state(),
            sorted(self._messages.apart.items(), key=lambda of: of[0]),
            self._messages.fetched.tobytes(),
            [group.state() for group in self._groups],
            [
                packed(p, s)
                for p, s in zip(
                    self._whole.properties.values(), self._whole.fold.summaries, strict=True
                )
            ],
        )

    def restore(self, saved: SavedColumns, path: Path, remedy: str) -> None:
        """Go on where another one was that had this state, from the file `path`."""
        self.history.files, self.history.again = saved.history, saved.again
        self.history.written = saved.written
        self.ended, self.statistics = saved.ended, saved.statistics
        self.measures = Measures.of_state(saved.measures)
        self._messages.prefilter.restore(saved.prefilter)
        self._messages.apart = dict(saved.apart)
        self._messages.fetched = array_of(saved.fetched, np.uint64)
        for group, of in zip(self._groups, saved.groups, strict=True):
            group.restore(of, path, remedy)
        self._whole.fold.summaries = [
            decoded(path, raw, p.summary_type, remedy)
            for p, raw in zip(self._whole.properties.values(), saved.whole, strict=True)
        ]


_OFFERED, _DONE, _EMPTIED = 1, 2, 3
"""What events say of waiting messages: published; delivered, refused or gone; and that a queue has none any more."""


def undelivered(waiting: dict[str, str], batch: EventBatch) -> dict[str, str]:
    """The messages that are not delivered yet after the next events, with their queues; `waiting` are those before."""
    ev, ph = batch.words("ev"), batch.words("ph")
    began = ph("", "invoke") | (ph("ok") & ~batch.present("op"))
    taken = ev(*ACQUIRES) & batch.some("m") & ~ph("invoke", "fail")
    what = np.zeros(len(batch), np.int8)
    what[ev("publish") & began] = _OFFERED
    what[(ev("publish") & ph("fail")) | taken | ev("return", "expire")] = _DONE
    what[ev("delete", "purge")] = _EMPTIED
    m = pc.fill_null(batch.column("m").cast(pa.string()), "").dictionary_encode()
    codes, names = np.asarray(m.indices).astype(np.int64), m.dictionary
    queue = batch.coded("q")
    begin = 0
    for end in (*np.flatnonzero(what == _EMPTIED).tolist(), len(batch)):
        # Of each message the last event decides.
        at = begin + np.flatnonzero(what[begin:end])
        last = np.full(len(names), -1, np.int64)
        last[codes[at]] = at
        known = pc.fill_null(pc.index_in(pa.array(list(waiting), pa.string()), names), -1)
        stays = np.append(last, -1)[np.asarray(known)] < 0
        waiting = dict(compress(waiting.items(), stays.tolist()))
        fresh = last[last >= 0]
        fresh = fresh[what[fresh] == _OFFERED]
        texts = names.take(pa.array(codes[fresh])).to_pylist()
        waiting |= zip(texts, queue.at(fresh).texts(), strict=True)
        if end < len(batch):
            emptied = queue.values[queue.codes[end]]
            waiting = {name: q for name, q in waiting.items() if q != emptied}
        begin = end + 1
    return waiting
