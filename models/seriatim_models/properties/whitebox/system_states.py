"""The state of the client, of the log and of the fair consumer after each event; the queue's is in `state.py`.

Events must be as the catalogue declares them. An event about something of which nothing is known changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from seriatim_models.history import catalogue
from seriatim_models.history.event import Event

POOL = frozenset(kind.name for kind in catalogue.CLIENT if catalogue.pool_key in kind.needs)
"""Events about one channel of the work pool."""


@dataclass
class WorkItems:
    """The work of one channel of the work pool."""

    queued: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    running: list[str] = field(default_factory=list)
    ran: int = 0


class ClientState:
    """The server's queues, what is unacknowledged, the calls without a reply, and the work pool."""

    def __init__(self) -> None:
        self.work: dict[str, WorkItems] = {}
        self.ready: dict[str, dict[int, str]] = {}
        """By queue: position -> message."""
        self.unacked: dict[str, dict[int, str]] = {}
        """By ``connection.channel``: delivery tag -> message."""
        self.calls: dict[tuple[str, int], str] = {}
        """(``connection.channel``, number) -> operation."""

    def see(self, e: Event) -> None:
        """Bring the state forward by an event."""
        if e.ev in POOL:
            self._pool(e)
        elif e.ev == "cli_call":
            call = (f"{e.conn}.{e.ch}", catalogue.call(e))
            if e.ph == "invoke":
                self.calls[call] = catalogue.operation.get(e, "")
            elif e.ph in ("ok", "fail"):
                self.calls.pop(call, None)
        elif e.ev.startswith("srv_"):
            self._server(e)

    def _pool(self, e: Event) -> None:
        key = catalogue.pool_key(e)
        work = self.work.setdefault(key, WorkItems())
        if e.ev == "pool_put":
            work.queued.append(catalogue.work(e))
        elif e.ev == "pool_block":
            n = catalogue.taken_items(e)
            work.taken, work.queued = work.taken + work.queued[:n], work.queued[n:]
        elif e.ev == "pool_unregister":
            del self.work[key]
        elif e.ev == "work_start":
            work.running.append(catalogue.work(e))
            work.taken = [w for w in work.taken if w != catalogue.work(e)]
        elif e.ev == "work_end" and catalogue.work(e) in work.running:
            work.running.remove(catalogue.work(e))
            work.ran += 1

    def _server(self, e: Event) -> None:
        unacked = self.unacked.get(f"{e.conn}.{e.ch}", {})
        tag, position = e.dtag or 0, e.pos or 0
        if e.ev == "srv_queue":
            self.ready.setdefault(e.q, {})
        elif e.ev == "srv_delete":
            self.ready.pop(e.q, None)
        elif e.ev == "srv_route":
            self.ready.setdefault(e.q, {})[position] = e.m
        elif e.ev == "srv_push":
            self.ready.get(e.q, {}).pop(position, None)
            if not e.autoack:
                self.unacked.setdefault(f"{e.conn}.{e.ch}", {})[tag] = e.m
        elif e.ev == "srv_settle":
            for settled in catalogue.tags(e):
                unacked.pop(settled, None)
        elif e.ev == "srv_requeue":
            unacked.pop(tag, None)
            self.ready.setdefault(e.q, {})[position] = e.m


@dataclass
class LogChannel:
    """A channel of the log: where it reads next, its latest event, and how many messages it parked."""

    place: list[int] = field(default_factory=list)
    latest: Event | None = None
    parked: int = 0


class LogState:
    """What was written, and of each channel where it reads and what it did last."""

    def __init__(self) -> None:
        self.written: list[tuple[str, list[int]]] = []
        """Message and place, in order."""
        self.channels: dict[str, LogChannel] = {}

    def see(self, e: Event) -> None:
        """Bring the state forward by an event."""
        if e.ev == "append":
            self.written.append((catalogue.body(e), catalogue.place(e)))
        if not (name := catalogue.channel.get(e, "")):
            return
        channel = self.channels.setdefault(name, LogChannel())
        if e.ev in ("channel", "commit"):
            channel.place = catalogue.place(e)
        elif e.ev == "park" and not e.ph:
            channel.parked += 1
        elif e.ev in ("connect", "disconnected", "look", "sleep", "woke", "handle", "back_off"):
            channel.latest = e


@dataclass
class FairSlot:
    """A slot of the fair consumer; its deficit is that of the last visit."""

    quantum: int
    waiting: list[int] = field(default_factory=list)
    """Weights, in the order of arrival."""
    deficit: int = 0
    served: int = 0


class FairState:
    """What waits in each slot, and what the loop did last."""

    def __init__(self) -> None:
        self.slots: dict[str, FairSlot] = {}
        self.loop = ""
        """Name of the loop's latest event."""

    def see(self, e: Event) -> None:
        """Bring the state forward by an event."""
        if e.ev == "slot":
            self.slots[catalogue.slot(e)] = FairSlot(catalogue.quantum(e))
        elif e.ev in ("unpark", "round", "stopped", "died", "park"):
            self.loop = e.ev
        elif e.ev in ("arrive", "take", "visit"):
            slot = self.slots.get(catalogue.slot(e))
            if slot is None:
                return
            if e.ev == "visit":
                slot.deficit = catalogue.deficit(e)
            elif e.ev == "arrive":
                slot.waiting.append(catalogue.weight(e))
            elif catalogue.weight(e) in slot.waiting:
                slot.waiting.remove(catalogue.weight(e))
                slot.served += catalogue.weight(e)
