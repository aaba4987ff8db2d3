"""One run that comes as events: how the local engine and a stream judge it. Needs neither Spark nor pyarrow."""

from __future__ import annotations

from collections.abc import Sequence

from seriatim_models.history import Event
from seriatim_models.pipeline.audit import findings as found
from seriatim_models.properties.base import AnyProperty, Finding, Fold


class RunFold:
    """A run from its beginning: the counts of its events, and every property's summary so far."""

    def __init__(self, run: str, properties: Sequence[AnyProperty]) -> None:
        self.statistics = found.RunStatistics(run)
        self.fold = Fold(properties, first=True)

    def take(self, events: Sequence[Event]) -> None:
        """Add completed events that follow those before."""
        found.count_events(self.statistics, events)
        self.fold.take(events)

    def findings(self) -> list[Finding]:
        """The finding of every property, if the run ended here; more events may be added afterwards."""
        judged = zip(self.fold.properties, self.fold.finish(), strict=True)
        return [found.annotated(prop, finding, self.statistics) for prop, finding in judged]
