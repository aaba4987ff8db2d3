"""qh/0, the first format of our broker recordings, as qh/1 events.

A qh/0 line has `i`, `t` (CLOCK_MONOTONIC, ns), `w` (worker), `ev`, `ph`, and then as applicable `conn`, `ch`, `q`,
`m`
(``publisher:sequence``), `seq`, `ctag`, `dtag`, `multiple`, `requeue`, `ms`, `redelivered`, `prefetch`, `glob`,
`args`, `depth`.
All files were recorded above a client library (pika's BlockingConnection), so the level is ``api``.

What the importer adds to a change of names:

- `gen`: a channel number is used again after a close; every `ch_open` on it begins the next incarnation, from 1.
- `pub` and `pseq` on deliveries, from the message id, in which the publisher wrote them. Each publisher used one
  channel.
- `op`: the index of the invoke, on it and on its completion.
- `scope`: RabbitMQ's reading of ``basic.qos`` (https://www.rabbitmq.com/docs/consumer-prefetch): global=false limits
  each consumer
  begun afterwards, global=true the channel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from seriatim_models.history.event import Event

_NAMES = {"queue_declare": "declare", "final": "note"}
_SAME = (
    "i", "t", "ph", "conn", "ch", "q", "m", "prio", "ctag", "dtag", "multiple", "requeue", "ms",
    "redelivered", "prefetch", "autoack", "exclusive", "cprio", "err",
)  # fmt: skip
_RENAMED = {"w", "ev", "seq", "glob", "args", "depth"}
# Operations that a channel (or, for connections, a worker) has at most one of under way at a time, so that an `ok`
# belongs to the latest `invoke`.
_JOINED = {"publish", "qos", "consume", "cancel", "ch_close", "conn_close", "conn_drop", "get"}


def header(obj: Mapping[str, object]) -> dict[str, object]:
    """The fields of a qh/1 header from line 0 of a qh/0 file."""
    out = {k: v for k, v in obj.items() if k not in ("i", "t", "w", "ev", "ph", "clock")}
    out["rec"] = str(obj.get("client", "")).split(" ")[0]
    out["clk"] = str(obj.get("clock", ""))
    out["lvl"] = "api"
    return out


class Importer:
    """The decoder of one qh/0 file; keeps which incarnation each channel is in and which operations are under way."""

    def __init__(self) -> None:
        self._gen: dict[tuple[str, object], int] = {}
        self._op: dict[tuple[object, ...], int] = {}

    def decode(self, raw: bytes) -> Event:
        """The event of one line; raises `BadLine`."""
        from seriatim_models.history.decode import BadLine, checked, from_object, parse_object

        obj = parse_object(raw)
        ev = str(obj.get("ev", ""))
        if not isinstance(obj.get("i"), int) or not ev:
            raise BadLine("field i: missing or no number" if ev else "field ev: missing")
        # Any: JSON in, checked as a whole by from_object below
        new: dict[str, Any] = {k: obj[k] for k in _SAME if obj.get(k) is not None}
        new["ev"] = _NAMES.get(ev, ev)
        if "w" in obj:
            new["proc"] = obj["w"]
        if (m := obj.get("m")) and isinstance(m, str):
            pub, _, seq = m.partition(":")
            if seq.isdigit():
                new["pub"], new["pseq"] = pub, int(seq)
        if obj.get("seq") is not None:
            new["pseq"] = obj["seq"]
        if "glob" in obj:
            new["scope"] = "channel" if obj["glob"] else "consumer"
        args = obj.get("args")
        if args:
            new["args"] = args
        if obj.get("depth") is not None:
            new["args"] = {"depth": obj["depth"]}
        new |= {k: v for k, v in obj.items() if k not in _SAME and k not in _RENAMED}
        event = checked(from_object(new))
        return msgspec.structs.replace(event, **self._context(event))

    def _context(self, event: Event) -> dict[str, int]:
        """`gen` and `op`: what a qh/0 reader had to work out from the lines before."""
        out: dict[str, int] = {}
        channel = (event.conn, event.ch)
        if event.ch is not None:
            if event.ev == "ch_open":
                self._gen[channel] = self._gen.get(channel, 0) + 1
            out["gen"] = self._gen.get(channel, 0)
        if event.ev in _JOINED:
            # The completion of a connection's close does not always name the channel that its invoke named.
            ch = None if event.ev.startswith("conn_") else event.ch
            key = (event.ev, event.conn, ch, event.m)
            if event.ph == "invoke":
                self._op[key] = out["op"] = event.i
            elif (begun := self._op.pop(key, None)) is not None:
                out["op"] = begun
        return out
