"""How long messages waited in a recording: from publish to first delivery."""

from __future__ import annotations

from collections.abc import Iterable

from seriatim_models.history import Event

NANOSECONDS_PER_MILLISECOND = 1e6


def publish_to_delivery(events: Iterable[Event]) -> list[float]:
    """Milliseconds, one for each message whose publish and first delivery stand in one clock, in order of delivery."""
    published: dict[str, Event] = {}
    waited: dict[str, float] = {}
    for e in events:
        if not e.m or e.t is None:
            continue
        if e.ev == "publish" and e.ph in {"", "invoke"}:
            published.setdefault(e.m, e)
        elif e.ev in {"deliver", "get"} and e.m in published and e.m not in waited:
            begun = published[e.m]
            if begun.clk == e.clk and begun.t is not None:
                waited[e.m] = (e.t - begun.t) / NANOSECONDS_PER_MILLISECOND
    return list(waited.values())
