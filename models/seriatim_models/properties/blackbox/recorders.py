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
        return bool(event.rec) and bool(self.silent_since(event))

    def silent_since(self, event: Event) -> set[str]:
        """The recorders other than that of an event that wrote nothing after it, and so may have been killed before."""
        t = event.t
        return {
            rec for rec, last in self.of.items() if rec != event.rec and (t is None or last <= t)
        }
