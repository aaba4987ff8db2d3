"""Whether what is shown of a violation violates by itself: each witness is judged once more, alone, before it is shown.

A witness is a part of a recording. What it leaves out must neither be needed to report it, nor be what reports it. So
the property is asked again, about these events and nothing else. What may stand outside are facts of the run that no
event is: that it records publishes at all, in which form the property was judged.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from seriatim_models.history.event import Event
from seriatim_models.properties.base import AnyProperty, Finding, Verdict


def in_recorded_order(events: Iterable[Event]) -> list[Event]:
    """Events of one run in the order in which they are judged: of one recorder by index, of several also by time.

    An event without a time is as late as the one of its recorder before it.
    """
    latest: dict[str, int] = {}
    placed = []
    for event in sorted(events, key=lambda e: e.i if e.i >= 0 else float("inf")):
        at = latest[event.rec] = max(latest.get(event.rec, 0), event.t or 0)
        placed.append((at, event))
    recorders = {e.rec for _, e in placed if e.i >= 0}
    if len(recorders) > 1:
        placed.sort(key=lambda timed: (timed[0], timed[1].rec))
    return [event for _, event in placed]


def confirmed(prop: AnyProperty, finding: Finding) -> Finding:
    """The finding as it may be shown.

    A violation whose witness does not violate by itself is none, unless the property says on what else it rests
    (`Property.rests_on`): then that is added to the explanation.
    """
    if finding.verdict is not Verdict.VIOLATED or not finding.witness:
        return finding
    again = prop.check_witness(in_recorded_order(finding.witness))
    if again.verdict is Verdict.VIOLATED:
        return finding
    if prop.rests_on:
        why = f"{finding.explanation} (these events do not show it by themselves: {prop.rests_on})"
        return msgspec.structs.replace(finding, explanation=why)
    return msgspec.structs.replace(
        finding,
        verdict=Verdict.INCONCLUSIVE,
        n_tested=max(finding.n_tested - finding.n_violations, 0),
        n_untestable=finding.n_untestable + finding.n_violations,
        n_violations=0,
        explanation=f"not shown by its own events, so it is no violation: {finding.explanation}",
        witness=[],
    )
