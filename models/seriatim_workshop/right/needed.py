"""What a recording has to show so that a fault can be reported at all: for each fault the smallest history, recorded
as clients often do and as it takes.

The faults are those that systems written by an outsider never showed (AMQP 1.0, STOMP, Kafka, beanstalkd, tables as
queues, SQS, Redis, MQTT, Pub/Sub, JetStream, Artemis): each was there, and nothing that was recorded made it certain.
`spec/RECALL.md` has the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from seriatim_models.conformance.profiles import ORACLE
from seriatim_models.history.complete import complete
from seriatim_models.history.event import Event
from seriatim_models.properties.base import Verdict

MS = 1_000_000
"""Nanoseconds; lines of these histories are as far apart."""


class SmallHistory:
    """Events of one queue, one a millisecond."""

    def __init__(self, lvl: str = "api") -> None:
        self.events: list[Event] = []
        self._lvl = lvl

    def add(self, ev: str, ph: str = "", **fields: Any) -> None:
        """Record a line."""
        i = len(self.events)
        at: dict[str, Any] = {"i": i, "t": (i + 1) * MS, "lvl": self._lvl, "q": "q"}
        self.events.append(Event(ev=ev, ph=ph, **at | fields))

    def call(self, ev: str, asked: dict[str, Any], got: dict[str, Any] | None = None) -> None:
        """Record both ends of a call."""
        op = len(self.events)
        self.add(ev, "invoke", op=op, **asked)
        self.add(ev, "ok", op=op, **asked | (got or {}))

    def put(self, *ms: str, **fields: Any) -> None:
        """Messages of one publisher, each confirmed before the next."""
        for m in ms:
            fields |= {"pub": "p", "pseq": int(m[1:]), "proc": "p"}
            self.call("publish", {"m": m, **fields})

    def get(self, m: str, by: str, **fields: Any) -> None:
        """A poll by a connection, answered with a message; the empty name finds nothing."""
        self.call("get", {"conn": by}, {"m": m, **fields})


def loses(shown: bool) -> SmallHistory:
    """A confirmed message, or one that was put back, is gone."""
    made = SmallHistory()
    made.put("m0")
    made.call("consume", {"conn": "c", "ch": 1, "ctag": "t", "autoack": False})
    made.add("note", args={"depth": 0, **({"held": 0} if shown else {})})
    return made


def loses_requeued(shown: bool) -> SmallHistory:
    """What was put back, or was held by a client that was killed, is gone."""
    made = SmallHistory()
    made.put("m0")
    made.call("consume", {"conn": "c", "ch": 1, "ctag": "t", "autoack": False})
    made.add("deliver", conn="c", ch=1, ctag="t", dtag=1, m="m0")
    made.add("nack", conn="c", ch=1, dtag=1, requeue=True)
    made.add("note", args={"depth": 0, **({"held": 0} if shown else {})})
    return made


def ignores_groups(shown: bool) -> SmallHistory:
    """Two workers have messages of one group."""
    made = SmallHistory()
    made.add("declare", "ok", args={"groups": "held", "lease": 60_000} if shown else {})
    made.put("m0", "m1", key="g")
    made.get("m0", "a", key="g")
    made.get("m1", "b", key="g")
    made.get("", "a")
    made.get("", "b")
    return made


def no_deduplication(shown: bool) -> SmallHistory:
    """What a client sent again for want of an answer is there twice."""
    made = SmallHistory()
    if not shown:
        made.add("publish", "invoke", m="m0", op=99)
        made.add("publish", "info", m="m0", op=99)
    made.put("m0")
    for _ in range(2):
        made.get("m0", "c")
        made.call("ack", {"conn": "c", "m": "m0"})
    return made


def delay_cut_short(shown: bool) -> SmallHistory:
    """A delayed message comes a third of its delay too early."""
    made = SmallHistory()
    made.add("declare", "ok", args={"tick": 1} if shown else {})
    made.put("m0", args={"delay": 15})
    made.get("m0", "c")
    return made


def ignores_priority(shown: bool) -> SmallHistory:
    """The lowest priority is served first."""
    made = SmallHistory()
    made.add("declare", "ok", args={"x-max-priority": 9} if shown else {})
    made.put("m0", prio=1)
    made.put("m1", prio=9)
    for m in ("m0", "m1"):
        made.get(m, "c", prio=1 if m == "m0" else 9)
    return made


def finds_nothing(shown: bool) -> SmallHistory:
    """A poll comes back empty beside a message."""
    made = SmallHistory()
    made.put("m0")
    if shown:
        made.add("note", q="", args={"rest": True})
    made.get("", "c")
    made.get("m0", "c")
    return made


def goes_to_the_tail(shown: bool) -> SmallHistory:
    """What is put back goes behind all others."""
    made = SmallHistory()
    made.put("m0", "m1")
    made.get("m0", "c", redelivered=False)
    made.add("nack", conn="c", m="m0", requeue=True, t_hi=7 * MS if shown else None)
    made.get("m1", "c", redelivered=False)
    made.get("m0", "c", redelivered=True)
    return made


def skips_numbers(shown: bool) -> SmallHistory:
    """A delivery's number is left out."""
    made = SmallHistory("wire" if shown else "api")
    made.add("ch_open", "ok", conn="c", ch=1)
    for dtag in (1, 3):
        made.add("deliver", m=f"m{dtag}", conn="c", ch=1, ctag="t", dtag=dtag)
    return made


class NeededRecord(NamedTuple):
    """A fault, where it was planted, and what has to be recorded so that a property reports it."""

    made: Callable[[bool], SmallHistory]
    planted: str
    property: str
    needed: str


NEEDED = (
    NeededRecord(
        loses,
        "STOMP, AMQP 1.0, beanstalkd, MQTT: loses",
        "P1",
        "a look into the empty queue that also says that nobody holds anything (`held`: 0), "
        "or every consumer's confirmed end",
    ),
    NeededRecord(
        loses_requeued,
        "STOMP, AMQP 1.0, beanstalkd: loses-requeued; a table: loses-crashed; MQTT: drops-on-resume",
        "P1",
        "the same",
    ),
    NeededRecord(
        ignores_groups,
        "SQS, Artemis: group-open; Pub/Sub: key-open",
        "P23",
        "`declare` with `groups`: `held`, and `lease` where there are leases",
    ),
    NeededRecord(
        no_deduplication,
        "SQS, JetStream: no-dedup",
        "P1",
        "what a client library sends again is one `publish`, begun once and answered once",
    ),
    NeededRecord(
        delay_cut_short,
        "beanstalkd: early",
        "P26",
        "`declare` with a `tick` that is shorter than the delays; it is 20 ms else",
    ),
    NeededRecord(
        ignores_priority,
        "beanstalkd: pri-inverted",
        "P22",
        "`declare` with `x-max-priority`, and a `prio` that is higher if it comes first",
    ),
    NeededRecord(
        finds_nothing,
        "beanstalkd: late",
        "P14",
        "a note of `rest` before the poll, or a profile that promises P20",
    ),
    NeededRecord(
        goes_to_the_tail,
        "STOMP, AMQP 1.0: tail",
        "P5",
        "by when what is put back is there (`t_hi`)",
    ),
    NeededRecord(
        skips_numbers,
        "AMQP 1.0: skips-ids",
        "P8",
        "frames (`lvl` wire), and numbers that are delivery tags",
    ),
)
"""The faults, in the order of the table."""


def reported(record: NeededRecord, shown: bool) -> bool:
    """Whether the property reports the history, recorded as it takes or not."""
    prop = next(p for p in ORACLE if p.id == record.property)
    return prop.check(list(complete(record.made(shown).events))).verdict is Verdict.VIOLATED


def needed_rows() -> str:
    """The rows of the table; each is judged anew."""
    rows = []
    for record in NEEDED:
        before, after = (
            "reported" if reported(record, shown) else "open" for shown in (False, True)
        )
        what = (record.made.__doc__ or "").strip(". ")
        what = what[0].lower() + what[1:]
        rows.append(
            f"| {what} | {record.planted} | {record.property} | {before} | {record.needed} | {after} |"
        )
    return "\n".join(rows)
