"""A recorded history to step through: who had which message when, and which events show a violation.

The page is the one of the counterexamples (`stepper.py`). Its lanes are those who acted, its steps are recorded events,
its state is what the record says of each message and consumer, and above it stands a bar for each time that somebody
had a message. Of a long recording only a part is shown: the events that show a violation, and all that happened to
their messages.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from zlib import crc32

from seriatim_models.history.event import GAP, SETTLES, Event, began
from seriatim_models.properties.base import AnyProperty, Finding, Verdict
from seriatim_models.properties.blackbox.lifecycle import acquires
from seriatim_models.properties.blackbox.naming import (
    Holder,
    ends,
    holder,
)
from seriatim_models.properties.causes import last_step
from seriatim_models.report.reconstruct import Reconstruction, Section, State
from seriatim_models.report.stepper import broken_property
from seriatim_models.report.story import MessageBar, StepRow, Story

EVENTS_MAX = 300
"""More are not put on a page: nobody steps through more, and it stays small."""
NEAR_MAX = 60
"""So many of them are other events of the clients in the violation."""
LINES_MAX = 40
"""So many messages have a line with bars."""

NANOSECONDS_PER_MILLISECOND = 1e6
ENDS = frozenset({"ch_close", "conn_close", "conn_drop"})


def history_story(
    run: str,
    events: Sequence[Event],
    findings: Iterable[Finding] = (),
    properties: Mapping[str, AnyProperty] | None = None,
    command: str = "",
) -> Story:
    """The story of one run: `events` are completed and in the run's order, `command` judges them again."""
    violations = [f for f in findings if f.verdict is Verdict.VIOLATED]
    marked = {(e.rec, e.i) for f in violations for e in f.witness}
    shown = _excerpt(events, marked)
    states, bars = (
        _white_box_states(events, shown)
        if any(e.lvl == "model" for e in events)
        else _client_states(events, shown, marked)
    )
    lanes = list(dict.fromkeys(actor(events[at]) for at in shown))
    unique: dict[State, int] = {}
    indexes = [unique.setdefault(state, len(unique)) for state in states]
    first = next((e.t for e in events if e.t is not None), 0)
    rows = [
        StepRow(
            n=n,
            lane=lanes.index(actor(events[at])),
            op=_event_text(events[at]),
            result=_event_detail(events[at]),
            preempts=False,
            records=[_event_time(events[at], first)],
            state=indexes[n],
            witness=(events[at].rec, events[at].i) in marked,
        )
        for n, at in enumerate(shown, 1)
    ]
    last = {(e.rec, e.i) for f in violations if (e := last_step(f)) is not None}
    bad = max(
        (n for n, at in enumerate(shown, 1) if (events[at].rec, events[at].i) in last),
        default=len(rows) if violations else 0,
    )
    return Story(
        id=story_id(run or "run"),
        title=run or "history",
        what=[],
        broken=[broken_property(f, properties or {}) for f in violations],
        end="recorded",
        left_out=f"{len(events) - len(shown):,} of {len(events):,} events are not shown"
        if len(shown) < len(events)
        else "",
        replay=command,
        threads=lanes,
        steps=rows,
        states=list(unique),
        initial=indexes[0],
        good=max(bad - 1, 0),
        bad=bad,
        arrows=[],
        bars=bars,
    )


def story_id(run: str) -> str:
    """The id of a run's story, in which only letters, digits and a few signs stand; no two runs have the same."""
    plain = re.sub(r"[^\w-]+", ".", run)[:60]
    return f"history-{plain}" + (
        f"-{crc32(run.encode('utf-8', 'surrogatepass')):08x}" if plain != run else ""
    )


def actor(event: Event) -> str:
    """The lane in which an event stands: a channel or consumer, a connection, or the worker that was asked."""
    if event.lvl == "model":
        return event.proc or "set-up"
    if event.ch is not None:
        again = event.gen is not None and event.gen > 1  # a number that was used before
        return str(holder(event)) if again else f"{event.conn}/{event.ch}"
    return event.conn or event.ctag or event.proc or event.ev


def _messages(event: Event) -> Iterator[str]:
    if event.m:
        yield event.m
    yield from event.ms or ()


def _excerpt(events: Sequence[Event], marked: set[tuple[str, int]]) -> list[int]:
    """The places of the events that go on the page."""
    if len(events) <= EVENTS_MAX:
        return list(range(len(events)))
    evidence = [n for n, e in enumerate(events) if (e.rec, e.i) in marked]
    if not evidence:
        return list(range(EVENTS_MAX))
    messages = {m for n in evidence for m in _messages(events[n])}
    about = [n for n, e in enumerate(events) if messages.intersection(_messages(e))]
    first, last = min(about + evidence), max(about + evidence)
    actors = {actor(events[n]) for n in evidence}
    actors |= {events[n].conn for n in evidence if events[n].ch is not None}
    near = [n for n in range(first, last) if actor(events[n]) in actors or events[n].ev == GAP]
    near.sort(key=lambda n: min(abs(n - e) for e in evidence))
    chosen = set(evidence)
    for places, room in ((about, EVENTS_MAX), (near, NEAR_MAX)):
        chosen.update(places[: min(room, EVENTS_MAX - len(chosen))])
    return sorted(chosen)


# --------------------------------------------------------------------------------------------------
# What clients saw
# --------------------------------------------------------------------------------------------------


class _Held(NamedTuple):
    by: str
    holder: Holder
    since: int
    violating: bool


class _MessageTracker:
    """The state after each event, as clients saw it: where each message is, and what each consumer holds."""

    def __init__(self) -> None:
        self.state: dict[str, str] = {}
        self.held: dict[str, list[_Held]] = {}
        self.ready: dict[str, int] = {}
        self.deliveries: dict[str, int] = {}
        self.prefetch: dict[str, int] = {}
        self.bars: list[tuple[str, str, int, int, str, bool]] = []

    def see(self, at: int, e: Event, violating: bool) -> None:
        """Take in the event at that place."""
        if e.ev == "publish" and e.ph != "fail" and e.m not in self.state:
            self.state[e.m] = "published"
            self.ready[e.m] = at
        elif acquires(e):
            self._deliver(at, e, violating)
        elif e.ev in SETTLES and began(e):
            for m in e.ms or ():
                self._settle(at, m, actor(e), e.ev, e.ev != "ack" and e.requeue is not False)
        elif e.ev == "expire" and e.m:
            for held in list(self.held.get(e.m, ())):
                self._settle(at, e.m, held.by, "expired", bool(e.requeue))
        elif e.ev in ENDS or e.ev == "recover":
            for m, holders in list(self.held.items()):
                for held in list(holders):
                    if ends(e, held.holder) if e.ev in ENDS else held.by == actor(e):
                        self._settle(at, m, held.by, e.ev, True)

    def _deliver(self, at: int, e: Event, violating: bool) -> None:
        by = actor(e)
        since = self.ready.pop(e.m, None)
        if since is not None:
            self.bars.append((e.m, "", since, at, "in the queue", False))
        self.deliveries[e.m] = self.deliveries.get(e.m, 0) + 1
        if e.prefetch:
            self.prefetch[by] = e.prefetch
        if e.autoack:
            self.state[e.m] = f"delivered to {by}, which need not settle"
            self.bars.append((e.m, by, at, at + 1, "auto-ack", violating))
            return
        self.held.setdefault(e.m, []).append(_Held(by, holder(e), at, violating))
        self.state[e.m] = f"with {' and '.join(h.by for h in self.held[e.m])}"

    def _settle(self, at: int, m: str, by: str, how: str, requeued: bool) -> None:
        holders = self.held.get(m, [])
        for held in [h for h in holders if h.by == by]:
            holders.remove(held)
            self.bars.append((m, by, held.since, at, how, held.violating))
        if holders:
            self.state[m] = f"with {' and '.join(h.by for h in holders)}"
        else:
            self.held.pop(m, None)
            self.state[m] = f"requeued by {by} ({how})" if requeued else f"settled by {by} ({how})"
            if requeued:
                self.ready[m] = at

    def finish(self, at: int) -> None:
        """End what is open: `at` is one beyond the last event."""
        for m, since in self.ready.items():
            self.bars.append((m, "", since, at, "in the queue to the end", False))
        for m, holders in self.held.items():
            for held in holders:
                self.bars.append((m, held.by, held.since, at, "to the end", held.violating))

    def tables(self, messages: Sequence[str]) -> State:
        """The state now, of these messages and all consumers."""
        shown = [m for m in messages if m in self.state]
        having: dict[str, list[str]] = {}
        for m, holders in self.held.items():
            for held in holders:
                having.setdefault(held.by, []).append(m)
        rows = tuple((m, self.state[m], str(self.deliveries.get(m, 0))) for m in shown)
        consumers = tuple(
            (
                by,
                _first_names(ms),
                f"{len(ms)}{f' of {self.prefetch[by]}' if by in self.prefetch else ''}",
            )
            for by, ms in sorted(having.items())
        )
        made = (
            Section("Messages", ("message", "as far as the record says", "deliveries"), rows),
            Section("Consumers", ("consumer", "has", "how many"), consumers),
        )
        return tuple(section for section in made if section.rows)


def _first_names(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _client_states(
    events: Sequence[Event], shown: list[int], marked: set[tuple[str, int]]
) -> tuple[list[State], list[MessageBar]]:
    violating = dict.fromkeys(m for e in events if (e.rec, e.i) in marked for m in _messages(e))
    others = dict.fromkeys(m for at in shown for m in _messages(events[at]))
    messages = list(violating | others)[:LINES_MAX]
    order = {m: n for n, m in enumerate(others)}
    messages.sort(key=lambda m: order.get(m, 0))
    tracker = _MessageTracker()
    states = [tracker.tables(messages)]
    wanted = set(shown)
    for at, e in enumerate(events):
        tracker.see(at, e, (e.rec, e.i) in marked)
        if at in wanted:
            states.append(tracker.tables(messages))
    tracker.finish(len(events))
    return states, list(_bars(tracker, set(messages), shown))


def _bars(tracker: _MessageTracker, messages: set[str], shown: list[int]) -> Iterator[MessageBar]:
    """The bars of the messages shown, each from the step that began it to the one that ended it, or one beyond."""
    for m, by, begin, end, how, violating in sorted(tracker.bars, key=lambda bar: bar[2]):
        first, last = bisect_right(shown, begin), bisect_right(shown, end)
        last = len(shown) + 1 if end > shown[-1] else last
        if m in messages and first <= len(shown) and (last > first or not by):
            yield MessageBar(
                message=m, by=by, start=max(first, 1), end=last, how=how, violating=violating
            )


# --------------------------------------------------------------------------------------------------
# What the reference, or another white box, recorded of itself
# --------------------------------------------------------------------------------------------------


def _white_box_states(
    events: Sequence[Event], shown: list[int]
) -> tuple[list[State], list[MessageBar]]:
    now = Reconstruction()
    states = [now.state()]
    wanted = set(shown)
    for at, e in enumerate(events):
        if e.lvl == "model":
            now.see(e)
        if at in wanted:
            states.append(now.state())
    return states, []


def _fields(e: Event) -> dict[str, object]:
    named = ("ph", "q", "m", "prio", "key", "credit")
    fields = {k: v for k in named if (v := getattr(e, k)) not in (None, "")}
    return {**fields, **e.args}


# --------------------------------------------------------------------------------------------------
# Text
# --------------------------------------------------------------------------------------------------


def _event_text(e: Event) -> str:
    if e.lvl == "model":
        return " ".join([e.ev, *(f"{k}={v}" for k, v in _fields(e).items())])
    what = " ".join([e.ev, *list(_messages(e))[:6]])
    if e.ph in ("invoke", "fail", "info") or (e.ph == "ok" and e.ev == "publish"):
        what += {"invoke": "", "ok": " confirmed", "fail": " failed", "info": " (?)"}[e.ph]
    return what


def _event_detail(e: Event) -> str:
    if e.lvl == "model":
        return ""
    details = []
    if acquires(e) and e.redelivered is not None:
        details.append("redelivered" if e.redelivered else "for the first time")
    if e.ev in ("nack", "reject"):
        details.append("not requeued" if e.requeue is False else "requeued")
    return ", ".join(details)


def _event_time(e: Event, first: int | None) -> str:
    index = f"event {e.i}" + (f" of {e.rec}" if e.rec else "")
    if e.t is None or e.lvl == "model":
        return index
    since = e.t - (first or 0)
    if since < NANOSECONDS_PER_MILLISECOND / 100:
        return f"{index}, {since:,} ns"
    return f"{index}, {since / NANOSECONDS_PER_MILLISECOND:,.3f} ms"
