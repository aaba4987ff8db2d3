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

from seriatim_models.history.depth import whole_number
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


def fault(obj: Mapping[str, object]) -> str:
    """What is wrong with a line that has no index or no name; empty if nothing is."""
    if not obj.get("ev"):
        return "field ev: missing"
    return "" if isinstance(obj.get("i"), int) else "field i: missing or no number"


def renamed(obj: Mapping[str, object]) -> dict[str, Any]:
    """The fields of a qh/1 event from a qh/0 line; the types are checked when they become an event."""
    # Any: JSON in, checked as a whole by whoever makes an event of it
    new: dict[str, Any] = {k: obj[k] for k in _SAME if obj.get(k) is not None}
    ev = str(obj["ev"])
    new["ev"] = _NAMES.get(ev, ev)
    if "w" in obj:
        new["proc"] = obj["w"]
    if (m := obj.get("m")) and isinstance(m, str):
        pub, _, seq = m.partition(":")
        if (number := whole_number(seq)) is not None and number >= 0:
            new["pub"], new["pseq"] = pub, number
    if obj.get("seq") is not None:
        new["pseq"] = obj["seq"]
    if "glob" in obj:
        new["scope"] = "channel" if obj["glob"] else "consumer"
    if args := obj.get("args"):
        new["args"] = args
    if obj.get("depth") is not None:
        new["args"] = {"depth": obj["depth"]}
    return new | {k: v for k, v in obj.items() if k not in _SAME and k not in _RENAMED}


class Context:
    """What the lines of one qh/0 file imply for those after them: incarnations of channels, operations under way."""

    def __init__(self) -> None:
        self._gen: dict[tuple[str, object], int] = {}
        self._op: dict[tuple[object, ...], int] = {}

    def added_to(self, event: Event) -> Event:
        """The event with the incarnation of its channel and the operation that it belongs to."""
        return msgspec.structs.replace(event, **self._implied(event))

    def _implied(self, event: Event) -> dict[str, int]:
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
