"""A recorded history as a page: the bars are what the record says, and the events of a violation are on it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from seriatim_models.history import Event
from seriatim_models.history.event import event
from seriatim_models.properties.base import Finding
from seriatim_models.properties.blackbox.holding import OneHolder
from seriatim_models.report.history_view import EVENTS_MAX, history_story
from seriatim_models.report.stepper import page
from seriatim_models.report.story import Story

HOSTILE = "</script><img src=x onerror=alert(1)>"


class Tape:
    """Writes events down one after another."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, ev: str, **fields: Any) -> Event:
        n = len(self.events)
        made = Event(i=n, t=10 * n, ev=ev, **{"q": "q", "ch": 1, "gen": 1, **fields})
        self.events.append(made)
        return made

    def publish(self, m: str) -> Event:
        return self.add("publish", ph="invoke", m=m, conn="p")

    def deliver(self, m: str, to: str, **more: Any) -> Event:
        return self.add("deliver", m=m, conn=to, ctag=to, redelivered=False, **more)

    def settle(self, ev: str, m: str, by: str, **more: Any) -> Event:
        return self.add(ev, ph="invoke", ms=[m], conn=by, **more)


def bars(story: Story) -> list[tuple[str, str, int, int, str]]:
    return [(b.message, b.by, b.start, b.end, b.how) for b in story.bars]


def cells(story: Story, n: int, title: str, name: str) -> list[str]:
    """A row of the state after step n."""
    tables = {s.title: s for s in story.states[story.steps[n - 1].state]}
    return next((list(row) for row in tables[title].rows if row[0] == name), [])


def two_holders() -> tuple[Tape, Finding]:
    tape = Tape()
    tape.publish("m1")
    tape.deliver("m1", "a")
    tape.deliver("m1", "b")
    tape.settle("ack", "m1", "a")
    tape.settle("ack", "m1", "b")
    return tape, OneHolder().check(tape.events)


def test_a_bar_goes_from_delivery_to_settlement() -> None:
    tape = Tape()
    tape.publish("m1")
    tape.deliver("m1", "a")
    tape.settle("nack", "m1", "a", requeue=True)
    tape.deliver("m1", "b")
    tape.settle("ack", "m1", "b")
    assert bars(history_story("r", tape.events)) == [
        ("m1", "", 1, 2, "in the queue"),
        ("m1", "a/1", 2, 3, "nack"),
        ("m1", "", 3, 4, "in the queue"),
        ("m1", "b/1", 4, 5, "ack"),
    ]


@pytest.mark.parametrize(
    ("ev", "fields"),
    [
        ("ch_close", {"conn": "a"}),
        ("conn_close", {"conn": "a", "ch": None, "gen": None}),
        ("conn_drop", {"conn": "a", "ch": None, "gen": None}),
        ("recover", {"conn": "a"}),
        ("expire", {"m": "m1", "requeue": True, "conn": "", "ch": None, "gen": None}),
    ],
)
def test_an_end_requeues_what_was_held(ev: str, fields: dict[str, Any]) -> None:
    tape = Tape()
    tape.publish("m1")
    tape.publish("m2")
    tape.deliver("m1", "a")
    tape.deliver("m2", "b")
    tape.add(ev, **fields)
    drawn = bars(history_story("r", tape.events))
    assert ("m2", "b/1", 4, 6, "to the end") in drawn
    assert [b[:4] for b in drawn if b[1] == "a/1"] == [("m1", "a/1", 3, 5)]
    assert ("m1", "", 5, 6, "in the queue to the end") in drawn


def test_a_violation_is_marked_and_where_it_was_bad() -> None:
    tape, finding = two_holders()
    story = history_story("r", tape.events, [finding])
    assert [s.n for s in story.steps if s.witness] == [2, 3]
    assert (story.good, story.bad) == (2, 3)
    assert [b.by for b in story.bars if b.violating] == ["a/1", "b/1"]
    assert cells(story, 3, "Messages", "m1") == ["m1", "with a/1 and b/1", "2"]
    assert cells(story, 4, "Messages", "m1")[1] == "with b/1"
    assert cells(story, 5, "Messages", "m1")[1] == "settled by b/1 (ack)"


def test_without_a_violation_nothing_is_bad() -> None:
    tape = Tape()
    tape.publish("m1")
    story = history_story("r", tape.events)
    assert (story.good, story.bad) == (0, 0)
    source = page(story)
    assert "what was seen" in source
    assert "last good:" not in source


def test_the_prefetch_stands_beside_what_a_consumer_has() -> None:
    tape = Tape()
    tape.publish("m1")
    tape.deliver("m1", "a", prefetch=3)
    assert cells(history_story("r", tape.events), 2, "Consumers", "a/1") == ["a/1", "m1", "1 of 3"]


def test_of_a_long_recording_the_violation_is_shown_and_the_rest_is_counted() -> None:
    tape = Tape()
    for n in range(1000):
        tape.publish(f"x{n}")
        tape.deliver(f"x{n}", "c")
        tape.settle("ack", f"x{n}", "c")
        if n == 500:
            more, _ = two_holders()
            for e in more.events:
                tape.add(e.ev, ph=e.ph, m=e.m, ms=e.ms, conn=e.conn, ctag=e.ctag)
    finding = OneHolder().check(tape.events)
    story = history_story("r", tape.events, [finding])
    assert len(story.steps) <= EVENTS_MAX
    assert [s.op for s in story.steps if s.witness] == ["deliver m1", "deliver m1"]
    assert re.fullmatch(r"3,00\d of 3,005 events are not shown", story.left_out)
    calm = history_story("r", tape.events)
    assert len(calm.steps) == EVENTS_MAX
    assert len(page(calm).encode()) < 400_000


def test_no_name_becomes_markup() -> None:
    tape = Tape()
    tape.publish(HOSTILE)
    tape.deliver(HOSTILE, HOSTILE)
    source = page(history_story(HOSTILE, tape.events), HOSTILE)
    assert "<img" not in source
    (text,) = re.findall(r'<script type="application/json" class="story">(.*?)</script>', source)
    assert json.loads(text)["bars"][-1]["message"] == HOSTILE


def test_a_white_box_history_shows_the_queue_itself() -> None:
    cas: dict[str, object] = {"m": "m1", "how": "cas", "old": "AVAILABLE", "new": "ACQUIRED"}
    fields: list[tuple[str, dict[str, object]]] = [
        ("queue", {"q": "q"}),
        ("enqueue", {"ph": "invoke", "q": "q", "m": "m1"}),
        ("link", {"list": "q", "node": "m1", "place": [0, 1]}),
        ("entry_cas", {**cas, "sub": "A", "ok": True}),
    ]
    events = [event(n, n, "P", ev, {**f, "lvl": "model"}) for n, (ev, f) in enumerate(fields)]
    story = history_story("r", events)
    assert cells(story, 4, "Entries of q, in order", "m1")[1:3] == ["ACQUIRED", "A"]
    assert story.steps[3].op == "entry_cas m=m1 how=cas old=AVAILABLE new=ACQUIRED sub=A ok=True"
