"""Judging a white-box history by many properties at the price of one replay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from seriatim_models.history.event import Event
from seriatim_models.properties.base import AnyProperty, CaseEvents, Finding
from seriatim_models.properties.whitebox.replay import OnReplay, Replay

_ANY = CaseEvents(frozenset()).matches
"""What `CaseEvents` has in place of a condition."""
NEVER, ALWAYS = CaseEvents(frozenset()), CaseEvents(frozenset({"any"}))
"""Conditions that the names of a history's events decide."""


class CaseQuestions(NamedTuple):
    """What must be asked of the events of a history, when their names are known."""

    conditions: tuple[CaseEvents, ...]
    """Each once, with only such names as the history has."""
    of: tuple[tuple[AnyProperty, int], ...]
    """Each property, and the number of its condition."""


def judge(events: Sequence[Event], properties: Iterable[AnyProperty]) -> list[Finding]:
    """Every property's finding on one history of the reference, in the order given.

    A property is not asked if the history has none of its case events.
    """
    by_name: dict[str, list[Event]] = {}
    for e in events:
        by_name.setdefault(e.ev, []).append(e)
    questions = _questions(tuple(properties), frozenset(by_name))
    has_case = [_holds(condition, by_name) for condition in questions.conditions]
    replay: Replay | None = None
    findings = []
    for p, condition in questions.of:
        if not has_case[condition]:
            findings.append(no_case(p.id))
        elif isinstance(p, OnReplay):
            replay = replay or Replay(events, by_name)
            findings.append(p.judge(replay))
        else:
            findings.append(p.check(_read_by(p, by_name, events)))
    return findings


@lru_cache(1000)
def _questions(properties: tuple[AnyProperty, ...], names: frozenset[str]) -> CaseQuestions:
    """Return what decides whether a history with events of these names has cases.

    The executions of a program differ little in the names of their events, so this is found once, not for each of them.
    """
    numbers: dict[CaseEvents, int] = {}
    of = []
    for p in properties:
        condition = ALWAYS
        if p.case_events is not None:
            present = p.case_events.names & names
            if not present:
                condition = NEVER
            elif p.case_events.matches is not _ANY:
                condition = CaseEvents(present, p.case_events.matches)
        of.append((p, numbers.setdefault(condition, len(numbers))))
    return CaseQuestions(tuple(numbers), tuple(of))


def _holds(condition: CaseEvents, by_name: Mapping[str, Sequence[Event]]) -> bool:
    """Whether events of a history, by name, are such as a condition asks for."""
    if condition.matches is _ANY:
        return bool(condition.names)
    for name in condition.names:
        for e in by_name[name]:
            if condition.matches(e):
                return True
    return False


def _read_by(
    p: AnyProperty, by_name: Mapping[str, Sequence[Event]], events: Sequence[Event]
) -> Sequence[Event]:
    """Return the events that a property reads, or more of them, in their order."""
    if len(p.reads) != 1:
        return events
    (name,) = p.reads
    return by_name.get(name, ())


@cache
def no_case(property: str) -> Finding:
    """The finding of a property that had no case, which is the same in every history."""
    return Finding.of(property, 0)
