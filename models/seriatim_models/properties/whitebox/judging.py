"""Judging a white-box history by many properties at the price of one replay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from seriatim_models.history.event import Event
from seriatim_models.properties.base import AnyProperty, Finding
from seriatim_models.properties.whitebox.replay import OnReplay, Replay


def judge(events: Sequence[Event], properties: Iterable[AnyProperty]) -> list[Finding]:
    """Every property's finding on one history of the reference, in the order given.

    A property is not asked if the history has none of its case events.
    """
    by_name: dict[str, list[Event]] = {}
    for e in events:
        by_name.setdefault(e.ev, []).append(e)
    replay: Replay | None = None
    findings = []
    for p in properties:
        if not has_case_events(p, by_name):
            findings.append(no_case(p.id))
        elif isinstance(p, OnReplay):
            replay = replay or Replay(events)
            findings.append(p.judge(replay))
        else:
            findings.append(p.check(events))
    return findings


@cache
def no_case(property: str) -> Finding:
    """The finding of a property that had no case, which is the same in every history."""
    return Finding.of(property, 0)


def has_case_events(p: AnyProperty, by_name: Mapping[str, Sequence[Event]]) -> bool:
    """Whether there may be a case for a property: events of a history, by name, are such as it needs."""
    if p.case_events is None:
        return True
    names, matches = p.case_events
    return any(matches(e) for name in names for e in by_name.get(name, ()))
