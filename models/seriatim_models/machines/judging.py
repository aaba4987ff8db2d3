"""What drawn programs are judged by: every property, with the exceptions that are said here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seriatim_models.history.event import Event
from seriatim_models.properties import PROPERTIES, AnyProperty, Finding, Verdict
from seriatim_models.properties.whitebox import judge

TAKING_ONLY = "ES-3"
"""Judged without what browsers were shown: a browser takes nothing, so a message may go between its look at the state
and its move."""


def convicted(events: Sequence[Event], without: Iterable[str] = ()) -> list[Finding]:
    """The findings of all properties but `without` that convict a history."""
    browsers = {e.args["sub"] for e in events if e.ev == "consumer" and not e.args["acquires"]}
    taking = [e for e in events if e.ev != "deliver" or e.args["sub"] not in browsers]
    left_out = {*without, TAKING_ONLY}
    others: list[AnyProperty] = [p for p in PROPERTIES.values() if p.id not in left_out]
    found = [*judge(events, others), *judge(taking, [PROPERTIES[TAKING_ONLY]])]
    return [f for f in found if f.verdict is Verdict.VIOLATED]
