"""What a recording implies but does not say, worked out in one pass in recording order.

Recorders write down what they see; properties want every event to stand on its own, so that a history can be cut
anywhere. `Completion` fills in, and only where the recorder left the field empty:

| field | on | from |
|---|---|---|
| gen | events of a channel | how often the channel was opened before, since channel numbers are used again |
| q, autoack | deliver, cancel, consume ok | the `consume` of the consumer tag |
| prefetch, scope | deliver | the `qos` that holds for the consumer |
| ms, q | ack, nack, reject | the outstanding delivery tags, `multiple` covering all up to `dtag` |
| pub, pseq, q | publish, deliver | the publishing channel and its count; confirm and delivery have the publish's |
| t_lo | deliver, get | the latest of the lower bounds below |

A delivery was acquired by the broker at some time in [t_lo, t]. Not before its consumer was asked for; not before the
message was published; not before the latest command that requeued it; and, with a prefetch of p, the n-th delivery
not before the (n-p)-th settlement was sent, because until then p messages were outstanding.
An `ack` is sent before the broker sees it, so the time of sending bounds from below.
Recorders inside the broker (`lvl` broker or model) see the acquisition itself: there t_lo is t.

After a `gap` nothing is known about credit, so that bound is dropped for consumers begun before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import msgspec

from seriatim_models.history.event import GAP, Event

SETTLES = frozenset({"ack", "nack", "reject"})
EXACT = frozenset({"broker", "model"})
"""Levels whose recorder sees the effect itself and misses none."""


class _Limiter:
    """The credit of one consumer, or of one channel when the prefetch is the channel's."""

    def __init__(self, prefetch: int | None, since: int | None) -> None:
        self.prefetch = prefetch
        self.since = since
        self._delivered = 0
        self._settled: deque[int] = deque()

    def settle(self, t: int) -> None:
        if self.prefetch:
            self._settled.append(t)

    def deliver(self) -> int | None:
        """The earliest time at which the broker had credit for the next delivery."""
        self._delivered += 1
        if self.prefetch and self._delivered > self.prefetch and self._settled:
            settled = self._settled.popleft()
            self.since = settled if self.since is None else max(self.since, settled)
        return self.since

    def forget(self) -> None:
        """Settlements may have been missed: from here on the credit bounds nothing."""
        self.prefetch = None
        self._settled.clear()


class _Consumer:
    def __init__(self, event: Event, prefetch: int | None, limiter: _Limiter) -> None:
        self.q = event.q
        self.autoack = event.autoack
        self.prefetch = prefetch
        self.limiter = limiter


class _Channel:
    def __init__(self) -> None:
        self.prefetch: int | None = None
        self.own: int | None = None  # the limit of consumers that begin from now on
        self.scope: str | None = None
        self.limiter: _Limiter | None = None  # of the channel, when the prefetch is the channel's
        self.consumers: dict[str, _Consumer] = {}
        self.open: dict[int, tuple[str, str, _Limiter | None]] = {}  # dtag: message, queue, credit
        self.published = 0
        self.get_since: int | None = None

    def limiters(self) -> Iterator[_Limiter]:
        for consumer in self.consumers.values():
            yield consumer.limiter
        if self.limiter:
            yield self.limiter


class _Message:
    """`since`: not available before."""

    def __init__(self, q: str, pub: str, pseq: int | None, since: int | None) -> None:
        self.q = q
        self.pub = pub
        self.pseq = pseq
        self.since = since


class Completion:
    """Fills in one recorder's events, given in recording order. Memory grows with what is open, not with the length."""

    def __init__(self) -> None:
        self._gens: dict[tuple[str, int], int] = {}
        self._channels: dict[tuple[str, int], _Channel] = {}
        self._messages: dict[str, _Message] = {}

    def __call__(self, event: Event) -> Event:
        """The event with what the ones before it imply."""
        if event.ev == GAP:
            for channel in self._channels.values():
                for limiter in channel.limiters():
                    limiter.forget()
            return event
        if event.ch is None:
            if event.ev in ("conn_close", "conn_drop"):
                self._end_connection(event.conn)
            return self._without_channel(event)
        key = (event.conn, event.ch)
        if event.ev == "ch_open" and event.ph in ("", "ok"):
            self._gens[key] = event.gen if event.gen is not None else self._gens.get(key, 0) + 1
            self._channels[key] = _Channel()
        gen = event.gen if event.gen is not None else self._gens.setdefault(key, 1)
        channel = self._channels.setdefault(key, _Channel())
        # Any: a partial set of Event's fields, whose types msgspec does not check on replace
        new = self._implied(event, gen, channel)
        new = {k: v for k, v in new.items() if v is not None and getattr(event, k) in (None, "")}
        if event.ev in ("conn_close", "conn_drop"):
            self._end_connection(event.conn)
        elif event.ev == "ch_close":
            self._channels.pop(key, None)
        return msgspec.structs.replace(event, **new) if new else event

    def _implied(self, event: Event, gen: int, channel: _Channel) -> dict[str, object]:
        new: dict[str, object] = {"gen": gen}
        match event.ev:
            case "qos" if event.ph in ("", "invoke"):
                self._qos(event, channel)
            case "recover" if event.ph in ("", "invoke"):
                channel.open.clear()
            case "consume" if event.ph in ("", "invoke"):
                self._consume(event, channel)
            case "consume" | "cancel":
                consumer = channel.consumers.get(event.ctag)
                new["q"] = consumer.q if consumer else None
            case "publish":
                new |= self._publish(event, gen, channel)
            case "get" if event.ph == "invoke":
                channel.get_since = event.t
            case "deliver" | "get":
                if event.m:
                    new |= self._deliver(event, channel)
            case "ack" | "nack" | "reject" if event.ph in ("", "invoke"):
                new |= self._settle(event, channel)
        return new

    def _without_channel(self, event: Event) -> Event:
        """Recorders of systems without channels: only what needs none."""
        if event.ev == "publish" and event.ph in ("", "invoke"):
            self._messages[event.m] = _Message(event.q, event.pub, event.pseq, event.t)
        elif event.ev == "deliver" and event.t_lo is None and event.lvl in EXACT:
            return msgspec.structs.replace(event, t_lo=event.t)
        return event

    def _end_connection(self, conn: str) -> None:
        for key in [k for k in self._channels if k[0] == conn]:
            del self._channels[key]

    def _qos(self, event: Event, channel: _Channel) -> None:
        if event.scope == "channel":
            # A second limit on a channel that has deliveries outstanding has no simple count: no bound from it.
            fresh = channel.limiter is None and not channel.open
            channel.limiter = _Limiter(event.prefetch if fresh else None, None)
        else:
            channel.limiter = None
        channel.prefetch = event.prefetch
        channel.scope = event.scope
        if event.scope != "channel":
            channel.own = event.prefetch

    def _consume(self, event: Event, channel: _Channel) -> None:
        own = channel.scope == "consumer"
        limiter = _Limiter(channel.prefetch if own else None, event.t)
        channel.consumers[event.ctag] = _Consumer(event, channel.own, limiter)

    def _publish(self, event: Event, gen: int, channel: _Channel) -> dict[str, object]:
        if event.ph not in ("", "invoke"):
            known = self._messages.get(event.m)
            return {"q": known.q, "pub": known.pub, "pseq": known.pseq} if known else {}
        pub = event.pub or f"{event.conn}/{event.ch}/{gen}"
        pseq = event.pseq if event.pseq is not None else channel.published
        channel.published += 1
        self._messages[event.m] = _Message(event.q, pub, pseq, event.t)
        return {"pub": pub, "pseq": pseq}

    def _deliver(self, event: Event, channel: _Channel) -> dict[str, object]:
        new: dict[str, object] = {}
        bounds: list[int | None] = []
        consumer = channel.consumers.get(event.ctag) if event.ev == "deliver" else None
        limiter = None
        q = event.q
        if consumer:
            q = q or consumer.q
            limiter = channel.limiter if channel.scope == "channel" else consumer.limiter
            bounds.append(consumer.limiter.since)
            prefetch = channel.prefetch if channel.scope == "channel" else consumer.prefetch
            new |= {
                "q": q,
                "autoack": consumer.autoack,
                "prefetch": prefetch,
                "scope": channel.scope if prefetch is not None else None,
            }
        if limiter:
            bounds.append(limiter.deliver())
        if event.ev == "get":
            bounds.append(channel.get_since)
        known = self._messages.get(event.m)
        if known:
            new |= {"pub": known.pub, "pseq": known.pseq}
            bounds.append(known.since)
        if event.lvl in EXACT:
            bounds = [event.t]
        new["t_lo"] = max((b for b in bounds if b is not None), default=None)
        autoack = event.autoack if event.autoack is not None else new.get("autoack")
        if autoack:
            self._messages.pop(event.m, None)
        elif event.dtag is not None:
            channel.open[event.dtag] = (event.m, q, limiter)
        return new

    def _settle(self, event: Event, channel: _Channel) -> dict[str, object]:
        tags = []
        if event.dtag is not None:
            if event.multiple:
                tags = [d for d in channel.open if d <= event.dtag or event.dtag == 0]
            elif event.dtag in channel.open:
                tags = [event.dtag]
        settled = [channel.open.pop(d) for d in tags]
        for m, _, limiter in settled:
            if limiter and event.t is not None:
                limiter.settle(event.t)
            if event.ev == "ack" or event.requeue is False:
                self._messages.pop(m, None)
            elif (known := self._messages.get(m)) and event.t is not None:
                known.since = event.t
        queues = {q for _, q, _ in settled}
        return {
            "ms": [m for m, _, _ in settled] or None,
            "q": queues.pop() if len(queues) == 1 else None,
        }


def complete(events: Iterable[Event]) -> Iterator[Event]:
    """The events of one recorder, in recording order, each with what those before it imply."""
    completion = Completion()
    for event in events:
        yield completion(event)
