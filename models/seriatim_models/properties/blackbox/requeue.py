"""P6: how late a requeued message comes back.

From outside a client library nothing says when a nack took effect. But commands of one channel take effect in the
order sent,
and a delivery under a full prefetch needs the credit that some command of its channel gave. So if the message m' was
requeued by that command or an earlier one, it was back in the queue when the delivery was made. If the message
delivered is a later one, m' was *overtaken*.

Qpid's queue never lets that happen. RabbitMQ 3.10's classic queue does: its process takes acknowledgements (and the
credit they give) before requeues that came earlier
(`rabbit_amqqueue_process:prioritise_cast`), so a requeued message keeps its place but comes back after up to
prefetch - 1 further deliveries.
So the property has a bound, and the default is what the prefetch allows; ``RequeueLateness(within=0)`` is the strict
form.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable

from seriatim_models.history.complete import EXACT, SETTLES
from seriatim_models.history.event import GAP, Event
from seriatim_models.properties.base import Finding, WholeHistory
from seriatim_models.properties.blackbox.lives import (
    ACQUIRES,
    ENDS,
    acquires,
    began,
    end_of,
    holder,
)
from seriatim_models.properties.blackbox.strict import queues, when


class _Requeued:
    """A message on its way back: who requeued it, by which command, and who overtook it beyond the bound."""

    def __init__(self, by: str, command: int, event: Event, place: Event, open_end: bool) -> None:
        self.by = by
        self.command = command
        self.event = event
        self.place = place
        self.unsure = open_end
        self.overtaken = 0
        self.by_event: list[Event] = []


class _Queue:
    """One pass over one queue in recording order."""

    def __init__(self, within: int | None) -> None:
        self.within = within
        self.cases: dict[int, Event] = {}  # deliveries with known credit, by number
        self.open: set[int] = set()  # of those, overtaking something whose own fate is not definite
        self.violations: dict[int, tuple[str, list[Event]]] = {}
        self._back: dict[str, _Requeued] = {}
        self._held: dict[tuple[str, str], tuple[str, Event]] = {}
        self._commands: dict[str, int] = defaultdict(int)
        self._credit: dict[str, deque[int]] = defaultdict(deque)
        self._delivered: dict[str, int] = defaultdict(int)
        self._unknown: set[str] = set()  # limits whose count was lost
        self._ending: set[str] = set()
        self._number: dict[int, int] = {}
        self._n = 0

    def run(self, events: Iterable[Event]) -> None:
        for event in events:
            if acquires(event):
                self._deliver(event)
            elif event.ev in SETTLES:
                if began(event):
                    self._settle(event)
            elif event.ev == GAP:
                self._unknown |= set(self._delivered)
                self._back.clear()
            else:
                self._end(event)
        for back in self._back.values():
            self._leave_open(back, back.by_event)
        self.open -= set(self.violations)

    def _end(self, event: Event) -> None:
        """A consumer that ends may have had, unseen, any message that was on its way back."""
        name = end_of(event) if event.ev in ENDS else f"{holder(event)} {event.ctag}"
        if event.ph in ("", "ok") and event.ev != "conn_drop":
            self._ending.discard(name)
        else:
            self._ending.add(name)
        if event.lvl not in EXACT:
            for back in self._back.values():
                back.unsure = True

    def _settle(self, event: Event) -> None:
        by = holder(event)
        self._commands[by] += 1
        for m in event.ms or ():
            held = self._held.pop((by, m), None)
            if held is None:
                continue
            limit, delivery = held
            self._credit[limit].append(self._commands[by])
            if event.ev != "ack" and event.requeue is not False:
                unsure = bool(self._ending) and event.lvl not in EXACT
                self._back[m] = _Requeued(by, self._commands[by], event, delivery, unsure)

    def _deliver(self, event: Event) -> None:
        by = holder(event)
        limit = by if event.scope == "channel" else f"{by} {event.ctag}"
        returned = self._back.pop(event.m, None)
        if returned:
            self._judge(returned, event)
        if not event.autoack:
            self._held[by, event.m] = (limit, event)
        self._delivered[limit] += 1
        credit = 0
        if (
            event.prefetch
            and limit not in self._unknown
            and self._delivered[limit] > event.prefetch
            and self._credit[limit]
        ):
            credit = self._credit[limit].popleft()
        number = self._n
        self._n += 1
        if event.pseq is None or not event.prefetch:
            return
        self.cases[number] = event
        if limit in self._unknown:
            self.open.add(number)
        self._number[id(event)] = number
        within = event.prefetch if self.within is None else self.within
        for back in self._back.values():
            place = back.place
            if (
                back.by == by
                and back.command <= credit
                and place.pub == event.pub
                and place.pseq is not None
                and place.pseq < event.pseq
            ):
                back.overtaken += 1
                if back.overtaken > within:
                    back.by_event.append(event)

    def _judge(self, back: _Requeued, event: Event) -> None:
        """The message is back. On the channel that requeued it, deliveries come in the order of acquisition;
        elsewhere it may have been taken earlier than it was recorded."""
        sure = [] if back.unsure else back.by_event
        if holder(event) != back.by:
            sure = [e for e in sure if event.t_lo is not None and when(e) < event.t_lo]
        convicted = {id(e) for e in sure}
        self._leave_open(back, [e for e in back.by_event if id(e) not in convicted])
        for late in sure:
            why = (
                f"{back.event.ev} at event {back.event.i} gave {event.m} back; {back.by} was given the later {late.m} "
                f"at event {late.i} with credit from that command or a later one, and {event.m} only at event {event.i}"
            )
            self.violations.setdefault(
                self._number[id(late)], (why, [back.place, back.event, late, event])
            )

    def _leave_open(self, back: _Requeued, events: Iterable[Event]) -> None:
        self.open |= {self._number[id(e)] for e in events}


class RequeueLateness(WholeHistory):
    """P6. A case is a delivery under a prefetch, of a message whose place among its publisher's is known.

    It violates if it overtakes, on the channel that had requeued it, an earlier message of the same publisher that
    was overtaken `within` times before; `within` None stands for the prefetch.
    Open: what came back to another channel, at an instant that is not definite; what never came back;
    and what may have been in flight, unseen, to a consumer that ended; deliveries whose credit
    is unknown because lines were lost.
    """

    id = "P6"
    sentence = "A requeued message comes back before more than a bounded number of later ones."
    source = (
        "RabbitMQ 3.10.8 rabbit_amqqueue_process:prioritise_cast; "
        "https://www.rabbitmq.com/docs/nack (requeued to its original position if possible)"
    )
    kind = "safety"
    scope = "queue"
    reads = ACQUIRES | SETTLES | ENDS | {"cancel", "publish", GAP}

    def __init__(self, within: int | None = None) -> None:
        self.within = within

    def finish(self, summary: list[Event]) -> Finding:
        tested = untestable = 0
        violations: list[tuple[str, list[Event]]] = []
        for _, events in sorted(queues(summary)):
            queue = _Queue(self.within)
            queue.run(e for e in events if e.ev != "publish")
            tested += len(queue.cases) - len(queue.open)
            untestable += len(queue.open)
            violations += queue.violations.values()
        return Finding.of(self.id, tested, violations, n_untestable=untestable)
