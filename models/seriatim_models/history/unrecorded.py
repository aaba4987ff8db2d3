"""Kinds of events that a recorder never writes: what its header declares, and what that means for the events.

``"params": {"unrecorded": ["nack", "expire"]}`` says that nacks and expiries may have happened anywhere among the
events of this recorder, without a line. A history without it records everything.

Wherever lines may be missing, a `gap` says so; so that is what stands between any two events of such a recorder: one
with ``args={"kinds": [...], "going_on": true}``, which tells the kinds that may be missing there. A property that reads
none of them is not given it (`Property.relevant`). The reader puts it in, and it is never written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seriatim_models.history.catalogue import lost_kinds
from seriatim_models.history.event import GAP, Event
from seriatim_models.history.header import Header


def unrecorded(header: Header) -> list[str]:
    """The kinds of events that the header declares as never written, in the order of the alphabet."""
    return sorted(set(header.params.get("unrecorded", ())))


def missing_kinds(event: Event) -> list[str]:
    """The kinds of which lines may be missing where a `gap` stands; empty for every other event, and for one where any
    line may be.
    """
    return lost_kinds.get(event, []) if event.ev == GAP else []


def kinds_missing(events: Iterable[Event]) -> set[str]:
    """All kinds of events that some recorder of these never writes."""
    return {kind for event in events if event.ev == GAP for kind in missing_kinds(event)}


def gap_beside(event: Event, kinds: list[str]) -> Event:
    """What stands beside an event of a recorder that never writes these kinds."""
    args = {"going_on": True, "kinds": kinds}
    return Event(
        i=event.i, ev=GAP, run=event.run, rec=event.rec, clk=event.clk, t=event.t, args=args
    )


def with_gaps(events: Iterable[Event], kinds: list[str]) -> Iterator[Event]:
    """A recorder's events in their order, with what it never writes; as they are if it writes everything."""
    first = True
    for event in events:
        if first and kinds:
            yield gap_beside(event, kinds)
            first = False
        yield event
        if kinds:
            yield gap_beside(event, kinds)
