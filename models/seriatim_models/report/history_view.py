"""A recorded history to step through: who had which message when, and which events convict.

The page is the one of the counterexamples (`stepper.py`). Its lanes are those who acted, its steps are recorded events,
its state is what the record says of each message and consumer, and above it stands a bar for each time that somebody
had a message. A long recording is not shown whole: what convicts is, with all that happened to its messages.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from seriatim_models.history.complete import SETTLES
from seriatim_models.history.event import GAP, Event
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.blackbox.lifecycle import acquires, began, connection, holder
from seriatim_models.report.reconstruct import Reconstruction, Section, State
from seriatim_models.report.stepper import About, Bar, StepRow, Story, sentence

EVENTS_MAX = 300
"""More are not put on a page: nobody steps through more, and it stays small."""
NEAR_MAX = 60
"""So many of them are other acts of those who are convicted."""
LINES_MAX = 40
"""So many messages have a line with bars."""

NANOSECONDS_PER_MILLISECOND = 1e6
ENDS = frozenset({"ch_close", "conn_close", "conn_drop"})


def watched(
    run: str,
    events: Sequence[Event],
    findings: Iterable[Finding] = (),
    properties: Mapping[str, About] | None = None,
    again: str = "",
) -> Story:
    """`events` of one run, completed, in the run's order. `again` is the command that judges them."""
    about = properties or {}
    convicting = [f for f in findings if f.verdict is Verdict.VIOLATED]
    marked = {(e.rec, e.i) for f in convicting for e in f.witness}
    shown = _excerpt(events, marked)
    states, bars = (
        _white(events, shown)
        if any(e.lvl == "model" for e in events)
        else _black(events, shown, marked)
    )
    lanes = list(dict.fromkeys(who(events[at]) for at in shown))
    unique: dict[State, int] = {}
    indexes = [unique.setdefault(state, len(unique)) for state in states]
    first = next((e.t for e in events if e.t is not None), 0)
    rows = [
        StepRow(
            n=n,
            lane=lanes.index(who(events[at])),
            op=_told(events[at]),
            result=_more(events[at]),
            preempts=False,
            records=[_when(events[at], first)],
            state=indexes[n],
            witness=(events[at].rec, events[at].i) in marked,
        )
        for n, at in enumerate(shown, 1)
    ]
    bad = max((row.n for row in rows if row.witness), default=len(rows) if convicting else 0)
    return Story(
        id="history-" + re.sub(r"[^\w-]+", ".", run or "run"),
        title=run or "history",
        what=[],
        broken=[sentence(f, about) for f in convicting],
        end="recorded",
        left_out=f"{len(events) - len(shown):,} of {len(events):,} events are not shown"
        if len(shown) < len(events)
        else "",
        replay=again,
        threads=lanes,
        steps=rows,
        states=list(unique),
        initial=indexes[0],
        good=max(bad - 1, 0),
        bad=bad,
        arrows=[],
        bars=bars,
    )


def who(event: Event) -> str:
    """In whose lane it stands: a channel or consumer, a connection, or the worker that was asked."""
    if event.lvl == "model":
        return event.proc or "set-up"
    if event.ch is not None:
        again = event.gen is not None and event.gen > 1  # a number that was used before
        return holder(event) if again else f"{event.conn}/{event.ch}"
    return event.conn or event.ctag or event.proc or event.ev


def _messages(event: Event) -> Iterator[str]:
    if event.m:
        yield event.m
    yield from event.ms or ()


def _excerpt(events: Sequence[Event], marked: set[tuple[str, int]]) -> list[int]:
    """Which events go on the page, as their places."""
    if len(events) <= EVENTS_MAX:
        return list(range(len(events)))
    evidence = [n for n, e in enumerate(events) if (e.rec, e.i) in marked]
    if not evidence:
        return list(range(EVENTS_MAX))
    messages = {m for n in evidence for m in _messages(events[n])}
    about = [n for n, e in enumerate(events) if messages.intersection(_messages(e))]
    first, last = min(about + evidence), max(about + evidence)
    actors = {who(events[n]) for n in evidence}
    actors |= {connection(name).rstrip("/") for name in actors}
    near = [n for n in range(first, last) if who(events[n]) in actors or events[n].ev == GAP]
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
    since: int
    convicts: bool


class _Watch:
    """What the record says at one moment: of each message where it is, of each consumer what it has."""

    def __init__(self) -> None:
        self.state: dict[str, str] = {}
        self.held: dict[str, list[_Held]] = {}
        self.ready: dict[str, int] = {}
        self.given: dict[str, int] = {}
        self.prefetch: dict[str, int] = {}
        self.bars: list[tuple[str, str, int, int, str, bool]] = []

    def see(self, at: int, e: Event, convicts: bool) -> None:
        if e.ev == "publish" and e.ph != "fail" and e.m not in self.state:
            self.state[e.m] = "published"
            self.ready[e.m] = at
        elif acquires(e):
            self._give(at, e, convicts)
        elif e.ev in SETTLES and began(e):
            for m in e.ms or ():
                self._let_go(at, m, who(e), e.ev, e.ev != "ack" and e.requeue is not False)
        elif e.ev == "expire" and e.m:
            for held in list(self.held.get(e.m, ())):
                self._let_go(at, e.m, held.by, "expired", bool(e.requeue))
        elif e.ev in ENDS or e.ev == "recover":
            gone = f"{e.conn}/" if e.ev in ENDS - {"ch_close"} else who(e)
            for m, holders in list(self.held.items()):
                for held in list(holders):
                    if gone in (held.by, connection(held.by)):
                        self._let_go(at, m, held.by, e.ev, True)

    def _give(self, at: int, e: Event, convicts: bool) -> None:
        by = who(e)
        since = self.ready.pop(e.m, None)
        if since is not None:
            self.bars.append((e.m, "", since, at, "in the queue", False))
        self.given[e.m] = self.given.get(e.m, 0) + 1
        if e.prefetch:
            self.prefetch[by] = e.prefetch
        if e.autoack:
            self.state[e.m] = f"given to {by}, which need not settle"
            self.bars.append((e.m, by, at, at + 1, "auto-ack", convicts))
            return
        self.held.setdefault(e.m, []).append(_Held(by, at, convicts))
        self.state[e.m] = f"with {' and '.join(h.by for h in self.held[e.m])}"

    def _let_go(self, at: int, m: str, by: str, how: str, back: bool) -> None:
        holders = self.held.get(m, [])
        for held in [h for h in holders if h.by == by]:
            holders.remove(held)
            self.bars.append((m, by, held.since, at, how, held.convicts))
        if holders:
            self.state[m] = f"with {' and '.join(h.by for h in holders)}"
        else:
            self.held.pop(m, None)
            self.state[m] = f"given back by {by} ({how})" if back else f"settled by {by} ({how})"
            if back:
                self.ready[m] = at

    def finish(self, at: int) -> None:
        for m, since in self.ready.items():
            self.bars.append((m, "", since, at, "in the queue to the end", False))
        for m, holders in self.held.items():
            for held in holders:
                self.bars.append((m, held.by, held.since, at, "to the end", held.convicts))

    def tables(self, messages: Sequence[str]) -> State:
        shown = [m for m in messages if m in self.state]
        having: dict[str, list[str]] = {}
        for m, holders in self.held.items():
            for held in holders:
                having.setdefault(held.by, []).append(m)
        rows = tuple((m, self.state[m], str(self.given.get(m, 0))) for m in shown)
        consumers = tuple(
            (by, _few(ms), f"{len(ms)}{f' of {self.prefetch[by]}' if by in self.prefetch else ''}")
            for by, ms in sorted(having.items())
        )
        made = (
            Section("Messages", ("message", "as far as the record says", "times given"), rows),
            Section("Consumers", ("consumer", "has", "how many"), consumers),
        )
        return tuple(section for section in made if section.rows)


def _few(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _black(
    events: Sequence[Event], shown: list[int], marked: set[tuple[str, int]]
) -> tuple[list[State], list[Bar]]:
    convicted = dict.fromkeys(m for e in events if (e.rec, e.i) in marked for m in _messages(e))
    others = dict.fromkeys(m for at in shown for m in _messages(events[at]))
    messages = list(convicted | others)[:LINES_MAX]
    order = {m: n for n, m in enumerate(others)}
    messages.sort(key=lambda m: order.get(m, 0))
    watch = _Watch()
    states = [watch.tables(messages)]
    wanted = set(shown)
    for at, e in enumerate(events):
        watch.see(at, e, (e.rec, e.i) in marked)
        if at in wanted:
            states.append(watch.tables(messages))
    watch.finish(len(events))
    return states, list(_bars(watch, set(messages), shown))


def _bars(watch: _Watch, messages: set[str], shown: list[int]) -> Iterator[Bar]:
    """From the step in which it began to the step in which it ended, or one beyond the last."""
    for m, by, begin, end, how, convicts in sorted(watch.bars, key=lambda bar: bar[2]):
        first, last = bisect_right(shown, begin), bisect_right(shown, end)
        last = len(shown) + 1 if end > shown[-1] else last
        if m in messages and first <= len(shown) and (last > first or not by):
            yield Bar(message=m, by=by, start=max(first, 1), end=last, how=how, convicts=convicts)


# --------------------------------------------------------------------------------------------------
# What the reference, or another white box, recorded of itself
# --------------------------------------------------------------------------------------------------


class _Record(NamedTuple):
    step: int
    thread: str
    ev: str
    args: dict[str, object]


def _white(events: Sequence[Event], shown: list[int]) -> tuple[list[State], list[Bar]]:
    now = Reconstruction()
    states = [now.state()]
    wanted = set(shown)
    for at, e in enumerate(events):
        now.record(_Record(e.t or 0, e.proc, e.ev, _fields(e)))
        if at in wanted:
            states.append(now.state())
    return states, []


def _fields(e: Event) -> dict[str, object]:
    named = ("ph", "q", "m", "prio", "key", "credit")
    told = {k: v for k in named if (v := getattr(e, k)) not in (None, "")}
    return {**told, **e.args}


# --------------------------------------------------------------------------------------------------
# Words
# --------------------------------------------------------------------------------------------------


def _told(e: Event) -> str:
    if e.lvl == "model":
        return " ".join([e.ev, *(f"{k}={v}" for k, v in _fields(e).items())])
    what = " ".join([e.ev, *list(_messages(e))[:6]])
    if e.ph in ("invoke", "fail", "info") or (e.ph == "ok" and e.ev == "publish"):
        what += {"invoke": "", "ok": " confirmed", "fail": " failed", "info": " (?)"}[e.ph]
    return what


def _more(e: Event) -> str:
    if e.lvl == "model":
        return ""
    said = []
    if acquires(e) and e.redelivered is not None:
        said.append("redelivered" if e.redelivered else "for the first time")
    if e.ev in ("nack", "reject"):
        said.append("for good" if e.requeue is False else "to be requeued")
    return ", ".join(said)


def _when(e: Event, first: int | None) -> str:
    index = f"event {e.i}" + (f" of {e.rec}" if e.rec else "")
    if e.t is None or e.lvl == "model":
        return index
    since = e.t - (first or 0)
    if since < NANOSECONDS_PER_MILLISECOND / 100:
        return f"{index}, {since:,} ns"
    return f"{index}, {since / NANOSECONDS_PER_MILLISECOND:,.3f} ms"
