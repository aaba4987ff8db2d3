"""What judges queues, or connections, of a run that comes as columns: the tasks, a stream and the one pass share it.

Regular queues and connections are cleared by checks over columns, and a property without a check has no case where none
of its case events is (`GroupChecks`). What is left is folded by the row forms, in another reading (`RowsLeft`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, compress

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seriatim_models.history import table
from seriatim_models.history.event import Event
from seriatim_models.pipeline.audit import chunks
from seriatim_models.properties.base import AnyProperty, Finding, Fold
from seriatim_models.properties.columnar.checks import loaded
from seriatim_models.properties.columnar.connections import RegularConnections
from seriatim_models.properties.columnar.event_batch import EventBatch
from seriatim_models.properties.columnar.queues import QueueCheck, clears

BATCH = 50_000
"""Events that are objects at a time."""
FEW = 1000
"""Events that are objects at a time where any one of a queue is enough."""

Wanted = dict[tuple[int, ...], frozenset[str] | None]
"""What is left to the rows: by numbers of properties the names of queues or connections, the empty one for events of
none; None for all."""


def event_batches(rows: pa.RecordBatch) -> Iterator[list[Event]]:
    """Rows as events, a batch at a time."""
    for begin in range(0, len(rows), BATCH):
        yield list(table.events(rows.slice(begin, BATCH)))


def placed_events(batch: EventBatch) -> Iterator[tuple[int, Event]]:
    """The events with their places."""
    held = chain.from_iterable(event_batches(batch.arrow))
    return zip(batch.ints("n", -1).tolist(), held, strict=True)


class RowsLeft:
    """Properties that judge some queues or connections event by event."""

    def __init__(
        self, names: Collection[str] | None, properties: Mapping[int, AnyProperty]
    ) -> None:
        """`names` are those of the queues or connections, the empty one for events of none; None for all."""
        self.names = names
        self.properties = properties
        self.fold = Fold(list(properties.values()), first=True)

    def findings(self, ended: int | None) -> Iterator[tuple[int, Finding]]:
        """The findings, by number of the property, when all was given to it; the run ended at `ended`."""
        yield from zip(self.properties, finished(self.fold, ended), strict=True)


def rows_left(wanted: Wanted, properties: Mapping[int, AnyProperty]) -> list[RowsLeft]:
    """Those who judge what is left, of the same names together."""
    by_names: dict[frozenset[str] | None, dict[int, AnyProperty]] = {}
    for numbers, names in wanted.items():
        by_names.setdefault(names, {}).update((n, properties[n]) for n in numbers)
    return [RowsLeft(names, of) for names, of in by_names.items()]


def finished(fold: Fold, ended: int | None) -> list[Finding]:
    """The findings of a fold to which all of some queues or connections was given; the run ended at `ended`."""
    if ended is not None:
        fold.take([Event(i=-1, ev="note", t=ended)])
    return fold.finish()


def fold_rows(batch: EventBatch, left: Sequence[RowsLeft], field: str) -> None:
    """Give each of `left` its events of the next rows; events are made once for all."""
    some = np.logical_or.reduce([_of_these(each.names, field, batch) for each in left])
    some &= _read(batch, [p for each in left for p in each.properties.values()])
    batch = batch.only(some).in_order()  # mostly a few of the rows
    wanted = [_of_these(each.names, field, batch) for each in left]
    for begin, events in zip(range(0, len(batch), BATCH), event_batches(batch.arrow), strict=True):
        for each, of in zip(left, wanted, strict=True):
            each.fold.take(list(compress(events, of[begin : begin + BATCH].tolist())))


def _of_these(
    names: Collection[str] | None, field: str, batch: EventBatch
) -> npt.NDArray[np.bool_]:
    """Which events are of certain queues or connections, the empty name for those of none; None stands for all.

    What concerns all queues is of each, whatever queue it names.
    """
    if names is None:
        return np.ones(len(batch), np.bool_)
    named = batch.coded(field).among(*names)
    if field == "q":
        named |= np.asarray(pc.equal(batch.arrow["bucket"].cast(pa.string()), chunks.CONTROL))
    return named


def _read(batch: EventBatch, properties: Sequence[AnyProperty]) -> npt.NDArray[np.bool_]:
    """Which events one of the properties reads."""
    ev, lvl = batch.coded("ev"), batch.coded("lvl")
    wanted = np.zeros(len(batch), np.bool_)
    for names, levels in {(p.reads, p.levels) for p in properties}:
        wanted |= (ev.among(*names) | (not names)) & (lvl.among(*levels) | (not levels))
    return wanted


def read_by(batch: EventBatch, properties: Sequence[AnyProperty]) -> EventBatch:
    """The events that one of the properties reads."""
    return batch.only(_read(batch, properties))


class CaseGroups:
    """Finds out in which queues or connections properties have a case event. Elsewhere they have no case."""

    def __init__(self, properties: Mapping[int, AnyProperty], field: str) -> None:
        """`field` is by what the properties' histories are divided: queue or connection."""
        self._properties = properties
        self._field = field
        self._cases = {n: c for n, p in properties.items() if (c := p.case_events) is not None}
        looked = {"i", "ev"} if self._cases else set[str]()
        self.fields = looked.union(
            {"n", "bucket", field}, *(case.fields for case in self._cases.values())
        )
        """The columns that are looked at."""
        self.groups: dict[int, set[str]] = {n: set() for n in self._cases}
        """By number of the property: those where one was met; the empty name is that of an event of none or of all."""

    def take(self, batch: EventBatch) -> None:
        """Look at the next events."""
        ev = batch.coded("ev")
        looked = batch.arrow.select([c for c in batch.arrow.schema.names if c in self.fields])
        for n, case in self._cases.items():
            groups = self.groups[n]
            of = ev.among(*case.names)
            if case.fields:
                of &= np.logical_or.reduce([batch.present(f) for f in sorted(case.fields)])
            chosen = looked.filter(pa.array(of))
            while len(chosen) and "" not in groups:
                some, chosen = chosen.slice(0, FEW), chosen.slice(FEW)
                met = {getattr(e, self._field) for e in table.events(some) if case.matches(e)}
                groups |= met
                if met and self._field in chosen.schema.names:
                    known = pc.is_in(chosen[self._field].cast(pa.string()), pa.array(sorted(met)))
                    chosen = chosen.filter(pc.invert(known))

    def left(self) -> Wanted:
        """What is to be judged event by event: all queues or connections, or those where there are case events."""
        met = {n: self.groups.get(n) for n in self._properties}
        return {
            (n,): None if groups is None or "" in groups else frozenset({*groups, ""})
            for n, groups in met.items()
            if groups is None or groups
        }

    def without(self) -> Iterator[tuple[int, Finding]]:
        """The findings of those that have no case anywhere."""
        return ((n, Finding.of(self._properties[n].id, 0)) for n, g in self.groups.items() if not g)


def spreads(prop: AnyProperty) -> bool:
    """Whether a property of queues has a check that leaves more queues to the rows than those that look irregular."""
    return clears(prop) and bool(loaded(prop.queue_check).spreads)


class GroupChecks:
    """Clears regular queues, or connections, and says which are left to the rows."""

    def __init__(self, properties: Mapping[int, AnyProperty], field: str) -> None:
        """`field` is by what the properties' histories are divided: queue or connection."""
        self._properties, self._field = properties, field
        by_queue = field == "q"
        checked = {
            n: p
            for n, p in properties.items()
            if (clears(p) if by_queue else p.own("channel_check"))
        }
        self.checks: list[tuple[dict[int, AnyProperty], QueueCheck]] = []
        """Each with its properties."""
        if by_queue:
            named: dict[str, dict[int, AnyProperty]] = {}
            for n, p in checked.items():
                named.setdefault(p.queue_check, {})[n] = p
            self.checks = [(of, loaded(name)(list(of.values()))) for name, of in named.items()]
        else:
            self.checks = [(checked, RegularConnections(checked))]
        self.cases = CaseGroups({n: p for n, p in properties.items() if n not in checked}, field)
        self.columns = self.cases.fields.union(*(check.columns for _, check in self.checks))
        """Those that are looked at."""

    @property
    def looks(self) -> bool:
        """Whether events can change anything."""
        return bool(self.cases.groups) or any(of and not c.lost for of, c in self.checks)

    def take(self, batch: EventBatch) -> None:
        """Add the next events."""
        self.cases.take(batch)
        for _, check in self.checks:
            check.take(batch)

    def give_up(self) -> None:
        """Leave all to the rows from now on, but for what has no case so far."""
        for _, check in self.checks:
            check.lost = True
        for groups in self.cases.groups.values():
            if groups:
                groups.add("")

    def left(self, ended: int | None) -> Wanted:
        """What is left to the rows, if the run is over at `ended`; that only grows."""
        wanted: Wanted = {}
        for of, check in self.checks:
            cleared = check.finish(ended)
            if of and (cleared is None or cleared.irregular):
                names = None if cleared is None else frozenset(cleared.irregular)
                # What names no queue may concern any; connections have none of it.
                wanted[tuple(of)] = names if names is None or self._field != "q" else names | {""}
        return wanted | self.cases.left()

    def spoilt(self, ended: int | None) -> set[str]:
        """Irregular queues that may be so only because of others, if the run is over at `ended`."""
        cleared = [check.finish(ended) for _, check in self.checks]
        return set[str]().union(*(c.spoilt for c in cleared if c is not None))

    def findings(self, ended: int | None) -> Iterator[tuple[int, Finding]]:
        """The findings on what is cleared, by number of the property."""
        for of, check in self.checks:
            cleared = check.finish(ended)
            if cleared is None:
                continue
            for n, p in of.items():
                counts = cleared.cases[p.id]
                if any(counts) or not cleared.irregular:
                    yield n, Finding.of(p.id, counts.tested, n_untestable=counts.untestable)
        yield from self.cases.without()
