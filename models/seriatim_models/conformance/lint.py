"""Hints on what a recording leaves open, and why: to be read before its verdicts, and mended in its recorder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from seriatim_models.history.complete import Completion
from seriatim_models.history.event import EXACT, GAP, SETTLES, Event, began
from seriatim_models.history.unrecorded import missing_kinds
from seriatim_models.properties.blackbox.lifecycle import (
    acquires,
    holders,
)
from seriatim_models.properties.blackbox.naming import (
    ENDS,
    Holder,
    holder,
)


class Hint(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a recording leaves open."""

    id: str
    count: int
    sentence: str
    example: str = ""
    """The first event of the kind."""


class _Lint:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
        self._begun_at = False
        self._clocks: dict[str, Event] = {}
        self._open_channels: dict[Holder, Event] = {}
        self._open_connections: dict[str, Event] = {}
        self._begun: dict[str, Event] = {}
        self._published: set[str] = set()
        self._seen: set[str] = set()
        self._tags: dict[Holder, int] = {}
        self._last: dict[tuple[str, str, str], int] = {}
        self._depth: dict[str, Event] = {}
        self._queues: dict[str, Event] = {}
        self._delays: dict[str, object] = {}
        self._consumers: dict[tuple[str, int, str], int | None] = {}
        self._kinds: set[str] = set()
        self._unwritten: set[str] = set()
        self._unsettled: list[Event] = []
        self._again: list[Event] = []

    def count(self, id: str, event: Event) -> None:
        """Count a hint that this event gives."""
        self.counts[id] += 1
        self.examples.setdefault(
            id, f"event {event.i}: {event.ev} {event.m or event.q or event.conn}".strip()
        )

    def take(self, event: Event) -> None:
        """Take in the next event."""
        if not self._begun_at and event.i > 1:
            self.count("beginning", event)
        self._begun_at = True
        self._time(event)
        ev = event.ev
        self._kinds.add(ev)
        if ev == GAP:
            self._unwritten |= set(missing_kinds(event))
            if not missing_kinds(event):
                self.count("gaps", event)
        elif ev in ("conn_open", "conn_close", "conn_drop", "ch_open", "ch_close"):
            self._open_or_close(event)
        elif ev == "publish":
            self._publish(event)
        elif ev in SETTLES:
            if event.ms is None:
                self.count("unknown-tag", event)
        elif ev in ("declare", "commit"):
            self._meaning(event)
        elif ev == "note" and isinstance(event.args.get("depth"), int):
            self._depth[event.q] = event
        elif acquires(event):
            self._acquire(event)

    def name(self, event: Event) -> None:
        """Take in an event that says nothing of its channel's incarnation, which its consumer's tag must show then."""
        if event.ev != "consume" or not event.ctag or event.ch is None or event.lvl in EXACT:
            return
        known = self._consumers.setdefault((event.conn, event.ch, event.ctag), event.gen)
        if known != event.gen and event.ph in ("", "invoke"):
            self.count("no-incarnation", event)

    def _time(self, event: Event) -> None:
        clock = self._clocks.setdefault(event.clk, event)
        if len(self._clocks) > 1 and clock is event:
            self.count("clocks", event)
        if event.t is None:
            self.count("timeless", event)
            return
        line = (event.run, event.rec, event.clk)
        if event.t < self._last.get(line, event.t):
            self.count("backwards", event)
        self._last[line] = event.t

    def _open_or_close(self, event: Event) -> None:
        if event.ev == "conn_open":
            self._open_connections[event.conn] = event
        elif event.ev == "ch_open" and event.ph in ("", "ok"):
            self._open_channels[holder(event)] = event
        elif event.ev == "ch_close":
            self._open_channels.pop(holder(event), None)
        elif event.ev != "ch_open":
            self._open_connections.pop(event.conn, None)
            for by in holders(event, self._open_channels):
                del self._open_channels[by]
            if event.ev == "conn_drop":
                self.count("drops", event)

    def _meaning(self, event: Event) -> None:
        """What a queue or a commit should declare, and does not."""
        if event.ev == "commit":
            if began(event) and "committed" not in event.args:
                self.count("undeclared-commit", event)
        elif "delay" in event.args and not event.args.get("passive"):
            delay = event.args["delay"]
            if self._delays.setdefault(event.q, delay) != delay:
                self.count("changed-delay", event)

    def _publish(self, event: Event) -> None:
        self._published.add(event.m)
        self._queues.setdefault(event.q, event)
        if event.m.startswith("body:"):
            self.count("unnamed", event)
        if event.ph == "invoke":
            self._begun[event.m] = event
        elif event.ph in ("ok", "fail"):
            self._begun.pop(event.m, None)
        elif event.lvl not in EXACT:
            self.count("unconfirmed", event)

    def _acquire(self, event: Event) -> None:
        self._queues.setdefault(event.q, event)
        by = holder(event)
        if event.m not in self._published:
            self.count("unpublished", event)
        if event.redelivered is None:
            self.count("no-flag", event)
        elif event.redelivered and event.m not in self._seen:
            self.count("unobserved", event)
        if event.dtag is not None:
            if event.dtag > self._tags.get(by, 0) + 1:
                self.count("tag-gaps", event)
            self._tags[by] = event.dtag
        if event.ev == "deliver" and not event.prefetch and not event.autoack:
            self.count("no-prefetch", event)
        if not event.q:
            self.count("no-queue", event)
        if event.pos is not None and not event.ctag:
            self.count("no-group", event)
        if not event.autoack and event.pos is None:
            self._unsettled.append(event)
        if event.redelivered or (event.attempt or 1) > 1:
            self._again.append(event)
        self._seen.add(event.m)

    def end(self) -> None:
        """Count what is open at the end."""
        for kind, left in (
            ("open-connections", self._open_connections),
            ("open-channels", self._open_channels),
            ("unanswered", self._begun),
        ):
            for event in left.values():
                self.count(kind, event)
        for kind in sorted(self._unwritten):
            self.counts["unrecorded"] += 1
            self.examples.setdefault("unrecorded", kind)
        self._suggest("no-settlements", self._unsettled, SETTLES)
        self._suggest("no-requeues", self._again, BRINGS_BACK)
        for q, event in self._queues.items():
            last = self._depth.get(q)
            if q and (last is None or last.args.get("depth")):
                self.count("not-drained", event)

    def _suggest(self, id: str, events: Iterable[Event], kinds: frozenset[str]) -> None:
        """Count what leads one to expect events of which there are none, and which are not declared as unrecorded."""
        if kinds.isdisjoint(self._kinds | self._unwritten):
            for event in events:
                self.count(id, event)


BRINGS_BACK = ENDS | {"nack", "reject", "recover", "expire", GAP}
"""Events by which a message that somebody was given comes again."""
SENTENCES = {
    "unrecorded": "kinds of events that the recorder declares it never writes: what depends on them is left open",
    "no-settlements": "deliveries to be settled, and nobody settles: if that is not recorded, declare it in the header "
    '("params": {"unrecorded": ["ack", "nack", "reject"]})',
    "no-requeues": "messages that come again, and nothing brings them back: if that is not recorded, declare it in the "
    'header ("params": {"unrecorded": ["nack", "reject", "recover", "expire"]})',
    "unobserved": "acquisitions that nobody recorded: messages marked redelivered on first sight",
    "tag-gaps": "gaps in delivery tags: deliveries that the recorder did not see",
    "delivery-ids": "delivery tags that no channel of AMQP 0-9-1 has (zero, above one at first, on channel 0, or "
    "beside the credit of a link): the delivery-id of AMQP 1.0 is no dtag, and its delivery-count neither redelivered "
    "nor attempt; leave them out, and name what is settled by m or ms",
    "clocks": "further clock domains: times are compared within one only",
    "backwards": "times that fall while the index rises",
    "timeless": "events without a time: their order of recording stands for it",
    "beginning": "first indices above 1: the beginning is missing, and nothing of what came before is known",
    "gaps": "places where lines were lost: nothing is known across them",
    "drops": "connections cut off: when the broker noticed is not known",
    "open-connections": "connections that never end: what they held at the end is open",
    "open-channels": "channels that never close, nor their connection",
    "unanswered": "publishes begun and never answered: whether the broker had them is not known",
    "unconfirmed": "publishes without `invoke` and `ok`: none can be called lost, or out of order (P1, P5, P20)",
    "unpublished": "deliveries of messages whose publish is not in the recording",
    "unnamed": "messages known by a hash of their body: two with the same body are taken for one",
    "unknown-tag": "settlements of tags that the recording does not know",
    "no-flag": "deliveries without the flag redelivered",
    "no-prefetch": "deliveries without a prefetch: nothing bounds when they were acquired",
    "no-group": "deliveries of a log to a reader that names no group (ctag): whether it goes on for another one that "
    "stopped or ended is not known (P15)",
    "undeclared-commit": "commits that do not say what their position means (committed): what begins behind one is a "
    "violation only if both meanings forbid it (P15)",
    "changed-delay": "queues declared anew with another delay: which one a message has is not known",
    "no-incarnation": "consumers with the tag of one of an earlier incarnation of their channel, whose callbacks may "
    "run late, and are taken to be theirs: record `gen` on each event of a channel, or give them another tag",
    "no-queue": "deliveries of which no consume names the queue",
    "not-drained": "queues not seen empty at the end: nothing can be called lost",
}
"""What each hint means."""


def lint(events: Iterable[Event]) -> list[Hint]:
    """What the recording leaves open, most frequent first. The events may be completed already."""
    at_work = _Lint()
    completion = Completion()
    for recorded in events:
        event = completion(recorded)
        if acquires(event) and event.dtag is None and recorded.dtag is not None:
            at_work.count("delivery-ids", event)
        if recorded.gen is None:
            at_work.name(event)
        at_work.take(event)
    at_work.end()
    return [
        Hint(id=id, count=count, sentence=SENTENCES[id], example=at_work.examples[id])
        for id, count in at_work.counts.most_common()
    ]
