"""How generated programs are judged: by every property that reads what the reference records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seriatim_models.history.event import Event
from seriatim_models.properties import PROPERTIES, Finding, Verdict
from seriatim_models.properties.whitebox.judging import judge


def violations(events: Sequence[Event], without: Iterable[str] = ()) -> list[Finding]:
    """Return the findings of all properties but `without` that a history violates."""
    left_out = frozenset(without)
    found = judge(events, [p for p in PROPERTIES.values() if p.id not in left_out])
    return [f for f in found if f.verdict is Verdict.VIOLATED]
