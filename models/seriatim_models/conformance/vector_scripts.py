"""The scripts of the vectors: the rows seen of RabbitMQ, and deficit round robin. `vectors` fills in the outcomes.

Requests name messages, not tags; where a row is about a tag itself it gives `dtag`.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from seriatim_models.conformance.protocol import Request
from seriatim_models.programs.fair_simulation import PREFETCH, PUSH, QUANTA, TABLES, TOTAL, WEIGHT


class VectorScript(msgspec.Struct, frozen=True, kw_only=True):
    """A vector without its outcomes."""

    id: str
    title: str
    requests: list[Request]
    needs: list[str] = []
    """Features beyond the operations asked for."""


def _open(*channels: int, conn: str = "") -> list[Request]:
    return [Request(op="open", ch=ch, conn=conn) for ch in channels]


def _publish(n: int, start: int = 0) -> list[Request]:
    return [Request(op="publish", q="q", m=f"m{i}") for i in range(start, start + n)]


def _get(ch: int, n: int) -> list[Request]:
    return [Request(op="get", ch=ch, q="q")] * n


def _nack(ch: int, *numbers: int) -> list[Request]:
    return [Request(op="nack", ch=ch, m=f"m{i}", requeue=True) for i in numbers]


def _consume(ch: int, ctag: str, *, autoack: bool = False) -> Request:
    return Request(op="consume", ch=ch, q="q", ctag=ctag, autoack=autoack)


def _qos(ch: int, prefetch: int, scope: str = "consumer") -> Request:
    return Request(op="qos", ch=ch, prefetch=prefetch, scope=scope)


def _exclusive(first: bool) -> list[Request]:
    return [
        *_open(1, 2),
        Request(op="consume", ch=1, q="q", ctag="a", exclusive=first),
        Request(op="consume", ch=2, q="q", ctag="b", exclusive=not first),
    ]


ROWS = (
    VectorScript(
        id="01-immediate",
        title="an immediate message to a queue without consumers",
        requests=[Request(op="publish", q="q", m="m0", immediate=True)],
        needs=["immediate"],
    ),
    VectorScript(
        id="02-mandatory",
        title="a mandatory message that no queue is bound for",
        requests=[Request(op="publish", q="absent", m="m0", mandatory=True)],
        needs=["mandatory"],
    ),
    VectorScript(
        id="03-prefetch-size",
        title="a prefetch in bytes",
        requests=[*_open(1), Request(op="qos", ch=1, prefetch_size=1)],
        needs=["prefetch-size"],
    ),
    VectorScript(
        id="04-recover-without-requeue",
        title="recover without requeue",
        requests=[*_open(1), Request(op="recover", ch=1, requeue=False)],
    ),
    VectorScript(
        id="05a-double-ack",
        title="the same tag acknowledged twice",
        requests=[*_open(1), *_publish(1), *_get(1, 1), *[Request(op="ack", ch=1, dtag=1)] * 2],
    ),
    VectorScript(
        id="05b-unknown-tag",
        title="a tag acknowledged that was never given",
        requests=[*_open(1), Request(op="ack", ch=1, dtag=7)],
    ),
    VectorScript(
        id="06a-exclusive-then-another",
        title="a consumer beside an exclusive one",
        requests=_exclusive(True),
        needs=["exclusive"],
    ),
    VectorScript(
        id="06b-another-then-exclusive",
        title="an exclusive consumer beside another",
        requests=_exclusive(False),
        needs=["exclusive"],
    ),
    VectorScript(
        id="07-get-beside-exclusive",
        title="get passes an exclusive consumer that has no credit left",
        requests=[
            *_open(1, 2),
            _qos(1, 1),
            Request(op="consume", ch=1, q="q", ctag="a", exclusive=True),
            *_publish(2),
            *_get(2, 1),
        ],
        needs=["exclusive"],
    ),
    VectorScript(
        id="08-no-local",
        title="a no-local consumer, and a message of its own connection",
        requests=[
            *_open(1),
            Request(op="consume", ch=1, q="q", ctag="a", nolocal=True),
            *_publish(1),
            Request(op="publish", q="q", m="m1", conn="d"),
        ],
        needs=["no-local"],
    ),
    VectorScript(
        id="09-prefetch-and-autoack",
        title="a prefetch does not hold back what is settled by pushing",
        requests=[*_open(1), *_publish(50), _qos(1, 3), _consume(1, "a", autoack=True)],
        needs=["autoack"],
    ),
    VectorScript(
        id="10-prefetch-each-consumer",
        title="a prefetch of 3 for each of two consumers",
        requests=[*_open(1), *_publish(10), _qos(1, 3), _consume(1, "a"), _consume(1, "b")],
    ),
    VectorScript(
        id="11-prefetch-whole-channel",
        title="a prefetch of 3 for the channel of two consumers",
        requests=[
            *_open(1),
            *_publish(10),
            _qos(1, 3, "channel"),
            _consume(1, "a"),
            _consume(1, "b"),
        ],
        needs=["channel-qos"],
    ),
    VectorScript(
        id="12-later-qos",
        title="a prefetch set after the consumer began",
        requests=[*_open(1), *_publish(30), _qos(1, 5), _consume(1, "a"), _qos(1, 20)],
    ),
    VectorScript(
        id="13-get-and-prefetch",
        title="get is not limited by a prefetch",
        requests=[*_open(1), *_publish(3), _qos(1, 1), *_get(1, 3)],
    ),
    VectorScript(
        id="14-get-empty", title="get of an empty queue", requests=[*_open(1), *_get(1, 1)]
    ),
    VectorScript(
        id="15-ack-zero-multiple",
        title="tag 0 with multiple is all of the channel",
        requests=[
            *_open(1, 2),
            *_publish(3),
            *_get(1, 3),
            Request(op="ack", ch=1, dtag=0, multiple=True),
            Request(op="close", ch=1),
            *_get(2, 1),
        ],
        needs=["multiple"],
    ),
    VectorScript(
        id="16-requeue",
        title="of 0 to 5 taken, 4, 1 and 3 are given back one by one: what comes next (rows 16, 19 and 20)",
        requests=[
            *_open(1, 2),
            *_publish(8),
            *_get(1, 6),
            *_nack(1, 4, 1, 3),
            *_get(2, 5),
        ],
    ),
    VectorScript(
        id="17-close",
        title="a channel that holds 0 to 4 closes while another holds 5",
        requests=[
            *_open(1, 2),
            *_publish(8),
            *_get(1, 5),
            *_get(2, 1),
            Request(op="close", ch=1),
            *_get(2, 7),
        ],
    ),
    VectorScript(
        id="18-requeue-alone",
        title="the only consumer, with a prefetch of 1, gives back",
        requests=[*_open(1), *_publish(2), _qos(1, 1), _consume(1, "a"), *_nack(1, 0, 0, 0)],
    ),
    VectorScript(
        id="21-close-all",
        title="a channel that holds 0 to 4 closes",
        requests=[
            *_open(1, 2),
            *_publish(8),
            *_get(1, 5),
            Request(op="close", ch=1),
            *_get(2, 8),
        ],
    ),
    VectorScript(
        id="22-consumer-priority",
        title="consumers of priority 10 and 0 with a prefetch of 2 each, and then six messages",
        requests=[
            *_open(1),
            _qos(1, 2),
            Request(op="consume", ch=1, q="q", ctag="low", cprio=0),
            Request(op="consume", ch=1, q="q", ctag="high", cprio=10),
            *_publish(6),
        ],
        needs=["priority"],
    ),
)
"""Behaviour of a broker in twenty-two rows, some of which take two scripts."""


def round_robin() -> Iterator[VectorScript]:
    """Deficit weighted round robin: the order of service, and both published tables."""
    cases = {
        "proportional": ([[1, 1, 40], [1, 2, 40], [1, 4, 40]], 5),
        "weight-above-quantum": ([[10, 3, 6], [10, 10, 6]], 8),
        "deficit-is-forgotten": ([[2, 5, 3], [2, 2, 8]], 6),
        "one-runs-dry": ([[1, 3, 4], [1, 1, 10], [1, 2, 0]], 8),
    }
    for name, (slots, rounds) in cases.items():
        yield VectorScript(
            id=f"dwrr-{name}",
            title=f"{len(slots)} slots of weight, quantum and backlog {slots}, {rounds} rounds",
            requests=[Request(op="dwrr", slots=slots, rounds=rounds)],
        )
    slots = [[WEIGHT, quantum, PREFETCH] for quantum in QUANTA]
    for name, (cost, _, _) in TABLES.items():
        yield VectorScript(
            id=f"dwrr-table-{name.replace(' ', '-')}",
            title=f"ten queues, {name} a message: the published table",
            requests=[Request(op="dwrr-table", slots=slots, total=TOTAL, cost=cost, push=PUSH)],
        )


def all_scripts() -> list[VectorScript]:
    """The scripts of all vectors."""
    return [*ROWS, *round_robin()]
