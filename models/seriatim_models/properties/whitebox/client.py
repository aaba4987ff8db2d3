"""RPC: the client's calls; and the list of all properties of client, work pool and broker."""

from __future__ import annotations

from seriatim_models.history import catalogue
from seriatim_models.history.event import Event
from seriatim_models.properties.base import Violations
from seriatim_models.properties.whitebox.broker import Ex1, Nl1, Qs1, Qs2, Qs3, Rt1
from seriatim_models.properties.whitebox.client_events import (
    Client,
    channel,
)
from seriatim_models.properties.whitebox.workpool import Ch1, Ch2, Ch3, Ch4, Ch5, Ch6


class Rpc1(Client):
    """A case is a call."""

    id = "RPC-1"
    sentence = (
        "One synchronous operation outstanding per channel; its reply goes to its caller; "
        "basic.get is such an operation."
    )
    reads = frozenset({"cli_call", "cli_frame", "cli_rest"})

    def cases(self, events: list[Event], bad: Violations) -> int:
        """Outstanding is what was sent and whose reply, or whose channel's end, the reader has not seen.

        At rest nobody may wait: each call has a reply, or its channel or connection has ended and must tell.
        """
        out: dict[tuple[str, int | None], Event] = {}
        open_: dict[tuple[str, int | None, int], Event] = {}
        tested = 0
        for e in events:
            if e.ev == "cli_rest":
                for (conn, ch, call), first in open_.items():
                    bad.append((f"call {call} of {conn}.{ch} waits for ever", [first]))
            elif e.ev == "cli_frame":
                if catalogue.frame_kind(e) in ("reply", "close"):
                    out.pop(channel(e), None)
                elif catalogue.frame_kind(e) == "gone":
                    out = {c: sent for c, sent in out.items() if c[0] != e.conn}
            elif e.ph == "invoke":
                tested += 1
                open_[e.conn, e.ch, catalogue.call(e)] = e
            elif e.ph == "info":
                if channel(e) in out:
                    bad.append((f"two calls are out on {e.conn}.{e.ch}", [out[channel(e)], e]))
                out[channel(e)] = e
            else:
                open_.pop((e.conn, e.ch, catalogue.call(e)), None)
                if e.ph == "ok" and catalogue.got(e) != catalogue.call(e):
                    bad.append(
                        (f"call {catalogue.call(e)} got the reply to call {catalogue.got(e)}", [e])
                    )
        return tested


CLIENT = (
    Ch1(), Ch2(), Ch3(), Ch4(), Ch5(), Ch6(), Qs1(), Qs2(), Qs3(), Ex1(), Nl1(), Rpc1(), Rt1(),
)  # fmt: skip
