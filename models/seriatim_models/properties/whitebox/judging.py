"""Judging a white-box history by many properties at the price of one replay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seriatim_models.history.event import Event
from seriatim_models.properties.base import AnyProperty, Finding
from seriatim_models.properties.whitebox.replay import OnReplay, Replay


def judge(events: Sequence[Event], properties: Iterable[AnyProperty]) -> list[Finding]:
    """Every property's finding on one history of the reference, in the order given."""
    replay: Replay | None = None
    findings = []
    for p in properties:
        if isinstance(p, OnReplay):
            replay = replay or Replay(events)
            findings.append(p.judge(replay))
        else:
            findings.append(p.check(events))
    return findings
