"""The summaries of a task and how they are joined: what a worker of the Spark engine does, without Spark.

A property that judges the run is one *chain* of summaries, in the run's order; one that judges queues is a chain for
each bucket of queues, which also gets the events that name no queue.
One that has a form over columns (`quickmap`) is a single chain too.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from seriatim_models.history import Event
from seriatim_models.pipeline import chunks, quickmap
from seriatim_models.pipeline import findings as found
from seriatim_models.pipeline.measures import Measures
from seriatim_models.properties.base import AnyProperty, Finding

RUN = "run"
"""The chain of the whole run."""
MEASURED = -1
"""Stands for the statistics where a property's number stands."""

PORTION = 50_000
"""Events of a chunk that are objects at a time."""

Key = tuple[int, str]
"""Which of the properties, and which chain."""


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
    """The summaries of one run so far: of every property in its chains, and of the statistics."""

    def __init__(
        self, properties: Sequence[AnyProperty], shelves: Iterable[str], first: bool, measure: bool
    ) -> None:
        """`first` says that the run begins here."""
        self.properties = properties
        self.measures = Measures(first) if measure else None
        # Any: each property knows the type of its own summary
        self.summaries: dict[Key, Any] = {}
        apart = list(shelves)
        for n, prop in enumerate(properties):
            for chain in apart if prop.scope == "queue" and not quickmap.fits(prop) else [RUN]:
                self.summaries[n, chain] = prop.begin() if first else prop.map(())

    def file(self, path: str) -> None:
        """Add a chunk."""
        slow = {n for n, p in enumerate(self.properties) if not quickmap.fits(p)}
        quick = {n: quickmap.QUICK[p.id] for n, p in enumerate(self.properties) if n not in slow}
        # All columns, unless those that are looked at are known.
        wanted = None
        if not slow and self.measures is None:
            wanted = sorted({"n", "shelf"}.union(*(q.columns for q in quick.values())))
        batch = chunks.read_chunk(path, wanted)
        if wanted is not None and any(form.needs_more(batch) for form in quick.values()):
            batch = chunks.read_chunk(path)
        for n, form in quick.items():
            self.summaries[n, RUN] = self.properties[n].combine(
                self.summaries[n, RUN], form.map(batch)
            )
        if slow or self.measures is not None:
            batch = chunks.in_order(batch)
        if self.measures is not None:
            self.measures.add(batch)
        for begin in range(0, len(batch) if slow else 0, PORTION):
            self.events(list(chunks.events(batch.slice(begin, PORTION))), slow)

    def events(self, placed: Sequence[tuple[str, Event]], only: set[int] | None = None) -> None:
        """Add events, each with its shelf, that follow those before, for all properties or only some."""
        chains: dict[str, list[Event]] = {chain: [] for _, chain in self.summaries if chain != RUN}
        control: list[list[Event]] = list(chains.values())
        for shelf, event in placed:
            if shelf == chunks.CONTROL:
                for of in control:
                    of.append(event)
            elif shelf in chains:
                chains[shelf].append(event)
        whole = [event for _, event in placed]
        for (n, chain), before in self.summaries.items():
            if only is not None and n not in only:
                continue
            prop = self.properties[n]
            reads = found.relevant(prop)
            given = whole if chain == RUN else chains[chain]
            summary = prop.map(e for e in given if reads is None or e.ev in reads)
            self.summaries[n, chain] = prop.combine(before, summary)

    def made(self) -> Iterator[tuple[int, str, bytes]]:
        """Property, chain and summary, ready to be sent."""
        for (n, chain), summary in self.summaries.items():
            yield n, chain, packed(self.properties[n], summary)
        if self.measures is not None:
            yield MEASURED, RUN, self.measures.packed()

    def finish(self) -> list[tuple[int, Finding]]:
        """What the properties say of it, chain by chain."""
        return [(n, self.properties[n].finish(s)) for (n, _), s in self.summaries.items()]


class Part(NamedTuple):
    """A summary on its way: `number` is its place in its chain."""

    run: str
    property: int
    chain: str
    number: int
    summary: bytes


def joined(properties: Sequence[AnyProperty], parts: Iterable[Part]) -> Any:
    """The summary of one chain from those of its parts, in their order. Not for the statistics."""
    out: Any = None
    for part in parts:
        prop = properties[part.property]
        summary = unpacked(prop, part.summary)
        out = summary if out is None else prop.combine(out, summary)
    return out


def finished(prop: AnyProperty, summary: Any, files: Sequence[str]) -> Finding:
    """What a property says of a run whose chunks are `files`."""
    if quickmap.fits(prop):
        summary = quickmap.QUICK[prop.id].whole(summary, lambda names: chunks.find(files, names))
    return prop.finish(summary)


def findings_of(
    properties: Sequence[AnyProperty],
    judged: Iterable[tuple[int, Finding]],
    run: str,
    gaps: int,
) -> list[Finding]:
    """One finding a property, in their order, from those of its chains."""
    by_property: dict[int, list[Finding]] = {}
    for n, finding in judged:
        by_property.setdefault(n, []).append(finding)
    out = []
    for n, prop in enumerate(properties):
        of = by_property.get(n) or [prop.finish(prop.begin())]
        out.append(found.told(found.merged(of), run, gaps))
    return out
