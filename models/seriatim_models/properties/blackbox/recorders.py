"""How long each recorder of a run went on: what its clients did behind its last line nobody wrote down.

A recorder that is killed leaves no `gap`. That it was still there is known by a later line of its own alone.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from seriatim_models.history.event import Event


class LatestLines(msgspec.Struct):
    """When each recorder that has a name wrote its latest line, of those that a property reads."""

    of: dict[str, int] = {}

    def take(self, event: Event) -> None:
        """Take in a line."""
        if event.rec and event.t is not None:
            self.of[event.rec] = max(event.t, self.of.get(event.rec, event.t))

    def join(self, other: Mapping[str, int]) -> None:
        """Add those of other lines of the run."""
        for rec, t in other.items():
            self.of[rec] = max(t, self.of.get(rec, t))

    def another_stopped(self, event: Event) -> bool:
        """Whether a recorder other than that of an event may have stopped before it: then nobody knows what its
        clients had done by then.
        """
        if not event.rec:
            return False
        t = event.t
        return any(rec != event.rec and (t is None or last <= t) for rec, last in self.of.items())
