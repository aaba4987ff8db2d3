"""Properties that one channel's events decide on their own, read as a small automaton.

A chunk of a history does not know the state in which a channel enters it. So its summary keeps, for each channel, the
events up to the first one that fixes the state (the opening of the channel, or lost lines, after which the
automaton starts again from what is certain), and the state after them. Joining runs the right chunk's waiting
events from the left chunk's state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar, get_args

import msgspec

from seriatim_models.history.event import GAP, Event
from seriatim_models.properties.base import Finding, Property
from seriatim_models.properties.blackbox.lifecycle import LifecycleKey
from seriatim_models.properties.blackbox.naming import Holder, holder
from seriatim_models.properties.blackbox.sessions import CallKinds

S = TypeVar("S")

TrackKey = Holder
"""Whose state it is: a channel, or a whole connection."""
REST_AFTER = 2**15
"""Events that a property reads between two looks for channels of which none came meanwhile."""


class Suspicion(msgspec.Struct, array_like=True):
    """What looks like a violation."""

    why: str
    witness: list[Event]


class ExpiredLease(NamedTuple):
    """A message whose lease ran out, on which connection if that is known."""

    conn: str
    message: LifecycleKey


class CaseCounts(msgspec.Struct):
    """Counts, and of all violations the one with the fewest events, the earliest of these."""

    tested: int = 0
    untestable: int = 0
    violations: int = 0
    why: str = ""
    witness: list[Event] = []
    suspects: list[Suspicion] = []
    """Violations that something recorded elsewhere may explain; see `Prefetch.finish`."""
    expired: set[ExpiredLease] = set()
    """Messages whose lease ran out at an instant that is not known."""
    kinds: CallKinds = msgspec.field(default_factory=CallKinds)
    unbegun: set[str] = set()
    """Connections of which a settlement is recorded by its answer alone: they may have made others."""

    def report_violation(self, why: str, witness: list[Event]) -> None:
        """Count a violation, and keep it if its witness is the smallest so far."""
        self._add(1, why, witness)

    def count(self, tested: bool) -> None:
        """Count a case that is no violation: one that was tested, or one that is open."""
        self.tested += tested
        self.untestable += not tested

    def _add(self, n: int, why: str, witness: list[Event]) -> None:
        if n and (not self.violations or _rank(why, witness) < _rank(self.why, self.witness)):
            self.why, self.witness = why, witness
        self.violations += n

    def finding(self, id: str) -> Finding:
        """The finding that they come to."""
        violations = [(self.why, self.witness)] if self.violations else []
        return Finding.of(
            id,
            self.tested,
            violations,
            n_untestable=self.untestable,
            n_violations=self.violations,
        )

    def join(self, other: CaseCounts) -> None:
        """Add the counts of another part of the history."""
        self.tested += other.tested
        self.untestable += other.untestable
        self._add(other.violations, other.why, other.witness)
        self.suspects += other.suspects
        self.expired |= other.expired
        self.kinds.join(other.kinds)
        self.unbegun |= other.unbegun

    def freed(self, suspect: Suspicion) -> bool:
        """Whether what was given may be held no more: a lease ran out nobody knows when, or of some kind of call of its
        connection no beginnings are recorded.
        """
        unseen = self.unbegun | self.kinds.quiet
        return any(
            e.conn in unseen or ExpiredLease(conn, (e.q, e.m)) in self.expired
            for e in suspect.witness
            for conn in {e.conn, ""}
        )

    def settle_suspects(self, explained: Callable[[Suspicion], bool]) -> None:
        """Report the suspicions that nothing explains; each was counted as tested."""
        for suspect in self.suspects:
            if explained(suspect):
                self.tested -= 1
                self.untestable += 1
            else:
                self.report_violation(suspect.why, suspect.witness)


def _rank(why: str, witness: list[Event]) -> tuple[int, int, str]:
    return len(witness), witness[-1].i, why


class Track(msgspec.Struct, Generic[S]):
    """One channel in one chunk: events waiting for the state they start from, then the state, once it is known."""

    waiting: list[Event] = []
    state: S | None = None


class Tracks(msgspec.Struct, Generic[S]):
    """The summary of one chunk: a track for each channel, and what was counted."""

    tracks: dict[TrackKey, Track[S]] = {}
    tally: CaseCounts = msgspec.field(default_factory=CaseCounts)
    begun: bool = False
    """Nothing came before: a channel that is met for the first time is in the state of which nothing is known."""
    gap: bool = False
    """Lines were lost in the chunk: channels that it does not mention start again after it."""
    recent: set[TrackKey] = set()
    """Whose events came since the last look for channels at rest."""
    taken: int = 0
    """How many events came since then."""


class ChannelProperty(Property[Tracks[S]]):
    """Base: a subclass gives the state's start and what an event does to it."""

    scope = "connection"
    keeps = "the state of each channel"
    opens = "ch_open"
    """The event with which a state begins anew."""

    def key(self, event: Event) -> TrackKey:
        """Whose state an event belongs to."""
        return holder(event)

    def start(self) -> S:
        """The state of a channel of which nothing is known: one of the type that the summary holds."""
        state: S = get_args(self.summary_type)[0]()
        return state

    def start_after_gap(self) -> S:
        """The state of a channel after lost lines."""
        return self.start()

    def step(self, state: S, event: Event, by: TrackKey, tally: CaseCounts) -> None:
        """What one event of the channel does to its state and to the counts."""
        raise NotImplementedError

    def end(self, state: S, tally: CaseCounts) -> None:
        """Add what is decided only when the history is over. Leaves the state as it is."""

    def rest(self, state: S) -> None:
        """Make a state smaller of whose channel nothing came for long, without losing any of it: mostly it has ended,
        and memory must not grow with channels of the past.
        """

    def begin(self) -> Tracks[S]:
        return Tracks(begun=True)

    def map(self, events: Iterable[Event]) -> Tracks[S]:
        out: Tracks[S] = Tracks()
        for out.taken, event in enumerate(events, 1):
            if event.ev == GAP:
                out.gap = True
                for track in out.tracks.values():
                    self._begin_anew(track, self.start_after_gap(), out.tally)
                continue
            by = self.key(event)
            known = out.tracks.get(by)
            if known is None:
                known = out.tracks[by] = Track(state=self.start_after_gap() if out.gap else None)
            if event.ev == self.opens and event.ph in ("", "ok"):
                self._begin_anew(known, self.start(), out.tally)
            if known.state is None:
                known.waiting.append(event)
            else:
                self.step(known.state, event, by, out.tally)
        return out

    def combine(self, left: Tracks[S], right: Tracks[S]) -> Tracks[S]:
        left.tally.join(right.tally)
        gap_before = left.gap
        if right.gap:
            left.gap = True
            for by, track in left.tracks.items():
                if by not in right.tracks:
                    self._begin_anew(track, self.start_after_gap(), left.tally)
        for by, more in right.tracks.items():
            mine = left.tracks.get(by)
            if mine is None:
                # After a gap on the left, a channel that it does not mention starts from what is certain.
                mine = Track(state=self.start() if left.begun else None)
                if gap_before:
                    mine.state = self.start_after_gap()
                left.tracks[by] = mine
            if mine.state is None:
                mine.waiting += more.waiting
            else:
                for event in more.waiting:
                    self.step(mine.state, event, by, left.tally)
            if more.state is not None:
                self._begin_anew(mine, more.state, left.tally)
        self._rest(left, right.tracks, right.taken)
        return left

    def advance(self, summary: Tracks[S], events: Sequence[Event]) -> Tracks[S]:
        if not summary.begun or self.overrides(ChannelProperty, "map", "combine", "relevant"):
            return super().advance(summary, events)
        # Every channel has a state: its events are run through at once, as one chunk after the other would be.
        reads, opens, step, tally = self.reads, self.opens, self.step, summary.tally
        key = self.key if self.overrides(ChannelProperty, "key") else holder
        met: dict[TrackKey, Track[S]] = {}
        taken = 0
        for event in events:
            if event.ev not in reads:
                continue
            if event.ev == GAP:
                if self.may_miss(event):
                    self._lost(summary)
                continue
            taken += 1
            by = key(event)
            track = met.get(by)
            if track is None:
                track = met[by] = self._track(summary, by)
            if event.ev == opens and event.ph in ("", "ok"):
                self._begin_anew(track, self.start(), tally)
            assert track.state is not None
            step(track.state, event, by, tally)
        self._rest(summary, met, taken)
        return summary

    def _track(self, summary: Tracks[S], by: TrackKey) -> Track[S]:
        """The track of a channel, which begins now if it was not met before."""
        known = summary.tracks.get(by)
        if known is None:
            state = self.start_after_gap() if summary.gap else self.start()
            known = summary.tracks[by] = Track(state=state)
        return known

    def _lost(self, summary: Tracks[S]) -> None:
        """Lines were lost behind the events so far, of which every channel has its state."""
        summary.gap = True
        for track in summary.tracks.values():
            self._begin_anew(track, self.start_after_gap(), summary.tally)

    def _rest(self, left: Tracks[S], met: Iterable[TrackKey], taken: int) -> None:
        """Now and then, let the channels rest of which nothing came since the last time."""
        left.recent.update(met)
        left.taken += taken
        if left.taken < REST_AFTER:
            return
        for by, track in left.tracks.items():
            if by not in left.recent and track.state is not None:
                self.rest(track.state)
        left.recent, left.taken = set(), 0

    def _begin_anew(self, track: Track[S], state: S, tally: CaseCounts) -> None:
        if track.state is not None:
            self.end(track.state, tally)
        track.state = state

    def total(self, summary: Tracks[S]) -> CaseCounts:
        """The counts of the whole history."""
        tally = CaseCounts()
        tally.join(summary.tally)
        for by, track in summary.tracks.items():
            if track.waiting:
                state = self.start()
                for event in track.waiting:
                    self.step(state, event, by, tally)
                self.end(state, tally)
            if track.state is not None:
                self.end(track.state, tally)
        return tally

    def finish(self, summary: Tracks[S]) -> Finding:
        return self.total(summary).finding(self.id)
