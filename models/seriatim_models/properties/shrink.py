"""The smallest part of a history that still violates a property.

Delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002), first over messages,
then over the single events that are left. The messages of the witness are tried first: they are mostly enough.
What is left is completed and judged as any reader would, so it violates the property when it is read again too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from seriatim_models.history.complete import complete
from seriatim_models.history.event import Event
from seriatim_models.properties.base import AnyProperty, Finding, Verdict

T = TypeVar("T")


class Shrunk(msgspec.Struct):
    """The events left, completed; the finding on them; and how many histories were judged to get there."""

    events: list[Event]
    finding: Finding
    judged: int


def of(events: Iterable[Event], messages: set[str]) -> list[Event]:
    """The part of a history that is about some messages, and all that is about none."""
    out = []
    for e in events:
        if e.m:
            if e.m in messages:
                out.append(e)
        elif e.ms is not None:
            ms = [m for m in e.ms if m in messages]
            if ms:
                out.append(msgspec.structs.replace(e, ms=ms))
        else:
            out.append(e)
    return out


def shrunk(prop: AnyProperty, events: Sequence[Event]) -> Shrunk:
    """The smallest part of a history that still violates the property.

    Raises `ValueError` if the whole does not.
    """
    whole = list(complete(events))
    finding = prop.check(whole)
    if finding.verdict is not Verdict.VIOLATED:
        raise ValueError(
            f"{prop.id} is not violated by this history, so there is nothing to shrink"
        )
    judged = 1

    def violates(part: Sequence[Event]) -> bool:
        nonlocal judged
        judged += 1
        return prop.check(complete(part)).verdict is Verdict.VIOLATED

    messages = list(dict.fromkeys(e.m for e in whole if e.m))
    shown = {m for e in finding.witness for m in (e.m, *(e.ms or ())) if m}
    near = of(whole, shown)
    if violates(near):
        whole, messages = near, [m for m in messages if m in shown]
    kept = _minimal(messages, lambda some: violates(of(whole, set(some))))
    part = of(whole, set(kept))
    part = _minimal(part, violates)
    left = list(complete(part))
    return Shrunk(left, prop.check(left), judged)


def _minimal(items: Sequence[T], violates: Callable[[Sequence[T]], bool]) -> list[T]:
    """A part of the items that violates and of which no single item can be left out. The whole must violate."""
    held = list(items)
    if held and violates([]):
        return []
    size = max(1, len(held) // 2)
    while True:
        at, smaller = 0, False
        while at < len(held):
            without = held[:at] + held[at + size :]
            if len(without) < len(held) and violates(without):
                held, smaller = without, True
            else:
                at += size
        if size == 1:
            if not smaller:
                return held
        else:
            size = max(1, size // 2)
