"""The state of the client, the log and the fair consumer as tables; the queue's are in `reconstruct.py`.

Each is a table or two. Only what was recorded is shown: a deficit, for one, is that of the last visit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seriatim_models.history import catalogue
from seriatim_models.history.event import Event
from seriatim_models.properties.whitebox.system_states import ClientState, FairState, LogState

Rows = tuple[tuple[str, ...], ...]
Table = tuple[str, tuple[str, ...], Rows]
"""Title, columns, rows."""

DOING = {
    "connect": "connected",
    "disconnected": "disconnected",
    "sleep": "asleep",
    "woke": "awake",
    "back_off": "pauses after a failure",
}
HANDLING = {"invoke": "handles", "ok": "has handled", "fail": "has failed with"}
LOOP = {
    "park": "about to park, or parked",
    "unpark": "awake",
    "round": "on a round",
    "stopped": "stopped",
    "died": "dead of an exception",
}


def _names(names: Iterable[object]) -> str:
    return ", ".join(map(str, names))


def client_tables(client: ClientState) -> Iterator[Table]:
    """The work pool, the server's queues, what is unacknowledged, and the calls without a reply."""
    pool = tuple(
        (k, _names(w.queued), _names(w.taken), _names(w.running), str(w.ran))
        for k, w in client.work.items()
    )
    yield "Work pool", ("channel", "waits", "taken to run", "runs", "has run"), pool
    ready = tuple((q, _names(m for _, m in sorted(r.items()))) for q, r in client.ready.items())
    yield "Queues of the server", ("queue", "ready, in order"), ready
    unacked = tuple(
        (c, _names(f"{m} (tag {t})" for t, m in sorted(u.items())))
        for c, u in client.unacked.items()
    )
    yield "Given and not settled", ("connection.channel", "messages"), unacked
    calls = tuple((f"{c}, call {n}", op) for (c, n), op in client.calls.items())
    yield "Calls that are out", ("channel", "operation"), calls


def log_tables(log: LogState) -> Iterator[Table]:
    """What was written, and where each channel reads."""
    written = tuple((f"{body} at {_place(place)}",) for body, place in log.written)
    yield "Written, in order", ("message",), written
    channels = tuple(
        (name, _place(c.place), _doing(c.latest), str(c.parked)) for name, c in log.channels.items()
    )
    yield "Channels of the log", ("channel", "reads next at", "does", "parked"), channels


def _doing(latest: Event | None) -> str:
    if latest is None:
        return ""
    if latest.ev == "look":
        return "sees something unread" if catalogue.unread(latest) else "sees nothing unread"
    if latest.ev == "handle":
        return f"{HANDLING[latest.ph]} {catalogue.body(latest)}"
    return DOING[latest.ev]


def _place(place: list[int]) -> str:
    return "/".join(map(str, place))


def fair_tables(fair: FairState) -> Iterator[Table]:
    """What waits in each slot, and what the loop does."""
    slots = tuple(
        (name, str(s.quantum), _names(s.waiting), str(s.deficit), str(s.served))
        for name, s in fair.slots.items()
    )
    columns = ("slot", "quantum", "weights that wait", "deficit after its last visit", "served")
    yield "Slots", columns, slots
    yield "The loop", ("loop", "is"), ((("loop", LOOP[fair.loop]),) if fair.loop else ())
