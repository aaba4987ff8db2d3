"""P1: what goes in comes out, once."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from seriatim_models.history.event import EXACT, GAP, SETTLES, Event
from seriatim_models.properties.base import Finding, ProfileValue
from seriatim_models.properties.blackbox.in_time import answered, nanoseconds
from seriatim_models.properties.blackbox.lifecycle import (
    ACQUIRED,
    ACQUIRES,
    ATTEMPTS,
    DROPPING,
    RELEASED,
    SETTLED,
    Birth,
    Command,
    LifecycleProperty,
    Lifecycles,
    RegularCounts,
    Step,
    Suspect,
    acquires,
    command,
    died,
    in_order,
)
from seriatim_models.properties.blackbox.naming import (
    NOBODY,
    ConsumerKey,
    Holder,
    connection,
    holder,
)
from seriatim_models.properties.blackbox.recorders import LatestLines
from seriatim_models.properties.blackbox.sessions import PlacedEvent

LIMITS_FROM = 5
"""How often a message is tried before systems park it unasked: a share group of Kafka after 5 deliveries (KIP-932,
`group.share.delivery.count.limit`), ActiveMQ after 6 redeliveries, Azure Service Bus and Artemis after 10 deliveries,
RabbitMQ's quorum queues after 20. A recording may say nothing of that."""

Name = TypeVar("Name")


class Depth(msgspec.Struct, array_like=True, gc=False):
    """Somebody looked into a queue and saw `depth` ready messages."""

    pos: int
    depth: int
    event: Event
    rest: int = -1
    """Before it, where all had last come to rest: every command recorded before that had taken effect; -1 if never."""


class Uptake(msgspec.Struct, array_like=True, gc=False):
    """A consumer of a queue: it may have messages in flight that no recorder saw until it ends."""

    pos: int
    by: Holder
    ctag: str
    autoack: bool


class Poll(NamedTuple):
    """A poll: of which queue, by whom, and in which operation."""

    q: str
    by: Holder
    op: int | None


class UnseenPolls(msgspec.Struct):
    """Polls of which nobody knows what they took: their outcome is unknown, or they were never answered."""

    asked: dict[Poll, list[int]] = {}
    """Where those began that are not answered yet."""
    answers: dict[Poll, list[str]] = {}
    """How those ended whose beginning is in an earlier chunk."""
    since: dict[str, int] = {}
    """Of each queue, where the first one of unknown outcome began."""

    def take(self, pos: int, poll: Poll, ph: str) -> None:
        """Take in a poll's beginning or answer."""
        if ph == "invoke":
            self.asked.setdefault(poll, []).append(pos)
        elif ph:
            self._answered(poll, ph)

    def _answered(self, poll: Poll, ph: str) -> None:
        asked = self.asked.get(poll)
        if not asked:
            self.answers.setdefault(poll, []).append(ph)
            return
        begun = asked.pop(0)
        if not asked:
            del self.asked[poll]
        if ph == "info":
            self.since[poll.q] = min(begun, self.since.get(poll.q, begun))

    def join(self, right: UnseenPolls, shift: int) -> None:
        """Take in those of the next chunk, whose positions are `shift` higher here."""
        for poll, phases in right.answers.items():
            for ph in phases:
                self._answered(poll, ph)
        for poll, asked in right.asked.items():
            self.asked.setdefault(poll, []).extend(pos + shift for pos in asked)
        for q, pos in right.since.items():
            self.since[q] = min(pos + shift, self.since.get(q, pos + shift))

    def moved(self, to: Callable[[int], int]) -> UnseenPolls:
        """The same where positions count other events: each is what `to` makes of it."""
        asked = {poll: [to(pos) for pos in at] for poll, at in self.asked.items()}
        answers = {poll: list(phases) for poll, phases in self.answers.items()}
        return UnseenPolls(asked, answers, {q: to(pos) for q, pos in self.since.items()})

    def before(self, pos: int, *queues: str) -> bool:
        """Whether one of these queues had begun before a position."""
        begun = [self.since[q] for q in queues if q in self.since]
        begun += [asked[0] for poll, asked in self.asked.items() if poll.q in queues]
        lone = any("info" in ended for poll, ended in self.answers.items() if poll.q in queues)
        return lone or any(at < pos for at in begun)


class Traffic(msgspec.Struct):
    """What decides whether a queue was drained."""

    last: dict[str, int] = {}
    """By queue: position of the last event that put in, took out or requeued a message."""
    looks: dict[str, Depth] = {}
    uptakes: dict[str, list[Uptake]] = {}
    rest: int = -1
    """Where all had last come to rest; -1 if never."""
    unseen_polls: UnseenPolls = msgspec.field(default_factory=UnseenPolls)
    polls: dict[Poll, int] = {}
    """How many polls of somebody were not answered."""
    settling: set[str] = set()
    """Queues of polls that settle what they take."""
    unknown: set[str] = set()
    """Queues of polls that settle what they take, and whose outcome nobody knows: each may have taken a message."""
    unseen: set[str] = set()
    """Queues of other polls whose outcome nobody knows: a message that one took is held, until the poller ends."""
    faults: list[PlacedEvent] = []
    """Where the system was ended on purpose, twice each: before it ended, and when it was there again."""
    declared: dict[str, PlacedEvent] = {}
    """Queues that declare what their messages survive."""
    answered: dict[Command, PlacedEvent] = {}
    """Answers to acknowledgements in queues that declare what these survive."""
    recorded_by: dict[Holder, str] = {}
    """Who consumed or polled, and which recorder wrote that down, where recorders have names."""
    pollers: set[Holder] = set()
    """Who polled: the answer of a poll may overtake what was pushed before, and its tag cover that in a settlement."""
    refuses: bool = False
    """A settlement of a worker without a channel was refused: it had what it settles no longer."""
    leaky: set[str] = set()
    """Queues that may drop messages: purged, deleted, limited in age or length."""
    attempts: dict[str, int] = {}
    """Of queues that park a message somewhere else, how often they try it before."""

    def disturbed(self, pos: int) -> bool:
        """Whether some kind of fault had begun before a position and was not over there."""
        last = {str(f.event.args["fault"]): f.event.ph for f in self.faults if f.pos < pos}
        return "invoke" in last.values()


class ConservationSummary(Lifecycles):
    """Lifecycles, and the traffic of their queues."""

    traffic: Traffic = msgspec.field(default_factory=Traffic)
    published: bool = False
    """Whether the history is known to record how publishes begin, besides those summarised here."""
    recorders: LatestLines = msgspec.field(default_factory=LatestLines)


class Conservation(LifecycleProperty):
    """P1. Three kinds of case.

    - A delivery of a message that nobody had begun to publish: a phantom. Open if lines were lost before it, if the
      history records no publish's beginning, or of this message only an answer that came later, if another recorder
      wrote nothing after it, and so may have stopped before it was sent (`recorders`), and if the message says that
      its publisher sent it after all that the recorder of that one wrote down.
    - A delivery after the holder settled the message for good; with auto-ack the delivery settles it. Definite if the
      settlement certainly took effect: its channel answered a later call (`sessions`), or that of a worker without a
      session was answered before the message was asked for again. Open otherwise, if the
      settlement failed or its outcome is unknown, and for messages that were published more than once.
    - A confirmed message whose queue was drained, and which was neither settled, refused nor held: lost.
      Drained means that somebody saw depth 0 after the last traffic, and that the end of every channel that had
      consumed from the queue or polled it was confirmed, so that nothing can be in flight, or that nothing was seen
      held either. Open otherwise, for queues that may drop messages, after a poll of unknown outcome, for who may have
      taken on when his recorder had written its latest line (another than that of who looked), and for
      consumers that acknowledge on push (what they were sent and never saw is gone by their own wish), and where of
      some connection only answers are recorded. Where somebody was seen to hold something also, and,
      unless nothing was seen held, for what a worker without a channel has when its connection ends (a session of
      MQTT 5, 3.1.2.11.2, and what is pending in a group of Redis streams outlast it) or puts back without an answer.

    Where the system was ended on purpose (a `gap` with `fault`), a loss is definite only if the queue declares that
    confirmed messages survive that kind of fault (`survives`), and a message that comes again only if it declares so
    of settlements (`settled`) and this one was answered.
    """

    id = "P1"
    sentence = "No message is lost, none comes from nowhere, none comes back after it was settled."
    source = (
        "AMQP 0-9-1 specification 4.7 and basic.ack; https://www.rabbitmq.com/docs/confirms; "
        "the conservation of Qpid's queue counters"
    )
    rests_on = ""
    case = "a delivery in a history that records publishes, or a confirmed message whose queue is seen empty at the end"
    scope = "message"
    reads = LifecycleProperty.reads | {"note", "consume", "declare", "delete", "purge", "conn_open"}
    summary_type = ConservationSummary
    options = frozenset({"again"})

    def __init__(self, again: bool = False) -> None:
        """`again`: the system may hand out a message even after it was acknowledged (at-least-once without limit), so
        that the second kind of case is none; but for auto-ack, by which a client asks to be given it once at most.
        """
        self.again = again

    @classmethod
    def from_options(cls, options: Mapping[str, ProfileValue]) -> Conservation:
        return cls(again=bool(options.get("again")))

    def regular_cases(self, counted: RegularCounts) -> tuple[int, int]:
        """A delivery is a case; so is a confirmed message, open as long as it may still be in its queue."""
        return counted.acquisitions + counted.confirmed_settled, counted.confirmed_open

    def settled_cases(self, birth: Birth, steps: Sequence[Step]) -> tuple[int, int]:
        """Its first delivery came from a publish; and if it was confirmed, it is not lost."""
        return 1 + (birth.confirmed is not None), 0

    def judge(
        self, summary: Lifecycles, before: Step, between: Sequence[Step], after: Step
    ) -> None:
        # Only the first command about it counts: what was requeued cannot be settled any more.
        settled = next((s for s in between if s.by in (before.by, NOBODY)), None)
        if settled is None or settled.kind != SETTLED or settled.by == NOBODY:
            summary.tested += 1
            return
        doubled = settled.pos == before.pos
        if self.again and not doubled:
            summary.tested += 1
            return
        read = before.event.pos is not None or after.event.pos is not None
        # Reading a log takes nothing away, and what died may come back as a new one.
        if died(between) or (doubled and read) or summary.gap_between(before.pos, after.pos):
            summary.untestable += 1
            return
        summary.tested += 1
        why = (
            f"{after.event.m} was given to {after.by} at event {after.event.i}, although it was settled when it "
            f"was given to {before.by} at event {before.event.i}, with auto-ack"
            if doubled
            else f"{after.event.m} was given to {after.by} at event {after.event.i}, after {before.by} "
            f"had settled it for good at event {settled.event.i}"
        )
        summary.suspects.append(Suspect(before, after, why, settled))

    def add(self, out: Lifecycles, event: Event) -> None:
        assert isinstance(out, ConservationSummary)
        if event.ev in self.reads:
            out.recorders.take(event)
        if event.ev == GAP and event.args.get("fault"):
            out.traffic.faults.append(PlacedEvent(out.n, event))
            return
        super().add(out, event)
        self._traffic(out, event)

    def _traffic(self, out: ConservationSummary, event: Event) -> None:
        traffic, pos = out.traffic, out.n
        ev = event.ev
        if event.rec and (ev == "consume" or (ev == "get" and not event.m)):
            traffic.recorded_by[holder(event)] = event.rec
        if ev == "get":
            self.poll(traffic, event, pos)
        if ev in ("publish", "return", "expire") or acquires(event) or ev in SETTLES:
            traffic.last[event.q] = pos
            traffic.refuses |= ev in SETTLES and event.ph == "fail" and event.ch is None
            final = ev == "ack" or (ev in SETTLES and event.requeue is False)
            if final and event.ph == "ok" and event.q in traffic.declared:
                traffic.answered[command(event)] = PlacedEvent(pos, event)
        elif ev == "note":
            depth = event.args.get("depth")
            if isinstance(depth, int) and event.q:
                traffic.looks[event.q] = Depth(pos, depth, event, traffic.rest)
            elif event.args.get("rest") is True:
                traffic.rest = pos
        elif ev == "consume":
            if event.ph != "fail":
                uptake = Uptake(pos, holder(event), event.ctag, bool(event.autoack))
                traffic.uptakes.setdefault(event.q, []).append(uptake)
        elif ev == "declare":
            _declare(traffic, event, pos)
        elif ev in ("delete", "purge"):
            traffic.leaky.add(event.q)

    def poll(self, traffic: Traffic, event: Event, pos: int) -> None:
        """Take in a poll at a position: one that nobody knows the outcome of may have taken a message."""
        by = holder(event)
        if event.ph == "info":
            (traffic.unknown if event.autoack else traffic.unseen).add(event.q)
        if event.autoack:
            traffic.settling.add(event.q)
        if event.lvl in ("", "api"):
            traffic.pollers.add(by)
        if event.ph:
            poll = Poll(event.q, by, event.op)
            traffic.unseen_polls.take(pos, poll, event.ph)
            _count(traffic.polls, poll, 1 if event.ph == "invoke" else -1)

    def combine(self, left: Lifecycles, right: Lifecycles) -> Lifecycles:
        assert isinstance(left, ConservationSummary)
        assert isinstance(right, ConservationSummary)
        shift = left.n
        mine, more = left.traffic, right.traffic
        mine.last |= {q: p + shift for q, p in more.last.items()}
        for q, d in more.looks.items():
            rest = d.rest + shift if d.rest >= 0 else mine.rest
            mine.looks[q] = Depth(d.pos + shift, d.depth, d.event, rest)
        mine.rest = more.rest + shift if more.rest >= 0 else mine.rest
        for q, uptakes in more.uptakes.items():
            mine.uptakes.setdefault(q, []).extend(
                Uptake(u.pos + shift, u.by, u.ctag, u.autoack) for u in uptakes
            )
        mine.refuses |= more.refuses
        mine.recorded_by |= more.recorded_by
        mine.unseen_polls.join(more.unseen_polls, shift)
        for poll, n in more.polls.items():
            _count(mine.polls, poll, n)
        mine.settling |= more.settling
        mine.unknown |= more.unknown
        mine.attempts |= more.attempts
        mine.unseen |= more.unseen
        mine.faults += [PlacedEvent(f.pos + shift, f.event) for f in more.faults]
        mine.declared |= _moved(more.declared, shift)
        mine.answered |= _moved(more.answered, shift)
        mine.pollers |= more.pollers
        mine.leaky |= more.leaky
        left.published |= right.published
        left.recorders.join(right.recorders)
        return super().combine(left, right)

    def check_witness(self, witness: Sequence[Event]) -> Finding:
        """The finding on a witness alone: that the run records publishes, and that calls begin, is taken from the run,
        not from an event.
        """
        summary = self.map(witness)
        assert isinstance(summary, ConservationSummary)
        summary.published = True
        summary.sessions.kinds.begun |= summary.sessions.kinds.numbered
        return self.finish(summary)

    def finish(self, summary: Lifecycles) -> Finding:
        assert isinstance(summary, ConservationSummary)
        summary.sessions.settle()
        violations = [
            (s.why, self._shown_again(summary, s, s.settled))
            for s in summary.suspects
            if s.settled is not None and self._came_again(summary, s, s.settled)
        ]
        excused = len(summary.suspects) - len(violations)
        tested = summary.tested - excused
        untestable = summary.untestable + excused
        by_message: dict[str, list[list[Step]]] = {}
        sent: dict[
            str, list[PlacedEvent]
        ] = {}  # of each message, to whatever queue, the first sent first
        for (_, m), birth in summary.births.items():
            if birth.sent:
                insort(sent.setdefault(m, []), birth.sent, key=lambda placed: placed.pos)
        for (_, m), steps in summary.lifecycles.items():
            by_message.setdefault(m, []).append(steps)
            first = next((s for s in steps if s.kind == ACQUIRED), None)
            if first is None:
                continue
            why, events = self._phantom(summary, sent, first)
            if why:
                violations.append((why, events))
            if why is None:
                untestable += 1
            else:
                tested += 1
        drained = {q for q in summary.traffic.looks if self.drained(summary, q)}
        for (_, m), birth in summary.births.items():
            if birth.confirmed is None or birth.refused is not None:
                continue
            found = self._lost(summary, birth, by_message.get(m, []), m, drained)
            if found is None:
                untestable += 1
                continue
            tested += 1
            lost, steps = found
            if lost:
                look = summary.traffic.looks[birth.confirmed.event.q or _queue(birth)]
                begun = birth.sent or birth.confirmed
                seen = PlacedEvent(look.pos, look.event)
                violations.append((lost, in_order([begun, birth.confirmed, *steps, seen])))
        return Finding.of(self.id, tested, violations, n_untestable=untestable)

    def _came_again(self, summary: ConservationSummary, suspect: Suspect, settled: Step) -> bool:
        """Whether a message was certainly handed out after it was settled for good."""
        before = suspect.before
        faults = [f for f in summary.traffic.faults if settled.pos < f.pos < suspect.after.pos]
        if faults:
            return self._came_back(summary, suspect, settled, faults)
        if summary.traffic.disturbed(settled.pos):
            return False  # two sides of a partition may both hand it out; it is not over
        returned = _returned(summary, before, settled)
        # Its own channel cannot have lost it without a word; so either way it was given what it had.
        voided = command(settled.event) in summary.voided
        effective = (_own(suspect) and not voided) or (
            summary.took_effect(settled) and not self._gone(summary, settled, suspect.after)
        )
        return (
            (settled.event.ev in ACQUIRES or (not returned and effective))
            and not summary.may_precede(suspect.after, suspect.before)
            and not summary.copied(suspect.after.event)
            and not summary.may_die(settled)
            and not _too_late(summary, settled, suspect.after)
        )

    def _gone(self, summary: ConservationSummary, settled: Step, after: Step) -> bool:
        """Whether a session may have ended before its settlement took effect. A worker's own connection answered that,
        so it was there, and nothing came back by its end.
        """
        answer = summary.confirmed.get(command(settled.event))
        if settled.by.ch is None and answer is not None:
            return summary.sessions.sign_before(settled.by, answer.pos)
        return summary.may_be_gone(settled.by, settled.pos, after.event)

    def _came_back(
        self,
        summary: ConservationSummary,
        suspect: Suspect,
        settled: Step,
        faults: Sequence[PlacedEvent],
    ) -> bool:
        """The same if the system was ended and started in between: only what was answered counts, and only if the
        queue declares that it survives. Nothing that was handed out before can arrive after. It may serve again before
        the end of the fault is recorded: then what was answered before its beginning counts, and was handed out anew.
        """
        before, after = suspect.before, suspect.after
        answered = summary.traffic.answered.get(command(settled.event))
        ended = [f.pos for f in faults if f.event.ph == "ok"]
        anew = bool(ended) or not (
            summary.may_precede(after, before)
            or _returned(summary, before, settled)
            or _too_late(summary, settled, after)
        )
        return (
            anew
            and answered is not None
            and answered.pos < min(ended or [faults[0].pos])
            and all(_declared(summary, settled.event.q, "settled", f) for f in faults)
            and command(settled.event) not in summary.voided
            and not summary.copied(suspect.after.event)
            and not summary.may_die(settled)
        )

    def _shown_again(
        self, summary: ConservationSummary, suspect: Suspect, settled: Step
    ) -> list[Event]:
        """The two deliveries, the settlement between them, and the answers by which they are certain."""
        traffic, after = summary.traffic, suspect.after
        faults = [f for f in traffic.faults if settled.pos < f.pos < after.pos]
        if faults:
            shown = (traffic.answered[command(settled.event)], traffic.declared[settled.event.q])
            kept = (
                []
                if any(f.event.ph == "ok" for f in faults)
                else summary.proof_that_kept(after, suspect.before)
            )
            return in_order([suspect.before, settled, after, *shown, *faults, *kept])
        took_effect = settled.event.ev in ACQUIRES or settled.event.lvl in EXACT or _own(suspect)
        effect = [] if took_effect else summary.sessions.proof(settled.by, settled.pos)
        if (answer := summary.confirmed.get(command(settled.event))) and not took_effect:
            effect.append(answer)
        if not _own(suspect):
            effect += summary.proof_that_there(settled.by, settled.pos, suspect.after.event)
        kept = summary.proof_that_kept(suspect.after, suspect.before)
        return in_order([suspect.before, settled, suspect.after, *effect, *kept])

    def _phantom(
        self, summary: ConservationSummary, sent: dict[str, list[PlacedEvent]], first: Step
    ) -> tuple[str | None, list[Event]]:
        """Why the first delivery of a message comes from nowhere; empty if it does not, None if that is open."""
        m, i = first.event.m, first.event.i
        births = sent.get(m, [])
        begun = births[0] if births else None
        if begun and begun.pos < first.pos:
            return "", []
        calls = summary.published or any(b.begins for b in summary.births.values())
        if not calls or summary.publishes_lost(first.pos):
            return None, []
        if any(b.event.ph in ("ok", "info") for b in births):
            return None, []  # of an answer alone nobody knows when the call began
        if any(_stamped_before(b.event, first.event) for b in births):
            return None, []
        if begun:
            why = f"{m} was given to {first.by} at event {i}, before it was sent at event {begun.event.i}"
            return why, [first.event, begun.event]
        if first.event.args.get("beyond") or summary.recorders.another_stopped(first.event):
            return None, []
        return f"{m} was given to {first.by} at event {i}, but nobody sent it", [first.event]

    def drained(self, summary: ConservationSummary, q: str) -> bool:
        """Whether nothing of the queue can be anywhere when its depth was seen to be 0."""
        traffic = summary.traffic
        look = traffic.looks[q]
        # What a poll took that was never answered is held, unless it was settled by that.
        open_polls = any(n > 0 and poll.q in (q, "") for poll, n in traffic.polls.items())
        at_rest = _none_held(look) and look.event.args.get("rest") is True
        if open_polls and not (at_rest and {q, ""}.isdisjoint(traffic.settling)):
            return False
        if summary.sessions.kinds.quiet:
            return False  # polls and consumers that nobody answered are not recorded
        if look.depth or summary.gaps or not {q, ""}.isdisjoint(traffic.leaky | traffic.unknown):
            return False
        if max(traffic.last.get(q, -1), traffic.last.get("", -1)) > look.pos:
            return False
        if self._took_on_unrecorded(summary, look):
            return False
        uptakes = traffic.uptakes.get(q, ())
        if _none_held(look):
            return not any(u.autoack for u in uptakes)
        if look.event.args.get("held") or not {q, ""}.isdisjoint(traffic.unseen):
            return False
        return not any(u.autoack or not self._stopped(summary, u, look) for u in uptakes)

    def _took_on_unrecorded(self, summary: ConservationSummary, look: Depth) -> bool:
        """Whether somebody may have taken from a queue, and settled, behind the latest line of his recorder, which
        wrote nothing after the look and so may have been killed before: whoever asked for messages of some queue, or
        was only seen to be given one, unless he is known to have ended by then; or who opened a channel and wrote
        nothing of what he did there.
        """
        stopped = summary.recorders.silent_since(look.event)
        if not stopped:
            return False
        if stopped & summary.recorders.only_opened:
            return True
        by_rec: dict[str, set[str]] = {}
        for by, rec in summary.traffic.recorded_by.items():
            if rec in stopped and not summary.sessions.over(by, look.pos):
                return True
            by_rec.setdefault(rec, set()).add(by.conn)
        return any(
            rec in stopped
            and conn not in by_rec.get(rec, ())
            and not (conn and summary.sessions.over(Holder(conn), look.pos))
            for rec, conn in summary.recorders.given
        )

    def _stopped(self, summary: Lifecycles, uptake: Uptake, look: Depth) -> bool:
        """Whether a consumer held nothing any more, seen or not. What was on its way to one that was cancelled stays
        its channel's until that ends.
        """
        if uptake.by.ch is None:
            cancel = summary.sessions.cancels.get(ConsumerKey(uptake.by, uptake.ctag))
            if cancel is not None and cancel.done is not None and cancel.done < look.pos:
                return True
        return self._over(summary, uptake.by, look, uptake.pos)

    def _over(self, summary: Lifecycles, by: Holder, look: Depth, since: int) -> bool:
        """Whether all that somebody held, seen or not, was back in its queue when that was looked into; he was there at
        position `since`, so that an earlier end of his connection was that of another one of its name.
        """
        if by.ch is None and look.event.lvl not in EXACT:
            return False  # it may be kept for a session or a name beyond its connection
        end = summary.sessions.ends.get(connection(by))
        if end is not None and end.pos < since and by not in summary.sessions.ends:
            return False
        if look.event.lvl in EXACT:
            return summary.sessions.sign_before(by, look.pos)
        return summary.sessions.over(by, look.pos)

    def _lost(
        self,
        summary: ConservationSummary,
        birth: Birth,
        lifecycles: list[list[Step]],
        m: str,
        drained: set[str],
    ) -> tuple[str, list[Step]] | None:
        """Why a confirmed message is lost, and its steps that show it; empty if it is not, None if that is open."""
        if m in summary.unplaced:
            return None
        tails = [_after_last(steps) for steps in lifecycles]
        settled = [s for tail in tails for s in tail if s.kind == SETTLED]
        if any(command(s.event) not in summary.voided for s in settled):
            return "", []
        if any(summary.voided[command(s.event)] == "info" for s in settled):
            return None
        q = _queue(birth)
        before = (s for steps in lifecycles for s in steps if s.kind == SETTLED)
        elsewhere = not _was_due(birth, summary.traffic.looks.get(q))
        elsewhere = elsewhere or _may_be_parked(summary.traffic, q, tails)
        elsewhere = elsewhere or self._may_be_parked_unasked(summary, q, m, tails)
        if q not in drained or elsewhere or not all(summary.refused(s) for s in before):
            return None  # one that was settled before may have been seen late
        sent = birth.sent.pos if birth.sent else -1
        since = [f for f in summary.traffic.faults if f.pos > sent]
        if not all(_declared(summary, q, "survives", f) for f in since):
            return None
        acquired = [tail[0] for tail in tails if tail and tail[0].kind == ACQUIRED]
        if self._swept_unseen(summary, birth):
            return None
        if not acquired:
            return f"{m} was confirmed for {q}, which was drained, but nobody ever got it", []
        last = max(acquired, key=lambda s: s.pos)
        if last.event.q != q or summary.settles_unseen(last.by):
            return None
        if any(s.final for s in summary.swept(last, summary.n)):
            return None
        look = summary.traffic.looks[q]
        released = [
            s
            for tail in tails
            for s in tail
            if s.kind == RELEASED and s.by == last.by and self._in_effect(summary, s, look)
        ]
        if not (released or self._over(summary, last.by, look, last.pos)):
            if not _none_held(look):
                return None
            return (
                f"{m} was given to {last.by}, which did not settle it; {q} was drained, and nobody held it",
                [last],
            )
        why = f"{m} was requeued to {q} by {last.by}, {q} was drained, but nobody got it again"
        return why, [last, *(_with_answers(summary, released[:1]) or self._ended(summary, last))]

    def _may_be_parked_unasked(
        self, summary: ConservationSummary, q: str, m: str, tails: Sequence[Sequence[Step]]
    ) -> bool:
        """Whether a message may have been tried as often as systems park it that declare nothing of that."""
        acquired = [s for tail in tails for s in tail if s.kind == ACQUIRED]
        traffic = summary.traffic
        if acquired and not {q, ""}.isdisjoint(traffic.unseen | traffic.unknown):
            return True  # how often it was tried unseen nobody knows
        tried = [s.event.attempt or 0 for s in acquired]
        return max((*tried, summary.again.get((q, m), 0) + 1)) >= LIMITS_FROM

    def _swept_unseen(self, summary: ConservationSummary, birth: Birth) -> bool:
        """Whether a command for all that its channel held may have ended a message that was on its way there."""
        begun = birth.sent.pos if birth.sent else -1
        pollers = summary.traffic.pollers
        return any(
            s.final and not s.one and (not s.through or by in pollers) and s.pos > begun
            for by, sweeps in summary.sweeps.items()
            for s in sweeps
        )

    def _ended(self, summary: Lifecycles, last: Step) -> list[Step]:
        """The confirmed end of a holder, after which what it held was back in its queue."""
        ends = (summary.sessions.ends.get(name) for name in (last.by, connection(last.by)))
        return [
            Step(end.pos if end.done is None else end.done, RELEASED, last.by, end.event)
            for end in ends
            if end is not None and end.event is not None
        ][:1]

    def _in_effect(self, summary: Lifecycles, released: Step, look: Depth) -> bool:
        """Whether a command had certainly taken effect when its queue was looked into."""
        if command(released.event) in summary.voided or released.pos > look.pos:
            return False
        if released.by.ch is None and released.event.lvl not in EXACT:
            answer = summary.confirmed.get(command(released.event))
            return answer is not None and answer.pos < look.pos
        answers = summary.sessions.answers_count(released.by, released.event.lvl)
        return not answers or released.pos < look.rest


def _with_answers(summary: Lifecycles, steps: Sequence[Step]) -> list[Step]:
    """Commands, each with the answer that it was given where there are no channels."""
    placed = ((step, summary.confirmed.get(command(step.event))) for step in steps)
    answers = [
        Step(answer.pos, step.kind, step.by, answer.event) for step, answer in placed if answer
    ]
    return [*steps, *answers]


def _too_late(summary: ConservationSummary, settled: Step, after: Step) -> bool:
    """Whether a worker without a session may have settled a message when that was somebody else's already: its lease
    had run out, and a settlement with an old receipt is answered well and does nothing (Amazon SQS, DeleteMessage), or
    settles what another one was given just before (Redis, XACK).
    So the message must have been asked for again after the answer, and been given to nobody unseen before. Workers
    that are named by their connections have what they were given until these end, unless another settlement was refused
    or a lease ran out.
    """
    event, again = settled.event, after.event
    if settled.by.ch is not None or event.lvl in EXACT or event.ev in ACQUIRES:
        return False
    if settled.by.conn and not (again.ev == "get" and (summary.traffic.refuses or summary.expired)):
        return False
    answer = summary.confirmed.get(command(event), PlacedEvent(settled.pos, event))
    if summary.traffic.unseen_polls.before(answer.pos, event.q, again.q, ""):
        return True
    if again.t_lo is None or answer.event.t is None:
        return after.pos < answer.pos or after.by != settled.by
    return again.t_lo < answer.event.t


def _stamped_before(sent: Event, given: Event) -> bool:
    """Whether a publish can have begun before a delivery, though it was recorded behind it.

    Their times may say so; at the same instant one recorder's order counts, and that of two says nothing. Above a
    client library a publish without phases and bounds may be written down when the call returns.
    """
    begun = sent.t if sent.t_lo is None else sent.t_lo
    until = given.t if given.t_hi is None else given.t_hi
    if sent.ph == "" and (sent.t_lo is None or until is None) and sent.lvl in ("", "api"):
        return True
    if begun is None or until is None:
        return False
    return begun < until or (begun == until and sent.rec != given.rec)


def _moved(placed: Mapping[Name, PlacedEvent], shift: int) -> dict[Name, PlacedEvent]:
    return {key: PlacedEvent(p.pos + shift, p.event) for key, p in placed.items()}


def _none_held(look: Depth) -> bool:
    """Whether it was seen that nobody held a message of the queue."""
    held = look.event.args.get("held")
    return isinstance(held, int) and held == 0


def _declared(summary: ConservationSummary, q: str, what: str, fault: PlacedEvent) -> bool:
    """Whether a queue declares that messages (`survives`) or settlements (`settled`) survive a fault."""
    declared = summary.traffic.declared.get(q)
    kinds = declared.event.args.get(what) if declared else None
    return isinstance(kinds, list) and fault.event.args.get("fault") in kinds


def _declare(traffic: Traffic, event: Event, pos: int) -> None:
    """Take in what a queue declares of its losses."""
    if "survives" in event.args or "settled" in event.args:
        traffic.declared[event.q] = PlacedEvent(pos, event)
    if any(a in event.args for a in DROPPING):
        traffic.leaky.add(event.q)
    if ATTEMPTS in event.args:
        most = event.args[ATTEMPTS]
        traffic.attempts[event.q] = most if isinstance(most, int) else 0


def _may_be_parked(traffic: Traffic, q: str, tails: Sequence[Sequence[Step]]) -> bool:
    """Whether a message may have been tried so often that its queue has parked it somewhere else."""
    most = traffic.attempts.get(q)
    if most is None:
        return False
    if not {q, ""}.isdisjoint(traffic.unseen | traffic.unknown | traffic.uptakes.keys()):
        return True  # it may have been tried unseen
    tried = [s.event.attempt for tail in tails for s in tail if s.kind == ACQUIRED]
    return any(attempt is None or attempt >= most for attempt in tried)


def _returned(summary: ConservationSummary, taken: Step, settled: Step) -> bool:
    """Whether a message may have left its holder otherwise, before it was settled."""
    key = taken.event.q, taken.event.m
    return (
        (taken.event.lvl not in EXACT and key in summary.expired)
        or any(not s.final for s in summary.swept(taken, settled.pos))
        or summary.swept_away(taken, settled.pos)
    )


def _own(suspect: Suspect) -> bool:
    """Whether one channel was given a message twice."""
    return suspect.before.by == suspect.after.by and suspect.before.by.ch is not None


def _count(polls: dict[Poll, int], poll: Poll, n: int) -> None:
    """Add to how many polls were not answered; what comes to none is dropped."""
    left = polls.pop(poll, 0) + n
    if left:
        polls[poll] = left


def _was_due(birth: Birth, look: Depth | None) -> bool:
    """Whether a message that was published with a delay was to be seen in its queue when that was looked into."""
    asked, sent = birth.sent, birth.confirmed
    delay = nanoseconds(asked.event.args.get("delay")) if asked is not None else 0
    if look is None or not delay:
        return not (asked and asked.event.dead)  # with a delay that nobody knows it may wait still
    there, now = None if sent is None else answered(sent.event), look.event.t
    return there is not None and now is not None and there + delay <= now


def _after_last(steps: list[Step]) -> list[Step]:
    """The end of a lifecycle: its last acquisition and what follows."""
    last = max((n for n, s in enumerate(steps) if s.kind == ACQUIRED), default=0)
    return steps[last:]


def _queue(birth: Birth) -> str:
    """The queue a message was published to, as either end of the publish names it."""
    placed = [p for p in (birth.sent, birth.confirmed) if p and p.event.q]
    return placed[0].event.q if placed else ""
