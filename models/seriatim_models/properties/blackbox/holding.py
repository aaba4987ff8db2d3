"""P2 and P3: who holds a message, and whether it is marked as seen before."""

from __future__ import annotations

from collections.abc import Sequence

from seriatim_models.history.event import EXACT, Event
from seriatim_models.properties.base import Finding
from seriatim_models.properties.blackbox.lifecycle import (
    ACQUIRED,
    SETTLED,
    Birth,
    LifecycleProperty,
    Lifecycles,
    RegularCounts,
    Step,
    Suspect,
    died,
    in_order,
    let_go,
)
from seriatim_models.properties.blackbox.naming import Holder, consumer
from seriatim_models.properties.blackbox.sessions import End


class OneHolder(LifecycleProperty):
    """P2: whether two held one message at a time.

    Two acquisitions contradict each other if neither can have been over when the other happened, see
    `Lifecycles.may_precede`. So that the first holder was still there must be certain: its channel or connection
    answered a call that began after the second delivery was recorded.

    A case is a delivery that must be settled: while its holder has it, it could be given to somebody else. No case is
    one with auto-ack, which nobody holds afterwards (P1 judges what comes after it), nor a position of a log, which
    many read. Not judged: a second delivery after lines were lost; messages of which there may be several copies.
    """

    id = "P2"
    sentence = "A message has at most one holder at a time."
    source = (
        "AMQP 0-9-1 specification, 1.8.3.13 basic.ack and 3.1.8 acknowledgements; "
        "https://www.rabbitmq.com/docs/confirms#acknowledgement-modes; Qpid's entry state ACQUIRED"
    )
    rests_on = ""
    case = "a delivery that has to be settled"
    scope = "message"

    def regular_cases(self, counted: RegularCounts) -> tuple[int, int]:
        """Every delivery that has to be settled is a case: those with a position are irregular."""
        return counted.acquisitions - counted.settled_at_once, 0

    def settled_cases(self, birth: Birth, steps: Sequence[Step]) -> tuple[int, int]:
        """Its first delivery, if somebody had to settle it."""
        return int(_must_be_settled(_first(steps))), 0

    def judge(
        self, summary: Lifecycles, before: Step, between: Sequence[Step], after: Step
    ) -> None:
        if not _must_be_settled(after.event):
            return
        if summary.gap_between(before.pos, after.pos):
            summary.untestable += 1
            return
        summary.tested += 1
        if not _must_be_settled(before.event) or let_go(summary, before, between, after):
            return
        why = (
            f"{after.event.m} was given to {after.by} (event {after.event.i}) while {before.by}, which got it "
            f"at event {before.event.i}, had neither settled it nor closed"
        )
        summary.suspects.append(Suspect(before, after, why))

    def finish(self, summary: Lifecycles) -> Finding:
        summary.sessions.settle()
        firsts = sum(
            next((_must_be_settled(s.event) for s in steps if s.kind == ACQUIRED), False)
            for steps in summary.lifecycles.values()
        )
        violations, open_ = [], 0
        for suspect in summary.suspects:
            before, after = suspect.before, suspect.after
            if summary.sessions.sign_before(before.by, after.pos):
                continue  # it ended in an earlier chunk
            if any(s.pos > before.pos for s in summary.swept(before, after.pos)):
                continue  # it asked for all to be requeued
            if _cancelled(summary, before, after):
                open_ += 1
                continue
            if (
                summary.may_precede(before, after)
                or summary.may_precede(after, before)
                or summary.copied(after.event)
                or summary.may_be_gone(before.by, after.pos, after.event)
                or summary.settles_unseen(before.by)
                # What began its consumers may be among lost lines: their queues may be two, or handing out settle.
                or (not after.event.q and summary.gap_between(-1, after.pos))
            ):
                open_ += 1
            else:
                kept = summary.proof_that_kept(before, after)
                kept += summary.proof_that_there(before.by, after.pos, after.event)
                kept += summary.proof_that_kept(after, before)
                violations.append((suspect.why, in_order([before, after, *kept])))
        return Finding.of(
            self.id,
            firsts + summary.tested - open_,
            violations,
            n_untestable=summary.untestable + open_,
        )


def _cancelled(summary: Lifecycles, before: Step, after: Step) -> bool:
    """Whether the consumer that had a message was cancelled before it came again. In AMQP 0-9-1 its channel has it
    still (basic.cancel); where a consumer is a link of its own (AMQP 1.0, detach; STOMP, UNSUBSCRIBE) it goes back.
    """
    end = summary.sessions.cancels.get(consumer(before.event))
    return end is not None and end.pos < after.pos


def _first(steps: Sequence[Step]) -> Event:
    """The first acquisition, of a message that has one."""
    return next(s.event for s in steps if s.kind == ACQUIRED)


def _must_be_settled(event: Event) -> bool:
    """Whether whoever is given a message holds it until he settles it."""
    return not event.autoack and event.pos is None


class RedeliveredFlag(LifecycleProperty):
    """P3. A case is a delivery that carries the flag.

    False on a message that was handed out before is definite, unless this delivery may have been the first, of the two,
    and was only seen late. True on first sight is a violation only if nobody else can have had the message: a recorder
    outside the broker does not see what was on its way to a consumer that ended, or that requeued what it had not
    seen, nor what a `get` of unknown outcome took. So everyone who consumes from the queue or polls it must have been
    there all the while, and known to be (`sessions`). An end is under way from the first sign of it to the broker's
    confirmation; a dropped connection is never confirmed, as nobody knows when the broker noticed.
    """

    id = "P3"
    sentence = "A delivery is marked redelivered exactly if the message was handed out before."
    source = (
        "AMQP 0-9-1 specification, domain `redelivered`; "
        "https://www.rabbitmq.com/docs/consumers#message-properties"
    )
    rests_on = ""
    case = "a delivery whose redelivered flag is recorded"
    scope = "message"

    def regular_cases(self, counted: RegularCounts) -> tuple[int, int]:
        """Every delivery is a case whose flag decides something."""
        return counted.acquisitions - counted.undecided_flags, counted.undecided_flags

    def settled_cases(self, birth: Birth, steps: Sequence[Step]) -> tuple[int, int] | None:
        """Its first delivery, by its flag; whether that may be marked depends on who else was there."""
        flag = _first(steps).redelivered
        return None if flag else (int(flag is False), int(flag is None))

    def judge(
        self, summary: Lifecycles, before: Step, between: Sequence[Step], after: Step
    ) -> None:
        flag = after.event.redelivered
        if flag is None or died(between):
            summary.untestable += 1
            return
        summary.tested += 1
        if not flag:
            why = (
                f"{after.event.m} is not marked redelivered at event {after.event.i}, "
                f"although {before.by} had got it at event {before.event.i}"
            )
            refused = next(
                (s for s in between if s.kind == SETTLED and s.event.ev in ("nack", "reject")),
                None,
            )
            summary.suspects.append(Suspect(before, after, why, refused))

    def finish(self, summary: Lifecycles) -> Finding:
        summary.sessions.settle()
        violations = []
        tested, untestable = summary.tested, summary.untestable
        for suspect in summary.suspects:
            before, after = suspect.before, suspect.after
            # Where both say that they are the first, one of them is wrong, whichever it was.
            late = before.event.redelivered is not False and summary.may_precede(after, before)
            if late or summary.copied(after.event) or self._may_have_died(summary, suspect):
                tested -= 1
                untestable += 1
            else:
                said_first = before.event.redelivered is False
                kept = [] if said_first else summary.proof_that_kept(after, before)
                violations.append((suspect.why, in_order([before, after, *kept])))
        for steps in summary.lifecycles.values():
            first = next((s for s in steps if s.kind == ACQUIRED), None)
            if first is None:
                continue
            flag = first.event.redelivered
            if flag is False:
                tested += 1
                continue
            q, m = first.event.q, first.event.m
            births = [summary.births.get((name, m)) for name in (q, "")]
            sent = next((b.sent for b in births if b and b.sent), None)
            if (
                flag is None
                or sent is None
                or (sent.event.ph == "ok" and sent.event.lvl not in EXACT)  # since when, nobody saw
                or first.pos < sent.pos
                or summary.copied(first.event)
                or self._may_have_been_given(summary, sent.pos, first, steps)
            ):
                untestable += 1
                continue
            tested += 1
            why = (
                f"{first.event.m} is marked redelivered at event {first.event.i} to {first.by}, but it "
                f"had not been handed out since it was sent at event {sent.event.i}, "
                "and no consumer was ending meanwhile"
            )
            violations.append((why, [sent.event, first.event]))
        return Finding.of(self.id, tested, violations, n_untestable=untestable)

    def _may_have_died(self, summary: Lifecycles, suspect: Suspect) -> bool:
        """Whether a message may have gone to another queue and come back between two acquisitions, as a new one."""
        loose = summary.unplaced.get(suspect.before.event.m, ())
        # Also before either: of two that both say they are the first, one may be of before it died.
        event = suspect.before.event
        known = summary.lifecycles.get((event.q, event.m), ())
        refused = [s for s in (suspect.settled, *loose, *known) if s is not None]
        swept = summary.swept_away(suspect.before, suspect.after.pos)
        if suspect.before.event.q in summary.mortal and summary.leads_on(suspect.before.event.q):
            return True  # put back, it may have waited too long
        if summary.gap_between(suspect.before.pos, suspect.after.pos) and summary.leads_on(event.q):
            return True  # refused, of which the line is lost
        ended = (s for s in refused if s.kind == SETTLED and not summary.refused(s))
        return swept or any(summary.may_die(s) for s in ended)

    def _may_have_been_given(
        self, summary: Lifecycles, sent: int, first: Step, steps: Sequence[Step]
    ) -> bool:
        """Whether a message may have been handed out, unseen, between two positions."""
        if summary.gap_between(-1, first.pos):
            return True  # those who consume may be among lost lines
        if first.event.lvl in EXACT:
            return False
        q = first.event.q
        sessions = summary.sessions
        if any(under_way(end, sent, first.pos) for end in sessions.all_ends()):
            return True
        if any(
            under_way(end, sent, first.pos) for end in sessions.cancels.values() if end.q in (q, "")
        ):
            return True
        if any(s.event.ev == "expire" for s in steps) or any(
            s.kind == ACQUIRED and s.pos > first.pos and summary.may_precede(s, first)
            for s in steps
        ):
            return True
        takers = {by for name in {q, ""} for by in summary.takers.get(name, ())}
        return any(
            (by != first.by and summary.unseen(by, sent, first)) or _sent_back(summary, by, first)
            for by in takers
        )


def _sent_back(summary: Lifecycles, by: Holder, first: Step) -> bool:
    """Whether somebody may have requeued what it had not seen, or of which nothing is recorded, before a delivery."""
    return any(not s.final and s.pos < first.pos for s in summary.sweeps.get(by, ()))


def under_way(end: End, after: int, before: int) -> bool:
    """Whether an end may have been under way at any time between two positions."""
    return (not end.asked or end.pos <= before) and (end.done is None or end.done > after)
