"""seriatim-conform/1 and /2: the messages between the drive and an implementation, one JSON object a line.

`spec/conform/README.md` describes both for implementers. The drive writes requests, each with an `id` of its own;
the implementation answers each with the same `id`, and between the answers writes what it pushes.
In version 2 each request names its `client`, several are outstanding, and answers come in any order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from seriatim_models.history.depth import TOO_DEEP, too_deep
from seriatim_models.history.event import Int64

VERSION = "seriatim-conform/1"
CONCURRENT = "seriatim-conform/2"
"""The version of who answers several clients at once; with one of them it is version 1."""

OPERATIONS = (
    "publish",
    "get",
    "ack",
    "nack",
    "reject",
    "qos",
    "consume",
    "cancel",
    "open",
    "close",
    "recover",
    "read",
    "seek",
    "commit",
    "tx-begin",
    "tx-commit",
    "tx-rollback",
    "count",
    "declare",
    "dwrr",
    "dwrr-table",
)
"""What an implementation may be able to do."""

FEATURES = (
    "multiple",
    "drop",
    "dead-letter",
    "batch",
    "channel-qos",
    "whole-qos",
    "prefetch-size",
    "exclusive",
    "no-local",
    "priority",
    "message-priority",
    "groups",
    "held-groups",
    "queues",
    "partitions",
    "redelivered",
    "autoack",
    "lease",
    "waits",
    "delay",
    "ttl",
    "mandatory",
    "immediate",
)
"""
What else: `multiple` settles all up to a tag; `drop` is nack or reject without requeue, and `dead-letter` that what is
dropped comes to the queue of that name with `.dead` behind it; `batch` is a get of several at once;
`channel-qos` is a prefetch for the whole channel too, `whole-qos` that it always is; `priority` is one of consumers,
`message-priority` the field `prio` of `publish`, `groups` its field `key`, `held-groups` that a group is one consumer's
while that holds a message of it; `queues` are more than one, by name, `partitions` two of a log, 0 and 1;
`lease` means that what a client holds stays its own when its connection ends, until the lease runs out;
`waits` that a publish may wait until something is taken, as of a queue with a greatest length;
`delay` and `ttl` are fields of `publish`, for how long nobody is given the message, and from when on nobody;
`redelivered` means that the flag of deliveries can be relied on; `autoack` that deliveries can be settled by pushing;
the rest are arguments of `consume` and `publish`.
"""

PUSHES = ("deliver", "return", "closed", "cb_begin", "cb_end")
"""What it may say unasked."""
IMPLIED = {"held-groups": "groups", "dead-letter": "drop"}
"""Features that say more exactly what another one does."""
TRANSACTIONS = frozenset({"tx-begin", "tx-commit", "tx-rollback"})
"""Operations of which nobody has one without the others."""

LINE_MAX = 2**16  # bytes of one line of an implementation: a longer one is no answer
FLOOD_MAX = 2**22  # bytes that an implementation may write in answer to one request
PUSHES_MAX = 10_000  # deliveries that one request may set off
NAME_MAX = 200  # characters of a name
WHY_MAX = 1_000  # characters of a reason; of a longer one the two ends are kept
NAMES = ("m", "ctag", "q", "name", "version")


class Fault(Exception):
    """The implementation did not do its part: no answer in time, an answer that is none, an end.

    `kind` is one of ``silent``, ``garbage``, ``flood``, ``died``, ``deaf``, ``start``, ``stale``.
    """

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(brief(why))
        self.kind = kind


def brief(why: str) -> str:
    """A reason of somebody else's, not longer than it can be read."""
    return why if len(why) <= WHY_MAX else f"{why[: WHY_MAX - 300]} ... {why[-295:]}"


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an implementation is asked to do. A field that an operation does not need is left out."""

    op: str
    id: int = 0
    protocol: str = ""
    client: int = 0
    """Who asks, if several do at once: each has one request outstanding at most."""
    ch: int = 0
    q: str = ""
    m: str = ""
    ctag: str = ""
    dtag: int | None = None
    multiple: bool = False
    requeue: bool | None = None
    autoack: bool = False
    exclusive: bool = False
    nolocal: bool = False
    cprio: int | None = None
    prio: int | None = None
    """Priority of a message: of those that are there one of the highest is next."""
    key: str = ""
    """Group of a message: those of one group keep their order."""
    delay: int | None = None
    """Of a publish: milliseconds for which nobody is given the message."""
    ttl: int | None = None
    """Of a publish: milliseconds after which the message is given to nobody for the first time."""
    part: int | None = None
    """Partition of a log."""
    pos: int | None = None
    """Position in a partition: that which a seek goes to, or the next to be read that is committed."""
    conn: str = ""
    prefetch: int | None = None
    prefetch_size: int | None = None
    scope: str = ""
    mandatory: bool = False
    immediate: bool = False
    slots: list[list[int]] = []
    """Of a deficit weighted round robin: weight of a message, quantum, and backlog (or prefetch)."""
    rounds: int | None = None
    total: int | None = None
    cost: float | None = None
    """Seconds that serving a message takes."""
    push: float | None = None
    """Seconds that the broker takes to push one."""
    n: int = 1
    """Of a get: how many messages at most, where several can be got at once."""
    path: str = ""
    """Of `drive`, which only `serve` knows: the file of a script, in whose place the run is written."""


class Got(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of several messages that were got at once."""

    m: str
    dtag: Int64 | None = None
    redelivered: bool | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Done, or refused with a code and a reason; for a get, what was got."""

    id: int = 0
    ok: bool = msgspec.field(default_factory=lambda: True)  # made, so that it is always written
    unknown: bool = False
    """Nobody knows whether it has taken effect, or still will: its client is given up."""
    code: Int64 | None = None
    why: str = ""
    m: str = ""
    dtag: Int64 | None = None
    redelivered: bool | None = None
    expired: bool = False
    """Of what was got: the lease of who held it before had run out."""
    batch: list[Got] = []
    """What was got, if several were asked for."""
    q: str = ""
    """Of `declare`: the queue that the reply names."""
    ready: Int64 | None = None
    held: Int64 | None = None
    """Of `count`: how many messages of the queue are ready, and how many somebody holds."""
    pos: Int64 | None = None
    """In a log, the position of what was published or read."""
    served: list[int] = []
    """For dwrr the slots in the order of service, for dwrr-table how many of each."""


class Push(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an implementation sends unasked: a delivery, a returned message, a channel that it closed, or the begin and
    end of what its client library calls for a delivery.
    """

    ev: str
    ch: Int64 = 0
    ctag: str = ""
    dtag: Int64 | None = None
    m: str = ""
    redelivered: bool | None = None
    code: Int64 | None = None
    why: str = ""
    t: Int64 | None = None
    """When it was seen, nanoseconds; for a drive that is not the only one at work."""


class Hello(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How an implementation introduces itself."""

    id: int = 0
    ok: bool = True
    protocol: str = ""
    name: str = ""
    version: str = ""
    can: list[str] = []
    """Of `OPERATIONS` and `FEATURES`."""
    means: dict[str, str | float] = {}
    """What words mean where systems differ, see `meanings`."""
    why: str = ""


_object = msgspec.json.Decoder(dict[str, object])


def parse(raw: bytes) -> dict[str, object]:
    """One line of an implementation as an object. Raises `Fault`."""
    try:
        found = _object.decode(raw)
    except RecursionError:
        raise Fault("garbage", f"sent {shown(raw)}, which is {TOO_DEEP}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Fault("garbage", f"sent {shown(raw)}, which is no JSON object: {error}") from None
    if too_deep(found):
        raise Fault("garbage", f"sent {shown(raw)}, which is {TOO_DEEP}")
    return found


def as_answer(message: dict[str, object]) -> Answer:
    """The message as an answer. Raises `Fault`. Unknown fields are for later versions and pass.

    Whether it was done must be said: who answers ``{"id": 5, "error": "full"}`` did not do it.
    """
    if "ok" not in message:
        raise Fault("garbage", f"sent {shown(msgspec.json.encode(message))}: `ok` is missing")
    return _converted(message, Answer)


def as_push(message: dict[str, object]) -> Push:
    """The message as a push. Raises `Fault`."""
    push = _converted(message, Push)
    if push.ev not in PUSHES:
        raise Fault("garbage", f"field ev: {push.ev!r} is none of {', '.join(PUSHES)}")
    if push.ev in ("deliver", "cb_begin", "cb_end") and (not push.m or push.dtag is None):
        raise Fault("garbage", f"a {push.ev} needs the fields m and dtag")
    return push


def as_hello(message: dict[str, object]) -> Hello:
    """The message as a handshake. Raises `Fault`."""
    hello = _converted(message, Hello)
    if not hello.ok:
        raise Fault("start", f"refused the handshake: {hello.why or 'it gave no reason'}")
    if hello.protocol not in (VERSION, CONCURRENT):
        raise Fault("start", f"speaks {hello.protocol or 'no protocol'!r}; this is {VERSION}")
    abilities(hello.can)
    return hello


def abilities(can: Iterable[str]) -> frozenset[str]:
    """What an implementation declares in `can`. Raises `Fault` if it is unknown or not enough to be driven."""
    declared = frozenset(can)
    if unknown := sorted(declared - {*OPERATIONS, *FEATURES}):
        known = ", ".join((*OPERATIONS, *FEATURES))
        raise Fault("start", f"can: {', '.join(unknown)} is none of {known}")
    if "publish" not in declared or not {"get", "consume", "read"} & declared:
        least = "publish and one of get, consume and read, or of a Python object put and get or get_nowait"
        raise Fault("start", f"can: needed at least are {least}")
    declared |= {feature for more, feature in IMPLIED.items() if more in declared}
    if (some := TRANSACTIONS & declared) and some != TRANSACTIONS:
        raise Fault(
            "start",
            f"can: {', '.join(sorted(TRANSACTIONS - some))} is missing beside {', '.join(sorted(some))}",
        )
    return declared


S = TypeVar("S", bound=msgspec.Struct)


def _converted(message: dict[str, object], struct: type[S]) -> S:
    try:
        converted = msgspec.convert(message, struct)
    except msgspec.ValidationError as error:
        raise Fault("garbage", f"sent {shown(msgspec.json.encode(message))}: {error}") from None
    for part in (converted, *getattr(converted, "batch", ())):
        for name in NAMES:
            if len(getattr(part, name, "")) > NAME_MAX:
                raise Fault("garbage", f"field {name}: longer than {NAME_MAX} characters")
    if why := getattr(converted, "why", ""):
        return msgspec.structs.replace(converted, why=brief(why))
    return converted


def shown(raw: bytes) -> str:
    """The start of a line, safe to print."""
    text = raw[:80].decode("utf-8", "backslashreplace")
    return repr(text) + ("..." if len(raw) > 80 else "")
