"""Who may have had a message unseen, as far as a recording says."""

from __future__ import annotations

import msgspec

from seriatim_models.history.event import Event, began


def operation(event: Event) -> tuple[object, ...]:
    """What joins the phases of an operation: its number, or who performs it."""
    who = (event.rec, event.conn)
    return (*who, event.proc) if event.op is None else (*who, event.op)


TAKERS = frozenset({"consume", "get", "ch_open", "ch_close", "conn_close"})
"""What `Takers` look at."""


class Takers(msgspec.Struct):
    """Who may be given messages of a queue and give them back unseen: by queue, and for all queues under ``.

    A client may end without a word. So whoever consumes from a queue, or polls it, is one until the broker confirmed
    his end. Not so where handing out settles (auto-ack): what is lost there does not come back.
    """

    _sessions: dict[str, dict[tuple[str, int | None], None]] = {}
    _polls: dict[str, dict[tuple[object, ...], None]] = {}
    """Polls of workers without a session that were not answered."""

    def take(self, event: Event) -> None:
        """Take in an event that begins or ends one."""
        ev = event.ev
        if ev in ("consume", "get"):
            if not event.conn and event.ch is None:
                self._poll(event)
            elif began(event) and not event.autoack:
                self._sessions.setdefault(event.q, {})[event.conn, event.ch] = None
        elif event.ph == "ok" and ev in ("ch_open", "ch_close", "conn_close"):
            for takers in self._sessions.values():
                for by in [b for b in takers if b[0] == event.conn]:
                    if ev == "conn_close" or by[1] == event.ch:
                        del takers[by]

    def _poll(self, event: Event) -> None:
        if event.ev == "consume":
            return  # a worker holds what it is given until it settles it
        polls = self._polls.setdefault(event.q, {})
        if event.ph == "invoke" and not event.autoack:
            polls[operation(event)] = None
        elif event.ph in ("ok", "fail"):
            polls.pop(operation(event), None)

    def others(self, event: Event, q: str) -> bool:
        """Whether anybody but who is given a message in this event is one for its queue `q`."""
        me = event.conn, event.ch
        return any(
            any(by != me for by in self._sessions.get(name, ())) or bool(self._polls.get(name))
            for name in {q, ""}
        )
