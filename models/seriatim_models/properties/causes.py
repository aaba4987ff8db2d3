"""What belongs together among violations: one mistake of a system is seen by several properties, and is shown once."""

from __future__ import annotations

from collections.abc import Sequence

from seriatim_models.history.event import Event
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.blackbox.sessions import ANSWERED
from seriatim_models.properties.blackbox.strict import when

PRESENCE = ANSWERED - {"consume"}
"""What a witness shows only to prove that somebody was there, or what was declared."""


def last_step(finding: Finding) -> Event | None:
    """The event with which a violation was complete: the last of its witness that is more than a sign of presence."""
    steps = [e for e in finding.witness if e.ev not in PRESENCE] or finding.witness
    return max(steps, key=lambda e: (when(e), e.i), default=None)


def first_seen(finding: Finding) -> tuple[int, int, int]:
    """When a violation was complete, see `last_step`. Of equals, the smallest witness is first."""
    last = last_step(finding)
    return (0, 0, 0) if last is None else (when(last), last.i, len(finding.witness))


def causes(findings: Sequence[Finding]) -> list[list[Finding]]:
    """The violations in the order in which they were complete, those together whose last event is the same.

    Properties that find fault with one and the same event of a recording most likely see one mistake.
    """
    found: dict[object, list[Finding]] = {}
    for finding in sorted((f for f in findings if f.verdict is Verdict.VIOLATED), key=first_seen):
        last = last_step(finding)
        cause = finding.property if last is None else (last.run, last.rec, last.i)
        found.setdefault((finding.subject, cause), []).append(finding)
    return list(found.values())
