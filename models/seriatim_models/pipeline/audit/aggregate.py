"""The summaries of a stretch of a run, one for each property, and how they are joined: no Spark in it."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from seriatim_models.history import Event, table
from seriatim_models.pipeline.audit import chunks
from seriatim_models.pipeline.audit import findings as found
from seriatim_models.pipeline.audit.metrics import Measures
from seriatim_models.properties.base import AnyProperty, Finding
from seriatim_models.properties.columnar.forms import column_map

MEASURED = -1
"""Stands for the statistics where a property's number stands."""

PORTION = 50_000
"""Events of a chunk that are objects at a time."""


# Any: each property knows the type of its own summary
def packed(prop: AnyProperty, summary: Any) -> bytes:
    """A summary on its way to another process: by its type, or pickled if the property does not tell that.

    Pickle is several times slower, and fit only between two ends of one job, which these are.
    """
    if prop.summary_type is None:
        return pickle.dumps(summary)
    return msgspec.msgpack.encode(summary)


def unpacked(prop: AnyProperty, raw: bytes) -> Any:
    """What `packed` packed."""
    if prop.summary_type is None:
        return pickle.loads(raw)
    return msgspec.msgpack.decode(raw, type=prop.summary_type)


class Fold:
    """The summaries of one run so far: of every property, and of the statistics."""

    def __init__(self, properties: Sequence[AnyProperty], first: bool, measure: bool) -> None:
        """`first` says that the run begins here."""
        self.properties = properties
        self.measures = Measures(first) if measure else None
        # Any: each property knows the type of its own summary
        self.summaries: list[Any] = [p.begin() if first else p.map(()) for p in properties]

    def file(self, path: str) -> None:
        """Add a chunk."""
        forms = {n: column_map(p) for n, p in enumerate(self.properties)}
        quick = {n: form for n, form in forms.items() if form is not None}
        slow = {n for n, form in forms.items() if form is None}
        # All columns, unless those that are looked at are known.
        wanted = None
        if not slow and self.measures is None:
            wanted = sorted({"n", "shelf"}.union(*(q.columns for q in quick.values())))
        batch = chunks.read_chunk(path, wanted)
        if wanted is not None and any(form.needs_more(batch) for form in quick.values()):
            batch = chunks.read_chunk(path)
        for n, form in quick.items():
            self._join(n, form.map(batch))
        if slow or self.measures is not None:
            batch = chunks.in_order(batch)
        if self.measures is not None:
            self.measures.add(batch)
        if slow:
            self.rows(batch, slow)

    def rows(self, batch: pa.RecordBatch, only: Collection[int] | None = None) -> None:
        """Add rows of chunks, in the run's order, for all properties or only some: a portion at a time as objects."""
        for begin in range(0, len(batch), PORTION):
            self.events(list(table.events(batch.slice(begin, PORTION))), only)

    def events(self, events: Sequence[Event], only: Collection[int] | None = None) -> None:
        """Add events that follow those before, for all properties or only some."""
        for n, prop in enumerate(self.properties):
            if only is None or n in only:
                reads = found.relevant(prop)
                self._join(n, prop.map(e for e in events if reads is None or e.ev in reads))

    # Any: see above
    def _join(self, n: int, summary: Any) -> None:
        self.summaries[n] = self.properties[n].combine(self.summaries[n], summary)

    def made(self) -> Iterator[tuple[int, bytes]]:
        """Property and summary, ready to be sent."""
        for n, (prop, summary) in enumerate(zip(self.properties, self.summaries, strict=True)):
            yield n, packed(prop, summary)
        if self.measures is not None:
            yield MEASURED, self.measures.packed()

    def finish(self) -> list[tuple[int, Finding]]:
        """What the properties say of it."""
        return [
            (n, prop.finish(summary))
            for n, (prop, summary) in enumerate(zip(self.properties, self.summaries, strict=True))
        ]


class Part(NamedTuple):
    """A summary on its way: `number` is its place in the run."""

    run: str
    property: int
    number: int
    summary: bytes


def joined(properties: Sequence[AnyProperty], parts: Iterable[Part]) -> Any:
    """A property's summary of a run from those of its parts, in their order. Not for the statistics."""
    out: Any = None
    for part in parts:
        prop = properties[part.property]
        summary = unpacked(prop, part.summary)
        out = summary if out is None else prop.combine(out, summary)
    return out


def finished(prop: AnyProperty, summary: Any, files: Sequence[str]) -> Finding:
    """What a property says of a run whose chunks are `files`."""
    form = column_map(prop)
    if form is not None:
        summary = form.with_witnesses(summary, lambda names: chunks.find(files, names))
    return prop.finish(summary)


def findings_of(
    properties: Sequence[AnyProperty],
    judged: Iterable[tuple[int, Finding]],
    run: str,
    gaps: int,
) -> list[Finding]:
    """One finding a property, in their order, from those of the parts that were judged apart."""
    by_property: dict[int, list[Finding]] = {}
    for n, finding in judged:
        by_property.setdefault(n, []).append(finding)
    out = []
    for n, prop in enumerate(properties):
        of = by_property.get(n) or [prop.finish(prop.begin())]
        out.append(found.told(found.merged(of), run, gaps))
    return out
