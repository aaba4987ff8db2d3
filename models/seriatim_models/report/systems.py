"""The state of the client, the log and the fair consumer, from what they record; the queue's is in `reconstruct.py`.

Each is a table or two. Only what was recorded is shown: a deficit, for one, is that of the last visit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

Rows = tuple[tuple[str, ...], ...]
Table = tuple[str, tuple[str, ...], Rows]
"""Title, columns, rows."""

# Any: the records are other people's too, of any shape; who reads an odd one is stopped by the caller.
Args = Mapping[str, Any]


def _names(names: list[str]) -> str:
    return ", ".join(names)


@dataclass
class Work:
    """One channel of the work pool."""

    queued: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    running: list[str] = field(default_factory=list)
    ran: int = 0


class Client:
    """The server's queues, what is unacknowledged, the calls that are out, and the work pool."""

    def __init__(self) -> None:
        self.work: dict[str, Work] = {}
        self.ready: dict[str, dict[int, str]] = {}
        self.unacked: dict[str, dict[int, str]] = {}
        self.calls: dict[tuple[str, int], str] = {}

    def see(self, ev: str, a: Args) -> None:
        if ev.startswith(("pool_", "work_")):
            self._pool(ev, a)
        elif ev == "cli_call":
            call = (f"{a['conn']}.{a['ch']}", int(a["call"]))
            if a["ph"] == "invoke":
                self.calls[call] = str(a.get("op", ""))
            elif a["ph"] in ("ok", "fail"):
                self.calls.pop(call, None)
        elif ev.startswith("srv_"):
            self._server(ev, a)

    def _pool(self, ev: str, a: Args) -> None:
        if "k" not in a:
            return
        work = self.work.setdefault(str(a["k"]), Work())
        if ev == "pool_put":
            work.queued.append(str(a["w"]))
        elif ev == "pool_block":
            n = int(a["n"])
            work.taken, work.queued = work.taken + work.queued[:n], work.queued[n:]
        elif ev == "pool_unregister":
            del self.work[str(a["k"])]
        elif ev == "work_start":
            work.running.append(str(a["w"]))
            work.taken = [w for w in work.taken if w != a["w"]]
        elif ev == "work_end":
            work.running.remove(str(a["w"]))
            work.ran += 1

    def _server(self, ev: str, a: Args) -> None:
        channel = f"{a.get('conn', '')}.{a.get('ch', '')}"
        if ev == "srv_queue":
            self.ready.setdefault(str(a["q"]), {})
        elif ev == "srv_delete":
            self.ready.pop(str(a["q"]), None)
        elif ev == "srv_route":
            self.ready.setdefault(str(a["q"]), {})[int(a["pos"])] = str(a["m"])
        elif ev == "srv_push":
            self.ready.get(str(a["q"]), {}).pop(int(a["pos"]), None)
            if not a["autoack"]:
                self.unacked.setdefault(channel, {})[int(a["dtag"])] = str(a["m"])
        elif ev == "srv_settle":
            for tag in a["tags"]:
                self.unacked.get(channel, {}).pop(int(tag), None)
        elif ev == "srv_requeue":
            self.unacked.get(channel, {}).pop(int(a["dtag"]), None)
            self.ready.setdefault(str(a["q"]), {})[int(a["pos"])] = str(a["m"])

    def tables(self) -> Iterator[Table]:
        pool = tuple(
            (k, _names(w.queued), _names(w.taken), _names(w.running), str(w.ran))
            for k, w in self.work.items()
        )
        yield "Work pool", ("channel", "waits", "taken to run", "runs", "has run"), pool
        ready = tuple((q, _names([m for _, m in sorted(r.items())])) for q, r in self.ready.items())
        yield "Queues of the server", ("queue", "ready, in order"), ready
        unacked = tuple(
            (c, _names([f"{m} (tag {t})" for t, m in sorted(u.items())]))
            for c, u in self.unacked.items()
        )
        yield "Given and not settled", ("connection.channel", "messages"), unacked
        calls = tuple((f"{c}, call {n}", op) for (c, n), op in self.calls.items())
        yield "Calls that are out", ("channel", "operation"), calls


@dataclass
class Reader:
    """A channel of the log."""

    place: str = ""
    doing: str = ""
    parked: int = 0


class Log:
    """Where the topic ends, and of each channel where it reads and what it does."""

    DOES: ClassVar = {
        "connect": "connected",
        "disconnected": "disconnected",
        "sleep": "asleep",
        "woke": "awake",
        "back_off": "pauses after a failure",
    }

    def __init__(self) -> None:
        self.written: list[str] = []
        self.readers: dict[str, Reader] = {}

    def see(self, ev: str, a: Args) -> None:
        if ev == "append":
            self.written.append(f"{a['body']} at {_place(a['place'])}")
        if "channel" not in a:
            return
        reader = self.readers.setdefault(str(a["channel"]), Reader())
        if ev in ("channel", "commit"):
            reader.place = _place(a["place"])
        elif ev == "look":
            reader.doing = "sees something unread" if a["unread"] else "sees nothing unread"
        elif ev == "handle":
            done = {"invoke": "handles", "ok": "has handled", "fail": "has failed with"}
            reader.doing = f"{done[a['ph']]} {a['body']}"
        elif ev == "park":
            reader.parked += 1
        elif ev in self.DOES:
            reader.doing = self.DOES[ev]

    def tables(self) -> Iterator[Table]:
        yield "Written, in order", ("message",), tuple((m,) for m in self.written)
        readers = tuple((c, r.place, r.doing, str(r.parked)) for c, r in self.readers.items())
        yield "Channels of the log", ("channel", "reads next at", "does", "parked"), readers


def _place(place: Any) -> str:
    segment, offset = place
    return f"{segment}/{offset}"


@dataclass
class Store:
    """A slot of the fair consumer."""

    quantum: str
    waiting: list[str] = field(default_factory=list)
    deficit: str = "0"
    served: int = 0


class Fair:
    """What waits in each slot, its deficit after the last visit, and whether the loop is parked."""

    LOOP: ClassVar = {
        "park": "about to park, or parked",
        "unpark": "awake",
        "round": "on a round",
        "stopped": "stopped",
        "died": "dead of an exception",
    }

    def __init__(self) -> None:
        self.slots: dict[str, Store] = {}
        self.loop = ""

    def see(self, ev: str, a: Args) -> None:
        if ev == "slot":
            self.slots[str(a["slot"])] = Store(str(a["quantum"]))
        elif ev == "arrive":
            self.slots[a["slot"]].waiting.append(str(a["weight"]))
        elif ev == "take":
            slot = self.slots[a["slot"]]
            slot.waiting.remove(str(a["weight"]))
            slot.served += int(a["weight"])
        elif ev == "visit":
            self.slots[a["slot"]].deficit = str(a["deficit"])
        elif ev in self.LOOP:
            self.loop = self.LOOP[ev]

    def tables(self) -> Iterator[Table]:
        slots = tuple(
            (name, s.quantum, _names(s.waiting), s.deficit, str(s.served))
            for name, s in self.slots.items()
        )
        columns = ("slot", "quantum", "weights that wait", "deficit after its last visit", "served")
        yield "Slots", columns, slots
        yield "The loop", ("loop", "is"), ((("loop", self.loop),) if self.loop else ())
