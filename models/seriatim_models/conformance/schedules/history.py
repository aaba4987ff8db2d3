"""What the clients of one execution saw: as events for properties, and as intervals for a linearization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seriatim_models.conformance.schedules.clients import GETS, PUTS, QUEUE, Clients
from seriatim_models.conformance.schedules.sequential import Sequential, Waits
from seriatim_models.explorer.linearize import CallInterval, linearization
from seriatim_models.explorer.model.world import Record
from seriatim_models.history.complete import complete
from seriatim_models.history.event import Event

SETTLES = ("ack", "nack", "reject")


def intervals(clients: Clients, records: Sequence[Record]) -> list[CallInterval]:
    """The calls of an execution, in the order in which they began."""
    main = len(clients.threads) + 1
    names = [f"client{n}" if n < main else "main" for n in clients.callers]
    calls = clients.calls
    found: dict[int, CallInterval] = {}
    for at, record in enumerate(records):
        if record.ev != "call":
            continue
        args: dict[str, Any] = dict(record.args)
        number: int = args["number"]
        if args["ph"] == "invoke":
            call = calls[number]
            asked = (call.op, args["m"]) if args["m"] else (call.op,)
            found[number] = CallInterval(names[number], asked, at)
            continue
        interval = found[number]
        interval.returned = at
        if args["ph"] == "fail":
            interval.raised = args["err"]
        elif call_found_nothing(interval.call[0], args["m"]):
            interval.raised = "QueueEmpty"
        elif interval.call[0] in GETS:
            interval.result = args["m"] or None
    return list(found.values())


def call_found_nothing(op: str, m: str) -> bool:
    """Whether a call that need not find a message returned without one, as if it had raised that there is none."""
    return op in GETS and op != "get" and not m


def unexplained(calls: Sequence[CallInterval], order: str, maxsize: int) -> str:
    """Why no order of the calls is one of a sequential queue, "" if there is one."""

    def spec() -> Sequential:
        return Sequential(order, maxsize)

    returned = [call for call in calls if call.returned is not None]
    # A time limit runs out once in a thread: one that waits within a limit waits because the search is bounded.
    waiting = [c for c in calls if c.returned is None and not c.call[0].endswith("_timeout")]
    if linearization(returned, spec, lambda s: all(_must_wait(s, c) for c in waiting)) is not None:
        return ""
    text = "; ".join(map(str, calls))
    if waiting and linearization(returned, spec) is not None:
        stuck = ", ".join(f"{c.thread} in {c.call[0]}" for c in waiting)
        return f"{stuck} waits for ever, though by the other calls it need not: {text}"
    return f"not linearizable: no order of these calls explains their results: {text}"


def _must_wait(state: Sequential, interval: CallInterval) -> bool:
    method, *args = interval.call
    items, unfinished = list(state.items), state.unfinished
    try:
        getattr(state, method)(*args)
    except Waits:
        return True
    except (LookupError, ValueError, RuntimeError):
        return False
    finally:
        state.items, state.unfinished = items, unfinished
    return False


def events(clients: Clients, records: Sequence[Record], leases: bool) -> list[Event]:
    """The history as clients record it, on level ``api``; times are places in the order of all calls."""
    calls = clients.calls
    channels = clients.callers
    ends = {r.args["number"]: at for at, r in enumerate(records, 1) if r.args["ph"] != "invoke"}
    sent: dict[int, int] = {}
    made: list[Event] = []

    def add(t: int, ev: str, /, **fields: Any) -> None:
        made.append(Event(i=len(made), t=t, ev=ev, lvl="api", conn="c", **fields))

    for ch in dict.fromkeys(channels):
        add(0, "ch_open", ch=ch)
    for at, record in enumerate(records, 1):
        args: dict[str, Any] = dict(record.args)
        number, ph = args["number"], args["ph"]
        call, ch = calls[number], channels[number]
        if call.op in PUTS:
            if ph == "invoke":
                sent[ch] = sent.get(ch, -1) + 1
            fields = {"m": call.m, "pub": f"p{ch}", "pseq": sent[ch], "err": args.get("err", "")}
            add(at, "publish", ph=ph, op=number, ch=ch, q=QUEUE, **_given(fields))
        elif call.op in GETS:
            fields = {"err": args.get("err", "")}
            if ph == "ok":
                fields = {"m": args["m"], "dtag": args["dtag"], "redelivered": args["redelivered"]}
            if args.get("err") == "QueueEmpty":
                ph, fields = "ok", {}
            add(at, "get", ph=ph, op=number, ch=ch, q=QUEUE, autoack=not leases, **_given(fields))
        elif call.op in SETTLES and ph == "invoke":
            requeue = None if call.op == "ack" else call.requeue
            done = {"t_hi": ends[number]} if number in ends else {}
            add(at, call.op, ch=ch, dtag=args["dtag"], multiple=False, requeue=requeue, **done)
    return list(complete(made))


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, "")}
