"""qh/1: one neutral record of what happened.

A history is a sequence of `Event`s.
The reference writes them under any host, recorders write them around real brokers,
and other implementations write them in their own language.
Two layers share one envelope: *black box* (what a client sees: publish, deliver, ack, ...) uses the named fields;
*white box* (what the reference does inside: entry_cas, ptr_cas, ...) adds its own under `args`.
`catalogue.py` declares the events of both.

Rules of the envelope, held by whoever records:

- `i` rises with every event of one recorder, and `t` does not fall while `i` rises; see `order` for where it does.
- The effect of an event lies between `t_lo` and `t_hi` where they are given. A `deliver` is recorded after the broker
  acquired the message, so `t` bounds the acquisition from above; an `ack` is recorded before the broker saw it, so `t`
  bounds the settlement from below.
- `pub` names one ordered stream of publishes (one channel of one publisher), `pseq` rises within it.
  A `deliver` carries both where the recorder can know them (the message's headers, its id).
- A `note` with ``args={"depth": n}`` says that somebody looked and saw `n` ready messages in `q`; one with
  ``args={"rest": true}`` that all had come to rest: every command recorded before it has taken effect, and everything
  that those set off is recorded before it.
- `GAP` is put in by the reader where lines were lost: anything may have happened there. It is recorded, with
  ``args={"fault": kind}``, only where the system was ended on purpose: what it had in memory may be gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any

import msgspec

SCHEMA = "qh/1"

GAP = "gap"
"""The event name that stands for lines of a recording that could not be read."""

PHASES = ("", "invoke", "ok", "fail", "info")
LEVELS = ("", "wire", "api", "broker", "model")
SCOPES = (None, "consumer", "channel", "conn", "queue")
SETTLES = frozenset({"ack", "nack", "reject"})
IMPLIES_NOTHING = frozenset(
    {"cb_begin", "cb_end", "commit", "fault", "note", "purge", "return", "rpc"}
)
"""Kinds of events that say nothing of others."""
UNKNOWN_GEN = 0  # the incarnation of a channel that is not known; they are counted from 1
ANY_TIME = -(2**63)  # when an event began whose beginning is not recorded
EXACT = frozenset({"broker", "model"})
"""Levels whose recorder sees the effect itself and misses none."""

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""Every whole number of the schema, so that JSON lines and Parquet accept the same."""


class Event(
    msgspec.Struct,
    kw_only=True,
    omit_defaults=True,
    frozen=True,
    gc=False,
    forbid_unknown_fields=True,  # so that the reader notices them and moves them into `x`
):
    """One event of a history.

    Times are nanoseconds; only times of one clock domain `clk` compare.
    Under the explorer `t` is the step number and every interval is exact.
    `ph` is the phase: ``invoke`` when an operation begins, ``ok`` when it returned, ``fail`` when it certainly had
    no effect, ``info`` when nobody knows; `op` joins an invoke with its completion.
    """

    i: Int64
    """Index of recording, unique in (run, rec)."""
    ev: str
    """What happened: publish, deliver, ack, ..., or a white-box name such as entry_cas."""
    run: str = ""
    rec: str = ""
    """Which recorder."""
    lvl: str = ""
    """Where it recorded: wire, api, broker or model."""
    clk: str = ""
    t: Int64 | None = None
    t_lo: Int64 | None = None
    """Bounds of the effect, where the recorder knows better than the two ends of the operation."""
    t_hi: Int64 | None = None
    proc: str = ""
    """The worker: thread, task, process."""
    ph: str = ""
    op: Int64 | None = None
    conn: str = ""
    ch: Int64 | None = None
    gen: Int64 | None = None
    """Incarnation of the channel, because channel numbers are used again."""
    q: str = ""
    part: Int64 | None = None
    m: str = ""
    """Message, unique in the history."""
    pub: str = ""
    pseq: Int64 | None = None
    key: str | None = None
    prio: Int64 | None = None
    size: Int64 | None = None
    pos: Int64 | None = None
    """Position or offset that the broker gave, if it shows it."""
    ctag: str = ""
    dtag: Int64 | None = None
    attempt: Int64 | None = None
    redelivered: bool | None = None
    multiple: bool | None = None
    requeue: bool | None = None
    dead: bool | None = None
    ms: list[str] | None = None
    """Messages that the recorder believes this command settled."""
    autoack: bool | None = None
    exclusive: bool | None = None
    nolocal: bool | None = None
    cprio: Int64 | None = None
    prefetch: Int64 | None = None
    credit: Int64 | None = None
    scope: str | None = None
    """What prefetch or credit applies to: consumer, channel, conn or queue."""
    err: str | None = None
    # Any: white-box fields are plain JSON of many shapes, which the catalogue declares and gives typed access to
    args: dict[str, Any] = {}
    x: dict[str, str] = {}
    """Fields this schema does not know, kept as text."""


_ENVELOPE = frozenset(Event.__struct_fields__) - {"i", "ev", "t", "proc", "args", "x"}


@lru_cache(1000)
def _divided(names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return which of these fields belong to the envelope, and which to `args`."""
    return tuple(n for n in names if n in _ENVELOPE), tuple(n for n in names if n not in _ENVELOPE)


def event(i: int, t: int, proc: str, ev: str, fields: Mapping[str, object], lvl: str = "") -> Event:
    """The event that a `Host` was given by `record`: envelope fields go to the envelope, the rest to `args`.

    With `lvl` it is of that level, whatever `fields` say. Every event of every execution is made here, so in one pass.
    """
    envelope, own = _divided(tuple(fields))
    if not envelope and lvl:
        return Event(i=i, t=t, proc=proc, ev=ev, args=dict(fields), lvl=lvl)
    args = {name: fields[name] for name in own}
    known = {name: fields[name] for name in envelope}
    if lvl:
        known["lvl"] = lvl
    if isinstance(known.get("op"), str):
        args["op"] = known.pop(
            "op"
        )  # the name of an operation, as the client has it, and no number
    # msgspec checks types only on decoding; here the reference is the only writer
    return Event(i=i, t=t, proc=proc, ev=ev, args=args, **known)  # type: ignore[arg-type]


def began(event: Event) -> bool:
    """Whether the event is the beginning of its operation (or the whole of it)."""
    return event.ph in ("", "invoke") or (event.ph == "ok" and event.op is None)


def answer_alone(event: Event) -> bool:
    """Whether a completed settlement is an answer whose beginning is not recorded, so that it may have taken effect at
    any time before; others of its connection may have, that were never answered.
    """
    return event.t_lo == ANY_TIME and event.ev in SETTLES
