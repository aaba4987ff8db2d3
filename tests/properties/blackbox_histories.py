"""Histories for the black-box properties: a short way to write one down, and a strategy for any, legal or not."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol

from hypothesis import strategies as st

from seriatim_models.history import Event
from seriatim_models.history.event import GAP
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.whitebox.composites import COMPOSITES

BY_ID = {p.id: p for p in (*BLACKBOX, *COMPOSITES)}


def counted(finding: Finding) -> tuple[Verdict, int, int]:
    """The verdict, and how many cases were tested and could not be."""
    return finding.verdict, finding.n_tested, finding.n_untestable


def shown(finding: Finding) -> list[int]:
    """The numbers of the events that the finding shows."""
    return [e.i for e in finding.witness]


class Recording:
    """Writes events one after another; `t` is ten times the index by default, so that bounds fit between."""

    def __init__(self, lvl: str = "api") -> None:
        self.events: list[Event] = []
        self.lvl = lvl

    def add(self, ev: str, ph: str = "", **fields: Any) -> Event:
        i = len(self.events)
        event = Event(i=i, ev=ev, ph=ph, lvl=self.lvl, **({"t": 10 * i} | fields))
        self.events.append(event)
        return event

    def declare(self, q: str = "q", **args: Any) -> None:
        """A queue is declared, by default a plain one, from which nothing goes by itself."""
        self.add("declare", q=q, args=args)

    def publish(self, m: str, q: str = "q", pub: str = "p") -> None:
        """Sent and confirmed; the number in the name is its sequence."""
        pseq = int("".join(c for c in m if c.isdigit()))
        for ph in ("invoke", "ok"):
            self.add("publish", ph, m=m, q=q, pub=pub, pseq=pseq, conn="pub", ch=1, gen=1)

    def deliver(self, m: str, to: str = "a", lo: int | None = None, **fields: Any) -> Event:
        """Given to consumer `to`, acquired not before event number `lo`."""
        pseq = int("".join(c for c in m if c.isdigit()))
        base: dict[str, Any] = {"q": "q", "pub": "p", "pseq": pseq, "redelivered": False}
        t_lo = None if lo is None else 10 * lo
        base |= {"conn": to, "ch": 1, "gen": 1, "ctag": f"tag-{to}", "t_lo": t_lo}
        return self.add("deliver", m=m, **(base | fields))

    def settle(self, ev: str, *ms: str, by: str = "a", **fields: Any) -> None:
        """An ack, nack or reject by consumer `by`; nack and reject requeue unless the call says otherwise."""
        if ev != "ack":
            fields = {"requeue": True} | fields
        self.add(ev, "invoke", ms=list(ms), q="q", conn=by, ch=1, gen=1, **fields)

    def end(self, ev: str, by: str, ph: str = "invoke") -> None:
        """A channel or connection of `by` ends."""
        channel = {"ch": 1, "gen": 1} if ev == "ch_close" else {}
        self.add(ev, ph, conn=by, **channel)

    def alive(self, *names: str) -> None:
        """The channels of consumers answer a call: they were there all the while, and what they sent took effect."""
        for by in names:
            op = len(self.events)
            for ph in ("invoke", "ok"):
                self.add("qos", ph, conn=by, ch=1, gen=1, op=op)


def check(id: str, recording: Recording) -> Finding:
    """What the property finds in the recording."""
    return BY_ID[id].check(recording.events)


MESSAGES = ["m0", "m1", "m2"]
SETS: list[list[str]] = [[], ["m0"], ["m1"], ["m2"], ["m0", "m1"], ["m1", "m2"]]
CONNS = ["a", "b"]


class Choose(Protocol):
    """Where the choices come from: Hypothesis, which can shrink them, or a seed, which is a hundred times as fast."""

    def one(self, of: Sequence[Any]) -> Any: ...

    def number(self, lo: int, hi: int) -> int: ...


class Drawn:
    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def one(self, of: Sequence[Any]) -> Any:
        return self._draw(st.sampled_from(of))

    def number(self, lo: int, hi: int) -> int:
        return self._draw(st.integers(lo, hi))


class Seeded:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def one(self, of: Sequence[Any]) -> Any:
        return self._random.choice(of)

    def number(self, lo: int, hi: int) -> int:
        return self._random.randint(lo, hi)


@st.composite
def any_history(draw: st.DrawFn, max_size: int = 24) -> list[Event]:
    """Any history, as a strategy."""
    return build(Drawn(draw), max_size)


def build(choose: Choose, max_size: int = 24) -> list[Event]:
    """Events of all the kinds that black-box properties read, in any order, over few names so that they meet."""
    lvl = choose.one(["api", "api", "wire", "model"])
    with_gaps = choose.one([False, True])
    two_queues = choose.one([False, True])
    kinds = ["publish", "deliver", "deliver", "deliver", "ack", "nack", "ends", "other"]
    kinds += ["gap"] if with_gaps else []
    kinds += choose.one(
        [[], ["get", "get"], ["consumer", "consumer", "deliver"], ["client"], ["log", "log"]]
    )
    out: list[Event] = []
    t = 0
    for i in range(choose.number(0, max_size)):
        t += choose.number(0, 3)
        kind = choose.one(kinds)
        m = choose.one(MESSAGES)
        conn = choose.one(CONNS)
        q = choose.one(["q", "r", ""]) if two_queues else "q"
        ph = choose.one(["invoke", "ok"])
        chan: dict[str, Any] = {"conn": conn, "ch": 1, "gen": choose.number(1, 2)}
        fields: dict[str, Any]
        match kind:
            case "publish":
                fields = {"ev": "publish", "m": m, "q": q, "ph": ph, "pub": conn, "pseq": int(m[1])}
                fields["op"] = int(m[1])
            case "deliver":
                fields = chan | {
                    "ev": "deliver",
                    "m": m,
                    "q": q,
                    "pub": choose.one(["p", "p", ""]),
                    "pseq": int(m[1]),
                    "ctag": choose.one(["c1", "c2"]),
                    "dtag": choose.number(1, 5),
                    "redelivered": choose.one([False, False, True, None]),
                    "prefetch": choose.one([1, 2, None]),
                    "scope": choose.one(["consumer", "channel", None]),
                    "autoack": choose.one([None, False, True]),
                    "nolocal": choose.one([*[False] * 8, True, None]),
                    "t_lo": choose.one([None, choose.number(max(0, t - 4), t)]),
                }
            case "ack" | "nack":
                ms = choose.one(SETS)
                fields = chan | {"ev": kind, "q": q, "ms": ms, "ph": choose.one(["invoke", "ok"])}
                fields |= {"dtag": choose.number(1, 5), "multiple": choose.one([False, True])}
                if kind == "nack":
                    fields["requeue"] = choose.one([False, True])
                    fields["t_hi"] = choose.one([None, choose.number(t, t + 4)])
            case "ends":
                ev = choose.one(["ch_close", "conn_close", "conn_drop", "cancel"])
                fields = chan | {"ev": ev, "ph": choose.one(["invoke", "ok", "info"])}
                fields["t_hi"] = choose.one([None, None, None, choose.number(t, t + 4)])
                if ev == "cancel":
                    fields |= {"q": q, "ctag": choose.one(["c1", "c2"])}
            case "other":
                ev = choose.one(["ch_open", "consume", "recover", "return", "note", "expire"])
                fields = chan | {"ev": ev, "q": q, "ctag": "c1"}
                fields |= {"m": m} if ev in ("return", "expire") else {}
                fields |= {"args": {"depth": choose.number(0, 1)}} if ev == "note" else {}
            case "get":
                fields = chan | {"ev": "get", "q": q, "ph": ph, "op": choose.number(0, 3)}
                if ph == "ok":
                    fields |= {
                        "m": choose.one([*MESSAGES, ""]),
                        "autoack": choose.one([True, True, None]),
                    }
            case "consumer":
                ev = choose.one(["consume", "consume", "qos", "declare"])
                fields = chan | {"ev": ev, "ph": ph}
                if ev != "qos":
                    fields |= {"q": q}
                if ev == "consume":
                    fields |= {"ctag": choose.one(["c1", "c2"]), "cprio": choose.one([None, 0, 1])}
                    fields |= {"exclusive": choose.one([None, True])}
                elif ev == "qos":
                    fields |= {
                        "prefetch": choose.number(0, 2),
                        "scope": choose.one(["consumer", "channel", "conn"]),
                    }
                else:
                    fields |= {"args": {"x-single-active-consumer": True}}
            case "client":
                ev = choose.one(["cb_begin", "cb_begin", "cb_end", "rpc", "rpc", "conn_open"])
                fields = chan | {"ev": ev}
                if ev == "rpc":
                    fields |= {
                        "ph": ph,
                        "op": choose.number(0, 2),
                        "key": choose.one([None, "a", "b"]),
                    }
                elif ev == "conn_open":
                    fields |= {"args": {"pool": 1}}
                else:
                    fields |= {"dtag": choose.number(1, 5)}
            case "log":
                ev = choose.one(["publish", "deliver", "deliver", "deliver", "commit", "seek"])
                fields = chan | {"ev": ev, "q": q, "ctag": "c1", "pos": choose.number(0, 4)}
                fields |= {"m": m} if ev in ("publish", "deliver") else {}
                fields |= {"ph": "ok"} if ev == "publish" else {}
                fields |= {"attempt": choose.one([None, 1, 2])} if ev == "deliver" else {}
            case _:
                fields = {"ev": GAP}
        out.append(Event(i=i, t=t, lvl=lvl, **fields))
    return out


def late(overtakers: int, prefetch: int = 2) -> Recording:
    """m0 is nacked when the window is full, and comes back only after some later messages."""
    r = Recording()
    limit: dict[str, Any] = {"prefetch": prefetch, "scope": "consumer"}
    for n in range(prefetch):
        r.deliver(f"m{n}", **limit)
    r.settle("nack", "m0")
    for n in range(prefetch, prefetch + overtakers):
        r.deliver(f"m{n}", **limit)
        r.settle("ack", f"m{n}")
    r.deliver("m0", redelivered=True, **limit)
    return r
