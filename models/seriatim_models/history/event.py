"""qh/1: one neutral record of what happened.

A history is a sequence of `Event`s.
The reference writes them under any host, recorders write them around real brokers,
and other implementations write them in their own language.
Two layers share one envelope: *black box* (what a client sees: publish, deliver, ack, ...) uses the named fields;
*white box* (what the reference does inside: entry_cas, ptr_cas, ...) adds its own under `args`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

SCHEMA = "qh/1"


class Event(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True, gc=False):
    """One event of a history.

    Times are nanoseconds; only times of one clock domain `clk` compare.
    Under the explorer `t` is the step number and every interval is exact.
    `ph` is the phase: ``invoke`` when an operation begins, ``ok`` when it returned, ``fail`` when it certainly had
    no effect, ``info`` when nobody knows; `op` joins an invoke with its completion.
    """

    i: int
    """Index of recording, unique in (run, rec)."""
    ev: str
    """What happened: publish, deliver, ack, ..., or a white-box name such as entry_cas."""
    run: str = ""
    rec: str = ""
    """Which recorder."""
    lvl: str = ""
    """Where it recorded: wire, api, broker or model."""
    clk: str = ""
    t: int | None = None
    t_lo: int | None = None
    """Bounds of the effect, where the recorder knows better than the two ends of the operation."""
    t_hi: int | None = None
    proc: str = ""
    """The worker: thread, task, process."""
    ph: str = ""
    op: int | None = None
    conn: str = ""
    ch: int | None = None
    gen: int | None = None
    """Incarnation of the channel, because channel numbers are used again."""
    q: str = ""
    part: int | None = None
    m: str = ""
    """Message, unique in the history."""
    pub: str = ""
    pseq: int | None = None
    key: str | None = None
    prio: int | None = None
    size: int | None = None
    pos: int | None = None
    """Position or offset that the broker gave, if it shows it."""
    ctag: str = ""
    dtag: int | None = None
    attempt: int | None = None
    redelivered: bool | None = None
    multiple: bool | None = None
    requeue: bool | None = None
    dead: bool | None = None
    ms: list[str] | None = None
    """Messages that the recorder believes this command settled."""
    autoack: bool | None = None
    exclusive: bool | None = None
    nolocal: bool | None = None
    cprio: int | None = None
    prefetch: int | None = None
    credit: int | None = None
    scope: str | None = None
    """What prefetch or credit applies to: consumer, channel, conn or queue."""
    err: str | None = None
    # Any: white-box fields are plain JSON of many shapes; each property reads the ones it names.
    args: dict[str, Any] = {}
    x: dict[str, str] = {}
    """Fields this schema does not know, kept as text."""


_ENVELOPE = frozenset(Event.__struct_fields__) - {"i", "ev", "t", "proc", "args", "x"}


def event(i: int, t: int, proc: str, ev: str, fields: Mapping[str, object]) -> Event:
    """An event from what a `Host` was told by `record`: envelope fields go to the envelope, the rest to `args`."""
    known = {k: v for k, v in fields.items() if k in _ENVELOPE}
    args = {k: v for k, v in fields.items() if k not in _ENVELOPE}
    return Event(i=i, t=t, proc=proc, ev=ev, args=args, **known)  # type: ignore[arg-type]  # msgspec checks on decode; here the reference is the only writer
