"""Histories of a simulated broker, as a recorder above a client library would have seen it.

For the tests of the oracle and for its benchmark: as long as one wants, repeatable from a seed, and with a known fault
if asked for. What travels between client and broker waits on a wire, so effects are earlier or later than they are
recorded, exactly as in a recording of a real broker.
"""

from __future__ import annotations

import random
from bisect import insort
from collections import deque
from collections.abc import Iterator
from typing import Any

from seriatim_models.history.event import Event

FAULTS = (
    "loses", "doubles", "tail", "late", "skips", "unmarked", "overruns", "repeats-tag", "phantom", "after-ack",
)  # fmt: skip


class SimulatedChannel:
    """One consumer on its own channel; `gen` counts its incarnations."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.gen = 0
        self.open = False
        self.tag = 0
        self.held: dict[int, tuple[int, str]] = {}  # for the broker, by tag: position and message
        self.here: dict[int, str] = {}  # for the client
        self.to_client: deque[tuple[int, str, bool]] = deque()
        self.to_broker: deque[tuple[str, int, bool, bool]] = deque()

    @property
    def ctag(self) -> str:
        """The consumer tag of this incarnation."""
        return f"c{self.n}.{self.gen}"


class SimulatedBroker:
    """Iterate over `run`. Roughly five events a message."""

    def __init__(
        self,
        seed: int,
        messages: int,
        *,
        consumers: int = 3,
        publishers: int = 2,
        prefetch: int = 4,
        closes: bool = True,
        q: str = "q",
        fault: str = "",
    ) -> None:
        if fault and fault not in FAULTS:
            raise ValueError(f"there is no fault {fault!r}; known are {', '.join(FAULTS)}")
        self._random = random.Random(seed)
        self._messages = messages
        self._publishers = publishers
        self._channels = [SimulatedChannel(n) for n in range(consumers)]
        self._prefetch = prefetch
        self._closes = closes
        self._q = q
        self._fault = fault
        self._ready: list[tuple[int, str]] = []
        self._seen: set[str] = set()
        self._late: deque[tuple[int, int, str]] = deque()
        self._position = 0
        self._i = 0
        self._t = 0
        self._dispatched = 0
        self._gone: list[tuple[int, str]] = []

    def _event(self, ev: str, ph: str = "", **fields: Any) -> Event:
        self._i += 1
        self._t += self._random.randrange(1_000, 90_000)
        return Event(i=self._i, t=self._t, ev=ev, ph=ph, lvl="api", clk="made", **fields)

    def _on(self, c: SimulatedChannel, ev: str, ph: str = "", **fields: Any) -> Event:
        return self._event(ev, ph, conn=f"k{c.n}", ch=1, **fields)

    def _faulty(self, fault: str, one_in: int = 20) -> bool:
        return self._fault == fault and self._random.randrange(one_in) == 0

    def run(self) -> Iterator[Event]:
        """The events, in recording order, as recorded: `seriatim_models.history.complete` fills in the rest."""
        yield self._event("declare", "ok", q=self._q)
        for p in range(self._publishers):
            yield self._event("ch_open", "ok", conn=f"p{p}", ch=1)
        unconfirmed: deque[tuple[int, str]] = deque()
        sent = [0] * self._publishers
        choose = self._random
        while sum(sent) < self._messages or unconfirmed or self._busy():
            what = choose.random()
            if what < 0.2 and sum(sent) < self._messages and len(self._ready) < 50:
                p = choose.randrange(self._publishers)
                m = f"{p}:{sent[p]}"
                sent[p] += 1
                yield self._event("publish", "invoke", conn=f"p{p}", ch=1, q=self._q, m=m)
                unconfirmed.append((p, m))
                self._position += 1
                if not self._faulty("loses"):
                    self._ready.append((self._position, m))
            elif what < 0.4 and unconfirmed:
                p, m = unconfirmed.popleft()
                yield self._event("publish", "ok", conn=f"p{p}", ch=1, q=self._q, m=m)
            else:
                yield from self._consume(choose.choice(self._channels), choose.random())
        for c in self._channels:
            if c.open:
                yield from self._close(c)
        yield self._event("note", "info", q=self._q, args={"depth": len(self._ready)})

    def _busy(self) -> bool:
        on_wires = any(c.held or c.to_client or c.to_broker for c in self._channels)
        return bool(self._ready or self._late or on_wires)

    def _consume(self, c: SimulatedChannel, what: float) -> Iterator[Event]:
        if not c.open:
            c.open, c.tag = True, 0
            c.gen += 1
            yield self._on(c, "ch_open", "ok")
            yield self._on(c, "qos", "invoke", prefetch=self._prefetch, scope="consumer")
            yield self._on(c, "consume", "invoke", q=self._q, ctag=c.ctag)
            yield self._on(c, "consume", "ok", q=self._q, ctag=c.ctag)
        elif what < 0.35:
            self._dispatch(c)
        elif what < 0.65 and c.to_client:
            tag, m, redelivered = c.to_client.popleft()
            c.here[tag] = m
            yield self._on(
                c, "deliver", q=self._q, m=m, ctag=c.ctag, dtag=tag, redelivered=redelivered
            )
        elif what < 0.8 and c.here:
            yield self._settle(c)
        elif what < 0.995:
            self._obey(c)
        elif self._closes:
            yield from self._close(c)

    def _settle(self, c: SimulatedChannel) -> Event:
        choose = self._random
        tag = choose.choice(list(c.here))
        ev = choose.choices(("ack", "nack", "reject"), (0.8, 0.15, 0.05))[0]
        multiple = ev != "reject" and choose.random() < 0.1
        for t in [t for t in c.here if t == tag or (multiple and t <= tag)]:
            del c.here[t]
        requeue = None if ev == "ack" else True
        c.to_broker.append((ev, tag, multiple, bool(requeue)))
        return self._on(c, ev, "invoke", dtag=tag, multiple=multiple, requeue=requeue)

    def _dispatch(self, c: SimulatedChannel) -> None:
        """The broker hands out its first message, if the consumer has credit."""
        self._dispatched += 1
        while self._late and self._late[0][0] <= self._dispatched:
            _, position, m = self._late.popleft()
            insort(self._ready, (position, m))
        room = self._prefetch - len(c.held) + (1 if self._faulty("overruns", 4) else 0)
        if room <= 0:
            return
        if self._faulty("phantom", 200):
            self._ready.insert(0, (0, f"9:{self._dispatched}"))
        if self._faulty("after-ack", 100) and self._gone:
            self._ready.insert(0, self._gone[-1])
        if not self._ready:
            return
        at = 0
        if self._faulty("skips") and len(self._ready) > 9:
            at = 9
        position, m = self._ready[at]
        if not self._faulty("doubles"):
            del self._ready[at]
        c.tag += 0 if self._faulty("repeats-tag") and c.tag else 1
        c.held[c.tag] = (position, m)
        c.to_client.append((c.tag, m, m in self._seen and self._fault != "unmarked"))
        self._seen.add(m)

    def _obey(self, c: SimulatedChannel) -> None:
        """The broker takes the channel's next command off the wire."""
        if not c.to_broker:
            return
        ev, tag, multiple, requeue = c.to_broker.popleft()
        for t in [t for t in c.held if t == tag or (multiple and t <= tag)]:
            position, m = c.held.pop(t)
            if requeue:
                self._back(position, m)
            elif ev == "ack":
                self._gone.append((position, m))

    def _back(self, position: int, m: str) -> None:
        if self._fault == "tail":
            self._position += 1
            position = self._position
        if self._fault == "late":
            self._late.append((self._dispatched + 60, position, m))
        else:
            insort(self._ready, (position, m))

    def _close(self, c: SimulatedChannel) -> Iterator[Event]:
        """A channel closes: what was on the wire to the broker arrives first, what it held goes back."""
        yield self._on(c, "ch_close", "invoke")
        while c.to_broker:
            self._obey(c)
        for position, m in c.held.values():
            self._back(position, m)
        c.held.clear()
        c.here.clear()
        c.to_client.clear()
        c.open = False
        yield self._on(c, "ch_close", "ok")
