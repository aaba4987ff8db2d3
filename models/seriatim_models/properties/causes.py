"""What belongs together among violations: one mistake of a system is seen by several properties, and is shown once."""

from __future__ import annotations

from collections.abc import Sequence

from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.blackbox.strict import when


def first_seen(finding: Finding) -> tuple[int, int, int]:
    """When a violation was complete: by the last event of its witness. Of equals, the smallest witness is first."""
    last = max(((when(e), e.i) for e in finding.witness), default=(0, 0))
    return (*last, len(finding.witness))


def causes(findings: Sequence[Finding]) -> list[list[Finding]]:
    """The violations in the order in which they were complete, those together whose last event is the same.

    Properties that find fault with one and the same event of a recording most likely see one mistake.
    """
    found: dict[object, list[Finding]] = {}
    for finding in sorted((f for f in findings if f.verdict is Verdict.VIOLATED), key=first_seen):
        last = max(finding.witness, key=lambda e: (when(e), e.i), default=None)
        cause = finding.property if last is None else (last.run, last.rec, last.i)
        found.setdefault((finding.subject, cause), []).append(finding)
    return list(found.values())
