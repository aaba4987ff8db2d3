"""P4: messages of one publisher arrive in the order sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from seriatim_models.history.event import GAP, UNKNOWN_GEN, Event
from seriatim_models.properties.base import (
    Finding,
    ProfileValue,
    Property,
    Violations,
    undecided,
)
from seriatim_models.properties.blackbox.lifecycle import (
    ACQUIRES,
    acquires,
    first,
    ranks,
)
from seriatim_models.properties.blackbox.naming import (
    ENDS,
    Holder,
    connection,
    holder,
)

DIVIDED = "but its positions may be of several partitions: record `part`, 0 if there is one"


class LineKey(NamedTuple):
    """What keeps its order: of one publisher's stream, through one queue, at one priority, to one channel.

    A queue is divided where the recording says so: into partitions, and by the key that orders messages (the group).
    """

    pub: str
    q: str
    part: int | None
    key: str | None
    prio: int | None
    by: Holder
    ev: str
    """Above a client library, where the answer of a poll may be recorded before deliveries that came earlier and wait
    for their callback; elsewhere empty.
    """


def by_consumer(event: Event) -> bool:
    """Whether the consumer says where a delivery is: it has one queue and channel, whichever these are."""
    return not event.q or event.gen == UNKNOWN_GEN


def to_nobody(event: Event) -> bool:
    """Whether nobody knows to whom, or when, a delivery came."""
    return event.gen == UNKNOWN_GEN and not event.ctag


def way(event: Event) -> str:
    """How a message came, where that decides when it is recorded."""
    return event.ev if event.lvl in ("", "api") else ""


def line_key(event: Event) -> LineKey:
    """The line in which a delivery is."""
    by = holder(event)
    if by_consumer(event):
        by = by._replace(name=event.ctag or by.name)
    return LineKey(event.pub, event.q, event.part, event.key, event.prio, by, way(event))


class Low(msgspec.Struct, array_like=True):
    """The n-th first delivery of a line, lower than all before it; `above` is the highest before it."""

    n: int
    event: Event
    above: Event | None


class DeliveryLine(msgspec.Struct):
    """First deliveries from one publisher through one queue to one channel, in the order received.

    `lows` are those lower than all before them in the chunk: the first of a chunk that is lower than some
    earlier delivery outside the chunk is always one of these.
    """

    n: int = 0
    top: Event | None = None
    lows: list[Low] = []
    worst: Low | None = None
    """The first delivery that came after a higher one."""


class DeliveryLines(msgspec.Struct):
    """The summary of one chunk: its lines by publisher, queue, priority and receiving channel."""

    lines: dict[LineKey, DeliveryLine] = {}
    unknown: int = 0
    """First deliveries whose publisher or sequence is not known, or whose place deaths decided."""
    ranked: list[str] = []
    """Queues whose messages have priorities; the empty name stands for all."""
    takers: dict[str, list[Holder]] = {}
    """Of each queue two at most who consume from it, or were given something of it; where flags are not believed."""
    loose: list[str] = []
    """Queues from which a taker may have had something back unseen; likewise."""


TAKE_BACK = frozenset(
    {"recover", "cancel", "nack", "reject", "ch_close", "conn_close", "conn_drop"}
)
"""What may bring messages back, of which nobody saw that they were given."""


def _with(names: list[str], name: str) -> list[str]:
    return names if name in names else [*names, name]


def _seq(event: Event | None) -> int:
    return -1 if event is None or event.pseq is None else event.pseq


def _higher(a: Event | None, b: Event | None) -> Event | None:
    return a if _seq(a) >= _seq(b) else b


class FirstDeliveryOrder(Property[DeliveryLines]):
    """P4. A case is a first delivery (by its flag, or the count of attempts) that follows another one of the same
    publisher's stream, queue and priority on the same receiving channel, and of its partition and key if it has them.
    Redeliveries are outside the promise, whatever their flag says, and so are messages that died: the queue that they
    come to has them in the order of deaths. In a queue whose messages have priorities, one of unknown priority is
    untestable. `UnmarkedOrder` is the form for systems that do not mark whatever was handed out before.
    """

    id = "P4"
    sentence = "First deliveries to one channel keep the order in which one publisher's channel sent the messages."
    source = "AMQP 0-9-1 specification, 4.7 content ordering; https://www.rabbitmq.com/docs/semantics#ordering"
    rests_on = ""
    case = "two first deliveries to one channel, of one publisher (`pub`, `pseq`), queue, partition, key and priority"
    scope = "queue"
    reads = ACQUIRES | {"publish"}
    summary_type = DeliveryLines
    keeps = "of each publisher and channel: the count, the highest, the lows of the chunk"
    column_check = "seriatim_models.properties.columnar.order_checks:first_delivery_order"
    queue_check = "seriatim_models.properties.columnar.lines:RegularLines"
    options = frozenset({"marked"})

    @classmethod
    def from_options(cls, options: Mapping[str, ProfileValue]) -> FirstDeliveryOrder:
        return UnmarkedOrder() if options.get("marked") is False else cls()

    def take(self, out: DeliveryLines, event: Event) -> None:
        """Take in what else a form reads."""

    def may_come_unmarked(self, summary: DeliveryLines, q: str) -> bool:
        """Whether a message of a queue may have been handed out before and not be marked."""
        return False

    def map(self, events: Iterable[Event]) -> DeliveryLines:
        out = DeliveryLines()
        for event in events:
            self.take(out, event)
            if ranks(event) and event.q not in out.ranked:
                out.ranked.append(event.q)
            if not acquires(event) or (fresh := first(event)) is False:
                continue
            known = event.pseq is not None and event.pub and not event.dead
            if fresh is None or not known or to_nobody(event):
                out.unknown += 1
                continue
            key = line_key(event)
            line = out.lines.setdefault(key, DeliveryLine())
            if _seq(event) < _seq(line.top):
                line.worst = line.worst or Low(line.n, event, line.top)
            if not line.lows or _seq(event) < _seq(line.lows[-1].event):
                line.lows.append(Low(line.n, event, line.top))
            line.top = _higher(line.top, event)
            line.n += 1
        return out

    def combine(self, left: DeliveryLines, right: DeliveryLines) -> DeliveryLines:
        left.unknown += right.unknown
        left.ranked += [q for q in right.ranked if q not in left.ranked]
        for q in right.loose:
            left.loose = _with(left.loose, q)
        for q, takers in right.takers.items():
            mine_takers = left.takers.setdefault(q, [])
            mine_takers += [by for by in takers if by not in mine_takers][: 2 - len(mine_takers)]
        for key, more in right.lines.items():
            mine = left.lines.get(key)
            left.lines[key] = self._joined(mine, more) if mine else more
        return left

    def _joined(self, mine: DeliveryLine, more: DeliveryLine) -> DeliveryLine:
        worst = mine.worst
        if worst is None:
            over = next((low for low in more.lows if _seq(low.event) < _seq(mine.top)), None)
            found = [low for low in (more.worst, over) if low is not None]
            if found:
                first = min(found, key=lambda low: low.n)
                worst = Low(mine.n + first.n, first.event, _higher(mine.top, first.above))
        lows = mine.lows + [
            Low(mine.n + low.n, low.event, _higher(mine.top, low.above))
            for low in more.lows
            if _seq(low.event) < _seq(mine.lows[-1].event)
        ]
        return DeliveryLine(
            n=mine.n + more.n,
            top=_higher(mine.top, more.top),
            lows=lows,
            worst=worst,
        )

    def finish(self, summary: DeliveryLines) -> Finding:
        violations: Violations = []
        divided: Violations = []
        tested, untestable = 0, summary.unknown
        for key, line in summary.lines.items():
            if key.prio is None and not {key.q, ""}.isdisjoint(summary.ranked):
                untestable += line.n - 1
                continue
            tested += line.n - 1
            if line.worst is None or line.worst.above is None:
                continue
            late, above = line.worst.event, line.worst.above
            if self.may_come_unmarked(summary, key.q):
                tested, untestable = tested - 1, untestable + 1
                continue
            why = (
                f"{late.m} reached {holder(late)} at event {late.i} for the first time after {above.m} "
                f"(event {above.i}), although {late.pub} had sent it before ({late.pseq} < {above.pseq})"
            )
            # Where positions are shown and no partition, each may be of another one.
            unknown = key.part is None and None not in (late.pos, above.pos)
            (divided if unknown else violations).append((why, [above, late]))
        found = Finding.of(
            self.id, tested - len(divided), violations, n_untestable=untestable + len(divided)
        )
        return undecided(found, divided[0][0], DIVIDED) if divided and not violations else found


class UnmarkedOrder(FirstDeliveryOrder):
    """P4 in the form ``marked=False``: a message that was handed out before, unseen, may come unmarked. Order is
    definite only where one channel alone takes from the queue, and gives nothing back that it has not seen.
    """

    reads = FirstDeliveryOrder.reads | TAKE_BACK | {"consume", GAP}
    column_check = FirstDeliveryOrder.column_check

    def __init__(self) -> None:
        super().__init__()
        self.marked = False

    def take(self, out: DeliveryLines, event: Event) -> None:
        if event.ev == GAP:
            out.loose = _with(out.loose, "")
        elif event.ev in TAKE_BACK:
            ended = Holder(event.conn)
            of_worker = event.ev in ENDS and any(
                by.ch is None and connection(by) == ended for of in out.takers.values() for by in of
            )
            if event.ev in ("recover", "cancel") or event.multiple or of_worker:
                out.loose = _with(out.loose, event.q)
        elif event.ev != "publish" and event.ph != "fail":
            takers = out.takers.setdefault(event.q, [])
            if holder(event) not in takers and len(takers) < 2:
                takers.append(holder(event))

    def may_come_unmarked(self, summary: DeliveryLines, q: str) -> bool:
        queues = (q, "") if q else tuple(summary.takers)
        takers = {by for name in queues for by in summary.takers.get(name, ())}
        return len(takers) > 1 or not {q, ""}.isdisjoint(summary.loose)
