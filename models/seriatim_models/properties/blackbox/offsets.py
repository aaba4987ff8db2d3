"""P15: a consumer of a log reads it in order, misses nothing, and does not get back what it has done with."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import msgspec

from seriatim_models.history.bounded import ForgetsOldest, forget_oldest
from seriatim_models.history.event import EXACT, GAP, UNKNOWN_GEN, Event
from seriatim_models.properties.base import CaseEvents, Finding, ProfileValue, undecided
from seriatim_models.properties.blackbox.aggregation import AggregationState, SequentialProperty
from seriatim_models.properties.blackbox.channels import CaseCounts, Suspicion
from seriatim_models.properties.blackbox.lifecycle import (
    ATTEMPTS,
    acquires,
    holders,
)
from seriatim_models.properties.blackbox.naming import (
    ENDS,
    NOBODY,
    ConsumerKey,
    Holder,
    connection,
    each_once,
    end_of,
    holder,
)
from seriatim_models.properties.blackbox.order import DIVIDED


class BegunAt(msgspec.Struct, array_like=True):
    """Where a member was seen to begin to read, and by what."""

    n: int
    event: Event


class OpenCommit(msgspec.Struct, array_like=True):
    """A commit that has begun and is not known to be over."""

    event: Event
    lowest: Event
    """The lowest of it and of those that were answered while it was under way: any of them may have been the last."""
    unknown: bool = False
    """Nobody knows its outcome: it may still take effect, until a later one of the same sender is answered."""


class ReaderState(msgspec.Struct, array_like=True):
    """One group or channel of consumers on one partition."""

    sessions: dict[Holder, Event] = {}
    """The latest delivery of each member's session; none after a seek or at the start of a session."""
    anew: dict[Holder, BegunAt] = {}
    """Where a member went elsewhere: what it reads next begins after that."""
    shared: dict[Holder, None] = {}
    """Members since whose latest delivery another one was given something: they may have lost the partition between."""
    committed: Event | None = None
    """The lowest of the commits that may be in force; none if perhaps none is."""
    grounds: list[Event] = []
    """By what that is known."""
    since: int = 0
    """Where that was known."""
    under_way: list[OpenCommit] = []
    asked: Event | None = None
    """The commit of the highest position that was asked for: the reader may go on from there."""
    sought: dict[Holder, Event] = {}
    """The latest seek of a member that has read nothing since, if it went where something is or comes next."""
    failed: bool = False
    """It gave something back since its latest delivery, so that going back is its own wish."""
    seeks: bool = False
    highest: int = -1
    """The highest position at which a member may go on by any commit, also one before a seek."""

    def commit(self, event: Event, n: int) -> None:
        """Take in a phase of a commit. The last that takes effect is in force, be it higher or lower."""
        if event.ph != "fail":
            self.asked = _further(self.asked, event)
            self.highest = max(self.highest, _next(event))
        own = next((c for c in self.under_way if _same_commit(c.event, event)), None)
        if event.ph == "invoke":
            self.under_way.append(OpenCommit(event, event))
            del self.under_way[:-OPEN_KEPT]
            if self.committed is not None:
                self._bound(_lower(self.committed, event), n, [*self.grounds[:1], event])
        elif event.ph == "info":
            if own is None:  # its beginning is not recorded
                self.under_way.append(own := OpenCommit(event, event))
                del self.under_way[:-OPEN_KEPT]
                if self.committed is not None:
                    self._bound(_lower(self.committed, event), n, [*self.grounds[:1], event])
            own.unknown = True
        elif own and event.ph == "fail":
            self.under_way.remove(own)
        elif event.ph in ("", "ok"):
            if own:
                at = self.under_way.index(own)
                before = self.under_way[:at]
                by = holder(event)
                passed = [c for c in before if c.unknown and holder(c.event) == by]
                self.under_way = [c for c in self.under_way if c is not own and c not in passed]
            lowest = own.lowest if own else event
            for each in self.under_way:
                each.lowest = _lower(each.lowest, event)
                lowest = _lower(lowest, each.event)
            self._bound(lowest, n, [event, lowest])

    def _bound(self, event: Event, n: int, grounds: list[Event]) -> None:
        if self.committed is None or self.committed.pos != event.pos:
            self.since, self.committed, self.grounds = n, event, grounds


class PassedOver(msgspec.Struct, array_like=True):
    """Positions that a reader left out, and of which nothing was known then: a publish may have been under way."""

    done: int
    """The last position before them."""
    before: Event
    event: Event
    grounds: list[Event]
    anybody: bool
    """Who read is not named."""


class PartitionState(msgspec.Struct, ForgetsOldest):
    """One partition: where messages are known to be, and how often a message may be tried."""

    bounded: ClassVar = ("publishes", "shown")

    positions: list[int] = []
    publishes: dict[int, Event] = {}
    """By position, the latest `PUBLISHES_KEPT` publishes: to show one that was left out."""
    readers: dict[ConsumerKey, ReaderState] = {}
    tally: CaseCounts = msgspec.field(default_factory=CaseCounts)
    shown: dict[int, str] = {}
    """Without a partition: by position, the message that was seen there, of the latest `POSITIONS_KEPT`."""
    several: bool = False
    """Two messages were seen at one position, or one was put before another: partitions are left out of the
    recording.
    """
    disordered: CaseCounts = msgspec.field(default_factory=CaseCounts)
    """Steps back, and positions left out; see `ONE_BY_ONE`."""
    passed: list[PassedOver] = []
    """The latest `PUBLISHES_KEPT`."""
    skipped: CaseCounts = msgspec.field(default_factory=CaseCounts)
    """Positions left out of which nothing is known, where no publish ever names one; see `UNPLACED`."""
    anybody: CaseCounts = msgspec.field(default_factory=CaseCounts)
    """What readers got of whom nothing is named; see `NAMELESS`."""
    nameless: dict[Holder, bool] = {}
    """Those that name no group, the latest that was given something last: they may be of one group, or of several.
    Whether each has moved the position from which its group reads on.
    """

    def alone(self, by: Holder) -> bool:
        """Whether nobody else who names no group was given something since this one was; it is given something now."""
        alone = not self.nameless or next(reversed(self.nameless)) == by
        self.nameless[by] = self.nameless.pop(by, False)
        return alone

    def moved_beside(self, by: Holder) -> bool:
        """Whether somebody else who names no group ever committed or sought."""
        return any(moved for other, moved in self.nameless.items() if other != by)

    def show(self, event: Event) -> None:
        """A message was seen at a position; it matters where no partitions are named."""
        if event.part is not None or event.pos is None or not event.m:
            return
        if self.shown.setdefault(event.pos, event.m) != event.m:
            self.several = True
        if len(self.shown) > POSITIONS_KEPT:
            forget_oldest(self.shown)


OPEN_KEPT = 64  # commits of a reader that are under way or of unknown outcome
VANISHING = (
    # https://kafka.apache.org/documentation/#topicconfigs
    "cleanup.policy", "retention.ms", "retention.bytes",
    # https://www.rabbitmq.com/docs/streams#retention
    "x-max-age", "x-max-length-bytes",
)  # fmt: skip
"""Arguments of a topic by which messages leave the log before everybody has read them."""


def _same_commit(begun: Event, event: Event) -> bool:
    """Whether two events are phases of one commit."""
    if holder(begun) != holder(event):
        return False
    return begun.op == event.op if event.op is not None else begun.pos == event.pos


def _further(known: Event | None, commit: Event) -> Event:
    """The commit of the higher position."""
    if known is None or (known.pos or 0) < (commit.pos or 0):
        return commit
    return known


def _lower(known: Event, commit: Event) -> Event:
    """The commit of the lower position."""
    return commit if (commit.pos or 0) < (known.pos or 0) else known


def _done(commit: Event) -> int:
    """The highest position that a commit certainly says is done with."""
    return (commit.pos or 0) - (commit.args.get("committed") != "last")


def _next(commit: Event) -> int:
    """The highest position at which a reader may go on after a commit."""
    return (commit.pos or 0) + (commit.args.get("committed") != "next")


def _within(topic: PartitionState, pos: int) -> bool:
    """Whether a seek there is certainly not beyond the end of the log, which a system may answer as it likes."""
    return pos == 0 or bool(topic.positions and topic.positions[-1] >= pos - 1)


def _done_before(seek: Event) -> int:
    """The highest position that a seek may go behind: its own, unless it is declared as the next to read."""
    return (seek.pos or 0) - (seek.args.get("committed") == "next")


def _meaning(commit: Event) -> str:
    return {"last": " as done", "next": " as the next to read"}.get(
        str(commit.args.get("committed")), ""
    )


def _is_of_group(event: Event) -> bool:
    """Whether who reads may be a member of a group that gives its partitions to whom it likes: not what has a channel,
    nor who reads what is not divided.
    """
    return event.part is not None and event.ch is None and event.lvl not in EXACT


def _may_be_in_force(reader: ReaderState) -> list[Event]:
    """The commits from one of which whoever begins to read goes on, as far as they are kept."""
    under_way = (c for each in reader.under_way for c in (each.event, each.lowest))
    return [c for c in (reader.committed, reader.asked, *under_way) if c is not None]


def reader_key(event: Event) -> ConsumerKey:
    """Who reads: the group or channel, or else the holder."""
    return ConsumerKey(NOBODY, event.ctag) if event.ctag else ConsumerKey(holder(event), "")


def member(event: Event) -> Holder:
    """Whose session it is: without channel and connection the tag is the group's, and `proc` says which member."""
    by = holder(event)
    return by._replace(name=event.proc) if event.proc and by == Holder("", name=event.ctag) else by


def _comes_again(event: Event) -> bool:
    """Whether a delivery says itself that its message was handed out before."""
    return (event.attempt or 0) > 1 or event.redelivered is True


def _skipped(topic: PartitionState, anybody: bool, why: str, witness: list[Event]) -> None:
    """Count a position that was left out, by somebody of whom nothing is named or not."""
    _suspect(topic.anybody if anybody else topic.disordered, why, each_once(witness))


def _suspect(counts: CaseCounts, why: str, witness: list[Event]) -> None:
    """Count a violation; what rests on a commit waits for whether a recorder may have missed a later one."""
    if any(e.ev == "commit" for e in witness):
        counts.suspects.append(Suspicion(why, witness))
    else:
        counts.report_violation(why, witness)


class LastLine(msgspec.Struct, array_like=True):
    """Until when a recorder wrote, for which groups, and whether it saw its clients end."""

    t: int | None = None
    over: bool = False
    groups: set[str] = set()

    def take(self, event: Event) -> None:
        """Take in a line of it."""
        self.t = event.t if self.t is None or event.t is None else max(self.t, event.t)
        self.over = event.ev in ENDS or event.ev == "cancel"
        if event.ctag:
            self.groups.add(event.ctag)


class Logs(msgspec.Struct):
    """The aggregation state of P15."""

    n: int = 0
    topics: dict[tuple[str, int | None], PartitionState] = {}
    begun: dict[tuple[str, int | None, ConsumerKey, Holder], BegunAt] = {}
    """Where a member began to read a partition, or (none) the whole topic."""
    ended: dict[Holder, BegunAt] = {}
    """Where channels and connections ended, or channels began: what is read on them next begins after that."""
    members: dict[tuple[str, str], dict[Holder, None]] = {}
    """Who was ever seen to read a topic for a group; those that name none may all be of one."""
    vanishing: list[str] = []
    """Topics from which messages go before all have read them."""
    declared: dict[str, None] = {}
    lost: bool = False
    """Lines were lost, and maybe the declaration of a topic among them."""
    unnamed: dict[tuple[str, Holder], int] = {}
    """How often members that only their group names began to read a topic without an end: they may be several."""
    deleted: list[PartitionState] = []
    """Of topics that are no more, the counts; see `PartitionState.disordered`."""
    acked: dict[str, None] = {}
    """Topics of which messages are acknowledged; without a name, of those whose queue is not recorded."""
    writers: dict[str, LastLine] = {}
    """By name the recorders of a run."""
    moved: dict[str, None] = {}
    """Topics in which a position is committed or sought."""
    limited: dict[str, Event] = {}
    """By topic, what says how often a message of it is tried (`max_attempts`)."""

    def may_have_moved(self, suspect: Suspicion) -> bool:
        """Whether a recorder of the group stopped before what looks wrong, so that later commits may be unrecorded."""
        given = [e for e in suspect.witness if acquires(e)][-1]
        return any(
            rec != given.rec
            and not last.over
            and given.ctag in last.groups
            and (given.t is None or last.t is None or last.t <= given.t)
            for rec, last in self.writers.items()
        )

    def one_by_one(self, q: str) -> bool:
        """Whether a topic's messages are acknowledged one by one, and no position is ever stored."""
        return not self.acked.keys().isdisjoint((q, "")) and q not in self.moved


def _vanishes(state: Logs, q: str) -> bool:
    """Whether messages of a topic may go before all have read them."""
    return q in state.vanishing or (state.lost and q not in state.declared)


POSITIONS_KEPT = (
    65_536  # positions of a partition; whoever lags further is not tested for gaps there
)


ONE_BY_ONE = (
    "but its messages are acknowledged one by one, so that each may be anybody's, and come again if that is late: "
    "record `attempt` and who reads (`ctag` and `proc`), or `commit` if positions are stored"
)
UNPLACED = "but no publish says at which position it is, and logs have holes: record `pos` of what is published"
NAMELESS = (
    "but whoever reads is not named, and may be several: record who (`ctag`, and `proc` or `conn`)"
)


PUBLISHES_KEPT = (
    1024  # publishes of a partition; a position is mostly left out soon after it was written
)


class LogReader(SequentialProperty[Logs]):
    """P15. A case is a delivery with a position, to a reader (`ctag`: the group or channel; else the holder).

    A `commit` means what ``args={"committed": ...}`` says, or the header for all of a recording
    (``"params": {"committed": ...}``): ``last`` is the last position that the reader is done with, ``next`` the next
    that it reads (Kafka). Where neither is declared only what both meanings forbid is a violation.

    The commit that takes effect last is in force. It binds who certainly began to read after it was known: seen by a
    `consume`, a `seek`, the beginning of its channel or the end of the session before. A session reads on from where
    it is. The position of a seek means what that of a commit does.

    Readers that name no group may be of one: what one of them does not get, another one may have got since. Without
    partitions a topic is one log, unless two messages have one position there: then nothing is known of it.

    Violations: another message than the one that was confirmed for a position, read or confirmed; a session that
    begins with a position that was committed before; what is read after a seek, if it is before the position that
    the seek named, or leaves out one from there on; a step back within a session, if nothing was released; a
    position left out, of which a publish is known, also if that returns later; a session that begins behind the
    commit with such a position left out; more attempts than the `declare` or `consume` of its topic allows
    (``args={"max_attempts": n}``). A position left out of which nothing is known is untestable: logs have holes
    (markers of transactions); then the whole is open if no publish of the partition names a position. So is one of a
    topic declared with compaction or retention. Where partitions have several members and no `consume` or `cancel`
    names them, a member may have lost its own unseen.
    """

    id = "P15"
    sentence = (
        "A reader of a log gets every position in order, none again that it has committed, "
        "and each a bounded number of times."
    )
    source = (
        "Building a queue, part 4; https://kafka.apache.org/documentation/#semantics (position, commit); "
        "https://kafka.apache.org/documentation/#intro_consumers (order within a partition)"
    )
    rests_on = ""
    case = "a reader that is given one position of a partition after another"
    scope = "queue"
    reads = frozenset(
        {
            "publish",
            "deliver",
            "get",
            "commit",
            "seek",
            "ack",
            "nack",
            "reject",
            "declare",
            "consume",
        }
        | {"ch_open", "ch_close", "conn_close", "conn_drop", "cancel", "delete", GAP}
    )
    summary_type = AggregationState[Logs]
    keeps = (
        "each reader's last position and commit; the latest 65,536 known positions of a partition"
    )
    time = "O(n log n)"
    case_events = CaseEvents(reads, lambda e: e.pos is not None, ("pos",))

    options = frozenset({"committed"})

    def __init__(self, committed: str | None = None) -> None:
        """`committed`: what a commit means of which the recording does not say it."""
        self.committed = committed

    @classmethod
    def from_options(cls, options: Mapping[str, ProfileValue]) -> LogReader:
        committed = options.get("committed")
        if committed in ("last", "next", None):
            return cls(committed=None if committed is None else str(committed))
        raise ValueError(f"committed: {committed!r} is neither 'last' nor 'next'")

    def feed(self, state: Logs, events: Iterable[Event]) -> None:
        for event in events:
            state.n += 1
            if event.rec:
                state.writers.setdefault(event.rec, LastLine()).take(event)
            if event.ev == GAP or event.ev in ENDS:
                self._end(state, event)
            elif event.ev == "ch_open":
                if event.ph in ("", "invoke"):
                    state.ended[member(event)] = BegunAt(state.n, event)
            elif event.q:
                self._take(state, event)
            elif event.ev == "ack":
                state.acked[""] = None

    def _take(self, state: Logs, event: Event) -> None:
        """Take in an event of a topic."""
        of = event.q, event.part
        topic = state.topics.get(of) or state.topics.setdefault(of, PartitionState())
        says = event.ev in ("declare", "consume") and event.ph != "fail"
        if says and isinstance(event.args.get(ATTEMPTS), int):
            state.limited[event.q] = event
        match event.ev:
            case "ack":
                state.acked[event.q] = None
            case "declare":
                state.declared[event.q] = None
                if any(a in event.args for a in VANISHING):
                    state.vanishing.append(event.q)
            case "consume" | "cancel":
                self._membership(state, event)
            case "delete":
                if event.ph != "fail":  # one of that name that comes after it is another one
                    state.limited.pop(event.q, None)
                    for key in [key for key in state.topics if key[0] == event.q]:
                        ended = state.topics.pop(key)
                        counts = self._counts(state, event.q, ended)
                        state.deleted.append(counts)
            case "publish":
                if event.pos is not None and event.ph in ("", "ok"):
                    self._confirmed(state, topic, event, event.pos)
            case _:
                state.members.setdefault((event.q, event.ctag), {})[member(event)] = None
                name = reader_key(event)
                reader = topic.readers.get(name) or topic.readers.setdefault(name, ReaderState())
                self._read(state, topic, reader, event)

    def _confirmed(self, state: Logs, topic: PartitionState, event: Event, pos: int) -> None:
        """Take in where a message is; a position is that of one message."""
        topic.show(event)
        known = topic.publishes.get(pos)
        if known is not None and known.m != event.m and not state.lost:
            topic.tally.tested += 1
            why = (
                f"{event.m} was confirmed at position {pos} (event {event.i}), which is that of "
                f"{known.m} (event {known.i})"
            )
            topic.tally.report_violation(why, [known, event])
        if event.lvl in EXACT and topic.positions and pos < topic.positions[-1]:
            topic.several = topic.several or event.part is None
        self._was_passed(topic, event, pos)
        insort(topic.positions, pos)
        del topic.positions[:-POSITIONS_KEPT]
        topic.publishes[pos] = event
        if len(topic.publishes) > PUBLISHES_KEPT:
            forget_oldest(topic.publishes)

    def _was_passed(self, topic: PartitionState, event: Event, pos: int) -> None:
        """A publish is answered: who was given what comes behind it has left it out, though it had not returned."""
        for over in topic.passed:
            assert over.event.pos is not None
            if not over.done < pos < over.event.pos:
                continue
            topic.passed = [x for x in topic.passed if x is not over]
            tally = topic.anybody if over.anybody else topic.tally
            tally.untestable -= 1
            tally.tested += 1
            who = over.event.ctag or member(over.event)
            why = (
                f"{who} went from position {over.before.pos} (event {over.before.i}) to {over.event.pos} at event "
                f"{over.event.i} and left out {pos}, where {event.m} is (event {event.i})"
            )
            _skipped(topic, over.anybody, why, [over.before, *over.grounds, over.event, event])

    def _membership(self, state: Logs, event: Event) -> None:
        """A member begins or ends to read a partition, or those of a whole topic."""
        by, name = member(event), reader_key(event)
        if event.part is None and event.ph in ("", "ok") and by == Holder("", name=event.ctag):
            began = state.unnamed.get((event.q, by), 0)
            state.unnamed[event.q, by] = began + 1 if event.ev == "consume" else max(began - 1, 0)
        if event.ev == "consume" and event.ph != "fail":
            state.begun[event.q, event.part, name, by] = BegunAt(state.n, event)
            state.members.setdefault((event.q, event.ctag), {})[by] = None
        for (q, part), topic in state.topics.items():
            reader = topic.readers.get(name)
            if reader and q == event.q and event.part in (None, part):
                reader.sessions.pop(by, None)
                reader.sought.pop(by, None)

    def _end(self, state: Logs, event: Event) -> None:
        """Lines were lost, or sessions end: whatever their holders read next begins after that."""
        state.lost = state.lost or event.ev == GAP
        if event.ev != GAP:
            state.ended[end_of(event)] = BegunAt(state.n, event)
        for topic in state.topics.values():
            if event.ev == GAP:  # what is published now may have a position that was another's
                topic.passed.clear()
            for reader in topic.readers.values():
                if event.ev == GAP:
                    reader.sessions.clear()
                    reader.sought.clear()
                    reader.committed = reader.asked = None
                    reader.under_way.clear()
                    reader.seeks = True
                    continue
                for by in holders(event, reader.sessions):
                    del reader.sessions[by]
                for by in holders(event, reader.sought):
                    del reader.sought[by]

    def _read(self, state: Logs, topic: PartitionState, reader: ReaderState, event: Event) -> None:
        if event.ev in ("commit", "seek"):
            state.moved[event.q] = None
            if not event.ctag:
                topic.nameless[member(event)] = True
        if event.ev == "commit":
            if event.pos is None:
                return
            reader.commit(self._declared(event), state.n)
        elif event.ev == "seek":
            # Inside the broker it is seen when it arrives: it may have been sent before its member knew that it was
            # assigned the partition anew, unless it was given something of it since.
            knew = event.lvl not in EXACT or member(event) in reader.sessions
            knew = (
                knew or (event.q, event.part, reader_key(event), member(event)) not in state.begun
            )
            reader.anew |= dict.fromkeys((member(event), *reader.sessions), BegunAt(state.n, event))
            reader.sessions.clear()
            reader.sought.clear()
            done = knew and event.ph in ("", "ok")
            if done and event.pos is not None and _within(topic, event.pos):
                reader.sought[member(event)] = self._declared(event)
            reader.committed, reader.asked, reader.seeks = None, None, True
        elif event.ev in ("nack", "reject"):
            state.acked[event.q] = None
            reader.failed = True
        elif event.pos is not None and acquires(event):
            if event.gen != UNKNOWN_GEN:
                self._deliver(state, topic, reader, event)
            elif not self._is_another(topic, event.pos, event):
                topic.tally.untestable += 1  # in whose session it is nobody knows

    def _declared(self, event: Event) -> Event:
        """A commit or seek with the meaning of its position, where the profile says it and the event does not."""
        if self.committed is None or "committed" in event.args:
            return event
        args = {**event.args, "committed": self.committed}
        return msgspec.structs.replace(event, args=args)

    def _deliver(
        self, state: Logs, topic: PartitionState, reader: ReaderState, event: Event
    ) -> None:
        by, pos, committed, asked = member(event), event.pos, reader.committed, reader.asked
        assert pos is not None
        tally = topic.anybody if by == NOBODY else topic.tally
        sought = reader.sought.pop(by, None) if self._kept(state, event) else None
        last = reader.sessions.get(by)
        alone = by not in reader.shared
        others_moved = False
        if not event.ctag or state.unnamed.get((event.q, by), 0) > 1:
            alone = not event.ctag and topic.alone(by)
            others_moved = bool(event.ctag) or topic.moved_beside(by)
            sought = sought if alone else None
        reader.shared.pop(by, None)
        reader.shared.update((other, None) for other in reader.sessions if other != by)
        # What says itself that it comes again is no step back, and its reader goes on from where it was.
        again = _comes_again(event) and last is not None and pos < (last.pos or 0)
        reader.sessions[by] = last if again and last is not None else event
        failed, reader.failed = reader.failed, False
        seeks, reader.seeks = reader.seeks, False
        who = event.ctag or by
        if self._is_another(topic, pos, event) or self._tried_too_often(state, topic, event):
            return
        # A commit binds whoever begins to read after it: whoever reads on does so from where it is.
        began = self._began(state, reader, event)
        bound = committed is not None and began is not None and began.n > reader.since
        bound = bound and not others_moved
        grounds = [*reader.grounds, began.event] if bound and began is not None else []
        if bound and committed is not None and pos <= _done(committed):
            tally.tested += 1
            why = (
                f"{who} was given position {pos} at event {event.i}, although it had committed {committed.pos}"
                f"{_meaning(committed)} at event {committed.i}"
            )
            _suspect(tally, why, each_once([*grounds, event]))
        elif again or self._is_open(state, topic, reader, last, event):
            tally.untestable += 1
        elif (
            last is not None
            and last.pos is not None
            and (pos == last.pos + 1 or (alone and self._kept(state, event)))
        ):
            shown = self._not_resumed(state, topic, reader, last.pos, event)
            self._after(tally, topic, last, last.pos, event, failed, shown)
        elif last is None and sought is not None and sought.pos is not None:
            self._after_seek(tally, state, topic, reader, sought, event, failed)
        elif (
            last is None
            and committed is not None
            and asked is not None
            and bound
            and not seeks
            and pos >= _next(asked)
        ):
            self._after(tally, topic, asked, _next(asked) - 1, event, failed, grounds)
        else:
            tally.untestable += 1

    def _is_another(self, topic: PartitionState, pos: int, event: Event) -> bool:
        """Whether another message was confirmed for the position of a delivery; then it is counted as a violation."""
        topic.show(event)
        there = topic.publishes.get(pos)
        if there is None or not event.m or there.m == event.m:
            return False
        topic.tally.tested += 1
        who = event.ctag or member(event)
        why = f"{who} was given {event.m} at position {event.pos} (event {event.i}), which is that of {there.m}"
        topic.tally.report_violation(why, [there, event])
        return True

    def _tried_too_often(self, state: Logs, topic: PartitionState, event: Event) -> bool:
        """Whether a delivery is one attempt too many; then it is counted as a violation."""
        declared = state.limited.get(event.q)
        most = declared.args[ATTEMPTS] if declared is not None else None
        if declared is None or not isinstance(most, int) or (event.attempt or 0) <= most:
            return False
        topic.tally.tested += 1
        who = event.ctag or member(event)
        why = (
            f"{who} was given position {event.pos} at event {event.i} in attempt {event.attempt}; "
            f"allowed are {most}"
        )
        topic.tally.report_violation(why, each_once([declared, event]))
        return True

    def _began(self, state: Logs, reader: ReaderState, event: Event) -> BegunAt | None:
        """Where a member was last seen to begin to read a partition."""
        name, by = reader_key(event), member(event)
        known = [state.begun.get((event.q, p, name, by)) for p in (event.part, None)]
        known += [reader.anew.get(by), state.ended.get(by), state.ended.get(connection(by))]
        return max(
            (b for b in known if b is not None),
            key=lambda b: b.n,
            default=None,
        )

    def _kept(self, state: Logs, event: Event) -> bool:
        """Whether a member certainly had its partition all the while: its assignments are recorded, or it is the only
        member, or nothing is divided.
        """
        name, by = reader_key(event), member(event)
        members = state.members.get((event.q, event.ctag), {})
        return (
            event.part is None
            or not members.keys() - {by}
            or (event.q, event.part, name, by) in state.begun
        )

    def _is_open(
        self,
        state: Logs,
        topic: PartitionState,
        reader: ReaderState,
        last: Event | None,
        event: Event,
    ) -> bool:
        """Whether what a reader is given after its `last` may be right, as nobody knows what is left of its topic, or
        whether it was assigned its partition anew.
        """
        if last is None or last.pos is None or event.pos is None:
            return _vanishes(state, event.q)
        return (event.pos > last.pos and _vanishes(state, event.q)) or self._may_resume(
            state, topic, reader, last.pos, event
        )

    def _after_seek(
        self,
        tally: CaseCounts,
        state: Logs,
        topic: PartitionState,
        reader: ReaderState,
        sought: Event,
        event: Event,
        failed: bool,
    ) -> None:
        """Judge the first delivery after a seek."""
        assert event.pos is not None
        assert sought.pos is not None
        done = _done_before(sought) if event.pos > sought.pos else sought.pos - 1
        if self._may_resume(state, topic, reader, done, event):
            tally.untestable += 1
        else:
            self._after(tally, topic, sought, done, event, failed)

    def _may_resume(
        self, state: Logs, topic: PartitionState, reader: ReaderState, last: int, event: Event
    ) -> bool:
        """Whether a member that goes elsewhere than on from `last` may have lost its partition and been assigned it
        anew, of which nothing is recorded: a group does so with a member that it has not heard of for a while, and that
        reads on from where the group had committed, or from the beginning if it had not.
        """
        pos = event.pos
        if pos is None or pos == last + 1 or not _is_of_group(event):
            return False
        if (event.q, event.part, reader_key(event), member(event)) in state.begun:
            return False  # assignments are recorded
        if pos > last:
            starts = {reader.highest} if reader.highest > last else set()
        else:
            commits = _may_be_in_force(reader)
            starts = {start for c in commits for start in (_done_before(c) + 1, _next(c))}
            if reader.committed is None:
                starts |= {0, max(reader.highest, 0)}
        if not starts:
            return False
        if _vanishes(state, event.q):  # what is between may be gone
            return min(starts) <= pos
        known = bisect_left(topic.positions, pos)
        return any(
            bisect_left(topic.positions, s) >= known for s in starts if s <= pos or pos > last
        )

    def _not_resumed(
        self, state: Logs, topic: PartitionState, reader: ReaderState, last: int, event: Event
    ) -> list[Event]:
        """By what it is known that a step back is none of those: the assignment, or the commits and what is before."""
        if event.pos is None or event.pos > last or not _is_of_group(event):
            return []
        begun = state.begun.get((event.q, event.part, reader_key(event), member(event)))
        if begun is not None:
            return [begun.event]
        before = topic.positions[bisect_left(topic.positions, event.pos) - 1 :][:1]
        published = [topic.publishes[at] for at in before if at in topic.publishes]
        return [*published, *reader.grounds, *_may_be_in_force(reader)]

    def _after(
        self,
        tally: CaseCounts,
        topic: PartitionState,
        before: Event,
        done: int,
        event: Event,
        failed: bool,
        grounds: Sequence[Event] = (),
    ) -> None:
        """Judge a delivery by what was `done` before it, the position of a delivery or of a commit (see `grounds`)."""
        assert event.pos is not None
        who = event.ctag or member(event)
        if before.ev == "seek" and event.pos <= done:
            tally.tested += 1
            why = (
                f"{who} was moved to position {before.pos} at event {before.i}, and was given {event.pos}, "
                f"which is before it, at event {event.i}"
            )
            behind = topic.positions[bisect_right(topic.positions, done - 1) :][:1]
            shown = [topic.publishes[pos] for pos in behind if pos in topic.publishes]
            tally.report_violation(why, [*shown, before, event])
            return
        if event.pos <= done:
            again = event.pos == done and (event.attempt or 0) > (before.attempt or 0)
            tally.tested += 1
            if not failed and not again:
                why = f"{who} went back from position {done} (event {before.i}) to {event.pos} at event {event.i}"
                disordered = tally if tally is topic.anybody else topic.disordered
                disordered.report_violation(why, each_once([*grounds, before, event]))
            return
        between = event.pos - done - 1
        at = bisect_right(topic.positions, done)
        missed = topic.positions[at] if at < len(topic.positions) else event.pos
        if missed < event.pos:
            tally.tested += 1
            why = (
                f"{who} went from position {before.pos} (event {before.i}) to {event.pos} at event {event.i} and left "
                f"out {missed}"
            )
            left_out = [topic.publishes[missed]] if missed in topic.publishes else []
            _skipped(topic, tally is topic.anybody, why, [*left_out, before, *grounds, event])
        elif between:
            tally.untestable += 1
            why = f"{who} went from position {before.pos} (event {before.i}) to {event.pos} at event {event.i}"
            topic.skipped.report_violation(why, each_once([before, *grounds, event]))
            nameless = tally is topic.anybody
            topic.passed.append(PassedOver(done, before, event, list(grounds), nameless))
            del topic.passed[:-PUBLISHES_KEPT]
        else:
            tally.tested += 1

    def _counts(self, state: Logs, q: str, topic: PartitionState) -> PartitionState:
        """The counts of a partition, with what is out of order among them unless that may be right."""
        if not state.one_by_one(q):
            topic.tally.join(topic.disordered)
            topic.disordered = CaseCounts()
        return PartitionState(
            tally=topic.tally,
            disordered=topic.disordered,
            skipped=CaseCounts() if topic.positions else topic.skipped,
            anybody=topic.anybody,
            several=topic.several,
        )

    def close(self, state: Logs) -> Finding:
        tally, divided, disordered, anybody, skipped = (CaseCounts() for _ in range(5))
        ended = [self._counts(state, q, topic) for (q, _), topic in state.topics.items()]
        for topic in (*ended, *state.deleted):
            (divided if topic.several else tally).join(topic.tally)
            disordered.join(topic.disordered)
            anybody.join(topic.anybody)
            skipped.join(topic.skipped)
        for counts in (tally, divided, disordered, anybody, skipped):
            counts.settle_suspects(state.may_have_moved)
        for open_ in (divided, anybody):
            tally.untestable += open_.tested + open_.untestable
        found = tally.finding(self.id)
        for open_, decides in (
            (divided, DIVIDED),
            (disordered, ONE_BY_ONE),
            (anybody, NAMELESS),
            (skipped, UNPLACED),
        ):
            if open_.violations and not tally.violations:
                return undecided(found, open_.why, decides)
        return found
