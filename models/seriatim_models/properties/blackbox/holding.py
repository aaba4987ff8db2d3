"""P2 and P3: who holds a message, and whether it is marked as seen before."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

from seriatim_models.history.complete import EXACT
from seriatim_models.history.event import Event
from seriatim_models.properties.base import Finding
from seriatim_models.properties.blackbox.lifecycle import (
    ACQUIRED,
    NOBODY,
    LifecycleKey,
    LifecycleProperty,
    Lifecycles,
    RegularCounts,
    Step,
    Suspect,
    died,
    holder,
    let_go,
)


class OneHolder(LifecycleProperty):
    """P2: whether another definitely held the message when a delivery was recorded.

    A case is a delivery that must be settled: while its holder has it, it could be given to somebody else. No case is
    one with auto-ack, which nobody holds afterwards (P1 judges what comes after it), nor a position of a log, which
    many read. Not judged: a second delivery after lines were lost, or to a first holder whose connection broke without
    being asked to.
    """

    id = "P2"
    sentence = "A message has at most one holder at a time."
    source = (
        "AMQP 0-9-1 specification, 1.8.3.13 basic.ack and 3.1.8 acknowledgements; "
        "https://www.rabbitmq.com/docs/confirms#acknowledgement-modes; Qpid's entry state ACQUIRED"
    )
    kind = "safety"
    case = "a delivery that has to be settled"
    scope = "message"

    def regular_cases(self, counted: RegularCounts) -> tuple[int, int]:
        """Every delivery is a case: those with auto-ack, or with a position, are irregular."""
        return counted.acquisitions, 0

    def judge(
        self, summary: Lifecycles, before: Step, between: Sequence[Step], after: Step
    ) -> None:
        if not _must_be_settled(after.event):
            return
        lost = summary.gap_between(before.pos, after.pos)
        if lost or (not after.event.q and summary.gap_between(-1, after.pos)):
            # What began its consumers may be among the lost lines: their queues may be two, or handing out settle.
            summary.untestable += 1
            return
        summary.tested += 1
        if not _must_be_settled(before.event) or let_go(summary, before, between, after):
            return
        summary.suspects.append(
            Suspect(
                after.pos,
                before.by,
                f"{after.event.m} was given to {after.by} (event {after.event.i}) while {before.by}, which got it "
                f"at event {before.event.i}, had neither settled it nor closed",
                [before.event, after.event],
            )
        )

    def finish(self, summary: Lifecycles) -> Finding:
        firsts = sum(
            next((_must_be_settled(s.event) for s in steps if s.kind == ACQUIRED), False)
            for steps in summary.lifecycles.values()
        )
        violating, freed = summary.violating()
        return Finding.of(
            self.id,
            firsts + summary.tested - freed,
            [(s.why, s.events) for s in violating],
            n_untestable=summary.untestable + freed,
        )


def _must_be_settled(event: Event) -> bool:
    """Whether whoever is given a message holds it until he settles it."""
    return not event.autoack and event.pos is None


class Endings:
    """When consumers of a queue were ending: its own consumers, and any channel or connection."""

    def __init__(self, summary: Lifecycles) -> None:
        self._begun: dict[str, list[int]] = defaultdict(list)
        self._done: dict[str, list[int]] = defaultdict(list)
        for end in (*summary.ends.values(), *summary.cancels.values()):
            self._begun[end.q].append(end.pos)
            if end.done is not None:
                self._done[end.q].append(end.done)
        for positions in (*self._begun.values(), *self._done.values()):
            positions.sort()

    def under_way(self, q: str, after: int, before: int) -> bool:
        """Whether one was under way at any time between two positions."""
        return any(
            bisect_right(self._begun[name], before) > bisect_right(self._done[name], after)
            for name in {q, ""}
        )


class RedeliveredFlag(LifecycleProperty):
    """P3. A case is a delivery that carries the flag.

    False on a message that was handed out before is definite. True on first sight is a violation only if nobody
    else can have had the message: a recorder outside the broker does not see what was on its way to a consumer that
    ended, so a channel, connection or consumer whose end was under way at any time between the publish and this
    delivery excuses it. An end is under way from the first sign of it to the broker's confirmation; a dropped
    connection is never confirmed, as nobody knows when the broker noticed.
    (The recordings of RabbitMQ have 55 of these; four are excused only because a close was not yet confirmed, or by a
    drop.)
    """

    id = "P3"
    sentence = "A delivery is marked redelivered exactly if the message was handed out before."
    source = (
        "AMQP 0-9-1 specification, domain `redelivered`; "
        "https://www.rabbitmq.com/docs/consumers#message-properties"
    )
    kind = "safety"
    case = "a delivery whose redelivered flag is recorded"
    scope = "message"

    def regular_cases(self, counted: RegularCounts) -> tuple[int, int]:
        """Every delivery is a case whose flag decides something."""
        return counted.acquisitions - counted.undecided_flags, counted.undecided_flags

    def judge(
        self, summary: Lifecycles, before: Step, between: Sequence[Step], after: Step
    ) -> None:
        flag = after.event.redelivered
        if flag is None or died(between):
            summary.untestable += 1
            return
        summary.tested += 1
        if not flag:
            summary.suspects.append(
                Suspect(
                    after.pos,
                    NOBODY,
                    f"{after.event.m} is not marked redelivered at event {after.event.i}, "
                    f"although {before.by} had got it at event {before.event.i}",
                    [before.event, after.event],
                )
            )

    def finish(self, summary: Lifecycles) -> Finding:
        violations = [(s.why, s.events) for s in summary.suspects]
        tested, untestable = summary.tested, summary.untestable
        endings = Endings(summary)
        for steps in summary.lifecycles.values():
            first = next((s for s in steps if s.kind == ACQUIRED), None)
            if first is None:
                continue
            flag = first.event.redelivered
            if flag is False:
                tested += 1
                continue
            q, m = first.event.q, first.event.m
            births = [summary.births.get(LifecycleKey(name, m)) for name in (q, "")]
            sent = next((b.sent for b in births if b and b.sent), None)
            if flag is None or sent is None or first.pos < sent.pos:
                untestable += 1
                continue
            ending = endings.under_way(q, sent.pos, first.pos)
            unseen = ending and first.event.lvl not in EXACT
            if unseen or summary.gap_between(sent.pos, first.pos):
                untestable += 1
                continue
            tested += 1
            violations.append(
                (
                    f"{first.event.m} is marked redelivered at event {first.event.i} to {holder(first.event)}, but it "
                    f"had not been handed out since it was sent at event {sent.event.i}, "
                    "and no consumer was ending meanwhile",
                    [sent.event, first.event],
                )
            )
        return Finding.of(self.id, tested, violations, n_untestable=untestable)
