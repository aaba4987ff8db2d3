"""How long each recorder of a run went on: what its clients did behind its last line nobody wrote down.

A recorder that is killed leaves no `gap`. That it was still there is known by a later line of its own alone.
"""

from __future__ import annotations

import msgspec

from seriatim_models.history.event import Event

OPENS = frozenset({"conn_open", "ch_open"})
SHOWS = frozenset({"publish", "consume", "get", "note", "ch_close", "conn_close", "conn_drop"})
"""Events by which it is known what a recorder's client does, or that it did nothing."""
GIVES = frozenset({"deliver", "get"})
"""Events by which a recorder's client is given a message."""


class LatestLines(msgspec.Struct):
    """When each recorder that has a name wrote its latest line, of those that a property reads."""

    of: dict[str, int] = {}
    opened: set[str] = set()
    """Who opened a connection or a channel."""
    shown: set[str] = set()
    """Who wrote one of `SHOWS`."""
    given: set[tuple[str, str]] = set()
    """Who wrote that a message was given, and on which connection."""

    def take(self, event: Event) -> None:
        """Take in a line."""
        if not event.rec:
            return
        if event.ev in GIVES and event.m:
            self.given.add((event.rec, event.conn))
        if event.t is not None:
            self.of[event.rec] = max(event.t, self.of.get(event.rec, event.t))
        if event.ev in SHOWS:
            self.shown.add(event.rec)
        elif event.ev in OPENS:
            self.opened.add(event.rec)

    def join(self, other: LatestLines) -> None:
        """Add those of other lines of the run."""
        for rec, t in other.of.items():
            self.of[rec] = max(t, self.of.get(rec, t))
        self.opened |= other.opened
        self.shown |= other.shown
        self.given |= other.given

    @property
    def only_opened(self) -> set[str]:
        """Those that opened a connection or a channel, and stopped before they wrote down for what."""
        return self.opened - self.shown

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
